// CsvReader on what csv files in the wild look like, and on damaged ones.
#include "base/text/csv.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

namespace tacho {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Result<Rows> read_all(CsvReader reader) {
  Rows rows;
  std::vector<std::string_view> fields;
  for (;;) {
    TACHO_ASSIGN(const bool more, reader.next(fields));
    if (!more) return rows;
    rows.emplace_back(fields.begin(), fields.end());
  }
}

Rows parsed(std::string text) {
  auto rows = read_all(CsvReader::from_text(std::move(text), "text.csv"));
  EXPECT_TRUE(rows.has_value()) << rows.error().message;
  return rows.value_or(Rows{});
}

TEST(Csv, PlainAndQuotedFields) {
  EXPECT_EQ(parsed("a,b\n1,2\n"), (Rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(parsed("\"x, y\",\"say \"\"hi\"\"\"\n"), (Rows{{"x, y", "say \"hi\""}}));
  EXPECT_EQ(parsed("\"line\nbreak\",2\n"), (Rows{{"line\nbreak", "2"}}));
  EXPECT_EQ(parsed("\"\",\"\"\"\",z\n"), (Rows{{"", "\"", "z"}}));
}

TEST(Csv, EndsAndBreaks) {
  EXPECT_EQ(parsed("a,b"), (Rows{{"a", "b"}}));
  EXPECT_EQ(parsed("a,"), (Rows{{"a", ""}}));
  EXPECT_EQ(parsed("a,b\r\n\r\n1,\r\n"), (Rows{{"a", "b"}, {"1", ""}}));
  EXPECT_EQ(parsed("\xEF\xBB\xBFid\n7\n"), (Rows{{"id"}, {"7"}}));
  EXPECT_TRUE(parsed("").empty());
  EXPECT_TRUE(parsed("\n\n\n").empty());
}

TEST(Csv, OtherSeparators) {
  for (const char separator : {',', ';', '\t', '|'}) {
    const std::string s(1, separator);
    const Rows expected = {{"a", "b;c,d\te|f", "g"}, {"1,5", "", "x"}};
    const std::string text = "a" + s + "\"b;c,d\te|f\"" + s + "g\r\n\"1,5\"" + s + s + "x\n";
    EXPECT_EQ(parsed(text), expected) << separator;
    EXPECT_EQ(parsed("\xEF\xBB\xBFsep=" + s + "\r\n" + text), expected) << separator;
    EXPECT_EQ(parsed("\n\nsep=" + s + "\n" + text), expected) << separator;
  }
  EXPECT_EQ(parsed("a;b,c\n1;2,3\n"), (Rows{{"a;b", "c"}, {"1;2", "3"}}));  // the header's comma decides
  EXPECT_EQ(parsed("sep=;"), Rows{});
  EXPECT_EQ(parsed("sep=ab\n1\n"), (Rows{{"sep=ab"}, {"1"}}));
  CsvReader reader = CsvReader::from_text("sep=;\na;b\n", "text.csv");
  std::vector<std::string_view> fields;
  ASSERT_TRUE(reader.next(fields).value_or(false));
  EXPECT_EQ(reader.row(), 2U);
  EXPECT_EQ(reader.separator(), ';');
}

TEST(Csv, UnterminatedLastRowIsMarked) {
  CsvReader reader = CsvReader::from_text("a\n1\n2", "x");
  std::vector<std::string_view> fields;
  for (const bool expected : {false, false, true}) {
    ASSERT_TRUE(reader.next(fields).value());
    EXPECT_EQ(reader.unterminated(), expected);
  }
}

TEST(Csv, OpenQuoteIsAnErrorThatNamesTheRow) {
  auto rows = read_all(CsvReader::from_text("a\nb\n\"c\nd\n", "f.csv"));
  ASSERT_FALSE(rows.has_value());
  EXPECT_NE(rows.error().message.find("f.csv"), std::string::npos);
  EXPECT_NE(rows.error().message.find("row 3"), std::string::npos);
}

TEST(Csv, FilesLargerThanTheBufferAndGzipGiveTheSameRecords) {
  std::mt19937 random(7);
  std::string text;
  Rows expected;
  for (int r = 0; r < 4000; ++r) {
    std::vector<std::string> row;
    for (int c = 0; c < 40; ++c) {
      std::string field = std::to_string(random());
      if (random() % 7 == 0) field += ",\"x\"\n";
      row.push_back(field);
      std::string quoted = field;
      if (field.find('"') != std::string::npos) {
        quoted = "\"";
        for (const char ch : field) quoted += ch == '"' ? std::string("\"\"") : std::string(1, ch);
        quoted += '"';
      }
      text += (c > 0 ? "," : "") + quoted;
    }
    text += '\n';
    expected.push_back(std::move(row));
  }
  const std::string path = ::testing::TempDir() + "large.csv";
  std::ofstream(path, std::ios::binary) << text;
  auto plain = read_all(std::move(*CsvReader::open(path)));
  ASSERT_TRUE(plain.has_value()) << plain.error().message;
  EXPECT_EQ(*plain, expected);
  EXPECT_GE(CsvReader::open(path)->row_bound(), expected.size());

  const std::string packed = ::testing::TempDir() + "large.csv.gz";
  gzFile gz = gzopen(packed.c_str(), "wb1");
  ASSERT_EQ(gzwrite(gz, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
  gzclose(gz);
  auto unpacked = read_all(std::move(*CsvReader::open(packed)));
  ASSERT_TRUE(unpacked.has_value()) << unpacked.error().message;
  EXPECT_EQ(*unpacked, expected);

  std::filesystem::resize_file(packed, std::filesystem::file_size(packed) / 2);
  auto cut = read_all(std::move(*CsvReader::open(packed)));
  std::filesystem::remove(path);
  std::filesystem::remove(packed);
  ASSERT_FALSE(cut.has_value());
  EXPECT_NE(cut.error().message.find("gzip"), std::string::npos) << cut.error().message;
}

TEST(Csv, MissingFileAndFolder) {
  EXPECT_FALSE(CsvReader::open("/nonexistent/x.csv").has_value());
  EXPECT_FALSE(CsvReader::open("/tmp").has_value());
}

TEST(ParseNumber, NumbersWordsAndNonsense) {
  EXPECT_EQ(parse_number("0").value, 0);
  EXPECT_EQ(parse_number("123456789012345").value, 123456789012345.0);
  EXPECT_EQ(parse_number("18446744073709551615").value, 18446744073709551615.0);
  EXPECT_EQ(parse_number("197976.0").value, 197976.0);
  EXPECT_EQ(parse_number("-1.5e3").value, -1500);
  EXPECT_EQ(parse_number(" 7 ").value, 7);
  for (const char* empty : {"", "nan", "NaN", "N/A", "None"}) {
    EXPECT_TRUE(parse_number(empty).ok) << empty;
    EXPECT_TRUE(std::isnan(parse_number(empty).value)) << empty;
  }
  for (const char* bad : {"12x", "0x10", "1,5", "--1", "1 2", "abc"}) {
    EXPECT_FALSE(parse_number(bad).ok) << bad;
    EXPECT_TRUE(std::isnan(parse_number(bad).value)) << bad;
  }
}

TEST(ParseTimestamp, KeepsDifferencesOfLargeTimesExact) {
  int64_t whole = 0;
  double fraction = 0;
  ASSERT_TRUE(parse_timestamp("13386742234691895", whole, fraction));
  EXPECT_EQ(whole, 13386742234691895);
  ASSERT_TRUE(parse_timestamp("1248225042558134.5", whole, fraction));
  EXPECT_EQ(whole, 1248225042558134);
  EXPECT_EQ(fraction, 0.5);
  ASSERT_TRUE(parse_timestamp("1.5e3", whole, fraction));
  EXPECT_EQ(whole, 1500);
  EXPECT_FALSE(parse_timestamp("", whole, fraction));
  EXPECT_FALSE(parse_timestamp("soon", whole, fraction));
  EXPECT_FALSE(parse_timestamp("1e300", whole, fraction));
}

TEST(Csv, FieldsAreQuotedWhereTheyHaveToBe) {
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
  EXPECT_EQ(csv_quoted("plain"), "\"plain\"");
  EXPECT_EQ(csv_quoted("a\"b"), "\"a\"\"b\"");
}

}  // namespace
}  // namespace tacho
