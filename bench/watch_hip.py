#!/usr/bin/env python3
"""What `tacho watch` takes a HIP program on the AMD test bed (docs/amd.md), within one program: its launches and waits go through
tacho's functions and past them, to HIP's own, in turns of some 1024 launches. Time with tacho to time without, medians and 95 % intervals.

usage: bench/watch_hip.py --build FOLDER [--hsa] [--seconds 30] [--launches 64] [--rocm 7.2] [--own-processor]

--launches N: so many, and then a wait for them. "nobody" shows what the method itself finds where there is nothing.

--hsa: HSA without HIP, whose queue for cooperative launches stays as it is, while another becomes an intercept queue.

The bed's GPU is threads of the program. `launches` and `thread` are the processor time of the thread that launches, in its launches
and in all: what the host's side costs. `all threads` has HIP's own thread and the GPU's work, too, and with it what events take there.
`wall` is the time that passed, which on a busy machine says little. --own-processor: the program's threads share one processor."""
import argparse
import json
import os
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
for folder in ("tests/rocm", "tests/e2e", "bench"):
    sys.path.insert(0, str(ROOT / folder))
from paired import interval  # noqa: E402

FIGURES = ("launches", "thread", "all threads", "wall")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help="an optimised build folder")
    parser.add_argument("--hsa", action="store_true")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--launches", type=int, default=64)
    parser.add_argument("--rocm", default="7.2")
    parser.add_argument("--own-processor", action="store_true")
    return parser.parse_args()


def main():
    arguments = parse()
    os.environ["TACHO_BUILD"], os.environ["TACHO_SOURCE"] = str(arguments.build.resolve()), str(ROOT)
    import bed
    if arguments.own_processor:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    # Half of the time goes past tacho, and its governor takes that for time without cost.
    watch = [arguments.build.resolve() / "bin/tacho", "watch", "--quiet", "--budget", "0.5%", "--output-format", "json", "--overwrite",
             "-o", "w.jsonl"]

    class Bench(bed.Case):
        def runTest(self):
            work = [self.program("watched", rocm=arguments.rocm), "past", arguments.seconds, arguments.launches]
            if arguments.hsa:
                self.program("watched", *bed.DEVICE_CODE, output="watched.co", rocm=arguments.rocm)
                work = [self.program("hsa_only", "-lhsa-runtime64", rocm=arguments.rocm), "watched.co", arguments.seconds, "past"]
            for name, prefix in (("nobody", []), ("--counts-only", [*watch, "--counts-only", "--"]), ("tacho watch", [*watch, "--"])):
                result, _ = self.on_bed(*prefix, *work, rocm=arguments.rocm, timeout=600)
                rounds = [[float(word) for word in line.split()[1:]] for line in result.stdout.decode().splitlines() if line.startswith("round")]
                print(f"{name}: {len(rounds)} rounds, {statistics.median(each[4] for each in rounds):.0f} ns a launch")
                for at, figure in enumerate(FIGURES):
                    ratios = [each[at] for each in rounds]
                    low, high = interval(ratios, 2000)
                    print(f"  {figure:<12} {statistics.median(ratios):.4f} ({low:.4f} to {high:.4f})", flush=True)
                if prefix:
                    moment = json.loads((self.folder / "w.jsonl").read_text().splitlines()[-1])
                    [kernel] = [row for row in moment["rows"] if row["kind"] == "kernel"]
                    print(f"  {kernel['timed']} of {kernel['count']} launches timed, {kernel.get('bounds', 0)} of them bounds")

    result = bed.unittest.TextTestRunner(verbosity=0).run(Bench())
    return 0 if result.wasSuccessful() and not result.skipped else 1


if __name__ == "__main__":
    sys.exit(main())
