"""tacho roofline on what this machine has, its refusals, and the roofline page that rocprof-compute's personality leaves."""
import csv
import json
import os
import re
import shutil
import subprocess
import unittest

from harness import BUILD, Case, DATA, TACHO, need_data

PERSONALITY = BUILD / "personalities" / "rocprof-compute"


class Roofline(Case):
    def run_it(self, *args, program=TACHO, cwd=None):
        environment = dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"))
        return subprocess.run([str(program), *map(str, args)], capture_output=True, text=True, check=False, timeout=300,
                              cwd=cwd or self.folder, env=environment)

    def devices(self):
        listed = self.run_it("roofline", "--list")
        return listed.stdout.splitlines()[1:] if listed.returncode == 0 else []

    def test_measures_writes_and_keeps(self):
        if not self.devices():
            self.skipTest("no device to measure")
        out = self.folder / "roofline.csv"
        done = self.run_it("roofline", "--only", "FP32Flops", "L1Bw", "--experiments", "3", "-o", out)
        # A busy machine may look faster than its measured clock allows: that is an error of the measurement, and told.
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertIn("Empirical Roofline Calculation", done.stderr)
        self.assertRegex(done.stderr, r"Peak FLOPs \(FP32\), GPU ID: 0, workgroupSize:\d+, workgroups:\d+, experiments:\d+, "
                                      r"FLOP:\d+, duration:[0-9.e+-]+ ms, mean:[0-9.]+ GFLOPS, stdev=[0-9.]+ GFLOPS")
        with open(out, newline="") as file:
            row = next(csv.DictReader(file))
        self.assertEqual(list(row)[:4], ["device", "HBMBw", "HBMBwLow", "hbmBwHigh"])
        self.assertGreater(float(row["L1Bw"]), 1)
        self.assertTrue(row["DeviceName"] and row["Driver"])
        again = self.run_it("roofline", "--only", "L1Bw", "-o", out)
        self.assertEqual(again.returncode, 1)
        self.assertIn("exists", again.stderr)
        quiet = self.run_it("roofline", "-q", "--only", "L1Bw", "--experiments", "2", "--format", "json")
        document = json.loads(quiet.stdout)
        self.assertEqual(document["schema"], "tacho-roofline/1")
        ceiling = document["devices"][0]["ceilings"][0]
        self.assertEqual(ceiling["column"], "L1Bw")
        self.assertAlmostEqual(ceiling["mean"], ceiling["work"] / ceiling["duration_ns"], delta=0.5 * ceiling["mean"])

    def test_refusals(self):
        for args, expected in [(("--device", "99"), "this machine has"), (("--only", "Nope"), "none of its benchmarks"),
                               (("--experiments", "1"), "experiments"), (("--format", "yaml"), "format"),
                               (("-o", self.folder / "no" / "such" / "x.csv"), "no")]:
            if not self.devices() and args[0] in ("--device", "--only", "-o"):
                continue
            done = self.run_it("roofline", *args)
            self.assertEqual(done.returncode, 1, (args, done.stderr))
            self.assertIn(expected, done.stderr)
            self.assertEqual(done.stdout, "") if args[0] != "--only" else None

    def test_personality_leaves_the_plot_here(self):
        need_data()
        workload = DATA / "workloads" / "synth_a" / "MI200"
        copy = self.folder / "copy"
        shutil.copytree(workload, copy)
        before = sorted(p.name for p in copy.rglob("*"))
        here = self.folder / "here"
        here.mkdir()
        for name in ("roofline_MI200.html", "roofline_MI200.1.html"):
            done = self.run_it("analyze", "-p", copy, "-b", "2", "4", program=PERSONALITY, cwd=here)
            self.assertEqual(done.returncode, 0, done.stderr)
            path = re.search(r"Roofline plot: (.*)", done.stderr).group(1)
            self.assertEqual(path, str(here.resolve() / name))
            page = (here / name).read_text()
            document = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))
            self.assertEqual([t["id"] for t in document["tables"] if t["id"].startswith("2.")], [])
            self.assertGreater(len(document["roofline"]["kernels"]), 2)
            self.assertIn("hbm", document["roofline_ceilings_dev0"]["FP32"])
        self.assertEqual(before, sorted(p.name for p in copy.rglob("*")), "never into the workload")
        (copy / "roofline.csv").unlink()
        done = self.run_it("analyze", "-p", copy, "-b", "2", "4", program=PERSONALITY, cwd=here)
        self.assertNotIn("Roofline plot", done.stderr)
        plain = self.run_it("analyze", "-p", workload, "-b", "2", cwd=here)
        self.assertNotIn("Roofline plot", plain.stderr)
        self.assertEqual(len(list(here.iterdir())), 2)

    def test_bounds_in_json_and_text(self):
        need_data()
        workload = DATA / "workloads" / "synth_a" / "MI200"
        document = json.loads(self.run_it("analyze", "-p", workload, "--output-format", "json").stdout)
        roofs = document["roofline_ceilings_dev0"]
        points = document["roofline"]["kernels"]
        self.assertEqual(document["roofline"]["definition"].split(":")[0], "rocprof-compute 3.3")
        self.assertAlmostEqual(sum(p["share"] for p in points), 100, delta=1e-9)
        seen = set()
        for i, point in enumerate(points):
            self.assertEqual(point["performance"], document["roofline_ai"]["kernels"]["ai_hbm"][1][i])
            for kind, bound in point["bounds"].items():
                limits = {level: roofs[kind][level][2] * point["intensity"][level] for level in ("hbm", "l2", "l1", "lds")
                          if level in roofs[kind] and point["intensity"][level]}
                compute = max((roofs[kind][r][2], r) for r in ("valu", "mfma") if r in roofs[kind])
                limits[compute[1]] = compute[0]
                name = min(limits, key=limits.get)
                seen.add(name)
                self.assertEqual(bound["roof"], name)
                self.assertAlmostEqual(bound["attainable"], limits[name], delta=1e-9 * limits[name])
                self.assertAlmostEqual(bound["headroom"], limits[name] / point["performance"], delta=1e-9 * bound["headroom"])
        self.assertTrue(seen)
        text = self.run_it("analyze", "-p", workload, "-b", "4").stdout
        self.assertIn("headroom", text)
        self.assertIn("counted as: rocprof-compute 3.3", text)

    def test_damaged_ceilings(self):
        need_data()
        copy = self.folder / "copy"
        shutil.copytree(DATA / "workloads" / "synth_a" / "MI200", copy)
        lines = (copy / "roofline.csv").read_text().splitlines()
        for text, expected in [("", None), (lines[0], None), (lines[0] + "\n0,1\n", "another number of fields"),
                               (lines[0] + "\n" + lines[1].replace(lines[1].split(",")[1], "fast", 1), "not a number"),
                               (lines[0] + "\n" + ",".join(["0", "-5"] + lines[1].split(",")[2:]), "below zero")]:
            (copy / "roofline.csv").write_text(text)
            done = self.run_it("analyze", "-p", copy, "-b", "4")
            self.assertEqual(done.returncode, 0, done.stderr)
            if expected:
                self.assertIn(expected, done.stderr)


if __name__ == "__main__":
    unittest.main()
