// Moments as they are written on the command line.
#include "cli/shared/time_text.h"

#include <gtest/gtest.h>

#include <string>

namespace tacho::cli {
namespace {

// Of a trace from 1,000 to 5,001,000 ns.
int64_t moment(const std::string& text) {
  const Result<int64_t> value = parse_moment(text, 1'000, 5'001'000, "--from");
  EXPECT_TRUE(value) << text << ": " << (value ? "" : value.error().message);
  return value.value_or(-1);
}

TEST(Moment, SharesLieBetweenTheFirstAndTheLastEvent) {
  EXPECT_EQ(moment("0%"), 1'000);
  EXPECT_EQ(moment("25%"), 1'251'000);
  EXPECT_EQ(moment("12.5%"), 626'000);
  EXPECT_EQ(moment("100%"), 5'001'000);
}

TEST(Moment, PlusCountsFromTheFirstAndMinusFromTheLast) {
  EXPECT_EQ(moment("+7"), 1'007);
  EXPECT_EQ(moment("+7ns"), 1'007);
  EXPECT_EQ(moment("+1.5us"), 2'500);
  EXPECT_EQ(moment("+2ms"), 2'001'000);
  EXPECT_EQ(moment("-1ms"), 4'001'000);
  EXPECT_EQ(moment("+1s"), 1'000'001'000);
  EXPECT_EQ(moment("+2min"), 120'000'001'000);
}

TEST(Moment, BareNumbersAreNanosecondsOfTheTrace) {
  EXPECT_TRUE(is_absolute("3489389197956317"));
  EXPECT_EQ(moment("3489389197956317"), 3'489'389'197'956'317);
  for (const char* text : {"", "+1", "-1", "25%", "1.5", "1s"}) EXPECT_FALSE(is_absolute(text)) << text;
}

TEST(Moment, OtherTextsAreRefusedInOneSentenceThatNamesTheOption) {
  for (const char* text : {"", "+", "-", "%", "101%", "+5%", "-5%", "1.5", "5s", "+5h", "+1e400s", "+1e300s", "nan%",
                           "+inf", "--1s", "99999999999999999999"}) {
    const Result<int64_t> value = parse_moment(text, 0, 100, "--to");
    ASSERT_FALSE(value) << text;
    EXPECT_TRUE(value.error().message.starts_with("--to " + std::string(text) + ": ")) << value.error().message;
    EXPECT_EQ(value.error().message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace tacho::cli
