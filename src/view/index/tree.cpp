// Lines from the rows of table track (tree.h).
#include "view/index/tree.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/operators/places.h"
#include "view/index/names.h"
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
  }
  return "group";
}

namespace {

struct RowsOfTrack {
  uint64_t tables = 0;
  int64_t events = 0, samples = 0, messages = 0;
};

// Which tables have rows on each row of table track, and about how many: a chunk's summary lists its tracks, and its
// rows are shared out evenly among them. TileIndex counts them.
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
        rows.tables |= uint64_t{1} << static_cast<unsigned>(table);
      }
    }
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

// Device and kind of work first, so that queues stay distinguishable in a narrow column: "GPU 0 stream 7", "GPU 0
// copies, stream 7".
void name_queues(std::vector<Line>& lines) {
  const auto bit = [](Table table) { return uint64_t{1} << static_cast<unsigned>(table); };
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

}  // namespace

Tree::Tree(const trace::Trace& trace) {
  if (trace.aggregated()) return;  // holds sums and nothing to draw
  const auto rows = rows_of_tracks(trace);
  const walk::Naming naming;
  const walk::Agents agents(trace, 0);
  const walk::Tracks tracks(trace, agents, naming);
  const analysis::DeviceNumbers devices(trace);
  line_.assign(rows.size(), -1);
  sample_line_.assign(rows.size(), -1);
  message_line_.assign(rows.size(), -1);
  std::vector<int64_t> readings(rows.size());
  {
    std::vector<int64_t> track;
    for (size_t chunk = 0; chunk < trace.chunks(Table::kReading).size(); ++chunk)
      if (trace.decode(Table::kReading, chunk, column::Reading::track, track))
        for (const int64_t each : track)
          if (each >= 0 && static_cast<size_t>(each) < readings.size()) ++readings[static_cast<size_t>(each)];
  }

  std::map<std::string, int64_t> hosts;
  std::set<std::string> host_names;
  const int64_t processes = std::max<int64_t>(trace.rows(Table::kProcess), 1);
  for (int64_t process = 1; process < processes; ++process)
    host_names.emplace(trace.text(Table::kProcess, process, column::Process::host));
  std::map<int64_t, int64_t> line_of_process;
  const auto process_line = [&](int64_t process) {
    const auto found = line_of_process.find(process);
    if (found != line_of_process.end()) return found->second;
    int64_t parent = -1;
    if (process != 0 && host_names.size() > 1) {
      const std::string host(trace.text(Table::kProcess, process, column::Process::host));
      const auto [at, fresh] = hosts.try_emplace(host, static_cast<int64_t>(lines_.size()));
      if (fresh) {
        Line machine;
        machine.kind = LineKind::kHost;
        machine.name = host.empty() ? "unnamed host" : host;
        lines_.push_back(std::move(machine));
      }
      parent = at->second;
    }
    Line line;
    line.parent = parent;
    line.process = process;
    if (process != 0) {
      line.rank = trace.cell(Table::kProcess, process, column::Process::rank);
      line.name = analysis::process_name(trace, process);
      if (line.name.empty()) line.name = "process";
      if (line.rank != kUnknown) line.name = fmt::format("rank {}: {}", line.rank, line.name);
      const int64_t pid = trace.cell(Table::kProcess, process, column::Process::pid);
      if (pid != kUnknown && pid > 0) line.name += fmt::format(" ({})", pid);
    } else {
      line.name = "machine";
    }
    const auto number = static_cast<int64_t>(lines_.size());
    lines_.push_back(std::move(line));
    line_of_process.emplace(process, number);
    return number;
  };

  // Processes with a rank come by rank, the others in the order of their rows; within one queues, threads, the rest.
  struct Found {
    int64_t track;
    int order;
  };
  std::vector<Found> found;
  for (size_t track = 0; track < rows.size(); ++track) {
    if (rows[track].events == 0 && rows[track].samples == 0 && rows[track].messages == 0 && readings[track] == 0)
      continue;
    const auto kind =
        event::from_cell<TrackKind>(trace.cell(Table::kTrack, static_cast<int64_t>(track), column::Track::kind));
    found.push_back({static_cast<int64_t>(track), kind == TrackKind::kQueue    ? 0
                                                  : readings[track] > 0        ? 4
                                                  : rows[track].events == 0    ? 2
                                                  : kind == TrackKind::kThread ? 1
                                                                               : 3});
  }
  const auto process_of = [&](int64_t track) { return trace.cell(Table::kTrack, track, column::Track::process); };
  const auto rank_of = [&](int64_t process) {
    const int64_t rank = process == 0 ? kUnknown : trace.cell(Table::kProcess, process, column::Process::rank);
    return rank == kUnknown ? std::numeric_limits<int64_t>::max() : rank;
  };
  // Counters of one kind by device: "GPU 2" before "GPU 10".
  const auto counted_device = [&](int64_t track) {
    const int64_t device = trace.cell(Table::kTrack, track, column::Track::device);
    std::string text = readings[static_cast<size_t>(track)] == 0 || device == 0 ? std::string() : devices.text(device);
    const size_t length = text.size();
    return std::pair(length, std::move(text));
  };
  std::stable_sort(found.begin(), found.end(), [&](const Found& a, const Found& b) {
    const int64_t p = process_of(a.track), q = process_of(b.track);
    if (p != q) {
      if ((p == 0) != (q == 0)) return q == 0;
      return rank_of(p) != rank_of(q) ? rank_of(p) < rank_of(q) : p < q;
    }
    if (a.order != b.order) return a.order < b.order;
    return counted_device(a.track) < counted_device(b.track);
  });
  std::map<std::array<int64_t, 6>, int64_t> queues;
  std::map<int64_t, int64_t> line_of_thread;
  for (const Found& each : found) {
    const int64_t track = each.track;
    const auto at = static_cast<size_t>(track);
    const auto kind = event::from_cell<TrackKind>(trace.cell(Table::kTrack, track, column::Track::kind));
    int64_t number = -1;
    if (kind == TrackKind::kQueue) {
      const auto [place, fresh] = queues.try_emplace(walk::queue_identity(trace, track, false), -1);
      if (!fresh) number = place->second;
      if (number < 0) {
        const int64_t device = trace.cell(Table::kTrack, track, column::Track::device);
        Line line;
        line.parent = process_line(process_of(track));
        line.kind = LineKind::kQueue;
        line.name = queue_name(trace, tracks, track);
        line.device = device == 0 ? std::string() : devices.text(device);
        line.device_number = devices.device(device);
        line.process = process_of(track);
        line.rank = lines_[static_cast<size_t>(line.parent)].rank;
        number = place->second = static_cast<int64_t>(lines_.size());
        lines_.push_back(std::move(line));
      }
    } else if (rows[at].events > 0 || readings[at] > 0) {
      Line line;
      line.parent = process_line(process_of(track));
      line.kind = readings[at] > 0             ? LineKind::kCounter
                  : kind == TrackKind::kThread ? LineKind::kThread
                  : kind == TrackKind::kMemory ? LineKind::kMemory
                                               : LineKind::kRange;
      line.name = line.kind == LineKind::kThread ? thread_name(trace, track) : tracks.name(track);
      line.process = process_of(track);
      line.rank = lines_[static_cast<size_t>(line.parent)].rank;
      if (readings[at] > 0) {
        const int64_t counter = trace.cell(Table::kTrack, track, column::Track::counter);
        line.unit = trace.text(Table::kCounter, counter, column::Counter::unit);
        const int64_t device = trace.cell(Table::kTrack, track, column::Track::device);
        if (device != 0) line.device = devices.text(device);
        line.name = counter_name(trace, tracks, track, line.device);
      }
      number = static_cast<int64_t>(lines_.size());
      lines_.push_back(std::move(line));
      if (kind == TrackKind::kThread)
        line_of_thread.try_emplace(trace.cell(Table::kTrack, track, column::Track::thread), number);
    }
    if (number >= 0) {
      line_[at] = number;
      Line& line = lines_[static_cast<size_t>(number)];
      line.about += rows[at].events + readings[at];
      line.tables |= rows[at].tables & ~(uint64_t{1} << static_cast<unsigned>(Table::kSample) |
                                         uint64_t{1} << static_cast<unsigned>(Table::kMessage));
      if (readings[at] > 0) line.tables |= uint64_t{1} << static_cast<unsigned>(Table::kReading);
    }
    if (rows[at].messages > 0) {
      // The messages of a rank, below the calls that sent and received them.
      Line line;
      line.parent = number >= 0 ? number : process_line(process_of(track));
      line.kind = LineKind::kMessage;
      line.process = process_of(track);
      line.rank = lines_[static_cast<size_t>(line.parent)].rank;
      line.name = line.rank != kUnknown ? fmt::format("messages of rank {}", line.rank) : "messages";
      line.tables = uint64_t{1} << static_cast<unsigned>(Table::kMessage);
      line.about = rows[at].messages;
      message_line_[at] = static_cast<int64_t>(lines_.size());
      lines_.push_back(std::move(line));
    }
    if (rows[at].samples > 0) {
      // Samples of a thread lie on a row of table track of their own; they belong below the thread's calls.
      if (const auto thread = line_of_thread.find(trace.cell(Table::kTrack, track, column::Track::thread));
          number < 0 && thread != line_of_thread.end())
        number = thread->second;
      Line line;
      line.parent = number >= 0 ? number : process_line(process_of(track));
      line.kind = LineKind::kSample;
      line.name = number >= 0 ? "samples" : tracks.name(track) + " samples";
      line.process = process_of(track);
      line.rank = lines_[static_cast<size_t>(line.parent)].rank;
      line.tables = uint64_t{1} << static_cast<unsigned>(Table::kSample);
      line.about = rows[at].samples;
      sample_line_[at] = static_cast<int64_t>(lines_.size());
      lines_.push_back(std::move(line));
    }
  }
  name_queues(lines_);
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
    line.tables = uint64_t{1} << static_cast<unsigned>(Table::kCounterValue);
    line.about = count;
    counter_line_.emplace(key, static_cast<int64_t>(lines_.size()));
    lines_.push_back(std::move(line));
  }
}

}  // namespace tacho::view
