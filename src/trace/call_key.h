// What identifies an API call among all calls of a trace: its correlation within its process.
#pragma once

#include <cstdint>

namespace tacho::trace {

/// Sorts by process, then by correlation. A key of base/files/sorted_file.h's KeyIndex.
struct CallKey {
  int64_t process, correlation;
  bool operator==(const CallKey&) const = default;
  bool operator<(const CallKey& other) const {
    return process != other.process ? process < other.process : correlation < other.correlation;
  }
};

}  // namespace tacho::trace
