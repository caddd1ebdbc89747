// Writes the output of system profiling: rocprof-sys's folder, or the .tacho file with files beside it.
#pragma once

#include "cli/sys/plan.h"
#include "trace/trace.h"

namespace tacho::cli::sys {

/// True unless VERBOSE is negative.
bool talks(const Request& request);

/// Names (for rocprof-sys, also creates) what the run writes to; fills in the plan's Recording.
Status choose_outputs(const Request& request, Plan& plan);

/// Writes what the plan asks for and reports it to the user. False after an error, which it has printed.
bool write_outputs(const trace::Trace& trace, Request& request, Plan& plan, const launch::RunResult& outcome);

}  // namespace tacho::cli::sys
