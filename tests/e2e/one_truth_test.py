"""One question, one answer: every command, format and page gives the same number about the same trace.

A question is put to every place that answers it. The answers must be equal to the nanosecond where a place gives
nanoseconds, and to what it prints where it rounds. docs/definitions.md defines the words.
"""
import base64
import collections
import csv
import gzip
import json
import pathlib
import random
import re
import struct
import tempfile
import time

import harness
from harness import DATA, EXAMPLES, TACHO
from view_test import Server


def recordings():
    """Every recording of ../shared/data that is a trace of one process or job."""
    return sorted([*(DATA / "traces").glob("*.json.gz"), *(DATA / "rpd").glob("*.rpd"), *(DATA / "ranks4").glob("*.json.gz")])


class Places:
    """The answers of all places to questions about one file. Each asks tacho once and keeps the answer."""

    def __init__(self, case, file):
        self.case, self.file = case, file
        self.kept = {}

    def tacho(self, *words):
        return self.case.run_command(TACHO, *words, timeout=300, env={"COLUMNS": "200"}).stdout.decode()

    def once(self, key, make):
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    def table(self, *words):
        """Rows of an answer as dictionaries by column."""
        def ask():
            answer = json.loads(self.tacho(*words, "--output-format", "json"))
            names = [c["title"] if isinstance(c, dict) else c for c in answer["columns"]]
            return [dict(zip(names, row)) for row in answer["rows"]]
        return self.once(words, ask)

    def sql(self, statement):
        return self.once(statement, lambda: json.loads(
            self.tacho("query", self.file, statement, "--dialect", "tacho", "--output-format", "json"))["rows"])

    def run(self):
        """The length of the run: from the first begin to the last end of all rows with a length."""
        work, other = ("dispatch", "copy", "fill", "sample"), ("allocation", "api", "marker", "sync", "overhead", "message")
        parts = " union all ".join(f"select min(start), max(start + ifnull(duration, 0)) from {table}{where}" for tables, where in (
            (work, ""), (other, " where duration is null or duration > 0")) for table in tables)
        spans = [row for row in self.sql(parts) if row[0] is not None]
        return max(end for _, end in spans) - min(begin for begin, _ in spans)

    def csv_rows(self, kind):
        """Rows of all files *_<kind>.csv of an export."""
        def export():
            folder = tempfile.mkdtemp(dir=self.case.folder)
            self.tacho("export", "-f", "csv", "-d", folder, "--overwrite", self.file)
            return pathlib.Path(folder)
        folder = self.once("csv", export)
        rows = []
        for path in sorted(folder.rglob(f"*_{kind}.csv")):
            with open(path, newline="", encoding="utf-8") as stream:
                rows += list(csv.DictReader(stream))
        return rows

    def json_events(self):
        """Events of an export as JSON."""
        def export():
            path = pathlib.Path(tempfile.mkdtemp(dir=self.case.folder)) / "trace.json"
            self.tacho("export", "-f", "json", "-o", path, self.file)
            return json.loads(path.read_text())["traceEvents"]
        return self.once("json", export)

    def served(self):
        """(document, overview, {row: slice} of some dispatches) as the page gets them."""
        def ask():
            rows = [row - 1 for row, _, _ in self.launches()]  # SQL counts from 1
            server = Server(self.file)
            try:
                return (server.ready()["runs"][0], server.get("/api/overview"),
                        {row: server.get(f"/api/slice?row={row}") for row in rows[::len(rows) // 40 + 1]})
            finally:
                server.stop()
        return self.once("served", ask)

    def flame(self):
        """The flame graph as the page gets it."""
        def ask():
            server = Server(self.file)
            try:
                server.ready()
                while "pending" in (answer := server.get("/api/flame?run=0")):
                    time.sleep(0.05)
                return answer
            finally:
                server.stop()
        return self.once("flame", ask)

    def page(self):
        """The contents of the self-contained page: the JSON at the end of its packed data (src/view/page/packed.h)."""
        def ask():
            path = pathlib.Path(tempfile.mkdtemp(dir=self.case.folder)) / "page.html"
            self.tacho("view", self.file, "-o", path)
            data = gzip.decompress(base64.b64decode(re.search(r"H4sI[A-Za-z0-9+/=\s]{100,}", path.read_text())[0]))
            length, = struct.unpack("<I", data[-4:])
            return json.loads(data[-4 - length:-4])
        return self.once("page", ask)

    def launches(self):
        """(row, start, start of the launching call) of every dispatch whose call is in the trace."""
        return self.sql("select d.id, d.start, min(a.start) from dispatch d join track t on t.id = d.track "
                        "join track s on s.process = t.process join api a on a.track = s.id and a.correlation = d.correlation "
                        "join function f on f.id = a.dim where d.correlation <> 0 group by d.id")

    def text(self):
        return self.once("info", lambda: self.tacho("info", self.file))

    def findings(self):
        return self.once("findings", lambda: json.loads(self.tacho("report", "findings", self.file, "--output-format", "json")))


def innermost(run):
    """(host, device) nanoseconds of each frame as the innermost one, by its kind and label, from the data of a flame graph."""
    frames, nodes, sums = run["frames"], run["nodes"], (collections.Counter(), collections.Counter())
    for at, frame in enumerate(nodes["frame"]):
        name, kind, file, line = (frames[what][frame] for what in ("name", "part", "file", "line"))
        if kind == "python" and file:
            name += f" ({file.rsplit('/')[-1]}" + (f":{line})" if line > 0 else ")")
        for sum, what in zip(sums, ("host", "gpu")):
            sum[kind, name] += nodes[what][at]
    return tuple(+sum for sum in sums)


def by_name(pairs):
    """{name: (count, total)} of (name, duration) pairs."""
    sums = collections.defaultdict(lambda: [0, 0])
    for name, duration in pairs:
        sums[name][0] += 1
        sums[name][1] += duration
    return {name: tuple(sum) for name, sum in sums.items()}


def readable(text):
    """(nanoseconds, half of the last digit printed) of a time such as "45.65 ms"."""
    number, unit = text.split()
    scale = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9}[unit]
    digits = len(number.split(".")[1]) if "." in number else 0
    return float(number) * scale, 0.5000001 * scale / 10**digits


def generated(seed):
    """A trace as torch.profiler writes it, of work that overlaps on several devices and streams: equal times, calls within
    calls, ids that return, kernels whose call is missing, copies with and without a size, marks before and after all else."""
    draw = random.Random(seed)
    events, correlation = [], 0
    devices, streams, threads = draw.randint(1, 3), draw.randint(1, 4), draw.randint(1, 3)

    def event(category, name, pid, tid, start, length, **args):
        events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start / 1000, "dur": length / 1000,
                       "args": args})
    free = collections.Counter()  # when each stream is free: one stream's work never overlaps
    for thread in range(threads):
        at = draw.randrange(0, 5000)
        for _ in range(draw.randint(20, 120)):
            at += draw.choice((0, 1, 10, 700, 20000))
            correlation += draw.choice((0, 1, 1, 1, 1))
            length = draw.choice((1, 900, 4000))
            if draw.random() < 0.9:
                event("cuda_runtime", draw.choice(("cudaLaunchKernel", "cudaLaunchKernelExC")), 100, 200 + thread, at, length,
                      correlation=correlation)
                if length == 4000:
                    event("cuda_driver", "cuLaunchKernel", 100, 200 + thread, at + 100, 3000, correlation=correlation)
            device, stream = draw.randrange(devices), draw.randrange(streams)
            work = max(free[device, stream], at + draw.choice((length, length + 5000)))
            took = draw.choice((0, 1, 2000, 2000, 45000))
            free[device, stream] = work + took
            where = {"device": device, "stream": stream, "correlation": correlation}
            kind = draw.random()
            if kind < 0.8:
                event("kernel", f"kernel_{draw.randrange(5)}", device, stream, work, took, **where, grid=[3, 1, 1], block=[64, 1, 1])
            elif kind < 0.9:
                size = {} if draw.random() < 0.5 else {"bytes": draw.randrange(1, 1 << 20)}
                event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", device, stream, work, took, **where, **size)
            else:
                event("gpu_memset", "Memset (Device)", device, stream, work, took, **where, bytes=64)
            at += length
    for at in (-90000, 10**9):
        events.append({"ph": "i", "s": "g", "cat": "Trace", "name": "Iteration Start: PyTorch Profiler", "pid": 100, "tid": 200,
                       "ts": at / 1000})
    draw.shuffle(events)
    return {"schemaVersion": 1, "baseTimeNanoseconds": 1700000000000000000, "traceEvents": events}


class OneTruth(harness.Case):
    asked = 0  # launches that were looked up in the page
    recorded = False  # here, with two clocks: other files have one

    def agree(self, question, answers):
        """All values of {place: value} are equal."""
        (first, truth), *others = answers.items()
        for place, value in others:
            if isinstance(truth, dict) and isinstance(value, dict):
                differ = {key: (truth.get(key), value.get(key)) for key in {**truth, **value} if truth.get(key) != value.get(key)}
                self.assertEqual(differ, {}, f"{question}: {first} and {place}")
            self.assertEqual(truth, value, f"{question}: {first} and {place}; all: {answers}")

    def near(self, question, exact, text):
        """The printed text is the rounded form of `exact`."""
        value, half = readable(text)
        self.assertLessEqual(abs(value - exact), half, f"{question}: {exact} ns, printed as {text}")

    def in_one_clock(self, truth, sums):
        """Sums of a file whose times are CLOCK_BOOTTIME's, in the trace's clock: the two run apart by 500 ppm at most while the
        machine's time is corrected, and each end of a kernel is rounded. Other files have the times of the trace."""
        if not self.recorded:
            return sums
        return {name: (count, truth[name][1] if name in truth and abs(total - truth[name][1]) <= count + total * 500e-6 else total)
                for name, (count, total) in sums.items()}

    def kernels(self, ask):
        """Kernels: how many, how long, by name."""
        sql = {name: (count, total)
               for name, count, total in ask.sql("select name, count(*), sum(duration) from dispatch group by name")}
        truth = {row["Name"]: (row["Calls"], row["TotalDurationNs"]) for row in ask.table("stats", ask.file)}
        self.agree("kernels by name", {"stats": truth, "query": sql, "export -f csv": self.in_one_clock(truth, by_name(
            (row["Kernel_Name"], int(row["End_Timestamp"]) - int(row["Start_Timestamp"])) for row in ask.csv_rows("kernel_trace")))})
        events = [event for event in ask.json_events() if event.get("ph") == "X" and event.get("cat") == "kernel"]
        self.agree("kernels by name", {"stats": truth, "export -f json": self.in_one_clock(truth, by_name(
            (event["name"], round(event["dur"] * 1000)) for event in events))})
        _, overview, _ = ask.served()
        top = {row["text"]: (row["count"], row["total"]) for row in overview["kernels"]}
        self.assertEqual(top, {name: truth[name] for name in top}, "view: kernels")
        count, total = sum(c for c, _ in truth.values()), sum(t for _, t in truth.values())
        self.assertEqual(overview["totals"]["kernels"], total)
        self.assertEqual(ask.page()["overview"]["kernels"], overview["kernels"], "view -o: kernels")
        if count:
            found = re.search(r"^Kernels \((\d+) dispatch(?:es)?, ([^)]*)\)", ask.text(), re.M)
            self.assertEqual(int(found[1]), count, "info: kernels")
            self.near("info: kernels", total, found[2])

    def devices(self, ask):
        """How long each GPU had work, and idled between its first and its last."""
        busy = {row["Name"]: (row["BusyNs"], row["WallNs"]) for row in ask.table("busy", ask.file)}
        idle = {row["gpu"]: row["idle_ns"] for row in ask.table("report", "gaps", ask.file)}
        overlap = {row["gpu"]: row["time_ns"] for row in ask.table("report", "overlap", ask.file) if row["what"] == "idle"}
        _, overview, _ = ask.served()
        totals = overview["totals"]
        self.agree("totals", {"view": totals, "view -o": ask.page()["overview"]["totals"]})
        self.agree("busy", {"busy": sum(b for b, _ in busy.values()), "view": totals["gpu_busy"]})
        sql = [row[1:3] for row in json.loads(ask.tacho("query", ask.file, "select * from rpd.busy", "--output-format", "json"))["rows"]]
        sums = [(row["SumNs"], row["WallNs"]) for row in ask.table("busy", ask.file)]
        for row, expected in zip(sorted(sql), sorted(sums)):  # as upstream's view it counts what overlaps twice
            for cell, value in zip(row, expected):
                self.assertAlmostEqual(cell, value, delta=2, msg="query: rpd.busy, whose times are CLOCK_MONOTONIC's, rounded")
        spans = ask.sql("select device, max(ended) - min(start) from (" + " union all ".join(
            f"select t.device, w.start, w.start + ifnull(w.duration, 0) as ended from {table} w join track t on t.id = w.track"
            for table in ("dispatch", "copy", "fill")) + ") group by device")
        self.agree("idle", {"query and busy": sum(span for _, span in spans) - sum(b for b, _ in busy.values()),
                            "report gaps": sum(idle.values()), "report overlap": sum(overlap.values()), "view": totals["gpu_idle"]})
        shown = re.findall(r"^ *([\d.]+ [num]?s) +([\d.]+) % +([\d.]+) % +[GC]PU", ask.text(), re.M)
        self.assertEqual(len(shown), len(busy), ask.text())
        for (b, _), (_, span), (took, of_run, of_span) in zip(busy.values(), spans, shown):
            self.near("info: busy", b, took)
            self.assertAlmostEqual(float(of_run), 100 * b / ask.run(), delta=0.06, msg="info: busy of the run")
            self.assertAlmostEqual(float(of_span), 100 * b / span, delta=0.06, msg="info: busy of its span")

    def length(self, ask):
        """How long the run was."""
        _, overview, _ = ask.served()
        answers = {"query": ask.run(), "view": overview["totals"]["span"],
                   "report findings": ask.findings()["length"]}
        self.agree("run", answers)
        document, *_ = ask.served()
        self.agree("zero of the times in findings", {"view": int(document["t0"]), "report findings": ask.findings()["from"]})
        self.near("info: run", answers["query"], re.search(r"run of ([\d.]+ [a-z]+)", ask.text())[1])

    def launching_calls(self, ask):
        """Which call launched each kernel."""
        truth = ask.launches()
        document, _, slices = ask.served()
        delays = collections.Counter(start - call for _, start, call in truth)  # whatever clock a place has
        rpd = collections.Counter(delay for delay, in json.loads(ask.tacho(
            "query", ask.file, "select o.start - a.start from rocpd_api_ops l join rocpd_api a on a.id = l.api_id join rocpd_op o on "
            "o.id = l.op_id", "--dialect", "rpd", "--output-format", "json"))["rows"])
        if self.recorded:  # .rpd's times are CLOCK_MONOTONIC's
            others = sorted(rpd.elements())
            for delay in sorted(delays.elements()):
                near = next((other for other in others if abs(other - delay) <= 2 + abs(delay) * 500e-6), None)
                self.assertIsNotNone(near, f"query --dialect rpd lacks the launch {delay} ns before its kernel")
                others.remove(near)
        else:
            self.assertEqual(delays - rpd, collections.Counter(), "query --dialect rpd lacks launches")
        for row, start, call in truth:
            if row - 1 in slices:
                self.asked += 1
                zero = int(document["t0"])
                causes = [link["start"] + zero for link in slices[row - 1]["links"] if link["table"] == "api"]
                self.assertIn(call, causes, f"view: the call of the kernel at {start}")

    def calls(self, ask):
        """Which API calls took longest: those of runtimes and drivers, not frames of Python or operators."""
        _, overview, _ = ask.served()
        names = [row["text"] for row in overview["calls_top"]]
        found = re.search(r"^API calls[^\n]*\n[^\n]*\n((?: [^\n]*\n)*)", ask.text(), re.M)
        shown = [] if found is None else [line.split()[-1] for line in found[1].splitlines() if not line.lstrip().startswith("…")]
        # info lists as many as it has room for, at least three.
        self.assertGreaterEqual(len(shown), min(3, len(names)), ask.text())
        self.assertEqual([name.split()[-1] for name in names[:len(shown)]], shown[:len(names)], "info and view: API calls")

    def copies(self, ask):
        """Bytes of copies: of those that have a size, and never 0 for those that have none."""
        rows = ask.sql("select name, count(*), sum(duration), count(bytes), sum(bytes) from copy group by name")
        truth = {name: (count, total, size) for name, count, total, _, size in rows}
        stats = {row["Name"]: (row["Calls"], row["TotalDurationNs"], row["Bytes"]) for row in ask.table("stats", ask.file, "--by", "copy")}
        self.agree("copies", {"query": truth, "stats": stats})

    def code(self, ask):
        """Where the host's time went and which stacks launched the devices' work: of samples, or of recorded functions."""
        rows = ask.table("stats", ask.file, "--by", "stack")
        host, gpu = collections.Counter(), collections.Counter()  # by the innermost frame, a call, an operator or a kernel
        for row in rows:
            place = (row["Kind"], row["Name"].split(";")[-1])
            host[place] += row["SelfNs"]
            gpu[place] += row["GpuSelfNs"]
        truth = (+host, +gpu)
        file = pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / "flame.html"
        done = self.run_command(TACHO, "flame", ask.file, "-o", file, code=None)
        if not rows:
            self.assertIn(b"has no call stacks", done.stderr)
            return
        page = re.search(r'<script type="application/json" id="data">(.*?)</script>', file.read_text(), re.S)
        for place, answer in (("flame", json.loads(page[1])), ("view", ask.flame()), ("view -o", ask.page()["flame"])):
            times = innermost(answer["runs"][0])
            if answer.get("folded", {}).get("nodes"):  # says so, and keeps what it folds in its place
                self.agree("time by code", {"stats": [sum(each.values()) for each in truth], place: [sum(each.values()) for each in times]})
                for whole, kept in zip(truth, times):
                    self.assertEqual({key: time for key, time in kept.items() if key[0] != "folded" and time > whole[key]}, {}, place)
            else:
                self.agree("time by code", {"stats": truth, place: times})
        times = [row["SelfNs"] for row in ask.table("stats", ask.file, "--by", "function")]
        self.agree("host time", {"stats --by stack": sum(host.values()), "stats --by function": sum(times)})

    def questions(self, file):
        ask = Places(self, file)
        for question in (self.kernels, self.devices, self.length, self.launching_calls, self.calls, self.copies, self.code):
            with self.subTest(file=file.name, question=question.__name__):
                question(ask)

    def test_recordings(self):
        harness.need_data()
        for file in recordings():
            self.questions(file)
        self.assertGreater(self.asked, 100, "launches were compared with the page's")

    def test_generated_traces(self):
        for seed in range(12):
            file = self.folder / f"generated{seed}.json"
            file.write_text(json.dumps(generated(seed)))
            self.questions(file)
        self.assertGreater(self.asked, 100, "launches were compared with the page's")

    def test_a_recorded_run(self):
        self.recorded = True
        self.trace(EXAMPLES / "vcopy", "-n", "65536", "-b", "256", "-i", "20")
        self.questions(self.folder / "t.tacho")

    def test_ranks(self):
        """The ranks' figures are those of each rank's file."""
        harness.need_data()
        files = sorted((DATA / "ranks4").glob("*.json.gz"))
        answer = json.loads(self.run_command(TACHO, "ranks", *files, "--output-format", "json").stdout)
        for rank, file in zip(answer["ranks"], files):
            (row,) = Places(self, file).table("busy", file)
            self.assertEqual((rank["busy_ns"], rank["span_ns"], rank["idle_ns"]),
                             (row["BusyNs"], row["WallNs"], row["WallNs"] - row["BusyNs"]), file.name)


if __name__ == "__main__":
    harness.main()
