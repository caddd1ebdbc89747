// The ranges that are open on each track at a moment of a walk: stacks of push/pop markers, operators, functions.
#pragma once

#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "base/saturating.h"
#include "event/schema.h"

namespace tacho::walk {

/// `Value`: a walk's facts about a range. Ranges come in ascending order of start.
template <typename Value>
class OpenRanges {
 public:
  struct Range {
    int64_t end;  // the largest int64 for one that never ends
    Value value;
  };

  /// A range of `duration` (event::kUnknown: it never ended) begins; those that end by then are closed. Of ranges that
  /// begin together, the one that ends later is around the other, whichever comes first.
  void push(int64_t track, int64_t start, int64_t duration, Value value) {
    std::vector<Range>& stack = at(track, start);
    const int64_t end =
        duration == event::kUnknown ? std::numeric_limits<int64_t>::max() : saturating_add(start, duration);
    auto place = stack.end();
    while (place != stack.begin() && (place - 1)->end < end) --place;
    stack.insert(place, Range{end, std::move(value)});
  }
  /// The ranges of a track that are open at `time`, the innermost last. Valid until the next call for another track.
  std::vector<Range>& at(int64_t track, int64_t time) {
    std::vector<Range>& stack = stacks_[track];
    while (!stack.empty() && stack.back().end <= time) stack.pop_back();
    return stack;
  }

 private:
  std::unordered_map<int64_t, std::vector<Range>> stacks_;
};

}  // namespace tacho::walk
