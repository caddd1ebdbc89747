// A moment as JSON and back.
#include "watch/live/wire.h"

#include <gtest/gtest.h>

namespace tacho::watch {
namespace {

WatchMoment some_moment() {
  WatchMoment moment;
  moment.snapshot.seconds = 12.5;
  RowSums kernel;
  kernel.kind = event::WatchKind::kKernel;
  kernel.name = "k\"\\<int>";
  kernel.grid[0] = 4096;
  kernel.grid[1] = 2;
  kernel.grid[2] = 1;
  kernel.group[0] = 256;
  kernel.group[1] = kernel.group[2] = 1;
  kernel.count = 3'000'000'000'000;
  kernel.level = 3;
  kernel.levels[0] = {64, 64, 6400, 650000.25};
  kernel.levels[3] = {2'999'999'999'936, 1000, 101000, 10'300'000, 2, 500};
  kernel.buckets[7] = 8064;
  kernel.stood_ns = 814'400;
  kernel.shortest_ns = 90;
  kernel.longest_ns = 900;
  kernel.each_ns = 12.5;
  RowSums copy;
  copy.kind = event::WatchKind::kCopy;
  copy.name = "host to device";
  copy.count = 5;
  copy.bytes = 500;
  RowSums memory;
  memory.kind = event::WatchKind::kAllocation;
  memory.name = "device memory";
  memory.count = 2;
  memory.bytes = 1 << 20;
  RowSums graph;
  graph.kind = event::WatchKind::kGraph;
  graph.name = "graph 1";
  graph.count = 9;
  graph.kernels = {{"a", "a 16/16", 3, 120.5}, {"b", "b", 1, std::nullopt}};
  graph.other_nodes = 2;
  moment.snapshot.rows = {kernel, copy, memory, graph};
  WatchedProcess process;
  process.pid = 4711;
  process.name = "app";
  process.uses_devices = true;
  process.launches = 17;
  moment.snapshot.processes = {process};
  moment.snapshot.own_ns = 1.5e9;
  moment.snapshot.failed = 1;
  moment.budget = 0.01;
  moment.cost = WatchCost{0.002, -0.001, 0.005, 20};
  moment.gpus = {{"GPU Core Clock [1]", "MHz", "", "", 1, 1980}};
  return moment;
}

std::string some_text() {
  return moment_text({"./app -n 5", "node1", "42"}, some_moment());
}

TEST(Wire, AMomentComesBackWhole) {
  const auto read = parse_moment_text(some_text());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->facts.title, "./app -n 5");
  EXPECT_EQ(read->facts.host, "node1");
  EXPECT_EQ(read->facts.run, "42");
  const WatchMoment moment = some_moment();
  const WatchSnapshot& now = read->moment.snapshot;
  EXPECT_EQ(now.seconds, 12.5);
  ASSERT_EQ(now.rows.size(), 4U);
  for (const RowSums& row : moment.snapshot.rows) {
    const auto found =
        std::find_if(now.rows.begin(), now.rows.end(), [&](const RowSums& one) { return one.title() == row.title(); });
    ASSERT_NE(found, now.rows.end()) << row.title();
    EXPECT_EQ(found->kind, row.kind);
    EXPECT_EQ(found->count, row.count);
    EXPECT_EQ(found->bytes, row.bytes);
    EXPECT_EQ(found->weighted_time(), row.weighted_time());
    EXPECT_EQ(found->buckets, row.buckets);
    EXPECT_EQ(found->time().has_value(), row.time().has_value());
    if (row.time()) {
      EXPECT_EQ(found->time()->total_ns, row.time()->total_ns);
      EXPECT_EQ(found->time()->interval_ns, row.time()->interval_ns);
      EXPECT_EQ(found->longest_ns, row.longest_ns);
      EXPECT_EQ(found->shortest_ns, row.shortest_ns);
    }
    ASSERT_EQ(found->kernels.size(), row.kernels.size());
    for (size_t i = 0; i < row.kernels.size(); ++i) {
      EXPECT_EQ(found->kernels[i].title, row.kernels[i].title);
      EXPECT_EQ(found->kernels[i].nodes, row.kernels[i].nodes);
      EXPECT_EQ(found->kernels[i].own_ns, row.kernels[i].own_ns);
    }
    EXPECT_EQ(found->other_nodes, row.other_nodes);
  }
  ASSERT_EQ(now.processes.size(), 1U);
  EXPECT_EQ(now.processes[0].pid, 4711U);
  EXPECT_TRUE(now.processes[0].uses_devices);
  EXPECT_EQ(now.own_ns, 1.5e9);
  EXPECT_EQ(now.failed, 1U);
  ASSERT_TRUE(read->moment.cost);
  EXPECT_EQ(read->moment.cost->low, -0.001);
  ASSERT_EQ(read->moment.gpus.size(), 1U);
  EXPECT_EQ(read->moment.gpus[0].name, "GPU Core Clock [1]");
  EXPECT_FALSE(read->moment.counts_only);
}

TEST(Wire, ACutTextIsNoMoment) {
  const std::string text = some_text();
  for (size_t size = 0; size < text.size(); ++size) EXPECT_FALSE(parse_moment_text(text.substr(0, size))) << size;
  EXPECT_FALSE(parse_moment_text(text + "x"));
}

TEST(Wire, WhatIsNoMomentIsRefused) {
  for (const char* const text :
       {"", "<html>", "[]", "{}", R"({"rows": []})", R"({"tacho_watch": 1, "rows": 5})",
        R"({"tacho_watch": 1, "rows": [{"kind": "kernel", "name": "a", "count": -1, "levels": []}]})",
        R"({"tacho_watch": 1, "rows": [{"kind": "kernel", "name": "a", "count": 1}]})",
        R"({"tacho_watch": 1, "rows": [{"kind": "what", "name": "a", "count": 1, "levels": []}]})",
        R"({"tacho_watch": 1, "rows": [{"kind": "kernel", "level": 16, "levels": []}]})",
        R"({"tacho_watch": 1, "rows": [{"kind": "kernel", "levels": [[16,1,1,1,1,0,0]]}]})",
        R"({"tacho_watch": 1, "rows": [{"kind": "kernel", "levels": [[1,1,1,1,1,0]]}]})",
        R"({"tacho_watch": 1, "rows": [{"kind": "kernel", "levels": [], "buckets": [[100000, 1]]}]})",
        R"({"tacho_watch": 1, "rows": [{"kind": "kernel", "levels": [], "grid": [1, 2, 3, 4]}]})"})
    EXPECT_FALSE(parse_moment_text(text)) << text;
  EXPECT_TRUE(parse_moment_text(R"({"tacho_watch": 1, "rows": [], "new": {"a": [1, null]}})"));
  const auto other = parse_moment_text(R"({"tacho_watch": 2})");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("version"), std::string::npos);
}

}  // namespace
}  // namespace tacho::watch
