// Traces that hold the same recording, and those of one job.
#include "ranks/read/recordings.h"

#include <gtest/gtest.h>

namespace tacho::ranks {
namespace {

using Places = std::vector<size_t>;

// A run whose work is told apart by `seed`.
RankRun run_of(int64_t rank, int64_t seed) {
  RankRun run;
  run.rank = rank;
  run.kernels = 100 + seed;
  run.operations = 120 + seed;
  run.total.first = 1'000'000;
  run.total.last = 2'000'000'000 + seed;
  run.total.busy = run.total.compute = 900'000'000 + seed;
  return run;
}

PassedTrace trace_of(const std::string& file, const RankRun& run) {
  return {.file = file, .runs = {run}};
}

TEST(Repeated, ACopyIsReadOnce) {
  std::vector<std::string> remarks;
  const std::vector<PassedTrace> traces = {trace_of("a", run_of(0, 1)), trace_of("b", run_of(1, 2)),
                                           trace_of("c", run_of(0, 1))};
  EXPECT_EQ(without_repeated(traces, remarks), (Places{0, 1}));
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_EQ(remarks[0], "left out: c: a holds the same recording");
}

TEST(Repeated, RunsThatAreAlikeButForTheirTimeStay) {
  std::vector<std::string> remarks;
  RankRun later = run_of(kUnknown, 1);
  later.total.first += 7'000;
  later.total.last += 7'000;
  EXPECT_EQ(
      without_repeated(std::vector{trace_of("a.json", run_of(kUnknown, 1)), trace_of("b.json.gz", later)}, remarks),
      (Places{0, 1}));
  // Another form may count from elsewhere.
  EXPECT_EQ(without_repeated(std::vector{trace_of("a.json", run_of(kUnknown, 1)), trace_of("b.rpd", later)}, remarks),
            (Places{0}));
}

TEST(Repeated, OfAMergeAndItsPartsThePartsStay) {
  std::vector<std::string> remarks;
  PassedTrace merged{.file = "all", .runs = {run_of(0, 1), run_of(1, 2)}, .recordings = 2};
  // Its clock was corrected by a drift of 50 ppm.
  merged.runs[1].total.last += 100'000;
  merged.runs[1].total.busy += 45'000;
  const std::vector<PassedTrace> traces = {merged, trace_of("a", run_of(0, 1)), trace_of("b", run_of(1, 2))};
  EXPECT_EQ(without_repeated(traces, remarks), (Places{1, 2}));
  EXPECT_EQ(remarks[0], "left out: all: a and b hold the same recordings");
}

TEST(Repeated, AMergeOfMoreThanLiesBesideItStays) {
  std::vector<std::string> remarks;
  const PassedTrace merged{.file = "all", .runs = {run_of(0, 1), run_of(1, 2)}, .recordings = 2};
  const std::vector<PassedTrace> traces = {merged, trace_of("a", run_of(0, 1))};
  EXPECT_EQ(without_repeated(traces, remarks), (Places{0}));
  EXPECT_EQ(remarks[0], "left out: a: all holds the same recording");
}

TEST(Repeated, AMergeWithoutRanksIsTheSumOfItsParts) {
  std::vector<std::string> remarks;
  RankRun sum = run_of(kUnknown, 3);
  sum.kernels = 203;
  sum.operations = 243;
  const std::vector<PassedTrace> traces = {trace_of("a", run_of(kUnknown, 1)),
                                           trace_of("b", run_of(kUnknown, 2)),
                                           {.file = "z", .runs = {sum}, .recordings = 2}};
  EXPECT_EQ(without_repeated(traces, remarks), (Places{0, 1}));
}

// Ranks of one program do the same: equal counts are no sign, and neither is a trace without work.
TEST(Repeated, EqualCountsOfDifferentTimesStay) {
  std::vector<std::string> remarks;
  RankRun other = run_of(0, 1);
  other.total.busy += 1;
  const std::vector<PassedTrace> traces = {trace_of("a", run_of(0, 1)), trace_of("b", other), trace_of("c", RankRun{}),
                                           trace_of("d", RankRun{})};
  EXPECT_EQ(without_repeated(traces, remarks).size(), 4U);
  EXPECT_TRUE(remarks.empty());
}

TEST(Repeated, OtherRanksAreOtherRecordings) {
  std::vector<std::string> remarks;
  const std::vector<PassedTrace> traces = {trace_of("a", run_of(0, 1)), trace_of("b", run_of(1, 1))};
  EXPECT_EQ(without_repeated(traces, remarks).size(), 2U);
}

TEST(Jobs, RankNumbersTieAndTheSameNumberDoesNot) {
  const std::vector<PassedTrace> traces = {trace_of("a", run_of(0, 1)), trace_of("b", run_of(1, 2)),
                                           trace_of("c", run_of(kUnknown, 3))};
  EXPECT_EQ(jobs_of(traces, Names()), (std::vector<Places>{{0, 1}, {2}}));
  const std::vector<PassedTrace> same = {trace_of("a", run_of(0, 1)), trace_of("b", run_of(0, 2))};
  EXPECT_EQ(jobs_of(same, Names()).size(), 2U);
}

TEST(Jobs, WorldsOfDifferentSizesAreDifferentJobs) {
  std::vector<PassedTrace> traces = {trace_of("a", run_of(0, 1)), trace_of("b", run_of(1, 2))};
  traces[0].runs[0].world = 2;
  traces[1].runs[0].world = 8;
  EXPECT_EQ(jobs_of(traces, Names()).size(), 2U);
}

TEST(Jobs, RunsOfOtherDaysAreDifferentJobs) {
  std::vector<PassedTrace> traces = {trace_of("a", run_of(0, 1)), trace_of("b", run_of(1, 2))};
  for (PassedTrace& trace : traces) trace.runs[0].has_realtime = true;
  EXPECT_EQ(jobs_of(traces, Names()).size(), 1U);
  traces[1].runs[0].clock_shift = int64_t{86'400} * 1'000'000'000;
  EXPECT_EQ(jobs_of(traces, Names()).size(), 2U);
}

TEST(Jobs, SharedGroupsTieFilesWithoutRanks) {
  Names names;
  std::vector<PassedTrace> traces;
  for (const std::string group : {"tp", "tp", "other"}) {
    RankRun run = run_of(kUnknown, static_cast<int64_t>(traces.size()));
    run.arrivals = 10;
    StatedCollective stated;
    stated.group = group;
    run.communicators = {names.communicator(stated)};
    traces.push_back(trace_of(group, run));
  }
  EXPECT_EQ(jobs_of(traces, names), (std::vector<Places>{{0, 1}, {2}}));
}

TEST(Jobs, UnnamedCollectivesTieWhereTheyAreAsMany) {
  Names names;
  std::vector<PassedTrace> traces;
  for (const size_t arrivals : {1000U, 1001U, 40U}) {
    RankRun run = run_of(kUnknown, static_cast<int64_t>(arrivals));
    run.arrivals = arrivals;
    run.communicators = {names.communicator(StatedCollective{})};
    traces.push_back(trace_of("t", run));
  }
  EXPECT_EQ(jobs_of(traces, names), (std::vector<Places>{{0, 1}, {2}}));
}

TEST(Jobs, OneHostAtOneTimeIsOneRun) {
  std::vector<PassedTrace> traces = {trace_of("a", run_of(kUnknown, 1)), trace_of("b", run_of(kUnknown, 2))};
  for (PassedTrace& trace : traces) trace.runs[0].host = "node";
  EXPECT_EQ(jobs_of(traces, Names()).size(), 1U);
  traces[1].runs[0].total.first += 3'000'000'000;
  traces[1].runs[0].total.last += 3'000'000'000;
  EXPECT_EQ(jobs_of(traces, Names()).size(), 2U);
}

}  // namespace
}  // namespace tacho::ranks
