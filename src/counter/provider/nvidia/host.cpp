// CUPTI's profiler host library (host.h). This file declares the structures that it uses. Each begins with its size,
// which tells CUPTI its version; tests/counter compares them with CUPTI's headers if those are installed.
#include "counter/provider/nvidia/host.h"

#include <dlfcn.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>

#include "base/format.h"
#include "vendor/nvidia/cupti_host.h"
#include "vendor/nvidia/cupti_pm.h"
#include "vendor/nvidia/machine.h"

namespace tacho::counter::nvidia {

namespace abi = vendor::cupti::host;

namespace {

struct Library {
  void* handle = nullptr;
  std::string path;
  int (*initialize)(abi::HostInitialize*) = nullptr;
  int (*deinitialize)(abi::Deinitialize*) = nullptr;
  int (*chips)(abi::Chips*) = nullptr;
  int (*base_metrics)(abi::BaseMetrics*) = nullptr;
  int (*submetrics)(abi::SubMetrics*) = nullptr;
  int (*properties)(abi::Properties*) = nullptr;
  int (*add_metrics)(abi::AddMetrics*) = nullptr;
  int (*image_size)(abi::ConfigImageSize*) = nullptr;
  int (*image)(abi::ConfigImage*) = nullptr;
  int (*passes)(abi::Passes*) = nullptr;
  int (*evaluate)(abi::Evaluate*) = nullptr;
  int (*info)(abi::DataInfo*) = nullptr;
  int (*text)(int, const char**) = nullptr;
};

const Library& library_once() {
  static const Library loaded = [] {
    Library library;
    library.path = vendor::find_cupti_library();
    if (library.path.empty()) return library;
    // CUPTI loads its host library by name, without a folder.
    const std::string folder = library.path.substr(0, library.path.rfind('/') + 1);
    dlopen((folder + "libnvperf_host.so").c_str(), RTLD_NOW | RTLD_GLOBAL);
    library.handle = dlopen(library.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library.handle == nullptr) return library;
    const auto find = [&](auto& to, const char* symbol) {
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library.handle, symbol));
      return to != nullptr;
    };
    const bool complete = find(library.initialize, "cuptiProfilerHostInitialize") &&
                          find(library.deinitialize, "cuptiProfilerHostDeinitialize") &&
                          find(library.chips, "cuptiProfilerHostGetSupportedChips") &&
                          find(library.base_metrics, "cuptiProfilerHostGetBaseMetrics") &&
                          find(library.submetrics, "cuptiProfilerHostGetSubMetrics") &&
                          find(library.properties, "cuptiProfilerHostGetMetricProperties") &&
                          find(library.add_metrics, "cuptiProfilerHostConfigAddMetrics") &&
                          find(library.image_size, "cuptiProfilerHostGetConfigImageSize") &&
                          find(library.image, "cuptiProfilerHostGetConfigImage") &&
                          find(library.passes, "cuptiProfilerHostGetNumOfPasses") &&
                          find(library.evaluate, "cuptiProfilerHostEvaluateToGpuValues") &&
                          find(library.info, "cuptiRangeProfilerGetCounterDataInfo") &&
                          find(library.text, "cuptiGetResultString");
    if (!complete) library.handle = nullptr;
    return library;
  }();
  return loaded;
}

template <typename Params>
int call(int (*function)(Params*), Params& parameters) {
  parameters.size = abi::kSizeOf<Params>;
  return function(&parameters);
}

std::string text_of(int result) {
  const char* text = nullptr;
  if (library_once().text == nullptr || library_once().text(result, &text) != 0 || text == nullptr)
    return fmt::format("error {}", result);
  return text;
}

Status need_library() {
  const Library& library = library_once();
  if (library.handle != nullptr) return {};
  if (library.path.empty())
    return fail("NVIDIA metrics need CUPTI (libcupti.so), which is not installed "
                "here: install the CUDA toolkit or set CUDA_HOME");
  return fail("{} has no profiler host API: CUDA 12.6 or newer is needed", library.path);
}

std::vector<const char*> pointers(std::span<const std::string> names) {
  std::vector<const char*> list;
  for (const std::string& name : names) list.push_back(name.c_str());
  return list;
}

}  // namespace

std::string Host::library() {
  return library_once().path;
}

Result<std::vector<std::string>> Host::chips() {
  TACHO_TRY(need_library());
  abi::Chips chips{};
  if (const int result = call(library_once().chips, chips); result != 0)
    return fail("CUPTI does not list the chips that it knows: {}", text_of(result));
  return std::vector<std::string>(chips.names, chips.names + chips.count);
}

Result<std::unique_ptr<Host>> Host::open(const std::string& chip, std::span<const uint8_t> availability, Use use) {
  TACHO_TRY(need_library());
  std::unique_ptr<Host> host(new Host);
  host->chip_ = chip;
  host->availability_.assign(availability.begin(), availability.end());
  host->use_ = use;
  abi::HostInitialize initialize{};
  initialize.type = use == Use::kSamples ? vendor::cupti::pm::kPmSampling : abi::kRangeProfiler;
  initialize.chip = host->chip_.c_str();
  initialize.availability = host->availability_.empty() ? nullptr : host->availability_.data();
  if (const int result = call(library_once().initialize, initialize); result != 0)
    return fail("CUPTI ({}) does not know the chip {}: {}", library_once().path, chip, text_of(result));
  host->object_ = initialize.object;
  return host;
}

Host::~Host() {
  if (object_ == nullptr) return;
  abi::Deinitialize deinitialize{};
  deinitialize.object = object_;
  call(library_once().deinitialize, deinitialize);
}

Result<std::vector<MetricInfo>> Host::base_metrics(bool properties) const {
  std::vector<MetricInfo> list;
  for (int type = 0; type < 3; ++type) {
    abi::BaseMetrics metrics{};
    metrics.object = object_;
    metrics.type = type;
    if (const int result = call(library_once().base_metrics, metrics); result != 0)
      return fail("CUPTI does not list the metrics of {}: {}", chip_, text_of(result));
    for (size_t i = 0; i < metrics.count; ++i) list.push_back({metrics.names[i], {}, {}, {}, type});
  }
  if (properties)
    for (MetricInfo& metric : list) {
      const int type = metric.type;
      metric = about(metric.name);
      metric.type = type;
    }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return list;
}

MetricInfo Host::about(const std::string& metric) const {
  MetricInfo info;
  info.name = metric;
  abi::Properties about{};
  about.object = object_;
  about.name = info.name.c_str();
  if (call(library_once().properties, about) != 0) return info;
  if (about.description != nullptr) info.description = about.description;
  if (about.unit != nullptr) info.unit = about.unit;
  if (about.dimension != nullptr) info.dimension = about.dimension;
  info.type = about.type;
  return info;
}

std::vector<std::string> Host::submetrics(const MetricInfo& base) const {
  abi::SubMetrics metrics{};
  metrics.object = object_;
  metrics.type = base.type;
  metrics.name = base.name.c_str();
  if (call(library_once().submetrics, metrics) != 0) return {};
  std::vector<std::string> list;
  for (size_t i = 0; i < metrics.count; ++i) {
    const char* name = metrics.names[i];
    list.emplace_back(*name == '.' ? name + 1 : name);
  }
  return list;
}

// CUPTI never removes metrics from a host object, so queries and configurations each need a new object.
Result<Host::Config> Host::config(std::span<const std::string> metrics) const {
  TACHO_ASSIGN(const std::unique_ptr<Host> fresh, open(chip_, availability_, use_));
  return fresh->configure(metrics);
}

Result<Host::Config> Host::configure(std::span<const std::string> metrics) {
  std::vector<const char*> names = pointers(metrics);
  abi::AddMetrics add{};
  add.object = object_;
  add.names = names.data();
  add.count = names.size();
  if (const int result = call(library_once().add_metrics, add); result != 0) {
    for (const std::string& metric : metrics)
      if (!knows(metric)) return fail("{} has no metric '{}'", chip_, metric);
    return fail("CUPTI cannot collect these {} metrics together on {}: {}", metrics.size(), chip_, text_of(result));
  }
  Config config;
  abi::ConfigImageSize size{};
  size.object = object_;
  if (const int result = call(library_once().image_size, size); result != 0)
    return fail("CUPTI cannot plan {} metrics on {}: {}", metrics.size(), chip_, text_of(result));
  config.image.resize(size.bytes);
  abi::ConfigImage image{};
  image.object = object_;
  image.bytes = config.image.size();
  image.image = config.image.data();
  abi::Passes passes{};
  passes.bytes = config.image.size();
  passes.image = config.image.data();
  int result = call(library_once().image, image);
  if (result == 0) result = call(library_once().passes, passes);
  if (result != 0) return fail("CUPTI cannot plan {} metrics on {}: {}", metrics.size(), chip_, text_of(result));
  config.passes = passes.passes;
  return config;
}

bool Host::knows(const std::string& metric) const {
  // Only adding a metric checks the rollup as well. A rejected metric leaves no trace in the object.
  const auto fresh = open(chip_, availability_, use_);
  if (!fresh) return false;
  const char* name = metric.c_str();
  abi::AddMetrics add{};
  add.object = (*fresh)->object_;
  add.names = &name;
  add.count = 1;
  return call(library_once().add_metrics, add) == 0;
}

size_t Host::ranges(std::span<const uint8_t> image) const {
  abi::DataInfo info{};
  info.image = image.data();
  info.bytes = image.size();
  return call(library_once().info, info) == 0 ? info.ranges : 0;
}

Result<std::vector<double>> Host::evaluate(std::span<const uint8_t> image, size_t range,
                                           std::span<const std::string> metrics) const {
  std::vector<double> values(metrics.size(), std::numeric_limits<double>::quiet_NaN());
  std::vector<const char*> names = pointers(metrics);
  abi::Evaluate evaluate{};
  evaluate.object = object_;
  evaluate.image = image.data();
  evaluate.bytes = image.size();
  evaluate.range = range;
  evaluate.names = names.data();
  evaluate.count = names.size();
  evaluate.values = values.data();
  if (const int result = call(library_once().evaluate, evaluate); result != 0)
    return fail("CUPTI cannot evaluate range {} of a counter data image: {}", range, text_of(result));
  return values;
}

}  // namespace tacho::counter::nvidia
