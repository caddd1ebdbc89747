"""`tacho attach`: gets into programs that run, records them, lets go, and leaves them as they were."""
import os
import pathlib
import re
import signal
import subprocess
import time

import harness
from harness import TACHO

LOOP = harness.TARGETS / "opencl_attach"
THREADS = harness.TARGETS / "attach_threads"
ROUNDS = int(os.environ.get("TACHO_ATTACH_ROUNDS", "12"))


class Attached(harness.Case):
    def start(self, *command, **options):
        """A program that runs, after its line "ready"."""
        program = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, cwd=self.folder, text=True, **options)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.kill)
        self.assertEqual(program.stdout.readline().strip(), "ready")
        return program

    def end(self, program):
        """Ends the program in order; what it said."""
        program.send_signal(signal.SIGTERM)
        said, _ = program.communicate(timeout=60)
        self.assertEqual(program.returncode, 0, said)
        return said.strip()

    def attach(self, program, *options, output="a.tacho", code=0, **more):
        return self.run_command(TACHO, "attach", program if isinstance(program, (int, str)) else program.pid, "-q",
                                "--overwrite", "-o", output, *options, code=code, **more)

    def query(self, sql, file="a.tacho"):
        answer = self.run_command(TACHO, "query", file, sql, "--output-format", "csv")
        return [line.split(",") for line in answer.stdout.decode().splitlines()[1:]]

    def same_result(self, said):
        """What the program computed is what it computes undisturbed."""
        rounds = re.match(r"(\d+) rounds: ", said)[1]
        alone = self.run_command(LOOP, rounds, "0").stdout.decode().splitlines()[-1]
        self.assertEqual(said, alone)

    def leftovers(self, pid):
        """What of tacho's is in the process: threads and descriptors."""
        threads = [pathlib.Path(f"/proc/{pid}/task/{task}/comm").read_text().strip() for task in os.listdir(f"/proc/{pid}/task")]
        files = [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")]
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
        return ([name for name in threads if name.startswith("tacho")], [name for name in files if "tacho" in name],
                re.findall(r"tacho-\S+\.pool", maps))


class OpenCl(Attached):
    def test_kernels_of_a_running_program(self):
        program = self.start(LOOP, "1000000", "1000")
        self.attach(program, "--duration", "0.5")
        self.assertEqual(self.leftovers(program.pid), ([], [], []))
        self.same_result(self.end(program))
        kernels = self.calls("kernel", "mix_up", "a.tacho")
        self.assertGreater(kernels, 50)
        self.assertEqual(kernels, self.calls("api", "clEnqueueNDRangeKernel", "a.tacho"))
        self.assertGreater(self.calls("api", "clEnqueueReadBuffer", "a.tacho"), 2)
        info = self.run_command(TACHO, "info", "a.tacho").stdout.decode()
        self.assertIn("nothing was lost", info)
        self.assertIn("tacho attached to this process while it ran", info)

    def test_times_of_a_queue_without_profiling_are_those_of_one_with_it(self):
        means = []
        for words in ((), ("profiling",)):
            program = self.start(LOOP, "1000000", "2000", "slow", *words)
            self.attach(program, "--for-launches", "60")
            self.same_slow(self.end(program))
            row = self.stats("kernel", "a.tacho")["mix_up"]
            means.append(row["Min"] if "Min" in row else row[next(key for key in row if "Min" in key)])
        self.assertGreater(min(means), 100_000)  # ns: it computes for a while
        self.assertLess(max(means) / min(means), 2.5, means)  # the machine is shared

    def same_slow(self, said):
        rounds = re.match(r"(\d+) rounds: ", said)[1]
        alone = self.run_command(LOOP, rounds, "0", "slow").stdout.decode().splitlines()[-1]
        self.assertEqual(said, alone)

    def test_again_and_again_with_other_options(self):
        program = self.start(LOOP, "100000000", "200")
        for number in range(ROUNDS):
            options = (("--kernel-trace",), ("--api-args",), ("--memory-copy-trace",), ("--kernel-exclude", "mix_up"))[number % 4]
            self.attach(program, "--for-launches", "100", *options)
            kernels = self.calls("kernel", "mix_up", "a.tacho")
            copies = self.stats("copy", "a.tacho")
            calls = self.stats("api", "a.tacho")
            if number % 4 == 0:
                self.assertGreaterEqual(kernels, 100)
                self.assertEqual((copies, calls), ({}, {}))
            elif number % 4 == 1:
                self.assertEqual(kernels, calls["clEnqueueNDRangeKernel"]["Calls"])
            elif number % 4 == 2:
                self.assertEqual((kernels, calls), (0, {}))
                self.assertGreater(len(copies), 0)
            else:
                self.assertEqual(kernels, 0)
                self.assertGreater(len(calls), 0)
        self.assertEqual(self.leftovers(program.pid), ([], [], []))
        self.same_result(self.end(program))

    def test_tacho_is_killed_and_the_program_runs_on(self):
        program = self.start(LOOP, "100000000", "1000")
        tacho = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "-o", "killed.tacho"], cwd=self.folder)
        self.addCleanup(tacho.kill)
        self.wait_until(lambda: self.leftovers(program.pid)[0])
        time.sleep(0.3)
        tacho.kill()
        tacho.wait()
        began = time.monotonic()
        self.wait_until(lambda: self.leftovers(program.pid) == ([], [], []))
        self.assertLess(time.monotonic() - began, 3)  # a second, on a machine with time
        self.run_command(TACHO, "recover", code=None)
        self.attach(program, "--for-launches", "20")
        self.assertGreaterEqual(self.calls("kernel", "mix_up", "a.tacho"), 20)
        self.same_result(self.end(program))

    def wait_until(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, "it did not happen")
            time.sleep(0.01)

    def test_two_at_once(self):
        program = self.start(LOOP, "100000000", "1000")
        first = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "-o", "first.tacho", "--duration", "2"], cwd=self.folder)
        self.addCleanup(first.kill)
        self.wait_until(lambda: "tacho attach" in self.leftovers(program.pid)[0])
        time.sleep(0.5)
        said = self.attach(program, code=1)
        self.one_sentence(said)
        self.assertRegex(said.stderr.decode(), "another tacho is attached|is traced by process")
        self.assertEqual(first.wait(timeout=60), 0)
        self.same_result(self.end(program))

    def test_the_program_dies_meanwhile(self):
        program = self.start(LOOP, "100000000", "1000")
        tacho = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "-o", "dead.tacho"], cwd=self.folder)
        self.addCleanup(tacho.kill)
        self.wait_until(lambda: self.leftovers(program.pid)[0])
        time.sleep(0.5)
        program.kill()
        self.assertEqual(tacho.wait(timeout=60), 0)
        self.assertGreater(self.calls("kernel", "mix_up", "dead.tacho"), 10)


class Cuda(Attached):
    """On the stand-in for CUPTI, without and with cuptiSubscribe_v2."""

    def start_live(self, folder):
        driver = harness.BUILD / "tests" / "fake_cuda" / "driver"
        return self.start(harness.BUILD / "tests" / "fake_cuda" / "fake_cuda", "live",
                          env={**os.environ, "CUDA_HOME": str(folder), "LD_LIBRARY_PATH": str(driver)})

    def test_kernels_again_and_again(self):
        for folder in (harness.BUILD / "tests" / "fake_cuda", harness.BUILD / "tests" / "fake_cuda" / "v2"):
            program = self.start_live(folder)
            for number in range(5):
                options = ("--api-args",) if number % 2 else ()
                self.attach(program, "--duration", "0.4", *options)
                kernels = self.stats("kernel", "a.tacho")
                self.assertEqual(list(kernels), ["vecAdd(float*, int)"])
                self.assertGreater(kernels["vecAdd(float*, int)"]["Calls"], 20)
                info = self.run_command(TACHO, "info", "a.tacho").stdout.decode()
                self.assertIn("nothing was lost", info)
            self.assertEqual(self.leftovers(program.pid), ([], [], []))
            # The clock is set once in a process's life: each further time spoils a record on CUPTI up to 13.0.
            self.assertRegex(self.end(program), r"\d+ launches, clock set 1 times, in use 0")

    def test_a_number_of_launches(self):
        program = self.start_live(harness.BUILD / "tests" / "fake_cuda")
        self.attach(program, "--for-launches", "50")
        # A launch that has begun before recording does may come on top.
        self.assertIn(self.calls("kernel", "vecAdd(float*, int)", "a.tacho"), (50, 51))
        self.end(program)


class Python(Attached):
    PROGRAM = """
import signal, sys, threading, time
total, stop = 0, False
def end(*_):
    global stop
    stop = True
signal.signal(signal.SIGTERM, end)
def work_hard(n):
    global total
    for i in range(n):
        total = (total * 31 + i) % 1000000007
def other():
    while not stop:
        time.sleep(0.01)
thread = threading.Thread(target=other)
thread.start()
print("ready", flush=True)
rounds = 0
while not stop:
    work_hard(2000)
    rounds += 1
thread.join()
print(rounds, total)
"""

    def test_lines_of_a_running_python(self):
        (self.folder / "program.py").write_text(self.PROGRAM)
        program = self.start(harness.DEBIAN_PYTHON, self.folder / "program.py")
        for _ in range(max(2, ROUNDS // 4)):
            self.attach(program, "--sampler", "timer", "--sample-hz", "200", "--duration", "0.6")
            functions = self.run_command(TACHO, "stats", "a.tacho", "--by", "function", "--output-format", "json").stdout.decode()
            self.assertIn("work_hard", functions)
        self.assertEqual(self.leftovers(program.pid), ([], [], []))
        status = pathlib.Path(f"/proc/{program.pid}/status").read_text()
        caught = int(re.search(r"SigCgt:\s*(\w+)", status)[1], 16)
        self.assertEqual(caught >> 33, 0, "a handler of a real-time signal is left")
        rounds, total = map(int, self.end(program).split())
        expected = 0
        for _ in range(rounds):
            for i in range(2000):
                expected = (expected * 31 + i) % 1000000007
        self.assertEqual(total, expected)


class Threads(Attached):
    def test_no_call_of_any_thread_is_interrupted(self):
        for threads in ("40", "500", "2000"):
            program = self.start(THREADS, threads)
            for _ in range(3):
                self.attach(program, "--duration", "0.1", code=None)
            self.assertEqual(self.leftovers(program.pid)[0], [])
            self.assertEqual(self.end(program), "fine")


class Refusals(Attached):
    def refused(self, process, *needles):
        self.one_sentence(self.attach(process, code=1), *needles)
        self.assertFalse((self.folder / "a.tacho").exists())

    def test_processes_that_cannot_be_attached_to(self):
        self.refused(1, "init")
        self.refused(4_000_000, "no process")
        zombie = subprocess.Popen(["true"])
        time.sleep(0.3)
        self.refused(zombie.pid, "has ended")
        zombie.wait()
        sleeper = subprocess.Popen(["sleep", "60"])
        self.addCleanup(sleeper.kill)
        time.sleep(0.2)
        sleeper.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        self.refused(sleeper.pid, "stopped by a signal", "kill -CONT")
        sleeper.send_signal(signal.SIGCONT)
        threads = self.start(THREADS, "3")
        other = next(task for task in os.listdir(f"/proc/{threads.pid}/task") if int(task) != threads.pid)
        self.refused(other, "a thread of process")
        self.assertEqual(self.end(threads), "fine")

    def test_one_that_is_traced(self):
        program = self.start(THREADS, "3")
        tracer = subprocess.Popen(["/usr/bin/python3", "-c", "import ctypes, sys, time; libc = ctypes.CDLL(None); "
                                   f"assert libc.ptrace(0x4206, {program.pid}, 0, 0) == 0; print('in', flush=True); time.sleep(30)"],
                                  stdout=subprocess.PIPE)
        self.addCleanup(tracer.stdout.close)
        self.addCleanup(tracer.kill)
        self.assertEqual(tracer.stdout.readline(), b"in\n")
        self.refused(program.pid, "is traced by process", "python")
        tracer.kill()
        tracer.wait()
        self.assertEqual(self.end(program), "fine")

    def test_static_programs(self):
        source = self.folder / "s.c"
        source.write_text("#include <unistd.h>\n#include <stdio.h>\nint main() { puts(\"ready\"); fflush(stdout); pause(); }\n")
        self.run_command("gcc", "-static", "-o", "static", source)
        program = self.start(self.folder / "static")
        self.refused(program.pid, "linked statically")

    def test_doctor_attaches_nothing(self):
        program = self.start(THREADS, "3")
        said = self.run_command(TACHO, "doctor", program.pid).stdout.decode()
        for line in ("target", "user", "yama", "container", "tacho can attach"):
            self.assertIn(line, said)
        self.assertNotIn("libtacho", pathlib.Path(f"/proc/{program.pid}/maps").read_text())
        self.run_command(TACHO, "doctor", 1, code=1)
        self.assertEqual(self.end(program), "fine")


if __name__ == "__main__":
    if harness.sanitized():
        print("skipped: tacho attach does not get into programs with another run time's allocator")
        raise SystemExit(77)
    harness.main()
