/* A job that runs until SIGTERM comes to rank 0: in each round every rank exchanges a message with both neighbours, whose tag is the
   number of the round, waits for requests, and reduces. With the argument "lookup" it calls MPI by pointers that it has looked up, as
   Python's extension modules and runtimes of other languages may. Rank 0 prints "ready" when all have done ten rounds, and at the end
   the number of rounds and their sum, which does not depend on who records. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t stop;
static void on_term(int number) {
  (void)number;
  stop = 1;
}

static int (*allreduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm) = MPI_Allreduce;
static int (*isend)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) = MPI_Isend;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm pair;
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
  if (argc > 1 && strcmp(argv[1], "lookup") == 0) {
    *(void**)&allreduce = dlsym(RTLD_DEFAULT, "MPI_Allreduce");
    *(void**)&isend = dlsym(RTLD_DEFAULT, "MPI_Isend");
  }
  if (rank == 0)
    signal(SIGTERM, on_term);
  else
    signal(SIGTERM, SIG_IGN);
  char path[64];
  snprintf(path, sizeof path, "pid.%d", rank);
  FILE* const file = fopen(path, "w");
  fprintf(file, "%d", (int)getpid());
  fclose(file);
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  double sum = 0;
  int rounds = 0, all_stop = 0;
  while (!all_stop) {
    double out[16] = {rank + rounds}, in[16];
    MPI_Request requests[2];
    MPI_Irecv(in, 16, MPI_DOUBLE, before, rounds % 30000, MPI_COMM_WORLD, &requests[0]);
    isend(out, 16, MPI_DOUBLE, next, rounds % 30000, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    double of_all = 0, of_pair = 0;
    allreduce(in, &of_all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(in, &of_pair, 1, MPI_DOUBLE, MPI_MAX, pair);
    sum += of_all + of_pair;
    ++rounds;
    int mine = stop;
    MPI_Bcast(&mine, 1, MPI_INT, 0, MPI_COMM_WORLD);
    all_stop = mine;
    if (rounds == 10 && rank == 0) {
      puts("ready");
      fflush(stdout);
    }
    usleep(2000);
  }
  if (rank == 0) printf("%d rounds: %.0f\n", rounds, sum);
  MPI_Finalize();
  return 0;
}
