// Merging by collectives (merge_files.h).
#include "cli/files/merge_files.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/trim.h"
#include "cli/files/open_trace.h"
#include "ranks/read/align.h"
#include "report/text.h"

namespace tacho::cli {

namespace {

// What is known about the clocks of `files`, for people, also as notes in the trace. Returns the trace's property
// "clocks" for files that are all aligned.
std::string tell_clocks(const std::vector<std::string>& files, const std::vector<ranks::Alignment>& alignments,
                        const std::vector<analysis::TracedMachine>& machines, trace::TraceWriter& writer,
                        std::vector<std::string>& notes) {
  size_t corrected = 0, unaligned = 0, within = 0;
  double residual = 0;
  bool by_messages = false;
  const auto note = [&](event::NoteSeverity severity, std::string text) {
    writer.note(0, severity, text);
    notes.push_back(std::move(text));
  };
  for (size_t i = 1; i < files.size(); ++i) {
    const ranks::Alignment& alignment = alignments[i];
    const bool same_host = machines[i].is(machines[0]);
    if (!alignment.related) {
      if (same_host) continue;
      ++unaligned;
      if (!alignment.has_realtime || !alignments[0].has_realtime) continue;  // merge_into() says so
      note(event::NoteSeverity::kWarning,
           fmt::format("{}: unaligned: it shares no collectives or messages with {} by which their clocks could be "
                       "compared; moments of the two compare only as well as their hosts' clocks agree",
                       files[i], files[0]));
      continue;
    }
    residual = std::max(residual, alignment.residual);
    by_messages = by_messages || alignment.by_messages;
    if (!alignment.corrected) {
      ++within;
      continue;
    }
    ++corrected;
    note(event::NoteSeverity::kInfo,
         fmt::format("{}: its clock is aligned with that of {} by {} {} ({} outliers): {} apart, drift {:.1f} ppm, {} "
                     "piece{}, to within {} (95 of 100)",
                     files[i], files[0], alignment.samples,
                     alignment.by_messages ? "groups of messages" : "collectives", alignment.outliers,
                     report::format_duration(std::abs(static_cast<double>(alignment.offset))), alignment.drift * 1e6,
                     alignment.pieces, alignment.pieces == 1 ? "" : "s", report::format_duration(alignment.residual)));
  }
  if (unaligned > 0 || corrected + within == 0) return {};
  return fmt::format("aligned by {} to within {} (95 of 100)", by_messages ? "collectives and messages" : "collectives",
                     report::format_duration(residual));
}

}  // namespace

Result<TraceFiles> TraceFiles::open(const std::vector<std::string>& files, bool once, std::vector<std::string>& notes) {
  TraceFiles opened;
  opened.names_ = files;
  for (const std::string& file : files) {
    TACHO_ASSIGN(auto trace, open_trace(file, WhenEmpty::kAccept));
    opened.traces_.push_back(std::move(trace));
  }
  TACHO_TRY(ranks::survey(opened.traces_, opened.names_, *opened.survey_));
  if (once) {
    opened.kept_ = ranks::without_repeated(opened.survey_->traces, notes);
  } else {
    opened.kept_.resize(files.size());
    std::iota(opened.kept_.begin(), opened.kept_.end(), size_t{0});
  }
  return opened;
}

std::vector<std::vector<size_t>> TraceFiles::jobs() const {
  std::vector<ranks::PassedTrace> kept;
  for (const size_t trace : kept_) kept.push_back(survey_->traces[trace]);
  return ranks::jobs_of(kept, survey_->names);
}

Status TraceFiles::merge(std::span<const size_t> which, trace::TraceWriter& writer,
                         std::vector<std::string>& notes) const {
  std::vector<analysis::MergeInput> inputs;
  std::vector<size_t> places;
  std::vector<std::string> files;
  std::vector<analysis::TracedMachine> machines;
  bool events = true, unaligned = false;
  for (const size_t at : which) {
    const std::shared_ptr<const trace::Trace>& one = trace(at);
    inputs.push_back({one, name(at), {}});
    places.push_back(kept_[at]);
    files.push_back(name(at));
    TACHO_ASSIGN(analysis::TracedMachine machine, analysis::traced_machine(*one));
    machines.push_back(std::move(machine));
    events = events && !one->aggregated();
    unaligned = unaligned || !analysis::unaligned_sentence(*one).empty();
  }
  std::string clocks;
  if (events) {  // merge_into() says what is wrong with the others
    TACHO_ASSIGN(const std::vector<ranks::Alignment> alignments, ranks::align(*survey_, places));
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs[i].time_map = alignments[i].map;
      inputs[i].related = alignments[i].related;
    }
    clocks = tell_clocks(files, alignments, machines, writer, notes);
  }
  TACHO_TRY(analysis::merge_into(inputs, writer, notes));
  if (!clocks.empty() && !unaligned) writer.property(event::Table::kEnd, 0, "clocks", clocks);
  return {};
}

}  // namespace tacho::cli
