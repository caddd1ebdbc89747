// Calls and time by name: codes of one name meet, the order is the view's, and many names go through files.
#include "query/engine/named_sums.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

namespace tacho::query {
namespace {

TextOf names(std::vector<std::string> texts) {
  return [texts = std::move(texts)](int64_t code, std::string&) {
    return std::string_view(texts[static_cast<size_t>(code)]);
  };
}

std::vector<std::string> lines(const NamedSums& sums) {
  std::vector<std::string> result;
  std::string scratch;
  for (size_t i = 0; i < sums.size(); ++i) {
    const NamedSums::Row row = sums.row(i);
    result.push_back(std::string(sums.name(row.code, scratch)) + " " + std::to_string(row.calls) + " " +
                     std::to_string(row.total));
  }
  return result;
}

TEST(NamedSums, EqualNamesMeetAndNothingWithoutCallsIsLeft) {
  const std::string common(40, 'x');  // names that differ far behind their beginnings
  NamedSums sums(names({common + "b", common + "a", common + "b", "gone", "", "no row"}),
                 [](int64_t code) { return code != 5; });
  for (const auto& [code, calls, timed, total] : std::vector<NamedSums::Row>{{0, 1, 1, 1500},
                                                                             {1, 2, 2, 1900},
                                                                             {2, 1, 1, 450},
                                                                             {3, 1, 1, 7000},
                                                                             {4, 1, 1, 1800},
                                                                             {5, 1, 1, 9000},
                                                                             {3, -1, -1, -7000}})
    sums.add(code, calls, timed, total);
  ASSERT_TRUE(sums.finish(NamedSums::Order::kTotal));
  EXPECT_EQ(lines(sums), (std::vector<std::string>{common + "b 2 1950", common + "a 2 1900", " 1 1800"}));
}

TEST(NamedSums, CallsOfUnknownDurationCountAndAddNoTime) {
  NamedSums sums(names({"a", "a", "b"}));
  sums.add_call(0, 30);
  sums.add_call(1, event::kUnknown);
  sums.add_call(2, event::kUnknown);
  ASSERT_TRUE(sums.finish(NamedSums::Order::kTotal));
  ASSERT_EQ(sums.size(), 2u);
  const NamedSums::Row a = sums.row(0), b = sums.row(1);
  EXPECT_EQ(std::tuple(a.calls, a.timed, a.total), (std::tuple(int64_t{2}, int64_t{1}, int64_t{30})));
  EXPECT_EQ(std::tuple(b.calls, b.timed, b.total), (std::tuple(int64_t{1}, int64_t{0}, int64_t{0})));
}

TEST(NamedSums, OrdersOfTheViews) {
  const auto order = [](NamedSums::Order which) {
    NamedSums sums(names({"a", "b", "c"}));
    sums.add_call(0, 5100);
    sums.add_call(1, 5000);
    sums.add_call(2, 4999);
    EXPECT_TRUE(sums.finish(which));
    return lines(sums);
  };
  EXPECT_EQ(order(NamedSums::Order::kTotal), (std::vector<std::string>{"a 1 5100", "b 1 5000", "c 1 4999"}));
  EXPECT_EQ(order(NamedSums::Order::kRpd),
            (std::vector<std::string>{"b 1 5000", "a 1 5100", "c 1 4999"}));  // both 5 us: backwards
  EXPECT_EQ(order(NamedSums::Order::kRocpd), (std::vector<std::string>{"a 1 5100", "b 1 5000", "c 1 4999"}));
}

TEST(NamedSums, MoreNamesThanAreKeptInMemory) {
  constexpr int64_t kNames = 700'000;  // of two codes each
  NamedSums sums([](int64_t code, std::string& scratch) {
    scratch = "kernel " + std::to_string(1'000'000 + code % kNames);
    return std::string_view(scratch);
  });
  for (int64_t code = 0; code < 2 * kNames; ++code) sums.add_call(code * 7919 % (2 * kNames), code % 5);
  ASSERT_TRUE(sums.finish(NamedSums::Order::kTotal));
  ASSERT_EQ(sums.size(), static_cast<size_t>(kNames));
  int64_t calls = 0, total = 0, last = INT64_MAX;
  bool descending = true;
  for (size_t i = 0; i < sums.size(); ++i) {
    const NamedSums::Row row = sums.row(i);
    calls += row.calls;
    total += row.total;
    descending = descending && row.total <= last;
    last = row.total;
  }
  EXPECT_EQ(calls, 2 * kNames);
  EXPECT_EQ(total, 2 * kNames * 2);
  EXPECT_TRUE(descending);
}

}  // namespace
}  // namespace tacho::query
