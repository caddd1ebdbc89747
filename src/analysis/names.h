// Rows that bear one name brought together, for any number of rows and names: tables of them lie in temporary files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "trace/scratch.h"

namespace tacho::analysis {

/// Up to so many names, equal values are sorted by name; beyond, by the names' first rows.
inline constexpr size_t kSortedByName = 20'000;

class SameNames {
 public:
  /// `name` gives the name of each of the rows 0 ... rows - 1.
  static Result<SameNames> make(int64_t rows, const std::function<std::string(int64_t)>& name);
  /// The first row that bears the row's name. Contract: 0 <= row < rows.
  int64_t first(int64_t row) const { return static_cast<const int64_t*>(first_.data())[row]; }
  /// How many different names there are.
  size_t names() const { return names_; }

 private:
  trace::Scratch first_;
  size_t names_ = 0;
};

}  // namespace tacho::analysis
