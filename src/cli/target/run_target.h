// A tracing run, for `tacho trace` and the personalities that record with its options.
#pragma once

#include <string>

#include "cli/options/recording_options.h"
#include "cli/shared/command_line.h"

namespace tacho::cli {

/// `path` with this process's rank before the extension, so that ranks never share a file. Returns it unchanged outside
/// jobs of several processes, and if the file's name already contains the rank.
std::string of_rank(const std::string& path);

/// Completes the request, runs the program, writes the outputs, prints the summary; returns the exit code.
int run_target(TraceRequest& request);

}  // namespace tacho::cli
