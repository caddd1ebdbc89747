// Computes sums over groups of a table, with rows of other tables looked up by id, column by column instead
// of row by row in SQLite. These are the most common statements ("which name, how often, how long").
#pragma once

#include "base/result.h"
#include "query/engine/aggregate_plan.h"
#include "query/engine/row_sink.h"

namespace tacho::query {

/// Gives the rows that SQLite would give, groups in ascending order where nothing else is asked for. However
/// many groups there are, it uses 100 MiB of memory or so; the rest lies in temporary files. False, with
/// nothing given: a sum overflowed, and SQLite has to answer.
Result<bool> run_aggregate(const AggregatePlan& plan, const RowSink& sink);

}  // namespace tacho::query
