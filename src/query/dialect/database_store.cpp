// Tables of a database file as a Store (database_store.h).
#include "query/dialect/database_store.h"

#include <algorithm>
#include <utility>

namespace tacho::query {

using event::kUnknown;

namespace {

class DatabaseStore : public Store {
 public:
  static constexpr size_t kLeaves = 400;  // of 4 KiB: about 40 thousand rows
  DatabaseStore(std::shared_ptr<const sqlite::Database> database, std::vector<const sqlite::StoredTable*> tables)
      : database_(std::move(database)) {
    tables_.resize(tables.size());
    for (size_t i = 0; i < tables.size(); ++i) tables_[i].info = tables[i];
  }
  size_t chunks(int table) const override { return of(table).chunks.size(); }
  ChunkInfo chunk(int table, size_t chunk) const override { return of(table).chunks[chunk]; }
  int64_t rows(int table) const override { return of(table).rows; }
  bool entries(int, size_t, int, std::vector<int64_t>&) const override { return false; }
  std::unique_ptr<trace::TimeCursor> by_time(int, std::span<const int>, int64_t, int64_t) const override {
    return nullptr;
  }
  const std::string& name() const override { return database_->file().path(); }

 protected:
  Status decode(int number, size_t chunk, int column, std::vector<int64_t>& values) override {
    const Table& table = of(number);
    const bool rowid = column == table.info->rowid_column;
    sqlite::TableScan scan(database_->file(), table.info->root_page, rowid ? 0 : column + 1);
    const size_t from = chunk * kLeaves;
    scan.scan_leaves(std::span(table.leaves).subspan(from, std::min(kLeaves, table.leaves.size() - from)));
    values.clear();
    values.reserve(table.chunks[chunk].rows);
    if (rowid)
      while (scan.next()) values.push_back(scan.rowid());
    else
      while (scan.next()) values.push_back(whole(scan, column));
    return scan.status();
  }
  Result<int64_t> row_of(int number, int64_t id) override {
    Table& table = of(number);
    if (table.chunks.empty() || id < table.first_ids[0]) return -1;
    size_t chunk = table.last;
    if (id < table.first_ids[chunk] || (chunk + 1 < table.chunks.size() && id >= table.first_ids[chunk + 1]))
      chunk = static_cast<size_t>(std::upper_bound(table.first_ids.begin(), table.first_ids.end(), id) -
                                  table.first_ids.begin()) -
              1;
    const ChunkInfo& info = table.chunks[chunk];
    if (chunk != table.last || table.ids == nullptr) {
      TACHO_ASSIGN(table.ids, this->column(number, chunk, table.info->rowid_column));
      table.last = chunk;
      table.dense =
          table.ids->size() == info.rows && info.rows > 0 &&
          static_cast<uint64_t>(table.ids->back()) - static_cast<uint64_t>(table.ids->front()) + 1 == info.rows;
    }
    const std::vector<int64_t>& ids = *table.ids;
    if (table.dense) return id >= ids.front() && id <= ids.back() ? info.first_row + (id - ids.front()) : -1;
    const auto found = std::lower_bound(ids.begin(), ids.end(), id);
    return found != ids.end() && *found == id ? info.first_row + (found - ids.begin()) : -1;
  }

  Result<bool> decode_together(int number, size_t chunk, std::span<const int16_t> columns,
                               std::span<std::vector<int64_t>> values) override {
    const Table& table = of(number);
    int most = 0;
    for (size_t i = 0; i < columns.size(); ++i) {
      most = std::max(most, columns[i] + 1);
      values[i].resize(table.chunks[chunk].rows);
    }
    sqlite::TableScan scan(database_->file(), table.info->root_page, most);
    const size_t from = chunk * kLeaves;
    scan.scan_leaves(std::span(table.leaves).subspan(from, std::min(kLeaves, table.leaves.size() - from)));
    size_t row = 0;
    while (row < table.chunks[chunk].rows && scan.next()) {
      for (size_t i = 0; i < columns.size(); ++i)
        values[i][row] = columns[i] == table.info->rowid_column ? scan.rowid() : whole(scan, columns[i]);
      ++row;
    }
    TACHO_TRY(scan.status());
    return true;
  }

 private:
  // The value of a column that should hold whole numbers. The smallest one is indistinguishable from NULL.
  int64_t whole(const sqlite::TableScan& scan, int column) {
    const int64_t value = scan.integer(column, kUnknown);
    irregular_ |= scan.is_whole(column) ? value == kUnknown : !scan.is_null(column);
    return value;
  }
  struct Table {
    const sqlite::StoredTable* info = nullptr;
    std::vector<uint32_t> leaves;
    std::vector<ChunkInfo> chunks;
    std::vector<int64_t> first_ids;  // of the chunks
    int64_t rows = 0;
    bool listed = false;
    // Where the last id was found.
    size_t last = 0;
    Values ids;
    bool dense = false;  // no gaps between its ids
  };
  // Lists the leaves on first use, since that has to look at each of them.
  Table& of(int number) const {
    Table& table = tables_[static_cast<size_t>(number)];
    if (table.listed) return table;
    table.listed = true;
    sqlite::TableScan scan(database_->file(), table.info->root_page, 0);
    table.leaves = scan.leaves();
    for (size_t at = 0; at < table.leaves.size(); at += kLeaves) {
      ChunkInfo chunk;
      chunk.first_row = table.rows;
      scan.scan_leaves(std::span(table.leaves).subspan(at, 1));
      table.first_ids.push_back(scan.next() ? scan.rowid() : INT64_MIN);
      for (size_t i = at; i < std::min(table.leaves.size(), at + kLeaves); ++i)
        chunk.rows += sqlite::TableScan::rows_of_leaf(database_->file(), table.leaves[i]);
      table.rows += chunk.rows;
      table.chunks.push_back(chunk);
    }
    return table;
  }
  std::shared_ptr<const sqlite::Database> database_;
  mutable std::vector<Table> tables_;
};

}  // namespace

std::shared_ptr<Store> database_store(std::shared_ptr<const sqlite::Database> database,
                                      std::vector<const sqlite::StoredTable*> tables) {
  return std::make_shared<DatabaseStore>(std::move(database), std::move(tables));
}

}  // namespace tacho::query
