// Device work begins after the call that launched it began, and ends before a wait for it returned. Where rows say
// otherwise, the device's clock and the host's are apart: this measures by how much from the rows themselves and moves
// the times, or counts the rows and says that their times are unknown, whatever recorded them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "base/files/sorted_file.h"
#include "event/call_role.h"
#include "event/schema.h"
#include "trace/write/known_calls.h"
#include "trace/write/writer.h"

namespace tacho::trace {

/// A writer of device work: give it every call and every piece of work, in any order.
///
/// It holds the first rows of each device until their launches and waits are known: at most `held` rows, and none for
/// more than two calls of settle(). If they fit together, later rows are written at once. If they do not, every launch
/// and every wait bounds how far the clocks are apart. Where these bounds meet and are narrow, all times of the device
/// are moved by their middle. A clock that drifts is followed in pieces.
///
/// A recording that has its calls in one table and its work in another is read with kApart: calls and work lie in
/// temporary files until work_ends(), so each piece of work finds its call, however many there are.
/// Then call work_ends() before finish().
class WorkTimes {
 public:
  enum class Calls : uint8_t { kNearTheirWork, kApart };
  /// Remembers the last `entries` (a power of two) calls or so: work that finds its call forgotten is not checked, or
  /// at compare_far() if keep_far() comes before all else.
  explicit WorkTimes(TraceWriter& writer, size_t entries = size_t{1} << 15, size_t held = 1024);
  WorkTimes(TraceWriter& writer, Calls calls);

  struct Call {
    int64_t process = 0;  ///< whatever tells processes apart whose correlations may be equal
    int64_t correlation = 0;
    int64_t start = 0, end = event::kUnknown;
    event::CallRole role = event::CallRole::kPlain;
  };
  void call(const Call& call);

  /// A wait of the host for all work on a queue's track.
  void queue_wait(int64_t process, int64_t track, int64_t start, int64_t end);

  struct Origin {
    int64_t process = 0;
    int64_t device = 0;     ///< row: work of one device has one clock
    bool to_host = false;   ///< a copy to the host
    bool blocking = false;  ///< its call returns after its end
    bool timed = true;      ///< false: its times are the host's, or unknown; they stay
  };
  void dispatch(const Origin& origin, const event::row::Dispatch& row) { add(origin, row, true); }
  void copy(const Origin& origin, const event::row::Copy& row) { add(origin, row, true); }
  void fill(const Origin& origin, const event::row::Fill& row) { add(origin, row, true); }
  template <typename RowOf>
  void work(const Origin& origin, const RowOf& row) {
    add(origin, row, true);
  }
  /// A barrier or marker on a queue, in its device's time.
  void sync(const Origin& origin, const event::row::Sync& row) { add(origin, row, false); }
  /// A counter's value, which keeps the start of its dispatch. Only with kApart.
  void counter_value(const Origin& origin, const event::row::CounterValue& row) { add(origin, row, false); }

  /// Call about twice a second: writes the rows that were there at the last call.
  void settle();
  /// Only with kApart: no call comes any more. Work that follows is compared as it comes, unless `keep` says that
  /// values of counters follow behind it. Errors: a temporary file cannot be written.
  Status calls_end(bool keep = false);
  /// Only with kApart, behind the last row: compares what was kept. Errors: a temporary file cannot be written.
  Status work_ends();
  void keep_far() { keeps_far_ = true; }
  /// Work that found no call among the last ones: `call` tells when that began, kUnknown = there is none. Such work is
  /// written already, so its times are not moved. Errors: a temporary file cannot be written.
  Status compare_far(const std::function<int64_t(int64_t process, int64_t correlation)>& call);
  /// Writes all rows and says what was moved and what was out of order. `row`: of table process, 0 = of several.
  void finish(int64_t row);

 private:
  using Row = std::variant<event::row::Dispatch, event::row::Copy, event::row::Fill, event::row::Sync,
                           event::row::CounterValue>;
  struct Held {
    Row row;
    int64_t start, end, track, correlation;  // end kUnknown: still running
    bool to_host, blocking, launched;        // launched: by a call, which bounds its start
  };
  // How far the device's clock is behind the host's, at least and at most.
  struct Bounds {
    int64_t least = kNone, most = -kNone;
    static constexpr int64_t kNone = INT64_MIN / 2;
    bool certain = false;  // that `most` is of this queue or device
    bool known() const { return least != kNone || most != -kNone; }
  };
  struct Piece {
    Bounds bounds;
    size_t begin = 0;                    // of the rows
    int64_t moved = 0;                   // ns
    int64_t narrowest = -Bounds::kNone;  // of the bounds of one row, ns
    int64_t waits = 0, certain_waits = 0;
    bool unknown = false;
  };
  struct Device {
    int64_t process = 0, row = 0, first_track = 0;
    bool several_tracks = false, trusted = false;
    int64_t last_start = event::kUnknown, last_moved = 0;  // of the row written last: as it was given, and by how much
    std::vector<Held> held;
    size_t old = 0;  // of `held`: those that were there at the last settle()
    Bounds bounds;   // of the last piece, if its times were moved
    int64_t moved = 0, pieces = 0, least_moved = 0, most_moved = 0;  // rows moved, and by how much
    std::vector<int64_t> errors, widths;  // half of the bounds of each piece; of its narrowest row, ns
  };
  struct Entry {
    int64_t process = 0, correlation = 0;
    int64_t call = event::kUnknown, end = event::kUnknown, work = event::kUnknown;  // starts, and the call's end
    size_t device = 0;                                                              // of `work`
    bool copies = false;
  };
  struct Kept {
    Origin origin;
    Row row;
    bool launched;
    int64_t start;
    int64_t sort_key() const { return start; }
    bool operator<(const Kept& other) const { return start < other.start; }
  };

  struct FarWork {
    int64_t process, correlation, start;
    size_t device;
    bool operator<(const FarWork& other) const {
      return process != other.process ? process < other.process : correlation < other.correlation;
    }
  };

  template <typename RowOf>
  void add(const Origin& origin, const RowOf& row, bool launched);
  size_t device_of(const Origin& origin, int64_t track);
  template <typename RowOf>
  void put(const Origin& origin, const RowOf& row, bool launched);
  Entry& of(int64_t process, int64_t correlation);
  KnownCalls::Times call_of(int64_t process, int64_t correlation);
  void check(int64_t process, int64_t correlation, size_t device, int64_t start);
  void compare(int64_t call, size_t device, int64_t start);
  Bounds bounds_of(const Device& device, const Held& held, std::span<const HostWait> waits);
  std::vector<HostWait> near_waits(int64_t process) const;
  std::vector<Piece> pieces_of(const Device& device, const std::vector<Bounds>& bounds) const;
  void write(size_t number, size_t count);
  void say_moved(const Device& device, int64_t row);

  TraceWriter& writer_;
  size_t size_, most_held_;
  std::vector<Entry> entries_;
  std::vector<HostWait> waits_;  // the newest, around `next_wait_`
  size_t next_wait_ = 0;
  bool apart_ = false, keeps_ = false, known_ends_ = false, keeps_far_ = false;
  KnownCalls known_;       // if apart
  SortedFile<Kept> kept_;  // if apart
  SortedFile<FarWork> far_;
  std::vector<Device> devices_;
  std::map<std::pair<int64_t, int64_t>, size_t> numbers_;  // of devices, by process and row
  std::map<int64_t, size_t> devices_of_;                   // how many each process has
  std::vector<int64_t> distances_;
  int64_t checked_ = 0, early_ = 0, late_ = 0, worst_ = 0;
};

}  // namespace tacho::trace
