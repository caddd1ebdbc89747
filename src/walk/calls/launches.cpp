// The sweep behind Launches (launches.h).
#include "walk/calls/launches.h"

#include <algorithm>

namespace tacho::walk {

namespace column = event::column;
using event::Table;

std::vector<bool> calls_of_runtimes(const trace::Trace& trace) {
  std::vector<bool> calls(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kFunction), 1)), true);
  for (size_t row = 1; row < calls.size(); ++row) {
    const auto domain = trace::cell<column::Function::domain>(trace, static_cast<int64_t>(row));
    calls[row] = domain != event::Domain::kOperator && domain != event::Domain::kPython;
  }
  return calls;
}

Launches::Launches(const trace::Trace& trace, Around around)
    : trace_(trace),
      calls_runtime_(calls_of_runtimes(trace)),
      index_(trace.rows(Table::kApi)),
      ranges_(around == Around::kRanges) {
  if (trace.rows(Table::kApi) == 0) return;
  calls_.emplace(trace);
  more_calls_ = calls_->next();
  if (ranges_ && trace.rows(Table::kMarker) > 0) {
    markers_.emplace(trace);
    more_markers_ = markers_->next();
  }
}

void Launches::read_markers(int64_t time) {
  for (; more_markers_ && markers_->start() <= time; more_markers_ = markers_->next()) {
    const auto& marker = **markers_;
    if (trace::cell<column::Label::kind>(trace_, marker.dim) == event::MarkerKind::kPushPop)
      open_.push(marker.track, marker.start, marker.duration, {Open::kLabel, marker.dim});
  }
}

void Launches::read_call() {
  const auto& call = **calls_;
  read_markers(call.start);
  const auto function = static_cast<size_t>(call.dim);
  if (function < calls_runtime_.size() && !calls_runtime_[function]) {
    if (!ranges_) return;
    const bool python = trace::cell<column::Function::domain>(trace_, call.dim) == event::Domain::kPython;
    return open_.push(call.track, call.start, call.duration, {python ? Open::kPython : Open::kOperator, call.dim});
  }
  if (call.correlation == 0) return;
  any_ = true;
  Launch* const launch = index_.add(trace::cell<column::Track::process>(trace_, call.track), call.correlation,
                                    {.start = call.start,
                                     .duration = call.duration,
                                     .track = static_cast<int32_t>(call.track),
                                     .function = static_cast<int32_t>(call.dim)});
  if (launch == nullptr || !ranges_) return;
  for (const auto& range : open_.at(call.track, call.start)) {
    int32_t& around = range.value.kind == Open::kLabel    ? launch->label
                      : range.value.kind == Open::kPython ? launch->python
                                                          : launch->operator_around;
    around = static_cast<int32_t>(range.value.row);
  }
}

const Launch* Launches::find(int64_t process, int64_t correlation, int64_t time) {
  if (!calls_ || correlation == 0) return nullptr;
  for (; more_calls_ && calls_->start() <= launched_by(time); more_calls_ = calls_->next()) read_call();
  return index_.find(process, correlation);
}

bool Launches::any() {
  for (; !any_ && more_calls_; more_calls_ = calls_->next()) read_call();
  return any_;
}

Status Launches::status() const {
  if (calls_) TACHO_TRY(calls_->status());
  if (markers_) TACHO_TRY(markers_->status());
  return {};
}

}  // namespace tacho::walk
