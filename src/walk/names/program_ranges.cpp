// Names and places of torch.profiler's own ranges (program_ranges.h).
#include "walk/names/program_ranges.h"

#include <algorithm>
#include <span>

#include "event/schema.h"
#include "trace/read/rows.h"

namespace tacho::walk {

using event::Table;
using Label = event::column::Label;

bool made_up_process(const trace::Trace& trace, int64_t process) {
  using P = event::column::Process;
  constexpr int64_t kMostPid = 1 << 22;  // the highest that Linux assigns
  if (process <= 0) return false;
  if (const int64_t pid = trace::cell<P::pid>(trace, process); pid > 0 && pid <= kMostPid) return false;
  const std::string_view name = trace::text<P::name>(trace, process);
  // What belongs to no process has the pid -1 there.
  return name == "Spans" || name == "Traces" || (name.empty() && trace::cell<P::pid>(trace, process) == -1);
}

Result<ProgramRanges> ProgramRanges::make(const trace::Trace& trace) {
  ProgramRanges out(trace);
  out.of_host_.resize(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kString), 1)));
  TACHO_TRY(trace.visit_summaries(Table::kMarker, [&](std::span<const trace::Summary> summaries) {
    for (const trace::Summary& summary : summaries) {
      const auto name = static_cast<size_t>(trace::cell<Label::name>(trace, summary.dim));
      if (name < out.of_host_.size() && !out.on_device(summary.track)) out.of_host_[name] = true;
    }
  }));
  return out;
}

bool ProgramRanges::on_device(int64_t track) const {
  return trace::cell<event::column::Track::kind>(*trace_, track) == event::TrackKind::kQueue;
}

bool ProgramRanges::profilers_own(int64_t track, int64_t label) const {
  if (made_up_process(*trace_, trace::cell<event::column::Track::process>(*trace_, track))) return true;
  if (trace::cell<Label::kind>(*trace_, label) != event::MarkerKind::kMark) return false;
  const std::string_view name = trace::text<Label::name>(*trace_, label);
  return name == "Record Window End" || name.starts_with("Iteration Start: ");
}

bool ProgramRanges::has(int64_t track, int64_t label) const {
  if (profilers_own(track, label)) return false;
  if (!on_device(track)) return true;
  const auto name = static_cast<size_t>(trace::cell<Label::name>(*trace_, label));
  return name >= of_host_.size() || !of_host_[name];
}

}  // namespace tacho::walk
