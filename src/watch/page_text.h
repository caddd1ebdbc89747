// The lines of the live page of `tacho watch`.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "watch/answer.h"

namespace tacho::watch {

enum class PageOrder : uint8_t { kTimeNow, kTime, kLaunches, kAverage };

struct PageView {
  std::string command;  ///< the program's words
  PageOrder order = PageOrder::kTimeNow;
  bool frozen = false;
  bool marked = false;  ///< `before` is the moment that the user marked
  std::string note;     ///< a sentence above the keys; "" for none
  size_t width = 80, height = 24;
};

/// At most `height` lines of at most `width` columns: the pace, the cost, GPUs, kernels in the chosen order, the note,
/// the keys.
/// `before`: the moment of the page before this one, or the marked one, for what is "now".
std::vector<std::string> page_lines(const WatchSnapshot& before, const WatchMoment& moment, const PageView& view);

}  // namespace tacho::watch
