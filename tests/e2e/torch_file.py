"""Makes files as torch.profiler writes them, by running a small model of a host thread and of a GPU's streams: a call takes time,
what it launches starts when its stream is free. Times are in us."""
import contextlib
import json

BF16, HALF, FLOAT = "c10::BFloat16", "c10::Half", "float"
WIDTH = {BF16: 2, HALF: 2, FLOAT: 4, "long int": 8}


class Gpu:
    """A product: its name in files, and rates of catalog/operators/products.yaml."""

    def __init__(self, name, units, memory, bf16, f32, bandwidth, hip=False):
        self.name, self.units, self.memory, self.hip = name, units, memory, hip
        self.bf16, self.f32, self.bandwidth = bf16 * 1e12, f32 * 1e12, bandwidth * 1e12


H100 = Gpu("NVIDIA H100 80GB HBM3", 132, 85_018_279_936, 989.4, 66.9, 3.35)
A100 = Gpu("NVIDIA A100-SXM4-80GB", 108, 85_095_874_560, 312, 19.5, 2.039)
MI300X = Gpu("AMD Instinct MI300X", 304, 205_822_885_888, 708, 163.4, 5.3, hip=True)
GPUS = (H100, A100, MI300X)


class TorchFile:
    def __init__(self, gpu=H100, rank=None, start=1000.0):
        self.gpu, self.rank = gpu, rank
        self.now = start
        self.free = {}  # by stream: when its last operation ends
        self.events, self.stack = [], []
        self.number = 0
        self.operations = 0

    # The host

    def host(self, us):
        self.now += us

    def add(self, category, name, start, duration, arguments=None, tid=1, pid=1):
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": round(start, 3), "dur": round(duration, 3),
                            "args": arguments or {}})

    @contextlib.contextmanager
    def span(self, category, name, arguments=None):
        start = self.now
        self.now += 0.25
        yield
        self.now += 0.25
        self.add(category, name, start, self.now - start, arguments)

    @contextlib.contextmanager
    def op(self, name, dims=(), types=(), concrete=None, strides=None, host=3.0):
        """An operator with its inputs; `host`: its own time before and after what it calls."""
        self.operations += 1
        number = self.operations
        dims = [list(d) for d in dims]
        arguments = {"External id": number, "Record function id": 0, "Input Dims": dims, "Input type": list(types),
                     "Input Strides": strides if strides is not None else [dense(d) for d in dims],
                     "Concrete Inputs": concrete if concrete is not None else [""] * len(dims)}
        start = self.now
        self.now += host / 2
        self.stack.append(number)
        yield
        self.stack.pop()
        self.now += host / 2
        self.add("cpu_op", name, start, self.now - start, arguments)

    def function(self, name):
        return self.span("python_function", name, {"Python id": 1, "Python parent id": None})

    def range(self, name):
        return self.span("user_annotation", name)

    def step(self, number):
        return self.range(f"ProfilerStep#{number}")

    def call(self, cuda, hip, us, correlation=0):
        arguments = {"External id": self.stack[-1]} if self.stack else {}
        if correlation:
            arguments["correlation"] = correlation
        self.add("cuda_runtime", hip if self.gpu.hip else cuda, self.now, us, arguments)
        self.now += us

    # The device

    def run(self, category, name, us, stream, call_us, cuda, hip, arguments, blocks=False):
        self.number += 1
        start = max(self.now + call_us / 2 + 2, self.free.get(stream, 0.0) + 0.8)
        self.free[stream] = start + us
        wait = max(call_us, self.free[stream] - self.now + 2) if blocks else call_us
        given = {"device": 0, "stream": stream, "correlation": self.number, **arguments}
        if self.stack:
            given["External id"] = self.stack[-1]
        self.call(cuda, hip, wait, self.number)
        self.add(category, name, start, us, given, tid=stream, pid=0)

    def kernel(self, name, us, groups=None, stream=7, call_us=4.0, block=256):
        grid = {} if groups is None else {"grid": [groups, 1, 1], "block": [block, 1, 1]}
        self.run("kernel", name, us, stream, call_us, "cudaLaunchKernel", "hipLaunchKernel", grid)

    def copy(self, kind, size, us, stream=7, call_us=6.0, pageable=False, blocks=False):
        ends = {"HtoD": "Memcpy HtoD (%s -> Device)", "DtoH": "Memcpy DtoH (Device -> %s)"}[kind] % ("Pageable" if pageable else "Pinned")
        self.run("gpu_memcpy", ends, us, stream, call_us, "cudaMemcpyAsync", "hipMemcpyWithStream", {"bytes": size}, blocks)

    def synchronize(self, device=False):
        """Waits until all that was launched has ended."""
        us = max(max(self.free.values(), default=0.0) - self.now, 0.0) + 4
        if device:
            self.call("cudaDeviceSynchronize", "hipDeviceSynchronize", us)
        else:
            self.call("cudaStreamSynchronize", "hipStreamSynchronize", us)

    # Operators as PyTorch has them

    def mm(self, m, k, n, share=0.6, kind=BF16, kernel=None, groups=None, name="aten::mm"):
        """A product that reaches `share` of its roof."""
        width = WIDTH[kind]
        peak = self.gpu.f32 if kind == FLOAT else self.gpu.bf16
        roof = max(2 * m * k * n / peak, width * (m * k + k * n + m * n) / self.gpu.bandwidth) * 1e6
        if kernel is None:
            kernel = "Cijk_Ailk_Bljk_BBS_BH_MT256x256x64_MI16x16x16x1_SN_GSU1" if self.gpu.hip else "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64"
        with self.op(name, [[m, k], [k, n]], [kind, kind]):
            self.kernel(kernel, roof / share, groups if groups is not None else 64 * self.gpu.units)
        return roof / share

    def add_(self, shape, share=0.85, kind=BF16):
        elements = 1
        for d in shape:
            elements *= d
        us = 3 * WIDTH[kind] * elements / self.gpu.bandwidth / share * 1e6
        with self.op("aten::add_", [shape, shape, []], [kind, kind, "Scalar"], ["", "", "1"]):
            self.kernel("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>", us, 64 * self.gpu.units)

    def elementwise(self, name, shape, operands=1, share=0.8, kind=BF16):
        """An operator that reads `operands` tensors of the shape and writes one."""
        size = WIDTH[kind]
        for d in shape:
            size *= d
        with self.op(name, [shape] * operands, [kind] * operands):
            self.kernel("void at::native::vectorized_elementwise_kernel<4, at::native::Functor>", (operands + 1) * size / self.gpu.bandwidth / share * 1e6,
                        64 * self.gpu.units)

    def bmm(self, batch, m, k, n, share=0.75, kind=BF16, name="aten::bmm"):
        size = WIDTH[kind] * batch * (m * k + k * n + m * n)
        roof = max(2 * batch * m * k * n / self.gpu.bf16, size / self.gpu.bandwidth) * 1e6
        dims = [[batch, m, k], [batch, k, n]]
        if name == "aten::baddbmm":
            dims = [[batch, m, n], *dims, [], []]
            roof = max(roof, (size + WIDTH[kind] * batch * m * n) / self.gpu.bandwidth * 1e6)
        with self.op(name, dims, [kind] * 3 + ["Scalar"] * 2 if len(dims) > 2 else [kind] * 2):
            self.kernel("Cijk_Ailk_Bljk_BBS_BH_MT256x256x64_MI16x16x16x1_SN_GSU1" if self.gpu.hip else
                        "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", roof / share, 64 * self.gpu.units)

    def softmax(self, shape, kind=BF16, dim=-1):
        with self.op("aten::softmax", [shape, [], []], [kind, "Scalar", ""], ["", str(dim), ""]), \
                self.op("aten::_softmax", [shape, [], []], [kind, "Scalar", "Scalar"], ["", str(dim), "False"]):
            size = WIDTH[kind]
            for d in shape:
                size *= d
            self.kernel("void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 10, false, false>",
                        2 * size / self.gpu.bandwidth / 0.8 * 1e6, 64 * self.gpu.units)

    def document(self):
        out = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": self.gpu.name, "numSms": self.gpu.units, "totalGlobalMem": self.gpu.memory}],
               "traceEvents": sorted(self.events, key=lambda event: (event["ts"], -event["dur"]))}
        if self.rank is not None:
            out["distributedInfo"] = {"backend": "nccl", "rank": self.rank[0], "world_size": self.rank[1]}
        return out

    def write(self, path):
        path.write_text(json.dumps(self.document()))
        return path


def dense(dims):
    steps, step = [], 1
    for d in reversed(dims):
        steps.insert(0, step)
        step *= d
    return steps


def train(file, steps=10, layers=6, before=None, during=None, after=None):
    """A healthy training loop: the host runs ahead of the GPU, products and elementwise work are near their roofs. The hooks plant
    what they do at the beginning of a step, after each layer, and at a step's end; they get the number of the step."""
    for number in range(steps):
        with file.step(number):
            if before:
                before(number)
            for _ in range(layers):
                file.mm(8192, 4096, 4096)
                file.add_([8192, 4096])
                if during:
                    during(number)
            if after:
                after(number)
    file.synchronize(device=True)
    return file
