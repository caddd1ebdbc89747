#!/usr/bin/env python3
"""Findings about traces of real programs: a fault is found, its mended version loses the finding; the summary, text, csv and
JSON say the same; recorded traces of real jobs get the findings that a person reads out of them."""
import csv
import io
import json
import os

from harness import BUILD, Case, DATA, DEBIAN_PYTHON, TACHO, TARGETS, main, need_data, sanitized

PROGRAM = TARGETS / "opencl_findings"
CACHE = BUILD / "pocl-cache"


def setUpModule():
    CACHE.mkdir(exist_ok=True)
    os.environ.setdefault("POCL_CACHE_DIR", str(CACHE))


class Findings(Case):
    def report(self, file, *options):
        return self.run_command(TACHO, "report", "findings", file, *options).stdout.decode()

    def findings(self, file):
        """{rule: finding} of the JSON."""
        document = json.loads(self.report(file, "--output-format", "json"))
        self.document = document
        return {finding["rule"]: finding for finding in document["findings"]}

    def of_program(self, *arguments, env=None):
        if sanitized():
            self.skipTest("times of a sanitized build are its own")
        self.trace(PROGRAM, *arguments, output="f.tacho", options=["--overwrite"], env=env)
        return self.findings("f.tacho")


class Programs(Findings):
    def test_launch_bound_and_mended(self):
        found = self.of_program("launches")
        if "launch-bound" in found:
            self.assertIn("tiny-kernels", found)
        # On a busy machine, host and device get no core for longer than a launch takes; then that is the finding.
        cause = next((found[rule] for rule in ("launch-bound", "queued-gaps", "host-computes") if rule in found), None)
        self.assertIsNotNone(cause, found)
        self.assertIn("CPU 0 idled", cause["sentence"])
        low, high = cause["saves"]
        self.assertLessEqual(low, high)
        self.assertLess(high, self.document["length"])
        for span in cause["spans"]:
            self.assertLessEqual(0, span["from"])
            self.assertLess(span["from"], span["to"])
            self.assertLessEqual(span["to"], self.document["length"])
            self.assertEqual(len(span["tracks"]), 2)
        mended = self.of_program("launches", "mended")
        self.assertNotIn("launch-bound", mended)
        self.assertNotIn("tiny-kernels", mended)

    def test_copies_that_wait_and_mended(self):
        found = self.of_program("copies")["synchronous-copies"]
        self.assertEqual(found["state"], "possible")
        self.assertIn("the device is a CPU, whose cores the host shares", found["doubt"])
        self.assertEqual(found["saves"][0], 0)
        self.assertIn("200 of 201 copies", found["sentence"])
        self.assertNotIn("synchronous-copies", self.of_program("copies", "mended"))

    def test_waiting_and_mended(self):
        found = self.of_program("waits")["host-waits"]
        self.assertEqual(found["state"], "possible")
        self.assertIn("the device is a CPU", found["doubt"])
        self.assertNotIn("host-waits", self.of_program("waits", "mended"))

    def test_compiling(self):
        cold = self.folder / "cache"
        cold.mkdir()
        found = self.of_program("build", env={"POCL_CACHE_DIR": str(cold)})
        self.assertEqual(found["start-up"]["state"], "found")
        self.assertIn("The process opencl_findings spent", found["start-up"]["sentence"])

    def test_threads_of_python_that_wait_for_its_lock(self):
        """Debian's Python is stripped: the function that takes the lock has no name there."""
        if sanitized():
            self.skipTest("times of a sanitized build are its own")
        (self.folder / "spin.py").write_text("import threading\n"
                                             "def spin():\n"
                                             "    x = 0\n"
                                             "    for i in range(4_000_000): x += i * i % 7\n"
                                             "threads = [threading.Thread(target=spin) for _ in range(3)]\n"
                                             "for each in threads: each.start()\n"
                                             "for each in threads: each.join()\n")
        self.run_command(TACHO, "trace", "--sampler", "timer", "--sample-clock", "wall", "-q", "-o", "f.tacho", "--", DEBIAN_PYTHON, "spin.py")
        found = self.findings("f.tacho")["python-lock"]
        self.assertEqual(found["state"], "found")
        self.assertRegex(found["sentence"], r"waited [\d.]+ m?s for Python's global lock")


class Output(Findings):
    def test_summary_has_the_first_three_lines(self):
        result = self.run_command(TACHO, "trace", "-o", "s.tacho", "--", PROGRAM, "launches", env={"COLUMNS": "80"})
        lines = result.stderr.decode().splitlines()
        at = lines.index("Findings (percentages are of the run)")
        block = lines[at + 1:lines.index("", at)]
        self.assertTrue(block[-1].startswith("  why and where: tacho report findings "), block)
        # A finding that is too long for a line goes on in the next, further to the right.
        block = "\n".join(block).replace("\n    ", " ").split("\n")
        self.assertLessEqual(len(block), 4)
        titles = [f["title"] for f in json.loads(self.report("s.tacho", "--output-format", "json"))["findings"]]
        for line, title in zip(block[:-1], titles):
            self.assertIn(title, line)

    def test_nothing_is_printed_where_there_is_nothing(self):
        result = self.run_command(TACHO, "trace", "-o", "n.tacho", "--", "true")
        self.assertNotIn("Findings", result.stderr.decode())

    def test_text_csv_and_json_agree(self):
        self.trace(PROGRAM, "launches")
        found = self.findings("t.tacho")
        rows = list(csv.DictReader(io.StringIO(self.report("t.tacho", "--output-format", "csv"))))
        judged = [row for row in rows if row["state"] != "not judged"]
        self.assertEqual([row["rule"] for row in judged], list(found))
        for row in judged:
            self.assertEqual(row["sentence"], found[row["rule"]]["sentence"])
            if found[row["rule"]]["saves"]:
                self.assertEqual([int(row["saves_low_ns"]), int(row["saves_high_ns"])], found[row["rule"]]["saves"])
        self.assertEqual(len(rows) - len(judged), len(self.document["not_judged"]))
        text = self.report("t.tacho")
        joined = " ".join(text.split())
        for finding in found.values():
            self.assertIn(finding["title"], text)
            self.assertIn(" ".join(finding["sentence"].split()), joined)
        for line in text.splitlines():
            self.assertLessEqual(len(line), 80, line)
        self.assertEqual(self.report("t.tacho", "--top", "1").count("refuted if"), 1)

    def test_a_sum_of_events_has_no_findings(self):
        self.trace(PROGRAM, "build", options=["--aggregate"])
        result = self.run_command(TACHO, "report", "findings", "t.tacho")
        self.one_sentence(result, "--aggregate")


class Recordings(Findings):
    """Findings that a person sees in the recorded jobs."""

    def setUp(self):
        super().setUp()
        need_data()

    def test_four_ranks(self):
        files = sorted((DATA / "ranks4").glob("*.json.gz"))
        self.run_command(TACHO, "merge", *files, "-o", "ranks.tacho")
        found = self.findings("ranks.tacho")
        first = self.document["findings"][0]
        self.assertEqual(first["rule"], "late-rank")
        self.assertIn("Rank 3 came last to 106 of 130 collectives", first["sentence"])
        self.assertIn("the host launched late", first["sentence"])
        self.assertEqual(found["launch-bound"]["where"], "GPU 3")  # why it is late
        self.assertRegex(found["launch-bound"]["sentence"], r" in \d+ gaps of [\d.]+ [mu]s on average while ")
        self.assertEqual(found["exposed-collectives"]["state"], "found")

    def test_one_rank_says_that_the_others_are_needed(self):
        self.findings(DATA / "ranks4" / "kineto_rank0.json.gz")
        needs = {rule["rule"]: rule["needs"] for rule in self.document["not_judged"]}
        self.assertIn("tacho merge", needs["late-rank"])

    def test_a_busy_gpu_has_small_kernels(self):
        # The file names its GPU behind the events: only with its multiprocessors can occupancy and roofs be judged. Its matrix
        # products keep few threads on a multiprocessor and are at 60 % of their roof: that is no finding.
        found = self.findings(DATA / "traces" / "kineto_h100_qwen1.5-0.5b.json.gz")
        self.assertEqual({rule: each["state"] for rule, each in found.items()}, {"operators-below-roof": "found"})

    def test_one_gap_is_no_gaps(self):
        sentence = self.findings(DATA / "rpd" / "matmul_result.rpd")["host-computes"]["sentence"]
        self.assertIn(" in 1 gap in which the thread that launches ", sentence)

    def test_communication(self):
        found = self.findings(DATA / "traces" / "kineto_mi300x_resnet_checkpoint.json.gz")
        self.assertEqual(found["exposed-collectives"]["state"], "found")
        found = self.findings(DATA / "traces" / "rocprofv3_gfx950_results.json.gz")
        self.assertEqual(found["exposed-collectives"]["state"], "found")
        needs = {rule["rule"]: rule["needs"] for rule in self.document["not_judged"]}
        self.assertIn("API calls", needs["launch-bound"])


if __name__ == "__main__":
    main()
