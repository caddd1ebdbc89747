// Writes the call stacks of a trace as folded stacks, speedscope JSON, and a self-contained flame graph page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/stacks.h"
#include "format/format.h"

namespace tacho::format {

/// One line a stack, "outer;inner 1234", microseconds of host time; device time goes to a second file,
/// NAME.gpu.folded, if there is any.
Status write_folded(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
                    std::vector<std::string>& written);
/// Opens in https://www.speedscope.app.
Status write_speedscope(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
                        std::vector<std::string>& written);

struct FlameInput {
  std::string name;  // shown: the trace's file
  std::string command;
  const analysis::StackTree* tree;
};
/// A self-contained page: one run, or the difference of two (`other` is what is compared against, may be
/// null).
std::string flame_page(const FlameInput& run, const FlameInput* other);

}  // namespace tacho::format
