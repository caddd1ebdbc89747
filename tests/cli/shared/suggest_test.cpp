// "Did you mean": which known name is offered for a mistyped one, and when none is.
#include "cli/shared/suggest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/shared/command_options.h"

namespace tacho::cli {
namespace {

const std::vector<std::string> kKnown = {"kernel-trace", "memory-copy-trace", "stats", "top"};

TEST(Suggest, ANameThatIsOneSlipAway) {
  EXPECT_EQ(nearest("kernel-trace", kKnown), "kernel-trace");
  EXPECT_EQ(nearest("kernl-trace", kKnown), "kernel-trace");   // a letter too few
  EXPECT_EQ(nearest("statts", kKnown), "stats");               // a letter too many
  EXPECT_EQ(nearest("kernel_trace", kKnown), "kernel-trace");  // another letter
  EXPECT_EQ(nearest("tsats", kKnown), "stats");                // two swapped
}

TEST(Suggest, NothingForAWordThatResemblesNone) {
  EXPECT_EQ(nearest("output", kKnown), "");
  EXPECT_EQ(nearest("", kKnown), "");
  EXPECT_EQ(nearest("stats", {}), "");
  EXPECT_EQ(nearest(std::string(1'000'000, 'k'), kKnown), "");
}

TEST(Suggest, OptionsOfGroupsTooAndWithoutTheirValues) {
  CommandOptions app("test", "test");
  std::string value;
  app.add_option("--output", value);
  app.open_group("of the file");
  app.add_option("--format", value);
  EXPECT_EQ(suggestion(app.option_names(), "--ouput=a.tacho"), "; did you mean --output?");
  EXPECT_EQ(suggestion(app.option_names(), "--formt"), "; did you mean --format?");
  EXPECT_EQ(suggestion(app.option_names(), "--verbose"), "");
}

}  // namespace
}  // namespace tacho::cli
