#!/usr/bin/env python3
"""Runs `tacho analyze --compat 3.3` on every recorded and synthetic workload and has compare_golden.py judge each result:
golden/ holds rocprof-compute 3.3.0's values, golden_sum/ those of its formulas with ratios of totals (--ratio sum).

A golden_sum file lists exceptions, cells about which reasonable implementations differ (a dispatch x / 0, a dispatch that
lacks one of both counters), with a second value. That value is as good as the first; anything else is wrong.

usage: run_golden.py TACHO [GOLDEN-NAME-PART]

The data is expected in $TACHO_DATA, or in ../shared/data beside the source tree. Without it the test is skipped
(exit 77), unless TACHO_REQUIRE_DATA=1.
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77


def is_number(cell):
    return isinstance(cell, (int, float)) and not isinstance(cell, bool) and math.isfinite(cell)


def same(a, b):
    """Equal numbers, or both none."""
    if is_number(a) and is_number(b):
        return abs(a - b) <= 1e-9 * max(abs(a), abs(b))
    return a in ("", None) and b in ("", None)


def cells_of(row):
    return row["cells"] if isinstance(row, dict) else row


def take_alternatives(golden, actual):
    """Puts the alternative of an exception into the golden cell where the actual cell is that; returns how often."""
    tables = {table["id"]: table for table in golden["tables"]}
    others = {table["id"]: table for table in actual["tables"]}
    taken = 0
    for entry in (entry for entries in golden.get("exceptions", {}).values() for entry in entries if len(entry) == 5):
        table_id, row_id, column, here, alternative = entry
        table, other = tables[table_id], others.get(table_id, {"columns": [], "rows": []})
        row, at = int(row_id.split(".")[2]), table["columns"].index(column)
        cells = cells_of(table["rows"][row])
        if not same(cells[at], here):
            raise ValueError(f"exception {entry} is not what the table holds: {cells[at]}")
        found = cells_of(other["rows"][row]) if row < len(other["rows"]) and column in other["columns"] else None
        if found is not None and found[0] == cells[0] and same(found[other["columns"].index(column)], alternative):
            cells[at] = alternative
            taken += 1
    return taken


def main():
    tacho, part = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    source = pathlib.Path(__file__).resolve().parents[2]
    data = pathlib.Path(os.environ.get("TACHO_DATA") or source.parent / "shared" / "data")
    goldens = sorted(g for folder in ("golden", "golden_sum") for g in (data / folder).glob("*__*.json") if part in g.name)
    for folder in ("golden", "golden_sum"):
        if not any(golden.parent.name == folder for golden in goldens) and not part:
            print(f"no golden files in {data / folder}: set TACHO_DATA")
            return 1 if os.environ.get("TACHO_REQUIRE_DATA") == "1" else SKIPPED
    failed, cells, alternatives = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        actual, wanted = pathlib.Path(folder) / "actual.json", pathlib.Path(folder) / "golden.json"
        for golden in goldens:
            workload, arch = golden.stem.split("__")[:2]
            document = json.loads(golden.read_text(encoding="utf-8"))
            run = subprocess.run(
                [tacho, "analyze", "--compat", "3.3", "-p", str(data / "workloads" / workload / arch), *document["args"],
                 "--output-format", "json"], capture_output=True, check=False)
            actual.write_bytes(run.stdout)
            if run.returncode == 0:
                alternatives += take_alternatives(document, json.loads(run.stdout))
            wanted.write_text(json.dumps(document), encoding="utf-8")
            judge = subprocess.run(
                [sys.executable, str(data / "compare_golden.py"), str(wanted), str(actual), "--rel", "1e-9"],
                capture_output=True, text=True, check=False)
            if run.returncode != 0 or judge.returncode != 0:
                failed.append(golden.stem)
                print(f"--- {golden.stem}: tacho exited {run.returncode}\n{run.stderr.decode()}{judge.stdout}{judge.stderr}")
            else:
                cells += int(judge.stdout.split("numeric: ")[1].split()[0])
    print(f"{len(goldens) - len(failed)} of {len(goldens)} goldens equal, {cells} numeric cells, "
          f"{alternatives} exceptions by their second value")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
