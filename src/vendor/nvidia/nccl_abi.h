// The arguments of a profiler plugin of NCCL, as its plugin interface lays them out (plugins/profiler/README.md of
// NCCL): versions 2 and 3 (NCCL 2.24 to 2.26), 4 (2.27) and 5 and 6 (2.28 on). A plugin is a struct of functions by the
// name of its version; NCCL takes the newest that it knows. RCCL's interface is the same. Only the part that tacho
// reads is declared.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho::vendor::nvidia::nccl {

using Result = int;
inline constexpr Result kSuccess = 0;

/// Bits of the mask by which a plugin chooses its events.
enum EventKind : int { kCollective = 1 << 1 };

/// The head of all events. Up to version 4 the kind is one byte, later eight: the first is the same.
struct EventHead {
  uint8_t kind;
  uint8_t rest[7];
  void* parent;
  int32_t rank;
};

/// A collective, in versions 2 and 3.
struct Collective2 {
  EventHead head;
  const char* communicator_name;
  uint64_t communicator;  // the same number on all ranks
  uint64_t sequence;      // of this operation in the communicator
  const char* operation;  // "AllReduce"
  const void* send;
  void* receive;
  size_t count;  // elements of this rank
  int32_t root;
  const char* type;  // "ncclFloat32"
};

/// From version 4 on; init gets the communicator, once.
struct Collective4 {
  EventHead head;
  uint64_t sequence;
  const char* operation;
  const void* send;
  void* receive;
  size_t count;
  int32_t root;
  const char* type;
  uint8_t channels, warps;
  const char* algorithm;  // "RING"
  const char* protocol;   // "SIMPLE"
};

/// The struct that NCCL finds by its name; only init differs between versions.
template <typename Init>
struct Plugin {
  const char* name;
  Init init;
  Result (*start)(void* context, void** event, const EventHead* what);
  Result (*stop)(void* event);
  Result (*state)(void* event, int state, const void* arguments);
  Result (*finalize)(void* context);
};
using Init2 = Result (*)(void** context, int* wanted);
using Init4 = Result (*)(void** context, int* wanted, const char* name, uint64_t communicator, int nodes, int ranks,
                         int rank, void* log);
using Init5 = Result (*)(void** context, uint64_t communicator, int* wanted, const char* name, int nodes, int ranks,
                         int rank, void* log);

static_assert(sizeof(EventHead) == 24);
static_assert(offsetof(Collective2, operation) == 48 && offsetof(Collective2, count) == 72 &&
              offsetof(Collective2, type) == 88);
static_assert(offsetof(Collective4, operation) == 32 && offsetof(Collective4, count) == 56 &&
              offsetof(Collective4, type) == 72 && offsetof(Collective4, algorithm) == 88);

}  // namespace tacho::vendor::nvidia::nccl
