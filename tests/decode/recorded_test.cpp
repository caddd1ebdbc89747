// The decoder on what real CUDA programs left in the pool: CUPTI 13.0 on an H200, recorded by
// tests/device/record_cupti.sh. Three processes of tests/device/cuda_endings: `nosync 60` launches 60 kernels, `graph
// 2` launches a graph of 100 kernels and a copy twice (--graph-trace node), `copies 3` copies 3 x 1000 bytes to the
// device and 3 x 2000 bytes back, and 3000 within.
#include "recorded.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <fstream>
#include <set>
#include <sstream>

#include "decode/decoder.h"
#include "memory_writer.h"

namespace tacho::decode {
namespace {

namespace column = event::column;

std::string unpacked(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream packed;
  packed << file.rdbuf();
  const std::string from = packed.str();
  const unsigned long long size = ZSTD_getFrameContentSize(from.data(), from.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > 64u << 20) return {};
  std::string text(size, '\0');
  return ZSTD_decompress(text.data(), text.size(), from.data(), from.size()) == text.size() ? text : std::string();
}

class RecordedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(recorded_.read(unpacked(TACHO_RECORDED_CUPTI)));
    clocks_.add(recorded_.clocks.first);
    clocks_.add(recorded_.clocks.second);
  }
  // `change` may spoil a buffer of CUPTI's before the decoder sees it.
  template <typename F>
  void decode(F&& change) {
    Decoder decoder(writer_, clocks_);
    for (Recorded::Piece& piece : recorded_.pieces) {
      if (piece.header()->kind == tape::BlockKind::kCupti) change(piece.bytes);
      decoder.piece({piece.header(), piece.bytes, piece.last});
    }
    decoder.finish();
  }
  std::map<std::string, int64_t> kernels() {
    std::map<std::string, int64_t> counts;
    for (const auto& row : writer_.facts[Table::kDispatch]) {
      const auto& shape = writer_.dimensions[Table::kKernel].at(static_cast<size_t>(row[column::Dispatch::dim] - 1));
      ++counts[writer_.text(shape[column::Kernel::name])];
    }
    return counts;
  }
  Recorded recorded_;
  ClockMap clocks_;
  MemoryWriter writer_;
};

TEST_F(RecordedTest, EveryKernelCopyAndCall) {
  decode([](auto&) {});
  EXPECT_EQ(kernels(), (std::map<std::string, int64_t>{{"_Z4spinl", 60 + 2}, {"_Z7add_onePfi", 2 * 99}}));
  EXPECT_TRUE(writer_.losses.empty());
  std::map<int64_t, int64_t> bytes;  // by size: how often
  for (const auto& row : writer_.facts[Table::kCopy]) ++bytes[row[column::Copy::bytes]];
  EXPECT_EQ(bytes[1000], 3);
  EXPECT_EQ(bytes[2000], 3);
  EXPECT_EQ(bytes[3000], 3);
  EXPECT_EQ(bytes[1024], 2);  // the graph's
  std::set<int64_t> calls;
  for (const auto& row : writer_.facts[Table::kApi]) calls.insert(row[column::Api::correlation]);
  for (const auto& row : writer_.facts[Table::kDispatch]) {
    EXPECT_TRUE(calls.contains(row[column::Dispatch::correlation]));
    EXPECT_GT(row[column::Dispatch::duration], 0);
    EXPECT_LT(row[column::Dispatch::duration], 1'000'000'000);
  }
  EXPECT_EQ(writer_.dimensions[Table::kProcess].size(), 3u);
}

TEST_F(RecordedTest, EndsInTheMiddle) {
  decode([](auto& bytes) { bytes.resize(bytes.size() / 2); });
  EXPECT_LT(writer_.facts[Table::kDispatch].size(), 260u);
  EXPECT_GT(writer_.facts[Table::kDispatch].size(), 20u);
  EXPECT_FALSE(writer_.losses.empty());  // a record cut in two, launches without a kernel
}

TEST_F(RecordedTest, Scrambled) {
  decode([n = 0u](auto& bytes) mutable {
    for (size_t at = 40; at < bytes.size(); at += 97) bytes[at] ^= static_cast<std::byte>(++n);
  });
  EXPECT_LE(writer_.facts[Table::kDispatch].size(), 260u);  // no crash, nothing made up
  EXPECT_FALSE(writer_.losses.empty());
}

}  // namespace
}  // namespace tacho::decode
