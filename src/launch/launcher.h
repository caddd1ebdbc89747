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
#include "launch/telemetry.h"
#include "tape/layout.h"
#include "trace/writer.h"

namespace tacho::launch {

/// When to switch recording on or off.
struct Trigger {
  enum class Kind { kNone, kMarker, kSignal, kLaunch } kind = Kind::kNone;
  std::string marker;   // kMarker: text of a mark or range
  int signal = 0;       // kSignal: sent to tacho
  uint64_t launch = 0;  // kLaunch: the n-th dispatch of the run, from 1
};
/// "marker:TEXT", "signal:USR1", "launch:N".
Result<Trigger> parse_trigger(const std::string& text);

struct LaunchOptions {
  std::vector<std::string> command;
  std::string output;  // the .tacho to write
  trace::WriterOptions writer;
  uint64_t sources = tape::source_bit::kAll;
  bool start_paused = false;
  double delay_s = 0;     // recording starts after so many seconds
  double duration_s = 0;  // and lasts so many; 0 = to the end
  Trigger start_trigger, stop_trigger;
  /// (delay, duration, repeat) triples of the collection period; repeat 0 = for ever. Overrides delay and duration.
  struct Period {
    double delay_s, duration_s;
    uint64_t repeat;
  };
  std::vector<Period> periods;
  uint64_t pool_initial = 16ull << 20;
  uint64_t pool_max = 256ull << 20;
  uint32_t flush_period_ms = 1000;
  bool quiet = false;                                            // no status line, no progress
  std::vector<std::pair<std::string, std::string>> config;       // for sources, see tape::config
  std::vector<std::pair<std::string, std::string>> environment;  // further variables for the target
  TelemetryOptions telemetry;
  uint32_t perf_hz = 0;          // call stacks from outside (perf_event), samples a second; 0 = off
  uint32_t perf_stack = 16384;   // bytes of stack per sample
  double sample_delay_s = 0;     // call stacks only: no samples before
  double sample_duration_s = 0;  // nor after so many seconds more; 0 = to the end
  bool preload = true;           // LD_PRELOAD libtacho.so (markers, ROCTx, sampler)
  bool inject = true;  // any of our libraries at all; false: the environment stays but for `environment`
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
