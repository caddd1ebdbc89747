// The in-process half of counter collection on NVIDIA: takes a ready config image and a filter, runs CUPTI's range
// profiler around the launches that pass, and leaves counter data images for tacho to evaluate (plugin/cupti_spool.h).
// Every launch is a range of its own (auto ranges: ranges pushed by hand count the launch latency as elapsed time). But
// CUPTI makes no range of a graph (its session fails then): before the program's own launch the graph is run in a session for each
// pass, with a range pushed by hand around it, and memory is put back.
//
// One pass: a session is opened for the first kernel that passes the filter and held over many launches; a few that do not
// pass are let through as ranges nobody reads, since closing costs as much as a dozen of those.
//
// Kernel replay: what costs is switching passes (10 to 45 ms on an H200), so launches are run again by the batch
// (replay.h): the first pass goes along with the program, and before the program changes memory itself, or when the
// batch is full, memory is put back and the kept launches run once for every further pass. Before each measured launch
// the L2 is swept, as Nsight Compute does (--cache-control all); the sweep is a range of its own. Where launches cannot
// be kept, CUPTI replays each inside the launching call.
//
// Multiplexing: nothing runs twice. Switching passes costs 1 to 45 ms, a launch in a session 1 ms (H200), so a pass is
// held for a batch of launches. CUPTI combines the k-th range of every pass, so the k-th launches must be alike: the
// first pass of a cycle defines the sequence of shapes, every later pass waits for the first shape of it and ends where
// the launches go another way. After a cycle as many launches go unmeasured as its switches would have lasted.
//
// Application replay: one pass a run of the program; images are taken over from the run before.
#include "capture/counter/range_profiler.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <type_traits>
#include <utility>

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/counter/pc_sampler.h"
#include "capture/counter/range_abi.h"
#include "capture/counter/replay.h"
#include "capture/source/cuda/cupti_api.h"
#include "plugin/cupti_spool.h"
#include "plugin/spool.h"
#include "tape/writer.h"

namespace tacho::capture::counter {
namespace {

namespace cupti = cuda::abi;

enum class Mode { kKernel, kApplication, kMultiplex, kSampling };

struct Functions {
  int (*initialize)(abi::Initialize*);
  int (*enable)(abi::Enable*);
  int (*disable)(abi::Disable*);
  int (*set_config)(abi::SetConfig*);
  int (*start)(abi::Disable*);
  int (*push)(abi::PushRange*);
  int (*pop)(abi::Disable*);
  int (*stop)(abi::Stop*);
  int (*decode)(abi::DecodeData*);
  int (*image_size)(abi::ImageSize*);
  int (*image_initialize)(abi::ImageInitialize*);
  int (*data_info)(abi::DataInfo*);
  int (*context_current)(void**);
  int (*context_device)(int*);
  int (*function_attribute)(int*, int, void*);
  int (*is_capturing)(void*, int*);
};

constexpr size_t kMaxMetrics = 4096, kMaxFilters = 256, kFunctions = 4096;
// CUPTI keeps room for as many ranges as an object's first configuration asks for. What a session holds is lost with a killed
// program; where there is one pass a session costs as much as 25 launches and nothing else.
constexpr size_t kMaxRanges = 64, kMaxRangesOnePass = 256, kImageBudget = 48u << 20;
constexpr uint32_t kMaxCarried = 8;

struct Function {
  void* handle;
  const char* name;  // interned by strdup, never freed
  uint64_t hash;     // of the name
  const char* seen;  // where CUPTI last told the name
  bool selected;
  uint32_t shared, local, registers;
  uint32_t generation;  // of modules, when replay::prepare() saw it
  std::atomic<uint64_t> left_out, passed_over;  // launches without a record: of the filter, of multiplexing
};

struct Bytes {
  uint8_t* data = nullptr;
  size_t size = 0, used = 0;

  bool reserve(size_t want) {
    if (want <= size) return true;
    void* const fresh = mmap(nullptr, want, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) return false;
    if (used != 0) memcpy(fresh, data, used);
    if (data != nullptr) munmap(data, size);
    data = static_cast<uint8_t*>(fresh);
    size = want;
    return true;
  }
};

constinit Functions g_call{};
constinit cuda::Cupti g_cupti{};
constinit cupti::Subscriber g_subscriber = nullptr;
constinit char g_folder[1024] = {};
constinit Mode g_mode = Mode::kKernel;
constinit size_t g_pass = 0, g_passes = 1;
constinit bool g_sweep = false;       // the L2 before each measured launch
constinit bool g_tracking = false;    // replay:: is told of the program's memory: launches, at least graphs, can be run again
constinit bool g_own_replay = false;  // launches are run again by the batch
constinit bool g_by_cupti = false;    // the user wants CUPTI's own replay
constinit bool g_batch = false;       // g_running is such a batch
constinit bool g_swept = false;       // the L2 is swept before the launch at hand
constinit uint32_t g_carried = 0;     // launches in a row that the filter left out of the running session
constinit std::atomic<uint32_t> g_captures{0};  // streams that are being captured
constinit Effect g_effects[2048] = {};          // of driver calls, by callback id
constinit replay::Call::Kind g_kinds[2048] = {};  // of launching calls
constinit bool g_by_name = false;
constinit pid_t g_pid = 0;
constinit uint32_t g_process = 0;
constinit uint32_t g_always = 1;
constinit volatile uint32_t* g_fork_word = &g_always;
constinit plugin::SpoolState* g_state = nullptr;
constinit Bytes g_config{}, g_image{}, g_records{};
constinit const char* g_metrics[kMaxMetrics] = {};
constinit size_t g_metric_count = 0;
constinit const char* g_kernels[kMaxFilters] = {};
constinit size_t g_kernel_count = 0;
constinit uint64_t g_dispatches[kMaxFilters][2] = {};
constinit size_t g_dispatch_count = 0;
constinit std::atomic<Function*> g_functions[kFunctions] = {};
constinit std::atomic<bool> g_on{false};
using Demangle = char* (*)(const char*, char*, size_t*, int*);
constinit Demangle g_demangle = nullptr;

// One thread at a time: CUPTI's sessions are per context and ranges must come in a known order. Held from the entry of
// a launching call to its exit; calls within it on the same thread go through.
constinit std::atomic<uintptr_t> g_owner{0};
constinit uint32_t g_depth = 0;

// CUPTI's profiler objects, one for each context that has had a session. An object keeps what its first configuration said:
// the kind of ranges and how many there is room for.
struct Enabled {
  void* context;
  abi::Profiler profiler;
  int range;
};
constinit Enabled g_enabled[32] = {};
constinit abi::Profiler g_profiler = nullptr;  // the one in use
constinit void* g_context = nullptr;           // its context
constinit int g_range = abi::kAutoRange;       // its kind of ranges
constinit bool g_running = false;     // a session is started
constinit uint32_t g_device = 0;
constinit size_t g_ranges = 0;        // that an image holds
constinit size_t g_used = 0;          // ranges of the running session
constinit uint32_t g_images = 0;

uint32_t thread_id() {
  return static_cast<uint32_t>(syscall(SYS_gettid));
}
uintptr_t self_word() {  // unique to the thread, without a system call
  return reinterpret_cast<uintptr_t>(&tape::t_state);
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

const char* text_of(int result) {
  const char* text = nullptr;
  if (g_cupti.get_result_string == nullptr || g_cupti.get_result_string(result, &text) != 0 || text == nullptr)
    return "unknown error";
  return text;
}

// Collecting ends here; the program goes on.
void give_up(const char* what, int result) {
  if (!g_on.exchange(false)) return;
  char line[640];
  if (result == cupti::kInsufficientPrivileges)
    snprintf(line, sizeof line, "%s", plugin::kCountersRefused);
  else
    snprintf(line, sizeof line, "counters are no longer collected in process %d: CUPTI cannot %s (%s)",
             static_cast<int>(g_pid), what, text_of(result));
  cuda::say_warning(line);
}

template <typename Params>
bool call(int (*function)(Params*), Params& parameters, const char* what) {
  parameters.size = abi::kSizeOf<Params>;
  const int result = function(&parameters);
  if (result != 0) give_up(what, result);
  return result == 0;
}

// ---- files
// -------------------------------------------------------------------------------------------------------------

bool write_all(int file, const uint8_t* data, size_t size) {
  while (size != 0) {
    const ssize_t written = write(file, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

void flush_records() {
  if (g_records.used == 0) return;
  char path[1152];
  snprintf(path, sizeof path, "%s/%u.records", g_folder, g_process);
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || !write_all(file, g_records.data, g_records.used)) g_state->failures.fetch_add(1);
  if (file >= 0) close(file);
  g_records.used = 0;
}

void image_path(char (&path)[1152], uint32_t number, const char* suffix) {
  snprintf(path, sizeof path, "%s/%u.%u.image%s", g_folder, g_process, number, suffix);
}

// The image under its final name, then what its ranges are.
void flush_image() {
  char part[1152], whole[1152];
  image_path(part, g_images, ".part");
  image_path(whole, g_images, "");
  const int file = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool written = file >= 0 && write_all(file, g_image.data, g_image.used);
  if (file >= 0) close(file);
  if (!written || rename(part, whole) != 0) g_state->failures.fetch_add(1);
  ++g_images;
  flush_records();
}

bool read_file(const char* path, Bytes& into) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct stat about;
  bool good = fstat(file, &about) == 0 && into.reserve(static_cast<size_t>(about.st_size) + 1);
  into.used = 0;
  while (good && into.used < static_cast<size_t>(about.st_size)) {
    const ssize_t got = read(file, into.data + into.used, static_cast<size_t>(about.st_size) - into.used);
    if (got < 0 && errno == EINTR) continue;
    good = got > 0;
    if (good) into.used += static_cast<size_t>(got);
  }
  close(file);
  return good;
}

// ---- records
// -----------------------------------------------------------------------------------------------------------

plugin::CounterRecord* record_at(size_t offset) {
  return reinterpret_cast<plugin::CounterRecord*>(g_records.data + offset);
}

// Returns where the record lies in g_records, SIZE_MAX without memory.
size_t add_record(const plugin::CounterRecord& record, const char* name) {
  const size_t name_bytes = name == nullptr ? 0 : strlen(name), padded = (name_bytes + 7) / 8 * 8;
  const size_t bytes = sizeof record + padded;
  if (!g_records.reserve(g_records.used + bytes + (g_records.used + bytes > g_records.size ? g_records.size + 65536 : 0)))
    return SIZE_MAX;
  const size_t offset = g_records.used;
  plugin::CounterRecord* const at = record_at(offset);
  *at = record;
  at->magic = plugin::kCounterRecordMagic;
  at->bytes = static_cast<uint32_t>(bytes);
  at->name_bytes = static_cast<uint32_t>(name_bytes);
  memset(at + 1, 0, padded);
  if (name_bytes != 0) memcpy(at + 1, name, name_bytes);
  g_records.used += bytes;
  return offset;
}

// CUPTI makes objects of its own as it is first asked to do something, and what is made last is destroyed first when the
// program exits: then our end must come before. Called after every first time of something.
void finish();
void finish_at_exit() {
  static constinit uint32_t s_times = 0;
  if (s_times < 6) {
    ++s_times;
    atexit(finish);
  }
}

// ---- sessions
// ----------------------------------------------------------------------------------------------------------

void disable(Enabled& object) {
  abi::Disable parameters{};
  parameters.profiler = object.profiler;
  call(g_call.disable, parameters, "leave a context");
  if (g_context == object.context) {
    g_profiler = nullptr;
    g_context = nullptr;
  }
  object = {};
}

// An object for other ranges is made anew (13 ms).
bool enable_on(void* context, int range = abi::kAutoRange) {
  if (g_context == context && g_range == range) return true;
  static constinit bool s_initialized = false;
  if (!s_initialized) {  // not within cuInit: CUPTI's profiler wants the driver ready
    abi::Initialize initialize{};
    if (!call(g_call.initialize, initialize, "start its profiler")) return false;
    s_initialized = true;
  }
  Enabled *known = nullptr, *free = nullptr;
  for (Enabled& each : g_enabled) {
    if (each.context == context) known = &each;
    if (each.context == nullptr && free == nullptr) free = &each;
  }
  if (known != nullptr && known->range != range) {
    disable(*known);
    free = known;
    known = nullptr;
  }
  if (known == nullptr && free == nullptr) disable(*(free = &g_enabled[0]));
  if (known == nullptr) {
    abi::Enable enable{};
    enable.context = context;
    if (!call(g_call.enable, enable, "profile in this context")) return false;
    *free = {context, enable.profiler, range};
  }
  const Enabled& object = known != nullptr ? *known : *free;
  g_profiler = object.profiler;
  g_context = context;
  g_range = range;
  finish_at_exit();
  int device = 0;
  if (g_call.context_device(&device) == 0) g_device = static_cast<uint32_t>(device);
  if (known != nullptr) return true;
  // Asked of every new object: before, it cannot prepare an image (CUPTI 13.0 crashes).
  const auto bytes_of = [&](size_t ranges) {
    abi::ImageSize size{};
    size.profiler = g_profiler;
    size.metrics = g_metrics;
    size.metric_count = g_metric_count;
    size.max_ranges = ranges;
    size.max_nodes = static_cast<uint32_t>(ranges);
    return call(g_call.image_size, size, "size its counter data") ? size.bytes : 0;
  };
  if (g_ranges == 0) {
    const size_t one = bytes_of(1);
    if (one == 0) return false;
    g_ranges = kImageBudget / one;
    const size_t most = g_passes == 1 ? kMaxRangesOnePass : kMaxRanges;
    g_ranges = g_ranges < 1 ? 1 : g_ranges > most ? most : g_ranges;
    // CUPTI's kernel replay spends tens of milliseconds a kernel: small images lose less when the program is killed.
    if (g_mode == Mode::kKernel && g_passes > 1 && !g_own_replay && g_ranges > 16) g_ranges = 16;
  }
  const size_t bytes = bytes_of(g_ranges);
  if (bytes == 0) return false;
  if (!g_image.reserve(bytes)) {
    give_up("get memory for its counter data", 0);
    return false;
  }
  g_image.used = bytes;
  return true;
}

// Images for another context are of the same layout: all GPUs of a run are of one kind.
bool fresh_image() {
  if (g_mode == Mode::kApplication && g_pass != 0) {
    char path[1152];
    image_path(path, g_images, "");
    const size_t bytes = g_image.used;
    if (read_file(path, g_image) && g_image.used == bytes) return true;
    g_image.used = bytes;  // this run launches more than the one before: tacho tells
  }
  abi::ImageInitialize initialize{};
  initialize.profiler = g_profiler;
  initialize.image = g_image.data;
  initialize.bytes = g_image.used;
  return call(g_call.image_initialize, initialize, "prepare its counter data");
}

bool configure(int replay, size_t pass) {
  abi::SetConfig config{};
  config.profiler = g_profiler;
  config.config = g_config.data;
  config.config_bytes = g_config.used;
  config.image = g_image.data;
  config.image_bytes = g_image.used;
  config.range = g_range;
  config.replay = replay;
  config.max_ranges = g_ranges;
  config.nesting_levels = config.least_level = config.target_level = 1;
  config.pass = pass;
  return call(g_call.set_config, config, "set its counters");
}

bool start() {
  abi::Disable parameters{};
  parameters.profiler = g_profiler;
  g_running = call(g_call.start, parameters, "start counting");
  g_used = 0;
  finish_at_exit();
  return g_running;
}

// The range of a graph. What was launched before must not be in it, nor may it end before the graph does.
bool push() {
  if (!replay::settle(g_context)) return false;
  abi::PushRange parameters{};
  parameters.profiler = g_profiler;
  parameters.name = "graph";
  return call(g_call.push, parameters, "begin a range");
}
bool pop() {
  const bool settled = replay::settle(g_context);
  abi::Disable parameters{};
  parameters.profiler = g_profiler;
  return call(g_call.pop, parameters, "end a range") && settled;
}

bool stop() {
  g_running = false;
  abi::Stop parameters{};
  parameters.profiler = g_profiler;
  return call(g_call.stop, parameters, "stop counting");
}

bool decode() {
  abi::DecodeData parameters{};
  parameters.profiler = g_profiler;
  if (!call(g_call.decode, parameters, "read its counters")) return false;
  if (parameters.dropped != 0) {
    char line[128];
    snprintf(line, sizeof line, "CUPTI dropped the counters of %zu launches", parameters.dropped);
    cuda::say_warning(line);
  }
  return true;
}

// ---- kernel and application replay
// -------------------------------------------------------------------------------------

bool open_session(void* context) {
  if (!enable_on(context) || !fresh_image()) return false;
  if (g_mode == Mode::kApplication) return configure(abi::kApplicationReplay, g_pass) && start();
  return configure(g_passes == 1 ? abi::kUserReplay : abi::kKernelReplay, 0) && start();
}

// Kept launches cannot be used from here on; CUPTI replays what comes.
void leave_batches(const char* reason) {
  char line[512];
  snprintf(line, sizeof line, "kernels are replayed one by one by CUPTI from here on: %s", reason);
  cuda::say_warning(line);
  g_own_replay = false;
  g_ranges = 0;  // images of another size
  for (Enabled& each : g_enabled)
    if (each.context != nullptr) disable(each);
}

bool open_batch(void* context, bool with_host) {
  if (const char* const problem = replay::problem(); problem != nullptr) {
    leave_batches(problem);
    return open_session(context);
  }
  if (!enable_on(context)) return false;
  if (const char* const problem = replay::begin(context, with_host); problem != nullptr) {
    leave_batches(problem);
    return open_session(context);
  }
  g_batch = fresh_image() && configure(abi::kUserReplay, 0) && start();
  return g_batch;
}

// The further passes of a batch, and memory as the program expects it.
bool replay_batch() {
  g_batch = false;
  bool good = stop();
  const char* problem = nullptr;
  if (good && g_used != 0) {
    problem = replay::first_done();
    for (size_t pass = 1; pass < g_passes && good && problem == nullptr; ++pass) {
      problem = replay::put_back();
      if (problem != nullptr || !(good = start())) break;
      problem = replay::run_again();
      good = stop();
    }
  }
  const char* const at_end = replay::end();
  if (problem == nullptr) problem = at_end;
  if (problem != nullptr) {
    g_state->failures_of_replay.fetch_add(1, std::memory_order_relaxed);
    leave_batches(problem);
    return false;
  }
  return good && decode();
}

// Launches are told apart by their place in the image: whatever else became a range would give one the counts of another.
bool image_has(size_t launched) {
  abi::DataInfo info{};
  info.image = g_image.data;
  info.bytes = g_image.used;
  if (!call(g_call.data_info, info, "look into its counter data")) return false;
  if (info.ranges == launched) return true;
  g_state->failures_of_replay.fetch_add(1, std::memory_order_relaxed);
  char line[192];
  snprintf(line, sizeof line, "CUPTI counted %zu ranges for %zu launches", info.ranges, launched);
  if (g_own_replay) {
    leave_batches(line);
  } else {
    g_sweep = false;
    cuda::say_warning(line);
  }
  return false;
}

void close_session() {
  if (!g_running) return;
  const size_t used = g_used;
  const bool batch = g_batch;
  bool good = batch ? replay_batch() : stop() && decode();
  if (good && used != 0 && g_mode == Mode::kKernel && (batch || g_passes == 1)) good = image_has(used);
  if (good && used != 0) {
    flush_image();
  } else {
    ++g_images;  // records tell this number, and there is no such image
    flush_records();
  }
  g_used = 0;
  g_carried = 0;
  finish_at_exit();
}

// The launch at hand is of a graph: runs it for every pass and leaves its values in the image. False: it is not measured.
bool measure_graph(void* context, const replay::Call& call) {
  const char* problem = nullptr;
  if (g_mode != Mode::kKernel)
    problem = "only --replay kernel measures them, each as a whole";
  else if (!g_tracking || (g_passes > 1 && !g_own_replay))
    problem = "CUPTI's own kernel replay, which is used here, cannot";
  else if (!replay::variables_known())
    problem = "there are variables of modules whose kernels only graphs launch, which cannot be put back";
  else
    problem = replay::problem();
  if (problem == nullptr && !enable_on(context, abi::kUserRange)) return false;
  if (problem == nullptr) problem = replay::begin(context, replay::touches_host(call));
  if (problem == nullptr && !replay::keep(call, false)) problem = "there is no memory for a list of launches";
  bool good = problem == nullptr && fresh_image() && configure(abi::kUserReplay, 0);
  for (size_t pass = 0; pass < g_passes && good && problem == nullptr; ++pass) {
    if (pass != 0 && (problem = replay::put_back()) != nullptr) break;
    if (!(good = start())) break;
    if (g_swept) replay::sweep(context);
    good = push();
    if (good) problem = replay::run_again();
    good = good && pop();
    good = stop() && good;
    // Also where the graph failed half way: what it has written is put back.
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
    return false;
  }
  return good && decode() && image_has(1);
}

// ---- multiplexing
// ------------------------------------------------------------------------------------------------------

struct Cycle {
  bool open;
  size_t pass, length, wanted;  // ranges of the sequence, and how many the first pass may have
  uint64_t shapes[kMaxRanges];
  size_t records[kMaxRanges];  // of the first pass, in g_records
  uint64_t waited;
  int64_t switching, inside;
  uint64_t launches;
};
constinit Cycle g_cycle{};
constinit size_t g_cycle_length = 8;
constinit uint64_t g_skip = 0;

// Shapes that have been measured in all passes.
constexpr size_t kShapes = 1 << 14;
constinit uint64_t g_complete[kShapes] = {};

uint64_t* find_complete(uint64_t shape) {
  for (size_t probe = 0; probe < kShapes; ++probe) {
    uint64_t& at = g_complete[(shape + probe) % kShapes];
    if (at == shape || at == 0) return &at;
  }
  return &g_complete[0];
}

void end_cycle(bool whole) {
  Cycle& cycle = g_cycle;
  cycle.open = false;
  const int64_t begin = raw_now();
  if (whole && cycle.length != 0 && decode()) {
    for (size_t k = 0; k < cycle.length; ++k) {
      plugin::CounterRecord* const record = record_at(cycle.records[k]);
      record->image = g_images;
      record->range = static_cast<uint32_t>(k);
      record->samples = static_cast<uint32_t>(g_passes);
      *find_complete(cycle.shapes[k]) = cycle.shapes[k];
    }
    flush_image();
    g_state->dispatches_done.fetch_add(cycle.length, std::memory_order_relaxed);
    finish_at_exit();
    cycle.switching += raw_now() - begin;
    const int64_t each = cycle.launches == 0 ? 0 : cycle.inside / static_cast<int64_t>(cycle.launches);
    // Half as many again: a program that ends in the middle of a cycle has paid for switches that brought nothing.
    g_skip = each <= 0 ? 0 : static_cast<uint64_t>(cycle.switching / each * 3 / 2);
    g_cycle_length = g_cycle_length * 4 > g_ranges ? g_ranges : g_cycle_length * 4;
  } else {
    flush_records();
  }
}

// The pass that runs is over; what it did not reach is left out of the cycle.
void end_pass() {
  Cycle& cycle = g_cycle;
  const int64_t begin = raw_now();
  if (g_used < cycle.length || cycle.pass == 0) cycle.length = g_used;
  const bool good = stop();
  cycle.switching += raw_now() - begin;
  if (!good) return end_cycle(false);
  cycle.waited = 0;
  if (++cycle.pass == g_passes) end_cycle(true);
}

bool begin_pass() {
  const int64_t begin = raw_now();
  const bool good = start();
  g_cycle.switching += raw_now() - begin;
  if (!good) g_cycle.open = false;
  return good;
}

// True: this launch is range g_used of the running pass.
bool multiplex(void* context, uint64_t shape) {
  Cycle& cycle = g_cycle;
  if (cycle.open && context != g_context) {  // the cycle belongs to another context
    if (g_running) end_pass();
    return false;
  }
  if (cycle.open && g_running) {
    if (cycle.pass == 0 || cycle.shapes[g_used] == shape) {
      cycle.shapes[g_used] = shape;
      return true;
    }
    end_pass();
  }
  if (cycle.open) {
    // Wait for the sequence's first shape, but not for ever.
    if (shape == cycle.shapes[0]) return begin_pass();
    if (++cycle.waited > 20'000) {
      end_cycle(false);
      for (Enabled& each : g_enabled)  // enabled afresh: CUPTI would go on with the next pass
        if (each.context == g_context && g_context != nullptr) disable(each);
    }
    return false;
  }
  if (g_skip != 0 && *find_complete(shape) == shape) {
    --g_skip;
    return false;
  }
  if (!enable_on(context) || !fresh_image() || !configure(abi::kUserReplay, 0)) return false;
  cycle = Cycle{};
  cycle.open = true;
  cycle.wanted = g_cycle_length < g_ranges ? g_cycle_length : g_ranges;
  cycle.shapes[0] = shape;
  return begin_pass();
}

// ---- launches
// ----------------------------------------------------------------------------------------------------------

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
  return hash ^ hash >> 32;
}

bool name_passes(const char* name) {
  if (g_kernel_count == 0) return true;
  char* const readable = g_demangle != nullptr ? g_demangle(name, nullptr, nullptr, nullptr) : nullptr;
  bool passes = false;
  for (size_t i = 0; i < g_kernel_count && !passes; ++i)
    passes = strstr(name, g_kernels[i]) != nullptr || (readable != nullptr && strstr(readable, g_kernels[i]) != nullptr);
  free(readable);
  return passes;
}

Function* function_of(void* handle, const char* name) {
  static constinit Function s_unknown{nullptr, "unknown kernel", 1, nullptr, true, 0, 0, 0, 0, 0, 0};
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
    fresh->selected = name_passes(fresh->name);
    // CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, _LOCAL_SIZE_BYTES, _NUM_REGS; a graph has none.
    for (const auto& [attribute, to] : {std::pair{1, &fresh->shared}, {3, &fresh->local}, {4, &fresh->registers}})
      if (int value = 0; g_call.function_attribute != nullptr && handle != nullptr && name != nullptr &&
                         g_call.function_attribute(&value, attribute, handle) == 0)
        *to = static_cast<uint32_t>(value);
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

// What the launching call that holds the lock is measured as.
constinit bool g_measuring = false;
constinit bool g_carrying = false;  // it runs in the session, but the filter leaves it out
constinit bool g_alone = false;     // it is a batch of its own
constinit std::atomic<bool> g_session_open{false};  // launches that are left out have to end something first
constinit int64_t g_entered = 0;

// Brings to its end what is open in any mode.
void close_open() {
  if (g_running) g_mode == Mode::kMultiplex ? end_pass() : close_session();
}

// A call that is no launch: the lock is held until it returns, so that no batch is saved or run again meanwhile.
void enter_other(const cupti::CallbackData& call_data, Effect effect) {
  lock();
  if (effect == Effect::kCaptureBegins) {
    close_open();
    g_captures.fetch_add(1, std::memory_order_relaxed);
  } else if (effect == Effect::kChanges) {
    if (g_batch) close_session();
    if (strncmp(call_data.function, "cuMemAlloc", 10) == 0 || strncmp(call_data.function, "cuMemCreate", 11) == 0)
      replay::give_memory_back();
  }
  g_session_open.store(g_running || g_cycle.open, std::memory_order_relaxed);
}

// Notes the variables of the function's module.
void prepare(Function* function, const replay::Call& call) {
  if (function->generation == replay::generation()) return;
  if (!replay::prepare(call) && g_batch) close_session();  // a batch has not saved them
  function->generation = replay::generation();
}

// True: the launch runs in the session that is open now.
bool measure_replayed(void* context, Function* function, const replay::Call& call, bool selected) {
  if (g_running && context != g_context) close_session();
  g_swept = selected && g_sweep && replay::can_sweep(context);
  if (g_tracking) prepare(function, call);
  if (!g_own_replay) return g_running || open_session(context);
  const bool host = replay::touches_host(call);
  if (host && g_running) close_session();
  if (!g_running && (!selected || !open_batch(context, host))) return false;
  if (!g_batch) return true;
  if (!replay::keep(call, g_swept)) {
    close_session();
    if (!selected) return false;
    leave_batches("a kernel's arguments are not told by the driver");
    return open_session(context);
  }
  g_alone = host;
  return true;
}

void describe(plugin::CounterRecord& record, const Function* function, uint32_t dynamic_shared) {
  record.pid = static_cast<uint32_t>(g_pid);
  record.tid = thread_id();
  record.process = g_process;
  record.device = g_device;
  record.start = boot_now();
  record.shared = function->shared + dynamic_shared;
  record.local = function->local;
  record.registers = function->registers;
  record.selected = 1;
  record.samples = 1;
}

void enter(const cupti::CallbackData& call_data, Effect effect, replay::Call::Kind kind) {
  if (owned()) {  // a call within a call, as with replays: not another dispatch
    ++g_depth;
    return;
  }
  if (effect != Effect::kLaunch) return enter_other(call_data, effect);
  const auto* const words = static_cast<const char*>(call_data.parameters);
  replay::Call call{kind, nullptr, words};
  const bool extended = call.kind == replay::Call::Kind::kExtended, graph = call.kind == replay::Call::Kind::kGraph;
  const char* shape = words;
  plugin::CounterRecord record{};
  if (extended) {
    memcpy(&shape, words, sizeof shape);
    memcpy(&call.handle, words + 8, sizeof call.handle);
  } else {
    memcpy(&call.handle, words, sizeof call.handle);
    shape = words + 8;
  }
  uint32_t dynamic = 0;
  if (graph) {
    memcpy(&record.queue, words + 8, sizeof record.queue);
    for (int i = 0; i < 3; ++i) record.grid[i] = record.block[i] = 1;
  } else {
    memcpy(record.grid, shape, sizeof record.grid);
    memcpy(record.block, shape + 12, sizeof record.block);
    memcpy(&dynamic, shape + 24, sizeof dynamic);
    memcpy(&record.queue, shape + 32, sizeof record.queue);
  }
  const bool capturing = g_captures.load(std::memory_order_relaxed) != 0;
  if (capturing && g_call.is_capturing != nullptr) {
    int status = 0;  // into a graph: it does not run now
    if (g_call.is_capturing(reinterpret_cast<void*>(record.queue), &status) == 0 && status != 0) {
      if (g_tracking && !graph) {
        lock();
        prepare(function_of(call.handle, call_data.symbol), call);
        unlock();
      }
      return;
    }
  }
  Function* const function = function_of(call.handle, graph ? "CUDA graph" : call_data.symbol);
  if (!function->selected && !g_session_open.load(std::memory_order_relaxed)) {
    g_state->dispatches.fetch_add(1, std::memory_order_relaxed);
    function->left_out.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  lock();
  record.index = g_state->dispatches.fetch_add(1, std::memory_order_relaxed);
  bool selected = function->selected;
  if (selected && g_dispatch_count != 0) {
    selected = false;
    for (size_t i = 0; i < g_dispatch_count && !selected; ++i)
      selected = record.index >= g_dispatches[i][0] && record.index <= g_dispatches[i][1];
  }
  void* context = nullptr;
  const bool has_context = g_call.context_current(&context) == 0 && context != nullptr;
  if (!has_context || capturing) selected = false;
  uint64_t key = function->hash;
  if (!g_by_name) {
    for (int i = 0; i < 3; ++i) key = mix(key, uint64_t{record.grid[i]} << 32 | record.block[i]);
    key = mix(key, uint64_t{function->shared} + dynamic);
  }
  key |= 1;
  bool measure = false;
  g_alone = g_carrying = g_swept = false;
  if (graph && selected) {
    close_open();
    g_swept = g_sweep && replay::can_sweep(context);
    measure = measure_graph(context, call);
    g_session_open.store(g_cycle.open, std::memory_order_relaxed);
    if (!measure) {
      function->passed_over.fetch_add(1, std::memory_order_relaxed);
    } else {
      describe(record, function, 0);
      record.image = g_images;
      record.range = 0;
      if (add_record(record, function->name) == SIZE_MAX) give_up("get memory for records", 0);
      g_state->dispatches_done.fetch_add(1, std::memory_order_relaxed);
      flush_image();
    }
    g_measuring = false;
    unlock();
    return;
  }
  if (!selected) {
    // Between launches that pass the filter a few others are cheaper to let through than the session is to close.
    if (g_running && g_mode == Mode::kKernel && (g_batch || g_passes == 1) && context == g_context && ++g_carried <= kMaxCarried)
      g_carrying = measure_replayed(context, function, call, false);
    else
      close_open();
  } else if (g_mode == Mode::kMultiplex) {
    measure = multiplex(context, key);
  } else {
    g_carried = 0;
    measure = measure_replayed(context, function, call, true);
  }
  g_session_open.store(g_running || g_cycle.open, std::memory_order_relaxed);
  if (!measure) {
    (function->selected ? function->passed_over : function->left_out).fetch_add(1, std::memory_order_relaxed);
    g_measuring = g_carrying;
    if (!g_measuring) unlock();
    return;
  }
  if (g_swept && (g_batch || g_passes == 1) && replay::sweep(context)) ++g_used;  // a range that nobody reads
  describe(record, function, dynamic);
  if (g_mode == Mode::kMultiplex) {
    // A range combines launches: it goes by the one of the first pass, the others are its samples.
    record.image = plugin::kNotMeasured;
    if (g_cycle.pass == 0) {
      const size_t at = add_record(record, function->name);
      if (at == SIZE_MAX)
        give_up("get memory for records", 0);
      else
        g_cycle.records[g_used] = at;
    } else {
      function->passed_over.fetch_add(1, std::memory_order_relaxed);
    }
  } else {
    record.image = g_images;
    record.range = static_cast<uint32_t>(g_used);
    if (add_record(record, function->name) == SIZE_MAX) give_up("get memory for records", 0);
  }
  g_measuring = true;
  g_entered = raw_now();
}

void leave(const cupti::CallbackData& call_data, Effect effect) {
  if (!owned()) return;
  if (g_depth > 1) {
    --g_depth;
    return;
  }
  if (effect != Effect::kLaunch) {
    const auto* const result = static_cast<const int*>(call_data.result);
    if (effect == Effect::kCaptureEnds && g_captures.load(std::memory_order_relaxed) != 0)
      g_captures.fetch_sub(1, std::memory_order_relaxed);
    if (effect == Effect::kChanges && (result == nullptr || *result == 0))
      replay::note_call(call_data.function, call_data.parameters, call_data.context);
    return unlock();
  }
  if (g_measuring && g_running) {
    ++g_used;
    if (g_mode == Mode::kMultiplex) {
      g_cycle.inside += raw_now() - g_entered;
      ++g_cycle.launches;
      if (g_used == (g_cycle.pass == 0 ? g_cycle.wanted : g_cycle.length)) end_pass();
    } else {
      if (!g_carrying) g_state->dispatches_done.fetch_add(1, std::memory_order_relaxed);
      if (g_alone || g_used + (g_sweep ? 2 : 1) > g_ranges) close_session();
    }
  }
  g_measuring = false;
  unlock();
}

// What is open is brought to its end: before a context goes and when the program ends.
void finish_open() {
  lock();
  if (g_mode == Mode::kMultiplex) {
    if (g_running) stop();
    if (g_cycle.open) end_cycle(false);
    flush_records();
  } else {
    close_session();
    flush_records();
  }
  g_session_open.store(false, std::memory_order_relaxed);
  unlock();
}

// Launches without a record of their own: how many, kernel by kernel.
void write_counts() {
  lock();
  for (std::atomic<Function*>& slot : g_functions) {
    Function* const function = slot.load(std::memory_order_acquire);
    if (function == nullptr) continue;
    for (const bool selected : {false, true}) {
      const uint64_t count = (selected ? function->passed_over : function->left_out).exchange(0);
      if (count == 0) continue;
      plugin::CounterRecord record{};
      record.index = ~uint64_t{0};
      record.pid = static_cast<uint32_t>(g_pid);
      record.process = g_process;
      record.image = plugin::kNotMeasured;
      record.selected = selected ? 1 : 0;
      record.samples = count > 0xffffffff ? 0xffffffff : static_cast<uint32_t>(count);
      add_record(record, function->name);
    }
  }
  flush_records();
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
    g_state->dispatches.fetch_add(1, std::memory_order_relaxed);
    on_launch();
  }
}

void on_callback(void*, int domain, uint32_t id, const void* data) {
  if (*g_fork_word == 0) return;  // a forked child: CUDA does not work in it
  if (g_mode == Mode::kSampling) return on_sampling_callback(domain, id, data);
  if (domain == cupti::domain::kResource) {
    if (id == kContextDestroyed && g_on.load(std::memory_order_relaxed) && g_context != nullptr) {
      finish_open();
      void* const gone = static_cast<const cupti::ResourceData*>(data)->context;
      for (Enabled& each : g_enabled) {
        if (each.context == nullptr || each.context != gone) continue;
        abi::Disable parameters{};  // whatever it answers: the context is on its way out
        parameters.profiler = each.profiler;
        parameters.size = abi::kSizeOf<abi::Disable>;
        g_call.disable(&parameters);
        if (g_context == gone) {
          g_profiler = nullptr;
          g_context = nullptr;
        }
        each = {};
      }
      replay::forget(gone);
    } else if (id == kModuleLoaded && g_tracking) {
      const auto& module = *static_cast<const cupti::ModuleResource*>(static_cast<const cupti::ResourceData*>(data)->descriptor);
      replay::note_module(module.image, module.bytes);
    }
    return;
  }
  if (domain != cupti::domain::kDriver) return;
  const auto& call_data = *static_cast<const cupti::CallbackData*>(data);
  const Effect effect = id < sizeof g_effects ? g_effects[id] : Effect::kNone;
  if (call_data.site == cupti::kEnter) {
    if (g_on.load(std::memory_order_relaxed) && call_data.parameters != nullptr) enter(call_data, effect, g_kinds[id]);
  } else {
    leave(call_data, effect);
  }
}

void finish() {
  if (getpid() != g_pid || !g_on.load()) return;
  if (g_mode == Mode::kSampling) {
    finish_pc_sampler();
    g_on.store(false);
    return;
  }
  finish_open();
  g_on.store(false);
  write_counts();
}

// ---- start
// -----------------------------------------------------------------------------------------------------------

bool read_config() {
  char path[1152];
  static constinit Bytes s_text{};
  snprintf(path, sizeof path, "%s/config", g_folder);
  if (!read_file(path, s_text)) return false;
  s_text.data[s_text.used] = '\0';
  for (char* line = reinterpret_cast<char*>(s_text.data); line != nullptr && *line != '\0';) {
    char* const end = strchr(line, '\n');
    if (end != nullptr) *end = '\0';
    const auto value = [&](const char* key) -> const char* {
      const size_t length = strlen(key);
      return strncmp(line, key, length) == 0 && line[length] == '=' ? line + length + 1 : nullptr;
    };
    if (const char* metric = value("metric"); metric != nullptr && g_metric_count < kMaxMetrics)
      g_metrics[g_metric_count++] = metric;
    else if (const char* kernel = value("kernel"); kernel != nullptr && g_kernel_count < kMaxFilters)
      g_kernels[g_kernel_count++] = kernel;
    else if (const char* range = value("dispatch"); range != nullptr && g_dispatch_count < kMaxFilters) {
      char* colon = nullptr;
      g_dispatches[g_dispatch_count][0] = strtoull(range, &colon, 10);
      g_dispatches[g_dispatch_count][1] = colon != nullptr && *colon == ':' ? strtoull(colon + 1, nullptr, 10) : 0;
      ++g_dispatch_count;
    } else if (const char* mode = value("mode"); mode != nullptr)
      g_mode = strcmp(mode, "application") == 0 ? Mode::kApplication
               : strcmp(mode, "multiplex") == 0 ? Mode::kMultiplex
               : strcmp(mode, "sampling") == 0  ? Mode::kSampling
                                                : Mode::kKernel;
    else if (const char* pass = value("pass"); pass != nullptr)
      g_pass = strtoull(pass, nullptr, 10);
    else if (const char* passes = value("passes"); passes != nullptr)
      g_passes = strtoull(passes, nullptr, 10);
    else if (const char* replayer = value("replayer"); replayer != nullptr)
      g_by_cupti = strcmp(replayer, "cupti") == 0;
    else if (const char* cache = value("cache"); cache != nullptr)
      g_sweep = strcmp(cache, "all") == 0;
    else if (const char* by = value("by"); by != nullptr)
      g_by_name = strcmp(by, "kernel") == 0;
    line = end != nullptr ? end + 1 : nullptr;
  }
  snprintf(path, sizeof path, "%s/counter.config", g_folder);
  return g_mode == Mode::kSampling || (g_metric_count != 0 && g_passes != 0 && read_file(path, g_config));
}

bool map_state() {
  char path[1152];
  snprintf(path, sizeof path, "%s/state", g_folder);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  void* const map = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (map == MAP_FAILED) return false;
  g_state = static_cast<plugin::SpoolState*>(map);
  return true;
}

bool find_functions() {
  void* const library = dlopen(g_cupti.path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) return false;
  const auto find = [&](auto& to, const char* symbol) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, symbol));
    return to != nullptr;
  };
  return find(g_call.initialize, "cuptiProfilerInitialize") && find(g_call.enable, "cuptiRangeProfilerEnable") &&
         find(g_call.disable, "cuptiRangeProfilerDisable") && find(g_call.set_config, "cuptiRangeProfilerSetConfig") &&
         find(g_call.start, "cuptiRangeProfilerStart") && find(g_call.stop, "cuptiRangeProfilerStop") &&
         find(g_call.push, "cuptiRangeProfilerPushRange") && find(g_call.pop, "cuptiRangeProfilerPopRange") &&
         find(g_call.decode, "cuptiRangeProfilerDecodeData") &&
         find(g_call.image_size, "cuptiRangeProfilerGetCounterDataSize") &&
         find(g_call.data_info, "cuptiRangeProfilerGetCounterDataInfo") &&
         find(g_call.image_initialize, "cuptiRangeProfilerCounterDataImageInitialize");
}

bool find_driver() {
  const auto find = [](auto& to, const char* symbol) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(cuda::find_in_driver(symbol));
    return to != nullptr;
  };
  find(g_call.function_attribute, "cuFuncGetAttribute");
  find(g_call.is_capturing, "cuStreamIsCapturing");
  return find(g_call.context_current, "cuCtxGetCurrent") && find(g_call.context_device, "cuCtxGetDevice");
}

void find_demangler() {
  void* found = dlsym(RTLD_DEFAULT, "__cxa_demangle");
  if (found == nullptr)
    if (void* const library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL); library != nullptr)
      found = dlsym(library, "__cxa_demangle");
  g_demangle = reinterpret_cast<Demangle>(found);
}

// A word that reads 0 in every child, without a system call.
void mark_process() {
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  g_fork_word = static_cast<volatile uint32_t*>(page);
  *g_fork_word = 1;
  madvise(page, 4096, MADV_WIPEONFORK);
}

bool refuse(const char* sentence) {
  if (g_state != nullptr) g_state->refused.fetch_add(1);
  cuda::say_warning(sentence);
  return false;
}

}  // namespace

void finish_before_exit() {
  if (g_on.load() && *g_fork_word != 0 && g_owner.load() == 0) finish();
}

bool start_range_profiler(const char* folder) {
  char tried[1024], line[1536];
  snprintf(g_folder, sizeof g_folder, "%s", folder);
  g_pid = getpid();
  if (!map_state() || !read_config()) return refuse("counters cannot be collected: tacho's folder for them is gone");
  if (!cuda::load_cupti(g_cupti, "", tried, sizeof tried)) {
    snprintf(line, sizeof line, "counters cannot be collected: CUPTI (libcupti.so) was not found (looked at %s)", tried);
    return refuse(line);
  }
  if (g_mode != Mode::kSampling && (!find_functions() || !find_driver())) {
    snprintf(line, sizeof line, "counters cannot be collected: %s has no range profiler; CUDA 12.6 or newer is needed",
             g_cupti.path);
    return refuse(line);
  }
  if (g_kernel_count != 0) find_demangler();
  if (const int result = g_cupti.subscribe(&g_subscriber, on_callback, nullptr); result != 0) {
    snprintf(line, sizeof line, "counters cannot be collected: %s",
             result == cupti::kMultipleSubscribers ? "another profiler uses CUPTI in this process" : text_of(result));
    return refuse(line);
  }
  mark_process();
  g_on.store(true);
  g_process = static_cast<uint32_t>(g_state->attached.fetch_add(1));
  if (g_mode == Mode::kSampling) {
    const char* why = "";
    if (!start_pc_sampler(g_cupti, g_folder, g_process, &why)) return refuse(why);
    for (const uint32_t id : {kContextCreated, kContextDestroyed, kModuleLoaded, kModuleUnloads})
      g_cupti.enable_callback(1, g_subscriber, cupti::domain::kResource, id);
  }
  const bool found = g_mode != Mode::kSampling && replay::find_functions();
  g_tracking = g_mode == Mode::kKernel && !g_by_cupti && found;
  g_own_replay = g_tracking && g_passes > 1;
  if (!found) g_sweep = false;
  for (uint32_t id = 1; id < sizeof g_effects; ++id) {
    const char* name = nullptr;
    if (g_cupti.get_callback_name(cupti::domain::kDriver, id, &name) != 0 || name == nullptr) continue;
    const Effect effect = effect_of(name);
    if (effect == Effect::kNone || (g_mode == Mode::kSampling && effect != Effect::kLaunch) || (!g_own_replay && effect == Effect::kReads) || (!g_tracking && effect == Effect::kChanges)) continue;
    g_effects[id] = effect;
    g_kinds[id] = replay::kind_of(name);
    g_cupti.enable_callback(1, g_subscriber, cupti::domain::kDriver, id);
  }
  g_cupti.enable_callback(1, g_subscriber, cupti::domain::kResource, kContextDestroyed);
  if (g_tracking) g_cupti.enable_callback(1, g_subscriber, cupti::domain::kResource, kModuleLoaded);
  atexit(finish);
  return true;
}

}  // namespace tacho::capture::counter
