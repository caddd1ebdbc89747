// Which kernels and launches of a counting run pass a config's lines.
#include "event/spool/launch_filter.h"

#include <gtest/gtest.h>

#include <string>

namespace tacho::spool {
namespace {

TEST(LaunchFilter, WithoutLinesEverythingPasses) {
  const LaunchFilter none, others("mode=kernel\nkernel=late\n");
  for (const LaunchFilter* const filter : {&none, &others}) {
    EXPECT_FALSE(filter->by_kernel());
    EXPECT_FALSE(filter->by_regions());
    EXPECT_TRUE(filter->kernel("anything"));
    EXPECT_TRUE(filter->launch(0));
    EXPECT_TRUE(filter->launch(UINT64_MAX));
  }
}

TEST(LaunchFilter, AKernelPassesByAPartOfEitherOfItsNames) {
  const LaunchFilter filter("kernel=gemm\nkernel=add(float\nmode=kernel\n");
  EXPECT_TRUE(filter.by_kernel());
  EXPECT_TRUE(filter.kernel("sgemm_32"));
  EXPECT_TRUE(filter.kernel("_Z3addPf", "add(float*)"));
  EXPECT_FALSE(filter.kernel("_Z3addPf"));
  EXPECT_FALSE(filter.kernel("_Z3addPd", "add(double*)"));
  EXPECT_TRUE(filter.launch(7));
}

TEST(LaunchFilter, AKernelsTextMayHoldAnything) {
  const LaunchFilter filter("kernel=a=b:1\nkernel= \n");
  EXPECT_TRUE(filter.kernel("a=b:12"));
  EXPECT_TRUE(filter.kernel("two words"));
  EXPECT_FALSE(filter.kernel("a=b"));
}

TEST(LaunchFilter, LaunchesPassByTheirNumber) {
  const LaunchFilter filter("dispatch=2:4\ndispatch=9\ndispatch=100:18446744073709551615");
  for (const uint64_t passes : {2ull, 3ull, 4ull, 9ull, 100ull, 18446744073709551615ull})
    EXPECT_TRUE(filter.launch(passes)) << passes;
  for (const uint64_t fails : {0ull, 1ull, 5ull, 8ull, 10ull, 99ull}) EXPECT_FALSE(filter.launch(fails)) << fails;
  EXPECT_TRUE(filter.kernel("any"));
}

TEST(LaunchFilter, Regions) {
  EXPECT_TRUE(LaunchFilter("kernel=a\nregions=1\n").by_regions());
  EXPECT_FALSE(LaunchFilter("kernel=a\nregions=0\n").by_regions());
}

TEST(LaunchFilter, AnyNumberOfLines) {
  std::string config;
  for (int i = 0; i < 1000; ++i) config += "kernel=k" + std::to_string(i) + "_\n";
  config += "dispatch=5:5\n";
  const LaunchFilter filter(config);
  EXPECT_TRUE(filter.kernel("k999_"));
  EXPECT_FALSE(filter.kernel("k1000_"));
  EXPECT_FALSE(filter.launch(4));
}

}  // namespace
}  // namespace tacho::spool
