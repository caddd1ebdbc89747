// The cost of a statement: which columns of which chunks are decoded, and which steps of SQLite's plan are left over.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "query/sql/session.h"
#include "support/folder.h"
#include "trace/write/writer.h"

namespace tacho::query {
namespace {

using event::Table;
namespace row = event::row;

constexpr int64_t kRows = 20'000, kChunk = 1000;

// 20 chunks of dispatches on two queues, kernels a0 ... a9 one after the other, 1 us apart; one API call each.
class Pushdown : public testing::Test {
 protected:
  void SetUp() override {
    trace::WriterOptions options;
    options.slab_rows = kChunk;
    auto writer = trace::TraceWriter::create(folder_ / "t.tacho", options);
    ASSERT_TRUE(writer) << writer.error().message;
    trace::TraceWriter& w = **writer;
    const int64_t process = w.dimension(row::Process{.pid = 7, .parent_pid = 1, .start = 0});
    const int64_t thread = w.dimension(row::Thread{.process = process, .tid = 8});
    const int64_t host =
        w.dimension(row::Track{.kind = event::TrackKind::kThread, .process = process, .thread = thread, .native = 8});
    const int64_t device =
        w.dimension(row::Device{.kind = event::DeviceKind::kGpu, .index = 0, .name = w.string("gpu")});
    int64_t queues[2];
    for (int64_t i = 0; i < 2; ++i)
      queues[i] = w.dimension(
          row::Track{.kind = event::TrackKind::kQueue, .process = process, .device = device, .native = 10 + i});
    const int64_t function =
        w.dimension(row::Function{.name = w.string("clEnqueueNDRangeKernel"), .domain = event::Domain::kOpenCL});
    for (int64_t i = 0; i < kRows; ++i) {
      const int64_t kernel = w.dimension(row::Kernel{.name = w.string("a" + std::to_string(i % 10)),
                                                     .grid_x = 64,
                                                     .grid_y = 1,
                                                     .grid_z = 1,
                                                     .group_x = 64,
                                                     .group_y = 1,
                                                     .group_z = 1,
                                                     .registers = 0,
                                                     .accum_registers = 0,
                                                     .scalar_registers = 0,
                                                     .shared_static = 0,
                                                     .shared_dynamic = 0,
                                                     .private_bytes = 0,
                                                     .cache_config = 0,
                                                     .carveout = 0});
      w.add(row::Api{
          .track = host, .start = 1000 * i, .duration = 100, .dim = function, .correlation = i + 1, .result = 0});
      w.add(row::Dispatch{.track = queues[i % 2],
                          .start = 1000 * i + 200,
                          .duration = 500 + i % 7,
                          .dim = kernel,
                          .correlation = i + 1,
                          .ordinal = i});
    }
    const Status done = w.finish();
    ASSERT_TRUE(done) << done.error().message;
    auto session = Session::open(folder_ / "t.tacho");
    ASSERT_TRUE(session) << session.error().message;
    session_ = std::move(*session);
  }

  struct Answer {
    std::vector<std::vector<report::Cell>> rows;
    uint64_t decoded = 0;  // columns of chunks
  };
  Answer ask(const std::string& sql) {
    Answer answer;
    const uint64_t before = session_->decoded();
    const Status done = session_->run(sql, {[](auto) {},
                                            [&](std::span<const report::Cell> row) {
                                              answer.rows.emplace_back(row.begin(), row.end());
                                              return true;
                                            }});
    EXPECT_TRUE(done) << sql << ": " << done.error().message;
    answer.decoded = session_->decoded() - before;
    return answer;
  }
  std::string plan(const std::string& sql) {
    std::string text;
    for (const auto& row : ask("EXPLAIN QUERY PLAN " + sql).rows) text += std::get<std::string>(row.back()) + "\n";
    return text;
  }
  static int64_t number(const Answer& answer, size_t column = 0) {
    return std::get<int64_t>(answer.rows.at(0).at(column));
  }

  test::Folder folder_;
  std::unique_ptr<Session> session_;
};

constexpr uint64_t kChunks = kRows / kChunk + 2;  // the last ones may be smaller

TEST_F(Pushdown, OnlyTheColumnsThatAreUsed) {
  const Answer answer = ask("SELECT max(duration) FROM tacho.dispatch");
  EXPECT_EQ(number(answer), 506);
  EXPECT_LE(answer.decoded, kChunks);
  EXPECT_EQ(ask("SELECT count(*) FROM tacho.dispatch").decoded, 0u);
}

TEST_F(Pushdown, TimesChooseChunks) {
  const Answer answer =
      ask("SELECT count(*), sum(duration) FROM tacho.dispatch WHERE start >= 5000000 AND start < 6000000");
  EXPECT_EQ(number(answer), 1000);
  EXPECT_GT(answer.decoded, 0u);
  EXPECT_LE(answer.decoded, 2 * 3u);
  const Answer rows = ask("SELECT id, name, correlation FROM tacho.dispatch WHERE start BETWEEN 19000000 AND 19003000");
  EXPECT_EQ(rows.rows.size(), 3u);
  EXPECT_LE(rows.decoded, 2 * 5u);
  EXPECT_EQ(ask("SELECT count(*) FROM tacho.dispatch WHERE start > 99000000000").decoded, 0u);
}

TEST_F(Pushdown, RowIdsAreLookedUp) {
  const Answer answer = ask("SELECT start FROM tacho.dispatch WHERE id = 12345");
  EXPECT_EQ(answer.rows.size(), 1u);
  EXPECT_LE(answer.decoded, 2u);
}

TEST_F(Pushdown, NamesAreComparedInTheDictionary) {
  EXPECT_EQ(number(ask("SELECT count(*) FROM tacho.dispatch WHERE name = 'a3'")), kRows / 10);
  const Answer none = ask("SELECT start, duration FROM tacho.dispatch WHERE name = 'no such kernel'");
  EXPECT_TRUE(none.rows.empty());
  EXPECT_EQ(none.decoded, 0u);
}

TEST_F(Pushdown, GroupsAndOrderAreConsumed) {
  for (const char* const sql :
       {"SELECT name, count(*) FROM tacho.dispatch GROUP BY name",
        "SELECT queue, min(start) FROM tacho.dispatch GROUP BY queue",
        "SELECT start FROM tacho.dispatch ORDER BY start", "SELECT tid, count(*) FROM tacho.api GROUP BY tid"})
    EXPECT_EQ(plan(sql).find("TEMP B-TREE"), std::string::npos) << sql << "\n" << plan(sql);
  // By something that is no column of the dictionary SQLite has to sort: the test would see it.
  EXPECT_NE(plan("SELECT duration % 7, count(*) FROM tacho.dispatch GROUP BY duration % 7").find("TEMP B-TREE"),
            std::string::npos);
  const Answer answer = ask("SELECT name, count(*) FROM tacho.dispatch GROUP BY name ORDER BY name");
  ASSERT_EQ(answer.rows.size(), 10u);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(std::get<std::string>(answer.rows[i][0]), "a" + std::to_string(i));
    EXPECT_EQ(std::get<int64_t>(answer.rows[i][1]), kRows / 10);
  }
  EXPECT_LE(answer.decoded, kChunks);
}

TEST_F(Pushdown, ConstraintsReachTheTable) {
  EXPECT_NE(plan("SELECT * FROM tacho.dispatch WHERE start > 5").find("VIRTUAL TABLE"), std::string::npos);
  EXPECT_NE(plan("SELECT * FROM tacho.dispatch WHERE start > 5"), plan("SELECT * FROM tacho.dispatch"));
  EXPECT_NE(plan("SELECT * FROM tacho.dispatch WHERE id = 5"), plan("SELECT * FROM tacho.dispatch"));
}

TEST_F(Pushdown, JoinsByIdDecodeWhatTheyNameOnce) {
  const Answer answer = ask(
      "SELECT A.apiName, O.description, count(*), sum(O.\"end\" - O.start) FROM rpd.rocpd_api_ops L JOIN rpd.api A ON "
      "A.id = L.api_id JOIN rpd.op O ON O.id = L.op_id WHERE O.opType = "
      "'KernelExecution' GROUP BY 1, 2 HAVING count(*) > 5 ORDER BY 2 DESC");
  ASSERT_EQ(answer.rows.size(), 10u);
  EXPECT_EQ(std::get<std::string>(answer.rows[0][0]), "clEnqueueNDRangeKernel");
  EXPECT_EQ(std::get<std::string>(answer.rows[0][1]), "a9");
  EXPECT_EQ(number(answer, 2), kRows / 10);
  // track and correlation of a link, dim of a call; start, duration and dim of an operation
  EXPECT_LE(answer.decoded, 6 * kChunks);
  // A call that no operation names is in no pair, and an id that is not there either.
  EXPECT_EQ(
      number(ask("SELECT count(*) FROM rpd.rocpd_api_ops L JOIN rpd.api A ON A.id = L.api_id WHERE A.id > 19990")), 10);
  EXPECT_EQ(number(ask("SELECT count(*) FROM tacho.dispatch D JOIN tacho.api A ON A.id "
                       "= D.correlation WHERE D.correlation <= 100")),
            100);
}

TEST_F(Pushdown, ExpressionsAreGroupsToo) {
  const Answer answer = ask("SELECT duration % 7 AS rest, count(*) AS n, min(start) / 1000.0 FROM "
                            "tacho.dispatch GROUP BY rest ORDER BY n, rest DESC");
  ASSERT_EQ(answer.rows.size(), 7u);
  int64_t sum = 0;
  for (const auto& row : answer.rows) sum += std::get<int64_t>(row[1]);
  EXPECT_EQ(sum, kRows);
  EXPECT_TRUE(std::holds_alternative<double>(answer.rows[0][2]));
  EXPECT_LE(answer.decoded, 2 * kChunks);
}

// More groups than are kept in memory: sorted in files, texts and numbers alike, none lost and none twice.
TEST(ManyGroups, GoThroughFiles) {
  constexpr int64_t kNames = 900'000;
  const test::Folder folder;
  {
    auto writer = trace::TraceWriter::create(folder / "t.tacho", {});
    ASSERT_TRUE(writer) << writer.error().message;
    trace::TraceWriter& w = **writer;
    const int64_t process = w.dimension(row::Process{.pid = 7, .parent_pid = 1, .start = 0});
    const int64_t thread = w.dimension(row::Thread{.process = process, .tid = 8});
    const int64_t host =
        w.dimension(row::Track{.kind = event::TrackKind::kThread, .process = process, .thread = thread, .native = 8});
    for (int64_t i = 0; i < kNames + kNames / 3; ++i) {  // every third name comes twice, far from the first time
      const int64_t label =
          w.dimension(row::Label{.name = w.string("name " + std::to_string(i % kNames * 7919 % kNames))});
      w.add(row::Marker{.track = host, .start = 10 * i, .duration = 5, .dim = label});
    }
    const Status done = w.finish();
    ASSERT_TRUE(done) << done.error().message;
  }
  auto session = Session::open(folder / "t.tacho");
  ASSERT_TRUE(session) << session.error().message;
  const auto ask = [&](const std::string& sql, auto visit) {
    const Status done = (*session)->run(sql, {[](auto) {},
                                              [&](std::span<const report::Cell> row) {
                                                visit(row);
                                                return true;
                                              }});
    EXPECT_TRUE(done) << sql << ": " << done.error().message;
  };
  int64_t rows = 0, count = 0, sum = 0;
  std::string before;
  bool ascending = true;
  ask("SELECT name, count(*), sum(duration) FROM tacho.marker GROUP BY name", [&](std::span<const report::Cell> row) {
    ascending = ascending && before < std::get<std::string>(row[0]);
    before = std::get<std::string>(row[0]);
    ++rows;
    count += std::get<int64_t>(row[1]);
    sum += std::get<int64_t>(row[2]);
  });
  EXPECT_TRUE(ascending);
  EXPECT_EQ(rows, kNames);
  EXPECT_EQ(count, kNames + kNames / 3);
  EXPECT_EQ(sum, 5 * count);
  rows = 0;
  int64_t last = INT64_MAX;
  ask("SELECT start / 10 AS number, max(start) FROM tacho.marker GROUP BY "
      "number HAVING count(*) = 1 ORDER BY number DESC",
      [&](std::span<const report::Cell> row) {
        ascending = ascending && std::get<int64_t>(row[0]) < last;
        last = std::get<int64_t>(row[0]);
        ++rows;
      });
  EXPECT_TRUE(ascending);
  EXPECT_EQ(rows, kNames + kNames / 3);
}

TEST_F(Pushdown, EveryDialectGivesTheSameSums) {
  const int64_t sum = number(ask("SELECT sum(duration) FROM tacho.dispatch"));
  EXPECT_EQ(number(ask("SELECT sum(\"end\" - start) FROM rpd.op")), sum);
  EXPECT_EQ(number(ask("SELECT sum(duration) FROM rocpd.kernels")), sum);
  EXPECT_EQ(number(ask("SELECT count(*) FROM rpd.rocpd_api_ops")), kRows);
}

}  // namespace
}  // namespace tacho::query
