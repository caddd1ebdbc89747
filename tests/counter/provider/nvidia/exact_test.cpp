// Placing counters so that they are counted whole, and noticing those that were not.
#include "counter/provider/nvidia/exact.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "counter/provider.h"
#include "counter/provider/nvidia/host.h"
#include "counter/wanted.h"
#include "metric/catalog/builtin/builtin.h"

namespace tacho::counter::nvidia {
namespace {

TEST(ExactCounts, KnowsWhatDependsOnNeitherTimeNorCaches) {
  for (const char* name :
       {"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "l1tex__t_sectors.sum", "smsp__inst_executed.sum",
        "sm__ctas_launched.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "smsp__warps_launched.sum"})
    EXPECT_TRUE(is_deterministic(name)) << name;
  for (const char* name :
       {"l1tex__t_sectors_lookup_hit.sum", "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct",
        "smsp__sass_inst_executed_op_global.sum", "dram__bytes.sum", "sm__cycles_active.sum",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.avg", "lts__t_sectors_op_write.sum", "smsp__inst_issued.sum"})
    EXPECT_FALSE(is_deterministic(name)) << name;
}

TEST(ExactCounts, OneCounterOfAUnitInAGroupAndOnePassEach) {
  const std::vector<std::string> counters = {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                                             "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
                                             "smsp__inst_executed.sum", "smsp__warps_launched.sum"};
  const auto groups = whole_groups(counters, [](const auto& group) { return group.size() > 2 ? 2 : 1; });
  using Groups = std::vector<std::vector<std::string>>;
  EXPECT_EQ(groups, (Groups{{counters[0], counters[2]}, {counters[1], counters[3]}}));
  // A counter that needs several passes is alone.
  EXPECT_EQ(whole_groups(counters, [](const auto&) { return 2; }).size(), 4U);
}

TEST(ExactCounts, CountsThatVaryBetweenEqualLaunchesAreExtrapolated) {
  const std::vector<std::string> counters = {"l1tex__t_sectors.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
                                             "dram__bytes.sum", "smsp__inst_executed.sum"};
  const double nan = std::nan("");
  // The first kernel twice, another once: differences between kernels say nothing, nor do counts that depend on caches.
  const std::vector<double> values = {1572864, 523112, 7, 10.5, 1572864, 525068, 8, nan, 9, 3, 9, 4};
  const std::vector<std::string> launches = {"saxpy 1", "saxpy 1", "other 1"};
  EXPECT_EQ(extrapolated(counters, values, launches), (std::vector<std::string>{counters[1], counters[3]}));
  EXPECT_TRUE(extrapolated(counters, std::vector<double>(12, 5), launches).empty());
}

TEST(ExactCounts, ThePlanOfABlockKeepsItsCountersAndSplitsTheExactOnes) {
  if (Host::library().empty()) GTEST_SKIP() << "no CUPTI on this machine";
  const metric::Catalog catalog = *metric::load_catalog("sm_90");
  const std::vector<metric::Selection> sixteen = {{catalog.block(16)}};
  const auto wanted = wanted_counters(catalog, sixteen);
  ASSERT_TRUE(wanted) << wanted.error().message;
  const Provider* const provider = provider_of("nvidia");
  ASSERT_TRUE(provider->can_count_exactly());
  const Device device = *provider->device_for(*metric::built_in_architecture("sm_90"));
  const auto plain = provider->plan(device, wanted->counters), exact = provider->exact_plan(device, wanted->counters);
  ASSERT_TRUE(plain && exact);
  std::set<std::string> before, after;
  for (const PlannedPass& pass : plain->passes) before.insert(pass.counters.begin(), pass.counters.end());
  for (const PlannedPass& pass : exact->passes) after.insert(pass.counters.begin(), pass.counters.end());
  EXPECT_EQ(before, after);
  EXPECT_GT(exact->passes.size(), plain->passes.size());
  for (const PlannedPass& pass : exact->passes) {
    size_t deterministic = 0;
    for (const std::string& counter : pass.counters) deterministic += is_deterministic(counter) ? 1 : 0;
    EXPECT_TRUE(deterministic == 0 || pass.executions == 1) << pass.definitions;
    EXPECT_EQ(deterministic > 0, pass.definitions.find("exact: true") != std::string::npos) << pass.definitions;
  }
}

}  // namespace
}  // namespace tacho::counter::nvidia
