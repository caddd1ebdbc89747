// Work that HIP hands to the GPU, on the SDK's road (sdk.h). The library asks for the external correlation of each
// dispatch and each copy. Then tacho gives the work its stream and its node, counts it, and finds the launch with which
// recording begins or ends. Streams and graphs are those of the open HIP call (hip.cpp): the library's own way to name
// streams, records of kind HIP_STREAM, ends the program in 1.0 when it meets a stream that it did not see made, such as
// hipStreamPerThread.
//
//   external correlation    bits 0..31                       32..63
//                           stream, from 1 (0 = unknown)   node of a graph's launch, from 1 (0 = of no graph)
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "capture/source/rocm/rocm.h"
#include "capture/source/rocm/sdk/sdk.h"
#include "tape/gate.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {

namespace {

constinit std::atomic<tape::CommandCounts*> g_counts{nullptr};
constinit int32_t g_dispatch_requests = 0;  // the number of the request for dispatches
constinit std::atomic<uint64_t> g_last_correlation{0};
constinit std::atomic<bool> g_window_open{true};
constinit std::atomic<uint64_t> g_forgiven{0};

bool counts_launches() {
  return tape::pool()->start_launch != 0 || tape::pool()->stop_launch != 0;
}

void open_window(bool open, uint64_t correlation) {
  if (g_window_open.exchange(open) != open)
    tape::define_fact(kSdkBlocks, open ? event::BlockFact::kRecordingStarts : event::BlockFact::kRecordingStops,
                      correlation);
}

void count_sdk_launch(uint64_t correlation) {
  tape::PoolHeader& pool = *tape::pool();
  const tape::LaunchTriggers triggers = tape::count_run_launch(pool, 0);
  if (!triggers.starts && !triggers.stops) return;
  // The fact comes before the change that it tells of: nobody else closes or opens this gate meanwhile.
  if ((pool.closed.load(std::memory_order_relaxed) & ~(tape::gate::kTrigger | tape::gate::kSampleTime)) == 0)
    open_window(triggers.starts, correlation);
  tape::set_gate(pool, tape::gate::kTrigger, triggers.starts);
  syscall(SYS_futex, &pool.enabled, FUTEX_WAKE, 1 << 20, nullptr, nullptr, 0);
}

int on_work(uint64_t, sdk::Context, int32_t kind, int32_t, uint64_t correlation, uint64_t* external, void*) {
  const bool dispatch = kind == g_dispatch_requests;
  watch_recordings_exit();
  // The count reveals work that was handed over and never came back, even if the process is killed.
  if (tape::CommandCounts* const counts = g_counts.load(std::memory_order_acquire))
    counts->issued[static_cast<size_t>(dispatch ? event::Table::kDispatch : event::Table::kCopy)].fetch_add(
        1, std::memory_order_relaxed);
  if (counts_launches()) {
    g_last_correlation.store(correlation, std::memory_order_relaxed);
    if (dispatch) count_sdk_launch(correlation);
  }
  const uint32_t stream = open_stream();
  *external = uint64_t{next_graph_node()} << 32 | (stream == kNoStream ? 0 : uint64_t{stream} + 1);
  return 0;
}

// 0 if it is not counted.
uint64_t work_begun() {
  const tape::CommandCounts* const counts = g_counts.load(std::memory_order_acquire);
  if (counts == nullptr) return 0;
  uint64_t all = 0;
  for (const event::Table table : {event::Table::kDispatch, event::Table::kCopy})
    all += counts->issued[static_cast<size_t>(table)].load(std::memory_order_relaxed);
  return all;
}

}  // namespace

void follow_work(const Services& services, bool dispatches, bool copies) {
  const sdk::Functions& functions = services.functions;
  if (functions.external_request == nullptr || functions.external_kind_name == nullptr) return;
  int32_t kinds[2];
  size_t count = 0;
  const auto find = [&](std::string_view name) { return sdk::external_kind(functions.external_kind_name, name); };
  if (const int32_t kind = dispatches ? find(sdk::kind::kDispatch) : -1; kind > 0)
    g_dispatch_requests = kinds[count++] = kind;
  if (const int32_t kind = copies ? find(sdk::kind::kCopy) : -1; kind > 0) kinds[count++] = kind;
  if (count == 0 || functions.external_request(services.context, kinds, count, on_work, nullptr) != sdk::kSuccess)
    return;
  g_counts.store(tape::open_progress(), std::memory_order_release);
}

bool waits_for_launch() {
  const tape::PoolHeader* const pool = tape::pool();
  return g_dispatch_requests != 0 && pool->start_launch != 0 &&
         pool->trigger_start.load(std::memory_order_relaxed) == 0;
}

void recording_switched(bool on) {
  if (counts_launches()) open_window(on, on ? g_last_correlation.load(std::memory_order_relaxed) + 1 : 0);
}

void end_work() {
  if (tape::CommandCounts* const counts = g_counts.load(std::memory_order_acquire))
    counts->ended.store(1, std::memory_order_release);
}

void forget_work() {
  g_counts.store(nullptr, std::memory_order_relaxed);
}

bool work_is_open() {
  return work_begun() > work_back() + g_forgiven.load(std::memory_order_relaxed);
}

void forgive_open_work() {
  const uint64_t begun = work_begun(), back = work_back();
  g_forgiven.store(begun > back ? begun - back : 0, std::memory_order_relaxed);
}

}  // namespace tacho::capture::rocm
