// The summary tables of rocprofv3 (-S, -D, --summary-groups).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "format/format.h"
#include "trace/trace.h"

namespace tacho::cli::rocprofv3 {

struct SummaryRequest {
  bool all = false, per_domain = false;
  std::vector<std::string> groups;  // regular expressions over names of domains
  std::string unit = "nsec";        // sec, msec, usec, nsec
};

/// The tables as text, one after the other; process: row, 0 = all.
Result<std::string> summary_tables(const trace::Trace& trace, const SummaryRequest& request,
                                   const format::ExportOptions& options);
/// Checks the regular expressions.
Status check_groups(const std::vector<std::string>& groups);

}  // namespace tacho::cli::rocprofv3
