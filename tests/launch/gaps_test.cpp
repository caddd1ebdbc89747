// Which sentence a process that ran gets, by what attached of it: one for each reason, none where nothing is missing.
#include "launch/run/gaps.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tacho::launch {
namespace {

using Fact = TreeMember::Fact;

// A process of 0.3 s in which all is as it should be.
TreeMember whole(pid_t pid, const std::string& name = "work") {
  TreeMember member;
  member.pid = member.own_pid = pid;
  member.name = name;
  member.cpu_s = 0.3;
  member.pool = member.preload = member.loaded = member.dynamic = Fact::kYes;
  member.secure = Fact::kNo;
  member.looks = 5;
  return member;
}

class Found : public testing::Test {
 protected:
  Found() {
    recording_.target.sampler = event::Sampler::kTimer;
    attach(1, "main");
    evidence_.members = {whole(1, "main")};
    evidence_.members[0].main = true;
  }
  void attach(uint32_t pid, const std::string& name, bool preloaded = true) {
    decode::ProcessFacts facts;
    facts.row = static_cast<int64_t>(evidence_.attached.size()) + 1;
    facts.pid = pid;
    facts.name = name;
    facts.preloaded = preloaded;
    evidence_.attached.push_back(facts);
  }
  Gaps with(const TreeMember& member) {
    evidence_.members.push_back(member);
    return find_gaps(evidence_);
  }
  void expect_one(const Gaps& gaps, const std::vector<std::string>& parts) {
    ASSERT_EQ(gaps.warnings.size(), 1u) << (gaps.warnings.empty() ? "" : gaps.warnings[0]);
    for (const std::string& part : parts)
      EXPECT_NE(gaps.warnings[0].find(part), std::string::npos) << part << " is not in: " << gaps.warnings[0];
    EXPECT_EQ(gaps.processes, 1);
  }
  void expect_none(const Gaps& gaps) {
    EXPECT_TRUE(gaps.warnings.empty()) << gaps.warnings[0];
    EXPECT_TRUE(gaps.remarks.empty()) << gaps.remarks[0];
    EXPECT_EQ(gaps.processes, 0);
  }

  Recording recording_;
  std::string executable_ = "/bin/true";
  RunEvidence evidence_{.recording = recording_, .executable = executable_};
};

TEST_F(Found, NothingWhereAllAttached) {
  attach(2, "work");
  expect_none(with(whole(2)));
}

TEST_F(Found, ClearedEnvironment) {
  TreeMember member = whole(2);
  member.pool = member.preload = member.loaded = Fact::kNo;
  expect_one(with(member), {"work (pid 2; 0.30 s of CPU time)", "cleared environment", "nothing of it", "TACHO_POOL"});
}

TEST_F(Found, ShortToolsAreNoGap) {
  TreeMember member = whole(2, "ls");
  member.pool = member.preload = member.loaded = Fact::kNo;
  member.cpu_s = 0.01;
  expect_none(with(member));
}

TEST_F(Found, ShortProgramsWithAGpuAreOne) {
  TreeMember member = whole(2);
  member.pool = member.preload = member.loaded = Fact::kNo;
  member.cpu_s = 0.01;
  member.device = true;
  expect_one(with(member), {"work (pid 2; 0.01 s"});
}

TEST_F(Found, StaticProgram) {
  TreeMember member = whole(2);
  member.loaded = member.dynamic = Fact::kNo;
  expect_one(with(member), {"statically linked", "--sampler perf"});
}

TEST_F(Found, StaticProgramThatAttached) {
  attach(2, "work");
  TreeMember member = whole(2);
  member.dynamic = Fact::kNo;
  expect_one(with(member), {"statically linked", "no call stacks, ROCTx ranges or MPI calls of it", "--sampler perf"});
  recording_.target.sampler = event::Sampler::kOff;
  expect_none(find_gaps(evidence_));
}

TEST_F(Found, ReplacedPreloadOfOneThatAttached) {
  attach(2, "work", false);
  TreeMember member = whole(2);
  member.preload = Fact::kNo;
  expect_one(with(member), {"LD_PRELOAD", "no call stacks, ROCTx ranges or MPI calls of it"});
}

TEST_F(Found, ReplacedPreloadOfOneThatNobodySaw) {
  attach(2, "work", false);
  expect_one(find_gaps(evidence_), {"work (pid 2)", "LD_PRELOAD"});
}

TEST_F(Found, AnImageAfterOneThatAttached) {
  attach(2, "env");
  TreeMember member = whole(2);
  member.file = "work";
  member.pool = member.preload = member.loaded = Fact::kNo;
  expect_one(with(member), {"work (pid 2; 0.30 s", "cleared environment"});
}

TEST_F(Found, AnImageAfterOneOfTheSameFile) {
  attach(2, "work");
  evidence_.attached.back().start = 1'000;
  TreeMember member = whole(2);
  member.file = "work";
  member.exec_after = 2'000;
  member.exec_before = 3'000;
  member.pool = member.preload = member.loaded = Fact::kNo;
  expect_one(with(member), {"cleared environment"});
}

TEST_F(Found, AnImageThatAttachedUnderAnotherName) {
  attach(2, "python3");
  evidence_.attached.back().start = 4'000;
  TreeMember member = whole(2);
  member.file = "python3.11";
  member.exec_after = 2'000;
  member.exec_before = 3'000;
  expect_none(with(member));
}

TEST_F(Found, ManySmallOnesTogether) {
  evidence_.cpu_s = 2;
  evidence_.cpu_seen_s = 2;
  for (pid_t pid = 10; pid < 110; ++pid) {
    TreeMember member = whole(pid);
    member.cpu_s = 0.01;
    member.pool = member.preload = member.loaded = Fact::kNo;
    evidence_.members.push_back(member);
  }
  const Gaps gaps = find_gaps(evidence_);
  ASSERT_EQ(gaps.warnings.size(), 1u);
  EXPECT_EQ(gaps.warnings[0].find("100 processes (work 10, work 11,"), 0u) << gaps.warnings[0];
  EXPECT_EQ(gaps.processes, 100);
}

TEST_F(Found, AWishForNoPreloadIsNoGap) {
  attach(2, "work", false);
  evidence_.preload = false;
  expect_none(find_gaps(evidence_));
}

TEST_F(Found, ProcessesThatShareAReasonAreOneSentence) {
  for (const pid_t pid : {2, 3, 4}) {
    TreeMember member = whole(pid);
    member.preload = member.loaded = Fact::kNo;
    evidence_.members.push_back(member);
  }
  const Gaps gaps = find_gaps(evidence_);
  ASSERT_EQ(gaps.warnings.size(), 1u);
  EXPECT_NE(gaps.warnings[0].find("3 processes (work 2, work 3, work 4; 0.90 s of CPU time)"), std::string::npos)
      << gaps.warnings[0];
  EXPECT_EQ(gaps.processes, 3);
}

TEST_F(Found, AnotherUser) {
  TreeMember member = whole(2);
  member.other_user = true;
  evidence_.refused = 1;
  expect_one(with(member), {"another user", "run tacho as that user"});
}

TEST_F(Found, OnesThatOnlyThePoolKnows) {
  evidence_.refused = 2;
  const Gaps gaps = find_gaps(evidence_);
  ASSERT_EQ(gaps.warnings.size(), 1u);
  EXPECT_EQ(gaps.processes, 2);
}

TEST_F(Found, SetuidProgram) {
  TreeMember member = whole(2);
  member.secure = Fact::kYes;
  member.loaded = Fact::kNo;
  expect_one(with(member), {"setuid", "LD_PRELOAD"});
}

TEST_F(Found, AnotherMountNamespace) {
  TreeMember member = whole(2);
  member.loaded = Fact::kNo;
  member.other_mounts = true;
  expect_one(with(member), {"could not load libtacho.so", "mount namespace"});
}

TEST_F(Found, NoDescriptorLeft) {
  TreeMember member = whole(2);
  member.descriptors_left = 0;
  expect_one(with(member), {"no file descriptor left", "ulimit -n"});
}

TEST_F(Found, OneThatCouldNotAttach) {
  expect_one(with(whole(2)), {"could not attach"});
}

TEST_F(Found, ForkedWorkersWithoutARecordAreNoGap) {
  TreeMember member = whole(2);
  member.forked = true;
  expect_none(with(member));
}

TEST_F(Found, ChildrenOfAnotherTachoAreNoGap) {
  TreeMember member = whole(2);
  member.pool = Fact::kNo;
  member.other_tacho = true;
  member.loaded = Fact::kNo;
  expect_none(with(member));
}

TEST_F(Found, WithoutASamplerIdleLibrariesAreNoGap) {
  recording_.target.sampler = event::Sampler::kOff;
  TreeMember member = whole(2);
  member.device = true;
  expect_none(with(member));
}

TEST_F(Found, TheSamplerOutsideNeedsNoPreload) {
  recording_.target.sampler = event::Sampler::kPerf;
  TreeMember member = whole(2);
  member.loaded = member.dynamic = Fact::kNo;
  expect_none(with(member));
}

TEST_F(Found, ThreadsWithoutATimer) {
  evidence_.attached[0].untimed_threads = 9;
  const Gaps gaps = find_gaps(evidence_);
  ASSERT_EQ(gaps.warnings.size(), 1u);
  EXPECT_EQ(gaps.warnings[0].find("9 threads of main (pid 1) have no call stacks"), 0u) << gaps.warnings[0];
}

TEST_F(Found, CpuTimeThatNobodyHas) {
  evidence_.cpu_s = 10.3;
  evidence_.cpu_seen_s = 0.3;
  expect_one(find_gaps(evidence_), {"10.00 s of 10.30 s of CPU time", "before tacho could look"});
}

TEST_F(Found, CpuTimeOfWhichAFewWereSeen) {
  // 600 short processes of which tacho met 79, each too short to be told.
  evidence_.cpu_s = 3.0;
  evidence_.cpu_seen_s = 0.9;
  for (pid_t pid = 10; pid < 89; ++pid) {
    TreeMember member = whole(pid);
    member.cpu_s = 0.005;
    member.pool = member.preload = member.loaded = Fact::kNo;
    evidence_.members.push_back(member);
  }
  expect_one(find_gaps(evidence_), {"2.10 s of 3.00 s of CPU time", "before tacho could look"});
  // Without that much time that nobody has they stay short tools of a script.
  evidence_.cpu_seen_s = 2.7;
  expect_none(find_gaps(evidence_));
}

TEST_F(Found, CpuTimeOfShortProcessesThatAttached) {
  evidence_.cpu_s = 10.3;
  evidence_.cpu_seen_s = 0.3;
  for (uint32_t pid = 10; pid < 210; ++pid) attach(pid, "short");
  expect_none(find_gaps(evidence_));
}

TEST_F(Found, SurvivorsThatWorkAndThatSleep) {
  attach(2, "server");
  evidence_.survivors = {{whole(2, "server"), true}, {whole(3, "sleep"), false}};
  const Gaps gaps = find_gaps(evidence_);
  ASSERT_EQ(gaps.warnings.size(), 1u);
  EXPECT_EQ(gaps.warnings[0].find("server (pid 2) still runs"), 0u) << gaps.warnings[0];
  ASSERT_EQ(gaps.remarks.size(), 1u);
  EXPECT_EQ(gaps.remarks[0].find("sleep (pid 3) still runs"), 0u) << gaps.remarks[0];
  EXPECT_EQ(gaps.processes, 1);
}

TEST_F(Found, AProgramThatRecordedNothing) {
  evidence_.attached.clear();
  recording_.target.sampler = event::Sampler::kOff;
  const Gaps gaps = find_gaps(evidence_);
  ASSERT_EQ(gaps.warnings.size(), 1u);
  EXPECT_NE(gaps.warnings[0].find("made no call of a GPU runtime"), std::string::npos) << gaps.warnings[0];
  EXPECT_EQ(gaps.processes, 0);
}

}  // namespace
}  // namespace tacho::launch
