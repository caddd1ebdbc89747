#!/usr/bin/env python3
"""Hardware counters on a real NVIDIA GPU against Nsight Compute. Run by cuda_profile.sh; prints a verdict table.

usage: cuda_profile.py [--build DIR] [--out DIR] [--limit SECONDS] [SECTION...]
Sections, each ended after a time of its own:
  cupti        kernel replay in batches against CUPTI's own
  time         kernel replay per kernel against ncu's, one pass per launch against a bare session
  multiplex    1000 launches against a bare single-pass session, values against kernel replay, a mixture of kernels
  values       each counter of blocks 2, 3, 6, 7, 10 and 16 against ncu's, kernel by kernel
  more_values  those of the other blocks
  pc           PC sampling: stall reasons by instruction and source line
  host         programs whose kernels change device, host and managed memory end with the same results; graphs
  unselected   what kernels cost that the filter leaves out
  application  application replay against kernel replay
  every        every metric of the catalog is collected: those without a value are listed
  identities   sums that must hold between counters (hits + misses = requests)
  seed         the command lines of the users' documents
  gpus         kernels of several GPUs in turn (needs two; not run by default)
"""
import argparse
import csv
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

TABLE = []


def record(what, measured, goal="", verdict=""):
    TABLE.append((what, str(measured), goal, verdict))
    print(f"  {what}: {measured}{'  goal ' + goal if goal else ''}{'  ' + verdict if verdict else ''}", flush=True)


def judge(good):
    return "met" if good else "missed"


class Tools:
    def __init__(self, build, out):
        self.build = build
        self.tacho = os.path.join(build, "bin", "tacho")
        self.kernels = os.path.join(build, "tests", "device", "cuda_kernels")
        self.floor = os.path.join(build, "lib", "librange_floor.so")
        self.out = out
        self.folder = tempfile.mkdtemp(prefix="cuda_profile_")
        self.deadline = time.monotonic() + 3600

    def run(self, command, env=None, allowed=(0,), limit=None):
        """(stdout, stderr, seconds). Everything it started is killed at the section's end."""
        begin = time.monotonic()
        left = self.deadline - begin
        if limit is not None:
            left = min(left, limit)
        if left <= 0:
            raise TimeoutError("the section's time is over")
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                   cwd=self.folder, env={**os.environ, **(env or {})}, start_new_session=True)
        try:
            out, err = process.communicate(timeout=left)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            raise TimeoutError(f"{' '.join(map(str, command[:12]))}: stopped after {left:.0f} s; {(out + err)[-300:]}") from None
        if process.returncode not in allowed:
            raise RuntimeError(f"{' '.join(map(str, command[:12]))}: exit {process.returncode}: {(out + err)[-600:]}")
        return out, err, time.monotonic() - begin

    def profile(self, name, options, program, binary=None, **more):
        """Runs tacho profile; returns ({kernel: [{counter: value}, ...]}, program's output, seconds)."""
        folder = os.path.join(self.folder, name)
        shutil.rmtree(folder, ignore_errors=True)
        out, err, seconds = self.run([self.tacho, "profile", "--no-roof", "--output-directory", folder, *options, "--", *(binary or [self.kernels]), *program], **more)
        for line in err.splitlines():
            if re.search(r"cannot|could not|not measured|not run again|from here on|no longer|no values", line):
                print("    !", line, flush=True)
        return self.rows(folder), out, seconds

    @staticmethod
    def rows(folder):
        rows = {}
        for file in sorted(os.listdir(folder)):
            if not re.fullmatch(r"pmc_perf_\d+\.csv", file):
                continue
            with open(os.path.join(folder, file)) as text:
                for row in csv.DictReader(text):
                    values = {key: float(value) for key, value in row.items() if "__" in key and value not in ("", None)}
                    rows.setdefault(re.sub(r"\(.*", "", row["Kernel_Name"]), []).append(values)
        return rows

    def ncu(self, metrics, program, count=None, cache="all", replay="kernel"):
        command = ["ncu", "--clock-control", "none", "--cache-control", cache, "--replay-mode", replay, "--csv", "--print-units", "base", "--metrics", ",".join(metrics)]
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


def compare(t, blocks, launches, what):
    """Every counter of these blocks, kernel by kernel, with caches flushed before each launch in both."""
    program = ["all", str(launches)]
    ours, _, seconds = t.profile("values", ["-b", *blocks], program)
    print(f"    ours {seconds:.0f} s", flush=True)
    metrics = sorted({name for rows in ours.values() for row in rows for name in row})
    theirs, seconds = t.ncu(metrics, program)
    print(f"    ncu {seconds:.0f} s", flush=True)
    runs = [theirs]
    for replay in ("kernel", "application"):  # ncu's own spread; in its application replay nothing is saved and put back
        try:
            runs.append(t.ncu(metrics, program, replay=replay)[0])
        except (TimeoutError, RuntimeError, StopIteration) as problem:
            print(f"    (no further run of ncu with {replay} replay:", str(problem)[-200:], ")")
    exact = exact_good = other = other_good = tiny = missing = 0
    wrong = []
    for kernel, rows in sorted(ours.items()):
        for metric in metrics:
            mine = [row[metric] for row in rows if metric in row]
            peer = [row[metric] for run in runs for row in run.get(kernel, []) if metric in row]
            if not mine or not peer:
                missing += 1
                continue
            middle, low, high, median = statistics.median(peer), min(peer), max(peer), statistics.median(mine)
            if EXACT.search(metric):
                exact += 1
                good = set(mine) == set(peer) or max(abs(a - middle) for a in mine) <= 1e-9 * abs(middle)
                exact_good += good
                if not good:
                    wrong.append((kernel, metric, "exact", median, middle))
                continue
            other += 1
            margin = 0.02 * max(abs(middle), abs(high)) + 0.005  # ncu prints two decimals
            good = low - margin <= median <= high + margin
            other_good += good
            if not good:
                # Small differences come from the tools themselves, around a kernel: 64 sectors or requests, 32 KB.
                distance = max(low - median, median - high)
                small = metric.endswith(".sum") and distance <= (32768 if "bytes" in metric else 64)
                tiny += small
                wrong.append((kernel, metric, f"[{low:.6g}, {high:.6g}]", f"{median:.6g} [{min(mine):.6g}, {max(mine):.6g}]", "small" if small else ""))
    with open(os.path.join(t.out, f"{what}.json"), "w") as file:
        json.dump({"ours": ours, "ncu": runs, "wrong": wrong}, file)
    if exact:
        record(f"{what}: counts that are the same in every execution: equal to ncu's", f"{exact_good} of {exact}", "all", judge(exact_good == exact))
    record(f"{what}: others: median within ncu's own spread + 2 %", f"{other_good} of {other} ({len(ours)} kernels, {len(metrics)} metrics, {missing} not told by ncu)", "all", judge(other_good == other))
    record(f"{what}: of the rest, less than 64 sectors or 32 KB apart", f"{tiny} of {other - other_good}")
    for line in wrong[:80]:
        print("    ", *line)


def values(t):
    print("Values against ncu, each kernel 7 times")
    compare(t, ["2", "3", "6", "7", "10", "16"], 7, "values")


def more_values(t):
    print("The other blocks against ncu, each kernel 3 times")
    compare(t, ["5", "11", "12", "13", "14", "15", "17", "18", "19", "20"], 3, "more_values")


def slope(measure, few, many, repeats=1):
    """Seconds per further launch, from runs with few and many of them."""
    return statistics.median((measure(many) - measure(few)) / (many - few) for _ in range(repeats))


def times(t):
    print("Time per kernel, kernel replay, the same metrics")
    for block in ("2", "16", "10", "19"):
        rows, _, _ = t.profile("time", ["-b", block], ["loop", "1"])
        metrics = sorted({name for row in rows["reduce_kernel"] for name in row})
        repeats = 3 if block == "2" else 1
        ours = slope(lambda n: t.profile("time", ["-b", block], ["loop", str(n)])[2], 32, 96, repeats)
        peer = slope(lambda n: t.ncu(metrics, ["loop", str(n)])[1], 2, 12)
        record(f"kernel replay, block {block}, per kernel / ncu", f"{ours / peer:.3f} ({1000 * ours:.1f} vs {1000 * peer:.0f} ms, {len(metrics)} metrics)", "<= 0.51", judge(ours / peer <= 0.51))
    few = slope(lambda n: t.profile("time", ["-b", "2"], ["loop", str(n)])[2], 1, 4)
    record("kernel replay, block 2, batches of few launches", f"{1000 * few:.1f} ms per further launch")
    one = ["--set", "compute_thruput_util"]
    ours = slope(lambda n: loop_ms(t.profile("one", one, ["loop", str(n)])[1]) / 1000, 64, 1088)
    bare = loop_ms(t.run([t.kernels, "loop", "1024"], {"CUDA_INJECTION64_PATH": t.floor})[0]) / 1024
    record("one pass (set compute_thruput_util), per launch", f"{1000 * ours:.2f} ms (a bare session, its start included, {bare:.2f})", "")


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
           "<= 1.25", judge(ratio <= 1.25))
    replayed, _, _ = t.profile("replayed", ["-b", "2", "--cache-control", "none"], ["steady", "20"])
    rows, _, _ = t.profile("steady", ["-b", "2", "--iteration-multiplexing"], ["steady", "1000"])
    off, worst = 0, []
    for metric in sorted(replayed["triad_kernel"][0]):
        a = statistics.median(row[metric] for row in rows["triad_kernel"] if metric in row)
        b = statistics.median(row[metric] for row in replayed["triad_kernel"] if metric in row)
        error = abs(a - b) / abs(b) if b else abs(a)
        worst.append((error, metric, a, b))
        off += error > 0.05
    worst.sort(reverse=True)
    record("multiplexed block-2 values against kernel replay", f"{len(worst) - off} of {len(worst)} within 5 %; worst {worst[0]}", "all", judge(off == 0))
    for line in worst[:6]:
        print("    ", line)
    rows, out, _ = t.profile("mixed", ["-b", "2", "--iteration-multiplexing"], ["mixed", "300"])
    record("multiplexing a mixture of three kernels (300 rounds)", f"{ {name: len(values) for name, values in rows.items()} } complete rows, {loop_ms(out):.0f} ms", "every kernel",
           judge(len(rows) == 3))


def unselected(t):
    print("Kernels that the filter leaves out")
    plain, told, mine = [], [], []
    for _ in range(9):
        plain.append(loop_ms(t.run([t.kernels, "storm", "200000"])[0]))
        told.append(loop_ms(t.run([t.kernels, "storm", "200000"], {"CUDA_INJECTION64_PATH": t.floor, "RANGE_FLOOR_CALLBACKS": "1"})[0]))
        rows, out, _ = t.profile("unselected", ["-b", "2", "-k", "copy_kernel"], ["storm", "200000"])
        mine.append(loop_ms(out))
    of = lambda a, b: statistics.median(x / y for x, y in zip(a, b))
    record("kernels not selected / told of by CUPTI to who does nothing (empty kernels, launch bound)",
           f"{of(mine, told):.3f} ({statistics.median(mine):.0f} vs {statistics.median(told):.0f} ms for 200 k; {sum(map(len, rows.values()))} measured; "
           f"without tacho {statistics.median(plain):.0f} ms: {of(mine, plain):.3f}, CUPTI's telling alone {of(told, plain):.3f})", "<= 1.05", judge(of(mine, told) <= 1.05))
    plain, mine = [], []
    for _ in range(5):
        plain.append(loop_ms(t.run([t.kernels, "loop", "20000"])[0]))
        mine.append(loop_ms(t.profile("unselected2", ["-b", "2", "-k", "nothing_like_this", "-k", "copy_kernel"], ["loop", "20000"])[1]))
    ratio = statistics.median(m / p for m, p in zip(mine, plain))
    record("kernels not selected / without tacho (kernels of 10 us)", f"{ratio:.3f} ({statistics.median(mine):.0f} vs {statistics.median(plain):.0f} ms for 20 k)",
           "<= 1.05", judge(ratio <= 1.05))


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
    record("application replay: exact counts equal kernel replay's", f"{good} of {exact}", "all", judge(good == exact and exact))


def host(t):
    print("What the program sees")
    variables = [os.path.join(t.build, "tests", "device", "cuda_variables")]
    torch = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_graph.py")]
    for binary, mode, n in ((None, "memory", "12"), (None, "graph", "6"), (None, "mixed", "40"), (variables, "variables", "6"), (torch, "a training in a CUDA graph of PyTorch", "5")):
        arguments = [n] if binary else [mode, n]
        plain, _, _ = t.run([*(binary or [t.kernels]), *arguments])
        rows, out, seconds = t.profile("host", ["-b", "10"], arguments, binary)
        same = re.sub(r"[\d.]+ ms", "", plain) == re.sub(r"[\d.]+ ms", "", out)
        graphs = mode == "mixed" or mode == "memory" or len(rows.get("CUDA graph", [])) == int(n)
        told = {name[:24]: len(values) for name, values in rows.items()} if len(rows) < 8 else f"{len(rows)} kernels, {sum(map(len, rows.values()))} launches"
        record(f"the program's output under kernel replay ({mode})", f"{'the same' if same else 'DIFFERENT: ' + plain + ' / ' + out}; {told}, {len(rows.get('CUDA graph', []))} graphs, {seconds:.1f} s",
               "the same", judge(same and rows and graphs))


def pc(t):
    print("PC sampling")
    folder = os.path.join(t.folder, "pc")
    shutil.rmtree(folder, ignore_errors=True)
    _, err, seconds = t.run([t.tacho, "profile", "--no-roof", "-b", "21", "--output-directory", folder, "--", t.kernels, "all", "40"])
    print("   ", "\n    ".join(err.splitlines()[-12:]))
    files = sorted(os.listdir(folder))
    name = next((file for file in files if file.startswith("ps_file_pc_sampling")), None)
    if name is None:
        record("PC samples", f"no file of samples among {files}", "some", "missed")
        return
    shutil.copy(os.path.join(folder, name), os.path.join(t.out, "pc_samples.csv"))
    with open(os.path.join(folder, name)) as text:
        rows = list(csv.DictReader(text))
    lines = sum("cuda_kernels.cu:" in row["Instruction_Comment"] for row in rows)
    sass = sum(bool(re.match(r"/\*[0-9a-f]+\*/\s+(@!?U?P\d+\s+)?[A-Z][A-Z0-9_.]+", row["Instruction"])) for row in rows)
    record("PC samples", f"{len(rows)} rows, {lines} with a source line, {sass} with SASS, {seconds:.1f} s", "lines and SASS", judge(rows and lines and sass))
    out, _, _ = t.run([t.tacho, "analyze", "-p", folder, "-b", "21"])
    print("\n".join("    " + line[:150] for line in out.splitlines()[:40]))


def every(t):
    print("Every metric of the catalog")
    out, _, _ = t.run([t.tacho, "profile", "--list-available-metrics"])
    count = len(re.findall(r"^\s*\d+\.\d+\.\d+", out, re.M))
    folder = os.path.join(t.folder, "every")
    rows, _, seconds = t.profile("every", [], ["all", "1"])
    columns = sorted({name for launches in rows.values() for row in launches for name in row})
    with open(os.path.join(folder, sorted(f for f in os.listdir(folder) if f.startswith("pmc_perf_"))[0])) as text:
        asked = [name for name in next(csv.reader(text)) if "__" in name]
    empty = [name for name in asked if name not in columns]
    record("every metric once", f"{count} in the list, {len(columns)} counters with values, {len(empty)} without, {seconds:.0f} s", ">= 150", judge(count >= 150))
    print("    without a value:", " ".join(empty))


def identities(t):
    print("Sums that must hold")
    rows, _, _ = t.profile("identities", [], ["all", "1"])
    known = [  # whole, parts; tolerance in per cent for counts of different passes
        ("l1tex__t_sectors_lookup_hit.sum + l1tex__t_sectors_lookup_miss.sum", "l1tex__t_sectors.sum", 2),
        ("lts__t_sectors_lookup_hit.sum + lts__t_sectors_lookup_miss.sum", "lts__t_sectors.sum", 2),
        ("lts__t_sectors_op_read.sum + lts__t_sectors_op_write.sum + lts__t_sectors_op_atom.sum + lts__t_sectors_op_red.sum", "lts__t_sectors.sum", 8),  # ncu: 0.93 to 1.00 of it
        ("dram__bytes_read.sum + dram__bytes_write.sum", "dram__bytes.sum", 2),
        ("smsp__thread_inst_executed.sum", "smsp__inst_executed.sum * 32", None),
        ("smsp__inst_executed.sum", "smsp__inst_issued.sum", None),
    ]
    done = good = 0
    for left, right, tolerance in known:
        names = re.findall(r"[a-z0-9_]+__[a-z0-9_.]+", left + " " + right)
        for kernel, launches in rows.items():
            if not all(name in launches[0] for name in names):
                continue
            sides = [eval(re.sub(r"[a-z0-9_]+__[a-z0-9_.]+", lambda m: repr(launches[0][m.group()]), side)) for side in (left, right)]
            done += 1
            holds = sides[0] <= sides[1] * 1.000001 if tolerance is None else abs(sides[0] - sides[1]) <= tolerance / 100 * abs(sides[1]) + 64
            good += holds
            if not holds:
                print(f"    {kernel}: {left} = {sides[0]:.0f}, {right} = {sides[1]:.0f}")
    record("identities between counters", f"{good} of {done}", "all", judge(good == done and done))


def seed(t):
    print("The documents' command lines")
    program = [t.kernels, "all", "6"]
    link = os.path.join(t.folder, "rocprof-compute")
    if not os.path.lexists(link):
        os.symlink(t.tacho, link)
    lines = [["--name", "vcopy"], ["--name", "vcopy", "--format-rocprof-output", "rocpd"], ["--list-available-metrics"], ["--name", "vcopy_b", "-b", "10", "7"],
             ["--name", "vcopy_k", "-k", "copy_kernel"], ["--name", "vcopy_d", "--dispatch", "0"], ["--name", "vcopy_roof", "--roof-only"],
             ["--list-sets"], ["--name", "vcopy_set", "--set", "compute_thruput_util"], ["--name", "vcopy_m", "--iteration-multiplexing", "kernel"],
             ["--name", "vcopy_ml", "--iteration-multiplexing", "kernel_launch_params"], ["--output-directory", "out/%hostname%/%gpumodel%", "-b", "2"]]
    good = 0
    for line in lines:
        command = [link, "profile", "--no-roof" if "--roof-only" not in line and "--list" not in line[0] else "-q", *line, *([] if "--list" in line[0] else ["--", *program])]
        try:
            t.run(command, limit=90)
            good += 1
        except (RuntimeError, TimeoutError) as problem:
            print("    ", problem)
    record("the documents' command lines", f"{good} of {len(lines)} end with code 0", "all", judge(good == len(lines)))
    out, _, _ = t.run([t.tacho, "analyze", "--full", "-p", os.path.join(t.folder, "workloads", "vcopy")])
    record("analyze of the first", f"{len(out.splitlines())} lines", "", judge(len(out.splitlines()) > 100))


def cupti(t):
    print("Batches of ours against CUPTI's own kernel replay")
    ours, _, _ = t.profile("own", ["-b", "10"], ["all", "3"])
    theirs, _, _ = t.profile("cupti", ["-b", "10", "--replay", "cupti"], ["all", "3"])
    exact = [(kernel, metric) for kernel, rows in theirs.items() for metric in rows[0] if EXACT.search(metric)]
    good = sum([row.get(metric) for row in ours.get(kernel, [])] == [row.get(metric) for row in theirs[kernel]] for kernel, metric in exact)
    record("exact counts of both ways are equal", f"{good} of {len(exact)}", "all", judge(exact and good == len(exact)))


def gpus(t):
    print("Several GPUs")
    rounds = 12
    plain, _, _ = t.run([t.kernels, "gpus", str(rounds)])
    for way in (["--replay", "kernel"], ["--replay", "application"], ["--iteration-multiplexing"], ["--set", "compute_thruput_util"]):
        more = [] if "--set" in way else ["-b", "10"]
        _, out, seconds = t.profile("gpus", [*more, *way], ["gpus", str(400 if "iteration" in way[0] else rounds)])
        launches, counts, empty = {}, {}, 0
        folder = os.path.join(t.folder, "gpus")
        for file in sorted(name for name in os.listdir(folder) if re.fullmatch(r"pmc_perf_\d+\.csv", name)):
            with open(os.path.join(folder, file)) as text:
                for row in csv.DictReader(text):
                    kernel = re.sub(r"\(.*", "", row["Kernel_Name"])
                    launches[row["GPU_ID"]] = launches.get(row["GPU_ID"], 0) + 1
                    for name, value in row.items():
                        if "__" not in name:
                            continue
                        empty += value in ("", None, "nan")
                        if EXACT.search(name):
                            counts.setdefault((kernel, name), {}).setdefault(row["GPU_ID"], set()).add(value)
        equal = sum(len(set().union(*each.values())) == 1 and len(each) >= 2 for each in counts.values())
        same = "iteration" in way[0] or "application" in way or re.sub(r"[\d.]+ ms", "", plain) == re.sub(r"[\d.]+ ms", "", out)
        whole = "iteration" in way[0] or all(number == 2 * rounds + 1 for number in launches.values())
        record(f"a copy and a reduction on each GPU in turn, {' '.join(way)}", f"launches {launches}, {empty} cells empty, {equal} of {len(counts)} exact counts the same on all GPUs, "
               f"output {'the same' if same else 'DIFFERENT'}, {seconds:.1f} s", "as on one GPU",
               judge(len(launches) >= 2 and whole and empty == 0 and equal == len(counts) and (counts or "--set" in way) and same))


SECTIONS = {"cupti": (cupti, 40), "time": (times, 150), "multiplex": (multiplex, 100), "values": (values, 240), "more_values": (more_values, 240), "pc": (pc, 60), "host": (host, 120), "unselected": (unselected, 90),
            "application": (application, 60), "every": (every, 90), "identities": (identities, 90), "seed": (seed, 240), "gpus": (gpus, 150)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build"))
    parser.add_argument("--out", default=".")
    parser.add_argument("--limit", type=float, default=3600, help="seconds for all sections together")
    parser.add_argument("sections", nargs="*", default=[])
    arguments = parser.parse_args()
    t = Tools(os.path.abspath(arguments.build), os.path.abspath(arguments.out))
    end = time.monotonic() + arguments.limit
    for section in arguments.sections or [name for name in SECTIONS if name != "gpus"]:
        begin = time.monotonic()
        work, limit = SECTIONS[section]
        t.deadline = min(begin + limit, end)
        try:
            work(t)
        except Exception as problem:
            record(f"section {section}", repr(problem)[:700], "", "FAILED")
        print(f"  ({section}: {time.monotonic() - begin:.0f} s)", flush=True)
    print("\nVerdicts")
    width = max(len(row[0]) for row in TABLE)
    for what, measured, goal, verdict in TABLE:
        print(f"{verdict:>12}  {what:<{width}}  {measured}{'  (goal ' + goal + ')' if goal else ''}")
    with open(os.path.join(arguments.out, "cuda_profile.json"), "w") as file:
        json.dump(TABLE, file, indent=1)
    shutil.rmtree(t.folder, ignore_errors=True)
    sys.exit(1 if any(row[3] in ("FAILED", "missed") for row in TABLE) else 0)


if __name__ == "__main__":
    main()
