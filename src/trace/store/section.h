// Builds the bytes of a section: sorted fact chunks with their statistics, dictionary chunks, aggregates.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "event/schema.h"
#include "trace/store/codec.h"
#include "trace/store/layout.h"
#include "trace/store/summary.h"

namespace tacho::trace {

/// Column-major rows of one table in order of arrival: column c lies at data + c * stride.
struct RowBuffer {
  const int64_t* data;
  size_t stride;
  size_t rows;
};

/// Puts the stable order of rows by (track, start) into `order`. False, leaving `order` alone, if they are already
/// sorted.
bool sort_order(std::span<const int64_t> track, std::span<const int64_t> start, std::vector<uint32_t>& order);

/// Collects chunks into the head and the payload of one section.
class SectionBuilder {
 public:
  SectionBuilder();
  void clear();
  bool empty() const { return chunks_ == 0; }

  /// Adds a chunk of facts: sorts, encodes and summarizes them. Contract: 1 <= rows <= kMaxChunkRows. Returns the
  /// summaries (none for untimed facts), valid until the next call.
  std::span<const Summary> add_facts(event::Table table, const RowBuffer& rows);
  /// Adds new rows of a dimension, one vector per column. `first`: number of the first row.
  void add_rows(event::Table table, int64_t first, std::span<const std::vector<int64_t>> columns);
  /// Adds new strings; `text` is their concatenation. With `compress`, compresses it if that saves space.
  void add_strings(int64_t first, std::span<const int64_t> lengths, std::string_view text, bool compress);
  /// Adds updates of dimension cells, four columns: table, row, column, value.
  void add_updates(std::span<const std::vector<int64_t>> columns);
  /// Adds a table's merged statistics in as many chunks as they need.
  void add_aggregate(event::Table table, std::span<const Summary> summaries, std::span<const HistogramEntry> histogram,
                     std::span<const Busy> busy);

  /// The section's head, and its payload padded so that both together are a multiple of 8 bytes.
  std::span<const uint8_t> head();
  std::span<const uint8_t> payload();
  uint64_t fact_rows() const { return fact_rows_; }

 private:
  void begin_chunk(ChunkHead head);
  template <typename Write>
  void add_blob(Write write);
  void add_no_blob();

  std::vector<uint8_t> head_, payload_;
  uint32_t chunks_ = 0;
  uint64_t fact_rows_ = 0;
  ColumnEncoder encoder_;
  Summarizer summarizer_;
  std::vector<uint32_t> order_;
  std::vector<int64_t> gathered_[event::kMaxColumns];
  std::array<std::array<ColumnMemory, event::kMaxColumns>, event::kFactTables> memory_;
};

/// Layout of text in a blob: u8 form (0 plain, 1 zstd), for zstd a u32 with the uncompressed size in bytes, then the
/// data.
inline constexpr uint8_t kPlainText = 0;
inline constexpr uint8_t kZstdText = 1;
/// Bounds of compressed text, per blob and per file: a reader never allocates more.
inline constexpr size_t kMaxZstdText = size_t{2} << 20;
inline constexpr size_t kMaxZstdTextPerFile = size_t{32} << 20;

}  // namespace tacho::trace
