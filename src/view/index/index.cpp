// Construction of a TileIndex, and sums of names (index.h).
#include "view/index/index.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/saturating.h"
#include "base/thread.h"
#include "event/times.h"
#include "walk/time/span.h"

namespace tacho::view {

using event::kUnknown;
using event::Table;

namespace {

constexpr size_t kManyNames = size_t{1} << 18;  // from here on a run keeps fewer slices
constexpr int64_t kLongShare = 256;             // slices of a 256th of the run and longer are kept in memory
constexpr int64_t kEventsABin = 2048;           // about, in the finest level
constexpr int64_t kMostActivityBins = 1 << 19;  // of all devices

}  // namespace

TileIndex::TileIndex(std::shared_ptr<const trace::Trace> trace, const Tree& tree, const SliceNames& names,
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
  int64_t rows = 0;
  const walk::Span whole = walk::timeline_span(*trace_);
  t0_ = whole.first;
  length_ = std::max<int64_t>(whole.length(), 1);
  const auto run = walk::run_span(*trace_);  // damage shows again in the pass
  run_length_ = run ? std::max<int64_t>(run->length(), 1) : length_;
  run_begin_ = run ? std::max<int64_t>(run->first - t0_, 0) : 0;
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
  for (const auto& [device, below] : device_lines_) activity_.emplace(device, DeviceBins(length_ / width + 1, width));
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

int64_t TileIndex::events(size_t line) const {
  const std::shared_lock held(lock_);
  if (line >= lines_.size()) return 0;
  return lines_[line].events + static_cast<int64_t>(lines_[line].values.size());
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

}  // namespace tacho::view
