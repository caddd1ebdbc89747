"""FLOPs by operator of MLP, CNN, transformer, GPT-2 and ResNet-50 training steps: tacho's on a file of torch.profiler against
torch.utils.flop_counter on the same step; and the roof's percentage of a large product against its time alone. See efficiency.sh."""
import argparse
import csv
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from torch.utils.flop_counter import FlopCounterMode

GROUPS = (("backward convolution", lambda n: "convolution_backward" in n), ("convolution", lambda n: "convolution" in n),
          ("backward attention", lambda n: "attention" in n and "backward" in n), ("attention", lambda n: "attention" in n),
          ("addmm", lambda n: n.endswith("addmm")), ("baddbmm", lambda n: n.endswith("baddbmm")), ("bmm", lambda n: n.endswith("bmm")),
          ("mm", lambda n: n.endswith("mm")))


def group_of(name):
    name = name.split("::")[-1].replace("aten.", "").split(".")[0]
    return next((group for group, fits in GROUPS if fits(name)), None)


def models():
    """{name: function that runs a training step}."""
    torch.manual_seed(1)

    def stepper(network, make):
        network = network.cuda().train()
        inputs = make()

        def step():
            out = network(*inputs)
            out = out if isinstance(out, torch.Tensor) else out[0]
            out.float().square().mean().backward()
        return step

    yield "MLP", stepper(torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1000)),
                         lambda: (torch.randn(512, 1024, device="cuda"),))
    # Without groups: torch's counter counts the weights' gradient of a grouped convolution as if it had one group.
    yield "CNN", stepper(torch.nn.Sequential(torch.nn.Conv2d(3, 64, 7, 2, 3), torch.nn.ReLU(), torch.nn.Conv2d(64, 128, 3, 1, 1),
                                             torch.nn.ReLU(), torch.nn.ConvTranspose2d(128, 32, 3, 2, 1)),
                         lambda: (torch.randn(16, 3, 128, 128, device="cuda"),))
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True)
    yield "transformer", stepper(torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).half(),
                                 lambda: (torch.randn(8, 256, 512, device="cuda", dtype=torch.float16),))
    try:
        import transformers
        network = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=4, use_cache=False, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)).bfloat16()
        yield "GPT-2", stepper(network, lambda: (torch.randint(0, 50000, (4, 512), device="cuda"),))
    except Exception as problem:  # a version of the library that cannot build it offline
        print(f"GPT-2 was not built: {problem!r}")
    try:
        import torchvision
        yield "ResNet-50", stepper(torchvision.models.resnet50().half(), lambda: (torch.randn(16, 3, 224, 224, device="cuda", dtype=torch.float16),))
    except Exception as problem:
        print(f"ResNet-50 was not built: {problem!r}")


def rows_of(tacho, file):
    text = subprocess.run([tacho, "stats", file, "--by", "operator", "--input-shapes", "--top", "0", "--output-format", "csv"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return list(csv.DictReader(io.StringIO(text)))


def profiled(step, path, steps=1):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA], record_shapes=True) as profiler:
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
    profiler.export_chrome_trace(path)


def bias_adds(row):
    """torch's counter leaves out the additions of a bias."""
    dims = json.loads(row["InputShapes"])
    return int(row["Calls"]) * dims[1][0] * dims[2][1] if row["Name"] == "aten::addmm" else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--out", required=True)
    given = parser.parse_args()
    tacho = os.path.join(given.build, "bin", "tacho")
    failed = 0
    folder = tempfile.mkdtemp(prefix="efficiency_")
    for name, step in models():
        for _ in range(3):
            step()
        with FlopCounterMode(display=False) as counter:
            step()
        theirs = {}
        for operator, flops in counter.get_flop_counts()["Global"].items():
            group = group_of(str(operator))
            theirs[group] = theirs.get(group, 0) + flops
        path = os.path.join(folder, f"{name}.json")
        profiled(step, path)
        mine, counted = {}, 0
        for row in rows_of(tacho, path):
            group = group_of(row["Name"]) if row["Flops"] else None
            if group is not None:
                mine[group] = mine.get(group, 0) + float(row["Flops"]) - bias_adds(row)
                counted += 1
        for group in sorted(set(theirs) | set(mine)):
            a, b = mine.get(group), theirs.get(group)
            if b is not None and name == "GPT-2" and "attention" in group:
                b *= (512 + 1) / (2 * 512)  # torch's counter leaves out the causal mask
            if a is None or b is None:
                print(f"      {name:12} {group:22} tacho {a}, torch {b}: not compared")
                continue
            off = abs(a / b - 1)
            failed += off > 0.001
            print(f"{'ok' if off <= 0.001 else 'FAILED':>6} {name:12} {group:22} {a:.6g} of {b:.6g} FLOP ({100 * (a / b - 1):+.3f} %)", flush=True)
    left = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    right = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)

    def alone():
        time.sleep(1)  # the profiler's files take as long: the same clocks
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(20):
            left @ right
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / 20

    alone()
    path, ratios = os.path.join(folder, "gemm.json"), []
    for _ in range(7):
        before = alone()
        time.sleep(1)
        profiled(lambda: [left @ right for _ in range(20)], path)
        after = alone()
        row = next(row for row in rows_of(tacho, path) if row["Name"] == "aten::mm")
        ratios.append(float(row["TeraflopsPerSecond"]) / (2 * 8192**3 / ((before + after) / 2 / 1e3) / 1e12))
    ratio = statistics.median(ratios)
    failed += abs(ratio - 1) > 0.02
    print(f"{'ok' if abs(ratio - 1) <= 0.02 else 'FAILED':>6} 8192 x 8192 x 8192 in bf16: {row['TeraflopsPerSecond'][:6]} TFLOP/s, {row['PercentOfRoof'][:5]} % of the "
          f"roof; rate / rate alone {ratio:.4f} (median of 7)")
    return 1 if failed else 0


sys.exit(main())
