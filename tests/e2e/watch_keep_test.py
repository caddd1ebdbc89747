#!/usr/bin/env python3
"""`tacho watch --keep`: the last seconds in detail, written by triggers without stopping the program."""
import fcntl
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
import unittest

import watch_pid_test
from harness import BUILD, Case, EXAMPLES, SOURCE, TACHO, TARGETS, main, sanitized

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
        # The trigger's moment is a mark.
        self.assertEqual(self.query("watch-signal.tacho", "SELECT l.name, m.start > (SELECT min(start) FROM api) FROM marker m JOIN label l ON m.dim = l.id WHERE l.domain = 'tacho watch'"),
                         [["tacho got SIGUSR1", 1]])
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
        self.assertEqual(self.keep(CASES, "storm", 200, options=("--trigger", "slow-step:20%")), [])
        self.assertIn(b"--trigger slow-step:20%: the program had no steps: it launched no graph and ended no range 'ProfilerStep#N'", self.result.stderr)

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
        self.assertEqual(self.query(files[0], "SELECT kind, \"index\" FROM device"), [["CPU", 0]])
        self.assertEqual(sorted(tuple(row) for row in self.query(files[0], "SELECT name, sum(bytes) FROM copy GROUP BY 1")),
                         [("device to host", 8 * 1048576), ("host to device", 16 * 1048576)])

    def test_the_cpu_is_one_device_of_all_processes(self):
        files = self.keep("sh", "-c", f"for i in 1 2; do {EXAMPLES / 'vcopy'} -n 65536 -b 256 -i 20 || exit 1; done; kill -SEGV $$", code=128 + signal.SIGSEGV)
        self.assertEqual(self.query(files[0], "SELECT kind, \"index\" FROM device"), [["CPU", 0]])
        self.assertEqual(self.stats("kernel", files[0])["vecCopy"]["Calls"], 40)

    def test_a_full_ring_says_from_when_on_it_is_complete(self):
        files = self.keep(CASES, "killed", 1500, options=("--keep-memory", "128k"), code=128 + signal.SIGKILL)
        self.assertEqual(files, ["watch-crash.tacho"])
        self.assertIn("had been overwritten", self.notes(files[0]))
        [[count]] = self.query(files[0], "SELECT count(*) FROM dispatch")
        self.assertLessEqual(count, 2048)
        self.assertGreater(count, 500)

    def test_the_account_has_what_keeping_takes(self):
        (self.folder / "many.py").write_text(PROGRAM + "for _ in range(100000): launch(often)\nwait()\n")

        def taken(*options):
            """Host time of an operation that is not timed, ns, by the library's account."""
            command = [TACHO, "watch", "-q", "--output-format", "json", "-o", "account.json", "--overwrite", *options, "--", "/usr/bin/python3", "many.py"]
            self.run_command(*map(str, command), env={"LD_LIBRARY_PATH": str(DRIVER)})
            last = json.loads((self.folder / "account.json").read_text().splitlines()[-1])
            return (last["host_ns"] - last["host_timing_ns"]) / sum(row["count"] for row in last["rows"])

        # Another program on this processor makes some rounds dearer.
        counted = min(taken() for _ in range(4))
        kept = min(taken("--keep", "30s") for _ in range(4))
        self.assertGreater(kept, 1.2 * counted)

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

    def test_a_key_of_the_page(self):
        def until(needle):
            end = time.monotonic() + 20
            while needle not in self.seen and time.monotonic() < end:
                if select.select([terminal], [], [], 0.1)[0]:
                    self.seen += os.read(terminal, 65536)
            self.assertIn(needle, self.seen)
            self.seen = self.seen[self.seen.index(needle) + len(needle):]
        (self.folder / "program.py").write_text(PROGRAM + "for i in range(4000): launch(often); wait(); time.sleep(0.005)\n")
        for options, sentences in ((("--keep", "30s", "--after", "500ms"), (b"a file of the last 30.00 s and the next 500.00 ms is on its way", b"watch-key.tacho: a key was pressed")),
                                   ((), (b"r writes a file of the last seconds, which are kept with --keep 30s",))):
            self.seen = b""
            pid, terminal = pty.fork()
            if pid == 0:
                os.chdir(self.folder)
                os.environ.update(TERM="xterm", LD_LIBRARY_PATH=str(DRIVER))
                os.execv(str(TACHO), [str(TACHO), "watch", "--page", "--interval", "0.3", *options, "--", "/usr/bin/python3", "program.py"])
            self.addCleanup(os.close, terminal)
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            until(b"often_1000")
            os.write(terminal, b"r")
            for sentence in sentences:
                until(sentence)
            self.assertEqual(self.files(), ["watch-key.tacho"])
            os.kill(pid, signal.SIGTERM)
            until(b"often_1000 4096/256")
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 128 + signal.SIGTERM)

    def test_nothing_stays_behind(self):
        (self.folder / "pool").mkdir()
        self.keep(CASES, "storm", 100, env={"TACHO_POOL_DIR": str(self.folder / "pool")})
        self.assertEqual(os.listdir(self.folder / "pool"), [])

    def test_bad_options(self):
        for options, needle in ((("--keep", "soon"), "--keep"), (("--keep", "30s", "--trigger", "often"), "slow-step"), (("--keep", "30s", "--trigger", "signal:KILL"), "USR1"),
                                (("--keep", "30s", "--trigger", "slow-step:fast"), "slow-step:20%"), (("--keep", "30s", "--trigger", "idle:200%"), "idle"),
                                (("--keep", "30s", "--trigger", "memory:120%"), "memory"), (("--keep", "30s", "--trigger", "collective:5"), "unit"),
                                (("--keep", "30s", "--trigger", "crash:now"), "crash"), (("--keep", "30s", "--trigger", "marker:"), "marker:step"),
                                (("--keep", "30s", "--trigger", "slow-step:5%:"), "slow-step:20%:step"), (("--keep", "30s", "--trigger", "marker:" + "m" * 185), "184"),
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

    def test_the_last_launches_of_each_stream_before_an_illegal_address(self):
        files = self.cuda(
            "streams = [ctypes.c_void_p() for _ in range(3)]\nfor each in streams: cuda.cuStreamCreate(ctypes.byref(each), 1)\n"
            "last = [kernel('last_%d' % (100 + i)) for i in range(3)]\n"
            "for i in range(190): launch(often, streams[i % 3])\n"
            "for each, stream in zip(last, streams): launch(each, stream)\n"
            "while launch(often, streams[0]) == 0: pass\ntime.sleep(0.2)", FAKE_CUDA_FAULT="200")
        self.assertEqual(files, ["watch-crash.tacho"])
        lasts = self.query(files[0], "SELECT d.name, d.track, max(d.correlation) FROM dispatch d WHERE d.name LIKE 'last%' GROUP BY 1, 2")
        self.assertEqual(sorted(row[0] for row in lasts), ["last_100", "last_101", "last_102"])
        self.assertEqual(len({row[1] for row in lasts}), 3)

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
        options = ("--trigger", "slow-step:1000%", "--after", "200ms")
        files = self.cuda("SLOW = 40\n" + steps, options=options)
        self.assertEqual(files, ["watch-slow-step.tacho"])
        self.assertRegex(self.notes(files[0]), r"the time from a launch of graph 1 to the next took 4\d\d\.\d+ ms, 1?\d\d\d % more than the 2\d\.\d+ ms of those before")
        self.assertEqual(self.query(files[0], "SELECT DISTINCT name FROM dispatch"), [["graph 1"]])
        os.remove(self.folder / files[0])
        self.assertEqual(self.cuda("SLOW = -1\n" + steps, options=options), [])
        # Beside a trigger of a range, which the program has not.
        both = ("--trigger", "slow-step:20%:epoch", *options)
        self.assertEqual(self.cuda("SLOW = 40\n" + steps, options=both), ["watch-slow-step.tacho"])
        self.assertIn(b"slow-step:20%:epoch: the program ended no range 'epoch', and set no markers", self.result.stderr)
        os.remove(self.folder / files[0])
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


class Markers(Keep):
    """Triggers that the program's own markers are: tacho's, NVTX's, ROCTx's."""
    STEPS = "import tacho\nfor i in range(40):\n    with tacho.range('step %d' % i): launch(often); wait(); time.sleep(0.9 if i == SLOW else 0.01)\n"

    def python(self, steps, options=(), code=0, **environment):
        return self.cuda(steps, options, code, PYTHONPATH=str(BUILD / "share" / "tacho" / "python"), **environment)

    def markers(self, file):
        return self.query(file, "SELECT l.name, l.kind, coalesce(l.domain, ''), m.duration FROM marker m JOIN label l ON m.dim = l.id "
                                "WHERE coalesce(l.domain, '') <> 'tacho watch' ORDER BY m.start")

    def test_a_mark(self):
        steps = "import tacho\nlaunch(often)\nfor text in ('quiet', TEXT, 'after'): tacho.mark(text)\nwait(); time.sleep(0.1)"
        files = self.python("TEXT = 'epoch done'\n" + steps, options=("--trigger", "marker:epoch done", "--after", "0s"))
        self.assertEqual(files, ["watch-marker.tacho"])
        self.assertIn(b"watch-marker.tacho: the program set the mark 'epoch done'; 1 operation of the ", self.result.stderr)
        self.assertEqual([row[:3] for row in self.markers(files[0])][:2], [["quiet", "mark", ""], ["epoch done", "mark", ""]])
        os.remove(self.folder / files[0])
        # The whole text is meant, as by tacho trace --start-trigger.
        self.assertEqual(self.python("TEXT = 'epoch done!'\n" + steps, options=("--trigger", "marker:epoch done")), [])
        self.assertEqual(self.result.stderr, b"")

    def test_a_range_and_what_was_in_it(self):
        steps = "import tacho\nwith tacho.range('outer'):\n  with tacho.range('inner', domain='io'): launch(often)\n  number = tacho.range_start('apart'); wait()\ntacho.range_stop(number)\n" \
                "tacho.range_push('open')\ntime.sleep(0.05)\ntacho.mark('ä' * 200)\ntime.sleep(0.3)"
        files = self.python(steps, options=("--trigger", "marker:open", "--after", "200ms"))
        self.assertEqual(files, ["watch-marker.tacho"])
        self.assertIn(b"the program began the range 'open'", self.result.stderr)
        rows = self.markers(files[0])
        self.assertEqual([row[:3] for row in rows], [["outer", "push/pop", ""], ["inner", "push/pop", "io"], ["apart", "start/stop", ""], ["open", "push/pop", ""], ["ä" * 92 + "…", "mark", ""]])
        outer, inner, apart, still_open, _ = [row[3] for row in rows]
        self.assertGreater(outer, inner)
        self.assertGreater(apart, 0)
        self.assertIsNone(still_open)

    def test_slow_steps_are_ranges_of_a_name(self):
        options = ("--trigger", "slow-step:3000%:step", "--after", "0s", "--max-files", "1")
        files = self.python("SLOW = 33\n" + self.STEPS, options=options)
        self.assertEqual(files, ["watch-slow-step.tacho"])
        self.assertRegex(self.notes(files[0]), r"'step 33' took \d+\.\d+ m?s, \d+ % more than the \d+\.\d+ ms of those before")
        os.remove(self.folder / files[0])
        self.assertEqual(self.python("SLOW = -1\n" + self.STEPS, options=options), [])
        self.assertEqual(self.result.stderr, b"")
        # Ranges of another name are none, which is said.
        self.assertEqual(self.python("SLOW = 33\n" + self.STEPS, options=("--trigger", "slow-step:500%:epoch")), [])
        self.assertIn(b"--trigger slow-step:500%:epoch: the program ended no range 'epoch'", self.result.stderr)

    def test_the_program_asks(self):
        steps = "import tacho\nlaunch(often); wait()\nfor i in range(2): tacho.keep('request %d took long' % i); time.sleep(0.3)"
        files = self.python(steps, options=("--after", "100ms"))
        self.assertEqual(files, ["watch-program.1.tacho", "watch-program.tacho"])
        self.assertIn("the program asked for it: 'request 0 took long'", self.notes("watch-program.tacho"))
        self.assertIn("the program asked for it: 'request 1 took long'", self.notes("watch-program.1.tacho"))
        for file in files:
            os.remove(self.folder / file)
        self.assertEqual(self.python(steps, options=("--trigger", "crash")), [])
        # Without anybody it does nothing; in a trace it is a mark.
        code = "import tacho\ntacho.keep('why')"
        path = {"PYTHONPATH": str(BUILD / "share" / "tacho" / "python")}
        self.run_command("/usr/bin/python3", "-c", code, env=path)
        self.run_command(TACHO, "trace", "-o", "t.tacho", "--", "/usr/bin/python3", "-c", code, env=path)
        self.assertEqual(self.markers("t.tacho")[0][:2], ["why", "mark"])

    def test_the_program_asks_in_c(self):
        (self.folder / "asks.c").write_text('#include <tacho/tacho.h>\n#include <unistd.h>\nint main(void) { tacho_keep("from C"); usleep(200000); return 0; }\n')
        self.run_command("gcc", "-std=c99", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Werror", "-I", SOURCE / "include", "-o", "asks", "asks.c")
        self.run_command("./asks")
        self.assertEqual(self.keep("./asks", options=("--after", "0s")), ["watch-program.tacho"])
        self.assertIn(b"the program asked for it: 'from C'", self.result.stderr)

    def test_nvtx(self):
        files = self.keep("sh", "-c", f"{BUILD / 'tests' / 'marker_nvtx'} && sleep 0.1", options=("--trigger", "marker:ascii", "--after", "0s"))
        self.assertEqual(files, ["watch-marker.tacho"])
        rows = self.markers(files[0])
        self.assertIn(["ascii", "mark", "NVTX", 0], rows)
        self.assertIn(["wide ä € 😀", "mark", "NVTX", 0], rows)
        self.run_command(*self.command(BUILD / "tests" / "marker_nvtx", "untraced", options=())[:2], "-q", "--", BUILD / "tests" / "marker_nvtx", "untraced")

    def test_another_tool_of_nvtx_stays(self):
        self.assertEqual(self.keep("sh", "-c", "echo $NVTX_INJECTION64_PATH", options=("--trigger", "marker:x"), env={"NVTX_INJECTION64_PATH": "/other.so"}), [])
        self.assertEqual(self.result.stdout, b"/other.so\n")
        self.assertIn(b"NVTX_INJECTION64_PATH is already set to /other.so: left alone, so NVTX is not kept", self.result.stderr)
        self.assertIn(b"--trigger marker:x: the program set no markers", self.result.stderr)

    def test_roctx(self):
        stand_in = BUILD / "lib" / "roctx" / "libroctx64.so.4"
        # Opened by name, and linked to it: ROCTx's own function is called, too.
        for way in (str(stand_in), "linked"):
            env = {"LD_PRELOAD": str(stand_in)} if way == "linked" else {}
            files = self.keep("sh", "-c", f"{BUILD / 'tests' / 'marker_roctx'} {way} && sleep 0.1", options=("--trigger", "marker:a mark", "--after", "0s"), env=env)
            self.assertEqual(files, ["watch-marker.tacho"], way)
            self.assertIn(["a mark", "mark", "ROCTx", 0], self.markers(files[0]), way)
            os.remove(self.folder / files[0])
            # Without --keep ROCTx is as it is alone.
            self.run_command(TACHO, "watch", "-q", "--", BUILD / "tests" / "marker_roctx", way, env=env)


# A rank plays NCCL: it tells the plugin that the environment names of its collectives, one each 20 ms.
RANK = r"""
import ctypes, os, sys, time
rank, ranks, calls, pause_before, pause = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
library = ctypes.CDLL(os.environ["NCCL_PROFILER_PLUGIN"])
class Plugin(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("name", "init", "start", "stop", "state", "finalize")]
class Event(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint8), ("parent", ctypes.c_void_p), ("rank", ctypes.c_int), ("sequence", ctypes.c_uint64), ("func", ctypes.c_char_p),
                ("send", ctypes.c_void_p), ("receive", ctypes.c_void_p), ("count", ctypes.c_size_t), ("root", ctypes.c_int), ("type", ctypes.c_char_p),
                ("channels", ctypes.c_uint8), ("warps", ctypes.c_uint8), ("algo", ctypes.c_char_p), ("proto", ctypes.c_char_p)]
plugin = Plugin.in_dll(library, "ncclProfiler_v4")
context, mask, event = ctypes.c_void_p(), ctypes.c_int(-1), ctypes.c_void_p()
i, p, u = ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64
assert ctypes.CFUNCTYPE(i, p, p, ctypes.c_char_p, u, i, i, i, p)(plugin.init)(ctypes.addressof(context), ctypes.addressof(mask), b"dp", 0x5a, 1, ranks, rank, None) == 0
assert mask.value == 2, mask.value
start = ctypes.CFUNCTYPE(i, p, p, p)(plugin.start)
for number in range(calls):
    if number == pause_before: time.sleep(pause)
    what = Event(kind=2, sequence=number, func=b"AllReduce", count=1024, type=b"ncclFloat32", algo=b"RING", proto=b"LL")
    assert start(context, ctypes.addressof(event), ctypes.addressof(what)) == 0
    time.sleep(0.02)
"""


class Ranks(Keep):
    def ranks(self, *each, options):
        """Programs of a job, by their words."""
        (self.folder / "rank.py").write_text(RANK)
        return self.keep("sh", "-c", " & ".join(f"/usr/bin/python3 rank.py {words}" for words in each) + "; wait", options=options)

    def test_the_rank_that_is_missing(self):
        options = ("--trigger", "collective:700ms", "--after", "0s", "--max-files", "1")
        files = self.ranks("0 4 20 -1 0", "1 4 20 -1 0", "2 4 20 7 2.5", options=options)
        self.assertEqual(files, ["watch-collective.tacho"])
        self.assertRegex(self.notes(files[0]), r"AllReduce 7 of communicator 5a was called by ranks 0, 1 0\.\d+ s ago, and not yet by rank 2 \(process \d+\); 1 of its 4 ranks is not watched here")
        marks = self.query(files[0], "SELECT l.name FROM marker m JOIN label l ON m.dim = l.id WHERE l.domain = 'collectives'")
        self.assertIn(["AllReduce 7 of communicator 5a, rank 0 of 4"], marks)
        self.assertNotIn(["AllReduce 7 of communicator 5a, rank 2 of 4"], marks)

    def test_ranks_that_keep_up(self):
        self.assertEqual(self.ranks("0 2 20 3 0.2", "1 2 20 5 0.2", options=("--trigger", "collective:3s")), [])
        self.assertEqual(self.result.stderr, b"")

    def test_a_rank_that_has_ended(self):
        files = self.ranks("0 2 20 12 1.5", "1 2 10 -1 0", options=("--trigger", "collective:500ms", "--after", "0s", "--max-files", "1"))
        self.assertEqual(files, ["watch-collective.tacho"])
        self.assertRegex(self.notes(files[0]), r"AllReduce 10 of communicator 5a .*not yet by rank 1 \(process \d+, which has ended\)")


class RunningPrograms(watch_pid_test.Running):
    """What programs do that were started without tacho, from its coming to its leaving."""
    files, query, notes, until_file = Keep.files, Keep.query, Keep.notes, Keep.until_file
    OPTIONS = ("--keep", "30s", "--after", "0s")

    def driver(self, way, **environment):
        program = watch_pid_test.FAKE / ("fake_steps_linked" if way == "linked" else "fake_steps")
        return self.start(program, way, env={**os.environ, "LD_LIBRARY_PATH": str(DRIVER), **environment})

    def watch(self, program, *options):
        return watch_pid_test.Watcher(self, program.pid, *self.OPTIONS, *options)

    def test_a_signal_in_stay_after_stay(self):
        for way in ("table", "linked"):
            program = self.driver(way)
            for size in ("1M", "64M", "1M", "2M"):
                program.ask("run 50")
                before = json.loads(program.ask("report"))
                watch = self.watch(program, "--keep-memory", size)
                program.ask("run 300")
                watch.process.send_signal(signal.SIGUSR1)
                self.until_file("watch-signal.tacho")
                program.ask("run 10")
                watch.end()
                self.assertRegex(watch.said, r"watch-signal\.tacho: tacho got SIGUSR1; \d+ operations of the \d+\.\d s before it")
                self.assertEqual({name: row["Calls"] for name, row in self.stats("kernel", "watch-signal.tacho").items()}, {"often_1000": 300, "seldom_50000": 30})
                self.assertEqual(self.query("watch-signal.tacho", "SELECT count(*), sum(bytes) FROM copy"), [[60, 30 * 4100]])
                self.assertEqual(self.query("watch-signal.tacho", "SELECT count(*) FROM dispatch d JOIN api a ON d.correlation = a.correlation WHERE d.start < a.start"), [[0]])
                self.assertEqual(self.query("watch-signal.tacho", "SELECT name FROM device"), [["Stand-in GPU"]])
                [[timed]] = self.query("watch-signal.tacho", "SELECT count(duration) FROM dispatch")
                self.assertGreater(timed, 64)
                os.remove(self.folder / "watch-signal.tacho")
                # Everything is given back.
                after = json.loads(program.ask("report"))
                self.assertEqual(after["events"], after["events_destroyed"])
                self.assertGreater(after["events"], before["events"])
                self.nothing_left(program)

    def test_a_crash(self):
        os.environ.setdefault("POCL_CACHE_DIR", str(CACHE))
        program = self.start(watch_pid_test.TOLD)
        watch = self.watch(program)
        program.ask("run 100")
        program.process.kill()
        self.until_file("watch-crash.tacho")
        watch.end(0)
        self.assertRegex(watch.said, rf"SIGKILL ended process {program.pid} \(opencl_told\)|process {program.pid} \(opencl_told\) ended, and not by exit\(\)")
        self.assertEqual(self.stats("kernel", "watch-crash.tacho")["mix_up"]["Calls"], 100)
        [[device]] = self.query("watch-crash.tacho", "SELECT name FROM device")
        self.assertTrue(device)

    def test_an_end_that_nobody_tells(self):
        # Its parent is told by what it ended, before tacho can ask.
        program = self.start("/bin/sh", "-c", f"{watch_pid_test.FAKE / 'fake_steps'} table; exit 0", env={**os.environ, "LD_LIBRARY_PATH": str(DRIVER)})
        [child] = [int(word) for word in pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()]
        watch = watch_pid_test.Watcher(self, child, *self.OPTIONS)
        program.ask("run 100")
        os.kill(child, signal.SIGKILL)
        watch.end(0)
        self.assertEqual(self.files(), ["watch-crash.tacho"])
        self.assertRegex(watch.said, rf"SIGKILL ended process {child}|process {child} \(fake_steps\) ended, and not by exit\(\); only its parent knows by what")

    def test_an_end_in_order(self):
        program = self.driver("table")
        watch = self.watch(program)
        program.ask("run 100")
        program.process.stdin.close()
        watch.end(0)
        self.assertEqual(self.files(), [])

    def test_the_program_asks_and_memory(self):
        (self.folder / "asks.c").write_text('#include <stdio.h>\n#include <tacho/tacho.h>\nint main(void) { char line[64]; tacho_mark("first"); puts("ready"); fflush(stdout);\n'
                                            'while (fgets(line, sizeof line, stdin)) { tacho_keep("asked late"); puts("done"); fflush(stdout); } return 0; }\n')
        self.run_command("gcc", "-std=c99", "-D_DEFAULT_SOURCE", "-I", SOURCE / "include", "-o", "asks", "asks.c")
        program = self.start("./asks")
        program.ask("before")
        watch = self.watch(program)
        program.ask("now")
        self.until_file("watch-program.tacho")
        watch.end()
        self.assertIn("the program asked for it: 'asked late'", watch.said)
        program.ask("after")
        program = self.driver("table", FAKE_CUDA_MEMORY=str(2 << 20))
        watch = self.watch(program)
        for _ in range(3):
            program.ask("run 10")
        self.until_file("watch-out-of-memory.tacho")
        watch.end()
        self.assertIn("2.00 MiB in 2 allocations by cuMemAlloc_v2", self.notes("watch-out-of-memory.tacho"))

    def stay_of_markers(self, program, *options):
        """What a trigger writes of markers that the program sets all the time: [text, domain, whether it has ended]."""
        watch = watch_pid_test.Watcher(self, program.pid, "--keep", "30s", *options)
        time.sleep(0.5)
        if not options:
            watch.process.send_signal(signal.SIGUSR1)
        file = "watch-marker.tacho" if options else "watch-signal.tacho"
        self.until_file(file)
        moment = watch.end()
        self.nothing_left(program)
        rows = self.query(file, "SELECT l.name, coalesce(l.domain, ''), m.duration IS NOT NULL FROM marker m JOIN label l ON m.dim = l.id "
                                "WHERE coalesce(l.domain, '') <> 'tacho watch' ORDER BY m.start")
        os.remove(self.folder / file)
        return rows, moment

    def end_of(self, program):
        program.process.terminate()
        line = program.line()
        self.assertEqual(program.process.wait(20), 0)
        return line

    def test_nvtx_that_had_no_tool(self):
        for path in [TARGETS / "attach_markers"] + [TARGETS / "attach_markers_real"] * (TARGETS / "attach_markers_real").exists():
            program = self.start(path)
            for stay in range(3):
                with self.subTest(path.name, stay=stay):
                    rows, _ = self.stay_of_markers(program, *(("--trigger", "marker:inner", "--after", "500ms") if stay == 1 else ()))
                    count = sum(text == "numbered" for text, _, _ in rows)
                    self.assertGreater(count, 20)
                    self.assertEqual({(text, domain) for text, domain, _ in rows},
                                     {(text, "NVTX") for text in ("numbered", "outer", "inner", "range", "(text from before tacho attached)")} | {("registered late", "made late")})
                    for name in ("outer", "inner", "range", "registered late", "(text from before tacho attached)"):
                        self.assertLessEqual(abs(sum(text == name for text, _, _ in rows) - count), 1, name)
                    # Only what was under way when the file was written is open.
                    self.assertLessEqual(sum(text in ("outer", "inner", "range") and not ended for text, _, ended in rows), 2)
            self.assertRegex(self.end_of(program), r"^\d+ rounds, tables as before$")

    def test_roctx_that_had_no_tool(self):
        (self.folder / "roctx.c").write_text(
            "#include <stdint.h>\nstatic __thread int level;\nstatic uint64_t last;\nvoid roctxMarkA(const char* t) { (void)t; }\n"
            "int roctxRangePushA(const char* t) { (void)t; return level++; }\nint roctxRangePop(void) { return level == 0 ? -1 : --level; }\n"
            "uint64_t roctxRangeStartA(const char* t) { (void)t; return ++last; }\nvoid roctxRangeStop(uint64_t r) { (void)r; }\n")
        self.run_command("gcc", "-O2", "-shared", "-fPIC", "-Wl,-soname,libroctx64.so.4", "-o", "libroctx64.so.4", "roctx.c")
        program = self.start(TARGETS / "attach_markers", "roctx", "./libroctx64.so.4")
        for stay in range(3):
            with self.subTest(stay=stay):
                rows, _ = self.stay_of_markers(program, *(("--trigger", "marker:inner", "--after", "500ms") if stay == 1 else ()))
                self.assertEqual({domain for _, domain, _ in rows}, {"ROCTx"})
                numbers = [int(text.split()[1]) for text, _, _ in rows if text.startswith("mark ")]
                self.assertGreater(len(numbers), 20)
                self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))
                for name in ("outer", "inner", "range"):
                    self.assertLessEqual(abs(sum(text == name for text, _, _ in rows) - len(numbers)), 1, name)
                self.assertLessEqual(sum(text in ("outer", "inner", "range") and not ended for text, _, ended in rows), 2)
        self.assertRegex(self.end_of(program), r"^\d+ rounds, levels and numbers right, words as before$")

    def test_markers_of_another_tool_stay(self):
        if not (TARGETS / "attach_markers_real").exists():
            self.skipTest("NVIDIA's headers (nvtx3/nvToolsExt.h) are not installed")
        (self.folder / "tool.c").write_text(
            "#include <stddef.h>\ntypedef void (*F)(void);\nstatic int count;\nstatic void mark(const void* e) { (void)e; ++count; }\n"
            "typedef struct { size_t size; int (*table)(int, F***, unsigned*); } Callbacks;\n"
            "int InitializeInjectionNvtx2(const void* (*get)(unsigned)) {\n  const Callbacks* c = get(1); F** table; unsigned size;\n"
            "  if (c == 0 || c->table(1, &table, &size) == 0) return 0;\n  *table[1] = (F)mark; return 1; }\n")
        self.run_command("gcc", "-O2", "-shared", "-fPIC", "-o", "libtool.so", "tool.c")
        program = self.start(TARGETS / "attach_markers_real", env={**os.environ, "NVTX_INJECTION64_PATH": str(self.folder / "libtool.so")})
        watch = watch_pid_test.Watcher(self, program.pid, "--keep", "30s", "--trigger", "marker:inner")
        time.sleep(0.5)
        moment = watch.end()
        self.assertEqual(self.files(), [])
        self.assertIn(f"Another tool takes markers that process {program.pid} sets: they are not kept.", moment["notes"])
        self.assertRegex(self.end_of(program), "tables as before")


if __name__ == "__main__":
    main()
