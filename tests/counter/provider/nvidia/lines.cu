// The module whose source lines samples_test.cpp looks up: nvcc -arch=sm_90 -lineinfo -cubin lines.cu
__global__ void axpy(float a, const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
