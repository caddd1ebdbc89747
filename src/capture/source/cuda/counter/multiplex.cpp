// Cycles over passes (multiplex.h).
#include "capture/source/cuda/counter/multiplex.h"

#include "base/clock.h"

namespace tacho::capture::counter::multiplex {
namespace {

struct Cycle {
  bool open;
  size_t pass, length, wanted;  // ranges of the sequence, and how many the first pass may have
  uint64_t shapes[kMaxRanges];
  size_t records[kMaxRanges];  // of the first pass, in the session's records
  uint64_t waited, patience, launches;
  int64_t switching, inside;
  size_t next;    // how many ranges the next cycle may have; 0 = not known yet
  uint64_t skip;  // launches that go unmeasured before it
};
constinit Cycle g_cycles[kMaxSessions] = {};

Cycle& cycle_of(const CounterSession& session) {
  return g_cycles[&session - g_sessions];
}

// Launches that are alike, on one GPU. When the table is full, later ones are no longer distinguished.
struct Shape {
  uint64_t key;     // 0: free
  uint64_t last;    // its last launch, counted over its GPU's launches from 1
  uint64_t period;  // launches from the one before to that; 0 = seen once
  bool complete;    // measured in all passes
};
constexpr size_t kShapes = 1 << 14;
constinit Shape g_shapes[kShapes] = {};
constinit uint64_t g_launches[256] = {};  // by GPU

Shape& find(const CounterSession& session, uint64_t shape) {
  const uint64_t key = (shape ^ (uint64_t{session.device} + 1) * 0x9e3779b97f4a7c15ULL) | 1;
  for (size_t probe = 0; probe < 256; ++probe) {
    Shape& at = g_shapes[(key + probe) % kShapes];
    if (at.key == key) return at;
    if (at.key == 0) {
      at.key = key;
      return at;
    }
  }
  return g_shapes[key % kShapes];
}
Shape& note(const CounterSession& session, uint64_t shape) {
  Shape& known = find(session, shape);
  const uint64_t now = ++g_launches[session.device % 256];
  if (known.last != 0) known.period = now - known.last;
  known.last = now;
  return known;
}

// How many launches a pass may wait for the sequence's first shape. A shape seen only once may never come again.
uint64_t patience(const Shape& first) {
  return first.period == 0 ? 64 : 2 * first.period + 64;
}

void end_cycle(CounterSession& session) {
  Cycle& cycle = cycle_of(session);
  cycle.open = false;
  const int64_t begin = raw_now();
  if (cycle.length == 0 || !decode(session)) return write_records(session.records);
  for (size_t k = 0; k < cycle.length; ++k) {
    spool::CounterRecord* const record = record_at(session.records, cycle.records[k]);
    record->image = session.number;
    record->range = static_cast<uint32_t>(k);
    record->samples = static_cast<uint32_t>(g_collection.passes);
    find(session, cycle.shapes[k]).complete = true;
  }
  write_image(session);
  g_collection.state->dispatches_done.fetch_add(cycle.length, std::memory_order_relaxed);
  cycle.switching += raw_now() - begin;
  const int64_t each = cycle.launches == 0 ? 0 : cycle.inside / static_cast<int64_t>(cycle.launches);
  // Half as many again: a program that ends in the middle of a cycle has paid for switches that brought nothing.
  cycle.skip = each <= 0 ? 0 : static_cast<uint64_t>(cycle.switching / each * 3 / 2);
  cycle.next = cycle.wanted * 4 > ranges() ? ranges() : cycle.wanted * 4;
}

// Ends the running pass. The cycle drops the launches that the pass did not reach.
void end_pass(CounterSession& session) {
  Cycle& cycle = cycle_of(session);
  const int64_t begin = raw_now();
  if (session.used < cycle.length || cycle.pass == 0) cycle.length = session.used;
  const bool good = stop(session);
  cycle.switching += raw_now() - begin;
  if (!good) return abandon(session);
  cycle.waited = 0;
  if (++cycle.pass == g_collection.passes) end_cycle(session);
}

bool begin_pass(CounterSession& session) {
  const int64_t begin = raw_now();
  const bool good = start(session);
  cycle_of(session).switching += raw_now() - begin;
  if (!good) cycle_of(session).open = false;
  return good;
}

}  // namespace

CounterSession* begin_launch(void* context, uint64_t shape) {
  while (CounterSession* const rival = rival_of(context)) {
    Cycle& its = cycle_of(*rival);
    if (its.open && ++its.waited <= its.patience) return nullptr;
    abandon(*rival);
    disable(*rival);
  }
  CounterSession* const session = session_of(context);
  if (session == nullptr) return nullptr;
  Cycle& cycle = cycle_of(*session);
  const Shape& known = note(*session, shape);
  if (cycle.open && session->running) {
    if (cycle.pass == 0 || cycle.shapes[session->used] == shape) {
      cycle.shapes[session->used] = shape;
      return session;
    }
    end_pass(*session);
  }
  if (cycle.open) {
    if (shape == cycle.shapes[0]) return begin_pass(*session) ? session : nullptr;
    if (++cycle.waited > cycle.patience) {
      abandon(*session);
      disable(*session);
    }
    return nullptr;
  }
  if (cycle.skip != 0 && known.complete) {
    --cycle.skip;
    return nullptr;
  }
  if (!fresh_image(*session) || !configure(*session, abi::kUserReplay, 0)) return nullptr;
  const size_t wanted = cycle.next == 0 ? 8 : cycle.next;
  cycle = Cycle{};
  cycle.open = true;
  cycle.next = wanted;
  cycle.wanted = wanted < ranges() ? wanted : ranges();
  if (cycle.wanted > kMaxRanges) cycle.wanted = kMaxRanges;
  cycle.shapes[0] = shape;
  cycle.patience = patience(known);
  return begin_pass(*session) ? session : nullptr;
}

bool defines_range(const CounterSession& session) {
  return cycle_of(session).pass == 0;
}

void note_record(CounterSession& session, size_t offset) {
  cycle_of(session).records[session.used] = offset;
}

void end_launch(CounterSession& session, int64_t inside) {
  Cycle& cycle = cycle_of(session);
  ++session.used;
  cycle.inside += inside;
  ++cycle.launches;
  if (session.used == (cycle.pass == 0 ? cycle.wanted : cycle.length)) end_pass(session);
}

void interrupt(CounterSession& session) {
  if (session.running) end_pass(session);
}

void abandon(CounterSession& session) {
  if (session.running) stop(session);
  cycle_of(session) = Cycle{};
  write_records(session.records);
}

}  // namespace tacho::capture::counter::multiplex
