// A BlockDecoder's view of the process whose blocks it decodes.
#pragma once

#include <cstdint>
#include <string_view>

#include "event/schema.h"

namespace tacho::decode {

class ProcessContext {
 public:
  virtual ~ProcessContext() = default;
  /// Row of table process.
  virtual int64_t row() = 0;
  /// The process's string `number`; empty when unknown.
  virtual std::string_view text(uint32_t number) const = 0;
  /// Converts host ticks (the clock of the process's ProcessRecord) to trace time (CLOCK_MONOTONIC_RAW ns).
  virtual int64_t host_time(uint64_t ticks) const = 0;
  /// Converts what the process reads from CLOCK_MONOTONIC_RAW, ns, to trace time.
  virtual int64_t raw_time(int64_t ns) const { return ns; }
  /// Track of a thread by its kernel id; made at the first call.
  virtual int64_t thread_track(uint32_t tid) = 0;
  /// Call for every record of a command that the source counts as issued (tape::CommandCounts), whatever becomes of it.
  virtual void received(event::Table table) { static_cast<void>(table); }
};

}  // namespace tacho::decode
