// Tables of an SQLite file as a Store, without SQLite: a chunk is a run of leaf pages.
#pragma once

#include <memory>
#include <vector>

#include "format/sqlite/database.h"
#include "query/engine/relation.h"

namespace tacho::query {

/// Parts of relations over it name `tables` by their places, and columns by theirs in the file. Text columns have no
/// values here. A value that is no whole number makes the store irregular.
std::shared_ptr<Store> database_store(std::shared_ptr<const sqlite::Database> database,
                                      std::vector<const sqlite::StoredTable*> tables);

}  // namespace tacho::query
