// Statistics per name: right sums, read from summaries alone, in bounded memory however many the names are.
#include "analysis/stats.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "base/format.h"
#include "trace/rows.h"

namespace tacho::analysis {
namespace {

namespace row = event::row;

using trace::Folder;
using trace::must;
using trace::TraceWriter;
using trace::WriterOptions;

int64_t kernel(TraceWriter& writer, const std::string& name, int64_t grid) {
  return writer.dimension(row::Kernel{.name = writer.string(name), .grid_x = grid});
}

struct Expected {
  int64_t count = 0, total = 0, min = INT64_MAX, max = INT64_MIN;
};

// 500 kernels in two shapes on 8 queues: too many pairs for the chunks' own summaries.
std::shared_ptr<const trace::Trace> many_pairs(const Folder& folder, uint64_t ring,
                                               std::map<std::string, Expected>& expected) {
  WriterOptions options;
  options.slab_rows = 10'000;
  options.ring_size = ring;
  auto writer = must(TraceWriter::create(folder / "pairs.tacho", options));
  for (int64_t queue = 1; queue <= 8; ++queue) writer->dimension(row::Track{.native = queue});
  std::vector<int64_t> dims;
  for (int64_t k = 0; k < 1000; ++k) dims.push_back(kernel(*writer, fmt::format("kernel_{}", k / 2), 64 << k % 2));
  std::mt19937_64 random(7);
  for (int64_t i = 0; i < 65'000; ++i) {
    const uint64_t k = random() % 1000;
    const auto duration = static_cast<int64_t>(random() % 100'000);
    writer->add(row::Dispatch{.track = 1 + static_cast<int64_t>(random() % 8),
                              .start = i * 1000,
                              .duration = duration,
                              .dim = dims[k],
                              .correlation = i,
                              .queued_ahead = 0,
                              .submit_ahead = 0,
                              .ordinal = i});
    Expected& sum = expected[fmt::format("kernel_{}", k / 2)];
    ++sum.count;
    sum.total += duration;
    sum.min = std::min(sum.min, duration);
    sum.max = std::max(sum.max, duration);
    if (i % 7000 == 0) {
      EXPECT_TRUE(writer->flush());  // slabs are written several times before they are final
    }
  }
  return must(writer->finish_and_open());
}

void expect_rows(const trace::Trace& trace, const std::map<std::string, Expected>& expected) {
  const auto rows = must(statistics(trace, By::kKernel));
  ASSERT_EQ(rows.size(), expected.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const Expected& want = expected.at(rows[i].name);
    EXPECT_EQ(rows[i].count, want.count) << rows[i].name;
    EXPECT_EQ(rows[i].total, want.total) << rows[i].name;
    EXPECT_EQ(rows[i].min, want.min) << rows[i].name;
    EXPECT_EQ(rows[i].max, want.max) << rows[i].name;
    if (i > 0) {
      EXPECT_GE(rows[i - 1].total, rows[i].total);
    }
  }
}

TEST(Statistics, ReadNoRowOfAFinishedTrace) {
  const Folder folder;
  std::map<std::string, Expected> expected;
  const auto trace = many_pairs(folder, 0, expected);
  ASSERT_GE(trace->chunks(event::Table::kDispatch).size(), 6u);
  const uint64_t before = trace->columns_decoded();
  expect_rows(*trace, expected);
  EXPECT_EQ(trace->columns_decoded(), before);
}

TEST(Statistics, OfARingComeFromItsRows) {
  const Folder folder;
  std::map<std::string, Expected> expected;
  const auto trace = many_pairs(folder, 1 << 20, expected);  // roomy: nothing is overwritten
  const uint64_t before = trace->columns_decoded();
  if (trace->rows(event::Table::kDispatch) == 65'000) expect_rows(*trace, expected);
  int64_t count = 0;
  for (const StatRow& row : must(statistics(*trace, By::kKernel))) count += row.count;
  EXPECT_EQ(count, trace->rows(event::Table::kDispatch));
  EXPECT_GT(trace->columns_decoded(), before) << "the sums of rows that were overwritten are no use";
}

TEST(Statistics, OfMarksWithoutDurationSortByName) {
  const Folder folder;
  auto writer = must(TraceWriter::create(folder / "ties.tacho", {}));
  writer->dimension(row::Track{.native = 1});
  for (const char* name : {"b", "c", "a", "b"})
    writer->add(row::Marker{
        .track = 1, .start = 1000, .duration = 0, .dim = writer->dimension(row::Label{.name = writer->string(name)})});
  const auto rows = must(statistics(*must(writer->finish_and_open()), By::kMarker));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].name, "a");
  EXPECT_EQ(rows[1].name, "b");
  EXPECT_EQ(rows[1].count, 2);
  EXPECT_EQ(rows[2].name, "c");
}

// A child with room for 96 MiB more than the open trace goes through 600 000 names, each in two colours.
TEST(Statistics, OfManyNamesNeedLittleMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve memory that the limit would count";
#endif
  const Folder folder;
  constexpr int64_t kNames = 600'000;
  {
    auto writer = must(TraceWriter::create(folder / "names.tacho", {}));
    writer->dimension(row::Track{.native = 1});
    for (int64_t i = 0; i < 2 * kNames; ++i) {
      const int64_t name = writer->string(fmt::format("a marker of step {} of the run", i % kNames));
      const int64_t label = writer->dimension(row::Label{.name = name, .category = i / kNames});
      writer->add(row::Marker{.track = 1, .start = i * 100, .duration = 10 + i % kNames, .dim = label});
    }
    ASSERT_TRUE(writer->finish());
  }
  const auto trace = must(trace::Trace::open(folder / "names.tacho"));
  const pid_t child = fork();
  if (child == 0) {
    long pages[6] = {};
    FILE* const statm = fopen("/proc/self/statm", "r");
    for (long& page : pages)
      if (fscanf(statm, "%ld", &page) != 1) _exit(2);
    fclose(statm);
    const auto limit = static_cast<rlim_t>(pages[5]) * 4096 + (96u << 20);
    const rlimit data{limit, limit};
    if (setrlimit(RLIMIT_DATA, &data) != 0) _exit(3);
    const auto table = StatTable::make(*trace, By::kMarker);
    if (!table || table->size() != kNames) _exit(4);
    const StatRow longest = table->row(0), shortest = table->row(kNames - 1);
    if (longest.total != 2 * (10 + kNames - 1) || longest.count != 2 || shortest.total != 20) _exit(5);
    if (longest.name != fmt::format("a marker of step {} of the run", kNames - 1)) _exit(6);
    if (table->calls() != 2 * kNames) _exit(7);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status) << ": no memory left";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Stats, BytesAreThoseOfTheCopiesThatHaveASize) {
  const Folder folder;
  {
    auto writer = must(TraceWriter::create(folder / "copies.tacho", {}));
    writer->dimension(row::Track{.native = 1});
    const auto shape = [&](event::CopyDirection direction) {
      return writer->dimension(row::CopyShape{.direction = direction});
    };
    const int64_t in = shape(event::CopyDirection::kHostToDevice), out = shape(event::CopyDirection::kDeviceToHost);
    writer->add(row::Copy{.track = 1, .start = 0, .duration = 10, .dim = in, .bytes = 400});
    writer->add(row::Copy{.track = 1, .start = 20, .duration = 90, .dim = in});
    writer->add(row::Copy{.track = 1, .start = 200, .dim = in, .bytes = 5});
    writer->add(row::Copy{.track = 1, .start = 300, .duration = 7, .dim = out});
    ASSERT_TRUE(writer->finish());
  }
  const auto rows = must(statistics(*must(trace::Trace::open(folder / "copies.tacho")), By::kCopy));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].count, 3);
  EXPECT_EQ(rows[0].total, 100);
  EXPECT_EQ(rows[0].sized, 2);
  EXPECT_EQ(rows[0].bytes, 405);
  EXPECT_DOUBLE_EQ(*rows[0].rate(), 40.5) << "the time of the copy without a size does not count";
  EXPECT_EQ(rows[1].sized, 0);
  EXPECT_FALSE(rows[1].rate());
  EXPECT_EQ(unsized_sentence(rows), "2 of 4 have no size: bytes and GB/s are those of the others");
  EXPECT_EQ(unsized_sentence({&rows[1], 1}), "none of 1 has a size");
}

TEST(Stats, RuntimeCallsAreNeitherOperatorsNorFramesOfPython) {
  const Folder folder;
  {
    auto writer = must(TraceWriter::create(folder / "calls.tacho", {}));
    writer->dimension(row::Track{.native = 1});
    const auto call = [&](const char* name, event::Domain domain, int64_t start) {
      const int64_t function = writer->dimension(row::Function{.name = writer->string(name), .domain = domain});
      writer->add(row::Api{.track = 1, .start = start, .duration = 10, .dim = function});
    };
    call("cudaLaunchKernel", event::Domain::kCudaRuntime, 0);
    call("aten::mm", event::Domain::kOperator, 0);
    call("train.py(3): step", event::Domain::kPython, 0);
    call("MPI_Send", event::Domain::kMpi, 20);
    ASSERT_TRUE(writer->finish());
  }
  const auto trace = must(trace::Trace::open(folder / "calls.tacho"));
  EXPECT_EQ(must(statistics(*trace, By::kApi)).size(), 4u);
  const auto rows = must(statistics(*trace, By::kApi, {.runtime_calls = true}));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].name, "cudaLaunchKernel");
  EXPECT_EQ(rows[0].percent, 100);
}

}  // namespace
}  // namespace tacho::analysis
