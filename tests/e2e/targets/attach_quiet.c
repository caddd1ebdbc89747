// Has much data of which it has written nothing and read a word: most of its pages are the file's, and not in memory.
#include <stdio.h>
#include <unistd.h>

#define FOUR(x) x, x, x, x
#define SIXTEEN(x) FOUR(x), FOUR(x), FOUR(x), FOUR(x)
long data[1 << 20] = {SIXTEEN(1)};

int main(void) {
  printf(*(volatile long*)&data[1 << 19] == 0 ? "ready\n" : "wrong\n");
  fflush(stdout);
  for (;;) usleep(1000);
}
