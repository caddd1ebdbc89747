// Tables and views of rocpd databases (schema.h). Names, columns and results match rocprofv3's databases.
#include "format/rocpd/schema.h"

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
      kRegionTable, kSampleTable, kKernelDispatchTable, kMemoryCopyTable, kMemoryAllocateTable);
}

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

}  // namespace tacho::format::rocpd
