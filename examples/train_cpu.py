#!/usr/bin/env python3
"""Trains a small network on the CPU, to show call-stack sampling of PyTorch, from the line of Python to the kernel.

Prints milliseconds per step (median). With --opencl each step also scales the weights' gradient norm on an OpenCL device
(python3-pyopencl), so that Python lines, API calls and kernels meet in one trace.
"""
import argparse
import statistics
import sys
import time


def make_data(torch, samples, features):
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(samples, features, generator=generator)
    target = inputs.sin().sum(dim=1, keepdim=True)
    return inputs, target


def forward(model, inputs):
    return model(inputs)


def backward(loss):
    loss.backward()


def update(optimizer):
    optimizer.step()
    optimizer.zero_grad()


class OnDevice:
    """A reduction on an OpenCL device, launched from two lines of this class."""

    SOURCE = """
    kernel void square(global const float* x, global float* y) { size_t i = get_global_id(0); y[i] = x[i] * x[i]; }
    kernel void scale(global float* y, float f) { size_t i = get_global_id(0); for (int k = 0; k < 200; ++k) y[i] = y[i] * f + 1e-6f; }
    """

    def __init__(self, size):
        import numpy
        import pyopencl
        self.numpy, self.cl = numpy, pyopencl
        self.context = pyopencl.create_some_context(interactive=False)
        self.queue = pyopencl.CommandQueue(self.context, properties=pyopencl.command_queue_properties.PROFILING_ENABLE)
        self.program = pyopencl.Program(self.context, self.SOURCE).build()
        self.square, self.scale = self.program.square, self.program.scale
        flags = pyopencl.mem_flags
        self.source = pyopencl.Buffer(self.context, flags.READ_ONLY, 4 * size)
        self.result = pyopencl.Buffer(self.context, flags.READ_WRITE, 4 * size)
        self.size = size

    def norm(self, values):
        host = self.numpy.ascontiguousarray(values[:self.size], dtype=self.numpy.float32)
        self.cl.enqueue_copy(self.queue, self.source, host)
        self.square(self.queue, (self.size,), None, self.source, self.result)
        self.scale(self.queue, (self.size,), None, self.result, self.numpy.float32(0.999))
        out = self.numpy.empty_like(host)
        self.cl.enqueue_copy(self.queue, out, self.result)
        return float(out.sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--threads", type=int, default=0, help="torch's threads; 0 = its own choice")
    parser.add_argument("--opencl", action="store_true")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("train_cpu.py: this Python has no torch; on Debian: apt install python3-torch, and run /usr/bin/python3")
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    layers = []
    for _ in range(arguments.layers):
        layers += [torch.nn.Linear(arguments.width, arguments.width), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(arguments.width, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    inputs, target = make_data(torch, arguments.batch, arguments.width)
    device = OnDevice(arguments.width * arguments.width) if arguments.opencl else None

    times, loss, norm = [], None, 0.0
    for _ in range(arguments.steps):
        begin = time.perf_counter()
        loss = torch.nn.functional.mse_loss(forward(model, inputs), target)
        backward(loss)
        if device is not None:
            norm = device.norm(model[0].weight.grad.reshape(-1).numpy())
        update(optimizer)
        times.append(time.perf_counter() - begin)
    print(f"train_cpu: {arguments.steps} steps: {1000 * statistics.median(times):.3f} ms/step, loss {loss.item():.6f}"
          + (f", norm {norm:.4f}" if device is not None else ""))


if __name__ == "__main__":
    main()
