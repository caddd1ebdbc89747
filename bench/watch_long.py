#!/usr/bin/env python3
"""A long run of `tacho watch`: memory of the watched program and of tacho over time, and whether each launch was counted.

    bench/watch_long.py BUILD [LAUNCHES, default 1e9] [SECONDS, default 7200] [SECONDS BETWEEN READINGS, default 60]

The program (tests/e2e/fake_cuda/long.c) works on the stand-in for CUDA's driver, which counts its calls. tacho writes a JSON
object and answers a scrape at each reading, and keeps sums in a .tacho. Ends with 1 when a count is not the driver's, when tacho or
what it adds to the program takes more than 64 MB, or when one grows by more than 2 MB: the program from the first quarter of the run
on, tacho from the time on when it has an hour of seconds."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

MOST = 64.0  # MB
GROWTH = 2.0  # MB
HOUR = 3660  # s, and a minute until the next file


def memory(pid):
    """MB: all resident, of which shared memory."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    sizes = dict(re.findall(r"^(VmRSS|RssAnon|RssShmem):\s+(\d+) kB", text, re.M))
    return {name: int(sizes[name]) * 1024e-6 for name in ("VmRSS", "RssAnon", "RssShmem")}


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def child_of(pid):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for child in children:
            if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == "fake_long":
                return int(child)
        time.sleep(0.01)
    raise SystemExit("the program did not start")


def run(build, launches, seconds, each, folder):
    driver = build / "tests" / "fake_cuda"
    environment = {"LD_LIBRARY_PATH": str(driver / "driver"), "TACHO_NVML": str(build / "tests" / "libstandin_nvml.so"), "TACHO_AMD_SMI": "",
                   "TACHO_ROCM_SMI": "", "PATH": "/usr/bin:/bin", "TZ": "UTC"}
    program = [str(driver / "fake_long"), str(launches), str(seconds)]
    plain = subprocess.Popen([program[0], "1000", "1"], env=environment, stdout=subprocess.DEVNULL)
    time.sleep(0.6)
    without = memory(plain.pid)
    plain.wait()
    print(f"{launches} launches in {seconds} s; the program takes {without['VmRSS']:.1f} MB without tacho", flush=True)
    with open(folder / "lines.jsonl", "w") as lines, open(folder / "counts.json", "w") as counts:
        tacho = subprocess.Popen([build / "bin" / "tacho", "watch", "-o", folder / "sums.tacho", "--output-format", "json", "--interval", str(each),
                                  "--prometheus", "127.0.0.1:0", "--", *program], env=environment, stdout=counts, stderr=lines)
        child, readings, turns, start = child_of(tacho.pid), [], 0, time.monotonic()
        print("     s  program: resident  own  shared  tacho: resident  own  shared  sums file  CPU s: program  tacho   (MB)", flush=True)
        while True:
            turns += 1
            wait = start + each * turns - time.monotonic()
            try:
                tacho.wait(max(wait, 0))
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() - start > 2 * seconds + 60:
                    tacho.kill()
                    raise SystemExit("tacho does not end") from None
            try:
                page = re.search(r"http://\S+/metrics", (folder / "lines.jsonl").read_text())[0]
                with urllib.request.urlopen(page, timeout=20) as answer:
                    answer.read()
                reading = (time.monotonic() - start, memory(child), memory(tacho.pid), cpu_seconds(child), cpu_seconds(tacho.pid))
            except (OSError, KeyError):
                continue  # it has just ended
            readings.append(reading)
            sums = folder / "sums.tacho"
            print("{:6.0f}  {:17.2f}  {:3.1f}  {:6.2f}  {:15.2f}  {:3.1f}  {:6.2f}  {:9.3f}  {:14.1f}  {:5.1f}".format(
                reading[0], *reading[1].values(), *reading[2].values(), sums.stat().st_size * 1e-6 if sums.exists() else 0, *reading[3:]), flush=True)
    if tacho.returncode != 0:
        raise SystemExit(f"tacho ended with {tacho.returncode}")
    return without, readings


def judge(folder, without, readings):
    """What is wrong."""
    wrong = []
    driver = json.loads((folder / "counts.json").read_text())
    objects = [json.loads(line) for line in (folder / "lines.jsonl").read_text().splitlines() if line.startswith("{")]
    last, found = objects[-1], {}
    for row in last["rows"]:
        kernels = found.setdefault(row["kind"], {})
        kernels[row["name"]] = kernels.get(row["name"], 0) + row["count"]
    if not last["final"] or found["kernel"] != {name: count for name, count in driver["kernels"].items() if count}:
        wrong.append("launches by kernel are not the driver's")
    for kind, what in (("graph", "graph_launches"), ("copy", "copies"), ("wait", "waits"), ("allocation", "allocations")):
        print(f"{kind}: {sum(found[kind].values())} of {driver[what]}")
        if sum(found[kind].values()) != driver[what]:
            wrong.append(f"{what} are not the driver's")
    print(f"launches: {sum(found['kernel'].values())} of {driver['launches']}, {len(found['kernel'])} kernels, {len(last['rows'])} rows; "
          f"uncounted {last['uncounted']}, failed {last['failed']}, lost durations {last['lost_durations']}")
    sums = subprocess.run([sys.argv[1] + "/bin/tacho", "query", folder / "sums.tacho", "--dialect", "tacho", "--output-format", "csv",
                           "SELECT sum(count), count(DISTINCT start) FROM watch_sums WHERE kind = 'kernel'"], capture_output=True, text=True, check=True).stdout
    kept, periods = (int(word) for word in sums.splitlines()[-1].split(","))
    print(f"sums file: {(folder / 'sums.tacho').stat().st_size * 1e-6:.2f} MB, {kept} launches in {periods} periods; lines: {len(objects)}, "
          f"{(folder / 'lines.jsonl').stat().st_size * 1e-6:.2f} MB")
    if kept != driver["launches"]:
        wrong.append("the file of sums has another number of launches")
    for name, which, less, filled in (("the program", 1, without["VmRSS"], readings[-1][0] / 4), ("tacho", 2, 0.0, HOUR)):
        resident = [reading[which]["VmRSS"] - less for reading in readings]
        growth = max(resident) - max(memory for memory, reading in zip(resident, readings) if reading[0] <= max(filled, readings[0][0]))
        print(f"{name}: {'' if which == 2 else 'beyond its own '}at most {max(resident):.1f} MB, {growth:+.2f} MB after {filled:.0f} s")
        if max(resident) > MOST or growth > GROWTH:
            wrong.append(f"{name} takes too much memory")
    return wrong


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    launches, seconds, each = (int(float(word)) for word in (sys.argv[2:] + ["1e9", "7200", "60"][len(sys.argv) - 2:]))
    with tempfile.TemporaryDirectory() as folder:
        without, readings = run(build, launches, seconds, each, pathlib.Path(folder))
        wrong = judge(pathlib.Path(folder), without, readings)
    print("; ".join(wrong) if wrong else "right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
