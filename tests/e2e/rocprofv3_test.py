"""rocprofv3's command line on this machine's OpenCL device: every option has its effect, every mistake its sentence."""
import contextlib
import csv
import json
import os
import pathlib
import re
import shutil
import socket
import sqlite3
import statistics
import subprocess
import time
import unittest

import harness
from harness import BUILD, DEBIAN_PYTHON, SOURCE, TACHO

STEPS = harness.TARGETS / "opencl_steps"
ROCPROFV3 = BUILD / "personalities" / "rocprofv3"
HOST = socket.gethostname()


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class Rocprofv3(harness.Case):
    def rocprofv3(self, *words, command=(STEPS,), code=0, **more):
        return self.run_command(ROCPROFV3, *words, "--", *command, code=code, **more)

    def names(self, folder="."):
        """Names of the files in a folder, the process id replaced."""
        return sorted(re.sub(r"^\d+", "PID", p.name) for p in (self.folder / folder).iterdir() if p.is_file())

    def one(self, ending, folder="."):
        found = [p for p in (self.folder / folder).rglob(f"*{ending}")]
        self.assertEqual(len(found), 1, f"{ending}: {found}")
        return found[0]

    def lines(self, result):
        return result.stderr.decode().splitlines()

    def kernel_names(self, *options, **more):
        self.rocprofv3("--kernel-trace", *options, **more)
        return {row["Kernel_Name"] for row in rows(self.one("_kernel_trace.csv"))}


class Lines(Rocprofv3):
    def test_the_seeds_line(self):
        shutil.copy(SOURCE / "tests" / "e2e" / "targets" / "copy_scale.py", self.folder / "app.py")
        (self.folder / "app.py").chmod(0o644)
        env = {"PATH": f"{ROCPROFV3.parent}:{os.environ['PATH']}"}
        result = self.run_command("rocprofv3", "--stats", "--sys-trace", "--kernel-trace", "--", DEBIAN_PYTHON, "app.py", env=env)
        self.assertEqual(result.stdout, b"ok\n")
        self.assertEqual(result.stderr, b"")
        (self.folder / "app.py").unlink()
        names = self.names()
        for needed in ("agent_info", "domain_stats", "kernel_stats", "kernel_trace", "opencl_api_trace", "opencl_api_stats",
                       "memory_copy_trace", "memory_copy_stats"):
            self.assertIn(f"PID_{needed}.csv", names)
        self.assertFalse([n for n in names if "tacho" in n], "no .tacho is left behind")
        stats = rows(self.one("_kernel_stats.csv"))
        self.assertEqual({row["Name"]: row["Calls"] for row in stats}, {"copy_values": "8", "scale_values": "8"})
        self.assertAlmostEqual(sum(float(row["Percentage"]) for row in stats), 100, delta=0.1)
        header = self.one("_kernel_stats.csv").read_text().splitlines()[0]
        self.assertEqual(header, '"Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs","MaxNs","StdDev"')

    def test_pftrace(self):
        said = self.rocprofv3("--stats", "--sys-trace", "--kernel-trace", "--output-format", "pftrace").stderr.decode()
        self.assertEqual(self.names(), ["PID_results.pftrace"])
        self.assertIn("--stats writes its files with --output-format csv alone; pftrace has none of them", said)
        self.assertEqual(self.one("_results.pftrace").read_bytes()[:1], b"\n")

    def test_no_separator(self):
        result = self.run_command(ROCPROFV3, "--kernel-trace", STEPS, "--steps", "1")
        self.assertEqual(result.stdout, b"done 1\n")
        self.assertEqual(len(rows(self.one("_kernel_trace.csv"))), 3)

    def test_help_and_version(self):
        text = self.run_command(ROCPROFV3, "--help").stdout.decode()
        for word in ("--kernel-trace", "--pmc", "--collection-period", "--summary-groups", "Examples:"):
            self.assertIn(word, text)
        self.assertIn(b"tacho", self.run_command(ROCPROFV3, "--version").stdout)

    def test_exit_code_is_the_programs(self):
        self.rocprofv3("--kernel-trace", command=(STEPS, "--code", "7"), code=7)
        self.assertTrue(self.one("_kernel_trace.csv"))

    def test_kernel_trace_rows(self):
        before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self.rocprofv3("--kernel-trace", command=(STEPS, "--steps", "4"))
        after = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        kernels = rows(self.one("_kernel_trace.csv"))
        self.assertEqual([row["Kernel_Name"] for row in kernels], ["copy_values", "copy_values", "scale(float*, int)"] * 4)
        self.assertEqual([row["Dispatch_Id"] for row in kernels], [str(i + 1) for i in range(12)])
        pid = self.one("_kernel_trace.csv").name.split("_")[0]
        previous_end = 0
        for row in kernels:
            self.assertEqual((row["Kind"], row["Agent_Id"], row["Thread_Id"]), ("KERNEL_DISPATCH", "Agent 1", pid))
            self.assertEqual((row["Workgroup_Size_X"], row["Grid_Size_X"], row["Grid_Size_Y"]), ("64", "4096", "1"))
            start, end = int(row["Start_Timestamp"]), int(row["End_Timestamp"])
            self.assertTrue(before <= start <= end <= after, "CLOCK_BOOTTIME")
            self.assertGreaterEqual(start, previous_end)
            previous_end = end


class Tracing(Rocprofv3):
    """The files of each tracing option."""

    def test_single_options(self):
        for option, file in (("--kernel-trace", "kernel_trace"), ("--memory-copy-trace", "memory_copy_trace"),
                             ("--memory-allocation-trace", "memory_allocation_trace"), ("--marker-trace", "marker_api_trace"),
                             ("--opencl-trace", "opencl_api_trace")):
            with self.subTest(option):
                result = self.rocprofv3(option, "-d", option[2:])
                self.assertEqual(result.stderr, b"")
                folder = pathlib.Path(option[2:]) / HOST
                self.assertEqual(self.names(folder), ["PID_agent_info.csv", f"PID_{file}.csv"])
                self.assertTrue(rows(self.one(f"_{file}.csv", folder)))

    def test_runtime_and_sys_trace(self):
        self.rocprofv3("-r", "-d", "r")
        everything = ["PID_agent_info.csv", "PID_kernel_trace.csv", "PID_marker_api_trace.csv", "PID_memory_allocation_trace.csv",
                      "PID_memory_copy_trace.csv", "PID_opencl_api_trace.csv"]
        self.assertEqual(self.names(f"r/{HOST}"), everything)
        self.rocprofv3("-s", "-d", "s")
        self.assertEqual(self.names(f"s/{HOST}"), everything)

    def test_parts_of_sys_trace_can_be_negated(self):
        self.rocprofv3("--sys-trace", "--kernel-trace=no", "--marker-trace", "off", "--hsa-trace=no", "--opencl-trace=false")
        self.assertEqual(self.names(), ["PID_agent_info.csv", "PID_memory_allocation_trace.csv", "PID_memory_copy_trace.csv"])

    def test_domains_that_are_not_here_are_one_line(self):
        result = self.rocprofv3("--kernel-trace", "--hip-trace", "--hsa-core-trace", "--rccl-trace", "--rocdecode-trace", "--rocjpeg-trace",
                                "--scratch-memory-trace", "--kfd-trace")
        lines = self.lines(result)
        self.assertEqual(len(lines), 2, lines)
        self.assertIn("--scratch-memory-trace, --rocdecode-trace, --rocjpeg-trace, --kfd-trace", lines[0])
        self.assertIn("--hip-trace (no HIP call was made), --hsa-core-trace", lines[1])
        self.assertIn("PID_kernel_trace.csv", self.names())

    def test_kokkos_and_thread_trace(self):
        result = self.rocprofv3("--kernel-trace", "--kokkos-trace", "--att", "--att-target-cu", "1")
        self.assertEqual(len(self.lines(result)), 2, self.lines(result))
        # It implies --marker-trace and --kernel-rename.
        self.assertIn("PID_marker_api_trace.csv", self.names())
        self.assertEqual({row["Kernel_Name"] for row in rows(self.one("_kernel_trace.csv"))}, {"step", "inner"})

    def test_selected_regions(self):
        self.rocprofv3("--kernel-trace", "--selected-regions", command=(STEPS, "--steps", "4", "--regions"))
        self.assertEqual(len(rows(self.one("_kernel_trace.csv"))), 6, "two of four steps")

    def test_no_option_runs_the_program_alone(self):
        result = self.run_command(ROCPROFV3, "--", STEPS, "--code", "5", code=5)
        self.assertIn("no tracing option", self.lines(result)[0])
        self.assertEqual(self.names(), [])

    def test_ranks(self):
        env = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}
        result = self.rocprofv3("--kernel-trace", "--profile-mpi-ranks", "0-1,3", env=env)
        self.assertEqual((result.stdout, result.stderr, self.names()), (b"done 3\n", b"", []))
        self.rocprofv3("--kernel-trace", "--profile-mpi-ranks", "0,2-3", env=env)
        self.assertIn("PID_kernel_trace.csv", self.names())
        result = self.rocprofv3("--kernel-trace", "--profile-mpi-ranks", "3-1", env=env, code=125)
        self.one_sentence(result, "3-1")


class Periods(Rocprofv3):
    """The program itself says in which of its steps it was recorded, and goes on until it has seen all it should: however
    slow the machine is, the two tell the same story."""

    def recorded(self, windows, *options):
        for again in range(3):
            begin = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            result = self.rocprofv3("--kernel-trace", "--marker-trace", "-d", f"run{again}", *options, command=(STEPS, "--windows", windows, "--sleep", "10"), code=None)
            steps = re.search(r"steps (\S+)", result.stdout.decode())
            # Else the machine stood still for a whole period.
            if result.returncode != 77 and len(re.findall(r"\++", steps.group(1))) >= windows:
                break
        self.assertEqual(result.returncode, 0, result.stderr)
        steps = steps.group(1)
        starts = sorted(int(row["Start_Timestamp"]) for row in rows(self.one("_kernel_trace.csv", f"run{again}")))
        # Three launches a step; of steps in which recording was switched some.
        self.assertTrue(3 * steps.count("+") <= len(starts) <= 3 * (steps.count("+") + steps.count("?")), (len(starts), steps))
        self.assertGreater(steps.count("+"), 0, steps)
        return [start - begin for start in starts], re.findall(r"\++", steps), steps

    def test_one_period(self):
        starts, pieces, steps = self.recorded(1, "-P", "1500:1000:1", "--collection-period-unit", "msec")
        self.assertGreaterEqual(starts[0], 1500e6, "not before the delay")
        self.assertEqual(len(pieces), 1, steps)
        self.assertTrue(steps.endswith("-" * 10), steps)

    def test_repeat_0_is_for_ever(self):
        starts, pieces, steps = self.recorded(4, "-P", "0.4:0.4:0")
        self.assertGreaterEqual(starts[0], 0.4e9)
        self.assertGreaterEqual(len(pieces), 4, "recorded again and again, to the end: " + steps)

    def test_two_periods(self):
        starts, pieces, steps = self.recorded(2, "--collection-period", "1:1:1", "0.8:1:1")
        self.assertGreaterEqual(starts[0], 1e9)
        self.assertEqual(len(pieces), 2, steps)
        # The second begins 0.8 s after the end of the first: no kernel starts within it but of a first that ended late.
        self.assertGreaterEqual(starts[-1], 1e9 + 1e9 + 0.8e9)
        self.assertTrue(steps.endswith("-" * 10), steps)

    def test_bad_periods(self):
        for text in ("5", "1:2", "a:1:1", "1:0:1", "1:-2:1", "1:2:x"):
            self.one_sentence(self.rocprofv3("--kernel-trace", "-P", text, code=125), "--collection-period", text)
        self.one_sentence(self.rocprofv3("--kernel-trace", "--collection-period-unit", "day", "-P", "1:1:1", code=125), "'day'", "hour")


class Names(Rocprofv3):
    def test_demangled(self):
        self.assertEqual(self.kernel_names(), {"copy_values", "scale(float*, int)"})

    def test_mangled(self):
        self.assertEqual(self.kernel_names("-M"), {"copy_values", "_Z5scalePfi"})

    def test_truncated(self):
        self.assertEqual(self.kernel_names("-T"), {"copy_values", "scale"})

    def test_renamed(self):
        self.assertEqual(self.kernel_names("--kernel-rename", "--stats"), {"step", "inner"})
        self.assertEqual({row["Name"]: row["Calls"] for row in rows(self.one("_kernel_stats.csv"))}, {"step": "6", "inner": "3"})

    def test_contradiction(self):
        self.one_sentence(self.rocprofv3("--kernel-trace", "-M", "-T", code=125), "--mangled-kernels", "--truncate-kernels")

    def test_filters_say_that_they_are_for_counters(self):
        for option in (("--kernel-include-regex", "copy.*"), ("--kernel-exclude-regex", "x"), ("--kernel-iteration-range", "[1-2],[5]")):
            result = self.rocprofv3("--kernel-trace", *option, "-d", option[0][2:])
            self.assertEqual(len(self.lines(result)), 1, self.lines(result))
            self.assertIn(f"{option[0]} restricts counter collection only", self.lines(result)[0])
            self.assertEqual(len(rows(self.one("_kernel_trace.csv", option[0][2:]))), 9)
        self.one_sentence(self.rocprofv3("--kernel-trace", "--kernel-include-regex", "a(", code=125), "a(")
        self.one_sentence(self.rocprofv3("--kernel-trace", "--kernel-iteration-range", "0-2", code=125), "0-2")

    def test_agent_index(self):
        for index, label in (("absolute", "Agent 1"), ("relative", "Agent 1"), ("type-relative", "CPU 1")):
            self.rocprofv3("--kernel-trace", "-A", index, "-d", index)
            self.assertEqual(rows(self.one("_kernel_trace.csv", index))[0]["Agent_Id"], label)


class Summaries(Rocprofv3):
    def table(self, text, label):
        self.assertIn(f"ROCPROFV3 {label}SUMMARY:", text)
        lines = [line.strip() for line in text.split(f"ROCPROFV3 {label}SUMMARY:")[1].strip().splitlines()]
        head = [cell.strip() for cell in lines[0].strip("|").split("|")]
        body = []
        for line in lines[2:]:
            if not line.startswith("|"):
                break
            body.append(dict(zip(head, [cell.strip() for cell in line.strip("|").split("|")])))
        return body

    def test_layout_is_rocprofv3s(self):
        self.rocprofv3("--kernel-trace", "-S", "--summary-output-file", "table", "-o", "s")
        table = (self.folder / "s_table.txt").read_text()
        head = "| {:^40} | {:^12} | {:^15} | {:^15} | {:^15} | {:^13} | {:^15} | {:^15} | {:^15} |".format(
            "NAME", "DOMAIN", "CALLS", "DURATION (nsec)", "AVERAGE (nsec)", "PERCENT (INC)", "MIN (nsec)", "MAX (nsec)", "STDDEV")
        head = head.replace(f"{'DOMAIN':^12}", f"{'DOMAIN':^15}")  # KERNEL_DISPATCH is longer than 12
        lines = table.splitlines()
        self.assertEqual(lines[:4], ["", "ROCPROFV3 SUMMARY:", "", head])
        self.assertEqual(lines[4], "|-" + "-|-".join("-" * width for width in (40, 15, 15, 15, 15, 13, 15, 15, 15)) + "-|")
        times = {}
        for row in rows(self.folder / "s_kernel_trace.csv"):
            times.setdefault(row["Kernel_Name"], []).append(int(row["End_Timestamp"]) - int(row["Start_Timestamp"]))
        everything = sum(map(sum, times.values()))
        expected = []
        for name, values in sorted(times.items(), key=lambda item: -sum(item[1])):
            expected.append("| {:<40} | {:<15} | {:>15} | {:>15} | {:>15.3e} | {:>13} | {:>15} | {:>15} | {:>15.3e} |".format(
                name, "KERNEL_DISPATCH", len(values), sum(values), statistics.mean(values), f"{sum(values) / everything * 100:.6f}",
                min(values), max(values), statistics.stdev(values)))
        self.assertEqual(lines[5:], expected + [""])

    def test_units(self):
        for unit, factor in (("sec", 1e9), ("msec", 1e6), ("USEC", 1e3), ("nsec", 1)):
            result = self.rocprofv3("--kernel-trace", "-S", "-u", unit, "-o", unit)
            table = self.table(result.stderr.decode(), "")
            durations = [int(r["End_Timestamp"]) - int(r["Start_Timestamp"]) for r in rows(self.folder / f"{unit}_kernel_trace.csv")
                         if r["Kernel_Name"] == "copy_values"]
            shown = [r for r in table if r["NAME"] == "copy_values"][0]
            self.assertAlmostEqual(float(shown[f"DURATION ({unit.lower()})"]) * factor, sum(durations), delta=1e-3)
            self.assertAlmostEqual(float(shown[f"MIN ({unit.lower()})"]) * factor, min(durations), delta=1e-3)

    def test_summary_goes_to_stderr(self):
        result = self.rocprofv3("--kernel-trace", "--memory-copy-trace", "-S")
        self.assertEqual(result.stdout, b"done 3\n")
        table = self.table(result.stderr.decode(), "")
        self.assertEqual({row["DOMAIN"] for row in table}, {"KERNEL_DISPATCH", "MEMORY_COPY"})
        self.assertEqual([row["CALLS"] for row in table if row["NAME"] == "copy_values"], ["6"])
        durations = [int(row["DURATION (nsec)"]) for row in table]
        self.assertEqual(durations, sorted(durations, reverse=True))

    def test_per_domain_groups_and_units(self):
        result = self.rocprofv3("--kernel-trace", "--memory-copy-trace", "-D", "-u", "usec", "--summary-groups", "KERNEL_DISPATCH|MEMORY_COPY", "MEMORY.*")
        text = result.stderr.decode()
        self.assertEqual({row["NAME"] for row in self.table(text, "KERNEL_DISPATCH ")}, {"copy_values", "scale(float*, int)"})
        self.assertEqual({row["DOMAIN"] for row in self.table(text, "MEMORY_COPY ")}, {"MEMORY_COPY"})
        self.assertEqual({row["DOMAIN"] for row in self.table(text, "KERNEL_DISPATCH + MEMORY_COPY ")}, {"KERNEL_DISPATCH", "MEMORY_COPY"})
        row = self.table(text, "KERNEL_DISPATCH ")[0]
        kernels = rows(self.one("_kernel_trace.csv"))
        total = sum(int(k["End_Timestamp"]) - int(k["Start_Timestamp"]) for k in kernels if k["Kernel_Name"] == row["NAME"])
        self.assertAlmostEqual(float(row["DURATION (usec)"]), total / 1000, delta=0.05)
        self.assertNotIn("ROCPROFV3 SUMMARY", text)
        result = self.rocprofv3("--kernel-trace", "--summary-groups", "NOTHING", "-d", "none")
        self.one_sentence(result, "--summary-groups 'NOTHING'")

    def test_output_file(self):
        result = self.rocprofv3("--kernel-trace", "-S", "--summary-output-file", "stdout", "-d", "a")
        self.assertIn(b"ROCPROFV3 SUMMARY:", result.stdout)
        result = self.rocprofv3("--kernel-trace", "-S", "--summary-output-file", "table", "-d", "b")
        self.assertEqual(result.stderr, b"")
        self.assertIn("ROCPROFV3 SUMMARY:", self.one("_table.txt", "b").read_text())

    def test_stats_need_something_to_count(self):
        for option in ("--stats", "-S", "-D", "--output-config"):
            self.one_sentence(self.rocprofv3(option, code=125), "no tracing option is on")
        self.one_sentence(self.rocprofv3("--kernel-trace", "--summary-groups", "a(", code=125), "a(")


class Outputs(Rocprofv3):
    def test_names(self):
        self.rocprofv3("--kernel-trace", "-o", "run")
        self.assertEqual(self.names(), ["run_agent_info.csv", "run_kernel_trace.csv"])
        self.rocprofv3("--kernel-trace", "-o", "sub/%tag%_%arg1%", "-d", "out/{hostname}", command=(STEPS, "--steps", "1"))
        self.assertEqual(self.names(f"out/{HOST}/sub"), ["opencl_steps_--steps_agent_info.csv", "opencl_steps_--steps_kernel_trace.csv"])
        self.rocprofv3("--kernel-trace", "-d", "only_d")
        self.assertEqual(self.names(f"only_d/{HOST}"), ["PID_agent_info.csv", "PID_kernel_trace.csv"])

    def test_every_placeholder(self):
        env = {"SLURM_JOB_ID": "77", "SLURM_PROCID": "3", "SLURM_NTASKS": "8", "MY_X": "x1", "ROCPROF_DATE_FORMAT": "date", "ROCPROF_TIME_FORMAT": "time"}
        text = "%hostname%,%h,%pid%,%p,%ppid%,%pgid%,%psid%,%psize%,%job%,%j,%rank%,%r,%size%,%s,%nid%,%launch_date%,%launch_time%," \
               "%env{MY_X}%,$ENV{MY_X},%q{MY_X},{pid},%tag%,%arg2%,%argt%,%args%,%unknown%,100%"
        self.rocprofv3("--kernel-trace", "-o", text, "-d", "p", command=(STEPS, "--steps", "1"), env=env)
        name = self.one("_kernel_trace.csv", "p").name
        parts = name[:-len("_kernel_trace.csv")].split(",")
        pid = parts[2]
        self.assertTrue(pid.isdigit())
        for at, value in ((0, HOST), (1, HOST), (3, pid), (8, "77"), (9, "77"), (10, "3"), (11, "3"), (12, "8"), (13, "8"), (14, "3"), (15, "date"),
                          (16, "time"), (17, "x1"), (18, "x1"), (19, "x1"), (20, pid), (21, "opencl_steps"), (22, "1"), (23, "opencl_steps_--steps_1"),
                          (24, "--steps_1"), (25, "%unknown%"), (26, "100%")):
            self.assertEqual(parts[at], value, (at, parts))
        for at in (4, 5, 6, 7):
            self.assertTrue(parts[at].isdigit(), parts)
        self.rocprofv3("--kernel-trace", "-o", "x", "-d", "%cwd%/here")
        self.assertEqual(self.names("here"), ["x_agent_info.csv", "x_kernel_trace.csv"])

    def test_formats(self):
        self.rocprofv3("--kernel-trace", "--opencl-trace", "-f", "csv", "json", "pftrace", "-o", "a")
        self.assertEqual(self.names(), ["a_agent_info.csv", "a_kernel_trace.csv", "a_opencl_api_trace.csv", "a_results.json", "a_results.pftrace"])
        tool = json.loads((self.folder / "a_results.json").read_text())["rocprofiler-sdk-tool"][0]
        symbols = {s["kernel_id"]: s["formatted_kernel_name"] for s in tool["kernel_symbols"]}
        dispatches = tool["buffer_records"]["kernel_dispatch"]
        table = rows(self.folder / "a_kernel_trace.csv")
        self.assertEqual([symbols[d["dispatch_info"]["kernel_id"]] for d in dispatches], [row["Kernel_Name"] for row in table])
        self.assertEqual([d["start_timestamp"] for d in dispatches], [int(row["Start_Timestamp"]) for row in table])
        self.assertEqual([d["thread_id"] for d in dispatches], [int(row["Thread_Id"]) for row in table])
        operations = tool["strings"]["buffer_records"]
        calls = tool["buffer_records"]["opencl_api"]
        self.assertEqual([operations[c["kind"]]["operations"][c["operation"]] for c in calls],
                         [row["Function"] for row in rows(self.folder / "a_opencl_api_trace.csv")])
        self.one_sentence(self.rocprofv3("--kernel-trace", "-f", "otf2", code=125), "otf2")
        self.one_sentence(self.rocprofv3("--kernel-trace", "-f", "cvs", code=125), "did you mean csv")
        self.one_sentence(self.rocprofv3("--kernel-trace", "-f", "parquet", code=125), "'parquet' is not one of csv, json, pftrace, rocpd")
        self.rocprofv3("--kernel-trace", "-f", "CSV,rocpd", "-o", "r")
        self.assertEqual(self.names(), [n for n in self.names() if not n.startswith("r_")] + ["r_agent_info.csv", "r_kernel_trace.csv", "r_results.db"])
        with contextlib.closing(sqlite3.connect(self.folder / "r_results.db")) as database:
            self.assertEqual(database.execute("select count(*) from kernels").fetchone(), (9,))

    def test_group_by_queue_is_taken(self):
        self.rocprofv3("--kernel-trace", "-f", "pftrace", "--group-by-queue", "-o", "q")
        self.assertIn(b"COMPUTE Agent [1] QUEUE [0] CPU", (self.folder / "q_results.pftrace").read_bytes())

    def test_several_processes(self):
        self.rocprofv3("--kernel-trace", "--marker-trace", command=(STEPS, "--fork", "3"))
        self.assertEqual(self.names().count("PID_kernel_trace.csv"), 3)
        self.assertEqual(self.names().count("PID_agent_info.csv"), 3)
        for path in self.folder.glob("*_marker_api_trace.csv"):
            self.assertEqual({row["Process_Id"] for row in rows(path)}, {path.name.split("_")[0]})
        result = self.rocprofv3("--kernel-trace", "-o", "same", "-d", "one", command=(STEPS, "--fork", "2"))
        self.assertEqual(len(list((self.folder / "one").glob("same_*kernel_trace.csv"))), 2, "no process's files replace another's")
        self.assertEqual(len(self.lines(result)), 1, self.lines(result))

    def test_existing_files(self):
        self.rocprofv3("--kernel-trace", "-o", "run")
        before = (self.folder / "run_kernel_trace.csv").read_bytes()
        result = self.rocprofv3("--kernel-trace", "-o", "run", code=125)
        self.one_sentence(result, "run_*", "--overwrite")
        self.assertEqual(result.stdout, b"", "refused before the start")
        self.assertEqual((self.folder / "run_kernel_trace.csv").read_bytes(), before)
        self.rocprofv3("--kernel-trace", "-o", "run", "--overwrite", command=(STEPS, "--steps", "1"))
        self.assertEqual(len(rows(self.folder / "run_kernel_trace.csv")), 3)

    def test_a_requeued_job_keeps_its_earlier_files(self):
        self.rocprofv3("--kernel-trace", "-o", "run")
        before = (self.folder / "run_kernel_trace.csv").read_bytes()
        for count, prefix in (("1", "run.1"), ("2", "run.2"), ("1", "run.3")):
            result = self.rocprofv3("--kernel-trace", "-o", "run", env={"SLURM_RESTART_COUNT": count})
            self.one_sentence(result, "run_*", f"{prefix}_*")
            self.assertTrue((self.folder / f"{prefix}_kernel_trace.csv").exists())
        self.assertEqual((self.folder / "run_kernel_trace.csv").read_bytes(), before)
        result = self.rocprofv3("--kernel-trace", "-o", "run", env={"SLURM_RESTART_COUNT": "0"}, code=125)
        self.one_sentence(result, "run_*", "--overwrite")

    def started_together(self, count, command, env):
        """`count` runs of rocprofv3 whose programs all run before the first one ends; their results."""
        (self.folder / "started").mkdir()
        shell = f"touch started/$$; while [ ! -e go ]; do sleep 0.05; done; exec {STEPS} --steps 1"
        runs = [subprocess.Popen([ROCPROFV3, *command, "--", "/bin/sh", "-c", shell], cwd=self.folder, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env={**os.environ, **env(i)}) for i in range(count)]
        deadline = time.monotonic() + 120
        while len(list((self.folder / "started").iterdir())) < count and time.monotonic() < deadline:
            time.sleep(0.05)
        (self.folder / "go").touch()
        return [(*run.communicate(timeout=300), run.returncode) for run in runs]

    def traces(self, folder):
        hidden = [p.name for p in (self.folder / folder).iterdir() if p.name.startswith(".")]
        self.assertEqual(hidden, [])
        return {p.name: len(rows(p)) for p in (self.folder / folder).glob("*_kernel_trace.csv")}

    def test_runs_at_once_never_share_a_name(self):
        for _, errors, code in self.started_together(40, ("--kernel-trace", "-d", "s", "-o", "base"), lambda i: {}):
            self.assertEqual(code, 0, errors)
        found = self.traces("s")
        self.assertEqual(len(found), 40, found)
        self.assertIn("base_kernel_trace.csv", found)
        self.assertEqual(set(found.values()), {3})

    def test_ranks_have_names_of_their_own(self):
        def env(rank):
            return {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "4"}
        for _, errors, code in self.started_together(4, ("--kernel-trace", "-d", "s", "-o", "base"), env):
            self.assertEqual((code, errors), (0, b""))
        self.assertEqual(self.traces("s"), {f"base_{rank}_kernel_trace.csv": 3 for rank in range(4)})
        # A rank that starts after others have ended, and one whose name contains the rank already.
        self.rocprofv3("--kernel-trace", "-d", "s", "-o", "base", env=env(4), command=(STEPS, "--steps", "1"))
        self.rocprofv3("--kernel-trace", "-d", "s", "-o", "r%env{OMPI_COMM_WORLD_RANK}%", env=env(5), command=(STEPS, "--steps", "1"))
        self.assertEqual(set(self.traces("s")) - {f"base_{rank}_kernel_trace.csv" for rank in range(5)}, {"r5_kernel_trace.csv"})
        self.one_sentence(self.rocprofv3("--kernel-trace", "-d", "s", "-o", "base", env=env(2), code=125), "base_2_*", "--overwrite")

    def test_places_that_cannot_be_written(self):
        (self.folder / "plain").write_text("x")
        result = self.rocprofv3("--kernel-trace", "-d", "plain/below", code=125)
        self.one_sentence(result, "plain is not a folder")
        self.assertEqual(result.stdout, b"")

    def test_output_folder_that_vanishes(self):
        script = self.folder / "vanish.sh"
        script.write_text(f"{STEPS}\nrm -rf {self.folder}/gone\n")
        self.rocprofv3("--kernel-trace", "-o", "run", "-d", "gone", command=("/bin/sh", script), env={"ROCPROF_TMPDIR": str(self.folder)})
        self.assertEqual(self.names("gone"), ["run_agent_info.csv", "run_kernel_trace.csv"])
        script.write_text(f"{STEPS}\nrm -rf {self.folder}/gone\ntouch {self.folder}/gone\n")
        result = self.rocprofv3("--kernel-trace", "-o", "run2", "-d", "gone", command=("/bin/sh", script), env={"ROCPROF_TMPDIR": str(self.folder)}, code=125)
        self.one_sentence(result, "gone", "the recording is kept in")
        kept = re.search(r"kept in (\S+\.tacho)", result.stderr.decode()).group(1)
        self.run_command(TACHO, "export", kept, "-f", "csv", "-d", "saved")
        self.assertTrue(self.one("_kernel_trace.csv", "saved"))

    def test_config_and_log_level(self):
        result = self.rocprofv3("--kernel-trace", "--output-config", "-o", "c", "--log-level", "info")
        config = json.loads((self.folder / "c_config.json").read_text())
        self.assertEqual(config["records"], ["kernel-trace"])
        self.assertEqual(config["options"]["log-level"], "info")
        self.assertEqual(config["command"], [str(STEPS)])
        self.assertIn("wrote c_kernel_trace.csv", result.stderr.decode())
        quiet = self.rocprofv3("--kernel-trace", "--hip-trace", "--log-level", "error", "-o", "d")
        self.assertEqual(quiet.stderr, b"")
        shown = self.rocprofv3("--kernel-trace", "--log-level", "config", "-o", "e")
        self.assertIn('"records":["kernel-trace"]', shown.stderr.decode().replace(" ", ""))
        shown = self.rocprofv3("--kernel-trace", "--log-level", "env", "-o", "f", env={"OMP_NUM_THREADS": "3"})
        self.assertIn("OMP_NUM_THREADS=3", shown.stderr.decode())
        self.one_sentence(self.rocprofv3("--kernel-trace", "--log-level", "loud", code=125), "'loud'", "warning")

    def test_minimum_output_data(self):
        told = self.rocprofv3("--kernel-trace", "-f", "csv", "pftrace", "--minimum-output-data", "1000", "--log-level", "info")
        self.assertEqual(self.names(), [])
        self.assertNotIn("wrote ", told.stderr.decode())
        self.rocprofv3("--kernel-trace", "-f", "csv", "pftrace", "--minimum-output-data", "1")
        self.assertIn("PID_kernel_trace.csv", self.names())

    def test_records_that_no_format_holds_are_counted(self):
        told = self.rocprofv3("--sys-trace", "-f", "csv", "-o", "r", "--log-level", "info").stderr.decode()
        self.assertRegex(told, r"-f csv has no place for (1 wait|\d+ waits), which a \.tacho file keeps \(--keep-trace FILE\)")
        for more in (("-f", "csv", "pftrace"), ("-f", "csv", "--keep-trace", "kept.tacho")):
            told = self.rocprofv3("--sys-trace", *more, "-o", "s", "--overwrite", "--log-level", "info").stderr.decode()
            self.assertNotIn("has no place", told)

    def test_keep_trace_and_extra_columns(self):
        self.rocprofv3("--memory-copy-trace", "--keep-trace", "mine.tacho", "--extra-columns", "-o", "x")
        self.assertEqual({row["Size_Bytes"] for row in rows(self.folder / "x_memory_copy_trace.csv")}, {"16384"})
        self.run_command(TACHO, "info", "mine.tacho")

    def test_preload_reaches_the_program(self):
        result = self.rocprofv3("--kernel-trace", "--preload", "libm.so.6", command=("/bin/sh", "-c", f"echo $LD_PRELOAD; {STEPS}"))
        self.assertIn(b"libm.so.6", result.stdout.splitlines()[0])
        self.assertIn(b"/libtacho", result.stdout.splitlines()[0])

    def test_disk_full(self):
        result = self.run_command("/bin/sh", "-c", f"ulimit -f 1; exec {ROCPROFV3} --sys-trace -- {STEPS} --steps 3000", code=None)
        self.assertNotEqual(result.returncode, 0)
        self.assertFalse([p for p in self.folder.iterdir() if p.suffix == ".csv"], "nothing is half there")


class InputFiles(Rocprofv3):
    def jobs(self, name, text, *words, code=0):
        (self.folder / name).write_text(text)
        return self.rocprofv3("-i", name, *words, code=code)

    def test_yaml_with_two_jobs(self):
        self.jobs("in.yaml", "jobs:\n  - kernel_trace: true\n    output_file: one\n  - memory_copy_trace: yes\n    stats: true\n    output_format: [csv, json]\n    output_file: two\n")
        self.assertEqual(self.names("pass_1"), ["one_agent_info.csv", "one_kernel_trace.csv"])
        self.assertEqual(self.names("pass_2"), ["two_agent_info.csv", "two_domain_stats.csv", "two_memory_copy_stats.csv", "two_memory_copy_trace.csv", "two_results.json"])

    def test_json_with_one_job(self):
        self.jobs("in.json", '{\n\t"jobs": [\n\t\t{"kernel_trace": true, "output_directory": "here", "output_file": "j", "truncate_kernels": true}\n\t]\n}\n')
        self.assertEqual(self.names("here"), ["j_agent_info.csv", "j_kernel_trace.csv"])
        self.assertIn("scale", {row["Kernel_Name"] for row in rows(self.folder / "here" / "j_kernel_trace.csv")})

    def test_command_line_adds_and_may_not_contradict(self):
        self.jobs("in.yaml", "jobs:\n  - kernel_trace: true\n", "--stats", "-o", "s")
        self.assertIn("s_kernel_stats.csv", self.names())
        self.one_sentence(self.jobs("in.yaml", "jobs:\n  - output_file: a\n    kernel_trace: true\n", "-o", "b", code=125), "--output-file", "in.yaml")

    def test_mistakes_have_line_numbers(self):
        for text, words in (("jobs:\n  - kernel_trase: true\n", ("in.yaml:2", "kernel_trase", "kernel_trace")),
                            ("jobs:\n  - kernel_trace: maybe\n", ("in.yaml:2", "'maybe'")),
                            ("jobs:\n  - kernel_trace: [\n", ("in.yaml:",)),
                            ("jobs: 5\n", ("jobs",)), ("jobs:\n  - 7\n", ("in.yaml:2",)),
                            ("jobs:\n  - kernel_trace: true\nextra: 1\n", ("in.yaml:3", "extra")),
                            ("jobs:\n  - kernel_trace: true\n    kernel_trace: false\n", ("in.yaml:3", "twice")),
                            ("jobs:\n  - log_level: loud\n", ("in.yaml:2", "'loud'"))):
            with self.subTest(text):
                self.one_sentence(self.jobs("in.yaml", text, code=125), *words)
        began = time.monotonic()
        result = self.jobs("in.yaml", "jobs:\n  - log_level: \"a\\nb" + "x" * 1_000_000 + "\"\n", code=125)
        self.one_sentence(result, "in.yaml:2", "a?bxxx")
        self.assertLess(len(result.stderr), 1000)
        self.assertLess(time.monotonic() - began, 10)
        self.one_sentence(self.jobs("in.yaml", "[" * 100_000, code=125), "in.yaml")
        self.one_sentence(self.jobs("in.yaml", "a: &a [x]\nb: [*a, *a]\njobs: [*a]\n", code=125), "in.yaml")
        self.one_sentence(self.jobs("in.txt", "# nothing\npcm: A\n", code=125), "in.txt:2", "pcm")
        self.one_sentence(self.jobs("in.txt", "pmc:\n", code=125), "in.txt:1")
        self.one_sentence(self.jobs("in.xml", "x", code=125), ".yaml")
        self.one_sentence(self.rocprofv3("-i", "none.yaml", code=125), "none.yaml", "No such file")

    def test_unknown_counters_of_every_kind_of_file_are_named(self):
        for name, text in (("c.txt", "pmc: SQ_WAVES GRBM_COUNT # two\npmc: TCC_HIT\n"), ("c.yaml", "jobs:\n  - pmc: [SQ_WAVES]\n"),
                           ("c.json", '{"jobs": [{"pmc": ["SQ_WAVES"]}]}'), ("g.yaml", "jobs:\n  - pmc_groups: [[A, B], [C]]\n    pmc_group_interval: 3\n")):
            with self.subTest(name):
                result = self.jobs(name, text, code=125)
                self.one_sentence(result, "pmc", "has no counter '")
                self.assertEqual(result.stdout, b"", "told before the program starts")


class Counters(Rocprofv3):
    """--pmc on the virtual GPU, with its known counts."""

    def counters(self, *words, **options):
        self.rocprofv3("--pmc", "V_WAVES", "V_GLOBAL_LOAD_BYTES", "-o", "c", *words, **options)
        return rows(self.folder / "c_counter_collection.csv")

    def test_one_row_a_dispatch_and_counter(self):
        found = self.counters()
        self.assertEqual(list(found[0])[:4] + list(found[0])[-4:],
                         ["Correlation_Id", "Dispatch_Id", "Agent_Id", "Queue_Id", "Counter_Name", "Counter_Value", "Start_Timestamp", "End_Timestamp"])
        self.assertEqual({row["Counter_Name"] for row in found}, {"V_WAVES", "V_GLOBAL_LOAD_BYTES"})
        dispatches = {row["Dispatch_Id"] for row in found}
        self.assertEqual(len(found), 2 * len(dispatches))
        for row in found:
            if row["Counter_Name"] == "V_WAVES":
                groups = int(row["Grid_Size"]) // int(row["Workgroup_Size"])
                self.assertEqual(float(row["Counter_Value"]), groups * -(-int(row["Workgroup_Size"]) // 32))
            self.assertGreater(int(row["End_Timestamp"]), int(row["Start_Timestamp"]))

    def test_kernels_are_filtered(self):
        kernels = {row["Kernel_Name"] for row in self.counters("--kernel-include-regex", "scale")}
        self.assertTrue(kernels and all("scale" in kernel for kernel in kernels), kernels)
        self.assertFalse(any("scale" in row["Kernel_Name"] for row in self.counters("--kernel-exclude-regex", "scale", "--overwrite")))

    def test_listed(self):
        self.assertIn(b"V_GLOBAL_LOAD_BYTES", self.rocprofv3("--list-avail").stdout)

    def counted(self, folder, name="c"):
        return {row["Counter_Name"] for row in rows(self.folder / folder / f"{name}_counter_collection.csv")}

    def test_each_pmc_is_a_pass_of_its_own(self):
        result = self.rocprofv3("--pmc", "V_WAVES", "V_GLOBAL_LOAD_BYTES", "--pmc", "V_GLOBAL_STORE_BYTES", "--kernel-trace", "-o", "c")
        self.assertGreaterEqual(result.stdout.count(b"done 3\n"), 2, "the program runs for each pass")
        self.assertEqual(self.names(), [], "nothing beside the folders")
        self.assertEqual(self.counted("pass_1"), {"V_WAVES", "V_GLOBAL_LOAD_BYTES"})
        self.assertEqual(self.counted("pass_2"), {"V_GLOBAL_STORE_BYTES"})
        self.assertIn("c_kernel_trace.csv", self.names("pass_2"))
        self.rocprofv3("--pmc", "V_WAVES,V_GLOBAL_LOAD_BYTES", "--pmc", "V_GLOBAL_STORE_BYTES V_GLOBAL_LOAD_LINES", "-d", "sub", "-o", "c")
        self.assertEqual(self.counted("sub/pass_1"), {"V_WAVES", "V_GLOBAL_LOAD_BYTES"})
        self.assertEqual(self.counted("sub/pass_2"), {"V_GLOBAL_STORE_BYTES", "V_GLOBAL_LOAD_LINES"})
        self.rocprofv3("--pmc", "V_WAVES V_GLOBAL_LOAD_LINES", "-d", "one", "-o", "c")
        self.assertEqual(self.counted("one"), {"V_WAVES", "V_GLOBAL_LOAD_LINES"}, "one pass needs no folder")

    def test_a_pass_with_a_mistake_starts_nothing(self):
        result = self.rocprofv3("--pmc", "V_WAVES", "--pmc", "SQ_WAVES", code=125)
        self.one_sentence(result, "--pmc", "has no counter 'SQ_WAVES'")
        self.assertEqual((result.stdout, self.names()), (b"", []))
        self.one_sentence(self.rocprofv3("--pmc", "V_WAVES", "--pmc", code=125), "--pmc", "missing")
        self.one_sentence(self.rocprofv3("--pmc", "V_WAVES", "--pmc", ",", code=125), "--pmc", "missing")

    def test_a_pass_that_fails_ends_the_run(self):
        self.rocprofv3("--pmc", "V_WAVES", "--pmc", "V_GLOBAL_LOAD_LINES", "-o", "c", command=("sh", "-c", f"{STEPS}; exit 3"), code=3)
        self.assertFalse((self.folder / "pass_2").exists())

    def test_passes_of_the_command_line_come_before_those_of_the_file(self):
        (self.folder / "in.txt").write_text("pmc: V_GLOBAL_STORE_LINES\n")
        (self.folder / "in.yaml").write_text("jobs:\n  - pmc: [V_GLOBAL_STORE_LINES]\n    output_file: c\n    kernel_include_regex: scale\n  - kernel_trace: true\n    output_file: k\n")
        self.rocprofv3("--pmc", "V_WAVES", "-i", "in.txt", "-d", "t", "-o", "c")
        self.assertEqual((self.counted("t/pass_1"), self.counted("t/pmc_2")), ({"V_WAVES"}, {"V_GLOBAL_STORE_LINES"}))
        self.rocprofv3("--pmc", "V_WAVES", "--pmc", "V_GLOBAL_LOAD_LINES", "-i", "in.yaml", "-d", "y")
        self.assertEqual((self.counted("y/pass_1"), self.counted("y/pass_2"), self.counted("y/pass_3")), ({"V_WAVES"}, {"V_GLOBAL_LOAD_LINES"}, {"V_GLOBAL_STORE_LINES"}))
        self.assertEqual({row["Kernel_Name"] for row in rows(self.folder / "y/pass_1/c_counter_collection.csv")}, {"scale(float*, int)"},
                         "with the other options of the first job")
        self.assertIn("k_kernel_trace.csv", self.names("y/pass_4"))
        (self.folder / "plain.yaml").write_text("jobs:\n  - output_file: c\n")
        self.rocprofv3("--pmc", "V_WAVES", "-i", "plain.yaml", "-d", "p")
        self.assertEqual(self.counted("p/pass_1"), {"V_WAVES"})
        (self.folder / "both.yaml").write_text("jobs:\n  - pmc: [V_WAVES]\n    pmc_groups: [[V_WAVES]]\n")
        self.one_sentence(self.rocprofv3("-i", "both.yaml", code=125), "pmc_groups", "exclude")

    def test_replay_of_kernels_is_refused_where_it_cannot_be(self):
        beta = ("--replay-mode", "kernel", "--kernel-replay-beta-enabled")
        two = ("--pmc", "V_WAVES", "--pmc", "V_GLOBAL_LOAD_LINES")
        self.one_sentence(self.rocprofv3(*two, "--replay-mode", "kernel", code=125), "--kernel-replay-beta-enabled")
        self.one_sentence(self.rocprofv3("--kernel-trace", *beta, code=125), "--replay-mode", "--pmc")
        self.one_sentence(self.rocprofv3(*two, *beta, "--att", code=125), "--att", "exclude")
        self.one_sentence(self.rocprofv3(*two, *beta, code=125), "--replay-mode kernel", "a run of its own")
        self.assertEqual(self.rocprofv3("--pmc", "V_WAVES", *beta, "-o", "c").stderr, b"", "one pass needs no replay")
        self.assertEqual(self.counted("."), {"V_WAVES"})
        self.assertEqual(self.rocprofv3(*two, "--replay-mode", "application", "-d", "a", "-o", "c").stderr, b"")
        self.assertEqual(self.counted("a/pass_2"), {"V_GLOBAL_LOAD_LINES"})
        self.one_sentence(self.rocprofv3("--pmc", "V_WAVES", "--kernel-replay-beta-enabled", "-o", "d"), "--kernel-replay-beta-enabled", "no effect")
        self.one_sentence(self.rocprofv3("--kernel-trace", "--kernel-replay-beta-enabled", "-o", "e"), "without --pmc")

    def test_options_of_traces_in_runs_that_count(self):
        self.one_sentence(self.rocprofv3("--pmc", "V_WAVES", "-P", "0:1:1", "-o", "c", code=125), "--collection-period with --pmc")
        (self.folder / "extra.yaml").write_text("a: 1\n")
        self.one_sentence(self.rocprofv3("--pmc", "V_WAVES", "-E", "extra.yaml", "-o", "e"), "--extra-counters", "--list-avail")
        (self.folder / "g.yaml").write_text("jobs:\n  - pmc_groups: [[V_WAVES], ['V_GLOBAL_LOAD_LINES V_GLOBAL_STORE_LINES']]\n    pmc_group_interval: 3\n    output_file: c\n")
        self.one_sentence(self.rocprofv3("-i", "g.yaml"), "pmc_group_interval", "every group")
        self.assertEqual(self.counted("pass_1"), {"V_WAVES", "V_GLOBAL_LOAD_LINES", "V_GLOBAL_STORE_LINES"})


class Refusals(Rocprofv3):
    def test_counters_and_samples(self):
        result = self.rocprofv3("--pmc", "SQ_WAVES", "GRBM_COUNT", code=125)
        self.one_sentence(result, "--pmc", "has no counter 'GRBM_COUNT'", "--list-avail")
        self.one_sentence(self.rocprofv3("--pc-sampling-method", "host_trap", code=125), "--pc-sampling-beta-enabled")
        self.one_sentence(self.rocprofv3("--pc-sampling-beta-enabled", "--pc-sampling-method", "host_trap", code=125), "--pc-sampling-unit", "--pc-sampling-interval")
        sampling = ("--pc-sampling-beta-enabled", "--pc-sampling-method", "host_trap", "--pc-sampling-unit", "time", "--pc-sampling-interval")
        self.one_sentence(self.rocprofv3(*sampling, "0", code=125), "--pc-sampling-interval")
        self.one_sentence(self.rocprofv3(*sampling, "1000", code=125), "--pc-sampling")

    def test_unknown_words(self):
        self.one_sentence(self.rocprofv3("--kernel-trase", code=125), "--kernel-trase", "did you mean --kernel-trace")
        self.one_sentence(self.rocprofv3("-Q", code=125), "-Q")
        self.one_sentence(self.rocprofv3("--kernel-trace", "stray", code=125), "stray")
        self.one_sentence(self.rocprofv3("--agent-index", "relativ", code=125), "did you mean relative")
        self.one_sentence(self.rocprofv3("--output-file", code=125), "--output-file", "missing")
        self.one_sentence(self.rocprofv3("--kernel-trace", "--pid", "5", code=125), "--pid records a program that already runs")
        self.one_sentence(self.run_command(ROCPROFV3, "--kernel-trace", code=125), "no program")
        self.one_sentence(self.rocprofv3("--kernel-trace", command=("/no/such/program",), code=127), "/no/such/program")
        self.one_sentence(self.rocprofv3("--kernel-trace", command=("/etc/passwd",), code=126), "/etc/passwd")

    def test_thread_trace_is_one_line(self):
        for words in (("--att",), ("--advanced-thread-trace",), ("--att", "--att-library-path", "/a", "/b"), ("--att-target-cu", "0x2"),
                      ("--att-simd-select", "0xF"), ("--att-buffer-size", "0x6000000"), ("--att-shader-engine-mask", "0x11"),
                      ("--att-gpu-index", "0,1"), ("--att-perfcounters", "SQ_WAVES:0x3", "--att-perfcounter-ctrl", "32"),
                      ("--att-activity", "8"), ("--att-serialize-all", "yes"), ("--att-no-intercept",), ("--att-consecutive-kernels", "4"),
                      ("--att-resource-mode", "code-object"), ("--att-perfcounter-target-only",), ("--att-no-detail",)):
            with self.subTest(words):
                result = self.rocprofv3("--kernel-trace", "-o", "run", "--overwrite", *words)
                self.one_sentence(result, words[0], "thread trace")
        self.assertEqual(self.rocprofv3("--kernel-trace", "-o", "run", "--overwrite", "--att=no", "--att-serialize-all=no").stderr, b"")
        for words, needle in ((("--att-target-cu", "first"), "'first'"), (("--att-perfcounter-ctrl", "33"), "from 0 to 32"),
                              (("--att-activity", "17"), "from 0 to 16"), (("--att-buffer-size", "0"), "at least 1"),
                              (("--att-activity", "8", "--att-perfcounters", "SQ_WAVES"), "contradict")):
            self.one_sentence(self.rocprofv3("--kernel-trace", *words, code=125), words[0], needle)

    def test_domains_without_a_source_are_one_line(self):
        for option in ("--scratch-memory-trace", "--rocdecode-trace", "--rocjpeg-trace", "--kfd-trace", "--hip-graph-trace", "--hip-event-trace",
                       "--rocshmem-trace", "--ompt-trace", "--hipfile-trace", "--kfd-page-migration-trace", "--kfd-page-mapping-trace",
                       "--kfd-queue-trace", "--kfd-dropped-events-trace"):
            self.one_sentence(self.rocprofv3("--kernel-trace", "-o", "run", "--overwrite", option), option, "records nothing")
        for option in ("--hip-trace", "--hip-runtime-trace", "--hip-compiler-trace", "--cuda-trace", "--hsa-trace", "--hsa-core-trace",
                       "--hsa-amd-trace", "--hsa-image-trace", "--hsa-finalizer-trace", "--rccl-trace"):
            self.one_sentence(self.rocprofv3("--kernel-trace", "-o", "run", "--overwrite", option), f"nothing recorded for {option}")

    def test_categories_of_openmp(self):
        for words in (("parallel", "task", "target"), ("all",), ("TRUE",)):
            self.one_sentence(self.rocprofv3("--kernel-trace", "-o", "run", "--overwrite", "--ompt-trace", *words), "--ompt-trace", "records nothing")
        self.assertEqual(self.rocprofv3("--kernel-trace", "-o", "run", "--overwrite", "--ompt-trace", "no").stderr, b"")
        self.assertEqual(self.rocprofv3("--kernel-trace", "-o", "run", "--overwrite", "--ompt-trace=false").stderr, b"")
        self.one_sentence(self.rocprofv3("--kernel-trace", "--ompt-trace", "paralel", code=125), "paralel")
        self.one_sentence(self.rocprofv3("--kernel-trace", "--ompt-trace=parallel,task", code=125), "parallel,task")
        without = self.run_command(ROCPROFV3, "--kernel-trace", "-o", "run", "--overwrite", "--ompt-trace", STEPS, "--steps", "1")
        self.assertEqual(without.stdout, b"done 1\n", "the command is no category")

    def test_streaming_counters(self):
        beta = ("--spm-beta-enabled", "--spm", "SQ_WAVES")
        self.one_sentence(self.rocprofv3("--kernel-trace", "-o", "run", *beta, "--spm-sample-interval", "4096", "--spm-sample-interval-unit", "sclk_cycles"),
                          "--spm, --spm-sample-interval, --spm-sample-interval-unit", "records nothing")
        self.one_sentence(self.rocprofv3("--kernel-trace", "--spm", "SQ_WAVES", code=125), "--spm-beta-enabled")
        self.one_sentence(self.rocprofv3("--kernel-trace", "--spm-beta-enabled", "--spm-sample-interval", "1", code=125), "--spm with")
        self.one_sentence(self.rocprofv3(*beta, "--pmc", "V_WAVES", code=125), "excludes --pmc")
        self.one_sentence(self.rocprofv3("--kernel-trace", *beta, "--spm-sample-interval", "often", code=125), "'often'")
        self.one_sentence(self.rocprofv3("--kernel-trace", *beta, "--spm-sample-interval-unit", "ns", code=125), "sclk_cycles")

    def test_ranks_by_variables_of_the_users(self):
        words = ("--kernel-trace", "--mpi-world-rank-variable", "MY_RANK", "--mpi-world-size-variable", "MY_SIZE", "-o", "r%rank%")
        for rank, made in (("2", True), ("1", False)):
            result = self.rocprofv3(*words, "--profile-mpi-ranks", "2", env={"MY_RANK": rank, "MY_SIZE": "4", "OMPI_COMM_WORLD_RANK": "7", "OMPI_COMM_WORLD_SIZE": "8"})
            self.assertEqual(result.stdout, b"done 3\n")
            self.assertEqual((self.folder / f"r{rank}_kernel_trace.csv").exists(), made)
        self.one_sentence(self.rocprofv3("--kernel-trace", "--mpi-world-rank-variable", "MY_RANK", code=125), "--mpi-world-size-variable", "together")

    def test_variables_stand_for_options(self):
        env = {"ROCPROF_OUTPUT_PATH": "place", "ROCPROF_OUTPUT_FILE_NAME": "name"}
        self.rocprofv3("--kernel-trace", env=env)
        self.rocprofv3("--kernel-trace", "-o", "other", env=env)
        self.assertEqual(self.names("place"), ["name_agent_info.csv", "name_kernel_trace.csv", "other_agent_info.csv", "other_kernel_trace.csv"])

    def test_hidden_options(self):
        silent = self.rocprofv3("--kernel-trace", "-o", "run", "--readlink", "--realpath", "yes")
        self.assertEqual((silent.stdout, silent.stderr), (b"done 3\n", b""))
        echoed = self.rocprofv3("--kernel-trace", "--echo", "-o", "other", command=(STEPS, "--steps", "9"))
        self.assertEqual(echoed.stdout.decode().split(), [str(STEPS), "--steps", "9"])
        self.assertEqual(list(self.folder.glob("other*")), [], "only told, not run")
        for mode in ("disabled-sdk-contexts", "sdk-buffer-overhead", "sdk-callback-overhead", "tool-runtime-overhead", "execution-profile"):
            self.one_sentence(self.rocprofv3("--kernel-trace", "--benchmark-mode", mode, "-o", mode), "--benchmark-mode")
        self.one_sentence(self.rocprofv3("--kernel-trace", "--attach", "7", code=125), "not both")
        self.one_sentence(self.rocprofv3("--kernel-trace", "-p", "7", code=125), "not both")
        for words in (("--attach-duration-msec", "10"), ("--attach-children",), ("--attach-sync-output",)):
            self.one_sentence(self.rocprofv3("--kernel-trace", *words, code=125), words[0], "attaching")
        lines = self.lines(self.rocprofv3("--kernel-trace", "--selected-regions", "--selected-regions-ref-count", "-o", "counted"))
        self.assertIn("--selected-regions-ref-count has no effect", lines[0])

    def test_every_option_has_a_test(self):
        """Every option needs a test of its effect."""
        table = (SOURCE / "src" / "cli" / "personalities" / "rocprofv3" / "options.cpp").read_text()
        names = re.findall(r'^    \{"([a-z-]+)", "(-.)?"', table, re.M)
        self.assertGreater(len(names), 80)
        tests = pathlib.Path(__file__).read_text()
        for name, short in names:
            spellings = [f'"--{name}"', f'"--{name}=', f'"--{name} ', name.replace("-", "_") + ":"] + ([f'"{short}"'] if short else [])
            self.assertTrue(any(text in tests for text in spellings), f"--{name} is in no test")

    def test_options_without_a_task_here_are_one_line_each(self):
        (self.folder / "extra.yaml").write_text("a: 1\n")
        for words, needle in ((("--perfetto-backend", "system"), "written to a file"), (("--perfetto-buffer-size", "100"), "not needed"),
                              (("--perfetto-buffer-fill-policy", "discard", "--perfetto-shmem-size-hint", "64"), "not needed"),
                              (("-E", "extra.yaml"), "without --pmc"), (("--benchmark-mode", "execution-profile"), "AMD's own tool")):
            with self.subTest(words):
                result = self.rocprofv3("--kernel-trace", *words)
                self.assertEqual(len(self.lines(result)), 1, self.lines(result))
                self.assertIn(needle, self.lines(result)[0])
        self.one_sentence(self.rocprofv3("--kernel-trace", "-E", "none.yaml", code=125), "none.yaml")
        self.one_sentence(self.rocprofv3("--kernel-trace", "--rocm-root", "/none", code=125), "/none")
        self.one_sentence(self.rocprofv3("--kernel-trace", "-o", "r", "--rocm-root", "/usr", "--sdk-version", "1.0.0", "--sdk-soversion", "1"),
                          "--rocm-root, --sdk-soversion, --sdk-version", "changes nothing")
        silent = self.rocprofv3("--kernel-trace", "--disable-signal-handlers", "--suppress-marker-preload", "--process-sync")
        self.assertEqual(silent.stderr, b"")

    def test_list_avail(self):
        text = self.run_command(ROCPROFV3, "-L").stdout.decode()
        self.assertIn("Devices", text)
        self.assertIn("Counters", text)


@unittest.skipUnless(shutil.which("mpirun"), "no mpirun (Debian: openmpi-bin)")
class Mpi(Rocprofv3):
    def test_four_ranks_give_four_sets(self):
        words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4", ROCPROFV3, "--stats", "--kernel-trace", "-d", "mpi", "-o", "rank%rank%_of_%size%", "--", STEPS]
        self.run_command(*words)
        names = sorted(p.name for p in (self.folder / "mpi").iterdir())
        for rank in range(4):
            for kind in ("agent_info", "kernel_trace", "kernel_stats", "domain_stats"):
                self.assertIn(f"rank{rank}_of_4_{kind}.csv", names)
        self.assertEqual(len(names), 16)


if __name__ == "__main__":
    harness.main()
