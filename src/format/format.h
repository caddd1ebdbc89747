// The registry of formats: the files that tacho reads and writes, by name and by content. A new format has
// its own folder and one line in format.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "event/schema.h"
#include "trace/trace.h"
#include "trace/writer.h"

namespace tacho::format {

/// What stands for an agent in rocprofv3's files: its absolute number, its number among the visible ones, or
/// its type and number within the type.
enum class AgentIndex : uint8_t { kAbsolute, kRelative, kTypeRelative };

struct ExportOptions {
  bool overwrite = false;
  bool mangled = false;        // -M: kernel names as the runtime gives them
  bool truncate = false;       // -T: without arguments and templates
  bool kernel_rename = false;  // kernels take the name of the innermost enclosing marker
  bool extra_columns = false;  // csv: columns that rocprofv3 does not have
  bool statistics = false;     // csv: *_stats.csv files too
  int64_t process = 0;         // only this row of table process; 0 = all
  uint64_t tables = ~0ull;     // bit (1 << event::Table) of each fact table to write
  uint64_t domains = ~0ull;    // bit (1 << event::Domain) of the API calls to write
  AgentIndex agent_index = AgentIndex::kRelative;
  bool group_by_queue = false;  // pftrace: tracks named after queues, also where streams are known
  uint64_t minimum_bytes = 0;   // csv: write no file when all of them together are smaller
  int rpd_schema = 2;
  bool rocprof_sys = false;      // pftrace: tracks, categories and samples as rocprof-sys has them
  bool annotations = true;       // pftrace: arguments of events
  Progress* progress = nullptr;  // told now and then; may be null
  std::vector<std::string>* remarks = nullptr;  // gets sentences about omissions; may be null

  bool wants(event::Table table) const { return (tables >> static_cast<unsigned>(table) & 1) != 0; }
  bool wants(event::Domain domain) const { return (domains >> static_cast<unsigned>(domain) & 1) != 0; }
};

/// Where an export goes: a file (single-file formats), or a folder and file prefix (csv).
struct ExportTarget {
  std::string file;
  std::string folder;
  std::string prefix;  // "<pid>" -> "<pid>_kernel_trace.csv"
};

/// An output format.
struct Writer {
  std::string_view name;       // what -f calls it: "csv"
  std::string_view extension;  // of single files, with dot
  bool folder;                 // writes several files
  std::string_view text;       // what --help says about it
  /// Appends the paths written to `written`.
  Status (*write)(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
                  std::vector<std::string>& written);
};

/// An input format.
struct Reader {
  std::string_view name;
  /// True if the first bytes (up to 4 KiB) and name look like this format. Folders get no bytes.
  bool (*accepts)(std::string_view path, std::string_view head, bool folder);
  Result<std::shared_ptr<const trace::Trace>> (*read)(const std::string& path);
  /// The same into a writer, without a trace in between.
  Status (*read_into)(const std::string& path, trace::TraceWriter& writer);
};

std::span<const Writer> writers();
std::span<const Reader> readers();

/// Appends what a file in a foreign format holds to `writer`, as it is read. False, with nothing appended: no
/// reader takes it, it is a .tacho or open_any() says why not.
Result<bool> read_foreign(const std::string& path, trace::TraceWriter& writer);

/// Any file that tacho can read as a Trace: .tacho, or a foreign format through its reader.
Result<std::shared_ptr<const trace::Trace>> open_any(const std::string& path);

}  // namespace tacho::format
