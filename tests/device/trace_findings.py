#!/usr/bin/env python3
"""Judges the findings about traces by time, on this machine's GPU: each fault is found, its mend is not, and the mend saved
what the finding promised. Called by trace_findings.sh; results go to OUT/trace_findings.txt, recordings beside it."""
import argparse
import json
import pathlib
import subprocess
import sys

# case: (rule, may the mend's saving be held against the range: the mend must do the same work otherwise)
CASES = {
    "launches": ("launch-bound", True),
    "waits": ("host-waits", True),
    "computes": ("host-computes", True),
    "copies": ("synchronous-copies", True),
    "small": ("small-copies", True),
    "streams": ("serialised-streams", True),
    "grid": ("small-grids", True),
    "churn": ("allocation-churn", True),
}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--build", required=True, type=pathlib.Path)
    options.add_argument("--out", required=True, type=pathlib.Path)
    options = options.parse_args()
    tacho, program = options.build / "bin" / "tacho", options.build / "tests" / "device" / "cuda_trace_findings"
    lines, wrong = [], 0
    for case, (rule, measured) in CASES.items():
        seconds, found = {}, {}
        for version in ("fault", "mended"):
            words = [program, case] + (["mended"] if version == "mended" else [])
            seconds[version] = min(float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
                                   for _ in range(3))
            file = options.out / f"{case}-{version}.tacho"
            subprocess.run([tacho, "trace", "-q", "--overwrite", "-o", file, "--", *words], check=True,
                           capture_output=True)
            text = subprocess.run([tacho, "report", "findings", file, "--output-format", "json"], check=True,
                                  capture_output=True, text=True).stdout
            found[version] = {each["rule"]: each for each in json.loads(text)["findings"]}
        finding = found["fault"].get(rule)
        state = finding["state"] if finding else "missed"
        after = found["mended"][rule]["state"] if rule in found["mended"] else "silent"
        saved = (seconds["fault"] - seconds["mended"]) * 1e9
        line = f"{case:10} {rule:20} {state:9} mended: {after:9} saved {saved / 1e6:8.1f} ms of {seconds['fault'] * 1e3:8.1f}"
        good = finding is not None and after == "silent"
        if finding and finding["saves"]:
            low, high = finding["saves"]
            line += f"  promised {low / 1e6:.1f} to {high / 1e6:.1f}"
            # A tenth for the next run, as the rules say, and the recording's own cost.
            if measured and not 0.85 * low <= saved <= 1.15 * high:
                good = False
                line += "  OUTSIDE"
        others = [each for each in found["fault"] if each != rule]
        line += f"  also: {', '.join(others) or 'none'}; mended: {', '.join(found['mended']) or 'none'}"
        lines.append(line)
        wrong += not good
        print(line, flush=True)
    lines.append(f"{len(CASES) - wrong} of {len(CASES)} as they should be")
    print(lines[-1])
    (options.out / "trace_findings.txt").write_text("\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
