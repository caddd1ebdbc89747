#!/usr/bin/env python3
"""The cost of tracing a launch on the AMD test bed (docs/amd.md), with AMD's real rocprofiler-sdk: the program alone, under a tool
of that library that does nothing, under tacho by its road, under tacho by HSA's road. In rounds, in changing order; prints the
medians and the ratios of costs with 95 % bootstrap intervals, and how busy the machine was.

usage: TACHO_BED_SDK=FOLDER[:FOLDER...] bench/rocm.py --build FOLDER [--rounds 40] [--launches 20000]

The bed's GPU is the processor, so the figures are of the host's side: what a launch, its record and its completion cost there. All
runs on one processor: what then passes is the work of all threads together (the program's, the library's, tacho's, the bed's).
Where threads that wait for each other share two, a run takes twice as long as the next, by chance.
"""
import argparse
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
for folder in ("tests/rocm", "tests/e2e", "bench"):
    sys.path.insert(0, str(ROOT / folder))
from paired import interval  # noqa: E402


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help="an optimised build folder")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--launches", type=int, default=20000)
    return parser.parse_args()


class Bench:
    def __init__(self, arguments, folder):
        self.arguments, self.folder, self.build = arguments, folder, arguments.build.resolve()
        sdk = os.environ.get("TACHO_BED_SDK")
        if not sdk:
            sys.exit("rocm.py: set TACHO_BED_SDK to the folder of AMD's real rocprofiler-sdk; the imitation says nothing about costs")
        os.environ["TACHO_BUILD"], os.environ["TACHO_SOURCE"] = str(self.build), str(ROOT)
        import bed
        self.shim = bed.register_shim()
        self.sdk = sdk
        self.program, self.tool = folder / "launches", folder / "empty_tool.so"
        subprocess.run([ROOT / "scripts/rocm-bed.sh", "--compile", ROOT / "tests/rocm/programs/launches.hip", self.program], check=True)
        subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-static-libstdc++",
                        "-static-libgcc", "-I", ROOT / "src", HERE / "rocm_empty_tool.cpp", "-o", self.tool, "-ldl"], check=True)

    def run(self, how):
        preload = f"{self.build}/tests/libtacho_kfd.so:{self.shim}" + (f":{self.tool}" if how == "empty tool" else "")
        own = [f"LD_PRELOAD={preload}", f"HSA_TOOLS_LIB={self.shim}"]
        # Without the library the shim has nobody to register HIP with: the program alone, and HSA's road.
        own.append(f"LD_LIBRARY_PATH={self.sdk if how in ('empty tool', 'tacho, sdk') else self.sdk.partition(':')[2]}")
        if how == "empty tool":  # tacho finds the library on its own
            own.append(f"ROCPROFILER_REGISTER_LIBRARY={self.sdk.partition(':')[0]}/librocprofiler-sdk.so.1")
        tacho = [self.build / "bin/tacho", "trace", "--quiet", "--overwrite", "-o", self.folder / "t.tacho", "--amd-source",
                 how.split()[-1], "--"] if how.startswith("tacho") else []
        for attempt in range(3):
            result = subprocess.run([ROOT / "scripts/rocm-bed.sh", "--build", self.build, "--", "env", *own, *tacho, self.program,
                                     str(self.arguments.launches)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            found = re.search(r"each ([0-9.]+) us", result.stdout)
            if result.returncode == 0 and found:
                return float(found[1])
            print(f"{how}: exit code {result.returncode}, once more: {result.stderr.strip()[:600]}", file=sys.stderr)
        sys.exit(f"rocm.py: {how} failed three times")


def main():
    arguments = parse()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    ways = ["alone", "empty tool", "tacho, sdk", "tacho, hsa"]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, pathlib.Path(folder))
        taken = {way: [] for way in ways}
        order, shuffle, loads = ways[:], random.Random(1), []
        for _ in range(arguments.rounds):
            shuffle.shuffle(order)
            for way in order:
                loads.append(os.getloadavg()[0])
                taken[way].append(bench.run(way))
    for way in ways:
        print(f"{way:<11} {statistics.median(taken[way]):8.3f} us a launch   ({min(taken[way]):.3f} to {max(taken[way]):.3f})")

    def say(name, ratios, goal):
        low, high = interval(ratios)
        verdict = "met" if high <= goal else "missed" if low > goal else "not resolved"
        print(f"{name}: {statistics.median(ratios):.3f} [{low:.3f}, {high:.3f}], goal {goal}: {verdict}")

    say("sdk / empty tool, time of a launch", [a / b for a, b in zip(taken["tacho, sdk"], taken["empty tool"])], 1.05)
    cost = {way: [t - alone for t, alone in zip(taken[way], taken["alone"])] for way in ways[1:]}
    print("cost of a launch: " + ", ".join(f"{way} {statistics.median(cost[way]):+.3f} us" for way in ways[1:]))
    say("hsa / sdk, cost of a launch", [h / s for h, s in zip(cost["tacho, hsa"], cost["tacho, sdk"]) if s > 0] or [9.9], 0.7)
    print(f"load of the machine meanwhile: {statistics.median(loads):.1f} (most {max(loads):.1f}) on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
