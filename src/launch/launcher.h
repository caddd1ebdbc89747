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
#include "launch/installation.h"
#include "launch/recording.h"
#include "launch/run/device_samples.h"

namespace tacho::launch {

/// The program to start, and how to run it.
struct LaunchOptions {
  Recording recording;
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  // further variables for the target
  bool preload = true;                                           // LD_PRELOAD libtacho.so (markers, ROCTx, sampler)
  bool torch_trace = false;                                      // ranges of PyTorch's operators (torch_hooks.h)
  TorchShapes torch_shapes = TorchShapes::kNone;                 // with the shapes of their inputs
  bool follow = false;                 // go on until the last process that the target started ends
  bool inject = true;                  // false: load none of our libraries and change only `environment`
  DeviceSamples* samples = nullptr;    // counters of devices, set up to begin with the program; nullptr = none
  int stdout_fd = -1, stderr_fd = -1;  // the target's stdout and stderr; -1 = ours
  /// Called once, when the target runs, with the path of the recording while it is being written.
  std::function<void(const std::string& recording)> started;
  std::function<void()> tick;  // called at least every 200 ms while it runs, if set
};

struct RunResult {
  int exit_code = 0;  // of the target: its code, or 128 + signal
  int signal = 0;     // that ended the target, 0 = none
  pid_t pid = 0;
  double seconds = 0;          // wall time of the target
  bool still_running = false;  // descendants of the target outlived it, by more than a moment
  bool began = true;           // false: recording never was on; a warning says why
  std::vector<decode::ProcessFacts> processes;
  std::vector<std::string> warnings;  // sentences for the user
  uint64_t pool_bytes = 0;            // bytes that went through the pool
  double drain_cpu_s = 0;             // CPU time of the drainer
  Status written = {};                // of the trace file
  /// Returns the pool's memory to the machine, which takes milliseconds; the destructor waits.
  std::jthread giving_back = {};
};

/// Runs the target to its end and writes the trace. Blocks, and forwards signals meanwhile. The calling process must be
/// single-threaded.
tl::expected<RunResult, LaunchError> run(const LaunchOptions& options);

/// Writes `output` from the pool of a tacho that died and from its unfinished trace file, if the pool names one that
/// still exists. Then removes both if `remove_sources`.
Status recover(const std::string& pool_path, const std::string& output, bool overwrite, bool remove_sources,
               std::vector<std::string>& notes);
/// Paths of this user's pools on this machine whose tacho no longer runs.
std::vector<std::string> abandoned_pools();

/// A recording that a killed tacho left in a folder: an unfinished file, or a hidden one that was to be exported and
/// removed.
struct LeftRecording {
  std::string path, command;
  int64_t left = 0;    ///< when it was written last, CLOCK_REALTIME, ns
  int64_t events = 0;  ///< 0: there is nothing in it
};
/// This user's in `folder` ("" = the current one), by name.
std::vector<LeftRecording> left_recordings(const std::string& folder);
/// Removes those of them without events, but for those of the last minute. run() does it where it records.
void remove_empty_recordings(const std::string& folder);

}  // namespace tacho::launch
