#!/usr/bin/env python3
"""What counting a launch, and keeping it (--keep), takes a program: medians of ns a launch, on the stand-in for CUDA's driver.

    bench/watch_launch.py BUILD... [--rounds N]

Several builds are compared, in turns. KiB: what the program changes in its own memory before each launch, so that the caches are full."""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

KIB = (0, 256, 1024)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("builds", type=lambda text: pathlib.Path(text).resolve(), nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--launches", type=int, default=100_000)
    arguments = parser.parse_args()
    first = arguments.builds[0]
    core = str(max(os.sched_getaffinity(0)))
    # A driver takes longer than the stand-in: what is under way when its call begins has ended when it returns.
    environment = {**os.environ, "LD_LIBRARY_PATH": str(first / "tests" / "fake_cuda" / "driver"), "FAKE_CUDA_SPIN": "500"}
    with tempfile.TemporaryDirectory() as folder:
        def took(prefix, kib):
            program = ["taskset", "-c", core, first / "bench" / "watch_launch", str(arguments.launches), str(kib)]
            result = subprocess.run([*prefix, *program], env=environment, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
            return float(re.search(r"([\d.]+) ns a launch", result.stdout).group(1))

        print(f"{'KiB':>5} {'nothing':>8}   " + "   ".join(f"{f'counted by {build.name}':>20} {'and kept':>9}" for build in arguments.builds))
        for kib in KIB:
            kinds = {"nothing": []}
            for build in arguments.builds:
                watch = [build / "bin" / "tacho", "watch", "-q"]
                kinds[build, "watch"], kinds[build, "keep"] = [*watch, "--"], [*watch, "--keep", "30s", "--files", folder, "--"]
            times = {kind: [] for kind in kinds}
            for turn in range(arguments.rounds):
                for kind in list(kinds) if turn % 2 == 0 else reversed(kinds):
                    times[kind].append(took(kinds[kind], kib))
            middle = {kind: statistics.median(all_of) for kind, all_of in times.items()}
            cells = [f"{middle[build, 'watch'] - middle['nothing']:>+20.1f} {middle[build, 'keep'] - middle[build, 'watch']:>+9.1f}" for build in arguments.builds]
            print(f"{kib:>5} {middle['nothing']:>8.1f}   " + "   ".join(cells), flush=True)


if __name__ == "__main__":
    main()
