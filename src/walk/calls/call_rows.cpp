// Rows of calls by process and correlation (call_rows.h).
#include "walk/calls/call_rows.h"

#include <algorithm>

#include "trace/read/rows.h"

namespace tacho::walk {

using event::kUnknown;
using event::Table;

CallRows::Range* CallRows::range_of(int64_t process, int64_t upper, bool make) {
  if (last_range_ != nullptr && last_range_->process == process && last_range_->upper == upper) return last_range_;
  const uint64_t key = static_cast<uint64_t>(process) << 32 ^ static_cast<uint64_t>(upper);
  const auto found = range_index_.find(key);
  if (found != range_index_.end())
    for (const uint32_t at : found->second)
      if (ranges_[at].process == process && ranges_[at].upper == upper) return last_range_ = &ranges_[at];
  if (!make) return nullptr;
  range_index_[key].push_back(static_cast<uint32_t>(ranges_.size()));
  Range range;
  range.process = process;
  range.upper = upper;
  ranges_.push_back(range);
  return last_range_ = &ranges_.back();
}

int64_t CallRows::find(int64_t process, int64_t correlation) {
  if (correlation == 0) return -1;
  if (!indexed_) {
    indexed_ = true;
    status_ = index();
  }
  if (!status_) return -1;
  const Range* const range = range_of(process, correlation >> 32, false);
  if (range != nullptr && range->dense) {
    const auto number = static_cast<uint32_t>(correlation);
    if (number < range->least || number > range->most) return -1;
    return static_cast<int64_t>(static_cast<const uint32_t*>(rows_.data())[range->first + (number - range->least)]) - 1;
  }
  const int64_t* const row = any_sparse_ ? sparse_.find(process, correlation) : nullptr;
  return row != nullptr ? *row : -1;
}

Status CallRows::index() {
  using A = event::column::Api;
  constexpr size_t kMostRanges = 1 << 16;
  std::vector<int64_t> process_of(static_cast<size_t>(std::max<int64_t>(trace_.rows(Table::kTrack), 1)));
  for (size_t track = 1; track < process_of.size(); ++track)
    process_of[track] = trace::cell<event::column::Track::process>(trace_, static_cast<int64_t>(track));
  // Calls visit(process, correlation, row) for each call that has a correlation.
  const auto each_call = [&](auto visit) {
    Status status;
    int64_t row = 0;
    for (const auto& calls : trace::chunks<A::track, A::correlation>(trace_, status))
      for (size_t i = 0; i < calls.size(); ++i, ++row) {
        const auto track = static_cast<size_t>(calls.track[i]);
        if (calls.correlation[i] != 0)
          visit(process_of[track < process_of.size() ? track : 0], calls.correlation[i], row);
      }
    return status;
  };
  TACHO_TRY(each_call([&](int64_t process, int64_t correlation, int64_t) {
    Range* const range = range_of(process, correlation >> 32, ranges_.size() < kMostRanges);
    if (range == nullptr) {
      any_sparse_ = true;
      return;
    }
    range->least = std::min(range->least, static_cast<uint32_t>(correlation));
    range->most = std::max(range->most, static_cast<uint32_t>(correlation));
    ++range->calls;
  }));
  uint64_t cells = 0;
  const bool few = trace_.rows(Table::kApi) < UINT32_MAX;
  for (Range& range : ranges_) {
    const uint64_t span = uint64_t{range.most} - range.least + 1;
    range.dense = few && span <= static_cast<uint64_t>(range.calls) * 4 + 4096;
    any_sparse_ = any_sparse_ || !range.dense;
    if (!range.dense) continue;
    range.first = cells;
    cells += span;
  }
  if (cells > 0) rows_ = trace::Scratch::temporary(cells * 4);
  auto* const rows = static_cast<uint32_t*>(rows_.data());
  TACHO_TRY(each_call([&](int64_t process, int64_t correlation, int64_t row) {
    const Range* const range = range_of(process, correlation >> 32, false);
    if (range != nullptr && range->dense) {
      uint32_t& cell = rows[range->first + (static_cast<uint32_t>(correlation) - range->least)];
      if (cell == 0) cell = static_cast<uint32_t>(row) + 1;
    } else {
      sparse_.add(process, correlation, row);
    }
  }));
  return any_sparse_ ? sparse_.finish() : Status();
}

int64_t CallRows::cell(int64_t row, CallColumn column) {
  CallChunk* chunk = last_chunk_;
  if (chunk == nullptr || row < chunk->first_row || row >= chunk->first_row + chunk->rows) {
    if (first_rows_.empty()) {
      int64_t first = 0;
      for (const trace::Chunk& one : trace_.chunks(Table::kApi)) {
        first_rows_.push_back(first);
        first += one.rows;
      }
      first_rows_.push_back(first);
    }
    if (row < 0 || row >= first_rows_.back()) return kUnknown;
    const auto above = std::upper_bound(first_rows_.begin(), first_rows_.end(), row);
    const auto number = static_cast<size_t>(above - first_rows_.begin()) - 1;
    chunk = &chunks_[number % chunks_.size()];
    if (chunk->chunk != number) {
      chunk->chunk = number;
      chunk->first_row = first_rows_[number];
      chunk->rows = first_rows_[number + 1] - first_rows_[number];
      chunk->decoded = {};
    }
    last_chunk_ = chunk;
  }
  std::vector<int64_t>& values = chunk->columns[column];
  if (!chunk->decoded[column]) {
    using A = event::column::Api;
    static constexpr int kColumns[] = {A::track, A::duration, A::dim};
    const Status done = trace_.decode(Table::kApi, chunk->chunk, kColumns[column], values);
    if (!done && status_) status_ = done;
    values.resize(static_cast<size_t>(chunk->rows), kUnknown);
    chunk->decoded[column] = true;
  }
  return values[static_cast<size_t>(row - chunk->first_row)];
}

}  // namespace tacho::walk
