"""Launches three kernels by hand, each from a line of its own; prints "FILE:LINE KERNEL LAUNCHES" for each.

usage: hand_launched.py triton|cupy|pyopencl     pyopencl runs on any machine with an OpenCL device
"""
import inspect
import pathlib
import sys

SIZE, LAUNCHES = 1 << 20, {"add_one": 20, "times_two": 30, "minus_three": 40}
BODIES = {"add_one": "+ 1.0f", "times_two": "* 2.0f", "minus_three": "- 3.0f"}


def here(kernel):
    """Says that the line below the caller's launches `kernel`."""
    caller = inspect.currentframe().f_back
    print(f"{pathlib.Path(__file__).name}:{caller.f_lineno + 1} {kernel} {LAUNCHES[kernel]}")


def launch_all(launch):
    for i in range(LAUNCHES["add_one"]):
        if i == 0:
            here("add_one")
        launch("add_one")
    for i in range(LAUNCHES["times_two"]):
        if i == 0:
            here("times_two")
        launch("times_two")
    for i in range(LAUNCHES["minus_three"]):
        if i == 0:
            here("minus_three")
        launch("minus_three")


def of_triton():
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def add_one(values, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(values + at, tl.load(values + at) + 1.0)

    @triton.jit
    def times_two(values, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(values + at, tl.load(values + at) * 2.0)

    @triton.jit
    def minus_three(values, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(values + at, tl.load(values + at) - 3.0)

    kernels = {"add_one": add_one, "times_two": times_two, "minus_three": minus_three}
    values = torch.zeros(SIZE, device="cuda")
    launch_all(lambda name: kernels[name][(SIZE // 1024,)](values, BLOCK=1024))
    torch.cuda.synchronize()


def of_cupy():
    import cupy

    source = "".join(f'extern "C" __global__ void {name}(float* v) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; v[i] = v[i] {body}; }}\n'
                     for name, body in BODIES.items())
    module = cupy.RawModule(code=source)
    kernels = {name: module.get_function(name) for name in BODIES}
    values = cupy.zeros(SIZE, dtype=cupy.float32)
    launch_all(lambda name: kernels[name]((SIZE // 256,), (256,), (values,)))
    cupy.cuda.Device().synchronize()


def of_pyopencl():
    import pyopencl

    context = pyopencl.create_some_context(interactive=False)
    queue = pyopencl.CommandQueue(context)
    source = "".join(f"__kernel void {name}(__global float* v) {{ int i = get_global_id(0); v[i] = v[i] {body}; }}\n"
                     for name, body in BODIES.items())
    program = pyopencl.Program(context, source).build()
    kernels = {name: pyopencl.Kernel(program, name) for name in BODIES}
    values = pyopencl.Buffer(context, pyopencl.mem_flags.READ_WRITE, SIZE * 4)
    launch_all(lambda name: kernels[name](queue, (SIZE,), (256,), values))
    queue.finish()


if __name__ == "__main__":
    ways = {"triton": of_triton, "cupy": of_cupy, "pyopencl": of_pyopencl}
    if len(sys.argv) != 2 or sys.argv[1] not in ways:
        sys.exit(__doc__)
    ways[sys.argv[1]]()
