// The table on tacho's side, filled as programs fill it, and as no program should.
#include "watch/segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "watch/answer.h"
#include "watch/metrics/labels.h"
#include "watch/metrics/otlp.h"
#include "watch/page_text.h"
#include "watch/prometheus.h"

namespace tacho::watch {
namespace {

using event::WatchKind, event::WatchRow, event::WatchTable;

// The table as a program has mapped it.
class Mapped {
 public:
  explicit Mapped(const std::string& path) {
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    void* const at = mmap(nullptr, sizeof(WatchTable), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    table_ = at == MAP_FAILED ? nullptr : static_cast<WatchTable*>(at);
  }
  ~Mapped() {
    if (table_ != nullptr) munmap(table_, sizeof(WatchTable));
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  WatchTable* operator->() const { return table_; }
  explicit operator bool() const { return table_ != nullptr; }

  // `counted`: false for a program that is killed before it has told of the row.
  WatchRow& make_row(uint32_t at, std::string_view name, uint64_t count, bool counted = true) const {
    WatchRow& row = table_->rows[at];
    row.kind = WatchKind::kKernel;
    row.name_size = static_cast<uint32_t>(name.size());
    memcpy(row.name, name.data(), name.size());
    row.count = count;
    row.state = WatchRow::kReady;
    if (counted) ++table_->header.made;
    return row;
  }

 private:
  WatchTable* table_ = nullptr;
};

TEST(RowSums, OperationsThatWereNotTimedTakeTheMeanOfThoseThatWere) {
  RowSums before, now;
  before.count = 100;
  before.buckets[20] = 100;
  before.stood_ns = 100 * 1000;
  now.count = 400;
  now.buckets[20] = 100;
  now.buckets[24] = 50;  // for the other 250 none was timed yet
  now.stood_ns = before.stood_ns + 50 * 3000;
  EXPECT_DOUBLE_EQ(now.time_since(&before), 300 * 3000);
  EXPECT_DOUBLE_EQ(now.time_since(nullptr), 400 * (250'000.0 / 150));
  // None was timed meanwhile.
  RowSums later = now;
  later.count = 410;
  EXPECT_DOUBLE_EQ(later.time_since(&now), 10 * (250'000.0 / 150));
  EXPECT_EQ(now.time_since(&now), 0);
  EXPECT_EQ(before.time_since(&now), 0);
}

TEST(RowSums, BoundsStandInWhereNothingWasTimed) {
  RowSums before, now;
  before.count = 10;
  now.count = 40;
  now.levels[0] = {40, 0, 0, 0, 4, 800};
  EXPECT_DOUBLE_EQ(now.weighted_time(), 40 * 200);
  EXPECT_DOUBLE_EQ(now.time_since(&before), 30 * 200);
  EXPECT_EQ(before.time_since(nullptr), 0);
}

TEST(Segment, CountsARowAtTheFirstLookAfterItWasMade) {
  auto segment = WatchSegment::create();
  ASSERT_TRUE(segment) << segment.error().message;
  const Mapped program(segment->path());
  ASSERT_TRUE(program);
  EXPECT_EQ(segment->load(0).operations, 0U);
  WatchRow& first = program.make_row(7, "first", 3);
  EXPECT_EQ(segment->load(0.02).operations, 3U);
  first.count += 2;
  program.make_row(event::kWatchRows - 1, "last", 10);
  EXPECT_EQ(segment->load(0.04).operations, 15U);
  program->rows[0].count = 1;  // other kernels
  EXPECT_EQ(segment->load(0.06).operations, 16U);
}

TEST(Segment, FindsARowOfAProgramThatWasKilledWithinASecond) {
  auto segment = WatchSegment::create();
  ASSERT_TRUE(segment) << segment.error().message;
  const Mapped program(segment->path());
  ASSERT_TRUE(program);
  EXPECT_EQ(segment->load(0).operations, 0U);
  program.make_row(9, "untold", 4, false);
  uint64_t found = 0;
  for (int look = 0; look < 51 && found == 0; ++look) found = segment->load(0.02 * look).operations;
  EXPECT_EQ(found, 4U);
}

TEST(Segment, KnowsTimesOfLongKernelsLessWell) {
  auto segment = WatchSegment::create();
  ASSERT_TRUE(segment) << segment.error().message;
  const Mapped program(segment->path());
  ASSERT_TRUE(program);
  event::WatchHeader& header = program->header;
  header.floor_domains = header.beside_domains = 1;
  header.beside_low = 600;
  header.beside_high = 1800;
  header.beside_long_from = 16'000;
  header.beside_long_spread = 400;
  for (const auto& [at, each] : {std::pair{1U, 15'999U}, {2U, 16'000U}}) {
    WatchRow& row = program.make_row(at, at == 1 ? "short" : "long", 100);
    row.levels[0].count = 100;
    row.levels[0].timed = 100;
    row.levels[0].time = 100 * each;
  }
  const WatchSnapshot moment = segment->snapshot(1);
  ASSERT_EQ(moment.rows.size(), 2U);
  EXPECT_DOUBLE_EQ(moment.rows[0].each_ns, 300);  // a quarter of what lies between low and high
  EXPECT_DOUBLE_EQ(moment.rows[1].each_ns, 500);
}

TEST(Segment, LeavesOutWhatNoLibraryWrites) {
  auto segment = WatchSegment::create();
  ASSERT_TRUE(segment) << segment.error().message;
  const Mapped program(segment->path());
  ASSERT_TRUE(program);
  program.make_row(1, "good", 5).domain = 100;  // shifts by so much are undefined
  program->header.floor_domains = ~uint64_t{0};
  program.make_row(2, "of no kind", 5).kind = static_cast<WatchKind>(77);
  WatchRow& squares = program.make_row(3, "squares", 5);
  squares.levels[0].timed = 2;
  squares.levels[0].time = 20;
  squares.levels[0].squares = NAN;
  squares.levels[0].count = 5;
  program.make_row(4, "long", 5).name_size = UINT32_MAX;
  program->rows[4].level = UINT32_MAX;
  WatchMoment moment;
  moment.snapshot = segment->snapshot(1);
  ASSERT_EQ(moment.snapshot.rows.size(), 3U) << watch_json(moment, true);
  EXPECT_EQ(moment.snapshot.rows[2].name.size(), event::kWatchNameBytes + strlen("…"));
  const auto time = moment.snapshot.rows[1].time();
  ASSERT_TRUE(time);
  EXPECT_EQ(time->total_ns, 50);
  EXPECT_EQ(watch_json(moment, true).find("nan"), std::string::npos);
}

// Words at random places, those that tacho looks at first among them.
void scribble(const Mapped& program, const std::atomic<bool>& ends, std::atomic<uint64_t>& turns) {
  std::mt19937_64 random(7);
  constexpr uint64_t kWords = sizeof(WatchTable) / sizeof(uint64_t);
  auto* const words = reinterpret_cast<std::atomic<uint64_t>*>(program.operator->());
  for (; !ends.load(std::memory_order_relaxed); turns.fetch_add(1, std::memory_order_relaxed)) {
    WatchRow& row = program->rows[random() % event::kWatchRows];
    row.state = random() % 4 == 0 ? WatchRow::kFree : WatchRow::kReady;
    row.count = random() % 3;
    __atomic_store_n(&row.name_size, static_cast<uint32_t>(random() >> random() % 64), __ATOMIC_RELAXED);
    const auto kind = static_cast<uint32_t>(random() % 9);
    __atomic_store(reinterpret_cast<uint32_t*>(&row.kind), &kind, __ATOMIC_RELAXED);
    event::WatchPart& part = program->parts[random() % event::kWatchParts];
    part.graph = static_cast<uint32_t>(random() % (event::kWatchRows + 1));
    part.kernel = static_cast<uint32_t>(random() % (event::kWatchRows + 9));
    // Not the numbers of processes: tacho asks the kernel about them, and a test is to ask about none but its own.
    const uint64_t at = random() % kWords;
    constexpr uint64_t kFrom = offsetof(WatchTable, processes) / sizeof(uint64_t);
    constexpr uint64_t kProcessWords = event::kWatchProcesses * sizeof(event::WatchProcess) / sizeof(uint64_t);
    if (at < kFrom || at >= kFrom + kProcessWords)
      words[at].store(random() >> random() % 64, std::memory_order_relaxed);
  }
}

TEST(Segment, IsReadWhileAProgramScribblesOverIt) {
  auto segment = WatchSegment::create();
  ASSERT_TRUE(segment) << segment.error().message;
  const Mapped program(segment->path());
  ASSERT_TRUE(program);
  std::atomic<bool> ends{false};
  std::atomic<uint64_t> turns{0};
  std::thread writer([&] { scribble(program, ends, turns); });
  Governor governor(0.01);
  PrometheusPage page;
  Labels labels;
  WatchMoment before;
  for (int step = 0; step < 200 || turns < 20'000; ++step) {
    const double now = step * 0.02;
    segment->set(governor.step(segment->load(now)));
    segment->note_ends();
    if (step % 100 != 0) continue;
    WatchMoment moment;
    moment.cost = governor.cost();
    moment.snapshot = segment->snapshot(now);
    EXPECT_LE(moment.snapshot.rows.size(), event::kWatchRows);
    for (const RowSums& row : moment.snapshot.rows) {
      EXPECT_LE(row.name.size(), 4 * event::kWatchNameBytes);
      EXPECT_LT(row.level, event::kWatchLevels);
      EXPECT_FALSE(kind_name(row.kind).empty());
      EXPECT_LE(row.kernels.size(), event::kWatchParts);
    }
    constexpr size_t kMost = size_t{64} << 20;
    EXPECT_LT(watch_json(moment, true).size(), kMost);
    EXPECT_LT(page.text(moment.snapshot, moment.cost).size(), kMost);
    EXPECT_LT(otlp_message({}, 1, moment.snapshot, labels.gather(moment.snapshot), moment.cost, {}).size(), kMost);
    EXPECT_LE(page_lines(before.snapshot, moment, {}).size(), PageView().height);
    before = std::move(moment);
  }
  ends = true;
  writer.join();
}

}  // namespace
}  // namespace tacho::watch
