// Device load (top.h).
#include "analysis/top.h"

#include <algorithm>
#include <map>

#include "analysis/operators/places.h"
#include "base/saturating.h"
#include "walk/sweep.h"
#include "walk/time/busy_time.h"

namespace tacho::analysis {

using event::kUnknown;
using event::Table;
namespace column = event::column;

Result<std::vector<DeviceLoad>> device_load(const trace::Trace& trace) {
  static constexpr Table kTables[] = {Table::kDispatch, Table::kCopy, Table::kFill};
  struct State {
    DeviceLoad load;
    walk::BusyTime time;
    bool any = false;
  };
  const DeviceNumbers numbers(trace);
  std::map<size_t, State> states;  // by physical device
  std::vector<State*> of_track(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kTrack), 1)), nullptr);
  walk::Sweep sweep(trace, kTables);
  walk::RowSlice slice;
  while (sweep.next(slice)) {
    const auto at = static_cast<size_t>(slice.track);
    const bool fresh = of_track[at] == nullptr;
    if (fresh) {
      const int64_t device = trace.cell(Table::kTrack, slice.track, column::Track::device);
      of_track[at] = &states[numbers.device(device)];
      if (of_track[at]->load.device == 0) of_track[at]->load.device = device;
    }
    State& state = *of_track[at];
    if (fresh) state.load.owner.see(trace, trace.cell(Table::kTrack, slice.track, column::Track::process));
    if (!state.any) state.load.first = slice.start[0];
    state.any = true;
    walk::BusyTime time = state.time;
    int64_t sum = 0;
    for (size_t i = 0; i < slice.rows; ++i) {
      const int64_t start = slice.start[i], duration = slice.duration[i];
      if (duration == kUnknown) continue;
      const int64_t end = start + duration;
      add_saturating(sum, duration);
      time.add(start, end);
    }
    state.load.operations += static_cast<int64_t>(slice.rows);
    add_saturating(state.load.sum, sum);
    state.time = time;
  }
  TACHO_TRY(Status(sweep.status()));
  std::vector<DeviceLoad> result;
  for (auto& [number, state] : states) {
    const int64_t device = state.load.device;
    state.load.busy = state.time.busy();
    state.load.last = std::max(state.time.until(), state.load.first);
    state.load.index = device > 0 ? trace.cell(Table::kDevice, device, column::Device::index) : 0;
    state.load.name =
        device > 0 ? std::string(trace.text(Table::kDevice, device, column::Device::name)) : std::string();
    if (state.load.name.empty()) state.load.name = "device";
    result.push_back(std::move(state.load));
  }
  return result;
}

}  // namespace tacho::analysis
