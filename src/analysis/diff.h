// Compares two traces name by name.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/answer.h"
#include "trace/trace.h"

namespace tacho::analysis {

enum class DiffBy : uint8_t {
  kKernel,
  kApi,     // without operators and functions that call each other (functions_nest())
  kMarker,  // ranges of the program (walk::ProgramRanges)
  kCopy,
  // GPU time under the innermost framework operator open at the launch, one value per operator call; where one trace
  // alone has that operator, by what both have (operators/common_parents.h)
  kOperator,
};
Result<DiffBy> parse_diff_by(std::string_view text);

/// One side of a comparison.
struct Distribution {
  int64_t calls = 0;   // with a known duration
  int64_t total = 0;   // ns
  double mean = 0;     // ns
  int64_t median = 0;  // ns: the lower one of an even number
  int64_t p95 = 0;     // ns: the smallest duration that at least 95 % of the calls do not exceed
};
struct DiffRow {
  std::string name;
  bool in_a = false, in_b = false;
  Distribution a, b;
  int64_t difference = 0;  // ns, total of b - total of a
  /// Two-sided p value of the Mann-Whitney U test of the hypothesis that both sides' durations have one distribution
  /// (normal approximation, corrected for ties). NaN if a side has fewer than 8 calls.
  double p = 0;
};
struct Diff {
  /// Gives the rows one by one, largest |difference| first; false at the end. Sorts ties by name up to
  /// kSortedByName names. The rows, maybe millions, lie in a temporary file.
  std::function<bool(DiffRow&)> next;
  size_t rows = 0;  // number of rows
  /// ns: the sum of what is compared; of calls and markers the time in them, without what lies inside of another.
  int64_t total_a = 0, total_b = 0;
  std::vector<std::string> remarks;
};

/// Both traces must outlive the result. `input_shapes`: operators with other shapes of inputs are other names, such as
/// "aten::mm [[8, 3], [3, 5]]" (kOperator alone); an error for a trace that holds none.
Result<Diff> diff(const trace::Trace& a, const trace::Trace& b, DiffBy by, bool input_shapes = false);

/// What changed and whether it is more than noise, in one or two sentences; "" for a comparison without rows.
/// `largest`: the first row that diff.next() gave. Durations of a name differ by more than noise if p times the number
/// of names that were compared is below 0.05, so that the largest of many changes is not taken for one by chance.
std::string diff_sentence(const Diff& diff, const DiffRow& largest);

/// Returns `diff` as a table that takes its rows from it: read only one of the two, once.
report::Answer diff_answer(const Diff& diff);

}  // namespace tacho::analysis
