// What all readers of foreign files share: words, times, ranges, and rows by the numbers of a file.
#include <gtest/gtest.h>

#include "format/import/ranges.h"
#include "format/import/rows.h"
#include "format/import/times.h"
#include "format/import/tracker.h"
#include "format/import/words.h"
#include "trace/read/rows.h"
#include "trace/rows.h"
#include "trace/trace.h"

namespace tacho::test {
namespace {

using namespace tacho::format::imported;
using event::CopyDirection;
using event::Domain;
using event::kUnknown;
namespace column = event::column;
namespace row = event::row;

struct Imported {
  std::unique_ptr<trace::TraceWriter> writer = std::move(*trace::TraceWriter::create_temporary());
  // A label whose text is the number, and a line.
  int64_t label(int64_t number) {
    return writer->dimension(row::Label{.name = writer->string(std::to_string(number))});
  }
  int64_t line(int64_t number) { return thread_line(*writer, 0, number, number); }
  std::shared_ptr<const trace::Trace> open() { return *writer->finish_and_open(); }
};

TEST(Words, Directions) {
  EXPECT_EQ(copy_direction("Memcpy HtoD (Pageable -> Device)"), CopyDirection::kHostToDevice);
  EXPECT_EQ(copy_direction("MemcpyD2H"), CopyDirection::kDeviceToHost);
  EXPECT_EQ(copy_direction("CopyDeviceToDevice"), CopyDirection::kDeviceToDevice);
  EXPECT_EQ(copy_direction("MEMORY_COPY_HOST_TO_HOST"), CopyDirection::kHostToHost);
  EXPECT_EQ(copy_direction("Memcpy PtoP (Device -> Device)"), CopyDirection::kPeerToPeer);
  EXPECT_EQ(copy_direction("Memcpy M2D"), CopyDirection::kHostToDevice);
  EXPECT_EQ(copy_direction("Memcpy D2M(Device -> Memory)"), CopyDirection::kDeviceToHost);
  EXPECT_EQ(copy_direction("Memcpy S2D"), CopyDirection::kUnknown);  // shared memory lies on either side
  EXPECT_EQ(copy_direction("Memcpy HtoA (Pinned -> Array)"), CopyDirection::kHostToDevice);
  EXPECT_EQ(copy_direction("conv2D"), CopyDirection::kUnknown);
  EXPECT_EQ(copy_direction(""), CopyDirection::kUnknown);
}

TEST(Words, KindsAndDomains) {
  const MemoryEnds ends = memory_ends("Memcpy DtoH (Device -> Pinned)");
  EXPECT_EQ(ends.from, event::MemoryKind::kDevice);
  EXPECT_EQ(ends.to, event::MemoryKind::kPinned);
  EXPECT_EQ(memory_ends("Memset (Device)").to, event::MemoryKind::kDevice);
  EXPECT_EQ(domain_of_function("hipLaunchKernel"), Domain::kHipRuntime);
  EXPECT_EQ(domain_of_function("cuLaunchKernel"), Domain::kCudaDriver);
  EXPECT_EQ(domain_of_function("cudaLaunchKernel"), Domain::kCudaRuntime);
  EXPECT_EQ(domain_of_function("cumulative"), Domain::kUnknown);
  EXPECT_EQ(domain_of_word("HIP_COMPILER_API"), Domain::kHipCompiler);
  EXPECT_EQ(domain_of_word("cuda_driver"), Domain::kCudaDriver);
  EXPECT_EQ(domain_of_word("xpu_runtime"), Domain::kUnknown);
  EXPECT_EQ(gpu_of_name("/device:GPU:3"), 3);
  EXPECT_EQ(gpu_of_name("/host:worker1 /device:GPU:1"), 1);
  EXPECT_EQ(gpu_of_name("GPU2"), 2);
  EXPECT_EQ(gpu_of_name("GPU 0 Counters"), 0);
  EXPECT_EQ(gpu_of_name("CUDA functions"), 0);
  EXPECT_EQ(gpu_of_name("GPU worker"), kUnknown);
  EXPECT_EQ(gpu_of_name("/host:CPU"), kUnknown);
  EXPECT_EQ(kernel_of_symbol("k [clone .kd]"), "k");
}

TEST(Times, Spans) {
  using Verdict = SpanRead::Verdict;
  EXPECT_EQ(span_of(5, 9).duration, 4);
  EXPECT_EQ(span_of(9, 5).verdict, Verdict::kDisordered);
  EXPECT_EQ(span_of(9, kUnknown).verdict, Verdict::kOpen);
  EXPECT_EQ(span_of(kUnknown, 5).verdict, Verdict::kBad);
  EXPECT_EQ(span_of(0, INT64_MAX - 1).verdict, Verdict::kBad);
}

// Starts and durations of dispatches, and how many were lost.
std::pair<std::vector<std::pair<int64_t, int64_t>>, int64_t> unmeasured(int64_t others) {
  Imported made;
  UnmeasuredRows rows;
  rows.saw(others, 50);
  rows.saw(others + 400, 50);
  rows.take(row::Dispatch{.track = 1, .start = 0, .duration = 0, .correlation = 7});
  rows.take(row::Dispatch{.track = 1, .start = 0, .duration = 0, .correlation = 8});
  EXPECT_TRUE(rows.finish(*made.writer,
                          [&](int64_t, int64_t correlation) { return correlation == 7 ? others + 20 : kUnknown; }));
  const auto trace = made.open();
  std::vector<std::pair<int64_t, int64_t>> found;
  Status status;
  using D = column::Dispatch;
  for (const auto& each : trace::rows<D::start, D::duration>(*trace, status))
    found.push_back({each.start, each.duration});
  return {found, trace::lost(*trace, event::Table::kDispatch, event::LossReason::kVendor)};
}

TEST(Times, RowsThatWereNotMeasured) {
  const std::vector<std::pair<int64_t, int64_t>> expected = {{1000000020, kUnknown}};
  EXPECT_EQ(unmeasured(1000000000), std::pair(expected, int64_t{1}));
  const std::vector<std::pair<int64_t, int64_t>> as_they_are = {{0, 0}, {0, 0}};
  EXPECT_EQ(unmeasured(100), std::pair(as_they_are, int64_t{0}));  // a trace that begins near 0
}

struct FoundRange {
  int64_t start, duration, label;
  bool operator==(const FoundRange&) const = default;
};
void PrintTo(const FoundRange& range, std::ostream* out) {
  *out << range.start << "+" << range.duration << " " << range.label;
}

std::vector<FoundRange> found_ranges(Imported& made, RangePairs& pairs) {
  BadRows bad;
  EXPECT_TRUE(pairs.finish(*made.writer, bad));
  const auto trace = made.open();
  std::vector<FoundRange> found;
  Status status;
  using M = column::Marker;
  for (const auto& each : trace::rows<M::start, M::duration, M::dim>(*trace, status))
    found.push_back(
        {each.start, each.duration, std::stoll(std::string(trace::text<column::Label::name>(*trace, each.dim)))});
  return found;
}

TEST(Ranges, ByTimeAndName) {
  Imported made;
  RangePairs pairs;
  pairs.begin(1, 0, made.line(1), made.label(10), 10);  // outer
  pairs.end(1, 50, 11);
  pairs.begin(1, 10, made.line(1), made.label(11), 11);  // inner 1
  pairs.begin(1, 50, made.line(1), made.label(12), 12);  // inner 2
  pairs.end(1, 70, 12);
  pairs.end(1, 70, 10);
  const std::vector<FoundRange> expected = {{0, 70, 10}, {10, 40, 11}, {50, 20, 12}};
  EXPECT_EQ(found_ranges(made, pairs), expected);
}

TEST(Ranges, EndsWithoutNamesAndWithoutBegins) {
  Imported made;
  RangePairs pairs;
  pairs.end(1, 5);  // of nothing
  pairs.begin(1, 10, made.line(1), made.label(10));
  pairs.begin(1, 20, made.line(1), made.label(11));
  pairs.end(1, 20);  // no length
  pairs.end(1, 30);
  pairs.end(2, 40);
  pairs.begin(2, 40, made.line(2), made.label(12));  // its end stands before it
  pairs.begin(2, 50, made.line(2), made.label(13));  // never ends
  const std::vector<FoundRange> expected = {{10, 20, 10}, {20, 0, 11}, {40, 0, 12}, {50, kUnknown, 13}};
  EXPECT_EQ(found_ranges(made, pairs), expected);
}

TEST(Ranges, DeeperThanTheDeepest) {
  Imported made;
  RangePairs pairs;
  constexpr int64_t kDeepest = 100000;
  const int64_t line = made.line(1), label = made.label(10);
  for (int64_t i = 0; i < kDeepest + 2; ++i) pairs.begin(1, i, line, label, 10);
  for (int64_t i = kDeepest + 1; i >= 0; --i) pairs.end(1, 1000000 - i, 10);
  const std::vector<FoundRange> found = found_ranges(made, pairs);
  ASSERT_EQ(found.size(), static_cast<size_t>(kDeepest));
  for (const FoundRange& range : found) ASSERT_EQ(range.start + range.duration, 1000000 - range.start);
}

TEST(Tracker, ScopesKeepNumbersApart) {
  Imported made;
  ImportTracker tracker(*made.writer);
  const int64_t first = tracker.process(83), gpu = tracker.device(0);
  const ScopeId other = tracker.new_scope();
  EXPECT_NE(tracker.process(83, other), first);
  EXPECT_NE(tracker.device(0, other), gpu);
  EXPECT_EQ(tracker.process(83), first);
  EXPECT_EQ(tracker.main_process(), first);
  EXPECT_EQ(tracker.process(0), first);
  EXPECT_NE(tracker.thread_track(first, 5), tracker.thread_track(tracker.process(83, other), 5));
  tracker.describe(0, {.name = "Accelerator", .properties = {{"multiprocessors", "132"}}});
  tracker.finish();
  const auto trace = made.open();
  EXPECT_EQ(trace->text(event::Table::kDevice, gpu, column::Device::name), "Accelerator");
  EXPECT_EQ(trace->cell(event::Table::kDevice, gpu, column::Device::process), first);
}

TEST(Tracker, CountersByIdAndSeries) {
  Imported made;
  ImportTracker tracker(*made.writer);
  const int64_t process = tracker.process(5);
  const int64_t used = tracker.counter_track({.process = process, .name = "mem", .series = "used"});
  const int64_t alone = tracker.counter_track({.process = process, .name = "alone", .series = "v"});
  EXPECT_EQ(tracker.counter_track({.process = process, .name = "mem", .series = "used"}), used);
  const int64_t zero = tracker.counter_track({.process = process, .name = "util", .id = "0", .series = "v"});
  EXPECT_NE(tracker.counter_track({.process = process, .name = "util", .id = "1", .series = "v"}), zero);
  EXPECT_NE(tracker.counter_track({.process = process, .name = "mem", .series = "free"}), used);
  tracker.finish();
  const auto trace = made.open();
  const auto name = [&](int64_t track) {
    return std::string(trace->text(event::Table::kTrack, track, column::Track::name));
  };
  EXPECT_EQ(name(used), "used");
  EXPECT_EQ(name(alone), "");
  EXPECT_EQ(name(zero), "0");
}

}  // namespace
}  // namespace tacho::test
