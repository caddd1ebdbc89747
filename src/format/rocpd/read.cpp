// Opens rocpd databases and folders of them, and reads their recordings.
#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "format/rocpd/recording_reader.h"
#include "format/rocpd/rocpd.h"
#include "format/sqlite/unpack.h"

namespace tacho::format::rocpd {
namespace {

using event::Table;
using sqlite::Database;

constexpr std::string_view kMetadata = "rocpd_metadata";

// `known`: the suffixes of the recordings read so far. A suffix holds the recording's UUID.
Status read_database(const std::string& path, trace::TraceWriter& writer, std::set<std::string>& known) {
  TACHO_ASSIGN(const Database database, Database::open(path));
  const std::vector<std::string> found = suffixes(database);
  if (found.empty()) return fail("{}: not a rocpd database: it has no table rocpd_metadata_<uuid>", path);
  if (database.file().unpacked()) writer.note(0, event::NoteSeverity::kInfo, database.file().unpacked_sentence());
  for (const std::string& suffix : found) {
    if (!suffix.empty() && !known.insert(suffix).second) {
      writer.note(
          0, event::NoteSeverity::kInfo,
          fmt::format("{}: its recording {} also lies in another file; it is read once", path, suffix.substr(1)));
      continue;
    }
    TACHO_TRY(RecordingReader(database, writer, suffix).run());
  }
  return {};
}

std::vector<std::string> databases_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().string();
    const bool database = name.ends_with(".db") || name.ends_with(".db.gz") || name.ends_with(".db.zst");
    if (database && entry.is_regular_file(error)) files.push_back(name);
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<std::string> suffixes(const Database& database) {
  std::vector<std::string> found;
  for (const sqlite::StoredTable& table : database.tables())
    if (table.name.starts_with(kMetadata) && table.name.size() > kMetadata.size() &&
        table.name[kMetadata.size()] == '_') {
      std::string suffix = table.name.substr(kMetadata.size());
      if (database.table("rocpd_string" + suffix) != nullptr && found.size() < 1000) found.push_back(std::move(suffix));
    }
  // Some converters write a single recording without a suffix.
  if (found.empty() && database.table(kMetadata) != nullptr && database.table("rocpd_kernel_dispatch") != nullptr &&
      database.table("rocpd_string") != nullptr)
    found.emplace_back();
  return found;
}

bool accepts(std::string_view path, std::string_view head, bool folder) {
  if (folder) {
    const std::vector<std::string> files = databases_in(std::string(path));
    return !files.empty() && accepts(files[0], sqlite::kDatabaseHead, false);
  }
  if (!head.starts_with(sqlite::kDatabaseHead)) return false;
  const auto database = Database::open(std::string(path));
  // Reading a database that cannot be opened tells the reason.
  return !database || !suffixes(*database).empty();
}

Status read_into(const std::string& path, trace::TraceWriter& writer) {
  std::set<std::string> known;
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    for (const std::string& file : databases_in(path)) TACHO_TRY(read_database(file, writer, known));
  else
    TACHO_TRY(read_database(path, writer, known));
  writer.property(Table::kEnd, 0, "source", "rocpd");
  writer.property(Table::kEnd, 0, "source_file", path);
  writer.property(Table::kEnd, 0, "clock", "CLOCK_BOOTTIME");
  return {};
}

Result<std::shared_ptr<const trace::Trace>> read(const std::string& path) {
  TACHO_ASSIGN(const std::unique_ptr<trace::TraceWriter> writer, trace::TraceWriter::create_temporary());
  TACHO_TRY(read_into(path, *writer));
  return writer->finish_and_open(path);
}

}  // namespace tacho::format::rocpd
