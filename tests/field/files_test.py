"""Files that people brought to other tools, by their right values. Each stands for a kind of fault.

files/ holds inputs that were made from public reports; a recording from real hardware stays in the field folder beside
../shared/data. A case that is still wrong is an expected failure: whoever mends its kind takes the mark away.
"""
import csv
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402, the folder of end-to-end tests is no package
from harness import DATA, TACHO  # noqa: E402

FILES = pathlib.Path(__file__).resolve().parent / "files"
RECORDED = DATA.parent / "field" / "files"


class FieldCase(harness.Case):
    def tacho(self, *words, code=0):
        result = self.run_command(TACHO, *words, code=code, env={"COLUMNS": "120"})
        self.said = result.stderr.decode()
        return result.stdout.decode()

    def query(self, name, statement, code=0):
        path = name if isinstance(name, pathlib.Path) else FILES / name
        return json.loads(self.tacho("query", path, statement, "--output-format", "json", code=code))["rows"]

    def table(self, name, by, *more):
        path = name if isinstance(name, pathlib.Path) else FILES / name
        return self.stats(by, path, *more)

    def info(self, name, code=0):
        path = name if isinstance(name, pathlib.Path) else FILES / name
        return self.tacho("info", path, code=code)

    def written(self, name, document):
        """A file of the case's folder with this text, bytes or JSON."""
        path = self.folder / name
        if isinstance(document, bytes):
            path.write_bytes(document)
        else:
            path.write_text(document if isinstance(document, str) else json.dumps(document))
        return path


class ScopeOfKeys(FieldCase):
    """pid, tid, correlation, device, flow and External id are unique within a rank, host, file or run, never beyond."""

    def test_ranks_with_one_pid_are_exported_apart(self):
        self.tacho("merge", FILES / "samepid_rank0.json", FILES / "samepid_rank1.json", "-o", "m.tacho")
        self.tacho("export", "-f", "csv", "-d", "out", "--overwrite", "m.tacho")
        kernels = {path.name: [row["Kernel_Name"] for row in csv.DictReader(path.read_text().splitlines())]
                   for path in (self.folder / "out").glob("*kernel_trace.csv")}
        self.assertEqual(sorted(kernels), ["83.1_kernel_trace.csv", "83_kernel_trace.csv"])
        first, second = kernels["83_kernel_trace.csv"], kernels["83.1_kernel_trace.csv"]
        self.assertFalse(set(first) & set(second), kernels)

    def test_two_ranks_in_one_file(self):
        rows = self.table("merged_plain.json", "operator")
        self.assertEqual(rows["aten::mm"]["TotalDeviceNs"], 1_800_000)
        self.assertEqual(rows["aten::softmax"]["TotalDeviceNs"], 3_000_000)
        # Each rank's GPU 0 is a GPU of its own, in every command.
        self.assertEqual(re.findall(r"^ +([\d.]+ ms) .* GPU \d", self.info("merged_plain.json"), re.M), ["1.80 ms", "3.00 ms"])
        busy = json.loads(self.tacho("busy", FILES / "merged_plain.json", "--output-format", "json"))["rows"]
        self.assertEqual(sorted(row[1] for row in busy), [1_800_000, 3_000_000])
        for report in ("gaps", "queue-depth", "overlap"):
            table = json.loads(self.tacho("report", report, FILES / "merged_plain.json", "--output-format", "json"))
            self.assertEqual({row[0] for row in table["rows"]}, {"GPU 0", "GPU 1 (GPU 0)"}, report)

    def test_busy_names_hosts_and_ranks_where_there_are_several(self):
        for rank in (0, 1):
            (self.folder / f"r{rank}.json").write_text(json.dumps(
                {"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 2},
                 "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 100, "dur": 10 + rank,
                                  "args": {"device": 0, "stream": 7}},
                                 {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 70 + rank, "tid": 1, "ts": 90, "dur": 30}]}))
        self.tacho("merge", "r0.json", "r1.json", "-o", "both.tacho")
        shown = json.loads(self.tacho("busy", "both.tacho", "--output-format", "json"))
        self.assertEqual(shown["columns"][-2:], ["Host", "Rank"])
        self.assertEqual(sorted((row[1], row[-1]) for row in shown["rows"]), [(10_000, 0), (11_000, 1)])
        rows = json.loads(self.tacho("query", "--dialect", "tacho", "both.tacho", 'SELECT p.rank, v."index", sum(d.duration) FROM dispatch d '
                                     "JOIN track t ON d.track = t.id JOIN process p ON t.process = p.id JOIN device v ON t.device = v.id "
                                     "GROUP BY 1, 2", "--output-format", "json"))["rows"]  # as in docs/commands/top.md
        self.assertEqual(sorted(map(tuple, rows)), [(0, 0, 10_000), (1, 0, 11_000)])
        one = json.loads(self.tacho("busy", "r0.json", "--output-format", "json"))
        self.assertNotIn("Host", one["columns"])

    def test_operators_that_overlap(self):
        rows = self.table("overlapping_operators.json", "operator")
        self.assertEqual(rows["aten::item"]["SelfHostNs"], 500_000)
        self.assertEqual(rows["aten::wait"]["SelfHostNs"], 700_000)

    def test_operators_that_overlap_within_another(self):
        def operator(name, start, length):
            return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 9, "tid": 9, "ts": start, "dur": length}
        file = self.written("o.json", [operator("around", 0, 2000), operator("first", 0, 1000), operator("second", 500, 700),
                                       operator("third", 1100, 50), operator("after", 1500, 900)])
        rows = {name: row["SelfHostNs"] for name, row in self.table(file, "operator").items()}
        self.assertEqual(rows, {"around": 300_000, "first": 500_000, "second": 650_000, "third": 50_000, "after": 900_000})

    def test_counters_by_id_and_series(self):
        tracks = self.query("counters.json", "select c.name, count(distinct r.track), count(*) from tacho.reading r "
                            "join tacho.track t on t.id = r.track join tacho.counter c on c.id = t.counter group by c.name")
        found = {name: (lines, readings) for name, lines, readings in tracks}
        self.assertEqual(found["util"], (2, 3))
        self.assertEqual(found["mem"], (2, 3))


class UnknownIsNotZero(FieldCase):
    """Values that were not measured, or not written, are unknown: no 0 and no time."""

    def test_kernels_without_times(self):
        text = self.info("zero_time_kineto.json")
        self.assertRegex(text, r"run of 480\.00 us")  # from the first call to the end of the last kernel measured
        rows = self.table("zero_time_kineto.json", "kernel")
        (row,) = rows.values()
        self.assertEqual(row["AverageNs"], 30_000)
        self.assertRegex(text, r"2 kernels (have no|without) times?")

    def test_rpd_operations_without_times(self):
        rows = self.table("zero_time.rpd", "kernel")
        self.assertEqual([row["AverageNs"] for row in rows.values()], [300, 300])

    def test_open_ends_come_back_from_json(self):
        for name in ("zero_time.rpd", "zero_time_kineto.json"):
            self.tacho("export", "-f", "json", "-o", f"{name}.again.json", FILES / name)
            counts = [self.query(path, "select count(*), count(duration), sum(duration) from tacho.dispatch")
                      for path in (name, self.folder / f"{name}.again.json")]
            self.assertEqual(*counts)
            self.assertLess(counts[0][0][1], counts[0][0][0])

    def test_copies_of_which_some_have_a_size(self):
        harness.need_data()
        text = self.tacho("stats", RECORDED / "copies_partly_without_bytes_mi300.json.gz", "--by", "copy")
        self.assertIn("42.97", text)
        self.assertRegex(text + self.said, r"184 of 550")

    def test_copies_without_a_size(self):
        rows = self.query("copies_without_bytes_and_external_id.json", "select count(*), count(bytes) from tacho.copy")
        self.assertEqual(rows[0][1], 0)

    def test_events_without_a_phase_are_counted(self):
        text = self.info("noph.json")
        self.assertRegex(text + self.said, r"\b2 [a-z ]*(record|event)s?")
        names = [name for (name,) in self.query("noph.json", "select name from tacho.dispatch order by start")]
        self.assertEqual(names[1:], ["123", "two_cats"])

    def test_rpd_of_schema_1(self):
        rows = self.query("rpd_schema1.rpd", "select bytes from tacho.copy")
        self.assertEqual(rows, [[4096]] * len(rows))
        shapes = self.query("rpd_schema1.rpd", "select k.grid_x, k.group_x from tacho.dispatch d "
                            "join tacho.kernel k on k.id = d.dim")
        self.assertNotIn([None, None], shapes)


class Order(FieldCase):
    """The order of a document's parts says nothing."""

    def test_concatenated_documents(self):
        (rows,) = self.query("concat_obj.json", "select count(*) from tacho.dispatch")
        self.assertEqual(rows, [10])

    def test_text_behind_the_end(self):
        text = self.info("stale_tail.json") + self.said
        self.assertRegex(text, r"text after the end at byte \d+")

    def test_begins_and_ends_by_time_and_name(self):
        rows = self.query("be_ties.json", "select name, duration from tacho.marker order by name")
        self.assertEqual(rows, [["inner1", 40_000], ["inner2", 20_000], ["outer", 70_000]])

    def test_names_before_events(self):
        processes = dict(map(tuple, self.query("jax.json", "select pid, name from tacho.process")))
        self.assertIn("/device:GPU:0", processes.values())
        text = self.info("jax.json")
        self.assertIn("loop_add_fusion", text)
        self.assertNotIn("no GPU operations", text)
        names = [name for (name,) in self.query("jax.json", "select name from tacho.track")]
        self.assertIn("Stream #20(Compute)", names)

    def test_device_properties_behind_the_events(self):
        harness.need_data()
        names = [name for (name,) in self.query(DATA / "traces" / "kineto_h100_qwen1.5-0.5b.json.gz", "select name from tacho.device")]
        self.assertTrue(any("H100" in name for name in names), names)

    def test_an_object_form_without_its_end(self):
        rows = self.query("mxnet_nosuffix.json", "select count(*), min(duration), max(duration) from tacho.marker")
        self.assertEqual(rows, [[5, 60_000, 60_000]])
        self.assertIn("ends without closing its array", self.info("mxnet_nosuffix.json"))

    def test_a_document_within_a_document(self):
        (rows,) = self.query("nested.json", "select count(*) from tacho.dispatch")
        self.assertGreater(rows[0], 0)


class ShapeOfARow(FieldCase):
    """Cells are counted against the header, and a schema that is not known is named."""

    def test_a_comma_in_a_name_without_quotes(self):
        (row,) = self.table("csv_unquoted_name_kernel_trace.csv", "kernel").values()
        self.assertEqual((row["TotalDurationNs"], row["Calls"]), (2_000, 5))
        self.assertEqual(row["Name"], "void add<int, float>(int*)")

    def test_rows_shorter_than_the_header(self):
        rows = self.query("rocprofv2_header21_rows19.csv", "select duration from tacho.dispatch")
        self.assertEqual(rows, [[400]] * 5)

    def test_times_that_pandas_wrote(self):
        rows = self.query("csv_float_times_kernel_trace.csv", "select start, duration from tacho.dispatch order by start")
        self.assertEqual([duration for _, duration in rows], [400] * 5)

    def test_a_folder_of_rocprofv2(self):
        self.tacho("import", FILES / "rocprofv2_folder", "-o", "t.tacho")
        (rows,) = self.query(self.folder / "t.tacho", "select count(*) from tacho.dispatch")
        self.assertEqual(rows, [5])

    def test_rocpd_of_schema_4_1(self):
        self.assertEqual(self.query("rocpd_schema_4_1_0.db", "select distinct p.pid, d.name from tacho.dispatch k "
                                    "join tacho.track t on t.id = k.track join tacho.process p on p.id = t.process "
                                    "join tacho.device d on d.id = t.device")[0][0], 500)

    def test_sampled_counters_of_rocpd(self):
        rows = self.query("rocpd_sampled_counters.db", "select value from tacho.reading order by start")
        self.assertEqual([value for (value,) in rows], [float(value) for value in range(300, 320)])


class TorchAndChrome(FieldCase):
    """Categories, links and asynchronous ranges as torch.profiler and Chrome define them."""

    def test_runtimes_of_other_vendors(self):
        rows = self.table("xpu.json", "operator")
        self.assertEqual({"aten::addmm", "aten::relu"} - set(rows), set())
        self.assertEqual(self.query("xpu.json", "select count(*) from tacho.api a join tacho.function f on f.id = a.dim "
                                    "where f.name like 'ur%' or f.name like 'ze%'"), [[8]])
        device = self.query("xpu.json", "select sum(duration) from tacho.dispatch")[0][0]
        # The file's copy belongs to no operator.
        self.assertEqual(sum(rows[name]["SelfDeviceNs"] for name in ("aten::addmm", "aten::relu")), device)

    def test_asynchronous_ranges(self):
        rows = dict(map(tuple, self.query("async.json", "select name, duration from tacho.marker where duration > 0")))
        self.assertEqual((rows["decode"], rows["copy"]), (100_000, 60_000))

    def test_kernels_tied_by_external_id(self):
        row = self.table("copies_without_bytes_and_external_id.json", "operator")["aten::add"]
        self.assertEqual(row["TotalDeviceNs"], 100_000)

    def test_chrome_json_comes_back(self):
        self.tacho("export", "-f", "json", "-o", "r.json", FILES / "json_roundtrip_source.json")
        (rows,) = self.query(self.folder / "r.json", "select (select count(*) from tacho.dispatch), (select count(*) from tacho.copy)")
        self.assertEqual(rows, [62, 1])


class Encodings(FieldCase):
    """Text has its writer's meaning, and unreadable text is named as such."""

    def test_byte_order_mark(self):
        (rows,) = self.query("bom.json", "select count(*) from tacho.dispatch")
        self.assertGreater(rows[0], 0)

    def test_paths_of_windows(self):
        names = [name for (name,) in self.query("winpath.json", "select name from tacho.api order by start")]
        self.assertTrue(names[0].startswith("torch\\cuda\\__init__.py"), names)
        self.assertTrue(names[1].startswith("C:\\Users\\dev\\venv\\Lib\\site-packages\\torch\\nn\\modules"), names)

    def test_every_output_is_utf8(self):
        path = FILES / "badutf8.json"
        outputs = [self.run_command(TACHO, *words).stdout for words in (
            ("stats", path, "--by", "api", "--output-format", "csv"), ("top", path, "--output-format", "csv"),
            ("query", path, "select name from tacho.api", "--output-format", "csv"), ("diff", path, path))]
        self.tacho("export", "-f", "csv", "-d", "out", path)
        outputs += [file.read_bytes() for file in (self.folder / "out").rglob("*.csv")]
        for output in outputs:
            output.decode("utf-8")
        self.assertTrue(any("�" in output.decode() for output in outputs))

    def test_a_quarter_million_names(self):
        self.run_command(sys.executable, FILES / "many_kernel_names.py", "big.json")
        for words in (("view", "big.json", "-o", "x.html"), ("flame", "big.json", "-o", "f.html")):
            measured = self.run_command("/usr/bin/time", "-v", TACHO, *words, timeout=300).stderr.decode()
            kib = int(re.search(r"Maximum resident set size \(kbytes\): (\d+)", measured)[1])
            self.assertLessEqual(kib, 256 << 10, words)


if __name__ == "__main__":
    harness.main()
