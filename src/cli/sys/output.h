// Writes the output of system profiling: the folder of rocprof-sys, or the .tacho file with files beside it.
#pragma once

#include "cli/sys/plan.h"
#include "trace/trace.h"

namespace tacho::cli::sys {

/// True unless VERBOSE is negative.
bool talks(const Request& request);

/// Names (and, for rocprof-sys, creates) what the run writes into; fills in the plan's Recording.
Status choose_outputs(const Request& request, Plan& plan);

/// Writes what the plan asks for and tells the user. False after an error, which was told, too.
bool write_outputs(const trace::Trace& trace, Request& request, Plan& plan, const launch::RunResult& outcome);

}  // namespace tacho::cli::sys
