// A loop that OpenMP offloads to a GPU, until the program is told to end (SIGTERM); for `tacho attach`. The GPU of the
// bed computes nothing, so that the program does not look at the results.
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t g_stop = 0;
static void stop(int number) {
  (void)number;
  g_stop = 1;
}

int main(void) {
  enum { kSize = 4096 };
  static double from[kSize], to[kSize];
  signal(SIGTERM, stop);
  int rounds = 0;
  for (; !g_stop; ++rounds) {
#pragma omp target teams distribute parallel for map(to : from) map(from : to)
    for (int i = 0; i < kSize; ++i) to[i] = from[i] * 2 + rounds;
    if (rounds == 3) {
      puts("ready");
      fflush(stdout);
    }
    usleep(1000);
  }
  printf("%d rounds\n", rounds);
  return 0;
}
