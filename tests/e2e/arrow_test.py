"""`tacho query --output-format arrow`: the streams, read by Apache Arrow's JavaScript library, by DuckDB and by ClickHouse, which has
Arrow's C++ library, against the same statement's CSV; and `-o`, the answer as a file."""
import csv
import io
import json
import os
import resource
import subprocess
import unittest

import engines
from harness import DATA, SOURCE, TACHO, Case, main, need_data, sanitized

READER = SOURCE / "tests" / "arrow" / "read.mjs"
DUCKDB = SOURCE / "tests" / "duckdb_wasm" / "query.mjs"
COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) "


class Reading(Case):
    def stream(self, trace, sql, *options):
        """The file with the stream of a statement."""
        result = self.run_command(TACHO, "query", trace, sql, "--output-format", "arrow", *options)
        self.said = result.stderr.decode()
        path = self.folder / "answer.arrows"
        path.write_bytes(result.stdout)
        return path

    def need_module(self, script, name, how="scripts/packages.sh test"):
        if not (script.parent / "node_modules" / name).is_dir():
            sentence = f"no {name} in {script.parent.relative_to(SOURCE)}: {how} installs it"
            if os.environ.get("TACHO_REQUIRE_DATA") == "1":
                self.fail(sentence)
            self.skipTest(sentence)

    def read(self, trace, sql, *options):
        """The stream of a statement as {"fields", "batches", "rows"}."""
        self.need_module(READER, "apache-arrow")
        return self.read_file(self.stream(trace, sql, *options))

    def read_file(self, path):
        read = json.loads(self.run_command("node", READER, path).stdout)
        self.assertLessEqual(len(read["rows"]), read["batches"] * 16384)
        return read

    def recording(self):
        need_data()
        self.run_command(TACHO, "trim", DATA / "traces" / "kineto_h100_qwen1.5-0.5b.json.gz", "run.tacho", "--start", "0%")
        return "run.tacho"

    def values(self, read):
        return [[None if value is None else float(value) if kind in ("Int64", "Float64") else value
                 for value, (_, kind) in zip(row, read["fields"])] for row in read["rows"]]

    def agree(self, trace, sql, *options):
        """The stream has the names and values of the CSV; returns the types."""
        read = self.read(trace, sql, *options)
        text = self.run_command(TACHO, "query", trace, sql, "--output-format", "csv", *options).stdout.decode()
        names, *rows = csv.reader(io.StringIO(text))
        self.assertEqual([name for name, _ in read["fields"]], names, sql)
        kinds = [kind for _, kind in read["fields"]]
        expected = [[float(cell) if kind in ("Int64", "Float64") and cell else cell for cell, kind in zip(row, kinds)] for row in rows]
        got = [["" if value is None else value for value in row] for row in self.values(read)]
        self.assertEqual(got, expected, sql)
        self.assertGreater(len(rows), 0, sql)
        return kinds


class Arrow(Reading):
    def test_every_table_as_csv_has_it(self):
        trace = self.recording()
        schema = self.run_command(TACHO, "query", trace, "--schema", "--dialect", "tacho", "--output-format", "json").stdout
        filled = 0
        for table, _, _ in json.loads(schema)["rows"]:
            count = json.loads(self.run_command(TACHO, "query", trace, f"SELECT count(*) FROM tacho.{table}", "--output-format", "json").stdout)
            if count["rows"][0][0] > 0:
                filled += 1
                self.agree(trace, f"SELECT * FROM tacho.{table} LIMIT 3000")
        self.assertGreater(filled, 10)

    def test_statements(self):
        trace = self.recording()
        for sql, kinds in [
                ("SELECT name, duration FROM tacho.dispatch WHERE duration > 1000 AND name LIKE '%kernel%'", ["Utf8", "Int64"]),
                ("SELECT name AS n, start s, tid FROM tacho.api WHERE tid BETWEEN 1 AND 9999999 LIMIT 100;", ["Utf8", "Int64", "Int64"]),
                ("SELECT name, count(*), sum(duration), avg(duration) FROM tacho.dispatch GROUP BY name ORDER BY 3 DESC",
                 ["Utf8", "Int64", "Int64", "Float64"]),
                ("SELECT * FROM top", None), ("SELECT * FROM rocpd.top", None), ("SELECT * FROM busy", None),
                ("SELECT A.name, D.name, D.start - A.start FROM tacho.api A JOIN tacho.dispatch D ON D.correlation = A.correlation",
                 ["Utf8", "Utf8", "Int64"]),
                ("SELECT name, duration / 3.0, NULL FROM tacho.dispatch ORDER BY duration DESC LIMIT 7", ["Utf8", "Float64", "Null"])]:
            found = self.agree(trace, sql)
            if kinds:
                self.assertEqual(found, kinds, sql)
        for file in ("run.rpd", "run.db"):
            self.run_command(TACHO, "export", trace, "-f", "rpd" if file == "run.rpd" else "rocpd", "-o", file)
        self.agree("run.rpd", "SELECT * FROM op")
        self.agree("run.rpd", "SELECT id, start, \"end\" FROM rocpd_api WHERE start > 0")
        self.agree("run.db", "SELECT name, start, duration FROM kernels")

    def test_engines(self):
        trace = self.recording()
        for sql, engine in [("SELECT * FROM tacho.dispatch", "columns"), ("SELECT name, duration FROM tacho.dispatch LIMIT 3", "columns"),
                            ("SELECT name, duration + 1 FROM tacho.dispatch", "virtual"), ("SELECT DISTINCT name FROM tacho.dispatch", "virtual"),
                            ("SELECT name FROM tacho.dispatch ORDER BY start", "virtual"), ("SELECT * FROM top", "virtual")]:
            rows = self.read(trace, sql, "--explain")["rows"]
            self.assertEqual(rows[0], ["engine", engine], sql)
        answer = json.loads(self.run_command(TACHO, "query", trace, "SELECT * FROM tacho.dispatch", "--explain", "--output-format", "json").stdout)
        self.assertEqual(answer["rows"][0], ["engine", "virtual"])  # what goes out as rows is read as rows
        self.assertEqual(self.read(trace, "", "--schema")["fields"], [["Name", "Utf8"], ["Type", "Utf8"], ["Columns", "Utf8"]])

    def test_types_of_values(self):
        trace = self.recording()
        for sql, kinds, rows in [
                ("SELECT 1, 2.5, 'x', NULL", ["Int64", "Float64", "Utf8", "Null"], [["1", 2.5, "x", None]]),
                ("SELECT 1 a UNION ALL SELECT 2.5", ["Float64"], [[1], [2.5]]),
                ("SELECT 9223372036854775807 a UNION ALL SELECT -9223372036854775808", ["Int64"],
                 [["9223372036854775807"], ["-9223372036854775808"]]),
                ("SELECT NULL a UNION ALL SELECT 7", ["Int64"], [[None], ["7"]]),
                ("SELECT 9007199254740993 a UNION ALL SELECT 2.5", ["Utf8"], [["9007199254740993"], ["2.5"]]),
                ("SELECT 1 a UNION ALL SELECT 'x'", ["Utf8"], [["1"], ["x"]]),
                ("SELECT name, start, duration FROM tacho.dispatch WHERE id < 0", ["Utf8", "Int64", "Int64"], []),
                ("SELECT name, start, max(duration, 0) m FROM tacho.dispatch WHERE id < 0", ["Utf8", "Int64", "Null"], [])]:
            read = self.read(trace, sql)
            self.assertEqual(([kind for _, kind in read["fields"]], read["rows"]), (kinds, rows), sql)
            mixed = "in Arrow all of them are texts" in self.said
            self.assertEqual(mixed, kinds == ["Utf8"], sql)

    def test_types_that_show_late(self):
        trace = self.recording()
        sql = COUNT.format(50000) + """SELECT i, CASE WHEN i = 49999 THEN 'late' END a, CASE WHEN i = 20000 THEN 0.5 ELSE i END b,
            CASE WHEN i = 40000 THEN 'x' ELSE i END c, NULL d FROM n"""
        read = self.read(trace, sql)
        self.assertEqual([kind for _, kind in read["fields"]], ["Int64", "Utf8", "Float64", "Utf8", "Null"])
        self.assertEqual(len(read["rows"]), 50000)
        self.assertEqual(read["rows"][49998], ["49999", "late", 49999, "49999", None])
        self.assertEqual(read["rows"][19999], ["20000", None, 0.5, "20000", None])
        self.assertEqual(read["rows"][39999], ["40000", None, 40000, "x", None])
        self.assertEqual(self.said, 'tacho: column "c" holds values of several types: in Arrow all of them are texts\n')

    def test_texts(self):
        trace = self.recording()
        read = self.read(trace, "SELECT CAST(x'41ff42c3' AS TEXT) a, 'ünï€😀' \"näme\", '' e, CAST(x'61006200' AS TEXT) z")
        self.assertEqual(read["rows"], [["A\ufffdB\ufffd", "ünï€😀", "", "a\0b\0"]])
        self.assertEqual(read["fields"][1][0], "näme")
        self.assertEqual(self.said, "tacho: 1 text is not valid UTF-8: U+FFFD stands for each wrong byte\n")
        # Names of a megabyte, more than memory should hold, from a recording and from SQL.
        events = [{"ph": "X", "cat": "kernel", "name": f"{i:07}" + "k" * (1 << 20), "pid": 0, "tid": 7, "ts": 10 * i, "dur": 5,
                   "args": {"stream": 7, "device": 0}} for i in range(25)]
        (self.folder / "long.json").write_text(json.dumps({"traceEvents": events}))
        for sql in ("SELECT name, start FROM tacho.dispatch", "SELECT name || '', start FROM tacho.dispatch"):
            read = self.read("long.json", sql)
            self.assertEqual([row[0] for row in read["rows"]], [event["name"] for event in events])
            self.assertGreater(read["batches"], 3)

    def test_bad_input(self):
        trace = self.recording()
        for sql, sentence in [("SELECT nosuch FROM tacho.dispatch", "no such column: nosuch"), ("DELETE FROM op", "may not be modified"),
                              ("SELECT name FROM kernl", "did you mean"), ("SELECT (SELECT abs(-9223372036854775808))", "integer overflow")]:
            result = self.run_command(TACHO, "query", trace, sql, "--output-format", "arrow", code=1)
            self.assertIn(sentence, result.stderr.decode())
            self.assertEqual(result.stdout, b"", sql)
        with open("/dev/full", "wb") as full:

            done = subprocess.run([TACHO, "query", trace, "SELECT * FROM tacho.api", "--output-format", "arrow"], stdout=full,
                                  stderr=subprocess.PIPE, cwd=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("No space left", done.stderr.decode())

    def test_not_on_a_terminal(self):
        trace = self.recording()
        said = self.run_command("script", "-qec", f"{TACHO} query {trace} 'SELECT 1' --output-format arrow", "/dev/null", code=1).stdout.decode()
        self.assertIn("--output-format arrow is not for a terminal", " ".join(said.split()))

    def test_memory_is_bounded(self):
        if sanitized():
            self.skipTest("a sanitizer needs more memory")
        trace = self.recording()
        limit = 256 << 20
        for sql in (COUNT.format(1000000) + "SELECT i, 'a text of some length, ' || i FROM n", COUNT.format(1000000) + "SELECT i, i / 2.0 FROM n"):
            result = self.run_command("bash", "-c", 'exec "$0" query "$1" "$2" --output-format arrow | wc -c', TACHO, trace, sql,
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
            self.assertGreater(int(result.stdout), 14_000_000)

    SUMS = "count(*), sum(start), sum(duration), count(queued_ahead), sum(length(CAST(name AS BLOB)))"

    def test_clickhouse(self):
        try:
            engines.library("clickhouse")
        except unittest.SkipTest as skipped:
            self.skipTest(str(skipped))
        trace = self.recording()
        sql = "SELECT name, start, duration, queued_ahead, correlation FROM tacho.dispatch"
        self.stream(trace, sql)
        self.run_command(TACHO, "query", trace, sql, "-o", "answer.arrow")
        own = self.run_command(TACHO, "query", trace, f"SELECT {self.SUMS} FROM tacho.dispatch", "--output-format", "json")
        for file, form in (("answer.arrows", "ArrowStream"), ("answer.arrow", "Arrow")):
            [read] = engines.run("clickhouse", f"""SELECT count() AS n, sum(start) AS s, sum(duration) AS d, count(queued_ahead) AS q,
                sum(length(name)) AS l FROM file('{file}', {form})""", cwd=self.folder)
            self.assertEqual([int(read[0][name]) for name in "nsdql"], json.loads(own.stdout)["rows"][0], file)

    def test_duckdb(self):
        self.need_module(DUCKDB, "@duckdb", "TACHO_REQUIRE_DATA=1 scripts/packages.sh test")
        trace = self.recording()

        def duckdb(statement):
            return json.loads(self.run_command("node", DUCKDB, "answer.arrows", statement).stdout)

        self.stream(trace, "SELECT * FROM tacho.dispatch")
        own = self.run_command(TACHO, "query", trace, f"SELECT {self.SUMS} FROM tacho.dispatch", "--output-format", "json")
        read = duckdb("SELECT count(*), sum(start), sum(duration), count(queued_ahead), sum(octet_length(encode(name))) FROM answer")
        self.assertEqual([int(value) for value in read[0]], json.loads(own.stdout)["rows"][0])
        self.stream(trace, "SELECT 1 AS a, 2.5 AS b, 'ünï€😀' AS c, NULL AS d UNION ALL SELECT NULL, NULL, NULL, NULL")
        self.assertEqual(duckdb("SELECT typeof(a), typeof(b), typeof(c), * FROM answer ORDER BY a"),
                         [["BIGINT", "DOUBLE", "VARCHAR", "1", "2.5", "ünï€😀", None], ["BIGINT", "DOUBLE", "VARCHAR", None, None, None, None]])


class Files(Reading):
    """-o FILE."""

    def write(self, trace, sql, output, *options, code=0, **more):
        return self.run_command(TACHO, "query", trace, sql, "-o", output, *options, code=code, **more)

    def test_by_ending(self):
        trace = self.recording()
        for sql in ("SELECT name, start, duration FROM tacho.dispatch", "SELECT name, sum(duration) / 2.0 FROM tacho.dispatch GROUP BY name", "--schema"):
            for ending, form in ((".csv", "csv"), (".json", "json"), (".arrows", "arrow"), (".txt", "table")):
                said = self.run_command(TACHO, "query", trace, sql, "-o", f"a{ending}", "--overwrite", env={"COLUMNS": "40"})
                self.assertEqual(said.stdout.decode(), f"a{ending}\n")
                expected = self.run_command(TACHO, "query", trace, sql, "--output-format", form).stdout
                self.assertEqual((self.folder / f"a{ending}").read_bytes(), expected, (sql, ending))
        self.write(trace, "SELECT 1", "plan.txt", "--explain")
        self.assertTrue((self.folder / "plan.txt").read_text().startswith("engine  "))
        # The word of --output-format comes first, and - is standard output.
        self.write(trace, "SELECT 7 AS n", "a.dat", "--output-format", "csv")
        self.assertEqual((self.folder / "a.dat").read_text(), "n\n7\n")
        self.write(trace, "SELECT 7 AS n", "b.json", "--output-format", "csv")
        self.assertEqual((self.folder / "b.json").read_text(), "n\n7\n")
        self.assertEqual(self.write(trace, "SELECT 7 AS n", "-", "--output-format", "csv").stdout, b"n\n7\n")
        self.assertIn(b"7", self.write(trace, "SELECT 7 AS n", "/dev/stdout").stdout)

    def test_arrow_file(self):
        self.need_module(READER, "apache-arrow")
        trace = self.recording()
        for sql in ("SELECT * FROM tacho.api", "SELECT name || '', start / 2.0 FROM tacho.api", "SELECT 1 WHERE 0",
                    COUNT.format(40000) + "SELECT i, CASE WHEN i = 39999 THEN 'late' END a FROM n"):
            stream = self.read(trace, sql)
            for name in ("a.arrow", "b.feather"):
                self.write(trace, sql, name, "--overwrite")
                data = (self.folder / name).read_bytes()
                self.assertEqual((data[:8], data[-6:]), (b"ARROW1\0\0", b"ARROW1"))
                self.assertEqual(self.read_file(name), stream, sql)

    def test_refused(self):
        trace = self.recording()
        (self.folder / "old.csv").write_text("mine")
        (self.folder / "closed").mkdir()
        for output, needles in [("a.xyz", ["a.xyz", ".csv", "--output-format"]), ("a", ["the ending says no format"]), ("a.csv.gz", ["packs no output"]),
                                ("a.parquet", ["no Parquet", "-f parquet"]), ("old.csv", ["old.csv exists", "--overwrite"]),
                                ("no/such.csv", ["no"]), ("closed", ["the ending says no format"])]:
            self.one_sentence(self.write(trace, "SELECT 1", output, code=1), *needles)
        self.one_sentence(self.write(trace, "SELECT 1", trace, "--output-format", "csv", "--overwrite", code=1), "is the trace itself")
        self.one_sentence(self.write(trace, "SELECT nosuch FROM tacho.api", "old.csv", "--overwrite", code=1), "no such column")
        self.one_sentence(self.write(trace, "SELECT 1", "/dev/full", "--output-format", "csv", code=1), "/dev/full")
        # Fails in the midst of the answer: what was there stays.
        late = COUNT.format(300000) + "SELECT i, CASE WHEN i = 299999 THEN abs(-9223372036854775807 - 1) ELSE i END b FROM n"
        for output in ("old.csv", "new.json", "new.arrow"):
            self.one_sentence(self.write(trace, late, output, "--overwrite", code=1), "integer overflow")
        short = self.write(trace, COUNT.format(300000) + "SELECT i FROM n", "new.csv", code=1,
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)))
        self.one_sentence(short, "new.csv")
        self.assertEqual((self.folder / "old.csv").read_text(), "mine")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["closed", "old.csv", trace])


if __name__ == "__main__":
    main()
