// libtacho-mpi.so: records the calls of MPI in a process that uses it. It exports no function of MPI's. It writes its
// own addresses into the tables by which loaded objects call MPI (their relocations), but only where MPI's addresses
// are or would be resolved: a weak MPI_Init that is undefined stays so. A Fortran program calls its library's
// functions, which call MPI's C functions, mostly under their PMPI_ names. The calls inside libmpi_mpifh.so,
// libmpichfort.so and their like are bound too, so the C wrappers record every spelling of a Fortran symbol and all of
// mpif.h, mpi and mpi_f08.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/plugin/mpi/communicators.h"
#include "capture/plugin/mpi/library.h"
#include "capture/plugin/mpi/requests.h"
#include "capture/plugin/mpi/roles.h"
#include "capture/plugin/mpi/wrappers.h"
#include "capture/room/loaded.h"
#include "capture/room/slots.h"
#include "event/mpi_host.h"

namespace tacho::capture::mpi {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kJumpSlot = R_X86_64_JUMP_SLOT, kGlobal = R_X86_64_GLOB_DAT, kAddress = R_X86_64_64;
#elif defined(__aarch64__)
constexpr uint32_t kJumpSlot = R_AARCH64_JUMP_SLOT, kGlobal = R_AARCH64_GLOB_DAT, kAddress = R_AARCH64_ABS64;
#endif

// Numbers of functions by a hash of their names.
constexpr size_t kNames = 1024;
constinit uint16_t g_names[kNames] = {};
constinit uintptr_t g_core = 0;  // where the library that has PMPI_Init is loaded: its own calls stay as they are
constinit uintptr_t g_self = 0;

size_t hash_of(const char* name) {
  size_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash % kNames;
}
size_t number_of(const char* name) {
  for (size_t at = hash_of(name); g_names[at] != 0; at = (at + 1) % kNames)
    if (strcmp(kCalls[g_names[at]].name, name) == 0) return g_names[at];
  return 0;
}

// An object's tables.
struct Object {
  uintptr_t base, relro_begin, relro_end, begin, end;
  const ElfW(Sym) * symbols;
  const char* names;
  bool of_mpi;  // a library of MPI's beside the one with its functions

  void write(void** slot, void* value) const {
    const auto at = reinterpret_cast<uintptr_t>(slot);
    const bool closed = at >= relro_begin && at < relro_end;
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    void* const from = reinterpret_cast<void*>(at & ~(page - 1));
    if (closed && mprotect(from, page, PROT_READ | PROT_WRITE) != 0) return;
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
    if (closed) mprotect(from, page, PROT_READ);
  }

  void bind(const ElfW(Rela) * at, size_t bytes) const {
    const ElfW(Rela)* const last = at + bytes / sizeof *at;
    for (; at != last; ++at) {
      const auto type = static_cast<uint32_t>(ELF64_R_TYPE(at->r_info));
      const auto symbol = ELF64_R_SYM(at->r_info);
      if (symbol == 0 || (type != kJumpSlot && type != kGlobal && type != kAddress)) continue;
      const char* name = names + symbols[symbol].st_name;
      if (of_mpi && name[0] == 'P') ++name;
      if (name[0] != 'M' || name[1] != 'P' || name[2] != 'I' || name[3] != '_') continue;
      const size_t number = number_of(name);
      if (number == 0 || real_of(number) == nullptr) continue;
      auto** const slot = reinterpret_cast<void**>(base + at->r_offset);
      const auto there = reinterpret_cast<uintptr_t>(*slot);
      // Not yet bound: it leads into the object's own table of jumps.
      const bool pending = type == kJumpSlot && there >= begin && there < end;
      if (pending || *slot == real_of(number)) write(slot, wrapper_of(number));
    }
  }
};

const char* file_name(const char* path) {
  const char* const slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

int bind_object(dl_phdr_info* info, size_t, void*) {
  Object object{};
  object.base = info->dlpi_addr;
  object.begin = UINTPTR_MAX;
  const ElfW(Dyn)* dynamic = nullptr;
  for (size_t i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const uintptr_t at = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(at);
    if (part.p_type == PT_GNU_RELRO) {
      object.relro_begin = at;
      object.relro_end = at + part.p_memsz;
    }
    if (part.p_type == PT_LOAD) {
      object.begin = at < object.begin ? at : object.begin;
      object.end = at + part.p_memsz > object.end ? at + part.p_memsz : object.end;
    }
  }
  const char* const name = file_name(info->dlpi_name != nullptr ? info->dlpi_name : "");
  const auto has = [&](uintptr_t address) { return address >= object.begin && address < object.end; };
  if (dynamic == nullptr || has(g_core) || has(g_self) || strncmp(name, "mca_", 4) == 0) return 0;
  object.of_mpi = strncmp(name, "libmpi", 6) == 0;
  const ElfW(Rela)* jumps = nullptr, *others = nullptr;
  size_t jump_bytes = 0, other_bytes = 0;
  bool rela = true;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    // glibc has made addresses of these, but not in the kernel's own object.
    const uintptr_t at = dynamic->d_un.d_ptr < object.base ? object.base + dynamic->d_un.d_ptr : dynamic->d_un.d_ptr;
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        object.symbols = reinterpret_cast<const ElfW(Sym)*>(at);
        break;
      case DT_STRTAB:
        object.names = reinterpret_cast<const char*>(at);
        break;
      case DT_JMPREL:
        jumps = reinterpret_cast<const ElfW(Rela)*>(at);
        break;
      case DT_PLTRELSZ:
        jump_bytes = dynamic->d_un.d_val;
        break;
      case DT_RELA:
        others = reinterpret_cast<const ElfW(Rela)*>(at);
        break;
      case DT_RELASZ:
        other_bytes = dynamic->d_un.d_val;
        break;
      case DT_PLTREL:
        rela = dynamic->d_un.d_val == DT_RELA;
        break;
      default:
        break;
    }
  }
  if (object.symbols == nullptr || object.names == nullptr || !rela) return 0;
  if (jumps != nullptr) object.bind(jumps, jump_bytes);
  if (others != nullptr) object.bind(others, other_bytes);
  return 0;
}

void bind_all() {
  dl_iterate_phdr(bind_object, nullptr);
}

void* symbol(void* found, const char* name) {
  const size_t number = number_of(name);
  return number != 0 && real_of(number) == found ? wrapper_of(number) : found;
}

// A program that runs already has bound its calls, or kept what it has looked up: words of its libraries, which hold
// MPI's functions (capture/room/slots.h).
constexpr size_t kMostHooks = kCallCount;
static_assert(kMostHooks <= kMostSlotHooks);
constinit SlotHook g_hooks[kMostHooks] = {};
constinit size_t g_hook_count = 0;

// MPI's own parts call each other without the program's doing.
bool keeps_its_words(const dl_phdr_info& object, const char* name) {
  return strncmp(name, "mca_", 4) == 0 || exported_by(object, "PMPI_Init") != nullptr;
}
// The libraries of Fortran's bindings call MPI's C functions under their second names.
const char* known_as(const char* name, const char* symbol) {
  return strncmp(name, "libmpi", 6) == 0 && strncmp(symbol, "PMPI_", 5) == 0 ? symbol + 1 : nullptr;
}
constexpr SlotRules kRules = {keeps_its_words, known_as};

bool lead() {
  if (g_hook_count == 0)
    for (size_t number = 1; number < kCallCount; ++number)
      if (real_of(number) != nullptr)
        g_hooks[g_hook_count++] = {real_of(number), wrapper_of(number), kCalls[number].name};
  return lead_slots(g_hooks, g_hook_count, kRules).looked;
}
void lead_all_back() {
  lead_back(g_hooks, g_hook_count, kRules);
}

void begin_recording() {
  forget_requests();
  forget_communicators();
  tell_library();
}

constexpr MpiLibrary kLibrary = {sizeof(MpiLibrary), bind_all, symbol, begin_recording, lead, lead_all_back};

}  // namespace
}  // namespace tacho::capture::mpi

extern "C" __attribute__((visibility("default"))) const tacho::capture::MpiLibrary* tacho_mpi_start(
    const tacho::capture::MpiHost* host, void* mpi) {
  using namespace tacho::capture::mpi;
  if (host->size != sizeof *host) return nullptr;
  g_host = host;
  g_self = reinterpret_cast<uintptr_t>(&kLibrary);
  g_core = reinterpret_cast<uintptr_t>(dlsym(mpi, "PMPI_Init"));
  if (!find_library(mpi)) {
    host->warn("the program's MPI lacks functions that MPI 3 has: its calls are not recorded");
    return nullptr;
  }
  if (!host->late) tell_library();
  for (size_t number = 1; number < kCallCount; ++number) {
    // The function that the program would call: MPI's, or that of another tool loaded before this one.
    void* real = dlsym(RTLD_DEFAULT, kCalls[number].name);
    if (real == nullptr) real = dlsym(mpi, kCalls[number].name);
    if (real == nullptr) continue;  // of a later MPI
    set_real(number, real);
    wrapper_of(number);
    size_t at = hash_of(kCalls[number].name);
    while (g_names[at] != 0) at = (at + 1) % kNames;
    g_names[at] = static_cast<uint16_t>(number);
  }
  return &kLibrary;
}
