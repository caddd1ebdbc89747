// NCCL's profiler plugin: NCCL loads libtacho.so because NCCL_PROFILER_PLUGIN names it, and reports each collective
// right after launching its kernel, on the same thread. Every collective leaves a mark of domain "NCCL", whose text
// uses torch.profiler's words so that analyses read both alike. The payload is the collective's number within the
// communicator. A thread's mark describes the launch before it.
#include <atomic>
#include <cstdio>
#include <string_view>

#include "capture/source/marker/marker.h"
#include "event/records.h"
#include "tape/writer.h"
#include "vendor/nvidia/nccl_abi.h"

#define TACHO_NCCL_EXPORT extern "C" __attribute__((visibility("default")))

namespace tacho::capture::nccl {
namespace {

namespace abi = vendor::nvidia::nccl;

// The description of a communicator, known before its first collective. NCCL hands it back with every event.
struct Communicator {
  std::atomic<bool> used;
  uint64_t number;
  int ranks, rank;
  uint32_t name;  // string; 0 = none
};
constexpr size_t kCommunicators = 1024;
constinit Communicator g_communicators[kCommunicators] = {};

// The context of a communicator; nullptr when there are too many, and then its collectives are not recorded.
Communicator* take(uint64_t number, const char* name, int ranks, int rank) {
  for (Communicator& place : g_communicators) {
    if (place.used.load(std::memory_order_relaxed) || place.used.exchange(true, std::memory_order_acquire)) continue;
    place.number = number;
    place.ranks = ranks;
    place.rank = rank;
    place.name = name != nullptr && *name != '\0' ? tape::intern(marker::clip(name)) : 0;
    return &place;
  }
  return nullptr;
}

abi::Result wanted(int* mask) {
  *mask = marker::ready() ? abi::kCollective : 0;
  return abi::kSuccess;
}

abi::Result init2(void** context, int* mask) {
  *context = nullptr;
  return wanted(mask);
}

abi::Result init_any(void** context, int* mask, const char* name, uint64_t number, int ranks, int rank) {
  *context = nullptr;
  *mask = 0;
  if (!marker::ready()) return abi::kSuccess;
  *context = take(number, name, ranks, rank);
  return *context != nullptr ? wanted(mask) : abi::kSuccess;
}
abi::Result init4(void** context, int* mask, const char* name, uint64_t number, int, int ranks, int rank, void*) {
  return init_any(context, mask, name, number, ranks, rank);
}
abi::Result init5(void** context, uint64_t number, int* mask, const char* name, int, int ranks, int rank, void*) {
  return init_any(context, mask, name, number, ranks, rank);
}

abi::Result finalize(void* context) {
  if (context != nullptr) static_cast<Communicator*>(context)->used.store(false, std::memory_order_release);
  return abi::kSuccess;
}

// NCCL asks to end only events for which it got a handle: none here.
abi::Result stop(void*) {
  return abi::kSuccess;
}
abi::Result state(void*, int, const void*) {
  return abi::kSuccess;
}

struct Told {
  const char *operation, *type, *algorithm, *protocol;
  uint64_t communicator, sequence, count;
  int ranks;  // 0 = unknown
};

void leave_mark(const Told& told) {
  if (!marker::active() || told.operation == nullptr || told.type == nullptr) return;
  const std::string_view operation(told.operation), type(told.type);
  // NCCL counts what a rank gives to an all-gather and gets from a reduce-scatter.
  const auto ranks = static_cast<uint64_t>(told.ranks > 0 ? told.ranks : 1);
  const bool known = told.ranks > 0;
  const uint64_t in = operation == "ReduceScatter" ? (known ? told.count * ranks : 0) : told.count;
  const uint64_t out = operation == "AllGather" ? (known ? told.count * ranks : 0) : told.count;
  char text[384];
  int length = snprintf(text, sizeof text, "Collective name=%.40s", told.operation);
  const auto add = [&](const char* format, auto value) {
    const size_t used = static_cast<size_t>(length) < sizeof text ? static_cast<size_t>(length) : sizeof text - 1;
    length += snprintf(text + used, sizeof text - used, format, value);
  };
  if (in != 0) add(", In msg nelems=%llu", static_cast<unsigned long long>(in));
  if (out != 0) add(", Out msg nelems=%llu", static_cast<unsigned long long>(out));
  add(", dtype=%.40s", told.type + (type.starts_with("nccl") ? 4 : 0));
  if (known) add(", Group size=%d", told.ranks);
  add(", Process Group Name=%llx", static_cast<unsigned long long>(told.communicator));
  if (told.algorithm != nullptr) add(", Algorithm=%.40s", told.algorithm);
  if (told.protocol != nullptr) add(", Protocol=%.40s", told.protocol);
  const size_t size = static_cast<size_t>(length) < sizeof text ? static_cast<size_t>(length) : sizeof text - 1;
  marker::mark({.text = {text, size},
                .domain = tape::intern("NCCL"),
                .payload_flag = event::kMarkerInteger,
                .payload = told.sequence});
}

abi::Result start2(void*, void** event, const abi::EventHead* what) {
  *event = nullptr;
  if (what->kind != abi::kCollective) return abi::kSuccess;
  const auto& of = *reinterpret_cast<const abi::Collective2*>(what);
  leave_mark({.operation = of.operation,
              .type = of.type,
              .algorithm = nullptr,
              .protocol = nullptr,
              .communicator = of.communicator,
              .sequence = of.sequence,
              .count = of.count,
              .ranks = 0});
  return abi::kSuccess;
}

abi::Result start4(void* context, void** event, const abi::EventHead* what) {
  *event = nullptr;
  if (what->kind != abi::kCollective || context == nullptr) return abi::kSuccess;
  const auto& of = *reinterpret_cast<const abi::Collective4*>(what);
  const auto& communicator = *static_cast<const Communicator*>(context);
  leave_mark({.operation = of.operation,
              .type = of.type,
              .algorithm = of.algorithm,
              .protocol = of.protocol,
              .communicator = communicator.number,
              .sequence = of.sequence,
              .count = of.count,
              .ranks = communicator.ranks});
  return abi::kSuccess;
}

}  // namespace
}  // namespace tacho::capture::nccl

namespace nccl = tacho::capture::nccl;
namespace nccl_abi = tacho::vendor::nvidia::nccl;

TACHO_NCCL_EXPORT const nccl_abi::Plugin<nccl_abi::Init2> ncclProfiler_v2 = {"tacho",    nccl::init2, nccl::start2,
                                                                             nccl::stop, nccl::state, nccl::finalize};
TACHO_NCCL_EXPORT const nccl_abi::Plugin<nccl_abi::Init2> ncclProfiler_v3 = {"tacho",    nccl::init2, nccl::start2,
                                                                             nccl::stop, nccl::state, nccl::finalize};
TACHO_NCCL_EXPORT const nccl_abi::Plugin<nccl_abi::Init4> ncclProfiler_v4 = {"tacho",    nccl::init4, nccl::start4,
                                                                             nccl::stop, nccl::state, nccl::finalize};
TACHO_NCCL_EXPORT const nccl_abi::Plugin<nccl_abi::Init5> ncclProfiler_v5 = {"tacho",    nccl::init5, nccl::start4,
                                                                             nccl::stop, nccl::state, nccl::finalize};
TACHO_NCCL_EXPORT const nccl_abi::Plugin<nccl_abi::Init5> ncclProfiler_v6 = {"tacho",    nccl::init5, nccl::start4,
                                                                             nccl::stop, nccl::state, nccl::finalize};
