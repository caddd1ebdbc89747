// The program's own filters of system calls (seccomp): prctl() and syscall() are looked at on their way to libc, and a
// filter's program is asked about every call that libtacho.so may make, before it is in force (tape/permitted.h).
// Strict mode also forbids to read the time stamp counter: recording ends there.
#include <dlfcn.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "capture/source/sampler/own_signal.h"
#include "capture/source/sampler/sampler.h"
#include "tape/permitted.h"
#include "tape/writer.h"

#define TACHO_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace tacho;

// One instruction of a filter's program. False: seccomp has no such instruction.

bool load(const sock_filter& step, const seccomp_data& data, const uint32_t (&memory)[BPF_MEMWORDS], uint32_t& to) {
  const uint32_t k = step.k;
  switch (BPF_MODE(step.code)) {
    case BPF_ABS:
      if (BPF_CLASS(step.code) != BPF_LD || k > sizeof data - 4 || k % 4 != 0) return false;
      memcpy(&to, reinterpret_cast<const char*>(&data) + k, sizeof to);
      return true;
    case BPF_IMM:
      to = k;
      return true;
    case BPF_LEN:
      to = sizeof data;
      return true;
    case BPF_MEM:
      if (k >= BPF_MEMWORDS) return false;
      to = memory[k];
      return true;
    default:
      return false;
  }
}

bool calculate(uint16_t code, uint32_t& a, uint32_t operand) {
  switch (BPF_OP(code)) {
    case BPF_ADD:
      a += operand;
      return true;
    case BPF_SUB:
      a -= operand;
      return true;
    case BPF_MUL:
      a *= operand;
      return true;
    case BPF_DIV:
      if (operand == 0) return false;
      a /= operand;
      return true;
    case BPF_OR:
      a |= operand;
      return true;
    case BPF_AND:
      a &= operand;
      return true;
    case BPF_XOR:
      a ^= operand;
      return true;
    case BPF_LSH:
      a = operand < 32 ? a << operand : 0;
      return true;
    case BPF_RSH:
      a = operand < 32 ? a >> operand : 0;
      return true;
    case BPF_NEG:
      a = 0 - a;
      return true;
    default:
      return false;
  }
}

// `skipped`: instructions to skip.
bool jump(const sock_filter& step, uint32_t a, uint32_t operand, uint32_t& skipped) {
  bool taken = false;
  switch (BPF_OP(step.code)) {
    case BPF_JA:
      skipped = step.k;
      return true;
    case BPF_JEQ:
      taken = a == operand;
      break;
    case BPF_JGT:
      taken = a > operand;
      break;
    case BPF_JGE:
      taken = a >= operand;
      break;
    case BPF_JSET:
      taken = (a & operand) != 0;
      break;
    default:
      return false;
  }
  skipped = taken ? step.jt : step.jf;
  return true;
}

// The filter's answer to one call; SECCOMP_RET_KILL_PROCESS for a program that this interpreter does not understand.
uint32_t ask(const sock_fprog& program, const seccomp_data& data) {
  uint32_t a = 0, x = 0, memory[BPF_MEMWORDS] = {};
  for (uint32_t at = 0; at < program.len; ++at) {
    const sock_filter& step = program.filter[at];
    const uint32_t operand = BPF_SRC(step.code) == BPF_X ? x : step.k;
    uint32_t skipped = 0;
    bool known = true;
    switch (BPF_CLASS(step.code)) {
      case BPF_LD:
        known = load(step, data, memory, a);
        break;
      case BPF_LDX:
        known = load(step, data, memory, x);
        break;
      case BPF_ST:
      case BPF_STX:
        known = step.k < BPF_MEMWORDS;
        if (known) memory[step.k] = BPF_CLASS(step.code) == BPF_ST ? a : x;
        break;
      case BPF_ALU:
        known = calculate(step.code, a, operand);
        break;
      case BPF_JMP:
        known = jump(step, a, operand, skipped);
        at += skipped;
        break;
      case BPF_RET:
        return BPF_RVAL(step.code) == BPF_A ? a : step.k;
      default:  // BPF_MISC
        known = BPF_MISCOP(step.code) == BPF_TAX || BPF_MISCOP(step.code) == BPF_TXA;
        (BPF_MISCOP(step.code) == BPF_TAX ? x : a) = BPF_MISCOP(step.code) == BPF_TAX ? a : x;
    }
    if (!known) break;
  }
  return SECCOMP_RET_KILL_PROCESS;
}

struct Use {
  int number;
  uint32_t call;
};
constexpr Use kUses[] = {
    {SYS_futex, tape::kCallFutex},         {SYS_gettid, tape::kCallGettid},
    {SYS_mmap, tape::kCallMemory},         {SYS_munmap, tape::kCallMemory},
    {SYS_openat, tape::kCallRegister},     {SYS_read, tape::kCallRegister},
    {SYS_close, tape::kCallRegister},      {SYS_readlink, tape::kCallRegister},
    {SYS_uname, tape::kCallRegister},      {SYS_getppid, tape::kCallRegister},
    {SYS_getpid, tape::kCallRegister},     {SYS_newfstatat, tape::kCallRegister},
    {SYS_gettid, tape::kCallRegister},     {SYS_clock_gettime, tape::kCallRegister},
    {SYS_prctl, tape::kCallName},          {SYS_sched_yield, tape::kCallYield},
    {SYS_rt_sigreturn, tape::kCallSample}, {SYS_rt_sigprocmask, tape::kCallSample},
    {SYS_timer_create, tape::kCallSample}, {SYS_timer_settime, tape::kCallSample},
    {SYS_timer_delete, tape::kCallSample}, {SYS_process_vm_readv, tape::kCallSample},
    {SYS_getpid, tape::kCallSample},       {SYS_gettid, tape::kCallSample},
    {SYS_openat, tape::kCallSample},       {SYS_getdents64, tape::kCallSample},
    {SYS_close, tape::kCallSample},        {SYS_mmap, tape::kCallSample},
    {SYS_munmap, tape::kCallSample},       {SYS_clock_gettime, tape::kCallSample},
    {SYS_rt_sigaction, tape::kCallSample},
};

uint32_t forbidden_by(const sock_fprog& program) {
  uint32_t forbidden = 0;
  for (const Use& use : kUses) {
    seccomp_data data{};
    data.nr = use.number;
    data.arch = AUDIT_ARCH_X86_64;
    if (use.number == SYS_futex) data.args[1] = 1;  // FUTEX_WAKE
    const uint32_t answer = ask(program, data) & SECCOMP_RET_ACTION_FULL;
    if (answer != SECCOMP_RET_ALLOW && answer != SECCOMP_RET_LOG) forbidden |= use.call;
  }
  return forbidden;
}

void before_filter(const sock_fprog* program) {
  if (program == nullptr || program->filter == nullptr) return;
  if (!tape::attach()) return;  // not later, under the filter
  const uint32_t fresh = forbidden_by(*program) & ~tape::g_forbidden_calls.load(std::memory_order_relaxed);
  if (fresh == 0) return;
  if ((fresh & tape::kCallSample) != 0 && capture::sampler::own_signal() != 0) {
    capture::sampler::stop();
    tape::note(event::NoteSeverity::kWarning, "the program installed a filter of system calls (seccomp) that sampling "
                                              "needs: its call stacks end there");
  }
  if ((fresh & (tape::kCallMemory | tape::kCallRegister)) != 0)
    tape::note(event::NoteSeverity::kWarning,
               "the program installed a filter of system calls (seccomp): records that need new memory, and those of "
               "child processes, are dropped and counted from then on");
  tape::g_forbidden_calls.fetch_or(fresh, std::memory_order_relaxed);
}

// Of this thread alone.
void before_strict_mode() {
  if (!tape::attach()) return;
  tape::note(event::NoteSeverity::kWarning,
             "a thread of the program entered seccomp's strict mode, which forbids to read the time: nothing of that "
             "thread is recorded from there on");
  capture::sampler::end_thread();
  tape::flush_thread();
  tape::t_state.hidden = tape::kHiddenForGood;
}

using Prctl = int(int, unsigned long, unsigned long, unsigned long, unsigned long);

}  // namespace

TACHO_EXPORT int prctl(int option, ...) noexcept {
  unsigned long words[4];
  va_list list;
  va_start(list, option);
  for (unsigned long& word : words) word = va_arg(list, unsigned long);
  va_end(list);
  if (option == PR_SET_SECCOMP && words[0] == SECCOMP_MODE_STRICT) before_strict_mode();
  if (option == PR_SET_SECCOMP && words[0] == SECCOMP_MODE_FILTER)
    before_filter(reinterpret_cast<const sock_fprog*>(words[1]));
  static constinit std::atomic<void*> slot{nullptr};
  void* next = slot.load(std::memory_order_relaxed);
  if (next == nullptr) {
    next = dlsym(RTLD_NEXT, "prctl");
    slot.store(next, std::memory_order_relaxed);
  }
  return reinterpret_cast<Prctl*>(next)(option, words[0], words[1], words[2], words[3]);
}

#if defined(__x86_64__)
// libc's syscall(). Its arguments are unknown, so it is passed on as it is, stack and all. `before_system_call` looks
// at the arguments of the two calls that install filters.
extern "C" __attribute__((visibility("hidden"))) void* tacho_next_syscall;
void* tacho_next_syscall = nullptr;

extern "C" __attribute__((visibility("hidden"), used)) void tacho_before_syscall(long number, unsigned long first,
                                                                                 unsigned long second,
                                                                                 unsigned long third) {
  if (tacho_next_syscall == nullptr) tacho_next_syscall = dlsym(RTLD_NEXT, "syscall");
  if (number == SYS_seccomp && first == SECCOMP_SET_MODE_STRICT) before_strict_mode();
  if (number == SYS_seccomp && first == SECCOMP_SET_MODE_FILTER)
    before_filter(reinterpret_cast<const sock_fprog*>(third));
  if (number == SYS_prctl && first == PR_SET_SECCOMP && second == SECCOMP_MODE_STRICT) before_strict_mode();
  if (number == SYS_prctl && first == PR_SET_SECCOMP && second == SECCOMP_MODE_FILTER)
    before_filter(reinterpret_cast<const sock_fprog*>(third));
}

asm(R"(
  .text
  .globl syscall
  .type syscall, @function
syscall:
  .cfi_startproc
  endbr64
  cmpl $317, %edi
  je 1f
  cmpl $157, %edi
  je 1f
  movq tacho_next_syscall(%rip), %rax
  testq %rax, %rax
  je 1f
  jmp *%rax
1:
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  pushq %rdx
  .cfi_adjust_cfa_offset 8
  pushq %rcx
  .cfi_adjust_cfa_offset 8
  pushq %r8
  .cfi_adjust_cfa_offset 8
  pushq %r9
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call tacho_before_syscall
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %r9
  .cfi_adjust_cfa_offset -8
  popq %r8
  .cfi_adjust_cfa_offset -8
  popq %rcx
  .cfi_adjust_cfa_offset -8
  popq %rdx
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  jmp *tacho_next_syscall(%rip)
  .cfi_endproc
  .size syscall, .-syscall
)");
#endif
