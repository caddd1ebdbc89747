// Facts about a trace for the SQL dialects (trace_facts.h).
#include "query/dialect/trace_facts.h"

#include <algorithm>

#include "base/text/demangle.h"
#include "trace/read/rows.h"

namespace tacho::query {

using event::kUnknown;
using event::Table;
namespace column = event::column;

Result<std::shared_ptr<TraceFacts>> TraceFacts::make(std::shared_ptr<const trace::Trace> trace) {
  auto facts = std::make_shared<TraceFacts>();
  facts->trace_ = trace;
  facts->calls_ = std::make_unique<walk::CallRows>(*trace);
  TACHO_ASSIGN(auto monotonic, walk::OutputClock::make(*trace, walk::OutputClock::Clock::kMonotonic));
  TACHO_ASSIGN(auto boottime, walk::OutputClock::make(*trace, walk::OutputClock::Clock::kBoottime));
  facts->monotonic_ = std::make_unique<walk::OutputClock>(std::move(monotonic));
  facts->boottime_ = std::make_unique<walk::OutputClock>(std::move(boottime));
  // Names in .rpd files are demangled already. If their writer could not demangle one, upstream's views show it mangled
  // too.
  facts->demangle_ = trace->property(Table::kEnd, 0, "source").value_or("") != "rpd";
  const int64_t rows = std::max<int64_t>(trace->rows(Table::kTrack), 1);
  facts->tracks_.resize(static_cast<size_t>(rows));
  for (int64_t row = 1; row < rows; ++row) {
    const auto stored = trace::row<event::row::Track>(*trace, row);
    Track& track = facts->tracks_[static_cast<size_t>(row)];
    track.process = stored.process;
    track.device = stored.device;
    track.native = stored.native;
    track.pid = trace::cell<column::Process::pid>(*trace, track.process);
    track.tid = stored.thread > 0 ? trace::cell<column::Thread::tid>(*trace, stored.thread) : 0;
    track.gpu = track.device > 0 ? trace::cell<column::Device::index>(*trace, track.device) : 0;
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

}  // namespace tacho::query
