// What is said of a moment.
#include "watch/answer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tacho::watch {
namespace {

// A second of which counting took so much.
WatchMoment moment_of(double counting_s, size_t processes = 1) {
  WatchMoment moment;
  moment.budget = 0.01;
  moment.snapshot.seconds = 1;
  moment.snapshot.timing_ns = 2e6;
  moment.snapshot.own_ns = counting_s * 1e9 + moment.snapshot.timing_ns;
  for (size_t i = 0; i < processes; ++i) {
    moment.snapshot.processes.emplace_back();
    moment.snapshot.processes.back().uses_devices = true;
  }
  return moment;
}
bool says(const WatchMoment& moment, const std::string& sentence) {
  const std::vector<std::string> all = watch_sentences(moment, true);
  return std::find(all.begin(), all.end(), sentence) != all.end();
}
bool says_that_counting_is_dear(const WatchMoment& moment) {
  const std::vector<std::string> all = watch_sentences(moment, true);
  return std::any_of(all.begin(), all.end(), [](const std::string& each) { return each.starts_with("Counting "); });
}

TEST(Answer, SaysWhatTheBudgetDoesNotLimit) {
  WatchMoment moment = moment_of(0.015);
  EXPECT_TRUE(says(moment, "Counting operations took 1.50 % of the run: the budget of 1.00 % limits timing only."));
  moment.keeps = true;
  EXPECT_TRUE(says(moment,
                   "Counting and keeping operations took 1.50 % of the run: the budget of 1.00 % limits timing only; "
                   "without --keep it takes less."));
  moment.counts_only = true;
  EXPECT_FALSE(says_that_counting_is_dear(moment));
}

TEST(Answer, SaysNothingOfCountingWithinTheBudget) {
  EXPECT_FALSE(says_that_counting_is_dear(moment_of(0.0095)));
  EXPECT_FALSE(says_that_counting_is_dear(moment_of(0.015, 2)));
  EXPECT_TRUE(says_that_counting_is_dear(moment_of(0.025, 2)));
}

}  // namespace
}  // namespace tacho::watch
