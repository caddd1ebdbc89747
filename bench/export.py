"""Measures `tacho export` for bench/export.sh: arguments tacho, folder with t.tacho, events, runs.

Two places are written to: memory (/dev/shm), which shows what formatting costs and is what the goals are held against, and
the work folder's disk, beside a floor that writes and syncs as many bytes there. The two kinds of runs alternate.
"""
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

TACHO, WORK, EVENTS, RUNS = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
GOALS = {"pftrace": 5e6, "json": 3e6, "csv": 3e6}


def export(form, folder):
    """Wall seconds, user seconds, all CPU seconds, peak anonymous KiB (polled), bytes of one export."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    process = subprocess.Popen([TACHO, "export", str(WORK / "t.tacho"), "-f", form, "-d", str(folder)], stdout=subprocess.DEVNULL)
    peak = [0]

    def watch():
        while process.poll() is None:
            try:
                for line in open(f"/proc/{process.pid}/status"):
                    if line.startswith("RssAnon:"):
                        peak[0] = max(peak[0], int(line.split()[1]))
            except OSError:
                pass
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    if process.wait() != 0:
        sys.exit(f"tacho export -f {form} failed")
    wall = time.monotonic() - begin
    watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    size = sum(p.stat().st_size for p in folder.iterdir())
    shutil.rmtree(folder)
    return wall, user, user + system, peak[0], size


def floor(size):
    """Wall seconds of writing and syncing `size` bytes."""
    block = b"x" * (256 * 1024)
    begin = time.monotonic()
    with open(WORK / "floor", "wb", buffering=0) as file:
        for _ in range(size // len(block) + 1):
            file.write(block)
        os.fsync(file.fileno())
    wall = time.monotonic() - begin
    os.unlink(WORK / "floor")
    return wall


def median(rows, at):
    return statistics.median(row[at] for row in rows)


def main():
    failed = False
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, {EVENTS} events, median of {RUNS}")
    print(f"{'':8} {'B/event':>8} {'to memory':>28} {'to disk':>30} {'floor':>8} {'anon MiB':>9}")
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="tacho-export-") as memory_folder:
        for form, goal in GOALS.items():
            memory, disk, floors = [], [], []
            for _ in range(RUNS):
                memory.append(export(form, pathlib.Path(memory_folder) / "out"))
                disk.append(export(form, WORK / "out"))
                floors.append(floor(disk[-1][4]))
            rate = EVENTS / median(memory, 0)
            peak = max(row[3] for row in memory + disk) / 1024
            met = rate >= goal and peak <= 256
            failed |= not met
            print(f"{form:8} {memory[0][4] / EVENTS:8.1f} {rate / 1e6:6.2f} M/s, user {median(memory, 1):6.2f} s "
                  f"{EVENTS / median(disk, 0) / 1e6:8.2f} M/s, CPU {median(disk, 2):6.2f} s {statistics.median(floors):6.2f} s {peak:9.1f}"
                  f"   goal {goal / 1e6:.0f} M/s: {'met' if met else 'NOT met'}")
    sys.exit(failed)


main()
