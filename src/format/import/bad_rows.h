// Rows that a reader leaves out because they make no sense: why, how many, and the first of each kind.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "event/schema.h"
#include "trace/write/writer.h"

namespace tacho::format::imported {

class BadRows {
 public:
  /// Counts `count` rows of `table` as LossReason::kBadInput. `reason` says what is wrong with each ("an event without
  /// an id"), `place` is the number of the row in its file from 1 (0 = not known), `name` its name ("" = none).
  void add(trace::TraceWriter& writer, event::Table table, std::string_view reason, int64_t place,
           std::string_view name, int64_t count = 1);
  /// Adds a note for each reason: `3 rows are left out: an event without an id; the first is event 17, "step"`.
  void say(trace::TraceWriter& writer) const;

 private:
  struct Told {
    int64_t count = 0, place = 0;
    std::string name;
  };
  std::map<std::string, Told, std::less<>> reasons_;
};

}  // namespace tacho::format::imported
