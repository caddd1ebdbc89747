"""`tacho attach` in programs that have a profiler of their own, on stand-ins for CUPTI and kineto: tacho records between the profiler's windows,
and each window is as it is without tacho."""
import os
import re
import signal
import subprocess
import time

import attach_test
import harness
from harness import TACHO

FAKES = harness.BUILD / "tests" / "fake_cuda"
RECORDS_NOW = "PyTorch's profiler records in process"
BEGAN = "a profiler in the program began to use CUPTI"
BESIDE = "PyTorch's profiler was used in the program before"
HELD = "another profiler[^;]*already uses CUPTI in process"


class Profiled(attach_test.Attached):
    def start_profiled(self, windows=1, name="", **more):
        """A program whose profiler has had so many windows."""
        folder = FAKES / name
        version = self.folder / "version"
        version.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Thu Mar 22 00:42:57 PDT 2026\n")
        return self.start(FAKES / "fake_profiled", windows, env={**os.environ, "CUDA_HOME": str(folder), "TACHO_NVIDIA_VERSION_FILE": str(version),
                                                                 "LD_LIBRARY_PATH": f"{FAKES / 'driver'}:{folder / 'lib64'}", **more})

    def signal(self, program, number, answer):
        program.send_signal(number)
        self.assertEqual(program.stdout.readline().strip(), answer)

    def opens(self, program):
        self.signal(program, signal.SIGUSR1, "open")

    def closes(self, program):
        self.signal(program, signal.SIGUSR2, "closed")

    def info(self):
        return " ".join(self.run_command(TACHO, "info", "a.tacho").stdout.decode().split())

    def attach_meanwhile(self, program, what, *options, seconds="1.0"):
        """Attaches and calls `what` once tacho records; the trace's words."""
        tacho = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "--overwrite", "-o", "a.tacho", "--duration", seconds, *options],
                                 cwd=self.folder)
        self.addCleanup(tacho.kill)
        self.wait_until(lambda: self.threads(program.pid) or tacho.poll() is not None)
        time.sleep(0.4)
        what()
        self.assertEqual(tacho.wait(timeout=60), 0)
        return self.info()

    def kernels(self):
        return int(self.query("SELECT count(*) FROM tacho.dispatch")[0][0])

    def ends_whole(self, program, least=1, clocks=0, finalised=0):
        """All windows have the records of all launches in them and of no others, and nothing of tacho's is left: it sets CUPTI's clock only where
        no profiler was before, once. CUPTI is finalised as often as the program's profiler does it, and then nobody uses it."""
        self.assertEqual(self.leftovers(program.pid), ([], [], []))
        said = self.end(program)
        found = re.fullmatch(r"(\d+) kernels and (\d+) calls of (\d+) in windows, (\d+) buffers of others, kinds left 0, thread ids 0, words led 0, "
                             rf"clock set by others {clocks} times, finalised {finalised} times, 0 of them wrongly", said.splitlines()[-1])
        self.assertIsNotNone(found, said)
        kernels, calls, launches, unknown = map(int, found.groups())
        self.assertEqual((kernels, calls, unknown), (launches, launches, 0))
        self.assertGreaterEqual(launches, least)

    def test_between_two_windows(self):
        """Again and again, with times of trace time although CUPTI's clock counts ticks of the processor, and a window after each."""
        program = self.start_profiled()
        for number in range(4):
            begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
            self.attach(program, "--duration", "0.5", *(("--all-api-calls", "--driver-trace") if number % 2 else ()))
            end = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
            info = self.info()
            self.assertIn(BESIDE, info)
            self.assertIn("nothing was lost", info)
            self.assertEqual(self.query("SELECT value FROM tacho.property WHERE key = 'cupti.left'"), [["to another profiler"]])
            first, last, count = map(int, self.query("SELECT min(start), max(start + duration), count(*) FROM tacho.dispatch")[0])
            self.assertLess(begin, first)
            self.assertLess(last, end)
            self.assertLess(0.25e9, last - first)
            self.assertGreater(count, 30)
            # Kernels last 1,000 of the clock's ticks.
            longest, = self.query("SELECT max(duration) FROM tacho.dispatch")[0]
            self.assertTrue(150 < int(longest) < 1001, longest)
            calls = self.query("SELECT count(*) FROM tacho.api WHERE name = 'cuDriverGetVersion'")
            self.assertEqual(calls, [["0"]], "tacho's own call")
            self.opens(program)
            time.sleep(0.1)
            self.closes(program)
        self.ends_whole(program, 200)

    def test_each_launch_once(self):
        """Every launch between the first and the last one recorded is there."""
        program = self.start_profiled()
        self.attach(program, "--duration", "0.5", "--kernel-trace")
        rows = [int(row[0]) for row in self.query("SELECT correlation FROM tacho.dispatch ORDER BY correlation")]
        self.assertGreater(len(rows), 30)
        self.assertEqual(len(set(rows)), len(rows))
        self.assertEqual(rows[-1] - rows[0] + 1, len(rows))
        self.ends_whole(program)

    def test_a_window_that_opens_meanwhile(self):
        program = self.start_profiled()
        opened = []

        def window():
            self.opens(program)
            opened.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW))
            time.sleep(0.2)
            self.closes(program)
        info = self.attach_meanwhile(program, window)
        self.assertIn(BEGAN, info)
        self.assertRegex(info, r"\(cuptiActivityRegisterTimestampCallback\) 0\.[1-9] s after tacho")
        self.assertNotIn(RECORDS_NOW, info)  # it does not try again, when the program loads a library either
        # The stand-in's device ends work when the program says so, which waits for tacho here.
        self.assertRegex(info, "nothing was lost|[1-8] dispatch records?: in flight")
        self.assertGreater(self.kernels(), 20)
        last, = self.query("SELECT max(start) FROM tacho.dispatch")[0]
        self.assertLess(int(last), opened[0])
        ended, = self.query("SELECT value FROM tacho.property WHERE key = 'cuda.ended'")[0]
        self.assertLess(int(ended), opened[0])
        self.assertIn(BESIDE, self.attach_meanwhile(program, lambda: None, seconds="0.4"))  # the next one is as the first
        self.assertGreater(self.kernels(), 10)
        self.ends_whole(program, 50)

    def test_a_window_that_is_open(self):
        program = self.start_profiled()
        self.opens(program)
        for _ in range(2):
            self.attach(program, "--duration", "0.3")
            self.assertIn(RECORDS_NOW, self.info())
            self.assertEqual(self.kernels(), 0)
        self.closes(program)
        self.attach(program, "--duration", "0.3")
        self.assertGreater(self.kernels(), 10)
        self.ends_whole(program, 200)

    def test_a_window_that_tacho_lives_to_see_closed(self):
        """It records from then on, and says so once, however often it has looked."""
        program = self.start_profiled()
        self.opens(program)
        closed = []

        def close():
            self.closes(program)
            closed.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW))
        info = self.attach_meanwhile(program, close, seconds="1.6")
        self.assertEqual(info.count(RECORDS_NOW), 1)
        self.assertRegex(info, "PyTorch's profiler ended [0-9.]+ s after tacho came: CUDA activity is recorded since")
        self.assertIn("nothing was lost", info)
        self.assertGreater(self.kernels(), 50)
        first, = self.query("SELECT min(start) FROM tacho.dispatch")[0]
        self.assertLess(closed[0], int(first))
        self.attach(program, "--duration", "0.3")
        self.assertNotRegex(self.info(), RECORDS_NOW + "|ended [0-9.]+ s after")
        self.ends_whole(program, 50)

    def test_the_first_window_while_tacho_subscribes(self):
        """The profiler gets CUPTI's subscriber, which tacho has had until then."""
        program = self.start_profiled(0)

        def window():
            self.opens(program)
            time.sleep(0.1)
            self.closes(program)
        info = self.attach_meanwhile(program, window)
        self.assertRegex(info, BEGAN + r" \(cuptiSubscribe\)")
        self.assertGreater(self.kernels(), 20)
        self.assertNotIn(BESIDE, info)
        self.attach(program, "--duration", "0.4")
        self.assertIn(BESIDE, self.info())
        self.ends_whole(program, 30, clocks=1)

    def test_a_profiler_that_is_not_initialised(self):
        """Its state may not be asked; it has not subscribed, so tacho does."""
        program = self.start_profiled(0, FAKE_KINETO_REGISTERED="1")
        self.attach(program, "--duration", "0.4")
        self.assertNotIn(BESIDE, self.info())
        self.assertGreater(self.kernels(), 10)
        self.opens(program)
        self.closes(program)
        self.ends_whole(program, clocks=1, finalised=1)

    def test_times_of_a_fast_program(self):
        """They are right from the first buffer on, which is full before tacho looks at the clock again."""
        program = self.start_profiled(FAST="1")
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        self.attach(program, "--duration", "0.3", "--kernel-trace")
        end = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        first, last, count, longest = map(int, self.query("SELECT min(start), max(start + duration), count(*), max(duration) FROM tacho.dispatch")[0])
        self.assertGreater(count, 5000)
        self.assertLess(begin, first)
        self.assertLess(last, end)
        self.assertTrue(150 < longest < 1001, longest)
        self.ends_whole(program)

    def test_work_from_before(self):
        """Its records have no times, and are left out."""
        program = self.start_profiled(FAKE_CUPTI_LATE_RECORD="1")
        self.attach(program, "--duration", "0.4")
        info = self.info()
        self.assertIn("nothing was lost", info)
        self.assertRegex(info, "[0-9]+ launch(es)? from before tacho attached left records")
        self.assertGreater(self.kernels(), 10)
        self.end(program)

    def test_a_profiler_that_finalises_cupti(self):
        """With TEARDOWN_CUPTI=1 kineto does so at the end of the program's next call after a window. tacho comes after that, and stays no longer
        than until the next window."""
        program = self.start_profiled(TEARDOWN_CUPTI="1")
        for _ in range(3):
            self.attach(program, "--duration", "0.5")
            self.assertIn("nothing was lost", self.info())
            self.assertGreater(self.kernels(), 30)
            info = self.attach_meanwhile(program, lambda: self.opens(program))
            self.assertIn(BEGAN, info)
            self.assertGreater(self.kernels(), 30)
            self.closes(program)
            time.sleep(0.1)
        self.ends_whole(program, 30, finalised=4)

    def test_a_profiler_that_has_not_yet_finalised_cupti(self):
        """The program waits after a window: CUPTI would be finalised at the end of its next call. tacho makes that call before it records."""
        program = self.start_profiled(TEARDOWN_CUPTI="1", IDLE="1")
        info = self.attach_meanwhile(program, lambda: program.send_signal(signal.SIGHUP))
        self.assertIn("nothing was lost", info)
        self.assertNotIn(BEGAN, info)
        self.assertNotIn(BESIDE, info)
        self.assertGreater(self.kernels(), 30)
        self.assertIn(BEGAN, self.attach_meanwhile(program, lambda: self.opens(program)))
        self.closes(program)
        time.sleep(0.1)
        self.ends_whole(program, 30, finalised=2)

    def test_a_window_of_one_that_finalises_cupti(self):
        """A window is open when tacho comes, and closes. Then the profiler finalises CUPTI. tacho records from then on."""
        program = self.start_profiled(TEARDOWN_CUPTI="1")
        time.sleep(0.1)
        self.opens(program)
        info = self.attach_meanwhile(program, lambda: self.closes(program), seconds="1.5")
        self.assertIn(RECORDS_NOW, info)
        self.assertIn("nothing was lost", info)
        self.assertNotIn(BEGAN, info)
        self.assertGreater(self.kernels(), 30)
        self.ends_whole(program, 30, finalised=2)

    def test_it_is_not_finalised(self):
        program = self.start_profiled()
        self.attach(program, "--duration", "0.4", "--leave-cupti", "finalized")
        self.assertNotIn("was finalised", self.info())
        self.assertGreater(self.kernels(), 10)
        self.ends_whole(program)
        program = self.start_profiled(0)
        info = self.attach_meanwhile(program, lambda: self.opens(program), "--leave-cupti", "finalized", seconds="0.8")
        self.assertIn(BEGAN, info)
        self.assertNotIn("was finalised", info)
        self.closes(program)
        self.ends_whole(program, clocks=1)

    def test_windows_at_any_moment(self):
        """Windows come while tacho gets in, records and leaves, and take a while until they say that they are open: none lacks a record."""
        program = self.start_profiled(FAKE_KINETO_SLOW="20000")
        for number in range(attach_test.ROUNDS):
            tacho = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "--overwrite", "-o", "a.tacho", "--duration", "0.1"], cwd=self.folder)
            self.addCleanup(tacho.kill)
            time.sleep(0.011 * (number % 23))
            self.opens(program)
            self.closes(program)
            self.assertEqual(tacho.wait(timeout=60), 0)
        self.ends_whole(program, attach_test.ROUNDS)

    def test_threads_that_launch_meanwhile(self):
        """The profiler gets no buffer that tacho has given CUPTI, however the threads of the program meet the change."""
        program = self.start_profiled(THREADS="6")
        for _ in range(attach_test.ROUNDS):
            tacho = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "--overwrite", "-o", "a.tacho", "--duration", "0.4"], cwd=self.folder)
            self.addCleanup(tacho.kill)
            self.wait_until(lambda: "tacho-cupti" in self.threads(program.pid) or tacho.poll() is not None)
            self.opens(program)
            self.closes(program)
            self.assertEqual(tacho.wait(timeout=60), 0)
        self.assertEqual(self.leftovers(program.pid), ([], [], []))
        said = self.end(program).splitlines()[-1]
        self.assertRegex(said, r"in windows, 0 buffers of others, kinds left 0, thread ids 0, words led 0, clock set by others 0 times")

    def test_what_callbacks_would_give(self):
        program = self.start_profiled()
        self.attach(program, "--duration", "0.4", "--api-args")
        self.assertIn("calls come without arguments (--api-args)", self.info())
        self.attach(program, "--duration", "0.4")
        self.assertNotIn("--api-args", self.info())
        self.ends_whole(program)

    def test_a_number_of_launches(self):
        """They are counted by their records."""
        program = self.start_profiled()
        for number in (50, 400):
            self.attach(program, "--for-launches", str(number))
            self.assertEqual(self.kernels(), number)
        self.ends_whole(program)
        program = self.start_profiled(FAST="1")
        self.attach(program, "--for-launches", "3000", "--kernel-trace")
        self.assertEqual(self.kernels(), 3000)
        self.ends_whole(program)

    def test_a_kineto_that_does_not_subscribe(self):
        """As PyTorch's has been since August 2026: tacho has the subscriber, and the windows are the profiler's all the same."""
        program = self.start_profiled(FAKE_KINETO_WITHOUT_SUBSCRIBER="1")
        self.attach(program, "--duration", "0.4", "--api-args", "--leave-cupti", "finalized")
        self.assertNotRegex(self.info(), BESIDE + "|was finalised")
        self.assertIn("nothing was lost", self.info())
        self.assertGreater(self.kernels(), 10)
        info = self.attach_meanwhile(program, lambda: self.opens(program))
        self.assertIn(BEGAN, info)
        self.attach(program, "--duration", "0.3")
        self.assertIn(RECORDS_NOW, self.info())
        self.closes(program)
        self.ends_whole(program, 200)

    def test_another_kineto(self):
        """Its state cannot be asked: tacho keeps away."""
        for more in ({}, {"FAKE_KINETO_WITHOUT_SUBSCRIBER": "1"}):
            program = self.start_profiled(FAKE_KINETO_ANOTHER="1", **more)
            self.opens(program)
            self.attach(program, "--duration", "0.3")
            self.assertIn("another profiler, PyTorch's in a form that tacho does not know, already uses CUPTI", self.info())
            self.assertEqual(self.kernels(), 0)
            self.closes(program)
            self.ends_whole(program, 100)

    def test_another_library_with_cupti(self):
        """It may be the one that has subscribed, and nobody knows what it does."""
        program = self.start_profiled(ALSO="1")
        self.attach(program, "--duration", "0.3")
        self.assertRegex(self.info(), HELD)
        self.assertEqual(self.kernels(), 0)
        self.ends_whole(program)

    def test_tacho_is_killed(self):
        program = self.start_profiled()
        self.kill_tacho_in(program, "tacho-cupti")
        self.opens(program)
        self.closes(program)
        self.attach(program, "--duration", "0.4")
        self.assertGreater(self.kernels(), 10)
        self.ends_whole(program)


if __name__ == "__main__":
    if harness.sanitized():
        print("skipped: tacho attach does not get into programs with another run time's allocator")
        raise SystemExit(77)
    harness.main()
