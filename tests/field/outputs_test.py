"""Outputs: what each format holds, what is refused before the program starts, names, folders that the program removes."""
import csv
import json
import os
import pathlib
import re
import sqlite3
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402, the folder of end-to-end tests is no package
from harness import BUILD, EXAMPLES, TACHO, TARGETS  # noqa: E402

VCOPY = EXAMPLES / "vcopy"
ROCPROFV3 = BUILD / "personalities" / "rocprofv3"


class Outputs(harness.Case):
    def tacho(self, *words, **more):
        return self.run_command(TACHO, *words, **more)

    def vcopy(self, *options, code=0, **more):
        return self.tacho("trace", "-q", *options, "--", VCOPY, "-n", "4096", "-b", "256", "-i", "3", code=code, **more)

    def refused(self, sentence, *options, command="trace"):
        """Exit code 125, that sentence, and the program did not start."""
        result = self.tacho(command, *options, "--", "sh", "-c", "touch ran", code=125)
        self.assertRegex(result.stderr.decode(), sentence)
        self.assertFalse((self.folder / "ran").exists(), "the program ran")

    def names(self, folder="."):
        return sorted(path.name for path in (self.folder / folder).iterdir())

    def rows(self, file, table):
        answer = self.tacho("query", file, f"select count(*) as n from tacho.{table}", "--output-format", "csv")
        return int(answer.stdout.split()[-1])

    # Counters in a rocpd database (rocprofiler-sdk#137)

    def test_a_database_holds_the_kernels_that_its_counters_belong_to(self):
        counted = [str(VCOPY), "-n", "4096", "-b", "256", "-i", "3"]
        self.run_command(ROCPROFV3, "--pmc", "V_INST", "-f", "rocpd", "csv", "-o", "a", "--", *counted, timeout=300)
        self.run_command(ROCPROFV3, "--kernel-trace", "--pmc", "V_INST", "-f", "rocpd", "-o", "b", "--", *counted, timeout=300)
        with open(self.folder / "a_counter_collection.csv", newline="") as file:
            wanted = sorted((row["Kernel_Name"], float(row["Counter_Value"])) for row in csv.DictReader(file))
        self.assertEqual(len(wanted), 3)
        for name in ("a_results.db", "b_results.db"):
            database = sqlite3.connect(self.folder / name)
            self.assertEqual(database.execute("select count(*) from kernels").fetchone(), (3,), name)
            self.assertEqual(database.execute("select count(*) from pmc_events").fetchone(), (3,), name)
            held = sorted(database.execute("select kernel_name, value from counters_collection"))
            self.assertEqual(held, wanted, name)
            database.close()

    # Refused before the start

    def test_what_a_format_cannot_hold_is_refused_before_the_start(self):
        for name in ("json", "pftrace", "rocprofv3", "rpd", "rocpd", "nsys-sqlite", "csv,json"):
            self.refused(r"-f [-\w]+ is made of events, and --aggregate keeps none: choose -f tacho or csv", "--aggregate", "-f", name)
        for name in ("folded", "speedscope"):
            self.refused(f"-f {name} is made of call stacks, and none are recorded: add --sampler timer", "-f", name)
        self.refused("-f folded is made of call stacks", "-o", "x.folded")
        self.refused("-o x.json.gz: tacho packs no output", "-o", "x.json.gz")
        nowhere = {"TACHO_DUCKDB": str(self.folder / "none.so")}
        result = self.tacho("trace", "-f", "parquet", "--", "sh", "-c", "touch ran", code=125, env=nowhere)
        self.assertIn("TACHO_DUCKDB", result.stderr.decode())
        self.assertEqual(self.names(), [])

    def test_options_that_need_another_are_refused_before_the_start(self):
        for option in (["--sample-hz", "50"], ["--sample-clock", "cpu"], ["--sample-stack", "4096"], ["--no-launch-stacks"]):
            self.refused(f"{option[0]} needs --sampler timer or perf", *option)
        self.refused("--telemetry-hz needs --telemetry cpu, process or gpu", "--telemetry-hz", "5")
        self.refused("--telemetry-hz needs", "--telemetry", "off", "--telemetry-hz", "5")
        self.refused("--device-counters-hz needs --device-counters", "--device-counters-hz", "5")
        self.refused("--rpd-schema needs -f rpd", "--rpd-schema", "3", "-f", "json")
        for option in ("--driver-trace", "--all-api-calls", "--hsa-trace"):
            self.refused(f"{option} needs API calls", option, "--kernel-trace")
        self.refused("--sync-trace needs the waits", "--sync-trace", "--kernel-trace")
        self.refused("--api-args needs", "--api-args", "--marker-trace")
        self.refused("--kernel-include needs kernels", "--kernel-include", "x", "--marker-trace")
        self.refused("--graph-trace needs kernels", "--graph-trace", "node", "--marker-trace")
        self.refused("--max-size has nothing to limit", "--aggregate", "--max-size", "1M")
        self.refused("name the same event", "--start-trigger", "marker:x", "--stop-trigger", "marker:x")
        self.assertEqual(self.names(), [])

    # What is left out is counted

    def test_rows_without_a_place_are_counted(self):
        result = self.tacho("trace", "-q", "-o", "t.tacho", "-f", "tacho,csv,rpd", "--telemetry", "cpu", "--telemetry-hz", "100", "--",
                            VCOPY, "-n", "4096", "-b", "256", "-i", "3")
        said = result.stderr.decode()
        readings, allocations = self.rows("t.tacho", "reading"), self.rows("t.tacho", "allocation")
        self.assertGreater(readings, 0)
        self.assertGreater(allocations, 0)
        self.assertRegex(said, rf"-f csv has no place for .*\b{readings} readings of telemetry")
        self.assertRegex(said, rf"-f rpd has no place for .*\b{allocations} allocations")
        self.assertNotIn("no place for 0", said)
        self.assertNotRegex(said, "-f rpd has no place for .*readings")

    def test_fills_come_back_from_json(self):
        self.trace(TARGETS / "opencl_cases", "copies")
        self.assertGreater(self.rows("t.tacho", "fill"), 0)
        self.tacho("export", "t.tacho", "-f", "rocprofv3", "-o", "r_results.json")
        for table in ("dispatch", "copy", "fill", "allocation", "api"):
            self.assertEqual(self.rows("r_results.json", table), self.rows("t.tacho", table), table)

    # Names

    def test_csv_is_named_after_the_output(self):
        self.vcopy("-f", "csv", "-o", "run1")
        self.assertIn("run1_kernel_trace.csv", self.names())
        self.assertTrue(all(name.startswith("run1_") for name in self.names()), self.names())
        again = self.vcopy("-f", "csv", "-o", "run1", code=125)
        self.assertRegex(again.stderr.decode(), r"run1_\w+\.csv exists\. Choose another -o or pass --overwrite")
        self.vcopy("-f", "csv", "-o", "run1", "--overwrite")
        self.assertTrue(all(name.startswith("run1_") for name in self.names()), self.names())

    def test_further_processes_have_their_pid_in_the_name(self):
        two = f"'{VCOPY}' -n 4096 -i 1 & '{VCOPY}' -n 4096 -i 2; wait"
        self.tacho("trace", "-q", "-f", "csv", "-o", "out/%hostname%.csv", "--", "bash", "-c", two)
        kernels = [name for name in self.names("out") if name.endswith("_kernel_trace.csv")]
        self.assertEqual(len(kernels), 2, kernels)
        host = os.uname().nodename
        self.assertIn(f"{host}_kernel_trace.csv", kernels)
        self.assertTrue(any(re.fullmatch(re.escape(host) + r"_\d+_kernel_trace\.csv", name) for name in kernels), kernels)

    def test_the_ending_of_the_output_gives_the_format(self):
        self.vcopy("-o", "x.json")
        self.assertIn("traceEvents", json.loads((self.folder / "x.json").read_text()))
        self.vcopy("-o", "x.db")
        self.assertEqual((self.folder / "x.db").read_bytes()[:15], b"SQLite format 3")
        self.vcopy("-o", "x.other")
        self.assertEqual((self.folder / "x.other").read_bytes()[1:6], b"TACHO")
        self.assertEqual(self.names(), ["x.db", "x.json", "x.other"])
        self.vcopy("-o", "y.json", "-f", "tacho,json")
        self.assertEqual(self.names(), ["x.db", "x.json", "x.other", "y.json", "y.tacho"])
        self.vcopy("-o", "z", "-f", "rocprofv3,json,json")
        self.assertEqual(self.names()[5:], ["z.json", "z_results.json"])

    def test_system_profiling_takes_the_format_from_the_ending(self):
        self.tacho("sys", "run", "-q", "-o", "x.json", "--", VCOPY, "-n", "4096", "-i", "3")
        self.assertIn("traceEvents", json.loads((self.folder / "x.json").read_text()))
        self.assertEqual(self.names(), ["x.json", "x.tacho"])

    def test_folders_of_placeholders_are_made(self):
        self.vcopy("-o", "deep/%hostname%/%rank%.tacho", env={"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"})
        self.assertTrue((self.folder / "deep" / os.uname().nodename / "3.tacho").is_file())
        result = self.vcopy("-o", "typo/x.tacho", code=125)
        self.assertIn("typo", result.stderr.decode())

    # A folder that the program removes

    def test_a_removed_folder_is_made_again(self):
        for output in ("gone/x.tacho", "gone/x.json"):
            (self.folder / "gone").mkdir(exist_ok=True)
            result = self.tacho("trace", "-q", "--overwrite", "-o", output, "--", "sh", "-c", f"rm -rf gone; '{VCOPY}' -n 4096 -i 3")
            self.assertIn("gone: the program removed this folder while it ran", result.stderr.decode())
            self.assertEqual(self.rows(output, "dispatch"), 3, output)
            self.assertEqual(self.names("gone"), [pathlib.Path(output).name])
            (self.folder / output).unlink()

    def test_a_removed_current_folder_is_made_again(self):
        here = self.folder / "here"
        here.mkdir()
        self.tacho("trace", "-q", "-o", "x.tacho", "--", "sh", "-c", f"cd /; rm -rf '{here}'; '{VCOPY}' -n 4096 -i 3", cwd=here)
        self.assertEqual(self.rows(here / "x.tacho", "dispatch"), 3)

    def test_a_removed_file_and_a_moved_folder_keep_the_trace(self):
        (self.folder / "a").mkdir()
        self.tacho("trace", "-q", "-o", "a/x.tacho", "--", "sh", "-c", f"rm -f a/*partial* ; '{VCOPY}' -n 4096 -i 3")
        self.assertEqual(self.rows("a/x.tacho", "dispatch"), 3)
        (self.folder / "a" / "x.tacho").unlink()
        self.tacho("trace", "-q", "-o", "a/x.tacho", "--", "sh", "-c", f"mv a b ; '{VCOPY}' -n 4096 -i 3")
        self.assertEqual(self.rows("a/x.tacho", "dispatch"), 3)

    def test_where_the_folder_cannot_be_made_again_the_trace_is_elsewhere(self):
        (self.folder / "gone").mkdir()
        (self.folder / "tmp").mkdir()
        result = self.tacho("trace", "-q", "-o", "gone/x.tacho", "--", "sh", "-c", f"rm -rf gone; touch gone; '{VCOPY}' -n 4096 -i 3",
                            code=125, env={"TMPDIR": str(self.folder / "tmp")})
        found = re.search(r"the trace is in (\S+\.tacho)", result.stderr.decode())
        self.assertTrue(found, result.stderr)
        self.assertEqual(self.rows(found[1], "dispatch"), 3)

    # Command lines that are meant otherwise

    def test_a_quoted_command_line_and_variables_get_a_hint(self):
        for command, hint in ((f"{VCOPY} -n 4096", f"leave the quotes out: {VCOPY} -n 4096"),
                              ("ls -l", "leave the quotes out: ls -l"),
                              ("ls | wc -l", "let a shell read it: sh -c 'ls | wc -l'"),
                              ("A=1 ls", "let a shell read it: sh -c 'A=1 ls'"),
                              ("OMP_NUM_THREADS=4", "through env: env OMP_NUM_THREADS=4 PROGRAM")):
            for tool in ([TACHO, "trace"], [TACHO, "profile"], [ROCPROFV3, "--kernel-trace"]):
                result = self.run_command(*tool, "--", command, code=127)
                self.assertIn(hint, result.stderr.decode())
        for command in ("nosuchprogram", "no such program"):
            self.assertNotIn("; ", self.tacho("trace", "--", command, code=127).stderr.decode())

    def test_a_debugger_under_the_sampler_is_told_what_to_say(self):
        (self.folder / "gdb").write_text("#!/bin/sh\nexit 0\n")
        (self.folder / "gdb").chmod(0o755)
        for words in (["trace", "--sampler", "timer"], ["sys", "sample"]):
            result = self.tacho(*words, "--", "./gdb")
            self.assertIn("handle SIG61 nostop noprint pass", result.stderr.decode())
        for words in (["trace"], ["trace", "--sampler", "off"]):
            self.assertNotIn("SIG61", self.tacho(*words, "--", "./gdb").stderr.decode())


if __name__ == "__main__":
    unittest.main()
