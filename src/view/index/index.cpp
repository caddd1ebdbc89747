// The pass over a trace and tiles from what it leaves (index.h).
#include "view/index/index.h"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <future>
#include <tuple>

#include "base/saturating.h"
#include "base/thread.h"
#include "event/times.h"
#include "walk/names.h"

namespace tacho::view {

using event::kUnknown;
using event::Table;
namespace column = event::column;

namespace {

constexpr size_t kManyNames = size_t{1} << 18;  // from here on a run keeps fewer slices
constexpr int64_t kLongShare = 256;             // slices of a 256th of the run and longer are kept in memory
constexpr int64_t kEventsABin = 2048;           // about, in the finest level
constexpr unsigned kMostLevel = 60;             // times fit in 61 bits
constexpr size_t kChunksForSlices = 24;         // a tile of few slices is not worth decoding more
constexpr int64_t kMostActivityBins = 1 << 19;  // of all devices

bool device_work(Table table) {
  return table == Table::kDispatch || table == Table::kCopy || table == Table::kFill;
}

// A result that is neither success nor "not yet", as the function's API counts.
bool failed_call(const trace::Trace& trace, int64_t function, int64_t result) {
  if (result == 0 || result == kUnknown) return false;
  constexpr int64_t kNotReady = 600;  // of CUDA and HIP
  switch (event::from_cell<event::Domain>(trace.cell(Table::kFunction, function, column::Function::domain))) {
    case event::Domain::kOpenCL:
      return result < 0;
    case event::Domain::kCudaRuntime:
    case event::Domain::kCudaDriver:
    case event::Domain::kHipRuntime:
    case event::Domain::kHipCompiler:
      return result != kNotReady;
    case event::Domain::kHsa:
      return result > 1;  // 1 is HSA_STATUS_INFO_BREAK
    case event::Domain::kRccl:
      return true;
    default:
      return false;
  }
}

// Columns of a chunk as slices; the vectors are reused.
struct ChunkColumns {
  std::vector<int64_t> track, start, duration, dim, extra;
};

struct SliceFacts {
  int64_t start, end;
  uint16_t flags;
};

// What a row is on the timeline. `extra`: an API call's result, a dispatch's node of a graph.
SliceFacts facts_of(const trace::Trace& trace, Table table, bool queue, int64_t t0, int64_t start, int64_t duration,
                    int64_t dim, int64_t extra) {
  SliceFacts facts{start - t0, 0, 0};
  const int64_t known = event::known_duration(duration);
  switch (table) {
    case Table::kAllocation:
    case Table::kSample:
      facts.end = facts.start;
      facts.flags = kPoint;
      return facts;
    case Table::kMarker:
      if (event::from_cell<event::MarkerKind>(trace.cell(Table::kLabel, dim, column::Label::kind)) ==
          event::MarkerKind::kMark) {
        facts.end = facts.start;
        facts.flags = kPoint;
        return facts;
      }
      break;
    case Table::kApi:
      if (extra != 0 && failed_call(trace, dim, extra)) facts.flags = kFailed;
      break;
    case Table::kDispatch:
      if (extra != 0 && extra != kUnknown) facts.flags = kGraphNode;
      break;
    default:
      break;
  }
  if (known != kUnknown) {
    facts.end = facts.start + known;
  } else if (queue) {
    facts.end = facts.start;
    facts.flags |= kPoint | kUnfinished;
  } else {
    facts.end = kOpenEnd;
    facts.flags |= kUnfinished;
  }
  return facts;
}

int extra_column(Table table) {
  switch (table) {
    case Table::kApi:
      return column::Api::result;
    case Table::kDispatch:
      return column::Dispatch::graph_node;
    case Table::kCopy:
      return column::Copy::graph_node;
    case Table::kFill:
      return column::Fill::graph_node;
    default:
      return -1;
  }
}

Status decode_chunk(const trace::Trace& trace, Table table, size_t chunk, ChunkColumns& columns) {
  TACHO_TRY(trace.decode(table, chunk, column::Fact::track, columns.track));
  TACHO_TRY(trace.decode(table, chunk, column::Fact::start, columns.start));
  TACHO_TRY(trace.decode(table, chunk, column::Fact::duration, columns.duration));
  TACHO_TRY(trace.decode(table, chunk, column::Fact::dim, columns.dim));
  if (const int extra = extra_column(table); extra >= 0)
    TACHO_TRY(trace.decode(table, chunk, extra, columns.extra));
  else
    columns.extra.assign(columns.start.size(), 0);
  return {};
}

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

void unpack_lanes(const std::vector<uint8_t>& packed, std::vector<uint16_t>& lanes) {
  if (packed.empty()) return;
  std::vector<uint8_t> raw(lanes.size() * packed[0]);
  ZSTD_decompress(raw.data(), raw.size(), packed.data() + 1, packed.size() - 1);
  if (packed[0] == 2)
    std::memcpy(lanes.data(), raw.data(), raw.size());
  else
    std::copy(raw.begin(), raw.end(), lanes.begin());
}

}  // namespace

TileIndex::TileIndex(std::shared_ptr<const trace::Trace> trace, const Tree& tree, const Names& names,
                     const Limits& limits)
    : trace_(std::move(trace)),
      tree_(tree),
      names_(names),
      limits_(limits),
      first_row_(static_cast<size_t>(Table::kEnd)) {
  if (names_.size() > kManyNames) {  // their sums take the room of slices
    limits_.resident /= 8;
    limits_.chunks = std::min<size_t>(limits_.chunks, 8);
    limits_.together = std::min<size_t>(limits_.together, 2);
    limits_.sums /= 8;
  }
  const auto range = trace_->time_range();
  int64_t first = range.first, last = std::max(range.second, range.first);
  int64_t rows = 0;
  for (const trace::Chunk& chunk : trace_->chunks(Table::kReading)) {
    const bool none = first == 0 && last == 0;
    first = none ? chunk.min_start : std::min(first, chunk.min_start);
    last = none ? chunk.max_start : std::max(last, chunk.max_start);
  }
  t0_ = first;
  length_ = std::max<int64_t>(last - first, 1);
  long_ = std::max<int64_t>(length_ / kLongShare, 1);
  if (!trace_->aggregated())
    for (const Table table : slice_tables()) {
      auto& numbers = first_row_[static_cast<size_t>(table)];
      numbers.push_back(0);
      const auto chunks = trace_->chunks(table);
      for (size_t i = 0; i < chunks.size(); ++i) {
        numbers.push_back(numbers.back() + chunks[i].rows);
        if (chunks[i].rows > 0)
          parts_.push_back({.table = table,
                            .chunk = static_cast<uint32_t>(i),
                            .min_start = chunks[i].min_start - t0_,
                            .max_start = chunks[i].max_start - t0_,
                            .names = {},
                            .sums = {},
                            .lanes = {}});
      }
      rows += numbers.back();
    }
  std::stable_sort(parts_.begin(), parts_.end(),
                   [](const Part& a, const Part& b) { return a.min_start < b.min_start; });
  sums_.resize(static_cast<size_t>(Table::kEnd));
  part_of_.resize(static_cast<size_t>(Table::kEnd));
  for (size_t i = 0; i < parts_.size(); ++i) {
    auto& numbers = part_of_[static_cast<size_t>(parts_[i].table)];
    if (parts_[i].chunk >= numbers.size()) numbers.resize(parts_[i].chunk + 1u, std::numeric_limits<uint32_t>::max());
    numbers[parts_[i].chunk] = static_cast<uint32_t>(i);
  }
  const int64_t bins =
      std::clamp<int64_t>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows / kEventsABin + 1))), 1024,
                          std::max<int64_t>(limits_.most_bins, 1024));
  while (base_ < kMostLevel - 1 && (length_ >> base_) >= bins) ++base_;
  while (base_ + levels_ < kMostLevel && (length_ >> (base_ + levels_ - 1)) > 0) ++levels_;

  const auto& lines = tree_.lines();
  lines_.resize(lines.size());
  std::vector<size_t> order;
  for (size_t i = 0; i < lines.size(); ++i) {
    lines_[i].lanes = Lanes(lines[i].kind != LineKind::kQueue);
    lines_[i].counts = lines[i].kind == LineKind::kCounter;
    order.push_back(i);
    if (lines[i].kind == LineKind::kQueue) device_lines_[lines[i].device_number].push_back(i);
  }
  group_of_threads_.assign(lines.size(), true);
  for (const Line& each : lines)
    if (each.kind == LineKind::kQueue)
      for (int64_t at = each.parent; at >= 0; at = lines[static_cast<size_t>(at)].parent)
        group_of_threads_[static_cast<size_t>(at)] = false;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return lines[a].about < lines[b].about; });
  size_t kept = 0;
  for (const size_t i : order) {
    kept += static_cast<size_t>(lines[i].about);
    if (kept > limits_.resident) break;
    lines_[i].resident = true;
  }
  unsigned wider = 0;
  while ((length_ >> (base_ + wider)) * static_cast<int64_t>(device_lines_.size() + 1) > kMostActivityBins) ++wider;
  const int64_t width = int64_t{1} << (base_ + wider);
  for (const auto& [device, below] : device_lines_)
    activity_.emplace(device, DeviceActivity(length_ / width + 1, width));
  calls_.emplace(length_ / width + 1, width);
}

TileIndex::~TileIndex() {
  stop_ = true;
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void TileIndex::start() {
  thread_ = thread_without_signals([this] { run(); });
}

void TileIndex::run() {
  Status done = build();
  const std::unique_lock held(lock_);
  if (!done) status_ = std::move(done);
  finished_ = true;
  ready_ = 1;
  changed_.notify_all();
}

Status TileIndex::wait() {
  std::shared_lock held(lock_);
  changed_.wait(held, [this] { return finished_.load() || stop_.load(); });
  return status_;
}

Status TileIndex::status() const {
  const std::shared_lock held(lock_);
  return status_;
}

uint16_t TileIndex::lanes(size_t line) const {
  const std::shared_lock held(lock_);
  if (line >= lines_.size()) return 0;
  return static_cast<uint16_t>(std::max<size_t>(lines_[line].lanes.count(), 1));
}

std::vector<size_t> TileIndex::devices() const {
  std::vector<size_t> devices;
  for (const auto& [device, lines] : device_lines_) devices.push_back(device);
  std::sort(devices.begin(), devices.end());
  return devices;
}

// Values of one dispatch's instances (channels, dies) add up; of a counter that several passes read, the first pass
// counts.
Status TileIndex::read_dispatch_counters(std::vector<std::vector<std::pair<int64_t, double>>>& values) {
  struct Value {
    int64_t start, ordinal, pass;
    double value;
  };
  std::vector<std::vector<Value>> read(lines_.size());
  using column::CounterValue;
  constexpr int kRead[] = {CounterValue::track, CounterValue::start, CounterValue::ordinal,
                           CounterValue::dim,   CounterValue::pass,  CounterValue::value};
  std::vector<int64_t> cells[std::size(kRead)];
  for (size_t chunk = 0; chunk < trace_->chunks(Table::kCounterValue).size() && !stop_; ++chunk) {
    for (size_t i = 0; i < std::size(kRead); ++i)
      TACHO_TRY(trace_->decode(Table::kCounterValue, chunk, kRead[i], cells[i]));
    for (size_t i = 0; i < cells[0].size(); ++i)
      if (const int64_t line = tree_.line_of_counter(cells[0][i], cells[3][i]); line >= 0 && cells[1][i] != kUnknown)
        read[static_cast<size_t>(line)].push_back(
            {cells[1][i] - t0_, cells[2][i], cells[4][i], std::bit_cast<double>(cells[5][i])});
  }
  for (size_t line = 0; line < read.size(); ++line) {
    std::stable_sort(read[line].begin(), read[line].end(), [](const Value& a, const Value& b) {
      return std::tie(a.start, a.ordinal, a.pass) < std::tie(b.start, b.ordinal, b.pass);
    });
    const Value* before = nullptr;
    for (const Value& each : read[line]) {
      const bool same = before != nullptr && before->start == each.start && before->ordinal == each.ordinal;
      if (!same)
        values[line].emplace_back(each.start, each.value);
      else if (before->pass == each.pass)
        values[line].back().second += each.value;
      if (!same) before = &each;
    }
  }
  return {};
}

Status TileIndex::read_counters() {
  std::vector<int64_t> track, start, value;
  std::vector<std::vector<std::pair<int64_t, double>>> values(lines_.size());
  for (size_t chunk = 0; chunk < trace_->chunks(Table::kReading).size() && !stop_; ++chunk) {
    TACHO_TRY(trace_->decode(Table::kReading, chunk, column::Reading::track, track));
    TACHO_TRY(trace_->decode(Table::kReading, chunk, column::Reading::start, start));
    TACHO_TRY(trace_->decode(Table::kReading, chunk, column::Reading::value, value));
    for (size_t i = 0; i < track.size(); ++i) {
      const int64_t line = tree_.line_of(Table::kReading, track[i]);
      if (line >= 0 && start[i] != kUnknown)
        values[static_cast<size_t>(line)].emplace_back(start[i] - t0_, std::bit_cast<double>(value[i]));
    }
  }
  for (auto& each : values)
    std::stable_sort(each.begin(), each.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (trace_->rows(Table::kCounterValue) <= Tree::kMostCounterValues) TACHO_TRY(read_dispatch_counters(values));
  const std::unique_lock held(lock_);
  for (size_t i = 0; i < values.size(); ++i) lines_[i].values = std::move(values[i]);
  return {};
}

Result<std::shared_ptr<TileIndex::Loaded>> TileIndex::load(size_t number, bool sums) const {
  auto loaded = std::make_shared<Loaded>();
  const Part& part = parts_[number];
  loaded->part = static_cast<uint32_t>(number);
  loaded->table = part.table;
  loaded->first_row = first_row(part.table, part.chunk);
  ChunkColumns columns;
  TACHO_TRY(decode_chunk(*trace_, part.table, part.chunk, columns));
  const size_t rows = columns.start.size();
  loaded->start.resize(rows);
  loaded->end.resize(rows);
  loaded->name.resize(rows);
  loaded->lane.resize(rows);
  loaded->flags.resize(rows);
  for (size_t i = 0; i < rows;) {
    size_t end = i + 1;
    while (end < rows && columns.track[end] == columns.track[i]) ++end;
    const int64_t line = tree_.line_of(part.table, columns.track[i]);
    if (line >= 0) {
      const bool queue = tree_.lines()[static_cast<size_t>(line)].kind == LineKind::kQueue;
      for (size_t row = i; row < end; ++row) {
        const SliceFacts facts = facts_of(*trace_, part.table, queue, t0_, columns.start[row], columns.duration[row],
                                          columns.dim[row], columns.extra[row]);
        loaded->start[row] = facts.start;
        loaded->end[row] = facts.end;
        loaded->flags[row] = facts.flags;
        loaded->name[row] = names_.of(part.table, columns.dim[row]);
      }
      loaded->runs.push_back({static_cast<size_t>(line), static_cast<uint32_t>(i), static_cast<uint32_t>(end)});
      loaded->left += end - i;
    }
    i = end;
  }
  if (sums) {
    std::vector<uint32_t> place(names_.size(), std::numeric_limits<uint32_t>::max());
    for (const Rows::Run& run : loaded->runs)
      for (size_t row = run.at; row < run.end; ++row) {
        uint32_t& at = place[loaded->name[row]];
        if (at == std::numeric_limits<uint32_t>::max()) {
          at = static_cast<uint32_t>(loaded->sums.size());
          loaded->sums.push_back({.name = loaded->name[row]});
        }
        loaded->sums[at].add(event::known_duration(columns.duration[row]));
      }
  }
  return loaded;
}

void NameSum::add(int64_t duration) {
  if (duration == kUnknown) {
    ++unknown;
    return;
  }
  min = count == 0 ? duration : std::min(min, duration);
  max = std::max(max, duration);
  add_saturating(total, duration);
  ++count;
}

void NameSum::add(const NameSum& other) {
  unknown += other.unknown;
  if (other.count == 0) return;
  min = count == 0 ? other.min : std::min(min, other.min);
  max = std::max(max, other.max);
  add_saturating(total, other.total);
  count += other.count;
}

const TileIndex::Part* TileIndex::part_of(Table table, size_t chunk) const {
  const auto& numbers = part_of_[static_cast<size_t>(table)];
  if (chunk >= numbers.size() || numbers[chunk] >= parts_.size()) return nullptr;
  return &parts_[numbers[chunk]];
}

std::vector<NameSum> TileIndex::name_sums(Table table) const {
  const std::shared_lock held(lock_);
  return sums_[static_cast<size_t>(table)];
}

std::optional<std::vector<NameSum>> TileIndex::name_sums(Table table, size_t chunk) const {
  const std::shared_lock held(lock_);
  const Part* const part = part_of(table, chunk);
  if (part == nullptr || part->sums.empty()) return std::nullopt;
  return part->sums;
}

std::vector<NameSum> TileIndex::top_names(Table table, size_t most, int64_t& total) const {
  const auto longer = [](const NameSum& a, const NameSum& b) {
    return a.total != b.total ? a.total > b.total : a.name < b.name;
  };
  std::vector<NameSum> top;
  total = 0;
  const std::shared_lock held(lock_);
  for (const NameSum& sum : sums_[static_cast<size_t>(table)]) {
    if (sum.count + sum.unknown == 0 || names_.framework(sum.name)) continue;
    add_saturating(total, sum.total);
    if (top.size() == most && !longer(sum, top.back())) continue;
    top.insert(std::upper_bound(top.begin(), top.end(), sum, longer), sum);
    if (top.size() > most) top.pop_back();
  }
  return top;
}

int64_t TileIndex::events(size_t line) const {
  const std::shared_lock held(lock_);
  if (line >= lines_.size()) return 0;
  return lines_[line].events + static_cast<int64_t>(lines_[line].values.size());
}

Status TileIndex::build() {
  TACHO_TRY(store_.open());
  TACHO_TRY(read_counters());
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

void TileIndex::process(std::vector<std::shared_ptr<Loaded>>& open, int64_t until) {
  struct Pending {
    Loaded* loaded;
    uint32_t from, to;
  };
  struct Interval {
    int64_t start, end;
    uint32_t what;
  };
  std::vector<std::vector<Pending>> pending(lines_.size());
  std::vector<size_t> touched;
  for (const auto& loaded : open)
    for (Rows::Run& run : loaded->runs) {
      if (run.at == run.end) continue;
      const auto begin = loaded->start.begin();
      const auto to = static_cast<uint32_t>(std::lower_bound(begin + run.at, begin + run.end, until) - begin);
      if (to == run.at) continue;
      if (pending[run.line].empty()) touched.push_back(run.line);
      pending[run.line].push_back({loaded.get(), run.at, to});
      loaded->left -= to - run.at;
      run.at = to;  // the next window goes on here
    }
  std::unordered_map<size_t, std::vector<Interval>> of_device, of_group;
  std::vector<Interval> calls;
  struct Item {
    Slice slice;
    Loaded* loaded;
    uint32_t at;
  };
  std::vector<Item> items;
  for (const size_t number : touched) {
    const Line& shown = tree_.lines()[number];
    LineState& line = lines_[number];
    items.clear();
    for (const Pending& each : pending[number])
      for (uint32_t i = each.from; i < each.to; ++i) {
        const Loaded& from = *each.loaded;
        items.push_back(
            {{from.start[i], from.end[i], row_id(from.table, from.first_row + i), from.name[i], 0, from.flags[i]},
             each.loaded,
             i});
      }
    const auto less = [](const Item& a, const Item& b) { return earlier_or_longer(a.slice, b.slice); };
    if (!std::is_sorted(items.begin(), items.end(), less)) std::sort(items.begin(), items.end(), less);
    std::vector<size_t> groups;
    for (int64_t at = shown.parent; at >= 0; at = tree_.lines()[static_cast<size_t>(at)].parent)
      if (tree_.lines()[static_cast<size_t>(at)].group()) groups.push_back(static_cast<size_t>(at));
    const bool queue = shown.kind == LineKind::kQueue;
    std::vector<Interval>* const device = queue ? &of_device[shown.device_number] : nullptr;
    const bool api = (shown.tables >> static_cast<unsigned>(Table::kApi) & 1) != 0;
    std::vector<Interval> shared;
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
      if (device != nullptr && device_work(table) && end > slice.start) {
        const Work work = table == Table::kCopy             ? Work::kCopy
                          : table == Table::kFill           ? Work::kFill
                          : names_.communicates(slice.name) ? Work::kCollective
                                                            : Work::kKernel;
        device->push_back({slice.start, end, static_cast<uint32_t>(work)});
      }
      if (api && table == Table::kApi && !names_.framework(slice.name)) calls.push_back({slice.start, end, 0});
      if (queue ? device_work(table) : table != Table::kSample && table != Table::kMessage && slice.lane == 0)
        shared.push_back({slice.start, end, slice.name});
    }
    for (const size_t group : groups) {
      // What devices did; only where there are none, what threads did.
      if (!queue && !group_of_threads_[group]) continue;
      auto& list = of_group[group];
      list.insert(list.end(), shared.begin(), shared.end());
    }
  }
  const auto in_order = [](std::vector<Interval>& list) {
    const auto less = [](const Interval& a, const Interval& b) {
      return a.start != b.start ? a.start < b.start : a.end > b.end;
    };
    if (!std::is_sorted(list.begin(), list.end(), less)) std::stable_sort(list.begin(), list.end(), less);
  };
  for (auto& [device, list] : of_device) {
    in_order(list);
    DeviceActivity& activity = activity_.at(device);
    for (const Interval& each : list) activity.add(each.start, each.end, static_cast<Work>(each.what));
  }
  for (auto& [device, activity] : activity_) activity.advance(std::min(until, length_ + 1));
  in_order(calls);
  for (const Interval& each : calls) calls_->add(each.start, each.end, Work::kKernel);
  calls_->advance(std::min(until, length_ + 1));
  for (auto& [group, list] : of_group) {
    in_order(list);
    auto& bins = lines_[group].bins;
    if (bins.empty()) bins.emplace_back(group, uint16_t{0}, base_, levels_);
    for (const Interval& each : list) bins.front().add(each.start, std::max(each.end, each.start), each.what, store_);
  }
  for (const auto& loaded : open)
    if (loaded->left == 0) {
      Part& part = parts_[loaded->part];
      part.lanes = pack_lanes(loaded->lane);
      part.done = true;
    }
  std::erase_if(open, [](const auto& loaded) { return loaded->left == 0; });
}

Result<std::shared_ptr<const TileIndex::Rows>> TileIndex::rows(size_t number) {
  {
    const std::lock_guard held(cache_lock_);
    for (auto at = cache_.begin(); at != cache_.end(); ++at)
      if (at->first == number) {
        cache_.splice(cache_.begin(), cache_, at);
        return cache_.front().second;
      }
  }
  TACHO_ASSIGN(auto loaded, load(number, false));
  auto rows = std::make_shared<Rows>(std::move(static_cast<Rows&>(*loaded)));
  {
    const std::shared_lock held(lock_);
    unpack_lanes(parts_[number].lanes, rows->lane);
  }
  const std::lock_guard held(cache_lock_);
  cache_.emplace_front(number, rows);
  if (cache_.size() > limits_.chunks) cache_.pop_back();
  return rows;
}

Status TileIndex::visit(size_t number, int64_t from, int64_t to,
                        const std::function<bool(std::span<const Slice>)>& visit) {
  std::vector<Segment> segments;
  {
    const std::shared_lock held(lock_);
    if (number >= lines_.size()) return {};
    const LineState& line = lines_[number];
    for (const auto& lane : line.kept) {
      const auto first = &lane == &line.kept.back() && line.kept.size() == kMostLanes
                             ? lane.begin()  // in the last of so many they overlap
                             : std::partition_point(lane.begin(), lane.end(), [&](const Slice& slice) {
                                 return slice.end <= from && slice.start < from;
                               });
      const auto last = std::partition_point(first, lane.end(), [&](const Slice& slice) { return slice.start < to; });
      if (first == last) continue;
      if (!visit(std::span<const Slice>(first, last))) return {};
    }
    for (const Segment& segment : line.segments)
      if (segment.min_start < to && segment.max_end >= from && parts_[segment.part].done) segments.push_back(segment);
  }
  std::vector<Slice> found;
  for (const Segment& segment : segments) {
    TACHO_ASSIGN(const auto rows, this->rows(segment.part));
    const int64_t first_row = this->first_row(parts_[segment.part].table, parts_[segment.part].chunk);
    found.clear();
    for (size_t i = segment.first; i < segment.first + segment.rows && rows->start[i] < to; ++i) {
      if (rows->end[i] - rows->start[i] >= long_) continue;
      if (rows->end[i] <= from && rows->start[i] < from) continue;
      found.push_back({rows->start[i], rows->end[i],
                       row_id(parts_[segment.part].table, first_row + static_cast<int64_t>(i)), rows->name[i],
                       rows->lane[i], rows->flags[i]});
    }
    if (!found.empty() && !visit(found)) return {};
  }
  return {};
}

Result<std::optional<std::vector<Slice>>> TileIndex::slices(size_t number, int64_t from, int64_t to, size_t most,
                                                            size_t chunks) {
  {
    const std::shared_lock held(lock_);
    if (number >= lines_.size()) return std::vector<Slice>();
    size_t needed = 0;
    for (const Segment& segment : lines_[number].segments)
      needed += segment.min_start < to && segment.max_end >= from ? 1 : 0;
    if (needed > chunks) return std::nullopt;
  }
  std::vector<Slice> found;
  bool many = false;
  TACHO_TRY(visit(number, from, to, [&](std::span<const Slice> slices) {
    for (const Slice& slice : slices) {
      if (!slice.overlaps(from, to)) continue;
      if (found.size() == most) {
        many = true;
        return false;
      }
      found.push_back(slice);
    }
    return true;
  }));
  if (many) return std::nullopt;
  return found;
}

std::optional<RowPlace> TileIndex::place_of(uint64_t row) const {
  const auto table = static_cast<size_t>(row >> 48);
  if (table >= first_row_.size() || first_row_[table].empty()) return std::nullopt;
  const auto& numbers = first_row_[table];
  const int64_t number = number_of_row(row);
  if (number >= numbers.back()) return std::nullopt;
  const auto chunk =
      static_cast<size_t>(std::upper_bound(numbers.begin(), numbers.end(), number) - numbers.begin()) - 1;
  return RowPlace{chunk, static_cast<size_t>(number - numbers[chunk])};
}

Result<std::optional<std::pair<size_t, Slice>>> TileIndex::slice(uint64_t row) {
  const auto place = place_of(row);
  if (!place) return std::nullopt;
  const Table table = table_of_row(row);
  size_t number = parts_.size();
  {
    const std::shared_lock held(lock_);
    const Part* const part = part_of(table, place->chunk);
    if (part != nullptr && part->done) number = static_cast<size_t>(part - parts_.data());
  }
  if (number == parts_.size()) return std::nullopt;
  TACHO_ASSIGN(const auto rows, this->rows(number));
  const size_t i = place->row;
  for (const Rows::Run& run : rows->runs)
    if (i >= run.at && i < run.end)
      return std::pair(run.line,
                       Slice{rows->start[i], rows->end[i], row, rows->name[i], rows->lane[i], rows->flags[i]});
  return std::nullopt;
}

Result<TileIndex::Hits> TileIndex::find(const std::vector<bool>& names, int64_t start, uint64_t row, size_t most,
                                        int milliseconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  NameSet wanted;
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i]) wanted.set(i % NameSet().size());
  const auto after = [&](const Hit& hit) {
    return hit.slice.start != start ? hit.slice.start > start : hit.slice.row > row;
  };
  const auto earlier = [](const Hit& a, const Hit& b) {
    return a.slice.start != b.slice.start ? a.slice.start < b.slice.start : a.slice.row < b.slice.row;
  };
  Hits found;
  int64_t covered = kOpenEnd;  // hits that begin before it are complete
  for (size_t number = 0; number < parts_.size(); ++number) {
    const int64_t begins = parts_[number].min_start;
    {
      const std::shared_lock held(lock_);
      if (!parts_[number].done) {
        covered = std::min(begins, frontier_);
        break;
      }
      if (parts_[number].max_start < start || (parts_[number].names & wanted).none()) continue;
    }
    // What begins before this part is complete.
    if (found.hits.size() >= most && std::count_if(found.hits.begin(), found.hits.end(), [&](const Hit& hit) {
                                       return hit.slice.start < begins;
                                     }) >= static_cast<ptrdiff_t>(most)) {
      covered = begins;
      break;
    }
    if (std::chrono::steady_clock::now() > deadline) {
      covered = begins;
      break;
    }
    TACHO_ASSIGN(const auto rows, this->rows(number));
    const int64_t first_row = this->first_row(parts_[number].table, parts_[number].chunk);
    for (const Rows::Run& run : rows->runs)
      for (size_t i = run.at; i < run.end; ++i) {
        if (rows->name[i] >= names.size() || !names[rows->name[i]]) continue;
        const Hit hit{run.line,
                      {rows->start[i], rows->end[i], row_id(parts_[number].table, first_row + static_cast<int64_t>(i)),
                       rows->name[i], rows->lane[i], rows->flags[i]}};
        if (after(hit)) found.hits.push_back(hit);
      }
  }
  std::erase_if(found.hits, [&](const Hit& hit) { return hit.slice.start >= covered; });
  std::sort(found.hits.begin(), found.hits.end(), earlier);
  found.more = covered != kOpenEnd || found.hits.size() > most;
  if (found.hits.size() > most) found.hits.resize(most);
  if (!found.hits.empty() && found.hits.size() == most) {
    found.start = found.hits.back().slice.start;
    found.row = found.hits.back().slice.row;
  } else if (covered != kOpenEnd) {
    found.start = covered - 1;
    found.row = std::numeric_limits<uint64_t>::max();
  }
  return found;
}

Tile TileIndex::counter_tile(const LineState& line, unsigned level, int64_t index) const {
  Tile tile;
  tile.kind = Tile::Kind::kCounter;
  tile.before = std::nan("");
  tile.lanes = 1;
  const int64_t from = (index << kTileBits) << level, to = from + (kTileBins << level);
  auto at = std::lower_bound(line.values.begin(), line.values.end(), from,
                             [](const auto& value, int64_t time) { return value.first < time; });
  if (at != line.values.begin()) tile.before = std::prev(at)->second;
  for (; at != line.values.end() && at->first < to; ++at) {
    const auto bin = static_cast<uint16_t>((at->first - from) >> level);
    if (tile.readings.empty() || tile.readings.back().bin != bin)
      tile.readings.push_back({bin, at->second, at->second, at->second});
    Tile::Reading& reading = tile.readings.back();
    reading.min = std::min(reading.min, at->second);
    reading.max = std::max(reading.max, at->second);
    reading.last = at->second;
  }
  return tile;
}

Result<TileIndex::All> TileIndex::all_of(const std::vector<bool>& names, int64_t from, int64_t to, size_t chunks) {
  NameSet wanted;
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i]) wanted.set(i % NameSet().size());
  std::vector<size_t> parts;
  {
    const std::shared_lock held(lock_);
    for (size_t number = 0; number < parts_.size(); ++number) {
      const Part& part = parts_[number];
      const trace::Chunk& zone = trace_->chunks(part.table)[part.chunk];
      if (part.done && part.min_start < to && std::max(zone.max_end, zone.max_start) - t0_ >= from &&
          (part.names & wanted).any())
        parts.push_back(number);
    }
  }
  All all;
  const size_t step = std::max<size_t>((parts.size() + chunks - 1) / chunks, 1);
  all.sampled = step > 1;
  all.share = 1.0 / static_cast<double>(step);
  for (size_t at = 0; at < parts.size(); at += step) {
    const size_t number = parts[at];
    TACHO_ASSIGN(const auto rows, this->rows(number));
    const int64_t first_row = this->first_row(parts_[number].table, parts_[number].chunk);
    for (const Rows::Run& run : rows->runs)
      for (size_t i = run.at; i < run.end; ++i) {
        if (rows->name[i] >= names.size() || !names[rows->name[i]]) continue;
        const Slice slice{
            rows->start[i], rows->end[i],  row_id(parts_[number].table, first_row + static_cast<int64_t>(i)),
            rows->name[i],  rows->lane[i], rows->flags[i]};
        if (slice.overlaps(from, to)) all.slices.push_back(slice);
      }
  }
  return all;
}

std::vector<size_t> TileIndex::lines_below(size_t group) const {
  std::vector<size_t> below;
  const auto& lines = tree_.lines();
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].group() || lines[i].kind == LineKind::kSample || lines[i].kind == LineKind::kCounter ||
        lines[i].kind == LineKind::kMessage)
      continue;
    if ((lines[i].kind == LineKind::kQueue) == group_of_threads_[group]) continue;
    for (int64_t at = lines[i].parent; at >= 0; at = lines[static_cast<size_t>(at)].parent)
      if (static_cast<size_t>(at) == group) below.push_back(i);
  }
  return below;
}

Result<std::vector<Tile::Density>> TileIndex::bins_of(size_t line, unsigned level, int64_t index) const {
  std::vector<Tile::Density> bins;
  const std::shared_lock held(lock_);
  TACHO_TRY(store_.read(line, level, index, [&](uint16_t lane, const std::vector<BinEntry>& entries) {
    for (const BinEntry& entry : entries) bins.push_back({lane, entry});
  }));
  std::sort(bins.begin(), bins.end(), [](const Tile::Density& a, const Tile::Density& b) {
    return a.lane != b.lane ? a.lane < b.lane : a.entry.bin < b.entry.bin;
  });
  return bins;
}

// The union of what is below, from the slices themselves: each stretch belongs to what began first.
Result<Tile> TileIndex::fine_group_tile(size_t group, unsigned level, int64_t index) {
  const int64_t first_bin = index << kTileBits, from = first_bin << level, to = from + (kTileBins << level);
  std::vector<Slice> all;
  for (const size_t below : lines_below(group)) {
    const bool queue = tree_.lines()[below].kind == LineKind::kQueue;
    TACHO_TRY(visit(below, from, to, [&](std::span<const Slice> slices) {
      for (const Slice& slice : slices)
        if (slice.overlaps(from, to) && (queue ? device_work(table_of_row(slice.row)) : slice.lane == 0))
          all.push_back(slice);
      return true;
    }));
  }
  std::sort(all.begin(), all.end(), earlier_or_longer);
  Tile tile;
  tile.lanes = 1;
  const bool few = all.size() <= limits_.slices;
  std::vector<BinSum> sums(few ? 0 : kTileBins);
  int64_t until = std::numeric_limits<int64_t>::min();
  for (const Slice& slice : all) {
    const int64_t start = std::max(slice.start, until), end = std::min(slice.end, length_);
    if (until > slice.start && end <= until) continue;
    until = std::max(until, end);
    if (few) {
      tile.slices.push_back({start, std::max(end, start), kNoRow, slice.name, 0, 0});
      continue;
    }
    for_bins(start, std::max(end, start), level, first_bin, first_bin + kTileBins,
             [&](int64_t bin, int64_t covered, bool) {
               BinSum& sum = sums[static_cast<size_t>(bin - first_bin)];
               sum.bin = bin;
               sum.add(covered, 1, false, slice.name, std::max<int64_t>(covered, 1));
             });
  }
  for (const BinSum& sum : sums)
    if (sum.bin >= 0) tile.density.push_back({0, sum.entry(level)});
  if (!all.empty()) tile.kind = few ? Tile::Kind::kSlices : Tile::Kind::kDensity;
  return tile;
}

Result<Tile> TileIndex::tile(size_t number, unsigned level, int64_t index) {
  Tile tile;
  if (number >= lines_.size() || index < 0) return tile;
  if (level > kMostLevel - kTileBits || index > (length_ >> level >> kTileBits)) return tile;
  const int64_t from = (index << kTileBits) << level, to = from + (kTileBins << level);
  const bool group = tree_.lines()[number].group();
  size_t most = 0;
  {
    const std::shared_lock held(lock_);
    TACHO_TRY(status_);
    const LineState& line = lines_[number];
    most = most_slices(line);
    if (line.counts) {
      tile = counter_tile(line, level, index);
      tile.provisional = !finished_ && line.values.empty();
      return tile;
    }
    tile.lanes = static_cast<uint16_t>(std::max<size_t>(group ? 1 : line.lanes.count(), 1));
    if (!finished_) {
      tile.provisional = frontier_ < to;
      for (const Segment& segment : line.segments)
        tile.provisional |= segment.min_start < to && segment.max_end >= from && !parts_[segment.part].done;
    }
    if (level >= base_) {
      const unsigned top = base_ + levels_ - 1, zoom = std::min(level, top);
      const auto add = [&](uint16_t lane, const std::vector<BinEntry>& entries) {
        for (BinEntry entry : entries) {
          if (level > zoom) {  // all of it is in one bin
            entry.cover = static_cast<uint16_t>(std::max(entry.cover >> (level - zoom), 1));
            entry.bin = 0;
          }
          tile.density.push_back({lane, entry});
        }
      };
      TACHO_TRY(store_.read(number, zoom, index, add));
      for (const LaneBins& lane : line.bins)
        if (const auto* open = lane.open_tile(zoom, index)) add(lane.lane(), *open);
    }
  }
  if (group && level < base_) {
    TACHO_ASSIGN(Tile fine, fine_group_tile(number, level, index));
    fine.provisional = tile.provisional;
    return fine;
  }
  if (!group) {
    size_t events = 0;
    for (const Tile::Density& each : tile.density) events += each.entry.events;
    // A slice counts once in each of its bins, so a tile with more may still hold few.
    if (level < base_ || events <= most * 4 || tile.provisional) {
      std::vector<Slice> few;
      std::vector<BinSum> sums;  // by lane, bin
      const int64_t first_bin = index << kTileBits;
      const auto count = [&](const Slice& slice) {
        const size_t lane = slice.lane;
        if (sums.size() < (lane + 1) * kTileBins) sums.resize((lane + 1) * kTileBins);
        const int64_t end = std::max(std::min(slice.end, length_), slice.start);
        for_bins(slice.start, end, level, first_bin, first_bin + kTileBins, [&](int64_t bin, int64_t covered, bool) {
          BinSum& sum = sums[lane * kTileBins + static_cast<size_t>(bin - first_bin)];
          sum.bin = bin;
          sum.add(covered, 1, false, slice.name, std::max<int64_t>(covered, 1));
        });
      };
      if (level >= base_) {
        TACHO_ASSIGN(auto found, slices(number, from, to, most, kChunksForSlices));
        if (found) {
          tile.slices = std::move(*found);
          tile.kind = Tile::Kind::kSlices;
        }
      } else {
        TACHO_TRY(visit(number, from, to, [&](std::span<const Slice> slices) {
          for (const Slice& slice : slices) {
            if (!slice.overlaps(from, to)) continue;
            if (sums.empty() && few.size() < most) {
              few.push_back(slice);
              continue;
            }
            if (sums.empty())
              for (const Slice& each : few) count(each);
            count(slice);
          }
          return true;
        }));
        if (sums.empty()) {
          tile.slices = std::move(few);
          tile.kind = Tile::Kind::kSlices;
        }
        for (size_t i = 0; i < sums.size(); ++i)
          if (sums[i].bin >= 0) tile.density.push_back({static_cast<uint16_t>(i / kTileBins), sums[i].entry(level)});
      }
    }
  }
  if (tile.kind == Tile::Kind::kSlices) {
    tile.density.clear();
    std::sort(tile.slices.begin(), tile.slices.end(), [](const Slice& a, const Slice& b) {
      return a.lane != b.lane ? a.lane < b.lane : earlier_or_longer(a, b);
    });
    if (tile.slices.empty()) tile.kind = Tile::Kind::kEmpty;
  } else if (!tile.density.empty()) {
    tile.kind = Tile::Kind::kDensity;
    std::sort(tile.density.begin(), tile.density.end(), [](const Tile::Density& a, const Tile::Density& b) {
      return a.lane != b.lane ? a.lane < b.lane : a.entry.bin < b.entry.bin;
    });
  }
  return tile;
}

Result<Activity> TileIndex::activity(size_t device, int64_t from, int64_t to) {
  from = std::max<int64_t>(from, 0);
  const auto exact = [&](int64_t begin, int64_t end) -> Result<Activity> {
    struct Piece {
      int64_t start, end;
      Work work;
    };
    std::vector<Piece> pieces;
    const auto lines = device_lines_.find(device);
    if (begin >= end || lines == device_lines_.end()) return Activity();
    for (const size_t line : lines->second)
      TACHO_TRY(visit(line, begin, end, [&](std::span<const Slice> slices) {
        for (const Slice& slice : slices) {
          const Table table = table_of_row(slice.row);
          if (!slice.overlaps(begin, end) || !device_work(table) || slice.end <= slice.start) continue;
          pieces.push_back({std::max(slice.start, begin) - begin, std::min(slice.end, end) - begin,
                            table == Table::kCopy             ? Work::kCopy
                            : table == Table::kFill           ? Work::kFill
                            : names_.communicates(slice.name) ? Work::kCollective
                                                              : Work::kKernel});
        }
        return true;
      }));
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.start < b.start; });
    DeviceActivity sum(1, end - begin);
    for (const Piece& piece : pieces) sum.add(piece.start, piece.end, piece.work);
    sum.advance(end - begin);
    return sum.sum(0, 1);
  };
  int64_t width = 1, first = 0, last = 0;
  Activity middle;
  {
    const std::shared_lock held(lock_);
    const auto found = activity_.find(device);
    if (found == activity_.end()) return Activity();
    width = found->second.width();
    first = (from + width - 1) / width;
    last = std::min(to / width, found->second.bins());
    // At the end of the run the last bin is whole although the run ends within it.
    if (first < last) middle = found->second.sum(first, last);
  }
  if (first >= last) return exact(from, to);
  TACHO_ASSIGN(Activity sum, exact(from, first * width));
  sum.append(middle);
  TACHO_ASSIGN(const Activity rest, exact(last * width, to));
  sum.append(rest);
  return sum;
}

Activity TileIndex::bins(size_t device, int64_t from, int64_t to) const {
  const std::shared_lock held(lock_);
  const auto found = activity_.find(device);
  if (found == activity_.end()) return {};
  return found->second.sum(from / found->second.width(), to / found->second.width());
}

std::vector<std::pair<int64_t, double>> TileIndex::values(size_t line) const {
  const std::shared_lock held(lock_);
  return line < lines_.size() ? lines_[line].values : std::vector<std::pair<int64_t, double>>();
}

std::pair<double, double> TileIndex::range(size_t line) const {
  const std::shared_lock held(lock_);
  if (line >= lines_.size() || lines_[line].values.empty()) return {0, 0};
  std::pair<double, double> range{lines_[line].values.front().second, lines_[line].values.front().second};
  for (const auto& [time, value] : lines_[line].values) {
    range.first = std::min(range.first, value);
    range.second = std::max(range.second, value);
  }
  return range;
}

int64_t TileIndex::calls_open(int64_t from, int64_t to) const {
  const std::shared_lock held(lock_);
  return calls_->sum(from / calls_->width(), (to + calls_->width() - 1) / calls_->width()).busy;
}

}  // namespace tacho::view
