// Takes N MiB of memory in pieces, sets markers, and prints whether it got them: limited MIB.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacho/tacho.h"

int main(int argc, char** argv) {
  const int want = argc > 1 ? atoi(argv[1]) : 1;
  int got = 0;
  for (; got < want; ++got) {
    char* const piece = malloc(1 << 20);
    if (piece == NULL) break;
    memset(piece, 1, 1 << 20);
  }
  for (int i = 0; i < 1000; ++i) {
    tacho_range_push("work");
    tacho_range_pop();
  }
  puts(got == want ? "enough" : "too little");
  return got != want;
}
