// Clocks against clocks: planted offsets, drifts and jumps come back within the stated residual.
#include "ranks/read/clock_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace tacho::ranks {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// `count` moments over ten seconds, seen with `noise` ns of jitter; every `outlier`-th is off by milliseconds.
std::vector<ClockSample> seen(const std::function<double(double seconds)>& offset, int count, double noise, int outlier,
                              uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> jitter(0, noise);
  std::uniform_real_distribution<double> far(1e6, 9e6);
  std::vector<ClockSample> samples;
  for (int i = 0; i < count; ++i) {
    const int64_t reference = 77 * kSecond + 10 * kSecond * i / count;
    const double seconds = static_cast<double>(reference - 77 * kSecond) / 1e9;
    double at = offset(seconds) + jitter(random);
    if (outlier != 0 && i % outlier == outlier - 1) at += far(random);
    samples.push_back({reference + std::llround(at), reference});
  }
  return samples;
}

double worst(const ClockFit& fit, const std::function<double(double)>& offset, int count) {
  double most = 0;
  for (int i = 0; i < count; ++i) {
    const int64_t reference = 77 * kSecond + 10 * kSecond * i / count;
    const double truth = offset(static_cast<double>(reference - 77 * kSecond) / 1e9);
    const int64_t time = reference + std::llround(truth);
    most = std::max(most, std::abs(static_cast<double>(fit.aligned(time) - reference)));
  }
  return most;
}

TEST(ClockFit, OffsetDriftAndStepWithinTheStatedResidual) {
  // 3.2 s ahead, 50 ppm fast, and set back by 1.7 ms after 6.3 s.
  const auto offset = [](double seconds) { return 3.2e9 + 50e-6 * seconds * 1e9 - (seconds >= 6.3 ? 1.7e6 : 0); };
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const ClockFit fit = fit_clock(seen(offset, 700, 3000, 0, seed));
    EXPECT_LT(fit.residual, 10'000) << seed;
    EXPECT_LE(worst(fit, offset, 700), fit.residual) << seed;
    EXPECT_EQ(fit.pieces.size(), 2U) << seed;
    EXPECT_NEAR(fit.pieces[0].drift, 50e-6, 2e-6);
  }
}

TEST(ClockFit, OutliersDoNotMoveIt) {
  const auto offset = [](double seconds) { return -8e6 + 50e-6 * seconds * 1e9; };
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const ClockFit fit = fit_clock(seen(offset, 300, 2000, 5, seed));
    EXPECT_EQ(fit.pieces.size(), 1U) << seed;
    EXPECT_EQ(fit.outliers, 60U) << seed;
    EXPECT_LE(worst(fit, offset, 300), fit.residual) << seed;
  }
}

TEST(ClockFit, AChangeOfRateMakesTwoPieces) {
  const auto offset = [](double seconds) { return seconds < 4 ? 50e3 * seconds : 200e3 - 80e3 * (seconds - 4); };
  const ClockFit fit = fit_clock(seen(offset, 500, 1000, 0, 3));
  ASSERT_GE(fit.pieces.size(), 2U);
  EXPECT_NEAR(fit.pieces.front().drift, 50e-6, 3e-6);
  EXPECT_NEAR(fit.pieces.back().drift, -80e-6, 3e-6);
  EXPECT_LE(worst(fit, offset, 500), 3 * fit.residual);
}

TEST(ClockFit, FewSamplesGiveAConstantAndNoneNothing) {
  EXPECT_TRUE(fit_clock({}).pieces.empty());
  EXPECT_EQ(fit_clock({}).offset(5), 0);
  const ClockFit one = fit_clock({{1'000'500, 1'000'000}});
  EXPECT_EQ(one.aligned(2'000'500), 2'000'000);
  const ClockFit three = fit_clock({{100, 90}, {200, 190}, {300, 190}});
  EXPECT_EQ(three.pieces.size(), 1U);
  EXPECT_EQ(three.offset(1'000'000), 10);
}

}  // namespace
}  // namespace tacho::ranks
