// Finds calls and waits (known_calls.h).
#include "trace/write/known_calls.h"

#include <algorithm>

namespace tacho::trace {

using event::kUnknown;

Status KnownCalls::finish() {
  TACHO_TRY(calls_.finish());
  return waits_.finish_indexed();
}

KnownCalls::Times KnownCalls::find(int64_t process, int64_t correlation) {
  const auto* entry = calls_.find({process, correlation});
  if (entry == nullptr) return {};
  Times times = entry->value;
  const auto* const end = calls_.entries().data() + calls_.size();
  for (++entry; entry != end && entry->key == CallKey{process, correlation}; ++entry) {
    const Times& other = entry->value;
    times.start = std::min(times.start, other.start);
    if (other.end != kUnknown) times.end = times.end == kUnknown ? other.end : std::max(times.end, other.end);
    times.copies = times.copies || other.copies;
  }
  return times;
}

std::span<const HostWait> KnownCalls::waits(int64_t process, int64_t from) const {
  const std::span<const HostWait> all = waits_.all();
  const auto first = std::lower_bound(all.begin(), all.end(), HostWait{process, 0, from, 0, false});
  const auto last = std::lower_bound(first, all.end(), HostWait{process + 1, 0, INT64_MIN, 0, false});
  return all.subspan(static_cast<size_t>(first - all.begin()), static_cast<size_t>(last - first));
}

}  // namespace tacho::trace
