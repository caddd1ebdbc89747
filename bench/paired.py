#!/usr/bin/env python3
"""Paired timings: runs two commands in ABBA order and prints the ratio A/B as median with a 95 % bootstrap interval.

usage: paired.py [--pairs N] [--pin CPUS] [--goal RATIO] [--value REGEX] [--name TEXT] [--difference ms] -- A... --vs B...

The figure of a run is its wall time, or with --value the first group of REGEX in its standard output (for programs that
time themselves). With --goal the verdict is "met" when the interval's upper end is at or below it, "missed" when the
lower end is above it, else "not resolved". With "--difference ms" the pairs are subtracted, not divided: A - B in
milliseconds of wall time, for costs that do not grow with the run; --goal then is in milliseconds too.
"""
import random
import re
import statistics
import subprocess
import sys
import time


def parse(arguments):
    options = {"pairs": 15, "pin": None, "goal": None, "value": None, "name": "A/B", "difference": None}
    i = 0
    while i < len(arguments) and arguments[i] != "--":
        name = arguments[i].lstrip("-")
        if name not in options or i + 1 >= len(arguments):
            sys.exit(f"paired.py: unknown option {arguments[i]}\n{__doc__}")
        options[name] = arguments[i + 1]
        i += 2
    rest = arguments[i + 1:]
    if "--vs" not in rest:
        sys.exit(__doc__)
    at = rest.index("--vs")
    if options["difference"] not in (None, "ms"):
        sys.exit("paired.py: --difference is in ms")
    return options, rest[:at], rest[at + 1:]


def run(command, options):
    if options["pin"]:
        command = ["taskset", "-c", options["pin"], *command]
    begin = time.monotonic()
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wall = time.monotonic() - begin
    if result.returncode != 0:
        sys.exit(f"paired.py: {' '.join(command)} exited with {result.returncode}: {result.stderr[-400:]}")
    if options["value"]:
        match = re.search(options["value"], result.stdout)
        if not match:
            sys.exit(f"paired.py: no {options['value']!r} in the output of {' '.join(command)}")
        return float(match.group(1))
    return wall


def interval(ratios, rounds=10000):
    generator = random.Random(1)
    medians = sorted(statistics.median(generator.choices(ratios, k=len(ratios))) for _ in range(rounds))
    return medians[int(rounds * 0.025)], medians[int(rounds * 0.975)]


def main():
    options, a, b = parse(sys.argv[1:])
    run(a, options), run(b, options)  # warm-up, not counted
    pairs = []
    for i in range(int(options["pairs"])):
        if i % 2 == 0:
            x = run(a, options)
            y = run(b, options)
        else:
            y = run(b, options)
            x = run(a, options)
        pairs.append((x, y))
    ratios = [(x - y) * 1000 if options["difference"] else x / y for x, y in pairs]
    low, high = interval(ratios)
    verdict = ""
    if options["goal"]:
        goal = float(options["goal"])
        verdict = f"  goal {goal}: " + ("met" if high <= goal else "missed" if low > goal else "not resolved")
    unit = " ms" if options["difference"] else ""
    print(f"{options['name']}: {statistics.median(ratios):.4f} [{low:.4f}, {high:.4f}]{unit} over {len(pairs)} pairs; "
          f"A {statistics.median(x for x, _ in pairs):.6g}, B {statistics.median(y for _, y in pairs):.6g}{verdict}")


if __name__ == "__main__":
    main()
