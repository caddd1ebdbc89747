#!/usr/bin/env python3
"""The first screen of a recording, as a stranger sees it: runtime calls, operators, lines and each step once, never times of
nested functions added up; findings that say what they could save. Numbers are compared with what the recorded files say."""
import collections
import csv
import gzip
import io
import json
import os
import re

import terminal
from harness import Case, DATA, DEBIAN_PYTHON, TACHO, main, need_data

WIDTHS = (80, 120, 200)
H100 = "kineto_h100_qwen1.5-0.5b.json.gz"
MI300X = "kineto_mi300x_qwen1.5-0.5b.json.gz"
RESNET = "kineto_mi300x_resnet_checkpoint.json.gz"
MI250 = "kineto_mi250_toy_rocm6.2.json.gz"
CUPTI = "kineto_cupti_profiler.json.gz"
GFX950 = "rocprofv3_gfx950_results.json.gz"
TORCH = (H100, MI300X, RESNET, MI250, CUPTI)
RUNTIME = ("cuda_runtime", "cuda_driver", "hip_runtime", "Runtime")
PROFILERS_OWN = ("PyTorch Profiler (", "Record Window End", "Iteration Start", "__cupti_profiler__", "Process Spans", "Process Traces",
                 "Process  Spans", "Process  Traces")


def on_terminal(width, *command):
    """What a command writes to a terminal of so many columns, without colours."""
    output, code = terminal.run(command, width, rows=24, env={**os.environ, "TERM": "xterm-256color"})
    return code, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.decode()).replace("\r\n", "\n")


def sections(text):
    """{heading: its lines} of a summary."""
    parts, name = collections.defaultdict(list), ""
    for line in text.splitlines():
        if line and not line.startswith(" "):
            name = line.split(" (")[0]
        elif line:
            parts[name].append(line)
    return parts


def events(file):
    with gzip.open(DATA / "traces" / file) as stream:
        found = json.load(stream)
    return found["traceEvents"] if isinstance(found, dict) else found


def nanoseconds(event):
    return round(float(event.get("dur", 0)) * 1000)


class Screens(Case):
    def setUp(self):
        super().setUp()
        need_data()

    def file(self, name):
        return DATA / "traces" / name

    def table(self, *words):
        answer = json.loads(self.run_command(TACHO, *words, "--output-format", "json").stdout)
        names = [column["title"] if isinstance(column, dict) else column for column in answer["columns"]]
        return [dict(zip(names, row)) for row in answer["rows"]]


class FirstScreen(Screens):
    def test_every_trace_at_every_width(self):
        for name in sorted(path.name for path in (DATA / "traces").iterdir()):
            for width in WIDTHS:
                with self.subTest(trace=name, width=width):
                    code, text = on_terminal(width, TACHO, "info", self.file(name))
                    self.assertEqual(code, 0)
                    for word in PROFILERS_OWN:
                        self.assertNotIn(word, text)
                    for line in text.splitlines():
                        if "/" not in line:  # paths are never cut: they are there to be copied
                            self.assertLessEqual(len(line), width, line)
                    parts = sections(text)
                    for heading in ("API calls", "Operators of PyTorch"):
                        self.assertFalse([line for line in parts[heading] if ".py" in line or "<built-in" in line], heading)
                    for rows in parts.values():
                        self.assertFalse([line for line in rows if "tqdm" in line or "threading" in line])

    def test_a_step_is_there_once_and_as_long_as_the_host_says(self):
        for name in (H100, MI300X, RESNET, MI250):
            with self.subTest(trace=name):
                steps = {event["name"]: nanoseconds(event) for event in events(name)
                         if event.get("name", "").startswith("ProfilerStep#") and event.get("cat") == "user_annotation"}
                self.assertTrue(steps)
                rows = [row for row in self.table("stats", self.file(name), "--by", "marker") if row["Name"] in steps]
                self.assertEqual(sorted(row["Name"] for row in rows), sorted(steps))
                for row in rows:
                    self.assertEqual(row["Calls"], 1)
                    self.assertLessEqual(abs(row["TotalDurationNs"] - steps[row["Name"]]), 1)

    def test_gpus_are_named(self):
        for name, gpu in ((H100, "NVIDIA H100 80GB HBM3"), (MI300X, "AMD Instinct MI300X VF"), (RESNET, "AMD Instinct MI300X"),
                          (GFX950, "AMD Instinct MI350X")):
            self.assertIn(gpu, "\n".join(sections(on_terminal(120, TACHO, "info", self.file(name))[1])["Devices"]))

    def test_calls_are_those_of_the_runtime(self):
        for name in TORCH:
            with self.subTest(trace=name):
                want = collections.Counter()
                for event in events(name):
                    if event.get("ph") == "X" and event.get("cat") in RUNTIME:
                        want[event["name"]] += 1
                got = {row["Name"]: row["Calls"] for row in self.table("stats", self.file(name), "--by", "api")}
                self.assertEqual(got, dict(want))
        text = on_terminal(200, TACHO, "stats", self.file(H100), "--by", "api")[1]
        self.assertRegex(text, r"8448 calls of operators and functions that call each other left out: .*--nested")
        nested = self.table("stats", self.file(H100), "--by", "api", "--nested")
        self.assertTrue([row for row in nested if row["Name"].startswith("aten::")])
        self.assertTrue([row for row in nested if "_call_impl" in row["Name"]])

    def test_operators_by_self_time_with_the_reason_for_the_rest(self):
        for name in (H100, MI300X, RESNET, MI250):
            with self.subTest(trace=name):
                rows = [row for row in self.table("stats", self.file(name), "--by", "operator")]
                selves = [row["SelfDeviceNs"] for row in rows if row["Name"] != "(no operator)"]
                self.assertEqual(selves, sorted(selves, reverse=True))
                self.assertTrue(all(row["Name"] != "(no operator)" for row in rows[:-1]))
                screen = sections(on_terminal(120, TACHO, "info", self.file(name))[1])["Operators of PyTorch"]
                self.assertIn(rows[0]["Name"], screen[1])
                self.assertNotIn("(no operator)", "\n".join(screen))
        # Kernels whose launch is not in the file: counted here from the file itself.
        launches = {event["args"]["correlation"] for event in events(H100)
                    if event.get("cat") in RUNTIME and "correlation" in event.get("args", {})}
        without = sum(nanoseconds(event) for event in events(H100)
                      if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and event["args"]["correlation"] not in launches)
        text = on_terminal(200, TACHO, "info", self.file(H100))[1]
        self.assertIn(f"{without / 1e6:.2f} ms (30.1 %) of GPU time has no operator: the calls that launched it are not in this recording.",
                      text)

    def test_lines_are_the_programs_own(self):
        screen = sections(on_terminal(200, TACHO, "info", self.file(H100))[1])["Lines of code"]
        self.assertIn("transformers/models/qwen2/modeling_qwen2.py:56", "\n".join(screen))
        # The same lines in the same order as the table by line, which also has work that no line launched.
        table = self.run_command(TACHO, "stats", self.file(H100), "--by", "line", "--top", "8", env={"COLUMNS": "200"}).stdout.decode()
        lines = re.findall(r"\S+\.py:\d+", table)
        shown = re.findall(r"\S+\.py:\d+", "\n".join(screen))
        self.assertGreaterEqual(len(shown), 5)
        self.assertEqual(shown, lines[:len(shown)])
        self.assertFalse([line for line in screen if " torch/" in line or "[no call stack]" in line])
        self.assertIn("train_ddp.py:82", "\n".join(sections(on_terminal(120, TACHO, "info", self.file(RESNET))[1])["Lines of code"]))

    def test_small_rates_are_no_zero(self):
        screen = sections(on_terminal(120, TACHO, "info", self.file(H100))[1])["Copies and fills"]
        self.assertNotIn("0.00", " ".join(screen).split())

    def test_a_run_of_tacho_itself(self):
        vcopy = self.folder / "run.json"
        rows = [{"ph": "X", "cat": "user_annotation", "name": "outer", "pid": 7, "tid": 7, "ts": 0, "dur": 100},
                {"ph": "X", "cat": "user_annotation", "name": "inner", "pid": 7, "tid": 7, "ts": 10, "dur": 50}]
        vcopy.write_text(json.dumps({"traceEvents": rows}))
        screen = sections(on_terminal(80, TACHO, "info", vcopy)[1])["Markers"]
        self.assertEqual([line.split()[-1] for line in screen[1:]], ["outer", "inner"])
        self.assertIn("Markers (2 ranges)", on_terminal(80, TACHO, "info", vcopy)[1])
        domain = {row["Name"]: row for row in self.table("stats", vcopy, "--by", "domain")}["MARKER_API"]
        self.assertEqual((domain["Calls"], domain["TotalDurationNs"]), (2, 100_000))  # 150 us of ranges in 100 us


class OwnTimes(Screens):
    def own_times(self, name):
        """{kind: ns} computed from the file: what each innermost call on a thread has for itself."""
        kinds = {"cpu_op": "operator", "Operator": "operator", "python_function": "Python"}
        threads = collections.defaultdict(list)
        for event in events(name):
            if event.get("ph") == "X" and (event.get("cat") in kinds or event.get("cat") in RUNTIME or event.get("cat") == "user_annotation"):
                start = round(float(event["ts"]) * 1000)
                kind = kinds.get(event["cat"], "marker" if event["cat"] == "user_annotation" else "API")
                waits = kind == "Python" and re.search(r"threading\.py\(\d+\): (wait|join|_wait_for_tstate_lock)$|acquire|<built-in.* sleep", event["name"])
                threads[event["pid"], event["tid"]].append((start, -nanoseconds(event), "wait" if waits else kind))
        own = collections.Counter()
        for calls in threads.values():
            # At each moment the call that began last has the time, of those that have not ended.
            moments = sorted({time for start, length, _ in calls for time in (start, start - length)})
            calls.sort(reverse=True)
            open_calls = []
            for now, after in zip(moments, moments[1:]):
                while calls and calls[-1][0] == now:
                    start, length, kind = calls.pop()
                    open_calls.append((start - length, kind))
                while open_calls and open_calls[-1][0] <= now:
                    open_calls.pop()
                if open_calls:
                    own[open_calls[-1][1]] += after - now
        return own

    def test_domains_and_topex_count_each_moment_once(self):
        for name in (H100, MI300X):
            with self.subTest(trace=name):
                want = self.own_times(name)
                topex = collections.Counter()
                for row in self.table("report", "topex", self.file(name)):
                    topex[row["kind"]] += row["exclusive_ns"]
                domains = {row["Name"]: row["TotalDurationNs"] for row in self.table("stats", self.file(name), "--by", "domain")}
                for kind, domain in (("Python", "PYTHON_API"), ("operator", "OPERATOR_API"), ("wait", "PYTHON_WAIT"), ("marker", "MARKER_API")):
                    self.assertEqual(topex[kind], domains[domain], kind)
                    self.assertLess(abs(topex[kind] - want[kind]), max(1000, want[kind] / 500), (kind, topex[kind], want[kind]))
                self.assertLess(abs(topex["API"] - want["API"]), max(1000, want["API"] / 500))

    def test_functions_have_the_own_time_that_was_recorded(self):
        """Without samples, host time by function and line is that of what the profiler recorded, each moment of a thread once."""
        for name in (H100, MI300X):
            with self.subTest(trace=name):
                want = self.own_times(name)
                del want["wait"]
                for by in ("function", "line"):
                    rows = self.table("stats", self.file(name), "--by", by)
                    self.assertAlmostEqual(sum(row["SelfNs"] for row in rows), sum(want.values()), delta=2000)
                rows = self.table("stats", self.file(name), "--by", "function", "--own-code")
                self.assertEqual(rows[0]["Name"], "forward")
                # Waiting for the GPU is in a library, which this function called.
                self.assertGreater({row["Name"]: row["SelfNs"] for row in rows}["run_torch_profiler"], 16_000_000)
                self.assertNotIn("tqdm", " ".join(row["Name"] + row["File"] for row in rows if row["SelfNs"] > 0))
        text = on_terminal(80, TACHO, "stats", self.file(H100), "--by", "function")[1]
        self.assertIn("Host time: 49.74 ms of the functions that the profiler recorded", " ".join(text.split()))
        self.assertRegex(text, r"\n +\d+\.\d\d ms +\d+\.\d +\d+\.\d\d ms +\d+\.\d  forward ")

    def test_diff_adds_up_no_nested_times(self):
        """Calls of the runtimes alone, each moment of ranges once; what is left out is counted."""
        def diff(by):
            result = self.run_command(TACHO, "diff", self.file(H100), self.file(MI300X), "--by", by, "--output-format", "csv")
            return list(csv.DictReader(io.StringIO(result.stdout.decode()))), result.stderr.decode()
        rows, said = diff("api")
        for side, name in (("a", H100), ("b", MI300X)):
            calls = self.table("stats", self.file(name), "--by", "api")
            self.assertEqual({row["Name"]: row["TotalDurationNs"] for row in calls},
                             {row["name"]: int(row[f"total_{side}_ns"]) for row in rows if row[f"calls_{side}"] != "0"})
        self.assertRegex(said, r"tacho: left out of the comparison: \d{4} calls in A and \d{4} in B of operators and functions")
        ranges, said = diff("marker")
        self.assertEqual([row["name"] for row in ranges], ["ProfilerStep#6"])
        self.assertIn("the profiler's own and ranges of GPUs", said)
        # Ranges within ranges: the whole is the time in them.
        spans = [("outer", 0, 100), ("inner", 10, 30), ("inner", 50, 20), ("after", 200, 40)]
        for file, scale in (("x.json", 1), ("y.json", 2)):
            (self.folder / file).write_text(json.dumps({"traceEvents": [
                {"ph": "X", "cat": "user_annotation", "name": name, "pid": 7, "tid": 7, "ts": start * scale, "dur": length * scale}
                for name, start, length in spans]}))
        text = self.run_command(TACHO, "diff", self.folder / "x.json", self.folder / "y.json", "--by", "marker").stdout.decode()
        self.assertRegex(text, r"(?m)^A  140\.00 us ")
        self.assertRegex(text, r"(?m)^B  280\.00 us .*\(\+100\.00 %\)$")

    def test_what_only_waits_is_last(self):
        rows = self.table("report", "topex", self.file(H100))
        kinds = list(dict.fromkeys(row["kind"] for row in rows))
        self.assertEqual(kinds, ["API", "operator", "Python", "marker", "GPU", "wait"])
        self.assertEqual([row["name"] for row in rows if row["kind"] == "wait"], ["threading.py(359): wait", "threading.py(655): wait"])
        for kind in kinds:
            self.assertAlmostEqual(sum(row["percent"] for row in rows if row["kind"] == kind), 100, places=3)
        domains = self.table("stats", self.file(H100), "--by", "domain")
        self.assertEqual(domains[-1]["Name"], "PYTHON_WAIT")
        self.assertIsNone(domains[-1]["Percentage"])
        self.assertAlmostEqual(sum(row["Percentage"] for row in domains[:-1]), 100, places=3)


class Shapes(Screens):
    def shapes(self, name):
        text = self.run_command(TACHO, "stats", self.file(name), "--shapes", "-M", "--output-format", "csv").stdout.decode()
        return {(row["Name"], row["Group"]): int(row["Calls"]) for row in csv.DictReader(io.StringIO(text))}

    def test_cuda_in_blocks_and_threads_as_the_file_has_them(self):
        want = collections.Counter()
        for event in events(H100):
            if event.get("cat") == "kernel":
                grid, block = ("x".join(map(str, event["args"][key])) for key in ("grid", "block"))
                want[event["name"], f"grid {grid} blocks, block {block} threads"] += 1
        self.assertEqual(self.shapes(H100), dict(want))
        self.assertIn("grid 132x1x1 blocks, block 384x1x1 threads", on_terminal(120, TACHO, "stats", self.file(H100), "--shapes")[1])

    def test_amd_in_work_items(self):
        want = collections.Counter()
        for event in events(RESNET):
            if event.get("cat") == "kernel" and "grid" in event["args"]:
                grid, block = event["args"]["grid"], event["args"]["block"]
                items = "x".join(str(g * b) for g, b in zip(grid, block))
                want[event["name"], f"grid {items} work-items, workgroup {'x'.join(map(str, block))} work-items"] += 1
        known = {key: calls for key, calls in self.shapes(RESNET).items() if "?" not in key[1]}
        self.assertTrue(known)
        self.assertEqual(known, dict(want))

    def test_cuda_without_the_names_of_its_gpus(self):
        rows = [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": 1, "dur": 1, "args": {"correlation": 1}},
                {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 3, "dur": 1,
                 "args": {"device": 0, "stream": 7, "correlation": 1, "grid": [132, 2, 1], "block": [384, 1, 1]}}]
        (self.folder / "k.json").write_text(json.dumps({"traceEvents": rows}))
        answer = self.table("stats", self.folder / "k.json", "--shapes")
        self.assertEqual([row["Group"] for row in answer], ["grid 132x2x1 blocks, block 384x1x1 threads"])


class Modules(Screens):
    def test_modules_of_a_class_are_one_row(self):
        classes = self.table("stats", self.file(H100), "--by", "module")
        instances = self.table("stats", self.file(H100), "--by", "module", "--instances")
        self.assertLess(len(classes), 12)
        self.assertGreater(len(instances), 300)
        by_class = {row["Name"]: row for row in classes}
        self.assertEqual(by_class["Qwen2DecoderLayer"]["Modules"], 24)
        for name, row in by_class.items():
            if name.startswith("("):
                continue
            members = [one for one in instances if one["Class"] == name]
            self.assertEqual(row["Modules"], len(members), name)
            for column in ("Calls", "SelfHostNs", "SelfDeviceNs", "SelfKernels"):
                self.assertEqual(row[column], sum(one[column] for one in members), (name, column))
        self.assertEqual(sum(row["SelfDeviceNs"] for row in classes), sum(row["SelfDeviceNs"] for row in instances))


class FindingsText(Screens):
    def report(self, name, *options, width=120):
        path = name if os.path.isabs(name) else self.file(name)
        code, text = on_terminal(width, TACHO, "report", "findings", path, *options)
        self.assertEqual(code, 0)
        return text

    def rules(self, path):
        return {row["rule"]: row for row in json.loads(self.run_command(
            TACHO, "report", "findings", path, "--output-format", "json").stdout)["findings"]}

    def test_what_could_be_saved_and_the_threshold(self):
        for name in (H100, RESNET, MI250, GFX950):
            for width in WIDTHS:
                text = self.report(name, width=width)
                self.assertNotIn("must be", text)
                self.assertFalse([line for line in text.splitlines() if len(line) > width])
        self.assertIn("(17 % to 23 %; threshold 5 %)", self.report(H100))
        self.assertIn("could save 6.9 to 9.0 ms (14 to 18 % of the run)", self.report(H100))
        screen = sections(on_terminal(120, TACHO, "info", self.file(RESNET))[1])["Findings"]
        self.assertIn("Communication is not hidden behind compute: could save up to 29 ms (33 %)", screen[0])

    def test_what_could_not_be_judged_is_one_line(self):
        text = self.report(H100)
        self.assertRegex(text.splitlines()[-1], r"^4 of \d+ rules could not be judged: --missing lists what they need\.$")
        self.assertNotIn("slow-clock", text)
        missing = self.report(H100, "--missing")
        self.assertIn("slow-clock: needs readings of the GPU's clock", missing)
        self.assertNotIn("--missing lists", missing)

    def test_no_kernels_no_promise(self):
        text = self.report(CUPTI, width=200)
        self.assertIn("This trace has no kernels, copies or fills, so only rules about the host can find anything; "
                      "call stacks tell where the host's time goes (tacho sys sample).", text)

    def test_one_rank_of_a_job_hears_nothing_of_other_gpus(self):
        self.assertNotIn("unused-gpus", self.rules(self.file(GFX950)))

    def trace_with_gaps(self, gaps, name="gaps.json", wait=300):
        """Each launch follows a call that waits until the device is done, and some work of the host."""
        rows, time = [], 1000.0
        for at in range(gaps + 1):
            rows += [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": time, "dur": 5,
                      "args": {"correlation": at + 1}},
                     {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": time + 10, "dur": 500,
                      "args": {"device": 0, "stream": 7, "correlation": at + 1, "grid": [64, 1, 1], "block": [64, 1, 1]}},
                     {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 7, "tid": 7, "ts": time + 6, "dur": 506 + wait}]
            time += 520 + wait
        (self.folder / name).write_text(json.dumps({"traceEvents": rows}))
        return self.folder / name

    def test_few_long_gaps_are_possible_many_are_found_short_ones_silent(self):
        few = self.rules(self.trace_with_gaps(4, wait=2000))
        self.assertEqual(few["host-waits"]["state"], "possible")
        self.assertIn("there are few such gaps", few["host-waits"]["doubt"])
        self.assertEqual(self.rules(self.trace_with_gaps(40, wait=2000))["host-waits"]["state"], "found")
        self.assertNotIn("host-waits", self.rules(self.trace_with_gaps(2, wait=100)))

    def test_a_line_that_takes_most_of_the_host(self):
        program = self.folder / "hot.py"
        program.write_text("import time\n"
                           "def hot(n):\n"
                           "    return sum(i * i for i in range(n))\n"
                           "def cold(n):\n"
                           "    return [i for i in range(n)]\n"
                           "end = time.process_time() + 1.5\n"
                           "while time.process_time() < end:\n"
                           "    hot(300000)\n"
                           "    cold(1000)\n")
        self.run_command(TACHO, "sys", "sample", "-o", "hot.tacho", "--", DEBIAN_PYTHON, program)
        found = self.rules(self.folder / "hot.tacho")
        self.assertIn("dominant-line", found)
        self.assertIn("hot.py:3", found["dominant-line"]["sentence"])
        low, high = found["dominant-line"]["saves"]
        self.assertEqual(low, 0)
        self.assertGreater(high, 0)
        text = on_terminal(80, TACHO, "info", self.folder / "hot.tacho")[1]
        self.assertIn("One line takes most of the host's time: could save up to ", text)
        # Work spread over several lines: silent.
        program.write_text("import time\n"
                           "end = time.process_time() + 1.5\n"
                           "while time.process_time() < end:\n"
                           + "".join(f"    x{at} = sum(range(20000))\n" for at in range(5)))
        self.run_command(TACHO, "sys", "sample", "-o", "even.tacho", "--", DEBIAN_PYTHON, program)
        self.assertNotIn("dominant-line", self.rules(self.folder / "even.tacho"))


if __name__ == "__main__":
    main()
