// Wraps CUPTI's profiler host library, which lists the metrics of a chip, plans how many passes a set of them takes,
// and evaluates the counter data images of a run. It works for every chip it knows, without a GPU or driver. tacho
// links no NVIDIA library; it searches for this one as the tracer does.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacho::counter::nvidia {

struct MetricInfo {
  std::string name;         ///< without rollup: "dram__bytes"
  std::string description;  ///< CUPTI's own
  std::string unit;         ///< hardware unit: "dram"
  std::string dimension;    ///< of its values: "byte", "byte/second", "percent"
  int type = 0;             ///< 0 counter, 1 ratio, 2 throughput
};

/// What the metrics are counted for: kernels have all metrics, samples of a whole GPU those that its hardware counts.
enum class Use : uint8_t { kKernels, kSamples };

class Host {
 public:
  /// Opens a host object for a chip. `availability` is the device's counter availability image, empty when the device
  /// is absent. Errors: no CUPTI, an unknown chip.
  static Result<std::unique_ptr<Host>> open(const std::string& chip, std::span<const uint8_t> availability = {},
                                            Use use = Use::kKernels);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// Another object for the same chip. Use one object for the images of one GPU only: it keeps the unit layout of its
  /// first image, and a GPU with other units switched off would get NaN (CUPTI 13.0).
  Result<std::unique_ptr<Host>> another() const { return open(chip_, availability_, use_); }

  static Result<std::vector<std::string>> chips();
  /// Base metrics of all types, sorted by name, with descriptions and units if `properties`.
  Result<std::vector<MetricInfo>> base_metrics(bool properties) const;
  /// True if `metric` with its rollup ("dram__bytes.sum.per_second") can be collected on this chip.
  bool knows(const std::string& metric) const;
  /// "sum", "sum.per_second", ...; empty for unknown metrics.
  std::vector<std::string> submetrics(const MetricInfo& base) const;
  /// What CUPTI says of a metric, with its rollup or without; only the name where it knows none of that name.
  MetricInfo about(const std::string& metric) const;

  struct Config {
    std::vector<uint8_t> image;
    size_t passes = 0;
  };
  /// The config image with which the in-process half collects these metrics. The error names a metric that the chip
  /// lacks.
  Result<Config> config(std::span<const std::string> metrics) const;
  /// The same, which this object then evaluates. Once: CUPTI never removes metrics from an object.
  Result<Config> configure(std::span<const std::string> metrics);

  /// Number of ranges in a counter data image; 0 when `image` is not one.
  size_t ranges(std::span<const uint8_t> image) const;
  /// Values of `metrics` for one range; call config() with them first. NaN = not computable.
  Result<std::vector<double>> evaluate(std::span<const uint8_t> image, size_t range,
                                       std::span<const std::string> metrics) const;

  /// File that the library was loaded from, "" when it is not installed.
  static std::string library();

 private:
  Host() = default;
  std::string chip_;
  std::vector<uint8_t> availability_;
  Use use_ = Use::kKernels;
  void* object_ = nullptr;
};

}  // namespace tacho::counter::nvidia
