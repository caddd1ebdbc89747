#!/usr/bin/env python3
"""Every writer over traces that writers find hard, read back by other programs' readers: whole files of valid text, the same
number of kernels, or one sentence that says what a format has no place for.

A new writer gets one line in READERS; a new hard trace one case in outputs/bad_trace.cpp and one line in TRACES."""
import csv
import errno
import json
import os
import re
import sqlite3
from resource import RLIMIT_DATA, setrlimit

import engines
import harness
from harness import BUILD, TACHO
from proto import Perfetto

csv.field_size_limit(1 << 30)


def text_of(path):
    return path.read_bytes().decode("utf-8")  # fails where it is not UTF-8


def read_csv(files):
    """Every row has as many fields as the header, and quoted fields end where they should."""
    kernels = []
    for path in files:
        rows = list(csv.reader(text_of(path).splitlines(keepends=True), strict=True))
        for row in rows:
            if len(row) != len(rows[0]):
                raise AssertionError(f"{path.name}: {len(row)} fields below a header of {len(rows[0])}")
        if path.name.endswith("kernel_trace.csv"):
            kernels += [row[rows[0].index("Kernel_Name")] for row in rows[1:]]
    return kernels


def strict_json(path):
    def refuse(word):
        raise ValueError(f"{word} is no JSON")
    return json.loads(text_of(path), parse_constant=refuse)


def read_json(files):
    events = strict_json(files[0])["traceEvents"]
    for event in events:
        for key in ("ts", "dur"):
            if not isinstance(event.get(key, 0), (int, float)):
                raise AssertionError(event)
    return [event["name"] for event in events if event.get("cat") == "kernel"]


def read_rocprofv3(files):
    return [row for tool in strict_json(files[0])["rocprofiler-sdk-tool"] for row in tool["buffer_records"]["kernel_dispatch"]]


def read_pftrace(files):
    trace = Perfetto(files[0])
    if trace.unbalanced:
        raise AssertionError(trace.unbalanced)
    return None


def read_database(kernels):
    def read(files):
        with sqlite3.connect(files[0]) as base:
            if base.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                raise AssertionError("integrity")
            for (table,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                base.execute(f'SELECT * FROM "{table}"').fetchall()  # text that is not UTF-8 fails
            return [row for (row,) in base.execute(kernels)]
    return read


def read_folded(files):
    for path in files:
        for line in text_of(path).split("\n")[:-1]:
            if not re.fullmatch(r"[^\r]+ \d+", line):
                raise AssertionError(line)
    return None


def read_speedscope(files):
    data = strict_json(files[0])
    for profile in data["profiles"]:
        for stack in profile["samples"]:
            if any(frame >= len(data["shared"]["frames"]) for frame in stack):
                raise AssertionError("a frame that is not there")
    return None


def read_parquet(files):
    for path in files:
        engines.run("duckdb", f"SELECT * FROM read_parquet('{path}')")
    kernels = ", ".join(f"'{path}'" for path in files if path.parent.name == "table=dispatch")
    return [row["name"] for row in engines.run("duckdb", f"SELECT name FROM read_parquet([{kernels}])")[0]] if kernels else []


def read_otlp(files):
    kernels = []
    for path in files:
        for line in text_of(path).split("\n")[:-1]:
            message = json.loads(line, parse_constant=lambda word: int(word))
            for resource in message.get("resourceMetrics", []):
                for metric in resource["scopeMetrics"][0]["metrics"]:
                    if metric["name"] == "tacho.gpu.kernel.duration":
                        for point in metric["histogram"]["dataPoints"]:
                            kernels += [point] * int(point["count"])
    return kernels


# What reads a writer's files: a list with an entry for each kernel, or None where the form has no list of them.
READERS = {
    "csv": read_csv,
    "json": read_json,
    "pftrace": read_pftrace,
    "rocprofv3": read_rocprofv3,
    "rpd": read_database("SELECT S.string FROM rocpd_op O JOIN rocpd_string S ON S.id = O.description_id JOIN rocpd_string T ON T.id = O.opType_id "
                         "WHERE T.string LIKE '%Kernel%'"),
    "rocpd": read_database("SELECT name FROM kernels"),
    "nsys-sqlite": read_database("SELECT S.value FROM CUPTI_ACTIVITY_KIND_KERNEL K JOIN StringIds S ON S.id = K.demangledName"),
    "otlp": read_otlp,
    "parquet": read_parquet,
    "folded": read_folded,
    "speedscope": read_speedscope,
}
STACKS = ("folded", "speedscope")
FOLDERS = ("csv", "parquet")
# The hard traces: arguments of bad_trace, kernels, whether they have call stacks or device work for folded stacks.
TRACES = {
    "any_bytes": (("any_bytes",), 6),
    "megabyte_names": (("long_names", "1100000"), 6),
    "times": (("times",), 7),  # 4 of 11 are refused by any trace
    "no_owners": (("no_owners",), 2),
    "beside_owners": (("beside_owners",), 5),
    "nothing": (("nothing",), 0),
    "process_alone": (("process_alone",), 0),
    "one_pid": (("one_pid",), 6),
    "many_names": (("many_names", os.environ.get("TACHO_TEST_NAMES", "20000")), int(os.environ.get("TACHO_TEST_NAMES", "20000"))),
}


class Outputs(harness.Case):
    def make(self, *words):
        self.run_command(BUILD / "tests" / "bad_trace", "t.tacho", *words)

    def export(self, form, *more, code=0, **options):
        return self.run_command(TACHO, "export", "t.tacho", "-f", form, *more, code=code, env={"TACHO_DUCKDB": str(engines.LIBRARIES["duckdb"])}, **options)

    def formats(self):
        said = self.export("none", code=1).stderr.decode() if (self.folder / "t.tacho").exists() else ""
        return said.strip().split("formats are ")[1].split(", ")

    def written(self, result):
        return [self.folder / name for name in result.stdout.decode().split("\n") if name]

    def test_every_writer_is_in_the_table(self):
        self.make("nothing")
        self.assertEqual(set(self.formats()), set(READERS))

    def one_writer(self, form, kernels):
        result = self.export(form, "-d", f"out-{form}", code=None, timeout=300)
        said = result.stderr.decode()
        self.assertEqual(result.returncode, 1 if form in STACKS and kernels == 0 else 0, said)
        for line in said.splitlines():
            self.assertTrue(line.startswith(("tacho: ", " ")) or line == "", said[:2000])
        if result.returncode == 1:
            self.assertIn("no call stacks", said)
            self.assertEqual(list((self.folder / f"out-{form}").iterdir()), [])
            return
        files = self.written(result)
        self.assertTrue(all(path.exists() for path in files), files)
        self.assertEqual(len(files), len(set(files)), files)
        rows = READERS[form](files)
        if rows is not None and len(rows) != kernels:
            # What is not there is counted.
            self.assertRegex(" ".join(said.split()), rf"-f {form} has no place for (.* and )?\d+ rows of no process|\d+ events? ha(s|ve) no known duration")
            self.assertLess(len(rows), kernels)

    def test_hard_traces(self):
        for name, (words, kernels) in TRACES.items():
            self.make(*words)
            for form in READERS:
                with self.subTest(trace=name, form=form):
                    if form == "parquet":
                        engines.library("duckdb")
                    self.one_writer(form, kernels)
                    self.run_command("rm", "-rf", self.folder / f"out-{form}")

    def test_tables_without_a_place_are_counted(self):
        """A .tacho file keeps what a format has no place for; the sentence names each table with its rows."""
        self.make("beside_owners")
        allocations, waits, readings = ("2 allocations", "1 wait", "1 reading of telemetry")
        expected = {"csv": (waits, readings, "5 call-stack samples"), "json": ("1 MPI message",), "pftrace": ("1 MPI message",),
                    "rocprofv3": (waits, readings), "rpd": (allocations, waits), "rocpd": (waits,), "nsys-sqlite": (allocations, readings),
                    "otlp": ("1 MPI message",), "folded": (allocations, waits), "speedscope": (allocations, waits)}
        for form, parts in expected.items():
            with self.subTest(form):
                said = " ".join(self.export(form, "-d", "out").stderr.decode().split())
                self.assertIn(f"-f {form} has no place for", said)
                for part in parts:
                    self.assertIn(part, said)

    def test_processes_of_one_pid_have_files_of_their_own(self):
        self.make("one_pid")
        for more in ((), ("--overwrite",), ("--overwrite",)):
            files = self.written(self.export("csv", "-d", "out", *more))
            self.assertEqual(len(files), len(set(files)))
            traces = [path for path in files if path.name.endswith("kernel_trace.csv")]
            self.assertEqual(sorted(len(read_csv([path])) for path in traces), [1, 2, 3])
        self.assertEqual(len(list((self.folder / "out").glob("*_kernel_trace.csv"))), 3, "--overwrite replaces, and nothing else")
        pids = {event["pid"] for event in json.loads((self.written(self.export("json"))[0]).read_text())["traceEvents"] if event.get("cat") == "cuda_runtime"}
        self.assertEqual(len(pids), 3, "viewers need three numbers")
        kernels = read_rocprofv3(self.written(self.export("rocprofv3")))
        self.assertEqual(len(kernels), 6)

    def test_a_million_stacks_fit_into_memory(self):
        if harness.sanitized():
            self.skipTest("a sanitizer needs more memory")
        stacks, limit = 1_000_000, 288 << 20
        self.make("many_stacks", str(stacks))
        host, device = stacks * 1000, (stacks + 3) // 4 * 500  # ns
        for form in ("folded", "speedscope", "otlp"):
            with self.subTest(form):
                files = self.written(self.export(form, "-d", "out", preexec_fn=lambda: setrlimit(RLIMIT_DATA, (limit, limit))))
                if form == "folded":
                    for path, lines, time in zip(files, (stacks, (stacks + 3) // 4), (host, device)):
                        rows = path.read_text().splitlines()
                        self.assertEqual(len(rows), lines)
                        if path == files[0]:
                            self.assertEqual(sum(int(row.rpartition(" ")[2]) for row in rows), time // 1000)
                elif form == "speedscope":
                    profiles = json.loads(files[0].read_text())["profiles"]
                    self.assertEqual([sum(profile["weights"]) for profile in profiles], [host, device])
                    self.assertEqual(len({tuple(sample) for sample in profiles[0]["samples"]}), stacks)
                else:
                    data = json.loads(next(path for path in files if "profiles" in path.name).read_text())
                    profiles = data["resourceProfiles"][0]["scopeProfiles"][0]["profiles"]
                    sums = [sum(int(sample["values"][0]) for sample in profile["samples"]) for profile in profiles]
                    self.assertEqual(sums, [host, device])
                    self.assertEqual(len({sample["stackIndex"] for sample in profiles[0]["samples"]}), stacks)

    def test_full_disks_and_closed_folders(self):
        """One sentence that names the file, and nothing left."""
        self.make("many_names", "20000")
        (self.folder / "file").write_text("no folder")
        for form in READERS:
            with self.subTest(form):
                env = {"TACHO_DUCKDB": str(engines.LIBRARIES["duckdb"])}
                if form == "parquet":
                    engines.library("duckdb")
                before = sorted(self.folder.iterdir())
                result = self.run_command("/bin/sh", "-c", f"ulimit -f 8; exec {TACHO} export t.tacho -f {form} -d limit", code=1, env=env)
                self.one_sentence(result, "limit")
                self.assertEqual([path for path in (self.folder / "limit").rglob("*") if path.is_file()], [], form)
                for folder in ("/proc/tacho", "file/below", "/sys/tacho"):
                    self.one_sentence(self.export(form, "-d", folder, code=1), folder.split("/")[1] or folder)
                self.run_command("rm", "-rf", self.folder / "limit")
                self.assertEqual(sorted(self.folder.iterdir()), before)
                if form not in FOLDERS + ("rpd", "rocpd", "nsys-sqlite"):
                    self.one_sentence(self.export(form, "-o", "/dev/full", code=1), "/dev/full", os.strerror(errno.ENOSPC))

    def test_a_full_file_system(self):
        harness.need_mounts()
        self.make("many_names", "20000")
        for form in READERS:
            with self.subTest(form):
                if form == "parquet":
                    engines.library("duckdb")
                script = ("mkdir -p small; mount -t tmpfs -o size=64k none small || exit 77; "
                          f"{TACHO} export t.tacho -f {form} -d small; code=$?; find small -type f | sed 's/^/left: /' >&2; umount small; exit $code")
                result = self.run_command("unshare", "--mount", "sh", "-c", script, code=None, env={"TACHO_DUCKDB": str(engines.LIBRARIES["duckdb"])})
                if result.returncode == 77:
                    self.skipTest("no mounts here")
                self.assertEqual(result.returncode, 1, result.stderr)
                self.one_sentence(result, "small")


if __name__ == "__main__":
    harness.main()
