// Asks for the steps that a profiler marked (steps.h).
#include "efficiency/steps.h"

#include "ranks/read/step_marks.h"

namespace tacho::efficiency {

Status find_steps(const trace::Trace& trace, EfficiencyOptions& options) {
  if (trace.rows(event::Table::kProcess) > 2) return {};  // row 0 is none
  TACHO_ASSIGN(const ranks::StepMarks steps, ranks::marked_steps(trace, 0));
  if (steps.from != "ProfilerStep" || steps.begins.size() < 2) return {};
  options.steps = static_cast<int64_t>(steps.begins.size());
  options.step_ns =
      static_cast<double>(steps.begins.back() - steps.begins.front()) / static_cast<double>(steps.begins.size() - 1);
  return {};
}

}  // namespace tacho::efficiency
