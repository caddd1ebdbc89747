"""The measurements of watch.sh.

cost    three programs run the same loops in turn, each in a process of its own that stays warm: without anything, under tacho
        watch, under torch.profiler. A round asks them in the order A B C C B A; the ratio of a round is the sum of a program's two
        times to the first program's.
counts  a program runs a fixed work under torch.profiler, then the same under tacho watch: launches by kernel, and their times.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

LOOPS = ("eager", "busy", "graph", "small_graph", "tiny")


# The programs

def make_loops():
    import torch
    torch.manual_seed(1)
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

    return {"busy": lambda scale=1: busy(int(1000 * scale)), "eager": lambda scale=1: eager(int(400 * scale)), "graph": lambda scale=1: replay("graph", int(1000 * scale)),
            "small_graph": lambda scale=1: replay("small_graph", int(4000 * scale)), "tiny": lambda scale=1: run_tiny(int(100_000 * scale))}


def worker(profiled):
    """A line of input names a loop; the answer is its time in seconds."""
    import torch
    loops = make_loops()
    print("ready", flush=True)
    for line in sys.stdin:
        loop = loops[line.strip()]
        torch.cuda.synchronize()
        if profiled:
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
                begin = time.perf_counter()
                loop()
                torch.cuda.synchronize()
                seconds = time.perf_counter() - begin
        else:
            begin = time.perf_counter()
            loop()
            torch.cuda.synchronize()
            seconds = time.perf_counter() - begin
        print(f"{seconds:.6f}", flush=True)


def fixed_work(profile_to):
    """The same launches in every run; with torch.profiler, launches and times by kernel go to a file."""
    import torch

    def work():
        loops = make_loops()
        for name in LOOPS:
            loops[name](0.3)
        torch.cuda.synchronize()

    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    if not profile_to:
        return work()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        work()
    kernels = {}
    trace = pathlib.Path(profile_to).with_suffix(".trace.json")
    profiler.export_chrome_trace(str(trace))
    events = json.loads(trace.read_text())["traceEvents"]
    # Kernels of graphs have the correlation of their graph's launch.
    graphs = {event["args"].get("correlation") for event in events if event.get("name") in ("cudaGraphLaunch", "cuGraphLaunch")}
    for event in events:
        if event.get("cat") != "kernel":
            continue
        inside = event["args"].get("correlation") in graphs
        row = kernels.setdefault(("graph " if inside else "") + event["name"], [0, 0.0])
        row[0] += 1
        row[1] += event["dur"] * 1000
    pathlib.Path(profile_to).write_text(json.dumps(kernels))
    return None


# The measurements

class Program:
    def __init__(self, prefix, *arguments):
        self.process = subprocess.Popen([*prefix, sys.executable, __file__, "--worker", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline().strip() != "ready":
            raise SystemExit(f"watch.py: {prefix} did not start")

    def time(self, loop):
        self.process.stdin.write(loop + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        return self.process.wait()


def interval(ratios):
    """The median, and the 95 % interval of it by order statistics."""
    ordered, count = sorted(ratios), len(ratios)
    outside = max(0, int((count - 1.96 * count ** 0.5) / 2))
    return statistics.median(ordered), ordered[outside], ordered[count - 1 - outside]


def measure_cost(tacho, out, rounds):
    watched = out / "watch_cost.jsonl"
    programs = {"nothing": Program([]),
                "watch": Program([tacho, "watch", "--output-format", "json", "-o", watched, "--overwrite", "--interval", "1", "--"]),
                "torch.profiler": Program([], "profiled")}
    print(f"{'loop':<12} {'nothing':>9}   tacho watch / nothing         torch.profiler / nothing")
    tiny_runs = 0
    for loop in LOOPS:
        for program in programs.values():
            program.time(loop)
        ratios = {"watch": [], "torch.profiler": []}
        plain = []
        for _ in range(rounds):
            times = dict.fromkeys(programs, 0.0)
            for name in [*programs, *reversed(programs)]:
                times[name] += programs[name].time(loop)
            plain.append(times["nothing"] / 2)
            for name, all_of in ratios.items():
                all_of.append(times[name] / times["nothing"])
        if loop == "tiny":
            tiny_runs = 1 + 2 * rounds
        cells = [f"{m:.4f} ({low:.4f} to {high:.4f})" for m, low, high in (interval(ratios[name]) for name in ratios)]
        print(f"{loop:<12} {statistics.median(plain):>7.3f} s   {cells[0]:<28}  {cells[1]}", flush=True)
    for program in programs.values():
        program.end()
    last = json.loads(watched.read_text().splitlines()[-1])
    for note in last["notes"]:
        print("  " + note)
    seen = sum(row["count"] for row in last["rows"] if row["kind"] == "graph")
    wanted = (1 + 2 * rounds) * 5000
    wrong = 0 if seen == wanted else 1
    print(f"{'ok' if seen == wanted else 'WRONG'}: {seen} launches of graphs, {wanted} were made")
    most = max((row["count"] for row in last["rows"] if row["kind"] == "kernel" and row.get("grid", [0])[0] <= 1024), default=0)
    good = most >= tiny_runs * 100_000
    wrong += 0 if good else 1
    print(f"{'ok' if good else 'WRONG'}: {most} launches of the smallest hot kernel, at least {tiny_runs * 100_000} were made")
    return wrong


def plain_name(name):
    return "".join(name.split())


def measure_counts(tacho, out):
    truth_file, watched = out / "watch_truth.json", out / "watch_counts.jsonl"
    subprocess.run([sys.executable, __file__, "--fixed", str(truth_file)], check=True)
    subprocess.run([tacho, "watch", "--output-format", "json", "-o", watched, "--overwrite", "--interval", "60", "--", sys.executable, __file__, "--fixed", ""], check=True)
    truth = json.loads(truth_file.read_text())
    last = json.loads(watched.read_text().splitlines()[-1])
    kernels = {}
    for row in last["rows"]:
        if row["kind"] != "kernel":
            continue
        sums = kernels.setdefault(plain_name(row["name"]), [0, 0, 0.0, 0.0, 0])
        sums[0] += row["count"]
        sums[1] += row["timed"]
        if row["total_ns"] is None:
            sums[4] += 1
        sums[2] += row["total_ns"] if row["total_ns"] is not None else row.get("at_most_ns", 0)
        sums[3] += (row["interval_95_ns"] or 0) ** 2
    wrong = 0
    print(f"{'kernel':<40} {'launches':>9} {'truth':>9} {'timed':>7} {'average':>12} {'truth':>10} {'off by':>9} {'stated':>9}")
    direct = {name: row for name, row in truth.items() if not name.startswith("graph ")}
    for name, (count, total) in sorted(direct.items(), key=lambda item: -item[1][1])[:15]:
        seen = kernels.get(plain_name(name), [0, 0, 0.0, 0.0, 0])
        average = seen[2] / seen[0] if seen[0] else 0
        stated = seen[3] ** 0.5 / seen[0] if seen[0] else 0
        true = total / count
        # The first operation on the GPU is before torch.profiler begins: one launch may be more here.
        verdict = "ok" if 0 <= seen[0] - count <= 1 else "WRONG count"
        if seen[4] > 0:  # a bound, of some shapes at least
            verdict += " (at most)" if average >= 0.98 * true else " WRONG: the bound is below the truth"
        elif abs(average - true) > max(stated, 0.02 * true):
            verdict = "WRONG time" if verdict == "ok" else verdict + ", WRONG time"
        wrong += verdict.count("WRONG")
        print(f"{name[:40]:<40} {seen[0]:>9} {count:>9} {seen[1]:>7} {'<=' if seen[4] else '  '}{average:>8.0f}ns {true:>8.0f}ns {average - true:>7.0f}ns {stated:>7.0f}ns  {verdict}")
    graphs = sum(row["count"] for row in last["rows"] if row["kind"] == "graph")
    print(f"{'ok' if graphs == 1500 else 'WRONG'}: {graphs} launches of graphs, 1500 were made")
    wrong += 0 if graphs == 1500 else 1
    inside = sum(total for name, (_, total) in truth.items() if name.startswith("graph "))
    whole = sum(row["total_ns"] or 0 for row in last["rows"] if row["kind"] == "graph")
    print(f"  graphs as a whole {whole / 1e6:.1f} ms; their kernels by torch.profiler {inside / 1e6:.1f} ms, {inside / max(whole, 1) * 100:.1f} % of it")
    print(f"  {last['failed']} refused, {last['lost_durations']} lost durations, {last['uncounted']} uncounted")
    for note in last["notes"]:
        print("  " + note)
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--worker", nargs="*")
    parser.add_argument("--fixed")
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("sections", nargs="*")
    arguments = parser.parse_args()
    if arguments.worker is not None:
        return worker("profiled" in arguments.worker)
    if arguments.fixed is not None:
        return fixed_work(arguments.fixed)
    tacho = arguments.build / "bin" / "tacho"
    wrong = 0
    if not arguments.sections or "counts" in arguments.sections:
        wrong += measure_counts(tacho, arguments.out)
    if not arguments.sections or "cost" in arguments.sections:
        wrong += measure_cost(tacho, arguments.out, arguments.rounds)
    print("watch.sh: all good" if wrong == 0 else f"watch.sh: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
