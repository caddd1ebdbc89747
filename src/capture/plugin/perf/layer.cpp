// An OpenCL layer that reads perf_event counters around every kernel: the queue is emptied, counters of all threads of
// the process start, the kernel runs to its end, counters stop. One record per dispatch goes to the spool (spool.h).
//
// Config lines: pass=EVENT,EVENT,... (indices into kPerfEvents) once per pass; policy=N to read pass N always,
// policy=kernel or policy=launch to take the next pass at each dispatch of the same kernel, or kernel and shape.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_layer.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "event/spool/launch_filter.h"
#include "event/spool/spool_layout.h"
#include "vendor/cpu/perf_events.h"

namespace tacho::plugin {
namespace {

cl_icd_dispatch g_next, g_table;

int64_t raw_now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

struct State {
  std::mutex lock;  // kernels are measured one at a time
  std::string folder;
  spool::SpoolState* shared = nullptr;
  std::vector<std::vector<unsigned>> passes;
  std::string policy = "0";
  std::string config;
  spool::LaunchFilter filter;
  std::map<std::string, uint64_t> turns;  // of kernels, where passes alternate
  int records = -1;
  pid_t pid = 0;

  void setting(const std::string& line) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos) return;
    const std::string key = line.substr(0, equals), value = line.substr(equals + 1);
    char* end = nullptr;
    if (key == "policy") policy = value;
    if (key == "pass") {
      std::vector<unsigned>& events = passes.emplace_back();
      for (const char* at = value.c_str(); *at != '\0';) {
        events.push_back(static_cast<unsigned>(strtoul(at, &end, 10)));
        at = *end == ',' ? end + 1 : end;
        if (end == at && *at != '\0') break;
      }
    }
  }

  bool load() {
    const char* const name = getenv(spool::kSpoolVariable);
    if (name == nullptr || *name == '\0') return false;
    folder = name;
    const int file = open((folder + "/state").c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return false;
    void* const map = mmap(nullptr, sizeof(spool::SpoolState), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (map == MAP_FAILED) return false;
    auto* const made = static_cast<spool::SpoolState*>(map);
    if (made->layout.load(std::memory_order_relaxed) != spool::kSpoolLayout) return false;
    if (FILE* const file = fopen((folder + "/config").c_str(), "re")) {
      char line[4096];
      while (fgets(line, sizeof line, file) != nullptr) config += line;
      fclose(file);
    }
    filter = spool::LaunchFilter(config);
    for (size_t at = 0; at < config.size();) {
      const std::string line = config.substr(at, config.find('\n', at) - at);
      setting(line);
      at += line.size() + 1;
    }
    shared = made;
    shared->attached.fetch_add(1, std::memory_order_relaxed);
    return !passes.empty();
  }
};

State& state() {
  static State* const all = new State;
  return *all;
}

// Counters of all threads that the process has now, and of those they start meanwhile.
class Counters {
 public:
  explicit Counters(const std::vector<unsigned>& events) : events_(events) {
    DIR* const tasks = opendir("/proc/self/task");
    if (tasks == nullptr) return;
    const auto own = static_cast<int>(syscall(SYS_gettid));
    while (const dirent* const entry = readdir(tasks)) {
      const int tid = atoi(entry->d_name);
      if (tid <= 0) continue;
      ++threads_;
      for (size_t i = 0; i < events_.size(); ++i) {
        if (events_[i] >= vendor::kPerfEventCount) continue;
        perf_event_attr attributes{};
        attributes.size = sizeof attributes;
        attributes.type = vendor::kPerfEvents[events_[i]].type;
        attributes.config = vendor::kPerfEvents[events_[i]].config;
        attributes.disabled = 1;
        attributes.inherit = 1;
        attributes.exclude_hv = 1;
        attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
        long file = syscall(SYS_perf_event_open, &attributes, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (file < 0) {
          attributes.exclude_kernel = 1;
          file = syscall(SYS_perf_event_open, &attributes, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
        }
        if (file >= 0) files_.push_back({static_cast<int>(file), i, tid == own});
      }
    }
    closedir(tasks);
    // Switching the others on and off takes this thread's time, which is not the kernel's: its own clock runs shortest.
    const auto late = [&](const File& each) {
      return !each.own ? 0 : events_[each.event] != vendor::kTaskClockIndex ? 1 : 2;
    };
    std::stable_sort(files_.begin(), files_.end(), [&](const File& a, const File& b) { return late(a) < late(b); });
  }
  ~Counters() {
    for (const File& each : files_) close(each.file);
  }
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  void start() {
    for (const File& each : files_) ioctl(each.file, PERF_EVENT_IOC_ENABLE, 0);
    begin_ = raw_now();
  }
  /// Values in the order of the events; NaN if no thread could be counted.
  std::vector<double> stop() {
    const int64_t end = raw_now();
    for (auto each = files_.rbegin(); each != files_.rend(); ++each) ioctl(each->file, PERF_EVENT_IOC_DISABLE, 0);
    std::vector<double> values(events_.size(), __builtin_nan(""));
    for (const auto& [file, event, own] : files_) {
      uint64_t read_back[3] = {};
      if (read(file, read_back, sizeof read_back) != static_cast<ssize_t>(sizeof read_back)) continue;
      double value = static_cast<double>(read_back[0]);
      // The kernel multiplexed the counters: scale the count to the whole time.
      if (read_back[2] > 0 && read_back[2] < read_back[1])
        value *= static_cast<double>(read_back[1]) / static_cast<double>(read_back[2]);
      values[event] = (values[event] == values[event] ? values[event] : 0) + value;
    }
    for (size_t i = 0; i < events_.size(); ++i) {
      if (events_[i] == vendor::kPerfWallIndex) values[i] = static_cast<double>(end - begin_);
      if (events_[i] == vendor::kPerfThreadsIndex) values[i] = threads_;
    }
    return values;
  }

 private:
  const std::vector<unsigned>& events_;
  struct File {
    int file;
    size_t event;  // index into events_
    bool own;      // of the thread that counts
  };
  std::vector<File> files_;
  int threads_ = 0;
  int64_t begin_ = 0;
};

std::string kernel_name(cl_kernel kernel) {
  size_t size = 0;
  if (g_next.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, 0, nullptr, &size) != CL_SUCCESS || size == 0 ||
      size > 1 << 20)
    return {};
  std::string name(size, '\0');
  g_next.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, size, name.data(), nullptr);
  name.resize(strlen(name.c_str()));
  return name;
}

void append(State& s, spool::SpoolRecord head, const std::string& name, const std::vector<double>& values) {
  head.magic = spool::kSpoolMagic;
  head.pid = static_cast<uint32_t>(getpid());
  head.tid = static_cast<uint32_t>(syscall(SYS_gettid));
  head.name_bytes = static_cast<uint32_t>(name.size());
  head.values = static_cast<uint32_t>(values.size());
  const size_t name_space = (name.size() + 7) / 8 * 8;
  head.bytes = static_cast<uint32_t>(sizeof head + name_space + values.size() * sizeof(double));
  std::string record(head.bytes, '\0');
  memcpy(record.data(), &head, sizeof head);
  memcpy(record.data() + sizeof head, name.data(), name.size());
  if (!values.empty()) memcpy(record.data() + sizeof head + name_space, values.data(), values.size() * sizeof(double));
  if (s.records < 0 || s.pid != getpid()) {
    if (s.records >= 0) close(s.records);
    s.pid = getpid();
    s.records = open((s.folder + "/" + std::to_string(s.pid) + ".records").c_str(),
                     O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }
  if (s.records < 0 || write(s.records, record.data(), record.size()) != static_cast<ssize_t>(record.size()))
    s.shared->failures.fetch_add(1, std::memory_order_relaxed);
}

size_t pass_of(State& s, const std::string& name, const spool::SpoolRecord& head) {
  if (s.policy == "kernel" || s.policy == "launch") {
    std::string key = name;
    if (s.policy == "launch")
      for (const uint64_t size : {head.grid[0], head.grid[1], head.grid[2], head.workgroup[0], head.workgroup[1],
                                  head.workgroup[2], head.lds})
        key += " " + std::to_string(size);
    return s.turns[key]++ % s.passes.size();
  }
  const auto pass = static_cast<size_t>(strtoul(s.policy.c_str(), nullptr, 10));
  return pass < s.passes.size() ? pass : 0;
}

cl_int CL_API_CALL enqueue(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset,
                           const size_t* global, const size_t* local, cl_uint waits, const cl_event* wait_list,
                           cl_event* event) {
  State& s = state();
  if (s.shared == nullptr || global == nullptr || dimensions < 1 || dimensions > 3)
    return g_next.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits, wait_list, event);
  const std::lock_guard guard(s.lock);
  spool::SpoolRecord head{};
  for (unsigned i = 0; i < 3; ++i) {
    head.grid[i] = i < dimensions ? global[i] : 1;
    head.workgroup[i] = local == nullptr ? 0 : i < dimensions ? local[i] : 1;
  }
  cl_device_id device = nullptr;
  cl_ulong bytes = 0;
  if (g_next.clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, nullptr) == CL_SUCCESS &&
      g_next.clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof bytes, &bytes, nullptr) ==
          CL_SUCCESS)
    head.lds = bytes;
  head.index = s.shared->dispatches.fetch_add(1, std::memory_order_relaxed);
  head.queue = reinterpret_cast<uintptr_t>(queue);
  const std::string name = kernel_name(kernel);
  if (!s.filter.kernel(name) || !s.filter.launch(head.index)) {
    append(s, head, name, {});
    return g_next.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits, wait_list, event);
  }
  head.selected = 1;
  head.pass = pass_of(s, name, head);
  g_next.clFinish(queue);
  Counters counters(s.passes[head.pass]);
  head.start = raw_now();
  counters.start();
  const cl_int result =
      g_next.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits, wait_list, event);
  if (result == CL_SUCCESS) g_next.clFinish(queue);
  const std::vector<double> values = counters.stop();
  head.end = raw_now();
  if (result == CL_SUCCESS) append(s, head, name, values);
  s.shared->dispatches_done.fetch_add(1, std::memory_order_relaxed);
  return result;
}

cl_int CL_API_CALL enqueue_task(cl_command_queue queue, cl_kernel kernel, cl_uint waits, const cl_event* wait_list,
                                cl_event* event) {
  const size_t one = 1;
  return enqueue(queue, kernel, 1, nullptr, &one, &one, waits, wait_list, event);
}

}  // namespace
}  // namespace tacho::plugin

extern "C" __attribute__((visibility("default"))) cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size,
                                                                                    void* value, size_t* size_ret) {
  if (name != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
  if (size_ret != nullptr) *size_ret = sizeof(cl_layer_api_version);
  if (value != nullptr) {
    if (size < sizeof(cl_layer_api_version)) return CL_INVALID_VALUE;
    const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    memcpy(value, &version, sizeof version);
  }
  return CL_SUCCESS;
}

extern "C" __attribute__((visibility("default"))) cl_int CL_API_CALL clInitLayer(cl_uint entries,
                                                                                 const cl_icd_dispatch* target,
                                                                                 cl_uint* entries_ret,
                                                                                 const cl_icd_dispatch** table) {
  using namespace tacho::plugin;
  constexpr cl_uint kEntries = sizeof(cl_icd_dispatch) / sizeof(void*);
  if (target == nullptr || entries_ret == nullptr || table == nullptr) return CL_INVALID_VALUE;
  memcpy(&g_next, target, sizeof(void*) * (entries < kEntries ? entries : kEntries));
  g_table = g_next;
  if (state().load()) {
    g_table.clEnqueueNDRangeKernel = enqueue;
    g_table.clEnqueueTask = enqueue_task;
  }
  *table = &g_table;
  *entries_ret = kEntries;
  return CL_SUCCESS;
}
