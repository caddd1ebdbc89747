// Copies one trace into another. Dimension rows are matched by value, so that equal rows of two traces become one.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

namespace tacho::trace {

struct CopyOptions {
  int64_t run = 0;  // added to process.run of copied processes; see merge
  /// True keeps a row of a timed fact, reading, counter value or link; nullptr keeps all. `row` has all columns.
  std::function<bool(event::Table table, const int64_t* row)> keep;
  bool only_used = false;                         // leave out dimension rows and strings that no kept row refers to
  int64_t time_shift = 0;                         // ns, added to every time: for traces of another machine's clock
  std::function<int64_t(int64_t time)> time_map;  // in place of time_shift, where a clock also drifts or jumps
  /// Whose the devices of the machine are that have no uuid, and its lines without a process or device (telemetry): a
  /// row of table process, given the target's row of the first one; 0 = the target's machine, as without it. Those of
  /// two machines may differ by nothing else.
  std::function<int64_t(int64_t first_process)> device_owner;
  /// Told of each row of table track which row of the target it became.
  std::function<void(int64_t row, int64_t target)> track;
  bool clocks = true;  // copy clock tuples; a file can hold those of only one machine
};

/// Appends every fact, dimension, property, note and loss of `from` to `writer`.
Status copy_into(const Trace& from, TraceWriter& writer, const CopyOptions& options = {});

}  // namespace tacho::trace
