// Words of commands in flight (kept_arguments.h).
#include "capture/source/opencl/objects/kept_arguments.h"

#include <cstring>

#include "capture/room/pages.h"
#include "capture/source/opencl/core.h"

namespace tacho::capture::opencl {
namespace {

struct KeptArguments {
  uint32_t next;  // of the free ones, + 1
  event::ArgumentsOf of;
  uint32_t value, count;
  uint64_t words[event::kMostKernelArguments * sizeof(event::KernelArgument) / sizeof(uint64_t)];
};
constexpr uint32_t kMostKept = UINT16_MAX;
// Under g_wiped->chunks.
constinit KeptArguments* g_kept = nullptr;
constinit uint32_t g_kept_used = 0, g_kept_free = 0;

}  // namespace

uint16_t keep_arguments(event::ArgumentsOf of, uint32_t value, const void* words, uint32_t count) {
  const Guard guard(g_wiped->chunks);
  if (g_kept == nullptr) g_kept = static_cast<KeptArguments*>(map_pages(kMostKept * sizeof(KeptArguments)));
  if (g_kept == nullptr || count > sizeof KeptArguments::words / sizeof(uint64_t)) return 0;
  uint32_t number = g_kept_free;
  if (number != 0)
    g_kept_free = g_kept[number - 1].next;
  else if (g_kept_used < kMostKept)
    number = ++g_kept_used;
  else
    return 0;
  KeptArguments& kept = g_kept[number - 1];
  kept.of = of;
  kept.value = value;
  kept.count = count;
  memcpy(kept.words, words, count * sizeof(uint64_t));
  return static_cast<uint16_t>(number);
}

void write_kept_arguments(uint16_t number, uint64_t correlation) {
  KeptArguments& kept = g_kept[number - 1];
  write_arguments(kept.of, kept.value, correlation, kept.words, kept.count);
  const Guard guard(g_wiped->chunks);
  kept.next = g_kept_free;
  g_kept_free = number;
}

}  // namespace tacho::capture::opencl
