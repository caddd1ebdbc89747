/* What sampled programs do with their processes and threads: lives fork | exec | churn | many | jit | raw | register. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;
__attribute__((noinline)) void work(long rounds) {
  uint64_t value = 1;
  for (long i = 0; i < rounds; ++i) value = value * 6364136223846793005ull + 1;
  sink = value;
}
__attribute__((noinline)) void in_parent(void) {
  work(100000000);
  sink = 1;
}
__attribute__((noinline)) void in_child(void) {
  work(100000000);
  sink = 2;
}
__attribute__((noinline)) void after_exec(void) {
  work(100000000);
  sink = 3;
}
static void* little(void* unused) {
  work(300000);
  return unused;
}
static void* names_itself(void* unused) {
  pthread_setname_np(pthread_self(), "busy one");
  work(300000000);
  return unused;
}
static void* some(void* unused) {
  work(2000000);
  return unused;
}

/* rbp frame around a loop of rdi rounds: push rbp; mov rbp,rsp; L: dec rdi; jnz L; pop rbp; ret */
static const unsigned char kCode[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3};
__attribute__((noinline)) void calls_jit(void (*code)(long)) {
  code(400000000);
  sink = 4;
}

/* Works with `value` in the register that frame pointers are in, as compilers do that keep none, deep in the stack. */
__attribute__((noinline)) void any_register(uint64_t value, long rounds) {
  volatile char deep[40000];
  deep[0] = 1;
  __asm__ volatile("pushq %%rbp\n\t.cfi_adjust_cfa_offset 8\n\tmovq %%rax, %%rbp\n"
                   "1:\n\tdecq %%rcx\n\tjnz 1b\n\tpopq %%rbp\n\t.cfi_adjust_cfa_offset -8"
                   : "+a"(value), "+c"(rounds)
                   :
                   : "memory", "cc");
  sink = (uint64_t)deep[0];
}

static char clone_stack[1 << 16] __attribute__((aligned(16)));
static volatile int clone_ended;
static int in_raw_thread(void* unused) {
  (void)unused;
  work(1500000000);
  clone_ended = 1;
  syscall(SYS_exit, 0);
  return 0;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (!strcmp(mode, "fork")) {
    const pid_t child = fork();
    if (child == 0) {
      in_child();
      _exit(0);
    }
    in_parent();
    int status = 1;
    waitpid(child, &status, 0);
    return status;
  }
  if (!strcmp(mode, "exec")) {
    if (argc > 2) {
      after_exec();
      return 0;
    }
    in_parent();
    execl(argv[0], argv[0], "exec", "again", (char*)NULL);
    return 1;
  }
  if (!strcmp(mode, "churn") || !strcmp(mode, "many")) {
    const int churn = !strcmp(mode, "churn");
    static pthread_t threads[500];
    for (int round = 0; round < (churn ? 4 : 1); ++round) {
      for (int i = 0; i < 500; ++i)
        if (pthread_create(&threads[i], NULL, churn ? little : some, NULL) != 0) return 2;
      for (int i = 0; i < 500; ++i) pthread_join(threads[i], NULL);
    }
    return 0;
  }
  if (!strcmp(mode, "jit")) {
    unsigned char* code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, kCode, sizeof kCode);
    char name[64];
    snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
    FILE* map = fopen(name, "w");
    fprintf(map, "%lx %zx made_at_run_time\n", (unsigned long)code, sizeof kCode);
    fclose(map);
    void (*function)(long);
    memcpy(&function, &code, sizeof function);
    calls_jit(function);
    unlink(name);
    return 0;
  }
  if (!strcmp(mode, "register")) {
    const uint64_t here = (uint64_t)(uintptr_t)&argc & ~7ull;
    const uint64_t values[] = {(uint64_t)-8,  (uint64_t)-16, (uint64_t)-24,    0, 8, 1ull << 63, here, here - 100000,
                               here + 100000, here - 20000,  0x7ffffffffff8ull};
    for (size_t i = 0; i < sizeof values / sizeof *values; ++i) any_register(values[i], 60000000);
    return 0;
  }
  if (!strcmp(mode, "sleep")) { /* a thread that waits while others run must not be woken */
    pthread_t busy;
    pthread_create(&busy, NULL, names_itself, NULL);
    const struct timespec rest = {0, 400000000};
    const int result = nanosleep(&rest, NULL);
    pthread_join(busy, NULL);
    return result == 0 ? 0 : 1;
  }
  if (!strcmp(mode, "raw")) { /* a thread that no pthread_create made */
    clone(in_raw_thread, clone_stack + sizeof clone_stack,
          CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, NULL);
    while (!clone_ended) work(10000000);
    return 0;
  }
  return 2;
}
