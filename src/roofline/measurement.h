// The results of the microbenchmarks, and the device that they measured: the numbers behind the roofs.
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
  std::string path;     ///< the instructions that did the work: "wgmma.m64n256k16 (shared memory operands)"
  std::string skipped;  ///< if not empty, why there is no value
  uint32_t group_size = 0, groups = 0;
  uint32_t experiments = 0;
  uint32_t runs = 0;       ///< total; more than `experiments` if each takes the fastest of several
  double work = 0;         ///< bytes, FLOP or operations of one experiment
  double duration = 0;     ///< mean of the experiments, ns
  double mean = kUnknown;  ///< of the rates of the experiments
  double stdev = kUnknown, low = kUnknown, high = kUnknown;  ///< sample deviation, smallest, largest
  double clock = kUnknown;                                   ///< of the compute units during the run, MHz
  double peak = kUnknown;             ///< theoretical, at the highest clock, from the device's properties
  double peak_at_clock = kUnknown;    ///< the same at the clock of the run
  std::vector<std::string> warnings;  ///< measured/peak out of range, a busy device
  std::string error;                  ///< more than 1.02 of the peak: do not trust the value

  double of_peak() const { return mean / peak; }
};

/// Identifies a device, with the properties from which tacho computes its peaks.
struct DeviceInfo {
  std::string backend;  ///< "cuda" or "opencl"
  std::string name;     ///< "NVIDIA H200"
  std::string vendor;
  std::string driver;                                ///< version; a new one invalidates measurements
  std::string id;                                    ///< UUID or PCI address, if any
  std::string kind;                                  ///< "GPU", "CPU", "accelerator"
  std::string architecture;                          ///< "sm_90"; empty = unknown
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
