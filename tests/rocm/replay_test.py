"""Kernel replay on AMD GPUs (`tacho profile --replay kernel`): each launch is measured in all passes, what it counts is what the bed
dealt out for it, and the program's results are those that it has alone. programs/replay.hip changes its memory in place."""
import collections
import json
import re

import bed
import harness
from counting import Counting, rows_of
from harness import TACHO

BLOCKS = ("-b", "7", "10")  # five passes of gfx942
OWN = ("?", "__amd_rocclr_copyBuffer")


def runs_of(ledger):
    """How often the GPU ran each of the program's kernels."""
    return {name: count for name, count in ledger.names().items() if name not in OWN}


class Replay(Counting):
    def replayed(self, scene, *more, compiled=(), **where):
        """A scene's profile; its output is the same as without tacho."""
        program = self.program("replay", *compiled)
        if where.get("code", 0) == 0:
            alone, _ = self.on_bed(program, scene, *more)
        result, ledger, folder = self.profile(*BLOCKS, "--replay", "kernel", program=(program, scene, *more), **where)
        if where.get("code", 0) == 0:
            self.assertEqual(result.stdout, alone.stdout)
        self.assertEqual(ledger.unknown, [])
        return result.stderr.decode(), ledger, folder

    def passes(self, folder):
        found = sorted(path for path in folder.glob("*.csv") if path.name.startswith(("pmc_", "SQ")))
        self.assertEqual(len(found), len(list(folder.glob("perfmon/*.txt"))))
        return found

    def measured(self, folder):
        """{kernel: [(dispatches, of them with values) by pass]}"""
        about = {"Dispatch_ID", "GPU_ID", "Queue_ID", "PID", "TID", "Grid_Size", "Workgroup_Size", "LDS_Per_Workgroup",
                 "Scratch_Per_Workitem", "Arch_VGPR", "Accum_VGPR", "SGPR", "Kernel_Name", "Start_Timestamp", "End_Timestamp",
                 "Kernel_ID", "Correlation_ID"}
        found = collections.defaultdict(list)
        for path in self.passes(folder):
            rows = rows_of(path)
            for name in {row["Kernel_Name"] for row in rows}:
                of = [row for row in rows if row["Kernel_Name"] == name]
                found[name].append((len(of), sum(any(value != "" for key, value in row.items() if key not in about) for row in of)))
        return dict(found)

    def test_every_unit_in_every_pass_of_every_launch(self):
        """The bed's line for each value that was read, right behind the run of the kernel that it is about."""
        for gpu in ("gfx90a", "gfx942"):
            with self.subTest(gpu):
                result, ledger, folder = self.profile("-b", "2", "--instances", "--replay", "kernel", gpu=gpu, name=gpu)
                self.assertIn(b"wrong 0", result.stdout)
                self.check_natural_values(folder, gpu)
                passes = self.passes(folder)
                self.assertGreater(len(passes), 3)
                self.assertEqual(runs_of(ledger), {"vecCopy": 2 * len(passes), "_Z5touchPd": 2 * len(passes)})
                # Runs of the program's kernels in order, each with the values read behind it. All four launches are one batch; of its two
                # streams the real library lets either go first.
                runs, names = [], []
                for line in (self.folder / "ledger").read_text().splitlines():
                    _, what, *rest = line.split(" ")
                    if what == "kernel" and rest[2] not in OWN:
                        runs.append(collections.Counter())
                        names.append(rest[2])
                    elif what == "count":
                        block, event, die, engine, instance, value = rest[2], *map(int, rest[3:])
                        runs[-1][(block, event, die, max(engine, 0), max(instance, 0), value)] += 1
                self.assertEqual(len(runs), 4 * len(passes))
                order = sorted(passes, key=lambda path: self.pass_number(folder, path))
                for number, path in enumerate(order):
                    values = collections.defaultdict(collections.Counter)
                    for row in rows_of(folder / "perfmon" / f"{path.stem}.instances.csv"):
                        name = row["Counter_Name"]
                        if name.endswith("_sum") or bed.has_real_sdk() and "LEVEL" in name:
                            continue
                        block, event = self.events[re.sub("_ACCUM$", "", name)]
                        if name.endswith("_ACCUM"):
                            event = {"gfx90a": 185, "gfx942": 184}[gpu]
                        values[int(row["Dispatch_ID"])][(block, event, int(row["XCC"] or 0), int(row["SE"] or 0),
                                                         int(row["Instance"] or 0), int(float(row["Counter_Value"])))] += 1
                    self.assertEqual(sorted(values), [0, 1, 2, 3])
                    for dispatch, seen in values.items():
                        self.assertGreater(len(seen), 10)
                        name = ("vecCopy", "_Z5touchPd")[dispatch % 2]
                        run = [at for at in range(4 * number, 4 * number + 4) if names[at] == name][dispatch // 2]
                        self.assertEqual(seen - runs[run], collections.Counter(), (path.name, dispatch))

    def pass_number(self, folder, path):
        """Passes are numbered as the plan lists them: levels first."""
        return (not path.name.startswith("SQ"), path.stem if path.name.startswith("SQ") else "", len(path.stem), path.stem)

    def test_a_whole_profile(self):
        """One that analyze reads in all blocks."""
        result, ledger, folder = self.profile("--no-roof", "--replay", "kernel")
        self.assertEqual((result.stdout, ledger.unknown), (b"wrong 0\n", []))
        self.assertNotIn("ran once", result.stderr.decode())
        self.check_natural_values(folder, "gfx942")
        analysis = json.loads(self.run_command(TACHO, "analyze", "-p", folder, "--output-format", "json").stdout)
        blocks = {int(table["id"].split(".")[0]) for table in analysis["tables"] if table["rows"]}
        self.assertLessEqual({0, 1, 2, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17, 18}, blocks)
        self.assertIn('"replay": "kernel"', (folder / "profiling_config.yaml").read_text())

    def test_the_same_values_as_by_running_the_program_again(self):
        _, _, kernel = self.profile(*BLOCKS, "--replay", "kernel", name="kernel")
        again, _, application = self.profile(*BLOCKS, name="application")
        self.assertEqual(again.stdout, b"wrong 0\n" * len(self.passes(kernel)))
        own = {"Start_Timestamp", "End_Timestamp", "PID", "TID", "Queue_ID"}
        self.assertEqual([path.name for path in self.passes(kernel)], [path.name for path in self.passes(application)])
        for one, other in zip(self.passes(kernel), self.passes(application)):
            one, other = ([{key: value for key, value in row.items() if key not in own} for row in rows_of(path)]
                          for path in (one, other))
            self.assertEqual(one, other)

    def test_memory_of_every_kind(self):
        """In place: device memory, also through a table of pointers; a `__device__` variable with atomics, a managed variable,
        managed memory; host memory that arguments name."""
        told, ledger, folder = self.replayed("plain", compiled=("-DMANAGED",))
        passes = len(self.passes(folder))
        self.assertEqual(runs_of(ledger), {"increment": 15 * passes, "accumulate": 3 * passes, "through": 3 * passes, "by_name": 3 * passes})
        measured = self.measured(folder)
        self.assertEqual(measured["increment"], [(15, 15)] * passes)
        self.assertEqual(measured["accumulate"], [(3, 3)] * passes)
        self.assertNotIn("increment", told)
        # By which HIP fills in the managed variable's value.
        self.assertIn("1 launch (__amd_rocclr_copyBuffer) ran once, measured in the first pass only: HIP's own copies "
                      "and fills are not run again", told)

    def test_threads_and_streams(self):
        """Nobody sees memory between two passes of another thread's launch."""
        _, ledger, folder = self.replayed("threads", "2")
        passes = len(self.passes(folder))
        self.assertEqual(runs_of(ledger), {"increment": 8 * passes, "accumulate": 8 * passes})
        self.assertEqual(self.measured(folder)["increment"], [(8, 8)] * passes)

    def test_many_launches_in_a_row(self):
        """More than a batch holds, and one that nobody waits for."""
        told, ledger, folder = self.replayed("many")
        passes = len(self.passes(folder))
        self.assertEqual(runs_of(ledger), {"increment": 61 * passes, "accumulate": 10 * passes})
        self.assertEqual(self.measured(folder)["increment"], [(61, 61)] * passes)
        self.assertNotIn("increment", told)
        # 64 launches, 6, and 1: three times memory is saved, and put back for each further pass. There are some ten pieces of it.
        self.assertLess(ledger.names()["?"], 3 * passes * 20)

    def test_code_that_is_loaded_between_two_launches(self):
        library = self.program("replay", "-shared", "-fPIC", "-DLIBRARY", output="libreplay.so")
        told, ledger, folder = self.replayed("code", "2", library)
        passes = len(self.passes(folder))
        self.assertEqual(runs_of(ledger), {"increment": 4 * passes, "other": 2 * passes})
        self.assertEqual(self.measured(folder)["other"], [(2, 2)] * passes)
        self.assertNotIn("(other)", told)

    def test_arguments_in_a_buffer_and_launches_with_events(self):
        _, ledger, folder = self.replayed("modules")
        passes = len(self.passes(folder))
        self.assertEqual(runs_of(ledger), {"increment": 9 * passes})
        self.assertEqual(self.measured(folder)["increment"], [(9, 9)] * passes)

    def test_several_gpus(self):
        result, ledger, folder = self.profile(*BLOCKS, "--replay", "kernel", program=(self.program("each_gpu"),), gpus=2)
        self.assertIn(b"gpus 2\nwrong 0", result.stdout)
        self.check_natural_values(folder, "gfx942")
        for path in self.passes(folder):
            self.assertEqual(collections.Counter(row["GPU_ID"] for row in rows_of(path)), {"0": 3, "1": 3}, path.name)

    def test_filters(self):
        """Kernels that are not selected run once."""
        for options, runs in ((("-k", "touch"), {"vecCopy": 2, "_Z5touchPd": 10}), (("-d", "1:2"), {"vecCopy": 6, "_Z5touchPd": 6}),
                              (("-k", "touch", "-d", "0:2"), {"vecCopy": 2, "_Z5touchPd": 6})):
            with self.subTest(options):
                result, ledger, folder = self.profile(*BLOCKS, "--replay", "kernel", *options, name="_".join(options))
                self.assertIn(b"wrong 0", result.stdout)
                self.assertEqual(runs_of(ledger), runs)
                wanted = {"-k": ["1", "3"], "-d": ["1", "2"]}[options[0]] if len(options) == 2 else ["1"]
                for path in self.passes(folder):
                    self.assertEqual([row["Dispatch_ID"] for row in rows_of(path)], wanted)
                self.assertNotIn("ran once", result.stderr.decode())

    def test_graphs_run_once(self):
        told, ledger, folder = self.replayed("graph")
        passes = len(self.passes(folder))
        self.assertEqual(runs_of(ledger), {"increment": 9, "accumulate": 3 * passes})
        self.assertIn("9 launches (increment) ran once, measured in the first pass only: tacho does not repeat the work of a graph; "
                      "--iteration-multiplexing and --replay application measure all passes", told)
        self.assertEqual(self.measured(folder)["increment"], [(9, 9)] + [(9, 0)] * (passes - 1))
        self.assertEqual(self.measured(folder)["accumulate"], [(3, 3)] * passes)

    def test_kernels_that_run_once(self):
        told, ledger, folder = self.replayed("once")
        self.assertEqual(runs_of(ledger), {"ncclDevKernel_Sum": 3, "_Z6printsj": 3, "increment": 3})
        for kernel, why in (("ncclDevKernel_Sum", "a collective waits for GPUs or ranks that do not run theirs again"),
                            ("prints(unsigned int)", "the kernel may print, assert or use the device's heap, which tacho cannot undo"),
                            ("increment", "tacho does not repeat the call that launched it")):
            sentence = f"3 launches ({kernel}) ran once, measured in the first pass only: {why}"
            self.assertIn(sentence, told)
        passes = len(self.passes(folder))
        self.assertEqual(set(map(tuple, self.measured(folder).values())), {((3, 3),) + ((3, 0),) * (passes - 1)})

    def test_a_kernel_that_waits_for_the_program(self):
        """It gets its answer once, and ends; the kernel is not run again from then on."""
        told, ledger, folder = self.replayed("answered", env={"TACHO_REPLAY_PATIENCE": "1"})
        self.assertIn("2 launches (answered) ran once, measured in the first pass only: the kernel did not end within 1 s", told)
        self.assertLessEqual(runs_of(ledger)["answered"], 3)
        self.assertEqual(self.measured(folder)["answered"][0], (2, 2))

    def test_a_program_that_dies_between_two_passes(self):
        told, ledger, folder = self.replayed("dies", "7", code=7)
        self.assertIn("1 launch (dies) did not run once for each pass: the program ended before", told)
        measured = self.measured(folder)
        self.assertEqual(measured["increment"], [(1, 1)] * 5)
        self.assertEqual([with_values for _, with_values in measured["dies"]], [2, 2, 1, 1, 1])

    def test_little_memory(self):
        """Copies go to the host where the GPU has no room for them, and make room where the program wants more."""
        for limit, more in ((400, "1"), (1400, "1130")):
            with self.subTest(limit):
                result, ledger, _ = self.profile(*BLOCKS, "--replay", "kernel", program=(self.program("replay"), "room", more), name=str(limit),
                                                 env={"TACHO_KFD_FAULT": f"out-of-memory@{limit}"})
                alone, _ = self.on_bed(self.program("replay"), "room", more)
                self.assertEqual(result.stdout, alone.stdout)
                self.assertEqual(runs_of(ledger), {"increment": 10})

    def test_refusals(self):
        if bed.has_real_sdk():
            self.skipTest("the real library has one version")
        result, ledger, _ = self.profile(*BLOCKS, "--replay", "kernel", env={"TACHO_SDK": "abi=0.6"}, code=None)
        self.assertIn("--replay kernel needs the rocprofiler-sdk of ROCm 7 or later; --replay application runs the program once a pass",
                      result.stderr.decode())
        result, ledger, _ = self.profile(*BLOCKS, "--replay", "cupti", code=None, name="cupti")
        self.assertEqual((result.returncode == 0, ledger.kernels), (False, []))


if __name__ == "__main__":
    harness.main()
