// Rows by the hashes of their names (names.h).
#include "analysis/names.h"

#include <algorithm>

#include "base/files/sorted_file.h"
#include "trace/store/hash.h"

namespace tacho::analysis {

Result<SameNames> SameNames::make(int64_t rows, const std::function<std::string(int64_t)>& name) {
  struct Named {
    uint64_t high, low;
    int64_t row;
    bool operator<(const Named& other) const {
      return high != other.high ? high < other.high : low != other.low ? low < other.low : row < other.row;
    }
  };
  SortedFile<Named> by_hash(8u << 20);
  for (int64_t row = 0; row < rows; ++row) {
    const trace::Hash128 hash = trace::hash_128(name(row));
    by_hash.add({hash.high, hash.low, row});
  }
  TACHO_TRY(by_hash.finish());
  SameNames same;
  same.first_ = trace::Scratch::temporary(static_cast<size_t>(std::max<int64_t>(rows, 1)) * sizeof(int64_t));
  auto* const first = static_cast<int64_t*>(same.first_.data());
  Named one{}, before{};
  while (by_hash.next(one)) {
    if (same.names_ == 0 || one.high != before.high || one.low != before.low) {
      ++same.names_;
      before = one;
    }
    first[one.row] = before.row;
  }
  return same;
}

}  // namespace tacho::analysis
