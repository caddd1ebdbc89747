#!/usr/bin/env python3
"""Makes the pages of docs/demo, which show tacho before anything is built, from the recorded data.

usage: scripts/demo.py [FOLDER]      default: docs/demo; TACHO_BUILD (build) and TACHO_DATA (../shared/data) as for the tests

Run it after a change of what the pages hold: web/dist, or what `tacho view` computes. The test e2e.demo_test makes them again and
compares.
"""
import csv
import io
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
TACHO = pathlib.Path(os.environ.get("TACHO_BUILD", SOURCE / "build")).resolve() / "bin" / "tacho"
DATA = pathlib.Path(os.environ.get("TACHO_DATA", SOURCE.parent / "shared" / "data")).resolve()
# Steps 4 to 7: rank 3 is late in the first and the last of them, rank 2 in the two between.
FIRST_STEP, LAST_STEP = 4, 7
ENDS = """SELECT m.start + m.duration AS moment FROM marker m JOIN track t ON t.id = m.track
          WHERE m.name LIKE 'Optimizer.step%' AND t.kind = 'thread' ORDER BY m.start"""


def tacho(folder, *words):
    """The standard output of a command that must succeed."""
    done = subprocess.run([TACHO, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"demo.py: tacho {' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


def four_ranks(folder, page):
    """Four steps of a job of four ranks. Each rank's clock and start differ, so each trace is cut where its own steps end."""
    (folder / "four-ranks").mkdir()
    for rank in range(4):
        trace = DATA / "ranks4" / f"kineto_rank{rank}.json.gz"
        ends = [row["moment"] for row in csv.DictReader(io.StringIO(
            tacho(folder, "query", trace, "--dialect", "tacho", "--output-format", "csv", ENDS)))]
        tacho(folder, "trim", trace, f"four-ranks/rank{rank}.tacho", "--start", ends[FIRST_STEP - 1], "--end", ends[LAST_STEP])
    tacho(folder, "view", "four-ranks", "-o", page)


def counters(folder, page):
    """All counters of a copy kernel on an MI300X, as rocprof-compute left them."""
    os.symlink(DATA / "workloads" / "vcopy" / "MI300X_A1_rocpd", folder / "MI300X")
    tacho(folder, "view", "MI300X", "-o", page)


def main():
    target = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else SOURCE / "docs" / "demo").resolve()
    if not DATA.is_dir():
        sys.exit(f"demo.py: no recorded data at {DATA} (set TACHO_DATA)")
    target.mkdir(parents=True, exist_ok=True)
    for name, make in (("four-ranks.html", four_ranks), ("mi300x-counters.html", counters)):
        with tempfile.TemporaryDirectory(prefix="tacho-demo-") as folder:
            made = pathlib.Path(folder) / "page.html"
            make(pathlib.Path(folder), made)
            (target / name).write_bytes(made.read_bytes())
        print(f"{target / name}: {(target / name).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
