"""findings.sh's measurements and verdicts (see there). Exit code 0 when every verdict is met."""
import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

# rule: kernel with the fault, its mend ("" = there is none: the rule names a limit)
BENCH = {
    "memory-bound": ("stream_fault", ""),
    "uncoalesced-loads": ("loads_fault", "loads_mended"),
    "lds-bank-conflicts": ("conflicts_fault", "conflicts_mended"),
    "divergence": ("divergence_fault", "divergence_mended"),
    "small-grid": ("grid_fault", "grid_mended"),
    "register-spills": ("spills_fault", "spills_mended"),
    "atomics": ("atomics_fault", "atomics_mended"),
    "host-memory": ("host_fault", "host_mended"),
}
BLOCKS = ["2", "3", "6", "7", "10", "12", "16", "17", "19"]
STORES, ALL = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", 524288  # of a saxpy of 4 Mi floats


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    tacho, program = options.build / "bin" / "tacho", options.build / "tests" / "device" / "cuda_findings"
    tacho, program = tacho.resolve(), program.resolve()
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="findings-"))

    def profile(name, *arguments, command):
        done = subprocess.run([tacho, "profile", "-q", "--no-roof", "-n", name, *arguments, "--", program, *command], cwd=scratch,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"findings.py: tacho profile {name} ended with {done.returncode}: {done.stderr[-1000:]}")
        for line in done.stderr.splitlines():
            print(f"{name}: {line}")
        return next((scratch / "workloads" / name).glob("*/sysinfo.csv")).parent

    def analysis(folder):
        text = subprocess.run([tacho, "analyze", "-p", folder, "--per-kernel", "--output-format", "json"], capture_output=True,
                              text=True, check=True).stdout
        (options.out / f"{folder.parent.name}.json").write_text(text)
        return json.loads(text)

    failures = 0

    def verdict(met, line):
        nonlocal failures
        failures += 0 if met else 1
        print(f"{'met ' if met else 'MISSED'} {line}", flush=True)

    # At most ten kernels a run: no more are judged.
    names = sorted({kernel for pair in BENCH.values() for kernel in pair if kernel})
    found, times, problems = {}, {}, []
    for at in range(0, len(names), 8):
        document = analysis(profile(f"part{at}", "-b", *BLOCKS, command=names[at:at + 8]))
        problems += [problem["text"] for problem in document["implausible"]]
        for kernel in document["kernels"]:
            name = kernel["name"].split("(")[0]
            found.setdefault(name, {})
            times[name] = next(row["cells"][1] for table in kernel["tables"] for row in table["rows"]
                               if row.get("slug") == "sol-duration")
        for finding in document["findings"]:
            found[finding["kernel"].split("(")[0]][finding["slug"]] = finding
    print("| rule | with its fault | mended | elsewhere | promised | saved |\n|---|---|---|---|---|---|")
    for rule, (fault, mended) in sorted(BENCH.items()):
        finding = found.get(fault, {}).get(rule)
        silent = not mended or rule not in found.get(mended, {})
        elsewhere = sum(1 for kernel, rules in found.items() if rule in rules and kernel not in (fault, "host_fault"))
        row = [rule, "no" if finding is None else "possible" if finding["possible"] else "found", "silent" if silent else "FOUND",
               f"{elsewhere} of {len(found) - 1}"]
        met = finding is not None and silent
        if finding is not None and mended:
            saved = 100 * (1 - times[mended] / times[fault])
            low, high = finding["saves"]["low"], finding["saves"]["high"]
            row += [f"{low:.0f} to {high:.0f} %", f"{saved:.0f} %"]
            met = met and low - 5 <= saved <= high + 5
        else:
            row += ["", ""]
        print("| " + " | ".join(row) + " |")
        verdict(met, f"{rule}: other findings of the faulty kernel: {sorted(set(found.get(fault, {})) - {rule})}")
    for text in sorted(set(problems)):
        print("cannot be:", text)

    # Counts that must be the same for all 51 launches.
    for name, extra in (("plain", []), ("exact", ["--exact"])):
        folder = profile(f"saxpy_{name}", "-b", "2", "10", "16", "17", *extra, command=["saxpy"])
        values = []
        for path in folder.glob("pmc_perf_*.csv"):
            with open(path, newline="", encoding="utf-8") as file:
                values += [float(row[STORES]) for row in csv.DictReader(file) if row.get(STORES)]
        marked = [line[4:] for path in folder.glob("perfmon/*.yaml") if "extrapolated:" in path.read_text()
                  for line in path.read_text().split("extrapolated:\n")[1].splitlines()]
        spread = f"{min(values):.0f} to {max(values):.0f}, median {statistics.median(values):.0f}"
        print(f"{name}: {STORES} of {len(values)} launches {spread}; marked as extrapolated: {marked}")
        if name == "plain":
            exact = set(values) == {ALL}
            verdict(exact or STORES in marked, "plain: the stores are whole, or marked as extrapolated")
        else:
            verdict(set(values) == {ALL} and not marked, f"exact: the stores of all launches are {ALL}, and nothing is marked")
        document = analysis(folder)
        print(f"{name}: cannot be: {[problem['check'] for problem in document['implausible']]}")
    print("all met" if failures == 0 else f"{failures} missed")
    return 0 if failures == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
