#!/bin/bash
# Wall time and peak memory of full reports of `tacho analyze`: vcopy/MI200, vcopy/MI350, no_roof/MI300X_A1, and vcopy/MI200
# with its rows repeated to 10,000 dispatches. Median of 15 runs, of 5 for the large one; `tacho --version` is the floor.
#
# usage: bench/analyze.sh [TACHO]      data: $TACHO_DATA or ../shared/data beside the source tree
set -eu
source_folder=$(cd "$(dirname "$0")/.." && pwd)
tacho=${1:-$source_folder/build/bin/tacho}
data=${TACHO_DATA:-$source_folder/../shared/data}
[ -x "$tacho" ] || { echo "bench/analyze.sh: no executable at $tacho" >&2; exit 1; }
[ -d "$data/workloads" ] || { echo "bench/analyze.sh: no workloads at $data (set TACHO_DATA)" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

[ -x /usr/bin/time ] || { echo "bench/analyze.sh: GNU time is missing (package time)" >&2; exit 1; }
/usr/bin/python3 - "$tacho" "$data/workloads" "$folder" <<'PYTHON'
import os
import pathlib
import statistics
import subprocess
import sys
import time

tacho, workloads, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])


def repeat(source, target, rows):
    """The workload with its dispatches repeated, numbered on."""
    target.mkdir()
    for file in source.glob("*.csv"):
        lines = file.read_text().splitlines()
        body = lines[1:]
        if file.name not in ("sysinfo.csv", "roofline.csv"):
            body = [f"{i}{line[line.index(','):]}" for i, line in ((i, body[i % len(body)]) for i in range(rows))]
        (target / file.name).write_text("\n".join([lines[0], *body]) + "\n")
    return target


def measure(arguments, runs):
    """Median and best wall milliseconds, peak RSS in MB."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run([tacho, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        times.append((time.perf_counter() - start) * 1000)
    # A process started from here would inherit this interpreter's peak; time(1) is small.
    result = subprocess.run(["/usr/bin/time", "-f", "%M", tacho, *arguments], stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, check=True)
    return statistics.median(times), min(times), int(result.stderr.split()[-1]) / 1024


print(f"load {os.getloadavg()[0]:.2f} on {os.cpu_count()} CPUs")
print(f"{'report':<28}{'median ms':>10}{'best ms':>9}{'RSS MB':>8}   goal")
missed = 0
large = repeat(workloads / "vcopy" / "MI200", folder / "large", 10000)
for name, arguments, runs, most_ms, most_mb in (
        ("(floor: tacho --version)", ["--version"], 15, None, None),
        ("vcopy/MI200", ["analyze", "-p", workloads / "vcopy" / "MI200"], 15, 30, 20),
        ("vcopy/MI350", ["analyze", "-p", workloads / "vcopy" / "MI350"], 15, 60, None),
        ("no_roof/MI300X_A1", ["analyze", "-p", workloads / "no_roof" / "MI300X_A1"], 15, 60, None),
        ("vcopy/MI200, 10000 rows", ["analyze", "-p", large], 5, 500, 200)):
    median, best, peak = measure(arguments, runs)
    met = (most_ms is None or median <= most_ms) and (most_mb is None or peak <= most_mb)
    missed += not met
    goal = "" if most_ms is None else f"<= {most_ms} ms" + (f", {most_mb} MB" if most_mb else "") + (": met" if met else ": MISSED")
    print(f"{name:<28}{median:>10.1f}{best:>9.1f}{peak:>8.1f}   {goal}")
sys.exit(1 if missed else 0)
PYTHON
