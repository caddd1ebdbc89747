// Sets markers all the time: runs FILE [SECONDS [catch]]. Makes FILE after its first markers, ends after SECONDS (30).
// With "catch" it catches all signals that can be caught, goes on, and prints the numbers at the end.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tacho/tacho.h"

static volatile sig_atomic_t seen[65];
static void on_signal(int number) {
  seen[number] = 1;
}

int main(int argc, char** argv) {
  const double seconds = argc > 2 ? atof(argv[2]) : 30;
  const int catches = argc > 3 && strcmp(argv[3], "catch") == 0;
  for (int number = 1; catches && number <= 64; ++number) {
    if (number == SIGCHLD || number == SIGWINCH || number == SIGCONT || number == SIGURG) continue;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(number, &action, NULL);
  }
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  int made = 0;
  for (;;) {
    tacho_range_push("running");
    usleep(1000);
    tacho_range_pop();
    if (!made && argc > 1) {
      made = 1;
      close(open(argv[1], O_CREAT | O_WRONLY, 0600));
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    if ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) * 1e-9 > seconds) break;
  }
  for (int number = 1; catches && number <= 64; ++number)
    if (seen[number]) printf("%d\n", number);
  return 0;
}
