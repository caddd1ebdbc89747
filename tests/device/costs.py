"""What recording costs CUDA programs on this machine's GPU: tacho, a bare CUPTI client, torch.profiler and Proton beside the
same program without any of them. See costs.sh.

Every configuration is a live process (costs_worker.py) that runs a loop when asked. A round asks all of them for the same loop,
in an order that turns round by round; a ratio is of two answers of one round. Processes are started anew several times, since
where a process's memory lies moves its times; intervals resample starts, then rounds.
"""
import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LOOPS = {"decode": "decode loop in a CUDA graph", "small_graph": "graph of 18 products", "tiny_graph": "graph of 20 tiny kernels",
         "torch_launches": "tiny launches by PyTorch", "triton_launches": "tiny launches by Triton"}
# name -> (options of tacho trace | kinds of the bare client | nothing, the worker's own profiler)
CONFIGURATIONS = {
    "untraced": (None, None), "bare CUPTI, kernels": ("kg", None), "tacho --kernel-trace": (["--kernel-trace"], None),
    "bare CUPTI, default kinds": ("kcrqlmojg", None), "tacho": ([], None), "tacho --aggregate": (["--aggregate"], None),
    "tacho --graph-trace node": (["--graph-trace", "node"], None), "bare CUPTI, nodes": ("kcrqlmoj", None),
    "torch.profiler": (None, "torch"), "Proton": (None, "proton"),
}
# left / right and the most that the interval's upper end may be
RATIOS = [("bare CUPTI, kernels", "untraced", None), ("tacho --kernel-trace", "untraced", None), ("tacho", "untraced", None),
          ("tacho --aggregate", "untraced", None), ("tacho --graph-trace node", "untraced", None), ("torch.profiler", "untraced", None),
          ("Proton", "untraced", None), ("tacho --kernel-trace", "bare CUPTI, kernels", 1.03), ("tacho", "bare CUPTI, default kinds", 1.03),
          ("tacho --graph-trace node", "bare CUPTI, nodes", 1.03), ("tacho", "torch.profiler", 1.0), ("tacho", "Proton", 1.0)]


class Worker:
    def __init__(self, build, name, folder):
        recording, own = CONFIGURATIONS[name]
        command, environment = [sys.executable, os.path.join(HERE, "costs_worker.py"), *([own] if own else [])], dict(os.environ)
        many = os.cpu_count() >= 8
        if many:
            command = ["taskset", "-c", "2-4", *command]
        if isinstance(recording, str):
            environment.update(CUDA_INJECTION64_PATH=os.path.join(build, "lib", "libcupti_floor.so"), FLOOR_KINDS=recording)
        elif recording is not None:
            file = os.path.join(folder, "".join(c for c in name if c.isalnum()) + ".tacho")
            command = [*(["taskset", "-c", "5-7"] if many else []), os.path.join(build, "bin", "tacho"), "trace", "-q", "--overwrite",
                       "-o", file, *recording, "--", *command]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder)

    def ask(self, loop):
        """Seconds of a run of the loop; None if the process has ended."""
        try:
            self.process.stdin.write(loop + "\n")
            self.process.stdin.flush()
            return float(self.process.stdout.readline())
        except (BrokenPipeError, ValueError):
            return None

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()


def interval(groups):
    """Median of all ratios and its 95 % interval; groups: a list of ratios by start."""
    generator = random.Random(1)
    medians = sorted(statistics.median(r for group in generator.choices(groups, k=len(groups)) for r in generator.choices(group, k=len(group)))
                     for _ in range(2000))
    return statistics.median(r for group in groups for r in group), medians[50], medians[1949]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=500, help="no new start that would end later")
    parser.add_argument("loops", nargs="*", default=list(LOOPS))
    given = parser.parse_args()
    begin = time.monotonic()
    answers = {loop: [] for loop in given.loops}  # loop -> starts -> rounds -> configuration -> seconds
    for start in range(given.starts):
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            workers = {name: Worker(given.build, name, folder) for name in CONFIGURATIONS}
            for loop in given.loops:
                for worker in workers.values():
                    worker.ask(loop)  # not counted
                rounds = []
                for number in range(given.rounds):
                    names = list(workers)
                    turn = number * 3 % len(names)
                    names = names[turn:] + names[:turn]
                    if number % 2 == 1:
                        names.reverse()
                    rounds.append({name: workers[name].ask(loop) for name in names})
                answers[loop].append(rounds)
            for worker in workers.values():
                worker.close()
        took = time.monotonic() - started
        print(f"start {start + 1}: {took:.0f} s", flush=True)
        if time.monotonic() - begin + took > given.seconds:
            break
    failed = 0
    with open(os.path.join(given.out, "costs.txt"), "w") as report:
        def say(text):
            print(text, flush=True)
            report.write(text + "\n")

        for loop in given.loops:
            say(f"{LOOPS[loop]}: {len(answers[loop])} starts x {given.rounds} rounds")
            for left, right, goal in RATIOS:
                groups = [[r[left] / r[right] for r in rounds if r[left] and r[right]] for rounds in answers[loop]]
                groups = [group for group in groups if group]
                if not groups:
                    say(f"  {left + ' / ' + right:58} nothing was measured")
                    failed += goal is not None and right != "Proton"
                    continue
                ratio, low, high = interval(groups)
                verdict = "" if goal is None else "met" if high <= goal else "missed" if low > goal else "not resolved"
                failed += verdict == "missed"
                say(f"  {left + ' / ' + right:58} {ratio:.3f} [{low:.3f}, {high:.3f}]" + ("" if goal is None else f"  <= {goal} {verdict}"))
    return 1 if failed else 0


sys.exit(main())
