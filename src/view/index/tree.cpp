// Lines from the rows of table track (tree.h).
#include "view/index/tree.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/operators/places.h"
#include "base/saturating.h"
#include "trace/read/rows.h"
#include "view/index/names.h"
#include "walk/names/tools.h"
#include "walk/names/tracks.h"

namespace tacho::view {

using event::kUnknown;
using event::Table;
using event::TrackKind;
namespace column = event::column;

std::string_view to_string(LineKind kind) {
  switch (kind) {
    case LineKind::kHost:
      return "host";
    case LineKind::kRank:
      return "rank";
    case LineKind::kProcess:
      return "process";
    case LineKind::kThread:
      return "thread";
    case LineKind::kQueue:
      return "queue";
    case LineKind::kRange:
      return "marker";
    case LineKind::kMemory:
      return "memory";
    case LineKind::kCounter:
      return "counter";
    case LineKind::kSample:
      return "sample";
    case LineKind::kMessage:
      return "message";
    case LineKind::kStack:
      return "stack";
  }
  return "group";
}

namespace {

constexpr uint64_t bit(Table table) {
  return uint64_t{1} << static_cast<unsigned>(table);
}

struct RowsOfTrack {
  uint64_t tables = 0;
  int64_t events = 0, samples = 0, messages = 0, readings = 0;
  int64_t busy = 0;
};

// Which tables have rows on each row of table track, and about how many: a chunk's summary lists its tracks, and its
// rows are shared out evenly among them. TileIndex counts them. Readings are counted here.
std::vector<RowsOfTrack> rows_of_tracks(const trace::Trace& trace) {
  std::vector<RowsOfTrack> tracks(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kTrack), 1)));
  for (const Table table : slice_tables())
    for (size_t chunk = 0; chunk < trace.chunks(table).size(); ++chunk) {
      // An unreadable chunk is reported when its slices are read.
      const auto entries = trace.busy(table, chunk);
      if (!entries) continue;
      for (const trace::Busy& entry : *entries) {
        if (entry.track < 0 || static_cast<size_t>(entry.track) >= tracks.size()) continue;
        RowsOfTrack& rows = tracks[static_cast<size_t>(entry.track)];
        const int64_t count = trace.chunks(table)[chunk].rows / static_cast<int64_t>(entries->size()) + 1;
        (table == Table::kSample ? rows.samples : table == Table::kMessage ? rows.messages : rows.events) += count;
        rows.tables |= bit(table);
        add_saturating(rows.busy, entry.busy);
      }
    }
  std::vector<int64_t> track;
  for (size_t chunk = 0; chunk < trace.chunks(Table::kReading).size(); ++chunk)
    if (trace.decode(Table::kReading, chunk, column::Reading::track, track))
      for (const int64_t each : track)
        if (each >= 0 && static_cast<size_t>(each) < tracks.size()) ++tracks[static_cast<size_t>(each)].readings;
  return tracks;
}

// "stream 7", "queue 0x5581", or the program's own name for it.
std::string queue_name(const trace::Trace& trace, const walk::Tracks& tracks, int64_t track) {
  const std::string_view own = trace.text(Table::kTrack, track, column::Track::name);
  if (!own.empty()) return std::string(own);
  if (const int64_t stream = tracks.stream(track); stream != kUnknown) return fmt::format("stream {}", stream);
  const int64_t queue = tracks.queue(track);
  return queue == kUnknown ? std::string("queue") : fmt::format("queue {}", queue);
}

// "pt_autograd_0 (1802)", "python3 (1560)", "thread 1801".
std::string thread_name(const trace::Trace& trace, int64_t track) {
  const int64_t thread = trace.cell(Table::kTrack, track, column::Track::thread);
  std::string name(trace.text(Table::kThread, thread, column::Thread::name));
  const int64_t tid = thread == 0 ? 0 : trace.cell(Table::kThread, thread, column::Thread::tid);
  if (name.empty()) name = trace.text(Table::kTrack, track, column::Track::name);
  if (tid <= 0 || tid == kUnknown) return name.empty() ? "thread" : name;
  const std::string number = fmt::format("{}", tid);
  if (name.empty()) return "thread " + number;
  return name.find(number) == std::string::npos ? fmt::format("{} ({})", name, number) : name;
}

// The quantity with its device: "GPU 0 sclk".
std::string counter_name(const trace::Trace& trace, const walk::Tracks& tracks, int64_t track,
                         const std::string& device) {
  std::string name = tracks.name(track);
  const int64_t counter = trace.cell(Table::kTrack, track, column::Track::counter);
  if (trace.text(Table::kTrack, track, column::Track::name).empty() && counter != 0)
    if (const std::string_view own = trace.text(Table::kCounter, counter, column::Counter::name); !own.empty())
      name = own;
  return device.empty() || name.find(device) != std::string::npos ? name : device + " " + name;
}

// Whether readings of a counter are sums since a beginning, of which only the growth tells anything: those that tacho's
// telemetry reads of processes.
bool counts_up(const trace::Trace& trace, int64_t counter) {
  const std::string_view name = trace::text<column::Counter::name>(trace, counter),
                         text = trace::text<column::Counter::text>(trace, counter);
  static constexpr std::string_view kSums[] = {"CPU Context Switches", "Disk Read", "Disk Written"};
  return text.ends_with(" since the process began") ||
         (!text.empty() && std::find(std::begin(kSums), std::end(kSums), name) != std::end(kSums));
}

// Of a sum in this unit, a second. CPU time a second is a share of a processor.
std::string rate_unit(std::string_view unit) {
  return unit == "s" ? "%" : fmt::format("{}/s", unit);
}

// Device and kind of work first, so that queues stay distinguishable in a narrow column: "GPU 0 stream 7", "GPU 0
// copies, stream 7".
void name_queues(std::vector<Line>& lines) {
  const uint64_t copies = bit(Table::kCopy) | bit(Table::kFill);
  for (Line& line : lines) {
    if (line.kind != LineKind::kQueue) continue;
    if (line.tables == bit(Table::kMarker))
      line.name = "ranges of " + line.name;
    else if ((line.tables & copies) != 0 && (line.tables & ~copies) == 0)
      line.name = "copies, " + line.name;
    if (!line.device.empty()) line.name = line.device + " " + line.name;
  }
}

// Marks processes that are not what the run is about: tools that programs start, and those without calls, work and
// samples; none where there are no others.
void mark_helpers(const trace::Trace& trace, std::vector<Line>& lines) {
  const uint64_t work =
      bit(Table::kDispatch) | bit(Table::kCopy) | bit(Table::kFill) | bit(Table::kApi) | bit(Table::kMarker);
  std::map<int64_t, uint64_t> tables;  // by process
  for (const Line& line : lines) tables[line.process] |= line.tables;
  std::vector<Line*> helpers;
  size_t processes = 0;
  for (Line& line : lines) {
    if (line.kind != LineKind::kProcess || line.process == 0) continue;
    ++processes;
    const uint64_t has = tables[line.process];
    const bool tool = walk::is_helping_tool(trace::text<column::Process::name>(trace, line.process));
    if ((has & work) == 0 && (tool || ((has & bit(Table::kSample)) == 0 && line.process != 1)))
      helpers.push_back(&line);
  }
  if (helpers.size() < processes)
    for (Line* const each : helpers) each->helper = true;
}

// Makes the lines of a trace, one after the other.
class LineMaker {
 public:
  explicit LineMaker(const trace::Trace& trace)
      : trace_(trace),
        agents_(trace, 0),
        tracks_(trace, agents_, naming_),
        devices_(trace),
        rows_(rows_of_tracks(trace)) {
    std::set<std::string> hosts;
    const int64_t processes = std::max<int64_t>(trace.rows(Table::kProcess), 1);
    for (int64_t process = 1; process < processes; ++process)
      hosts.emplace(trace::text<column::Process::host>(trace, process));
    several_hosts_ = hosts.size() > 1;
  }

  size_t tracks() const { return rows_.size(); }
  std::vector<Line> take() { return std::move(lines_); }

  /// The rows of table track that have something to show. Processes with a rank come by rank, the others in the order
  /// of their rows; within one queues, threads, the rest.
  std::vector<int64_t> tracks_in_order() const {
    struct Shown {
      int64_t track;
      int order;
    };
    std::vector<Shown> shown;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const RowsOfTrack& rows = rows_[i];
      if (rows.events == 0 && rows.samples == 0 && rows.messages == 0 && rows.readings == 0) continue;
      const auto track = static_cast<int64_t>(i);
      const TrackKind kind = kind_of(track);
      shown.push_back({track, kind == TrackKind::kQueue    ? 0
                              : rows.readings > 0          ? 4
                              : rows.events == 0           ? 2
                              : kind == TrackKind::kThread ? 1
                                                           : 3});
    }
    std::stable_sort(shown.begin(), shown.end(), [&](const Shown& a, const Shown& b) {
      const int64_t p = process_of(a.track), q = process_of(b.track);
      if (p != q) {
        if ((p == 0) != (q == 0)) return q == 0;
        return rank_of(p) != rank_of(q) ? rank_of(p) < rank_of(q) : p < q;
      }
      if (a.order != b.order) return a.order < b.order;
      return counted_device(a.track) < counted_device(b.track);
    });
    std::vector<int64_t> tracks;
    for (const Shown& each : shown) tracks.push_back(each.track);
    return tracks;
  }

  /// The line of a track's slices or readings, made if there is none yet; -1 if it has neither.
  int64_t own_line(int64_t track) {
    const RowsOfTrack& rows = rows_of(track);
    const TrackKind kind = kind_of(track);
    int64_t number = -1;
    if (kind == TrackKind::kQueue) {
      int64_t& queue = queues_.try_emplace(walk::queue_identity(trace_, track, false), -1).first->second;
      if (queue < 0) queue = add_queue(track);
      number = queue;
    } else if (rows.readings > 0) {
      number = add_counter(track);
    } else if (rows.events > 0) {
      Line line = line_below(process_line(process_of(track)), track,
                             kind == TrackKind::kThread   ? LineKind::kThread
                             : kind == TrackKind::kMemory ? LineKind::kMemory
                                                          : LineKind::kRange);
      line.name = kind == TrackKind::kThread ? thread_name(trace_, track) : tracks_.name(track);
      number = add(std::move(line));
    }
    if (number < 0) return number;
    if (kind == TrackKind::kThread) threads_.try_emplace(trace::cell<column::Track::thread>(trace_, track), number);
    Line& line = lines_[static_cast<size_t>(number)];
    line.about += rows.events + rows.readings;
    if (line.kind == LineKind::kQueue) add_saturating(line.busy, rows.busy);
    line.tables |= rows.tables & ~(bit(Table::kSample) | bit(Table::kMessage));
    if (rows.readings > 0) line.tables |= bit(Table::kReading);
    return number;
  }

  /// A line for the messages of a rank, below the calls that sent and received them (`own`); -1 if there are none.
  int64_t message_line(int64_t track, int64_t own) {
    if (rows_of(track).messages == 0) return -1;
    Line line = line_below(own >= 0 ? own : process_line(process_of(track)), track, LineKind::kMessage);
    line.name = line.rank != kUnknown ? fmt::format("messages of rank {}", line.rank) : "messages";
    line.tables = bit(Table::kMessage);
    line.about = rows_of(track).messages;
    return add(std::move(line));
  }

  /// A line for samples, -1 if there are none. Samples of a thread lie on a row of table track of their own; they
  /// belong below the thread's calls.
  int64_t sample_line(int64_t track, int64_t own) {
    if (rows_of(track).samples == 0) return -1;
    if (const auto thread = threads_.find(trace::cell<column::Track::thread>(trace_, track));
        own < 0 && thread != threads_.end())
      own = thread->second;
    Line line = line_below(own >= 0 ? own : process_line(process_of(track)), track, LineKind::kSample);
    line.name = own >= 0 ? "samples" : tracks_.name(track) + " samples";
    line.tables = bit(Table::kSample);
    line.about = rows_of(track).samples;
    const int64_t number = add(std::move(line));
    if (trace_.rows(Table::kSample) <= Tree::kMostStackSamples) {
      Line stacks = line_below(number, track, LineKind::kStack);
      stacks.name = "stacks";
      stacks.tables = bit(Table::kSample);
      add(std::move(stacks));
    }
    return number;
  }

 private:
  const RowsOfTrack& rows_of(int64_t track) const { return rows_[static_cast<size_t>(track)]; }
  TrackKind kind_of(int64_t track) const { return event::from_cell(trace::cell<column::Track::kind>(trace_, track)); }
  int64_t process_of(int64_t track) const { return trace::cell<column::Track::process>(trace_, track); }
  int64_t rank_of(int64_t process) const {
    const int64_t rank = process == 0 ? kUnknown : trace::cell<column::Process::rank>(trace_, process);
    return rank == kUnknown ? std::numeric_limits<int64_t>::max() : rank;
  }
  // Counters of one kind by device: "GPU 2" before "GPU 10".
  std::pair<size_t, std::string> counted_device(int64_t track) const {
    const int64_t device = trace::cell<column::Track::device>(trace_, track);
    std::string text = rows_of(track).readings == 0 || device == 0 ? std::string() : devices_.text(device);
    const size_t length = text.size();
    return {length, std::move(text)};
  }

  int64_t add(Line line) {
    lines_.push_back(std::move(line));
    return static_cast<int64_t>(lines_.size()) - 1;
  }

  Line line_below(int64_t parent, int64_t track, LineKind kind) const {
    Line line;
    line.parent = parent;
    line.kind = kind;
    line.process = process_of(track);
    line.rank = lines_[static_cast<size_t>(parent)].rank;
    return line;
  }

  int64_t host_line(const std::string& host) {
    const auto found = hosts_.find(host);
    if (found != hosts_.end()) return found->second;
    Line line;
    line.kind = LineKind::kHost;
    line.name = host.empty() ? "unnamed host" : host;
    return hosts_[host] = add(std::move(line));
  }

  int64_t process_line(int64_t process) {
    const auto found = processes_.find(process);
    if (found != processes_.end()) return found->second;
    Line line;
    line.process = process;
    if (process != 0) {
      if (several_hosts_) line.parent = host_line(std::string(trace::text<column::Process::host>(trace_, process)));
      line.rank = trace::cell<column::Process::rank>(trace_, process);
      line.name = analysis::process_name(trace_, process);
      if (line.name.empty()) line.name = "process";
      if (line.rank != kUnknown) line.name = fmt::format("rank {}: {}", line.rank, line.name);
      const int64_t pid = trace::cell<column::Process::pid>(trace_, process);
      if (pid != kUnknown && pid > 0) line.name += fmt::format(" ({})", pid);
    } else {
      line.name = "machine";
    }
    return processes_[process] = add(std::move(line));
  }

  int64_t add_queue(int64_t track) {
    const int64_t device = trace::cell<column::Track::device>(trace_, track);
    Line line = line_below(process_line(process_of(track)), track, LineKind::kQueue);
    line.name = queue_name(trace_, tracks_, track);
    line.device = device == 0 ? std::string() : devices_.text(device);
    line.device_number = devices_.device(device);
    return add(std::move(line));
  }

  int64_t add_counter(int64_t track) {
    Line line = line_below(process_line(process_of(track)), track, LineKind::kCounter);
    const int64_t counter = trace::cell<column::Track::counter>(trace_, track);
    line.unit = trace::text<column::Counter::unit>(trace_, counter);
    line.rate = counts_up(trace_, counter);
    if (line.rate) line.unit = rate_unit(line.unit);
    const int64_t device = trace::cell<column::Track::device>(trace_, track);
    if (device != 0) line.device = devices_.text(device);
    line.name = counter_name(trace_, tracks_, track, line.device);
    return add(std::move(line));
  }

  const trace::Trace& trace_;
  const walk::Naming naming_;
  const walk::Agents agents_;
  const walk::Tracks tracks_;
  const analysis::DeviceNumbers devices_;
  const std::vector<RowsOfTrack> rows_;  // by row of table track
  bool several_hosts_ = false;
  std::vector<Line> lines_;
  std::map<std::string, int64_t> hosts_;
  std::map<int64_t, int64_t> processes_, threads_;  // lines by row
  std::map<std::array<int64_t, 6>, int64_t> queues_;
};

}  // namespace

Tree::Tree(const trace::Trace& trace) {
  if (trace.aggregated()) return;  // holds sums and nothing to draw
  LineMaker maker(trace);
  for (std::vector<int64_t>* const lines : {&line_, &sample_line_, &message_line_}) lines->assign(maker.tracks(), -1);
  for (const int64_t track : maker.tracks_in_order()) {
    const auto at = static_cast<size_t>(track);
    line_[at] = maker.own_line(track);
    message_line_[at] = maker.message_line(track, line_[at]);
    sample_line_[at] = maker.sample_line(track, line_[at]);
  }
  lines_ = maker.take();
  name_queues(lines_);
  mark_helpers(trace, lines_);
  add_counters(trace);
}

// The counter values of dispatches: a line for each counter, below the queue.
void Tree::add_counters(const trace::Trace& trace) {
  if (trace.rows(Table::kCounterValue) > kMostCounterValues) return;
  std::map<std::pair<int64_t, int64_t>, int64_t> counts;
  std::vector<int64_t> track, counter;
  for (size_t chunk = 0; chunk < trace.chunks(Table::kCounterValue).size(); ++chunk) {
    if (!trace.decode(Table::kCounterValue, chunk, column::CounterValue::track, track) ||
        !trace.decode(Table::kCounterValue, chunk, column::CounterValue::dim, counter))
      continue;  // TileIndex reports damage
    for (size_t i = 0; i < track.size(); ++i)
      if (const int64_t queue = line_of(Table::kDispatch, track[i]); queue >= 0) ++counts[{queue, counter[i]}];
  }
  for (const auto& [key, count] : counts) {
    const Line& queue = lines_[static_cast<size_t>(key.first)];
    Line line;
    line.parent = key.first;
    line.kind = LineKind::kCounter;
    line.name = trace.text(Table::kCounter, key.second, column::Counter::name);
    line.unit = trace.text(Table::kCounter, key.second, column::Counter::unit);
    line.device = queue.device;
    line.process = queue.process;
    line.rank = queue.rank;
    line.tables = bit(Table::kCounterValue);
    line.about = count;
    counter_line_.emplace(key, static_cast<int64_t>(lines_.size()));
    lines_.push_back(std::move(line));
  }
}

}  // namespace tacho::view
