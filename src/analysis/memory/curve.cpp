// One pass in order of time (curve.h).
//
// What was live before the recording is known afterwards: it is what was freed in it without having been allocated.
// Until then sums are without it, which moves them all by the same amount and no peak. Where the allocator tells its
// own sum, that counts.
#include "analysis/memory/curve.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/format.h"
#include "base/saturating.h"
#include "trace/read/rows.h"

namespace tacho::analysis {

namespace {

using event::AllocationLevel;
using event::AllocationOperation;
using event::kUnknown;
using event::MemoryKind;
using event::Table;
namespace column = event::column;

constexpr int64_t kRuntime = 0, kSegments = 2, kArrays = 3;  // of CuPy's pool, which lies beside torch's

// Kinds of memory that one device or the host has together.
MemoryKind together(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kArray:
    case MemoryKind::kDeviceStatic:
      return MemoryKind::kDevice;
    case MemoryKind::kManagedStatic:
      return MemoryKind::kManaged;
    case MemoryKind::kPageable:
      return MemoryKind::kHost;
    default:
      return kind;
  }
}

std::string place_name(const trace::Trace& trace, int64_t device, MemoryKind memory, int64_t process, int64_t level,
                       bool several) {
  std::string name;
  const auto row = trace::row<event::row::Device>(trace, device);
  if (device != 0) {
    const std::string own(trace.string(row.name));
    const std::string number = fmt::format("{} {}", event::to_string(event::from_cell(row.kind)), row.index);
    name = own.empty() || own == number ? number : fmt::format("{}: {}", number, own);
  } else {
    name = memory == MemoryKind::kDevice ? "GPU that is not told" : "Host";
  }
  if (memory == MemoryKind::kPinned) name = device != 0 ? name + ", pinned" : "Host, pinned";
  if (memory == MemoryKind::kManaged) name += ", managed";
  if (memory == MemoryKind::kSvm) name += ", shared virtual memory";
  if (level == MemoryCurves::kBlocks) name += ", tensors";
  if (level == kArrays) name += ", CuPy's arrays";
  if (several) {
    const auto owner = trace::row<event::row::Process>(trace, process);
    name += owner.rank != kUnknown ? fmt::format(", rank {}", owner.rank) : fmt::format(", pid {}", owner.pid);
  }
  return name;
}

}  // namespace

const MemoryCurves::Shape& MemoryCurves::shape(int64_t dim) {
  if (shapes_.empty()) shapes_.resize(static_cast<size_t>(std::max<int64_t>(trace_.rows(Table::kAllocationShape), 1)));
  Shape& known = shapes_[dim > 0 && static_cast<size_t>(dim) < shapes_.size() ? static_cast<size_t>(dim) : 0];
  if (known.read) return known;
  known.read = true;
  const auto row = trace::row<event::row::AllocationShape>(trace_, dim);
  known.allocates = row.operation == AllocationOperation::kAllocate;
  known.frees = row.operation == AllocationOperation::kFree;
  known.fails = row.operation == AllocationOperation::kOutOfMemory;
  known.level = row.level == AllocationLevel::kBlock     ? trace_.string(row.name) == "CuPy array" ? kArrays : kBlocks
                : row.level == AllocationLevel::kSegment ? kSegments
                                                         : kRuntime;
  known.device = row.device;
  known.memory = together(event::from_cell(row.memory));
  return known;
}

size_t MemoryCurves::sum_of(const Shape& shape, int64_t process) {
  const auto [found, fresh] = sum_of_.try_emplace({process, shape.device, shape.level, shape.memory}, sums_.size());
  if (!fresh) return found->second;
  Sum& sum = sums_.emplace_back();
  sum.process = process;
  sum.device = shape.device;
  sum.level = shape.level;
  sum.memory = shape.memory;
  sum.buckets.resize(buckets_, {0, kUnknown});
  sum.bucket_rows.resize(buckets_, 0);
  const size_t number = found->second;
  // Blocks lie in the segments of the same memory, whichever comes first.
  if (shape.level == kBlocks || shape.level == kSegments) {
    const auto other =
        sum_of_.find({process, shape.device, shape.level == kBlocks ? kSegments : kBlocks, shape.memory});
    if (other != sum_of_.end()) {
      if (shape.level == kBlocks)
        sum.reserve = other->second;
      else
        sums_[other->second].reserve = number;
    }
  }
  return number;
}

MemoryCurves::Step MemoryCurves::step(int64_t dim, int64_t track, int64_t address) {
  const Shape& known = shape(dim);
  Step step;
  if (!known.allocates && !known.frees) return step;
  const int64_t process = trace::cell<column::Track::process>(trace_, track);
  const auto found = sum_of_.find({process, known.device, known.level, known.memory});
  if (found == sum_of_.end()) return step;
  step.place = sums_[found->second].shown;
  step.key = {process, known.level, address};
  step.allocates = known.allocates;
  step.frees = known.frees;
  return step;
}

Status MemoryCurves::range(int64_t& from, int64_t& to) const {
  from = std::numeric_limits<int64_t>::max();
  to = std::numeric_limits<int64_t>::min();
  using A = column::Allocation;
  Status status;
  for (const auto& rows : trace::chunks<A::start>(trace_, status))
    for (const int64_t start : rows.start) {
      from = std::min(from, start);
      to = std::max(to, start);
    }
  return status;
}

size_t MemoryCurves::bucket(int64_t time) const {
  if (to_ <= from_) return 0;
  const double at = static_cast<double>(time - from_) / (static_cast<double>(to_ - from_) + 1);
  return std::min(static_cast<size_t>(std::max(at, 0.0) * static_cast<double>(buckets_)), buckets_ - 1);
}

// `bytes` more (or less) are live from `time` on.
void MemoryCurves::change(Sum& sum, int64_t time, int64_t bytes, int64_t in_use, int64_t reserved) {
  const int64_t value_before = sum.live + sum.offset;
  sum.live = saturating_add(sum.live, bytes);
  if (in_use != kUnknown && in_use != sum.live + sum.offset) {
    const int64_t offset = in_use - sum.live;
    if (!sum.told) {
      // What was there before the recording was there all the time.
      for (size_t i = 0; i < sum.filled; ++i) sum.buckets[i].live += offset - sum.offset;
      sum.peak += offset - sum.offset;
    } else {
      ++sum.facts.gaps;
    }
    sum.offset = offset;
  }
  if (in_use != kUnknown) sum.told = true;
  const int64_t value = sum.live + sum.offset;
  ++sum.rows;
  const size_t at = bucket(time);
  const int64_t carried = sum.filled == 0 ? value - bytes : value_before;
  for (; sum.filled <= at; ++sum.filled) {
    sum.buckets[sum.filled].live = carried;
    sum.bucket_rows[sum.filled] = sum.rows - 1;
  }
  if (value > sum.buckets[at].live) {
    sum.buckets[at].live = value;
    sum.bucket_rows[at] = sum.rows;
  }
  if (reserved != kUnknown) {
    sum.last_reserved = reserved;
    sum.most_reserved = std::max(sum.most_reserved.value_or(reserved), reserved);
    sum.buckets[at].reserved = std::max(sum.buckets[at].reserved == kUnknown ? 0 : sum.buckets[at].reserved, reserved);
  }
  if (sum.rows == 1 && bytes < 0) sum.peak = value - bytes;  // at the begin
  if (value <= sum.peak && !(sum.rows == 1 && bytes >= 0)) return;
  sum.peak = value;
  sum.peak_time = time;
  sum.peak_row = sum.rows;
  if (reserved != kUnknown) sum.peak_reserved = reserved;
  if (sum.reserve != kNone) sum.peak_segments = sums_[sum.reserve].live;
}

Status MemoryCurves::read(size_t buckets, MemoryReport& report) {
  buckets_ = std::max<size_t>(buckets, 1);
  TACHO_TRY(range(from_, to_));
  if (from_ > to_) return {};
  report.from = from_;
  report.to = to_;
  tsl::robin_map<MemoryKey, Held, MemoryKeyHash> held;
  using A = column::Allocation;
  Status status;
  for (const auto& row :
       trace::rows<A::track, A::start, A::dim, A::bytes, A::address, A::in_use, A::reserved>(trace_, status)) {
    const Shape& what = shape(row.dim);
    const int64_t process = trace::cell<column::Track::process>(trace_, row.track);
    if (what.fails && what.level == kRuntime && what.device == 0)
      ++unplaced_failures_[process];
    else if (what.fails)
      ++sums_[sum_of(what, process)].facts.failures;
    if (!what.allocates && !what.frees) continue;
    const size_t own = sum_of(what, process);
    const MemoryKey key{process, what.level, row.address};
    const auto found = held.find(key);
    if (what.allocates) {
      Sum& sum = sums_[own];
      ++sum.facts.allocations;
      int64_t less = 0;
      if (found != held.end()) {
        ++sum.facts.reused;
        if (found->second.sum == own)
          less = found->second.bytes;
        else
          change(sums_[found->second.sum], row.start, -found->second.bytes, kUnknown, kUnknown);
        held.erase(found);
      }
      if (row.bytes == kUnknown) {
        ++sum.facts.unsized;
        if (less == 0) continue;
      } else {
        held.insert_or_assign(key, Held{own, row.bytes});
      }
      change(sum, row.start, (row.bytes == kUnknown ? 0 : row.bytes) - less, row.in_use, row.reserved);
      continue;
    }
    Sum& sum = sums_[found != held.end() ? found->second.sum : own];
    ++sum.facts.frees;
    int64_t bytes = row.bytes;
    if (found != held.end()) {
      bytes = found->second.bytes;
      held.erase(found);
    } else {
      ++sum.facts.before_frees;
      if (bytes == kUnknown) {
        ++sum.facts.unsized_frees;
        continue;
      }
      sum.before = saturating_add(sum.before, bytes);
    }
    change(sum, row.start, -bytes, row.in_use, row.reserved);
  }
  TACHO_TRY(status);
  finish(buckets_, report);
  return {};
}

// A call that fails does not tell the device: that of the process's other memory, if that is on one only.
void MemoryCurves::place_failures() {
  for (const auto& each : unplaced_failures_) {
    const int64_t process = each.first;
    Sum* found = nullptr;
    size_t fit = 0;
    const auto look = [&](auto&& fits) {
      for (Sum& sum : sums_)
        if (sum.process == process && sum.level == kRuntime && fits(sum)) {
          ++fit;
          found = &sum;
        }
    };
    look([](const Sum& sum) { return sum.memory == MemoryKind::kDevice; });
    if (fit == 0) look([](const Sum& sum) { return sum.device != 0; });
    if (fit != 1) found = &sums_[sum_of({.level = kRuntime, .memory = MemoryKind::kDevice}, process)];
    found->facts.failures += each.second;
  }
}

void MemoryCurves::finish(size_t buckets, MemoryReport& report) {
  place_failures();
  for (Sum& sum : sums_) {
    // What nothing told was there before: what was freed and never allocated.
    if (!sum.told) {
      sum.offset = sum.before;
      sum.peak += sum.offset;
      for (size_t i = 0; i < sum.filled; ++i) sum.buckets[i].live += sum.offset;
    }
    for (; sum.filled < buckets; ++sum.filled) {
      sum.buckets[sum.filled].live = sum.live + sum.offset;
      sum.bucket_rows[sum.filled] = sum.rows;
    }
  }
  const bool several =
      std::any_of(sums_.begin(), sums_.end(), [&](const Sum& sum) { return sum.process != sums_.front().process; });
  for (size_t number = 0; number < sums_.size(); ++number) {
    Sum& sum = sums_[number];
    if (sum.level == kSegments) continue;
    MemoryPlace place = sum.facts;
    if (place.allocations + place.frees + place.failures == 0) continue;
    place.name = place_name(trace_, sum.device, sum.memory, sum.process, sum.level, several);
    place.process = sum.process;
    place.blocks = sum.level == kBlocks || sum.level == kArrays;
    place.beneath = sum.level == kRuntime && sum.memory == MemoryKind::kDevice &&
                    (sum_of_.contains({sum.process, sum.device, kBlocks, sum.memory}) ||
                     sum_of_.contains({sum.process, sum.device, kArrays, sum.memory}));
    if (place.beneath) place.name += ", taken from the driver";
    place.peak = sum.peak;
    place.peak_time = sum.peak_row == 0 ? from_ : sum.peak_time;
    place.end = sum.live + sum.offset;
    place.before = sum.told ? sum.offset : sum.before;
    place.reserved_at_peak = sum.peak_reserved;
    place.reserved_most = sum.most_reserved;
    place.reserved_end = sum.last_reserved;
    place.curve = std::move(sum.buckets);
    // Segments that do not hold what is live are not all in the recording: nothing is known of the reserve.
    const bool whole = sum.reserve != kNone && sum.peak_segments + sums_[sum.reserve].offset >= sum.peak;
    if (whole && !sum.most_reserved) {
      const Sum& segments = sums_[sum.reserve];
      place.reserved_at_peak = sum.peak_segments + segments.offset;
      place.reserved_most = segments.peak;
      place.reserved_end = segments.live + segments.offset;
      for (size_t i = 0; i < place.curve.size(); ++i) place.curve[i].reserved = segments.buckets[i].live;
    } else {
      int64_t last = kUnknown;
      for (MemoryPlace::Bucket& each : place.curve)
        last = each.reserved = each.reserved == kUnknown ? last : each.reserved;
    }
    sum.shown = shown_.size();
    shown_.push_back(number);
    report.places.push_back(std::move(place));
  }
}

}  // namespace tacho::analysis
