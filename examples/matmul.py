#!/usr/bin/env python3
"""Multiplies two matrices on an OpenCL device, first as one would write it down, then by tiles in local memory.

    tacho profile --name matmul --device virtual -- python3 matmul.py
    tacho analyze -p workloads/matmul/virtual

The first kernel gives neighbouring work-items neighbouring rows, so their accesses lie a row apart.
"""
import sys

import numpy
import pyopencl

SIZE, TILE = 128, 16
SOURCE = """
__kernel void matmul_rows(__global const float* a, __global const float* b, __global float* c, int n) {
  const int row = get_global_id(0), column = get_global_id(1);
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}
__kernel void matmul_tiles(__global const float* a, __global const float* b, __global float* c, int n) {
  __local float left[TILE][TILE], right[TILE][TILE];
  const int x = get_local_id(0), y = get_local_id(1), column = get_global_id(0), row = get_global_id(1);
  float sum = 0;
  for (int start = 0; start < n; start += TILE) {
    left[y][x] = a[row * n + start + x];
    right[y][x] = b[(start + y) * n + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < TILE; ++k) sum = fma(left[y][k], right[k][x], sum);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[row * n + column] = sum;
}
"""


def main():
    context = pyopencl.create_some_context(interactive=False)
    queue = pyopencl.CommandQueue(context)
    program = pyopencl.Program(context, SOURCE).build(options=[f"-DTILE={TILE}"])
    generator = numpy.random.default_rng(1)
    a, b = (generator.random((SIZE, SIZE), dtype=numpy.float32) for _ in range(2))
    flags = pyopencl.mem_flags
    left, right = (pyopencl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=matrix) for matrix in (a, b))
    product = numpy.empty_like(a)
    result = pyopencl.Buffer(context, flags.WRITE_ONLY, product.nbytes)
    for kernel in (program.matmul_rows, program.matmul_tiles):
        kernel(queue, (SIZE, SIZE), (TILE, TILE), left, right, result, numpy.int32(SIZE))
        pyopencl.enqueue_copy(queue, product, result)
        if not numpy.allclose(product, a @ b, rtol=1e-4):
            sys.exit(f"{kernel.function_name}: the product is wrong")
        print(f"{kernel.function_name}: right")


if __name__ == "__main__":
    main()
