// Why a rank came late to a collective: it spent more time on something than the others in the stretch before.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "ranks/answer/answers.h"

namespace tacho::ranks {

/// The lower one of two medians; T{} of nothing.
template <typename T>
T median_of(std::vector<T> values) {
  if (values.empty()) return T{};
  const auto middle = values.begin() + static_cast<int64_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Why participant `last` came `late` ns after the median of the others. `before`: the cause at the communicator's
/// collective before, if the same rank was last there in the same step; `late_before`: how late it was then.
/// `messages`: how long each waited for messages in its stretch. The peer of a kMessages is a run, not a rank.
Cause cause_of(std::span<const Participant> all, size_t last, int64_t late, const Cause* before, int64_t late_before,
               std::span<const Waited> messages);

}  // namespace tacho::ranks
