// Functions of a driver that `tacho watch PID --patch-entries` changes: what libtacho-watch.so in the program asks
// tacho for, which writes the code from outside while all threads are stopped. The program's side fills a patch, and
// the state tells who may change it.
//
//   function:  [endbr64] jmp ───►  room + kWatchPatchStub: jmp hook
//              ...       ◄──────┐
//                               │  hook calls the word `next`, which holds `room`
//   room:      [endbr64] the function's first instructions; jmp behind them
#pragma once

#include <atomic>
#include <cstdint>

namespace tacho::event {

inline constexpr uint64_t kWatchPatchMagic = 0x3174637061776f74;  // "towapct1"
inline constexpr uint32_t kMostWatchPatches = 512;
/// Bytes of code for each; and where in them the way to the hook lies.
inline constexpr uint32_t kWatchPatchRoom = 128, kWatchPatchStub = 96;

enum class WatchPatchState : uint32_t {
  kFree,
  kWanted,    ///< tacho is to write it
  kPatched,   ///< the function leads to the hook
  kRefused,   ///< tacho cannot; words that hold the function's address are led to the hook instead
  kTakenOut,  ///< the function is as it was
};

struct WatchPatch {
  std::atomic<WatchPatchState> state;
  uint32_t at;     ///< from the function's beginning to the first byte that was changed
  uint8_t own[8];  ///< what was there
  uint64_t function, hook;
  uint64_t next;  ///< of the word by which the hook calls the function
  uint64_t room;  ///< for the code, near the function
  char name[64];
};

enum class WatchPatchStage : uint32_t {
  kThere,    ///< tacho may write what is wanted
  kLeaving,  ///< the program's side waits for all of it to be taken out
  kOut,      ///< it has been, as far as tacho could
};

struct WatchPatches {
  uint64_t magic;
  uint32_t size;                   ///< of all of this, bytes
  std::atomic<uint32_t> asked;     ///< how often the program's side has asked for some
  std::atomic<uint32_t> answered;  ///< the last time that tacho has answered
  std::atomic<uint32_t> seen;      ///< the last answer that the program's side has seen
  std::atomic<WatchPatchStage> stage;
  WatchPatch each[kMostWatchPatches];
};

}  // namespace tacho::event
