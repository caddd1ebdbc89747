// The column codec: up to 64 Ki int64 values to bytes and back. Which of its encodings is the smallest is
// estimated from a sample, so that encoding stays about as fast as copying. docs/trace-file.md draws the
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tacho::trace {

/// Values per column at most.
inline constexpr size_t kMaxColumnValues = 65536;

/// How the values of a column lie in the file. The numbers are written to files.
enum class Encoding : uint8_t {
  kConstant = 0,    // one value for all rows
  kPacked = 1,      // patched frame of reference per 1024 values
  kDelta = 2,       // differences to the previous row, packed
  kDeltaDelta = 3,  // differences of differences, packed
  kDictionary = 4,  // the distinct values and, packed, their numbers
  kRaw = 5,         // 8 bytes each
  kEnd
};
/// Encoding of a column's bytes, for tests and docs; kEnd when empty or not one of ours.
Encoding encoding_of(std::span<const uint8_t> bytes);
bool is_compressed(std::span<const uint8_t> bytes);

/// What the encoder remembers from chunk to chunk of the same column: whether trying zstd has paid.
struct ColumnMemory {
  uint32_t wait = 0;     // chunks until zstd is tried again
  uint32_t backoff = 1;  // the next wait after a failure
};

/// Encodes columns. Holds scratch memory (about 2.5 MiB at most); reuse one for many columns.
class ColumnEncoder {
 public:
  ColumnEncoder();
  ~ColumnEncoder();
  ColumnEncoder(const ColumnEncoder&) = delete;
  ColumnEncoder& operator=(const ColumnEncoder&) = delete;

  /// Appends the encoded values to `out`. Contract: 1 <= values.size() <= kMaxColumnValues. Never fails: any
  /// values go.
  void encode(std::span<const int64_t> values, std::vector<uint8_t>& out, ColumnMemory* memory = nullptr);

 private:
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
};

/// Decodes exactly `count` (<= kMaxColumnValues) values into `out`. False when the bytes are not a column of
/// that many values; then `out` holds anything. Reads nothing outside `bytes`, allocates nothing that `bytes`
/// could enlarge.
bool decode_column(std::span<const uint8_t> bytes, int64_t* out, size_t count);

}  // namespace tacho::trace
