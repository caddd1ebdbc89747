// Gets tacho's library into a process that already runs. One thread of the process is stopped for about a millisecond
// (ptrace) and made to call pthread_create; the new thread loads the library in its own time, while the program goes
// on. The stopped thread then continues where it was, its system call restarted as the kernel does it after a stop.
//
// The thread is stopped only where it holds no lock of libc's allocator or loader, as far as its stack shows. If
// pthread_create waits nevertheless, it is given up, the thread gets its registers back, and another place is tried.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "attach/remote_memory.h"
#include "attach/target.h"
#include "base/result.h"
#include "tape/attach_block.h"

namespace tacho::attach {

struct EnterRequest {
  std::string library;        ///< as tacho sees it
  std::string inner_library;  ///< as the process sees it; "" = it does not, and gets a copy in its memory
  std::string pool;           ///< or the table of tacho watch, as the process sees it
  double patience_s = 10;     ///< for the library to load and to answer
  /// Its function in which the new thread begins.
  std::string entry = tape::kAttachEntry;

  std::string library_name() const { return library.substr(library.rfind('/') + 1); }
};

struct EnterResult {
  double stopped_s = 0;   ///< how long one thread was stopped, over all attempts
  uint32_t attempts = 0;  ///< threads that were stopped
  bool parked = false;    ///< the library was there from an earlier attach
};

/// Lets threads go that had not stopped in time and have since: they wait in the kernel for something that nothing
/// interrupts. Call it now and then, from the thread that has called enter().
void release_late_threads();

/// Returns once the library has attached to the pool. After an error the process is as it was before.
Result<EnterResult> enter(const TargetFacts& facts, const EnterRequest& request);

}  // namespace tacho::attach
