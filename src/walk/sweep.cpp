// A merge of chunks' runs with long strides (sweep.h).
#include "walk/sweep.h"

#include <algorithm>
#include <array>

namespace tacho::walk {

namespace column = event::column;

namespace {

constexpr size_t kFurther = 4;

// The column of a bit of SweepColumn in `table`; -1 if it has none.
int column_of(event::Table table, size_t bit) {
  using event::Table;
  switch (1u << bit) {
    case kSweepDim:
      return column::Fact::dim;
    case kSweepCorrelation:
      return column::Fact::correlation;
    case kSweepBytes:
      return table == Table::kCopy ? int{column::Copy::bytes} : table == Table::kFill ? int{column::Fill::bytes} : -1;
    default:
      return table == Table::kDispatch ? int{column::Dispatch::arguments}
             : table == Table::kCopy   ? int{column::Copy::arguments}
             : table == Table::kApi    ? int{column::Api::arguments}
                                       : -1;
  }
}

}  // namespace

struct Sweep::Block {
  std::vector<int64_t> start, duration;
  std::array<std::vector<int64_t>, kFurther> further;  // by bit of SweepColumn; empty = not read
};

Sweep::Sweep(const trace::Trace& trace, std::span<const event::Table> tables, unsigned columns)
    : trace_(trace), columns_(columns) {
  for (const event::Table table : tables) {
    const auto chunks = trace.chunks(table);
    for (size_t i = 0; i < chunks.size(); ++i)
      if (chunks[i].rows > 0) pending_.push_back({table, i, chunks[i].min_start});
  }
  std::stable_sort(pending_.begin(), pending_.end(),
                   [](const Pending& a, const Pending& b) { return a.min_start < b.min_start; });
}

Sweep::~Sweep() = default;

void Sweep::push(Run run) {
  uint32_t place;
  if (free_runs_.empty()) {
    place = static_cast<uint32_t>(runs_.size());
    runs_.push_back(std::move(run));
  } else {
    place = free_runs_.back();
    free_runs_.pop_back();
    runs_[place] = std::move(run);
  }
  const Run& one = runs_[place];
  Head head{one.block->start[one.at], place};
  size_t at = heap_.size();
  heap_.push_back(head);
  for (; at > 0 && head.start < heap_[(at - 1) / 2].start; at = (at - 1) / 2) heap_[at] = heap_[(at - 1) / 2];
  heap_[at] = head;
}

void Sweep::settle(size_t at) {
  const Head head = heap_[at];
  while (true) {
    size_t child = 2 * at + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1].start < heap_[child].start) ++child;
    if (heap_[child].start >= head.start) break;
    heap_[at] = heap_[child];
    at = child;
  }
  heap_[at] = head;
}

std::shared_ptr<Sweep::Block> Sweep::free_block() {
  for (const auto& block : blocks_)
    if (block.use_count() == 1) return block;
  blocks_.push_back(std::make_shared<Block>());
  return blocks_.back();
}

bool Sweep::load(const Pending& pending) {
  const std::shared_ptr<Block> block = free_block();
  std::vector<int64_t>& track = track_;
  const auto decode = [&](int at, std::vector<int64_t>& values) {
    if (status_) status_ = trace_.decode(pending.table, pending.chunk, at, values);
    return static_cast<bool>(status_);
  };
  if (!decode(column::Fact::track, track) || !decode(column::Fact::start, block->start) ||
      !decode(column::Fact::duration, block->duration))
    return false;
  for (size_t bit = 0; bit < kFurther; ++bit) {
    block->further[bit].clear();
    const int at = column_of(pending.table, bit);
    if ((columns_ >> bit & 1) != 0 && at >= 0 && !decode(at, block->further[bit])) return false;
  }
  // Within a chunk rows are sorted by track, then start; a run ends where that does not hold.
  const size_t rows = track.size();
  for (size_t from = 0; from < rows;) {
    size_t to = from + 1;
    while (to < rows && track[to] == track[from] && block->start[to] >= block->start[to - 1]) ++to;
    push({block, pending.table, track[from], from, to, block->start[to - 1]});
    from = to;
  }
  return true;
}

bool Sweep::next(RowSlice& slice) {
  if (!status_) return false;
  if (have_current_) {
    have_current_ = false;
    Head& top = heap_.front();
    Run& run = runs_[top.run];
    if (run.at < run.end) {
      top.start = run.block->start[run.at];
    } else {
      run.block.reset();
      free_runs_.push_back(top.run);
      heap_.front() = heap_.back();
      heap_.pop_back();
    }
    if (!heap_.empty()) settle(0);
  }
  while (next_pending_ < pending_.size() && (heap_.empty() || pending_[next_pending_].min_start <= heap_.front().start))
    if (!load(pending_[next_pending_++])) return false;
  if (heap_.empty()) return false;
  Run& current = runs_[heap_.front().run];
  have_current_ = true;
  int64_t limit = INT64_MAX;
  for (size_t child = 1; child <= 2 && child < heap_.size(); ++child) limit = std::min(limit, heap_[child].start);
  if (next_pending_ < pending_.size()) limit = std::min(limit, pending_[next_pending_].min_start);
  const Block& block = *current.block;
  const size_t from = current.at;
  size_t to = from + 1;
  if (current.last <= limit) {
    to = current.end;
  } else {
    // Mostly a few rows; otherwise gallop, then halve. The last row ends both.
    const int64_t* const start = block.start.data();
    for (int i = 0; i < 16 && start[to] <= limit; ++i) ++to;
    size_t step = 16;
    while (to < current.end && block.start[to] <= limit) {
      const size_t far = std::min(to + step, current.end - 1);
      if (block.start[far] <= limit) {
        to = far + 1;
        step *= 2;
      } else {
        to = static_cast<size_t>(std::upper_bound(block.start.begin() + static_cast<ptrdiff_t>(to),
                                                  block.start.begin() + static_cast<ptrdiff_t>(far), limit) -
                                 block.start.begin());
        break;
      }
    }
  }
  current.at = to;
  slice.table = current.table;
  slice.track = current.track;
  slice.rows = to - from;
  slice.start = block.start.data() + from;
  slice.duration = block.duration.data() + from;
  const auto further = [&](size_t bit) {
    return block.further[bit].empty() ? nullptr : block.further[bit].data() + from;
  };
  slice.dim = further(0);
  slice.correlation = further(1);
  slice.bytes = further(2);
  slice.arguments = further(3);
  return true;
}

}  // namespace tacho::walk
