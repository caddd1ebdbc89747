// Names of CPU events, and what this machine says about them.
#include "base/cpu_events.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <set>
#include <utility>

namespace tacho {
namespace {

TEST(CpuEvents, AreFoundByEveryNameThatPeopleKnow) {
  for (const char* name : {"page-faults", "PAGE_FAULTS", "perf::PAGE-FAULTS", "perf::PERF_COUNT_SW_PAGE_FAULTS",
                           "PERF_COUNT_SW_PAGE_FAULTS", "Perf::page-faults"}) {
    const CpuEvent* const event = find_cpu_event(name);
    ASSERT_NE(event, nullptr) << name;
    EXPECT_EQ(event->type, PERF_TYPE_SOFTWARE);
    EXPECT_EQ(event->config, PERF_COUNT_SW_PAGE_FAULTS);
  }
  for (const char* name : {"PAPI_TOT_CYC", "cycles", "perf::CPU-CYCLES", "perf::PERF_COUNT_HW_CPU_CYCLES"}) {
    const CpuEvent* const event = find_cpu_event(name);
    ASSERT_NE(event, nullptr) << name;
    EXPECT_EQ(event->type, PERF_TYPE_HARDWARE);
    EXPECT_EQ(event->config, PERF_COUNT_HW_CPU_CYCLES);
  }
  EXPECT_EQ(find_cpu_event("L1-dcache-load-misses")->config, 1u << 16);
  for (const char* name : {"", "perf::", "PAPI_", "PAPI_TOT_CIC", "PERF_COUNT_SW_", "cycle"})
    EXPECT_EQ(find_cpu_event(name), nullptr) << name;
}

TEST(CpuEvents, EachStandsForOneThing) {
  std::set<std::string_view> names;
  std::set<std::pair<uint32_t, uint64_t>> codes;
  for (const CpuEvent& event : cpu_events()) {
    EXPECT_EQ(find_cpu_event(event.name), &event);
    EXPECT_EQ(find_cpu_event(event.perf), &event);
    EXPECT_TRUE(names.insert(event.name).second && names.insert(event.perf).second);
    if (!event.preset.empty()) {
      EXPECT_EQ(find_cpu_event(event.preset), &event);
      EXPECT_TRUE(names.insert(event.preset).second);
    }
    EXPECT_TRUE(codes.insert({event.type, event.config}).second) << event.name;
  }
}

TEST(CpuEvents, TheMachineRefusesWhatIsNoEvent) {
  CpuEvent nonsense = cpu_events()[0];
  nonsense.type = 0xfffffff0;
  EXPECT_NE(cpu_event_error(nonsense), 0);
}

}  // namespace
}  // namespace tacho
