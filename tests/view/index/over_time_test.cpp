// What the index makes of samples and readings: stacks over time, and the rates of sums.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>

#include "trace/write/writer.h"
#include "view/index/index.h"

namespace tacho::view {
namespace {

using event::Table;
namespace row = event::row;

struct Made {
  std::shared_ptr<const trace::Trace> trace;
  std::unique_ptr<Tree> tree;
  std::unique_ptr<SliceNames> names;
  std::unique_ptr<TileIndex> index;
};

Made indexed(std::unique_ptr<trace::TraceWriter> writer) {
  Made made;
  made.trace = *writer->finish_and_open("test");
  made.tree = std::make_unique<Tree>(*made.trace);
  made.names = std::make_unique<SliceNames>(*made.trace);
  made.index = std::make_unique<TileIndex>(made.trace, *made.tree, *made.names);
  made.index->start();
  EXPECT_TRUE(made.index->wait());
  return made;
}

// The line of a kind; -1 without one.
int64_t line_of_kind(const Tree& tree, LineKind kind) {
  for (size_t i = 0; i < tree.lines().size(); ++i)
    if (tree.lines()[i].kind == kind) return static_cast<int64_t>(i);
  return -1;
}

constexpr int64_t kPeriod = 1000;

class Stacks {
 public:
  Stacks() : writer_(*trace::TraceWriter::create_temporary()) {
    const int64_t process = writer_->dimension(row::Process{.pid = 7, .name = writer_->string("app")});
    const int64_t thread = writer_->dimension(row::Thread{.process = process, .tid = 7});
    track_ = writer_->dimension(row::Track{.kind = event::TrackKind::kThread, .process = process, .thread = thread});
  }
  // A stack by its functions, outermost first; names with '!' are native code of the interpreter.
  void sample(int64_t at, const std::vector<std::string>& functions, int64_t period = kPeriod) {
    int64_t stack = 0;
    for (const std::string& function : functions) {
      const bool native = function.front() == '!';
      const int64_t frame =
          writer_->dimension(row::Frame{.kind = native ? event::FrameKind::kNative : event::FrameKind::kPython,
                                        .function = writer_->string(function),
                                        .module = native ? writer_->string("/usr/lib/libpython3.12.so.1.0") : 0});
      stack = writer_->dimension(row::Stack{.parent = stack, .frame = frame});
    }
    writer_->add(row::Sample{.track = track_, .start = 1'000'000 + at, .duration = period, .dim = stack});
  }
  // [lane, from, to, function] of the stacks over time.
  std::vector<std::tuple<int, int64_t, int64_t, std::string>> drawn() {
    const Made made = indexed(std::move(writer_));
    const int64_t line = line_of_kind(*made.tree, LineKind::kStack);
    std::vector<std::tuple<int, int64_t, int64_t, std::string>> out;
    if (line < 0) return out;
    const auto slices = made.index->slices(static_cast<size_t>(line), INT64_MIN, INT64_MAX, 1000);
    EXPECT_TRUE(slices && *slices);
    for (const Slice& slice : **slices)
      out.emplace_back(slice.lane, slice.start, slice.end, made.names->text(slice.name));
    std::sort(out.begin(), out.end());
    EXPECT_EQ(made.index->events(static_cast<size_t>(line)), static_cast<int64_t>(out.size()));
    return out;
  }

 private:
  std::unique_ptr<trace::TraceWriter> writer_;
  int64_t track_ = 0;
};

TEST(StacksOverTime, FramesThatFollowEachOtherAreOneSlice) {
  Stacks stacks;
  stacks.sample(0, {"main", "work", "inner"});
  stacks.sample(kPeriod, {"main", "work", "inner"});
  stacks.sample(2 * kPeriod, {"main", "work", "other"});
  stacks.sample(3 * kPeriod, {"main"});
  stacks.sample(4 * kPeriod, {"main", "work"});
  const std::vector<std::tuple<int, int64_t, int64_t, std::string>> expected = {{0, 0, 5 * kPeriod, "main"},
                                                                                {1, 0, 3 * kPeriod, "work"},
                                                                                {1, 4 * kPeriod, 5 * kPeriod, "work"},
                                                                                {2, 0, 2 * kPeriod, "inner"},
                                                                                {2, 2 * kPeriod, 3 * kPeriod, "other"}};
  EXPECT_EQ(stacks.drawn(), expected);
}

TEST(StacksOverTime, PeriodsThatNoClockHas) {
  Stacks stacks;
  stacks.sample(0, {"main"}, int64_t{1} << 61);
  stacks.sample(10 * kPeriod, {"main"});
  const std::vector<std::tuple<int, int64_t, int64_t, std::string>> expected = {{0, 0, 11 * kPeriod, "main"}};
  EXPECT_EQ(stacks.drawn(), expected);
}

TEST(StacksOverTime, TheSameFunctionBelowAnotherCallerIsAnotherSlice) {
  Stacks stacks;
  stacks.sample(0, {"a", "same"});
  stacks.sample(kPeriod, {"b", "same"});
  EXPECT_EQ(stacks.drawn().size(), 4u);
}

TEST(StacksOverTime, AThreadThatSleepsHasNone) {
  Stacks stacks;
  stacks.sample(0, {"main"});
  stacks.sample(5 * kPeriod, {"main"});   // late: other programs had the processor
  stacks.sample(20 * kPeriod, {"main"});  // asleep
  const std::vector<std::tuple<int, int64_t, int64_t, std::string>> expected = {
      {0, 0, 6 * kPeriod, "main"}, {0, 20 * kPeriod, 21 * kPeriod, "main"}};
  EXPECT_EQ(stacks.drawn(), expected);
}

TEST(StacksOverTime, TheInterpreterIsNoneOfTheProgramsFrames) {
  Stacks stacks;
  stacks.sample(0, {"!start", "main", "!eval", "work", "!free"});
  stacks.sample(kPeriod, {"!alone"});  // nothing but the interpreter: it stays
  const std::vector<std::tuple<int, int64_t, int64_t, std::string>> expected = {
      {0, 0, kPeriod, "main"}, {0, kPeriod, 2 * kPeriod, "!alone"}, {1, 0, kPeriod, "work"}};
  EXPECT_EQ(stacks.drawn(), expected);
}

TEST(Rates, SumsSinceTheBeginningOfAProcessAreTheirGrowth) {
  auto writer = *trace::TraceWriter::create_temporary();
  const int64_t process = writer->dimension(row::Process{.pid = 7, .name = writer->string("app")});
  const auto counter = [&](const char* name, const char* unit, const char* text) {
    const int64_t number = writer->dimension(
        row::Counter{.name = writer->string(name), .unit = writer->string(unit), .text = writer->string(text)});
    return writer->dimension(row::Track{.kind = event::TrackKind::kCounter, .process = process, .counter = number});
  };
  const int64_t time = counter("CPU User Time", "s", "CPU time in user mode since the process began"),
                bytes = counter("Disk Read", "B", "bytes fetched from storage"),
                memory = counter("CPU Memory Usage", "B", "resident memory (RSS)"), own = counter("Disk Read", "B", "");
  constexpr int64_t kSecond = 1'000'000'000;
  const auto read = [&](int64_t track, std::initializer_list<double> values) {
    int64_t at = kSecond;
    for (const double value : values) {
      writer->add(row::Reading{.track = track, .start = at, .value = std::bit_cast<int64_t>(value)});
      at += kSecond / 2;
    }
  };
  read(time, {1.0, 1.25, 1.25, 1.75});
  read(bytes, {100, 300, 50, 150});  // it began anew between the second and the third
  read(memory, {10, 20, 15, 15});
  read(own, {1, 2, 3, 4});
  const Made made = indexed(std::move(writer));
  std::map<int64_t, std::pair<std::string, std::vector<std::pair<int64_t, double>>>> shown;
  for (const int64_t track : {time, bytes, memory, own}) {
    const auto line = static_cast<size_t>(made.tree->line_of(Table::kReading, track));
    shown[track] = {made.tree->lines()[line].unit, made.index->values(line)};
  }
  using Values = std::vector<std::pair<int64_t, double>>;
  EXPECT_EQ(shown[time].first, "%");
  EXPECT_EQ(shown[time].second, (Values{{0, 50}, {kSecond / 2, 0}, {kSecond, 100}}));
  EXPECT_EQ(shown[bytes].first, "B/s");
  EXPECT_EQ(shown[bytes].second, (Values{{0, 400}, {kSecond, 200}}));
  EXPECT_EQ(shown[memory].first, "B");
  EXPECT_EQ(shown[memory].second.size(), 4u);
  EXPECT_EQ(shown[own].first, "B") << "a program's own counter of this name means what its program says";
}

TEST(Colours, AreOfTheNamesKind) {
  auto writer = *trace::TraceWriter::create_temporary();
  const int64_t process = writer->dimension(row::Process{.pid = 7});
  const int64_t device = writer->dimension(row::Device{.kind = event::DeviceKind::kGpu});
  const int64_t queue =
      writer->dimension(row::Track{.kind = event::TrackKind::kQueue, .process = process, .device = device});
  const int64_t thread = writer->dimension(row::Track{.kind = event::TrackKind::kThread, .process = process});
  for (const char* name : {"gemm", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"})
    writer->add(row::Dispatch{.track = queue,
                              .start = 1000,
                              .duration = 10,
                              .dim = writer->dimension(row::Kernel{.name = writer->string(name)})});
  const auto call = [&](const char* name, event::Domain domain) {
    writer->add(row::Api{.track = thread,
                         .start = 1000,
                         .duration = 10,
                         .dim = writer->dimension(row::Function{.name = writer->string(name), .domain = domain})});
  };
  call("hipLaunchKernel", event::Domain::kHipRuntime);
  call("aten::mm", event::Domain::kOperator);
  call("train.py(3): step", event::Domain::kPython);
  const Made made = indexed(std::move(writer));
  std::map<std::string, NameKind> kinds;
  for (uint32_t name = 1; name < made.names->size(); ++name) kinds[made.names->text(name)] = made.names->kind(name);
  EXPECT_EQ(kinds["gemm"], NameKind::kKernel);
  EXPECT_EQ(kinds["ncclDevKernel_AllReduce_Sum_f32_RING_LL"], NameKind::kCollective);
  EXPECT_EQ(kinds["hipLaunchKernel"], NameKind::kApi);
  EXPECT_EQ(kinds["aten::mm"], NameKind::kOperator);
  EXPECT_EQ(kinds["train.py(3): step"], NameKind::kHost);
  EXPECT_TRUE(made.names->any(NameKind::kHost));
  EXPECT_FALSE(made.names->any(NameKind::kCopy));
  // Kinds have hues of their own.
  for (const auto& [text, kind] : kinds)
    for (const auto& [other, of] : kinds)
      if (kind != of) {
        EXPECT_GT(
            std::abs(static_cast<int>(colour_of(text, kind) % 360) - static_cast<int>(colour_of(other, of) % 360)), 5);
      }
}

}  // namespace
}  // namespace tacho::view
