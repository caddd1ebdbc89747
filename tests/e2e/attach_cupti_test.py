"""`tacho attach` in CUDA programs, on the stand-in for CUPTI: what is recorded, and how CUPTI is left."""
import os
import re
import signal
import subprocess
import time

import attach_test
import harness
from harness import TACHO


class Live(attach_test.Attached):
    def start_live(self, name="", mode="live", *words, more=None):
        folder = harness.BUILD / "tests" / "fake_cuda" / name
        driver = harness.BUILD / "tests" / "fake_cuda" / "driver"
        version = self.folder / "version"
        version.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  610.43.02  Thu Mar 22 00:42:57 PDT 2026\n")
        return self.start(harness.BUILD / "tests" / "fake_cuda" / "fake_cuda", mode, *words,
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
                self.assertEqual("CUPTI stays in the program, idle" in info, name != "v3")
            self.assertEqual(self.leftovers(program.pid), ([], [], []))
            self.assertRegex(self.end(program), rf"\d+ launches, clock set {clocks} times, in use 0")

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
    """`--leave-cupti finalized`: CUPTI is finalised where the program made and launched no graph since CUPTI came, and nowhere else. After a wrong
    end the stand-in ends the program at the next launch of a graph, as driver 580 does."""

    def attach_finalizing(self, program, during=lambda: None, kernels=3):
        """Attaches once; what the trace says about CUPTI."""
        tacho = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "--overwrite", "-o", "a.tacho", "--duration", "0.5", "--leave-cupti", "finalized"],
                                 cwd=self.folder)
        self.addCleanup(tacho.kill)
        self.wait_until(lambda: "tacho-cupti" in self.threads(program.pid) or tacho.poll() is not None)
        during()
        self.assertEqual(tacho.wait(timeout=60), 0)
        info = " ".join(self.run_command(TACHO, "info", "a.tacho").stdout.decode().split())
        self.assertIn("nothing was lost", info)
        self.assertGreaterEqual(self.calls("kernel", "vecAdd(float*, int)", "a.tacho"), kernels)
        said = re.findall(r"CUPTI was finalised|CUPTI stays[^.]*", info)
        self.assertEqual(len(said), 1, info)
        left = self.query("SELECT value FROM tacho.property WHERE key = 'cupti.left'")
        self.assertEqual(left, [["finalized" if said[0] == "CUPTI was finalised" else "idle"]])
        return said[0]

    def graph(self, program, number=signal.SIGUSR1):
        """The program launches a graph, or instantiates one (SIGUSR2), and goes on."""
        program.send_signal(number)
        time.sleep(0.1)
        self.assertIsNone(program.poll(), "the program has ended")

    def ends(self, program, finalized, clocks=1):
        self.graph(program)
        self.assertEqual(self.leftovers(program.pid), ([], [], []))
        self.assertRegex(self.end(program), rf"\d+ launches, clock set {clocks} times, in use 0, finalised {finalized} times, wrongly 0$")

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
            self.assertIn("the program made or launched CUDA graphs while tacho was attached", said)
            self.assertIn(f"(the first call of graphs: {call})", said)
            self.graph(program)
            self.assertIn("an earlier attach left it idle", self.attach_finalizing(program))
            self.ends(program, 1)

    def test_graphs_while_tacho_is_away(self):
        """They are none of CUPTI's business where it was finalised, and those of one that was left idle nobody has followed."""
        program = self.start_live()
        for _ in range(2):
            self.assertEqual(self.attach_finalizing(program), "CUPTI was finalised")
            self.graph(program)
        self.ends(program, 2)
        program = self.start_live()
        self.attach(program, "--duration", "0.4")
        self.assertIn("CUPTI stays in the program, idle, until the program ends: to", self.run_command(TACHO, "info", "a.tacho").stdout.decode())
        self.graph(program)
        self.assertIn("an earlier attach left it idle", self.attach_finalizing(program))
        self.ends(program, 0)

    def test_where_others_are_or_were(self):
        """Several clients leave with their subscribers; where another client was first CUPTI is that one's."""
        program = self.start_live("v3")
        self.attach(program, "--duration", "0.4", "--leave-cupti", "finalized")
        self.assertNotRegex(self.run_command(TACHO, "info", "a.tacho").stdout.decode(), "finali[sz]ed|CUPTI stays")
        self.ends(program, 0, clocks=0)
        program = self.start_live(more={"FAKE_CUPTI_REFUSES": "39"})
        self.attach(program, "--duration", "0.4", "--leave-cupti", "finalized")
        self.assertRegex(self.run_command(TACHO, "info", "a.tacho").stdout.decode(), "another profiler[^;]*already uses CUPTI")
        self.ends(program, 0, clocks=0)

    def test_one_that_cannot_be_finalised(self):
        program = self.start_live(more={"FAKE_CUPTI_STAYS": "1"})
        self.assertIn("was given: it refused", self.attach_finalizing(program))
        self.ends(program, 0)

    def test_one_that_takes_no_buffers(self):
        """Nothing is recorded, and CUPTI is given back all the same: a later attach does not take tacho for another profiler."""
        for options, finalized in (((), 0), (("--leave-cupti", "finalized"), 2)):
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
        tacho = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "-o", "killed.tacho", "--leave-cupti", "finalized"], cwd=self.folder)
        self.wait_until(lambda: "tacho-cupti" in self.threads(program.pid))
        tacho.kill()
        tacho.wait()
        self.run_command(TACHO, "recover", code=None)
        self.wait_until(lambda: self.leftovers(program.pid) == ([], [], []))
        self.assertEqual(self.attach_finalizing(program), "CUPTI was finalised")
        self.ends(program, 2)

    def test_launches_are_counted_anew(self):
        """CUPTI numbers calls from 1 again once it was finalised."""
        program = self.start_live()
        for _ in range(3):
            self.attach(program, "--for-launches", "50", "--leave-cupti", "finalized")
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
