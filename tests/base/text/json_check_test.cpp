// What is JSON and what only looks like it.
#include "base/text/json_check.h"

#include <gtest/gtest.h>

#include <string>

namespace tacho {
namespace {

TEST(JsonCheck, TakesWhatIsJson) {
  for (const std::string_view text :
       {"0", "-0", "-12.5e+3", "1E9", "true", "false", "null", "\"\"", R"("a\"\\\/\b\f\n\r\tÀ")", "[]", "[ ]", "{}",
        "[[8, 3], [], [[-1, 0]]]", " [1,\n2]\t", R"({"a": [1], "b": {}})", "\"gr\xc3\xbc\xc3\x9f\""})
    EXPECT_TRUE(is_json(text)) << text;
  EXPECT_TRUE(is_json(std::string(64, '[') + std::string(64, ']')));
}

TEST(JsonCheck, RefusesWhatIsNot) {
  for (const std::string_view text :
       {"",          " ",           "01",       "+1",       "1.",    ".5",     "1e",      "-",         "NaN",
        "nan",       "inf",         "True",     "nulls",    "s0",    "\"",     "\"a",     "'a'",       "\"\\x\"",
        "\"\\u12\"", "\"\\u12g4\"", "\"a\nb\"", "[",        "]",     "[1",     "[1,]",    "[,1]",      "[1 2]",
        "[1]]",      "[1] 2",       "[1, ...",  "[s0, 3]",  "{",     "{a: 1}", "{\"a\"}", "{\"a\" 1}", "{\"a\": 1,}",
        "{1: 2}",    "[}",          "\"\xff\"", "\"\xc3\"", "(1, 2)"})
    EXPECT_FALSE(is_json(text)) << text;
  EXPECT_FALSE(is_json(std::string_view("[1]\0", 4)));
  EXPECT_FALSE(is_json(std::string(65, '[') + std::string(65, ']')));
  EXPECT_FALSE(is_json(std::string(100'000, '[')));
}

}  // namespace
}  // namespace tacho
