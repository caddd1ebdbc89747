"""Inputs that change while they are read, or that want to be expensive; statements without an end."""
import contextlib
import csv
import io
import json
import os
import signal
import sqlite3
import subprocess
import time

import attack
from attack import WORKLOAD, variants


class Shrinking(attack.Attack):
    """A file becomes shorter between a command's look at its size and its reading: one sentence and exit 1, or a right answer."""
    COMMANDS = {"query": ("query", "big.tacho", "select count(*), sum(duration), min(name) from tacho.marker"),
                "stats": ("stats", "big.tacho", "--by", "marker"), "csv": ("export", "big.tacho", "-f", "csv", "-d", "out"),
                "json": ("export", "big.tacho", "-f", "json", "-o", "out.json"), "info": ("info", "big.tacho"),
                "pftrace": ("export", "big.tacho", "-f", "pftrace", "-o", "out.pftrace")}

    def attacked(self, words, file, to):
        """Stops the command at a few moments, cuts the file off, lets it go on."""
        original = (self.folder / file).read_bytes()
        for delay in (0.002, 0.006, 0.012, 0.02, 0.04):
            (self.folder / file).write_bytes(original)
            process = self.start(*words)
            time.sleep(delay)
            os.kill(process.pid, signal.SIGSTOP)
            os.truncate(self.folder / file, to)
            os.kill(process.pid, signal.SIGCONT)
            try:
                out, err = process.communicate(timeout=3)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)  # the query above has all it needs in memory
                process.communicate(timeout=10)
                continue
            self.assertIn(process.returncode, (0, 1), err)
            if process.returncode == 1:
                self.assertEqual(len(err.decode().splitlines()), 1, err)
                self.assertTrue(err.startswith(b"tacho: "), err)
            subprocess.run(["rm", "-rf", self.folder / "out", self.folder / "out.json", self.folder / "out.pftrace"])

    @variants(**COMMANDS)
    def test_trace(self, words):
        self.trace_of(WORKLOAD, "20000", output="big.tacho")
        self.attacked(words, "big.tacho", 4096)

    @variants(rpd="rpd", rocpd="rocpd")
    def test_database(self, form):
        self.trace_of(WORKLOAD, "20000", output="t.tacho")
        self.tacho("export", "t.tacho", "-f", form, "-o", "big.db")
        self.attacked(("query", "big.db", "select count(*), min(string) from rocpd_string" if form == "rpd" else "select 1"), "big.db", 8192)


class Damaged(attack.Attack):
    def test_no_value_of_a_column_that_cannot_be_read(self):
        """A statement with a LIMIT does not reach the end, where the error was reported: it gave rows of zeros."""
        self.trace_of(WORKLOAD, "3000")
        whole = (self.folder / "t.tacho").read_bytes()
        failed = 0
        for part in range(1, 60):
            at = len(whole) * part // 60
            (self.folder / "d.tacho").write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1:])
            for column in ("start", "duration", "name"):
                answer = self.tacho("query", "d.tacho", f"select count({column}), max({column}) from tacho.marker", code=None)
                if answer.returncode != 0:
                    failed += 1
                    self.sentence(self.tacho("query", "d.tacho", f"select {column} from tacho.marker limit 1", code=1), "damaged")
        self.assertGreater(failed, 3)


class Time(attack.Attack):
    ENDLESS = {"recursive": "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
               "join": "select count(*) from tacho.marker a, tacho.marker b, tacho.marker c, tacho.marker d",
               "text": "select length(group_concat(a.start || b.start || c.start)) from tacho.marker a, tacho.marker b, tacho.marker c"}

    @variants(**ENDLESS)
    def test_timeout(self, sql):
        self.trace_of(WORKLOAD, "500")
        begin = time.monotonic()
        result = self.tacho("query", "--timeout", "0.5", "t.tacho", sql, code=1)
        self.assertLess(time.monotonic() - begin, 3)
        self.sentence(result, "--timeout")

    @variants(**ENDLESS)
    def test_interrupt(self, sql):
        self.trace_of(WORKLOAD, "500")
        process = self.start("query", "t.tacho", sql)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        process.communicate(timeout=10)
        self.assertLess(time.monotonic() - begin, 1)

    def test_terminal_sees_that_it_works(self):
        self.trace_of(WORKLOAD, "500")
        ours, theirs = os.openpty()
        process = subprocess.Popen([str(attack.TACHO), "query", "t.tacho", self.ENDLESS["recursive"]], cwd=self.folder,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs, env=self.environment())
        os.close(theirs)
        try:
            seen = b""
            while b"working for" not in seen:
                seen += os.read(ours, 4096)
            process.send_signal(signal.SIGINT)
            self.assertNotEqual(process.wait(timeout=10), 0)
        finally:
            process.kill()
            os.close(ours)

    def test_timeout_that_is_not_needed(self):
        self.trace_of(WORKLOAD, "10")
        result = self.tacho("query", "--timeout", "30", "--output-format", "csv", "t.tacho", "select 6 * 7 as n")
        self.assertEqual(result.stdout, b"n\n42\n")

    @variants(zero="0", negative="-1", word="soon", huge="1e300")
    def test_timeouts_that_are_none(self, value):
        self.trace_of(WORKLOAD, "1")
        self.sentence(self.tacho("query", "--timeout", value, "t.tacho", "select 1", code=1))

    def test_six_thousand_tables(self):
        """20 seconds once, growing with the square."""
        self.trace_of(WORKLOAD, "10")
        self.tacho("export", "t.tacho", "-f", "rpd", "-o", "many.rpd")
        database = sqlite3.connect(self.folder / "many.rpd", isolation_level=None)
        database.execute("begin")
        for i in range(6000):
            database.execute(f"create table extra{i}(a integer primary key, b text)")
        database.commit()
        database.close()
        begin = time.monotonic()
        self.tacho("query", "many.rpd", "select count(*) from rocpd_string")
        self.assertLess(time.monotonic() - begin, 8)  # 1 s when nothing else runs


class Patterns(attack.Attack):
    @variants(parenthesis="((", bracket="[a", brace="a{2", star="*(", backslash="\\", range="[z-a]")
    def test_kernel_include(self, pattern):
        for option in ("--kernel-include", "--kernel-exclude"):
            result = self.trace_of("/usr/bin/touch", "ran", options=[option, pattern], code=None)
            # POSIX takes some of them as they are.
            if result.returncode != 0:
                self.assertEqual(result.returncode, 125)
                self.sentence(result, option, "regular expression")
                self.assertFalse((self.folder / "ran").exists())
            else:
                self.assertNotEqual(pattern, "((")
            for name in ("ran", "t.tacho"):
                (self.folder / name).unlink(missing_ok=True)


class Told(attack.Attack):
    """Losses are reported, and never blamed on the wrong cause."""
    def test_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become somebody else")
        tacho, workload = self.for_everybody(WORKLOAD)
        self.pools.chmod(0o777)
        script = "import os, sys; os.setgid(65534); os.setuid(65534); os.execv(sys.argv[1], sys.argv[1:])"
        result = self.tacho("trace", "-o", "t.tacho", "--", "/usr/bin/python3", "-c", script, workload, "5", program=tacho)
        self.assertEqual(result.stdout, b"done 1 0\n")
        text = result.stderr.decode()
        self.assertIn("another user", text)
        self.assertNotIn("statically linked", text)
        self.assertNotIn("nothing was lost", text)
        self.nothing_left()

    def test_another_dev_shm(self):
        """A child with its own mounts, in which the pool's folder is another one, is still recorded."""
        attack.harness.need_mounts()
        make = f'mount -t tmpfs none {self.pools} || exit 77; test -z "$(ls -A {self.pools})" || exit 78; exec {WORKLOAD} 5'
        result = self.tacho("trace", "-o", "t.tacho", "--", "/usr/bin/unshare", "--mount", "/bin/sh", "-c", make, code=None)
        if result.returncode == 77:
            self.skipTest("mount namespaces are not permitted here")
        self.assertEqual((result.returncode, result.stdout), (0, b"done 1 0\n"), result.stderr)
        self.assertEqual(self.markers(), 50)
        self.nothing_left()

    def test_program_that_outlives_its_shell(self):
        result = self.tacho("trace", "-o", "t.tacho", "--", "/bin/sh", "-c", f"(sleep 0.5; {WORKLOAD} 5) >/dev/null 2>&1 & exit 0")
        self.assertIn("still run", result.stderr.decode())

    def test_own_cost_of_an_aggregate(self):
        result = self.tacho("trace", "-o", "t.tacho", "--aggregate", "--", WORKLOAD, "3000")
        self.assertRegex(result.stderr.decode(), r"at its start: [1-9]")


class Durations(attack.Attack):
    """Rows that end before they begin: one rule for all answers. They count as calls, and add nothing to a time."""
    NAMES = [["bad", 1, None], ["good", 3, 50_000]]  # calls, ns

    def kineto(self, shift=1):
        """Times in microseconds; two of four kernels and two of three calls end before they begin."""
        kernels = [(100, 20, 9, "good"), (200, 30, 10, "good"), (300, -10 * shift, 11, "good"), (400, -10 * shift, 12, "bad")]
        calls = [(90, 5, 9, "cudaLaunchKernel"), (290, -5 * shift, 11, "cudaLaunchKernel"), (390, -5 * shift, 12, "cudaBad")]
        events = [{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 5, "ts": start, "dur": length,
                   "args": {"device": 0, "stream": 5, "correlation": number, "grid": [16, 1, 1], "block": [64, 1, 1]}}
                  for start, length, number, name in kernels]
        events += [{"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": 2, "ts": start, "dur": length,
                    "args": {"correlation": number}} for start, length, number, name in calls]
        (self.folder / "in.json").write_text(json.dumps({"traceEvents": events}))
        return "in.json"

    def rpd(self):
        """The same, through a database whose ends were moved."""
        self.kineto(0)
        self.tacho("export", "in.json", "-f", "rpd", "-o", "in.rpd")
        with contextlib.closing(sqlite3.connect(self.folder / "in.rpd", isolation_level=None)) as database:
            database.execute("update rocpd_op set end = start - 10000 where id in (3, 4)")
            database.execute("update rocpd_api set end = start - 5000 where id in (2, 3)")
        return "in.rpd"

    def tacho_file(self):
        self.tacho("convert", self.kineto(), "in.tacho")
        return "in.tacho"

    def csv(self, *words):
        return list(csv.DictReader(io.StringIO(self.tacho(*words, "--output-format", "csv").stdout.decode())))

    @variants(kineto="kineto", rpd="rpd", tacho_file="tacho_file")
    def test_one_rule(self, way):
        file = getattr(self, way)()
        number = lambda text: int(float(text)) if text else None  # noqa: E731
        top = sorted([row["Name"], number(row["Calls"]), number(row["TotalDurationNs"])] for row in self.csv("top", file))
        self.assertEqual(top, self.NAMES)
        self.assertEqual({row["Name"]: number(row["AverageNs"]) for row in self.csv("top", file)}, {"good": 25_000, "bad": None})
        stats = sorted([row["Name"], number(row["Calls"]), number(row["TotalDurationNs"])] for row in self.csv("stats", file))
        self.assertEqual(stats, self.NAMES)
        rows = self.csv("stats", file, "--by", "api")
        self.assertEqual({row["Name"]: [number(row["Calls"]), number(row["TotalDurationNs"])] for row in rows},
                         {"cudaLaunchKernel": [2, 5000], "cudaBad": [1, None]})
        self.tacho("export", file, "-f", "csv", "-d", "out")
        with open(next((self.folder / "out").glob("*kernel_trace.csv")), encoding="utf-8") as table:
            ends = sorted((int(row["Start_Timestamp"]), row["End_Timestamp"]) for row in csv.DictReader(table))
        self.assertEqual([end for _, end in ends], ["120000", "230000", "", ""])
        for text in (self.notes(file),):
            self.assertIn("2 dispatch records: times out of order", text)
            self.assertIn("2 api records: times out of order", text)
        if way == "rpd":
            return  # SQL sees the numbers of the file, as any SQLite does
        for dialect, view, columns in (("rpd", "top", "TotalCalls, TotalDuration"), ("rocpd", "top_kernels", "total_calls, total_duration")):
            rows = json.loads(self.tacho("query", file, "--dialect", dialect, "--output-format", "json",
                                         f"select name, {columns} from {view} order by 1").stdout)["rows"]
            self.assertEqual([[name, calls, None if total is None else int(total * 1000)] for name, calls, total in rows], self.NAMES)
        rows = json.loads(self.tacho("query", file, "--output-format", "json",
                                     "select count(*), count(duration), sum(duration) from tacho.dispatch").stdout)["rows"]
        self.assertEqual(rows, [[4, 2, 50_000]])


class Words(attack.Attack):
    """Characters that a terminal would obey do not reach it through a message."""
    HOSTILE = "a\x1b[31mb\x07\x9bc\x7f"

    def quiet(self, result):
        text = result.stderr.decode("utf-8")  # valid, whatever the name was
        self.assertEqual([c for c in text if (c < " " and c != "\n") or "\x7f" <= c <= "\x9f"], [], text)

    @variants(missing=("info",), stats=("stats",), query_file=("query",), recover=("recover",), flame=("flame",), export=("export", "-f", "csv"))
    def test_file_name(self, words):
        arguments = ["select 1"] if words == ("query",) else []
        self.quiet(self.tacho(*words, self.HOSTILE, *arguments, code=None))
        self.quiet(self.tacho(*words, os.fsdecode(b"\xff\xfe\xc3("), *arguments, code=None))

    def test_sql(self):
        self.trace_of(WORKLOAD, "1")
        self.quiet(self.tacho("query", "t.tacho", f"select {self.HOSTILE}", code=1))
        self.quiet(self.tacho("query", "t.tacho", os.fsdecode(b"select \xff\xc3("), code=1))

    def test_options_and_commands(self):
        self.quiet(self.tacho(self.HOSTILE, code=1))
        self.quiet(self.tacho("stats", "--by", self.HOSTILE, "x.tacho", code=1))
        self.quiet(self.tacho("trace", "--start-trigger", self.HOSTILE, "--", "true", code=125))

    def test_program_name(self):
        self.quiet(self.tacho("trace", "--", f"./{self.HOSTILE}", code=127))

    def test_file_that_is_none(self):
        (self.folder / self.HOSTILE).write_text("{\"a\x1b[31m\": \x07")
        self.quiet(self.tacho("info", self.HOSTILE, code=1))

    def test_cells_of_csv(self):
        """They hold the names as they are, as docs/reliability.md says, formulas too; U+FFFD stands for bytes that are no UTF-8."""
        names = [b"=1+1", b"@SUM(A1)", b"-2+3", b'=HYPERLINK(\\"http://x\\")', b"\xff\xfe\xc3(", b"a,b\\nc"]
        events = b",".join(b'{"ph":"X","cat":"user_annotation","name":"%s","pid":1,"tid":1,"ts":%d,"dur":1}' % (name, i * 10)
                           for i, name in enumerate(names))
        (self.folder / "in.json").write_bytes(b'{"traceEvents":[' + events + b"]}")
        self.tacho("export", "in.json", "-f", "csv", "-d", "out")
        text = next((self.folder / "out").glob("*marker_api_trace.csv")).read_bytes()
        rows = list(csv.DictReader(io.StringIO(text.decode("utf-8"), newline="")))
        self.assertEqual([row["Function"] for row in rows],
                         [name.replace(b'\\"', b'"').replace(b"\\n", b"\n").decode("utf-8", "replace") for name in names])

    def test_tacho_in_tacho(self):
        result = self.tacho("trace", "-o", "outer.tacho", "--", attack.TACHO, "trace", "--quiet", "-o", "inner.tacho", "--", WORKLOAD, "5")
        self.assertEqual(self.markers("inner.tacho"), 50)
        self.assertIn("tacho itself", result.stderr.decode())
        self.nothing_left()


if __name__ == "__main__":
    attack.main()
