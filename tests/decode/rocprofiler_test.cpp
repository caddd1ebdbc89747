// The decoder of rocprofiler-sdk's records: on recorded ones of the real library 1.0.0
// (../shared/data/rocprofiler-sdk), on records built by hand in the layouts of 0.x, and on blocks that make no sense.
#include <gtest/gtest.h>
#include <zstd.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "decode/rocm/decoder.h"
#include "memory_writer.h"

namespace tacho::decode {
namespace {

namespace column = event::column;
using event::LossReason;

class SdkProcess : public ProcessContext {
 public:
  explicit SdkProcess(trace::TraceWriter& writer) : writer_(writer) {}
  std::string_view text(uint32_t number) const override {
    return number < texts.size() ? std::string_view(texts[number]) : std::string_view();
  }
  int64_t row() override { return 7; }
  int64_t host_time(uint64_t ticks) const override { return static_cast<int64_t>(ticks); }
  int64_t thread_track(uint32_t tid) override {
    return writer_.dimension(event::row::Track{.kind = event::TrackKind::kThread, .process = 7, .native = tid});
  }
  void received(Table table) override { ++received_rows[table]; }
  std::vector<std::string> texts{""};
  std::map<Table, int64_t> received_rows;

 private:
  trace::TraceWriter& writer_;
};

class RocprofilerTest : public ::testing::Test {
 protected:
  const std::vector<int64_t>& dim(Table table, int64_t row) {
    return writer.dimensions[table].at(static_cast<size_t>(row - 1));
  }
  std::map<std::string, int64_t> kernels() {
    std::map<std::string, int64_t> counts;
    for (const auto& row : writer.facts[Table::kDispatch])
      ++counts[writer.text(dim(Table::kKernel, row[column::Dispatch::dim])[column::Kernel::name])];
    return counts;
  }
  // Calls by name; with `of` only those whose correlation a row of that table has, once for each.
  std::map<std::string, int64_t> calls(Table of = Table::kEnd) {
    std::map<int64_t, int64_t> function;  // by correlation
    std::map<std::string, int64_t> counts;
    const auto name = [&](int64_t row) { return writer.text(dim(Table::kFunction, row)[column::Function::name]); };
    for (const auto& row : writer.facts[Table::kApi]) {
      function[row[column::Api::correlation]] = row[column::Api::dim];
      if (of == Table::kEnd) ++counts[name(row[column::Api::dim])];
    }
    if (of != Table::kEnd)
      for (const auto& row : writer.facts[of]) {
        const auto found = function.find(row[column::Dispatch::correlation]);
        ++counts[found == function.end() ? "no call" : name(found->second)];
      }
    return counts;
  }

  MemoryWriter writer;
  SdkProcess process{writer};
  RocprofilerDecoder decoder{process, writer};
};

// The recordings

std::string recorded(const char* name) {
  const std::string path = std::string(getenv("TACHO_DATA")) + "/rocprofiler-sdk/" + name;
  std::ifstream file(path, std::ios::binary);
  std::stringstream packed;
  packed << file.rdbuf();
  const std::string from = packed.str();
  std::string text;
  ZSTD_DStream* const stream = ZSTD_createDStream();
  ZSTD_inBuffer in{from.data(), from.size(), 0};
  std::vector<char> room(1 << 20);
  while (in.pos < in.size) {
    ZSTD_outBuffer out{room.data(), room.size(), 0};
    if (ZSTD_isError(ZSTD_decompressStream(stream, &out, &in)) != 0) break;
    text.append(room.data(), out.pos);
  }
  ZSTD_freeDStream(stream);
  return text;
}

// The recorder's additions to the library's records (the data's README): names, and payloads of code-object callbacks.
constexpr uint32_t kRecordedNames = 100, kRecordedCodeObjects = 200;
constexpr uint32_t kOperationNames = 1, kKernelNames = 3;
constexpr uint32_t kKernelLoaded = 10 << 16 | 2 << 8 | 1;

void replay(const std::string& text, RocprofilerDecoder& decoder, size_t block_bytes) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
  std::map<uint64_t, std::span<const std::byte>> symbols;
  std::vector<std::byte> block;
  std::vector<std::vector<std::byte>> blocks;
  for (size_t at = 0; at + sizeof(sdk::PieceHeader) <= text.size();) {
    sdk::PieceHeader piece;
    std::memcpy(&piece, bytes + at, sizeof piece);
    const std::span<const std::byte> payload(bytes + at + sizeof piece, piece.bytes);
    at += sizeof piece + piece.bytes;
    uint64_t number = 0;
    if (piece.bytes >= 8) std::memcpy(&number, payload.data(), sizeof number);
    const std::string name(reinterpret_cast<const char*>(payload.data()) + 8, piece.bytes >= 8 ? piece.bytes - 8 : 0);
    if (piece.category == kRecordedCodeObjects && piece.kind == kKernelLoaded) {
      symbols[sdk::kernel_symbol::id.read(payload.data(), payload.size())] = payload;
    } else if (piece.category == kRecordedNames && piece.kind == kOperationNames) {
      decoder.operation(number, name.c_str());
    } else if (piece.category == kRecordedNames && piece.kind == kKernelNames) {
      decoder.kernel(symbols.at(number), name.c_str());
    } else if (piece.category < kRecordedNames) {
      const auto* const header = reinterpret_cast<const std::byte*>(&piece);
      block.insert(block.end(), header, header + sizeof piece);
      block.insert(block.end(), payload.begin(), payload.end());
      block.resize((block.size() + 7) & ~size_t{7});
      if (block.size() >= block_bytes) blocks.push_back(std::move(block)), block = {};
    }
  }
  blocks.push_back(std::move(block));
  tape::BlockHeader header{};
  header.kind = tape::BlockKind::kRocprofiler;
  header.vendor_version = 10000;
  for (const auto& each : blocks) decoder.block(header, each, true);
  decoder.finish();
}

#define NEED_RECORDING()                                                                   \
  if (!std::filesystem::exists(std::string(getenv("TACHO_DATA")) + "/rocprofiler-sdk")) {  \
    const char* const required = getenv("TACHO_REQUIRE_DATA");                             \
    if (required != nullptr && std::string(required) == "1") FAIL() << "no recorded data"; \
    GTEST_SKIP() << "no recorded data: set TACHO_DATA";                                    \
  }

TEST_F(RocprofilerTest, RecordingOfOneKernel) {
  NEED_RECORDING();
  replay(recorded("vcopy-gfx942.records.zst"), decoder, 60'000);
  EXPECT_TRUE(writer.losses.empty());
  EXPECT_EQ(kernels(), (std::map<std::string, int64_t>{{"_Z7vecCopyPKdPdi", 6}}));
  const auto& dispatches = writer.facts[Table::kDispatch];
  EXPECT_EQ(dispatches[0][column::Dispatch::start], 7248801561844);
  EXPECT_EQ(dispatches[0][column::Dispatch::duration], 191960);
  EXPECT_EQ(dispatches[0][column::Dispatch::ordinal], 0);
  int64_t busy = 0;
  for (const auto& row : dispatches) busy += row[column::Dispatch::duration];
  EXPECT_EQ(busy, 888890);
  // Launched within HSA's calls, they belong to HIP's.
  EXPECT_EQ(calls(Table::kDispatch), (std::map<std::string, int64_t>{{"hipLaunchKernel", 6}}));
  const auto& kernel = dim(Table::kKernel, dispatches[0][column::Dispatch::dim]);
  EXPECT_EQ(kernel[column::Kernel::grid_x], 1048576);
  EXPECT_EQ(kernel[column::Kernel::grid_y], 1);
  EXPECT_EQ(kernel[column::Kernel::group_x], 256);
  EXPECT_EQ(kernel[column::Kernel::shared_static], 0);
  EXPECT_EQ(kernel[column::Kernel::shared_dynamic], 0);
  EXPECT_EQ(kernel[column::Kernel::private_bytes], 0);
  EXPECT_EQ(kernel[column::Kernel::scalar_registers], 16);
  EXPECT_EQ(kernel[column::Kernel::registers], 4);
  EXPECT_EQ(kernel[column::Kernel::accum_registers], 4);

  const auto& copies = writer.facts[Table::kCopy];
  ASSERT_EQ(copies.size(), 2u);
  const auto direction = [&](size_t at) {
    return static_cast<event::CopyDirection>(
        dim(Table::kCopyShape, copies[at][column::Copy::dim])[column::CopyShape::direction]);
  };
  EXPECT_EQ(direction(0), event::CopyDirection::kHostToDevice);
  EXPECT_EQ(direction(1), event::CopyDirection::kDeviceToHost);
  EXPECT_EQ(copies[0][column::Copy::bytes], 8388608);
  EXPECT_EQ(copies[0][column::Copy::duration], 7248799520677 - 7248777671286);
  EXPECT_EQ(calls(Table::kCopy), (std::map<std::string, int64_t>{{"hipMemcpy", 2}}));

  const auto counts = calls();
  for (const auto& [name, count] : std::map<std::string, int64_t>{{"hipGetDeviceCount", 1},
                                                                  {"hipMalloc", 2},
                                                                  {"hipMemcpy", 2},
                                                                  {"hipLaunchKernel", 6},
                                                                  {"hipGetLastError", 5},
                                                                  {"hipEventRecord", 2},
                                                                  {"hipFree", 2}})
    EXPECT_EQ(counts.at(name), count) << name;
  EXPECT_EQ(writer.facts[Table::kApi].size(), 453u + 26u);

  const auto& allocations = writer.facts[Table::kAllocation];
  ASSERT_EQ(allocations.size(), 13u);
  int64_t allocated = 0, freed = 0;
  for (const auto& row : allocations) {
    const auto& shape = dim(Table::kAllocationShape, row[column::Allocation::dim]);
    const bool frees =
        shape[column::AllocationShape::operation] == static_cast<int64_t>(event::AllocationOperation::kFree);
    if (row[column::Allocation::bytes] != event::kUnknown)
      (frees ? freed : allocated) += row[column::Allocation::bytes];
  }
  EXPECT_EQ(allocated, 29360184);
  EXPECT_EQ(freed, 29360184);  // sizes and places of frees come from the allocations
}

TEST_F(RocprofilerTest, RecordingOfManyKernels) {
  NEED_RECORDING();
  replay(recorded("many-gfx942.records.zst"), decoder, 3'000);
  EXPECT_TRUE(writer.losses.empty());
  EXPECT_EQ(kernels(),
            (std::map<std::string, int64_t>{{"_Z1bPfi", 830}, {"_Z1aPf", 43}, {"__amd_rocclr_fillBufferAligned", 1}}));
  int64_t busy = 0;
  for (const auto& row : writer.facts[Table::kDispatch]) busy += row[column::Dispatch::duration];
  EXPECT_EQ(busy, 104494850);
  EXPECT_EQ(calls(Table::kDispatch),
            (std::map<std::string, int64_t>{{"hipLaunchKernel", 861}, {"hipGraphLaunch", 12}, {"hipMemset", 1}}));
  EXPECT_EQ(writer.facts[Table::kApi].size(), 3812u + 889u);
  EXPECT_EQ(writer.facts[Table::kCopy].size(), 2u);
  EXPECT_EQ(writer.facts[Table::kAllocation].size(), 28u);
}

// Records by hand

class SdkBlock {
 public:
  explicit SdkBlock(uint32_t version) {
    header_.kind = tape::BlockKind::kRocprofiler;
    header_.vendor_version = version;
  }
  SdkBlock& record(uint32_t category, uint32_t kind, uint64_t bytes) {
    const sdk::PieceHeader piece{category, kind, bytes};
    bytes_.resize((bytes_.size() + 7) & ~size_t{7});
    const auto* const from = reinterpret_cast<const std::byte*>(&piece);
    bytes_.insert(bytes_.end(), from, from + sizeof piece);
    at_ = bytes_.size();
    bytes_.resize(at_ + bytes);
    return *this;
  }
  // A record of tracing: size, kind and operation filled in.
  SdkBlock& traced(int32_t kind, int32_t operation, uint64_t bytes) {
    record(sdk::category::kTracing, static_cast<uint32_t>(kind), bytes);
    return put(0, bytes).put(8, kind).put(12, operation);
  }
  template <typename T>
  SdkBlock& put(size_t offset, T value) {
    EXPECT_LE(at_ + offset + sizeof value, bytes_.size());
    std::memcpy(&bytes_[at_ + offset], &value, sizeof value);
    return *this;
  }
  // Device work that waits for its clock to be compared becomes rows at once.
  void give(RocprofilerDecoder& decoder, bool completed = true) const {
    decoder.block(header_, bytes_, completed);
    for (int i = 0; i < 2; ++i) decoder.settle();
  }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  tape::BlockHeader header_{};
  std::vector<std::byte> bytes_;
  size_t at_ = 0;
};

std::vector<std::byte> symbol(uint64_t id, uint32_t group_bytes) {
  std::vector<std::byte> bytes(72);
  std::memcpy(&bytes[8], &id, sizeof id);
  std::memcpy(&bytes[48], &group_bytes, sizeof group_bytes);
  return bytes;
}

SdkBlock& dispatched(SdkBlock& block, int32_t kind, uint64_t correlation, uint64_t start, uint64_t kernel,
                     uint64_t stream = 0) {
  block.traced(kind, 2, 184).put(16, correlation).put(24, stream).put<uint64_t>(32, 42);
  block.put(40, start).put(48, start + 100).put<uint64_t>(64, 3).put<uint64_t>(72, 9).put(80, kernel);
  block.put<uint64_t>(88, 5).put<uint32_t>(100, 1536).put<uint32_t>(104, 64).put<uint32_t>(108, 1).put<uint32_t>(112,
                                                                                                                 1);
  return block.put<uint32_t>(116, 128).put<uint32_t>(120, 1).put<uint32_t>(124, 1);
}

constexpr uint64_t op(uint32_t kind, uint32_t operation) {
  return uint64_t{kind} << 32 | operation;
}

// ROCm 6.4: correlation ids of 16 bytes, other numbers for the same kinds.
TEST_F(RocprofilerTest, LayoutsOfTheOldAbi) {
  decoder.operation(op(5, 214), "HIP_RUNTIME_API/hipLaunchKernel");
  decoder.operation(op(11, 2), "KERNEL_DISPATCH/KERNEL_DISPATCH_COMPLETE");
  decoder.operation(op(10, 4), "MEMORY_COPY/MEMORY_COPY_DEVICE_TO_DEVICE");
  decoder.operation(op(17, 1), "MEMORY_ALLOCATION/MEMORY_ALLOCATION_ALLOCATE");
  decoder.operation(op(13, 1), "SCRATCH_MEMORY/SCRATCH_MEMORY_ALLOC");
  decoder.kernel(symbol(4, 512), "foo.kd");
  SdkBlock block(600);
  block.traced(5, 214, 56).put<uint64_t>(16, 77).put<uint64_t>(32, 1000).put<uint64_t>(40, 1500).put<uint64_t>(48, 42);
  dispatched(block, 11, 77, 2000, 4);
  block.traced(10, 4, 80).put<uint64_t>(16, 78).put<uint64_t>(40, 3000).put<uint64_t>(48, 3600);
  block.put<uint64_t>(56, 3).put<uint64_t>(64, 4).put<uint64_t>(72, 4096);
  block.traced(17, 1, 80).put<uint64_t>(16, 79).put<uint64_t>(32, 42).put<uint64_t>(40, 50).put<uint64_t>(48, 60);
  block.put<uint64_t>(56, 3).put<uint64_t>(64, 0xf000).put<uint64_t>(72, 123);
  block.traced(13, 1, 80).put<uint64_t>(16, 80).put<uint64_t>(32, 3).put<uint64_t>(56, 70).put<uint64_t>(64, 75);
  block.give(decoder);
  decoder.finish();
  EXPECT_TRUE(writer.losses.empty());
  EXPECT_EQ(calls(Table::kDispatch), (std::map<std::string, int64_t>{{"hipLaunchKernel", 1}}));
  EXPECT_EQ(writer.facts[Table::kApi][0][column::Api::duration], 500);
  EXPECT_EQ(kernels(), (std::map<std::string, int64_t>{{"foo", 1}}));
  const auto& kernel = dim(Table::kKernel, writer.facts[Table::kDispatch][0][column::Dispatch::dim]);
  EXPECT_EQ(kernel[column::Kernel::shared_static], 512);
  EXPECT_EQ(kernel[column::Kernel::shared_dynamic], 1024);
  ASSERT_EQ(writer.facts[Table::kCopy].size(), 1u);
  EXPECT_EQ(writer.facts[Table::kCopy][0][column::Copy::bytes], 4096);
  EXPECT_EQ(dim(Table::kCopyShape, writer.facts[Table::kCopy][0][column::Copy::dim])[column::CopyShape::direction],
            static_cast<int64_t>(event::CopyDirection::kPeerToPeer));
  ASSERT_EQ(writer.facts[Table::kAllocation].size(), 2u);
  EXPECT_EQ(writer.facts[Table::kAllocation][0][column::Allocation::bytes], 123);
  EXPECT_EQ(writer.facts[Table::kAllocation][0][column::Allocation::correlation], 79);
  EXPECT_EQ(writer.facts[Table::kAllocation][1][column::Allocation::duration], 5);
}

// ROCm 6.2 has the correlation of scratch memory behind its times.
TEST_F(RocprofilerTest, ScratchOfTheOldestAbi) {
  decoder.operation(op(13, 2), "SCRATCH_MEMORY/SCRATCH_MEMORY_FREE");
  SdkBlock block(400);
  block.traced(13, 2, 80).put<uint64_t>(16, 3).put<uint64_t>(32, 42).put<uint64_t>(40, 70).put<uint64_t>(48, 76);
  block.put<uint64_t>(56, 81);
  block.give(decoder);
  ASSERT_EQ(writer.facts[Table::kAllocation].size(), 1u);
  EXPECT_EQ(writer.facts[Table::kAllocation][0][column::Allocation::duration], 6);
  EXPECT_EQ(writer.facts[Table::kAllocation][0][column::Allocation::correlation], 81);
}

TEST_F(RocprofilerTest, PagesThatTheDriverMoved) {
  decoder.operation(op(29, 1), "KFD_PAGE_MIGRATE/KFD_PAGE_MIGRATE_PAGEFAULT_GPU");
  decoder.operation(op(12, 1), "PAGE_MIGRATION/PAGE_MIGRATION_PAGE_MIGRATE_START");
  decoder.operation(op(12, 2), "PAGE_MIGRATION/PAGE_MIGRATION_PAGE_MIGRATE_END");
  SdkBlock block(10000);
  const auto paired = [&](uint64_t start, uint64_t end) {
    block.traced(29, 1, 96).put<uint64_t>(16, start).put<uint64_t>(24, end);
    block.put<uint64_t>(40, 0x10000).put<uint64_t>(48, 0x14000).put<uint64_t>(56, 3).put<uint64_t>(64, 4);
  };
  paired(1000, 1600);
  paired(1000, 900);  // ends before it begins
  const auto event = [&](int32_t which, uint64_t when, uint64_t address) {
    block.traced(12, which, 160).put<uint64_t>(16, when).put<uint64_t>(32, address);
    block.put<uint64_t>(40, address + 4095).put<uint64_t>(48, 3).put<uint64_t>(56, 4);
  };
  event(1, 2000, 0x20000);
  event(1, 2010, 0x30000);  // never ends
  event(2, 2300, 0x20000);
  event(2, 2400, 0x40000);  // never began
  block.give(decoder);
  decoder.finish();
  ASSERT_EQ(writer.facts[Table::kCopy].size(), 2u);
  const auto& first = writer.facts[Table::kCopy][0];
  const auto& second = writer.facts[Table::kCopy][1];
  EXPECT_EQ(first[column::Copy::bytes], 0x4000);
  EXPECT_EQ(first[column::Copy::duration], 600);
  EXPECT_EQ(second[column::Copy::bytes], 4096);
  EXPECT_EQ(second[column::Copy::duration], 300);
  EXPECT_EQ(dim(Table::kCopyShape, first[column::Copy::dim])[column::CopyShape::kind],
            static_cast<int64_t>(event::CopyKind::kMigrate));
  EXPECT_EQ(process.received_rows[Table::kCopy], 0);  // nobody issued them
  EXPECT_EQ(writer.losses.size(), 1u);
}

TEST_F(RocprofilerTest, ResultsOfCalls) {
  decoder.operation(op(21, 215), "HIP_RUNTIME_API_EXT/hipMalloc");
  decoder.operation(op(21, 108), "HIP_RUNTIME_API_EXT/hipGetErrorString");
  SdkBlock block(10000);
  for (const int32_t operation : {215, 108}) {
    block.traced(21, operation, 88).put<uint64_t>(16, 1).put<uint64_t>(40, 10).put<uint64_t>(48, 20);
    block.put<uint64_t>(56, 42).put<int32_t>(64, 2);
  }
  block.give(decoder);
  ASSERT_EQ(writer.facts[Table::kApi].size(), 2u);
  EXPECT_EQ(writer.facts[Table::kApi][0][column::Api::result], 2);
  EXPECT_EQ(writer.facts[Table::kApi][1][column::Api::result], event::kUnknown);
}

// With --api-args the arguments stay between a call and its result.
TEST_F(RocprofilerTest, ArgumentsOfCalls) {
  decoder.operation(op(21, 215), "HIP_RUNTIME_API_EXT/hipMalloc");
  decoder.operation(op(21, 499), "HIP_RUNTIME_API_EXT/hipUnheardOf");
  SdkBlock block(10000);
  for (const auto& [operation, bytes] : {std::pair(215, 200u), {499, 200u}, {215, 96u}}) {
    block.traced(21, operation, bytes).put<uint64_t>(16, 1).put<uint64_t>(40, 10).put<uint64_t>(48, 20);
    block.put<uint64_t>(64, 0x7000).put<uint32_t>(bytes - 24, 2);
    if (bytes > 100) block.put<uint64_t>(72, 4096);
  }
  block.give(decoder);
  ASSERT_EQ(writer.facts[Table::kApi].size(), 3u);
  EXPECT_EQ(writer.text(writer.facts[Table::kApi][0][column::Api::arguments]), "ptr=0x7000, size=4096");
  EXPECT_EQ(writer.facts[Table::kApi][0][column::Api::result], 2);
  EXPECT_EQ(writer.facts[Table::kApi][1][column::Api::arguments], 0);
  EXPECT_EQ(writer.facts[Table::kApi][2][column::Api::arguments], 0);  // too few bytes for them
}

// --device-counters: rates between readings; a counter that began anew counts from 0.
TEST_F(RocprofilerTest, CountersOfWholeGpus) {
  decoder.operation(op(sdk::kDeviceReadings, 0), "SQ_WAVES");
  SdkBlock block(10000);
  const auto read = [&](uint64_t time, uint32_t counter, double value) {
    block.record(sdk::category::kCounters, sdk::kDeviceReading, sizeof(sdk::DeviceReading))
        .put<uint64_t>(0, sizeof(sdk::DeviceReading))
        .put<uint64_t>(8, time)
        .put<uint64_t>(16, 4)
        .put<uint32_t>(24, counter)
        .put<double>(32, value);
  };
  read(1'000'000'000, 0, 100);
  read(1'500'000'000, 0, 350);
  read(1'500'000'000, 0, 350);  // no time has passed
  read(2'500'000'000, 0, 30);
  read(2'500'000'000, 7, 1);
  block.record(sdk::category::kCounters, sdk::kDeviceReading, 16).put<uint64_t>(0, 16);
  block.give(decoder);
  decoder.finish();
  std::vector<std::pair<int64_t, double>> rates;
  for (const auto& row : writer.facts[Table::kReading])
    rates.emplace_back(row[column::Reading::start], std::bit_cast<double>(row[column::Reading::value]));
  EXPECT_EQ(rates, (std::vector<std::pair<int64_t, double>>{{1'500'000'000, 500}, {2'500'000'000, 30}}));
  const auto& track = dim(Table::kTrack, writer.facts[Table::kReading][0][column::Reading::track]);
  EXPECT_EQ(writer.text(track[column::Track::name]), "SQ_WAVES");
  EXPECT_EQ(writer.text(track[column::Track::category]), "telemetry.gpu");
  EXPECT_EQ(writer.losses[LossReason::kUnknownRecord], 1);
}

TEST_F(RocprofilerTest, StreamsHaveLinesOfTheirOwn) {
  decoder.operation(op(11, 2), "KERNEL_DISPATCH/KERNEL_DISPATCH_COMPLETE");
  SdkBlock block(10000);
  dispatched(block, 11, 1, 2000, 4, 1);
  dispatched(block, 11, 2, 2100, 4, 3);
  dispatched(block, 11, 3, 2200, 4, 1);
  block.give(decoder);
  const auto& rows = writer.facts[Table::kDispatch];
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0][column::Dispatch::track], rows[2][column::Dispatch::track]);
  EXPECT_NE(rows[0][column::Dispatch::track], rows[1][column::Dispatch::track]);
  const auto& track = dim(Table::kTrack, rows[1][column::Dispatch::track]);
  EXPECT_EQ(writer.text(track[column::Track::category]), "stream");
  EXPECT_EQ(track[column::Track::native], 2);
  EXPECT_EQ(track[column::Track::context], 9);
}

TEST_F(RocprofilerTest, NodesOfGraphs) {
  decoder.operation(op(11, 2), "KERNEL_DISPATCH/KERNEL_DISPATCH_COMPLETE");
  SdkBlock block(10000);
  dispatched(block, 11, 1, 2000, 4, uint64_t{3} << 32 | 2);
  block.give(decoder);
  EXPECT_EQ(writer.facts[Table::kDispatch][0][column::Dispatch::graph_node], 3);
  EXPECT_EQ(dim(Table::kTrack, writer.facts[Table::kDispatch][0][column::Dispatch::track])[column::Track::native], 1);
}

TEST_F(RocprofilerTest, RecordingFromCallToCall) {
  decoder.operation(op(11, 2), "KERNEL_DISPATCH/KERNEL_DISPATCH_COMPLETE");
  decoder.fact(event::BlockFact::kRecordingStops, 0, {});
  decoder.fact(event::BlockFact::kRecordingStops, 5, {});
  decoder.fact(event::BlockFact::kRecordingStarts, 3, {});
  SdkBlock block(10000);
  for (uint64_t correlation = 1; correlation < 8; ++correlation)
    dispatched(block, 11, correlation, 2000 + correlation, 4);
  block.give(decoder);
  ASSERT_EQ(writer.facts[Table::kDispatch].size(), 2u);
  EXPECT_EQ(writer.facts[Table::kDispatch][0][column::Dispatch::correlation], 3);
  EXPECT_EQ(writer.facts[Table::kDispatch][1][column::Dispatch::correlation], 4);
  EXPECT_EQ(process.received_rows[Table::kDispatch], 7);
}

TEST_F(RocprofilerTest, FilterByName) {
  process.texts.emplace_back("^wan");
  event::BlockFactRecord include{};
  include.header = {event::RecordKind::kBlockFact, static_cast<uint8_t>(tape::BlockKind::kRocprofiler), sizeof include,
                    static_cast<uint32_t>(event::BlockFact::kKernelInclude)};
  include.text = 1;
  decoder.define(reinterpret_cast<const std::byte*>(&include), include.header);
  decoder.operation(op(11, 2), "KERNEL_DISPATCH/KERNEL_DISPATCH_COMPLETE");
  decoder.kernel(symbol(4, 0), "wanted.kd");
  decoder.kernel(symbol(5, 0), "other.kd");
  SdkBlock block(10000);
  dispatched(block, 11, 1, 2000, 4);
  dispatched(block, 11, 2, 2100, 5);
  block.give(decoder);
  decoder.finish();
  EXPECT_EQ(kernels(), (std::map<std::string, int64_t>{{"wanted", 1}}));
  EXPECT_EQ(writer.losses[LossReason::kFiltered], 1);
  EXPECT_EQ(process.received_rows[Table::kDispatch], 2);  // neither is missing from the launches
}

TEST_F(RocprofilerTest, AgentsBecomeDevices) {
  std::vector<std::byte> gpu(312), processor(312);
  const auto put = [](std::vector<std::byte>& bytes, size_t offset, auto value) {
    std::memcpy(&bytes[offset], &value, sizeof value);
  };
  put(processor, 8, uint64_t{1});
  put(processor, 16, uint32_t{1});
  put(gpu, 8, uint64_t{3});
  put(gpu, 16, uint32_t{2});
  put(gpu, 288, int32_t{0});
  put(gpu, 296, uint64_t{0xabc});
  put(gpu, 140, uint32_t{2100});
  decoder.agent(processor, "cpu", "");
  decoder.agent(gpu, "gfx942", "AMD Instinct MI300X");
  ASSERT_EQ(writer.dimensions[Table::kDevice].size(), 1u);
  const auto& device = dim(Table::kDevice, 1);
  EXPECT_EQ(writer.text(device[column::Device::name]), "AMD Instinct MI300X");
  EXPECT_EQ(writer.text(device[column::Device::architecture]), "gfx942");
  EXPECT_EQ(writer.text(device[column::Device::uuid]), "GPU-0000000000000abc");
  decoder.operation(op(11, 2), "KERNEL_DISPATCH/KERNEL_DISPATCH_COMPLETE");
  SdkBlock block(10000);
  dispatched(block, 11, 1, 2000, 4).give(decoder);
  EXPECT_EQ(dim(Table::kTrack, writer.facts[Table::kDispatch][0][column::Dispatch::track])[column::Track::device], 1);
}

TEST_F(RocprofilerTest, TimesByPairsOfClocks) {
  for (const uint64_t at : {1000u, 2000u}) {
    event::ClockPairRecord pair{};
    pair.header = {event::RecordKind::kClockPair, static_cast<uint8_t>(tape::BlockKind::kRocprofiler), sizeof pair, 0};
    pair.device = at;
    pair.host = 50'000 + at * 2;
    decoder.define(reinterpret_cast<const std::byte*>(&pair), pair.header);
  }
  decoder.operation(op(11, 2), "KERNEL_DISPATCH/KERNEL_DISPATCH_COMPLETE");
  SdkBlock block(10000);
  dispatched(block, 11, 1, 1500, 4).give(decoder);
  EXPECT_EQ(writer.facts[Table::kDispatch][0][column::Dispatch::start], 53'000);
  EXPECT_EQ(writer.facts[Table::kDispatch][0][column::Dispatch::duration], 200);
}

TEST_F(RocprofilerTest, WhatIsUnknownIsCounted) {
  decoder.operation(op(11, 2), "KERNEL_DISPATCH/KERNEL_DISPATCH_COMPLETE");
  SdkBlock block(10300);
  block.traced(60, 1, 40);
  dispatched(block, 11, 1, 1500, 4);
  block.traced(11, 2, 64);                              // too short for a dispatch
  block.record(9, 1, 16).put<uint64_t>(0, 16);          // a category that is none
  dispatched(block, 11, 1, 0, 4).put<uint64_t>(40, 0);  // without times
  block.give(decoder);
  SdkBlock cut(10300);
  cut.traced(11, 2, 184);
  cut.bytes().resize(cut.bytes().size() - 8);
  cut.give(decoder);
  decoder.finish();
  EXPECT_EQ(writer.facts[Table::kDispatch].size(), 1u);
  EXPECT_EQ(writer.losses[LossReason::kUnknownRecord], 4);
  EXPECT_EQ(writer.losses[LossReason::kVendor], 1);
}

// Whatever the bytes, a record gives one row at most; senseless ones are counted as lost.
TEST_F(RocprofilerTest, BytesThatMakeNoSenseGiveNoMoreRowsThanRecords) {
  decoder.operation(op(5, 214), "HIP_RUNTIME_API/hipLaunchKernel");
  decoder.operation(op(1, 3), "HSA_CORE_API/hsa_signal_store_screlease");
  decoder.operation(op(11, 2), "KERNEL_DISPATCH/KERNEL_DISPATCH_COMPLETE");
  decoder.operation(op(10, 1), "MEMORY_COPY/MEMORY_COPY_HOST_TO_HOST");
  decoder.operation(op(16, 3), "MEMORY_ALLOCATION/MEMORY_ALLOCATION_FREE");
  decoder.operation(op(12, 3), "SCRATCH_MEMORY/SCRATCH_MEMORY_ASYNC_RECLAIM");
  std::mt19937_64 random(7);
  for (int round = 0; round < 400; ++round) {
    SdkBlock block(random() % 2 != 0 ? 10000 : 450);
    for (int record = 0; record < 20; ++record) {
      const int32_t kinds[] = {1, 5, 10, 11, 12, 16, static_cast<int32_t>(random())};
      const uint64_t bytes = 24 + random() % 200;
      block.traced(kinds[random() % 7], static_cast<int32_t>(random() % 5), bytes);
      for (uint64_t at = 16; at + 8 <= bytes; at += 8)
        if (random() % 3 == 0) block.put<uint64_t>(at, random() % 2 != 0 ? random() : random() % 10);
    }
    for (int spoiled = 0; spoiled < 3; ++spoiled)
      block.bytes()[random() % block.bytes().size()] = static_cast<std::byte>(random());
    block.give(decoder, random() % 8 != 0);
  }
  decoder.finish();
  size_t rows = 0;
  for (const auto& [table, of_table] : writer.facts) rows += of_table.size();
  EXPECT_GT(rows, 100u);
  EXPECT_LE(rows, 400u * 20);
  int64_t lost = 0;
  for (const auto& [reason, count] : writer.losses) lost += count;
  EXPECT_GT(lost, 100);
}

}  // namespace
}  // namespace tacho::decode
