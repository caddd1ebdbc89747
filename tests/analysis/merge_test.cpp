// Merging traces whose clocks have nothing in common, and reports without results.
#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <string>
#include <vector>

#include "analysis/questions.h"
#include "analysis/trim.h"
#include "support/trace_maker.h"
#include "trace/read/rows.h"

namespace tacho::analysis {
namespace {

using test::TraceMaker;
constexpr int64_t kHour = 3'600'000'000'000;

// One kernel of 50 ns at `start`, in a trace that knows no clock but its own.
std::shared_ptr<const trace::Trace> without_clock(int64_t start) {
  TraceMaker made;
  made.dispatch(made.queue_track(made.process(7, "app", event::kUnknown, ""), made.device("GPU 0"), 1), start, 50,
                made.kernel("k"));
  return made.open();
}

std::pair<std::shared_ptr<const trace::Trace>, std::vector<std::string>> merged(int64_t a, int64_t b) {
  std::vector<std::string> notes;
  auto writer = std::move(*trace::TraceWriter::create_temporary());
  const Status done = merge_into({{without_clock(a), "a.rpd"}, {without_clock(b), "b.rpd"}}, *writer, notes);
  EXPECT_TRUE(done) << done.error().message;
  auto trace = writer->finish_and_open();
  EXPECT_TRUE(trace);
  return {*trace, notes};
}

TEST(Merge, ClocksWithoutARelationAreToldAndStayWhenNear) {
  const auto [trace, notes] = merged(1'000, kHour / 2);
  EXPECT_EQ(trace->time_range(), (std::pair<int64_t, int64_t>{1'000, kHour / 2 + 50}));
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0], "b.rpd: unaligned: it does not tell how its clock relates to that of "
                      "a.rpd: times of the two are put together as they are");
  EXPECT_EQ(trace->rows(event::Table::kNote), 1);
}

TEST(Merge, TimesThatLieFarApartBeginTogether) {
  for (const auto& [a, b] : {std::pair{int64_t{1'000}, 100 * kHour}, std::pair{100 * kHour, int64_t{1'000}}}) {
    const auto [trace, notes] = merged(a, b);
    EXPECT_EQ(trace->time_range(), (std::pair<int64_t, int64_t>{a, a + 50}));
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_NE(notes[0].find("100.0 hours away and were moved so that both begin together"), std::string::npos)
        << notes[0];
  }
}

struct OneKernel {
  std::string host;
  int64_t rank;
  std::string uuid;
  int64_t booted = 0;  // s; 0 = not known
};

// How many devices there are when traces of one kernel each, on a GPU 0 of this host, rank and uuid, are merged.
int64_t devices_of(const std::vector<OneKernel>& machines) {
  std::vector<MergeInput> inputs;
  for (const auto& [host, rank, uuid, booted] : machines) {
    TraceMaker made;
    if (booted != 0)
      made.writer().add(
          event::row::Clock{.raw = 500, .monotonic = 500, .boottime = 700, .realtime = booted * 1'000'000'000 + 700});
    const int64_t device = made.writer().dimension(event::row::Device{.kind = event::DeviceKind::kGpu,
                                                                      .index = 0,
                                                                      .name = made.writer().string("GPU 0"),
                                                                      .uuid = made.writer().string(uuid)});
    made.dispatch(made.queue_track(made.process(7, "app", rank, host), device, 1), 1'000, 50, made.kernel("k"));
    inputs.push_back({made.open(), "t"});
  }
  std::vector<std::string> notes;
  auto writer = std::move(*trace::TraceWriter::create_temporary());
  EXPECT_TRUE(merge_into(inputs, *writer, notes));
  return (*writer->finish_and_open())->rows(event::Table::kDevice) - 1;
}

TEST(Merge, DevicesOfTwoMachinesStayApart) {
  constexpr int64_t kNone = event::kUnknown;
  EXPECT_EQ(devices_of({{"a", kNone, ""}, {"b", kNone, ""}}), 2);
  EXPECT_EQ(devices_of({{"a", 0, ""}, {"a", 1, ""}}), 1);
  EXPECT_EQ(devices_of({{"a", 0, ""}, {"b", 1, ""}, {"a", 2, ""}, {"b", 3, ""}}), 2);
  EXPECT_EQ(devices_of({{"", 0, ""}, {"", 4, ""}}), 2);
  EXPECT_EQ(devices_of({{"", 3, ""}, {"", 3, ""}}), 1);
  EXPECT_EQ(devices_of({{"", kNone, ""}, {"", kNone, ""}}), 2);
  EXPECT_EQ(devices_of({{"a", kNone, "GPU-1"}, {"b", kNone, "GPU-1"}}), 1);
  // Of one name, by when they were started.
  EXPECT_EQ(devices_of({{"a", kNone, "", 1'790'000'000}, {"a", kNone, "", 1'790'000'100}}), 2);
  EXPECT_EQ(devices_of({{"a", kNone, "", 1'790'000'000}, {"a", kNone, "", 1'790'000'000}}), 1);
  EXPECT_EQ(devices_of({{"a", kNone, "", 1'790'000'000}, {"a", kNone, ""}}), 1);
}

// Telemetry of a machine has no process: its lines differ by nothing but the machine.
TEST(Merge, TelemetryOfTwoMachinesStaysApart) {
  const auto lines = [](const char* second_host) {
    std::vector<MergeInput> inputs;
    for (const char* host : {"a", second_host}) {
      TraceMaker made;
      made.process(7, "app", event::kUnknown, host);
      trace::TraceWriter& writer = made.writer();
      const int64_t track = writer.dimension(event::row::Track{.kind = event::TrackKind::kCounter,
                                                               .native = 1,
                                                               .name = writer.string("GPU Core Clock [0]"),
                                                               .category = writer.string("telemetry.gpu")});
      writer.add(event::row::Reading{.track = track, .start = 1'000, .value = std::bit_cast<int64_t>(1980.0)});
      inputs.push_back({made.open(), "t"});
    }
    std::vector<std::string> notes;
    auto writer = std::move(*trace::TraceWriter::create_temporary());
    EXPECT_TRUE(merge_into(inputs, *writer, notes));
    const auto merged = *writer->finish_and_open();
    std::set<std::string> hosts;
    Status status;
    for (const auto& read : trace::rows<event::column::Reading::track>(*merged, status)) {
      const auto process = trace::cell<event::column::Track::process>(*merged, read.track);
      hosts.insert(fmt::format(
          "{} {}", read.track,
          process == 0 ? "the first" : std::string(trace::text<event::column::Process::host>(*merged, process))));
    }
    EXPECT_TRUE(status);
    return hosts;
  };
  EXPECT_EQ(lines("b"), (std::set<std::string>{"1 the first", "2 b"}));
  EXPECT_EQ(lines("a"), (std::set<std::string>{"1 the first"}));
}

TEST(LaunchDelay, WithoutApiCallsSaysWhatIsMissing) {
  const auto trace = without_clock(1'000);
  const auto answer = launch_delay(*trace);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->when_empty, "no kernel that was launched on an idle GPU by a recorded API call");
  ASSERT_EQ(answer->remarks.size(), 1U);
  EXPECT_NE(answer->remarks[0].find("the API calls that launched the 1 GPU operation, and the trace holds none"),
            std::string::npos)
      << answer->remarks[0];
  TraceMaker nothing;
  nothing.process(7);
  const auto empty = nothing.open();
  const auto of_nothing = launch_delay(*empty);
  ASSERT_TRUE(of_nothing);
  EXPECT_EQ(of_nothing->when_empty, "no GPU operations");
  EXPECT_TRUE(of_nothing->remarks.empty());
}

}  // namespace
}  // namespace tacho::analysis
