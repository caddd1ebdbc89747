// Every collective leaves a mark of domain "NCCL", whose text uses torch.profiler's words so that analyses read both
// alike. The payload is the collective's number within the communicator. A thread's mark describes the launch before
// it.
#include <cstdio>
#include <string_view>

#include "capture/source/marker/marker.h"
#include "capture/source/nccl/told.h"
#include "event/records.h"
#include "tape/writer.h"

namespace tacho::capture::nccl {

void joined(uint64_t, int, int) {}

void called(const Told& told) {
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

}  // namespace tacho::capture::nccl
