/* A heat equation on a line of ranks: a kernel in OpenCL, the outer rows exchanged with both neighbours by MPI, and the largest
   change over all ranks every second step. It prints the sum of the grid, which does not depend on who records.
     stencil STEPS [WHAT RANK STEP MILLISECONDS]
   A delay is planted on RANK: before everything else of STEP and of the two after it (rank), before its message to the next rank
   and no other (message), or before the collective of STEP (collective). */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tacho/tacho.h"

enum { kColumns = 256, kRows = 64 };

static const char* kSource = "kernel void heat(global const float* from, global float* to, int columns) {\n"
                             "  int x = get_global_id(0), y = get_global_id(1) + 1, i = y * columns + x;\n"
                             "  float left = x > 0 ? from[i - 1] : 0, right = x + 1 < columns ? from[i + 1] : 0;\n"
                             "  to[i] = 0.25f * (left + right + from[i - columns] + from[i + columns]);\n"
                             "}\n";

static void check(cl_int code, const char* what) {
  if (code == CL_SUCCESS) return;
  fprintf(stderr, "%s: %d\n", what, code);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void delay(long milliseconds) {
  struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&time, NULL);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int steps = argc > 1 ? atoi(argv[1]) : 10;
  const char* const what = argc > 5 ? argv[2] : "";
  const int late = argc > 5 && atoi(argv[3]) == rank, at = argc > 5 ? atoi(argv[4]) : -1;
  const long milliseconds = argc > 5 ? atol(argv[5]) : 0;

  cl_platform_id platform;
  cl_device_id device;
  cl_int code;
  check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  check(code, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
  check(code, "clCreateCommandQueue");
  cl_program program = clCreateProgramWithSource(context, 1, &kSource, NULL, &code);
  check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
  cl_kernel kernel = clCreateKernel(program, "heat", &code);
  check(code, "clCreateKernel");
  const size_t row = kColumns * sizeof(float), bytes = (kRows + 2) * row;
  float* const grid = calloc(1, bytes);
  for (int y = 1; y <= kRows; ++y)
    for (int x = 0; x < kColumns; ++x) grid[y * kColumns + x] = (float)((rank * 31 + y * 7 + x) % 100);
  cl_mem buffers[2];
  for (int i = 0; i < 2; ++i) {
    buffers[i] = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, grid, &code);
    check(code, "clCreateBuffer");
  }
  const int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
  float *const out = malloc(2 * row), *const in = calloc(2, row);
  const size_t size[2] = {kColumns, kRows};
  const int columns = kColumns;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int step = 0; step < steps; ++step) {
    tacho_range_push("step");
    if (late && strcmp(what, "rank") == 0 && step >= at && step < at + 3) delay(milliseconds);
    cl_mem from = buffers[step % 2], to = buffers[(step + 1) % 2];
    check(clEnqueueReadBuffer(queue, from, CL_TRUE, row, row, out, 0, NULL, NULL), "clEnqueueReadBuffer");
    check(clEnqueueReadBuffer(queue, from, CL_TRUE, kRows * row, row, out + kColumns, 0, NULL, NULL),
          "clEnqueueReadBuffer");
    MPI_Request requests[4];
    MPI_Irecv(in, kColumns, MPI_FLOAT, up, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in + kColumns, kColumns, MPI_FLOAT, down, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(out, kColumns, MPI_FLOAT, up, 2, MPI_COMM_WORLD, &requests[2]);
    if (late && strcmp(what, "message") == 0 && step == at) {
      tacho_range_push("pack");
      delay(milliseconds);
      tacho_range_pop();
    }
    MPI_Isend(out + kColumns, kColumns, MPI_FLOAT, down, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    if (up != MPI_PROC_NULL)
      check(clEnqueueWriteBuffer(queue, from, CL_TRUE, 0, row, in, 0, NULL, NULL), "clEnqueueWriteBuffer");
    if (down != MPI_PROC_NULL)
      check(clEnqueueWriteBuffer(queue, from, CL_TRUE, (kRows + 1) * row, row, in + kColumns, 0, NULL, NULL),
            "clEnqueueWriteBuffer");
    clSetKernelArg(kernel, 0, sizeof from, &from);
    clSetKernelArg(kernel, 1, sizeof to, &to);
    clSetKernelArg(kernel, 2, sizeof columns, &columns);
    check(clEnqueueNDRangeKernel(queue, kernel, 2, NULL, size, NULL, 0, NULL, NULL), "clEnqueueNDRangeKernel");
    check(clFinish(queue), "clFinish");
    if (step % 2 == 1) {
      if (late && strcmp(what, "collective") == 0 && step == at) delay(milliseconds);
      float change = out[0] - in[0];
      MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
    }
    tacho_range_pop();
  }
  check(clEnqueueReadBuffer(queue, buffers[steps % 2], CL_TRUE, 0, bytes, grid, 0, NULL, NULL), "clEnqueueReadBuffer");
  double sum = 0, all = 0;
  for (int i = kColumns; i < (kRows + 1) * kColumns; ++i) sum += grid[i];
  MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("sum %.3f\n", all);
  MPI_Finalize();
  return 0;
}
