// The life of HSA's late source (late_hsa.h).
#include "capture/source/rocm/late_hsa/late_hsa.h"

#include <stdio.h>
#include <string.h>

#include <atomic>

#include "capture/room/lock.h"
#include "capture/source/rocm/late_hsa/hsa_tables.h"
#include "capture/source/rocm/late_hsa/old_queues.h"
#include "capture/source/rocm/rocm.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {
namespace {

namespace sig = hsa::signature;

enum class Stage : uint32_t { kAbsent, kWaiting, kRecording, kRefused };
constinit std::atomic<Stage> g_stage{Stage::kAbsent};
constinit LockWord g_change{0};  // of the stage: a thread of the program ends the runtime as tacho leaves
constexpr int64_t kPatience = 1'000'000'000;

void refuse(const char* why) {
  g_stage.store(Stage::kRefused, std::memory_order_release);
  char line[320];
  snprintf(line, sizeof line,
           "the program uses HSA without HIP, and none of its kernels and copies is in this trace: %s", why);
  tape::note(event::NoteSeverity::kWarning, line);
}

// With the lock held: everything is as before tacho came.
void stop(int64_t patience) {
  close_late_session(patience);
  end_late_session();
  if (!put_back())
    tape::note(
        event::NoteSeverity::kWarning,
        "another tool has put its functions over tacho's into HSA's tables while tacho was attached: these go on "
        "through the parked library");
}

void try_to_begin();

// In place of hsa_shut_down: the last one takes all signals and queues with it. If it is not the last, recording goes
// on.
hsa::Status shut_down() {
  bool stopped = false;
  {
    const Guard guard(g_change);
    if (g_stage.load(std::memory_order_relaxed) == Stage::kRecording) {
      constexpr int64_t kMoment = 200'000'000;
      stop(kMoment);
      g_stage.store(Stage::kWaiting, std::memory_order_release);
      stopped = true;
    }
  }
  const hsa::Status status = call<sig::ShutDown>(g_runtime.core.hsa_shut_down);
  if (!stopped) return status;
  try_to_begin();
  static constinit std::atomic<uint32_t> s_told_in{0};
  if (g_stage.load(std::memory_order_relaxed) == Stage::kRecording &&
      s_told_in.exchange(tape::late_session()) != tape::late_session())
    tape::note(
        event::NoteSeverity::kInfo,
        "a part of the program ended its use of HSA while others went on (hsa_shut_down): what these began in the "
        "milliseconds around that is not in this trace");
  return status;
}

template <typename Table>
void copy_table(Table& to, const Table& from) {
  memset(static_cast<void*>(&to), 0, sizeof to);
  memcpy(static_cast<void*>(&to), &from, from.version.size < sizeof to ? from.version.size : sizeof to);
}

// With the lock held.
void begin_recording(const FoundTables& tables) {
  static constinit hsa::CoreTable s_core{};
  static constinit hsa::AmdTable s_amd{};
  copy_table(s_core, *tables.core);
  copy_table(s_amd, *tables.amd);
  begin_late_session(s_core, s_amd);
  put_functions(s_core, s_amd);
  put_signal_functions(s_core);
  s_core.hsa_shut_down = reinterpret_cast<void*>(&shut_down);
  if (tape::configuration().hsa_calls) {
    trace_calls(s_core, s_amd);
    tape::define_attached(event::Domain::kHsa);
  }
  put_into(tables, s_core, s_amd);
  learn_loaded_kernels();  // what was loaded since
  tape::define_property(event::Table::kProcess, 0, "rocm.source", "hsa");
  g_stage.store(Stage::kRecording, std::memory_order_release);
}

void try_to_begin() {
  if (g_stage.load(std::memory_order_relaxed) != Stage::kWaiting) return;
  const FoundTables tables = find_tables();
  if (tables.why != nullptr) return refuse(tables.why);
  uint64_t now = 0;
  if (tables.core == nullptr || call<sig::SystemInfo>(tables.core->hsa_system_get_info, hsa::kSystemTimestamp,
                                                      static_cast<void*>(&now)) != hsa::kSuccess)
    return;  // it does not run yet
  const Guard guard(g_change);
  if (g_stage.load(std::memory_order_relaxed) == Stage::kWaiting) begin_recording(tables);
}

}  // namespace

bool hsa_is_recorded_late() {
  const Stage stage = g_stage.load(std::memory_order_acquire);
  return stage == Stage::kRecording || stage == Stage::kWaiting;
}

void start_late_hsa() {
  if (g_stage.load(std::memory_order_relaxed) != Stage::kAbsent) return;
  g_stage.store(Stage::kWaiting, std::memory_order_release);
  try_to_begin();
}

void look_at_late_hsa() {
  try_to_begin();
}

void leave_late_hsa() {
  const Guard guard(g_change);
  const Stage stage = g_stage.load(std::memory_order_relaxed);
  if (stage == Stage::kRecording) stop(kPatience);
  if (stage == Stage::kRecording || stage == Stage::kWaiting) tell_old_queues();
  g_stage.store(Stage::kAbsent, std::memory_order_release);
}

void leave_late_hsa_in_child() {
  if (g_stage.load(std::memory_order_relaxed) == Stage::kRecording) put_back();
  g_stage.store(Stage::kAbsent, std::memory_order_release);
}

}  // namespace tacho::capture::rocm
