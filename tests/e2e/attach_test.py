"""`tacho attach`: gets into programs that run, records them, lets go, and leaves them as they were."""
import csv
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import harness
from harness import TACHO

ROCPROFV3 = harness.BUILD / "personalities" / "rocprofv3"
LOOP = harness.TARGETS / "opencl_attach"
FATES = harness.TARGETS / "attach_fates"
STALE = harness.TARGETS / "attach_stale"
THREADS = harness.TARGETS / "attach_threads"
REGISTERS = harness.TARGETS / "attach_registers"
QUIET = harness.TARGETS / "attach_quiet"
ROUNDS = int(os.environ.get("TACHO_ATTACH_ROUNDS", "30"))  # of attaching to one program; docs/attach.md has the figures of 1,000


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


class Attached(harness.Case):
    def start(self, *command, **options):
        """A program that runs, after its line "ready"."""
        program = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, cwd=self.folder, text=True, **options)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        self.assertEqual(program.stdout.readline().strip(), "ready")
        return program

    def kill_tacho_in(self, program, thread):
        """Kills a tacho that has attached, once that thread of its library is there, and waits until the program has left by itself."""
        tacho = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "-o", "killed.tacho"], cwd=self.folder)
        self.wait_until(lambda: thread in self.threads(program.pid))
        tacho.kill()
        tacho.wait()
        self.recover(tacho)
        self.wait_until(lambda: self.leftovers(program.pid) == ([], [], []))

    def recover(self, tacho):
        """What a tacho that was killed has left, which nobody else may have to wait for."""
        for pool in pathlib.Path("/dev/shm").glob(f"tacho-{tacho.pid}-*.pool"):
            self.run_command(TACHO, "recover", pool, "--overwrite")
            self.assertFalse(pool.exists())

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

    def wait_until(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, "it did not happen")
            time.sleep(0.01)

    def threads(self, pid):
        """tacho's threads that are in the process now."""
        names = []
        for task in os.listdir(f"/proc/{pid}/task"):
            try:
                names.append(pathlib.Path(f"/proc/{pid}/task/{task}/comm").read_text().strip())
            except OSError:
                pass  # it has ended meanwhile
        return [name for name in names if name.startswith("tacho")]

    def leftovers(self, pid):
        """What of tacho's is in the process: threads and descriptors. The thread that says that all is done is gone a moment later."""
        end = time.monotonic() + 2
        while (threads := self.threads(pid)) and time.monotonic() < end:
            time.sleep(0.01)
        files = [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")]
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
        return (threads, [name for name in files if "tacho" in name], re.findall(r"tacho-\S+\.pool", maps))


class Kept:
    """What a process has, before and after many attaches. The first few may keep something once: libraries, tables. Resident pages
    of files do not count: the kernel takes and gives them as it likes."""

    def __init__(self, pid):
        self.pid, self.warm = pid, None
        self.begin, before = self.look(), None
        while self.begin != before:  # a program that starts has a file open now and then
            time.sleep(0.1)
            self.begin, before = self.look(), self.begin

    def look(self):
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        number = lambda name: int(re.search(rf"{name}:\s+(\d+)", status)[1])  # noqa: E731
        return {"threads": number("Threads"), "descriptors": len(os.listdir(f"/proc/{self.pid}/fd")), "resident_kib": number("RssAnon") + number("RssShmem"), "virtual_kib": number("VmSize"),
                "mappings": len(pathlib.Path(f"/proc/{self.pid}/maps").read_text().splitlines())}

    def after(self, test, rounds):
        """After each round: the tenth is what the last is compared with."""
        if rounds == min(9, ROUNDS - 1):
            self.warm = self.look()
        if rounds != ROUNDS - 1:
            return
        end = self.look()
        print(f"{ROUNDS} rounds: before {self.begin}, after the tenth {self.warm}, now {end}", flush=True)
        test.assertEqual((end["threads"], end["descriptors"]), (self.begin["threads"], self.begin["descriptors"]))
        test.assertLessEqual(end["mappings"], self.warm["mappings"] + 4)
        test.assertLessEqual(end["resident_kib"], self.warm["resident_kib"] + 1024)
        test.assertLessEqual(end["virtual_kib"], self.warm["virtual_kib"] + 2048)
        test.assertLessEqual(end["resident_kib"], self.begin["resident_kib"] + 8192)


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

    def test_the_text_signals_and_timers_stay(self):
        """Code of the program and of its libraries is never written to; handlers, masks and timers are those of before."""
        program = self.start(LOOP, "100000000", "500")

        def text():
            pages = {}
            with open(f"/proc/{program.pid}/maps") as maps, open(f"/proc/{program.pid}/mem", "rb", 0) as memory:
                for line in maps:
                    begin, end, rights, name = re.match(r"(\w+)-(\w+) (\S+) \S+ \S+ \S+\s*(.*)", line).groups()
                    if "x" in rights and name.startswith("/"):
                        memory.seek(int(begin, 16))
                        pages[begin, name] = hashlib.sha256(memory.read(int(end, 16) - int(begin, 16))).hexdigest()
            return pages

        def signals():
            threads = {}
            for task in os.listdir(f"/proc/{program.pid}/task"):
                folder = pathlib.Path(f"/proc/{program.pid}/task/{task}")
                if not folder.joinpath("comm").read_text().startswith("tacho"):
                    threads[task] = re.findall(r"Sig(?:Blk|Ign|Cgt|Pnd):\s*\w+", folder.joinpath("status").read_text())
            return threads, pathlib.Path(f"/proc/{program.pid}/timers").read_text()
        self.wait_until(lambda: "pocl" in pathlib.Path(f"/proc/{program.pid}/maps").read_text())
        time.sleep(0.5)
        before, signals_before = text(), signals()
        self.assertGreater(len(before), 5)
        for options in ((), ("--sampler", "timer")):
            tacho = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "--overwrite", "-o", "a.tacho", "--duration", "1", *options], cwd=self.folder)
            self.wait_until(lambda: re.search(r"tacho-\S+\.pool", pathlib.Path(f"/proc/{program.pid}/maps").read_text()))
            time.sleep(0.3)
            meanwhile = text()
            self.assertEqual(tacho.wait(timeout=60), 0)
            self.assertEqual(self.leftovers(program.pid), ([], [], []))
            for pages in (meanwhile, text()):
                self.assertEqual(before, {key: value for key, value in pages.items() if key in before})
            self.assertEqual(signals(), signals_before)
        self.end(program)

    def test_times_of_a_queue_without_profiling_are_those_of_one_with_it(self):
        shortest = {(): 10**12, ("profiling",): 10**12}
        for _ in range(3):  # the machine is shared
            for words in shortest:
                program = self.start(LOOP, "1000000", "2000", "slow", *words)
                self.attach(program, "--for-launches", "60")
                self.same_slow(self.end(program))
                row = self.stats("kernel", "a.tacho")["mix_up"]
                shortest[words] = min(shortest[words], row[next(key for key in row if "Min" in key)])
            least, most = sorted(shortest.values())
            if most / least < 2:
                break
        self.assertGreater(least, 100_000)  # ns: it computes for a while
        self.assertLess(most / least, 2.5, shortest)

    def same_slow(self, said):
        rounds = re.match(r"(\d+) rounds: ", said)[1]
        alone = self.run_command(LOOP, rounds, "0", "slow").stdout.decode().splitlines()[-1]
        self.assertEqual(said, alone)

    def test_again_and_again_with_other_options(self):
        program = self.start(LOOP, "100000000", "200")
        kept = Kept(program.pid)
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
            kept.after(self, number)
        self.assertEqual(self.leftovers(program.pid), ([], [], []))
        self.same_result(self.end(program))

    def test_tacho_is_killed_and_the_program_runs_on(self):
        program = self.start(LOOP, "100000000", "1000")
        tacho = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "-o", "killed.tacho"], cwd=self.folder)
        self.addCleanup(tacho.kill)
        self.wait_until(lambda: self.threads(program.pid))
        time.sleep(0.3)
        tacho.kill()
        tacho.wait()
        began = time.monotonic()
        self.wait_until(lambda: self.leftovers(program.pid) == ([], [], []))
        self.assertLess(time.monotonic() - began, 3)  # a second, on a machine with time
        self.recover(tacho)
        self.attach(program, "--for-launches", "20")
        self.assertGreaterEqual(self.calls("kernel", "mix_up", "a.tacho"), 20)
        self.same_result(self.end(program))

    def test_two_at_once(self):
        program = self.start(LOOP, "100000000", "1000")
        first = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "-o", "first.tacho", "--duration", "2"], cwd=self.folder)
        self.addCleanup(first.kill)
        self.wait_until(lambda: "tacho attach" in self.threads(program.pid))
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
        self.wait_until(lambda: self.threads(program.pid))
        time.sleep(0.5)
        program.kill()
        self.assertEqual(tacho.wait(timeout=60), 0)
        self.assertGreater(self.calls("kernel", "mix_up", "dead.tacho"), 10)


class ManyTargets(Attached):
    def test_all_that_run_a_program_into_one_file(self):
        programs = [self.start(LOOP, "100000000", "1000") for _ in range(3)]
        self.run_command(TACHO, "attach", "-q", "-o", "a.tacho", "--duration", "1", "--name", "opencl_attach", programs[0].pid)
        found = {int(row[0]) for row in self.query("SELECT DISTINCT pid FROM tacho.dispatch")}
        self.assertEqual(found, {program.pid for program in programs})
        info = self.run_command(TACHO, "info", "a.tacho").stdout.decode()
        self.assertIn("nothing was lost", info)
        for program in programs:
            self.assertEqual(self.leftovers(program.pid), ([], [], []))
            self.same_result(self.end(program))

    def test_several_names(self):
        shutil.copy(LOOP, self.folder / "another")
        one, other, third = (self.start(*words) for words in ((LOOP, "100000000", "1000"), (self.folder / "another", "100000000", "1000"), (THREADS, "3")))
        self.run_command(TACHO, "attach", "-q", "-o", "a.tacho", "--duration", "0.3", "--name", LOOP.name, "--name", "another")
        self.assertEqual({int(row[0]) for row in self.query("SELECT DISTINCT pid FROM tacho.process")}, {one.pid, other.pid})
        self.assertIsNone(third.poll())

    def test_children_of_a_launcher_at_a_moment(self):
        launcher = self.folder / "launcher.sh"
        launcher.write_text(f"{LOOP} 100000000 1000 > one & {LOOP} 100000000 1000 > two & echo ready; wait; wait\n")
        program = subprocess.Popen(["/bin/bash", str(launcher)], stdout=subprocess.PIPE, cwd=self.folder, text=True, start_new_session=True)
        self.addCleanup(program.stdout.close)
        self.addCleanup(lambda: os.killpg(program.pid, signal.SIGKILL))
        self.assertEqual(program.stdout.readline().strip(), "ready")
        time.sleep(1)
        said = self.run_command(TACHO, "attach", program.pid, "--children", "--at", "/2s", "--duration", "0.5", "-o", "a.tacho")
        self.assertRegex(said.stderr.decode(), r"attached to 3 processes, \d+, \d+, \d+ after")
        self.assertEqual(len(self.query("SELECT DISTINCT pid FROM tacho.dispatch")), 2)
        (begin,), (started,) = (self.query(f"SELECT value FROM tacho.property WHERE key = '{key}'")[0] for key in ("attach.begin_unix_ns", "started_unix_ns"))
        self.assertEqual(int(begin) % 2_000_000_000, 0)
        self.assertGreater(int(begin), int(started))
        # No kernel before the moment: trace time of the begin by the clocks that the trace has.
        first = int(self.query("SELECT min(start) FROM tacho.dispatch")[0][0])
        real, raw = map(int, self.query("SELECT realtime, raw FROM tacho.clock ORDER BY raw LIMIT 1")[0])
        self.assertGreater(first - raw, int(begin) - real - 50_000_000)

    def test_those_that_refuse_are_left_out(self):
        program = self.start(LOOP, "100000000", "1000")
        said = self.run_command(TACHO, "attach", program.pid, 1, "--duration", "0.3", "-o", "a.tacho")
        self.assertIn("process 1 was left out: 1", said.stderr.decode())
        self.assertGreater(self.calls("kernel", "mix_up", "a.tacho"), 1)
        self.assertIn("process 1 was left out", self.run_command(TACHO, "info", "a.tacho").stdout.decode())
        self.same_result(self.end(program))

    def test_bad_choices(self):
        for options, needle in (((), "say which process"), (("--name", "no_such_program"), "named no_such_program"),
                                (("--container", "web"), "id's first 4 digits"), (("--cgroup", "/no/such"), "cgroup /no/such"),
                                (("4711000", "--at", "soon"), "--at soon"), (("4711000", "--at", "/0s"), "--at /0"),
                                (("1", "4711000"), "no process 4711000"), (("--memory", "1"), "--memory"),
                                (("--device-counters", "SQ_WAVES", "1"), "--device-counters is for programs that tacho starts"),
                                (("1", "-f", "csv"), "--format is for"), ((str(os.getpid()), "-o", "x.csv"), "tacho export -f csv")):
            self.one_sentence(self.run_command(TACHO, "attach", *options, code=1), needle)


class Rocprofv3(Attached):
    def rocprofv3(self, *options, **more):
        return self.run_command(ROCPROFV3, *options, **more)

    def test_as_amd_documents_it(self):
        program = self.start(LOOP, "100000000", "1000")
        for number, option in enumerate(("-p", "--pid", "--attach")):
            self.rocprofv3(option, program.pid, "--attach-duration-msec", "500", "--kernel-trace", "--output-format", "csv", "-o", f"out{number}",
                           "--attach-sync-output")
            found = rows(self.folder / f"out{number}_kernel_trace.csv")
            self.assertGreater(len(found), 20)
            self.assertEqual({row["Kernel_Name"] for row in found}, {"mix_up"})
        self.assertEqual(self.leftovers(program.pid), ([], [], []))
        self.same_result(self.end(program))

    def test_ctrl_c_detaches(self):
        program = self.start(LOOP, "100000000", "1000")
        tool = subprocess.Popen([str(ROCPROFV3), "--attach", str(program.pid), "--kernel-trace", "-f", "csv", "-o", "out"], cwd=self.folder,
                                stderr=subprocess.PIPE, text=True)
        self.addCleanup(tool.stderr.close)
        self.addCleanup(tool.kill)
        self.assertIn("attached to process", tool.stderr.readline())
        time.sleep(0.5)
        tool.send_signal(signal.SIGINT)
        self.assertEqual(tool.wait(timeout=60), 0)
        self.assertGreater(len(rows(self.folder / "out_kernel_trace.csv")), 10)
        self.same_result(self.end(program))

    def test_what_cannot_be(self):
        for options, needle in ((("--attach", "x", "--kernel-trace"), "not a number"), (("-p", "7"), "no tracing option"),
                                (("-p", "7", "--pmc", "SQ_WAVES"), "--pmc with --pid"), (("-p", "4711000", "--kernel-trace"), "no process 4711000"),
                                (("-p", "7", "--kernel-trace", "--", "true"), "not both"), (("--attach-children", "--kernel-trace"), "--attach-children is about"),
                                (("-p", "7", "--attach-duration-msec", "0", "--kernel-trace"), "--attach-duration-msec")):
            self.one_sentence(self.rocprofv3(*options, code=125), needle)


class Listening(Attached):
    """tacho_listen(): the program lets tacho in, and no thread is stopped."""
    LIVE = harness.TARGETS / "attach_live"
    PACKAGE = str(harness.BUILD / "share" / "tacho" / "python")

    def environment(self):
        return {**os.environ, "TACHO_LIBRARY": str(harness.BUILD / "lib" / "libtacho.so"), "TACHO_PROGRAM": str(TACHO), "PYTHONPATH": self.PACKAGE}

    def stops(self):
        return self.query("SELECT value FROM tacho.property WHERE key = 'attach.threads_stopped'")

    def test_markers_again_and_again(self):
        program = self.start(self.LIVE, env=self.environment())
        for _ in range(4):
            self.attach(program, "--duration", "0.3")
            self.assertEqual(self.stops(), [["0"]])
            self.assertGreater(self.stats("marker", "a.tacho")["work"]["Calls"], 5)
            self.assertIn("nothing was lost", self.run_command(TACHO, "info", "a.tacho").stdout.decode())
        # Markers are not seen by an attach that records none of them.
        self.attach(program, "--duration", "0.3", "--kernel-trace")
        self.assertEqual(self.stats("marker", "a.tacho"), {})
        self.assertIn("listens for tacho", self.run_command(TACHO, "doctor", program.pid).stdout.decode())
        self.assertRegex(self.end(program), "fine")

    def test_two_at_once(self):
        program = self.start(self.LIVE, env=self.environment())
        first = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "-o", "first.tacho", "--duration", "1.5"], cwd=self.folder)
        self.addCleanup(first.kill)
        self.wait_until(lambda: re.search(r"tacho-\S+\.pool", pathlib.Path(f"/proc/{program.pid}/maps").read_text()))
        time.sleep(0.3)
        self.one_sentence(self.attach(program, code=1), "another tacho is attached")
        self.assertEqual(first.wait(timeout=60), 0)
        self.end(program)

    def test_tacho_is_killed(self):
        program = self.start(self.LIVE, env=self.environment())
        tacho = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "-o", "killed.tacho"], cwd=self.folder)
        self.wait_until(lambda: re.search(r"tacho-\S+\.pool", pathlib.Path(f"/proc/{program.pid}/maps").read_text()))
        tacho.kill()
        tacho.wait()
        self.wait_until(lambda: not re.search(r"tacho-\S+\.pool", pathlib.Path(f"/proc/{program.pid}/maps").read_text()))
        self.recover(tacho)
        self.attach(program, "--duration", "0.3")
        self.assertGreater(self.stats("marker", "a.tacho")["work"]["Calls"], 5)
        self.end(program)

    def test_a_program_records_itself_in_c(self):
        said = self.run_command(self.LIVE, self.folder / "own.tacho", env=self.environment())
        self.assertGreaterEqual(self.stats("marker", "own.tacho")["work"]["Calls"], 95)
        self.assertRegex(said.stdout.decode(), r"^\d+\n$")
        said = self.run_command(TACHO, "trace", "-q", "-o", "t.tacho", "--", self.LIVE, code=2, env=self.environment()).stderr.decode()
        self.assertEqual(said, "cannot listen: Device or resource busy\n")
        said = self.run_command(self.LIVE, "/no/such/folder/own.tacho", env=self.environment(), code=5).stderr.decode()
        self.assertIn("/no/such/folder", said)
        self.assertIn("cannot listen: No such file", self.run_command(self.LIVE, code=2, env={**os.environ, "TACHO_LIBRARY": "/no/such"}).stderr.decode())

    def python(self, code, result=0):
        return self.run_command(harness.DEBIAN_PYTHON, "-c", code, env=self.environment(), code=result)

    def test_a_program_records_itself_in_python(self):
        self.python("""
import os, threading, time, tacho
before = tacho.range("before")
tacho.listen()
end = False
def work():
    while not end:
        with tacho.range("step"):
            time.sleep(0.002)
thread = threading.Thread(target=work)
thread.start()
assert tacho.snapshot(0.5, "one.tacho") == "one.tacho" and os.path.exists("one.tacho")
tacho.start("two.tacho", "--sampler", "timer")
try:
    tacho.trigger(1, "three.tacho")
    raise SystemExit("two recordings at once")
except tacho.Error as problem:
    assert "two.tacho is under way" in str(problem), problem
with before:
    time.sleep(0.3)
assert tacho.stop() == "two.tacho"
try:
    tacho.snapshot(1, "/no/such/folder/x.tacho")
    raise SystemExit("a file in no folder")
except tacho.Error as problem:
    assert "/no/such/folder" in str(problem), problem
child = os.fork()
if child == 0:
    time.sleep(0.2)
    os._exit(0 if tacho.snapshot(0.1, "child.tacho") else 1)
assert os.waitpid(child, 0)[1] == 0
end = True
thread.join()
""")
        self.assertGreater(self.stats("marker", "one.tacho")["step"]["Calls"], 5)
        self.assertEqual(self.stats("marker", "two.tacho")["before"]["Calls"], 1)
        self.assertNotIn("before", self.stats("marker", "one.tacho"))

    def serve(self, asked, *command):
        """The example's server and its address."""
        environment = {**self.environment(), "TACHO_DEBUG": "1"} if asked else self.environment()
        server = subprocess.Popen([harness.DEBIAN_PYTHON, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder, env=environment)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        said = []
        while not (address := re.search(r"http://127\.0\.0\.1:\d+", said[-1] if said else "")):
            said.append(server.stdout.readline())
            self.assertNotEqual(said[-1], "", said)
        return server, address[0]

    def test_the_example_answers_this_machine_when_it_is_asked_to(self):
        import urllib.error
        import urllib.request
        examples = harness.SOURCE / "examples"
        alone = (str(examples / "live_server.py"), "0")
        uvicorn = ("-m", "uvicorn", "--app-dir", str(examples), "live_server:app", "--host", "127.0.0.1", "--port", "0", "--log-level", "info")
        for command, asked in ((alone, False), (alone, True), (uvicorn, False), (uvicorn, True)):
            server, address = self.serve(asked, *command)
            get = lambda path: urllib.request.urlopen(address + path, timeout=60).read()  # noqa: E731, B023
            self.assertRegex(get("/").decode(), r"^\d+\n$")
            if asked:
                (self.folder / "now.tacho").write_bytes(get("/debug/tacho?seconds=0.3"))
                self.assertIn("attached to this process while it ran", self.run_command(TACHO, "info", "now.tacho").stdout.decode())
            for path, code in (("/debug/tacho?seconds=0.3", 200), ("/debug/tacho?seconds=1000", 400), ("/debug/tacho?seconds=x", 400)) if asked else (("/debug/tacho", 404),):
                try:
                    get(path)
                    found = 200
                except urllib.error.HTTPError as problem:
                    found = problem.code
                    problem.close()
                self.assertEqual(found, code, (command, path))
            maps = pathlib.Path(f"/proc/{server.pid}/maps").read_text()
            self.assertEqual("libtacho" in maps, asked)
            server.kill()
            server.wait()


class Children(Attached):
    """A child that is forked while tacho is attached keeps nothing of tacho's, and is told."""

    def test_a_forked_child_is_free(self):
        program = self.start(FATES, stdin=subprocess.PIPE)
        self.addCleanup(program.stdin.close)
        tacho = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "--duration", "1.5", "-o", "a.tacho", "--sampler", "timer"], cwd=self.folder)
        self.addCleanup(tacho.kill)
        self.wait_until(lambda: "tacho attach" in self.threads(program.pid))
        time.sleep(0.5)
        program.stdin.write("f")
        program.stdin.flush()
        child = int(program.stdout.readline())
        self.addCleanup(lambda: os.kill(child, signal.SIGKILL))
        # Its first moments, in which fork() lets go, may come after the parent's answer.
        self.wait_until(lambda: self.leftovers(child) == ([], [], []))
        caught = int(re.search(r"SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{child}/status").read_text())[1], 16)
        self.assertEqual(caught >> 33, 0)
        self.assertEqual(tacho.wait(timeout=60), 0)
        self.assertIn("forked 1 child while tacho was attached", self.run_command(TACHO, "info", "a.tacho").stdout.decode())
        # It can be attached to by itself.
        self.attach(child, "--duration", "0.2", output="b.tacho")
        self.assertEqual(self.leftovers(child), ([], [], []))


class Untouched(Attached):
    def test_data_that_the_program_has_not_used_stay_out_of_memory(self):
        program = self.start(QUIET)

        def resident():
            """KiB of the program's data that are in memory."""
            mappings = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", pathlib.Path(f"/proc/{program.pid}/smaps").read_text())
            data = [mapping for mapping in mappings if re.match(rf"\S+ rw-p .*/{QUIET.name}\n", mapping)]
            self.assertTrue(data)
            return sum(int(re.search(r"Rss:\s+(\d+)", mapping)[1]) for mapping in data)
        before = resident()
        self.assertLess(before, 2048)
        for _ in range(3):
            self.attach(program.pid, "--overwrite", "--duration", "0.2")
        self.assertLessEqual(resident(), before + 64)


class Moments(Attached):
    """When a thread may be made to call pthread_create."""

    def test_words_of_calls_that_have_returned(self):
        program = self.start(STALE)
        self.attach(program.pid, "--duration", "0.2")
        self.assertEqual(self.leftovers(program.pid), ([], [], []))

    def test_a_handler_that_may_have_come_in_such_a_call(self):
        program = self.start(STALE, "in a handler")
        refused = self.run_command(TACHO, "attach", program.pid, "--duration", "0.2", "-o", "a.tacho", code=1)
        self.assertIn("its threads were in the loader or the allocator whenever tacho looked", refused.stderr.decode())
        self.assertIsNone(program.poll())
        self.assertEqual(self.leftovers(program.pid), ([], [], []))


class Fates(Attached):
    """The program changes while tacho is at any step of its way in and out: it runs on, or has ended, and tacho says one sentence."""
    STEPS = ("stopped", "mapped", "filled", "created", "waiting", "attached", "leaving", "left")

    def at_step(self, step, change):
        program = self.start(FATES, stdin=subprocess.PIPE)
        self.addCleanup(program.stdin.close)
        tacho = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "--overwrite", "--duration", "0.2", "-o", "a.tacho"], cwd=self.folder,
                                 env={**os.environ, "TACHO_ATTACH_STEP": step}, stderr=subprocess.PIPE, text=True)
        self.addCleanup(tacho.stderr.close)
        self.addCleanup(tacho.kill)
        self.wait_until(lambda: self.state(tacho.pid) in "TZ")
        self.assertEqual(self.state(tacho.pid), "T", f"tacho never came to {step}")
        change(program)
        tacho.send_signal(signal.SIGCONT)
        code = tacho.wait(timeout=60)
        said = tacho.stderr.read()
        self.assertIn(code, (0, 1), f"{step}: {said}")
        if code == 1:
            self.assertRegex(said, r"^tacho: [^\n]+\n$", step)
        return program, code, said

    @staticmethod
    def state(pid):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]

    def write(self, program, letter):
        program.stdin.write(letter)
        program.stdin.flush()

    def alive(self, program):
        """It does what it is asked, and nothing of tacho's is in it."""
        self.wait_until(lambda: self.leftovers(program.pid) == ([], [], []))
        self.write(program, "p")
        self.assertEqual(program.stdout.readline().strip(), "p")
        self.assertEqual(pathlib.Path(f"/proc/{program.pid}/status").read_text().split("TracerPid:")[1].split()[0], "0")

    def test_it_is_killed(self):
        for step in self.STEPS:
            def kill(program):
                program.kill()
            program, code, said = self.at_step(step, kill)
            # From "created" on the library may have answered before.
            self.assertIn(code, {"attached": (0,), "leaving": (0,), "left": (0,), "created": (0, 1), "waiting": (0, 1)}.get(step, (1,)), f"{step}: {said}")
            if code == 1:
                self.assertIn("ended while tacho", said)
            program.wait(timeout=20)

    def test_it_runs_another_program(self):
        for step in self.STEPS:
            def change(program):
                self.write(program, "x")
                time.sleep(0.2)
            program, code, said = self.at_step(step, change)
            self.wait_until(lambda: os.readlink(f"/proc/{program.pid}/exe").endswith("sleep"))
            self.assertNotIn(self.state(program.pid), "tT", step)
            self.wait_until(lambda: self.leftovers(program.pid) == ([], [], []))
            if step in ("attached", "leaving", "left"):
                self.assertNotIn("tacho", pathlib.Path(f"/proc/{program.pid}/maps").read_text(), step)
            else:  # the program that came is recorded instead
                self.assertEqual((code, said), (0, ""), step)

    def test_it_forks(self):
        for step in self.STEPS:
            children = []

            def change(program):
                self.write(program, "f")
                children.append(program)
            program, code, said = self.at_step(step, change)
            child = int(program.stdout.readline())
            self.addCleanup(lambda: os.kill(child, signal.SIGKILL))
            self.assertEqual(code, 0, f"{step}: {said}")
            self.assertEqual(self.leftovers(child)[0], [], step)
            # Its first moments, in which fork() lets go, may come after the parent's answer.
            self.wait_until(lambda: self.leftovers(child)[2] == [])
            self.assertNotIn(self.state(child), "tT", step)
            self.alive(program)

    def test_it_is_stopped_and_goes_on(self):
        for step in self.STEPS:
            def change(program):
                program.send_signal(signal.SIGSTOP)
                time.sleep(0.2)
                program.send_signal(signal.SIGCONT)
            program, code, said = self.at_step(step, change)
            self.assertEqual(code, 0, f"{step}: {said}")
            self.alive(program)

    def test_tacho_is_killed(self):
        for step in self.STEPS:
            program = self.start(FATES, stdin=subprocess.PIPE)
            self.addCleanup(program.stdin.close)
            tacho = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "--overwrite", "--duration", "0.2", "-o", "a.tacho"], cwd=self.folder,
                                     env={**os.environ, "TACHO_ATTACH_STEP": step})
            self.wait_until(lambda: self.state(tacho.pid) in "TZ")
            tacho.kill()
            tacho.wait(timeout=20)
            self.recover(tacho)
            self.alive(program)
            self.attach(program, "--duration", "0.2")
            self.alive(program)

    def test_tacho_is_killed_while_a_thread_does_its_work(self):
        """The thread finds its own way back: every register, vector and word below its stack is as before."""
        if " avx2 " not in pathlib.Path("/proc/cpuinfo").read_text():
            self.skipTest("this processor has no AVX2, whose registers the program looks at")
        for step in ("stopped", "mapped", "filled", "created"):
            program = self.start(REGISTERS)
            tacho = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "--overwrite", "--duration", "0.2", "-o", "a.tacho"], cwd=self.folder,
                                     env={**os.environ, "TACHO_ATTACH_STEP": step})
            self.wait_until(lambda: self.state(tacho.pid) in "TZ")
            self.assertEqual(self.state(tacho.pid), "T", step)
            tacho.kill()
            tacho.wait(timeout=20)
            self.recover(tacho)
            self.wait_until(lambda: self.leftovers(program.pid) == ([], [], []))
            blocked = re.search(r"SigBlk:\s*(\w+)", pathlib.Path(f"/proc/{program.pid}/status").read_text())[1]
            self.assertEqual(int(blocked, 16), 0, step)
            self.attach(program, "--duration", "0.2")
            self.assertEqual(self.end(program), "fine", step)


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
        kept, without = Kept(program.pid), 0
        for number in range(ROUNDS):
            self.attach(program, "--sampler", "timer", "--sample-hz", "500", "--duration", "0.5")
            functions = self.run_command(TACHO, "stats", "a.tacho", "--by", "function", "--output-format", "json").stdout.decode()
            without += "work_hard" not in functions
            kept.after(self, number)
        self.assertLess(without, 1 + ROUNDS // 10)  # where the machine is busy, the program may have no time to be sampled in
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


class NeverLate(Attached):
    def start_with(self, library, code):
        """A Python that has loaded a library of that C code."""
        (self.folder / "l.c").write_text(code)
        self.run_command("gcc", "-O2", "-shared", "-fPIC", "-o", f"lib{library}.so", "l.c")
        return self.start(harness.DEBIAN_PYTHON, "-c", f"import ctypes, time\nctypes.CDLL('./lib{library}.so')\nprint('ready', flush=True)\n"
                                                       "while True: time.sleep(0.01)")

    def told(self, program, sentence, times=1):
        for _ in range(2):
            self.attach(program, "--duration", "0.2")
            self.assertEqual(" ".join(self.run_command(TACHO, "info", "a.tacho").stdout.decode().split()).count(sentence), times)

    def test_what_is_recorded_only_from_the_start_is_told(self):
        for function, sentence in (("hsa_system_get_info", "the program uses HSA without HIP"), ("ncclAllReduce", "kernels without sizes and communicators")):
            self.told(self.start_with(function, f"int {function}(void) {{ return 0; }}\n"), sentence)
        self.attach(self.start(THREADS, "3"), "--duration", "0.2")
        self.assertNotIn("only in programs that", self.run_command(TACHO, "info", "a.tacho").stdout.decode())

    def test_a_runtime_without_the_loader_is_told(self):
        program = self.start(harness.DEBIAN_PYTHON, "-c", "import ctypes, time\nctypes.CDLL('libpocl.so.2')\nprint('ready', flush=True)\ntime.sleep(60)")
        self.told(program, "the program calls it without the ICD loader (libOpenCL.so)")

    def test_a_program_that_does_nothing_is_told(self):
        """Where nothing was recorded the trace says so, and how to record what computes."""
        nothing, hint = "the trace has no events", "(--sampler timer records the call stacks of what computes)"
        info = lambda: " ".join(self.run_command(TACHO, "info", "a.tacho").stdout.decode().split())  # noqa: E731
        idle = self.start(harness.DEBIAN_PYTHON, "-c", "import time\nprint('ready', flush=True)\ntime.sleep(60)")
        self.attach(idle, "--duration", "0.2")
        self.assertIn(f"{nothing} {hint}", info())
        self.attach(idle, "--duration", "0.2", "--sampler", "timer")
        self.assertIn(nothing, info())
        self.assertNotIn(hint, info())
        works = self.start(LOOP, "100000000", "1000")
        for options in ((), ("--aggregate",)):
            self.attach(works, "--duration", "0.3", *options)
            self.assertNotIn(nothing, info())

    HIP = """
static void* TRACER;
void hipRegisterTracerCallback(void* function) { tracer = function; }
int hsa_system_get_info(int what, unsigned long* value) { *value = 1000000000; return HSA; }
int hsa_iterate_agents(void) { return 0; }
int hsa_agent_get_info(void) { return 0; }
"""

    def test_hip_that_another_traces(self):
        """HIP has one tracer: that of another profiler stays. HIP that is not in use is left alone."""
        other = self.start_with("other", self.HIP.replace("TRACER", "tracer = (void*)&tracer").replace("HSA", "0"))
        self.told(other, "another profiler of the program (roctracer) is HIP's tracer")
        asleep = self.start_with("asleep", self.HIP.replace("TRACER", "tracer").replace("HSA", "0x100b"))
        self.told(asleep, "HIP", 0)
        strange = self.start_with("strange", self.HIP.replace("TRACER", "tracer").replace("HSA", "0"))
        self.told(strange, "this version of HIP tells its calls in a way that tacho does not know")


if __name__ == "__main__":
    if harness.sanitized():
        print("skipped: tacho attach does not get into programs with another run time's allocator")
        raise SystemExit(77)
    harness.main()
