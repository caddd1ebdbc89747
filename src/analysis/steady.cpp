// One look at all kernels, by name (steady.h).
#include "analysis/steady.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/saturating.h"
#include "trace/read/rows.h"

namespace tacho::analysis {

using event::kUnknown;
using event::Table;
namespace column = event::column;

namespace {

struct Repeats {
  int64_t first = INT64_MAX, last = INT64_MIN, count = 0, time = 0;
};
struct KernelsOfDevice {
  std::unordered_map<int64_t, Repeats> of;  // by string of the name
  int64_t first = INT64_MAX, last = INT64_MIN, count = 0;
};

// INT64_MIN where nothing repeats.
int64_t first_repeated(const KernelsOfDevice& device) {
  std::vector<std::pair<int64_t, int64_t>> starts;  // first launch, device time
  int64_t all = 0;
  for (const auto& [name, kernel] : device.of) {
    if (kernel.count < 5 || kernel.last - kernel.first < (device.last - kernel.first) / 2) continue;
    starts.emplace_back(kernel.first, kernel.time);
    add_saturating(all, kernel.time);
  }
  std::sort(starts.begin(), starts.end());
  int64_t sum = 0;
  for (const auto& [start, time] : starts) {
    add_saturating(sum, time);
    if (sum >= all / 10) return start;
  }
  return INT64_MIN;
}

}  // namespace

Result<std::unordered_map<size_t, int64_t>> steady_starts(const trace::Trace& trace, const DeviceNumbers& numbers) {
  std::vector<size_t> device_of_track(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kTrack), 1)));
  for (size_t track = 0; track < device_of_track.size(); ++track)
    device_of_track[track] =
        numbers.device(trace.cell(Table::kTrack, static_cast<int64_t>(track), column::Track::device));
  std::map<size_t, KernelsOfDevice> devices;
  using D = column::Dispatch;
  constexpr size_t kMostNames = 1 << 16;  // of a device: what comes beyond is none that repeats
  Status status;
  int64_t dim = -1, name = 0;
  for (const auto& d : trace::chunks<D::track, D::start, D::duration, D::dim>(trace, status))
    for (size_t i = 0; i < d.size(); ++i) {
      const auto track = static_cast<size_t>(d.track[i]);
      if (track >= device_of_track.size() || d.duration[i] == kUnknown) continue;
      KernelsOfDevice& device = devices[device_of_track[track]];
      if (d.dim[i] != dim) {
        dim = d.dim[i];
        name = trace::cell<column::Kernel::name>(trace, dim);
      }
      ++device.count;
      device.first = std::min(device.first, d.start[i]);
      device.last = std::max(device.last, d.start[i]);
      auto kernel = device.of.find(name);
      if (kernel == device.of.end()) {
        if (device.of.size() == kMostNames) continue;
        kernel = device.of.try_emplace(name).first;
      }
      kernel->second.first = std::min(kernel->second.first, d.start[i]);
      kernel->second.last = std::max(kernel->second.last, d.start[i]);
      ++kernel->second.count;
      add_saturating(kernel->second.time, d.duration[i]);
    }
  TACHO_TRY(status);
  std::unordered_map<size_t, int64_t> starts;
  for (const auto& [device, kernels] : devices)
    if (const int64_t start = first_repeated(kernels);
        start != INT64_MIN && start - kernels.first >= (kernels.last - kernels.first) / 20)
      starts.emplace(device, start);
  std::unordered_map<size_t, int64_t> before;
  if (starts.empty()) return starts;
  for (const auto& d : trace::chunks<D::track, D::start>(trace, status))
    for (size_t i = 0; i < d.size(); ++i) {
      const auto track = static_cast<size_t>(d.track[i]);
      if (track >= device_of_track.size()) continue;
      const auto start = starts.find(device_of_track[track]);
      if (start != starts.end() && d.start[i] < start->second) ++before[start->first];
    }
  TACHO_TRY(status);
  for (auto at = starts.begin(); at != starts.end();)
    at = before[at->first] * 5 > devices[at->first].count ? starts.erase(at) : std::next(at);
  return starts;
}

}  // namespace tacho::analysis
