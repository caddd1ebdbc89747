// Frames of two builds that are one function: which are matched, which stay, and that no time is lost.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "analysis/stacks/stacks.h"
#include "base/format.h"

namespace tacho::analysis {
namespace {

std::string matched(StackPart part, std::string_view name) {
  return matched_name({part, std::string(name), "", 0, ""});
}

TEST(MatchedStacks, NamesOfFunctions) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"main", "main"},
      {"work(int)", "work"},
      {"void work<float>(float*, int)", "work<…>"},
      {"void work<double, 4>(double*, int)", "work<…>"},
      {"unsigned long ns::Sum<int>::add(int) const", "ns::Sum<…>::add"},
      {"std::vector<int, std::allocator<int> >::push_back(int const&)", "std::vector<…>::push_back"},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::Add<float>, std::array<char*, 3ul> >(int, "
       "at::native::Add<float>, std::array<char*, 3ul>)",
       "at::native::vectorized_elementwise_kernel<…>"},
      {"void at::native::(anonymous namespace)::softmax<8, float>(float*)",
       "at::native::(anonymous namespace)::softmax<…>"},
      {"(anonymous namespace)::run(int)", "(anonymous namespace)::run"},
      {"run(int)::{lambda(float)#1}::operator()(float) const", "run::{lambda#1}::operator()"},
      {"bool operator< <int>(A<int> const&, A<int> const&)", "operator<<…>"},
      {"A::operator bool() const", "A::operator bool"},
      {"operator<<(std::ostream&, A const&)", "operator<<"},
      {"step(int) [clone .isra.0]", "step"},
      {"step.constprop.12.isra.3", "step"},
      {"app::main::h0123456789abcdef", "app::main"},
      {"Cijk_Ailk_Bljk_HHS_BH_MT128x64x32", "Cijk_Ailk_Bljk_HHS_BH_MT128x64x32"},
      {"Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"},
      {"unbalanced<int(", "unbalanced<int("},
      {"0x7f12ab3400", "0x…"},
      {"jit_0x7f12ab3400_fwd", "jit_0x7f12ab3400_fwd"},  // not an address
      {"", ""}};
  for (const auto& [name, expected] : kNames) {
    EXPECT_EQ(matched(StackPart::kNative, name), expected);
    EXPECT_EQ(matched(StackPart::kDevice, name), expected);
  }
  EXPECT_EQ(matched(StackPart::kNative, "[libfoo.so.1.2]"), "[libfoo.so]");
  EXPECT_EQ(matched(StackPart::kNative, "[app]"), "[app]");
  // Ranges are no signatures.
  EXPECT_EQ(matched(StackPart::kMarker, "forward (layer 3) <a>"), "forward (layer 3) <a>");
  EXPECT_EQ(matched(StackPart::kMarker, "<module at 0x7f12ab3400>"), "<module at 0x…>");
  EXPECT_EQ(matched(StackPart::kThread, "worker 4711"), "worker");
  EXPECT_EQ(matched(StackPart::kProcess, "python3 (4711)"), "python3");
  EXPECT_EQ(matched(StackPart::kThread, "4711"), "4711");
}

// A tree of paths; each path's time is given to its last frame.
StackTree tree_of(const std::vector<std::pair<std::vector<StackFrame>, int64_t>>& paths) {
  StackTree tree;
  tree.frames.push_back({StackPart::kRoot, "all", "", 0, ""});
  tree.nodes.push_back({});
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> child;
  for (const auto& [path, ns] : paths) {
    uint32_t at = 0;
    for (const StackFrame& frame : path) {
      uint32_t f = 1;
      while (f < tree.frames.size() && (tree.frames[f].part != frame.part || tree.frames[f].name != frame.name ||
                                        tree.frames[f].file != frame.file))
        ++f;
      if (f == tree.frames.size()) tree.frames.push_back(frame);
      const auto [found, fresh] = child.try_emplace({at, f}, static_cast<uint32_t>(tree.nodes.size()));
      if (fresh) tree.nodes.push_back({at, f, 0, 0, 0, 0});
      at = found->second;
    }
    tree.nodes[at].host_ns += ns;
    tree.nodes[at].samples += 1;
    tree.nodes[at].gpu_ns += 2 * ns;
    tree.nodes[at].launches += 3;
    tree.host_ns += ns;
    tree.gpu_ns += 2 * ns;
    ++tree.samples;
  }
  return tree;
}
std::map<std::string, int64_t> stacks_of(const StackTree& tree) {
  std::map<std::string, int64_t> times;
  for (const StackRow& row : stack_rows(tree, StackBy::kStack)) times[row.stack] += row.self_ns;
  return times;
}
StackFrame native(std::string name, std::string file = "app.cpp") {
  return {StackPart::kNative, std::move(name), std::move(file), 0, "app"};
}
StackFrame python(std::string name, std::string file) {
  return {StackPart::kPython, std::move(name), std::move(file), 0, ""};
}
StackFrame level(StackPart part, std::string name) {
  return {part, std::move(name), "", 0, ""};
}

TEST(MatchedStacks, OnlyFramesWithoutAnEqualOneAreMatched) {
  std::array trees = {tree_of({{{native("main"), native("void f<int>(int)"), native("leaf(int)")}, 10},
                               {{native("main"), native("void f<long>(long)"), native("leaf(int)")}, 5},
                               {{native("main"), native("void g<int>()")}, 3},
                               {{native("main"), native("void gone<int>()")}, 2}}),
                      tree_of({{{native("main"), native("void f<short>(short)"), native("leaf(int)")}, 7},
                               {{native("main"), native("void g<int>()")}, 4},
                               {{native("main"), native("void g<long>()")}, 6}})};
  match_functions(trees);
  using Times = std::map<std::string, int64_t>;
  // f<int>, f<long> have no equal: they become f<…>, and one. g<int> is in both; g<long> has no counterpart then.
  EXPECT_EQ(stacks_of(trees[0]),
            (Times{{"main;f<…>;leaf(int)", 15}, {"main;void g<int>()", 3}, {"main;void gone<int>()", 2}}));
  EXPECT_EQ(stacks_of(trees[1]),
            (Times{{"main;f<…>;leaf(int)", 7}, {"main;void g<int>()", 4}, {"main;void g<long>()", 6}}));
  EXPECT_EQ(trees[0].nodes.size(), 6U);
  EXPECT_EQ(trees[0].host_ns, 20);
}

TEST(MatchedStacks, FilesThatMoved) {
  std::array trees = {tree_of({{{python("step", "/home/a/train.py"), native("run(int)", "")}, 1}}),
                      tree_of({{{python("step", "/home/b/train.py"), native("run(int)", "run.cpp")}, 2}})};
  match_functions(trees);
  for (const StackTree& tree : trees) {
    ASSERT_EQ(tree.frames.size(), 3U);
    EXPECT_EQ(tree.frames[1].file, "/home/a/train.py");
    EXPECT_EQ(tree.frames[2].name, "run(int)");
    EXPECT_EQ(tree.frames[2].file + tree.frames[2].module, "");
  }
  // The same function of other files is another one.
  std::array others = {tree_of({{{python("step", "/a/train.py")}, 1}}), tree_of({{{python("step", "/a/test.py")}, 2}})};
  match_functions(others);
  EXPECT_EQ(others[0].frames[1].file, "/a/train.py");
  EXPECT_EQ(others[1].frames[1].file, "/a/test.py");
}

TEST(MatchedStacks, ThreadsGoByTheirNames) {
  std::array trees = {tree_of({{{level(StackPart::kThread, "worker 11"), native("a")}, 1},
                               {{level(StackPart::kThread, "worker 12"), native("a")}, 2},
                               {{level(StackPart::kThread, "main 10"), native("a")}, 3}}),
                      tree_of({{{level(StackPart::kThread, "main 20"), native("a")}, 4},
                               {{level(StackPart::kThread, "worker 21"), native("a")}, 5}})};
  match_functions(trees);
  using Times = std::map<std::string, int64_t>;
  EXPECT_EQ(stacks_of(trees[0]), (Times{{"worker;a", 1}, {"worker 12;a", 2}, {"main;a", 3}}));
  EXPECT_EQ(stacks_of(trees[1]), (Times{{"main;a", 4}, {"worker;a", 5}}));
}

TEST(MatchedStacks, NoTimeIsLostAndTwiceIsAsOnce) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::array<StackTree, 2> trees;
    for (StackTree& tree : trees) {
      std::vector<std::pair<std::vector<StackFrame>, int64_t>> paths(1 + random() % 30);
      for (auto& [path, ns] : paths) {
        path.resize(1 + random() % 6);
        for (StackFrame& frame : path)
          frame = random() % 2 == 0 ? native(fmt::format("void f{}<{}>(int)", random() % 3, random() % 4))
                                    : python(fmt::format("p{}", random() % 3), fmt::format("/{}/m.py", random() % 3));
        ns = static_cast<int64_t>(random() % 100);
      }
      tree = tree_of(paths);
    }
    const std::array before = trees;
    match_functions(trees);
    for (size_t t = 0; t < 2; ++t) {
      StackNode sum;
      std::map<std::pair<uint32_t, uint32_t>, int> children;
      for (size_t i = 0; i < trees[t].nodes.size(); ++i) {
        const StackNode& node = trees[t].nodes[i];
        sum.host_ns += node.host_ns;
        sum.gpu_ns += node.gpu_ns;
        sum.samples += node.samples;
        sum.launches += node.launches;
        if (i > 0) {
          ASSERT_LT(node.parent, i);
          ASSERT_EQ(++(children[{node.parent, node.frame}]), 1) << "equal frames below one caller are one";
        }
      }
      EXPECT_EQ(sum.host_ns, before[t].host_ns);
      EXPECT_EQ(sum.gpu_ns, before[t].gpu_ns);
      EXPECT_EQ(sum.samples, before[t].samples);
      EXPECT_EQ(sum.launches, 3 * before[t].samples);
    }
    const std::array once = trees;
    match_functions(trees);
    for (size_t t = 0; t < 2; ++t) EXPECT_EQ(stacks_of(trees[t]), stacks_of(once[t]));
  }
  // A run beside itself stays as it is.
  const StackTree one = tree_of({{{native("void f<int>()"), native("void f<long>()")}, 3}});
  std::array same = {one, one};
  match_functions(same);
  EXPECT_EQ(stacks_of(same[0]), stacks_of(one));
}

}  // namespace
}  // namespace tacho::analysis
