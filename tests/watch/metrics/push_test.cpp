// Addresses of collectors.
#include "watch/metrics/push.h"

#include <gtest/gtest.h>

namespace tacho::watch {
namespace {

std::string address(std::string_view text) {
  const auto parsed = parse_push_address(text);
  return parsed ? parsed->text() : parsed.error().message;
}

TEST(Push, Addresses) {
  EXPECT_EQ(address("http://collector"), "http://collector:4318/v1/metrics");
  EXPECT_EQ(address("http://10.0.0.1:80/"), "http://10.0.0.1:80/v1/metrics");
  EXPECT_EQ(address("http://collector:9090/api/v1/otlp"), "http://collector:9090/api/v1/otlp/v1/metrics");
  EXPECT_EQ(address("http://collector/v1/metrics"), "http://collector:4318/v1/metrics");
  EXPECT_EQ(address("http://[::1]:4318"), "http://[::1]:4318/v1/metrics");
  EXPECT_EQ(address("http://[::1]"), "http://[::1]:4318/v1/metrics");
}

TEST(Push, AddressesThatAreNone) {
  for (const char* const text : {"", "collector:4318", "https://collector", "http://", "http://:4318", "http://a:0",
                                 "http://a:65536", "http://a:1x", "http://a@b", "http://a b", "http://a/?q"})
    EXPECT_FALSE(parse_push_address(text)) << text;
}

}  // namespace
}  // namespace tacho::watch
