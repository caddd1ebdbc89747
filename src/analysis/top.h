// The load of each GPU, for `tacho busy`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "trace/trace.h"
#include "walk/names/work_owner.h"

namespace tacho::analysis {

struct DeviceLoad {
  int64_t device = 0;  // its first row; 0 = not known
  int64_t index = 0;   // the vendor's number
  std::string name;
  int64_t operations = 0;  // dispatches, copies, fills
  int64_t sum = 0;         // ns, durations added up: more than `busy` where operations overlap
  int64_t busy = 0;        // ns in which at least one ran
  int64_t first = 0, last = 0;
  walk::WorkOwner owner;
};
/// Per physical device (DeviceNumbers), in the order in which they appeared; first and last are the device's own.
Result<std::vector<DeviceLoad>> device_load(const trace::Trace& trace);

}  // namespace tacho::analysis
