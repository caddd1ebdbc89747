// Finds the API call that caused device work, for writers that number the calls: an index from (process, correlation)
// to a call's number. It spills to disk, so it finds every call however large the trace is.
#pragma once

#include <cstdint>

#include "base/files/sorted_file.h"
#include "trace/call_key.h"

namespace tacho::walk {

class Causes {
 public:
  void add(int64_t process, int64_t correlation, int64_t number) { index_.add({process, correlation}, number); }
  Status finish() { return index_.finish(); }
  /// The number of the first call added with this correlation; 0 = none. Call finish() first.
  int64_t find(int64_t process, int64_t correlation) {
    const auto* const found = correlation != 0 ? index_.find({process, correlation}) : nullptr;
    return found != nullptr ? found->value : 0;
  }

 private:
  KeyIndex<int64_t, trace::CallKey> index_;
};

}  // namespace tacho::walk
