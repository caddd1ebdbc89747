// The rules that choose an engine (engine_choice.h).
#include "query/sql/engine_choice.h"

#include <algorithm>

#include "base/format.h"
#include "query/sql/aggregate_parser.h"

namespace tacho::query {

std::string_view engine_name(Engine engine) {
  switch (engine) {
    case Engine::kColumns:
      return "columns";
    case Engine::kFile:
      return "file";
    case Engine::kVirtual:
      return "virtual";
  }
  return "";
}

namespace {

// The column that a statement over an .rpd uses and that needs a lookup for each row; "" = none.
std::string looked_up(const Statement& statement, const Module& tables) {
  for (const std::string& name : statement.tables()) {
    const Module::Found found = tables.find("", name);
    if (found.relation == nullptr) continue;
    for (const ColumnInfo& column : found.relation->columns)
      if (column.looked_up && statement.mentions(column.name)) return column.name;
  }
  return {};
}

// SQLite's two ways to read an opened database: the file's own tables, or columns that tacho decodes and whose texts it
// compares only once each. The latter is faster unless SQLite has to look up rows.
Choice in_place(const Statement& statement, std::string_view dialect, const Input& input) {
  const auto file = [](std::string reason) { return Choice{Engine::kFile, std::move(reason), nullptr}; };
  if (const std::string column = looked_up(statement, input.tables); !column.empty())
    return file(fmt::format("\"{}\" is looked up row by row, which SQLite does as fast in the file itself", column));
  const std::vector<std::string> names = statement.tables();
  if (std::none_of(names.begin(), names.end(), [&](const std::string& name) { return input.tables.is_virtual(name); }))
    return file(fmt::format("SQLite reads the {} database's own tables", dialect));
  if (statement.joins() || names.size() > 1)
    return file("it names several tables, which SQLite joins best in the file itself");
  const Module::Found found = input.tables.find("", names[0]);
  if (found.relation == nullptr)
    return {Engine::kVirtual, fmt::format("tacho computes {} as a whole", names[0]), nullptr};
  if (found.store->irregular())
    return file(fmt::format("columns of {} hold something else than whole numbers", names[0]));
  return {Engine::kVirtual,
          fmt::format("the columns of {} are decoded once, and each text is looked at once", names[0]), nullptr};
}

}  // namespace

Choice choose_engine(const Statement& statement, std::string_view dialect, const Input& input) {
  std::string refusal = "the column engine gave up: a sum that exceeds 64 bits, or values that are no whole numbers";
  if (input.by_columns) {
    AggregateParse parse = parse_aggregate(statement, input.tables);
    if (parse.plan)
      return {Engine::kColumns, "sums over groups within the column engine's grammar", std::move(parse.plan)};
    refusal = "not for the column engine: " + parse.refusal;
    // The columns of a database in place may hold anything: SQLite gives each value as it is.
    if (input.answers == Answers::kColumns && !input.in_place)
      if (parse = parse_columns(statement, input.tables); parse.plan)
        return {Engine::kColumns, "columns of one table, as tacho decodes them", std::move(parse.plan)};
  }
  Choice choice = input.in_place ? in_place(statement, dialect, input)
                                 : Choice{Engine::kVirtual,
                                          fmt::format("the file is read as a trace, whose tables are "
                                                      "virtual; a name without a schema is one of {}",
                                                      dialect),
                                          nullptr};
  choice.reason = refusal + "; " + choice.reason;
  return choice;
}

}  // namespace tacho::query
