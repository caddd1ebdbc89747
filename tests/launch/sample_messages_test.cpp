// The bytes between tacho and the process that samples devices: what is written is read, and nothing else is.
#include "launch/run/sample_messages.h"

#include <gtest/gtest.h>

#include <cstring>

namespace tacho::launch {
namespace {

using std::string_literals::operator""s;

const std::vector<SampledDevice> kTwo = {{0, "One", "V", "a1", "U-0"}, {3, "", "", "", ""}};
const std::vector<SampledMetric> kOne = {{"bytes", "", ""}};

TEST(SampleMessages, SetupsThereAndBack) {
  const auto setup = parse_setup(setup_text(kTwo, kOne));
  ASSERT_TRUE(setup);
  ASSERT_EQ(setup->devices.size(), 2u);
  EXPECT_EQ(setup->devices[0].uuid, "U-0");
  EXPECT_EQ(setup->devices[1].index, 3);
  ASSERT_EQ(setup->metrics.size(), 1u);
  EXPECT_EQ(setup->metrics[0].name, "bytes");
}

TEST(SampleMessages, SetupsThatAreNone) {
  const std::string right = setup_text(kTwo, kOne);
  for (size_t size = 0; size < right.size(); ++size) {
    const auto cut = parse_setup(std::string_view(right).substr(0, size));
    EXPECT_FALSE(cut) << size;
  }
  EXPECT_FALSE(parse_setup(setup_text({}, kOne)));
  EXPECT_FALSE(parse_setup(setup_text(kTwo, {})));
  for (const char* const count : {"-1", "3", "x", "", "999999999999999999", "99999999999999999999", "2 "})
    EXPECT_FALSE(parse_setup(count + right.substr(1))) << count;
  for (const char* const index : {"-1", "2147483648", "one"})
    EXPECT_FALSE(parse_setup("1\0"s + index + "\0n\0v\0a\0u\0m\0\0\0"s)) << index;
  EXPECT_TRUE(parse_setup("1\0"s + "2147483647" + "\0n\0v\0a\0u\0m\0\0\0"s));
}

TEST(SampleMessages, Samples) {
  const std::string right = sample_text(1, -5, 10, std::vector<double>{1.5, 2});
  const auto sample = parse_sample(right, 2, 2);
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->device, 1u);
  EXPECT_EQ(sample->begin, -5);
  EXPECT_EQ(sample->end, 10);
  EXPECT_EQ(sample->values, (std::vector<double>{1.5, 2}));
  EXPECT_FALSE(parse_sample(right, 1, 2)) << "of a device that there is not";
  EXPECT_FALSE(parse_sample(right, 2, 3));
  EXPECT_FALSE(parse_sample(right + "x", 2, 2));
  EXPECT_FALSE(parse_sample(sample_text(0, 10, 9, std::vector<double>{1}), 1, 1)) << "ends before it begins";
  for (size_t size = 0; size < right.size(); ++size)
    EXPECT_FALSE(parse_sample(std::string_view(right).substr(0, size), 2, 2)) << size;
  // A count of values whose bytes would go around.
  std::string huge = right;
  const uint32_t values = 0xffffffff;
  std::memcpy(huge.data() + sizeof(uint32_t), &values, sizeof values);
  EXPECT_FALSE(parse_sample(huge, 2, values));
}

TEST(SampleMessages, PairsAndNumbers) {
  EXPECT_EQ(parse_pair(pair_text("key", "")), (std::pair<std::string, std::string>{"key", ""}));
  for (const std::string& text : {""s, "a"s, "a\0"s, "a\0b"s, "a\0b\0c\0"s}) EXPECT_FALSE(parse_pair(text));
  EXPECT_EQ(parse_sample_number("0"), 0);
  EXPECT_EQ(parse_sample_number("9223372036854775807"), INT64_MAX);
  for (const char* const text : {"", "-1", "+1", " 1", "1 ", "0x1", "9223372036854775808"})
    EXPECT_FALSE(parse_sample_number(text)) << text;
}

}  // namespace
}  // namespace tacho::launch
