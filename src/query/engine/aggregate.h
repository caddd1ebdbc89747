// Computes sums over groups, the most common statements ("which name, how often, how long"): column by column, with
// rows of other tables looked up by id, instead of row by row in SQLite.
#pragma once

#include "base/result.h"
#include "query/engine/aggregate_plan.h"
#include "query/engine/row_sink.h"

namespace tacho::query {

/// Gives `sink` the rows that SQLite would give, groups in ascending order unless the statement asks for another. Uses
/// about 100 MiB of memory for any number of groups; temporary files hold the rest. False, before any row: a sum
/// overflowed or a column is irregular (see Store), so SQLite has to answer.
Result<bool> run_aggregate(const AggregatePlan& plan, const RowSink& sink);

}  // namespace tacho::query
