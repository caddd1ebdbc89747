// Tables and views of rocpd databases (schema.h). Names, columns and results match rocprofv3's databases.
#include "format/rocpd/schema.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "format/rocpd/relations.h"

namespace tacho::format {
extern const std::string_view kRocpdViewsSql;  // views.sql
}

namespace tacho::format::rocpd {
namespace {

// Calls each(list) for every table, in the order of their creation.
void for_each_table(const auto& each) {
  const auto all = [&](auto... lists) { (each(lists), ...); };
  all(kMetadataTable, kStringTable, kNodeTable, kProcessTable, kThreadTable, kAgentTable, kQueueTable, kStreamTable,
      kPmcTable, kCodeObjectTable, kKernelSymbolTable, kTrackTable, kEventTable, kArgTable, kPmcEventTable,
      kRegionTable, kSampleTable, kKernelDispatchTable, kMemoryCopyTable, kMemoryAllocateTable, kGraphLaunchTable);
}

struct ViewDefinitionText {
  std::string_view name, select;
};

// Reads the list of a table as its CREATE TABLE.
class SchemaFace {
 public:
  SchemaFace(std::string suffix, std::string guid) : suffix_(std::move(suffix)), guid_(std::move(guid)) {}
  void relation(std::string_view name, std::string_view constraints = {}) {
    name_ = name;
    constraints_ = constraints;
  }
  void keep(auto) {}
  void column(std::string_view name, relation::ColumnType type, unsigned, auto) {
    columns_ += (columns_.empty() ? "\"" : ", \"") + std::string(name) + "\" " + definition(type.code);
    if (type.text.size() > 1)
      keys_ += ", FOREIGN KEY (\"" + std::string(name) + "\") REFERENCES \"" + std::string(type.text.substr(2)) +
               suffix_ + "\" (id) ON UPDATE CASCADE";
  }
  const std::string& name() const { return name_; }
  std::string sql() const {
    return "CREATE TABLE \"" + name_ + suffix_ + "\" (" + columns_ + constraints_ + keys_ + ");\n";
  }

 private:
  std::string definition(char type) const {
    switch (type) {
      case 'k':
        return "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT";
      case 'g':
        return "TEXT DEFAULT '" + guid_ + "' NOT NULL";
      case 't':
        return "TEXT";
      case 'e':
        return "TEXT DEFAULT ''";
      case 'T':
        return "TEXT NOT NULL";
      case 'U':
        return "TEXT NOT NULL UNIQUE";
      case 'N':
        return "BIGINT NOT NULL UNIQUE";
      case 'i':
        return "INTEGER";
      case 'I':
        return "INTEGER NOT NULL";
      case 'z':
        return "INTEGER NOT NULL DEFAULT 0";
      case 'b':
        return "BIGINT";
      case 'B':
        return "BIGINT NOT NULL";
      case 'r':
        return "REAL DEFAULT 0.0";
      case 'j':
        return "JSONB DEFAULT '{}' NOT NULL";
      default:
        return "JSONB DEFAULT '{}'";
    }
  }
  std::string suffix_, guid_, name_, constraints_, columns_, keys_;
};

// Tables of schema 4 as schema 3 has them: place in each row, categories as texts (with negative ids), no missing
// region name. START, END and TIMESTAMP stand for a row's times.
constexpr ViewDefinitionText kAsSchema3[] = {
    {"as3_string",
     "SELECT id, guid, string FROM rocpd_string UNION ALL SELECT -id, guid, name FROM rocpd_info_category UNION ALL "
     "SELECT DISTINCT 0, guid, '' FROM rocpd_string"},
    {"as3_event",
     "SELECT id, guid, -category_id AS category_id, stack_id, parent_stack_id, correlation_id, '{}' AS call_stack, '{}' "
     "AS line_info, extdata FROM rocpd_event"},
    {"as3_info_agent",
     "SELECT id, guid, nid, pid, type, absolute_index, logical_index, type_index, uuid, coalesce(nullif(name, ''), "
     "generic_name) AS name, model_name, vendor_name, product_name, name AS user_name, extdata FROM rocpd_info_agent"},
    {"as3_region",
     "SELECT X.id, X.guid, T.nid, T.pid, T.tid, START AS start, END AS end, X.name_id, X.event_id, X.extdata FROM "
     "rocpd_region X JOIN rocpd_track T ON T.id = X.track_id AND T.guid = X.guid"},
    {"as3_sample",
     "SELECT X.id, X.guid, X.track_id, TIMESTAMP AS timestamp, X.event_id, X.extdata FROM rocpd_sample X"},
    {"as3_kernel_dispatch",
     "SELECT X.id, X.guid, T.nid, T.pid, T.tid, T.agent_id, X.kernel_id, X.dispatch_id, T.queue_id, T.stream_id, START "
     "AS start, END AS end, X.private_segment_size, X.group_segment_size, X.workgroup_size_x, X.workgroup_size_y, "
     "X.workgroup_size_z, X.grid_size_x, X.grid_size_y, X.grid_size_z, coalesce(X.region_name_id, 0) AS "
     "region_name_id, X.event_id, X.extdata FROM rocpd_kernel_dispatch X JOIN rocpd_track T ON T.id = X.track_id AND "
     "T.guid = X.guid"},
    {"as3_memory_copy",
     "SELECT X.id, X.guid, T.nid, T.pid, T.tid, START AS start, END AS end, X.name_id, X.dst_agent_id, X.dst_address, "
     "X.src_agent_id, X.src_address, X.size, T.queue_id, T.stream_id, X.region_name_id, X.event_id, X.extdata FROM "
     "rocpd_memory_copy X JOIN rocpd_track T ON T.id = X.track_id AND T.guid = X.guid"},
    {"as3_memory_allocate",
     "SELECT X.id, X.guid, T.nid, T.pid, T.tid, T.agent_id, X.type, X.level, START AS start, END AS end, X.address, "
     "X.size, T.queue_id, T.stream_id, X.event_id, X.extdata FROM rocpd_memory_allocate X JOIN rocpd_track T ON T.id = "
     "X.track_id AND T.guid = X.guid"}};

// Calls with(word) for each word of a statement and puts its result there.
std::string with_words(std::string_view sql, auto with) {
  const auto in_word = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  std::string out;
  for (size_t at = 0; at < sql.size();) {
    size_t end = at;
    while (end < sql.size() && in_word(sql[end])) ++end;
    if (end == at) {
      out += sql[at++];
      continue;
    }
    out += with(sql.substr(at, end - at));
    at = end;
  }
  return out;
}

}  // namespace

std::string table_schema(const std::string& suffix, const std::string& guid) {
  std::string sql;
  for_each_table([&](const auto& list) {
    SchemaFace face(suffix, guid);
    list(face);
    sql += face.sql();
  });
  return sql;
}

std::vector<ViewDefinition> plain_views(std::span<const std::string> suffixes) {
  std::vector<ViewDefinition> views;
  for_each_table([&](const auto& list) {
    SchemaFace face({}, {});
    list(face);
    std::string select;
    for (const std::string& suffix : suffixes)
      select += (select.empty() ? "SELECT * FROM \"" : " UNION ALL SELECT * FROM \"") + face.name() + suffix + "\"";
    views.push_back({face.name(), select});
  });
  return views;
}

// views.sql has "CREATE VIEW name AS" in a line, then the select in indented lines, and a semicolon.
std::vector<ViewDefinition> data_views() {
  static constexpr std::string_view kCreate = "CREATE VIEW ", kAs = " AS";
  std::vector<ViewDefinition> views;
  for (std::string_view rest = kRocpdViewsSql; !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    if (line.starts_with(kCreate)) {
      line.remove_suffix(kAs.size());
      views.push_back({std::string(line.substr(kCreate.size())), {}});
    } else if (line.starts_with(' ')) {
      std::string& select = views.back().select;
      if (line.ends_with(';')) line.remove_suffix(1);
      select.append(select.empty() ? "" : " ").append(line.substr(line.find_first_not_of(' ')));
    }
  }
  return views;
}

std::vector<ViewDefinition> data_views_of_schema_4(bool times_apart) {
  std::vector<ViewDefinition> views;
  const auto time = [&](std::string_view column) {
    if (!times_apart) return "X." + std::string(column);
    return "(SELECT TS.value FROM rocpd_timestamp TS WHERE TS.id = X." + std::string(column) +
           "_id AND TS.guid = X.guid)";
  };
  for (const ViewDefinitionText& view : kAsSchema3)
    views.push_back({std::string(view.name), with_words(view.select, [&](std::string_view word) {
                       return word == "START"       ? time("start")
                              : word == "END"       ? time("end")
                              : word == "TIMESTAMP" ? time("timestamp")
                                                    : std::string(word);
                     })});
  for (const ViewDefinition& view : data_views())
    views.push_back({view.name, with_words(view.select, [&](std::string_view word) {
                       if (!word.starts_with("rocpd_")) return std::string(word);
                       const std::string own = "as3_" + std::string(word.substr(6));
                       const bool shown = std::any_of(std::begin(kAsSchema3), std::end(kAsSchema3),
                                                      [&](const ViewDefinitionText& one) { return one.name == own; });
                       return shown ? own : std::string(word);
                     })});
  return views;
}

}  // namespace tacho::format::rocpd
