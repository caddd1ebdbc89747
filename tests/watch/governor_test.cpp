// The governor on programs whose loss is known.
#include "watch/governor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tacho::watch {
namespace {

// A program that loses `loss` of its pace at level 0 and half as much at each level above, and whose pace wavers.
class Program {
 public:
  Program(double loss, double noise) : loss_(loss), noise_(noise) {}
  void run(Governor& governor, double seconds) {
    constexpr double kStep = 0.02;
    for (const double end = now_ + seconds; now_ < end; now_ += kStep) {
      const double lost = setting_.timing == event::WatchTiming::kOn ? loss_ / std::pow(2, setting_.least_level) : 0;
      done_ += 100'000 * kStep * (1 - lost) * (1 + noise_ * normal_(random_));
      setting_ = governor.step(now_, static_cast<uint64_t>(done_));
    }
  }
  const WatchSetting& setting() const { return setting_; }
  double loss() const { return loss_ / std::pow(2, setting_.least_level); }

 private:
  double loss_, noise_, now_ = 0, done_ = 0;
  WatchSetting setting_;
  std::mt19937_64 random_{3};
  std::normal_distribution<double> normal_;
};

TEST(Governor, MeasuresTheCost) {
  Governor governor(0.10);
  Program program(0.05, 0.02);
  program.run(governor, 30);
  const auto cost = governor.cost();
  ASSERT_TRUE(cost);
  EXPECT_EQ(program.setting().least_level, 0u);
  EXPECT_LT(cost->low, 0.05);
  EXPECT_GT(cost->high, 0.05);
  EXPECT_NEAR(cost->share, 0.05, 0.01);
}

TEST(Governor, TimesMoreSeldomUntilTheBudgetIsKept) {
  Governor governor(0.01);
  Program program(0.20, 0.01);
  program.run(governor, 120);
  EXPECT_FALSE(governor.gave_up());
  EXPECT_LE(program.loss(), 0.015);
  EXPECT_GE(program.setting().least_level, 4u);
}

TEST(Governor, LeavesACheapProgramAlone) {
  Governor governor(0.01);
  Program program(0, 0.05);
  program.run(governor, 60);
  EXPECT_EQ(program.setting().least_level, 0u);
  EXPECT_FALSE(governor.gave_up());
}

TEST(Governor, GivesUpWhereSeldomIsStillTooDear) {
  // A cost that does not depend on how often operations are timed.
  Governor governor(0.01);
  double now = 0, done = 0;
  WatchSetting setting;
  for (; now < 300; now += 0.02) {
    done += 100'000 * 0.02 * (setting.timing == event::WatchTiming::kOn ? 0.7 : 1);
    setting = governor.step(now, static_cast<uint64_t>(done));
  }
  EXPECT_TRUE(governor.gave_up());
  EXPECT_EQ(setting.timing, event::WatchTiming::kNever);
}

TEST(Governor, KnowsNothingOfAnIdleProgram) {
  Governor governor(0.01);
  for (double now = 0; now < 20; now += 0.02)
    EXPECT_EQ(governor.step(now, static_cast<uint64_t>(now)).timing, event::WatchTiming::kOn);
  EXPECT_FALSE(governor.cost());
}

TEST(Governor, WithoutABudgetTimingStaysOn) {
  Governor governor(0);
  Program program(0.5, 0);
  program.run(governor, 20);
  EXPECT_EQ(program.setting().timing, event::WatchTiming::kOn);
  EXPECT_EQ(program.setting().least_level, 0u);
  EXPECT_FALSE(governor.cost());
}

}  // namespace
}  // namespace tacho::watch
