// Times of operations between two events of the runtime on their own stream, from a pool, whichever runtime it is.
#pragma once

#include "capture/plugin/watch/sums.h"
#include "capture/room/lock.h"

namespace tacho::capture::watch {

using Stream = void*;
using Event = void*;

enum class EventState : uint8_t { kPending, kEnded, kFailed };

/// What a device takes from an event to a kernel and back, on top of what it takes between two events, ns: at least and
/// at most for kernels that are shorter than `long_from`, and `long_more` on top for longer ones, give or take
/// `long_spread`.
struct BesideEvents {
  uint64_t low, high, long_from, long_more, long_spread;
};

/// What a timer needs of a runtime. It calls these under its lock; none of them may wait.
struct EventRuntime {
  uint32_t domain;  ///< event::Domain
  /// Where events for the stream are to be made, a context or a device; 0: nowhere, nothing is timed.
  uint64_t (*place)(Stream stream, bool per_thread);
  /// The place whose events the calling thread may ask for: kNoPlace, one, or kAnyPlace.
  uint64_t (*readable)();
  bool (*create)(uint64_t place, Event* event);
  void (*destroy)(Event event);
  bool (*record)(Event event, Stream stream, bool per_thread);
  EventState (*query)(Event event);
  /// Between two events that have ended.
  bool (*elapsed)(Event from, Event to, float* milliseconds);
  /// Keeps the device busy for a moment with `count` (at most kMostHeld) things that wait for nothing; nullptr: by
  /// events only. False: the runtime cannot.
  bool (*hold)(Stream stream, bool per_thread, uint32_t count);
  /// Of the place of the calling thread; nullptr, or high = 0: unknown.
  BesideEvents (*beside)();
};
inline constexpr uint32_t kMostHeld = 64;
inline constexpr uint64_t kNoPlace = 0, kAnyPlace = ~uint64_t{0};

/// Events around operations. Between `first` and `before` there is nothing: their distance is what events take.
struct TimingEvents {
  Event first, before, after;
};
/// An operation that is being put into its stream: from EventTimer::open() to close().
struct OpenTiming {
  Stream stream = nullptr;
  uint64_t place = kNoPlace;
  TimingEvents events = {};
  bool per_thread = false, open = false;
  uint32_t firsts = 0;  // how often `first` was recorded
};

class EventTimer {
 public:
  /// Once, before all else. False when there is no memory. A forked child finds a timer without events: those of its
  /// parent are not its own.
  bool start(const EventRuntime& runtime);

  /// Puts events in front of an operation.
  OpenTiming open(Stream stream, bool per_thread);
  /// And behind it. `good`: the runtime took the operation. The time goes to the row once the device has passed.
  /// `kept`: the operation's record in the ring, 0 = none.
  void close(const OpenTiming& timing, WatchRow& row, uint32_t level, bool good, uint64_t kept);

  /// A stream is captured from now on: while there is one, no event of ours is recorded or asked for.
  void begin_capture();
  void end_capture();
  bool capturing() const { return captures_.load(std::memory_order_relaxed) != 0; }

  /// After the program has waited for its device.
  void read_after_wait();
  /// After it has waited for this stream, before the above: now and then it relates the device's clock to the host's,
  /// for what is kept.
  void relate_clocks(Stream stream, bool per_thread);
  /// At the process's end, or that of a device.
  void read_last();
  /// Destroys the events that are not in use, and those of operations that have not ended. Nothing is timed after it.
  void destroy_events();
  /// The events of a place that goes, or of all (kAnyPlace), are gone with it.
  void forget(uint64_t place);
  /// Before operations are counted in another table than before.
  void begin_stay();
  /// When tacho leaves a program that goes on: reads the times of what ends within a second, counts the others as lost,
  /// and destroys all events. `enter` makes a place that of the calling thread, or says that it is none.
  void end_stay(bool (*enter)(uint64_t place));

 private:
  struct Waiting;
  struct State;
  bool between(Event from, Event to, uint64_t& ns) const;
  void give_back(uint64_t place, const TimingEvents& events);
  bool take_events(uint64_t place, TimingEvents& events);
  void note_beside();
  void hold(Stream stream, bool per_thread);
  void choose_lead(bool behind);
  void add_floor(uint64_t ns);
  void read_time(const Waiting& one);
  void read_times(uint32_t most);
  template <typename Body>
  void over_places(bool (*enter)(uint64_t place), Body body);

  const EventRuntime* runtime_ = nullptr;
  State* state_ = nullptr;
  std::atomic<uint32_t> captures_{0};
};

}  // namespace tacho::capture::watch
