"""The virtual GPU: its counts against values worked out by hand, runs joined, estimates, and the gate for CI."""
import csv
import json
import os
import shutil
import signal
import subprocess
import unittest

from harness import BUILD, TACHO, TARGETS, Case, main

PATTERNS = TARGETS / "opencl_patterns"
PLUGIN = BUILD / "lib" / "libtacho-oclgrind.so"
ICD = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"

ITEMS, LOCAL = 1024, 64
GROUPS, WAVES = ITEMS // LOCAL, ITEMS // 32


def rows(folder, name="pmc_perf_0.csv"):
    with open(folder / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@unittest.skipUnless(PLUGIN.exists() and os.path.exists(ICD), "this build has no Oclgrind plugin, or Oclgrind is not installed")
class Virtual(Case):
    def profile(self, *arguments, command=None, code=0, name="w", **options):
        command = command or [PATTERNS, "copy"]
        result = self.run_command(TACHO, "profile", "-n", name, "--device", "virtual", *arguments, "--", *command, code=code,
                                  **options)
        return result, self.folder / "workloads" / name / "virtual"

    def test_blocks_that_cannot_be_computed_are_refused_before_the_program_runs(self):
        result, folder = self.profile("-b", "21", command=["/usr/bin/touch", "ran"], code=125)
        self.assertIn(b"21", result.stderr)
        self.assertIn(b"cannot be computed on virtual", result.stderr)
        self.assertFalse((self.folder / "ran").exists() or folder.exists())

    def test_counts_equal_those_worked_out_by_hand(self):
        """Every number here follows from the kernel's text (targets/opencl_patterns.cpp) and the model of
        docs/virtual-gpu.md; nothing was taken from a run."""
        four, eight = 4 * ITEMS, 4 * WAVES  # bytes of a float for each work-item; sectors of a contiguous access: 4 a wave
        plain_load = {"V_GLOBAL_LOAD_BYTES": four, "V_GLOBAL_LOAD_USED_BYTES": four, "V_INST_GLOBAL_LOAD": WAVES,
                      "V_GLOBAL_LOAD_SECTORS": eight, "V_GLOBAL_LOAD_LINES": WAVES, "V_GLOBAL_LINES_READ": WAVES}
        plain_store = {"V_GLOBAL_STORE_BYTES": four, "V_GLOBAL_STORE_USED_BYTES": four, "V_INST_GLOBAL_STORE": WAVES,
                       "V_GLOBAL_STORE_SECTORS": eight, "V_GLOBAL_STORE_LINES": WAVES, "V_GLOBAL_LINES_WRITTEN": WAVES}
        no_local = {"V_INST_LOCAL_LOAD": 0, "V_INST_LOCAL_STORE": 0, "V_LOCAL_LOAD_CYCLES": 0, "V_LOCAL_STORE_CYCLES": 0}
        uniform = {"V_BRANCHES_DIVERGENT": 0, "V_BRANCHES": 0}
        launch = {"V_WORK_GROUPS": GROUPS, "V_WORK_ITEMS": ITEMS, "V_WAVES": WAVES, "Grid_Size": ITEMS, "Workgroup_Size": LOCAL}

        def conflict(ways):
            # ways words of each bank that is used: as many cycles, all but one of them conflicts, once for the store and
            # once for the load of each wave.
            return {**launch, **plain_load, **plain_store, **uniform, "V_BARRIERS": GROUPS,
                    "V_INST_BARRIER": WAVES, "V_LOCAL_STORE_BYTES": four, "V_LOCAL_LOAD_BYTES": four,
                    "V_LOCAL_STORE_CYCLES": ways * WAVES, "V_LOCAL_LOAD_CYCLES": ways * WAVES,
                    "V_LOCAL_STORE_CONFLICTS": (ways - 1) * WAVES, "V_LOCAL_LOAD_CONFLICTS": (ways - 1) * WAVES}

        triangle = sum(range(1, 33))  # iterations of a wave's work-items in `trips`
        expected = {
            # get_global_id, 2 addresses, load, store, ret
            "copy": {**launch, **plain_load, **plain_store, **no_local, **uniform, "V_INST": 6 * WAVES,
                     "V_THREAD_INST": 6 * ITEMS, "V_BARRIERS": 0, "V_OPS_INT64": 0},
            # every eighth float: one sector for each work-item, four to a line; shift or multiply of the index
            "strided": {**launch, **plain_store, **no_local, **uniform, "V_GLOBAL_LOAD_BYTES": four,
                        "V_GLOBAL_LOAD_USED_BYTES": four, "V_GLOBAL_LOAD_SECTORS": ITEMS, "V_GLOBAL_LOAD_LINES": ITEMS // 4,
                        "V_GLOBAL_LINES_READ": ITEMS // 4, "V_OPS_INT64": ITEMS},
            # one float for all: a sector and a line for each wave, 4 bytes of it used, and only one line in the end
            "broadcast": {**launch, **plain_store, **no_local, **uniform, "V_GLOBAL_LOAD_BYTES": four,
                          "V_GLOBAL_LOAD_USED_BYTES": 4 * WAVES, "V_GLOBAL_LOAD_SECTORS": WAVES, "V_GLOBAL_LOAD_LINES": WAVES,
                          "V_GLOBAL_LINES_READ": 1},
            **{f"conflict{ways}": conflict(ways) for ways in (2, 4, 8, 16, 32)},
            "padded": conflict(1),
            # two branches of each wave, both divergent; three stores of each wave: 8, 8 and 16 work-items, 1 + 1 + 2 sectors
            "nested": {**launch, **no_local, "V_BRANCHES": 2 * WAVES, "V_BRANCHES_DIVERGENT": 2 * WAVES,
                       "V_INST_GLOBAL_STORE": 3 * WAVES, "V_GLOBAL_STORE_BYTES": four, "V_GLOBAL_STORE_SECTORS": eight,
                       "V_GLOBAL_STORE_LINES": 3 * WAVES, "V_GLOBAL_LINES_WRITTEN": WAVES},
            # 33 evaluations of the loop's condition; the first lets all in, the last lets the only one left out
            "trips": {**launch, **plain_store, **no_local, "V_BRANCHES": 33 * WAVES, "V_BRANCHES_DIVERGENT": 31 * WAVES,
                      "V_INST_GLOBAL_LOAD": 32 * WAVES, "V_GLOBAL_LOAD_BYTES": 4 * triangle * WAVES,
                      "V_GLOBAL_LOAD_USED_BYTES": 4 * 32 * WAVES, "V_GLOBAL_LOAD_SECTORS": 32 * WAVES,
                      "V_INST_FP_ADD": 32 * WAVES, "V_OPS_ADD_F32": triangle * WAVES, "V_GLOBAL_LINES_READ": 1},
            # 63 additions of a workgroup in 6 steps, in which the first wave takes part in all and the second in none
            "barriers": {**launch, **plain_load, "V_BARRIERS": 7 * GROUPS, "V_INST_BARRIER": 7 * WAVES,
                         "V_OPS_ADD_F32": 63 * GROUPS, "V_INST_FP_ADD": 6 * GROUPS,
                         "V_LOCAL_LOAD_BYTES": (2 * 63 + 1) * 4 * GROUPS, "V_LOCAL_STORE_BYTES": (64 + 63) * 4 * GROUPS,
                         "V_INST_LOCAL_LOAD": 13 * GROUPS, "V_INST_LOCAL_STORE": (2 + 6) * GROUPS,
                         "V_LOCAL_LOAD_CONFLICTS": 0, "V_LOCAL_STORE_CONFLICTS": 0,
                         # step 32 parts the waves, 16 to 1 the first wave, and so does the last `l == 0`
                         "V_BRANCHES_DIVERGENT": 6 * GROUPS, "V_GLOBAL_STORE_BYTES": 4 * GROUPS},
            "madd": {**launch, **plain_load, **plain_store, "V_OPS_FMA_F32": ITEMS, "V_OPS_MUL_F32": ITEMS,
                     "V_OPS_ADD_F32": 0, "V_INST_FP_FMA": WAVES, "V_INST_FP_MUL": WAVES},
            # 31 of 32 meet an address that another one has; one sector for the shared word, four for the others
            "atomics": {**launch, "V_INST_GLOBAL_ATOMIC": 2 * WAVES, "V_GLOBAL_ATOMIC_BYTES": 2 * four,
                        "V_GLOBAL_ATOMIC_CONFLICTS": 31 * WAVES, "V_GLOBAL_ATOMIC_SECTORS": 5 * WAVES},
            # 16 bytes each: 16 sectors a wave, and 4 phases of 8 work-items without conflicts
            "vectors": {**launch, "V_GLOBAL_LOAD_BYTES": 4 * four, "V_GLOBAL_LOAD_SECTORS": 16 * WAVES,
                        "V_GLOBAL_LOAD_LINES": 4 * WAVES, "V_LOCAL_LOAD_CYCLES": 4 * WAVES, "V_LOCAL_STORE_CYCLES": 4 * WAVES,
                        "V_LOCAL_LOAD_CONFLICTS": 0, "V_LOCAL_STORE_CONFLICTS": 0},
        }
        _, folder = self.profile("-q", command=[PATTERNS, ",".join(expected), ITEMS, LOCAL])
        found = {row["Kernel_Name"]: row for row in rows(folder)}
        self.assertEqual(set(found), set(expected))
        for kernel, counts in expected.items():
            measured = {name: float(found[kernel][name]) for name in counts}
            self.assertEqual(measured, counts, kernel)
        # Kernel by kernel the memory of a workgroup, too.
        self.assertEqual(found["conflict8"]["LDS_Per_Workgroup"], str(64 * 8 * 4))
        for row in found.values():
            self.assertGreater(int(row["End_Timestamp"]), int(row["Start_Timestamp"]), row["Kernel_Name"])

        # The same again: to the last digit.
        _, again = self.profile("-q", command=[PATTERNS, ",".join(expected), ITEMS, LOCAL], name="again")
        for one, two in zip(rows(folder), rows(again)):
            self.assertEqual({k: v for k, v in one.items() if k.startswith("V_")}, {k: v for k, v in two.items() if k.startswith("V_")})

        # And analyze says so.
        shown = self.run_command(TACHO, "analyze", "-p", folder, "-k", "conflict32", "-b", "12.2", "11.2").stdout.decode()
        self.assertRegex(shown, r"Bank Conflicts/Access +31\.00")
        shown = self.run_command(TACHO, "analyze", "-p", folder, "-k", "conflict32").stdout.decode()
        self.assertIn("Bank conflicts in local memory", shown)
        shown = self.run_command(TACHO, "analyze", "-p", folder, "-k", "strided").stdout.decode()
        self.assertIn("Loads are not coalesced", shown)
        self.assertNotIn("Bank conflicts", shown)
        self.assertRegex(shown, r"Loads are not coalesced: 44 to 88 % of its Load Sectors\n")
        self.assertIn("ranked by instructions issued: times are those of the CPU", shown)
        # All kernels are judged, also those that the CPU ran fast.
        whole = self.run_command(TACHO, "analyze", "-p", folder, "--output-format", "json").stdout
        self.assertIn("strided", {finding["kernel"] for finding in json.loads(whole)["findings"]})
        self.assertIn("% of CPU time", shown)
        shown = self.run_command(TACHO, "analyze", "-p", folder, "-k", "copy").stdout.decode()
        self.assertIn("none of the 14 rules that could be judged found anything", shown)

        # Where it was counted is stated.
        info = rows(folder, "sysinfo.csv")[0]
        self.assertEqual((info["wave_size"], info["lds_banks_per_cu"], info["lds_bank_bytes"], info["sector_bytes"]),
                         ("32", "32", "4", "32"))

    def test_a_partly_filled_wave(self):
        _, folder = self.profile("-q", command=[PATTERNS, "copy", 480, 48])
        row = rows(folder)[0]
        self.assertEqual((float(row["V_WAVES"]), float(row["V_WORK_ITEMS"])), (20, 480))
        shown = self.run_command(TACHO, "analyze", "-p", folder, "-b", "7.1").stdout.decode()
        self.assertRegex(shown, r"Wavefront Fill +75\.00")

    def test_ci_gate(self):
        _, base = self.profile("-q", command=[PATTERNS, "conflict2"], name="base")
        _, same = self.profile("-q", command=[PATTERNS, "conflict2"], name="same")
        self.run_command(TACHO, "analyze", "--baseline", base, "-p", same, "--fail-above", "1%", code=0)
        _, worse = self.profile("-q", command=[PATTERNS, "conflict4"], name="worse")
        result = self.run_command(TACHO, "analyze", "--baseline", base, "-p", worse, "--fail-above", "1%", code=3)
        self.assertIn(b"0.1 Count of kernel conflict4 changed from 0 in run 1", result.stderr)
        self.run_command(TACHO, "analyze", "--baseline", base, "-p", worse, "--fail-above", "1 percent", code=1)

    def test_nothing_hides_from_the_gate(self):
        def gate(base, now, code):
            return self.run_command(TACHO, "analyze", "--baseline", base, "-p", now, "--fail-above", "1%", code=code).stderr

        _, base = self.profile("-q", command=[PATTERNS, "copy,strided"], name="base")
        # The order of launches is no change; more launches of the same kernels are, though no mean moves.
        _, order = self.profile("-q", command=[PATTERNS, "strided,copy"], name="order")
        gate(base, order, 0)
        _, twice = self.profile("-q", command=[PATTERNS, "copy,strided,copy,strided"], name="twice")
        self.assertIn(b"0.1 Count of kernel copy changed by 100.00 %", gate(base, twice, 3))
        _, fewer = self.profile("-q", command=[PATTERNS, "copy"], name="fewer")
        gate(base, fewer, 3)
        gate(fewer, base, 3)
        # One kernel among many, of which the mean over all hardly moves.
        _, many = self.profile("-q", command=[PATTERNS, ",".join(["copy"] * 200 + ["conflict2"])], name="many")
        _, worse = self.profile("-q", command=[PATTERNS, ",".join(["copy"] * 200 + ["conflict2"])], name="worse")
        text = (worse / "pmc_perf_0.csv").read_text().splitlines()
        at = text[0].split(",").index("V_GLOBAL_LOAD_BYTES")
        last = text[-1].split(",")
        last[at] = str(int(int(last[at]) * 1.05))
        (worse / "pmc_perf_0.csv").write_text("\n".join([*text[:-1], ",".join(last)]) + "\n")
        self.assertRegex(gate(many, worse, 3), rb"of kernel conflict2 changed by [45]\.\d+ %")
        # Values that were not collected cannot be judged, which is reported; if nothing is left the gate is no gate.
        _, seven = self.profile("-q", "-b", "7", command=[PATTERNS, "copy,strided"], name="seven")
        self.assertRegex(gate(base, seven, 0), rb"--fail-above judged \d values; \d\d of the first run are missing")
        _, eleven = self.profile("-q", "-b", "11.3", command=[PATTERNS, "copy,strided"], name="eleven")
        self.assertIn(b"no value in common", gate(seven, eleven, 1))

    def test_estimates_are_said_and_not_judged(self):
        result, folder = self.profile("--max-time", "0.001", command=[PATTERNS, "copy", 65536, 64])
        self.assertIn(b"estimates", result.stderr)
        row = rows(folder)[0]
        self.assertLess(float(row["V_WORK_GROUPS_RUN"]), 1024)
        # This kernel's workgroups are all alike, so the estimate hits.
        self.assertEqual(float(row["V_WORK_GROUPS"]), 1024)
        self.assertEqual(float(row["V_GLOBAL_LOAD_BYTES"]), 65536 * 4)
        shown = self.run_command(TACHO, "analyze", "-p", folder)
        self.assertIn(b"estimates", shown.stderr)
        _, exact = self.profile("-q", command=[PATTERNS, "copy", 65536, 64], name="exact")
        result = self.run_command(TACHO, "analyze", "--baseline", exact, "-p", folder, "--fail-above", "1%", code=1)
        self.assertIn(b"estimates", result.stderr)

    def test_every_form_of_the_report(self):
        """A kernel launched several times has errors of its means, in some normalisations and not in others."""
        _, folder = self.profile("-q", command=[PATTERNS, "copy,strided,strided,copy"])
        for form in ("html", "json", "csv", "svg"):
            self.run_command(TACHO, "analyze", "-p", folder, "--output-format", form, "--output-name", f"out.{form}")
            self.assertGreater((self.folder / f"out.{form}").stat().st_size, 1000, form)
        found = json.loads((self.folder / "out.json").read_text())
        row = next(row for table in found["tables"] for row in table["rows"] if row.get("slug") == "global-load-sectors")
        self.assertEqual(row["error"], 0)

    def test_sets_are_one_pass(self):
        listed = self.run_command(TACHO, "profile", "--list-sets", "--arch", "virtual").stdout.decode()
        for name in ("compute_thruput_util", "compute_thruput_flops", "mem_thruput", "launch_stats"):
            self.assertIn(name, listed)
            result = self.run_command(TACHO, "profile", "--set", name, "--device", "virtual", "--dry-run")
            self.assertIn(b"1 pass\n", result.stdout)

    def test_every_descendant_is_counted(self):
        script = self.folder / "both.sh"
        script.write_text(f"#!/bin/sh\n{PATTERNS} copy\n{shutil.which('python3')} -c \"import subprocess; "
                          f"subprocess.run(['{PATTERNS}', 'broadcast'])\"\n")
        script.chmod(0o755)
        _, folder = self.profile("-q", command=[script])
        found = rows(folder)
        self.assertEqual([row["Kernel_Name"] for row in found], ["copy", "broadcast"])
        self.assertEqual([row["Dispatch_ID"] for row in found], ["0", "1"])
        self.assertEqual(len({row["PID"] for row in found}), 2)

    def test_filters(self):
        _, folder = self.profile("-q", "-k", "broad", command=[PATTERNS, "copy,broadcast,strided,broadcast"])
        self.assertEqual([(row["Kernel_Name"], row["Dispatch_ID"]) for row in rows(folder)], [("broadcast", "1"), ("broadcast", "3")])
        _, folder = self.profile("-q", "-d", "1:2", command=[PATTERNS, "copy,broadcast,strided"], name="d")
        self.assertEqual([row["Kernel_Name"] for row in rows(folder)], ["broadcast", "strided"])
        result, _ = self.profile("-k", "brodcast", command=[PATTERNS, "copy,broadcast"], name="none")
        self.assertIn(b"did you mean broadcast", result.stderr)
        result, _ = self.profile("-d", "7", command=[PATTERNS, "copy"], name="none2")
        self.assertIn(b"no dispatch passed -d 7", result.stderr)
        # Each filter alone: a filter that matches nothing is reported, though others were measured.
        result, folder = self.profile("-q", "-k", "copy", "BROADCAST", "xyzzy", command=[PATTERNS, "copy,broadcast"], name="some")
        self.assertEqual([row["Kernel_Name"] for row in rows(folder)], ["copy"])
        self.assertIn(b"-k BROADCAST: no kernel of that name was launched; did you mean broadcast?\n", result.stderr)
        self.assertIn(b"-k xyzzy: no kernel of that name was launched\n", result.stderr)
        self.assertNotIn(b"-k copy:", result.stderr)
        result, _ = self.profile("-q", "-d", "0", "5:9", command=[PATTERNS, "copy"], name="range")
        self.assertIn(b"-d 5:9: no such dispatch; the program launched 1, numbered from 0\n", result.stderr)
        result, _ = self.profile("-q", "-k", "copy", "-d", "1", command=[PATTERNS, "copy,broadcast"], name="both")
        self.assertNotIn(b"did you mean", result.stderr)
        self.assertIn(b"no dispatch passed -k copy and -d 1; the program launched broadcast, copy\n", result.stderr)

    def test_runs_that_differ_are_named(self):
        script = self.folder / "changes.sh"
        script.write_text(f"#!/bin/sh\nif mkdir {self.folder}/once 2>/dev/null; then exec {PATTERNS} copy,strided; fi\n"
                          f"exec {PATTERNS} copy,broadcast 2048\n")
        script.chmod(0o755)
        result, folder = self.profile("-q", command=[script])
        self.assertIn(b"launched different kernels: broadcast (never, then once), strided (once, then never); tacho changed only the device", result.stderr)
        self.assertIn(b"2 of 2 dispatches of the counted run have no counterpart in the timed one (first: copy of 2048 work-items)", result.stderr)
        # Never the interpreter's time.
        self.assertEqual([(row["Kernel_Name"], row["Start_Timestamp"], row["End_Timestamp"]) for row in rows(folder)],
                         [("copy", "", ""), ("broadcast", "", "")])

    def test_the_programs_end_is_kept_and_told(self):
        result, folder = self.profile("-q", command=[PATTERNS, "copy"], code=5, env={"PATTERNS_EXIT": "5"})
        self.assertIn(b"code 5", result.stderr)
        self.assertEqual(len(rows(folder)), 1)

    def test_a_crash_in_the_counted_run_is_no_other_fault(self):
        script = self.folder / "crashes.sh"
        script.write_text(f"#!/bin/sh\nif mkdir {self.folder}/once 2>/dev/null; then exec {PATTERNS} copy; fi\nkill -SEGV $$\n")
        script.chmod(0o755)
        result, _ = self.profile("-q", command=[script], code=139)
        self.assertEqual(result.stderr.decode().splitlines(), [
            "tacho: the first run of the program, which times its kernels, launched 1 kernel and ended with code 0; the second run, which "
            "counts, ended with code 139 (Segmentation fault) before it had finished one, so nothing was counted: it may not run on the "
            "virtual GPU, or not twice in one place (a lock, a port, files of the first run)"])

    def test_every_run_reads_the_input_from_the_same_place(self):
        (self.folder / "input").write_text("skipped\ncopy\n")
        with open(self.folder / "input", "rb", buffering=0) as file:
            file.seek(len("skipped\n"))
            result, folder = self.profile("-q", command=["/bin/sh", "-c", f"read kernel; exec {PATTERNS} $kernel"], stdin=file)
        self.assertEqual(result.stderr, b"")
        self.assertEqual([row["Kernel_Name"] for row in rows(folder)], ["copy"])

    def test_counts_that_cannot_be_written(self):
        # The counted run may not write one byte into a file.
        script = self.folder / "full.sh"
        script.write_text(f"#!/bin/sh\nmkdir {self.folder}/once 2>/dev/null || {{ trap '' XFSZ; ulimit -f 0; }}\nexec {PATTERNS} copy\n")
        script.chmod(0o755)
        result, _ = self.profile("-q", command=[script])
        self.assertEqual(result.stderr.decode().splitlines(), [
            "tacho: 1 dispatch could not be recorded (disk full?)",
            "tacho: none of the program's launches has values"])

    def test_interrupted_while_it_is_timed(self):
        process = subprocess.Popen([TACHO, "profile", "-q", "-n", "i", "--device", "virtual", "--", "/bin/sh", "-c", "echo ready; exec sleep 60"],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertIn(b"(Interrupt) in the run that times it: nothing was counted\n", error)


if __name__ == "__main__":
    main()
