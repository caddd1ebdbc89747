// Trees of stacks that are made small: remaining frames keep their times, nothing is lost, and two runs keep the same
// frames.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "analysis/stacks/stacks.h"
#include "base/format.h"

namespace tacho::analysis {
namespace {

StackTree random_tree(std::mt19937& random, size_t nodes, int names) {
  StackTree tree;
  tree.frames.push_back({StackPart::kRoot, "all", "", 0, ""});
  for (int i = 1; i <= names; ++i)
    tree.frames.push_back({i % 3 == 0 ? StackPart::kPython : StackPart::kNative, fmt::format("f{}", i),
                           fmt::format("/src/{}.py", i % 2), i % 4, "m"});
  tree.nodes.push_back({});
  std::map<std::pair<uint32_t, uint32_t>, bool> children;
  while (tree.nodes.size() < nodes) {
    const auto parent = static_cast<uint32_t>(random() % tree.nodes.size());
    const auto frame = static_cast<uint32_t>(1 + random() % static_cast<size_t>(names));
    if (!children.try_emplace({parent, frame}, true).second) continue;
    const auto weight = static_cast<int64_t>(1) << random() % 20;
    tree.nodes.push_back({parent, frame, random() % 3 == 0 ? 0 : weight, 1, random() % 2 == 0 ? weight : 0, 2});
  }
  for (const StackNode& node : tree.nodes) {
    tree.host_ns += node.host_ns;
    tree.gpu_ns += node.gpu_ns;
  }
  return tree;
}

struct Times {
  int64_t host = 0, gpu = 0, samples = 0, launches = 0;
  bool operator==(const Times&) const = default;
};
// The times of each path and of the paths below it, by the texts of its frames.
std::map<std::string, Times> times_of(const StackTree& tree) {
  std::vector<std::string> path(tree.nodes.size());
  std::map<std::string, Times> times;
  for (size_t i = 0; i < tree.nodes.size(); ++i) {
    const StackFrame& frame = tree.frames[tree.nodes[i].frame];
    if (i > 0)
      path[i] = path[tree.nodes[i].parent] +
                fmt::format(";{}:{}:{}:{}", static_cast<int>(frame.part), frame.name, frame.file, frame.line);
    for (size_t up = i;; up = tree.nodes[up].parent) {
      Times& to = times[path[up]];
      to.host += tree.nodes[i].host_ns;
      to.gpu += tree.nodes[i].gpu_ns;
      to.samples += tree.nodes[i].samples;
      to.launches += tree.nodes[i].launches;
      if (up == 0) break;
    }
  }
  return times;
}

TEST(BoundTrees, SmallTreesStayAsTheyAre) {
  std::mt19937 random(1);
  std::vector<StackTree> trees = {random_tree(random, 50, 10)};
  const auto before = times_of(trees[0]);
  const FoldedFrames folded = bound_trees(trees, 50, 100);
  EXPECT_EQ(folded.nodes, 0);
  EXPECT_EQ(times_of(trees[0]), before);
}

TEST(BoundTrees, WhatStaysKeepsItsTimesAndTheRestIsInItsPlace) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    std::vector<StackTree> trees;
    for (size_t t = 0; t < 1 + seed % 2; ++t) trees.push_back(random_tree(random, 400, 30));
    std::vector<std::map<std::string, Times>> before, after;
    for (const StackTree& tree : trees) before.push_back(times_of(tree));
    const size_t most = 40, depth = seed % 3 == 0 ? 3 : 100;
    const FoldedFrames folded = bound_trees(trees, most, depth);
    EXPECT_GT(folded.nodes, 0);
    int64_t away = 0;
    std::vector<double> least(trees.size(), 1);
    for (size_t t = 0; t < trees.size(); ++t) {
      const StackTree& tree = trees[t];
      EXPECT_LE(tree.nodes.size(), 2 * most + 1);
      for (size_t i = 1; i < tree.nodes.size(); ++i) {
        EXPECT_LT(tree.nodes[i].parent, i) << "parents come first";
        EXPECT_NE(tree.frames[tree.nodes[tree.nodes[i].parent].frame].part, StackPart::kFolded);
        if (tree.frames[tree.nodes[i].frame].part == StackPart::kFolded) away += tree.nodes[i].host_ns;
      }
      after.push_back(times_of(tree));
      for (const auto& [path, times] : after[t]) {
        EXPECT_LE(std::count(path.begin(), path.end(), ';'), static_cast<int64_t>(depth) + 1);
        if (path.find("[smaller frames]") == std::string::npos) {
          EXPECT_EQ(times, before[t].at(path)) << path;
        }
      }
      EXPECT_EQ(after[t].at(""), before[t].at(""));
    }
    EXPECT_EQ(away, folded.host_ns);
    if (trees.size() < 2) continue;
    // A frame that both had is in both or in none.
    for (const auto& [path, times] : before[0])
      if (before[1].contains(path)) {
        EXPECT_EQ(after[0].contains(path), after[1].contains(path)) << path;
      }
  }
}

TEST(BoundTrees, TheFramesWithTheMostTimeStay) {
  StackTree tree;
  tree.frames.push_back({StackPart::kRoot, "all", "", 0, ""});
  tree.nodes.push_back({});
  for (uint32_t i = 1; i <= 10; ++i) {
    tree.frames.push_back({StackPart::kNative, fmt::format("f{}", i), "", 0, ""});
    tree.nodes.push_back({0, i, i * 100, 1, 0, 0});
  }
  std::vector<StackTree> trees = {tree};
  const FoldedFrames folded = bound_trees(trees, 4, 10);  // the root is one of them
  EXPECT_EQ(folded.nodes, 7);
  EXPECT_EQ(folded.host_ns, 100 + 200 + 300 + 400 + 500 + 600 + 700);
  const auto times = times_of(trees[0]);
  EXPECT_EQ(times.size(), 5u);
  for (const int stays : {8, 9, 10}) EXPECT_EQ(times.at(fmt::format(";3:f{}::0", stays)).host, stays * 100);
}

}  // namespace
}  // namespace tacho::analysis
