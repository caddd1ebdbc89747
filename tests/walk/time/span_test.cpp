// The run's length: rows that stretch it, and others.
#include "walk/time/span.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "trace/rows.h"

namespace tacho::walk {
namespace {

namespace row = event::row;

using trace::Folder;
using trace::must;
using trace::TraceWriter;

// The run of a trace with one track, one label and the rows that `fill` adds.
template <typename Fill>
std::pair<int64_t, int64_t> run_of(Fill fill, const trace::WriterOptions& options = {}) {
  const Folder folder;
  auto writer = must(TraceWriter::create(folder / "t.tacho", options));
  writer->dimension(row::Track{.native = 1});
  writer->dimension(row::Label{.name = writer->string("step")});
  fill(*writer);
  EXPECT_TRUE(writer->finish());
  const Span run = must(run_span(*must(trace::Trace::open(folder / "t.tacho"))));
  return {run.first, run.last};
}

row::Marker marker(int64_t start, int64_t duration) {
  return {.track = 1, .start = start, .duration = duration, .dim = 1};
}

using Ends = std::pair<int64_t, int64_t>;

TEST(RunSpan, ReachesFromTheFirstBeginToTheLastEnd) {
  EXPECT_EQ(run_of([](TraceWriter& writer) {
              writer.add(marker(100, 50));
              writer.add(row::Api{.track = 1, .start = 90, .duration = 5});
              writer.add(row::Dispatch{.track = 1, .start = 140, .duration = 60});
            }),
            Ends(90, 200));
}

TEST(RunSpan, MomentsDoNotStretchIt) {
  // Torch's profiler sets such marks when it begins and, long after the last work, when its window ends.
  EXPECT_EQ(run_of([](TraceWriter& writer) {
              writer.add(marker(0, 0));
              writer.add(marker(100, 50));
              writer.add(marker(9000, 0));
              writer.add(row::Allocation{.track = 1, .start = 9500, .duration = 0});
            }),
            Ends(100, 150));
}

TEST(RunSpan, WorkCountsHoweverLongItIs) {
  EXPECT_EQ(run_of([](TraceWriter& writer) {
              writer.add(row::Dispatch{.track = 1, .start = 10, .duration = 0});
              writer.add(row::Api{.track = 1, .start = 20, .duration = 5});
              writer.add(row::Copy{.track = 1, .start = 700});
            }),
            Ends(10, 700));
}

TEST(RunSpan, WhatHadNotEndedCountsWithItsBegin) {
  EXPECT_EQ(run_of([](TraceWriter& writer) {
              writer.add(marker(100, 50));
              writer.add(marker(400, event::kUnknown));
            }),
            Ends(100, 400));
}

TEST(RunSpan, EqualsWhatAllRowsSay) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::minstd_rand random(seed);
    Ends expected{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
    const auto count = [&](int64_t start, int64_t end) {
      expected = {std::min(expected.first, start), std::max(expected.second, end)};
    };
    trace::WriterOptions options;
    options.slab_rows = 1000;
    const Ends run = run_of(
        [&](TraceWriter& writer) {
          for (int64_t i = 0; i < 5000; ++i) {
            const auto start = static_cast<int64_t>(random() % 1'000'000);
            const auto kind = random() % 64;
            const int64_t duration = kind == 0   ? event::kUnknown
                                     : kind < 48 ? 0
                                                 : static_cast<int64_t>(random() % 30'000);
            writer.add(marker(start, duration));
            if (duration != 0) count(start, start + (duration == event::kUnknown ? 0 : duration));
            const auto fill = static_cast<int64_t>(200'000 + random() % 600'000);
            writer.add(row::Fill{.track = 1, .start = fill, .duration = 0});
            count(fill, fill);
          }
        },
        options);
    EXPECT_EQ(run, expected) << "seed " << seed;
  }
}

TEST(RunSpan, LooksIntoChunksOnlyWhereMomentsAndRangesShareAName) {
  trace::WriterOptions options;
  options.slab_rows = 1000;
  EXPECT_EQ(run_of(
                [](TraceWriter& writer) {
                  writer.add(marker(-5, 0));
                  for (int64_t i = 0; i < 20'000; ++i) writer.add(marker(i * 10, i % 3));
                  writer.add(marker(900'000, 0));
                },
                options),
            Ends(10, 199'991));
}

TEST(RunSpan, OfNothingButMomentsReachesFromTheFirstToTheLast) {
  EXPECT_EQ(run_of([](TraceWriter& writer) {
              writer.add(marker(30, 0));
              writer.add(marker(70, 0));
            }),
            Ends(30, 70));
  EXPECT_EQ(run_of([](TraceWriter&) {}), Ends(0, 0));
}

TEST(TimelineSpan, HoldsMarksAndReadings) {
  const Folder folder;
  auto writer = must(TraceWriter::create(folder / "t.tacho", {}));
  writer->dimension(row::Track{.native = 1});
  writer->dimension(row::Label{.name = writer->string("step")});
  writer->add(marker(100, 50));
  writer->add(marker(400, 0));
  writer->add(row::Reading{.track = 1, .start = 20, .value = 0});
  writer->add(row::Reading{.track = 1, .start = 900, .value = 0});
  ASSERT_TRUE(writer->finish());
  const auto trace = must(trace::Trace::open(folder / "t.tacho"));
  EXPECT_EQ(timeline_span(*trace).first, 20);
  EXPECT_EQ(timeline_span(*trace).last, 900);
  const Span run = must(run_span(*trace));
  EXPECT_EQ(run.first, 100);
  EXPECT_EQ(run.last, 150);
}

}  // namespace
}  // namespace tacho::walk
