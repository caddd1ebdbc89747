"""`tacho view`: its server's answers about real traces are those of `tacho query`, and strangers get no answer."""
import base64
import gzip
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
import unittest

import harness
from harness import DATA, EXAMPLES, TACHO


class Server:
    """A running `tacho view` on a free port."""

    def __init__(self, *files, options=()):
        self.process = subprocess.Popen([str(TACHO), "view", "--no-open", "--port", "0", *options, *map(str, files)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{32})", self.url)
        if not found:
            self.process.kill()
            raise AssertionError(f"no address but {self.url!r}: {self.process.stderr.read()}")
        self.port, self.token = int(found[1]), found[2]

    def ask(self, path, method="GET", body=None, headers=None, token=True):
        """(status, bytes) of a request with the right Host and token unless the arguments differ."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body=body, headers={**({"X-Tacho-Token": self.token} if token else {}), **(headers or {})})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, data

    def get(self, path):
        status, data = self.ask(path)
        if status != 200:
            raise AssertionError(f"{path}: {status} {data!r}")
        return json.loads(data)

    def ready(self):
        for _ in range(600):
            document = self.get("/api/document")
            if all(run["ready"] == 1 for run in document["runs"]):
                return document
            time.sleep(0.05)
        raise AssertionError("the index does not become ready")

    def sql(self, statement, run=0):
        status, data = self.ask(f"/api/query?run={run}&dialect=tacho", "POST", statement)
        if status != 200:
            raise AssertionError(f"{statement}: {status} {data!r}")
        return json.loads(data)

    def stop(self):
        if self.process.poll() is not None:
            return
        self.process.terminate()
        self.process.wait(20)
        self.process.stdout.close()
        self.process.stderr.close()


def tiles(data):
    """Blocks of a tile's bytes: {track: (kind, slices)}; a slice is (start, duration, row, name, lane)."""
    blocks, at = {}, 0
    while at < len(data):
        magic, track, kind, level, lanes, count, size, flags = struct.unpack_from("<IIBBHIII", data, at)
        assert magic == 0x4C495454, hex(magic)
        assert size % 8 == 0 and flags == 0, (size, flags)
        slices = []
        if kind == 2:
            def column(form, offset):
                width = struct.calcsize(form)
                values = struct.unpack_from(f"<{count}{form}", data, offset)
                return values, offset + (count * width + 7) // 8 * 8
            offset = at + 32
            start, offset = column("d", offset)
            duration, offset = column("d", offset)
            row, offset = column("Q", offset)
            name, offset = column("I", offset)
            lane, offset = column("H", offset)
            _, offset = column("H", offset)
            assert offset == at + size, (offset, at + size)
            slices = list(zip(start, duration, row, name, lane))
        blocks[track] = (kind, slices)
        at += size
    return blocks


class Live:
    """A `tacho trace --view`, from its start on."""

    def __init__(self, case, *command):
        self.process = subprocess.Popen([str(TACHO), "trace", "--view", "-o", "v.tacho", "--", *map(str, command)], cwd=case.folder,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        case.addCleanup(self.process.kill)
        line = self.process.stderr.readline()
        found = re.match(r"tacho: http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{32}) shows the run while it is recorded$", line)
        case.assertTrue(found, line)
        self.port, self.token = int(found[1]), found[2]

    def ask(self, path, method="GET", body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body=body, headers={"X-Tacho-Token": self.token})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, data

    def sql(self, statement, generation):
        return json.loads(self.ask(f"/api/query?run=0&dialect=tacho&generation={generation}", "POST", statement)[1])["rows"][0][0]

    def until(self, condition):
        for _ in range(1200):
            document = json.loads(self.ask("/api/document")[1])
            if condition(document):
                return document
            time.sleep(0.05)
        raise AssertionError(f"it never was so: {document}")

    def stop(self):
        self.process.terminate()
        return self.process.communicate(timeout=60)


class View(harness.Case):
    def serve(self, *files, **more):
        server = Server(*files, **more)
        self.addCleanup(server.stop)
        return server

    def query(self, file, statement):
        result = self.run_command(TACHO, "query", file, statement, "--dialect", "tacho", "--output-format", "json")
        return json.loads(result.stdout)["rows"]

    def check(self, file):
        """Everything that the page shows of a trace, compared with `tacho query`."""
        server = self.serve(file)
        run = server.ready()["runs"][0]
        t0, length = int(run["t0"]), run["length"]
        self.assertEqual(run["events"], sum(self.query(file, f"SELECT count(*) FROM {table}")[0][0] for table in (
            "dispatch", "copy", "fill", "marker", "api", "sync", "overhead", "allocation", "sample", "reading")))
        # Sums of names.
        span = server.get("/api/span?run=0")
        frameworks = "dim IN (SELECT id FROM function WHERE domain IN ('operator', 'python', 'mpi', 'host', 'marker'))"
        for part, table in (("kernels", "dispatch"), ("calls", f"api WHERE NOT ({frameworks})"), ("operators", f"api WHERE {frameworks}"),
                            ("markers", "marker")):
            # Names are those of `tacho stats`: without the suffix of AMD's kernel descriptors.
            expected = {(name or "").removesuffix(".kd"): (count, total or 0) for name, count, total in self.query(
                file, f"SELECT name, count(*), sum(duration) FROM {table} GROUP BY name")}
            self.assertEqual({row["text"]: (row["count"], row["total"]) for row in span[part]}, expected, part)
        overview = server.get("/api/overview?run=0")
        busy = json.loads(self.run_command(TACHO, "busy", file, "--output-format", "json").stdout)
        if overview["totals"]["devices"] > 0:
            at = [column if isinstance(column, str) else column.get("name", column.get("title")) for column in busy["columns"]]
            column = next(i for i, name in enumerate(at) if "busy" in name.lower())
            self.assertEqual(overview["totals"]["gpu_busy"], sum(row[column] for row in busy["rows"]))
            for compute, exposed, both in zip(overview["compute"], overview["exposed_copies"], overview["busy"]):
                self.assertAlmostEqual(compute + exposed, both, places=5)
        # A part of the run: clipped sums.
        begin, end = int(length * 0.31), int(length * 0.62)
        part = server.get(f"/api/span?run=0&from={begin}&to={end}")
        clipped = self.query(file, f"SELECT name, sum(min(start + duration, {t0 + end}) - max(start, {t0 + begin})) FROM dispatch "
                                   f"WHERE start < {t0 + end} AND (start + duration > {t0 + begin} OR start >= {t0 + begin}) "
                                   "GROUP BY name")
        self.assertEqual({row["text"]: row["total"] for row in part["kernels"]}, {name.removesuffix(".kd"): total for name, total in clipped})
        # All slices of all lines, tile by tile at the level where a tile is the whole run or a part of it.
        level = 0
        while 512 << level < length:
            level += 1
        lines = ",".join(str(track["id"]) for track in run["tracks"])
        rows = {}
        for down in (0, 7):
            rows = {}
            for index in range((length >> (level - down) >> 9) + 1):
                status, data = server.ask(f"/api/tiles?run=0&level={level - down}&index={index}&tracks={lines}")
                self.assertEqual(status, 200)
                for kind, slices in tiles(data).values():
                    rows.update({row: (start, duration, name, lane) for start, duration, row, name, lane in slices})
            if len(rows) == run["events"]:
                break
        for number, table in ((0, "dispatch"), (4, "api")):
            expected = sorted((start - t0, duration) for start, duration in self.query(file, f"SELECT start, duration FROM {table}")
                              if duration is not None)
            got = sorted((start, duration) for row, (start, duration, _, _) in rows.items() if row >> 48 == number and duration >= 0)
            if len(got) == len(expected):  # else some tiles are dense at this level
                self.assertEqual(got, expected)
        # Search, and a slice with its links.
        if span["kernels"]:
            name = span["kernels"][0]
            found = server.get("/api/search?run=0&case=1&limit=5&q=" + re.escape(name["text"][:30]).replace(" ", "%20").replace("\\", "%5C").replace("&", "%26"))
            self.assertIn(name["text"], [each["text"] for each in found["names"]])
            self.assertTrue(found["hits"])
            row = found["hits"][0]["row"]
            slice_ = server.get(f"/api/slice?run=0&row={row}")
            self.assertEqual(slice_["start"], found["hits"][0]["start"])
            self.assertEqual(slice_["track"], found["hits"][0]["track"])
            kernel = server.get(f"/api/kernel?run=0&name={name['name']}")
            self.assertEqual((kernel["count"], kernel["total"]), (name["count"], name["total"]))
            self.assertEqual(sum(kernel["histogram"]["counts"]), name["count"])
        return server

    def test_recorded_traces_say_what_query_says(self):
        harness.need_data()
        for file in sorted((DATA / "traces").glob("*.gz")):
            with self.subTest(file.name):
                self.check(file).stop()

    def test_opencl_run(self):
        self.trace(EXAMPLES / "vcopy" if (EXAMPLES / "vcopy").exists() else next(EXAMPLES.rglob("vcopy")))
        server = self.check(self.folder / "t.tacho")
        slice_ = None
        for hit in server.get("/api/search?run=0&q=vecCopy&limit=3")["hits"]:
            slice_ = server.get(f"/api/slice?run=0&row={hit['row']}")
            if slice_["table"] == "dispatch":
                break
        self.assertEqual([link["how"] for link in slice_["links"]][:1], ["launched by"])
        back = server.get(f"/api/slice?run=0&row={slice_['links'][0]['row']}")
        self.assertIn("launched", [link["how"] for link in back["links"]])
        self.assertIn("grid", [title for title, _ in slice_["columns"]])

    def test_several_runs(self):
        harness.need_data()
        files = [DATA / "traces" / f"kineto_{name}_qwen1.5-0.5b.json.gz" for name in ("h100", "mi300x")]
        server = self.serve(*files)
        runs = server.ready()["runs"]
        self.assertEqual([run["name"] for run in runs], [file.name for file in files])
        for number, file in enumerate(files):
            self.assertEqual(server.sql("SELECT count(*) FROM dispatch", number)["rows"], self.query(file, "SELECT count(*) FROM dispatch"))
        self.assertEqual(server.ask("/api/overview?run=2")[0], 404)

    def computed(self, server, path):
        """An answer that the server may compute in the background."""
        for _ in range(600):
            answer = server.get(path)
            if "pending" not in answer:
                return answer
            time.sleep(0.05)
        raise AssertionError(f"{path} stays pending")

    def test_flame_graphs_and_differences(self):
        harness.need_data()
        traces = [DATA / "traces" / f"kineto_{name}.json.gz" for name in ("h100_qwen1.5-0.5b", "mi300x_qwen1.5-0.5b")]
        server = self.serve(*traces)
        self.assertEqual(server.ready()["views"], ["kernel", "sql", "flame", "diff"])
        for number, trace in enumerate(traces):
            flame = self.computed(server, f"/api/flame?run={number}")
            self.assertEqual((flame["stacks"], flame["folded"]["nodes"]), (True, 0))
            run = flame["runs"][0]
            work = sum(server.sql(f"SELECT coalesce(sum(duration), 0) FROM tacho.{table} WHERE duration >= 0", number)["rows"][0][0] for table in ("dispatch", "copy", "fill"))
            self.assertEqual((run["gpuNs"], sum(run["nodes"]["gpu"])), (work, work))
            # Kernels carry the number of their name.
            kernels = {name: kernel for name, kernel in zip(run["frames"]["name"], run["frames"]["kernel"]) if kernel}
            self.assertGreater(len(kernels), 5)
            names = server.get(f"/api/names?run={number}&ids=" + ",".join(map(str, kernels.values())))["names"]
            self.assertEqual(names, list(kernels))
        both = self.computed(server, "/api/flame?run=1&base=0")
        self.assertEqual([run["name"] for run in both["runs"]], [traces[1].name, traces[0].name])
        # tacho flame -b has the same frames: by functions unless lines are asked for.
        shared = {}
        for by, words in (("function", []), ("line", ["--by", "line"])):
            flame = self.computed(server, f"/api/flame?run=1&base=0&by={by}")
            if by == "function":
                self.assertEqual(flame, both)
            self.run_command(TACHO, "flame", traces[1], "-b", traces[0], *words, "-o", f"{by}.html")
            text = (self.folder / f"{by}.html").read_text()
            page = json.JSONDecoder().raw_decode(text, text.index('{"runs":'))[0]
            for mine, theirs in zip(flame["runs"], page["runs"]):
                del mine["frames"]["kernel"]
                mine["command"] = theirs["command"]
                self.assertEqual(mine, theirs)
            kernels = [{name for name, part in zip(run["frames"]["name"], run["frames"]["part"]) if part == "device"} for run in flame["runs"]]
            shared[by] = len(kernels[0] & kernels[1])
            self.assertEqual([run["gpuNs"] for run in flame["runs"]], [sum(run["nodes"]["gpu"]) for run in flame["runs"]])
        self.assertGreater(shared["function"], shared["line"])
        self.one_sentence(self.run_command(TACHO, "flame", traces[1], "-b", traces[0], "--by", "file", "-o", "x.html", code=1), "--by file", "function or line")
        # A span that holds all of it is the whole run; one of nothing has nothing.
        self.assertEqual(self.computed(server, "/api/flame?run=0&from=-1e15&to=1e15")["runs"], self.computed(server, "/api/flame?run=0")["runs"])
        self.assertEqual(self.computed(server, "/api/flame?run=0&from=1e15&to=2e15")["runs"][0]["gpuNs"], 0)
        for by in ("kernel", "api", "marker", "copy", "operator"):
            diff = self.computed(server, f"/api/diff?run=1&base=0&by={by}")
            expected = json.loads(self.run_command(TACHO, "diff", *traces, "--by", by, "--output-format", "json").stdout)
            self.assertEqual(([column["name"] for column in diff["columns"]], diff["rows"]), (expected["columns"], expected["rows"]))
            self.assertEqual(diff["count"], len(expected["rows"]))
            if by == "kernel":
                for (a, b), row in zip(diff["names"], diff["rows"]):
                    self.assertEqual((a != 0, b != 0), (row[3] > 0, row[4] > 0), row)
        align = self.computed(server, "/api/align?run=1&base=0")
        self.assertRegex(align["on"], "ProfilerStep")
        same = self.computed(server, "/api/align?run=0&base=0")
        self.assertEqual(same["a"], same["b"])

    def test_folder_of_ranks_is_one_timeline(self):
        harness.need_data()
        server = self.serve(DATA / "ranks4")
        run = server.ready()["runs"][0]
        self.assertEqual(sorted({track["rank"] for track in run["tracks"] if "rank" in track}), [0, 1, 2, 3])
        self.assertTrue(run["clock"].startswith("aligned"), run["clock"])
        expected = sum(self.query(file, "SELECT count(*) FROM dispatch")[0][0] for file in (DATA / "ranks4").glob("*.gz"))
        self.assertEqual(server.sql("SELECT count(*) FROM dispatch")["rows"], [[expected]])

    def test_trace_and_view(self):
        live = Live(self, "/bin/sh", "-c", "echo from the program; exit 3")
        document = live.until(lambda document: document["runs"] and not document["runs"][0]["live"])
        self.assertEqual(document["runs"][0]["name"], "v.tacho")
        output, errors = live.stop()
        self.assertEqual(live.process.returncode, 3, errors)
        self.assertEqual(output, "from the program\n")
        self.assertTrue((self.folder / "v.tacho").exists())

    def test_a_run_is_shown_while_it_is_recorded(self):
        if not (harness.TARGETS / "opencl_cases").exists():
            self.skipTest("the OpenCL programs are not built (no libOpenCL)")
        live = Live(self, harness.TARGETS / "opencl_cases", "killed", "12000")
        first = live.until(lambda document: document["runs"])["runs"][0]
        self.assertTrue(first["live"] and first["complete"], first)
        self.assertEqual(first["note"], "")
        count = lambda generation: live.sql("SELECT count(*) FROM api", generation)
        counted = count(first["generation"])
        grown = live.until(lambda document: document["runs"][0]["generation"] > first["generation"])["runs"][0]
        self.assertGreater(grown["events"], first["events"])
        self.assertEqual((grown["naming"], grown["t0"]), (first["naming"], first["t0"]))
        # The previous state is unchanged; one that never existed is refused.
        self.assertEqual(count(first["generation"]), counted)
        self.assertGreater(count(grown["generation"]), counted)
        self.assertEqual(live.ask("/api/overview?run=0&generation=999")[0], 409)
        self.assertEqual(live.ask("/api/overview?run=0&generation=x")[0], 400)
        # Names keep their numbers, and a span that was complete its sums.
        names = [json.loads(live.ask(f"/api/names?run=0&ids=1,2,3,4,5&generation={run['generation']}")[1]) for run in (first, grown)]
        self.assertEqual([name for name in names[0]["names"] if name], names[1]["names"][:len([name for name in names[0]["names"] if name])])
        end = first["length"] // 2
        span = lambda generation: json.loads(live.ask(f"/api/span?run=0&from=0&to={end}&generation={generation}")[1])["calls"]
        self.assertEqual(span(first["generation"]), span(grown["generation"]))
        done = live.until(lambda document: not document["runs"][0]["live"])["runs"][0]
        self.assertEqual(done["ready"], 1)
        self.assertEqual(count(done["generation"]), self.query("v.tacho", "SELECT count(*) FROM api")[0][0])
        _, errors = live.stop()
        self.assertEqual(live.process.returncode, 128 + 9, errors)
        self.assertEqual(list(self.folder.glob(".tacho*")), [])

    def test_the_page_of_a_run_is_seconds_behind_it(self):
        """Marks that name the moment at which they are set: how old the newest is when a state of the recording appears, and how old
        it has become when the next one does."""
        program = ("import ctypes, time\nmark = ctypes.CDLL(None).tacho_mark\nend = time.monotonic() + 8\nwhile time.monotonic() < end:\n"
                   "    mark(str(time.monotonic_ns()).encode())\n    time.sleep(0.02)\n")
        live = Live(self, harness.DEBIAN_PYTHON, "-c", program)
        seen, newest, lags, ages = 0, None, [], []
        while True:
            run = live.until(lambda document: document["runs"] and document["runs"][0]["generation"] > seen)["runs"][0]
            now, seen = time.monotonic_ns(), run["generation"]
            if not run["live"]:
                break
            if newest is not None:
                ages.append((now - newest) / 1e9)
            newest = live.sql("SELECT max(CAST(name AS INTEGER)) FROM marker", seen)
            lags.append((now - newest) / 1e9)
        live.stop()
        self.assertGreaterEqual(len(ages), 2, lags)
        self.assertGreater(min(lags), 0)
        self.assertLess(sorted(lags)[len(lags) // 2], 2, lags)
        self.assertLess(sorted(ages)[len(ages) // 2], 4, ages)

    def test_who_is_refused(self):
        harness.need_data()
        server = self.serve(DATA / "traces" / "kineto_cupti_profiler.json.gz")
        self.assertEqual(server.ask("/", token=False)[0], 403)
        self.assertEqual(server.ask("/?token=" + "0" * 32, token=False)[0], 403)
        self.assertEqual(server.ask("/?token=" + server.token, token=False)[0], 200)
        own = f"http://127.0.0.1:{server.port}"
        for headers, status in (({"Host": "evil.example"}, 403), ({"Host": f"evil.example:{server.port}"}, 403),
                                ({"Host": f"localhost:{server.port}"}, 200), ({"Origin": "https://evil.example"}, 403),
                                ({"Origin": "null"}, 403), ({"Origin": own}, 200), ({"Sec-Fetch-Site": "cross-site"}, 403),
                                ({"Sec-Fetch-Site": "same-origin"}, 200)):
            with self.subTest(headers=headers):
                self.assertEqual(server.ask("/api/document", headers=headers)[0], status)
        for path in ("/etc/passwd", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/api/", "/api/files", "//etc/passwd"):
            self.assertEqual(server.ask(path)[0], 404, path)
        self.assertEqual(server.ask("/api/document", "POST", "x")[0], 405)
        self.assertEqual(server.ask("/api/document", "DELETE")[0], 405)
        self.assertEqual(server.ask("/api/query", "GET")[0], 405)
        self.assertEqual(server.ask("/api/query", "POST", "x", {"Content-Length": str(2 << 20)})[0], 413)

    @unittest.skipUnless(shutil.which("strace"), "no strace (apt-get install strace)")
    def test_reads_nothing_but_what_was_named(self):
        harness.need_data()
        trace = self.folder / "mine" / "run.json.gz"
        trace.parent.mkdir()
        shutil.copy(DATA / "traces" / "kineto_cupti_profiler.json.gz", trace)
        (trace.parent / "other.json").write_text("{}")
        # A profile folder whose samples name files of the machine as their source.
        profile = self.folder / "profile"
        profile.mkdir()
        shutil.copy(DATA / "workloads" / "synth_a" / "MI200" / "sysinfo.csv", profile)
        (profile / "ps_file_kernel_trace.csv").write_text("Dispatch_Id,Kernel_Name,Start_Timestamp,End_Timestamp\n1,copy,100,1100\n")
        (profile / "ps_file_pc_sampling_stochastic.csv").write_text(
            "Sample_Timestamp,Dispatch_Id,Instruction,Instruction_Comment\n10,1,s_nop,/etc/hostname:1\n20,1,s_nop,../mine/other.json:1\n")
        server = self.serve(trace, profile)
        server.ready()
        log = self.folder / "opened"
        watcher = subprocess.Popen(["strace", "-f", "-qq", "-y", "-e", "trace=open,openat,openat2,creat,execve", "-o", log, "-p",
                                    str(server.process.pid)], stderr=subprocess.PIPE)
        self.addCleanup(watcher.kill)
        for _ in range(100):
            state = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
            if f"TracerPid:\t{watcher.pid}\n" in state:
                break
            if watcher.poll() is not None:
                self.skipTest(f"strace cannot attach here: {watcher.stderr.read().decode().strip()}")
            time.sleep(0.05)
        else:
            self.fail("strace did not attach")
        for path in ("/etc/passwd", "/../mine/other.json", "/api/overview?run=0", "/api/flame?run=0", "/api/diff?run=1&base=0&by=kernel",
                     "/api/span?run=0&from=0&to=1e9", "/api/search?run=0&q=a", "/api/schema", "/api/ranks?run=0"):
            server.ask(path)
        analysis = server.ask("/api/analysis?run=1")
        self.assertEqual(analysis[0], 200, analysis[1])
        self.assertIn("/etc/hostname:1", analysis[1].decode())  # the place, not the text
        self.assertEqual(json.loads(analysis[1])["pc_sources"], [])
        server.sql("SELECT name, count(*) FROM tacho.api GROUP BY name")
        watcher.send_signal(signal.SIGINT)
        watcher.wait(30)
        watcher.stderr.close()
        opened = re.findall(r'\b(?:open|openat|openat2|creat|execve)\([^"]*"([^"]*)"', log.read_text())
        self.assertTrue(any(str(profile) in path for path in opened), "the profile folder is read when it is asked for")
        temporary = os.environ.get("TMPDIR", "/tmp")
        for path in opened:
            with self.subTest(path):
                self.assertTrue(path in (str(trace), temporary, "/dev/urandom") or path.startswith((str(profile), "/proc/", "/sys/")), path)

    def test_odd_requests_get_a_sentence(self):
        harness.need_data()
        server = self.serve(DATA / "traces" / "kineto_cupti_profiler.json.gz")
        server.ready()
        huge = 1 << 70
        for path in ("/api/tiles", "/api/tiles?level=3", "/api/tiles?level=x&index=0&tracks=1", f"/api/tiles?level=1&index={huge}&tracks=0",
                     "/api/tiles?level=1&index=0&tracks=" + ",".join("1" * 5000), "/api/names?ids=a", "/api/span?from=x",
                     "/api/span?from=5&to=5", "/api/span?from=nan", "/api/slice?row=-1", f"/api/slice?row={huge}", "/api/slice?row=99999999",
                     "/api/search?q=%28", "/api/search?q=" + "a" * 5000, "/api/search?q=x&after=1", "/api/search?q=a%7B3000%7D",
                     "/api/kernel?name=0", "/api/kernel?name=4294967295", "/api/overview?run=x", "/api/flame?from=x", "/api/flame?base=7",
                     "/api/diff", "/api/diff?base=0&by=nothing", "/api/align?base=x"):
            with self.subTest(path[:60]):
                status, data = server.ask(path)
                self.assertEqual(status, 400, data)
                self.assertGreater(len(json.loads(data)["error"]), 10)
        for path in ("/api/tiles?level=0&index=0&tracks=", "/api/tiles?level=99&index=0&tracks=0,1,2", "/api/tiles?level=62&index=9000000000000000000&tracks=0",
                     "/api/tiles?level=5&index=-4&tracks=0", "/api/tiles?level=5&index=0&tracks=123456789", "/api/names?ids=4294967295",
                     "/api/search?q=", "/api/search?q=%5Cd%2B", "/api/span?from=-1e18&to=1e18"):
            with self.subTest(path[:60]):
                self.assertEqual(server.ask(path)[0], 200)
        for statement in ("DROP TABLE dispatch", "ATTACH '/etc/passwd' AS x", "SELECT 1; SELECT 2", "", "PRAGMA journal_mode=WAL",
                          "SELECT load_extension('x')", "SELECT readfile('/etc/passwd')"):
            with self.subTest(statement):
                status, data = server.ask("/api/query", "POST", statement)
                self.assertEqual(status, 400, data)
        cut = server.sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n")
        self.assertEqual((len(cut["rows"]), cut["cut"]), (10000, True))

    def test_slow_clients_hold_up_nobody(self):
        harness.need_data()
        server = self.serve(DATA / "traces" / "kineto_cupti_profiler.json.gz")
        slow = []
        for number in range(150):
            one = socket.create_connection(("127.0.0.1", server.port))
            # Half of them begin a request that never ends, half ask and read nothing.
            if number % 2 == 0:
                one.sendall(b"GET /api/doc")
            else:
                one.sendall(f"GET /?token={server.token} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
            slow.append(one)
        began = time.monotonic()
        for _ in range(5):
            self.assertEqual(server.ask("/api/document")[0], 200)
        self.assertLess(time.monotonic() - began, 5)
        for one in slow:
            one.close()

    def test_connections_stay_open(self):
        harness.need_data()
        server = self.serve(DATA / "traces" / "kineto_cupti_profiler.json.gz")
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        sockets = set()
        for _ in range(5):
            connection.request("GET", "/api/document", headers={"X-Tacho-Token": server.token})
            answer = connection.getresponse()
            self.assertEqual(answer.status, 200)
            answer.read()
            sockets.add(connection.sock.getsockname())
        self.assertEqual(len(sockets), 1)
        connection.close()

    def test_self_contained_page_holds_every_slice(self):
        harness.need_data()
        file = DATA / "traces" / "kineto_h100_qwen1.5-0.5b.json.gz"
        self.run_command(TACHO, "view", file, "-o", "run.html")
        text = (self.folder / "run.html").read_text()
        self.assertNotIn("connect-src 'self'", text)
        data = gzip.decompress(base64.b64decode(re.search(r'id="tacho-data"[^>]*>([^<]*)<', text)[1]))
        self.assertEqual(struct.unpack_from("<4sI", data), (b"TEMB", 2))
        end = len(data) - 4 - struct.unpack("<I", data[-4:])[0]
        header, columns = json.loads(data[end:-4]), data[8:end]

        def values(place):
            out, value, shift = [], 0, 0
            for byte in columns[place[0]:place[0] + place[1]]:
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    out.append(value)
                    value = shift = 0
            return out

        def differences(numbers):
            out, last = [], 0
            for number in numbers:
                last += number >> 1 ^ -(number & 1)
                out.append(last)
            return out

        t0 = int(header["document"]["runs"][0]["t0"])
        for number, table in ((0, "dispatch"), (4, "api")):
            self.assertEqual(header["tables"][number], table)
            got = []
            for line in header["lines"]:
                slices = line.get("slices", {"count": 0, "columns": {}})

                def column(name):
                    place = slices["columns"].get(name)
                    return [0] * slices["count"] if place is None else values(place)

                each = zip(differences(column("start")), column("duration"), column("name"), column("table"))
                got += [(s + t0, d - 1, header["names"]["texts"][n]) for s, d, n, of in each if of == number]
            self.assertEqual(sorted(got), sorted((s, d, n) for s, d, n in self.query(file, f"SELECT start, duration, name FROM {table}")))
        again = self.run_command(TACHO, "view", file, "-o", "run.html", code=1)
        self.assertIn(b"--overwrite", again.stderr)

    def test_what_cannot_be_opened(self):
        for words, needle in ((["nothing.tacho"], "nothing.tacho"), ([], "FILE is missing"), (["--port", "99999", "x"], "--port")):
            result = self.run_command(TACHO, "view", "--no-open", *words, code=1)
            self.assertIn(needle, result.stderr.decode())
            self.assertEqual(result.stderr.count(b"\n"), 1, result.stderr)


if __name__ == "__main__":
    harness.main()
