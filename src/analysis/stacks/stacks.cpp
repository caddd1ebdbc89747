// Summing up call stacks, and finding the stack of a launch (stacks.h).
#include "analysis/stacks/stacks.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "analysis/host/host_kind.h"
#include "analysis/operators/graph_nodes.h"
#include "analysis/pair_hash.h"
#include "analysis/stacks/frame_index.h"
#include "base/format.h"
#include "base/saturating.h"
#include "base/text/demangle.h"
#include "base/text/json_writer.h"
#include "base/text/utf8.h"
#include "trace/read/operator_causes.h"
#include "trace/read/rows.h"
#include "walk/calls/call_index.h"
#include "walk/calls/open_ranges.h"
#include "walk/merge.h"
#include "walk/names/program_ranges.h"
#include "walk/work.h"

namespace tacho::analysis {

using event::kUnknown;
using event::Table;
namespace column = event::column;

std::string_view to_string(StackPart part) {
  static constexpr std::string_view kNames[] = {"root",   "process", "thread", "native",  "python", "truncated",
                                                "marker", "api",     "device", "unknown", "folded"};
  return kNames[static_cast<size_t>(part)];
}

namespace {

// PyTorch's emit_nvtx appends numbers to an operator's name, another in every call: "aten::mm, seq = 7, op_id = 31".
std::string_view operator_name(std::string_view text) {
  for (const std::string_view counter : {", seq = ", ", op_id = ", ", sizes = "})
    text = text.substr(0, text.find(counter));
  return text;
}

std::string_view base_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

bool is_interpreter(std::string_view module) {
  module = base_name(module);
  if (module.starts_with("lib")) module.remove_prefix(3);
  if (!module.starts_with("python")) return false;
  module.remove_prefix(6);
  return module.empty() || (module[0] >= '0' && module[0] <= '9');
}

namespace {

// Modules by their base name: a cache has the same kernel under one path for each way in which it was built.
FrameIdentity identity_of(const StackFrame& frame) {
  return {static_cast<uint8_t>(frame.part), frame.name, frame.file, base_name(frame.module), frame.line};
}
FrameIdentity function_identity_of(const StackFrame& frame) {
  return {static_cast<uint8_t>(frame.part), frame.name, frame.file, base_name(frame.module), 0};
}

// A launch without a stack of its own takes that of the nearest sample of its thread, at most this many periods away.
constexpr int64_t kNearestPeriods = 2;

class Builder {
 public:
  Builder(const trace::Trace& trace, const StackOptions& options)
      : trace_(trace),
        options_(options),
        calls_(options.gpu ? trace.rows(Table::kApi) : 0),
        caused_by_operators_(trace::caused_by_operators(trace)) {
    tree_.frames.push_back({StackPart::kRoot, "all", "", 0, ""});
    tree_.nodes.push_back({});
  }

  Result<StackTree> run() {
    TACHO_TRY(count_processes());
    TACHO_TRY(place_complete_stacks());
    TACHO_TRY(read_samples());
    if (given_up(0)) return fail("given up");
    if (options_.gpu) TACHO_TRY(read_device_work());
    if (options_.host && options_.recorded && trace_.rows(Table::kSample) == 0) TACHO_TRY(read_recorded());
    return std::move(tree_);
  }

 private:
  using S = column::Sample;
  struct Moment {
    int64_t time, stack;
  };
  struct Call {
    uint32_t node = 0;
    enum : uint8_t { kExact, kNear, kNone } how = kNone;
    bool wanted = false;
  };

  bool given_up(double done) const { return options_.given_up && options_.given_up(done); }
  int64_t cell(Table table, int64_t row, int at) const { return trace_.cell(table, row, at); }
  bool wants_track(int64_t track) const {
    return (!options_.process || cell(Table::kTrack, track, column::Track::process) == *options_.process) &&
           (!options_.thread || cell(Table::kTrack, track, column::Track::thread) == *options_.thread);
  }

  uint32_t frame(StackPart part, std::string_view name, std::string_view file = {}, int64_t line = 0,
                 std::string_view module = {}) {
    FrameIdentity sought{static_cast<uint8_t>(part), name, file, base_name(module), line};
    const auto next = static_cast<uint32_t>(tree_.frames.size());
    if (const uint32_t known = frame_of_.find_or_add(sought, next); known != NumberSet::kNone) return known;
    if (any_cut_) {
      sought.line = 0;
      const uint32_t function = function_of_.find_or_add(sought, next);
      functions_.push_back(function == NumberSet::kNone ? next : function);
    }
    tree_.frames.push_back({part, std::string(name), std::string(file), line, std::string(module),
                            part == StackPart::kNative && is_interpreter(module)});
    return next;
  }

  uint32_t child(uint32_t parent, uint32_t frame) {
    const auto next = static_cast<uint32_t>(tree_.nodes.size());
    const uint32_t known = child_of_.find_or_add(
        hash_of_pair(parent, frame), next,
        [&](uint32_t node) { return hash_of_pair(tree_.nodes[node].parent, tree_.nodes[node].frame); },
        [&](uint32_t node) { return tree_.nodes[node].parent == parent && tree_.nodes[node].frame == frame; });
    if (known != NumberSet::kNone) return known;
    tree_.nodes.push_back({parent, frame, 0, 0, 0, 0});
    return next;
  }

  uint32_t frame_of_row(int64_t row) {
    const auto [at, fresh] = frame_rows_.try_emplace(row, 0);
    if (!fresh) return at->second;
    const auto text = [&](int index) { return trace_.text(Table::kFrame, row, index); };
    const auto kind = static_cast<event::FrameKind>(cell(Table::kFrame, row, column::Frame::kind));
    const int64_t line = cell(Table::kFrame, row, column::Frame::line),
                  address = cell(Table::kFrame, row, column::Frame::address);
    std::string name(text(column::Frame::function));
    const bool python = kind == event::FrameKind::kPython;
    const std::string_view module = text(column::Frame::module);
    if (name.empty()) {
      const std::string_view base = base_name(module);
      if (python)
        name = "?";
      else
        name = base.empty() ? fmt::format("{:#x}", address) : fmt::format("[{}]", base);
    }
    const StackPart part = kind == event::FrameKind::kTruncated ? StackPart::kTruncated
                           : kind == event::FrameKind::kUnknown ? StackPart::kUnknown
                           : python                             ? StackPart::kPython
                                                                : StackPart::kNative;
    at->second =
        frame(part, name, text(column::Frame::file), options_.lines && line != kUnknown && line > 0 ? line : 0, module);
    return at->second;
  }

  // The level above a thread's stacks.
  uint32_t root_of(int64_t track) {
    const auto [at, fresh] = root_of_.try_emplace(track, 0);
    if (!fresh) return at->second;
    const int64_t process = cell(Table::kTrack, track, column::Track::process),
                  thread = cell(Table::kTrack, track, column::Track::thread);
    uint32_t node = process_root(process);
    if (options_.threads && thread != 0) {
      const std::string_view name = trace_.text(Table::kThread, thread, column::Thread::name);
      node = child(node, frame(StackPart::kThread, fmt::format("{} {}", name.empty() ? "thread" : name,
                                                               cell(Table::kThread, thread, column::Thread::tid))));
    }
    at->second = node;
    return node;
  }

  // Node of a stack (row) below a thread's root.
  uint32_t node_of(int64_t track, int64_t stack) {
    const uint32_t root = root_of(track);
    const auto next = static_cast<uint32_t>(stacks_.size());
    const uint32_t known = stack_of_.find_or_add(
        PairHash()(std::pair(static_cast<int64_t>(root), stack)), next,
        [&](uint32_t i) { return PairHash()(std::pair(static_cast<int64_t>(stacks_[i].root), stacks_[i].stack)); },
        [&](uint32_t i) { return stacks_[i].root == root && stacks_[i].stack == stack; });
    if (known != NumberSet::kNone) return stacks_[known].node;
    stacks_.push_back({stack, root, 0});
    fold(stack);
    uint32_t node = root;
    if (!line_.empty() && tree_.frames[line_.back()].part == StackPart::kTruncated)
      if (const uint32_t outer = place_of_cut(root); outer != kNowhere) {
        node = outer;
        line_.pop_back();
      }
    for (size_t i = line_.size(); i-- > 0;) node = child(node, line_[i]);
    stacks_[next].node = node;
    return node;
  }

  // Puts the frames of a stack (row) that are shown into line_, innermost first.
  void fold(int64_t stack) {
    line_.clear();
    size_t last_python = 0;  // one past the outermost Python frame, counted from the innermost
    for (int64_t row = stack; row > 0 && line_.size() < 4096; row = cell(Table::kStack, row, column::Stack::parent)) {
      const uint32_t next = frame_of_row(cell(Table::kStack, row, column::Stack::frame));
      // Merge functions without a name that call each other: a reader could not tell them apart.
      if (!line_.empty() && line_.back() == next && tree_.frames[next].name.starts_with("[")) continue;
      line_.push_back(next);
      if (tree_.frames[line_.back()].part == StackPart::kPython) last_python = line_.size();
    }
    if (last_python != 0 && last_python < line_.size() && !options_.startup) {
      // That more was there and is cut is not startup.
      const uint32_t outermost = line_.back();
      line_.resize(last_python);
      if (tree_.frames[outermost].part == StackPart::kTruncated) line_.push_back(outermost);
    }
  }

  // Stacks that were cut

  // Where line_, whose outermost frame says that the stack was cut, goes on below stacks that were not: the node above
  // the place at which most of its frames, from the outermost on, are found, lines aside. kNowhere: at none, at several
  // alike, or the stack was cut within a recursion, whose depth nobody knows.
  uint32_t place_of_cut(uint32_t root) const {
    if (line_.size() < 2) return kNowhere;
    const size_t outermost = line_.size() - 2;
    for (size_t i = 0; i < outermost; ++i)
      if (functions_[line_[i]] == functions_[line_[outermost]]) return kNowhere;
    const auto found = places_.find({static_cast<int64_t>(root), functions_[line_[outermost]]});
    if (found == places_.end()) return kNowhere;
    Match best;
    uint32_t place = kNowhere;
    for (const uint32_t candidate : found->second) {
      const Match match = match_from(candidate, outermost);
      if (place != kNowhere && !(best < match)) {
        if (!(match < best)) place = kSeveral;
        continue;
      }
      best = match;
      place = tree_.nodes[candidate].parent;
    }
    return place == kSeveral ? kNowhere : place;
  }

  // How well line_[at] and what is further in agree with a node and what is below it.
  struct Match {
    size_t functions = 0, lines = 0;
    bool operator<(const Match& other) const {
      return functions != other.functions ? functions < other.functions : lines < other.lines;
    }
  };
  Match match_from(uint32_t node, size_t at) const {
    Match best;
    if (at > 0)
      for (const uint32_t below : children_[node])
        if (functions_[tree_.nodes[below].frame] == functions_[line_[at - 1]])
          best = std::max(best, match_from(below, at - 1));
    return {best.functions + 1, best.lines + (tree_.nodes[node].frame == line_[at] ? 1 : 0)};
  }

  // Makes the nodes of all stacks that were not cut, so that cut ones find their place among them.
  Status place_complete_stacks() {
    for (int64_t row = 1; row < trace_.rows(Table::kFrame) && !any_cut_; ++row)
      any_cut_ = cell(Table::kFrame, row, column::Frame::kind) == static_cast<int64_t>(event::FrameKind::kTruncated);
    if (!any_cut_) return {};
    Status status;
    for (const auto& samples : trace::chunks<S::track, S::dim>(trace_, status))
      for (size_t i = 0; i < samples.size(); ++i)
        if (wants_track(samples.track[i]) && !is_cut(samples.dim[i])) node_of(samples.track[i], samples.dim[i]);
    TACHO_TRY(status);
    std::unordered_set<uint32_t> roots;
    for (const auto& [track, root] : root_of_) roots.insert(root);
    std::vector<uint32_t> top(tree_.nodes.size(), 0);
    children_.resize(tree_.nodes.size());
    for (uint32_t node = 1; node < tree_.nodes.size(); ++node) {
      const uint32_t parent = tree_.nodes[node].parent;
      if (roots.contains(node)) {
        top[node] = node;
        continue;
      }
      top[node] = top[parent];
      children_[parent].push_back(node);
      places_[{static_cast<int64_t>(top[node]), functions_[tree_.nodes[node].frame]}].push_back(node);
    }
    return {};
  }

  bool is_cut(int64_t stack) {
    const auto [at, fresh] = cut_.try_emplace(stack, false);
    if (!fresh) return at->second;
    int64_t row = stack;
    for (int64_t parent; (parent = cell(Table::kStack, row, column::Stack::parent)) > 0;) row = parent;
    const int64_t frame = cell(Table::kStack, row, column::Stack::frame);
    at->second = cell(Table::kFrame, frame, column::Frame::kind) == static_cast<int64_t>(event::FrameKind::kTruncated);
    return at->second;
  }

  // Samples

  Status count_processes() {
    // How many processes there are decides whether they get a level of their own.
    std::unordered_set<int64_t> processes;
    TACHO_ASSIGN(const auto summaries, trace_.merged_summaries(Table::kSample));
    for (const trace::Summary& summary : summaries)
      if (wants_track(summary.track)) processes.insert(cell(Table::kTrack, summary.track, column::Track::process));
    several_processes_ = processes.size() > 1;
    return {};
  }

  // Not CPU time of which nobody knows where it was spent.
  bool is_moment(int64_t stack) const {
    return cell(Table::kFrame, cell(Table::kStack, stack, column::Stack::frame), column::Frame::kind) !=
           static_cast<int64_t>(event::FrameKind::kUnknown);
  }

  // The time that a sample usually stands for.
  int64_t usual_period() {
    if (durations_.empty()) return 0;
    const auto middle = durations_.begin() + static_cast<ptrdiff_t>((durations_.size() - 1) / 2);
    std::nth_element(durations_.begin(), middle, durations_.end());
    const int64_t period = *middle;
    durations_ = {};
    return period;
  }

  Status read_samples() {
    Status status;
    for (const auto& samples : trace::chunks<S::track, S::start, S::duration, S::dim, S::correlation>(trace_, status)) {
      for (size_t i = 0; i < samples.size(); ++i)
        if (wants_track(samples.track[i]))
          add_sample(samples.track[i], samples.start[i], samples.duration[i], samples.dim[i], samples.correlation[i]);
      if (given_up(0)) break;
    }
    period_ = usual_period();
    return status;
  }

  void add_sample(int64_t track, int64_t time, int64_t duration, int64_t stack, int64_t correlation) {
    if (options_.gpu) {
      // The stack that was read at the launch says who launched; that of a timer that struck within the call may be a
      // helper's, which knows nothing of the Python thread it works for.
      if (correlation != 0) {
        const std::pair call(trace::cell<column::Track::process>(trace_, track), correlation);
        if (duration == 0)
          exact_.insert_or_assign(call, stack);
        else
          exact_.try_emplace(call, stack);
      }
      if (duration != 0 && is_moment(stack)) {
        moments_[trace::cell<column::Track::thread>(trace_, track)].push_back({time, stack});
        if (duration > 0) durations_.push_back(duration);
      }
    }
    // A stack that was read at a launch stands for no time.
    if (duration <= 0 || duration == kUnknown || !options_.host || time < options_.from || time >= options_.to) return;
    StackNode& node = tree_.nodes[node_of(track, stack)];
    add_saturating(node.host_ns, duration);
    ++node.samples;
    add_saturating(tree_.host_ns, duration);
    ++tree_.samples;
    (trace::text<column::Track::category>(trace_, track) == "sample.wall" ? tree_.wall : tree_.cpu) = true;
  }

  // Device work

  // A range, an operator of a framework or a function of Python that is open on a thread: a row of table label or
  // function.
  struct Open {
    int64_t row;
    enum : uint8_t { kMarker, kOperator, kPython, kCall } what;
  };

  // "torch/nn/modules/linear.py(114): forward", as torch.profiler writes it, says where it is.
  uint32_t python_frame(std::string_view text) {
    const size_t close = text.find("): "), open = text.rfind('(', close);
    int64_t line = 0;
    if (close == std::string_view::npos || open == std::string_view::npos ||
        std::from_chars(text.data() + open + 1, text.data() + close, line).ptr != text.data() + close)
      return frame(StackPart::kPython, text);
    return frame(StackPart::kPython, text.substr(close + 3), text.substr(0, open), options_.lines ? line : 0);
  }

  uint32_t frame_of_open(const Open& open) {
    if (open.what == Open::kMarker)
      return frame(StackPart::kMarker, operator_name(trace_.text(Table::kLabel, open.row, column::Label::name)));
    const std::string_view name = trace_.text(Table::kFunction, open.row, column::Function::name);
    return open.what == Open::kPython ? python_frame(name) : frame(StackPart::kMarker, name);
  }

  // `time`: when the ranges around the call are looked at. `function`: 0 = the innermost range is the cause itself.
  uint32_t launch_node(int64_t track, int64_t start, int64_t time, int64_t process, int64_t correlation,
                       int64_t function, Call& call) {
    const int64_t thread = cell(Table::kTrack, track, column::Track::thread);
    uint32_t node;
    call.how = Call::kNone;
    int64_t stack = 0;
    if (const auto known = exact_.find(std::pair(process, correlation)); correlation != 0 && known != exact_.end()) {
      stack = known->second;
      call.how = Call::kExact;
    } else if (const auto samples = moments_.find(thread); samples != moments_.end()) {
      const auto& list = samples->second;
      const auto after = std::lower_bound(list.begin(), list.end(), start,
                                          [](const Moment& moment, int64_t time) { return moment.time < time; });
      int64_t distance = period_ * kNearestPeriods;
      if (after != list.end() && after->time - start < distance) {
        distance = after->time - start;
        stack = after->stack;
        call.how = Call::kNear;
      }
      if (after != list.begin() && start - (after - 1)->time < distance) {
        stack = (after - 1)->stack;
        call.how = Call::kNear;
      }
    }
    const auto& open = open_.at(track, time);
    const bool python = call.how == Call::kNone && std::any_of(open.begin(), open.end(), [](const auto& each) {
                          return each.value.what == Open::kPython;
                        });
    node = call.how != Call::kNone ? node_of(track, stack)
           : python                ? root_of(track)
                                   : child(root_of(track), frame(StackPart::kUnknown, "[no call stack]"));
    if (python) call.how = Call::kExact;
    for (const auto& each : open)
      // A stack that was read holds the functions of Python already.
      if (each.value.what != Open::kPython || python) node = child(node, frame_of_open(each.value));
    if (function == 0) return node;
    return child(node, frame(StackPart::kApi, trace_.text(Table::kFunction, function, column::Function::name)));
  }

  // Nodes of CUDA graphs: a kernel belongs to the call that was captured, not to the one that launches the graph

  struct Newest {  // the call that a thread made last
    int64_t track, start, end, process, correlation, function;
  };
  struct Captured {
    uint32_t node;
    int how;
  };

  GraphMark mark_of(int64_t label) {
    const auto at = static_cast<size_t>(label);
    if (marks_.size() <= at) marks_.resize(at + 1, kUnread);
    if (marks_[at] == kUnread) marks_[at] = static_cast<uint8_t>(graph_mark(trace_, label));
    return static_cast<GraphMark>(marks_[at]);
  }

  void node_mark(GraphMark mark, int64_t track, int64_t time, int64_t node) {
    const int64_t process = cell(Table::kTrack, track, column::Track::process);
    if (mark == GraphMark::kCopy) return graph_nodes_.copy(track, node);
    if (mark == GraphMark::kOrigin) return graph_nodes_.origin(track, process, node);
    const auto found = newest_.find(cell(Table::kTrack, track, column::Track::thread));
    if (found == newest_.end() || found->second.process != process || found->second.end < time) return;
    const Newest& call = found->second;
    Call place{};
    const uint32_t launch = launch_node(call.track, call.start, time, process, call.correlation, call.function, place);
    const std::string name =
        fmt::format("{} (captured in a graph)", trace_.text(Table::kFunction, call.function, column::Function::name));
    graph_nodes_.made(process, node, {child(tree_.nodes[launch].parent, frame(StackPart::kApi, name)), place.how});
  }

  std::string device_name(Table table, int64_t dim) const {
    switch (table) {
      case Table::kDispatch:
        return demangle(trace_.text(Table::kKernel, dim, column::Kernel::name));
      case Table::kCopy:
        return fmt::format("copy {}", event::to_string(static_cast<event::CopyDirection>(
                                          cell(Table::kCopyShape, dim, column::CopyShape::direction))));
      default:
        return "fill";
    }
  }

  Status read_device_work() {
    for (auto& [thread, list] : moments_)
      std::sort(list.begin(), list.end(), [](const Moment& a, const Moment& b) { return a.time < b.time; });
    Host host(trace_);
    walk::WorkCursor work(trace_);
    const int64_t all = 1 + trace_.rows(Table::kDispatch) + trace_.rows(Table::kCopy) + trace_.rows(Table::kFill);
    for (int64_t rows = 0; work.next(); ++rows) {
      if (rows % 16'384 == 0 && given_up(static_cast<double>(rows) / static_cast<double>(all))) return fail("given up");
      host.take_up_to(walk::launched_by(work->start), [&](const auto& row) { read(row); });
      add_work(*work);
    }
    tree_.forgotten = calls_.forgotten();
    TACHO_TRY(work.status());
    return host.status();
  }

  using M = column::Marker;
  using A = column::Api;
  using MarkerRow = event::RowOf<M::track, M::start, M::duration, M::dim, M::payload>;
  using CallRow = event::RowOf<A::track, A::start, A::duration, A::dim, A::correlation>;
  // A range goes before a call of the same moment.
  using Host = walk::Merge<trace::RowCursor<M::track, M::start, M::duration, M::dim, M::payload>,
                           trace::RowCursor<A::track, A::start, A::duration, A::dim, A::correlation>>;

  void read(const MarkerRow& marker) {
    if (const GraphMark mark = mark_of(marker.dim); mark != GraphMark::kNone)
      node_mark(mark, marker.track, marker.start, marker.payload);
    else if (trace::cell<column::Label::kind>(trace_, marker.dim) == event::MarkerKind::kPushPop)
      open_.push(marker.track, marker.start, marker.duration, {marker.dim, Open::kMarker});
  }

  void read(const CallRow& row) {
    const auto domain = trace::cell<column::Function::domain>(trace_, row.dim);
    const int64_t process = trace::cell<column::Track::process>(trace_, row.track);
    const bool range = domain == event::Domain::kOperator || domain == event::Domain::kPython;
    if (range)
      open_.push(row.track, row.start, row.duration,
                 {row.dim, domain == event::Domain::kOperator ? Open::kOperator : Open::kPython});
    if (row.correlation == 0 || (range && !caused_by_operators_[static_cast<size_t>(process)])) return;
    Call* const call = calls_.add(process, row.correlation, {});
    if (call == nullptr) return;
    call->wanted = wants_track(row.track) && row.start >= options_.from && row.start < options_.to;
    // Nodes of calls that turn out to have no device work go away in the end.
    if (call->wanted)
      call->node = launch_node(row.track, row.start, row.start, process, row.correlation, range ? 0 : row.dim, *call);
    if (range) return;
    newest_[trace::cell<column::Track::thread>(trace_, row.track)] = {
        row.track, row.start,       row.duration == kUnknown ? INT64_MAX : row.start + row.duration,
        process,   row.correlation, row.dim};
  }

  // Own times of recorded functions

  // A function, range or call that a thread is in.
  struct Recorded {
    int64_t end;
    uint32_t node;
    bool waits;
  };
  struct RecordedThread {
    std::vector<Recorded> stack;
    int64_t now = 0;
    // Begins of one moment: the one that ends last is around the others.
    std::vector<std::pair<int64_t, Open>> begun;  // by end
    int64_t moment = 0;
  };

  // Gives the time up to `to` to what is topmost, and closes what has ended.
  void pass(RecordedThread& thread, int64_t to) {
    while (!thread.stack.empty()) {
      const Recorded& top = thread.stack.back();
      const int64_t until = std::min(to, top.end);
      // What lies in the span that is asked for.
      const int64_t began = std::max(thread.now, options_.from), ended = std::min(until, options_.to);
      if (ended > began && !top.waits) {
        add_saturating(tree_.nodes[top.node].host_ns, ended - began);
        add_saturating(tree_.host_ns, ended - began);
      }
      thread.now = std::max(thread.now, until);
      if (top.end > to) return;
      thread.stack.pop_back();
    }
    thread.now = std::max(thread.now, to);
  }

  void open_begun(RecordedThread& thread, int64_t track) {
    if (thread.begun.empty()) return;
    pass(thread, thread.moment);
    std::stable_sort(thread.begun.begin(), thread.begun.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [end, open] : thread.begun) {
      const uint32_t above = thread.stack.empty() ? root_of(track) : thread.stack.back().node;
      const std::string_view name =
          open.what == Open::kMarker ? "" : trace_.text(Table::kFunction, open.row, column::Function::name);
      const uint32_t own = open.what == Open::kCall ? frame(StackPart::kApi, name) : frame_of_open(open);
      thread.stack.push_back({end, child(above, own), open.what == Open::kPython && python_waits(name)});
    }
    thread.begun.clear();
  }

  template <typename Row>
  std::optional<Open> recorded_of(const Row& row, const walk::ProgramRanges& ranges) {
    if constexpr (Row::kTable == Table::kMarker) {
      if (!ranges.has(row.track, row.dim) ||
          trace::cell<column::Label::kind>(trace_, row.dim) != event::MarkerKind::kPushPop)
        return std::nullopt;
      return Open{row.dim, Open::kMarker};
    } else {
      const auto domain = trace::cell<column::Function::domain>(trace_, row.dim);
      return Open{row.dim, domain == event::Domain::kOperator ? Open::kOperator
                           : domain == event::Domain::kPython ? Open::kPython
                                                              : Open::kCall};
    }
  }

  Status read_recorded() {
    bool any = false;
    for (int64_t row = 1; row < trace_.rows(Table::kFunction) && !any; ++row)
      any = trace::cell<column::Function::domain>(trace_, row) == event::Domain::kPython;
    if (!any) return {};
    TACHO_ASSIGN(const walk::ProgramRanges ranges, walk::ProgramRanges::make(trace_));
    tree_.recorded = true;
    std::map<int64_t, RecordedThread> threads;  // by track
    Host host(trace_);
    int64_t rows = 0;
    const auto read = [&](const auto& row) {
      if (row.duration == kUnknown || row.duration <= 0 || !wants_track(row.track) || row.start >= options_.to ||
          saturating_add(row.start, row.duration) <= options_.from ||
          trace::cell<column::Track::kind>(trace_, row.track) != event::TrackKind::kThread)
        return;
      const std::optional<Open> open = recorded_of(row, ranges);
      if (!open) return;
      RecordedThread& thread = threads[row.track];
      if (row.start != thread.moment) open_begun(thread, row.track);
      thread.moment = row.start;
      thread.begun.emplace_back(saturating_add(row.start, row.duration), *open);
    };
    for (; host.more(); ++rows) {
      if (rows % 16'384 == 0 && given_up(1)) return fail("given up");
      host.take(read);
    }
    TACHO_TRY(host.status());
    for (auto& [track, thread] : threads) {
      open_begun(thread, track);
      pass(thread, INT64_MAX);
    }
    return {};
  }

  void add_work(const walk::Work& work) {
    const int64_t process = trace::cell<column::Track::process>(trace_, work.track);
    const bool wanted_process = !options_.process || *options_.process == process;
    if (work.duration == kUnknown || work.duration < 0 || !wanted_process) return;
    const Call* const call = calls_.find(process, work.correlation);
    if (call == nullptr) {
      // Not launched by a call that was seen: no thread to filter by.
      if (!options_.thread && work.start >= options_.from && work.start < options_.to)
        add(child(process_root(process), frame(StackPart::kUnknown, "[no call stack]")), work.table, work.dim,
            work.duration, Call::kNone);
    } else if (call->wanted) {
      const Captured* const captured = work.graph_node != 0 ? graph_nodes_.find(process, work.graph_node) : nullptr;
      if (captured != nullptr)
        add(captured->node, work.table, work.dim, work.duration, captured->how);
      else
        add(call->node, work.table, work.dim, work.duration, call->how);
    }
  }

  uint32_t process_root(int64_t process) {
    if (!several_processes_ || process == 0) return 0;
    // Processes of one name are one, as the ranks of a job are: their numbers differ from run to run. With threads,
    // each stands by itself.
    const std::string_view name = trace_.text(Table::kProcess, process, column::Process::name);
    return child(
        0, frame(StackPart::kProcess,
                 options_.threads ? fmt::format("{} ({})", name, cell(Table::kProcess, process, column::Process::pid))
                                  : std::string(name)));
  }

  void add(uint32_t node, Table table, int64_t dim, int64_t duration, int how) {
    std::vector<uint32_t>& frames = device_frames_[static_cast<size_t>(table)];
    if (frames.size() <= static_cast<size_t>(dim)) frames.resize(static_cast<size_t>(dim) + 1, kNowhere);
    uint32_t& own = frames[static_cast<size_t>(dim)];
    if (own == kNowhere) own = frame(StackPart::kDevice, device_name(table, dim));
    StackNode& leaf = tree_.nodes[child(node, own)];
    add_saturating(leaf.gpu_ns, duration);
    ++leaf.launches;
    add_saturating(tree_.gpu_ns, duration);
    int64_t& by_source = how == Call::kExact  ? tree_.gpu_exact_ns
                         : how == Call::kNear ? tree_.gpu_near_ns
                                              : tree_.gpu_unknown_ns;
    add_saturating(by_source, duration);
  }

  const trace::Trace& trace_;
  StackOptions options_;
  StackTree tree_;
  bool several_processes_ = false;
  int64_t period_ = 0;  // ns that a sample usually stands for
  std::vector<int64_t> durations_;
  static constexpr uint32_t kNowhere = UINT32_MAX, kSeveral = UINT32_MAX - 1;
  FrameIndex<StackFrame, decltype(&identity_of)> frame_of_{tree_.frames, &identity_of},
      function_of_{tree_.frames, &function_identity_of};
  bool any_cut_ = false;                                        // some stacks of the trace were cut
  std::vector<uint32_t> functions_ = std::vector<uint32_t>(1);  // of frames, but for the line; only with cut stacks
  std::vector<std::vector<uint32_t>> children_;                 // of nodes of complete stacks
  std::unordered_map<std::pair<int64_t, int64_t>, std::vector<uint32_t>, PairHash>
      places_;                             // (root, function) -> nodes of complete stacks
  std::unordered_map<int64_t, bool> cut_;  // by stack
  NumberSet child_of_;
  std::unordered_map<int64_t, uint32_t> frame_rows_, root_of_;
  struct StackPlace {
    int64_t stack;  // row
    uint32_t root, node;
  };
  std::vector<StackPlace> stacks_;
  NumberSet stack_of_;                                     // among stacks_
  std::map<size_t, std::vector<uint32_t>> device_frames_;  // by table and row of its dimension; kNowhere: not yet
  std::unordered_map<std::pair<int64_t, int64_t>, int64_t, PairHash>
      exact_;  // by process and correlation: the stack (row) that was sampled in this call
  std::unordered_map<int64_t, std::vector<Moment>> moments_;  // by thread
  walk::OpenRanges<Open> open_;
  walk::CallIndex<Call> calls_;
  std::vector<bool> caused_by_operators_;  // by process
  static constexpr uint8_t kUnread = 0xff;
  std::vector<uint8_t> marks_;                  // GraphMark by label
  std::unordered_map<int64_t, Newest> newest_;  // by thread
  GraphNodes<Captured> graph_nodes_;
  std::vector<uint32_t> line_;
};

// Calls without device work leave nodes without any time: they go.
StackTree pruned(StackTree tree) {
  std::vector<uint8_t> used(tree.nodes.size());
  for (size_t i = tree.nodes.size(); i-- > 0;) {
    const StackNode& node = tree.nodes[i];
    if (i == 0 || used[i] != 0 || node.samples != 0 || node.host_ns != 0 || node.launches != 0) {
      used[i] = 1;
      used[node.parent] = 1;
    }
  }
  std::vector<uint32_t> place(tree.nodes.size());
  uint32_t kept = 0;
  for (size_t i = 0; i < tree.nodes.size(); ++i)
    if (used[i] != 0) {
      StackNode node = tree.nodes[i];
      node.parent = place[node.parent];
      place[i] = kept;
      tree.nodes[kept++] = node;
    }
  tree.nodes.resize(kept);
  return tree;
}

// Parts that are code of the host.
bool host_part(StackPart part) {
  return part == StackPart::kNative || part == StackPart::kPython;
}

// Makes one row a function, or a line of it; returns the row of each frame, SIZE_MAX = none.
std::vector<size_t> rows_of_frames(const StackTree& tree, StackBy by, std::vector<StackRow>& rows) {
  const auto identity = [&](const StackFrame& frame) {
    return FrameIdentity{static_cast<uint8_t>(frame.part), frame.name, frame.file, frame.module,
                         by == StackBy::kLine ? frame.line : 0};
  };
  NumberSet row_of;
  rows.reserve(tree.frames.size());  // may be millions, at 200 bytes
  std::vector<size_t> row_of_frame(tree.frames.size(), SIZE_MAX);
  for (size_t i = 1; i < tree.frames.size(); ++i) {
    const StackFrame& frame = tree.frames[i];
    if (by == StackBy::kLine && frame.part != StackPart::kUnknown && (!host_part(frame.part) || frame.line == 0))
      continue;
    const FrameIdentity sought = identity(frame);
    const uint32_t known = row_of.find_or_add(
        sought.hash(), static_cast<uint32_t>(rows.size()),
        [&](uint32_t row) { return identity(rows[row].frame).hash(); },
        [&](uint32_t row) { return identity(rows[row].frame) == sought; });
    row_of_frame[i] = known != NumberSet::kNone ? known : rows.size();
    if (known != NumberSet::kNone) continue;
    rows.emplace_back().frame = frame;
    if (by == StackBy::kFunction) rows.back().frame.line = 0;
  }
  return row_of_frame;
}

}  // namespace

Result<StackTree> stack_tree(const trace::Trace& trace, const StackOptions& options) {
  Result<StackTree> whole = Builder(trace, options).run();
  TACHO_ASSIGN(StackTree tree, std::move(whole));
  return pruned(std::move(tree));
}

std::string place_text(const StackFrame& frame) {
  if (!frame.file.empty()) return frame.line > 0 ? fmt::format("{}:{}", frame.file, frame.line) : frame.file;
  return frame.module;
}

std::string frame_label(const StackFrame& frame) {
  if (frame.part == StackPart::kPython && !frame.file.empty())
    return frame.line > 0 ? fmt::format("{} ({}:{})", frame.name, base_name(frame.file), frame.line)
                          : fmt::format("{} ({})", frame.name, base_name(frame.file));
  return frame.name;
}

std::vector<StackRow> stack_rows(const StackTree& tree, StackBy by) {
  std::vector<StackRow> rows;
  if (by == StackBy::kStack) {
    for (size_t i = 1; i < tree.nodes.size(); ++i) {
      const StackNode& node = tree.nodes[i];
      if (node.samples == 0 && node.host_ns == 0 && node.launches == 0) continue;
      StackRow row;
      row.frame = tree.frames[node.frame];
      std::vector<uint32_t> path;
      for (uint32_t at = static_cast<uint32_t>(i); at != 0; at = tree.nodes[at].parent)
        path.push_back(tree.nodes[at].frame);
      for (size_t k = path.size(); k-- > 0;)
        row.stack += (row.stack.empty() ? "" : ";") + frame_label(tree.frames[path[k]]);
      row.samples = node.samples;
      row.self_ns = row.total_ns = node.host_ns;
      row.gpu_ns = row.gpu_self_ns = node.gpu_ns;
      rows.push_back(std::move(row));
    }
  } else {
    const std::vector<size_t> row_of_frame = rows_of_frames(tree, by, rows);
    // Frames without a source line get a row too, so that the column of device time adds up.
    const size_t no_line = rows.size();
    if (by == StackBy::kLine) {
      rows.emplace_back();
      rows.back().frame = {StackPart::kUnknown, "[no source line]", "", 0, ""};
    }
    // Inclusive times from the leaves up: each node's own time goes to every distinct row on its path, once.
    std::vector<size_t> seen(rows.size(), SIZE_MAX);
    for (size_t i = 1; i < tree.nodes.size(); ++i) {
      const StackNode& node = tree.nodes[i];
      if (node.samples == 0 && node.host_ns == 0 && node.launches == 0) continue;
      // Time belongs to the innermost frame of the host's code; by line, to the innermost that has one, and to Python's
      // where there is Python: what a line calls in a library is that line's.
      size_t owner = SIZE_MAX;
      bool owner_python = false;
      for (uint32_t at = static_cast<uint32_t>(i); at != 0; at = tree.nodes[at].parent) {
        const size_t row = row_of_frame[tree.nodes[at].frame];
        const StackPart part = tree.frames[tree.nodes[at].frame].part;
        if (row == SIZE_MAX) continue;
        // Code that was made at run time ("<string>", a library's generated wrappers) has no line that one could look
        // at.
        const bool python = by == StackBy::kLine && part == StackPart::kPython &&
                            !tree.frames[tree.nodes[at].frame].file.starts_with("<");
        if ((host_part(part) || part == StackPart::kUnknown) && (owner == SIZE_MAX || (python && !owner_python))) {
          owner = row;
          owner_python = python;
        }
        if (at == i && by == StackBy::kFunction && !tree.recorded) {
          add_saturating(rows[row].self_ns, node.host_ns);
          rows[row].samples += node.samples;
        }
        if (seen[row] == i) continue;
        seen[row] = i;
        add_saturating(rows[row].total_ns, node.host_ns);
        add_saturating(rows[row].gpu_ns, node.gpu_ns);
      }
      if (owner == SIZE_MAX && by == StackBy::kLine) {
        owner = no_line;
        add_saturating(rows[owner].total_ns, node.host_ns);
        add_saturating(rows[owner].gpu_ns, node.gpu_ns);
      }
      if (owner != SIZE_MAX) add_saturating(rows[owner].gpu_self_ns, node.gpu_ns);
      // What operators and calls took is their function's, as the work is that they launched.
      if (by == StackBy::kFunction && tree.recorded)
        add_saturating(rows[owner != SIZE_MAX ? owner : row_of_frame[node.frame]].self_ns, node.host_ns);
      if (by == StackBy::kLine) {
        add_saturating(rows[owner].self_ns, node.host_ns);
        rows[owner].samples += node.samples;
      }
    }
    std::erase_if(rows, [](const StackRow& row) { return row.total_ns == 0 && row.gpu_ns == 0; });
  }
  std::sort(rows.begin(), rows.end(), [](const StackRow& a, const StackRow& b) {
    const int64_t x = saturating_add(a.self_ns, a.gpu_self_ns), y = saturating_add(b.self_ns, b.gpu_self_ns);
    if (x != y) return x > y;
    const int64_t u = saturating_add(a.total_ns, a.gpu_ns), v = saturating_add(b.total_ns, b.gpu_ns);
    return u != v ? u > v
                  : std::tie(a.frame.name, a.stack, a.frame.line) < std::tie(b.frame.name, b.stack, b.frame.line);
  });
  return rows;
}

void folded_stacks(const StackTree& tree, bool gpu, const PutText& put) {
  std::string line;
  std::vector<uint32_t> path;
  for (size_t i = 1; i < tree.nodes.size(); ++i) {
    const int64_t ns = gpu ? tree.nodes[i].gpu_ns : tree.nodes[i].host_ns;
    if (ns <= 0) continue;
    path.clear();
    for (uint32_t at = static_cast<uint32_t>(i); at != 0; at = tree.nodes[at].parent)
      path.push_back(tree.nodes[at].frame);
    line.clear();
    for (size_t k = path.size(); k-- > 0;) {
      std::string label = valid_utf8(frame_label(tree.frames[path[k]]));
      for (char& c : label)
        if (c == ';' || (c >= 0 && c < ' ')) c = ':';
      line += label;
      line += k == 0 ? " " : ";";
    }
    // At least 1: what ran for less than a microsecond is still there.
    line += fmt::format("{}\n", std::max<int64_t>(ns / 1000 + (ns % 1000 >= 500 ? 1 : 0), 1));
    put(line);
  }
}

namespace {

// The elements of an array, by `element`, which appends to a text and says whether there is one of that number.
void put_array(const StackTree& tree, const PutText& put, auto element) {
  std::string text;
  bool first = true;
  put("[");
  for (size_t i = 1; i < tree.nodes.size(); ++i) {
    text.assign(first ? "" : ",");
    if (!element(i, text)) continue;
    put(text);
    first = false;
  }
  put("]");
}

}  // namespace

void speedscope_json(const StackTree& tree, std::string_view name, const PutText& put) {
  put("{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\",\"name\": " + json_quoted(name) +
      ",\"exporter\": \"tacho\",\"activeProfileIndex\": 0,\"shared\": {\"frames\": [");
  for (size_t i = 1; i < tree.frames.size(); ++i) {
    const StackFrame& frame = tree.frames[i];
    std::string one = i == 1 ? "{\"name\": " : ",{\"name\": ";
    append_json_quoted(one, frame.name);
    if (const std::string& where = frame.file.empty() ? frame.module : frame.file; !where.empty())
      one += ",\"file\": " + json_quoted(where);
    if (frame.line > 0) one += fmt::format(",\"line\": {}", frame.line);
    put(one += "}");
  }
  put("]},\"profiles\": [");
  for (const bool gpu : {false, true}) {
    const int64_t total = gpu ? tree.gpu_ns : tree.host_ns;
    if (gpu && total == 0) continue;
    const auto time = [&](size_t i) { return gpu ? tree.nodes[i].gpu_ns : tree.nodes[i].host_ns; };
    put(fmt::format(
        "{}{{\"type\": \"sampled\",\"name\": \"{}\",\"unit\": \"nanoseconds\",\"startValue\": 0,\"endValue\": {},\"samples\": ",
        gpu ? "," : "",
        gpu         ? "device time by launching stack"
        : tree.wall ? "host, wall time"
                    : "host, CPU time",
        total));
    std::vector<uint32_t> path;
    put_array(tree, put, [&](size_t i, std::string& text) {
      if (time(i) <= 0) return false;
      path.clear();
      for (uint32_t at = static_cast<uint32_t>(i); at != 0; at = tree.nodes[at].parent)
        path.push_back(tree.nodes[at].frame - 1);
      text += '[';
      for (size_t k = path.size(); k-- > 0;) text += fmt::format("{}{}", path[k], k == 0 ? "" : ",");
      text += ']';
      return true;
    });
    put(",\"weights\": ");
    put_array(tree, put, [&](size_t i, std::string& text) {
      if (time(i) > 0) text += fmt::format("{}", time(i));
      return time(i) > 0;
    });
    put("}");
  }
  put("]}\n");
}

}  // namespace tacho::analysis
