// The decoder on hand-built blocks: rows, clocks, inherited numbers, and records that make no sense.
#include "decode/decoder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "event/functions/functions_opencl.h"
#include "event/records.h"
#include "memory_writer.h"

namespace tacho::decode {
namespace {

using event::RecordKind;
using event::Table;
namespace column = event::column;

class Block {
 public:
  explicit Block(uint32_t slot = 0, uint32_t thread = 1, tape::BlockKind kind = tape::BlockKind::kRecords) {
    header_.kind = kind;
    header_.process_slot = slot;
    header_.thread_index = thread;
    header_.tid = 100 + thread;
  }
  template <typename Record>
  Block& add(RecordKind kind, Record record, uint32_t value = 0, uint8_t flags = 0, std::string_view tail = {},
             std::vector<uint64_t> words = {}) {
    const size_t size = (sizeof record + tail.size() + 7) / 8 * 8 + words.size() * 8;
    record.header = {kind, flags, static_cast<uint16_t>(size), value};
    const size_t at = bytes_.size();
    bytes_.resize(at + size);
    std::memcpy(&bytes_[at], &record, sizeof record);
    if (!tail.empty()) std::memcpy(&bytes_[at + sizeof record], tail.data(), tail.size());
    if (!words.empty()) std::memcpy(&bytes_[at + size - words.size() * 8], words.data(), words.size() * 8);
    return *this;
  }
  Block& string(uint32_t number, std::string_view text) {
    event::StringRecord record{};
    record.length = text.size();
    return add(RecordKind::kString, record, number, 0, text);
  }
  Block& bytes(std::vector<std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  // Device work that waits for its clock to be compared becomes rows at once.
  void give(Decoder& decoder) {
    decoder.piece({&header_, bytes_, true});
    for (int i = 0; i < 2; ++i) decoder.settle();
  }

 private:
  tape::BlockHeader header_{};
  std::vector<std::byte> bytes_;
};

event::ProcessRecord process_record(uint32_t pid, uint32_t parent_slot = event::kUnknown32) {
  event::ProcessRecord record{};
  record.pid = pid;
  record.parent_slot = parent_slot;
  record.start_raw = 1'000'000;  // as DecoderTest's clocks have it
  record.clock = static_cast<uint32_t>(event::HostClock::kTsc);
  record.ns_per_tick = 0.5;
  return record;
}

class DecoderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // 2 ticks a nanosecond: tick 2000 is 1,001,000 ns.
    clocks.add(
        {.tsc = 0, .raw = 1'000'000, .monotonic = 500'000, .boottime = 0, .realtime = 9'000'000, .uncertainty = 1});
    clocks.add({.tsc = 2'000'000,
                .raw = 2'000'000,
                .monotonic = 1'500'000,
                .boottime = 0,
                .realtime = 10'000'000,
                .uncertainty = 1});
  }
  MemoryWriter writer;
  ClockMap clocks;
  Decoder decoder{writer, clocks};
};

TEST_F(DecoderTest, ApiCallWithConvertedTimes) {
  Block().add(RecordKind::kProcess, process_record(42)).give(decoder);
  event::ApiRecord call{};
  call.start = 2000;
  call.end = 2600;
  call.correlation = 7;
  Block()
      .add(RecordKind::kApi, call, event::api_value(3, -5), static_cast<uint8_t>(event::Domain::kOpenCL))
      .give(decoder);
  ASSERT_EQ(writer.facts[Table::kApi].size(), 1u);
  const auto& row = writer.facts[Table::kApi][0];
  EXPECT_EQ(row[column::Api::start], 1'001'000);
  EXPECT_EQ(row[column::Api::duration], 300);
  EXPECT_EQ(row[column::Api::correlation], 7);
  EXPECT_EQ(row[column::Api::result], -5);
  EXPECT_EQ(writer.dimensions[Table::kProcess][0][column::Process::pid], 42);
}

// A time namespace: the process's CLOCK_MONOTONIC_RAW is 500 s ahead of tacho's, its TSC is the same.
TEST_F(DecoderTest, DeviceTimesOfATimeNamespaceAreMoved) {
  constexpr int64_t kAhead = 500'000'000'000;
  event::ProcessRecord process = process_record(42);
  process.start = 2000;
  process.start_raw = 1'001'000 + kAhead;
  Block block(0, 1, tape::BlockKind::kDefinitions);
  block.add(RecordKind::kProcess, process);
  event::QueueRecord queue{};
  queue.clock = static_cast<uint32_t>(event::DeviceClock::kMonotonicRaw);
  block.add(RecordKind::kQueue, queue, 1);
  queue.clock = static_cast<uint32_t>(event::DeviceClock::kMonotonic);
  block.add(RecordKind::kQueue, queue, 2);
  block.give(decoder);
  event::DispatchRecord dispatch{};
  dispatch.queue = 1;
  dispatch.start = 1'002'000 + kAhead;
  dispatch.end = 1'003'000 + kAhead;
  Block facts;
  facts.add(RecordKind::kDispatch, dispatch);
  dispatch.queue = 2;
  dispatch.start = 502'000 + kAhead;
  dispatch.end = 503'000 + kAhead;
  facts.add(RecordKind::kDispatch, dispatch);
  facts.give(decoder);
  ASSERT_EQ(writer.facts[Table::kDispatch].size(), 2u);
  for (const auto& row : writer.facts[Table::kDispatch]) {
    EXPECT_EQ(row[column::Dispatch::start], 1'002'000);
    EXPECT_EQ(row[column::Dispatch::duration], 1000);
  }
  EXPECT_EQ(writer.dimensions[Table::kProcess][0][column::Process::start], 1'001'000);
  ASSERT_EQ(writer.notes.size(), 1u);
  EXPECT_NE(writer.notes[0].find("500.000 s ahead of this machine's"), std::string::npos) << writer.notes[0];
}

// A thread that moved to another CPU of a virtual machine, whose clock lags by some nanoseconds.
TEST_F(DecoderTest, CallsThatEndJustBeforeTheyBeginTookNoTime) {
  Block().add(RecordKind::kProcess, process_record(42)).give(decoder);
  event::ApiRecord call{};
  call.start = 200'000;
  Block block;
  for (const uint64_t end : {199'900, 180'002, 100'000}) {
    call.end = end;
    block.add(RecordKind::kApi, call, event::api_value(3, 0), static_cast<uint8_t>(event::Domain::kOpenCL));
  }
  block.give(decoder);
  const auto& rows = writer.facts[Table::kApi];
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0][column::Api::duration], 0);
  EXPECT_EQ(rows[1][column::Api::duration], 0);
  EXPECT_LT(rows[2][column::Api::duration], 0);  // the writer counts it and calls it unknown
}

TEST_F(DecoderTest, DispatchWithShapeAndDeviceClock) {
  Block block(0, 1, tape::BlockKind::kDefinitions);
  block.add(RecordKind::kProcess, process_record(42)).string(1, "vecCopy").string(2, "device");
  event::DeviceRecord device{};
  device.name = 2;
  block.add(RecordKind::kDevice, device, 1);
  event::QueueRecord queue{};
  queue.device = 1;
  queue.clock = static_cast<uint32_t>(event::DeviceClock::kMonotonic);
  block.add(RecordKind::kQueue, queue, 1);
  event::KernelRecord kernel{};
  kernel.name = 1;
  kernel.registers = kernel.accum_registers = kernel.scalar_registers = event::kUnknown32;
  kernel.shared_static = 64;
  kernel.private_bytes = event::kUnknown32;
  block.add(RecordKind::kKernel, kernel, 1);
  block.give(decoder);
  event::DispatchRecord dispatch{};
  dispatch.queue = 1;
  dispatch.queued = 600'000;
  dispatch.submit = 600'100;
  dispatch.start = 601'000;
  dispatch.end = 602'500;
  dispatch.grid[0] = 1024;
  dispatch.grid[1] = dispatch.grid[2] = dispatch.group[1] = dispatch.group[2] = 1;
  dispatch.group[0] = 64;
  dispatch.ordinal = 5;
  Block().add(RecordKind::kDispatch, dispatch, 1).add(RecordKind::kDispatch, dispatch, 1).give(decoder);
  ASSERT_EQ(writer.facts[Table::kDispatch].size(), 2u);
  const auto& row = writer.facts[Table::kDispatch][0];
  EXPECT_EQ(row[column::Dispatch::start], 1'101'000);  // CLOCK_MONOTONIC lies 500,000 ns below RAW here
  EXPECT_EQ(row[column::Dispatch::duration], 1500);
  EXPECT_EQ(row[column::Dispatch::queued_ahead], 1000);
  EXPECT_EQ(row[column::Dispatch::submit_ahead], 900);
  EXPECT_EQ(row[column::Dispatch::ordinal], 5);
  ASSERT_EQ(writer.dimensions[Table::kKernel].size(), 1u);  // one shape
  const auto& shape = writer.dimensions[Table::kKernel][0];
  EXPECT_EQ(writer.text(shape[column::Kernel::name]), "vecCopy");
  EXPECT_EQ(shape[column::Kernel::grid_x], 1024);
  EXPECT_EQ(shape[column::Kernel::group_x], 64);
  EXPECT_EQ(shape[column::Kernel::registers], event::kUnknown);
  EXPECT_EQ(shape[column::Kernel::shared_static], 64);
}

TEST_F(DecoderTest, DisorderedDeviceTimesAreCountedAndKept) {
  Block().add(RecordKind::kProcess, process_record(42)).give(decoder);
  event::DispatchRecord dispatch{};
  dispatch.start = 2000;
  dispatch.end = 1000;
  Block().add(RecordKind::kDispatch, dispatch, 1).give(decoder);
  EXPECT_EQ(writer.losses[event::LossReason::kClockOrder], 1);
  ASSERT_EQ(writer.facts[Table::kDispatch].size(), 1u);
  EXPECT_EQ(writer.facts[Table::kDispatch][0][column::Dispatch::duration], event::kUnknown);
}

TEST_F(DecoderTest, CommandsOfKilledProcessesAreCounted) {
  const auto progress = [&](uint32_t slot, bool ended, uint64_t launches, uint64_t copies, uint64_t filtered) {
    tape::CommandCounts at{};
    at.ended.store(ended);
    at.filtered.store(filtered);
    at.issued[static_cast<size_t>(Table::kDispatch)].store(launches);
    at.issued[static_cast<size_t>(Table::kCopy)].store(copies);
    std::vector<std::byte> bytes(sizeof at);
    std::memcpy(bytes.data(), static_cast<const void*>(&at), sizeof at);
    Block(slot, 0, tape::BlockKind::kProgress).bytes(bytes).give(decoder);
  };
  const auto launch = [&](uint32_t slot, int count) {
    Block block(slot);
    for (int i = 0; i < count; ++i) block.add(RecordKind::kDispatch, event::DispatchRecord{}, 1);
    block.give(decoder);
  };
  for (uint32_t slot = 0; slot < 3; ++slot)
    Block(slot, 1, tape::BlockKind::kDefinitions).add(RecordKind::kProcess, process_record(40 + slot)).give(decoder);
  // One process ended: 10 launches, 6 rows, one in flight as it reports; so 3 found no room. One was killed: 20
  // launches, 12 rows, 2 of the 5 dropped in all are its own, 6 were in flight; of 7 filtered it had reported 4. One
  // has no such counts.
  launch(0, 6);
  event::LossRecord loss{};
  loss.count = 1;
  Block()
      .add(RecordKind::kLoss, loss,
           static_cast<uint32_t>(Table::kDispatch) | static_cast<uint32_t>(event::LossReason::kKilled) << 8)
      .give(decoder);
  launch(1, 12);
  loss.count = 4;
  Block(1)
      .add(RecordKind::kLoss, loss,
           static_cast<uint32_t>(Table::kDispatch) | static_cast<uint32_t>(event::LossReason::kFiltered) << 8)
      .give(decoder);
  launch(2, 5);
  progress(0, true, 10, 0, 0);
  progress(1, false, 20, 2, 7);
  decoder.finish();
  writer.losses.clear();
  const uint64_t dropped[] = {5, 0};
  decoder.count_in_flight(dropped);
  EXPECT_EQ(writer.losses[event::LossReason::kKilled], 6 + 2);  // launches, copies
  EXPECT_EQ(writer.losses[event::LossReason::kFiltered], 3);
}

TEST_F(DecoderTest, MarkersNestPerDomainAndOpenOnesAreKept) {
  Block definitions(0, 1, tape::BlockKind::kDefinitions);
  definitions.add(RecordKind::kProcess, process_record(42)).string(9, "io").give(decoder);
  event::PushRecord push{};
  event::PopRecord pop{};
  Block block;
  push.time = 1000;
  block.add(RecordKind::kPush, push, 5, 0, "outer");
  push.time = 1200;
  block.add(RecordKind::kPush, push, 5, event::kMarkerDomain | event::kMarkerInteger, "inner", {9, 77});
  pop.time = 1400;
  block.add(RecordKind::kPop, pop, 0);  // the default domain: closes "outer", not "inner"
  pop.time = 1600;
  block.add(RecordKind::kPop, pop, 0);  // nothing is open there any more
  block.give(decoder);
  ASSERT_EQ(writer.facts[Table::kMarker].size(), 1u);
  EXPECT_EQ(writer.facts[Table::kMarker][0][column::Marker::duration], 200);
  EXPECT_EQ(writer.losses[event::LossReason::kBadInput], 1);
  decoder.finish();
  ASSERT_EQ(writer.facts[Table::kMarker].size(), 2u);
  const auto& open = writer.facts[Table::kMarker][1];
  EXPECT_EQ(open[column::Marker::duration], event::kUnknown);
  EXPECT_EQ(open[column::Marker::payload], 77);
  const auto& label = writer.dimensions[Table::kLabel][static_cast<size_t>(open[column::Marker::dim] - 1)];
  EXPECT_EQ(writer.text(label[column::Label::name]), "inner");
  EXPECT_EQ(writer.text(label[column::Label::domain]), "io");
  EXPECT_EQ(writer.losses[event::LossReason::kOpenAtExit], 1);
}

TEST_F(DecoderTest, NumbersInNamesOfPytorchsRangesBecomePayloads) {
  Block().add(RecordKind::kProcess, process_record(42)).give(decoder);
  event::PushRecord push{};
  event::PopRecord pop{};
  struct {
    std::string text, name;
    int64_t payload;
    std::string shapes;
  } const cases[] = {{"aten::mm, seq = 7, op_id = 31", "aten::mm", 7, ""},
                     {"MmBackward0, seq = 0", "MmBackward0", 0, ""},
                     {"aten::add, op_id = 5", "aten::add", 0, ""},
                     {"aten::mm, seq = 7, sizes = [[2, 2]]", "aten::mm", 7, "[[2, 2]]"},
                     {"aten::mm, seq = 7, op_id = 31, sizes = [[8, 3], [3, 5], []], input_op_ids = [(30,0), (12,0)]",
                      "aten::mm", 7, "[[8, 3], [3, 5], []]"},
                     {"aten::add, op_id = 6, input_op_ids = [(5,0)]", "aten::add", 0, ""},
                     {"aten::empty, op_id = 9, sizes = []", "aten::empty", 0, ""},
                     {"plan, sizes = [a, b]", "plan, sizes = [a, b]", 0, ""},
                     {"plan, sizes = 7", "plan, sizes = 7", 0, ""},
                     {"step, seq = now", "step, seq = now", 0, ""},
                     {", seq = 7", ", seq = 7", 0, ""}};
  size_t seen = 0;
  for (const auto& each : cases) {
    Block block;
    push.time = 1000 + 10 * seen;
    block.add(RecordKind::kPush, push, static_cast<uint32_t>(each.text.size()), 0, each.text);
    pop.time = push.time + 5;
    block.add(RecordKind::kPop, pop, 0);
    block.give(decoder);
    ASSERT_EQ(writer.facts[Table::kMarker].size(), ++seen);
    const auto& marker = writer.facts[Table::kMarker].back();
    const auto& label = writer.dimensions[Table::kLabel][static_cast<size_t>(marker[column::Marker::dim] - 1)];
    EXPECT_EQ(writer.text(label[column::Label::name]), each.name);
    EXPECT_EQ(marker[column::Marker::payload], each.payload) << each.text;
    const int64_t inputs = marker[column::Marker::inputs];
    ASSERT_EQ(inputs != 0, !each.shapes.empty()) << each.text;
    if (inputs != 0)
      EXPECT_EQ(
          writer.text(
              writer.dimensions[Table::kOperatorInput][static_cast<size_t>(inputs - 1)][column::OperatorInput::dims]),
          each.shapes);
  }
}

TEST_F(DecoderTest, RangesMayOverlapAndStopOnAnotherThread) {
  Block().add(RecordKind::kProcess, process_record(42)).give(decoder);
  event::RangeStartRecord start{};
  start.time = 2000;
  start.id = 1;
  Block(0, 1).add(RecordKind::kRangeStart, start, 1, 0, "a").give(decoder);
  event::RangeStopRecord stop{};
  stop.time = 4000;
  stop.id = 1;
  Block(0, 2).add(RecordKind::kRangeStop, stop).give(decoder);
  ASSERT_EQ(writer.facts[Table::kMarker].size(), 1u);
  EXPECT_EQ(writer.facts[Table::kMarker][0][column::Marker::duration], 1000);
}

TEST_F(DecoderTest, ArgumentsBelongToTheRecordAfterThem) {
  Block().add(RecordKind::kProcess, process_record(42)).give(decoder);
  const auto flush = static_cast<uint16_t>(event::opencl::Function::clFlush);
  event::ArgumentsRecord arguments{};
  event::ApiRecord call{};
  Block block;
  for (const uint64_t correlation : {7, 8, 9}) {
    arguments.correlation = correlation == 9 ? 1 : correlation;  // those of the last are of another call
    if (correlation != 8)
      block.add(RecordKind::kArguments, arguments, flush, static_cast<uint8_t>(event::ArgumentsOf::kOpenClCall), {},
                {0x1234});
    call.start = 2000;
    call.end = 2100;
    call.correlation = correlation;
    block.add(RecordKind::kApi, call, flush, static_cast<uint8_t>(event::Domain::kOpenCL));
  }
  arguments.correlation = 10;
  block.add(RecordKind::kArguments, arguments, 1, 200);
  block.add(RecordKind::kArguments, arguments, 1000, static_cast<uint8_t>(event::ArgumentsOf::kOpenClKernel));
  block.give(decoder);
  const auto& calls = writer.facts[Table::kApi];
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(writer.text(calls[0][column::Api::arguments]), "command_queue=0x1234");
  EXPECT_EQ(calls[1][column::Api::arguments], 0);
  EXPECT_EQ(calls[2][column::Api::arguments], 0);
  EXPECT_EQ(writer.losses[event::LossReason::kBadInput], 1);
}

TEST_F(DecoderTest, RangesKeepTheThreadThatBeganThem) {
  Block().add(RecordKind::kProcess, process_record(42)).give(decoder);
  event::RangeStartRecord start{};
  event::RangeStopRecord stop{};
  for (const uint64_t thread : {1, 2, 3}) {
    start.time = 2000 * thread;
    start.id = thread;
    Block(0, static_cast<uint32_t>(thread)).add(RecordKind::kRangeStart, start, 1, 0, "a").give(decoder);
  }
  for (const uint64_t range : {1, 2}) {  // one is stopped by another thread, one never
    stop.time = 9000;
    stop.id = range;
    Block(0, 1).add(RecordKind::kRangeStop, stop).give(decoder);
  }
  decoder.finish();
  std::set<int64_t> tids, tracks;
  for (const auto& marker : writer.facts[Table::kMarker]) {
    const int64_t row = marker[column::Marker::track];
    const auto& track = writer.dimensions[Table::kTrack][static_cast<size_t>(row - 1)];
    EXPECT_EQ(track[column::Track::kind], static_cast<int64_t>(event::TrackKind::kRange));
    const int64_t thread = track[column::Track::thread];
    ASSERT_GT(thread, 0);
    tids.insert(writer.dimensions[Table::kThread][static_cast<size_t>(thread - 1)][column::Thread::tid]);
    tracks.insert(row);
  }
  EXPECT_EQ(tids.size(), 3u);
  EXPECT_EQ(tracks.size(), 3u);
}

TEST_F(DecoderTest, ForkedChildUsesItsParentsNumbers) {
  Block parent(0, 1, tape::BlockKind::kDefinitions);
  parent.add(RecordKind::kProcess, process_record(42)).string(1, "inherited").give(decoder);
  Block child(1, 1, tape::BlockKind::kDefinitions);
  child.string(2, "own").add(RecordKind::kProcess, process_record(43, 0)).give(decoder);
  event::MarkRecord mark{};
  mark.time = 10;
  Block(1, 1)
      .add(RecordKind::kMark, mark, 1, event::kMarkerInterned)
      .add(RecordKind::kMark, mark, 2, event::kMarkerInterned)
      .give(decoder);
  const auto& labels = writer.dimensions[Table::kLabel];
  ASSERT_EQ(labels.size(), 2u);
  EXPECT_EQ(writer.text(labels[0][column::Label::name]), "inherited");
  EXPECT_EQ(writer.text(labels[1][column::Label::name]), "own");
}

TEST_F(DecoderTest, NonsenseIsCountedNeverBelieved) {
  Block().bytes(std::vector<std::byte>(64, std::byte{0xff})).give(decoder);  // kind 255, size 65535
  EXPECT_EQ(writer.losses[event::LossReason::kUnknownRecord], 1);
  event::RecordHeader unknown{static_cast<RecordKind>(200), 0, 16, 0};
  std::vector<std::byte> bytes(16);
  std::memcpy(bytes.data(), &unknown, sizeof unknown);
  Block().bytes(bytes).give(decoder);
  EXPECT_EQ(writer.losses[event::LossReason::kUnknownRecord], 2);
  event::StringRecord lying{};
  lying.length = 1ULL << 40;
  Block().add(RecordKind::kString, lying, 1).give(decoder);
  event::StringRecord far{};
  Block().add(RecordKind::kString, far, 0xfffffff0).give(decoder);
  EXPECT_EQ(writer.losses[event::LossReason::kBadInput], 2);
  event::PushRecord push{};
  Block().add(RecordKind::kPush, push, 0xffffffff, 0xff, "text").give(decoder);  // fields beyond the record read as 0
  decoder.finish();
  EXPECT_EQ(writer.facts[Table::kMarker].size(), 1u);
}

TEST(ClockMap, InterpolatesBetweenTuplesAndExtrapolatesBeyond) {
  ClockMap clocks;
  clocks.set_ns_per_tick(0.5);
  clocks.add({.tsc = 1000, .raw = 10'000, .monotonic = 1, .boottime = 0, .realtime = 0, .uncertainty = 0});
  EXPECT_EQ(clocks.from_tsc(1200), 10'100);
  clocks.add({.tsc = 3000, .raw = 11'000, .monotonic = 1001, .boottime = 0, .realtime = 0, .uncertainty = 0});
  clocks.add({.tsc = 5000, .raw = 13'000, .monotonic = 3001, .boottime = 0, .realtime = 0, .uncertainty = 0});
  EXPECT_EQ(clocks.from_tsc(2000), 10'500);
  EXPECT_EQ(clocks.from_tsc(4000), 12'000);
  EXPECT_EQ(clocks.from_tsc(7000), 15'000);
  EXPECT_EQ(clocks.from_tsc(0), 9'500);
  EXPECT_EQ(clocks.from_monotonic(2001), 12'000);
}

// Two tuples that are 50 us apart and misread by 20 ns say nothing of the rate 30 ms later: calls on one thread would
// overlap.
TEST(ClockMap, FollowsThePresentWithoutALineThroughNearTuples) {
  const auto tuple = [](int64_t ns, int64_t misread) {
    return ClockTuple{.tsc = static_cast<uint64_t>(2 * ns),
                      .raw = ns + misread,
                      .monotonic = ns,
                      .boottime = 0,
                      .realtime = 7 * ns,
                      .uncertainty = 20};
  };
  constexpr int64_t kSpacing = 100'000'000;
  ClockMap clocks;
  clocks.add(tuple(1'000'000, 0));
  clocks.follow(tuple(1'050'000, 20), kSpacing);
  int64_t before = 0;
  for (int64_t now = 5'000'000, pass = 0; now < 1'000'000'000; now += 3'000'000, ++pass) {
    clocks.follow(tuple(now, pass % 2 == 0 ? 20 : -20), kSpacing);
    for (int64_t at = now - 2'900'000; at < now; at += 100'000) {
      const int64_t converted = clocks.from_tsc(static_cast<uint64_t>(2 * at));
      EXPECT_LE(std::abs(converted - at), 40) << at;
      EXPECT_GT(converted, before) << at;
      EXPECT_LE(std::abs(clocks.from_monotonic(at) - at), 40) << at;
      EXPECT_LE(std::abs(clocks.from_realtime(7 * at) - at), 40) << at;
      before = converted;
    }
  }
  // One tuple per 100 ms of a second is kept.
  EXPECT_GE(clocks.tuples().size(), 10u);
  EXPECT_LE(clocks.tuples().size(), 12u);
}

}  // namespace
}  // namespace tacho::decode
