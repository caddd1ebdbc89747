// A counter that two passes of a replayed kernel read: every format gives the sum over the instances of the first.
#include <gtest/gtest.h>

#include <numeric>

#include "format/chrome_json/chrome_json.h"
#include "format/csv/csv.h"
#include "format/perfetto/perfetto.h"
#include "format/perfetto/perfetto_reader.h"
#include "format/rocpd/rocpd.h"
#include "format/rocprofv3_json/rocprofv3_json.h"
#include "support/folder.h"
#include "support/trace_maker.h"
#include "trace/read/rows.h"

namespace tacho::test {
namespace {

// Two instances, 3 + 4 in the first pass and 30 + 40 in the second; a further counter only in the second.
std::shared_ptr<const trace::Trace> in_two_passes() {
  TraceMaker made;
  const int64_t process = made.process(77);
  const int64_t queue = made.queue_track(process, made.device("G", event::DeviceKind::kGpu, "gfx90a"), 2);
  made.call(made.thread_track(process, 77), 50, 10, made.function("launch"), 4);
  made.dispatch(queue, 100, 30, made.kernel("k", 2048, 128, 12), 4, 0);
  const int64_t hits = made.counter("TCC_HIT"), waves = made.counter("SQ_WAVES");
  for (const int64_t pass : {0, 1})
    for (const int64_t instance : {0, 1})
      made.counter_value(queue, 100, 0, hits, instance, static_cast<double>(3 + instance) * (pass == 0 ? 1 : 10), pass);
  made.counter_value(queue, 100, 0, waves, 0, 32, 1);
  return made.open();
}

using Writer = Status (*)(const trace::Trace&, const format::ExportTarget&, const format::ExportOptions&,
                          std::vector<std::string>&);

std::string written(Writer write, const std::string& name) {
  const Folder folder;
  std::vector<std::string> files;
  format::ExportOptions options;
  options.gpu_model = false;
  const Status done = write(*in_two_passes(), {folder / name, "", ""}, options, files);
  EXPECT_TRUE(done) << done.error().message;
  return read_file(folder / name);
}

// {counter: sum of its values} of a format that tacho reads back.
std::map<std::string, double> read_back(Writer write,
                                        Result<std::shared_ptr<const trace::Trace>> (*read)(const std::string&),
                                        const std::string& name) {
  const Folder folder;
  std::vector<std::string> files;
  EXPECT_TRUE(write(*in_two_passes(), {folder / name, "", ""}, {}, files));
  const auto opened = read(folder / name);
  EXPECT_TRUE(opened) << opened.error().message;
  std::map<std::string, double> sums;
  if (!opened) return sums;
  Status status;
  using V = event::column::CounterValue;
  for (const auto& value : trace::rows<V::start, V::dim, V::value>(**opened, status))
    sums[std::string(trace::text<event::column::Counter::name>(**opened, value.dim))] +=
        std::bit_cast<double>(value.value.cell);
  EXPECT_TRUE(status);
  return sums;
}

const std::map<std::string, double> kExpected = {{"SQ_WAVES", 32}, {"TCC_HIT", 7}};

TEST(CounterPasses, TheFirstCountsInFilesThatAreReadBack) {
  EXPECT_EQ(read_back(format::rocprofv3::write, format::rocprofv3::read, "a_results.json"), kExpected);
  EXPECT_EQ(read_back(format::rocpd::write, format::rocpd::read, "a.db"), kExpected);
  EXPECT_EQ(read_back(format::write_perfetto, format::perfetto::read, "a.pftrace"), kExpected);
}

TEST(CounterPasses, TheFirstCountsOnTimelines) {
  std::map<std::string, double> highest;
  const PerfettoTrace trace = read_perfetto(written(format::write_perfetto, "a.pftrace"));
  for (const PerfettoEvent& event : trace.events)
    if (event.type == 4) {
      double& most = highest[trace.tracks.at(event.track).name];
      most = std::max(most, event.value);
    }
  std::vector<double> values;
  for (const auto& [name, value] : highest) values.push_back(value);
  std::sort(values.begin(), values.end());
  EXPECT_EQ(values, (std::vector<double>{7, 32}));

  const std::string json = written(format::write_chrome_json, "a.json");
  for (const char* const instance : {"\"value\":3}", "\"value\":4}"}) EXPECT_NE(json.find(instance), std::string::npos);
  for (const char* const later : {"\"value\":30}", "\"value\":33}", "\"value\":40}", "\"value\":44}"})
    EXPECT_EQ(json.find(later), std::string::npos) << json;
}

TEST(CounterPasses, TheFirstCountsInCsv) {
  const Folder folder;
  std::vector<std::string> files;
  ASSERT_TRUE(format::write_csv(*in_two_passes(), {"", folder.path(), "a"}, {}, files));
  const std::string text = read_file(folder / "a_counter_collection.csv");
  EXPECT_NE(text.find("\"TCC_HIT\",7.000000,"), std::string::npos) << text;
  EXPECT_NE(text.find("\"SQ_WAVES\",32.000000,"), std::string::npos) << text;
}

}  // namespace
}  // namespace tacho::test
