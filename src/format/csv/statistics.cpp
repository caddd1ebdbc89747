// Sums by name from the chunks' summaries (statistics.h).
#include "format/csv/statistics.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "format/shared/rocprof_words.h"

namespace tacho::format::csv {

namespace column = event::column;
using event::Table;
using walk::KernelNames;

namespace {

// Rows of `table`, grouped by the name that `name` gives a dimension row; nullopt = skip the row.
template <typename Name>
Result<std::vector<StatisticsRow>> sums_by(const trace::Trace& trace, const ExportOptions& options, Table table,
                                           Name name) {
  std::vector<StatisticsRow> rows;
  TACHO_ASSIGN(const auto summaries, trace.merged_summaries(table));
  std::unordered_map<std::string, size_t> places;
  std::unordered_map<int64_t, size_t> place_of_dim;
  constexpr size_t kNotWanted = SIZE_MAX;
  for (const trace::Summary& summary : summaries) {
    if (options.process != 0 && trace.cell(Table::kTrack, summary.track, column::Track::process) != options.process)
      continue;
    auto place = place_of_dim.find(summary.dim);
    if (place == place_of_dim.end()) {
      const std::optional<std::string> text = name(summary.dim);
      size_t at = kNotWanted;
      if (text) {
        const auto [found, fresh] = places.try_emplace(*text, rows.size());
        if (fresh) rows.push_back({*text, {}});
        at = found->second;
      }
      place = place_of_dim.emplace(summary.dim, at).first;
    }
    if (place->second != kNotWanted) rows[place->second].sums.add(summary);
  }
  return rows;
}

}  // namespace

Result<std::vector<DomainSums>> domain_sums(const trace::Trace& trace, const ExportOptions& options,
                                            KernelNames& kernels, std::span<const Table> without) {
  std::vector<DomainSums> domains;
  const auto add = [&](std::string file, std::string domain, Table table, auto name) -> Status {
    if (!options.wants(table) || std::find(without.begin(), without.end(), table) != without.end()) return {};
    TACHO_ASSIGN(auto rows, sums_by(trace, options, table, name));
    if (!rows.empty()) domains.push_back({std::move(file), std::move(domain), std::move(rows)});
    return {};
  };
  using Name = std::optional<std::string>;
  TACHO_TRY(add("kernel", "KERNEL_DISPATCH", Table::kDispatch, [&](int64_t dim) { return Name(kernels.name(dim)); }));
  TACHO_TRY(add("memory_copy", "MEMORY_COPY", Table::kCopy, [&](int64_t dim) {
    return Name(copy_direction_name(trace.cell(Table::kCopyShape, dim, column::CopyShape::direction)));
  }));
  TACHO_TRY(add("memory_fill", "MEMORY_FILL", Table::kFill, [](int64_t) { return Name("MEMORY_FILL"); }));
  TACHO_TRY(add("memory_allocation", "MEMORY_ALLOCATION", Table::kAllocation, [&](int64_t dim) {
    return Name(allocation_name(trace.cell(Table::kAllocationShape, dim, column::AllocationShape::operation)));
  }));
  std::set<std::string_view> apis;
  for (size_t i = 0; i < static_cast<size_t>(event::Domain::kEnd); ++i)
    if (options.wants(static_cast<event::Domain>(i))) apis.insert(api_of(static_cast<event::Domain>(i)));
  for (const std::string_view api : apis) {
    const std::string file = fmt::format("{}_api", api.empty() ? "unknown" : api);
    std::string domain_name = file;
    for (char& c : domain_name) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    TACHO_TRY(add(file, domain_name, Table::kApi, [&](int64_t dim) -> Name {
      const auto domain = event::from_cell<event::Domain>(trace.cell(Table::kFunction, dim, column::Function::domain));
      if (!options.wants(domain) || api_of(domain) != api) return {};
      return Name(trace.text(Table::kFunction, dim, column::Function::name));
    }));
  }
  TACHO_TRY(add("marker_api", "MARKER_API", Table::kMarker,
                [&](int64_t dim) { return Name(trace.text(Table::kLabel, dim, column::Label::name)); }));
  return domains;
}

analysis::Sums total_of(const DomainSums& domain) {
  analysis::Sums all;
  for (const StatisticsRow& row : domain.rows) {
    trace::Summary part;
    part.count = row.sums.count;
    part.unknown = row.sums.unknown;
    part.sum = row.sums.total;
    part.min = row.sums.min;
    part.max = row.sums.max;
    part.mean = row.sums.mean;
    part.m2 = row.sums.m2;
    part.bytes = row.sums.bytes;
    all.add(part);
  }
  return all;
}

}  // namespace tacho::format::csv
