// "My code" of call stacks: the program's own functions, without the libraries, the interpreter and the standard
// library between and below them.
#pragma once

#include "analysis/stacks/stacks.h"

namespace tacho::analysis {

/// Whether a frame of host code belongs to the user. By where its file lies: not in site-packages or dist-packages,
/// Python's library, a well-known package of torch.profiler's shortened paths, the interpreter, the system's folders of
/// libraries and headers, CUDA's or ROCm's; nor made at run time without a file. False for parts that are no host code.
bool own_frame(const StackFrame& frame);

/// The tree with own frames only: time of the others counts for the own frame that called them, and for a frame "[other
/// code]" where none did. Sums stay what they were. A tree without any time in own frames comes back unchanged.
StackTree own_code(StackTree tree);

/// Host and device time under own frames; both 0 where own_code() changes nothing.
struct OwnShare {
  int64_t host_ns = 0, gpu_ns = 0;
};
OwnShare own_share(const StackTree& tree);

}  // namespace tacho::analysis
