// Finds the API call that caused device work where memory may not hold the calls: an index from (process, correlation)
// to what the asker keeps of a call. It spills to disk, so it finds every call however large the trace is.
#pragma once

#include <cstdint>

#include "base/files/sorted_file.h"
#include "trace/call_key.h"
#include "walk/time/span.h"

namespace tacho::walk {

/// `Kept`: trivially copyable; a number where the asker counts the calls.
template <typename Kept>
class Causes {
 public:
  /// Of several calls with one correlation the first counts, as in CallIndex. Correlation 0 adds nothing.
  void add(int64_t process, int64_t correlation, const Kept& call) {
    if (correlation != 0) index_.add({process, correlation}, call);
  }
  Status finish() { return index_.finish(); }
  /// Nullptr = no such call. Call finish() first.
  const Kept* find(int64_t process, int64_t correlation) {
    const auto* const found = correlation != 0 ? index_.find({process, correlation}) : nullptr;
    return found != nullptr ? &found->value : nullptr;
  }

 private:
  KeyIndex<Kept, trace::CallKey> index_;
};

/// When each call of a GPU's runtime (calls_of_runtimes()) began and returned; one that had not returned when the trace
/// was closed ends where it began. `process`: a row; 0 = of all. Errors: damaged data, no room for a temporary file.
Result<Causes<Span>> runtime_calls(const trace::Trace& trace, int64_t process);

}  // namespace tacho::walk
