// Paired stretches (governor.h). A stretch without timing stands between two with it, so that a pace that changes
// steadily cancels out.
#include "watch/governor.h"

#include <algorithm>
#include <cmath>

#include "watch/estimate.h"

namespace tacho::watch {
namespace {

using event::WatchTiming;

constexpr double kWarmUp = 1.0;  // seconds: programs start otherwise than they go on
// Stretches of equal length, so that work that begins or ends in one of them misleads in neither direction: a rest with
// timing, then with, without, with.
constexpr double kRest = 0.2, kStretch = 0.1;
constexpr uint64_t kFewest = 20;  // operations in a stretch that has a pace
constexpr double kSteady = 2;     // paces that differ more than by this factor are not compared
constexpr size_t kFewestPairs = 8, kMostPairs = 200;
constexpr double kPatience = 60;

}  // namespace

Governor::Governor(double budget) : budget_(budget) {}

WatchSetting Governor::step(double now, uint64_t operations) {
  if (budget_ <= 0 || gave_up_) return setting_;
  if (now < kWarmUp) return setting_;
  if (began_ < 0) {
    began_ = now;
    before_ = operations;
    return setting_;
  }
  if (now - began_ >= (stage_ == Stage::kRest ? kRest : kStretch)) end_stretch(now, operations);
  return setting_;
}

void Governor::end_stretch(double now, uint64_t operations) {
  const double pace = operations - before_ < kFewest ? -1 : static_cast<double>(operations - before_) / (now - began_);
  began_ = now;
  before_ = operations;
  switch (stage_) {
    case Stage::kRest:
      stage_ = Stage::kBefore;
      return;
    case Stage::kBefore:
      pace_before_ = pace;
      stage_ = pace > 0 ? Stage::kWithout : Stage::kBefore;
      setting_.timing = pace > 0 ? WatchTiming::kFirst : WatchTiming::kOn;
      return;
    case Stage::kWithout:
      pace_without_ = pace;
      stage_ = Stage::kAfter;
      setting_.timing = WatchTiming::kOn;
      return;
    case Stage::kAfter:
      stage_ = Stage::kRest;
      break;
  }
  if (pace <= 0 || pace_without_ <= 0) return;
  const auto [least, most] = std::minmax({pace_before_, pace_without_, pace});
  if (most > kSteady * least) return;
  pairs_.push_back(std::log(pace_without_ / std::sqrt(pace_before_ * pace)));
  if (pairs_.size() > kMostPairs) pairs_.pop_front();
  judge(now);
}

void Governor::judge(double now) {
  const auto known = cost();
  if (!known) return;
  if (known->low > budget_) {
    if (over_since_ < 0) over_since_ = now;
    if (now - over_since_ >= kPatience || setting_.least_level + 1 >= event::kWatchLevels) {
      gave_up_ = true;
      setting_.timing = WatchTiming::kNever;
      return;
    }
    // The interval says by how much at least: halving the number of times halves the cost.
    ++setting_.least_level;
    pairs_.clear();
    return;
  }
  if (known->high <= budget_) over_since_ = -1;
  if (known->high < budget_ / 4 && setting_.least_level > 0 && pairs_.size() >= 4 * kFewestPairs) {
    --setting_.least_level;
    pairs_.clear();
  }
}

std::optional<WatchCost> Governor::cost() const {
  if (pairs_.size() < kFewestPairs) return std::nullopt;
  double sum = 0, squares = 0;
  for (const double each : pairs_) sum += each;
  const auto count = static_cast<double>(pairs_.size());
  const double mean = sum / count;
  for (const double each : pairs_) squares += (each - mean) * (each - mean);
  const double half = student_95(pairs_.size() - 1) * std::sqrt(squares / (count - 1) / count);
  const auto share = [](double log_ratio) { return 1 - std::exp(-log_ratio); };
  return WatchCost{share(mean), share(mean - half), share(mean + half), pairs_.size()};
}

}  // namespace tacho::watch
