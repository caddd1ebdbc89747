// The column codec: every encoding, every width, extreme values, and bytes that are not a column.
#include "trace/store/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "event/schema.h"
#include "trace/store/bitpack.h"

namespace tacho::trace {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr size_t kSizes[] = {1, 2, 3, 63, 64, 65, 127, 1023, 1024, 1025, 2048, 5000, 65535, 65536};

std::vector<uint8_t> encode(const std::vector<int64_t>& values) {
  ColumnEncoder encoder;
  std::vector<uint8_t> bytes;
  encoder.encode(values, bytes);
  return bytes;
}

// Encodes, decodes, compares; returns the bytes.
std::vector<uint8_t> round_trip(const std::vector<int64_t>& values) {
  const std::vector<uint8_t> bytes = encode(values);
  std::vector<int64_t> back(values.size(), 0x55);
  EXPECT_TRUE(decode_column(bytes, back.data(), back.size()));
  EXPECT_EQ(back, values);
  EXPECT_LE(bytes.size(), values.size() * 8 + 16 + values.size() / 8);
  return bytes;
}

TEST(Bitpack, EveryWidthAndLength) {
  std::mt19937_64 random(1);
  for (unsigned width = 0; width <= 64; ++width) {
    for (const size_t count : {size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{200}}) {
      std::vector<uint64_t> values(count);
      const uint64_t base = random();
      for (uint64_t& value : values) value = base + (random() & low_mask(width));
      std::vector<uint8_t> bytes(packed_bytes(count, width) + 1, 0xa5);
      pack_bits(values.data(), width, base, bytes.data(), count);
      EXPECT_EQ(bytes.back(), 0xa5) << "written past the end";
      std::vector<uint8_t> exact(bytes.begin(), bytes.end() - 1);
      std::vector<uint64_t> back(count + 1, 77);
      unpack_bits(exact.data(), width, base, back.data(), count);
      EXPECT_EQ(back.back(), 77u);
      back.pop_back();
      ASSERT_EQ(back, values) << "width " << width << " count " << count;
    }
  }
}

TEST(Codec, ConstantIsTinyWhateverItsValue) {
  for (const int64_t value : {int64_t{0}, int64_t{7}, kMin, kMax, event::kUnknown}) {
    for (const size_t size : kSizes) {
      const auto bytes = round_trip(std::vector<int64_t>(size, value));
      EXPECT_EQ(encoding_of(bytes), Encoding::kConstant);
      EXPECT_EQ(bytes.size(), 9u);
    }
  }
}

TEST(Codec, SmallRangeIsPacked) {
  std::mt19937_64 random(2);
  for (const size_t size : kSizes) {
    std::vector<int64_t> values(size);
    for (int64_t& value : values) value = -1000 + static_cast<int64_t>(random() % 4001);
    const auto bytes = round_trip(values);
    if (size >= 1024) {
      EXPECT_EQ(encoding_of(bytes), Encoding::kPacked);
      EXPECT_LE(bytes.size(), size * 12 / 8 + 16 * (size / 1024 + 1));
    }
  }
}

TEST(Codec, TimesBecomeDeltas) {
  std::mt19937_64 random(3);
  for (const size_t size : kSizes) {
    std::vector<int64_t> values(size);
    int64_t now = 1'700'000'000'000'000'000;
    for (int64_t& value : values) value = now += static_cast<int64_t>(random() % 1024);
    const auto bytes = round_trip(values);
    if (size >= 1024) {
      EXPECT_EQ(encoding_of(bytes), Encoding::kDelta);
      EXPECT_LE(bytes.size(), size * 10 / 8 + 16 * (size / 1024 + 1) + 16);
    }
  }
}

TEST(Codec, AnEvenClockBecomesDeltaOfDelta) {
  std::vector<int64_t> values(65536);
  int64_t now = 5;
  int64_t step = 1'000'000;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = now += step;
    step += static_cast<int64_t>(i % 5) * 3;
  }
  const auto bytes = round_trip(values);
  EXPECT_EQ(encoding_of(bytes), Encoding::kDeltaDelta);
  EXPECT_LT(bytes.size(), values.size());
}

TEST(Codec, FewFarValuesBecomeADictionary) {
  std::mt19937_64 random(4);
  std::vector<int64_t> kinds(20);
  for (int64_t& kind : kinds) kind = static_cast<int64_t>(random());
  std::vector<int64_t> values(65536);
  for (int64_t& value : values) value = kinds[random() % kinds.size()];
  const auto bytes = round_trip(values);
  EXPECT_EQ(encoding_of(bytes), Encoding::kDictionary);
  EXPECT_LE(bytes.size(), values.size() * 5 / 8 + 2048);
}

TEST(Codec, NoiseStaysRaw) {
  std::mt19937_64 random(5);
  std::vector<int64_t> values(65536);
  for (int64_t& value : values) value = static_cast<int64_t>(random());
  EXPECT_EQ(encoding_of(round_trip(values)), Encoding::kRaw);
}

TEST(Codec, ARepeatedSequenceIsFoundByZstd) {
  std::mt19937_64 random(6);
  std::vector<int64_t> step(700);
  for (int64_t& value : step) value = static_cast<int64_t>(random() % 180);
  std::vector<int64_t> values(65536);
  for (size_t i = 0; i < values.size(); ++i) values[i] = step[i % step.size()];
  const auto bytes = round_trip(values);
  EXPECT_TRUE(is_compressed(bytes));
  EXPECT_LT(bytes.size(), 4000u);
}

TEST(Codec, OutliersOnBothSidesCostOnlyThemselves) {
  std::mt19937_64 random(7);
  std::vector<int64_t> values(65536);
  for (int64_t& value : values) value = 1'000'000 + static_cast<int64_t>(random() % 256);
  const size_t plain = round_trip(values).size();
  for (size_t i = 500; i < values.size(); i += 1000) values[i] = i % 2000 == 500 ? kMax : -5'000'000'000;
  EXPECT_LT(round_trip(values).size(), plain + 66 * 40);
}

TEST(Codec, UnknownAmongValues) {
  std::mt19937_64 random(8);
  for (const size_t size : kSizes) {
    for (const unsigned one_in : {1000u, 10u, 2u}) {
      std::vector<int64_t> values(size);
      for (int64_t& value : values) value = static_cast<int64_t>(random() % 5000);
      for (int64_t& value : values) {
        if (random() % one_in == 0) value = event::kUnknown;
      }
      const auto bytes = round_trip(values);
      EXPECT_LE(bytes.size(), size * 13 / 8 + size / 8 + 2048);
    }
  }
}

TEST(Codec, ExtremeAndRandomValues) {
  std::mt19937_64 random(9);
  const int64_t special[] = {kMin, kMax, kMin + 1,        kMax - 1,         0,
                             -1,   1,    event::kUnknown, int64_t{1} << 32, -(int64_t{1} << 53)};
  for (int round = 0; round < 400; ++round) {
    const size_t size = 1 + random() % (round % 10 == 0 ? 65536 : 3000);
    std::vector<int64_t> values(size);
    const unsigned width = static_cast<unsigned>(random() % 65);
    const bool rising = random() % 2 == 0;
    const uint64_t special_one_in = 1 + random() % 200;
    uint64_t last = random();
    for (int64_t& value : values) {
      const uint64_t noise = random() & low_mask(width);
      last = rising ? last + noise : noise;
      value = random() % special_one_in == 0 ? special[random() % std::size(special)] : static_cast<int64_t>(last);
    }
    round_trip(values);
    if (HasFailure()) FAIL() << "round " << round;
  }
}

TEST(Codec, RemembersWhereZstdDoesNotPay) {
  std::mt19937_64 random(10);
  ColumnEncoder encoder;
  ColumnMemory memory;
  // Few values in no order: pairs of neighbours come again, but packing leaves zstd nothing to save.
  std::vector<int64_t> noise(4096);
  for (int64_t& value : noise) value = static_cast<int64_t>(random() % 8);
  std::vector<uint8_t> bytes;
  encoder.encode(noise, bytes, &memory);
  EXPECT_FALSE(is_compressed(bytes));
  EXPECT_GT(memory.wait, 0u);
  std::vector<int64_t> pattern(4096);
  for (size_t i = 0; i < pattern.size(); ++i) pattern[i] = noise[i % 50];
  bool found = false;
  for (int i = 0; i < 10 && !found; ++i) {
    bytes.clear();
    encoder.encode(pattern, bytes, &memory);
    std::vector<int64_t> back(pattern.size());
    ASSERT_TRUE(decode_column(bytes, back.data(), back.size()));
    ASSERT_EQ(back, pattern);
    found = is_compressed(bytes);
  }
  EXPECT_TRUE(found);
}

TEST(Codec, ValuesThatNeverRepeatCostNoTrialOfZstd) {
  std::mt19937_64 random(12);
  ColumnEncoder encoder;
  ColumnMemory memory;
  std::vector<int64_t> column(8192);
  for (int64_t& value : column) value = static_cast<int64_t>(random() % 1000000);
  std::vector<uint8_t> bytes;
  encoder.encode(column, bytes, &memory);
  EXPECT_FALSE(is_compressed(bytes));
  EXPECT_EQ(memory.wait, 0u) << "what was not tried has not failed";
  // So the first column that repeats itself is compressed at once.
  for (size_t i = 700; i < column.size(); ++i) column[i] = column[i - 700];
  bytes.clear();
  encoder.encode(column, bytes, &memory);
  EXPECT_TRUE(is_compressed(bytes));
  std::vector<int64_t> back(column.size());
  ASSERT_TRUE(decode_column(bytes, back.data(), back.size()));
  EXPECT_EQ(back, column);
}

TEST(Codec, RefusesCutBytesAndWrongCounts) {
  std::mt19937_64 random(11);
  std::vector<std::vector<int64_t>> columns(5, std::vector<int64_t>(3000));
  for (size_t i = 0; i < 3000; ++i) {
    columns[0][i] = 5;
    columns[1][i] = static_cast<int64_t>(random() % 1000);
    columns[2][i] = static_cast<int64_t>(i * 1000 + random() % 100);
    columns[3][i] = static_cast<int64_t>(random() % 3) << 50;
    columns[4][i] = random() % 3 == 0 ? event::kUnknown : static_cast<int64_t>(random());
  }
  for (const auto& column : columns) {
    const auto bytes = encode(column);
    std::vector<int64_t> back(65536);
    for (size_t cut = 0; cut < bytes.size(); cut += 1 + bytes.size() / 500) {
      EXPECT_FALSE(decode_column(std::span(bytes).first(cut), back.data(), column.size()));
    }
    if (encoding_of(bytes) != Encoding::kConstant) {
      EXPECT_FALSE(decode_column(bytes, back.data(), column.size() + 1100));
      EXPECT_FALSE(decode_column(bytes, back.data(), column.size() - 1100));
    }
    EXPECT_FALSE(decode_column(bytes, back.data(), 0));
    auto longer = bytes;
    longer.push_back(0);
    EXPECT_FALSE(decode_column(longer, back.data(), column.size()));
  }
}

TEST(Codec, FlippedBitsNeverLeaveTheBounds) {
  std::mt19937_64 random(12);
  std::vector<int64_t> values(2000);
  for (int kind = 0; kind < 4; ++kind) {
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t choices[] = {static_cast<int64_t>(random() % 77), static_cast<int64_t>(i * 10 + random() % 4),
                                 static_cast<int64_t>(random() % 9) << 40, static_cast<int64_t>(i % 100)};
      values[i] = choices[kind];
      if (random() % 300 == 0) values[i] = event::kUnknown;
    }
    const auto bytes = encode(values);
    constexpr int64_t kBehind = 0x5eed'5eed'5eed'5eed;
    std::vector<int64_t> back(values.size() + 64, kBehind);
    for (int round = 0; round < 3000; ++round) {
      auto broken = bytes;
      for (int flip = 0; flip < 3; ++flip)
        broken[random() % std::min<size_t>(broken.size(), round % 2 == 0 ? 40 : 1 << 20)] ^=
            static_cast<uint8_t>(1u << (random() % 8));
      (void)decode_column(broken, back.data(), values.size());  // the sanitizers watch the reads
      ASSERT_TRUE(std::all_of(back.begin() + static_cast<ptrdiff_t>(values.size()), back.end(),
                              [](int64_t value) { return value == kBehind; }));
    }
  }
}

// Facts that the encoding gives about a column without a look at its values hold for every value.
TEST(Codec, RangeHoldsEveryValue) {
  std::mt19937_64 random(13);
  for (int round = 0; round < 400; ++round) {
    const size_t size = 1 + random() % 5000;
    const unsigned width = static_cast<unsigned>(random() % 65);
    const uint64_t base = random() % 3 == 0 ? 0 : random() >> (random() % 64);
    const uint64_t distinct = random() % 3 == 0 ? 1 + random() % 20 : 0;
    std::vector<int64_t> values(size);
    for (int64_t& value : values) {
      const uint64_t word = distinct > 0 ? random() % distinct * 0x9e3779b97f4a7c15ULL : random();
      value = static_cast<int64_t>(base + (word & low_mask(width)));
      if (round % 4 == 0 && random() % 10 == 0) value = event::kUnknown;
      if (round % 5 == 0 && random() % 300 == 0) value = static_cast<int64_t>(random());
    }
    ColumnEncoder encoder;
    std::vector<uint8_t> bytes;
    encoder.encode(values, bytes);
    std::vector<int64_t> back(size);
    ColumnRange range;
    ASSERT_TRUE(decode_column(bytes, back.data(), size, &range));
    ASSERT_EQ(back, values);
    if (!range.known) continue;
    for (const int64_t value : values) {
      const bool unknown = value == event::kUnknown && range.unknowns;
      ASSERT_TRUE(unknown || (value >= range.low && value <= range.high))
          << value << " in " << range.low << " to " << range.high << ", round " << round;
    }
  }
}

}  // namespace
}  // namespace tacho::trace
