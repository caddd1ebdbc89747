// System profiling (`tacho sys`, rocprof-sys-run, rocprof-sys-sample): command line, run and outputs.
#pragma once

#include <string>

#include "cli/sys/request.h"

namespace tacho::cli::sys {

/// Parses options up to `--` or the first word that is no option; then reads config files and environment.
Result<Request> parse(Face face, Verb verb, int argc, char** argv);
/// Runs the program and writes what the settings ask for; returns the exit code.
int run(Request& request);
std::string help_text(Face face, Verb verb);

/// rocprof-sys-avail, `tacho sys avail`.
int avail(Face face, int argc, char** argv);

}  // namespace tacho::cli::sys
