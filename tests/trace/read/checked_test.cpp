// Cells whose checksums fit and that refer to nothing: one place checks every column of every table (checked.h), so
// that no code behind it gets an invalid row, text or time.
#include "trace/read/checked.h"

#include <gtest/gtest.h>

#include "event/times.h"
#include "trace/raw_file.h"
#include "trace/read/reader.h"
#include "trace/rows.h"
#include "trace/store/summary.h"

namespace tacho::trace {
namespace {

namespace column = event::column;
namespace row = event::row;
using event::Type;

// One chunk of every table: `kCheckedRows` rows each that refer to row 1 or 2 of everything.
constexpr int64_t kCheckedRows = 3;
RawFile file_of_every_table(const Folder& folder) {
  auto writer = must(TraceWriter::create(folder / "t.tacho"));
  make_targets(*writer, kCheckedRows);
  for (const event::TableInfo& info : event::all_tables()) {
    if (!event::is_fact(info.table) || info.table == Table::kLoss) continue;
    for (int64_t i = 1; i <= kCheckedRows; ++i) {
      Row cells;
      for (const event::Column& column : info.columns)
        cells.push_back(column.type == Type::kEnum ? column.enumeration->values[0].code : i);
      Cells::add(*writer, info.table, cells);
    }
  }
  writer->lose(1, Table::kApi, event::LossReason::kPoolFull, 1);
  must(writer->finish());
  return *RawFile::parse(read_file(folder / "t.tacho"));
}

// The file with another value in the second row of a column.
std::vector<uint8_t> forged(RawFile file, const event::TableInfo& info, size_t column, int64_t value) {
  const ChunkRole role = event::is_fact(info.table) ? ChunkRole::kFacts : ChunkRole::kRows;
  bool done = false;
  file.edit(static_cast<uint8_t>(info.table), role, [&](RawChunk& chunk) {
    std::vector<int64_t> cells(chunk.head.rows);
    ASSERT_TRUE(decode_column(chunk.blobs[column], cells.data(), cells.size()));
    cells[cells.size() > 1 ? 1 : 0] = value;
    chunk.blobs[column] = column_blob(cells);
    done = true;
  });
  EXPECT_TRUE(done) << info.name;
  return file.bytes();
}

// The error of opening the file and reading the column; "" = none.
std::string said(std::span<const uint8_t> bytes, const event::TableInfo& info, size_t column,
                 std::vector<int64_t>* cells = nullptr) {
  const auto trace = open_bytes(bytes, "forged.tacho");
  if (!trace) return trace.error().message;
  std::vector<int64_t> out;
  if (event::is_fact(info.table)) {
    const Status status = (*trace)->decode(info.table, 0, static_cast<int>(column), out);
    if (!status) return status.error().message;
  } else {
    for (int64_t i = 1; i < (*trace)->rows(info.table); ++i)
      out.push_back((*trace)->cell(info.table, i, static_cast<int>(column)));
  }
  if (cells != nullptr) *cells = out;
  return {};
}

// Without its directory a file is one that its writer did not finish.
std::vector<uint8_t> cut_off(std::vector<uint8_t> bytes) {
  bytes.resize(bytes.size() - sizeof(Trailer));
  return bytes;
}

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();

TEST(Checked, EveryReferenceOfEveryTable) {
  Folder folder;
  const RawFile file = file_of_every_table(folder);
  int columns = 0;
  for (const event::TableInfo& info : event::all_tables()) {
    for (size_t c = 0; c < info.columns.size(); ++c) {
      const event::Column& about = info.columns[c];
      if (about.type != Type::kRow && about.type != Type::kString) continue;
      ++columns;
      EXPECT_EQ(said(forged(file, info, c, 0), info, c), "");
      for (const int64_t value : {kCheckedRows + 1, int64_t{-1}, int64_t{65536}, kLeast, kMost}) {
        const std::vector<uint8_t> bytes = forged(file, info, c, value);
        const std::string sentence = said(bytes, info, c);
        EXPECT_NE(sentence.find(fmt::format("is damaged: column {} of table {}", about.name, info.name)),
                  std::string::npos)
            << info.name << "." << about.name << " = " << value << ": " << sentence;
        EXPECT_NE(sentence.find(fmt::format("refers to row {} of table", value)), std::string::npos) << sentence;
        // In an unfinished file, missing texts and rows read as none.
        std::vector<int64_t> cells;
        EXPECT_EQ(said(cut_off(bytes), info, c, &cells), "");
        ASSERT_GT(cells.size(), 0u);
        EXPECT_EQ(cells[cells.size() > 1 ? 1 : 0], 0) << info.name << "." << about.name;
      }
    }
  }
  EXPECT_GT(columns, 50);
}

TEST(Checked, EveryCodeOfEveryTable) {
  Folder folder;
  const RawFile file = file_of_every_table(folder);
  for (const event::TableInfo& info : event::all_tables()) {
    for (size_t c = 0; c < info.columns.size(); ++c) {
      if (info.columns[c].type != Type::kEnum) continue;
      for (const int64_t value : {int64_t{200}, int64_t{-1}, kLeast, kMost}) {
        std::vector<int64_t> cells;
        EXPECT_EQ(said(forged(file, info, c, value), info, c, &cells), "");
        ASSERT_GT(cells.size(), 0u);
        EXPECT_EQ(cells[cells.size() > 1 ? 1 : 0], info.columns[c].enumeration->unknown) << info.name;
      }
    }
  }
}

TEST(Checked, TimesDurationsAndBytes) {
  Folder folder;
  const RawFile file = file_of_every_table(folder);
  using event::kFarthestTime;
  for (const event::TableInfo& info : event::all_tables()) {
    for (size_t c = 0; c < info.columns.size(); ++c) {
      const event::Column& about = info.columns[c];
      const bool duration = event::is_timed(info.table) && about.name == "duration";
      for (const int64_t value : {kFarthestTime, kFarthestTime + 1, -kFarthestTime - 1, int64_t{-1}, kMost}) {
        std::vector<int64_t> cells;
        const std::string sentence = said(forged(file, info, c, value), info, c, &cells);
        const int64_t got = cells.size() > 1 ? cells[1] : kLeast;
        if (event::is_timed(info.table) && c == column::Fact::start) {
          // Its section states when its rows begin, and every search for rows by time believes it.
          EXPECT_NE(sentence.find(event::is_time(value) ? "a time that its section does not span" : "no time"),
                    std::string::npos)
              << info.name << ": " << sentence;
        } else if (about.type == Type::kTime) {
          EXPECT_EQ(sentence.empty(), event::is_time(value)) << info.name << ": " << sentence;
        } else if (duration) {
          EXPECT_EQ(got, event::known_duration(value)) << info.name;
        } else if (about.type == Type::kDuration || about.type == Type::kBytes) {
          const int64_t most = about.type == Type::kBytes ? 2 * kFarthestTime - 1 : kFarthestTime;
          EXPECT_EQ(got, value >= -most && value <= most ? value : kUnknown) << info.name;
        }
      }
      // A time may be missing, but not the place of a timed row.
      if (about.type == Type::kTime) {
        EXPECT_EQ(said(forged(file, info, c, kUnknown), info, c).empty(), !event::is_timed(info.table)) << info.name;
      }
    }
  }
}

TEST(Checked, StatisticsReferToRowsThatExist) {
  Folder folder;
  auto writer = must(TraceWriter::create(folder / "t.tacho"));
  make_targets(*writer);
  for (int64_t i = 0; i < 20'000; ++i)
    writer->add(row::Api{.track = 1 + i % 3, .start = i * 10, .duration = 5, .dim = 1 + i % 4});
  must(writer->finish());
  const RawFile file = *RawFile::parse(read_file(folder / "t.tacho"));
  const auto with = [&](size_t extra, const auto& entries, auto encode) {
    RawFile made = file;
    made.edit(static_cast<uint8_t>(Table::kApi), ChunkRole::kFacts, [&](RawChunk& chunk) {
      ColumnEncoder encoder;
      std::vector<uint8_t>& blob = chunk.blobs[chunk.head.columns + extra];
      blob.clear();
      encode(std::span(entries), encoder, blob);
    });
    return made.bytes();
  };
  const auto expect = [&](const std::vector<uint8_t>& bytes, auto ask, std::string_view wanted) {
    const auto trace = must(open_bytes(bytes, "forged.tacho"));
    const auto answer = ask(*trace);
    EXPECT_EQ(static_cast<bool>(answer), wanted.empty());
    if (!answer) {
      EXPECT_NE(answer.error().message.find(wanted), std::string::npos) << answer.error().message;
    }
  };
  const auto sums = [](const Trace& trace) { return trace.merged_summaries(Table::kApi); };
  const auto buckets = [](const Trace& trace) { return trace.merged_histogram(Table::kApi); };
  const auto busy = [](const Trace& trace) { return trace.merged_busy(Table::kApi); };
  const auto summary = [](int64_t track, int64_t dim, int64_t last) {
    Summary made;
    made.track = track, made.dim = dim, made.last = last, made.count = 20'000;
    return std::vector<Summary>{made};
  };
  for (const int64_t bad : {kTargets + 1, int64_t{-1}, kMost}) {
    expect(with(0, summary(bad, 1, 9), encode_summaries), sums, "column track of table api");
    expect(with(0, summary(1, bad, 9), encode_summaries), sums, "column dim of table api");
    expect(with(1, std::vector<HistogramEntry>{{bad, 1, 1}}, encode_histogram), buckets, "column dim of table api");
    expect(with(2, std::vector<Busy>{{bad, 1, 2, 1}}, encode_busy), busy, "column track of table api");
  }
  expect(with(0, summary(1, 1, kMost), encode_summaries), sums, "times that are none");
  expect(with(0, summary(1, 1, 9), encode_summaries), sums, "");
  // Sums of a tacho that knew durations below zero are added up again.
  std::vector<Summary> negative = summary(1, 1, 9);
  negative[0].min = negative[0].sum = -5;
  const auto again =
      must(must(open_bytes(with(0, negative, encode_summaries), "old.tacho"))->merged_summaries(Table::kApi));
  EXPECT_EQ(again.size(), 12u);
  EXPECT_EQ(again[0].min, 5);
}

TEST(Checked, AStackComesAfterItsCaller) {
  Folder folder;
  const RawFile file = file_of_every_table(folder);
  const event::TableInfo& info = event::table_info(Table::kStack);
  for (const int64_t parent : {2, 3}) {  // of row 2
    EXPECT_NE(said(forged(file, info, column::Stack::parent, parent), info, 0).find("which comes later"),
              std::string::npos);
  }
}

TEST(Checked, DurationsByOneRule) {
  using event::duration_between;
  static_assert(duration_between(5, 9) == 4 && duration_between(5, 5) == 0);
  static_assert(duration_between(9, 5) == kUnknown);
  static_assert(duration_between(kUnknown, 5) == kUnknown && duration_between(5, kUnknown) == kUnknown);
  static_assert(duration_between(kLeast + 1, kMost) == kUnknown && duration_between(kMost, kLeast + 1) == kUnknown);
  static_assert(event::known_duration(-1) == kUnknown && event::known_duration(0) == 0);
  // The writer keeps it, from every caller.
  Folder folder;
  auto writer = must(TraceWriter::create(folder / "t.tacho"));
  make_targets(*writer);
  writer->add(row::Dispatch{.track = 1, .start = 100, .duration = -30, .dim = 1});
  writer->add(row::Dispatch{.track = 1, .start = 200, .duration = 30, .dim = 1});
  writer->add(row::Dispatch{.track = 1, .start = kMost, .duration = 30, .dim = 1});
  const auto trace = must(writer->finish_and_open());
  std::vector<int64_t> durations;
  must(trace->decode(Table::kDispatch, 0, column::Dispatch::duration, durations));
  EXPECT_EQ(durations, (std::vector<int64_t>{kUnknown, 30}));
  EXPECT_EQ(lost(*trace, Table::kDispatch, event::LossReason::kClockOrder), 1);
  EXPECT_EQ(lost(*trace, Table::kDispatch, event::LossReason::kBadInput), 1);
}

TEST(Checked, FirstOutsideFindsOneCellAnywhere) {
  const CellBounds bounds{0, 9, false, 0, true};
  for (const size_t size : {1u, 7u, 64u, 1001u}) {
    std::vector<int64_t> cells(size, 9);
    EXPECT_EQ(first_outside(cells, bounds), size);
    for (const size_t at : {size_t{0}, size / 2, size - 1}) {
      for (const int64_t bad : {int64_t{10}, int64_t{-1}, kLeast, kMost}) {
        cells[at] = bad;
        EXPECT_EQ(first_outside(cells, bounds), at);
        EXPECT_EQ(first_outside(cells, {0, 9, true, 0, true}), bad == kUnknown ? size : at);
        cells[at] = 0;
      }
    }
  }
}

}  // namespace
}  // namespace tacho::trace
