// Counters of a run in columns: one double a dispatch and counter, NaN where nothing was recorded.
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

/// Hash and comparison that let string keys be looked up by string_view.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
template <typename V>
using StringMap = std::unordered_map<std::string, V, StringHash, std::equal_to<>>;

/// Which columns a caller will ask for; reading leaves out all others. An instance counter is wanted by the
/// name in front of its bracket ("TCC_HIT[" wants every channel of TCC_HIT).
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

/// Column store with a fixed number of rows. As long as all tables together have at most kSpillBytes they
/// live in memory; beyond, values stand in an unlinked temporary file, so that runs of any size cost little
/// anonymous memory.
class CounterTable {
 public:
  static constexpr size_t kSpillBytes = size_t{64} << 20;

  CounterTable() = default;

  /// A table of these columns with room for `rows` rows, all NaN. Fails when neither memory nor a temporary
  /// file of that size can be had.
  static Result<CounterTable> create(std::vector<std::string> names, size_t rows);

  size_t rows() const { return rows_; }
  size_t column_count() const { return names_.size(); }
  const std::vector<std::string>& names() const { return names_; }

  /// The column, `rows()` values, or an empty span when there is none of that name.
  std::span<const double> column(std::string_view name) const;
  bool has(std::string_view name) const { return index_.find(name) != index_.end(); }

  double* data(size_t column) { return store_.get() + column * capacity_; }
  const double* data(size_t column) const { return store_.get() + column * capacity_; }

  /// Forgets the rows behind the first `rows` ones.
  void shrink_rows(size_t rows) { rows_ = rows; }

  /// The same columns with the rows in another order: row i of the result is row order[i], all NaN where
  /// order[i] is kNoRow.
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
