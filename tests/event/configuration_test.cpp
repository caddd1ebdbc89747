// The configuration of targets: every key there and back, keys that are missing, unknown or wrong.
#include <gtest/gtest.h>

#include "event/configuration_text.h"

namespace tacho::event {
namespace {

// A configuration in which every key differs from its default.
Configuration other() {
  Configuration out;
#define TACHO_FLAG(key, meaning) out.key = true;
#define TACHO_NUMBER(key, otherwise, least, most, meaning) out.key = (otherwise) == (most) ? least : most;
#define TACHO_CHOICE(key, type, otherwise, meaning) out.key = static_cast<type>(1);
#define TACHO_TEXT(key, meaning) out.key = "a=b, " #key "=^(x|y)$";
  TACHO_CONFIGURATION_KEYS(TACHO_FLAG, TACHO_NUMBER, TACHO_CHOICE, TACHO_TEXT)
#undef TACHO_FLAG
#undef TACHO_NUMBER
#undef TACHO_CHOICE
#undef TACHO_TEXT
  return out;
}

Configuration owned(const ConfigurationView& view) {
  Configuration out;
#define TACHO_FLAG(key, meaning) out.key = view.key;
#define TACHO_NUMBER(key, otherwise, least, most, meaning) out.key = view.key;
#define TACHO_CHOICE(key, type, otherwise, meaning) out.key = view.key;
#define TACHO_TEXT(key, meaning) out.key = std::string(view.key);
  TACHO_CONFIGURATION_KEYS(TACHO_FLAG, TACHO_NUMBER, TACHO_CHOICE, TACHO_TEXT)
#undef TACHO_FLAG
#undef TACHO_NUMBER
#undef TACHO_CHOICE
#undef TACHO_TEXT
  return out;
}

TEST(Configuration, EveryKeyThereAndBack) {
  const auto text = to_text(other());
  ASSERT_TRUE(text.has_value());
  for (const ConfigurationKey& key : configuration_keys())
    EXPECT_NE(("\n" + *text).find("\n" + key.key + "="), std::string::npos) << key.key;
  ConfigurationView view;
  EXPECT_EQ(parse(*text, view), "");
  EXPECT_EQ(owned(view), other());
}

TEST(Configuration, EachKeyAloneLeavesTheOthers) {
  const auto text = to_text(other());
  size_t lines = 0;
  for (size_t at = 0; at < text->size(); ++lines) {
    const size_t end = text->find('\n', at) + 1;
    ConfigurationView view;
    EXPECT_EQ(parse(std::string_view(*text).substr(at, end - at), view), "");
    EXPECT_FALSE(owned(view) == Configuration()) << text->substr(at, end - at);
    EXPECT_EQ(to_text(owned(view)).value(), text->substr(at, end - at));
    at = end;
  }
  EXPECT_EQ(lines, configuration_keys().size());
}

TEST(Configuration, KeysThatAreMissingKeepTheirDefaults) {
  EXPECT_EQ(to_text({}).value(), "");
  ConfigurationView view;
  EXPECT_EQ(parse("", view), "");
  EXPECT_EQ(parse("sample_hz=250\n", view), "");
  EXPECT_EQ(view.sample_hz, 250u);
  EXPECT_EQ(view.sampler, Sampler::kOff);
  EXPECT_EQ(view.sample_stack, 16384u);
}

TEST(Configuration, WrongLinesAreToldAndPassedOver) {
  for (const char* wrong : {"sample_rate=5", "sample_hz=x", "sample_hz=", "sample_hz=0", "sample_hz=10001",
                            "sample_hz=99999999999", "sampler=fast", "sync_trace=yes", "sync_trace", "=1"}) {
    ConfigurationView view;
    EXPECT_EQ(parse(std::string(wrong) + "\nsample_stack=512\nother=1\n", view), wrong);
    EXPECT_EQ(view.sample_stack, 512u);
    EXPECT_EQ(view.sample_hz, 100u);
  }
}

TEST(Configuration, ATextHoldsNoLineBreak) {
  Configuration configuration;
  configuration.kernel_include = "a\nsampler=timer";
  EXPECT_EQ(to_text(configuration).error().message, "kernel_include: a line break cannot be in it");
}

}  // namespace
}  // namespace tacho::event
