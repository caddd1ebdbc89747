"""Damaged, foreign and hostile traces: one sentence or a counted warning, never a crash, and the input stays as it is."""
import hashlib
import json
import os
import shutil
import sqlite3

from harness import BUILD, DATA, TACHO, Case, main, need_data

COMMANDS = [["info"], ["stats"], ["top"], ["busy"], ["query", "SELECT count(*) FROM tacho.dispatch"], ["query", "SELECT * FROM rpd.top"], ["query", "SELECT * FROM rocpd.top"],
            ["report", "gaps"], ["trim", "o.tacho", "--start", "10%", "--end", "90%"], ["trim", "o.rpd", "--start", "10%", "--end", "90%"], ["export", "-f", "json", "-o", "o.json"]]


def mark(path):
    status = os.stat(path)
    return hashlib.sha256(path.read_bytes()).hexdigest(), status.st_mtime_ns, status.st_mode


class BadInput(Case):
    def setUp(self):
        super().setUp()
        need_data()
        self.input = self.folder / "in"
        self.output = self.folder / "out"
        self.input.mkdir()
        self.output.mkdir()

    def copy(self, name, source="matmul_result.rpd"):
        path = self.input / name
        shutil.copyfile(DATA / "rpd" / source, path)
        return path

    def run_all(self, path, commands=COMMANDS, code=None):
        """Every command on `path`: exit code 0 or 1, errors of one sentence, nothing changed or left. Returns stderr of all."""
        before = mark(path) if path.is_file() else None
        listing = sorted(self.input.iterdir())
        said = ""
        if path.suffix == ".rpd" and commands is COMMANDS:
            commands = [*COMMANDS, ["rpd2tracing", "o.json"]]
        for command in commands:
            words = [TACHO, command[0], command[1], path, *command[2:]] if command[0] == "report" else [TACHO, command[0], path, *command[1:]]
            if command[0] == "rpd2tracing":
                words = [BUILD / "personalities" / "rpd2tracing", path, *command[1:]]
            result = self.run_command(*words, code=None, cwd=self.output, timeout=60)
            with self.subTest(input=path.name, command=command):
                self.assertIn(result.returncode, (0, 1), result.stderr[-500:])
                if code is not None:
                    self.assertEqual(result.returncode, code, result.stderr[-500:])
                if result.returncode == 1:
                    self.one_sentence(result)
                    self.assertEqual(list(self.output.iterdir()), [])
                elif command[0] in ("export", "rpd2tracing"):
                    json.loads((self.output / "o.json").read_text())
            said += result.stderr.decode() + (result.stdout.decode() if command == ["info"] else "")
            for left in self.output.iterdir():
                left.unlink()
        self.assertEqual(sorted(self.input.iterdir()), listing)
        if before is not None:
            self.assertEqual(mark(path), before, path)
        return said

    def sql(self, path, *statements):
        with sqlite3.connect(path) as db:
            for statement in statements:
                db.execute(statement)
        db.close()
        return path

    # ---- databases

    def test_no_database_at_all(self):
        empty = self.input / "empty.rpd"
        empty.write_bytes(b"")
        whole = (DATA / "rpd" / "mytrace.rpd").read_bytes()
        short, half = self.input / "short.rpd", self.input / "half.rpd"
        short.write_bytes(whole[:100])
        half.write_bytes(whole[: len(whole) // 2])
        noise = self.input / "noise.rpd"
        noise.write_bytes(b"SQLite format 3\0" + hashlib.shake_128(b"1").digest(65536))
        text = self.input / "text.rpd"
        text.write_text("not a database")
        for path in (empty, short, half, noise, text):
            self.run_all(path, code=1)

    def test_another_schema(self):
        other = self.sql(self.input / "other.db", "CREATE TABLE t (a)")
        self.assertIn("no .rpd file, no rocpd database and no export of nsys", self.run_all(other, code=1))
        no_table = self.sql(self.copy("no_table.rpd"), "DROP TABLE rocpd_string")
        self.assertIn("rocpd_string", self.run_all(no_table, code=1))
        no_column = self.sql(self.copy("no_column.rpd"), *(f"DROP VIEW {name}" for name in ("api", "op", "busy", "ktop", "top", "kernel", "copy", "copyop")),
                             "ALTER TABLE rocpd_op RENAME COLUMN start TO begin")
        self.assertIn("no column start", self.run_all(no_column, code=1))

    def test_somebody_writes_it(self):
        path = self.copy("locked.rpd")
        db = sqlite3.connect(path, isolation_level=None)
        self.addCleanup(db.close)
        db.execute("BEGIN EXCLUSIVE")
        db.execute("INSERT INTO rocpd_metadata(tag, value) VALUES ('a', 'b')")
        self.run_all(path, code=1)
        db.execute("ROLLBACK")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("INSERT INTO rocpd_metadata(tag, value) VALUES ('a', 'b')")
        self.assertIn("-wal", self.run_all(path, commands=[["top"], ["query", "SELECT 1"]], code=1))

    def test_views_and_triggers_of_the_file_never_run(self):
        path = self.sql(self.copy("hostile.rpd"), "DROP VIEW top", "CREATE VIEW top AS SELECT load_extension('/tmp/evil.so') AS Name",
                        "CREATE VIEW forever AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
                        "CREATE TRIGGER t AFTER INSERT ON rocpd_api BEGIN DELETE FROM rocpd_op; END")
        self.run_all(path, code=0)
        rows = json.loads(self.run_command(TACHO, "query", path, "SELECT * FROM top LIMIT 1", "--output-format", "json").stdout)["rows"]
        self.assertEqual(rows[0][0], "CopyHostToDevice")
        self.one_sentence(self.run_command(TACHO, "query", path, "SELECT * FROM forever", code=1, timeout=20))

    def test_times_orphans_and_duplicates_are_counted(self):
        times = self.sql(self.copy("times.rpd"), "UPDATE rocpd_op SET end = start - 5000 WHERE id = 3", "UPDATE rocpd_op SET start = 'NaN' WHERE id = 4",
                         "UPDATE rocpd_op SET start = 9223372036854775807, end = -9223372036854775808 WHERE id = 5", "UPDATE rocpd_op SET end = 1e300 WHERE id = 6",
                         "UPDATE rocpd_api SET end = start - 1 WHERE id % 7 = 0")
        said = self.run_all(times)
        self.assertIn("times out of order", said)
        self.assertIn("bad input row", said)
        self.assertIn("3 operations are left out", said)
        self.assertIn("1 operation ends before it starts", said)
        orphans = self.sql(self.copy("orphans.rpd"), "DELETE FROM rocpd_api WHERE id % 2 = 0", "UPDATE rocpd_op SET description_id = 999999 WHERE id = 5",
                           "INSERT INTO rocpd_api_ops(api_id, op_id) VALUES (123456, 654321)")
        said = self.run_all(orphans, code=0)
        self.assertIn("belong to no API call", said)
        self.assertIn("refer to calls that are not there", said)
        twice = self.sql(self.copy("twice.rpd"), "INSERT INTO rocpd_api_ops(api_id, op_id) SELECT api_id, op_id FROM rocpd_api_ops")
        self.run_all(twice, code=0)

    def test_numbers_at_the_ends_of_their_range(self):
        for number in (-2**63, 2**63 - 1):
            path = self.copy("ends.rpd")
            with sqlite3.connect(path) as db:
                db.execute("UPDATE rocpd_op SET gpuId = ?, queueId = ? WHERE id = 1", (number, number))
                db.execute("UPDATE rocpd_api SET pid = ?, tid = ? WHERE id = (SELECT min(id) FROM rocpd_api)", (number, number))
            db.close()
            self.run_all(path, code=0)

    def test_scattered_ids(self):
        scattered = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) INSERT INTO rocpd_api SELECT i * 65536 + 1000, pid, tid, start, end, apiName_id, args_id FROM n, "
        path = self.sql(self.copy("scattered.rpd"), scattered + "(SELECT * FROM rocpd_api ORDER BY id LIMIT 1)")
        self.assertIn("scattered too widely", self.run_all(path, commands=[["trim", "o.rpd", "--start", "0%", "--end", "100%"]], code=1))

    def test_too_many_gpus(self):
        path = self.sql(self.copy("gpus.rpd"), "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "
                        "INSERT INTO rocpd_op(gpuId, queueId, sequenceId, completionSignal, start, end, description_id, opType_id) "
                        "SELECT i + 10, 0, 0, '', start, end, description_id, opType_id FROM n, rocpd_op WHERE id = 3")
        said = self.run_all(path, commands=[["info"], ["stats"], ["busy"], ["report", "gaps"], ["export", "-f", "json", "-o", "o.json"], ["rpd2tracing", "o.json"]], code=1)
        self.assertEqual(said.count("4096 GPUs"), 6)

    def test_absurd_texts_and_blobs(self):
        path = self.copy("texts.rpd")
        with sqlite3.connect(path) as db:
            db.executemany("INSERT INTO rocpd_string(string) VALUES (?)", ((f"string {i}",) for i in range(300_000)))
            db.execute("INSERT INTO rocpd_string(string) VALUES (?)", ("x" * 8_000_000,))
            db.execute("UPDATE rocpd_op SET description_id = (SELECT max(id) FROM rocpd_string) WHERE id = 3")
            db.execute("UPDATE rocpd_string SET string = ? WHERE id = (SELECT description_id FROM rocpd_op WHERE id = 4)", (b"\xff\xfe\x00blob",))
        db.close()
        self.run_all(path, code=0)

    def test_damaged_pages(self):
        whole = bytearray((DATA / "rpd" / "matmul_result.rpd").read_bytes())
        for page in (2, 5, 9, 13, 20):
            path = self.input / f"page{page}.rpd"
            damaged = bytearray(whole)
            damaged[page * 4096: page * 4096 + 64] = bytes(range(200, 256)) + b"\xff" * 8
            path.write_bytes(damaged)
            self.run_all(path)

    def test_rocpd(self):
        good = self.input / "good.db"
        self.run_command(TACHO, "export", DATA / "rpd" / "matmul_result.rpd", "-f", "rocpd", "-o", good)
        suffix = sqlite3.connect(good).execute("SELECT value FROM rocpd_metadata WHERE tag = 'uuid'").fetchone()[0]
        half = self.input / "half.db"
        half.write_bytes(good.read_bytes()[:50_000])
        self.run_all(half, code=1)
        odd = self.input / "odd.db"
        shutil.copyfile(good, odd)
        with sqlite3.connect(odd) as db:
            db.execute(f'UPDATE "rocpd_kernel_dispatch{suffix}" SET "end" = start - 10 WHERE id = 2')
            db.execute(f'UPDATE "rocpd_kernel_dispatch{suffix}" SET start = \'NaN\', "end" = 9223372036854775807 WHERE id = 3')
            db.execute(f'UPDATE "rocpd_kernel_dispatch{suffix}" SET kernel_id = 99999, event_id = 99999, queue_id = 99999 WHERE id = 4')
            db.execute(f'DELETE FROM "rocpd_string{suffix}" WHERE id % 3 = 0')
            db.execute(f'UPDATE "rocpd_event{suffix}" SET extdata = ?', ('{"message": ' + "[" * 5000,))
        db.close()
        said = self.run_all(odd)
        self.assertIn("bad input row", said)
        self.assertIn("times out of order", said)

    # ---- JSON

    def test_json(self):
        event = '{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 1, "ts": 5, "dur": 3}'
        for name, text in (("deep", '{"traceEvents": [{"ph": "X", "name": "a", "args": ' + "[" * 1_000_000 + "]" * 1_000_000 + "}]}"), ("open", "[" * 3_000_000),
                           ("cut", '{"traceEvents": [' + event + ', {"ph": "X", "cat": "kern'), ("none", '{"a": 1}'), ("long", '{"traceEvents": [{"ph": "X", "name": "' + "n" * 70_000_000 + '"}]}'),
                           ("empty", ""), ("word", "hello")):
            path = self.input / f"{name}.json"
            path.write_text(text)
            self.run_all(path, code=1, commands=COMMANDS if len(text) < 1_000_000 else COMMANDS[:3])
        odd = self.input / "odd.json"
        odd.write_text('{"traceEvents": [' + ", ".join(event.replace('"ts": 5', f'"ts": {ts}').replace('"dur": 3', f'"dur": {dur}')
                                                       for ts, dur in (("NaN", 5), ("1e400", 5), (5, -3), ('"x"', 1), (5, 3), (-9e15, 3))) + "]}")
        said = self.run_all(odd, code=0)
        self.assertIn("bad input row", said)
        self.assertIn("times out of order", said)
        whole = (DATA / "traces" / "kineto_mi250_toy_rocm6.2.json.gz").read_bytes()
        half, damaged = self.input / "half.json.gz", self.input / "damaged.json.gz"
        half.write_bytes(whole[: len(whole) // 2])
        changed = bytearray(whole)
        changed[len(changed) // 2] ^= 0xff
        damaged.write_bytes(changed)
        self.run_all(half, code=1)
        self.run_all(damaged, code=1)

    # ---- CSV and folders

    def test_csv_and_folders(self):
        header = '"Kind","Kernel_Name","Start_Timestamp","End_Timestamp"\n'
        for name, text in (("columns", '"Kind","x"\n1,2\n'), ("quote", header + '"K","never closed,1,2\n'), ("nothing", "")):
            folder = self.input / name
            folder.mkdir()
            (folder / "1_kernel_trace.csv").write_text(text)
            self.run_all(folder, code=1)
        nothing = self.input / "folder"
        nothing.mkdir()
        self.run_all(nothing, code=1)
        rows = self.input / "rows"
        rows.mkdir()
        (rows / "1_kernel_trace.csv").write_text(header + '"K","a",1,2\n"K","b",x,2\n"K","c",5,1\n"K","d",99999999999999999999999,1\n"K"\n"K","e",7,\n')
        said = self.run_all(rows, code=0)
        self.assertIn("bad input row", said)
        self.assertIn("times out of order", said)
        self.run_all(self.input / "there_is_none.rpd", code=1)


if __name__ == "__main__":
    main()
