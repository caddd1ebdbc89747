// Writing and reading whole traces: every table there and back, dictionaries, order, flushing, and the policies --ring,
// --max-size and --aggregate.
#include "trace/write/writer.h"

#include <sys/stat.h>

#include <set>

#include "trace/rows.h"

namespace tacho::trace {
namespace {

using event::LossReason;
namespace column = event::column;
namespace row = event::row;

TEST(Writer, EveryTableThereAndBack) {
  Folder folder;
  for (const bool extremes : {false, true}) {
    for (const uint32_t slab_rows : {100u, 65536u}) {
      RandomRows random(extremes ? 1 : 2);
      WriterOptions options;
      options.overwrite = true;
      options.slab_rows = slab_rows;
      auto writer = must(TraceWriter::create(folder / "t.tacho", options));
      make_targets(*writer);
      std::map<Table, std::vector<Row>> written;
      for (int i = 0; i < 1000; ++i) {
        for (const Table table : fact_tables()) {
          if (table == Table::kLoss) continue;
          written[table].push_back(random.row(table, extremes));
          Cells::add(*writer, table, written[table].back());
        }
      }
      writer->lose(3, Table::kApi, LossReason::kPoolFull, 17);
      writer->lose(3, Table::kApi, LossReason::kPoolFull, 25);
      const auto trace = must(writer->finish_and_open());
      EXPECT_TRUE(trace->complete());
      EXPECT_TRUE(trace->note().empty());
      for (const Table table : fact_tables()) {
        if (table == Table::kLoss) continue;
        EXPECT_EQ(trace->rows(table), 1000);
        const auto back = all_rows(*trace, table);
        EXPECT_EQ(sorted(back), sorted(written[table])) << event::table_info(table).name;
      }
      EXPECT_EQ(
          all_rows(*trace, Table::kLoss),
          (std::vector<Row>{{3, static_cast<int64_t>(Table::kApi), static_cast<int64_t>(LossReason::kPoolFull), 42}}));
    }
  }
}

TEST(Writer, EmptyTrace) {
  Folder folder;
  auto writer = must(TraceWriter::create(folder / "t.tacho"));
  const auto trace = must(writer->finish_and_open());
  EXPECT_TRUE(trace->complete());
  EXPECT_EQ(trace->time_range(), (std::pair<int64_t, int64_t>(0, 0)));
  EXPECT_EQ(trace->rows(Table::kDispatch), 0);
  EXPECT_EQ(trace->rows(Table::kKernel), 1);
  EXPECT_EQ(trace->string(0), "");
  EXPECT_EQ(trace->string(5), "");
  EXPECT_TRUE(must(trace->merged_summaries(Table::kDispatch)).empty());
}

TEST(Writer, ChunksAreSortedAndZoneMapsHold) {
  Folder folder;
  WriterOptions options;
  options.slab_rows = 3000;
  auto writer = must(TraceWriter::create(folder / "t.tacho", options));
  make_targets(*writer);
  RandomRows random(3);
  for (int i = 0; i < 10'000; ++i) Cells::add(*writer, Table::kApi, random.row(Table::kApi, false));
  for (int i = 0; i < 10'000; ++i) {  // a table whose rows come in no order at all
    Row row = random.row(Table::kMarker, false);
    row[column::Marker::start] = static_cast<int64_t>(random.random()() % 1'000'000'000);
    row[column::Marker::track] = static_cast<int64_t>(random.random()() % kTargets);
    Cells::add(*writer, Table::kMarker, row);
  }
  const auto trace = must(writer->finish_and_open());
  for (const Table table : {Table::kApi, Table::kMarker}) {
    std::vector<int64_t> track, start, duration;
    for (size_t c = 0; c < trace->chunks(table).size(); ++c) {
      const Chunk chunk = trace->chunks(table)[c];
      must(trace->decode(table, c, column::Fact::track, track));
      must(trace->decode(table, c, column::Fact::start, start));
      must(trace->decode(table, c, column::Fact::duration, duration));
      ASSERT_EQ(track.size(), chunk.rows);
      int64_t max_end = start[0];
      for (size_t i = 0; i < track.size(); ++i) {
        if (i > 0) {
          ASSERT_TRUE(track[i - 1] < track[i] || (track[i - 1] == track[i] && start[i - 1] <= start[i]));
        }
        max_end = std::max(max_end, start[i] + duration[i]);
      }
      EXPECT_EQ(chunk.min_start, *std::min_element(start.begin(), start.end()));
      EXPECT_EQ(chunk.max_start, *std::max_element(start.begin(), start.end()));
      EXPECT_EQ(chunk.max_end, max_end);
      EXPECT_EQ(chunk.min_track, track.front());
      EXPECT_EQ(chunk.max_track, track.back());
    }
  }
}

TEST(Writer, EqualRowsOfAChunkKeepTheirOrderOfArrival) {
  Folder folder;
  auto writer = must(TraceWriter::create(folder / "t.tacho"));
  make_targets(*writer);
  std::mt19937_64 random(4);
  for (int64_t i = 0; i < 20'000; ++i) {
    writer->add(row::Sync{.track = static_cast<int64_t>(random() % 3),
                          .start = static_cast<int64_t>(random() % 50),
                          .duration = 1,
                          .dim = 1,
                          .correlation = i});
  }
  const auto trace = must(writer->finish_and_open());
  const auto rows = all_rows(*trace, Table::kSync);
  for (size_t i = 1; i < rows.size(); ++i) {
    const Row& a = rows[i - 1];
    const Row& b = rows[i];
    ASSERT_TRUE(a[0] < b[0] || (a[0] == b[0] && (a[1] < b[1] || (a[1] == b[1] && a[4] < b[4]))));
  }
}

TEST(Writer, StringsAndDimensionsAreDeduplicated) {
  Folder folder;
  auto writer = must(TraceWriter::create(folder / "t.tacho"));
  EXPECT_EQ(writer->string(""), 0);
  const int64_t a = writer->string("a");
  const std::string binary("x\0y\xff", 4);
  const int64_t b = writer->string(binary);
  EXPECT_EQ(writer->string("a"), a);
  EXPECT_NE(a, b);
  const int64_t zeros = writer->dimension(row::Function{});
  EXPECT_EQ(zeros, 1) << "a row of zeros is not row 0";
  const int64_t f = writer->dimension(row::Function{.name = a, .domain = event::Domain::kCudaRuntime});
  EXPECT_EQ(writer->dimension(row::Function{.name = a, .domain = event::Domain::kCudaRuntime}), f);
  EXPECT_EQ(writer->dimension(row::Function{}), zeros);
  must(writer->flush());
  EXPECT_EQ(writer->dimension(row::Function{.name = a, .domain = event::Domain::kCudaRuntime}), f)
      << "known after a flush too";
  EXPECT_EQ(writer->rows(Table::kFunction), 3);
  writer->property(Table::kEnd, 0, "user", "me");
  writer->property(Table::kFunction, f, "key", "value");
  writer->property(Table::kFunction, f, "key", "newer");
  const std::string huge(5 << 20, 'h');
  const int64_t h = writer->string(huge);
  const auto trace = must(writer->finish_and_open());
  EXPECT_EQ(trace->string(a), "a");
  EXPECT_EQ(trace->string(b), binary);
  EXPECT_EQ(trace->string(h), huge);
  EXPECT_EQ(trace->text(Table::kFunction, f, column::Function::name), "a");
  EXPECT_EQ(trace->cell(Table::kFunction, f, column::Function::domain), 2);
  EXPECT_EQ(trace->cell(Table::kFunction, 0, 0), 0);
  EXPECT_EQ(trace->cell(Table::kFunction, 99, 0), 0);
  EXPECT_EQ(trace->cell(Table::kFunction, -1, 0), 0);
  EXPECT_EQ(trace->cell(Table::kFunction, f, 7), 0);
  EXPECT_EQ(trace->rows(Table::kFunction), 3);
  EXPECT_EQ(trace->property(Table::kEnd, 0, "user"), "me");
  EXPECT_EQ(trace->property(Table::kFunction, f, "key"), "newer");
  EXPECT_EQ(trace->property(Table::kFunction, f, "absent"), std::nullopt);
}

// Any number that comes back as it is in a column of row `row` (from 1): a code that there is, a row before the 3000
// that every dimension has or before its own, a time.
int64_t cell(const event::Column& column, Table table, int64_t row, uint64_t word) {
  if (column.type == event::Type::kRow)
    return static_cast<int64_t>(word % static_cast<uint64_t>(column.target == table ? row : 3000));
  if (column.type == event::Type::kString) return static_cast<int64_t>(word % 200'000);
  if (column.type != event::Type::kInteger && column.type != event::Type::kId && column.enumeration == nullptr)
    return static_cast<int64_t>(word >> 4);
  if (column.enumeration == nullptr) return static_cast<int64_t>(word);
  return column.enumeration->values[word % column.enumeration->values.size()].code;
}

TEST(Writer, ManyDimensionRowsOfEveryTable) {
  Folder folder;
  auto writer = must(TraceWriter::create(folder / "t.tacho"));
  std::mt19937_64 random(5);
  std::map<Table, std::vector<Row>> rows;
  for (const event::TableInfo& info : event::all_tables()) {
    if (event::is_fact(info.table) || info.table == Table::kString) continue;
    size_t own = 0;  // the column that makes every row another
    while (info.columns[own].enumeration != nullptr) ++own;
    for (int i = 0; i < (info.table == Table::kLabel ? 150'000 : 3000); ++i) {
      Row row;
      for (size_t c = 0; c < info.columns.size(); ++c) {
        const uint64_t word = random();
        row.push_back(c == own ? i : cell(info.columns[c], info.table, i + 1, word >> (word % 64)));
      }
      rows[info.table].push_back(row);
      ASSERT_EQ(Cells::dimension(*writer, info.table, row), i + 1);
    }
  }
  for (int i = 0; i < 200'000; ++i) ASSERT_EQ(writer->string(fmt::format("string number {}", i)), i + 1);
  must(writer->flush());
  std::vector<std::pair<Table, Row>> updates;
  for (int i = 0; i < 2000; ++i) {  // of rows that are on disk, and of some that are not yet
    auto& [table, of_table] = *std::next(rows.begin(), static_cast<ptrdiff_t>(random() % rows.size()));
    const size_t row = random() % of_table.size();
    const size_t c = random() % of_table[row].size();
    of_table[row][c] =
        cell(event::table_info(table).columns[c], table, static_cast<int64_t>(row) + 1, random() >> (random() % 64));
    writer->update(table, static_cast<int64_t>(row) + 1, static_cast<int>(c), of_table[row][c]);
  }
  const auto trace = must(writer->finish_and_open());
  for (const auto& [table, of_table] : rows) {
    ASSERT_EQ(trace->rows(table), static_cast<int64_t>(of_table.size()) + 1);
    for (size_t i = 0; i < of_table.size(); ++i) {
      for (size_t c = 0; c < of_table[i].size(); ++c) {
        ASSERT_EQ(trace->cell(table, static_cast<int64_t>(i) + 1, static_cast<int>(c)), of_table[i][c]);
      }
    }
  }
  for (int i = 0; i < 200'000; i += 7) ASSERT_EQ(trace->string(i + 1), fmt::format("string number {}", i));
}

TEST(Writer, WhatWasFlushedIsReadableWhileWritingAndCountedOnce) {
  Folder folder;
  WriterOptions options;
  options.slab_rows = 4000;
  auto writer = must(TraceWriter::create(folder / "t.tacho", options));
  make_targets(*writer);
  RandomRows random(6);
  std::vector<Row> written;
  for (int flush = 0; flush < 200; ++flush) {
    const int count = static_cast<int>(random.random()() % 300);
    for (int i = 0; i < count; ++i) {
      Row row = random.row(Table::kApi, false);
      row[column::Api::dim] = writer->dimension(
          row::Function{.name = writer->string(fmt::format("f{}", i % (flush + 1))), .domain = event::Domain::kOpenCL});
      written.push_back(row);
      Cells::add(*writer, Table::kApi, row);
    }
    if (flush % 10 == 0) writer->lose(0, Table::kCopy, LossReason::kVendor, 1);
    must(writer->flush());
    if (flush % 7 != 0) continue;
    const auto trace = must(Trace::open(writer->temporary_path()));
    EXPECT_FALSE(trace->complete());
    EXPECT_FALSE(trace->note().empty());
    ASSERT_EQ(sorted(all_rows(*trace, Table::kApi)), sorted(written)) << "after flush " << flush;
    EXPECT_EQ(lost(*trace, Table::kCopy, LossReason::kVendor), flush / 10 + 1);
    EXPECT_EQ(trace->rows(Table::kLoss), 1);
  }
  const std::string partial = writer->temporary_path();
  const uint64_t flushed_size = std::filesystem::file_size(partial);
  const auto trace = must(writer->finish_and_open());
  EXPECT_FALSE(std::filesystem::exists(partial));
  EXPECT_EQ(sorted(all_rows(*trace, Table::kApi)), sorted(written));
  EXPECT_TRUE(trace->complete());

  auto at_once = must(TraceWriter::create(folder / "once.tacho", options));
  for (size_t i = 0; i < written.size(); ++i) {
    at_once->dimension(
        row::Function{.name = at_once->string(fmt::format("f{}", i % 200)), .domain = event::Domain::kOpenCL});
    Cells::add(*at_once, Table::kApi, written[i]);
  }
  const auto once = must(at_once->finish_and_open());
  EXPECT_LT(trace->file_size(), once->file_size() * 2 + 200 * 300) << "flushing often must not cost small slabs";
  EXPECT_LT(flushed_size, trace->file_size() * 2);
}

TEST(Writer, RefusesAndReplacesExistingFiles) {
  Folder folder;
  write_file(folder / "old", std::vector<uint8_t>{1, 2, 3});
  const auto refused = TraceWriter::create(folder / "old");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(" exists"), std::string::npos);
  EXPECT_EQ(read_file(folder / "old").size(), 3u);

  WriterOptions options;
  options.overwrite = true;
  {
    auto dropped = must(TraceWriter::create(folder / "old", options));
    dropped->add(row::Sync{.track = 1, .start = 2, .duration = 3, .dim = 4, .correlation = 5});
  }
  EXPECT_EQ(read_file(folder / "old").size(), 3u) << "a writer that is not finished leaves the old file alone";
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "and nothing of its own";

  auto writer = must(TraceWriter::create(folder / "old", options));
  must(writer->finish());
  EXPECT_TRUE(must(Trace::open(folder / "old"))->complete());

  std::filesystem::create_symlink("old", folder / "link");
  auto through = must(TraceWriter::create(folder / "link", options));
  must(through->finish());
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));

  EXPECT_FALSE(TraceWriter::create(folder / "missing/t.tacho"));
  EXPECT_FALSE(TraceWriter::create(folder.path(), options));
  EXPECT_FALSE(TraceWriter::create("/dev/null", options));
  EXPECT_FALSE(TraceWriter::create(""));

  auto first = must(TraceWriter::create(folder / "race"));
  auto second = must(TraceWriter::create(folder / "race"));
  must(first->finish());
  const Status late = second->finish();
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().message.find(".partial-"), std::string::npos) << late.error().message;
}

TEST(Writer, TemporaryTraceHasNoName) {
  auto writer = must(TraceWriter::create_temporary());
  make_targets(*writer);
  EXPECT_EQ(writer->temporary_path(), "");
  writer->add(row::Sync{.track = 1, .start = 2, .duration = 3, .dim = 4, .correlation = 5});
  const auto trace = must(writer->finish_and_open());
  writer.reset();
  EXPECT_EQ(all_rows(*trace, Table::kSync), (std::vector<Row>{{1, 2, 3, 4, 5}}));
}

// Fills a writer with `count` API rows and a note and clock a thousand; returns the rows.
std::vector<Row> fill(TraceWriter& writer, int count, uint64_t seed) {
  RandomRows random(seed);
  std::vector<Row> rows;
  for (int i = 0; i < count; ++i) {
    Row row = random.row(Table::kApi, false);
    row[column::Api::dim] = writer.dimension(
        row::Function{.name = writer.string(fmt::format("function {}", i % 500)), .domain = event::Domain::kOpenCL});
    rows.push_back(row);
    Cells::add(writer, Table::kApi, row);
    if (i % 1000 == 0) writer.add(row::Clock{.raw = i, .monotonic = i, .boottime = i, .realtime = i});
    if (i % 1000 == 500) writer.note(0, event::NoteSeverity::kInfo, fmt::format("note {}", i));
    if (i % 3001 == 0) {
      EXPECT_TRUE(writer.flush());
    }
  }
  return rows;
}

TEST(Policies, MaxSizeIsKeptAndTheRestCounted) {
  Folder folder;
  for (const uint64_t limit : {uint64_t{64} << 10, uint64_t{300} << 10, uint64_t{2} << 20}) {
    WriterOptions options;
    options.max_size = limit;
    options.overwrite = true;
    auto writer = must(TraceWriter::create(folder / "t.tacho", options));
    make_targets(*writer);
    const auto rows = fill(*writer, 400'000, 7);
    const auto trace = must(writer->finish_and_open());
    EXPECT_TRUE(trace->complete());
    EXPECT_LE(trace->file_size(), limit);
    EXPECT_GT(trace->file_size(), limit / 2);
    const auto kept = all_rows(*trace, Table::kApi);
    EXPECT_GT(kept.size(), 1000u);
    EXPECT_EQ(static_cast<int64_t>(kept.size()) + lost(*trace, Table::kApi, LossReason::kMaxSize), 400'000);
    std::vector<Row> first(rows.begin(), rows.begin() + static_cast<ptrdiff_t>(kept.size()));
    EXPECT_EQ(sorted(kept), sorted(first)) << "the oldest rows are the ones kept";
    EXPECT_EQ(trace->rows(Table::kClock), 400);
  }
}

TEST(Policies, MemoryKeepsAllocationsAndWhatIsNew) {
  Folder folder;
  WriterOptions options;
  options.memory_keep_ns = 1;
  options.slab_rows = 256;
  auto writer = must(TraceWriter::create(folder / "t.tacho", options));
  make_targets(*writer);
  RandomRows random(8);
  std::vector<Row> allocations;
  for (int i = 0; i < 50'000; ++i) {
    Cells::add(*writer, Table::kApi, random.row(Table::kApi, false));
    if (i % 10 == 0) {
      allocations.push_back(random.row(Table::kAllocation, false));
      Cells::add(*writer, Table::kAllocation, allocations.back());
    }
    if (i % 5000 == 0) must(writer->flush());
  }
  const auto trace = must(writer->finish_and_open());
  EXPECT_TRUE(trace->complete());
  EXPECT_EQ(sorted(all_rows(*trace, Table::kAllocation)), sorted(allocations));
  EXPECT_EQ(lost(*trace, Table::kAllocation, LossReason::kRingOverwritten), 0);
  const auto kept = static_cast<int64_t>(all_rows(*trace, Table::kApi).size());
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 10'000);
  EXPECT_EQ(kept + lost(*trace, Table::kApi, LossReason::kRingOverwritten), 50'000);
}

TEST(Policies, RingKeepsTheNewest) {
  Folder folder;
  for (const uint64_t limit : {uint64_t{100} << 10, uint64_t{1} << 20}) {
    WriterOptions options;
    options.ring_size = limit;
    options.overwrite = true;
    auto writer = must(TraceWriter::create(folder / "t.tacho", options));
    make_targets(*writer);
    RandomRows random(8);
    std::vector<Row> rows;
    uint64_t largest = 0;
    for (int i = 0; i < 500'000; ++i) {
      Row row = random.row(Table::kApi, false);
      row[column::Api::dim] = writer->dimension(
          row::Function{.name = writer->string(fmt::format("function {}", i / 100)), .domain = event::Domain::kOpenCL});
      rows.push_back(row);
      Cells::add(*writer, Table::kApi, row);
      if (i % 5000 == 0) {
        must(writer->flush());
        largest = std::max(largest, writer->bytes());
      }
      if (i == 300'000) {  // killed here, the file would hold the ring of that moment
        const auto early = must(Trace::open(writer->temporary_path()));
        EXPECT_FALSE(early->complete());
        const auto kept = all_rows(*early, Table::kApi);
        EXPECT_GT(kept.size() * 8, limit / 2);
        EXPECT_EQ(early->text(Table::kFunction, kept.back()[column::Api::dim], 0).substr(0, 8), "function");
      }
    }
    // Slabs take `limit`; beside them there are the dictionary and a slab or two on the move.
    EXPECT_LT(largest, limit + limit / 2 + 600'000);
    const auto trace = must(writer->finish_and_open());
    EXPECT_TRUE(trace->complete());
    const auto kept = all_rows(*trace, Table::kApi);
    EXPECT_GT(kept.size(), limit / 16);
    EXPECT_EQ(static_cast<int64_t>(kept.size()) + lost(*trace, Table::kApi, LossReason::kRingOverwritten), 500'000);
    // Referenced rows have other numbers, because the end left out those without a reference.
    const auto by_number = [&](std::vector<Row> of) {
      const auto columns = event::table_info(Table::kApi).columns;
      for (size_t c = 0; c < columns.size(); ++c)
        if (columns[c].type == event::Type::kRow || columns[c].type == event::Type::kString)
          for (Row& row : of) row[c] = 0;
      return sorted(std::move(of));
    };
    const std::vector<Row> last(rows.end() - static_cast<ptrdiff_t>(kept.size()), rows.end());
    EXPECT_EQ(by_number(kept), by_number(last));
    std::map<int64_t, int64_t> functions;  // of an event, by its correlation
    for (size_t i = 0; i < rows.size(); ++i)
      functions[rows[i][column::Api::correlation]] = static_cast<int64_t>(i) / 100;
    for (const Row& row : kept) {
      ASSERT_EQ(trace->text(Table::kFunction, row[column::Api::dim], 0),
                fmt::format("function {}", functions.at(row[column::Api::correlation])));
    }
    if (limit < (1u << 20)) {
      EXPECT_LT(trace->rows(Table::kFunction), 1 + static_cast<int64_t>(kept.size()) / 100 + 3);
    }
    EXPECT_LT(trace->file_size(), limit + limit / 2 + 400'000);
  }
}

TEST(Policies, AggregateKeepsSumsOnly) {
  Folder folder;
  WriterOptions options;
  auto full = must(TraceWriter::create(folder / "full.tacho", options));
  make_targets(*full);
  options.aggregate = true;
  auto sums = must(TraceWriter::create(folder / "sums.tacho", options));
  make_targets(*sums);
  fill(*full, 200'000, 9);
  fill(*sums, 200'000, 9);
  sums->add(row::Reading{.track = 1, .start = 2, .value = 3});
  const auto a = must(full->finish_and_open());
  const auto b = must(sums->finish_and_open());
  EXPECT_TRUE(b->aggregated());
  EXPECT_FALSE(a->aggregated());
  EXPECT_EQ(b->rows(Table::kApi), 0);
  EXPECT_EQ(b->rows(Table::kClock), 200);
  EXPECT_EQ(b->time_range(), a->time_range());
  EXPECT_EQ(lost(*b, Table::kReading, LossReason::kAggregated), 1);
  EXPECT_LT(b->file_size(), a->file_size() / 4);
  const auto of_a = must(a->merged_summaries(Table::kApi));
  const auto of_b = must(b->merged_summaries(Table::kApi));
  ASSERT_EQ(of_a.size(), of_b.size());
  for (size_t i = 0; i < of_a.size(); ++i) {
    EXPECT_EQ(of_a[i].track, of_b[i].track);
    EXPECT_EQ(of_a[i].dim, of_b[i].dim);
    EXPECT_EQ(of_a[i].count, of_b[i].count);
    EXPECT_EQ(of_a[i].sum, of_b[i].sum);
    EXPECT_EQ(of_a[i].min, of_b[i].min);
    EXPECT_EQ(of_a[i].max, of_b[i].max);
    EXPECT_NEAR(of_a[i].m2, of_b[i].m2, of_a[i].m2 * 1e-9);
  }
  const auto h_a = must(a->merged_histogram(Table::kApi));
  const auto h_b = must(b->merged_histogram(Table::kApi));
  ASSERT_EQ(h_a.size(), h_b.size());
  for (size_t i = 0; i < h_a.size(); ++i) {
    EXPECT_EQ(h_a[i].dim, h_b[i].dim);
    EXPECT_EQ(h_a[i].bucket, h_b[i].bucket);
    EXPECT_EQ(h_a[i].count, h_b[i].count);
  }
  EXPECT_FALSE(must(b->merged_busy(Table::kApi)).empty());
}

TEST(Policies, AggregateIsBoundedAndLosesNoTime) {
  Folder folder;
  WriterOptions options;
  options.aggregate = true;
  auto writer = must(TraceWriter::create(folder / "t.tacho", options));
  make_targets(*writer);
  make_targets(*writer, 300'000, Table::kLabel);
  int64_t sum = 0;
  for (int64_t i = 0; i < 300'000; ++i) {
    writer->add(row::Marker{.track = 1 + i % 3, .start = i * 10, .duration = i % 100, .dim = 1 + i});
    sum += i % 100;
  }
  const auto trace = must(writer->finish_and_open());
  const auto summaries = must(trace->merged_summaries(Table::kMarker));
  EXPECT_LE(summaries.size(), 33'000u);
  int64_t count = 0;
  int64_t got = 0;
  for (const Summary& summary : summaries) count += summary.count, got += summary.sum;
  EXPECT_EQ(count, 300'000);
  EXPECT_EQ(got, sum);
  EXPECT_EQ(lost(*trace, Table::kMarker, LossReason::kAggregated), 300'000 - 32'768);
}

}  // namespace
}  // namespace tacho::trace
