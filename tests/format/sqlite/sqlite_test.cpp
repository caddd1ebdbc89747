// The direct reader and writer of SQLite files against SQLite itself.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>
#include <zlib.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>

#include "format/sqlite/bulk.h"
#include "format/sqlite/database.h"
#include "support/folder.h"

namespace tacho::sqlite {
namespace {

using test::Folder;

std::string one(const std::string& path, const std::string& sql) {
  sqlite3* raw = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &raw), SQLITE_OK);
  const Connection connection(raw);
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(raw, sql.c_str(), -1, &statement, nullptr), SQLITE_OK) << sqlite3_errmsg(raw);
  std::string result;
  if (statement != nullptr && sqlite3_step(statement) == SQLITE_ROW) {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
    result = text != nullptr ? text : "NULL";
  }
  sqlite3_finalize(statement);
  return result;
}

// Values of every storage class and length, also records that need overflow pages.
void fill(sqlite3* db, int rows, uint32_t seed) {
  std::mt19937_64 random(seed);
  sqlite3_exec(db, "CREATE TABLE t(id integer primary key, a integer, b real, c text, d)", nullptr, nullptr, nullptr);
  sqlite3_exec(db, "BEGIN", nullptr, nullptr, nullptr);
  sqlite3_stmt* insert = nullptr;
  sqlite3_prepare_v2(db, "INSERT INTO t VALUES(?,?,?,?,?)", -1, &insert, nullptr);
  int64_t id = -50;
  for (int i = 0; i < rows; ++i) {
    id += 1 + static_cast<int64_t>(random() % 5) * (i % 97 == 0 ? 1'000'000'007 : 1);
    sqlite3_bind_int64(insert, 1, id);
    const int bits = static_cast<int>(random() % 64);
    sqlite3_bind_int64(insert, 2, static_cast<int64_t>(random()) >> bits);
    sqlite3_bind_double(insert, 3, i % 3 == 0 ? static_cast<double>(i) : static_cast<double>(random()) / 3.0);
    const size_t length = i % 50 == 0 ? random() % 30000 : random() % 40;
    const std::string text(length, static_cast<char>('a' + i % 26));
    sqlite3_bind_text(insert, 4, text.data(), static_cast<int>(length), SQLITE_TRANSIENT);
    if (i % 4 == 0)
      sqlite3_bind_null(insert, 5);
    else
      sqlite3_bind_int64(insert, 5, i % 2);
    EXPECT_EQ(sqlite3_step(insert), SQLITE_DONE);
    sqlite3_reset(insert);
  }
  sqlite3_finalize(insert);
  sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr);
}

class Scan : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(Scan, EqualsSqlite) {
  const auto [page_size, rows] = GetParam();
  const Folder folder;
  const std::string path = folder / "a.db";
  {
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &raw), SQLITE_OK);
    const Connection connection(raw);
    sqlite3_exec(raw, ("PRAGMA page_size=" + std::to_string(page_size)).c_str(), nullptr, nullptr, nullptr);
    fill(raw, rows, static_cast<uint32_t>(rows));
  }
  const auto database = Database::open(path);
  ASSERT_TRUE(database) << database.error().message;
  const StoredTable* const table = database->table("T");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->rowid_column, 0);
  NamedScan scan(*database, *table, {"id", "a", "b", "c", "d", "nothing"});
  const auto statement = prepare(database->connection(), "SELECT id, a, b, c, d FROM t ORDER BY id");
  ASSERT_TRUE(statement);
  std::vector<int64_t> ids;
  int count = 0;
  while (sqlite3_step(statement->get()) == SQLITE_ROW) {
    ASSERT_TRUE(scan.next()) << count;
    ++count;
    ids.push_back(scan.number(0));
    ASSERT_EQ(scan.number(0), sqlite3_column_int64(statement->get(), 0));
    ASSERT_EQ(scan.number(1), sqlite3_column_int64(statement->get(), 1));
    ASSERT_EQ(scan.decimal(2), sqlite3_column_double(statement->get(), 2));
    ASSERT_EQ(scan.string(3), reinterpret_cast<const char*>(sqlite3_column_text(statement->get(), 3)));
    if (sqlite3_column_type(statement->get(), 4) == SQLITE_NULL)
      ASSERT_EQ(scan.number(4, -7), -7);
    else
      ASSERT_EQ(scan.number(4, -7), sqlite3_column_int64(statement->get(), 4));
    ASSERT_EQ(scan.number(5, -3), -3);
  }
  EXPECT_FALSE(scan.next());
  EXPECT_TRUE(scan.status());
  EXPECT_EQ(count, rows);
  // Jumps: every row, in both directions, and places where there is none; next() goes on from there.
  std::mt19937 random(3);
  NamedScan jump(*database, *table, {"id", "a"});
  for (int i = 0; i < 2000 && !ids.empty(); ++i) {
    const size_t at = i % 3 == 0 ? static_cast<size_t>(i) % ids.size() : random() % ids.size();
    ASSERT_TRUE(jump.seek(ids[at]));
    ASSERT_EQ(jump.rowid(), ids[at]);
    if (at + 1 < ids.size()) {
      const bool gap = ids[at + 1] != ids[at] + 1;
      if (gap) {
        ASSERT_FALSE(jump.seek(ids[at] + 1));
      }
      ASSERT_TRUE(jump.next());
      ASSERT_EQ(jump.rowid(), ids[at + 1]);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, Scan,
                         testing::Values(std::pair{4096, 0}, std::pair{4096, 1}, std::pair{512, 3000},
                                         std::pair{4096, 20000}, std::pair{65536, 5000}, std::pair{1024, 9000}));

TEST(BulkFile, WritesWhatSqliteAccepts) {
  for (const int rows : {0, 1, 50, 1000, 200000}) {
    const Folder folder;
    const std::string path = folder / "b.db";
    auto file = BulkFile::create(
        path, "CREATE TABLE one(id integer primary key autoincrement, a integer, b real, c text);CREATE TABLE two(k "
              "bigint not null primary key, v text);");
    ASSERT_TRUE(file) << file.error().message;
    std::mt19937_64 random(5);
    int64_t id = 0, sum = 0, length = 0;
    for (int i = 0; i < rows; ++i) {
      id += i % 1000 == 0 ? 1'000'000'000'000 : 1;
      const int64_t a = static_cast<int64_t>(random()) >> (random() % 64);
      sum ^= a;
      const std::string text(i % 5000 == 7  ? 123456
                             : i % 300 == 1 ? 5000 + static_cast<size_t>(i % 7)
                                            : static_cast<size_t>(i % 60),
                             'x');
      length += static_cast<int64_t>(text.size());
      BulkTable& one_table = (*file)->table("one");
      one_table.begin(id);
      one_table.null().integer(a).real(i / 2.0).text(text).end();
      if (i % 2 == 0) {
        BulkTable& two_table = (*file)->table("two");
        two_table.begin(i + 1);
        two_table.integer(id).text("v").end();
      }
    }
    const auto done = (*file)->finish("CREATE INDEX one_a ON one(a); CREATE VIEW v AS SELECT count(*) AS n FROM one;");
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(one(path, "PRAGMA integrity_check"), "ok") << rows;
    EXPECT_EQ(one(path, "SELECT n FROM v"), std::to_string(rows));
    EXPECT_EQ(one(path, "SELECT count(*) FROM one INDEXED BY one_a WHERE a >= -9223372036854775807 - 1"),
              std::to_string(rows));
    EXPECT_EQ(one(path, "SELECT total(length(c)) FROM one"), fmt::format("{}.0", length));
    EXPECT_EQ(one(path, "SELECT count(*) FROM one JOIN two ON two.k = one.id"), std::to_string((rows + 1) / 2));
    if (rows > 0) {
      EXPECT_EQ(one(path, "SELECT seq FROM sqlite_sequence WHERE name = 'one'"), std::to_string(id));
    }
    // It goes on as any other database: rows can be inserted by SQLite.
    EXPECT_EQ(one(path, "INSERT INTO one(a) VALUES(1) RETURNING id"), std::to_string(id + 1));
    EXPECT_EQ(one(path, "PRAGMA integrity_check"), "ok") << rows;
    const auto database = Database::open(path);
    ASSERT_TRUE(database);
    NamedScan scan(*database, *database->table("one"), {"id", "a"});
    int64_t again = 0;
    for (int i = 0; i < rows; ++i) {
      ASSERT_TRUE(scan.next());
      again ^= scan.number(1);
    }
    EXPECT_EQ(again, sum);
  }
}

TEST(Database, RefusesWithOneSentence) {
  const Folder folder;
  const auto write = [&](const std::string& name, const std::string& bytes) {
    std::FILE* const file = std::fopen((folder / name).c_str(), "wb");
    std::fwrite(bytes.data(), 1, bytes.size(), file);
    std::fclose(file);
    return folder / name;
  };
  EXPECT_FALSE(Database::open(folder / "missing"));
  EXPECT_NE(Database::open(write("empty", "")).error().message.find("empty"), std::string::npos);
  EXPECT_NE(Database::open(write("text", std::string(5000, 'x'))).error().message.find("not a SQLite"),
            std::string::npos);
  EXPECT_FALSE(Database::open(folder / "."));
  // Cut off, locked, UTF-16, changes pending.
  const std::string path = folder / "a.db";
  {
    sqlite3* raw = nullptr;
    sqlite3_open(path.c_str(), &raw);
    const Connection connection(raw);
    fill(raw, 5000, 1);
  }
  const auto size = std::filesystem::file_size(path);
  std::filesystem::copy_file(path, folder / "cut.db");
  std::filesystem::resize_file(folder / "cut.db", size / 2);
  EXPECT_NE(Database::open(folder / "cut.db").error().message.find("cut off"), std::string::npos);
  {
    sqlite3* raw = nullptr;
    sqlite3_open(path.c_str(), &raw);
    const Connection connection(raw);
    sqlite3_exec(raw, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr);
    const auto locked = Database::open(path);
    ASSERT_FALSE(locked);
    EXPECT_NE(locked.error().message.find("another program is writing"), std::string::npos);
  }
  EXPECT_TRUE(Database::open(path));
  write("a.db-wal", "x");
  EXPECT_NE(Database::open(path).error().message.find("wal"), std::string::npos);
  {
    sqlite3* raw = nullptr;
    sqlite3_open((folder / "wide.db").c_str(), &raw);
    const Connection connection(raw);
    sqlite3_exec(raw, "PRAGMA encoding='UTF-16'; CREATE TABLE t(a)", nullptr, nullptr, nullptr);
  }
  EXPECT_NE(Database::open(folder / "wide.db").error().message.find("UTF-16"), std::string::npos);
}

TEST(Database, DamagedPagesAreErrorsNotCrashes) {
  const Folder folder;
  const std::string path = folder / "a.db";
  {
    sqlite3* raw = nullptr;
    sqlite3_open(path.c_str(), &raw);
    const Connection connection(raw);
    sqlite3_exec(raw, "PRAGMA page_size=512", nullptr, nullptr, nullptr);
    fill(raw, 400, 9);
  }
  std::string bytes;
  {
    std::FILE* const file = std::fopen(path.c_str(), "rb");
    bytes.resize(std::filesystem::file_size(path));
    ASSERT_EQ(std::fread(bytes.data(), 1, bytes.size(), file), bytes.size());
    std::fclose(file);
  }
  std::mt19937 random(17);
  int opened = 0, failed = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string damaged = bytes;
    const int changes = 1 + static_cast<int>(random() % 20);
    for (int i = 0; i < changes; ++i) damaged[512 + random() % (damaged.size() - 512)] = static_cast<char>(random());
    const std::string bad = folder / "bad.db";
    std::FILE* const file = std::fopen(bad.c_str(), "wb");
    std::fwrite(damaged.data(), 1, damaged.size(), file);
    std::fclose(file);
    const auto database = Database::open(bad);
    if (!database) continue;
    ++opened;
    const StoredTable* const table = database->table("t");
    if (table == nullptr) continue;
    NamedScan scan(*database, *table, {"id", "a", "b", "c", "d"});
    uint64_t sum = 0;
    while (scan.next())
      sum += static_cast<uint64_t>(scan.number(1)) + scan.string(3).size() + static_cast<uint64_t>(scan.decimal(2) > 0);
    if (!scan.status()) ++failed;
    NamedScan jump(*database, *table, {"id", "a"});
    for (int64_t id = -50; id < 2000; id += 7) sum += jump.seek(id) ? 1 : 0;
    EXPECT_LT(scan.rows(), 10'000'000u) << sum;
  }
  EXPECT_GT(opened, 1000);
  EXPECT_GT(failed, 50);
}

std::string content(const std::string& path) {
  std::string bytes(std::filesystem::file_size(path), '\0');
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  EXPECT_EQ(std::fread(bytes.data(), 1, bytes.size(), file), bytes.size());
  std::fclose(file);
  return bytes;
}

// One leaf: a row of about a hundred overflow pages and twenty short ones.
std::string with_long_row(const std::string& path) {
  sqlite3* raw = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &raw), SQLITE_OK);
  const Connection connection(raw);
  EXPECT_EQ(sqlite3_exec(raw,
                         "PRAGMA page_size=512; CREATE TABLE t(id integer primary key, c text);"
                         "INSERT INTO t VALUES(1, printf('%.*c', 50830, 'x'));"
                         "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 21)"
                         "INSERT INTO t SELECT i, 'y' FROM n",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  return content(path);
}

TEST(Database, RowsThatShareTheirOverflowPages) {
  const Folder folder;
  std::string bytes = with_long_row(folder / "a.db");
  char* const leaf = bytes.data() + 512;
  ASSERT_EQ(leaf[0], 0x0d);
  ASSERT_EQ(leaf[4], 21);
  for (int row = 1; row < 21; ++row) std::memcpy(leaf + 8 + 2 * row, leaf + 8, 2);
  std::FILE* const file = std::fopen((folder / "a.db").c_str(), "wb");
  std::fwrite(bytes.data(), 1, bytes.size(), file);
  std::fclose(file);
  const auto database = Database::open(folder / "a.db");
  ASSERT_TRUE(database) << database.error().message;
  NamedScan scan(*database, *database->table("t"), {"id", "c"});
  EXPECT_TRUE(scan.next());
  EXPECT_FALSE(scan.next());
  ASSERT_FALSE(scan.status());
  EXPECT_NE(scan.status().error().message.find("several rows go on in the same page"), std::string::npos);
  // One after the other each may be sought any number of times.
  NamedScan jump(*database, *database->table("t"), {"id", "c"});
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(jump.seek(1));
}

TEST(Database, WhatFollowsACompressedDatabaseIsNotUnpacked) {
  const Folder folder;
  const std::string bytes = with_long_row(folder / "a.db");
  for (const size_t more : {0, 1, 5'000'000}) {
    const gzFile file = gzopen((folder / "a.db.gz").c_str(), "wb");
    const std::string packed = bytes + std::string(more, '\0');
    ASSERT_EQ(gzwrite(file, packed.data(), static_cast<unsigned>(packed.size())), static_cast<int>(packed.size()));
    gzclose(file);
    const auto database = Database::open(folder / "a.db.gz");
    ASSERT_TRUE(database) << database.error().message;
    EXPECT_EQ(database->file().size(), bytes.size());
    NamedScan scan(*database, *database->table("t"), {"id"});
    while (scan.next()) continue;
    EXPECT_EQ(scan.rows(), 21u);
  }
}

// As many leaves as an interior page holds, a few less and a few more: every way of ending a level.
TEST(Bulk, InteriorPagesAtTheirLimit) {
  const Folder folder;
  const std::string text(3900, 'x');  // one row a leaf
  for (int rows = 522; rows <= 542; ++rows) {
    const std::string path = folder / "b.db";
    std::filesystem::remove(path);
    auto file = BulkFile::create(path, "CREATE TABLE t(id integer primary key, a text);");
    ASSERT_TRUE(file) << file.error().message;
    BulkTable& table = (*file)->table("t");
    for (int row = 1; row <= rows; ++row) {
      table.begin(row);
      table.null().text(text).end();
    }
    const Status done = (*file)->finish("CREATE INDEX i ON t (a);");
    ASSERT_TRUE(done) << rows << ": " << done.error().message;
    ASSERT_EQ(one(path, "PRAGMA integrity_check"), "ok") << rows;
    ASSERT_EQ(one(path, "SELECT count(*) FROM t"), std::to_string(rows));
    ASSERT_EQ(one(path, "SELECT length(a) FROM t WHERE id = " + std::to_string(rows)), "3900");
  }
}

}  // namespace
}  // namespace tacho::sqlite
