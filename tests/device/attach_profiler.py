"""`tacho attach` in PyTorch programs whose own profiler (torch.profiler) is used before, meanwhile and after: attach.py's section "profiler".

usage: attach_profiler.py --program eager|graphs     the program: a loop, and a window of the profiler for each line of its input, a number of steps;
                                                     with "then wait" behind the number the loop goes on only at the next line
The answer is a line of JSON: what the profiler counted in the window, by name, and the window's times.
"""
import collections
import ctypes
import json
import os
import pathlib
import re
import select
import subprocess
import sys
import threading
import time

STEPS = 5  # of a window
RAW = getattr(time, "CLOCK_MONOTONIC_RAW", None)


def now():
    return time.clock_gettime_ns(RAW)


def window(torch, step, steps):
    from torch.profiler import ProfilerActivity, profile, schedule
    begin = now()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], schedule=schedule(wait=0, warmup=1, active=steps, repeat=1)) as recorded:
        opened = now()
        for _ in range(steps + 1):
            step().item()
            torch.cuda.synchronize()
            recorded.step()
    kernels, calls, times = collections.Counter(), collections.Counter(), []
    for event in recorded.profiler.kineto_results.events():
        if event.device_type() == torch.autograd.DeviceType.CUDA:
            if event.name().startswith(("ProfilerStep", "Optimizer.")):  # annotations
                continue
            kernels[event.name()] += 1
            times.append(event.duration_ns())
        elif event.name().startswith("cu"):
            calls[event.name()] += 1
    bad = sum(not 0 < ns < 1e9 for ns in times)
    return {"kernels": kernels, "calls": calls, "bad": bad, "begin": begin, "opened": opened, "end": now()}


def program(kind):
    import attach
    import torch
    ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1 & (2**64 - 1)), 0, 0, 0)  # PR_SET_PTRACER, PR_SET_PTRACER_ANY
    step, times = attach.make_step(kind), []
    for _ in range(5):
        step().item()
    print("ready", flush=True)
    while True:
        begin = now()
        step().item()
        times.append((begin, now()))
        if not select.select([sys.stdin], [], [], 0)[0]:
            continue
        line = os.read(0, 200).decode().split()
        if not line:
            break
        print(json.dumps(window(torch, step, int(line[0]))), flush=True)
        if "wait" in line:
            os.read(0, 200)
    torch.cuda.synchronize()
    print(json.dumps(times), flush=True)


class Profiled:
    """tacho's side of a program."""

    def __init__(self, kind, **variables):
        self.process = subprocess.Popen([sys.executable, pathlib.Path(__file__).resolve(), "--program", kind], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **variables})
        self.pid = self.process.pid
        self.guard = threading.Timer(200, self.process.kill)  # nothing here takes so long
        self.guard.start()
        self.line("ready")

    def line(self, what):
        text = self.process.stdout.readline().strip()
        if not text:
            raise RuntimeError(f"the program ended before {what}: {self.process.communicate()[1][-900:]}")
        return text

    def write(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def begin_window(self, steps=STEPS):
        self.write(steps)

    def end_window(self):
        return json.loads(self.line("the window's end"))

    def window(self, steps=STEPS):
        self.begin_window(steps)
        return self.end_window()

    def end(self):
        self.process.stdin.close()
        times = json.loads(self.line("its end"))
        self.guard.cancel()
        errors = self.process.stderr.read()
        if self.process.wait(timeout=60) != 0:
            raise RuntimeError(f"the program ended with {self.process.returncode}: {errors[-900:]}")
        return times, errors


class Cases:
    def __init__(self, check):
        self.check, self.alone = check, None

    def same(self, what, seen, steps=STEPS):
        """The window is as those that nobody disturbed."""
        wanted = {kind: {name: count * steps // STEPS for name, count in self.alone[kind].items()} for kind in ("kernels", "calls")}
        for kind in ("kernels", "calls"):
            other = {name: (seen[kind].get(name, 0), wanted[kind].get(name, 0)) for name in {*seen[kind], *wanted[kind]}
                     if seen[kind].get(name, 0) != wanted[kind].get(name, 0)}
            # Calls that wait or ask come as often as the program has to.
            other = {name: counts for name, counts in other.items() if kind == "kernels" or "Launch" in name or "Memcpy" in name}
            self.check.say(not other and sum(seen[kind].values()) > 0,
                           f"{what}: {sum(seen[kind].values())} {kind}" + (f", other than alone: {dict(list(other.items())[:4])}" if other else ", as alone"))
        self.check.say(seen["bad"] == 0, f"{what}: {seen['bad']} times that cannot be; it was opened within {(seen['opened'] - seen['begin']) * 1e-6:.1f} ms")

    def attach(self, program, seconds, meanwhile=None, options=()):
        """Attaches; what the trace says, and what `meanwhile`, called after half of the time, returns."""
        file, begin = self.check.folder / "p.tacho", now()
        tacho = subprocess.Popen([self.check.tacho, "attach", str(program.pid), "-q", "--overwrite", "-o", file, "--duration", str(seconds), *options],
                                 text=True, stderr=subprocess.PIPE)
        time.sleep(seconds / 2)
        returned = meanwhile() if meanwhile is not None else None
        said = tacho.communicate(timeout=60)[1]
        self.check.say(tacho.returncode == 0, f"attach: {said.strip() or 'recorded'}")
        row = self.check.rows(file, "SELECT min(start) AS first, max(start + duration) AS last, count(*) AS number FROM tacho.dispatch")[0]
        properties = {row["key"]: row["value"] for row in self.check.rows(file, "SELECT key, value FROM tacho.property")}
        info = " ".join(self.check.run(self.check.tacho, "info", file).stdout.split())
        starts = sorted(int(row["start"]) for row in self.check.rows(file, "SELECT start FROM tacho.dispatch"))
        facts = {"file": file, "begin": begin, "end": now(), "info": info, "properties": properties, "kernels": int(row["number"]),
                 "first": int(row["first"] or 0), "last": int(row["last"] or 0), "starts": starts}
        if facts["kernels"]:
            print(f"      {facts['kernels']} kernels, the first {(facts['first'] - begin) * 1e-9:.3f} s after the command; "
                  f"clock {properties.get('cupti.clock')}, left {properties.get('cupti.left')}", flush=True)
        return facts, returned

    def says(self, facts, *sentences):
        for sentence in sentences:
            found = re.search(sentence, facts["info"])
            self.check.say(found is not None, f"the trace says: {found[0] if found else 'not ' + repr(sentence) + ' but ' + facts['info'][-900:]}")

    def exact(self, what, facts, times):
        """Each whole step of the recording has as many kernels as the profiler counts in one."""
        starts = facts["starts"]
        wanted = sum(count for name, count in self.alone["kernels"].items() if not name.startswith(("Memcpy", "Memset"))) / STEPS
        whole = [(begin, end) for begin, end in times if begin >= facts["first"] and end <= facts["last"]]
        counts = [sum(begin <= start < end for start in starts) for begin, end in whole[:200]]
        other = sorted({count for count in counts if count != wanted})
        self.check.say(len(counts) > 3 and not other, f"{what}: {len(counts)} whole steps with the profiler's {wanted:g} kernels" + (f", others {other[:8]}" if other else ""))


BESIDE, BEGAN = r"PyTorch's profiler was used in the program before[^:]*", r"a profiler in the program began to use CUPTI \(\w+\) [0-9.]+ s after tacho"
NOW = r"PyTorch's profiler records in process \d+ now"


def run(check):
    cases = Cases(check)
    used = Profiled("eager")
    windows = [used.window() for _ in range(3)]
    cases.alone = windows[2]
    cases.same("the second window, alone", windows[1])
    between, _ = cases.attach(used, 1.5)
    cases.says(between, BESIDE, "nothing was lost")
    cases.same("a window after tacho", used.window())
    cut, seen = cases.attach(used, 2.0, used.window)
    cases.says(cut, BEGAN, "nothing was lost")
    cases.same("a window that opens while tacho records", seen)
    check.say(0 < cut["last"] < seen["end"] and not any(seen["begin"] + 20_000_000 < start for start in cut["starts"]),
              f"tacho's last kernel ends {(cut['last'] - seen['begin']) * 1e-6:.1f} ms after the profiler was called")
    cases.same("a window after that", used.window())
    used.begin_window(80)
    time.sleep(0.4)
    refused, _ = cases.attach(used, 0.5)
    cases.says(refused, NOW)
    check.say(refused["kernels"] == 0, f"{refused['kernels']} kernels while the profiler records")
    cases.same("a window that was open before tacho", used.end_window(), 80)
    last, _ = cases.attach(used, 1.0)
    cases.says(last, BESIDE, "nothing was lost")
    used.begin_window(40)
    time.sleep(0.3)
    waited, _ = cases.attach(used, 6.0)  # after a window the program looks at its events first, for a second or two
    cases.says(waited, NOW, r"PyTorch's profiler ended [0-9.]+ s after tacho came", "nothing was lost")
    cases.same("a window that closes while tacho waits", used.end_window(), 40)
    counted, _ = cases.attach(used, 5.0, options=("--for-launches", "2000"))
    check.say(counted["kernels"] == 2000 and counted["end"] - counted["begin"] < 5e9,
              f"--for-launches 2000: {counted['kernels']} kernels, ended after {(counted['end'] - counted['begin']) * 1e-9:.1f} s")
    cases.same("the last window", used.window())
    times, errors = used.end()
    for what, facts in (("between two windows", between), ("until a window opened", cut), ("the last time", last), ("after a window", waited)):
        cases.exact(what, facts, times)
    unknown = errors.count("unknown buffer")
    check.say(unknown == 0, f"{unknown} buffers that were not the profiler's" + (f": {errors[-300:]}" if unknown else ""))

    fresh = Profiled("eager")  # its profiler has not been used when tacho comes
    first, seen = cases.attach(fresh, 2.0, fresh.window)
    cases.says(first, BEGAN)
    cases.same("the first window of all, while tacho records", seen)
    cases.same("the second window", fresh.window())
    cases.exact("until the first window", first, fresh.end()[0])

    graphs = Profiled("graphs")  # told, without verdict: CUPTI 13.0 does not follow graphs again that it has followed before
    alone = [graphs.window() for _ in range(2)]
    facts, _ = cases.attach(graphs, 1.0)
    after = graphs.window()
    print(f"fact  graphs: {[sum(each['kernels'].values()) for each in (*alone, after)]} kernels in two windows before tacho and one after, {facts['kernels']} in tacho's trace; "
          f"{facts['info'][-700:]}", flush=True)
    graphs.end()


def tear_down(check):
    """TEARDOWN_CUPTI=1: the profiler finalises CUPTI at the end of the program's next call of the runtime after a window."""
    cases = Cases(check)
    used = Profiled("eager", TEARDOWN_CUPTI="1")
    windows = [used.window() for _ in range(3)]
    cases.alone = windows[2]
    cases.same("the second window, alone", windows[1])
    recorded = {}
    for number in range(3):
        facts, _ = cases.attach(used, 1.0)
        cases.says(facts, "nothing was lost")
        recorded[f"after a window, {number}"] = facts
        cases.same("a window after tacho", used.window())
    cut, seen = cases.attach(used, 2.0, used.window)
    cases.says(cut, BEGAN)
    recorded["until a window opened"] = cut
    cases.same("a window that opens while tacho records", seen)
    used.write(f"{STEPS} then wait")
    cases.same("a window before the program waits", used.end_window())
    time.sleep(0.5)
    recorded["in a program that waited"], _ = cases.attach(used, 3.0, lambda: used.write("go on"))
    cases.says(recorded["in a program that waited"], "nothing was lost")
    print(f"fact  teardown: {recorded['in a program that waited']['info'][-600:]}", flush=True)
    used.begin_window(40)
    time.sleep(0.3)
    waited, _ = cases.attach(used, 6.0)  # after a window the program looks at its events first, for a second or two
    cases.says(waited, NOW, r"PyTorch's profiler ended [0-9.]+ s after tacho came", "nothing was lost")
    recorded["after a window that was open"] = waited
    cases.same("a window that closes while tacho waits", used.end_window(), 40)
    cases.same("the last window", used.window())
    times, errors = used.end()
    for what, facts in recorded.items():
        cases.exact(what, facts, times)
    check.say("unknown buffer" not in errors, f"buffers: {errors[-300:] or 'no errors'}")


if __name__ == "__main__":
    program(sys.argv[2])
