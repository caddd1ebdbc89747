// The table of formats (format.h). Each format's folder declares its own functions; this file lists them, in the order
// of `tacho export --help`.
#include "format/format.h"

#include <filesystem>
#include <set>

#include "analysis/sums/sums.h"
#include "format/chrome_json/chrome_json.h"
#include "format/csv/csv.h"
#include "format/kineto/kineto.h"
#include "format/nsys/nsys.h"
#include "format/otlp/otlp.h"
#include "format/parquet/parquet.h"
#include "format/perfetto/perfetto.h"
#include "format/rocpd/rocpd.h"
#include "format/rocprof_v1/rocprof_v1.h"
#include "format/rocprofv3_csv/rocprofv3_csv.h"
#include "format/rocprofv3_json/rocprofv3_json.h"
#include "format/rpd/rpd.h"
#include "format/source/names.h"
#include "format/source/source.h"
#include "format/source/strangers.h"
#include "format/stacks/stacks.h"
#include "format/torch_memory/torch_memory.h"
#include "trace/read/rows.h"

namespace tacho::format {

namespace {

namespace column = event::column;
using event::Table;

constexpr uint64_t bits(auto... tables) {
  return (... | (uint64_t{1} << static_cast<unsigned>(tables)));
}
constexpr uint64_t kWork = bits(Table::kDispatch, Table::kCopy, Table::kFill, Table::kApi, Table::kMarker);
constexpr uint64_t kTimeline = kWork | bits(Table::kAllocation, Table::kSync, Table::kOverhead, Table::kSample,
                                            Table::kReading, Table::kCounterValue);
constexpr uint64_t kStacks = bits(Table::kSample, Table::kDispatch, Table::kCopy, Table::kFill);

}  // namespace

std::span<const Writer> writers() {
  static constexpr Writer kWriters[] = {
      {.name = "csv",
       .extension = ".csv",
       .folder = true,
       .text = "rocprofv3's files, <pid>_kernel_trace.csv and so on, with statistics per domain",
       .write = write_csv,
       .holds = kWork | bits(Table::kAllocation, Table::kCounterValue, Table::kMessage),
       .sums = true,
       .processes = true},
      {.name = "json",
       .extension = ".json",
       .folder = false,
       .text = "Chrome trace events: chrome://tracing, Perfetto, tools made for torch.profiler",
       .write = write_chrome_json,
       .holds = kTimeline},
      {.name = "pftrace",
       .extension = ".pftrace",
       .folder = false,
       .text = "Perfetto: open it in https://ui.perfetto.dev",
       .write = write_perfetto,
       .holds = kTimeline},
      {.name = "rocprofv3",
       .extension = "_results.json",
       .folder = false,
       .text = "rocprofv3's own JSON, <trace>_results.json",
       .write = rocprofv3::write,
       .holds = kWork | bits(Table::kAllocation, Table::kCounterValue)},
      {.name = "rpd",
       .extension = ".rpd",
       .folder = false,
       .text = "rocmProfileData's SQLite file, schema version 2 (--rpd-schema 3 for the newest)",
       .write = rpd::write,
       .holds = kWork | bits(Table::kReading)},
      {.name = "rocpd",
       .extension = ".db",
       .folder = false,
       .text = "rocprofv3's SQLite database",
       .write = rocpd::write,
       .holds = kWork | bits(Table::kAllocation, Table::kCounterValue, Table::kReading)},
      {.name = "nsys-sqlite",
       .extension = ".sqlite",
       .folder = false,
       .text = "the tables of nsys' SQLite export, for scripts made for Nsight Systems",
       .write = nsys::write,
       .holds = kWork | bits(Table::kSync)},
      {.name = "otlp",
       .extension = ".otlp.jsonl",
       .folder = false,
       .text = "OpenTelemetry's metrics and profiles in JSON",
       .write = otlp::write,
       .holds = ~bits(Table::kCounterValue, Table::kMessage),
       .sums = true},
      {.name = "parquet",
       .extension = ".parquet",
       .folder = true,
       .text = "a folder of Parquet files for DuckDB, Spark, ClickHouse, pandas",
       .write = parquet::write,
       .ready = parquet::ready},
      {.name = "folded",
       .extension = ".folded",
       .folder = false,
       .text = "call stacks with their times, a line each, for flame graph scripts",
       .write = write_folded,
       .holds = kStacks,
       .stacks = true},
      {.name = "speedscope",
       .extension = ".speedscope.json",
       .folder = false,
       .text = "call stacks for https://www.speedscope.app",
       .write = write_speedscope,
       .holds = kStacks,
       .stacks = true},
  };
  return kWriters;
}

Status check_recording(const Writer& writer, bool sums, bool stacks) {
  if (sums && !writer.sums) {
    std::string able = "tacho";
    for (const Writer& other : writers())
      if (other.sums) able += fmt::format(" or {}", other.name);
    return fail("-f {} is made of events, and --aggregate keeps none: choose -f {}", writer.name, able);
  }
  if (writer.stacks && !stacks)
    return fail("-f {} is made of call stacks, and none are recorded: add --sampler timer", writer.name);
  if (writer.ready != nullptr) return writer.ready();
  return {};
}

namespace {

// "21 allocations". `sums`: of tacho watch, which keeps them beside telemetry.
std::string counted(Table table, int64_t rows, bool sums) {
  if (sums && table == Table::kReading)
    return fmt::format("{} reading{} of sums and telemetry", rows, rows == 1 ? "" : "s");
  struct Noun {
    Table table;
    std::string_view one, many;
  };
  static constexpr Noun kNouns[] = {
      {Table::kDispatch, "kernel", "kernels"},
      {Table::kCopy, "copy", "copies"},
      {Table::kFill, "fill", "fills"},
      {Table::kAllocation, "allocation", "allocations"},
      {Table::kApi, "API call", "API calls"},
      {Table::kMarker, "marker", "markers"},
      {Table::kSync, "wait", "waits"},
      {Table::kOverhead, "record of overhead", "records of overhead"},
      {Table::kSample, "call-stack sample", "call-stack samples"},
      {Table::kReading, "reading of telemetry", "readings of telemetry"},
      {Table::kCounterValue, "counter value", "counter values"},
      {Table::kMessage, "MPI message", "MPI messages"},
  };
  for (const Noun& noun : kNouns)
    if (noun.table == table) return fmt::format("{} {}", rows, rows == 1 ? noun.one : noun.many);
  return {};
}

// Rows of `table`, those of one process if the filter names it. Errors of reading are the writer's to tell.
int64_t rows_of(const trace::Trace& trace, Table table, int64_t process) {
  if (process == 0) return trace.rows(table);
  const auto ours = [&](int64_t track) { return trace.cell(Table::kTrack, track, column::Track::process) == process; };
  int64_t rows = 0;
  if (event::is_timed(table)) {
    static_cast<void>(trace.visit_summaries(table, [&](std::span<const trace::Summary> summaries) {
      for (const trace::Summary& summary : summaries) rows += ours(summary.track) ? summary.count : 0;
    }));
    return rows;
  }
  Status ignored;
  const auto count = [&](const auto& chunk) {
    for (const int64_t track : chunk.track) rows += ours(track) ? 1 : 0;
  };
  if (table == Table::kReading)
    for (const auto& chunk : trace::chunks<column::Reading::track>(trace, ignored)) count(chunk);
  if (table == Table::kCounterValue)
    for (const auto& chunk : trace::chunks<column::CounterValue::track>(trace, ignored)) count(chunk);
  return rows;
}

// Rows of no process beside those of processes, in the tables that `writer` holds and `filter` wants.
int64_t rows_without_owner(const Writer& writer, const trace::Trace& trace, const walk::EventFilter& filter) {
  int64_t without = 0, with = 0;
  for (size_t i = 0; i < event::kFactTables; ++i) {
    const auto table = static_cast<Table>(i);
    if ((writer.holds >> i & 1) == 0 || !event::is_timed(table) || !filter.wants(table)) continue;
    static_cast<void>(trace.visit_summaries(table, [&](std::span<const trace::Summary> summaries) {
      for (const trace::Summary& summary : summaries)
        (trace.cell(Table::kTrack, summary.track, column::Track::process) > 0 ? with : without) += summary.count;
    }));
  }
  return with == 0 ? 0 : without;
}

}  // namespace

std::string left_out(const Writer& writer, const trace::Trace& trace, const walk::EventFilter& filter) {
  if (trace.aggregated()) return {};
  const bool sums = analysis::holds_sums(trace);
  std::vector<std::string> parts;
  for (size_t i = 0; i < event::kFactTables; ++i) {
    const auto table = static_cast<Table>(i);
    if ((writer.holds >> i & 1) != 0 || !filter.wants(table) || trace.rows(table) == 0) continue;
    const int64_t rows = rows_of(trace, table, filter.process);
    if (std::string part = rows == 0 ? std::string() : counted(table, rows, sums); !part.empty())
      parts.push_back(std::move(part));
  }
  if (writer.processes && filter.process == 0)
    if (const int64_t rows = rows_without_owner(writer, trace, filter); rows > 0)
      parts.push_back(rows == 1 ? "a row of no process" : fmt::format("{} rows of no process", rows));
  if (parts.empty()) return {};
  std::string list;
  for (size_t i = 0; i < parts.size(); ++i) list += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return fmt::format("-f {} has no place for {}, which a .tacho file keeps", writer.name, list);
}

std::span<const Reader> readers() {
  static constexpr Reader kReaders[] = {
      {"passes", passes::accepts, passes::read, passes::read_into},
      {"rpd", rpd::accepts, rpd::read, rpd::read_into},
      {"rocpd", rocpd::accepts, rocpd::read, rocpd::read_into},
      {"nsys sqlite", nsys::accepts, nsys::read, nsys::read_into},
      {"rocprofv3", rocprofv3::accepts, rocprofv3::read, rocprofv3::read_into},
      {"rocprofv3 csv", rocprofv3_csv::accepts, rocprofv3_csv::read, rocprofv3_csv::read_into},
      {"rocprof", rocprof_v1::accepts, rocprof_v1::read, rocprof_v1::read_into},
      {"json", kineto::accepts, kineto::read, kineto::read_into},
      {"pickle", torch_memory::accepts, torch_memory::read, torch_memory::read_into},
      {"pftrace", perfetto::accepts, perfetto::read, perfetto::read_into},
  };
  return kReaders;
}

namespace {

// What decides which reader takes a file.
struct Face {
  bool folder = false;
  source::SourceHead head = {};
};

Face face_of(const std::string& path) {
  std::error_code error;
  Face face{std::filesystem::is_directory(path, error)};
  if (!face.folder) face.head = source::peek(path);
  return face;
}

const Reader* reader_of(const std::string& path, const Face& face) {
  if (!face.folder && face.head.text.empty()) return nullptr;
  for (const Reader& reader : readers())
    if (reader.accepts(path, face.head.text, face.folder)) return &reader;
  return nullptr;
}

// Folders further below that some reader takes, in order: at most `most`, and no search through more than so many
// entries.
std::vector<std::string> folders_below(const std::string& path, size_t most) {
  constexpr int kDeepest = 3, kMostEntries = 10'000;
  std::vector<std::string> found, level = {path};
  int entries = 0;
  for (int depth = 0; depth < kDeepest && found.empty(); ++depth) {
    std::vector<std::string> next;
    for (const std::string& folder : level) {
      std::error_code error;
      for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        if (++entries > kMostEntries) return found;
        std::error_code is_error;
        if (at->is_directory(is_error) && !at->is_symlink(is_error)) next.push_back(at->path().string());
      }
    }
    std::sort(next.begin(), next.end());
    for (const std::string& folder : next)
      if (found.size() < most && reader_of(folder, face_of(folder)) != nullptr) found.push_back(folder);
    level = std::move(next);
  }
  return found;
}

}  // namespace

void leave_out_repeated(std::vector<std::string>& files, const std::vector<std::string>& parts) {
  std::set<std::string, std::less<>> written;  // without packing; of CSV files what stands before "results.pftrace"
  for (const std::string& file : files) written.emplace(without_packing(file));
  for (const std::string& part : parts) {
    const std::string_view name = std::string_view(part).substr(part.rfind('/') + 1);
    if (const auto run = rocprofv3_csv::run_of_part(name))
      written.insert(part.substr(0, part.size() - name.size()) + std::string(*run) + "results");
  }
  std::erase_if(files, [&](const std::string& file) {
    const std::string_view plain = without_packing(file);
    const std::string stem(plain.substr(0, plain.rfind('.')));
    const auto beside = [&](const char* ending) { return written.contains(stem + ending); };
    if (plain.ends_with(".csv")) return beside(".json");
    if (plain.ends_with(".sqlite")) return beside(".tacho") || beside(".rpd") || beside(".db") || beside(".json");
    return named_like_perfetto(file) &&
           (beside(".tacho") || beside(".rpd") || beside(".db") || beside(".json") || beside(""));
  });
}

Result<bool> read_foreign(const std::string& path, trace::TraceWriter& writer) {
  const Reader* const reader = reader_of(path, face_of(path));
  if (reader == nullptr) return false;
  TACHO_TRY(reader->read_into(path, writer));
  return true;
}

Result<std::shared_ptr<const trace::Trace>> open_any(const std::string& path) {
  const Face face = face_of(path);
  if (!face.head.refusal.empty()) return fail("{}", face.head.refusal);
  if (!face.folder && !face.head.readable) return trace::Trace::open(path);  // the error says why
  // Some of them begin as a Perfetto trace does.
  if (const std::string known = source::stranger_by_name(path); !face.folder && !known.empty())
    return fail("{}: {}", path, known);
  if (const Reader* const reader = reader_of(path, face)) return reader->read(path);
  if (face.folder) {
    const std::vector<std::string> below = folders_below(path, 2);
    if (below.size() == 1) return fail("{}: a folder whose trace lies deeper: name {}", path, below[0]);
    if (below.size() > 1)
      return fail(
          "{}: a folder whose traces lie deeper, in {}, {} and the like: name one, or make one trace of all with "
          "tacho import {}",
          path, below[0], below[1], path);
  }
  if (face.folder)
    return fail("{}: a folder without rocprofv3's *_trace.csv or rocpd databases (*.db): there is no trace in it",
                path);
  const bool database = face.head.text.starts_with(std::string_view("SQLite format 3\0", 16));
  if (database && (path.ends_with(".nvvp") || face.head.text.find("CONCURRENT_KERNEL") != std::string::npos))
    return fail("{}: a profile by nvprof, which tacho does not read: record with nsys or with tacho", path);
  if (database)
    return fail(
        "{}: a SQLite database, but no .rpd file, no rocpd database and no export of nsys: it lacks their tables",
        path);
  if (face.head.packing != source::Packing::kNone && face.head.text.starts_with("\x89TACHO"))
    return fail("{}: a .tacho file within another packing: unpack it", path);
  auto trace = trace::Trace::open(path);
  if (!trace && !face.head.text.starts_with("\x89TACHO")) {
    if (const std::string known = source::stranger(path, face.head.text); !known.empty())
      return fail("{}: {}", path, known);
    return fail("{}: in no format that tacho reads (.tacho, .rpd, rocpd databases, nsys' SQLite exports, Chrome "
                "and Kineto JSON, Perfetto, rocprofv3's CSV and JSON, rocprof's, torch's memory snapshots)",
                path);
  }
  return trace;
}

}  // namespace tacho::format
