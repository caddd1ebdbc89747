// The course of a measurement (suite.h).
#include "roofline/suite.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "base/clock.h"
#include "report/output.h"
#include "vendor/vendor.h"

namespace tacho::roofline {
namespace {

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// A progress bar in rocprof-compute's form, redrawn in its line.
class Bar {
 public:
  explicit Bar(bool shown) : shown_(shown) {}
  ~Bar() {
    if (drawn_) report::print_error("\r\033[K");
  }
  void at(double share) {
    const int percent = static_cast<int>(share * 100);
    if (!shown_ || percent == last_) return;
    last_ = percent;
    drawn_ = true;
    constexpr int kWidth = 60;
    const int filled = percent * kWidth / 100;
    report::print_error("\r{:3d}% [{}{}]", percent, std::string(static_cast<size_t>(filled), '|'),
                        std::string(static_cast<size_t>(kWidth - filled), ' '));
  }

 private:
  bool shown_, drawn_ = false;
  int last_ = -1;
};

// "3 of 14 benchmarks (HBM BW), about 9 s left", redrawn in its line.
class Estimate {
 public:
  Estimate(bool shown, size_t benchmarks) : shown_(shown), benchmarks_(benchmarks) {}
  ~Estimate() {
    if (drawn_) report::print_error("\r\033[K");
  }
  // `share`: of the current benchmark.
  void at(std::string_view benchmark, double share) {
    if (!shown_) return;
    const double passed = static_cast<double>(raw_now() - began_) * 1e-9, done = static_cast<double>(done_) + share;
    std::string left;
    // Before the first benchmark is through there is nothing to estimate from.
    if (done_ > 0)
      left = fmt::format(", about {:.0f} s left",
                         std::ceil(passed / done * std::max(0.0, static_cast<double>(benchmarks_) - done)));
    const std::string text = fmt::format("{} of {} benchmarks ({}){}", done_ + 1, benchmarks_, benchmark, left);
    if (text == last_) return;
    report::print_error("\r\033[K{}", text);
    last_ = text;
    drawn_ = true;
  }
  void finished() { ++done_; }

 private:
  bool shown_, drawn_ = false;
  size_t benchmarks_, done_ = 0;
  int64_t began_ = raw_now();
  std::string last_;
};

constexpr size_t kLeastRuns = 4,
                 kGoodRuns = 12;  // of an experiment of a device that other programs use too
constexpr size_t kSharedExperiments = 20;

// Turns runs into experiments on a device that other programs use too: run i belongs to experiment i modulo their
// number, and the fastest run of each counts. A disturbance of some ms then meets all experiments alike, and each has
// whole runs. Returns the share of runs that took more than 1.2 times as long as the fastest of all.
double deal_out(std::vector<double>& durations, size_t most) {
  std::vector<double> runs;
  for (const double duration : durations)
    if (duration > 0) runs.push_back(duration);
  if (runs.empty()) return 0;
  const double fastest = *std::min_element(runs.begin(), runs.end());
  const auto slow = std::count_if(runs.begin(), runs.end(), [&](double each) { return each > 1.2 * fastest; });
  const size_t count = std::min({most, kSharedExperiments, std::max(runs.size() / kGoodRuns, kLeastRuns), runs.size()});
  durations.assign(runs.begin(), runs.begin() + static_cast<ptrdiff_t>(count));
  for (size_t i = 0; i < runs.size(); ++i) durations[i % count] = std::min(durations[i % count], runs[i]);
  return static_cast<double>(slow) / static_cast<double>(runs.size());
}

Status measure_one(BenchmarkDevice& device, const Offer& offer, const SuiteOptions& options, Estimate& estimate,
                   Measurement& measurement) {
  Bar bar(options.bar);
  const auto progress = [&](double share) {
    bar.at(share);
    estimate.at(measurement.label, share);
  };
  progress(0);
  const int64_t start = raw_now();
  const auto in_time = [&]() -> Status {
    if (static_cast<double>(raw_now() - start) < options.limit * 1e9) return {};
    return fail("it takes longer than {:g} s: the device is too slow for it, or occupied", options.limit);
  };
  TACHO_ASSIGN(const std::unique_ptr<Benchmark> benchmark, device.prepare(offer));
  TACHO_TRY(benchmark->calibrate(options.target > 0 ? options.target : device.run_time()));
  TACHO_ASSIGN(Benchmark::Sample first, benchmark->run());
  // Warm-up: clocks rise for some ms after idling.
  const double warm = std::max(first.duration, 40e6);
  for (double spent = 0; spent < warm;) {
    TACHO_TRY(in_time());
    TACHO_ASSIGN(first, benchmark->run());
    spent += std::max(first.duration, 1e5);
  }
  std::vector<double> durations, clocks;
  const auto take = [&]() -> Status {
    TACHO_TRY(in_time());
    TACHO_ASSIGN(const Benchmark::Sample sample, benchmark->run());
    durations.push_back(sample.duration);
    if (std::isfinite(sample.clock)) clocks.push_back(sample.clock);
    ++measurement.runs;
    return {};
  };
  const int64_t begin = raw_now();
  const auto spent = [&] { return static_cast<double>(raw_now() - begin); };
  double busy = 0;
  if (device.experiment_time() > 0) {
    const double most = std::min(options.seconds * 1e9, options.experiments * device.experiment_time());
    while (spent() < most ||
           durations.size() < kLeastRuns * std::min<size_t>(options.experiments, kSharedExperiments)) {
      TACHO_TRY(take());
      progress(std::min(spent() / most, 1.0));
    }
    busy = deal_out(durations, options.experiments);
  } else {
    for (uint32_t i = 0; i < options.experiments && (i < 10 || spent() <= options.seconds * 1e9); ++i) {
      TACHO_TRY(take());
      progress(static_cast<double>(i + 1) / options.experiments);
    }
  }
  measurement.group_size = benchmark->group_size();
  measurement.groups = benchmark->groups();
  measurement.work = benchmark->work();
  TACHO_TRY(benchmark->check());
  judge(measurement, durations, clocks, offer.peak_per_clock, device.info().max_clock);
  if (busy > 0.5)
    measurement.warnings.push_back(
        fmt::format("{}: {:.0f} % of the runs took more than 1.2 times as long as the fastest, so the device was busy; "
                    "the fastest of each experiment counts",
                    measurement.label, busy * 100));
  return {};
}

}  // namespace

void judge(Measurement& m, const std::vector<double>& durations, const std::vector<double>& clocks,
           double peak_per_clock, double max_clock) {
  std::vector<double> rates;
  for (const double duration : durations)
    if (duration > 0) rates.push_back(m.work / duration);  // per ns: 1e9 a second
  m.experiments = static_cast<uint32_t>(rates.size());
  if (rates.empty()) {
    m.skipped = "the device's clock shows no time passing";
    return;
  }
  m.duration = mean_of(durations);
  m.mean = mean_of(rates);
  m.low = *std::min_element(rates.begin(), rates.end());
  m.high = *std::max_element(rates.begin(), rates.end());
  double squares = 0;
  for (const double rate : rates) squares += (rate - m.mean) * (rate - m.mean);
  m.stdev = rates.size() > 1 ? std::sqrt(squares / static_cast<double>(rates.size() - 1)) : 0;
  if (!clocks.empty()) m.clock = mean_of(clocks);
  if (std::isfinite(peak_per_clock)) {
    m.peak = peak_per_clock * max_clock;
    m.peak_at_clock = peak_per_clock * m.clock;
  }
  if (m.of_peak() > 1.02)
    m.error = fmt::format("{}: {:.4g} {} are {:.1f} % of the theoretical peak of {:.4g}, more than a device can do; "
                          "the value is not to be trusted",
                          m.label, m.mean, m.unit, m.of_peak() * 100, m.peak);
  else if (m.of_peak() < 0.7)
    m.warnings.push_back(fmt::format(
        "{}: {:.4g} {} are only {:.1f} % of the theoretical peak of {:.4g}{}", m.label, m.mean, m.unit,
        m.of_peak() * 100, m.peak,
        m.clock < 0.95 * max_clock ? fmt::format(" (the clock fell from {:.0f} to {:.0f} MHz; at that clock {:.1f} %)",
                                                 max_clock, m.clock, m.mean / m.peak_at_clock * 100)
                                   : std::string()));
  if (m.stdev > 0.1 * m.mean)
    m.warnings.push_back(fmt::format("{}: the experiments differ by {:.0f} % (stdev); was the device busy?", m.label,
                                     m.stdev / m.mean * 100));
}

std::string result_line(const Measurement& m, int device) {
  if (!m.skipped.empty()) return fmt::format("{}, GPU ID: {}, not measured: {}", m.label, device, m.skipped);
  const bool bytes = m.unit == "GB/s", integer = m.unit == "GOP/s";
  const std::string_view unit = bytes ? "GB/sec" : integer ? "GOPS" : "GFLOPS";
  return fmt::format("{}, GPU ID: {}, workgroupSize:{}, workgroups:{}, experiments:{}, {}:{:.0f}{}, duration:{:.3g} "
                     "ms, mean:{:.1f} {}, stdev={:.1f} {}",
                     m.label, device, m.group_size, m.groups, m.experiments,
                     bytes     ? "traffic"
                     : integer ? "IOP"
                               : "FLOP",
                     m.work, bytes ? " bytes" : "", m.duration * 1e-6, m.mean, unit, m.stdev, unit);
}

#define TACHO_BACKEND(constant) extern const Backend constant;
#include "roofline/backends.def"
#undef TACHO_BACKEND

std::span<const Backend> backends() {
  static const Backend kAll[] = {
#define TACHO_BACKEND(constant) constant,
#include "roofline/backends.def"
#undef TACHO_BACKEND
  };
  return kAll;
}

std::vector<NumberedDevice> list_devices(std::vector<std::string>& notes, std::string_view backend) {
  std::vector<NumberedDevice> list;
  std::vector<const vendor::Vendor*> shown;  // vendors with a backend for their devices here
  for (const Backend& each : backends()) {
    if (!backend.empty() && backend != each.name) continue;
    std::string note;
    const std::vector<DeviceEntry> found = each.devices(note);
    if (found.empty() && !note.empty()) notes.push_back(note);
    for (const DeviceEntry& entry : found) {
      if (std::any_of(shown.begin(), shown.end(),
                      [&](const vendor::Vendor* vendor) { return vendor->made(entry.info.vendor); }))
        continue;
      list.push_back({static_cast<int>(list.size()), entry});
    }
    if (const vendor::Vendor* const vendor = vendor::vendor_named(each.vendor); !found.empty() && vendor != nullptr)
      shown.push_back(vendor);
  }
  return list;
}

Result<DeviceCeilings> measure(const NumberedDevice& device, const SuiteOptions& options) {
  const auto of = std::find_if(backends().begin(), backends().end(),
                               [&](const Backend& backend) { return backend.name == device.entry.info.backend; });
  if (of == backends().end()) return fail("there is no backend {}", device.entry.info.backend);
  TACHO_ASSIGN(const std::unique_ptr<BenchmarkDevice> opened, of->open(device.entry.backend_index));
  return measure(*opened, device.number, options);
}

Result<DeviceCeilings> measure(BenchmarkDevice& device, int number, const SuiteOptions& options) {
  DeviceCeilings ceilings;
  ceilings.device = device.info();
  ceilings.number = number;
  const auto say = [&](std::string_view text) {
    if (options.line) options.line(text);
  };
  const std::vector<Offer> offers = device.offers();
  for (const std::string& name : options.only)
    if (std::none_of(offers.begin(), offers.end(),
                     [&](const Offer& offer) { return offer.measurement.column == name; })) {
      std::string known;
      for (const Offer& offer : offers) known += (known.empty() ? "" : ", ") + offer.measurement.column;
      return fail("{}: there is no benchmark {}; there are {}", ceilings.device.name, name, known);
    }
  if (const Status status = device.try_out(); !status)
    return fail("{} does not execute kernels, so it has no ceilings: {}", ceilings.device.name, status.error().message);
  const auto wanted = [&](const Offer& offer) {
    return options.only.empty() ||
           std::find(options.only.begin(), options.only.end(), offer.measurement.column) != options.only.end();
  };
  Estimate estimate(options.estimate,
                    static_cast<size_t>(std::count_if(offers.begin(), offers.end(), [&](const Offer& offer) {
                      return wanted(offer) && offer.measurement.skipped.empty();
                    })));
  const int64_t start = raw_now();
  for (const Offer& offer : offers) {
    Measurement measurement = offer.measurement;
    if (!wanted(offer)) continue;
    if (measurement.skipped.empty() && static_cast<double>(raw_now() - start) >= options.total_limit * 1e9)
      measurement.skipped =
          fmt::format("the benchmarks before it took {:g} s, the limit for all of them", options.total_limit);
    if (measurement.skipped.empty()) {
      if (const Status status = measure_one(device, offer, options, estimate, measurement); !status)
        measurement.skipped = status.error().message;
      estimate.finished();
    }
    say(result_line(measurement, number));
    ceilings.measurements.push_back(std::move(measurement));
  }
  if (std::all_of(ceilings.measurements.begin(), ceilings.measurements.end(),
                  [](const Measurement& m) { return !m.skipped.empty(); }))
    return fail("{}: nothing could be measured: {}", ceilings.device.name, ceilings.measurements.front().skipped);
  return ceilings;
}

}  // namespace tacho::roofline
