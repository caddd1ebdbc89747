// Sets markers, installs a filter of system calls that kills it, and goes on: filtered WAY CALL[,CALL...] [BURST]. WAY:
// prctl, syscall or tsync; "late" sets no marker before the filter; "exec" starts itself again under the filter. CALL:
// a name below, "all" of them, "minimal" (only what ends a program and writes is left), or "strict" (seccomp's strict
// mode). Under the filter it sets markers with known names, with many new ones, BURST of them at a time, in threads
// that define names at once, and in a forked child: whatever libtacho.so may need a system call for. Prints how many it
// set.
#define _GNU_SOURCE
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tacho/tacho.h"

static const struct {
  const char* name;
  int number;
} kCalls[] = {{"futex", SYS_futex},
              {"gettid", SYS_gettid},
              {"mmap", SYS_mmap},
              {"munmap", SYS_munmap},
              {"openat", SYS_openat},
              {"prctl", SYS_prctl},
              {"sched_yield", SYS_sched_yield},
              {"timer_create", SYS_timer_create},
              {"timer_settime", SYS_timer_settime},
              {"timer_delete", SYS_timer_delete},
              {"rt_sigprocmask", SYS_rt_sigprocmask},
              {"rt_sigreturn", SYS_rt_sigreturn},
              {"process_vm_readv", SYS_process_vm_readv},
              {"getpid", SYS_getpid},
              {"getppid", SYS_getppid},
              {"madvise", SYS_madvise},
              {"rt_sigaction", SYS_rt_sigaction},
              {"readlink", SYS_readlink},
              {"clock_gettime", SYS_clock_gettime},
              {"getdents64", SYS_getdents64},
              {"uname", SYS_uname}};
enum { kCount = sizeof kCalls / sizeof *kCalls };

static int set;  // markers of this process so far, as it counts them

static void markers(int count, int names) {
  char text[32];
  for (int i = 0; i < count; ++i) {
    snprintf(text, sizeof text, "name %d", i % names);
    tacho_range_push(text);
    tacho_range_pop();
  }
  __atomic_fetch_add(&set, count, __ATOMIC_RELAXED);
}

// Categories that nobody has named yet: they need room of their own, and the lock that all threads share.
static void fresh_names(int count, int who) {
  char text[64];
  for (int i = 0; i < count; ++i) {
    snprintf(text, sizeof text, "what thread %d calls category %d", who, i);
    tacho_attributes attributes = TACHO_ATTRIBUTES;
    attributes.category = text;
    tacho_range_push_with("fresh", &attributes);
    tacho_range_pop();
  }
  __atomic_fetch_add(&set, count, __ATOMIC_RELAXED);
}

static void* thread(void* argument) {
  markers(100, 10);
  fresh_names(4000, (int)(long)argument);
  return NULL;
}

static int forbids(const char* list, const char* name) {
  const char* const found = strstr(list, name);
  return strcmp(list, "all") == 0 || (found != NULL && (found[strlen(name)] == '\0' || found[strlen(name)] == ','));
}

static void work(const char* list, int burst) {
  const int minimal = strcmp(list, "minimal") == 0;
  markers(1900, 40);
  for (volatile int i = 0; i < 60000000; ++i) {
  }
  if (burst > 0) markers(burst, 40);
  fresh_names(20000, -1);
  // The calls that glibc itself needs for threads and for fork.
  const int threads = !minimal && !forbids(list, "mmap") && !forbids(list, "rt_sigprocmask") &&
                      !forbids(list, "futex") && !forbids(list, "madvise") && !forbids(list, "rt_sigaction");
  enum { kMost = 6 };
  const int count = forbids(list, "munmap") ? 1 : kMost;  // of more, libc unmaps stacks
  pthread_t others[kMost];
  for (long i = 0; threads && i < count; ++i)
    if (pthread_create(&others[i], NULL, thread, (void*)i) != 0) _exit(4);
  for (int i = 0; threads && i < count; ++i) pthread_join(others[i], NULL);
  int status = 0;
  if (!minimal) {
    const pid_t child = fork();
    if (child == 0) {
      markers(50, 10);
      _exit(0);
    }
    waitpid(child, &status, 0);
  }
  char line[64];
  const int size = snprintf(line, sizeof line, "after %d %d\n", set, status);
  const ssize_t ignored = write(1, line, (size_t)size);
  (void)ignored;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int burst = argc > 3 ? atoi(argv[3]) : 0;
  if (strcmp(argv[1], "inherited") == 0) {
    work(argv[2], burst);
    return 0;
  }
  const int exec = strcmp(argv[1], "exec") == 0;
  if (!exec && strcmp(argv[1], "late") != 0) markers(2000, 20);
  struct sock_filter filter[2 * kCount + 8];
  unsigned short length = 0;
  filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  const int minimal = strcmp(argv[2], "minimal") == 0;
  if (minimal) {
    const int allowed[] = {SYS_exit_group, SYS_exit, SYS_write, SYS_newfstatat, SYS_fstat, SYS_brk};
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; ++i) {
      filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
      filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  } else {
    for (int i = 0; i < kCount; ++i) {
      if (!forbids(argv[2], kCalls[i].name)) continue;
      filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)kCalls[i].number, 0, 1);
      filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  const struct sock_fprog program = {length, filter};
  fputs("before\n", stdout);
  fflush(stdout);
  if (strcmp(argv[2], "strict") == 0) {
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) != 0) _exit(77);
    markers(2000, 20);
    for (volatile int i = 0; i < 100000000; ++i) {
    }
    const ssize_t ignored = write(1, "after\n", 6);
    (void)ignored;
    for (;;) syscall(SYS_exit, 0);
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 77;
  const long failed = strcmp(argv[1], "syscall") != 0 && strcmp(argv[1], "tsync") != 0
                          ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)
                          : syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                    strcmp(argv[1], "tsync") == 0 ? SECCOMP_FILTER_FLAG_TSYNC : 0, &program);
  if (failed != 0) return 77;
  if (exec) {
    char* const again[] = {argv[0], "inherited", argv[2], argc > 3 ? argv[3] : NULL, NULL};
    execv(argv[0], again);
    return 3;
  }
  work(argv[2], burst);
  return 0;
}
