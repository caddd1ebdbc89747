// Looks for what is wrong with memory (faults.h).
#include "analysis/memory/faults.h"

#include <algorithm>

#include "base/format.h"

namespace tacho::analysis {

namespace {

std::string who(const MemoryOwner& owner) {
  std::string name = owner.line;
  if (!owner.operation.empty()) name += name.empty() ? owner.operation : fmt::format(" ({})", owner.operation);
  if (name.empty()) name = owner.module.empty() ? "an unknown owner" : owner.module;
  return name;
}

MemoryOwner::Amount at(const MemoryOwner& owner, size_t moment) {
  return moment < owner.live.size() ? owner.live[moment] : MemoryOwner::Amount{};
}

}  // namespace

MemoryFaults memory_faults(const MemoryPlace& place, const MemoryReport& report) {
  MemoryFaults out;
  out.by_steps = report.steps > 1;
  constexpr int64_t kParts = 8;  // as memory.cpp divides a recording without steps
  out.parts = out.by_steps ? report.steps : kParts;
  if (place.beneath) return out;  // an allocator that keeps what it took grows and frees nothing
  for (const MemoryOwner& owner : place.owners) {
    const MemoryOwner::Amount held = at(owner, 0);
    if (owner.use == MemoryUse::kActivation) out.activations += held.bytes;
    constexpr int64_t kFew = 2;
    if (owner.use == MemoryUse::kTemporary && held.count > 0 && held.count <= kFew &&
        (!out.temporary || held.bytes > out.temporary->bytes))
      out.temporary = {who(owner), held.bytes, 0};
  }
  // What grows does so in most parts of the recording, and not in the last alone.
  constexpr int64_t kFewestSteps = 4;
  // Where frees were lost, memory seems to stay.
  if (report.lost == 0 && (!out.by_steps || out.parts >= kFewestSteps))
    for (const MemoryOwner& owner : memory_owners(place, MemoryBy::kOwner))
      if (owner.steps >= std::max<int64_t>(3, out.parts * 3 / 4) && at(owner, 1).bytes >= place.peak / 1000)
        out.growing.push_back({who(owner), at(owner, 1).bytes, owner.steps});
  std::stable_sort(out.growing.begin(), out.growing.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (place.reserved_most) {
    out.reserved = *place.reserved_most;
    out.idle = std::max<int64_t>(out.reserved - place.peak, 0);
  }
  return out;
}

}  // namespace tacho::analysis
