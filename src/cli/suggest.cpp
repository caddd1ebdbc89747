// Nearest names by edit distance (suggest.h).
#include "cli/suggest.h"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace tacho::cli {
namespace {

size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

void collect(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const CLI::App* group : app.get_subcommands([](const CLI::App*) { return true; })) collect(*group, names);
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> known) {
  std::string best;
  size_t best_distance = std::max<size_t>(word.size() / 3, 1) + 1;
  for (const std::string& name : known) {
    const size_t d = distance(word, name);
    if (d < best_distance) {
      best_distance = d;
      best = name;
    }
  }
  return best;
}

std::string suggestion(const CLI::App& app, std::string_view message) {
  const size_t at = message.find("--");
  if (at == std::string_view::npos || message.find("not expected") == std::string_view::npos) return {};
  const size_t end = message.find_first_of(" =", at);
  const std::string_view word = message.substr(at, end == std::string_view::npos ? end : end - at);
  std::vector<std::string> names;
  collect(app, names);
  const std::string best = nearest(word, names);
  return best.empty() ? "" : "; did you mean " + best + "?";
}

}  // namespace tacho::cli
