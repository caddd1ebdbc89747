// Sets markers, installs a filter of system calls that kills it, and goes on: filtered WAY CALL[,CALL...].
// WAY: prctl, syscall or tsync. CALL: a name below, "all" of them, "minimal" (only what ends a program and writes is left),
// or "strict" (seccomp's strict mode). Sets 2000 markers before, 2000 after.
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
              {"readlink", SYS_readlink},
              {"clock_gettime", SYS_clock_gettime},
              {"getdents64", SYS_getdents64},
              {"uname", SYS_uname}};
enum { kCount = sizeof kCalls / sizeof *kCalls };

static void markers(int count, int names) {
  char text[32];
  for (int i = 0; i < count; ++i) {
    snprintf(text, sizeof text, "name %d", i % names);
    tacho_range_push(text);
    tacho_range_pop();
  }
}

static void* thread(void* argument) {
  (void)argument;
  markers(100, 10);
  return NULL;
}

static int forbids(const char* list, const char* name) {
  const char* const found = strstr(list, name);
  return strcmp(list, "all") == 0 ||
         (found != NULL && (found[strlen(name)] == '\0' || found[strlen(name)] == ','));
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  markers(2000, 20);
  struct sock_filter filter[2 * kCount + 8];
  unsigned short length = 0;
  filter[length++] =
      (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
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
      filter[length++] =
          (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)kCalls[i].number, 0, 1);
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
  const long failed = strcmp(argv[1], "prctl") == 0
                          ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)
                          : syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                    strcmp(argv[1], "tsync") == 0 ? SECCOMP_FILTER_FLAG_TSYNC : 0, &program);
  if (failed != 0) return 77;
  markers(1900, 40);
  for (volatile int i = 0; i < 60000000; ++i) {
  }
  pthread_t other;
  const int threads = !minimal && !forbids(argv[2], "mmap") && !forbids(argv[2], "rt_sigprocmask") &&
                      !forbids(argv[2], "futex") && !forbids(argv[2], "munmap");
  if (threads && pthread_create(&other, NULL, thread, NULL) == 0)
    pthread_join(other, NULL);
  else
    markers(100, 10);
  const ssize_t ignored = write(1, "after\n", 6);
  (void)ignored;
  return 0;
}
