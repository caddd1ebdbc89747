// A tracing run: `tacho trace` and the personalities that record with its options.
#pragma once

#include <string>

#include "cli/options/recording_options.h"
#include "cli/shared/command_line.h"

namespace tacho::cli {

/// `path` with this process's rank before its ending where it is one of a job's several and no number in the file's name is
/// the rank already: files of ranks never collide.
std::string of_rank(const std::string& path);

/// Completes the request, runs the program, writes the outputs and prints the summary to stderr; returns the exit code.
int run_target(TraceRequest& request);

}  // namespace tacho::cli
