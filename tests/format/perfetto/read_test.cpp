// Perfetto traces of other writers than tacho, made by hand.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <fstream>

#include "format/format.h"
#include "format/perfetto/perfetto.h"
#include "format/perfetto/perfetto_maker.h"
#include "support/folder.h"
#include "support/trace_maker.h"

namespace tacho::test {
namespace {

using TracePointer = std::shared_ptr<const trace::Trace>;

TracePointer read_bytes(const std::string& bytes, const std::string& name = "t.pftrace") {
  Folder folder;
  std::ofstream(folder / name, std::ios::binary) << bytes;
  auto trace = format::open_any(folder / name);
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().message);
  return trace ? *trace : nullptr;
}

std::string refusal_of(const std::string& bytes) {
  Folder folder;
  std::ofstream(folder / "t.pftrace", std::ios::binary) << bytes;
  const auto trace = format::perfetto::read(folder / "t.pftrace");
  return trace ? "" : trace.error().message;
}

// One row of a timed table: its name, line, times and the rest that tests ask for.
struct Found {
  std::string name;
  int64_t start, duration, correlation, own, track, dim;
};

std::vector<Found> rows_of(const trace::Trace& trace, Table table, Table dimension, int name, int own = -1) {
  std::vector<Found> found;
  std::vector<int> columns = {column::Fact::track, column::Fact::start, column::Fact::duration, column::Fact::dim,
                              column::Fact::correlation};
  if (own >= 0) columns.push_back(own);
  const Status read = trace::visit_chunks(trace, table, columns, [&](size_t, auto values) {
    for (size_t i = 0; i < values[0].size(); ++i)
      found.push_back({std::string(trace.text(dimension, values[3][i], name)), values[1][i], values[2][i], values[4][i],
                       own >= 0 ? values[5][i] : 0, values[0][i], values[3][i]});
    return true;
  });
  EXPECT_TRUE(read);
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return a.start != b.start ? a.start < b.start : a.duration > b.duration;
  });
  return found;
}
std::vector<Found> markers(const trace::Trace& trace) {
  return rows_of(trace, Table::kMarker, Table::kLabel, column::Label::name);
}
std::vector<Found> calls(const trace::Trace& trace) {
  return rows_of(trace, Table::kApi, Table::kFunction, column::Function::name);
}
std::vector<Found> kernels(const trace::Trace& trace) {
  return rows_of(trace, Table::kDispatch, Table::kKernel, column::Kernel::name);
}

// All notes and losses as text.
std::string told(const trace::Trace& trace) {
  std::string text;
  const int note[] = {column::Note::text};
  EXPECT_TRUE(trace::visit_chunks(trace, Table::kNote, note, [&](size_t, auto values) {
    for (const int64_t row : values[0]) text += std::string(trace.string(row)) + "\n";
    return true;
  }));
  const int loss[] = {column::Loss::table, column::Loss::reason, column::Loss::count};
  EXPECT_TRUE(trace::visit_chunks(trace, Table::kLoss, loss, [&](size_t, auto values) {
    for (size_t i = 0; i < values[0].size(); ++i)
      text += std::to_string(values[2][i]) + " " +
              std::string(event::to_string(static_cast<event::LossReason>(values[1][i]))) + "\n";
    return true;
  }));
  return text;
}

std::vector<std::pair<int64_t, double>> readings(const trace::Trace& trace) {
  std::vector<std::pair<int64_t, double>> found;
  const int columns[] = {column::Reading::start, column::Reading::value};
  EXPECT_TRUE(trace::visit_chunks(trace, Table::kReading, columns, [&](size_t, auto values) {
    for (size_t i = 0; i < values[0].size(); ++i) found.emplace_back(values[0][i], std::bit_cast<double>(values[1][i]));
    return true;
  }));
  return found;
}

std::string thread_of(const trace::Trace& trace, int64_t track) {
  const int64_t thread = trace.cell(Table::kTrack, track, column::Track::thread);
  return std::string(trace.text(Table::kThread, thread, column::Thread::name));
}

std::string gzipped(const std::string& text) {
  z_stream zip{};
  EXPECT_EQ(deflateInit2(&zip, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&zip, text.size()) + 64, '\0');
  zip.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  zip.avail_in = static_cast<uInt>(text.size());
  zip.next_out = reinterpret_cast<Bytef*>(out.data());
  zip.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&zip, Z_FINISH), Z_STREAM_END);
  out.resize(zip.total_out);
  deflateEnd(&zip);
  return out;
}
std::string zstandard(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}
std::string zlibbed(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string out(size, '\0');
  EXPECT_EQ(
      compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(text.data()), text.size()),
      Z_OK);
  out.resize(size);
  return out;
}
std::string packed_within(uint32_t field, const std::string& data) {
  return PacketsMaker().packet(Proto().bytes(field, data)).text();
}

// MiB, from /proc/self/status.
int64_t of_process(const std::string& key) {
  std::ifstream file("/proc/self/status");
  int64_t kib = 0;
  for (std::string word; file >> word;)
    if (word == key && file >> kib) break;
  return kib / 1024;
}

// MiB of memory that reading these bytes took at most, beyond what the process had; 0 where the system does not tell.
int64_t memory_to_read(const std::string& bytes) {
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins anew
  const int64_t before = of_process("VmRSS:");
  EXPECT_TRUE(read_bytes(bytes));
  return of_process("VmHWM:") - before;
}

void expect_cuspy(const trace::Trace& trace) {
  constexpr int64_t kBase = 1'700'000'000'000'000'000;
  const auto work = kernels(trace);
  ASSERT_EQ(work.size(), 2u);
  EXPECT_EQ(work[0].name, "void gemm<float>(int)");
  EXPECT_EQ(work[0].start, kBase + 1000);
  EXPECT_EQ(work[0].duration, 2000);
  EXPECT_EQ(work[0].correlation, 7);
  const auto cell = [&](int at) { return trace.cell(Table::kKernel, work[0].dim, at); };
  EXPECT_EQ(cell(column::Kernel::grid_x), 1280);
  EXPECT_EQ(cell(column::Kernel::grid_y), 2);
  EXPECT_EQ(cell(column::Kernel::group_x), 128);
  EXPECT_EQ(cell(column::Kernel::registers), 40);
  EXPECT_EQ(cell(column::Kernel::shared_dynamic), 1024);
  EXPECT_EQ(work[1].name, "relu(float*)");
  const auto api = calls(trace);
  ASSERT_EQ(api.size(), 4u);
  EXPECT_EQ(api[0].name, "aten::mm");
  EXPECT_EQ(api[0].duration, 800);
  EXPECT_EQ(api[1].name, "cudaLaunchKernel");
  EXPECT_EQ(api[1].duration, 100);
  EXPECT_EQ(api[1].correlation, 7);
  EXPECT_EQ(api[2].name, "aten::relu");
  EXPECT_EQ(api[2].duration, 100);
  EXPECT_EQ(api[3].duration, 40);
  // The second call and its kernel have no correlation: the event's number ties them.
  EXPECT_NE(api[3].correlation, 0);
  EXPECT_EQ(api[3].correlation, work[1].correlation);
  EXPECT_EQ(trace.cell(Table::kTrack, work[1].track, column::Track::process),
            trace.cell(Table::kTrack, api[3].track, column::Track::process));
  EXPECT_EQ(thread_of(trace, api[3].track), "main");
  const auto copies =
      rows_of(trace, Table::kCopy, Table::kCopyShape, column::CopyShape::direction, column::Copy::bytes);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].own, 4096);
  EXPECT_EQ(trace.cell(Table::kCopyShape, copies[0].dim, column::CopyShape::direction),
            static_cast<int64_t>(event::CopyDirection::kHostToDevice));
  EXPECT_EQ(trace.cell(Table::kCopyShape, copies[0].dim, column::CopyShape::source_memory),
            static_cast<int64_t>(event::MemoryKind::kPageable));
  const auto fills = rows_of(trace, Table::kFill, Table::kFillShape, column::FillShape::value, column::Fill::bytes);
  ASSERT_EQ(fills.size(), 1u);
  EXPECT_EQ(fills[0].own, 256);
  EXPECT_EQ(readings(trace), (std::vector<std::pair<int64_t, double>>{{kBase + 1500, 300.5}}));
  EXPECT_EQ(trace.text(Table::kCounter, 1, column::Counter::name), "power");
  EXPECT_EQ(trace.text(Table::kCounter, 1, column::Counter::unit), "W");
  EXPECT_EQ(trace.cell(Table::kProcess, 1, column::Process::pid), 77);
  EXPECT_EQ(trace.text(Table::kProcess, 1, column::Process::name), "python3");
  EXPECT_EQ(told(trace).find("lost"), std::string::npos);
}

TEST(PerfettoRead, RenderStagesAndColumnsOfCalls) {
  const auto trace = read_bytes(cuspy_trace());
  ASSERT_TRUE(trace);
  expect_cuspy(*trace);
  EXPECT_EQ(trace->rows(Table::kClock), 1);
}

TEST(PerfettoRead, CompressedInEveryWay) {
  const std::string plain = cuspy_trace();
  for (const std::string& bytes :
       {gzipped(plain), zstandard(plain), packed_within(50, zlibbed(plain)), packed_within(133, zstandard(plain)),
        gzipped(plain.substr(0, 40)) + gzipped(plain.substr(40)), gzipped(packed_within(50, zlibbed(plain)))}) {
    const auto trace = read_bytes(bytes, "t.pftrace.packed");
    ASSERT_TRUE(trace);
    expect_cuspy(*trace);
  }
}

TEST(PerfettoRead, ClocksOfTheirOwnThatCountUp) {
  const auto trace = read_bytes(sdk_trace());
  ASSERT_TRUE(trace);
  const auto found = markers(*trace);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].name, "outer");
  EXPECT_EQ(found[0].start, 1'000'010'000);
  EXPECT_EQ(found[0].duration, 100'000);
  EXPECT_EQ(found[1].name, "inner");
  EXPECT_EQ(found[1].duration, 40'000);
  EXPECT_EQ(found[2].name, "here");
  EXPECT_EQ(found[2].start, 1'000'500'000);
  EXPECT_EQ(found[2].duration, 0);
  EXPECT_EQ(thread_of(*trace, found[0].track), "worker");
  EXPECT_EQ(thread_of(*trace, found[2].track), "other");
  EXPECT_EQ(trace->text(Table::kLabel, found[0].dim, column::Label::category), "work");
  EXPECT_EQ(readings(*trace), (std::vector<std::pair<int64_t, double>>{{1'000'505'000, 42}}));
  EXPECT_EQ(trace->text(Table::kCounter, 1, column::Counter::name), "depth");
}

// A packet of a slice on track 5, sequence 1.
Proto slice(uint64_t time, int type, std::string_view name = {}, uint64_t sequence = 1) {
  Proto event;
  event.number(9, static_cast<uint64_t>(type)).number(11, 5);
  if (!name.empty()) event.bytes(23, name);
  return Proto().number(8, time).number(10, sequence).message(11, event);
}

TEST(PerfettoRead, DescriptorsBehindEventsAndTimesOutOfOrder) {
  PacketsMaker made;
  made.packet(slice(500, 1, "late")).packet(slice(600, 2));
  made.packet(slice(100, 1, "outer", 2)).packet(slice(300, 2, "", 2));
  made.packet(slice(150, 1, "inner", 3)).packet(slice(200, 2, "", 3));
  made.thread(5, 1, 9, 10, "worker").process(1, 9, "app");
  const auto trace = read_bytes(made.text());
  ASSERT_TRUE(trace);
  const auto found = markers(*trace);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].duration, 200);
  EXPECT_EQ(found[1].name, "inner");
  EXPECT_EQ(found[1].duration, 50);
  EXPECT_EQ(found[2].duration, 100);
  EXPECT_EQ(thread_of(*trace, found[0].track), "worker");
  EXPECT_EQ(trace->text(Table::kProcess, 1, column::Process::name), "app");
}

TEST(PerfettoRead, OtherClocks) {
  PacketsMaker made;
  // REALTIME leads BOOTTIME by 1000, later by 1100; 128 is tied to REALTIME only; 7 to nothing.
  made.snapshot({{6, 1000}, {1, 2000}}).snapshot({{6, 5000}, {1, 6100}}).snapshot({{128, 10}, {1, 2010}});
  const auto at = [&](uint64_t clock, uint64_t time) {
    made.packet(Proto().number(58, clock).number(8, time).number(10, 1).message(
        11, Proto().number(9, 3).number(11, 5).bytes(23, std::to_string(clock))));
  };
  at(1, 2500);
  at(1, 6200);
  at(128, 40);
  at(7, 77);
  const auto trace = read_bytes(made.text());
  ASSERT_TRUE(trace);
  const auto found = markers(*trace);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].start, 77);
  EXPECT_EQ(found[1].start, 1040);
  EXPECT_EQ(found[2].start, 1500);
  EXPECT_EQ(found[3].start, 5100);
  EXPECT_NE(told(*trace).find("1 event has a time of a clock that no snapshot ties"), std::string::npos)
      << told(*trace);
}

TEST(PerfettoRead, OldPhasesAndAsynchronousSlices) {
  PacketsMaker made;
  made.packet(Proto().number(10, 1).number(13, 1).message(
      44, Proto().number(1, 9).number(2, 10).bytes(5, "old").number(6, 1000)));
  const auto legacy = [&](uint64_t time, std::string_view name, const Proto& phase) {
    made.packet(
        Proto().number(8, time).number(10, 1).message(11, Proto().bytes(22, "net").bytes(23, name).message(6, phase)));
  };
  legacy(5000, "whole", Proto().number(2, 'X').number(3, 7));
  legacy(5100, "first", Proto().number(2, 'b').number(6, 1));
  legacy(5200, "second", Proto().number(2, 'b').number(6, 2));
  legacy(5300, "first", Proto().number(2, 'e').number(6, 1));
  legacy(5500, "second", Proto().number(2, 'e').number(6, 2));
  legacy(5600, "here", Proto().number(2, 'i'));
  // Times within the event, in us since the thread's reference.
  made.packet(Proto().number(10, 1).message(11, Proto().number(1, 2).number(9, 3).bytes(23, "counted")));
  const auto trace = read_bytes(made.text());
  ASSERT_TRUE(trace);
  const auto found = markers(*trace);
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[0].name, "whole");
  EXPECT_EQ(found[0].duration, 7000);
  EXPECT_EQ(thread_of(*trace, found[0].track), "old");
  EXPECT_EQ(found[1].name, "first");
  EXPECT_EQ(found[1].duration, 200);
  EXPECT_EQ(found[2].duration, 300);
  EXPECT_EQ(found[4].name, "counted");
  EXPECT_EQ(found[4].start, 1'002'000);
}

TEST(PerfettoRead, SamplesProcessTreesAndGpus) {
  const auto trace = read_bytes(perfetto_samples()[2]);
  ASSERT_TRUE(trace);
  const int columns[] = {column::Sample::track, column::Sample::start, column::Sample::dim};
  int samples = 0;
  EXPECT_TRUE(trace::visit_chunks(*trace, Table::kSample, columns, [&](size_t, auto values) {
    ++samples;
    EXPECT_EQ(thread_of(*trace, values[0][0]), "io");
    EXPECT_EQ(values[1][0], 5000);
    const int64_t frame = trace->cell(Table::kStack, values[2][0], column::Stack::frame);
    EXPECT_EQ(trace->text(Table::kFrame, frame, column::Frame::function), "main");
    EXPECT_EQ(trace->text(Table::kFrame, frame, column::Frame::module), "/bin/app");
    return true;
  }));
  EXPECT_EQ(samples, 1);
  EXPECT_EQ(trace->text(Table::kProcess, 1, column::Process::command), "/bin/app");
  EXPECT_EQ(trace->text(Table::kDevice, 1, column::Device::name), "Big GPU");
  const auto found = kernels(*trace);
  ASSERT_EQ(found.size(), 1u);  // a phone's render stage
  EXPECT_EQ(found[0].name, "render");
  EXPECT_EQ(trace->cell(Table::kKernel, found[0].dim, column::Kernel::kind),
            static_cast<int64_t>(event::DispatchKind::kTask));
}

TEST(PerfettoRead, StatesThatAreNotThere) {
  PacketsMaker made;
  const Proto named = Proto().number(9, 3).number(11, 5).number(10, 1);
  const auto event = [&](uint64_t sequence, uint64_t flags) {
    made.packet(Proto().number(8, 100).number(10, sequence).number(13, flags).message(11, named));
  };
  event(1, 2);  // never cleared
  made.packet(Proto().number(10, 2).number(13, 1).message(12, Proto().message(2, interned_text(1, "good"))));
  event(2, 2);
  made.packet(Proto().number(10, 2).number(42, 1));  // lost packets
  event(2, 2);
  made.packet(Proto().number(10, 2).number(13, 1));  // cleared: the name is gone
  event(2, 2);
  const auto trace = read_bytes(made.text());
  ASSERT_TRUE(trace);
  const auto found = markers(*trace);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(std::count_if(found.begin(), found.end(), [](const Found& each) { return each.name == "good"; }), 1);
  const std::string text = told(*trace);
  EXPECT_NE(text.find("2 packets refer to earlier ones"), std::string::npos) << text;
  EXPECT_NE(text.find("1 event has no name"), std::string::npos) << text;
  EXPECT_NE(text.find("dropped in 1 place"), std::string::npos) << text;
  EXPECT_NE(text.find("3 dropped by the vendor's library"), std::string::npos) << text;
}

TEST(PerfettoRead, EndsWithoutBeginsAndBeginsWithoutEnds) {
  PacketsMaker made;
  made.packet(slice(50, 2)).packet(slice(100, 1, "open"));
  const auto trace = read_bytes(made.text());
  ASSERT_TRUE(trace);
  const auto found = markers(*trace);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].duration, kUnknown);
  EXPECT_EQ(told(*trace), "1 open at exit\n1 bad input row\n");
}

TEST(PerfettoRead, FilesThatAreNotWhole) {
  const std::string whole = cuspy_trace();
  // Wherever it is cut, what stands before counts.
  const auto trace = read_bytes(whole.substr(0, whole.size() - 30));
  ASSERT_TRUE(trace);
  EXPECT_EQ(kernels(*trace).size(), 2u);
  EXPECT_NE(told(*trace).find("the file is cut off within a packet at byte "), std::string::npos) << told(*trace);
  const auto torn = read_bytes(gzipped(whole).substr(0, gzipped(whole).size() - 12));
  ASSERT_TRUE(torn);
  EXPECT_NE(told(*torn).find("the gzip data is cut off"), std::string::npos) << told(*torn);
  // A length beyond the end, and bytes that are no packets, behind good ones.
  for (const std::string& tail :
       {std::string("\x0a\xff\xff\xff\xff\x7f"), std::string("\x0b\x0c\x0d"), std::string(40, '\xff')}) {
    const auto damaged = read_bytes(whole + tail);
    ASSERT_TRUE(damaged);
    expect_cuspy(*damaged);
    EXPECT_NE(told(*damaged).find("the trace is not whole"), std::string::npos);
  }
  EXPECT_NE(refusal_of("").find("empty"), std::string::npos);
  EXPECT_NE(refusal_of("\x0a\x7f").find("cut off"), std::string::npos);
}

TEST(PerfettoRead, UnknownFieldsArePassedOver) {
  PacketsMaker made;
  made.packet(Proto().number(8, 200).number(10, 1).message(
      11, Proto().number(9, 3).number(11, 5).bytes(23, "x").number(1234, 1).fixed(1235, 2).bytes(1236, "y")));
  made.packet(Proto().number(8, 100).number(10, 1).number(1777, 5).bytes(1999, "tomorrow"));
  const auto trace = read_bytes(made.text() + Proto().bytes(16, "more").number(15, 3).text());
  ASSERT_TRUE(trace);
  EXPECT_EQ(markers(*trace).size(), 1u);
  EXPECT_NE(told(*trace).find("tacho does not read: packets of kind 1999: 1"), std::string::npos) << told(*trace);
}

TEST(PerfettoRead, BombsAndNestedCompression) {
  const std::string bomb(64 << 20, '\0');
  PacketsMaker made;
  for (int i = 0; i < 3; ++i) made.packet(Proto().bytes(50, zlibbed(bomb)));
  made.packet(Proto().bytes(133, zstandard(bomb)));
  made.packet(Proto().bytes(50, zlibbed(packed_within(50, zlibbed(cuspy_trace())))));
  made.packet(Proto().bytes(50, "no zlib data"));
  const auto trace = read_bytes(made.text() + cuspy_trace());
  ASSERT_TRUE(trace);
  expect_cuspy(*trace);
  EXPECT_NE(told(*trace).find("6 packets could not be read, the first for this reason: compressed packets that unpack "
                              "to more than 32 MiB"),
            std::string::npos)
      << told(*trace);
}

// One pair out of order does not make columns of what follows.
TEST(PerfettoRead, NestedSlicesBehindOneRunInColumns) {
  PacketsMaker made;
  made.packet(slice(1000, 1, "a")).packet(slice(500, 1, "b", 2)).packet(slice(1500, 2, "", 2)).packet(slice(2000, 2));
  for (uint64_t base = 10'000; base <= 30'000; base += 10'000)
    made.packet(slice(base, 1, "outer"))
        .packet(slice(base + 100, 1, "inner"))
        .packet(slice(base + 200, 2))
        .packet(slice(base + 9000, 2));
  const auto trace = read_bytes(made.text());
  ASSERT_TRUE(trace);
  const auto found = markers(*trace);
  ASSERT_EQ(found.size(), 8u);
  for (size_t i = 2; i < found.size(); ++i) {
    EXPECT_EQ(found[i].name, i % 2 == 0 ? "outer" : "inner");
    EXPECT_EQ(found[i].duration, i % 2 == 0 ? 9000 : 100);
  }
}

TEST(PerfettoRead, InternedWordsOfCollectives) {
  PacketsMaker made;
  made.packet(Proto().number(10, 1).number(13, 1).message(
      12, Proto().message(3, interned_text(7, "Collective name")).message(3, interned_text(8, "dtype"))));
  Proto event;
  event.number(9, 1).number(11, 5).bytes(22, "kernel").bytes(23, "ncclDevKernel");
  event.message(4, Proto().number(1, 7).bytes(6, "allreduce")).message(4, Proto().number(1, 8).bytes(6, "Float"));
  made.packet(Proto().number(8, 1000).number(10, 1).message(11, event)).packet(slice(2000, 2));
  const auto trace = read_bytes(made.text());
  ASSERT_TRUE(trace);
  const auto found =
      rows_of(*trace, Table::kDispatch, Table::kKernel, column::Kernel::name, column::Dispatch::arguments);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(trace->string(found[0].own), "Collective name=allreduce, dtype=Float");
}

// Begins that lie too deep are left out with their ends, whether the line is in order of time or not.
TEST(PerfettoRead, EndsOfSlicesThatLieTooDeep) {
  for (const bool unsorted : {false, true}) {
    PacketsMaker made;
    if (unsorted) made.packet(slice(5000, 3, "late")).packet(slice(6000, 1, "late")).packet(slice(6100, 2));
    for (int i = 0; i < 100'000; ++i) made.packet(slice(1000, 1, "leak"));
    for (uint64_t at = 2000; at < 2300; at += 100) made.packet(slice(at, 1, "real")).packet(slice(at + 10, 2));
    const auto trace = read_bytes(made.text());
    ASSERT_TRUE(trace);
    const std::string text = told(*trace);
    // In order of time "late", too, lies within them.
    const std::string words = "100000 open at exit\n" + std::to_string(unsorted ? 4 : 3) + " bad input row\n";
    EXPECT_NE(text.find(words), std::string::npos) << text;
  }
}

TEST(PerfettoRead, EventsOfSeveralFlows) {
  PacketsMaker made;
  const auto marker = [&](uint64_t time, std::string_view name, const Proto& flows) {
    Proto event = flows;
    made.packet(Proto().number(8, time).number(10, 1).message(11, event.number(9, 3).number(11, 5).bytes(23, name)));
  };
  marker(1000, "a", Proto().fixed(47, 1).fixed(47, 2));
  marker(1200, "b", Proto().fixed(47, 1));
  marker(1400, "c", Proto().fixed(47, 2));
  Proto many;
  for (uint64_t flow = 0; flow < 100; ++flow) many.fixed(47, 1000 + flow);
  marker(2000, "many", many);
  const auto trace = read_bytes(made.text());
  ASSERT_TRUE(trace);
  const auto found = markers(*trace);
  ASSERT_EQ(found.size(), 4u);
  std::vector<std::pair<int64_t, int64_t>> links;
  const int columns[] = {column::Link::from, column::Link::to};
  EXPECT_TRUE(trace::visit_chunks(*trace, Table::kLink, columns, [&](size_t, auto values) {
    for (size_t i = 0; i < values[0].size(); ++i) links.emplace_back(values[0][i], values[1][i]);
    return true;
  }));
  std::sort(links.begin(), links.end());
  EXPECT_EQ(links, (std::vector<std::pair<int64_t, int64_t>>{{found[0].correlation, found[1].correlation},
                                                             {found[0].correlation, found[2].correlation}}));
  EXPECT_NE(told(*trace).find("than tacho keeps of one: 36 were left out"), std::string::npos) << told(*trace);
}

TEST(PerfettoRead, LocalIdsOfTwoProcesses) {
  PacketsMaker made;
  made.process(1, 10, "one").thread(2, 1, 10, 10, "a").process(3, 20, "two").thread(4, 3, 20, 20, "b");
  const auto legacy = [&](uint64_t time, uint64_t track, char phase, std::string_view name) {
    made.packet(Proto().number(8, time).number(10, track).message(
        11, Proto().number(11, track).bytes(22, "net").bytes(23, name).message(
                6, Proto().number(2, static_cast<uint64_t>(phase)).number(10, 5))));
  };
  legacy(1000, 2, 'b', "one's");
  legacy(1100, 4, 'b', "two's");
  legacy(1500, 2, 'e', "one's");
  legacy(3000, 4, 'e', "two's");
  const auto trace = read_bytes(made.text());
  ASSERT_TRUE(trace);
  const auto found = markers(*trace);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].duration, 500);
  EXPECT_EQ(found[1].duration, 1900);
  EXPECT_NE(trace->cell(Table::kTrack, found[0].track, column::Track::process),
            trace->cell(Table::kTrack, found[1].track, column::Track::process));
}

TEST(PerfettoRead, CountersThatSequencesDescribeThemselves) {
  PacketsMaker made;
  const auto counter = [&](uint64_t sequence, std::string_view name, uint64_t value, uint64_t time) {
    Proto event;
    if (!name.empty()) event.message(1, Proto().message(1, Proto().number(1, 1).bytes(2, name)));
    event.message(2, Proto().number(1, 1).number(2, value));
    made.packet(Proto().number(8, time).number(10, sequence).message(52, event));
  };
  counter(1, "clock", 100, 1000);
  counter(2, "power", 7, 1100);
  counter(1, "", 200, 1200);
  const auto trace = read_bytes(made.text());
  ASSERT_TRUE(trace);
  std::vector<std::pair<std::string, int64_t>> found;
  const int columns[] = {column::Reading::track, column::Reading::start};
  EXPECT_TRUE(trace::visit_chunks(*trace, Table::kReading, columns, [&](size_t, auto values) {
    for (size_t i = 0; i < values[0].size(); ++i) {
      const int64_t row = trace->cell(Table::kTrack, values[0][i], column::Track::counter);
      found.emplace_back(trace->text(Table::kCounter, row, column::Counter::name), values[1][i]);
    }
    return true;
  }));
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (std::vector<std::pair<std::string, int64_t>>{{"clock", 1000}, {"clock", 1200}, {"power", 1100}}));
}

// The last hops to the primary clock, of which there is one for all sequences, are kept once.
TEST(PerfettoRead, ManyClocksOnOneWay) {
  PacketsMaker made;
  for (uint64_t at = 0; at < 8000; ++at) made.snapshot({{6, 1'000'000 + at * 1000}, {3, 500'000 + at * 1000}});
  for (uint64_t sequence = 2; sequence < 2002; ++sequence) {
    made.snapshot({{3, 600'000}, {64, 5}}, sequence);
    made.packet(
        Proto().number(58, 64).number(8, 10).number(10, sequence).message(11, Proto().number(9, 3).number(11, 5)));
  }
  EXPECT_LT(memory_to_read(made.text()), 128);
}

TEST(PerfettoRead, OneInternedNameInEachOfManySequences) {
  Proto interned;
  for (const uint32_t table : {1, 2, 3, 5, 24, 1000}) interned.message(table, interned_text(1, "n"));
  PacketsMaker made;
  for (uint64_t sequence = 1; sequence < 20'000; ++sequence)
    made.packet(Proto().number(10, sequence).number(13, 1).message(12, interned));
  made.packet(slice(100, 3, "here"));
  EXPECT_LT(memory_to_read(made.text()), 128);
}

TEST(PerfettoRead, CompressedPacketsThatTogetherAreTooLarge) {
  std::string empty_packets;
  for (int i = 0; i < 4 << 20; ++i) empty_packets.append("\x0a\x00", 2);
  const std::string block = packed_within(50, zlibbed(empty_packets));  // 8 MiB
  std::string bytes = cuspy_trace();
  for (int i = 0; i < 20; ++i) bytes += block;
  const auto trace = read_bytes(gzipped(bytes));
  ASSERT_TRUE(trace);
  expect_cuspy(*trace);
  EXPECT_NE(told(*trace).find("compressed packets of a file of its size that unpack to more than 64 MiB together"),
            std::string::npos)
      << told(*trace);
}

// Beyond some number of open slices, those of further begins wait in files; each still finds its end.
TEST(PerfettoRead, ManySlicesOpenAtOnce) {
  constexpr uint64_t kLines = 6, kDepth = 60'000;
  PacketsMaker made;
  const auto edge = [&](uint64_t line, uint64_t time, uint64_t type) {
    made.packet(Proto().number(8, time).number(10, 1).message(11, Proto().number(9, type).number(11, line)));
  };
  for (uint64_t line = 1; line <= kLines; ++line)
    for (uint64_t i = 0; i < kDepth; ++i) edge(line, 1000 + i, 1);
  for (uint64_t line = 1; line <= kLines; ++line)
    for (uint64_t i = 0; i < kDepth; ++i) edge(line, 200'000 + i, 2);
  const auto trace = read_bytes(made.text());
  ASSERT_TRUE(trace);
  const auto found = markers(*trace);
  ASSERT_EQ(found.size(), kLines * kDepth);
  EXPECT_TRUE(std::all_of(found.begin(), found.end(), [](const Found& each) {
    return each.duration == 200'000 + static_cast<int64_t>(kDepth) - 1 - (each.start - 1000) - each.start;
  }));
  EXPECT_EQ(told(*trace).find("open at exit"), std::string::npos) << told(*trace);
}

TEST(PerfettoRead, BeginsWithoutEndsOnManyLines) {
  PacketsMaker made;
  for (uint64_t i = 0; i < 3'000'000; ++i)
    made.packet(Proto().number(8, 1000 + i).number(10, 1).message(11, Proto().number(9, 1).number(11, 1 + i % 50)));
  // The files' pages are no memory that a limit on data counts.
  const auto read = [&] {
    const rlim_t most = static_cast<rlim_t>(of_process("VmData:") + 128) << 20;
    const rlimit limit{most, most};
    setrlimit(RLIMIT_DATA, &limit);
    std::_Exit(read_bytes(made.text()) ? 0 : 1);
  };
  EXPECT_EXIT(read(), testing::ExitedWithCode(0), "");
}

TEST(PerfettoRead, ManyCountersAndAnnotationsOfOneEvent) {
  std::string numbers, reals;
  for (char i = 1; i <= 70; ++i) numbers += i;
  reals.assign(70 * sizeof(double), '\0');
  Proto event = Proto().number(9, 3).number(11, 5).bytes(23, "many");
  event.bytes(31, numbers).bytes(12, numbers).bytes(45, numbers).bytes(46, reals);
  for (int i = 0; i < 4099; ++i) event.message(4, Proto().bytes(10, "corr_id").number(4, 7));
  const auto trace = read_bytes(PacketsMaker().packet(Proto().number(8, 1000).number(10, 1).message(11, event)).text());
  ASSERT_TRUE(trace);
  EXPECT_EQ(readings(*trace).size(), 128u);
  const std::string text = told(*trace);
  EXPECT_NE(text.find("events have more values of counters than tacho keeps of one: 12 were left out"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("events have more annotations than tacho reads of one: 3 were left out"), std::string::npos)
      << text;
}

// Writers repeat their descriptors: a name that stays the same takes no more room.
TEST(PerfettoRead, LongNamesThatAreRepeated) {
  const std::string name(1 << 16, 'n'), command(4000, 'c');
  PacketsMaker made;
  for (int i = 0; i < 1100; ++i) made.process(1, 50, name).thread(2, 1, 50, 51, name);
  for (int i = 0; i < 20'000; ++i)
    made.packet(Proto().message(2, Proto().message(1, Proto().number(1, 9).bytes(3, command))));
  made.packet(slice(1000, 3, "here"));
  const auto trace = read_bytes(zstandard(made.text()));
  ASSERT_TRUE(trace);
  EXPECT_EQ(told(*trace).find("left out"), std::string::npos) << told(*trace);
}

TEST(PerfettoRead, PrimaryClocksOfEveryKind) {
  const auto clock = [](uint64_t primary) {
    Proto snapshot;
    for (const uint64_t id : {primary, uint64_t{1}}) snapshot.message(1, Proto().number(1, id).number(2, 1000));
    PacketsMaker made;
    made.packet(Proto().message(6, snapshot.number(2, primary))).packet(slice(1000, 3, "here"));
    const auto trace = read_bytes(made.text());
    return std::string(trace->property(Table::kEnd, 0, "clock").value_or("")) + told(*trace);
  };
  EXPECT_EQ(clock(6), "CLOCK_BOOTTIME");
  EXPECT_EQ(clock(4), "CLOCK_MONOTONIC_COARSE");
  EXPECT_EQ(clock(9), "the times are those of the file's clock 9, which tacho does not know\n");
}

}  // namespace
}  // namespace tacho::test
