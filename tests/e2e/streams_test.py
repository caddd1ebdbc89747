"""Standard streams that cannot be written: an answer that is cut off fails, a lost message fails nothing."""
import json
import os
import subprocess
import unittest

import harness
from harness import BUILD, DATA, TACHO, need_data

PATTERNS = harness.TARGETS / "opencl_patterns"
PLUGIN = BUILD / "lib" / "libtacho-oclgrind.so"
ICD = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"
STEPS = harness.TARGETS / "opencl_steps"
RPD = DATA / "rpd" / "mytrace.rpd"
RUN = DATA / "workloads" / "synth_a" / "MI200"

ANSWERS = (("stats", RPD), ("stats", RPD, "--output-format", "json"), ("top", RPD), ("busy", RPD), ("info", RPD),
           ("report", "gaps", RPD), ("report", "findings", RPD), ("diff", RPD, RPD), ("query", RPD, "SELECT * FROM rpd.top"),
           ("query", RPD, "--schema", "--output-format", "csv"), ("query", RPD, "--explain", "SELECT * FROM rpd.top"),
           ("analyze", "-p", RUN), ("analyze", "-p", RUN, "--output-format", "json"), ("metrics", "lds"), ("avail",),
           ("doctor", "--output-format", "json"), ("sys", "avail"), ("profile", "--list-blocks", "gfx942"), ("--version",),
           ("stats", "--help"))


class Streams(harness.Case):
    def shell(self, words, redirections):
        line = " ".join(f"'{word}'" for word in (TACHO, *words)) + " " + redirections
        return subprocess.run(["/bin/sh", "-c", line], capture_output=True, cwd=self.folder, timeout=120, check=False)

    def test_answers_that_cannot_be_written(self):
        need_data()
        for words in ANSWERS:
            for redirection, reason in ((">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")):
                with self.subTest(words=words, redirection=redirection):
                    result = self.shell(words, redirection)
                    self.assertEqual(result.returncode, 1, result.stderr)
                    last = result.stderr.decode().splitlines()[-1]
                    self.assertEqual(last, f"tacho: standard output cannot be written: {reason}")

    def test_messages_that_cannot_be_written(self):
        need_data()
        for redirection in ("2>/dev/full", "2>&-"):
            for words in ANSWERS:
                with self.subTest(words=words, redirection=redirection):
                    expected = self.run_command(TACHO, *words, code=None)
                    result = self.shell(words, redirection)
                    self.assertEqual(result.returncode, expected.returncode)
                    if words[0] not in ("doctor", "avail"):  # these report the machine's state of the moment
                        self.assertEqual(result.stdout, expected.stdout)
            self.assertEqual(self.shell(("stats", "absent.tacho"), redirection).returncode, 1)
            self.assertEqual(self.shell(("stats", "absent.tacho"), redirection + " >/dev/full").returncode, 1)

    def test_a_run_is_recorded_without_a_stream_for_messages(self):
        for number, redirection in enumerate(("2>/dev/full", "2>&-", ">/dev/full 2>&-", "2>&1 >/dev/full | true")):
            with self.subTest(redirection=redirection):
                name = f"{number}.tacho"
                self.shell(("trace", "-o", name, "--", STEPS), redirection)
                rows = json.loads(self.run_command(TACHO, "stats", name, "--output-format", "json").stdout)["rows"]
                self.assertEqual(sum(row[1] for row in rows), 9)

    @unittest.skipUnless(PLUGIN.exists() and os.path.exists(ICD), "this build has no Oclgrind plugin, or Oclgrind is not installed")
    def test_a_counting_run_keeps_its_results(self):
        for number, redirection in enumerate(("2>/dev/full", "2>&-")):
            with self.subTest(redirection=redirection):
                result = self.shell(("profile", "-n", f"run{number}", "--device", "virtual", "--", PATTERNS, "copy"), redirection)
                self.assertEqual(result.returncode, 0)
                self.assertTrue((self.folder / "workloads" / f"run{number}" / "virtual" / "pmc_perf_0.csv").exists())


if __name__ == "__main__":
    harness.main()
