// Reading a GPU's timer (pm_clock.h). The command is that of the driver's open sources (ctrl2080tmr.h): nanoseconds
// since 1970, in steps of 32.
#include "counter/provider/nvidia/pm_clock.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace tacho::counter::nvidia {

namespace {

constexpr uint32_t kGetTime = 0x20800403;
struct Time {
  uint64_t nanoseconds;
};
constexpr int64_t kStep = 32;

}  // namespace

void ClockPairs::add(uint64_t gpu, int64_t host, int64_t error) {
  if (!pairs_.empty() && (gpu <= pairs_.back().gpu || host <= pairs_.back().host)) return;
  if (pairs_.size() == kMost) pairs_.erase(pairs_.begin());
  pairs_.push_back({gpu, host});
  error_ = std::max(error_, error);
}

int64_t ClockPairs::host_time(uint64_t gpu) const {
  if (pairs_.empty()) return 0;
  const auto after =
      std::upper_bound(pairs_.begin(), pairs_.end(), gpu, [](uint64_t at, const Pair& pair) { return at < pair.gpu; });
  const auto since = [&](const Pair& pair) { return static_cast<int64_t>(gpu - pair.gpu); };
  if (after == pairs_.begin()) return after->host + since(*after);
  const Pair& before = *std::prev(after);
  if (after == pairs_.end()) return before.host + since(before);
  const double slope = static_cast<double>(after->host - before.host) / static_cast<double>(after->gpu - before.gpu);
  return before.host + std::llround(static_cast<double>(since(before)) * slope);
}

bool GpuTimer::open(const std::string& pci) {
  Time time{};
  return vendor::rm::open_gpu(pci.c_str(), gpu_) == nullptr && vendor::rm::control(gpu_, kGetTime, time) &&
         time.nanoseconds != 0;
}

bool GpuTimer::read(ClockPairs& into) const {
  // The shortest of a few calls says most.
  constexpr int kTries = 5;
  int64_t best = INT64_MAX, host = 0;
  uint64_t gpu = 0;
  for (int i = 0; i < kTries; ++i) {
    Time time{};
    const int64_t begin = raw_now();
    if (!vendor::rm::control(gpu_, kGetTime, time)) return false;
    const int64_t took = raw_now() - begin;
    if (took >= best) continue;
    best = took;
    host = begin + took / 2;
    gpu = time.nanoseconds;
  }
  into.add(gpu, host, best / 2 + kStep);
  return true;
}

}  // namespace tacho::counter::nvidia
