// HIP's calls as they begin and end, on the SDK's road (sdk.h), where somebody wants to know of them at that moment:
// samples say which call was open, calls that launch work leave their Python stack or have their CPU counters read.
// Their records come through buffers as always, under the same correlation.
#include <string_view>

#include "base/clock.h"
#include "capture/source/rocm/sdk/sdk.h"
#include "capture/source/sampler/counts.h"
#include "capture/source/sampler/sampler.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {
namespace {

struct Watched {
  int32_t operations[1024];
  size_t count;
  const sdk::Functions* functions;
};
constinit Watched g_watched{};
constinit bool g_causes_work[1024] = {}, g_allocates[1024] = {};

bool causes_device_work(std::string_view function) {
  for (const std::string_view word : {"Launch", "hipMemcpy", "hipMemset"})
    if (function.find(word) != std::string_view::npos) return function != "hipLaunchHostFunc";
  return false;
}

// "hipMalloc", "hipExtMallocWithFlags", "hipHostAlloc", "hipMemAllocPitch"
bool allocates_memory(std::string_view function) {
  for (const std::string_view word : {"Malloc", "HostAlloc", "MemAlloc", "MemCreate"})
    if (function.find(word) != std::string_view::npos) return true;
  return false;
}

int see_call(int32_t kind, int32_t operation, void*) {
  const char* name = nullptr;
  uint64_t length = 0;
  constexpr auto kMost = static_cast<int32_t>(sizeof g_causes_work);
  if (operation < 0 || operation >= kMost || g_watched.count == kMost ||
      g_watched.functions->buffer_operation_name(kind, operation, &name, &length) != sdk::kSuccess || name == nullptr ||
      sdk::only_asks(name))
    return 0;
  g_watched.operations[g_watched.count++] = operation;
  g_causes_work[operation] = causes_device_work(name);
  g_allocates[operation] = allocates_memory(name);
  return 0;
}

template <typename Record>
void on_call(Record record, uint64_t* before, void*) {
  tape::ThreadState& state = tape::t_state;
  if (!sdk_active() || record.operation < 0 || record.operation >= static_cast<int32_t>(sizeof g_causes_work)) return;
  const bool works = g_causes_work[record.operation] && tape::enabled(tape::source_bit::kApi);
  if (record.phase == sdk::kPhaseEnter) {
    *before = state.open_correlation;
    state.open_correlation = record.correlation;
    if (works) sampler::launch_stack(record.correlation);
    if (g_allocates[record.operation] && tape::configuration().memory && tape::enabled(tape::source_bit::kAllocation))
      sampler::allocation_stack(record.correlation, host_ticks(), false);
    if (works && sampler::counts_calls()) sampler::begin_call_counts();
  } else if (record.phase == sdk::kPhaseExit) {
    if (works && sampler::counts_calls()) sampler::end_call_counts(record.correlation, host_ticks());
    state.open_correlation = *before;
  }
}

}  // namespace

void watch_calls(const Services& services) {
  const bool samples = tape::configuration().sampler != event::Sampler::kOff || sampler::counts_calls() ||
                       sampler::g_launch_stacks.load(std::memory_order_relaxed);
  if (!samples || services.hip_records < 0 || services.hip_callback < 0) return;
  g_watched.functions = &services.functions;
  services.functions.buffer_operations(services.hip_records, see_call, nullptr);
  if (g_watched.count == 0) return;  // none would mean all
  using Any = sdk::signature::AnyCallback;
  services.functions.trace_callback(services.context, services.hip_callback, g_watched.operations, g_watched.count,
                                    services.version >= sdk::kFirstWide
                                        ? reinterpret_cast<Any*>(&on_call<sdk::CallbackRecordWide>)
                                        : reinterpret_cast<Any*>(&on_call<sdk::CallbackRecordNarrow>),
                                    nullptr);
}

}  // namespace tacho::capture::rocm
