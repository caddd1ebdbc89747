"""Trains a small network in a CUDA graph of PyTorch; prints the losses. usage: torch_graph.py [STEPS]"""
import sys

import torch

torch.manual_seed(1)
torch.backends.cuda.matmul.allow_tf32 = False
network = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
inputs, target = torch.randn(64, 256, device="cuda"), torch.randint(0, 10, (64,), device="cuda")


def step():
    optimizer.zero_grad(set_to_none=False)
    loss = torch.nn.functional.cross_entropy(network(inputs), target)
    loss.backward()
    optimizer.step()
    return loss


side = torch.cuda.Stream()
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = step()
for i in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5):
    graph.replay()
    print(f"step {i}: {loss.item():.6f}")
