// JsonWriter: commas, escapes and numbers, the same bytes into a string and into a file.
#include "base/text/json_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

namespace tacho {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(JsonQuoted, EscapesAndReplacesWhatIsNotUtf8) {
  EXPECT_EQ(json_quoted(""), "\"\"");
  EXPECT_EQ(json_quoted("plain"), "\"plain\"");
  EXPECT_EQ(json_quoted("a\"b\\c\n\r\t\x01\x7f"), "\"a\\\"b\\\\c\\n\\r\\t\\u0001\\u007f\"");
  EXPECT_EQ(json_quoted("\xC3\xA9\xF0\x9F\x98\x80"), "\"\xC3\xA9\xF0\x9F\x98\x80\"");
  EXPECT_EQ(json_quoted("\xff"
                        "a\xC3"),
            "\"\xEF\xBF\xBD"
            "a\xEF\xBF\xBD\"");
  EXPECT_EQ(json_quoted("\xED\xA0\x80"),
            "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");  // half of a surrogate pair
  EXPECT_EQ(json_quoted(std::string_view("\0", 1)), "\"\\u0000\"");
}

TEST(JsonWriter, NumbersInFullAndWordsForInfinity) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("a").begin_array().value(0.1).value(int64_t{7}).value(kInf).value(-kInf);
  json.value(std::nan("")).null().value("x\"").end_array().key("b").value(true).end_object();
  EXPECT_EQ(out, R"({"a": [0.1,7,"inf","-inf",null,null,"x\""],"b": true})");
}

TEST(JsonWriter, IntegersAreExact) {
  std::string out;
  JsonWriter json(out);
  json.begin_array().value(std::numeric_limits<int64_t>::min()).value(std::numeric_limits<int64_t>::max());
  json.value(std::numeric_limits<uint64_t>::max()).value(-1).value(0u).end_array();
  EXPECT_EQ(out, "[-9223372036854775808,9223372036854775807,18446744073709551615,-1,0]");
}

TEST(JsonWriter, Compact) {
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_object().member("a", 1).member("b", 0.5).member("c", std::string("d")).member("e", false);
  json.member("f", kInf).name("g").text("h").name("i").microseconds(-1234).name("j").begin_object();
  json.end_object().end_object();
  EXPECT_EQ(out, R"({"a":1,"b":0.5,"c":"d","e":false,"f":null,"g":"h","i":-1.234,"j":{}})");
}

TEST(JsonWriter, ReadyPartsGetTheirCommas) {
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_array().begin_object().splice("").splice(R"("a":1,"b":2)").member("c", 3).end_object();
  json.begin_object().splice(R"("a":{)").member("b", 1).end_object().end_object();
  json.ready("[]").value(4).end_array();
  EXPECT_EQ(out, R"([{"a":1,"b":2,"c":3},{"a":{"b":1}},[],4])");
}

TEST(JsonWriter, LineBreaks) {
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_array().newline().value(1).newline().value(2).end_line().end_array();
  EXPECT_EQ(out, "[\n1,\n2\n]");
  out.clear();
  JsonWriter between(out, kCompactJson);
  between.begin_array().newline_between().value(1).newline_between().value(2).end_array();
  EXPECT_EQ(out, "[1,\n2]");
}

template <typename Json>
void write_all(Json& json) {
  json.begin_object().newline().key("k\n").value("v\xff").name("list").begin_array();
  for (int i = 0; i < 3; ++i)
    json.burst(256, [&](auto& room) {
      room.newline().begin_object().member("i", i).name("t").microseconds(1500 + i).splice(R"("x":null)");
      room.end_object();
    });
  json.end_array().member("long", std::string(100'000, 'x')).end_object().end_line();
}

TEST(JsonWriter, FilesGetTheSameBytes) {
  std::string text;
  JsonWriter in_text(text);
  write_all(in_text);
  const std::string path = std::filesystem::temp_directory_path() / ("json_writer_test." + std::to_string(getpid()));
  auto file = OutputFile::create(path, true);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  JsonFileWriter in_file(*file);
  write_all(in_file);
  ASSERT_TRUE(file->commit());
  std::ifstream in(path, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), text);
  std::filesystem::remove(path);
  EXPECT_NE(text.find("\n{\"i\": 1,\"t\": 1.501,\"x\":null},\n"), std::string::npos) << text.substr(0, 200);
}

}  // namespace
}  // namespace tacho
