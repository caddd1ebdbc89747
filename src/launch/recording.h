// Recording: what to record, when, and where to. Every command that starts a program turns its options into one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "event/configuration_text.h"
#include "launch/telemetry.h"
#include "tape/layout.h"
#include "trace/write/writer.h"

namespace tacho::launch {

/// Which of PyTorch's operators are recorded with the shapes of their inputs.
enum class TorchShapes : uint8_t {
  kNone,
  kSampled,  ///< those in stretches of the run (python/tacho/torch_shapes.py)
  kAll,
};

/// When to switch recording on or off.
struct Trigger {
  enum class Kind { kNone, kMarker, kSignal, kLaunch } kind = Kind::kNone;
  std::string marker;   // kMarker: text of a mark or range
  int signal = 0;       // kSignal: sent to tacho
  uint64_t launch = 0;  // kLaunch: the n-th dispatch of the run, from 1
};
/// "marker:TEXT", "signal:USR1", "launch:N".
Result<Trigger> parse_trigger(const std::string& text);

struct Recording {
  // What to record
  uint64_t sources = tape::source_bit::kAll;
  /// The configuration for targets: kernel filters, call stacks, details of CUDA. Starting adds the triggers' markers.
  event::Configuration target;
  double sample_delay_s = 0;     ///< sampling of call stacks starts after this
  double sample_duration_s = 0;  ///< and lasts this long; 0 = to the end
  TelemetryOptions telemetry;

  // When
  bool start_paused = false;
  /// The program's own pauses do not count: for runs that only measure the times of another run's work.
  bool ignores_program = false;
  double delay_s = 0;     ///< recording starts after this
  double duration_s = 0;  ///< and lasts this long from when it first was on; 0 = to the end
  Trigger start_trigger, stop_trigger;
  /// A delay and a duration, `repeat` times; 0 = for ever.
  struct Period {
    double delay_s, duration_s;
    uint64_t repeat;
  };
  std::vector<Period> periods;  ///< override delay_s and duration_s
  // As the user gave them, for messages
  std::string delay_option = "--delay", paused_option = "--start-paused";
  std::string resume_calls = "no tacho_resume() or its like of a vendor";

  // Where to, and how much
  std::string output;  ///< the .tacho to write
  trace::WriterOptions writer;
  uint64_t pool_initial = 16ull << 20;
  uint64_t pool_max = 256ull << 20;
  uint32_t flush_period_ms = 1000;

  /// The gates (tape/layout.h) that are closed when the program starts.
  uint32_t closed_gates() const;
};

/// An error with the first contradiction, as a sentence for the user.
Status check(const Recording& recording);

}  // namespace tacho::launch
