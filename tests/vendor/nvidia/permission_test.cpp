// Whether the driver's settings and a process's capabilities allow hardware counters.
#include <gtest/gtest.h>

#include <string>

#include "vendor/nvidia/machine.h"

namespace {

using tacho::vendor::counters_refused;

std::string params(const std::string& value) {
  return "ResmanDebugLevel: 4294967295\nRmLogonRC: 1\nRmProfilingAdminOnly: " + value + "\nGpuBlacklist: \"\"\n";
}
std::string capabilities(const std::string& effective) {
  return "Name:\ttacho\nUid:\t0\t0\t0\t0\nCapInh:\t000001ffffffffff\nCapPrm:\t000001ffffffffff\nCapEff:\t" + effective +
         "\nCapBnd:\t000001ffffffffff\n";
}

constexpr char kNone[] = "0000000000000000";
constexpr char kAllButBoth[] = "000001bfffdfffff";

TEST(Permission, IsRefusedWithoutACapability) {
  EXPECT_TRUE(counters_refused(params("1"), capabilities(kNone)));
  EXPECT_TRUE(counters_refused(params("1"), capabilities(kAllButBoth)));  // root in a container
}

TEST(Permission, EitherCapabilityIsEnough) {
  EXPECT_FALSE(counters_refused(params("1"), capabilities("0000000000200000")));  // SYS_ADMIN
  EXPECT_FALSE(counters_refused(params("1"), capabilities("0000004000000000")));  // PERFMON
  EXPECT_FALSE(counters_refused(params("1"), capabilities("000001ffffffffff")));
}

TEST(Permission, IsNotNeededWhereTheDriverAsksForNone) {
  EXPECT_FALSE(counters_refused(params("0"), capabilities(kNone)));
}

TEST(Permission, TextsThatDoNotTellLeaveItToTheDriver) {
  EXPECT_FALSE(counters_refused("", capabilities(kNone)));
  EXPECT_FALSE(counters_refused("RmLogonRC: 1\n", capabilities(kNone)));
  EXPECT_FALSE(counters_refused(params(""), capabilities(kNone)));
  EXPECT_FALSE(counters_refused(params("yes"), capabilities(kNone)));
  EXPECT_FALSE(counters_refused("RmProfilingAdminOnlyToo: 1\n", capabilities(kNone)));
  EXPECT_FALSE(counters_refused(params("1"), ""));
  EXPECT_FALSE(counters_refused(params("1"), capabilities("")));
  EXPECT_FALSE(counters_refused(params("1"), capabilities("none")));
  EXPECT_FALSE(counters_refused(params("1"), "CapEff:"));
}

}  // namespace
