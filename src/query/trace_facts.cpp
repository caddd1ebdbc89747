// Facts about a trace that dialects share (trace_facts.h).
#include "query/trace_facts.h"

#include <algorithm>

#include "base/demangle.h"

namespace tacho::query {

using event::Table;
namespace column = event::column;

Result<std::shared_ptr<TraceFacts>> TraceFacts::make(std::shared_ptr<const trace::Trace> trace) {
  auto facts = std::make_shared<TraceFacts>();
  facts->trace_ = trace;
  TACHO_ASSIGN(auto monotonic, format::ClockMap::make(*trace, format::ClockMap::Clock::kMonotonic));
  TACHO_ASSIGN(auto boottime, format::ClockMap::make(*trace, format::ClockMap::Clock::kBoottime));
  facts->monotonic_ = std::make_unique<format::ClockMap>(std::move(monotonic));
  facts->boottime_ = std::make_unique<format::ClockMap>(std::move(boottime));
  // Names in .rpd files are the readable ones already; where their writer could not demangle one, its views show it so.
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
    track.cuda = track.device > 0 && trace->text(Table::kDevice, track.device, column::Device::vendor).find("NVIDIA") != std::string_view::npos;
    track.queue = track.cuda ? track.context : track.native;
    track.sequence = track.cuda ? track.native : from_rpd ? track.context : 0;
  }
  return facts;
}

namespace {
constexpr int64_t kStringBatch = 1 << 16;
}

StringStore::StringStore(std::shared_ptr<TraceFacts> facts, size_t words)
    : facts_(std::move(facts)), strings_(std::max<int64_t>(facts_->trace().rows(Table::kString), 1)), words_(static_cast<int64_t>(words)) {}
size_t StringStore::chunks(int) const { return static_cast<size_t>((rows(0) + kStringBatch - 1) / kStringBatch); }
ChunkInfo StringStore::chunk(int, size_t chunk) const {
  const int64_t first = static_cast<int64_t>(chunk) * kStringBatch;
  return {static_cast<uint32_t>(std::min(kStringBatch, rows(0) - first)), first, false, 0, 0};
}
Status StringStore::decode(int, size_t, int, std::vector<int64_t>&) { return fail("the string table has no stored columns"); }

std::string_view TraceFacts::readable(int64_t string_row) {
  const std::string_view raw = trace_->string(string_row);
  if (!demangle_ || !raw.starts_with("_Z")) return raw;
  auto& known = readable_[string_row];
  if (!known) known = std::make_unique<std::string>(demangle(raw));
  return *known;
}

const TraceFacts::Cause* TraceFacts::cause(int64_t process, int64_t correlation) {
  if (correlation == 0) return nullptr;
  if (!indexed_) {
    indexed_ = true;
    status_ = index_causes();
  }
  if (!status_) return nullptr;
  const auto* const found = causes_.find({process, correlation});
  return found != nullptr ? &found->value : nullptr;
}

Status TraceFacts::index_causes() {
  static constexpr int kColumns[] = {column::Fact::track, column::Fact::duration, column::Fact::correlation};
  int64_t row = 0;
  TACHO_TRY(trace::visit_chunks(*trace_, Table::kApi, kColumns, [&](size_t, std::span<const std::span<const int64_t>> values) {
    for (size_t i = 0; i < values[0].size(); ++i, ++row)
      if (values[2][i] != 0) causes_.add({track(values[0][i]).process, values[2][i]}, {row, values[1][i], values[0][i]});
    return true;
  }));
  return causes_.finish();
}

}  // namespace tacho::query
