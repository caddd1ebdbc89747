// rocprofv3's JSON as a trace: a recording of 8 MI350X against what its own text says, every section, bad files.
#include "format/rocprofv3_json/rocprofv3_json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

#include "base/format.h"
#include "format/csv/csv.h"
#include "format/format.h"
#include "format/rocprofv3_json/rocprofv3_document.h"
#include "support/folder.h"
#include "support/golden.h"
#include "support/trace_maker.h"
#include "trace/read/rows.h"

namespace tacho::test {
namespace {

std::string run(const std::string& command) {
  std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  std::string out;
  char buffer[4096];
  while (const size_t size = fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, size);
  pclose(pipe);
  return out;
}

TEST(Rocprofv3Json, RecordingOfEightGpus) {
  const char* const data = getenv("TACHO_DATA");
  const std::string folder_of_data =
      data != nullptr ? data : std::string(getenv("TACHO_SOURCE") ? getenv("TACHO_SOURCE") : ".") + "/../shared/data";
  const std::string file = folder_of_data + "/traces/rocprofv3_gfx950_results.json.gz";
  if (!std::filesystem::exists(file)) {
    if (const char* required = getenv("TACHO_REQUIRE_DATA"); required != nullptr && std::string(required) == "1")
      FAIL() << file << " is not there";
    GTEST_SKIP() << file << " is not there (set TACHO_DATA)";
  }
  const auto trace = format::open_any(file);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ((*trace)->rows(Table::kDispatch), 43915);
  Folder folder;
  std::vector<std::string> written;
  format::ExportOptions options;
  options.statistics = true;
  ASSERT_TRUE(format::write_csv(**trace, {"", folder.path(), "908"}, options, written));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"908_agent_info.csv", "908_domain_stats.csv",
                                                      "908_kernel_stats.csv", "908_kernel_trace.csv"}));
  // The truth, straight from the text.
  std::ofstream(folder / "check.py") << R"(
import collections, csv, gzip, json, sys
folder = sys.argv[2]
d = json.load(gzip.open(sys.argv[1]))['rocprofiler-sdk-tool'][0]
symbols = {k['kernel_id']: k for k in d['kernel_symbols']}
agents = {a['id']['handle']: a for a in d['agents']}
total = collections.defaultdict(lambda: [0, 0])
rows = {int(r['Dispatch_Id']): r for r in csv.DictReader(open(folder + '/908_kernel_trace.csv'))}
different = 0
for k in d['buffer_records']['kernel_dispatch']:
    i = k['dispatch_info']
    s = symbols[i['kernel_id']]
    sums = total[s['formatted_kernel_name']]
    sums[0] += 1
    sums[1] += k['end_timestamp'] - k['start_timestamp']
    expected = dict(Agent_Id='Agent %d' % agents[i['agent_id']['handle']]['logical_node_id'], Queue_Id=i['queue_id']['handle'],
        Stream_Id=k['stream_id']['handle'], Thread_Id=k['thread_id'], Kernel_Id=i['kernel_id'], Kernel_Name=s['formatted_kernel_name'],
        Correlation_Id=k['correlation_id']['internal'], Start_Timestamp=k['start_timestamp'], End_Timestamp=k['end_timestamp'],
        LDS_Block_Size=(i['group_segment_size'] + 511) // 512 * 512, Scratch_Size=i['private_segment_size'], VGPR_Count=s['arch_vgpr_count'],
        Accum_VGPR_Count=s['accum_vgpr_count'], SGPR_Count=s['sgpr_count'],
        **{'Workgroup_Size_' + a.upper(): i['workgroup_size'][a] for a in 'xyz'}, **{'Grid_Size_' + a.upper(): i['grid_size'][a] for a in 'xyz'})
    row = rows.pop(i['dispatch_id'])
    different += sum(row[name] != str(value) for name, value in expected.items())
stats = {r['Name']: [int(r['Calls']), int(r['TotalDurationNs'])] for r in csv.DictReader(open(folder + '/908_kernel_stats.csv'))}
infos = list(csv.DictReader(open(folder + '/908_agent_info.csv')))
wrong = 0
for a, row in zip(d['agents'], infos):
    for name, value in a.items():
        column = '_'.join(w.capitalize() for w in name.split('_'))
        if isinstance(value, (int, str)) and column in row:
            wrong += row[column] != str(value)
    wrong += int(row['Sdma_Fw_Version']) != a['sdma_fw_version']['uCodeSDMA']
    wrong += row['Workgroup_Max_Dim_X'] != str(a['workgroup_max_dim']['x'])
print(len(rows), different, stats == dict(total), len(infos), wrong)
)";
  EXPECT_EQ(run("python3 " + folder / "check.py" + " " + file + " " + folder.path()), "0 0 True 10 0\n");
}

Result<std::shared_ptr<const trace::Trace>> read_text(const std::string& text) {
  Folder folder;
  std::ofstream(folder / "r.json") << text;
  return format::rocprofv3::read(folder / "r.json");
}

void check_sections(const trace::Trace& trace, int64_t notes = 1) {
  Folder folder;
  std::vector<std::string> written;
  ASSERT_TRUE(format::write_csv(trace, {"", folder.path(), "p"}, {}, written));
  std::string text;
  for (const std::string& name : folder.names()) text += "== " + name + "\n" + read_file(folder / name);
  EXPECT_TRUE(is_golden(text, "format/rocprofv3_json/as_csv.out"));
  EXPECT_EQ(trace.text(Table::kProcess, 1, column::Process::command), "/bin/app -n 3");
  EXPECT_EQ(trace.text(Table::kProcess, 1, column::Process::name), "app");
  EXPECT_EQ(trace.text(Table::kProcess, 1, column::Process::host), "box");
  EXPECT_EQ(trace.rows(Table::kNote), notes) << "the scratch record is told";
  EXPECT_EQ(trace.property(Table::kDevice, 2, "fw_version"), std::to_string(38 | 1 << 10 | 2 << 24));
}

TEST(Rocprofv3Json, EverySection) {
  const auto trace = read_text("{\"rocprofiler-sdk-tool\": [" + kSections + kRecords + "]}");
  ASSERT_TRUE(trace) << trace.error().message;
  check_sections(**trace);
}

TEST(Rocprofv3Json, RecordsBeforeNames) {
  const std::string names = kSections.substr(1, kSections.size() - 2);  // without { and the comma
  const std::string records = kRecords.substr(0, kRecords.size() - 1);  // without }
  const auto trace = read_text("{\"rocprofiler-sdk-tool\": [{" + records + "," + names + "}]}");
  ASSERT_TRUE(trace) << trace.error().message;
  check_sections(**trace);
}

// Kernel replay (10.0.1): one dispatch number for every pass, told by replay_pass, or by nothing.
TEST(Rocprofv3Json, ReplayedPassesAreOneDispatch) {
  const auto element = [](int start, const char* told, const char* values) {
    return fmt::format(
        R"({{"thread_id": 42, {} "dispatch_data": {{"correlation_id": {{"internal": 1}}, "start_timestamp": {}, "end_timestamp": {},
 "dispatch_info": {{"agent_id": {{"handle": 8}}, "queue_id": {{"handle": 1}}, "kernel_id": 5, "dispatch_id": 1}}}}, "records": [{}]}})",
        told, start, start + 500, values);
  };
  const char* const waves = R"({"counter_id": {"handle": 70}, "value": 4}, {"counter_id": {"handle": 70}, "value": 3})";
  const char* const more = R"({"counter_id": {"handle": 70}, "value": 40}, {"counter_id": {"handle": 71}, "value": 9})";
  for (const bool told : {true, false}) {
    const std::string records =
        element(2000, told ? R"("replay_pass": 0,)" : "", waves) + "," +
        element(3000, told ? R"("replay_pass": 1,)" : "", more) + "," +
        element(4000, told ? R"("replay_pass": 2,)" : "", R"({"counter_id": {"handle": 71}, "value": 90})");
    const auto trace =
        read_text("{\"rocprofiler-sdk-tool\": [" + kSections + R"("callback_records": {"counter_collection": [)" +
                  records + R"(], "spm_counter_collection": [{"a": [1]}, {}]}, "buffer_records": {}}]})");
    ASSERT_TRUE(trace) << trace.error().message;
    EXPECT_EQ((*trace)->rows(Table::kDispatch), 1);
    std::vector<std::tuple<int64_t, int64_t, double>> values;  // start, pass, value
    Status status;
    using V = column::CounterValue;
    for (const auto& value : trace::rows<V::start, V::pass, V::value>(**trace, status))
      values.emplace_back(value.start, value.pass, std::bit_cast<double>(value.value.cell));
    ASSERT_TRUE(status);
    std::sort(values.begin(), values.end());
    ASSERT_EQ(values.size(), 5u);
    for (size_t i = 0; i < values.size(); ++i) {
      const auto& [start, pass, number] = values[i];
      if (told) {
        EXPECT_EQ(start, 2000);
      }
      EXPECT_EQ(pass, number > 89 ? 2 : number > 8 ? 1 : 0) << number;
    }
    std::vector<std::string> notes;
    for (const auto& note : trace::rows<column::Note::text>(**trace, status))
      notes.emplace_back((*trace)->string(note.text));
    EXPECT_EQ(notes,
              std::vector<std::string>{"2 records of section spm_counter_collection are of a kind that is not read"});
  }
}

TEST(Rocprofv3Json, WrittenAndReadAgain) {
  const auto trace = read_text("{\"rocprofiler-sdk-tool\": [" + kSections + kRecords + "]}");
  ASSERT_TRUE(trace) << trace.error().message;
  Folder folder;
  std::vector<std::string> written;
  const Status done = format::rocprofv3::write(**trace, {folder / "w.json", "", ""}, {}, written);
  ASSERT_TRUE(done) << done.error().message;
  const auto again = format::open_any(folder / "w.json");
  ASSERT_TRUE(again) << again.error().message;
  check_sections(**again, 0);
}

TEST(Rocprofv3Json, WrittenForAnyNameAndApi) {
  TraceMaker made;
  const int64_t process = made.process(9, "a\"\xff");
  const int64_t thread = made.thread_track(process, 9), queue = made.queue_track(process, made.device("G\n"), 1);
  made.call(thread, 100, 5, made.function("cl\x01"), 1);
  made.call(thread, 110, kUnknown, made.function("cudaMalloc", event::Domain::kCudaRuntime), 2);
  made.dispatch(queue, 120, kUnknown, made.kernel(std::string(70'000, '"')), 1, 0);
  made.marker(thread, 90, 50, made.label("m\\", event::MarkerKind::kStartStop));
  Folder folder;
  std::vector<std::string> written;
  ASSERT_TRUE(format::rocprofv3::write(*made.open(), {folder / "w.json", "", ""}, {}, written));
  std::ofstream(folder / "p.py")
      << "import json,sys\n"
         "d=json.load(open(sys.argv[1]))['rocprofiler-sdk-tool'][0]; b=d['buffer_records']; "
         "k=d['strings']['buffer_records']\n"
         "print([(n,len(v)) for n,v in sorted(b.items()) if v])\n"
         "c=b['cuda_api'][0]; "
         "print(k[c['kind']]['kind'],k[c['kind']]['operations'][c['operation']],c['end_timestamp'])\n"
         "i=b['kernel_dispatch'][0]; "
         "print(i['thread_id'],i['dispatch_info']['workgroup_size'],len(d['kernel_symbols'][0]['kernel_name']))\n"
         "m=b['marker_api'][0]; print([s['value'] for s in d['strings']['marker_api'] if "
         "s['key']==m['correlation_id']['internal']])\n";
  EXPECT_EQ(run("python3 " + folder / "p.py" + " " + folder / "w.json"),
            "[('cuda_api', 1), ('kernel_dispatch', 1), ('marker_api', 1), ('opencl_api', 1)]\n"
            "CUDA_RUNTIME_API cudaMalloc 0\n"
            "9 {'x': 64, 'y': 1, 'z': 1} 70000\n"
            "['m\\\\']\n");
}

TEST(Rocprofv3Json, EveryApiComesBackAsItself) {
  TraceMaker made;
  const int64_t process = made.process(9, "app"), thread = made.thread_track(process, 9);
  std::map<std::string, event::Domain> expected;
  for (int64_t at = 0; at < static_cast<int64_t>(event::Domain::kEnd); ++at) {
    const auto domain = static_cast<event::Domain>(at);
    const std::string name = "call of " + std::string(event::to_string(domain));
    made.call(thread, 100 + at, 1, made.function(name, domain), at + 1);
    expected[name] = domain;
  }
  made.marker(thread, 90, 50, made.label("range"));
  Folder folder;
  std::vector<std::string> written;
  ASSERT_TRUE(format::rocprofv3::write(*made.open(), {folder / "w.json", "", ""}, {}, written));
  const auto again = format::open_any(folder / "w.json");
  ASSERT_TRUE(again) << again.error().message;
  std::map<std::string, event::Domain> found;
  for (int64_t row = 1; row < (*again)->rows(Table::kFunction); ++row)
    found[std::string((*again)->text(Table::kFunction, row, column::Function::name))] =
        static_cast<event::Domain>((*again)->cell(Table::kFunction, row, column::Function::domain));
  EXPECT_EQ(found, expected);
  EXPECT_EQ((*again)->rows(Table::kApi), static_cast<int64_t>(expected.size()));
  EXPECT_EQ((*again)->rows(Table::kMarker), 1);
}

TEST(Rocprofv3Json, CutAnywhereIsOneSentence) {
  const std::string text = "{\"rocprofiler-sdk-tool\": [" + kSections + kRecords + "]}";
  for (size_t length = 1; length < text.size(); length += 7) {
    const auto trace = read_text(text.substr(0, length));
    ASSERT_FALSE(trace) << length;
    EXPECT_NE(trace.error().message.find("at byte"), std::string::npos) << trace.error().message;
    EXPECT_EQ(trace.error().message.find('\n'), std::string::npos);
  }
}

TEST(Rocprofv3Json, Nonsense) {
  const auto message = [](const std::string& text) {
    const auto trace = read_text(text);
    return trace ? std::string("was read") : trace.error().message.substr(trace.error().message.find("r.json: ") + 8);
  };
  EXPECT_EQ(message("{\"rocprofiler-sdk-tool\": [{\"agents\": 5}]}"), "at byte 37: '[' was expected");
  EXPECT_EQ(message("{\"rocprofiler-sdk-tool\": [{\"metadata\": {\"pid\": \"x\"}}]}"),
            "at byte 46: a value was expected");
  EXPECT_EQ(message("{\"rocprofiler-sdk-tool\": [{\"metadata\": {\"pid\": 1e999}}]}"),
            "at byte 52: '1e999' is not a whole number");
  EXPECT_EQ(message("{}"), "has no member rocprofiler-sdk-tool");
  EXPECT_EQ(message("{\"rocprofiler-sdk-tool\": []} x"), "was read");  // and a note
  EXPECT_EQ(message("{\"rocprofiler-sdk-tool\": " + std::string(2000, '[')), "at byte 26: '{' was expected");
  EXPECT_EQ(message("{\"a\": " + std::string(2000, '[')), "at byte 519: nested too deeply");
  EXPECT_EQ(message("{\"rocprofiler-sdk-tool\": []}"), "was read");
}

}  // namespace
}  // namespace tacho::test
