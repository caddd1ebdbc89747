// The activity of senders of late messages (ranks/match/late_senders.h): each kind planted in a trace of its own.
#include "ranks/match/late_senders.h"

#include <gtest/gtest.h>

#include <string>

#include "support/trace_maker.h"
#include "trace/rows.h"

namespace tacho::ranks {
namespace {

using trace::Folder;
using trace::must;

// A sender whose receiver waited from 100,000 to 200,000 on the common clock, which is 7,000 behind the sender's own.
class Sender {
 public:
  static constexpr int64_t kBegin = 107'000, kEnd = 207'000;
  Sender() : made_(folder_ / "t.tacho") {
    report_.waits.resize(3);
    const int64_t process = made_.process(1, "p", 4);
    for (int64_t i = 0; i < 2; ++i) host_[i] = made_.thread_track(process, 1 + i);
    queue_ = made_.queue_track(process, made_.device("G"), 7);
  }
  void call(const char* function, event::Domain domain, int64_t start, int64_t end, int thread = 0) {
    made_.call(host_[thread], start, end - start, made_.function(function, domain));
  }
  void kernel(const char* name, int64_t start, int64_t end) {
    made_.dispatch(queue_, start, end - start, made_.kernel(name));
  }
  void copy(int64_t start, int64_t end) {
    made_.copy(queue_, start, end - start, event::CopyDirection::kUnknown, 8, 0);
  }
  void range(const char* name, int64_t start, int64_t end, int thread = 0) {
    made_.marker(host_[thread], start, end - start, made_.label(name));
  }
  // It waited for run 2 meanwhile; on the common clock.
  void waited(int64_t start, int64_t end) { report_.waits[1].push_back({start, end, 2}); }

  Meanwhile meanwhile(Names& names) {
    made_.open();
    std::vector<RankRun> runs(3);
    for (int64_t i = 0; i < 3; ++i) runs[static_cast<size_t>(i)].rank = 10 + i;
    runs[1].file = folder_ / "t.tacho";
    LateMessage late{};
    late.from = 1;
    late.waited = kEnd - kBegin;
    late.until = late.sent_at = 200'000;
    late.sender_until = kEnd;
    late.thread = 1;  // its row
    report_.late.push_back(late);
    explain_late_messages(runs, names, report_);
    return report_.late[0].meanwhile;
  }
  std::string text() {
    Names names;
    const Meanwhile found = meanwhile(names);
    return meanwhile_text(found, names) + " " + std::to_string(found.time) + " " + std::to_string(found.name_time);
  }

 private:
  Folder folder_;
  test::TraceMaker made_;
  MessageReport report_;
  int64_t queue_ = 0;
  int64_t host_[2];
};

constexpr auto kCl = event::Domain::kOpenCL;
constexpr auto kMpiCalls = event::Domain::kMpi;

TEST(LateSender, InItsOwnCodeIsInTheInnermostRangeThatCoversHalfOfIt) {
  Sender sender;
  sender.range("step 7", 90'000, 300'000);  // marks a step
  sender.range("solve", 80'000, 400'000);
  sender.range("pack", 110'000, 190'000);
  sender.range("tiny", 120'000, 130'000);
  sender.range("other thread", 110'000, 200'000, 1);
  sender.call("MPI_Isend", kMpiCalls, 107'000, 117'000);
  sender.call("clFinish", kCl, 110'000, 200'000, 1);  // of another thread
  EXPECT_EQ(sender.text(), "its own code on the host, in pack 90000 73000");
}

TEST(LateSender, InACallRanKernels) {
  Sender sender;
  sender.call("clFinish", kCl, 50'000, 500'000);
  sender.kernel("short", 107'000, 117'000);
  sender.kernel("long", 100'000, 180'000);
  sender.copy(170'000, 190'000);
  EXPECT_EQ(sender.text(), "kernels, most long 73000 73000");
}

TEST(LateSender, InItsOwnCodeWhileKernelsRanIsNotExcusedByThem) {
  Sender sender;
  sender.call("clFinish", kCl, 107'000, 110'000);
  sender.kernel("long", 100'000, 300'000);
  EXPECT_EQ(sender.text(), "its own code on the host 97000 0");
}

TEST(LateSender, WithoutCallsInTheTraceIsTakenToWaitForItsKernels) {
  Sender sender;
  sender.kernel("long", 100'000, 180'000);
  EXPECT_EQ(sender.text(), "kernels, most long 73000 73000");
}

TEST(LateSender, Copied) {
  Sender sender;
  sender.call("clEnqueueReadBuffer", kCl, 107'000, 207'000);
  sender.copy(120'000, 200'000);
  EXPECT_EQ(sender.text(), "copies 80000 0");
}

TEST(LateSender, WasInACallWithAnIdleGpu) {
  Sender sender;
  sender.call("clBuildProgram", kCl, 117'000, 300'000);
  sender.call("clFinish", kCl, 107'000, 112'000);
  EXPECT_EQ(sender.text(), "in clBuildProgram 95000 90000");
}

TEST(LateSender, WasInAnotherCallOfMpi) {
  Sender sender;
  sender.call("MPI_Barrier", kMpiCalls, 100'000, 206'000);
  EXPECT_EQ(sender.text(), "in MPI_Barrier 99000 99000");
}

TEST(LateSender, WaitedItself) {
  Sender sender;
  sender.call("MPI_Recv", kMpiCalls, 100'000, 206'000);
  sender.waited(90'000, 180'000);
  EXPECT_EQ(sender.text(), "waited itself for rank 12 80000 0");
}

TEST(LateSender, OfAFileThatIsGoneIsUnknown) {
  Names names;
  MessageReport report;
  report.waits.resize(1);
  report.late.resize(1);
  report.late[0].waited = 1000;
  std::vector<RankRun> runs(1);
  runs[0].file = "/nowhere/t.tacho";
  explain_late_messages(runs, names, report);
  EXPECT_EQ(report.late[0].meanwhile.kind, Meanwhile::Kind::kUnknown);
  EXPECT_EQ(meanwhile_text(report.late[0].meanwhile, names), "");
}

}  // namespace
}  // namespace tacho::ranks
