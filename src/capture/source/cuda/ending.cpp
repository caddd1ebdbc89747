// Leaving CUPTI idle or finalised (ending.h).
#include "capture/source/cuda/ending.h"

#include <stdio.h>
#include <string.h>

#include <atomic>

#include "base/clock.h"
#include "capture/source/cuda/own_call.h"
#include "tape/writer.h"

namespace tacho::capture::cuda {
namespace {

// Both in a process's life, for a graph may be launched at any time after.
constinit std::atomic<bool> g_unfollowed{false};   // CUPTI was there while nobody followed the calls of graphs
constinit std::atomic<bool> g_used_before{false};  // by another tool, which left it there
constinit std::atomic<uint32_t> g_graph_call{0};   // the first one's number among the driver's functions, 0 = none
constinit bool g_of_graphs[kCallbacks] = {};       // of the driver, through which the runtime works as well

bool is_of_graphs(const char* function) {
  const auto begins = [&](const char* with) { return strncmp(function, with, strlen(with)) == 0; };
  return (begins("cuGraph") && !begins("cuGraphics")) || begins("cuStreamBeginCapture") || begins("cuStreamEndCapture");
}

struct Finalizing {
  const Cupti* cupti;
  abi::Subscriber subscriber;
  bool tried;
  abi::Result result;
  int64_t ns;
};
constinit Finalizing g_finalizing{};

// At the end of a call of ours, as NVIDIA's header recommends: no call of this thread is inside CUPTI then.
bool finalize_at_exit(const abi::CallbackData& call) {
  if (call.site != abi::kExit || g_graph_call.load(std::memory_order_acquire) != 0) return true;
  const int64_t begin = raw_now();
  g_finalizing.tried = true;
  g_finalizing.cupti->unsubscribe(g_finalizing.subscriber);
  g_finalizing.result = g_finalizing.cupti->finalize();
  g_finalizing.ns = raw_now() - begin;
  return false;
}

// CUPTI's number of a call right after subscribing, before it tells of any other. 0 = it does not tell.
constinit uint32_t g_first_call = 0;
uint32_t number_of_first_call(const Cupti& cupti, abi::Subscriber subscriber) {
  g_first_call = 0;
  make_own_call(cupti, subscriber, [](const abi::CallbackData& call) {
    g_first_call = call.correlation;
    return true;
  });
  return g_first_call;
}

constexpr const char* kCost =
    "Measured with CUPTI 13.0, loops of graphs are 3 to 11 % slower then, and loops of single launches that the host "
    "can hardly keep up with about 13 %";

void tell_idle(const Cupti& cupti, const char* why) {
  char line[768], first[128] = "";
  const uint32_t call = g_graph_call.load(std::memory_order_acquire);
  const char* name = nullptr;
  if (call != 0 && cupti.get_callback_name(abi::domain::kDriver, call, &name) == abi::kSuccess && name != nullptr)
    snprintf(first, sizeof first, " (the first call of graphs: %s)", name);
  snprintf(line, sizeof line, "CUPTI stays in the program, idle, until the program ends: %s%s. %s", why, first, kCost);
  tape::note(event::NoteSeverity::kInfo, line);
  tape::define_property(event::Table::kProcess, 0, "cupti.left", "idle");
}

void tell_finalized() {
  char line[160];
  snprintf(line, sizeof line, "CUPTI was finalised in %.1f ms: the program's calls no longer go through it",
           static_cast<double>(g_finalizing.ns) * 1e-6);
  tape::note(event::NoteSeverity::kInfo, line);
  tape::define_property(event::Table::kProcess, 0, "cupti.left", "finalized");
}

// Null: nothing that tacho knows speaks against it.
const char* why_not_finalize(const Cupti& cupti, const char* unsafe) {
  if (tape::configuration().leave_cupti_idle) return "--leave-cupti idle was given";
  if (cupti.finalize == nullptr || cupti.unsubscribe == nullptr) return "it has no function to be finalised";
  if (g_used_before.load(std::memory_order_acquire))
    return "another tool used it before and left it there, and to finalise it could break CUDA graphs that the program "
           "launched meanwhile";
  if (g_unfollowed.load(std::memory_order_acquire))
    return "an earlier attach left it idle, and to finalise it could break graphs that the program has launched since";
  if (g_graph_call.load(std::memory_order_acquire) != 0)
    return "to finalise it could break CUDA graphs, which the program made or launched while tacho was attached";
  return unsafe;
}

}  // namespace

void begin_to_follow_graphs(const Cupti& cupti, abi::Subscriber subscriber) {
  if (tape::configuration().leave_cupti_idle) return g_unfollowed.store(true, std::memory_order_release);
  if (!g_unfollowed.load(std::memory_order_acquire) && number_of_first_call(cupti, subscriber) > 1)
    g_used_before.store(true, std::memory_order_release);
  for (uint32_t id = 1; id < kCallbacks; ++id) {
    const char* name = nullptr;
    g_of_graphs[id] = cupti.get_callback_name(abi::domain::kDriver, id, &name) == abi::kSuccess && name != nullptr &&
                      is_of_graphs(name);
    if (g_of_graphs[id] && cupti.enable_callback(1, subscriber, abi::domain::kDriver, id) != abi::kSuccess)
      g_unfollowed.store(true, std::memory_order_release);
  }
}

void see_graph_call(int domain, uint32_t id) {
  if (domain == abi::domain::kDriver && id < kCallbacks && __builtin_expect(g_of_graphs[id], 0))
    if (uint32_t none = 0; g_graph_call.load(std::memory_order_relaxed) == none)
      g_graph_call.compare_exchange_strong(none, id, std::memory_order_release, std::memory_order_relaxed);
}

void leave_cupti(const Cupti& cupti, abi::Subscriber subscriber, const char* unsafe) {
  const char* why = why_not_finalize(cupti, unsafe);
  g_finalizing = {&cupti, subscriber, false, abi::kSuccess, 0};
  if (why == nullptr) {
    const bool called = make_own_call(cupti, subscriber, finalize_at_exit);
    if (g_finalizing.tried && g_finalizing.result == abi::kSuccess) return tell_finalized();
    why = why_not_finalize(cupti, unsafe);  // the first graph may have come just now
    if (why == nullptr)
      why = called ? "it refused to be finalised" : "it does not tell of the call in which finalising it is safe";
  }
  g_unfollowed.store(true, std::memory_order_release);
  tell_idle(cupti, why);
  if (cupti.unsubscribe != nullptr && !g_finalizing.tried) cupti.unsubscribe(subscriber);
}

void leave_cupti_to_others(const Cupti& cupti, abi::Subscriber subscriber) {
  g_unfollowed.store(true, std::memory_order_release);
  if (subscriber != nullptr && cupti.unsubscribe != nullptr) cupti.unsubscribe(subscriber);
}

}  // namespace tacho::capture::cuda
