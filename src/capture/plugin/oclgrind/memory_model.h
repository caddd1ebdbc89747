// The virtual GPU's memory: computes how it serves one instruction of one wave, in sectors and lines of global memory
// and banks of local memory. Pure arithmetic on the addresses of the active work-items.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace tacho::plugin {

inline constexpr unsigned kWaveSize = 32;
inline constexpr unsigned kSectorBytes = 32;
inline constexpr unsigned kLineBytes = 128;
inline constexpr unsigned kBanks = 32;
inline constexpr unsigned kBankBytes = 4;

/// One memory instruction of a wave: the address of each active work-item (bit of `mask`), all of `size` bytes.
struct WaveAccess {
  uint32_t mask = 0;
  uint32_t size = 0;
  std::array<uint64_t, kWaveSize> address;
};

struct GlobalCost {
  uint64_t bytes = 0;       ///< asked for by all work-items
  uint64_t used_bytes = 0;  ///< distinct bytes among them
  uint64_t sectors = 0, lines = 0;
  uint64_t conflicts = 0;  ///< work-items whose address an earlier one had, on which atomics serialise
};

/// Calls line(number) for every distinct line of 128 bytes, ascending.
template <typename OnLine>
GlobalCost global_cost(const WaveAccess& access, OnLine&& line) {
  GlobalCost cost;
  if (access.size == 0) return cost;
  std::array<uint64_t, kWaveSize> sorted;
  size_t count = 0;
  bool ascending = true;
  for (unsigned lane = 0; lane < kWaveSize; ++lane)
    if ((access.mask >> lane & 1) != 0) {
      if (count > 0 && access.address[lane] < sorted[count - 1]) ascending = false;
      sorted[count++] = access.address[lane];
    }
  if (!ascending) std::sort(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(count));
  cost.bytes = static_cast<uint64_t>(count) * access.size;
  uint64_t next_byte = 0, next_sector = 0, next_line = 0;  // first ones not counted yet
  for (size_t i = 0; i < count; ++i) {
    const uint64_t first = sorted[i], end = first + access.size;
    if (i > 0 && sorted[i] == sorted[i - 1]) {
      ++cost.conflicts;
      continue;
    }
    const uint64_t from = std::max(first, next_byte);
    if (end > from) cost.used_bytes += end - from;
    next_byte = std::max(next_byte, end);
    const uint64_t first_sector = std::max(first / kSectorBytes, next_sector),
                   end_sector = (end - 1) / kSectorBytes + 1;
    if (end_sector > first_sector) cost.sectors += end_sector - first_sector;
    next_sector = std::max(next_sector, end_sector);
    const uint64_t first_line = std::max(first / kLineBytes, next_line), end_line = (end - 1) / kLineBytes + 1;
    for (uint64_t each = first_line; each < end_line; ++each) {
      ++cost.lines;
      line(each);
    }
    next_line = std::max(next_line, end_line);
  }
  return cost;
}

struct LocalCost {
  uint64_t bytes = 0;
  uint64_t cycles = 0;     ///< in which the banks served the instruction
  uint64_t conflicts = 0;  ///< of these, beyond one for each phase
};

/// A bank delivers one word of 4 bytes a cycle, to all work-items that want it. Work-items that ask for more than one
/// word are served in phases of consecutive ones, 32 words of an aligned access each: 16 work-items for 8 bytes, 8 for
/// 16. A phase takes as many cycles as its busiest bank has distinct words; of an atomic every work-item's word counts.
inline LocalCost local_cost(const WaveAccess& access, bool atomic) {
  LocalCost cost;
  if (access.size == 0) return cost;
  const unsigned words = (access.size + kBankBytes - 1) / kBankBytes;
  const unsigned lanes = std::max(1u, kBanks / words);
  for (unsigned begin = 0; begin < kWaveSize; begin += lanes) {
    const unsigned end = std::min(begin + lanes, kWaveSize);
    // Words wanted, sorted by (bank, word), then counted by bank. A phase wants at most 64 words when its accesses are
    // unaligned; larger types go lane by lane.
    std::array<uint64_t, 512> wanted;
    size_t count = 0;
    unsigned active = 0;
    for (unsigned lane = begin; lane < end; ++lane) {
      if ((access.mask >> lane & 1) == 0) continue;
      ++active;
      const uint64_t first = access.address[lane] / kBankBytes;
      const uint64_t last = (access.address[lane] + access.size - 1) / kBankBytes;
      for (uint64_t word = first; word <= last && count < wanted.size(); ++word)
        wanted[count++] = (word % kBanks) << 56 | (word & 0x00FFFFFFFFFFFFFFull);
    }
    if (active == 0) continue;
    cost.bytes += static_cast<uint64_t>(active) * access.size;
    std::sort(wanted.begin(), wanted.begin() + static_cast<ptrdiff_t>(count));
    uint64_t busiest = 0, here = 0;
    for (size_t i = 0; i < count; ++i) {
      const bool same_bank = i > 0 && wanted[i] >> 56 == wanted[i - 1] >> 56;
      if (!same_bank) here = 0;
      if (atomic || !same_bank || wanted[i] != wanted[i - 1]) ++here;
      busiest = std::max(busiest, here);
    }
    cost.cycles += busiest;
    // An access wider than all banks together needs several cycles even without conflicts.
    cost.conflicts += busiest - std::min<uint64_t>(busiest, std::max(1u, words / kBanks));
  }
  return cost;
}

/// Distinct words of 4 bytes, which a constant cache delivers one after the other.
inline uint64_t distinct_words(const WaveAccess& access) {
  WaveAccess aligned = access;
  for (unsigned lane = 0; lane < kWaveSize; ++lane)
    if ((access.mask >> lane & 1) != 0) aligned.address[lane] &= ~uint64_t{kBankBytes - 1};
  aligned.size = (access.size + kBankBytes - 1) / kBankBytes * kBankBytes;
  return global_cost(aligned, [](uint64_t) {}).used_bytes / kBankBytes;
}

}  // namespace tacho::plugin
