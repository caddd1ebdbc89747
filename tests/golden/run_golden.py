#!/usr/bin/env python3
"""Runs `tacho analyze --compat 3.3` on every recorded and synthetic workload and has compare_golden.py judge each result.

usage: run_golden.py TACHO [GOLDEN-NAME-PART]

The data is expected in $TACHO_DATA, or in ../shared/data beside the source tree. Without it the test is skipped
(exit 77), unless TACHO_REQUIRE_DATA=1.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77


def main():
    tacho, part = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    source = pathlib.Path(__file__).resolve().parents[2]
    data = pathlib.Path(os.environ.get("TACHO_DATA") or source.parent / "shared" / "data")
    goldens = sorted(g for g in (data / "golden").glob("*.json") if part in g.name)
    if not goldens:
        print(f"no golden files in {data / 'golden'}: set TACHO_DATA")
        return 1 if os.environ.get("TACHO_REQUIRE_DATA") == "1" else SKIPPED
    failed, cells = [], 0
    with tempfile.TemporaryDirectory() as folder:
        actual = pathlib.Path(folder) / "actual.json"
        for golden in goldens:
            workload, arch = golden.stem.split("__")[:2]
            args = json.loads(golden.read_text(encoding="utf-8"))["args"]
            run = subprocess.run(
                [tacho, "analyze", "--compat", "3.3", "-p", str(data / "workloads" / workload / arch), *args,
                 "--output-format", "json"], capture_output=True, check=False)
            actual.write_bytes(run.stdout)
            judge = subprocess.run(
                [sys.executable, str(data / "compare_golden.py"), str(golden), str(actual), "--rel", "1e-9"],
                capture_output=True, text=True, check=False)
            if run.returncode != 0 or judge.returncode != 0:
                failed.append(golden.stem)
                print(f"--- {golden.stem}: tacho exited {run.returncode}\n{run.stderr.decode()}{judge.stdout}{judge.stderr}")
            else:
                cells += int(judge.stdout.split("numeric: ")[1].split()[0])
    print(f"{len(goldens) - len(failed)} of {len(goldens)} goldens equal, {cells} numeric cells")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
