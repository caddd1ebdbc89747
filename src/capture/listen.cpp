// tacho_listen(): a program lets tacho attach without any of its threads being stopped. A thread of tacho's own sleeps
// on a word of a file in memory; tacho finds the file among the process's descriptors (src/attach/listen_file.cpp),
// which the kernel shows to the process's user and to root, and wakes the thread with the pool's path in it.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "capture/attached.h"
#include "capture/own_thread.h"
#include "tape/attach_block.h"
#include "tape/sleep.h"
#include "tape/writer.h"

namespace tacho::capture {
namespace {

using tape::ListenBlock;
using tape::ListenState;

constinit std::atomic<uint32_t> g_listening{0};  // 1 = being set up, 2 = yes
constinit ListenBlock* g_block = nullptr;
constinit int g_file = -1;

void* listen(void*) {
  prctl(PR_SET_NAME, "tacho listen");
  tape::t_state.hidden = 1;
  ListenBlock& listens = *g_block;
  for (;;) {
    const auto state = listens.state.load(std::memory_order_acquire);
    if (state != static_cast<uint32_t>(ListenState::kAsked)) {
      tape::wait_on(listens.state, state, -1);
      continue;
    }
    listens.state.store(static_cast<uint32_t>(ListenState::kTaken), std::memory_order_release);
    tape::AttachBlock& block = listens.block;
    // Nothing of the block leads anywhere in this process's memory; its texts end.
    block.code = block.code_bytes = block.data_bytes = 0;
    block.descriptor = -1;
    block.pool[sizeof block.pool - 1] = '\0';
    serve(block);
    listens.state.store(static_cast<uint32_t>(ListenState::kFree), std::memory_order_release);
    tape::wake_all(listens.state);
  }
}

// The file is the parent's, and so is the thread.
void forget_in_child() {
  if (g_listening.exchange(0) == 0) return;
  if (g_block != nullptr) munmap(static_cast<void*>(g_block), sizeof *g_block);
  if (g_file >= 0) close(g_file);
  g_block = nullptr;
  g_file = -1;
}

// 0, or why not.
int begin_to_listen() {
  static constinit bool watched = false;
  if (!watched && pthread_atfork(nullptr, nullptr, forget_in_child) != 0) return ENOMEM;
  watched = true;
  g_file = static_cast<int>(syscall(SYS_memfd_create, tape::kListenName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (g_file < 0) return errno;
  void* at = MAP_FAILED;
  if (ftruncate(g_file, sizeof(ListenBlock)) == 0 && fcntl(g_file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
    at = mmap(nullptr, sizeof(ListenBlock), PROT_READ | PROT_WRITE, MAP_SHARED, g_file, 0);
  if (at == MAP_FAILED) {
    const int error = errno;
    close(g_file);
    g_file = -1;
    return error;
  }
  g_block = static_cast<ListenBlock*>(at);
  g_block->version = tape::kAttachVersion;
  g_block->pid = static_cast<uint32_t>(getpid());
  if (!start_own_thread(listen)) {
    munmap(at, sizeof(ListenBlock));
    close(g_file);
    g_block = nullptr;
    g_file = -1;
    return EAGAIN;
  }
  // Last: tacho looks for it.
  memcpy(g_block->magic, tape::kListenMagic, sizeof g_block->magic);
  return 0;
}

}  // namespace

bool listens() {
  return g_listening.load(std::memory_order_acquire) == 2;
}

}  // namespace tacho::capture

extern "C" __attribute__((visibility("default"))) int tacho_listen_here() {
  using namespace tacho::capture;
  if (tacho::tape::pool() != nullptr && !tacho::tape::attached_late()) return EBUSY;
  uint32_t free = 0;
  if (!g_listening.compare_exchange_strong(free, 1)) return 0;
  const int error = begin_to_listen();
  g_listening.store(error == 0 ? 2 : 0);
  return error;
}
