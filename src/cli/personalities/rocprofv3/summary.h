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
  std::vector<std::string> groups;  // regular expressions that match names of domains
  std::string unit = "nsec";        // sec, msec, usec, nsec
  bool indented = true;             // as on a terminal; false for files
};

/// The tables of options.process as text, one after the other. A group that matches no domain with records gives no
/// table and is added to `unmatched`.
Result<std::string> summary_tables(const trace::Trace& trace, const SummaryRequest& request,
                                   const format::ExportOptions& options, std::vector<std::string>& unmatched);
/// Fails on an invalid regular expression; the error names the group.
Status check_groups(const std::vector<std::string>& groups);

}  // namespace tacho::cli::rocprofv3
