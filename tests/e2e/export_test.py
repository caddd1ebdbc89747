"""tacho export and tacho trace -f: files, names, refusals, memory."""
import csv
import json
import os
import pathlib
import re
import subprocess
import time

import harness
from harness import BUILD, SOURCE, TACHO

STEPS = harness.TARGETS / "opencl_steps"
EXPORT_DATA = BUILD / "bench" / "export_data"


class Export(harness.Case):
    def export(self, *words, code=0, **more):
        return self.run_command(TACHO, "export", *words, code=code, **more)

    def table(self, folder, name):
        with open(next((self.folder / folder).glob(f"*_{name}.csv")), newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def test_every_format_tells_the_same(self):
        self.trace(STEPS, "--steps", "5")
        written = self.export("t.tacho", "-f", "csv,json,pftrace", "-d", "out").stdout.decode().split()
        self.assertTrue(all((self.folder / name).exists() for name in written), written)
        self.assertEqual(len(written), len(list((self.folder / "out").iterdir())))
        kernels = self.table("out", "kernel_trace")
        events = json.loads((self.folder / "out" / "t.json").read_text())
        zero = events["metadata"]["boottimeOfZeroNanoseconds"]
        slices = [e for e in events["traceEvents"] if e.get("cat") == "kernel"]
        self.assertEqual(len(slices), 15)
        # Of one origin, on two clocks: CSV's is CLOCK_BOOTTIME, which the kernel slews, the JSON's runs on unslewed. By how much, the
        # trace itself says.
        clocks = json.loads(self.run_command(TACHO, "query", "t.tacho", "--dialect", "tacho", "--output-format", "json",
                                             "SELECT boottime - raw FROM clock WHERE boottime IS NOT NULL").stdout)["rows"]
        apart = max(row[0] for row in clocks) - min(row[0] for row in clocks)
        self.assertLess(apart, 1_000_000)
        for row, event in zip(kernels, slices):
            self.assertEqual(row["Kernel_Name"], event["name"])
            start, end = round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)
            self.assertAlmostEqual(int(row["Start_Timestamp"]), zero + start, delta=1 + apart)
            self.assertAlmostEqual(int(row["End_Timestamp"]), zero + end, delta=1 + apart)
        stats = self.stats("kernel")
        for row in self.table("out", "kernel_stats"):
            self.assertEqual((int(row["Calls"]), int(row["TotalDurationNs"])), (stats[row["Name"]]["Calls"], stats[row["Name"]]["TotalDurationNs"]))
        # An arrow from each launch to its kernel.
        self.assertEqual(sum(e["ph"] == "s" for e in events["traceEvents"] if e.get("cat") == "ac2g"), 17)

    def test_names(self):
        self.trace(STEPS)
        self.assertEqual(self.export("t.tacho", "-f", "json").stdout, b"t.json\n")
        self.assertEqual(self.export("t.tacho", "-f", "json").stdout, b"t.1.json\n")
        self.export("t.tacho", "-f", "json", "-o", "mine.x")
        self.one_sentence(self.export("t.tacho", "-f", "json", "-o", "mine.x", code=1), "mine.x", "--overwrite")
        self.export("t.tacho", "-f", "json", "-o", "mine.x", "--overwrite")
        text = self.export("t.tacho", "-f", "json", "-o", "/dev/stdout").stdout
        self.assertTrue(text.startswith(b'{"displayTimeUnit"'))
        self.export("t.tacho", "-f", "csv", "-d", "c")
        self.export("t.tacho", "-f", "csv", "-d", "c")
        self.assertEqual(len(list((self.folder / "c").glob("*_kernel_trace.csv"))), 2, "a default name gets a number when taken")

    def test_processes(self):
        self.trace(STEPS, "--fork", "3")
        self.export("t.tacho", "-f", "csv", "-d", "all")
        pids = {p.name.split("_")[0] for p in (self.folder / "all").glob("*_kernel_trace.csv")}
        self.assertEqual(len(pids), 3)
        pid = sorted(pids)[0]
        self.export("t.tacho", "-f", "csv,json", "-d", "one", "--pid", pid)
        self.assertEqual({p.name.split("_")[0] for p in (self.folder / "one").glob("*.csv")}, {pid})
        self.assertEqual({e["pid"] for e in json.loads((self.folder / "one" / "t.json").read_text())["traceEvents"] if e["ph"] == "X"}, {int(pid)})
        self.one_sentence(self.export("t.tacho", "-f", "csv", "--pid", "1", code=1), "no process 1")

    def test_mistakes(self):
        self.trace(STEPS)
        wrong = self.export("t.tacho", "-f", "jsn", code=1)
        self.one_sentence(wrong, "'json'")
        # The refusal lists the formats that the help and the document describe.
        known = wrong.stderr.decode().strip().split("formats are ")[1].split(", ")
        described = self.export("--help").stdout.decode()
        document = (SOURCE / "docs" / "commands" / "export.md").read_text()
        for name in known:
            self.assertRegex(described, rf"(?m)^  {name} ", "help")
            self.assertIn(f"\n| `{name}` |", document)
        self.assertIn("folded", known)
        self.one_sentence(self.export("t.tacho", "-f", ",", code=1), "no format")
        self.one_sentence(self.export("t.tacho", "-f", "csv", "-o", "x", code=1), "-d")
        self.one_sentence(self.export("t.tacho", "-f", "json,pftrace", "-o", "x", code=1), "-d")
        self.one_sentence(self.export("t.tacho", "-f", "json", "-o", "no/folder/x", code=1), "no/folder")
        self.one_sentence(self.export("none.tacho", "-f", "json", code=1), "none.tacho")
        self.one_sentence(self.export("t.tacho", "-f", "json", "--overwrit", code=1), "--overwrite")
        (self.folder / "garbage.tacho").write_bytes(os.urandom(5000))
        self.one_sentence(self.export("garbage.tacho", "-f", "json", code=1), "garbage.tacho")

    def test_no_room(self):
        self.trace(STEPS, "--steps", "2000")
        for form in ("csv", "json", "pftrace"):
            before = sorted(p.name for p in self.folder.iterdir())
            result = self.run_command("/bin/sh", "-c", f"ulimit -f 8; exec {TACHO} export t.tacho -f {form}", code=1)
            self.one_sentence(result, "ulimit -f")
            self.assertEqual(sorted(p.name for p in self.folder.iterdir()), before, "nothing is left")

    def test_aggregated_traces(self):
        self.trace(STEPS, options=("--aggregate",))
        self.one_sentence(self.export("t.tacho", "-f", "pftrace", code=1), "--aggregate")
        self.one_sentence(self.export("t.tacho", "-f", "json", code=1), "--aggregate")
        self.export("t.tacho", "-f", "csv", "-d", "c")
        rows = self.table("c", "kernel_stats")
        self.assertEqual({row["Name"]: row["Calls"] for row in rows}, {"copy_values": "6", "scale(float*, int)": "3"})

    def test_killed_program(self):
        process = subprocess.Popen([TACHO, "trace", "-q", "-o", "k.tacho", "--", STEPS, "--steps", "1000", "--sleep", "5"], cwd=self.folder)
        time.sleep(1.5)
        subprocess.run(["pkill", "-KILL", "-P", str(process.pid)], check=True)
        self.assertEqual(process.wait(), 137)
        self.export("k.tacho", "-f", "csv,json,pftrace", "-d", "out")
        events = json.loads((self.folder / "out" / "k.json").read_text())["traceEvents"]
        self.assertGreater(sum(e.get("cat") == "kernel" for e in events), 30)

    def test_memory_is_bounded(self):
        if not EXPORT_DATA.exists():
            self.skipTest("bench/export_data is not built")
        self.run_command(EXPORT_DATA, "big.tacho", "2000000")
        for form in ("csv", "json", "pftrace", "rocprofv3"):
            process = subprocess.Popen([TACHO, "export", "big.tacho", "-f", form, "-d", form], cwd=self.folder, stdout=subprocess.DEVNULL)
            peak = 0
            while process.poll() is None:
                try:
                    found = re.search(r"RssAnon:\s+(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())
                    peak = max(peak, int(found.group(1)) if found else 0)
                except OSError:
                    pass
                time.sleep(0.01)
            self.assertEqual(process.returncode, 0)
            self.assertLess(peak, 256 * 1024, form)
            subprocess.run(["rm", "-rf", self.folder / form], check=True)


class TraceFormats(harness.Case):
    def test_files_with_the_run(self):
        self.trace(STEPS, options=("-f", "tacho,csv,pftrace"), output="run.tacho")
        names = [p.name for p in self.folder.iterdir()]
        for name in ("run.tacho", "run.pftrace", "run_kernel_trace.csv", "run_kernel_stats.csv"):
            self.assertIn(name, names)

    def test_no_trace_is_left_unless_asked(self):
        self.trace(STEPS, options=("-f", "json"), output="run.json")
        self.assertEqual([p.name for p in self.folder.iterdir()], ["run.json"])
        result = self.trace(STEPS, options=("-f", "json"), output="run.json", code=125)
        self.one_sentence(result, "run.json", "--overwrite")
        self.assertEqual(result.stdout, b"", "refused before the start")
        self.trace(STEPS, options=("-f", "json", "--overwrite"), output="run.json")

    def test_bad_format(self):
        result = self.trace(STEPS, options=("-f", "pftrac"), code=125)
        self.one_sentence(result, "'pftrace'")
        self.assertEqual(result.stdout, b"")

    def test_a_failed_export_keeps_the_recording(self):
        script = self.folder / "s.sh"
        script.write_text(f"{STEPS}\nmkdir out.json\n")
        result = self.trace("/bin/sh", script, options=("-f", "json"), output="out.json", code=125)
        kept = re.search(r"kept in (\S+)", result.stderr.decode()).group(1)
        self.run_command(TACHO, "info", kept)


if __name__ == "__main__":
    harness.main()
