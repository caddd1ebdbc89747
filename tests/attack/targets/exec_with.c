// exec_with N ENTRY... PROGRAM ARGUMENT...: starts the program with exactly these N entries as its environment.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 0;
  if (argc < count + 3) return 2;
  char** const environment = calloc((size_t)count + 1, sizeof(char*));
  if (environment == NULL) return 2;
  for (int i = 0; i < count; ++i) environment[i] = argv[2 + i];
  execve(argv[2 + count], argv + 2 + count, environment);
  perror(argv[2 + count]);
  return 3;
}
