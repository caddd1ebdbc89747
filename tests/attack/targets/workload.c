// A program that sets markers from the main thread, threads and a forked child, allocates, sleeps and catches signals:
// workload [MARKERS [THREADS]]. Clean under every sanitizer; built with each of them.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tacho/tacho.h"

static volatile sig_atomic_t caught;
static void on_signal(int number) {
  (void)number;
  caught = 1;
}

static void markers(int count) {
  char text[64];
  for (int i = 0; i < count; ++i) {
    snprintf(text, sizeof text, "range %d", i % 50);
    tacho_range_push(text);
    char* const memory = malloc(64 + (size_t)i % 512);
    memset(memory, 1, 64);
    tacho_mark("mark");
    free(memory);
    tacho_range_pop();
  }
}

static void* thread(void* argument) {
  markers(*(int*)argument);
  return NULL;
}

int main(int argc, char** argv) {
  int count = argc > 1 ? atoi(argv[1]) : 100;
  const int threads = argc > 2 ? atoi(argv[2]) : 3;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  sigaction(SIGUSR1, &action, NULL);
  pthread_t all[64];
  for (int i = 0; i < threads && i < 64; ++i) pthread_create(&all[i], NULL, thread, &count);
  markers(count);
  raise(SIGUSR1);
  for (int i = 0; i < threads && i < 64; ++i) pthread_join(all[i], NULL);
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    markers(count);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("done %d %d\n", caught, status);
  return 0;
}
