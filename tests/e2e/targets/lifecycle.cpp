// A program that sets markers and then ends, forks or misbehaves in a chosen way: lifecycle MODE [N]. It prints what it
// is told to print and nothing else, so that its output can be compared with and without tacho.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tacho/tacho.h"

namespace {

void markers(int count, const char* text) {
  for (int i = 0; i < count; ++i) {
    tacho_range_push(text);
    tacho_range_pop();
  }
}

void wait_for(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
}

int run(const std::string& mode, int n, char** argv) {
  if (mode == "normal") {
    markers(n, "work");
    puts("standard output");
    fputs("standard error\n", stderr);
    return 0;
  }
  if (mode == "code") {
    markers(3, "work");
    return n;
  }
  if (mode == "segv") {
    markers(n, "work");
    raise(SIGSEGV);
  }
  if (mode == "abort") {
    markers(n, "work");
    abort();
  }
  if (mode == "_exit") {
    markers(n, "work");
    _exit(7);
  }
  if (mode == "thread_exit") {
    std::thread([n] {
      markers(n, "work");
      exit(9);
    }).join();
  }
  if (mode == "names") {  // texts that do not compress
    unsigned long state = 88172645463325252UL;
    char text[64];
    for (int i = 0; i < n; ++i) {
      for (int c = 0; c < 40; ++c) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        text[c] = static_cast<char>('!' + state % 90);
      }
      text[40] = '\0';
      markers(1, text);
    }
    return 0;
  }
  if (mode == "open") {
    tacho_range_push("never closed");
    markers(n, "work");
    return 0;
  }
  if (mode == "storm") {  // until killed, resting N us after every 1000 pairs; prints the number of finished pairs
    for (long i = 0;; i += 1000) {
      markers(1000, "storm");
      if (n != 0) usleep(static_cast<useconds_t>(n));
      if (i % 100000 == 0) {
        printf("%ld\n", i + 1000);
        fflush(stdout);
      }
    }
  }
  if (mode == "sleep") {
    markers(3, "before");
    printf("ready\n");
    fflush(stdout);
    sleep(static_cast<unsigned>(n));
    markers(3, "after");
    return 0;
  }
  if (mode == "switched") {  // marks, waits until recording is switched on or off (77: it is not), marks
    const int first = tacho_active();
    markers(3, "before");
    if (tacho_active() != first) return 77;  // perhaps in the middle of them
    for (int i = 0; i < 6000 && tacho_active() == first; ++i) usleep(10000);
    if (tacho_active() == first) return 77;
    markers(3, "after");
    return 0;
  }
  if (mode == "handler") {  // ends by itself on SIGTERM or SIGINT, with a code that tells which
    static std::atomic<int> seen{0};
    struct sigaction action {};
    action.sa_handler = [](int number) { seen = number; };
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);
    printf("ready\n");
    fflush(stdout);
    for (int i = 0; i < 1000 && seen == 0; ++i) usleep(10000);
    markers(5, "after signal");
    return 40 + seen;
  }
  if (mode == "fork") {  // children without exec
    markers(n, "parent");
    std::vector<pid_t> children;
    for (int i = 0; i < 4; ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        markers(n, "child");
        _exit(0);
      }
      children.push_back(pid);
    }
    for (const pid_t pid : children) wait_for(pid);
    markers(n, "parent");
    return 0;
  }
  if (mode == "fork_threads") {  // fork while other threads write
    std::atomic<bool> stop{false};
    std::vector<std::thread> writers;
    for (int t = 0; t < 4; ++t)
      writers.emplace_back([&] {
        while (!stop) {
          markers(100, "writer");
          usleep(100);
        }
      });
    for (int i = 0; i < n; ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        markers(10, "child");
        _exit(0);
      }
      wait_for(pid);
    }
    stop = true;
    for (std::thread& writer : writers) writer.join();
    return 0;
  }
  if (mode == "raw_clone") {
    markers(n, "parent");
    const long pid = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
    if (pid == 0) {
      markers(n, "child");
      syscall(SYS_exit_group, 0);
    }
    wait_for(static_cast<pid_t>(pid));
    markers(n, "parent");
    return 0;
  }
  if (mode == "vfork_exec") {
    markers(n, "parent");
    const std::string count = std::to_string(n);
    const pid_t pid = vfork();
    if (pid == 0) {
      execl("/proc/self/exe", argv[0], "normal", count.c_str(), nullptr);
      _exit(127);
    }
    wait_for(pid);
    return 0;
  }
  if (mode == "threads") {
    std::vector<std::thread> threads;
    for (int t = 0; t < 64; ++t) threads.emplace_back([n] { markers(n, "thread"); });
    for (std::thread& thread : threads) thread.join();
    return 0;
  }
  if (mode == "close_all") {
    markers(n, "before");
    for (int descriptor = 0; descriptor < 1024; ++descriptor) close(descriptor);
    const int first = open("/dev/null", O_RDWR);
    dup(first);
    dup(first);
    for (int i = 0; i < 64; ++i) static_cast<void>(open("/dev/null", O_RDWR));
    markers(n, "after");
    return 0;
  }
  if (mode == "chroot") {
    markers(n, "before");
    if (chroot("/var/empty") != 0 && chroot("/tmp") != 0) return 77;
    const pid_t pid = fork();
    if (pid == 0) {
      markers(n, "child");
      _exit(0);
    }
    wait_for(pid);
    markers(n, "after");
    return 0;
  }
  if (mode == "as_limit") {  // as much address space as it has now and a little more, then itself again
    rlimit limit{static_cast<rlim_t>(n) << 20, static_cast<rlim_t>(n) << 20};
    setrlimit(RLIMIT_AS, &limit);
    execl("/proc/self/exe", argv[0], "normal", "100", nullptr);
    return 127;
  }
  if (mode == "fds") {  // descriptors beyond the standard three, as the target sees them
    DIR* const listing = opendir("/proc/self/fd");
    int count = 0;
    markers(1, "work");
    while (const dirent* entry = readdir(listing))
      if (entry->d_name[0] != '.' && atoi(entry->d_name) > 2) ++count;
    closedir(listing);
    printf("%d\n", count);
    return 0;
  }
  if (mode == "mask") {  // signal mask and dispositions that it was started with
    sigset_t mask;
    sigprocmask(SIG_BLOCK, nullptr, &mask);
    for (int number = 1; number < 32; ++number) {
      struct sigaction action {};
      sigaction(number, nullptr, &action);
      printf("%d%d", sigismember(&mask, number), action.sa_handler == SIG_IGN ? 1 : 0);
    }
    printf("\n");
    return 0;
  }
  fprintf(stderr, "lifecycle: no mode %s\n", mode.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  return run(argv[1], argc > 2 ? atoi(argv[2]) : 100, argv);
}
