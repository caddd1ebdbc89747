// Which engine answers which statement, and the texts of refusals.
#include "query/sql/engine_choice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "format/sqlite/database.h"

namespace tacho::query {
namespace {

// Tables without rows.
class NoRows : public Store {
 public:
  size_t chunks(int) const override { return 0; }
  ChunkInfo chunk(int, size_t) const override { return {}; }
  int64_t rows(int) const override { return 0; }
  bool entries(int, size_t, int, std::vector<int64_t>&) const override { return false; }
  std::unique_ptr<trace::TimeCursor> by_time(int, std::span<const int>, int64_t, int64_t) const override {
    return nullptr;
  }
  const std::string& name() const override { return name_; }
  void hold_a_text() { irregular_ = true; }

 protected:
  Status decode(int, size_t, int, std::vector<int64_t>&) override { return {}; }

 private:
  std::string name_ = "none";
};

// As over an .rpd: call and work are virtual, link is a table of the file, sums is computed as a whole.
class EngineChoice : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = sqlite::open_memory();
    ASSERT_TRUE(opened);
    connection_ = std::move(*opened);
    module_ = std::make_unique<Module>(connection_.get());
    const TextOf text = [](int64_t, std::string&) { return std::string_view(); };
    const auto table = [&](const char* name) {
      Relation relation;
      relation.name = name;
      relation.columns = {{.name = "id", .text = {}, .key = true},
                          {.name = "start", .text = {}},
                          {.name = "ratio", .type = ValueType::kReal, .text = {}},
                          {.name = "name", .type = ValueType::kText, .text = text},
                          {.name = "args", .type = ValueType::kText, .text = text, .looked_up = true}};
      relation.parts.push_back({0, std::vector<PartColumn>(5), {}, 0});
      return relation;
    };
    for (const char* const name : {"call", "work"}) ASSERT_TRUE(module_->add("main", store_, table(name)));
    module_->know("main", store_, table("link"));
    ASSERT_TRUE(module_->add("main", QueryTable{"sums", {{"total", ValueType::kInteger}}, {}, {}}));
  }
  void TearDown() override { connection_.reset(); }
  Choice choose(const std::string& sql, bool in_place = true, bool by_columns = true) {
    const Statement statement(sql);
    Choice choice = choose_engine(statement, "rpd", {in_place, *module_, by_columns});
    EXPECT_EQ(choice.engine == Engine::kColumns, choice.plan != nullptr) << sql;
    EXPECT_FALSE(choice.reason.empty()) << sql;
    return choice;
  }
  Engine engine(const std::string& sql, bool in_place = true) { return choose(sql, in_place).engine; }

  std::shared_ptr<NoRows> store_ = std::make_shared<NoRows>();
  std::unique_ptr<Module> module_;
  sqlite::Connection connection_;
};

TEST_F(EngineChoice, SumsWithinTheGrammarAreTheColumnEngines) {
  for (const char* const sql :
       {"SELECT count(*) FROM call", "SELECT name, sum(start) s FROM call GROUP BY name ORDER BY s DESC LIMIT 3;",
        ("select Start / 10 as k, min(id + start % 3), -count(*) from main.link where name like 'a%' and id <> 3 group "
         "by k having count(*) >= 2 order by 1"),
        "SELECT count(name), count(ratio) FROM work",
        "SELECT A.name, count(*) FROM link L JOIN call A ON (A.id = L.start) GROUP BY A.name",
        "SELECT count(*) FROM link L, call A, work B WHERE A.id = L.id AND L.start = B.id AND A.start > -5",
        "SELECT \"name\", avg(id) FROM [call] -- names\n GROUP BY `name`"}) {
    EXPECT_EQ(engine(sql), Engine::kColumns) << sql << ": " << choose(sql).reason;
    EXPECT_EQ(engine(sql, false), Engine::kColumns) << sql;
  }
}

TEST_F(EngineChoice, WhatTheGrammarDoesNotTakeIsSqlites) {
  const std::pair<const char*, const char*> cases[] = {
      {"SELECT id FROM call", "no aggregate"},
      {"SELECT DISTINCT name, count(*) FROM call GROUP BY 1", "\"DISTINCT\" is beyond"},
      {"SELECT sum(ratio) FROM call", "\"ratio\", which holds no whole numbers"},
      {"SELECT sum(start * 1.5) FROM call", "\"1.5\" is beyond"},
      {"SELECT start, count(*) FROM call GROUP BY name", "\"start\" stands outside"},
      {"SELECT count(*) FROM call WHERE id = 1 OR id = 2", "\"OR\" is beyond"},
      {"SELECT count(*) FROM call WHERE start IN (1, 2)", "\"IN\" is beyond"},
      {"SELECT count(*) FROM call GROUP BY name ORDER BY max(id)", "ORDER BY max(id)"},
      {"SELECT count(*) FROM call GROUP BY (1)", "number in brackets"},
      {"SELECT count(*) FROM call LEFT JOIN work ON work.id = call.start", "\"LEFT\" is beyond"},
      {"SELECT count(*) FROM call A JOIN work B ON A.start = B.start", "not joined by the ids"},
      {"SELECT count(*) FROM call A JOIN work B", "one equality"},
      {"SELECT count(*) FROM (SELECT * FROM call)", "\"(\" is beyond"},
      {"SELECT count(*), (SELECT 1) FROM call", "SELECT within"},
      {"SELECT count(*) FROM sums", "\"sums\" is no table of columns"},
      {"SELECT count(*) FROM call LIMIT 3 OFFSET 1", "\"OFFSET\" is beyond"},
      {"SELECT count(*) FROM call WHERE args = 'x'", "\"args\" is looked up"},
      {"SELECT count(*) FROM", "ends too early"},
  };
  for (const auto& [sql, reason] : cases) {
    const Choice choice = choose(sql);
    EXPECT_NE(choice.engine, Engine::kColumns) << sql;
    EXPECT_NE(choice.reason.find(reason), std::string::npos) << sql << ": " << choice.reason;
    EXPECT_EQ(engine(sql, false), Engine::kVirtual) << sql;
  }
}

TEST_F(EngineChoice, InADatabaseJoinsAndLookedUpTextsAreTheFiles) {
  for (const char* const sql :
       {"SELECT id FROM link", "SELECT 1", "SELECT * FROM call, work", "SELECT id FROM call WHERE args LIKE '%x'",
        "SELECT * FROM link L JOIN call A ON A.id = L.id", "SELECT id FROM call WHERE id IN (SELECT id FROM work)",
        "SELECT id FROM call UNION SELECT id FROM work"})
    EXPECT_EQ(engine(sql), Engine::kFile) << sql << ": " << choose(sql).reason;
  for (const char* const sql :
       {"SELECT id FROM call ORDER BY start", "SELECT * FROM sums", "SELECT max(s) FROM (SELECT start s FROM work)",
        "WITH c(x) AS (SELECT start FROM call) SELECT x FROM c", "SELECT DISTINCT name FROM call WHERE id IN (1, 2)",
        "SELECT 'args' FROM call"})
    EXPECT_EQ(engine(sql), Engine::kVirtual) << sql << ": " << choose(sql).reason;
}

TEST_F(EngineChoice, SqliteAnswersWhatTheColumnEngineGaveUp) {
  EXPECT_EQ(choose("SELECT sum(start) FROM call", true, false).engine, Engine::kVirtual);
  EXPECT_EQ(choose("SELECT sum(start) FROM call", false, false).engine, Engine::kVirtual);
  store_->hold_a_text();
  EXPECT_EQ(choose("SELECT sum(start) FROM call", true, false).engine, Engine::kFile);
  EXPECT_EQ(engine("SELECT start FROM call"), Engine::kFile);
}

TEST(StatementTest, TablesAreWhatFromAndJoinName) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(Statement("SELECT a, b FROM c, d e JOIN (f JOIN g ON f.x = g.y) WHERE h IN i AND j IN (k)").tables(),
            (Names{"c", "d", "f", "g", "i"}));
  EXPECT_EQ(Statement("SELECT f(a, b) FROM rpd.op AS x WHERE y = 'FROM z' -- FROM w").tables(), Names{"op"});
  EXPECT_EQ(Statement("WITH t AS (SELECT a FROM b), u(v) AS NOT MATERIALIZED (SELECT 1) SELECT * FROM t, u").tables(),
            Names{"b"});
  EXPECT_TRUE(Statement("SELECT 1 FROM a, b").joins());
  EXPECT_FALSE(Statement("SELECT f(a, b), c FROM (SELECT a, b FROM d)").joins());
}

TEST(StatementTest, SchemasQualifyNames) {
  const Statement statement("SELECT rpd.op.start, 'rpd.x', \"RPD\" . [top].y FROM rpd.op, a.rpd.b");
  EXPECT_TRUE(statement.names_schema("rpd"));
  EXPECT_FALSE(statement.names_schema("top"));
  EXPECT_EQ(statement.without_schema("rpd"), "SELECT op.start, 'rpd.x', [top].y FROM op, a.rpd.b");
  EXPECT_TRUE(statement.mentions("TOP"));
  EXPECT_FALSE(statement.mentions("x"));
}

}  // namespace
}  // namespace tacho::query
