// The sum of several watches.
#include "watch/live/hosts.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tacho::watch {
namespace {

RowSums row_of(event::WatchKind kind, const std::string& name, uint64_t count, uint64_t timed, uint64_t each_ns) {
  RowSums row;
  row.kind = kind;
  row.name = name;
  row.count = count;
  const auto squares = static_cast<double>(timed * each_ns * each_ns) * 1.1;
  row.levels[1] = {count, timed, timed * each_ns, squares};
  row.stood_ns = count * each_ns;
  row.shortest_ns = each_ns / 2;
  row.longest_ns = each_ns * 2;
  return row;
}
HostAnswer host(const std::string& address, std::vector<RowSums> rows) {
  HostAnswer answer;
  answer.address = address;
  answer.last.emplace();
  answer.last->facts = {"./app", "node of " + address, address};
  answer.last->moment.snapshot.rows = std::move(rows);
  answer.last->moment.snapshot.seconds = 10;
  return answer;
}
const RowSums* find(const WatchMoment& moment, const std::string& title) {
  for (const RowSums& row : moment.snapshot.rows)
    if (row.title() == title) return &row;
  return nullptr;
}
RowSums graph_of(std::vector<GraphKernel> kernels, uint64_t count) {
  RowSums row = row_of(event::WatchKind::kGraph, "graph 1", count, count / 2, 1000);
  row.kernels = std::move(kernels);
  return row;
}

TEST(Hosts, RowsOfTheSameKernelAreAddedUp) {
  const RowSums a = row_of(event::WatchKind::kKernel, "k", 100, 50, 1000);
  const RowSums b = row_of(event::WatchKind::kKernel, "k", 400, 20, 3000);
  const WatchMoment sum =
      add_up({host("a:1", {a, row_of(event::WatchKind::kKernel, "alone", 5, 5, 10)}), host("b:1", {b})}, 4);
  ASSERT_NE(find(sum, "k"), nullptr);
  const RowSums& k = *find(sum, "k");
  EXPECT_EQ(k.count, 500U);
  EXPECT_EQ(k.hosts, 2U);
  EXPECT_EQ(find(sum, "alone")->hosts, 1U);
  // Host by host: the same level was timed at different rates, so one mean of all would be wrong.
  ASSERT_TRUE(k.time());
  EXPECT_DOUBLE_EQ(k.time()->total_ns, 100 * 1000 + 400 * 3000);
  EXPECT_DOUBLE_EQ(*k.time()->interval_ns, std::hypot(*a.time()->interval_ns, *b.time()->interval_ns));
  EXPECT_EQ(k.shortest_ns, 500U);
  EXPECT_EQ(k.longest_ns, 6000U);
  EXPECT_DOUBLE_EQ(k.weighted_time(), a.weighted_time() + b.weighted_time());
  EXPECT_EQ(sum.snapshot.seconds, 4);
}

TEST(Hosts, WhatAllTimesHaveInCommonAddsUpAsItIs) {
  RowSums a = row_of(event::WatchKind::kKernel, "k", 100, 100, 1000), b = a;
  a.each_ns = b.each_ns = 50;
  const WatchMoment sum = add_up({host("a:1", {a}), host("b:1", {b})}, 1);
  EXPECT_NEAR(*find(sum, "k")->time()->interval_ns, 2 * 200 * 50, 1e-6);
}

TEST(Hosts, AHostWithoutTimesTakesTheMeanOfTheOthers) {
  RowSums untimed = row_of(event::WatchKind::kKernel, "k", 100, 0, 0);
  const WatchMoment sum =
      add_up({host("a:1", {row_of(event::WatchKind::kKernel, "k", 100, 50, 1000)}), host("b:1", {untimed})}, 1);
  EXPECT_DOUBLE_EQ(find(sum, "k")->time()->total_ns, 200 * 1000);
}

TEST(Hosts, GraphsAreTheSameByTheirKernels) {
  const std::vector<GraphKernel> one = {{"a", "a", 2, 10.0}, {"b", "b", 1, 10.0}}, turned = {one[1], one[0]};
  const WatchMoment sum = add_up({host("a:1", {graph_of(one, 10)}), host("b:1", {graph_of(turned, 20)}),
                                  host("c:1", {graph_of({{"c", "c", 1, 10.0}}, 40)}), host("d:1", {graph_of({}, 80)}),
                                  host("e:1", {graph_of({}, 160)})},
                                 1);
  EXPECT_EQ(sum.snapshot.rows.size(), 4U);
  EXPECT_EQ(find(sum, "graph 1")->count, 30U);
  EXPECT_EQ(find(sum, "graph 1 of c:1")->count, 40U);
  EXPECT_EQ(find(sum, "graph 1 of d:1")->count, 80U);
  EXPECT_EQ(find(sum, "graph 1 of e:1")->count, 160U);
}

TEST(Hosts, ASilentHostIsNamedAndKeepsItsNumbers) {
  HostAnswer silent = host("b:1", {row_of(event::WatchKind::kKernel, "k", 7, 7, 10)});
  silent.problem = "Connection refused";
  silent.ago_s = 12;
  HostAnswer never;
  never.address = "c:1";
  never.problem = "no address";
  const WatchMoment sum = add_up({host("a:1", {row_of(event::WatchKind::kKernel, "k", 1, 1, 10)}), silent, never}, 1);
  EXPECT_EQ(find(sum, "k")->count, 8U);
  ASSERT_EQ(sum.hosts.size(), 3U);
  EXPECT_EQ(silence(sum.hosts[0]), "");
  EXPECT_EQ(silence(sum.hosts[1]),
            "node of b:1 (b:1) has not answered for 12.00 s: Connection refused; its numbers are those of then.");
  EXPECT_EQ(silence(sum.hosts[2]), "c:1 has never answered: no address.");
}

TEST(Hosts, Addresses) {
  const auto read = parse_host_addresses("node1:9400,[::1]:9401,9402,http://127.0.0.1:9403/metrics");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 4U);
  EXPECT_EQ((*read)[0].text(), "http://node1:9400/moment");
  EXPECT_EQ((*read)[1].text(), "http://[::1]:9401/moment");
  EXPECT_EQ((*read)[2].text(), "http://127.0.0.1:9402/moment");
  EXPECT_EQ((*read)[3].text(), "http://127.0.0.1:9403/moment");
  for (const char* const text :
       {"", "node1", "node1:", "node1:0", "node1:70000", "a:1,", "a:1,a:1", "https://a:1", "a b:1", "a:1x"})
    EXPECT_FALSE(parse_host_addresses(text)) << text;
}

}  // namespace
}  // namespace tacho::watch
