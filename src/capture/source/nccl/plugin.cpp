// NCCL's profiler plugin: NCCL loads the library because NCCL_PROFILER_PLUGIN names it, and reports each collective
// right after launching its kernel, on the same thread. Compiled into libtacho.so and libtacho-watch.so, which do
// different things with what is told (told.h).
#include <atomic>

#include "capture/source/marker/marker.h"
#include "capture/source/nccl/told.h"
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
};
constexpr size_t kCommunicators = 1024;
constinit Communicator g_communicators[kCommunicators] = {};

// The context of a communicator; nullptr when there are too many, and then its collectives are not recorded.
Communicator* take(uint64_t number, int ranks, int rank) {
  for (Communicator& place : g_communicators) {
    if (place.used.load(std::memory_order_relaxed) || place.used.exchange(true, std::memory_order_acquire)) continue;
    place.number = number;
    place.ranks = ranks;
    place.rank = rank;
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

abi::Result init_any(void** context, int* mask, uint64_t number, int ranks, int rank) {
  *context = nullptr;
  *mask = 0;
  if (!marker::ready()) return abi::kSuccess;
  *context = take(number, ranks, rank);
  if (*context != nullptr) joined(number, ranks, rank);
  return *context != nullptr ? wanted(mask) : abi::kSuccess;
}
abi::Result init4(void** context, int* mask, const char*, uint64_t number, int, int ranks, int rank, void*) {
  return init_any(context, mask, number, ranks, rank);
}
abi::Result init5(void** context, uint64_t number, int* mask, const char*, int, int ranks, int rank, void*) {
  return init_any(context, mask, number, ranks, rank);
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

abi::Result start2(void*, void** event, const abi::EventHead* what) {
  *event = nullptr;
  if (what->kind != abi::kCollective) return abi::kSuccess;
  const auto& of = *reinterpret_cast<const abi::Collective2*>(what);
  called({.operation = of.operation,
          .type = of.type,
          .algorithm = nullptr,
          .protocol = nullptr,
          .communicator = of.communicator,
          .sequence = of.sequence,
          .count = of.count,
          .ranks = 0,
          .rank = of.head.rank});
  return abi::kSuccess;
}

abi::Result start4(void* context, void** event, const abi::EventHead* what) {
  *event = nullptr;
  if (what->kind != abi::kCollective || context == nullptr) return abi::kSuccess;
  const auto& of = *reinterpret_cast<const abi::Collective4*>(what);
  const auto& communicator = *static_cast<const Communicator*>(context);
  called({.operation = of.operation,
          .type = of.type,
          .algorithm = of.algorithm,
          .protocol = of.protocol,
          .communicator = communicator.number,
          .sequence = of.sequence,
          .count = of.count,
          .ranks = communicator.ranks,
          .rank = communicator.rank});
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
