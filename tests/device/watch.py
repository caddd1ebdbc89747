"""The measurements of watch.sh.

events  what events, barriers and launches take on this GPU and its host.
counts  a program runs a fixed work under torch.profiler, then the same under tacho watch: launches by kernel, and their times.
times   ten programs under tacho watch, six seconds each, in turns with one under torch.profiler: the average times of the top ten kernels
        of a model, of kernels of known lengths on one and several streams, and of the graph as a whole, against the stated errors.
cost    programs run the same loops in turn on the same two cores, each in a process of its own that stays warm: without anything, under
        tacho watch, under torch.profiler, under Proton where Triton has it. Against tacho watch a round takes four blocks of some 10 ms
        in the order A B B A; the ratio of a round is the sum of a program's two times to the first program's, and the median of hundreds
        of rounds resolves what single ones do not. The profilers' blocks are longer, as they are started for each.
governor  a program runs eager work, graphs, and both in turn for 25 s each under tacho watch: what its governor says at the end of each.
budget  whether the budget is held within half a percent, also where the load changes: as cost, with a second program without anything
        as control.
parts   where the cost comes from: programs without anything, with the library alone, with counts only, watched, and with --keep take turns as
        in budget; then again while tacho is stopped, and in blocks that are eight times as long.
past    what counting takes within one program, whose calls go through tacho's functions and past them in turns. Needs the target
        tacho_watch_past (lib/past/libtacho-watch.so).
"""
import argparse
import collections
import ctypes
import json
import math
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

LOOPS = ("eager", "busy", "graph", "small_graph", "tiny", "mixed")
# The share of its untraced speed that a program keeps under tacho watch, at least.
GOALS = {"eager": 0.98, "busy": 0.98, "graph": 0.99, "small_graph": 0.99, "tiny": 0.97, "mixed": 0.98}
BUDGET = 0.01


# The programs

def make_loops():
    import torch
    torch.manual_seed(1)
    torch.set_num_threads(1)
    layer = torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True, device="cuda", dtype=torch.float16).eval()
    batch = torch.randn(2, 32, 256, device="cuda", dtype=torch.float16)
    tiny = torch.zeros(32, device="cuda")
    large = torch.zeros(1 << 20, device="cuda")

    def captured(nodes):
        def body():
            for _ in range(nodes):
                large.add_(1)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            body()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            body()
        return graph

    graphs = {"graph": captured(108), "small_graph": captured(18)}

    def eager(steps):
        with torch.inference_mode():
            for _ in range(steps):
                layer(batch)

    square = torch.randn(2048, 2048, device="cuda", dtype=torch.float16)
    more = torch.zeros(1 << 24, device="cuda")

    def busy(steps):  # the device has more to do than the host
        for _ in range(steps):
            torch.mm(square, square)
            more.mul_(1.5)

    def run_tiny(launches):
        for _ in range(launches):
            tiny.add_(1)

    def replay(name, times):
        for _ in range(times):
            graphs[name].replay()

    def mixed(steps):
        for _ in range(steps):
            eager(10)
            replay("graph", 10)
            run_tiny(200)

    return {"busy": lambda scale=1: busy(int(1000 * scale)), "eager": lambda scale=1: eager(int(400 * scale)), "graph": lambda scale=1: replay("graph", int(1000 * scale)),
            "small_graph": lambda scale=1: replay("small_graph", int(4000 * scale)), "tiny": lambda scale=1: run_tiny(int(100_000 * scale)),
            "mixed": lambda scale=1: mixed(max(1, int(40 * scale)))}


def pin(cores):
    if cores:
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})


def worker(profiler, cores):
    """A line of input names a loop and its scale; the answer is its time in seconds."""
    import torch
    loops = make_loops()
    pin(cores)
    past = past_switch()
    if profiler == "proton":
        import triton.profiler as proton
        proton.start(str(pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / "watch_proton"))
    print("ready", flush=True)
    for line in sys.stdin:
        name, scale, *by = line.split()
        loop, scale = loops[name], float(scale)
        torch.cuda.synchronize()
        past.value = by == ["past"]
        if profiler == "torch":
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True):
                begin = time.perf_counter()
                loop(scale)
                torch.cuda.synchronize()
                seconds = time.perf_counter() - begin
        else:
            begin = time.perf_counter()
            loop(scale)
            torch.cuda.synchronize()
            seconds = time.perf_counter() - begin
        past.value = 0
        print(f"{seconds:.6f}", flush=True)


def past_switch():
    """What sends calls past tacho's functions, in a program that has the library for it."""
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        if line.endswith("/libtacho-watch.so"):
            library = ctypes.CDLL(line.split(maxsplit=5)[-1])
            if hasattr(library, "tacho_watch_past"):
                return ctypes.c_int.in_dll(library, "tacho_watch_past")
    return ctypes.c_int()


def steady(seconds):
    """Loads of a minute: what a governor meets."""
    import torch
    loops = make_loops()
    for name in ("eager", "graph", "mixed"):
        loops[name](0.1)
    torch.cuda.synchronize()
    for name in ("eager", "graph", "mixed"):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            loops[name](0.05)
            torch.cuda.synchronize()


def profiled(work, shapes=False):
    """{name: [durations]} of kernels outside of graphs, with their shapes if wanted, and [(span, sum of its kernels)] of graphs, ns, by
    torch.profiler."""
    import torch
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True) as profiler:
        work()
        torch.cuda.synchronize()
    trace = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"watch_{os.getpid()}.trace.json"
    profiler.export_chrome_trace(str(trace))
    events = json.loads(trace.read_text())["traceEvents"]
    trace.unlink()
    # Kernels of graphs have the correlation of their graph's launch.
    launches = {event["args"].get("correlation") for event in events if event.get("name") in ("cudaGraphLaunch", "cuGraphLaunch")}
    kernels, graphs = collections.defaultdict(list), collections.defaultdict(list)
    for event in events:
        if event.get("cat") != "kernel":
            continue
        correlation = event["args"].get("correlation")
        if correlation in launches:
            graphs[correlation].append((event["ts"] * 1000, (event["ts"] + event["dur"]) * 1000))
        else:
            grid, block = (event["args"].get(key, [0, 0, 0]) for key in ("grid", "block"))
            name = shaped(event["name"], [of * each for of, each in zip(grid, block)], block) if shapes else event["name"]
            kernels[name].append(event["dur"] * 1000)
    spans = [(max(end for _, end in nodes) - min(begin for begin, _ in nodes), sum(end - begin for begin, end in nodes), len(nodes)) for nodes in graphs.values()]
    # A profiler of kernels makes graphs slower: their spans here are too long.
    return kernels, spans


def fixed_work(profile_to):
    """The same launches in every run; with torch.profiler, launches and times by kernel go to a file."""
    import torch

    def work():
        loops = make_loops()
        for name in LOOPS:
            if name != "mixed":
                loops[name](0.3)
        torch.cuda.synchronize()

    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    if not profile_to:
        return work()
    kernels, spans = profiled(work)
    pathlib.Path(profile_to).write_text(json.dumps({"kernels": {name: [len(all_of), sum(all_of)] for name, all_of in kernels.items()},
                                                    "inside": sum(inside for _, inside, _ in spans)}))
    return None


LENGTHS = (1, 2, 4, 8, 16, 32, 64, 128)  # us


def spinning(length):
    """PTX of a kernel that runs for so many cycles."""
    return f""".visible .entry spin_{length}us(.param .u64 cycles) {{
  .reg .u64 %rd<5>; .reg .pred %p;
  ld.param.u64 %rd1, [cycles];
  mov.u64 %rd2, %clock64;
again:
  mov.u64 %rd3, %clock64;
  sub.u64 %rd4, %rd3, %rd2;
  setp.lt.u64 %p, %rd4, %rd1;
  @%p bra again;
  ret;
}}
"""


class Spins:
    """Kernels of known names whose lengths are about those of LENGTHS, as one warp and on all processors, on three streams."""
    def __init__(self):
        import torch
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.streams = [torch.cuda.Stream() for _ in range(3)]
        module = ctypes.c_void_p()
        source = ".version 7.0\n.target sm_70\n.address_size 64\n" + "".join(spinning(length) for length in LENGTHS)
        self.check(self.cuda.cuModuleLoadData(ctypes.byref(module), source.encode()))
        self.launches = []
        for length in LENGTHS:
            function = ctypes.c_void_p()
            self.check(self.cuda.cuModuleGetFunction(ctypes.byref(function), module, f"spin_{length}us".encode()))
            cycles = ctypes.c_uint64(int(length * 1700))
            parameters = (ctypes.c_void_p * 1)(ctypes.addressof(cycles))
            for blocks in (1, 132):
                self.launches.append((function, blocks, parameters, cycles))

    @staticmethod
    def check(result):
        if result != 0:
            raise SystemExit(f"watch.py: the driver says {result}")

    def run(self, several):
        """Each kernel three times in a row on one stream, or on several: then only those of one warp, which do not wait for each other."""
        for turn, (function, blocks, parameters, _) in enumerate(self.launches):
            if several and blocks != 1:
                continue
            stream = ctypes.c_void_p(self.streams[turn // 2 % 3 if several else 0].cuda_stream)
            for _ in range(3):
                self.check(self.cuda.cuLaunchKernel(function, blocks, 1, 1, 32 if blocks == 1 else 256, 1, 1, 0, stream, parameters, None))


def model():
    """Steps of a model whose kernels take from two to some hundred microseconds, a graph, and kernels of known lengths. A line of input
    says for how long: "run SECONDS", or "profile SECONDS" under torch.profiler, whose answer is what it saw."""
    import torch
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, device="cuda", dtype=torch.float16).eval()
    batch = torch.randn(8, 512, 1024, device="cuda", dtype=torch.float16)
    small = torch.zeros(1 << 18, device="cuda")
    graph = torch.cuda.CUDAGraph()
    body = torch.randn(512, 512, device="cuda", dtype=torch.float16)
    spins = Spins()

    def inner():
        for _ in range(20):
            torch.tanh(body @ body)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        inner()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        inner()

    def step():
        with torch.inference_mode():
            layer(batch)
        torch.softmax(small.view(512, -1), 1)
        small.mul_(1.01).add_(0.5).relu_()
        torch.cumsum(small, 0)
        graph.replay()
        torch.cuda.synchronize()
        spins.run(False)
        torch.cuda.synchronize()
        spins.run(True)
        torch.cuda.synchronize()

    def steps(seconds):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            step()

    for _ in range(5):
        step()
    print("ready", flush=True)
    for line in sys.stdin:
        what, seconds = line.split()
        if what == "run":
            steps(float(seconds))
            print("done", flush=True)
            continue
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        periods = []
        for _ in range(10):  # one graph after the other: a graph, and what is between two of them
            begin.record()
            for _ in range(50):
                graph.replay()
            end.record()
            torch.cuda.synchronize()
            periods.append(begin.elapsed_time(end) * 1e6 / 50)
        kernels, spans = profiled(lambda: steps(float(seconds)), shapes=True)
        print(json.dumps({"kernels": {name: [len(all_of), sum(all_of), sum(ns * ns for ns in all_of)] for name, all_of in kernels.items()},
                          "span": statistics.mean(span for span, _, _ in spans), "period": statistics.median(periods)}), flush=True)


# The measurements

def measure_events():
    import torch
    cuda = ctypes.CDLL("libcuda.so.1")
    torch.zeros(1, device="cuda")
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    # CUstreamBatchMemOpParams of CU_STREAM_MEM_OP_BARRIER, 48 bytes each
    barriers = (ctypes.c_uint * (64 * 12))()
    for i in range(64):
        barriers[i * 12] = 6
    new = [ctypes.c_void_p() for _ in range(3)]
    for each in new:
        cuda.cuEventCreate(ctypes.byref(each), 0)
    heavy = torch.zeros(1 << 26, device="cuda")

    def behind(*calls):
        """Host and device ns of calls while the device has work in front of them."""
        hosts, devices = [], []
        for _ in range(50):
            for _ in range(4):
                heavy.add_(1)
            cuda.cuEventRecord(new[0], stream)
            begin = time.perf_counter_ns()
            for call in calls:
                call()
            hosts.append(time.perf_counter_ns() - begin)
            cuda.cuEventRecord(new[2], stream)
            torch.cuda.synchronize()
            took = ctypes.c_float()
            cuda.cuEventElapsedTime(ctypes.byref(took), new[0], new[2])
            devices.append(took.value * 1e6)
        return f"host {statistics.median(hosts):>8.0f} ns   device {statistics.median(devices):>8.0f} ns"

    small = torch.zeros(32, device="cuda")
    print("between two events              " + behind())
    for count in (1, 16):
        print(f"{count:>2} events between them           " + behind(*[lambda: cuda.cuEventRecord(new[1], stream)] * count))
    for count in (8, 16, 32, 64):
        result = cuda.cuStreamBatchMemOp_v2(stream, count, barriers, 0)
        print(f"{count:>2} barriers (result {result})          " + behind(lambda n=count: cuda.cuStreamBatchMemOp_v2(stream, n, barriers, 0)))
    for count in (1, 2, 4):
        print(f"{count:>2} launches of a tiny kernel     " + behind(*[lambda: small.add_(1)] * count))
    return 0


class Program:
    def __init__(self, prefix, cores, *arguments, role="--worker", when="--cores"):
        self.process = subprocess.Popen([*prefix, sys.executable, __file__, when, cores, role, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.arguments = [*prefix, role, *arguments]
        self.is_ready = False

    def ready(self):
        if not self.is_ready and self.process.stdout.readline().strip() != "ready":
            raise SystemExit(f"watch.py: {self.arguments} did not start")
        self.is_ready = True

    def ask(self, line):
        self.ready()
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def time(self, loop, scale, by=""):
        return float(self.ask(f"{loop} {scale} {by}"))

    def end(self):
        self.ready()
        self.process.stdin.close()
        return self.process.wait()


def interval(ratios):
    """The median, and the 95 % interval of it by order statistics."""
    ordered, count = sorted(ratios), len(ratios)
    outside = max(0, int((count - 1.96 * count ** 0.5) / 2))
    return statistics.median(ordered), ordered[outside], ordered[count - 1 - outside]


def watched(tacho, out, name, interval_s, budget, program):
    """Runs a program under tacho watch: a line of JSON each `interval_s`."""
    file = out / name
    return [tacho, "watch", "--output-format", "json", "-o", file, "--overwrite", "--interval", str(interval_s), "--budget", f"{budget * 100}%", "--", *program], file


def has_proton():
    return subprocess.run([sys.executable, "-c", "import triton.profiler"], capture_output=True).returncode == 0


def measure_cost(tacho, out, seconds, rounds, loops):
    cores = ",".join(str(core) for core in sorted(os.sched_getaffinity(0))[2:4])
    # The program sleeps half of the time here, which the governor takes for time without cost.
    prefix, file = watched(tacho, out, "watch_cost.jsonl", 1, BUDGET / 2, [])
    nothing, watch = Program([], cores), Program(prefix, cores)
    others = {"torch.profiler": Program([], cores, "torch")}
    if has_proton():
        others["Proton"] = Program([], cores, "proton")
    for program in (nothing, watch, *others.values()):
        program.ready()
    print(f"on cores {cores}; Proton {'is' if 'Proton' in others else 'is not'} here")
    print(f"{'loop':<12} {'nothing':>10}   {'tacho watch / nothing':<34}" + "".join(f"{name + ' / nothing':<30}" for name in others))
    counts, wrong = collections.Counter(), 0
    for loop in loops:
        def run(program, scale, loop=loop):
            if program is watch:
                counts[loop] += scaled(loop, scale)
            return program.time(loop, scale)
        for program in (nothing, watch, *others.values()):
            run(program, 0.3)
        block = 0.012 / nothing.time(loop, 0.3) * 0.3
        end = time.monotonic() + 3
        while time.monotonic() < end:  # the governor settles
            run(watch, block * 20)
        ratios, plain = [], []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            order = (nothing, watch, watch, nothing) if len(ratios) % 2 == 0 else (watch, nothing, nothing, watch)
            times = {nothing: 0.0, watch: 0.0}
            for program in order:
                times[program] += run(program, block)
            ratios.append(times[watch] / times[nothing])
            plain.append(times[nothing] / 2 / block)
        middle, low, high = interval(ratios)
        speed = 1 / middle
        verdict = "ok" if speed >= GOALS[loop] else "WRONG" if 1 / low < GOALS[loop] else "not resolved"
        held = "held" if low <= 1 + BUDGET + 0.005 else "WRONG: over the budget"
        wrong += verdict.count("WRONG") + held.count("WRONG")
        cells = []
        for program in others.values():
            more = []
            for _ in range(rounds):
                first = nothing.time(loop, 0.3)
                more.append((program.time(loop, 0.3) + program.time(loop, 0.3)) / (first + nothing.time(loop, 0.3)))
            m, l, h = interval(more)
            cells.append(f"{m:.3f} ({l:.3f} to {h:.3f})")
        print(f"{loop:<12} {statistics.median(plain):>8.3f} s   {middle:.4f} ({low:.4f} to {high:.4f}, {len(ratios)})".ljust(60) + "".join(f"{cell:<30}" for cell in cells)
              + f"{verdict}, speed {speed:.4f}, goal {GOALS[loop]}; {held}", flush=True)
    for program in (nothing, watch, *others.values()):
        program.end()
    last = json.loads(file.read_text().splitlines()[-1])
    for note in last["notes"]:
        print("  " + note)
    seen = sum(row["count"] for row in last["rows"] if row["kind"] == "graph")
    wanted = counts["graph"] + counts["small_graph"] + counts["mixed"] * 10
    wrong += 0 if seen == wanted else 1
    print(f"{'ok' if seen == wanted else 'WRONG'}: {seen} launches of graphs, {wanted} were made")
    most = max((row["count"] for row in last["rows"] if row["kind"] == "kernel" and row.get("grid", [0])[0] <= 1024), default=0)
    wanted = counts["tiny"] + counts["mixed"] * 200
    good = most >= wanted
    wrong += 0 if good else 1
    print(f"{'ok' if good else 'WRONG'}: {most} launches of the smallest hot kernel, at least {wanted} were made")
    return wrong


def scaled(loop, scale):
    """What a loop of make_loops() does."""
    return {"eager": int(400 * scale), "busy": int(1000 * scale), "graph": int(1000 * scale), "small_graph": int(4000 * scale), "tiny": int(100_000 * scale),
            "mixed": max(1, int(40 * scale))}[loop]


def plain_name(name):
    return "".join(name.split())


def shaped(name, threads, group):
    return f"{plain_name(name)} {'x'.join(map(str, threads))}/{'x'.join(map(str, group))}"


class Seen:
    """A kernel of tacho watch, over its shapes."""
    def __init__(self):
        self.count = self.timed = self.bounds = self.unknown = 0
        self.total = self.variance = 0.0

    def add(self, row):
        self.count += row["count"]
        self.timed += row["timed"]
        self.bounds += row.get("bounds", 0)
        if row["total_ns"] is None:
            self.unknown += 1
        self.total += row["total_ns"] if row["total_ns"] is not None else row.get("at_most_ns", 0)
        # The part of the error that all times have in common adds up over shapes.
        self.variance += row["interval_95_ns"] or 0

    def average(self):
        return self.total / self.count if self.count else 0.0

    def stated(self):
        return self.variance / self.count if self.count else 0.0


def seen_kernels(last):
    kernels = collections.defaultdict(Seen)
    for row in last["rows"]:
        if row["kind"] == "kernel":
            kernels[plain_name(row["name"])].add(row)
    return kernels


def measure_counts(tacho, out):
    truth_file = out / "watch_truth.json"
    subprocess.run([sys.executable, __file__, "--fixed", str(truth_file)], check=True)
    command, file = watched(tacho, out, "watch_counts.jsonl", 60, BUDGET, [sys.executable, __file__, "--fixed", ""])
    subprocess.run(command, check=True)
    truth = json.loads(truth_file.read_text())
    last = json.loads(file.read_text().splitlines()[-1])
    kernels = seen_kernels(last)
    wrong = 0
    print(f"{'kernel':<40} {'launches':>9} {'truth':>9} {'timed':>7} {'bounds':>7} {'average':>12} {'truth':>10} {'off by':>9} {'stated':>9}")
    for name, (count, total) in sorted(truth["kernels"].items(), key=lambda item: -item[1][1])[:15]:
        if count < 20:
            continue  # the first launches of a program take what they take that time
        seen = kernels.get(plain_name(name), Seen())
        average, stated, true = seen.average(), seen.stated(), total / count
        # The first operation on the GPU is before torch.profiler begins: one launch may be more here.
        verdict = "ok" if 0 <= seen.count - count <= 1 else "WRONG count"
        if seen.unknown > 0:  # a bound, of some shapes at least
            verdict += " (at most)" if average >= 0.98 * true else " WRONG: the bound is below the truth"
        elif abs(average - true) > max(stated, 0.02 * true):
            verdict += ", WRONG time"
        wrong += verdict.count("WRONG")
        print(f"{name[:40]:<40} {seen.count:>9} {count:>9} {seen.timed:>7} {seen.bounds:>7} {'<=' if seen.unknown else '  '}{average:>8.0f}ns {true:>8.0f}ns "
              f"{average - true:>7.0f}ns {stated:>7.0f}ns  {verdict}")
    graphs = sum(row["count"] for row in last["rows"] if row["kind"] == "graph")
    print(f"{'ok' if graphs == 1500 else 'WRONG'}: {graphs} launches of graphs, 1500 were made")
    wrong += 0 if graphs == 1500 else 1
    nodes = sum(kernel["launches"] for row in last["rows"] if row["kind"] == "graph" for kernel in row.get("kernels", []))
    wrong += 0 if nodes == 54000 else 1
    print(f"{'ok' if nodes == 54000 else 'WRONG'}: {nodes} launches of kernels inside graphs, 54000 were made")
    whole = sum(row["total_ns"] or 0 for row in last["rows"] if row["kind"] == "graph")
    print(f"  graphs as a whole {whole / 1e6:.1f} ms; their kernels by torch.profiler {truth['inside'] / 1e6:.1f} ms, {truth['inside'] / max(whole, 1) * 100:.1f} % of it")
    print(f"  {last['failed']} refused, {last['lost_durations']} lost durations, {last['uncounted']} uncounted")
    for note in last["notes"]:
        print("  " + note)
    return wrong


def check_times(verdicts, where, seen, truth, stated, more=""):
    """One comparison: whether a time is within its stated error, and within 2 %."""
    off = seen - truth
    good, near = abs(off) <= stated, abs(off) <= 0.02 * truth
    verdicts[where].append((good, near, off, stated, truth, more))


def measure_times(tacho, out, watches, seconds):
    """Programs that are watched, each for so long, take turns with one under torch.profiler, so that all meet the same clocks."""
    truth = Program([], "", role="--model")
    watched_ones = []
    for turn in range(watches):
        prefix, file = watched(tacho, out, f"watch_times{turn}.jsonl", 60, BUDGET, [])
        watched_ones.append((Program(prefix, "", role="--model"), file))
    # Spans of graphs by CUPTI: torch.profiler would have their nodes one by one, which makes them slower.
    trace = out / "watch_graphs.tacho"
    traced = Program([tacho, "trace", "-o", trace, "--overwrite", "--"], "", role="--model")
    turns, periods = [], []
    for program in [truth, traced, *(program for program, _ in watched_ones)]:
        program.ready()
    for program, _ in [(None, None), *watched_ones]:
        if program is not None:
            program.ask(f"run {seconds}")
        traced.ask("run 0.4")
        answer = json.loads(truth.ask("profile 0.6"))
        periods.append(answer["period"])
        turns.append(answer["kernels"])
    traced.end()
    query = "SELECT avg(duration) AS ns FROM tacho.dispatch WHERE name LIKE 'graph of %' OR name LIKE 'CUDA graph %'"
    graph_span = float(subprocess.run([tacho, "query", trace, query, "--output-format", "csv"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1])
    verdicts, wrong = collections.defaultdict(list), 0
    for turn, (program, file) in enumerate(watched_ones):
        program.end()
        last = json.loads(file.read_text().splitlines()[-1])
        rows = [row for row in last["rows"] if row["kind"] == "kernel" and row.get("grid") and row["total_ns"] is not None]
        rows.sort(key=lambda row: -row["total_ns"])
        top = [row for row in rows if not row["name"].startswith("spin_")][:10]
        for row in rows:
            name = shaped(row["name"], row["grid"], row["group"])
            around = [at[name] for at in turns[turn:turn + 2] if name in at]  # the truth before and after
            if len(around) < 2 or min(count for count, _, _ in around) < 20 or not (row in top or row["name"].startswith("spin_")):
                continue
            first, second = (total / count for count, total, _ in around)
            place = ("top ten", name) if row in top else ("spin", f"{row['name']} {row['grid'][0]} threads")
            check_times(verdicts, place, row["total_ns"] / row["count"], (first + second) / 2, row["interval_95_ns"] / row["count"] + abs(first - second) / 2, f"{row['timed']} of {row['count']} timed, {row.get('bounds', 0)} bounds")
        graphs = [row for row in last["rows"] if row["kind"] == "graph" and row["total_ns"] is not None]
        if graphs:
            count = sum(row["count"] for row in graphs)
            check_times(verdicts, ("graph", "a graph as a whole, against CUPTI's spans"), sum(row["total_ns"] for row in graphs) / count, graph_span, sum(row["interval_95_ns"] for row in graphs) / count)
    truth.end()
    print(f"  a graph: {graph_span:.0f} ns by CUPTI, {statistics.median(periods):.0f} ns each when many run in a row")
    print(f"{watches} programs watched for {seconds} s each; truth: torch.profiler in turns with them")
    print(f"{'kernel':<60} {'truth ns':>9} {'off by, least to most':>28} {'stated':>7} {'in it':>7} {'in 2 %':>7}")
    sums = collections.Counter()
    for (kind, name), all_of in sorted(verdicts.items(), key=lambda item: (item[0][0], statistics.mean(one[4] for one in item[1]))):
        offs = sorted(one[2] for one in all_of)
        good, near = sum(one[0] for one in all_of), sum(one[1] for one in all_of)
        for key, value in (("all", len(all_of)), ("good", good), ("near", near)):
            sums[kind, key] += value
        print(f"{name[:60]:<60} {all_of[0][4]:>9.0f} {statistics.median(offs):>9.0f} ({offs[0]:>7.0f} to {offs[-1]:>6.0f}) {statistics.median(one[3] for one in all_of):>7.0f} {good:>3}/{len(all_of):<3} {near:>3}/{len(all_of):<3}  {all_of[0][5]}")
    for kind in ("top ten", "spin", "graph"):
        count, good, near = (sums[kind, key] for key in ("all", "good", "near"))
        fine = count > 0 and good >= 0.95 * count
        wrong += 0 if fine else 1
        print(f"{'ok' if fine else 'WRONG'}: {kind}: {good} of {count} within their stated error, {near} within 2 %")
    return wrong


def measure_governor(tacho, out, seconds):
    command, file = watched(tacho, out, "watch_governor.jsonl", 1, BUDGET, [sys.executable, __file__, "--steady", str(seconds)])
    subprocess.run(command, check=True)
    moments = [json.loads(line) for line in file.read_text().splitlines()]
    whole = moments[-1]["seconds"]
    wrong = 0
    print(f"{'load':<8} {'until':>7} {'host':>8} {'for times':>9} {'events':>8}   {'worst second':>12}   pace with and without                 least N")
    for i, name in enumerate(("eager", "graph", "mixed")):
        end = whole - (2 - i) * seconds - 1
        there = [moment for moment in moments if end - seconds + 3 <= moment["seconds"] <= end]
        first, last = there[0], there[-1]

        def taken(key, a, b):
            return ((b[key] or 0) - (a[key] or 0)) / ((b["seconds"] - a["seconds"]) * 1e9)
        host, times, device = (taken(key, first, last) for key in ("host_ns", "host_timing_ns", "device_ns"))
        worst = max(taken("host_ns", a, b) for a, b in zip(there, there[1:]))
        cost = last["cost"]
        text = f"{cost['share'] * 100:.2f} % ({cost['low'] * 100:.2f} to {cost['high'] * 100:.2f} %, {cost['pairs']} pairs)" if cost else "unknown"
        # Half a percent is to be resolved within half a minute, and the cost may not be shown to be over the budget by that.
        verdict = "WRONG: no comparison" if not cost else "WRONG: over the budget" if cost["low"] > BUDGET + 0.005 else "ok"
        verdict += "" if host <= BUDGET + 0.005 else ", WRONG: host time over the budget"
        verdict += "" if not cost or cost["high"] - cost["low"] <= 0.01 else ", resolves less than 0.5 %"
        wrong += verdict.count("WRONG")
        print(f"{name:<8} {last['seconds']:>6.1f}s {host * 100:>7.3f}% {times * 100:>8.3f}% {device * 100:>7.3f}%   {worst * 100:>11.3f}%   {text:<40} {last['least_one_of']:>6}  {verdict}")
    for note in moments[-1]["notes"]:
        print("  " + note)
    return wrong


# Loads of measure_budget; of several, each half a second at a time.
LOADS = {"eager": ["eager"], "graph": ["graph"], "small_graph": ["small_graph"], "tiny": ["tiny"], "mixed": ["mixed"], "changing": ["eager", "graph", "tiny", "busy"]}
EACH = 5  # programs of a kind: two programs without anything differ, too


def ratio_of_means(times, base):
    """The ratio of means of logarithms, and its 95 % interval by how much programs of a kind differ."""
    logs = [[math.log(time) for time in kind] for kind in (times, base)]
    error = math.sqrt(sum(statistics.variance(kind) / len(kind) for kind in logs))
    student = {2: 4.30, 3: 3.18, 4: 2.78, 6: 2.45, 8: 2.31}[sum(len(kind) for kind in logs) - 2]
    middle = statistics.mean(logs[0]) - statistics.mean(logs[1])
    return tuple(math.exp(middle + turn * student * error) for turn in (0, -1, 1))


def measure_budget(tacho, out, seconds):
    """Programs without anything and watched ones take blocks of some 8 ms in turns. The ratio of a block to the others of its round tells
    how fast a program is; programs are compared, not blocks. The control compares those without anything with each other."""
    cores = ",".join(str(core) for core in sorted(os.sched_getaffinity(0))[2:4])
    plain = [Program([], cores) for _ in range(EACH)]
    watches, files = [], []
    for turn in range(EACH):  # each works a tenth of the time here, and its governor goes by all of it
        prefix, file = watched(tacho, out, f"watch_budget{turn}.jsonl", 0.25, BUDGET / (2 * EACH), [])
        watches.append(Program(prefix, cores))
        files.append(file)
    programs = plain + watches
    for program in programs:
        program.ready()

    def account():
        time.sleep(0.3)
        lasts = [json.loads(file.read_text().splitlines()[-1]) for file in files]
        return [sum(last[key] or 0 for last in lasts) for key in ("host_ns", "host_timing_ns", "device_ns")] + [max(last["least_one_of"] for last in lasts)]

    blocks = {}
    for loop in sorted({loop for loops in LOADS.values() for loop in loops}):
        for program in programs:
            program.time(loop, 0.1)
        blocks[loop] = 0.008 / plain[0].time(loop, 0.2) * 0.2
    wrong = 0
    print(f"time to that without anything, 95 % interval, {EACH} programs of each kind; budget {BUDGET * 100:.0f} %; on cores {cores}")
    print(f"{'load':<12} {'watched':<28} {'control':<28} {'host':>8} {'for times':>9} {'events':>8} {'least N':>8}")
    for load, loops in LOADS.items():
        end = time.monotonic() + 3
        while time.monotonic() < end:  # the governor settles
            for program in watches:
                program.time(loops[0], blocks[loops[0]])
        before, active, rounds = account(), 0.0, {program: [] for program in programs}
        begin = time.monotonic()
        while time.monotonic() < begin + seconds:
            loop = loops[int((time.monotonic() - begin) * 2) % len(loops)]
            order = random.sample(programs, len(programs))
            times = dict.fromkeys(programs, 0.0)
            for program in (*order, *reversed(order)):
                times[program] += program.time(loop, blocks[loop])
            active += sum(times[program] for program in watches)
            whole = statistics.median(times.values())
            for program, took in times.items():
                rounds[program].append(took / whole)
        after = account()
        host, for_times, device = ((b - a) * 1e-9 / active for a, b in zip(before, after[:3]))
        speeds = {program: statistics.median(ratios) for program, ratios in rounds.items()}
        ratio = ratio_of_means([speeds[program] for program in watches], [speeds[program] for program in plain])
        control = ratio_of_means([speeds[program] for program in plain[::2]], [speeds[program] for program in plain[1::2]])
        limit = 1 + BUDGET + 0.005
        verdict = "held" if ratio[2] <= limit else "WRONG: not held" if ratio[1] > limit else "not resolved to half a percent: as the control"
        verdict += "" if host <= BUDGET + 0.005 else ", WRONG: host time over the budget"
        wrong += verdict.count("WRONG")
        cells = [f"{m:.4f} ({low:.4f} to {high:.4f})" for m, low, high in (ratio, control)]
        print(f"{load:<12} {cells[0]:<28} {cells[1]:<28} {host * 100:>7.3f}% {for_times * 100:>8.3f}% {device * 100:>7.3f}% {after[3]:>8}  {verdict}", flush=True)
    for program in programs:
        program.end()
    for note in json.loads(files[0].read_text().splitlines()[-1])["notes"]:
        print("  " + note)
    return wrong


class Part:
    """A kind of programs of measure_parts, and the moments that tacho writes of them."""
    def __init__(self, name, programs, files):
        self.name, self.programs, self.files = name, programs, files

    def account(self):
        """Operations, and host ns that counting and timing them took, by the library's own measure."""
        lasts = [json.loads(file.read_text().splitlines()[-1]) for file in self.files]
        timing = sum(last["host_timing_ns"] or 0 for last in lasts)
        return sum(row["count"] for last in lasts for row in last["rows"]), sum(last["host_ns"] or 0 for last in lasts) - timing, timing


def start_parts(build, out, count):
    cores = ",".join(str(core) for core in sorted(os.sched_getaffinity(0))[2:4])
    tacho = build / "bin" / "tacho"

    def watches(kind, options):
        programs, files = [], []
        for turn in range(count):
            prefix, file = watched(tacho, out, f"watch_parts_{kind}{turn}.jsonl", 0.25, BUDGET / (5 * count), [])
            programs.append(Program([*prefix[:2], *options, *prefix[2:]], cores, when="--late-cores"))
            files.append(file)
        return Part(kind, programs, files)

    preload = ["env", f"LD_PRELOAD={(build / 'lib' / 'libtacho-watch.so').resolve()}"]
    parts = [Part(kind, [Program(prefix, cores, when="--late-cores") for _ in range(count)], [])
             for kind, prefix in (("nothing", []), ("library alone", preload))]
    parts += [watches("counts", ["--counts-only"]), watches("watch", []), watches("keep", ["--keep", "30s", "--files", str(out)])]
    for part in parts:
        for program in part.programs:
            program.ready()
    print(f"on cores {cores}, {count} programs of each kind")
    return parts


def measure_parts(build, out, seconds):
    """Times to those without anything. The library's own account says what counting took for each operation, beside the times."""
    count = 3
    parts = start_parts(build, out, count)
    programs = [program for part in parts for program in part.programs]
    nothing = parts[0].programs
    wrong = 0
    blocks = {}
    for loop in ("eager", "tiny"):
        for program in programs:
            program.time(loop, 0.1)
        blocks[loop] = 0.012 / nothing[0].time(loop, 0.3) * 0.3
    print(f"{'phase':<28} {'kind':<14} {'to nothing':<28} {'counting':>10} {'timing':>10}   {'rounds':>6}  programs")
    for phase, loop, longer, stopped, share in (("eager", "eager", 1, False, 1), ("eager, tacho stopped", "eager", 1, True, 1),
                                                ("eager, long blocks", "eager", 8, False, 1.2), ("tiny", "tiny", 1, False, 0.8)):
        tachos = [program.process for part in parts for program in part.programs if part.files]
        before = {part.name: part.account() for part in parts if part.files}
        for process in tachos if stopped else []:
            process.send_signal(signal.SIGSTOP)
        rounds = {program: [] for program in programs}
        end = time.monotonic() + seconds * share
        while time.monotonic() < end:
            order = random.sample(programs, len(programs))
            times = dict.fromkeys(programs, 0.0)
            for program in (*order, *reversed(order)):
                times[program] += program.time(loop, blocks[loop] * longer)
            middle = statistics.median(times.values())
            for program, took in times.items():
                rounds[program].append(took / middle)
        for process in tachos if stopped else []:
            process.send_signal(signal.SIGCONT)
        time.sleep(0.6)
        speeds = {program: statistics.median(ratios) for program, ratios in rounds.items()}
        for part in parts:
            ratio = ratio_of_means([speeds[program] for program in part.programs], [speeds[program] for program in nothing])
            cells = f"{ratio[0]:.4f} ({ratio[1]:.4f} to {ratio[2]:.4f})" if part.programs is not nothing else "1"
            account = ["", ""]
            if part.files:
                operations, counting, timing = (b - a for a, b in zip(before[part.name], part.account()))
                account = [f"{spent / max(operations, 1):.0f} ns" for spent in (counting, timing)]
            missed = part.name == "watch" and not stopped and ratio[1] > 1 / GOALS[loop]
            wrong += 1 if missed else 0
            print(f"{phase:<28} {part.name:<14} {cells:<28} {account[0]:>10} {account[1]:>10}   {len(rounds[nothing[0]]):>6}  "
                  + " ".join(f"{speeds[program]:.4f}" for program in part.programs) + (f"  WRONG: goal {GOALS[loop]}" if missed else ""), flush=True)
    for program in programs:
        program.end()
    return wrong


def measure_past(build, out, seconds):
    cores = ",".join(str(core) for core in sorted(os.sched_getaffinity(0))[2:4])
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        beside = pathlib.Path(folder)
        for file, source in (("bin/tacho", "bin/tacho"), ("lib/libtacho.so", "lib/libtacho.so"), ("lib/libtacho-watch.so", "lib/past/libtacho-watch.so")):
            (beside / file).parent.mkdir(exist_ok=True)
            shutil.copy(build / source, beside / file)
        print(f"through tacho's functions / past them, on cores {cores}")
        for kind, options in (("counts", ["--counts-only"]), ("watch", []), ("keep", ["--keep", "30s", "--files", str(out)])):
            # Half of the time goes past tacho, and its governor takes that for time without cost.
            prefix, file = watched(beside / "bin" / "tacho", out, f"watch_past_{kind}.jsonl", 1, BUDGET / 2, [])
            program = Program([*prefix[:2], *options, *prefix[2:]], cores)
            for loop in ("eager", "tiny"):
                program.time(loop, 0.3)
                block = 0.012 / program.time(loop, 0.3, "past") * 0.3
                end = time.monotonic() + 2
                while time.monotonic() < end:  # the governor settles
                    program.time(loop, block * 20)
                ratios = []
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    order = ("", "past", "past", "") if len(ratios) % 2 == 0 else ("past", "", "", "past")
                    times = {"": 0.0, "past": 0.0}
                    for by in order:
                        times[by] += program.time(loop, block, by)
                    ratios.append(times[""] / times["past"])
                middle, low, high = interval(ratios)
                verdict = "ok" if 1 / middle >= GOALS[loop] else "WRONG" if 1 / low < GOALS[loop] else "not resolved"
                wrong += verdict.count("WRONG")
                print(f"{kind:<8} {loop:<8} {middle:.4f} ({low:.4f} to {high:.4f}, {len(ratios)})   {verdict}, speed {1 / middle:.4f}, goal {GOALS[loop]}", flush=True)
            program.end()
            last = json.loads(file.read_text().splitlines()[-1])
            operations = sum(row["count"] for row in last["rows"])
            print(f"  by the library's account counting took {((last['host_ns'] or 0) - (last['host_timing_ns'] or 0)) / max(operations, 1):.0f} ns an operation")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--worker", nargs="*")
    parser.add_argument("--cores", default="")
    parser.add_argument("--late-cores", default="", help="of a worker: from when its loops are ready")
    parser.add_argument("--fixed")
    parser.add_argument("--model", action="store_true")
    parser.add_argument("--steady", type=float)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--seconds", type=float, default=18)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--loops", type=lambda text: text.split(","), default=LOOPS, help="of cost: " + ", ".join(LOOPS))
    parser.add_argument("sections", nargs="*")
    arguments = parser.parse_args()
    pin(arguments.cores)
    if arguments.worker is not None:
        return worker(arguments.worker[0] if arguments.worker else "", arguments.late_cores)
    if arguments.fixed is not None:
        return fixed_work(arguments.fixed)
    if arguments.model:
        return model()
    if arguments.steady is not None:
        return steady(arguments.steady)
    tacho = arguments.build / "bin" / "tacho"
    wrong = 0
    sections = {"events": measure_events, "counts": lambda: measure_counts(tacho, arguments.out), "times": lambda: measure_times(tacho, arguments.out, 10, 6),
                "governor": lambda: measure_governor(tacho, arguments.out, 25), "budget": lambda: measure_budget(tacho, arguments.out, 12), "cost": lambda: measure_cost(tacho, arguments.out, arguments.seconds, arguments.rounds, arguments.loops),
                "parts": lambda: measure_parts(arguments.build, arguments.out, arguments.seconds),
                "past": lambda: measure_past(arguments.build, arguments.out, arguments.seconds)}
    for name in arguments.sections or [name for name in sections if name not in ("parts", "past")]:
        print(f"== {name}", flush=True)
        begin = time.monotonic()
        try:
            wrong += sections[name]()
        except Exception:  # the other sections are worth their time
            traceback.print_exc()
            wrong += 1
        print(f"   ({time.monotonic() - begin:.0f} s)", flush=True)
    print("watch.sh: all good" if wrong == 0 else f"watch.sh: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
