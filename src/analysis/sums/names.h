// How `tacho watch -o FILE.tacho` keeps its sums in a trace: each is a counter track with a reading for each period. A
// value is the period's sum divided by its length, so that a viewer may draw periods of different lengths beside each
// other.
//
//   track.category   "watch.kernel", "watch.graph", "watch.copy", "watch.fill", "watch.wait", "watch.allocation";
//                    "watch.gpu" for telemetry, whose values are means; "watch.period" for the length of each period, s
//   counter.block    which sum it is, below
//   counter.text     what was summed up: "vecCopy 4096/256"
#pragma once

#include <string_view>

namespace tacho::analysis {

inline constexpr std::string_view kSumCategory = "watch.";
inline constexpr std::string_view kPeriodCategory = "watch.period";
inline constexpr std::string_view kGpuCategory = "watch.gpu";

inline constexpr std::string_view kCountBlock = "watch.count";  ///< operations a second
inline constexpr std::string_view kBytesBlock = "watch.bytes";  ///< B/s
inline constexpr std::string_view kTimedBlock = "watch.timed";  ///< timed operations a second
inline constexpr std::string_view kUntoldBlock =
    "watch.untold";                                             ///< operations a second of whose time nothing is known
inline constexpr std::string_view kTimeBlock = "watch.time";    ///< estimated time of the others, ns/s
inline constexpr std::string_view kErrorBlock = "watch.error";  ///< its standard error by chance, ns/s
inline constexpr std::string_view kCommonBlock = "watch.common";  ///< by how much all times may be off alike, ns/s
inline constexpr std::string_view kGaugeBlock = "watch.gauge";    ///< a mean of telemetry, in its own unit

}  // namespace tacho::analysis
