// The account of timing, and comparisons of stretches (governor.h).
#include "watch/governor.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "watch/estimate.h"

namespace tacho::watch {
namespace {

using event::WatchTiming;

// The account
constexpr double kWindow = 0.5;   // seconds with timing
constexpr double kUrgent = 4;     // times what timing may take: N grows at once
constexpr double kCalm = 2;       // seconds with timing that say how N is to change
constexpr double kFilled = 0.75;  // so much of what timing may take it is to take
constexpr double kPatience = 60;  // seconds over the budget
constexpr uint32_t kHighest = event::kWatchLevels - 1;
// What timing has not used it may use later, but no more than the budget of so many seconds: at first, when everything
// is new, and from then on. What it used too much it gives back, up to the latter.
constexpr double kFirstSpare = 1, kSpare = 0.25;

// Comparisons. A stretch begins with a part that does not count, in which the program's queues come to hold the work of
// the new setting.
constexpr double kPoll = 0.02;                                      // seconds between steps
constexpr double kWarmUp = 1.0;                                     // seconds: programs start otherwise than they go on
constexpr double kShortest = 0.04, kLongest = 0.64, kSettle = 0.5;  // seconds of a stretch; the settling share
constexpr double kWantedOperations = 50, kFewestOperations = 10, kFewestWaits = 3;
constexpr double kSteady = 2;  // paces that differ more than by this factor are not compared
constexpr size_t kFewestPairs = 8, kMostPairs = 400;
constexpr double kKept = 60;       // seconds that a pair speaks for
constexpr double kSearch = 60;     // seconds of comparisons without a rest, as long as nothing is resolved
constexpr double kSurer = 1.4;     // decisions are made often: on an interval of 99 %
constexpr double kTrimmed = 0.25;  // of the pairs at each end: stretches in which the machine did something else

// Yuen's interval of a trimmed mean (Biometrika 61, 1974), as shares. Nothing for too few.
std::optional<WatchCost> interval_of(std::vector<double> ratios, double wider) {
  const size_t count = ratios.size();
  if (count < kFewestPairs) return std::nullopt;
  std::sort(ratios.begin(), ratios.end());
  const auto trimmed = static_cast<size_t>(kTrimmed * static_cast<double>(count));
  const size_t kept = count - 2 * trimmed;
  double sum = 0, winsorized = 0, squares = 0;
  const auto at = [&](size_t i) { return ratios[std::clamp(i, trimmed, count - 1 - trimmed)]; };
  for (size_t i = 0; i < count; ++i) {
    winsorized += at(i);
    if (i >= trimmed && i < count - trimmed) sum += ratios[i];
  }
  winsorized /= static_cast<double>(count);
  for (size_t i = 0; i < count; ++i) squares += (at(i) - winsorized) * (at(i) - winsorized);
  const double mean = sum / static_cast<double>(kept);
  const double error = std::sqrt(squares / (static_cast<double>(kept) * static_cast<double>(kept - 1)));
  const double half = wider * student_95(kept - 1) * error;
  const auto share = [](double log_ratio) { return 1 - std::exp(-log_ratio); };
  return WatchCost{share(mean), share(mean - half), share(mean + half), count};
}

}  // namespace

Governor::Governor(double budget) : budget_(budget), allowed_(budget) {
  setting_.spare = budget > 0 ? budget * kFirstSpare : HUGE_VAL;
}

uint32_t Governor::chance() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return static_cast<uint32_t>(random_ >> 32);
}

WatchSetting Governor::step(const WatchLoad& load) {
  if (budget_ <= 0 || gave_up_) return setting_;
  refill(load);
  account(load);
  if (!gave_up_ && load.now >= kWarmUp) compare(load);
  if (gave_up_) setting_.timing = WatchTiming::kNever;
  last_ = load.now;
  return setting_;
}

void Governor::choose_level() {
  const uint32_t level = std::max(account_level_, pair_level_);
  if (level == setting_.least_level) return;
  setting_.least_level = level;
  pairs_.clear();  // they speak of another N
  level_since_ = last_;
}

void Governor::note_over(double now, bool over, double& since) {
  if (!over)
    since = -1;
  else if (since < 0)
    since = now;
  else if (now - since >= kPatience)
    gave_up_ = true;
}

void Governor::refill(const WatchLoad& load) {
  const double used = std::max(0.0, load.timing - last_timing_);
  last_timing_ = load.timing;
  const double most = std::max(budget_ * kSpare, setting_.spare - used);  // what is left of the first one
  if (last_ >= 0 && setting_.timing == WatchTiming::kOn) setting_.spare += allowed_ * (load.now - last_);
  setting_.spare = std::clamp(setting_.spare - used, -budget_ * kSpare, most);
}

void Governor::account(const WatchLoad& load) {
  if (!window_) {
    window_ = load;
    return;
  }
  if (setting_.timing == WatchTiming::kOn) window_with_ += load.now - last_;
  if (window_with_ < kWindow) return;
  // Counting is not shed, so timing has what it leaves, and a quarter of the budget in any case.
  const double counting = std::max(0.0, load.counting - window_->counting) / (load.now - window_->now);
  allowed_ = std::max(budget_ - counting, budget_ / 4);
  const auto timed = static_cast<double>(std::max<uint64_t>(load.timed - window_->timed, 1)),
             wanted_times = timed + static_cast<double>(load.skipped - window_->skipped);
  // In a window in which the machine did something else times look dear: what they take goes by five windows.
  if (load.timed > window_->timed || load.skipped == window_->skipped)
    each_[windows_++ % kWindows] = std::max(0.0, load.timing - window_->timing) / timed;
  double sorted[kWindows];
  double* const end = std::copy_n(each_, std::min(windows_, kWindows), sorted);
  double* const middle = sorted + (end - sorted) / 2;
  std::nth_element(sorted, middle, end);
  const double wanted = wanted_times * *middle / window_with_;
  const double one_of = static_cast<double>(load.operations - window_->operations) / wanted_times;
  calm_timing_ += wanted * window_with_;
  calm_with_ += window_with_;
  window_with_ = 0;
  window_ = load;
  note_over(load.now, wanted > budget_ && account_level_ == kHighest, account_over_);
  const double mean = calm_timing_ / calm_with_;
  if (wanted > allowed_ * kUrgent || (calm_with_ >= kCalm && mean > allowed_)) {
    // Rows that are timed more seldom already do not feel the first steps.
    const double level = std::floor(std::log2(std::max(one_of, 1.0)) + std::log2(std::max(wanted, mean) / allowed_));
    account_level_ =
        std::min(kHighest, std::max(account_level_ + 1, static_cast<uint32_t>(std::clamp(level, 0.0, kHighest * 1.0))));
  } else if (calm_with_ < kCalm) {
    return;
  } else if (account_level_ > 0 && mean < allowed_ * kFilled / 2) {
    // Halving N doubles the number of times at most.
    const double steps = std::floor(std::log2(allowed_ * kFilled / std::max(mean, allowed_ / 65536)));
    account_level_ -= std::min(account_level_, static_cast<uint32_t>(steps));
  }
  calm_timing_ = calm_with_ = 0;
  choose_level();
}

void Governor::compare(const WatchLoad& load) {
  switch (stage_) {
    case Stage::kRest:
      if (load.now < until_) return;
      if (steady_ > 0) return begin_comparison(load);
      stage_ = Stage::kLook;
      began_ = load.now;
      before_ = load;
      return;
    case Stage::kLook:
      if (load.now - began_ >= length_ - kPoll / 2) look(load);
      return;
    case Stage::kSettle:
      if (load.now - began_ < length_ * kSettle - kPoll / 2) return;
      stage_ = Stage::kMeasure;
      began_ = load.now;
      before_ = load;
      return;
    case Stage::kMeasure:
      if (load.now - began_ >= length_ - kPoll / 2) end_stretch(load);
      return;
  }
}

// Chooses how long stretches are, and whether there is any pace.
void Governor::look(const WatchLoad& load) {
  const double operations = static_cast<double>(load.operations - before_.operations), seconds = load.now - began_;
  if (operations < kFewestOperations && length_ < kLongest) {
    length_ = std::min(kLongest, length_ * 2);
    return;  // look on
  }
  if (operations < kFewestOperations) {
    stage_ = Stage::kRest;
    until_ = load.now + kLongest;
    return;
  }
  choose_length(operations / seconds);
  begin_comparison(load);
}

void Governor::choose_length(double pace) {
  length_ = std::clamp(longer_ * std::max(kShortest, kWantedOperations / pace), kShortest, kLongest);
}

void Governor::begin_comparison(const WatchLoad& load) {
  stretch_ = 0;
  without_first_ = (chance() & 1) != 0;
  begin_stretch(load);
}

void Governor::begin_stretch(const WatchLoad& load) {
  const bool outer = stretch_ == 0 || stretch_ == 3;
  setting_.timing = outer == without_first_ ? WatchTiming::kFirst : WatchTiming::kOn;
  stage_ = Stage::kSettle;
  began_ = load.now;
}

void Governor::end_stretch(const WatchLoad& load) {
  const double operations = static_cast<double>(load.operations - before_.operations);
  if (operations < kFewestOperations) return end_comparison(load.now, false);
  paces_[stretch_] = operations / (load.now - began_);
  // From one wait to another: a program that works in steps is measured in whole ones.
  const auto waits = static_cast<double>((load.waits - before_.waits) & 0xffffff);
  const double waited = load.last_wait - before_.last_wait;
  waits_[stretch_] = waits >= kFewestWaits && waited > 0 ? waits / waited : 0;
  if (++stretch_ < 4) return begin_stretch(load);
  const Pair pair{load.now, ratio_of(paces_), ratio_of(waits_)};
  const bool steady = pair.operations || pair.waits;
  if (steady) {
    pairs_.push_back(pair);
    if (pairs_.size() > kMostPairs) pairs_.pop_front();
    choose_length(*std::min_element(std::begin(paces_), std::end(paces_)));
  }
  end_comparison(load.now, steady);
}

// Nothing if they are too far apart, or one is not known.
std::optional<double> Governor::ratio_of(const double (&paces)[4]) const {
  const auto [least, most] = std::minmax_element(std::begin(paces), std::end(paces));
  if (*least <= 0 || *most > kSteady * *least) return std::nullopt;
  const double outer = std::log(paces[0] * paces[3]) / 2, inner = std::log(paces[1] * paces[2]) / 2;
  return without_first_ ? outer - inner : inner - outer;
}

void Governor::end_comparison(double now, bool steady) {
  setting_.timing = WatchTiming::kOn;
  while (!pairs_.empty() && now - pairs_.front().at > kKept) pairs_.pop_front();
  // Work that comes in bursts is steady only in stretches that are longer than they.
  unsteady_ = steady ? 0 : unsteady_ + 1;
  steady_ = steady ? steady_ + 1 : 0;
  if (unsteady_ == 3) {
    longer_ = std::min(longer_ * 2, kLongest / kShortest);
    unsteady_ = 0;
  } else if (steady_ == 50) {
    longer_ = std::max(1.0, longer_ / 2);
    steady_ = 0;
  }
  stage_ = Stage::kRest;
  const double whole = 4 * length_ * (1 + kSettle);
  const auto known = cost();
  const bool resolved = known && known->high - known->low <= std::clamp(budget_ / 2, 0.002, 0.006);
  const double rest = resolved ? 4 * whole : now - level_since_ > kSearch ? 2 * whole : 0;
  // A program that repeats itself must not meet the comparison at the same place each time.
  until_ = now + rest + length_ * (chance() % 16) / 16;
  judge(now);
}

void Governor::judge(double now) {
  const auto known = interval(kSurer);
  if (!known) return;
  const bool over = known->low > budget_;
  if (over && setting_.least_level == kHighest) gave_up_ = true;
  note_over(now, over, pair_over_);
  if (gave_up_) return;
  if (over) {
    // The interval says by how much at least: halving the number of times halves the cost.
    pair_level_ = std::min(kHighest, setting_.least_level + 1);
  } else if (pair_level_ > 0 && known->high < budget_ / 4 && pairs_.size() >= 4 * kFewestPairs) {
    --pair_level_;
  } else {
    return;
  }
  choose_level();
}

std::optional<WatchCost> Governor::cost() const {
  return interval(1);
}

std::optional<WatchCost> Governor::interval(double wider) const {
  std::vector<double> operations, waits;
  for (const Pair& pair : pairs_) {
    if (pair.operations) operations.push_back(*pair.operations);
    if (pair.waits) waits.push_back(*pair.waits);
  }
  const auto by_operations = interval_of(std::move(operations), wider), by_waits = interval_of(std::move(waits), wider);
  if (!by_operations || !by_waits) return by_operations ? by_operations : by_waits;
  return by_waits->high - by_waits->low < by_operations->high - by_operations->low ? by_waits : by_operations;
}

}  // namespace tacho::watch
