// Prints its environment as it is in memory, an entry a line, and nothing else.
#include <stdio.h>

extern char** environ;

int main(void) {
  for (char** entry = environ; *entry != NULL; ++entry) puts(*entry);
  return 0;
}
