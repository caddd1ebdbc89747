// The interval timer and its handler (time_limit.h).
#include "cli/shared/time_limit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "base/format.h"
#include "cli/command.h"

namespace tacho::cli {
namespace {

constinit std::atomic<double> g_limit{0}, g_began{0};
constinit std::atomic<bool> g_line{false}, g_drawn{false};
constinit char g_sentence[160] = {};

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void put(const char* text, size_t size) {
  const ssize_t ignored = write(STDERR_FILENO, text, size);
  static_cast<void>(ignored);
}

void erase_line() {
  if (g_drawn.exchange(false)) put("\r\033[K", 4);
}

void on_alarm(int) {
  const int error = errno;
  const double seconds = now() - g_began.load();
  if (g_limit.load() > 0 && seconds >= g_limit.load()) {
    erase_line();
    put(g_sentence, strlen(g_sentence));
    _exit(kBadInput);
  }
  if (g_line.load() && seconds >= 3) {
    char line[] = "\rtacho: working for 000000 s; Ctrl-C ends it";
    auto whole = static_cast<unsigned long>(seconds);
    for (char* digit = strstr(line, "000000") + 5; digit > strstr(line, "for ") + 3; --digit, whole /= 10)
      *digit = whole != 0 ? static_cast<char>('0' + whole % 10) : ' ';
    g_drawn.store(true);
    put(line, sizeof line - 1);
  }
  errno = error;
}

}  // namespace

TimeLimit::TimeLimit(double seconds) {
  g_limit.store(seconds);
  g_began.store(now());
  g_line.store(isatty(STDERR_FILENO) == 1);
  const std::string sentence = fmt::format("tacho: no answer within {:g} s; give a longer --timeout, or ask for less "
                                           "(tacho query --explain says how it is answered)\n",
                                           seconds);
  snprintf(g_sentence, sizeof g_sentence, "%s", sentence.c_str());
  if (seconds <= 0 && !g_line.load()) return;
  struct sigaction action {};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  constexpr long kStep = 100'000;  // us
  const itimerval interval{{0, kStep}, {0, kStep}};
  setitimer(ITIMER_REAL, &interval, nullptr);
}

TimeLimit::~TimeLimit() {
  const itimerval none{};
  setitimer(ITIMER_REAL, &none, nullptr);
  answered();
}

void TimeLimit::answered() {
  g_line.store(false);
  erase_line();
}

}  // namespace tacho::cli
