// Slices in order of start (walk/sweep.h).
#include "walk/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "trace/write/writer.h"

namespace tacho::walk {
namespace {

using event::Table;
namespace row = event::row;

TEST(Sweep, GivesAllRowsOfAllTablesInOrderOfStart) {
  trace::WriterOptions options;
  options.slab_rows = 300;
  auto created = trace::TraceWriter::create_temporary(options);
  ASSERT_TRUE(created);
  trace::TraceWriter& writer = **created;
  for (int64_t native = 1; native <= 3; ++native) writer.dimension(row::Track{.native = native});
  writer.dimension(row::Kernel{});
  writer.dimension(row::CopyShape{});
  writer.dimension(row::FillShape{});
  std::mt19937_64 random(7);
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < 3000; ++i) {
    const int64_t start = i * 10 + static_cast<int64_t>(random() % 500);
    const auto track = static_cast<int64_t>(1 + random() % 3);
    starts.push_back(start);
    if (i % 3 == 0)
      writer.add(row::Dispatch{.track = track, .start = start, .duration = i, .dim = 1, .correlation = i});
    if (i % 3 == 1)
      writer.add(row::Copy{.track = track, .start = start, .duration = i, .dim = 1, .correlation = i, .bytes = 2 * i});
    if (i % 3 == 2)
      writer.add(row::Fill{.track = track, .start = start, .duration = i, .dim = 1, .correlation = i, .bytes = 3 * i});
  }
  std::sort(starts.begin(), starts.end());
  const auto trace = writer.finish_and_open();
  ASSERT_TRUE(trace);

  static constexpr Table kTables[] = {Table::kDispatch, Table::kCopy, Table::kFill};
  Sweep sweep(**trace, kTables, kSweepDim | kSweepCorrelation | kSweepBytes);
  RowSlice slice;
  size_t at = 0;
  while (sweep.next(slice)) {
    EXPECT_EQ(slice.arguments, nullptr) << "not asked for";
    EXPECT_EQ(slice.bytes == nullptr, slice.table == Table::kDispatch) << "a dispatch has no bytes";
    for (size_t i = 0; i < slice.rows; ++i, ++at) {
      ASSERT_LT(at, starts.size());
      EXPECT_EQ(slice.start[i], starts[at]);
      EXPECT_EQ(slice.dim[i], 1);
      EXPECT_EQ(slice.correlation[i], slice.duration[i]);
      if (slice.bytes != nullptr) {
        EXPECT_EQ(slice.bytes[i], slice.duration[i] * (slice.table == Table::kCopy ? 2 : 3));
      }
    }
  }
  EXPECT_TRUE(sweep.status());
  EXPECT_EQ(at, starts.size());
}

}  // namespace
}  // namespace tacho::walk
