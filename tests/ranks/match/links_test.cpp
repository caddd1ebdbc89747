// Peaks of links by the names that drivers give GPUs (ranks/match/links.h).
#include "ranks/match/links.h"

#include <gtest/gtest.h>

namespace tacho::ranks {
namespace {

TEST(LinkPeak, IsThatOfTheModulesDataSheet) {
  EXPECT_EQ(link_peak("NVIDIA H200", 4).gb_s, 450);
  EXPECT_EQ(link_peak("NVIDIA H200", 4).link, "NVLink 4");
  EXPECT_EQ(link_peak("NVIDIA H100 80GB HBM3", 8).gb_s, 450);
  EXPECT_EQ(link_peak("NVIDIA H800", 8).gb_s, 200);
  EXPECT_EQ(link_peak("NVIDIA H20", 8).gb_s, 450);
  EXPECT_EQ(link_peak("NVIDIA A100-SXM4-80GB", 8).gb_s, 300);
  EXPECT_EQ(link_peak("A100-SXM4-40GB", 8).gb_s, 300);
  EXPECT_EQ(link_peak("Tesla V100-SXM2-32GB", 8).gb_s, 150);
  EXPECT_EQ(link_peak("NVIDIA GB200", 72).gb_s, 900);
}

TEST(LinkPeak, OfGpusWithALinkToEachOtherGrowsWithTheGroup) {
  EXPECT_EQ(link_peak("AMD Instinct MI300X", 8).gb_s, 448);
  EXPECT_EQ(link_peak("AMD Instinct MI300X", 2).gb_s, 64);
  EXPECT_EQ(link_peak("AMD Instinct MI300X VF", 64).gb_s, 448);
  EXPECT_DOUBLE_EQ(link_peak("AMD Instinct MI355X", 8).gb_s, 537.6);
}

TEST(LinkPeak, IsUnknownWhereTheNameDoesNotTellTheLinks) {
  for (const char* const name :
       {"", "NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA H200 NVL", "NVIDIA A100 80GB PCIe", "NVIDIA A100-PCIE-40GB",
        "NVIDIA A100", "NVIDIA H200 MIG 1g.18gb", "NVIDIA GeForce RTX 4090", "NVIDIA L40S", "AMD Instinct MI250X",
        "NVIDIA GH200 480GB", "Radeon RX 7900 XTX", "cpu-haswell-AMD EPYC"})
    EXPECT_EQ(link_peak(name, 8).gb_s, 0) << name;
}

}  // namespace
}  // namespace tacho::ranks
