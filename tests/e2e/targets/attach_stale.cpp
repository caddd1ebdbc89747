// A single thread that computes for ever in the program's own code, above whose stack pointer lies what a call of the
// loader has left there: a return address. With an argument it does so in a handler of a signal, which may have come in
// the middle of such a call.
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>

namespace {

void compute(int) {
  volatile uintptr_t left[32];
  for (size_t i = 0; i < 32; ++i) left[i] = _r_debug.r_brk;
  printf("ready\n");
  fflush(stdout);
  volatile unsigned long sum = 0;
  for (unsigned long i = 0;; ++i) sum = sum + left[i % 32];
}

}  // namespace

int main(int argc, char**) {
  if (argc == 1) compute(0);
  signal(SIGUSR1, compute);
  raise(SIGUSR1);
}
