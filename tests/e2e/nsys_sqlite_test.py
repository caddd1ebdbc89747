#!/usr/bin/env python3
"""The tables of nsys' SQLite export: queries as scripts for Nsight Systems have them give the numbers of tacho stats."""
import csv
import io
import json
import re
import sqlite3

from harness import BUILD, Case, DATA, EXAMPLES, TACHO, main, need_data

# The sums of nsys stats (cuda_gpu_kern_sum, cuda_api_sum, cuda_gpu_mem_time_sum, nvtx_sum), in its tables.
KERNELS = """SELECT s.value, count(*), sum(k."end" - k.start), min(k."end" - k.start), max(k."end" - k.start)
             FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName GROUP BY 1"""
CALLS = """SELECT s.value, count(*), sum(r."end" - r.start) FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId GROUP BY 1"""
COPIES = """SELECT e.label, count(*), sum(m."end" - m.start), sum(m.bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY m
            JOIN ENUM_CUDA_MEMCPY_OPER e ON e.id = m.copyKind GROUP BY 1"""
LAUNCHES = """SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
              ON r.correlationId = k.correlationId AND r.globalTid / 16777216 = k.globalPid / 16777216"""


class NsysSqlite(Case):
    def export(self, source, *options):
        self.said = self.run_command(TACHO, "export", source, "-f", "nsys-sqlite", "-o", "out.sqlite", "--overwrite", *options).stderr.decode()
        self.base = sqlite3.connect(self.folder / "out.sqlite")
        self.addCleanup(self.base.close)
        self.assertEqual(self.base.execute("PRAGMA integrity_check").fetchone(), ("ok",))

    def rows(self, sql):
        return self.base.execute(sql).fetchall()

    def stats(self, source, by):
        text = self.run_command(TACHO, "stats", source, "--by", by, "--output-format", "csv").stdout.decode()
        return {row["Name"]: row for row in csv.DictReader(io.StringIO(text))}

    def compare(self, source):
        self.export(source)
        kernels = {name: (str(count), str(total), str(least), str(most)) for name, count, total, least, most in self.rows(KERNELS)}
        self.assertEqual(kernels, {name: (row["Calls"], row["TotalDurationNs"], row["MinNs"], row["MaxNs"]) for name, row in self.stats(source, "kernel").items()})
        calls = {name: (str(count), str(total)) for name, count, total in self.rows(CALLS)}
        self.assertEqual(calls, {name: (row["Calls"], row["TotalDurationNs"]) for name, row in self.stats(source, "api").items()})
        return kernels

    def test_recorded_traces(self):
        need_data()
        for name in ("kineto_h100_qwen1.5-0.5b", "kineto_mi300x_resnet_checkpoint", "kineto_cupti_profiler"):
            with self.subTest(name):
                self.compare(DATA / "traces" / f"{name}.json.gz")
        self.compare(DATA / "traces" / "rocprofv3_gfx950_results.json.gz")
        self.assertEqual(self.rows("SELECT count(*), count(DISTINCT id), min(name) FROM TARGET_INFO_GPU"), [(8, 8, "AMD Instinct MI350X")], "CPUs are no GPUs")
        (kernels,), (joined,) = self.rows("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL")[0], self.rows(
            "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN TARGET_INFO_GPU g ON g.id = k.deviceId")[0]
        self.assertEqual(joined, kernels, "each kernel has one device")

    def test_kernels_meet_their_calls(self):
        need_data()
        self.export(DATA / "traces" / "kineto_h100_qwen1.5-0.5b.json.gz")
        self.assertRegex(" ".join(self.said.split()), r"\d+ operators and functions of Python are no API calls")
        (kernels,), (met,) = self.rows("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL")[0], self.rows(LAUNCHES)[0]
        self.assertEqual(kernels - met, 436, "those whose calls are not in the recording")
        grids = self.rows("SELECT DISTINCT gridX, blockX FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE registersPerThread > 0 AND gridX = 132")
        self.assertTrue(grids, "grids are in blocks")
        self.assertEqual(self.rows("SELECT name, smCount, totalMemory FROM TARGET_INFO_GPU WHERE smCount NOTNULL"), [("NVIDIA H100 80GB HBM3", 132, 85018279936)])

    def test_a_recorded_run(self):
        self.trace(EXAMPLES / "vcopy", output="run.tacho", options=["--overwrite"], env={"POCL_CACHE_DIR": str(BUILD / "pocl-cache")})
        self.compare("run.tacho")
        copies = dict((label, (count, size)) for label, count, _, size in self.rows(COPIES))
        self.assertTrue(copies)
        pids = {pid for (pid,) in self.rows("SELECT DISTINCT globalPid / 16777216 % 16777216 FROM CUPTI_ACTIVITY_KIND_KERNEL")}
        self.assertEqual(pids, {pid for (pid,) in self.rows("SELECT pid FROM PROCESSES WHERE pid IN (SELECT globalPid / 16777216 % 16777216 FROM "
                                                            "CUPTI_ACTIVITY_KIND_KERNEL)")})
        self.assertEqual(self.rows("SELECT count(*) FROM NVTX_EVENTS n WHERE eventType IN (34, 59, 60) AND text IS NOT (SELECT value FROM StringIds WHERE id = n.textId)"),
                         [(0,)])
        (start, utc), = self.rows("SELECT utcEpochNs, utcTime FROM TARGET_INFO_SESSION_START_TIME")
        self.assertGreater(start, 1_700_000_000_000_000_000)
        self.assertRegex(utc, r"^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d$")
        self.assertEqual(self.rows("SELECT min(start) >= 0 FROM CUPTI_ACTIVITY_KIND_RUNTIME"), [(1,)])

    def test_read_back(self):
        """tacho reads its own tables: the same sums by kernel, call, copy and marker."""
        need_data()
        for name in ("kineto_h100_qwen1.5-0.5b.json.gz", "kineto_cupti_profiler.json.gz", "rocprofv3_gfx950_results.json.gz"):
            with self.subTest(name):
                self.export(DATA / "traces" / name)
                for by in ("kernel", "copy"):
                    before, after = self.stats(DATA / "traces" / name, by), self.stats("out.sqlite", by)
                    for row in (*before.values(), *after.values()):
                        for column in ("StdDev", "AverageNs"):  # the same numbers in another order
                            row.pop(column, None)
                    self.assertEqual(after, before, by)
                calls = {label: (row["Calls"], row["TotalDurationNs"]) for label, row in self.stats("out.sqlite", "api").items()}
                self.assertEqual(calls, {label: (str(count), str(total)) for label, count, total in self.rows(CALLS)})
                # Those of pids above Linux' are torch.profiler's about itself. Ranges of GPUs count where the host has none of their name.
                markers = dict((label, str(count)) for label, count in self.rows(
                    """SELECT text, count(*) FROM NVTX_EVENTS WHERE eventType IN (59, 60) AND globalTid / 16777216 <= 4194304 GROUP BY 1
                       UNION ALL SELECT value, count(*) FROM TACHO_GPU_RANGES JOIN StringIds ON id = textId WHERE value NOT IN
                       (SELECT text FROM NVTX_EVENTS WHERE text NOTNULL) GROUP BY 1"""))
                after = {label: row["Calls"] for label, row in self.stats("out.sqlite", "marker").items()}
                self.assertEqual(after, markers)
                self.assertEqual(after, {label: row["Calls"] for label, row in self.stats(DATA / "traces" / name, "marker").items()})
                # The places of torch.profiler's own spans are no processes.
                said = [re.search(r"events of (.*)", self.run_command(TACHO, "info", file).stdout.decode())[1]
                        for file in (DATA / "traces" / name, "out.sqlite")]
                self.assertEqual(said[0], said[1])

    RANGES = """SELECT l.name, l.kind, l.category, t.kind, p.pid, d."index", t.native, m.start - (SELECT min(start) FROM api), m.duration, m.payload, m.fields
                FROM marker m JOIN label l ON l.id = m.dim JOIN track t ON t.id = m.track JOIN process p ON p.id = t.process
                LEFT JOIN device d ON d.id = t.device ORDER BY 1, 4, 8"""

    def test_ranges_of_gpus_are_not_ranges_of_the_host(self):
        def event(name, category, pid, tid, ts, dur, **args):
            return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}
        events = []
        for step in range(5, 8):
            at = 1000 * step
            events += [event(f"ProfilerStep#{step}", "user_annotation", 83, 83, at, 900, **{"External id": step}),
                       event("cudaLaunchKernel", "cuda_runtime", 83, 83, at + 10, 5, correlation=step),
                       event("k", "kernel", 1, 7, at + 200, 100, correlation=step, device=1, stream=7),
                       event(f"ProfilerStep#{step}", "gpu_user_annotation", 1, 7, at + 200, 300, device=1, stream=7, **{"External id": step})]
        (self.folder / "t.json").write_text(json.dumps({"traceEvents": events}))
        self.export("t.json")
        self.assertIn("3 ranges of GPUs lie in table TACHO_GPU_RANGES: NVTX_EVENTS has ranges of the host alone", " ".join(self.said.split()))
        self.assertEqual(self.rows("SELECT text, \"end\" - start FROM NVTX_EVENTS WHERE eventType = 59"), [(f"ProfilerStep#{step}", 900_000) for step in range(5, 8)])
        self.assertEqual(self.rows("SELECT value, deviceId, streamId, \"end\" - start FROM TACHO_GPU_RANGES JOIN StringIds ON id = textId"),
                         [(f"ProfilerStep#{step}", 1, 7, 300_000) for step in range(5, 8)])
        before, after = [self.run_command(TACHO, "query", file, "--dialect", "tacho", "--output-format", "csv", self.RANGES).stdout.decode()
                         for file in ("t.json", "out.sqlite")]
        self.assertEqual(after, before)
        self.assertEqual([line.split(",")[4] for line in after.splitlines()[1:]], ["83"] * 6)
        # Only queues of wanted processes.
        self.export("t.json", "--pid", "83")
        self.assertEqual(self.rows("SELECT count(*) FROM TACHO_GPU_RANGES"), [(3,)])

    def test_a_damaged_table_of_ranges(self):
        self.nsys([*self.TABLES.values(), "CREATE TABLE TACHO_GPU_RANGES (start, \"end\", eventType, deviceId, textId)"],
                  [*self.own_rows(), *(("INSERT INTO TACHO_GPU_RANGES VALUES (?, ?, ?, ?, ?)", row) for row in
                                       ((1, 5, 59, 0, 4), (None, 5, 59, 0, 4), (9, 5, 60, None, 99), ("x", "y", "z", "u", "v"), (7, None, 60, 0, 4)))])
        found = self.query("SELECT l.name, m.start, m.duration FROM marker m JOIN label l ON l.id = m.dim JOIN track t ON t.id = m.track WHERE t.kind = 'queue' ORDER BY m.start")
        self.assertEqual(found, [["main", "1", "4"], ["main", "7", ""], ["string 99", "9", ""]])

    def test_a_pid_of_two_processes(self):
        processes = "CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT)"
        def said(*rows):
            self.nsys([*self.TABLES.values(), processes], [*self.own_rows(), *(("INSERT INTO PROCESSES VALUES (?, ?, ?)", row) for row in rows)])
            return " ".join(self.run_command(TACHO, "info", "nsys.sqlite").stdout.decode().split())
        self.assertIn("PROCESSES has more than one name for pid 77: the file's tables know processes by their pid, and tacho shows those of one pid as one process",
                      said((self.PID, 77, "server"), (1 << 56 | self.PID, 77, "client"), (99 << 24, 99, "idle"), (99 << 24, 99, "idler")))
        self.assertNotIn("more than one name", said((self.PID, 77, "server"), (self.PID, 77, "server"), (99 << 24, 99, "idle"), (99 << 24, 99, "idler")))

    def test_tables_with_a_version_in_their_names(self):
        for versions in (("_V2",), ("_V2", "_V10")):
            renamed = [*[table.replace("CUPTI_ACTIVITY_KIND_KERNEL", f"CUPTI_ACTIVITY_KIND_KERNEL{version}").replace("NVTX_EVENTS", f"NVTX_EVENTS{version}")
                         for version in versions[-1:] for table in self.TABLES.values()],
                       *[self.TABLES["NVTX_EVENTS"].replace("NVTX_EVENTS", f"NVTX_EVENTS{version}") for version in versions[:-1]]]
            self.nsys(renamed, [(sql.replace("KIND_KERNEL", f"KIND_KERNEL{versions[-1]}").replace("NVTX_EVENTS", f"NVTX_EVENTS{versions[-1]}"), values)
                                for sql, values in self.own_rows()])
            self.assertEqual(self.query("SELECT k.name, d.duration FROM dispatch d JOIN kernel k ON k.id = d.dim"), [["kernel", "50"]])
            self.assertEqual(self.query("SELECT count(*) FROM marker"), [["3"]])
            self.assertNotIn("NVTX_EVENTS", self.run_command(TACHO, "info", "nsys.sqlite").stdout.decode())

    def test_kernels_that_were_not_measured(self):
        """CUPTI gives them start and end 0."""
        far = 10**12
        def rows(first):
            return [*(row for row in self.own_rows() if "KIND_" not in row[0] and "NVTX" not in row[0] and "OSRT" not in row[0]),
                    *(("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, 7, ?, ?, 1, 1, NULL, 2, 1, 1, 64, 1, 1)", (start, end, correlation, self.PID))
                      for start, end, correlation in ((0, 0, 5), (0, 0, 99), (first + 100, first + 150, 6))),
                    *(("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 0, ?, ?, 2, 0, NULL)", (first + at, first + at + 10, self.TID, correlation))
                      for at, correlation in ((20, 5), (50, 6)))]
        self.nsys(self.TABLES.values(), rows(far))
        self.assertEqual(self.query("SELECT start, duration FROM dispatch ORDER BY start"), [[str(far + 30), ""], [str(far + 100), "50"]])
        self.assertIn("2 kernels without times: the profiler did not measure them", " ".join(self.run_command(TACHO, "info", "nsys.sqlite").stdout.decode().split()))
        # Where the others are near, 0 is a time.
        self.nsys(self.TABLES.values(), rows(0))
        self.assertEqual(self.query("SELECT start, duration FROM dispatch ORDER BY start"), [["0", "0"], ["0", "0"], ["100", "50"]])

    def nsys(self, tables, rows=()):
        """A file as nsys makes it, with the tables given."""
        path = self.folder / "nsys.sqlite"
        path.unlink(missing_ok=True)
        with sqlite3.connect(path) as base:
            for table in tables:
                base.execute(table)
            for sql, values in rows:
                base.execute(sql, values)
        base.close()
        return path

    TABLES = {
        "StringIds": "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT)",
        "META_DATA_EXPORT": "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)",
        # As older versions have it, without greenContextId.
        "CUPTI_ACTIVITY_KIND_KERNEL": "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, \"end\" INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
                                      "contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, "
                                      "shortName INTEGER NOT NULL, mangledName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, "
                                      "blockZ INTEGER)",
        "CUPTI_ACTIVITY_KIND_RUNTIME": "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, \"end\" INTEGER NOT NULL, eventClass INTEGER NOT NULL, "
                                       "globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER)",
        "NVTX_EVENTS": "CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, \"end\" INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, "
                       "color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER)",
        "OSRT_API": "CREATE TABLE OSRT_API (start INTEGER NOT NULL, \"end\" INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER)"}
    PID, TID = 77 << 24, 77 << 24 | 78

    def own_rows(self):
        strings = ((1, "kernel"), (2, "cudaLaunchKernel_v7000"), (3, "registered"), (4, "main"))
        return [*(("INSERT INTO StringIds VALUES (?, ?)", pair) for pair in strings),
                ("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', ?)", ("3.11.0",)),
                ("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 150, 0, 1, 7, 5, ?, 1, 1, NULL, 2, 1, 1, 64, 1, 1)", (self.PID,)),
                ("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (50, 60, 0, ?, 5, 2, 0, NULL)", (self.TID,)),
                ("INSERT INTO NVTX_EVENTS VALUES (10, NULL, 75, NULL, NULL, NULL, 'model', ?, NULL, NULL, 9)", (self.TID,)),
                ("INSERT INTO NVTX_EVENTS VALUES (20, 90, 59, NULL, NULL, NULL, NULL, ?, NULL, 3, 9)", (self.TID,)),
                ("INSERT INTO NVTX_EVENTS VALUES (30, NULL, 34, NULL, NULL, NULL, 'own text', ?, NULL, NULL, 0)", (self.TID,)),
                ("INSERT INTO NVTX_EVENTS VALUES (40, 45, 70, NULL, NULL, NULL, 'of a text file', ?, NULL, NULL, 0)", (self.TID,)),
                ("INSERT INTO OSRT_API VALUES (1, 2, ?, 4)", (self.TID,))]

    def query(self, sql):
        text = self.run_command(TACHO, "query", "nsys.sqlite", "--dialect", "tacho", "--output-format", "csv", sql).stdout.decode()
        return list(csv.reader(io.StringIO(text)))[1:]

    def test_files_of_nsys(self):
        self.nsys(self.TABLES.values(), self.own_rows())
        self.assertEqual(self.query("SELECT l.name, l.domain, l.kind, m.start, m.duration FROM marker m JOIN label l ON l.id = m.dim ORDER BY m.start"),
                         [["registered", "model", "push/pop", "20", "70"], ["own text", "NVTX", "mark", "30", "0"], ["of a text file", "NVTX", "push/pop", "40", "5"]])
        self.assertEqual(self.query("SELECT name, domain FROM function WHERE id > 0"), [["cudaLaunchKernel", "cuda_runtime"]])
        self.assertEqual(self.query("SELECT name, grid_x, group_x FROM kernel WHERE id > 0"), [["kernel", "128", "64"]])
        self.assertEqual(self.query("SELECT p.pid, t.tid FROM thread t JOIN process p ON p.id = t.process WHERE t.id > 0"), [["77", "78"]])
        self.assertIn("rows of OSRT_API", self.run_command(TACHO, "info", "nsys.sqlite").stdout.decode())

    def test_tables_that_are_missing(self):
        for left in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "META_DATA_EXPORT"):
            with self.subTest(left):
                rows = [row for row in self.own_rows() if f" {left} " not in row[0]]
                self.nsys([sql for name, sql in self.TABLES.items() if name != left], rows)
                self.run_command(TACHO, "info", "nsys.sqlite")
                self.assertEqual(self.query("SELECT count(*) FROM dispatch"), [["0" if left.endswith("KERNEL") else "1"]])
        # Without StringIds it is no file of nsys.
        self.nsys(["CREATE TABLE other (id INTEGER)"])
        self.one_sentence(self.run_command(TACHO, "info", "nsys.sqlite", code=1), "no export of nsys")

    def test_folders(self):
        """A file of nsys in a folder is a trace, beside a recording of its name it is a repetition."""
        self.run_command(BUILD / "tests" / "bad_trace", "r0.tacho", "one_pid")
        (self.folder / "f").mkdir()
        self.run_command(TACHO, "export", "r0.tacho", "-f", "nsys-sqlite", "-o", "f/r0.sqlite")
        alone = self.run_command(TACHO, "ranks", "f", code=None).stderr.decode()
        self.assertIn("f/r0.sqlite", alone)
        (self.folder / "r0.tacho").rename(self.folder / "f/r0.tacho")
        beside = self.run_command(TACHO, "ranks", "f", code=None).stderr.decode()
        self.assertIn("f/r0.tacho", beside)
        self.assertNotIn("sqlite", beside)

    def test_bad_rows_are_counted(self):
        rows = self.own_rows()
        rows.append(("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ('x', 150, 0, 1, 7, 5, ?, 99, 99, NULL, 2, 1, 1, 64, 1, 1)", (self.PID,)))
        rows.append(("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (300, 200, 0, 1, 7, 6, ?, 99, 99, NULL, NULL, 1, 1, 64, 1, 1)", (self.PID,)))
        rows.append(("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', ?)", ("9.0.1",)))
        self.nsys(self.TABLES.values(), rows)
        told = self.run_command(TACHO, "info", "nsys.sqlite").stdout.decode()
        self.assertRegex(told, "1 .*bad input row")
        self.assertIn("schema version 9.0.1", " ".join(told.split()))
        self.assertEqual(self.query("SELECT k.name, d.duration FROM dispatch d JOIN kernel k ON k.id = d.dim WHERE d.start = 300"), [["string 99", ""]])

    def test_trace_writes_it(self):
        self.run_command(TACHO, "trace", "-q", "-f", "nsys-sqlite", "-o", "direct.sqlite", "--", EXAMPLES / "vcopy", env={"POCL_CACHE_DIR": str(BUILD / "pocl-cache")})
        base = sqlite3.connect(self.folder / "direct.sqlite")
        self.addCleanup(base.close)
        self.assertGreater(base.execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()[0], 0)

    def test_sums_have_no_events(self):
        self.run_command(TACHO, "trace", "-q", "--aggregate", "-o", "sums.tacho", "--", EXAMPLES / "vcopy", env={"POCL_CACHE_DIR": str(BUILD / "pocl-cache")})
        said = self.run_command(TACHO, "export", "sums.tacho", "-f", "nsys-sqlite", "-o", "s.sqlite", code=1).stderr.decode()
        self.assertIn("--aggregate", said)
        self.assertFalse((self.folder / "s.sqlite").exists())


if __name__ == "__main__":
    main()
