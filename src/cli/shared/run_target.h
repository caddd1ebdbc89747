// A tracing run: `tacho trace` and the personalities that record with its options.
#pragma once

#include "cli/options/recording_options.h"
#include "cli/shared/command_line.h"

namespace tacho::cli {

/// Completes the request, runs the program, writes the outputs and prints the summary to stderr; returns the exit code.
int run_target(TraceRequest& request);

}  // namespace tacho::cli
