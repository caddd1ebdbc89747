// Files of sums that `tacho watch -o FILE.tacho` wrote, for `tacho stats` and `tacho diff`.
#pragma once

#include <string>

#include "analysis/diff.h"
#include "analysis/sums/sums.h"
#include "report/answer.h"
#include "report/output.h"

namespace tacho::cli {

/// The words of two sides: files, or times as parse_time_range() takes them.
struct TwoSides {
  std::string a, b;
};

/// Prints what these commands print; the exit code. `fail_above`: percent, as --fail-above; negative: no limit.
int stats_of_sums(const trace::Trace& trace, const std::string& file, const std::string& by_text,
                  const report::ShowOptions& options);
int diff_times(const trace::Trace& trace, const std::string& file, const TwoSides& times, analysis::DiffBy by,
               const report::ShowOptions& options, double fail_above);
int diff_sums(const trace::Trace& a, const trace::Trace& b, const TwoSides& files, analysis::DiffBy by,
              const report::ShowOptions& options, double fail_above);

}  // namespace tacho::cli
