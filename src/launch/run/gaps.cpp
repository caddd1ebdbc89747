// Gaps in a trace (gaps.h).
#include "launch/run/gaps.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "vendor/vendor.h"

namespace tacho::launch {

using event::Table;

namespace {

// Whether the program to be started is this one.
bool is_tacho(const std::string& executable) {
  struct stat one {
  }, own{};
  return stat(executable.c_str(), &one) == 0 && stat("/proc/self/exe", &own) == 0 && one.st_dev == own.st_dev &&
         one.st_ino == own.st_ino;
}

}  // namespace

bool anybody_has(const std::string& pool, pid_t since) {
  const std::string variable = "TACHO_POOL=" + pool;
  DIR* const all = opendir("/proc");
  if (all == nullptr) return false;
  bool found = false;
  std::string environment;
  while (const dirent* entry = readdir(all)) {
    pid_t pid = 0;
    const char* const end = entry->d_name + std::strlen(entry->d_name);
    const auto [at, error] = std::from_chars(entry->d_name, end, pid);
    if (found || error != std::errc() || at != end || pid <= since) continue;
    const int file = open(fmt::format("/proc/{}/environ", pid).c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    environment.clear();
    char piece[16384];
    for (ssize_t size; (size = read(file, piece, sizeof piece)) > 0;)
      environment.append(piece, static_cast<size_t>(size));
    close(file);
    found = environment.find(variable) != std::string::npos;
  }
  closedir(all);
  return found;
}

bool maps_mention(pid_t pid, const char* library) {
  std::FILE* const maps = std::fopen(fmt::format("/proc/{}/maps", pid).c_str(), "re");
  if (maps == nullptr) return false;
  char line[4608];
  bool found = false;
  while (!found && std::fgets(line, sizeof line, maps) != nullptr) found = std::strstr(line, library) != nullptr;
  std::fclose(maps);
  return found;
}

void count_losses(tape::Pool& pool, trace::TraceWriter& writer, decode::Decoder& decoder) {
  tape::PoolHeader& header = pool.header();
  for (size_t i = 0; i <= event::kFactTables; ++i) {
    const uint64_t dropped = header.dropped[i].load(std::memory_order_relaxed);
    if (dropped != 0)
      writer.lose(0, i < event::kFactTables ? static_cast<Table>(i) : Table::kEnd, event::LossReason::kPoolFull,
                  static_cast<int64_t>(dropped));
  }
  uint64_t dropped[event::kFactTables];
  for (size_t i = 0; i < event::kFactTables; ++i) dropped[i] = header.dropped[i].load(std::memory_order_relaxed);
  decoder.count_in_flight(dropped);
}

void explain_gaps(const Expected& expected, const Watched& seen, uint32_t refused,
                  const std::vector<decode::ProcessFacts>& processes, std::vector<std::string>& warnings) {
  const bool by_perf = expected.recording.target.sampler == event::Sampler::kPerf;
  const bool opencl_seen = std::any_of(processes.begin(), processes.end(),
                                       [](const auto& process) { return process.sees(event::Domain::kOpenCL); });
  // Libraries such as torch bring OpenCL along without a call: where libtacho.so is, nothing is missing.
  if (seen.opencl_loaded && !opencl_seen && !seen.ours_loaded && processes.empty() && expected.inject)
    warnings.push_back(
        "the program loaded an OpenCL library, but neither the layer nor symbol interposition attached: its OpenCL "
        "calls are not in this trace (is it setuid, statically linked, or does it clear the environment?)");
  std::string problem;
  for (const vendor::Vendor* const vendor : vendor::vendors())
    if (problem.empty() && std::none_of(processes.begin(), processes.end(),
                                        [&](const auto& process) { return process.sees(vendor->api()); }))
      problem = vendor->program_problem(expected.executable);
  if (refused != 0)
    warnings.push_back(
        fmt::format("{} process{} of the program could not be recorded: {} as another user (setuid, su, sudo), who may "
                    "not open the pool; run tacho as that user",
                    refused, refused == 1 ? "" : "es", refused == 1 ? "it ran" : "they ran"));
  if (refused != 0 && processes.empty())
    problem.clear();
  else if (processes.empty() && is_tacho(expected.executable))
    warnings.push_back("the program is tacho itself, which traces the program that it starts: that trace has "
                       "the events, and this one has none");
  else if (!problem.empty())
    warnings.push_back(problem);
  else if (processes.empty() && !by_perf && expected.inject && seen.ours_loaded)
    warnings.push_back(
        "the program made no call of a GPU runtime and set no marker: none is in this trace (call stacks need a "
        "sampler: tacho sys sample, rocprof-sys-sample)");
  else if (processes.empty() && !by_perf && expected.inject)
    warnings.push_back(
        "no process attached: the program is statically linked or setuid, clears its environment, sees another "
        "/dev/shm (a container), or made no GPU API call and set no marker "
        "(--sampler perf samples its call stacks from outside)");
}

}  // namespace tacho::launch
