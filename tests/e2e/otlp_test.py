"""`tacho export -f otlp`: metrics and profiles as OpenTelemetry's receivers read them, with the sums of the trace.

tests/peers/otlp.sh parses the same files by OpenTelemetry's own .proto files."""
import json

import harness
from harness import BUILD, DATA, TACHO, need_data

BUSY = "import time\nwhile time.process_time() < 0.6:\n    sum(range(2000))\n"


def attributes(one):
    values = {each["key"]: next(iter(each["value"].items())) for each in one.get("attributes", [])}
    return {key: int(value) if kind == "intValue" else value for key, (kind, value) in values.items()}


class Otlp(harness.Case):
    def export(self, trace, *options, code=0):
        result = self.run_command(TACHO, "export", trace, "-f", "otlp", *options, code=code)
        self.said = " ".join(result.stderr.decode().split())
        return [self.folder / name for name in result.stdout.decode().splitlines()]

    def metrics(self, path):
        """[(attributes of the resource, metric, its kind, its data points)]"""
        found = []
        for line in path.read_text().rstrip("\n").split("\n"):
            message = json.loads(line)
            self.assertEqual(list(message), ["resourceMetrics"])
            for resource in message["resourceMetrics"]:
                for scope in resource["scopeMetrics"]:
                    self.assertEqual(scope["scope"]["name"], "tacho")
                    for metric in scope["metrics"]:
                        [kind] = set(metric) & {"gauge", "sum", "histogram"}
                        self.assertRegex(metric["name"], r"^[a-z][a-z0-9_.]{0,254}$")
                        self.assertEqual(metric[kind].get("aggregationTemporality"), None if kind == "gauge" else 2)
                        found.append((attributes(resource["resource"]), metric, kind, metric[kind]["dataPoints"]))
        return found

    def profiles(self, path):
        """[(attributes of the resource, type, {stack, outermost first: ns})]; checks the rules of profiles.proto."""
        [line] = path.read_text().rstrip("\n").split("\n")
        message = json.loads(line)
        tables = message["dictionary"]
        texts = tables["stringTable"]
        self.assertEqual(texts[0], "")
        self.assertEqual(tables["linkTable"], [{"traceId": "0" * 32, "spanId": "0" * 16}])
        for name, table in tables.items():
            self.assertEqual(len({json.dumps(one, sort_keys=True) for one in table}), len(table), name)
            if name not in ("stringTable", "linkTable"):
                self.assertEqual(table[0], {}, name)
        for attribute in tables["attributeTable"][1:]:
            self.assertIn(texts[attribute["keyStrindex"]], ("profile.frame.type", "tacho.frame.part"))

        def frame(index):
            self.assertGreater(index, 0)
            location = tables["locationTable"][index]
            [line] = location["lines"]
            self.assertLess(location.get("mappingIndex", 0), len(tables["mappingTable"]))
            [part] = location["attributeIndices"]
            return texts[tables["functionTable"][line["functionIndex"]]["nameStrindex"]], tables["attributeTable"][part]["value"]["stringValue"]

        found = []
        used = {0}
        for resource in message["resourceProfiles"]:
            for scope in resource["scopeProfiles"]:
                for profile in scope["profiles"]:
                    kind = texts[profile["sampleType"]["typeStrindex"]]
                    self.assertEqual(texts[profile["sampleType"]["unitStrindex"]], "nanoseconds")
                    stacks = {}
                    for sample in profile["samples"]:
                        [value] = sample["values"]
                        used.add(sample["stackIndex"])
                        leaf_first = tables["stackTable"][sample["stackIndex"]].get("locationIndices", [])
                        stack = tuple(frame(index) for index in reversed(leaf_first))
                        stacks[stack] = stacks.get(stack, 0) + int(value)
                    self.assertEqual(len({sample["stackIndex"] for sample in profile["samples"]}), len(profile["samples"]))
                    found.append((attributes(resource["resource"]), kind, stacks))
        self.assertEqual(used, set(range(len(tables["stackTable"]))))  # no orphans
        return found

    def sums(self, trace, sql):
        rows = json.loads(self.run_command(TACHO, "query", trace, sql, "--output-format", "json").stdout)["rows"]
        return {row[0]: row[1:] for row in rows}

    def test_sums_are_the_traces(self):
        need_data()
        for name, table, metric, key in [
                ("kineto_h100_qwen1.5-0.5b.json.gz", "dispatch", "tacho.gpu.kernel.duration", "tacho.kernel.name"),
                ("kineto_h100_qwen1.5-0.5b.json.gz", "api", "tacho.api.duration", "code.function.name"),
                ("kineto_mi300x_resnet_checkpoint.json.gz", "dispatch", "tacho.gpu.kernel.duration", "tacho.kernel.name"),
                ("kineto_mi300x_resnet_checkpoint.json.gz", "copy", "tacho.gpu.copy.duration", "tacho.copy.direction"),
                ("rocprofv3_gfx950_results.json.gz", "dispatch", "tacho.gpu.kernel.duration", "tacho.kernel.name")]:
            trace = DATA / "traces" / name
            expected = self.sums(trace, f"SELECT name, count(*), sum(duration), min(duration), max(duration) FROM tacho.{table} GROUP BY name")
            self.assertGreater(len(expected), 0)
            files = self.export(trace, "-o", "run.otlp.jsonl", "--overwrite")
            self.assertEqual([path.name for path in files], ["run.otlp.jsonl", "run.profiles.otlp.jsonl"])
            found = {}
            for _, one, kind, points in self.metrics(files[0]):
                if one["name"] != metric:
                    continue
                self.assertEqual((kind, one["unit"]), ("histogram", "s"))
                for point in points:
                    self.assertGreaterEqual(int(point["timeUnixNano"]) - int(point["startTimeUnixNano"]) if "timeUnixNano" in point else 0, 0)
                    count, total, least, most = found.get(attributes(point)[key], (0, 0, 1e300, 0))
                    found[attributes(point)[key]] = (count + int(point["count"]), total + point["sum"], min(least, point["min"]),
                                                     max(most, point["max"]))
            self.assertEqual({key: [count, *(round(each * 1e9) for each in times)] for key, (count, *times) in found.items()}, expected, name)

    def test_profiles_hold_all_device_time(self):
        need_data()
        trace = DATA / "traces" / "kineto_h100_qwen1.5-0.5b.json.gz"
        work = sum(self.sums(trace, "SELECT 1, sum(duration) FROM tacho.dispatch")[1] + self.sums(trace, "SELECT 1, sum(duration) FROM tacho.copy")[1]
                   + self.sums(trace, "SELECT 1, sum(duration) FROM tacho.fill")[1])
        [(resource, kind, stacks)] = self.profiles(self.export(trace, "-o", "run.otlp.jsonl")[1])
        self.assertEqual((kind, sum(stacks.values())), ("gpu", work))
        self.assertEqual(resource["process.executable.name"], "python3")
        self.assertTrue(all(stack[-1][1] == "device" for stack in stacks))
        kernels = self.sums(trace, "SELECT name, sum(duration) FROM tacho.dispatch GROUP BY name")
        longest = max(kernels, key=kernels.get)
        self.assertEqual(sum(value for stack, value in stacks.items() if stack[-1][0] == longest), kernels[longest][0])

    def test_telemetry_and_stacks_of_a_run(self):
        (self.folder / "busy.py").write_text(BUSY)
        trace = self.folder / "busy.tacho"
        self.run_command(TACHO, "trace", "--sampler", "timer", "--telemetry", "all", "-o", trace, "--", harness.DEBIAN_PYTHON, "busy.py")
        files = self.export(trace, "-o", "run.otlp.jsonl")
        metrics = self.metrics(files[0])
        times = {}
        for resource, metric, kind, points in metrics:
            if metric["name"] == "process.cpu.time":
                self.assertEqual((kind, metric["unit"], metric["sum"]["isMonotonic"]), ("sum", "s", True))
                if resource.get("process.command_line", "").endswith("busy.py"):
                    times.setdefault(attributes(points[0])["cpu.mode"], []).extend((int(p["timeUnixNano"]), p["asDouble"]) for p in points)
        self.assertEqual(set(times), {"user", "system"})
        for points in times.values():
            self.assertEqual(points, sorted(points))
        self.assertGreater(times["user"][-1][1], 0.2)
        memory = [p["asDouble"] for _, metric, _, points in metrics if metric["name"] == "process.memory.usage" for p in points]
        self.assertGreater(max(memory), 4 << 20)
        values = self.sums(trace, "SELECT 1, count(*) FROM tacho.reading WHERE value < 1e308")
        telemetry = [p for _, metric, _, points in metrics if metric["name"].startswith(("process.", "tacho.counter.", "hw."))
                     for p in points if "asDouble" in p and metric["name"] != "hw.gpu.utilization"]
        self.assertEqual(len(telemetry), values[1][0])
        folded = self.run_command(TACHO, "export", trace, "-f", "folded", "-o", "/dev/stdout").stdout.decode()
        host = sum(int(line.rpartition(" ")[2]) for line in folded.rstrip("\n").split("\n"))  # us
        found = [stacks for _, kind, stacks in self.profiles(files[1]) if kind in ("cpu", "wall", "cpu or wall")]
        self.assertGreater(len(found), 0)
        self.assertTrue(any(part == "cpython" for stacks in found for stack in stacks for _, part in stack))
        self.assertAlmostEqual(sum(sum(stacks.values()) for stacks in found) / 1e3, host, delta=0.01 * host)

    def test_sums_alone_and_standard_output(self):
        need_data()
        trace = DATA / "traces" / "kineto_h100_qwen1.5-0.5b.json.gz"
        said = self.run_command(TACHO, "export", trace, "-f", "otlp", "-o", "/dev/stdout")
        self.assertIn("standard output holds metrics alone", " ".join(said.stderr.decode().split()))
        for line in said.stdout.decode().rstrip("\n").split("\n"):
            self.assertEqual(list(json.loads(line)), ["resourceMetrics"])
        program = "import tacho\nfor i in range(5):\n    with tacho.range('step'):\n        pass\n"
        self.run_command(TACHO, "trace", "--aggregate", "-q", "-o", "sums.tacho", "--", harness.DEBIAN_PYTHON, "-c", program,
                         env={"PYTHONPATH": str(harness.SOURCE / "python")})
        files = self.export("sums.tacho")
        self.assertEqual([path.name for path in files], ["sums.otlp.jsonl"])
        [point] = [point for _, metric, _, points in self.metrics(files[0]) if metric["name"] == "tacho.range.duration" for point in points]
        self.assertEqual((attributes(point)["tacho.range.name"], point["count"]), ("step", "5"))

    def test_hard_names_and_unknown_durations(self):
        for words in (("any_bytes",), ("times",), ("beside_owners",), ("no_owners",), ("one_pid",)):
            self.run_command(BUILD / "tests" / "bad_trace", "t.tacho", *words)
            files = self.export("t.tacho", "-o", "t.otlp.jsonl", "--overwrite")
            self.metrics(files[0])
            counted = sum(int(point["count"]) for _, metric, _, points in self.metrics(files[0])
                          if metric["name"] == "tacho.gpu.kernel.duration" for point in points)
            known = self.sums("t.tacho", "SELECT 1, count(*), count(duration) FROM tacho.dispatch")[1]
            self.assertEqual(counted, known[1], words)
            if known[0] > known[1]:
                self.assertRegex(self.said, r"\d+ events? ha(s|ve) no known duration")
            if len(files) > 1:
                self.profiles(files[1])
            self.assertNotRegex(files[0].read_text(), r"\b(nan|inf|NaN|Infinity)\b")

    def test_nothing_half_written(self):
        need_data()
        trace = DATA / "traces" / "kineto_h100_qwen1.5-0.5b.json.gz"
        (self.folder / "run.profiles.otlp.jsonl").write_text("mine")
        self.export(trace, "-o", "run.otlp.jsonl", code=1)
        self.assertIn("run.profiles.otlp.jsonl exists", self.said)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["run.profiles.otlp.jsonl"])


if __name__ == "__main__":
    harness.main()
