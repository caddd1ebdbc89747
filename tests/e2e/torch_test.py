"""--torch-trace: operators and modules of PyTorch with the kernels that they launched. Debian's PyTorch has no GPU: the model's layers
run OpenCL kernels on PoCL. What programs do with PyTorch gives the same bits as without tacho."""
import collections
import csv
import gzip
import importlib.util
import io
import json
import os
import re
import subprocess
import threading
import unittest

import harness
from harness import DATA, DEBIAN_PYTHON, SOURCE, TACHO, need_data

MODEL = SOURCE / "tests" / "e2e" / "targets" / "torch_opencl.py"
BEHAVIOUR = SOURCE / "tests" / "e2e" / "targets" / "torch_behaviour.py"


def torch_missing():
    return subprocess.run([DEBIAN_PYTHON, "-c", "import torch, pyopencl"], capture_output=True).returncode != 0


class Base(harness.Case):
    def operators(self, file="t.tacho", by="operator", more=()):
        """{(name, phase): row} of tacho stats."""
        result = self.run_command(TACHO, "stats", file, "--by", by, *more, "--output-format", "json")
        table = json.loads(result.stdout)
        titles = [column["title"] if isinstance(column, dict) else column for column in table["columns"]]
        rows = [dict(zip(titles, row)) for row in table["rows"]]
        return {(row["Name"], row["Phase"]): row for row in rows}


@unittest.skipIf(torch_missing(), "needs python3-torch and python3-pyopencl")
class Torch(Base):
    def test_kernels_belong_to_operators_and_modules(self):
        plain = self.run_command(DEBIAN_PYTHON, MODEL, "3")
        traced = self.trace(DEBIAN_PYTHON, MODEL, "3", options=["--torch-trace"])
        self.assertEqual(plain.stdout, traced.stdout)
        batches = 6  # of two batches an epoch
        rows = self.operators()
        expected = {("ScaleFunction", "forward"): 2, ("ScaleFunctionBackward", "backward"): 2,
                    ("nn.Module.Shift.forward", "forward"): 1}
        for key, kernels in expected.items():
            self.assertEqual(rows[key]["SelfKernels"], kernels * batches, key)
            self.assertEqual(rows[key]["Calls"], kernels * batches, key)
            self.assertGreater(rows[key]["SelfDeviceNs"], 0)
        self.assertNotIn(("(no operator)", "forward"), rows)
        self.assertEqual(sum(row["SelfKernels"] for row in rows.values()), 5 * batches)
        # A backward operator belongs to the forward operator that made it, and to its modules.
        self.assertEqual(rows["ScaleFunction", "backward"]["Kernels"], 2 * batches)
        self.assertEqual(rows["nn.Module.Net.forward", "forward"]["Kernels"], 3 * batches)
        for name, phase in (("torch.nn.functional.conv2d", "forward"), ("torch.nn.functional.linear", "forward"),
                            ("torch.nn.functional.relu", "forward"), ("torch.nn.functional.cross_entropy", "forward"),
                            ("Optimizer.step#SGD.step", "optimizer"), ("torch.autograd.backward", "backward")):
            self.assertEqual(rows[name, phase]["Calls"], batches, name)
            self.assertGreaterEqual(rows[name, phase]["TotalHostNs"], rows[name, phase]["SelfHostNs"])
        self.assertEqual(sum(row["Calls"] for key, row in rows.items() if key[1] == "data"), 9)
        modules = self.operators(by="module", more=["--instances"])
        for name, phase, kernels in (("Net.first", "forward", 1), ("Net.first", "backward", 1),
                                     ("Net.layers.0", "forward", 1), ("Net.layers.0", "backward", 1),
                                     ("Net.layers.1", "forward", 1)):
            self.assertEqual(modules[name, phase]["SelfKernels"], kernels * batches, (name, phase))
        self.assertEqual(modules["Net.layers", "forward"]["Kernels"], 2 * batches)
        self.assertEqual(modules["Net", "forward"]["Class"], "Net")
        self.assertEqual(modules["Net.conv", "forward"]["Class"], "Conv2d")

    def test_system_profiling(self):
        self.run_command(TACHO, "sys", "run", "-q", "--torch-trace", "-o", "s.tacho", "--", DEBIAN_PYTHON, MODEL, "1")
        self.assertEqual(self.operators("s.tacho")["ScaleFunction", "forward"]["SelfKernels"], 4)

    def test_a_summary_leads_on_and_two_runs_compare(self):
        summary = self.run_command(TACHO, "trace", "--torch-trace", "-o", "a.tacho", "--", DEBIAN_PYTHON, MODEL, "1").stderr.decode()
        self.assertIn("tacho stats a.tacho --by operator", summary)
        self.trace(DEBIAN_PYTHON, MODEL, "1", options=["--torch-trace"], output="b.tacho")
        table = json.loads(self.run_command(TACHO, "diff", "a.tacho", "b.tacho", "--by", "operator", "--output-format", "json").stdout)
        self.assertIn("ScaleFunctionBackward", json.dumps(table))
        self.run_command(TACHO, "export", "a.tacho", "-f", "folded")
        folded = "".join(path.read_text() for path in self.folder.glob("a*folded*"))
        self.assertRegex(folded, r"nn\.Module\.Net\.forward;.*ScaleFunction;clEnqueueNDRangeKernel;scale ")

    def test_results_stay_bit_identical(self):
        plain = self.run_command(DEBIAN_PYTHON, BEHAVIOUR, code=3)
        traced = self.trace(DEBIAN_PYTHON, BEHAVIOUR, code=3, options=["--torch-trace"])
        self.assertEqual(plain.stdout.decode(), traced.stdout.decode())
        rows = self.operators()
        self.assertGreater(rows["nn.Module.Recursive.forward", "forward"]["Calls"], 40)
        self.assertEqual(rows["nn.Module.Fails.forward", "forward"]["Calls"], 1)

    def test_every_way_to_start_python(self):
        (self.folder / "small.py").write_text("import torch\nprint(torch.nn.Linear(2, 2)(torch.ones(1, 2)).shape)\n")
        (self.folder / "run.sh").write_text(f"#!/bin/sh\nexec {DEBIAN_PYTHON} small.py\n")
        (self.folder / "run.sh").chmod(0o755)
        ways = {"script": [DEBIAN_PYTHON, "small.py"], "module": [DEBIAN_PYTHON, "-m", "small"],
                "code": [DEBIAN_PYTHON, "-c", "import small"], "shell": ["./run.sh"],
                "words": ["sh", "-c", f"{DEBIAN_PYTHON} small.py"], "wrapper": ["env", "A=1", DEBIAN_PYTHON, "small.py"],
                # Debian's torchrun does not start under its own Python; this starts workers as it does.
                "launcher": [DEBIAN_PYTHON, "launcher.py"]}
        (self.folder / "launcher.py").write_text(
            "import subprocess, sys\n"
            "workers = [subprocess.Popen([sys.executable, '-u', 'small.py']) for _ in range(2)]\n"
            "sys.exit(max(worker.wait() for worker in workers))\n")
        for name, command in ways.items():
            result = self.trace(*command, options=["--torch-trace"], output=f"{name}.tacho")
            self.assertIn(b"torch.Size([1, 2])", result.stdout, name)
            rows = self.operators(f"{name}.tacho")
            self.assertEqual(rows["torch.nn.functional.linear", "forward"]["Calls"], 2 if name == "launcher" else 1, name)

    def test_one_sentence_without_kernels(self):
        result = self.trace(DEBIAN_PYTHON, "-c", "import torch; torch.nn.Linear(2, 2)(torch.ones(1, 2))",
                            options=["--torch-trace"])
        self.one_sentence(result, "launched no kernel on a GPU")

    def test_fails_as_torch_does(self):
        folder = self.folder / "site"
        (folder / "torch").mkdir(parents=True)
        (folder / "torch" / "__init__.py").write_text("import no_such_library\n")
        code = "try:\n  import torch\nexcept ImportError as error:\n  print(error.name)\ntry:\n  import torch\nexcept ImportError as error:\n  print(error.name)"
        result = self.trace(DEBIAN_PYTHON, "-c", code, options=["--torch-trace"], env={"PYTHONPATH": str(folder)})
        self.assertEqual(result.stdout.split(), [b"no_such_library"] * 2)
        # A package of that name which is something else.
        (folder / "torch" / "__init__.py").write_text("answer = 42\n")
        result = self.trace(DEBIAN_PYTHON, "-c", "import torch; print(torch.answer)", options=["--torch-trace"],
                            env={"PYTHONPATH": str(folder)}, output="other.tacho")
        self.assertEqual(result.stdout, b"42\n")
        self.assertIn(b"--torch-trace does not know this PyTorch", result.stderr)


@unittest.skipIf(torch_missing(), "needs python3-torch and python3-pyopencl")
class Profile(Base):
    """The command lines of the users' documents, as they are printed."""

    def setUp(self):
        super().setUp()
        names = self.folder / "bin"
        names.mkdir()
        (names / "rocprof-compute").symlink_to(TACHO)
        (names / "python").write_text(f'#!/bin/sh\nexec {DEBIAN_PYTHON} "$@"\n')
        (names / "python").chmod(0o755)
        self.path = f"{names}:{os.environ['PATH']}"
        # The documents' program trains on its own; two steps are enough here, its kernels are called as there.
        text = MODEL.read_text().replace("shift", "elementwise_shift").replace("else 2", "else 1")
        (self.folder / "train.py").write_text(text)

    def shell(self, line, code=0):
        return self.run_command("/bin/bash", "-c", line, code=code, env={"PATH": self.path, "HOME": str(self.folder)})

    def folder_of(self, name):
        return self.folder / "workloads" / name / "virtual"

    def table(self, path):
        import csv
        with open(path, newline="") as file:
            return list(csv.DictReader(file))

    def test_operators_with_counters(self):
        said = self.shell("rocprof-compute --experimental profile --name mnist_torch --torch-trace --no-roof -- python train.py").stderr.decode()
        self.assertIn("Command: python train.py\nTorch Trace: Enabled\nKernel Selection: None\n", said)
        folder = self.folder_of("mnist_torch")
        self.assertNotIn("Operator", (folder / "pmc_perf_0.csv").read_text())
        markers = self.table(folder / "torch_trace_pmc_perf_0_marker_api_trace.csv")
        self.assertEqual(len({row["Correlation_Id"] for row in markers}), 10)  # five a step that launch
        self.assertFalse((folder / "torch_trace").exists())
        analyze = f"rocprof-compute --experimental analyze -p {folder}"
        listed = self.shell(f"{analyze} --list-torch-operators").stdout.decode()
        names = ["nn.Module.Net.forward/nn.Module.Scale.forward/ScaleFunction",
                 "nn.Module.Net.forward/nn.Module.Scale.forward/ScaleFunction/ScaleFunctionBackward",
                 "nn.Module.Net.forward/nn.Module.Sequential.forward/nn.Module.Scale.forward/ScaleFunction",
                 "nn.Module.Net.forward/nn.Module.Sequential.forward/nn.Module.Scale.forward/ScaleFunction/ScaleFunctionBackward",
                 "nn.Module.Net.forward/nn.Module.Sequential.forward/nn.Module.Shift.forward"]
        for name in names:
            self.assertIn(f"│ {name} ", listed)

        consolidated = folder / "torch_trace" / "consolidated.csv"
        rows = self.table(consolidated)
        self.assertEqual(list(rows[0]), ["Operator_Name", "Context_Id", "Kernel_Name", "Counter_Name", "Counter_Value",
                                         "Start_Timestamp_function", "End_Timestamp_function", "Start_Timestamp_kernel",
                                         "End_Timestamp_kernel"])
        self.assertEqual({row["Operator_Name"] for row in rows}, set(names))
        # Every counter of every dispatch occurs once, with the value of pmc_perf.
        wide = self.table(folder / "pmc_perf_0.csv")
        for counter in ("WAVES", "V_LOADS_GLOBAL"):
            if counter in wide[0]:
                self.assertEqual(sum(float(row["Counter_Value"]) for row in rows if row["Counter_Name"] == counter),
                                 sum(float(row[counter]) for row in wide))
        self.assertEqual(len(rows), len(wide) * len({row["Counter_Name"] for row in rows}))
        for row in rows:
            begin, start, end = (int(row[key]) for key in ("Start_Timestamp_function", "Start_Timestamp_kernel",
                                                           "End_Timestamp_kernel"))
            self.assertLessEqual(begin, start)
            self.assertLess(start, end)
            self.assertRegex(row["Context_Id"], r"^\d+@\w+\.py:\d+$")
        kernel_of = {"ScaleFunction": "scale", "ScaleFunctionBackward": "scale_backward", "nn.Module.Shift.forward": "elementwise_shift"}
        for row in rows:
            self.assertEqual(row["Kernel_Name"], kernel_of[row["Operator_Name"].rsplit("/", 1)[1]])

        # Kept as it is until its sources change.
        before = consolidated.stat().st_mtime_ns
        self.shell(f"{analyze} --list-torch-operators")
        self.assertEqual(consolidated.stat().st_mtime_ns, before)
        os.utime(folder / "torch_trace_pmc_perf_0_marker_api_trace.csv")
        self.shell(f"{analyze} --list-torch-operators")
        self.assertNotEqual(consolidated.stat().st_mtime_ns, before)

        def shown(words):
            text = self.shell(f"{analyze} -b 2 {words}").stdout.decode()
            return [line.split()[1].rstrip(":") for line in text.splitlines() if line.startswith("Operator ")]

        for everything in ("--torch-operator", "--torch-operator all", "--torch-operator '*'", "--torch-operator '**'"):
            self.assertEqual(shown(everything), sorted(names), everything)
        self.assertEqual(shown("--torch-operator '*Backward'"), [names[1], names[3]])
        self.assertEqual(shown("--torch-operator '*/*Shift.forward'"), [names[4]])
        self.assertEqual(shown("--torch-operator ScaleFunction nn.Module.Shift.forward"), [names[0], names[2], names[4]])
        self.assertEqual(shown("--torch-operator '*' -k elementwise"), [names[4]])
        self.one_sentence(self.shell(f"{analyze} --torch-operator '*conv2d'", code=1), "no operator matches")
        self.one_sentence(self.shell(f"rocprof-compute analyze -p {folder} --list-torch-operators", code=1), "--experimental")
        self.run_command(TACHO, "analyze", "-p", folder, "--list-torch-operators")

    def test_with_other_options(self):
        start = "rocprof-compute --experimental profile --name mnist --torch-trace --no-roof --overwrite"
        self.shell(f"{start} -b 11 12 -- python train.py")
        self.assertTrue((self.folder_of("mnist") / "torch_trace_pmc_perf_0_counter_collection.csv").exists())
        said = self.shell(f"{start} --iteration-multiplexing kernel -- python train.py").stderr.decode()
        self.assertIn("Iteration multiplexing: kernel", said)
        self.shell(f"{start} -k elementwise -- python train.py")
        rows = self.table(self.folder_of("mnist") / "torch_trace_pmc_perf_0_counter_collection.csv")
        self.assertEqual({row["Kernel_Name"] for row in rows}, {"elementwise_shift"})
        listed = self.shell(f"rocprof-compute --experimental analyze -p {self.folder_of('mnist')} --list-torch-operators").stdout.decode()
        self.assertIn("nn.Module.Shift.forward", listed)
        self.assertNotIn("ScaleFunction", listed)
        self.shell(f"{start} -d 3:4 -- python train.py")
        rows = self.table(self.folder_of("mnist") / "torch_trace_pmc_perf_0_counter_collection.csv")
        self.assertEqual({(row["Dispatch_Id"], row["Kernel_Name"]) for row in rows}, {("3", "scale_backward"), ("4", "scale_backward")})
        refused = self.shell(start.replace("--experimental ", "") + " -- python train.py", code=125)
        self.one_sentence(refused, "--experimental")
        self.run_command(TACHO, "profile", "-n", "own", "--torch-trace", "--no-roof", "-q", "--", DEBIAN_PYTHON, "train.py")

    def test_a_folder_that_cannot_be_written_to(self):
        self.shell("rocprof-compute --experimental profile --name mnist --torch-trace --no-roof -b 2 -- python train.py")
        folder = self.folder_of("mnist")
        (folder / "torch_trace").write_text("")  # no user can make a folder here
        result = self.shell(f"rocprof-compute --experimental analyze -p {folder} --list-torch-operators")
        self.assertIn(b"nn.Module.Shift.forward", result.stdout)
        self.one_sentence(result, "the operators are not kept")


# What PyTorch's emitter writes where it was asked for shapes, around kernels that OpenCL runs.
EMITTER = '''
import time, tacho, pyopencl as cl
context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
program = cl.Program(context, "kernel void my_sgemm(global float* x) { for (int i = 0; i < 100000; ++i) x[0] += i; }"
                              "kernel void nameless(global float* x) { for (int i = 0; i < 100000; ++i) x[0] += i; }").build()
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4)
for i in range(3):
    for name, rows in (("my_sgemm", 64), ("my_sgemm", 128), ("nameless", 64)):
        tacho.range_push("aten::mm, op_id = %d, sizes = [[%d, 256], [256, 32]], input_op_ids = [(1,0)]" % (7 + i, rows))
        getattr(program, name)(queue, (1,), None, buffer)
        tacho.range_pop()
    queue.finish()
'''


@unittest.skipIf(torch_missing(), "needs python3-torch and python3-pyopencl")
class Shapes(Base):
    def test_shapes_of_the_emitter(self):
        self.trace(DEBIAN_PYTHON, "-c", EMITTER, options=["--torch-shapes=all"], env={"PYTHONPATH": str(SOURCE / "python")})
        result = self.run_command(TACHO, "stats", "t.tacho", "--by", "operator", "--input-shapes", "--device", "H100", "--output-format", "csv")
        rows = {row["InputShapes"]: row for row in csv.DictReader(io.StringIO(result.stdout.decode())) if row["Name"] == "aten::mm"}
        for count in (64, 128):
            row = rows[f"[[{count}, 256], [256, 32]]"]
            # Six calls of 64 rows: three of a kernel whose name tells 32-bit floats, and three of one that tells nothing.
            self.assertEqual(int(row["Calls"]), 6 if count == 64 else 3)
        self.assertEqual(float(rows["[[128, 256], [256, 32]]"]["Flops"]), 3 * 2 * 128 * 256 * 32)
        self.assertEqual(float(rows["[[128, 256], [256, 32]]"]["Bytes"]), 3 * 4 * (128 * 256 + 256 * 32 + 128 * 32))
        self.assertEqual(rows["[[128, 256], [256, 32]]"]["Precision"], "f32")
        said = self.run_command(TACHO, "stats", "t.tacho", "--by", "operator", "--input-shapes", "--device", "H100").stdout.decode()
        self.assertIn("This recording has shapes without types", said)


# A training loop on a torch with an emitter (targets/emitting_torch). Its last words: how many kernels it ran.
TRAINS = """
import sys, threading, time
import torch
model, optimizer, kernels = torch.Linear(), torch.Optimizer(), 0
begun = time.monotonic()
while time.monotonic() - begun < float(sys.argv[1]):
    model(64)
    torch.autograd.backward()
    time.sleep(0.004)
    optimizer.step()
    kernels += 2
graph = torch.cuda.CUDAGraph()
graph.capture_begin()
model(32)
graph.capture_end()

def passes(config):
    torch.inherit(config)
    model(64)  # a thread that emits already

thread = threading.Thread(target=passes, args=(torch.emitter(),))
thread.start()
thread.join()
print(kernels + 2)
"""


@unittest.skipIf(torch_missing(), "needs python3-torch and python3-pyopencl")
class SampledShapes(Base):
    def trains(self, option, seconds):
        (self.folder / "train.py").write_text(TRAINS)
        env = {"PYTHONPATH": str(SOURCE / "tests" / "e2e" / "targets" / "emitting_torch")}
        result = self.trace(DEBIAN_PYTHON, "train.py", seconds, options=option, env=env)
        self.assertEqual(result.stderr, b"")
        answer = self.run_command(TACHO, "stats", "t.tacho", "--by", "operator", "--input-shapes", "--device", "H100")
        table = self.run_command(TACHO, "stats", "t.tacho", "--by", "operator", "--input-shapes", "--device", "H100", "--output-format", "csv")
        return int(result.stdout), answer.stdout.decode(), list(csv.DictReader(io.StringIO(table.stdout.decode())))

    def test_stretches_of_the_run_have_shapes(self):
        kernels, said, rows = self.trains(["--torch-shapes"], "2.5")
        self.assertEqual(sum(int(row["SelfKernels"]) for row in rows), kernels)
        shaped = {row["InputShapes"]: int(row["Calls"]) for row in rows if row["Name"] == "aten::mm"}
        # Steps are whole: as many forward as backward operators. What a graph captures has shapes in any case.
        self.assertEqual(shaped["[[64, 256], [256, 32]]"], shaped["[[1024, 256], [256, 32]]"])
        self.assertEqual(shaped["[[32, 256], [256, 32]]"], 1)
        self.assertEqual(len(shaped), 3)
        part = 2 * shaped["[[64, 256], [256, 32]]"] / kernels
        self.assertGreater(part, 0.002)
        self.assertLess(part, 0.3)
        rest = next(row for row in rows if row["Name"] == "(calls without shapes)")
        self.assertEqual(int(rest["SelfKernels"]) + sum(shaped.values()), kernels)
        stretches = int(re.search(r"of GPU time, in (\d+) stretches of the run; the rest is", said).group(1))
        self.assertGreaterEqual(stretches, 2)  # the second step, and the graph
        self.assertIn("of GPU time with shapes is in operators with a model of their work", said)
        self.assertNotIn("utilisation", said)
        self.assertIn("parts of the run only", self.run_command(
            TACHO, "diff", "t.tacho", "t.tacho", "--by", "operator", "--input-shapes", code=1).stderr.decode())
        # Without shapes the table is that of the whole run.
        whole = self.operators()
        self.assertEqual(whole["aten::mm", "forward"]["Calls"] + whole["aten::mm", "backward"]["Calls"], kernels)

    def test_all(self):
        kernels, said, rows = self.trains(["--torch-shapes=all"], "0.3")
        self.assertEqual(sum(int(row["Calls"]) for row in rows if row["Name"] == "aten::mm" and row["InputShapes"]), kernels)
        self.assertNotIn("(calls without shapes)", said)
        self.assertNotIn("stretch", said)

    def test_a_program_without_a_second_step(self):
        (self.folder / "train.py").write_text("import torch\ntorch.Linear()(64)\n")
        self.trace(DEBIAN_PYTHON, "train.py", options=["--torch-shapes=sampled"],
                   env={"PYTHONPATH": str(SOURCE / "tests" / "e2e" / "targets" / "emitting_torch")})
        said = self.run_command(TACHO, "stats", "t.tacho", "--by", "operator", "--input-shapes").stdout.decode()
        self.assertIn("No stretch of the run in which shapes were recorded launched any work", said)

    def test_the_option(self):
        for words in (["--torch-shapes=some"], ["--torch-shapes", "--torch-shapes=1"]):
            self.one_sentence(self.trace("true", options=words, code=125), "sampled or all")
        # The word behind it may be the program's.
        self.one_sentence(self.run_command(TACHO, "trace", "-o", "x.tacho", "--torch-shapes", "ls", code=125), "Python", "ls")
        self.one_sentence(self.run_command(TACHO, "sys", "run", "--torch-shapes=some", "--", "ls", code=125), "sampled or all")


class StretchesOfShapes(unittest.TestCase):
    """When shapes are turned on, by a clock of the test's own (python/tacho/torch_shapes.py)."""

    def setUp(self):
        spec = importlib.util.spec_from_file_location("torch_shapes", SOURCE / "python" / "tacho" / "torch_shapes.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.now, self.on, self.turns = 0.0, 0.0, []
        self.stretches = module.Stretches(self.turns.append, lambda: self.now)

    def spend(self, seconds):
        self.now += seconds
        if self.stretches.on:
            self.on += seconds

    def assert_part(self):
        self.assertGreater(self.on / self.now, 1 / 120)
        self.assertLess(self.on / self.now, 1 / 50)
        self.assertGreater(len(self.turns), 20)

    def test_steps(self):
        """A stretch holds whole steps, however many modules a step calls."""
        for seconds in (0.05, 0.0005):
            self.setUp()
            for step in range(int(min(500, 1e5 * seconds) / seconds)):
                for key in ("model", "loss"):
                    self.stretches.call(key)
                    if key == "model":
                        on = self.stretches.on
                    self.assertEqual(on, self.stretches.on)
                    self.spend(seconds)
                self.stretches.step_ended()
            self.assert_part()
            self.assertLess(len(self.turns), 2 * self.now)  # no stretch is shorter than 20 ms

    def test_a_machine_that_holds_a_step_up(self):
        """A stretch begins no sooner in a step that takes fifty times as long as the others."""
        for step in range(20000):
            self.stretches.call("model")
            on = self.stretches.on
            self.spend(0.3 if step % 500 == 99 else 0.003)
            self.stretches.call("backward")
            self.assertEqual(on, self.stretches.on)
            self.spend(0.003)
            self.stretches.step_ended()
        self.assertGreater(len(self.turns), 20)

    def test_gradients_of_several_batches(self):
        optimizers = 0
        for step in range(3000):
            for _ in range(8):
                self.stretches.call("model")
                self.spend(0.02)
            optimizers += self.stretches.on
            self.spend(0.01)
            self.stretches.step_ended()
        self.assert_part()
        self.assertGreater(optimizers, 10)

    def test_no_optimizer(self):
        for _ in range(10000):
            self.stretches.call("model")
            self.spend(0.02)
        self.assert_part()

    def test_evaluation_after_training(self):
        for _ in range(100):
            self.stretches.call("model")
            self.spend(0.05)
            self.stretches.step_ended()
        before = len(self.turns)
        for _ in range(10000):
            self.stretches.call("model")
            self.spend(0.05)
        self.assertGreater(len(self.turns), before + 10)
        self.assert_part()

    def test_every_part_of_what_repeats(self):
        """Stretches fall on all parts of an iteration, though it has the length of the time between them."""
        seen = dict.fromkeys(range(40), 0)
        for _ in range(4000):
            for part in seen:
                self.stretches.call("block")
                self.spend(0.03)
                seen[part] += self.stretches.on
        self.assertGreater(min(seen.values()), 0.3 * sum(seen.values()) / len(seen))

    def test_what_is_never_called_again_ends_a_stretch(self):
        for _ in range(2):
            self.stretches.call("warm-up")
            self.spend(0.1)
        for i in range(100000):
            self.stretches.call("other %d" % i)
            self.spend(0.1)
        self.assertLess(self.on, 1.5)

    def test_other_threads_follow(self):
        self.stretches.call("model")
        self.spend(0.1)
        thread = threading.Thread(target=lambda: [self.stretches.call("model") for _ in range(5)])
        thread.start()
        thread.join()
        self.assertEqual(self.turns, [])
        self.stretches.call("model")
        self.assertEqual(self.turns, [True])
        self.spend(60)  # the thread that led is gone
        thread = threading.Thread(target=lambda: self.stretches.call("model"))
        thread.start()
        thread.join()
        self.assertEqual(self.turns, [True, False])

    def test_graphs(self):
        self.stretches.capture(True)
        self.stretches.capture(False)
        self.stretches.capture(False)  # one that began before
        self.assertEqual(self.turns, [True, False])


class WithoutTorch(Base):
    def test_refuses_what_is_no_python(self):
        self.one_sentence(self.trace("ls", options=["--torch-trace"], code=125), "Python", "ls")

    def test_nothing_imports_torch(self):
        result = self.trace("sh", "-c", "true", options=["--torch-trace"])
        self.one_sentence(result, "no process of the program imported PyTorch")

    def test_nothing_happens_without_the_option(self):
        code = "import os, sys; print(os.environ.get('PYTHONPATH'), len(sys.meta_path), 'sitecustomize' in sys.modules, sys.path)"
        plain = self.run_command(DEBIAN_PYTHON, "-c", code)
        self.assertEqual(self.trace(DEBIAN_PYTHON, "-c", code).stdout, plain.stdout)

    def test_the_machines_own_start_stays(self):
        (self.folder / "sitecustomize.py").write_text("print('own start')\n")
        code = "import sys, sitecustomize; print(sitecustomize.__file__, sys.path)"
        plain = self.run_command(DEBIAN_PYTHON, "-c", code, env={"PYTHONPATH": str(self.folder)})
        traced = self.trace(DEBIAN_PYTHON, "-c", code, options=["--torch-trace"], env={"PYTHONPATH": str(self.folder)})
        self.assertEqual(plain.stdout, traced.stdout)

    def test_what_inductor_fused(self):
        """Dynamo, inductor's file and launching method as torch has them, in small; Debian's torch compiles nothing."""
        (self.folder / "generated.py").write_text(
            "# kernel path: /tmp/k.py\n"
            "# Topologically Sorted Source Nodes: [linear, gelu], Original ATen: [aten.addmm, aten.gelu]\n"
            "# Source node to ATen node mapping:\n#   gelu => erf\n"
            "triton_poi_fused_0 = Tuner('triton_poi_fused_0')\n"
            "def call(args):\n    return triton_poi_fused_0.run(args, stream=7)\n")
        (self.folder / "compiles.py").write_text(COMPILES)
        result = self.run_command(DEBIAN_PYTHON, "compiles.py", SOURCE / "python" / "tacho")
        folder = self.folder
        self.assertEqual(result.stdout.decode().splitlines(), [
            "push triton_poi_fused_0: compiled aten.addmm,aten.gelu /home/u/model.py:31,/home/u/model.py:32 @ "
            f"{folder}/generated.py:7", "pop", "(((1, 2),), 7)"] * 2)

    def test_what_was_fused_stands_below_the_table(self):
        (self.folder / "train.py").write_text(
            "import tacho\n"
            "for name, made in (('triton_poi_fused_0', 'aten.addmm,aten.gelu /m/model.py:31,/m/model.py:32'), ('triton_red_fused_1', '- -'),\n"
            "                   ('triton_\\x1b[31m', 'aten.\\x1b]0;x /m/\\x07')):\n"
            "    with tacho.range(name, domain='torch', category=f'compiled {made} @ generated.py:7'):\n"
            "        pass\n")
        self.trace(DEBIAN_PYTHON, "train.py", env={"PYTHONPATH": str(SOURCE / "python")})
        text = self.run_command(TACHO, "stats", "t.tacho", "--by", "operator").stdout.decode()
        self.assertIn("  triton_poi_fused_0\n    aten.addmm, aten.gelu\n    /m/model.py:31, /m/model.py:32\n", text)
        self.assertIn("  triton_red_fused_1\n    operators not known\n    line of the model not known\n", text)
        self.assertNotIn("Made of", text)
        self.assertNotIn("\x1b", text)  # nothing of a trace reaches the terminal as a command
        self.assertNotIn("\x07", text)
        self.assertIn("  triton_?[31m\n    aten.?]0;x\n    /m/?\n", text)
        text = self.run_command(TACHO, "stats", "t.tacho", "--by", "operator", "--top", "1").stdout.decode()
        self.assertIn("… and 2 more: --top 0", text)

    def test_operators_of_torch_profiler(self):
        """Every kernel under the innermost operator around its launch, as the file itself says."""
        need_data()
        for name in ("kineto_h100_qwen1.5-0.5b", "kineto_mi300x_resnet_checkpoint"):
            path = DATA / "traces" / f"{name}.json.gz"
            wanted = innermost_operators(path)
            found = collections.Counter()
            for (operator, _), row in self.operators(path).items():
                found[operator] += row["SelfDeviceNs"]
            for operator, microseconds in wanted.items():
                self.assertAlmostEqual(found[operator] / 1000, microseconds, delta=0.002 * microseconds + 1, msg=operator)
            self.assertAlmostEqual(sum(found.values()) / 1000, sum(wanted.values()), delta=0.001 * sum(wanted.values()))

    def test_modules_and_backward_of_torch_profiler(self):
        need_data()
        rows = self.operators(DATA / "traces" / "kineto_mi300x_resnet_checkpoint.json.gz")
        self.assertEqual(rows["aten::convolution_backward", "backward"]["Kernels"], 642)
        self.assertGreater(rows["nn.Module.Conv2d.forward", "backward"]["Kernels"], 0)


class Optimizers(harness.Case):
    def test_marks_say_what_memory_holds(self):
        """An optimizer's hook is found as in PyTorch, whose torch.optim has no name for the module that has it."""
        script = self.folder / "optimizers.py"
        script.write_text(OPTIMIZERS)
        said = self.run_command(DEBIAN_PYTHON, script, SOURCE / "python" / "tacho").stdout.decode().split("\n")
        once = ["parameter 100", "gradient 200", "optimizer state 300"]
        self.assertEqual(said, once * 2 + ["", "third", ""])


OPTIMIZERS = """
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import torch_trace
from types import SimpleNamespace as Space


class Library:
    tacho_range_push_with = tacho_range_pop_from = None

    def tacho_mark_with(self, text, attributes):
        assert attributes._obj.category == b"memory"
        print(text.decode(), attributes._obj.payload.integer)


class Tensor:
    def __init__(self, address, grad=None, device="cuda"):
        self.address, self.grad, self.device = address, grad, Space(type=device)

    def untyped_storage(self):
        return Space(data_ptr=lambda: self.address)


hooks = []
sys.modules["torch.optim.optimizer"] = Space(register_optimizer_step_post_hook=hooks.append)
torch = Space(version=Space(cuda="13.0", hip=None), __file__="/x/torch/__init__.py", optim=Space(), Tensor=Tensor)
torch_trace._Tracer(torch, Library()).hook_optimizers()
parameter = Tensor(100, Tensor(200))
optimizer = Space(param_groups=[{"params": [parameter]}], state={parameter: {"exp_avg": Tensor(300), "step": Tensor(400, device="cpu"), "lr": 3}})
for _ in range(2):
    hooks[0](optimizer, (), {})
print("\\nthird")
hooks[0](optimizer, (), {})
"""

COMPILES = """
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import torch_trace
from types import SimpleNamespace as Space


class Library:
    def tacho_range_push_with(self, text, attributes):
        print("push %s: %s" % (text.decode(), attributes._obj.category.decode()))

    def tacho_range_pop_from(self, domain):
        print("pop")


class Tuner:
    def __init__(self, name):
        self.inductor_meta = {"kernel_name": name}

    def run(self, *args, stream, benchmark_run=False):
        return args, stream


class PyCodeCache:
    @classmethod
    def load_by_key_path(cls, key, path, linemap=None):
        space = {"Tuner": Tuner}
        exec(compile(open(path).read(), path, "exec"), space)
        return space["call"]


class OutputGraph:
    def call_user_compiler(self, graph, inputs=None):
        return PyCodeCache.load_by_key_path("key", sys.path[1] + "/generated.py")


sys.path.insert(1, __import__("os").getcwd())
tracer = torch_trace._Tracer(Space(version=Space(cuda="13.0", hip=None), __file__="/x/torch/__init__.py"), Library())
tracer.hook_dynamo(Space(OutputGraph=OutputGraph))
tracer.hook_files(Space(PyCodeCache=PyCodeCache))
tracer.hook_launches(Space(CachingAutotuner=Tuner))


def node(name, *frames):
    return Space(name=name, meta={}, stack_trace="".join('  File "%s", line %d, in forward\\n    code\\n' % each for each in frames))


graph = Space(nodes=[node("linear", ("/home/u/model.py", 31), ("/x/torch/nn/modules/linear.py", 125)),
                     node("gelu", ("/home/u/model.py", 32))])
call = OutputGraph().call_user_compiler(Space(graph=graph))
for _ in range(2):
    print(call((1, 2)))
"""


def innermost_operators(path):
    """Device time in us by the innermost cpu_op around the call that launched the work; read from the file alone."""
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    operators, calls, times = collections.defaultdict(list), {}, collections.Counter()
    for event in events:
        if event.get("ph") != "X":
            continue
        if event.get("cat") == "cpu_op":
            operators[event["pid"], event["tid"]].append(event)
        if event.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in event.get("args", {}):
            calls.setdefault(event["args"]["correlation"], event)
    names = {}
    for number, call in calls.items():
        around = [op for op in operators[call["pid"], call["tid"]] if op["ts"] <= call["ts"] <= op["ts"] + op["dur"]]
        # Of several that begin at once the shorter one is inside.
        names[number] = max(around, key=lambda op: (op["ts"], -op["dur"]))["name"] if around else "(no operator)"
    for event in events:
        if event.get("ph") == "X" and event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            name = names.get(event["args"].get("correlation"), "(no operator)")
            if name.startswith("autograd::engine::"):
                name = "autograd engine"
            times[name] += event["dur"]
    return times


if __name__ == "__main__":
    harness.main()
