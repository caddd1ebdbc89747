// A program that listens for tacho and sets markers. Arguments: [FILE] = it records itself into FILE for half a second.
// Else it prints "ready" and works until SIGTERM.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tacho/live.h"

static volatile sig_atomic_t g_end = 0;
static void end(int number) {
  (void)number;
  g_end = 1;
}

static unsigned work(void) {
  unsigned sum = 0;
  tacho_range_push("work");
  for (unsigned i = 0; i < 20000; ++i) sum = sum * 31 + i;
  tacho_range_pop();
  return sum;
}

int main(int argc, char** argv) {
  unsigned sum = work();  // a marker before anybody listens
  int error = tacho_listen(NULL);
  if (error != 0) {
    fprintf(stderr, "cannot listen: %s\n", strerror(error));
    return 2;
  }
  if (argc > 1) {
    error = tacho_stop();
    if (error != ECHILD) return 3;
    error = tacho_trigger(argv[1], 30, NULL);
    if (error == 0 && tacho_start(argv[1], NULL) != EBUSY) return 4;
    for (int i = 0; i < 100; ++i) sum += work();
    if (error == 0) error = tacho_stop();
    if (error != 0) {
      fprintf(stderr, "no recording: %s\n", strerror(error));
      return 5;
    }
    printf("%u\n", sum);
    return 0;
  }
  signal(SIGTERM, end);
  printf("ready\n");
  fflush(stdout);
  while (!g_end) {
    const struct timespec moment = {0, 1000000};
    sum += work();
    nanosleep(&moment, NULL);
  }
  printf("fine %u\n", sum & 1);
  return 0;
}
