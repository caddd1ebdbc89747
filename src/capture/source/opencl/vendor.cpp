// Runtimes and their looping slots (vendor.h).
#include "capture/source/opencl/vendor.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sys/uio.h>
#include <unistd.h>

namespace tacho::capture::opencl {
constinit CodeRange g_code_ranges[kMaxCodeRanges] = {};
constinit std::atomic<uint32_t> g_code_range_count{0};

namespace {

constexpr size_t kMaxVendors = 32;
constinit ClVendor g_vendors[kMaxVendors] = {};
constinit std::atomic<uint32_t> g_vendor_count{0};

ClVendor* known(const void* dispatch) {
  const uint32_t count = g_vendor_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i)
    if (g_vendors[i].dispatch == dispatch) return &g_vendors[i];
  return nullptr;
}

bool is_loader(const char* path) {
  const char* const slash = strrchr(path, '/');
  return strncmp(slash != nullptr ? slash + 1 : path, "libOpenCL.so", 12) == 0;
}

// The table, if the object's first word leads to one: a library that needs no loader may begin its objects otherwise.
bool read_table(const void* dispatch, cl_icd_dispatch& table) {
  const iovec to{&table, sizeof table}, from{const_cast<void*>(dispatch), sizeof table};
  if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == static_cast<ssize_t>(sizeof table)) return true;
  // Where that call is forbidden: a table that is a library's own data can be read.
  Dl_info at{};
  if (errno == EFAULT || dladdr(dispatch, &at) == 0) return false;
  memcpy(static_cast<void*>(&table), dispatch, sizeof table);
  return true;
}

// Which slots of the table lie in the loader or in us although the runtime's first function does not.
void find_loops(ClVendor& vendor, const cl_icd_dispatch* table) {
  Dl_info self{}, home{};
  dladdr(reinterpret_cast<void*>(&find_loops), &self);
  if (dladdr(reinterpret_cast<void*>(table->clGetPlatformInfo), &home) == 0 || home.dli_fname == nullptr) return;
  if (home.dli_fbase == self.dli_fbase || is_loader(home.dli_fname)) return;
  void* library = nullptr;
  const auto look = [&](uint16_t number, const char* name, void* slot) {
    Dl_info at{};
    if (slot == nullptr || dladdr(slot, &at) == 0 || at.dli_fbase == home.dli_fbase) return;
    if (at.dli_fbase != self.dli_fbase && (at.dli_fname == nullptr || !is_loader(at.dli_fname))) return;
    if (library == nullptr) library = dlopen(home.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    void* const own = library != nullptr ? dlsym(library, name) : nullptr;
    Dl_info own_at{};
    vendor.loops[number] = true;
    if (own != nullptr && dladdr(own, &own_at) != 0 && own_at.dli_fbase == home.dli_fbase) vendor.own[number] = own;
    g_detours.store(true, std::memory_order_release);
  };
#define TACHO_CL_FUNCTION(number, name, count, parameters) look(number, #name, reinterpret_cast<void*>(table->name));
#include "event/functions/functions_opencl.def"
  if (library != nullptr) dlclose(library);
}

}  // namespace

void add_code_range(const void* address) {
  struct Search {
    uint64_t address;
    CodeRange found;
  } search{reinterpret_cast<uint64_t>(address), {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        uint64_t low = UINT64_MAX, high = 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD) continue;
          low = part.p_vaddr < low ? part.p_vaddr : low;
          high = part.p_vaddr + part.p_memsz > high ? part.p_vaddr + part.p_memsz : high;
        }
        if (low >= high || wanted.address - (info->dlpi_addr + low) >= high - low) return 0;
        wanted.found = {info->dlpi_addr + low, high - low};
        return 1;
      },
      &search);
  if (search.found.size == 0) return;
  const Guard guard(g_wiped->definitions);
  const uint32_t count = g_code_range_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i)
    if (g_code_ranges[i].begin == search.found.begin) return;
  if (count == kMaxCodeRanges) return;
  g_code_ranges[count] = search.found;
  g_code_range_count.store(count + 1, std::memory_order_release);
}

ClVendor* vendor_of(cl_platform_id platform) {
  if (platform == nullptr) return nullptr;
  const void* const dispatch = *reinterpret_cast<const void* const*>(platform);
  if (dispatch == nullptr) return nullptr;
  if (ClVendor* const vendor = known(dispatch)) return vendor;
  cl_icd_dispatch table = {};
  const bool has_table = read_table(dispatch, table);
  if (has_table) add_code_range(reinterpret_cast<const void*>(table.clGetPlatformInfo));
  char name[128] = {};
  next<&cl_icd_dispatch::clGetPlatformInfo>(platform, CL_PLATFORM_NAME, sizeof name - 1, name, nullptr);
  const Guard guard(g_wiped->definitions);
  if (ClVendor* const vendor = known(dispatch)) return vendor;
  const uint32_t count = g_vendor_count.load(std::memory_order_relaxed);
  if (count == kMaxVendors) return nullptr;
  ClVendor& vendor = g_vendors[count];
  vendor.dispatch = dispatch;
  if (strstr(name, "Portable Computing Language") != nullptr) {
    vendor.runtime = ClRuntime::kPocl;
    vendor.clock = event::DeviceClock::kMonotonicRaw;
    vendor.clock_known = true;
    vendor.clock_error_ns = 200;  // of pairing the host's ticks with CLOCK_MONOTONIC_RAW
  } else if (strstr(name, "Oclgrind") != nullptr) {
    vendor.runtime = ClRuntime::kOclgrind;
    vendor.always_profiles = true;
    vendor.clock = event::DeviceClock::kRealtime;
    vendor.clock_known = true;
    vendor.clock_error_ns = 2000;  // its timestamps go in steps of a microsecond
  } else {
    vendor.clock = event::DeviceClock::kPaired;
    vendor.clock_error_ns = event::kUnknown32;
  }
  if (has_table) find_loops(vendor, &table);
  g_vendor_count.store(count + 1, std::memory_order_release);
  return &vendor;
}

ClVendor* vendor_of(cl_device_id device) {
  if (device == nullptr) return nullptr;
  if (ClVendor* const vendor = known(*reinterpret_cast<const void* const*>(device))) return vendor;
  cl_platform_id platform = nullptr;
  next<&cl_icd_dispatch::clGetDeviceInfo>(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, nullptr);
  return vendor_of(platform);
}

void* detour(uint16_t number, const void* object, void* refusal) {
  if (object == nullptr) return nullptr;
  const ClVendor* const vendor = known(*static_cast<const void* const*>(object));
  if (vendor == nullptr || !vendor->loops[number]) return nullptr;
  return vendor->own[number] != nullptr ? vendor->own[number] : refusal;
}

}  // namespace tacho::capture::opencl
