// CUPTI's PM sampling (pm_sampler.h). What is known of it beyond NVIDIA's documents (an H100, CUPTI 13.0): samples have
// times of CUPTI's own clock, not of the GPU's timer, which was milliseconds beside it. The first sample after a start
// has no begin of its own, and a stop adds samples without length: both are left out. A decode that finds no room in
// the image loses samples, so the image holds far more than come between two decodes. A decode takes 2 to 3 ms, however
// few samples there are and however large the GPU's buffer is; but some metrics together (sm__cycles_active with
// smsp__inst_executed) fill the buffer with more than 100 MB/s at any interval, and then decodes take more than half of
// a processor. A full buffer stays full: sampling begins anew with a larger one, and the gap is counted.
#include "counter/provider/nvidia/pm_sampler.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/format.h"
#include "counter/provider/nvidia/host.h"
#include "counter/provider/nvidia/pm_clock.h"
#include "vendor/nvidia/cupti_pm.h"
#include "vendor/nvidia/cupti_range.h"
#include "vendor/nvidia/machine.h"
#include "vendor/nvidia/nvml.h"
#include "vendor/nvidia/permission.h"

namespace tacho::counter::nvidia {

namespace pm = vendor::cupti::pm;
namespace range = vendor::cupti::range;

namespace {

constexpr int kOutOfMemory = 8;  // of cuptiPmSamplingDecodeData: the hardware buffer is full
constexpr int kFirstPeriod = 50, kLeastPeriod = 100, kMostPeriod = 800;  // ms between decodes
constexpr int64_t kSamplesPerPeriod = 250;
constexpr int64_t kClockSlack = 2'000'000;  // ns: a millisecond more than CUPTI's clock errs by
// What CUPTI errs by where it converts a GPU's time to its clock, in ns: 5 us were seen on an H100, and others have
// seen up to 17 us on H200s.
constexpr int64_t kConversionError = 20'000;
constexpr double kLongDecode = 10e6;  // ns: the GPU writes far more than samples
constexpr size_t kMostBuffer = 512 << 20, kLeastBuffer = 128 << 20, kMostImage = size_t{1} << 30;
constexpr double kClockGHz = 1.2;  // of the system clock, roughly, for GPUs that know no other interval

struct PmLibrary {
  int (*initialize)(range::Initialize*) = nullptr;
  int (*chip)(pm::ChipName*) = nullptr;
  int (*availability)(pm::Availability*) = nullptr;
  int (*enable)(pm::PmEnable*) = nullptr;
  int (*disable)(pm::PmObject*) = nullptr;
  int (*set)(pm::PmSetConfig*) = nullptr;
  int (*start)(pm::PmObject*) = nullptr;
  int (*stop)(pm::PmObject*) = nullptr;
  int (*decode)(pm::Decode*) = nullptr;
  int (*image_size)(pm::PmImageSize*) = nullptr;
  int (*image)(pm::PmImageInitialize*) = nullptr;
  int (*info)(pm::PmDataInfo*) = nullptr;
  int (*sample)(pm::SampleInfo*) = nullptr;
  int (*timestamp)(uint64_t*) = nullptr;
  int (*text)(int, const char**) = nullptr;

  static Result<PmLibrary> open(const std::string& path) {
    PmLibrary library;
    // CUPTI loads these by name, without a folder.
    const std::string folder = path.substr(0, path.rfind('/') + 1);
    for (const char* const name : {"libnvperf_host.so", "libnvperf_target.so"})
      dlopen((folder + name).c_str(), RTLD_NOW | RTLD_GLOBAL);
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const auto find = [&](auto& to, const char* symbol) {
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(handle != nullptr ? dlsym(handle, symbol) : nullptr);
      return to != nullptr;
    };
    if (find(library.initialize, "cuptiProfilerInitialize") && find(library.chip, "cuptiDeviceGetChipName") &&
        find(library.availability, "cuptiPmSamplingGetCounterAvailability") &&
        find(library.enable, "cuptiPmSamplingEnable") && find(library.disable, "cuptiPmSamplingDisable") &&
        find(library.set, "cuptiPmSamplingSetConfig") && find(library.start, "cuptiPmSamplingStart") &&
        find(library.stop, "cuptiPmSamplingStop") && find(library.decode, "cuptiPmSamplingDecodeData") &&
        find(library.image_size, "cuptiPmSamplingGetCounterDataSize") &&
        find(library.image, "cuptiPmSamplingCounterDataImageInitialize") &&
        find(library.info, "cuptiPmSamplingGetCounterDataInfo") &&
        find(library.sample, "cuptiPmSamplingCounterDataGetSampleInfo") &&
        find(library.timestamp, "cuptiGetTimestamp") && find(library.text, "cuptiGetResultString"))
      return library;
    return fail("{} cannot sample a GPU's counters: CUDA 12.6 or newer is needed (CUDA_HOME chooses another)", path);
  }
};

template <typename Params>
int ask(int (*function)(Params*), Params& parameters) {
  parameters.size = pm::kSizeOf<Params>;
  return function(&parameters);
}

// Why CUPTI refuses, and what mends it.
std::string reason_for(const PmLibrary& library, int code) {
  switch (code) {
    case 35:
      return vendor::kCountersRefused;
    case 7:
    case 26:
      return vendor::kCountersHeld;
    case 27:
      return "CUPTI does not support it on this GPU";
    case 33:
    case 40:
      return "it is a virtual GPU, whose host does not let guests profile: its administrator can allow it";
    case 41:
      return "it runs in confidential computing mode, in which there are no counters";
    case 43:
      return "MIG is on, and counters are sampled of whole GPUs only: nvidia-smi -mig 0 switches it off";
    case 45:
      return "Windows Subsystem for Linux has no counters of whole GPUs";
    default: {
      const char* text = nullptr;
      if (library.text(code, &text) != 0 || text == nullptr) return fmt::format("CUPTI answers error {}", code);
      return fmt::format("CUPTI answers {}", text);
    }
  }
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Why this metric cannot be sampled on the chip.
std::string unknown(const std::string& chip, const Host& host, const std::string& metric) {
  if (const MetricInfo info = host.about(metric); !info.description.empty()) {
    std::vector<std::string> some;
    for (const std::string& rollup : host.submetrics(info))
      if (some.size() < 4) some.push_back(metric + "." + rollup);
    if (metric.find('.') == std::string::npos && !some.empty())
      return fmt::format("{} is counted by several units: say how to sum them up, as {}, ...", metric, listed(some));
  }
  if (const auto kernels = Host::open(chip); kernels && (*kernels)->knows(metric))
    return fmt::format(
        "{} is counted in kernels only, by code that is put into them: tacho profile does that in programs that it starts",
        metric);
  return fmt::format("{} has no metric {}", chip, metric);
}

// The metrics that fit together with those before them.
std::vector<std::string> fitting(const Host& host, const std::vector<std::string>& metrics) {
  std::vector<std::string> fit;
  for (const std::string& metric : metrics) {
    fit.push_back(metric);
    if (const auto config = host.config(fit); !config || config->passes > 1) fit.pop_back();
  }
  return fit;
}

// One GPU.
class Sampled {
 public:
  Sampled(const PmLibrary& library, const SampleRequest& request, const vendor::NvidiaDevice& device, size_t ordinal)
      : library_(library), request_(request), device_(device), ordinal_(ordinal) {}

  ~Sampled() { disable(); }
  Sampled(const Sampled&) = delete;
  Sampled& operator=(const Sampled&) = delete;

  launch::SampledDevice facts() const {
    return {static_cast<int>(ordinal_), device_.name, "NVIDIA",
            fmt::format("sm_{}{}", device_.capability_major, device_.capability_minor), device_.uuid};
  }
  const Host& host() const { return *host_; }

  Status open() {
    if (device_.capability_major * 10 + device_.capability_minor < 75)
      return fail("GPU {} ({}) is older than Turing, and CUPTI samples counters from Turing on", ordinal_,
                  device_.name);
    pm::ChipName chip{};
    chip.device = ordinal_;
    if (const int code = ask(library_.chip, chip); code != 0) return refused(code);
    pm::Availability have{};
    have.device = ordinal_;
    int code = ask(library_.availability, have);
    std::vector<uint8_t> availability(have.bytes);
    have.image = availability.data();
    if (code == 0) code = ask(library_.availability, have);
    if (code != 0) return refused(code);
    TACHO_ASSIGN(host_, Host::open(chip.chip, availability, Use::kSamples));
    for (const std::string& metric : request_.counters)
      if (!host_->knows(metric)) return fail("{}", unknown(chip.chip, *host_, metric));
    TACHO_ASSIGN(const Host::Config config, host_->configure(request_.counters));
    if (config.passes != 1) return too_many(config.passes);
    config_ = config.image;
    const double every_s = static_cast<double>(request_.interval_ns) * 1e-9;
    const auto in = [&](double seconds) { return static_cast<size_t>(std::ceil(seconds / every_s)); };
    buffer_ = std::clamp((8 + 2 * request_.counters.size()) * 1024 * in(2), kLeastBuffer, kMostBuffer);
    period_ = static_cast<int>(
        std::clamp(kSamplesPerPeriod * request_.interval_ns / 1'000'000, int64_t{kLeastPeriod}, int64_t{kMostPeriod}));
    slots_ = in(3e-3 * period_) + 16;
    TACHO_TRY(configure());
    timed_ = read_clock();
    return {};
  }

  /// ms until the next decode. The first comes early, since only it tells how fast the GPU fills its buffer.
  int period() const { return decodes_ == 0 || decode_took_ > kLongDecode ? kFirstPeriod : period_; }

  Status start() {
    if (timed_) read_clock();
    decodes_ = 0;
    start_begin_ = raw_now();
    pm::PmObject start{};
    start.sampler = sampler_;
    const int code = ask(library_.start, start);
    start_end_ = raw_now();
    first_ = true;
    if (code != 0) return refused(code);
    running_ = true;
    return {};
  }

  // Sends what the GPU has written since.
  void take(uint32_t number, launch::SampleSender& sender) {
    if (!running_) return;
    pm::Decode decode{};
    decode.sampler = sampler_;
    decode.image = image_.data();
    decode.bytes = image_.size();
    const int64_t begin = raw_now();
    const int code = ask(library_.decode, decode);
    decode_took_ = static_cast<double>(raw_now() - begin);
    ++decodes_;
    if (timed_) read_clock();
    if (code != 0 || decode.overflow != 0) return begin_anew(code, sender);
    pm::PmDataInfo info{};
    info.image = image_.data();
    info.bytes = image_.size();
    if (ask(library_.info, info) != 0) info.completed = 0;
    for (size_t i = 0; i < info.completed; ++i) send(i, number, sender);
    if (const int fresh = initialize_image(); fresh != 0) return end(fresh, sender);
    if (decode.stop_reason == pm::kImageFull)
      tell(told_image_, sender, "the GPU's samples came faster than tacho took them");
  }

  void stop(uint32_t number, launch::SampleSender& sender) {
    if (sampler_ == nullptr) return;
    ending_ = true;
    if (running_) {
      pm::PmObject stop{};
      stop.sampler = sampler_;
      ask(library_.stop, stop);
      take(number, sender);
    }
    running_ = false;
    disable();
    if (lost_ != 0) sender.lost(lost_);
    if (!clock_.empty()) sender.clock_error(number, clock_.error() + (timed_ ? kConversionError : 0));
    if (clock_.jumps() > 0)
      sender.note(fmt::format("GPU {}: the clock of its samples was set {} while it was sampled: samples from around "
                              "then may lie beside their time",
                              ordinal_, clock_.jumps() == 1 ? "once" : fmt::format("{} times", clock_.jumps())));
    sender.property(fmt::format("gpu{}.clock", ordinal_),
                    timed_ ? "CUPTI's" : "the begin of sampling, for the samples' times are not of CUPTI's clock");
  }

 private:
  tl::unexpected<Error> refused(int code) const {
    return fail("GPU {} ({}) cannot be sampled: {}", ordinal_, device_.name, reason_for(library_, code));
  }
  tl::unexpected<Error> too_many(size_t passes) const {
    for (const std::string& metric : request_.counters)
      if (const auto alone = host_->config(std::vector{metric}); alone && alone->passes > 1)
        return fail(
            "{} takes {} passes by itself, and sampling has only one: tacho profile counts such metrics, of each kernel anew for each pass",
            metric, alone->passes);
    const std::vector<std::string> fit = fitting(*host_, request_.counters);
    return fail("these {} metrics take {} passes together, and sampling has only one: {} {}", request_.counters.size(),
                passes, listed(fit), fit.size() == 1 ? "fits" : "fit together");
  }

  // The interval in time; GPUs that know none (Turing, A100) count cycles of their system clock.
  Status configure() {
    pm::PmEnable enable{};
    enable.device = ordinal_;
    if (const int code = ask(library_.enable, enable); code != 0) return refused(code);
    sampler_ = enable.sampler;
    pm::PmSetConfig set{};
    set.sampler = sampler_;
    set.config = config_.data();
    set.config_bytes = config_.size();
    set.buffer_bytes = buffer_;
    set.interval = static_cast<uint64_t>(request_.interval_ns);
    set.trigger = pm::kByTime;
    const int capability = device_.capability_major * 10 + device_.capability_minor;
    if (capability == 75 || capability == 80) {
      set.trigger = pm::kByClock;
      set.interval = static_cast<uint64_t>(static_cast<double>(request_.interval_ns) * kClockGHz);
    }
    if (const int code = ask(library_.set, set); code != 0) return refused(code);
    std::vector<const char*> names;
    for (const std::string& metric : request_.counters) names.push_back(metric.c_str());
    pm::PmImageSize size{};
    size.sampler = sampler_;
    size.metrics = names.data();
    size.count = names.size();
    size.most = static_cast<uint32_t>(slots_);
    if (const int code = ask(library_.image_size, size); code != 0) return refused(code);
    if (size.bytes > kMostImage)
      return fail("GPU {} ({}) cannot be sampled: CUPTI asks for {} bytes to hold {} samples", ordinal_, device_.name,
                  size.bytes, slots_);
    image_.assign(size.bytes, 0);
    if (const int code = initialize_image(); code != 0) return refused(code);
    return {};
  }

  void disable() {
    pm::PmObject parameters{};
    parameters.sampler = std::exchange(sampler_, nullptr);
    if (parameters.sampler != nullptr) ask(library_.disable, parameters);
  }

  int initialize_image() {
    pm::PmImageInitialize fresh{};
    fresh.sampler = sampler_;
    fresh.image = image_.data();
    fresh.bytes = image_.size();
    return ask(library_.image, fresh);
  }

  void send(size_t index, uint32_t number, launch::SampleSender& sender) {
    pm::SampleInfo at{};
    at.sampler = sampler_;
    at.image = image_.data();
    at.bytes = image_.size();
    at.index = index;
    if (ask(library_.sample, at) != 0 || at.end == 0) return;
    if (std::exchange(first_, false)) return relate(at.end);
    if (at.start >= at.end) return;
    const auto span = clock_.place(at.start, at.end);
    if (!span) {
      ++lost_;
      return tell(told_time_, sender, "times of samples went back, or lie in the future");
    }
    const int64_t length = span->end - span->begin;
    if (typical_ == 0) typical_ = length;
    if (last_end_ && span->begin > *last_end_ + typical_ / 2)
      lost_ += static_cast<uint64_t>((span->begin - *last_end_ + typical_ / 2) / std::max<int64_t>(1, typical_));
    last_end_ = span->end;
    const auto values = host_->evaluate(image_, index, request_.counters);
    if (!values) {
      ++lost_;
      return tell(told_value_, sender, values.error().message);
    }
    sender.sample(number, span->begin, span->end, *values);
  }

  bool read_clock() {
    // The shortest of a few calls says most.
    constexpr int kTries = 5;
    int64_t best = INT64_MAX, host = 0;
    uint64_t vendor = 0;
    for (int i = 0; i < kTries; ++i) {
      uint64_t time = 0;
      const int64_t begin = raw_now();
      if (library_.timestamp(&time) != 0 || time == 0) return false;
      const int64_t took = raw_now() - begin;
      if (took >= best) continue;
      best = took;
      host = begin + took / 2;
      vendor = time;
    }
    clock_.add(vendor, host, (best + 1) / 2);
    return true;
  }

  // After a start the first sample's begin is not its own; it ends at most an interval after the start. Where that is
  // not so by CUPTI's clock, the times are another clock's, and only the start says when that was.
  void relate(uint64_t first_end) {
    if (timed_) {
      ClockPairs trial = clock_;
      const auto span = trial.place(first_end, first_end);
      if (last_end_ || (span && span->end >= start_begin_ - kClockSlack &&
                        span->end <= start_end_ + request_.interval_ns + kClockSlack))
        return;
      timed_ = false;
      clock_ = {};
    }
    if (!clock_.empty()) return;
    const int64_t span = start_end_ - start_begin_ + request_.interval_ns;
    clock_.fix(first_end, start_begin_ + span / 2, span / 2);
  }

  // A full buffer stays full.
  void begin_anew(int code, launch::SampleSender& sender) {
    if (code != 0 && code != kOutOfMemory) return end(code, sender);
    if (ending_) {
      running_ = false;
      if (last_end_ && typical_ > 0) lost_ += static_cast<uint64_t>((raw_now() - *last_end_) / typical_);
      return sender.note(
          fmt::format("GPU {}: the GPU's buffer of samples was full at the end: the last ones are missing", ordinal_));
    }
    tell(told_full_, sender,
         fmt::format("the GPU's buffer of samples was full, and sampling began anew{}",
                     buffer_ < kMostBuffer ? " with a larger one" : ""));
    pm::PmObject stop{};
    stop.sampler = sampler_;
    ask(library_.stop, stop);
    running_ = false;
    disable();
    buffer_ = std::min(2 * buffer_, kMostBuffer);
    Status again = configure();
    if (again) again = start();
    if (!again) sender.note(again.error().message + "; its samples end there");
  }

  void end(int code, launch::SampleSender& sender) {
    running_ = false;
    sender.note(refused(code).value().message + "; its samples end there");
  }

  void tell(bool& told, launch::SampleSender& sender, const std::string& what) const {
    if (std::exchange(told, true)) return;
    sender.note(fmt::format("GPU {}: {}: those that are missing are counted", ordinal_, what));
  }

  const PmLibrary& library_;
  const SampleRequest& request_;
  vendor::NvidiaDevice device_;
  size_t ordinal_;
  std::unique_ptr<Host> host_;
  std::vector<uint8_t> config_, image_;
  void* sampler_ = nullptr;
  size_t buffer_ = 0, slots_ = 0;
  ClockPairs clock_;
  int64_t start_begin_ = 0, start_end_ = 0, typical_ = 0;
  std::optional<int64_t> last_end_;
  uint64_t lost_ = 0;
  int period_ = kMostPeriod, decodes_ = 0;
  double decode_took_ = 0;
  bool timed_ = false, first_ = false, running_ = false, ending_ = false;
  bool told_time_ = false, told_value_ = false, told_full_ = false, told_image_ = false;
};

// CUDA then numbers the GPUs as the vendor's tools do: by PCI address, and all of them.
void number_as_tools_do() {
  unsetenv("CUDA_VISIBLE_DEVICES");
  setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
}

// Of those, the ones that the processes use; all where that is not known.
struct Chosen {
  std::vector<size_t> gpus;
  bool known = false;
};
Chosen choose(const std::vector<vendor::NvidiaDevice>& devices, const std::vector<pid_t>& processes) {
  Chosen chosen;
  const std::vector<std::string> used = vendor::nvml_gpus_of(processes);
  for (size_t i = 0; i < devices.size(); ++i)
    if (std::find(used.begin(), used.end(), devices.at(i).uuid) != used.end()) chosen.gpus.push_back(i);
  chosen.known = !chosen.gpus.empty();
  for (size_t i = 0; i < devices.size() && !chosen.known; ++i) chosen.gpus.push_back(i);
  return chosen;
}

// Sets up the chosen ones. Of all that there are, those that cannot be sampled are left out with a note.
Result<std::vector<std::unique_ptr<Sampled>>> open_all(const PmLibrary& library, const SampleRequest& request,
                                                       const std::vector<vendor::NvidiaDevice>& devices,
                                                       std::vector<std::string>& notes) {
  const Chosen chosen = choose(devices, request.processes);
  if (!chosen.known && devices.size() > 1 && !request.processes.empty())
    notes.emplace_back(
        "NVIDIA's management library does not tell which GPUs the program uses (it uses none yet, or runs in a "
        "container): all that can be were sampled");
  std::vector<std::unique_ptr<Sampled>> gpus;
  Status refused;
  for (const size_t i : chosen.gpus) {
    auto gpu = std::make_unique<Sampled>(library, request, devices.at(i), i);
    if (Status ready = gpu->open(); ready) {
      gpus.push_back(std::move(gpu));
    } else if (chosen.known) {
      return fail_with(std::move(ready));
    } else {
      notes.push_back(ready.error().message);
      if (refused) refused = std::move(ready);
    }
  }
  if (gpus.empty()) return fail_with(std::move(refused));
  return gpus;
}

// What this process has used of a processor.
double used_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

}  // namespace

std::string unit_of(const std::string& dimension) {
  const size_t slash = dimension.find('/');
  const std::string above = dimension.substr(0, slash);
  const std::string unit = above == "byte" ? "B" : above == "percent" ? "%" : above == "nanosecond" ? "ns" : "";
  if (slash == std::string::npos) return unit;
  const std::string below = dimension.substr(slash + 1);
  if (below == "second") return unit.empty() ? "1/s" : unit + "/s";
  return dimension;
}

void sample_gpus(const SampleRequest& request, launch::SampleSender& sender) {
  if (!request.processes.empty()) number_as_tools_do();
  unsetenv("CUDA_INJECTION64_PATH");
  const vendor::NvidiaStatus machine = vendor::inspect_nvidia();
  if (machine.devices.empty()) return sender.none(machine.problem.empty() ? "no NVIDIA GPU" : machine.problem);
  if (machine.counters_refused) return sender.refuse(vendor::kCountersRefused);
  if (machine.cupti.empty()) return sender.refuse(machine.problem);
  const auto library = PmLibrary::open(machine.cupti);
  if (!library) return sender.refuse(library.error().message);
  range::Initialize initialize{};
  initialize.size = sizeof initialize;
  if (const int code = library->initialize(&initialize); code != 0)
    return sender.refuse(fmt::format("CUPTI does not start: {}", reason_for(*library, code)));
  std::vector<std::string> notes;
  const auto opened = open_all(*library, request, machine.devices, notes);
  if (!opened) return sender.refuse(opened.error().message);
  const std::vector<std::unique_ptr<Sampled>>& gpus = *opened;
  std::vector<launch::SampledDevice> devices;
  for (const std::unique_ptr<Sampled>& gpu : gpus) devices.push_back(gpu->facts());
  std::vector<launch::SampledMetric> metrics;
  for (const std::string& metric : request.counters) {
    const MetricInfo info = gpus.front()->host().about(metric);
    metrics.push_back({metric, unit_of(info.dimension), info.description});
  }
  sender.ready(devices, metrics);
  if (!sender.wait_for_start()) return;
  for (const std::string& note : notes) sender.note(note);
  sender.property("interval_ns", fmt::format("{}", request.interval_ns));
  for (const std::unique_ptr<Sampled>& gpu : gpus)
    if (const Status started = gpu->start(); !started) sender.note(started.error().message);
  const double begun = used_seconds();
  const auto each = [&](auto&& what) {
    for (uint32_t i = 0; i < gpus.size(); ++i) what(*gpus.at(i), i);
  };
  const auto period = [&] {
    int least = kMostPeriod;
    for (const std::unique_ptr<Sampled>& gpu : gpus) least = std::min(least, gpu->period());
    return least;
  };
  while (!sender.end_is_asked(period())) each([&](Sampled& gpu, uint32_t i) { gpu.take(i, sender); });
  const double sampling = used_seconds() - begun;
  each([&](Sampled& gpu, uint32_t i) { gpu.stop(i, sender); });
  sender.property("cpu_seconds", fmt::format("{:.6f}", sampling));
  sender.property("setup_cpu_seconds", fmt::format("{:.6f}", used_seconds() - sampling));
}

}  // namespace tacho::counter::nvidia
