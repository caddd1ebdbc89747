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
#include "event/schema.h"
#include "report/progress.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

namespace tacho::format {

/// How rocprofv3's files refer to an agent: by its absolute number, its number among the visible ones, or its type and
/// number within that type.
enum class AgentIndex : uint8_t { kAbsolute, kRelative, kTypeRelative };

struct ExportOptions {
  bool overwrite = false;
  bool mangled = false;        // -M: kernel names as the runtime gives them
  bool truncate = false;       // -T: names without arguments and templates
  bool kernel_rename = false;  // kernels take the name of the innermost marker around them
  bool extra_columns = false;  // csv: columns that rocprofv3 does not have
  bool statistics = false;     // csv: also *_stats.csv files
  int64_t process = 0;         // only this row of table process; 0 = all
  uint64_t tables = ~0ull;     // bit (1 << event::Table) of each fact table to write
  uint64_t domains = ~0ull;    // bit (1 << event::Domain) of the API calls to write
  AgentIndex agent_index = AgentIndex::kRelative;
  bool group_by_queue = false;  // pftrace: name tracks after queues even if streams are known
  uint64_t minimum_bytes = 0;   // csv: write no file if all together would be smaller
  int rpd_schema = 2;
  bool rocprof_sys = false;                     // pftrace: tracks, categories and samples like rocprof-sys
  bool annotations = true;                      // pftrace: write the events' arguments
  report::Progress* progress = nullptr;         // gets updates now and then; may be null
  std::vector<std::string>* remarks = nullptr;  // gets sentences about what was left out; may be null

  bool wants(event::Table table) const { return (tables >> static_cast<unsigned>(table) & 1) != 0; }
  bool wants(event::Domain domain) const { return (domains >> static_cast<unsigned>(domain) & 1) != 0; }
};

/// Where an export goes: a file (single-file formats), or a folder and a file prefix (csv).
struct ExportTarget {
  std::string file;
  std::string folder;
  std::string prefix;  // "<pid>" -> "<pid>_kernel_trace.csv"
};

/// An output format.
struct Writer {
  std::string_view name;       // the argument of -f: "csv"
  std::string_view extension;  // of single files, with the dot
  bool folder;                 // writes several files
  std::string_view text;       // its description in --help
  /// Writes `trace` to `target` and appends the paths of the files to `written`.
  Status (*write)(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
                  std::vector<std::string>& written);
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

std::span<const Writer> writers();
std::span<const Reader> readers();

/// Appends the contents of a file in a foreign format to `writer` while reading it. False, without appending anything,
/// if no reader takes the file: it is a .tacho file, or open_any() says what is wrong with it.
Result<bool> read_foreign(const std::string& path, trace::TraceWriter& writer);

/// Opens any file that tacho can read as a Trace: .tacho, or a foreign format through its reader.
Result<std::shared_ptr<const trace::Trace>> open_any(const std::string& path);

}  // namespace tacho::format
