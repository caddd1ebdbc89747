// How a library answers the tacho that has brought it into a running program (tape/attach_block.h).
#pragma once

#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tape/attach_block.h"

namespace tacho::capture {

/// Waits until tacho has read the answer, two seconds at most, and gives the block's pages back.
inline void give_block_back(tape::AttachBlock& block) {
  constexpr int64_t kPatience = 2'000'000'000;
  const int64_t begin = read_clock(CLOCK_MONOTONIC);
  while (block.state.load(std::memory_order_acquire) != static_cast<uint32_t>(tape::AttachState::kSeen) &&
         read_clock(CLOCK_MONOTONIC) - begin < kPatience) {
    const timespec moment{0, 200'000};
    nanosleep(&moment, nullptr);
  }
  if (block.code == 0) return;  // of a process that listens
  void* const code = reinterpret_cast<void*>(block.code);
  const uint64_t code_bytes = block.code_bytes, data_bytes = block.data_bytes;
  if (block.descriptor >= 0) close(block.descriptor);
  munmap(code, code_bytes);
  munmap(&block, data_bytes);
}

/// Tells tacho that it is in, or why not (`why` is not nullptr). The block is gone afterwards.
inline void answer_attach(tape::AttachBlock& block, const char* why) {
  if (why != nullptr) strncpy(block.message, why, sizeof block.message - 1);
  const tape::AttachState state = why != nullptr ? tape::AttachState::kRefused : tape::AttachState::kAttached;
  block.state.store(static_cast<uint32_t>(state), std::memory_order_release);
  give_block_back(block);
}

}  // namespace tacho::capture
