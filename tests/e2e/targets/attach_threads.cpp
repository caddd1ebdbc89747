// A program of many threads to attach to. Arguments: THREADS. The threads wait in all kinds of system calls that a stop
// could interrupt, or compute; each checks that no call ends but by what it waits for. SIGTERM ends it with "fine", or
// with the first call that ended otherwise.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace {

std::atomic<bool> g_end{false};
std::atomic<const char*> g_wrong{nullptr};
std::atomic<unsigned> g_started{0};
int g_never[2];  // a socket on which nothing comes until the end

// Calls that wait until the end. Each is over when the other end of its socket closes.
void wait_in(unsigned kind, int from) {
  const char* name = "";
  long result = 0;
  char byte = 0;
  switch (kind) {
    case 0: {
      name = "read";
      result = read(from, &byte, 1);
      break;
    }
    case 1: {
      name = "poll";
      pollfd wait{from, POLLIN, 0};
      result = poll(&wait, 1, -1);
      break;
    }
    case 2: {
      name = "epoll_wait";
      const int set = epoll_create1(0);
      epoll_event event{};
      event.events = EPOLLIN;
      epoll_ctl(set, EPOLL_CTL_ADD, from, &event);
      result = epoll_wait(set, &event, 1, -1);
      close(set);
      break;
    }
    case 3: {
      name = "recv";
      result = recv(from, &byte, 1, 0);
      break;
    }
    default: {
      name = "nanosleep";
      while (!g_end && result == 0) {
        const timespec time{0, 20'000'000};
        result = nanosleep(&time, nullptr);
      }
      break;
    }
  }
  if (result < 0 && errno == EINTR) g_wrong = name;
}

void* run(void* number) {
  const auto index = static_cast<unsigned>(reinterpret_cast<uintptr_t>(number));
  ++g_started;
  if (index % 50 == 0) {  // some that compute
    volatile unsigned long x = index;
    while (!g_end) {
      for (int i = 0; i < 10'000; ++i) x = x * 1664525u + 1;
      const timespec time{0, 5'000'000};
      nanosleep(&time, nullptr);
    }
    return nullptr;
  }
  wait_in(index % 5, g_never[0]);
  return nullptr;
}

}  // namespace

int main(int count, char** words) {
  const unsigned threads = count > 1 ? static_cast<unsigned>(atoi(words[1])) : 10;
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, nullptr);
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, g_never) != 0) return 2;
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 * 1024);
  for (unsigned i = 1; i <= threads; ++i) {
    pthread_t thread;
    if (const int error = pthread_create(&thread, &small, run, reinterpret_cast<void*>(uintptr_t{i})); error != 0) {
      printf("thread %u: %s\n", i, strerror(error));
      return 2;
    }
    pthread_detach(thread);
  }
  while (g_started != threads) usleep(1000);
  puts("ready");
  fflush(stdout);
  int signal = 0;
  sigwait(&term, &signal);
  const char* const wrong = g_wrong;
  if (wrong != nullptr) {
    printf("%s was interrupted\n", wrong);
    fflush(stdout);
    _exit(3);
  }
  puts("fine");
  fflush(stdout);
  _exit(0);
}
