"""Call stacks end to end: attribution of device time to lines of Python, folded stacks, speedscope, flame graphs in a
browser, PyTorch, sampling from outside, and what goes wrong."""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import harness
import proto
from harness import BUILD, SOURCE, TACHO, TARGETS

TARGETS_SOURCE = SOURCE / "tests" / "e2e" / "targets"
LAUNCHES = TARGETS_SOURCE / "launches.py"
# Numbers of the lines that launch.
HEAVY, LIGHT, COPY = (next(number for number, text in enumerate(LAUNCHES.read_text().splitlines(), 1) if text.endswith("# " + word)) for word in ("heavy", "light", "copy"))
PYTHON = harness.DEBIAN_PYTHON
SHARES = BUILD / "tests" / "shares_nofp"
FORBID = TARGETS / "forbid"


def have(module):
    return subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True).returncode == 0


def interpreters():
    """Pythons of this machine whose frames can be read, one a version."""
    found = {}
    for path in [pathlib.Path(PYTHON), *sorted(pathlib.Path.home().glob(".pyenv/versions/*/bin/python3"))]:
        result = subprocess.run([path, "-c", "import sys; print(*sys.version_info[:3], sep='.')"], capture_output=True, text=True)
        version = result.stdout.strip()
        if result.returncode == 0 and (3, 9) <= tuple(map(int, version.split(".")[:2])) <= (3, 13):
            found.setdefault(version, str(path))
    return list(found.values())


class Stacks(harness.Case):
    def rows(self, by, file="t.tacho", *more):
        result = self.run_command(TACHO, "stats", file, "--by", by, "--output-format", "json", *more)
        titles = ["Name", "Samples", "SelfNs", "TotalNs", "GpuSelfNs", "GpuTotalNs", "Kind", "File", "Line", "Module"]
        return [dict(zip(titles, row)) for row in json.loads(result.stdout)["rows"]]

    def sample(self, *command, options=(), output="t.tacho", **more):
        return self.run_command(TACHO, "sys", "sample", "-q", "-o", output, *options, "--", *command, **more)

    def device_ns(self, file="t.tacho"):
        total = 0
        for by in ("kernel", "copy", "fill"):
            for row in self.stats(by, file).values():
                total += row["TotalDurationNs"]
        return total

    @unittest.skipUnless(have("pyopencl"), "no python3-pyopencl")
    def test_device_time_by_line_of_python(self):
        self.sample(PYTHON, LAUNCHES, "40")
        lines = {row["Line"]: row for row in self.rows("line") if row["File"].endswith("launches.py") and row["GpuTotalNs"]}
        whole = self.device_ns()
        self.assertEqual(sum(row["GpuSelfNs"] for row in self.rows("line")), whole, "the lines' device time is the kernels' total")
        self.assertEqual(sum(row["GpuSelfNs"] for row in self.rows("stack")), whole)
        for line in (HEAVY, LIGHT, COPY):
            self.assertIn(line, lines)
        self.assertGreater(lines[HEAVY]["GpuTotalNs"], 2 * lines[LIGHT]["GpuTotalNs"])
        kernels = self.stats("kernel")["work"]["TotalDurationNs"]
        self.assertEqual(lines[HEAVY]["GpuTotalNs"] + lines[LIGHT]["GpuTotalNs"], kernels)
        self.assertEqual(lines[COPY]["GpuTotalNs"], sum(row["TotalDurationNs"] for row in self.stats("copy").values()))
        text = self.run_command(TACHO, "stats", "t.tacho", "--by", "line").stdout.decode()
        self.assertIn("100.0 % by the stack read at its launch", text)
        # The chain: line of Python, API call, kernel.
        stacks = [row["Name"] for row in self.rows("stack") if row["GpuSelfNs"]]
        self.assertTrue(any(re.search(rf"heavy \(launches\.py:{HEAVY}\);.*clEnqueueNDRangeKernel;work$", stack) for stack in stacks), stacks)
        # The same in Perfetto: the call says where it comes from, an arrow leads to the kernel.
        self.run_command(TACHO, "export", "t.tacho", "-f", "pftrace")
        trace = proto.Perfetto(self.folder / "t.pftrace")
        self.assertIn("python", trace.annotations)
        self.assertTrue(any(re.search(rf"heavy \(launches\.py:{HEAVY}\)", text) for text in trace.texts))
        # Without them the nearest sample is the best there is, and said to be.
        self.sample(PYTHON, LAUNCHES, "40", options=["--no-launch-stacks", "-f", "1000"], output="n.tacho")
        text = self.run_command(TACHO, "stats", "n.tacho", "--by", "line").stdout.decode()
        self.assertRegex(text, r"[\d.]+ % by the nearest sample")
        self.assertEqual(sum(row["GpuSelfNs"] for row in self.rows("line", "n.tacho")), self.device_ns("n.tacho"))

    def test_launches_of_threads_that_python_waits_for(self):
        # As PyTorch's autograd: the kernels of a backward pass belong to the line that called backward(), whichever line it
        # was before; not when two threads wait in backward passes, nor when the thread waits elsewhere.
        for python in interpreters():
            with self.subTest(python):
                kernels, lines = self.waited_for(python)
                lost = re.search(r"sample records?: pool full", self.run_command(TACHO, "info", "t.tacho").stdout.decode())
                for name in ("first", "second"):
                    self.assertTrue(lines[name] == kernels[name] or (lost and lines[name] < kernels[name]), (name, lines, kernels))
                self.assertEqual(set(lines), {"first", "second"})
                for stack in (row["Name"] for row in self.rows("stack") if row["GpuSelfNs"]):
                    if "of_two" in stack or "of_nobody" in stack:
                        self.assertNotIn(".py", stack, "whose work it is cannot be told")
                    elif not lost:
                        self.assertRegex(stack, r"step \(autograd\.py:\d+\);backward \(__init__\.py:\d+\);_engine_run_backward \(__init__\.py:\d+\);clEnqueueNDRangeKernel;")

    def test_launches_of_threads_that_python_waits_for_in_cuda(self):
        for python in interpreters()[-1:]:
            kernels, lines = self.waited_for(python, "cuda", env={"CUDA_HOME": str(BUILD / "tests" / "fake_cuda")})
            # Exactly these are known; the stand-in gives all its records one thread, so that others may be near a sample of it.
            if re.search(r"sample records?: pool full", self.run_command(TACHO, "info", "t.tacho").stdout.decode()):
                continue
            for name in ("first", "second"):
                self.assertGreaterEqual(lines[name], kernels[name])
            text = self.run_command(TACHO, "stats", "t.tacho", "--by", "line").stdout.decode()
            exact = float(re.search(r"([\d.]+) % by the stack read at its launch", text).group(1))
            self.assertAlmostEqual(exact, 100 * (kernels["first"] + kernels["second"]) / sum(kernels.values()), delta=0.06)

    def waited_for(self, python, *words, env=None):
        """Device time by kernel, and that below the lines that asked for it by those lines' comments."""
        folder = TARGETS_SOURCE / "autograd"
        comments = {number: text.rsplit("# ", 1)[1] for number, text in enumerate((folder / "autograd.py").read_text().splitlines(), 1) if re.search(r"  # \w+$", text)}
        self.sample(python, folder / "autograd.py", TARGETS / "autograd_engine.so", "12", *words, options=["--overwrite", "-f", "25"],
                    env={"PYTHONDONTWRITEBYTECODE": "1", **(env or {})})
        kernels = {name: row["TotalDurationNs"] for name, row in self.stats("kernel").items()}
        self.assertEqual(set(kernels), {"first", "second", "of_two", "of_nobody"})
        rows = self.rows("line")
        self.assertEqual(sum(row["GpuSelfNs"] for row in rows), sum(kernels.values()))
        return kernels, {comments[row["Line"]]: row["GpuTotalNs"] for row in rows if row["File"].endswith("autograd.py") and row["GpuTotalNs"] and row["Line"] in comments}

    @unittest.skipUnless(have("torch"), "no python3-torch")
    def test_torch(self):
        self.sample(PYTHON, SOURCE / "examples" / "train_cpu.py", "--steps", "4", "--width", "128", options=["--trace", "-f", "250"], timeout=300)
        functions = {row["Name"]: row for row in self.rows("function")}
        self.assertTrue(any("at::_ops::" in name for name in functions), "torch's operators are on the stacks")
        self.assertIn("main", functions)
        # By line, time in libraries counts for the line that called them: own times add up to the whole, and the lines of Python
        # that compute come before those of C libraries.
        by_line = self.rows("line")
        self.assertEqual(sum(row["SelfNs"] for row in by_line), sum(row["SelfNs"] for row in self.rows("function")))
        self.assertTrue(any(row["SelfNs"] > 0 and row["Name"] == "Linear.forward" for row in by_line))
        lines = [row for row in self.rows("line") if row["File"].endswith("train_cpu.py")]
        self.assertTrue(lines)
        chain = [row["Name"] for row in self.rows("stack")]
        self.assertTrue(any(re.search(r"main \(train_cpu\.py:\d+\).*at::_ops::", stack) for stack in chain))
        self.assertIn("main", proto.Perfetto(self.folder / "t.pftrace").on("Thread 0 (S)"))

    def test_folded_and_speedscope(self):
        self.run_command(TACHO, "sys", "sample", "-q", "-f", "250", "-o", "t.tacho", "--", SHARES, "3000")
        self.run_command(TACHO, "export", "t.tacho", "-f", "folded,speedscope")
        counts = collections.Counter()
        for line in (self.folder / "t.folded").read_text().splitlines():
            stack, count = line.rsplit(" ", 1)
            counts[stack.split(";")[-1]] += int(count)
            if stack != "[before main]" and stack != "[not sampled]":
                # What runs at the end is called by exit(), when main() has returned.
                self.assertTrue({"main", "exit"} & set(stack.split(";")), stack)
        total = sum(counts.values())
        profile = json.loads((self.folder / "t.speedscope.json").read_text())
        (sampled,) = profile["profiles"]
        names = [frame["name"] for frame in profile["shared"]["frames"]]
        self.assertEqual(sampled["endValue"], sum(sampled["weights"]))
        self.assertAlmostEqual(sampled["endValue"] / 1000, total, delta=total * 0.001 + 50)
        leaves = collections.Counter()
        for stack, weight in zip(sampled["samples"], sampled["weights"]):
            leaves[names[stack[-1]]] += weight
        self.assertAlmostEqual(leaves["heavy"] / sampled["endValue"], counts["heavy"] / total, places=2)
        by_function = {row["Name"]: row for row in self.rows("function")}
        self.assertEqual(by_function["heavy"]["SelfNs"], leaves["heavy"])
        self.assertEqual(by_function["middle"]["TotalNs"], by_function["heavy"]["TotalNs"] + by_function["medium"]["TotalNs"] + by_function["light"]["TotalNs"] + by_function["middle"]["SelfNs"])
        self.trace("/bin/true", output="none.tacho")
        for command in (["flame", "none.tacho"], ["export", "none.tacho", "-f", "folded"]):
            self.one_sentence(self.run_command(TACHO, *command, code=1), "tacho sys sample")
        self.assertIn(b"no call stacks", self.run_command(TACHO, "stats", "none.tacho", "--by", "function").stdout)

    # ---- sampling from outside

    def test_perf(self):
        result = self.sample(SHARES, "4000", options=["--sampler", "perf", "-f", "500"])
        text = self.run_command(TACHO, "info", "t.tacho").stdout.decode()
        if "does not permit" in text or "cannot sample" in text:
            self.skipTest("perf_event is not to be had here")
        functions = {row["Name"]: row for row in self.rows("function")}
        whole = sum(row["SelfNs"] for row in functions.values())
        shares = {name: functions[name]["TotalNs"] / whole for name in ("heavy", "medium", "light")}
        self.assertGreater(sum(shares.values()), 0.9)
        self.assertAlmostEqual(shares["heavy"], 0.7, delta=0.08)
        self.assertIn("main", functions, "unwound without frame pointers")
        self.assertEqual(result.returncode, 0)
        # One process, though libtacho.so sees it too.
        self.assertEqual(text.count("Process "), 1, text)
        # A static program, which cannot load anything, and its children.
        if shutil.which("cc") is None:
            return
        self.run_command("cc", "-O1", "-static", "-o", "still", SOURCE / "tests" / "capture" / "source" / "sampler" / "shares.c", "-lpthread")
        self.sample("./still", "3000", options=["--sampler", "perf", "-f", "500"], output="s.tacho")
        self.assertGreater({row["Name"]: row for row in self.rows("function", "s.tacho")}["heavy"]["TotalNs"], 0)
        self.sample("/bin/sh", "-c", "./still 2000; ./still 1000", options=["--sampler", "perf", "-f", "500"], output="c.tacho")
        info = self.run_command(TACHO, "info", "c.tacho").stdout.decode()
        self.assertGreaterEqual(info.count("still"), 2, info)
        self.one_sentence(self.sample(SHARES, "10", options=["--sampler", "perf", "-S", "realtime"], output="w.tacho", code=125), "--sampler timer")

    def test_forbidden(self):
        # As in a strict container: said once, the rest is recorded; the sampler in the program needs none of it.
        self.run_command(FORBID, TACHO, "sys", "sample", "-q", "--sampler", "perf", "-o", "t.tacho", "--", SHARES, "500")
        info = self.run_command(TACHO, "info", "t.tacho").stdout.decode()
        self.assertEqual(info.count("does not permit sampling from outside"), 1, info)
        self.assertFalse(self.rows("function"))
        self.run_command(FORBID, TACHO, "sys", "sample", "-q", "-f", "250", "-o", "u.tacho", "--", SHARES, "3000")
        self.assertIn("heavy", {row["Name"] for row in self.rows("function", "u.tacho")})

        # The frames of a thread that waits for a launch are read by a call that is forbidden here: nothing is guessed.
        self.run_command(FORBID, TACHO, "sys", "sample", "-q", "-o", "a.tacho", "--", PYTHON, TARGETS_SOURCE / "autograd" / "autograd.py", TARGETS / "autograd_engine.so", "2",
                         env={"PYTHONDONTWRITEBYTECODE": "1"})
        kernels = {name: row["TotalDurationNs"] for name, row in self.stats("kernel", "a.tacho").items()}
        self.assertEqual(set(kernels), {"first", "second", "of_two", "of_nobody"})
        rows = self.rows("line", "a.tacho")
        self.assertEqual(sum(row["GpuSelfNs"] for row in rows), sum(kernels.values()))
        self.assertFalse([row for row in rows if row["GpuTotalNs"] and row["File"].endswith("autograd.py")])

    def test_deep_recursion_of_python(self):
        (self.folder / "deep.py").write_text("import time\n"
                                             "def spin():\n"
                                             "    end = time.process_time() + 0.6\n"
                                             "    while time.process_time() < end:\n"
                                             "        pass\n"
                                             "def down(n):\n"
                                             "    if n:\n"
                                             "        return down(n - 1)\n"
                                             "    spin()\n"
                                             "down(900)\n")
        for python in interpreters():
            with self.subTest(python):
                self.sample(python, "deep.py", options=["-f", "250", "--overwrite"])
                stacks = [row for row in self.rows("stack") if ";spin (deep.py:" in row["Name"]]
                self.assertGreater(sum(row["SelfNs"] for row in stacks), 0.4e9)
                for row in stacks:  # the newest 128 frames, and a word about the others
                    self.assertGreaterEqual(row["Name"].count("down (deep.py:8);"), 100)
                    self.assertIn("down (deep.py:9);", row["Name"])
                    self.assertIn("[truncated];", row["Name"])

    def test_setuid(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make a setuid program for another user")
        # Root runs setuid programs with its own environment; as another user the loader drops LD_PRELOAD.
        program = self.folder / "setuid_shares"
        shutil.copy(SHARES, program)
        os.chown(program, 1, 1)
        program.chmod(0o4755)
        tacho, = self.for_everybody()
        result = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", tacho, "sys", "sample", "-q", "-o", "t.tacho", "--", program, "200"],
                                cwd=self.folder, capture_output=True, env={**os.environ, "HOME": str(self.folder)})
        self.assertEqual(result.returncode, 0, result.stderr)
        info = self.run_command(TACHO, "info", "t.tacho").stdout.decode()
        self.assertIn("setuid", info)

    # ---- the page

    def page(self, script, *words):
        """Runs a script of tests/e2e/flame_page.js's steps in a headless browser."""
        return self.run_command("node", SOURCE / "tests" / "e2e" / "flame_page.js", script, *words, env=self.browser())

    @unittest.skipUnless(have("pyopencl"), "no python3-pyopencl")
    def test_flame_page(self):
        self.sample(PYTHON, LAUNCHES, "40", options=["-f", "250"])
        self.sample(PYTHON, LAUNCHES, "10", options=["-f", "250"], output="o.tacho")
        self.assertEqual(self.run_command(TACHO, "flame", "t.tacho").stdout, b"t.html\n")
        self.one_sentence(self.run_command(TACHO, "flame", "t.tacho", "-o", "t.html", code=1), "t.html", "overwrite")
        self.run_command(TACHO, "flame", "t.tacho", "-b", "o.tacho", "-o", "diff.html")
        text = (self.folder / "t.html").read_text()
        self.assertNotRegex(text, r"(src|href)\s*=\s*[\"']https?:", "nothing is fetched")
        self.assertEqual(text.count("<script"), 2)
        report = json.loads(self.page("run", self.folder / "t.html", self.folder / "page.png").stdout)
        self.assertEqual(report["errors"], [])
        host, gpu, both = report["host"], report["gpu"], report["both"]
        self.assertEqual(host["boxes"][0]["label"], "all")
        self.assertTrue(any(box["part"] == "python" for box in host["boxes"]))
        kernels = [box for box in gpu["boxes"] if box["label"] == "work"]
        self.assertTrue(kernels and all(box["part"] == "device" for box in kernels))
        self.assertAlmostEqual(sum(box["w"] for box in gpu["boxes"] if box["part"] == "device"), gpu["boxes"][0]["w"], delta=4)
        self.assertGreater(len(both["boxes"]), len(gpu["boxes"]))
        for view in (host, gpu, both):
            self.nests(view["boxes"])
        self.assertAlmostEqual(report["zoomed"]["w"], gpu["boxes"][0]["w"], delta=2)
        self.assertRegex(report["matched"], r"[\d.]+ % in matches")
        self.assertEqual(report["noMatch"], "no match")
        self.assertIn("work", report["tip"])
        inverted = report["inverted"]["boxes"]
        self.assertTrue(any(box["depth"] == 1 and box["label"] == "work" for box in inverted), "callees first begins with the innermost")
        changes = json.loads(self.page("run", self.folder / "diff.html", self.folder / "diff.png").stdout)
        self.assertEqual(changes["errors"], [])
        self.assertIn("compared with", changes["title"])
        work = next(box for box in changes["gpu"]["boxes"] if box["label"] == "work")
        self.assertTrue(work["gpu"][0] > work["gpu"][1] > 0, "both runs are in the page")

    def test_interpreter_frames_can_be_shown(self):
        (self.folder / "sorting.py").write_text(
            "def key(x):\n    total = 0\n    for i in range(300):\n        total += i * x\n    return total\n"
            "def work():\n    for _ in range(60):\n        sorted(range(300), key=key)\nwork()\n")
        self.sample(PYTHON, self.folder / "sorting.py", options=["-f", "250"])
        self.run_command(TACHO, "flame", "t.tacho")
        report = json.loads(self.page("interpreter", self.folder / "t.html", self.folder / "page.png").stdout)
        self.assertEqual(report["errors"], [])
        self.assertIn("interpreter's own frames between the program's are hidden", report["note"])

        def between(boxes):
            """Native boxes with Python below and above."""
            python = [box for box in boxes if box["part"] == "python"]
            over = lambda low, high: low["depth"] < high["depth"] and low["x"] - 0.5 <= high["x"] and high["x"] + high["w"] <= low["x"] + low["w"] + 0.5
            return [box["label"] for box in boxes if box["part"] == "native" and any(over(low, box) for low in python) and any(over(box, high) for high in python)]

        self.assertEqual(between(report["hidden"]["boxes"]), [])
        self.assertTrue(between(report["shown"]["boxes"]))
        self.assertEqual(between(report["again"]["boxes"]), [])
        # The same time either way.
        for view in ("hidden", "shown", "again"):
            self.nests(report[view]["boxes"])
            self.assertEqual(report[view]["boxes"][0]["host"], report["hidden"]["boxes"][0]["host"])
        keys = [box for box in report["hidden"]["boxes"] if box["label"].startswith("key (sorting.py")]
        self.assertTrue(keys)

    def nests(self, boxes):
        """Every box lies above one of the level before it that is at least as wide."""
        for box in boxes:
            if box["depth"] > 0:
                self.assertTrue(any(below["depth"] == box["depth"] - 1 and below["x"] - 0.5 <= box["x"] and box["x"] + box["w"] <= below["x"] + below["w"] + 0.5 for below in boxes), box)


if __name__ == "__main__":
    harness.main()
