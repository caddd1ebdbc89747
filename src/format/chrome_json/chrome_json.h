// Writes Chrome's trace event JSON, for Perfetto, chrome://tracing and every tool that reads torch.profiler's files.
#pragma once

#include "format/shared/options.h"

namespace tacho::format {

/// Writes target.file: valid JSON whatever bytes the names contain. Times are microseconds with three decimals since
/// baseTimeNanoseconds (UTC), so that a double holds every digit.
Status write_chrome_json(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
                         std::vector<std::string>& written);

}  // namespace tacho::format
