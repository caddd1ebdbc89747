// The counters of a run in columns: one double per dispatch and counter, NaN when not recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace tacho::workload {

/// Hash and comparison for looking up string keys by string_view.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
template <typename V>
using StringMap = std::unordered_map<std::string, V, StringHash, std::equal_to<>>;

/// The columns that a caller needs; reading skips all others. "TCC_HIT[" asks for every instance of TCC_HIT.
class WantedColumns {
 public:
  /// Everything.
  WantedColumns() = default;
  explicit WantedColumns(std::vector<std::string> names);
  bool contains(std::string_view column) const;

 private:
  bool all_ = true;
  StringMap<char> names_;
};

/// Column store with a fixed number of rows. All tables together keep up to kSpillBytes in memory; further values go to
/// an unlinked temporary file, so that runs of any size cost little anonymous memory.
class CounterTable {
 public:
  static constexpr size_t kSpillBytes = size_t{64} << 20;

  CounterTable() = default;

  /// Creates a table with these columns and `rows` rows, all NaN. Fails when there is neither memory nor a temporary
  /// file of that size.
  static Result<CounterTable> create(std::vector<std::string> names, size_t rows);

  size_t rows() const { return rows_; }
  size_t column_count() const { return names_.size(); }
  const std::vector<std::string>& names() const { return names_; }

  /// The rows() values of a column; empty when there is no such column.
  std::span<const double> column(std::string_view name) const;
  bool has(std::string_view name) const { return index_.find(name) != index_.end(); }

  double* data(size_t column) { return store_.get() + column * capacity_; }
  const double* data(size_t column) const { return store_.get() + column * capacity_; }

  /// Drops all rows after the first `rows`.
  void shrink_rows(size_t rows) { rows_ = rows; }

  /// The same columns with the rows in another order: row i of the result is row order[i], or all NaN if order[i] is
  /// kNoRow.
  static constexpr uint32_t kNoRow = ~uint32_t{0};
  Result<CounterTable> reordered(std::span<const uint32_t> order) const;

 private:
  std::vector<std::string> names_;
  StringMap<uint32_t> index_;
  std::shared_ptr<double> store_;
  size_t rows_ = 0;
  size_t capacity_ = 0;
};

}  // namespace tacho::workload
