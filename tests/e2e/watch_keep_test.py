#!/usr/bin/env python3
"""`tacho watch --keep`: the last seconds in detail, written by triggers without stopping the program."""
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from harness import BUILD, Case, EXAMPLES, TACHO, TARGETS, main, sanitized

CASES = TARGETS / "opencl_cases"
CACHE = BUILD / "pocl-cache"
DRIVER = BUILD / "tests" / "fake_cuda" / "driver"
# A program on the stand-in driver. `steps` of it are written by each test.
PROGRAM = """
import ctypes, os, signal, sys, time
cuda = ctypes.CDLL('libcuda.so.1')
libc = ctypes.CDLL(None)
def kernel(name):
    made = ctypes.c_void_p()
    cuda.cuModuleGetFunction(ctypes.byref(made), None, name.encode())
    return made
def launch(made, stream=None):
    return cuda.cuLaunchKernel(made, 16, 1, 1, 256, 1, 1, 0, stream, None, None)
def allocate(size):
    at = ctypes.c_ulonglong()
    result = cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size))
    return result, at
def wait():
    return cuda.cuStreamSynchronize(None)
often = kernel('often_1000')
"""


def setUpModule():
    if sanitized():
        raise unittest.SkipTest("a sanitizer's runtime wants to be the first library of a program")
    CACHE.mkdir(exist_ok=True)
    os.environ.setdefault("POCL_CACHE_DIR", str(CACHE))


class Keep(Case):
    def command(self, *program, options=()):
        return [str(word) for word in (TACHO, "watch", "-q", "--keep", "30s", *options, "--", *program)]

    def keep(self, *program, options=(), code=0, **more):
        """Runs to the end; the files that were written, in order of their names."""
        self.result = self.run_command(*self.command(*program, options=options), code=code, **more)
        return self.files()

    def files(self):
        return sorted(path.name for path in self.folder.glob("*.tacho"))

    def cuda(self, steps, options=(), code=0, **environment):
        (self.folder / "program.py").write_text(PROGRAM + steps)
        return self.keep("/usr/bin/python3", "program.py", options=options, code=code, env={"LD_LIBRARY_PATH": str(DRIVER), **environment})

    def start(self, *program, options=(), **more):
        """A program that runs on. It may print a line."""
        process = subprocess.Popen(self.command(*program, options=options), cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        return process

    def start_cuda(self, steps, options=(), **environment):
        (self.folder / "program.py").write_text(PROGRAM + steps)
        return self.start("/usr/bin/python3", "program.py", options=options, env={**os.environ, "LD_LIBRARY_PATH": str(DRIVER), **environment})

    def until_file(self, name, patience=20):
        end = time.monotonic() + patience
        while not (self.folder / name).exists():
            self.assertLess(time.monotonic(), end, f"no {name}; there are {self.files()}")
            time.sleep(0.02)

    def query(self, file, sql):
        return json.loads(self.run_command(TACHO, "query", file, sql, "--dialect", "tacho", "--output-format", "json").stdout)["rows"]

    def notes(self, file):
        return " | ".join(row[0] for row in self.query(file, "SELECT text FROM note"))


class Files(Keep):
    def test_a_signal_makes_a_file_of_before_and_after(self):
        process = self.start_cuda("print('ready', flush=True)\n"
                                  "for i in range(300): launch(often)\n"
                                  "wait(); print('half', flush=True); time.sleep(0.5)\n"
                                  "for i in range(200): launch(often)\n"
                                  "wait(); time.sleep(2); print('goes on', flush=True)\n", options=("--after", "1500ms"))
        self.assertEqual(process.stdout.readline(), "ready\n")
        self.assertEqual(process.stdout.readline(), "half\n")
        process.send_signal(signal.SIGUSR1)
        self.until_file("watch-signal.tacho")
        self.assertIsNone(process.poll())
        self.assertEqual(process.wait(20), 0)
        self.assertEqual(process.stdout.read(), "goes on\n")
        self.assertEqual(self.files(), ["watch-signal.tacho"])
        self.assertRegex(process.stderr.read(), r"tacho: watch-signal\.tacho: tacho got SIGUSR1; 50\d operations of the \d\.\d s before it and the 1\.5 s after it")
        stats = self.stats("kernel", "watch-signal.tacho")
        self.assertEqual(stats["often_1000"]["Calls"], 500)
        self.assertIn("operations of devices were timed", self.notes("watch-signal.tacho"))
        # The host's times of all, the device's of those that were timed: 1 us each but the first 10.
        [[calls, waits]] = self.query("watch-signal.tacho", "SELECT sum(name = 'cuLaunchKernel'), sum(name = 'cuStreamSynchronize') FROM api")
        self.assertEqual((calls, waits), (500, 2))
        [[timed, shortest, longest]] = self.query("watch-signal.tacho", "SELECT count(duration), min(duration), max(duration) FROM dispatch")
        self.assertGreater(timed, 64)
        self.assertLess(timed, 400)
        self.assertEqual((shortest, longest), (1000, 2000))
        self.assertEqual(self.query("watch-signal.tacho", "SELECT count(*) FROM dispatch d JOIN api a ON d.correlation = a.correlation WHERE d.start < a.start"), [[0]])
        self.run_command(TACHO, "export", "-f", "pftrace", "watch-signal.tacho")

    def test_no_trigger_no_file(self):
        self.assertEqual(self.keep(CASES, "storm", 2000), [])
        self.assertEqual(self.result.stderr, b"")

    def test_opencl_times_are_those_of_the_device(self):
        files = self.keep("sh", "-c", f"{EXAMPLES / 'vcopy'} -n 1048576 -b 256 -i 20 && kill -SEGV $$", code=128 + signal.SIGSEGV)
        self.assertEqual(files, ["watch-crash.tacho"])
        stats = self.stats("kernel", files[0])
        self.assertEqual(stats["vecCopy"]["Calls"], 20)
        self.assertEqual(self.query(files[0], "SELECT count(*) FROM dispatch WHERE duration IS NULL"), [[0]])
        # Each kernel runs after its call began, and before the call that waited for it returned.
        self.assertEqual(self.query(files[0], "SELECT count(*) FROM dispatch d JOIN api a ON d.correlation = a.correlation WHERE d.start < a.start"), [[0]])
        [[last_kernel, last_wait]] = self.query(files[0], "SELECT max(start + duration), (SELECT max(start + duration) FROM api) FROM dispatch")
        self.assertLessEqual(last_kernel, last_wait)
        self.assertEqual(sorted(tuple(row) for row in self.query(files[0], "SELECT name, sum(bytes) FROM copy GROUP BY 1")),
                         [("device to host", 8 * 1048576), ("host to device", 16 * 1048576)])

    def test_a_full_ring_says_from_when_on_it_is_complete(self):
        files = self.keep(CASES, "killed", 1500, options=("--keep-memory", "128k"), code=128 + signal.SIGKILL)
        self.assertEqual(files, ["watch-crash.tacho"])
        self.assertIn("had been overwritten", self.notes(files[0]))
        [[count]] = self.query(files[0], "SELECT count(*) FROM dispatch")
        self.assertLessEqual(count, 2048)
        self.assertGreater(count, 500)

    def test_not_more_files_than_wanted(self):
        process = self.start_cuda("print('ready', flush=True)\nfor i in range(600): launch(often); wait(); time.sleep(0.005)\n",
                                  options=("--after", "0s", "--max-files", "2"))
        process.stdout.readline()
        for name in ("watch-signal.tacho", "watch-signal.1.tacho"):
            process.send_signal(signal.SIGUSR1)
            self.until_file(name)
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(process.wait(30), 0)
        self.assertEqual(self.files(), ["watch-signal.1.tacho", "watch-signal.tacho"])
        self.assertIn("--max-files", process.stderr.read())

    def test_other_signals_are_the_programs(self):
        process = self.start("sh", "-c", "trap 'exit 3' USR2; echo ready; while :; do sleep 0.05; done")
        process.stdout.readline()
        process.send_signal(signal.SIGUSR2)
        self.assertEqual(process.wait(20), 3)
        self.assertEqual(self.files(), [])

    def test_a_full_disk_is_said_and_the_program_unharmed(self):
        if not os.path.exists("/dev/full") or shutil.which("unshare") is None or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            self.skipTest("no mounts of one's own here")
        (self.folder / "small").mkdir()
        (self.folder / "program.py").write_text(PROGRAM + "for i in range(20000): launch(often)\nwait(); print('fine')\nos.kill(os.getpid(), 6)\n")
        command = " ".join(self.command("/usr/bin/python3", "program.py", options=("--files", "small")))
        result = self.run_command("unshare", "--mount", "sh", "-c", f"mount -t tmpfs -o size=8k none small && exec {command}", code=128 + signal.SIGABRT,
                                  env={"LD_LIBRARY_PATH": str(DRIVER)})
        self.assertEqual(result.stdout, b"fine\n")
        self.assertIn(b"No space left", result.stderr)

    def test_nothing_stays_behind(self):
        (self.folder / "pool").mkdir()
        self.keep(CASES, "storm", 100, env={"TACHO_POOL_DIR": str(self.folder / "pool")})
        self.assertEqual(os.listdir(self.folder / "pool"), [])

    def test_bad_options(self):
        for options, needle in ((("--keep", "soon"), "--keep"), (("--keep", "30s", "--trigger", "often"), "slow-step"), (("--keep", "30s", "--trigger", "signal:KILL"), "USR1"),
                                (("--keep", "30s", "--trigger", "slow-step:fast"), "slow-step:20%"), (("--keep", "30s", "--trigger", "idle:200%"), "idle"),
                                (("--keep", "30s", "--trigger", "memory:120%"), "memory"), (("--keep", "30s", "--trigger", "collective:5"), "unit"),
                                (("--keep", "30s", "--trigger", "crash:now"), "crash"),
                                (("--keep", "30s", "--keep-memory", "10"), "--keep-memory"), (("--keep", "30s", "--after", "-1s"), "--after"),
                                (("--keep", "30s", "--files", "nowhere"), "nowhere"), (("--trigger", "crash"), "--keep")):
            with self.subTest(options):
                self.one_sentence(self.run_command(TACHO, "watch", *options, "--", "true", code=125), needle)


class Triggers(Keep):
    def test_a_crash_has_the_last_launches(self):
        files = self.cuda("last = kernel('last_500')\nfor i in range(1000): launch(often)\nlaunch(last)\nos.kill(os.getpid(), signal.SIGSEGV)", code=128 + signal.SIGSEGV)
        self.assertEqual(files, ["watch-crash.tacho"])
        self.assertIn("SIGSEGV ended the program", self.notes(files[0]))
        self.assertEqual({name: row["Calls"] for name, row in self.stats("kernel", files[0]).items()}, {"often_1000": 1000, "last_500": 1})
        self.assertEqual(self.query(files[0], "SELECT name FROM dispatch ORDER BY correlation DESC LIMIT 1"), [["last_500"]])

    def test_a_program_that_is_ended_has_not_crashed(self):
        process = self.start_cuda("launch(often); print('ready', flush=True); time.sleep(30)")
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 128 + signal.SIGTERM)
        self.assertEqual(self.files(), [])

    def test_an_illegal_address(self):
        files = self.cuda("for i in range(300):\n    if launch(often) != 0: break\ntime.sleep(0.2); sys.exit(1)", code=1, FAKE_CUDA_FAULT="200")
        self.assertEqual(files, ["watch-crash.tacho"])
        self.assertIn("cuLaunchKernel reported an illegal memory access", self.notes(files[0]))
        self.assertEqual(self.stats("kernel", files[0])["often_1000"]["Calls"], 200)

    def test_out_of_memory_names_the_owners(self):
        files = self.cuda("for i in range(6): allocate(100 << 20)\nprint(allocate(600 << 20)[0])\ntime.sleep(0.1)", FAKE_CUDA_MEMORY=str(1 << 30))
        self.assertEqual(self.result.stdout, b"2\n")
        self.assertEqual(files, ["watch-out-of-memory.tacho"])
        notes = self.notes(files[0])
        self.assertIn("cuMemAlloc_v2 found no memory: it asked for 600.00 MiB", notes)
        self.assertIn("600.00 MiB in 6 allocations by cuMemAlloc_v2", notes)
        self.assertEqual(self.query(files[0], "SELECT s.operation, count(*), sum(bytes) FROM allocation JOIN allocation_shape s ON dim = s.id GROUP BY 1 ORDER BY 1"),
                         [["allocate", 6, 600 << 20], ["out of memory", 1, 600 << 20]])

    def test_memory_that_suffices(self):
        self.assertEqual(self.cuda("for i in range(6): allocate(100 << 20)", FAKE_CUDA_MEMORY=str(1 << 30)), [])

    def test_a_slow_graph_launch(self):
        steps = """
stream, graph, run = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
cuda.cuStreamCreate(ctypes.byref(stream), 0)
cuda.cuStreamBeginCapture_v2(stream, 0)
for i in range(5): launch(often, stream)
cuda.cuStreamEndCapture(stream, ctypes.byref(graph))
cuda.cuGraphInstantiateWithFlags(ctypes.byref(run), graph, ctypes.c_ulonglong(0))
for i in range(60):
    cuda.cuGraphLaunch(run, stream); cuda.cuStreamSynchronize(stream)
    time.sleep(0.4 if i == SLOW else 0.02)
"""
        options = ("--trigger", "slow-step:500%", "--after", "200ms")
        files = self.cuda("SLOW = 40\n" + steps, options=options)
        self.assertEqual(files, ["watch-slow-step.tacho"])
        self.assertRegex(self.notes(files[0]), r"the time from a launch of graph 1 to the next took 4\d\d\.\d+ ms, 1?\d\d\d % more than the 2\d\.\d+ ms of those before")
        self.assertEqual(self.query(files[0], "SELECT DISTINCT name FROM dispatch"), [["graph 1"]])
        os.remove(self.folder / files[0])
        self.assertEqual(self.cuda("SLOW = -1\n" + steps, options=options), [])
        # The first steps have no median.
        self.assertEqual(self.cuda("SLOW = 5\n" + steps, options=options), [])

    def test_idle_devices(self):
        busy = "end = time.monotonic() + 1.5\nwhile time.monotonic() < end: launch(often)\nwait()\n"
        options = ("--trigger", "idle:60%:500ms", "--after", "0s", "--max-files", "1")
        files = self.cuda(busy + "time.sleep(1.2)\n" + busy, options=options)
        self.assertEqual(files, ["watch-idle.tacho"])
        self.assertRegex(self.notes(files[0]), r"no device had work for \d+ % of the last 500\.000 ms")
        os.remove(self.folder / files[0])
        self.assertEqual(self.cuda("time.sleep(1.2)\n" + busy, options=options), [])  # before the first work nothing is idle

    def test_a_new_kernel(self):
        steps = "for i in range(10): launch(often)\ntime.sleep(LATER)\nlaunch(kernel('_Z3newv_700'))\nwait(); time.sleep(0.1)"
        files = self.cuda("LATER = 0.6\n" + steps, options=("--trigger", "new-kernel:300ms"))
        self.assertEqual(files, ["watch-new-kernel.tacho"])
        self.assertRegex(self.notes(files[0]), r"\S+ was launched for the first time, 6\d\d\.\d+ ms after the first work")
        os.remove(self.folder / files[0])
        self.assertEqual(self.cuda("LATER = 0.05\n" + steps, options=("--trigger", "new-kernel:300ms")), [])

    def test_memory_above_a_share(self):
        options = ("--trigger", "memory:50%", "--after", "0s")
        files = self.cuda("allocate(400 << 20)\ntime.sleep(0.1)\nallocate(200 << 20)\ntime.sleep(0.2)", options=options)
        self.assertEqual(files, ["watch-memory.tacho"])
        notes = self.notes(files[0])
        self.assertIn("the program's allocations take 58.6 % of the memory of Stand-in GPU 0", notes)
        self.assertIn("600.00 MiB in 2 allocations by cuMemAlloc_v2", notes)
        os.remove(self.folder / files[0])
        self.assertEqual(self.cuda("result, at = allocate(400 << 20)\ncuda.cuMemFree_v2(at)\nallocate(400 << 20)\n", options=options), [])

    def test_a_long_collective(self):
        steps = "nccl = kernel('ncclDevKernel_AllReduce_Sum_f32_RING_LL_%d')\nfor i in range(20): launch(nccl); wait()\ntime.sleep(0.1)"
        files = self.cuda(steps % 3_000_000, options=("--trigger", "collective:2ms", "--after", "0s", "--max-files", "1"))
        self.assertEqual(files, ["watch-collective.tacho"])
        self.assertRegex(self.notes(files[0]), r"ncclDevKernel_AllReduce\S+ took 6\.000 ms")
        os.remove(self.folder / files[0])
        self.assertEqual(self.cuda(steps % 500_000, options=("--trigger", "collective:2ms")), [])


if __name__ == "__main__":
    main()
