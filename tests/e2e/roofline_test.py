"""tacho roofline on what this machine has, its refusals, and the roofline page that rocprof-compute's personality leaves."""
import csv
import json
import os
import platform
import re
import shutil
import subprocess
import unittest
import xml.etree.ElementTree

from harness import BUILD, Case, DATA, TACHO, need_data

PERSONALITY = BUILD / "personalities" / "rocprof-compute"

# Kernels with known FLOPs and bytes.
KNOWN_PROGRAM = '''import numpy, pyopencl as cl
context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
queue = cl.CommandQueue(context)
program = cl.Program(context, """
kernel void copy(global const float4* a, global float4* b) { size_t i = get_global_id(0); b[i] = a[i]; }
kernel void fma_loop(global float* x, float b, float c) {
  size_t i = get_global_id(0);
  float v = x[i];
  for (int k = 0; k < 100; ++k) v = fma(v, b, c);
  x[i] = v;
}
kernel void product(global const float* a, global const float* b, global float* c, int n) {
  local float left[16][16], right[16][16];
  int x = get_global_id(0), y = get_global_id(1), i = get_local_id(0), j = get_local_id(1);
  float sum = 0;
  for (int t = 0; t < n; t += 16) {
    left[j][i] = a[y * n + t + i];
    right[j][i] = b[(t + j) * n + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < 16; ++k) sum = fma(left[j][k], right[k][i], sum);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[y * n + x] = sum;
}""").build()
host = numpy.random.rand(1 << 14).astype(numpy.float32)
flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
a, b, c = (cl.Buffer(context, flags, hostbuf=host) for _ in range(3))
program.copy(queue, (1 << 12,), (64,), a, b)
program.fma_loop(queue, (1 << 12,), (64,), a, numpy.float32(0.5), numpy.float32(1))
program.product(queue, (64, 64), (16, 16), a, b, c, numpy.int32(64))
queue.finish()
'''


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
        # A busy machine may look faster than its measured clock allows: that is a reported error of the measurement.
        self.assertIn(done.returncode, (0, 1), done.stderr)
        # The lines of rocprof-compute's benchmark belong to that name; here the result is the table.
        self.assertRegex(done.stderr, r"^tacho: measuring device 0, .* \((cuda|opencl)\)\n")
        self.assertNotIn("workgroupSize", done.stderr + done.stdout)
        self.assertNotIn("Empirical", done.stderr + done.stdout)
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
        for args, expected in [(("--device", "99"), "this machine has"), (("--only", "FP32Flops", "Nope"), "no benchmark Nope; there are HBMReadBw, "),
                               (("--experiments", "1"), "experiments"), (("--format", "yaml"), "format"),
                               (("-o", self.folder / "no" / "such" / "x.csv"), "no")]:
            if not self.devices() and args[0] in ("--device", "--only", "-o"):
                continue
            done = self.run_it("roofline", *args)
            self.assertEqual(done.returncode, 1, (args, done.stderr))
            self.assertIn(expected, done.stderr)
            self.assertEqual(done.stdout, "") if args[0] != "--only" else None

    def test_one_device_that_fails_does_not_stop_the_others(self):
        if not any("opencl" in line and "pthread" in line for line in self.devices()):
            self.skipTest("no PoCL to make two devices of")
        environment = dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"), POCL_DEVICES="pthread basic")
        done = subprocess.run([str(TACHO), "roofline", "--backend", "opencl", "-q", "--all", "--only", "FP16Flops"],
                              capture_output=True, text=True, check=False, timeout=300, cwd=self.folder, env=environment)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, "(?m)^tacho: basic-.*: nothing could be measured")
        self.assertRegex(done.stderr, "(?m)^tacho: pthread-.*: nothing could be measured")

    def test_a_poor_device(self):
        """A layer takes FP64 away, then memory, then lets every result be wrong, every launch fail: named, and the rest goes on."""
        layer = BUILD / "tests" / "targets" / "small_device.so"
        if not self.devices():
            self.skipTest("no device to measure")

        def measure(words, *columns, experiments=2):
            environment = dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"), OPENCL_LAYERS=str(layer), SMALL_DEVICE=words)
            done = subprocess.run([str(TACHO), "roofline", "--backend", "opencl", "--format", "json", "-q", "--experiments", str(experiments), "--only", *columns],
                                  capture_output=True, text=True, check=False, timeout=300, cwd=self.folder, env=environment)
            ceilings = json.loads(done.stdout)["devices"][0]["ceilings"] if done.stdout else []
            return done, {c["column"]: c for c in ceilings}

        done, found = measure("nofp64", "FP64Flops", "L1Bw")
        self.assertIn("no FP64 (cl_khr_fp64)", found["FP64Flops"]["skipped"])
        self.assertGreater(found["L1Bw"]["mean"], 0)
        self.assertGreaterEqual(found["L1Bw"]["runs"], 4 * found["L1Bw"]["experiments"], "the fastest of several runs")
        self.assertIn("not measured: the device has no FP64", done.stderr)
        done, found = measure("nomemory", "HBMReadBw", "L1Bw")
        self.assertIn("out of device memory", found["HBMReadBw"]["skipped"])
        self.assertGreater(found["L1Bw"]["mean"], 0)
        done, found = measure("nomemory", "HBMReadBw", "HBMCopyBw")
        self.assertEqual((done.returncode, found), (1, {}))
        self.assertIn("nothing could be measured", done.stderr)
        # Starting the cores costs time that is not part of a CPU's clock.
        clocks = [json.loads(measure(words, "L1Bw")[0].stdout)["devices"][0]["max_clock_mhz"] for words in ("", "late")]
        self.assertAlmostEqual(clocks[0], clocks[1], delta=0.12 * clocks[0])
        for column in ("HBMReadBw", "HBMWriteBw", "HBMTriadBw", "L2Bw", "FP32Flops", "I8Ops"):
            done, found = measure("wrong", column)
            self.assertEqual(done.returncode, 1, (column, done.stdout))
            self.assertRegex(done.stderr, "must be|another value", column)
        done, found = measure("broken", "L1Bw")
        self.assertEqual(done.returncode, 1)
        self.assertIn("out of resources", done.stderr)

    def test_the_matrix_cores_of_an_amd_device(self):
        """The CPU poses as each of AMD's architectures. Its compiler lacks their builtins: named, the rest goes on. Then a layer has them
        in software, and every kernel must compute what the host expects; with rows in another order it must not."""
        layer = BUILD / "tests" / "targets" / "small_device.so"
        if not self.devices():
            self.skipTest("no device to measure")
        columns = [f"MFMA{kind}Flops" for kind in ("F64", "F32", "TF32", "F16", "BF16", "F8")] + ["MFMAI8Ops"]

        def measure(words, *chosen):
            environment = dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"), OPENCL_LAYERS=str(layer), SMALL_DEVICE=words)
            done = subprocess.run([str(TACHO), "roofline", "--backend", "opencl", "--format", "json", "-q", "--experiments", "2", "--only", *chosen],
                                  capture_output=True, text=True, check=False, timeout=300, cwd=self.folder, env=environment)
            device = json.loads(done.stdout)["devices"][0] if done.stdout else {"ceilings": []}
            return done, device, {c["column"]: c for c in device["ceilings"]}

        done, device, found = measure("amdgpu=gfx90a:sramecc+:xnack-", *columns, "L1Bw", "L2Bw")
        self.assertEqual((device["architecture"], device["cache"]), ("gfx90a", 8 << 20))
        # Half of a 16 KiB L1 is one trip of a group of 64; a quarter of the L2 is read by all groups of 256.
        self.assertEqual((found["L1Bw"]["group_size"], found["L2Bw"]["group_size"]), (64, 256))
        self.assertEqual(found["L2Bw"]["work"] % (found["L2Bw"]["groups"] * (2 << 20)), 0)
        self.assertEqual(found["MFMAF64Flops"]["skipped"], "the device's compiler does not know __builtin_amdgcn_mfma_f64_16x16x4f64")
        self.assertEqual(found["MFMAF8Flops"]["skipped"], "gfx90a has no MFMA instruction for F8")
        self.assertGreater(found["L1Bw"]["mean"], 0)
        self.assertIsNone(found["L1Bw"]["clock_mhz"], "OpenCL does not tell it")
        done, _, found = measure("amdgpu=gfx1100", "MFMAF16Flops", "L1Bw")
        self.assertIn("this is gfx1100", found["MFMAF16Flops"]["skipped"])
        lacking = {"gfx908": {"F64", "TF32", "F8"}, "gfx90a": {"TF32", "F8"}, "gfx942": set(), "gfx950": {"TF32"}}
        for architecture, missing in lacking.items():
            few = architecture in ("gfx942", "gfx950")  # as many work-items as leave results: the large shapes are slow
            done, device, found = measure(f"amdgpu={architecture} mfma {'few' if few else ''}", *columns)
            self.assertEqual({c[4:].removesuffix("Flops").removesuffix("Ops") for c, each in found.items() if "skipped" in each}, missing, done.stderr)
            for column, each in found.items():
                if "skipped" not in each:
                    self.assertTrue(each["path"].startswith("v_mfma_"), each)
                    self.assertAlmostEqual(each["mean"], each["work"] / each["duration_ns"], delta=0.5 * each["mean"])
                    self.assertGreater(each["peak"], 0, column)
                    if not few and platform.machine() == "x86_64":  # the software's ticks and cycles are the CPU's
                        self.assertAlmostEqual(each["clock_mhz"], device["max_clock_mhz"], delta=0.1 * device["max_clock_mhz"])
        self.assertAlmostEqual(found["MFMAF16Flops"]["peak"], 4096e-3 * device["max_clock_mhz"], delta=1e-6 * found["MFMAF16Flops"]["peak"])
        done, _, found = measure("amdgpu=gfx942 mfma twisted few", "MFMAF64Flops", "MFMAF16Flops", "MFMAI8Ops")
        self.assertEqual((done.returncode, found), (1, {}))
        self.assertRegex(done.stderr, "nothing could be measured: v_mfma_f64_16x16x4_f64: element .* must be")

    def known(self, name="known", drop=(), zero=()):
        """A folder as an NVIDIA run leaves it, with counts that are known; counters in `drop` are missing, kernels in `zero` took no time."""
        threads = 1 << 20
        counter = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum".format
        tensor = "sm__ops_path_tensor_{}.sum".format
        names = [counter(k) for k in ("fadd", "fmul", "ffma", "dadd", "dmul", "dfma", "hadd", "hmul", "hfma")]
        names += [tensor(k) for k in ("src_fp16", "src_fp8", "src_bf16_dst_fp32", "src_tf32_dst_fp32", "src_fp64")]
        names += ["smsp__sass_thread_inst_executed_pred_on.sum", "l1tex__t_bytes.sum", "lts__t_sectors_srcunit_tex.sum", "dram__bytes.sum",
                  "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"]
        common = {names[-5]: 100 * threads, "l1tex__t_bytes.sum": 16 * threads, "lts__t_sectors_srcunit_tex.sum": 12 * threads // 32, "dram__bytes.sum": 8 * threads}
        kernels = [("copy", 2000, {counter("hfma"): 2 * threads}),  # constants that the assembler loads with HFMA2
                   ("single", 4000, {counter("ffma"): 64 * threads, counter("fadd"): threads, counter("hfma"): 2 * threads}),
                   ("double", 8000, {counter("dfma"): 64 * threads, counter("dmul"): threads}),
                   ("half", 3000, {counter("hfma"): 64 * threads}),
                   ("converted", 3000, {counter("hadd"): 8 * threads, counter("hfma"): threads}),  # HADD2 makes floats of halves
                   ("half_scale", 3000, {counter("hmul"): threads, counter("hadd"): 2 * threads, counter("hfma"): threads}),
                   ("product", 1000, {tensor("src_bf16_dst_fp32"): 850_000_000, counter("ffma"): 1000})]
        folder = self.folder / name
        folder.mkdir()
        (folder / "sysinfo.csv").write_text("workload_name,gpu_arch,gpu_model,cu_per_gpu,wave_size,max_sclk\nknown,sm_90,NVIDIA H200,132,32,1980\n")
        names = [n for n in names if n not in drop]
        lines = [",".join(["Dispatch_ID", "Kernel_Name", "GPU_ID", "Grid_Size", "Workgroup_Size", "Start_Timestamp", "End_Timestamp", *names])]
        for i, (kernel, ns, values) in enumerate(kernels):
            values = {**common, **values}
            lines.append(f"{i},{kernel},0,{threads},256,0,{0 if kernel in zero else ns}," + ",".join(str(values.get(n, 0)) for n in names))
        (folder / "pmc_perf.csv").write_text("\n".join(lines) + "\n")
        (folder / "roofline.csv").write_text("device,HBMBw,L2Bw,L1Bw,LDSBw,FP32Flops,FP64Flops,FP16Flops,MFMABF16Flops,DeviceName,DeviceId,Driver,Backend,Measured\n"
                                             "0,4500,9500,32700,33000,65700,33300,129700,766000,NVIDIA H200,0000:01:00.0,580.1,cuda,2026-01-01T00:00:00Z\n")
        return folder, threads

    def points(self, folder, *args):
        document = json.loads(self.run_it("analyze", "-p", folder, "-b", "4", "--output-format", "json", *args).stdout)
        return {p["kernel"]: p for p in document["roofline"]["kernels"]}, document

    def test_nvidia_flops_by_type(self):
        folder, threads = self.known()
        points, document = self.points(folder)
        flops = {name: {k: v for k, v in p["flops"].items() if v} for name, p in points.items()}
        self.assertEqual(flops, {"copy": {}, "single": {"FP32": 129 * threads}, "double": {"FP64": 129 * threads}, "half": {"FP16": 256 * threads},
                                 "converted": {}, "half_scale": {"FP16": 10 * threads}, "product": {"FP32": 2000, "matrix BF16": 850_000_000}})
        self.assertEqual({name: p["type"] for name, p in points.items()},
                         {"copy": "", "single": "FP32", "double": "FP64", "half": "FP16", "converted": "", "half_scale": "FP16", "product": "BF16"})
        self.assertEqual(points["single"]["bytes"], {"hbm": 8 * threads, "l2": 12 * threads, "l1": 16 * threads, "lds": 0})
        self.assertAlmostEqual(points["single"]["intensity"]["hbm"], 129 / 8, delta=1e-9)
        self.assertAlmostEqual(points["single"]["intensity"]["l1"], 129 / 16, delta=1e-9)
        self.assertAlmostEqual(points["single"]["performance"], 129 * threads / 4000, delta=1e-6)
        self.assertEqual(points["copy"]["performance"], 0)
        self.assertAlmostEqual(points["copy"]["bandwidth"]["hbm"], 8 * threads / 2000, delta=1e-9)
        self.assertEqual((points["copy"]["bounds"]["FP32"]["roof"], points["copy"]["bounds"]["FP32"]["unit"]), ("hbm", "GB/s"))
        self.assertAlmostEqual(points["product"]["bounds"]["BF16"]["attainable"], 4500 * 850_002_000 / (8 * threads), delta=1)
        self.assertIn("thread-level SASS", document["roofline"]["definition"])
        self.assertEqual(document["roofline"]["data_types"], ["FP64", "FP32", "FP16", "BF16"])
        text = self.run_it("analyze", "-p", folder, "-b", "4").stdout
        self.assertRegex(text, r"(?m)^ +\d +0\.00 +0\.00 .*4194 +DRAM +93\.2 +1\.07x +copy")
        self.assertRegex(text, r"BF16 .* product")
        self.assertIn("1 point lies above a roof", text)
        self.assertIn("tensor cores BF16", text)
        self.assertNotRegex(text, "HBM|hbm|mfma")
        chosen = self.run_it("analyze", "-p", folder, "-b", "4", "-R", "FP64").stdout
        self.assertNotIn("tensor cores", chosen)

    def test_ceilings_of_a_profile(self):
        """--roof-only: measured once, kept in the folder, taken from the cache for another one; a stranger's or damaged file is put aside."""
        program = BUILD / "examples" / "vcopy"
        if not self.devices() or not program.exists():
            self.skipTest("no device to measure, or no OpenCL examples")
        self.assertEqual(self.run_it("roofline", "-q", "--backend", "opencl", "--experiments", "2").returncode in (0, 1), True)

        def profile(name, *options):
            log = next(iter((self.folder / "workloads").glob(f"{name}/*/log.txt")), None)
            begin = log.stat().st_size if log else 0
            done = self.run_it("profile", "--name", name, "--roof-only", *options, "--", program, "-n", "4096")
            self.assertEqual(done.returncode, 0, done.stderr)
            # rocprof-compute's lines go to the log only.
            self.assertNotIn("[roofline]", done.stdout + done.stderr)
            said.append(done.stderr)
            folder = next((self.folder / "workloads" / name).iterdir())
            written = (folder / "log.txt").read_text()[begin:]
            return folder, [line for line in written.splitlines() if line.startswith("[roofline]")]
        said = []

        folder, lines = profile("one")
        self.assertRegex(lines[0], r"\[roofline\] Checking for roofline.csv in .*workloads/one")
        self.assertRegex(lines[1], "No roofline data found. Using the measurements made on this device")
        self.assertRegex(said[0], r"tacho: roofs of .*: those measured on 20")
        before = (folder / "roofline.csv").read_bytes()
        _, lines = profile("one")
        self.assertRegex(lines[1], "Found roofline.csv of .*not run again")
        self.assertEqual((folder / "roofline.csv").read_bytes(), before)
        self.assertNotIn("roofs of", said[1])  # nothing new is to be said
        for text, why in (("device,HBMBw\n0,1388.8\n", "does not say which device"), ("device,HBMBw\n0\n", "another number of fields|no row")):
            (folder / "roofline.csv").write_text(text)
            _, lines = profile("one")
            self.assertRegex(lines[1], f"roofline.csv cannot be used: .*({why}).*Kept as .*roofline.csv.[12]")
            self.assertRegex(said[-1], f"tacho: the roofs in roofline.csv cannot be used: .*({why}).*the file is kept as .*roofline.csv.[12]")
            self.assertEqual((folder / "roofline.csv").read_bytes(), before)
        driver = next(csv.DictReader(before.decode().splitlines()))["Driver"]
        (folder / "roofline.csv").write_bytes(before.replace(f",{driver},opencl".encode(), b",0.1,opencl"))
        _, lines = profile("one")
        self.assertRegex(lines[1], "measured with driver 0.1, now it is")
        self.assertEqual([p.name for p in sorted(folder.glob("roofline.csv*"))], ["roofline.csv", "roofline.csv.1", "roofline.csv.2", "roofline.csv.3"])
        page = self.folder / "r.html"
        done = self.run_it("analyze", "-p", folder, "--output-format", "html", "--output-name", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"roofline_ceilings_dev0"', page.read_text())
        done = self.run_it("profile", "--name", "two", "--no-roof", "-b", "2", "--", program, "-n", "4096")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("[roofline]", done.stderr)
        self.assertEqual(list((self.folder / "workloads" / "two").rglob("roofline.csv")), [])

    def test_roofs_without_a_program(self):
        """profile --bench-only: the roofs alone, measured each time."""
        if not self.devices():
            self.skipTest("no device to measure")
        done = self.run_it("profile", "--name", "bare", "--device", "cpu", "--bench-only", "-q", "--", "never", "started")
        self.assertIn(done.returncode, (0, 125), done.stderr)  # 125: a busy machine's figures may contradict each other
        self.assertIn("never is not started", done.stderr)
        folder = self.folder / "workloads" / "bare" / "cpu"
        self.assertGreater(float(next(csv.DictReader((folder / "roofline.csv").read_text().splitlines()))["HBMBw"]), 0)
        self.assertEqual(next(csv.DictReader((folder / "sysinfo.csv").read_text().splitlines()))["ip_blocks"], "roofline")
        again = self.run_it("profile", "--name", "bare", "--device", "cpu", "--roofline-bench-only")
        self.assertEqual(again.returncode, 125)
        self.assertIn("--overwrite measures the device anew", again.stderr)
        said = self.run_it("analyze", "-p", folder)
        self.assertIn("roofs of the device alone", said.stderr)

    def test_known_kernels_on_the_virtual_gpu(self):
        """A copy, a loop of FMAs and a tiled product: counts from the interpreter, times from PoCL."""
        if not self.devices():
            self.skipTest("no device to measure")
        (self.folder / "known.py").write_text(KNOWN_PROGRAM)
        done = self.run_it("profile", "--name", "known", "-b", "4", "--no-roof", "--", "/usr/bin/python3", "known.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        folder = next((self.folder / "workloads" / "known").iterdir())
        points, document = self.points(folder)
        items, n = 1 << 12, 64
        flops = {"copy": 0, "fma_loop": 200 * items, "product": 2 * n**3}
        loads = n * n * (n // 16) * 2 * 4  # both tiles, for each work-item and step
        memory = {"copy": 32 * items, "fma_loop": 8 * items, "product": loads + 4 * n * n}
        local = {"copy": 0, "fma_loop": 0, "product": loads * 17}  # written once, read 16 times
        with open(next(folder.glob("pmc_perf*.csv")), newline="") as file:
            times = {row["Kernel_Name"]: int(row["End_Timestamp"]) - int(row["Start_Timestamp"]) for row in csv.DictReader(file)}
        for name, point in points.items():
            self.assertEqual(sum(point["flops"].values()), flops[name], name)
            self.assertEqual((point["bytes"]["l1"], point["bytes"]["hbm"], point["bytes"]["lds"]), (memory[name], memory[name], local[name]), name)
            self.assertIsNone(point["bytes"]["l2"])
            self.assertAlmostEqual(point["intensity"]["hbm"], flops[name] / memory[name], delta=1e-9)
            self.assertAlmostEqual(point["performance"], flops[name] / times[name], delta=1e-9 * max(1, point["performance"]))
        self.assertEqual(set(points), set(flops))
        self.assertIn("operations of work-items", document["roofline"]["definition"])

    def test_what_is_missing_is_said_and_the_rest_drawn(self):
        folder, _ = self.known("nodram", drop=("dram__bytes.sum",))
        points, _ = self.points(folder)
        for name, point in points.items():
            self.assertIsNone(point["intensity"]["hbm"], name)
            self.assertGreaterEqual(point["intensity"]["l2"], 0, name)
        self.assertEqual(points["copy"]["bounds"]["FP32"]["roof"], "l2")
        done = self.run_it("analyze", "-p", folder, "--output-format", "svg")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn('class="point level-hbm', done.stdout)
        self.assertIn('class="point level-l2', done.stdout)
        folder, _ = self.known("notime", zero=("single", "double", "half", "converted", "half_scale", "product", "copy"))
        points, _ = self.points(folder)
        self.assertTrue(all(p["performance"] is None and p["bounds"] == {} for p in points.values()), points)
        done = self.run_it("analyze", "-p", folder, "--output-format", "svg")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn('class="point', done.stdout, "no time, no rate; the roofs stand")
        self.assertIn('data-roof="hbm"', done.stdout)
        folder, _ = self.known("some", zero=("single",))
        points, _ = self.points(folder)
        self.assertIsNone(points["single"]["performance"])
        self.assertGreater(points["double"]["performance"], 0)
        folder, _ = self.known("notensor", drop=("sm__ops_path_tensor_src_bf16_dst_fp32.sum", "smsp__sass_thread_inst_executed_op_hadd_pred_on.sum"))
        _, document = self.points(folder)
        self.assertEqual(document["roofline_uncounted"], ["smsp__sass_thread_inst_executed_op_hadd_pred_on.sum", "sm__ops_path_tensor_src_bf16_dst_fp32.sum"])
        (folder / "roofline.csv").unlink()
        done = self.run_it("analyze", "-p", folder, "--output-format", "svg")
        self.assertIn("no measured roofs", done.stdout)
        (folder / "pmc_perf.csv").write_text("Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,Workgroup_Size,Start_Timestamp,End_Timestamp,lts__t_sectors_srcunit_tex.sum\n0,k,0,64,64,0,10,640\n")
        done = self.run_it("analyze", "-p", folder, "--output-format", "svg")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("nothing to draw", done.stderr)

    def test_roofs_of_another_device_are_named(self):
        folder, _ = self.known()
        for architecture, model, device, backend, foreign in [
                ("sm_90", "H200", "NVIDIA H200", "cuda", False), ("sm_80", "A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB", "cuda", False),
                ("sm_90", "H100", "NVIDIA H200", "cuda", True), ("sm_90", "H200", "gfx90a:sramecc+:xnack-", "opencl", True),
                ("gfx90a", "MI200", "gfx90a:sramecc+:xnack-", "opencl", False), ("gfx942", "MI300X_A1", "gfx90a:sramecc+:xnack-", "opencl", True),
                ("virtual", "virtual", "NVIDIA H200", "cuda", True), ("virtual", "virtual", "pthread-AMD EPYC", "opencl", False), ("gfx942", "MI300X_A1", "", "", False)]:
            (folder / "sysinfo.csv").write_text(f"workload_name,gpu_arch,gpu_model,cu_per_gpu,wave_size,max_sclk\nknown,{architecture},{model},132,32,1980\n")
            (folder / "roofline.csv").write_text(f"device,HBMBw,FP32Flops,DeviceName,DeviceId,Driver,Backend,Measured\n0,4500,65700,{device},x,580.1,{backend},2026\n")
            done = self.run_it("analyze", "-p", folder, "-b", "4")
            self.assertEqual(done.returncode, 0, done.stderr)
            sentence = f"these roofs are of another device ({device}) than the run ({model})"
            self.assertEqual(sentence in done.stderr, foreign, (architecture, device, done.stderr))
            if architecture.startswith("sm_"):
                self.assertIn(f"roofs: {device} ({backend})", done.stdout, "drawn all the same")
                drawn = self.run_it("analyze", "-p", folder, "--output-format", "svg").stdout
                self.assertIn(f"({model if foreign else device})</text>", drawn, "the run is named after its own device")

    def test_svg_of_two_vendors(self):
        need_data()
        folder, _ = self.known()
        out = self.folder / "both.svg"
        command = ("analyze", "-p", DATA / "workloads" / "synth_a" / "MI200", "-p", folder, "--output-format", "svg", "-o", out)
        done = self.run_it(*command)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = out.read_text()
        root = xml.etree.ElementTree.fromstring(text)
        name = "{http://www.w3.org/2000/svg}"
        self.assertEqual(len(root.findall(f"{name}circle")), 15)
        self.assertEqual(len([p for p in root.findall(f"{name}path") if p.get("data-run") == "1"]), 21)
        self.assertIn("NVIDIA H200", text)
        again = self.run_it(*command)
        self.assertEqual(again.returncode, 1)
        self.assertIn("exists", again.stderr)
        whole = self.run_it("analyze", "-p", folder, "--output-format", "svg", "--roofline-axes", "whole").stdout
        self.assertRegex(whole, r'data-range="-2 3 ')
        one = self.run_it("analyze", "-p", folder, "--output-format", "svg", "-m", "L2", "-R", "FP32").stdout
        self.assertIn('data-roof="l2"', one)
        self.assertNotIn('data-roof="hbm"', one)
        self.assertNotIn('data-type="BF16"', one)
        each = self.run_it("analyze", "-p", folder, "--output-format", "svg", "--sort", "dispatches").stdout
        self.assertIn("dispatch 3", each)
        # Names of kernels are text, whatever they hold.
        hostile = (folder / "pmc_perf.csv").read_text().replace(",copy,", ',"</title><script>alert(1)</script>",')
        (folder / "pmc_perf.csv").write_text(hostile)
        text = self.run_it("analyze", "-p", folder, "--output-format", "svg").stdout
        self.assertNotIn("<script", text)
        xml.etree.ElementTree.fromstring(text)

    def test_personality_leaves_the_plot_here(self):
        need_data()
        workload = DATA / "workloads" / "synth_a" / "MI200"
        copy = self.folder / "copy"
        shutil.copytree(workload, copy)
        before = sorted(p.name for p in copy.rglob("*"))
        here = self.folder / "here"
        here.mkdir()
        for name in ("roofline_MI200.html", "roofline_MI200.html"):
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
        listed = self.run_it("analyze", "-p", workload, "--list-stats", program=PERSONALITY, cwd=here)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertNotIn("Roofline plot", listed.stderr)
        self.assertEqual(len(list(here.iterdir())), 1)

    def test_personality_without_a_place_for_the_plot(self):
        need_data()
        workload = DATA / "workloads" / "synth_a" / "MI200"
        done = self.run_it("analyze", "-p", workload, "-b", "2", "4", program=PERSONALITY, cwd="/proc")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("tacho: no roofline page: ", done.stderr)
        self.assertIn("2.1 Speed-of-Light", done.stdout)
        # Somebody else's file is not tacho's to replace.
        here = self.folder / "theirs"
        here.mkdir()
        (here / "roofline_MI200.html").write_text("mine")
        done = self.run_it("analyze", "-p", workload, "-b", "4", program=PERSONALITY, cwd=here)
        self.assertEqual((here / "roofline_MI200.html").read_text(), "mine")
        self.assertIn(str(here.resolve() / "roofline_MI200.1.html"), done.stderr)

    def test_personality_draws_several_runs_in_one_plot(self):
        need_data()
        here = self.folder / "several"
        here.mkdir()
        shutil.copytree(DATA / "workloads" / "synth_a" / "MI200", here / "again")
        done = self.run_it("analyze", "-p", DATA / "workloads" / "synth_a" / "MI200", "-p", "again", "-b", "4",
                           program=PERSONALITY, cwd=here)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("Roofline plot"), 1)
        page = (here / "roofline_MI200.html").read_text()
        document = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))
        self.assertEqual(len(document["workloads"]), 2)

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
