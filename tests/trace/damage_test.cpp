// Files that are cut off, damaged, foreign or hostile: a sentence or a shorter trace, never a crash.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "layout_helpers.h"
#include "raw_file.h"
#include "rows.h"
#include "trace/read/reader.h"
#include "trace/write/copy.h"

namespace tacho::trace {
namespace {

namespace column = event::column;
namespace row = event::row;

// A trace with several slabs, dictionaries, kept rows and room between them; its bytes.
std::vector<uint8_t> sample(const Folder& folder, const std::string& name, bool finish) {
  WriterOptions options;
  options.slab_rows = 300;
  auto writer = must(TraceWriter::create(folder / name, options));
  make_targets(*writer);
  RandomRows random(40);
  for (int i = 0; i < 1500; ++i) {
    for (const Table table : {Table::kApi, Table::kDispatch, Table::kReading}) {
      Row row = random.row(table, i % 7 == 0);
      if (table == Table::kApi) {
        row[column::Api::dim] = writer->dimension(
            row::Function{.name = writer->string(fmt::format("function {}", i / 2)), .domain = event::Domain::kOpenCL});
      }
      Cells::add(*writer, table, row);
    }
    if (i % 250 == 100) {
      writer->note(0, event::NoteSeverity::kInfo, "a note");
      writer->lose(0, Table::kApi, event::LossReason::kPoolFull, 1);
      writer->update(Table::kFunction, 1, 1, i % 5);
      must(writer->flush());
    }
  }
  if (finish) {
    must(writer->finish());
    return read_file(folder / name);
  }
  must(writer->flush());
  return read_file(writer->temporary_path());
}

// Reads everything that can be read.
void read_all(const Trace& trace) {
  for (const event::TableInfo& info : event::all_tables()) {
    if (!event::is_fact(info.table)) {
      for (int64_t row = 0; row < std::min<int64_t>(trace.rows(info.table), 1000); ++row) {
        (void)trace.string(row).size();
        for (size_t c = 0; c < info.columns.size(); ++c) (void)trace.cell(info.table, row, static_cast<int>(c));
      }
      continue;
    }
    std::vector<int64_t> out;
    for (size_t chunk = 0; chunk < trace.chunks(info.table).size(); ++chunk) {
      for (size_t c = 0; c < info.columns.size(); ++c) {
        const Status status = trace.decode(info.table, chunk, static_cast<int>(c), out);
        if (status) continue;
        EXPECT_NE(status.error().message.find("offset"), std::string::npos) << status.error().message;
      }
    }
    (void)trace.merged_summaries(info.table);
    (void)trace.merged_histogram(info.table);
    (void)trace.merged_busy(info.table);
  }
  const int columns[] = {0, 1};
  (void)visit_by_time(trace, Table::kApi, columns, 0, std::numeric_limits<int64_t>::max(), [](auto) { return true; });
  (void)trace.property(Table::kEnd, 0, "x");
  (void)trace.time_range();
}

TEST(Damage, NotATraceAtAll) {
  Folder folder;
  const auto error = [&](std::string_view text) {
    write_file(folder / "f", std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
    const auto trace = Trace::open(folder / "f");
    EXPECT_FALSE(trace);
    return trace ? std::string() : trace.error().message;
  };
  EXPECT_NE(error("").find("is empty"), std::string::npos);
  EXPECT_NE(error("x").find("is not a trace file of tacho"), std::string::npos);
  EXPECT_NE(
      error("SQLite format 3, as it were, and more than sixty-four bytes of it, really").find("is not a trace file"),
      std::string::npos);
  EXPECT_NE(error(std::string_view("\x89TACHO\r\n", 8)).find("cut off"), std::string::npos);
  EXPECT_FALSE(Trace::open(folder / "missing"));
  EXPECT_FALSE(Trace::open(folder.path()));
  EXPECT_FALSE(Trace::open("/dev/null"));
}

TEST(Damage, OtherVersionsAreNamed) {
  Folder folder;
  auto bytes = sample(folder, "t.tacho", true);
  auto other = bytes;
  other[8] = 9;  // the format
  auto trace = open_bytes(other, "new.tacho");
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message.find("file format 9"), std::string::npos);
  other = bytes;
  other[24] ^= 1;
  trace = open_bytes(other, "bad.tacho");
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message.find("offset 0"), std::string::npos);
}

TEST(Damage, CutAtAndAroundEverySection) {
  Folder folder;
  for (const bool finished : {true, false}) {
    const auto bytes = sample(folder, finished ? "a" : "b", finished);
    std::vector<size_t> cuts;
    for (const SectionSpan& section : sections_of(bytes)) {
      for (const int64_t off : {-1, 0, 1, 63, 64, 65, 100})
        cuts.push_back(static_cast<size_t>(static_cast<int64_t>(section.offset) + off));
    }
    std::mt19937_64 random(41);
    for (int i = 0; i < 100; ++i) cuts.push_back(random() % bytes.size());
    ASSERT_GT(cuts.size(), 150u);
    std::sort(cuts.begin(), cuts.end());
    int64_t most_rows = 0;
    const size_t front = sections_of(bytes)[1].offset;  // header and description
    for (const size_t cut : cuts) {
      if (cut >= bytes.size()) continue;
      const auto trace = open_bytes(std::span(bytes).first(cut), "cut.tacho");
      if (cut < front) {
        EXPECT_FALSE(trace);
        continue;
      }
      ASSERT_TRUE(trace) << "cut at " << cut << ": " << trace.error().message;
      EXPECT_FALSE((*trace)->complete());
      EXPECT_NE((*trace)->note().find("cut.tacho"), std::string::npos);
      for (const Table table : fact_tables()) (void)all_rows(**trace, table);  // all that is listed can be read
      most_rows = std::max(most_rows, (*trace)->rows(Table::kApi));
    }
    EXPECT_GT(most_rows, 1000);
  }
}

// A file whose first dictionary lies last and is cut off: what came later keeps its number and its name.
TEST(Damage, ADictionaryBehindTheCutReadsAsUnknown) {
  Folder folder;
  const auto bytes = sample(folder, "a", true);
  const auto whole = must(open_bytes(bytes, "whole.tacho"));
  RawFile file = *RawFile::parse(bytes);
  const auto is_dictionary = [](const RawSection& section) { return section.header.kind == SectionKind::kDictionary; };
  std::stable_sort(file.sections.begin(), file.sections.end(),
                   [](const RawSection& a, const RawSection& b) { return a.header.sequence < b.header.sequence; });
  ASSERT_GE(std::count_if(file.sections.begin(), file.sections.end(), is_dictionary), 2);
  const auto first = std::find_if(file.sections.begin(), file.sections.end(), is_dictionary);
  int64_t lost = 0, functions = 0;
  for (const RawChunk& chunk : first->chunks) {
    if (chunk.head.role != ChunkRole::kRows) continue;
    // Nobody can tell how many rows of a table were lost of which there are no later ones.
    const bool later = std::any_of(first + 1, file.sections.end(), [&](const RawSection& section) {
      return std::any_of(section.chunks.begin(), section.chunks.end(), [&](const RawChunk& other) {
        return other.head.role == ChunkRole::kRows && other.head.table == chunk.head.table;
      });
    });
    if (later) lost += chunk.head.rows;
    if (chunk.head.table == static_cast<uint8_t>(Table::kFunction)) functions = chunk.head.rows;
  }
  std::rotate(first, first + 1, file.sections.end());
  const auto cut_off = [&] {
    std::vector<uint8_t> cut = file.bytes();
    const auto sections = sections_of(cut);  // the last two: that dictionary and the footer
    cut.resize(sections[sections.size() - 2].offset);
    return cut;
  };
  const std::vector<uint8_t> cut = cut_off();
  const auto trace = must(open_bytes(cut, "cut.tacho"));
  EXPECT_NE(trace->note().find(fmt::format("; {} rows of its dictionaries lie behind and read as unknown", lost)),
            std::string::npos)
      << trace->note();
  ASSERT_GT(functions, 0);
  ASSERT_EQ(trace->rows(Table::kFunction), whole->rows(Table::kFunction));
  for (int64_t row = 1; row < trace->rows(Table::kFunction); ++row)
    EXPECT_EQ(trace->text(Table::kFunction, row, 0), row <= functions ? "" : whole->text(Table::kFunction, row, 0));
  EXPECT_EQ(trace->rows(Table::kApi), whole->rows(Table::kApi));
  for (const Table table : fact_tables()) (void)all_rows(*trace, table);

  // A number that no writer gives rows after a gap is damage, however the file ends.
  for (const int64_t number : {int64_t{1} << 40, std::numeric_limits<int64_t>::max(), int64_t{0}, int64_t{-1}}) {
    RawFile forged = file;
    for (RawSection& section : forged.sections)
      for (RawChunk& chunk : section.chunks)
        if (chunk.head.role == ChunkRole::kRows) chunk.head.first = number;
    std::vector<uint8_t> hostile = forged.bytes();
    hostile.resize(hostile.size() - 1);
    const auto refused = open_bytes(hostile, "hostile.tacho");
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find(fmt::format("begin with number {} where", number)), std::string::npos);
  }
}

TEST(Damage, FlippedBitsGiveASentenceOrTheSameData) {
  Folder folder;
  const auto bytes = sample(folder, "t.tacho", true);
  std::map<Table, std::vector<Row>> want;
  const auto whole = must(open_bytes(bytes, "whole"));
  for (const Table table : fact_tables()) want[table] = all_rows(*whole, table);
  std::mt19937_64 random(42);
  int sentences = 0;
  for (int round = 0; round < 2000; ++round) {
    auto broken = bytes;
    const size_t at = random() % broken.size();
    broken[at] ^= static_cast<uint8_t>(1u << (random() % 8));
    const auto trace = open_bytes(broken, "broken.tacho");
    if (!trace) {
      ++sentences;
      EXPECT_EQ(trace.error().message.find("broken.tacho: "), 0u) << trace.error().message;
      continue;
    }
    const bool complete = (*trace)->complete();
    for (const Table table : fact_tables()) {
      const size_t columns = event::table_info(table).columns.size();
      std::vector<int64_t> out;
      size_t row = 0;
      for (size_t chunk = 0; chunk < (*trace)->chunks(table).size(); ++chunk) {
        for (size_t c = 0; c < columns; ++c) {
          const Status status = (*trace)->decode(table, chunk, static_cast<int>(c), out);
          if (!status) {
            ++sentences;
            EXPECT_NE(status.error().message.find(" at offset "), std::string::npos) << status.error().message;
            continue;
          }
          if (!complete) continue;
          for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], want[table][row + i][c]) << "flip at " << at;
        }
        row += (*trace)->chunks(table)[chunk].rows;
      }
    }
  }
  EXPECT_GT(sentences, 500);
}

TEST(Damage, FlipsWithChecksumsSetRightNeverCrash) {
  Folder folder;
  const auto bytes = sample(folder, "t.tacho", true);
  std::mt19937_64 random(43);
  int opened = 0;
  for (int round = 0; round < 1500; ++round) {
    auto broken = bytes;
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < flips; ++i) {
      // Heads and small numbers are where a reader goes wrong: aim at section beginnings half of the time.
      const auto sections = sections_of(bytes);
      size_t at = random() % broken.size();
      if (random() % 2 == 0)
        at = std::min(broken.size() - 1, sections[random() % sections.size()].offset + random() % 400);
      broken[at] = random() % 3 == 0 ? uint8_t{0xff} : static_cast<uint8_t>(broken[at] ^ (1u << (random() % 8)));
    }
    reseal(broken);
    const auto trace = open_bytes(broken, "hostile.tacho");
    if (!trace) continue;
    ++opened;
    read_all(**trace);
  }
  EXPECT_GT(opened, 100);
}

TEST(Damage, AKilledWriterLeavesAllThatWasFlushed) {
  Folder folder;
  const std::string path = folder / "t.tacho";
  const pid_t child = fork();
  if (child == 0) {
    auto writer = TraceWriter::create(path);
    if (!writer) _exit(1);
    for (int64_t i = 0; i < 1000; ++i)
      (*writer)->add(row::Sync{.track = 1, .start = i, .duration = 1, .dim = 1, .correlation = i});
    if (!(*writer)->flush()) _exit(1);
    for (int64_t i = 1000; i < 1500; ++i)
      (*writer)->add(row::Sync{.track = 1, .start = i, .duration = 1, .dim = 1, .correlation = i});
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(std::filesystem::exists(path));
  const std::string left = left_by_killed_writer(path);
  ASSERT_FALSE(left.empty());
  const auto trace = must(Trace::open(left));
  EXPECT_FALSE(trace->complete());
  EXPECT_EQ(trace->rows(Table::kSync), 1000);
  EXPECT_EQ(left_by_killed_writer(folder / "other"), "");
}

}  // namespace
}  // namespace tacho::trace
