// Placeholders in the three dialects, their forms, and text that only looks like one.
#include "base/text/placeholders.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace tacho {
namespace {

using enum PlaceholderDialect;

PlaceholderFacts facts() {
  PlaceholderFacts out;
  out.pid = 42;
  out.parent = 41;
  out.command = {"/usr/bin/app", "in/put", "-n"};
  out.host = "node1";
  out.gpu_model = "H200";
  out.job = {"Open MPI", 3, 8, 1};
  out.date_format = "date";
  out.time_format = "time";
  out.setting = [](std::string_view name) {
    return std::string(name == "OUTPUT_PREFIX" ? "pre-%tag%" : name == "LOOP" ? "%cfg{LOOP}%x" : "");
  };
  return out;
}

struct Expansion {
  PlaceholderDialect dialect;
  const char *text, *expanded;
};

const Expansion kExpansions[] = {
    {kFolders, "%hostname%/%gpumodel%/%rank%/%env{TACHO_TEST_X}%", "node1/H200/3/x1"},
    {kFolders, "%pid%/{rank}/%r/$ENV{TACHO_TEST_X}", "%pid%/{rank}/%r/$ENV{TACHO_TEST_X}"},
    {kFolders, "%env{open/100%", "%env{open/100%"},
    {kRocprofv3, "%argv%", "_usr_bin_app_in_put_-n"},
    {kRocprofv3, "%argt%|%args%|%tag%", "app_in_put_-n|in_put_-n|app"},
    {kRocprofv3, "%arg0%|%arg1%|%arg9%|{arg2}|%argx%", "_usr_bin_app|in_put||-n|%argx%"},
    {kRocprofv3, "%hostname%|%h|{hostname}|%h%", "node1|node1|node1|node1"},
    {kRocprofv3, "%pid%|%p|{pid}|%ppid%|%p.x|%param%|%px", "42|42|42|41|42.x|%param%|%px"},
    {kRocprofv3, "%rank%|%r|%size%|%s|%nid%", "3|3|8|8|3"},
    {kRocprofv3, "%env{TACHO_TEST_X}%|$ENV{TACHO_TEST_X}|%q{TACHO_TEST_X}|%q{TACHO_TEST_X}%", "x1|x1|x1|x1"},
    {kRocprofv3, "%launch_date%|%launch_time%", "date|time"},
    {kRocprofv3, "%m|%cfg{OUTPUT_PREFIX}%|{unknown}|100%", "%m|%cfg{OUTPUT_PREFIX}%|{unknown}|100%"},
    {kRocprofSys, "%argv%|%argt%|%args%|%tag%", "app_in_put_-n|app_in_put_-n|in_put_-n|app"},
    {kRocprofSys, "%arg0%|%arg1%|%arg9%", "app|in_put|%arg9%"},
    {kRocprofSys, "%m|%p|%r|%s|%px", "node1|42|3|8|42x"},
    {kRocprofSys, "%pid%|%ppid%|%rank%|%size%|%nid%|%launch_time%", "42|41|3|8|3|time"},
    {kRocprofSys, "%env{TACHO_TEST_X}%|$env{TACHO_TEST_X}|$ENV{TACHO_TEST_X}", "x1|x1|$ENV{TACHO_TEST_X}"},
    {kRocprofSys, "%cfg{OUTPUT_PREFIX}%|$cfg{OUTPUT_PREFIX}|%cfg{NONE}%", "pre-app|pre-app|"},
    {kRocprofSys, "%hostname%|{pid}|100%", "%hostname%|{pid}|100%"},
};

TEST(Placeholders, EveryFormOfEveryDialect) {
  setenv("TACHO_TEST_X", "x1", 1);
  for (const Expansion& each : kExpansions)
    EXPECT_EQ(expand_placeholders(each.text, each.dialect, facts()), each.expanded) << each.text;
}

TEST(Placeholders, WithoutARank) {
  PlaceholderFacts alone = facts();
  alone.job = {};
  EXPECT_EQ(expand_placeholders("a%rank%b", kFolders, alone), "ab");
  EXPECT_EQ(expand_placeholders("%rank%|%size%|%nid%", kRocprofv3, alone), "0|1|42");
  EXPECT_EQ(expand_placeholders("%rank%|%size%|%nid%", kRocprofSys, alone), "0|1|0");
}

TEST(Placeholders, ASettingThatNamesItselfEnds) {
  EXPECT_TRUE(expand_placeholders("%cfg{LOOP}%", kRocprofSys, facts()).ends_with("xx"));
}

TEST(Placeholders, WhatDiffersFromProcessToProcess) {
  EXPECT_TRUE(uses_rank("out/%rank%", kFolders));
  EXPECT_TRUE(uses_rank("{rank}", kRocprofv3));
  EXPECT_TRUE(uses_rank("%r", kRocprofv3));
  EXPECT_FALSE(uses_rank("out/%hostname%", kFolders));
  EXPECT_FALSE(uses_rank("%ran", kRocprofv3));
  EXPECT_TRUE(differs_by_process("%pid%", kRocprofv3));
  EXPECT_TRUE(differs_by_process("x{rank}", kRocprofv3));
  EXPECT_FALSE(differs_by_process("%hostname%-%param%", kRocprofv3));
}

}  // namespace
}  // namespace tacho
