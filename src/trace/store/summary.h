// Computes summaries, histograms and busy times over the sorted rows of a chunk, merges them, and encodes them as small
// columns to store beside the chunk.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "event/schema.h"
#include "trace/store/codec.h"
#include "trace/trace.h"

namespace tacho::trace {

/// Column numbers in a table; -1 = the table lacks the column.
struct FactColumns {
  int track = -1, start = -1, duration = -1, dim = -1, bytes = -1;
};
FactColumns fact_columns(event::Table table);

/// Rows of a timed fact table, sorted by (track, start). `bytes` is empty if the table has no such column.
struct TimedRows {
  std::span<const int64_t> track, start, duration, dim, bytes;
};

struct ChunkStatistics {
  std::vector<Summary> summaries;         // sorted by track, dim
  std::vector<HistogramEntry> histogram;  // sorted by dim, bucket
  std::vector<Busy> busy;                 // sorted by track
};

/// Computes statistics of chunks. Holds scratch memory; reuse one.
class Summarizer {
 public:
  Summarizer();
  ~Summarizer();
  Summarizer(const Summarizer&) = delete;
  Summarizer& operator=(const Summarizer&) = delete;
  enum class What { kAll, kSummaries, kHistogram, kBusy };
  /// The result is valid until the next call and may lack statistics outside `what`. Contract: at most kMaxChunkRows
  /// rows, sorted by (track, start).
  const ChunkStatistics& compute(const TimedRows& rows, What what = What::kAll);

 private:
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
};

/// Adds `from` to `into`: sums saturate, mean and m2 merge after Chan, Golub and LeVeque (1983).
void merge_summary(Summary& into, const Summary& from);

/// Encode and decode the three extras of a chunk (docs/trace-file.md). Decoding fails on malformed bytes.
void encode_summaries(std::span<const Summary> entries, ColumnEncoder& encoder, std::vector<uint8_t>& out);
void encode_histogram(std::span<const HistogramEntry> entries, ColumnEncoder& encoder, std::vector<uint8_t>& out);
void encode_busy(std::span<const Busy> entries, ColumnEncoder& encoder, std::vector<uint8_t>& out);
bool decode_summaries(std::span<const uint8_t> bytes, std::vector<Summary>& out);
bool decode_histogram(std::span<const uint8_t> bytes, std::vector<HistogramEntry>& out);
bool decode_busy(std::span<const uint8_t> bytes, std::vector<Busy>& out);

/// Merges the entry lists of many chunks into summaries of whole tables. Memory grows with the number of distinct pairs
/// up to `max_pairs`. Further pairs go to the entry of dim 0 of their track, or of track 0, and are counted.
class SummaryMerger {
 public:
  explicit SummaryMerger(size_t max_pairs = SIZE_MAX);
  ~SummaryMerger();
  SummaryMerger(const SummaryMerger&) = delete;
  SummaryMerger& operator=(const SummaryMerger&) = delete;

  void add(std::span<const Summary> entries);
  void add(std::span<const HistogramEntry> entries);
  /// Adds up the busy times of each track: an upper bound where spans overlap.
  void add(std::span<const Busy> entries);

  /// Number of rows that went to an entry other than their own.
  int64_t folded_rows() const;
  size_t pairs() const;

  std::vector<Summary> summaries() const;         // sorted by track, dim
  std::vector<HistogramEntry> histogram() const;  // sorted by dim, bucket
  std::vector<Busy> busy() const;                 // sorted by track

 private:
  struct Maps;
  std::unique_ptr<Maps> maps_;
};

}  // namespace tacho::trace
