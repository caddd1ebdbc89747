// The result of one rank's pass: how its GPU spent the time, its collectives, messages and steps. Rows of all ranks lie
// in unnamed files.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/files/temporary.h"
#include "base/result.h"
#include "event/schema.h"
#include "ranks/match/communication.h"

namespace tacho::ranks {

using event::kUnknown;

/// How much time went into one thing under a name.
struct NamedTime {
  uint64_t name = 0;  // Names::text(); 0 = none
  int64_t count = 0;
  int64_t time = 0;  // ns
};

/// A collective on one rank, and the stretch of time before it: from the end of the collectives before it (`from`) to
/// its start. All times in ns of the rank's own clock.
struct Arrival {
  int64_t start, end;
  int64_t launch;  // start of the call that launched it; kUnknown = not in the trace
  int64_t from;
  int64_t bytes;       // message_bytes(); 0 = unknown
  int64_t compute;     // of the stretch: some kernel ran
  int64_t copy;        // copies and fills ran, and no kernel
  int64_t idle;        // nothing ran
  int64_t host;        // of idle: the call that launched what ran next had not returned
  int64_t unlaunched;  // of idle: what ran next has no launching call in the trace
  int64_t mpi;         // nothing ran on the GPU, and the host was in other calls of MPI
  int64_t kernels;     // launched in this step before the collective, no collectives among them; without launching
                       // calls, that began
  int64_t copies;      // likewise
  int32_t step;        // number of the step, from 0; -1 = before the first, or no steps
  uint32_t communicator;
  uint32_t sequence;  // number among the communicator's collectives on this rank, from 0
  uint32_t previous_communicator,
      previous_sequence;            // of the collective that ended at `from`; kNobody = none
  int64_t number, previous_number;  // as the program counts its collectives ("Seq"); -1 = it does not tell
  uint64_t identity;                // StatedCollective::identity; 0 = none
  Operation operation;
  bool by_host;         // a call of MPI, no kernel
  int32_t group_size;   // as the file says; -1 = unknown
  NamedTime kernel[3];  // that took the most time in the stretch
  NamedTime call[2];    // API calls of the host that took the most time in the stretch
  NamedTime range[2];   // ranges of the program, likewise
  static constexpr uint32_t kNobody = UINT32_MAX;
};

/// Unions of intervals, ns (docs/ranks.md).
struct Times {
  int64_t first = kUnknown, last = kUnknown;  // start of the first and end of the last GPU operation
  int64_t compute = 0;                        // some kernel that is no collective ran
  int64_t communication = 0;                  // some collective ran
  int64_t copies = 0;                         // some copy or fill ran
  int64_t compute_or_communication = 0;
  int64_t busy = 0;          // anything ran
  int64_t launch_bound = 0;  // idle, and the call that launched what ran next had not returned
  int64_t span() const { return first == kUnknown ? 0 : last - first; }
  int64_t idle() const { return span() - busy; }
  int64_t exposed_communication() const { return compute_or_communication - compute; }
  int64_t exposed_copies() const { return busy - compute_or_communication; }
  int64_t overlap() const { return communication - exposed_communication(); }
};

/// A message of MPI on one of its two ranks. Times of the rank's own clock.
struct MessageEvent {
  int64_t begun;       // orders the messages of a communicator, pair and tag
  int64_t start, end;  // of the call that sent it, or in which it was received
  int64_t bytes;
  int64_t peer;    // the other rank
  int64_t thread;  // row of table thread
  uint32_t communicator;
  int32_t tag;
  bool is_send;
};

struct RankRun {
  std::string file;
  int64_t rank = kUnknown;
  std::string host, program;  // keep_machines_apart() gives hosts of one name different ones
  int64_t booted = kUnknown;  // when the host was started, ns of CLOCK_REALTIME
  std::string
      device;  // name of its GPU, where all of its GPU work has the same one; "" = not known, or a part of a GPU
  int64_t process = 0;      // row of table process, 0 = all of the file
  int64_t clock_shift = 0;  // ns, added to the trace's times to get CLOCK_REALTIME; 0 if unknown
  bool has_realtime = false;
  int64_t world = -1;  // ranks of the job, as the file says
  Times total;
  size_t steps_at = 0, steps = 0;  // in the Spool of steps, by number of the step
  std::string steps_from;          // "ProfilerStep", "Optimizer.step", ...; empty = no steps
  int64_t first_step = 0;          // what the program calls step 0
  int64_t kernels = 0, operations = 0, unlaunched = 0;
  bool tells_host = false;                  // call stacks or functions of Python say where its host was
  size_t spool_at = 0, arrivals = 0;        // in the Spool
  size_t messages_at = 0, messages = 0;     // in that of messages, ascending by `begun`
  int64_t calls = 0;                        // of MPI
  int64_t mpi = 0, mpi_waiting = 0;         // ns in calls of MPI; of these in those that only wait
  int64_t file_read = 0, file_written = 0;  // bytes, by MPI
  // One-sided operations of this rank, by (giving rank, getting rank): how many, bytes.
  std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>> one_sided;
  std::vector<uint32_t> communicators;  // of its collectives, ascending
  /// By communicator: the program's number of the first collective, where it numbers all of them, ascending.
  std::map<uint32_t, int64_t> numbered;
  /// The communicators of whose collectives every one has an identity, ascending.
  std::vector<uint32_t> identified;
  /// Different identities, ascending: all of them, or the least kMostIdentities.
  std::vector<uint64_t> identities;
  static constexpr size_t kMostIdentities = 512;
  std::vector<std::string> remarks;
};

/// Names and communicators of all ranks. Safe to use from several threads.
class Names {
 public:
  uint64_t number(std::string_view text);
  std::string text(uint64_t number) const;
  struct Communicator {
    std::string name, description, members;  // as the files say; empty = unknown
    int64_t size = -1;                       // as the files say; -1 = unknown
  };
  uint32_t communicator(const StatedCollective& stated);
  /// One of MPI's, by an identity that is the same on all of its ranks.
  uint32_t communicator(const std::string& identity, const Communicator& about);
  /// One that nothing names, apart from all others.
  uint32_t new_communicator(const Communicator& about);
  Communicator communicator(uint32_t number) const;
  /// The communicator of all collectives of which the files say neither group nor members; UINT32_MAX = none.
  uint32_t unnamed_communicator() const;
  uint32_t communicators() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, std::string> texts_;
  std::unordered_map<std::string, uint32_t> keys_;
  std::vector<Communicator> communicators_;
};

/// Bytes of all ranks in one temporary file.
class SpoolFile {
 public:
  static Result<SpoolFile> create();
  /// Where they begin; safe to call from several threads.
  Result<size_t> append(const void* bytes, size_t size);
  Status read(size_t at, size_t size, void* to) const;

 private:
  TemporaryFile file_;
  size_t size_ = 0;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
};

/// Rows of all ranks in one temporary file; places and numbers count rows.
template <typename Row>
class Spool {
 public:
  static Result<Spool> create() {
    Spool spool;
    TACHO_ASSIGN(spool.file_, SpoolFile::create());
    return spool;
  }
  Result<size_t> append(const std::vector<Row>& rows) {
    TACHO_ASSIGN(const size_t at, file_.append(rows.data(), rows.size() * sizeof(Row)));
    return at / sizeof(Row);
  }
  Status read(size_t at, size_t count, Row* to) const { return file_.read(at * sizeof(Row), count * sizeof(Row), to); }

 private:
  SpoolFile file_;
};

/// The rows of all passes.
struct Spools {
  Spool<Arrival> arrivals;
  Spool<MessageEvent> messages;
  Spool<Times> steps;  // of a rank; first == kUnknown: the rank has nothing in that step
  static Result<Spools> create();
};

/// All steps of a run.
Result<std::vector<Times>> steps_of(const RankRun& run, const Spools& spools);

}  // namespace tacho::ranks
