"""Memory of GPT-2 and other training steps as tacho tells it, beside torch's own sums (memory.sh). Ends with 1 if one differs.

usage: memory.py --build BUILD --out FOLDER        the check
       memory.py --program KIND [--steps N]        the programs that it runs: train, snapshot FILE, oom, turns, cupy
"""
import argparse
import csv
import io
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


def train_step():
    import torch
    torch.manual_seed(1)
    try:
        import transformers
        network = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=6, use_cache=False)).cuda().train()
        tokens = torch.randint(0, 50000, (8, 512), device="cuda")
        run = lambda: network(tokens, labels=tokens).loss  # noqa: E731
    except Exception as problem:
        print(f"GPT-2 was not built ({problem!r}): a transformer of torch's own stands for it", file=sys.stderr)
        layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True)
        network = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda().train()
        inputs = torch.randn(8, 512, 768, device="cuda")
        run = lambda: network(inputs).square().mean()  # noqa: E731
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4)

    def step():
        optimizer.zero_grad(set_to_none=True)
        run().backward()
        optimizer.step()
    return step


def cupy_pool():
    """Arrays come and go; CuPy's own sums."""
    import cupy
    pool, held, peak = cupy.get_default_memory_pool(), [], 0
    for i in range(300):
        held.append(cupy.empty(997 * (i % 50 + 1), dtype="f4"))
        if i % 3 == 0:
            held.pop(0)
        peak = max(peak, pool.used_bytes())
    held.clear()
    print(json.dumps({"peak": peak, "end": pool.used_bytes()}), flush=True)


def program(kind, steps, file):
    if kind == "cupy":
        return cupy_pool()
    import torch
    if kind == "oom":
        held = []
        try:
            while True:
                held.append(torch.empty(1 << 30, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            sys.exit(7)
    if kind == "snapshot":
        torch.cuda.memory._record_memory_history(max_entries=1_000_000, stacks="python")
    step = train_step()
    if kind == "turns":
        for line in sys.stdin:
            took = []
            for _ in range(int(line)):
                begin = time.perf_counter()
                step()
                torch.cuda.synchronize()
                took.append(time.perf_counter() - begin)
            print(statistics.median(took), flush=True)
        return
    seconds = []
    for i in range(steps):
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
        if kind == "train":
            # Every sum of torch stands in the recording, beside tacho's.
            torch.cuda.nvtx.mark(f"memory_allocated {torch.cuda.memory_allocated()}")
    statistics_of = torch.cuda.memory_stats()
    if kind == "snapshot":
        torch.cuda.memory._dump_snapshot(file)
    print(json.dumps({"seconds": seconds, "peak": torch.cuda.max_memory_allocated(), "end": torch.cuda.memory_allocated(),
                      "requested_peak": statistics_of["requested_bytes.all.peak"], "requested_end": statistics_of["requested_bytes.all.current"],
                      "reserved_peak": torch.cuda.max_memory_reserved()}))


class Check:
    def __init__(self, build, folder):
        self.tacho, self.folder, self.wrong = build / "bin" / "tacho", folder, 0

    def run(self, *command, code=0):
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=self.folder)
        if result.returncode != code:
            print(f"{' '.join(map(str, command))}: exit code {result.returncode}\n{result.stdout[-1500:]}\n{result.stderr[-1500:]}")
            self.wrong += 1
        return result

    def say(self, good, sentence):
        self.wrong += not good
        print(("ok    " if good else "WRONG ") + sentence, flush=True)

    def own(self, *words):
        return (sys.executable, pathlib.Path(__file__).resolve(), *words)

    def traced(self, name, options, *words, code=0):
        return self.run(self.tacho, "trace", "--quiet", "--overwrite", "-o", name, *options, "--", *self.own(*words), code=code)

    def rows(self, *command):
        return list(csv.DictReader(io.StringIO(self.run(self.tacho, *command).stdout)))

    def place(self, file):
        return next((row for row in self.rows("memory", file, "--output-format", "csv", "--table", "places") if "tensors" in row["Memory"]), None)

    def every_step(self):
        told = json.loads(self.traced("train.tacho", ("--memory",), "--program", "train", "--steps", 12).stdout or "{}")
        marks = self.rows("query", "train.tacho", "--output-format", "csv",
                          "SELECT start, name FROM tacho.marker WHERE name LIKE 'memory_allocated %'")
        events = self.rows("query", "train.tacho", "--output-format", "csv",
                           "SELECT a.start AS start, a.bytes AS bytes, s.operation AS operation FROM tacho.allocation a "
                           "JOIN tacho.allocation_shape s ON s.id = a.dim WHERE s.level = 'block' AND s.memory = 'device' ORDER BY a.start")
        live, at, equal = 0, 0, 0
        for mark in sorted(marks, key=lambda m: int(m["start"])):
            while at < len(events) and int(events[at]["start"]) <= int(mark["start"]):
                live += int(events[at]["bytes"]) * (1 if events[at]["operation"] == "allocate" else -1)
                at += 1
            equal += live == int(mark["name"].split()[1])
        self.say(len(marks) == 12 and equal == 12, f"live bytes are torch's memory_allocated() at {equal} of {len(marks)} steps ({len(events)} events)")
        place = self.place("train.tacho")
        self.say(place is not None and int(place["PeakBytes"]) == told.get("peak"), f"peak {place and place['PeakBytes']}, torch {told.get('peak')}")
        self.say(place is not None and int(place["ReservedMostBytes"]) == told.get("reserved_peak"),
                 f"reserved {place and place['ReservedMostBytes']}, torch {told.get('reserved_peak')}")
        self.say(place is not None and place["Gaps"] == "0", f"{place and place['Gaps']} gaps")
        print(self.run(self.tacho, "memory", "train.tacho").stdout)
        places = self.rows("memory", "train.tacho", "--output-format", "csv", "--table", "places")
        self.say("tensors" in places[0]["Memory"] and places[-1]["Memory"].endswith("taken from the driver"),
                 f"memories in their order: {[row['Memory'] for row in places]}")
        uses = {row["Category"]: int(row["Bytes"]) for row in
                self.rows("memory", "train.tacho", "--by", "category", "--output-format", "csv", "--table", "holders")}
        # Adam keeps two numbers for each parameter.
        parameters, states = uses.get("parameter", 0), uses.get("optimizer state", 0)
        self.say(parameters > 0 and 1.9 * parameters < states < 2.1 * parameters, f"categories at the peak: {uses}")

    def snapshots(self):
        told = json.loads(self.run(*self.own("--program", "snapshot", "--steps", 4, "--file", self.folder / "s.pickle")).stdout or "{}")
        place = self.place("s.pickle")
        self.say(place is not None and int(place["PeakBytes"]) == told.get("requested_peak"),
                 f"snapshot: peak {place and place['PeakBytes']}, torch's requested_bytes {told.get('requested_peak')}")
        self.say(place is not None and int(place["EndBytes"]) == told.get("requested_end"),
                 f"snapshot: end {place and place['EndBytes']}, torch's requested_bytes {told.get('requested_end')}")
        print(self.run(self.tacho, "memory", "s.pickle", "--by", "line").stdout)
        print(self.run(self.tacho, "info", "s.pickle").stdout[-800:])

    def out_of_memory(self):
        self.run(*self.own("--program", "oom"), code=7)
        self.traced("oom.tacho", ("--memory",), "--program", "oom", code=7)
        place = self.place("oom.tacho")
        self.say(place is not None and int(place["OutOfMemory"]) >= 1, f"out of memory was recorded {place and place['OutOfMemory']} times")

    def cupy(self):
        if subprocess.run([sys.executable, "-c", "import cupy"], capture_output=True).returncode != 0:
            return print("      this Python has no CuPy: its pool was not checked")
        told = json.loads(self.traced("cupy.tacho", ("--memory", "--sampler", "timer"), "--program", "cupy").stdout or "{}")
        places = self.rows("memory", "cupy.tacho", "--output-format", "csv", "--table", "places")
        place = next((row for row in places if "CuPy's arrays" in row["Memory"]), {})
        self.say(place.get("PeakBytes") == str(told.get("peak")), f"CuPy: peak {place.get('PeakBytes')}, its pool says {told.get('peak')}")
        self.say(place.get("EndBytes") == str(told.get("end")), f"CuPy: at the end {place.get('EndBytes')}, its pool says {told.get('end')}")

    def native_lines(self):
        source = pathlib.Path(__file__).resolve().parent / "memory_lines.c"
        if subprocess.run(["cc", "-g", "-O1", "-fno-optimize-sibling-calls", source, "-ldl", "-o", self.folder / "lines"]).returncode != 0:
            return print("      no C compiler: lines of a native program were not checked")
        told = self.run(self.tacho, "trace", "--quiet", "--overwrite", "-o", "lines.tacho", "--memory", "--sampler", "timer", "--",
                        self.folder / "lines").stdout.split()
        holders = self.rows("memory", "lines.tacho", "--by", "line", "--output-format", "csv", "--table", "holders")
        held = {row["Line"]: int(row["Bytes"]) for row in holders}
        text = source.read_text().splitlines()
        for function, mib, result in zip(("plain", "large", "ordered"), (3, 5, 7), told):
            line = next(i for i, each in enumerate(text, 1) if f"{mib} << 20" in each)
            self.say(result == "0" and held.get(f"memory_lines.c:{line} {function}") == mib << 20,
                     f"{mib} MiB by native line {line} ({function}, result {result}): {held}")

    def cost(self, rounds=7, steps=8):
        # Both programs stay warm and take turns: a line of input asks for steps.
        ways, running = ("--torch-trace", "--memory"), {}
        for way in ways:
            running[way] = subprocess.Popen([str(word) for word in (self.tacho, "trace", "--quiet", "--overwrite", "-o", f"cost{way}.tacho", way, "--",
                                                                    *self.own("--program", "turns"))],
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=self.folder)

        def turn(way, count):
            running[way].stdin.write(f"{count}\n")
            running[way].stdin.flush()
            return float(running[way].stdout.readline())

        try:
            for way in ways:
                turn(way, 8)
            ratios = []
            for i in range(rounds):
                took = {way: turn(way, steps) for way in (ways if i % 2 == 0 else ways[::-1])}
                ratios.append(took["--memory"] / took["--torch-trace"])
                print(f"      round {i + 1}: a step takes {1e3 * took['--torch-trace']:.3f} ms with --torch-trace, {1e3 * took['--memory']:.3f} ms "
                      f"with --memory, {ratios[-1]:.4f} of it", flush=True)
        finally:
            for process in running.values():
                process.stdin.close()
                process.wait()
        middle = statistics.median(ratios)
        self.say(middle <= 1.03, f"a step with --memory takes {middle:.4f} of one with --torch-trace (median of {rounds} rounds)")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--part", choices=("steps", "snapshots", "oom", "cupy", "lines", "cost"))
    parser.add_argument("--program")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--file", default="s.pickle")
    arguments = parser.parse_args()
    if arguments.program:
        return program(arguments.program, arguments.steps, arguments.file)
    with tempfile.TemporaryDirectory() as folder:
        check = Check(arguments.build.resolve(), pathlib.Path(folder))
        parts = {"steps": check.every_step, "snapshots": check.snapshots, "oom": check.out_of_memory, "cupy": check.cupy,
                 "lines": check.native_lines, "cost": check.cost}
        for name, part in parts.items():
            if arguments.part not in (None, name):
                continue
            try:
                part()
            except Exception as problem:
                check.say(False, f"{part.__name__}: {problem!r}")
        print("memory.sh: " + ("all equal" if check.wrong == 0 else f"{check.wrong} differ"))
        sys.exit(1 if check.wrong else 0)


if __name__ == "__main__":
    main()
