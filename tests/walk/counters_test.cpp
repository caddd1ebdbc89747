// Counters that several passes of a replayed kernel read (walk/counters.h).
#include "walk/counters.h"

#include <gtest/gtest.h>

#include "support/trace_maker.h"
#include "trace/read/rows.h"

namespace tacho::walk {
namespace {

namespace row = event::row;
using C = event::column::CounterValue;

class CounterPasses : public testing::Test {
 protected:
  CounterPasses() {
    made_.writer().dimension(row::Track{.native = 1});
    for (const char* name : {"waves", "cycles"}) made_.counter(name);
  }
  void value(int64_t start, int64_t counter, int64_t instance, int64_t pass, double value) {
    made_.counter_value(1, start, start / 100, counter, instance, value, pass);
  }
  // (start, counter) -> value
  std::map<std::pair<int64_t, int64_t>, double> sums() {
    const auto trace = made_.open();
    const auto passes = FirstPasses::make(*trace);
    EXPECT_TRUE(passes);
    std::map<std::pair<int64_t, int64_t>, double> out;
    Status status;
    for (const auto& value : trace::rows<C::track, C::start, C::ordinal, C::dim, C::pass, C::value>(*trace, status))
      if (passes->count(value.track, value.start, value.ordinal, value.dim, value.pass))
        out[{value.start, value.dim}] += value.value.value();
    EXPECT_TRUE(status);
    return out;
  }
  test::TraceMaker made_;
};

TEST_F(CounterPasses, InstancesOfAPassAddUp) {
  value(100, 1, 0, 0, 3);
  value(100, 1, 1, 0, 4);
  value(100, 2, 0, 1, 5);  // another counter, in its own pass
  EXPECT_EQ(sums(), (std::map<std::pair<int64_t, int64_t>, double>{{{100, 1}, 7}, {{100, 2}, 5}}));
}

TEST_F(CounterPasses, TheFirstOfSeveralPassesCounts) {
  value(100, 1, 0, 2, 30);
  value(100, 1, 1, 2, 40);
  value(100, 1, 0, 1, 3);
  value(100, 1, 1, 1, 4);
  value(200, 1, 0, 2, 50);  // the only pass that read it in this dispatch
  value(200, 1, 1, 2, 60);
  value(100, 2, 0, 3, 9);
  EXPECT_EQ(sums(), (std::map<std::pair<int64_t, int64_t>, double>{{{100, 1}, 7}, {{100, 2}, 9}, {{200, 1}, 110}}));
}

TEST(CounterSums, KeepTheOrderInWhichCountersCame) {
  CounterSums sums;
  sums.add(5, 1);
  sums.add(3, 2);
  sums.add(5, 10);
  EXPECT_EQ(sums.values(), (std::vector<std::pair<int64_t, double>>{{5, 11}, {3, 2}}));
}

}  // namespace
}  // namespace tacho::walk
