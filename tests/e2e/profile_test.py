"""`tacho profile` and `rocprof-compute profile`, as a user runs them: options, refusals, folders, lists, runs, faults."""
import csv
import os
import pty
import re
import signal
import sqlite3
import subprocess
import time
import unittest

from harness import BUILD, EXAMPLES, TACHO, TARGETS, Case, main

PATTERNS = TARGETS / "opencl_patterns"
VCOPY = EXAMPLES / "vcopy"
PERSONALITY = BUILD / "personalities" / "rocprof-compute"
PLUGIN = BUILD / "lib" / "libtacho-oclgrind.so"
ICD = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"
HAVE_VIRTUAL = PLUGIN.exists() and os.path.exists(ICD)

# No variable of a launcher that runs the tests may be mistaken for a rank.
NO_RANK = {name: "" for name in ("OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "FLUX_TASK_RANK",
                                 "PALS_RANKID", "SLURM_PROCID", "MPI_RANK")}


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class Profile(Case):
    def setUp(self):
        super().setUp()
        os.symlink(VCOPY, self.folder / "vcopy")

    def profile(self, *words, code=0, program=(TACHO, "profile"), env=None, **options):
        return self.run_command(*program, *words, code=code, env={**NO_RANK, **(env or {})}, **options)

    def on_a_terminal(self, *command):
        """A terminal's view of a command, byte for byte."""
        master, slave = pty.openpty()
        process = subprocess.Popen(command, stdout=slave, stderr=slave, cwd=self.folder, env={**os.environ, **NO_RANK})
        os.close(slave)
        seen = b""
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:
                break
            if not part:
                break
            seen += part
        process.wait()
        os.close(master)
        return seen

    def refused(self, *words, needles=(), code=125, **options):
        result = self.profile(*words, code=code, **options)
        lines = result.stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith("tacho: "), lines)
        for needle in needles:
            self.assertIn(needle, lines[0])
        self.assertEqual(result.stdout, b"")
        # Refused before the start: nothing was made.
        self.assertFalse((self.folder / "workloads").exists(), "a refused run left a folder")
        return lines[0]


class DryRun(Profile):
    def said(self, *words):
        result = self.profile("--dry-run", *words)
        return result.stdout.decode(), result.stderr.decode()

    def test_a_device_without_a_roofline(self):
        out, err = self.said("--arch", "cpu", "--roof-only")
        self.assertIn("cpu has no roofline: --roof-only collects its System Speed-of-Light alone\n", err)
        self.assertIn("pass\n", out)
        self.assertNotIn("no roofline", self.said("--arch", "virtual", "--roof-only")[1])

    def test_counters_that_are_not_there_are_named(self):
        out, err = self.said("--arch", "cpu")
        listed = set(re.findall(r"CPU_[A-Z_]+", out))
        missing = set(re.findall(r"CPU_[A-Z_]+", err))
        self.assertEqual(len(listed) + len(missing), 16)
        self.assertFalse(listed & missing)

    def test_pc_samples_are_a_run_more(self):
        # Without CUPTI's library there is no plan for an NVIDIA GPU.
        result = self.profile("--dry-run", "--arch", "sm_90", "-b", "21", code=None)
        if result.returncode != 0:
            self.skipTest(result.stderr.decode())
        self.assertTrue(result.stdout.endswith(b"(1 counter): gpu__time_duration.sum\nand one more run of the program for PC samples\n"), result.stdout)
        self.assertNotIn(b"PC samples", self.profile("--dry-run", "--arch", "sm_90", "-b", "2").stdout)


class Refusals(Profile):
    def test_options_that_exclude_each_other(self):
        program = ("--", "./vcopy")
        self.refused("-n", "x", "-b", "2", "--set", "launch_stats", *program, needles=("--block", "--set", "together"))
        self.refused("-n", "x", "-b", "2", "--roof-only", *program, needles=("--block", "--roof-only"))
        self.refused("-n", "x", "--set", "launch_stats", "--roof-only", *program, needles=("--set", "--roof-only"))
        self.refused("-n", "x", "--roof-only", "--no-roof", *program, needles=("--roof-only", "--no-roof"))
        for words in (("-b", "2"), ("--set", "launch_stats"), ("--roof-only",), ("--no-roof",), ("--pc-sampling",), ("--torch-trace",), ("--dry-run",)):
            self.refused("-n", "x", "--bench-only", *words, needles=(words[0], "--bench-only", "together"))
        self.refused("--bench-only", needles=("-n NAME",))
        self.refused("-n", "x", "--iteration-multiplexing", "--no-native-tool", *program,
                     needles=("--iteration-multiplexing", "--no-native-tool"))
        self.refused("-n", "x", "--iteration-multiplexing", "--attach-pid", "1", *program,
                     needles=("--iteration-multiplexing", "--attach-pid"))
        self.refused("-n", "x", "--iteration-multiplexing", "kernels", *program, needles=("kernel_launch_params",))
        self.refused("-n", "x", "--iteration-multiplexing", "--replay", "kernel", *program, needles=("--replay kernel",))

    def test_the_documents_word_profiler_and_their_dashes(self):
        """'rocprof-compute profiler -–name <name> -- script.sh', as the users' documents print it."""
        script = self.folder / "script.sh"
        script.write_text("#!/bin/sh\nexec ./vcopy -n 4096\n")
        script.chmod(0o755)
        self.profile("-\u2013name", "seed", "\u2014device", "cpu", "-q", "--", "./script.sh", program=(PERSONALITY, "profiler"))
        self.assertTrue((self.folder / "workloads" / "seed" / "cpu" / "pmc_perf_0.csv").exists())
        kept = self.profile("-n", "words", "--device", "cpu", "-q", "--", "echo", "-\u2013kept", program=(PERSONALITY, "profile"))
        self.assertIn("-\u2013kept", kept.stdout.decode(), "words of the program stay")

    def test_pc_sampling_needs_experimental_under_upstreams_name(self):
        self.refused("-n", "x", "--pc-sampling", "--device", "cpu", "--", "./vcopy", program=(PERSONALITY, "profile"), needles=("--experimental",))
        self.refused("-n", "x", "--pc-sampling", "--device", "cpu", "--", "./vcopy", program=(PERSONALITY, "--experimental", "profile"),
                     needles=("--pc-sampling", "takes no PC samples"))
        self.refused("-n", "x", "--pc-sampling", "--device", "cpu", "--", "./vcopy", needles=("--pc-sampling", "takes no PC samples"))

    def test_what_the_device_cannot_do(self):
        self.refused("-n", "x", "--device", "cpu", "--cache-control", "all", "--", "./vcopy", needles=("--cache-control all", "emptied"))
        self.refused("-n", "x", "--device", "cpu", "--max-time", "1", "--", "./vcopy", needles=("--max-time 1", "virtual"))
        self.refused("-n", "x", "--device", "cpu", "--replay", "cupti", "--", "./vcopy", needles=("--replay cupti",))

    def test_a_refusal_removes_nothing(self):
        self.profile("-q", "-n", "kept", "--device", "cpu", "--", "./vcopy", "-n", "4096")
        folder = self.folder / "workloads" / "kept" / "cpu"
        before = sorted(p.name for p in folder.iterdir())
        for words in (["--cache-control", "all"], ["--max-time", "1"], ["--replay", "cupti"], ["-b", "2", "--set", "launch_stats"]):
            self.profile("-q", "-n", "kept", "--device", "cpu", "--overwrite", *words, "--", "./vcopy", code=125)
        self.profile("-q", "-n", "kept", "--device", "cpu", "--overwrite", "--", "./no-such-program", code=127)
        self.assertEqual(sorted(p.name for p in folder.iterdir()), before)

    def test_a_program_that_does_not_start_removes_nothing(self):
        self.profile("-q", "-n", "kept", "--device", "cpu", "--", "./vcopy", "-n", "4096")
        folder = self.folder / "workloads" / "kept"
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        script = self.folder / "script"
        script.write_text("#!/no/such/interpreter\n")
        script.chmod(0o755)
        # The kernel alone knows that before the start.
        self.profile("-q", "-n", "kept", "--device", "cpu", "--overwrite", "--", "./script", code=127)
        self.assertEqual({path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}, before)
        self.assertEqual([path for path in folder.rglob("*") if path.name.startswith(".")], [])
        self.profile("-q", "-n", "kept", "--device", "cpu", "--overwrite", "--", "./vcopy", "-n", "4096")
        after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        self.assertEqual(after.keys(), before.keys())
        self.assertNotEqual(after, before)
        self.assertEqual([path for path in folder.rglob("*") if path.name.startswith(".")], [])

    def test_two_runs_into_one_folder(self):
        command = (TACHO, "profile", "-q", "-n", "both", "--device", "cpu", "--overwrite", "--")
        first = subprocess.Popen([*command, "/bin/sh", "-c", "echo ready; read line; exec ./vcopy -n 4096"], cwd=self.folder,
                                 env={**os.environ, **NO_RANK}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(first.stdout.readline(), b"ready\n")
        for options in ([], ["--overwrite"]):
            second = self.profile("-q", "-n", "both", "--device", "cpu", *options, "--", "./vcopy", "-n", "8192", code=125)
            self.one_sentence(second, "workloads/both/cpu", "another run is being written there", "%env{NAME}%")
            self.assertEqual(second.stdout, b"")
        _, error = first.communicate(b"go\n" * 8, timeout=60)
        self.assertEqual(first.returncode, 0, error)
        folder = self.folder / "workloads" / "both" / "cpu"
        self.assertEqual({row["Grid_Size"] for row in rows(folder / "pmc_perf_0.csv")}, {"4096"})
        self.assertTrue((folder / "sysinfo.csv").exists())

    def test_what_is_not_here(self):
        self.refused("-n", "x", "--attach-pid", "1", "--", "./vcopy", needles=("--attach-pid", "start it with"))
        self.refused("-n", "x", "--torch-trace", "--", "./vcopy", needles=("--torch-trace", "Python"))
        for launcher in ("mpirun", "mpiexec", "srun", "orterun", "/usr/bin/mpirun"):
            self.refused("-n", "my_app", "--", launcher, "-n", "4", "./my_application",
                         needles=("must wrap the profiler", f"instead: {launcher} -n 4 tacho profile -n my_app -- ./my_application"))
        right, wrong = "mpirun -n 4 tacho profile -n my_app -- ./my_application (CORRECT)", "not tacho profile -n my_app -- "
        self.refused("-n", "my_app", "--", "mpirun", "-n", "4", "./my_application", needles=(right, wrong + "mpirun -n 4 ./my_application (WRONG)"))
        self.refused("-n", "my_app", "--", "env", "A=1", "mpirun", "-n", "4", "./my_application", needles=("env A=1 " + right, "(WRONG)"))
        self.refused("-n", "my_app", "--", "mpirun.openmpi", "-n", "4", "./my_application", needles=(right.replace("mpirun", "mpirun.openmpi"),))
        for line in ("mpirun -n 4 ./my_application", "cd . && mpirun -n 4 ./my_application", "A=1 exec 'mpirun' -n 4 ./my_application"):
            self.refused("-n", "my_app", "--", "bash", "-c", line, needles=(right,))
        self.refused("-n", "my_app", "--", "/bin/sh", "-ec", "env A=1 nice -n 5 mpiexec -n 4 ./my_application", needles=("mpiexec -n 4 tacho profile",))
        (self.folder / "hosts").write_text("here\n")
        self.refused("-n", "a", "--", "srun", "--hostfile", "./hosts", "./vcopy", "-n", "4096",
                     needles=("instead: srun --hostfile ./hosts tacho profile -n a -- ./vcopy -n 4096",))
        self.refused("-n", "a", "--", "mpirun", "-n", "4", needles=("instead: mpirun ... tacho profile -n a -- ./app",))

    def test_bad_values(self):
        self.refused("-n", "x", needles=("which program",))
        self.refused("-n", "x", "--", needles=("which program",))
        self.refused("--", "./vcopy", needles=("-n NAME", "--output-directory"))
        self.refused("-n", "a/b", "--", "./vcopy", needles=("'/'",))
        self.refused("-n", "..", "--", "./vcopy", needles=("not a name",))
        self.refused("-n", "a\nb", "--", "./vcopy", needles=("no line ends",))
        # The empty text of "$UNSET" must not mean everything.
        for option in ("-k", "--set", "--output-directory", "--path"):
            self.refused("-n", "x", option, "", "--", "./vcopy", needles=("an empty text was given",))
        for seconds in ("-1", "nan", "inf", "1s", "soon"):
            self.refused("-n", "x", "--max-time", seconds, "--", "./vcopy", needles=(f"--max-time: '{seconds}': expected seconds",))
        self.refused("--dry-run", "--arch", "sm_75", needles=("no metric catalog", "sm_75", "sm_90"))
        self.refused("-n", "x", "-d", "two", "--", "./vcopy", needles=("-d 'two'",))
        self.refused("-n", "x", "-d", "5:2", "--", "./vcopy", needles=("ends before it begins",))
        self.refused("-n", "x", "--device", "9", "--", "./vcopy", needles=("--device 9", "there are"))
        self.refused("-n", "x", "--set", "launch_stat", "--device", "cpu", "--", "./vcopy", needles=("launch_stats",))
        self.refused("-n", "x", "--device", "cpu", "-b", "99", "--", "./vcopy", needles=("99",))
        self.refused("-n", "x", "--device", "cpu", "-b", "valu-utilisationn", "--", "./vcopy", needles=("valu-utilisationn",))
        self.refused("-n", "x", "--retain-rocpd-output", "--", "./vcopy", needles=("--format-rocprof-output rocpd",))
        self.refused("-n", "x", "--arch", "gfx942", "--", "./vcopy", needles=("--dry-run",))
        self.refused("-n", "x", "--nonsense", "--", "./vcopy", needles=("--nonsense",))
        said = self.refused("--nmae", "x", "--", "./vcopy", needles=("did you mean --name?", "see tacho profile --help"))
        self.assertNotIn("comes after --", said)
        self.refused("-n", "x", "./vcopy", needles=("after --",))
        self.refused("-n", "x", "-q", "./vcopy", "-n", "4096", needles=("after --",))
        self.refused("-n", "x", "--device", "cpu", "--", "./no-such-program", code=127, needles=("no-such-program",))
        (self.folder / "data").write_text("x")
        self.refused("-n", "x", "--device", "cpu", "--", "./data", code=126, needles=("not executable",))

    def test_folders_of_others(self):
        (self.folder / "taken").mkdir()
        (self.folder / "taken" / "pmc_perf.csv").write_text("Dispatch_ID\n")
        self.refused("--device", "cpu", "--output-directory", "taken", "--", "./vcopy", needles=("tacho did not write", "--overwrite"))
        (self.folder / "file").write_text("x")
        self.refused("--device", "cpu", "--output-directory", "file", "--", "./vcopy", needles=("is a file",))


class Lists(Profile):
    def test_layout_of_metrics(self):
        text = self.profile("--list-available-metrics", "--arch", "gfx942").stdout.decode()
        # The lines that the users' document prints, in its layout; titles of tables are those of 3.3.
        for line in ("0 -> Top Stats", "1 -> System Info", "2 -> System Speed-of-Light", "      2.1 -> Speed-of-Light",
                     "               2.1.0 -> VALU FLOPs", "               2.1.1 -> VALU IOPs",
                     "               2.1.2 -> MFMA FLOPs (F8)", "5 -> Command Processor (CPC/CPF)",
                     "      5.1 -> Command processor fetcher (CPF)", "               5.1.0 -> CPF Utilization",
                     "               5.1.1 -> CPF Stall", "               5.1.2 -> CPF-L2 Utilization",
                     "      5.2 -> Command processor packet processor (CPC)", "               5.2.0 -> CPC Utilization",
                     "               5.2.1 -> CPC Stall Rate", "               5.2.5 -> CPC-UTCL1 Stall",
                     "6 -> Workgroup Manager (SPI)", "      6.1 -> Workgroup manager utilizations",
                     "               6.1.0 -> Accelerator Utilization", "               6.1.1 -> Scheduler-Pipe Utilization",
                     "               6.1.2 -> Workgroup Manager Utilization"):
            self.assertIn(line + "\n", text)
        self.assertEqual(text, self.profile("--list-available-metrics", "gfx942").stdout.decode())
        self.assertEqual(text, self.profile("--list-metrics", "--arch", "mi300x").stdout.decode())

    def test_layout_of_sets(self):
        text = self.profile("--list-sets", "--arch", "gfx950", program=(PERSONALITY, "profile")).stdout.decode()
        lines = text.splitlines()
        self.assertEqual(lines[0], "Available Sets:")
        self.assertEqual(lines[1], "=" * 115)
        self.assertEqual(lines[2], "Set Option                          Set Title                           Metric Name                    Metric ID")
        self.assertEqual(lines[3], "-" * 115)
        self.assertTrue(lines[4].startswith("compute_thruput_util                Compute Throughput Utilization      SALU Utilization               11.2."), lines[4])
        self.assertTrue(lines[5].startswith(" " * 72 + "VALU Utilization               11.2."), lines[5])
        launch = next(i for i, line in enumerate(lines) if line.startswith("launch_stats"))
        self.assertEqual(lines[launch], "launch_stats                        Launch Stats                        Grid Size                      7.1.0")
        self.assertEqual(lines[launch + 7], " " * 72 + "Scratch Allocation             7.1.9")
        self.assertIn("Usage Examples:\nrocprof-compute profile --set compute_thruput_util  # Profile this set\n"
                      "rocprof-compute profile --list-sets        # Show this help\n", text)
        seed = self.profile("--list-sets", "--arch", "gfx942", "--ids", "seed").stdout.decode()
        for name, number in (("SALU Utilization", "11.2.3"), ("VALU Utilization", "11.2.4"), ("VMEM Utilization", "11.2.6"),
                             ("Branch Utilization", "11.2.7")):
            self.assertRegex(seed, rf"{name} +{re.escape(number)}\n")

    def test_ids_of_the_documents_mean_what_the_lists_say(self):
        # The documents number some metrics as 3.3 numbers others: an id from a list has to select that very metric.
        for arch in ("gfx908", "gfx90a", "gfx942", "gfx950"):
            listed = re.findall(r"(?m)^ {15}(\S+) -> (.+)$", self.profile("--list-metrics", "--arch", arch, "--ids", "seed").stdout.decode())
            self.assertGreater(len(listed), 300)
            self.assertEqual(len({id for id, _ in listed}), len(listed), arch)
            self.assertEqual(self.run_command(TACHO, "analyze", "--list-metrics", arch, "--ids", "seed").stdout,
                             self.profile("--list-metrics", arch, "--ids", "seed").stdout)
            sets = self.profile("--list-sets", "--arch", arch, "--ids", "seed").stdout.decode()
            in_sets = re.findall(r"(?m)  (\S[^\n]*?) {2,}([0-9]+\.[0-9.]+|[a-z0-9-]+)$", sets)
            self.assertGreater(len(in_sets), 10)
            self.assertLessEqual({(id, name.rsplit("  ", 1)[-1]) for name, id in in_sets}, set(listed), arch)
        self.assertIn("MFMA FLOPs (F16)", self.run_command(TACHO, "metrics", "2.1.3", "--arch", "gfx942", "--ids", "seed").stdout.decode())

    def test_a_number_that_the_documents_give_to_two_metrics(self):
        # Lists of profile call F8 so, tables of analyze BF16: the run has both, and every use of the number says so.
        both = "2.1.2 is MFMA FLOPs (F8) where profile lists it and MFMA FLOPs (BF16) where analyze prints it"
        plan = self.profile("--dry-run", "--arch", "gfx942", "-b", "2.1.2", "--ids", "seed")
        self.assertIn("SQ_INSTS_VALU_MFMA_MOPS_BF16", plan.stdout.decode())
        self.assertIn("SQ_INSTS_VALU_MFMA_MOPS_F8", plan.stdout.decode())
        self.assertIn(f"{both}; both are collected", plan.stderr.decode())
        hint = self.profile("--dry-run", "--arch", "gfx942", "-b", "2.1.2").stderr.decode()
        self.assertIn(f"{both}; ids here are those of 3.3 on gfx942", hint)
        for words in (("profile", "--list-metrics", "gfx942"), ("analyze", "--list-metrics", "gfx942"), ("metrics", "2.1.2", "--arch", "gfx942")):
            self.assertIn(both, self.run_command(TACHO, *words, "--ids", "seed").stderr.decode())
        # Without F8 the number is BF16's.
        plan = self.profile("--dry-run", "--arch", "gfx90a", "-b", "2.1.2", "--ids", "seed")
        self.assertIn("SQ_INSTS_VALU_MFMA_MOPS_BF16", plan.stdout.decode())
        self.assertIn("MFMA FLOPs (BF16), which analyze prints under this number, is collected", plan.stderr.decode())

    def test_blocks(self):
        text = self.profile("--list-blocks", "--arch", "gfx90a").stdout.decode()
        self.assertRegex(text, r"(?m)^12  Local Data Share \(LDS\) +.*lds")
        self.refused("--list-blocks", "--arch", "gfx1234", needles=("gfx1234",))

    def test_plans_of_amd(self):
        # No more passes than the reference needs for everything, and every time the same.
        for arch, most in (("gfx908", 12), ("gfx90a", 12), ("gfx942", 12), ("gfx950", 20)):
            text = self.profile("--dry-run", "--arch", arch).stdout.decode()
            passes = int(re.search(r"(\d+) pass", text.splitlines()[0]).group(1))
            self.assertLessEqual(passes, most, arch)
            self.assertEqual(text, self.profile("--dry-run", "--arch", arch).stdout.decode())
            for name in ("compute_thruput_util", "compute_thruput_flops", "mem_thruput", "launch_stats"):
                self.assertIn(" 1 pass\n", self.profile("--dry-run", "--arch", arch, "--set", name).stdout.decode(), f"{arch} {name}")

    def test_modes_that_need_no_mode(self):
        """General options of rocprof-compute stand without a mode, too."""
        for words in (["--specs"], ["-s"], ["profile", "--specs"]):
            self.assertRegex(self.run_command(PERSONALITY, *words).stdout, rb"gpu_arch +\w")
        self.assertTrue(self.run_command(PERSONALITY, "--list-sets").stdout.startswith(b"Available Sets:\n"))


class OnCpu(Profile):
    """Tests that need a device, on the one that every machine has."""

    def cpu(self, *words, command=("./vcopy", "-n", "65536", "-b", "256"), **options):
        return self.profile("--device", "cpu", *words, "--", *command, **options)

    def test_folder(self):
        result = self.cpu("-n", "vcopy")
        folder = self.folder / "workloads" / "vcopy" / "cpu"
        self.assertEqual(sorted(p.name for p in folder.iterdir()),
                         ["log.txt", "perfmon", "pmc_perf_0.csv", "profiling_config.yaml", "sysinfo.csv", "timestamps.csv"])
        self.assertTrue((folder / "perfmon" / "pmc_perf_0.txt").read_text().startswith("pmc: CPU_"))
        # The program's own bytes, as without us.
        alone = self.run_command("./vcopy", "-n", "65536", "-b", "256")
        self.assertEqual(result.stdout, alone.stdout)
        log = (folder / "log.txt").read_text()
        for line in alone.stdout.decode().splitlines():
            self.assertIn(f"    |-> [perf_event] {line}\n", log)
        self.assertEqual(log.count("Kernels are serialized"), 1)
        self.assertEqual(result.stderr.count(b"Kernels are serialized"), 1)
        row = rows(folder / "pmc_perf_0.csv")[0]
        self.assertEqual((row["Kernel_Name"], row["Grid_Size"], row["Workgroup_Size"]), ("vecCopy", "65536", "256"))
        self.assertGreater(float(row["CPU_TASK_CLOCK"]), 0)
        stamps = rows(folder / "timestamps.csv")
        self.assertEqual([(r["Kernel_Name"], r["Start_Timestamp"]) for r in stamps], [("vecCopy", row["Start_Timestamp"])])
        info = rows(folder / "sysinfo.csv")[0]
        self.assertEqual((info["workload_name"], info["gpu_arch"]), ("vcopy", "cpu"))
        shown = self.run_command(TACHO, "analyze", "-p", "workloads/vcopy", "--full").stdout.decode()
        self.assertRegex(shown, r"Cores Busy +\d")
        for name in ("json", "html", "csv"):
            self.run_command(TACHO, "analyze", "-p", folder, "--output-format", name, "-o", f"out.{name}")

    def test_runs_are_added_joined_and_chosen(self):
        self.cpu("-n", "v", "-q", "-b", "7")
        self.cpu("-n", "v", "-q", "-b", "16")
        self.cpu("-n", "v", "-q", "-b", "11", command=("./vcopy", "-n", "4096", "-b", "64"))
        folder = self.folder / "workloads" / "v" / "cpu"
        self.assertEqual(sorted(p.name for p in folder.glob("pmc_perf_*.csv")), ["pmc_perf_0.csv", "pmc_perf_1.csv", "pmc_perf_2.csv"])
        config = (folder / "profiling_config.yaml").read_text()
        self.assertEqual(config.count('{"run": '), 3)
        newest = self.run_command(TACHO, "analyze", "-p", folder, "--full")
        self.assertIn(b"2 of its 3 runs had another command", newest.stderr)
        self.assertIn(b"11. Cores", newest.stdout)
        self.assertNotIn(b"16. Memory", newest.stdout)
        first = self.run_command(TACHO, "analyze", "-p", folder, "--run", "1", "--full")
        # Runs of the same command and filters are one.
        self.assertIn(b"16. Memory", first.stdout)
        self.assertRegex(first.stdout, rb"Grid Size +65536")
        # The report's facts about the run are about those that it shows, whichever came into the folder first.
        self.assertRegex(newest.stdout, rb"command +./vcopy -n 4096 -b 64\n")
        self.assertRegex(first.stdout, rb"command +./vcopy -n 65536 -b 256\n")
        self.assertNotIn(b"11. Cores", first.stdout)
        wrong = self.run_command(TACHO, "analyze", "-p", folder, "--run", "7", code=1)
        self.assertIn(b"there is no run 7", wrong.stderr)
        # A yaml reader sees what rocprof-compute would.
        try:
            import yaml
            loaded = yaml.safe_load(config)
            self.assertEqual(loaded["filter_blocks"], ["11"])
            self.assertEqual(loaded["runs"][0]["command"], ["./vcopy", "-n", "65536", "-b", "256"])
        except ImportError:
            pass
        left = self.folder / "workloads" / "v" / "cpu" / ".tacho-spool-abcdef"  # of a tacho that was killed
        left.mkdir()
        (left / "state").write_bytes(b"x")
        self.cpu("-n", "v", "-q", "-b", "7", "--overwrite")
        self.assertFalse(left.exists())
        self.assertEqual([p.name for p in folder.glob("pmc_perf_*.csv")], ["pmc_perf_0.csv"])

    def test_output_directory(self):
        self.cpu("-q", "--output-directory", "out/%hostname%/%gpumodel%/%env{TACHO_TEST_WORD}%x%env{TACHO_TEST_UNSET}%",
                 env={"TACHO_TEST_WORD": "word"})
        host = os.uname().nodename
        self.assertTrue((self.folder / "out" / host / "cpu" / "wordx" / "pmc_perf_0.csv").exists())
        both = self.cpu("-n", "name", "--output-directory", "other")
        self.assertIn(b"--name is ignored", both.stderr)
        self.assertTrue((self.folder / "other" / "pmc_perf_0.csv").exists())
        self.assertFalse((self.folder / "workloads").exists())
        old = self.cpu("-p", "old", "--subpath", "gpu_model")
        self.assertIn(b"--path is deprecated for profile mode", old.stderr)
        self.assertIn(b"--subpath is deprecated for profile mode", old.stderr)
        self.assertTrue((self.folder / "old" / "cpu" / "pmc_perf_0.csv").exists())
        none = self.cpu("--output-directory", "r%rank%")
        self.assertIn(b"%rank% is ignored", none.stderr)
        self.assertTrue((self.folder / "r" / "pmc_perf_0.csv").exists())

    def test_ranks(self):
        for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", "FLUX_TASK_RANK", "PALS_RANKID",
                     "MV2_COMM_WORLD_RANK"):
            size = {"PMI_SIZE": "4"} if name == "PMI_RANK" else {}
            self.cpu("-q", "-n", name, env={name: "3", **size})
            self.assertTrue((self.folder / "workloads" / name / "3" / "pmc_perf_0.csv").exists(), name)
        self.cpu("-q", "--output-directory", "out", env={"PMI_RANK": "2", "PMI_SIZE": "4"})
        self.assertTrue((self.folder / "out" / "2" / "pmc_perf_0.csv").exists())
        self.cpu("-q", "--output-directory", "out/rank-%rank%", env={"PMI_RANK": "2", "PMI_SIZE": "4"})
        self.assertTrue((self.folder / "out" / "rank-2" / "pmc_perf_0.csv").exists())
        self.cpu("-q", "-n", "no_size", env={"PMI_RANK": "2"})
        self.assertTrue((self.folder / "workloads" / "no_size" / "cpu" / "pmc_perf_0.csv").exists(), "PMI_RANK without a size is no rank")

    def test_rocpd(self):
        self.cpu("-q", "-n", "v", "--format-rocprof-output", "rocpd")
        folder = self.folder / "workloads" / "v" / "cpu"
        self.assertEqual([p.name for p in folder.glob("*.db")], [])
        long = rows(folder / "results_0.csv")
        self.assertIn("CPU_TASK_CLOCK", {row["Counter_Name"] for row in long})
        self.assertRegex(self.run_command(TACHO, "analyze", "-p", folder, "--full").stdout.decode(), r"Cores Busy +\d")
        self.cpu("-q", "-n", "kept", "--format-rocprof-output", "rocpd", "--retain-rocpd-output")
        database = sqlite3.connect(self.folder / "workloads" / "kept" / "cpu" / "results_0.db")
        # Runs of one folder go together whatever their form; the newest values count.
        self.cpu("-q", "-n", "v", "-b", "7")
        self.cpu("-q", "-n", "v", "-b", "context-switches", "--format-rocprof-output", "rocpd")
        self.assertEqual(sorted(p.name for p in folder.glob("*_[0-9].csv")), ["pmc_perf_1.csv", "results_0.csv", "results_2.csv"])
        shown = self.run_command(TACHO, "analyze", "-p", folder, "--decimal", "0", "--full").stdout.decode()
        self.assertRegex(shown, r"Cores Busy +\d")
        self.assertRegex(shown, rf"Kernel Time with Launch +{rows(folder / 'pmc_perf_1.csv')[0]['CPU_WALL_TIME']} ")
        newest = {row["Counter_Name"]: row["Counter_Value"] for row in rows(folder / "results_2.csv")}
        self.assertRegex(shown, rf"Context Switches +{newest['CPU_CONTEXT_SWITCHES']} ")
        names = [row[0] for row in database.execute("SELECT DISTINCT pmc.name FROM rocpd_pmc_event e JOIN rocpd_info_pmc pmc ON e.pmc_id = pmc.id")]
        self.assertIn("CPU_TASK_CLOCK", names)

    def test_metrics_of_other_devices(self):
        result = self.cpu("-n", "v", "-b", "17", "11.2.0")
        self.assertIn(b"17 (L2 Cache) cannot be computed on cpu", result.stderr)
        only = self.cpu("-n", "only", "-b", "17", code=125)  # nothing is left: the program is not run
        self.assertIn(b"17 (L2 Cache) cannot be computed on cpu", only.stderr)

    def test_multiplexing_is_announced(self):
        result = self.cpu("-n", "v", "--iteration-multiplexing", command=("./vcopy", "-i", "20", "-n", "4096", "-b", "64"))
        self.assertIn(b", which equal launches of a kernel take in turns; folder workloads/v/cpu\n", result.stderr)
        result = self.cpu("-n", "w", "--iteration-multiplexing", "kernel", "--no-native-tool", code=125)

    def test_config_dir_and_specs(self):
        (self.folder / "own").mkdir()
        (self.folder / "own" / "mine.yaml").write_text(
            "block: 7\ntables:\n  - table: 2\n    metrics:\n      - slug: cpu-wall-twice\n        name: Twice\n        unit: ns\n"
            "        kind: ratio\n        value: 2 * CPU_WALL_TIME\n        description: Twice the wall time.\n        advice: None.\n")
        self.cpu("-q", "-n", "v", "--config-dir", "own", "-b", "cpu-wall-twice")
        shown = self.run_command(TACHO, "analyze", "-p", "workloads/v", "--config-dir", "own", "--full").stdout.decode()
        self.assertRegex(shown, r"Twice +\d")
        specs = self.profile("--specs", "--device", "cpu").stdout.decode()
        self.assertRegex(specs, r"gpu_arch +cpu")
        plan = self.profile("--dry-run", "--device", "cpu", "-b", "7").stdout.decode()
        self.assertIn("pmc_perf_0", plan)
        self.assertFalse((self.folder / "workloads" / "dry").exists())

    def test_the_programs_end(self):
        self.cpu("-n", "v", command=(PATTERNS, "copy"), code=7, env={"PATTERNS_EXIT": "7"})
        self.assertEqual(len(rows(self.folder / "workloads" / "v" / "cpu" / "pmc_perf_0.csv")), 1)
        none = self.cpu("-n", "none", command=("/bin/true",))
        self.assertIn(b"nothing was counted", none.stderr)
        self.cpu("-n", "false", command=("/bin/false",), code=1)

    def test_a_terminal_stays_one(self):
        seen = self.on_a_terminal(TACHO, "profile", "--device", "cpu", "-q", "-n", "t", "--", "/bin/sh", "-c",
                                  "test -t 1 && echo tty; test -t 2 && echo err")
        self.assertIn(b"tty", seen)
        self.assertIn(b"err", seen)

    def test_tacho_speaks_its_own_words(self):
        """rocprof-compute's header goes to log.txt; a terminal's lines fit it, and tell how far the run is."""
        seen = self.on_a_terminal("/bin/sh", "-c", f"stty cols 80; exec {TACHO} profile --device cpu -n t -b 7 11 -- ./vcopy -n 65536 -i 300")
        said = seen.decode().replace("\r\n", "\n")
        log = (self.folder / "workloads" / "t" / "cpu" / "log.txt").read_text()
        for line in ("Profiler choice: ", "Kernel Selection: None", "Dispatch Selection: None", "~" * 32, "Collecting Performance Counters"):
            self.assertIn(line, log)
            self.assertNotIn(line, said)
        self.assertRegex(" ".join(said.split()), r"tacho: .*: \d+ metrics from \d+ counters in \d+ pass(es)?; folder workloads/t/cpu")
        for line in said.split("\n"):
            if line.startswith("tacho: "):
                self.assertLessEqual(len(line.split("\r")[-1]), 80, said)
        piped = self.cpu("-n", "p", "-b", "7", command=("./vcopy", "-n", "4096")).stderr.decode()
        self.assertRegex(piped, r"\Atacho: .*: \d+ metrics from \d+ counters in 1 pass; folder workloads/p/cpu\n")
        self.assertNotIn("\r", piped)

    def test_interrupted(self):
        script = self.folder / "long.sh"
        script.write_text(f"#!/bin/sh\n{PATTERNS} copy\ntouch {self.folder}/measured\nexec sleep 60\n")
        script.chmod(0o755)
        process = subprocess.Popen([TACHO, "profile", "--device", "cpu", "-q", "-n", "i", "--", script], cwd=self.folder,
                                   env={**os.environ, **NO_RANK}, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while not (self.folder / "measured").exists() and time.monotonic() < end:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=30), 128 + signal.SIGINT)
        # Finished passes are readable.
        self.assertEqual(rows(self.folder / "workloads" / "i" / "cpu" / "pmc_perf_0.csv")[0]["Kernel_Name"], "copy")
        said = self.run_command(TACHO, "analyze", "-p", "workloads/i/cpu").stderr.decode()
        self.assertIn("the program ended with code 130 (run 1); what it had not finished by then is missing\n", said)

    def test_after_a_kill_the_next_run_tidies_up(self):
        environment = {**os.environ, **NO_RANK, "TACHO_POOL_DIR": str(self.folder)}
        process = subprocess.Popen([TACHO, "profile", "-q", "-n", "k", "--device", "cpu", "--", "/bin/sh", "-c", "echo $$; exec sleep 60"],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        target = int(process.stdout.readline())
        process.kill()
        process.communicate()
        os.kill(target, signal.SIGKILL)
        folder = self.folder / "workloads" / "k" / "cpu"
        self.assertTrue([path for path in folder.iterdir() if path.name.startswith(".tacho-")])
        self.profile("-q", "-n", "k", "--device", "cpu", "--", "./vcopy", "-n", "4096")
        self.assertEqual([path for path in folder.iterdir() if path.name.startswith(".")], [])
        self.run_command(TACHO, "analyze", "-p", folder)

    def test_our_own_work_is_no_cpu_time_of_the_kernel(self):
        self.profile("--device", "cpu", "-q", "-n", "tiny", "--", "./vcopy", "-n", "256", "-i", "40")
        found = rows(self.folder / "workloads" / "tiny" / "cpu" / "pmc_perf_0.csv")
        cores = os.cpu_count() or 1
        busy = sorted(float(row["CPU_TASK_CLOCK"]) / float(row["CPU_WALL_TIME"]) / cores for row in found)
        self.assertEqual(len(busy), 40)
        self.assertLess(busy[20], 1)
        # One workgroup keeps one core busy and one thread waiting; a clock that ran while others were set counted twice that.
        self.assertLess(busy[20] * cores, 1.5)

    def test_why_a_folder_has_no_counters(self):
        self.profile("--device", "cpu", "-q", "-n", "none", "-k", "other", "--", "./vcopy", "-n", "4096")
        said = self.run_command(TACHO, "analyze", "-p", "workloads/none/cpu", code=1).stderr.decode()
        self.assertIn("launched no kernel, or none that passed the filters", said)
        said = self.profile("--device", "cpu", "-q", "-n", "failed", "--", "/bin/sh", "-c", "exit 3", code=3).stderr.decode()
        self.assertIn("ended before a kernel of it had finished", said)
        self.assertNotIn("opened no OpenCL device", said)
        said = self.run_command(TACHO, "analyze", "-p", "workloads/failed/cpu", code=1).stderr.decode()
        self.assertIn("ended with code 3 before a kernel was measured", said)


@unittest.skipUnless(HAVE_VIRTUAL, "this build has no Oclgrind plugin, or Oclgrind is not installed")
class Seed(Profile):
    """Every profile command of the users' document, literally, on the device that is here."""

    def setUp(self):
        super().setUp()
        (self.folder / "tests").mkdir()
        os.symlink(VCOPY, self.folder / "tests" / "occupancy")
        os.symlink(VCOPY, self.folder / "laplace_eqn")
        os.symlink(VCOPY, self.folder / "my_mpi_app")
        os.symlink(PERSONALITY, self.folder / "rocprof-compute")

    def shell(self, line, code=0, env=None):
        result = subprocess.run(["/bin/bash", "-c", line], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                                env={**os.environ, **NO_RANK, "PATH": f"{self.folder}:{os.environ['PATH']}", **(env or {})})
        self.assertEqual(result.returncode, code, f"{line}\n{result.stderr.decode()[-2000:]}")
        return result

    def test_commands(self):
        # The document's own size takes seconds each in an interpreter: once.
        first = self.shell("rocprof-compute profile --name vcopy -- ./vcopy -n 1048576 -b 256").stderr.decode()
        # The header's fields in the document's order.
        fields = [line.split(":")[0] for line in first.splitlines() if ": " in line]
        order = ["Profiler choice", "Path", "Target", "Command", "Kernel Selection", "Dispatch Selection", "Hardware Blocks"]
        self.assertEqual([f for f in fields if f in order], order)
        for line in ("Target: virtual", "Command: ./vcopy -n 1048576 -b 256", "Kernel Selection: None", "Dispatch Selection: None",
                     "Hardware Blocks: All", "Collecting Performance Counters", "~" * 32):
            self.assertIn(line + "\n", first)
        self.assertIn(f"Path: {os.path.realpath(self.folder)}/workloads/vcopy/virtual\n", first.replace(str(self.folder), os.path.realpath(self.folder)))
        self.assertIn(" [profiling] Current input file: ", first)

        small = "./vcopy -n 4096 -b 256"
        blocks = self.shell(f"rocprof-compute profile --name vcopy -b 10 7 -- {small}").stderr.decode()
        self.assertIn("Hardware Blocks: []\nReport Sections: ['10', '7']\n", blocks)
        ids = self.shell(f"rocprof-compute profile --name vcopy -b 11.1.1 12.1.1 -- {small}").stderr.decode()
        self.assertIn("Report Sections: ['11.1.1', '12.1.1']\n", ids)
        self.assertIn("11.1.1 (VALU IOPs) cannot be computed on virtual", ids)
        kernel = self.shell(f"rocprof-compute profile --name vcopy -k vecCopy -- {small}").stderr.decode()
        self.assertIn("Kernel Selection: ['vecCopy']\n", kernel)
        dispatch = self.shell(f"rocprof-compute profile --name vcopy -d 0 -- {small}").stderr.decode()
        self.assertIn("Dispatch Selection: ['0']\n", dispatch)
        chosen = self.shell(f"rocprof-compute profile --name vcopy --set compute_thruput_util -- {small}").stderr.decode()
        self.assertRegex(chosen, r"Set Selection: compute_thruput_util\nReport Sections: \['11\.2\.\d'")
        self.shell("rocprof-compute profile --list-available-metrics")
        self.shell("rocprof-compute profile --list-sets")
        self.shell("rocprof-compute profile --name occupancy --roof-only -- ./tests/occupancy -n 4096 -b 256")
        multiplexed = self.shell("rocprof-compute profile --name vcopy --iteration-multiplexing kernel -- ./vcopy -i 20 -n 4096 -b 256").stderr.decode()
        self.assertIn("Iteration multiplexing: kernel\n", multiplexed)
        self.shell("rocprof-compute profile --name my_mpi_app --iteration-multiplexing -- ./my_mpi_app -n 4096")
        self.shell("rocprof-compute profile --name my_mpi_app --set compute_thruput_util -- ./my_mpi_app -n 4096")
        self.shell("rocprof-compute profile --output-directory mpi/%env{MY_MPI_RANK}% -- ./my_mpi_app -n 4096", env={"MY_MPI_RANK": "5"})
        self.assertTrue((self.folder / "mpi" / "5" / "pmc_perf_0.csv").exists())
        wrong = self.shell("rocprof-compute profile --name my_app -- mpirun -n 4 ./my_application", code=125).stderr.decode()
        self.assertIn("must wrap the profiler", wrong)
        # torch_test.py types the lines with --torch-trace; a folder without operators says so.
        for words in ("--list-torch-operators", "--torch-operator", "--torch-operator '*conv2d' all"):
            said = self.shell(f"rocprof-compute --experimental analyze -p workloads/vcopy/virtual {words}", code=1)
            self.assertEqual((said.stdout, said.stderr.count(b"\n")), (b"", 1))
            self.assertIn(b"profile the program with --torch-trace", said.stderr)

    def test_under_mpirun(self):
        if subprocess.run(["/bin/bash", "-c", "command -v mpirun"], stdout=subprocess.DEVNULL).returncode != 0:
            self.skipTest("mpirun is not installed")
        run = "mpirun --allow-run-as-root --oversubscribe -n 2 rocprof-compute profile"
        self.shell(f"{run} --output-directory mpi_profile -- ./laplace_eqn -n 4096 -b 256")
        self.assertEqual(sorted(p.name for p in (self.folder / "mpi_profile").iterdir()), ["0", "1"])
        self.assertTrue((self.folder / "mpi_profile" / "1" / "pmc_perf_0.csv").exists())
        self.shell(f"{run} --name laplace -- ./laplace_eqn -n 4096 -b 256")
        self.assertEqual(sorted(p.name for p in (self.folder / "workloads" / "laplace").iterdir()), ["0", "1"])
        self.shell(f"{run} --output-directory mpi_two/%hostname%/%rank% -- ./laplace_eqn -n 4096 -b 256")
        self.assertEqual(sorted(p.name for p in (self.folder / "mpi_two" / os.uname().nodename).iterdir()), ["0", "1"])

    def test_a_gpu_that_cannot_be_profiled_is_no_silence(self):
        if subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("needs a mount namespace")
        node = "/sys/class/kfd/kfd/topology/nodes/1"
        inside = (f"mount -t tmpfs none /sys/class && mkdir -p {node} && echo MI300X > {node}/name && echo simd_count 1216 > {node}/properties && "
                  f"echo gfx_target_version 90402 >> {node}/properties && "
                  "rocprof-compute profile --quiet ")
        said = self.shell(f"unshare -m /bin/sh -c '{inside} --name v -- ./vcopy -n 4096'").stderr.decode()
        self.assertIn("AMD MI300X (gfx942) cannot be profiled (--device 0 says why): these are counts of the virtual GPU\n", said)
        self.assertEqual(self.shell(f"unshare -m /bin/sh -c '{inside} --name w --device virtual -- ./vcopy -n 4096'").stderr, b"")
        why = self.shell(f"unshare -m /bin/sh -c '{inside} --name w --device 0 -- ./vcopy'", code=125).stderr.decode()
        self.assertIn("its counters need AMD's rocprofiler-sdk (librocprofiler-sdk.so.1)", why)

    def test_quiet_says_nothing_of_ours(self):
        result = self.shell("rocprof-compute profile --quiet --name q -- ./vcopy -n 4096 -b 256")
        self.assertEqual(result.stderr, b"")
        self.assertEqual(result.stdout.count(b"Releasing CPU memory"), 2)  # once timed, once counted

    def test_the_bar_leaves_the_programs_lines_alone(self):
        seen = self.on_a_terminal(self.folder / "rocprof-compute", "profile", "--quiet", "--name", "bar", "--", "./vcopy", "-n", "131072", "-b", "256", "-i", "3")
        self.assertRegex(seen, rb"\r\x1b\[K *\d+% \[\|+ *\]")
        lines = subprocess.run([VCOPY, "-n", "131072", "-b", "256", "-i", "3"], stdout=subprocess.PIPE, check=True).stdout.splitlines()
        for line in lines:
            # Twice, and each time at the beginning of a line or of one that was wiped.
            self.assertEqual(len(re.findall(rb"(?:^|\n|\r\x1b\[K)" + re.escape(line) + rb"\r?\n", seen)), 2 * lines.count(line), line)


if __name__ == "__main__":
    main()
