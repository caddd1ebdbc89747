"""`tacho attach` in CUDA programs, on the stand-in for CUPTI: what is recorded."""
import os
import re

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


if __name__ == "__main__":
    if harness.sanitized():
        print("skipped: tacho attach does not get into programs with another run time's allocator")
        raise SystemExit(77)
    harness.main()
