// Operators that two traces carry out by different others (analysis/operators/common_parents.h).
#include "analysis/operators/common_parents.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/diff.h"
#include "analysis/recorded_operators.h"

namespace tacho::analysis {
namespace {

using trace::must;

// A program's calls one after the other, each of which launches one kernel: "aten::linear>aten::mm" with its time.
class Calls {
 public:
  void shaped(const std::vector<std::pair<std::string_view, std::string_view>>& path, int64_t ns) {
    int64_t start = at_ += 1000, duration = 900;
    for (const auto& [name, shapes] : path) {
      recorded_.profiled(recorded_.main(), start, duration, name, shapes);
      start += 10;
      duration -= 20;
    }
    recorded_.kernel(recorded_.main(), start, ns);
  }
  void call(const std::vector<std::string_view>& path, int64_t ns) {
    std::vector<std::pair<std::string_view, std::string_view>> plain;
    for (const std::string_view name : path) plain.emplace_back(name, "");
    shaped(plain, ns);
  }
  // Two kernels in one call of `outer`.
  void both(std::string_view outer, std::string_view first, std::string_view second, int64_t ns) {
    const int64_t start = at_ += 1000, main = recorded_.main();
    recorded_.profiled(main, start, 900, outer);
    recorded_.profiled(main, start + 10, 100, first);
    recorded_.kernel(main, start + 20, ns);
    recorded_.profiled(main, start + 200, 100, second);
    recorded_.kernel(main, start + 210, ns);
  }
  Recorded& recorded() { return recorded_; }
  int64_t next() { return at_ += 1000; }

 private:
  Recorded recorded_;
  int64_t at_ = 0;
};

struct Compared {
  std::map<std::string, std::pair<int64_t, int64_t>> ns;
  std::map<std::string, std::pair<int64_t, int64_t>> calls;
  std::vector<std::string> remarks;
};

Compared compare(Calls& a, Calls& b, bool shapes = false) {
  const auto trace_a = a.recorded().open(), trace_b = b.recorded().open();
  const Diff diff = must(analysis::diff(*trace_a, *trace_b, DiffBy::kOperator, shapes));
  Compared out{.ns = {}, .calls = {}, .remarks = diff.remarks};
  for (DiffRow row; diff.next(row);) {
    out.ns[row.name] = {row.a.total, row.b.total};
    out.calls[row.name] = {row.a.calls, row.b.calls};
  }
  return out;
}

using Rows = std::map<std::string, std::pair<int64_t, int64_t>>;

TEST(CommonParents, TheInnermostOneStandsForWhatDiffers) {
  Calls a, b;
  for (int i = 0; i < 3; ++i) {
    a.call({"aten::block", "aten::linear", "aten::addmm"}, 50);
    b.both("aten::linear", "aten::mm", "aten::add_", 30);
    for (Calls* const each : {&a, &b}) each->call({"aten::block", "aten::relu"}, 7);
  }
  const Compared got = compare(a, b);
  EXPECT_EQ(got.ns, (Rows{{"aten::linear", {150, 180}}, {"aten::relu", {21, 21}}}));
  EXPECT_EQ(got.calls.at("aten::linear"), (std::pair<int64_t, int64_t>(3, 3))) << "a value for each call of it";
  EXPECT_EQ(got.remarks,
            std::vector<std::string>{"aten::linear stands for aten::addmm in A, for aten::add_ and aten::mm in B"});
}

TEST(CommonParents, WhatRunsAsOftenStaysARowOfItsOwn) {
  Calls a, b;
  for (int i = 0; i < 4; ++i) {
    a.both("my::layer", "aten::mm", "aten::gelu", 10);
    b.both("my::layer", "aten::mm", "aten::silu", 20);
  }
  EXPECT_EQ(compare(a, b).ns, (Rows{{"aten::mm", {40, 80}}, {"my::layer", {40, 80}}}));
}

TEST(CommonParents, NamesOfBothStayAsTheyAre) {
  Calls a, b;
  a.call({"aten::linear", "aten::addmm"}, 50);
  a.call({"aten::linear", "aten::mm"}, 40);
  b.call({"aten::linear", "aten::addmm"}, 50);
  b.call({"aten::addmm"}, 50);
  b.call({"aten::mm"}, 30);
  const Compared got = compare(a, b);
  EXPECT_EQ(got.ns, (Rows{{"aten::addmm", {50, 100}}, {"aten::mm", {40, 30}}}));
  EXPECT_TRUE(got.remarks.empty());
}

TEST(CommonParents, NotAcrossModulesAndRanges) {
  Calls a, b;
  const auto inside = [](Calls& calls, std::string_view name) {
    Recorded& to = calls.recorded();
    const int64_t start = calls.next();
    to.profiled(to.main(), start, 900, "my::checkpoint");
    to.range(to.main(), start + 10, 800, "forward");
    to.profiled(to.main(), start + 20, 700, name);
    to.kernel(to.main(), start + 30, 5);
  };
  inside(a, "aten::gelu");
  inside(b, "aten::silu");
  a.call({"ProfilerStep", "aten::a"}, 5);
  b.call({"ProfilerStep", "aten::b"}, 5);
  EXPECT_EQ(compare(a, b).ns,
            (Rows{{"aten::gelu", {5, 0}}, {"aten::silu", {0, 5}}, {"aten::a", {5, 0}}, {"aten::b", {0, 5}}}));
}

TEST(CommonParents, ProductsAreOneKind) {
  Calls a, b;
  a.call({"aten::addmm"}, 50);
  b.call({"aten::mm"}, 40);
  const Compared got = compare(a, b);
  EXPECT_EQ(got.ns, (Rows{{"matrix product", {50, 40}}}));
  EXPECT_EQ(got.remarks, std::vector<std::string>{"matrix product stands for aten::addmm in A, for aten::mm in B"});
}

TEST(CommonParents, ProductsOfOneSizeMeet) {
  Calls a, b;
  using Path = std::vector<std::pair<std::string_view, std::string_view>>;
  a.shaped(Path{{"aten::addmm", "[[5], [8, 3], [3, 5], [], []]"}}, 50);
  b.shaped(Path{{"aten::mm", "[[8, 3], [3, 5]]"}}, 40);
  b.shaped(Path{{"aten::mm", "[[9, 3], [3, 5]]"}}, 1);
  a.shaped(Path{{"aten::linear", "[[2, 8, 3], [5, 3], []]"}, {"aten::gelu", "[[1]]"}}, 2);
  b.shaped(Path{{"aten::linear", "[[2, 8, 3], [5, 3], []]"}, {"aten::silu", "[[1]]"}}, 3);
  EXPECT_EQ(compare(a, b, true).ns, (Rows{{"matrix product 8 x 5 x 3", {50, 40}},
                                          {"aten::mm [[9, 3], [3, 5]]", {0, 1}},
                                          {"aten::linear [[2, 8, 3], [5, 3], []]", {2, 3}}}));
}

TEST(CommonParents, KindsOfProducts) {
  EXPECT_EQ(product_kind("aten::linear", "[[2, 8, 3], [5, 3], []]"), "matrix product 16 x 5 x 3");
  for (const std::string_view dims : {"[[8, 3], [4, 5]]", "[[8, 3]]", "[]", "[[[8, 3], [3, 5]]]", "[[8, -3], [3, 5]]",
                                      "[[8, 3], [3, 5]", "]", "7", "[[], [3, 5]]", "x"})
    EXPECT_EQ(product_kind("aten::mm", dims), "") << dims;
  EXPECT_EQ(product_kind("aten::mm", "[[99999999999999999999, 3], [3, 5]]"),
            "matrix product 9223372036854775807 x 5 x 3");
  EXPECT_EQ(product_kind("aten::add"), "");
}

TEST(CommonParents, TooManyPathsDecideNothing) {
  CommonParents parents(3);
  const int32_t outer = parents.call(0, CommonParents::kRoot, 1);
  parents.works(0, parents.call(0, outer, 2));
  EXPECT_EQ(parents.call(1, outer, 3), CommonParents::kUnknownPath);
  parents.works(1, CommonParents::kUnknownPath);
  parents.resolve([](int64_t) { return true; });
  EXPECT_TRUE(parents.too_many());
  EXPECT_FALSE(parents.changes());
}

}  // namespace
}  // namespace tacho::analysis
