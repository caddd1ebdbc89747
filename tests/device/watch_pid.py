"""The checks of watch_pid.sh.

counts    a program runs steps on request: what tacho watch counts while it is there is what the program launched, by kernel and shape
          as torch.profiler counts the same steps in another process, and nothing of the steps before and after.
speed     the time of the same steps before, while and after, in rounds.
capture   tacho comes while a stream is captured: the capture ends well, its graph computes what it should, and nothing of it counts.
training  losses of a loop that never stops, watched three times: those of an undisturbed one, bit for bit.
heap      fills and copies by ctypes, whose pointers lie where tacho does not look for words: counted with --patch-entries only.
With --patch-entries all of them are watched so, and the driver's code has to be as before after each stay.
"""
import argparse
import collections
import ctypes
import hashlib
import json
import pathlib
import re
import signal
import statistics
import struct
import subprocess
import sys
import time

ROUNDS = 3
OPTIONS = []  # of tacho watch
STEPS = {"eager": 200, "graph": 500, "tiny": 20000, "copies": 300}


# The program

def make_steps():
    import torch
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True, device="cuda", dtype=torch.float16).eval()
    batch = torch.randn(2, 32, 256, device="cuda", dtype=torch.float16)
    tiny = torch.zeros(32, device="cuda")
    large = torch.zeros(1 << 20, device="cuda")
    host = torch.zeros(1 << 18, pin_memory=True)
    there = torch.zeros(1 << 18, device="cuda")

    def body():
        for _ in range(108):
            large.add_(1)
    with torch.cuda.stream(torch.cuda.Stream()):
        body()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        body()

    def eager():
        with torch.inference_mode():
            layer(batch)

    def copies():
        there.copy_(host, non_blocking=True)
        host.copy_(there, non_blocking=True)
    return {"eager": eager, "graph": graph.replay, "tiny": lambda: tiny.add_(1), "copies": copies}


def where(symbols=("cuLaunchKernel", "cuLaunchKernelExC", "cuLaunchKernelEx", "cuGraphLaunch", "cuMemcpyHtoDAsync_v2", "cuGetProcAddress_v2")):
    """In which mappings of this process words hold exactly the address of a function of the driver."""
    driver = ctypes.CDLL("libcuda.so.1")
    wanted = {}
    for symbol in symbols:
        if hasattr(driver, symbol):
            wanted[struct.pack("<Q", ctypes.cast(getattr(driver, symbol), ctypes.c_void_p).value)] = symbol + " (dlsym)"
        given = ctypes.c_void_p()
        base = re.sub(r"_v2$", "", symbol)
        if driver.cuGetProcAddress_v2(base.encode(), ctypes.byref(given), 12000, ctypes.c_uint64(1), None) == 0 and given.value:
            wanted.setdefault(struct.pack("<Q", given.value), symbol + " (cuGetProcAddress)")
    found = collections.Counter()
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb") as memory:
        for line in maps.read().splitlines():
            words = line.split(None, 5)
            begin, end = (int(word, 16) for word in words[0].split("-"))
            if words[1][0] != "r" or end - begin > 1 << 29 or "/dev/" in line or line.endswith("[vvar]"):
                continue
            try:
                memory.seek(begin)
                content = memory.read(end - begin)
            except OSError:
                continue
            name = pathlib.Path(words[5]).name if len(words) > 5 else "(no file)"
            for value, symbol in wanted.items():
                at = content.find(value)
                while at >= 0:
                    if at % 8 == 0:
                        found[symbol, name, words[1]] += 1
                    at = content.find(value, at + 1)
    return [[*key, count] for key, count in sorted(found.items())]


def worker():
    """Lines of input: "NAME COUNT" runs steps and answers with seconds; "where"; "capture"."""
    import torch
    steps = make_steps()
    torch.cuda.synchronize()
    print("ready", flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "where":
            print(json.dumps(where()), flush=True)
            continue
        if words[0] == "capture":
            print(capture(), flush=True)
            continue
        step, count = steps[words[0]], int(words[1])
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(count):
            step()
        torch.cuda.synchronize()
        print(f"{time.perf_counter() - begin:.6f}", flush=True)


def capture():
    """A capture that waits in the middle for a line of input."""
    import torch
    value = torch.zeros(1000, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        value.add_(1)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(5):
            value.add_(1)
        print("capturing", flush=True)
        sys.stdin.readline()
        for _ in range(5):
            value.add_(1)
    before = value[0].item()
    for _ in range(20):
        graph.replay()
    torch.cuda.synchronize()
    return f"{value[0].item() - before:.0f}"


def profiled(name, count):
    """{kernel's name: launches} of `count` steps, and graph launches, as torch.profiler sees them."""
    import torch
    steps = make_steps()
    torch.cuda.synchronize()
    for _ in range(3):
        steps[name]()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        for _ in range(count):
            steps[name]()
        torch.cuda.synchronize()
    kernels = collections.Counter()
    graphs = 0
    trace = pathlib.Path(f"watch_pid_{name}.trace.json")
    profiler.export_chrome_trace(str(trace))
    events = json.loads(trace.read_text())["traceEvents"]
    trace.unlink()
    inside = {event["args"].get("correlation") for event in events if event.get("name") in ("cudaGraphLaunch", "cuGraphLaunch")}
    for event in events:
        if event.get("name") in ("cudaGraphLaunch", "cuGraphLaunch"):
            graphs += 1
        if event.get("cat") == "kernel" and event["args"].get("correlation") not in inside:
            kernels[event["name"]] += 1
    print(json.dumps({"kernels": kernels, "graphs": graphs}))


def training():
    """Prints a line for each loss until a signal; the signal ends it after the last step that is a multiple of 100."""
    import torch
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    torch.manual_seed(3)
    torch.use_deterministic_algorithms(True)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.randn(32, 64, device="cuda")
    target = torch.randn(32, 8, device="cuda")
    limit = int(sys.argv[2]) if len(sys.argv) > 2 else 10 ** 9
    print("ready", flush=True)
    losses = []
    while len(losses) < limit and not (stop and len(losses) % 100 == 0):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(data), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
    print(json.dumps(losses), flush=True)


# The checks

class Program:
    def __init__(self, *arguments):
        self.process = subprocess.Popen([sys.executable, __file__, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.line() != "ready":
            raise SystemExit(f"watch_pid.py: {arguments} did not start")

    def line(self):
        return self.process.stdout.readline().strip()

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def ask(self, text):
        self.say(text)
        return self.line()

    def run(self, name, count=None):
        return float(self.ask(f"{name} {count or STEPS[name]}"))


def driver_code(pid):
    """A hash of the driver's code in a process."""
    found = hashlib.sha256()
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            words = line.split(None, 5)
            if len(words) > 5 and "libcuda.so" in words[5] and "x" in words[1]:
                begin, end = (int(word, 16) for word in words[0].split("-"))
                memory.seek(begin)
                found.update(memory.read(end - begin))
    return found.hexdigest()


class Watch:
    """tacho in a program, from its begin to end()."""
    def __init__(self, tacho, out, program, *options):
        self.pid, options = program.process.pid, [*options, *OPTIONS]
        self.code = driver_code(self.pid)
        self.file = out / "watch_pid.jsonl"
        self.process = subprocess.Popen([tacho, "watch", str(program.process.pid), "--output-format", "json", "-o", self.file, "--overwrite", *options],
                                        stderr=subprocess.PIPE, text=True)
        self.said = ""
        while "watching process" not in self.said:
            line = self.process.stderr.readline()
            if not line:
                raise SystemExit(f"WRONG: tacho did not come: {self.said}")
            self.said += line

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.said += self.process.communicate(timeout=60)[1]
        if self.process.returncode != 0:
            raise SystemExit(f"WRONG: tacho ended with {self.process.returncode}: {self.said}")
        if driver_code(self.pid) != self.code:
            raise SystemExit("WRONG: the driver's code is not as before")
        return json.loads(self.file.read_text().splitlines()[-1])


def plain(name):
    """A kernel's name without blanks: demanglers differ in them."""
    return "".join(name.split())


def sums(moment, kind, what="count"):
    totals = collections.Counter()
    for row in moment["rows"]:
        if row["kind"] == kind:
            totals[plain(row["name"])] += row.get(what, 0)
    return totals


class Verdict:
    wrong = 0

    def say(self, good, text):
        self.wrong += 0 if good else 1
        print(f"{'ok   ' if good else 'WRONG'} {text}", flush=True)


def check_counts(tacho, out, verdict):
    program = Program("--worker")
    for row in json.loads(program.ask("where")):
        print("   words:", *row)
    for name in STEPS:
        program.run(name)
    truth = {}
    for name in STEPS:
        answer = subprocess.run([sys.executable, __file__, "--profiled", name, str(STEPS[name])], stdout=subprocess.PIPE, text=True, check=True, cwd=out)
        truth[name] = json.loads(answer.stdout.splitlines()[-1])
    for turn in range(ROUNDS):
        for name, count in STEPS.items():
            program.run(name, 7)  # in no count
            watch = Watch(tacho, out, program)
            program.run(name)
            moment = watch.end()
            if turn == 0:
                stop = re.search(r"stopped for ([\d.]+) ms", watch.said)
                print(f"   {name}: one thread was stopped for {stop[1] if stop else '?'} ms; lost durations {moment['lost_durations']}, failed {moment['failed']}")
            if name == "copies":
                bytes_ = dict(sums(moment, "copy", "bytes"))
                verdict.say(sum(bytes_.values()) == 2 * count << 20 and sum(sums(moment, "copy").values()) == 2 * count, f"round {turn}, copies: {dict(sums(moment, 'copy'))}, {bytes_}; {count} MiB each way were made")
                continue
            seen = {key: value for key, value in sums(moment, "kernel").items() if value}
            wanted = {plain(key): value for key, value in truth[name]["kernels"].items()}
            graphs = sum(sums(moment, "graph").values())
            good = seen == wanted and graphs == truth[name]["graphs"]
            verdict.say(good, f"round {turn}, {name}: {sum(seen.values())} launches of {len(seen)} kernels, {graphs} of graphs; torch.profiler: {sum(wanted.values())} of {len(wanted)}, {truth[name]['graphs']}")
            if not good and turn == 0:
                for key in sorted(set(seen) | set(wanted)):
                    if seen.get(key) != wanted.get(key):
                        print(f"      {seen.get(key)} / {wanted.get(key)}  {key[:120]}")
            if name == "tiny":
                rows = [row for row in moment["rows"] if row["kind"] == "kernel" and row["timed"]]
                verdict.say(bool(rows) or any("at_most_ns" in row for row in moment["rows"]), f"round {turn}, tiny: has times or bounds")
    program.process.stdin.close()
    verdict.say(program.process.wait() == 0, "the program ends in order")


def check_speed(tacho, out, verdict):
    """While watched: at once, after 1.5 s, and in the last stay after 11 s, when tacho has stopped to ask for captures."""
    program = Program("--worker")
    for name in ("graph", "tiny", "eager"):
        program.run(name)
        program.run(name)
        ratios = {"at once": [], "watched": [], "after 11 s": [], "after": []}
        for turn in range(8):
            before = min(program.run(name) for _ in range(3))
            watch = Watch(tacho, out, program)
            begin = time.monotonic()
            ratios["at once"].append(before / program.run(name))
            while time.monotonic() < begin + 1.5:
                program.run(name)
            ratios["watched"].append(before / min(program.run(name) for _ in range(3)))
            while turn == 7 and time.monotonic() < begin + 11:
                program.run(name)
            if turn == 7:
                ratios["after 11 s"].append(before / min(program.run(name) for _ in range(3)))
            moment = watch.end()
            after = min(program.run(name) for _ in range(3))
            ratios["after"].append(before / after)
        launches = sum(sums(moment, "kernel").values()) + sum(sums(moment, "graph").values())
        print(f"   {name}: host time {(moment['host_ns'] or 0) / launches:.0f} ns a launch, {moment['host_timing_ns'] / launches:.0f} of it for times; "
              f"{(moment['host_ns'] or 0) * 1e-7 / moment['seconds']:.2f} % of the last stay")
        cells = ", ".join(f"{key} {statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})" for key, values in ratios.items())
        # The rounds after are undisturbed again: as far as they waver down is noise, in which no cost can be told.
        after = sorted(ratios["after"])
        goal = {"graph": 0.99, "tiny": 0.97, "eager": 0.98}[name]
        watched = statistics.median(ratios["watched"])
        verdict.say(watched >= min(goal, after[1]), f"speed of {name} while watched: {watched:.3f}, goal {goal}" + ("" if after[1] >= goal else f"; this loop alone wavers down to {after[1]:.3f}"))
        verdict.say(statistics.median(ratios["after"]) > 0.9, f"speed of {name} against that before, median of 8 (least to most): {cells}")
    program.process.stdin.close()
    program.process.wait()


def check_capture(tacho, out, verdict):
    program = Program("--worker")
    program.run("tiny", 100)
    for turn in range(ROUNDS):
        verdict.say(program.ask("capture") == "capturing", f"round {turn}: a stream is being captured")
        watch = Watch(tacho, out, program)
        result = program.ask("go on")
        moment = watch.end()
        kernels = sum(count for key, count in sums(moment, "kernel").items() if "add" in key)
        verdict.say(result == "200", f"round {turn}: the graph that was captured meanwhile adds {result}, as it should 200")
        verdict.say(kernels == 0 and sum(sums(moment, "graph").values()) == 20, f"round {turn}: {kernels} launches (0 are work), {sum(sums(moment, 'graph').values())} of the graph (20)")
        program.run("tiny", 100)
    program.process.stdin.close()
    verdict.say(program.process.wait() == 0, "the program ends in order")


def check_training(tacho, out, verdict):
    program = Program("--training")
    time.sleep(2)
    counts = []
    for _ in range(ROUNDS):
        watch = Watch(tacho, out, program)
        time.sleep(5)
        moment = watch.end()
        counts.append(sum(sums(moment, "kernel").values()))
        cost = moment["cost"]
        print(f"   {counts[-1]} launches in {moment['seconds']:.2f} s; host time {(moment['host_ns'] or 0) * 1e-9 / moment['seconds'] * 100:.2f} %, "
              f"pace {'not measured' if cost is None else '{:.2f} % ({:.2f} to {:.2f})'.format(*(100 * cost[key] for key in ('share', 'low', 'high')))}")
        time.sleep(1)
    program.process.send_signal(signal.SIGTERM)
    losses = json.loads(program.line())
    verdict.say(program.process.wait() == 0 and min(counts) > 1000, f"a training loop of {len(losses)} steps was watched three times")
    alone = Program("--training", str(len(losses)))
    verdict.say(json.loads(alone.line()) == losses, "its losses are those of an undisturbed loop")


def by_ctypes():
    """Says "ready"; then, for each number that it reads, fills memory and copies so often."""
    driver = ctypes.CDLL("libcuda.so.1")
    context, memory, host = ctypes.c_void_p(), ctypes.c_uint64(), (ctypes.c_char * 4096)()
    driver.cuInit(0)
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)
    driver.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096))
    functions = [driver.cuMemsetD8_v2, driver.cuMemcpyHtoD_v2]  # got now: words of libffi's and ctypes' memory
    print("ready", flush=True)
    for line in sys.stdin:
        for _ in range(int(line)):
            functions[0](memory, ctypes.c_ubyte(7), ctypes.c_size_t(1024))
            functions[1](memory, host, ctypes.c_size_t(4096))
        driver.cuCtxSynchronize()
        print("done", flush=True)


def check_heap(tacho, out, verdict):
    program = Program("--by-ctypes")
    for turn in range(ROUNDS):
        for options in ([], ["--patch-entries"]):
            if OPTIONS and not options:
                continue
            program.ask("50")
            watch = Watch(tacho, out, program, *(option for option in options if option not in OPTIONS))
            program.ask("1000")
            moment = watch.end()
            found = (sum(sums(moment, "fill").values()), sum(sums(moment, "copy", "bytes").values()))
            wanted = (1000, 4096000) if options else (0, 0)
            verdict.say(found == wanted, f"round {turn}, {' '.join(options) or 'words'}: {found[0]} fills, {found[1]} bytes copied; {wanted[0]} and {wanted[1]} are to be seen")
        if turn == 0:
            print("  ", [line for line in watch.said.splitlines() if "patched" in line])
    program.process.stdin.close()
    verdict.say(program.process.wait() == 0, "the program ends in order")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--patch-entries", action="store_true")
    parser.add_argument("checks", nargs="*", default=["counts", "capture", "training", "speed", "heap"])
    arguments = parser.parse_args()
    if arguments.patch_entries:
        OPTIONS.append("--patch-entries")
    verdict = Verdict()
    for name in arguments.checks:
        print(f"-- {name}")
        {"counts": check_counts, "speed": check_speed, "capture": check_capture, "training": check_training, "heap": check_heap}[name](arguments.build / "bin" / "tacho", arguments.out, verdict)
    print("all right" if verdict.wrong == 0 else f"{verdict.wrong} wrong")
    return 0 if verdict.wrong == 0 else 1


if __name__ == "__main__":
    if "--worker" in sys.argv:
        worker()
    elif "--profiled" in sys.argv:
        profiled(sys.argv[2], int(sys.argv[3]))
    elif "--by-ctypes" in sys.argv:
        by_ctypes()
    elif "--training" in sys.argv:
        training()
    else:
        sys.exit(main())
