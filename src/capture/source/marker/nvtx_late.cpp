// Tables of NVTX 3 (nvtx_late.h). They are found by what they look like, so that stripped images have them, too: sizes
// of NVTX's two export tables, 64 pointers to functions, and tables whose entries point to these pointers.
//
//   word 0      state: 0 untouched, 1 being initialised, 2 done         (nvtxGlobals_v3 of NVTX's public header)
//        1, 2   16, function                                            the export table of callbacks
//        3 - 5  24, version, function                                   that of versions
//        6      15 pointers of CORE, 8 of CUDA, 14 of OpenCL, 6 of CUDA's runtime, 15 of CORE2, 6 of SYNC
//        70     0, addresses of CORE's pointers, 0                      then the same for the others
#include "capture/source/marker/nvtx_late.h"

#include <stdint.h>

#include "capture/room/slots.h"
#include "capture/source/marker/nvtx.h"

namespace tacho::capture::nvtx {
namespace {

constexpr size_t kFunctions = 6, kCoreCount = 15, kCore2At = kFunctions + 15 + 8 + 14 + 6, kTable = kFunctions + 64;
constexpr size_t kWords = kTable + kCoreCount + 2;
enum State : uint32_t { kUntouched = 0, kBegun = 1, kDone = 2 };

struct Found {
  void** words;
  uintptr_t image;
};
constexpr size_t kMostTables = 256;
constinit Found g_found[kMostTables] = {};
constinit size_t g_found_count = 0;

// What a pointer was before it led to tacho.
struct Changed {
  void** at;
  void* own;
};
constinit Changed g_changed[kMostTables * kHooks] = {};
constinit size_t g_changed_count = 0;

constexpr SlotRules kRules = {nullptr, nullptr};

uintptr_t number(const void* word) {
  return reinterpret_cast<uintptr_t>(word);
}

bool is_table(void** words) {
  if (number(words[1]) != 16 || number(words[3]) != 24 || number(words[4]) > 255 || number(words[0]) > kDone ||
      words[2] == nullptr || words[5] == nullptr)
    return false;
  void** const table = words + kTable;
  if (table[0] != nullptr || table[kCoreCount + 1] != nullptr) return false;
  for (size_t i = 0; i < kCoreCount; ++i)
    if (table[i + 1] != static_cast<void*>(words + kFunctions + i)) return false;
  return true;
}

uint32_t state_of(void** words) {
  return __atomic_load_n(reinterpret_cast<uint32_t*>(words), __ATOMIC_ACQUIRE);
}

void** slot_of(void** words, const Hook& hook) {
  return words + (hook.module == kCore ? kFunctions : kCore2At) + hook.number - 1;
}
void* function_of(const Hook& hook) {
  return reinterpret_cast<void*>(hook.function);
}
bool is_ours(const void* value, const Hook (&hooks)[kHooks]) {
  for (const Hook& hook : hooks)
    if (function_of(hook) == value) return true;
  return false;
}

Changed* changed(void** slot) {
  for (size_t i = 0; i < g_changed_count; ++i)
    if (g_changed[i].at == slot) return &g_changed[i];
  return nullptr;
}

bool remember(void** slot, void* own) {
  if (Changed* const known = changed(slot)) {
    known->own = own;
    return true;
  }
  if (g_changed_count == sizeof g_changed / sizeof *g_changed) return false;
  g_changed[g_changed_count++] = {slot, own};
  return true;
}

bool exchange(void** slot, void* from, void* to) {
  return __atomic_compare_exchange_n(slot, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void lead(void** words, const Hook (&hooks)[kHooks], LateTables& result) {
  const uint32_t state = state_of(words);
  if (state == kBegun) return;  // the next look
  if (state == kDone)
    for (const Hook& hook : hooks)
      if (const void* const there = *slot_of(words, hook); there != nullptr && !is_ours(there, hooks)) {
        ++result.of_others;
        return;
      }
  for (const Hook& hook : hooks) {
    void** const slot = slot_of(words, hook);
    void* const there = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    if (there != function_of(hook) && remember(slot, there)) exchange(slot, there, function_of(hook));
  }
  ++result.led;
}

// A table that has been initialised since has null where no tool was: NVTX's own first functions would call themselves.
void lead_back(void** words, const Hook (&hooks)[kHooks]) {
  for (const Hook& hook : hooks) {
    void** const slot = slot_of(words, hook);
    const Changed* const known = changed(slot);
    void* const own = known == nullptr || state_of(words) == kDone ? nullptr : known->own;
    if (exchange(slot, function_of(hook), own) && own != nullptr && state_of(words) == kDone)
      exchange(slot, own, nullptr);
  }
}

// Libraries may go at any time: tables are looked for anew and changed under the loader's lock.
template <typename Each>
bool over_tables(Each each) {
  g_found_count = 0;
  struct Pass {
    Each& each;
  } pass{each};
  return over_open_words(
      kRules,
      [](const dl_phdr_info& image, void** word, void** end, void* data) {
        // The second word tells most words from a table's.
        if (static_cast<size_t>(end - word) < kWords || number(word[1]) != 16 || !is_table(word)) return;
        if (g_found_count == kMostTables) return;
        g_found[g_found_count++] = {word, image.dlpi_addr};
        static_cast<Pass*>(data)->each(word);
      },
      &pass);
}

}  // namespace

LateTables lead_tables() {
  LateTables result;
  Hook hooks[kHooks];
  list_hooks(hooks);
  result.looked = over_tables([&](void** words) { lead(words, hooks, result); });
  return result;
}

void lead_tables_back() {
  Hook hooks[kHooks];
  list_hooks(hooks);
  over_tables([&](void** words) { lead_back(words, hooks); });
  g_changed_count = 0;
}

bool has_table(const dl_phdr_info& image) {
  for (size_t i = 0; i < g_found_count; ++i)
    if (g_found[i].image == image.dlpi_addr) return true;
  return false;
}

}  // namespace tacho::capture::nvtx
