"""Measures `tacho export` for bench/export.sh: arguments tacho, folder with t.tacho, events, runs."""
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import threading
import time

TACHO, WORK, EVENTS, RUNS = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
GOALS = {"pftrace": 5e6, "json": 3e6, "csv": 3e6}


def export(form, target):
    """CPU seconds, wall seconds, peak anonymous KiB (polled) of one export."""
    shutil.rmtree(WORK / "out", ignore_errors=True)
    (WORK / "out").mkdir()
    words = [TACHO, "export", str(WORK / "t.tacho"), "-f", form]
    words += ["-d", str(WORK / "out")] if target == "disk" else ["-o", "/dev/null"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    peak = [0]

    def watch():
        while process.poll() is None:
            try:
                for line in open(f"/proc/{process.pid}/status"):
                    if line.startswith("RssAnon:"):
                        peak[0] = max(peak[0], int(line.split()[1]))
            except OSError:
                pass
            time.sleep(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    if process.wait() != 0:
        sys.exit(f"{' '.join(words)} failed")
    wall = time.monotonic() - begin
    watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime, wall, peak[0])


def floor(size):
    """CPU and wall seconds of writing `size` bytes and syncing them."""
    block = b"x" * (256 * 1024)
    before, begin = os.times(), time.monotonic()
    with open(WORK / "floor", "wb", buffering=0) as file:
        for _ in range(size // len(block) + 1):
            file.write(block)
        os.fsync(file.fileno())
    after = os.times()
    wall = time.monotonic() - begin
    os.unlink(WORK / "floor")
    return after.user - before.user + after.system - before.system, wall


def main():
    worst = 0
    print(f"{'format':8} {'bytes/event':>11} {'M events/s':>11} {'(CPU)':>8} {'formatting':>11} {'floor s':>8} {'wall s':>8} {'anon MiB':>9}")
    for form, goal in GOALS.items():
        rows, floors = [], []
        size = 0
        for _ in range(RUNS):
            rows.append(export(form, "disk"))
            size = sum(p.stat().st_size for p in (WORK / "out").iterdir())
            floors.append(floor(size))
        shutil.rmtree(WORK / "out", ignore_errors=True)
        user = statistics.median(r[0] for r in rows)
        cpu = statistics.median(r[0] + r[1] for r in rows)
        wall = statistics.median(r[2] for r in rows)
        peak = max(r[3] for r in rows) / 1024
        # Formatting: what the export costs beyond writing its bytes, per event, as a rate.
        beyond = statistics.median(r[0] + r[1] - f[0] for r, f in zip(rows, floors))
        rate = EVENTS / max(beyond, 1e-9)
        met = rate >= goal and peak <= 256
        worst |= not met
        print(f"{form:8} {size / EVENTS:11.1f} {EVENTS / wall / 1e6:11.2f} {EVENTS / cpu / 1e6:8.2f} {rate / 1e6:11.2f} "
              f"{statistics.median(f[1] for f in floors):8.2f} {wall:8.2f} {peak:9.1f}   user {user:.2f} s, goal {goal / 1e6:.0f} M/s: {'met' if met else 'NOT met'}")
    sys.exit(worst)


main()
