// NVIDIA's counters without a GPU: every formula of the catalog against CUPTI's own lists for three chips, pass counts,
// plans, and the structures that are declared here against the headers.
#include "counter/provider/nvidia/host.h"

#include <gtest/gtest.h>
#include <string.h>

#include "counter/provider.h"
#include "counter/provider/nvidia/images.h"
#include "counter/wanted.h"
#include "event/spool/spool_ranges.h"
#include "metric/catalog/builtin/builtin.h"
#include "metric/catalog/catalog.h"
#include "metric/formula/program.h"

namespace tacho::counter::nvidia {
namespace {

constexpr const char* kArchitectures[] = {"sm_80", "sm_90", "sm_100"};

class NvidiaHost : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (Host::library().empty()) {
#ifdef TACHO_CUDA_HOME
      FAIL() << "the CUDA toolkit is installed in " TACHO_CUDA_HOME ", but its libcupti.so was not found";
#else
      GTEST_SKIP() << "no CUPTI on this machine";
#endif
    }
    auto opened = Host::open(std::string(metric::built_in_architecture(GetParam())->text("chip")));
    ASSERT_TRUE(opened) << opened.error().message;
    host = std::move(*opened);
    auto loaded = metric::load_catalog(GetParam());
    ASSERT_TRUE(loaded) << loaded.error().message;
    catalog = std::move(*loaded);
  }
  std::vector<std::string> counters_of(const std::vector<std::string>& what) {
    std::vector<metric::Selection> selections;
    for (const std::string& each : what) {
      for (const metric::Block& block : catalog.blocks)
        if (std::to_string(block.number) == each) selections.push_back({&block});
      for (const metric::Block& block : catalog.blocks)
        for (const metric::MetricTable& table : block.tables)
          for (const metric::Metric& metric : table.metrics)
            if (metric.slug == each) selections.push_back({&block, &table, &metric});
    }
    EXPECT_EQ(selections.size(), what.size());
    const auto wanted = wanted_counters(catalog, selections);
    EXPECT_TRUE(wanted) << wanted.error().message;
    return wanted ? wanted->counters : std::vector<std::string>();
  }

  std::unique_ptr<Host> host;
  metric::Catalog catalog;
};

TEST_P(NvidiaHost, KnowsEveryCounterOfTheCatalog) {
  const auto wanted = wanted_counters(catalog, {});
  ASSERT_TRUE(wanted) << wanted.error().message;
  EXPECT_GE(wanted->metrics, 150u);
  EXPECT_GE(wanted->counters.size(), 150u);
  for (const std::string& counter : wanted->counters) EXPECT_TRUE(host->knows(counter)) << counter;
  EXPECT_FALSE(host->knows("dram__bytes"));  // without a rollup
  EXPECT_FALSE(host->knows("dram__bites.sum"));
}

TEST_P(NvidiaHost, SetsAreOnePass) {
  ASSERT_EQ(catalog.sets.size(), 4u);
  for (const metric::MetricSet& set : catalog.sets) {
    const auto config = host->config(counters_of({set.metrics.begin(), set.metrics.end()}));
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->passes, 1u) << set.name;
    // With the kernel's duration, which every plan adds.
    const Provider* const provider = provider_of("nvidia");
    const auto plan = provider->plan(*provider->device_for(*metric::built_in_architecture(GetParam())),
                                     counters_of({set.metrics.begin(), set.metrics.end()}));
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(plan->executions(), 1u) << set.name;
  }
}

TEST_P(NvidiaHost, PassCounts) {
  const auto passes = [&](const char* block) {
    const auto config = host->config(counters_of({block}));
    return config ? config->passes : 0;
  };
  EXPECT_EQ(passes("6"), 1u);
  EXPECT_EQ(passes("10"), 2u);  // one in hardware, one of patched code
  EXPECT_LE(passes("2"), 13u);
  if (std::string_view(GetParam()) == "sm_90") {
    EXPECT_EQ(passes("2"), 10u);
  }
}

TEST_P(NvidiaHost, PlanKeepsLinksApart) {
  const Provider* const provider = provider_of("nvidia");
  const auto device = provider->device_for(*metric::built_in_architecture(GetParam()));
  ASSERT_TRUE(device);
  const auto wanted = wanted_counters(catalog, {});
  ASSERT_TRUE(wanted);
  const auto plan = provider->plan(*device, wanted->counters);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_TRUE(plan->unavailable.empty());
  ASSERT_EQ(plan->passes.size(), 2u);
  for (const PlannedPass& pass : plan->passes)
    EXPECT_EQ(pass.executions, host->config(pass.counters)->passes) << pass.name;
  EXPECT_GT(plan->executions(), 20u);
  for (const std::string& counter : plan->passes[0].counters) EXPECT_FALSE(counter.starts_with("pcie__")) << counter;
  const auto again = provider->plan(*device, wanted->counters);
  ASSERT_TRUE(again);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(again->passes[i].counters, plan->passes[i].counters);
    EXPECT_EQ(again->passes[i].definitions, plan->passes[i].definitions);
  }
  const std::string nonsense[] = {"dram__bites.sum"};
  EXPECT_FALSE(provider->plan(*device, nonsense));
}

TEST_P(NvidiaHost, ListsMetrics) {
  const auto metrics = host->base_metrics(true);
  ASSERT_TRUE(metrics) << metrics.error().message;
  EXPECT_GT(metrics->size(), 2500u);
  const auto dram =
      std::find_if(metrics->begin(), metrics->end(), [](const MetricInfo& m) { return m.name == "dram__bytes"; });
  ASSERT_NE(dram, metrics->end());
  EXPECT_FALSE(dram->description.empty());
  const std::vector<std::string> rollups = host->submetrics(*dram);
  EXPECT_NE(std::find(rollups.begin(), rollups.end(), "sum.per_second"), rollups.end());
}

TEST_P(NvidiaHost, NoImageIsNoCrash) {
  const std::vector<uint8_t> zeros(4096);
  EXPECT_EQ(host->ranges(zeros), 0u);
}

INSTANTIATE_TEST_SUITE_P(Chips, NvidiaHost, testing::ValuesIn(kArchitectures));

std::string record_bytes(uint64_t index, const std::string& name, uint32_t image, uint32_t samples) {
  spool::CounterRecord record{};
  const size_t padded = (name.size() + 7) / 8 * 8;
  record.magic = spool::kCounterRecordMagic;
  record.bytes = static_cast<uint32_t>(sizeof record + padded);
  record.index = index;
  record.pid = 7;
  record.grid[0] = 10;
  record.grid[1] = record.grid[2] = 1;
  record.block[0] = 256;
  record.block[1] = record.block[2] = 1;
  record.shared = 1024;
  record.registers = 40;
  record.image = image;
  record.range = 3;
  record.selected = 1;
  record.samples = samples;
  record.name_bytes = static_cast<uint32_t>(name.size());
  std::string bytes(reinterpret_cast<const char*>(&record), sizeof record);
  return bytes + name + std::string(padded - name.size(), '\0');
}

TEST(NvidiaLaunches, AreRead) {
  const std::string bytes =
      record_bytes(5, "_Z3addPfi", 2, 1) + record_bytes(~uint64_t{0}, "_Z3mulPfi", spool::kNotMeasured, 900);
  std::vector<MeasuredLaunch> launches;
  ASSERT_TRUE(parse_launches(bytes, launches));
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0].dispatch.kernel, "add(float*, int)");
  EXPECT_EQ(launches[0].dispatch.grid[0], 2560u);
  EXPECT_EQ(launches[0].dispatch.workgroup[0], 256u);
  EXPECT_EQ(launches[0].dispatch.arch_vgpr, 40u);
  EXPECT_EQ(launches[0].samples_seen(), 1u);
  EXPECT_TRUE(launches[0].measured);
  EXPECT_FALSE(launches[1].measured);
  EXPECT_EQ(launches[1].samples_seen(), 900u);
}

TEST(NvidiaLaunches, CutOffAndWrongRecords) {
  const std::string bytes = record_bytes(5, "_Z3addPfi", 2, 1);
  for (size_t length = 1; length < bytes.size(); ++length) {
    std::vector<MeasuredLaunch> launches;
    EXPECT_FALSE(parse_launches(bytes.substr(0, length), launches)) << length;
    EXPECT_TRUE(launches.empty());
  }
  for (const size_t at : {size_t{0}, size_t{4}, offsetof(spool::CounterRecord, name_bytes)}) {
    std::string wrong = bytes;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x55);
    wrong[at + 3] = 0x7f;
    std::vector<MeasuredLaunch> launches;
    EXPECT_FALSE(parse_launches(wrong, launches)) << at;
  }
}

}  // namespace
}  // namespace tacho::counter::nvidia
