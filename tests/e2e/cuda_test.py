"""CUDA without a GPU: the way of CUPTI's records from a program to the trace, on a stand-in for CUPTI; and the sentences
for machines without a driver, without CUPTI, without permission."""
import csv
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import harness
from harness import BUILD, TACHO

FAKE = BUILD / "tests" / "fake_cuda"
APP = FAKE / "fake_cuda"


class Cuda(harness.Case):
    def fake(self, mode, launches, code=5, options=(), env=None, **more):
        return self.trace(APP, mode, launches, code=code, options=options, env={"CUDA_HOME": str(FAKE), **(env or {})}, **more)

    def losses(self, file="t.tacho"):
        return self.run_command(TACHO, "info", file).stdout.decode()

    def test_kernels_and_calls(self):
        result = self.fake("done", 5000)
        self.assertEqual(result.stdout.decode(), "done 5000\n")
        self.assertEqual(result.stderr, b"")
        kernels = self.stats("kernel")
        self.assertEqual({name: row["Calls"] for name, row in kernels.items()}, {"vecAdd(float*, int)": 5000})
        # The clock goes from the program's ticks through CUPTI to trace time: the device's 1000 ns stay 1000 ns.
        self.assertAlmostEqual(kernels["vecAdd(float*, int)"]["AverageNs"], 1000, delta=5)
        self.assertEqual(self.calls("api", "cudaLaunchKernel"), 5000)
        self.assertIn("Stand-in GPU", self.losses())
        self.assertIn("nothing was lost", self.losses())

    def test_arguments_of_calls(self):
        def arguments(*options):
            self.fake("done", 300, options=("--overwrite", *options))
            return json.loads(self.run_command(TACHO, "query", "t.tacho", "--dialect", "tacho", "--output-format", "json",
                                               "SELECT arguments, count(*) FROM api WHERE name LIKE 'cudaLaunch%' GROUP BY 1").stdout)["rows"]
        self.assertEqual(arguments(), [["", 300]])
        self.assertEqual(arguments("--api-args"),
                         [["func=0x1230, gridDim=40x2x1, blockDim=256x1x1, args=NULL, sharedMem=512, stream=0x77", 300]])

    def test_many_names(self):
        self.fake("names", 3000)
        self.assertEqual({row["Calls"] for row in self.stats("kernel").values()}, {1})
        self.assertEqual(len(self.stats("kernel")), 3000)

    def test_pool_that_is_too_small(self):
        # Buffers of several blocks and of one take turns in the same memory; losses are a matter of luck.
        for attempt in range(20):
            name = f"{attempt}.tacho"
            self.fake("done", 20000, options=["--pool-size", "256K"], output=name)
            got = self.calls("kernel", "vecAdd(float*, int)", name) + self.calls("api", "cudaLaunchKernel", name)
            text = self.losses(name)
            lost = re.search(r"([\d,]+) [^\n]*pool full", text)
            self.assertEqual(got + (int(lost.group(1).replace(",", "")) if lost else 0), 40000, text)
            self.assertNotIn("unknown record kind", text)

    def lost(self, reason, file="t.tacho"):
        """Records lost for a reason, as `tacho info` says."""
        return sum(int(count.replace(",", "")) for count in re.findall(rf"([\d,]+) [^\n]*{reason}", self.losses(file)))

    def test_500_threads_in_one_instant(self):
        # The memory that is ready in that instant depends on the machine. Dropped records are counted.
        result = self.fake("burst", 3)
        self.assertEqual(result.stdout.decode(), "burst 1500\n")
        kept = self.calls("kernel", "vecAdd(float*, int)") + self.calls("api", "cudaLaunchKernel")
        self.assertEqual(kept + self.lost("pool full"), 3000, self.losses())

    def test_500_threads_once_memory_is_ready(self):
        if os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize < 256 << 20:
            self.skipTest("/dev/shm is too small for 64 MiB ahead of need")
        self.fake("backed", 40)
        self.assertEqual(self.calls("kernel", "vecAdd(float*, int)"), 20000, self.losses())
        self.assertEqual(self.calls("api", "cudaLaunchKernel"), 20000)
        self.assertIn("nothing was lost", self.losses())

    def test_chosen_kernels(self):
        self.fake("names", 100, options=["--kernel-include", "kernel_1", "--kernel-exclude", "kernel_.5"])
        self.assertEqual(set(self.stats("kernel")), {"kernel_1", *(f"kernel_1{n}" for n in range(10) if n != 5)})
        self.assertRegex(self.losses(), "90 .*filtered")

    def test_cuptis_own_clock(self):
        self.fake("done", 100, env={"FAKE_CUPTI_OWN_CLOCK": "1"})
        self.assertAlmostEqual(self.stats("kernel")["vecAdd(float*, int)"]["AverageNs"], 1000, delta=50)

    def test_work_in_flight_at_exit_is_counted(self):
        self.fake("inflight", 100)
        self.assertEqual(self.calls("kernel", "vecAdd(float*, int)"), 0)
        self.assertEqual(self.calls("api", "cudaLaunchKernel"), 100)
        self.assertRegex(self.losses(), r"100 .*in flight when the process ended")

    def test_exit_without_handlers(self):
        self.fake("fastexit", 100, code=9)
        self.assertEqual(self.calls("kernel", "vecAdd(float*, int)"), 50)
        self.assertEqual(self.calls("api", "cudaLaunchKernel"), 100)
        self.assertRegex(self.losses(), r"50 .*in flight when the process ended")

    def test_killed(self):
        process = subprocess.Popen([TACHO, "trace", "-q", "-o", "t.tacho", "--", APP, "hang", "100"], cwd=self.folder,
                                   stdout=subprocess.PIPE, env={**os.environ, "CUDA_HOME": str(FAKE)})
        self.assertEqual(process.stdout.readline(), b"hang 100\n")
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            target = int(file.read().split()[0])
        with open(f"/proc/{target}/environ", "rb") as file:
            pool = next(v for v in file.read().split(b"\0") if v.startswith(b"TACHO_POOL=")).split(b"=", 1)[1]
        # Every 50 ms a thread in the program looks for new names. Records hold pointers: the text is in the pool once it did.
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with open(pool, "rb") as file:
                if b"_Z6vecAddPfi" in file.read(16 << 20):
                    break
            time.sleep(0.01)
        os.kill(target, signal.SIGKILL)
        self.assertEqual(process.wait(60), 137)
        process.stdout.close()
        self.assertEqual(self.calls("kernel", "vecAdd(float*, int)"), 50)
        self.assertEqual(self.calls("api", "cudaLaunchKernel"), 100)

    def test_paused_from_the_start(self):
        self.fake("done", 50, options=["--start-paused"])
        self.assertEqual(self.stats("kernel"), {})
        self.assertEqual(self.stats("api"), {})

    def test_chosen_sources(self):
        self.fake("done", 50, options=["--kernel-trace"])
        self.assertEqual(self.calls("kernel", "vecAdd(float*, int)"), 50)
        self.assertEqual(self.stats("api"), {})

    def test_program_with_its_own_cupti_client(self):
        result = self.fake("client", 50)
        self.assertEqual(result.stdout.decode(), "subscribe 39\nclient 50\n")
        self.one_sentence(result, "fake_cuda", "--yield-to-app")
        self.assertEqual(self.calls("kernel", "vecAdd(float*, int)"), 50)

    def test_yield_to_app(self):
        result = self.fake("client", 50, options=["--yield-to-app"])
        self.assertEqual(result.stderr, b"")
        self.assertEqual(self.stats("kernel"), {})
        self.assertIn("--yield-to-app", self.losses())

    def refused(self, code, *needles):
        """CUPTI refuses to start, or starts and refuses kernels: one sentence each time, and the program runs to its end."""
        for variable in ("FAKE_CUPTI_REFUSES", "FAKE_CUPTI_REFUSES_KERNELS"):
            result = self.fake("done", 50, env={variable: str(code)}, options=["--overwrite"])
            self.assertEqual(result.stdout.decode(), "done 50\n")
            self.one_sentence(result, *needles, "the program runs")
            self.assertEqual(self.stats("kernel"), {})
            self.assertIn(needles[0], self.losses())

    def test_profiling_is_for_administrators_only(self):
        self.refused(35, "only administrators", "NVreg_RestrictProfilingToAdminUsers")

    def test_virtual_gpu(self):
        self.refused(33, "virtual GPU", "enable_profiling")
        self.refused(40, "virtual GPU", "enable_profiling")

    def test_mig(self):
        self.refused(43, "MIG instance", "a whole GPU")

    def test_confidential_computing_and_wsl(self):
        self.refused(41, "confidential computing")
        self.refused(45, "WSL")

    def test_avail_on_a_driver_with_a_problem(self):
        def avail(**env):
            text = self.run_command(TACHO, "avail", env={"LD_LIBRARY_PATH": str(FAKE / "driver"), "CUDA_HOME": str(FAKE), **env}).stdout.decode()
            return next(line for line in text.splitlines() if re.match(r" *cuda ", line))
        self.assertIn("no usable GPU", avail(FAKE_CUDA_INIT="100"))
        self.assertIn("does not exist", avail(FAKE_CUDA_INIT="101"))
        self.assertIn("different versions", avail(FAKE_CUDA_INIT="803"))
        self.assertIn("too old: it supports CUDA 10.2", avail(FAKE_CUDA_VERSION="10020"))
        self.assertRegex(avail(), r"ready +CUPTI 130001 \(.*fake_cuda/lib64/libcupti.so.13\)")

    def test_old_driver(self):
        version = self.folder / "version"
        version.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  390.48  Thu Mar 22 00:42:57 PDT 2018\n")
        result = self.fake("done", 50, env={"FAKE_CUPTI_REFUSES": "1", "TACHO_NVIDIA_VERSION_FILE": str(version)})
        self.one_sentence(result, "driver (390) is too old", "the program runs")

    def test_other_profiler(self):
        self.one_sentence(self.fake("done", 50, env={"FAKE_CUPTI_REFUSES": "39"}), "another profiler")

    def test_newer_cupti_names_the_other_profiler(self):
        newer = {"CUDA_HOME": str(FAKE / "v2")}
        self.assertEqual(self.fake("done", 50, env=newer).stderr, b"")
        self.assertEqual(self.calls("kernel", "vecAdd(float*, int)"), 50)
        result = self.fake("done", 50, env={**newer, "FAKE_CUPTI_OTHER": "nsight"}, options=["--overwrite"])
        self.one_sentence(result, "another profiler, nsight already", "keeps its GPU records")
        self.assertEqual(self.stats("kernel"), {})

    def several(self, driver="610.43.02", **more):
        version = self.folder / "version"
        version.write_text(f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Thu Mar 22 00:42:57 PDT 2026\n")
        return {"CUDA_HOME": str(FAKE / "v3"), "TACHO_NVIDIA_VERSION_FILE": str(version), **more}

    def test_beside_the_programs_subscriber(self):
        result = self.fake("beside", 50, env=self.several())
        self.assertEqual((result.stdout.decode(), result.stderr), ("subscribe 0\nown kernels 50\nbeside 50\n", b""))
        self.assertEqual(self.calls("kernel", "vecAdd(float*, int)"), 50)
        self.assertEqual(self.calls("api", "cudaLaunchKernel"), 50)
        [row] = json.loads(self.run_command(TACHO, "query", "t.tacho", "SELECT count(DISTINCT tid), min(duration), max(duration) FROM tacho.dispatch",
                                            "--output-format", "json").stdout)["rows"]
        self.assertEqual(row, [1, 1000, 1000])
        said = self.run_command(TACHO, "query", "t.tacho", "SELECT value FROM tacho.property WHERE key = 'cupti.subscriber'", "--output-format", "csv")
        self.assertEqual(said.stdout, b"value\nbeside others\n")

    def test_alone_where_cupti_serves_one(self):
        for case in ({"driver": "580.95.05"}, {"FAKE_CUPTI_NO_THREADS": "1"}):
            result = self.fake("beside", 50, env=self.several(**case), options=["--overwrite"])
            self.assertEqual(result.stdout.decode(), "subscribe 39\nown kernels 0\nbeside 50\n")
            self.one_sentence(result, "fake_cuda", "--yield-to-app")
            self.assertEqual(self.calls("kernel", "vecAdd(float*, int)"), 50)

    def test_an_older_client_under_a_subscriber(self):
        result = self.fake("client", 50, env=self.several())
        self.assertEqual(result.stdout.decode(), "subscribe 39\nclient 50\n")
        self.one_sentence(result, "fake_cuda", "--yield-to-app")
        self.assertEqual(self.calls("kernel", "vecAdd(float*, int)"), 50)

    def test_rocprofv3_writes_cuda_files(self):
        result = self.run_command(BUILD / "personalities" / "rocprofv3", "--sys-trace", "-f", "csv", "-d", ".", "-o", "out", "--", APP,
                                  "done", "20", code=5, env={"CUDA_HOME": str(FAKE)})
        self.assertEqual(result.stdout.decode(), "done 20\n")
        with open(self.folder / "out_cuda_api_trace.csv") as file:
            calls = list(csv.DictReader(file))
        with open(self.folder / "out_kernel_trace.csv") as file:
            kernels = list(csv.DictReader(file))
        self.assertEqual({(row["Domain"], row["Function"]) for row in calls}, {("CUDA_RUNTIME_API", "cudaLaunchKernel")})
        self.assertEqual({row["Kernel_Name"] for row in kernels}, {"vecAdd(float*, int)"})
        # Every kernel by the call that launched it.
        self.assertEqual(sorted(row["Correlation_Id"] for row in kernels), sorted(row["Correlation_Id"] for row in calls))
        self.assertEqual(len(calls), 20)

    def test_unusable_cupti(self):
        # Without a driver the real CUPTI refuses; without the toolkit there is none: one sentence, and the program runs.
        result = self.trace(APP, "done", 5, code=5, env={"CUDA_HOME": str(self.folder)})
        self.assertEqual(result.stdout.decode(), "done 5\n")
        self.one_sentence(result, "CUPTI", "the program runs")

    @unittest.skipIf(os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/nvidia0"), "this machine has an NVIDIA GPU")
    def test_cuda_program_without_a_driver(self):
        if not shutil.which("objcopy"):
            self.skipTest("no objcopy")
        program, section = self.folder / "cuda_program", self.folder / "section"
        section.write_bytes(b"\0" * 64)
        self.run_command("objcopy", "--add-section", f".nv_fatbin={section}", "/bin/true", program)
        self.trace(program)
        self.assertIn("no NVIDIA driver", self.losses())

    @unittest.skipIf(os.path.exists("/dev/nvidiactl"), "this machine has an NVIDIA GPU")
    def test_avail_says_what_is_missing(self):
        self.assertRegex(self.run_command(TACHO, "avail").stdout.decode(), r"cuda +absent +no NVIDIA driver")


if __name__ == "__main__":
    harness.main()
