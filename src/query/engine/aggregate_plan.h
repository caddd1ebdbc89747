// The plan of a statement that sums over groups: aggregate_parser.cpp makes it, aggregate.cpp executes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "query/engine/relation.h"

namespace tacho::query {

/// A node of an expression. kTerm is a value of the group, kAggregate a sum over the group's rows.
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
enum class SumFunction : uint8_t { kCountRows, kCount, kSum, kTotal, kAverage, kMin, kMax };

struct Node {
  Op op;
  int source = 0, column = 0;  // kColumn: index of the source, and of its column
  int64_t integer = 0;
  double real = 0;
  // Operands, as indexes of nodes. kAggregate: left is its argument, right its index among the aggregates. kTerm: left
  // is its index among the terms.
  int left = -1, right = -1;
};

struct AggregatePlan {
  // The scan walks the first source. Each other source gives the one row whose id an earlier source has in a column.
  struct Source {
    const Relation* relation = nullptr;
    Store* store = nullptr;
    std::string table, alias;
    int from = -1, from_column = 0;       // the earlier source, and its column with the id
    std::vector<Constraint> constraints;  // comparisons of its columns with literals
  };
  struct Aggregate {
    SumFunction function;
    int argument = -1;  // node
  };
  struct Item {
    int node;
    std::string title;
    std::string text;    // its words, to recognise it elsewhere in the statement
    bool named = false;  // AS gave the title
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
  std::vector<int> terms;  // nodes to group by
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
