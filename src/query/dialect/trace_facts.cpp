// What the SQL dialects need to know about a trace (trace_facts.h).
#include "query/dialect/trace_facts.h"

#include <algorithm>

#include "base/text/demangle.h"

namespace tacho::query {

using event::kUnknown;
using event::Table;
namespace column = event::column;

Result<std::shared_ptr<TraceFacts>> TraceFacts::make(std::shared_ptr<const trace::Trace> trace) {
  auto facts = std::make_shared<TraceFacts>();
  facts->trace_ = trace;
  TACHO_ASSIGN(auto monotonic, walk::OutputClock::make(*trace, walk::OutputClock::Clock::kMonotonic));
  TACHO_ASSIGN(auto boottime, walk::OutputClock::make(*trace, walk::OutputClock::Clock::kBoottime));
  facts->monotonic_ = std::make_unique<walk::OutputClock>(std::move(monotonic));
  facts->boottime_ = std::make_unique<walk::OutputClock>(std::move(boottime));
  // Names in .rpd files are demangled already. If their writer could not demangle one, upstream's views show it mangled
  // too.
  const bool from_rpd = trace->property(Table::kEnd, 0, "source").value_or("") == "rpd";
  facts->demangle_ = !from_rpd;
  const int64_t rows = std::max<int64_t>(trace->rows(Table::kTrack), 1);
  facts->tracks_.resize(static_cast<size_t>(rows));
  for (int64_t row = 1; row < rows; ++row) {
    const auto cell = [&](int at) { return trace->cell(Table::kTrack, row, at); };
    Track& track = facts->tracks_[static_cast<size_t>(row)];
    track.process = cell(column::Track::process);
    track.device = cell(column::Track::device);
    track.native = cell(column::Track::native);
    track.context = cell(column::Track::context);
    track.pid = trace->cell(Table::kProcess, track.process, column::Process::pid);
    const int64_t thread = cell(column::Track::thread);
    track.tid = thread > 0 ? trace->cell(Table::kThread, thread, column::Thread::tid) : 0;
    track.gpu = track.device > 0 ? trace->cell(Table::kDevice, track.device, column::Device::index) : 0;
    track.cuda = track.device > 0 && trace->text(Table::kDevice, track.device, column::Device::vendor).find("NVIDIA") !=
                                         std::string_view::npos;
    track.queue = track.cuda ? track.context : track.native;
    track.sequence = track.cuda ? track.native : from_rpd ? track.context : 0;
  }
  return facts;
}

namespace {
constexpr int64_t kStringBatch = 1 << 16;
}

TraceStrings::TraceStrings(std::shared_ptr<TraceFacts> facts, size_t words)
    : facts_(std::move(facts)),
      strings_(std::max<int64_t>(facts_->trace().rows(Table::kString), 1)),
      words_(static_cast<int64_t>(words)) {}
size_t TraceStrings::chunks(int) const {
  return static_cast<size_t>((rows(0) + kStringBatch - 1) / kStringBatch);
}
ChunkInfo TraceStrings::chunk(int, size_t chunk) const {
  const int64_t first = static_cast<int64_t>(chunk) * kStringBatch;
  return {static_cast<uint32_t>(std::min(kStringBatch, rows(0) - first)), first, false, 0, 0};
}
Status TraceStrings::decode(int, size_t, int, std::vector<int64_t>&) {
  return fail("the string table has no stored columns");
}

std::string_view TraceFacts::readable(int64_t string_row, std::string& scratch) {
  const std::string_view raw = trace_->string(string_row);
  if (!demangle_ || !may_be_mangled(raw)) return raw;
  constexpr size_t kMostKnown = 1 << 17;
  const auto found = readable_.find(string_row);
  if (found != readable_.end()) return *found->second;
  if (readable_.size() >= kMostKnown) {
    scratch = demangle(raw);
    return scratch;
  }
  return *readable_.emplace(string_row, std::make_unique<std::string>(demangle(raw))).first->second;
}

TraceFacts::Range* TraceFacts::range_of(int64_t process, int64_t upper, bool make) {
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

int64_t TraceFacts::cause(int64_t process, int64_t correlation) {
  if (correlation == 0) return -1;
  if (!indexed_) {
    indexed_ = true;
    status_ = index_causes();
  }
  if (!status_) return -1;
  const Range* const range = range_of(process, correlation >> 32, false);
  if (range != nullptr && range->dense) {
    const auto number = static_cast<uint32_t>(correlation);
    if (number < range->least || number > range->most) return -1;
    return static_cast<int64_t>(static_cast<const uint32_t*>(rows_.data())[range->first + (number - range->least)]) - 1;
  }
  if (sparse_.size() == 0) return -1;
  const auto* const found = sparse_.find({process, correlation});
  return found != nullptr ? found->value : -1;
}

Status TraceFacts::index_causes() {
  static constexpr int kColumns[] = {column::Fact::track, column::Fact::correlation};
  constexpr size_t kMostRanges = 1 << 16;
  bool sparse = false;
  TACHO_TRY(trace::visit_chunks(
      *trace_, Table::kApi, kColumns, [&](size_t, std::span<const std::span<const int64_t>> values) {
        for (size_t i = 0; i < values[0].size(); ++i) {
          const int64_t correlation = values[1][i];
          if (correlation == 0) continue;
          Range* const range = range_of(track(values[0][i]).process, correlation >> 32, ranges_.size() < kMostRanges);
          if (range == nullptr) {
            sparse = true;
            continue;
          }
          range->least = std::min(range->least, static_cast<uint32_t>(correlation));
          range->most = std::max(range->most, static_cast<uint32_t>(correlation));
          ++range->calls;
        }
        return true;
      }));
  uint64_t cells = 0;
  const bool few = trace_->rows(Table::kApi) < UINT32_MAX;
  for (Range& range : ranges_) {
    const uint64_t span = uint64_t{range.most} - range.least + 1;
    range.dense = few && span <= static_cast<uint64_t>(range.calls) * 4 + 4096;
    sparse = sparse || !range.dense;
    if (!range.dense) continue;
    range.first = cells;
    cells += span;
  }
  if (cells > 0) rows_ = trace::Scratch::temporary(cells * 4);
  auto* const rows = static_cast<uint32_t*>(rows_.data());
  int64_t row = 0;
  TACHO_TRY(trace::visit_chunks(
      *trace_, Table::kApi, kColumns, [&](size_t, std::span<const std::span<const int64_t>> values) {
        for (size_t i = 0; i < values[0].size(); ++i, ++row) {
          const int64_t correlation = values[1][i];
          if (correlation == 0) continue;
          const int64_t process = track(values[0][i]).process;
          const Range* const range = range_of(process, correlation >> 32, false);
          if (range != nullptr && range->dense) {
            uint32_t& cell = rows[range->first + (static_cast<uint32_t>(correlation) - range->least)];
            if (cell == 0) cell = static_cast<uint32_t>(row) + 1;
          } else {
            sparse_.add({process, correlation}, row);
          }
        }
        return true;
      }));
  return sparse ? sparse_.finish() : Status();
}

int64_t TraceFacts::call_cell(int64_t row, int which) {
  CallChunk* chunk = last_chunk_;
  if (chunk == nullptr || row < chunk->first_row || row >= chunk->first_row + chunk->rows) {
    if (call_chunks_.empty()) {
      int64_t first = 0;
      for (const trace::Chunk& one : trace_->chunks(Table::kApi)) {
        call_chunks_.push_back(first);
        first += one.rows;
      }
      call_chunks_.push_back(first);
    }
    if (row < 0 || row >= call_chunks_.back()) return kUnknown;
    const auto above = std::upper_bound(call_chunks_.begin(), call_chunks_.end(), row);
    const auto number = static_cast<size_t>(above - call_chunks_.begin()) - 1;
    chunk = &call_cache_[number % call_cache_.size()];
    if (chunk->chunk != number) {
      chunk->chunk = number;
      chunk->first_row = call_chunks_[number];
      chunk->rows = call_chunks_[number + 1] - call_chunks_[number];
      chunk->decoded[0] = chunk->decoded[1] = false;
    }
    last_chunk_ = chunk;
  }
  std::vector<int64_t>& values = chunk->columns[which];
  if (!chunk->decoded[which]) {
    const Status done = trace_->decode(
        Table::kApi, chunk->chunk,
        which == 0 ? static_cast<int>(column::Fact::track) : static_cast<int>(column::Fact::duration), values);
    if (!done && status_) status_ = done;
    values.resize(static_cast<size_t>(chunk->rows), kUnknown);
    chunk->decoded[which] = true;
  }
  return values[static_cast<size_t>(row - chunk->first_row)];
}

}  // namespace tacho::query
