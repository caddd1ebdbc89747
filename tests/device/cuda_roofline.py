"""Verdicts for tacho roofline on an NVIDIA GPU: reads the JSON of the run and what PyTorch measured beside it.

usage: cuda_roofline.py gemm FILE          measure cuBLAS's BF16 product (and a copy) and write FILE
       cuda_roofline.py judge ROOFLINE.json BEFORE.json AFTER.json SECONDS
       cuda_roofline.py points BUILD OUT   profile kernels with known FLOPs and bytes, compare their points
       cuda_roofline.py products N         the cuBLAS products that `points` profiles
"""
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time


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


def products(times):
    """Prints the same lines as the program cuda_roofline for cuBLAS; the kernels' names are cuBLAS's own."""
    import torch

    n = 4096
    for name, kind in (("bf16", torch.bfloat16), ("fp32", torch.float32), ("fp64", torch.float64)):
        a, b = (torch.randn(n, n, device="cuda", dtype=kind) for _ in range(2))
        measured = []
        for _ in range(times):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda._sleep(400_000)  # all three are queued before the first of them begins: no launch latency in between
            begin.record()
            c = a @ b
            end.record()
            torch.cuda.synchronize()
            measured.append(begin.elapsed_time(end))
        print(name, 2 * n**3, 0, 0, sorted(measured)[times // 2])
        del a, b, c


def points(build, out):
    tacho, kernels = os.path.join(build, "bin", "tacho"), os.path.join(build, "tests", "device", "cuda_roofline")
    folder = tempfile.mkdtemp(prefix="cuda_roofline_")
    failed = 0

    def row(name, value, wanted, good):
        nonlocal failed
        failed += not good
        print(f"{'PASS' if good else 'FAIL'}  {name:<52} {value:<34} {wanted}", flush=True)

    def near(name, value, expected, low=0.97, high=1.03):
        ratio = value / expected if value is not None and expected else float("nan")
        row(name, f"{ratio:.4f} ({value:.5g} / {expected:.5g})" if value is not None else "none", f"{low} .. {high}",
            low <= ratio <= high)

    def run(*command):
        begin = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        print(f"  {' '.join(command[:3])} ... {time.monotonic() - begin:.1f} s, exit {done.returncode}", flush=True)
        if done.returncode != 0:
            print((done.stdout + done.stderr)[-2000:])
        return done.stdout

    def profile(name, command, options=()):
        target = os.path.join(folder, name)
        run(tacho, "profile", "--roof-only", *options, "--output-directory", target, "--", *command)
        text = run(tacho, "analyze", "-p", target, "-b", "4", "--output-format", "json")
        try:
            return {p["kernel"]: p for p in json.loads(text)["roofline"]["kernels"]}
        except (ValueError, KeyError) as error:
            row(f"points of {name}", str(error), "some", False)
            return {}

    def expected_of(text):
        return {words[0]: [float(w) for w in words[1:]] for words in map(str.split, text.splitlines()) if len(words) == 5}

    expected = expected_of(run(kernels, "9"))
    measured = profile("kernels", [kernels, "3"])
    for name, (flops, dram, l1, ms) in expected.items():
        found = [p for k, p in measured.items() if re.match(rf"(void )?{name}\b", k)]
        if not found:
            row(name, "no point", "a point", False)
            continue
        p = found[0]
        calls = p["calls"]
        total = sum(v or 0 for v in p["flops"].values()) / calls
        print(f"  {name}: type {p['type'] or '-'}, FLOPs {p['flops']}, bytes {p['bytes']}, {p['duration'] / calls * 1e-6:.4f} ms")
        if name == "half_axpy_kernel":  # a known limit: one HFMA2 a thread counts as the load of a constant (docs/roofline.md)
            print(f"INFO  {name}: {total:.0f} FLOPs of {flops:.0f}")
            continue
        if flops:
            near(f"{name}: FLOPs", total, flops)
            near(f"{name}: GFLOP/s against events of the bare program", p["performance"], flops / ms * 1e-6)
        else:
            row(f"{name}: FLOPs", f"{total:.0f}", "0", total == 0)
        if dram:
            near(f"{name}: bytes at the DRAM", p["bytes"]["hbm"] / calls, dram)
            near(f"{name}: bytes at the L2", p["bytes"]["l2"] / calls, dram)
            if flops:
                near(f"{name}: AI at the DRAM", p["intensity"]["hbm"], flops / dram)
            else:
                near(f"{name}: GB/s against events of the bare program", p["bandwidth"]["hbm"], dram / ms * 1e-6)
        if l1:
            near(f"{name}: bytes at the L1", p["bytes"]["l1"] / calls, l1)
            if flops:
                near(f"{name}: AI at the L1", p["intensity"]["l1"], flops / l1)
    here = os.path.abspath(__file__)
    expected = expected_of(run(sys.executable, here, "products", "9"))
    measured = profile("cublas", [sys.executable, here, "products", "2"], ["-k", "gemm", "nvjet", "cutlass", "xmma"])
    kinds = {"bf16": "matrix BF16", "fp32": "FP32", "fp64": "matrix FP64"}
    for name, p in measured.items():
        print(f"  {name[:60]}: type {p['type']}, FLOPs {p['flops']}, {p['calls']} calls, {p['duration'] / p['calls'] * 1e-6:.4f} ms")
    for name, (flops, _, _, ms) in expected.items():
        found = [p for p in measured.values() if (p["flops"].get(kinds[name]) or 0) > 0.5 * sum(v or 0 for v in p["flops"].values())]
        if not found:
            row(f"cuBLAS {name}", f"no point with FLOPs of {kinds[name]}", "a point", False)
            continue
        p = found[0]
        near(f"cuBLAS {name} 4096^3: FLOPs", sum(v or 0 for v in p["flops"].values()) / p["calls"], flops)
        near(f"cuBLAS {name}: GFLOP/s against events", p["performance"], flops / ms * 1e-6, 0.94, 1.06)
    with tarfile.open(os.path.join(out, "points.tar.gz"), "w:gz") as tar:
        tar.add(folder, arcname="points")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1] == "gemm":
        gemm(sys.argv[2])
    elif sys.argv[1] == "products":
        products(int(sys.argv[2]))
    elif sys.argv[1] == "points":
        sys.exit(points(sys.argv[2], sys.argv[3]))
    else:
        sys.exit(judge(sys.argv[2], sys.argv[3], sys.argv[4], float(sys.argv[5])))
