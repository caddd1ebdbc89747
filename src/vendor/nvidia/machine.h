// NVIDIA on this machine: devices, driver, permission to profile, the CUPTI in use, and the reason why a CUDA program
// finds no GPU.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::vendor {

struct NvidiaDevice {
  std::string name, uuid;
  std::string pci;  // "0000:1b:00.0"
  int multiprocessors = 0;
  int capability_major = 0, capability_minor = 0;
  uint64_t memory_bytes = 0;
  int warp_size = 0, sm_clock_khz = 0, memory_clock_khz = 0, memory_bus_bits = 0, l2_bytes = 0;
  int threads_per_sm = 0, blocks_per_sm = 0, registers_per_sm = 0, shared_per_sm = 0, shared_reserved = 0;
};

struct NvidiaStatus {
  bool driver_library = false;  // libcuda.so.1 can be loaded
  std::string driver;           // version of the kernel module, empty = unknown
  int cuda_version = 0;         // highest CUDA version of the driver, 13000 = 13.0
  std::vector<NvidiaDevice> devices;
  bool counters_refused = false;  // the driver lets only administrators read hardware counters, and this is none
  std::string cupti;              // file, empty = none found
  uint32_t cupti_version = 0;     // cuptiGetVersion()
  std::string problem;            // one sentence, empty = CUDA programs can be traced here
};

/// Looks at the machine and initialises the CUDA driver in this process (do not fork afterwards).
NvidiaStatus inspect_nvidia();

/// Whether the driver will refuse hardware counters to a process. `params`: text of /proc/driver/nvidia/params, where
/// RmProfilingAdminOnly shows the setting of NVreg_RestrictProfilingToAdminUsers; `status`: of /proc/<pid>/status,
/// where CapEff has the capabilities. False also if the texts lack them: then the driver refuses when collecting
/// begins.
bool counters_refused(std::string_view params, std::string_view status);
/// The same for this process and the programs that it starts.
bool counters_refused();

/// File of the CUPTI that inspect_nvidia() finds, "" = none. Loads it; starts no driver.
std::string find_cupti_library();

/// Why the CUDA program `executable` cannot reach a GPU here, in one sentence; empty when it holds no CUDA code or
/// there is nothing to see. Reads files only.
std::string cuda_problem(const std::string& executable);

/// "13.0" from 13000.
std::string cuda_version_text(int version);

}  // namespace tacho::vendor
