// Merges the call stacks of a trace into one tree, with the host's time by samples and the devices' time
// under the stack that launched the work. `tacho stats --by stack|function|line`, folded stacks, speedscope
// and `tacho flame` show it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trace/trace.h"

namespace tacho::analysis {

enum class StackPart : uint8_t {
  kRoot,
  kProcess,    // more than one process has stacks
  kThread,     // StackOptions::threads
  kNative,     // of the stack
  kPython,     // of the stack
  kTruncated,  // the stack is cut off here
  kMarker,     // range or operator of a framework, open when the work was launched
  kApi,        // the call that launched
  kDevice,     // kernel, copy or fill
  kUnknown,    // work launched from an unknown stack; CPU time that no sample stands for
  kFolded,     // bound_trees(): frames beyond its limit, merged
};
std::string_view to_string(StackPart part);

/// Whether an executable or library is the Python interpreter: "python3.11", "/usr/lib/libpython3.12.so.1.0".
bool is_interpreter(std::string_view module);

struct StackFrame {
  StackPart part = StackPart::kRoot;
  std::string name;          // function, kernel, marker text
  std::string file;          // source file; empty = unknown
  int64_t line = 0;          // 0 = unknown, or merged (StackOptions::lines)
  std::string module;        // executable or library; of several of one name (a kernel cache's files) the first
  bool interpreter = false;  // native code of the Python interpreter
};

struct StackNode {
  uint32_t parent = 0;  // index into nodes; the root is its own parent
  uint32_t frame = 0;   // index into frames
  int64_t host_ns = 0;  // samples that ended here, or own time of what was recorded (StackTree::recorded)
  int64_t samples = 0;
  int64_t gpu_ns = 0;  // device work of this node itself
  int64_t launches = 0;
};

struct StackTree {
  // May be millions: a vector that grows needs their room twice.
  std::deque<StackFrame> frames;
  std::deque<StackNode> nodes;  // parents before children; 0 is the root
  int64_t samples = 0, host_ns = 0;
  // Device time by the source of its stack. exact: read at the launch or sampled within the call; near: the nearest
  // sample of the same thread; unknown: none. The three add up to gpu_ns, the sum over all kernels, copies and fills.
  int64_t gpu_ns = 0, gpu_exact_ns = 0, gpu_near_ns = 0, gpu_unknown_ns = 0;
  int64_t forgotten = 0;  // work whose launching call may have been forgotten (walk/calls/call_index.h)
  bool recorded = false;  // the host's time is of recorded functions (StackOptions::recorded)
  bool wall = false;      // some samples are of wall time
  bool cpu = false;
};

struct StackOptions {
  bool lines = true;     // keep frames of one function apart by source line
  bool threads = false;  // add a level of threads below the processes
  bool host = true, gpu = true;
  /// If the trace has no samples: the host's time is the own time of the functions of Python, operators, ranges and
  /// calls that a profiler recorded, without functions that only wait (python_waits()). Its nodes have no samples.
  bool recorded = true;
  bool startup = false;            // keep the native frames outside of the outermost Python frame
  std::optional<int64_t> process;  // row
  std::optional<int64_t> thread;   // row
  // By time of the sample or of the launching call; of recorded functions the time that lies in it.
  int64_t from = INT64_MIN, to = INT64_MAX;
  /// Called now and then with the progress, 0 to 1. True ends the work with an error.
  std::function<bool(double)> given_up;
};

Result<StackTree> stack_tree(const trace::Trace& trace, const StackOptions& options = {});

/// What bound_trees() folded.
struct FoldedFrames {
  int64_t nodes = 0;  // that stand for themselves no more, in all trees
  // Of the time of all trees' nodes: how much lies in what was folded.
  int64_t host_ns = 0, gpu_ns = 0;
  size_t depth = 0;  // of the trees before, the root not counted
};
/// Makes trees small enough to be sent: frames that are one to a reader (part, function, base name of the file, line)
/// become one node, and of these nodes the `most` with the largest share of host or device time of any tree stay, down
/// to `most_depth` frames below the root. What was below any other node goes to one node of kFolded in its place, so
/// that the times of all others stay as they are. All trees keep the same nodes: a frame of one is folded in the other
/// only if it is in both.
FoldedFrames bound_trees(std::span<StackTree> trees, size_t most, size_t most_depth);

/// Which frames of two runs count as the same.
enum class FramesBy : uint8_t {
  kFunction,  // the same function, wherever it lies in its file and with whatever template arguments it was built
  kLine,      // the same line of the same function, by its whole name
};
Result<FramesBy> parse_frames_by(std::string_view text);

/// Gives a frame of one tree and its counterparts in the others the same name and place, and makes equal frames below
/// the same caller one. A frame that all trees have as it is stays. The others are matched without template arguments,
/// parameters and result, addresses, suffixes that compilers append, versions of libraries, numbers of processes and
/// threads, and the directory of Python's files; what then has no counterpart in some tree keeps its name. Contract:
/// made with StackOptions::lines == false.
void match_functions(std::span<StackTree> trees);
/// The name by which match_functions() matches a frame: "at::native::elementwise_kernel<…>".
std::string matched_name(const StackFrame& frame);

struct StackRow {
  StackFrame frame;
  std::string stack;  // kStack: outermost first, joined by ';'
  int64_t samples = 0;
  // Time as the innermost frame. kLine: also under inner frames that have no line. Of recorded functions: also that of
  // the operators and calls in it, which have none of their own then.
  int64_t self_ns = 0;
  int64_t total_ns = 0;     // time anywhere on the stack, counted once
  int64_t gpu_ns = 0;       // device work launched by it or its callees
  int64_t gpu_self_ns = 0;  // device work launched with this as the innermost frame
};
enum class StackBy { kStack, kFunction, kLine };
/// Rows sorted by host plus device time, longest first. kLine: Python and native frames with a line. The time of a
/// stack belongs to its innermost Python line, else to its innermost line, so that self times add up to the whole. For
/// kLine the tree must have been made with StackOptions::lines.
std::vector<StackRow> stack_rows(const StackTree& tree, StackBy by);

/// Gets a text piece by piece.
using PutText = std::function<void(std::string_view)>;
/// Lines of "root;outer;inner 1234", in microseconds since folded stacks hold counts. `gpu`: device instead of host
/// time.
void folded_stacks(const StackTree& tree, bool gpu, const PutText& put);
/// speedscope's file format: a sampled profile of host time and one of device time.
void speedscope_json(const StackTree& tree, std::string_view name, const PutText& put);
/// Where a frame lies: "/home/u/train.py:12", else its executable or library.
std::string place_text(const StackFrame& frame);
/// The text of a frame in a stack: "function (file.py:12)" for Python, the function for others.
std::string frame_label(const StackFrame& frame);

}  // namespace tacho::analysis
