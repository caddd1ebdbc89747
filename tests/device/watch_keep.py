"""The measurements of watch_keep.sh.

file  a program launches a known number of kernels, waits now and then, and tacho gets SIGUSR1: the time until the file is there, its launches,
      and that each timed kernel lies between the begin of its call and the end of the next wait, within 20 us.
cost  the same loops in turn without anything, under tacho watch and under tacho watch --keep 30s, in blocks of some 30 ms.
"""
import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

import watch

LAUNCHES = 30000
LOOPS = ("eager", "busy", "graph", "small_graph", "tiny")


def fixed():
    """Launches, a wait every hundred; then it lives on until the file is there."""
    import torch
    values = torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()
    for i in range(LAUNCHES):
        values.add_(1)
        if i % 100 == 99:
            torch.cuda.synchronize()
    print("done", flush=True)
    sys.stdin.readline()


def query(tacho, file, sql):
    answer = subprocess.run([tacho, "query", file, sql, "--dialect", "tacho", "--output-format", "json"], capture_output=True, text=True, check=True)
    return json.loads(answer.stdout)["rows"]


def measure_file(tacho, out):
    program = subprocess.Popen([tacho, "watch", "-q", "--keep", "30s", "--after", "0s", "--files", out, "--", sys.executable, __file__, "--fixed"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    program.stdout.readline()
    file = out / "watch-signal.tacho"
    begin = time.monotonic()
    program.send_signal(signal.SIGUSR1)
    while not file.exists() and time.monotonic() < begin + 20:
        time.sleep(0.002)
    seconds = time.monotonic() - begin
    program.communicate("\n")
    wrong = 0

    def check(good, text):
        nonlocal wrong
        wrong += 0 if good else 1
        print(f"{'ok' if good else 'WRONG'}: {text}")

    check(seconds <= 1, f"the file was there after {seconds:.3f} s; goal 1 s")
    [[launches, timed]] = query(tacho, file, "SELECT count(*), count(duration) FROM dispatch WHERE name LIKE '%add%' OR name LIKE '%elementwise%'")
    check(launches >= LAUNCHES, f"{launches} launches are in the file, {LAUNCHES} were made; {timed} of them timed")
    pairs = query(tacho, file, "SELECT a.start, d.start, d.start + d.duration FROM dispatch d JOIN api a ON d.correlation = a.correlation WHERE d.duration IS NOT NULL")
    waits = sorted(row[0] for row in query(tacho, file, "SELECT start + duration FROM api WHERE name LIKE '%Synchronize%'"))
    early = sum(begin > start for begin, start, _ in pairs)
    late = []
    for begin, _, end in pairs:
        after = next((wait for wait in waits if wait > begin), None)
        if after is not None:
            late.append(end - after)
    worst = max(late, default=0)
    check(early == 0, f"{early} of {len(pairs)} timed kernels began before their call")
    check(worst <= 20000, f"the latest end of a kernel is {worst / 1000:.1f} us after that of the wait for it (negative: before), median {statistics.median(late) / 1000:.1f} us")
    return wrong


def measure_cost(tacho, out, seconds, loops):
    cores = ",".join(str(core) for core in sorted(os.sched_getaffinity(0))[2:4])
    prefix, _ = watch.watched(tacho, out, "watch_keep.jsonl", 1, watch.BUDGET / 2, [])
    keeping = [*prefix[:-1], "--keep", "30s", "--"]
    programs = {"nothing": watch.Program([], cores), "watch": watch.Program(prefix, cores), "keep": watch.Program(keeping, cores)}
    wrong = 0
    for loop in loops:
        for program in programs.values():
            program.time(loop, 0.3)
        block = 0.03 / programs["nothing"].time(loop, 0.3) * 0.3
        end = time.monotonic() + 2
        while time.monotonic() < end:
            programs["watch"].time(loop, block)
            programs["keep"].time(loop, block)
        ratios, more = [], []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            names = ["nothing", "watch", "keep"] if len(ratios) % 2 == 0 else ["keep", "watch", "nothing"]
            took = {name: 0.0 for name in names}
            for name in (*names, *reversed(names)):
                took[name] += programs[name].time(loop, block)
            ratios.append(took["keep"] / took["nothing"])
            more.append(took["keep"] / took["watch"])
        middle, low, high = watch.interval(ratios)
        m, l, h = watch.interval(more)
        goal = watch.GOALS[loop]
        verdict = "ok" if 1 / middle >= goal else "WRONG" if 1 / low < goal else "not resolved"
        wrong += verdict == "WRONG"
        print(f"{loop:<12} --keep / nothing {middle:.4f} ({low:.4f} to {high:.4f}, {len(ratios)})   --keep / watch {m:.4f} ({l:.4f} to {h:.4f})   {verdict}, speed {1 / middle:.4f}, goal {goal}",
              flush=True)
    for program in programs.values():
        program.end()
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--loops", type=lambda text: text.split(","), default=LOOPS, help="of cost: " + ", ".join(LOOPS))
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("sections", nargs="*")
    arguments = parser.parse_args()
    if arguments.fixed:
        return fixed()
    tacho = arguments.build / "bin" / "tacho"
    sections = {"file": lambda: measure_file(tacho, arguments.out), "cost": lambda: measure_cost(tacho, arguments.out, arguments.seconds, arguments.loops)}
    wrong = 0
    for name in arguments.sections or sections:
        print(f"== {name}", flush=True)
        wrong += sections[name]()
    print("watch_keep.sh: all good" if wrong == 0 else f"watch_keep.sh: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
