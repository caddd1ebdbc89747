#include "attach/choice.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "attach/target.h"
#include "gtest/gtest.h"

namespace tacho::attach {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// A child that waits under the name of a script, in its own process.
class Sleeper {
 public:
  explicit Sleeper(const char* script) : pid_(fork()) {
    if (pid_ == 0) {
      setpgid(0, 0);
      execl("/bin/sh", "sh", "-e", script, nullptr);
      _exit(127);
    }
  }
  ~Sleeper() {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

class ChoiceTest : public testing::Test {
 protected:
  void SetUp() override {
    script_ = testing::TempDir() + "choice_script.sh";
    std::ofstream(script_) << "sleep 60 &\nwait\n";
  }
  void TearDown() override { std::filesystem::remove(script_); }
  // Once the script runs and has a child.
  static pid_t child_of(pid_t parent) {
    for (int tries = 0; tries < 500; ++tries) {
      for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const auto facts = look_at(atoi(entry.path().filename().c_str()));
        if (facts && facts->parent == parent && facts->name == "sleep") return facts->pid;
      }
      usleep(10'000);
    }
    return 0;
  }
  static bool holds(const Result<ChosenProcesses>& chosen, pid_t pid) {
    return chosen && std::find(chosen->numbers.begin(), chosen->numbers.end(), pid) != chosen->numbers.end();
  }
  std::string script_;
};

TEST_F(ChoiceTest, NumbersAndTheirChildren) {
  const Sleeper sleeper(script_.c_str());
  const pid_t child = child_of(sleeper.pid());
  ASSERT_GT(child, 0);
  const auto alone = choose({.numbers = {sleeper.pid(), sleeper.pid()}});
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(alone->numbers, std::vector<pid_t>{sleeper.pid()});
  const auto both = choose({.numbers = {sleeper.pid()}, .children = true});
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(both->numbers, (std::vector<pid_t>{sleeper.pid(), child}));
  EXPECT_FALSE(choose({.numbers = {4'000'000}}));
}

TEST_F(ChoiceTest, NamesOfScriptsAndPatterns) {
  const Sleeper sleeper(script_.c_str());
  ASSERT_GT(child_of(sleeper.pid()), 0);
  EXPECT_TRUE(holds(choose({.names = {"choice_script.sh"}}), sleeper.pid()));
  EXPECT_TRUE(holds(choose({.names = {"choice_*.sh"}}), sleeper.pid()));
  EXPECT_FALSE(holds(choose({.names = {"choice_script"}}), sleeper.pid()));
  const auto none = choose({.names = {"no_such_program"}});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "no process that this tacho sees runs a program named no_such_program");
}

TEST_F(ChoiceTest, NeverTheProcessesThatStartedTacho) {
  // This test's parent has the name that ctest or a shell gave it.
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(getppid()) + "/comm"), name);
  const auto chosen = choose({.names = {name}});
  EXPECT_FALSE(holds(chosen, getppid()));
  if (chosen) {
    EXPECT_TRUE(std::any_of(chosen->left_out.begin(), chosen->left_out.end(), [](const std::string& sentence) {
      return sentence.find("has started this tacho") != std::string::npos;
    }));
  }
}

TEST_F(ChoiceTest, CgroupsWithAndWithoutTheMountedFolder) {
  const Sleeper sleeper(script_.c_str());
  ASSERT_GT(child_of(sleeper.pid()), 0);
  std::string line, group;
  std::ifstream file("/proc/" + std::to_string(sleeper.pid()) + "/cgroup");
  while (std::getline(file, line)) group = line.substr(line.find(':', line.find(':') + 1) + 1);
  ASSERT_FALSE(group.empty());
  EXPECT_TRUE(holds(choose({.names = {"choice_script.sh"}, .cgroups = {group}}), sleeper.pid()));
  EXPECT_TRUE(holds(choose({.names = {"choice_script.sh"}, .cgroups = {"/sys/fs/cgroup" + group}}), sleeper.pid()));
  const auto other = choose({.names = {"choice_script.sh"}, .cgroups = {"/no/such/group"}});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message,
            "no process that this tacho sees runs a program named choice_script.sh in the cgroup /no/such/group");
}

TEST_F(ChoiceTest, ContainersByTheBeginningOfTheirId) {
  const std::string id = "3f2a9c01b7de5566778899aabbccddeeff00112233445566778899aabbccddee";
  for (const std::string& path : {"/docker/" + id, "/system.slice/docker-" + id + ".scope",
                                  "/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + id + ".scope"}) {
    EXPECT_TRUE(names_container(path, "3f2a9c01b7de"));
    EXPECT_TRUE(names_container(path, id));
    EXPECT_FALSE(names_container(path, "3f2a9c01b7df"));
    EXPECT_FALSE(names_container(path, "2a9c"));
  }
  EXPECT_FALSE(names_container("/user.slice/3f2a9c01", "3f2a"));
  EXPECT_FALSE(choose({.containers = {"web"}}));
  EXPECT_FALSE(choose({.containers = {"3f2"}}));
}

TEST(MomentTest, NextFullPeriodIsAtLeastASecondAway) {
  EXPECT_EQ(moment_of("/10s", 100 * kSecond).value(), 110 * kSecond);
  EXPECT_EQ(moment_of("/10s", 108 * kSecond + kSecond / 2).value(), 110 * kSecond);
  EXPECT_EQ(moment_of("/10s", 109 * kSecond + 1).value(), 120 * kSecond);
  EXPECT_EQ(moment_of("/1m", 61 * kSecond).value(), 120 * kSecond);
  EXPECT_EQ(moment_of("/500ms", 0).value(), 3 * kSecond / 2);
  for (const char* const wrong : {"/", "/0s", "/-1s", "/10parsecs", "/1e99s", "/nan", "/25h"})
    EXPECT_FALSE(moment_of(wrong, 0)) << wrong;
}

TEST(MomentTest, TimesOfTheDayAreOfTodayOrTomorrow) {
  setenv("TZ", "UTC", 1);
  tzset();
  const int64_t day = 86'400 * kSecond, noon = 20'000 * day + day / 2;
  EXPECT_EQ(moment_of("14:30", noon).value(), noon + 9000 * kSecond);
  EXPECT_EQ(moment_of("14:30:05.5", noon).value(), noon + 9005 * kSecond + kSecond / 2);
  EXPECT_EQ(moment_of("11:00", noon).value(), noon + 23 * 3600 * kSecond);
  for (const char* const wrong : {"", "14", "24:00", "14:60", "14:30:60", "14:30:5x", "14:30x", "noon", "1430"})
    EXPECT_FALSE(moment_of(wrong, noon)) << wrong;
}

}  // namespace
}  // namespace tacho::attach
