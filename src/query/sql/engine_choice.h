// Chooses the engine for a statement and gives the reason, in one place and before anything runs. The choice affects
// only speed; all engines give the same rows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "query/engine/aggregate_plan.h"
#include "query/engine/row_sink.h"
#include "query/sql/statement.h"
#include "query/sql/virtual_tables.h"

namespace tacho::query {

enum class Engine : uint8_t {
  kColumns,  ///< sums over groups, computed column by column by tacho itself (engine/aggregate.h), and columns as such
  kFile,     ///< SQLite over the tables of the opened database, with SQL views
  kVirtual,  ///< SQLite over tacho's virtual tables (virtual_tables.h)
};
/// "columns", "file" or "virtual", as `tacho query --explain` prints it.
std::string_view engine_name(Engine engine);

/// The data that the statement can read.
struct Input {
  bool in_place;           // a database queried in its own dialect; otherwise the file is read as a trace
  const Module& tables;    // the tables that unqualified names may mean
  bool by_columns = true;  // false: the column engine gave up on this statement
  Answers answers = Answers::kRows;
};

struct Choice {
  Engine engine;
  std::string reason;                   // one sentence without its full stop
  std::unique_ptr<AggregatePlan> plan;  // for kColumns; refers to the input's tables
};

/// `statement` must have no qualifiers of `dialect`, the dialect that unqualified names mean.
Choice choose_engine(const Statement& statement, std::string_view dialect, const Input& input);

}  // namespace tacho::query
