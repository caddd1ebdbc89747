// A trace's computations for its readers against the plain way of computing them: summaries, histograms, busy times,
// rows in order of time.
#include <cmath>
#include <limits>

#include "rows.h"
#include "trace/store/summary.h"

namespace tacho::trace {
namespace {

namespace column = event::column;
namespace row = event::row;

struct Sums {
  int64_t count = 0, unknown = 0, sum = 0, min = 0, max = 0, bytes = 0, first = 0, last = 0;
  std::vector<double> durations;
};

// (track, dim) -> sums, row by row.
std::map<std::pair<int64_t, int64_t>, Sums> plain_sums(const std::vector<Row>& rows, bool bytes) {
  std::map<std::pair<int64_t, int64_t>, Sums> sums;
  for (const Row& row : rows) {
    const auto [entry, fresh] = sums.try_emplace({row[0], row[3]});
    Sums& s = entry->second;
    const int64_t end = row[2] == kUnknown ? row[1] : std::max(row[1], row[1] + row[2]);
    s.first = fresh ? row[1] : std::min(s.first, row[1]);
    s.last = fresh ? end : std::max(s.last, end);
    if (bytes && row[5] != kUnknown) s.bytes += row[5];
    if (row[2] == kUnknown) {
      ++s.unknown;
      continue;
    }
    s.min = s.count == 0 ? row[2] : std::min(s.min, row[2]);
    s.max = s.count == 0 ? row[2] : std::max(s.max, row[2]);
    ++s.count;
    s.sum += row[2];
    s.durations.push_back(static_cast<double>(row[2]));
  }
  return sums;
}

void expect_equal(const std::vector<Summary>& got, const std::map<std::pair<int64_t, int64_t>, Sums>& want) {
  ASSERT_EQ(got.size(), want.size());
  auto expected = want.begin();
  for (const Summary& summary : got) {
    const auto& [key, sums] = *expected++;
    EXPECT_EQ(std::make_pair(summary.track, summary.dim), key);
    EXPECT_EQ(summary.count, sums.count);
    EXPECT_EQ(summary.unknown, sums.unknown);
    EXPECT_EQ(summary.sum, sums.sum);
    EXPECT_EQ(summary.min, sums.min);
    EXPECT_EQ(summary.max, sums.max);
    EXPECT_EQ(summary.bytes, sums.bytes);
    EXPECT_EQ(summary.first, sums.first);
    EXPECT_EQ(summary.last, sums.last);
    double mean = 0;
    for (const double d : sums.durations) mean += d / static_cast<double>(sums.durations.size());
    double m2 = 0;
    for (const double d : sums.durations) m2 += (d - mean) * (d - mean);
    EXPECT_NEAR(summary.mean, mean, std::fabs(mean) * 1e-9);
    EXPECT_NEAR(summary.m2, m2, m2 * 1e-9 + 1e-6);
  }
}

std::map<std::pair<int64_t, int>, int64_t> plain_histogram(const std::vector<Row>& rows) {
  std::map<std::pair<int64_t, int>, int64_t> counts;
  for (const Row& row : rows) {
    if (row[2] != kUnknown) ++counts[{row[3], histogram_bucket(row[2])}];
  }
  return counts;
}

int64_t plain_busy(const std::vector<Row>& rows, int64_t track) {
  std::vector<std::pair<int64_t, int64_t>> intervals;
  for (const Row& row : rows) {
    if (row[0] == track && row[2] != kUnknown) intervals.emplace_back(row[1], row[1] + row[2]);
  }
  std::sort(intervals.begin(), intervals.end());
  int64_t busy = 0;
  int64_t until = std::numeric_limits<int64_t>::min();
  for (const auto& [start, end] : intervals) {
    busy += std::max<int64_t>(0, end - std::max(start, until));
    until = std::max(until, end);
  }
  return busy;
}

TEST(Histogram, BucketsCoverEveryDurationInOrder) {
  EXPECT_EQ(histogram_bucket(-5), 0);
  int last = -1;
  std::vector<int64_t> durations;
  for (int64_t d = 0; d < 70; ++d) durations.push_back(d);
  for (int bit = 6; bit < 63; ++bit) {
    for (const int64_t step :
         {int64_t{0}, int64_t{1} << (bit - 2), (int64_t{1} << (bit - 1)) + 1, (int64_t{1} << bit) - 1}) {
      durations.push_back((int64_t{1} << bit) + step);
    }
  }
  for (const int64_t d : durations) {
    const int bucket = histogram_bucket(d);
    ASSERT_GE(bucket, last);
    ASSERT_LT(bucket, kHistogramBuckets);
    ASSERT_LE(histogram_floor(bucket), d);
    if (d < std::numeric_limits<int64_t>::max()) {
      ASSERT_GT(histogram_floor(bucket + 1), d) << "bucket " << bucket;
    }
    last = bucket;
  }
}

// Traces of several shapes: few pairs (summaries are stored), many (they are computed), unknown durations.
class Statistics : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    WriterOptions options;
    options.slab_rows = 5000;
    auto writer = must(TraceWriter::create(folder_ / "t.tacho", options));
    make_targets(*writer);
    if (GetParam() == 3) make_targets(*writer, 3000, Table::kTrack);
    if (GetParam() > 0) make_targets(*writer, 200'000, Table::kCopyShape);
    RandomRows random(20 + static_cast<uint64_t>(GetParam()));
    std::mt19937_64& word = random.random();
    for (int i = 0; i < 23'000; ++i) {
      Row row = random.row(Table::kCopy, false);
      if (GetParam() == 0) row[3] %= 15;
      if (GetParam() == 1) row[3] = static_cast<int64_t>(word() % 20'000);
      if (GetParam() == 2) row[3] = static_cast<int64_t>(word() % 200'000);
      if (GetParam() == 3) row[0] = static_cast<int64_t>(word() % 3000), row[3] = static_cast<int64_t>(word() % 900);
      if (word() % 50 == 0) row[2] = kUnknown;
      if (word() % 50 == 0) row[5] = kUnknown;
      rows_.push_back(row);
      Cells::add(*writer, Table::kCopy, row);
    }
    trace_ = must(writer->finish_and_open());
  }

  std::vector<Row> chunk_rows(size_t chunk) const {
    size_t begin = 0;
    for (size_t c = 0; c < chunk; ++c) begin += trace_->chunks(Table::kCopy)[c].rows;
    const auto all = all_rows(*trace_, Table::kCopy);
    return {all.begin() + static_cast<ptrdiff_t>(begin),
            all.begin() + static_cast<ptrdiff_t>(begin + trace_->chunks(Table::kCopy)[chunk].rows)};
  }

  Folder folder_;
  std::vector<Row> rows_;
  std::shared_ptr<const Trace> trace_;
};
INSTANTIATE_TEST_SUITE_P(Shapes, Statistics, testing::Range(0, 4));

TEST_P(Statistics, Summaries) {
  for (size_t chunk = 0; chunk < trace_->chunks(Table::kCopy).size(); ++chunk) {
    expect_equal(must(trace_->summaries(Table::kCopy, chunk)), plain_sums(chunk_rows(chunk), true));
  }
  const uint64_t before = trace_->columns_decoded();
  expect_equal(must(trace_->merged_summaries(Table::kCopy)), plain_sums(rows_, true));
  if (GetParam() == 0) {
    EXPECT_EQ(trace_->columns_decoded(), before) << "stored summaries need no row";
  }
}

TEST_P(Statistics, Histograms) {
  const auto expect = [](const std::vector<HistogramEntry>& got, const std::vector<Row>& rows) {
    const auto want = plain_histogram(rows);
    ASSERT_EQ(got.size(), want.size());
    auto expected = want.begin();
    for (const HistogramEntry& entry : got) {
      EXPECT_EQ(std::make_pair(entry.dim, entry.bucket), expected->first);
      EXPECT_EQ(entry.count, expected->second);
      ++expected;
    }
  };
  for (size_t chunk = 0; chunk < trace_->chunks(Table::kCopy).size(); ++chunk) {
    expect(must(trace_->histogram(Table::kCopy, chunk)), chunk_rows(chunk));
  }
  expect(must(trace_->merged_histogram(Table::kCopy)), rows_);
}

TEST_P(Statistics, BusyTimes) {
  for (size_t chunk = 0; chunk < trace_->chunks(Table::kCopy).size(); ++chunk) {
    const auto rows = chunk_rows(chunk);
    for (const Busy& busy : must(trace_->busy(Table::kCopy, chunk))) {
      if (GetParam() == 3 && busy.track >= 50) continue;  // enough
      ASSERT_EQ(busy.busy, plain_busy(rows, busy.track)) << "track " << busy.track;
    }
  }
  for (const Busy& busy : must(trace_->merged_busy(Table::kCopy))) {
    if (GetParam() == 3 && busy.track >= 50) continue;
    ASSERT_EQ(busy.busy, plain_busy(rows_, busy.track)) << "track " << busy.track << " over chunks that overlap";
  }
}

TEST(Read, TimeRangeSpansAllTimedFacts) {
  Folder folder;
  auto writer = must(TraceWriter::create(folder / "t.tacho"));
  writer->add(row::Dispatch{.track = 1, .start = 500, .duration = 100, .dim = 1, .ordinal = 0});
  writer->add(row::Api{.track = 2, .start = 300, .dim = 1, .result = 0});
  writer->add(row::Reading{.track = 3, .start = 10, .value = 0});
  const auto trace = must(writer->finish_and_open());
  EXPECT_EQ(trace->time_range(), (std::pair<int64_t, int64_t>(300, 600)));
}

TEST(Read, AsksForWhatIsNotThere) {
  Folder folder;
  auto writer = must(TraceWriter::create(folder / "t.tacho"));
  writer->add(row::Api{.track = 1, .start = 2, .duration = 3, .dim = 4, .correlation = 5, .result = 6});
  const auto trace = must(writer->finish_and_open());
  std::vector<int64_t> out;
  EXPECT_FALSE(trace->decode(Table::kApi, 1, 0, out));
  EXPECT_FALSE(trace->decode(Table::kApi, 0, static_cast<int>(row::Api::kColumns), out));
  EXPECT_FALSE(trace->decode(Table::kApi, 0, -1, out));
  EXPECT_FALSE(trace->decode(Table::kKernel, 0, 0, out));
  EXPECT_FALSE(trace->summaries(Table::kReading, 0));
  EXPECT_TRUE(trace->chunks(Table::kKernel).empty());
  EXPECT_TRUE(must(trace->merged_summaries(Table::kReading)).empty());
  const int columns[] = {0};
  EXPECT_FALSE(visit_by_time(*trace, Table::kLoss, columns, 0, 10, [](auto) { return true; }));
  EXPECT_FALSE(visit_by_time(*trace, Table::kKernel, columns, 0, 10, [](auto) { return true; }));
  const int wrong[] = {17};
  EXPECT_FALSE(visit_by_time(*trace, Table::kApi, wrong, 0, 10, [](auto) { return true; }));
}

// Rows of a trace whose slabs overlap in time the more, the larger `shuffle` is.
std::shared_ptr<const Trace> shuffled(const Folder& folder, int count, int64_t shuffle, uint32_t slab_rows) {
  WriterOptions options;
  options.slab_rows = slab_rows;
  options.overwrite = true;
  auto writer = must(TraceWriter::create(folder / "t.tacho", options));
  make_targets(*writer);
  std::mt19937_64 random(30);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t start = i * 10 + static_cast<int64_t>(random() % static_cast<uint64_t>(shuffle));
    writer->add(row::Marker{.track = static_cast<int64_t>(random() % 5),
                            .start = start / 16 * 16,
                            .duration = 7,
                            .dim = i % 3,
                            .correlation = i,
                            .payload = i * 2});
  }
  return must(writer->finish_and_open());
}

TEST(ByTime, EqualsASort) {
  Folder folder;
  const int columns[] = {column::Marker::correlation, column::Marker::start, column::Marker::payload};
  const std::tuple<int, int64_t, uint32_t> shapes[] = {
      {1000, 1, 65536}, {50'000, 20'000, 1000}, {200'000, 2'000'000, 100}, {300'000, 3'000'000, 5000}};
  for (const auto& shape : shapes) {
    const int count = std::get<0>(shape);
    const uint32_t slab_rows = std::get<2>(shape);
    const auto trace = shuffled(folder, count, std::get<1>(shape), slab_rows);
    struct Key {
      int64_t start, correlation;
    };
    std::vector<Key> want;
    for (const Row& row : all_rows(*trace, Table::kMarker)) want.push_back({row[1], row[4]});
    std::stable_sort(want.begin(), want.end(), [](const Key& a, const Key& b) { return a.start < b.start; });
    const int64_t lowest = std::numeric_limits<int64_t>::min();
    const int64_t highest = std::numeric_limits<int64_t>::max();
    for (const auto& [from, to] : {std::pair(lowest, highest), std::pair<int64_t, int64_t>(100'000, 300'001),
                                   std::pair<int64_t, int64_t>(5, 5)}) {
      size_t at = 0;
      while (at < want.size() && want[at].start < from) ++at;
      must(visit_by_time(*trace, Table::kMarker, columns, from, to, [&](std::span<const int64_t> row) {
        EXPECT_LT(at, want.size());
        EXPECT_EQ(row[0], want[at].correlation) << "row " << at << " of " << count << "/" << slab_rows;
        EXPECT_EQ(row[1], want[at].start);
        EXPECT_EQ(row[2], row[0] * 2);
        ++at;
        return !testing::Test::HasFailure();
      }));
      ASSERT_FALSE(testing::Test::HasFailure());
      EXPECT_TRUE(at == want.size() || want[at].start >= to);
    }
  }
}

TEST(ByTime, ManyChunksOpenAtOnceNeedWindows) {
  Folder folder;
  // 3000 chunks over the same time: more than the memory that the merge may take.
  WriterOptions options;
  options.slab_rows = 2000;
  auto writer = must(TraceWriter::create(folder / "t.tacho", options));
  make_targets(*writer);
  std::mt19937_64 random(31);
  constexpr int64_t kRows = 2'000'000;
  for (int64_t i = 0; i < kRows; ++i)
    writer->add(row::Sync{
        .track = 1, .start = static_cast<int64_t>(random() % 1'000'000), .duration = 1, .dim = 1, .correlation = i});
  const auto trace = must(writer->finish_and_open());
  const int columns[] = {0, 2, 3, 4, 1};
  int64_t seen = 0;
  int64_t sum = 0;
  int64_t last = -1;
  bool ordered = true;
  must(visit_by_time(*trace, Table::kSync, columns, 0, 2'000'000, [&](std::span<const int64_t> row) {
    ++seen;
    sum += row[3];
    ordered &= row[4] >= last;
    last = row[4];
    return true;
  }));
  EXPECT_EQ(seen, kRows);
  EXPECT_EQ(sum, kRows * (kRows - 1) / 2);
  EXPECT_TRUE(ordered);
}

TEST(ByTime, StopsWhenToldAndReadsOnlyWhatIsDue) {
  Folder folder;
  const auto trace = shuffled(folder, 100'000, 10, 1000);
  const int columns[] = {column::Marker::start};
  int seen = 0;
  const uint64_t before = trace->columns_decoded();
  must(visit_by_time(*trace, Table::kMarker, columns, 0, 1'000'000, [&](auto) { return ++seen < 1500; }));
  EXPECT_EQ(seen, 1500);
  EXPECT_LE(trace->columns_decoded() - before, 4u) << "two or three of a hundred chunks, one column";
}

TEST(ByChunk, GivesEveryRowOnce) {
  Folder folder;
  const auto trace = shuffled(folder, 10'000, 100, 3000);
  const int columns[] = {column::Marker::payload, column::Marker::correlation};
  int64_t sum = 0;
  size_t calls = 0;
  must(visit_chunks(*trace, Table::kMarker, columns,
                    [&](size_t chunk, std::span<const std::span<const int64_t>> values) {
                      EXPECT_EQ(chunk, calls++);
                      EXPECT_EQ(values[0].size(), trace->chunks(Table::kMarker)[chunk].rows);
                      for (size_t i = 0; i < values[0].size(); ++i) {
                        EXPECT_EQ(values[0][i], values[1][i] * 2);
                        sum += values[1][i];
                      }
                      return true;
                    }));
  EXPECT_EQ(calls, 4u);
  EXPECT_EQ(sum, int64_t{10'000} * 9'999 / 2);
}

TEST(Summaries, MergeSaturatesAndKeepsTheMoments) {
  Summary a{1, 2, 3, 0, 30, 5, 15, 10, 50, 7, 0, 100};
  const Summary b{1, 2, 1, 1, std::numeric_limits<int64_t>::max(), 20, 20, 20, 0, 1, -5, 40};
  merge_summary(a, b);
  EXPECT_EQ(a.count, 4);
  EXPECT_EQ(a.unknown, 1);
  EXPECT_EQ(a.sum, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(a.min, 5);
  EXPECT_EQ(a.max, 20);
  EXPECT_DOUBLE_EQ(a.mean, 12.5);
  EXPECT_DOUBLE_EQ(a.m2, 50 + 100 * 3.0 / 4);
  EXPECT_EQ(a.first, -5);
  EXPECT_EQ(a.last, 100);
  EXPECT_EQ(a.bytes, 8);
}

}  // namespace
}  // namespace tacho::trace
