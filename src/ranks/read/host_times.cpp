// Calls and ranges of the host in the stretches before collectives (host_times.h).
#include "ranks/read/host_times.h"

#include <algorithm>
#include <unordered_map>

#include "base/saturating.h"
#include "trace/read/rows.h"
#include "walk/calls/launches.h"

namespace tacho::ranks {

using event::Table;
namespace column = event::column;

namespace {

constexpr int64_t kWorthAsking = 20'000;  // ns
constexpr size_t kMostNames = 16;         // of one stretch

void add(std::vector<NamedTime>& sums, uint64_t name, int64_t time) {
  auto found = std::find_if(sums.begin(), sums.end(), [&](const NamedTime& sum) { return sum.name == name; });
  if (found == sums.end()) {
    if (sums.size() >= kMostNames) return;
    found = sums.insert(sums.end(), {name, 0, 0});
  }
  ++found->count;
  add_saturating(found->time, time);
}

// Adds rows of `table` (API calls or markers) to the stretches that they overlap: places in `arrivals`, ascending.
// `name_of`: 0 leaves a row out. `longest`: the member of Arrival that takes the names with the most time.
template <typename NameOf>
Status add_rows(const trace::Trace& trace, Table table, int64_t process, std::vector<Arrival>& arrivals,
                const std::vector<size_t>& stretches, NameOf name_of, NamedTime (Arrival::*longest)[2]) {
  std::vector<std::vector<NamedTime>> sums(stretches.size());
  size_t at = 0;
  using F = column::Fact;
  trace::RowCursor<F::track, F::start, F::duration, F::dim> cursor(trace, table);
  while (cursor.next()) {
    const auto& row = *cursor;
    if (row.duration == kUnknown || row.duration <= 0) continue;
    const int64_t start = row.start, end = start + row.duration;
    // Stretches ascend and do not overlap. A row that began long ago may still be open, so only stretches that ended
    // before any later row can begin are left behind.
    while (at < stretches.size() && arrivals[stretches[at]].start <= start) ++at;
    if (at == stretches.size()) break;
    if (arrivals[stretches[at]].from >= end) continue;
    if (process != 0 && trace::cell<column::Track::process>(trace, row.track) != process) continue;
    const uint64_t name = name_of(row.track, row.dim);
    if (name == 0) continue;
    for (size_t i = at; i < stretches.size() && arrivals[stretches[i]].from < end; ++i) {
      const Arrival& arrival = arrivals[stretches[i]];
      const int64_t inside = std::min(end, arrival.start) - std::max(start, arrival.from);
      if (inside > 0) add(sums[i], name, inside);
    }
  }
  TACHO_TRY(cursor.status());
  for (size_t i = 0; i < stretches.size(); ++i) {
    auto& list = sums[i];
    std::sort(list.begin(), list.end(), [](const NamedTime& a, const NamedTime& b) {
      return a.time != b.time ? a.time > b.time : a.name < b.name;
    });
    std::copy_n(list.begin(), std::min<size_t>(list.size(), 2), arrivals[stretches[i]].*longest);
  }
  return {};
}

}  // namespace

Status add_host_times(const trace::Trace& trace, int64_t process, const std::vector<bool>& is_step, Names& names,
                      std::vector<Arrival>& arrivals) {
  std::vector<size_t> stretches;
  for (size_t i = 0; i < arrivals.size(); ++i)
    if (arrivals[i].idle + arrivals[i].mpi >= kWorthAsking && arrivals[i].from < arrivals[i].start)
      stretches.push_back(i);
  if (stretches.empty()) return {};
  const std::vector<bool> is_call = walk::calls_of_runtimes(trace);
  std::vector<uint64_t> function_number(is_call.size(), 0);
  for (size_t row = 1; row < is_call.size(); ++row)
    if (is_call[row])
      function_number[row] = names.number(trace::text<column::Function::name>(trace, static_cast<int64_t>(row)));
  const auto function = [&](int64_t, int64_t dim) {
    return dim > 0 && dim < static_cast<int64_t>(function_number.size()) ? function_number[static_cast<size_t>(dim)]
                                                                         : uint64_t{0};
  };
  TACHO_TRY(add_rows(trace, Table::kApi, process, arrivals, stretches, function, &Arrival::call));
  std::unordered_map<int64_t, uint64_t> label_numbers;
  const auto label = [&](int64_t track, int64_t dim) -> uint64_t {
    if (trace::cell<column::Track::device>(trace, track) != 0) return 0;
    if (dim > 0 && dim < static_cast<int64_t>(is_step.size()) && is_step[static_cast<size_t>(dim)]) return 0;
    const auto [found, fresh] = label_numbers.try_emplace(dim, 0);
    if (fresh) {
      const std::string_view name = trace::text<column::Label::name>(trace, dim);
      if (!name.starts_with("nccl:") && !name.starts_with("PyTorch Profiler")) found->second = names.number(name);
    }
    return found->second;
  };
  return add_rows(trace, Table::kMarker, process, arrivals, stretches, label, &Arrival::range);
}

}  // namespace tacho::ranks
