// Checks schemas (layout.h).
#include "format/rocpd/layout.h"

#include <algorithm>
#include <charconv>

namespace tacho::format::rocpd {
namespace {

using sqlite::Database;
using sqlite::NamedScan;
using sqlite::StoredTable;

// What tacho needs of a table that has rows. Columns of which one is enough stand between bars.
struct NeededColumns {
  std::string_view table, columns;
};
constexpr NeededColumns kNeeded[] = {
    {"rocpd_string", "id string"},
    {"rocpd_event", "id"},
    {"rocpd_timestamp", "id value"},
    {"rocpd_info_category", "id name"},
    {"rocpd_info_process", "id pid"},
    {"rocpd_info_thread", "id tid"},
    {"rocpd_info_agent", "id type"},
    {"rocpd_info_kernel_symbol", "id kernel_name|display_name"},
    {"rocpd_info_pmc", "id name"},
    {"rocpd_track", "id"},
    {"rocpd_region", "track_id|pid track_id|tid start|start_id end|end_id name_id"},
    {"rocpd_sample", "track_id timestamp|timestamp_id"},
    {"rocpd_kernel_dispatch", "track_id|pid track_id|agent_id kernel_id start|start_id end|end_id"},
    {"rocpd_memory_copy", "track_id|pid start|start_id end|end_id name_id"},
    {"rocpd_memory_allocate", "track_id|pid type start|start_id end|end_id"},
    {"rocpd_pmc_event", "event_id|sample_id pmc_id value"},
};

// The first part of `text` up to `separator`, which goes.
std::string_view cut(std::string_view& text, char separator) {
  const std::string_view part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

Status check(const Database& database, const StoredTable& table, std::string_view columns, std::string_view version) {
  NamedScan scan(database, table, {"id"});
  if (!scan.next()) return scan.status();
  while (!columns.empty()) {
    std::string_view rest = cut(columns, ' '), names = rest;
    bool found = false;
    while (!rest.empty()) found |= table.column(cut(rest, '|')) >= 0;
    if (found) continue;
    std::string shown(cut(names, '|'));
    while (!names.empty()) shown.append(" or ").append(cut(names, '|'));
    return fail("{}: its table {} has no column {}, which tacho needs of a rocpd database of schema {}",
                database.file().path(), table.name, shown, version);
  }
  return {};
}

// Text of a damaged file may be anything.
std::string printable(std::string text) {
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

std::string stated_version(const Database& database, const std::string& suffix) {
  const StoredTable* const metadata = database.table("rocpd_metadata" + suffix);
  if (metadata == nullptr) return {};
  NamedScan scan(database, *metadata, {"tag", "value"});
  for (int rows = 0; rows < 10'000 && scan.next(); ++rows) {
    if (scan.string(0) != "schema_version") continue;
    if (!scan.string(1).empty()) return std::string(scan.string(1).substr(0, 100));
    const int64_t number = scan.number(1);
    return number == sqlite::kNoNumber ? std::string() : fmt::format("{}", number);
  }
  return {};
}

}  // namespace

Result<RecordingSchema> schema_of(const Database& database, const std::string& suffix) {
  RecordingSchema schema;
  if (std::string stated = stated_version(database, suffix); !stated.empty()) {
    const auto [stop, error] = std::from_chars(stated.data(), stated.data() + stated.size(), schema.major);
    const bool whole = error == std::errc() && (stop == stated.data() + stated.size() || *stop == '.');
    if (!whole || schema.major < 3 || schema.major > 4)
      return fail("{}: rocpd database of schema {}, tacho reads 3.x and 4.x", database.file().path(),
                  printable(stated));
    schema.text = std::move(stated);
  } else {
    for (const char* const name : {"rocpd_region", "rocpd_kernel_dispatch"})
      if (const StoredTable* const table = database.table(name + suffix);
          table != nullptr && table->column("track_id") >= 0)
        schema = {4, "4"};
  }
  for (const NeededColumns& needed : kNeeded)
    if (const StoredTable* const table = database.table(std::string(needed.table) + suffix))
      TACHO_TRY(check(database, *table, needed.columns, schema.text));
  return schema;
}

}  // namespace tacho::format::rocpd
