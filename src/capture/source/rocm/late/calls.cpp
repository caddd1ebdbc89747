// HIP's calls, as HIP tells them to its tracer (late.h). HIP does not say what they return.
#include <string.h>

#include <string_view>

#include "base/clock.h"
#include "capture/source/rocm/hip_calls.h"
#include "capture/source/rocm/late/late.h"
#include "capture/source/rocm/rocm.h"
#include "capture/source/sampler/counts.h"
#include "capture/source/sampler/sampler.h"
#include "event/call_result.h"
#include "tape/gate.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {
namespace {

struct Function {
  const char* name;
  HipCall does;
  uint16_t number;  // event::function_name's
};
constexpr Function kFunctions[] = {
#define TACHO_HIP_FUNCTION(number, name) {#name, hip_call(#name), number},
#define TACHO_HIP_OPAQUE(number, name) {#name, hip_call(#name), number},
#include "event/functions/functions_hip.def"
};

// By HIP's numbers, which are those of its version.
constexpr uint32_t kOperations = 1024;
constinit const Function* g_functions[kOperations] = {};

struct LaunchShape {
  std::string_view name;
  tracer::ArgumentsAt at;
};
constexpr LaunchShape kLaunches[] = {
    {"hipLaunchKernel", {8, 20, 48, 56, false, false}},
    {"hipExtLaunchKernel", {8, 20, 48, 56, false, false}},
    {"hipLaunchCooperativeKernel", {8, 20, 48, 56, false, false}},
    {"hipModuleLaunchKernel", {8, 20, 32, 40, false, false}},
    {"hipModuleLaunchCooperativeKernel", {8, 20, 32, 40, false, false}},
    {"hipExtModuleLaunchKernel", {8, 20, 32, 40, true, false}},
    {"hipHccModuleLaunchKernel", {8, 20, 32, 40, true, false}},
    {"hipLaunchKernelExC", {8, 20, 32, 40, false, true}},
    {"hipDrvLaunchKernelEx", {8, 20, 32, 40, false, true}},
};
// Calls whose stream lies behind structs or pointers, of which HIP keeps copies between the arguments.
constexpr std::string_view kStreamElsewhere[] = {
    "hipMemset3DAsync",      "hipMemcpy3DAsync",     "hipDrvMemcpy3DAsync",
    "hipMemcpyParam2DAsync", "hipMemcpy3DPeerAsync", "hipMemcpyBatchAsync",
    "hipMemcpy3DBatchAsync", "hipMallocAsync",       "hipMallocFromPoolAsync"};

// Where copies say from where to where they go (hipMemcpyKind) and how many bytes: one number, or width and height.
struct CopyAt {
  std::string_view name;
  int16_t kind, bytes, width;  // -1 = nowhere
};
constexpr CopyAt kCopies[] = {{"hipMemcpy", 24, 16, -1},
                              {"hipMemcpyAsync", 24, 16, -1},
                              {"hipMemcpyWithStream", 24, 16, -1},
                              {"hipMemcpyHtoD", -1, 16, -1},
                              {"hipMemcpyHtoDAsync", -1, 16, -1},
                              {"hipMemcpyDtoH", -1, 16, -1},
                              {"hipMemcpyDtoHAsync", -1, 16, -1},
                              {"hipMemcpyDtoD", -1, 16, -1},
                              {"hipMemcpyDtoDAsync", -1, 16, -1},
                              {"hipMemcpyPeer", -1, 32, -1},
                              {"hipMemcpyPeerAsync", -1, 32, -1},
                              {"hipMemcpyToSymbol", 32, 16, -1},
                              {"hipMemcpyToSymbolAsync", 32, 16, -1},
                              {"hipMemcpyFromSymbol", 32, 16, -1},
                              {"hipMemcpyFromSymbolAsync", 32, 16, -1},
                              {"hipMemcpy2D", 48, -1, 32},
                              {"hipMemcpy2DAsync", 48, -1, 32},
                              {"hipMemcpy2DToArray", 56, -1, 40},
                              {"hipMemcpy2DToArrayAsync", 56, -1, 40},
                              {"hipMemcpy2DFromArray", 56, -1, 40},
                              {"hipMemcpy2DFromArrayAsync", 56, -1, 40}};

const tracer::ArgumentsAt* arguments_of(const Function& function) {
  for (const LaunchShape& launch : kLaunches)
    if (launch.name == function.name) return &launch.at;
  return nullptr;
}

// What is open on a thread, from begin_call() until HIP says that the call has returned.
struct OpenTracedCall {
  uint64_t generation;
  uint64_t start, correlation, outer;
  LateLaunch* launch;
  uint16_t function;  // event::function_name's
  bool open, recorded, made_work;
};
constinit PerThread<OpenTracedCall> g_traced_calls;
constinit std::atomic<uint64_t> g_open_count{0};
constinit std::atomic<uint32_t> g_next_ordinal{0};
constinit std::atomic<uint32_t> g_launch_seen{0};
constinit std::atomic<bool> g_announces{false};

template <typename T>
T read_at(const std::byte* from, size_t at) {
  T value;
  memcpy(&value, from + at, sizeof value);
  return value;
}

bool counts_as_launch(const HipCall& does, std::string_view name) {
  return does.graph || (does.works && name.find("Launch") != std::string_view::npos);
}

event::CopyDirection direction_of_kind(uint32_t kind) {
  using Direction = event::CopyDirection;
  switch (kind) {
    case 0:
      return Direction::kHostToHost;
    case 1:
      return Direction::kHostToDevice;
    case 2:
      return Direction::kDeviceToHost;
    case 3:
    case 1024:  // without the GPU's processors
      return Direction::kDeviceToDevice;
    default:  // HIP finds out by the addresses
      return Direction::kUnknown;
  }
}

void read_copy(LateLaunch& launch, std::string_view name, const std::byte* arguments) {
  using Direction = event::CopyDirection;
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("HtoD")) launch.direction = Direction::kHostToDevice;
  if (has("DtoH")) launch.direction = Direction::kDeviceToHost;
  if (has("DtoD")) launch.direction = Direction::kDeviceToDevice;
  if (has("Peer")) launch.direction = Direction::kPeerToPeer;
  for (const CopyAt& copy : kCopies) {
    if (copy.name != name) continue;
    const auto word = [&](int16_t at) { return read_at<uint64_t>(arguments, static_cast<size_t>(at)); };
    if (copy.kind >= 0) launch.direction = direction_of_kind(static_cast<uint32_t>(word(copy.kind)));
    if (copy.bytes >= 0) launch.bytes = word(copy.bytes);
    if (copy.width >= 0)
      launch.bytes = word(copy.width) * word(static_cast<int16_t>(copy.width + static_cast<int16_t>(sizeof(uint64_t))));
  }
}

// The first launch of the run cannot be told by the one before it.
void before_first() {
  tape::PoolHeader& pool = *tape::pool();
  if (g_launch_seen.exchange(1, std::memory_order_relaxed) != 0 || pool.launches.load(std::memory_order_relaxed) != 0)
    return;
  if (pool.start_launch == 1) tape::set_gate(pool, tape::gate::kTrigger, true);
  if (pool.stop_launch == 1) tape::set_gate(pool, tape::gate::kTrigger, false);
}

// A launch has happened. Recording starts with, or stops before, the next one.
void count_made_launch() {
  tape::PoolHeader& pool = *tape::pool();
  const tape::LaunchTriggers triggers = tape::count_run_launch(pool, 1);
  if (triggers.starts) tape::set_gate(pool, tape::gate::kTrigger, true);
  if (triggers.stops) tape::set_gate(pool, tape::gate::kTrigger, false);
}

uint32_t stream_number(uint64_t handle) {
  OpenCall& open = open_call();
  open.depth = 1;
  open.stream_known = true;
  open.stream = handle;
  open.per_thread = false;
  const uint32_t number = open_stream();
  open.depth = 0;
  return number;
}

void read_shape(LateLaunch& launch, const tracer::ArgumentsAt& at, const std::byte* arguments) {
  if (at.by_pointer) {
    const auto* const given = read_at<const std::byte*>(arguments, 0);
    if (given == nullptr) return;
    arguments = given - 8;
  }
  for (size_t axis = 0; axis < 3; ++axis) {
    launch.group[axis] = read_at<uint32_t>(arguments, at.group + axis * sizeof(uint32_t));
    const uint64_t grid = read_at<uint32_t>(arguments, at.grid + axis * sizeof(uint32_t));
    launch.grid[axis] = at.in_threads ? grid : grid * launch.group[axis];
  }
  launch.shared_dynamic = read_at<uint32_t>(arguments, at.shared);
  launch.stream = stream_number(read_at<uint64_t>(arguments, at.stream));
  launch.shaped = true;
}

// HIP has filled in the arguments.
void on_enter(uint32_t operation, tracer::TracedCall* call) {
  OpenTracedCall* const own = g_traced_calls.get();
  const Function* const function = operation < kOperations ? g_functions[operation] : nullptr;
  if (own == nullptr || !own->open || function == nullptr) return;
  if (function->does.destroys) stream_destroyed(read_at<uint64_t>(call->arguments, 0));
  if (own->launch == nullptr) return;
  LateLaunch& launch = *own->launch;
  if (const tracer::ArgumentsAt* const at = arguments_of(*function)) return read_shape(launch, *at, call->arguments);
  if (!launch.graph) read_copy(launch, function->name, call->arguments);
  const int8_t word = function->does.stream;
  for (const std::string_view name : kStreamElsewhere)
    if (name == function->name) return;
  if (word == -2) return;
  launch.stream =
      stream_number(word < 0 ? 0 : read_at<uint64_t>(call->arguments, size_t{8} * static_cast<size_t>(word)));
}

void write_call(const OpenTracedCall& own, uint64_t end) {
  if (auto* const record = tape::begin<event::ApiRecord>(event::RecordKind::kApi, event::Table::kApi,
                                                         event::api_value(own.function, event::kUntoldResult),
                                                         static_cast<uint8_t>(event::Domain::kHipRuntime))) {
    record->start = own.start;
    record->end = end;
    record->correlation = own.correlation;
    tape::commit();
  }
}

void on_exit(uint32_t operation, tracer::TracedCall*) {
  OpenTracedCall* const own = g_traced_calls.get();
  tape::ThreadState& state = tape::t_state;
  state.inner = 0;
  if (own == nullptr || !own->open) {  // it began before tacho left, or left and came back
    state.open_correlation = 0;
    return;
  }
  own->open = false;
  const uint64_t now = host_ticks();
  state.open_correlation = own->outer;
  const Function& function = *g_functions[operation];
  if (function.does.works && own->recorded && sampler::counts_calls()) sampler::end_call_counts(own->correlation, now);
  if (own->launch != nullptr) {
    if (!own->made_work) end_launch(*own->launch);
    if (own->made_work && counts_as_launch(function.does, function.name)) count_made_launch();
  }
  if (!own->recorded) return;
  g_open_count.fetch_sub(1, std::memory_order_relaxed);
  if (recording_late()) write_call(*own, now);
}

// The calling thread has made a command whose record will come.
void note_made(tracer::TracedWork work) {
  OpenTracedCall* const own = g_traced_calls.get();
  const bool in_call = own != nullptr && own->open && own->launch != nullptr;
  if (work == tracer::TracedWork::kCopy) work_made(true);
  if (in_call && !own->made_work &&
      (own->launch->graph || own->launch->kernel == (work == tracer::TracedWork::kDispatch))) {
    own->made_work = true;
    if (own->launch->kernel) work_made(false);
  }
}

}  // namespace

void learn_operations(tracer::NameOf* name_of) {
  for (uint32_t operation = 0; operation < kOperations; ++operation) {
    const char* const name = name_of(operation);
    g_functions[operation] = nullptr;
    for (const Function& function : kFunctions)
      if (name != nullptr && strcmp(function.name, name) == 0) g_functions[operation] = &function;
  }
}

int begin_call(uint32_t operation, tracer::TracedCall& call) {
  constexpr int kNotWanted = 1;
  const Function* const function = operation < kOperations ? g_functions[operation] : nullptr;
  tape::ThreadState& state = tape::t_state;
  if (function == nullptr || state.hidden != 0) return kNotWanted;
  const HipCall& does = function->does;
  if (does.asks && !tape::configuration().all_api_calls) return kNotWanted;
  OpenTracedCall* const own = g_traced_calls.get();
  if (own == nullptr || own->open) return kNotWanted;  // a part of the call that is open
  const bool launches = counts_as_launch(does, function->name);
  if (launches) before_first();
  const bool recorded = tape::enabled(tape::source_bit::kApi) && state.inner == 0;
  const bool dispatches = tape::enabled(tape::source_bit::kDispatch), copies = tape::enabled(tape::source_bit::kCopy);
  const uint64_t generation = own->generation;
  *own = {};
  own->generation = generation;
  own->open = true;
  own->recorded = recorded;
  own->function = function->number;
  own->correlation = recorded ? tape::next_correlation() : 0;
  own->outer = state.open_correlation;
  call.correlation = 0;
  // Without one its work has no call, no stream and no shape, but is recorded.
  own->launch = does.works ? take_launch() : nullptr;
  if (LateLaunch* const launch = own->launch) {
    launch->correlation = own->correlation;
    launch->operation = operation;
    launch->stream = kNoStream;
    launch->graph = does.graph;
    launch->kernel = launches && !does.graph && does.stream != -2;
    launch->asynchronous = std::string_view(function->name).find("Async") != std::string_view::npos;
    launch->direction = event::CopyDirection::kUnknown;
    launch->dispatches = dispatches;
    launch->copies = copies;
    if (launches) launch->ordinal = g_next_ordinal.fetch_add(1, std::memory_order_relaxed);
    call.correlation = launch->id.load(std::memory_order_relaxed);
  }
  if (recorded) {
    state.open_correlation = own->correlation;
    state.inner = 1;
    g_open_count.fetch_add(1, std::memory_order_relaxed);
    if (does.works) {
      sampler::launch_stack(own->correlation);
      if (sampler::counts_calls()) sampler::begin_call_counts();
    }
  }
  call.time = call.tracers_own = 0;
  call.enter = does.works || does.destroys ? on_enter : nullptr;
  call.exit = on_exit;
  own->start = host_ticks();
  return 0;
}

int wants_work(tracer::TracedWork work) {
  if (work == tracer::TracedWork::kBarrier) return 1;
  // Older versions ask this for each command that a call makes; outside of calls also when they look at what has ended.
  if (!g_announces.load(std::memory_order_relaxed)) note_made(work);
  return 0;
}

void work_will_come(tracer::TracedWork work) {
  g_announces.store(true, std::memory_order_relaxed);
  if (work != tracer::TracedWork::kBarrier) note_made(work);
}

void set_announces(bool announces) {
  g_announces.store(announces);
}

uint64_t open_calls() {
  return g_open_count.load(std::memory_order_relaxed);
}

void forget_calls() {
  g_open_count.store(0);
  g_next_ordinal.store(0);
  g_launch_seen.store(0);
}

}  // namespace tacho::capture::rocm
