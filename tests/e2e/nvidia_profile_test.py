"""`tacho profile` on a stand-in for an NVIDIA GPU (fake_gpu/): every "counter" depends on the memory that the kernel finds, so the
values of a launch are equal over all passes exactly when every pass saw the same memory. And what can go wrong."""
import csv
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

from harness import BUILD, SOURCE, TACHO, TARGETS, Case, main

FAKE = BUILD / "tests" / "fake_gpu"
APP = FAKE / "fake_gpu_app"
NO_RANK = {name: "" for name in ("OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "FLUX_TASK_RANK",
                                 "PALS_RANKID", "SLURM_PROCID", "MPI_RANK")}

SYS_ADMIN, PERFMON = 21, 38  # numbers of capabilities


class StandIn(Case):
    def setUp(self):
        super().setUp()
        self.log = self.folder / "cupti.log"
        self.environment = {**NO_RANK, "CUDA_HOME": str(FAKE), "LD_LIBRARY_PATH": str(FAKE / "lib64"), "FAKE_CUPTI_LOG": str(self.log)}

    def plain(self, mode, n, **env):
        return self.run_command(APP, mode, n, code=None, env={**self.environment, **env, "FAKE_CUPTI_LOG": ""}).stdout

    def profile(self, mode, n, *options, code=0, name="a", **env):
        return self.run_command(TACHO, "profile", "-q", "-n", name, "--no-roof", *options, "--", APP, mode, n, code=code,
                                env={**self.environment, **env})

    def rows(self, name="a"):
        """Rows of all passes: dictionaries with every column."""
        found = []
        for file in sorted((self.folder / "workloads" / name / "Stand-in").glob("pmc_perf_*.csv")):
            with open(file, newline="") as text:
                found += list(csv.DictReader(text))
        return found

    @staticmethod
    def counts(row):
        return {value for key, value in row.items() if "__" in key and key != "gpu__time_duration.sum"}

    def lines(self, word):
        return [line for line in self.log.read_text().splitlines() if line.startswith(word + " ")] if self.log.exists() else []

    def replayed(self, mode, n, *options, rows, **env):
        """Profiled by kernel replay, the program ends as without us and every pass of a launch saw the same memory."""
        result = self.profile(mode, n, *options, **env)
        self.assertEqual(result.stdout, self.plain(mode, n, **env))
        found = self.rows()
        self.assertEqual(len(found), rows, result.stderr)
        for row in found:
            self.assertEqual(len(self.counts(row)), 1, row)
            self.assertNotIn("", self.counts(row))
        return result, found


class Regions(StandIn):
    def test_counters_of_the_launches_that_the_program_lets_be_recorded(self):
        metric = self.run_command(TACHO, "profile", "--dry-run", "-b", "7", env=self.environment).stdout.decode()
        [name, *_] = re.findall(r"\b\w+__\w+\.sum\b", metric)
        result = self.run_command(BUILD / "personalities" / "rocprofv3", "--pmc", name, "--selected-regions", "-o", "r", "--", APP, "regions", 8,
                                  env=self.environment)
        self.assertEqual(result.stdout, self.plain("regions", 8))
        with open(self.folder / "r_counter_collection.csv", newline="") as text:
            self.assertEqual([row["Dispatch_Id"] for row in csv.DictReader(text)], ["3", "4", "5"], result.stderr)

    def test_several_pmc_with_kernel_replay_are_passes_of_one_run(self):
        first, second = "sm__inst_executed.sum", "lts__t_sectors.sum"
        replay = ("--replay-mode", "kernel", "--kernel-replay-beta-enabled")
        for words, ids in ((("regions", 8, "--selected-regions"), ["3", "4", "5"]), (("loop", 4), ["1", "2", "3", "4"])):
            mode, n, *more = words
            result = self.run_command(BUILD / "personalities" / "rocprofv3", "--pmc", first, "--pmc", second, first, *replay, *more, "-o", mode, "--",
                                      APP, mode, n, env=self.environment)
            self.assertEqual(result.stdout, self.plain(mode, n), "the program ran once, and its memory was put back")
            with open(self.folder / f"{mode}_counter_collection.csv", newline="") as text:
                rows = list(csv.DictReader(text))
            for name in (first, second):
                self.assertEqual([row["Dispatch_Id"] for row in rows if row["Counter_Name"] == name], ids, result.stderr)
            self.assertNotIn("NaN", "".join(row["Counter_Value"] for row in rows))
            self.assertNotIn(b"the program runs", result.stderr)

    def test_counters_of_links_are_a_run_of_their_own_and_said(self):
        result = self.run_command(BUILD / "personalities" / "rocprofv3", "--pmc", "sm__inst_executed.sum", "--pmc", "pcie__read_bytes.sum",
                                  "--replay-mode", "kernel", "--kernel-replay-beta-enabled", "-o", "r", "--", APP, "loop", 4, env=self.environment)
        self.assertEqual(result.stdout, self.plain("loop", 4) * 2)
        self.assertIn("exclude each other; the program runs 2 times", " ".join(result.stderr.decode().split()))

    def test_a_program_that_never_lets_it_be_on(self):
        result = self.run_command(BUILD / "personalities" / "rocprofv3", "--pmc", "sm__inst_executed.sum", "--selected-regions", "-o", "r", "--",
                                  APP, "loop", 4, env=self.environment)
        self.assertIn("the program called no roctxProfilerResume() (--selected-regions)", " ".join(result.stderr.decode().split()))


class KernelReplay(StandIn):
    def test_batches(self):
        _, rows = self.replayed("loop", 40, "-b", "7", rows=40)
        self.assertEqual([int(row["Dispatch_ID"]) for row in rows], list(range(40)))
        self.assertGreater(len({self.counts(row).pop() for row in rows}), 35)  # memory changes from launch to launch
        # Two passes, 32 launches in a batch (a sweep before each), copies to the host in between end none.
        self.assertEqual(self.lines("stop"), ["stop 64", "stop 64", "stop 16", "stop 16"])
        self.assertEqual(len(self.lines("set")), 2)

    def test_a_librarys_kernel_has_its_registers(self):
        _, rows = self.replayed("loop", 4, "-b", "7", rows=4)
        self.assertEqual({(row["Kernel_Name"].split("(")[0], row["Arch_VGPR"], row["Scratch_Per_Workitem"]) for row in rows},
                         {("add", "40", "16")})

    def test_the_kernel_driver_empties_the_cache(self):
        result, _ = self.replayed("loop", 40, "-b", "7", rows=40, FAKE_GPU_FLUSHES="1")
        self.assertEqual(self.lines("stop"), ["stop 40", "stop 40"])  # nothing but launches are ranges
        self.assertNotIn(b"swept", result.stderr)

    def test_a_kernel_driver_that_only_says_so(self):
        result, _ = self.replayed("loop", 40, "-b", "7", rows=40, FAKE_GPU_FLUSHES="2")
        self.assertEqual(self.lines("stop"), ["stop 64", "stop 64", "stop 16", "stop 16"])
        self.assertEqual(result.stderr.count(b"the kernel driver does not empty the L2 here: it is swept"), 1)

    def test_without_sweeps(self):
        self.replayed("loop", 70, "-b", "7", "--cache-control", "none", rows=70)
        self.assertEqual(self.lines("stop"), ["stop 64", "stop 64", "stop 6", "stop 6"])

    def test_the_program_changes_memory_itself(self):
        self.replayed("changing", 6, "-b", "7", rows=6)
        self.assertEqual(len(self.lines("start")), 12)

    def test_variables_of_modules(self):
        self.replayed("global", 10, "-b", "7", rows=10)

    def test_managed_variables_of_modules(self):
        self.replayed("counts", 6, "-b", "7", rows=6)
        self.assertEqual(self.lines("stop"), ["stop 2"] * 12)  # each is its own batch, with a sweep

    def test_memory_that_the_host_writes_too(self):
        self.replayed("managed", 6, "-b", "7", rows=6)
        shutil.rmtree(self.folder / "workloads")
        self.replayed("host", 6, "-b", "7", rows=6)

    def test_filtered_kernels_in_between(self):
        _, rows = self.replayed("mixed", 40, "-b", "7", "-k", "add", rows=20)
        self.assertEqual({row["Kernel_Name"].split("(")[0] for row in rows}, {"add"})
        self.assertEqual(len(self.lines("set")), 1)  # they are let through, which costs less than ending a batch

    def test_chosen_dispatches(self):
        _, rows = self.replayed("loop", 40, "-b", "7", "-d", "3:7", rows=5)
        self.assertEqual([int(row["Dispatch_ID"]) for row in rows], [3, 4, 5, 6, 7])

    def test_launches_into_a_capture_do_not_run(self):
        _, rows = self.replayed("capture", 6, "-b", "7", rows=6)
        self.assertEqual([int(row["Dispatch_ID"]) for row in rows], list(range(6)))

    def test_graphs_are_measured_as_a_whole(self):
        result, rows = self.replayed("graph", 7, "-b", "7", rows=7)
        self.assertEqual([row["Kernel_Name"].split("(")[0] for row in rows], ["add", "CUDA graph"] * 3 + ["add"])
        self.assertEqual(self.lines("push"), ["push 0", "push 1"] * 3)
        self.assertNotIn(b"no longer collected", result.stderr)

    def test_graphs_that_change_variables(self):
        for mode in ("graph-global", "graph-nodes"):
            shutil.rmtree(self.folder / "workloads", ignore_errors=True)
            _, rows = self.replayed(mode, 8, "-b", "7", rows=8)
            self.assertEqual(len({row[next(key for key in row if key.startswith("smsp__"))] for row in rows}), 8)

    def test_a_graph_that_fails_when_run_again_leaves_memory_alone(self):
        result = self.profile("graph", 9, "-b", "7", FAKE_GPU_GRAPH_FAILS="1")
        self.assertEqual(result.stdout, self.plain("graph", 9))
        self.assertIn(b"CUDA graphs are not measured: a kernel cannot be launched again (CUDA error 719)", result.stderr)
        self.assertEqual({row["Kernel_Name"].split("(")[0] for row in self.rows()}, {"add"})

    def test_graphs_in_one_pass(self):
        for mode in ("graph", "graph-global"):
            self.log.unlink(missing_ok=True)
            shutil.rmtree(self.folder / "workloads", ignore_errors=True)
            self.replayed(mode, 6, "--set", "launch_stats", rows=6, FAKE_CUPTI_WIDTH="64")
            self.assertEqual(len(self.lines("push")), 3)

    def test_graphs_where_they_cannot_be_measured(self):
        for name, options in (("a", ["--replay", "cupti"]), ("b", ["--iteration-multiplexing"])):
            result = self.profile("graph", 40, "-b", "7", *options, name=name)
            self.assertEqual(result.stdout, self.plain("graph", 40))
            self.assertEqual(result.stderr.count(b"CUDA graphs are not measured: "), 1, result.stderr)
            self.assertNotIn(b"no longer collected", result.stderr)
            self.assertEqual({row["Kernel_Name"].split("(")[0] for row in self.rows(name)}, {"add"})

    def test_two_gpus_in_turn(self):
        _, rows = self.replayed("two", 6, "-b", "7", rows=6, FAKE_GPU_COUNT="2")
        self.assertEqual([row["GPU_ID"] for row in rows], ["0", "1", "0", "1", "0", "1"])
        self.log.unlink()
        shutil.rmtree(self.folder / "workloads")
        self.replayed("two", 6, "--set", "launch_stats", rows=6, FAKE_GPU_COUNT="2", FAKE_CUPTI_WIDTH="64")
        self.assertEqual(self.lines("stop"), ["stop 3", "stop 3"])  # a session on each, side by side
        for name, options, launches in (("b", ["--replay", "application"], 6), ("c", ["--iteration-multiplexing"], 200)):
            self.profile("two", launches, "-b", "7", *options, name=name, FAKE_GPU_COUNT="2")
            rows = self.rows(name)
            self.assertEqual({row["GPU_ID"] for row in rows}, {"0", "1"})
            self.assertFalse([row for row in rows if "" in self.counts(row)])

    def test_two_contexts_of_one_gpu_in_turn(self):
        self.replayed("contexts", 6, "-b", "7", rows=6)
        shutil.rmtree(self.folder / "workloads")
        self.replayed("contexts", 6, "--set", "launch_stats", rows=6, FAKE_CUPTI_WIDTH="64")

    def test_a_gpu_without_values_is_named(self):
        result = self.profile("two", 6, "-b", "7", FAKE_GPU_COUNT="2", FAKE_CUPTI_EMPTY="1")
        self.assertRegex(result.stderr.decode(), r"GPU 1: CUPTI gave no value of \d+ of the \d+ counters for 3 of 3 dispatches")
        self.assertNotIn(b"GPU 0: CUPTI", result.stderr)

    def test_arrays_are_left_to_cupti(self):
        result, _ = self.replayed("array", 5, "-b", "7", rows=5)
        self.assertIn(b"one by one by CUPTI from here on: the program uses arrays", result.stderr)

    def test_little_memory_on_the_gpu(self):
        # Room for the program's two buffers of 4000 bytes and nothing of ours: no sweep, copies in host memory.
        self.replayed("loop", 10, "-b", "7", rows=10, FAKE_GPU_MEMORY="12000")

    def test_cuptis_own_replay(self):
        self.replayed("loop", 20, "-b", "7", "--replay", "cupti", rows=20)
        self.assertEqual(self.lines("stop"), ["stop 16", "stop 4"])
        self.one_sentence(self.profile("loop", 1, "--replay", "cupti", "--cache-control", "all", code=125), "CUPTI's own replay")

    def test_ranges_that_are_no_launches(self):
        # Ranges that the library counts beside launches would shift everything: the batch is dropped, CUPTI replays the rest.
        result = self.profile("changing", 6, "-b", "7", FAKE_CUPTI_EXTRA="1")
        self.assertEqual(result.stdout, self.plain("changing", 6))
        self.assertRegex(result.stderr.decode(), r"one by one by CUPTI from here on: CUPTI counted \d+ ranges for \d+ launches")
        self.assertRegex(result.stderr.decode(), "1 batches of launches could not be run again")
        rows = self.rows()
        self.assertEqual([int(row["Dispatch_ID"]) for row in rows], [1, 2, 3, 4, 5])

    def test_one_pass_is_one_session(self):
        _, rows = self.replayed("loop", 300, "--set", "launch_stats", rows=300, FAKE_CUPTI_WIDTH="64")
        self.assertEqual(self.lines("stop"), ["stop 256", "stop 44"])
        self.assertTrue(all(float(row["gpu__time_duration.sum"]) == 1000 for row in rows))

    def test_one_pass_with_sweeps(self):
        self.replayed("loop", 10, "--set", "launch_stats", "--cache-control", "all", rows=10, FAKE_CUPTI_WIDTH="64")
        self.assertEqual(self.lines("stop"), ["stop 20"])

    def test_sweeps_need_kernel_replay(self):
        self.one_sentence(self.profile("loop", 1, "--cache-control", "all", "--iteration-multiplexing", code=125), "--cache-control all")
        self.one_sentence(self.profile("loop", 1, "--cache-control", "all", "--replay", "application", code=125), "--cache-control all")


class OtherWays(StandIn):
    def test_a_plan_tells_how_often_kernels_run(self):
        plan = self.run_command(TACHO, "profile", "--dry-run", "-b", "2", env=self.environment).stdout.decode()
        total = int(re.match(r"Stand-in: \d+ metrics, \d+ counters, (\d+) passes\n", plan).group(1))
        self.assertEqual([int(n) for n in re.findall(r"^pmc_perf_\d+ \(\d+ counters, (\d+) executions", plan, re.M)], [total])
        self.assertGreater(total, 5)
        run = self.run_command(TACHO, "profile", "-n", "a", "--no-roof", "-b", "2", "--", APP, "loop", 2, env=self.environment).stderr.decode()
        self.assertIn(f"metrics in {total} passes", run)
        self.assertEqual(run.count("Replay: kernel, each kernel is run again"), 1)
        self.assertEqual(run.count("Kernels are serialized"), 1)
        self.assertIn('"replay": "kernel"', (self.folder / "workloads" / "a" / "Stand-in" / "profiling_config.yaml").read_text())
        spread = self.run_command(TACHO, "profile", "-n", "b", "--no-roof", "-b", "2", "--iteration-multiplexing", "--", APP, "loop", 2,
                                  env=self.environment).stderr.decode()
        self.assertNotIn("nothing to spread", spread)

    def test_application_replay(self):
        result = self.profile("loop", 10, "-b", "7", "--replay", "application")
        self.assertEqual(result.stdout, self.plain("loop", 10) * 2)
        rows = self.rows()
        self.assertEqual(len(rows), 10)
        self.assertTrue(all(len(self.counts(row)) == 1 for row in rows))

    def test_gpus_in_another_order_in_the_next_run(self):
        self.profile("turned", 6, "-b", "7", "--replay", "application", FAKE_GPU_COUNT="2")
        rows = self.rows()
        self.assertEqual([row["GPU_ID"] for row in rows], ["0", "1", "0", "1", "0", "1"])
        for row in rows:
            self.assertEqual(len(self.counts(row)), 1, row)
            self.assertNotIn("", self.counts(row))

    def test_multiplexing(self):
        result = self.profile("loop", 200, "-b", "7", "--iteration-multiplexing")
        self.assertEqual(result.stdout, self.plain("loop", 200))
        rows = self.rows()
        self.assertGreaterEqual(len(rows), 8)
        self.assertTrue(all("" not in self.counts(row) for row in rows))
        report = self.run_command(TACHO, "analyze", "-p", "workloads/a/Stand-in")
        self.assertRegex((report.stdout + report.stderr).decode(), rf"of the {len(rows)} dispatches that were measured, of 200 \(run 1\)")

    def test_too_few_launches_for_multiplexing(self):
        result = self.profile("mixed", 6, "-b", "2", "--iteration-multiplexing")
        self.assertRegex(result.stderr.decode(), r"add.*: 3 launches are too few for \d+ passes \(\d+ are always enough\); lost for it: \w+__")


class ExactCounts(StandIn):
    STORES = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"

    def test_counts_that_vary_are_marked_everywhere(self):
        # The stand-in's counts differ from launch to launch, as extrapolated ones do.
        result = self.profile("loop", 20, "-b", "16")
        self.assertRegex(result.stderr.decode(), r"\d+ of \d+ counts differ between equal launches, so CUPTI extrapolated them")
        self.assertIn(b"--exact counts them whole", result.stderr)
        folder = self.folder / "workloads" / "a" / "Stand-in"
        listed = (folder / "perfmon" / "pmc_perf_0.yaml").read_text().split("extrapolated:\n")[1].splitlines()
        self.assertIn("  - " + self.STORES, listed)
        self.assertNotIn("  - gpu__time_duration.sum", listed)
        shown = self.run_command(TACHO, "analyze", "-p", folder, "-b", "16").stdout.decode()
        self.assertRegex(shown, r"Global store sectors ~ ")
        self.assertIn("~ rests on a count that was extrapolated", shown)
        document = json.loads(self.run_command(TACHO, "analyze", "-p", folder, "--output-format", "json").stdout)
        marked = {row["slug"] for table in document["tables"] for row in table["rows"] if row.get("extrapolated")}
        self.assertIn("l1-global-store-sectors", marked)
        self.assertNotIn("l1-global-load-hit-rate", marked)

    def test_exact_counts_have_passes_of_their_own(self):
        self.profile("loop", 4, "-b", "16")
        self.profile("loop", 4, "-b", "16", "--exact", name="whole")
        plain, exact = (sorted((self.folder / "workloads" / name / "Stand-in" / "perfmon").glob("*.yaml")) for name in ("a", "whole"))
        self.assertGreater(len(exact), len(plain))
        [own] = [path.read_text() for path in exact if f"- {self.STORES}\n" in path.read_text()]
        self.assertIn("passes: 1\n", own)
        self.assertIn("exact: true\n", own)
        self.assertNotIn("l1tex__t_requests", own)
        self.assertIn(self.STORES, self.rows("whole")[-1].keys() | {key for row in self.rows("whole") for key in row})
        refused = self.profile("loop", 4, "-b", "16", "--exact", "--iteration-multiplexing", code=125)
        self.assertIn(b"--iteration-multiplexing and --exact cannot be used together", refused.stderr)


class Faults(StandIn):
    def test_runs_that_launch_other_kernels(self):
        result = self.profile("uneven", 10, "-b", "7", "--replay", "application")
        self.assertIn(b"run 2 launched 11 kernels, the first run 10", result.stderr)
        self.assertEqual(self.rows(), [])

    def test_collectives_are_not_run_again(self):
        # Other ranks wait in a collective as often as the program launches it, and no oftener: a replay would hang.
        for options in ((), ("--replay", "cupti")):
            result = self.profile("nccl", 30, "-b", "7", "--overwrite", *options)
            self.assertEqual(result.stdout, self.plain("nccl", 30))
            self.assertIn(b"10 launches of collectives (ncclDevKernel_AllReduce_Sum_f32_RING_LL) are not measured: run again, they would wait for ranks",
                          result.stderr)
            rows = self.rows()
            self.assertEqual({row["Kernel_Name"].split("(")[0] for row in rows}, {"add"})
            self.assertEqual(len(rows), 20)
        # A filter between them changes nothing, and tacho says nothing about kernels that were not selected.
        said = self.profile("nccl", 30, "-b", "7", "-k", "add", "--overwrite").stderr
        self.assertNotIn(b"collectives", said)
        # One pass runs nothing again; multiplexing measures them.
        self.profile("nccl", 30, "--set", "compute_thruput_util", "--overwrite")
        result = self.profile("nccl", 300, "-b", "7", "--iteration-multiplexing", "--overwrite")
        self.assertNotIn(b"collectives", result.stderr)
        self.assertTrue(any("ncclDevKernel" in row["Kernel_Name"] for row in self.rows()), result.stderr)

    def test_mpi_ends_application_replay(self):
        # Under a launcher a rank can call MPI_Init once: the second run is not made, the first pass stays.
        if shutil.which("mpirun.openmpi") is None or shutil.which("mpicc.openmpi") is None:
            self.skipTest("no Open MPI (Debian packages openmpi-bin, libopenmpi-dev)")
        source, program, script = self.folder / "once.c", self.folder / "once", self.folder / "job.sh"
        source.write_text("#include <mpi.h>\nint main(int argc, char** argv) { MPI_Init(&argc, &argv); MPI_Finalize(); }\n")
        subprocess.run(["mpicc.openmpi", source, "-o", program], check=True)
        launch = ("mpirun.openmpi", "--allow-run-as-root", "-n", "1", TACHO, "profile", "-q", "-n", "a", "--no-roof", "-b", "7", "--replay", "application")
        for calls, runs in ((f"{program}\n", 1), ("", 2)):
            script.write_text(f"#!/bin/sh\n{calls}echo ran >> runs\nexec {APP} loop 10\n")
            script.chmod(0o755)
            said = self.run_command(*launch, "--overwrite", "--", script, env=self.environment)
            self.assertEqual((self.folder / "runs").read_text(), "ran\n" * runs, said.stderr)
            (self.folder / "runs").unlink()
            self.assertIn(b"would be run 2 times, and one that calls MPI_Init can be run once only", said.stderr)
            self.assertEqual(b"stopped after run 1 of 2, whose counters are kept; --iteration-multiplexing counts all in one run, --set NAME a few"
                             in said.stderr, runs == 1, said.stderr)
            found = []
            for file in sorted((self.folder / "workloads" / "a" / "0").glob("pmc_perf_*.csv")):
                with open(file, newline="") as text:
                    found += list(csv.DictReader(text))
            self.assertEqual(len(found), 10)
            self.assertTrue(all(("" in self.counts(row)) == (runs == 1) for row in found), found[0])
            self.run_command(TACHO, "analyze", "-p", "workloads/a/0")
        # Without a launcher each run is its own job.
        script.write_text(f"#!/bin/sh\n{program}\necho ran >> runs\nexec {APP} loop 10\n")
        self.run_command(TACHO, "profile", "-q", "-n", "b", "--no-roof", "-b", "7", "--replay", "application", "--", script, env=self.environment)
        self.assertEqual((self.folder / "runs").read_text(), "ran\n" * 2)

    def test_a_crash_in_a_later_run(self):
        # The second run of the program crashes at its sixth launch: the first pass stays, for all ten.
        script = self.folder / "twice.sh"
        script.write_text(f"#!/bin/sh\n[ -e ran ] && export FAKE_GPU_CRASH=6\ntouch ran\nexec {APP} crashing 10\n")
        script.chmod(0o755)
        result = self.run_command(TACHO, "profile", "-q", "-n", "a", "--no-roof", "-b", "7", "--replay", "application", "--", script,
                                  code=134, env=self.environment)
        self.assertIn(b"pass 2 of 2 is not whole, the passes before it are kept", result.stderr)
        self.assertNotIn(b"CUPTI gave no value", result.stderr)  # it was the crash
        rows = self.rows()
        self.assertEqual(len(rows), 10)
        self.assertTrue(all(len(self.counts(row) - {""}) == 1 for row in rows))
        self.assertTrue(all("" in self.counts(row) for row in rows))
        self.run_command(TACHO, "analyze", "-p", "workloads/a/Stand-in")

    def test_a_crash_keeps_whole_batches(self):
        result = self.profile("crashing", 60, "-b", "7", code=134, FAKE_GPU_CRASH="80")
        self.assertIn(b"ended with code 134", result.stderr)
        self.assertIn(b"launches before the end have no values", result.stderr)
        self.assertEqual(len(self.rows()), 32)

    def test_killed_and_interrupted(self):
        for number, code in ((signal.SIGKILL, 137), (signal.SIGINT, 130)):
            name = f"by{int(number)}"
            process = subprocess.Popen([TACHO, "profile", "-q", "-n", name, "--no-roof", "-b", "7", "--", APP, "hang", "40"], cwd=self.folder,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **self.environment})
            self.assertTrue(process.stdout.readline().startswith(b"hang 40"))
            self.assertEqual(process.stdout.readline(), b"ready\n")
            if number == signal.SIGKILL:
                children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
                os.kill(int(children[0]), number)
            else:
                process.send_signal(number)
            _, error = process.communicate(timeout=60)
            self.assertEqual(process.returncode, code, error)
            self.assertEqual(len(self.rows(name)), 32, error)

    def test_leaves_without_exit_handlers(self):
        self.profile("exit", 7, "-b", "7", code=7)
        self.assertEqual(len(self.rows()), 7)

    def test_another_profiler(self):
        result = self.profile("loop", 5, "-b", "7", FAKE_CUPTI_REFUSES="39")
        self.assertEqual(result.stdout, self.plain("loop", 5))
        self.assertIn(b"another profiler uses CUPTI", result.stderr)
        self.assertNotIn(b"started no CUDA driver", result.stderr)

    def test_no_permission(self):
        result = self.profile("loop", 5, "-b", "7", FAKE_CUPTI_FAILS="enable:35")
        self.assertEqual(result.stdout, self.plain("loop", 5))
        self.assertIn(b"only administrators", result.stderr)

    def settings(self, text):
        """The environment of a machine on which the driver has these settings."""
        (self.folder / "params").write_text(text)
        return {"LD_PRELOAD": str(TARGETS / "nvidia_params.so"), "NVIDIA_PARAMS": str(self.folder / "params")}

    @staticmethod
    def without(*capabilities):
        """For preexec_fn: the started program has none of them."""
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        drop_from_bounding_set = 24

        def drop():
            for capability in capabilities if os.geteuid() == 0 else ():
                if prctl(drop_from_bounding_set, capability, 0, 0, 0) != 0:
                    raise OSError(ctypes.get_errno(), "prctl")
        return drop

    def test_no_permission_is_known_before_anything_is_removed(self):
        self.profile("loop", 3, "-b", "7")
        files = {path: path.read_bytes() for path in (self.folder / "workloads").rglob("*") if path.is_file()}
        self.log.write_text("")
        env = {**self.environment, **self.settings("ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n")}
        command = [TACHO, "profile", "-q", "-n", "a", "--no-roof", "-b", "7", "--overwrite", "--", APP, "loop", 3]
        result = self.run_command(*command, code=125, env=env, preexec_fn=self.without(SYS_ADMIN, PERFMON))
        self.one_sentence(result, "only administrators", "ERR_NVGPUCTRPERM")
        self.assertEqual(result.stdout, b"")
        self.assertEqual({path: path.read_bytes() for path in (self.folder / "workloads").rglob("*") if path.is_file()}, files)
        self.assertEqual(self.log.read_text(), "")
        result = self.run_command(*command[:4], "new", *command[5:], code=125, env=env, preexec_fn=self.without(SYS_ADMIN, PERFMON))
        self.assertFalse((self.folder / "workloads" / "new").exists())
        # A plan needs no permission.
        self.run_command(TACHO, "profile", "--dry-run", "-b", "7", env=env, preexec_fn=self.without(SYS_ADMIN, PERFMON))

    def test_permission(self):
        if os.geteuid() == 0:
            admins_only = self.settings("RmProfilingAdminOnly: 1\n")
            self.run_command(TACHO, "profile", "-q", "-n", "root", "--no-roof", "-b", "7", "--", APP, "loop", 3,
                             env={**self.environment, **admins_only}, preexec_fn=self.without(PERFMON))
            self.assertEqual(len(self.rows("root")), 3)
        everybody = self.settings("RmProfilingAdminOnly: 0\n")
        self.run_command(TACHO, "profile", "-q", "-n", "user", "--no-roof", "-b", "7", "--", APP, "loop", 3,
                         env={**self.environment, **everybody}, preexec_fn=self.without(SYS_ADMIN, PERFMON))
        self.assertEqual(len(self.rows("user")), 3)

    def test_cupti_fails_on_the_way(self):
        for function in ("set", "start", "stop", "decode"):
            result = self.profile("loop", 5, "-b", "7", name=function, FAKE_CUPTI_FAILS=f"{function}:999")
            self.assertEqual(result.stdout, self.plain("loop", 5), function)
            self.assertIn(b"counters are no longer collected", result.stderr)
            self.assertEqual(self.rows(function), [])

    def test_something_else_holds_the_counters(self):
        result = self.profile("loop", 5, "-b", "7", FAKE_CUPTI_FAILS="start:26")
        self.assertEqual(result.stdout, self.plain("loop", 5))
        self.assertIn(b"cannot be counted on: something else holds its counters (Nsight Systems or Compute, DCGM's profiling, another tacho): end that", result.stderr)
        self.assertIn(b"none of the program's launches has values\n", result.stderr)
        self.assertEqual(self.rows(), [])

    def test_cupti_fails_on_one_of_two_gpus(self):
        # The values that the other GPU's session had measured until then are kept, and the session ends.
        result = self.profile("two", 6, "--set", "launch_stats", FAKE_GPU_COUNT="2", FAKE_CUPTI_WIDTH="64", FAKE_CUPTI_FAILS="enable:999",
                              FAKE_CUPTI_FAILS_ON="1")
        self.assertEqual(result.stdout, self.plain("two", 6, FAKE_GPU_COUNT="2"))
        self.assertIn(b"counters are no longer collected", result.stderr)
        self.assertEqual(self.lines("stop"), ["stop 1"])
        self.assertEqual([(row["GPU_ID"], "" in self.counts(row)) for row in self.rows()], [("0", False)])

    def test_no_kernel_at_all(self):
        self.assertIn(b"launched no kernel", self.profile("none", 1, "-b", "7").stderr)

    def test_nothing_passes_the_filter(self):
        self.assertIn(b"did you mean add", self.profile("loop", 5, "-b", "7", "-k", "ad_").stderr)
        self.assertIn(b"launched 5, numbered from 0", self.profile("loop", 5, "-b", "7", "-d", "9", name="b").stderr)

    def test_what_the_gpu_does_not_have(self):
        self.one_sentence(self.profile("loop", 1, "-b", "99", code=125), "99")
        self.one_sentence(self.profile("loop", 1, "-b", "no-such-metric", code=125), "no-such-metric")
        self.one_sentence(self.profile("loop", 1, "--set", "nothing", code=125), "nothing", "compute_thruput_util")


class Samples(StandIn):
    def setUp(self):
        super().setUp()
        # A CUDA installation with a disassembler.
        home = self.folder / "cuda"
        (home / "bin").mkdir(parents=True)
        (home / "lib64").symlink_to(FAKE / "lib64")
        tool = home / "bin" / "cuobjdump"
        tool.write_text("#!/bin/sh\nprintf '\\t\\tFunction : _Z3addPiPKii\\n        /*0000*/    LDG.E R2, [R4.64] ;   /* 0x01 */\\n"
                        "        /*0010*/    EXIT ;   /* 0x02 */\\n'\n")
        tool.chmod(0o755)
        self.environment["CUDA_HOME"] = str(home)

    def samples(self):
        with open(self.folder / "workloads" / "a" / "Stand-in" / "ps_file_pc_sampling_stochastic.csv", newline="") as file:
            return list(csv.DictReader(file))

    def test_instructions_lines_and_reasons(self):
        result = self.profile("mixed", 10, "-b", "21")
        self.assertEqual(result.stdout, self.plain("mixed", 10) * 2)  # the launches with their times, then the samples
        self.assertEqual(len(self.rows()), 10)
        self.assertEqual(result.stderr, b"tacho: some instructions have no source line: compile with nvcc -lineinfo\n")
        rows = {(row["Instruction"], row["Stall_Reason"]): row for row in self.samples()}
        load = "/*0000*/ LDG.E R2, [R4.64]"
        self.assertEqual(rows[load, "long_scoreboard"]["Samples"], "10")
        self.assertEqual(rows[load, "long_scoreboard"]["Instruction_Comment"], "app.cu:42")
        self.assertEqual((rows[load, ""]["Samples"], rows[load, ""]["Wave_Issued_Instruction"]), ("5", "1"))
        self.assertEqual(rows["/*0010*/ EXIT", ""]["Samples"], "5")
        self.assertEqual(rows["/*0000*/", ""]["Samples"], "5")  # of `empty`, which the disassembler does not know
        report = self.run_command(TACHO, "analyze", "-p", "workloads/a/Stand-in", "-b", "21").stdout.decode()
        self.assertIn("LDG.E R2", report)
        self.assertRegex(report, r"long\s+scoreboard\s+67 %")  # in lines, the table is as wide as the terminal
        self.assertIn("app.cu:42", report)

    def test_source_lines_are_kept(self):
        sources = self.folder / "sources"
        sources.mkdir()
        (sources / "app.cu").write_text("".join(f'line, "{n}"\n' for n in range(1, 46)))
        kept = self.folder / "workloads" / "a" / "Stand-in" / "ps_file_sources.csv"
        self.profile("mixed", 10, "-b", "21", "--no-source", FAKE_CUPTI_SOURCES=str(sources))
        self.assertFalse(kept.exists())
        self.profile("mixed", 10, "-b", "21", "--overwrite", FAKE_CUPTI_SOURCES=str(sources))
        with open(kept, newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(row["File"], row["Line"], row["Text"]) for row in rows],
                         [("app.cu", str(n), f'line, "{n}"') for n in range(36, 46)])  # 42 and 43 with six around each, to the end
        self.profile("mixed", 10, "-b", "21", "--overwrite")  # /src/app.cu is not there
        self.assertFalse(kept.exists())

    def test_beside_counters(self):
        self.assertEqual(self.profile("mixed", 10, "-b", "7", "21").stdout, self.plain("mixed", 10) * 2)  # in its own run
        self.assertEqual(len(self.rows()), 10)
        self.assertEqual(sum(int(row["Samples"]) for row in self.samples()), 40)
        self.profile("mixed", 10, "-b", "7", "--pc-sampling", "--overwrite")
        self.assertEqual(len(self.rows()), 10)
        self.assertEqual(sum(int(row["Samples"]) for row in self.samples()), 40)

    def test_ranks_of_mpi(self):
        if shutil.which("mpirun.openmpi") is None or shutil.which("mpicc.openmpi") is None:
            self.skipTest("no Open MPI (Debian packages openmpi-bin, libopenmpi-dev)")
        source, program, script = self.folder / "once.c", self.folder / "once", self.folder / "job.sh"
        source.write_text("#include <mpi.h>\nint main(int argc, char** argv) { MPI_Init(&argc, &argv); MPI_Finalize(); }\n")
        subprocess.run(["mpicc.openmpi", source, "-o", program], check=True)
        for calls, runs in ((f"{program}\n", 1), ("", 2)):
            script.write_text(f"#!/bin/sh\n{calls}echo ran >> runs\nexec {APP} mixed 10\n")
            script.chmod(0o755)
            said = self.run_command("mpirun.openmpi", "--allow-run-as-root", "-n", "1", TACHO, "profile", "-q", "-n", "a", "--no-roof", "-b", "7", "21",
                                    "--overwrite", "--", script, env=self.environment)
            self.assertEqual((self.folder / "runs").read_text(), "ran\n" * runs, said.stderr)
            (self.folder / "runs").unlink()
            self.assertIn(b"PC sampling (block 21) may fail to collect data of ranks that communicate by MPI", said.stderr)
            self.assertEqual(b"the run that takes PC samples is not made; take them without the launcher" in said.stderr, runs == 1, said.stderr)
            samples = self.folder / "workloads" / "a" / "0" / "ps_file_pc_sampling_stochastic.csv"
            self.assertEqual(samples.exists(), runs == 2)
        self.assertNotIn(b"PC sampling (block 21) may fail", self.profile("mixed", 10, "-b", "21", name="b").stderr)

    def test_filter_and_second_run(self):
        self.profile("mixed", 10, "-b", "21", "-k", "add")
        self.assertEqual(sum(int(row["Samples"]) for row in self.samples()), 20)
        self.one_sentence(self.profile("mixed", 10, "-b", "21", code=125), "ps_file_pc_sampling_stochastic.csv", "--overwrite")
        self.profile("mixed", 10, "-b", "21", "--overwrite")
        self.assertEqual(sum(int(row["Samples"]) for row in self.samples()), 40)

    def test_not_allowed(self):
        result = self.profile("loop", 4, "-b", "21", FAKE_CUPTI_FAILS="sampling:35")
        self.assertIn(b"only administrators", result.stderr)


class OurKernels(Case):
    def test_they_assemble(self):
        assembler = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
        if not os.access(assembler, os.X_OK):
            self.skipTest("no ptxas on this machine")
        text = (SOURCE / "src" / "capture" / "source" / "cuda" / "counter" / "kernels.h").read_text()
        (self.folder / "kernels.ptx").write_text(text.split('R"(')[1].split(')";')[0])
        for architecture in ("sm_80", "sm_90", "sm_100"):
            self.run_command(assembler, f"-arch={architecture}", "-o", "kernels.cubin", "kernels.ptx")


if __name__ == "__main__":
    main()
