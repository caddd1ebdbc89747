#!/usr/bin/env python3
"""The tables of nsys' SQLite export: queries as scripts for Nsight Systems have them give the numbers of tacho stats."""
import csv
import io
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
        (start, utc), = self.rows("SELECT utcEpochNs, utcTime FROM TARGET_INFO_SESSION_START_TIME")
        self.assertGreater(start, 1_700_000_000_000_000_000)
        self.assertRegex(utc, r"^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d$")
        self.assertEqual(self.rows("SELECT min(start) >= 0 FROM CUPTI_ACTIVITY_KIND_RUNTIME"), [(1,)])

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
