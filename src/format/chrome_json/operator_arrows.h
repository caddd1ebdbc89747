// Arrows between a framework's operators: from a forward operator to the one that goes back through it.
#pragma once

#include <compare>
#include <cstdint>

#include "base/files/sorted_file.h"
#include "trace/read/rows.h"

namespace tacho::format {

/// Finds the ends of arrows by operator, in bounded memory.
class OperatorArrows {
 public:
  /// Reads table link. Errors: temporary files cannot be written or read.
  Status read(const trace::Trace& trace) {
    using L = event::column::Link;
    Status status;
    int64_t number = 0;
    for (const auto& links : trace::chunks<L::kind, L::process, L::from, L::to>(trace, status))
      for (size_t i = 0; i < links.size(); ++i) {
        if (links.kind[i] != event::LinkKind::kFlow) continue;
        ends_.add({links.process[i], links.from[i]}, {++number, true});
        ends_.add({links.process[i], links.to[i]}, {number, false});
      }
    TACHO_TRY(status);
    return ends_.finish();
  }

  struct ArrowEnd {
    int64_t arrow;  // numbers from 1
    bool begins;
  };
  /// Calls f(ArrowEnd) for each arrow's end at the operator.
  template <typename F>
  void each(int64_t process, int64_t operation, F f) {
    const Owner key{process, operation};
    const auto* end = ends_.find(key);
    if (end == nullptr) return;
    const auto* const stop = ends_.entries().data() + ends_.entries().size();
    for (; end != stop && end->key == key; ++end) f(end->value);
  }

 private:
  struct Owner {
    int64_t process, operation;  // a correlation, as in table link
    auto operator<=>(const Owner&) const = default;
  };
  KeyIndex<ArrowEnd, Owner> ends_;
};

}  // namespace tacho::format
