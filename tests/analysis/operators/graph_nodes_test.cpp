// Nodes of CUDA graphs inside graphs: the ids under which an H200 ran them (driver 580, CUPTI 13.0) beside the copies
// that were marked.
#include "analysis/operators/graph_nodes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

namespace tacho::analysis {
namespace {

constexpr int64_t kProcess = 3, kThread = 7;

int64_t node(int64_t graph, int64_t number) {
  return graph << 32 | number;
}

class Nodes {
 public:
  void made(int64_t graph, int64_t number, const std::string& owner) {
    nodes_.made(kProcess, node(graph, number), owner);
  }
  void copied(int64_t graph, int64_t number, int64_t of_graph, int64_t of_number) {
    nodes_.copy(kThread, node(graph, number));
    nodes_.origin(kThread, kProcess, node(of_graph, of_number));
  }
  /// "" if nothing is known.
  std::string of(int64_t graph, int64_t number) {
    const std::string* const found = nodes_.find(kProcess, node(graph, number));
    return found == nullptr ? "" : *found;
  }

 private:
  GraphNodes<std::string> nodes_;
};

TEST(GraphNodes, ACopyBelongsToWhatMadeTheOriginal) {
  Nodes nodes;
  nodes.made(1, 0, "add");
  nodes.copied(2, 0, 1, 0);
  nodes.copied(3, 0, 2, 0);
  EXPECT_EQ(nodes.of(2, 0), "add");
  EXPECT_EQ(nodes.of(3, 0), "add");
  EXPECT_EQ(nodes.of(3, 1), "");
  EXPECT_EQ(nodes.of(4, 0), "");
}

// Graph 1: kernel, child {kernel, child {2 kernels}, kernel}, kernel, child {kernel}, kernel.
TEST(GraphNodes, NodesOfChildGraphsContinueTheNumbersOfTheGraphAround) {
  Nodes nodes;
  for (const auto& [graph, number, owner] : {std::tuple(4, 0, "c3"), {4, 1, "c4"}, {2, 0, "a2"}})
    nodes.made(graph, number, owner);
  nodes.copied(5, 0, 4, 0);
  nodes.copied(5, 1, 4, 1);
  nodes.made(2, 2, "a5");
  nodes.made(3, 0, "b7");
  nodes.made(1, 0, "n1");
  nodes.copied(6, 0, 2, 0);
  nodes.copied(7, 0, 5, 0);
  nodes.copied(7, 1, 5, 1);
  nodes.copied(6, 1, 2, 1);
  nodes.copied(6, 2, 2, 2);
  nodes.made(1, 2, "n6");
  nodes.copied(8, 0, 3, 0);
  nodes.made(1, 4, "n8");
  // Instantiated.
  nodes.copied(9, 0, 1, 0);
  nodes.copied(10, 0, 6, 0);
  nodes.copied(11, 0, 7, 0);
  nodes.copied(11, 1, 7, 1);
  nodes.copied(10, 1, 6, 1);
  nodes.copied(10, 2, 6, 2);
  nodes.copied(9, 1, 1, 1);
  nodes.copied(9, 2, 1, 2);
  nodes.copied(12, 0, 8, 0);
  nodes.copied(9, 3, 1, 3);
  nodes.copied(9, 4, 1, 4);
  for (const auto& [number, owner] : {std::pair(0, "n1"),
                                      {2, "n6"},
                                      {4, "n8"},
                                      {5, "a2"},
                                      {7, "a5"},
                                      {8, "c3"},
                                      {9, "c4"},
                                      {10, "b7"},
                                      {6, ""},  // the child graph in A
                                      {11, ""}})
    EXPECT_EQ(nodes.of(9, number), owner) << number;
}

// A switch of three bodies, which is the only node of graph 58: its body graphs are marked before any of its own.
TEST(GraphNodes, BodiesOfConditionalNodesComeInTheirOrder) {
  Nodes nodes;
  for (int body = 0; body < 3; ++body)
    for (int number = 0; number < 2; ++number) nodes.made(59 + body, number, std::to_string(10 * body + number));
  for (int body = 0; body < 3; ++body)
    for (int number = 0; number < 2; ++number) nodes.copied(63 + body, number, 59 + body, number);
  nodes.copied(62, 0, 58, 0);
  for (int body = 0; body < 3; ++body)
    for (int number = 0; number < 2; ++number)
      EXPECT_EQ(nodes.of(62, 1 + 2 * body + number), std::to_string(10 * body + number));
  EXPECT_EQ(nodes.of(62, 7), "");
}

TEST(GraphNodes, ChildGraphWithinABody) {
  Nodes nodes;
  nodes.made(106, 0, "k1");
  nodes.made(106, 2, "k4");
  nodes.made(107, 0, "k2");
  nodes.made(107, 1, "k3");
  nodes.copied(109, 0, 106, 0);
  nodes.copied(110, 0, 107, 0);
  nodes.copied(110, 1, 107, 1);
  nodes.copied(109, 1, 106, 1);
  nodes.copied(109, 2, 106, 2);
  nodes.copied(108, 0, 104, 0);
  EXPECT_EQ(nodes.of(108, 1), "k1");
  EXPECT_EQ(nodes.of(108, 3), "k4");
  EXPECT_EQ(nodes.of(108, 4), "k2");
  EXPECT_EQ(nodes.of(108, 5), "k3");
}

// if a child graph, else a kernel.
TEST(GraphNodes, AllBodiesOfANodeComeBeforeTheGraphsInsideThem) {
  Nodes nodes;
  nodes.made(30, 0, "child's");
  nodes.made(31, 0, "else");
  nodes.copied(32, 0, 30, 0);
  // Instantiated: graph 35 with the bodies 36, in which is 37, and 38.
  nodes.copied(37, 0, 32, 0);
  nodes.copied(36, 0, 29, 0);
  nodes.copied(38, 0, 31, 0);
  nodes.copied(35, 0, 28, 0);
  EXPECT_EQ(nodes.of(35, 1), "");  // the child graph
  EXPECT_EQ(nodes.of(35, 2), "else");
  EXPECT_EQ(nodes.of(35, 3), "child's");
}

// Graphs of other threads are numbered in between.
TEST(GraphNodes, ThreadsDoNotMix) {
  GraphNodes<std::string> nodes;
  nodes.made(kProcess, node(1, 0), "one");
  nodes.made(kProcess, node(2, 0), "two");
  const auto copied = [&](int64_t thread, int64_t copy, int64_t original) {
    nodes.copy(thread, copy);
    nodes.origin(thread, kProcess, original);
  };
  copied(1, node(5, 0), node(1, 0));  // inside graph 3
  copied(2, node(6, 0), node(2, 0));  // inside graph 4
  copied(1, node(3, 0), node(10, 0));
  copied(2, node(4, 0), node(11, 0));
  ASSERT_NE(nodes.find(kProcess, node(3, 1)), nullptr);
  EXPECT_EQ(*nodes.find(kProcess, node(3, 1)), "one");
  ASSERT_NE(nodes.find(kProcess, node(4, 1)), nullptr);
  EXPECT_EQ(*nodes.find(kProcess, node(4, 1)), "two");
}

TEST(GraphNodes, IdsThatAreNumberedInAnotherWaySayNothing) {
  Nodes nodes;
  nodes.made(5, 3, "add");
  nodes.copied(7, 3, 5, 3);  // not from 0
  nodes.copied(6, 0, 4, 0);
  EXPECT_EQ(nodes.of(6, 1), "");
  EXPECT_EQ(nodes.of(7, 3), "add");
}

TEST(GraphNodes, GraphsInsideEachOtherWithoutEnd) {
  Nodes nodes;
  constexpr int64_t kMany = 1 << 17;
  nodes.made(2 * kMany, 0, "add");
  nodes.copied(kMany, 0, 2 * kMany, 0);
  for (int64_t graph = kMany; --graph > 0;) nodes.copied(graph, 0, kMany + graph, 0);
  EXPECT_EQ(nodes.of(1, 1), "");
  EXPECT_EQ(nodes.of(kMany - 1, 1), "add");
}

}  // namespace
}  // namespace tacho::analysis
