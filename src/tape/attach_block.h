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

/// A process that listens (tacho_listen) has a file in memory with this block, which tacho finds among the process's
/// descriptors and fills in instead of stopping a thread. It cannot shrink (F_SEAL_SHRINK).
enum class ListenState : uint32_t { kFree = 0, kAsked = 1, kTaken = 2 };
struct ListenBlock {
  char magic[16];               // kListenMagic
  uint32_t version;             // kAttachVersion
  uint32_t pid;                 // of the process that listens, as it sees itself: children inherit the file
  std::atomic<uint32_t> state;  // ListenState, a futex: tacho asks, the process takes and frees
  uint32_t pad;
  AttachBlock block;  // entry, code and data_bytes are 0
};
inline constexpr char kListenMagic[16] = "tacho listens 1";
/// The file's name, as /proc/PID/fd shows it.
inline constexpr const char* kListenName = "tacho-listen";
inline constexpr const char* kListenLink = "/memfd:tacho-listen (deleted)";
/// The function of libtacho.so that the stub jumps to: void*(AttachBlock*), on a thread of its own.
inline constexpr const char* kAttachEntry = "tacho_attach_enter";

}  // namespace tacho::tape
