// Sets N markers, each with its own name of LENGTH bytes: names N LENGTH.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tacho/tacho.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int count = atoi(argv[1]);
  const size_t length = (size_t)atoi(argv[2]);
  char* const text = malloc(length + 1);
  if (text == NULL) return 2;
  unsigned state = 1;
  for (int i = 0; i < count; ++i) {
    for (size_t at = 0; at < length; ++at) {
      state = state * 1664525u + 1013904223u;
      text[at] = (char)('a' + (state >> 24) % 26);
    }
    char number[16];
    const int digits = snprintf(number, sizeof number, "%d", i);
    memcpy(text, number, length < (size_t)digits ? length : (size_t)digits);
    text[length] = '\0';
    tacho_range_push(text);
    tacho_range_pop();
  }
  free(text);
  return 0;
}
