"""Training steps on every GPU of the host, for nccl_ranks.py: DDP or FSDP of a small transformer, with delays planted in rank 1.

usage: torchrun --nproc-per-node N nccl_train.py ddp|fsdp [--profile FILE]
Step 6: rank 1 computes more. Step 9: rank 1's host waits for its GPU and sleeps 15 ms. Steps are NVTX ranges. Prints, on rank 0, the bytes
of the gradients. --profile: rank 0 counts its collective kernels with torch.profiler and writes them to FILE as JSON.
"""
import collections
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

STEPS, WARMUP = 12, 3


def main():
    kind, profile = sys.argv[1], sys.argv[3] if "--profile" in sys.argv else None
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"])))
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dropout=0.0)
    model = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda()
    bytes_of_gradients = sum(p.numel() * p.element_size() for p in model.parameters())
    if kind == "ddp":
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    else:
        from torch.distributed.fsdp import fully_shard
        for part in model.layers:
            fully_shard(part)
        fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    x = torch.randn(8, 512, 1024, device="cuda")
    more = torch.randn(4096, 4096, device="cuda")

    def step(number):
        torch.cuda.nvtx.range_push(f"step {number}")
        if number == 9 and rank == 1:
            torch.cuda.synchronize()  # else the GPU has work queued for longer than that
            time.sleep(0.015)
        if number == 6 and rank == 1:
            for _ in range(40):
                torch.mm(more, more)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.nvtx.range_pop()

    for _ in range(WARMUP):
        step(-1)
    torch.cuda.synchronize()
    dist.barrier()
    if profile and rank == 0:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            for number in range(STEPS):
                step(number)
            torch.cuda.synchronize()
        counts = collections.Counter(event.name.split("(")[0] for event in profiler.events() if "ncclDevKernel" in event.name or "ncclSym" in event.name)
        with open(profile, "w") as file:
            json.dump(counts, file)
    else:
        for number in range(STEPS):
            step(number)
        torch.cuda.synchronize()
    dist.barrier()
    if rank == 0:
        print("gradients", bytes_of_gradients, "nccl", ".".join(map(str, torch.cuda.nccl.version())))
    dist.destroy_process_group()


main()
