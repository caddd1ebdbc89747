"""A model of PyTorch whose layers run OpenCL kernels in forward and backward, so that a machine without a GPU has operators
that launch work. usage: torch_opencl.py [STEPS]; prints the losses' bits."""
import sys

import numpy
import pyopencl as cl
import torch

context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
queue = cl.CommandQueue(context)
program = cl.Program(context, """
kernel void scale(global float *x, float by) { x[get_global_id(0)] *= by; }
kernel void scale_backward(global float *x, float by) { x[get_global_id(0)] *= by; }
kernel void shift(global float *x, float by) { x[get_global_id(0)] += by; }
""").build()
scale, scale_backward, shift = (cl.Kernel(program, name) for name in ("scale", "scale_backward", "shift"))


def on_device(kernel, tensor, by):
    values = tensor.detach().numpy().astype(numpy.float32).ravel().copy()
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=values)
    kernel(queue, (values.size,), None, buffer, numpy.float32(by))
    cl.enqueue_copy(queue, values, buffer)
    return torch.from_numpy(values.reshape(tensor.shape))


class ScaleFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, by):
        ctx.by = by
        return on_device(scale, x, by)

    @staticmethod
    def backward(ctx, grad):
        return on_device(scale_backward, grad, ctx.by), None


class Scale(torch.nn.Module):
    def __init__(self, by):
        super().__init__()
        self.by = by

    def forward(self, x):
        return ScaleFunction.apply(x, self.by)


class Shift(torch.nn.Module):
    def forward(self, x):
        with torch.no_grad():
            moved = on_device(shift, x, 1.0)
        return x + (moved - x)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 2, 3)
        self.first = Scale(2.0)
        self.layers = torch.nn.Sequential(Scale(3.0), Shift())
        self.head = torch.nn.Linear(2 * 6 * 6, 4)

    def forward(self, x):
        x = torch.nn.functional.relu(self.conv(x))
        x = self.layers(self.first(x))
        return self.head(x.flatten(1))


def main():
    torch.manual_seed(1)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.utils.data.DataLoader([(torch.randn(1, 8, 8), i % 4) for i in range(8)], batch_size=4)
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    for step in range(steps):
        for x, y in data:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            print(loss.item().hex())


if __name__ == "__main__":
    main()
