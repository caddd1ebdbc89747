"""Verdicts for tacho roofline on an NVIDIA GPU: reads the JSON of the run and what PyTorch measured beside it.

usage: cuda_roofline.py gemm FILE          measure cuBLAS's BF16 product (and a copy) and write FILE
       cuda_roofline.py judge ROOFLINE.json BEFORE.json AFTER.json SECONDS
"""
import json
import sys


def gemm(path):
    import torch

    n = 8192
    a = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
    events = [torch.cuda.Event(enable_timing=True) for _ in range(51)]
    for _ in range(20):
        c = a @ b
    events[0].record()
    for event in events[1:]:
        c = a @ b
        event.record()
    torch.cuda.synchronize()
    rates = [2.0 * n**3 / events[i].elapsed_time(events[i + 1]) * 1e-9 for i in range(50)]
    x = torch.empty(1 << 30, dtype=torch.float32, device="cuda").normal_()
    y = torch.empty_like(x)
    for _ in range(3):
        y.copy_(x)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(10):
        y.copy_(x)
    end.record()
    torch.cuda.synchronize()
    copy = 10 * 2 * x.numel() * 4 / begin.elapsed_time(end) * 1e-6
    del c
    with open(path, "w") as file:
        json.dump({"tflops": sum(rates) / len(rates), "low": min(rates), "high": max(rates), "copy": copy}, file)


def judge(roofline, before, after, seconds):
    device = json.load(open(roofline))["devices"][0]
    ceilings = {c["column"]: c for c in device["ceilings"]}
    references = [json.load(open(f)) for f in (before, after)]
    blas = sum(r["tflops"] for r in references) / 2
    failed = 0

    def row(name, value, wanted, good):
        nonlocal failed
        failed += not good
        print(f"{'PASS' if good else 'FAIL'}  {name:<52} {value:<34} {wanted}")

    print(f"{device['name']}, driver {device['driver']}, {device['units']} multiprocessors")
    for c in device["ceilings"]:
        if "skipped" in c:
            print(f"  {c['column']:<20} not measured: {c['skipped']}")
            failed += 1
            continue
        peak = f"{c['of_peak']:.3f} of {c['peak']:.0f}" if c["peak"] else "-"
        at = f"{c['mean'] / c['peak_at_clock']:.3f} at {c['clock_mhz']:.0f} MHz" if c["peak_at_clock"] else "-"
        print(f"  {c['column']:<20} {c['mean']:>12.1f} {c['unit']:<8} stdev {100 * c['stdev'] / c['mean']:.2f} %"
              f"  n={c['experiments']} {c['duration_ns'] * 1e-6:.2f} ms  peak {peak}  {at}  {c['path']}")
    dram = max(ceilings[c]["mean"] for c in ("HBMReadBw", "HBMWriteBw", "HBMCopyBw", "HBMTriadBw"))
    row("DRAM, best of read, write, copy, triad", f"{dram:.0f} GB/s = {dram / 4800:.3f} of 4.8 TB/s", ">= 0.88", dram >= 0.88 * 4800)
    for column in ("FP32Flops", "FP64Flops"):
        c = ceilings[column]
        share = c["mean"] / c["peak_at_clock"]
        row(f"{column}, of the peak at the clock of the run", f"{share:.3f} ({c['mean'] / 1000:.1f} TFLOP/s)", ">= 0.95", share >= 0.95)
    tensor = ceilings["MFMABF16Flops"]
    ratio = tensor["mean"] / 1000 / blas
    row("BF16 tensor over cuBLAS 8192^3 in the same run", f"{ratio:.3f} ({tensor['mean'] / 1000:.0f} / {blas:.0f} TFLOP/s)", "0.90 .. 1.10", 0.9 <= ratio <= 1.1)
    print(f"      path: {tensor['path']}; cuBLAS {[round(r['tflops']) for r in references]} TFLOP/s, torch copy {[round(r['copy']) for r in references]} GB/s")
    row("time of the suite", f"{seconds:.1f} s", "<= 20 s", seconds <= 20)
    worst = max((c["stdev"] / c["mean"], c["column"]) for c in device["ceilings"] if "skipped" not in c)
    row("largest stdev", f"{100 * worst[0]:.2f} % ({worst[1]})", "<= 10 %", worst[0] <= 0.1)
    errors = [c["column"] for c in device["ceilings"] if "error" in c]
    row("measured above 1.02 of a peak", ", ".join(errors) or "none", "none", not errors)
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1] == "gemm":
        gemm(sys.argv[2])
    else:
        sys.exit(judge(sys.argv[2], sys.argv[3], sys.argv[4], float(sys.argv[5])))
