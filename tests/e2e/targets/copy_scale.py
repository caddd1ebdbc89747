"""A pyopencl program: two kernels, eight times each."""
import numpy
import pyopencl as cl

context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
source = numpy.arange(4096, dtype=numpy.float32)
result = numpy.empty_like(source)
flags = cl.mem_flags
a = cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=source)
b = cl.Buffer(context, flags.READ_WRITE, result.nbytes)
program = cl.Program(context, """
__kernel void copy_values(__global const float* a, __global float* b) { b[get_global_id(0)] = a[get_global_id(0)]; }
__kernel void scale_values(__global float* b) { b[get_global_id(0)] *= 2; }
""").build()
for _ in range(8):
    program.copy_values(queue, source.shape, (64,), a, b)
    program.scale_values(queue, source.shape, (64,), b)
cl.enqueue_copy(queue, result, b)
queue.finish()
print("ok" if numpy.allclose(result, source * 2) else "wrong")
