// Durations by name for each domain that has records, for the *_stats.csv files and rocprofv3's summaries.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/csv/parts.h"
#include "format/shared/options.h"
#include "walk/names/names.h"

namespace tacho::format::csv {

struct DomainSums {
  std::string file;    // "kernel", "hip_api": <prefix>_<file>_stats.csv
  std::string domain;  // "KERNEL_DISPATCH", "HIP_API"
  std::vector<StatisticsRow> rows;
};
/// Domains wanted by the options, in rocprofv3's order, without those that have no records. From summaries alone.
/// `without`: tables that are left out.
Result<std::vector<DomainSums>> domain_sums(const trace::Trace& trace, const ExportOptions& options,
                                            walk::KernelNames& kernels, std::span<const event::Table> without = {});
/// All rows of a domain together.
analysis::Sums total_of(const DomainSums& domain);

}  // namespace tacho::format::csv
