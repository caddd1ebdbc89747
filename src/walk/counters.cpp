// Finds the first pass of each value (counters.h).
#include "walk/counters.h"

#include <algorithm>
#include <compare>
#include <limits>

#include "base/files/sorted_file.h"
#include "trace/read/rows.h"

namespace tacho::walk {

using C = event::column::CounterValue;
using event::Table;

namespace {

struct PassOfValue {
  int64_t counter, track, start, ordinal, pass;
  auto operator<=>(const PassOfValue&) const = default;
};

}  // namespace

struct FirstPasses::Index {
  std::vector<bool> several;  // by row of table counter: passes differ
  SortedFile<PassOfValue> passes;
};

FirstPasses::FirstPasses() = default;
FirstPasses::FirstPasses(FirstPasses&&) noexcept = default;
FirstPasses& FirstPasses::operator=(FirstPasses&&) noexcept = default;
FirstPasses::~FirstPasses() = default;

Result<FirstPasses> FirstPasses::make(const trace::Trace& trace) {
  FirstPasses passes;
  constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
  const auto counters = static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kCounter), 1));
  std::vector<int64_t> pass_of(counters, kNone);
  std::vector<bool> several(counters);
  bool any = false;
  Status status;
  for (const auto& values : trace::chunks<C::dim, C::pass>(trace, status))
    for (size_t i = 0; i < values.size(); ++i) {
      const auto counter = static_cast<size_t>(values.dim[i]);
      if (pass_of[counter] == kNone) pass_of[counter] = values.pass[i];
      if (pass_of[counter] != values.pass[i]) several[counter] = any = true;
    }
  TACHO_TRY(status);
  if (!any) return passes;
  passes.index_ = std::make_unique<Index>();
  for (const auto& values : trace::chunks<C::track, C::start, C::ordinal, C::dim, C::pass>(trace, status))
    for (size_t i = 0; i < values.size(); ++i)
      if (several[static_cast<size_t>(values.dim[i])])
        passes.index_->passes.add({values.dim[i], values.track[i], values.start[i], values.ordinal[i], values.pass[i]});
  TACHO_TRY(status);
  TACHO_TRY(passes.index_->passes.finish_indexed());
  passes.index_->several = std::move(several);
  return passes;
}

int64_t FirstPasses::first(int64_t track, int64_t start, int64_t ordinal, int64_t counter, int64_t pass) const {
  const auto at = static_cast<size_t>(counter);
  if (at >= index_->several.size() || !index_->several[at]) return pass;
  const auto all = index_->passes.all();
  const PassOfValue least{counter, track, start, ordinal, std::numeric_limits<int64_t>::min()};
  const auto found = std::lower_bound(all.begin(), all.end(), least);
  return found == all.end() ? pass : found->pass;
}

}  // namespace tacho::walk
