// Writes the call stacks of a trace as folded stacks, speedscope JSON, and a self-contained flame graph page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/stacks/stacks.h"
#include "base/text/json_writer.h"
#include "format/shared/options.h"

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
  const std::vector<uint32_t>* kernels = nullptr;  // by frame: a number for its kernel, 0 = none; goes into the page
};
/// One run as the flame graph's drawing code wants it (web/src/flame/tree.ts).
void put_flame_run(JsonWriter& json, const FlameInput& input);
/// A self-contained page for one run, or for the difference between two: `other`, which may be null, is the run to
/// compare against.
std::string flame_page(const FlameInput& run, const FlameInput* other);

}  // namespace tacho::format
