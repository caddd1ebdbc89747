// The categories with which users switch tables and telemetry on and off (sys.h).
#include "cli/sys/sys.h"
#include "event/schema.h"

namespace tacho::cli::sys {

using event::Table;

namespace {

constexpr uint64_t bit(Table table) {
  return 1ull << static_cast<unsigned>(table);
}

constexpr Category kCategories[] = {
    {"host", "functions of the host", bit(Table::kMarker)},
    {"user", "regions that the program marks", bit(Table::kMarker)},
    {"python", "Python regions", bit(Table::kMarker)},
    {"rocm", "everything of GPU runtimes",
     bit(Table::kApi) | bit(Table::kDispatch) | bit(Table::kCopy) | bit(Table::kFill) | bit(Table::kAllocation) |
         bit(Table::kSync)},
    {"rocm_hip_api", "API calls of GPU runtimes", bit(Table::kApi) | bit(Table::kSync)},
    {"rocm_hsa_api", "API calls of GPU runtimes", bit(Table::kApi) | bit(Table::kSync)},
    {"rocm_kernel_dispatch", "kernels", bit(Table::kDispatch)},
    {"rocm_hip_stream", "kernels and copies by stream", bit(Table::kDispatch) | bit(Table::kCopy) | bit(Table::kFill)},
    {"rocm_memory_copy", "copies and fills", bit(Table::kCopy) | bit(Table::kFill)},
    {"rocm_scratch_memory", "device memory", bit(Table::kAllocation)},
    {"rocm_marker_api", "ROCTx, NVTX and tacho.h", bit(Table::kMarker)},
    {"rocm_counter_collection", "hardware counters of kernels", bit(Table::kCounterValue)},
    {"sampling", "call stacks", bit(Table::kSample)},
    {"timer_sampling", "call stacks by a timer", bit(Table::kSample)},
    {"process_sampling", "all telemetry of processes and cores", 0},
    {"amd_smi", "all telemetry of GPUs", 0},
    {"cpu_frequency", "clock of each core", 0},
    {"cpu_utilization", "use of each core", 0},
    {"memory", "memory of the machine", 0},
    {"process_cpu_usage", "CPU use of the process", 0},
    {"process_user_cpu_time", "CPU time in user mode", 0},
    {"process_kernel_cpu_time", "CPU time in the kernel", 0},
    {"process_memory", "resident memory", 0},
    {"process_memory_hwm", "most resident memory", 0},
    {"process_virtual_memory", "virtual memory", 0},
    {"process_page_fault", "page faults", 0},
    {"process_context_switch", "context switches", 0},
    {"process_threads", "threads", 0},
    {"process_io", "bytes read and written", 0},
    {"device_busy_gfx", "GPU: compute busy", 0},
    {"device_busy_umc", "GPU: memory busy", 0},
    {"device_busy_mm", "GPU: media engines busy", 0},
    {"device_temp", "GPU temperature", 0},
    {"device_power", "GPU power and energy", 0},
    {"device_memory_usage", "GPU memory in use", 0},
    {"device_clock", "GPU clocks", 0},
    {"device_pcie", "PCIe traffic", 0},
    {"device_link", "NVLink traffic", 0},
};

}  // namespace

std::span<const Category> categories() {
  return kCategories;
}

}  // namespace tacho::cli::sys
