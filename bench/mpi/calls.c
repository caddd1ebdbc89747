/* The cost of a call of MPI, on MPI_COMM_SELF: CPU time of the thread per call, the best of 60 rounds. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int argc, char** argv) {
  enum { kCalls = 20000, kRounds = 60 };
  char out[64] = {0}, in[64];
  MPI_Request request;
  double best[4] = {1e18, 1e18, 1e18, 1e18};
  MPI_Init(&argc, &argv);
  for (int round = 0; round < kRounds; ++round)
    for (int what = 0; what < 4; ++what) {
      const double begin = now();
      for (int i = 0; i < kCalls; ++i) {
        if (what == 0) MPI_Barrier(MPI_COMM_SELF);
        if (what == 1) MPI_Allreduce(out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
        if (what == 2) MPI_Send(out, 8, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_SELF);
        if (what == 3) {
          MPI_Irecv(in, 8, MPI_CHAR, 0, 1, MPI_COMM_SELF, &request);
          MPI_Send(out, 8, MPI_CHAR, 0, 1, MPI_COMM_SELF);
          MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
      }
      const double each = (now() - begin) / kCalls / (what == 3 ? 3 : 1);
      if (each < best[what]) best[what] = each;
    }
  printf("MPI_Barrier %.0f, MPI_Allreduce %.0f, MPI_Send to nobody %.0f, "
         "MPI_Irecv + MPI_Send + MPI_Wait %.0f ns a call\n",
         best[0], best[1], best[2], best[3]);
  MPI_Finalize();
  return 0;
}
