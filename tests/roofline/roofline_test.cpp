// The ceilings: small number formats, the judgement of measurements, roofline.csv and its reuse, the model's bounds,
// the kernels through NVIDIA's assembler where there is one, and a short measurement of an OpenCL device where there is
// one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>
#include <tuple>

#include "metric/analysis/roofline_points.h"
#include "roofline/ceilings_file.h"
#include "roofline/cuda/ptx.h"
#include "roofline/mfma.h"
#include "roofline/numbers.h"
#include "roofline/opencl/source.h"
#include "roofline/peaks.h"
#include "roofline/scale_work.h"
#include "roofline/suite.h"
#include "support/folder.h"
#include "workload/ceilings.h"

namespace tacho::roofline {
namespace {

namespace fs = std::filesystem;

using test::Folder;

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

Measurement measured(std::string column, std::string unit, double mean) {
  Measurement m;
  m.column = std::move(column);
  m.label = m.column;
  m.unit = std::move(unit);
  m.mean = m.low = m.high = mean;
  m.stdev = mean / 100;
  m.experiments = 100;
  m.path = "a, b";
  return m;
}

DeviceCeilings device() {
  DeviceCeilings ceilings;
  ceilings.device.backend = "cuda";
  ceilings.device.name = "NVIDIA H200";
  ceilings.device.driver = "580.1";
  ceilings.device.id = "0000:01:00.0";
  ceilings.measurements = {measured("HBMReadBw", "GB/s", 4500), measured("HBMCopyBw", "GB/s", 3900),
                           measured("FP32Flops", "GFLOP/s", 65000)};
  return ceilings;
}

TEST(RooflineNumbers, HalvesAreThemselves) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const double value = from_half(static_cast<uint16_t>(bits));
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(to_half(value), bits) << value;
  }
  EXPECT_EQ(to_half(1 + std::ldexp(1, -11)), to_half(1)) << "ties go to even";
  EXPECT_EQ(to_half(1 + std::ldexp(3, -11)), 0x3C02);
  EXPECT_EQ(to_half(2047.9), to_half(2048));
}

TEST(RooflineNumbers, SmallFormats) {
  EXPECT_EQ(from_e4m3(0x38), 1);
  EXPECT_EQ(from_e4m3(0xC0), -2);
  EXPECT_EQ(from_e4m3(0x7E), 448);
  EXPECT_EQ(from_e4m3(0x01), std::ldexp(1, -9));
  EXPECT_TRUE(std::isnan(from_e4m3(0xFF)));
  EXPECT_EQ(from_e4m3fnuz(0x40), 1);
  EXPECT_EQ(from_e4m3fnuz(0xC8), -2);
  EXPECT_EQ(from_e4m3fnuz(0x7F), 240);
  EXPECT_EQ(from_e4m3fnuz(0x01), std::ldexp(1, -10));
  EXPECT_TRUE(std::isnan(from_e4m3fnuz(0x80)));
  EXPECT_EQ(from_bfloat(0x3FC0), 1.5);
  EXPECT_EQ(from_tf32(0x3F801FFF), 1);
}

TEST(RooflineJudge, RatesAndSpread) {
  Measurement m;
  m.label = "Peak";
  m.unit = "GFLOP/s";
  m.work = 1e9;
  judge(m, {1e6, 2e6}, {1000, 2000}, 1, 1000);
  EXPECT_DOUBLE_EQ(m.mean, 750);
  EXPECT_DOUBLE_EQ(m.low, 500);
  EXPECT_DOUBLE_EQ(m.high, 1000);
  EXPECT_NEAR(m.stdev, 250 * std::sqrt(2), 1e-9);
  EXPECT_DOUBLE_EQ(m.clock, 1500);
  EXPECT_DOUBLE_EQ(m.peak, 1000);
  EXPECT_DOUBLE_EQ(m.peak_at_clock, 1500);
  ASSERT_EQ(m.warnings.size(), 1U);
  EXPECT_NE(m.warnings[0].find("busy"), std::string::npos);
  EXPECT_TRUE(m.error.empty());
}

TEST(RooflineJudge, AboveThePeakIsAnErrorFarBelowAWarning) {
  for (const auto& [duration, error, warnings] : {std::tuple{1e6 / 1.019, false, 0U},
                                                  {1e6 / 1.021, true, 0U},
                                                  {1e6 / 0.71, false, 0U},
                                                  {1e6 / 0.69, false, 1U}}) {
    Measurement m;
    m.work = 1e9;
    judge(m, {duration, duration}, {}, 1, 1000);
    EXPECT_EQ(!m.error.empty(), error) << duration;
    EXPECT_EQ(m.warnings.size(), warnings) << duration;
  }
  Measurement unknown;  // no peak: nothing to say
  unknown.work = 1e9;
  judge(unknown, {1e6, 1e6}, {}, kUnknown, 1000);
  EXPECT_TRUE(unknown.error.empty() && unknown.warnings.empty());
  Measurement nothing;
  judge(nothing, {0, 0}, {}, 1, 1);
  EXPECT_FALSE(nothing.skipped.empty()) << "zero durations";
}

// A device made to order: offers, durations of runs, failing benchmarks.
class FakeDevice : public BenchmarkDevice {
 public:
  struct Unit {
    std::string column = {}, skipped = {}, prepare_error = {}, check_error = {};
    std::vector<double> durations = {1e6};  // of the runs, one after the other, again and again
    int wall_ms = 0;                        // that a run really takes
  };
  class Runs : public Benchmark {
   public:
    explicit Runs(const Unit& unit) : unit_(unit) {}
    Status calibrate(double) override { return {}; }
    Result<Sample> run() override {
      std::this_thread::sleep_for(std::chrono::milliseconds(unit_.wall_ms));
      return Sample{unit_.durations[count_++ % unit_.durations.size()], 1000};
    }
    Status check() override { return unit_.check_error.empty() ? Status() : fail("{}", unit_.check_error); }
    double work() const override { return 1e9; }
    uint32_t group_size() const override { return 256; }
    uint32_t groups() const override { return 10; }

   private:
    Unit unit_;
    size_t count_ = 0;
  };
  explicit FakeDevice(std::vector<Unit> units, double experiment_time = 0)
      : units_(std::move(units)), experiment_time_(experiment_time) {
    info_.name = "fake";
    info_.max_clock = 1000;
  }
  const DeviceInfo& info() const override { return info_; }
  double experiment_time() const override { return experiment_time_; }
  std::vector<Offer> offers() const override {
    std::vector<Offer> list;
    for (const Unit& unit : units_) {
      Offer& offer = list.emplace_back();
      offer.index = static_cast<int>(list.size()) - 1;
      offer.measurement.column = offer.measurement.label = unit.column;
      offer.measurement.unit = "GFLOP/s";
      offer.measurement.skipped = unit.skipped;
    }
    return list;
  }
  Result<std::unique_ptr<Benchmark>> prepare(const Offer& offer) override {
    const Unit& unit = units_[static_cast<size_t>(offer.index)];
    if (!unit.prepare_error.empty()) return fail("{}", unit.prepare_error);
    ++prepared;
    return std::make_unique<Runs>(unit);
  }
  Status try_out() override { return wrong.empty() ? Status() : fail("{}", wrong); }
  std::string wrong;  // the error of try_out()
  int prepared = 0;

 private:
  std::vector<Unit> units_;
  double experiment_time_;
  DeviceInfo info_;
};

TEST(RooflineSuite, WhatADeviceCannotDoIsNamedAndTheOthersGoOn) {
  FakeDevice device({{.column = "FP64Flops", .skipped = "the device has no FP64 (cl_khr_fp64)"},
                     {.column = "HBMReadBw", .prepare_error = "4096 MiB of device memory: out of memory"},
                     {.column = "FP32Flops", .check_error = "chain 0 has another value"},
                     {.column = "I64Ops", .durations = {0}},
                     {.column = "I32Ops"}});
  SuiteOptions options;
  options.experiments = 4;
  std::vector<std::string> lines;
  options.line = [&](std::string_view line) { lines.emplace_back(line); };
  const Result<DeviceCeilings> ceilings = measure(device, 3, options);
  ASSERT_TRUE(ceilings) << ceilings.error().message;
  ASSERT_EQ(ceilings->measurements.size(), 5U);
  EXPECT_NE(ceilings->find("FP64Flops")->skipped.find("no FP64"), std::string::npos);
  EXPECT_NE(ceilings->find("HBMReadBw")->skipped.find("out of memory"), std::string::npos);
  EXPECT_NE(ceilings->find("FP32Flops")->skipped.find("another value"), std::string::npos)
      << "a wrong result has no rate";
  EXPECT_NE(ceilings->find("I64Ops")->skipped.find("no time passing"), std::string::npos);
  EXPECT_DOUBLE_EQ(ceilings->find("I32Ops")->mean, 1000);
  EXPECT_EQ(ceilings->find("I32Ops")->experiments, 4U);
  EXPECT_EQ(ceilings->find("I32Ops")->runs, 4U);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[1], "HBMReadBw, GPU ID: 3, not measured: 4096 MiB of device memory: out of memory");
  const std::string csv = to_csv({*ceilings}, "now");
  EXPECT_EQ(csv.find("nan"), std::string::npos);

  FakeDevice nothing(
      {{.column = "HBMReadBw", .prepare_error = "out of memory"}, {.column = "FP16Flops", .skipped = "no FP16"}});
  const Result<DeviceCeilings> none = measure(nothing, 0, options);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "fake: nothing could be measured: out of memory");
}

TEST(RooflineSuite, ADeviceThatExecutesNothingIsNotMeasured) {
  FakeDevice device({{.column = "HBMReadBw"}, {.column = "FP32Flops"}});
  device.wrong = "chain 0 has another value";
  const Result<DeviceCeilings> ceilings = measure(device, 0, {});
  ASSERT_FALSE(ceilings);
  EXPECT_EQ(ceilings.error().message,
            "fake does not execute kernels, so it has no ceilings: chain 0 has another value");
  EXPECT_EQ(device.prepared, 0);
}

TEST(RooflineSuite, ABusyDeviceIsSeenFromTheSpread) {
  SuiteOptions options;
  options.experiments = 8;
  FakeDevice busy({{.column = "FP32Flops", .durations = {1e6, 2e6}}});
  const Result<DeviceCeilings> spread = measure(busy, 0, options);
  ASSERT_TRUE(spread);
  ASSERT_EQ(spread->measurements[0].warnings.size(), 1U);
  EXPECT_NE(spread->measurements[0].warnings[0].find("was the device busy?"), std::string::npos);
  // A CPU whose other programs take half of the runs away: the fastest run of each experiment is a whole one.
  const std::vector<double> taken = {3e6, 1e6, 1e6, 2e6, 1e6, 1e6, 1e6, 1e6, 1e6, 9e6, 1e6};
  FakeDevice shared({{.column = "FP32Flops", .durations = taken}}, 2e5);
  const Result<DeviceCeilings> whole = measure(shared, 0, options);
  ASSERT_TRUE(whole);
  const Measurement& m = whole->measurements[0];
  EXPECT_TRUE(m.warnings.empty()) << m.warnings.front();
  EXPECT_DOUBLE_EQ(m.mean, 1000);
  EXPECT_EQ(m.stdev, 0);
  EXPECT_GE(m.experiments, 4U);
  EXPECT_LE(m.experiments, 8U);
  EXPECT_GE(m.runs, 4 * m.experiments);
  // Where most runs are slow it is said, whatever the fastest ones make of it.
  std::vector<double> mostly(11, 2e6);
  mostly[3] = mostly[7] = mostly[9] = 1e6;
  FakeDevice crowded({{.column = "FP32Flops", .durations = mostly}}, 2e5);
  const Result<DeviceCeilings> rest = measure(crowded, 0, options);
  ASSERT_TRUE(rest);
  ASSERT_FALSE(rest->measurements[0].warnings.empty());
  EXPECT_NE(rest->measurements[0].warnings.back().find("the device was busy"), std::string::npos);
}

TEST(RooflineSuite, ItEndsInTime) {
  // Runs of which the clock sees next to nothing, so that the experiments of a shared device would never be enough.
  FakeDevice slow({{.column = "FP32Flops", .durations = {1e5}, .wall_ms = 20}, {.column = "I32Ops", .wall_ms = 20}});
  SuiteOptions options;
  options.limit = 0.1;
  const Result<DeviceCeilings> none = measure(slow, 0, options);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message,
            "fake: nothing could be measured: it takes longer than 0.1 s: the device is too slow for it, or occupied");
  options.limit = 10;
  options.total_limit = 0.01;
  options.experiments = 2;
  FakeDevice quick({{.column = "FP32Flops", .durations = {40e6}, .wall_ms = 20}, {.column = "I32Ops"}});
  const Result<DeviceCeilings> first = measure(quick, 0, options);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->measurements[1].skipped, "the benchmarks before it took 0.01 s, the limit for all of them");
}

TEST(RooflineSuite, WorkThatCostsNoTimeIsNotScaledForEver) {
  uint32_t count = 8;
  const auto after = [&count](double overhead, double each) {
    return
        [&count, overhead, each]() -> Result<Benchmark::Sample> { return Benchmark::Sample{overhead + each * count}; };
  };
  ASSERT_TRUE(scale_work(3e6, 8, 1e9, count, after(0, 10)));
  EXPECT_EQ(count, 300000U);
  count = 8;  // a launch that costs more than its work at first
  ASSERT_TRUE(scale_work(3e6, 8, 1e9, count, after(5000, 1)));
  EXPECT_NEAR(count, 3e6, 1e6);
  count = 8;
  const Status never = scale_work(3e6, 8, 1e9, count, after(3000, 0));
  ASSERT_FALSE(never);
  EXPECT_NE(never.error().message.find("takes no longer"), std::string::npos);
  count = 8;
  EXPECT_FALSE(scale_work(3e6, 8, 1e9, count, []() -> Result<Benchmark::Sample> { return fail("lost"); }));
}

TEST(RooflineFile, UpstreamsColumnsThenOurs) {
  DeviceCeilings ceilings = device();
  ceilings.measurements.push_back(measured("I8Ops", "GOP/s", 5));
  ceilings.measurements.back().skipped = "no such unit";
  ceilings.measurements.push_back(measured("I32Ops", "GOP/s", 7));
  ceilings.measurements.back().error = "more than the peak";
  const std::string text = to_csv({ceilings}, "2026-01-01T00:00:00Z");
  EXPECT_TRUE(text.starts_with(
      "device,HBMBw,HBMBwLow,hbmBwHigh,L2Bw,L2BwLow,L2BwHigh,L1Bw,L1BwLow,L1BwHigh,LDSBw,LDSBwLow,LDSBwHigh,FP32Flops,FP32FlopsLow,FP32FlopsHigh,FP64Flops,FP64FlopsLow,FP64FlopsHigh,MFMABF16Flops,MFMABF16FlopsLow,MFMABF16FlopsHigh,MFMAF16Flops,MFMAF16FlopsLow,MFMAF16FlopsHigh,MFMAF32Flops,MFMAF32FlopsLow,MFMAF32FlopsHigh,MFMAF64Flops,MFMAF64FlopsLow,MFMAF64FlopsHigh,MFMAI8Ops,MFMAFI8OpsLow,MFMAI8OpsHigh,"
      ""));
  const Folder folder;
  write(folder / "roofline.csv", text);
  std::vector<std::string> warnings;
  const auto rows = workload::read_ceilings(folder / "roofline.csv", warnings);
  EXPECT_TRUE(warnings.empty()) << warnings.front();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].get("HBMBw"), 4500) << "the best of the patterns";
  EXPECT_EQ(rows[0].get("HBMCopyBw"), 3900);
  EXPECT_NEAR(rows[0].get("HBMBwLow"), 4500 - 1.96 * 45 / 10, 1e-3);
  EXPECT_EQ(rows[0].get("FP32FlopsStdev"), 650);
  EXPECT_TRUE(std::isnan(rows[0].get("I8Ops")));
  EXPECT_TRUE(std::isnan(rows[0].get("I32Ops"))) << "a value that is not to be trusted is no ceiling";
  EXPECT_TRUE(std::isnan(rows[0].get("L2Bw")));
  EXPECT_EQ(rows[0].text("DeviceName"), "NVIDIA H200");
  EXPECT_EQ(rows[0].text("FP32FlopsPath"), "a, b");
}

TEST(RooflineFile, IsReusedOnlyOnItsDeviceAndDriver) {
  const Folder folder;
  const std::string path = folder / "roofline.csv";
  const DeviceCeilings ceilings = device();
  EXPECT_EQ(compare_file(path, ceilings.device).match, Match::kMissing);
  write(path, to_csv({ceilings}, "2026-01-01T00:00:00Z"));
  EXPECT_EQ(compare_file(path, ceilings.device).match, Match::kSame);
  DeviceInfo other = ceilings.device;
  other.driver = "600.0";
  EXPECT_EQ(compare_file(path, other).match, Match::kOther);
  EXPECT_NE(compare_file(path, other).what.find("driver 580.1"), std::string::npos);
  other = ceilings.device;
  other.name = "NVIDIA A100";
  EXPECT_EQ(compare_file(path, other).match, Match::kOther);
  other = ceilings.device;
  other.id = "0000:02:00.0";
  EXPECT_EQ(compare_file(path, other).match, Match::kOther);
  write(path, "device,HBMBw,HBMBwLow,hbmBwHigh\n0,1388.8,1388.2,1389.4\n");  // of ROCm Compute Profiler
  EXPECT_EQ(compare_file(path, ceilings.device).match, Match::kOther);
  write(path, "device,HBMBw\n0\n");
  EXPECT_EQ(compare_file(path, ceilings.device).match, Match::kUnreadable);
  write(path, "");
  EXPECT_EQ(compare_file(path, ceilings.device).match, Match::kUnreadable);
}

TEST(RooflineFile, StaleOnesArePutAsideAndTheCacheServes) {
  const Folder folder, cache;
  setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);
  const DeviceCeilings ceilings = device();
  ASSERT_TRUE(store_in_cache(ceilings));
  write(folder / "roofline.csv", "device,HBMBw\n0,5\n");
  write(folder / "roofline.csv.1", "kept before");
  std::vector<std::string> lines;
  SuiteOptions options;
  options.line = [&](std::string_view line) { lines.emplace_back(line); };
  NumberedDevice numbered;
  numbered.entry.info = ceilings.device;
  const Status status = ensure_roofline(folder.path(), numbered, 1, options);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(read(folder / "roofline.csv.1"), "kept before");
  EXPECT_EQ(read(folder / "roofline.csv.2"), "device,HBMBw\n0,5\n");
  EXPECT_EQ(compare_file(folder / "roofline.csv", ceilings.device).match, Match::kSame);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], "[roofline] Checking for roofline.csv in " + folder.path());
  EXPECT_NE(lines[1].find("cannot be used"), std::string::npos);
  EXPECT_NE(lines[2].find("No roofline data found. Using the measurements made"), std::string::npos);
  lines.clear();
  ASSERT_TRUE(ensure_roofline(folder.path(), numbered, 1, options));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_NE(lines[1].find("not run again"), std::string::npos);
}

TEST(RooflineModel, TheLowestRoofBinds) {
  using metric::Bound;
  using metric::Roof;
  const std::vector<Roof> roofs = {{"hbm", 0.01, 10, 1, 1000, 100},
                                   {"l2", 0.01, 2, 5, 1000, 500},
                                   {"valu", 2, 1000, 1000, 1000, 1000},
                                   {"mfma", 8, 1000, 4000, 4000, 4000}};
  metric::IntensityPoint point;
  point.performance = 50;
  point.hbm = 1;
  point.l2 = 0.5;
  point.l1 = point.lds = kUnknown;
  Bound bound = metric::bound_of(point, roofs);
  ASSERT_NE(bound.roof, nullptr);
  EXPECT_EQ(bound.roof->name, "hbm");
  EXPECT_DOUBLE_EQ(bound.attainable, 100);
  EXPECT_DOUBLE_EQ(bound.reached, 50);
  EXPECT_DOUBLE_EQ(bound.headroom, 2);
  point.hbm = 100;
  point.l2 = 100;
  bound = metric::bound_of(point, roofs);
  EXPECT_EQ(bound.roof->name, "mfma") << "the higher of the compute roofs";
  EXPECT_EQ(metric::bound_of(point, std::span(roofs).first(3)).roof->name, "valu");
  point.hbm = point.l2 = kUnknown;  // no counters of a level
  EXPECT_EQ(metric::bound_of(point, std::span(roofs).first(2)).roof, nullptr);
  point.performance = kUnknown;  // no time
  EXPECT_EQ(metric::bound_of(point, roofs).roof, nullptr);
}

TEST(RooflineModel, KernelsWithoutFlopsAreMeasuredByTheirBytes) {
  using metric::Roof;
  const std::vector<Roof> roofs = {
      {"hbm", 0.01, 10, 1, 1000, 100}, {"l2", 0.01, 2, 5, 1000, 500}, {"valu", 2, 1000, 1000, 1000, 1000}};
  metric::IntensityPoint point;
  point.bandwidth = {80, 90, kUnknown, kUnknown};
  metric::Bound bound = metric::bound_of(point, roofs);
  ASSERT_NE(bound.roof, nullptr);
  EXPECT_EQ(bound.roof->name, "hbm") << "the level nearest to its roof";
  EXPECT_TRUE(bound.bandwidth);
  EXPECT_DOUBLE_EQ(bound.attainable, 100);
  EXPECT_DOUBLE_EQ(bound.reached, 80);
  EXPECT_DOUBLE_EQ(bound.headroom, 1.25);
  point.bandwidth[1] = 499;
  EXPECT_EQ(metric::bound_of(point, roofs).roof->name, "l2");
  point.bandwidth.fill(kUnknown);
  EXPECT_EQ(metric::bound_of(point, roofs).roof, nullptr);
  EXPECT_TRUE(metric::above_roof_text(0).empty());
  EXPECT_TRUE(metric::above_roof_text(1).starts_with("1 point lies above a roof"));
  EXPECT_TRUE(metric::above_roof_text(2).starts_with("2 points lie above a roof"));
}

TEST(RooflineModel, EveryKernelHasTheRoofsOfItsType) {
  using metric::IntensityFormulas;
  const std::vector<IntensityFormulas::Kind> kinds = {
      {{"FP32", false}, ""}, {{"BF16", true}, ""}, {{"FP32", true}, ""}, {{"FP64", false}, ""}};
  metric::IntensityPoint point;
  point.flops = {3, 5, 4, kUnknown};
  EXPECT_EQ(metric::main_data_type(point, kinds), "FP32") << "vector and matrix unit together";
  point.flops = {1, 5, 1, kUnknown};
  EXPECT_EQ(metric::main_data_type(point, kinds), "BF16");
  metric::IntensityPoint none, other;
  EXPECT_EQ(metric::main_data_type(none, kinds), "");
  other.flops = {0, 0, 0, 9};
  workload::RooflineCeilings ceilings;
  ceilings.values = {{"HBMBw", 1000}, {"FP32Flops", 20000}, {"MFMABF16Flops", 40000}};
  const std::vector<metric::IntensityPoint> points = {none, point, other, point};
  EXPECT_EQ(metric::data_types_of(points, kinds, &ceilings), (std::vector<std::string>{"BF16"}))
      << "there is no peak of FP64";
  EXPECT_EQ(metric::data_types_of(points, kinds, nullptr), (std::vector<std::string>{"BF16", "FP64"}));
  EXPECT_EQ(metric::data_types_of(std::span(points).first(1), kinds, &ceilings), (std::vector<std::string>{"FP32"}));
}

TEST(RooflinePeaks, KnownChips) {
  // Data sheets: H100/H200 SXM at 1.83 GHz 989 TFLOP/s BF16; at 1.98 GHz 66.9 TFLOP/s FP32, half of it FP64.
  EXPECT_NEAR(per_cycle("sm_90", "mma_bf16") * 132 * 1.83e9, 989.4e12, 1e12);
  EXPECT_NEAR(per_cycle("sm_90", "fp32") * 132 * 1.98e9, 66.9e12, 1e11);
  EXPECT_NEAR(per_cycle("sm_80", "fp32") * 108 * 1.41e9, 19.5e12, 1e11);
  EXPECT_NEAR(per_cycle("sm_80", "mma_f16") * 108 * 1.41e9, 312e12, 1e12);
  EXPECT_TRUE(std::isnan(per_cycle("sm_990", "fp32")));
  EXPECT_TRUE(std::isnan(per_cycle("gfx906", "fp32")));
  EXPECT_NEAR(per_cycle("gfx942", "fp32") * 304 * 2.1e9, 163.4e12, 1e11);
  EXPECT_NEAR(per_cycle("gfx90a", "fp64") * 220 * 1.7e9, 47.9e12, 1e11);
  struct Sheet {  // of the MI100, MI250X, MI300X and MI355X, TFLOP/s or TOP/s
    std::string_view architecture;
    double cus, ghz;
    std::map<Element, double> rates;
  };
  const std::vector<Sheet> sheets = {
      {"gfx908",
       120,
       1.502,
       {{Element::kFloat, 46.1}, {Element::kHalf, 184.6}, {Element::kBfloat, 92.3}, {Element::kInt8, 184.6}}},
      {"gfx90a",
       220,
       1.7,
       {{Element::kDouble, 95.7},
        {Element::kFloat, 95.7},
        {Element::kHalf, 383},
        {Element::kBfloat, 383},
        {Element::kInt8, 383}}},
      {"gfx942",
       304,
       2.1,
       {{Element::kDouble, 163.4},
        {Element::kFloat, 163.4},
        {Element::kTf32, 653.7},
        {Element::kHalf, 1307.4},
        {Element::kBfloat, 1307.4},
        {Element::kE4m3Fnuz, 2614.9},
        {Element::kInt8, 2614.9}}},
      {"gfx950",
       256,
       2.4,
       {{Element::kDouble, 78.6},
        {Element::kFloat, 157.3},
        {Element::kHalf, 2516.6},
        {Element::kBfloat, 2516.6},
        {Element::kE4m3, 5033.2},
        {Element::kInt8, 5033.2}}}};
  size_t seen = 0;
  for (const Sheet& sheet : sheets)
    for (const MfmaKind& kind : mfma_kinds(sheet.architecture))
      if (sheet.architecture == kind.architecture) {
        ++seen;
        ASSERT_TRUE(sheet.rates.contains(kind.element)) << kind.instruction;
        EXPECT_NEAR(kind.per_cycle * sheet.cus * sheet.ghz * 1e-3, sheet.rates.at(kind.element),
                    0.003 * sheet.rates.at(kind.element))
            << kind.architecture << " " << kind.instruction;
      }
  EXPECT_EQ(seen, 22U);
  EXPECT_EQ(mfma_architectures(), "gfx908, gfx90a, gfx942 and gfx950");
}

std::string assembler() {
  for (const std::string& path : {std::string("/usr/local/cuda/bin/ptxas"), std::string("/usr/bin/ptxas")})
    if (access(path.c_str(), X_OK) == 0) return path;
  return {};
}

void assemble(const std::string& name, const std::string& ptx, std::initializer_list<const char*> architectures) {
  const Folder folder;
  write(folder / "k.ptx", ptx);
  for (const char* architecture : architectures) {
    const std::string command = fmt::format("{} -v -arch={} {} -o {} > {} 2>&1", assembler(), architecture,
                                            folder / "k.ptx", folder / "k.cubin", folder / "log");
    EXPECT_EQ(std::system(command.c_str()), 0) << name << " for " << architecture << ": " << read(folder / "log");
    const std::string log = read(folder / "log");
    EXPECT_NE(log.find("0 bytes spill stores"), std::string::npos) << name << ": " << log;
    EXPECT_EQ(log.find("warning"), std::string::npos) << name << ": " << log;
  }
}

TEST(RooflinePtx, VectorAndMemoryKernelsAssemble) {
  if (assembler().empty()) GTEST_SKIP() << "no ptxas on this machine";
  for (const VectorKind& kind : vector_kinds())
    assemble(std::string(kind.name), vector_ptx(kind), {"sm_80", "sm_90a", "sm_100"});
  for (const char* name : {"dram_read", "dram_write", "dram_copy", "dram_triad", "l2", "l1", "shared"})
    assemble(name, memory_ptx(name), {"sm_80", "sm_90a", "sm_100"});
}

TEST(RooflinePtx, MatrixKernelsAssemble) {
  if (assembler().empty()) GTEST_SKIP() << "no ptxas on this machine";
  for (const MmaKind& kind : mma_kinds()) {
    if (kind.target == "sm_80")
      assemble(std::string(kind.name), mma_ptx(kind), {"sm_80", "sm_90a", "sm_100"});
    else
      assemble(std::string(kind.name), mma_ptx(kind), {"sm_90a", "sm_100"});
  }
  for (const WgmmaKind& kind : wgmma_kinds()) assemble(std::string(kind.name), wgmma_ptx(kind, true), {"sm_90a"});
}

TEST(RooflineMfma, NamesOfDevices) {
  EXPECT_EQ(gfx_of("gfx90a:sramecc+:xnack-"), "gfx90a");
  EXPECT_EQ(gfx_of("gfx942"), "gfx942");
  EXPECT_EQ(gfx_of("AMD Instinct MI100 (radeonsi, gfx908, LLVM 17)"), "gfx908");
  EXPECT_EQ(gfx_of("gfx1100"), "gfx1100");
  EXPECT_EQ(gfx_of("gfx"), "");
  EXPECT_EQ(gfx_of("Tahiti"), "");
}

// The command of the first clang that compiles for `architecture`; empty where none does.
std::string clang_for(std::string_view architecture) {
  const Folder folder;
  write(folder / "empty.cl", "kernel void empty() {}\n");
  std::vector<std::string> compilers;
  if (const char* chosen = std::getenv("TACHO_CLANG"); chosen != nullptr) compilers.emplace_back(chosen);
  for (int version = 23; version >= 14; --version) compilers.push_back(fmt::format("clang-{}", version));
  compilers.emplace_back("clang");
  for (const std::string& compiler : compilers) {
    std::string command = fmt::format("{} -x cl -cl-std=CL1.2 -target amdgcn-amd-amdhsa -mcpu={} -nogpulib -O3 -S",
                                      compiler, architecture);
    if (std::system(fmt::format("{} {} -o /dev/null > /dev/null 2>&1", command, folder / "empty.cl").c_str()) == 0)
      return command;
  }
  return {};
}

// The assembly, or with `good` false the compiler's message.
std::string compiled(const std::string& command, const std::string& source, bool good = true) {
  const Folder folder;
  write(folder / "k.cl", source);
  const int status = std::system(
      fmt::format("{} {} -o {} > {} 2>&1", command, folder / "k.cl", folder / "k.s", folder / "log").c_str());
  EXPECT_EQ(status == 0, good) << command << ": " << read(folder / "log");
  return read(folder / (good ? "k.s" : "log"));
}

class RooflineMfmaCompiles : public testing::TestWithParam<const char*> {};

TEST_P(RooflineMfmaCompiles, ToTheInstructionsThatAreCounted) {
  const std::string clang = clang_for(GetParam());
  if (clang.empty())
    GTEST_SKIP() << "no clang on this machine compiles for " << GetParam() << " (TACHO_CLANG names another one)";
  size_t kernels = 0;
  for (const MfmaKind& kind : mfma_kinds(GetParam())) {
    const std::string text = compiled(clang, mfma_source(kind));
    ++kernels;
    // The body of the kernel: as many of the instruction as one trip of its loop has, and no other.
    const size_t from = text.find(fmt::format("\n{}:", kMfmaEntry));
    const size_t to = text.find("s_endpgm", from);
    ASSERT_NE(from, std::string::npos) << kind.instruction;
    ASSERT_NE(to, std::string::npos) << kind.instruction;
    std::istringstream lines(text.substr(from, to - from));
    uint32_t wanted = 0, all = 0;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string word;
      words >> word;
      all += word.starts_with("v_mfma") ? 1 : 0;
      wanted += word == kind.instruction || word == fmt::format("{}_e64", kind.instruction) ? 1 : 0;
    }
    EXPECT_EQ(wanted, kMfmaTiles * kMfmaUnroll) << kind.instruction;
    EXPECT_EQ(all, wanted) << kind.instruction;
    EXPECT_EQ(text.find("vgpr_spill_count: 0"), text.find("vgpr_spill_count:")) << kind.instruction;
    EXPECT_NE(text.find("s_memrealtime"), std::string::npos) << kind.instruction;
  }
  EXPECT_GE(kernels, 4U);
  // The vector and memory kernels are OpenCL C without builtins.
  for (const char* options : {"-DT=half -DV=half -DLANES=1 -DCHAINS=10 -DUNROLL=8 -DVECTOR -DHALF -DFLOATING",
                              "-DT=double -DV=double -DLANES=1 -DCHAINS=10 -DUNROLL=8 -DVECTOR -DDOUBLE -DFLOATING",
                              "-DT=uint -DV=uint4 -DLANES=4 -DCHAINS=10 -DUNROLL=8"})
    EXPECT_NE(compiled(fmt::format("{} {}", clang, options), std::string(kOpenClSource)), "");
}

INSTANTIATE_TEST_SUITE_P(Cdna, RooflineMfmaCompiles, testing::Values("gfx908", "gfx90a", "gfx942", "gfx950"),
                         [](const auto& each) { return std::string(each.param); });

// A compiler that lacks a builtin stops at the line that is made for that.
TEST(RooflineMfma, AnUnknownBuiltinIsNamed) {
  const std::string clang = clang_for("gfx908");
  if (clang.empty()) GTEST_SKIP() << "no clang on this machine compiles for gfx908";
  MfmaKind kind = mfma_kinds("gfx908").front();
  kind.builtin = "__builtin_amdgcn_mfma_f32_1x1x1f32";
  const std::string log = compiled(clang, mfma_source(kind), false);
  EXPECT_NE(log.find(fmt::format("error: \"{}{}\"", kMfmaUnknown, kind.builtin)), std::string::npos) << log;
}

TEST(RooflineSuite, AnOpenClDeviceComputesWhatIsCounted) {
  std::vector<std::string> notes;
  const std::vector<NumberedDevice> devices = list_devices(notes, "opencl");
  if (devices.empty()) GTEST_SKIP() << "no OpenCL device on this machine";
  SuiteOptions options;
  options.experiments = 3;
  options.target = 5e5;
  options.seconds = 0.05;
  options.only = {"L1Bw", "LDSBw", "FP32Flops", "I32Ops", "I64Ops", "I8Ops", "HBMTriadBw"};
  std::vector<std::string> lines;
  options.line = [&](std::string_view line) { lines.emplace_back(line); };
  const Result<DeviceCeilings> ceilings = measure(devices.front(), options);
  ASSERT_TRUE(ceilings) << ceilings.error().message;
  ASSERT_EQ(ceilings->measurements.size(), options.only.size());
  for (const Measurement& m : ceilings->measurements) {
    EXPECT_TRUE(m.skipped.empty()) << m.label << ": " << m.skipped;
    EXPECT_GT(m.mean, 0) << m.label;
    EXPECT_GE(m.experiments, 3U);
  }
  EXPECT_NE(lines.front().find("workgroupSize:"), std::string::npos) << lines.front();
  options.only = {"NoSuchColumn"};
  EXPECT_FALSE(measure(devices.front(), options));
}

}  // namespace
}  // namespace tacho::roofline
