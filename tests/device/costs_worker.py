"""Loops whose cost under a profiler costs.py measures. A line of input names a loop, the answer is its time in seconds.

usage: costs_worker.py [torch|proton]     the profiler that this process itself starts around each loop
"""
import contextlib
import os
import sys
import tempfile
import time

import torch

WITH = sys.argv[1] if len(sys.argv) > 1 else "nothing"


@contextlib.contextmanager
def nothing():
    yield


@contextlib.contextmanager
def torch_profiler():
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
    profiler.start()
    try:
        yield
    finally:
        profiler.stop()


@contextlib.contextmanager
def proton_profiler():
    import triton.profiler as proton
    proton.start(os.path.join(tempfile.gettempdir(), f"costs-{os.getpid()}"), backend="cupti")
    try:
        yield
    finally:
        proton.finalize()


def timed(work, times, around):
    torch.cuda.synchronize()
    with around():
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(times):
            work()
        torch.cuda.synchronize()
        return time.perf_counter() - begin


def captured(body):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            body()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        body()
    return graph.replay


def decode_loop():
    """One token of a small decoder of twelve layers, nine kernels each."""
    width, layers = 1024, 12
    half = {"device": "cuda", "dtype": torch.float16}
    state = torch.randn(1, width, **half)
    weights = [[torch.randn(width, n, **half) * 0.01 for n in (3 * width, width, 4 * width)] +
               [torch.randn(4 * width, width, **half) * 0.01] for _ in range(layers)]

    def token():
        hidden = state
        for qkv, out, up, down in weights:
            attention = (hidden @ qkv)[:, :width].tanh()
            hidden = hidden + attention @ out
            hidden = hidden + torch.relu(hidden @ up) @ down
            hidden = torch.nn.functional.layer_norm(hidden, (width,))
        state.copy_(hidden)

    return captured(token)


def small_graph():
    """Eighteen products of some microseconds each."""
    left = torch.randn(512, 512, device="cuda", dtype=torch.float16)
    right, out = torch.randn_like(left), torch.empty_like(left)

    def body():
        for _ in range(18):
            torch.mm(left, right, out=out)

    return captured(body)


def tiny_graph():
    values = torch.zeros(64, device="cuda")

    def body():
        for _ in range(20):
            values.add_(1)

    return captured(body)


def torch_launches():
    values = torch.zeros(64, device="cuda")
    return lambda: values.add_(1)


def triton_launches():
    import triton_kernel
    values = torch.zeros(64, device="cuda")
    kernel = triton_kernel.add_one[(1,)]
    return lambda: kernel(values, BLOCK=64)


LOOPS = {"decode": (decode_loop, 600), "small_graph": (small_graph, 2000), "tiny_graph": (tiny_graph, 3000),
         "torch_launches": (torch_launches, 30000), "triton_launches": (triton_launches, 15000)}


def main():
    around = {"nothing": nothing, "torch": torch_profiler, "proton": proton_profiler}[WITH]
    if WITH == "torch":  # before CUDA starts, as the others
        with around():
            torch.zeros(1, device="cuda")
    torch.zeros(1, device="cuda")
    sys.path.insert(0, write_triton_kernel())
    prepared = {}
    for line in sys.stdin:
        name = line.strip()
        make, times = LOOPS[name]
        if name not in prepared:
            prepared[name] = make()
            for _ in range(20):
                prepared[name]()
            torch.cuda.synchronize()
        print(timed(prepared[name], times, around), flush=True)


def write_triton_kernel():
    """Triton reads the source of its kernels: it needs a file of its own."""
    folder = tempfile.mkdtemp(prefix="costs_")
    with open(os.path.join(folder, "triton_kernel.py"), "w") as file:
        file.write("import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
                   "def add_one(values, BLOCK: tl.constexpr):\n"
                   "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
                   "    tl.store(values + at, tl.load(values + at) + 1.0)\n")
    return folder


main()
