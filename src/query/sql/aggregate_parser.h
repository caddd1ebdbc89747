// Which statements are sums over groups that the column engine computes (engine/aggregate.h).
#pragma once

#include <memory>
#include <string>

#include "query/engine/aggregate_plan.h"
#include "query/sql/virtual_tables.h"

namespace tacho::query {

/// SELECT terms FROM table [JOIN table ON its id = a column ...] [WHERE simple AND ...] [GROUP BY columns and whole-number
/// expressions] [HAVING simple AND ...] [ORDER BY terms] [LIMIT n], with count, sum, total, avg, min and max over
/// whole-number expressions; nothing for any other statement. The plan refers to the module's relations.
std::unique_ptr<AggregatePlan> plan_aggregate(const std::string& sql, const Module& module);

}  // namespace tacho::query
