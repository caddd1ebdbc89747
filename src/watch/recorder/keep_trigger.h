// What makes `tacho watch --keep` write a file: the words of --trigger.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace tacho::watch {

enum class KeepCause {
  kKey,          ///< of the page
  kSignal,       ///< sent to tacho
  kCrash,        ///< the program was ended by a signal that nobody meant, or its device failed
  kProgram,      ///< the program asked for a file (tacho_keep)
  kMarker,       ///< a mark or range of the program's
  kSlowStep,     ///< a step took longer than the median of those before
  kIdle,         ///< devices had nothing to do
  kNewKernel,    ///< a kernel that was not seen before
  kMemory,       ///< the program holds so much of a device's memory
  kOutOfMemory,  ///< an allocation was refused
  kCollective,   ///< a collective took longer
};

struct KeepTrigger {
  KeepCause cause = KeepCause::kKey;
  int signal = 0;          ///< kSignal
  double share = 0;        ///< kSlowStep, kIdle, kMemory: of 1
  double seconds = 0;      ///< kCollective; kNewKernel: how long all kernels are new; kIdle: how long
  std::string text = {};   ///< kMarker: its name; kSlowStep: the name of the ranges that are steps, empty = any known
  std::string words = {};  ///< as the user gave it
};

/// "signal:USR1", "crash", "program", "marker:TEXT", "slow-step:20%[:TEXT]", "idle:50%[:TIME]", "new-kernel[:TIME]",
/// "memory:90%", "out-of-memory", "collective:TIME".
Result<KeepTrigger> parse_keep_trigger(const std::string& text);
/// Those of a run that names none.
std::vector<KeepTrigger> usual_keep_triggers();
/// A word for names of files: "signal", "slow-step".
std::string cause_word(KeepCause cause);

}  // namespace tacho::watch
