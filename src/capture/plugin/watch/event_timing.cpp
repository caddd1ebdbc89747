// Events around operations (event_timing.h).
#include "capture/plugin/watch/event_timing.h"

#include <sys/mman.h>
#include <time.h>

#include "capture/plugin/watch/ring.h"
#include "capture/room/pages.h"

namespace tacho::capture::watch {
namespace {

constexpr uint32_t kMostWaiting = 1024, kMostPlaces = 16;

// Events of one place that are not in use.
struct Spare {
  uint64_t place;
  uint32_t count;
  TimingEvents events[kMostWaiting];
};
// The last distances of two events in a row, ns.
struct Floor {
  static constexpr uint32_t kKept = 31;
  uint32_t count;   // ever
  uint64_t median;  // of those kept
  uint64_t last[kKept];
};

// When events ended, by the host's clock: an event of ours that ended at a known moment, and the distance of others.
class EventAnchors {
 public:
  /// Places an anchor if that of the stream's place is a second old. The program has just waited for the stream, so an
  /// event ends at once: the two reads of the clock around it say when.
  void place(const EventRuntime& runtime, Stream stream, bool per_thread) {
    const uint64_t place = runtime.place(stream, per_thread);
    Anchor* const anchor = place == kNoPlace ? nullptr : of(place);
    if (anchor == nullptr) return;
    const int64_t now = raw_now();
    constexpr int64_t kEvery = 1'000'000'000;
    if (anchor->tried != 0 && now < anchor->tried + kEvery) return;
    anchor->place = place;
    anchor->tried = now;
    if (anchor->next == nullptr && !runtime.create(place, &anchor->next)) {
      anchor->next = nullptr;
      return;
    }
    const int64_t before = raw_now();
    if (!runtime.record(anchor->next, stream, per_thread)) return;
    int64_t after = before;
    constexpr int64_t kMost = 50'000;  // another thread may have given the stream work meanwhile
    EventState state = EventState::kPending;
    while (state == EventState::kPending && after - before < kMost) {
      state = runtime.query(anchor->next);
      after = raw_now();
    }
    if (state != EventState::kEnded) return;
    const Event event = anchor->event;
    anchor->event = anchor->next;
    anchor->next = event;
    anchor->raw = before + (after - before) / 2;
    anchor->half_width = (after - before + 1) / 2;
  }

  /// Whether moments of events of the place are known.
  bool has(uint64_t place) const {
    for (const Anchor& anchor : anchors_)
      if (anchor.place == place && anchor.event != nullptr) return true;
    return false;
  }

  /// The moment at which an event of the place ended, CLOCK_MONOTONIC_RAW ns, give or take `half_width` ns. False: not
  /// known.
  bool moment(const EventRuntime& runtime, uint64_t place, Event event, int64_t& raw, uint64_t& half_width) const {
    for (const Anchor& anchor : anchors_) {
      if (anchor.place != place || anchor.event == nullptr) continue;
      float milliseconds = 0;
      bool known = runtime.elapsed(anchor.event, event, &milliseconds);
      if (!known && runtime.elapsed(event, anchor.event, &milliseconds)) {
        milliseconds = -milliseconds;
        known = true;
      }
      const double ns = static_cast<double>(milliseconds) * 1e6;
      const double distance = ns < 0 ? -ns : ns;
      constexpr double kLongest = 1e15;
      if (!known || !(distance < kLongest)) return false;
      raw = anchor.raw + static_cast<int64_t>(ns);
      // Events are told in steps of half a microsecond, as floats of 24 bits, and clocks drift by up to 20 ppm.
      constexpr double kStep = 500, kDrift = 20e-6, kFloat = 6e-8;
      half_width =
          static_cast<uint64_t>(anchor.half_width) + static_cast<uint64_t>(kStep + distance * (kDrift + kFloat));
      return true;
    }
    return false;
  }

  template <typename Body>
  void for_each_place(Body body) const {
    for (const Anchor& anchor : anchors_) body(anchor.place);
  }
  /// The place's events go. In its context.
  void destroy(const EventRuntime& runtime, uint64_t place) {
    for (Anchor& anchor : anchors_) {
      if (anchor.place != place) continue;
      for (Event const event : {anchor.event, anchor.next})
        if (event != nullptr) runtime.destroy(event);
      anchor = {};
    }
  }
  /// A place is gone, or all (kAnyPlace) are, and its events with it.
  void forget(uint64_t place) {
    for (Anchor& anchor : anchors_)
      if (place == kAnyPlace || anchor.place == place) anchor = {};
  }

 private:
  struct Anchor {
    uint64_t place;  // kNoPlace: free
    Event event, next;
    int64_t raw, half_width, tried;
  };
  Anchor* of(uint64_t place) {
    Anchor* free = nullptr;
    for (Anchor& anchor : anchors_) {
      if (anchor.place == place) return &anchor;
      if (anchor.place == kNoPlace && free == nullptr) free = &anchor;
    }
    return free;
  }
  Anchor anchors_[16];
};

}  // namespace

struct EventTimer::Waiting {
  TimingEvents events;
  uint64_t place;
  WatchRow* row;
  uint32_t level;
  uint32_t records;  // events in front of the operation
  bool floor_good;   // the device had not reached `first` when everything was in its queue
  bool behind;       // nor `before`
  uint64_t kept;     // its record in the ring; 0 = none
};

// A forked child finds it zeroed.
struct EventTimer::State {
  LockWord lock;
  std::atomic<uint32_t> waiting_count;
  uint32_t turn;  // where to look next
  Waiting waiting[kMostWaiting];
  Spare spare[kMostPlaces];
  Floor floor;
  // What keeps a device busy that waits for work: how many things hold it, or where nothing can, how often `first` is
  // recorded; and timings in a row that came too late, and in time.
  uint32_t held, lead, missed, calm;
  bool cannot_hold, no_beside;
  BesideEvents beside;  // high = 0: unknown
  EventAnchors anchors;
};

namespace {

void lose_time() {
  g_table->header.lost_times.fetch_add(1, std::memory_order_relaxed);
}

uint64_t whole_ns(float milliseconds) {
  const double ns = static_cast<double>(milliseconds) * 1e6;
  const auto whole = static_cast<uint64_t>(ns);
  return whole + (ns - static_cast<double>(whole) >= 0.5 ? 1 : 0);
}

}  // namespace

bool EventTimer::start(const EventRuntime& runtime) {
  auto* const state = static_cast<State*>(map_pages(sizeof(State)));
  if (state == nullptr) return false;
  madvise(state, sizeof(State), MADV_WIPEONFORK);
  runtime_ = &runtime;
  state_ = state;
  return true;
}

void EventTimer::give_back(uint64_t place, const TimingEvents& events) {
  for (Spare& spare : state_->spare) {
    if (spare.place != place || spare.count == kMostWaiting) continue;
    spare.events[spare.count++] = events;
    return;
  }
}

void EventTimer::note_beside() {
  if (runtime_->beside == nullptr) return;
  const BesideEvents found = runtime_->beside();
  BesideEvents& known = state_->beside;
  if (found.high == 0 || state_->no_beside) {
    known = {};
    state_->no_beside = true;  // for all devices: times must not differ in what they contain
    g_table->header.beside_domains.fetch_and(~(uint64_t{1} << runtime_->domain), std::memory_order_relaxed);
    return;
  }
  known.low = known.high == 0 || found.low < known.low ? found.low : known.low;
  known.high = found.high > known.high ? found.high : known.high;
  known.long_from = found.long_from;
  known.long_more = found.long_more;
  known.long_spread = found.long_spread;
  WatchHeader& header = g_table->header;
  header.beside_low.store(known.low, std::memory_order_relaxed);
  header.beside_high.store(known.high, std::memory_order_relaxed);
  header.beside_long_from.store(known.long_from, std::memory_order_relaxed);
  header.beside_long_spread.store(known.long_spread, std::memory_order_relaxed);
  header.beside_domains.fetch_or(uint64_t{1} << runtime_->domain, std::memory_order_relaxed);
}

bool EventTimer::take_events(uint64_t place, TimingEvents& events) {
  Spare* found = nullptr;
  for (Spare& spare : state_->spare) {
    if (spare.place == kNoPlace && found == nullptr) found = &spare;
    if (spare.place != place) continue;
    found = &spare;
    break;
  }
  if (found == nullptr) return false;
  if (found->place == kNoPlace) note_beside();
  found->place = place;
  if (found->count > 0) {
    events = found->events[--found->count];
    return true;
  }
  events = {};
  for (Event* const each : {&events.first, &events.before, &events.after})
    if (!runtime_->create(place, each)) {
      for (Event const made : {events.first, events.before})
        if (made != nullptr) runtime_->destroy(made);
      return false;
    }
  return true;
}

// The time between two events that have ended, ns.
bool EventTimer::between(Event from, Event to, uint64_t& ns) const {
  float milliseconds = 0;
  if (!runtime_->elapsed(from, to, &milliseconds) || !(milliseconds >= 0)) return false;
  ns = whole_ns(milliseconds);
  return true;
}

void EventTimer::add_floor(uint64_t ns) {
  Floor& floor = state_->floor;
  floor.last[floor.count++ % Floor::kKept] = ns;
  const uint32_t known = floor.count < Floor::kKept ? floor.count : Floor::kKept;
  uint64_t sorted[Floor::kKept];
  for (uint32_t i = 0; i < known; ++i) {
    uint32_t at = i;
    for (; at > 0 && sorted[at - 1] > floor.last[i]; --at) sorted[at] = sorted[at - 1];
    sorted[at] = floor.last[i];
  }
  floor.median = sorted[known / 2];
  WatchHeader& header = g_table->header;
  header.floor.store(floor.median, std::memory_order_relaxed);
  header.floor_spread.store((sorted[known * 3 / 4] - sorted[known / 4] + 1) / 2, std::memory_order_relaxed);
  header.floor_domains.fetch_or(uint64_t{1} << runtime_->domain, std::memory_order_relaxed);
}

// What is known of an operation whose events have all ended.
void EventTimer::read_time(const Waiting& one) {
  uint64_t ns = 0, floor = 0;
  if (!between(one.events.before, one.events.after, ns)) return lose_time();
  if (one.floor_good && between(one.events.first, one.events.before, floor)) add_floor(floor);
  floor = state_->floor.median;
  const BesideEvents& beside = state_->beside;
  const bool is_long = ns >= floor + beside.long_from;
  const uint64_t more = is_long ? beside.long_more : 0, middle = (beside.low + beside.high) / 2 + more,
                 least = beside.low + more - (is_long ? beside.long_spread : 0);
  g_table->header.device_time.fetch_add((one.records + 1) * floor + middle, std::memory_order_relaxed);
  const bool kernels = one.row->kind == WatchKind::kKernel || one.row->kind == WatchKind::kGraph;
  const auto without = [&](uint64_t around) {
    const uint64_t all = floor + (kernels ? around : 0);
    return ns > all ? ns - all : 0;
  };
  if (!one.behind || state_->floor.count == 0) return add_bound(*one.row, one.level, without(least));
  const uint64_t time = without(middle);
  add_time(*one.row, one.level, time);
  int64_t began = 0;
  uint64_t half_width = 0;
  if (one.kept != 0 && state_->anchors.moment(*runtime_, one.place, one.events.before, began, half_width))
    keep_times(one.kept, began + static_cast<int64_t>(ns - time) / 2, time, half_width);
}

// Reads the times of operations that have ended, asking for `most`. Under the lock.
void EventTimer::read_times(uint32_t most) {
  uint32_t count = state_->waiting_count.load(std::memory_order_relaxed);
  if (count == 0 || capturing()) return;
  const uint64_t readable = runtime_->readable();
  if (readable == kNoPlace) return;
  uint32_t asked = 0;
  for (uint32_t looked = count; looked > 0 && asked < most && count > 0; --looked) {
    if (state_->turn >= count) state_->turn = 0;
    Waiting& one = state_->waiting[state_->turn];
    const bool asks = readable == kAnyPlace || one.place == readable;
    asked += asks ? 1 : 0;
    const EventState found = asks ? runtime_->query(one.events.after) : EventState::kPending;
    if (found == EventState::kPending) {
      ++state_->turn;
      continue;
    }
    if (found == EventState::kEnded)
      read_time(one);
    else
      lose_time();
    give_back(one.place, one.events);
    one = state_->waiting[--count];
    state_->waiting_count.store(count, std::memory_order_relaxed);
    g_table->header.pending.fetch_sub(1, std::memory_order_relaxed);
  }
}

void EventTimer::read_after_wait() {
  if (state_->waiting_count.load(std::memory_order_relaxed) == 0 || !try_lock(state_->lock)) return;
  const int64_t from = read_clock(CLOCK_MONOTONIC);
  read_times(32);
  unlock(state_->lock);
  g_table->header.prepared_time.fetch_add(static_cast<uint64_t>(read_clock(CLOCK_MONOTONIC) - from),
                                          std::memory_order_relaxed);
}

void EventTimer::relate_clocks(Stream stream, bool per_thread) {
  if (!keeps() || capturing() || !try_lock(state_->lock)) return;
  if (!capturing()) state_->anchors.place(*runtime_, stream, per_thread);
  unlock(state_->lock);
}

void EventTimer::read_last() {
  if (state_ == nullptr || !try_lock(state_->lock)) return;
  read_times(kMostWaiting);
  unlock(state_->lock);
}

void EventTimer::forget(uint64_t place) {
  const Guard guard(state_->lock);
  uint32_t count = state_->waiting_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count;) {
    if (place != kAnyPlace && state_->waiting[i].place != place) {
      ++i;
      continue;
    }
    state_->waiting[i] = state_->waiting[--count];
    g_table->header.pending.fetch_sub(1, std::memory_order_relaxed);
    lose_time();
  }
  state_->waiting_count.store(count, std::memory_order_relaxed);
  state_->anchors.forget(place);
  for (Spare& spare : state_->spare)
    if (place == kAnyPlace || spare.place == place) {
      spare.place = kNoPlace;
      spare.count = 0;
    }
}

void EventTimer::begin_stay() {
  captures_.store(0, std::memory_order_relaxed);
  if (state_ == nullptr) return;
  const Guard guard(state_->lock);
  state_->waiting_count.store(0, std::memory_order_relaxed);
  state_->floor = {};
  // Of calls that were on their way when tacho left: their context may be gone.
  for (Spare& spare : state_->spare) {
    spare.place = kNoPlace;
    spare.count = 0;
  }
  state_->anchors.forget(kAnyPlace);
}

template <typename Body>
void EventTimer::over_places(bool (*enter)(uint64_t place), Body body) {
  uint64_t seen[kMostPlaces * 2] = {};
  size_t count = 0;
  const auto see = [&](uint64_t place) {
    for (size_t i = 0; i < count; ++i)
      if (seen[i] == place) return;
    if (place != kNoPlace && count < kMostPlaces * 2) seen[count++] = place;
  };
  for (uint32_t i = 0; i < state_->waiting_count.load(std::memory_order_relaxed); ++i) see(state_->waiting[i].place);
  for (const Spare& spare : state_->spare) see(spare.place);
  state_->anchors.for_each_place(see);
  for (size_t i = 0; i < count; ++i)
    if (enter(seen[i])) body(seen[i]);
}

void EventTimer::end_stay(bool (*enter)(uint64_t place)) {
  if (state_ == nullptr) return;
  constexpr int64_t kPatience = 1'000'000'000;
  const int64_t begin = read_clock(CLOCK_MONOTONIC);
  for (;;) {
    {
      // Places do not go while the lock is held: forget() asks for it.
      const Guard guard(state_->lock);
      over_places(enter, [&](uint64_t) { read_times(kMostWaiting); });
      if (state_->waiting_count.load(std::memory_order_relaxed) == 0) break;
    }
    if (read_clock(CLOCK_MONOTONIC) - begin > kPatience) break;
    const timespec moment{0, 1'000'000};
    nanosleep(&moment, nullptr);
  }
  const Guard guard(state_->lock);
  uint32_t count = state_->waiting_count.load(std::memory_order_relaxed);
  for (; count > 0; --count) {
    give_back(state_->waiting[count - 1].place, state_->waiting[count - 1].events);
    g_table->header.pending.fetch_sub(1, std::memory_order_relaxed);
    lose_time();
  }
  state_->waiting_count.store(0, std::memory_order_relaxed);
  over_places(enter, [&](uint64_t place) {
    state_->anchors.destroy(*runtime_, place);
    for (Spare& spare : state_->spare) {
      if (spare.place != place) continue;
      for (uint32_t i = 0; i < spare.count; ++i)
        for (Event const event : {spare.events[i].first, spare.events[i].before, spare.events[i].after})
          runtime_->destroy(event);
      spare.count = 0;
      spare.place = kNoPlace;
    }
  });
}

void EventTimer::destroy_events() {
  if (state_ == nullptr || !try_lock(state_->lock)) return;
  captures_.store(1, std::memory_order_relaxed);  // no more timing
  const auto destroy = [&](const TimingEvents& events) {
    for (Event const each : {events.first, events.before, events.after}) runtime_->destroy(each);
  };
  for (uint32_t i = 0; i < state_->waiting_count.load(std::memory_order_relaxed); ++i)
    destroy(state_->waiting[i].events);
  for (Spare& spare : state_->spare)
    for (; spare.count > 0; --spare.count) destroy(spare.events[spare.count - 1]);
  state_->waiting_count.store(0, std::memory_order_relaxed);
  unlock(state_->lock);
}

void EventTimer::begin_capture() {
  // Nobody asks for an event of ours from here on.
  const Guard guard(state_->lock);
  captures_.fetch_add(1, std::memory_order_relaxed);
}

void EventTimer::end_capture() {
  uint32_t captures = captures_.load(std::memory_order_relaxed);
  while (captures > 0 && !captures_.compare_exchange_weak(captures, captures - 1, std::memory_order_relaxed)) {
  }
}

void EventTimer::hold(Stream stream, bool per_thread) {
  if (state_->held == 0 || runtime_->hold(stream, per_thread, state_->held)) return;
  state_->cannot_hold = true;
  state_->held = 0;
}

// A device that waits for work would reach the events before the host has launched the operation. Something in front
// keeps it busy meanwhile: as much as it takes, within bounds, so that it never waits for the host.
void EventTimer::choose_lead(bool behind) {
  constexpr uint32_t kMostLead = 16, kFewestHeld = 8;
  State& state = *state_;
  if (behind) {
    state.missed = 0;
    if (++state.calm % 16 != 0) return;
    state.held -= (state.held + 7) / 8;
    if (state.lead > 1) --state.lead;
  } else if (runtime_->hold != nullptr && !state.cannot_hold) {
    if (++state.missed % 2 != 0) return;  // the host may have been interrupted
    state.held = state.held < kFewestHeld ? kFewestHeld : state.held * 2;
    if (state.held > kMostHeld) state.held = kMostHeld;
  } else {
    state.lead = state.lead + 2 < kMostLead ? state.lead + 2 : kMostLead;
  }
}

OpenTiming EventTimer::open(Stream stream, bool per_thread) {
  OpenTiming timing;
  timing.stream = stream;
  timing.per_thread = per_thread;
  const Guard guard(state_->lock);
  if (capturing()) return timing;
  read_times(3);
  if (state_->waiting_count.load(std::memory_order_relaxed) == kMostWaiting) return timing;
  timing.place = runtime_->place(stream, per_thread);
  // Before the first operation a device has nothing to do.
  if (keeps() && !state_->anchors.has(timing.place)) state_->anchors.place(*runtime_, stream, per_thread);
  if (timing.place == kNoPlace || !take_events(timing.place, timing.events)) return timing;
  hold(stream, per_thread);
  if (state_->lead == 0) state_->lead = 1;
  // Always one event in front of the pair: what a device takes for the first event after something else is another time
  // than for the next one, by up to a microsecond.
  timing.firsts = state_->lead;
  timing.open = true;
  for (uint32_t i = 0; timing.open && i < timing.firsts; ++i)
    timing.open = runtime_->record(timing.events.first, stream, per_thread);
  timing.open = timing.open && runtime_->record(timing.events.before, stream, per_thread);
  if (!timing.open) give_back(timing.place, timing.events);
  return timing;
}

void EventTimer::close(const OpenTiming& timing, WatchRow& row, uint32_t level, bool good, uint64_t kept) {
  if (timing.open) {
    const Guard guard(state_->lock);
    const uint32_t count = state_->waiting_count.load(std::memory_order_relaxed);
    const bool whole = good && count < kMostWaiting && !capturing() &&
                       runtime_->record(timing.events.after, timing.stream, timing.per_thread);
    if (whole) {
      // A device that was waiting for work has stamped the event at once, and then waited for the operation.
      const bool floor_good = runtime_->query(timing.events.first) == EventState::kPending;
      const bool behind = floor_good || runtime_->query(timing.events.before) == EventState::kPending;
      choose_lead(behind);
      state_->waiting[count] = {timing.events, timing.place, &row, level, timing.firsts + 1, floor_good, behind, kept};
      state_->waiting_count.store(count + 1, std::memory_order_relaxed);
      g_table->header.pending.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    give_back(timing.place, timing.events);
  }
  if (good) lose_time();
}

}  // namespace tacho::capture::watch
