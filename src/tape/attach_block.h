// What tacho and its library tell each other in a program that is already running: one block of the program's memory,
// which tacho fills in before a thread of the program starts the code of src/attach/intruder.cpp, and reads afterwards.
// Everything that tacho reads from it is untrusted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tacho::tape {

enum class AttachState : uint32_t {
  kStarted = 0,
  kNotLoaded = 1,  // the loader refused libtacho.so; `loader_error` points to its sentence
  kRefused = 2,    // libtacho.so does not attach; `message` says why
  kAttached = 3,
  kSeen = 4,  // tacho has read the answer: the block may go
};

struct AttachBlock {
  // For the stub, which knows these places
  uint64_t entry;                // 0: load `library` first and look for `entry_name`
  uint64_t open, symbol, error;  // dlopen, dlsym, dlerror
  std::atomic<uint64_t> loader_error;
  std::atomic<uint32_t> state;  // AttachState
  uint32_t version;             // kAttachVersion
  char entry_name[40];
  char library[1024];  // libtacho.so, as the program sees it
  // For the library
  uint64_t code, code_bytes;  // the stub
  uint64_t data_bytes;        // this block and what lies behind it; both to be unmapped when tacho has read the answer
  int32_t descriptor;         // to be closed; -1 = none
  uint64_t schema_hash;
  char pool[1024];    // the pool, as the program sees it
  char message[512];  // 0-terminated
};
static_assert(offsetof(AttachBlock, open) == 8 && offsetof(AttachBlock, symbol) == 16 &&
              offsetof(AttachBlock, error) == 24 && offsetof(AttachBlock, loader_error) == 32 &&
              offsetof(AttachBlock, state) == 40 && offsetof(AttachBlock, entry_name) == 48 &&
              offsetof(AttachBlock, library) == 88);

inline constexpr uint32_t kAttachVersion = 1;
/// The function of libtacho.so that the stub jumps to: void*(AttachBlock*), on a thread of its own.
inline constexpr const char* kAttachEntry = "tacho_attach_enter";

}  // namespace tacho::tape
