// The column codec: encodes up to 64 Ki int64 values as bytes and decodes them. It chooses the smallest encoding by an
// estimate from a sample, so that encoding stays about as fast as copying. docs/trace-file.md draws the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tacho::trace {

/// Maximum number of values per column.
inline constexpr size_t kMaxColumnValues = 65536;

/// The encoding of a column in a file. Files contain these numbers.
enum class Encoding : uint8_t {
  kConstant = 0,    // one value for all rows
  kPacked = 1,      // patched frame of reference per 1024 values
  kDelta = 2,       // differences to the previous row, packed
  kDeltaDelta = 3,  // differences of differences, packed
  kDictionary = 4,  // the distinct values, then packed indices into them
  kRaw = 5,         // 8 bytes each
  kEnd
};
/// Encoding of a column's bytes, for tests and docs; kEnd when empty or unknown.
Encoding encoding_of(std::span<const uint8_t> bytes);
bool is_compressed(std::span<const uint8_t> bytes);

/// The encoder's memory from chunk to chunk of one column: whether zstd has saved space.
struct ColumnMemory {
  uint32_t wait = 0;     // chunks until the next try of zstd
  uint32_t backoff = 1;  // the next wait after a failure
};

/// Encodes columns. Holds scratch memory (at most about 2.5 MiB); reuse one for many columns.
class ColumnEncoder {
 public:
  ColumnEncoder();
  ~ColumnEncoder();
  ColumnEncoder(const ColumnEncoder&) = delete;
  ColumnEncoder& operator=(const ColumnEncoder&) = delete;

  /// Appends the encoded values to `out`. Contract: 1 <= values.size() <= kMaxColumnValues. Accepts any values; never
  /// fails.
  void encode(std::span<const int64_t> values, std::vector<uint8_t>& out, ColumnMemory* memory = nullptr);

 private:
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
};

/// Bounds of a column's values as its encoding tells them, without a look at the values.
struct ColumnRange {
  bool known = false;  // false: the encoding does not tell
  int64_t low = 0, high = 0;
  bool unknowns = false;  // besides, some values are kUnknown
};

/// Decodes exactly `count` (<= kMaxColumnValues) values into `out`. False when `bytes` is not a column of that many
/// values; the contents of `out` are then undefined. `range` gets what the encoding tells of the values. Never reads
/// outside `bytes`, nor allocates an amount that `bytes` determines.
bool decode_column(std::span<const uint8_t> bytes, int64_t* out, size_t count, ColumnRange* range = nullptr);

}  // namespace tacho::trace
