// The newest calls by process and correlation, with a walk's facts about each: device work finds its launch here.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/format.h"
#include "base/text/how_many.h"

namespace tacho::walk {

/// Host and device clocks may disagree: a call may begin up to this much after its work, ns.
inline constexpr int64_t kClockSlack = 100'000'000;

/// How far the calls of work that begins at `start` reach.
constexpr int64_t launched_by(int64_t start) {
  return start > std::numeric_limits<int64_t>::max() - kClockSlack ? start : start + kClockSlack;
}

/// Remembers the newest million calls. Of several calls with one correlation the first added counts, which is the
/// outermost: a driver's call lies within the runtime's.
template <typename Payload>
class CallIndex {
 public:
  static constexpr size_t kMostCalls = size_t{1} << 20;

  /// `calls`: an estimate of how many will come.
  explicit CallIndex(int64_t calls) {
    const auto expected = std::min(static_cast<size_t>(std::max<int64_t>(calls, 0)), kMostCalls / 2);
    const size_t buckets = std::bit_ceil(std::max<size_t>(expected / kWays * 2, 64));
    entries_.resize(buckets * kWays);
    oldest_.resize(buckets);
    mask_ = buckets - 1;
  }

  /// Nullptr, without adding anything, where the correlation is 0 or has a call. Valid until the next add().
  Payload* add(int64_t process, int64_t correlation, Payload payload) {
    if (correlation == 0 || at(process, correlation) != nullptr) return nullptr;
    const size_t bucket = bucket_of(process, correlation);
    Entry& entry = entries_[bucket * kWays + oldest_[bucket]];
    if (entry.correlation != 0) {
      int64_t& newest = forgotten_of_.try_emplace(entry.process, entry.correlation).first->second;
      newest = std::max(newest, entry.correlation);
    }
    entry = {correlation, std::move(payload), static_cast<int32_t>(process)};
    oldest_[bucket] = static_cast<uint8_t>((oldest_[bucket] + 1) % kWays);
    return &entry.payload;
  }

  /// Nullptr if no call with this correlation was added, or it was forgotten. Valid until the next add().
  Payload* find(int64_t process, int64_t correlation) {
    if (correlation == 0) return nullptr;
    if (Payload* const found = at(process, correlation)) return found;
    if (!forgotten_of_.empty())
      if (const auto gone = forgotten_of_.find(process); gone != forgotten_of_.end() && correlation <= gone->second)
        ++forgotten_;
    return nullptr;
  }

  /// How often find() asked for a call that may have been forgotten: the limit was hit.
  int64_t forgotten() const { return forgotten_; }

 private:
  static constexpr size_t kWays = 4;
  struct Entry {
    int64_t correlation = 0;
    Payload payload{};
    int32_t process = 0;  // row
  };

  size_t bucket_of(int64_t process, int64_t correlation) const {
    // A thread's ids are consecutive. Neighbours go to neighbouring buckets, so that the oldest calls are replaced
    // first.
    const auto id = static_cast<uint64_t>(correlation);
    return static_cast<size_t>(id + (id >> 40) * 0x9e3779b1u + static_cast<uint64_t>(process) * 0x85ebca6bu) & mask_;
  }
  Payload* at(int64_t process, int64_t correlation) {
    Entry* const first = &entries_[bucket_of(process, correlation) * kWays];
    for (size_t way = 0; way < kWays; ++way)
      if (first[way].correlation == correlation && first[way].process == process) return &first[way].payload;
    return nullptr;
  }

  std::vector<Entry> entries_;
  std::vector<uint8_t> oldest_;  // for each bucket, the entry to replace next
  size_t mask_ = 0;
  std::unordered_map<int64_t, int64_t> forgotten_of_;  // by process: the highest correlation that was replaced
  int64_t forgotten_ = 0;
};

/// The note of an answer if CallIndex::forgotten() is not 0.
inline std::string forgotten_sentence(int64_t forgotten) {
  return fmt::format("{} launched more than {} calls before {}",
                     how_many(forgotten, "operation was", "operations were"), CallIndex<char>::kMostCalls,
                     forgotten == 1 ? "it ran: its call was forgotten" : "they ran: their calls were forgotten");
}

}  // namespace tacho::walk
