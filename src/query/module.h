// Relations and ready results as SQLite virtual tables.
#pragma once

#include <sqlite3.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "query/relation.h"
#include "report/table.h"

namespace tacho::query {

/// Rows that are made one by one when they are asked for.
class ResultRows {
 public:
  virtual ~ResultRows() = default;
  virtual size_t size() const = 0;
  virtual void row(size_t index, std::vector<report::Cell>& cells) const = 0;
};

/// A table whose rows are computed as a whole when it is first read: reports.
struct ResultTable {
  std::string name;
  struct Column {
    std::string name;
    ValueType type;
  };
  std::vector<Column> columns;
  std::function<Result<std::vector<std::vector<report::Cell>>>()> rows;
  std::function<Result<std::shared_ptr<const ResultRows>>()> many =
      {};  // instead of `rows`, where there may be millions
};

/// Makes virtual tables known to one connection. Must outlive it.
class Module {
 public:
  explicit Module(sqlite3* connection);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Creates `schema`.relation ("temp", "main", or the name of an attached database).
  Status add(const std::string& schema, std::shared_ptr<Store> store, Relation relation);
  Status add(const std::string& schema, ResultTable table);
  /// A relation that find() tells of and SQLite does not get: it has the table itself.
  void know(const std::string& schema, std::shared_ptr<Store> store, Relation relation);

  /// The relation of that name, for those who evaluate it themselves; nullptr = there is none. Names without case;
  /// schema "" = the first one added.
  struct Found {
    const Relation* relation;
    Store* store;
  };
  Found find(std::string_view schema, std::string_view name) const;

  /// A sentence of the last error inside a virtual table, when there was one.
  struct State;
  State& state() { return *state_; }

 private:
  Status create(const std::string& schema, const std::string& name, size_t number);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::query
