// Where in the program's code its time went, for a run's summary: operators of PyTorch, lines of the user's code.
#pragma once

#include <cstddef>

#include "report/sections.h"
#include "trace/trace.h"

namespace tacho::cli {

/// Operators by the GPU time that they launched themselves, then by their own host time; a sentence about GPU time
/// without an operator. Nothing for a trace without operators; for one with too many calls to read, only the command.
void add_operators(report::Sections& out, const trace::Trace& trace, size_t top);

/// The user's own lines, or functions if no line is known: their host time by samples, and the GPU time that they
/// launched. Nothing for a trace without call stacks.
void add_lines(report::Sections& out, const trace::Trace& trace, size_t top);

}  // namespace tacho::cli
