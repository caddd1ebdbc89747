#!/usr/bin/env python3
"""Operators of PyTorch against torch.profiler on a real GPU. Run by torch_ops.sh; prints a table of verdicts.

usage: torch_ops.py [--build DIR] [--out DIR] [--pairs N] [--models A,B] [SECTION...]
Sections: shapes (of operators' inputs, and what they cost), bits (results with and without tacho), counts (kernels and times by operator), modules, graph, kinds (graphs in pieces, of other
threads, captured again), compiled, hand (kernels of Triton and CuPy that the program launches itself, by line), profile (counters by operator,
with the seed's command lines), cost.
"""
import argparse
import bisect
import collections
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE / "torch_models.py"
TABLE = []
LIMITS = {"shapes": 540, "bits": 240, "counts": 170, "modules": 40, "graph": 60, "kinds": 60, "compiled": 120, "hand": 60, "profile": 120, "cost": 480}
DEADLINE = 0.0
CALLS_BETWEEN = """import timeit
from tacho.torch_shapes import Stretches
stretches = Stretches(lambda on: None)
stretches.due = float("inf")
print(min(timeit.repeat(lambda: stretches.call("key"), number=20000, repeat=5)) / 20000)"""


def record(what, measured, goal="", verdict=""):
    TABLE.append((what, str(measured), goal, verdict))
    print(f"  {what}: {measured}{'  goal ' + goal if goal else ''}{'  ' + verdict if verdict else ''}", flush=True)


def check(what, ok, measured="", goal=""):
    record(what, measured, goal, "ok" if ok else "FAILED")


def run(*command, code=0, **more):
    result = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            timeout=max(DEADLINE - time.monotonic(), 1), **more)
    if code is not None and result.returncode != code:
        raise RuntimeError(f"{' '.join(map(str, command))} exited with {result.returncode}: {result.stderr[-900:]}")
    return result


def missing(model):
    needed = {"gpt2": "transformers", "resnet50": "torchvision"}.get(model)
    return needed if needed and subprocess.run([sys.executable, "-c", f"import {needed}"], capture_output=True).returncode else ""


class Session:
    def __init__(self, options):
        self.options = options
        self.tacho = pathlib.Path(options.build).resolve() / "bin" / "tacho"
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="torch-ops-"))

    def model(self, name, *options):
        return [sys.executable, MODELS, name, *options]

    def trace(self, file, command, *options):
        return run(self.tacho, "trace", "-q", "--overwrite", "-o", self.work / file, "--torch-trace", *options, "--", *command)

    def rows(self, file, by, *options):
        answer = json.loads(run(self.tacho, "stats", self.work / file, "--by", by, *options, "--output-format", "json").stdout)
        titles = [c["title"] if isinstance(c, dict) else c for c in answer["columns"]]
        return [dict(zip(titles, row)) for row in answer["rows"]]

    def sql(self, file, text):
        return json.loads(run(self.tacho, "query", self.work / file, text, "--output-format", "json").stdout)

    def models(self):
        for name in ("mlp", "cnn", "transformer", "gpt2", "resnet50"):
            if lacking := missing(name):
                record(f"{name}", f"not measured: this Python has no {lacking}", "", "SKIPPED")
            else:
                yield name

    # ---- sections

    def bits(self):
        for name in [*self.models(), "graph", "compiled"]:
            if name == "resnet50":  # takes longest, and counts has it
                continue
            plain = run(*self.model(name, "--steps", "4")).stdout
            traced = self.trace(f"bits-{name}.tacho", self.model(name, "--steps", "4"))
            check(f"{name}: results of 4 steps are bit-identical", plain == traced.stdout and plain != "",
                  "" if plain == traced.stdout else f"{plain.split()} / {traced.stdout.split()}")
            lines = [line for line in traced.stderr.splitlines() if "--torch-trace" in line or "Leaked" in line]
            check(f"{name}: no complaint", not lines, " ".join(lines)[:200])

    def counts(self):
        for name in self.models():
            file = self.work / f"{name}.json"
            run(*self.model(name, "--steps", "20", "--profile", file))
            wanted = innermost_operators(file)
            self.trace(f"{name}.tacho", self.model(name, "--steps", "20"))
            found = collections.defaultdict(lambda: [0, 0.0])
            for row in self.rows(f"{name}.tacho", "operator"):
                if row["SelfDeviceNs"]:
                    found[row["Name"]][0] += row["SelfKernels"]
                    found[row["Name"]][1] += row["SelfDeviceNs"] / 1000
            # Initialisation differs from run to run by nothing: both see the whole program.
            different = [f"{key}: {found[key][0]} / {wanted[key][0]}" for key in {*wanted, *found}
                         if found[key][0] != wanted[key][0]]
            check(f"{name}: kernels by operator equal torch.profiler's", not different and len(wanted) > 5,
                  f"{sum(v[0] for v in wanted.values())} kernels, {len(wanted)} operators" if not different
                  else "; ".join(sorted(different))[:300])
            # Without copies: the time of those from pageable memory depends on the host, and is a large part of a small model.
            whole, ours = (sum(v[1] for key, v in table.items() if key != "aten::copy_") for table in (wanted, found))
            check(f"{name}: GPU time in all", abs(ours / whole - 1) < 0.03, f"{ours / whole:.3f} x", "within 3 %")
            # Operators with a share that is more than noise; the worst.
            large = [key for key in wanted if wanted[key][1] > 0.03 * whole and key != "aten::copy_"]
            worst = max(large, key=lambda key: abs(found[key][1] / wanted[key][1] - 1))
            ratio = found[worst][1] / wanted[worst][1]
            check(f"{name}: GPU time by operator, the worst of {len(large)}", abs(ratio - 1) < 0.03, f"{worst} {ratio:.3f} x",
                  "within 3 %")

    def cost_of_stretches(self, file):
        """(time of the run over what it would be if steps with shapes took as long as their neighbours, steps, those with shapes, such a step
        over its neighbours)."""
        def rows(text):
            answer = self.sql(file, text)
            return answer["rows"] if isinstance(answer, dict) else answer

        ends = [int(row[0]) for row in rows("SELECT start + duration FROM tacho.marker WHERE name LIKE 'Optimizer.step#%' ORDER BY start")]
        inputs = [int(row[0]) for row in rows("SELECT start FROM tacho.marker WHERE inputs != 0 ORDER BY start")]
        steps = []  # [time, whether an operator in it has shapes]; the first ones warm up
        for begin, end in list(zip(ends, ends[1:]))[10:]:
            at = bisect.bisect_left(inputs, begin)
            steps.append((end - begin, at < len(inputs) and inputs[at] < end))
        # The steps at both sides of a stretch turn shapes on and off.
        touched = [any(has for _, has in steps[max(i - 1, 0):i + 2]) for i in range(len(steps))]
        extra = whole = expected = 0
        for i, (took, _) in enumerate(steps):
            whole += took
            if touched[i]:
                near = [steps[k][0] for k in range(max(i - 12, 0), min(i + 13, len(steps))) if not touched[k]]
                expected += statistics.median(near)
                extra += took - statistics.median(near)
        with_shapes = sum(has for _, has in steps)
        if with_shapes == 0:
            raise RuntimeError("no step has shapes")
        return whole / (whole - extra), len(steps), with_shapes, (expected + extra) / expected

    def shapes(self):
        """Products by shapes equal those of torch.profiler's record_shapes; what the shapes add to --torch-trace."""
        command = self.model("transformer", "--steps", "20")
        file = self.work / "shapes.json"
        run(*command, "--profile", file)
        products = ("aten::mm", "aten::addmm", "aten::bmm")

        def work(path):
            rows = self.rows(path, "operator", "--input-shapes")
            # An operator's inputs end with its last tensor: torch's emitter and its profiler list values differently.
            sums = collections.defaultdict(lambda: [0, 0.0])
            for row in rows:
                if row["Name"] in products and row.get("Flops"):
                    key = (row["Name"], re.sub(r"(, \[\])+\]$", "]", row["InputShapes"]))
                    sums[key][0] += row["Calls"]
                    sums[key][1] += row["Flops"]
            return {key: (calls, round(flops)) for key, (calls, flops) in sums.items()}

        quick, theirs = self.options.quick, work(file)
        if not quick:
            self.trace("shapes.tacho", command, "--torch-shapes=all")
            ours = work("shapes.tacho")
            different = [f"{key}: {ours.get(key)} / {theirs.get(key)}" for key in {*ours, *theirs} if ours.get(key) != theirs.get(key)]
            check("shapes: products, calls and FLOPs by shapes equal torch.profiler's", not different and len(theirs) > 3,
                  f"{len(theirs)} shapes" if not different else "; ".join(sorted(different))[:300])
        # A thread of a backward pass that calls modules itself.
        recomputes = ("import torch, torch.utils.checkpoint as c\nm = torch.nn.Linear(64, 64).cuda()\nx = torch.ones(8, 64, device='cuda', requires_grad=True)\n"
                      "for r in (True, False):\n  c.checkpoint(m, x, use_reentrant=r).sum().backward()\nprint(x.grad.abs().sum().item() > 0)")
        for option in ("--torch-shapes",) if quick else ("--torch-trace", "--torch-shapes"):
            result = self.trace("c.tacho", [sys.executable, "-c", recomputes], option)
            check(f"{option}: checkpointing runs modules in a backward pass", result.stdout == "True\n" and "tacho:" not in result.stderr,
                  result.stderr[:200])
        # Runs differ by more than shapes cost, so the steps that have shapes are compared with their neighbours of the same run.
        timed, costs = self.model("transformer", "--steps", "1500", "--warmup", "10", "--time"), []
        for i in range(3 if quick else 6):
            self.trace("shapes.tacho", timed, "--torch-shapes")
            ratio, steps, with_shapes, each = self.cost_of_stretches("shapes.tacho")
            costs.append(ratio)
            print(f"      run {i + 1}: {with_shapes} of {steps} steps have shapes, each takes {each:.3f} x its neighbours: {ratio:.4f} x", flush=True)
        check(f"shapes: cost of --torch-shapes over --torch-trace, {len(costs)} runs", statistics.median(costs) <= 1.02,
              f"{statistics.median(costs):.4f} x, from {min(costs):.4f} to {max(costs):.4f}", "<= 1.02 x")
        # Between stretches each call outside of modules asks whether one is due.
        call = float(run(sys.executable, "-c", CALLS_BETWEEN, env={**os.environ, "PYTHONPATH": str(HERE.parent.parent / "python")}).stdout)
        check("shapes: a call between stretches asks whether one is due", call < 5e-6, f"{1e6 * call:.2f} us", "< 5 us")
        sampled = work("shapes.tacho")
        each = {key: flops / calls for key, (calls, flops) in theirs.items()}
        wrong = [key for key, (calls, flops) in sampled.items() if abs(each.get(key, 0) * calls / flops - 1) > 1e-6]
        check("shapes: in stretches, torch.profiler's products with the same work a call", sampled.keys() == theirs.keys() and not wrong,
              f"{len(sampled)} of {len(theirs)} shapes" + "".join(f"; {key}" for key in wrong)[:200])
        said = run(self.tacho, "stats", self.work / "shapes.tacho", "--by", "operator", "--input-shapes").stdout
        record("shapes: what the table says", " ".join(line for line in said.splitlines() if "stretch" in line))
        if not quick:
            once = {option: float(self.trace("c.tacho", timed, option).stdout.split()[-1]) for option in ("--torch-trace", "--torch-shapes=all")}
            record("shapes: --torch-shapes=all over --torch-trace, once", f"{once['--torch-shapes=all'] / once['--torch-trace']:.3f} x")

    def modules(self):
        self.trace("modules.tacho", self.model("transformer", "--steps", "3"))
        rows = self.rows("modules.tacho", "module", "--instances")
        names = {row["Name"] for row in rows}
        check("modules by their place in the model", "Encoder.encoder.layers.3.self_attn" in names, sorted(names)[:4])
        backward = [row for row in rows if row["Phase"] == "backward"]
        whole = sum(row["SelfDeviceNs"] for row in backward)
        placed = sum(row["SelfDeviceNs"] for row in backward if not row["Name"].startswith("("))
        check("backward time that belongs to a module", placed > 0.9 * whole, f"{100 * placed / max(whole, 1):.1f} %", "> 90 %")
        operators = self.rows("modules.tacho", "operator")
        everything = sum(row["SelfDeviceNs"] for row in operators)
        nothing = sum(row["SelfDeviceNs"] for row in operators if row["Name"] == "(no operator)")
        check("GPU time within an operator", nothing < 0.01 * everything, f"{100 - 100 * nothing / everything:.2f} %", "> 99 %")
        print(run(self.tacho, "stats", self.work / "modules.tacho", "--by", "module", "--top", "12").stdout)

    def graph(self):
        self.trace("graph.tacho", self.model("graph", "--steps", "50"), "--graph-trace", "node")
        nodes = self.sql("graph.tacho", "SELECT count(*), count(DISTINCT graph_node) FROM tacho.dispatch WHERE graph_node != 0")
        record("kernels of graph nodes, nodes", nodes["rows"][0] if isinstance(nodes, dict) else nodes)
        marks = self.sql("graph.tacho", "SELECT name, count(*) FROM tacho.marker WHERE name LIKE 'graph node%' GROUP BY name")
        record("marks of nodes", marks["rows"] if isinstance(marks, dict) else marks)
        text = run(self.tacho, "stats", self.work / "graph.tacho", "--by", "operator").stdout
        unnamed = [line for line in text.splitlines() if "nodes of CUDA graphs" in line]
        check("nodes of the graph have operators", not unnamed, " ".join(unnamed))
        rows = self.rows("graph.tacho", "operator")
        whole = sum(row["SelfDeviceNs"] for row in rows)
        named = sum(row["SelfDeviceNs"] for row in rows if row["Name"].startswith("aten::") or row["Name"].startswith("torch."))
        check("GPU time named by operator", named > 0.99 * whole, f"{100 * named / max(whole, 1):.2f} %", ">= 99 %")
        modules = self.rows("graph.tacho", "module", "--instances")
        layers = sum(row["SelfDeviceNs"] for row in modules if ".layers." in row["Name"])
        check("GPU time of the encoder's layers", layers > 0.8 * whole, f"{100 * layers / max(whole, 1):.1f} %", "> 80 %")
        print(text)
        # Launches as one span, divided by the nodes of the run above.
        self.trace("spans.tacho", self.model("graph", "--steps", "400"))
        divided = run(self.tacho, "stats", self.work / "spans.tacho", "--by", "operator", "--graph-nodes", self.work / "graph.tacho")
        said = [line for line in divided.stdout.splitlines() if "estimated" in line or "not in" in line]
        check("spans divided: said", len(said) == 1 and " 400 launches" in said[0] and "estimated" in said[0], " ".join(said))
        answer = json.loads(run(self.tacho, "stats", self.work / "spans.tacho", "--by", "operator", "--output-format", "json", "--graph-nodes",
                                self.work / "graph.tacho").stdout)
        titles = [c["title"] if isinstance(c, dict) else c for c in answer["columns"]]
        spans = [dict(zip(titles, row)) for row in answer["rows"]]
        # Only operators in the graph: the model is made once, however many steps follow.
        graph = {row["Name"] for row in rows if row["SelfKernels"] >= 50 and row["Name"] != "aten::copy_"}
        own = {row["Name"]: row["SelfDeviceNs"] for row in spans if row["Name"] in graph}
        shares = {row["Name"]: row["SelfDeviceNs"] for row in rows if row["Name"] in graph}
        worst = max(abs(own.get(name, 0) / sum(own.values()) - share / sum(shares.values())) for name, share in shares.items())
        check("spans divided: greatest difference of an operator's share", worst < 0.03, f"{100 * worst:.2f} %", "< 3 %")
        # Without operators: by the Python line that was captured.
        run(self.tacho, "trace", "-q", "--overwrite", "-o", self.work / "lines.tacho", "--sampler", "timer", "--graph-trace", "node", "--",
            *self.model("graph", "--steps", "50"))
        stacks = self.rows("lines.tacho", "stack")
        nodes = self.sql("lines.tacho", "SELECT sum(duration) FROM tacho.dispatch WHERE graph_node != 0")
        whole = int((nodes["rows"] if isinstance(nodes, dict) else nodes)[0][0])
        captured = sum(row["GpuSelfNs"] for row in stacks if "(captured in a graph)" in row["Name"])
        check("kernels of the graph below lines that were captured", captured > 0.99 * whole, f"{100 * captured / max(whole, 1):.2f} %", ">= 99 %")
        modelled = sum(row["GpuSelfNs"] for row in stacks if "(captured in a graph)" in row["Name"] and "torch_models.py:" in row["Name"])
        check("of these, through the model's own lines", modelled > 0.99 * captured, f"{100 * modelled / max(captured, 1):.2f} %", ">= 99 %")
        print(run(self.tacho, "stats", self.work / "lines.tacho", "--by", "line", "--top", "10").stdout)

    def kinds(self):
        # Nodes by hand, a child graph, conditional nodes, an update, another thread: the program says what each operator made.
        program = pathlib.Path(self.options.build).resolve() / "tests" / "device" / "cuda_graph_kinds"
        if program.exists():
            # --torch-trace wants a Python program: one that becomes this one.
            program = [sys.executable, "-c", "import os, sys; os.execv(sys.argv[1], sys.argv[1:])", program, "10"]
            made = self.trace("made.tacho", program, "--graph-trace", "node").stdout
            wanted = {name: int(kernels) for name, kernels in (line.split() for line in made.splitlines())}
            found = {row["Name"]: row["SelfKernels"] for row in self.rows("made.tacho", "operator") if row["SelfKernels"]}
            check("graphs by hand, within each other, conditional, updated, cloned: kernels by operator", wanted == found and len(wanted) == 9,
                  wanted if wanted == found else f"{found} instead of {wanted}")
            # As spans: named after all their nodes, those of graphs within graphs too.
            self.trace("spans.tacho", program)
            answer = self.sql("spans.tacho", "SELECT DISTINCT name FROM tacho.dispatch")
            names = {row[0] for row in (answer["rows"] if isinstance(answer, dict) else answer)}
            wanted = {"graph of 3 nodes: add x2, scale", "graph of 2 nodes: add, scale", "graph of 1 node: add", "graph of 1 node: conditional"}
            check("spans of graphs are named after the nodes of inner graphs", names == wanted, sorted(names))
        else:
            record("graphs by hand, within each other, conditional, updated, cloned", f"{program} is missing", "", "SKIPPED")
        self.trace("kinds.tacho", self.model("graph-kinds", "--steps", "30"), "--graph-trace", "node")
        text = run(self.tacho, "stats", self.work / "kinds.tacho", "--by", "operator").stdout
        unnamed = [line for line in text.splitlines() if "nodes of CUDA graphs" in line]
        check("graphs in pieces, of threads, captured again: nodes have operators", not unnamed, " ".join(unnamed))
        rows = self.rows("kinds.tacho", "operator")
        whole = sum(row["SelfDeviceNs"] for row in rows)
        named = sum(row["SelfDeviceNs"] for row in rows if row["Name"].startswith("aten::") or row["Name"].startswith("torch."))
        check("GPU time named by operator", named > 0.99 * whole, f"{100 * named / max(whole, 1):.2f} %", ">= 99 %")
        linear = sum(row["SelfKernels"] for row in rows if row["Name"] in ("aten::addmm", "aten::_addmm_activation"))
        check("kernels of linear layers in every replay", linear >= 30 * (4 * 2 + 4 * 2), linear, f">= {30 * 16}")
        print("\n".join(text.splitlines()[:14]))

    def compiled(self):
        for name in ("compiled", "compiled-graphs"):
            options = ["--graph-trace", "node"] if name == "compiled-graphs" else []
            self.trace(f"{name}.tacho", self.model(name, "--steps", "6"), *options)
            rows = self.rows(f"{name}.tacho", "operator")
            fused = [row for row in rows if row["Name"].startswith("triton_") and row["SelfKernels"]]
            check(f"{name}: inductor's kernels are operators", len(fused) > 2, f"{len(fused)} kinds")
            told = [row for row in fused if "aten" in row["MadeOf"]]
            check(f"{name}: they say which ATen operators they fuse", fused and len(told) == len(fused),
                  told[0]["MadeOf"][:160] if told else (fused[0]["MadeOf"] if fused else ""))
            lines = [row for row in fused if "torch_models.py:" in row["MadeOf"]]
            check(f"{name}: and which lines of the model", len(lines) > 0, f"{len(lines)} of {len(fused)}")
            whole = sum(row["SelfDeviceNs"] for row in rows)
            nothing = sum(row["SelfDeviceNs"] for row in rows if row["Name"] == "(no operator)")
            check(f"{name}: GPU time within an operator", nothing < 0.01 * whole, f"{100 - 100 * nothing / max(whole, 1):.2f} %",
                  "> 99 %")
            print(run(self.tacho, "stats", self.work / f"{name}.tacho", "--by", "operator", "--top", "12").stdout)

    def hand(self):
        for module in ("triton", "cupy"):
            if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode:
                record(f"{module}: kernels launched by hand", f"not measured: this Python has no {module}", "", "SKIPPED")
                continue
            program = HERE / "hand_launched.py"
            file = f"hand-{module}.tacho"
            printed = run(self.tacho, "trace", "-q", "--overwrite", "-o", self.work / file, "--sampler", "timer", "--", sys.executable, program,
                          module).stdout
            # The program's own report: "hand_launched.py:LINE KERNEL LAUNCHES".
            stacks = self.rows(file, "stack")
            said = [line.split() for line in printed.splitlines()]
            right = 0
            for place, kernel, launches in said:
                rows = self.sql(file, f"SELECT count(*), sum(duration) FROM tacho.dispatch WHERE name LIKE '%{kernel}%'")
                count, whole = (rows["rows"] if isinstance(rows, dict) else rows)[0]
                at = sum(row["GpuSelfNs"] for row in stacks if kernel in row["Name"] and re.search(rf"{re.escape(place)}\b", row["Name"]))
                right += int(count) == int(launches) and at == int(whole)
                print(f"    {place} {kernel}: {count} of {launches} launches, {at} of {whole} ns of GPU time")
            check(f"{module}: all GPU time at the lines that launched it", right == 3 and len(said) == 3, f"{right} of 3 lines")
            print(run(self.tacho, "stats", self.work / file, "--by", "line", "--top", "10").stdout)

    def profile(self):
        link = self.work / "rocprof-compute"
        link.symlink_to(self.tacho)
        command = [sys.executable, MODELS, "mlp", "--steps", "1"]
        run(link, "--experimental", "profile", "--name", "mlp", "--torch-trace", "-b", "2", "--no-roof", "--", *command, cwd=self.work)
        folder = next((self.work / "workloads" / "mlp").iterdir())
        names = sorted(path.name for path in folder.iterdir() if path.name.startswith("torch_trace"))
        check("profile: files of operators", any("marker_api_trace" in name for name in names) and
              any("counter_collection" in name for name in names), names)
        listed = run(link, "--experimental", "analyze", "-p", folder, "--list-torch-operators").stdout
        check("profile: operators are listed", "nn.Module.Mlp.forward/nn.Module.Linear.forward/torch.nn.functional.linear" in listed)
        print("\n".join(listed.splitlines()[:14]))
        check("profile: consolidated.csv", (folder / "torch_trace" / "consolidated.csv").exists())
        text = run(link, "--experimental", "analyze", "-p", folder, "--torch-operator", "*/*linear", "-b", "2").stdout
        check("profile: tables by operator", "torch.nn.functional.linear" in text and len(text) > 500, f"{len(text)} characters")
        # A graph is measured as a whole; its operators are listed.
        run(link, "--experimental", "profile", "--name", "graph", "--torch-trace", "-b", "2", "--no-roof", "--", sys.executable, MODELS, "graph",
            "--steps", "3", cwd=self.work)
        folder = next((self.work / "workloads" / "graph").iterdir())
        listed = run(link, "--experimental", "analyze", "-p", folder, "--list-torch-operators").stdout
        print(listed)
        check("profile: what is in the graph", "Graph 1: graph of 110 nodes" in listed and "3 launches" in listed)
        kernels = sum(int(line.split("│")[3]) for line in listed.partition("Graph 1:")[2].splitlines() if line.count("│") == 5 and "%" not in line)
        check("profile: kernels of a launch, by operator", kernels == 110, kernels, "110")
        check("profile: within modules", "nn.Module.Encoder.forward/" in listed.partition("Graph 1:")[2])
        refused = run(link, "--experimental", "analyze", "-p", folder, "--torch-operator", "*/aten::nothing", code=None).stderr
        check("profile: an operator that is nowhere", "no operator matches" in refused, refused.strip()[:160])
        for extra in (["-k", "elementwise"], ["--iteration-multiplexing", "kernel"]):
            run(link, "--experimental", "profile", "--name", "m" + extra[0].strip("-"), "--torch-trace", "-b", "2", "--no-roof", *extra,
                "--", *command, cwd=self.work)
            check(f"profile: with {' '.join(extra)}", True)

    def cost(self):
        for name, steps in (("transformer", 60), ("resnet50", 40), ("graph", 3000)):
            if self.options.models and name not in self.options.models.split(","):
                continue
            if missing(name):
                record(f"{name}: cost", "not measured", "", "SKIPPED")
                continue
            command = self.model(name, "--steps", str(steps), "--warmup", "10", "--time")
            nodes = ["--graph-trace", "node"] if name == "graph" else []
            # Alone, tacho without the option, with it, torch.profiler.
            ways = {"alone": command,
                    "trace": [self.tacho, "trace", "-q", "--overwrite", "-o", self.work / "c.tacho", *nodes, "--", *command],
                    "operators": [self.tacho, "trace", "-q", "--overwrite", "-o", self.work / "c.tacho", "--torch-trace", *nodes, "--",
                                  *command],
                    "profiler": [*command, "--profile-time"]}
            seconds = collections.defaultdict(list)
            for _ in range(self.options.pairs):
                for way in random.sample(list(ways), len(ways)):
                    seconds[way].append(float(run(*ways[way]).stdout.split()[-1]))
            middle = {way: statistics.median(values) for way, values in seconds.items()}
            for way in ("trace", "operators", "profiler"):
                record(f"{name}: {way} against alone", f"{middle[way] / middle['alone']:.3f} x")
            if name == "graph":
                ratio = middle["operators"] / middle["trace"]
                check(f"{name}: naming at capture adds to replays", ratio < 1.005, f"{100 * (ratio - 1):+.2f} %", "<= 0.5 %")
            else:
                ratio = middle["operators"] / middle["profiler"]
                check(f"{name}: --torch-trace against torch.profiler", ratio <= 0.9, f"{ratio:.3f} x", "<= 0.9 x")


def innermost_operators(path):
    """[kernels, us of kernels, copies and fills] by the innermost cpu_op around the call that launched the kernel, from torch.profiler's file alone."""
    events = json.loads(pathlib.Path(path).read_text())["traceEvents"]
    threads, kernels, calls = collections.defaultdict(list), [], {}
    for event in events:
        if event.get("ph") != "X":
            continue
        category = event.get("cat")
        if category == "cpu_op":
            threads[event["pid"], event["tid"]].append((event["ts"], 0, -event["dur"], event))
        elif category in ("cuda_runtime", "cuda_driver") and "correlation" in event.get("args", {}):
            if event["args"]["correlation"] not in calls:
                calls[event["args"]["correlation"]] = "(no operator)"
                threads[event["pid"], event["tid"]].append((event["ts"], 1, 0, event))
        elif category in ("kernel", "gpu_memcpy", "gpu_memset"):
            kernels.append(event)
    for rows in threads.values():
        rows.sort(key=lambda row: row[:3])
        stack = []
        for begin, call, _, event in rows:
            while stack and stack[-1]["ts"] + stack[-1]["dur"] < begin:
                stack.pop()
            if call:
                calls[event["args"]["correlation"]] = stack[-1]["name"] if stack else "(no operator)"
            else:
                stack.append(event)
    found = collections.defaultdict(lambda: [0, 0.0])
    for kernel in kernels:
        name = calls.get(kernel["args"].get("correlation"), "(no operator)")
        if name.startswith("autograd::engine::"):
            name = "autograd engine"
        found[name][0] += kernel["cat"] == "kernel"
        found[name][1] += kernel["dur"]
    return found


def main():
    global DEADLINE
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=HERE.parent.parent / "build")
    parser.add_argument("--out", default=".")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="shapes: three runs, three minutes")
    parser.add_argument("--models", default="", metavar="A,B", help="cost: only these of transformer, resnet50, graph")
    parser.add_argument("sections", nargs="*", default=[])
    options = parser.parse_args()
    session = Session(options)
    for section in options.sections or LIMITS:
        print(f"{section}:", flush=True)
        DEADLINE = time.monotonic() + LIMITS[section]
        try:
            getattr(session, section)()
        except Exception as error:  # the next section goes on
            record(section, f"{type(error).__name__}: {error}"[:1200], "", "FAILED")
    print("\nverdicts")
    width = max(len(row[0]) for row in TABLE)
    for what, measured, goal, verdict in TABLE:
        print(f"{what:{width}}  {verdict:8} {measured[:110]}  {goal}")
    failed = sum(row[3] == "FAILED" for row in TABLE)
    print(f"{len(TABLE)} lines, {failed} failed")
    pathlib.Path(options.out, "torch_ops.json").write_text(json.dumps(TABLE, indent=1))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
