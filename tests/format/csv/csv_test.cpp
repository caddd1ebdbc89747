// rocprofv3's CSV files, to the letter.

#include "format/csv/csv.h"

#include <gtest/gtest.h>

#include <map>

#include "base/text/utf8.h"
#include "format/csv/parts.h"
#include "support/folder.h"
#include "support/golden.h"
#include "support/trace_maker.h"

namespace tacho::test {
namespace {

using Files = std::map<std::string, std::string>;

Files files_of(const trace::Trace& trace, format::ExportOptions options = {}, const std::string& prefix = "77") {
  Folder folder;
  std::vector<std::string> written;
  const Status done = format::write_csv(trace, {"", folder.path(), prefix}, options, written);
  EXPECT_TRUE(done) << done.error().message;
  Files files;
  for (const std::string& name : folder.names()) files[name] = read_file(folder / name);
  EXPECT_EQ(written.size(), files.size());
  return files;
}

// All files behind one another, each below its name.
std::string joined(const Files& files) {
  std::string text;
  for (const auto& [name, contents] : files) text += "== " + name + "\n" + contents;
  return text;
}

// The fields of a CSV text, by rows; doubled quotes undone.
std::vector<std::vector<std::string>> fields(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1);
  std::string field;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '"' && i + 1 < text.size() && text[i + 1] == '"')
        field += text[++i];
      else if (c == '"')
        quoted = false;
      else
        field += c;
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',' || c == '\n') {
      rows.back().push_back(std::move(field));
      field.clear();
      if (c == '\n') rows.emplace_back();
    } else {
      field += c;
    }
  }
  EXPECT_TRUE(!quoted && field.empty() && rows.back().empty()) << "ends with a line end outside quotes";
  rows.pop_back();
  return rows;
}

std::shared_ptr<const trace::Trace> sample(bool amd) {
  TraceMaker made;
  made.clock(0, 1000);
  const int64_t process = made.process(77, "app");
  const int64_t main = made.thread_track(process, 77, "app");
  const int64_t gpu = made.device("Accelerator", event::DeviceKind::kGpu, amd ? "gfx942" : "sm_90");
  const int64_t stream = made.queue_track(process, gpu, 3, amd ? "stream" : "queue");
  const int64_t copy_kernel = made.kernel("_Z7vecCopyPdS_ii", 1024, 64, amd ? 24 : kUnknown);
  made.call(main, 100, 50, made.function("hipLaunchKernel", event::Domain::kHipRuntime), 5);
  made.call(main, 160, 20, made.function("hipMemcpy", event::Domain::kHipRuntime), 6, 1);
  made.call(main, 190, 5, made.function("clFinish"), 7);
  made.call(main, 195, 5, made.function("hsa_init", event::Domain::kHsa), 8);
  made.dispatch(stream, 200, 40, copy_kernel, 5, 0);
  made.dispatch(stream, 300, 60, copy_kernel, 99, 1);  // its call was not seen
  made.dispatch(stream, 400, kUnknown, made.kernel("say \"hi\""), 0, 2);
  made.copy(stream, 210, 10, event::CopyDirection::kHostToDevice, 4096, gpu, 6);
  made.fill(stream, 500, 7, 64, gpu);
  made.allocation(main, 10, false, 4096, 0xabc, gpu);
  made.allocation(main, 600, true, kUnknown, 0xabc, gpu);
  made.marker(main, 90, 200, made.label("step \"1\""));
  made.marker(main, 95, 0, made.label("here", event::MarkerKind::kMark));
  return made.open();
}

TEST(Csv, FilesAndHeaders) {
  format::ExportOptions options;
  options.statistics = true;
  const Files files = files_of(*sample(true), options);
  std::vector<std::string> names;
  for (const auto& [name, text] : files) names.push_back(name), static_cast<void>(text);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "77_agent_info.csv", "77_domain_stats.csv", "77_hip_api_stats.csv", "77_hip_api_trace.csv",
                       "77_hsa_api_stats.csv", "77_hsa_api_trace.csv", "77_kernel_stats.csv", "77_kernel_trace.csv",
                       "77_marker_api_stats.csv", "77_marker_api_trace.csv", "77_memory_allocation_stats.csv",
                       "77_memory_allocation_trace.csv", "77_memory_copy_stats.csv", "77_memory_copy_trace.csv",
                       "77_memory_fill_stats.csv", "77_memory_fill_trace.csv", "77_opencl_api_stats.csv",
                       "77_opencl_api_trace.csv"}));
  EXPECT_EQ(fields(files.at("77_agent_info.csv"))[0].size(), 53u);
  for (const auto& [name, text] : files)
    for (const auto& row : fields(text)) EXPECT_EQ(row.size(), fields(text)[0].size()) << name;
}

TEST(Csv, TraceOfAmd) {
  const Files files = files_of(*sample(true));
  EXPECT_TRUE(is_golden(joined(files), "format/csv/amd.out"));
  EXPECT_EQ(files.count("77_kernel_stats.csv"), 0u) << "only with options.statistics";
}

TEST(Csv, KernelTraceElsewhere) {
  const auto rows = fields(files_of(*sample(false)).at("77_kernel_trace.csv"));
  EXPECT_EQ(rows[1][3], "0") << "no stream: 0 as rocprofv3";
  EXPECT_EQ(rows[1][11], "100") << "shared memory as it is, not in AMD's units";
  EXPECT_EQ(rows[1][13], "");
}

TEST(Csv, ExtraColumns) {
  format::ExportOptions options;
  options.extra_columns = true;
  options.agent_index = walk::AgentIndex::kTypeRelative;
  const Files files = files_of(*sample(true), options);
  const auto copies = fields(files.at("77_memory_copy_trace.csv"));
  EXPECT_EQ(copies[0].back(), "Size_Bytes");
  EXPECT_EQ(copies[1].back(), "4096");
  EXPECT_EQ(copies[1][3], "CPU 0");
  EXPECT_EQ(copies[1][4], "GPU 0");
}

TEST(Csv, Statistics) {
  format::ExportOptions options;
  options.statistics = true;
  Files files = files_of(*sample(true), options);
  std::erase_if(files, [](const auto& file) { return !file.first.ends_with("_stats.csv"); });
  EXPECT_TRUE(is_golden(joined(files), "format/csv/statistics.out"));
}

// A clock that runs 1 in 2000 faster than the trace's: converted ends would not be a duration after their starts.
TEST(Csv, SumsOfRowsAreThoseOfStatistics) {
  TraceMaker made;
  for (int64_t at = 0; at <= 10; ++at) made.clock(at * 100'000, 5'000'000 + at * 100'050);
  const int64_t process = made.process(77, "app"), gpu = made.device("GPU");
  const int64_t queue = made.queue_track(process, gpu, 1), main = made.thread_track(process, 77);
  int64_t sum = 0;
  for (int64_t i = 0; i < 500; ++i) {
    made.dispatch(queue, i * 2'000 + i % 7, 1'001 + i % 13, made.kernel("k"));
    made.call(main, i * 2'000 + i % 5, 333 + i % 11, made.function("clFinish"), i + 1);
    sum += 1'001 + i % 13;
  }
  format::ExportOptions options;
  options.statistics = true;
  const Files files = files_of(*made.open(), options);
  const auto total = [&](const char* name, size_t start) {
    const auto rows = fields(files.at(name));
    int64_t all = 0;
    for (size_t i = 1; i < rows.size(); ++i) all += std::stoll(rows[i][start + 1]) - std::stoll(rows[i][start]);
    return all;
  };
  EXPECT_EQ(total("77_kernel_trace.csv", 9), sum);
  EXPECT_EQ(fields(files.at("77_kernel_stats.csv"))[1][2], std::to_string(sum));
  EXPECT_EQ(std::to_string(total("77_opencl_api_trace.csv", 5)), fields(files.at("77_opencl_api_stats.csv"))[1][2]);
}

TEST(Csv, NothingOfAProcessWithoutRows) {
  TraceMaker made;
  const int64_t process = made.process(10), sampled = made.process(11);
  made.call(made.thread_track(process, 10), 0, 5, made.function("f"), 1);
  made.writer().add(event::row::Sample{.track = made.thread_track(sampled, 11), .start = 5, .duration = 10});
  const auto trace = made.open();
  format::ExportOptions options;
  options.process = sampled;
  EXPECT_EQ(files_of(*trace, options).size(), 0u);
  options.process = process;
  EXPECT_EQ(files_of(*trace, options).size(), 3u);  // its calls, and whose they are
}

TEST(Csv, NumberFormats) {
  // The examples are rows of the users' documents.
  EXPECT_EQ(format::csv::percentage(8.3791), "8.38");
  EXPECT_EQ(format::csv::percentage(0.91449), "0.9145");
  EXPECT_EQ(format::csv::percentage(0.0099999), "1.000e-02");
  EXPECT_EQ(format::csv::percentage(1.0), "1.00");
  EXPECT_EQ(format::csv::percentage(0), "0.000e+00");
  EXPECT_EQ(format::csv::statistic(2432.240683), "2432.240683");
  EXPECT_EQ(format::csv::statistic(0.0), "0.00000000e+00");
  EXPECT_EQ(format::csv::counter_value(0.5), "5.00000000e-01");
  EXPECT_EQ(format::csv::counter_value(16384), "16384.000000");
}

TEST(Csv, CounterCollection) {
  TraceMaker made;
  const int64_t process = made.process(77);
  const int64_t main = made.thread_track(process, 77),
                queue = made.queue_track(process, made.device("G", event::DeviceKind::kGpu, "gfx90a"), 2);
  made.call(main, 50, 10, made.function("launch"), 4);
  made.dispatch(queue, 100, 30, made.kernel("k", 2048, 128, 12), 4, 0);
  made.dispatch(queue, 200, 30, made.kernel("k2", 2048, 128, 12), 0, 1);
  const int64_t waves = made.counter("SQ_WAVES"), hits = made.counter("TCC_HIT");
  for (int instance = 0; instance < 3; ++instance) made.counter_value(queue, 100, 0, hits, instance, 1.5);
  made.counter_value(queue, 100, 0, waves, 0, 32);
  made.counter_value(queue, 200, 1, waves, 0, 0.25);
  const auto rows = fields(files_of(*made.open()).at("77_counter_collection.csv"));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].size(), 19u);
  EXPECT_EQ(rows[1], (std::vector<std::string>{"4", "1", "Agent 1", "2", "77", "77", "2048", "1", "k", "128", "512",
                                               "0", "12", "", "", "TCC_HIT", "4.500000", "100", "130"}));
  EXPECT_EQ(rows[2][15], "SQ_WAVES");
  EXPECT_EQ(rows[2][16], "32.000000");
  EXPECT_EQ(rows[3][8], "k2");
  EXPECT_EQ(rows[3][16], "2.50000000e-01");
}

TEST(Csv, KernelRenameChangesTraceAndStatistics) {
  TraceMaker made;
  const int64_t process = made.process(5);
  const int64_t thread = made.thread_track(process, 5), queue = made.queue_track(process, made.device("G"), 1),
                kernel = made.kernel("k");
  made.marker(thread, 0, 100, made.label("phase \"A\""));
  made.call(thread, 20, 5, made.function("launch"), 1);
  made.dispatch(queue, 1000, 10, kernel, 1);
  made.dispatch(queue, 2000, 30, kernel, 2);
  format::ExportOptions options;
  options.kernel_rename = options.statistics = true;
  const Files files = files_of(*made.open(), options);
  const auto rows = fields(files.at("77_kernel_trace.csv"));
  EXPECT_EQ(rows[1][7], "phase \"A\"");
  EXPECT_EQ(rows[2][7], "k");
  const auto stats = fields(files.at("77_kernel_stats.csv"));
  EXPECT_EQ(stats[1], (std::vector<std::string>{"k", "1", "30", "30.000000", "75.00", "30", "30", "0.00000000e+00"}));
  EXPECT_EQ(stats[2][0], "phase \"A\"");
}

TEST(Csv, NamesOfAnyBytesAndLength) {
  TraceMaker made;
  const int64_t process = made.process(5);
  const int64_t thread = made.thread_track(process, 5), queue = made.queue_track(process, made.device("G"), 1);
  const std::string names[] = {std::string(64 * 1024, '"'), "line\nbreak, comma", "\xff\x01",
                               std::string(300'000, 'x')};
  int64_t time = 0;
  for (const std::string& name : names) {
    made.dispatch(queue, time++, 5, made.kernel(name));
    made.marker(thread, time, 5, made.label(name));
    made.call(thread, time, 5, made.function(name), 1);
  }
  const Files files = files_of(*made.open());
  for (size_t i = 0; i < std::size(names); ++i) {
    EXPECT_EQ(fields(files.at("77_kernel_trace.csv"))[i + 1][7], valid_utf8(names[i]));
    EXPECT_EQ(fields(files.at("77_marker_api_trace.csv"))[i + 1][1], valid_utf8(names[i]));
    EXPECT_EQ(fields(files.at("77_opencl_api_trace.csv"))[i + 1][1], valid_utf8(names[i]));
  }
}

TEST(Csv, OneProcessOfSeveralAndMinimum) {
  TraceMaker made;
  for (int64_t pid = 10; pid < 13; ++pid) {
    const int64_t process = made.process(pid);
    made.call(made.thread_track(process, pid), 0, pid, made.function("f"), 1);
  }
  const auto trace = made.open();
  format::ExportOptions options;
  options.process = 2;
  options.statistics = true;
  Files files = files_of(*trace, options, "p");
  EXPECT_EQ(fields(files.at("p_opencl_api_trace.csv")).size(), 2u);
  EXPECT_EQ(fields(files.at("p_opencl_api_trace.csv"))[1][2], "11");
  EXPECT_EQ(fields(files.at("p_opencl_api_stats.csv"))[1][2], "11");
  options.minimum_bytes = 1 << 20;
  EXPECT_EQ(files_of(*trace, options).size(), 0u);
}

TEST(Csv, AllOrNothing) {
  Folder folder;
  const auto trace = sample(true);
  std::vector<std::string> written;
  std::ofstream(folder / "77_marker_api_trace.csv") << "mine";
  const Status refused = format::write_csv(*trace, {"", folder.path(), "77"}, {}, written);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("77_marker_api_trace.csv exists"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(folder.names(), std::vector<std::string>{"77_marker_api_trace.csv"});
  EXPECT_EQ(read_file(folder / "77_marker_api_trace.csv"), "mine");
  format::ExportOptions options;
  options.overwrite = true;
  EXPECT_TRUE(format::write_csv(*trace, {"", folder.path(), "77"}, options, written));
  EXPECT_NE(read_file(folder / "77_marker_api_trace.csv"), "mine");
}

TEST(Csv, AgentInfo) {
  TraceMaker made;
  made.process(5);
  const int64_t gpu = made.device("MI300X", event::DeviceKind::kGpu, "gfx942");
  made.writer().property(Table::kDevice, gpu, "compute units", "304");
  made.writer().property(Table::kDevice, gpu, "local memory bytes", "65536");
  made.writer().property(Table::kDevice, gpu, "wave_front_size", "64");
  made.writer().property(Table::kEnd, 0, "cpus", "8");
  const auto rows = fields(files_of(*made.open()).at("77_agent_info.csv"));
  ASSERT_EQ(rows.size(), 3u);
  const auto value = [&](size_t row, const std::string& name) {
    for (size_t i = 0; i < rows[0].size(); ++i)
      if (rows[0][i] == name) return rows[row][i];
    return std::string("no such column");
  };
  EXPECT_EQ(value(1, "Agent_Type"), "CPU");
  EXPECT_EQ(value(1, "Cpu_Cores_Count"), "8");
  EXPECT_EQ(value(2, "Node_Id"), "1");
  EXPECT_EQ(value(2, "Cu_Count"), "304");
  EXPECT_EQ(value(2, "Lds_Size_In_Kb"), "64");
  EXPECT_EQ(value(2, "Wave_Front_Size"), "64");
  EXPECT_EQ(value(2, "Gpu_Id"), "");
  EXPECT_EQ(value(2, "Name"), "gfx942");
  EXPECT_EQ(value(2, "Product_Name"), "MI300X");
}

}  // namespace
}  // namespace tacho::test
