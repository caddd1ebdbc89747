// The values of a statement's group: its record, and those that SELECT, HAVING and ORDER BY compute from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "query/engine/aggregate_plan.h"
#include "report/table.h"

namespace tacho::query {

/// Whether an aggregate keeps a value beside the number of its values.
inline bool has_value(SumFunction function) {
  return function != SumFunction::kCountRows && function != SumFunction::kCount;
}

/// The order of SQL: NULL, numbers, texts. Negative, 0 or positive.
int compare_cells(const report::Cell& a, const report::Cell& b);

/// A record is an array of width() cells: the codes of the terms of GROUP BY, then those of each aggregate: the number
/// of its values, and where has_value() their sum, least or greatest.
class GroupValues {
 public:
  /// The plan must outlive this.
  explicit GroupValues(const AggregatePlan& plan);
  size_t width() const { return fresh_.size(); }
  /// A record before its first row; codes are 0.
  const std::vector<int64_t>& fresh() const { return fresh_; }
  /// The first cell of an aggregate.
  size_t cell(size_t aggregate) const { return cells_[aggregate]; }

  /// Adds the sums of another record of the same group. False: overflow.
  bool merge(int64_t* into, const int64_t* other) const;
  /// Compares two groups by the values of their terms, NULLs first.
  int compare_terms(const int64_t* a, const int64_t* b) const;
  /// SQLite uses the directions of ORDER BY for its groups if there are as many terms.
  bool descending(size_t term) const {
    return plan_.order.size() == terms_ && term < terms_ && plan_.order[term].descending;
  }
  /// The value of a node of SELECT or HAVING.
  report::Cell finish(const int64_t* group, int node) const;
  /// Whether HAVING holds.
  bool passes(const int64_t* group) const;
  bool is_text(int node) const;
  /// A number that sorts like the first term of ORDER BY, if that is a number: it decides most comparisons.
  int64_t order_key(const int64_t* group) const;

 private:
  bool is_real(int node) const;

  const AggregatePlan& plan_;
  const size_t terms_;
  std::vector<int64_t> fresh_;
  std::vector<size_t> cells_;
  mutable std::string left_, right_;
};

}  // namespace tacho::query
