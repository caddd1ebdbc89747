// The process tree from a /proc of the test's own: who belongs to it, what an image is, and what it lacks.
#include "launch/run/process_tree.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/format.h"
#include "launch/library_names.h"
#include "trace/rows.h"

namespace tacho::launch {
namespace {

namespace fs = std::filesystem;
using Fact = TreeMember::Fact;
using trace::Folder;

struct Fake {
  int pid = 0, parent = 1;
  std::string name = "prog";
  char state = 'S';
  int ticks = 0, start = 1000, stack = 0;
  std::string environment = "HOME=/root", maps = "7f0000000000-7f0000001000 r-xp 0 0:0 0 /usr/lib/libc.so.6\n";
  unsigned user = geteuid();
};

class Tree : public testing::Test {
 protected:
  fs::path proc() const { return fs::path(folder_ / "proc"); }
  static void put(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void set(const Fake& fake) {
    const fs::path place = proc() / std::to_string(fake.pid);
    std::string stat = fmt::format("{} ({}) {} {} 1 1 0 -1 0 0 0 0 0 {} 0 0 0 20 0 1 0 {} 1048576 25 0 1 1 {}",
                                   fake.pid, fake.name, fake.state, fake.parent, fake.ticks, fake.start, fake.stack);
    for (int number = 29; number <= 52; ++number) stat += number == 51 ? " 4096" : " 0";
    put(place / "stat", stat + "\n");
    std::string environment = fake.environment + " ";
    std::replace(environment.begin(), environment.end(), ' ', '\0');
    put(place / "environ", environment);
    put(place / "maps", fake.maps);
    put(place / "status",
        fmt::format("Name:\t{}\nUid:\t{}\t{}\t0\t0\nNSpid:\t{}\t7\n", fake.name, fake.user, fake.user, fake.pid));
    put(place / "limits", "Max open files            3                    4096                 files\n");
    fs::create_directories(place / "fd");
    for (const char* const number : {"0", "1"}) put(place / "fd" / number, "");
    if (!fs::exists(place / "exe")) fs::create_symlink("/bin/sh", place / "exe");
  }
  ProcessTree tree() const { return ProcessTree({"/pools/tacho-1-a.pool", "/lib/tacho.so", {"/libgpu.so"}, proc()}); }
  static TreeMember member(const ProcessTree& tree, pid_t pid) {
    for (const TreeMember& one : tree.members())
      if (one.pid == pid) return one;
    return {};
  }

  Folder folder_;
  const std::string ours_ = "TACHO_POOL=/pools/tacho-1-a.pool LD_PRELOAD=/lib/tacho.so:/lib/other.so";
};

TEST_F(Tree, TakesChildrenWhateverTheirNumbers) {
  set({.pid = 100, .environment = ours_});
  set({.pid = 90, .parent = 110});  // numbers began anew between the two
  set({.pid = 110, .parent = 100});
  set({.pid = 120, .parent = 1});
  ProcessTree seen = tree();
  seen.look(100);
  EXPECT_EQ(seen.members().size(), 3u);
  EXPECT_TRUE(member(seen, 100).main);
  EXPECT_FALSE(member(seen, 110).main);
  EXPECT_EQ(member(seen, 120).pid, 0);
}

TEST_F(Tree, TakesOrphansThatHaveThePool) {
  set({.pid = 100});
  set({.pid = 130, .parent = 1, .environment = ours_});
  ProcessTree seen = tree();
  seen.look(100);
  EXPECT_EQ(member(seen, 130).pool, Fact::kYes);
  EXPECT_EQ(seen.running().size(), 1u);
}

TEST_F(Tree, KeepsMembersWhoseParentEnds) {
  set({.pid = 100});
  set({.pid = 110, .parent = 100});
  ProcessTree seen = tree();
  seen.look(100);
  fs::remove_all(proc() / "100");
  set({.pid = 110, .parent = 1});
  seen.look(100);
  ASSERT_EQ(seen.running().size(), 1u);
  EXPECT_EQ(seen.running()[0].pid, 110);
  EXPECT_FALSE(member(seen, 100).running);
}

TEST_F(Tree, TellsWhatAProcessHas) {
  set({.pid = 100,
       .environment = ours_,
       .maps = "1-2 r-xp 0 0:0 0 /opt/lib/libtacho.so\n1-2 r 0 0:0 0 /x/libgpu.so.1\n"});
  set({.pid = 110, .parent = 100, .environment = "TACHO_POOL=/pools/tacho-1-a.pool LD_PRELOAD=/lib/other.so"});
  set({.pid = 120, .parent = 100, .user = geteuid() + 1});
  set({.pid = 130, .parent = 100, .environment = "TACHO_POOL=/pools/of-another.pool"});
  ProcessTree seen = tree();
  seen.look(100);
  const TreeMember whole = member(seen, 100);
  EXPECT_EQ(whole.pool, Fact::kYes);
  EXPECT_EQ(whole.preload, Fact::kYes);
  EXPECT_EQ(whole.loaded, Fact::kYes);
  EXPECT_EQ(whole.dynamic, Fact::kYes);
  EXPECT_TRUE(whole.device);
  EXPECT_EQ(whole.own_pid, 7);
  EXPECT_EQ(whole.descriptors_left, 1u);
  EXPECT_EQ(member(seen, 110).pool, Fact::kYes);
  EXPECT_EQ(member(seen, 110).preload, Fact::kNo);
  EXPECT_EQ(member(seen, 110).loaded, Fact::kNo);
  EXPECT_FALSE(member(seen, 110).device);
  EXPECT_TRUE(member(seen, 120).other_user);
  EXPECT_FALSE(member(seen, 110).other_user);
  EXPECT_TRUE(member(seen, 130).other_tacho);
}

TEST_F(Tree, LooksAgainAfterAnExec) {
  set({.pid = 100, .stack = 1, .environment = ours_});
  set({.pid = 110, .parent = 100, .stack = 1, .environment = ours_});
  ProcessTree seen = tree();
  seen.look(100);
  EXPECT_TRUE(member(seen, 110).forked);
  EXPECT_EQ(member(seen, 110).pool, Fact::kYes);
  set({.pid = 110, .parent = 100, .stack = 2, .environment = "HOME=/"});
  seen.look(100);
  EXPECT_FALSE(member(seen, 110).forked);
  EXPECT_EQ(member(seen, 110).pool, Fact::kNo);
}

TEST_F(Tree, BelievesAnEnvironmentThatTheProgramOverwroteNoMore) {
  set({.pid = 100, .stack = 1, .environment = ours_});
  ProcessTree seen = tree();
  seen.look(100);
  set({.pid = 100, .stack = 1, .environment = "postgres: writer process"});
  seen.look(100);
  EXPECT_EQ(member(seen, 100).pool, Fact::kYes);
  EXPECT_EQ(member(seen, 100).preload, Fact::kYes);
}

TEST_F(Tree, AddsUpCpuTimeAndForgetsTheIdle) {
  const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  set({.pid = 10, .ticks = 50});
  ProcessTree seen = tree();
  seen.look(10);
  const int count = static_cast<int>(ProcessTree::kMostKept) + 100;
  for (int pid = 100; pid < 100 + count; ++pid) {
    const fs::path place = proc() / std::to_string(pid);
    put(place / "stat", fmt::format("{} (true) Z 10 1 1 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0 9 0 0\n", pid));
  }
  seen.look(10);
  for (int pid = 100; pid < 100 + count; ++pid) fs::remove_all(proc() / std::to_string(pid));
  seen.look(10);
  EXPECT_LE(seen.members().size(), ProcessTree::kMostKept);
  EXPECT_NEAR(seen.cpu_s(), (50 + count) * tick, tick / 2);
}

TEST_F(Tree, GivesTheTargetsNumberToNobodyElse) {
  set({.pid = 100, .start = 5});
  ProcessTree seen = tree();
  seen.look(100);
  fs::remove_all(proc() / "100");
  set({.pid = 100, .start = 900});
  seen.look(100);
  EXPECT_EQ(seen.members().size(), 1u);
  EXPECT_FALSE(member(seen, 100).running);
}

TEST(PauseBetweenLooks, IsAHundredTimesTheirCpuTimeWithinLimits) {
  EXPECT_EQ(ProcessTree::pause_after(0), 10'000'000);
  EXPECT_EQ(ProcessTree::pause_after(50'000), 10'000'000);
  EXPECT_EQ(ProcessTree::pause_after(1'000'000), 100'000'000);
  EXPECT_EQ(ProcessTree::pause_after(1'000'000'000), 250'000'000);
}

TEST_F(Tree, LivesWithDamagedFiles) {
  set({.pid = 100});
  put(proc() / "110" / "stat", "110 (no end");
  put(proc() / "111" / "stat", "");
  put(proc() / "112" / "stat", "112 (short) S");
  put(proc() / "113" / "stat", "113 (a) S 100");
  put(proc() / "not-a-number" / "stat", "1 (x) S 100 1");
  ProcessTree seen = tree();
  seen.look(100);
  EXPECT_EQ(member(seen, 113).pid, 113);
  EXPECT_EQ(seen.members().size(), 2u);
}

}  // namespace
}  // namespace tacho::launch
