"""Traces as databases: .rpd and rocpd read, written, queried, converted, trimmed, merged and compared, judged by Python's
own SQLite, by upstream's schema and by the files' own numbers."""
import collections
import gzip
import json
import os
import shutil
import sqlite3
import time
from decimal import Decimal

import engines
from harness import BUILD, DATA, DEBIAN_PYTHON, EXAMPLES, SOURCE, TACHO, Case, main, need_data, TARGETS

PERSONALITIES = BUILD / "personalities"
RPD_VIEWS = ["top", "ktop", "busy", "api", "op", "kernel", "copy", "copyop"]
BLOG_OBJECTS = {
    "table": {"rocpd_kernelcodeobject", "sqlite_sequence", "rocpd_string", "rocpd_barrierop", "rocpd_copyapi", "rocpd_op_inputSignals",
              "rocpd_op", "rocpd_api", "rocpd_api_ops", "rocpd_kernelapi", "rocpd_metadata", "rocpd_monitor"},
    "view": {"api", "op", "busy", "ktop", "top", "kernel", "copy", "copyop"},
}
ROCPD_VIEWS = {"code_objects", "kernel_symbols", "processes", "threads", "regions", "region_args", "samples", "sample_regions",
               "regions_and_samples", "kernels", "pmc_info", "pmc_events", "events_args", "stream_args", "memory_copies",
               "memory_allocations", "scratch_memory", "counters_collection", "top_kernels", "busy", "top"}
# Statements that find rows which refer to rows that are not there.
RPD_ORPHANS = [
    "SELECT count(*) FROM rocpd_api_ops WHERE api_id NOT IN (SELECT id FROM rocpd_api) OR op_id NOT IN (SELECT id FROM rocpd_op)",
    "SELECT count(*) FROM rocpd_kernelapi WHERE api_ptr_id NOT IN (SELECT id FROM rocpd_api)",
    "SELECT count(*) FROM rocpd_copyapi WHERE api_ptr_id NOT IN (SELECT id FROM rocpd_api)",
    "SELECT count(*) FROM rocpd_api WHERE apiName_id NOT IN (SELECT id FROM rocpd_string)",
    "SELECT count(*) FROM rocpd_op WHERE description_id NOT IN (SELECT id FROM rocpd_string) OR opType_id NOT IN (SELECT id FROM rocpd_string)",
]


def rows(path, sql):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        return [list(row) for row in db.execute(sql)]


class Databases(Case):
    def query(self, path, sql, *options):
        return json.loads(self.run_command(TACHO, "query", path, sql, "--output-format", "json", *options).stdout)["rows"]

    def export(self, path, form, output, *options):
        self.run_command(TACHO, "export", path, "-f", form, "-o", output, *options)
        return self.folder / output

    def vcopy(self, *options, output="v.tacho"):
        self.run_command(TACHO, "trace", "-q", "-o", output, *options, "--", EXAMPLES / "vcopy", "-n", "65536")
        return self.folder / output

    def writable(self, name):
        """A copy of a real .rpd that tools which write to their input can be given."""
        need_data()
        copy = self.folder / name
        shutil.copyfile(DATA / "rpd" / name, copy)
        return copy

    def same_views(self, path, names, prefix="", other=None):
        for name in names:
            with self.subTest(view=name, file=str(path)):
                self.assertEqual(self.query(other or path, f"SELECT * FROM {prefix}{name}"), rows(path, f"SELECT * FROM {name}"))


class Query(Databases):
    def test_views_equal_sqlites_row_for_row_and_in_order(self):
        need_data()
        for name in ("matmul_result.rpd", "mytrace.rpd"):
            self.same_views(DATA / "rpd" / name, RPD_VIEWS)

    def test_views_of_schema_3(self):
        need_data()
        path = self.export(DATA / "rpd" / "mytrace.rpd", "rpd", "three.rpd", "--rpd-schema", "3")
        self.assertEqual(rows(path, "SELECT value FROM rocpd_metadata WHERE tag = 'schema_version'"), [["3"]])
        self.assertEqual(rows(path, "SELECT count(*) FROM sqlite_master WHERE name = 'ktop'"), [[0]])
        self.same_views(path, ["top", "busy", "api", "op", "kernel", "copy", "copyop", "napi", "nop", "stackframe"])

    def test_schema_3_is_read_as_schema_2_is(self):
        need_data()
        old = DATA / "rpd" / "mytrace.rpd"
        new = self.export(old, "rpd", "three.rpd", "--rpd-schema", "3")
        for sql in ("SELECT name, count(*), sum(duration) FROM tacho.dispatch GROUP BY name ORDER BY name",
                    "SELECT name, tid, count(*), sum(duration), min(start) FROM tacho.api GROUP BY name, tid ORDER BY name, tid",
                    "SELECT name, count(*), sum(duration) FROM tacho.marker GROUP BY name ORDER BY name",
                    "SELECT name, count(*), sum(duration), sum(bytes) FROM tacho.copy GROUP BY name ORDER BY name"):
            self.assertEqual(self.query(new, sql), self.query(old, sql), sql)

    def test_expressions_equal_sqlites(self):
        need_data()
        path = DATA / "rpd" / "mytrace.rpd"
        for sql in ("SELECT apiName, count(*), min(start), max(\"end\") FROM api GROUP BY apiName ORDER BY apiName",
                    "SELECT gpuId, opType, count(*), sum(\"end\" - start) FROM op GROUP BY gpuId, opType ORDER BY opType",
                    "SELECT count(*) FROM op WHERE start > 3489389400000000 AND description LIKE 'Cijk%'",
                    "SELECT A.apiName, B.opType, count(*) FROM rocpd_api_ops L JOIN api A ON A.id = L.api_id JOIN op B ON B.id = L.op_id GROUP BY 1, 2 ORDER BY 1, 2",
                    "SELECT description, avg(\"end\" - start) FROM op WHERE opType = 'KernelExecution' GROUP BY description HAVING count(*) > 50 ORDER BY 2 DESC LIMIT 5",
                    "SELECT id FROM api WHERE args LIKE '%aten::mm%' ORDER BY start DESC LIMIT 7",
                    "SELECT * FROM rocpd_op WHERE id BETWEEN 4294967400 AND 4294967405"):
            self.assertEqual(self.query(path, sql), rows(path, sql), sql)

    def test_sums_and_joins_equal_sqlites_over_every_kind_of_file(self):
        """Statements that are computed column by column, and neighbours of them that are not: in place, over a .tacho made of
        the file, and what SQLite says."""
        need_data()
        path = DATA / "rpd" / "mytrace.rpd"
        self.run_command(TACHO, "merge", path, "-o", "same.tacho")
        by_id = "rocpd_api_ops L JOIN api A ON A.id = L.api_id JOIN op O ON O.id = L.op_id"
        for sql in (
                f"SELECT apiName, opType, count(*) FROM {by_id} GROUP BY 1, 2",
                f"SELECT apiName, opType, count(*), sum(O.end - O.start), max(O.start - A.end) FROM {by_id} GROUP BY apiName, opType ORDER BY 3 DESC, 1, 2",
                f"SELECT count(*), sum(O.end - O.start) FROM {by_id} WHERE apiName LIKE 'hip%Launch%' AND opType = 'KernelExecution'",
                f"SELECT A.apiName AS call, count(*) AS n FROM {by_id} WHERE O.start > 3489389400000000 GROUP BY call HAVING count(*) > 100 AND min(O.end - O.start) >= 1000 ORDER BY n DESC, call",
                "SELECT A.tid, count(*), avg(O.end - O.start) FROM rocpd_api_ops L, rocpd_api A, rocpd_op O WHERE A.id = L.api_id AND L.op_id = O.id GROUP BY A.tid ORDER BY 2 DESC",
                "SELECT S.string, count(*) FROM rocpd_kernelapi K JOIN rocpd_string S ON S.id = K.kernelName_id GROUP BY S.string",
                "SELECT S.string, count(*) AS launches, sum(A.end - A.start) / count(*) FROM rocpd_kernelapi AS K INNER JOIN rocpd_api AS A ON (A.id = K.api_ptr_id) "
                "JOIN rocpd_string AS S ON S.id = K.kernelName_id GROUP BY 1 HAVING count(*) > 3 ORDER BY launches DESC, S.string LIMIT 7",
                "SELECT (end - start) / 1000 AS us, count(*) FROM rocpd_op GROUP BY us ORDER BY 2 DESC, 1 LIMIT 20",
                "SELECT (end - start) % 7, count(*), min(start), max(end) FROM rocpd_api GROUP BY (end - start) % 7",
                "SELECT start / 10000000, opType, sum(end - start) / 1000.0 FROM op GROUP BY start / 10000000, opType",
                "SELECT (end - start) / (start - start), count(*) FROM rocpd_op GROUP BY 1",
                "SELECT count(*), min(start), sum(end - start), avg(start), total(end) FROM op WHERE start < 0",
                "SELECT opType, count(*) FROM op WHERE start < 0 GROUP BY opType",
                "SELECT description, count(*) FROM op GROUP BY description ORDER BY count(*) DESC, description DESC LIMIT 3",
                "SELECT description, opType, count(*) FROM op GROUP BY opType, description ORDER BY opType DESC, description",
                "SELECT gpuId, count(DISTINCT description) FROM op GROUP BY gpuId",
                "SELECT A.apiName, count(*) FROM api A LEFT JOIN rocpd_api_ops L ON L.api_id = A.id WHERE A.apiName LIKE 'hipMemcpy%' GROUP BY 1",
                "SELECT count(*) FROM rocpd_api A JOIN rocpd_api B ON A.id = B.id AND A.start = B.start",
                "SELECT sum(length(description)) FROM op"):
            expected = [[round(cell, 6) if isinstance(cell, float) else cell for cell in row] for row in rows(path, sql)]
            for file in (path, "same.tacho"):
                got = [[round(cell, 6) if isinstance(cell, float) else cell for cell in row] for row in self.query(file, sql)]
                self.assertEqual(got, expected, f"{file}: {sql}")

    def test_only_reading(self):
        path = self.writable("matmul_result.rpd")
        before = path.read_bytes()
        for sql in ("DELETE FROM rocpd_api", "DROP VIEW top", "ATTACH 'x.db' AS x", "PRAGMA writable_schema = 1", "CREATE TABLE t (a)", "SELECT load_extension('x')",
                    "SELECT 1; SELECT 2", "", "SELEC 1", "SELECT * FROM nothing"):
            result = self.run_command(TACHO, "query", path, sql, code=1)
            self.one_sentence(result)
        self.assertEqual(path.read_bytes(), before)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["matmul_result.rpd"])

    def test_output_formats_and_schema(self):
        need_data()
        path = DATA / "rpd" / "matmul_result.rpd"
        text = self.run_command(TACHO, "query", path, "SELECT opType, count(*) AS n FROM op GROUP BY 1 ORDER BY 1").stdout.decode()
        self.assertIn("KernelExecution", text)
        csv = self.run_command(TACHO, "query", path, "SELECT opType, count(*) AS n FROM op GROUP BY 1 ORDER BY 1", "--output-format", "csv").stdout.decode()
        self.assertEqual(csv.splitlines()[0].replace('"', ""), "opType,n")
        schema = self.run_command(TACHO, "query", path, "--schema").stdout.decode()
        for name in ("rocpd_kernelapi", "ktop", "gpuId"):
            self.assertIn(name, schema)
        self.assertIn("rocpd_kernel_dispatch", self.run_command(TACHO, "query", path, "--schema", "--dialect", "rocpd").stdout.decode())

    def test_explain_names_the_engine(self):
        need_data()
        path = DATA / "rpd" / "matmul_result.rpd"
        for sql, engine, step in (("SELECT opType, count(*) FROM op GROUP BY opType", "columns", "group by opType"),
                                  ("SELECT description FROM op ORDER BY start LIMIT 3", "virtual", "SCAN op VIRTUAL TABLE"),
                                  ("SELECT A.id FROM api A JOIN rocpd_api_ops L ON A.id = L.api_id", "file", "SCAN L"),
                                  ("SELECT name FROM tacho.dispatch ORDER BY start", "virtual", "VIRTUAL TABLE")):
            lines = self.run_command(TACHO, "query", "--explain", path, sql).stdout.decode().splitlines()
            self.assertEqual(lines[0].split(), ["engine", engine], sql)
            self.assertTrue(lines[1].startswith("reason  "), lines)
            self.assertIn(step, "\n".join(lines[2:]), sql)
            answer = json.loads(self.run_command(TACHO, "query", "--explain", path, sql, "--output-format", "json").stdout)
            self.assertEqual(answer["columns"], ["part", "text"])
            self.assertEqual(answer["rows"][0], ["engine", engine])
        for sql in ("DELETE FROM rocpd_api", "SELECT 1; SELECT 2", "SELEC 1", "SELECT nothing, count(*) FROM op"):
            self.one_sentence(self.run_command(TACHO, "query", "--explain", path, sql, code=1))

    def test_columns_that_are_no_numbers_are_left_to_sqlite(self):
        path = self.writable("matmul_result.rpd")
        with sqlite3.connect(path) as db:
            ids = [row[0] for row in db.execute("SELECT id FROM rocpd_op ORDER BY id LIMIT 3")]
            for number, value in zip(ids, ("text", 2.5, -2 ** 63)):
                db.execute("UPDATE rocpd_op SET queueId = ? WHERE id = ?", (value, number))
        for sql in ("SELECT sum(queueId), max(queueId), count(queueId) FROM op", "SELECT queueId, count(*) FROM rocpd_op GROUP BY queueId"):
            self.assertEqual(self.query(path, sql), rows(path, sql), sql)

    def test_top_and_busy_are_right_where_upstreams_views_are_not(self):
        path = self.writable("matmul_result.rpd")
        with sqlite3.connect(path) as db:
            # A second GPU with an operation of equal name and times: the view's UNION drops it, busy is per GPU.
            row = db.execute("SELECT queueId, sequenceId, completionSignal, start, end, description_id, opType_id FROM rocpd_op WHERE id = 3").fetchone()
            db.execute("INSERT INTO rocpd_op(gpuId, queueId, sequenceId, completionSignal, start, end, description_id, opType_id) VALUES (3, ?, ?, ?, ?, ?, ?, ?)", row)
        name = rows(path, "SELECT description FROM op WHERE id = 3")[0][0]
        view = {row[0]: row[1] for row in self.query(path, "SELECT * FROM rpd.top")}
        self.assertEqual(view, {row[0]: row[1] for row in rows(path, "SELECT * FROM top")})
        self.assertEqual(view[name], 1)
        result = self.run_command(TACHO, "top", path, "--output-format", "json")
        table = json.loads(result.stdout)
        titles = [column["title"] if isinstance(column, dict) else column for column in table["columns"]]
        calls = {row[titles.index("Name")]: row[titles.index("Calls")] for row in table["rows"]}
        self.assertEqual(calls[name], 2)
        self.assertIn("rpd.top", result.stderr.decode())


class Kineto(Databases):
    QUERIES = {
        "kernel": "SELECT name, count(*), sum(duration) FROM tacho.dispatch GROUP BY name",
        "gpu_memcpy": "SELECT 'all', count(*), sum(duration) FROM tacho.copy",
        "gpu_memset": "SELECT 'all', count(*), sum(duration) FROM tacho.fill",
        "runtime": "SELECT A.name, count(*), sum(duration) FROM tacho.api A JOIN tacho.function F ON F.id = A.dim WHERE F.domain NOT IN ('operator', 'python') GROUP BY 1",
        "cpu_op": "SELECT A.name, count(*), sum(duration) FROM tacho.api A JOIN tacho.function F ON F.id = A.dim WHERE F.domain = 'operator' GROUP BY 1",
        "python_function": "SELECT A.name, count(*), sum(duration) FROM tacho.api A JOIN tacho.function F ON F.id = A.dim WHERE F.domain = 'python' GROUP BY 1",
        "marker": "SELECT name, count(*), sum(duration) FROM tacho.marker GROUP BY name",
    }
    KINDS = {"cuda_runtime": "runtime", "cuda_driver": "runtime", "user_annotation": "marker", "gpu_user_annotation": "marker", "Trace": "marker", "cuda_profiler_range": "marker"}

    def test_counts_and_sums_of_every_name_equal_the_files_own(self):
        need_data()
        files = sorted((DATA / "traces").glob("kineto_*.json.gz"))
        self.assertGreaterEqual(len(files), 5)
        for path in files:
            want = {kind: {} for kind in self.QUERIES}
            for event in json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)["traceEvents"]:
                kind = self.KINDS.get(event.get("cat"), event.get("cat"))
                if event.get("ph") == "i" and event["name"] != "[memory]":  # those are readings of a counter
                    kind = "marker"
                elif event.get("ph") != "X":
                    continue
                name = "all" if kind in ("gpu_memcpy", "gpu_memset") else event["name"]
                count, total = want[kind].get(name, (0, 0))
                want[kind][name] = (count + 1, total + round(Decimal(event.get("dur", 0)) * 1000))
            recording = self.folder / "t.tacho"
            self.run_command(TACHO, "merge", path, "-o", recording)
            for kind, sql in self.QUERIES.items():
                got = {row[0]: (row[1], row[2] or 0) for row in self.query(recording, sql) if row[1] > 0}
                self.assertEqual(got, want[kind], f"{path.name}: {kind}")
            recording.unlink()

    def test_plain_json_and_gzip_are_the_same(self):
        need_data()
        path = DATA / "traces" / "kineto_mi250_toy_rocm6.2.json.gz"
        (self.folder / "plain.json").write_bytes(gzip.decompress(path.read_bytes()))
        sql = "SELECT name, count(*), sum(duration) FROM tacho.dispatch GROUP BY name ORDER BY name"
        self.assertEqual(self.query("plain.json", sql), self.query(path, sql))

    def test_the_same_model_on_two_vendors_compares_by_operator(self):
        need_data()
        amd, nvidia = (DATA / "traces" / f"kineto_{name}_qwen1.5-0.5b.json.gz" for name in ("mi300x", "h100"))

        def device_time(path):
            """ns of device work by the innermost operator around its launch, from the JSON itself."""
            events = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)["traceEvents"]
            names = {event["args"]["External id"]: event["name"] for event in events if event.get("cat") == "cpu_op"}
            total = collections.Counter()
            for event in events:
                if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
                    total[names.get(event["args"].get("External id"), "(no operator)")] += round(Decimal(event["dur"]) * 1000)
            return total

        table = json.loads(self.run_command(TACHO, "diff", "--by", "operator", amd, nvidia, "--output-format", "json").stdout)
        titles = [column["title"] if isinstance(column, dict) else column for column in table["columns"]]
        got = {row[titles.index("name")]: (row[titles.index("total_a_ns")] or 0, row[titles.index("total_b_ns")] or 0) for row in table["rows"]}
        a, b = device_time(amd), device_time(nvidia)
        self.assertEqual(got, {name: (a[name], b[name]) for name in a.keys() | b.keys()})
        both = [name for name, (x, y) in got.items() if x and y]
        self.assertGreaterEqual(len(both), 10)
        kernels = {row[0] for row in self.query(amd, "SELECT DISTINCT name FROM tacho.dispatch")}
        others = {row[0] for row in self.query(nvidia, "SELECT DISTINCT name FROM tacho.dispatch")}
        self.assertLess(len(kernels & others), len(kernels | others) / 2)
        # B takes 6 % longer.
        self.run_command(TACHO, "diff", "--by", "operator", amd, nvidia, "--fail-above", "5%", code=3)
        self.run_command(TACHO, "diff", "--by", "operator", amd, nvidia, "--fail-above", "50%", code=0)

    def test_what_cannot_be_compared_is_called_by_its_name(self):
        need_data()
        path = DATA / "rpd" / "matmul_result.rpd"
        self.one_sentence(self.run_command(TACHO, "diff", "--by", "operator", path, path, code=1), "matmul_result.rpd")


class EveryCommand(Databases):
    def inputs(self):
        need_data()
        yield DATA / "rpd" / "matmul_result.rpd"
        yield DATA / "traces" / "kineto_mi250_toy_rocm6.2.json.gz"
        yield DATA / "traces" / "rocprofv3_gfx950_results.json.gz"
        yield self.export(DATA / "rpd" / "matmul_result.rpd", "rocpd", "m.db")
        self.run_command(TACHO, "export", DATA / "rpd" / "matmul_result.rpd", "-f", "csv", "-d", "csv")
        yield self.folder / "csv"

    def test_each_takes_any_format(self):
        for path in self.inputs():
            with self.subTest(input=path.name):
                count = self.query(path, "SELECT count(*) FROM tacho.dispatch")[0][0]
                self.assertGreater(count, 0)
                for command in (["info", path], ["stats", path], ["top", path], ["busy", path], ["report", "gaps", path], ["diff", path, path],
                                ["query", path, "SELECT * FROM rpd.top"], ["query", path, "SELECT * FROM rocpd.top"],
                                ["export", path, "-f", "pftrace", "-o", "t.pftrace", "--overwrite"], ["export", path, "-f", "json", "-o", "t.json", "--overwrite"]):
                    self.assertTrue(self.run_command(TACHO, *command).stdout, command)
                json.loads((self.folder / "t.json").read_text())
                self.run_command(TACHO, "trim", path, "t.tacho", "--start", "10%", "--end", "90%")
                self.run_command(TACHO, "merge", path, path, "-o", "two.tacho")
                self.assertEqual(self.query("two.tacho", "SELECT count(*) FROM tacho.dispatch"), [[2 * count]])
                for name in ("t.tacho", "two.tacho"):
                    (self.folder / name).unlink()

    def test_csv_folders_come_back_as_they_were(self):
        need_data()
        for source in (DATA / "rpd" / "mytrace.rpd", self.vcopy()):
            self.run_command(TACHO, "export", source, "-f", "csv", "-d", "first", "--overwrite")
            self.run_command(TACHO, "export", "first", "-f", "csv", "-d", "second", "--overwrite")
            files = sorted(path.name for path in (self.folder / "first").glob("*_trace.csv"))
            self.assertGreaterEqual(len(files), 4)
            for name in files:
                self.assertEqual((self.folder / "second" / name).read_bytes(), (self.folder / "first" / name).read_bytes(), name)
            shutil.rmtree(self.folder / "first")
            shutil.rmtree(self.folder / "second")

    def test_csv_of_several_hosts_and_older_versions(self):
        for host, pid in (("node1", 11), ("node2", 11)):
            folder = self.folder / "d" / host
            folder.mkdir(parents=True)
            # As ROCm 6.2 wrote it: no Stream_Id, other order.
            (folder / f"{pid}_kernel_trace.csv").write_text(
                '"Kind","Agent_Id","Queue_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp","Private_Segment_Size",'
                '"Group_Segment_Size","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"\n'
                '"KERNEL_DISPATCH",1,1,5,"a, ""quoted"" name",7,100,250,0,0,64,1,1,1024,1,1\n'
                '"KERNEL_DISPATCH",1,1,5,"bad row",7,xyz,250,0,0,64,1,1,1024,1,1\n')
            (folder / f"{pid}_hip_api_trace.csv").write_text(
                '"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"\n"HIP_RUNTIME_API","hipLaunchKernel",11,12,7,50,90\n')
        self.assertEqual(self.query("d", "SELECT name, count(*), sum(duration) FROM tacho.dispatch GROUP BY name"), [['a, "quoted" name', 2, 300]])
        self.assertEqual(self.query("d", "SELECT host, pid FROM tacho.process WHERE id > 0 ORDER BY host"), [["node1", 11], ["node2", 11]])
        self.assertEqual(self.query("d", "SELECT reason, sum(count) FROM tacho.loss GROUP BY reason"), [["bad input row", 2]])
        # Launches are tied to their calls.
        self.assertEqual(self.query("d", "SELECT count(*) FROM rpd.rocpd_api_ops"), [[2]])


class Report(Databases):
    """Every report beside a few lines of Python over the file's own rows."""

    def setUp(self):
        super().setUp()
        need_data()
        self.source = DATA / "rpd" / "mytrace.rpd"
        self.ops = rows(self.source, "SELECT start, end, description, opType NOT LIKE 'Copy%', id FROM op ORDER BY start, id")
        self.calls = {row[0]: row[1:] for row in rows(self.source, "SELECT L.op_id, A.start, A.end, A.apiName FROM rocpd_api_ops L JOIN api A ON A.id = L.api_id")}

    def report(self, what, *options):
        table = json.loads(self.run_command(TACHO, "report", what, self.source, "--output-format", "json", *options).stdout)
        return [dict(zip(table["columns"], row)) for row in table["rows"]]

    def test_bins(self):
        want = [[0, 0] for _ in range(4)]
        for start, end, *_ in self.ops:
            one = want[sum(end - start >= bound for bound in (5000, 20_000, 1_000_000))]
            one[0] += 1
            one[1] += end - start
        self.assertEqual([[row["count"], row["total_ns"]] for row in self.report("binop", "--bins", "5us,20us,1ms")], want)

    def test_overlap_and_gaps(self):
        steps = sorted([(start, 1, kernel) for start, _, _, kernel, _ in self.ops] + [(end, -1, kernel) for _, end, _, kernel, _ in self.ops])
        times, open_kernels, open_others, last = collections.Counter(), 0, 0, steps[0][0]
        for time_, change, kernel in steps:
            times[open_kernels + open_others] += time_ - last
            times["kernels"] += (time_ - last) * (open_kernels > 0)
            times["copies and fills"] += (time_ - last) * (open_others > 0)
            times["copies and fills beside kernels"] += (time_ - last) * (open_kernels > 0 and open_others > 0)
            last = time_
            open_kernels += change * kernel
            open_others += change * (not kernel)
        got = {row["what"]: row["time_ns"] for row in self.report("overlap")}
        names = {0: "idle", 1: "1 operation at once", 2: "2 operations at once"}
        self.assertEqual(got, {names.get(what, what): value for what, value in times.items() if value})
        until, gaps, lost = self.ops[0][0], [], []
        for start, end, _, _, op in self.ops:
            if start > until:
                gaps.append(start - until)
                lost += [start - until] * (op in self.calls and self.calls[op][0] < until)
            until = max(until, end)
        # A percentage says of what it is.
        for words, column in ((("report", "gaps", self.source), "Longest"), (("diff", self.source, self.source), "Calls A")):
            heading = next(line for line in self.run_command(TACHO, *words).stdout.decode().splitlines() if column in line)
            self.assertIn("% of ", heading)
            self.assertNotRegex(heading, r"%(?! of )")
        row, = self.report("gaps")
        self.assertEqual((row["operations"], row["busy_ns"]), (len(self.ops), sum(times[count] for count in times if count in (1, 2))))
        self.assertEqual((row["gaps"], row["idle_ns"], row["longest_gap_ns"]), (len(gaps), sum(gaps), max(gaps)))
        self.assertEqual((row["queued_gaps"], row["queued_gap_ns"]), (len(lost), sum(lost)))

    def test_queue_depth(self):
        steps = sorted([(self.calls[op][0], 1) for *_, op in self.ops] + [(end, -1) for _, end, *_ in self.ops])
        times, depth, last, deepest = collections.Counter(), 0, steps[0][0], 0
        for time_, change in steps:
            level = max(depth - 1, 0).bit_length() if depth else -1
            times[("0" if depth == 0 else "1" if depth == 1 else "2" if depth == 2 else f"{2 ** (level - 1) + 1}-{2 ** level}")] += time_ - last
            last, depth = time_, depth + change
            deepest = max(deepest, depth)
        got = self.report("queue-depth")
        self.assertEqual({row["depth"]: row["time_ns"] for row in got}, {level: value for level, value in times.items() if value})
        self.assertEqual(got[0]["max_depth"], deepest)

    def test_launch_delay(self):
        want, until, before = {}, 0, None
        for call, start, end, kernel, name in sorted(((self.calls[op], start, end, kernel, name) for start, end, name, kernel, op in self.ops), key=lambda one: one[0][0]):
            if kernel and until <= call[0] and call[0] != before:
                want.setdefault((call[2], name), []).append(start - call[1])
            before, until = call[0], max(until, end)
        got = {(row["api"], row["kernel"]): (row["count"], row["min_ns"], row["max_ns"]) for row in self.report("launch-delay")}
        self.assertEqual(got, {key: (len(delays), min(delays), max(delays)) for key, delays in want.items()})

    def test_exclusive_times(self):
        want = {}
        threads = collections.defaultdict(list)
        for tid, start, end, name, args in rows(self.source, "SELECT tid, start, end, apiName, args FROM api ORDER BY start, end DESC, id"):
            threads[tid].append((start, end, ("marker", args) if name == "UserMarker" else ("API", name)))
        for calls in threads.values():
            stack = []
            for start, end, key in calls:
                one = want.setdefault(key, [0, 0, 0])
                one[0] += 1
                one[1] += end - start
                one[2] += end - start
                while stack and stack[-1][1] <= start:
                    stack.pop()
                if stack:
                    want[stack[-1][2]][2] -= min(end, stack[-1][1]) - start
                stack.append((start, end, key))
        got = {(row["kind"], row["name"]): [row["calls"], row["total_ns"], row["exclusive_ns"]] for row in self.report("topex") if row["kind"] != "GPU"}
        self.assertEqual(got, want)
        self.assertGreater(sum(key[0] == "marker" for key in got), 20)
        work = [row for row in self.report("topex") if row["kind"] == "GPU"]
        self.assertEqual(sum(row["calls"] for row in work), len(self.ops))
        self.assertAlmostEqual(sum(row["percent"] for row in work), 100)

    def test_says_what_is_wrong(self):
        self.one_sentence(self.run_command(TACHO, "report", "gap", self.source, code=1), "gaps")
        self.one_sentence(self.run_command(TACHO, "report", "binop", self.source, "--bins", "1ms,1us", code=1), "ascend")


class Rpd(Databases):
    def test_objects_types_and_clock(self):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        path = self.vcopy("-f", "rpd", output="v.rpd")
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        with sqlite3.connect(path) as db:
            for kind, names in BLOG_OBJECTS.items():
                self.assertEqual({row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = ?", (kind,))}, names)
            self.assertEqual(db.execute("PRAGMA integrity_check").fetchone(), ("ok",))
            types = dict(db.execute("SELECT opType, count(*) FROM op GROUP BY opType"))
            self.assertEqual(types, {"KernelExecution": 1, "CopyHostToDevice": 2, "CopyDeviceToHost": 1})
            low, high = db.execute("SELECT min(start), max(end) FROM (SELECT start, end FROM rocpd_api UNION SELECT start, end FROM rocpd_op)").fetchone()
            self.assertTrue(before <= low <= high <= after, (before, low, high, after))
            launches = db.execute("SELECT count(*) FROM rocpd_api_ops L JOIN op O ON O.id = L.op_id LEFT JOIN rocpd_kernelapi K ON K.api_ptr_id = L.api_id "
                                  "WHERE opType = 'KernelExecution' AND K.api_ptr_id IS NOT NULL").fetchone()[0]
            self.assertEqual(launches, 1)
            self.assertEqual(db.execute("SELECT kernelName, gridX, workgroupX FROM kernel").fetchone(), ("vecCopy", 256, 256))
            self.assertEqual(db.execute("SELECT Name, TotalCalls FROM ktop").fetchall(), [("vecCopy", 1)])
            for statement in RPD_ORPHANS:
                self.assertEqual(db.execute(statement).fetchone(), (0,), statement)
        self.same_views(path, RPD_VIEWS)

    def test_ranges_begun_with_start_keep_their_thread(self):
        script = self.folder / "ranges.py"
        script.write_text(f"import sys, threading\nsys.path.insert(0, {str(SOURCE / 'python')!r})\nimport tacho\n"
                          "def work(i):\n"
                          "    r = tacho.range_start(f'range {i}')\n"
                          "    print(threading.get_native_id(), f'range {i}')\n"
                          "    stops.append(r)\n"
                          "stops = []\nwork(0)\n"
                          "for i in (1, 2):\n"
                          "    thread = threading.Thread(target=work, args=(i,)); thread.start(); thread.join()\n"
                          "for r in stops: tacho.range_stop(r)\n")
        done = self.run_command(TACHO, "trace", "--quiet", "-o", "r.tacho", "-f", "tacho,rpd", "--", DEBIAN_PYTHON, script)
        wanted = [line.split(maxsplit=1) for line in done.stdout.decode().splitlines()]
        wanted = sorted([int(tid), name] for tid, name in wanted)
        self.assertEqual(len({tid for tid, _ in wanted}), 3)
        self.assertEqual(sorted(rows(self.folder / "r.rpd", "SELECT tid, args FROM api")), wanted)
        self.assertEqual(sorted(self.query("r.tacho", "SELECT tid, name FROM marker", "--dialect", "tacho")), wanted)

    def test_every_launch_has_its_parameters(self):
        need_data()
        for name in ("kineto_mi300x_qwen1.5-0.5b.json.gz", "kineto_h100_qwen1.5-0.5b.json.gz", "rocprofv3_gfx950_results.json.gz"):
            path = self.export(DATA / "traces" / name, "rpd", "t.rpd", "--overwrite")
            missing = rows(path, "SELECT count(*) FROM rocpd_api_ops L JOIN op O ON O.id = L.op_id WHERE opType = 'KernelExecution' AND L.api_id NOT IN (SELECT api_ptr_id FROM rocpd_kernelapi)")
            self.assertEqual(missing, [[0]], name)

    def test_written_files_come_back(self):
        need_data()
        source = DATA / "rpd" / "mytrace.rpd"
        for schema in ("2", "3"):
            path = self.export(source, "rpd", f"s{schema}.rpd", "--rpd-schema", schema)
            for sql in ("SELECT apiName, CASE apiName WHEN 'UserMarker' THEN args ELSE '' END, pid, tid, start, \"end\" FROM api ORDER BY 5, 6, 1, 2",
                        "SELECT gpuId, queueId, sequenceId, start, \"end\", description, opType FROM op ORDER BY start, \"end\"",
                        "SELECT gpuId, start, duration, gridX, gridY, gridZ, workgroupX, workgroupY, workgroupZ, kernelName FROM kernel ORDER BY start",
                        "SELECT gpuId, start, duration, size, apiName FROM copyop ORDER BY start"):
                with self.subTest(schema=schema, sql=sql):
                    self.assertEqual(rows(path, sql), rows(source, sql))

    def test_tracing_json(self):
        path = self.writable("mytrace.rpd")
        for options in ([], ["--start", "25%", "--end", "75%"], ["--format", "array"], ["--start", "3489389300000", "--end", "3489389400000"]):
            self.run_command(PERSONALITIES / "rpd2tracing", path, "t.json", *options)
            document = json.loads((self.folder / "t.json").read_text())
            events = document if options[:1] == ["--format"] else document["traceEvents"]
            phases = collections.Counter(event.get("ph") for event in events)
            if options[:1] != ["--start"]:
                self.assertEqual(phases["s"], 10124)
                self.assertEqual(phases["f"], 10124)
                self.assertEqual(sum(1 for event in events if event.get("name") == "QueueDepth"), 20249)
                self.assertEqual(sum(1 for event in events if event.get("name") == "Idle"), 677)
            else:
                self.assertLess(phases["s"], 10124)
                self.assertGreater(phases["s"], 0)

    def test_tracing_json_of_a_first_text_that_is_not_empty(self):
        path = self.writable("matmul_result.rpd")
        with sqlite3.connect(path) as db:
            db.execute("UPDATE rocpd_string SET string = 'a first text' WHERE id = 1")
        self.run_command(PERSONALITIES / "rpd2tracing", path, "t.json")
        texts = collections.Counter(event["args"].get("desc") for event in json.loads((self.folder / "t.json").read_text())["traceEvents"] if event.get("ph") == "X")
        self.assertEqual(texts["a first text"], rows(path, "SELECT count(*) FROM api WHERE args = 'a first text'")[0][0])
        self.assertGreater(texts["a first text"], 100)

    def test_tracing_json_of_no_time(self):
        path = self.writable("mytrace.rpd")
        result = self.run_command(PERSONALITIES / "rpd2tracing", path, "t.json", "--start", "75%", "--end", "25%", code=1)
        self.one_sentence(result, "--end 25%")
        self.assertFalse((self.folder / "t.json").exists())

    def test_the_python_wrapper_and_hostile_names(self):
        path = self.writable("matmul_result.rpd")
        with sqlite3.connect(path) as db:
            name = 'evil "\\ \t\n\x01 ' + "\u00e9\u4e2d" + " </script>"
            db.execute("UPDATE rocpd_string SET string = ? WHERE id = (SELECT description_id FROM rocpd_op WHERE id = 3)", (name,))
        wrapper = SOURCE / "share" / "tools" / "rpd2tracing.py"
        self.run_command("/usr/bin/python3", wrapper, path, "t.json", env={"PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}"})
        events = json.loads((self.folder / "t.json").read_text())["traceEvents"]
        self.assertIn(name, {event.get("name") for event in events})

    def test_the_python_script_of_the_personalities(self):
        # The users' documents write python3 .../rpd2tracing.py; the script also starts directly and through a link.
        path = self.writable("matmul_result.rpd")
        self.run_command(PERSONALITIES / "rpd2tracing", path, "expected.json")
        expected = (self.folder / "expected.json").read_bytes()
        link = self.folder / "linked.py"
        link.symlink_to(PERSONALITIES / "rpd2tracing.py")
        for number, command in enumerate((["/usr/bin/python3", PERSONALITIES / "rpd2tracing.py"], [PERSONALITIES / "rpd2tracing.py"],
                                          ["/usr/bin/python3", link], [link])):
            said = self.run_command(*command, path, f"{number}.json").stderr.decode()
            self.assertNotIn("not found", said)
            self.assertEqual((self.folder / f"{number}.json").read_bytes(), expected)
        self.run_command("/bin/sh", PERSONALITIES / "runTracer.sh", "-o", "t.rpd", TARGETS / "lifecycle", "normal", "3")
        self.assertTrue((self.folder / "t.rpd").exists())

    def test_tacho_is_among_the_personalities(self):
        # Messages say `tacho analyze -p ...`: with that folder alone in PATH it must be found.
        found = self.run_command("tacho", "--version", env={"PATH": str(PERSONALITIES)})
        self.assertEqual(found.stdout, self.run_command(TACHO, "--version").stdout)

    def test_telemetry_of_several_processes_stays_apart(self):
        self.run_command(TACHO, "sys", "sample", "-o", "t.tacho", "--", "/bin/sh", "-c",
                         "sleep 1.6 & /usr/bin/python3 -c 'import time; x = bytearray(64 << 20); time.sleep(1.6)' & wait")
        self.run_command(TACHO, "export", "t.tacho", "-f", "rpd", "-o", "t.rpd")
        sql = "SELECT deviceType, deviceId, monitorType, count(*), max(CAST(value AS REAL)) FROM {} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
        with sqlite3.connect(self.folder / "t.rpd") as db:
            rows = db.execute(sql.format("rocpd_monitor")).fetchall()
        memory = {row[1]: row[4] for row in rows if row[0] == "process" and row[2] == "CPU Memory Usage"}
        self.assertGreaterEqual(len(memory), 3, rows)
        self.assertGreater(max(memory.values()), 64 << 20)
        self.assertLess(min(memory.values()), 16 << 20)
        self.assertFalse([row for row in rows if row[0] == "gpu"], "a machine without GPUs has no telemetry of one")
        self.assertTrue([row for row in rows if row[0] == "host"])
        self.assertTrue(all(row[1] == 0 for row in rows if row[0] == "host"))
        # The same through SQL on the trace, and read back from the .rpd.
        for name in ("t.tacho", "t.rpd"):
            text = self.run_command(TACHO, "query", name, "SELECT DISTINCT deviceType, deviceId, monitorType FROM rpd.rocpd_monitor ORDER BY 1, 2, 3",
                                    "--output-format", "json").stdout
            self.assertEqual([tuple(row) for row in json.loads(text)["rows"]], [row[:3] for row in rows])
        self.run_command(TACHO, "merge", "t.rpd", "-o", "again.rpd")
        with sqlite3.connect(self.folder / "again.rpd") as db:
            again = db.execute("SELECT DISTINCT deviceType, deviceId, monitorType FROM rocpd_monitor ORDER BY 1, 2, 3").fetchall()
        self.assertEqual(again, [row[:3] for row in rows])

    def test_merged_files_of_unrelated_clocks(self):
        result = self.run_command(TACHO, "merge", self.writable("mytrace.rpd"), self.writable("matmul_result.rpd"), "-o", "all.rpd")
        said = result.stderr.decode()
        self.assertIn("matmul_result.rpd: unaligned: it does not tell how its clock relates to that of", said)
        self.assertIn("hours away and were moved so that both begin together", said)
        self.assertNotRegex(self.run_command(TACHO, "busy", "all.rpd").stdout.decode(), r"\d min")


class Blog(Databases):
    """The blog's steps, literally, with an OpenCL program and without PyTorch."""

    def setUp(self):
        super().setUp()
        self.path = {"PATH": f"{PERSONALITIES}:{os.environ['PATH']}"}

    def test_record_again_and_again(self):
        for _ in range(3):
            self.run_command("runTracer.sh", "-o", "matmul_result.rpd", EXAMPLES / "vcopy", "-n", "65536", env=self.path)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["matmul_result.rpd", "matmul_result.rpd.1", "matmul_result.rpd.2"])
        for path in self.folder.iterdir():
            self.assertEqual(rows(path, "SELECT count(*) FROM op"), [[4]])
        self.run_command("runTracer.sh", EXAMPLES / "vcopy", "-n", "65536", env=self.path)
        self.assertTrue((self.folder / "trace.rpd").exists())

    def test_exit_code_and_missing_python(self):
        self.run_command("runTracer.sh", "-o", "a.rpd", "/bin/sh", "-c", "exit 7", env=self.path, code=7)
        self.run_command("runTracer.sh", env=self.path, code=125)
        for tool in ("tacho",):
            (self.folder / tool).symlink_to(TACHO)
        only = self.folder / "bin"
        only.mkdir()
        (only / "python3").symlink_to("/usr/bin/python3")
        result = self.run_command(PERSONALITIES / "runTracer.sh", "-o", "b.rpd", "python", "matrix_mult.py", env={"PATH": str(only)}, code=127)
        self.one_sentence(result, "python3")

    def test_pandas_frames(self):
        """The blog's notebook, without pandas if there is none."""
        self.run_command("runTracer.sh", "-o", "matmul_result.rpd", EXAMPLES / "vcopy", "-n", "65536", env=self.path)
        script = (
            "import sqlite3\n"
            "import pandas as pd\n"
            "conn = sqlite3.connect('matmul_result.rpd')\n"
            "tables = pd.read_sql_query(\"SELECT name, type FROM sqlite_master WHERE type='table' OR type='view'\", conn)\n"
            "assert len(tables) == 20, tables\n"
            "df_op = pd.read_sql_query('SELECT * from op', conn)\n"
            "df_top = pd.read_sql_query('SELECT * from top', conn)\n"
            "df_ktop = pd.read_sql_query('SELECT * from ktop', conn)\n"
            "df_busy = pd.read_sql_query('SELECT * from busy', conn)\n"
            "assert list(df_op.columns) == ['id', 'gpuId', 'queueId', 'sequenceId', 'start', 'end', 'description', 'opType']\n"
            "assert list(df_top.columns) == ['Name', 'TotalCalls', 'TotalDuration', 'Ave', 'Percentage']\n"
            "assert abs(df_top.Percentage.sum() - 100) < 1e-6 and str(df_top.TotalDuration.dtype) == 'int64'\n"
            "assert list(df_ktop.Name) == ['vecCopy'] and 0 < df_busy.Busy[0] <= 1\n")
        has_pandas = self.run_command("/usr/bin/python3", "-c", "import pandas", code=None).returncode == 0
        if not has_pandas:
            self.skipTest("python3-pandas is not installed")
        self.run_command("/usr/bin/python3", "-c", script)


class Rocpd(Databases):
    def test_schema_and_views(self):
        path = self.vcopy("-f", "rocpd", output="v.db")
        with sqlite3.connect(path) as db:
            self.assertEqual(db.execute("PRAGMA integrity_check").fetchone(), ("ok",))
            self.assertEqual(db.execute("PRAGMA foreign_key_check").fetchall(), [])
            tags = dict(db.execute("SELECT tag, value FROM rocpd_metadata"))
            self.assertEqual(tags["schema_version"], "3.0.2")
            suffix = tags["uuid"]
            self.assertEqual(suffix, "_" + tags["guid"].replace("-", "_"))
            tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd_%'")}
            self.assertEqual(len(tables), 21)
            self.assertTrue(all(name.endswith(suffix) for name in tables))
            views = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'view'")}
            self.assertEqual(views, ROCPD_VIEWS | {name[:-len(suffix)] for name in tables})
            self.assertEqual(db.execute("SELECT name, grid_x, workgroup_x FROM kernels").fetchall(), [("vecCopy", 65536, 256)])
            self.assertEqual(db.execute("SELECT count(*) FROM processes").fetchone(), (1,))
            environment = db.execute("SELECT environment FROM rocpd_info_process").fetchall()
            self.assertEqual(environment, [("{}",)])
        self.same_views(path, sorted(ROCPD_VIEWS))

    def test_dialect_over_other_files_says_what_the_written_database_says(self):
        need_data()
        source = DATA / "rpd" / "mytrace.rpd"
        path = self.export(source, "rocpd", "m.db")
        self.same_views(path, ["top", "top_kernels", "busy"], prefix="rocpd.", other=source)
        for sql in ("SELECT name, tid, pid, count(*), sum(duration), min(coalesce(grid_x, 0)) FROM {}kernels GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
                    "SELECT category, name, tid, count(*), sum(duration), min(start) FROM {}regions GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
                    "SELECT name, tid, src_agent_type, dst_agent_type, count(*), sum(size) FROM {}memory_copies GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"):
            self.assertEqual(self.query(source, sql.format("rocpd.")), rows(path, sql.format("")), sql)

    def test_round_trip(self):
        need_data()
        for source in (DATA / "rpd" / "mytrace.rpd", DATA / "traces" / "rocprofv3_gfx950_results.json.gz", self.vcopy()):
            path = self.export(source, "rocpd", "t.db", "--overwrite")
            for sql in ("SELECT name, count(*), sum(duration), min(start), max(start) FROM tacho.dispatch GROUP BY name ORDER BY name",
                        "SELECT name, tid, count(*), sum(duration) FROM tacho.api GROUP BY name, tid ORDER BY name, tid",
                        "SELECT name, count(*), sum(duration) FROM tacho.marker GROUP BY name ORDER BY name",
                        "SELECT name, count(*), sum(duration), sum(bytes) FROM tacho.copy GROUP BY name ORDER BY name",
                        "SELECT count(*), sum(bytes) FROM tacho.allocation",
                        "SELECT gpuId, count(*) FROM rpd.op GROUP BY gpuId"):
                if "gpuId" in sql and source.suffix == ".tacho":
                    continue  # its device is a CPU, and CPU 0 of a rocpd database is the host
                with self.subTest(source=source.name, sql=sql):
                    got, want = self.query(path, sql), self.query(source, sql)
                    if "min(start)" in sql and source.suffix == ".tacho":  # BOOTTIME there, the trace's own clock here
                        got, want = [row[:2] for row in got], [row[:2] for row in want]
                    if "duration" in sql and source.suffix == ".tacho":  # the clocks' rates differ by parts per million
                        got, want = ([[cell for cell in row if not isinstance(cell, int) or cell < 1000] for row in side] for side in (got, want))
                    self.assertEqual(got, want)

    def test_several_databases_are_one_trace(self):
        need_data()
        folder = self.folder / "dbs"
        folder.mkdir()
        self.run_command(TACHO, "export", DATA / "rpd" / "matmul_result.rpd", "-f", "rocpd", "-o", "dbs/a.db")
        self.run_command(TACHO, "export", DATA / "rpd" / "mytrace.rpd", "-f", "rocpd", "-o", "dbs/b.db")
        self.assertEqual(self.query("dbs", "SELECT count(*) FROM tacho.dispatch"), [[self.count("dbs/a.db") + self.count("dbs/b.db")]])
        # One file with two recordings, as rocpd merge makes it.
        shutil.copyfile(folder / "a.db", folder / "both.db")
        with sqlite3.connect(folder / "both.db") as db:
            db.execute("ATTACH ? AS other", (str(folder / "b.db"),))
            for (sql,) in db.execute("SELECT sql FROM other.sqlite_master WHERE type = 'table' AND name LIKE 'rocpd_%'").fetchall():
                db.execute(sql)
            for (name,) in db.execute("SELECT name FROM other.sqlite_master WHERE type = 'table' AND name LIKE 'rocpd_%'").fetchall():
                db.execute(f'INSERT INTO main."{name}" SELECT * FROM other."{name}"')
        self.assertEqual(self.count("dbs/both.db"), self.count("dbs/a.db") + self.count("dbs/b.db"))
        kernels = self.query("dbs/both.db", "SELECT count(*), count(DISTINCT guid) FROM kernels")
        self.assertEqual(kernels, [[self.count("dbs/both.db"), 2]])

    def count(self, path):
        return self.query(path, "SELECT count(*) FROM tacho.dispatch")[0][0]


class TrimAndMerge(Databases):
    def check_no_orphans(self, path):
        with sqlite3.connect(path) as db:
            self.assertEqual(db.execute("PRAGMA integrity_check").fetchone(), ("ok",))
            # Upstream's own files refer to no code object either.
            self.assertEqual({row[2] for row in db.execute("PRAGMA foreign_key_check")} - {"rocpd_kernelcodeobject"}, set())
            if path.suffix == ".rpd":
                for statement in RPD_ORPHANS:
                    self.assertEqual(db.execute(statement).fetchone(), (0,), statement)
                used = " UNION ".join(f"SELECT {column} FROM {table}" for table, columns in (
                    ("rocpd_api", "apiName_id args_id"), ("rocpd_op", "description_id opType_id"), ("rocpd_kernelapi", "kernelName_id")) for column in columns.split())
                extensions = [name for name, in db.execute("SELECT name FROM sqlite_master WHERE name = 'ext_autogradapi'")]
                used += "".join(f" UNION SELECT autogradName_id FROM {name}" for name in extensions)
                self.assertEqual(db.execute(f"SELECT string FROM rocpd_string WHERE string <> '' AND id NOT IN ({used})").fetchall(), [])
                for name in extensions:
                    self.assertEqual(db.execute(f"SELECT count(*) FROM {name} WHERE api_ptr_id NOT IN (SELECT id FROM rocpd_api)").fetchone(), (0,))
                    self.assertGreater(db.execute(f"SELECT count(*) FROM {name}").fetchone()[0], 0)

    def test_trim_of_every_format_into_every_format(self):
        need_data()
        source = DATA / "rpd" / "mytrace.rpd"
        self.export(source, "rocpd", "in.db")
        self.run_command(TACHO, "merge", source, "-o", "in.tacho")
        self.run_command(TACHO, "export", source, "-f", "csv", "-d", "in")
        count = set()
        for name in (source, "in.db", "in.tacho", "in"):
            for ending in (".rpd", ".db", ".tacho", ".json", ".pftrace"):
                output = self.folder / f"out{ending}"
                self.run_command(TACHO, "trim", name, output, "--start", "25%", "--end", "75%", "--overwrite")
                if ending in (".rpd", ".db"):
                    self.check_no_orphans(output)
                if ending in (".rpd", ".db", ".tacho"):
                    count.add(self.query(output, "SELECT count(*) FROM tacho.dispatch")[0][0])
                if ending == ".json":
                    json.loads(output.read_text())
        self.assertEqual(len(count), 1, count)
        low, high = rows(source, "SELECT min(start), max(end) FROM (SELECT start, end FROM rocpd_api UNION ALL SELECT start, end FROM rocpd_op)")[0]
        start, end = low + (high - low) / 4, low + (high - low) * 3 / 4
        want = rows(source, f"SELECT count(*) FROM rocpd_api_ops L JOIN rocpd_api A ON A.id = L.api_id JOIN op O ON O.id = L.op_id "
                            f"WHERE A.start BETWEEN {start} AND {end} AND opType NOT LIKE 'Copy%'")[0][0]
        self.assertAlmostEqual(count.pop(), want, delta=2)

    def test_trim_says_what_is_wrong(self):
        need_data()
        path = DATA / "rpd" / "matmul_result.rpd"
        for words in (["--start", "75%", "--end", "25%"], ["--start", "x"], [], ["--start", "300%%"]):
            self.one_sentence(self.run_command(TACHO, "trim", path, "o.rpd", *words, code=1))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_merge_keeps_processes_apart(self):
        need_data()
        inputs = [DATA / "rpd" / "matmul_result.rpd", DATA / "rpd" / "matmul_result.rpd", DATA / "traces" / "kineto_mi250_toy_rocm6.2.json.gz"]
        kernels = [self.query(path, "SELECT count(*) FROM tacho.dispatch")[0][0] for path in inputs]
        for output in ("all.tacho", "all.db", "all.rpd"):
            with self.subTest(output=output):
                self.run_command(TACHO, "merge", *inputs, "-o", output)
                path = self.folder / output
                self.assertEqual(self.query(path, "SELECT count(*) FROM tacho.dispatch"), [[sum(kernels)]])
                by_process = self.query(path, "SELECT count(*) FROM tacho.dispatch D JOIN tacho.track T ON T.id = D.track GROUP BY T.process")
                self.assertEqual(sorted(row[0] for row in by_process), sorted(kernels))
                if not output.endswith(".tacho"):
                    self.check_no_orphans(path)
        self.one_sentence(self.run_command(TACHO, "merge", inputs[0], "-o", "all.rpd", code=1), "all.rpd")


class Parquet(Databases):
    def setUp(self):
        super().setUp()
        self.library = engines.library("duckdb")

    def duckdb(self, sql):
        """Rows as texts."""
        return [list(row.values()) for row in engines.run("duckdb", sql)[0]]

    def test_read_back_with_duckdb(self):
        need_data()
        environment = {"TACHO_DUCKDB": str(self.library)}
        source = DATA / "rpd" / "mytrace.rpd"
        self.run_command(TACHO, "merge", source, self.vcopy(), "-o", "all.tacho")
        written = self.run_command(TACHO, "export", "all.tacho", "-f", "parquet", "-d", "data", env=environment).stdout.decode().split()
        self.assertTrue(all((self.folder / path).is_file() and path.endswith(".parquet") for path in written))
        self.assertEqual(sorted(str(p.relative_to(self.folder)) for p in (self.folder / "data").rglob("*") if p.is_file()), sorted(written))

        def dataset(table):
            return f"read_parquet('{self.folder}/data/*/*/*/table={table}/*.parquet', hive_partitioning = true)"
        for table, columns in (("dispatch", "name, pid, device, grid_x, start, duration"), ("copy", "direction, pid, start, duration, bytes"), ("api", "name, pid, tid, start, duration"),
                               ("marker", "name, pid, tid, start, duration")):
            inner = columns.replace("direction", "name") if table == "copy" else columns
            dims = {"dispatch": "SELECT D.name, pid, device, K.grid_x, D.start, D.duration FROM tacho.dispatch D JOIN tacho.kernel K ON K.id = D.dim"}
            want = self.query("all.tacho", dims.get(table, f"SELECT {inner} FROM tacho.{table}"))
            got = self.duckdb(f"SELECT {columns} FROM {dataset(table)}")
            texts = [["" if cell is None else str(cell) for cell in row] for row in want]
            self.assertEqual(sorted(["" if cell is None else cell for cell in row] for row in got), sorted(texts), table)
        self.assertEqual(self.duckdb(f"SELECT DISTINCT run, rank FROM {dataset('dispatch')} ORDER BY 1"), [["0", "0"], ["1", "0"]])
        # Since 1970 where the trace knows it.
        latest = int(self.duckdb(f"SELECT max(start_unix) FROM {dataset('dispatch')} WHERE run = 1")[0][0])
        self.assertLess(abs(latest - time.time_ns()), 600e9)
        self.assertEqual(self.duckdb(f"SELECT count(*) FROM {dataset('reading')}")[0][0], str(self.query("all.tacho", "SELECT count(*) FROM tacho.reading")[0][0]))
        # A second time: refused, and nothing is changed or left half there.
        result = self.run_command(TACHO, "export", "all.tacho", "-f", "parquet", "-d", "data", env=environment, code=1)
        unaligned, refused = result.stderr.decode().splitlines()
        self.assertEqual(unaligned, "tacho: all.tacho: unaligned: no collective or message ties the clocks of the two traces; times of different traces compare only as far as their clocks agree")
        self.assertIn("exists", refused)
        self.assertFalse(list((self.folder / "data").rglob("*partial*")))

    def test_without_the_library(self):
        need_data()
        result = self.run_command(TACHO, "export", DATA / "rpd" / "matmul_result.rpd", "-f", "parquet", "-d", "data", env={"TACHO_DUCKDB": str(self.folder / "none.so")}, code=1)
        self.one_sentence(result, "none.so")
        self.assertFalse(list(self.folder.rglob("*.parquet")))


if __name__ == "__main__":
    main()
