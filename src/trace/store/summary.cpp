// Statistics of chunks and of whole tables.
#include "trace/store/summary.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "base/multiversion.h"
#include "base/saturating.h"
#include "trace/store/layout.h"

namespace tacho::trace {

int histogram_bucket(int64_t duration) {
  if (duration < 4) return duration < 0 ? 0 : static_cast<int>(duration);
  const int exponent = static_cast<int>(std::bit_width(static_cast<uint64_t>(duration))) - 1;  // >= 2
  return (exponent - 1) * 4 + static_cast<int>(duration >> (exponent - 2) & 3);
}

int64_t histogram_floor(int bucket) {
  if (bucket < 4) return std::max(bucket, 0);
  const int exponent = bucket / 4 + 1;
  return exponent > 62 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(4 + bucket % 4) << (exponent - 2);
}

namespace {

int64_t saturate(__int128 value) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return value < kLeast ? kLeast : value > kMost ? kMost : static_cast<int64_t>(value);
}

double ratio(int64_t sum, int64_t count) {
  return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count);
}

constexpr uint64_t mix_bits(uint64_t value) {
  value = (value ^ value >> 32) * 0xd6e8feb86659fd93ULL;
  value = (value ^ value >> 32) * 0xd6e8feb86659fd93ULL;
  return value ^ value >> 32;
}

struct Pair {
  int64_t a, b;
  bool operator==(const Pair&) const = default;
  auto operator<=>(const Pair&) const = default;
};
struct PairHash {
  size_t operator()(const Pair& pair) const {
    return mix_bits(static_cast<uint64_t>(pair.a) * 0x9e3779b97f4a7c15ULL ^ mix_bits(static_cast<uint64_t>(pair.b)));
  }
};
struct IdHash {
  size_t operator()(int64_t id) const { return mix_bits(static_cast<uint64_t>(id)); }
};

}  // namespace

FactColumns fact_columns(event::Table table) {
  FactColumns found;
  const auto& columns = event::table_info(table).columns;
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto number = static_cast<int>(i);
    if (columns[i].name == "track") found.track = number;
    if (columns[i].name == "start") found.start = number;
    if (columns[i].name == "duration" && event::is_timed(table)) found.duration = number;
    if (columns[i].name == "dim") found.dim = number;
    if (columns[i].name == "bytes") found.bytes = number;
  }
  return found;
}

// One chunk

struct Summarizer::Scratch {
  // Sums of one (track, dim) pair while its track's rows pass.
  struct Slot {
    int64_t dim;
    uint32_t dim_number;
    int64_t count, unknown, min, max, bytes, first, last;
    __int128 sum;
    double mean, m2;
  };
  static constexpr uint64_t kDirectRange = 1 << 17;  // dims so close together are looked up in an array
  static constexpr size_t kDenseDims = 512;          // dims up to which histograms are counted in an array

  ChunkStatistics result;
  std::vector<Slot> slots;            // of the track
  std::vector<uint32_t> slot_of_row;  // of the track's rows
  std::vector<uint32_t> direct;       // dim - lowest -> slot + 1
  tsl::robin_map<int64_t, uint32_t, IdHash> hashed;
  std::vector<uint32_t> direct_number;  // the same for the chunk: dim -> its number in `dims`
  tsl::robin_map<int64_t, uint32_t, IdHash> hashed_number;
  std::vector<int64_t> dims;    // in order of appearance
  std::vector<uint32_t> dense;  // dim number * kHistogramBuckets + bucket -> count
  std::vector<uint32_t> keys;   // the same keys, unsorted, where dims are many

  int64_t low = 0;           // the lowest dim of the chunk
  bool direct_dims = false;  // its dims are close together

  size_t index(int64_t dim) const {
    return static_cast<size_t>(static_cast<uint64_t>(dim) - static_cast<uint64_t>(low));
  }
  void add_track(const TimedRows& rows, size_t begin, size_t end);
  void add_spread(const TimedRows& rows, size_t begin, size_t end, bool histogram);
  void gather_summaries(int64_t track);
  void gather_histogram();
};

// What `slots` hold of a track becomes summaries, sorted by dim.
void Summarizer::Scratch::gather_summaries(int64_t track) {
  const size_t first = result.summaries.size();
  for (const Slot& slot : slots) {
    const int64_t sum = saturate(slot.sum);
    result.summaries.push_back({track, slot.dim, slot.count, slot.unknown, sum, slot.min, slot.max,
                                ratio(sum, slot.count), slot.m2, slot.bytes, slot.first, slot.last});
  }
  std::sort(result.summaries.begin() + static_cast<ptrdiff_t>(first), result.summaries.end(),
            [](const Summary& a, const Summary& b) { return a.dim < b.dim; });
}

// What was counted in `dense` and `keys` becomes entries, sorted by dim and bucket.
void Summarizer::Scratch::gather_histogram() {
  for (size_t key = 0; key < dense.size(); ++key) {
    if (dense[key] == 0) continue;
    result.histogram.push_back({dims[key / kHistogramBuckets], static_cast<int>(key % kHistogramBuckets), dense[key]});
  }
  std::sort(keys.begin(), keys.end());
  for (size_t i = 0; i < keys.size();) {
    size_t next = i + 1;
    while (next < keys.size() && keys[next] == keys[i]) ++next;
    result.histogram.push_back({dims[keys[i] / kHistogramBuckets], static_cast<int>(keys[i] % kHistogramBuckets),
                                static_cast<int64_t>(next - i)});
    i = next;
  }
  std::sort(result.histogram.begin(), result.histogram.end(), [](const HistogramEntry& a, const HistogramEntry& b) {
    return a.dim != b.dim ? a.dim < b.dim : a.bucket < b.bucket;
  });
  // A dim may have been counted on both ways when the 512th dim appeared within a later track.
  size_t kept = 0;
  for (size_t i = 0; i < result.histogram.size(); ++i) {
    const HistogramEntry entry = result.histogram[i];
    if (kept > 0 && result.histogram[kept - 1].dim == entry.dim && result.histogram[kept - 1].bucket == entry.bucket) {
      result.histogram[kept - 1].count += entry.count;
    } else {
      result.histogram[kept++] = entry;
    }
  }
  result.histogram.resize(kept);
}

Summarizer::Summarizer() : scratch_(std::make_unique<Scratch>()) {}
Summarizer::~Summarizer() = default;

// The sums of rows begin ... end, which are of one track, in `slots`.
TACHO_MULTIVERSION void Summarizer::Scratch::add_track(const TimedRows& rows, size_t begin, size_t end) {
  slots.clear();
  if (!direct_dims) hashed.clear();
  Busy busy{rows.track[begin], rows.start[begin], rows.start[begin], 0};
  for (size_t i = begin; i < end; ++i) {
    const int64_t dim = rows.dim[i];
    uint32_t& known = direct_dims ? direct[index(dim)] : hashed[dim];
    if (known == 0) {
      uint32_t& number = direct_dims ? direct_number[index(dim)] : hashed_number[dim];
      if (number == 0) {
        dims.push_back(dim);
        number = static_cast<uint32_t>(dims.size());
      }
      slots.push_back({dim, number - 1, 0, 0, 0, 0, 0, rows.start[i], rows.start[i], 0, 0, 0});
      known = static_cast<uint32_t>(slots.size());
    }
    const uint32_t number = known - 1;
    slot_of_row[i] = number;
    Slot& slot = slots[number];
    const int64_t start = rows.start[i];
    const int64_t duration = rows.duration[i];
    if (!rows.bytes.empty() && rows.bytes[i] != event::kUnknown) slot.bytes = saturating_add(slot.bytes, rows.bytes[i]);
    if (duration == event::kUnknown) {
      ++slot.unknown;
      slot.last = std::max(slot.last, start);
      busy.last = std::max(busy.last, start);
      continue;
    }
    slot.min = slot.count == 0 ? duration : std::min(slot.min, duration);
    slot.max = slot.count == 0 ? duration : std::max(slot.max, duration);
    ++slot.count;
    slot.sum += duration;
    const int64_t finish = std::max(start, saturating_add(start, duration));
    slot.last = std::max(slot.last, finish);
    const int64_t from = std::max(start, busy.last);
    if (finish > from) busy.busy = saturating_add(busy.busy, saturate(static_cast<__int128>(finish) - from));
    busy.last = std::max(busy.last, finish);
  }
  result.busy.push_back(busy);
}

// What needs the means of the same rows: squares of differences and, where asked for, histograms.
TACHO_MULTIVERSION void Summarizer::Scratch::add_spread(const TimedRows& rows, size_t begin, size_t end,
                                                        bool histogram) {
  for (Slot& slot : slots)
    slot.mean = slot.count == 0 ? 0 : static_cast<double>(slot.sum) / static_cast<double>(slot.count);
  if (histogram && dims.size() <= kDenseDims) dense.resize(dims.size() * kHistogramBuckets);
  for (size_t i = begin; i < end; ++i) {
    const int64_t duration = rows.duration[i];
    if (duration == event::kUnknown) continue;
    Slot& slot = slots[slot_of_row[i]];
    const double off = static_cast<double>(duration) - slot.mean;
    slot.m2 += off * off;
    if (!histogram) continue;
    const auto key =
        static_cast<uint32_t>(slot.dim_number * kHistogramBuckets + static_cast<uint32_t>(histogram_bucket(duration)));
    if (slot.dim_number < kDenseDims && key < dense.size()) {
      ++dense[key];
    } else {
      keys.push_back(key);
    }
  }
}

const ChunkStatistics& Summarizer::compute(const TimedRows& rows, What what) {
  const bool histogram = what == What::kAll || what == What::kHistogram;
  Scratch& s = *scratch_;
  s.result.summaries.clear();
  s.result.histogram.clear();
  s.result.busy.clear();
  const size_t count = rows.track.size();
  if (count == 0) return s.result;

  const auto [low_at, high_at] = std::minmax_element(rows.dim.begin(), rows.dim.end());
  s.low = *low_at;
  const uint64_t range = static_cast<uint64_t>(*high_at) - static_cast<uint64_t>(s.low);
  s.direct_dims = range < Scratch::kDirectRange;
  if (s.direct_dims) {
    s.direct.assign(range + 1, 0);
    s.direct_number.assign(range + 1, 0);
  } else {
    s.hashed_number.clear();
  }
  s.dims.clear();
  s.dense.clear();
  s.keys.clear();
  s.slot_of_row.resize(count);
  for (size_t begin = 0; begin < count;) {
    size_t end = begin + 1;
    while (end < count && rows.track[end] == rows.track[begin]) ++end;
    s.add_track(rows, begin, end);
    if (histogram || what == What::kSummaries) s.add_spread(rows, begin, end, histogram);
    s.gather_summaries(rows.track[begin]);
    if (s.direct_dims)
      for (const Scratch::Slot& slot : s.slots) s.direct[s.index(slot.dim)] = 0;
    begin = end;
  }

  s.gather_histogram();
  return s.result;
}

// Merging

void merge_summary(Summary& into, const Summary& from) {
  into.first = std::min(into.first, from.first);
  into.last = std::max(into.last, from.last);
  into.bytes = saturating_add(into.bytes, from.bytes);
  into.unknown = saturating_add(into.unknown, from.unknown);
  if (from.count == 0) return;
  if (into.count == 0) {
    into.count = from.count;
    into.sum = from.sum;
    into.min = from.min;
    into.max = from.max;
    into.mean = from.mean;
    into.m2 = from.m2;
    return;
  }
  const auto a = static_cast<double>(into.count);
  const auto b = static_cast<double>(from.count);
  const double delta = from.mean - into.mean;
  into.m2 += from.m2 + delta * delta * (a / (a + b)) * b;
  into.mean += delta * (b / (a + b));
  into.count = saturating_add(into.count, from.count);
  into.sum = saturating_add(into.sum, from.sum);
  into.min = std::min(into.min, from.min);
  into.max = std::max(into.max, from.max);
}

struct SummaryMerger::Maps {
  size_t max_pairs;
  int64_t folded = 0;
  std::vector<Summary> entries;
  tsl::robin_map<Pair, uint32_t, PairHash> pairs;   // (track, dim) -> entry
  tsl::robin_map<Pair, int64_t, PairHash> buckets;  // (dim, bucket) -> count
  tsl::robin_map<int64_t, Busy, IdHash> tracks;
};

SummaryMerger::SummaryMerger(size_t max_pairs) : maps_(std::make_unique<Maps>()) {
  maps_->max_pairs = max_pairs;
}
SummaryMerger::~SummaryMerger() = default;

void SummaryMerger::add(std::span<const Summary> entries) {
  Maps& m = *maps_;
  for (const Summary& from : entries) {
    auto found = m.pairs.find({from.track, from.dim});
    Summary entry = from;
    if (found == m.pairs.end() && m.entries.size() >= m.max_pairs) {
      m.folded = saturating_add(m.folded, saturating_add(from.count, from.unknown));
      entry.dim = 0;
      found = m.pairs.find({entry.track, 0});
      if (found == m.pairs.end()) {
        entry.track = 0;
        found = m.pairs.find({0, 0});
      }
    }
    if (found == m.pairs.end()) {
      m.pairs.emplace(Pair{entry.track, entry.dim}, static_cast<uint32_t>(m.entries.size()));
      m.entries.push_back(entry);
    } else {
      merge_summary(m.entries[found->second], entry);
    }
  }
}

void SummaryMerger::add(std::span<const HistogramEntry> entries) {
  constexpr size_t kBucketsPerPair = 8;
  Maps& m = *maps_;
  for (const HistogramEntry& from : entries) {
    auto found = m.buckets.find({from.dim, from.bucket});
    if (found == m.buckets.end()) {
      const bool room = m.max_pairs > SIZE_MAX / kBucketsPerPair || m.buckets.size() < m.max_pairs * kBucketsPerPair;
      found = m.buckets.emplace(Pair{room ? from.dim : 0, from.bucket}, 0).first;
    }
    found.value() = saturating_add(found->second, from.count);
  }
}

void SummaryMerger::add(std::span<const Busy> entries) {
  Maps& m = *maps_;
  for (const Busy& from : entries) {
    auto found = m.tracks.find(from.track);
    if (found == m.tracks.end()) {
      Busy start = from;
      if (m.tracks.size() >= m.max_pairs) start.track = 0;
      start.busy = 0;
      found = m.tracks.emplace(start.track, start).first;
    }
    Busy& into = found.value();
    into.first = std::min(into.first, from.first);
    into.last = std::max(into.last, from.last);
    into.busy = saturating_add(into.busy, from.busy);
  }
}

int64_t SummaryMerger::folded_rows() const {
  return maps_->folded;
}
size_t SummaryMerger::pairs() const {
  return maps_->entries.size();
}

std::vector<Summary> SummaryMerger::summaries() const {
  std::vector<Summary> all = maps_->entries;
  std::sort(all.begin(), all.end(),
            [](const Summary& a, const Summary& b) { return a.track != b.track ? a.track < b.track : a.dim < b.dim; });
  return all;
}

std::vector<HistogramEntry> SummaryMerger::histogram() const {
  std::vector<HistogramEntry> all;
  all.reserve(maps_->buckets.size());
  for (const auto& [key, count] : maps_->buckets) all.push_back({key.a, static_cast<int>(key.b), count});
  std::sort(all.begin(), all.end(), [](const HistogramEntry& a, const HistogramEntry& b) {
    return a.dim != b.dim ? a.dim < b.dim : a.bucket < b.bucket;
  });
  return all;
}

std::vector<Busy> SummaryMerger::busy() const {
  std::vector<Busy> all;
  all.reserve(maps_->tracks.size());
  for (const auto& [track, busy] : maps_->tracks) all.push_back(busy);
  std::sort(all.begin(), all.end(), [](const Busy& a, const Busy& b) { return a.track < b.track; });
  return all;
}

// Bytes
// An extra is u32 rows, then per column u32 bytes and the encoded column.

namespace {

template <typename Entry, typename... Field>
void encode_extra(std::span<const Entry> entries, ColumnEncoder& encoder, std::vector<uint8_t>& out, Field... field) {
  const auto put = [&](size_t at, uint32_t value) { std::memcpy(out.data() + at, &value, sizeof value); };
  const size_t start = out.size();
  out.resize(start + 4);
  put(start, static_cast<uint32_t>(entries.size()));
  std::vector<int64_t> column(entries.size());
  const auto write = [&](auto get) {
    for (size_t i = 0; i < entries.size(); ++i) column[i] = get(entries[i]);
    const size_t at = out.size();
    out.resize(at + 4);
    encoder.encode(column, out);
    put(at, static_cast<uint32_t>(out.size() - at - 4));
  };
  (write(field), ...);
}

template <typename Entry, typename... Field>
bool decode_extra(std::span<const uint8_t> bytes, std::vector<Entry>& out, Field... field) {
  out.clear();
  if (bytes.size() < 4) return false;
  const auto rows = load<uint32_t>(bytes.data());
  bytes = bytes.subspan(4);
  if (rows == 0 || rows > kMaxChunkRows) return false;
  out.resize(rows);
  std::vector<int64_t> column(rows);
  const auto read = [&](auto set) {
    if (bytes.size() < 4) return false;
    const auto size = load<uint32_t>(bytes.data());
    bytes = bytes.subspan(4);
    if (size > bytes.size() || !decode_column(bytes.first(size), column.data(), rows)) return false;
    bytes = bytes.subspan(size);
    for (size_t i = 0; i < rows; ++i) set(out[i], column[i]);
    return true;
  };
  return (read(field) && ...) && bytes.empty();
}

}  // namespace

void encode_summaries(std::span<const Summary> entries, ColumnEncoder& encoder, std::vector<uint8_t>& out) {
  using S = const Summary&;
  encode_extra(
      entries, encoder, out, [](S e) { return e.track; }, [](S e) { return e.dim; }, [](S e) { return e.count; },
      [](S e) { return e.unknown; }, [](S e) { return e.sum; }, [](S e) { return e.min; }, [](S e) { return e.max; },
      [](S e) { return std::bit_cast<int64_t>(e.m2); }, [](S e) { return e.bytes; }, [](S e) { return e.first; },
      [](S e) { return e.last; });
}

bool decode_summaries(std::span<const uint8_t> bytes, std::vector<Summary>& out) {
  using S = Summary&;
  const bool good = decode_extra(
      bytes, out, [](S e, int64_t v) { e.track = v; }, [](S e, int64_t v) { e.dim = v; },
      [](S e, int64_t v) { e.count = v; }, [](S e, int64_t v) { e.unknown = v; }, [](S e, int64_t v) { e.sum = v; },
      [](S e, int64_t v) { e.min = v; }, [](S e, int64_t v) { e.max = v; },
      [](S e, int64_t v) { e.m2 = std::bit_cast<double>(v); }, [](S e, int64_t v) { e.bytes = v; },
      [](S e, int64_t v) { e.first = v; }, [](S e, int64_t v) { e.last = v; });
  for (Summary& entry : out) {
    if (entry.count < 0 || entry.unknown < 0) return false;
    entry.mean = ratio(entry.sum, entry.count);
  }
  return good;
}

void encode_histogram(std::span<const HistogramEntry> entries, ColumnEncoder& encoder, std::vector<uint8_t>& out) {
  using H = const HistogramEntry&;
  encode_extra(
      entries, encoder, out, [](H e) { return e.dim; }, [](H e) { return int64_t{e.bucket}; },
      [](H e) { return e.count; });
}

bool decode_histogram(std::span<const uint8_t> bytes, std::vector<HistogramEntry>& out) {
  using H = HistogramEntry&;
  bool sane = true;
  const bool good = decode_extra(
      bytes, out, [](H e, int64_t v) { e.dim = v; },
      [&](H e, int64_t v) {
        sane &= v >= 0 && v < kHistogramBuckets;
        e.bucket = static_cast<int>(v & (kHistogramBuckets - 1));
      },
      [&](H e, int64_t v) {
        sane &= v >= 0;
        e.count = v;
      });
  return good && sane;
}

void encode_busy(std::span<const Busy> entries, ColumnEncoder& encoder, std::vector<uint8_t>& out) {
  using B = const Busy&;
  encode_extra(
      entries, encoder, out, [](B e) { return e.track; }, [](B e) { return e.first; }, [](B e) { return e.last; },
      [](B e) { return e.busy; });
}

bool decode_busy(std::span<const uint8_t> bytes, std::vector<Busy>& out) {
  using B = Busy&;
  return decode_extra(
      bytes, out, [](B e, int64_t v) { e.track = v; }, [](B e, int64_t v) { e.first = v; },
      [](B e, int64_t v) { e.last = v; }, [](B e, int64_t v) { e.busy = v; });
}

}  // namespace tacho::trace
