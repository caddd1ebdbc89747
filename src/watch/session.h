// Runs a program under `tacho watch`: starts it with libtacho-watch.so, governs its timing, and hands out moments.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/installation.h"
#include "watch/answer.h"
#include "watch/recorder/recorder.h"

namespace tacho::watch {

struct WatchOptions {
  std::vector<std::string> command;
  std::string title;                                  ///< what is watched, for files: the program's words
  double budget = 0.01;                               ///< as Governor's
  bool timing = true;                                 ///< false: only count
  KernelTimes graph_times;                            ///< for the kernels inside graphs
  double interval_s = 0;                              ///< between calls of `tick`; 0: it is not called
  std::optional<uint16_t> prometheus;                 ///< a port on 127.0.0.1 that answers /metrics; 0: any free one
  bool view = false;                                  ///< a page for a browser
  bool host_code = false;                             ///< sample the programs' threads, for pages
  std::optional<PushAddress> otlp;                    ///< a collector that gets metrics
  double otlp_interval_s = 10;                        ///< between pushes
  std::string sums;                                   ///< a .tacho with the sums of seconds, minutes and hours
  int stdin_fd = -1, stdout_fd = -1, stderr_fd = -1;  ///< the program's; -1: tacho's own
  std::function<void()> step;                         ///< called every 20 ms
  /// Called once, when the program runs, with the addresses of metrics and of the page for a browser; "" where there is
  /// none.
  std::function<void(const std::string& metrics, const std::string& page)> started;
  std::function<void(const WatchMoment& moment)> tick;
  std::optional<KeepOptions> keep;  ///< the last seconds in detail, of which triggers make files
  /// Called every 20 ms with `keep`: whether a file is wanted now. And with sentences about files.
  std::function<bool()> wants_file;
  std::function<void(const std::string& sentence)> say;
};

struct WatchResult {
  int exit_code = 0;  ///< of the program: its code, or 128 + signal
  WatchMoment last;
};

/// libtacho-watch.so beside libtacho.so.
Result<std::string> find_watch_library();

/// A step of what is kept: every 20 ms.
void keep_on(Recorder& recorder, const WatchOptions& options);
/// Writes what is still to be written, and says so.
void keep_no_more(Recorder& recorder, const WatchOptions& options);

/// Those that fill a table.
struct WatchedPrograms {
  int descriptor = -1;                                             ///< readable when there is something to do
  std::function<tl::expected<void, launch::LaunchError>()> begin;  ///< called once; an error ends all
  std::function<bool()> ended;                                     ///< asked every 20 ms
  std::function<void()> leave;                                     ///< called at the end, before the last moment
};
/// Governs the table and hands out its moments from the programs' begin to their end. The last moment.
tl::expected<WatchMoment, launch::LaunchError> watch_table(WatchSegment& segment, const WatchOptions& options,
                                                           const WatchedPrograms& programs);

/// Runs the program to its end and passes on signals meanwhile. The calling process must be single-threaded.
tl::expected<WatchResult, launch::LaunchError> watch(const WatchOptions& options);

}  // namespace tacho::watch
