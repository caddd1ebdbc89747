// Typed rows (trace/read/rows.h) against the cells that they are made of.
#include "trace/read/rows.h"

#include "trace/read/reader.h"
#include "trace/rows.h"

namespace tacho::trace {
namespace {

namespace column = event::column;
using M = column::Message;
using F = column::Fact;

template <typename T>
concept HasTrack = requires(const T& row) {
  row.track;
};
template <typename T>
concept HasTag = requires(const T& row) {
  row.tag;
};
static_assert(HasTag<event::RowOf<M::tag, M::kind>> && !HasTrack<event::RowOf<M::tag, M::kind>>,
              "a row has the columns that were chosen and no others");

// Random messages, readings and calls in chunks that overlap in time.
std::shared_ptr<const Trace> sample() {
  WriterOptions options;
  options.slab_rows = 500;
  auto writer = must(TraceWriter::create_temporary(options));
  make_targets(*writer);
  RandomRows random(50);
  for (int i = 0; i < 4000; ++i)
    for (const Table table : {Table::kMessage, Table::kReading, Table::kApi})
      Cells::add(*writer, table, random.row(table, i % 7 == 0));
  return must(writer->finish_and_open());
}

std::vector<Row> by_time(const Trace& trace, Table table) {
  std::vector<Row> rows = all_rows(trace, table);
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a[1] < b[1]; });
  return rows;
}

TEST(TypedRows, ComeInOrderOfTimeWithTheCellsOfTheirColumns) {
  const auto trace = sample();
  const std::vector<Row> want = by_time(*trace, Table::kMessage);
  size_t at = 0;
  Status status;
  for (const auto& message : rows<M::tag, M::start, M::kind>(*trace, status)) {
    ASSERT_LT(at, want.size());
    EXPECT_EQ(message.start, want[at][M::start]);
    EXPECT_EQ(message.tag, want[at][M::tag]);
    EXPECT_EQ(message.kind.value, want[at][M::kind]);
    EXPECT_EQ(message.kind == event::MessageKind::kSend,
              want[at][M::kind] == static_cast<int64_t>(event::MessageKind::kSend));
    ++at;
  }
  must(status);
  EXPECT_EQ(at, want.size());
}

TEST(TypedRows, KeepToAStretchOfTime) {
  const auto trace = sample();
  const std::vector<Row> all = by_time(*trace, Table::kApi);
  const int64_t from = all[1000][1], to = all[2000][1];
  int64_t count = 0;
  Status status;
  for (const auto& call : rows<column::Api::start>(*trace, status, from, to)) {
    EXPECT_GE(call.start, from);
    EXPECT_LT(call.start, to);
    ++count;
  }
  must(status);
  EXPECT_EQ(count,
            std::count_if(all.begin(), all.end(), [&](const Row& row) { return row[1] >= from && row[1] < to; }));
}

TEST(TypedRows, GiveDoublesAndTellUnknownOnes) {
  const auto trace = sample();
  const std::vector<Row> want = by_time(*trace, Table::kReading);
  RowCursor<column::Reading::value> reading(*trace);
  size_t at = 0, unknown = 0;
  for (; reading.next(); ++at) {
    EXPECT_EQ(reading.start(), want[at][column::Reading::start]) << "the start is there without its column";
    EXPECT_EQ(reading->value.cell, want[at][column::Reading::value]);
    EXPECT_EQ(std::bit_cast<int64_t>(reading->value.value()), want[at][column::Reading::value]);
    unknown += reading->value.known() ? 0 : 1;
  }
  must(reading.status());
  EXPECT_EQ(at, want.size());
  EXPECT_GT(unknown, 0u);
}

TEST(TypedRows, DecodeOnlyTheColumnsThatWereChosen) {
  const auto trace = sample();
  const size_t chunks = trace->chunks(Table::kMessage).size();
  const uint64_t before = trace->columns_decoded();
  ChunkReader<M::tag, M::peer> messages(*trace);
  while (messages.next()) {
  }
  must(messages.status());
  EXPECT_EQ(trace->columns_decoded() - before, 2 * chunks);
  RowCursor<M::tag> by_start(*trace);
  while (by_start.next()) {
  }
  must(by_start.status());
  EXPECT_EQ(trace->columns_decoded() - before, 4 * chunks) << "the tag, and the start for the order";
}

TEST(TypedRows, HaveTheFiveColumnsOfEveryTimedTable) {
  const auto trace = sample();
  for (const Table table : {Table::kMessage, Table::kApi}) {
    const std::vector<Row> want = by_time(*trace, table);
    size_t at = 0;
    Status status;
    for (const auto& fact : rows<F::track, F::start, F::duration, F::dim, F::correlation>(*trace, table, status)) {
      EXPECT_EQ((Row{fact.track, fact.start, fact.duration, fact.dim, fact.correlation}),
                Row(want[at].begin(), want[at].begin() + 5));
      ++at;
    }
    must(status);
    EXPECT_EQ(at, want.size());
  }
}

TEST(TypedRows, AreRefusedForATableWithoutTheseColumns) {
  const auto trace = sample();
  for (const Table table : {Table::kReading, Table::kLoss}) {
    RowCursor<F::track, F::duration> cursor(*trace, table);
    EXPECT_FALSE(cursor.next());
    EXPECT_FALSE(cursor.status());
    EXPECT_FALSE((ChunkReader<F::track>(*trace, table).read(0)));
  }
}

TEST(TypedChunks, HaveColumnsByNameInFileOrder) {
  const auto trace = sample();
  const std::vector<Row> want = all_rows(*trace, Table::kMessage);
  size_t at = 0, number = 0;
  Status status;
  for (const auto& chunk : chunks<M::peer, M::kind>(*trace, status)) {
    EXPECT_EQ(chunk.number(), number++);
    EXPECT_EQ(chunk.size(), trace->chunks(Table::kMessage)[chunk.number()].rows);
    for (size_t i = 0; i < chunk.size(); ++i, ++at) {
      EXPECT_EQ(chunk.peer[i], want[at][M::peer]);
      EXPECT_EQ(chunk.kind[i].value, want[at][M::kind]);
    }
  }
  must(status);
  EXPECT_EQ(at, want.size());
  EXPECT_GT(number, 3u);
}

TEST(TypedChunks, CanBeReadOneByOne) {
  const auto trace = sample();
  ChunkReader<F::dim> calls(*trace, Table::kApi);
  must(calls.read(2));
  std::vector<int64_t> dims;
  must(trace->decode(Table::kApi, 2, F::dim, dims));
  EXPECT_EQ(std::vector<int64_t>(calls->dim.begin(), calls->dim.end()), dims);
  EXPECT_FALSE(calls.read(10'000));
}

// A trace whose facts are damaged but whose heads are not.
std::shared_ptr<const Trace> damaged(std::vector<uint8_t>& bytes) {
  Folder folder;
  auto writer = must(TraceWriter::create(folder / "t.tacho"));
  make_targets(*writer);
  RandomRows random(51);
  for (int i = 0; i < 4000; ++i) Cells::add(*writer, Table::kApi, random.row(Table::kApi, false));
  must(writer->finish());
  bytes = read_file(folder / "t.tacho");
  std::vector<int64_t> column;
  for (size_t at = 64; at < bytes.size(); at += 64) {
    bytes[at] ^= 0x55;
    auto trace = open_bytes(bytes, "damaged");
    if (trace && (*trace)->chunks(Table::kApi).size() == 1 && !(*trace)->decode(Table::kApi, 0, F::start, column))
      return *trace;
    bytes[at] ^= 0x55;
  }
  ADD_FAILURE() << "no byte damages the column";
  abort();
}

TEST(TypedRows, TellOfDamage) {
  std::vector<uint8_t> bytes;
  const auto trace = damaged(bytes);
  Status status;
  for (const auto& call : rows<F::start>(*trace, Table::kApi, status)) ADD_FAILURE() << call.start;
  EXPECT_FALSE(status);
  status = {};
  for (const auto& chunk : chunks<F::start>(*trace, Table::kApi, status)) ADD_FAILURE() << chunk.number();
  EXPECT_FALSE(status);
}

TEST(TypedDimensions, GiveRowsCellsAndTexts) {
  auto writer = must(TraceWriter::create_temporary());
  const int64_t function = writer->dimension(
      event::row::Function{.name = writer->string("cuLaunchKernel"), .domain = event::Domain::kCudaDriver});
  const auto trace = must(writer->finish_and_open());
  const auto row = trace::row<event::row::Function>(*trace, function);
  EXPECT_EQ(trace->string(row.name), "cuLaunchKernel");
  EXPECT_EQ(row.domain, event::Domain::kCudaDriver);
  EXPECT_EQ(cell<column::Function::name>(*trace, function), row.name);
  EXPECT_EQ(cell<column::Function::domain>(*trace, function), event::Domain::kCudaDriver);
  EXPECT_EQ(event::from_cell(cell<column::Function::domain>(*trace, function)), event::Domain::kCudaDriver);
  EXPECT_EQ(text<column::Function::name>(*trace, function), "cuLaunchKernel");
  for (const int64_t none : {int64_t{0}, function + 1, int64_t{-1}}) {
    EXPECT_EQ(trace::row<event::row::Function>(*trace, none).name, 0);
    EXPECT_EQ(cell<column::Function::name>(*trace, none), 0);
    EXPECT_EQ(text<column::Function::name>(*trace, none), "");
  }
}

}  // namespace
}  // namespace tacho::trace
