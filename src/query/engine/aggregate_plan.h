// The plan of a statement of sums over groups: sql/aggregate_parser.cpp makes it, aggregate.cpp executes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "query/engine/relation.h"

namespace tacho::query {

/// A node of an expression. kTerm: a value of the group; kAggregate: a sum over its rows.
enum class Op : uint8_t {
  kColumn,
  kInteger,
  kReal,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kRemainder,
  kNegate,
  kAggregate,
  kTerm
};
enum class Function : uint8_t { kCountRows, kCount, kSum, kTotal, kAverage, kMin, kMax };

struct Node {
  Op op;
  int source = 0, column = 0;  // kColumn: of which relation
  int64_t integer = 0;
  double real = 0;
  // Operands. kAggregate: left = its argument, right = place among the aggregates. kTerm: left = place among
  // the terms.
  int left = -1, right = -1;
};

struct AggregatePlan {
  // The first one is scanned; of each other one the row is looked up whose id is in a column of one before
  // it.
  struct Source {
    const Relation* relation = nullptr;
    Store* store = nullptr;
    std::string table, alias;
    int from = -1, from_column = 0;       // where the id is
    std::vector<Constraint> constraints;  // of its columns with literals
  };
  struct Aggregate {
    Function function;
    int argument = -1;  // node
  };
  struct Item {
    int node;
    std::string title;
    std::string text;    // its words, for recognising it elsewhere in the statement
    bool named = false;  // the title was given by AS
  };
  struct Condition {  // HAVING
    int node;
    Comparison comparison;
    Constraint value;
  };
  struct Order {
    size_t item;
    bool descending;
  };
  std::vector<Source> sources;
  std::vector<Node> nodes;
  std::vector<Aggregate> aggregates;
  std::vector<Item> items;
  std::vector<int> terms;  // nodes that are grouped by
  std::vector<Condition> having;
  std::vector<Order> order;
  int64_t limit = -1;

  const ColumnInfo& column(const Node& node) const {
    return sources[static_cast<size_t>(node.source)].relation->columns[static_cast<size_t>(node.column)];
  }
};

/// The plan's steps in words, for `tacho query --explain`.
std::vector<std::string> describe(const AggregatePlan& plan);

}  // namespace tacho::query
