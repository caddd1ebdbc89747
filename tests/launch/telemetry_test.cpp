// Telemetry from a /proc of the test's own: right numbers, and missing entries are reported once while the rest is
// kept.
#include "launch/telemetry.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/format.h"
#include "trace/rows.h"

namespace tacho::launch {
namespace {

namespace fs = std::filesystem;
namespace column = event::column;
using event::Table;
using trace::Folder;
using trace::must;
using trace::TraceWriter;

void put(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// Process `pid` with 300 ticks in user mode and 100 in the kernel, two threads, 25 resident pages.
void put_process(const fs::path& proc, int pid, int parent) {
  const std::string stat =
      fmt::format("{} (a (strange) name) S {} 1 1 0 -1 0 70 0 5 0 300 100 0 0 20 0 2 0 1000 1048576 25 "
                  "18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0\n",
                  pid, parent);
  put(proc / std::to_string(pid) / "stat", stat);
  put(proc / std::to_string(pid) / "status", "Name:\ta\nVmHWM:\t     200 kB\n");
  put(proc / std::to_string(pid) / "io", "rchar: 11\nwchar: 12\nsyscr: 1\nsyscw: 1\nread_bytes: 13\nwrite_bytes: 14\n");
  for (const int tid : {pid, pid + 1})
    put(proc / std::to_string(pid) / "task" / std::to_string(tid) / "status",
        "voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t2\n");
}
void put_machine(const fs::path& proc, int busy, int idle) {
  put(proc / "stat", fmt::format("cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 {} 0 0 {} 0 0 0 0 0 0\nintr 0\n", busy, idle));
  put(proc / "meminfo", "MemTotal:     1000 kB\nMemFree:  1 kB\nMemAvailable:  400 kB\n");
  put(proc / "cpuinfo", "processor\t: 0\ncpu MHz\t\t: 2500.5\n");
}

struct Readings {
  std::map<std::string, std::vector<double>> values;  // by series
  std::vector<std::string> notes;
};

Readings read(Telemetry& telemetry, const Folder& folder) {
  auto writer = must(TraceWriter::create(folder / "t.tacho", {}));
  telemetry.deliver(*writer);
  telemetry.finish(*writer, {});
  const auto trace = must(writer->finish_and_open());
  Readings out;
  for (size_t chunk = 0; chunk < trace->chunks(Table::kReading).size(); ++chunk) {
    std::vector<int64_t> tracks, values;
    EXPECT_TRUE(trace->decode(Table::kReading, chunk, column::Reading::track, tracks));
    EXPECT_TRUE(trace->decode(Table::kReading, chunk, column::Reading::value, values));
    for (size_t i = 0; i < tracks.size(); ++i) {
      const int64_t counter = trace->cell(Table::kTrack, tracks[i], column::Track::counter);
      double value;
      memcpy(&value, &values[i], sizeof value);
      out.values[std::string(trace->text(Table::kCounter, counter, column::Counter::name))].push_back(value);
    }
  }
  for (size_t chunk = 0; chunk < trace->chunks(Table::kNote).size(); ++chunk) {
    std::vector<int64_t> texts;
    EXPECT_TRUE(trace->decode(Table::kNote, chunk, column::Note::text, texts));
    for (const int64_t text : texts) out.notes.emplace_back(trace->string(text));
  }
  return out;
}

TelemetryOptions options_of(const Folder& folder) {
  TelemetryOptions options;
  options.cpu = options.process = true;
  options.proc = folder / "proc";
  options.sys = folder / "sys";
  return options;
}

TEST(Telemetry, NumbersOfTheMachineAndOfProcesses) {
  const Folder folder;
  const fs::path proc = folder / "proc";
  put_machine(proc, 100, 100);
  put_process(proc, 40, 1);
  put_process(proc, 50, 40);  // a child; there are no files `children`
  put_process(proc, 60, 1);   // nobody's
  Telemetry telemetry(options_of(folder));
  telemetry.round(40);
  put_machine(proc, 175, 125);
  telemetry.round(40);
  const Readings readings = read(telemetry, folder);
  const auto of = [&](const char* name) {
    const auto at = readings.values.find(name);
    return at != readings.values.end() ? at->second : std::vector<double>{};
  };
  EXPECT_EQ(of("CPU Utilization [0]"), (std::vector<double>{75}));
  EXPECT_EQ(of("CPU Frequency [0]"), (std::vector<double>{2500.5, 2500.5}));
  EXPECT_EQ(of("Memory Used"), (std::vector<double>{600 * 1024, 600 * 1024}));
  const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK)),
               page = static_cast<double>(sysconf(_SC_PAGESIZE));
  EXPECT_EQ(of("CPU User Time"), std::vector<double>(4, 300 * tick)) << "two processes, two rounds";
  EXPECT_EQ(of("CPU Kernel Time"), std::vector<double>(4, 100 * tick));
  EXPECT_EQ(of("CPU Memory Usage"), std::vector<double>(4, 25 * page));
  EXPECT_EQ(of("CPU Virtual Memory Usage"), std::vector<double>(4, 1048576));
  EXPECT_EQ(of("CPU Page Faults"), std::vector<double>(4, 75));
  EXPECT_EQ(of("CPU Peak Memory"), std::vector<double>(4, 200 * 1024));
  EXPECT_EQ(of("CPU Context Switches"), std::vector<double>(4, 14));
  EXPECT_EQ(of("Threads"), std::vector<double>(4, 2));
  EXPECT_EQ(of("IO Read"), std::vector<double>(4, 11));
  EXPECT_EQ(of("Disk Written"), std::vector<double>(4, 14));
  EXPECT_TRUE(readings.notes.empty()) << readings.notes[0];
}

TEST(Telemetry, AProgramThatEndedAtOnceIsNoFault) {
  const Folder folder;
  const fs::path proc = folder / "proc";
  put_machine(proc, 100, 100);
  Telemetry telemetry(options_of(folder));
  telemetry.round(40);
  const Readings readings = read(telemetry, folder);
  EXPECT_TRUE(readings.notes.empty()) << readings.notes[0];
}

// Each of the files missing: one sentence however many rounds there are, and everything else goes on.
TEST(Telemetry, MissingEntriesAreSaidOnce) {
  struct Case {
    const char *file, *note;
    std::vector<const char*> gone;
  };
  const Case cases[] = {
      {"stat", "/stat cannot be read: no utilisation", {"CPU Utilization [0]"}},
      {"meminfo", "/meminfo cannot be read", {"Memory Used", "Memory Available"}},
      {"cpuinfo", "frequency of CPU cores", {"CPU Frequency [0]"}},
      {"40/stat",
       "/40/stat cannot be read",
       {"CPU User Time", "CPU Memory Usage", "IO Read", "Threads", "CPU Peak Memory", "CPU Context Switches",
        "CPU Usage"}},
      {"40/io",
       "/io of process a (strange) name cannot be read",
       {"IO Read", "IO Written", "Disk Read", "Disk Written"}},
      {"40/status", nullptr, {"CPU Peak Memory"}},
      {"40/task", nullptr, {}},
  };
  const std::vector<std::string> everything = {
      "CPU Utilization [0]", "CPU Frequency [0]", "Memory Used", "CPU User Time",
      "CPU Memory Usage",    "CPU Peak Memory",   "IO Read",     "Threads"};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.file);
    const Folder folder;
    const fs::path proc = folder / "proc";
    put_machine(proc, 100, 100);
    put_process(proc, 40, 1);
    fs::remove_all(proc / one.file);
    Telemetry telemetry(options_of(folder));
    for (int i = 0; i < 5; ++i) {
      telemetry.round(40);
      if (fs::exists(proc / "stat")) put_machine(proc, 200 + i, 300 + 2 * i);
      fs::remove_all(proc / one.file);
    }
    const Readings readings = read(telemetry, folder);
    EXPECT_EQ(readings.notes.size(), one.note != nullptr ? 1u : 0u);
    if (one.note != nullptr && !readings.notes.empty()) {
      EXPECT_NE(readings.notes[0].find(one.note), std::string::npos) << readings.notes[0];
    }
    for (const std::string& name : everything) {
      const bool gone = std::find_if(one.gone.begin(), one.gone.end(),
                                     [&](const char* text) { return name == text; }) != one.gone.end();
      EXPECT_EQ(readings.values.contains(name), !gone) << name;
    }
  }
}

TEST(Telemetry, NoProcAtAll) {
  const Folder folder;
  Telemetry telemetry(options_of(folder));
  for (int i = 0; i < 3; ++i) telemetry.round(40);
  const Readings readings = read(telemetry, folder);
  EXPECT_TRUE(readings.values.empty());
  EXPECT_EQ(readings.notes.size(), 4u);
}

}  // namespace
}  // namespace tacho::launch
