// Writes tables of calls and of sampled stacks in timemory's text and JSON layout, like rocprof-sys's wall_clock-*.txt
// and sampling_*-*.txt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trace/trace.h"

namespace tacho::format::timemory {

struct TimemoryRow {
  std::string label;   // without prefix
  int64_t thread = 0;  // number within the process
  int depth = 0;
  int64_t count = 0;
  double sum = 0, min = 0, max = 0;  // in the component's base unit (seconds, %, count)
  double sum_of_squares = 0;
  double inside = 0;  // the part of `sum` spent in its children
};

/// A quantity with its rows, parents before children.
struct Component {
  std::string name;   // "wall_clock": METRIC and the file's name
  std::string title;  // "REAL-CLOCK TIMER (I.E. WALL-CLOCK TIMER)"
  std::string description;
  std::string unit;  // as shown; values are multiplied by `scale` to get it
  double scale = 1;
  bool statistics = true;    // with columns MIN, MAX, VAR, STDDEV
  bool counts_only = false;  // trip_count
  std::vector<TimemoryRow> rows;
};

struct Options {
  int64_t process = 0;  // row of table process; 0 = the launched program, if nothing of it was recorded
  std::string name;     // for a process that has none
  bool collapse_threads = false, flat = false, timeline = false;
  int64_t max_depth = 65535, max_width = 120;
  int precision = 6;
  bool scientific = false, tree = true;
  std::string time_unit = "sec";
  int64_t rank = 0;
  uint64_t tables = ~0ull;
};

/// Calls of device APIs, markers and the work that they launched, by thread and place. Device work is below the call
/// that launched it; a thread's root is the process's name or "start_thread".
Result<Component> wall_clock(const trace::Trace& trace, const Options& options);
/// Sampled stacks: sampling_wall_clock or sampling_cpu_clock (seconds), and sampling_percent. Empty if the trace has no
/// samples.
Result<std::vector<Component>> sampled(const trace::Trace& trace, const Options& options);
Component trip_count(const Component& wall_clock);

std::string to_text(const Component& component, const Options& options);
std::string to_json(const Component& component, const Options& options);
/// The seconds in a unit ("msec"); nullopt = unknown unit.
std::optional<double> unit_seconds(std::string_view unit);

}  // namespace tacho::format::timemory
