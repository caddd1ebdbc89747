// What a stream of rows does with values whose types show late (query/sql/arrow_answer.h). tests/e2e/arrow_test.py
// reads whole streams.
#include "query/sql/arrow_answer.h"

#include <gtest/gtest.h>

namespace tacho::query {
namespace {

using report::Cell;

// The bytes of a stream of one column, whose values a run of the statement gives by their numbers.
class OneColumn {
 public:
  explicit OneColumn(bool settled = false)
      : rows_({[this](std::string_view bytes) { return taken_ += bytes, listening_; }}, settled) {}

  void run(size_t count, const std::function<Cell(size_t)>& value, const std::string& declared = "") {
    const RowSink sink = rows_.sink();
    const std::string names[] = {"a"}, types[] = {declared};
    sink.columns(names);
    sink.declared(types);
    for (size_t i = 0; i < count; ++i) {
      const Cell row[] = {value(i)};
      if (!sink.row(row)) break;
    }
  }
  ArrowRows& rows() { return rows_; }
  const std::string& taken() const { return taken_; }
  void stop_listening() { listening_ = false; }
  Status end() { return rows_.end(notes); }
  ArrowNotes notes;

 private:
  std::string taken_;
  bool listening_ = true;
  ArrowRows rows_;
};

constexpr size_t kMany = 3 * ArrowRows::kRows;
Cell number(size_t i) {
  return static_cast<int64_t>(i);
}

TEST(ArrowAnswer, FewRowsNeedOneRun) {
  OneColumn stream;
  stream.run(10, number);
  EXPECT_FALSE(stream.rows().again());
  ASSERT_TRUE(stream.end());
  EXPECT_TRUE(stream.taken().ends_with(std::string_view("\xff\xff\xff\xff\0\0\0\0", 8)));
}

TEST(ArrowAnswer, ManyRowsNeedTwoRunsUnlessTheirTypesAreSettled) {
  OneColumn open, settled(true);
  open.run(kMany, number, "INTEGER");
  EXPECT_TRUE(open.taken().empty());  // nothing goes out before the types are known
  EXPECT_TRUE(open.rows().again());
  open.run(kMany, number);
  ASSERT_TRUE(open.end());
  settled.run(kMany, number, "INTEGER");
  EXPECT_FALSE(settled.rows().again());
  ASSERT_TRUE(settled.end());
  EXPECT_EQ(open.taken(), settled.taken());
}

TEST(ArrowAnswer, AnotherSecondRunIsAnError) {
  OneColumn stream;
  stream.run(kMany, number);
  ASSERT_TRUE(stream.rows().again());
  stream.run(kMany, [](size_t i) { return i == kMany - 1 ? Cell("late") : number(i); });
  const Status done = stream.end();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "column \"a\" gave other types of values when the statement ran a second time");
}

TEST(ArrowAnswer, TheRunEndsWhenNobodyReads) {
  OneColumn stream(true);
  stream.stop_listening();
  size_t given = 0;
  stream.run(
      kMany, [&](size_t i) { return ++given, number(i); }, "INTEGER");
  EXPECT_LE(given, ArrowRows::kRows);
  EXPECT_TRUE(stream.end());
}

TEST(ArrowAnswer, CountsTextsThatAreNotUtf8) {
  OneColumn stream;
  stream.run(3, [](size_t i) { return Cell(std::string(i == 1 ? "fine" : "\xff")); });
  ASSERT_TRUE(stream.end());
  ASSERT_EQ(stream.notes.sentences().size(), 1U);
  EXPECT_EQ(stream.notes.sentences()[0], "2 texts are not valid UTF-8: U+FFFD stands for each wrong byte");
}

}  // namespace
}  // namespace tacho::query
