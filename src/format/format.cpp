// The table of formats (format.h). Each format's folder declares its own functions; this file lists them, in the order
// of `tacho export --help`.
#include "format/format.h"

#include <filesystem>
#include <set>

#include "format/chrome_json/chrome_json.h"
#include "format/csv/csv.h"
#include "format/kineto/kineto.h"
#include "format/parquet/parquet.h"
#include "format/perfetto/perfetto.h"
#include "format/rocpd/rocpd.h"
#include "format/rocprof_v1/rocprof_v1.h"
#include "format/rocprofv3_csv/rocprofv3_csv.h"
#include "format/rocprofv3_json/rocprofv3_json.h"
#include "format/rpd/rpd.h"
#include "format/source/names.h"
#include "format/source/source.h"
#include "format/stacks/stacks.h"

namespace tacho::format {

std::span<const Writer> writers() {
  static constexpr Writer kWriters[] = {
      {"csv", ".csv", true, "rocprofv3's files, <pid>_kernel_trace.csv and so on, with statistics per domain",
       write_csv},
      {"json", ".json", false, "Chrome trace events: chrome://tracing, Perfetto, tools made for torch.profiler",
       write_chrome_json},
      {"pftrace", ".pftrace", false, "Perfetto: open it in https://ui.perfetto.dev", write_perfetto},
      {"rocprofv3", "_results.json", false, "rocprofv3's own JSON, <trace>_results.json", rocprofv3::write},
      {"rpd", ".rpd", false, "rocmProfileData's SQLite file, schema version 2 (--rpd-schema 3 for the newest)",
       rpd::write},
      {"rocpd", ".db", false, "rocprofv3's SQLite database", rocpd::write},
      {"parquet", ".parquet", true, "a folder of Parquet files for DuckDB, Spark, ClickHouse, pandas", parquet::write},
      {"folded", ".folded", false, "call stacks with their times, a line each, for flame graph scripts", write_folded},
      {"speedscope", ".speedscope.json", false, "call stacks for https://www.speedscope.app", write_speedscope},
  };
  return kWriters;
}

std::span<const Reader> readers() {
  static constexpr Reader kReaders[] = {
      {"rpd", rpd::accepts, rpd::read, rpd::read_into},
      {"rocpd", rocpd::accepts, rocpd::read, rocpd::read_into},
      {"rocprofv3", rocprofv3::accepts, rocprofv3::read, rocprofv3::read_into},
      {"rocprofv3 csv", rocprofv3_csv::accepts, rocprofv3_csv::read, rocprofv3_csv::read_into},
      {"rocprof", rocprof_v1::accepts, rocprof_v1::read, rocprof_v1::read_into},
      {"json", kineto::accepts, kineto::read, kineto::read_into},
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
  if (const Reader* const reader = reader_of(path, face)) return reader->read(path);
  if (face.folder)
    return fail("{}: a folder without rocprofv3's *_trace.csv or rocpd databases (*.db): there is no trace in it",
                path);
  if (face.head.text.starts_with(std::string_view("SQLite format 3\0", 16)))
    return fail("{}: a SQLite database, but neither an .rpd file nor a rocpd database: it lacks their tables", path);
  if (face.head.packing != source::Packing::kNone && face.head.text.starts_with("\x89TACHO"))
    return fail("{}: a .tacho file within another packing: unpack it", path);
  auto trace = trace::Trace::open(path);
  if (!trace && !face.head.text.starts_with("\x89TACHO"))
    return fail("{}: in no format that tacho reads (.tacho, .rpd, rocpd databases, Chrome "
                "and Kineto JSON, Perfetto, rocprofv3's CSV and JSON, rocprof's)",
                path);
  return trace;
}

}  // namespace tacho::format
