"""`tacho query --output-format arrow`: the streams, read by Apache Arrow's JavaScript library and by ClickHouse, which has Arrow's
C++ library, against the same statement's CSV."""
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
COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) "


class Arrow(Case):
    def stream(self, trace, sql, *options):
        """The file with the stream of a statement."""
        result = self.run_command(TACHO, "query", trace, sql, "--output-format", "arrow", *options)
        self.said = result.stderr.decode()
        path = self.folder / "answer.arrows"
        path.write_bytes(result.stdout)
        return path

    def read(self, trace, sql, *options):
        """The stream of a statement as {"fields", "batches", "rows"}."""
        if not (READER.parent / "node_modules" / "apache-arrow").is_dir():
            if os.environ.get("TACHO_REQUIRE_DATA") == "1":
                self.fail("no apache-arrow in tests/arrow: scripts/packages.sh test installs it")
            self.skipTest("no apache-arrow in tests/arrow: scripts/packages.sh test installs it")
        path = self.stream(trace, sql, *options)
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

    def test_other_engine(self):
        try:
            engines.library("clickhouse")
        except unittest.SkipTest as skipped:
            self.skipTest(str(skipped))
        trace = self.recording()
        self.stream(trace, "SELECT name, start, duration, queued_ahead, correlation FROM tacho.dispatch")
        [read] = engines.run("clickhouse", """SELECT count() AS n, sum(start) AS s, sum(duration) AS d, count(queued_ahead) AS q,
            sum(length(name)) AS l FROM file('answer.arrows', ArrowStream)""", cwd=self.folder)
        own = self.run_command(TACHO, "query", trace, """SELECT count(*), sum(start), sum(duration), count(queued_ahead),
            sum(length(CAST(name AS BLOB))) FROM tacho.dispatch""", "--output-format", "json")
        self.assertEqual([int(read[0][name]) for name in "nsdql"], json.loads(own.stdout)["rows"][0])


if __name__ == "__main__":
    main()
