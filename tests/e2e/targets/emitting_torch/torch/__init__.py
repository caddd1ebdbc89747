"""Of PyTorch for a GPU what --torch-trace meets: modules, functions, optimizers with their hooks, graphs, and an emitter that
writes ranges around operators, one a thread, with the shapes of inputs if it is asked to. An operator is a kernel of OpenCL's."""
import ctypes
import sys
import threading
import types

import pyopencl

__version__ = "2.99.0"
version = types.SimpleNamespace(cuda="13.0", hip=None)
_library = ctypes.PyDLL(None)
_local = threading.local()
_queue = pyopencl.CommandQueue(pyopencl.create_some_context(interactive=False))
_kernels = pyopencl.Program(_queue.context, "kernel void my_sgemm(global float* x) { for (int i = 0; i < 2000; ++i) x[0] += i; }").build()
_buffer = pyopencl.Buffer(_queue.context, pyopencl.mem_flags.READ_WRITE, 4)


def _made(name, **values):
    module = sys.modules["torch." + name] = types.ModuleType("torch." + name)
    vars(module).update(values)
    return module


class ProfilerConfig:
    def __init__(self, state, shapes, *more):
        self.shapes = shapes


def _enable_profiler(config, activities):
    if getattr(_local, "config", None) is not None:
        raise RuntimeError("Profiler is already enabled on this thread.")
    _local.config = config


def _disable_profiler():
    _local.config = None


def mm(rows):
    """An operator of so many rows."""
    config = getattr(_local, "config", None)
    if config is not None:
        sizes = b", sizes = [[%d, 256], [256, 32]], input_op_ids = [(1,0)]" % rows if config.shapes else b""
        _library.tacho_range_push(b"aten::mm, op_id = 7" + sizes)
    _kernels.my_sgemm(_queue, (1,), None, _buffer)
    _queue.finish()
    if config is not None:
        _library.tacho_range_pop()


def inherit(config):
    """As torch's threads of a backward pass: they emit as the thread does that asked for the pass."""
    _local.config = config


def emitter():
    return getattr(_local, "config", None)


def linear(rows):
    mm(rows)


def backward():
    mm(1024)


class Module:
    def __call__(self, *args):
        return self.forward(*args)

    def named_modules(self):
        return [("", self)]


class Linear(Module):
    def forward(self, rows):
        nn.functional.linear(rows)


class Optimizer:
    hooks = []

    def __init__(self):
        self.param_groups, self.state = [], {}

    def step(self):
        for hook in self.hooks:
            hook(self, (), {})


class CUDAGraph:
    def capture_begin(self):
        pass

    def capture_end(self):
        pass


linear.__module__ = "torch.nn.functional"
_profiler = _made("autograd.profiler", _enable_profiler=_enable_profiler, _disable_profiler=_disable_profiler,
                  _prepare_profiler=lambda *args: None)
autograd = _made("autograd", ProfilerState=types.SimpleNamespace(NVTX=3), ProfilerConfig=ProfilerConfig, profiler=_profiler,
                 _enable_profiler=_enable_profiler, _disable_profiler=_disable_profiler, backward=backward)
_made("_C", _profiler=_made("_C._profiler", _ExperimentalConfig=lambda: None))
_C = sys.modules["torch._C"]
nn = _made("nn", Module=Module, functional=_made("nn.functional", linear=linear))
_made("optim")
_made("optim.optimizer", register_optimizer_step_post_hook=Optimizer.hooks.append)
cuda = _made("cuda", CUDAGraph=CUDAGraph)
