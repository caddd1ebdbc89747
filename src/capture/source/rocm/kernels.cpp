// Kernels of the AMD source (rocm.h): when the program freezes an executable, its kernels get numbers in the pool, with
// the facts from the loader and the kernel's descriptor. A hash table finds them by kernel object, which packets name.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <string_view>

#include "capture/kernel_filter.h"
#include "capture/source/rocm/rocm.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {
namespace {

namespace sig = hsa::signature;

struct Entry {
  std::atomic<uint64_t> object;  // 0 = free
  std::atomic<uint32_t> number;
  hsa::Symbol symbol;
  uint32_t shared_static;
  bool wanted;
  std::atomic<bool> told;  // if not wanted: a launch was
};
constexpr uint32_t kEntries = 1 << 17;
constinit std::atomic<Entry*> g_entries{nullptr};
constinit std::atomic<uint32_t> g_kernels_lock{0};

uint32_t hash(uint64_t object) {
  return static_cast<uint32_t>(object * 0x9e3779b97f4a7c15ull >> 40) % kEntries;
}

// The entry of `object`, or the free one where it belongs; nullptr when the table is full.
Entry* find(uint64_t object) {
  Entry* const entries = g_entries.load(std::memory_order_acquire);
  if (entries == nullptr) return nullptr;
  for (uint32_t tried = 0, at = hash(object); tried < 64; ++tried, at = (at + 1) % kEntries) {
    const uint64_t here = entries[at].object.load(std::memory_order_acquire);
    if (here == object || here == 0) return &entries[at];
  }
  return nullptr;
}

// Registers of the kernel, vector, accumulation and scalar ones; they stay as they are if the descriptor does not say.
void read_registers(const HsaDevice& device, uint64_t object, event::KernelRecord& record) {
  const void* host = nullptr;
  if (g_runtime.loader.query_host_address == nullptr || device.vgpr_granule == 0 ||
      g_runtime.loader.query_host_address(reinterpret_cast<const void*>(object), &host) != hsa::kSuccess ||
      host == nullptr)
    return;
  hsa::KernelDescriptor descriptor;
  memcpy(&descriptor, host, sizeof descriptor);
  const uint32_t vector = ((descriptor.resource1 & 0x3f) + 1) * device.vgpr_granule;
  record.registers = vector;
  record.accum_registers = 0;
  if (device.unified_registers) {
    const uint32_t offset = ((descriptor.resource3 & 0x3f) + 1) * 4;  // where the accumulation registers begin
    if (offset < vector) {
      record.registers = offset;
      record.accum_registers = vector - offset;
    }
  }
  record.scalar_registers = ((descriptor.resource1 >> 6 & 0xf) / 2 + 1) * 16;
}

// `only_new`: of code that was loaded before tacho came, unless the kernel is known. The runtime's loader is locked
// then, and its functions that lead to the descriptor would wait for ever.
void define(const HsaDevice& device, hsa::Symbol symbol, bool only_new) {
  const auto info = [&](uint32_t what, void* into) {
    return call<sig::SymbolInfo>(g_runtime.core.hsa_executable_symbol_get_info, symbol, what, into) == hsa::kSuccess;
  };
  uint32_t type = 0, length = 0, group = 0, scratch = 0;
  uint64_t object = 0;
  if (!info(hsa::kSymbolType, &type) || type != hsa::kSymbolIsKernel || !info(hsa::kSymbolNameLength, &length) ||
      !info(hsa::kSymbolKernelObject, &object) || object == 0 || length > tape::kLongestText)
    return;
  if (only_new && known_kernel(object)) return;
  // Only here is memory taken from the program's heap: names may be long, and loading code is not a hot path.
  auto* const text = static_cast<char*>(malloc(length + 1));
  if (text == nullptr) return;
  if (info(hsa::kSymbolName, text)) {
    std::string_view name(text, length);
    if (name.ends_with(".kd")) name.remove_suffix(3);
    info(hsa::kSymbolGroupSegment, &group);
    info(hsa::kSymbolPrivateSegment, &scratch);
    event::KernelRecord record{};
    record.header = {event::RecordKind::kKernel, 0, sizeof record, tape::next_kernel()};
    record.name = tape::intern(name);
    record.kind = static_cast<uint32_t>(event::DispatchKind::kKernel);
    record.shared_static = group;
    record.private_bytes = scratch;
    record.registers = record.accum_registers = record.scalar_registers = event::kUnknown32;
    if (!only_new) read_registers(device, object, record);
    tape::define(&record.header);
    if (Entry* const entry = find(object)) {
      entry->symbol = symbol;
      entry->shared_static = group;
      entry->wanted = kernel_included(name);
      entry->number.store(record.header.value, std::memory_order_release);
      entry->object.store(object, std::memory_order_release);
    }
  }
  free(text);
}

hsa::Status see_symbol(hsa::Executable, hsa::Agent agent, hsa::Symbol symbol, void* only_new) {
  if (const HsaDevice* const device = device_of(agent)) define(*device, symbol, only_new != nullptr);
  return hsa::kSuccess;
}

// With g_kernels_lock held.
bool have_entries() {
  if (g_entries.load(std::memory_order_relaxed) != nullptr) return true;
  void* const memory = mmap(nullptr, kEntries * sizeof(Entry), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  g_entries.store(static_cast<Entry*>(memory), std::memory_order_release);
  return true;
}

// `only_new`: not nullptr leaves out kernels that are known.
void define_kernels_of(hsa::Executable executable, void* only_new) {
  for (uint32_t at = 0; at < device_count(); ++at)
    call<sig::IterateSymbols>(g_runtime.core.hsa_executable_iterate_agent_symbols, executable, device_at(at).agent,
                              see_symbol, only_new);
}

}  // namespace

bool known_kernel(uint64_t object) {
  const Entry* const entry = find(object);
  return object != 0 && entry != nullptr && entry->object.load(std::memory_order_acquire) == object;
}

Kernel kernel_at(uint64_t object) {
  const Entry* const entry = find(object);
  if (entry == nullptr || entry->object.load(std::memory_order_acquire) != object) return {0, 0, true};
  return {entry->number.load(std::memory_order_acquire), entry->shared_static, entry->wanted};
}

void leave_out(uint64_t object) {
  tape::loss(event::Table::kDispatch, event::LossReason::kFiltered, 1);
  Entry* const entry = find(object);
  if (entry == nullptr || entry->told.exchange(true, std::memory_order_relaxed)) return;
  char name[4096];
  kernel_name(object, name, sizeof name);
  tell_left_out(name);
}

void kernel_name(uint64_t object, char* out, size_t room) {
  const Entry* const entry = find(object);
  uint32_t length = 0;
  out[0] = '\0';
  if (entry == nullptr || entry->object.load(std::memory_order_acquire) != object ||
      call<sig::SymbolInfo>(g_runtime.core.hsa_executable_symbol_get_info, entry->symbol, hsa::kSymbolNameLength,
                            static_cast<void*>(&length)) != hsa::kSuccess ||
      length >= room ||
      call<sig::SymbolInfo>(g_runtime.core.hsa_executable_symbol_get_info, entry->symbol, hsa::kSymbolName,
                            static_cast<void*>(out)) != hsa::kSuccess)
    return;
  out[length] = '\0';
  if (length > 3 && strcmp(out + length - 3, ".kd") == 0) out[length - 3] = '\0';
}

hsa::Status freeze(hsa::Executable executable, const char* options) {
  const hsa::Status status = call<sig::Freeze>(g_runtime.core.hsa_executable_freeze, executable, options);
  if (status != hsa::kSuccess || !active()) return status;
  find_devices();
  const Guard lock(g_kernels_lock);
  if (have_entries()) define_kernels_of(executable, nullptr);
  return status;
}

bool learn_loaded_kernels() {
  if (g_runtime.loader.iterate_executables == nullptr) return false;
  const Guard lock(g_kernels_lock);
  if (!have_entries()) return false;
  static constexpr auto see_executable = [](hsa::Executable executable, void*) {
    static char s_only_new = 0;
    define_kernels_of(executable, &s_only_new);
    return hsa::kSuccess;
  };
  return g_runtime.loader.iterate_executables(see_executable, nullptr) == hsa::kSuccess;
}

void forget_kernels() {
  const Guard lock(g_kernels_lock);
  if (Entry* const entries = g_entries.load(std::memory_order_relaxed))
    madvise(static_cast<void*>(entries), kEntries * sizeof(Entry), MADV_DONTNEED);
}

}  // namespace tacho::capture::rocm
