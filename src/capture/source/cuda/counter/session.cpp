// CUPTI's objects, images and records (session.h).
#include "capture/source/cuda/counter/session.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <type_traits>

#include "capture/source/cuda/counter/replay.h"

namespace tacho::capture::counter {

constinit CounterSession g_sessions[kMaxSessions] = {};

namespace {

constexpr size_t kImageBudget = 48u << 20;

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
  int (*kernel_attribute)(int*, int, void*, int);  // CUDA 12
  int (*is_capturing)(void*, int*);
};
constinit Functions g_call{};
constinit size_t g_ranges = 0, g_most_ranges = 0;
constinit uint32_t g_images[256] = {};  // by GPU: runs of application replay may take GPUs in another order
using Finish = void (*)();
constinit Finish g_finish = nullptr;

template <typename Parameters>
bool call(int (*function)(Parameters*), Parameters& parameters, const char* what) {
  parameters.size = abi::kSizeOf<Parameters>;
  const int result = function(&parameters);
  if (result != 0) give_up(what, result);
  return result == 0;
}

enum class Time { kEnable, kStart, kDecode };
void finish_at_exit(Time what) {
  static constinit uint32_t s_times[3] = {};
  if (s_times[static_cast<int>(what)]++ < 3) atexit(g_finish);
}

uint32_t current_device() {
  int device = 0;
  return g_call.context_device(&device) == 0 ? static_cast<uint32_t>(device) : 0;
}

bool initialize_once() {  // not within cuInit: CUPTI's profiler wants the driver ready
  static constinit bool s_initialized = false;
  abi::Initialize initialize{};
  if (!s_initialized) s_initialized = call(g_call.initialize, initialize, "start its profiler");
  return s_initialized;
}

// Asked of every new object: before, it cannot prepare an image (CUPTI 13.0 crashes).
size_t image_bytes(const CounterSession& session, size_t ranges) {
  abi::ImageSize size{};
  size.profiler = session.profiler;
  size.metrics = g_collection.metrics;
  size.metric_count = g_collection.metric_count;
  size.max_ranges = ranges;
  size.max_nodes = static_cast<uint32_t>(ranges);
  return call(g_call.image_size, size, "size its counter data") ? size.bytes : 0;
}

bool size_image(CounterSession& session) {
  if (g_ranges == 0) {
    const size_t one = image_bytes(session, 1);
    if (one == 0) return false;
    const size_t most = g_most_ranges != 0 ? g_most_ranges : g_collection.passes == 1 ? kMaxRangesOnePass : kMaxRanges;
    g_ranges = kImageBudget / one;
    g_ranges = g_ranges < 1 ? 1 : g_ranges > most ? most : g_ranges;
  }
  const size_t bytes = image_bytes(session, g_ranges);
  if (bytes == 0) return false;
  if (!session.image.reserve(bytes)) {
    give_up("get memory for its counter data", 0);
    return false;
  }
  session.image.count = bytes;
  return true;
}

void image_path(char (&path)[1152], const CounterSession& session, const char* suffix) {
  snprintf(path, sizeof path, "%s/%u.%u.%u.image%s", g_collection.folder, g_collection.process, session.number,
           session.device, suffix);
}

}  // namespace

Found find_session_functions() {
  const auto in_driver = [](auto& to, const char* symbol) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(cuda::find_in_driver(symbol));
    return to != nullptr;
  };
  void* const library = dlopen(g_collection.cupti.path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  const auto find = [&](auto& to, const char* symbol) {
    to = library == nullptr ? nullptr : reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, symbol));
    return to != nullptr;
  };
  in_driver(g_call.function_attribute, "cuFuncGetAttribute");
  in_driver(g_call.kernel_attribute, "cuKernelGetAttribute");
  in_driver(g_call.is_capturing, "cuStreamIsCapturing");
  if (!find(g_call.initialize, "cuptiProfilerInitialize") || !find(g_call.enable, "cuptiRangeProfilerEnable") ||
      !find(g_call.disable, "cuptiRangeProfilerDisable") || !find(g_call.set_config, "cuptiRangeProfilerSetConfig") ||
      !find(g_call.start, "cuptiRangeProfilerStart") || !find(g_call.stop, "cuptiRangeProfilerStop") ||
      !find(g_call.push, "cuptiRangeProfilerPushRange") || !find(g_call.pop, "cuptiRangeProfilerPopRange") ||
      !find(g_call.decode, "cuptiRangeProfilerDecodeData") ||
      !find(g_call.image_size, "cuptiRangeProfilerGetCounterDataSize") ||
      !find(g_call.data_info, "cuptiRangeProfilerGetCounterDataInfo") ||
      !find(g_call.image_initialize, "cuptiRangeProfilerCounterDataImageInitialize"))
    return Found::kNoRangeProfiler;
  return in_driver(g_call.context_current, "cuCtxGetCurrent") && in_driver(g_call.context_device, "cuCtxGetDevice")
             ? Found::kAll
             : Found::kNoDriver;
}

void set_exit_function(void (*finish)()) {
  g_finish = finish;
  atexit(finish);
}

bool current_context(void** context) {
  return g_call.context_current(context) == 0 && *context != nullptr;
}

uint32_t function_attribute(void* function, int attribute) {
  int value = 0, device = 0;
  if (function == nullptr) return 0;
  if (g_call.function_attribute != nullptr && g_call.function_attribute(&value, attribute, function) == 0)
    return static_cast<uint32_t>(value);
  // The runtime of CUDA 12 and later launches kernels of libraries (CUkernel), which belong to no context.
  value = 0;
  if (g_call.kernel_attribute != nullptr && g_call.context_device != nullptr && g_call.context_device(&device) == 0 &&
      g_call.kernel_attribute(&value, attribute, function, device) == 0)
    return static_cast<uint32_t>(value);
  return 0;
}

bool is_capturing(void* stream) {
  int status = 0;
  return g_call.is_capturing != nullptr && g_call.is_capturing(stream, &status) == 0 && status != 0;
}

CounterSession* known_session(void* context) {
  for (CounterSession& each : g_sessions)
    if (each.context != nullptr && each.context == context) return &each;
  return nullptr;
}

CounterSession* rival_of(void* context) {
  bool others = false;
  for (const CounterSession& each : g_sessions) others = others || (each.context != nullptr && each.context != context);
  if (!others) return nullptr;
  const uint32_t device = current_device();
  for (CounterSession& each : g_sessions)
    if (each.context != nullptr && each.context != context && each.device == device) return &each;
  return nullptr;
}

CounterSession* session_of(void* context, int range) {
  CounterSession* session = known_session(context);
  if (session != nullptr && session->range == range) return session;
  if (!initialize_once()) return nullptr;
  if (session != nullptr) disable(*session);
  for (CounterSession& each : g_sessions)
    if (session == nullptr && each.context == nullptr) session = &each;
  if (session == nullptr) {
    give_up("profile in more than 32 contexts", 0);
    return nullptr;
  }
  abi::Enable enable{};
  enable.context = context;
  if (!call(g_call.enable, enable, "profile in this context")) return nullptr;
  session->context = context;
  session->profiler = enable.profiler;
  session->range = range;
  session->device = current_device();
  session->carried = 0;
  session->used = 0;
  finish_at_exit(Time::kEnable);
  return size_image(*session) ? session : nullptr;
}

void disable(CounterSession& session, bool context_goes) {
  abi::Disable parameters{};
  parameters.profiler = session.profiler;
  parameters.size = abi::kSizeOf<abi::Disable>;
  if (const int result = g_call.disable(&parameters); result != 0 && !context_goes) give_up("leave a context", result);
  session.context = nullptr;  // memory stays for the place's next context
  session.profiler = nullptr;
  session.running = false;
}

size_t ranges() {
  return g_ranges;
}

void choose_ranges_afresh(size_t most) {
  g_ranges = 0;
  g_most_ranges = most;
}

bool fresh_image(CounterSession& session) {
  session.number = g_images[session.device % 256]++;
  if (g_collection.mode == Mode::kApplication && g_collection.pass != 0) {
    char path[1152];
    image_path(path, session, "");
    const size_t bytes = session.image.count;
    if (read_file(path, session.image) && session.image.count == bytes) return true;
    session.image.count = bytes;  // this run launches more than the previous one: tacho reports it
  }
  abi::ImageInitialize initialize{};
  initialize.profiler = session.profiler;
  initialize.image = session.image.data;
  initialize.bytes = session.image.count;
  return call(g_call.image_initialize, initialize, "prepare its counter data");
}

bool configure(CounterSession& session, int replay, size_t pass) {
  abi::SetConfig config{};
  config.profiler = session.profiler;
  config.config = g_collection.config.data;
  config.config_bytes = g_collection.config.count;
  config.image = session.image.data;
  config.image_bytes = session.image.count;
  config.range = session.range;
  config.replay = replay;
  config.max_ranges = g_ranges;
  config.nesting_levels = config.least_level = config.target_level = 1;
  config.pass = pass;
  return call(g_call.set_config, config, "set its counters");
}

bool start(CounterSession& session) {
  abi::Disable parameters{};
  parameters.profiler = session.profiler;
  session.running = call(g_call.start, parameters, "start counting");
  session.used = 0;
  session.carried = 0;
  finish_at_exit(Time::kStart);
  return session.running;
}

bool stop(CounterSession& session) {
  session.running = false;
  abi::Stop parameters{};
  parameters.profiler = session.profiler;
  return call(g_call.stop, parameters, "stop counting");
}

bool push(CounterSession& session) {
  if (!replay::settle(session.context)) return false;
  abi::PushRange parameters{};
  parameters.profiler = session.profiler;
  parameters.name = "graph";
  return call(g_call.push, parameters, "begin a range");
}

bool pop(CounterSession& session) {
  const bool settled = replay::settle(session.context);
  abi::Disable parameters{};
  parameters.profiler = session.profiler;
  return call(g_call.pop, parameters, "end a range") && settled;
}

bool decode(CounterSession& session) {
  abi::DecodeData parameters{};
  parameters.profiler = session.profiler;
  if (!call(g_call.decode, parameters, "read its counters")) return false;
  if (parameters.dropped != 0) {
    char line[128];
    snprintf(line, sizeof line, "CUPTI dropped the counters of %zu launches", parameters.dropped);
    cuda::say_warning(line);
  }
  finish_at_exit(Time::kDecode);
  return true;
}

size_t ranges_in(const CounterSession& session) {
  abi::DataInfo info{};
  info.image = session.image.data;
  info.bytes = session.image.count;
  return call(g_call.data_info, info, "look into its counter data") ? info.ranges : SIZE_MAX;
}

size_t add_record(MappedBytes& records, const spool::CounterRecord& record, const char* name) {
  const size_t name_bytes = name == nullptr ? 0 : strlen(name), padded = (name_bytes + 7) / 8 * 8;
  const size_t bytes = sizeof record + padded;
  if (!records.reserve(records.count + bytes +
                       (records.count + bytes > records.capacity ? records.capacity + 65536 : 0)))
    return SIZE_MAX;
  const size_t offset = records.count;
  spool::CounterRecord* const at = record_at(records, offset);
  *at = record;
  at->magic = spool::kCounterRecordMagic;
  at->bytes = static_cast<uint32_t>(bytes);
  at->name_bytes = static_cast<uint32_t>(name_bytes);
  memset(at + 1, 0, padded);
  if (name_bytes != 0) memcpy(at + 1, name, name_bytes);
  records.count += bytes;
  return offset;
}

void write_records(MappedBytes& records) {
  if (records.count == 0) return;
  char path[1152];
  snprintf(path, sizeof path, "%s/%u.records", g_collection.folder, g_collection.process);
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || !write_all(file, records.data, records.count)) g_collection.state->failures.fetch_add(1);
  if (file >= 0) close(file);
  records.count = 0;
}

void write_image(CounterSession& session) {
  char part[1152], whole[1152];
  image_path(part, session, ".part");
  image_path(whole, session, "");
  const int file = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool written = file >= 0 && write_all(file, session.image.data, session.image.count);
  if (file >= 0) close(file);
  if (!written || rename(part, whole) != 0) g_collection.state->failures.fetch_add(1);
  write_records(session.records);
}

}  // namespace tacho::capture::counter
