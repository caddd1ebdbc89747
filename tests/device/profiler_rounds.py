"""Switches recording on and off many times and launches fifty kernels in each round; prints nothing. usage: profiler_rounds.py [ROUNDS]"""
import sys

import torch

runtime = torch.cuda.cudart()
values = torch.zeros(1 << 20, device="cuda")
torch.cuda.synchronize()
for number in range(int(sys.argv[1]) if len(sys.argv) > 1 else 100):
    runtime.cudaProfilerStart()
    torch.cuda.nvtx.range_push(f"round {number}")
    for _ in range(50):
        values.add_(1)
    torch.cuda.synchronize()
    torch.cuda.nvtx.range_pop()
    runtime.cudaProfilerStop()
    for _ in range(10):
        values.mul_(1)
    torch.cuda.synchronize()
