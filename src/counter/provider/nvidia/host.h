// CUPTI's profiler host library: which metrics a chip has, in how many passes a set of them is read, and evaluating the
// counter data images of a run. Works for every chip the library knows, without a GPU or driver. Nothing of NVIDIA's is
// linked; the library is looked for as the tracer does.
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
  int type = 0;             ///< 0 counter, 1 ratio, 2 throughput
};

class Host {
 public:
  /// A host object for a chip; `availability` is the device's counter availability image, empty without the device.
  /// Errors: no CUPTI, an unknown chip.
  static Result<std::unique_ptr<Host>> open(const std::string& chip,
                                            std::span<const uint8_t> availability = {});
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// Another object for the same chip. One object evaluates the images of one GPU only: it keeps the places of the units that the
  /// first image had, and those of a GPU with others switched off come out as NaN (CUPTI 13.0).
  Result<std::unique_ptr<Host>> another() const { return open(chip_, availability_); }

  static Result<std::vector<std::string>> chips();
  /// Base metrics of all types, sorted by name. Descriptions and units where `properties`.
  Result<std::vector<MetricInfo>> base_metrics(bool properties) const;
  /// True if `metric` with its rollup ("dram__bytes.sum.per_second") can be collected on this chip.
  bool knows(const std::string& metric) const;
  /// "sum", "sum.per_second", ...; empty for unknown ones.
  std::vector<std::string> submetrics(const MetricInfo& base) const;

  struct Config {
    std::vector<uint8_t> image;
    size_t passes = 0;
  };
  /// What the in-process half needs to collect these. Error: names a metric that the chip does not have.
  Result<Config> config(std::span<const std::string> metrics) const;

  /// Ranges in a counter data image, 0 for anything that is none.
  size_t ranges(std::span<const uint8_t> image) const;
  /// Values of `metrics` for one range; config() must have been asked for them before. NaN = not computable.
  Result<std::vector<double>> evaluate(std::span<const uint8_t> image, size_t range,
                                       std::span<const std::string> metrics) const;

  /// File that the library was loaded from, "" = none is installed.
  static std::string library();

 private:
  Host() = default;
  std::string chip_;
  std::vector<uint8_t> availability_;
  void* object_ = nullptr;
};

}  // namespace tacho::counter::nvidia
