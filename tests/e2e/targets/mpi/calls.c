/* Calls of MPI by kind, each with numbers that a test knows.   calls KIND
   Every rank prints what it got; the sums do not depend on who records. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks;

static void messages(void) {
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  int buffer[100] = {rank}, in[100] = {0};
  MPI_Request requests[2];
  MPI_Status status;
  /* Any source, and a count that is larger than what comes. */
  MPI_Irecv(in, 100, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(buffer, 10, MPI_INT, right, 7, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Sendrecv(buffer, 20, MPI_INT, left, 8, in, 100, MPI_INT, right, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank % 2 == 0) {
    MPI_Ssend(buffer, 3, MPI_DOUBLE, right, 9, MPI_COMM_WORLD);
    MPI_Recv(in, 100, MPI_INT, left, 9, MPI_COMM_WORLD, &status);
  } else {
    MPI_Recv(in, 100, MPI_INT, left, 9, MPI_COMM_WORLD, &status);
    MPI_Ssend(buffer, 3, MPI_DOUBLE, right, 9, MPI_COMM_WORLD);
  }
  int count;
  MPI_Get_count(&status, MPI_DOUBLE, &count);
  printf("rank %d: %d of %d\n", rank, count, status.MPI_SOURCE);
  /* Persistent requests, twice; MPI_Test until it is there; nobody. */
  MPI_Send_init(buffer, 5, MPI_CHAR, right, 10, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(in, 100, MPI_CHAR, left, 10, MPI_COMM_WORLD, &requests[1]);
  for (int i = 0; i < 2; ++i) {
    MPI_Startall(2, requests);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    for (int done = 0; !done;) MPI_Test(&requests[1], &done, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  MPI_Send(buffer, 5, MPI_INT, MPI_PROC_NULL, 11, MPI_COMM_WORLD);
}

static void collectives(void) {
  double buffer[64] = {rank}, in[256] = {0};
  MPI_Comm half, pair, copy;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Comm_set_name(half, rank % 2 ? "odd" : "even");
  MPI_Comm_dup(half, &copy);
  for (int i = 0; i < 3; ++i) MPI_Allreduce(MPI_IN_PLACE, buffer, 4, MPI_DOUBLE, MPI_SUM, half);
  MPI_Allgather(buffer, 8, MPI_DOUBLE, in, 8, MPI_DOUBLE, MPI_COMM_WORLD);
  MPI_Bcast(buffer, 2, MPI_DOUBLE, 1, copy);
  MPI_Reduce(buffer, in, 16, MPI_DOUBLE, MPI_MAX, 1, MPI_COMM_WORLD);
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&half);
  /* A handle may come again: another communicator all the same. */
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, 0, &pair);
  MPI_Alltoall(buffer, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, pair);
  MPI_Comm_free(&pair);
  MPI_Comm_free(&copy);
  printf("rank %d: %g\n", rank, buffer[0]);
}

static void* talk(void* argument) {
  const int tag = 100 + (int)(long)argument, other = rank ^ 1;
  char out[64] = {0}, in[64];
  for (int i = 0; i < 50; ++i)
    MPI_Sendrecv(out, 1 + tag % 50, MPI_CHAR, other, tag, in, 64, MPI_CHAR, other, tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  return NULL;
}

/* Three numbers to the right, two from it, one added to its fourth, and its fifth counted up. */
static void one_sided(void) {
  double own[8] = {0}, out[3] = {1, 2, 3}, in[2];
  const int64_t one = 1; /* Open MPI 4.1 gets numbers of four bytes wrong */
  int64_t before;
  MPI_Win window, counter;
  MPI_Comm copy;
  static int64_t count;
  const int right = (rank + 1) % ranks;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Win_create(own, sizeof own, sizeof(double), MPI_INFO_NULL, copy, &window);
  MPI_Comm_free(&copy); /* the window keeps its ranks */
  MPI_Win_create(&count, sizeof count, sizeof count, MPI_INFO_NULL, MPI_COMM_WORLD, &counter);
  MPI_Win_fence(0, window);
  MPI_Put(out, 3, MPI_DOUBLE, right, 0, 3, MPI_DOUBLE, window);
  MPI_Win_fence(0, window);
  MPI_Get(in, 2, MPI_DOUBLE, right, 0, 2, MPI_DOUBLE, window);
  MPI_Accumulate(out, 1, MPI_DOUBLE, right, 3, 1, MPI_DOUBLE, MPI_SUM, window);
  MPI_Put(out, 3, MPI_DOUBLE, MPI_PROC_NULL, 0, 3, MPI_DOUBLE, window);
  MPI_Win_fence(0, window);
  MPI_Win_lock(MPI_LOCK_SHARED, right, 0, counter);
  MPI_Fetch_and_op(&one, &before, MPI_INT64_T, right, 0, MPI_SUM, counter);
  MPI_Win_unlock(right, counter);
  MPI_Win_free(&window);
  MPI_Win_free(&counter);
  printf("rank %d: %g %g %d\n", rank, in[1], own[3], (int)before);
}

/* Writes 4 + 2 numbers a rank into the file, and reads 3 of them, all, and what is there beyond. */
static void files(const char* path) {
  int values[32], *rest = values + 8;
  MPI_File file;
  MPI_Request request;
  MPI_Status status;
  int got;
  for (int i = 0; i < 6; ++i) values[i] = rank * 6 + i;
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_write_at_all(file, rank * 24, values, 4, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_iwrite_at(file, rank * 24 + 16, values + 4, 2, MPI_INT, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_read_at(file, rank * 24, rest, 3, MPI_INT, &status);
  MPI_File_read_at_all(file, (ranks - 1) * 24, rest, 20, MPI_INT, &status); /* ends after 6 */
  MPI_Get_count(&status, MPI_INT, &got);
  MPI_File_close(&file);
  printf("rank %d: %d %d\n", rank, got, rest[5]);
}

static void spawn(char** argv) {
  MPI_Comm parent, both;
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL) {
    char** const words = argv[2] != NULL ? argv + 2 : argv; /* "spawn PROGRAM ...": that one, else this one again */
    MPI_Comm_spawn(words[0], &words[1], 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &both, MPI_ERRCODES_IGNORE);
    int value = 41;
    MPI_Bcast(&value, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, both);
    MPI_Comm_disconnect(&both);
  } else {
    int value = 0;
    MPI_Bcast(&value, 1, MPI_INT, 0, parent);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_disconnect(&parent);
  }
}

int main(int argc, char** argv) {
  const char* const kind = argc > 1 ? argv[1] : "";
  int level = 0;
  if (strcmp(kind, "threads") == 0)
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  else
    MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (strcmp(kind, "messages") == 0) messages();
  if (strcmp(kind, "collectives") == 0) collectives();
  if (strcmp(kind, "onesided") == 0) one_sided();
  if (strcmp(kind, "files") == 0) files(argv[2]);
  if (strcmp(kind, "spawn") == 0) spawn(argv);
  for (int i = 0; i < 3 && strcmp(kind, "barriers") == 0; ++i) MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(kind, "threads") == 0) {
    pthread_t threads[4];
    for (long i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, talk, (void*)i);
    for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
    printf("level %d\n", level == MPI_THREAD_MULTIPLE);
  }
  if (strcmp(kind, "abort") == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (strcmp(kind, "die") == 0) {
    for (int i = 0; i < 5; ++i) MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) raise(SIGKILL);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (strcmp(kind, "wrong") == 0) {
    /* The program's own error handler answers, and it sees what it would see. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    char byte = 0;
    int class_of = 0;
    MPI_Error_class(MPI_Send(&byte, 1, MPI_CHAR, ranks + 5, 0, MPI_COMM_WORLD), &class_of);
    printf("rank %d: class %d\n", rank, class_of == MPI_ERR_RANK);
  }
  MPI_Finalize();
  return strcmp(kind, "exit") == 0 ? 5 : 0;
}
