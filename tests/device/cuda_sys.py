#!/usr/bin/env python3
"""System profiling of PyTorch on a real GPU. Run by cuda_sys.sh; prints a table of verdicts.

usage: cuda_sys.py [--build DIR] [--out DIR] [--pairs N] [--device cuda|cpu] [SECTION...]
Sections: lines (device time by line of Python), nvtx (torch's operators as ranges between line and call), telemetry (NVML),
folder (rocprof-sys-run and -sample), flame, overhead.
--device cpu checks the script itself on a machine without a GPU: what needs one is left out, and the table says so.
"""
import argparse
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TABLE = []


def record(what, measured, goal="", verdict=""):
    TABLE.append((what, str(measured), goal, verdict))
    print(f"  {what}: {measured}{'  goal ' + goal if goal else ''}{'  ' + verdict if verdict else ''}", flush=True)


def check(what, ok, measured=""):
    record(what, measured, "", "ok" if ok else "FAILED")


# Seconds a section may take, from its start: checks that are not done then are FAILED, and the next section begins.
LIMITS = {"lines": 60, "nvtx": 45, "telemetry": 45, "folder": 90, "flame": 45, "overhead": 240}
DEADLINE = 0.0


def run(*command, **more):
    result = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            timeout=max(DEADLINE - time.monotonic(), 1), **more)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} exited with {result.returncode}: {result.stderr[-600:]}")
    return result


class Session:
    def __init__(self, options):
        self.options = options
        self.tacho = pathlib.Path(options.build).resolve() / "bin" / "tacho"
        self.gpu = options.device == "cuda"
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="cuda-sys-"))
        self.train = [sys.executable, ROOT / "examples" / "train_small.py", "--device", options.device, "--layers", "20", "--warmup", "5"]
        if not self.gpu:
            self.train += ["--width", "64", "--batch", "16"]

    def steps(self, count):
        return [*self.train, "--steps", str(count)]

    def sample(self, name, *options, steps=100, training=()):
        file = self.work / name
        run(self.tacho, "sys", "sample", "-q", "--overwrite", "-o", file, *options, "--", *self.steps(steps), *training)
        return file

    def line_of(self, text):
        source = (ROOT / "examples" / "train_small.py").read_text().splitlines()
        return next(number for number, line in enumerate(source, 1) if text in line)

    def rows(self, file, by):
        answer = json.loads(run(self.tacho, "stats", file, "--by", by, "--output-format", "json").stdout)
        titles = [c["title"] if isinstance(c, dict) else c for c in answer["columns"]]
        return [dict(zip(titles, row)) for row in answer["rows"]]

    def device_ns(self, file):
        return sum(row["TotalDurationNs"] or 0 for by in ("kernel", "copy", "fill") for row in self.rows(file, by))

    # ---- sections

    def lines(self):
        file = self.sample("lines.tacho", "-f", "1000", steps=200)
        lines = self.rows(file, "line")
        own = [row for row in lines if row["File"].endswith("train_small.py")]
        check("lines of train_small.py are on the stacks", len(own) > 3, sorted({row["Line"] for row in own}))
        source = (ROOT / "examples" / "train_small.py").read_text().splitlines()
        wanted = {"loss.backward()": None, "optimizer.step()": None, "mse_loss(model": None}
        for row in own:
            for text in wanted:
                if text in source[row["Line"] - 1]:
                    wanted[text] = row
        check("the lines of forward, backward and update are found", all(wanted.values()), {k: v and v["Line"] for k, v in wanted.items()})
        record("Python", sys.version.split()[0])
        if not self.gpu:
            return record("device time by line", "no GPU: left out")
        whole = self.device_ns(file)
        by_line = sum(row["GpuSelfNs"] for row in lines)
        check("device time by line adds up to the kernels' total", abs(by_line - whole) <= 1, f"{by_line} of {whole} ns")
        text = run(self.tacho, "stats", file, "--by", "line").stdout
        exact = float(re.search(r"([\d.]+) % by the stack read at its launch", text).group(1))
        record("device time whose launch's stack was read", f"{exact} %", ">= 90 %", "met" if exact >= 90 else "missed")
        forward = wanted["mse_loss(model"]
        check("the forward line has device time", forward is not None and forward["GpuTotalNs"] > 0, forward and forward["GpuTotalNs"])
        backward = wanted["loss.backward()"]
        check("so has the line of loss.backward(), whose kernels other threads launch", backward is not None and backward["GpuTotalNs"] > 0,
              backward and f"{100 * backward['GpuTotalNs'] / whole:.1f} % of the device time")
        stacks = [row["Name"] for row in self.rows(file, "stack") if row["GpuSelfNs"]]
        check("chain: line of Python, API call, kernel", any(re.search(r"train_small\.py:\d+\).*;cudaLaunchKernel\w*;", stack) or re.search(r"train_small\.py:\d+\).*;cuLaunchKernel\w*;", stack) for stack in stacks),
              stacks[0][-160:] if stacks else "none")
        functions = {row["Name"] for row in self.rows(file, "function")}
        check("torch's operators are on the host's stacks", any("at::_ops::" in name or "aten::" in name for name in functions))
        run(self.tacho, "export", file, "-f", "pftrace", "-o", self.work / "lines.pftrace")
        check("Perfetto file", (self.work / "lines.pftrace").stat().st_size > 10_000, (self.work / "lines.pftrace").stat().st_size)

    def nvtx(self):
        if not self.gpu:
            return record("NVTX ranges of torch's operators", "no GPU: left out")
        file = self.sample("nvtx.tacho", training=["--nvtx"], steps=60)
        stacks = [(row["Name"], row["GpuSelfNs"]) for row in self.rows(file, "stack") if row["GpuSelfNs"]]
        whole = self.device_ns(file)
        check("device time by stack adds up to the kernels' total", sum(ns for _, ns in stacks) == whole, whole)
        named = [name for name, _ in stacks if re.search(r"train_small\.py:\d+\).*;aten::\w+.*;cu\w*LaunchKernel\w*;", name)]
        check("chain: line of Python, torch's operator, API call, kernel", named, named[0][-200:] if named else "none")
        line = self.line_of("loss.backward()")
        back = [(name, ns) for name, ns in stacks if "autograd::engine::evaluate_function" in name]
        under = sum(ns for name, ns in back if f"train_small.py:{line})" in name)
        check("device time of the backward pass stands under loss.backward()", back and under == sum(ns for _, ns in back), f"{under} of {sum(ns for _, ns in back)} ns")
        # And nothing else does, save what autograd starts the pass with.
        other = sum(ns for name, ns in stacks if f"train_small.py:{line})" in name and "autograd::engine::evaluate_function" not in name)
        record("device time under that line outside of autograd's ranges (gradient of the loss, warm-up steps without ranges)", f"{other} ns")

    def telemetry(self):
        file = self.sample("telemetry.tacho", "--process-freq", "50", steps=400)
        answer = run(self.tacho, "query", file, "SELECT c.name, count(*), min(r.value), max(r.value) FROM tacho.reading r JOIN tacho.track t ON r.track = t.id "
                                                "JOIN tacho.counter c ON t.counter = c.id GROUP BY c.name").stdout
        names = set(re.findall(r"(?:GPU|CPU|IO|Disk|Memory|Threads)[\w ]*(?:\[\d+\])?", answer))
        print(answer)
        check("telemetry of the processes", any(name.startswith("CPU Usage") for name in names), len(names))
        if self.gpu:
            for name in ("GPU GFX Busy [0]", "GPU Current Power [0]", "GPU Temperature [0]", "GPU Memory Usage [0]", "GPU Core Clock [0]", "GPU PCIe Sent [0]"):
                check(f"NVML: {name}", name in answer)

    def folder(self):
        personalities = self.tacho.parent.parent / "personalities"
        if not personalities.is_dir():
            personalities = self.work / "personalities"
            personalities.mkdir()
            for name in ("run", "sample", "avail"):
                (personalities / f"rocprof-sys-{name}").symlink_to(self.tacho)
        environment = {**os.environ, "HOME": str(self.work)}
        run(personalities / "rocprof-sys-run", "--profile", "--trace", "--", *self.steps(30), cwd=self.work, env=environment)
        files = [path.name for path in self.work.glob("rocprof-sys-*-output/*/*")]
        check("rocprof-sys-run --profile --trace", any(re.match(r"perfetto-trace-\d+\.proto", f) for f in files) and any(re.match(r"wall_clock-\d+\.txt", f) for f in files), files)
        run(personalities / "rocprof-sys-avail", "-G", "cfg", "--force", cwd=self.work, env=environment)
        run(personalities / "rocprof-sys-sample", "-c", "cfg", *self.steps(30), cwd=self.work, env=environment)
        check("rocprof-sys-sample -c cfg", len(list(self.work.glob("rocprof-sys-*-output/*/perfetto-trace-*.proto"))) >= 2)

    def flame(self):
        file = self.sample("flame.tacho")
        page = pathlib.Path(self.options.out) / "train_small.html"
        run(self.tacho, "flame", file, "-o", page, "--overwrite")
        check("flame graph", page.stat().st_size > 50_000, page)

    def overhead(self):
        def figure(*prefix):
            text = run(*prefix, *self.steps(400 if self.gpu else 20)).stdout
            return float(re.search(r"([\d.]+) ms/step", text).group(1))

        traced = [self.tacho, "trace", "-q", "--overwrite", "-o", self.work / "o.tacho"]
        plain = ([], "untraced")
        tracing = ([*traced, "--"], "traced")
        cases = [([*traced, "--sampler", "timer", "--sample-hz", "100", "--no-launch-stacks", "--"], tracing, "100 Hz beside tracing", 1.01),
                 ([*traced, "--sampler", "timer", "--sample-hz", "1000", "--no-launch-stacks", "--"], tracing, "1 kHz beside tracing", 1.03),
                 ([*traced, "--sampler", "timer", "--sample-hz", "100", "--"], tracing, "100 Hz and the stacks of launches beside tracing", None),
                 ([self.tacho, "sys", "sample", "-q", "--overwrite", "-o", self.work / "o.tacho", "--"], plain, "tacho sys sample, everything, untraced = 1", None)]
        for command, (base, base_name), what, goal in cases[:self.options.cases]:
            pairs = []
            for i in range(self.options.pairs):
                a, b = (figure(*command), figure(*base)) if i % 2 == 0 else reversed((figure(*base), figure(*command)))
                pairs.append(a / b)
            generator = random.Random(1)
            medians = sorted(statistics.median(generator.choices(pairs, k=len(pairs))) for _ in range(2000))
            low, high = medians[50], medians[1949]
            verdict = "" if goal is None else "met" if high <= goal else "missed" if low > goal else "not resolved"
            record(f"{what} ({base_name})", f"{statistics.median(pairs):.3f} [{low:.3f}, {high:.3f}]", f"<= {goal}" if goal else "", verdict)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build")
    parser.add_argument("--out", default=".")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--cases", type=int, default=4, help="of the section overhead: the first N of it")
    parser.add_argument("--patience", type=float, default=1, help="factor on the time that each section may take")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("sections", nargs="*", default=["lines", "nvtx", "telemetry", "folder", "flame", "overhead"])
    options = parser.parse_args()
    session = Session(options)
    global DEADLINE
    for section in options.sections:
        print(f"{section} ({time.strftime('%T')})", flush=True)
        DEADLINE = time.monotonic() + LIMITS[section] * options.patience
        try:
            getattr(session, section)()
        except (RuntimeError, OSError, ValueError, KeyError, AttributeError, subprocess.SubprocessError) as error:
            record(section, f"{type(error).__name__}: {str(error)[-300:]}", "", "FAILED")
    width = max(len(what) for what, *_ in TABLE)
    print("\n" + "\n".join(f"{what:<{width}}  {measured[:90]:<40}  {goal:<10}  {verdict}" for what, measured, goal, verdict in TABLE))
    (pathlib.Path(options.out) / "cuda_sys.json").write_text(json.dumps(TABLE, indent=1))
    sys.exit(1 if any(verdict == "FAILED" for *_, verdict in TABLE) else 0)


if __name__ == "__main__":
    main()
