// Planning: metrics to counters to passes, on all AMD architectures, the virtual GPU and the CPU; filters and names.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "counter/provider.h"
#include "counter/wanted.h"
#include "event/spool/launch_filter.h"
#include "metric/catalog/builtin/builtin.h"
#include "metric/catalog/catalog.h"

namespace tacho::counter {
namespace {

PassPlan plan_of(const Provider& provider, std::string_view architecture, const std::vector<std::string>& blocks = {}) {
  const auto catalog = metric::load_catalog(architecture);
  EXPECT_TRUE(catalog.has_value());
  std::vector<metric::Selection> selections;
  for (const std::string& block : blocks) selections.push_back(*metric::resolve(*catalog, block));
  auto wanted = wanted_counters(*catalog, selections);
  EXPECT_TRUE(wanted.has_value()) << (wanted ? "" : wanted.error().message);
  for (const std::string& level : wanted->levels) wanted->counters.push_back(level);
  const auto plan = provider.plan(*provider.device_for(*metric::built_in_architecture(architecture)), wanted->counters);
  EXPECT_TRUE(plan.has_value()) << (plan ? "" : plan.error().message);
  return plan ? *plan : PassPlan{};
}

std::string block_of(const std::string& counter) {
  std::string block = counter.substr(0, counter.find('_'));
  return block == "SQC" ? "SQ" : block;
}

TEST(AmdPlan, EverythingFitsIntoAsManyPassesAsTheReferenceNeeds) {
  const Provider* const provider = provider_of("amd");
  const std::pair<const char*, size_t> most[] = {{"gfx908", 12}, {"gfx90a", 12}, {"gfx942", 12}, {"gfx950", 20}};
  for (const auto& [architecture, passes] : most) {
    const PassPlan plan = plan_of(*provider, architecture);
    EXPECT_LE(plan.passes.size(), passes) << architecture;
    EXPECT_GE(plan.passes.size(), 8u) << architecture;
  }
}

TEST(AmdPlan, ALevelThatTheReferenceDoesNotMakeIsReadWhenAskedFor) {
  const Provider* const provider = provider_of("amd");
  const auto has_level = [](const PassPlan& plan) {
    return std::any_of(plan.passes.begin(), plan.passes.end(),
                       [](const PlannedPass& pass) { return pass.name == "SQC_ICACHE_INFLIGHT_LEVEL"; });
  };
  EXPECT_FALSE(has_level(plan_of(*provider, "gfx90a")));
  EXPECT_TRUE(has_level(plan_of(*provider, "gfx90a", {"chart-l1i-latency"})));
}

TEST(AmdPlan, NoPassExceedsABlock) {
  const std::map<std::string, int> limits = {{"SQ", 8},  {"TA", 2},  {"TD", 2},  {"TCP", 4},  {"TCC", 4},
                                             {"CPC", 2}, {"CPF", 2}, {"SPI", 6}, {"GRBM", 2}, {"GDS", 4}};
  const Provider* const provider = provider_of("amd");
  for (const std::string_view architecture : metric::architectures("amd")) {
    for (const PlannedPass& pass : plan_of(*provider, architecture).passes) {
      std::map<std::string, int> used;
      std::set<std::string> channels;
      for (const std::string& counter : pass.counters) {
        if (const size_t bracket = counter.find('['); bracket != std::string::npos) {
          if (!channels.insert(counter.substr(0, bracket)).second) continue;  // all channels cost one slot
        }
        ++used[block_of(counter)];
      }
      for (const auto& [block, count] : used) {
        ASSERT_TRUE(limits.contains(block)) << block;
        EXPECT_LE(count, limits.at(block)) << architecture << " " << pass.name << " " << block;
      }
    }
  }
}

TEST(AmdPlan, LevelPassesHoldWhatTheirMetricsRead) {
  const Provider* const provider = provider_of("amd");
  const PassPlan plan = plan_of(*provider, "gfx942");
  const auto level = std::find_if(plan.passes.begin(), plan.passes.end(),
                                  [](const PlannedPass& pass) { return pass.name == "SQ_IFETCH_LEVEL"; });
  ASSERT_NE(level, plan.passes.end());
  const std::set<std::string> counters(level->counters.begin(), level->counters.end());
  EXPECT_TRUE(counters.contains("SQ_IFETCH_LEVEL"));
  EXPECT_TRUE(counters.contains("SQ_ACCUM_PREV_HIRES"));
  EXPECT_TRUE(counters.contains("SQ_IFETCH"));  // the divisor of its latency
  EXPECT_NE(level->definitions.find("accumulate(SQ_IFETCH_LEVEL, HIGH_RES)"), std::string::npos);
}

TEST(AmdPlan, IsTheSameEveryTimeAndInAnyOrder) {
  const Provider* const provider = provider_of("amd");
  const auto device = provider->device_for(*metric::built_in_architecture("gfx90a"));
  const std::vector<std::string> one = {"SQ_WAVES", "TCC_HIT_sum", "TA_BUSY_avr", "SQ_INSTS_VALU"};
  std::vector<std::string> other(one.rbegin(), one.rend());
  const std::vector<std::string> known = {"SQ_WAVES", "TCC_HIT_sum", "SQ_INSTS_VALU"};
  const auto a = provider->plan(*device, known);
  std::vector<std::string> reversed(known.rbegin(), known.rend());
  reversed.push_back("SQ_WAVES");  // given twice, counted once
  const auto b = provider->plan(*device, reversed);
  ASSERT_TRUE(a && b);
  ASSERT_EQ(a->passes.size(), b->passes.size());
  EXPECT_EQ(a->passes[0].counters, b->passes[0].counters);
}

TEST(AmdPlan, UnknownCountersAreErrors) {
  const Provider* const provider = provider_of("amd");
  const auto plan = provider->plan(*provider->device_for(*metric::built_in_architecture("gfx942")),
                                   std::vector<std::string>{"SQ_NO_SUCH"});
  ASSERT_FALSE(plan.has_value());
  EXPECT_NE(plan.error().message.find("SQ_NO_SUCH"), std::string::npos);
}

TEST(AmdPlan, SetsAreOnePass) {
  const Provider* const provider = provider_of("amd");
  for (const std::string_view architecture : metric::architectures("amd")) {
    const auto catalog = metric::load_catalog(architecture);
    ASSERT_TRUE(catalog.has_value());
    EXPECT_EQ(catalog->sets.size(), 4u);
    for (const metric::MetricSet& set : catalog->sets) {
      std::vector<std::string> metrics(set.metrics.begin(), set.metrics.end());
      EXPECT_EQ(plan_of(*provider, architecture, metrics).passes.size(), 1u) << architecture << " " << set.name;
    }
  }
}

TEST(VirtualPlan, EverythingIsOnePassAndEveryMetricIsCounted) {
  const Provider* const provider = provider_of("virtual");
  const PassPlan plan = plan_of(*provider, "virtual");
  ASSERT_EQ(plan.passes.size(), 1u);
  // Every counter that exists is used by some metric: nothing is counted for nobody.
  std::set<std::string> wanted(plan.passes[0].counters.begin(), plan.passes[0].counters.end());
  for (const CounterInfo& each : provider->counters(*provider->device_for(*metric::built_in_architecture("virtual"))))
    EXPECT_TRUE(wanted.contains(each.name)) << each.name;
  EXPECT_FALSE(
      provider
          ->plan(*provider->device_for(*metric::built_in_architecture("virtual")), std::vector<std::string>{"SQ_WAVES"})
          .has_value());
}

TEST(Plan, BlocksNeedNoMoreThanTheirOwnCounters) {
  const Provider* const provider = provider_of("virtual");
  const PassPlan plan = plan_of(*provider, "virtual", {"7.1"});
  EXPECT_EQ(plan.passes[0].counters,
            (std::vector<std::string>{"V_WAVES", "V_WORK_GROUPS", "V_WORK_GROUPS_RUN", "V_WORK_ITEMS"}));
}

TEST(Filter, KernelsBySubstringDispatchesByInclusiveRange) {
  Filter filter;
  EXPECT_EQ(filter.lines(), "");
  filter.kernels = {"Copy", "gemm"};
  filter.dispatches = {{0, 0}, {4, 6}};
  filter.regions = Regions{"--selected-regions", "no resume"};
  const std::string lines = filter.lines();
  const spool::LaunchFilter asked(lines);
  EXPECT_TRUE(asked.by_regions());
  EXPECT_TRUE(asked.kernel("vecCopy"));
  EXPECT_FALSE(asked.kernel("veccopy"));
  for (const uint64_t index : {0u, 4u, 6u}) EXPECT_TRUE(asked.launch(index));
  for (const uint64_t index : {1u, 3u, 7u}) EXPECT_FALSE(asked.launch(index));
}

TEST(FolderModel, IsTheMarketingNameWithoutTheVendor) {
  EXPECT_EQ(folder_model("NVIDIA H200"), "H200");
  EXPECT_EQ(folder_model("NVIDIA GeForce RTX 4090"), "GeForce_RTX_4090");
  EXPECT_EQ(folder_model("AMD Instinct MI300X"), "MI300X");
  EXPECT_EQ(folder_model("A100-SXM4-80GB"), "A100-SXM4-80GB");
  EXPECT_EQ(folder_model(""), "unknown");
}

}  // namespace
}  // namespace tacho::counter
