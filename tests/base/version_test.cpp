#include "base/version.h"

#include <gtest/gtest.h>

namespace tacho {
namespace {

TEST(Version, NamesTheCommitWhereItIsKnown) {
  const std::string text = program_version_text();
  EXPECT_EQ(text.substr(0, kProgramVersion.size()), kProgramVersion);
  if (program_commit().empty())
    EXPECT_EQ(text, kProgramVersion);
  else
    EXPECT_EQ(text, std::string(kProgramVersion) + " (commit " + std::string(program_commit()) + ")");
}

}  // namespace
}  // namespace tacho
