// What a microbenchmark has measured, and of which device: the numbers behind the roofs.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::roofline {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// One ceiling of one device. Rates are GB/s, GFLOP/s or GOP/s (1e9 a second).
struct Measurement {
  std::string column;   ///< of roofline.csv: "HBMReadBw", "FP32Flops", "MFMABF16Flops"
  std::string label;    ///< for people: "HBM BW (read)", "Peak FLOPs (FP32)"
  std::string unit;     ///< "GB/s", "GFLOP/s" or "GOP/s"
  std::string path;     ///< which instructions did the work: "wgmma.m64n256k16 (shared memory operands)"
  std::string skipped;  ///< not empty: why there is no value
  uint32_t group_size = 0, groups = 0;
  uint32_t experiments = 0;
  uint32_t runs =
      0;  ///< of all experiments; more than `experiments` where the fastest of several runs makes one
  double work = 0;                                           ///< bytes, FLOP or operations of one experiment
  double duration = 0;                                       ///< mean of the experiments, ns
  double mean = kUnknown;                                    ///< of the rates of the experiments
  double stdev = kUnknown, low = kUnknown, high = kUnknown;  ///< sample deviation, smallest, largest
  double clock = kUnknown;                                   ///< of the compute units during the run, MHz
  double peak =
      kUnknown;  ///< from the device's properties at its highest clock; unknown where those do not tell
  double peak_at_clock = kUnknown;    ///< the same at the clock of the run
  std::vector<std::string> warnings;  ///< measured/peak out of range, a busy device
  std::string error;  ///< measured is more than 1.02 of the peak: the value is not to be trusted

  double of_peak() const { return mean / peak; }
};

/// What identifies a device, and what the peaks are computed from.
struct DeviceInfo {
  std::string backend;  ///< "cuda" or "opencl"
  std::string name;     ///< "NVIDIA H200"
  std::string vendor;
  std::string driver;                                ///< version; a new one invalidates what was measured
  std::string id;                                    ///< UUID or PCI address where there is one
  std::string kind;                                  ///< "GPU", "CPU", "accelerator"
  std::string architecture;                          ///< "sm_90"; empty: not known
  uint32_t units = 0;                                ///< multiprocessors, compute units
  double max_clock = kUnknown;                       ///< MHz
  double memory_clock = kUnknown;                    ///< MHz
  uint32_t bus_width = 0;                            ///< bits
  uint64_t memory = 0, cache = 0, local_memory = 0;  ///< bytes; the last-level cache; of one unit
};

struct DeviceCeilings {
  DeviceInfo device;
  int number = 0;  ///< the device's number on this machine
  std::vector<Measurement> measurements;

  const Measurement* find(std::string_view column) const {
    for (const Measurement& each : measurements)
      if (each.column == column) return &each;
    return nullptr;
  }
};

}  // namespace tacho::roofline
