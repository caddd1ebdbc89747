// Builds hierarchies of calls and samples and lays them out (timemory.h).
#include "format/timemory/timemory.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include "analysis/stacks/stacks.h"
#include "base/format.h"
#include "base/saturating.h"
#include "base/text/demangle.h"
#include "base/text/json_writer.h"
#include "format/shared/rocprof_words.h"
#include "report/table.h"
#include "walk/names.h"

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
  Row row;
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
    Row& row = nodes_[at].row;
    row.min = row.count == 0 ? value : std::min(row.min, value);
    row.max = row.count == 0 ? value : std::max(row.max, value);
    row.count += count;
    row.sum += value;
    row.sum_of_squares += value * value;
  }
  void inside(size_t at, double value) { nodes_[at].row.inside += value; }

  std::vector<Row> rows() {
    std::stable_sort(order_.begin(), order_.end(),
                     [&](size_t a, size_t b) { return nodes_[a].thread < nodes_[b].thread; });
    std::vector<Row> out;
    std::map<std::pair<int64_t, std::string>, size_t> flat;
    std::vector<size_t> stack(order_.rbegin(), order_.rend());
    while (!stack.empty()) {
      const Node& node = nodes_[stack.back()];
      stack.pop_back();
      for (size_t i = node.children.size(); i-- > 0;) stack.push_back(node.children[i]);
      if (node.depth > options_.max_depth || node.row.count == 0) continue;
      Row row = node.row;
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
      Row& sum = out[at->second];
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

std::string prefixed(const Row& row, const Options& options) {
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

Result<Component> wall_clock(const trace::Trace& trace, const Options& options) {
  Component component{"wall_clock",
                      "REAL-CLOCK TIMER (I.E. WALL-CLOCK TIMER)",
                      "Real-clock timer (i.e. wall-clock timer)",
                      options.time_unit,
                      1 / unit_seconds(options.time_unit).value_or(1),
                      true,
                      false,
                      {}};
  Forest forest(options);
  const Threads threads(trace);
  const auto cell = [&](Table table, int64_t row, int at) { return trace.cell(table, row, at); };
  const auto track_process = [&](int64_t track) { return cell(Table::kTrack, track, column::Track::process); };

  // Roots: a thread lasts from its first event to its last, the main thread as long as the program ran.
  struct Span {
    int64_t first = INT64_MAX, last = INT64_MIN;
  };
  std::map<int64_t, Span> spans;  // by thread row
  for (const Table table : {Table::kApi, Table::kMarker, Table::kSample}) {
    TACHO_ASSIGN(const auto summaries, trace.merged_summaries(table));
    for (const trace::Summary& summary : summaries) {
      const int64_t thread = cell(Table::kTrack, summary.track, column::Track::thread);
      if (track_process(summary.track) != options.process || thread == 0) continue;
      Span& span = spans[thread];
      span.first = std::min(span.first, summary.first);
      span.last = std::max(span.last, summary.last);
    }
  }
  std::string name(trace.text(Table::kProcess, options.process, column::Process::name));
  if (name.empty()) name = options.name;
  const int64_t pid = cell(Table::kProcess, options.process, column::Process::pid);
  double whole = 0;
  if (const auto launched = trace.property(Table::kEnd, 0, "pid");
      options.process == 0 || (launched && *launched == std::to_string(pid)))
    if (const auto seconds = trace.property(Table::kEnd, 0, "target_seconds"))
      whole = std::strtod(std::string(*seconds).c_str(), nullptr);
  std::unordered_map<int64_t, size_t> root_of;
  const auto root = [&](int64_t thread) {
    const auto [at, fresh] = root_of.try_emplace(thread, 0);
    if (fresh) {
      const int64_t index = threads.index(thread);
      at->second = forest.root(index, index == 0 ? name : "start_thread");
      const auto span = spans.find(thread);
      double seconds = span != spans.end() ? static_cast<double>(span->second.last - span->second.first) * 1e-9 : 0;
      if (index == 0 && whole > 0) seconds = whole;
      forest.add(at->second, seconds);
    }
    return at->second;
  };
  if (spans.empty()) forest.add(forest.root(0, name), whole);
  for (const auto& [thread, span] : spans) root(thread);

  struct Open {
    int64_t end;
    size_t node;
  };
  std::unordered_map<int64_t, std::vector<Open>> open;  // by track
  std::unordered_map<int64_t, size_t> calls;            // correlation -> node
  std::deque<int64_t> order;
  static constexpr int kColumns[] = {column::Fact::track, column::Fact::start, column::Fact::duration,
                                     column::Fact::dim, column::Fact::correlation};
  struct Source {
    Table table;
    std::unique_ptr<trace::TimeCursor> cursor;
    bool more;
  };
  std::vector<Source> sources;
  for (const Table table : {Table::kMarker, Table::kApi, Table::kDispatch, Table::kCopy, Table::kFill}) {
    if ((options.tables >> static_cast<unsigned>(table) & 1) == 0) continue;
    sources.push_back({table, std::make_unique<trace::TimeCursor>(trace, table, kColumns), false});
    sources.back().more = sources.back().cursor->next();
  }
  for (;;) {
    Source* next = nullptr;
    for (Source& source : sources)
      if (source.more && (next == nullptr || source.cursor->start() < next->cursor->start())) next = &source;
    if (next == nullptr) break;
    const auto row = next->cursor->row();
    const int64_t track = row[0], start = row[1], duration = row[2], dim = row[3], correlation = row[4];
    if (track_process(track) == options.process && duration != kUnknown) {
      const double seconds = static_cast<double>(duration) * 1e-9;
      if (next->table == Table::kMarker || next->table == Table::kApi) {
        const bool marker = next->table == Table::kMarker;
        const bool nests = !marker || cell(Table::kLabel, dim, column::Label::kind) ==
                                          static_cast<int64_t>(event::MarkerKind::kPushPop);
        const int64_t thread = cell(Table::kTrack, track, column::Track::thread);
        auto& stack = open[track];
        while (!stack.empty() && stack.back().end < start + duration) stack.pop_back();
        const size_t parent = stack.empty() || !nests ? root(thread) : stack.back().node;
        const std::string label(marker ? trace.text(Table::kLabel, dim, column::Label::name)
                                       : trace.text(Table::kFunction, dim, column::Function::name));
        const size_t at = forest.child(parent, label);
        forest.add(at, seconds);
        if (nests) {
          forest.inside(parent, seconds);
          stack.push_back({start + duration, at});
        }
        if (!marker && correlation != 0) {
          calls[correlation] = at;
          order.push_back(correlation);
          if (order.size() > 1'000'000) {
            calls.erase(order.front());
            order.pop_front();
          }
        }
      } else {
        std::string label =
            next->table == Table::kDispatch ? demangle(trace.text(Table::kKernel, dim, column::Kernel::name))
            : next->table == Table::kCopy
                ? std::string(copy_direction_name(cell(Table::kCopyShape, dim, column::CopyShape::direction)))
                : "MEMORY_FILL";
        const auto call = calls.find(correlation);
        const size_t parent = correlation != 0 && call != calls.end() ? call->second : forest.root(0, name);
        forest.add(forest.child(parent, label), seconds);
      }
    }
    next->more = next->cursor->next();
  }
  for (const Source& source : sources) TACHO_TRY(source.cursor->status());
  component.rows = forest.rows();
  return component;
}

Component trip_count(const Component& wall_clock) {
  Component component{
      "trip_count",   "COUNTS THE NUMBER OF INVOCATIONS", "Counts number of invocations", "", 1, false, true,
      wall_clock.rows};
  for (Row& row : component.rows) row.sum = static_cast<double>(row.count);
  return component;
}

Result<std::vector<Component>> sampled(const trace::Trace& trace, const Options& options) {
  analysis::StackOptions wanted;
  wanted.lines = false;
  wanted.threads = true;
  wanted.gpu = false;
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
  for (const Row& row : component.rows) {
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

void put_entry(JsonWriter& json, const Component& component, const Row& row, const Options& options, uint64_t rolling) {
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
  for (const Row& row : component.rows) threads = std::max(threads, row.thread + 1);
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
  for (const Row& row : component.rows) {
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
    for (const Row& row : component.rows) {
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
