// dlsym, by which programs get functions of a driver that they load themselves: for those that are watched they get
// ours.
#include <dlfcn.h>
#include <string.h>

#include <atomic>

#include "capture/plugin/watch/cuda.h"
#include "capture/plugin/watch/hooks.h"

namespace tacho::capture::watch {
namespace {

using Dlsym = void*(void*, const char*);
constinit std::atomic<Dlsym*> g_next{nullptr};

Dlsym* next_dlsym() {
  Dlsym* next = g_next.load(std::memory_order_relaxed);
  if (next == nullptr) {
    for (const char* const version : {"GLIBC_2.34", "GLIBC_2.2.5"})
      if (next == nullptr) next = reinterpret_cast<Dlsym*>(dlvsym(RTLD_NEXT, "dlsym", version));
    g_next.store(next, std::memory_order_relaxed);
  }
  return next;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__x86_64__)

void* replaced_dlsym(void* handle, const char* name) {
  void* const found = next_dlsym()(handle, name);
  return found != nullptr ? hooked_driver_symbol(name, found) : nullptr;
}

// dlsym's result depends on its caller. So our dlsym below tail-jumps to the function returned here; where the caller
// decides, the program gets what it would get without us.
extern "C" __attribute__((visibility("hidden"), used)) Dlsym* tacho_watch_dlsym_leads_to(void* handle,
                                                                                         const char* name) {
  const bool by_caller = handle == RTLD_NEXT || handle == RTLD_DEFAULT;
  return g_table == nullptr || by_caller || name == nullptr || strncmp(name, "cu", 2) != 0 ? next_dlsym()
                                                                                           : replaced_dlsym;
}

asm(R"(
  .text
  .globl dlsym
  .type dlsym, @function
dlsym:
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

#endif

}  // namespace

bool is_own(const void* function) {
  Dl_info own{}, other{};
  return dladdr(reinterpret_cast<const void*>(&is_own), &own) != 0 && dladdr(function, &other) != 0 &&
         own.dli_fbase == other.dli_fbase;
}

void* real_dlsym(void* handle, const char* symbol) {
  return next_dlsym()(handle, symbol);
}

}  // namespace tacho::capture::watch
