// Stopping all threads (stopped_process.h).
#include "watch/entries/stopped_process.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "attach/way_back.h"
#include "base/clock.h"
#include "base/format.h"

namespace tacho::watch {
namespace {

std::vector<pid_t> g_late;

std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> threads;
  DIR* const folder = opendir(fmt::format("/proc/{}/task", pid).c_str());
  if (folder == nullptr) return threads;
  while (const dirent* const entry = readdir(folder))
    if (const long thread = strtol(entry->d_name, nullptr, 10); thread > 0)
      threads.push_back(static_cast<pid_t>(thread));
  closedir(folder);
  return threads;
}

enum class Stop { kStopped, kGone, kLate };
Stop wait_for_stop(pid_t thread) {
  constexpr int64_t kPatience = 100'000'000;
  const int64_t begin = raw_now();
  for (int64_t pause = 5'000;; pause = std::min<int64_t>(pause * 2, 200'000)) {
    int status = 0;
    const pid_t found = waitpid(thread, &status, __WALL | WNOHANG);
    if (found == thread) {
      if (!WIFSTOPPED(status)) return Stop::kGone;
      if (status >> 16 == PTRACE_EVENT_STOP) return Stop::kStopped;
      ptrace(PTRACE_CONT, thread, nullptr, WSTOPSIG(status));  // a signal was on its way: it gets it, and stops then
      continue;
    }
    if (found < 0 && errno != EINTR) return Stop::kGone;
    if (raw_now() - begin > kPatience) return Stop::kLate;
    const timespec moment{0, pause};
    nanosleep(&moment, nullptr);
  }
}

bool registers_of(pid_t thread, user_regs_struct& registers) {
  iovec part{&registers, sizeof registers};
  return ptrace(PTRACE_GETREGSET, thread, NT_PRSTATUS, &part) == 0 && part.iov_len == sizeof registers;
}

void let_go(pid_t thread) {
  user_regs_struct registers{};
  if (registers_of(thread, registers) && static_cast<int64_t>(registers.rax) == -EINTR &&
      static_cast<int64_t>(registers.orig_rax) >= 0 && attach::restarts_by_hand(registers.orig_rax)) {
    registers.rax = registers.orig_rax;
    registers.rip -= 2;
    registers.orig_rax = ~uint64_t{0};
    iovec part{&registers, sizeof registers};
    ptrace(PTRACE_SETREGSET, thread, NT_PRSTATUS, &part);
  }
  ptrace(PTRACE_DETACH, thread, nullptr, nullptr);
}

}  // namespace

StoppedProcess::StoppedProcess(StoppedProcess&& other) noexcept
    : threads_(std::exchange(other.threads_, {})), places_(std::move(other.places_)) {}

StoppedProcess::~StoppedProcess() {
  for (const pid_t thread : threads_) let_go(thread);
}

// False: it has ended.
Result<bool> StoppedProcess::interrupt(pid_t thread) {
  if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) {
    if (errno == ESRCH) return false;
    return fail("the kernel does not let tacho stop thread {}: {}", thread, strerror(errno));
  }
  ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
  return true;
}

// Waits for a thread that was interrupted.
Status StoppedProcess::take(pid_t thread) {
  switch (wait_for_stop(thread)) {
    case Stop::kGone:
      return {};
    case Stop::kLate:
      g_late.push_back(thread);
      return {};
    case Stop::kStopped:
      break;
  }
  threads_.push_back(thread);
  user_regs_struct registers{};
  if (!registers_of(thread, registers))
    return fail("the registers of thread {} cannot be read: {}", thread, strerror(errno));
  places_.push_back({registers.rip, registers.rsp});
  return {};
}

Result<StoppedProcess> StoppedProcess::stop(pid_t pid) {
  release_late();
  StoppedProcess stopped;
  std::vector<pid_t> seen = g_late;
  Status result;
  // All are interrupted before the first is waited for. Those that run may start others meanwhile.
  for (bool fresh = true; fresh && result;) {
    std::vector<pid_t> interrupted;
    for (const pid_t thread : threads_of(pid)) {
      if (!result || std::find(seen.begin(), seen.end(), thread) != seen.end()) continue;
      seen.push_back(thread);
      const auto there = interrupt(thread);
      if (there && *there) interrupted.push_back(thread);
      if (!there) result = tl::unexpected<Error>(there.error());
    }
    // Also after an error: who was interrupted has to be let go.
    for (const pid_t thread : interrupted)
      if (Status taken = stopped.take(thread); !taken && result) result = std::move(taken);
    fresh = !interrupted.empty();
  }
  if (!result) return tl::unexpected<Error>(result.error());
  return stopped;
}

void release_late() {
  std::erase_if(g_late, [](pid_t thread) {
    int status = 0;
    const pid_t found = waitpid(thread, &status, __WALL | WNOHANG);
    if (found == 0 || (found < 0 && errno == EINTR)) return false;
    if (found == thread && WIFSTOPPED(status)) {
      if (status >> 16 == PTRACE_EVENT_STOP)
        let_go(thread);
      else
        ptrace(PTRACE_DETACH, thread, nullptr, WSTOPSIG(status));
    }
    return true;
  });
}

}  // namespace tacho::watch
