#!/usr/bin/env python3
"""`tacho watch PID`: the sums of programs that already run: exact from tacho's coming to its leaving, and the programs are left as they were."""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest
import urllib.request

import harness
from harness import BUILD, TACHO, TARGETS

TOLD = TARGETS / "opencl_told"
FAKE = BUILD / "tests" / "fake_cuda"
ROUNDS = int(os.environ.get("TACHO_ATTACH_ROUNDS", "8"))


def setUpModule():
    if harness.sanitized():
        raise unittest.SkipTest("a sanitizer's runtime wants to be the first library of a program")


def content_of(pid, file, code):
    """The bytes of a file's mappings in a process, by address and rights: those of its code, or those that are not."""
    content = {}
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            words = line.split(None, 5)
            if len(words) > 5 and file in words[5] and ("x" in words[1]) == code:
                begin, end = (int(word, 16) for word in words[0].split("-"))
                memory.seek(begin)
                content[words[0], words[1]] = memory.read(end - begin)
    return content


class Told:
    """A program that does what it is told, and says so."""
    def __init__(self, *words, **options):
        self.process = subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
        self.pid = self.process.pid
        assert self.line() == "ready", words

    def line(self):
        return self.process.stdout.readline().strip()

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def ask(self, text):
        self.say(text)
        return self.line()


class Watcher:
    """tacho in programs, until end()."""
    def __init__(self, case, *words, begun=True, **options):
        self.file = case.folder / f"{time.monotonic_ns()}.jsonl"
        self.process = subprocess.Popen([str(TACHO), "watch", *[str(word) for word in words], "--output-format", "json", "-o", str(self.file)],
                                        stderr=subprocess.PIPE, text=True, cwd=case.folder, **options)
        case.addCleanup(self.process.stderr.close)
        case.addCleanup(self.process.kill)
        self.case = case
        self.said = ""
        while begun and "watching " not in self.said:
            line = self.process.stderr.readline()
            case.assertTrue(line, self.said)
            self.said += line

    def end(self, number=signal.SIGINT):
        """The last moment."""
        if number:
            self.process.send_signal(number)
        self.process.wait(60)
        self.said += self.process.stderr.read()
        self.case.assertEqual(self.process.returncode, 0, self.said)
        moment = json.loads(self.file.read_text().splitlines()[-1])
        self.case.assertTrue(moment["final"])
        self.case.assertEqual(moment["uncounted"], 0)
        return moment


def sums(moment, kind, what="count"):
    found = {}
    for row in moment["rows"]:
        if row["kind"] == kind:
            found[row["name"]] = found.get(row["name"], 0) + row.get(what, 0)
    return found


class Running(harness.Case):
    def start(self, *words, **options):
        program = Told(*words, cwd=self.folder, **options)
        self.addCleanup(program.process.stdin.close)
        self.addCleanup(program.process.stdout.close)
        self.addCleanup(program.process.wait)
        self.addCleanup(program.process.kill)
        return program

    def leftovers(self, pid):
        """What of tacho's is in the process: threads, descriptors, tables."""
        threads = []
        for task in os.listdir(f"/proc/{pid}/task"):
            try:
                threads.append(pathlib.Path(f"/proc/{pid}/task/{task}/comm").read_text().strip())
            except OSError:
                pass  # it has ended meanwhile
        files = [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")]
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
        return ([name for name in threads if name.startswith("tacho")], [name for name in files if "tacho" in name], re.findall(r"tacho-watch-\S+", maps))

    def wait_until(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, "it did not happen")
            time.sleep(0.01)

    def nothing_left(self, program):
        self.wait_until(lambda: self.leftovers(program.pid) == ([], [], []), 5)


class OpenCl(Running):
    def setUp(self):
        super().setUp()
        os.environ.setdefault("POCL_CACHE_DIR", str(BUILD / "pocl-cache"))

    def test_counts_from_coming_to_leaving(self):
        program = self.start(TOLD)
        for number in range(ROUNDS):
            program.ask("run 30")
            watch = Watcher(self, program.pid)
            count = 200 + 10 * number
            self.assertEqual(program.ask(f"run {count}"), "done")
            moment = watch.end()
            self.assertEqual(sums(moment, "kernel"), {"mix_up": count})
            [row] = [row for row in moment["rows"] if row["kind"] == "kernel"]
            self.assertEqual((row["grid"], row["group"]), ([1024, 1, 1], [64, 1, 1]))
            self.assertGreaterEqual(row["timed"], 64)
            self.assertEqual(sums(moment, "copy", "bytes"), {"device to host": count // 10 * 4096})
            self.assertEqual(sums(moment, "wait"), {"clFinish": 1})
            self.assertEqual((moment["failed"], moment["lost_durations"]), (0, 0))
            [process] = moment["processes"]
            self.assertEqual((process["pid"], process["name"], process["launches"], process["copied_bytes"]),
                             (program.pid, "opencl_told", count, count // 10 * 4096))
            self.assertGreater(process["time_ns"], 0)
            self.nothing_left(program)
        alone = self.start(TOLD)
        for number in range(ROUNDS):
            alone.ask("run 30")
            alone.ask(f"run {200 + 10 * number}")
        self.assertEqual(program.ask("result"), alone.ask("result"))
        program.process.stdin.close()
        self.assertEqual(program.process.wait(20), 0)

    def test_queues_stay_as_they_are(self):
        program = self.start(TOLD)
        watch = Watcher(self, program.pid)
        program.ask("plain 100")
        self.assertEqual(program.ask("new 50"), "no")
        self.assertEqual(program.ask("profiling"), "yes no")
        moment = watch.end()
        self.assertEqual(sums(moment, "kernel"), {"mix_up": 150})
        [row] = [row for row in moment["rows"] if row["kind"] == "kernel"]
        self.assertEqual((row["timed"], row["total_ns"]), (0, None))
        self.assertTrue(any("queues without profiling" in note for note in moment["notes"]), moment["notes"])
        self.assertEqual(program.ask("profiling"), "yes no")

    def test_times_are_those_of_a_watched_start(self):
        program = self.start(TOLD)
        watch = Watcher(self, program.pid)
        program.ask("run 3000")
        late = watch.end()
        started = self.run_command(TACHO, "watch", "--output-format", "json", "-o", "s.jsonl", "--", TOLD, input=b"run 3000\n")
        self.assertIn(b"done", started.stdout)
        first = json.loads((self.folder / "s.jsonl").read_text().splitlines()[-1])
        averages = [sums(moment, "kernel", "total_ns")["mix_up"] / sums(moment, "kernel")["mix_up"] for moment in (late, first)]
        self.assertLess(max(averages) / min(averages), 5)  # the machine is shared

    def test_a_forked_child_is_not_watched(self):
        program = self.start(TOLD)
        watch = Watcher(self, program.pid)
        self.assertEqual(program.ask("fork"), "7")
        program.ask("run 40")
        moment = watch.end()
        self.assertEqual(sums(moment, "kernel"), {"mix_up": 40})
        self.assertIn(f"Process {program.pid} forked a child meanwhile, which is not watched.", moment["notes"])

    def test_forks_while_tacho_looks_at_its_table(self):
        """tacho's thread looks ten times a second whether tacho lives: no child keeps the file that it opens for that."""
        source = self.folder / "slow.c"
        source.write_text("#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <time.h>\n"
                          "int flock(int file, int how) { struct timespec t = {0, 30000000}; nanosleep(&t, 0);"
                          " return ((int (*)(int, int))dlsym(RTLD_NEXT, \"flock\"))(file, how); }\n")
        self.run_command("cc", "-shared", "-fPIC", "-o", "slow.so", source, "-ldl")
        program = self.folder / "forks.py"
        program.write_text("import os, sys\n"
                           "print('ready', flush=True)\n"
                           "for line in sys.stdin:\n"
                           "    kept = 0\n"
                           "    for _ in range(int(line)):\n"
                           "        child = os.fork()\n"
                           "        if child == 0:\n"
                           "            names = [os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if os.path.islink(f'/proc/self/fd/{n}')]\n"
                           "            os._exit(any('tacho-watch' in name for name in names))\n"
                           "        kept += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
                           "    print(kept, flush=True)\n")
        told = self.start("/usr/bin/python3", program, env={**os.environ, "LD_PRELOAD": str(self.folder / "slow.so")})
        watch = Watcher(self, told.pid)
        self.assertEqual(told.ask("200"), "0")
        watch.end()

    def test_several_processes_in_one_table(self):
        programs = [self.start(TOLD) for _ in range(3)]
        watch = Watcher(self, *[program.pid for program in programs])
        for number, program in enumerate(programs):
            program.ask(f"run {100 * (number + 1)}")
        moment = watch.end()
        self.assertEqual(sums(moment, "kernel"), {"mix_up": 600})
        self.assertEqual({process["pid"]: process["launches"] for process in moment["processes"]},
                         {program.pid: 100 * (number + 1) for number, program in enumerate(programs)})

    def test_by_name_and_with_children(self):
        program = self.start(TOLD)
        shell = subprocess.Popen(["sh", "-c", f"{TOLD}; true"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=self.folder)
        self.addCleanup(shell.stdout.close)
        self.addCleanup(shell.wait)
        self.addCleanup(shell.stdin.close)
        self.assertEqual(shell.stdout.readline(), "ready\n")
        watch = Watcher(self, shell.pid, "--children")
        shell.stdin.write("run 70\n")
        shell.stdin.flush()
        self.assertEqual(shell.stdout.readline(), "done\n")
        program.ask("run 5")  # no child
        moment = watch.end()
        self.assertEqual(sums(moment, "kernel"), {"mix_up": 70})
        self.assertEqual(len(moment["processes"]), 2)

    def test_processes_that_come_later(self):
        shell = subprocess.Popen(["sh", "-c", f"sleep 4; {TOLD}; true"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=self.folder)
        self.addCleanup(shell.stdout.close)
        self.addCleanup(shell.wait)
        self.addCleanup(shell.stdin.close)
        watch = Watcher(self, shell.pid, "--children")
        self.assertEqual(shell.stdout.readline(), "ready\n")
        said = watch.process.stderr.readline()
        if "(sleep), too" in said:  # it is a child as well, if tacho was there in time
            said = watch.process.stderr.readline()
        self.assertIn("(opencl_told), too", said)
        shell.stdin.write("run 70\n")
        shell.stdin.flush()
        self.assertEqual(shell.stdout.readline(), "done\n")
        moment = watch.end()
        self.assertEqual(sums(moment, "kernel"), {"mix_up": 70})
        self.assertEqual([process["name"] for process in moment["processes"]][::2], ["sh", "opencl_told"])  # between them sleep

    def test_it_ends_with_the_program(self):
        program = self.start(TOLD)
        watch = Watcher(self, program.pid)
        program.ask("run 60")
        program.process.stdin.close()
        self.assertEqual(program.process.wait(20), 0)
        moment = watch.end(number=None)
        self.assertEqual(sums(moment, "kernel"), {"mix_up": 60})
        self.assertTrue(moment["processes"][0]["ended"])

    def test_a_killed_program(self):
        program = self.start(TOLD)
        watch = Watcher(self, program.pid)
        program.ask("run 60")
        program.process.kill()
        program.process.wait()
        self.assertEqual(sums(watch.end(number=None), "kernel"), {"mix_up": 60})

    def test_tacho_is_killed_and_the_program_runs_on(self):
        program = self.start(TOLD)
        watch = Watcher(self, program.pid)
        program.ask("run 60")
        table = self.leftovers(program.pid)[2][0]
        watch.process.kill()
        watch.process.wait()
        self.nothing_left(program)
        self.assertEqual(program.ask("run 60"), "done")
        again = Watcher(self, program.pid)
        self.assertFalse(os.path.exists(f"/dev/shm/{table}"))
        program.ask("run 80")
        self.assertEqual(sums(again.end(), "kernel"), {"mix_up": 80})

    def test_after_a_watched_start_whose_tacho_is_gone(self):
        starter = subprocess.Popen([str(TACHO), "watch", "-q", "--", str(TOLD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=self.folder)
        self.addCleanup(starter.stdout.close)
        self.addCleanup(starter.stdin.close)
        self.assertEqual(starter.stdout.readline(), "ready\n")
        pid = int(pathlib.Path(f"/proc/{starter.pid}/task/{starter.pid}/children").read_text())
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        self.one_sentence(self.run_command(TACHO, "watch", str(pid), code=1), "tacho watch has started it and watches it")
        starter.kill()
        starter.wait()
        for count in (50, 90):
            watch = Watcher(self, pid)
            starter.stdin.write(f"run {count}\n")
            starter.stdin.flush()
            self.assertEqual(starter.stdout.readline(), "done\n")
            self.assertEqual(sums(watch.end(), "kernel"), {"mix_up": count})

    def test_watch_and_attach_take_turns(self):
        program = self.start(TOLD)
        watch = Watcher(self, program.pid)
        program.ask("run 30")
        watch.end()
        tacho = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-o", "a.tacho"], cwd=self.folder, stderr=subprocess.PIPE, text=True)
        self.addCleanup(tacho.stderr.close)
        self.assertIn("attached", tacho.stderr.readline())
        time.sleep(0.5)  # it says so before its hooks are in
        self.one_sentence(self.run_command(TACHO, "watch", str(program.pid), code=1), "tacho attach records it")
        program.ask("run 40")
        tacho.send_signal(signal.SIGINT)
        self.assertEqual(tacho.wait(60), 0)
        self.assertEqual(self.calls("kernel", "mix_up", "a.tacho"), 40)
        watch = Watcher(self, program.pid)
        program.ask("run 50")
        self.assertEqual(sums(watch.end(), "kernel"), {"mix_up": 50})

    def test_attach_comes_while_tacho_watches(self):
        program = self.start(TOLD)
        watch = Watcher(self, program.pid)
        tacho = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-o", "a.tacho"], cwd=self.folder, stderr=subprocess.PIPE, text=True)
        self.addCleanup(tacho.stderr.close)
        self.assertIn("attached", tacho.stderr.readline())
        time.sleep(0.5)  # it says so before its hooks are in
        program.ask("run 40")
        self.assertEqual(sums(watch.end(), "kernel"), {"mix_up": 40})
        program.ask("run 20")
        tacho.send_signal(signal.SIGINT)
        self.assertEqual(tacho.wait(60), 0)
        self.assertEqual(self.calls("kernel", "mix_up", "a.tacho"), 60)
        for count in (50, 60):
            watch = Watcher(self, program.pid)
            program.ask(f"run {count}")
            self.assertEqual(sums(watch.end(), "kernel"), {"mix_up": count})
        self.nothing_left(program)

    def test_two_runtimes(self):
        icd = pathlib.Path("/usr/lib/oclgrind/liboclgrind-rt-icd.so")
        if not icd.exists():
            self.skipTest("needs Oclgrind (Debian: oclgrind)")
        vendors = self.folder / "vendors"
        vendors.mkdir()
        for file in pathlib.Path("/etc/OpenCL/vendors").glob("pocl*.icd"):
            (vendors / "a.icd").write_text(file.read_text())
        (vendors / "b.icd").write_text(f"{icd}\n")
        program = self.start(TOLD, env={**os.environ, "OCL_ICD_VENDORS": f"{vendors}/"})
        for count in (30, 50):
            program.ask("other 10")
            watch = Watcher(self, program.pid)
            program.ask(f"run {2 * count}")
            program.ask(f"other {count}")
            moment = watch.end()
            self.assertEqual(sums(moment, "kernel"), {"mix_up": 3 * count})
            self.assertEqual(sums(moment, "copy", "bytes")["device to host"], 3 * count // 10 * 4096)
            self.assertEqual(moment["lost_durations"], 0)
        self.assertEqual(program.ask("other 10"), "done")

    def test_in_a_container(self):
        """Other process numbers, another /dev/shm, and no file of tacho's."""
        harness.need_mounts()
        (self.folder / "told").write_bytes(TOLD.read_bytes())
        (self.folder / "told").chmod(0o755)
        # Its /dev/shm is a link, which outside of it leads to another folder.
        outside = self.folder / "outside"
        outside.mkdir()
        before = outside.stat().st_mtime_ns
        script = (f"mount -t tmpfs none {outside} && mount -t tmpfs none /dev && ln -s {outside} /dev/shm && mknod -m 666 /dev/null c 1 3 && "
                  f"mount -t tmpfs none {BUILD / 'lib'} && mount -t tmpfs none /var/tmp && exec {self.folder}/told")
        program = self.start("unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", script)
        inner = int(pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text())
        for count in (70, 90):
            watch = Watcher(self, inner)
            program.ask(f"run {count}")
            moment = watch.end()
            self.assertEqual(sums(moment, "kernel"), {"mix_up": count})
            self.assertEqual([process["pid"] for process in moment["processes"]], [inner])
            self.wait_until(lambda: self.leftovers(inner) == ([], [], []))
        self.assertEqual([name for folder in ("/tmp", "/var/tmp", str(outside)) for name in os.listdir(f"/proc/{inner}/root{folder}") if name.startswith("tacho-watch")], [])
        self.assertEqual((outside.stat().st_mtime_ns, os.listdir(outside)), (before, []))

    def test_metrics(self):
        program = self.start(TOLD)
        watch = Watcher(self, program.pid, "--prometheus", "127.0.0.1:0")
        address = re.search(r"http://\S+", watch.said + watch.process.stderr.readline())[0]
        program.ask("run 33")
        with urllib.request.urlopen(address, timeout=10) as answer:
            self.assertIn('tacho_kernel_launches_total{kernel="mix_up"} 33', answer.read().decode())
        watch.end()

    def test_two_at_once(self):
        program = self.start(TOLD)
        watch = Watcher(self, program.pid)
        self.one_sentence(self.run_command(TACHO, "watch", str(program.pid), code=1), "another tacho watches it")
        program.ask("run 20")
        self.assertEqual(sums(watch.end(), "kernel"), {"mix_up": 20})

    def test_tables_and_duration(self):
        program = self.start(TOLD)
        tacho = subprocess.Popen([str(TACHO), "watch", "--duration", "1.5", str(program.pid)], stderr=subprocess.PIPE, text=True, cwd=self.folder)
        self.addCleanup(tacho.stderr.close)
        self.assertRegex(tacho.stderr.readline(), r"watching process \d+ after [\d.]+ s; a thread of it was stopped for [\d.]+ ms$")
        program.ask("run 120")
        text = tacho.stderr.read()
        self.assertEqual(tacho.wait(), 0)
        self.assertIn(f"tacho watch  process {program.pid} (opencl_told)", text)
        self.assertRegex(text, r"\n +120 [^\n]+ mix_up 1024/64\n")
        self.assertRegex(text, rf"{program.pid} +opencl_told +120 ")

    def test_page(self):
        programs = [self.start(TOLD) for _ in range(2)]
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(str(TACHO), [str(TACHO), "watch", "--page", "--interval", "0.3", *[str(program.pid) for program in programs]])
        self.addCleanup(os.close, terminal)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        seen = b""

        def until(needle):
            nonlocal seen
            end = time.monotonic() + 30
            while needle not in seen and time.monotonic() < end:
                if select.select([terminal], [], [], 0.1)[0]:
                    try:
                        seen += os.read(terminal, 65536)
                    except OSError:
                        break
            self.assertIn(needle, seen)
        until(b"launches/s")
        for program in programs:
            program.ask("run 50")
        until(b"mix_up 1024/64")
        for program in programs:
            until(str(program.pid).encode())
        os.write(terminal, b"q")
        until(b"Copies, waits and memory")
        while True:
            try:
                if not os.read(terminal, 65536):
                    break
            except OSError:
                break
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        for program in programs:
            self.nothing_left(program)


class Cuda(Running):
    """On a stand-in driver that counts exactly, by each way in which programs keep its functions."""
    WAYS = ("table", "dlsym", "linked")
    OPTIONS = ()

    def driver(self, way):
        program = FAKE / ("fake_steps_linked" if way == "linked" else "fake_steps")
        return self.start(program, way, env={**os.environ, "LD_LIBRARY_PATH": str(FAKE / "driver")})

    def watcher(self, pid):
        return Watcher(self, pid, *self.OPTIONS)

    def report(self, program):
        report = json.loads(program.ask("report"))
        self.assertEqual((report["events_in_captures"], report["asked_in_captures"]), (0, 0))
        return report

    def test_counts_from_coming_to_leaving(self):
        for way in self.WAYS:
            with self.subTest(way):
                program = self.driver(way)
                for number in range(ROUNDS):
                    if number % 2 == 0 and (way != "linked" or number > 0):
                        program.ask("run 50")
                    before = self.report(program)
                    watch = self.watcher(program.pid)
                    count = 1000 + 10 * number
                    self.assertEqual(program.ask(f"run {count}"), "done")
                    moment = watch.end()
                    after = self.report(program)
                    self.assertEqual(sums(moment, "kernel"), {"often_1000": count, "seldom_50000": count // 10})
                    self.assertEqual(sums(moment, "copy"), {"host to device": count // 10, "device to host": count // 10})
                    self.assertEqual(sum(sums(moment, "copy", "bytes").values()), after["copied"] - before["copied"])
                    self.assertEqual(sums(moment, "wait"), {"cuStreamSynchronize": after["waits"] - before["waits"]})
                    self.assertEqual(sums(moment, "allocation", "bytes"), {"device memory": 1 << 20})
                    self.assertEqual((moment["failed"], moment["lost_durations"]), (0, 0))
                    # Our events are gone.
                    self.assertGreater(after["events"], before["events"])
                    self.assertEqual(after["events"], after["events_destroyed"])
                    [often] = [row for row in moment["rows"] if row["name"] == "often_1000"]
                    self.assertGreaterEqual(often["timed"], 64)
                    self.assertLess(abs(often["total_ns"] / often["count"] - 1000), 50)
                    self.nothing_left(program)

    def test_workers_that_are_forked_and_run_no_other_program(self):
        """As servers and loaders of data have them: each counts as a process of its own."""
        for before in (True, False):
            with self.subTest("before tacho comes" if before else "meanwhile"):
                program = self.driver("table")
                program.ask("run 20")
                worker = int(program.ask("worker")) if before else 0
                watch = Watcher(self, program.pid, "--children", *self.OPTIONS)
                if not before:
                    worker = int(program.ask("worker"))
                    while f"watching process {worker} (fake_steps), too" not in watch.said:
                        watch.said += watch.process.stderr.readline()
                program.ask("work 500")
                program.ask("run 100")
                moment = watch.end()
                self.assertEqual({process["pid"]: process["launches"] for process in moment["processes"] if process["uses_devices"]}, {program.pid: 110, worker: 500})
                self.assertEqual(sums(moment, "kernel"), {"often_1000": 600, "seldom_50000": 10})
                forked = [note for note in moment["notes"] if "forked" in note]
                self.assertEqual(forked, [] if before else [f"Process {program.pid} forked a child meanwhile. 1 of its children is watched as well, "
                                                            "from when tacho found it; others are not."])
                program.ask("work 5")  # when tacho has left
                program.ask("work 5")

    def test_words_are_as_before(self):
        for way in self.WAYS:
            with self.subTest(way):
                program = self.driver(way)
                program.ask("run 20")
                before = self.words(program.pid)
                watch = self.watcher(program.pid)
                self.assertNotEqual(self.words(program.pid), before)
                watch.end()
                self.assertEqual(self.words(program.pid), before)

    def words(self, pid):
        """The writable data of the program's own file."""
        return content_of(pid, "fake_steps", code=False)

    def test_functions_that_are_got_while_tacho_is_there(self):
        program = self.driver("table")
        watch = self.watcher(program.pid)
        program.ask("again 100")
        program.ask("kept 100")
        self.assertEqual(sums(watch.end(), "kernel"), {"often_1000": 400})
        # The program has kept them where tacho does not look for them.
        before = self.report(program)["launches"]
        program.ask("kept 100")
        self.assertEqual(self.report(program)["launches"], before + 200)
        watch = self.watcher(program.pid)
        program.ask("kept 30")
        program.ask("run 10")
        self.assertEqual(sums(watch.end(), "kernel"), {"often_1000": 70, "seldom_50000": 1})

    def test_functions_on_the_heap_are_not_seen(self):
        program = self.driver("heap")
        watch = self.watcher(program.pid)
        program.ask("run 100")
        moment = watch.end()
        self.assertEqual(sums(moment, "kernel"), {})

    def test_a_stream_that_is_being_captured_when_tacho_comes(self):
        program = self.driver("table")
        self.assertEqual(program.ask("capture"), "capturing")
        watch = self.watcher(program.pid)
        self.assertEqual(program.ask("go on"), "done")
        moment = watch.end()
        self.report(program)
        self.assertEqual((sums(moment, "kernel"), sums(moment, "graph")), ({}, {"graph 1": 20}))

    def test_a_stream_that_is_being_captured_when_tacho_leaves(self):
        program = self.driver("dlsym")
        watch = self.watcher(program.pid)
        program.ask("run 100")
        self.assertEqual(program.ask("capture"), "capturing")
        moment = watch.end()
        self.assertEqual(program.ask("go on"), "done")
        self.report(program)
        self.assertEqual(sums(moment, "kernel"), {"often_1000": 100, "seldom_50000": 10})
        watch = self.watcher(program.pid)
        program.ask("run 200")
        moment = watch.end()
        self.assertEqual(sums(moment, "kernel"), {"often_1000": 200, "seldom_50000": 20})
        self.assertGreaterEqual([row for row in moment["rows"] if row["name"] == "often_1000"][0]["timed"], 64)

    def test_a_forked_child_passes_calls_on(self):
        program = self.driver("table")
        watch = self.watcher(program.pid)
        program.ask("run 100")
        self.assertEqual(program.ask("fork 50"), "the child launched")
        moment = watch.end()
        self.assertEqual(sums(moment, "kernel"), {"often_1000": 100, "seldom_50000": 10})
        self.assertIn(f"Process {program.pid} forked a child meanwhile, which is not watched.", moment["notes"])

    def test_another_program_in_the_process(self):
        program = self.driver("table")
        watch = self.watcher(program.pid)
        program.ask("run 100")
        program.say("exec")
        moment = watch.end(number=None)
        self.assertEqual(sums(moment, "kernel"), {"often_1000": 100, "seldom_50000": 10})
        self.assertIn("exec", watch.said)

    def test_a_library_that_is_loaded_later(self):
        """The driver itself: a program that has none yet is watched from the moment that it has."""
        program = self.folder / "later.py"
        program.write_text("import ctypes, sys\n"
                           "print('ready', flush=True)\n"
                           "sys.stdin.readline()\n"
                           "cuda = ctypes.CDLL('libcuda.so.1')\n"
                           "f = ctypes.c_void_p(); cuda.cuModuleGetFunction(ctypes.byref(f), None, b'late_1000')\n"
                           "for _ in range(30): cuda.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, None, None, None)\n"
                           "print('done', flush=True)\n"
                           "sys.stdin.readline()\n")
        told = self.start("/usr/bin/python3", program, env={**os.environ, "LD_LIBRARY_PATH": str(FAKE / "driver")})
        watch = self.watcher(told.pid)
        self.assertEqual(told.ask("go"), "done")
        moment = watch.end()
        self.assertEqual(sums(moment, "kernel"), {"late_1000": 30})


class Patched(Cuda):
    """The same programs with --patch-entries: the driver's functions lead to tacho, whoever holds their addresses."""
    WAYS = ("table", "dlsym", "linked", "heap")
    OPTIONS = ("--patch-entries",)

    def test_functions_on_the_heap_are_not_seen(self):
        pass  # they are: test_counts_from_coming_to_leaving

    def test_words_are_as_before(self):
        """Words of the driver's functions stay as they are, and code is as before when tacho has left."""
        for way in self.WAYS:
            with self.subTest(way):
                program = self.driver(way)
                program.ask("run 20")
                words, code = self.words(program.pid), self.code(program.pid)
                watch = self.watcher(program.pid)
                self.assertRegex(watch.said, rf"\d\d functions of process {program.pid} were patched while all of its threads were stopped for [\d.]+ ms")
                now = self.words(program.pid)
                changed = [at for key in words for at in range(0, len(words[key]), 8) if words[key][at:at + 8] != now[key][at:at + 8]]
                self.assertLessEqual(len(changed), 1)  # dlsym, for drivers that come later
                self.assertNotEqual(self.code(program.pid), code)
                watch.end()
                self.assertEqual((self.words(program.pid), self.code(program.pid)), (words, code))

    def code(self, pid):
        """The driver's code."""
        content = content_of(pid, "libcuda.so", code=True)
        self.assertTrue(content)
        return content

    def test_functions_that_are_got_while_tacho_is_there(self):
        program = self.driver("table")
        watch = self.watcher(program.pid)
        program.ask("again 100")
        program.ask("kept 100")
        self.assertEqual(sums(watch.end(), "kernel"), {"often_1000": 400})
        before = self.report(program)["launches"]
        program.ask("kept 100")
        self.assertEqual(self.report(program)["launches"], before + 200)
        watch = self.watcher(program.pid)
        program.ask("kept 30")  # by two pointers
        program.ask("run 10")
        self.assertEqual(sums(watch.end(), "kernel"), {"often_1000": 70, "seldom_50000": 1})

    def test_while_it_launches(self):
        """Nothing is lost or done twice when threads are stopped at any instruction."""
        program = self.driver("heap")
        code = self.code(program.pid)
        program.say("run 2000000")
        for _ in range(ROUNDS):
            self.watcher(program.pid).end()
            self.assertEqual(self.code(program.pid), code)
        self.assertEqual(program.line(), "done")
        self.assertEqual(self.report(program)["launches"], 2_200_000)

    def test_a_killed_tacho(self):
        """Its jumps stay and pass calls on, until the next tacho takes them out."""
        program = self.driver("heap")
        code = self.code(program.pid)
        watch = self.watcher(program.pid)
        program.ask("run 100")
        watch.process.kill()
        watch.process.wait()
        self.nothing_left(program)
        self.assertNotEqual(self.code(program.pid), code)
        program.ask("run 100")
        self.assertEqual(self.report(program)["launches"], 220)
        for options in (("--patch-entries",), ()):
            watch = Watcher(self, program.pid, *options)
            program.ask("run 100")
            self.assertEqual(sums(watch.end(), "kernel"), {"often_1000": 100, "seldom_50000": 10} if options else {})
            self.assertEqual(self.code(program.pid), code)


class Fates(Running):
    """The program changes while tacho is at any step of its way in and out: it runs on, or has ended, and tacho says one sentence."""
    STEPS = ("stopped", "mapped", "filled", "created", "waiting", "attached", "leaving", "left")
    PROGRAM = TARGETS / "attach_fates"

    def at_step(self, step, change):
        program = self.start(self.PROGRAM)
        tacho = subprocess.Popen([str(TACHO), "watch", str(program.pid), "-q", "--duration", "0.2"], cwd=self.folder,
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

    def alive(self, program):
        self.nothing_left(program)
        program.process.stdin.write("p")
        program.process.stdin.flush()
        self.assertEqual(program.line(), "p")

    def test_it_is_killed(self):
        for step in self.STEPS:
            program, code, said = self.at_step(step, lambda program: program.process.kill())
            self.assertIn(code, {"attached": (0,), "leaving": (0,), "left": (0,), "created": (0, 1), "waiting": (0, 1)}.get(step, (1,)), f"{step}: {said}")
            if code == 1:
                self.assertIn("ended while tacho", said)

    def test_it_runs_another_program(self):
        for step in self.STEPS:
            def change(program):
                program.process.stdin.write("x")
                program.process.stdin.flush()
                time.sleep(0.2)
            program, code, said = self.at_step(step, change)
            self.wait_until(lambda: os.readlink(f"/proc/{program.pid}/exe").endswith("sleep"))
            self.assertNotIn(self.state(program.pid), "tT", step)
            self.nothing_left(program)

    def test_it_forks(self):
        for step in self.STEPS:
            def change(program):
                program.process.stdin.write("f")
                program.process.stdin.flush()
            program, code, said = self.at_step(step, change)
            child = int(program.line())
            self.addCleanup(os.kill, child, signal.SIGKILL)
            self.assertEqual(code, 0, f"{step}: {said}")
            try:
                self.wait_until(lambda: self.leftovers(child) == ([], [], []))
            except AssertionError:
                self.fail(f"{step}: {self.leftovers(child)}; {said}")
            self.assertNotIn(self.state(child), "tT", step)
            self.alive(program)

    def test_it_is_stopped_and_goes_on(self):
        for step in self.STEPS:
            def change(program):
                program.process.send_signal(signal.SIGSTOP)
                time.sleep(0.2)
                program.process.send_signal(signal.SIGCONT)
            program, code, said = self.at_step(step, change)
            self.assertEqual(code, 0, f"{step}: {said}")
            self.alive(program)

    def test_tacho_is_killed(self):
        for step in ("stopped", "waiting", "attached", "leaving", "left"):
            program = self.start(self.PROGRAM)
            tacho = subprocess.Popen([str(TACHO), "watch", str(program.pid), "-q", "--duration", "0.2"], cwd=self.folder,
                                     env={**os.environ, "TACHO_ATTACH_STEP": step})
            self.wait_until(lambda: self.state(tacho.pid) in "TZ")
            tacho.kill()
            tacho.wait(timeout=20)
            self.alive(program)
            Watcher(self, program.pid).end()
            self.alive(program)


class Refusals(Running):
    def watch(self, *words):
        return self.run_command(TACHO, "watch", *words, code=1)

    def test_sentences(self):
        self.one_sentence(self.watch("999999999"), "999999999")
        self.one_sentence(self.watch("--name", "no_such_program_runs"), "no_such_program_runs")
        self.one_sentence(self.watch("1", "--interval", "-1"), "--interval")
        self.one_sentence(self.watch(os.getpid(), "--budget", "200%"), "--budget")
        self.one_sentence(self.run_command(TACHO, "watch", "--name", "x", "--", "true", code=125), "--name")
        self.one_sentence(self.run_command(TACHO, "watch", "--duration", "3", "--", "true", code=125), "--duration")
        self.one_sentence(self.run_command(TACHO, "watch", "--patch-entries", "--", "true", code=125), "--patch-entries PID")

    def test_a_program_that_is_stopped(self):
        program = self.start("sh", "-c", "echo ready; exec sleep 60")
        program.process.send_signal(signal.SIGSTOP)
        self.wait_until(lambda: pathlib.Path(f"/proc/{program.pid}/stat").read_text().split(")")[1].split()[0] == "T")
        self.one_sentence(self.watch(program.pid), str(program.pid), "stopped")

    def test_a_runtime_that_is_watched_only_from_the_start(self):
        source = self.folder / "hsa.c"
        source.write_text("int hsa_init(void) { return 0; }\n")
        self.run_command("cc", "-shared", "-fPIC", "-Wl,-soname,libhsa-runtime64.so.1", "-o", "libhsa-runtime64.so.1", source)
        program = self.start("/usr/bin/python3", "-c", "import ctypes, sys; ctypes.CDLL('./libhsa-runtime64.so.1'); print('ready', flush=True); sys.stdin.readline()")
        moment = Watcher(self, program.pid).end()
        self.assertTrue(any("uses a runtime that tacho watch sees only in programs that it starts" in note for note in moment["notes"]), moment["notes"])
        self.assertFalse(moment["processes"][0]["uses_devices"])

    def test_a_program_without_a_device(self):
        program = self.start("sh", "-c", "echo ready; while :; do sleep 0.05; done")
        watch = Watcher(self, program.pid)
        moment = watch.end()
        self.assertIn("No process used a runtime that tacho watch knows.", moment["notes"])


if __name__ == "__main__":
    harness.main()
