// Number, text and table formatting.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "report/table.h"
#include "report/text.h"

namespace tacho::report {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Text, Numbers) {
  EXPECT_EQ(format_fixed(163840, 2), "163840.00");
  EXPECT_EQ(format_fixed(-0.001, 2), "0.00");
  EXPECT_EQ(format_fixed(kInf, 2), "inf");
  EXPECT_EQ(format_fixed(-kInf, 2), "-inf");
  EXPECT_EQ(format_si(999, 2), "999.00");
  EXPECT_EQ(format_si(163840, 2), "163.84k");
  EXPECT_EQ(format_si(13191687616.0, 2), "13.19G");
  EXPECT_EQ(format_si(-2500, 1), "-2.5k");
  EXPECT_EQ(format_duration(812), "812 ns");
  EXPECT_EQ(format_duration(1530), "1.53 us");
  EXPECT_EQ(format_duration(20.4e6), "20.40 ms");
  EXPECT_EQ(format_duration(3.21e9), "3.21 s");
  EXPECT_EQ(format_duration(125e9), "2 min 05 s");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
}

TEST(Text, WidthCleaningAndCutting) {
  EXPECT_EQ(display_width("a→b™"), 4U);
  EXPECT_EQ(display_width("日本"), 4U);
  EXPECT_EQ(clean("a\x1b[31mb\r\n"), "a?[31mb? ");
  EXPECT_EQ(clean("\xff\xfeok"), "\xef\xbf\xbd\xef\xbf\xbdok");
  EXPECT_EQ(shortened("kernel<float>", 8), "kernel<…");
  EXPECT_EQ(shortened("short", 8), "short");
  EXPECT_EQ(padded_left("→", 3), "  →");
  EXPECT_EQ(wrapped("one two three", 7, 2), "one two\n  three");
  // A number and its unit stay together.
  EXPECT_EQ(wrapped("could save 9.6 ms (5.9 %) at most", 15), "could save\n9.6 ms (5.9 %)\nat most");
  EXPECT_EQ(wrapped("37 % (31 % to 42 %; threshold 20 %)", 14), "37 % (31 % to\n42 %;\nthreshold\n20 %)");
  EXPECT_EQ(wrapped("rank 3 made them wait", 6), "rank 3\nmade\nthem\nwait") << "no unit";
  EXPECT_EQ(wrapped("12 s", 2), "12 s") << "narrower than the word";
}

PrintedTable sample() {
  PrintedTable table;
  table.columns = {{"Metric_ID"}, {"Metric"}, {"Avg"}, {"Unit"}, {"Peak"}, {"Pct of Peak"}};
  table.rows = {
      {std::string("2.1.2"), std::string("MFMA FLOPs (BF16)"), 0.0, std::string("Gflop"), 1961164.80, 0.0},
      {std::string("2.1.3"), std::string("MFMA FLOPs (F16)"), 4303.42, std::string("Gflop"), 1961164.80, 0.2194}};
  return table;
}

// The grid of the users' document, byte for byte.
TEST(Table, BoxGridIsTheOneInTheDocuments) {
  TextStyle style;
  style.border = Border::kBox;
  EXPECT_EQ(to_text(sample(), style),
            "╒═════════════╤═══════════════════╤═════════╤════════╤════════════╤═══════════════╕\n"
            "│ Metric_ID   │ Metric            │     Avg │ Unit   │       Peak │   Pct of Peak │\n"
            "╞═════════════╪═══════════════════╪═════════╪════════╪════════════╪═══════════════╡\n"
            "│ 2.1.2       │ MFMA FLOPs (BF16) │    0.00 │ Gflop  │ 1961164.80 │          0.00 │\n"
            "├─────────────┼───────────────────┼─────────┼────────┼────────────┼───────────────┤\n"
            "│ 2.1.3       │ MFMA FLOPs (F16)  │ 4303.42 │ Gflop  │ 1961164.80 │          0.22 │\n"
            "╘═════════════╧═══════════════════╧═════════╧════════╧════════════╧═══════════════╛\n");
}

TEST(Table, PlainAlignsAndFits) {
  TextStyle style;
  const std::string full = to_text(sample(), style);
  EXPECT_NE(full.find("  1961164.80 "), std::string::npos) << full;
  style.width = 64;
  PrintedTable table = sample();
  table.columns[1].shrink = true;
  const std::string fitted = to_text(table, style);
  EXPECT_NE(fitted.find("1.96M"), std::string::npos) << fitted;
  for (size_t from = 0; from < fitted.size();) {
    const size_t to = fitted.find('\n', from);
    EXPECT_LE(display_width(fitted.substr(from, to - from)), 64U) << fitted;
    from = to + 1;
  }
}

TEST(Table, IntegersKeepTheirDigitsAtAnyWidth) {
  PrintedTable table;
  table.columns = {{"id"}, {"bytes"}, {"time"}, {"name"}};
  for (PrintedColumn& column : table.columns) column.shrink = true;
  table.rows = {{int64_t{1'234'567}, int64_t{-157'178'000}, 2'500'000.0, std::string(40, 'k')}};
  TextStyle style;
  style.width = 40;
  const std::string text = to_text(table, style);
  EXPECT_NE(text.find("1234567  -157178000  2.50M"), std::string::npos) << text;
  style.scaled = false;
  EXPECT_NE(to_text(table, style).find("1234567  -157178000  2500000.00"), std::string::npos) << to_text(table, style);
}

TEST(Table, MissingValuesAndLongNames) {
  PrintedTable table;
  table.columns = {{"name"}, {"value"}};
  table.columns[0].wrap = 10;
  table.columns[0].max_lines = 2;
  table.rows = {{std::string("abcdefghijklmnopqrstuvwxyz"), Cell{}}, {std::string("b"), 1.5}};
  TextStyle style;
  style.border = Border::kBox;
  const std::string box = to_text(table, style);
  EXPECT_NE(box.find("klmnopq..."), std::string::npos) << box;
  EXPECT_NE(box.find("—"), std::string::npos);
  EXPECT_EQ(to_csv(table), "name,value\nabcdefghijklmnopqrstuvwxyz,\nb,1.5\n");
}

}  // namespace
}  // namespace tacho::report
