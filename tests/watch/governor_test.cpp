// The governor on programs whose loss is known.
#include "watch/governor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace tacho::watch {
namespace {

constexpr double kStep = 0.02;

// Operations of which one takes `each` seconds, and its timing `timing` seconds more. 1 of 128 is timed, or of 2^level
// where that is more. The pace wavers: `noise` from step to step, `drift` slowly.
struct Load {
  double each = 10e-6, timing = 0, noise = 0.02, drift = 0.02;
  double loss(uint32_t level) const { return share(timing / std::pow(2, std::max(level, 7u))); }
  double share(double more) const { return more / (each + more); }
};

class Program {
 public:
  explicit Program(uint64_t seed = 3) : random_(seed) {}
  // `accounted`: the part of what timing takes that is in its own account.
  void run(Governor& governor, double seconds, const std::function<Load(double now)>& load, double accounted = 1) {
    for (const double end = now_ + seconds; now_ < end; now_ += kStep) {
      const Load is = load(now_);
      slow_ = 0.98 * slow_ + std::sqrt(1 - 0.98 * 0.98) * normal_(random_);
      const bool with = setting_.timing == event::WatchTiming::kOn;
      const double lost = with ? is.loss(setting_.least_level) : 0;
      const double pace = std::exp(is.noise * normal_(random_) + is.drift * slow_) / is.each;
      done_ += pace * kStep * (1 - lost);
      taken_ += accounted * kStep * lost;
      lost_ += kStep * lost;
      timed_ += with ? pace * kStep / std::pow(2, std::max(setting_.least_level, 7u)) : 0;
      setting_ = governor.step({.now = now_,
                                .operations = static_cast<uint64_t>(done_),
                                .timed = static_cast<uint64_t>(timed_),
                                .timing = taken_});
    }
  }
  void run(Governor& governor, double seconds, const Load& load, double accounted = 1) {
    run(
        governor, seconds, [&](double) { return load; }, accounted);
  }
  const WatchSetting& setting() const { return setting_; }
  double lost() const { return lost_; }  // seconds

 private:
  double now_ = 0, done_ = 0, timed_ = 0, taken_ = 0, slow_ = 0, lost_ = 0;
  WatchSetting setting_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

// A load that loses this share with 1 of 128 timed.
Load losing(double share) {
  Load load;
  load.timing = 128 * load.each * share / (1 - share);
  return load;
}

TEST(Governor, ItsIntervalContainsThePlantedCostAndResolvesHalfAPercent) {
  for (const double planted : {0.0, 0.002, 0.01, 0.03}) {
    SCOPED_TRACE(planted);
    constexpr int kRuns = 100;
    int good = 0;
    double widest = 0;
    for (uint64_t seed = 1; seed <= kRuns; ++seed) {
      Governor governor(0.5);
      Program program(seed);
      program.run(governor, 30, losing(planted));
      const auto cost = governor.cost();
      ASSERT_TRUE(cost);
      good += cost->low <= planted && planted <= cost->high ? 1 : 0;
      widest = std::max(widest, (cost->high - cost->low) / 2);
    }
    // 95 of 100, less two standard deviations of so many runs.
    EXPECT_GE(good, kRuns * 90 / 100);
    EXPECT_LE(widest, 0.006);
  }
}

TEST(Governor, StretchesInWhichTheMachineDoesSomethingElseAreNoCost) {
  std::mt19937_64 random{5};
  const auto disturbed = [&](double) {
    Load load = losing(0.01);
    if (random() % 25 == 0) load.each *= 1.6;
    return load;
  };
  Governor governor(0.5);
  Program program;
  program.run(governor, 60, disturbed);
  const auto cost = governor.cost();
  ASSERT_TRUE(cost);
  EXPECT_LE(cost->low, 0.01);
  EXPECT_GE(cost->high, 0.01);
  EXPECT_LE(cost->high - cost->low, 0.02);
}

TEST(Governor, HoldsTheBudgetInEveryLoadAndWhenItChanges) {
  const Load eager{.each = 5e-6, .timing = 12e-6}, graphs{.each = 370e-6, .timing = 12e-6},
      dear{.each = 5e-6, .timing = 80e-6};
  const std::function<Load(double)> loads[] = {
      [&](double) { return eager; }, [&](double) { return graphs; }, [&](double) { return dear; },
      [&](double now) { return std::fmod(now, 0.6) < 0.3 ? dear : graphs; },  // mixed
      [&](double now) { return std::fmod(now, 40) < 20 ? graphs : dear; }};   // it changes
  for (const auto& load : loads) {
    SCOPED_TRACE(&load - loads);
    Governor governor(0.01);
    Program program;
    program.run(governor, 5, load);
    const double before = program.lost();
    program.run(governor, 120, load);
    EXPECT_LE((program.lost() - before) / 120, 0.015);
    EXPECT_FALSE(governor.gave_up());
  }
}

TEST(Governor, ComesBackWhenTheLoadIsCheapAgain) {
  Governor governor(0.01);
  Program program;
  program.run(governor, 20, losing(0.10));
  EXPECT_GE(program.setting().least_level, 10u);
  program.run(governor, 10, losing(0.0001));
  EXPECT_LE(program.setting().least_level, 7u);  // as low as a row goes by itself
  program.run(governor, 30, losing(0.0001));
  EXPECT_EQ(program.setting().least_level, 0u);
}

TEST(Governor, FindsACostThatIsInNoAccount) {
  Governor governor(0.01);
  Program program;
  program.run(governor, 120, losing(0.10), 0);
  EXPECT_FALSE(governor.gave_up());
  EXPECT_GE(program.setting().least_level, 10u);
}

// Some times take 3 ms more, as when the kernel gives the processor to another program: that is not what times take.
TEST(Governor, MomentsInWhichTheMachineDoesSomethingElseChangeNothing) {
  Governor governor(0.01);
  double timing = 0, timed = 0, skipped = 0, operations = 0;
  std::mt19937_64 random{5};
  uint32_t changes = 0, last = 0;
  for (double now = 0; now < 120; now += kStep) {
    const bool on = governor.setting().timing == event::WatchTiming::kOn;
    // Of 50,000 a second.
    const double wanted = on ? 1000 / std::pow(2, std::max(governor.setting().least_level, 7u)) : 0;
    const bool lets = governor.setting().spare > 0;
    operations += 1000;
    (lets ? timed : skipped) += wanted;
    timing += lets ? wanted * 15e-6 : 0;
    if (on && lets && random() % 100 == 0) timing += 3e-3;
    governor.step({.now = now,
                   .operations = static_cast<uint64_t>(operations),
                   .timed = static_cast<uint64_t>(timed),
                   .skipped = static_cast<uint64_t>(skipped),
                   .timing = timing});
    changes += now > 5 && governor.setting().least_level != last ? 1 : 0;
    last = governor.setting().least_level;
  }
  EXPECT_LE(governor.setting().least_level, 7u);
  EXPECT_LE(changes, 5u);
}

TEST(Governor, LeavesACheapProgramAlone) {
  Governor governor(0.01);
  Program program;
  Load load;
  load.noise = 0.1;
  program.run(governor, 120, load);
  EXPECT_EQ(program.setting().least_level, 0u);
  EXPECT_FALSE(governor.gave_up());
}

TEST(Governor, GivesUpWhereSeldomIsStillTooDear) {
  // A cost that does not depend on how often operations are timed.
  for (const bool accounted : {false, true}) {
    Governor governor(0.01);
    double now = 0, done = 0, taken = 0;
    WatchSetting setting;
    for (; now < 300; now += kStep) {
      const double lost = setting.timing == event::WatchTiming::kOn ? 0.3 : 0;
      done += 100'000 * kStep * (1 - lost);
      taken += accounted ? kStep * lost : 0;
      setting = governor.step({.now = now, .operations = static_cast<uint64_t>(done), .timing = taken});
    }
    EXPECT_TRUE(governor.gave_up());
    EXPECT_EQ(setting.timing, event::WatchTiming::kNever);
  }
}

TEST(Governor, WorkInBurstsIsComparedInLongerStretches) {
  // Every 0.1 s all work of a step in 0.02 s.
  Governor governor(0.5);
  double done = 0;
  int burst = 0;
  WatchSetting setting;
  for (double now = 0; now < 120; now += kStep) {
    const double lost = setting.timing == event::WatchTiming::kOn ? 0.05 : 0;
    done += ++burst % 5 == 0 ? 5000 * (1 - lost) : 0;
    setting = governor.step({.now = now, .operations = static_cast<uint64_t>(done)});
  }
  ASSERT_TRUE(governor.cost());
}

// Steps of 13 ms, all of whose operations come at once: in operations a stretch says little, in waits all.
TEST(Governor, AProgramThatWorksInStepsIsMeasuredInWholeOnes) {
  Governor governor(0.5);
  WatchSetting setting;
  uint64_t done = 0, waits = 0;
  double last_wait = 0, next = 0, more = 0.04;
  for (double now = 0; now < 30; now += kStep) {
    while (next <= now) {
      done += 50;
      last_wait = next;
      ++waits;
      next += 0.013 * (setting.timing == event::WatchTiming::kOn ? 1 + more : 1);
    }
    setting = governor.step({.now = now, .operations = done, .waits = waits & 0xffffff, .last_wait = last_wait});
  }
  const auto cost = governor.cost();
  ASSERT_TRUE(cost);
  EXPECT_LE(cost->high - cost->low, 0.01);
  EXPECT_LE(cost->low, more / (1 + more));
  EXPECT_GE(cost->high, more / (1 + more) - 0.004);  // a step that a change meets is in both
}

// What counting takes is not timing's to lose.
TEST(Governor, TimingHasWhatCountingLeaves) {
  Governor governor(0.01);
  WatchSetting setting;
  double timing = 0, counting = 0, timed = 0;
  for (double now = 0; now < 60; now += kStep) {
    const double one_of = std::pow(2, std::max(setting.least_level, 7u));
    timing += kStep * (setting.timing == event::WatchTiming::kOn ? 0.0076 * 128 / one_of : 0);
    timed += setting.timing == event::WatchTiming::kOn ? kStep * 100'000 / one_of : 0;
    counting += kStep * 0.006;
    setting = governor.step({.now = now,
                             .operations = static_cast<uint64_t>(now * 100'000),
                             .timed = static_cast<uint64_t>(timed),
                             .timing = timing,
                             .counting = counting});
  }
  EXPECT_EQ(setting.least_level, 8u);
  EXPECT_FALSE(governor.gave_up());
}

// A program that would time all its operations, as in its first second or when it turns to something else.
TEST(Governor, TimingNeverHasMoreThanTheBudgetAndALittleOnce) {
  constexpr double kBudget = 0.01;
  Governor governor(kBudget);
  EXPECT_DOUBLE_EQ(governor.setting().spare, kBudget);
  std::vector<double> taken;
  double timing = 0, timed = 0, skipped = 0, operations = 0;
  for (double now = 0; now < 60; now += kStep) {
    const double spare = std::max(0.0, governor.setting().spare);
    constexpr double kEach = 10e-6, kWanted = 500;  // a step
    const double times = std::min(kWanted, std::floor(spare / kEach) + 1);
    operations += kWanted;
    timing += times * kEach;
    timed += times;
    skipped += kWanted - times;
    taken.push_back(timing);
    governor.step({.now = now,
                   .operations = static_cast<uint64_t>(operations),
                   .timed = static_cast<uint64_t>(timed),
                   .skipped = static_cast<uint64_t>(skipped),
                   .timing = timing});
  }
  const auto steps_of = [](double seconds) { return static_cast<size_t>(seconds / kStep); };
  for (size_t i = 0; i + steps_of(1) < taken.size(); ++i)
    EXPECT_LE(taken[i + steps_of(1)] - taken[i], kBudget * (i < steps_of(1) ? 2.1 : 1.3));
  // What it does not get, it is to want no longer.
  EXPECT_GE(governor.setting().least_level, 9u);
  EXPECT_GE(taken.back(), 60 * kBudget * 0.4);
}

TEST(Governor, WhatTimingTookTooMuchItGivesBack) {
  Governor governor(0.01);
  governor.step({.now = 0});
  governor.step({.now = 0.02, .timing = 0.012});
  EXPECT_LT(governor.setting().spare, 0);
  governor.step({.now = 1.0, .timing = 0.012});
  EXPECT_GT(governor.setting().spare, 0);
  // But not for long: a single time may be one in which the machine did something else.
  governor.step({.now = 1.02, .timing = 5});
  governor.step({.now = 1.52, .timing = 5});
  EXPECT_GT(governor.setting().spare, 0);
}

TEST(Governor, KnowsNothingOfAnIdleProgram) {
  Governor governor(0.01);
  for (double now = 0; now < 20; now += kStep)
    EXPECT_EQ(governor.step({.now = now, .operations = static_cast<uint64_t>(now)}).timing, event::WatchTiming::kOn);
  EXPECT_FALSE(governor.cost());
}

TEST(Governor, WithoutABudgetTimingStaysOn) {
  Governor governor(0);
  Program program;
  program.run(governor, 20, losing(0.5));
  EXPECT_EQ(program.setting().timing, event::WatchTiming::kOn);
  EXPECT_EQ(program.setting().least_level, 0u);
  EXPECT_FALSE(governor.cost());
}

}  // namespace
}  // namespace tacho::watch
