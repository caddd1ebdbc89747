// Runs on stacks that a sampler does not expect: stacks WAY. Burns a second of CPU time there and prints "done".
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static void burn(double seconds) {
  struct timespec now;
  double end = -1;
  do {
    for (volatile int i = 0; i < 20000; ++i) {
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    const double time = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    if (end < 0) end = time + seconds;
    if (time >= end) break;
  } while (1);
}

// A page without access above the frame that burns, in the stack that is in use.
static void __attribute__((noinline)) with_hole(void) {
  const long page = sysconf(_SC_PAGESIZE);
  char room[5 * 4096];
  memset(room, 1, sizeof room);
  char* const hole = (char*)(((uintptr_t)room + 2 * (uintptr_t)page) & ~((uintptr_t)page - 1));
  mprotect(hole, (size_t)page, PROT_NONE);
  burn(0.4);
  mprotect(hole, (size_t)page, PROT_READ | PROT_WRITE);
  if (room[0] == 2) puts("never");
}

static void* thread_with_hole(void* argument) {
  with_hole();
  return argument;
}

static void on_signal(int number) {
  (void)number;
  burn(0.4);
}

static void* tiny_alternate(void* argument) {
  static _Thread_local char memory[2048];
  const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
  if (sigaltstack(&stack, NULL) != 0) exit(3);
  burn(0.4);
  return argument;
}

static char big[65536];
static ptrdiff_t taken;
static void on_measure(int number) {
  taken = big + sizeof big - (char*)__builtin_frame_address(0);
  (void)number;
}

// The bytes that a handler takes of an alternate stack, with the frame that the kernel puts there.
static ptrdiff_t handler_bytes(void) {
  const stack_t stack = {.ss_sp = big, .ss_size = sizeof big};
  sigaltstack(&stack, NULL);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_measure;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR2, &action, NULL);
  raise(SIGUSR2);
  return taken;
}

static ucontext_t back, there;
static void coroutine(void) {
  burn(0.4);
}

int main(int argc, char** argv) {
  const char* const way = argc > 1 ? argv[1] : "";
  if (!strcmp(way, "hole")) with_hole();
  if (!strcmp(way, "thread_hole")) {
    pthread_t thread;
    pthread_create(&thread, NULL, thread_with_hole, NULL);
    pthread_join(thread, NULL);
  }
  if (!strcmp(way, "alternate")) {
    const size_t size = 64 << 10;
    const stack_t stack = {.ss_sp = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                           .ss_size = size};
    sigaltstack(&stack, NULL);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    burn(0.2);
  }
  // Smaller than the kernel's frame for one signal: a thread that gets a signal on it dies.
  if (!strcmp(way, "tiny_alternate")) tiny_alternate(NULL);
  if (!strcmp(way, "tiny_alternate_of_thread")) {
    pthread_t thread;
    pthread_create(&thread, NULL, tiny_alternate, NULL);
    burn(0.2);
    pthread_join(thread, NULL);
  }
  // As much as one handler takes with the kernel's frame: no room for another signal's.
  if (!strcmp(way, "small_alternate")) {
    const size_t size = (size_t)handler_bytes() + 1024;
    char* const memory = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const size_t room = (size + 4095) & ~(size_t)4095;
    mprotect(memory + 32768 - room, room, PROT_READ | PROT_WRITE);
    const stack_t stack = {.ss_sp = memory + 32768 - size, .ss_size = size};
    if (sigaltstack(&stack, NULL) != 0) return 3;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    struct sigaction now;
    sigaction(SIGUSR1, NULL, &now);
    for (int i = 1; i <= SIGRTMAX; ++i)
      if (sigismember(&now.sa_mask, i) != sigismember(&action.sa_mask, i) && i != SIGKILL && i != SIGSTOP) return 4;
  }
  if (!strcmp(way, "coroutine")) {
    const size_t size = 64 << 10;
    char* const memory = mmap(NULL, size + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory + 4096, size, PROT_READ | PROT_WRITE);
    getcontext(&there);
    there.uc_stack.ss_sp = memory + 4096;
    there.uc_stack.ss_size = size;
    there.uc_link = &back;
    makecontext(&there, coroutine, 0);
    swapcontext(&back, &there);
  }
  if (!strcmp(way, "wild_frame_pointer")) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
      // rbp points nowhere while it counts.
      __asm__ volatile("pushq %%rbp\n movq $-16, %%rbp\n movl $20000000, %%ecx\n 1: decl %%ecx\n jnz 1b\n popq %%rbp"
                       :
                       :
                       : "rcx", "memory");
      clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) * 1e-9 < 0.4);
  }
  puts("done");
  return 0;
}
