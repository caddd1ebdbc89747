// Finds nearest names by edit distance (suggest.h).
#include "cli/shared/suggest.h"

#include <algorithm>

namespace tacho::cli {
namespace {

// Counts insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      cost[i][j] =
          std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> known) {
  std::string best;
  size_t best_distance = std::max<size_t>(word.size() / 3, 1) + 1;
  for (const std::string& name : known) {
    // The lengths alone need this many edits, so even a very long word costs little.
    if (std::max(word.size(), name.size()) - std::min(word.size(), name.size()) >= best_distance) continue;
    const size_t d = distance(word, name);
    if (d < best_distance) {
      best_distance = d;
      best = name;
    }
  }
  return best;
}

std::string suggestion(std::span<const std::string> known, std::string_view option) {
  const std::string_view word = option.substr(0, option.find('='));
  std::string best = nearest(word, known);
  // A part of a name: --output of --output-format, --format of the same.
  const auto has_part = [&](const std::string& name) {
    const std::string_view stem = word.substr(2);
    return name.starts_with(word) || name.ends_with("-" + std::string(stem)) ||
           word.ends_with(name.substr(std::min<size_t>(name.size(), 1)));
  };
  if (best.empty() && word.starts_with("--") && word.size() > 4)
    if (const auto found = std::find_if(known.begin(), known.end(), has_part); found != known.end()) best = *found;
  return best.empty() ? "" : "; did you mean " + best + "?";
}

}  // namespace tacho::cli
