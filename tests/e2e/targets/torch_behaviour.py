"""Does with PyTorch everything that a tracer could break; prints results that must stay bit for bit. Ends by os._exit(3)."""
import copy
import inspect
import io
import multiprocessing
import os
import pickle
import sys
import threading

import torch
import torch.fx
import torch.nn as nn
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint


class Recursive(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.linear, self.depth = nn.Linear(4, 4), depth

    def forward(self, x):
        if self.depth == 0:
            return self.linear(x)
        self.depth -= 1
        try:
            return self(F.gelu(x))
        finally:
            self.depth += 1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.pool, self.norm = nn.Conv2d(1, 2, 3), nn.MaxPool2d(2), nn.BatchNorm2d(2)

    def forward(self, x):
        return F.dropout(F.relu(self.norm(self.pool(self.conv(x)))), 0.5, False).flatten(1)


class Told(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        for name in ("relu", "gelu", "linear", "conv2d"):
            if function is getattr(F, name):
                print("told of", name)
        return super().__torch_function__(function, types, args, kwargs or {})


class Counting(TorchDispatchMode):
    calls = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        Counting.calls += 1
        return function(*args, **(kwargs or {}))


class Fails(nn.Module):
    def forward(self, x):
        raise ValueError("as planned")


class Generates(nn.Module):
    def forward(self, x):
        for i in range(3):
            yield F.relu(x) + i


def bits(tensor):
    return tensor.sum().item().hex()


def child(queue):
    queue.put(bits(nn.Linear(2, 2)(torch.zeros(1, 2)) * 0))


def main():
    torch.manual_seed(0)
    model, x = Recursive(5), torch.randn(3, 4)
    print("recursion", bits(model(x)))
    print("deepcopy", bits(copy.deepcopy(model)(x)))
    print("pickle", bits(pickle.loads(pickle.dumps(model))(x)))
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    loaded = torch.load(file) if torch.__version__.startswith("1.") else torch.load(file, weights_only=False)
    print("torch.save", bits(loaded(x)))

    net, y = Net(), torch.randn(2, 1, 8, 8)
    scripted = torch.jit.script(net)
    print("jit.script", bits(scripted(y)), scripted.code)
    print("jit.trace", bits(torch.jit.trace(net.eval(), y)(y)))
    traced = torch.fx.symbolic_trace(net)
    print("fx", bits(traced(y)), traced.code)
    told = x.as_subclass(Told)
    F.relu(told), F.gelu(told), nn.Linear(4, 4)(told)
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    print("encoder", getattr(encoder, "activation_relu_or_gelu", None), bits(encoder(torch.ones(1, 3, 8))))
    with Counting():
        model(x)
    print("dispatched", Counting.calls)
    try:
        nn.Sequential(Fails())(x)
    except ValueError as error:
        print(repr(error))
    print("generator", [bits(part) for part in Generates()(x)])

    results = {}
    threads = [threading.Thread(target=lambda i=i: results.update({i: bits(model.linear(x + i))})) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("threads", sorted(results.items()))
    z = x.clone().requires_grad_()
    checkpoint(model, z).sum().backward()
    print("checkpoint", bits(z.grad))
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=child, args=(queue,))
        process.start()
        print(method, queue.get())
        process.join()
    hooked = nn.Linear(4, 4)
    hooked.register_forward_hook(lambda *_: print("hook"))
    hooked(x)
    for function in (F.relu, F.conv2d):
        print(function.__name__, pickle.loads(pickle.dumps(function)) is function, copy.deepcopy(function) is function)
    print(inspect.signature(F.relu), inspect.getsource(F.relu).split("\n")[0], nn.Module.__call__.__qualname__)
    with torch.profiler.profile() as profile:
        model(x)
    print("profiler", sorted(each.key for each in profile.key_averages()))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(3)
