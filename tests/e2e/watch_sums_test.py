#!/usr/bin/env python3
"""`tacho watch -o FILE.tacho`: the sums of a run, for tacho stats, query and diff."""
import json
import os
import shutil
import sys
import time
import unittest

from harness import BUILD, Case, DATA, EXAMPLES, SOURCE, TACHO, main, sanitized

DRIVER = BUILD / "tests" / "fake_cuda"
PROGRAM = DRIVER / "fake_watched"
ENVIRONMENT = {"LD_LIBRARY_PATH": str(DRIVER / "driver"), "TACHO_NVML": str(BUILD / "tests" / "libstandin_nvml.so"), "TACHO_AMD_SMI": "", "TACHO_ROCM_SMI": "",
               "TZ": "UTC"}


def setUpModule():
    if sanitized():
        raise unittest.SkipTest("a sanitizer's runtime wants to be the first library of a program")


class Sums(Case):
    def watch(self, work, *options, code=0):
        result = self.run_command(TACHO, "watch", "-o", "w.tacho", *options, "--", "sh", "-c", work, env=ENVIRONMENT, code=code)
        return result.stderr.decode()

    def json_of(self, *command):
        return json.loads(self.run_command(TACHO, *command, "--output-format", "json", env=ENVIRONMENT).stdout)

    def table(self, *command):
        """[{column: value}]"""
        table = self.json_of(*command)
        names = [column["name"] if isinstance(column, dict) else column for column in table["columns"]]
        return [dict(zip(names, row)) for row in table["rows"]]

    def test_a_run(self):
        said = self.watch(f"for i in 1 2 3; do {PROGRAM} dlsym plain 20000 >/dev/null; sleep 1; done")
        self.assertIn("tacho: w.tacho\n", said)
        rows = {row["name"]: row for row in self.table("stats", "w.tacho")}
        self.assertEqual({name: row["count"] for name, row in rows.items()}, {"often_1000 4096/256": 60000, "seldom_50000 4096/256": 600})
        self.assertAlmostEqual(rows["often_1000 4096/256"]["total_ns"] / 60030000, 1, delta=0.02)
        copies = {row["name"]: (row["count"], row["bytes"]) for row in self.table("stats", "w.tacho", "--by", "copy")}
        self.assertEqual(copies, {"host to device": (600, 600 * 4000), "device to host": (600, 600 * 100)})
        [waits] = self.table("stats", "w.tacho", "--by", "sync")
        self.assertEqual((waits["name"], waits["count"]), ("cuStreamSynchronize", 603))
        [memory] = self.table("stats", "w.tacho", "--by", "allocation")
        self.assertEqual((memory["count"], memory["bytes"], memory["total_ns"]), (3, 3 << 20, None))
        query = json.loads(self.run_command(TACHO, "query", "w.tacho", "--output-format", "json",
                                            "SELECT kind, sum(count) AS count, sum(bytes) AS bytes, count(DISTINCT start) AS periods FROM watch_sums "
                                            "WHERE kind IN ('kernel', 'copy') GROUP BY kind ORDER BY kind").stdout)
        rows = query["rows"] if isinstance(query, dict) else [list(row.values()) for row in query]
        self.assertEqual([row[:3] for row in rows], [["copy", 1200, 600 * 4100], ["kernel", 60600, 0]])
        self.assertGreaterEqual(rows[1][3], 3)
        gpus = self.run_command(TACHO, "query", "w.tacho", "--dialect", "tacho", "--output-format", "csv",
                                "SELECT name, avg(value), unit FROM watch_sums WHERE kind = 'gpu' AND name LIKE '%Core Clock%' GROUP BY name").stdout.decode()
        self.assertEqual(len(gpus.splitlines()), 3, gpus)
        info = self.run_command(TACHO, "info", "w.tacho").stdout.decode()
        self.assertRegex(info, r"sums of \d\.\d+ s")

    def test_two_times(self):
        begin = time.time()
        self.watch(f"for i in 1 2 3; do {PROGRAM} dlsym plain 20000 >/dev/null; sleep 1; done; sleep 0.5; date +%s.%N > half; "
                   f"for i in 1 2 3; do {PROGRAM} dlsym plain 40000 >/dev/null; sleep 1; done; sleep 1", "-q")
        # Periods end at whole seconds: one that lies in the pause before the second half, which comes later on a busy machine.
        end, half = round(time.time() - begin), int(float((self.folder / "half").read_text()) - begin - 0.4)
        times = ("--before", f"0s-{half}s", "--after", f"{half}s-{end}s")
        text = self.run_command(TACHO, "diff", "w.tacho", *times, env=ENVIRONMENT).stdout.decode()
        self.assertRegex(text, r"A  \d\d:\d\d:\d\d to \d\d:\d\d:\d\d  \d\.\d+ s in \d periods")
        self.assertRegex(" ".join(text.split()), r"GPU 0: clocks, power and temperature are as before")
        rows = {row["name"]: row for row in self.table("diff", "w.tacho", *times)}
        often = rows["often_1000 4096/256"]
        self.assertEqual(often["count_before"] + often["count_after"], 180000)
        self.assertAlmostEqual(often["average_before_ns"], 1000, delta=50)
        self.assertLess(abs(often["average_change"]), max(0.03, often["interval"] * 2))
        # Over a limit: the device is busier, in as many seconds.
        self.run_command(TACHO, "diff", "w.tacho", "--before", f"0s-{half}s", "--after", f"{half}s-{2 * half}s", "--fail-above", "20%", env=ENVIRONMENT, code=3)
        self.assertEqual({row["average_change"] for row in self.table("diff", "w.tacho", "w.tacho")}, {0})
        copies = self.table("diff", "w.tacho", *times, "--by", "copy")
        self.assertEqual({row["name"] for row in copies}, {"host to device", "device to host"})

    def test_bad_times(self):
        self.watch(f"{PROGRAM} dlsym plain 1000 >/dev/null; sleep 1", "-q")
        self.trace(EXAMPLES / "vcopy", "-n", 65536, "-b", 256, "-i", 2)
        diff = [TACHO, "diff"]
        for words, needle in ((("w.tacho", "--before", "0s-1s"), "--after"), (("w.tacho",), "B is missing"),
                              (("w.tacho", "w.tacho", "--before", "0s-1s", "--after", "1s-2s"), "go together"),
                              (("w.tacho", "--before", "yesterday", "--after", "0s-1s"), "--before yesterday"),
                              (("w.tacho", "--before", "0s-1s", "--after", "100s-200s"), "goes from"),
                              (("w.tacho", "--before", "0s-1s", "--after", "2s-1s"), "--after 2s-1s: the range ends no later than it begins"),
                              (("w.tacho", "--before", "0s-0.01s", "--after", "0s-1s"), "longer range"),
                              (("w.tacho", "--before", "0s-1s", "--after", "0s-1s", "--by", "api"), "--by kernel or copy"),
                              (("t.tacho", "--before", "0s-1s", "--after", "0s-1s"), "tacho trim"),
                              (("w.tacho", "t.tacho"), "t.tacho")):
            with self.subTest(words):
                self.one_sentence(self.run_command(*diff, *words, code=1, env=ENVIRONMENT), needle)
        self.one_sentence(self.run_command(TACHO, "stats", "w.tacho", "--by", "api", code=1), "--by kernel, copy, fill, sync or allocation")

    def test_what_asks_for_single_operations(self):
        """It does not speak of a trace without kernels, and leaves no file behind."""
        self.watch(f"{PROGRAM} dlsym plain 2000 >/dev/null", "-q")
        for words in (("report", "findings"), ("report", "gaps"), ("report", "ranks"), ("ranks",), ("flame",), ("top",), ("busy",), ("memory",),
                      ("stats", "--by", "operator"), ("stats", "--by", "line"), ("trim", "--start", "0%", "part.tacho")):
            with self.subTest(words):
                at = words.index("part.tacho") if "part.tacho" in words else len(words)
                words = (*words[:at], "w.tacho", *words[at:])
                self.one_sentence(self.run_command(TACHO, *words, code=1), "w.tacho: holds sums of tacho watch", "tacho stats, diff, view and query")
        self.assertEqual(os.listdir(self.folder), ["w.tacho"])
        said = self.run_command(TACHO, "export", "w.tacho", "-f", "csv", "-d", "csv").stderr.decode()
        self.assertRegex(said, r"-f csv has no place for \d+ readings of sums and telemetry, which a \.tacho file keeps")
        # Ranks beside it are read.
        job = self.folder / "job"
        job.mkdir()
        (self.folder / "w.tacho").rename(job / "rank0.tacho")
        for rank in (1, 2):
            shutil.copy(DATA / "ranks4" / f"kineto_rank{rank}.json.gz", job)
        said = self.run_command(TACHO, "ranks", "job").stdout.decode()
        self.assertIn("2 ranks", said)
        self.assertIn("holds sums of tacho watch", " ".join(said.split()))

    def test_merge(self):
        """Sums of two times are those of both; of one time, or beside operations, they do not merge."""
        for name in ("a.tacho", "b.tacho"):
            self.run_command(TACHO, "watch", "-q", "-o", name, "--", PROGRAM, "dlsym", "plain", "2000", env=ENVIRONMENT)
        self.run_command(TACHO, "merge", "a.tacho", "b.tacho", "-o", "both.tacho")
        rows = {row["name"]: row["count"] for row in self.table("stats", "both.tacho")}
        self.assertEqual(rows, {"often_1000 4096/256": 4000, "seldom_50000 4096/256": 40})
        self.run_command(TACHO, "trace", "-q", "-o", "t.tacho", "--", "true", env=ENVIRONMENT)
        for inputs, needles in ((("a.tacho", "t.tacho"), ("a.tacho: holds sums of tacho watch, and t.tacho does not",)),
                                (("t.tacho", "b.tacho"), ("b.tacho: holds sums of tacho watch, and t.tacho does not",)),
                                (("a.tacho", "both.tacho"), ("both.tacho: its time overlaps that of a.tacho", "tacho watch --from"))):
            with self.subTest(inputs):
                self.one_sentence(self.run_command(TACHO, "merge", *inputs, "-o", "m.tacho", code=1), *needles)
        self.assertFalse((self.folder / "m.tacho").exists())

    def test_files(self):
        self.watch("true", "-q")
        self.one_sentence(self.run_command(TACHO, "watch", "-o", "w.tacho", "--", "true", code=125), "w.tacho", "--overwrite")
        self.watch("exit 9", "-q", "--overwrite", code=9)
        self.one_sentence(self.run_command(TACHO, "watch", "-o", "no/w.tacho", "--", "true", code=125), "no")
        self.assertEqual([name for name in os.listdir(self.folder) if "partial" in name], [])

    def test_many_launches(self):
        """The short form of bench/watch_long.py: all counts are the driver's, in the JSON and in the file of sums."""
        said = self.run_command(sys.executable, SOURCE / "bench" / "watch_long.py", BUILD, "3e6", "6", "1").stdout.decode()
        self.assertIn("launches: 3000000 of 3000000, ", said)
        self.assertIn("3000000 launches in ", said)
        self.assertTrue(said.endswith("right\n"), said)

    def test_lines_go_where_they_went(self):
        said = self.watch("sleep 0.7", "-q", "--output-format", "json", "--interval", "0.2")
        lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        self.assertGreaterEqual(len(lines), 3)


if __name__ == "__main__":
    main()
