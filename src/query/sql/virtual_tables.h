// Relations and computed results as SQLite virtual tables.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "query/engine/relation.h"
#include "query/engine/result_table.h"

namespace tacho::query {

/// Registers virtual tables with one connection. Must outlive the connection.
class Module {
 public:
  explicit Module(sqlite3* connection);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Creates `schema`.relation; `schema` is "temp", "main" or the name of an attached database.
  Status add(const std::string& schema, std::shared_ptr<Store> store, Relation relation);
  Status add(const std::string& schema, QueryTable table);
  /// Makes a relation known to find() only: SQLite has the table itself.
  void know(const std::string& schema, std::shared_ptr<Store> store, Relation relation);

  /// Finds a relation by name, for callers that evaluate it themselves; nullptr = there is none. Ignores case; schema
  /// "" means that of the first table added.
  struct Found {
    const Relation* relation = nullptr;
    Store* store = nullptr;
    bool is_virtual = false;  // false: SQLite has the table itself; see know()
  };
  Found find(std::string_view schema, std::string_view name) const;
  /// True if SQLite reads this unqualified name through a virtual table, be it a relation's or a result's.
  bool is_virtual(std::string_view name) const;

  /// The sentence of the last error inside a virtual table, if there was one.
  struct State;
  State& state() { return *state_; }

 private:
  Status create(const std::string& schema, const std::string& name, size_t number);
  std::unique_ptr<State> state_;
};

}  // namespace tacho::query
