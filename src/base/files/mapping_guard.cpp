// The SIGBUS handler and the table of guards that it reads (mapping_guard.h).
#include "base/files/mapping_guard.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <utility>

namespace tacho {
namespace {

struct Slot {
  std::atomic<bool> used;
  uintptr_t begin, end;
  char name[1024];
};
constinit Slot g_slots[64] = {};
constinit std::atomic<bool> g_installed{false};

void say(const char* text) {
  const ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
  static_cast<void>(ignored);
}

void on_bus_error(int number, siginfo_t* info, void*) {
  const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  const Slot* found = nullptr;
  for (const Slot& slot : g_slots) {
    if (!slot.used.load()) continue;
    if (at >= slot.begin && at < slot.end) found = &slot;
    if (slot.begin == 0 && found == nullptr) found = &slot;
  }
  if (info->si_code == BUS_ADRERR && found != nullptr) {
    say("tacho: ");
    say(found->name);
    say(": became shorter while it was read; try again when whatever writes it has finished\n");
    _exit(1);
  }
  signal(number, SIG_DFL);  // the fault repeats and kills the process
}

void install() {
  if (g_installed.exchange(true)) return;
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace

MappingGuard::MappingGuard(const void* begin, size_t bytes, const std::string& name) {
  install();
  for (int i = 0; i < static_cast<int>(std::size(g_slots)); ++i) {
    Slot& slot = g_slots[i];
    bool expected = false;
    if (slot.used.load() || !slot.used.compare_exchange_strong(expected, true)) continue;
    slot.begin = reinterpret_cast<uintptr_t>(begin);
    slot.end = slot.begin + bytes;
    size_t length = 0;
    for (const char c : name)  // as in messages: nothing that a terminal would act on
      if (length + 1 < sizeof slot.name)
        slot.name[length++] = static_cast<unsigned char>(c) < ' ' || c == 127 ? '?' : c;
    slot.name[length] = '\0';
    slot_ = i;
    return;
  }
}

MappingGuard::MappingGuard(MappingGuard&& other) noexcept : slot_(std::exchange(other.slot_, -1)) {}
MappingGuard& MappingGuard::operator=(MappingGuard&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}
MappingGuard::~MappingGuard() {
  if (slot_ >= 0) g_slots[slot_].used.store(false);
}

}  // namespace tacho
