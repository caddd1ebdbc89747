// Runs a program with libtacho.so on a pool of the test's own and gives back the records that it wrote, by kind.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "event/records.h"
#include "event/schema.h"
#include "tape/layout.h"

namespace tacho::test {

struct RunOptions {
  std::string config;                      // of the pool
  std::map<std::string, std::string> env;  // set in the program
  bool layer = true;                       // OPENCL_LAYERS
  bool preload = false;                    // LD_PRELOAD
  bool traced = true;                      // false: neither, and no pool
  bool start_paused = false;
  uint32_t flush_period_ms = 1000;
  uint64_t sources = tape::source_bit::kAll;
  uint64_t pool_bytes = 64ull << 20;
};

struct Api {
  std::string name;
  int result;
  uint64_t start, end, correlation;
  uint32_t tid;
};
struct Dispatch {
  std::string kernel;
  uint32_t kernel_number, private_bytes, local_bytes, kind;
  uint64_t correlation, queued, submit, start, end;
  uint32_t queue, ordinal;
  uint64_t grid[3], group[3], offset[3];
};
struct Named {
  uint32_t number;
  std::string text;
};

struct Outcome {
  int exit_code = -1;  // 128 + signal
  std::string out, err;
  uint64_t launches = 0;
  std::vector<Api> api;
  std::vector<Dispatch> dispatches;
  std::vector<event::CopyRecord> copies;
  std::vector<event::FillRecord> fills;
  std::vector<event::AllocationRecord> allocations;
  std::vector<event::SyncRecord> syncs;
  std::vector<event::QueueRecord> queues;
  std::vector<event::DeviceRecord> devices;
  std::vector<event::ClockPairRecord> pairs;
  std::vector<event::ProcessRecord> processes;
  std::vector<event::KernelRecord> kernels;
  std::map<std::string, std::string> properties;  // of the process
  std::map<std::pair<event::Table, event::LossReason>, uint64_t> losses;
  std::vector<std::string> notes;
  uint64_t dropped = 0;
  std::map<std::pair<uint32_t, uint32_t>, std::string> strings;  // by process slot and number
  std::vector<std::string> problems;  // references to missing definitions, records that make no sense

  size_t calls(const std::string& name) const;
  const Api* call_of(uint64_t correlation) const;
};

/// Runs `command` to its end. Fails the current test when the pool cannot be made or the program not be started.
Outcome run(const std::vector<std::string>& command, const RunOptions& options = {});

/// A program of tests/e2e/targets, an example, and libtacho.so of this build.
std::string target(const std::string& name);
std::string example(const std::string& name);
std::string library();

}  // namespace tacho::test
