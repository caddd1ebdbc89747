// A rank of an MPI job: rank R waits for all others, launches 2 + R kernels, and waits again. Needs no headers of MPI: Open MPI's
// functions and its handle of MPI_COMM_WORLD.
#include "bed.h"

extern "C" {
int MPI_Init(int*, char***);
int MPI_Comm_rank(void*, int*);
int MPI_Barrier(void*);
int MPI_Finalize();
extern char ompi_mpi_comm_world[];
}

__host__ __device__ void fill_item(uint32_t at, float* out, float value, uint32_t size) {
  if (at < size) out[at] = value;
}
BED_KERNEL(fill, (float* out, float value, uint32_t size), (out, value, size))

int main(int argc, char** argv) {
  int rank = -1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(ompi_mpi_comm_world, &rank);
  MPI_Barrier(ompi_mpi_comm_world);
  constexpr uint32_t kSize = 1 << 14;
  float* out = nullptr;
  HIP(hipMalloc(&out, kSize * sizeof(float)));
  for (int i = 0; i < 2 + rank; ++i) fill<<<kSize / 64, 64>>>(out, static_cast<float>(i), kSize);
  HIP(hipDeviceSynchronize());
  MPI_Barrier(ompi_mpi_comm_world);
  MPI_Finalize();
  printf("rank %d\n", rank);
  return 0;
}
