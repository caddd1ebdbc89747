// Operators that have something in common, the costliest of them in words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/findings/operator_roofs.h"
#include "base/format.h"

namespace tacho::efficiency {

inline constexpr size_t kFindingLines = 6;  ///< of operators; a last one says how many more there are

struct Costly {
  std::string name, line;
  int64_t ns = 0;
};

/// Gives `share` the lines of the costliest and the name of the first.
inline void finish(std::vector<Costly>& all, analysis::OperatorShare& share) {
  std::stable_sort(all.begin(), all.end(), [](const Costly& a, const Costly& b) { return a.ns > b.ns; });
  for (size_t i = 0; i < std::min(all.size(), kFindingLines); ++i) share.lines.push_back(std::move(all[i].line));
  if (all.size() > kFindingLines) share.lines.push_back(fmt::format("and {} more", all.size() - kFindingLines));
  if (!all.empty()) share.worst = std::move(all.front().name);
}

}  // namespace tacho::efficiency
