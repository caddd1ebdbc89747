"""The long run, by hand: mutated inputs of every format under AddressSanitizer and UBSan, until there were as many as asked for.

    cmake --preset asan && ninja -C build-asan fuzzers && python3 tests/attack/long.py build-asan

Every target of tests/fuzz makes inputs of its own (checksums repaired), in slices that each begin with another seed. A fault, or an
input that takes longer than --timeout, ends its slice: the input is kept in --keep, and the command that repeats it is printed.
Exit code 1 if there was one. Ctrl-C says how far it came."""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import threading
import time

# The subject of each, and its share of the inputs.
TARGETS = {
    "trace_file_fuzz": (".tacho: the reader", 15),
    "answers_fuzz": (".tacho: every SQL dialect and every exporter", 25),
    "analysis_fuzz": (".tacho: statistics, operators, stacks, findings, ranks, the page", 20),
    "sqlite_rows_fuzz": (".rpd and rocpd databases", 10),
    "kineto_json_fuzz": ("Chrome and Kineto JSON", 8),
    "perfetto_fuzz": ("Perfetto traces, lengths repaired", 8),
    "rocprofv3_json_fuzz": ("rocprofv3's JSON", 8),
    "rocprofv3_csv_fuzz": ("rocprofv3's CSV", 6),
    "rocprof_json_fuzz": ("rocprof's JSON", 4),
    "csv_fuzz": ("profile folders", 4),
    "pool_fuzz": ("pools, by recovery", 4),
}
SLICE = 2000


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=pathlib.Path, help="a build folder of the preset asan")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="mutated inputs in all (default: a million)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="slices at the same time")
    parser.add_argument("--seed", type=int, default=1, help="of the first slice; others follow it")
    parser.add_argument("--timeout", type=int, default=30, help="seconds that one input may take")
    parser.add_argument("--target", action="append", help="only these; may be repeated")
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("faults"), help="folder for inputs that failed")
    return parser.parse_args()


class Run:
    def __init__(self, arguments):
        self.arguments = arguments
        self.lock = threading.Lock()
        self.done = {name: 0 for name in TARGETS}
        self.seconds = {name: 0.0 for name in TARGETS}
        self.faults = []
        self.stopped = False

    def slice(self, name, seed, inputs):
        if self.stopped:
            return
        self.arguments.keep.mkdir(parents=True, exist_ok=True)
        kept = self.arguments.keep / f"{name}-{seed}.input"
        command = [self.arguments.build.resolve() / "fuzz" / name, f"-runs={inputs}", f"-seed={seed}", f"-timeout={self.arguments.timeout}",
                   f"-input={kept}"]
        begin = time.monotonic()
        log = kept.with_suffix(".log")
        with open(log, "wb") as output:
            result = subprocess.run([str(word) for word in command], stdout=output, stderr=subprocess.STDOUT, check=False)
        with self.lock:
            self.seconds[name] += time.monotonic() - begin
            if result.returncode == 0 and log.read_text(errors="replace").endswith(f"{inputs} inputs\n"):
                self.done[name] += inputs
                kept.unlink()
                log.unlink()
                return
            if self.stopped:
                return
            data = kept.read_bytes() if kept.exists() else b""
            size = int.from_bytes(data[:8], "little")
            kept.write_bytes(data[8:8 + size])
            self.faults.append(f"{name}: exit code {result.returncode}; {log} has the report, {command[0]} -runs=0 {kept} repeats it")
            print(self.faults[-1], flush=True)


def main():
    arguments = parse()
    chosen = {name: share for name, (_, share) in TARGETS.items() if not arguments.target or name in arguments.target}
    for name in chosen:
        if not (arguments.build / "fuzz" / name).exists():
            sys.exit(f"long.py: {arguments.build}/fuzz/{name} is missing. Build it: ninja -C {arguments.build} fuzzers")
    run = Run(arguments)
    slices = []
    for name, share in chosen.items():
        inputs = -(-arguments.inputs * share // sum(chosen.values()))
        slices += [(at / inputs, name, arguments.seed + at // SLICE, min(SLICE, inputs - at)) for at in range(0, inputs, SLICE)]
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        try:
            for future in [pool.submit(run.slice, *rest) for _, *rest in sorted(slices)]:
                future.result()
        except KeyboardInterrupt:
            run.stopped = True
            pool.shutdown(wait=False, cancel_futures=True)
    for name in chosen:
        print(f"{name:22} {run.done[name]:9,} inputs {run.seconds[name]:8.0f} s  {TARGETS[name][0]}")
    print(f"{sum(run.done.values()):,} inputs in {time.monotonic() - begin:.0f} s, {len(run.faults)} faults")
    if not run.faults and arguments.keep.is_dir() and not os.listdir(arguments.keep):
        arguments.keep.rmdir()
    return 1 if run.faults or sum(run.done.values()) < arguments.inputs else 0


if __name__ == "__main__":
    sys.exit(main())
