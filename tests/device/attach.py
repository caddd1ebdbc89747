"""`tacho attach` in PyTorch programs on a GPU (attach.sh). Prints a table and lines ok/WRONG; ends with 1 if one is wrong.

usage: attach.py --build BUILD --out FOLDER [SECTION...]
       attach.py --program eager|graphs|launches [--steps N] [--profile STEPS]   the programs that it runs; --steps 0 = until SIGTERM
Programs: eager (a training loop), graphs (a decode loop of graphs), launches (single kernels that take the host's whole time).
Sections: eager, graphs (attach, leave, again with other options), listen (eager, in a program that listens: no thread is stopped),
rounds (20 times; losses bit for bit those of an undisturbed run), memory (what of the program's resident memory has grown, by mapping),
launches, eager_speed, graphs_speed (the speed after leaving against before, beside programs that nobody attaches to: attach_speed.py),
profiler (windows of torch.profiler before, meanwhile and after), teardown (the same where the profiler finalises CUPTI),
finalize (how CUPTI is left: graphs before, meanwhile and after, and a hundred rounds with four launching threads), facts (what
cuptiFinalize does in a program by itself, without tacho and without verdicts: where graphs break, which clock is left, what idle costs).
"""
import argparse
import concurrent.futures
import csv
import ctypes
import itertools
import io
import json
import mmap
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import attach_finalize
import attach_profiler
import attach_speed

RAW = getattr(time, "CLOCK_MONOTONIC_RAW", None)
WARM = 5.0  # seconds of undisturbed work before and after
HELD = 3.0  # seconds of recording


def now():
    return time.clock_gettime_ns(RAW)


def make_step(kind):
    import torch
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True, warn_only=True)
    if kind == "launches":
        values = torch.zeros(1024, device="cuda")

        def step():
            for _ in range(200):
                values.add_(1)
            return values[0]
        return step
    if kind == "eager":
        layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True)
        network = torch.nn.Sequential(torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False), torch.nn.Flatten(),
                                      torch.nn.Linear(64 * 512, 16)).cuda().train()
        optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4)
        inputs, target = torch.randn(16, 64, 512, device="cuda"), torch.randint(0, 16, (16,), device="cuda")

        def step():
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(network(inputs), target)
            loss.backward()
            optimizer.step()
            return loss
        return step
    layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.0, batch_first=True)
    network = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).cuda().half().eval()
    token = torch.randn(4, 1, 256, device="cuda", dtype=torch.half)
    with torch.no_grad():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                network(token)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = network(token)

    def step():
        for _ in range(10):
            graph.replay()
        return result.float().sum()
    return step


class Launching:
    """A thread that launches kernels beside the program's own, on a stream of its own. They are of short integers, like none of the program's."""

    def __init__(self):
        import torch
        self.torch, self.launches, self.ended = torch, 0, False
        self.values = torch.zeros(1024, dtype=torch.int16, device="cuda")
        torch.cuda.synchronize()
        self.thread = threading.Thread(target=self.launch)
        self.thread.start()

    def launch(self):
        stream = self.torch.cuda.Stream()
        with self.torch.cuda.stream(stream):
            while not self.ended:
                for _ in range(16):
                    self.values.add_(1)
                self.launches += 16
                stream.synchronize()

    def end(self):
        self.ended = True
        self.thread.join()

    def wrong(self):
        return (self.launches - self.values[0].item()) % 65536 != 0


def program(kind, steps, profiled):
    if cores := os.environ.get("ATTACH_CORES"):
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    import torch
    ended = False

    def end(*_):
        nonlocal ended
        ended = True
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGUSR1, lambda *_: ctypes.CDLL(None).malloc_trim(0))
    # Where yama lets a process attach only to those that it started, the program may allow it to all.
    ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1 & (2**64 - 1)), 0, 0, 0)  # PR_SET_PTRACER, PR_SET_PTRACER_ANY
    step = make_step(kind)
    if os.environ.get("ATTACH_LISTEN"):
        import tacho
        tacho.listen(os.environ["ATTACH_LISTEN"])
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    if profiled:
        from torch.profiler import ProfilerActivity, profile
        step().item()
        with profile(activities=[ProfilerActivity.CUDA]) as recorded:
            for _ in range(profiled):
                step().item()
            torch.cuda.synchronize()
        kernels = [event for event in recorded.events() if event.device_type == torch.autograd.DeviceType.CUDA]
        counts = {}
        for event in kernels:
            if not event.name.startswith(("Memcpy", "Memset")):
                counts[event.name] = counts.get(event.name, 0) + 1
        print(json.dumps({"kernels": sum(counts.values()) / profiled, "names": len(counts)}))
        return
    others = [Launching() for _ in range(int(os.environ.get("ATTACH_THREADS", "0")))]
    print("ready", flush=True)
    times, losses = [], []
    turn, own = None, int(os.environ.get("ATTACH_TURN_OF", "0"))
    if own:
        with open(os.environ["ATTACH_TURNS"], "rb") as file:
            turn = mmap.mmap(file.fileno(), 1, access=mmap.ACCESS_READ)
    while not ended and (steps == 0 or len(losses) < steps):
        if turn is not None and turn[0] != own:
            time.sleep(0.002)
            continue
        begin = now()
        losses.append(step().item().hex())  # waits for the device
        times.append((begin, now()))
    for other in others:
        other.end()
    torch.cuda.synchronize()
    print(json.dumps({"times": times, "losses": losses, "others": [other.wrong() for other in others]}))


class Running:
    """A program that was started without tacho."""

    def __init__(self, kind, library=None, turns=None, number=0, threads=0):
        environment = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8", "ATTACH_THREADS": str(threads)}
        if turns is not None:
            cores = sorted(os.sched_getaffinity(0))
            environment |= {"ATTACH_TURNS": str(turns), "ATTACH_TURN_OF": str(number), "ATTACH_CORES": str(cores[-number % len(cores)])}
        if library is not None:
            environment |= {"ATTACH_LISTEN": str(library), "PYTHONPATH": str(pathlib.Path(__file__).resolve().parents[2] / "python")}
        self.process = subprocess.Popen([sys.executable, pathlib.Path(__file__).resolve(), "--program", kind], text=True, env=environment,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if self.process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"the {kind} program did not start: {self.process.communicate()[1][-900:]}")
        self.pid = self.process.pid

    def resident(self):
        """MiB."""
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{self.pid}/status").read_text())[1]) / 1024

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        said, errors = self.process.communicate(timeout=120)
        if self.process.returncode != 0:
            raise RuntimeError(f"the program ended with {self.process.returncode}: {errors[-900:]}")
        return json.loads(said)


class Check:
    def __init__(self, build, folder):
        self.tacho, self.folder, self.wrong, self.table, self.shown = build / "bin" / "tacho", folder, 0, [], 0

    def say(self, good, sentence):
        self.wrong += not good
        print(("ok    " if good else "WRONG ") + sentence, flush=True)
        return good

    def run(self, *command, code=0):
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=self.folder, timeout=120)
        if code is not None and result.returncode != code:
            self.say(False, f"{' '.join(map(str, command[1:]))}: exit code {result.returncode}: {result.stderr[-900:].strip()}")
        return result

    def rows(self, file, sql):
        return list(csv.DictReader(io.StringIO(self.run(self.tacho, "query", file, sql, "--output-format", "csv").stdout)))

    def attach(self, program, *options, file="a.tacho"):
        """Attaches; facts of it, or nothing where tacho was refused."""
        begin = now()
        result = self.run(self.tacho, "attach", program.pid, "-q", "--overwrite", "-o", file, *options, code=None)
        end = now()
        if not self.say(result.returncode == 0, f"attach {' '.join(map(str, options))}: {result.stderr.strip() or 'recorded'}"):
            return None
        said = self.run(self.tacho, "info", file).stdout
        properties = {row["key"]: row["value"] for row in self.rows(file, "SELECT key, value FROM tacho.property")}
        kernels = self.rows(file, "SELECT min(start) AS first, max(start + duration) AS last, count(*) AS number FROM tacho.dispatch")
        if end - begin > 3e9 + HELD * 1e9:
            self.say(False, f"attach took {(end - begin) * 1e-9:.1f} s")
            self.threads_of_tacho(program.pid)
        facts = {"begin": begin, "end": end, "info": said, "properties": properties, "kernels": 0, "file": file}
        if kernels and kernels[0]["first"]:
            facts |= {"kernels": int(kernels[0]["number"]), "first": int(kernels[0]["first"]), "last": int(kernels[0]["last"])}
        self.losses(said, file)
        return facts

    def losses(self, said, file):
        lost = "nothing was lost" not in said
        if self.say(not lost, "nothing was lost" if not lost else "tacho info says more:"):
            return True
        self.shown += 1
        if self.shown > 5:  # twenty rounds would fill the screen
            return False
        print("      " + "\n      ".join(said.strip().splitlines()[-14:]))
        for row in self.rows(file, "SELECT * FROM tacho.loss"):
            print("      loss", dict(row), flush=True)
        return False

    @staticmethod
    def threads_of_tacho(pid):
        """Where tacho's and CUPTI's threads are, for one that does not let go."""
        for task in sorted(pathlib.Path(f"/proc/{pid}/task").iterdir()):
            try:
                name, call = (task / "comm").read_text().strip(), (task / "syscall").read_text().strip()
                stack = " < ".join(line.split()[-1].split("+")[0] for line in (task / "stack").read_text().splitlines()[:6])
            except OSError as problem:
                name, call, stack = "?", str(problem), ""
            if "tacho" in name or "cupti" in name.lower():
                print(f"      thread {task.name} {name}: {call.split()[0]} {stack}", flush=True)

    def row(self, what, *cells):
        self.table.append((what, *cells))

    def torchs_count(self, kind):
        command = [sys.executable, pathlib.Path(__file__).resolve(), "--program", kind, "--profile", "10"]
        environment = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment, timeout=200)
        if result.returncode != 0:
            self.say(False, f"torch.profiler's count of {kind}: {result.stderr[-500:]}")
            return 0
        return json.loads(result.stdout.splitlines()[-1])["kernels"]

    def kernels_of_steps(self, facts, times, wanted):
        """The kernels of each whole step of the recording are as many as torch counts."""
        counts = self.count_in_steps(facts, times)
        other = [count for count in counts if count != wanted]
        self.say(len(counts) > 3 and not other, f"kernels a step: {len(counts) - len(other)} of {len(counts)} steps have torch's {wanted:g}" +
                 (f", others {sorted(set(other))[:8]}" if other else ""))

    def count_in_steps(self, facts, times):
        """Of each whole step of the recording. Those of the threads beside the steps do not count."""
        starts = sorted(int(row["start"]) for row in self.rows(facts["file"], "SELECT start FROM tacho.dispatch WHERE name NOT LIKE '%short%'"))
        counts, at = [], 0
        for begin, end in times:
            if begin < facts["first"] or end > facts["last"]:
                continue
            while at < len(starts) and starts[at] < begin:
                at += 1
            until = at
            while until < len(starts) and starts[until] < end:
                until += 1
            counts.append(until - at)
            at = until
        return counts

    def loop(self, kind, library=None):
        wanted = self.torchs_count(kind)
        program = Running(kind, library)
        kind = "listen" if library is not None else kind
        self.refusals(program)
        time.sleep(WARM)
        before_memory = program.resident()
        first = self.attach(program, "--duration", HELD, file="first.tacho")
        if first is None:
            program.end()
            return
        time.sleep(WARM)
        one_memory = program.resident()
        second = self.attach(program, "--duration", HELD, "--kernel-trace", file="second.tacho")
        time.sleep(WARM)
        two_memory = program.resident()
        third = self.attach(program, "--duration", HELD, "--api-args", file="third.tacho")
        time.sleep(WARM)
        three_memory = program.resident()
        said = program.end()
        attached = [facts for facts in (first, second, third) if facts]

        def speed(begin, end):
            """Steps a second between two moments, by the middle of the steps' times."""
            inside = [b - a for a, b in said["times"] if a >= begin and b <= end]
            return 1e9 / statistics.median(inside) if inside else float("nan")
        gap = int(0.2e9)
        quiet = int(WARM * 0.9e9)
        halves = [speed(first["begin"] - quiet, first["begin"] - quiet // 2), speed(first["begin"] - quiet // 2, first["begin"])]
        before = speed(first["begin"] - quiet, first["begin"])
        print(f"      {kind}: undisturbed, the second half is {halves[1] / halves[0]:.4f} as fast as the first")
        for number, facts in enumerate(attached, 1):
            if not facts["kernels"]:
                self.say(False, f"{kind} {number}: no kernel was recorded")
                continue
            in_seconds = (facts["first"] - facts["begin"]) * 1e-9
            stopped = float(facts["properties"].get("attach.threads_stopped_ms", "nan"))
            next_begin = attached[number]["begin"] if number < len(attached) else said["times"][-1][1]
            during, after = speed(facts["first"] + gap, facts["last"] - gap), speed(facts["end"] + gap, next_begin)
            self.row(f"{kind} {number}", f"{in_seconds:.2f}", f"{stopped:.2f}", f"{before:.1f}", f"{during / before:.3f}", f"{after / before:.3f}",
                     facts["kernels"], f"{facts['properties'].get('attach.attached_ms', '?')}")
            self.say(in_seconds <= 2, f"{kind} {number}: command to first kernel {in_seconds:.2f} s (goal 2)")
            self.say(stopped <= (50 if number == 1 else 5), f"{kind} {number}: a thread was stopped for {stopped:.2f} ms (goal {50 if number == 1 else 5})")
            goal = 0.9 if kind == "graphs" else 0.995
            noise = abs(halves[1] / halves[0] - 1)
            self.say(after / before >= goal - noise, f"{kind} {number}: speed after/before {after / before:.4f} (goal {goal}, noise {noise:.4f})")
        self.say(three_memory - before_memory <= 8, f"{kind}: resident memory {before_memory:.0f} MiB before, then {one_memory:.0f}, {two_memory:.0f}, "
                 f"{three_memory:.0f} (goal +8)")
        for facts in attached:
            if facts["kernels"]:
                self.kernels_of_steps(facts, said["times"], wanted)

    def eager(self):
        self.loop("eager")

    def graphs(self):
        self.loop("graphs")

    def listen(self):
        self.loop("eager", self.tacho.parent.parent / "lib" / "libtacho.so")

    def rounds(self, number=20):
        self.go_round(number, "0.5", threads=0)

    def finalize(self):
        attach_finalize.run_cases(self)
        self.go_round(100, "0.25", threads=3, left="finalized")

    def profiler(self):
        attach_profiler.run(self)

    def teardown(self):
        attach_profiler.tear_down(self)

    def facts(self):
        attach_finalize.tell_facts(self, self.tacho.parent.parent / "tests" / "device" / "cupti_finalize")

    def go_round(self, number, seconds, threads, left="", more=()):
        """Attaches again and again. The program's losses stay the same, and each recording has the kernels of its steps."""
        wanted = self.torchs_count("eager")
        program = Running("eager", threads=threads)
        stopped, lost, states, recorded = [], 0, [], []
        for i in range(number):
            options = (("--kernel-trace",), ("--api-args",), ("--memory-copy-trace",), ())[i % 4]
            file = f"r{i}.tacho"
            result = self.run(self.tacho, "attach", program.pid, "-q", "--overwrite", "-o", file, "--duration", seconds, *options, *more)
            if result.returncode != 0:
                break
            properties = {row["key"]: row["value"] for row in self.rows(file, "SELECT key, value FROM tacho.property")}
            stopped.append(float(properties["attach.threads_stopped_ms"]))
            states.append(properties.get("cupti.left", ""))
            lost += not self.losses(self.run(self.tacho, "info", file).stdout, file)
            if i % 4 != 2:
                span = self.rows(file, "SELECT min(start) AS first, max(start + duration) AS last FROM tacho.dispatch WHERE name NOT LIKE '%short%'")[0]
                recorded.append({"file": file, "first": int(span["first"] or 0), "last": int(span["last"] or 0)})
        time.sleep(1)
        said = program.end()
        self.say(len(stopped) == number and lost == 0,
                 f"{len(stopped)} of {number} rounds recorded, {lost} with losses; CUPTI was left " +
                 ", ".join(f"{state} {states.count(state)} times" for state in sorted(set(states))) +
                 f"; stopped for {statistics.median(stopped):.1f} ms, at most {max(stopped):.1f} ms")
        if left:
            self.say(states.count(left) == number, f"CUPTI was left {left} in {states.count(left)} of {number} rounds")
        counts = list(itertools.chain.from_iterable(self.count_in_steps(facts, said["times"]) for facts in recorded))
        other = [count for count in counts if count != wanted]
        self.say(len(counts) > len(recorded) and not other, f"{len(counts) - len(other)} of {len(counts)} whole steps have torch's {wanted:g} kernels, at their times" +
                 (f", others {sorted(set(other))[:8]}" if other else ""))
        if threads:
            self.say(not any(said["others"]), f"the sums of {threads} threads beside it are {'wrong' if any(said['others']) else 'right'}")
        self.compare_losses(said["losses"])

    def compare_losses(self, losses):
        command = [sys.executable, pathlib.Path(__file__).resolve(), "--program", "eager", "--steps", len(losses)]
        environment = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment, timeout=300)
        alone = json.loads(result.stdout.splitlines()[-1])["losses"]
        differ = next((i for i, (a, b) in enumerate(zip(alone, losses)) if a != b), None)
        self.say(differ is None and len(losses) == len(alone), f"losses of {len(losses)} steps are those of an undisturbed run, bit for bit" if differ is None else
                 f"losses differ from step {differ} of {len(losses)} on: {alone[differ]} undisturbed, {losses[differ]}")

    def launches(self, number=32):
        core = max(os.sched_getaffinity(0))
        start = lambda: attach_speed.Launches(self, core)  # noqa: E731
        before, after = attach_speed.count_instructions(self, now, "idle", start, "--leave-cupti", "idle")
        self.say(before < after, "the count tells what an idle CUPTI adds")
        attach_speed.compare(self, now, [start] * number, 0.995, "finalized")

    def eager_speed(self):
        self.take_turns("eager", 12, 0.995, "finalized")

    def graphs_speed(self):
        self.take_turns("graphs", 8, 0.9, "idle")

    def take_turns(self, kind, number, goal, wanted):
        """Programs that take long to start are started together, each on its own processor, and wait for their turns."""
        path = self.folder / "turns"
        path.write_bytes(b"\0")
        with open(path, "r+b") as file:
            turn = mmap.mmap(file.fileno(), 1)
        with concurrent.futures.ThreadPoolExecutor(number) as pool:
            started = list(pool.map(lambda i: Running(kind, turns=path, number=i + 1), range(number)))
        programs = [attach_speed.Turning(kind, running, turn, i + 1) for i, running in enumerate(started)]
        attach_speed.compare(self, now, [lambda program=program: program for program in programs], goal, wanted)

    @staticmethod
    def mappings(pid):
        """Resident KiB by the name of the mapping: files by theirs, memory without a file by its size."""
        found, name = {}, ""
        for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
            if head := re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \d+\s*(.*)", line):
                size = (int(head[2], 16) - int(head[1], 16)) >> 10
                name = pathlib.Path(head[4]).name if head[4].startswith("/") else head[4] or f"anonymous {head[3]} of {size} KiB"
            elif line.startswith("Rss:"):
                found[name] = found.get(name, 0) + int(line.split()[1])
        return found

    def memory(self):
        """Resident memory after attaches, and how much of what is no file's the program's allocator keeps (it gives that back at SIGUSR1)."""
        program = Running("eager")
        time.sleep(3)
        idle = self.mappings(program.pid)
        time.sleep(2)
        before = self.mappings(program.pid)
        print(f"      undisturbed for 2 s: {sum(before.values()) - sum(idle.values()):+d} KiB")
        for number in range(1, 4):
            self.attach(program, "--duration", 0.5, file="m.tacho")
            time.sleep(1)
            after = self.mappings(program.pid)
            grown = sorted(((after.get(name, 0) - before.get(name, 0), name) for name in {*after, *before}), reverse=True)
            print(f"      after attach {number}: {sum(after.values()) - sum(before.values()):+d} KiB, of which")
            for kib, name in grown[:14]:
                if kib >= 128:
                    print(f"        {kib:+8d} KiB  {name}", flush=True)
        anonymous = lambda: int(re.search(r"RssAnon:\s+(\d+)", pathlib.Path(f"/proc/{program.pid}/status").read_text())[1])  # noqa: E731
        held = anonymous()
        program.process.send_signal(signal.SIGUSR1)
        time.sleep(1)
        print(f"      the program's allocator gave back {held - anonymous()} KiB that nobody used", flush=True)
        files = sum(after.get(name, 0) - before.get(name, 0) for name in {*after, *before} if not name.startswith(("anonymous", "[")) and "tacho" not in name and "cupti" not in name)
        self.say(files <= 1024, f"pages of the program's own files: {files:+d} KiB")
        ours = sum(after.get(name, 0) - before.get(name, 0) for name in {*after, *before} if "tacho" in name)
        self.say(ours <= 8192, f"libtacho.so itself has {ours} KiB resident (goal 8192)")
        program.end()

    def refusals(self, program):
        scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
        status = pathlib.Path("/proc/self/status").read_text()
        rights = re.search(r"CapEff:\s*(\w+)", status)[1]
        print(f"      user {os.geteuid()}, yama {scope.read_text().strip() if scope.exists() else 'absent'}, capabilities {rights}, "
              f"kernel {os.uname().release}")
        print(self.run(self.tacho, "doctor", program.pid, code=None).stdout.strip(), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sections", nargs="*", default=[])
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--program")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--profile", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.program:
        return program(arguments.program, arguments.steps, arguments.profile)
    with tempfile.TemporaryDirectory() as folder:
        check = Check(arguments.build.resolve(), pathlib.Path(folder))
        for section in arguments.sections or ("eager", "graphs", "listen", "rounds", "memory", "profiler", "teardown", "finalize", "launches", "eager_speed", "graphs_speed"):
            print(f"-- {section}", flush=True)
            try:
                getattr(check, section)()
            except Exception as problem:
                check.say(False, f"{section}: {problem!r}")
        titles = ("loop", "first kernel s", "stopped ms", "steps/s before", "during/before", "after/before", "kernels", "attached ms")
        lines = [titles, *check.table]
        widths = [max(len(str(line[i])) for line in lines) for i in range(len(titles))]
        text = "\n".join("  ".join(str(cell).ljust(width) for cell, width in zip(line, widths)) for line in lines)
        print(text)
        (arguments.out / "attach_table.txt").write_text(text + "\n")
        print("attach.sh: " + ("all good" if check.wrong == 0 else f"{check.wrong} wrong"))
        sys.exit(1 if check.wrong else 0)


if __name__ == "__main__":
    main()
