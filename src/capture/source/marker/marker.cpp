// Recording of markers (marker.h): one record per push, pop, mark, start and stop, and the stacks behind push and pop.
#include "capture/source/marker/marker.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "capture/capture.h"
#include "capture/per_thread.h"
#include "tape/gate.h"
#include "tape/writer.h"

namespace tacho::capture::marker {
namespace {

// The open ranges of one domain on one thread.
struct Stack {
  uint32_t domain;
  uint32_t level;
  uint64_t recorded;  // bit l: the push of level l is in the pool; levels from 64 on are not remembered
};
constexpr uint32_t kDomains = 7;
struct ThreadStacks {
  uint64_t generation;     // of the process image that these belong to: a forked child starts with none open
  uint64_t untracked;      // ranges open in domains that have no stack here
  Stack stacks[kDomains];  // [0] is the default domain's, others belong to a domain while their level is not 0
};
static_assert(sizeof(ThreadStacks) == 128);

constinit PerThread<ThreadStacks> g_stacks;

// The stack of `domain`; with `claim` an unused one becomes it. nullptr: there is none.
Stack* stack_of(ThreadStacks& stacks, uint32_t domain, bool claim) {
  if (domain == 0) return &stacks.stacks[0];
  Stack* unused = nullptr;
  for (uint32_t i = 1; i < kDomains; ++i) {
    Stack& stack = stacks.stacks[i];
    if (stack.domain == domain) return &stack;
    if (unused == nullptr && stack.level == 0) unused = &stack;
  }
  if (unused == nullptr || !claim) return nullptr;
  unused->domain = domain;
  unused->recorded = 0;
  return unused;
}

constexpr uint32_t padded(size_t bytes) {
  return static_cast<uint32_t>((bytes + 7) & ~size_t{7});
}

// One record of a marker's kind, time stamped last. False: no room (counted).
template <typename Record>
bool write(event::RecordKind kind, const Marker& marker, uint64_t id) {
  uint8_t flags = marker.payload_flag;
  uint32_t fields = marker.payload_flag != 0 ? 1 : 0;
  if (marker.domain != 0) flags |= event::kMarkerDomain, ++fields;
  if (marker.category != 0) flags |= event::kMarkerCategory, ++fields;
  if (marker.has_color) flags |= event::kMarkerColor, ++fields;
  if (!marker.fields.empty()) flags |= event::kMarkerFields, ++fields;
  const size_t length = marker.interned != 0 ? 0 : marker.text.size();
  const uint32_t value = marker.interned != 0 ? marker.interned : static_cast<uint32_t>(length);
  if (marker.interned != 0) flags |= event::kMarkerInterned;
  auto* const record = tape::begin<Record>(kind, event::Table::kMarker, value, flags,
                                           padded(length) + fields * 8 + static_cast<uint32_t>(marker.fields.size()));
  if (record == nullptr) return false;
  auto* at = reinterpret_cast<char*>(record + 1);
  if (length != 0) {
    char* const end = at + padded(length);
    memset(end - 8, 0, 8);
    memcpy(at, marker.text.data(), length);
    at = end;
  }
  const auto put = [&](uint64_t word) {
    memcpy(at, &word, sizeof word);
    at += sizeof word;
  };
  if (fields != 0) {  // in the order of the flags' bits
    if (marker.domain != 0) put(marker.domain);
    if (marker.category != 0) put(marker.category);
    if (marker.has_color) put(marker.color);
    if (marker.payload_flag != 0) put(marker.payload);
    if (!marker.fields.empty()) {
      put(marker.fields.size());
      memcpy(at, marker.fields.data(), marker.fields.size());
    }
  }
  if constexpr (sizeof(Record) > sizeof(event::PushRecord)) record->id = id;
  record->time = host_ticks();
  tape::commit();
  return true;
}

// The end of a range, with the extended payloads that it got there.
template <typename Record>
Record* begin_end(event::RecordKind kind, uint32_t value, std::string_view fields) {
  const uint32_t extra = fields.empty() ? 0 : static_cast<uint32_t>(fields.size() + sizeof(uint64_t));
  auto* const record = tape::begin<Record>(kind, event::Table::kMarker, value,
                                           fields.empty() ? uint8_t{0} : event::kMarkerFields, extra);
  if (record == nullptr || fields.empty()) return record;
  const uint64_t size = fields.size();
  auto* const at = reinterpret_cast<char*>(record + 1);
  memcpy(at, &size, sizeof size);
  memcpy(at + sizeof size, fields.data(), fields.size());
  return record;
}

constinit std::atomic<uint64_t> g_cut{0};

// Markers that switch recording of the whole run on and off (configuration start_marker, stop_marker).
struct Trigger {
  std::string_view text;
  uint32_t interned = 0;
  bool hit(const Marker& marker) const {
    return !text.empty() && (marker.interned != 0 ? marker.interned == interned : marker.text == text);
  }
};
constinit Trigger g_start_trigger, g_stop_trigger;
enum TriggerState : uint32_t { kUnread, kReading, kNone, kSome };
constinit std::atomic<uint32_t> g_triggers{kUnread};

bool triggers() {
  const uint32_t state = g_triggers.load(std::memory_order_acquire);
  if (__builtin_expect(state == kNone, 1)) return false;
  if (state == kSome) return true;
  uint32_t expected = kUnread;
  if (!g_triggers.compare_exchange_strong(expected, kReading, std::memory_order_acq_rel)) return expected == kSome;
  g_start_trigger.text = tape::configuration().start_marker;
  g_stop_trigger.text = tape::configuration().stop_marker;
  for (Trigger* trigger : {&g_start_trigger, &g_stop_trigger})
    if (!trigger->text.empty()) trigger->interned = tape::intern(trigger->text);
  const bool some = !g_start_trigger.text.empty() || !g_stop_trigger.text.empty();
  g_triggers.store(some ? kSome : kNone, std::memory_order_release);
  return some;
}

// Around the recording of a marker: the one that starts is the first recorded, the one that stops the last.
void before(const Marker& marker) {
  if (!triggers() || !g_start_trigger.hit(marker)) return;
  tape::PoolHeader* const pool = tape::pool();
  pool->trigger_start.fetch_add(1, std::memory_order_relaxed);
  tape::set_gate(*pool, tape::gate::kTrigger, true);
}
void after(const Marker& marker) {
  if (!triggers() || !g_stop_trigger.hit(marker)) return;
  tape::PoolHeader* const pool = tape::pool();
  pool->trigger_stop.fetch_add(1, std::memory_order_relaxed);
  tape::set_gate(*pool, tape::gate::kTrigger, false);
}

}  // namespace

bool ready() {
  if (__builtin_expect(tape::t_state.hidden >= tape::kHiddenForGood, 0)) return false;
  return __builtin_expect(tape::attached(), 1) || capture::start();
}
bool active() {
  return ready() && tape::enabled(tape::source_bit::kMarker);
}

void count_cut() {
  const uint64_t count = g_cut.fetch_add(1, std::memory_order_relaxed) + 1;
  if ((count & (count - 1)) != 0) return;  // said at 1, 2, 4, 8 ...: the note stays small, the count is never far off
  char text[128];
  const int size = snprintf(text, sizeof text, "marker texts longer than %u bytes were cut there: %llu so far",
                            tape::kLongestText, static_cast<unsigned long long>(count));
  tape::note(event::NoteSeverity::kWarning, {text, static_cast<size_t>(size)});
}

std::string_view clip(const char* text) {
  if (text == nullptr) return {};
  const size_t length = strnlen(text, tape::kLongestText + 1);
  if (__builtin_expect(length <= tape::kLongestText, 1)) return {text, length};
  size_t end = tape::kLongestText;
  while (end > tape::kLongestText - 4 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  count_cut();
  return {text, end};
}

void mark(const Marker& marker) {
  if (!ready()) return;
  before(marker);
  if (tape::enabled(tape::source_bit::kMarker)) write<event::MarkRecord>(event::RecordKind::kMark, marker, 0);
  after(marker);
}

int push(const Marker& marker) {
  if (!ready()) return kNotTracked;
  before(marker);
  const bool recorded =
      tape::enabled(tape::source_bit::kMarker) && write<event::PushRecord>(event::RecordKind::kPush, marker, 0);
  int level = kNotTracked;
  if (ThreadStacks* const stacks = g_stacks.get(); stacks != nullptr) {
    if (Stack* const stack = stack_of(*stacks, marker.domain, true); stack != nullptr) {
      level = static_cast<int>(stack->level++);
      if (level < 64) {
        const uint64_t bit = 1ULL << level;
        stack->recorded = recorded ? stack->recorded | bit : stack->recorded & ~bit;
      }
    } else {
      ++stacks->untracked;
    }
  }
  after(marker);
  return level;
}

int pop(uint32_t domain) {
  return pop_with(domain, {});
}

int pop_with(uint32_t domain, std::string_view fields) {
  if (!ready()) return kNotTracked;
  int level = kNotTracked;
  bool wanted = tape::enabled(tape::source_bit::kMarker);
  if (ThreadStacks* const stacks = g_stacks.get(); stacks != nullptr) {
    Stack* const stack = stack_of(*stacks, domain, false);
    if (stack != nullptr && stack->level != 0) {
      level = static_cast<int>(--stack->level);
      if (level < 64) wanted = (stack->recorded >> level & 1) != 0;
    } else if (stack == nullptr && stacks->untracked != 0) {
      --stacks->untracked;
    } else {
      return kNoRange;
    }
  }
  if (!wanted) return level;
  const uint64_t now = host_ticks();
  if (auto* record = begin_end<event::PopRecord>(event::RecordKind::kPop, domain, fields)) {
    record->time = now;
    tape::commit();
  }
  return level;
}

namespace {
// Programs may end a range that they began in an earlier attach, where its number was another's.
constexpr uint64_t kAttachBits = 7ULL << 60;
uint64_t attach_bits() {
  return uint64_t{tape::late_session()} << 60 & kAttachBits;
}
}  // namespace

uint64_t start(const Marker& marker) {
  if (!ready()) return 0;
  before(marker);
  const uint64_t id = tape::next_correlation();
  const bool recorded = tape::enabled(tape::source_bit::kMarker) &&
                        write<event::RangeStartRecord>(event::RecordKind::kRangeStart, marker, id);
  after(marker);
  return id | attach_bits() | (recorded ? 0 : kUnrecorded);
}

void stop(uint64_t range) {
  stop_with(range, {});
}

void stop_with(uint64_t range, std::string_view fields) {
  if (range == 0 || (range & kUnrecorded) != 0 || !ready() || (range & kAttachBits) != attach_bits()) return;
  const uint64_t now = host_ticks();
  if (auto* record = begin_end<event::RangeStopRecord>(event::RecordKind::kRangeStop, 0, fields)) {
    record->time = now;
    record->id = range & ~kAttachBits;
    tape::commit();
  }
}

void forget_triggers() {
  g_triggers.store(kUnread, std::memory_order_release);
}

void keep(std::string_view why) {
  mark({.text = why});
}

void pause() {
  if (ready()) tape::set_gate(*tape::pool(), tape::gate::kProgram, false);
}

void resume() {
  if (ready()) tape::set_gate(*tape::pool(), tape::gate::kProgram, true);
}

void flush() {
  if (ready()) tape::flush_thread();
}

void name_thread(uint32_t tid, std::string_view name) {
  if (!ready()) return;
  const auto self = static_cast<uint32_t>(syscall(SYS_gettid));
  event::ThreadRecord record{};
  record.tid = tid == 0 ? self : tid;
  record.name = tape::intern(name);
  record.header = {event::RecordKind::kThread, 0, sizeof record, record.tid == self ? tape::thread_index() : 0};
  tape::define(&record.header);
}

}  // namespace tacho::capture::marker
