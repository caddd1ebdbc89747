// What an exported function of the HSA runtime does, told by its code.
#include "capture/source/rocm/late_hsa/hsa_tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tacho::capture::rocm {
namespace {

constexpr uint32_t kEntry = offsetof(hsa::CoreTable, hsa_queue_create),
                   kFar = offsetof(hsa::CoreTable, hsa_isa_from_name);
static_assert(kEntry == 0x48 && kFar == 0x258);

// The function's code in a block as long as those that are looked at, filled up with nops.
ThroughTable of(std::vector<uint8_t> code, const uint8_t** begin = nullptr) {
  static std::vector<uint8_t> block;
  block = std::move(code);
  block.resize(32, 0x90);
  if (begin != nullptr) *begin = block.data();
  return through_table(block.data(), block.size());
}

TEST(HsaTables, FunctionsThatJumpThroughTheTable) {
  const uint8_t* begin = nullptr;
  const std::vector<uint8_t> load{0x48, 0x8b, 0x05, 0x00, 0x01, 0x00, 0x00};  // mov 0x100(%rip),%rax
  const auto with = [&](std::vector<uint8_t> before, std::vector<uint8_t> behind) {
    std::vector<uint8_t> code = std::move(before);
    code.insert(code.end(), load.begin(), load.end());
    code.insert(code.end(), behind.begin(), behind.end());
    return code;
  };
  ThroughTable found = of(with({}, {0xff, 0x60, 0x48}), &begin);
  EXPECT_EQ(found.word, begin + 7 + 0x100);
  EXPECT_EQ(found.entry, kEntry);
  found = of(with({0xf3, 0x0f, 0x1e, 0xfa}, {0xff, 0xa0, 0x58, 0x02, 0x00, 0x00}), &begin);
  EXPECT_EQ(found.word, begin + 11 + 0x100);
  EXPECT_EQ(found.entry, kFar);
  // Through a register, and with a frame.
  EXPECT_EQ(of(with({}, {0x48, 0x8b, 0x40, 0x48, 0xff, 0xe0})).entry, kEntry);
  EXPECT_EQ(of(with({0x55, 0x48, 0x89, 0xe5}, {0x48, 0x8b, 0x80, 0x58, 0x02, 0, 0, 0x5d, 0xff, 0xe0})).entry, kFar);
  EXPECT_EQ(of(with({0x55, 0x48, 0x89, 0xe5}, {0x5d, 0xff, 0x60, 0x48})).entry, kEntry);
}

TEST(HsaTables, OtherCodeIsNotTakenForOne) {
  const std::vector<std::vector<uint8_t>> others{
      {},                                                                        // nops
      {0xe9, 0x00, 0x10, 0x00, 0x00},                                            // somebody's jump
      {0x48, 0x8b, 0x05, 0, 1, 0, 0, 0x0f, 0xb7, 0xff, 0xff, 0x60, 0x48},        // widens an argument
      {0x48, 0x8b, 0x05, 0, 1, 0, 0, 0xff, 0x60, 0xf8},                          // in front of the table
      {0x48, 0x8b, 0x05, 0, 1, 0, 0, 0xff, 0x60, 0x08},                          // its version
      {0x48, 0x8b, 0x05, 0, 1, 0, 0, 0xff, 0x60, 0x49},                          // between two entries
      {0x48, 0x8b, 0x05, 0, 1, 0, 0, 0xff, 0xa0, 0x58, 0x02, 0x00, 0x80},        // far in front
      {0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x05, 0, 1, 0, 0, 0xff, 0x60, 0x48},  // leaves its frame
      {0x48, 0x8b, 0x0d, 0, 1, 0, 0, 0xff, 0x61, 0x48},                          // another register
  };
  for (const std::vector<uint8_t>& code : others) EXPECT_EQ(of(code).word, nullptr) << testing::PrintToString(code);
}

TEST(HsaTables, CodeThatEndsEarlyIsNotReadFurther) {
  const std::vector<uint8_t> whole{0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b, 0x05, 0, 1, 0, 0, 0xff, 0xa0, 0x58, 0x02, 0, 0};
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const std::vector<uint8_t> cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(bytes));
    EXPECT_EQ(through_table(cut.data(), cut.size()).word, nullptr) << bytes;
  }
  EXPECT_NE(through_table(whole.data(), whole.size()).word, nullptr);
}

}  // namespace
}  // namespace tacho::capture::rocm
