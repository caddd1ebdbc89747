// Every engine against plain SQLite over materialised tables: the statements of tests/query/statements, whose rows are
// written down, and generated ones, whose rows only have to agree. The format of the files is described in
// tests/query/statements/README.md.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "generator.h"
#include "inputs.h"
#include "reference.h"

namespace tacho::query {
namespace {

// A file opened in one dialect, with its reference.
struct Subject {
  std::string name;
  std::unique_ptr<Session> session;
  std::unique_ptr<Reference> reference;
  std::vector<std::string> tables;
};

class Subjects {
 public:
  Subjects() {
    make_plain_trace(folder_ / "plain.tacho");
    make_wild_trace(folder_ / "wild.tacho", 7);
    make_empty_trace(folder_ / "empty.tacho");
    make_rpd(folder_ / "plain.tacho", folder_ / "plain2.rpd", 2);
    make_rpd(folder_ / "plain.tacho", folder_ / "plain3.rpd", 3);
    make_rocpd(folder_ / "plain.tacho", folder_ / "plain.db");
  }
  /// `file`: "plain.tacho" and so on; dialect "" = the file's own.
  Subject& get(const std::string& file, const std::string& dialect) {
    const std::string key = file + " " + dialect;
    if (const auto found = subjects_.find(key); found != subjects_.end()) return found->second;
    Subject& subject = subjects_[key];
    subject.name = key;
    auto session = Session::open(folder_ / file, dialect);
    EXPECT_TRUE(session) << session.error().message;
    subject.session = std::move(*session);
    const bool in_place = !file.ends_with(".tacho") && dialect.empty();
    subject.tables = names_of(*subject.session);
    subject.reference =
        in_place ? Reference::of_database(folder_ / file, subject.tables) : Reference::of_session(*subject.session);
    return subject;
  }
  static Subjects& all() {
    if (made() == nullptr) made() = std::make_unique<Subjects>();
    return *made();
  }
  /// Removes the files of all().
  static void forget() { made().reset(); }

 private:
  static std::unique_ptr<Subjects>& made() {
    static std::unique_ptr<Subjects> subjects;
    return subjects;
  }

  Folder folder_;
  std::map<std::string, Subject> subjects_;
};

// The difference between the two answers; "" = none.
std::string difference(const Answer& got, const Answer& expected, bool ordered) {
  if (!got.error.empty() || !expected.error.empty()) {
    if (got.error.empty() != expected.error.empty())
      return "error \"" + got.error + "\", expected \"" + expected.error + "\"";
    return {};
  }
  if (got.columns != expected.columns) {
    std::string names;
    for (const std::string& name : got.columns) names += name + " | ";
    for (const std::string& name : expected.columns) names += "\n  " + name;
    return "columns " + names;
  }
  std::vector<std::string> left = got.rows, right = expected.rows;
  if (!ordered) {
    std::sort(left.begin(), left.end());
    std::sort(right.begin(), right.end());
  }
  if (left == right) return {};
  size_t at = 0;
  while (at < left.size() && at < right.size() && left[at] == right[at]) ++at;
  return std::to_string(left.size()) + " rows, expected " + std::to_string(right.size()) +
         "; the first to differ: " + (at < left.size() ? left[at] : "none") + ", expected " +
         (at < right.size() ? right[at] : "none");
}

std::string engine_of(Subject& subject, const std::string& sql) {
  const auto explanation = subject.session->explain(sql);
  return explanation ? explanation->engine : "none";
}

std::vector<JoinPair> joins_of(const std::string& dialect) {
  if (dialect == "tacho")
    return {{"dispatch", "dim", "kernel", "id"},
            {"dispatch", "track", "track", "id"},
            {"api", "dim", "function", "id"},
            {"api", "track", "track", "id"},
            {"track", "process", "process", "id"},
            {"track", "device", "device", "id"},
            {"copy", "dim", "copy_shape", "id"},
            {"marker", "dim", "label", "id"},
            {"dispatch", "correlation", "api", "id"},
            {"sample", "dim", "stack", "id"},
            {"stack", "frame", "frame", "id"},
            {"reading", "track", "track", "id"},
            {"api", "correlation", "dispatch", "correlation"}};
  if (dialect == "rocpd")
    return {{"rocpd_region", "name_id", "rocpd_string", "id"},
            {"rocpd_kernel_dispatch", "kernel_id", "rocpd_info_kernel_symbol", "id"},
            {"rocpd_kernel_dispatch", "event_id", "rocpd_event", "id"}};
  return {{"rocpd_api_ops", "api_id", "rocpd_api", "id"},  {"rocpd_api_ops", "op_id", "rocpd_op", "id"},
          {"rocpd_api_ops", "api_id", "api", "id"},        {"rocpd_api_ops", "op_id", "op", "id"},
          {"rocpd_op", "opType_id", "rocpd_string", "id"}, {"rocpd_api", "apiName_id", "rocpd_string", "id"},
          {"rocpd_kernelapi", "api_ptr_id", "api", "id"},  {"op", "queueId", "api", "tid"}};
}

// Statements with their rows

// One `query` of a .test file.
struct Query {
  size_t line = 0;
  std::string file, dialect, engine, sql;
  bool ordered = false;
  std::vector<std::string> rows;  // or one line that begins with "error"
};

// Reads a .test file; `visit` gets every query and may change its rows, which are in the text that comes back.
template <typename Visit>
std::string each_query(const std::string& path, Visit visit) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::string file, dialect, text;
  for (size_t i = 0; i < lines.size(); ++i) {
    std::istringstream words(lines[i]);
    std::string first;
    words >> first;
    text += lines[i] + "\n";
    if (first == "file") {
      dialect.clear();
      words >> file >> dialect;
    }
    if (first != "query") continue;
    Query query{.line = i + 1, .file = file, .dialect = dialect, .engine = {}, .sql = {}, .rows = {}};
    for (std::string word; words >> word;) (word == "ordered" ? query.ordered = true : (query.engine = word, true));
    for (++i; i < lines.size() && !lines[i].empty() && lines[i] != "----"; ++i)
      query.sql += (query.sql.empty() ? "" : "\n") + lines[i];
    if (i < lines.size() && lines[i] == "----")
      for (++i; i < lines.size() && !lines[i].empty(); ++i) query.rows.push_back(lines[i]);
    visit(query);
    text += query.sql + "\n----\n";
    for (const std::string& row : query.rows) text += row + "\n";
    if (i < lines.size()) text += "\n";
  }
  return text;
}

std::vector<std::string> statement_files() {
  std::vector<std::string> files;
  const char* const source = std::getenv("TACHO_SOURCE");
  const std::string folder = std::string(source != nullptr ? source : ".") + "/tests/query/statements";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".test") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

class Statements : public testing::Test {
 protected:
  static void TearDownTestSuite() { Subjects::forget(); }
};

TEST_F(Statements, GiveTheRowsThatAreWrittenDown) {
  const bool update = std::getenv("TACHO_UPDATE_STATEMENTS") != nullptr;
  size_t queries = 0;
  for (const std::string& path : statement_files()) {
    const std::string text = each_query(path, [&](Query& query) {
      ++queries;
      Subject& subject = Subjects::all().get(query.file, query.dialect);
      const std::string where = path.substr(path.rfind('/') + 1) + ":" + std::to_string(query.line) + ": " + query.sql;
      // Names of the dialect's own schema are SQLite's main one.
      std::string plain = query.sql;
      for (const std::string schema : {"tacho.", "rpd.", "rocpd."})
        for (size_t at; (at = plain.find(schema)) != std::string::npos && (at == 0 || plain[at - 1] == ' ');)
          plain.erase(at, schema.size());
      const Answer expected = subject.reference->ask(plain), got = answer_of(*subject.session, query.sql);
      std::vector<std::string> rows =
          expected.error.empty() ? expected.rows : std::vector<std::string>{"error " + expected.error};
      if (!query.ordered) std::sort(rows.begin(), rows.end());
      if (update) query.rows = rows;
      EXPECT_EQ(query.rows, rows) << where << "\n  plain SQLite gives other rows";
      const std::string wrong = difference(got, expected, query.ordered);
      EXPECT_EQ(wrong, "") << where;
      if (!query.engine.empty()) {
        EXPECT_EQ(engine_of(subject, query.sql), query.engine) << where;
      }
    });
    if (update) std::ofstream(path) << text;
  }
  EXPECT_GT(queries, 200u);
}

// Generated statements

struct Case {
  const char *file, *dialect;
};

class GeneratedStatements : public testing::TestWithParam<Case> {
 protected:
  static void TearDownTestSuite() { Subjects::forget(); }
};

TEST_P(GeneratedStatements, GiveTheRowsThatSqliteGives) {
  const auto [file, dialect] = GetParam();
  Subject& subject = Subjects::all().get(file, dialect);
  const std::string names(subject.session->dialect());
  // More statements: TACHO_STATEMENTS=100000. Another seed: TACHO_SEED.
  const char* const count = std::getenv("TACHO_STATEMENTS");
  const char* const seed = std::getenv("TACHO_SEED");
  Generator generator(*subject.reference, subject.tables, joins_of(names),
                      seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1);
  std::map<std::string, int> engines;
  int valid = 0, wrong = 0;
  const int all = count != nullptr ? std::atoi(count) : 400;
  for (int i = 0; i < all && wrong < 10; ++i) {
    const Generated one = generator.next();
    const Answer expected = subject.reference->ask(one.sql);
    const Answer got = answer_of(*subject.session, one.sql);
    if (expected.error.empty()) {
      ++valid;
      ++engines[engine_of(subject, one.sql)];
    }
    // Whether a sum overflows on its way depends on the order of the rows, which is SQLite's own.
    if (expected.error == "integer overflow" || got.error.find("integer overflow") != std::string::npos) continue;
    const std::string wrong_with = difference(got, expected, one.ordered);
    if (wrong_with.empty()) continue;
    ++wrong;
    ADD_FAILURE() << subject.name << ", " << engine_of(subject, one.sql) << ": " << one.sql << "\n  " << wrong_with;
  }
  if (count == nullptr && wrong == 0) {
    EXPECT_GT(valid, all * 8 / 10) << "too few statements that SQLite takes";
    if (std::string(file) != "plain.db") {
      EXPECT_GT(engines["columns"], all / 5);
    }
  }
}

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  std::string name = std::string(info.param.file) + "_" + info.param.dialect;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, GeneratedStatements,
                         testing::Values(Case{"plain.tacho", "tacho"}, Case{"plain.tacho", "rpd"},
                                         Case{"plain.tacho", "rocpd"}, Case{"wild.tacho", "tacho"},
                                         Case{"wild.tacho", "rpd"}, Case{"wild.tacho", "rocpd"},
                                         Case{"empty.tacho", "tacho"}, Case{"empty.tacho", "rpd"},
                                         Case{"plain2.rpd", ""}, Case{"plain3.rpd", ""}, Case{"plain2.rpd", "tacho"},
                                         Case{"plain.db", ""}),
                         name_of_case);

}  // namespace
}  // namespace tacho::query
