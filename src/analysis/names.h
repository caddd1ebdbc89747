// Finds the rows that share a name, for any number of rows and names. Its tables lie in temporary files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "trace/write/scratch.h"

namespace tacho::analysis {

/// Answers sort rows of equal value by name up to this many names, beyond that by the names' first rows.
inline constexpr size_t kSortedByName = 20'000;

class SameNames {
 public:
  /// `name` returns the name of each row 0 ... rows - 1.
  static Result<SameNames> make(int64_t rows, const std::function<std::string(int64_t)>& name);
  /// The first row with the same name as `row`. Contract: 0 <= row < rows.
  int64_t first(int64_t row) const { return static_cast<const int64_t*>(first_.data())[row]; }
  /// The number of distinct names.
  size_t names() const { return names_; }

 private:
  trace::Scratch first_;
  size_t names_ = 0;
};

}  // namespace tacho::analysis
