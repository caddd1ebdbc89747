#!/usr/bin/env python3
"""Hardware counters on a real NVIDIA GPU against Nsight Compute. Run by cuda_profile.sh; prints a verdict table.

usage: cuda_profile.py [--build DIR] [--out DIR] [SECTION...]
Sections: values (each counter against ncu's, kernel by kernel), time (per kernel, the same metrics), multiplex (against a
bare single-pass session and against kernel replay), unselected (kernels that the filter leaves out), application
(application replay against kernel replay).
"""
import argparse
import csv
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TABLE = []


def record(what, measured, goal="", verdict=""):
    TABLE.append((what, measured, goal, verdict))
    print(f"  {what}: {measured}{'  goal ' + goal if goal else ''}{'  ' + verdict if verdict else ''}", flush=True)


class Tools:
    def __init__(self, build, out):
        self.tacho = os.path.join(build, "bin", "tacho")
        self.kernels = os.path.join(build, "tests", "device", "cuda_kernels")
        self.floor = os.path.join(build, "lib", "librange_floor.so")
        self.out = out
        self.folder = tempfile.mkdtemp(prefix="cuda_profile_")

    def run(self, command, env=None, timeout=300):
        begin = time.monotonic()
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout, cwd=self.folder,
                                env={**os.environ, **(env or {})})
        if result.returncode != 0:
            raise RuntimeError(f"{' '.join(command[:8])}: exit {result.returncode}: {(result.stdout + result.stderr)[-600:]}")
        return result.stdout, result.stderr, time.monotonic() - begin

    def profile(self, name, options, program):
        """Runs tacho profile; returns ({kernel: [{counter: value}, ...]}, program's output, seconds)."""
        folder = os.path.join(self.folder, name)
        shutil.rmtree(folder, ignore_errors=True)
        out, err, seconds = self.run([self.tacho, "profile", "--output-directory", folder, *options, "--", self.kernels, *program])
        with open(os.path.join(self.out, f"profile_{name}.log"), "w") as file:
            file.write(out + err)
        rows = {}
        for file in sorted(os.listdir(folder)):
            if not re.fullmatch(r"pmc_perf_\d+\.csv", file):
                continue
            with open(os.path.join(folder, file)) as text:
                for row in csv.DictReader(text):
                    values = {key: float(value) for key, value in row.items() if "__" in key and value not in ("", None)}
                    rows.setdefault(re.sub(r"\(.*", "", row["Kernel_Name"]), []).append(values)
        return rows, out, seconds

    def ncu(self, metrics, program, count=None, cache="none"):
        command = ["ncu", "--clock-control", "none", "--cache-control", cache, "--csv", "--print-units", "base", "--metrics", ",".join(metrics)]
        if count is not None:
            command += ["-c", str(count)]
        out, err, seconds = self.run([*command, self.kernels, *program])
        lines = out.splitlines()
        first = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
        rows = {}
        for row in csv.DictReader(lines[first:]):
            kernel = re.sub(r"\(.*", "", row["Kernel Name"])
            launches = rows.setdefault(kernel, {})
            with_value = row["Metric Value"].replace(",", "")
            try:
                launches.setdefault(row["ID"], {})[row["Metric Name"]] = float(with_value)
            except ValueError:
                pass
        return {kernel: list(launches.values()) for kernel, launches in rows.items()}, seconds


# The same in every execution of a kernel.
EXACT = re.compile(r"(smsp|sm)__(sass_)?(thread_)?inst_executed(_op_\w+|_pred_on)*\.sum$|__ctas_launched\.sum$|__warps_launched\.sum$|__threads_launched\.sum$"
                   r"|sass_data_bytes_mem_\w+\.sum$|sass_branch\w*\.sum$|l1tex__t_(requests|sectors)_pipe_lsu_mem_\w+_op_\w+\.sum$|peak_sustained$")


def values(t):
    print("Values against ncu, each kernel 7 times")
    blocks = ["2", "3", "6", "7", "10", "16"]
    ours, _, _ = t.profile("values", ["-b", *blocks], ["all", "7"])
    metrics = sorted({name for rows in ours.values() for row in rows for name in row})
    theirs, _ = t.ncu(metrics, ["all", "7"])
    again, _ = t.ncu(metrics, ["all", "7"], cache="all")  # what is in the caches before a kernel differs: both of ncu's ways
    exact = exact_good = other = other_good = missing = 0
    wrong = []
    for kernel, rows in sorted(ours.items()):
        for metric in metrics:
            mine = [row[metric] for row in rows if metric in row]
            peer = [row[metric] for run in (theirs, again) for row in run.get(kernel, []) if metric in row]
            if not mine or not peer:
                missing += 1
                continue
            if EXACT.search(metric):
                exact += 1
                good = set(mine) == set(peer) or max(abs(a - statistics.median(peer)) for a in mine) <= 1e-9 * abs(statistics.median(peer))
                exact_good += good
                if not good:
                    wrong.append((kernel, metric, "exact", statistics.median(mine), statistics.median(peer)))
                continue
            other += 1
            middle, low, high = statistics.median(peer), min(peer), max(peer)
            margin = 0.02 * max(abs(middle), abs(high)) + 0.005  # ncu prints two decimals
            good = low - margin <= statistics.median(mine) <= high + margin or abs(statistics.median(mine) - middle) <= margin
            other_good += good
            if not good:
                wrong.append((kernel, metric, f"[{low:.6g}, {high:.6g}]", statistics.median(mine), middle))
    record("counts that are the same in every execution: equal to ncu's", f"{exact_good} of {exact}", "all", "met" if exact_good == exact else "missed")
    record("other values: median within ncu's own spread + 2 %", f"{other_good} of {other} ({len(ours)} kernels, {len(metrics)} metrics, {missing} not told by ncu)", "all",
           "met" if other_good == other else "missed")
    for line in wrong[:60]:
        print("    ", *line)
    with open(os.path.join(t.out, "values.json"), "w") as file:
        json.dump({"ours": ours, "ncu": theirs, "again": again, "wrong": wrong}, file)


def slope(measure, few, many, repeats=3):
    """Seconds per further launch, from runs with few and many of them."""
    return statistics.median((measure(many) - measure(few)) / (many - few) for _ in range(repeats))


def times(t):
    print("Time per kernel, the metrics of block 2, kernel replay")
    rows, _, _ = t.profile("time", ["-b", "2"], ["loop", "2"])
    metrics = sorted({name for row in rows["reduce_kernel"] for name in row})
    ours = slope(lambda n: t.profile("time", ["-b", "2"], ["loop", str(n)])[2], 2, 22)
    peer = slope(lambda n: t.ncu(metrics, ["loop", str(n)])[1], 2, 22)
    record("kernel replay, block 2, per kernel", f"{ours / peer:.3f} ({1000 * ours:.0f} vs {1000 * peer:.0f} ms, {len(metrics)} metrics)", "<= 0.51", "met" if ours / peer <= 0.51 else "missed")
    for block in ("10", "16", "19"):
        rows, _, _ = t.profile("time", ["-b", block], ["loop", "1"])
        metrics = sorted({name for row in rows["reduce_kernel"] for name in row})
        ours = slope(lambda n: t.profile("time", ["-b", block], ["loop", str(n)])[2], 2, 12, 1)
        peer = slope(lambda n: t.ncu(metrics, ["loop", str(n)])[1], 2, 12, 1)
        record(f"kernel replay, block {block}, per kernel", f"{ours / peer:.3f} ({1000 * ours:.0f} vs {1000 * peer:.0f} ms, {len(metrics)} metrics)")
    one = ["sm__cycles_active.avg.pct_of_peak_sustained_elapsed", "gpu__time_duration.sum", "gpc__cycles_elapsed.max", "gpc__cycles_elapsed.avg.per_second",
           "sm__warps_active.avg.pct_of_peak_sustained_active", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"]
    ours = slope(lambda n: t.profile("one", ["--set", "compute_thruput_util"], ["loop", str(n)])[2], 2, 202, 1)
    peer = slope(lambda n: t.ncu(one, ["loop", str(n)])[1], 2, 22, 1)
    record("one pass (set compute_thruput_util), per kernel", f"{ours / peer:.3f} ({1000 * ours:.2f} vs {1000 * peer:.1f} ms)")


def loop_ms(output):
    return float(re.search(r"([\d.]+) ms", output).group(1))


def multiplex(t):
    print("Multiplexing, 1000 launches")
    floor, mine = [], []
    for _ in range(3):
        out, err, _ = t.run([t.kernels, "loop", "1000"], {"CUDA_INJECTION64_PATH": t.floor})
        floor.append(loop_ms(out) - float(re.search(r"started in ([\d.]+)", err).group(1)))  # its one start is not held against anyone
        rows, out, _ = t.profile("multiplex", ["-b", "2", "--iteration-multiplexing"], ["loop", "1000"])
        mine.append(loop_ms(out))
    ratio = statistics.median(m / f for m, f in zip(mine, floor))
    record("multiplexing block 2, 1000 launches / bare single-pass session", f"{ratio:.3f} ({statistics.median(mine):.0f} vs {statistics.median(floor):.0f} ms, {len(rows['reduce_kernel'])} complete rows)",
           "<= 1.25", "met" if ratio <= 1.25 else "missed")
    replayed, _, _ = t.profile("replayed", ["-b", "2"], ["steady", "20"])
    rows, _, _ = t.profile("steady", ["-b", "2", "--iteration-multiplexing"], ["steady", "1000"])
    off, worst = 0, []
    for metric in sorted(replayed["triad_kernel"][0]):
        a = statistics.median(row[metric] for row in rows["triad_kernel"] if metric in row)
        b = statistics.median(row[metric] for row in replayed["triad_kernel"] if metric in row)
        error = abs(a - b) / abs(b) if b else abs(a)
        worst.append((error, metric, a, b))
        off += error > 0.05
    worst.sort(reverse=True)
    record("multiplexed block-2 values against kernel replay", f"{len(worst) - off} of {len(worst)} within 5 %; worst {worst[0]}", "all", "met" if off == 0 else "missed")
    for line in worst[:6]:
        print("    ", line)
    rows, out, _ = t.profile("mixed", ["-b", "2", "--iteration-multiplexing"], ["mixed", "300"])
    record("multiplexing a mixture of three kernels (300 rounds)", f"{ {name: len(values) for name, values in rows.items()} } complete rows, {loop_ms(out):.0f} ms", "every kernel",
           "met" if len(rows) == 3 else "missed")


def unselected(t):
    print("Kernels that the filter leaves out")
    plain, mine = [], []
    for _ in range(7):
        plain.append(loop_ms(t.run([t.kernels, "storm", "200000"])[0]))
        rows, out, _ = t.profile("unselected", ["-b", "2", "-k", "copy_kernel"], ["storm", "200000"])
        mine.append(loop_ms(out))
    ratio = statistics.median(m / p for m, p in zip(mine, plain))
    record("kernels not selected / without tacho (empty kernels, launch bound)", f"{ratio:.3f} ({statistics.median(mine):.0f} vs {statistics.median(plain):.0f} ms for 200 k; {sum(map(len, rows.values()))} measured)",
           "<= 1.05", "met" if ratio <= 1.05 else "missed")
    plain, mine = [], []
    for _ in range(5):
        plain.append(loop_ms(t.run([t.kernels, "loop", "20000"])[0]))
        mine.append(loop_ms(t.profile("unselected2", ["-b", "2", "-k", "nothing_like_this", "-k", "copy_kernel"], ["loop", "20000"])[1]))
    ratio = statistics.median(m / p for m, p in zip(mine, plain))
    record("kernels not selected / without tacho (kernels of 10 us)", f"{ratio:.3f} ({statistics.median(mine):.0f} vs {statistics.median(plain):.0f} ms for 20 k)",
           "<= 1.05", "met" if ratio <= 1.05 else "missed")


def application(t):
    print("Application replay")
    kernel, _, _ = t.profile("kernel3", ["-b", "2.1.4", "2.1.19", "10"], ["all", "3"])
    rows, _, _ = t.profile("application3", ["-b", "2.1.4", "2.1.19", "10", "--replay", "application"], ["all", "3"])
    exact = good = 0
    for name, launches in kernel.items():
        for metric in launches[0]:
            if EXACT.search(metric):
                exact += 1
                good += [row.get(metric) for row in launches] == [row.get(metric) for row in rows.get(name, [])]
    record("application replay: exact counts equal kernel replay's", f"{good} of {exact}", "all", "met" if good == exact and exact else "missed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build"))
    parser.add_argument("--out", default=".")
    parser.add_argument("sections", nargs="*", default=[])
    arguments = parser.parse_args()
    t = Tools(os.path.abspath(arguments.build), os.path.abspath(arguments.out))
    work = {"values": values, "time": times, "multiplex": multiplex, "unselected": unselected, "application": application}
    for section in arguments.sections or work:
        begin = time.monotonic()
        try:
            work[section](t)
        except Exception as problem:
            record(f"section {section}", repr(problem)[:700], "", "FAILED")
        print(f"  ({section}: {time.monotonic() - begin:.0f} s)", flush=True)
    print("\nVerdicts")
    width = max(len(row[0]) for row in TABLE)
    for what, measured, goal, verdict in TABLE:
        print(f"{verdict:>12}  {what:<{width}}  {measured}{'  (goal ' + goal + ')' if goal else ''}")
    with open(os.path.join(arguments.out, "cuda_profile.json"), "w") as file:
        json.dump(TABLE, file, indent=1)
    sys.exit(1 if any(row[3] in ("FAILED", "missed") for row in TABLE) else 0)


if __name__ == "__main__":
    main()
