// FirstMarker markers by what their texts say without numbers (common_marker.h).
#include "analysis/stacks/common_marker.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "trace/read/rows.h"
#include "trace/store/hash.h"

namespace tacho::analysis {

using event::Table;
namespace column = event::column;

namespace {

struct FirstMarker {
  int64_t start = INT64_MAX, label = 0;
  bool range = false;
};
using FirstMarkers = std::unordered_map<uint64_t, FirstMarker>;  // by the hash of a text without its numbers

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Runs of digits become one '#'.
std::string without_numbers(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c < '0' || c > '9')
      out += c;
    else if (out.empty() || out.back() != '#')
      out += '#';
  }
  return out;
}

bool names_a_step(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), lower);
  static constexpr std::string_view kWords[] = {"step", "iter", "epoch", "batch", "frame"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view word) { return small.find(word) != std::string::npos; });
}

Result<FirstMarkers> first_markers(const trace::Trace& trace) {
  std::vector<int64_t> start(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kLabel), 1)), INT64_MAX);
  std::vector<bool> range(start.size());
  using M = column::Marker;
  Status status;
  for (const auto& markers : trace::chunks<M::start, M::dim, M::duration>(trace, status))
    for (size_t i = 0; i < markers.size(); ++i) {
      const auto label = static_cast<size_t>(markers.dim[i]);
      if (label == 0 || label >= start.size() || markers.start[i] >= start[label]) continue;
      start[label] = markers.start[i];
      range[label] = markers.duration[i] != 0;
    }
  TACHO_TRY(status);
  FirstMarkers firsts;
  for (size_t label = 1; label < start.size(); ++label) {
    if (start[label] == INT64_MAX) continue;
    const auto row = static_cast<int64_t>(label);
    const std::string text = without_numbers(trace.text(Table::kLabel, row, column::Label::name));
    if (text.empty()) continue;
    FirstMarker& first = firsts[trace::hash_128(text).low];
    if (start[label] < first.start) first = {start[label], row, range[label]};
  }
  return firsts;
}

}  // namespace

Result<std::optional<CommonMarker>> first_common_marker(const trace::Trace& a, const trace::Trace& b) {
  if (a.rows(Table::kMarker) == 0 || b.rows(Table::kMarker) == 0) return std::nullopt;
  TACHO_ASSIGN(const FirstMarkers in_a, first_markers(a));
  TACHO_ASSIGN(const FirstMarkers in_b, first_markers(b));
  const FirstMarker* best = nullptr;
  const FirstMarker* best_b = nullptr;
  int best_rank = 0;
  for (const auto& [text, first] : in_a) {
    const auto other = in_b.find(text);
    if (other == in_b.end()) continue;
    const int rank =
        (names_a_step(a.text(Table::kLabel, first.label, column::Label::name)) ? 2 : 0) + (first.range ? 1 : 0);
    if (best != nullptr &&
        (rank != best_rank ? rank < best_rank
                           : std::pair(best->start, best->label) <= std::pair(first.start, first.label)))
      continue;
    best = &first;
    best_b = &other->second;
    best_rank = rank;
  }
  if (best == nullptr) return std::nullopt;
  return CommonMarker{best->start, best_b->start, std::string(a.text(Table::kLabel, best->label, column::Label::name)),
                      std::string(b.text(Table::kLabel, best_b->label, column::Label::name))};
}

}  // namespace tacho::analysis
