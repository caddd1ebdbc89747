// dlsym, by which programs get functions of a driver that they load themselves: for those that are watched they get
// ours.
#include <dlfcn.h>
#include <string.h>

#include <atomic>

#include "capture/plugin/watch/amd/hip.h"
#include "capture/plugin/watch/cuda.h"
#include "capture/plugin/watch/hooks.h"
#include "capture/plugin/watch/markers/roctx.h"

namespace tacho::capture::watch {
namespace {

using Dlsym = void*(void*, const char*);

// libc's.
Dlsym* libc_dlsym() {
  static constinit std::atomic<Dlsym*> kept{nullptr};
  Dlsym* found = kept.load(std::memory_order_relaxed);
  if (found == nullptr) {
    for (const char* const version : {"GLIBC_2.34", "GLIBC_2.2.5"})
      if (found == nullptr) found = reinterpret_cast<Dlsym*>(dlvsym(RTLD_NEXT, "dlsym", version));
    kept.store(found, std::memory_order_relaxed);
  }
  return found;
}

// The one that the program would call without us: libc's, or that of another library that stands in for functions.
Dlsym* next_dlsym() {
  static constinit std::atomic<Dlsym*> kept{nullptr};
  Dlsym* found = kept.load(std::memory_order_relaxed);
  if (found == nullptr) {
    found = reinterpret_cast<Dlsym*>(libc_dlsym()(RTLD_NEXT, "dlsym"));
    if (found == nullptr) found = libc_dlsym();
    kept.store(found, std::memory_order_relaxed);
  }
  return found;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__x86_64__)

// Whether the library with this code stands in for the function, too, behind ours: what it calls has been counted by
// then, and would lead to it once more.
bool stands_in_behind(const void* code, const char* name) {
  Dl_info caller{}, its{};
  if (dladdr(code, &caller) == 0 || caller.dli_fname == nullptr) return false;
  const void* const first = libc_dlsym()(RTLD_DEFAULT, name);
  if (first == nullptr || !is_own(first)) return false;
  void* const library = dlopen(caller.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  bool stands_in = false;
  for (const char* const symbol : {name, "dlsym"}) {
    const void* const found = libc_dlsym()(library, symbol);
    stands_in = stands_in || (found != nullptr && dladdr(found, &its) != 0 && its.dli_fbase == caller.dli_fbase);
  }
  dlclose(library);
  return stands_in;
}

bool is_of_hip(const char* name) {
  return strncmp(name, "hip", 3) == 0 || strncmp(name, "__hip", 5) == 0;
}
bool is_of_roctx(const char* name) {
  return strncmp(name, "roctx", 5) == 0;
}

void* replaced_dlsym(void* handle, const char* name) {
  void* const found = next_dlsym()(handle, name);
  if (found == nullptr) return nullptr;
  if (is_of_hip(name)) return hooked_hip_symbol(name, found);
  if (is_of_roctx(name)) return hooked_roctx_symbol(name, found);
  return stands_in_behind(__builtin_return_address(0), name) ? found : hooked_driver_symbol(name, found);
}

// dlsym's result depends on its caller. So our dlsym below tail-jumps to the function returned here; where the caller
// decides, the program gets what it would get without us.
extern "C" __attribute__((visibility("hidden"), used)) Dlsym* tacho_watch_dlsym_leads_to(void* handle,
                                                                                         const char* name) {
  const bool by_caller = handle == RTLD_NEXT || handle == RTLD_DEFAULT;
  const bool watched = g_watched.load(std::memory_order_relaxed) && !by_caller && name != nullptr;
  return watched && (strncmp(name, "cu", 2) == 0 || is_of_hip(name) || is_of_roctx(name)) ? replaced_dlsym
                                                                                          : next_dlsym();
}

asm(R"(
  .text
  .globl dlsym
  .type dlsym, @function
  .hidden tacho_watch_dlsym
  .globl tacho_watch_dlsym
dlsym:
tacho_watch_dlsym:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call tacho_watch_dlsym_leads_to
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  jmp *%rax
  .cfi_endproc
  .size dlsym, .-dlsym
)");

extern "C" __attribute__((visibility("hidden"))) void* tacho_watch_dlsym(void* handle, const char* name);
void* own_dlsym() {
  return reinterpret_cast<void*>(&tacho_watch_dlsym);
}

#else

void* own_dlsym() {
  return nullptr;
}

#endif

}  // namespace

bool is_own(const void* function) {
  Dl_info own{}, other{};
  return dladdr(reinterpret_cast<const void*>(&is_own), &own) != 0 && dladdr(function, &other) != 0 &&
         own.dli_fbase == other.dli_fbase;
}

SlotHook dlsym_hook() {
  return {own_dlsym() != nullptr ? reinterpret_cast<void*>(next_dlsym()) : nullptr, own_dlsym(), "dlsym"};
}

void* real_dlsym(void* handle, const char* symbol) {
  return libc_dlsym()(handle, symbol);
}

}  // namespace tacho::capture::watch
