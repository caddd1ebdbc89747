// Building sections.
#include "trace/store/section.h"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/multiversion.h"

namespace tacho::trace {
namespace {

// Statistics are stored where they are much smaller than the rows; elsewhere a reader computes them from the rows.
constexpr size_t kFewSummaries = 64;
constexpr size_t kFewBuckets = 256;
constexpr size_t kRowsPerSummary = 16;
constexpr size_t kRowsPerBucket = 8;

struct StartAndRow {
  int64_t start;
  uint32_t row;
};

// Sorts one track's rows by start. They come nearly in order (a call that contains another is recorded after it), so
// insertion is tried first and given up when it moves too much.
void sort_track(std::span<StartAndRow> rows) {
  size_t moves = rows.size() * 8;
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i - 1].start <= rows[i].start) continue;
    const StartAndRow moving = rows[i];
    size_t at = i;
    while (at > 0 && rows[at - 1].start > moving.start && moves > 0) {
      rows[at] = rows[at - 1];
      --at;
      --moves;
    }
    rows[at] = moving;
    if (moves == 0) {
      // The interrupted move left equal starts in any order: row numbers restore the order of arrival.
      std::sort(rows.begin(), rows.end(), [](const StartAndRow& a, const StartAndRow& b) {
        return a.start != b.start ? a.start < b.start : a.row < b.row;
      });
      return;
    }
  }
}

}  // namespace

TACHO_MULTIVERSION bool sort_order(std::span<const int64_t> track, std::span<const int64_t> start,
                                   std::vector<uint32_t>& order) {
  const size_t rows = track.size();
  size_t wrong = 0;
  int64_t low = track[0];
  int64_t high = track[0];
  for (size_t i = 1; i < rows; ++i) {
    // Arithmetic instead of branches: rows of many threads are mixed at random.
    const int track_falls = track[i] < track[i - 1];
    const int start_falls = start[i] < start[i - 1];
    const int same_track = track[i] == track[i - 1];
    wrong += static_cast<size_t>(track_falls | (same_track & start_falls));
    low = std::min(low, track[i]);
    high = std::max(high, track[i]);
  }
  if (wrong == 0) return false;

  order.resize(rows);
  std::vector<StartAndRow> keys(rows);
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  if (range < kMaxChunkRows) {  // the usual case: tracks are small numbers; distribute the rows to them
    std::vector<uint32_t> ends(range + 2);
    const auto slot = [&](size_t i) {
      return static_cast<size_t>(static_cast<uint64_t>(track[i]) - static_cast<uint64_t>(low));
    };
    for (size_t i = 0; i < rows; ++i) ++ends[slot(i) + 1];
    for (size_t t = 1; t < ends.size(); ++t) ends[t] += ends[t - 1];
    for (size_t i = 0; i < rows; ++i) keys[ends[slot(i)]++] = {start[i], static_cast<uint32_t>(i)};
    uint32_t begin = 0;
    for (size_t t = 0; t <= range; ++t) {
      sort_track(std::span(keys).subspan(begin, ends[t] - begin));
      begin = ends[t];
    }
    for (size_t i = 0; i < rows; ++i) order[i] = keys[i].row;
    return true;
  }
  for (size_t i = 0; i < rows; ++i) order[i] = static_cast<uint32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return track[a] != track[b] ? track[a] < track[b] : start[a] < start[b];
  });
  return true;
}

SectionBuilder::SectionBuilder() {
  clear();
}

void SectionBuilder::clear() {
  head_.assign(8, 0);
  payload_.clear();
  chunks_ = 0;
  fact_rows_ = 0;
}

void SectionBuilder::begin_chunk(ChunkHead head) {
  const size_t at = head_.size();
  head_.resize(at + sizeof head);
  std::memcpy(head_.data() + at, &head, sizeof head);
  ++chunks_;
}

template <typename Write>
void SectionBuilder::add_blob(Write write) {
  const size_t start = payload_.size();
  write(payload_);
  Blob blob{};
  blob.offset = static_cast<uint32_t>(start);
  blob.bytes = static_cast<uint32_t>(payload_.size() - start);
  blob.checksum = checksum({payload_.data() + start, payload_.size() - start});
  const size_t at = head_.size();
  head_.resize(at + sizeof blob);
  std::memcpy(head_.data() + at, &blob, sizeof blob);
}

void SectionBuilder::add_no_blob() {
  head_.resize(head_.size() + sizeof(Blob));
}

std::span<const Summary> SectionBuilder::add_facts(event::Table table, const RowBuffer& rows) {
  const event::TableInfo& info = event::table_info(table);
  const FactColumns at = fact_columns(table);
  const auto raw = [&](int column) {
    return std::span<const int64_t>(rows.data + static_cast<size_t>(column) * rows.stride, rows.rows);
  };
  const bool reorder = at.track >= 0 && at.start >= 0 && sort_order(raw(at.track), raw(at.start), order_);
  const auto sorted = [&](int column) -> std::span<const int64_t> {
    if (!reorder) return raw(column);
    std::vector<int64_t>& to = gathered_[column];
    to.resize(rows.rows);
    const int64_t* from = raw(column).data();
    for (size_t i = 0; i < rows.rows; ++i) to[i] = from[order_[i]];
    return to;
  };
  std::array<std::span<const int64_t>, event::kMaxColumns> columns;
  for (size_t c = 0; c < info.columns.size(); ++c) columns[c] = sorted(static_cast<int>(c));
  const auto column = [&](int number) {
    return number < 0 ? std::span<const int64_t>() : columns[static_cast<size_t>(number)];
  };

  ChunkHead head{};
  head.table = static_cast<uint8_t>(table);
  head.role = ChunkRole::kFacts;
  head.columns = static_cast<uint8_t>(info.columns.size());
  head.extras = kExtras;
  head.rows = static_cast<uint32_t>(rows.rows);
  if (at.start >= 0) {
    const auto [low, high] = std::minmax_element(column(at.start).begin(), column(at.start).end());
    head.first = *low;
    head.max_start = head.max_end = *high;
  }
  if (at.track >= 0) {
    const auto [low, high] = std::minmax_element(column(at.track).begin(), column(at.track).end());
    head.min_track = *low;
    head.max_track = *high;
  }
  const ChunkStatistics* statistics = nullptr;
  if (event::is_timed(table)) {
    statistics = &summarizer_.compute(
        {column(at.track), column(at.start), column(at.duration), column(at.dim), column(at.bytes)});
    for (const Busy& busy : statistics->busy) head.max_end = std::max(head.max_end, busy.last);
  }
  begin_chunk(head);
  fact_rows_ += rows.rows;
  for (size_t c = 0; c < info.columns.size(); ++c) {
    add_blob([&](std::vector<uint8_t>& out) { encoder_.encode(columns[c], out, &memory_[head.table][c]); });
  }
  if (statistics != nullptr && statistics->summaries.size() <= std::max(kFewSummaries, rows.rows / kRowsPerSummary)) {
    add_blob([&](std::vector<uint8_t>& out) { encode_summaries(statistics->summaries, encoder_, out); });
  } else {
    add_no_blob();
  }
  if (statistics != nullptr && !statistics->histogram.empty() &&
      statistics->histogram.size() <= std::max(kFewBuckets, rows.rows / kRowsPerBucket)) {
    add_blob([&](std::vector<uint8_t>& out) { encode_histogram(statistics->histogram, encoder_, out); });
  } else {
    add_no_blob();
  }
  if (statistics != nullptr && statistics->busy.size() <= std::max(kFewSummaries, rows.rows / kRowsPerSummary)) {
    add_blob([&](std::vector<uint8_t>& out) { encode_busy(statistics->busy, encoder_, out); });
  } else {
    add_no_blob();
  }
  return statistics != nullptr ? std::span<const Summary>(statistics->summaries) : std::span<const Summary>();
}

void SectionBuilder::add_rows(event::Table table, int64_t first, std::span<const std::vector<int64_t>> columns) {
  ChunkHead head{};
  head.table = static_cast<uint8_t>(table);
  head.role = ChunkRole::kRows;
  head.columns = static_cast<uint8_t>(columns.size());
  head.rows = static_cast<uint32_t>(columns[0].size());
  head.first = first;
  begin_chunk(head);
  for (const std::vector<int64_t>& column : columns) {
    add_blob([&](std::vector<uint8_t>& out) { encoder_.encode(column, out); });
  }
}

void SectionBuilder::add_strings(int64_t first, std::span<const int64_t> lengths, std::string_view text,
                                 bool compress) {
  ChunkHead head{};
  head.table = static_cast<uint8_t>(event::Table::kString);
  head.role = ChunkRole::kRows;
  head.columns = 2;
  head.rows = static_cast<uint32_t>(lengths.size());
  head.first = first;
  begin_chunk(head);
  add_blob([&](std::vector<uint8_t>& out) { encoder_.encode(lengths, out); });
  add_blob([&](std::vector<uint8_t>& out) {
    constexpr int kLevel = 3;
    if (compress && text.size() <= kMaxZstdText) {
      std::vector<uint8_t> squeezed(ZSTD_compressBound(text.size()));
      const size_t size = ZSTD_compress(squeezed.data(), squeezed.size(), text.data(), text.size(), kLevel);
      if (!ZSTD_isError(size) && size + size / 8 + 8 < text.size()) {
        out.push_back(kZstdText);
        const auto plain = static_cast<uint32_t>(text.size());
        out.resize(out.size() + sizeof plain);
        std::memcpy(out.data() + out.size() - sizeof plain, &plain, sizeof plain);
        out.insert(out.end(), squeezed.begin(), squeezed.begin() + static_cast<ptrdiff_t>(size));
        return;
      }
    }
    out.push_back(kPlainText);
    out.insert(out.end(), text.begin(), text.end());
  });
}

void SectionBuilder::add_updates(std::span<const std::vector<int64_t>> columns) {
  ChunkHead head{};
  head.table = kUpdateTable;
  head.role = ChunkRole::kUpdates;
  head.columns = kUpdateColumns;
  head.rows = static_cast<uint32_t>(columns[0].size());
  begin_chunk(head);
  for (const std::vector<int64_t>& column : columns) {
    add_blob([&](std::vector<uint8_t>& out) { encoder_.encode(column, out); });
  }
}

void SectionBuilder::add_aggregate(event::Table table, std::span<const Summary> summaries,
                                   std::span<const HistogramEntry> histogram, std::span<const Busy> busy) {
  const auto take = [](auto& entries) {
    const auto part = entries.first(std::min(entries.size(), kMaxChunkRows));
    entries = entries.subspan(part.size());
    return part;
  };
  while (!summaries.empty() || !histogram.empty() || !busy.empty()) {
    const auto some_summaries = take(summaries);
    const auto some_buckets = take(histogram);
    const auto some_busy = take(busy);
    ChunkHead head{};
    head.table = static_cast<uint8_t>(table);
    head.role = ChunkRole::kAggregate;
    head.extras = kExtras;
    head.rows = static_cast<uint32_t>(std::max({some_summaries.size(), some_buckets.size(), some_busy.size()}));
    bool any = false;
    for (const Summary& entry : some_summaries) {
      head.first = any ? std::min(head.first, entry.first) : entry.first;
      head.max_start = head.max_end = any ? std::max(head.max_end, entry.last) : entry.last;
      head.min_track = any ? std::min(head.min_track, entry.track) : entry.track;
      head.max_track = any ? std::max(head.max_track, entry.track) : entry.track;
      any = true;
    }
    begin_chunk(head);
    const auto blob = [&](auto entries, auto encode) {
      if (entries.empty()) return add_no_blob();
      add_blob([&](std::vector<uint8_t>& out) { encode(entries, encoder_, out); });
    };
    blob(some_summaries, encode_summaries);
    blob(some_buckets, encode_histogram);
    blob(some_busy, encode_busy);
  }
}

std::span<const uint8_t> SectionBuilder::head() {
  std::memcpy(head_.data(), &chunks_, sizeof chunks_);
  return head_;
}

std::span<const uint8_t> SectionBuilder::payload() {
  payload_.resize(round_up_8(payload_.size()));
  return payload_;
}

}  // namespace tacho::trace
