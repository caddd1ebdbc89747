// Reading counters of whole GPUs (device_counters.h). Each GPU has its own context and configuration. The library can
// start one, or read it, only while the HSA runtime is up: reading begins with the process's first work on a GPU, and
// ends as exit() begins, before HIP's own end takes the runtime down.
#include "capture/source/rocm/device_counters.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <atomic>
#include <string_view>
#include <type_traits>

#include "base/clock.h"
#include "capture/counter_spool.h"
#include "capture/own_thread.h"
#include "capture/source/rocm/sdk/sdk.h"
#include "tape/writer.h"
#include "vendor/amd/sdk_counting.h"

namespace tacho::capture::rocm {

namespace {

namespace sdk_call = vendor::sdk::signature;

constexpr size_t kMostGpus = 64, kMostCounters = 64, kMostValues = 1 << 16;

struct DeviceFunctions {
  sdk_call::CreateContext* create_context;
  sdk_call::OnContext* start_context;
  sdk_call::CreateBuffer* create_buffer;
  sdk_call::QueryAgents* query_agents;
  sdk_call::AgentCounters* agent_counters;
  sdk_call::CounterInfo* counter_info;
  sdk_call::CreateConfig* create_config;
  sdk_call::DeviceService* device_service;
  sdk_call::SampleDevice* sample;
  sdk_call::RecordCounter* record_counter;
  sdk_call::Timestamp* timestamp;
  sdk_call::StatusText* status_text;
};
struct CountedGpu {
  sdk::Handle id;
  uint64_t handles[kMostCounters];  // by counter; 0 = not on this GPU
  sdk::Handle config;
  sdk::Context context;
  bool started, read, failed;
  sdk::Status refusal;  // of the last attempt to start or read
};

constinit DeviceFunctions g_device{};
constinit char g_counter_names[kMostCounters][64]{};
constinit size_t g_counter_count = 0, g_read_gpu_count = 0;
constinit CountedGpu g_read_gpus[kMostGpus]{};
constinit MappedBytes g_values{};
constinit std::atomic<uint32_t> g_reading{0}, g_readings_end{0};

const char* reason_for(sdk::Status status) {
  const char* const text = g_device.status_text != nullptr ? g_device.status_text(status) : nullptr;
  return text != nullptr ? text : "it gives no reason";
}

void take_names(std::string_view list) {
  while (!list.empty() && g_counter_count < kMostCounters) {
    const size_t comma = list.find(',');
    const std::string_view name = list.substr(0, comma);
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
    char(&to)[64] = g_counter_names[g_counter_count];
    if (name.empty() || name.size() >= sizeof to) continue;
    memcpy(to, name.data(), name.size());
    to[name.size()] = '\0';
    ++g_counter_count;
  }
}

sdk::Status take_counted_gpus(int32_t, const void** agents, size_t count, void*) {
  for (size_t at = 0; at < count && g_read_gpu_count < kMostGpus; ++at) {
    const auto* const agent = static_cast<const sdk::AgentHead*>(agents[at]);
    if (agent->type == static_cast<int32_t>(sdk::agent::kGpu)) g_read_gpus[g_read_gpu_count++].id = agent->id;
  }
  return sdk::kSuccess;
}

sdk::Status take_device_counters(sdk::Handle, sdk::Handle* counters, size_t count, void* data) {
  auto& gpu = *static_cast<CountedGpu*>(data);
  for (size_t at = 0; at < count; ++at) {
    sdk::CounterDescription about{};
    if (g_device.counter_info(counters[at], sdk::kCounterInfoVersion, &about) != sdk::kSuccess || about.name == nullptr)
      continue;
    for (size_t i = 0; i < g_counter_count; ++i)
      if (strcmp(g_counter_names[i], about.name) == 0) gpu.handles[i] = counters[at].handle;
  }
  return sdk::kSuccess;
}

// Drops counters that do not fit, from the end, and names them once.
void configure_gpu(CountedGpu& gpu, bool first) {
  sdk::Handle wanted[kMostCounters];
  size_t indices[kMostCounters], count = 0;
  char line[256];
  for (size_t i = 0; i < g_counter_count; ++i) {
    if (gpu.handles[i] != 0) {
      indices[count] = i;
      wanted[count++] = {gpu.handles[i]};
    } else if (first) {
      snprintf(line, sizeof line, "--device-counters: rocprofiler-sdk has no counter %s for this GPU",
               g_counter_names[i]);
      tape::note(event::NoteSeverity::kWarning, line);
    }
  }
  while (count > 0) {
    const sdk::Status status = g_device.create_config(gpu.id, wanted, count, &gpu.config);
    if (status == sdk::kSuccess) return;
    --count;
    if (first) {
      snprintf(line, sizeof line, "--device-counters: %s is not read: %s", g_counter_names[indices[count]],
               reason_for(status));
      tape::note(event::NoteSeverity::kWarning, line);
    }
  }
}

void choose_config(sdk::Context context, sdk::Handle, sdk::Status (*set)(sdk::Context, sdk::Handle), void* data) {
  set(context, static_cast<CountedGpu*>(data)->config);
}
void ignore_records(sdk::Context, sdk::Buffer, sdk::SdkRecordHeader**, size_t, void*, uint64_t) {}

// One reading of a GPU: the sum of all units for each counter.
void read_gpu(CountedGpu& gpu) {
  auto* const values = reinterpret_cast<sdk::SdkCounterRecord*>(g_values.data);
  size_t count = kMostValues;
  uint64_t before = 0, after = 0;
  g_device.timestamp(&before);
  const sdk::Status status = g_device.sample(gpu.context, {}, 0, values, &count);
  g_device.timestamp(&after);
  if (status != sdk::kSuccess) {
    gpu.refusal = status;
    // Until the HSA runtime is up the library starts nothing, and says so only here.
    if (!gpu.read) return;
    char line[256];
    snprintf(line, sizeof line, "--device-counters: GPU %zu is not read any more: %s",
             static_cast<size_t>(&gpu - g_read_gpus), reason_for(status));
    tape::note(event::NoteSeverity::kWarning, line);
    gpu.failed = true;
    return;
  }
  gpu.read = true;
  double sums[kMostCounters] = {};
  bool there[kMostCounters] = {};
  for (size_t at = 0; at < count && at < kMostValues; ++at) {
    sdk::Handle of{};
    if (g_device.record_counter(values[at].id, &of) != sdk::kSuccess) continue;
    for (size_t i = 0; i < g_counter_count; ++i)
      if (gpu.handles[i] == of.handle) {
        sums[i] += values[at].value;
        there[i] = true;
      }
  }
  describe_agents();
  for (uint32_t i = 0; i < g_counter_count; ++i) {
    if (!there[i]) continue;
    const sdk::DeviceReading reading{sizeof reading, before + (after - before) / 2, gpu.id.handle, i, 0, sums[i]};
    put_piece(sdk::category::kCounters, sdk::kDeviceReading, &reading, sizeof reading);
  }
}

void* read_device_counters(void*) {
  pthread_setname_np(pthread_self(), "tacho-counters");
  tape::t_state.hidden = 1;
  const uint32_t period = tape::configuration().device_counter_ms;
  const timespec wait{period / 1000, static_cast<long>(period % 1000) * 1'000'000};
  while (g_readings_end.load(std::memory_order_relaxed) == 0) {
    nanosleep(&wait, nullptr);
    g_reading.store(1);
    if (g_readings_end.load() == 0 && exit_is_watched() && sdk_active() && tape::enabled(tape::source_bit::kCounter))
      for (size_t at = 0; at < g_read_gpu_count; ++at) {
        CountedGpu& gpu = g_read_gpus[at];
        if (gpu.context == 0 || gpu.failed) continue;
        if (!gpu.started) {
          gpu.refusal = g_device.start_context(gpu.context);
          gpu.started = gpu.refusal == sdk::kSuccess;
        }
        if (gpu.started) read_gpu(gpu);
      }
    g_reading.store(0);
  }
  return nullptr;
}

bool bind_device_functions(void* library) {
  bool all = true;
  const auto find = [&](auto& to, const char* name) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, name));
    all = all && to != nullptr;
  };
  find(g_device.create_context, "rocprofiler_create_context");
  find(g_device.start_context, "rocprofiler_start_context");
  find(g_device.create_buffer, "rocprofiler_create_buffer");
  find(g_device.query_agents, "rocprofiler_query_available_agents");
  find(g_device.agent_counters, "rocprofiler_iterate_agent_supported_counters");
  find(g_device.counter_info, "rocprofiler_query_counter_info");
  find(g_device.create_config, "rocprofiler_create_counter_config");
  find(g_device.device_service, "rocprofiler_configure_device_counting_service");
  find(g_device.sample, "rocprofiler_sample_device_counting_service");
  find(g_device.record_counter, "rocprofiler_query_record_counter_id");
  find(g_device.timestamp, "rocprofiler_get_timestamp");
  find(g_device.status_text, "rocprofiler_get_status_string");
  return all;
}

}  // namespace

void set_up_device_counters(uint32_t version, void* library) {
  const std::string_view wanted = tape::configuration().device_counters;
  if (wanted.empty()) return;
  if (version < sdk::kFirstWide || !bind_device_functions(library)) {
    tape::note(event::NoteSeverity::kWarning,
               "--device-counters needs the rocprofiler-sdk of ROCm 7 or later: no counters were read");
    return;
  }
  take_names(wanted);
  if (!g_values.reserve(kMostValues * sizeof(sdk::SdkCounterRecord))) return;
  g_device.query_agents(sdk::kAgentVersion, take_counted_gpus, sdk::kAgentBytes, nullptr);
  size_t ready = 0;
  for (size_t at = 0; at < g_read_gpu_count; ++at) {
    CountedGpu& gpu = g_read_gpus[at];
    g_device.agent_counters(gpu.id, take_device_counters, &gpu);
    configure_gpu(gpu, at == 0);
    if (gpu.config.handle == 0) continue;
    sdk::Buffer buffer = 0;
    sdk::Context context = 0;
    sdk::Status status = g_device.create_context(&context);
    if (status == sdk::kSuccess)
      status =
          g_device.create_buffer(context, 1 << 16, 1 << 15, sdk::kPolicyLossless, ignore_records, nullptr, &buffer);
    if (status == sdk::kSuccess) status = g_device.device_service(context, buffer, gpu.id, choose_config, &gpu);
    if (status == sdk::kSuccess) {
      gpu.context = context;
      ++ready;
      continue;
    }
    char line[256];
    snprintf(line, sizeof line, "--device-counters: a GPU's counters cannot be read: %s", reason_for(status));
    tape::note(event::NoteSeverity::kWarning, line);
  }
  for (uint32_t i = 0; i < g_counter_count; ++i)
    tape::define_name(kSdkBlocks, event::NameSpace::kOperation,
                      sdk::operation_number(sdk::kDeviceReadings, static_cast<int32_t>(i)), g_counter_names[i]);
  if (ready != 0 && !start_own_thread(read_device_counters))
    tape::note(event::NoteSeverity::kWarning, "no thread could be started to read --device-counters");
}

void end_device_counters() {
  if (g_read_gpu_count == 0 || g_readings_end.exchange(1) != 0) return;
  constexpr int64_t kPatience = 500'000'000;
  const int64_t begin = raw_now();
  while (g_reading.load() != 0 && raw_now() - begin < kPatience) {
    const timespec moment{0, 100'000};
    nanosleep(&moment, nullptr);
  }
  for (size_t at = 0; at < g_read_gpu_count; ++at) {
    const CountedGpu& gpu = g_read_gpus[at];
    if (gpu.context == 0 || gpu.read || gpu.refusal == sdk::kSuccess) continue;
    char line[256];
    snprintf(line, sizeof line, "--device-counters: the counters of GPU %zu were not read: %s", at,
             reason_for(gpu.refusal));
    tape::note(event::NoteSeverity::kWarning, line);
  }
}

}  // namespace tacho::capture::rocm
