// No claim is left behind by a process that a signal ends.
#include "base/files/name_claim.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace tacho {
namespace {

namespace fs = std::filesystem;

class NameClaimTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tacho-claim-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string folder_;
};

TEST_F(NameClaimTest, HoldsTheNameUntilItIsReleased) {
  {
    const NameClaim first(folder_, "a");
    EXPECT_TRUE(first.held());
    EXPECT_TRUE(fs::exists(folder_ + "/.a.claim"));
    const NameClaim second(folder_, "a");
    EXPECT_FALSE(second.held());
  }
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_TRUE(NameClaim(folder_, "a").held());
}

TEST_F(NameClaimTest, IsNotLeftBehindByASignalAtAnyMoment) {
  for (int round = 0; round < 200; ++round) {
    int started[2];
    ASSERT_EQ(pipe(started), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (bool told = false;;) {
        const NameClaim claim(folder_, "a");
        if (!told) told = write(started[1], "x", 1) == 1;
      }
    }
    close(started[1]);
    char byte;
    ASSERT_EQ(read(started[0], &byte, 1), 1);
    close(started[0]);
    usleep(static_cast<useconds_t>(rand() % 200));  // NOLINT(concurrency-mt-unsafe): one thread
    ASSERT_EQ(kill(child, SIGTERM), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_EQ(WTERMSIG(status), SIGTERM);
    ASSERT_TRUE(fs::is_empty(folder_)) << "in round " << round;
  }
}

}  // namespace
}  // namespace tacho
