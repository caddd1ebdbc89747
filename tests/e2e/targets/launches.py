"""Kernels launched from known lines of Python (python3-pyopencl), for tests of call-stack attribution."""
import sys

import numpy
import pyopencl as cl

SOURCE = """
kernel void work(global float* x, int rounds) {
  size_t i = get_global_id(0);
  float v = x[i];
  for (int k = 0; k < rounds; ++k) v = v * 0.999f + 0.001f;
  x[i] = v;
}
"""


def heavy(queue, kernel, buffer, count):
    kernel(queue, (count,), None, buffer, numpy.int32(4000))  # heavy


def light(queue, kernel, buffer, count):
    kernel(queue, (count,), None, buffer, numpy.int32(1000))  # light


def copy(queue, buffer, host):
    cl.enqueue_copy(queue, host, buffer)  # copy


def main():
    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    kernel = cl.Program(context, SOURCE).build().work
    count = 4096
    host = numpy.ones(count, dtype=numpy.float32)
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=host)
    for _ in range(int(sys.argv[1])):
        heavy(queue, kernel, buffer, count)
        light(queue, kernel, buffer, count)
        copy(queue, buffer, host)
    queue.finish()
    print("done")


main()
