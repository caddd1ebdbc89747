// The table of formats (format.h). Each format's folder declares its own functions; this file only lists them.
#include "format/format.h"

#include <cstdio>
#include <filesystem>

#include "format/chrome_json/chrome_json.h"
#include "format/csv/csv.h"
#include "format/kineto/kineto.h"
#include "format/parquet/parquet.h"
#include "format/perfetto/perfetto.h"
#include "format/rocpd/rocpd.h"
#include "format/rocprofv3_csv/rocprofv3_csv.h"
#include "format/rocprofv3_json/rocprofv3_json.h"
#include "format/rpd/rpd.h"
#include "format/stacks/stacks.h"

namespace tacho::format {

std::span<const Writer> writers() {
  static constexpr Writer kWriters[] = {
      {"csv", ".csv", true, write_csv},
      {"json", ".json", false, write_chrome_json},
      {"pftrace", ".pftrace", false, write_perfetto},
      {"folded", ".folded", false, write_folded},
      {"rocprofv3", "_results.json", false, rocprofv3::write},
      {"rpd", ".rpd", false, rpd::write},
      {"rocpd", ".db", false, rocpd::write},
      {"parquet", ".parquet", true, parquet::write},
      {"speedscope", ".speedscope.json", false, write_speedscope},
  };
  return kWriters;
}

std::span<const Reader> readers() {
  static constexpr Reader kReaders[] = {
      {"rpd", rpd::accepts, rpd::read},
      {"rocpd", rocpd::accepts, rocpd::read},
      {"rocprofv3", rocprofv3::accepts, rocprofv3::read},
      {"rocprofv3 csv", rocprofv3_csv::accepts, rocprofv3_csv::read},
      {"json", kineto::accepts, kineto::read},
  };
  return kReaders;
}

Result<std::shared_ptr<const trace::Trace>> open_any(const std::string& path) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(path, error);
  std::string head;
  if (!folder) {
    std::FILE* const file = std::fopen(path.c_str(), "rbe");
    if (file == nullptr) return trace::Trace::open(path);  // says why
    head.resize(4096);
    head.resize(std::fread(head.data(), 1, head.size(), file));
    std::fclose(file);
  }
  for (const Reader& reader : readers())
    if (reader.accepts(path, head, folder)) return reader.read(path);
  if (folder) return fail("{}: a folder without rocprofv3's *_trace.csv or rocpd databases (*.db): there is no trace in it", path);
  if (head.starts_with(std::string_view("SQLite format 3\0", 16)))
    return fail("{}: a SQLite database, but neither an .rpd file nor a rocpd database: it lacks their tables", path);
  auto trace = trace::Trace::open(path);
  if (!trace && !head.empty() && !head.starts_with("\x89TACHO"))
    return fail("{}: in no format that tacho reads (.tacho, .rpd, rocpd databases, Chrome and Kineto JSON, rocprofv3's CSV and JSON)", path);
  return trace;
}

}  // namespace tacho::format
