// Words of rocpd databases that the strings of a trace may lack, with negative codes: -1 is the first.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "event/schema.h"

namespace tacho::format::rocpd {

/// The extdata of the agent that tacho adds for the host: no device of the trace.
inline constexpr std::string_view kHostAgent = R"({"tacho": "host"})";

/// Texts that tacho itself puts into a database.
enum class RocpdWord : uint8_t {
  kKernelDispatch,
  kMemoryCopy,
  kMemoryAllocation,
  kMarkerCoreApi,
  kMemoryFill,
  kRoctxThreadRange,
  kRoctxProcessRange,
  kRoctxMark,
  kGpu,
  kCpu,
  kAbs,
  kRealMemory,
  kAlloc,
  kFree,
  kTacho,
  kHipGraph,
};
constexpr int64_t code_of(RocpdWord word) {
  return -static_cast<int64_t>(word) - 1;
}

/// All words: those of RocpdWord, then the names of API domains and of directions of copies.
class RocpdWords {
 public:
  RocpdWords();
  size_t size() const { return texts_.size(); }
  /// "" for codes that are no word's: damaged files may hold any code.
  std::string_view text(int64_t code) const {
    const uint64_t place = ~static_cast<uint64_t>(code);
    return place < texts_.size() ? texts_[place] : std::string_view();
  }
  /// The code of a domain's or a direction's name, given a cell; 0 if it has none.
  int64_t of_domain(int64_t cell) const { return at<event::Domain>(domains_, cell); }
  int64_t of_direction(int64_t cell) const { return at<event::CopyDirection>(directions_, cell); }

 private:
  template <typename E, size_t kCount>
  static int64_t at(const std::array<int64_t, kCount>& codes, int64_t cell) {
    const auto place = static_cast<uint64_t>(cell);
    return codes[place < kCount ? place : static_cast<size_t>(E::kUnknown)];
  }
  int64_t code(std::string_view text);

  std::vector<std::string_view> texts_;
  std::array<int64_t, static_cast<size_t>(event::Domain::kEnd)> domains_{};
  std::array<int64_t, static_cast<size_t>(event::CopyDirection::kEnd)> directions_{};
};
const RocpdWords& words();

}  // namespace tacho::format::rocpd
