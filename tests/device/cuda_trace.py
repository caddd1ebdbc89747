#!/usr/bin/env python3
"""Traces CUDA and PyTorch programs on a real GPU and compares with peers. Run by cuda_trace.sh; prints a verdict table.

usage: cuda_trace.py [--build DIR] [--out DIR] [--pairs N] [SECTION...]
Sections: storm, torch, correct (against torch.profiler), threads (500 of them), gemm, soak, graph, survive (programs that
are hard to trace); not run by default: several (needs two GPUs), pause, peer.

Times are compared in ABBA order; a figure is the median of the paired ratios with a 95 % bootstrap interval, and a goal
is met when the interval's upper end meets it. An interval wider than the margin to the goal is "not resolved".
"""
import argparse
import contextlib
import ctypes
import glob
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = []  # (what, measured, goal, verdict)


def say(text):
    print(text, flush=True)


def record(what, measured, goal="", verdict=""):
    TABLE.append((what, measured, goal, verdict))
    say(f"  {what}: {measured}{'  goal ' + goal if goal else ''}{'  ' + verdict if verdict else ''}")


def check(what, ok, measured=""):
    record(what, str(measured), "", "ok" if ok else "FAILED")
    return ok


def interval(ratios, rounds=5000):
    generator = random.Random(1)
    medians = sorted(statistics.median(generator.choices(ratios, k=len(ratios))) for _ in range(rounds))
    return statistics.median(ratios), medians[int(rounds * 0.025)], medians[int(rounds * 0.975)]


def compare(what, a, b, goal=None, unit="", pairs=25):
    """a, b: live programs that run once when asked and answer with a figure. Ratio a/b."""
    for program in (a, b):
        program.ask()  # not counted
    values = []
    for i in range(pairs):
        if i % 2 == 0:
            x = a.ask()
            y = b.ask()
        else:
            y = b.ask()
            x = a.ask()
        values.append((x, y))
    ratio, low, high = interval([x / y for x, y in values])
    verdict = "" if goal is None else "met" if high <= goal else "missed" if low > goal else "not resolved"
    record(what, f"{ratio:.3f} [{low:.3f}, {high:.3f}] ({statistics.median(x for x, _ in values):.4g} vs "
                 f"{statistics.median(y for _, y in values):.4g} {unit}, {pairs} pairs)",
           "" if goal is None else f"<= {goal}", verdict)
    return ratio


def compare_generations(what, open_pair, goal, unit, generations, pairs):
    """As compare(), with programs started anew several times: where a process's memory lies moves its times by some
    percent, which no number of pairs within it averages out. The interval resamples generations, then pairs."""
    groups, left, right = [], [], []
    for generation in range(generations):
        with open_pair() as (a, b):
            a.ask(), b.ask()
            ratios = []
            for i in range(pairs):
                x, y = (a.ask(), b.ask()) if (i + generation) % 2 == 0 else reversed((b.ask(), a.ask()))
                left.append(x), right.append(y)
                ratios.append(x / y)
            groups.append(ratios)
    ratio = statistics.median(r for group in groups for r in group)
    generator = random.Random(1)
    medians = sorted(statistics.median(r for group in generator.choices(groups, k=len(groups)) for r in generator.choices(group, k=len(group)))
                     for _ in range(2000))
    low, high = medians[50], medians[1949]
    verdict = "" if goal is None else "met" if high <= goal else "missed" if low > goal else "not resolved"
    record(what, f"{ratio:.3f} [{low:.3f}, {high:.3f}] ({statistics.median(left):.4g} vs {statistics.median(right):.4g} {unit}, {generations} x {pairs} pairs; "
                 f"by start {' '.join(f'{statistics.median(group):.3f}' for group in groups)})", "" if goal is None else f"<= {goal}", verdict)


class Program:
    """A program that answers every line of its input with a figure."""

    def __init__(self, command, env=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=None if env is None else {**os.environ, **env})

    def ask(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(120)


class Tools:
    def __init__(self, build, out):
        self.tacho = os.path.join(build, "bin", "tacho")
        self.floor = os.path.join(build, "lib", "libcupti_floor.so")
        self.storm = os.path.join(build, "examples", "launch_storm_cuda")
        self.endings = os.path.join(build, "tests", "device", "cuda_endings")
        self.facts_program = os.path.join(build, "tests", "device", "trace_facts")
        self.library = os.path.join(build, "lib", "libtacho.so")
        self.train = os.path.join(HERE, "..", "..", "examples", "train_small.py")
        self.out = out
        self.folder = tempfile.mkdtemp(prefix="cuda_trace_")
        # The program on its own cores, tacho on others: the same for every configuration.
        many = os.cpu_count() >= 8
        self.cores = [2, 3, 4] if many else sorted(os.sched_getaffinity(0))
        self.pin = ["taskset", "-c", "2-4"] if many else []
        self.pin_tacho = ["taskset", "-c", "5-7"] if many else []

    def trace_file(self, name):
        return os.path.join(self.folder, re.sub(r"\W+", "_", name) + ".tacho")

    def trace(self, name, command, options=(), timeout=120, env=None):
        """Runs a command under tacho; returns (exit code, stdout, stderr, trace file)."""
        path = self.trace_file(name)
        result = subprocess.run([*self.pin_tacho, self.tacho, "trace", "-q", "--overwrite", "-o", path, *options, "--", *self.pin, *command],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout,
                                env=None if env is None else {**os.environ, **env})
        return result.returncode, result.stdout, result.stderr, path

    def facts(self, path):
        result = subprocess.run([self.facts_program, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if result.returncode != 0:
            raise RuntimeError(result.stderr)
        return json.loads(result.stdout)

    def kernels(self, facts, word):
        return sum(entry["count"] for name, entry in facts["kernels"].items() if word in name)

    def plain(self, command, env=None, timeout=120):
        result = subprocess.run([*self.pin, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout,
                                env=None if env is None else {**os.environ, **env})
        if result.returncode != 0:
            raise RuntimeError(f"{command}: {result.returncode}: {result.stderr[-300:]}")
        return result.stdout


# ---- programs that are hard to trace ---------------------------------------------------------------------------------

def survive(t, only=None):
    say("Programs that are hard to trace")
    e = t.endings

    def run(name, mode, count, expected, options=(), code=0, program=e, env=None, word="spin", extra=None):
        mode, *more = mode.split()
        if only is not None and mode not in only:
            return None
        try:
            rc, out, err, path = t.trace(name, [program, mode, str(count), *more], options, env=env)
            facts = t.facts(path)
        except Exception as problem:  # a crash or a hang is the finding
            return check(name, False, repr(problem)[:200])
        got = t.kernels(facts, word)
        ok = rc == code and (expected is None or got == expected) and (extra is None or extra(facts))
        detail = f"exit {rc}, kernels {got}" + (f" of {expected}" if expected is not None else "")
        if facts["losses"]:
            detail += f", losses {facts['losses']}"
        if not ok or err.strip():
            detail += f", stderr {err.strip()[-300:]!r}"
        check(name, ok, detail)
        return facts

    def lost(facts, count):
        return t.kernels(facts, "spin") + sum(facts["losses"].values()) >= count

    run("exit without synchronising", "nosync", 2000, 2000)
    run("_exit", "fastexit", 5000, None, code=7, extra=lambda f: lost(f, 5000))
    run("cudaDeviceReset", "reset", 1000, 2000)
    run("fork after CUDA began", "forkafter", 1000, 2000)
    run("fork before CUDA began", "forkbefore", 1000, 2000, extra=lambda f: f["processes"] >= 2)
    run("16 threads, per-thread default streams", "threads", 2000, 32000, program=e + "_ptds",
        extra=lambda f: f["unlinked"] == 0)
    run("16 threads, one default stream", "threads", 2000, 32000)
    run("cudaProfilerStart/Stop with --start-paused", "region", 500, 500, options=["--start-paused"])
    run("cudaProfilerStart/Stop without it", "region", 500, 1500)
    run("several devices", "devices", 500, None, extra=lambda f: t.kernels(f, "spin") % 500 == 0 and f["rows"]["dispatch"] > 0)
    facts = run("copies", "copies", 100, 0)
    if isinstance(facts, dict):
        copies = {name: (c["count"], c["bytes"]) for name, c in facts["copies"].items()}
        want = {"host to device": (100, 100000), "device to host": (100, 200000), "device to device": (100, 300000)}
        check("copies: bytes per direction", copies == want and facts["fills"].get("fill", {}).get("bytes") == 400000, copies)
    run("CUPTI's own clock", "copies", 10, 0, options=["--cupti-clock"], extra=lambda f: f["starts_before_call"] == 0 and f["copies"]["host to device"]["count"] == 10)
    run("managed memory", "managed", 1, None, word="add_one", extra=lambda f: t.kernels(f, "add_one") == 1)
    facts = run("graph, one span a launch", "graph", 50, None, extra=lambda f: f["rows"]["dispatch"] >= 50)
    if isinstance(facts, dict):
        check("graph span has its nodes' names", any("graph of 101 nodes" in name for name in facts["kernels"]), list(facts["kernels"]))
    run("graph, every node", "graph", 50, 50, options=["--graph-trace", "node"], extra=lambda f: t.kernels(f, "add_one") == 50 * 99)
    run("no device visible", "nosync", 10, 0, code=1, env={"CUDA_VISIBLE_DEVICES": ""})
    run("--stop-trigger launch:4", "reset", 1000, 3, options=["--stop-trigger", "launch:4"])
    run("--start-trigger launch:1991", "reset", 1000, 10, options=["--start-trigger", "launch:1991"])

    if only is not None:
        return
    # SIGKILL in a launch storm.
    path = t.trace_file("sigkill")
    process = subprocess.Popen([t.tacho, "trace", "-q", "--overwrite", "-o", path, "--", e, "kill"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    time.sleep(2.5)
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        os.kill(int(file.read().split()[0]), signal.SIGKILL)
    process.communicate(timeout=60)
    facts = t.facts(path)
    launched = facts["api"].get("cudaLaunchKernel", {}).get("count", 0)
    got = t.kernels(facts, "spin")
    check("SIGKILL in a launch storm", process.returncode == 137 and got > 1000 and launched - got < 5000,
          f"exit {process.returncode}, {launched} launches, {got} kernels, losses {facts['losses']}")

    if have_torch():
        script = ("import torch, torch.multiprocessing as mp\n"
                  "def work(i):\n  x = torch.ones(64, device='cuda')\n  for _ in range(100): x = x + 1\n  torch.cuda.synchronize()\n"
                  "if __name__ == '__main__':\n  mp.start_processes(work, nprocs=2, start_method='spawn')\n  work(0)\n  print('done')\n")
        path = os.path.join(t.folder, "spawn.py")
        with open(path, "w") as file:
            file.write(script)
        rc, out, err, trace = t.trace("torch spawn", [sys.executable, path])
        facts = t.facts(trace)
        check("torch.multiprocessing spawn", rc == 0 and "done" in out and facts["rows"]["dispatch"] >= 300 and facts["processes"] >= 3,
              f"exit {rc}, {facts['rows']['dispatch']} kernels, {facts['processes']} processes, losses {facts['losses']}")
        for name, script, test in (
                ("torch.multiprocessing fork, CUDA first used in the children",
                 "import torch, torch.multiprocessing as mp\n"
                 "def work(i):\n  x = torch.ones(64, device='cuda')\n  for _ in range(100): x = x + 1\n  torch.cuda.synchronize()\n"
                 "if __name__ == '__main__':\n  mp.start_processes(work, nprocs=2, start_method='fork')\n  print('done')\n",
                 lambda f: f["rows"]["dispatch"] >= 202 and f["processes"] >= 2),
                ("torch's emit_nvtx ranges",
                 "import torch\nx = torch.ones(64, device='cuda', requires_grad=True)\n"
                 "with torch.autograd.profiler.emit_nvtx():\n  for _ in range(50): (x * 2).sum().backward()\ntorch.cuda.synchronize()\nprint('done')\n",
                 lambda f: f["rows"]["marker"] >= 200)):
            path = os.path.join(t.folder, "script.py")
            with open(path, "w") as file:
                file.write(script)
            rc, out, err, trace = t.trace("torch script", [sys.executable, path])
            facts = t.facts(trace)
            check(name, rc == 0 and "done" in out and test(facts),
                  f"exit {rc}, {facts['rows']['dispatch']} kernels, {facts['rows']['marker']} markers, {facts['processes']} processes, losses {facts['losses']} {err.strip()[-200:]}")
        command = [sys.executable, t.train, "--steps", "5", "--warmup", "2", "--profiler", "cuda"]
        rc, out, err, trace = t.trace("torch.profiler", command)
        facts = t.facts(trace)
        lines = [line for line in err.splitlines() if line.startswith("tacho:")]
        check("torch.profiler in the program: runs to its end, one line says who got the records",
              rc == 0 and "ms/step" in out and facts["rows"]["dispatch"] > 1000 and len(lines) == 1, f"exit {rc}: {lines}")
        counts = os.path.join(t.folder, "yield.json")
        rc, out, err, trace = t.trace("yield", [*command, "--counts", counts], ["--yield-to-app"])
        with open(counts) as file:
            theirs = sum(entry["count"] for entry in json.load(file).values())
        check("--yield-to-app", rc == 0 and theirs > 1000 and t.facts(trace)["rows"]["dispatch"] == 0, f"exit {rc}, the program's profiler has {theirs}")


def several(t):
    """Two GPUs: contexts, a peer copy, two processes that reduce over NCCL."""
    say("Several GPUs")
    rc, out, err, path = t.trace("devices", [t.endings, "devices", "500"])
    facts = t.facts(path)
    count = int(re.search(r"(\d+) devices", out).group(1))
    spins, peers = t.kernels(facts, "spin"), facts["copies"].get("peer to peer", {}).get("bytes", 0)
    staged = [facts["copies"].get(way, {}).get("bytes", 0) for way in ("device to host", "host to device")]
    want = (count - 1) << 20  # the driver copies directly or through the host
    check("kernels on every GPU, peer copies", rc == 0 and spins == 500 * count and facts["unlinked"] == 0 and (peers == want or staged == [want, want]),
          f"exit {rc}, {out.strip()}, kernels {spins}, not linked {facts['unlinked']}, copies {facts['copies']}, losses {facts['losses']}, stderr {err.strip()[-300:]!r}")
    script = ("import os, torch, torch.distributed as dist, torch.multiprocessing as mp\n"
              "def work(rank, size):\n"
              "  os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT='29511')\n"
              "  torch.cuda.set_device(rank)\n  dist.init_process_group('nccl', rank=rank, world_size=size)\n"
              "  x = torch.ones(1 << 20, device='cuda') * (rank + 1)\n"
              "  for _ in range(10): dist.all_reduce(x)\n  torch.cuda.synchronize()\n  dist.destroy_process_group()\n"
              "if __name__ == '__main__':\n  n = torch.cuda.device_count()\n  mp.start_processes(work, args=(n,), nprocs=n, start_method='spawn')\n  print('reduced')\n")
    path = os.path.join(t.folder, "reduce.py")
    with open(path, "w") as file:
        file.write(script)
    rc, out, err, trace = t.trace("nccl", [sys.executable, path], timeout=200)
    facts = t.facts(trace)
    check("NCCL all-reduce in a process per GPU", rc == 0 and "reduced" in out and t.kernels(facts, "nccl") >= 10 * count,
          f"exit {rc}, {t.kernels(facts, 'nccl')} NCCL kernels, {facts['processes']} processes, {facts['rows']['marker']} markers, losses {facts['losses']} {err.strip()[-200:]}")
    for file in (trace, t.trace_file("devices")):
        if os.path.getsize(file) < 3_000_000:
            subprocess.run(["cp", file, t.out])


def many_threads(t):
    """500 threads, each with a buffer of CUPTI's, several times."""
    say("500 threads, 200 launches each")
    for attempt in range(3):
        rc, out, err, path = t.trace("many threads", [t.endings + "_ptds", "threads", "200", "500"])
        facts = t.facts(path)
        got = t.kernels(facts, "spin")
        check(f"500 threads without a loss, run {attempt + 1}", rc == 0 and got == 100000 and not facts["losses"] and facts["unlinked"] == 0,
              f"exit {rc}, kernels {got} of 100000, launches {facts['api'].get('cudaLaunchKernel', {}).get('count')}, not linked {facts['unlinked']}, losses {facts['losses']} {err.strip()[-200:]}")


# ---- the same program under torch.profiler ----------------------------------------------------------------------------

def have_torch():
    return subprocess.run([sys.executable, "-c", "import torch, sys; sys.exit(not torch.cuda.is_available())"],
                          stderr=subprocess.DEVNULL).returncode == 0


def normal(name):
    """Kernel names of two demanglers, compared without blanks and return type."""
    return re.sub(r"\s+", "", name).replace("void", "", 1) if name.startswith("void") else re.sub(r"\s+", "", name)


def correct(t):
    say("Against torch.profiler, the same steps")
    counts, chrome = os.path.join(t.out, "torch_counts.json"), os.path.join(t.folder, "torch_trace.json")
    base = [sys.executable, t.train, "--steps", "40"]
    their_runs, our_runs = [], []
    # The two cannot watch the same run, and a kernel's time differs between runs. Kernels also run differently when CUPTI takes
    # its memory on the GPU after the program has its buffers; tacho is there first, so torch.profiler is, too.
    for _ in range(5):
        t.plain([*base, "--profiler", "cuda", "--profiler-early", "--counts", counts, "--trace", chrome])
        rc, out, err, path = t.trace("train", [*base, "--mark-region"], ["--start-paused"])
        facts = t.facts(path)
        our_runs.append({normal(name): entry["ns"] for name, entry in facts["kernels"].items()})
        with open(counts) as file:
            their_runs.append({normal(name): entry["ns"] for name, entry in json.load(file).items()})
    with open(os.path.join(t.out, "train_facts.json"), "w") as file:
        json.dump(facts, file, indent=1)
    with open(counts) as file:
        theirs = json.load(file)
    kernels = {normal(name): entry for name, entry in theirs.items() if not name.startswith("Mem")}
    ours = {normal(name): entry for name, entry in facts["kernels"].items()}
    wrong = [f"{name[:60]}: {ours.get(name, {}).get('count')} vs {entry['count']}" for name, entry in kernels.items()
             if ours.get(name, {}).get("count") != entry["count"]]
    extra = [name for name in ours if name not in kernels]
    check("kernel counts equal torch.profiler's, name by name", not wrong and not extra,
          f"{sum(e['count'] for e in ours.values())} kernels of {len(ours)} names" + (f"; {wrong[:3]} {extra[:3]}" if wrong or extra else ""))
    def medians(runs):
        return {name: statistics.median(run.get(name, 0) for run in runs) for name in kernels}

    def spread(runs, name):
        return (max(run.get(name, 0) for run in runs) - min(run.get(name, 0) for run in runs)) / statistics.median(run.get(name, 0) for run in runs)

    mine, peers = medians(our_runs), medians(their_runs)
    total = sum(mine.values()) / max(sum(peers.values()), 1)
    worst = sorted(kernels, key=lambda name: -abs(mine[name] / peers[name] - 1))
    for name in worst[:3]:
        say(f"    {name[:90]}: {mine[name] / 1e3:.1f} us vs {peers[name] / 1e3:.1f} us (median of 5 runs), run to run "
            f"{100 * spread(our_runs, name):.1f} % and {100 * spread(their_runs, name):.1f} %")
    off = abs(mine[worst[0]] / peers[worst[0]] - 1)
    record("kernel durations summed by name against torch.profiler's, the worst name", f"{100 * off:.2f} % of {len(kernels)} names; all together {100 * (total - 1):+.2f} %",
           "<= 3 %", "met" if off <= 0.03 else "missed")
    with open(chrome) as file:
        copied = sum(event["args"]["bytes"] for event in json.load(file)["traceEvents"] if event.get("cat") == "gpu_memcpy")
    check("bytes copied equal torch.profiler's", copied == sum(e["bytes"] for e in facts["copies"].values()), copied)
    check("every kernel is linked to an API call", facts["unlinked"] == 0, f"{facts['unlinked']} not linked")
    check("no kernel starts before its call", facts["starts_before_call"] == 0, facts["starts_before_call"])
    check("nothing lost", not facts["losses"], facts["losses"])


def rounds(t, count=100):
    """Recording starts and stops `count` times. CUPTI up to 13.0 spoils one more record with each registration of the callback that
    gives it the time: it is registered once, so that every record lies in its round."""
    say("Recording that starts and stops many times")
    rc, _, err, path = t.trace("rounds", ["python3", os.path.join(HERE, "profiler_rounds.py"), str(count)], ["--start-paused"])
    sql = ("SELECT m.name, count(k.id), max(k.duration) FROM marker m LEFT JOIN dispatch k ON k.start >= m.start AND k.end <= m.end "
           "WHERE m.name LIKE 'round %' GROUP BY m.id")
    result = subprocess.run([t.tacho, "query", path, sql, "--dialect", "tacho", "--output-format", "csv"], capture_output=True, text=True)
    rows = [line.rsplit(",", 2) for line in result.stdout.splitlines()[1:]]
    check("rounds: each holds its fifty kernels, all within it", rc == 0 and len(rows) == count and all(r[1] == "50" for r in rows),
          f"exit {rc}, {len(rows)} rounds, wrong {[r for r in rows if r[1] != '50'][:3]} {(err + result.stderr).strip()[-200:]}")
    longest = max((int(r[2]) for r in rows if r[2]), default=0)
    check("rounds: no kernel of 1 M floats takes more than a millisecond", 0 < longest < 1_000_000, f"{longest} ns")
    facts = t.facts(path)
    total = sum(k["count"] for k in facts["kernels"].values())
    check("rounds: nothing but the rounds was recorded", total == 50 * count and not facts["losses"], f"{total} kernels, losses {facts['losses']}")


# ---- times ------------------------------------------------------------------------------------------------------------

def floor_env(t, kinds):
    return {"CUDA_INJECTION64_PATH": t.floor, "FLOOR_KINDS": kinds}


SAME_KINDS = ["--kernel-trace", "--memory-copy-trace", "--runtime-trace", "--driver-trace", "--all-api-calls"]  # as the floor's kcrd


@contextlib.contextmanager
def storms(t, arguments):
    """Makers of live launch storms: untraced(), floor(kinds), traced(options)."""
    running = []
    command = [*t.pin, t.storm, "-i", *arguments]

    def start(words, env=None):
        running.append(Program(words, env))
        return running[-1]

    def traced(*options):
        return start([*t.pin_tacho, t.tacho, "trace", "-q", "--overwrite", "-o", t.trace_file(f"storm{len(running)}"), *options, "--", *command])

    try:
        yield (lambda: start(command)), (lambda kinds: start(command, floor_env(t, kinds))), traced
    finally:
        for program in running:
            program.close()


def storm(t, pairs):
    say("Launch storm: empty kernels, 50 k a run")
    @contextlib.contextmanager
    def start(left, right):
        with storms(t, ["-n", "50000"]) as makers:
            yield left(*makers), right(*makers)

    def both_ways(what, left, right, goal, generations=5):
        compare_generations(what, lambda: start(left, right), goal, "ns", generations, max(pairs // 3, 5))

    both_ways("storm, tacho / bare CUPTI, kernels+copies+runtime+all driver calls", lambda u, f, t: t(*SAME_KINDS), lambda u, f, t: f("kcrd"), 1.10)
    both_ways("storm, tacho's default / bare CUPTI (the same kinds)", lambda u, f, t: t(), lambda u, f, t: f("kcrlmo"), 1.10)
    both_ways("storm, bare CUPTI (kcrd) / untraced", lambda u, f, t: f("kcrd"), lambda u, f, t: u(), None, 2)
    both_ways("storm, tacho's default / untraced", lambda u, f, t: t(), lambda u, f, t: u(), None, 2)

    rc, out, err, path = t.trace("storm_all", [t.storm, "-n", "100000", "-r", "4"], SAME_KINDS)
    facts = t.facts(path)
    properties = facts["properties"]
    launches = facts["api"]["cudaLaunchKernel"]["count"]
    record("pool bytes per launch, runtime + all driver calls", f"{int(properties['pool_bytes']) / launches:.1f}", "<= 312 (296 + 16)",
           "met" if int(properties["pool_bytes"]) / launches <= 312 else "missed")
    record(".tacho bytes per row", f"{facts['file_bytes'] / facts['all_rows']:.2f} ({facts['all_rows']} rows)", "<= 8",
           "met" if facts["file_bytes"] / facts["all_rows"] <= 8 else "missed")
    check("storm: kernels received = launches seen, nothing lost", facts["rows"]["dispatch"] == launches and not facts["losses"],
          f"{facts['rows']['dispatch']} of {launches}, losses {facts['losses']}")
    per_million = int(properties["cupti.exit_ns"]) / 1e6 / (facts["all_rows"] / 1e6)
    record("exit work in the target per 1 M records", f"{per_million:.2f} ms", "<= 20 ms", "met" if per_million <= 20 else "missed")
    record("tacho's own CPU for draining, decoding, encoding", f"{float(properties['drain_cpu_seconds']):.2f} s for {facts['all_rows']} rows")


def graph(t, pairs):
    say("Graph launches of 100 kernels")
    for mode, kinds in (("graph", "kcrlmog"), ("node", "kcrlmo")):
        with storms(t, ["-g", "-n", "200000"]) as (untraced, floor, traced):
            compare(f"graph launches, --graph-trace {mode} / bare CUPTI", traced("--graph-trace", mode), floor(kinds), 1.10, "ns per node", pairs)


class TorchProgram:
    """A child forked from this process, which has imported torch already: prepares once, then works whenever asked."""

    def __init__(self, t, prepare, environment):
        import torch
        to_child, from_parent = os.pipe()
        to_parent, from_child = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.close(from_parent)
                os.close(to_parent)
                for name in ("CUDA_INJECTION64_PATH", "TACHO_POOL"):
                    os.environ.pop(name, None)
                os.environ.update(environment)
                os.sched_setaffinity(0, t.cores)
                work = prepare(torch)
                while os.read(to_child, 1) == b"x":
                    os.write(from_child, f"{work()}\n".encode())
                status = 0
            except BaseException as problem:
                os.write(2, f"{problem!r}\n".encode())
            finally:
                # As the program's own end, with C's exit handlers but not through this script's with statements.
                ctypes.CDLL(None).exit(status)
        os.close(to_child)
        os.close(from_child)
        self.input, self.output = from_parent, os.fdopen(to_parent)

    def ask(self):
        os.write(self.input, b"x")
        text = self.output.readline()
        if not text:
            raise RuntimeError("the torch program died")
        return float(text)

    def close(self):
        os.write(self.input, b"q")
        os.close(self.input)
        self.output.close()
        os.waitpid(self.pid, 0)


@contextlib.contextmanager
def pool(t, options=()):
    """A tacho that drains a pool for programs which are not its own children."""
    where = os.path.join(t.folder, "pool")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(where)
    holder = subprocess.Popen([*t.pin_tacho, t.tacho, "trace", "-q", "--overwrite", "-o", t.trace_file("held"), *options, "--", "sh", "-c",
                               f"echo $TACHO_POOL > {where}.new; mv {where}.new {where}; exec sleep 3600"])
    while not os.path.exists(where):
        time.sleep(0.01)
    with open(where) as file:
        name = file.read().strip()
    try:
        yield {"TACHO_POOL": name, "CUDA_INJECTION64_PATH": t.library}
    finally:
        holder.terminate()
        holder.wait(60)


def training(steps, profiler=None):
    def prepare(torch):
        torch.manual_seed(1)
        layers = []
        for _ in range(50):
            layers += [torch.nn.Linear(256, 256), torch.nn.ReLU()]
        model = torch.nn.Sequential(*layers).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        inputs, target = torch.randn(64, 256), torch.randn(64, 256, device="cuda")

        def step():
            optimizer.zero_grad(set_to_none=True)
            torch.nn.functional.mse_loss(model(inputs.cuda()), target).backward()
            optimizer.step()
            torch.cuda.synchronize()

        for _ in range(15):
            step()

        def work():
            running = None
            if profiler is not None:
                running = torch.profiler.profile(activities=[getattr(torch.profiler.ProfilerActivity, name) for name in profiler], acc_events=True)
                running.__enter__()
            times = []
            for _ in range(steps):
                begin = time.perf_counter()
                step()
                times.append(time.perf_counter() - begin)
            if running is not None:
                running.__exit__(None, None, None)
            return 1000 * statistics.median(times)
        return work
    return prepare


def gemm(torch):
    a = torch.randn(6144, 6144, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(6144, 6144, device="cuda", dtype=torch.bfloat16)
    for _ in range(50):
        a @ b

    def work():
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(400):
            a @ b
        torch.cuda.synchronize()
        return 1000 * (time.perf_counter() - begin) / 400
    return work


@contextlib.contextmanager
def both(a, b):
    try:
        yield a, b
    finally:
        a.close()
        b.close()


def torch_step(t, pairs):
    say("PyTorch: training step of a 50-layer, 256-wide perceptron, 30 steps a run")
    step = training(30)
    @contextlib.contextmanager
    def start(options, kinds):
        with pool(t, options) as ours, both(TorchProgram(t, step, ours), TorchProgram(t, step, floor_env(t, kinds))) as programs:
            yield programs

    compare_generations("torch step, tacho / bare CUPTI, kernels+copies+runtime+all driver calls", lambda: start(SAME_KINDS, "kcrd"), 1.05, "ms", 5, pairs // 2)
    compare_generations("torch step, tacho's default / bare CUPTI (the same kinds, all calls)", lambda: start((), "kcrlmo"), 1.05, "ms", 4, pairs // 2)
    torch_peer(t, pairs)
    with both(TorchProgram(t, step, floor_env(t, "kcrq")), TorchProgram(t, step, floor_env(t, "kcr"))) as (a, b):
        compare("torch step, bare CUPTI without calls that only ask / with them", a, b, None, "ms", pairs // 2)
    with pool(t) as ours, both(TorchProgram(t, step, ours), TorchProgram(t, step, {})) as (a, b):
        compare("torch step, tacho's default / untraced", a, b, None, "ms", pairs // 2)


def torch_peer(t, pairs):
    @contextlib.contextmanager
    def start():
        with pool(t) as ours, both(TorchProgram(t, training(30), ours), TorchProgram(t, training(30, ["CUDA"]), {})) as programs:
            yield programs
    compare_generations("torch step, tacho's default / torch.profiler(CUDA)", start, 1.0, "ms", 4, max(pairs // 5, 3))  # torch.profiler takes seconds to end


def gemm_loop(t, pairs):
    say("GPU-bound: 6144-wide bf16 matrix products, 400 a run")
    with pool(t) as ours, both(TorchProgram(t, gemm, ours), TorchProgram(t, gemm, {})) as (a, b):
        compare("GEMM loop, tacho / untraced", a, b, 1.01, "ms", 2 * pairs)


# ---- long runs --------------------------------------------------------------------------------------------------------

def soak(t, launches):
    say(f"Soak: {launches * 100 / 1e6:.1f} M graph-node records with a small device pool")
    begin = time.monotonic()
    rc, out, err, path = t.trace("soak", [t.storm, "-g", "-n", str(launches * 100), "-r", "1"],
                                 ["--graph-trace", "node", "--cupti-device-buffers", "8", "--kernel-trace"], timeout=540)
    seconds = time.monotonic() - begin
    facts = t.facts(path)
    nodes = facts["graph_nodes"]
    check("soak: every graph node has valid times", rc == 0 and nodes == launches * 100 and "dropped by the vendor's library" not in facts["losses"],
          f"{nodes} of {launches * 100} nodes in {seconds:.0f} s, losses {facts['losses']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    parser.add_argument("--out", default=".")
    parser.add_argument("--pairs", type=int, default=25)
    parser.add_argument("--soak", type=int, default=20000, help="graph launches of 100 nodes in the soak")
    parser.add_argument("sections", nargs="*", default=[])
    arguments = parser.parse_args()
    t = Tools(os.path.abspath(arguments.build), arguments.out)
    sections = arguments.sections or ["storm", "torch", "correct", "threads", "gemm", "soak", "graph", "survive", "rounds"]
    work = {"survive": lambda: survive(t), "threads": lambda: many_threads(t), "several": lambda: several(t), "rounds": lambda: rounds(t), "pause": lambda: survive(t, ["region", "reset", "threads", "copies"]), "correct": lambda: correct(t), "storm": lambda: storm(t, arguments.pairs),
            "graph": lambda: graph(t, arguments.pairs), "peer": lambda: torch_peer(t, arguments.pairs), "torch": lambda: torch_step(t, arguments.pairs),
            "gemm": lambda: gemm_loop(t, arguments.pairs), "soak": lambda: soak(t, arguments.soak)}
    for section in sections:
        begin = time.monotonic()
        try:
            work[section]()
        except Exception as problem:
            check(f"section {section}", False, repr(problem)[:300])
        say(f"  ({section}: {time.monotonic() - begin:.0f} s)")
    for path in glob.glob(os.path.join(t.folder, "*.tacho")):
        if os.path.getsize(path) < 3_000_000 and os.path.basename(path) in ("train.tacho", "torch.profiler.tacho"):
            subprocess.run(["cp", path, arguments.out])
    say("\nVerdicts")
    width = max(len(row[0]) for row in TABLE)
    for what, measured, goal, verdict in TABLE:
        say(f"{verdict:>12}  {what:<{width}}  {measured}{'  (goal ' + goal + ')' if goal else ''}")
    with open(os.path.join(arguments.out, "cuda_trace.json"), "w") as file:
        json.dump(TABLE, file, indent=1)
    bad = [row for row in TABLE if row[3] in ("FAILED", "missed")]
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
