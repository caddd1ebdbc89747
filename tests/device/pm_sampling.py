"""The checks of pm_sampling.sh. Prints lines ok/WRONG, and figures; ends with 1 if one is wrong.

values     a loop of copies of known size: bytes read and written by the samples against those of the loop, over the samples' own time;
           instructions of a loop of sums against what tacho profile counts of one launch.
intervals  0.1 ms to 1 s: samples are as many as they should be, without a loss, and the rates are the same at all intervals.
clock      work comes in bursts, whose copies CUPTI tells (--memory-copy-trace): those of the samples lie where they should.
speed      the loop's rate while its GPU is sampled against before and after, in turns, and that nothing is lost; what tacho's process needs
           of a processor, while it samples and to set up; and what of the GPU's memory.
holders    a second tacho, and tacho profile, while the GPU is sampled: what each says, and that the first goes on.
kernels    --kernel-trace beside --pmc: whether the program's kernels are told.
usage: pm_sampling.py --build BUILD --out FOLDER [SECTION...]
       pm_sampling.py --program copies|sums|bursts --log FILE [--steps N]    the programs that it runs; without --steps until SIGTERM
PM_SAMPLING_WITHOUT_GPU=1: programs that do no work, to try the script itself; values are then wrong.
"""
import argparse
import bisect
import collections
import csv
import io
import json
import math
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SIZE = 1 << 30  # bytes of a copy: far more than the L2 holds
BURST = 0.1     # seconds of work, and of rest
DRY = os.environ.get("PM_SAMPLING_WITHOUT_GPU") == "1"
SUM = "smsp__inst_executed.sum"


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


# The programs

def work_of(kind):
    """(what a step does, how it waits for the GPU)"""
    if DRY:
        return lambda: time.sleep(0.002), lambda: None
    import torch
    one = torch.empty(SIZE if kind != "sums" else 1 << 24, dtype=torch.uint8 if kind != "sums" else torch.float32, device="cuda").zero_()
    other = torch.empty_like(one)
    return (lambda: torch.add(one, one, out=other)) if kind == "sums" else (lambda: other.copy_(one)), torch.cuda.synchronize


def program(kind, log, steps):
    """Writes "time count" after each batch of steps; bursts write "begin end"."""
    step, wait = work_of(kind)
    for _ in range(3):
        step()
    wait()
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    print("ready", flush=True)
    count = 0
    with open(log, "w") as lines:
        while not ended and (steps == 0 or count < steps):
            if kind == "bursts":
                begin = now()
                while now() - begin < BURST * 1e9:
                    for _ in range(4):
                        step()
                    wait()
                print(begin, now(), file=lines, flush=True)
                time.sleep(BURST)
                continue
            for _ in range(min(16, steps - count) if steps else 16):
                step()
                count += 1
            wait()
            print(now(), count, file=lines, flush=True)


class Running:
    def __init__(self, kind, folder):
        self.log = pathlib.Path(folder) / f"{kind}.log"
        self.process = subprocess.Popen([sys.executable, pathlib.Path(__file__).resolve(), "--program", kind, "--log", self.log],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"the program of {kind} did not start: {self.process.communicate()[1][-900:]}")
        self.pid = self.process.pid
        time.sleep(0.5)

    def lines(self):
        return [tuple(map(int, line.split())) for line in self.log.read_text().splitlines()[:-1]]

    def steps_between(self, begin, end):
        """Of the program, with fractions: lines between its batches."""
        lines = self.lines()
        times = [line[0] for line in lines]

        def at(moment):
            i = bisect.bisect(times, moment)
            if not 0 < i < len(lines):
                raise RuntimeError("the samples lie outside of what the program wrote")
            (t0, n0), (t1, n1) = lines[i - 1], lines[i]
            return n0 + (n1 - n0) * (moment - t0) / (t1 - t0)
        return at(end) - at(begin)

    def rate(self, begin, end):
        return self.steps_between(begin, end) / (end - begin) * 1e9

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)


# The checks

class Check:
    def __init__(self, build, folder):
        self.tacho, self.folder, self.wrong, self.figures = build / "bin" / "tacho", folder, 0, {}

    def say(self, good, sentence):
        self.wrong += not good
        print(("ok    " if good else "WRONG ") + sentence, flush=True)
        return good

    def figure(self, sentence):
        print("      " + sentence, flush=True)

    def run(self, *command, code=0):
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=self.folder, timeout=120)
        if code is not None and result.returncode != code:
            self.say(False, f"{' '.join(map(str, command[1:]))}: exit code {result.returncode}: {result.stderr[-900:].strip()}")
        return result

    def rows(self, sql, file="a.tacho"):
        return list(csv.DictReader(io.StringIO(self.run(self.tacho, "query", file, sql, "--output-format", "csv").stdout)))

    def sample(self, running, metrics, interval="10ms", seconds=3.0, options=(), quiet=False):
        """{metric: [(begin of the interval, value)]} of the first GPU that was sampled; None where tacho was refused."""
        result = self.run(self.tacho, "attach", running.pid, "-q", "--overwrite", "-o", "a.tacho", "--duration", seconds, "--pmc", ",".join(metrics),
                          "--pmc-interval", interval, *options, code=None)
        if result.returncode != 0 or result.stderr:
            self.say(False, f"attach --pmc {','.join(metrics)} --pmc-interval {interval}: {result.stderr.strip()}")
            if result.returncode != 0:
                return None
        samples = collections.defaultdict(list)
        for row in self.rows("SELECT t.name AS name, r.start AS start, r.value AS value FROM tacho.reading r JOIN tacho.track t ON t.id = r.track ORDER BY r.start"):
            samples[row["name"]].append((int(row["start"]), float(row["value"])))
        self.properties = {row["key"]: row["value"] for row in self.rows("SELECT key, value FROM tacho.property")}
        self.error = max((int(row["clock_error"]) for row in self.rows("SELECT clock_error FROM tacho.device WHERE process = 0") if row["clock_error"]), default=0)
        lost = self.rows("SELECT * FROM tacho.loss")
        # Those of process 0 are of the samples; those of the program say what a recording of a program that already ran lacks.
        notes = [row["text"] for row in self.rows("SELECT text FROM tacho.note WHERE process = 0")]
        if not quiet or lost or notes:
            self.say(not lost and not notes, f"{interval}, {len(metrics)} metrics: {max(map(len, samples.values()), default=0)} samples, nothing lost" if not lost and not notes else
                     f"{interval}: losses {[dict(row) for row in lost]}, notes {notes}")
        return samples if samples else None

    def used(self, seconds):
        """What the last sampling process took."""
        sampling, setting_up = (float(self.properties.get(f"device_samples.{key}", "nan")) for key in ("cpu_seconds", "setup_cpu_seconds"))
        return f"tacho's sampling process: {sampling / seconds * 100:.2f} % of a processor while it sampled, {setting_up:.2f} s of it to set up and take down"

    @staticmethod
    def total(samples):
        """(sum of all but the last, from the begin of the first, to the begin of the last)"""
        return sum(value for _, value in samples[:-1]), samples[0][0], samples[-1][0]

    def close(self, what, got, wanted, within):
        self.figures[what] = (got, wanted)
        ratio = got / wanted if wanted else math.inf
        return self.say(abs(ratio - 1) <= within, f"{what}: {got:.6g}, expected {wanted:.6g}: {ratio:.4f} (within {within:g})")

    def values(self):
        running = Running("copies", self.folder)
        if samples := self.sample(running, ["dram__bytes_read.sum", "dram__bytes_write.sum", SUM, "gpu__time_duration.sum"], seconds=4):
            time.sleep(0.3)
            for metric in ("dram__bytes_read.sum", "dram__bytes_write.sum"):
                got, begin, end = self.total(samples[metric])
                self.close(f"copies, {metric}", got, running.steps_between(begin, end) * SIZE, 0.03)
            got, begin, end = self.total(samples["gpu__time_duration.sum"])
            self.close("time of the samples, by the GPU / by the trace", got, end - begin, 0.001)
            self.figure(f"clock: {self.properties.get('device_samples.gpu0.clock')}; error {self.error / 1e3:.1f} us")
        running.end()
        # What one launch counts, from tacho profile. The first launches are fills.
        result = self.run(self.tacho, "profile", "-q", "--no-roof", "-n", "sums", "-b", "insts-instructions-executed", "--", sys.executable,
                          pathlib.Path(__file__).resolve(), "--program", "sums", "--log", self.folder / "profiled.log", "--steps", 4, code=None)
        counted = []
        for file in pathlib.Path(self.folder).glob("workloads/sums/*/pmc_perf_*.csv"):
            with open(file, newline="") as text:
                counted += [float(row[SUM]) for row in csv.DictReader(text) if row.get(SUM)]
        if not self.say(bool(counted), f"tacho profile counts the launches of sums ({len(counted)}){'' if counted else ': ' + result.stderr[-400:]}"):
            return
        launch = statistics.median(counted)
        running = Running("sums", self.folder)
        if samples := self.sample(running, [SUM], seconds=4):
            time.sleep(0.3)
            got, begin, end = self.total(samples[SUM])
            self.close(f"sums, {SUM}", got, running.steps_between(begin, end) * launch, 0.03)
        running.end()

    def intervals(self):
        running = Running("copies", self.folder)
        rates = {}
        for interval, seconds, step in (("100us", 2, 1e5), ("1ms", 2, 1e6), ("10ms", 2, 1e7), ("100ms", 3, 1e8), ("1s", 6, 1e9)):
            samples = self.sample(running, ["dram__bytes_read.sum", "sm__cycles_elapsed.max"], interval, seconds)
            if not samples:
                continue
            readings = samples["dram__bytes_read.sum"]
            gaps = [after[0] - before[0] for before, after in zip(readings, readings[1:])]
            expected = seconds * 1e9 / step - 1
            self.say(0.95 * expected - 2 <= len(readings) <= 1.02 * expected + 2, f"{interval}: {len(readings)} samples, about {expected:.0f} expected; {min(gaps, default=0) / 1e6:.4f} to "
                     f"{max(gaps, default=0) / 1e6:.4f} ms apart")
            rates[interval] = {}
            for metric, readings in samples.items():
                got, begin, end = self.total(readings)
                rates[interval][metric] = got / (end - begin)
            time.sleep(0.3)
            rates[interval]["steps"] = running.rate(begin, end)
            self.figure(f"{interval}: {rates[interval]['dram__bytes_read.sum']:.1f} GB/s read, {rates[interval]['sm__cycles_elapsed.max'] * 1000:.0f} MHz, {rates[interval]['steps']:.1f} copies/s; "
                        f"{self.used(seconds)}")
        for interval, of in rates.items():
            self.close(f"{interval}: bytes read", of["dram__bytes_read.sum"] * 1e9, of["steps"] * SIZE, 0.03)
        running.end()

    def clock(self):
        """Copies as CUPTI told them and as the program saw them against the samples: a sample counts as busy from half of the usual bytes on, so on average the first
        busy one begins when the work began, and the last one an interval before the work ended."""
        running = Running("bursts", self.folder)
        for interval, milliseconds in (("0.2ms", 0.2), ("1ms", 1), ("10ms", 10)):
            samples = self.sample(running, ["dram__bytes_read.sum"], interval, 4, ["--memory-copy-trace"])
            if not samples:
                continue
            time.sleep(0.5)
            copies = sorted((int(row["start"]), int(row["end"])) for row in self.rows('SELECT start, start + duration AS "end" FROM tacho.copy'))
            readings = samples["dram__bytes_read.sum"]
            busy = statistics.quantiles([value for _, value in readings], n=10)[8] / 2
            times = [moment for moment, _ in readings]
            late = collections.defaultdict(list)
            for begin, end in running.lines():
                if not times[0] < begin - 2e7 or not end + 2e7 < times[-1]:
                    continue
                inside = [moment for moment, value in readings[bisect.bisect(times, begin - 2e7):bisect.bisect(times, end + 2e7)] if value > busy]
                told = [copy for copy in copies if begin - 2e7 < copy[0] < end + 2e7]
                if inside:
                    late["the program's begin"].append((inside[0] - begin) / 1e6)
                    late["the program's end"].append((inside[-1] - end) / 1e6)
                if inside and told:
                    late["the first copy's begin"].append((inside[0] - told[0][0]) / 1e6)
                    late["the last copy's end"].append((inside[-1] - told[-1][1]) / 1e6)
                    late["program and copies, begin"].append((told[0][0] - begin) / 1e6)
                    late["program and copies, end"].append((told[-1][1] - end) / 1e6)
            begins, ends = late["the first copy's begin"], late["the last copy's end"]
            if not self.say(len(ends) >= 10, f"{interval}: bursts in the samples: {len(ends)}, copies {len(copies)}"):
                continue
            for what, of in late.items():
                self.figure(f"{interval}: {what}: {statistics.median(of):.4f} ms (median; {min(of):.4f} to {max(of):.4f})")
            self.figure(f"{interval}: clock: {self.properties.get('device_samples.gpu0.clock')}, error {self.error / 1e6:.4f} ms")
            self.say(abs(statistics.median(begins)) <= 0.3 * milliseconds and abs(statistics.median(ends) + milliseconds) <= 0.3 * milliseconds,
                     f"{interval}: bursts begin and end in the samples where CUPTI's copies do, within 0.3 of an interval")
        running.end()

    def speed(self):
        running = Running("copies", self.folder)
        if not DRY:
            before = self.memory()
        ratios = []
        # The last three fill the GPU's buffer much faster than the others do.
        for metrics in [["dram__bytes_read.sum", SUM]] * 3 + [["dram__bytes_read.sum", SUM, "sm__cycles_active.avg"]] * 3:
            time.sleep(1.2)
            samples = self.sample(running, metrics, "10ms", 3, quiet=True)
            time.sleep(1.2)
            if not samples:
                break
            begin, end = samples[SUM][0][0], samples[SUM][-1][0]
            length = 1.0e9
            around = (running.rate(begin - 1e8 - length, begin - 1e8) + running.rate(end + 1e8, end + 1e8 + length)) / 2
            if (log := running.lines())[-1][0] > end + 1e8 + length:
                ratios.append(running.rate(begin, end) / around)
            self.figure(f"{len(metrics)} metrics, {len(samples[SUM])} samples: {self.used(3)}")
            if len(metrics) == 2:
                self.say(float(self.properties["device_samples.cpu_seconds"]) <= 0.03, "at most 1 % of a processor while it sampled")
        if self.say(len(ratios) >= 5, f"turns: {len(ratios)} of 6 (the program wrote {len(log) if ratios else 0} lines)"):
            self.say(statistics.mean(ratios) >= 0.95, f"the copies' rate while sampled / before and after: {statistics.mean(ratios):.4f} ({min(ratios):.4f} to {max(ratios):.4f})")
        if not DRY:
            process = subprocess.Popen([str(self.tacho), "attach", str(running.pid), "-q", "--overwrite", "-o", "m.tacho", "--pmc", SUM, "--duration", "3"], cwd=self.folder)
            time.sleep(2)
            self.figure(f"memory of the GPU: {before} MiB before, {self.memory()} MiB while it is sampled")
            process.wait(timeout=60)
            self.figure(f"after: {self.memory()} MiB")
        running.end()

    def memory(self):
        return int(self.run("nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits").stdout.split()[0])

    def holders(self):
        running = Running("copies", self.folder)
        first = subprocess.Popen([str(self.tacho), "attach", str(running.pid), "-q", "--overwrite", "-o", "first.tacho", "--pmc", SUM, "--duration", "12"], cwd=self.folder,
                                 stderr=subprocess.PIPE, text=True)
        time.sleep(3)
        second = self.run(self.tacho, "attach", running.pid, "-q", "--overwrite", "-o", "second.tacho", "--pmc", SUM, "--duration", "1", code=None)
        self.figure(f"a second tacho: exit code {second.returncode}, {second.stderr.strip() or 'no word'}")
        self.say(second.returncode == 0 or "something else holds its counters" in second.stderr, "a second tacho samples, or says who holds the counters")
        profile = self.run(self.tacho, "profile", "-q", "--no-roof", "-n", "held", "-b", "insts-instructions-executed", "--", sys.executable,
                           pathlib.Path(__file__).resolve(), "--program", "sums", "--log", self.folder / "held.log", "--steps", 2, code=None)
        self.figure(f"tacho profile meanwhile: exit code {profile.returncode}, {profile.stderr.strip()[-400:] or 'no word'}")
        self.say("something else holds its counters" in profile.stderr or profile.returncode == 0 and not profile.stderr, "tacho profile counts, or says who holds the counters")
        said = first.communicate(timeout=60)[1]
        count = self.rows("SELECT count(*) AS count FROM tacho.reading", "first.tacho")
        self.say(first.returncode == 0 and int(count[0]["count"]) > 1000, f"the first went on: {count[0]['count']} readings{', ' + said.strip() if said else ''}")
        running.end()

    def kernels(self):
        running = Running("sums", self.folder)
        if self.sample(running, [SUM], "10ms", 3, ["--kernel-trace"], quiet=True):
            told = int(self.rows("SELECT count(*) AS count FROM tacho.dispatch")[0]["count"])
            time.sleep(0.3)
            wanted = running.rate(now() - 2e9, now() - 1e9) * 3
            self.say(0.7 * wanted < told < 1.1 * wanted, f"kernels told beside samples: {told}, about {wanted:.0f} ran in 3 s without a recording")
        running.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--program")
    parser.add_argument("--log")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("sections", nargs="*")
    arguments = parser.parse_args()
    if arguments.program:
        return program(arguments.program, arguments.log, arguments.steps)
    sections = arguments.sections or ["values", "intervals", "clock", "speed", "holders", "kernels"]
    with tempfile.TemporaryDirectory() as folder:
        check = Check(arguments.build.resolve(), pathlib.Path(folder))
        for section in sections:
            if not re.fullmatch(r"values|intervals|clock|speed|holders|kernels", section):
                sys.exit(f"pm_sampling.py: no section {section}")
            print(f"-- {section}", flush=True)
            try:
                getattr(check, section)()
            except (RuntimeError, subprocess.TimeoutExpired) as problem:
                check.say(False, f"{section}: {problem}")
        (arguments.out / "pm_sampling.json").write_text(json.dumps(check.figures, indent=1))
    print(f"{check.wrong} wrong" if check.wrong else "all as it should be", flush=True)
    return 1 if check.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
