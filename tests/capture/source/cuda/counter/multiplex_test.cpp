// Cycles of iteration multiplexing over sequences of launches, against stand-ins for CUPTI's sessions that write down
// which launch became which range of which pass.
#include "capture/source/cuda/counter/multiplex.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace tacho::capture::counter {

constinit Collection g_collection{};
constinit CounterSession g_sessions[kMaxSessions] = {};

namespace {

constexpr size_t kPasses = 3;

struct Recorded {
  std::vector<std::vector<uint64_t>> passes;  // shapes of the ranges of each pass since the image was made
  size_t made = 0, disabled = 0;              // objects
};
std::map<void*, Recorded> g_recorded;
std::map<void*, uint32_t> g_gpu_of;
std::vector<std::pair<uint32_t, std::vector<uint64_t>>> g_images;  // GPU and shapes of complete images
size_t g_uneven = 0;                                               // ranges that combine unlike launches
spool::SpoolState g_state{};

}  // namespace

CounterSession* known_session(void* context) {
  for (CounterSession& each : g_sessions)
    if (each.context == context) return &each;
  return nullptr;
}
CounterSession* rival_of(void* context) {
  for (CounterSession& each : g_sessions)
    if (each.context != nullptr && each.context != context && each.device == g_gpu_of[context]) return &each;
  return nullptr;
}
CounterSession* session_of(void* context, int) {
  if (CounterSession* const known = known_session(context)) return known;
  for (CounterSession& each : g_sessions)
    if (each.context == nullptr) {
      each = CounterSession{};
      each.context = context;
      each.device = g_gpu_of[context];
      ++g_recorded[context].made;
      return &each;
    }
  return nullptr;
}
void disable(CounterSession& session, bool) {
  ++g_recorded[session.context].disabled;
  session.context = nullptr;
  session.running = false;
}
size_t ranges() {
  return kMaxRanges;
}
bool fresh_image(CounterSession& session) {
  g_recorded[session.context].passes.clear();
  return true;
}
bool configure(CounterSession&, int, size_t) {
  return true;
}
bool start(CounterSession& session) {
  g_recorded[session.context].passes.emplace_back();
  session.running = true;
  session.used = 0;
  return true;
}
bool stop(CounterSession& session) {
  session.running = false;
  return true;
}
bool decode(CounterSession& session) {
  return g_recorded[session.context].passes.size() == kPasses;
}
size_t add_record(MappedBytes& records, const spool::CounterRecord& record, const char*) {
  if (!records.reserve(records.count + sizeof record)) return SIZE_MAX;
  *record_at(records, records.count) = record;
  records.count += sizeof record;
  return records.count - sizeof record;
}
void write_records(MappedBytes& records) {
  records.count = 0;
}
void write_image(CounterSession& session) {
  std::vector<uint64_t> shapes;
  const auto& passes = g_recorded[session.context].passes;
  for (size_t at = 0; at < session.records.count; at += sizeof(spool::CounterRecord)) {
    const spool::CounterRecord& record = *record_at(session.records, at);
    if (record.image == spool::kNotMeasured) continue;
    shapes.push_back(record.queue);
    for (const auto& pass : passes) g_uneven += record.range >= pass.size() || pass[record.range] != record.queue;
  }
  g_images.emplace_back(session.device, shapes);
  write_records(session.records);
}
namespace {

class Multiplexing : public testing::Test {
 protected:
  void SetUp() override {
    for (CounterSession& each : g_sessions)
      if (each.context != nullptr) {
        multiplex::abandon(each);
        each.context = nullptr;
      }
    g_recorded.clear();
    g_images.clear();
    g_gpu_of.clear();
    g_uneven = 0;
    g_collection.passes = kPasses;
    g_collection.state = &g_state;
    // Shapes are remembered for a GPU as long as the process lives: each test has its own GPUs.
    static uint32_t s_gpu = 0;
    for (auto& context : contexts) g_gpu_of[&context] = ++s_gpu;
  }
  // Launches are as long as a switch, so that no cycle has to be waited out.
  void launch(int gpu, uint64_t shape) {
    void* const context = &contexts[gpu];
    CounterSession* const session = multiplex::begin_launch(context, shape);
    if (session == nullptr) return;
    ++measured;
    spool::CounterRecord record{};
    record.queue = shape;
    record.image = spool::kNotMeasured;
    if (multiplex::defines_range(*session)) multiplex::note_record(*session, add_record(session->records, record, ""));
    g_recorded[context].passes.back().push_back(shape);
    multiplex::end_launch(*session, 1'000'000'000);
  }
  std::map<uint64_t, size_t> complete(int gpu) const {
    std::map<uint64_t, size_t> counts;
    for (const auto& [device, shapes] : g_images)
      if (device == g_gpu_of[const_cast<char*>(&contexts[gpu])])
        for (const uint64_t shape : shapes) ++counts[shape];
    return counts;
  }
  char contexts[4] = {};
  size_t measured = 0;
};

TEST_F(Multiplexing, OneKernelIsCompleteAfterAsManyLaunchesAsPasses) {
  for (int i = 0; i < 24; ++i) launch(0, 7);
  EXPECT_EQ(complete(0)[7], 8u);
  EXPECT_EQ(measured, 24u);
  EXPECT_EQ(g_uneven, 0u);
}

TEST_F(Multiplexing, RangesCombineLikeLaunchesOnly) {
  for (int i = 0; i < 200; ++i)
    for (const uint64_t shape : {1, 2, 2, 3}) launch(0, shape);
  const auto counts = complete(0);
  EXPECT_EQ(counts.size(), 3u);
  EXPECT_EQ(g_uneven, 0u);
}

TEST_F(Multiplexing, NorWhereTheOrderOfLaunchesDoesNotRepeat) {
  uint32_t random = 1;
  for (int i = 0; i < 3000; ++i) {
    random = random * 1664525 + 1013904223;
    launch(0, 1 + (random >> 16) % 3);
  }
  EXPECT_EQ(complete(0).size(), 3u);
  EXPECT_EQ(g_uneven, 0u);
}

TEST_F(Multiplexing, AKernelThatComesOnceDoesNotHoldUpTheOthers) {
  launch(0, 99);
  for (int i = 0; i < 60; ++i)
    for (const uint64_t shape : {1, 2}) launch(0, shape);
  const auto counts = complete(0);
  EXPECT_TRUE(counts.count(1) != 0 && counts.count(2) != 0);
  EXPECT_EQ(counts.count(99), 0u);
  EXPECT_EQ(g_uneven, 0u);
}

TEST_F(Multiplexing, LongPeriodsAreWaitedFor) {
  for (int i = 0; i < 60; ++i)
    for (uint64_t shape = 1; shape <= 500; ++shape) launch(0, shape);
  EXPECT_GT(complete(0).size(), 60u);
  EXPECT_EQ(g_uneven, 0u);
}

TEST_F(Multiplexing, AfterALostCycleTheObjectIsMadeAnew) {
  launch(0, 5);  // waits for another of its kind
  launch(0, 6);
  for (int i = 0; i < 100; ++i) launch(0, 1000 + i);
  EXPECT_GE(g_recorded[&contexts[0]].disabled, 1u);
  EXPECT_EQ(g_recorded[&contexts[0]].made, g_recorded[&contexts[0]].disabled + 1);
}

TEST_F(Multiplexing, GpusInTurnHaveCyclesOfTheirOwn) {
  for (int gpu : {0, 1}) launch(gpu, 99);
  for (int i = 0; i < 100; ++i)
    for (int gpu : {0, 1})
      for (const uint64_t shape : {1, 2}) launch(gpu, shape);
  for (int gpu : {0, 1}) {
    const auto counts = complete(gpu);
    EXPECT_TRUE(counts.count(1) != 0 && counts.count(2) != 0) << gpu;
  }
  EXPECT_EQ(g_uneven, 0u);
}

TEST_F(Multiplexing, TwoContextsOfOneGpuTakeTurns) {
  g_gpu_of[&contexts[1]] = g_gpu_of[&contexts[0]];
  for (int i = 0; i < 300; ++i)
    for (int context : {0, 1}) launch(context, context + 1);
  // A cycle that is open is waited for, so that both come to whole ones and objects are not made for every launch.
  const auto counts = complete(0);
  EXPECT_TRUE(counts.count(1) != 0 && counts.count(2) != 0);
  EXPECT_LE(g_recorded[&contexts[0]].made + g_recorded[&contexts[1]].made, 2 * g_images.size() + 2);
  EXPECT_EQ(g_uneven, 0u);
}

TEST_F(Multiplexing, AContextThatIsDoneGivesWay) {
  g_gpu_of[&contexts[1]] = g_gpu_of[&contexts[0]];
  for (int i = 0; i < 50; ++i) launch(0, 1);  // leaves a cycle open
  for (int i = 0; i < 300; ++i) launch(1, 2);
  EXPECT_EQ(known_session(&contexts[0]), nullptr);
  EXPECT_GE(complete(1)[2], 8u);
  EXPECT_EQ(g_uneven, 0u);
}

TEST_F(Multiplexing, AnInterruptedPassShortensTheCycle) {
  for (int i = 0; i < 4; ++i) launch(0, 1);
  multiplex::interrupt(*known_session(&contexts[0]));  // a launch that the filter leaves out
  for (int i = 0; i < 30; ++i) launch(0, 1);
  ASSERT_FALSE(g_images.empty());
  EXPECT_EQ(g_images[0].second.size(), 4u);
  EXPECT_EQ(g_uneven, 0u);
}

}  // namespace
}  // namespace tacho::capture::counter
