// Two functions of newer C libraries that the statically linked C++ runtime needs. Defining them here instead of taking
// them from libc.so.6 lets tacho start on glibc 2.34.
#include <link.h>
#include <sys/random.h>

#include <cstdint>

namespace {

// struct dl_find_object of glibc 2.35's <dlfcn.h>, on x86-64 and aarch64 (where it has no dlfo_eh_dbase).
struct FoundObject {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  void* link_map;
  void* eh_frame;  // PT_GNU_EH_FRAME
  unsigned long long reserved[7];
};

struct Search {
  uintptr_t address;
  FoundObject* found;
};

int look(dl_phdr_info* info, size_t, void* context) {
  auto* const search = static_cast<Search*>(context);
  const ElfW(Phdr)* frame = nullptr;
  uintptr_t low = UINTPTR_MAX, high = 0;
  bool inside = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type == PT_GNU_EH_FRAME) frame = &header;
    if (header.p_type != PT_LOAD) continue;
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr, end = begin + header.p_memsz;
    low = begin < low ? begin : low;
    high = end > high ? end : high;
    inside = inside || (search->address >= begin && search->address < end);
  }
  if (!inside || frame == nullptr) return 0;
  *search->found = {};
  search->found->map_start = reinterpret_cast<void*>(low);
  search->found->map_end = reinterpret_cast<void*>(high);
  search->found->eh_frame = reinterpret_cast<void*>(info->dlpi_addr + frame->p_vaddr);
  return 1;
}

}  // namespace

struct dl_find_object;

extern "C" {

/// Like glibc 2.35's: finds the unwind information for the code at `address`; 0, or -1 if there is none.
int _dl_find_object(void* address, dl_find_object* found) noexcept {
  Search search{reinterpret_cast<uintptr_t>(address), reinterpret_cast<FoundObject*>(found)};
  return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}

/// Like glibc 2.36's.
uint32_t arc4random() noexcept {
  uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
  }
  return number;
}

}  // extern "C"
