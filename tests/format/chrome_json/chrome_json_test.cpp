// Chrome JSON, read back by Python's strict parser.
#include "format/chrome_json/chrome_json.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "support/folder.h"
#include "support/golden.h"
#include "support/trace_maker.h"

namespace tacho::test {
namespace {

// Prints the value of a Python expression over `d` (the parsed file) and `e` (its events).
std::string python(const trace::Trace& trace, const std::string& program, const format::ExportOptions& options = {}) {
  Folder folder;
  std::vector<std::string> written;
  const Status done = format::write_chrome_json(trace, {folder / "t.json", "", ""}, options, written);
  EXPECT_TRUE(done) << done.error().message;
  std::ofstream(folder / "p.py")
      << "import json,sys\n"
         "def strict(x): raise ValueError(x)\n"
         "d=json.load(open(sys.argv[1],encoding='utf-8',errors='strict'),parse_constant=strict)\n"
         "e=d['traceEvents']\n"
         "x=[i for i in e if i['ph']=='X']\n"
      << program;
  std::FILE* const pipe = popen(("python3 " + folder / "p.py" + " " + folder / "t.json" + " 2>&1").c_str(), "r");
  std::string out;
  char buffer[4096];
  while (const size_t size = fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, size);
  pclose(pipe);
  return out;
}

TEST(ChromeJson, SlicesFlowsCounters) {
  TraceMaker made;
  made.clock(1'000'000, 5'000'000);
  const int64_t process = made.process(77, "app"), main = made.thread_track(process, 77, "app");
  const int64_t gpu = made.device("G"), queue = made.queue_track(process, gpu, 1);
  made.call(main, 1'000'000, 2'001, made.function("clEnqueueNDRangeKernel"), 5);
  made.dispatch(queue, 1'010'000, 1'234, made.kernel("k"), 5, 0);
  made.dispatch(queue, 1'010'500, 1'000, made.kernel("k"), 0, 1);  // overlaps: its own line
  made.copy(queue, 1'020'000, 10, event::CopyDirection::kDeviceToHost, 77, gpu);
  made.marker(main, 1'000'100, 0, made.label("mark", event::MarkerKind::kMark));
  made.reading(process, gpu, made.counter("power", "W"), "power", 1'000'200, 99.5);
  const auto trace = made.open();
  EXPECT_TRUE(is_golden(python(*trace, R"(
call = [i for i in x if i['name'].startswith('cl')][0]
kernels = [i for i in x if i['name'] == 'k']
copy = [i for i in x if i['cat'] == 'gpu_memcpy'][0]
begins, ends = [i for i in e if i['ph'] == 's'], [i for i in e if i['ph'] == 'f']
print('call', call['ts'], call['dur'], call['cat'], call['pid'], call['tid'], call['args'])
print('kernel', kernels[0]['ts'], kernels[0]['dur'], kernels[0]['cat'])
print('kernel', *(kernels[0]['args'][key] for key in ('correlation', 'grid', 'block', 'device', 'stream')))
print('lines of kernels', len({i['tid'] for i in kernels}))
print('flows', len(begins), len(ends), begins[0]['id'] == ends[0]['id'])
print('flow from', begins[0]['ts'], begins[0]['tid'] == call['tid'])
print('flow to', ends[0]['ts'], ends[0]['tid'] == kernels[0]['tid'], ends[0]['bp'])
print('counters', [(i['name'], i['args']['value'], i['ts']) for i in e if i['ph'] == 'C'])
print('marks', [(i['name'], i['ts'], i['s']) for i in e if i['ph'] == 'i'])
print('names', [list(i['args'].values())[0] for i in e if i['ph'] == 'M' and i['name'] != 'tacho_process'])
print('copy', copy['name'], copy['args'])
print('time', d['baseTimeNanoseconds'], d['metadata']['boottimeOfZeroNanoseconds'])
)"),
                        "format/chrome_json/facts.out"));
}

constexpr char kWork[] = "w=[i for i in x if i['cat'] in ('kernel','gpu_user_annotation')]\n"
                         "print([(i['name'],i['pid'],i['tid'] if i['tid']<100 else 'line',i['args'].get('stream'),"
                         "i['args'].get('on stream')) for i in w])\n"
                         "print([(i['ph'],i['id'] if i['id']<2**48 else 'own') for i in e if i.get('cat')=='ac2g'])\n";

TEST(ChromeJson, StreamsAreThreadsOfDevices) {
  TraceMaker made;
  const int64_t process = made.process(77, "app"), main = made.thread_track(process, 77, "app");
  const int64_t queue = made.queue_track(process, made.device("G"), 4);
  made.call(main, 100, 50, made.function("cudaGraphLaunch"), 5);
  made.marker(queue, 199, 102, made.label("step"));
  made.dispatch(queue, 200, 50, made.kernel("a"), 5);
  made.dispatch(queue, 260, 30, made.kernel("b"), 5);
  made.dispatch(queue, 270, 60, made.kernel("overlaps"), 5);
  made.marker(queue, 275, 80, made.label("apart"));
  EXPECT_EQ(
      python(*made.open(), kWork),
      "[('step', 0, 4, None, None), ('a', 0, 4, 4, None), ('b', 0, 4, 4, None), ('overlaps', 0, 'line', 4, None), "
      "('apart', 0, 'line', None, 4)]\n"
      "[('s', 5), ('f', 5), ('s', 'own'), ('f', 'own'), ('s', 'own'), ('f', 'own')]\n");
}

TEST(ChromeJson, WorkOfSeveralProcessesLiesUnderThem) {
  TraceMaker made;
  const int64_t device = made.device("G");
  for (const int64_t pid : {77, 78}) {
    const int64_t process = made.process(pid, "app");
    made.call(made.thread_track(process, pid), 100, 50, made.function("cudaLaunchKernel"), 5);
    made.dispatch(made.queue_track(process, device, 4), 200 + pid, 50, made.kernel("a"), 5);
  }
  EXPECT_EQ(
      python(*made.open(), kWork),
      "[('a', 77, 'line', 4, None), ('a', 78, 'line', 4, None)]\n[('s', 5), ('f', 5), ('s', 'own'), ('f', 'own')]\n");
}

TEST(ChromeJson, FunctionsOfPythonHaveIds) {
  TraceMaker made;
  const int64_t thread = made.thread_track(made.process(5), 5);
  made.call(thread, 0, 100, made.function("outer", event::Domain::kPython), 0);
  made.call(thread, 10, 20, made.function("inner", event::Domain::kPython), 0);
  made.call(thread, 200, 20, made.function("next", event::Domain::kPython), 0);
  EXPECT_EQ(
      python(*made.open(), "print([(i['name'],i['args']['Python id'],i['args']['Python parent id']) for i in x])\n"),
      "[('outer', 1, None), ('inner', 2, 1), ('next', 3, None)]\n");
}

TEST(ChromeJson, CallsOfHipHaveTorchsCategory) {
  TraceMaker made;
  const int64_t thread = made.thread_track(made.process(5), 5);
  made.call(thread, 0, 100, made.function("hipLaunchKernel", event::Domain::kHipRuntime), 1);
  made.call(thread, 200, 20, made.function("hsa_init", event::Domain::kHsa), 2);
  EXPECT_EQ(python(*made.open(), "print([i['cat'] for i in x])\n"), "['cuda_runtime', 'hsa_runtime']\n");
}

TEST(ChromeJson, ValidForAnyName) {
  TraceMaker made;
  const int64_t process = made.process(5, "a\"\\\x01\xff");
  const int64_t thread = made.thread_track(process, 5, "t\xfe"),
                queue = made.queue_track(process, made.device("G\n"), 1);
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  const std::string names[] = {all,
                               std::string(64 * 1024, '"'),
                               std::string(64 * 1024, '\xf0'),
                               "\xed\xa0\x80 lone surrogate",
                               "\xf4\x90\x80\x80",
                               "\u2028 \u00e9",
                               std::string("a\0b", 3)};
  int64_t time = 0;
  for (const std::string& name : names) {
    made.dispatch(queue, time, 5, made.kernel(name));
    made.call(thread, time, 5, made.function(name), 1);
    made.marker(thread, time + 5, 2, made.label(name));
    made.reading(process, 0, made.counter(name, "\x02"), name, time, 1);
    time += 10;
  }
  made.reading(process, 0, made.counter("nan"), "nan", time, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(
      python(*made.open(), "print(len(x), sum(i['name'].startswith('\"'*65536) for i in x), [i['name'] for i in e if "
                           "i['ph']=='C'].count('nan'), any('\\u00e9' in i['name'] for i in x))\n"),
      "21 3 0 True\n");
}

TEST(ChromeJson, EmptyTrace) {
  TraceMaker made;
  EXPECT_EQ(python(*made.open(), "print(e)\n"), "[]\n");
}

TEST(ChromeJson, NegativeAndUnknownTimes) {
  TraceMaker made;
  const int64_t thread = made.thread_track(made.process(5), 5);
  made.call(thread, -5000, 10, made.function("before zero"), 1);
  made.call(thread, 100, kUnknown, made.function("open"), 2);
  made.call(thread, 300, 1700, made.function("later"), 3);
  EXPECT_EQ(
      python(*made.open(), "print([(i['name'],i['ts'],i['dur'],i['args'].get('end')) for i in x])\n"),
      "[('before zero', 999995.0, 0.01, None), ('open', 1000000.1, 1.9, 'not recorded'), ('later', 1000000.3, 1.7, None)]\n");
}

TEST(ChromeJson, ValuesThatAreNotFinite) {
  TraceMaker made;
  const int64_t process = made.process(5), counter = made.counter("c");
  for (const double value : {1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    made.reading(process, 0, counter, "c", 100, value);
  std::vector<std::string> remarks;
  format::ExportOptions options;
  options.remarks = &remarks;
  EXPECT_EQ(python(*made.open(), "print([i['args']['value'] for i in e if i['ph']=='C'])\n", options), "[1]\n");
  EXPECT_EQ(remarks, (std::vector<std::string>{"JSON cannot express infinite values and those that are not a number: 2 "
                                               "of counters were left out"}));
}

}  // namespace
}  // namespace tacho::test
