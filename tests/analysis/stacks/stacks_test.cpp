// Trees of call stacks: the frames above a kernel, and that device time adds up.
#include "analysis/stacks/stacks.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/format.h"
#include "support/trace_maker.h"
#include "trace/rows.h"

namespace tacho::analysis {
namespace {

using event::Table;
namespace row = event::row;
using trace::Folder;
using trace::must;
using trace::TraceWriter;

// A thread that launches once a millisecond inside of ranges, as torch.autograd.profiler.emit_nvtx makes them.
TEST(StackTree, RangesThatDifferByTheirNumbersOnlyAreOne) {
  test::TraceMaker made;
  const int64_t process = made.process(1), host = made.thread_track(process, 1),
                queue = made.queue_track(process, 0, 7), kernel = made.kernel("k");
  const int64_t launch = made.function("cuLaunchKernel", event::Domain::kCudaDriver);
  int64_t whole = 0;
  for (int64_t i = 0; i < 20; ++i) {
    const int64_t at = 1'000'000 * (i + 1);
    const std::string name = i % 2 == 0 ? fmt::format("aten::mm, seq = {}, op_id = {}", i, 3 * i)
                                        : fmt::format("aten::relu, op_id = {}, sizes = [[{}]]", i, i);
    made.marker(host, at, 500'000, made.label(name));
    made.call(host, at + 1000, 2000, launch, i + 1);
    made.dispatch(queue, at + 5000, 100 + i, kernel, i + 1, i);
    whole += 100 + i;
  }
  const StackTree tree = must(stack_tree(*made.open()));
  EXPECT_EQ(tree.gpu_ns, whole);
  int64_t sum = 0;
  std::vector<std::string> markers;
  for (const StackNode& node : tree.nodes) {
    sum += node.gpu_ns;
    if (tree.frames[node.frame].part == StackPart::kMarker) markers.push_back(tree.frames[node.frame].name);
  }
  EXPECT_EQ(sum, whole);
  EXPECT_EQ(markers, (std::vector<std::string>{"aten::mm", "aten::relu"}));
}

// Operators and functions of Python that torch.profiler recorded lie around launches as ranges do, and say which stack
// launched.
TEST(StackTree, OperatorsAndPythonFunctionsLieAroundTheirLaunches) {
  test::TraceMaker made;
  const int64_t process = made.process(1), host = made.thread_track(process, 1),
                queue = made.queue_track(process, 0, 7), kernel = made.kernel("k");
  const auto open = [&](std::string_view name, event::Domain domain, int64_t start, int64_t duration,
                        int64_t correlation = 0) {
    made.call(host, start, duration, made.function(name, domain), correlation);
  };
  const auto ran = [&](int64_t start, int64_t duration, int64_t correlation) {
    made.dispatch(queue, start, duration, kernel, correlation);
  };
  // The inner one comes first where both begin together.
  open("aten::mm", event::Domain::kOperator, 100, 50);
  open("aten::linear", event::Domain::kOperator, 100, 200);
  open("cudaLaunchKernel", event::Domain::kCudaRuntime, 110, 10, 1);
  open("cudaLaunchKernel", event::Domain::kCudaRuntime, 200, 10, 2);
  open("/src/model.py(12): forward", event::Domain::kPython, 400, 200);
  open("aten::relu", event::Domain::kOperator, 410, 100);
  open("cudaLaunchKernel", event::Domain::kCudaRuntime, 420, 10, 3);
  ran(500, 7, 1);
  ran(600, 20, 2);
  ran(700, 300, 3);
  const auto trace = made.open();
  const StackTree tree = must(stack_tree(*trace));
  std::set<std::string> stacks;
  for (const StackRow& each : stack_rows(tree, StackBy::kStack))
    if (each.gpu_ns > 0) stacks.insert(fmt::format("{} {}", each.stack, each.gpu_ns));
  EXPECT_EQ(stacks, (std::set<std::string>{
                        "[no call stack];aten::linear;aten::mm;cudaLaunchKernel;k 7",
                        "[no call stack];aten::linear;cudaLaunchKernel;k 20",
                        "forward (model.py:12);aten::relu;cudaLaunchKernel;k 300",
                    }));
  EXPECT_EQ(tree.gpu_exact_ns, 300);
  EXPECT_EQ(tree.gpu_unknown_ns, 27);
  // Without samples the host's time is their own, and of a span what lies in it.
  const auto own_times = [&](int64_t from, int64_t to) {
    StackOptions options;
    options.gpu = false;
    options.from = from;
    options.to = to;
    const StackTree part = must(stack_tree(*trace, options));
    EXPECT_TRUE(part.recorded);
    std::map<std::string, int64_t> times;
    int64_t sum = 0;
    for (const StackRow& each : stack_rows(part, StackBy::kStack))
      if (each.self_ns > 0) sum += times[each.stack] = each.self_ns;
    EXPECT_EQ(sum, part.host_ns);
    return times;
  };
  using Times = std::map<std::string, int64_t>;
  EXPECT_EQ(own_times(INT64_MIN, INT64_MAX), (Times{{"aten::linear", 140},
                                                    {"aten::linear;aten::mm", 40},
                                                    {"aten::linear;aten::mm;cudaLaunchKernel", 10},
                                                    {"aten::linear;cudaLaunchKernel", 10},
                                                    {"forward (model.py:12)", 100},
                                                    {"forward (model.py:12);aten::relu", 90},
                                                    {"forward (model.py:12);aten::relu;cudaLaunchKernel", 10}}));
  EXPECT_EQ(own_times(140, 205),
            (Times{{"aten::linear", 50}, {"aten::linear;aten::mm", 10}, {"aten::linear;cudaLaunchKernel", 5}}));
  EXPECT_EQ(own_times(550, 560), (Times{{"forward (model.py:12)", 10}}));
  EXPECT_EQ(own_times(600, 900), Times());
}

// A sampled thread of one process.
class Sampled {
 public:
  Sampled() : writer_(must(TraceWriter::create(folder_ / "t.tacho", {}))) {
    process_ = writer_->dimension(row::Process{.pid = 1, .start = 0, .name = text("p")});
    thread_ = writer_->dimension(row::Thread{.process = process_, .tid = 1});
    track_ = writer_->dimension(row::Track{.kind = event::TrackKind::kThread,
                                           .process = process_,
                                           .thread = thread_,
                                           .native = 1,
                                           .category = text("sample.cpu")});
  }
  int64_t text(std::string_view value) { return writer_->string(value); }
  int64_t python(std::string_view function, int64_t line) {
    return writer_->dimension(row::Frame{
        .kind = event::FrameKind::kPython, .function = text(function), .file = text("/src/train.py"), .line = line});
  }
  int64_t native(std::string_view function, std::string_view module) {
    return writer_->dimension(row::Frame{
        .kind = event::FrameKind::kNative, .function = text(function), .module = text(module), .address = ++address_});
  }
  int64_t cut() {
    return writer_->dimension(row::Frame{.kind = event::FrameKind::kTruncated, .function = text("[truncated]")});
  }
  /// Frames outermost first.
  void sample(const std::vector<int64_t>& frames, int64_t duration = 10, int64_t correlation = 0) {
    int64_t stack = 0;
    for (const int64_t frame : frames) stack = writer_->dimension(row::Stack{.parent = stack, .frame = frame});
    writer_->add(row::Sample{
        .track = track_, .start = time_ += 100, .duration = duration, .dim = stack, .correlation = correlation});
  }
  void call(int64_t correlation, std::string_view function) {
    writer_->add(row::Api{.track = host(),
                          .start = time_,
                          .duration = 50,
                          .dim = writer_->dimension(row::Function{.name = text(function)}),
                          .correlation = correlation,
                          .result = 0});
  }
  /// A call of this thread and the kernel that it launched, as a node of a graph if `node` is not 0.
  void launched(int64_t correlation, int64_t kernel_ns, int64_t node = 0) {
    call(correlation, node != 0 ? "cudaGraphLaunch" : "cuLaunchKernel");
    writer_->add(row::Dispatch{
        .track = writer_->dimension(row::Track{.kind = event::TrackKind::kQueue, .process = process_, .native = 7}),
        .start = time_ + 100,
        .duration = kernel_ns,
        .dim = writer_->dimension(row::Kernel{.name = text("k")}),
        .correlation = correlation,
        .graph_node = node});
  }
  /// A call that was captured and became a node.
  void captured(int64_t correlation, int64_t node) {
    call(correlation, "cudaLaunchKernel");
    mark("graph node", time_ + 20, node);
  }
  void instantiated(int64_t node, int64_t copy) {
    mark("graph node copy", time_ + 60, copy);
    mark("graph node origin", time_ + 61, node);
  }
  std::shared_ptr<const trace::Trace> open() { return must(writer_->finish_and_open()); }
  std::string folded() {
    const StackTree tree = must(stack_tree(*open()));
    std::string out;
    for (const StackRow& row : stack_rows(tree, StackBy::kStack)) out += fmt::format("{} {}\n", row.stack, row.self_ns);
    return out;
  }

 private:
  int64_t host() {
    return writer_->dimension(
        row::Track{.kind = event::TrackKind::kThread, .process = process_, .thread = thread_, .native = 1});
  }
  void mark(std::string_view what, int64_t time, int64_t node) {
    writer_->add(row::Marker{.track = host(),
                             .start = time,
                             .duration = 0,
                             .dim = writer_->dimension(row::Label{.name = text(what),
                                                                  .kind = event::MarkerKind::kMark,
                                                                  .domain = text("torch"),
                                                                  .payload = event::PayloadKind::kInteger}),
                             .payload = node});
  }

  Folder folder_;
  std::unique_ptr<TraceWriter> writer_;
  int64_t process_ = 0, thread_ = 0, track_ = 0, time_ = 0, address_ = 0;
};

TEST(StackTree, DeviceWorkBelongsToTheStackOfItsLaunchNotToATimerSWithinTheCall) {
  for (const bool timer_first : {false, true}) {
    Sampled of;
    const int64_t step = of.python("step", 7), helper = of.native("launcher", "engine.so");
    if (timer_first) of.sample({helper}, 10, 5);
    of.sample({step}, 0, 5);
    if (!timer_first) of.sample({helper}, 10, 5);
    of.launched(5, 400);
    const StackTree tree = must(stack_tree(*of.open()));
    EXPECT_EQ(tree.gpu_ns, 400);
    std::string above;  // the kernel, innermost first
    for (const StackNode& node : tree.nodes)
      for (const StackNode* at = &node; node.gpu_ns != 0; at = &tree.nodes[at->parent]) {
        above += tree.frames[at->frame].name + ";";
        if (at->parent == 0) break;
      }
    EXPECT_NE(above.find("step;"), std::string::npos) << above;
    EXPECT_EQ(above.find("launcher;"), std::string::npos) << above;
  }
}

TEST(StackTree, KernelsOfAGraphBelongToTheLineThatWasCaptured) {
  Sampled of;
  const int64_t layer = of.python("layer", 7), replay = of.python("replay", 30);
  of.sample({layer}, 0, 5);
  of.captured(5, 100);      // node 100, made in call 5
  of.instantiated(100, 1);  // node 1 of the executable graph
  for (int64_t launch = 6; launch < 9; ++launch) {
    of.sample({replay}, 0, launch);
    of.launched(launch, 400, 1);
    of.launched(launch, 50, 2);  // a node that nobody saw made stays with the launch
  }
  const StackTree tree = must(stack_tree(*of.open()));
  EXPECT_EQ(tree.gpu_ns, 1350);
  std::string text;
  for (const StackRow& row : stack_rows(tree, StackBy::kStack))
    if (row.gpu_self_ns != 0) text += fmt::format("{} {}\n", row.stack, row.gpu_self_ns);
  EXPECT_EQ(text, "layer (train.py:7);cudaLaunchKernel (captured in a graph);k 1200\n"
                  "replay (train.py:30);cudaGraphLaunch;k 150\n");
}

TEST(StackTree, StacksThatWereCutFoldIntoThoseThatWereNot) {
  Sampled of;
  const int64_t module = of.python("<module>", 50), train = of.python("train", 20), step = of.python("step", 7),
                other = of.python("other", 3);
  // Cut ones first: the stacks that they belong to come later.
  of.sample({of.cut(), train, step});
  of.sample({of.cut(), of.python("train", 21), step});  // the caller's line shows where it continues
  of.sample({module, train, step});
  of.sample({module, of.python("train", 21), other});
  EXPECT_EQ(of.folded(), "<module> (train.py:50);train (train.py:20);step (train.py:7) 20\n"
                         "<module> (train.py:50);train (train.py:21);other (train.py:3) 10\n"
                         "<module> (train.py:50);train (train.py:21);step (train.py:7) 10\n");
}

TEST(StackTree, StacksThatMayBelongToSeveralStayCut) {
  Sampled of;
  const int64_t a = of.python("a", 1), b = of.python("b", 2), leaf = of.python("leaf", 3), down = of.python("down", 8);
  of.sample({a, leaf});
  of.sample({b, leaf});
  of.sample({of.cut(), leaf}, 30);
  of.sample({a, down, down, down});
  of.sample({of.cut(), down, down, down, down}, 40);  // within a recursion
  const std::string text = of.folded();
  EXPECT_NE(text.find("[truncated];leaf (train.py:3) 30\n"), std::string::npos) << text;
  EXPECT_NE(text.find("[truncated];down (train.py:8);down"), std::string::npos) << text;
}

TEST(StackTree, AKernelIsOneBarWhereverACacheHasIt) {
  Sampled of;
  const int64_t start = of.native("start_thread", "/lib/libc.so.6");
  for (const char* const path : {"/cache/AB/64-1-1/work.so", "/cache/AB/128-1-1/work.so", "/cache/CD/64-1-1/work.so"})
    of.sample({start, of.native("_pocl_kernel_work", path)});
  EXPECT_EQ(of.folded(), "start_thread;_pocl_kernel_work 30\n");
}

TEST(StackTree, FramesOfTheInterpreterAreMarked) {
  Sampled of;
  of.sample({of.python("f", 1), of.native("_PyObject_Call", "/usr/lib/libpython3.12.so.1.0"),
             of.native("vectorcall", "/usr/bin/python3.11"), of.native("gemm", "/lib/libpythonic.so"),
             of.python("g", 2)});
  const StackTree tree = must(stack_tree(*of.open()));
  std::set<std::string> marked;
  for (const StackFrame& frame : tree.frames)
    if (frame.interpreter) marked.insert(frame.name);
  EXPECT_EQ(marked, (std::set<std::string>{"_PyObject_Call", "vectorcall"}));
}

}  // namespace
}  // namespace tacho::analysis
