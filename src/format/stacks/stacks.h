// Writes the call stacks of a trace as folded stacks, speedscope JSON, and a self-contained flame graph page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/stacks.h"
#include "format/format.h"

namespace tacho::format {

/// One line per stack, "outer;inner 1234", in microseconds of host time. Device time goes to a second file,
/// NAME.gpu.folded, if there is any; standard output gets only one of the two, host time first.
Status write_folded(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
                    std::vector<std::string>& written);
/// For https://www.speedscope.app.
Status write_speedscope(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
                        std::vector<std::string>& written);

struct FlameInput {
  std::string name;  // as shown: the trace's file
  std::string command;
  const analysis::StackTree* tree;
};
/// A self-contained page for one run, or for the difference between two: `other`, which may be null, is the
/// run to compare against.
std::string flame_page(const FlameInput& run, const FlameInput* other);

}  // namespace tacho::format
