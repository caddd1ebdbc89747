// SQL over a run, and what there is to ask (run.h).
#include <chrono>

#include "base/text/json_writer.h"
#include "report/table.h"
#include "view/run.h"

namespace tacho::view {

namespace {

constexpr size_t kMostSqlRows = 10'000;
constexpr double kSqlSeconds = 60;

// The type of a column, from which the page chooses units.
std::string_view type_text(event::Type type) {
  static constexpr std::string_view kTexts[] = {"integer", "time", "duration", "bytes", "double",
                                                "enum",    "id",   "text",     "row"};
  return kTexts[static_cast<size_t>(type)];
}

}  // namespace

Result<std::string> Run::sql(const std::string& statement, std::string_view dialect) {
  const std::lock_guard held(sql_lock_);
  TACHO_TRY(open_session(dialect));
  const auto began = std::chrono::steady_clock::now();
  std::string rows, names;
  JsonWriter row_json(rows, kCompactJson), name_json(names, kCompactJson);
  std::vector<std::string> types;
  size_t count = 0;
  bool cut = false;
  name_json.begin_array();
  row_json.begin_array();
  const query::RowSink sink{[&](std::span<const std::string> columns) {
                              for (const std::string& name : columns) name_json.value(name);
                              types.assign(columns.size(), "null");
                            },
                            [&](std::span<const report::Cell> row) {
                              if (count == kMostSqlRows || rows.size() > (size_t{16} << 20)) {
                                cut = true;
                                return false;
                              }
                              ++count;
                              row_json.newline().begin_array();
                              for (size_t i = 0; i < row.size(); ++i) {
                                static constexpr std::string_view kTypes[] = {"null", "integer", "real", "text"};
                                if (i < types.size() && types[i] == "null") types[i] = kTypes[row[i].index()];
                                report::put_cell(row_json, row[i]);
                              }
                              row_json.end_array();
                              return true;
                            }};
  TACHO_TRY(session_->run(statement, sink));
  name_json.end_array();
  row_json.end_array();
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_object().name("columns").ready(names.empty() ? "[]" : names).name("types").begin_array();
  for (const std::string& type : types) json.value(type);
  json.end_array().name("rows").ready(rows).member("cut", cut);
  json.member("seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  json.end_object();
  return out;
}

Status Run::open_session(std::string_view dialect) {
  if (session_ && session_dialect_ == dialect) return {};
  TACHO_ASSIGN(session_, query::Session::over(trace_, dialect));
  session_->limit(kSqlSeconds);
  session_dialect_ = dialect;
  return {};
}

Result<std::string> Run::schema() {
  const std::lock_guard held(sql_lock_);
  TACHO_TRY(open_session(session_dialect_));
  TACHO_ASSIGN(const report::Answer table, session_->schema());
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_object().name("tables").begin_array();
  const auto text = [](const report::Cell& cell) {
    const auto* const value = std::get_if<std::string>(&cell);
    return value != nullptr ? *value : std::string();
  };
  for (const auto& row : table.rows) {
    json.newline()
        .begin_object()
        .member("name", text(row[0]))
        .member("kind", text(row[1]))
        .name("columns")
        .begin_array();
    const std::string columns = text(row[2]);
    for (size_t at = 0; at < columns.size();) {
      const size_t end = std::min(columns.find(", ", at), columns.size());
      json.begin_object().member("name", columns.substr(at, end - at)).end_object();
      at = end + 2;
    }
    json.end_array().end_object();
  }
  for (const event::TableInfo& info : event::all_tables()) {
    json.newline()
        .begin_object()
        .member("name", fmt::format("tacho.{}", info.name))
        .member("kind", "table")
        .member("meaning", std::string(info.text))
        .name("columns")
        .begin_array();
    for (const event::Column& each : info.columns)
      json.begin_object()
          .member("name", std::string(each.name))
          .member("type", type_text(each.type))
          .member("meaning", std::string(each.text))
          .end_object();
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return out;
}

}  // namespace tacho::view
