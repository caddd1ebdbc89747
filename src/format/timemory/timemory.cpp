// Builds hierarchies of calls and samples and lays them out (timemory.h).
#include "format/timemory/timemory.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>

#include "analysis/stacks/stacks.h"
#include "base/format.h"
#include "base/saturating.h"
#include "base/text/demangle.h"
#include "base/text/json_writer.h"
#include "format/shared/rocprof_words.h"
#include "report/table.h"
#include "trace/read/rows.h"
#include "walk/calls/call_index.h"
#include "walk/merge.h"
#include "walk/names/names.h"
#include "walk/time/span.h"

namespace tacho::format::timemory {

using event::kUnknown;
using event::Table;
namespace column = event::column;
using walk::Threads;

namespace {

struct Node {
  std::string label;
  int64_t thread = 0;
  int depth = 0;
  TimemoryRow row;
  std::vector<size_t> children;
  std::map<std::string, size_t> by_label;
};

class Forest {
 public:
  explicit Forest(const Options& options) : options_(options) {}

  size_t root(int64_t thread, const std::string& label) {
    const int64_t place = options_.collapse_threads ? 0 : thread;
    const auto [at, fresh] = roots_.try_emplace({place, label}, nodes_.size());
    if (fresh) {
      nodes_.push_back({label, place, 0, {}, {}, {}});
      order_.push_back(at->second);
    }
    return at->second;
  }
  size_t child(size_t parent, const std::string& label) {
    if (!options_.timeline) {
      const auto known = nodes_[parent].by_label.find(label);
      if (known != nodes_[parent].by_label.end()) return known->second;
    }
    const size_t at = nodes_.size();
    nodes_.push_back({label, nodes_[parent].thread, nodes_[parent].depth + 1, {}, {}, {}});
    nodes_[parent].children.push_back(at);
    if (!options_.timeline) nodes_[parent].by_label.emplace(label, at);
    return at;
  }
  void add(size_t at, double value, int64_t count = 1) {
    TimemoryRow& row = nodes_[at].row;
    row.min = row.count == 0 ? value : std::min(row.min, value);
    row.max = row.count == 0 ? value : std::max(row.max, value);
    row.count += count;
    row.sum += value;
    row.sum_of_squares += value * value;
  }
  void inside(size_t at, double value) { nodes_[at].row.inside += value; }

  std::vector<TimemoryRow> rows() {
    std::stable_sort(order_.begin(), order_.end(),
                     [&](size_t a, size_t b) { return nodes_[a].thread < nodes_[b].thread; });
    std::vector<TimemoryRow> out;
    std::map<std::pair<int64_t, std::string>, size_t> flat;
    std::vector<size_t> stack(order_.rbegin(), order_.rend());
    while (!stack.empty()) {
      const Node& node = nodes_[stack.back()];
      stack.pop_back();
      for (size_t i = node.children.size(); i-- > 0;) stack.push_back(node.children[i]);
      if (node.depth > options_.max_depth || node.row.count == 0) continue;
      TimemoryRow row = node.row;
      row.label = node.label;
      row.thread = node.thread;
      row.depth = node.depth;
      if (!options_.flat) {
        out.push_back(std::move(row));
        continue;
      }
      row.depth = 0;
      const auto [at, fresh] = flat.try_emplace({row.thread, row.label}, out.size());
      if (fresh) {
        out.push_back(std::move(row));
        continue;
      }
      TimemoryRow& sum = out[at->second];
      sum.min = std::min(sum.min, row.min);
      sum.max = std::max(sum.max, row.max);
      sum.count += row.count;
      sum.sum += row.sum;
      sum.sum_of_squares += row.sum_of_squares;
      sum.inside += row.inside;
    }
    return out;
  }

 private:
  const Options& options_;
  std::vector<Node> nodes_;
  std::vector<size_t> order_;
  std::map<std::pair<int64_t, std::string>, size_t> roots_;
};

std::string number(double value, const Options& options) {
  return options.scientific ? fmt::format("{:.{}e}", value, options.precision)
                            : fmt::format("{:.{}f}", value, options.precision);
}

std::string prefixed(const TimemoryRow& row, const Options& options) {
  std::string label = fmt::format("|{:02}>>> ", row.thread);
  if (options.rank > 0) label = fmt::format("|{:02}|{:02}>>> ", options.rank, row.thread);
  if (row.depth > 0) label += std::string(static_cast<size_t>(row.depth - 1) * 2, ' ') + "|_";
  label += row.label;
  if (options.max_width > 4 && static_cast<int64_t>(label.size()) > options.max_width)
    label = label.substr(0, static_cast<size_t>(options.max_width) - 3) + "...";
  return label;
}

}  // namespace

std::optional<double> unit_seconds(std::string_view unit) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"sec", 1},   {"s", 1},       {"msec", 1e-3}, {"ms", 1e-3}, {"usec", 1e-6},
      {"us", 1e-6}, {"nsec", 1e-9}, {"ns", 1e-9},   {"min", 60},  {"hr", 3600}};
  for (const auto& [name, seconds] : kUnits)
    if (name == unit) return seconds;
  return std::nullopt;
}

namespace {

// Calls, ranges and device work of one process as a tree by thread: work is below the call that launched it.
class WallClock {
 public:
  WallClock(const trace::Trace& trace, const Options& options)
      : trace_(trace), options_(options), forest_(options), threads_(trace), calls_(trace.rows(Table::kApi)) {
    name_ = trace.text(Table::kProcess, options.process, column::Process::name);
    if (name_.empty()) name_ = options.name;
  }

  Result<std::vector<TimemoryRow>> rows() {
    TACHO_TRY(find_spans());
    if (spans_.empty()) forest_.add(forest_.root(0, name_), program_seconds());
    for (const auto& [thread, span] : spans_) root(thread);
    walk::Merge<FactCursor<M>, FactCursor<A>, FactCursor<D>, FactCursor<C>, FactCursor<L>> facts(trace_);
    while (facts.more()) facts.take([&](const auto& fact) { add(fact); });
    TACHO_TRY(facts.status());
    return forest_.rows();
  }

 private:
  using M = column::Marker;
  using A = column::Api;
  using D = column::Dispatch;
  using C = column::Copy;
  using L = column::Fill;
  template <typename Of>
  using FactCursor = trace::RowCursor<Of::track, Of::start, Of::duration, Of::dim, Of::correlation>;
  struct Open {
    int64_t end;
    size_t node;
  };

  int64_t process_of(int64_t track) const { return trace::cell<column::Track::process>(trace_, track); }

  // A thread lasts from its first event to its last.
  Status find_spans() {
    for (const Table table : {Table::kApi, Table::kMarker, Table::kSample}) {
      TACHO_ASSIGN(const auto summaries, trace_.merged_summaries(table));
      for (const trace::Summary& summary : summaries) {
        const int64_t thread = trace::cell<column::Track::thread>(trace_, summary.track);
        if (process_of(summary.track) != options_.process || thread == 0) continue;
        walk::Span& span = spans_.try_emplace(thread, walk::Span{summary.first, summary.last}).first->second;
        span.first = std::min(span.first, summary.first);
        span.last = std::max(span.last, summary.last);
      }
    }
    return {};
  }

  // How long the program ran, where this is its process; else 0.
  double program_seconds() const {
    const auto launched = trace_.property(Table::kEnd, 0, "pid");
    const int64_t pid = trace_.cell(Table::kProcess, options_.process, column::Process::pid);
    if (options_.process != 0 && (!launched || *launched != std::to_string(pid))) return 0;
    const auto seconds = trace_.property(Table::kEnd, 0, "target_seconds");
    return seconds ? std::strtod(std::string(*seconds).c_str(), nullptr) : 0;
  }

  // The root of a thread; the main thread's lasts as long as the program ran.
  size_t root(int64_t thread) {
    const auto [at, fresh] = roots_.try_emplace(thread, 0);
    if (fresh) {
      const int64_t index = threads_.index(thread);
      at->second = forest_.root(index, index == 0 ? name_ : "start_thread");
      const auto span = spans_.find(thread);
      const double whole = index == 0 ? program_seconds() : 0;
      const double seconds = span != spans_.end() ? static_cast<double>(span->second.length()) * 1e-9 : 0;
      forest_.add(at->second, whole > 0 ? whole : seconds);
    }
    return at->second;
  }

  template <typename Fact>
  void add(const Fact& fact) {
    const bool wanted = (options_.tables >> static_cast<unsigned>(Fact::kTable) & 1) != 0;
    if (!wanted || fact.duration == kUnknown || process_of(fact.track) != options_.process) return;
    const double seconds = static_cast<double>(fact.duration) * 1e-9;
    if constexpr (Fact::kTable == Table::kMarker || Fact::kTable == Table::kApi) {
      add_range(fact, seconds);
    } else {
      std::string label;
      if constexpr (Fact::kTable == Table::kDispatch)
        label = demangle(trace::text<column::Kernel::name>(trace_, fact.dim));
      else if constexpr (Fact::kTable == Table::kCopy)
        label = copy_direction_name(trace_.cell(Table::kCopyShape, fact.dim, column::CopyShape::direction));
      else
        label = "MEMORY_FILL";
      const size_t* const call = calls_.find(options_.process, fact.correlation);
      forest_.add(forest_.child(call != nullptr ? *call : forest_.root(0, name_), label), seconds);
    }
  }

  // A call or a marker's range: below what is open on its thread.
  template <typename Fact>
  void add_range(const Fact& fact, double seconds) {
    bool nests = true;
    std::string label;
    if constexpr (Fact::kTable == Table::kMarker) {
      nests = trace::cell<column::Label::kind>(trace_, fact.dim) == event::MarkerKind::kPushPop;
      label = trace::text<column::Label::name>(trace_, fact.dim);
    } else {
      label = trace::text<column::Function::name>(trace_, fact.dim);
    }
    auto& stack = open_[fact.track];
    while (!stack.empty() && stack.back().end < fact.start + fact.duration) stack.pop_back();
    const size_t parent =
        stack.empty() || !nests ? root(trace::cell<column::Track::thread>(trace_, fact.track)) : stack.back().node;
    const size_t at = forest_.child(parent, label);
    forest_.add(at, seconds);
    if (nests) {
      forest_.inside(parent, seconds);
      stack.push_back({fact.start + fact.duration, at});
    }
    if constexpr (Fact::kTable == Table::kApi) calls_.add(options_.process, fact.correlation, at);
  }

  const trace::Trace& trace_;
  const Options& options_;
  Forest forest_;
  const Threads threads_;
  std::string name_;
  std::map<int64_t, walk::Span> spans_;  // by thread row
  std::unordered_map<int64_t, size_t> roots_;
  std::unordered_map<int64_t, std::vector<Open>> open_;  // by track
  walk::CallIndex<size_t> calls_;                        // -> node
};

}  // namespace

Result<Component> wall_clock(const trace::Trace& trace, const Options& options) {
  TACHO_ASSIGN(std::vector<TimemoryRow> rows, WallClock(trace, options).rows());
  return Component{"wall_clock",
                   "REAL-CLOCK TIMER (I.E. WALL-CLOCK TIMER)",
                   "Real-clock timer (i.e. wall-clock timer)",
                   options.time_unit,
                   1 / unit_seconds(options.time_unit).value_or(1),
                   true,
                   false,
                   std::move(rows)};
}

Component trip_count(const Component& wall_clock) {
  Component component{
      "trip_count",   "COUNTS THE NUMBER OF INVOCATIONS", "Counts number of invocations", "", 1, false, true,
      wall_clock.rows};
  for (TimemoryRow& row : component.rows) row.sum = static_cast<double>(row.count);
  return component;
}

Result<std::vector<Component>> sampled(const trace::Trace& trace, const Options& options) {
  analysis::StackOptions wanted;
  wanted.lines = false;
  wanted.threads = true;
  wanted.gpu = false;
  wanted.recorded = false;
  wanted.startup = true;
  wanted.process = options.process;
  TACHO_ASSIGN(const analysis::StackTree tree, analysis::stack_tree(trace, wanted));
  std::vector<Component> components;
  if (tree.samples == 0) return components;
  // The threads' numbers, by tid.
  const Threads threads(trace);
  std::unordered_map<std::string, int64_t> index_of;
  for (int64_t row = 1; row < trace.rows(Table::kThread); ++row)
    if (trace.cell(Table::kThread, row, column::Thread::process) == options.process)
      index_of[std::to_string(trace.cell(Table::kThread, row, column::Thread::tid))] = threads.index(row);
  // Inclusive times: a node includes everything below it.
  std::vector<int64_t> total(tree.nodes.size()), samples(tree.nodes.size());
  for (size_t i = tree.nodes.size(); i-- > 1;) {
    add_saturating(total[i], tree.nodes[i].host_ns);
    samples[i] += tree.nodes[i].samples;
    add_saturating(total[tree.nodes[i].parent], total[i]);
    samples[tree.nodes[i].parent] += samples[i];
  }
  Component time{tree.wall ? "sampling_wall_clock" : "sampling_cpu_clock",
                 tree.wall ? "WALL-CLOCK TIME BY STATISTICAL SAMPLING" : "CPU-CLOCK TIME BY STATISTICAL SAMPLING",
                 "Time of sampled call stacks",
                 options.time_unit,
                 1 / unit_seconds(options.time_unit).value_or(1),
                 false,
                 false,
                 {}};
  Component percent{
      "sampling_percent", "FRACTION OF SAMPLES (BY TIME)", "Share of sampled time", "%", 1, false, false, {}};
  Forest times(options), shares(options);
  std::vector<std::pair<size_t, size_t>> place(tree.nodes.size());
  std::vector<int64_t> thread_total(tree.nodes.size());
  for (size_t i = 1; i < tree.nodes.size(); ++i) {
    const analysis::StackNode& node = tree.nodes[i];
    const analysis::StackFrame& frame = tree.frames[node.frame];
    if (frame.part == analysis::StackPart::kThread) {
      thread_total[i] = total[i];
      place[i] = {SIZE_MAX, static_cast<size_t>(index_of[frame.name.substr(frame.name.rfind(' ') + 1)])};
      continue;
    }
    thread_total[i] = thread_total[node.parent];
    const std::string label = frame.name;
    const double seconds = static_cast<double>(total[i]) * 1e-9;
    const double share =
        thread_total[i] > 0 ? 100.0 * static_cast<double>(total[i]) / static_cast<double>(thread_total[i]) : 0;
    if (place[node.parent].first == SIZE_MAX) {
      const auto index = static_cast<int64_t>(place[node.parent].second);
      place[i] = {times.root(index, label), shares.root(index, label)};
    } else {
      place[i] = {times.child(place[node.parent].first, label), shares.child(place[node.parent].second, label)};
      times.inside(place[node.parent].first, seconds);
      shares.inside(place[node.parent].second, share);
    }
    times.add(place[i].first, seconds, samples[i]);
    shares.add(place[i].second, share, samples[i]);
  }
  time.rows = times.rows();
  percent.rows = shares.rows();
  components.push_back(std::move(time));
  components.push_back(std::move(percent));
  return components;
}

std::string to_text(const Component& component, const Options& options) {
  std::vector<std::string> titles = {"LABEL", "COUNT", "DEPTH", "METRIC"};
  if (component.counts_only) {
    titles.push_back("SUM");
  } else {
    titles.insert(titles.end(), {"UNITS", "SUM", "MEAN"});
    if (component.statistics) titles.insert(titles.end(), {"MIN", "MAX", "VAR", "STDDEV"});
    titles.push_back("% SELF");
  }
  std::vector<std::vector<std::string>> lines;
  for (const TimemoryRow& row : component.rows) {
    std::vector<std::string> line = {prefixed(row, options), std::to_string(row.count), std::to_string(row.depth),
                                     component.name};
    const auto n = static_cast<double>(row.count), sum = row.sum * component.scale;
    if (component.counts_only) {
      line.push_back(fmt::format("{:.0f}", sum));
    } else {
      line.push_back(component.unit);
      line.push_back(number(sum, options));
      line.push_back(number(n > 0 ? sum / n : 0, options));
      if (component.statistics) {
        const double squares = row.sum_of_squares * component.scale * component.scale;
        const double variance = n > 1 ? std::max(0.0, (squares - sum * sum / n) / (n - 1)) : 0;
        line.push_back(number(row.min * component.scale, options));
        line.push_back(number(row.max * component.scale, options));
        line.push_back(number(variance, options));
        line.push_back(number(std::sqrt(variance), options));
      }
      line.push_back(
          fmt::format("{:.1f}", row.sum > 0 ? std::clamp(100 * (row.sum - row.inside) / row.sum, 0.0, 100.0) : 100.0));
    }
    lines.push_back(std::move(line));
  }
  std::vector<size_t> widths;
  for (size_t i = 0; i < titles.size(); ++i) {
    size_t width = titles[i].size();
    for (const auto& line : lines) width = std::max(width, report::display_width(line[i]));
    widths.push_back(width);
  }
  size_t inner = titles.size() - 1;
  for (const size_t width : widths) inner += width + 2;
  const auto centred = [](const std::string& text, size_t width) {
    const size_t room = width > text.size() ? width - text.size() : 0;
    return std::string(room / 2, ' ') + text + std::string(room - room / 2, ' ');
  };
  const std::string rule = "|" + std::string(inner, '-') + "|\n";
  std::string out = rule + "|" + centred(component.title, inner) + "|\n" + rule + "|";
  for (size_t i = 0; i < titles.size(); ++i) out += " " + centred(titles[i], widths[i]) + " |";
  out += "\n|";
  for (size_t i = 0; i < titles.size(); ++i) out += std::string(widths[i] + 2, '-') + "|";
  out += "\n";
  for (const auto& line : lines) {
    out += "|";
    for (size_t i = 0; i < line.size(); ++i)
      out += " " +
             (i == 0 || titles[i] == "METRIC" || titles[i] == "UNITS" ? report::padded_right(line[i], widths[i])
                                                                      : report::padded_left(line[i], widths[i])) +
             " |";
    out += "\n";
  }
  return out + rule;
}

namespace {

uint64_t hash_of(std::string_view text, uint64_t seed) {
  uint64_t hash = seed ^ 14695981039346656037ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

void put_entry(JsonWriter& json, const Component& component, const TimemoryRow& row, const Options& options,
               uint64_t rolling) {
  const auto n = static_cast<double>(row.count), sum = row.sum * component.scale;
  json.begin_object();
  json.key("hash").value(std::to_string(hash_of(row.label, 0)));
  json.key("prefix").value(prefixed(row, options));
  json.key("depth").value(row.depth);
  json.key("entry").begin_object();
  json.key("laps")
      .value(row.count)
      .key("value")
      .value(sum)
      .key("accum")
      .value(sum)
      .key("repr_data")
      .value(sum)
      .key("repr_display")
      .value(sum);
  json.end_object();
  if (component.statistics) {
    const double squares = row.sum_of_squares * component.scale * component.scale;
    const double variance = n > 1 ? std::max(0.0, (squares - sum * sum / n) / (n - 1)) : 0;
    json.key("stats").begin_object();
    json.key("sum")
        .value(sum)
        .key("count")
        .value(row.count)
        .key("min")
        .value(row.min * component.scale)
        .key("max")
        .value(row.max * component.scale);
    json.key("sqr").value(squares).key("mean").value(n > 0 ? sum / n : 0.0).key("stddev").value(std::sqrt(variance));
    json.end_object();
  }
  json.key("rolling_hash").value(std::to_string(rolling));
  json.end_object();
}

}  // namespace

std::string to_json(const Component& component, const Options& options) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("timemory").begin_object().key(component.name).begin_object();
  json.key("properties").begin_object().key("value").value(component.name).key("id").value(component.name).end_object();
  json.key("type").value(component.name).key("description").value(component.description);
  json.key("unit_value").value(component.counts_only || component.unit == "%" ? 1.0 : 1e9 / component.scale);
  json.key("unit_repr").value(component.unit);
  int64_t threads = 1;
  for (const TimemoryRow& row : component.rows) threads = std::max(threads, row.thread + 1);
  json.key("thread_count")
      .value(threads)
      .key("mpi_size")
      .value(1)
      .key("num_ranks")
      .value(1)
      .key("concurrency")
      .value(1);
  json.key("ranks").begin_array().begin_object();
  json.key("rank").value(options.rank).key("graph_size").value(component.rows.size());
  json.key("graph").begin_array();
  std::vector<uint64_t> path;
  for (const TimemoryRow& row : component.rows) {
    path.resize(std::min(path.size(), static_cast<size_t>(row.depth)));
    path.push_back(hash_of(row.label, path.empty() ? 0 : path.back()));
    json.newline();
    put_entry(json, component, row, options, path.back());
  }
  json.end_array().end_object().end_array();
  if (options.tree) {
    // The same data as a hierarchy: {node, children}.
    json.newline().key("graph").begin_array().begin_array();
    int depth = -1;
    std::vector<uint64_t> rolling;
    for (const TimemoryRow& row : component.rows) {
      // A level is missing if nothing was counted there; the hierarchy uses the levels that exist.
      const int level = std::min(row.depth, depth + 1);
      for (; depth >= level; --depth) json.end_array().end_object();
      depth = level;
      rolling.resize(std::min(rolling.size(), static_cast<size_t>(row.depth)));
      rolling.push_back(hash_of(row.label, rolling.empty() ? 0 : rolling.back()));
      json.begin_object().key("node");
      put_entry(json, component, row, options, rolling.back());
      json.key("children").begin_array();
    }
    for (; depth >= 0; --depth) json.end_array().end_object();
    json.end_array().end_array();
  }
  json.end_object().end_object().end_object();
  out += "\n";
  return out;
}

}  // namespace tacho::format::timemory
