// A wrapper for each function in event/functions/functions_mpi.def (wrappers.h). kCalls says what each function does;
// the wrappers only pass parameters on, as words that mean nothing to them. They ask for sizes, ranks and statuses
// after the call, and only if it has succeeded: a wrong handle concerns only the program and its error handler.
#include "capture/plugin/mpi/wrappers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utility>

#include "capture/plugin/mpi/communicators.h"
#include "capture/plugin/mpi/library.h"
#include "capture/plugin/mpi/requests.h"
#include "capture/plugin/mpi/roles.h"
#include "capture/plugin/mpi/volume.h"
#include "event/schema.h"

namespace tacho::capture::mpi {
namespace {

constinit void* g_real[kCallCount] = {};

// Frame of the wrapper that the thread is in, 0 = none: MPI calls itself, and those calls are not the program's. A
// frame that was left by longjmp or an exception lies below the one that comes next.
thread_local constinit uintptr_t t_within __attribute__((tls_model("initial-exec"))) = 0;

constexpr size_t kMostOnStack = 256;  // requests of a call

// The requests of a call before it, and statuses if the program passes none.
struct Requests {
  Word* handles = nullptr;
  size_t count = 0;
  bool known = false;  // one of them at least
  Word on_stack[kMostOnStack];
  alignas(8) char statuses_on_stack[kMostOnStack * 24];
  char* statuses = nullptr;
  char* own_statuses = nullptr;  // allocated

  void read(Word array, size_t number) {
    count = number;
    handles = number <= kMostOnStack ? on_stack : static_cast<Word*>(malloc(number * sizeof(Word)));
    if (handles == nullptr) count = 0;
    for (size_t i = 0; i < count; ++i) {
      handles[i] = g_mpi.read_handle(g_mpi.element(array, i));
      known = known || known_request(handles[i]);
    }
  }
  void put_statuses(Word& parameter, size_t number) {
    statuses = reinterpret_cast<char*>(parameter);
    if (parameter != g_mpi.ignore || !known) return;
    if (number > kMostOnStack) own_statuses = static_cast<char*>(malloc(number * g_mpi.status_bytes));
    statuses = number > kMostOnStack ? own_statuses : statuses_on_stack;
    if (statuses != nullptr) parameter = reinterpret_cast<Word>(statuses);
  }
  ~Requests() {
    if (handles != on_stack) free(handles);
    free(own_statuses);
  }
  Requests() {}
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
};

struct Context {
  MpiCall call;
  uint64_t end;
  bool recorded;
  alignas(8) char status[24];
  char* status_at;  // of a call with one status
  Word probed_in;   // communicator of a message that a call before has found; 0 = unknown
};

// Messages that MPI_Mprobe has found and windows are kept among the requests, whose handles have no such bits.
constexpr Word kMessageHandle = Word{1} << 63, kWindowHandle = Word{1} << 62;

int whole(Word word) {
  return static_cast<int32_t>(word);
}

event::MessageRecord message_of(const Context& context, size_t number, event::MessageKind kind) {
  event::MessageRecord record{};
  record.header.flags = static_cast<uint8_t>(kind);
  record.header.value = static_cast<uint32_t>(number);
  record.correlation = context.call.correlation;
  record.begun = record.start = context.call.start;
  record.end = context.end;
  record.sent = record.received = kUnknownBytes;
  record.peer = event::kNoPeer;
  record.tag = event::kNoTag;
  return record;
}

void record_send(const Context& context, size_t number, Word bytes, Word peer, Word tag,
                 const Communicator* communicator) {
  if (!context.recorded || communicator == nullptr || whole(peer) == g_mpi.proc_null) return;
  event::MessageRecord record = message_of(context, number, event::MessageKind::kSend);
  record.sent = bytes;
  record.received = 0;
  record.peer = communicator->world_rank(whole(peer));
  record.tag = whole(tag);
  record.communicator = communicator->number;
  g_host->message(record);
}

void record_receive(const Context& context, size_t number, uint64_t begun, const Status& status,
                    const Communicator* communicator) {
  if (!context.recorded || status.source == g_mpi.proc_null) return;
  event::MessageRecord record = message_of(context, number, event::MessageKind::kReceive);
  record.begun = begun;
  record.sent = 0;
  record.received = status.bytes;
  record.tag = status.tag;
  if (communicator != nullptr) {
    record.peer = communicator->world_rank(status.source);
    record.communicator = communicator->number;
  }
  g_host->message(record);
}

void record_collective(const Context& context, size_t number, uint64_t begun, const Bytes& bytes, int32_t peer,
                       uint32_t communicator, uint32_t sequence) {
  if (!context.recorded) return;
  event::MessageRecord record = message_of(context, number, event::MessageKind::kCollective);
  record.begun = begun;
  record.sent = bytes.sent;
  record.received = bytes.received;
  record.peer = peer;
  record.communicator = communicator;
  record.sequence = sequence;
  g_host->message(record);
}

// Records an access to another rank's window, which moves `count` elements.
void record_one_sided(const Context& context, size_t number, const Role& role, const Word* given) {
  MpiRequest window;
  if (!context.recorded || whole(given[role.peer]) == g_mpi.proc_null ||
      !see_request(g_mpi.handle(given[role.window]) | kWindowHandle, window))
    return;
  const auto* const communicator = reinterpret_cast<const Communicator*>(window.place);
  const bool puts = role.does == Does::kPuts, gets = role.does == Does::kGets;
  const uint64_t bytes = bytes_of(role.count == kNone ? 1 : given[role.count], given[role.type], role.large);
  event::MessageRecord record = message_of(context, number,
                                           puts   ? event::MessageKind::kPut
                                           : gets ? event::MessageKind::kGet
                                                  : event::MessageKind::kUpdate);
  record.sent = gets ? 0 : bytes;
  record.received = puts ? 0 : bytes;
  record.peer = communicator->world_rank(whole(given[role.peer]));
  record.communicator = communicator->number;
  g_host->message(record);
}

void record_file(const Context& context, size_t number, uint64_t begun, bool read, uint64_t bytes) {
  if (!context.recorded) return;
  event::MessageRecord record =
      message_of(context, number, read ? event::MessageKind::kFileRead : event::MessageKind::kFileWrite);
  record.begun = begun;
  record.sent = read ? 0 : bytes;
  record.received = read ? bytes : 0;
  g_host->message(record);
}

int32_t root_of(const Role& role, const Word* given, const Communicator& communicator) {
  if (role.root == kNone) return event::kNoPeer;
  const int root = whole(given[role.root]);
  return communicator.peers == communicator.size ? communicator.world_rank(root) : event::kNoPeer;
}

// Records the operation that the request has completed.
void record_completed(const Context& context, Word handle, const char* status) {
  MpiRequest request;
  if (!complete_request(handle, request)) return;
  switch (request.kind) {
    case MpiRequest::Kind::kSend:
      break;  // recorded when it began
    case MpiRequest::Kind::kReceive: {
      const Communicator* const communicator = request.handle != 0 ? find_communicator(request.handle) : nullptr;
      if (status != nullptr) {
        record_receive(context, request.function, request.begun, read_status(status), communicator);
      } else if (context.recorded) {
        event::MessageRecord record = message_of(context, request.function, event::MessageKind::kReceive);
        record.begun = request.begun;
        record.sent = 0;
        record.peer = request.peer;
        record.tag = request.tag;
        record.communicator = request.communicator;
        g_host->message(record);
      }
      break;
    }
    case MpiRequest::Kind::kCollective:
      record_collective(context, request.function, request.begun, {request.sent, request.received}, request.peer,
                        request.communicator, request.sequence);
      break;
    case MpiRequest::Kind::kFileRead:
    case MpiRequest::Kind::kFileWrite:
      record_file(context, request.function, request.begun, request.kind == MpiRequest::Kind::kFileRead,
                  status != nullptr ? read_status(status).bytes : request.sent);
      break;
    case MpiRequest::Kind::kWindow:
      break;  // no request
    case MpiRequest::Kind::kCommunicator: {
      record_collective(context, request.function, request.begun, {0, 0}, event::kNoPeer, request.communicator,
                        request.sequence);
      add_communicator(g_mpi.read_handle(reinterpret_cast<const void*>(request.place)), request.function,
                       find_communicator(request.handle), request.sequence, false);
      break;
    }
  }
}

// The launcher starts the new processes, with an environment of its own.
void warn_of_spawned(size_t number, const Word* given) {
  if (strcmp(kCalls[number].name, "MPI_Comm_spawn") != 0) {
    g_host->warn(
        "MPI_Comm_spawn_multiple: the launcher starts these processes, and they are not recorded; let it spawn tacho "
        "with the arguments trace -o FILE -- and the program");
    return;
  }
  const auto* const program = reinterpret_cast<const char*>(given[0]);
  const char* const slash = strrchr(program, '/');
  if (strcmp(slash != nullptr ? slash + 1 : program, "tacho") == 0) return;
  char line[1024];
  snprintf(
      line, sizeof line,
      "MPI_Comm_spawn of %d x %.400s: the launcher starts these processes, and they are not recorded; let it spawn "
      "tacho with the arguments trace -o FILE -- and the program",
      whole(given[2]), program);
  g_host->warn(line);
}

// Before the call: reads what it will change, and gives it a status if the program passes none.
void before(const Role& role, Word* given, Context& context, Requests* requests) {
  const auto own_status = [&] {
    context.status_at = reinterpret_cast<char*>(given[role.status]);
    if (given[role.status] != g_mpi.ignore) return;
    context.status_at = context.status;
    given[role.status] = reinterpret_cast<Word>(context.status);
  };
  if ((role.does == Does::kReceives || role.does == Does::kStartsReceive) && role.made != kNone) {
    MpiRequest found;
    if (complete_request(g_mpi.read_handle(reinterpret_cast<const void*>(given[role.made])) | kMessageHandle, found))
      context.probed_in = found.handle;
  }
  switch (role.does) {
    case Does::kReceives:
    case Does::kExchanges:
    case Does::kReplaces:
    case Does::kReadsFile:
    case Does::kWritesFile:
      own_status();
      break;
    case Does::kFreesWindow: {
      const Word handle = g_mpi.read_handle(reinterpret_cast<const void*>(given[role.window])) | kWindowHandle;
      MpiRequest window;
      if (!see_request(handle, window)) break;
      forget_request(handle);
      release_communicator(reinterpret_cast<Communicator*>(window.place));
      break;
    }
    case Does::kWaits:
    case Does::kTests:
      requests->read(given[role.request], 1);
      if (requests->known) own_status();
      break;
    case Does::kWaitsAny:
    case Does::kTestsAny:
      requests->read(given[role.request],
                     static_cast<size_t>(whole(given[role.count]) > 0 ? whole(given[role.count]) : 0));
      if (requests->known) own_status();
      break;
    case Does::kWaitsAll:
    case Does::kTestsAll:
    case Does::kWaitsSome:
    case Does::kTestsSome: {
      const int count = whole(given[role.count]);
      requests->read(given[role.request], count > 0 ? static_cast<size_t>(count) : 0);
      requests->put_statuses(given[role.status], requests->count);
      break;
    }
    case Does::kForgets:
      forget_request(g_mpi.read_handle(reinterpret_cast<const void*>(given[role.request])));
      break;
    case Does::kFrees:
      forget_communicator(g_mpi.read_handle(reinterpret_cast<const void*>(given[role.communicator])));
      break;
    default:
      break;
  }
}

constexpr bool completes(Does does) {
  return does >= Does::kWaits && does <= Does::kTestsSome;
}

// The facts of a call that has succeeded, to be recorded. Each function below returns false for calls that it does not
// know.
struct Done {
  const Role& role;
  const size_t number;
  const Word* const given;
  Context& context;
  Requests* const requests;

  bool moved() const;
  bool began() const;
  bool started() const;
  bool completed() const;
  bool made() const;

 private:
  const void* at(int8_t place) const { return reinterpret_cast<const void*>(given[place]); }
  Communicator* communicator() const {
    if (role.communicator != kNone) return find_communicator(given[role.communicator]);
    return context.probed_in != 0 ? find_communicator(context.probed_in) : nullptr;
  }
  Word bytes() const { return bytes_of(given[role.count], given[role.type], role.large); }
  MpiRequest request(MpiRequest::Kind kind, const Communicator* own) const {
    MpiRequest request{};
    request.kind = kind;
    request.function = static_cast<uint16_t>(number);
    request.begun = context.call.start;
    if (own != nullptr) {
      request.communicator = own->number;
      request.handle = own->handle;
    }
    return request;
  }
  void keep(const MpiRequest& request) const { keep_request(g_mpi.read_handle(at(role.request)), request); }
  void keep_point_to_point() const;
  void add(const Communicator* parent, uint32_t sequence, bool between) const {
    add_communicator(g_mpi.read_handle(at(role.made)), static_cast<uint32_t>(number), parent, sequence, between);
  }
};

// Bytes moved when the call returned.
bool Done::moved() const {
  switch (role.does) {
    case Does::kSends:
    case Does::kStartsSend:
      record_send(context, number, bytes(), given[role.peer], given[role.tag], communicator());
      return true;
    case Does::kReceives:
      record_receive(context, number, context.call.start, read_status(context.status_at), communicator());
      return true;
    case Does::kExchanges:
    case Does::kReplaces:
      record_send(context, number, bytes_of(given[1], given[2], role.large), given[3], given[4], communicator());
      record_receive(context, number, context.call.start, read_status(context.status_at), communicator());
      return true;
    case Does::kCollective:
      if (Communicator* const own = communicator()) {
        const uint32_t sequence = own->take_sequence();
        if (context.recorded)
          record_collective(context, number, context.call.start, bytes_of_collective(role, given, *own),
                            root_of(role, given, *own), own->number, sequence);
      }
      return true;
    case Does::kPuts:
    case Does::kGets:
    case Does::kUpdates:
      record_one_sided(context, number, role, given);
      return true;
    case Does::kReadsFile:
    case Does::kWritesFile:
      record_file(context, number, context.call.start, role.does == Does::kReadsFile,
                  read_status(context.status_at).bytes);
      return true;
    default:
      return false;
  }
}

// A request that receives, or that MPI_Start will begin.
void Done::keep_point_to_point() const {
  const Communicator* const own = communicator();
  MpiRequest kept = request(role.does == Does::kKeepsSend ? MpiRequest::Kind::kSend : MpiRequest::Kind::kReceive, own);
  kept.persistent = role.does != Does::kStartsReceive;
  kept.peer = event::kNoPeer;
  kept.tag = event::kNoTag;
  if (own != nullptr && role.peer != kNone) {  // else of a message that was found before
    if (whole(given[role.peer]) == g_mpi.proc_null) return;
    kept.tag = whole(given[role.tag]);
    kept.peer = own->world_rank(whole(given[role.peer]));
    if (role.does == Does::kKeepsSend) kept.sent = bytes();
  }
  keep(kept);
}

// A request that a later call completes.
bool Done::began() const {
  switch (role.does) {
    case Does::kStartsReceive:
    case Does::kKeepsReceive:
    case Does::kKeepsSend:
      keep_point_to_point();
      return true;
    case Does::kProbes:
      if (const Communicator* const own = communicator())
        keep_request(g_mpi.read_handle(at(role.made)) | kMessageHandle, request(MpiRequest::Kind::kReceive, own));
      return true;
    case Does::kStartsCollective:
      if (Communicator* const own = communicator()) {
        MpiRequest kept = request(MpiRequest::Kind::kCollective, own);
        kept.sequence = own->take_sequence();
        kept.peer = root_of(role, given, *own);
        const Bytes moved = bytes_of_collective(role, given, *own);
        kept.sent = moved.sent;
        kept.received = moved.received;
        keep(kept);
      }
      return true;
    case Does::kMakesLater:
      if (Communicator* const own = communicator()) {
        MpiRequest kept = request(MpiRequest::Kind::kCommunicator, own);
        kept.sequence = own->take_sequence();
        kept.place = given[role.made];
        keep(kept);
      }
      return true;
    case Does::kStartsFileRead:
    case Does::kStartsFileWrite: {
      MpiRequest kept = request(
          role.does == Does::kStartsFileRead ? MpiRequest::Kind::kFileRead : MpiRequest::Kind::kFileWrite, nullptr);
      kept.sent = bytes();
      keep(kept);
      return true;
    }
    default:
      return false;
  }
}

// Persistent requests that begin.
bool Done::started() const {
  if (role.does != Does::kStarts && role.does != Does::kStartsAll) return false;
  const int count = role.does == Does::kStarts ? 1 : whole(given[role.count]);
  for (int i = 0; i < count; ++i) {
    MpiRequest started;
    const Word handle = g_mpi.read_handle(g_mpi.element(given[role.request], static_cast<size_t>(i)));
    if (!start_request(handle, context.call.start, started) || started.kind != MpiRequest::Kind::kSend ||
        !context.recorded)
      continue;
    event::MessageRecord record = message_of(context, started.function, event::MessageKind::kSend);
    record.sent = started.sent;
    record.received = 0;
    record.peer = started.peer;
    record.tag = started.tag;
    record.communicator = started.communicator;
    g_host->message(record);
  }
  return true;
}

// Requests that are complete.
bool Done::completed() const {
  if (!completes(role.does)) return false;
  if (!requests->known) return true;
  const auto one = [&](int index, const char* status) {
    if (index >= 0 && static_cast<size_t>(index) < requests->count)
      record_completed(context, requests->handles[index], status);
  };
  const auto status_of = [&](int i) {
    return requests->statuses != nullptr ? requests->statuses + static_cast<size_t>(i) * g_mpi.status_bytes : nullptr;
  };
  switch (role.does) {
    case Does::kWaits:
    case Does::kTests:
      one(0, context.status_at);
      break;
    case Does::kWaitsAny:
    case Does::kTestsAny:
      one(*static_cast<const int32_t*>(at(2)), context.status_at);
      break;
    case Does::kWaitsSome:
    case Does::kTestsSome:
      for (int i = 0; i < *static_cast<const int32_t*>(at(2)); ++i)
        one(static_cast<const int32_t*>(at(3))[i], status_of(i));
      break;
    default:  // all of them
      for (int i = 0; i < static_cast<int>(requests->count); ++i) one(i, status_of(i));
  }
  return true;
}

// Communicators and windows.
bool Done::made() const {
  switch (role.does) {
    case Does::kMakes:
      if (Communicator* const own = communicator()) {
        const uint32_t sequence = own->take_sequence();
        record_collective(context, number, context.call.start, {0, 0}, event::kNoPeer, own->number, sequence);
        add(own, sequence, false);
      }
      return true;
    case Does::kMakesApart:
      add(nullptr, 0, false);
      return true;
    case Does::kSpawns:
      // Only the root's arguments count: program, arguments, number of processes.
      if (const Communicator* const own = communicator(); own != nullptr && whole(given[role.root]) == own->rank)
        warn_of_spawned(number, given);
      [[fallthrough]];
    case Does::kMakesBetween:
      add(nullptr, 0, true);
      return true;
    case Does::kMakesWindow:
      if (Communicator* const own = hold_communicator(given[role.communicator])) {
        const Word handle = g_mpi.read_handle(at(role.window)) | kWindowHandle;
        MpiRequest window{};
        window.kind = MpiRequest::Kind::kWindow;
        window.place = reinterpret_cast<Word>(own);
        keep_request(handle, window);
        if (!known_request(handle)) release_communicator(own);
      }
      return true;
    case Does::kNames:
      rename_communicator(given[role.communicator]);
      return true;
    case Does::kStartsMpi:
      find_communicator(g_mpi.world);
      return true;
    default:
      return false;
  }
}

// Functions that programs call until they find something: recorded only then.
bool found_nothing(const Role& role, const Word* given) {
  switch (role.does) {
    case Does::kProbes:
      return role.flag != kNone && *reinterpret_cast<const int32_t*>(given[role.flag]) == 0;
    case Does::kAsks:
    case Does::kTests:
    case Does::kTestsAll:
    case Does::kTestsAny:
      return *reinterpret_cast<const int32_t*>(given[role.flag]) == 0;
    case Does::kTestsSome:
      return *reinterpret_cast<const int32_t*>(given[2]) <= 0;
    default:
      return false;
  }
}

// MPICH's codes are classes with more above them.
int16_t result_of(Word result) {
  return static_cast<int16_t>(g_mpi.open_mpi ? result : result & 0x7f);
}

template <size_t>
using Each = Word;

template <size_t Number, typename Places>
struct Wrapper;
template <size_t Number, size_t... I>
struct Wrapper<Number, std::index_sequence<I...>> {
  using Real = Word(Each<I>...);
  static constexpr Role kRole = kCalls[Number].role;

  static Word call(Each<I>... parameters) {
    auto* const real = reinterpret_cast<Real*>(g_real[Number]);
    const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    if (t_within != 0 && frame < t_within) return real(parameters...);
    t_within = frame;
    Word result;
    if constexpr (completes(kRole.does)) {
      Requests requests;
      result = record(real, &requests, parameters...);
    } else {
      result = record(real, nullptr, parameters...);
    }
    t_within = 0;
    return result;
  }

 private:
  static Word record(Real* real, Requests* requests, Each<I>... parameters) {
    Word given[sizeof...(I) + 1] = {parameters..., 0};
    Context context;
    context.status_at = nullptr;
    context.probed_in = 0;
    context.recorded = g_host->begin(context.call);
    if constexpr (kRole.does == Does::kAborts) {
      if (context.recorded) g_host->end(context.call, 0, event::api_value(Number, 0));
      g_host->flush();
      context.recorded = false;
    }
    if (g_mpi.known) before(kRole, given, context, requests);
    const Word result = real(given[I]...);
    context.end = g_host->now();
    const bool succeeded = static_cast<int32_t>(result) == 0;
    const bool nothing = succeeded && found_nothing(kRole, given);
    if (succeeded && g_mpi.known && !nothing) {
      const Done done{kRole, Number, given, context, requests};
      (void)(done.moved() || done.began() || done.started() || done.completed() || done.made());
    }
    if (context.recorded) {
      if (nothing)
        g_host->drop(context.call);
      else
        g_host->end(context.call, context.end, event::api_value(Number, result_of(result)));
    }
    if constexpr (kRole.does == Does::kEndsMpi) g_host->flush();
    return result;
  }
};

template <size_t... Number>
void fill(void** to, std::index_sequence<Number...>) {
  // No fold expression: compilers limit how deep those nest.
  void* const made[] = {
      reinterpret_cast<void*>(&Wrapper<Number + 1, std::make_index_sequence<kCalls[Number + 1].parameters>>::call)...};
  for (size_t i = 0; i < sizeof...(Number); ++i) to[i + 1] = made[i];
}

}  // namespace

void* wrapper_of(size_t number) {
  static constinit void* all[kCallCount] = {};
  if (all[1] == nullptr) fill(all, std::make_index_sequence<kCallCount - 1>());
  return all[number];
}

void set_real(size_t number, void* real) {
  g_real[number] = real;
}
void* real_of(size_t number) {
  return g_real[number];
}

}  // namespace tacho::capture::mpi
