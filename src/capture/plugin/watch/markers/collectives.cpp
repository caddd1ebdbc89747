// Collectives that NCCL tells of (capture/source/nccl): a record in the ring of `tacho watch --keep` for each, by which
// tacho knows which rank has not called the one that others wait in.
#include <stdio.h>

#include "capture/plugin/watch/ring.h"
#include "capture/source/nccl/told.h"

namespace tacho::capture::nccl {
namespace {

uint64_t place(int ranks, int rank) {
  return static_cast<uint64_t>(static_cast<uint32_t>(ranks)) << 32 | static_cast<uint32_t>(rank);
}

}  // namespace

void joined(uint64_t communicator, int ranks, int rank) {
  const watch::KeptCall call;
  call.end({.kind = watch::WatchRecordKind::kCollective, .object = communicator, .context = place(ranks, rank)});
}

void called(const Told& told) {
  if (told.operation == nullptr) return;
  const watch::KeptCall call;
  if (!call.kept()) return;
  // Of a few operations, each one's number. NCCL's texts of an operation are constants.
  static constinit struct {
    std::atomic<const char*> operation;
    watch::CallNumber number;
  } known[16] = {};
  for (auto& each : known) {
    const char* there = each.operation.load(std::memory_order_acquire);
    if (there != told.operation &&
        (there != nullptr || !each.operation.compare_exchange_strong(there, told.operation)) && there != told.operation)
      continue;
    call.end({.kind = watch::WatchRecordKind::kCollective,
              .call = each.number.find(event::Domain::kMarker, told.operation, ""),
              .object = told.communicator,
              .amount = told.sequence,
              .context = place(told.ranks, told.rank)});
    return;
  }
}

}  // namespace tacho::capture::nccl
