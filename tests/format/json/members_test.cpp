// Members of flat JSON objects.
#include "format/json/members.h"

#include <gtest/gtest.h>

#include <array>

#include "event/schema.h"

namespace tacho::format::json {
namespace {

using event::kUnknown;

TEST(JsonMembers, NumbersOfSeveralMembersInOneGo) {
  static constexpr std::string_view kKeys[] = {"a", "b", "c"};
  const auto numbers = [](std::string_view object) {
    std::array<int64_t, 3> values{};
    number_members(object, kKeys, values);
    return values;
  };
  using Three = std::array<int64_t, 3>;
  EXPECT_EQ(numbers(R"({"c": 3, "x": {"a": 9}, "a": -1})"), (Three{-1, kUnknown, 3}));
  EXPECT_EQ(numbers(R"({"a": "1", "b": [1], "c": 7})"), (Three{kUnknown, kUnknown, 7}));
  EXPECT_EQ(numbers(R"({"a": null, "b": 1.5, "c": true})"), (Three{kUnknown, kUnknown, kUnknown}));
  EXPECT_EQ(numbers(R"({"a": 5, "b)"), (Three{5, kUnknown, kUnknown}));
  for (const std::string_view none : {"", "{}", "[1]", "a"})
    EXPECT_EQ(numbers(none), (Three{kUnknown, kUnknown, kUnknown}));
}

TEST(JsonMembers, OneMember) {
  EXPECT_EQ(number_member(R"({"b": 2, "a": 4})", "a"), 4);
  EXPECT_EQ(number_member(R"({"b": "a"})", "a"), kUnknown);
  std::string text = "before";
  EXPECT_FALSE(text_member(R"({"a": 4})", "a", text));
  EXPECT_EQ(text, "before");
  EXPECT_TRUE(text_member(R"({"b": 4, "a": "x\ny"})", "a", text));
  EXPECT_EQ(text, "x\ny");
}

TEST(JsonMembers, TheJsonOfOne) {
  constexpr std::string_view object = R"({"a": [1, {"b": 2}], "b": {"c": "}"}, "c": null})";
  EXPECT_EQ(json_member(object, "a"), R"([1, {"b": 2}])");
  EXPECT_EQ(json_member(object, "b"), R"({"c": "}"})");
  EXPECT_EQ(json_member(object, "c"), "null");
  EXPECT_EQ(json_member(object, "d"), "");
  for (const char* bad : {"", "{", "[1]", R"({"a")", R"({"a": )", R"({"a": {"b": 1)"})
    EXPECT_EQ(json_member(bad, "a"), "");
}

}  // namespace
}  // namespace tacho::format::json
