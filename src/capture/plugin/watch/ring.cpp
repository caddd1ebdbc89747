// Records in the ring (ring.h). Nothing here allocates from the program's heap, waits or throws.
#include "capture/plugin/watch/ring.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "event/watch_table.h"

namespace tacho::capture::watch {

TACHO_READ_OFTEN constinit std::atomic<uint64_t> g_ring{0};
TACHO_READ_OFTEN constinit std::atomic<uint64_t> g_last_ticket{0};

namespace {

TACHO_READ_OFTEN constinit uint16_t g_number = 0;  // of this process in the table
// Rings by the power of two that their records are: each has had one place in this process's memory ever since.
constinit event::WatchRing* g_rings[48] = {};
__attribute__((tls_model("initial-exec"))) constinit thread_local uint32_t t_tid = 0;

uint32_t thread_id() {
  if (__builtin_expect(t_tid == 0, 0)) t_tid = static_cast<uint32_t>(syscall(SYS_gettid));
  return t_tid;
}

// A record that is being written: readers see no ticket in it until it is published.
event::WatchRecord& begin_record(const OwnRing& ring, uint64_t ticket) {
  event::WatchRecord& record = ring.at->records[(ticket - 1) & ring.last];
  record.ticket.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  record.tid = thread_id();
  record.process = g_number;
  return record;
}
uint64_t take_tickets(const OwnRing& ring, uint32_t count) {
  return ring.at->header.head.fetch_add(count, std::memory_order_relaxed) + 1;
}
void publish(event::WatchRecord& record, uint64_t ticket) {
  record.ticket.store(ticket, std::memory_order_release);
}

// In its first round through the ring a program meets each page for the first time. The kernel maps sixteen at once
// when one is read, and one alone when it is written. tacho has made room for all, so that none is missing.
void map_ahead(const OwnRing& ring, uint64_t ticket) {
  constexpr uint64_t kPages = 16 * 4096 / sizeof(event::WatchRecord);
  if (__builtin_expect((ticket & (kPages - 1)) == 0, 0))
    static_cast<void>(ring.at->records[(ticket + kPages - 1) & ring.last].ticket.load(std::memory_order_relaxed));
}

void copy_text(char* to, size_t room, std::string_view text) {
  const size_t size = text.size() < room - 1 ? text.size() : room - 1;
  if (size > 0) memcpy(to, text.data(), size);
  memset(to + size, 0, room - size);
}

}  // namespace

namespace {

// Whether the mapped file is a whole ring of the size that it states.
bool is_ring(const event::WatchRingHeader& header, size_t bytes) {
  return header.magic == event::kWatchRingMagic && header.size == bytes && std::has_single_bit(header.records) &&
         header.records <= bytes / sizeof(event::WatchRecord) && event::watch_ring_bytes(header.records) <= bytes;
}

}  // namespace

void open_ring(const char* table) {
  char path[512];
  const int size = snprintf(path, sizeof path, "%s%s", table, event::kWatchRingEnding);
  if (size <= 0 || static_cast<size_t>(size) >= sizeof path) return;
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  struct stat status {};
  const size_t bytes = fstat(file, &status) == 0 && status.st_size >= static_cast<off_t>(sizeof(event::WatchRing))
                           ? static_cast<size_t>(status.st_size)
                           : 0;
  void* const at = bytes == 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at != MAP_FAILED) {
    auto* ring = static_cast<event::WatchRing*>(at);
    const event::WatchRingHeader& header = ring->header;
    const bool good = is_ring(header, bytes);
    const auto power = good ? static_cast<size_t>(std::countr_zero(header.records)) % std::size(g_rings) : 0;
    event::WatchRing*& own = g_rings[power];
    if (good && own != nullptr) {
      // Where the last one of that size was.
      void* const there = mmap(own, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
      munmap(at, bytes);
      ring = there == MAP_FAILED ? nullptr : own;
    } else if (!good) {
      munmap(at, bytes);
      ring = nullptr;
    }
    if (ring != nullptr) {
      own = ring;
      const uint64_t tsc = ring->header.tsc != 0 ? 64 : 0;
      g_ring.store(reinterpret_cast<uint64_t>(ring) | tsc | power, std::memory_order_release);
    }
  }
  close(file);
}

void close_ring() {
  const OwnRing own = kept_ring();
  if (own.at == nullptr) return;
  g_ring.store(0, std::memory_order_release);
  // In place of pages that are there, so it needs no room.
  static_cast<void>(mmap(own.at, event::watch_ring_bytes(own.last + 1), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0));
}

void use_ring_as(uint16_t process) {
  g_number = process;
  t_tid = 0;  // this may be a forked child
}

namespace {

uint16_t call_number(const OwnRing& ring, event::Domain domain, const char* name, const char* version) {
  char whole[sizeof event::WatchCall::name];
  snprintf(whole, sizeof whole, "%s%s", name, version);
  for (uint32_t i = 0; i < event::kWatchCalls; ++i) {
    event::WatchCall& call = ring.at->calls[i];
    uint32_t state = call.state.load(std::memory_order_acquire);
    if (state == event::WatchRow::kFree && call.state.compare_exchange_strong(state, event::WatchRow::kTaken)) {
      call.domain = static_cast<uint32_t>(domain);
      copy_text(call.name, sizeof call.name, whole);
      call.state.store(event::WatchRow::kReady, std::memory_order_release);
      return static_cast<uint16_t>(i + 1);
    }
    // Another process may be filling it: then the name gets a second place.
    if (state == event::WatchRow::kReady && call.domain == static_cast<uint32_t>(domain) &&
        strcmp(call.name, whole) == 0)
      return static_cast<uint16_t>(i + 1);
  }
  ring.at->header.lost_calls.fetch_add(1, std::memory_order_relaxed);
  return 0;
}

}  // namespace

uint16_t CallNumber::look_up(event::Domain domain, const char* name, const char* version) {
  const uint64_t stay = g_stay.load(std::memory_order_acquire);
  const OwnRing ring = kept_ring();
  if (ring.at == nullptr) return 0;
  const uint16_t number = call_number(ring, domain, name, version);
  kept_.store((stay + 1) << 16 | number, std::memory_order_relaxed);
  return number;
}

void keep_object(const KeptObject& object) {
  const OwnRing ring = kept_ring();
  if (ring.at == nullptr || object.handle == nullptr) return;
  const auto handle = reinterpret_cast<uint64_t>(object.handle);
  event::WatchObject* place = nullptr;
  for (event::WatchObject& each : ring.at->objects) {
    uint32_t state = each.state.load(std::memory_order_acquire);
    if (state == event::WatchRow::kFree && each.state.compare_exchange_strong(state, event::WatchRow::kTaken)) {
      place = &each;
      break;
    }
    if (state != event::WatchRow::kReady || each.handle != handle || each.process != g_number) continue;
    // The runtime gave the handle out once more.
    if (!each.state.compare_exchange_strong(state, event::WatchRow::kTaken)) continue;
    place = &each;
    break;
  }
  if (place == nullptr) {
    ring.at->header.lost_objects.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  place->process = g_number;
  place->device = static_cast<uint16_t>(object.device);
  place->handle = handle;
  place->memory = object.memory;
  place->domain = static_cast<uint32_t>(object.domain);
  place->kind = static_cast<uint32_t>(object.kind);
  copy_text(place->name, sizeof place->name, object.name);
  copy_text(place->vendor, sizeof place->vendor, object.vendor);
  place->state.store(event::WatchRow::kReady, std::memory_order_release);
}

uint64_t KeptCall::write(const KeptFacts& facts) const {
  const OwnRing ring = ring_of(word_);
  const uint64_t end = ring_ticks(ring);
  const uint64_t ticket = take_tickets(ring, 1);
  event::WatchRecord& record = begin_record(ring, ticket);
  record.start = start_;
  record.end = end;
  record.object = facts.object;
  record.amount = facts.amount;
  record.context = facts.context;
  record.row = facts.row;
  record.call = facts.call;
  record.kind = facts.kind;
  record.flags = facts.flags;
  record.result = static_cast<int16_t>(facts.result);
  publish(record, ticket);
  g_last_ticket.store(ticket, std::memory_order_relaxed);
  map_ahead(ring, ticket);
  return ticket;
}

void keep_times(uint64_t of, int64_t start, uint64_t ns, uint64_t half_width) {
  const OwnRing ring = kept_ring();
  if (ring.at == nullptr || of == 0) return;
  const uint64_t ticket = take_tickets(ring, 1);
  event::WatchRecord& record = begin_record(ring, ticket);
  record.start = static_cast<uint64_t>(start);
  record.end = static_cast<uint64_t>(start) + ns;
  record.of = of;
  record.amount = half_width;
  record.context = 0;
  record.row = event::kWatchNoRow;
  record.call = 0;
  record.kind = WatchRecordKind::kTimes;
  record.flags = 0;
  record.result = 0;
  publish(record, ticket);
}

namespace {

// Further text of a marker: 8 + 24 + 8 bytes in start, text and context.
void keep_text(const OwnRing& ring, uint64_t ticket, std::string_view part) {
  event::WatchRecord& record = begin_record(ring, ticket);
  record.kind = WatchRecordKind::kText;
  record.flags = 0;
  record.row = event::kWatchNoRow;
  record.call = 0;
  record.result = 0;
  char* const words[] = {reinterpret_cast<char*>(&record.start), record.text, reinterpret_cast<char*>(&record.context)};
  const size_t sizes[] = {8, event::kWatchMarkTextBytes, 8};
  size_t at = 0;
  for (size_t k = 0; k < 3; ++k) {
    const size_t size = at >= part.size() ? 0 : part.size() - at < sizes[k] ? part.size() - at : sizes[k];
    memset(words[k], 0, sizes[k]);
    if (size > 0) memcpy(words[k], part.data() + at, size);
    at += size;
  }
  publish(record, ticket);
}

}  // namespace

uint64_t keep_marker(const KeptMarker& marker) {
  const OwnRing ring = kept_ring();
  if (ring.at == nullptr) return 0;
  const uint64_t time = ring_ticks(ring);
  const std::string_view text = marker.text;
  const size_t first = text.size() < event::kWatchMarkTextBytes ? text.size() : event::kWatchMarkTextBytes;
  const size_t rest = text.size() - first;
  auto more = static_cast<uint32_t>((rest + event::kWatchTextBytes - 1) / event::kWatchTextBytes);
  if (more > event::kWatchTextRecords) more = event::kWatchTextRecords;
  // Adjacent tickets, so that a reader finds the text behind its marker.
  const uint64_t ticket = take_tickets(ring, 1 + more);
  event::WatchRecord& record = begin_record(ring, ticket);
  record.start = time;
  memset(record.text, 0, sizeof record.text);
  if (marker.kind == WatchRecordKind::kStop)
    record.of = marker.of;
  else if (first > 0)
    memcpy(record.text, text.data(), first);
  record.context = marker.whole > text.size() ? marker.whole : text.size();
  record.row = event::kWatchNoRow;
  record.call = marker.domain;
  record.kind = marker.kind;
  record.flags = static_cast<uint8_t>(more);
  record.result = 0;
  publish(record, ticket);
  for (uint32_t i = 0; i < more; ++i) {
    const size_t from = first + i * event::kWatchTextBytes;
    keep_text(ring, ticket + 1 + i, {text.data() + from, std::min<size_t>(text.size() - from, event::kWatchTextBytes)});
  }
  return ticket;
}

}  // namespace tacho::capture::watch
