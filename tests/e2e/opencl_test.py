#!/usr/bin/env python3
"""OpenCL programs under `tacho trace`: what is recorded, what is said, what stays as it was."""
import csv
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import unittest

from harness import BUILD, Case, DEBIAN_PYTHON, EXAMPLES, TACHO, TARGETS, main

CASES = TARGETS / "opencl_cases"
CACHE = BUILD / "pocl-cache"
OCLGRIND = pathlib.Path("/usr/lib/oclgrind/liboclgrind-rt.so")
OCLGRIND_ICD = pathlib.Path("/usr/lib/oclgrind/liboclgrind-rt-icd.so")


def setUpModule():
    CACHE.mkdir(exist_ok=True)
    os.environ.setdefault("POCL_CACHE_DIR", str(CACHE))


class Programs(Case):
    def test_vcopy(self):
        plain = self.run_command(EXAMPLES / "vcopy", "-n", 1048576, "-b", 256, "-i", 20)
        traced = self.trace(EXAMPLES / "vcopy", "-n", 1048576, "-b", 256, "-i", 20)
        self.assertEqual(plain.stdout, traced.stdout)
        self.assertEqual(self.calls("kernel", "vecCopy"), 20)
        self.assertEqual(self.calls("api", "clEnqueueNDRangeKernel"), 20)
        copies = self.stats("copy")
        self.assertEqual(copies["host to device"]["Calls"], 2)
        self.assertEqual(copies["host to device"]["Bytes"], 2 * 8 * 1048576)
        self.assertEqual(copies["device to host"]["Bytes"], 8 * 1048576)

    def test_summary_says_what_nobody_would_miss_otherwise(self):
        result = self.run_command(BUILD / "bin" / "tacho", "trace", "-o", "t.tacho", "--", CASES, "no_finish", 10)
        text = result.stderr.decode()
        self.assertIn("slow", text)
        self.assertIn("in flight", text)

    def test_dlopen(self):
        self.trace(CASES, "loaded")
        self.assertEqual(self.calls("api", "clGetPlatformIDs"), 1)

    def test_every_case_prints_what_it_prints_without_us(self):
        for case in ("queue_properties", "profiling", "reference_counts", "copies", "svm", "callbacks", "threads"):
            with self.subTest(case):
                plain = self.run_command(CASES, case)
                traced = self.trace(CASES, case, output=f"{case}.tacho")
                self.assertEqual((plain.stdout, plain.stderr), (traced.stdout, traced.stderr))

    def test_python(self):
        program = self.folder / "square.py"
        program.write_text(
            "import pyopencl as cl, numpy as np\n"
            "c = cl.create_some_context(interactive=False); q = cl.CommandQueue(c)\n"
            "a = np.arange(4096, dtype=np.float32)\n"
            "b = cl.Buffer(c, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=a)\n"
            "p = cl.Program(c, 'kernel void sq(global float* a) { int i = get_global_id(0); a[i] *= a[i]; }').build()\n"
            "for i in range(5): p.sq(q, a.shape, None, b)\n"
            "cl.enqueue_copy(q, a, b); print('done')\n")
        if subprocess.run([DEBIAN_PYTHON, "-c", "import pyopencl"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("pyopencl is not installed")
        self.assertEqual(self.trace(DEBIAN_PYTHON, program).stdout, b"done\n")
        self.assertEqual(self.calls("kernel", "sq"), 5)

    def test_children(self):
        self.trace(CASES, "forked")
        self.assertEqual(self.calls("kernel", "add_one"), 101)

    def test_64_threads_with_markers_and_launches(self):
        self.trace(CASES, "marked_threads", "50")
        self.assertEqual(self.calls("kernel", "add_one"), 64 * 50)
        self.assertEqual(self.calls("api", "clEnqueueNDRangeKernel"), 64 * 50)
        markers = self.stats("marker")
        self.assertEqual({name: row["Calls"] for name, row in markers.items()}, {f"thread {t}": 50 for t in range(64)})
        self.assertIn("nothing was lost", self.run_command(TACHO, "info", "t.tacho").stdout.decode())

    def test_avail_with_a_driver_that_crashes(self):
        vendors = self.folder / "vendors"
        vendors.mkdir()
        (vendors / "bad.icd").write_text(f"{TARGETS / 'bad_icd.so'}\n")
        for way, word in (("abort", "Aborted"), ("segv", "Segmentation fault"), ("exit", "ends the program")):
            result = self.run_command(TACHO, "avail", env={"OCL_ICD_VENDORS": f"{vendors}/", "BAD_ICD": way})
            line = next(line for line in result.stdout.decode().splitlines() if re.match(r" *opencl ", line))
            self.assertRegex(line, f"unusable +an OpenCL driver .*{word}.*/etc/OpenCL/vendors")
            self.assertEqual(result.stderr, b"")

    def test_kernel_filter(self):
        self.trace(CASES, "shapes", options=("--kernel-include", "^(shape|add)", "--kernel-exclude", "one$"))
        self.assertEqual({name: row["Calls"] for name, row in self.stats("kernel").items()}, {"shape": 3})


class Arguments(Case):
    def query(self, sql, file="t.tacho"):
        return json.loads(self.run_command(TACHO, "query", file, "--dialect", "tacho", sql, "--output-format", "json").stdout)["rows"]

    def test_off_unless_asked_for(self):
        self.trace(CASES, "arguments")
        for table in ("api", "dispatch", "copy"):
            self.assertEqual(self.query(f"SELECT DISTINCT arguments FROM {table}"), [[""]], table)
        self.run_command(TACHO, "export", "t.tacho", "-f", "csv", "-d", "csv")
        for path in (self.folder / "csv").iterdir():
            self.assertNotIn("Arguments", path.read_text())

    def test_calls_kernels_and_copies(self):
        self.trace(CASES, "arguments", options=("--api-args",))
        kernels = dict(self.query("SELECT name, arguments FROM dispatch"))
        buffer = r"buffer 0x[0-9a-f]+ of 1024 B"
        self.assertRegex(kernels["scale"], rf"^0: {buffer}, 1: -7$")
        self.assertRegex(kernels["with_local"], rf"^0: {buffer}, 1: 256 B local$")
        self.assertRegex(kernels["blend"], rf"^0: {buffer}, 1: 1.5, 2: 0x00000000010000000200000003000000… \(20 B\)$")
        # A copy has those of its call, also where the command was collected much later by another thread.
        copies = {name: text for name, text in self.query("SELECT name, arguments FROM copy") if "blocking_map" not in text and "mapped_ptr" not in text}
        self.assertRegex(copies["device to host"], r"^command_queue=0x\w+, buffer=0x\w+, blocking_read=1, offset=64, size=128, ptr=0x\w+, "
                                                   r"num_events_in_wait_list=0, event_wait_list=NULL, event=NULL$")
        self.assertRegex(copies["host to device"], r"blocking_write=0, offset=0, size=1024, ")
        calls = dict(self.query("SELECT name, arguments FROM api"))
        self.assertEqual(calls["clEnqueueReadBuffer"], copies["device to host"])
        self.assertRegex(calls["clCreateBuffer"], r"^context=0x\w+, flags=READ_WRITE, size=1024, host_ptr=NULL$")
        self.assertRegex(calls["clCreateCommandQueue"], r"^context=0x\w+, device=0x\w+, properties=0$")  # as the program asked
        self.assertRegex(calls["clEnqueueMapBuffer"], r"map_flags=READ\|WRITE, offset=0, size=1024")
        self.assertRegex(calls["clSetKernelArg"], r"^kernel=0x\w+, arg_index=\d, arg_size=\d+, arg_value=(0x\w+|NULL)$")
        # Every format that has a place for them.
        for form in ("rpd", "csv", "json", "pftrace"):
            self.run_command(TACHO, "export", "t.tacho", "-f", form, *(("-d", "csv") if form == "csv" else ("-o", f"t.{form}")))
        with sqlite3.connect(self.folder / "t.rpd") as db:
            self.assertEqual(db.execute("SELECT args FROM api WHERE apiName = 'clEnqueueReadBuffer'").fetchone()[0], calls["clEnqueueReadBuffer"])
        self.assertEqual(json.loads(self.run_command(TACHO, "query", "t.tacho", "SELECT args FROM api WHERE apiName = 'clEnqueueReadBuffer'",
                                                     "--output-format", "json").stdout)["rows"], [[calls["clEnqueueReadBuffer"]]])
        found = {}
        for path in [p for kind in ("kernel", "memory_copy", "opencl_api") for p in (self.folder / "csv").glob(f"*_{kind}_trace.csv")]:
            with open(path, newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    if "_map" not in row["Arguments"] and "mapped_ptr" not in row["Arguments"]:
                        found[row.get("Kernel_Name") or row.get("Direction") or row["Function"]] = row["Arguments"]
        self.assertEqual(found["scale"], kernels["scale"])
        self.assertEqual(found["MEMORY_COPY_DEVICE_TO_HOST"], copies["device to host"])
        self.assertEqual(found["clEnqueueReadBuffer"], calls["clEnqueueReadBuffer"])
        events = {e["name"]: e.get("args", {}).get("arguments") for e in json.loads((self.folder / "t.json").read_text())["traceEvents"]}
        self.assertEqual((events["scale"], events["clEnqueueReadBuffer"]), (kernels["scale"], calls["clEnqueueReadBuffer"]))
        packets = (self.folder / "t.pftrace").read_bytes()
        self.assertIn(kernels["scale"].encode(), packets)
        self.assertIn(calls["clEnqueueReadBuffer"].encode(), packets)


class Loss(Case):
    def test_kill(self):
        self.trace(CASES, "killed", 2000, code=128 + 9)
        launched = self.calls("api", "clEnqueueNDRangeKernel")
        recorded = self.calls("kernel", "add_one")
        self.assertGreater(launched, 1000)
        # It loses at most a flush period and the commands in flight: here it kills itself 2 s after its start.
        self.assertGreater(recorded, launched * 0.3)
        # The loss is reported: a launch is a dispatch, or counted as in flight.
        self.assertEqual(self.counted("in flight when the process ended"), launched - recorded)

    def test_kill_after_waiting(self):
        # Commands that the program knows to be complete are in the trace, however it learned so.
        ways = {"clFinish": 0, "a read": 1, "a map": 2, "clWaitForEvents": 3, "a callback": 4, "asking": 5,
                "clFinish, out of order": 6, "another queue's read": 7}
        for name, way in ways.items():
            for turn in range(30 if way == 0 else 4):
                with self.subTest(name, turn=turn):
                    self.trace(CASES, "waited", str(way), code=128 + 9, options=("--overwrite",))
                    self.assertEqual(self.calls("kernel", "add_one"), 500)
                    info = self.run_command(TACHO, "info", "t.tacho").stdout.decode()
                    self.assertIn("nothing was lost", info)

    def counted(self, reason):
        """Dispatches that `info` says have no row for this reason."""
        info = self.run_command(BUILD / "bin" / "tacho", "info", "t.tacho").stdout.decode()
        found = re.search(rf"([\d,.]+) dispatch\w*[^\n]*{reason}", info)
        return int(found[1].replace(",", "")) if found else 0

    def test_kill_of_a_child(self):
        # The program itself ends well; and so does another child, whose commands are all recorded.
        self.trace("/bin/sh", "-c", f"{CASES} storm 300; {CASES} killed 700; true")
        launched = self.calls("api", "clEnqueueNDRangeKernel")
        self.assertEqual(self.counted("in flight when the process ended"), launched - self.calls("kernel", "add_one"))

    def test_kill_without_api_records(self):
        # Nothing in the trace says how many launches there were; the program does.
        run = self.trace(CASES, "killed", 700, code=128 + 9, options=("--kernel-trace",))
        self.assertEqual(self.stats("api"), {})
        launched = int(run.stdout)
        self.assertGreater(launched, 1000)
        self.assertEqual(self.counted("in flight when the process ended"), launched - self.calls("kernel", "add_one"))

    def test_kill_with_a_filter(self):
        # Launches that the filter leaves out are not in flight, also those of the last period.
        self.trace(CASES, "killed", 700, code=128 + 9, options=("--kernel-exclude", "add"))
        self.assertEqual(self.counted("in flight when the process ended"), 0)
        self.assertEqual(self.counted("filter"), self.calls("api", "clEnqueueNDRangeKernel"))


class Loaders(Case):
    def no_layers(self):
        if not OCLGRIND.exists():
            self.skipTest("oclgrind is not installed")
        folder = self.folder / "lib"
        folder.mkdir()
        (folder / "libOpenCL.so.1").symlink_to(OCLGRIND)
        return {"LD_LIBRARY_PATH": str(folder)}

    def test_library_without_layers_is_interposed(self):
        env = self.no_layers()
        result = self.trace(CASES, "storm", 20, env=env)
        self.assertEqual(result.stdout, b"sum 5120\n")
        self.assertEqual(self.calls("kernel", "add_one"), 20)

    def test_what_neither_reaches_is_said(self):
        # Opened by hand, a library without layers gives its own functions: out of our reach.
        result = self.run_command(BUILD / "bin" / "tacho", "trace", "-o", "t.tacho", "--", CASES, "loaded",
                                  env=self.no_layers())
        self.assertEqual(result.stdout, b"0 0\n")
        self.assertIn(b"OpenCL", result.stderr)

    def test_existing_layer_is_kept(self):
        layer = TARGETS / "opencl_layer.so"
        if not layer.exists():
            self.skipTest("the other layer is not built")
        result = self.trace(CASES, "storm", 50, env={"OPENCL_LAYERS": str(layer)})
        self.assertIn(b"other layer: 50 launches", result.stderr)
        self.assertEqual(self.calls("kernel", "add_one"), 50)

    def test_oclgrind_does_not_hang(self):
        if not OCLGRIND_ICD.exists():
            self.skipTest("oclgrind is not installed")
        vendors = self.folder / "vendors"
        vendors.mkdir()
        (vendors / "oclgrind.icd").write_text(f"{OCLGRIND_ICD}\n")
        result = self.trace(CASES, "late_functions", env={"OCL_ICD_VENDORS": f"{vendors}/"}, timeout=60)
        self.assertIn(b"timer -59 -59", result.stdout)


class Overlap(Case):
    def overlap(self, result):
        return float(re.search(rb"overlap ([\d.]+) %", result.stdout).group(1))

    @unittest.skipIf(os.cpu_count() < 2, "one CPU: two kernels cannot run at the same time")
    def test_tracing_does_not_serialise(self):
        # Kernels of two queues that end only if they run at the same time: on a machine however busy.
        meet = TARGETS / "opencl_meet"
        self.assertEqual(self.run_command(meet, 1).stdout, b"met 1 of 1\n", "two queues do not meet even untraced")
        self.assertEqual(self.trace(meet, 40).stdout, b"met 40 of 40\n")
        self.assertEqual(self.calls("kernel", "meet"), 80)

    @unittest.skipIf(os.cpu_count() < 2, "one CPU: two kernels cannot run at the same time")
    def test_overlap_is_kept(self):
        # The program's best result with and without tracing. A busy machine lets single runs fall short, so there are as many
        # tries as it takes, up to the number that leaves no doubt.
        plain, traced = [], []
        for _ in range(20):
            plain.append(self.overlap(self.run_command(EXAMPLES / "overlap", "-n", 40)))
            traced.append(self.overlap(self.trace(EXAMPLES / "overlap", "-n", 40, options=("--overwrite",))))
            if len(traced) >= 3 and min(max(plain), max(traced)) > 50 and max(traced) >= 0.95 * max(plain):
                break
        self.assertGreater(max(plain), 50, "two queues do not overlap here even untraced")
        self.assertGreaterEqual(max(traced), max(plain) * 0.95, (plain, traced))


if __name__ == "__main__":
    main()
