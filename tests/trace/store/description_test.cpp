// Files of other builds: their own description, a reader's handling of tables, columns and enumerators that it lacks or
// does not know, and the frozen layout of version 1.
#include "trace/store/description.h"

#include <set>

#include "event/records.h"
#include "trace/raw_file.h"
#include "trace/read/reader.h"
#include "trace/rows.h"
#include "trace/write/copy.h"

namespace tacho::trace {
namespace {

namespace column = event::column;
namespace row = event::row;
using event::Domain;

std::string data(const std::string& name) {
  const char* source = getenv("TACHO_SOURCE");
  return std::string(source != nullptr ? source : ".") + "/tests/trace/data/" + name;
}

// A program of one thread with kernels, calls, readings, links and properties.
void write_sample(TraceWriter& writer) {
  const int64_t process = writer.dimension(row::Process{.pid = 7, .name = writer.string("program")});
  const int64_t thread = writer.dimension(row::Thread{.process = process, .tid = 8});
  const int64_t host = writer.dimension(
      row::Track{.kind = event::TrackKind::kThread, .process = process, .thread = thread, .native = 8});
  const int64_t device =
      writer.dimension(row::Device{.kind = event::DeviceKind::kGpu, .index = 0, .name = writer.string("GPU")});
  const int64_t queue =
      writer.dimension(row::Track{.kind = event::TrackKind::kQueue, .process = process, .device = device, .native = 3});
  const int64_t call =
      writer.dimension(row::Function{.name = writer.string("hipLaunchKernel"), .domain = Domain::kHipRuntime});
  const int64_t other = writer.dimension(row::Function{.name = writer.string("clFinish"), .domain = Domain::kOpenCL});
  for (int64_t i = 0; i < 500; ++i) {
    const int64_t kernel =
        writer.dimension(row::Kernel{.name = writer.string(fmt::format("k{}", i % 7)), .grid_x = 64 + i % 7});
    writer.add(row::Api{.track = host,
                        .start = 1000 * i,
                        .duration = 100 + i,
                        .dim = i % 2 == 0 ? call : other,
                        .correlation = i + 1,
                        .result = i % 3});
    writer.add(row::Dispatch{.track = queue,
                             .start = 1000 * i + 500,
                             .duration = 300,
                             .dim = kernel,
                             .correlation = i + 1,
                             .queued_ahead = 40 + i,
                             .submit_ahead = 20 + i,
                             .ordinal = i});
    writer.add(row::Link{.kind = i % 2 == 0 ? event::LinkKind::kFlow : event::LinkKind::kNestedApi,
                         .process = process,
                         .from = i,
                         .to = i + 1});
    if (i % 50 == 0) writer.add(row::Reading{.track = host, .start = 1000 * i, .value = i});
  }
  writer.property(Table::kDevice, device, "key", "value");
  writer.property(Table::kEnd, 0, "all", "of it");
  writer.update(Table::kThread, thread, column::Thread::name, writer.string("late name"));
  writer.note(process, event::NoteSeverity::kWarning, "a note");
  writer.lose(process, Table::kApi, event::LossReason::kPoolFull, 5);
}

class Foreign : public testing::Test {
 protected:
  void SetUp() override {
    WriterOptions options;
    options.slab_rows = 200;
    auto writer = must(TraceWriter::create(folder_ / "t.tacho", options));
    write_sample(*writer);
    ours_ = must(writer->finish_and_open());
    file_ = *RawFile::parse(read_file(folder_ / "t.tacho"));
    described_ = *Description::parse(file_.description);
  }

  Description::Table& table(std::string_view name) {
    for (Description::Table& one : described_.tables) {
      if (one.name == name) return one;
    }
    abort();
  }
  Description::Enumeration& enumeration(std::string_view name) {
    for (Description::Enumeration& one : described_.enumerations) {
      if (one.name == name) return one;
    }
    abort();
  }

  // The file as edited, through a reader.
  Result<std::shared_ptr<const Trace>> open() {
    file_.description = described_.text();
    bytes_ = file_.bytes();
    return open_bytes(bytes_, "t.tacho");
  }

  // Everything but what `except` names is as in our own file.
  void expect_like_ours(const Trace& trace, const std::set<std::string>& except) {
    EXPECT_TRUE(trace.complete()) << trace.note();
    for (const event::TableInfo& info : event::all_tables()) {
      if (except.contains(std::string(info.name))) continue;
      ASSERT_EQ(trace.rows(info.table), ours_->rows(info.table)) << info.name;
      for (size_t c = 0; c < info.columns.size(); ++c) {
        if (except.contains(fmt::format("{}.{}", info.name, info.columns[c].name))) continue;
        EXPECT_EQ(column_of(trace, info.table, c), column_of(*ours_, info.table, c))
            << info.name << '.' << info.columns[c].name;
      }
    }
    for (int64_t i = 0; i < ours_->rows(Table::kString); ++i) EXPECT_EQ(trace.string(i), ours_->string(i));
    EXPECT_EQ(trace.property(Table::kEnd, 0, "all"), "of it");
  }

  // Takes from the file the tables and columns that `then` does not have; their names.
  std::set<std::string> take_what_is_younger_than(const Description& then) {
    std::set<std::string> taken;
    for (const event::TableInfo& info : event::all_tables()) {
      const auto number = static_cast<uint8_t>(info.table);
      const ChunkRole role = event::is_fact(info.table) ? ChunkRole::kFacts : ChunkRole::kRows;
      const auto old = std::find_if(then.tables.begin(), then.tables.end(),
                                    [&](const Description::Table& one) { return one.name == info.name; });
      if (old == then.tables.end()) {
        taken.emplace(info.name);
        for (RawSection& section : file_.sections)
          std::erase_if(section.chunks,
                        [&](const RawChunk& chunk) { return chunk.head.role == role && chunk.head.table == number; });
        continue;
      }
      for (size_t c = info.columns.size(); c-- > 0;) {
        const std::string_view name = info.columns[c].name;
        if (std::any_of(old->columns.begin(), old->columns.end(), [&](const auto& one) { return one.name == name; }))
          continue;
        taken.insert(fmt::format("{}.{}", info.name, name));
        file_.edit(number, role, [&](RawChunk& chunk) { erase_column(chunk, c); });
      }
    }
    return taken;
  }

  static std::vector<int64_t> column_of(const Trace& trace, Table table, size_t c) {
    std::vector<int64_t> all, chunk;
    if (!event::is_fact(table)) {
      for (int64_t i = 1; i < trace.rows(table); ++i) all.push_back(trace.cell(table, i, static_cast<int>(c)));
      return all;
    }
    for (size_t i = 0; i < trace.chunks(table).size(); ++i) {
      must(trace.decode(table, i, static_cast<int>(c), chunk));
      all.insert(all.end(), chunk.begin(), chunk.end());
    }
    return all;
  }

  Folder folder_;
  std::shared_ptr<const Trace> ours_;
  RawFile file_;
  Description described_;
  std::vector<uint8_t> bytes_;
};

TEST(Descriptions, OurOwnIsSmallAndReadsBack) {
  const auto back = must(Description::parse(our_description()));
  EXPECT_EQ(back.text(), our_description());
  EXPECT_EQ(back.tables.size(), event::all_tables().size());
  EXPECT_EQ(back.enumerations.size(), event::all_enumerations().size());
  EXPECT_LE(our_packed_description().size(), 4096u);
  EXPECT_EQ(must(unpack_description(our_packed_description())), our_description());
  // A text that is too small to compress.
  EXPECT_EQ(must(unpack_description(pack_description("ab"))), "ab");
}

TEST(Descriptions, AreIndependentOfPoolRecords) {
  // A record more changes the pool's hash and nothing in files.
  for (const event::RecordInfo& record : event::kRecordInfos)
    EXPECT_EQ(our_description().find(fmt::format("record\t{}", record.name)), std::string_view::npos);
  std::vector<event::RecordInfo> more(std::begin(event::kRecordInfos), std::end(event::kRecordInfos));
  EXPECT_EQ(event::schema_hash(more), event::schema_hash());
  more.push_back({event::RecordKind::kEnd, 16, "a new record"});
  EXPECT_NE(event::schema_hash(more), event::schema_hash());
  EXPECT_EQ(description_hash(Description::ours().text()), description_hash(our_description()));
}

TEST(Descriptions, BadOnesAreRefused) {
  const std::string strings = "dimension\t32\tstring\n";
  const std::string good = strings + "enum\tE\t0\tone\ttwo\ntimed\t0\ta\tx:row:string\ty:enum:E\tz:time\n";
  EXPECT_TRUE(Description::parse(good));
  std::string wide = strings + "fact\t1\tb";
  for (int i = 0; i < 256; ++i) wide += fmt::format("\tc{}:time", i);
  for (const std::string& bad : {
           std::string(),
           std::string("\n"),
           std::string("x"),
           std::string(70'000, 'x'),
           good + good,                      // names and numbers twice
           good + "fact\t0\tb\tx:time\n",    // number twice
           good + "fact\t255\tb\tx:time\n",  // the number of updates
           good + "fact\t-1\tb\tx:time\n",
           good + "fact\t1x\tb\tx:time\n",
           good + "fact\t1\n",
           good + "fact\t1\tb\n",                  // no columns
           good + "fact\t1\tb\tx\n",               // no type
           good + "fact\t1\tb\tx:time\tx:time\n",  // one column twice
           good + "fact\t1\tb\tx:row:nowhere\n",
           good + "fact\t1\tb\tx:enum:Nothing\n",
           good + "other\t1\tb\tx:time\n",
           good + "enum\t\t0\tone\n",
           good + "enum\tF\tone\n",
           good + "enum\tF\t0\tone\t\ttwo\n",
           good + "enum\tF\t-3\tone\n",
           good + "enum\tF\t99999\tone\n",
           good + "enum\tE\t1\tagain\n",  // a code twice
           good + "fact\t1\tb" + std::string(300, 'b') + "\tx:time\n",
           good + std::string("fact\t1\tb\1\tx:time\n"),
           wide,
           std::string("fact\t0\ta\tx:time\n"),  // no strings
           std::string("fact\t0\tstring\tx:time\n"),
           std::string("dimension\t32\tstring\tx:time\n"),
       }) {
    const auto parsed = Description::parse(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_FALSE(parsed.error().message.empty());
    EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
  }
  EXPECT_FALSE(unpack_description({}));
  EXPECT_FALSE(unpack_description(std::vector<uint8_t>{9, 1, 2}));
  EXPECT_FALSE(unpack_description(std::vector<uint8_t>{1, 255, 255, 255, 255, 0}));
  EXPECT_FALSE(unpack_description(std::vector<uint8_t>{1, 5, 0, 0, 0, 0}));
}

TEST_F(Foreign, TheSameDescriptionUnderAnotherHash) {
  std::reverse(described_.enumerations.begin(), described_.enumerations.end());
  const auto trace = must(open());
  EXPECT_EQ(trace->unknown(), "");
  expect_like_ours(*trace, {});
}

TEST_F(Foreign, AnOlderFileLacksColumnsAndATable) {
  std::erase_if(table("dispatch").columns, [](const auto& c) { return c.name == "queued_ahead"; });
  file_.edit(static_cast<uint8_t>(Table::kDispatch), ChunkRole::kFacts,
             [](RawChunk& chunk) { erase_column(chunk, column::Dispatch::queued_ahead); });
  std::erase_if(table("track").columns, [](const auto& c) { return c.name == "device"; });
  file_.edit(static_cast<uint8_t>(Table::kTrack), ChunkRole::kRows,
             [](RawChunk& chunk) { erase_column(chunk, column::Track::device); });
  std::erase_if(described_.tables, [](const auto& t) { return t.name == "reading"; });
  for (RawSection& section : file_.sections) {
    std::erase_if(section.chunks, [](const RawChunk& chunk) {
      return chunk.head.role == ChunkRole::kFacts && chunk.head.table == static_cast<uint8_t>(Table::kReading);
    });
  }
  const auto trace = must(open());
  EXPECT_EQ(trace->unknown(), "");
  expect_like_ours(*trace, {"dispatch.queued_ahead", "track.device", "reading"});
  EXPECT_EQ(trace->rows(Table::kReading), 0);
  for (const int64_t ahead : column_of(*trace, Table::kDispatch, column::Dispatch::queued_ahead))
    ASSERT_EQ(ahead, event::kUnknown);
  for (const int64_t device : column_of(*trace, Table::kTrack, column::Track::device)) ASSERT_EQ(device, 0);
  EXPECT_EQ(must(trace->merged_summaries(Table::kDispatch)).size(),
            must(ours_->merged_summaries(Table::kDispatch)).size());
  // It can be copied into a file of today.
  auto writer = must(TraceWriter::create_temporary());
  must(copy_into(*trace, *writer));
  const auto copied = must(writer->finish_and_open());
  EXPECT_EQ(copied->rows(Table::kDispatch), 500);
}

TEST_F(Foreign, AColumnOfAnotherTypeIsNotTaken) {
  table("dispatch").columns[column::Dispatch::ordinal].type = "duration";
  table("track").columns[column::Track::device].of = "process";
  const auto trace = must(open());
  expect_like_ours(*trace, {"dispatch.ordinal", "track.device"});
  EXPECT_EQ(column_of(*trace, Table::kDispatch, column::Dispatch::ordinal)[3], event::kUnknown);
  EXPECT_EQ(column_of(*trace, Table::kTrack, column::Track::device)[1], 0);
}

TEST_F(Foreign, ANewerFileHasAColumnATableAndAnEnumeratorMore) {
  // Columns in the middle of a fact and of a dimension.
  auto& api = table("api").columns;
  api.insert(api.begin() + 2, {"priority", "integer", ""});
  file_.edit(static_cast<uint8_t>(Table::kApi), ChunkRole::kFacts,
             [](RawChunk& chunk) { insert_column(chunk, 2, std::vector<int64_t>(chunk.head.rows, 99)); });
  auto& thread = table("thread").columns;
  thread.insert(thread.begin(), {"numa", "page", ""});  // of a type that nobody knows
  file_.edit(static_cast<uint8_t>(Table::kThread), ChunkRole::kRows,
             [](RawChunk& chunk) { insert_column(chunk, 0, std::vector<int64_t>(chunk.head.rows, 5)); });
  file_.edit(kUpdateTable, ChunkRole::kUpdates, [](RawChunk& chunk) {
    chunk.blobs[2] = column_blob(std::vector<int64_t>(chunk.head.rows, column::Thread::name + 1));
  });
  // Tables: facts, and a dimension.
  described_.tables.push_back({TableKind::kTimed, 20, "page_fault", table("sync").columns});
  described_.tables.push_back({TableKind::kDimension, 70, "page", {{"address", "id", ""}}});
  RawChunk faults{};
  faults.head = {20, ChunkRole::kFacts, 5, 3, 4, 1, 4, 4, 0, 0};
  for (int i = 0; i < 5; ++i) faults.blobs.push_back(column_blob(std::vector<int64_t>{1, 2, 3, 4}));
  faults.blobs.resize(8);
  RawChunk pages{};
  pages.head = {70, ChunkRole::kRows, 1, 0, 2, 1, 0, 0, 0, 0};
  pages.blobs.push_back(column_blob(std::vector<int64_t>{1, 2}));
  for (RawSection& section : file_.sections) {
    if (section.header.kind == SectionKind::kSlab && faults.head.rows != 0)
      section.chunks.push_back(std::exchange(faults, {}));
    if (section.header.kind == SectionKind::kDictionary && pages.head.rows != 0)
      section.chunks.push_back(std::exchange(pages, {}));
  }
  // Enumerators: a name that we do not have, in a dimension and in facts; and one that no row holds.
  enumeration("Domain").values[static_cast<size_t>(Domain::kHipRuntime)].text = "sycl";
  enumeration("LinkKind").values[static_cast<size_t>(event::LinkKind::kFlow)].text = "wormhole";
  enumeration("FrameKind").values.push_back({77, "ruby"});

  const auto trace = must(open());
  EXPECT_EQ(
      trace->unknown(),
      "t.tacho: was written by another version of tacho, of which this one does not know column priority of api, table "
      "page_fault, column numa of thread, table page, 'sycl' of Domain and 'wormhole' of LinkKind; the rest is read");
  EXPECT_EQ(trace->note(), "");
  expect_like_ours(*trace, {"function.domain", "link.kind"});
  EXPECT_EQ(column_of(*trace, Table::kFunction, column::Function::domain),
            (std::vector<int64_t>{static_cast<int64_t>(Domain::kUnknown), static_cast<int64_t>(Domain::kOpenCL)}));
  const auto kinds = column_of(*trace, Table::kLink, column::Link::kind);
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), static_cast<int64_t>(event::LinkKind::kNone)), 250);
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), static_cast<int64_t>(event::LinkKind::kNestedApi)), 250);
  EXPECT_EQ(trace->text(Table::kThread, 1, column::Thread::name), "late name");
  EXPECT_EQ(must(trace->merged_summaries(Table::kApi)).size(), 2u);
  EXPECT_EQ(trace->time_range(), ours_->time_range());
}

TEST_F(Foreign, OtherNumbersAndOrdersAreMatchedByName) {
  // Tables under other numbers, columns in another order, enumerators under other codes.
  table("api").number = 3;
  table("allocation").number = 4;
  table("kernel").number = 60;
  for (RawSection& section : file_.sections) {
    for (RawChunk& chunk : section.chunks) {
      if (chunk.head.table == static_cast<uint8_t>(Table::kApi)) chunk.head.table = 3;
      if (chunk.head.table == static_cast<uint8_t>(Table::kKernel)) chunk.head.table = 60;
    }
  }
  auto& dispatch = table("dispatch").columns;
  std::swap(dispatch[column::Dispatch::queued_ahead], dispatch[column::Dispatch::submit_ahead]);
  file_.edit(static_cast<uint8_t>(Table::kDispatch), ChunkRole::kFacts, [](RawChunk& chunk) {
    std::swap(chunk.blobs[column::Dispatch::queued_ahead], chunk.blobs[column::Dispatch::submit_ahead]);
  });
  auto& domains = enumeration("Domain").values;
  std::swap(domains[1].text, domains[4].text);  // "opencl" and "hip"
  file_.edit(static_cast<uint8_t>(Table::kFunction), ChunkRole::kRows, [](RawChunk& chunk) {
    chunk.blobs[1] = column_blob(std::vector<int64_t>{1, 4});
  });
  const auto trace = must(open());
  EXPECT_EQ(trace->unknown(), "");
  expect_like_ours(*trace, {});
}

TEST_F(Foreign, CodesThatNobodyKnowsBecomeTheUnknownOnes) {
  file_.edit(static_cast<uint8_t>(Table::kFunction), ChunkRole::kRows, [](RawChunk& chunk) {
    chunk.blobs[1] = column_blob(std::vector<int64_t>{-1, int64_t{1} << 40});
  });
  file_.edit(static_cast<uint8_t>(Table::kNote), ChunkRole::kFacts,
             [](RawChunk& chunk) { chunk.blobs[2] = column_blob(std::vector<int64_t>(chunk.head.rows, 200)); });
  bytes_ = file_.bytes();
  const auto trace = must(open_bytes(bytes_, "t.tacho"));
  EXPECT_EQ(trace->unknown(), "");
  expect_like_ours(*trace, {"function.domain", "note.severity"});
  EXPECT_EQ(column_of(*trace, Table::kFunction, 1), (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(column_of(*trace, Table::kNote, 2)[0], static_cast<int64_t>(event::NoteSeverity::kUnknown));
}

TEST_F(Foreign, ADescriptionThatDoesNotFitItsChunksIsRefused) {
  table("api").columns.pop_back();
  const auto cut = open();
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message.find("t.tacho: is damaged: the section at offset "), std::string::npos);
  described_ = must(Description::parse(our_description()));
  table("kernel").number = 99;
  const auto moved = open();
  ASSERT_FALSE(moved);
  EXPECT_NE(moved.error().message.find("does not describe"), std::string::npos);
  described_ = must(Description::parse(our_description()));
  std::swap(table("api").kind, table("function").kind);
  EXPECT_FALSE(open());
  file_.description = "nonsense";
  bytes_ = file_.bytes();
  const auto nonsense = open_bytes(bytes_, "t.tacho");
  ASSERT_FALSE(nonsense);
  EXPECT_EQ(nonsense.error().message, "t.tacho: is damaged: its description at offset 64 has a line 1 "
                                      "that is neither an enumeration nor a table");
}

TEST(Descriptions, StandFirstInEveryFile) {
  Folder folder;
  const auto kind_at_64 = [](const std::string& path) {
    return load<SectionHeader>(read_file(path).data() + sizeof(FileHeader)).kind;
  };
  WriterOptions ring;
  ring.slab_rows = 256;
  ring.ring_size = 4000;
  for (const WriterOptions& options : {WriterOptions(), ring}) {
    WriterOptions chosen = options;
    chosen.overwrite = true;
    auto writer = must(TraceWriter::create(folder / "t.tacho", chosen));
    EXPECT_EQ(kind_at_64(writer->temporary_path()), SectionKind::kDescription);
    EXPECT_TRUE(Trace::open(writer->temporary_path())) << "before the first row";
    for (int i = 0; i < 10; ++i) write_sample(*writer);
    must(writer->flush());
    EXPECT_EQ(kind_at_64(writer->temporary_path()), SectionKind::kDescription);
    EXPECT_EQ(must(Trace::open(writer->temporary_path()))->rows(Table::kKernel), 8);
    must(writer->finish());  // with --ring this copies the sections into a fresh file
    EXPECT_EQ(kind_at_64(folder / "t.tacho"), SectionKind::kDescription);
    EXPECT_TRUE(must(Trace::open(folder / "t.tacho"))->complete());
  }
}

TEST(Descriptions, DamageIsOneSentence) {
  Folder folder;
  auto writer = must(TraceWriter::create(folder / "t.tacho"));
  write_sample(*writer);
  must(writer->finish());
  const std::vector<uint8_t> good = read_file(folder / "t.tacho");
  for (size_t at = 64; at < 64 + 64; ++at) {
    std::vector<uint8_t> bad = good;
    bad[at] ^= 0x10;
    const auto trace = open_bytes(bad, "bad.tacho");
    ASSERT_FALSE(trace) << at;
    EXPECT_NE(trace.error().message.find("bad.tacho: is damaged: its description at offset 64 "), std::string::npos);
  }
  for (const size_t size : {size_t{64}, size_t{100}, size_t{128}, size_t{500}}) {
    const auto trace = open_bytes(std::span(good).first(size), "cut.tacho");
    ASSERT_FALSE(trace);
    EXPECT_EQ(trace.error().message, "cut.tacho: is damaged: its description at offset 64 is cut off");
  }
}

// tests/trace/data/v1*.tacho: `tacho trace build/examples/vcopy` of the last build that wrote version 1.
TEST(VersionOne, IsReadThroughItsFrozenLayout) {
  const auto trace = must(Trace::open(data("v1.tacho")));
  EXPECT_TRUE(trace->complete());
  EXPECT_EQ(trace->note(), "");
  EXPECT_EQ(trace->unknown(), "");
  EXPECT_EQ(trace->rows(Table::kApi), 25);
  EXPECT_EQ(trace->rows(Table::kDispatch), 1);
  EXPECT_EQ(trace->rows(Table::kCopy), 3);
  int64_t api = 0, copies = 0;
  for (const Summary& sum : must(trace->merged_summaries(Table::kApi))) api += sum.sum;
  for (const Summary& sum : must(trace->merged_summaries(Table::kCopy))) copies += sum.sum;
  EXPECT_EQ(api, 6317588333);
  EXPECT_EQ(copies, 67017537);
  std::vector<int64_t> duration, dim;
  must(trace->decode(Table::kDispatch, 0, column::Dispatch::duration, duration));
  must(trace->decode(Table::kDispatch, 0, column::Dispatch::dim, dim));
  EXPECT_EQ(duration, std::vector<int64_t>{1407985});
  EXPECT_EQ(trace->text(Table::kKernel, dim[0], column::Kernel::name), "vecCopy");
  must(trace->decode(Table::kCopy, 0, column::Copy::dim, dim));
  std::set<int64_t> directions;
  for (const int64_t shape : dim)
    directions.insert(trace->cell(Table::kCopyShape, shape, column::CopyShape::direction));
  EXPECT_EQ(directions, (std::set{static_cast<int64_t>(event::CopyDirection::kHostToDevice),
                                  static_cast<int64_t>(event::CopyDirection::kDeviceToHost)}));
  std::set<std::string_view> names;
  for (int64_t i = 1; i < trace->rows(Table::kFunction); ++i) {
    names.insert(trace->text(Table::kFunction, i, column::Function::name));
    EXPECT_EQ(trace->cell(Table::kFunction, i, column::Function::domain), static_cast<int64_t>(Domain::kOpenCL));
  }
  EXPECT_TRUE(names.contains("clEnqueueNDRangeKernel"));
}

TEST_F(Foreign, VersionOneOfEveryTable) {
  file_.edit(static_cast<uint8_t>(Table::kLink), ChunkRole::kFacts, [](RawChunk& chunk) {
    std::vector<int64_t> kinds(chunk.head.rows);
    ASSERT_TRUE(decode_column(chunk.blobs[0], kinds.data(), kinds.size()));
    for (int64_t& kind : kinds) {
      if (kind == static_cast<int64_t>(event::LinkKind::kFlow)) kind = 5;  // as it was numbered then
    }
    chunk.blobs[0] = column_blob(kinds);
  });
  const std::set<std::string> later = take_what_is_younger_than(must(Description::parse(description_of_version_1())));
  EXPECT_TRUE(later.contains("api.arguments"));
  EXPECT_TRUE(later.contains("message"));
  const std::vector<uint8_t> old = file_.bytes(1);
  const auto trace = must(open_bytes(old, "old.tacho"));
  EXPECT_EQ(trace->unknown(), "");
  expect_like_ours(*trace, later);
}

TEST(VersionOne, SumsOfAggregatesToo) {
  const auto trace = must(Trace::open(data("v1_aggregate.tacho")));
  EXPECT_TRUE(trace->aggregated());
  int64_t calls = 0;
  for (const Summary& sum : must(trace->merged_summaries(Table::kApi))) calls += sum.count;
  EXPECT_EQ(calls, 25);
}

TEST(VersionOne, OfAnotherSchemaIsRefused) {
  std::vector<uint8_t> bytes = read_file(data("v1.tacho"));
  bytes[16] ^= 1;
  auto header = load<FileHeader>(bytes.data());
  header.checksum = checksum_of(header);
  std::memcpy(bytes.data(), &header, sizeof header);
  const auto trace = open_bytes(bytes, "old.tacho");
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message.find("old.tacho: was written by a version of tacho from before"), std::string::npos);
}

TEST(VersionOne, ItsLayoutNeverChanges) {
  const std::string_view text = description_of_version_1();
  EXPECT_EQ(must(Description::parse(text)).text(), text);
  EXPECT_EQ(description_hash(text), 0xbd4e7671a1521724u);
}

}  // namespace
}  // namespace tacho::trace
