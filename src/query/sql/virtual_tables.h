// Relations and ready results as SQLite virtual tables.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "query/engine/relation.h"
#include "query/engine/result_table.h"

namespace tacho::query {

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
  /// A relation that only find() tells of: SQLite has the table itself.
  void know(const std::string& schema, std::shared_ptr<Store> store, Relation relation);

  /// The relation of that name, for those who evaluate it themselves; nullptr = there is none. Names without
  /// case; schema "" = that of the first table that was added.
  struct Found {
    const Relation* relation = nullptr;
    Store* store = nullptr;
    bool is_virtual = false;  // false: SQLite has the table itself, see know()
  };
  Found find(std::string_view schema, std::string_view name) const;
  /// Whether SQLite reads an unqualified name through a virtual table: a relation's or a result's.
  bool is_virtual(std::string_view name) const;

  /// A sentence of the last error inside a virtual table, when there was one.
  struct State;
  State& state() { return *state_; }

 private:
  Status create(const std::string& schema, const std::string& name, size_t number);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::query
