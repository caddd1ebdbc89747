// Faults on demand (driver.h).
#include <errno.h>
#include <linux/kfd_ioctl.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "driver.h"

namespace kfd::fault {
namespace {

// The number behind "KIND@", or the one behind "KIND@N:"; ~0 when the list has no such word. A word alone counts as 1.
uint64_t wanted(std::string_view kind, bool second = false) {
  static const std::string* const list = [] {
    const char* const given = getenv("TACHO_KFD_FAULT");
    return new std::string(given != nullptr ? given : "");
  }();
  std::string_view rest = *list;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(','), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const size_t at = word.find(second ? ':' : '@');
    if (word.substr(0, word.find('@')) == kind)
      return at == std::string_view::npos ? 1 : strtoull(std::string(word.substr(at + 1)).c_str(), nullptr, 10);
  }
  return ~0ull;
}

std::atomic<bool> g_dead{false};

// As the packet processor does: the reason goes into the queue's inactive signal, which lies 64 bytes behind its read
// index (amd_hsa_queue.h).
void report_queue_error(const Queue& queue) {
  constexpr uint64_t kMalformedPacket = 0x20;
  uint64_t inactive = 0;
  memcpy(&inactive, reinterpret_cast<const std::byte*>(queue.read) + 64, sizeof inactive);
  if (inactive == 0) return;
  auto* const words = memory().host<uint64_t>(inactive);  // amd_hsa_signal.h: kind, value, mailbox, event
  __atomic_store_n(words + 1, kMalformedPacket, __ATOMIC_RELEASE);
  const auto event = static_cast<uint32_t>(words[3]);
  if (words[2] != 0) __atomic_store_n(memory().host<uint64_t>(words[2]), event, __ATOMIC_RELEASE);
  set_event(event);
}

}  // namespace

static std::atomic<uint64_t> g_used{0};  // bytes of GPU memory

int refuses_open() {
  return wanted("permission") != ~0ull ? EACCES : wanted("absent") != ~0ull ? ENOENT : 0;
}

bool has_memory(uint64_t bytes) {
  static const uint64_t most = wanted("out-of-memory");
  if (g_used.fetch_add(bytes) + bytes <= most << 20 || most == ~0ull) return true;
  g_used.fetch_sub(bytes);
  return false;
}
void give_memory(uint64_t bytes) {
  g_used.fetch_sub(bytes);
}
uint64_t memory_left() {
  const uint64_t most = std::min(wanted("out-of-memory"), uint64_t{60} << 10) << 20, used = g_used.load();
  return used < most ? most - used : 0;
}

bool strikes(const Queue& queue, uint64_t& longer) {
  static std::atomic<uint64_t> dispatches{0};
  const uint64_t number = ++dispatches;
  longer = number == wanted("long") ? wanted("long", true) * 1'000'000 : 0;
  const bool error = number == wanted("queue-error"), fault = number == wanted("memory-fault");
  const bool reset = number == wanted("reset"), hang = number == wanted("hang");
  if (!error && !fault && !reset && !hang) return false;
  log("fault %u %u", queue.gpu, queue.id);  // first: the program may end at once
  const uint32_t gpu = gpus()[queue.gpu].id;
  constexpr uint64_t kNowhere = 0xdead000;
  if (reset) g_dead = true;
  if (error) report_queue_error(queue);
  if (fault) raise(KFD_IOC_EVENT_MEMORY, {gpu, kNowhere});
  if (reset) raise(KFD_IOC_EVENT_HW_EXCEPTION, {gpu, 0});
  return true;
}

bool dead() {
  return g_dead;
}

}  // namespace kfd::fault
