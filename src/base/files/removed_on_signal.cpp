// Keeps the paths in fixed places that a signal handler can read (removed_on_signal.h).
#include "base/files/removed_on_signal.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <iterator>
#include <utility>

namespace tacho {
namespace {

struct NotedPath {
  std::atomic<bool> used;
  char path[4096];
};
constinit NotedPath g_noted[16] = {};
constinit std::atomic<pid_t> g_owner{0};

constexpr int kHandled[] = {SIGINT,  SIGTERM,   SIGHUP,  SIGQUIT, SIGPIPE, SIGALRM, SIGUSR1,
                            SIGUSR2, SIGVTALRM, SIGPROF, SIGIO,   SIGXCPU, SIGPWR,  SIGSTKFLT};

void remove_all(int number) {
  if (getpid() == g_owner.load())  // not in a forked child before its exec
    for (const NotedPath& slot : g_noted)
      if (slot.used.load()) unlink(slot.path);
  signal(number, SIG_DFL);
  raise(number);
}

void install_handlers() {
  if (g_owner.exchange(getpid()) == getpid()) return;
  for (const int number : kHandled) {
    struct sigaction before {};
    if (sigaction(number, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
    struct sigaction action {};
    action.sa_handler = remove_all;
    sigfillset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
}

}  // namespace

SignalsWait::SignalsWait() {
  sigset_t waiting;
  sigemptyset(&waiting);
  for (const int number : kHandled) sigaddset(&waiting, number);
  pthread_sigmask(SIG_BLOCK, &waiting, &before_);
}
SignalsWait::~SignalsWait() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

RemovedOnSignal::RemovedOnSignal(const std::string& path) : path_(path) {
  install_handlers();
  for (int i = 0; i < static_cast<int>(std::size(g_noted)); ++i) {
    NotedPath& slot = g_noted[i];
    if (slot.used.load() || path.size() >= sizeof slot.path) continue;
    std::memcpy(slot.path, path.c_str(), path.size() + 1);
    slot.used.store(true);
    slot_ = i;
    return;
  }
}

RemovedOnSignal::RemovedOnSignal(RemovedOnSignal&& other) noexcept
    : path_(std::exchange(other.path_, {})), slot_(std::exchange(other.slot_, -1)) {}
RemovedOnSignal& RemovedOnSignal::operator=(RemovedOnSignal&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(slot_, other.slot_);
  return *this;
}
RemovedOnSignal::~RemovedOnSignal() {
  if (path_.empty()) return;
  unlink(path_.c_str());
  release();
}
void RemovedOnSignal::release() {
  if (slot_ >= 0) g_noted[slot_].used.store(false);
  slot_ = -1;
  path_.clear();
}

}  // namespace tacho
