/* A program whose time is known: 70 % in heavy, 20 % in medium, 10 % in light, each called two levels deep;
 * built with and without frame pointers. The work is counted in equal units, so that the shares hold on any
 * machine. shares UNITS          in main's thread shares UNITS threads  in four threads shares UNITS deep
 * below 3000 further frames shares UNITS altstack half of it on an alternate signal stack, half on a
 * coroutine's
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

static volatile uint64_t sink;

#define UNIT                                                         \
  for (int i = 0; i < 20000; ++i) {                                  \
    value = value * 6364136223846793005ull + 1442695040888963407ull; \
    value ^= value >> 29;                                            \
  }

__attribute__((noinline)) uint64_t heavy(uint64_t value, int units) {
  while (units-- > 0) UNIT return value;
}
__attribute__((noinline)) uint64_t medium(uint64_t value, int units) {
  while (units-- > 0) UNIT return value;
}
__attribute__((noinline)) uint64_t light(uint64_t value, int units) {
  while (units-- > 0) UNIT return value;
}
__attribute__((noinline)) uint64_t middle(uint64_t value) {
  volatile char room[200]; /* a frame that is not trivial */
  room[value % 200] = 1;
  value = heavy(value, 7) + (uint64_t)room[0];
  value = medium(value, 2);
  value = light(value, 1);
  return value;
}
__attribute__((noinline)) void outer(long units) {
  uint64_t value = 1;
  for (long i = 0; i < units; ++i) value = middle(value) + 1;
  sink = value;
}
static long all_units;
static void* in_thread(void* unused) {
  (void)unused;
  outer(all_units / 4);
  return NULL;
}
__attribute__((noinline)) uint64_t deeper(int level, long units) {
  volatile uint64_t local = (uint64_t)level;
  if (level == 0)
    outer(units);
  else
    local += deeper(level - 1, units);
  return local;
}
static void on_signal(int number) {
  (void)number;
  outer(all_units / 2);
}
static ucontext_t main_context, coroutine_context;
static void coroutine(void) {
  outer(all_units / 2);
}

int main(int argc, char** argv) {
  const long units = argc > 1 ? atol(argv[1]) : 1000;
  const char* mode = argc > 2 ? argv[2] : "";
  all_units = units;
  if (!strcmp(mode, "threads")) {
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, in_thread, NULL);
    for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  } else if (!strcmp(mode, "deep")) {
    sink = deeper(3000, units);
  } else if (!strcmp(mode, "altstack")) {
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&stack, NULL);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    sigfillset(&action.sa_mask); /* everything: ours goes through all the same */
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    getcontext(&coroutine_context);
    coroutine_context.uc_stack.ss_sp = malloc(1 << 16);
    coroutine_context.uc_stack.ss_size = 1 << 16;
    coroutine_context.uc_link = &main_context;
    makecontext(&coroutine_context, coroutine, 0);
    swapcontext(&main_context, &coroutine_context);
  } else {
    outer(units);
  }
  printf("done\n");
  return 0;
}
