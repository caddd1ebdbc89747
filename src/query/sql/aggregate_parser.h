// Decides which statements are sums over groups that the column engine can compute (engine/aggregate.h). It accepts
// this grammar:
//
//   statement  = SELECT item {"," item} FROM source {join} [WHERE conditions] [GROUP BY term {"," term}]
//                [HAVING bound {AND bound}] [ORDER BY order {"," order}] [LIMIT integer] [";"]
//   item       = expression [[AS] name]
//   expression = product {("+" | "-") product}
//   product    = factor {("*" | "/") factor}
//   factor     = "(" expression ")" | "-" factor | number | aggregate | column
//   aggregate  = COUNT "(" "*" ")" | COUNT "(" column ")" | (COUNT | SUM | TOTAL | AVG | MIN | MAX) "(" whole ")"
//   whole      = an expression of integers, columns of whole numbers, "+" "-" "*" "/" "%" and brackets
//   source     = [schema "."] table [[AS] alias]                   eight at most, none a view or a result
//   join       = ("," | [INNER | CROSS] JOIN) source [ON (conditions | "(" conditions ")")]
//   conditions = condition {AND condition}
//   condition  = column compare literal | column BETWEEN literal AND literal | column (LIKE | GLOB) string
//              | column "=" column                                 joins: see below
//   compare    = "=" | "==" | "<" | "<=" | ">" | ">=" | "<>" | "!="
//   literal    = ["-"] number | string                             a string for a text column, else a number
//   term       = column | whole | the number or the name of an item that is one of these
//   bound      = expression compare ["-"] number
//   order      = (the number, the name or the words of an item) [ASC | DESC]
//
// At least one item has an aggregate. Statements group by every column outside aggregates; arithmetic takes only
// whole-number columns. Of n tables, n - 1 equalities join: each finds the rows of one table by its id (a column with
// `id` or `key`, see ColumnInfo) in another's whole-number column.
//
// The grammar is frozen: SQLite answers everything else. To make another statement fast, give SQLite a better plan
// (virtual_tables.h) before adding a word here.
#pragma once

#include <memory>
#include <string>

#include "query/engine/aggregate_plan.h"
#include "query/sql/statement.h"
#include "query/sql/virtual_tables.h"

namespace tacho::query {

struct AggregateParse {
  std::unique_ptr<AggregatePlan> plan;  // refers to the module's relations; nullptr = outside the grammar
  std::string refusal;                  // the reason, as part of a sentence
};

/// A plan without aggregates, of statements that give columns of one table as they are:
///
///   statement = SELECT ("*" | column [[AS] name] {"," column [[AS] name]}) FROM [schema "."] table [[AS] alias]
///               [WHERE conditions] [LIMIT integer] [";"]
AggregateParse parse_columns(const Statement& statement, const Module& module);

AggregateParse parse_aggregate(const Statement& statement, const Module& module);

}  // namespace tacho::query
