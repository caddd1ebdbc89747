// The CUPTI decoder on buffers built by hand in the layout of every CUPTI from 11.8 on, and on buffers that make no
// sense.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "base/format.h"
#include "decode/cupti/decoder.h"
#include "memory_writer.h"

namespace tacho::decode {
namespace {

using event::kUnknown;
using event::LossReason;
using event::NameSpace;
namespace column = event::column;
namespace row = event::row;

class TestProcess : public ProcessContext {
 public:
  explicit TestProcess(trace::TraceWriter& writer) : writer_(writer) {}
  std::string_view text(uint32_t) const override { return {}; }
  int64_t row() override { return 7; }
  int64_t host_time(uint64_t ticks) const override { return static_cast<int64_t>(ticks / 2) + 5'000'000; }
  int64_t thread_track(uint32_t tid) override {
    const row::Track values{.kind = event::TrackKind::kThread, .process = 7, .native = tid};
    return writer_.dimension(values);
  }

 private:
  trace::TraceWriter& writer_;
};

// A CUPTI of some version: sizes of the records that it writes, from the public headers of that version.
struct Version {
  const char* name;
  uint32_t number;
  uint32_t kernel, copy, fill, peer, memory, sync, overhead, graph, jit, device, context;
};
constexpr Version kVersions[] = {
    {"11.8", 18, 200, 88, 88, 96, 120, 40, 40, 48, 64, 176, 16},
    {"12.0", 19, 208, 88, 88, 96, 0, 40, 40, 0, 64, 0, 16},
    {"12.4", 22, 208, 88, 88, 96, 0, 40, 56, 0, 72, 0, 0},
    {"12.8", 26, 208, 96, 88, 96, 0, 56, 56, 0, 72, 0, 0},
    {"13.0", 130001, 216, 96, 88, 96, 128, 56, 56, 56, 72, 184, 32},
};

class Buffer {
 public:
  explicit Buffer(uint32_t version) {
    header_.kind = tape::BlockKind::kCupti;
    header_.vendor_version = version;
    header_.tid = 42;
    header_.blocks = 1;
  }
  // Starts a record of `size` bytes, zero where nothing is put.
  Buffer& record(uint32_t kind, uint32_t size) {
    at_ = bytes_.size();
    bytes_.resize(at_ + size, std::byte{0});
    return put<uint32_t>(0, kind);
  }
  template <typename T>
  Buffer& put(size_t offset, T value) {
    EXPECT_LE(at_ + offset + sizeof value, bytes_.size());
    std::memcpy(&bytes_[at_ + offset], &value, sizeof value);
    return *this;
  }
  Buffer& api(bool driver, uint32_t callback, uint64_t start, uint64_t end, uint32_t correlation, uint32_t tid = 42,
              uint32_t result = 0) {
    record(driver ? 4 : 5, 40).put(4, callback).put(8, start).put(16, end).put<uint32_t>(24, 1).put(28, tid);
    return put(32, correlation).put(36, result);
  }
  Buffer& kernel(uint32_t size, uint64_t name, uint64_t start, uint64_t end, uint32_t correlation,
                 uint64_t graph_node = 0) {
    record(10, size).put<uint8_t>(4, 0x12).put<uint16_t>(6, 32).put(16, start).put(24, end);
    put<uint32_t>(40, 0).put<uint32_t>(44, 1).put<uint32_t>(48, 7);
    put<int32_t>(52, 8).put<int32_t>(56, 4).put<int32_t>(60, 2).put<int32_t>(64, 128).put<int32_t>(68, 2).put<int32_t>(
        72, 1);
    put<int32_t>(76, 1024)
        .put<int32_t>(80, 2048)
        .put<uint32_t>(84, 16)
        .put(92, correlation)
        .put(104, name)
        .put(144, graph_node);
    if (size >= 188) put<uint32_t>(176, 2).put<uint32_t>(180, 1).put<uint32_t>(184, 1);
    return *this;
  }
  // Device work that waits for its clock to be compared becomes rows at once.
  void give(CuptiDecoder& decoder, bool completed = true) const {
    decoder.block(header_, bytes_, completed);
    for (int i = 0; i < 2; ++i) decoder.settle();
  }
  std::vector<std::byte>& bytes() { return bytes_; }
  tape::BlockHeader& header() { return header_; }

 private:
  tape::BlockHeader header_{};
  std::vector<std::byte> bytes_;
  size_t at_ = 0;
};

event::BlockClockRecord clock_record(event::BlockClock clock, uint64_t base_ticks = 0, uint64_t base_ns = 0,
                                     uint64_t multiplier = 0) {
  event::BlockClockRecord record{};
  record.header.value = static_cast<uint32_t>(clock);
  record.base_ticks = base_ticks;
  record.base_ns = base_ns;
  record.multiplier = multiplier;
  record.shift = 32;
  return record;
}

class CuptiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    decoder.clock(clock_record(event::BlockClock::kMonotonicRaw));
    decoder.fact(event::BlockFact::kThreadIds, 1, {});
    decoder.name(NameSpace::kRuntimeFunction, 211, "cudaLaunchKernel_v7000");
    decoder.name(NameSpace::kRuntimeFunction, 317, "cudaStreamBeginCapture_v10000");
    decoder.name(NameSpace::kRuntimeFunction, 319, "cudaStreamEndCapture_v10000");
    decoder.name(NameSpace::kRuntimeFunction, 31, "cudaMemcpy_v3020");
    decoder.name(NameSpace::kDriverFunction, 307, "cuLaunchKernel");
    decoder.name(NameSpace::kKernel, 0x7000, "_Z6vecAddPf");
  }
  const std::vector<int64_t>& fact(Table table, size_t index = 0) {
    static const std::vector<int64_t> kNone(32, -1);
    const auto& rows = writer.facts[table];
    EXPECT_LT(index, rows.size());
    return index < rows.size() ? rows[index] : kNone;
  }
  const std::vector<int64_t>& dim(Table table, int64_t row) {
    return writer.dimensions[table].at(static_cast<size_t>(row - 1));
  }
  std::string function(size_t api_row) {
    return writer.text(dim(Table::kFunction, fact(Table::kApi, api_row)[column::Api::dim])[column::Function::name]);
  }
  MemoryWriter writer;
  TestProcess process{writer};
  CuptiDecoder decoder{process, writer};
};

class CuptiVersionTest : public CuptiTest, public ::testing::WithParamInterface<Version> {};

TEST_P(CuptiVersionTest, EveryKindInItsLayout) {
  const Version& v = GetParam();
  Buffer buffer(v.number);
  if (v.context != 0) buffer.record(9, v.context).put<uint32_t>(4, 1).put<uint32_t>(8, 0).put<uint16_t>(14, 7);
  buffer.kernel(v.kernel, 0x7000, 1000, 1500, 11);
  buffer.api(false, 211, 900, 950, 11);
  buffer.record(1, v.copy).put<uint8_t>(4, 1).put<uint8_t>(5, 2).put<uint8_t>(6, 3).put<uint8_t>(7, 1).put<uint64_t>(
      8, 4096);
  buffer.put<uint64_t>(16, 2000).put<uint64_t>(24, 2100).put<uint32_t>(36, 1).put<uint32_t>(40, 7).put<uint32_t>(44,
                                                                                                                 12);
  buffer.record(22, v.peer)
      .put<uint8_t>(5, 3)
      .put<uint8_t>(6, 3)
      .put<uint64_t>(8, 8192)
      .put<uint64_t>(16, 2200)
      .put<uint64_t>(24, 2300);
  buffer.put<uint32_t>(36, 1).put<uint32_t>(40, 7).put<uint32_t>(44, 0).put<uint32_t>(52, 1).put<uint32_t>(60, 13);
  buffer.record(2, v.fill).put<uint32_t>(4, 0xff).put<uint64_t>(8, 512).put<uint64_t>(16, 2400).put<uint64_t>(24, 2450);
  buffer.put<uint32_t>(36, 1).put<uint32_t>(40, 7).put<uint32_t>(44, 14).put<uint16_t>(50, 3);
  buffer.record(38, v.sync)
      .put<uint32_t>(4, 3)
      .put<uint64_t>(8, 2500)
      .put<uint64_t>(16, 2600)
      .put<uint32_t>(24, 15)
      .put<uint32_t>(28, 1)
      .put<uint32_t>(32, 7);
  buffer.record(17, v.overhead)
      .put<uint32_t>(4, 5u << 16)
      .put<uint32_t>(8, 2)
      .put<uint32_t>(16, 43)
      .put<uint64_t>(24, 100)
      .put<uint64_t>(32, 200);
  buffer.record(52, v.jit).put<uint32_t>(4, 1).put<uint32_t>(8, 3).put<uint64_t>(16, 300).put<uint64_t>(24, 400);
  if (v.jit >= 72) buffer.put<uint32_t>(68, 42);
  size_t records = 8;
  if (v.memory != 0) {
    ++records;
    buffer.record(49, v.memory)
        .put<uint32_t>(4, 1)
        .put<uint32_t>(8, 3)
        .put<uint32_t>(12, 16)
        .put<uint64_t>(16, 0xabc000);
    buffer.put<uint64_t>(24, 65536).put<uint64_t>(32, 2700).put<uint32_t>(52, 0);
  }
  if (v.graph != 0) {
    ++records;
    buffer.record(51, v.graph).put<uint32_t>(4, 17).put<uint64_t>(8, 3000).put<uint64_t>(16, 4000).put<uint32_t>(24, 0);
    buffer.put<uint32_t>(28, 5).put<uint32_t>(32, 1).put<uint32_t>(36, 7);
  }
  if (v.device != 0) {
    ++records;
    decoder.name(NameSpace::kKernel, 0x8000, "NVIDIA H200");
    buffer.record(8, v.device)
        .put<uint32_t>(44, 132)
        .put<uint32_t>(104, 9)
        .put<uint32_t>(108, 0)
        .put<uint32_t>(112, 0)
        .put<uint64_t>(136, 0x8000);
  }
  buffer.give(decoder);
  decoder.finish();

  EXPECT_TRUE(writer.losses.empty());
  EXPECT_EQ(decoder.facts().records, static_cast<int64_t>(records + (v.context != 0)));
  const auto& kernel = fact(Table::kDispatch);
  EXPECT_EQ(kernel[column::Dispatch::start], 1000);
  EXPECT_EQ(kernel[column::Dispatch::duration], 500);
  EXPECT_EQ(kernel[column::Dispatch::correlation], 11);
  const auto& shape = dim(Table::kKernel, kernel[column::Dispatch::dim]);
  EXPECT_EQ(writer.text(shape[column::Kernel::name]), "_Z6vecAddPf");
  EXPECT_EQ(shape[column::Kernel::grid_x], 8 * 128);
  EXPECT_EQ(shape[column::Kernel::grid_y], 4 * 2);
  EXPECT_EQ(shape[column::Kernel::grid_z], 2);
  EXPECT_EQ(shape[column::Kernel::group_x], 128);
  EXPECT_EQ(shape[column::Kernel::registers], 32);
  EXPECT_EQ(shape[column::Kernel::accum_registers], kUnknown);
  EXPECT_EQ(shape[column::Kernel::shared_static], 1024);
  EXPECT_EQ(shape[column::Kernel::shared_dynamic], 2048);
  EXPECT_EQ(shape[column::Kernel::private_bytes], 16);
  EXPECT_EQ(shape[column::Kernel::cluster_x], 2);
  EXPECT_EQ(shape[column::Kernel::cache_config], 0x12);
  EXPECT_EQ(shape[column::Kernel::carveout], kUnknown);
  const auto& track = dim(Table::kTrack, kernel[column::Dispatch::track]);
  EXPECT_EQ(track[column::Track::native], 7);
  EXPECT_EQ(track[column::Track::context], 1);
  EXPECT_EQ(writer.text(track[column::Track::name]), v.context != 0 ? "Stream 7 (default)" : "Stream 7");
  EXPECT_EQ(function(0), "cudaLaunchKernel");

  const auto& copy = fact(Table::kCopy);
  EXPECT_EQ(copy[column::Copy::bytes], 4096);
  const auto& copy_shape = dim(Table::kCopyShape, copy[column::Copy::dim]);
  EXPECT_EQ(copy_shape[column::CopyShape::direction], static_cast<int64_t>(event::CopyDirection::kHostToDevice));
  EXPECT_EQ(copy_shape[column::CopyShape::source_memory], static_cast<int64_t>(event::MemoryKind::kPinned));
  EXPECT_EQ(copy_shape[column::CopyShape::source_device], 0);
  EXPECT_NE(copy_shape[column::CopyShape::target_device], 0);
  EXPECT_EQ(copy_shape[column::CopyShape::asynchronous], 1);
  const auto& peer = fact(Table::kCopy, 1);
  EXPECT_EQ(peer[column::Copy::correlation], 13);
  const auto& peer_shape = dim(Table::kCopyShape, peer[column::Copy::dim]);
  EXPECT_EQ(peer_shape[column::CopyShape::direction], static_cast<int64_t>(event::CopyDirection::kPeerToPeer));
  EXPECT_NE(peer_shape[column::CopyShape::source_device], peer_shape[column::CopyShape::target_device]);
  EXPECT_EQ(dim(Table::kDevice, peer_shape[column::CopyShape::target_device])[column::Device::index], 1);

  EXPECT_EQ(fact(Table::kFill)[column::Fill::bytes], 512);
  EXPECT_EQ(dim(Table::kFillShape, fact(Table::kFill)[column::Fill::dim])[column::FillShape::value], 0xff);
  EXPECT_EQ(dim(Table::kSyncShape, fact(Table::kSync)[column::Sync::dim])[column::SyncShape::kind],
            static_cast<int64_t>(event::SyncKind::kQueue));
  EXPECT_EQ(fact(Table::kSync)[column::Sync::duration], 100);
  ASSERT_EQ(writer.facts[Table::kOverhead].size(), 2u);
  EXPECT_EQ(dim(Table::kOverheadShape, fact(Table::kOverhead)[column::Overhead::dim])[column::OverheadShape::kind],
            static_cast<int64_t>(event::OverheadKind::kLazyLoad));
  EXPECT_EQ(dim(Table::kTrack, fact(Table::kOverhead)[column::Overhead::track])[column::Track::native], 43);
  EXPECT_EQ(writer.text(dim(Table::kOverheadShape,
                            fact(Table::kOverhead, 1)[column::Overhead::dim])[column::OverheadShape::name]),
            "PTX to machine code: compile");
  if (v.memory != 0) {
    EXPECT_EQ(fact(Table::kAllocation)[column::Allocation::bytes], 65536);
    EXPECT_EQ(fact(Table::kAllocation)[column::Allocation::address], 0xabc000);
  }
  if (v.graph != 0) {
    const auto& span = fact(Table::kDispatch, 1);
    EXPECT_EQ(span[column::Dispatch::duration], 1000);
    EXPECT_EQ(dim(Table::kKernel, span[column::Dispatch::dim])[column::Kernel::kind],
              static_cast<int64_t>(event::DispatchKind::kGraph));
  }
  if (v.device != 0) {
    const auto& device = dim(Table::kDevice, track[column::Track::device]);
    EXPECT_EQ(writer.text(device[column::Device::name]), "NVIDIA H200");
    EXPECT_EQ(writer.text(device[column::Device::architecture]), "sm_90");
  }
}
void PrintTo(const Version& version, std::ostream* out) {
  *out << "CUPTI " << version.name;
}

INSTANTIATE_TEST_SUITE_P(Versions, CuptiVersionTest, ::testing::ValuesIn(kVersions), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name)
    if (c == '.') c = '_';
  return "Cupti" + name;
});

// Kinds of CUDA 13.1: functions of the host that a stream waits for, and contexts that own a part of the device.
TEST_F(CuptiTest, HostFunctionsOfStreamsAndGraphsAreRangesOfTheirThreads) {
  decoder.record_sizes(std::array<event::BlockSize, 3>{{{58, 48}, {56, 56}, {59, 160}}});
  Buffer buffer(130100);
  buffer.record(58, 48).put<uint32_t>(4, 7).put<uint32_t>(8, 1).put<uint32_t>(16, 21).put<uint32_t>(24, 77);
  buffer.put<uint64_t>(32, 5000).put<uint64_t>(40, 5300);
  // The same without the padding before the times: both are read by where the times make sense.
  buffer.record(58, 48).put<uint32_t>(4, 8).put<uint32_t>(16, 22).put<uint32_t>(24, 77);
  buffer.put<uint64_t>(28, 5400).put<uint64_t>(36, 5450);
  buffer.record(56, 56).put<uint32_t>(4, 9).put<uint32_t>(16, 23).put<uint32_t>(20, 4).put<uint32_t>(36, 78);
  buffer.put<uint64_t>(40, 6000).put<uint64_t>(48, 6100);
  buffer.record(59, 160).put<uint32_t>(4, 3).put<uint32_t>(8, 1).put<uint32_t>(16, 8).put<uint16_t>(20, 16);
  buffer.give(decoder);
  decoder.finish();
  EXPECT_TRUE(writer.losses.empty());
  ASSERT_EQ(writer.rows(Table::kMarker), 3);
  const auto is = [&](size_t row, const char* name, int64_t tid, int64_t start, int64_t duration) {
    const auto& marker = fact(Table::kMarker, row);
    EXPECT_EQ(writer.text(dim(Table::kLabel, marker[column::Marker::dim])[column::Label::name]), name);
    EXPECT_EQ(dim(Table::kTrack, marker[column::Marker::track])[column::Track::native], tid);
    EXPECT_EQ(marker[column::Marker::start], start);
    EXPECT_EQ(marker[column::Marker::duration], duration);
  };
  is(0, "host function of stream 7", 77, 5000, 300);
  is(1, "host function of stream 8", 77, 5400, 50);
  is(2, "host function of stream 9, graph 4", 78, 6000, 100);
  EXPECT_EQ(writer.property_text("cuda.green_context.3"), "16 multiprocessors of device 0, within context 1");
}

TEST_F(CuptiTest, HostFunctionWithoutSensibleTimesIsCounted) {
  decoder.record_sizes(std::array<event::BlockSize, 1>{{{58, 48}}});
  Buffer buffer(130100);
  buffer.record(58, 48).put<uint32_t>(4, 7).put<uint64_t>(28, ~0ull << 40).put<uint64_t>(36, 1);
  buffer.give(decoder);
  decoder.finish();
  EXPECT_EQ(writer.rows(Table::kMarker), 0);
  EXPECT_EQ(writer.property_text("cupti.unknown_records.58"), "1");
}

TEST_F(CuptiTest, SizesReportedByTheTargetBeatTheVersion) {
  decoder.record_sizes(std::array<event::BlockSize, 2>{{{10, 224}, {77, 32}}});  // of a CUPTI newer than this decoder
  Buffer buffer(139900);
  buffer.kernel(224, 0x7000, 1000, 1500, 11).record(77, 32).api(false, 211, 900, 950, 11);
  buffer.give(decoder);
  decoder.finish();
  EXPECT_EQ(writer.rows(Table::kDispatch), 1);
  EXPECT_EQ(writer.rows(Table::kApi), 1);
  EXPECT_EQ(writer.losses[LossReason::kUnknownRecord], 1);
}

TEST_F(CuptiTest, KindWithoutKnownSizeEndsTheBufferAndIsCounted) {
  Buffer buffer(130001);
  buffer.api(false, 211, 900, 950, 11).record(99, 64).api(false, 211, 960, 970, 12);
  buffer.give(decoder);
  decoder.finish();
  EXPECT_EQ(writer.rows(Table::kApi), 1);
  EXPECT_EQ(writer.losses[LossReason::kUnknownRecord], 1);
}

TEST_F(CuptiTest, NestedDriverCallsAreKeptApartAndLinked) {
  Buffer buffer(130001);
  buffer.api(true, 100, 910, 915, 20);  // inside the launch, with its own number
  buffer.api(true, 307, 920, 940, 21);  // inside, shares the launch's number (older CUPTIs)
  buffer.api(false, 211, 900, 950, 21).kernel(216, 0x7000, 1000, 1100, 21);
  buffer.api(true, 307, 1200, 1210, 22).kernel(216, 0x7000, 1300, 1400, 22);  // the program's own driver call
  buffer.give(decoder);
  decoder.finish();
  ASSERT_EQ(writer.rows(Table::kApi), 4);
  std::map<int64_t, std::string> by_correlation;
  for (size_t i = 0; i < 4; ++i) by_correlation[fact(Table::kApi, i)[column::Api::correlation]] = function(i);
  EXPECT_EQ(by_correlation[21], "cudaLaunchKernel");
  EXPECT_EQ(by_correlation[22], "cuLaunchKernel");
  EXPECT_EQ(by_correlation.size(), 4u);
  ASSERT_EQ(writer.rows(Table::kLink), 2);
  EXPECT_EQ(fact(Table::kLink)[column::Link::from], 21);
  EXPECT_EQ(fact(Table::kLink)[column::Link::to], 20);
  EXPECT_EQ(fact(Table::kLink, 1)[column::Link::from], 21);
  EXPECT_EQ(by_correlation[fact(Table::kLink, 1)[column::Link::to]], "cuLaunchKernel");
  EXPECT_EQ(decoder.facts().launches, 2);
  EXPECT_EQ(decoder.facts().kernels, 2);
  EXPECT_EQ(decoder.facts().unmatched, 0);
}

TEST_F(CuptiTest, CallsThatFoundNoMemoryAreToldAtOnce) {
  decoder.name(NameSpace::kRuntimeFunction, 20, "cudaMalloc_v3020");
  Buffer buffer(130001);
  buffer.api(false, 20, 100, 110, 1);
  for (uint32_t i = 2; i < 22; ++i) buffer.api(false, 20, 100 * i, 100 * i + 10, i, 42, 2);
  buffer.api(false, 211, 5000, 5010, 30, 42, 1);  // another failure
  buffer.give(decoder);
  ASSERT_EQ(writer.facts[Table::kAllocation].size(), 20u);
  const std::vector<int64_t>& shape = dim(Table::kAllocationShape, fact(Table::kAllocation)[column::Allocation::dim]);
  EXPECT_EQ(shape[column::AllocationShape::operation], static_cast<int64_t>(event::AllocationOperation::kOutOfMemory));
  EXPECT_EQ(writer.text(shape[column::AllocationShape::name]), "cudaMalloc");
  EXPECT_EQ(fact(Table::kAllocation)[column::Allocation::bytes], event::kUnknown);
  ASSERT_EQ(writer.facts[Table::kNote].size(), 8u) << "the first ones are noted";
  EXPECT_EQ(writer.text(fact(Table::kNote)[column::Note::text]),
            "cudaMalloc found no memory (result 2); tacho memory shows who held it");
  EXPECT_EQ(writer.flushes, 8);
}

TEST_F(CuptiTest, LaunchesWithoutKernelsAreCountedButNotCapturedOnes) {
  Buffer buffer(130001);
  buffer.api(false, 211, 100, 110, 1).kernel(216, 0x7000, 200, 210, 1);
  buffer.api(false, 317, 300, 310, 2);         // begin capture
  buffer.api(false, 211, 320, 330, 3, 43);     // another thread launches into the capture
  buffer.api(false, 319, 400, 410, 4);         // end capture
  buffer.api(false, 211, 500, 510, 5, 42, 1);  // failed: no kernel expected
  buffer.api(false, 211, 600, 610, 6);         // its kernel never comes
  buffer.kernel(216, 0x7000, 700, 710, 7).kernel(216, 0x7000, 720, 730, 8, 99);  // 8: of a graph
  buffer.api(false, 211, 690, 695, 7);                                           // record after its kernel
  buffer.give(decoder);
  decoder.finish();
  EXPECT_EQ(decoder.facts().unmatched, 1);
  EXPECT_EQ(writer.losses[LossReason::kUnmatched], 1);
}

TEST_F(CuptiTest, CorrelationsGoOnPastThirtyTwoBits) {
  for (const uint32_t correlation : {0x7fffffffu, 0xffffff00u, 5u, 0xfffffff0u, 6u}) {
    Buffer buffer(130001);
    buffer.api(false, 31, 100, 110, correlation);
    buffer.give(decoder);
  }
  std::vector<int64_t> seen;
  for (const auto& row : writer.facts[Table::kApi]) seen.push_back(row[column::Api::correlation]);
  EXPECT_EQ(seen, (std::vector<int64_t>{0x7fffffff, 0xffffff00, 0x100000005, 0xfffffff0, 0x100000006}));
}

TEST_F(CuptiTest, TimesFromTheHostClockAreConvertedExactly) {
  // Target: ns = 10^9 + (tsc - 10^6) * 0.476 ns; context: trace time = tsc / 2 + 5 000 000.
  const uint64_t multiplier = 2'045'230'090;
  decoder.clock(clock_record(event::BlockClock::kScaled, 1000000, 1000000000, 2045230090));
  Buffer buffer(130001);
  std::vector<uint64_t> ticks;
  for (uint32_t n = 1; n < 200; ++n) {
    const uint64_t tsc = 1'000'000 + uint64_t{n} * 123'456'789;
    ticks.push_back(tsc);
    const auto ns =
        1'000'000'000 + static_cast<uint64_t>((static_cast<unsigned __int128>(tsc - 1'000'000) * multiplier) >> 32);
    buffer.api(false, 31, ns, ns + 100, n);
  }
  buffer.give(decoder);
  for (size_t n = 0; n < ticks.size(); ++n)
    EXPECT_NEAR(static_cast<double>(fact(Table::kApi, n)[column::Api::start]),
                static_cast<double>(ticks[n] / 2 + 5'000'000), 2.0);
}

TEST_F(CuptiTest, CuptisOwnClockIsConvertedByPairs) {
  decoder.clock(clock_record(event::BlockClock::kPaired));
  decoder.clock_pair(2'000'000, 1'700'000'000'000'000'000);  // trace time 6 000 000
  decoder.clock_pair(4'000'000, 1'700'000'000'001'000'000);  // 7 000 000
  Buffer buffer(130001);
  buffer.api(false, 31, 1'700'000'000'000'500'000, 1'700'000'000'000'500'400, 1);
  buffer.give(decoder);
  EXPECT_NEAR(static_cast<double>(fact(Table::kApi)[column::Api::start]), 6'500'000.0, 2.0);
  EXPECT_NEAR(static_cast<double>(fact(Table::kApi)[column::Api::duration]), 400.0, 2.0);
}

TEST_F(CuptiTest, BufferOfAKilledProcessIsReadToItsLastRecord) {
  Buffer buffer(130001);
  buffer.kernel(216, 0x7000, 1000, 1100, 1).api(false, 211, 900, 950, 1);
  buffer.kernel(216, 0x7000, 0, 0, 2).put<uint32_t>(0, 10 | 1u << 31);  // still on the device: so CUPTI marks it
  buffer.api(false, 211, 960, 970, 2);
  buffer.bytes().resize(65472, std::byte{0});
  buffer.give(decoder, false);
  decoder.finish();
  EXPECT_EQ(writer.rows(Table::kDispatch), 1);
  EXPECT_EQ(writer.rows(Table::kApi), 2);
  EXPECT_EQ(writer.losses[LossReason::kKilled], 1);
  EXPECT_EQ(writer.losses.count(LossReason::kVendor), 0u);
  EXPECT_EQ(writer.losses.count(LossReason::kUnmatched), 0u);
  EXPECT_EQ(decoder.facts().in_flight, 1);
}

TEST_F(CuptiTest, KernelsWithoutTimesAreCountedAndExplained) {
  Buffer buffer(130001);
  buffer.kernel(216, 0x7000, 0, 0, 2);
  buffer.give(decoder);
  decoder.finish();
  EXPECT_EQ(writer.rows(Table::kDispatch), 0);
  EXPECT_EQ(writer.losses[LossReason::kVendor], 1);
  ASSERT_EQ(writer.notes.size(), 1u);
}

TEST_F(CuptiTest, ThreadsWithoutKernelIdsAreTheBuffersOwners) {
  decoder.fact(event::BlockFact::kThreadIds, 0, {});
  Buffer buffer(130001);
  buffer.api(false, 31, 100, 110, 1, 0xf1fff000);
  buffer.give(decoder);
  EXPECT_EQ(dim(Table::kTrack, fact(Table::kApi)[column::Api::track])[column::Track::native], 42);
}

TEST_F(CuptiTest, WhatWasLaunchedWhilePausedIsLeftOut) {
  decoder.fact(event::BlockFact::kRecordingStops, 10, {});
  decoder.fact(event::BlockFact::kRecordingStarts, 20, {});
  Buffer buffer(130001);
  for (const uint32_t correlation : {9u, 10u, 19u, 20u})
    buffer.kernel(216, 0x7000, 1000 + correlation, 1100 + correlation, correlation)
        .api(false, 211, 900 + correlation, 950 + correlation, correlation);
  buffer.give(decoder);
  decoder.finish();
  EXPECT_EQ(writer.rows(Table::kDispatch), 2);
  EXPECT_EQ(writer.rows(Table::kApi), 2);
  EXPECT_TRUE(writer.losses.empty());
}

TEST_F(CuptiTest, BothEndsOfAnAttachAreToldWithoutLoss) {
  decoder.fact(event::BlockFact::kRecordingStops, 0, {});
  decoder.fact(event::BlockFact::kRecordingStarts, 20, {});
  Buffer buffer(130001);
  buffer.kernel(216, 0x7000, 0, 0, 17);                                  // from before, without times
  buffer.kernel(216, 0x7000, 0, 0, 18).put<uint32_t>(0, 10 | 1u << 31);  // and not complete
  buffer.kernel(216, 0x7000, 1000, 1100, 19);
  buffer.kernel(216, 0x7000, 1200, 1300, 20).api(false, 211, 900, 950, 20);
  buffer.api(false, 211, 960, 970, 21);  // had not ended when tacho left
  buffer.give(decoder);
  decoder.finish();
  EXPECT_EQ(writer.rows(Table::kDispatch), 1);
  EXPECT_EQ(writer.rows(Table::kApi), 2);
  EXPECT_TRUE(writer.losses.empty());
  EXPECT_EQ(writer.notes.size(), 2u);
  EXPECT_EQ(decoder.facts().before_attach, 2);
  EXPECT_EQ(decoder.facts().after_leaving, 1);
}

TEST_F(CuptiTest, ALaunchWithoutARecordInTheMiddleOfAnAttachIsLost) {
  decoder.fact(event::BlockFact::kRecordingStops, 0, {});
  decoder.fact(event::BlockFact::kRecordingStarts, 20, {});
  Buffer buffer(130001);
  buffer.api(false, 211, 900, 950, 20);
  buffer.kernel(216, 0x7000, 1200, 1300, 21).api(false, 211, 960, 970, 21);
  buffer.give(decoder);
  decoder.finish();
  EXPECT_EQ(writer.losses[LossReason::kUnmatched], 1);
}

TEST_F(CuptiTest, SpansOfGraphsWhileNothingIsRecordedAreLeftOut) {
  decoder.fact(event::BlockFact::kSpansStop, 2000, {});
  decoder.fact(event::BlockFact::kSpansStart, 6000, {});
  decoder.fact(event::BlockFact::kSpansStop, 10000, {});
  Buffer buffer(130001);
  // A tick is half a nanosecond; the first is at 5 ms.
  for (const uint64_t start : {5'002'000ull, 5'003'000ull, 5'004'999ull, 5'005'000ull})
    buffer.record(51, 56)
        .put<uint32_t>(4, static_cast<uint32_t>(start))
        .put<uint64_t>(8, start)
        .put<uint64_t>(16, start + 900)
        .put<uint32_t>(28, 5)
        .put<uint32_t>(32, 1);
  buffer.give(decoder);
  decoder.finish();
  EXPECT_EQ(writer.rows(Table::kDispatch), 2);
  EXPECT_TRUE(writer.losses.empty());
}

TEST_F(CuptiTest, GraphsCarryTheNamesOfTheirNodes) {
  decoder.name(NameSpace::kGraph, 5, "3\n2\tkernel\t_Z6vecAddPf\n1\tcopy\t\n");
  Buffer buffer(130001);
  buffer.record(51, 56)
      .put<uint32_t>(4, 17)
      .put<uint64_t>(8, 3000)
      .put<uint64_t>(16, 4000)
      .put<uint32_t>(28, 5)
      .put<uint32_t>(32, 1)
      .put<uint32_t>(36, 7);
  buffer.give(decoder);
  EXPECT_EQ(writer.text(dim(Table::kKernel, fact(Table::kDispatch)[column::Dispatch::dim])[column::Kernel::name]),
            "graph of 3 nodes: vecAdd x2, copy");
}

TEST_F(CuptiTest, NamesThatChangeTheirMemoryAreFollowed) {
  Buffer first(130001), second(130001);
  first.kernel(216, 0x7000, 1000, 1100, 1).give(decoder);
  decoder.name(NameSpace::kKernel, 0x7000, "_Z5other");
  second.kernel(216, 0x7000, 2000, 2100, 2).give(decoder);
  EXPECT_EQ(writer.text(dim(Table::kKernel, fact(Table::kDispatch, 1)[column::Dispatch::dim])[column::Kernel::name]),
            "_Z5other");
}

// Whatever the bytes, a record gives one row at most, and none is shorter than its kind and four bytes more. Senseless
// records are counted as lost.
TEST(CuptiBytes, GiveNoMoreRowsThanRecordsAndCountTheRest) {
  struct Decoding {
    MemoryWriter writer;
    TestProcess process{writer};
    CuptiDecoder decoder{process, writer};
    size_t bytes = 0;
    size_t rows() const {
      size_t sum = 0;
      for (const auto& [table, rows] : writer.facts) sum += rows.size();
      return sum;
    }
  };
  std::mt19937 random(7);
  const uint32_t kinds[] = {1, 2, 4, 5, 8, 9, 10, 11, 17, 22, 37, 38, 49, 51, 52};
  size_t rows = 0;
  int64_t lost = 0;
  std::unique_ptr<Decoding> decoding;
  const auto end = [&] {
    decoding->decoder.finish();
    EXPECT_LE(decoding->rows(), decoding->bytes / 8);
    rows += decoding->rows();
    for (const auto& [reason, count] : decoding->writer.losses) {
      EXPECT_GT(count, 0);
      lost += count;
    }
  };
  for (int round = 0; round < 3000; ++round) {
    if (round % 25 == 0) {  // the test writer searches linearly
      if (decoding) end();
      decoding = std::make_unique<Decoding>();
      decoding->decoder.clock(clock_record(event::BlockClock::kMonotonicRaw));
      decoding->decoder.fact(event::BlockFact::kThreadIds, 1, {});
    }
    Buffer buffer(round % 3 == 0 ? 130001u : static_cast<uint32_t>(random()));
    std::vector<std::byte>& bytes = buffer.bytes();
    bytes.resize(random() % 4096);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    for (size_t at = 0; at + 4 < bytes.size(); at += 8 * (1 + random() % 27)) {
      const uint32_t kind = kinds[random() % std::size(kinds)];
      std::memcpy(&bytes[at], &kind, 4);
    }
    if (round % 50 == 0)
      decoding->decoder.record_sizes(std::array<event::BlockSize, 2>{
          {{static_cast<uint16_t>(kinds[random() % std::size(kinds)]), static_cast<uint16_t>(random() % 300)},
           {static_cast<uint16_t>(random()), static_cast<uint16_t>(random())}}});
    decoding->bytes += bytes.size();
    buffer.give(decoding->decoder, round % 2 == 0);
  }
  end();
  EXPECT_GT(rows, 1000u) << "most rounds have records that make sense";
  EXPECT_GT(lost, 1000) << "and some that make none";
}

}  // namespace
}  // namespace tacho::decode
