// The process that samples devices, and tacho's end of the socket: rows, losses, and processes that do not do what they
// should.
#include "launch/run/device_samples.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <limits>

#include "trace/rows.h"

namespace tacho::launch {
namespace {

namespace column = event::column;
using event::Table;
using trace::Folder;
using trace::must;
using trace::TraceWriter;

const std::vector<SampledDevice> kDevices = {{0, "One", "V", "a1", "U-0"}, {3, "Two", "V", "a1", "U-3"}};
const std::vector<SampledMetric> kMetrics = {{"bytes", "B", "how many"}, {"cycles", "", ""}};

struct Row {
  int64_t gpu;
  std::string counter;
  int64_t start;
  double value;
  bool operator==(const Row&) const = default;
};

// Starts, lets the body end by itself, and reads what was written.
struct Written {
  std::vector<Row> rows;
  std::vector<std::string> notes;
  std::vector<int64_t> losses, clock_errors;
  uint64_t count = 0;
};
Written written_by(
    const std::function<void(SampleSender&)>& body,
    const std::function<bool(int64_t, int64_t)>& wanted = [](int64_t, int64_t) { return true; }) {
  const Folder folder;
  std::string none;
  const auto samples = must(DeviceSamples::begin(body, none));
  EXPECT_EQ(none, "");
  samples->start();
  samples->stop();
  auto writer = must(TraceWriter::create(folder / "t.tacho", {}));
  samples->deliver(*writer, wanted);
  samples->finish(*writer);
  const auto trace = must(writer->finish_and_open());
  Written out;
  out.count = samples->count();
  for (size_t chunk = 0; chunk < trace->chunks(Table::kReading).size(); ++chunk) {
    std::vector<int64_t> tracks, starts, values;
    EXPECT_TRUE(trace->decode(Table::kReading, chunk, column::Reading::track, tracks));
    EXPECT_TRUE(trace->decode(Table::kReading, chunk, column::Reading::start, starts));
    EXPECT_TRUE(trace->decode(Table::kReading, chunk, column::Reading::value, values));
    for (size_t i = 0; i < tracks.size(); ++i) {
      const int64_t device = trace->cell(Table::kTrack, tracks[i], column::Track::device);
      const int64_t counter = trace->cell(Table::kTrack, tracks[i], column::Track::counter);
      out.rows.push_back({trace->cell(Table::kDevice, device, column::Device::index),
                          std::string(trace->text(Table::kCounter, counter, column::Counter::name)), starts[i],
                          std::bit_cast<double>(values[i])});
    }
  }
  for (size_t chunk = 0; chunk < trace->chunks(Table::kNote).size(); ++chunk) {
    std::vector<int64_t> texts;
    EXPECT_TRUE(trace->decode(Table::kNote, chunk, column::Note::text, texts));
    for (const int64_t text : texts) out.notes.emplace_back(trace->string(text));
  }
  for (size_t chunk = 0; chunk < trace->chunks(Table::kLoss).size(); ++chunk) {
    std::vector<int64_t> counts;
    EXPECT_TRUE(trace->decode(Table::kLoss, chunk, column::Loss::count, counts));
    out.losses.insert(out.losses.end(), counts.begin(), counts.end());
  }
  for (int64_t device = 1; device < trace->rows(Table::kDevice); ++device)
    out.clock_errors.push_back(trace->cell(Table::kDevice, device, column::Device::clock_error));
  return out;
}

void begin_in_order(SampleSender& sender) {
  sender.ready(kDevices, kMetrics);
  if (!sender.wait_for_start()) _exit(0);
}
void wait_for_the_end(SampleSender& sender) {
  while (!sender.end_is_asked(1000)) continue;
}

TEST(DeviceSamples, RowsOfDevicesAndMetrics) {
  const Written got = written_by([](SampleSender& sender) {
    begin_in_order(sender);
    sender.sample(0, 100, 200, std::vector<double>{1.5, 2});
    wait_for_the_end(sender);
    sender.sample(1, 150, 250, std::vector<double>{3, 4});
    sender.clock_error(1, 77);
    sender.lost(5);
    sender.note("careful");
  });
  EXPECT_EQ(got.rows, (std::vector<Row>{
                          {0, "bytes", 100, 1.5}, {0, "cycles", 100, 2}, {3, "bytes", 150, 3}, {3, "cycles", 150, 4}}));
  EXPECT_EQ(got.count, 2u);
  EXPECT_EQ(got.losses, std::vector<int64_t>{5});
  EXPECT_EQ(got.notes, std::vector<std::string>{"careful"});
  EXPECT_EQ(got.clock_errors, (std::vector<int64_t>{event::kUnknown, 77}));
}

TEST(DeviceSamples, OnlyWhatIsWanted) {
  const Written got = written_by(
      [](SampleSender& sender) {
        begin_in_order(sender);
        for (int64_t i = 0; i < 10; ++i) sender.sample(0, i * 10, i * 10 + 10, std::vector<double>{1, 1});
        wait_for_the_end(sender);
      },
      [](int64_t begin, int64_t end) { return begin >= 20 && end <= 50; });
  EXPECT_EQ(got.count, 3u);
  EXPECT_EQ(got.rows.size(), 6u);
  EXPECT_TRUE(got.losses.empty());
}

TEST(DeviceSamples, ValuesThatAreNoNumbers) {
  const Written got = written_by([](SampleSender& sender) {
    begin_in_order(sender);
    sender.sample(0, 0, 10, std::vector<double>{std::numeric_limits<double>::quiet_NaN(), 4});
    sender.sample(0, 10, 20, std::vector<double>{std::numeric_limits<double>::infinity(), 5});
    wait_for_the_end(sender);
  });
  EXPECT_EQ(got.rows, (std::vector<Row>{{0, "cycles", 0, 4}, {0, "cycles", 10, 5}}));
  ASSERT_EQ(got.notes.size(), 1u);
  EXPECT_TRUE(got.notes[0].starts_with("2 values ")) << got.notes[0];
}

TEST(DeviceSamples, OfUnknownDevicesAndMetrics) {
  const Written got = written_by([](SampleSender& sender) {
    begin_in_order(sender);
    sender.sample(2, 0, 10, std::vector<double>{1, 2});
    sender.sample(0, 0, 10, std::vector<double>{1, 2, 3});
    sender.sample(0, 0, 10, {});
    sender.clock_error(9, 1);
    wait_for_the_end(sender);
  });
  EXPECT_TRUE(got.rows.empty());
  EXPECT_EQ(got.clock_errors, (std::vector<int64_t>{event::kUnknown, event::kUnknown}));
  ASSERT_EQ(got.notes.size(), 1u);
  EXPECT_TRUE(got.notes[0].starts_with("4 messages ")) << got.notes[0];
}

TEST(DeviceSamples, AProcessThatCannot) {
  std::string none;
  const auto refused = DeviceSamples::begin([](SampleSender& sender) { sender.refuse("no permission"); }, none);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "no permission");
  const auto nothing = DeviceSamples::begin([](SampleSender& sender) { sender.none("no GPU"); }, none);
  ASSERT_TRUE(nothing);
  EXPECT_EQ(*nothing, nullptr);
  EXPECT_EQ(none, "no GPU");
}

TEST(DeviceSamples, AProcessThatEndsBeforeItIsReady) {
  for (const auto& body : {std::function<void(SampleSender&)>([](SampleSender&) { raise(SIGKILL); }),
                           std::function<void(SampleSender&)>([](SampleSender&) {}),
                           std::function<void(SampleSender&)>([](SampleSender& sender) { sender.note("?"); })}) {
    std::string none;
    const auto begun = DeviceSamples::begin(body, none);
    ASSERT_FALSE(begun);
    EXPECT_NE(begun.error().message.find("ended, or did not answer"), std::string::npos);
  }
}

TEST(DeviceSamples, AProcessThatEndsWhileItSamples) {
  const Written got = written_by([](SampleSender& sender) {
    begin_in_order(sender);
    sender.sample(0, 0, 10, std::vector<double>{1, 2});
    raise(SIGKILL);
  });
  EXPECT_EQ(got.rows.size(), 2u);
  ASSERT_EQ(got.notes.size(), 1u);
  EXPECT_NE(got.notes[0].find("ended before it was asked to"), std::string::npos);
}

TEST(DeviceSamples, NobodyStartsIt) {
  std::string none;
  auto samples = must(DeviceSamples::begin([](SampleSender& sender) { begin_in_order(sender); }, none));
  EXPECT_EQ(samples->devices().size(), 2u);
  EXPECT_EQ(samples->metrics()[1].name, "cycles");
  samples.reset();  // does not wait for ever
}

}  // namespace
}  // namespace tacho::launch
