#include "base/version.h"

#include <gtest/gtest.h>

namespace tacho {
namespace {

TEST(Version, NamesReleaseAndCommitWhereTheyAreKnown) {
  std::string expected(kProgramVersion);
  if (!program_commit().empty())
    expected += " (" + (program_release().empty() ? "" : std::string(program_release()) + ", ") + "commit " +
                std::string(program_commit()) + ")";
  EXPECT_EQ(program_version_text(), expected);
}

}  // namespace
}  // namespace tacho
