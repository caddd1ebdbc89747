// Answers as text, CSV and JSON; sections and documents of several of them.
#include "report/answer.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <set>
#include <sstream>

#include "report/sections.h"
#include "report/value.h"

namespace tacho::report {
namespace {

Answer kernels() {
  Answer answer;
  answer.id = "kernels";
  answer.columns = {{"name", "Name"},
                    {"calls", "Calls", Unit::kCount, 1},
                    {"total_ns", "Time", Unit::kNs},
                    {"percent", "%", Unit::kPercent},
                    {"min_ns", "Min", Unit::kNs, 2},
                    {"max_ns", "Max", Unit::kNs, 2},
                    {.name = "copied", .title = "Copied", .unit = Unit::kBytes, .leave_out = 3, .dash_zero = true},
                    {"p", "", Unit::kProbability},
                    {"", "GB/s", Unit::kNumber, 4}};
  answer.shown = {2, 3, 1, 4, 5, 6, 8, 0};
  answer.rows = {{std::string("gemm"), int64_t{3}, int64_t{1'530'000}, 76.25, int64_t{812}, int64_t{1'500'000},
                  int64_t{1536}, 0.0004, 1.5},
                 {std::string("copy"), int64_t{1}, Cell{}, Cell{}, Cell{}, Cell{}, int64_t{0}, Cell{}, Cell{}}};
  return answer;
}

std::string text_of(const Answer& answer, size_t width, std::vector<std::string>* left_out = nullptr) {
  TextStyle style;
  style.width = width;
  style.left_out = left_out;
  return to_text(readable_table(answer), style);
}

size_t widest(const std::string& text) {
  size_t most = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) most = std::max(most, display_width(line));
  return most;
}

TEST(Answer, ProgramsGetExactValuesUnderNames) {
  EXPECT_EQ(to_csv(exact_table(kernels())), "name,calls,total_ns,percent,min_ns,max_ns,copied,p\n"
                                            "gemm,3,1530000,76.25,812,1500000,1536,0.0004\n"
                                            "copy,1,,,,,0,\n");
  EXPECT_EQ(
      JsonValue::table(kernels()).text(),
      R"({"id": "kernels","title": "","columns": ["name","calls","total_ns","percent","min_ns","max_ns","copied","p"],)"
      "\"rows\": [\n[\"gemm\",3,1530000,76.25,812,1500000,1536,0.0004],\n[\"copy\",1,null,null,null,null,0,null]]}");
}

TEST(Answer, PeopleGetUnitsUnderTitlesAndADashForUnknown) {
  EXPECT_EQ(text_of(kernels(), 0), "   Time     %  Calls     Min      Max    Copied  GB/s  Name\n"
                                   "1.53 ms  76.2      3  812 ns  1.50 ms  1.50 KiB  1.50  gemm\n"
                                   "      —     —      1       —        —         —     —  copy\n");
}

TEST(Answer, ColumnsLeaveInTheirOrderAndPairsTogether) {
  for (const auto& [width, titles] : std::vector<std::pair<size_t, std::vector<std::string>>>{
           {80, {}}, {58, {"GB/s"}}, {52, {"GB/s", "Copied"}}, {40, {"GB/s", "Copied", "Max", "Min"}}}) {
    std::vector<std::string> left_out;
    Answer answer = kernels();
    answer.rows[0][0] = std::string(60, 'k');
    const std::string text = text_of(answer, width, &left_out);
    EXPECT_LE(widest(text), width) << text;
  }
  EXPECT_EQ(left_out_sentence({"GB/s", "Max", "Min"}, "--output-format csv"),
            "Min, Max, GB/s left out: widen the terminal, or use --output-format csv");
  EXPECT_EQ(left_out_sentence({}, "--output-format csv"), "");
}

TEST(Answer, TheHintOffersCsvForColumnsThatCsvHas) {
  Answer answer;
  answer.columns = {{.name = "Name", .title = "Name", .whole = true},
                    {"", "% of GPU", Unit::kPercent, 2},
                    {"Calls", "Calls", Unit::kCount, 1}};
  answer.rows = {{std::string(200, 'k'), 12.5, int64_t{3}}};
  int master = -1, terminal = -1;
  ASSERT_EQ(::openpty(&master, &terminal, nullptr, nullptr, nullptr), 0);
  const int standard = ::dup(STDOUT_FILENO);
  ::dup2(terminal, STDOUT_FILENO);
  ::setenv("COLUMNS", "80", 1);
  show(answer, {});
  std::fflush(stdout);
  ::unsetenv("COLUMNS");
  ::dup2(standard, STDOUT_FILENO);
  char bytes[4096];
  const ssize_t size = ::read(master, bytes, sizeof(bytes));
  for (const int descriptor : {master, terminal, standard}) ::close(descriptor);
  ASSERT_GT(size, 0);
  const std::string text(bytes, static_cast<size_t>(size));
  EXPECT_NE(text.find("Calls left out: widen the terminal, or use --output-format csv"), std::string::npos) << text;
  EXPECT_NE(text.find("% of GPU left out: widen the terminal"), std::string::npos) << text;
  EXPECT_EQ(text.find("% of GPU left out: widen the terminal, or"), std::string::npos) << text;
}

TEST(Answer, ColumnsOfOneRankGoFromTheRight) {
  Answer answer;
  for (const char* name : {"a", "b", "c", "d"}) answer.columns.push_back({name, name, Unit::kAny});
  answer.rows = {{int64_t{1234567890}, int64_t{1234567890}, std::string(40, 'x'), int64_t{1234567890}}};
  std::vector<std::string> left_out;
  EXPECT_LE(widest(text_of(answer, 40, &left_out)), 40u);
  EXPECT_EQ(left_out, std::vector<std::string>({"d"}));
}

TEST(Answer, FitsAndTellsNamesApartThatDifferAtTheirEnd) {
  Answer answer = kernels();
  answer.rows.clear();
  std::set<std::string> names;
  for (int i = 0; i < 12; ++i) {
    const std::string name =
        "void at::native::elementwise_kernel<128, 4>(" + std::string(90, 'a') + std::to_string(i) + ")";
    answer.rows.push_back({name, int64_t{i}, int64_t{1} << i, 1.0, int64_t{1}, int64_t{2}, int64_t{4096}, 0.5, 1.0});
  }
  for (const size_t width : {80, 120, 200}) {
    std::vector<std::string> left_out;
    const std::string text = text_of(answer, width, &left_out);
    EXPECT_LE(widest(text), width) << text;
    std::set<std::string> seen;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) seen.insert(line.substr(line.rfind("  ")));
    EXPECT_EQ(seen.size(), 13U) << text;  // the header's and 12 names
    EXPECT_EQ(left_out.empty(), width > 80) << text;
  }
}

TEST(Answer, UnitsOfPeople) {
  Answer answer;
  answer.columns = {{"d", "d", Unit::kNs},          {"b", "b", Unit::kBytes}, {"p", "p", Unit::kProbability},
                    {"q", "q", Unit::kProbability}, {"s", "s", Unit::kShare}, {"n", "n", Unit::kNumber}};
  answer.rows = {{int64_t{-1530}, -2048.0, 0.0001, 0.25, 0.5, std::nan("")}};
  EXPECT_EQ(text_of(answer, 0), "       d          b        p      q      s  n\n"
                                "-1.53 us  -2.00 KiB  < 0.001  0.250  50.00  —\n");
  EXPECT_EQ(to_string(Unit::kShare), "share");
  EXPECT_EQ(to_string(Unit::kAny), "any");
}

TEST(Paragraph, FirstAndFurtherLinesFit) {
  EXPECT_EQ(paragraph("one two three four", 10, 2, 4), "  one two\n    three\n    four");
  EXPECT_EQ(paragraph("one two\nthree", 0, 1, 4), " one two\n three");
  EXPECT_EQ(paragraph("a-word-longer-than-the-line b", 10), "a-word-longer-than-the-line\nb");
  const Screen narrow{.terminal = true, .width = 12};
  EXPECT_EQ(narrow.sentence("one two three"), "one two\n  three\n");
  EXPECT_EQ(narrow.sentence("    one two three"), "    one two\n    three\n");
  EXPECT_EQ(Screen{}.sentence("one two three four five six seven eight nine ten eleven twelve thirteen fourteen"),
            "one two three four five six seven eight nine ten eleven twelve thirteen fourteen\n");
}

TEST(Sections, HeadingsTablesAndSentences) {
  Sections text({.width = 47, .indent = 2});
  text.heading("Kernels");
  EXPECT_EQ(text.table(kernels(), 1), 1U);
  text.sentence("Times are those of the device, in a sentence that is long.");
  text.heading("End");
  EXPECT_EQ(text.take(), "Kernels\n"
                         "     Time     %  Calls     Min      Max  Name\n"
                         "  1.53 ms  76.2      3  812 ns  1.50 ms  gemm\n"
                         "  Copied, GB/s left out at 47 columns\n"
                         "  Times are those of the device, in a sentence\n"
                         "    that is long.\n"
                         "\nEnd\n");
}

TEST(JsonValue, Documents) {
  JsonValue list = JsonValue::lines();
  list.add(JsonValue::object({{"a", 1}, {"b", true}, {"c", JsonValue()}}));
  list.add(2.5);
  JsonValue object = JsonValue::object({{"text", "x\"y"}, {"list", std::move(list)}});
  object.set("words", JsonValue::list_of(std::vector<std::string>{"p", "q"}));
  EXPECT_EQ(object.text(),
            "{\"text\": \"x\\\"y\",\"list\": [\n{\"a\": 1,\"b\": true,\"c\": null},\n2.5],\"words\": [\"p\",\"q\"]}");
}

TEST(JsonValue, LongListsGoOutInPieces) {
  std::vector<std::string> pieces;
  DocumentStream out([&](std::string_view piece) { pieces.emplace_back(piece); });
  out.set("schema", "x/1");
  out.begin_lines("rows");
  for (int i = 0; i < 3; ++i) out.add(std::string(700'000, static_cast<char>('a' + i)));
  out.end_lines();
  out.begin_lines("none");
  out.end_lines();
  out.end();
  EXPECT_EQ(pieces.size(), 2U);
  std::string all;
  for (const std::string& piece : pieces) all += piece;
  EXPECT_EQ(all, "{\"schema\": \"x/1\",\"rows\": [\n\"" + std::string(700'000, 'a') + "\",\n\"" +
                     std::string(700'000, 'b') + "\",\n\"" + std::string(700'000, 'c') + "\"],\"none\": []}\n");
}

}  // namespace
}  // namespace tacho::report
