// The pass over a trace in order of time (index.h).
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <future>

#include "base/saturating.h"
#include "view/index/index.h"

namespace tacho::view {

using event::Table;

namespace {

std::vector<uint8_t> pack_lanes(const std::vector<uint16_t>& lanes) {
  const uint16_t most = lanes.empty() ? 0 : *std::max_element(lanes.begin(), lanes.end());
  if (most == 0) return {};
  std::vector<uint8_t> raw;
  if (most < 256)
    raw.assign(lanes.begin(), lanes.end());
  else {
    raw.resize(lanes.size() * 2);
    std::memcpy(raw.data(), lanes.data(), raw.size());
  }
  std::vector<uint8_t> packed(1 + ZSTD_compressBound(raw.size()));
  packed[0] = most < 256 ? 1 : 2;
  const size_t size = ZSTD_compress(packed.data() + 1, packed.size() - 1, raw.data(), raw.size(), 1);
  packed.resize(1 + (ZSTD_isError(size) != 0 ? 0 : size));
  packed.shrink_to_fit();
  return packed;
}

}  // namespace

Status TileIndex::build() {
  TACHO_TRY(store_.open());
  TACHO_TRY(read_counters());
  TACHO_TRY(read_stacks());
  std::vector<std::shared_ptr<Loaded>> open;
  using Batch = Result<std::vector<std::shared_ptr<Loaded>>>;
  const auto read = [this](size_t from, size_t to) -> Batch {
    std::vector<std::shared_ptr<Loaded>> batch;
    for (size_t i = from; i < to && !stop_; ++i) {
      TACHO_ASSIGN(auto loaded, load(i, true));
      batch.push_back(std::move(loaded));
    }
    return batch;
  };
  const size_t parts = parts_.size();
  const auto until = [&](size_t from) { return std::min(from + limits_.together, parts); };
  std::future<Batch> ahead = std::async(std::launch::async, read, size_t{0}, until(0));
  for (size_t next = 0; next < parts && !stop_;) {
    Batch batch = ahead.get();
    if (!batch) return fail_with(std::move(batch));
    next = until(next);
    if (next < parts) ahead = std::async(std::launch::async, read, next, until(next));
    const std::unique_lock held(lock_);
    for (auto& loaded : *batch) {
      auto& of_table = sums_[static_cast<size_t>(loaded->table)];
      for (const NameSum& sum : loaded->sums) {
        if (sum.name >= of_table.capacity())
          of_table.reserve(std::min<size_t>(std::max<size_t>(2 * of_table.size(), sum.name + 1u), names_.size()));
        if (sum.name >= of_table.size()) of_table.resize(sum.name + 1u);
        of_table[sum.name].name = sum.name;
        of_table[sum.name].add(sum);
      }
      if (kept_sums_ + loaded->sums.size() <= limits_.sums) {
        kept_sums_ += loaded->sums.size();
        parts_[loaded->part].sums = std::move(loaded->sums);
      }
      loaded->sums = {};
      for (const uint32_t name : loaded->name) parts_[loaded->part].names.set(name % NameSet().size());
      for (const Rows::Run& run : loaded->runs) {
        Segment segment{loaded->part, run.at, run.end - run.at, loaded->start[run.at],
                        std::numeric_limits<int64_t>::min()};
        for (uint32_t i = run.at; i < run.end; ++i)
          if (loaded->end[i] < saturating_add(loaded->start[i], long_))
            segment.max_end = std::max(segment.max_end, loaded->end[i]);
        if (!lines_[run.line].resident) lines_[run.line].segments.push_back(segment);
      }
      open.push_back(std::move(loaded));
    }
    const int64_t frontier = next < parts ? parts_[next].min_start : kOpenEnd;
    process(open, frontier);
    frontier_ = frontier;
    ready_ = 0.999 * static_cast<double>(next) / static_cast<double>(parts);
    TACHO_TRY(store_.status());
  }
  const std::unique_lock held(lock_);
  frontier_ = kOpenEnd;
  open.clear();
  for (LineState& line : lines_)
    for (LaneBins& lane : line.bins) lane.finish(store_);
  return store_.status();
}

// A window of time: the rows of all lines in it.
struct TileIndex::Window {
  struct Interval {
    int64_t start, end;
    uint32_t what;  // a Work, or the number of a name
  };
  // Rows of one line in a chunk.
  struct Pending {
    Loaded* loaded;
    uint32_t from, to;
  };
  std::vector<std::vector<Pending>> pending;  // by line
  std::vector<size_t> touched;                // lines with any
  std::unordered_map<size_t, std::vector<Interval>> of_device, of_group;
  std::vector<Interval> calls;

  static void in_order(std::vector<Interval>& list) {
    const auto less = [](const Interval& a, const Interval& b) {
      return a.start != b.start ? a.start < b.start : a.end > b.end;
    };
    if (!std::is_sorted(list.begin(), list.end(), less)) std::stable_sort(list.begin(), list.end(), less);
  }
};

void TileIndex::process(std::vector<std::shared_ptr<Loaded>>& open, int64_t until) {
  Window window;
  window.pending.resize(lines_.size());
  for (const auto& loaded : open)
    for (Rows::Run& run : loaded->runs) {
      if (run.at == run.end) continue;
      const auto begin = loaded->start.begin();
      const auto to = static_cast<uint32_t>(std::lower_bound(begin + run.at, begin + run.end, until) - begin);
      if (to == run.at) continue;
      if (window.pending[run.line].empty()) window.touched.push_back(run.line);
      window.pending[run.line].push_back({loaded.get(), run.at, to});
      loaded->left -= to - run.at;
      run.at = to;  // the next window goes on here
    }
  for (const size_t line : window.touched) process_line(line, window);
  process_sums(window, until);
  for (const auto& loaded : open)
    if (loaded->left == 0) {
      Part& part = parts_[loaded->part];
      part.lanes = pack_lanes(loaded->lane);
      part.done = true;
    }
  std::erase_if(open, [](const auto& loaded) { return loaded->left == 0; });
}

// The lanes and bins of a line, and what its slices are to its device and groups.
void TileIndex::process_line(size_t number, Window& window) {
  struct Item {
    Slice slice;
    Loaded* loaded;
    uint32_t at;
  };
  const Line& shown = tree_.lines()[number];
  LineState& line = lines_[number];
  std::vector<Item> items;
  for (const Window::Pending& each : window.pending[number])
    for (uint32_t i = each.from; i < each.to; ++i) items.push_back({each.loaded->slice(i), each.loaded, i});
  const auto less = [](const Item& a, const Item& b) { return earlier_or_longer(a.slice, b.slice); };
  if (!std::is_sorted(items.begin(), items.end(), less)) std::sort(items.begin(), items.end(), less);
  const bool queue = shown.kind == LineKind::kQueue;
  std::vector<Window::Interval>* const device = queue ? &window.of_device[shown.device_number] : nullptr;
  const bool api = (shown.tables >> static_cast<unsigned>(Table::kApi) & 1) != 0;
  std::vector<Window::Interval> shared;
  line.events += static_cast<int64_t>(items.size());
  for (Item& item : items) {
    Slice& slice = item.slice;
    slice.lane = line.lanes.next(slice.start, slice.end);
    item.loaded->lane[item.at] = slice.lane;
    if (slice.lane >= line.kept.size()) line.kept.resize(slice.lane + 1u);
    while (slice.lane >= line.bins.size())
      line.bins.emplace_back(number, static_cast<uint16_t>(line.bins.size()), base_, levels_);
    const int64_t end = std::min(slice.end, length_);
    line.bins[slice.lane].add(slice.start, std::max(end, slice.start), slice.name, store_);
    if (line.resident || slice.end - slice.start >= long_) line.kept[slice.lane].push_back(slice);
    const Table table = item.loaded->table;
    if (device != nullptr && is_device_work(table))
      device->push_back({slice.start, std::max(end, slice.start), static_cast<uint32_t>(work_of(table, slice.name))});
    if (api && table == Table::kApi && !names_.framework(slice.name)) window.calls.push_back({slice.start, end, 0});
    if (queue ? is_device_work(table) : table != Table::kSample && table != Table::kMessage && slice.lane == 0)
      shared.push_back({slice.start, end, slice.name});
  }
  for (int64_t at = shown.parent; at >= 0; at = tree_.lines()[static_cast<size_t>(at)].parent) {
    const auto group = static_cast<size_t>(at);
    // A group shows the work of its devices; without devices, that of its threads.
    if (!tree_.lines()[group].group() || (!queue && !group_of_threads_[group])) continue;
    auto& list = window.of_group[group];
    list.insert(list.end(), shared.begin(), shared.end());
  }
}

void TileIndex::process_sums(Window& window, int64_t until) {
  for (auto& [device, list] : window.of_device) {
    Window::in_order(list);
    DeviceBins& activity = activity_.at(device);
    for (const Window::Interval& each : list) activity.add(each.start, each.end, static_cast<WorkKind>(each.what));
  }
  for (auto& [device, activity] : activity_) activity.advance(std::min(until, length_ + 1));
  Window::in_order(window.calls);
  for (const Window::Interval& each : window.calls) calls_->add(each.start, each.end, WorkKind::kKernel);
  calls_->advance(std::min(until, length_ + 1));
  for (auto& [group, list] : window.of_group) {
    Window::in_order(list);
    auto& bins = lines_[group].bins;
    if (bins.empty()) bins.emplace_back(group, uint16_t{0}, base_, levels_);
    for (const Window::Interval& each : list)
      bins.front().add(each.start, std::max(each.end, each.start), each.what, store_);
  }
}

}  // namespace tacho::view
