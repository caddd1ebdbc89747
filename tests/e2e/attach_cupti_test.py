"""`tacho attach` in CUDA programs, on the stand-in for CUPTI: what is recorded, and how CUPTI is left."""
import os
import re
import signal
import subprocess
import time

import attach_test
import harness
from harness import TACHO


RECORDS_ITSELF = """
import ctypes, os, threading, time, tacho
driver = ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
ended, cupti = False, None
def work():
    global cupti
    while not ended:
        time.sleep(0.002)
        try:
            cupti = cupti or ctypes.CDLL("libcupti.so.13", mode=os.RTLD_NOLOAD)
            cupti.fake_launch(b"_Z6vecAddPfi")
            cupti.fake_complete()
        except OSError:
            pass  # tacho has not come yet
tacho.listen()
thread = threading.Thread(target=work)
thread.start()
print("ready", flush=True)
tacho.snapshot(0.5, "one.tacho")
tacho.start("two.tacho")
time.sleep(0.5)
tacho.stop()
tacho.snapshot(0.5, "three.tacho", "--leave-cupti", "idle")
ended = True
thread.join()
print(f"finalised {cupti.fake_finalized()} times, wrongly {cupti.fake_wrongly_finalized()}, in use {cupti.fake_enabled()}")
"""


class Live(attach_test.Attached):
    def start_live(self, name="", mode="live", *words, more=None, program=()):
        folder = harness.BUILD / "tests" / "fake_cuda" / name
        driver = harness.BUILD / "tests" / "fake_cuda" / "driver"
        version = self.folder / "version"
        version.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  610.43.02  Thu Mar 22 00:42:57 PDT 2026\n")
        return self.start(*(program or (harness.BUILD / "tests" / "fake_cuda" / "fake_cuda", mode, *words)),
                          env={**os.environ, "CUDA_HOME": str(folder), "LD_LIBRARY_PATH": str(driver), "TACHO_NVIDIA_VERSION_FILE": str(version),
                               **(more or {})})


class Cuda(Live):
    """On the stand-in for CUPTI, without and with cuptiSubscribe_v2, and with subscribers of several clients."""

    def test_kernels_again_and_again(self):
        # The clock is set once in a process's life: each further time spoils a record on CUPTI up to 13.0. Of several clients none sets it.
        for name, clocks in (("", 1), ("v2", 1), ("v3", 0)):
            program = self.start_live(name)
            for number in range(5):
                options = ("--api-args",) if number % 2 else ()
                self.attach(program, "--duration", "0.4", *options)
                kernels = self.stats("kernel", "a.tacho")
                self.assertEqual(list(kernels), ["vecAdd(float*, int)"])
                self.assertGreater(kernels["vecAdd(float*, int)"]["Calls"], 3)
                info = self.run_command(TACHO, "info", "a.tacho").stdout.decode()
                self.assertIn("nothing was lost", info)
                self.assertEqual("CUPTI was finalised" in info, name != "v3")
                self.assertNotIn("CUPTI stays", info)
            self.assertEqual(self.leftovers(program.pid), ([], [], []))
            self.assertRegex(self.end(program), rf"\d+ launches, clock set {clocks} times, in use 0")

    def test_tachos_own_calls_are_not_the_programs(self):
        program = self.start_live()
        for options in ((), ("--driver-trace", "--all-api-calls")):
            self.attach(program, "--duration", "0.4", *options)
            self.assertEqual(list(self.stats("api", "a.tacho")), ["cudaLaunchKernel"])
        self.end(program)

    def test_a_number_of_launches(self):
        program = self.start_live()
        self.attach(program, "--for-launches", "50")
        # A launch that has begun before recording does may come on top.
        self.assertIn(self.calls("kernel", "vecAdd(float*, int)", "a.tacho"), (50, 51))
        self.end(program)

    def test_one_that_shares_its_gpu(self):
        """MPS: kernels of others run beside the program's, which the trace says."""
        program = self.start_live(more={"CUDA_MPS_PIPE_DIRECTORY": str(self.folder)})
        self.attach(program, "--duration", "0.4")
        self.assertGreater(self.stats("kernel", "a.tacho")["vecAdd(float*, int)"]["Calls"], 3)
        self.assertIn("shares its GPU with others through MPS", self.run_command(TACHO, "info", "a.tacho").stdout.decode())
        self.end(program)
        program = self.start_live()
        self.attach(program, "--duration", "0.4")
        self.assertNotIn("MPS", self.run_command(TACHO, "info", "a.tacho").stdout.decode())
        self.end(program)

    def test_graphs_that_cupti_does_not_follow_again(self):
        """The first attach gets the kernels of a graph; what a later one lacks of it is counted and told."""
        program = self.start_live("", "graphs")
        silent = "launches of CUDA graphs left no records of their kernels"
        for number in range(3):
            self.attach(program, "--duration", "0.4", "--kernel-trace")
            info = self.run_command(TACHO, "info", "a.tacho").stdout.decode()
            kernels = self.query("SELECT count(*) FROM tacho.dispatch WHERE graph_node > 0")
            lost = self.query("SELECT count FROM tacho.loss WHERE \"table\" = 'dispatch' AND reason LIKE 'dropped by the vendor%'")
            if number == 0:
                self.assertGreater(int(kernels[0][0]), 3)
                self.assertNotIn(silent, info)
            else:
                self.assertEqual(kernels, [["0"]])
                self.assertEqual(int(re.search(rf"(\d+) {silent}", info)[1]), int(lost[0][0]))
        self.end(program)


class Leaving(Live):
    """CUPTI is finalised where the program made and launched no graph since CUPTI came, and nowhere else. After a wrong end the stand-in ends the
    program at the next launch of a graph, which driver 580 does only where a graph was launched both while kinds were on and while they were off."""

    def attach_finalizing(self, program, during=lambda: None, options=("--duration", "0.5"), kernels=3, lost=""):
        """Attaches once; what the trace says about CUPTI."""
        tacho = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "--overwrite", "-o", "a.tacho", *options], cwd=self.folder)
        self.addCleanup(tacho.kill)
        self.wait_until(lambda: "tacho-cupti" in self.threads(program.pid) or tacho.poll() is not None)
        during()
        if not options:
            time.sleep(0.3)
            tacho.send_signal(signal.SIGINT)
        self.assertEqual(tacho.wait(timeout=60), 0)
        return self.said_of_cupti(kernels, lost)

    def said_of_cupti(self, kernels=3, lost="", file="a.tacho"):
        info = " ".join(self.run_command(TACHO, "info", file).stdout.decode().split())
        self.assertIn(lost or "nothing was lost", info)
        self.assertGreaterEqual(self.calls("kernel", "vecAdd(float*, int)", file), kernels)
        said = re.findall(r"CUPTI was finalised in [\d.]+ ms|CUPTI stays.*? until the program ends: [^.]*", info)
        self.assertEqual(len(said), 1, info)
        finalised = said[0].startswith("CUPTI was finalised")
        left = self.query("SELECT value FROM tacho.property WHERE key = 'cupti.left'", file)
        self.assertEqual(left, [["finalized" if finalised else "idle"]])
        return "CUPTI was finalised" if finalised else said[0]

    def graph(self, program, number=signal.SIGUSR1):
        """The program launches a graph, or instantiates one (SIGUSR2), and goes on."""
        program.send_signal(number)
        time.sleep(0.1)
        self.assertIsNone(program.poll(), "the program has ended")

    def ends(self, program, finalized, clocks=1):
        self.graph(program)
        self.assertEqual(self.leftovers(program.pid), ([], [], []))
        self.assertRegex(self.end(program), rf"\d+ launches, clock set {clocks} times, in use 0, finalised {finalized} times, wrongly 0, held up 0 ms$")

    def test_again_and_again(self):
        """Times are right, whether CUPTI forgets tacho's clock, which is set once in a process's life, or keeps it."""
        for name, more in (("", {}), ("v2", {}), ("", {"FAKE_CUPTI_KEEPS_CLOCK": "1"})):
            program = self.start_live(name, more=more)
            for _ in range(4):
                begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
                self.assertEqual(self.attach_finalizing(program), "CUPTI was finalised")
                end = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
                first, last = map(int, self.query("SELECT min(start), max(start + duration) FROM tacho.dispatch")[0])
                self.assertLess(begin, first)
                self.assertLess(last, end)
                self.assertLess(0.3e9, last - first)
            self.ends(program, 4)

    def test_a_graph_meanwhile_and_ever_after(self):
        """Made or launched while tacho was there: it stays idle, then and in each later attach."""
        for number, call in ((signal.SIGUSR1, "cuGraphLaunch"), (signal.SIGUSR2, "cuGraphInstantiateWithFlags")):
            program = self.start_live()
            self.assertEqual(self.attach_finalizing(program), "CUPTI was finalised")
            said = self.attach_finalizing(program, lambda: self.graph(program, number))
            self.assertIn("until the program ends: to finalise it could break CUDA graphs", said)
            self.assertIn(f"(the first call of graphs: {call})", said)
            self.graph(program)
            self.assertIn("an earlier attach left it idle", self.attach_finalizing(program))
            self.ends(program, 1)

    def test_calls_that_cupti_no_longer_counts(self):
        """After graphs in an earlier attach: the kernels are there, and what lacks is told."""
        program = self.start_live(more={"FAKE_CUPTI_STOPS_COUNTING": "1"})
        self.assertIn("the first call of graphs", self.attach_finalizing(program, lambda: self.graph(program)))
        self.attach_finalizing(program)
        kernels = int(self.query("SELECT count(*) FROM tacho.dispatch WHERE correlation = 0")[0][0])
        self.assertGreater(kernels, 20)
        self.assertLess(self.calls("api", "cudaLaunchKernel", "a.tacho"), 3)
        self.assertIn(f"{kernels} kernels came without the number of a call", " ".join(self.run_command(TACHO, "info", "a.tacho").stdout.decode().split()))
        self.ends(program, 0)

    def test_graphs_while_tacho_is_away(self):
        """They are none of CUPTI's business where it was finalised, and those of one that was left idle nobody has followed."""
        program = self.start_live()
        for _ in range(2):
            self.assertEqual(self.attach_finalizing(program), "CUPTI was finalised")
            self.graph(program)
        self.ends(program, 2)
        program = self.start_live()
        self.assertIn("until the program ends: --leave-cupti idle was given", self.attach_finalizing(program, options=("--duration", "0.5", "--leave-cupti", "idle")))
        self.graph(program)
        self.assertIn("an earlier attach left it idle", self.attach_finalizing(program))
        self.ends(program, 0)

    def test_where_others_are_or_were(self):
        """Several clients leave with their subscribers; where another client was first CUPTI is that one's."""
        program = self.start_live("v3")
        self.attach(program, "--duration", "0.4")
        self.assertNotRegex(self.run_command(TACHO, "info", "a.tacho").stdout.decode(), "finali[sz]ed|CUPTI stays")
        self.ends(program, 0, clocks=0)
        program = self.start_live(more={"FAKE_CUPTI_REFUSES": "39"})
        self.attach(program, "--duration", "0.4")
        self.assertRegex(self.run_command(TACHO, "info", "a.tacho").stdout.decode(), "another profiler[^;]*already uses CUPTI")
        self.ends(program, 0, clocks=0)

    def test_graphs_where_several_clients_may_record(self):
        """A loop of graphs from before has its pace again, in every attach, and nothing is finalised."""
        program = self.start_live("v3", "pace")
        time.sleep(1)
        for _ in range(3):
            self.attach(program, "--duration", "0.3")
            self.assertNotRegex(self.run_command(TACHO, "info", "a.tacho").stdout.decode(), "finali[sz]ed|CUPTI stays")
        program.send_signal(signal.SIGHUP)
        time.sleep(1)
        before, after = map(float, re.fullmatch(r"([\d.]+) and ([\d.]+) ns a launch, in use 0", said := self.end(program)).groups())
        print(said, flush=True)
        self.assertLess(after, 1.1 * before)

    def test_one_that_cannot_be_finalised(self):
        program = self.start_live(more={"FAKE_CUPTI_STAYS": "1"})
        self.assertIn("until the program ends: it refused to be finalised", self.attach_finalizing(program))
        self.ends(program, 0)

    def test_one_that_takes_no_buffers(self):
        """Nothing is recorded, and CUPTI is given back all the same: a later attach does not take tacho for another profiler."""
        for options, finalized in ((("--leave-cupti", "idle"), 0), ((), 2)):
            program = self.start_live(more={"FAKE_CUPTI_NO_BUFFERS": "1"})
            for _ in range(2):
                self.attach(program, "--duration", "0.3", *options)
                info = self.run_command(TACHO, "info", "a.tacho").stdout.decode()
                self.assertIn("CUPTI takes no buffers from tacho", info)
                self.assertNotIn("another profiler", info)
            self.ends(program, finalized)

    def test_tacho_is_killed(self):
        """The program's thread finalises by itself."""
        program = self.start_live()
        self.kill_tacho_in(program, "tacho-cupti")
        self.assertEqual(self.attach_finalizing(program), "CUPTI was finalised")
        self.ends(program, 2)

    def test_a_kernel_that_runs_at_the_end(self):
        """Finalising CUPTI would wait for it, and the program's calls with it: it stays idle, then and in each later attach."""
        program = self.start_live()
        lasts = lambda: program.send_signal(signal.SIGHUP)  # noqa: E731
        self.assertIn("until the program ends: kernels or copies that had been launched 0", self.attach_finalizing(program, lasts, lost="1 dispatch record: in flight"))
        time.sleep(3)
        self.assertIn("an earlier attach left it idle", self.attach_finalizing(program))
        self.ends(program, 0)

    def test_kernels_that_nobody_recorded(self):
        """Whether one runs for long is not known then."""
        for options in (("--memory-copy-trace", "--duration", "0.5"), ("--stop-trigger", "launch:20", "--duration", "1")):
            program = self.start_live()
            self.assertEqual(self.attach_finalizing(program, options=options, kernels=0), "CUPTI was finalised")
            self.ends(program, 1)

    def test_another_tool_that_was_there_before(self):
        program = self.start_live(more={"FAKE_CUPTI_CALLS_BEFORE": "1"})
        self.assertIn("until the program ends: another tool used it before", self.attach_finalizing(program))
        self.ends(program, 0)

    def test_ctrl_c(self):
        program = self.start_live()
        for _ in range(2):
            self.assertEqual(self.attach_finalizing(program, options=()), "CUPTI was finalised")
        self.assertIn("the first call of graphs", self.attach_finalizing(program, lambda: self.graph(program), options=()))
        self.ends(program, 2)

    def test_a_program_that_records_itself(self):
        """Snapshots and recordings that it starts and ends leave CUPTI likewise."""
        program = self.start_live(program=(harness.DEBIAN_PYTHON, "-c", RECORDS_ITSELF), more={
            "TACHO_LIBRARY": str(harness.BUILD / "lib" / "libtacho.so"), "TACHO_PROGRAM": str(TACHO), "PYTHONPATH": str(harness.BUILD / "share" / "tacho" / "python")})
        said, _ = program.communicate(timeout=60)
        self.assertEqual((program.returncode, said), (0, "finalised 2 times, wrongly 0, in use 0\n"))
        for file in ("one.tacho", "two.tacho"):
            self.assertEqual(self.said_of_cupti(file=file), "CUPTI was finalised")
        self.assertIn("--leave-cupti idle was given", self.said_of_cupti(file="three.tacho"))

    def test_launches_are_counted_anew(self):
        """CUPTI numbers calls from 1 again once it was finalised."""
        program = self.start_live()
        for _ in range(3):
            self.assertEqual(self.attach_finalizing(program, options=("--for-launches", "50")), "CUPTI was finalised")
            self.assertIn(self.calls("kernel", "vecAdd(float*, int)", "a.tacho"), (50, 51))
        self.ends(program, 3)

    def test_many_threads_that_launch(self):
        program = self.start_live("", "live", "4")
        kept = attach_test.Kept(program.pid)
        for number in range(attach_test.ROUNDS):
            self.assertEqual(self.attach_finalizing(program, kernels=20), "CUPTI was finalised")
            kept.after(self, number)
        self.ends(program, attach_test.ROUNDS)

    def test_a_word_that_is_none(self):
        program = self.start_live()
        self.one_sentence(self.attach(program, "--leave-cupti", "gone", code=1), "--leave-cupti", "idle", "finalized")
        self.end(program)


if __name__ == "__main__":
    if harness.sanitized():
        print("skipped: tacho attach does not get into programs with another run time's allocator")
        raise SystemExit(77)
    harness.main()
