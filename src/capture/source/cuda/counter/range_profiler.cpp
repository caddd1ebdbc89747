// The in-process half of counter collection on NVIDIA: takes a ready config image and a filter (collection.h), runs
// CUPTI's range profiler around the launches that pass (session.h), and leaves counter data images for tacho to
// evaluate (event/spool/spool_ranges.h). Every launch is a range of its own (auto ranges: ranges pushed by hand count
// the launch latency as elapsed time). But CUPTI makes no range of a graph (its session fails then): before the
// program's own launch, tacho runs the graph in a session for each pass, with a range pushed by hand around it, and
// puts memory back.
//
// One pass: a session is opened for the first kernel that passes the filter and held over many launches; a few that do
// not pass are let through as unread ranges, since closing costs as much as a dozen of those.
//
// Kernel replay: switching passes is the expensive part (10 to 45 ms on an H200), so tacho repeats launches in batches
// (replay.h). The first pass runs with the program. Before the program changes memory itself, or when the batch is
// full, tacho puts memory back and runs the kept launches once for every further pass. Before each measured launch it
// empties the L2, as Nsight Compute does (--cache-control all). One batch is open at a time, on one GPU. Launches that
// cannot be kept are replayed by CUPTI inside the launching call.
//
// Multiplexing: multiplex.h. Application replay: one pass for each run of the program; images are taken over from the
// previous run.
#include "capture/source/cuda/counter/range_profiler.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <utility>

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/room/pages.h"
#include "capture/source/cuda/counter/collection.h"
#include "capture/source/cuda/counter/multiplex.h"
#include "capture/source/cuda/counter/pc_sampler.h"
#include "capture/source/cuda/counter/replay.h"
#include "capture/source/cuda/counter/session.h"
#include "capture/source/cuda/cupti_api.h"
#include "event/spool/spool_ranges.h"
#include "tape/writer.h"
#include "vendor/collective_kernels.h"

namespace tacho::capture::counter {
namespace {

namespace cupti = cuda::abi;

constexpr size_t kFunctions = 4096;
constexpr uint32_t kMaxCarried = 8;

struct Function {
  void* handle;
  const char* name;  // interned by strdup, never freed
  uint64_t hash;     // of the name
  const char* seen;  // CUPTI's latest pointer to the name
  bool selected;
  bool waits_for_others;  // a collective: run again, it would wait for ranks that do not run theirs again
  uint32_t shared, local, registers;
  uint32_t generation;                          // of modules, when replay::prepare() saw it
  void* prepared;                               // in this context
  std::atomic<uint64_t> left_out, passed_over;  // launches without a record: of the filter, of multiplexing
};

constinit cupti::Subscriber g_subscriber = nullptr;
constinit bool g_tracking =
    false;  // replay:: follows the program's memory: launches, or at least graphs, can be run again
constinit bool g_own_replay = false;                    // launches are run again by the batch
constinit CounterSession* g_batch = nullptr;            // the session with the open batch
constinit std::atomic<uint32_t> g_captures{0};          // streams that are being captured
constinit Effect g_effects[2048] = {};                  // of driver calls, by callback id
constinit replay::LaunchCall::Kind g_kinds[2048] = {};  // of launching calls
constinit uint32_t g_always = 1;
constinit volatile uint32_t* g_fork_word = &g_always;
constinit std::atomic<Function*> g_functions[kFunctions] = {};

// One thread at a time: sessions are per context and ranges must come in a known order. Held from the entry of a
// launching call to its exit; calls within it on the same thread go through.
constinit std::atomic<uintptr_t> g_owner{0};
constinit uint32_t g_depth = 0;

// How the launching call that holds the lock is measured.
constinit CounterSession* g_measuring = nullptr;  // it is a range of this session
constinit bool g_carrying = false;                // an unread range: the filter leaves it out
constinit bool g_alone = false;                   // it is its own batch
constinit bool g_emptying = false;                // the L2 is emptied before it
constinit int64_t g_entered = 0;
constinit std::atomic<bool> g_session_open{false};  // launches that are left out have to end something first

uint32_t thread_id() {
  return static_cast<uint32_t>(syscall(SYS_gettid));
}
uintptr_t self_word() {  // unique to the thread, without a system call
  return reinterpret_cast<uintptr_t>(&tape::t_state);
}

// While launches are run again, nothing else may reach the GPU: where several threads launch, each holds the lock until
// its launch is with the driver, measured or not.
constinit std::atomic<uintptr_t> g_first_thread{0};
constinit std::atomic<bool> g_several_threads{false};
bool holds_all() {
  if (!g_own_replay) return false;
  if (g_several_threads.load(std::memory_order_relaxed)) return true;
  uintptr_t first = g_first_thread.load(std::memory_order_relaxed);
  if (first == self_word()) return false;
  if (first == 0 && g_first_thread.compare_exchange_strong(first, self_word(), std::memory_order_relaxed)) return false;
  g_several_threads.store(true, std::memory_order_relaxed);
  return true;
}

void lock() {
  const uintptr_t self = self_word();
  if (g_owner.load(std::memory_order_relaxed) == self) {
    ++g_depth;
    return;
  }
  uintptr_t expected = 0;
  for (int spins = 0; !g_owner.compare_exchange_weak(expected, self, std::memory_order_acquire); expected = 0)
    if (++spins > 64) sched_yield();
  g_depth = 1;
}
bool owned() {
  return g_owner.load(std::memory_order_relaxed) == self_word();
}
void unlock() {
  if (--g_depth == 0) g_owner.store(0, std::memory_order_release);
}

bool measures_by(Mode mode) {
  return g_collection.mode == mode;
}

void note_open() {
  bool any = false;
  for (const CounterSession& each : g_sessions) any = any || each.running;
  g_session_open.store(any, std::memory_order_relaxed);
}

// Kernel and application replay

void close_session(CounterSession& session);

// A session in this context can start then.
void end_rivals(void* context) {
  while (CounterSession* const rival = rival_of(context)) {
    close_session(*rival);
    if (rival->context != nullptr) disable(*rival);
  }
}

CounterSession* open_session(void* context) {
  end_rivals(context);
  CounterSession* const session = session_of(context);
  if (session == nullptr || !fresh_image(*session)) return nullptr;
  const int replay = measures_by(Mode::kApplication) ? abi::kApplicationReplay
                     : g_collection.passes == 1      ? abi::kUserReplay
                                                     : abi::kKernelReplay;
  const size_t pass = measures_by(Mode::kApplication) ? g_collection.pass : 0;
  return configure(*session, replay, pass) && start(*session) ? session : nullptr;
}

// Where CUPTI replays each kernel it spends tens of milliseconds on it: small images lose less when the program is
// killed.
constexpr size_t kRangesByCupti = 16;

// Kept launches cannot be used from here on; CUPTI replays the following ones.
void leave_batches(const char* reason) {
  char line[512];
  snprintf(line, sizeof line, "kernels are replayed one by one by CUPTI from here on: %s", reason);
  cuda::say_warning(line);
  g_own_replay = false;
  choose_ranges_afresh(kRangesByCupti);
  for (CounterSession& each : g_sessions)
    if (each.context != nullptr) disable(each);
}

CounterSession* open_batch(void* context, bool with_host) {
  if (g_batch != nullptr) close_session(*g_batch);
  if (const char* const problem = replay::problem(); problem != nullptr) {
    leave_batches(problem);
    return open_session(context);
  }
  end_rivals(context);
  CounterSession* const session = session_of(context);
  if (session == nullptr) return nullptr;
  if (const char* const problem = replay::begin(context, with_host); problem != nullptr) {
    leave_batches(problem);
    return open_session(context);
  }
  if (!fresh_image(*session) || !configure(*session, abi::kUserReplay, 0) || !start(*session)) return nullptr;
  return g_batch = session;
}

// The further passes of a batch, and memory as the program expects it.
bool replay_batch(CounterSession& session) {
  g_batch = nullptr;
  bool good = stop(session);
  const char* problem = nullptr;
  if (good && session.used != 0) {
    problem = replay::first_done();
    for (size_t pass = 1; pass < g_collection.passes && good && problem == nullptr; ++pass) {
      problem = replay::put_back();
      if (problem != nullptr || !(good = start(session))) break;
      problem = replay::run_again();
      good = stop(session);
    }
  }
  const char* const at_end = replay::end();
  if (problem == nullptr) problem = at_end;
  if (problem != nullptr) {
    g_collection.state->failures_of_replay.fetch_add(1, std::memory_order_relaxed);
    leave_batches(problem);
    return false;
  }
  return good && decode(session);
}

// Launches are identified by their place in the image: an unexpected range would give one launch the counts of another.
bool image_has(const CounterSession& session, size_t launched) {
  const size_t ranges = ranges_in(session);
  if (ranges == launched) return true;
  if (ranges == SIZE_MAX) return false;
  g_collection.state->failures_of_replay.fetch_add(1, std::memory_order_relaxed);
  char line[192];
  snprintf(line, sizeof line, "CUPTI counted %zu ranges for %zu launches", ranges, launched);
  if (g_own_replay) {
    leave_batches(line);
  } else {
    g_collection.empty_cache = false;
    cuda::say_warning(line);
  }
  return false;
}

void close_session(CounterSession& session) {
  if (!session.running) return;
  const size_t used = session.used;
  const bool batch = g_batch == &session;
  bool good = batch ? replay_batch(session) : stop(session) && decode(session);
  if (good && used != 0 && measures_by(Mode::kKernel) && (batch || g_collection.passes == 1))
    good = image_has(session, used);
  if (good && used != 0)
    write_image(session);
  else
    write_records(session.records);  // records without an image
  session.used = 0;
}

// Brings to its end what runs in a context, in any mode.
void close_open(CounterSession& session) {
  measures_by(Mode::kMultiplex) ? multiplex::interrupt(session) : close_session(session);
}
void close_all_open() {
  for (CounterSession& each : g_sessions)
    if (each.running) close_open(each);
}

void say_not_emptied() {
  static constinit bool s_said = false;
  if (!s_said) cuda::say_warning("the L2 cannot be emptied before each kernel: counters of caches may be of a warm L2");
  s_said = true;
}
replay::Emptied empty_cache(void* context) {
  const replay::Emptied way = replay::empty_cache(context);
  if (way == replay::Emptied::kFailed) say_not_emptied();
  return way;
}
// Whether the L2 can be emptied here; warns once if only by a sweep.
bool can_empty(void* context) {
  const replay::Emptied way = replay::emptied_by(context);
  static constinit bool s_said = false;
  if (way == replay::Emptied::kFailed) say_not_emptied();
  if (way == replay::Emptied::kBySweep && !s_said) {
    s_said = true;
    cuda::say_warning("the kernel driver does not empty the L2 here: it is swept by reading "
                      "before each kernel, which leaves it full of other lines");
  }
  return way != replay::Emptied::kFailed;
}
// A launch with the sweep before it.
size_t ranges_of_launch(void* context) {
  return g_collection.empty_cache && replay::emptied_by(context) == replay::Emptied::kBySweep ? 2 : 1;
}

// The launch at hand is of a graph: runs it for every pass and leaves its values in the image of the session that is
// returned. nullptr: it is not measured.
CounterSession* measure_graph(void* context, const replay::LaunchCall& call) {
  const char* problem = nullptr;
  if (!measures_by(Mode::kKernel))
    problem = "only --replay kernel measures them, each as a whole";
  else if (!g_tracking || (g_collection.passes > 1 && !g_own_replay))
    problem = "CUPTI's own kernel replay, which is used here, cannot";
  else if (!replay::variables_known())
    problem = "the driver does not list all variables that their kernels may change, so these could not be put back";
  else
    problem = replay::problem();
  if (problem == nullptr && g_batch != nullptr) close_session(*g_batch);
  if (problem == nullptr) end_rivals(context);
  CounterSession* const session = problem == nullptr ? session_of(context, abi::kUserRange) : nullptr;
  if (problem == nullptr && session == nullptr) return nullptr;
  if (problem == nullptr) problem = replay::begin(context, replay::touches_host(call));
  if (problem == nullptr && !replay::keep(call)) problem = "there is no memory for a list of launches";
  bool good = problem == nullptr && fresh_image(*session) && configure(*session, abi::kUserReplay, 0);
  for (size_t pass = 0; pass < g_collection.passes && good && problem == nullptr; ++pass) {
    if (pass != 0 && (problem = replay::put_back()) != nullptr) break;
    if (!(good = start(*session))) break;
    if (g_emptying) empty_cache(context);
    good = push(*session);
    if (good) problem = replay::run_again();
    good = good && pop(*session);
    good = stop(*session) && good;
    // Also if the graph failed half way: memory that it has written is put back.
    if (pass == 0)
      if (const char* const after = replay::first_done(); problem == nullptr) problem = after;
  }
  if (const char* const at_end = replay::drop(); problem == nullptr) problem = at_end;
  if (problem != nullptr) {
    static constinit bool s_said = false;
    char line[512];
    snprintf(line, sizeof line, "CUDA graphs are not measured: %s", problem);
    if (!s_said) cuda::say_warning(line);
    s_said = true;
    return nullptr;
  }
  return good && decode(*session) && image_has(*session, 1) ? session : nullptr;
}

// Launches

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
  return hash ^ hash >> 32;
}

Function* function_of(void* handle, const char* name) {
  static constinit Function s_unknown{nullptr, "unknown kernel", 1, nullptr, true, false, 0, 0, 0, 0, nullptr, 0, 0};
  const size_t first = mix(1, reinterpret_cast<uintptr_t>(handle)) % kFunctions;
  for (size_t probe = 0; probe < 64; ++probe) {
    std::atomic<Function*>& slot = g_functions[(first + probe) % kFunctions];
    Function* known = slot.load(std::memory_order_acquire);
    if (known != nullptr && known->handle == handle) {
      // A module may have been unloaded and another function got its handle.
      if (name == nullptr || (known->seen == name && strncmp(known->name, name, 16) == 0)) return known;
      if (strcmp(known->name, name) == 0) {
        known->seen = name;
        return known;
      }
    } else if (known != nullptr) {
      continue;
    }
    auto* const fresh = static_cast<Function*>(calloc(1, sizeof(Function)));
    if (fresh == nullptr) return &s_unknown;
    fresh->handle = handle;
    fresh->seen = name;
    fresh->name = strdup(name != nullptr ? name : "unknown kernel");
    if (fresh->name == nullptr) fresh->name = "unknown kernel";
    for (const char* c = fresh->name; *c != '\0'; ++c) fresh->hash = mix(fresh->hash, static_cast<unsigned char>(*c));
    fresh->selected = g_collection.name_passes(fresh->name);
    fresh->waits_for_others = vendor::is_collective_kernel(fresh->name);
    // CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, _LOCAL_SIZE_BYTES, _NUM_REGS; a graph has none.
    for (const auto& [attribute, to] : {std::pair{1, &fresh->shared}, {3, &fresh->local}, {4, &fresh->registers}})
      if (name != nullptr) *to = function_attribute(handle, attribute);
    slot.store(fresh, std::memory_order_release);
    return fresh;
  }
  return &s_unknown;
}

int64_t boot_now() {
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// A call that is not a launch: the lock is held until it returns, so that no batch is saved or run again meanwhile.
void enter_other(const cupti::CallbackData& call_data, Effect effect) {
  lock();
  if (effect == Effect::kCaptureBegins) {
    close_all_open();
    g_captures.fetch_add(1, std::memory_order_relaxed);
  } else if (effect == Effect::kChanges) {
    if (g_batch != nullptr) close_session(*g_batch);
    if (strncmp(call_data.function, "cuMemAlloc", 10) == 0 || strncmp(call_data.function, "cuMemCreate", 11) == 0)
      replay::give_memory_back();
  }
  note_open();
}

// Notes the variables of the function's module.
void prepare(Function* function, const replay::LaunchCall& call) {
  void* context = nullptr;
  if (function->generation == replay::generation() && current_context(&context) && function->prepared == context)
    return;
  if (!replay::prepare(call) && g_batch != nullptr) close_session(*g_batch);  // which has not saved them
  function->generation = replay::generation();
  if (current_context(&context)) function->prepared = context;
}

// The session that the launch runs in, nullptr: it is not measured.
CounterSession* measure_replayed(void* context, Function* function, const replay::LaunchCall& call, bool selected) {
  CounterSession* session = known_session(context);
  if (session != nullptr && !session->running) session = nullptr;
  g_emptying = selected && g_collection.empty_cache && can_empty(context);
  if (g_tracking) prepare(function, call);
  if (session != nullptr && !session->running) session = nullptr;  // its batch has been closed
  if (!g_own_replay) return session != nullptr || !selected ? session : open_session(context);
  const bool host = replay::touches_host(call);
  if (host && session != nullptr) {
    close_session(*session);
    session = nullptr;
    if (!g_own_replay) return selected ? open_session(context) : nullptr;
  }
  if (session == nullptr) session = selected ? open_batch(context, host) : nullptr;
  if (session == nullptr || session != g_batch) return session;
  if (!replay::keep(call)) {
    close_session(*session);
    if (!selected) return nullptr;
    if (g_own_replay) leave_batches("the driver does not describe a kernel's arguments");
    return open_session(context);
  }
  g_alone = host;
  return session;
}

void describe(spool::CounterRecord& record, const CounterSession& session, const Function* function,
              uint32_t dynamic_shared) {
  record.pid = static_cast<uint32_t>(g_collection.pid);
  record.tid = thread_id();
  record.process = g_collection.process;
  record.device = session.device;
  record.image = session.number;
  record.range = static_cast<uint32_t>(session.used);
  record.start = boot_now();
  record.shared = function->shared + dynamic_shared;
  record.local = function->local;
  record.registers = function->registers;
  record.selected = 1;
  record.samples = 1;
}

// Launches with the same key may be combined by multiplexing.
uint64_t shape_key(const spool::CounterRecord& record, const Function* function, uint32_t dynamic_shared) {
  uint64_t key = function->hash;
  if (!g_collection.by_name) {
    for (int i = 0; i < 3; ++i) key = mix(key, uint64_t{record.grid[i]} << 32 | record.block[i]);
    key = mix(key, uint64_t{function->shared} + dynamic_shared);
  }
  return key | 1;
}

// What a call launches, its shape and its stream.
struct LaunchParameters {
  replay::LaunchCall call;
  spool::CounterRecord record{};
  uint32_t dynamic_shared = 0;
};

LaunchParameters parameters_of(const char* words, replay::LaunchCall::Kind kind) {
  LaunchParameters launch{.call = {kind, nullptr, words}};
  spool::CounterRecord& record = launch.record;
  const char* shape = words + 8;
  if (kind == replay::LaunchCall::Kind::kExtended) {
    memcpy(&shape, words, sizeof shape);
    words += 8;
  }
  memcpy(&launch.call.handle, words, sizeof launch.call.handle);
  if (kind == replay::LaunchCall::Kind::kGraph) {
    memcpy(&record.queue, words + 8, sizeof record.queue);
    for (int i = 0; i < 3; ++i) record.grid[i] = record.block[i] = 1;
  } else {
    memcpy(record.grid, shape, sizeof record.grid);
    memcpy(record.block, shape + 12, sizeof record.block);
    memcpy(&launch.dynamic_shared, shape + 24, sizeof launch.dynamic_shared);
    memcpy(&record.queue, shape + 32, sizeof record.queue);
  }
  return launch;
}

void measure_graph_launch(void* context, LaunchParameters& launch, Function& function) {
  g_emptying = g_collection.empty_cache && can_empty(context);
  CounterSession* const session = measure_graph(context, launch.call);
  note_open();
  if (session == nullptr) {
    function.passed_over.fetch_add(1, std::memory_order_relaxed);
  } else {
    session->used = 0;
    describe(launch.record, *session, &function, 0);
    if (add_record(session->records, launch.record, function.name) == SIZE_MAX) give_up("get memory for records", 0);
    g_collection.state->dispatches_done.fetch_add(1, std::memory_order_relaxed);
    write_image(*session);
  }
  g_measuring = nullptr;
}

void enter(const cupti::CallbackData& call_data, Effect effect, replay::LaunchCall::Kind kind) {
  if (owned()) {  // a call within a call, as with replays: not another dispatch
    ++g_depth;
    return;
  }
  if (effect != Effect::kLaunch) return enter_other(call_data, effect);
  LaunchParameters launch = parameters_of(static_cast<const char*>(call_data.parameters), kind);
  const replay::LaunchCall& call = launch.call;
  spool::CounterRecord& record = launch.record;
  const bool graph = kind == replay::LaunchCall::Kind::kGraph;
  const bool capturing = g_captures.load(std::memory_order_relaxed) != 0;
  if (capturing && is_capturing(reinterpret_cast<void*>(record.queue))) {  // into a graph: it does not run now
    if (g_tracking && !graph) {
      lock();
      prepare(function_of(call.handle, call_data.symbol), call);
      unlock();
    }
    return;
  }
  Function* const function = function_of(call.handle, graph ? "CUDA graph" : call_data.symbol);
  if (!function->selected && !g_session_open.load(std::memory_order_relaxed) && !holds_all()) {
    g_collection.state->dispatches.fetch_add(1, std::memory_order_relaxed);
    function->left_out.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  lock();
  record.index = g_collection.state->dispatches.fetch_add(1, std::memory_order_relaxed);
  bool selected = function->selected && g_collection.launch_passes(record.index);
  void* context = nullptr;
  if (!current_context(&context) || g_captures.load(std::memory_order_relaxed) != 0) selected = false;
  const bool not_again = function->waits_for_others && measures_by(Mode::kKernel) && g_collection.passes > 1;
  if (not_again) selected = false;
  g_alone = g_carrying = g_emptying = false;
  // A kernel of another GPU may change memory that a batch has saved.
  if (g_batch != nullptr && g_batch->context != context) close_session(*g_batch);
  CounterSession* session = known_session(context);  // where something may be open
  if (graph && selected) {
    if (session != nullptr && session->running) close_open(*session);
    measure_graph_launch(context, launch, *function);
    if (!holds_all()) unlock();
    return;
  }
  if (!selected) {
    const bool running = session != nullptr && session->running;
    // Between launches that pass the filter a few others are cheaper to let through than the session is to close.
    if (running && !graph && !not_again && measures_by(Mode::kKernel) &&
        (session == g_batch || g_collection.passes == 1) && ++session->carried <= kMaxCarried) {
      session = measure_replayed(context, function, call, false);
      g_carrying = session != nullptr;
    } else {
      if (running) close_open(*session);
      session = nullptr;
    }
  } else if (measures_by(Mode::kMultiplex)) {
    session = multiplex::begin_launch(context, shape_key(record, function, launch.dynamic_shared));
  } else {
    session = measure_replayed(context, function, call, true);
    if (session != nullptr) session->carried = 0;
  }
  note_open();
  g_measuring = session;
  g_entered = raw_now();
  if (session == nullptr || !selected) {
    (function->selected ? function->passed_over : function->left_out).fetch_add(1, std::memory_order_relaxed);
    if (session == nullptr && !holds_all()) unlock();
    return;
  }
  if (g_emptying && (session == g_batch || g_collection.passes == 1)) {
    const replay::Emptied way = empty_cache(context);
    if (way == replay::Emptied::kBySweep) ++session->used;  // an unread range
    if (way != replay::Emptied::kFailed && session == g_batch) replay::note_emptied();
  }
  describe(record, *session, function, launch.dynamic_shared);
  if (measures_by(Mode::kMultiplex) && !multiplex::defines_range(*session)) {
    function->passed_over.fetch_add(1, std::memory_order_relaxed);  // a sample of a range that has a record
  } else {
    if (measures_by(Mode::kMultiplex)) record.image = spool::kNotMeasured;  // until the cycle is whole
    const size_t at = add_record(session->records, record, function->name);
    if (at == SIZE_MAX)
      give_up("get memory for records", 0);
    else if (measures_by(Mode::kMultiplex))
      multiplex::note_record(*session, at);
  }
}

void leave(const cupti::CallbackData& call_data, Effect effect) {
  if (!owned()) return;
  if (g_depth > 1) {
    --g_depth;
    return;
  }
  if (effect != Effect::kLaunch) {
    const auto* const result = static_cast<const int*>(call_data.result);
    const bool failed = effect == Effect::kCaptureBegins && result != nullptr && *result != 0;
    if ((effect == Effect::kCaptureEnds || failed) && g_captures.load(std::memory_order_relaxed) != 0)
      g_captures.fetch_sub(1, std::memory_order_relaxed);
    if (effect == Effect::kChanges && (result == nullptr || *result == 0))
      replay::note_call(call_data.function, call_data.parameters, call_data.context);
    return unlock();
  }
  if (CounterSession* const session = std::exchange(g_measuring, nullptr); session != nullptr && session->running) {
    if (measures_by(Mode::kMultiplex)) {
      multiplex::end_launch(*session, raw_now() - g_entered);
    } else {
      ++session->used;
      if (!g_carrying) g_collection.state->dispatches_done.fetch_add(1, std::memory_order_relaxed);
      if (g_alone || session->used + ranges_of_launch(session->context) > ranges()) close_session(*session);
    }
    note_open();
  }
  unlock();
}

// Finishes an open batch or cycle, before a context goes and when the program ends.
void finish_open(CounterSession& session) {
  close_open(session);
  if (measures_by(Mode::kMultiplex)) multiplex::abandon(session);
  write_records(session.records);
}

// Also after collecting has ended early: sessions of other contexts still run then.
void finish_all() {
  lock();
  for (CounterSession& each : g_sessions)
    if (each.context != nullptr) finish_open(each);
  note_open();
  unlock();
}

// Launches without a record of their own: how many, kernel by kernel.
void write_counts() {
  static constinit MappedBytes s_records{};
  lock();
  for (std::atomic<Function*>& slot : g_functions) {
    Function* const function = slot.load(std::memory_order_acquire);
    if (function == nullptr) continue;
    for (const bool selected : {false, true}) {
      const uint64_t count = (selected ? function->passed_over : function->left_out).exchange(0);
      if (count == 0) continue;
      spool::CounterRecord record{};
      record.index = ~uint64_t{0};
      record.pid = static_cast<uint32_t>(g_collection.pid);
      record.process = g_collection.process;
      record.image = spool::kNotMeasured;
      record.selected = selected ? 1 : 0;
      record.samples = count > 0xffffffff ? 0xffffffff : static_cast<uint32_t>(count);
      add_record(s_records, record, function->name);
    }
  }
  write_records(s_records);
  unlock();
}

constexpr uint32_t kContextCreated = 1, kContextDestroyed = 2, kModuleLoaded = 6, kModuleUnloads = 7;

void on_sampling_callback(int domain, uint32_t id, const void* data) {
  if (domain == cupti::domain::kResource) {
    const auto& resource = *static_cast<const cupti::ResourceData*>(data);
    if (id == kContextCreated || id == kContextDestroyed) on_context(resource.context, id == kContextCreated);
    if (id != kModuleLoaded && id != kModuleUnloads) return;
    const auto& module = *static_cast<const cupti::ModuleResource*>(resource.descriptor);
    on_module(resource.context, module.image, module.bytes, id == kModuleLoaded);
  } else if (domain == cupti::domain::kDriver && static_cast<const cupti::CallbackData*>(data)->site == cupti::kExit) {
    g_collection.state->dispatches.fetch_add(1, std::memory_order_relaxed);
    on_launch();
  }
}

void on_callback(void*, int domain, uint32_t id, const void* data) {
  if (*g_fork_word == 0) return;  // a forked child: CUDA does not work in it
  if (measures_by(Mode::kSampling)) return on_sampling_callback(domain, id, data);
  if (domain == cupti::domain::kResource) {
    if (id == kContextDestroyed && g_collection.on.load(std::memory_order_relaxed)) {
      lock();
      void* const gone = static_cast<const cupti::ResourceData*>(data)->context;
      if (g_batch != nullptr) close_session(*g_batch);  // it uses lists that forget() empties
      if (CounterSession* const session = known_session(gone); session != nullptr) {
        finish_open(*session);
        if (session->context != nullptr) disable(*session, true);
      }
      replay::forget(gone);
      note_open();
      unlock();
    } else if (id == kModuleLoaded && g_tracking) {
      const auto& module =
          *static_cast<const cupti::ModuleResource*>(static_cast<const cupti::ResourceData*>(data)->descriptor);
      replay::note_module(module.image, module.bytes);
    }
    return;
  }
  if (domain != cupti::domain::kDriver) return;
  const auto& call_data = *static_cast<const cupti::CallbackData*>(data);
  const Effect effect = id < sizeof g_effects ? g_effects[id] : Effect::kNone;
  if (call_data.site == cupti::kEnter) {
    if (g_collection.on.load(std::memory_order_relaxed) || owned()) {
      if (call_data.parameters != nullptr) enter(call_data, effect, g_kinds[id]);
    } else if (g_session_open.load(std::memory_order_relaxed)) {
      finish_all();
    }
  } else {
    leave(call_data, effect);
  }
}

void finish() {
  if (getpid() != g_collection.pid) return;
  if (!g_collection.on.load()) {
    if (g_session_open.load()) finish_all();
    return;
  }
  if (measures_by(Mode::kSampling)) {
    finish_pc_sampler();
    g_collection.on.store(false);
    return;
  }
  finish_all();
  g_collection.on.store(false);
  write_counts();
}

// Start

// A word that reads 0 in every child, without a system call.
void mark_process() {
  void* const page = map_pages(4096);
  if (page == nullptr) return;
  g_fork_word = static_cast<volatile uint32_t*>(page);
  *g_fork_word = 1;
  madvise(page, 4096, MADV_WIPEONFORK);
}

bool refuse(const char* sentence) {
  if (g_collection.state != nullptr) g_collection.state->refused.fetch_add(1);
  cuda::say_warning(sentence);
  return false;
}

}  // namespace

void finish_before_exit() {
  if (g_collection.on.load() && *g_fork_word != 0 && g_owner.load() == 0) finish();
}

bool start_range_profiler(const char* folder) {
  Collection& c = g_collection;
  char tried[1024], line[1536];
  if (!read_collection(folder)) return refuse("counters cannot be collected: tacho's folder for them no longer exists");
  if (!cuda::load_cupti(c.cupti, tried, sizeof tried)) {
    snprintf(line, sizeof line, "counters cannot be collected: CUPTI (libcupti.so) was not found (looked at %s)",
             tried);
    return refuse(line);
  }
  if (c.mode != Mode::kSampling) {
    const Found found = find_session_functions();
    if (found == Found::kNoDriver)
      return refuse("counters cannot be collected: the NVIDIA driver lacks a function of contexts");
    if (found == Found::kNoRangeProfiler) {
      snprintf(line, sizeof line,
               "counters cannot be collected: %.1000s has no range profiler; CUDA 12.6 or newer is needed",
               c.cupti.path);
      return refuse(line);
    }
  }
  if (const int result = c.cupti.subscribe(&g_subscriber, on_callback, nullptr); result != 0) {
    snprintf(line, sizeof line, "counters cannot be collected: %s",
             result == cupti::kMultipleSubscribers ? "another profiler uses CUPTI in this process" : text_of(result));
    return refuse(line);
  }
  set_exit_function(finish);
  mark_process();
  c.on.store(true);
  c.process = static_cast<uint32_t>(c.state->attached.fetch_add(1));
  if (c.mode == Mode::kSampling) {
    const char* why = "";
    if (!start_pc_sampler(c.cupti, c.folder, c.process, &why)) return refuse(why);
    for (const uint32_t id : {kContextCreated, kContextDestroyed, kModuleLoaded, kModuleUnloads})
      c.cupti.enable_callback(1, g_subscriber, cupti::domain::kResource, id);
  }
  const bool found = c.mode != Mode::kSampling && replay::find_functions();
  g_tracking = c.mode == Mode::kKernel && !c.by_cupti && found;
  g_own_replay = g_tracking && c.passes > 1;
  if (c.mode == Mode::kKernel && c.passes > 1 && !g_own_replay) choose_ranges_afresh(kRangesByCupti);
  if (!found) c.empty_cache = false;
  for (uint32_t id = 1; id < sizeof g_effects; ++id) {
    const char* name = nullptr;
    if (c.cupti.get_callback_name(cupti::domain::kDriver, id, &name) != 0 || name == nullptr) continue;
    const Effect effect = effect_of(name);
    if (effect == Effect::kNone || (c.mode == Mode::kSampling && effect != Effect::kLaunch) ||
        (!g_own_replay && effect == Effect::kReads) || (!g_tracking && effect == Effect::kChanges))
      continue;
    g_effects[id] = effect;
    g_kinds[id] = replay::kind_of(name);
    c.cupti.enable_callback(1, g_subscriber, cupti::domain::kDriver, id);
  }
  c.cupti.enable_callback(1, g_subscriber, cupti::domain::kResource, kContextDestroyed);
  if (g_tracking) c.cupti.enable_callback(1, g_subscriber, cupti::domain::kResource, kModuleLoaded);
  return true;
}

}  // namespace tacho::capture::counter
