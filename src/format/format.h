// The registry of formats: finds by name and content what reads and writes a file. A new format gets its own folder and
// one line in format.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/shared/options.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

namespace tacho::format {

/// An output format.
struct Writer {
  std::string_view name;       // the argument of -f: "csv"
  std::string_view extension;  // of single files, with the dot
  bool folder;                 // writes several files
  std::string_view text;       // its description in --help
  /// Writes `trace` to `target` and appends the paths of the files to `written`.
  Status (*write)(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
                  std::vector<std::string>& written);
  uint64_t holds = ~0ull;       // bit (1 << event::Table) of each fact table that it has a place for
  bool sums = false;            // also writes traces that hold sums and no events (--aggregate)
  bool stacks = false;          // is made of call stacks
  bool processes = false;       // writes one set of files a process: rows of no process only where no other rows are
  Status (*ready)() = nullptr;  // fails where a library that it needs is missing; null = needs none
};

/// An input format.
struct Reader {
  std::string_view name;
  /// True if name and first bytes (at most 4 KiB) look like this format. For folders, `head` is empty.
  bool (*accepts)(std::string_view path, std::string_view head, bool folder);
  Result<std::shared_ptr<const trace::Trace>> (*read)(const std::string& path);
  /// The same into `writer`, without a trace in between.
  Status (*read_into)(const std::string& path, trace::TraceWriter& writer);
};

/// Fails where `writer` could not write a recording of this kind: one that keeps sums alone, or (`stacks` false) one
/// without call stacks. Also fails where a library that it needs is missing. The sentences name -f and what to do.
Status check_recording(const Writer& writer, bool sums, bool stacks);

/// A sentence that counts the rows that `filter` wants and that `writer` has no place for; empty if there are none.
std::string left_out(const Writer& writer, const trace::Trace& trace, const walk::EventFilter& filter);

std::span<const Writer> writers();
std::span<const Reader> readers();

/// What rocprofv3 leaves of a program that it ran once for each pass of counters: folders pass_1, pass_2 ... (pmc_1,
/// pmc_2 ... in older versions) below one. They are one program measured several times, so they do not add up
/// (passes.cpp).
namespace passes {

/// True for a folder with traces in at least two folders pass_N or pmc_N right below it.
bool accepts(std::string_view path, std::string_view head, bool folder);

/// Reads one pass as the run: the first one that counted nothing, because counting slows kernels down; else the first
/// one. Counter values of the others join its dispatches: those of the process that stands at the same place by host,
/// rank and pid, with the same number in launch order and the same kernel. Counts values without such a dispatch as
/// lost and says so. Fails, naming the pass, where several traces lie in one.
Result<std::shared_ptr<const trace::Trace>> read(const std::string& path);
Status read_into(const std::string& path, trace::TraceWriter& writer);

/// What stands beside every answer about a trace that was joined from passes; "" for any other trace.
std::string sentence(const trace::Trace& trace);

}  // namespace passes

/// Takes out of `files` what repeats another output of the same run and holds less: Perfetto's X.pftrace beside
/// X.tacho, X.rpd, X.db or X.json; nsys' X.sqlite beside those; P_results.pftrace beside a CSV file P_*_trace.csv of
/// rocprofv3, which `parts` may name; and rocprof v1's X.csv beside X.json. Packed or not.
void leave_out_repeated(std::vector<std::string>& files, const std::vector<std::string>& parts = {});

/// Appends the contents of a file in a foreign format to `writer` while reading it. False, without appending anything,
/// if no reader takes the file: it is a .tacho file, or open_any() says what is wrong with it.
Result<bool> read_foreign(const std::string& path, trace::TraceWriter& writer);

/// Opens any file that tacho can read as a Trace: .tacho, or a foreign format through its reader.
Result<std::shared_ptr<const trace::Trace>> open_any(const std::string& path);

}  // namespace tacho::format
