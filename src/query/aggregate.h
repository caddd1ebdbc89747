// Sums over groups of one table, computed column by column instead of row by row in SQLite: the statements that people ask
// most ("which name, how often, how long"). What does not fit the form is left to SQLite.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "query/module.h"
#include "query/session.h"

namespace tacho::query {

struct AggregatePlan;
struct AggregatePlanDeleter {
  void operator()(AggregatePlan* plan) const;
};
using AggregatePlanPointer = std::unique_ptr<AggregatePlan, AggregatePlanDeleter>;

/// SELECT terms FROM table [WHERE simple AND ...] [GROUP BY columns] [ORDER BY terms] [LIMIT n], with count, sum, total,
/// avg, min and max over whole-number expressions; nothing for any other statement.
AggregatePlanPointer plan_aggregate(const std::string& sql, const Module& module);

/// Gives the rows that SQLite would give. False, with nothing given: a sum overflowed, SQLite must do it.
Result<bool> run_aggregate(const AggregatePlan& plan, const RowSink& sink);

}  // namespace tacho::query
