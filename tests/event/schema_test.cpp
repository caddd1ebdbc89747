// The code generated from event/tables.def and event/enums.def.
#include "event/schema.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tacho::event {
namespace {

TEST(Tables, HaveTheNumbersThatFilesHold) {
  EXPECT_EQ(static_cast<int>(Table::kDispatch), 0);
  EXPECT_EQ(static_cast<int>(Table::kSample), 8);
  EXPECT_EQ(static_cast<int>(Table::kReading), 9);
  EXPECT_EQ(static_cast<int>(Table::kNote), 14);
  EXPECT_EQ(static_cast<int>(Table::kString), 32);
  EXPECT_EQ(static_cast<int>(Table::kKernel), 38);
  EXPECT_EQ(static_cast<int>(Table::kProperty), 48);
}

TEST(Tables, DescribeThemselves) {
  std::set<std::string_view> names;
  size_t facts = 0;
  for (const TableInfo& info : all_tables()) {
    EXPECT_EQ(&table_info(info.table), &info);
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.text.empty());
    EXPECT_LE(info.columns.size(), kMaxColumns);
    facts += is_fact(info.table);
    std::set<std::string_view> columns;
    for (const Column& column : info.columns) {
      EXPECT_TRUE(columns.insert(column.name).second) << info.name << '.' << column.name;
      EXPECT_EQ(column.type == Type::kEnum, column.enumeration != nullptr) << info.name << '.' << column.name;
      EXPECT_EQ(column.type == Type::kRow, column.target != Table::kEnd) << info.name << '.' << column.name;
      EXPECT_FALSE(is_fact(column.target));
    }
  }
  EXPECT_EQ(facts, kFactTables);
}

TEST(Tables, SayWhichAreTimed) {
  for (const TableInfo& info : all_tables()) {
    EXPECT_EQ(info.timed, is_timed(info.table)) << info.name;
    const bool begins_so = info.columns.size() >= 5 && info.columns[1].name == "start" &&
                           info.columns[2].name == "duration" && info.columns[4].name == "correlation";
    EXPECT_EQ(info.timed, begins_so) << info.name;
  }
  EXPECT_TRUE(is_timed(Table::kSample));
  EXPECT_FALSE(is_timed(Table::kReading));
  EXPECT_FALSE(is_timed(Table::kKernel));
}

TEST(Columns, KnowTheirEnumeration) {
  const Column& direction = table_info(Table::kCopyShape).columns[column::CopyShape::direction];
  EXPECT_EQ(direction.enumeration, &enumeration<CopyDirection>());
  const Column& table = table_info(Table::kLoss).columns[column::Loss::table];
  EXPECT_EQ(table.enumeration, &enumeration<Table>());
  EXPECT_EQ(table_info(Table::kKernel).columns[column::Kernel::name].enumeration, nullptr);
}

TEST(Enumerations, GiveTheirTextsAndTakeThem) {
  std::set<std::string_view> names;
  for (const Enumeration* one : all_enumerations()) {
    EXPECT_TRUE(names.insert(one->name).second) << one->name;
    std::set<std::string_view> texts;
    for (const Enumerator& value : one->values) {
      EXPECT_TRUE(texts.insert(value.text).second) << one->name << " has two of " << value.text;
      EXPECT_EQ(one->text(value.code), value.text);
      EXPECT_EQ(one->code(value.text), value.code);
      EXPECT_EQ(one->known(value.code), value.code);
    }
    EXPECT_EQ(one->known(one->unknown), one->unknown) << one->name;
    for (const int64_t code : {int64_t{-1}, int64_t{31}, int64_t{255}, kUnknown}) {
      EXPECT_EQ(one->known(code), one->unknown) << one->name << ' ' << code;
      EXPECT_EQ(one->text(code), one->text(one->unknown)) << one->name << ' ' << code;
    }
    EXPECT_FALSE(one->code("no such text"));
  }
  EXPECT_EQ(to_string(Domain::kHipRuntime), "hip");
  EXPECT_EQ(to_string(static_cast<Domain>(200)), "unknown");
  EXPECT_EQ(from_string<LossReason>("--max-size reached"), LossReason::kMaxSize);
  EXPECT_EQ(from_string<LossReason>("nothing"), std::nullopt);
  EXPECT_EQ(from_cell<FrameKind>(1), FrameKind::kPython);
  EXPECT_EQ(from_cell<FrameKind>(77), FrameKind::kUnknown);
  EXPECT_EQ(from_cell<PayloadKind>(-3), PayloadKind::kNone);
  EXPECT_EQ(enumeration<Table>().text(static_cast<int64_t>(Table::kDispatch)), "dispatch");
  EXPECT_EQ(enumeration<Table>().text(20), "other");
}

TEST(Rows, UnsetColumnsAreNoneOrUnknown) {
  const row::Kernel kernel{.name = 7, .grid_x = 64};
  const auto cells = event::cells(kernel);
  ASSERT_EQ(cells.size(), size_t{column::Kernel::kCount});
  EXPECT_EQ(cells[column::Kernel::name], 7);
  EXPECT_EQ(cells[column::Kernel::grid_x], 64);
  EXPECT_EQ(cells[column::Kernel::kind], static_cast<int64_t>(DispatchKind::kKernel));
  EXPECT_EQ(cells[column::Kernel::grid_y], kUnknown);
  EXPECT_EQ(cells[column::Kernel::registers], kUnknown);
  EXPECT_EQ(cells[column::Kernel::shared_static], kUnknown);
  EXPECT_EQ(cells[column::Kernel::offset_x], 0);
  EXPECT_EQ(cells[column::Kernel::cluster_z], 0);
  EXPECT_EQ(cells[column::Kernel::graph], 0);

  const row::Dispatch dispatch{.track = 1};
  EXPECT_EQ(event::cells(dispatch)[column::Dispatch::start], kUnknown);
  EXPECT_EQ(event::cells(dispatch)[column::Dispatch::dim], 0);
  EXPECT_EQ(event::cells(dispatch)[column::Dispatch::correlation], 0);
  EXPECT_EQ(event::cells(row::Property{})[column::Property::table], static_cast<int64_t>(Table::kEnd));
  EXPECT_EQ(event::cells(row::Property{})[column::Property::row], 0);
  EXPECT_EQ(event::cells(row::Reading{})[column::Reading::value], kUnknown);
}

// The members of every row type, in the order of its columns, match the columns' data.
template <typename R>
void check_row() {
  const TableInfo& info = table_info(R::kTable);
  ASSERT_EQ(info.columns.size(), R::kColumns);
  const R unset{};
  std::array<int64_t, R::kColumns> cells;
  for (size_t i = 0; i < R::kColumns; ++i) {
    EXPECT_EQ(event::cells(unset)[i], info.columns[i].unset) << info.name << '.' << info.columns[i].name;
    cells[i] = static_cast<int64_t>(i) + 100;
  }
  const R made = row_of<R>(cells);
  for (size_t i = 0; i < R::kColumns; ++i) EXPECT_EQ(event::cells(made)[i], cells[i]);
  EXPECT_EQ(made, row_of<R>(event::cells(made)));
}

TEST(Rows, AreTheirCells) {
#define TACHO_FACT(name, ...) check_row<row::name>();
#define TACHO_DIMENSION(name, ...) \
  if constexpr (DimensionRow<row::name>) check_row<row::name>();
#include "event/tables.def"
}

TEST(Rows, AreOfFactsOrOfDimensions) {
  static_assert(FactRow<row::Note> && !DimensionRow<row::Note> && !TimedRow<row::Note>);
  static_assert(TimedRow<row::Sample>);
  static_assert(DimensionRow<row::Kernel> && !FactRow<row::Kernel>);
  static_assert(!DimensionRow<row::String>, "strings are not made of columns");
  static_assert(!Row<int64_t>);
  // An enum column takes its own enum and no number.
  static_assert(std::is_convertible_v<CopyKind, Code<CopyKind>>);
  static_assert(!std::is_convertible_v<int64_t, Code<CopyKind>>);
  static_assert(!std::is_convertible_v<MemoryKind, Code<CopyKind>>);
}

TEST(Schema, HasOneHash) {
  EXPECT_EQ(schema_hash(), schema_hash());
  EXPECT_NE(schema_hash(), 0u);
}

}  // namespace
}  // namespace tacho::event
