// Starts a target under tracing and follows it to its end: environment, pool, drainer, signals, exit code, trace file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "decode/decoder.h"
#include "launch/recording.h"

namespace tacho::launch {

/// The program to start, and how tacho behaves around it.
struct LaunchOptions {
  Recording recording;
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  // further variables for the target
  bool quiet = false;                                            // no status line, no progress
  bool preload = true;  // LD_PRELOAD libtacho.so (markers, ROCTx, sampler)
  bool inject = true;   // any of our libraries at all; false: the environment stays but for `environment`
  int stdout_fd = -1, stderr_fd = -1;  // what the target gets as 1 and 2; -1 = ours
  std::function<void()> started;       // called once, when the target runs
  std::function<void()> tick;          // called at least every 200 ms while it runs, where set
};

struct RunResult {
  int exit_code = 0;  // the target's: its code, or 128 + signal
  int signal = 0;     // that ended it, 0 = none
  pid_t pid = 0;
  double seconds = 0;          // wall time of the target
  bool still_running = false;  // descendants of the target went on after it
  std::vector<decode::ProcessFacts> processes;
  std::vector<std::string> warnings;  // sentences for the user
  uint64_t pool_bytes = 0;            // bytes that went through the pool
  double drain_cpu_s = 0;             // CPU time of the drainer
  Status written = {};                // of the trace file
  /// Gives the pool's memory back to the machine, which takes milliseconds; the destructor waits.
  std::jthread giving_back = {};
};

/// An error to report before the target ran, with the exit code that goes with it (125, 126, 127).
struct LaunchError {
  int exit_code;
  std::string message;
};

/// Runs the target to its end and writes the trace. Blocks; forwards signals meanwhile; the caller must be
/// single-threaded when it calls.
tl::expected<RunResult, LaunchError> run(const LaunchOptions& options);

/// Absolute path of `command` as execvp would find it, or the error with 126 or 127.
tl::expected<std::string, LaunchError> find_executable(const std::string& command);

/// libtacho.so of this installation: beside the executable (../lib), or $TACHO_LIBRARY.
Result<std::string> find_library();

/// Takes what is left in the pool of a tacho that died, and its unfinished trace file if that is named in the pool and
/// still there, and writes `output`; then removes both if told.
Status recover(const std::string& pool_path, const std::string& output, bool overwrite, bool remove_sources,
               std::vector<std::string>& notes);
/// Pools of this user on this machine whose tacho no longer runs.
std::vector<std::string> abandoned_pools();

}  // namespace tacho::launch
