// Sums over groups of a table, with rows of other tables looked up by their ids, computed column by column instead of row by
// row in SQLite: the statements that people ask most ("which name, how often, how long"). What does not fit the form is left
// to SQLite.
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

/// SELECT terms FROM table [JOIN table ON its id = a column ...] [WHERE simple AND ...] [GROUP BY columns and whole-number
/// expressions] [HAVING simple AND ...] [ORDER BY terms] [LIMIT n], with count, sum, total, avg, min and max over
/// whole-number expressions; nothing for any other statement.
AggregatePlanPointer plan_aggregate(const std::string& sql, const Module& module);

/// Gives the rows that SQLite would give, groups in ascending order where nothing else is asked for. However many groups
/// there are, some 100 MiB of memory are used at most; the rest lies in temporary files. False, with nothing given: a sum overflowed, SQLite must do it.
Result<bool> run_aggregate(const AggregatePlan& plan, const RowSink& sink);

}  // namespace tacho::query
