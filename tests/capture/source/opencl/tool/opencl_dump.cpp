// A program for people who work on the OpenCL source: runs a command on a pool and prints the records.
//   opencl_dump [--preload] [--no-layer] [--filter key=regex] [--sources bits] command...
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>

#include "capture/source/opencl/pool_run.h"

int main(int argc, char** argv) {
  tacho::test::RunOptions options;
  int at = 1;
  for (; at < argc && argv[at][0] == '-'; ++at) {
    if (strcmp(argv[at], "--preload") == 0) options.preload = true;
    if (strcmp(argv[at], "--no-layer") == 0) options.layer = false;
    if (strcmp(argv[at], "--sources") == 0 && at + 1 < argc) options.sources = strtoull(argv[++at], nullptr, 0);
    if (strcmp(argv[at], "--filter") == 0 && at + 1 < argc) options.config += std::string(argv[++at]) + "\n";
  }
  std::vector<std::string> command(argv + at, argv + argc);
  if (command.empty()) return 1;
  const tacho::test::Outcome run = tacho::test::run(command, options);
  printf("%s", run.out.c_str());
  fprintf(stderr, "%s", run.err.c_str());
  printf("exit %d, launches %llu, dropped %llu\n", run.exit_code, static_cast<unsigned long long>(run.launches),
         static_cast<unsigned long long>(run.dropped));
  for (const auto& [key, text] : run.properties) printf("property %s = %s\n", key.c_str(), text.c_str());
  std::map<std::string, size_t> calls;
  for (const auto& call : run.api) ++calls[call.name + " -> " + std::to_string(call.result)];
  for (const auto& [name, count] : calls) printf("api %6zu %s\n", count, name.c_str());
  std::map<std::string, size_t> kernels;
  for (const auto& dispatch : run.dispatches) ++kernels[dispatch.kernel];
  for (const auto& [name, count] : kernels) printf("dispatch %6zu %s\n", count, name.c_str());
  std::map<std::string, std::pair<size_t, uint64_t>> copies;
  for (const auto& copy : run.copies) {
    auto& entry = copies["direction " + std::to_string(copy.header.value & 0xff) + " kind " +
                         std::to_string(copy.header.value >> 8 & 0xff)];
    ++entry.first;
    entry.second += copy.bytes;
  }
  for (const auto& [name, sum] : copies)
    printf("copy %6zu %s, %llu bytes\n", sum.first, name.c_str(), static_cast<unsigned long long>(sum.second));
  printf("fills %zu, allocations %zu, syncs %zu, queues %zu, devices %zu, pairs %zu, processes %zu\n", run.fills.size(),
         run.allocations.size(), run.syncs.size(), run.queues.size(), run.devices.size(), run.pairs.size(),
         run.processes.size());
  for (const auto& [what, count] : run.losses)
    printf("loss %s %s %llu\n", std::string(tacho::event::table_info(what.first).name).c_str(),
           std::string(to_string(what.second)).c_str(), static_cast<unsigned long long>(count));
  for (const auto& note : run.notes) printf("note %s\n", note.c_str());
  std::map<std::string, size_t> problems;
  for (const auto& problem : run.problems) ++problems[problem];
  for (const auto& [problem, count] : problems) printf("PROBLEM %6zu %s\n", count, problem.c_str());
  return 0;
}
