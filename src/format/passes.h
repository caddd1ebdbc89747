// Reads what rocprofv3 leaves of a program that it ran once for each pass of counters: folders pass_1, pass_2 ... (pmc_1,
// pmc_2 ... in older versions) below one. They are one program measured several times, so they do not add up.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

namespace tacho::format::passes {

inline constexpr std::string_view kName = "passes";
/// Property of a whole trace that was joined from passes: the sentence that stands beside every answer about it.
inline constexpr std::string_view kProperty = "passes";

/// True for a folder with traces in at least two folders pass_N or pmc_N right below it.
bool accepts(std::string_view path, std::string_view head, bool folder);

/// Reads one pass as the run: the first one that counted nothing, because counting slows kernels down; else the first
/// one. Counter values of the others join its dispatches: those of the process that stands at the same place by host,
/// rank and pid, with the same number in launch order and the same kernel. Counts values without such a dispatch as lost
/// and says so. Fails, naming the pass, where several traces lie in one.
Result<std::shared_ptr<const trace::Trace>> read(const std::string& path);
Status read_into(const std::string& path, trace::TraceWriter& writer);

/// The sentence about a trace that was joined from passes; "" for any other trace.
std::string sentence(const trace::Trace& trace);

}  // namespace tacho::format::passes
