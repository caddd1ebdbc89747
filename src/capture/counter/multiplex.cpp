// Cycles over passes (multiplex.h).
#include "capture/counter/multiplex.h"

#include "base/clock.h"

namespace tacho::capture::counter::multiplex {
namespace {

struct Cycle {
  bool open;
  size_t pass, length, wanted;  // ranges of the sequence, and how many the first pass may have
  uint64_t shapes[kMaxRanges];
  size_t records[kMaxRanges];  // of the first pass, in the session's records
  uint64_t waited, launches;
  int64_t switching, inside;
  size_t next;    // how many ranges the next cycle may have; 0 = not known yet
  uint64_t skip;  // launches that go unmeasured before it
};
constinit Cycle g_cycles[kMaxSessions] = {};

Cycle& cycle_of(const Session& session) {
  return g_cycles[&session - g_sessions];
}

// Shapes that have been measured in all passes, GPU by GPU.
constexpr size_t kShapes = 1 << 14;
constinit uint64_t g_complete[kShapes] = {};

uint64_t key_of(const Session& session, uint64_t shape) {
  return (shape ^ (uint64_t{session.device} + 1) * 0x9e3779b97f4a7c15ULL) | 1;
}
uint64_t& place_of(uint64_t key) {
  for (size_t probe = 0; probe < kShapes; ++probe) {
    uint64_t& at = g_complete[(key + probe) % kShapes];
    if (at == key || at == 0) return at;
  }
  return g_complete[0];
}
bool is_complete(const Session& session, uint64_t shape) {
  const uint64_t key = key_of(session, shape);
  return place_of(key) == key;
}
void set_complete(const Session& session, uint64_t shape) {
  const uint64_t key = key_of(session, shape);
  place_of(key) = key;
}

void end_cycle(Session& session) {
  Cycle& cycle = cycle_of(session);
  cycle.open = false;
  const int64_t begin = raw_now();
  if (cycle.length == 0 || !decode(session)) return write_records(session.records);
  for (size_t k = 0; k < cycle.length; ++k) {
    plugin::CounterRecord* const record = record_at(session.records, cycle.records[k]);
    record->image = session.number;
    record->range = static_cast<uint32_t>(k);
    record->samples = static_cast<uint32_t>(g_collection.passes);
    set_complete(session, cycle.shapes[k]);
  }
  write_image(session);
  g_collection.state->dispatches_done.fetch_add(cycle.length, std::memory_order_relaxed);
  cycle.switching += raw_now() - begin;
  const int64_t each = cycle.launches == 0 ? 0 : cycle.inside / static_cast<int64_t>(cycle.launches);
  // Half as many again: a program that ends in the middle of a cycle has paid for switches that brought nothing.
  cycle.skip = each <= 0 ? 0 : static_cast<uint64_t>(cycle.switching / each * 3 / 2);
  cycle.next = cycle.wanted * 4 > ranges() ? ranges() : cycle.wanted * 4;
}

// The pass that runs is over; what it did not reach is left out of the cycle.
void end_pass(Session& session) {
  Cycle& cycle = cycle_of(session);
  const int64_t begin = raw_now();
  if (session.used < cycle.length || cycle.pass == 0) cycle.length = session.used;
  const bool good = stop(session);
  cycle.switching += raw_now() - begin;
  if (!good) return abandon(session);
  cycle.waited = 0;
  if (++cycle.pass == g_collection.passes) end_cycle(session);
}

bool begin_pass(Session& session) {
  const int64_t begin = raw_now();
  const bool good = start(session);
  cycle_of(session).switching += raw_now() - begin;
  if (!good) cycle_of(session).open = false;
  return good;
}

}  // namespace

Session* begin_launch(void* context, uint64_t shape) {
  Session* session = known_session(context);
  if (session != nullptr) {
    Cycle& cycle = cycle_of(*session);
    if (cycle.open && session->running) {
      if (cycle.pass == 0 || cycle.shapes[session->used] == shape) {
        cycle.shapes[session->used] = shape;
        return session;
      }
      end_pass(*session);
    }
    if (cycle.open) {
      // Wait for the sequence's first shape, but not for ever.
      if (shape == cycle.shapes[0]) return begin_pass(*session) ? session : nullptr;
      if (++cycle.waited > 20'000) {
        abandon(*session);
        disable(*session);
      }
      return nullptr;
    }
    if (cycle.skip != 0 && is_complete(*session, shape)) {
      --cycle.skip;
      return nullptr;
    }
  }
  while (Session* const rival = rival_of(context)) {
    abandon(*rival);
    disable(*rival);
  }
  session = session_of(context);
  if (session == nullptr || !fresh_image(*session) || !configure(*session, abi::kUserReplay, 0)) return nullptr;
  Cycle& cycle = cycle_of(*session);
  const size_t wanted = cycle.next == 0 ? 8 : cycle.next;
  cycle = Cycle{};
  cycle.open = true;
  cycle.next = wanted;
  cycle.wanted = wanted < ranges() ? wanted : ranges();
  cycle.shapes[0] = shape;
  return begin_pass(*session) ? session : nullptr;
}

bool defines_range(const Session& session) {
  return cycle_of(session).pass == 0;
}

void note_record(Session& session, size_t offset) {
  cycle_of(session).records[session.used] = offset;
}

void end_launch(Session& session, int64_t inside) {
  Cycle& cycle = cycle_of(session);
  ++session.used;
  cycle.inside += inside;
  ++cycle.launches;
  if (session.used == (cycle.pass == 0 ? cycle.wanted : cycle.length)) end_pass(session);
}

void interrupt(Session& session) {
  if (session.running) end_pass(session);
}

void abandon(Session& session) {
  if (session.running) stop(session);
  cycle_of(session) = Cycle{};
  write_records(session.records);
}

}  // namespace tacho::capture::counter::multiplex
