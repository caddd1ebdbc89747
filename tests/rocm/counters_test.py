"""Counters on AMD GPUs: the values that `tacho profile` writes equal those that the bed's GPU dealt out, unit by unit (kfd/pm4.cpp). AMD's
aqlprofile writes and reads the command buffers; rocprofiler-sdk is the real one where TACHO_BED_SDK names it, else the imitation."""
import collections
import json
import re

import bed
import harness
from counting import MOST_EVENTS, Counting, rows_of
from harness import TACHO


class Counters(Counting):
    def test_every_unit_has_the_value_that_the_gpu_dealt_out(self):
        for gpu in ("gfx90a", "gfx942", "gfx950"):
            with self.subTest(gpu):
                _, ledger, folder = self.profile("-b", "2", "17", "--instances", gpu=gpu, name=gpu)
                self.assertEqual(ledger.unknown, [])
                kernels = len(ledger.kernels)
                passes = sorted(folder.glob("perfmon/*.txt"))
                self.assertEqual(kernels, 4 * len(passes))
                # The bed's lines follow one another dispatch by dispatch; each unit of a counter is read once.
                dealt = collections.Counter()
                for count in ledger.counts:
                    dealt[(count.block, count.event, count.die, max(count.engine, 0), max(count.instance, 0), count.value)] += 1
                seen = collections.Counter()
                for path in folder.glob("perfmon/*.instances.csv"):
                    for row in rows_of(path):
                        name = row["Counter_Name"]
                        # The real library adds a level's own value to its accumulator (docs/amd.md).
                        if name.endswith("_sum") or bed.has_real_sdk() and "LEVEL" in name:
                            continue
                        block, event = self.events[re.sub("_ACCUM$", "", name)]
                        if name.endswith("_ACCUM"):
                            event = {"gfx90a": 185, "gfx942": 184, "gfx950": 200}[gpu]
                        seen[(block, event, int(row["XCC"] or 0), int(row["SE"] or 0), int(row["Instance"] or 0),
                              int(float(row["Counter_Value"])))] += 1
                self.assertGreater(len(seen), 500)
                self.assertEqual(seen - dealt, collections.Counter())
                if bed.has_real_sdk():
                    continue
                # Only the counters behind the sums are not among the instances.
                summed = {self.events[name[:-4]] for path in folder.glob("*.csv") if path.name.startswith(("pmc", "SQ"))
                          for name in rows_of(path)[0] if name.endswith("_sum")}
                for block, event, *_ in dealt - seen:
                    self.assertIn((block, event), summed)

    def test_cooperative_launches_end_as_alone_and_are_not_measured(self):
        for replay in ("application", "kernel"):
            with self.subTest(replay):
                result, ledger, folder = self.profile("-b", "7.1", "--replay", replay, program=(self.program("cooperative"),), name=replay)
                told = result.stderr.decode()
                self.assertEqual(result.stdout.replace(b"0 0\n", b""), b"")
                passes = sorted(folder.glob("pmc_perf_*.csv"))
                runs = len(passes) if replay == "application" else 1
                self.assertEqual(told.count("the program launches kernels cooperatively: these are not measured"), runs, told)
                self.assertEqual([kernel.name for kernel in ledger.kernels].count("_Z8togetherPf"), runs)
                for path in passes:
                    self.assertEqual([row["Kernel_Name"] for row in rows_of(path)], ["plain(float*)"], path.name)

    def test_regions_of_the_program_hold_for_counters(self):
        """rocprofv3 --selected-regions --pmc: values of the launches that roctxProfilerResume() lets be recorded, of no others."""
        rocprofv3 = (harness.BUILD / "personalities" / "rocprofv3", "--pmc", "SQ_WAVES", "--selected-regions", "-d", self.folder)
        where = {"env": self.environment("gfx942"), "timeout": 300}
        for replay in ((), ("--pmc", "TCC_HIT_sum", "--replay-mode", "kernel", "--kernel-replay-beta-enabled")):
            name = f"r{len(replay)}"
            result, ledger = self.on_sdk(*rocprofv3, *replay, "-o", name, "--", self.program("regions"), **where)
            self.assertEqual(result.stdout, b"wrong 0\n")
            counted = collections.Counter(row["Dispatch_Id"] for row in rows_of(self.folder / f"{name}_counter_collection.csv"))
            self.assertEqual(set(counted), {"3", "4", "5"}, result.stderr)
            self.assertEqual(ledger.unknown, [])
        result, _ = self.on_sdk(*rocprofv3, "-o", "never", "--", self.program("regions"), "never", **where)
        self.assertIn("the program called no roctxProfilerResume() (--selected-regions)", " ".join(result.stderr.decode().split()))
        self.assertFalse((self.folder / "never_counter_collection.csv").exists())

    def test_a_whole_profile_is_one_that_analyze_reads_in_all_blocks(self):
        # The bed has AMD's OpenCL, too, whose imitated kernels do not show ceilings.
        result, ledger, folder = self.profile("--no-roof")
        self.assertIn(b"wrong 0", result.stdout)
        self.assertEqual(ledger.unknown, [])
        self.check_natural_values(folder, "gfx942")
        names = {path.name for path in folder.iterdir()}
        for level in ("SQ_LEVEL_WAVES", "SQ_IFETCH_LEVEL", "SQ_INST_LEVEL_LDS", "SQ_INST_LEVEL_SMEM", "SQ_INST_LEVEL_VMEM"):
            self.assertIn(f"{level}.csv", names)
            self.assertGreater(float(rows_of(folder / f"{level}.csv")[0]["SQ_ACCUM_PREV_HIRES"]), 0)
        self.assertLessEqual({"pmc_perf_0.csv", "sysinfo.csv", "timestamps.csv", "profiling_config.yaml", "log.txt"}, names)
        for path in folder.glob("pmc_perf_*.csv"):
            self.assertEqual([row["Kernel_Name"] for row in rows_of(path)], ["vecCopy", "touch(double*)"] * 2, path.name)
            self.assertTrue((folder / "perfmon" / f"{path.stem}.txt").exists())
            if not bed.has_real_sdk():
                for row in rows_of(path):
                    self.assertEqual([name for name, value in row.items() if value == ""], [], path.name)
        analysis = json.loads(self.run_command(TACHO, "analyze", "-p", folder, "--output-format", "json").stdout)
        blocks = {int(table["id"].split(".")[0]) for table in analysis["tables"] if table["rows"]}
        self.assertLessEqual({0, 1, 2, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17, 18}, blocks)
        if not bed.has_real_sdk():
            # rocprof-compute does not collect this level either, unless it is asked for.
            self.assertEqual([each["slug"] for each in analysis["not_computable"] if each["reason"] == "missing"], ["chart-l1i-latency"])
        sysinfo = rows_of(folder / "sysinfo.csv")[0]
        self.assertEqual({key: sysinfo[key] for key in ("gpu_arch", "cu_per_gpu", "se_per_gpu", "num_xcd", "total_l2_chan", "max_sclk",
                                                        "max_mclk", "max_waves_per_cu", "sqc_per_gpu", "wave_size")},
                         dict(gpu_arch="gfx942", cu_per_gpu="304", se_per_gpu="32", num_xcd="8", total_l2_chan="128", max_sclk="2100",
                              max_mclk="1300", max_waves_per_cu="32", sqc_per_gpu="160", wave_size="64"))

    def test_the_command_line_of_the_documents(self):
        program = self.program("vcopy")
        own = self.environment("gfx90a")
        link = self.folder / "rocprof-compute"
        link.symlink_to(TACHO)
        self.on_sdk(link, "profile", "--name", "vcopy", "-b", "7", "--", f"./{program.name}", "-n", "1048576", "-b", "256",
                    gpu="gfx90a", env=own, cwd=self.folder)
        self.check_natural_values(self.folder / "workloads" / "vcopy" / "MI200", "gfx90a")

    def test_the_command_lines_of_rocprof_compute_as_printed(self):
        self.program("vcopy")
        (self.folder / "train.py").write_text("print('trained')\n")
        (self.folder / "rocprof-compute").symlink_to(TACHO)
        (self.folder / "python").symlink_to("/usr/bin/python3")
        env = {**self.environment("gfx90a"), "PATH": f"{self.folder}:/usr/bin:/bin"}

        def typed(line, code=0):
            return self.on_sdk("/bin/sh", "-c", line, gpu="gfx90a", env=env, cwd=self.folder, code=code, timeout=300)

        result, _ = typed("rocprof-compute profile --name vcopy --no-roof -- ./vcopy -n 1048576 -b 256")
        self.assertIn("4 dispatches measured in", result.stderr.decode())
        folder = self.folder / "workloads" / "vcopy" / "MI200"
        for name in ("sysinfo.csv", "log.txt", "profiling_config.yaml", "timestamps.csv", "SQ_LEVEL_WAVES.csv", "perfmon"):
            self.assertTrue((folder / name).exists(), name)
        self.check_natural_values(folder, "gfx90a")
        shown = typed("rocprof-compute analyze -p workloads/vcopy/MI200/")[0].stdout.decode()
        self.assertRegex(shown, r"vecCopy")
        self.assertRegex(shown, r"18\.12\.31")
        if bed.has_real_sdk():
            return
        typed("rocprof-compute profile --name vcopy -b 10 7 -- ./vcopy -n 1048576 -b 256")
        self.check_natural_values(folder, "gfx90a")
        result, ledger = typed("rocprof-compute profile --name again -b 11.1.1 12.1.1 -- ./vcopy -n 1048576 -b 256")
        self.assertGreater(len(ledger.kernels), 0)
        # Impossible requests are refused before the program runs.
        for line, why in (
                ("profile --name r --replay cupti -- ./vcopy", "--replay cupti: AMD Instinct MI200 is no NVIDIA GPU"),
                ("profile --name r --roof-only -b 7 -- ./vcopy", "-b/--block and --roof-only cannot be used together"),
                ("profile --name r --torch-trace -- python train.py", "--torch-trace is experimental: add --experimental in front")):
            result, ledger = typed(f"rocprof-compute {line}", code=None)
            self.assertNotEqual(result.returncode, 0, line)
            self.assertIn(why, result.stderr.decode())
            self.assertEqual((result.stdout.count(b"wrong 0"), ledger.kernels), (0, []))
        result, _ = typed("rocprof-compute --experimental profile --name mnist_torch --torch-trace -b 7 -- python train.py")
        self.assertIn(b"trained", result.stdout)
        self.assertIn("the run that records PyTorch's operators left no trace", result.stderr.decode())

    def test_ceilings(self):
        """The bed's GPU executes no OpenCL kernels. One short kernel shows that: the benchmarks are not run."""
        result, ledger, folder = self.profile("--roof-only", env={"XDG_CACHE_HOME": str(self.folder)})
        self.assertRegex(result.stderr.decode(), r"tacho: no roofs: .* does not execute kernels, so it has no ceilings: chain 0")
        self.assertNotIn("not measured", result.stderr.decode())
        self.assertEqual([kernel.name for kernel in ledger.kernels if kernel.name.startswith(("dram_", "cached", "local_set"))], [])
        self.assertEqual(len([kernel for kernel in ledger.kernels if kernel.name == "vector_units"]), 1)
        self.assertFalse((folder / "roofline.csv").exists())
        self.assertTrue((folder / "pmc_perf_0.csv").exists())

    def test_filters(self):
        _, _, folder = self.profile("-b", "7.1", "-k", "touch", "-d", "1:2")
        for path in folder.glob("pmc_perf_*.csv"):
            self.assertEqual([(row["Dispatch_ID"], row["Kernel_Name"]) for row in rows_of(path)], [("1", "touch(double*)")])
        result, _, _ = self.profile("-b", "7.1", "-k", "nothing", name="none", code=None)
        self.assertIn("no kernel of that name was launched", result.stderr.decode())

    def test_several_gpus_at_once(self):
        """Kernels of all GPUs count in the same run, each on its own."""
        result, ledger, folder = self.profile("-b", "7.1", "10.1", program=(self.program("each_gpu"),), gpus=3)
        self.assertIn(b"gpus 3\nwrong 0", result.stdout)
        self.assertEqual(ledger.unknown, [])
        self.check_natural_values(folder, "gfx942")
        for path in sorted(folder.glob("pmc_perf_*.csv")):
            rows = rows_of(path)
            self.assertEqual(collections.Counter(row["GPU_ID"] for row in rows), {"0": 3, "1": 3, "2": 3}, path.name)
            for row in rows:
                self.assertEqual(int(row["Grid_Size"]), 4096 * (int(row["GPU_ID"]) + 1))

    def test_passes_take_turns_in_one_run(self):
        _, ledger, folder = self.profile("-b", "2", "7", "--iteration-multiplexing", "kernel", env={"REPEATS": "12"})
        self.assertEqual(len(ledger.kernels), 24)
        self.check_natural_values(folder, "gfx942")
        files = sorted(path for path in folder.glob("*.csv") if path.name.startswith(("pmc", "SQ")))
        self.assertGreater(len(files), 2)
        for at, path in enumerate(files):
            rows = rows_of(path)
            self.assertEqual(len(rows), 24)
            counters = [name for name in rows[0] if re.match(r"[A-Z]+_[A-Z]", name) and name not in ("Dispatch_ID",)
                        and name.split("_")[0] in MOST_EVENTS]
            filled = [row["Dispatch_ID"] for row in rows if any(row[name] != "" for name in counters)]
            self.assertEqual(len(filled), 2 * 12 // len(files) if 12 % len(files) == 0 else len(filled), path.name)
            self.assertTrue(filled, path.name)
        result, _, _ = self.profile("-b", "2", "7", "--iteration-multiplexing", env={"REPEATS": "1"}, name="few")
        self.assertRegex(result.stderr.decode(), r"vecCopy \(grid 65536x1x1, .*\): 1 dispatch of the \d+ that all passes need")

    def test_an_older_sdk(self):
        if bed.has_real_sdk():
            self.skipTest("the real library has one version")
        result, _, folder = self.profile("-b", "7.1", env={"TACHO_SDK": "abi=0.6"})
        self.check_natural_values(folder, "gfx942")
        self.assertNotIn("cannot", result.stderr.decode())
        result, _, _ = self.profile("-b", "2", "7", "--iteration-multiplexing", env={"TACHO_SDK": "abi=0.6"}, name="old", code=None)
        self.assertIn("--iteration-multiplexing needs the rocprofiler-sdk of ROCm 7 or later", result.stderr.decode())

    def test_a_program_that_fails_keeps_what_it_finished(self):
        result, _, folder = self.profile("-b", "2", code=3, env={"FAILS": "1"})
        self.assertIn("the program ended with code 3 in run 1 of", result.stderr.decode())
        self.assertEqual(len(rows_of(sorted(folder.glob("pmc_perf_*.csv"))[0] if list(folder.glob("pmc_perf_*.csv"))
                                     else sorted(folder.glob("SQ*.csv"))[0])), 4)

    def test_without_the_sdk_or_registration(self):
        result, _, _ = self.profile("-b", "7.1", "--device", "0", sdk=False, code=125)
        self.assertIn("rocprofiler-sdk", result.stderr.decode())
        self.assertIn("install the package rocprofiler-sdk, or set ROCM_PATH", result.stderr.decode())
        # Debian's HIP as it is: nobody loads the library.
        folder = self.folder / "unregistered"
        result, _ = self.on_bed("env", f"LD_LIBRARY_PATH={bed.sdk_folder()}", TACHO, "profile", "-n", "u", "--output-directory",
                                folder, "-b", "7.1", "--", self.program("vcopy"), code=None)
        self.assertIn("rocprofiler-sdk was loaded in no process", result.stderr.decode())
        self.assertIn(b"wrong 0", result.stdout)


if __name__ == "__main__":
    harness.main()
