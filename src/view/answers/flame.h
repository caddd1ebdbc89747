// The flame graph of one run, or of two that are compared, as JSON for the page: the same as on the page of `tacho
// flame`, bounded in size.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analysis/stacks/stacks.h"
#include "base/result.h"
#include "view/run.h"

namespace tacho::view {

struct FlameChoice {
  int64_t from = INT64_MIN, to = INT64_MAX;  // ns since t0: samples taken, and work launched, in [from, to)
  bool threads = false;
  analysis::FramesBy by = analysis::FramesBy::kLine;
  std::function<bool(double)> given_up;  // as in analysis::StackOptions
};

/// Nodes of an answer: a served page has 2 to 3 MB for this many.
inline constexpr size_t kMostFlameNodes = 40'000;
/// In a self-contained page.
inline constexpr size_t kMostFlameNodesEmbedded = 15'000;

/// {"runs": [...], "stacks": bool, "folded": {"nodes", "host", "gpu"}, "note": sentence}. `base`: the run
/// that `run` is compared with, or null; it comes second. Without stacks, "note" says what would record them;
/// device time then still lies below the ranges and calls that launched it, if there is any.
/// By frame: the number of the kernel's name in the run, 0 = no kernel.
std::vector<uint32_t> kernels_of(const Run& run, const analysis::StackTree& tree);

Result<std::string> flame(const Run& run, const Run* base, const FlameChoice& choice, size_t most = kMostFlameNodes);

}  // namespace tacho::view
