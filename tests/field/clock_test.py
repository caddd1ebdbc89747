"""A device's clock is checked, not believed: kernels lie after their launch and before the wait that returned.

A program in a time namespace reads other clocks than tacho; its devices' times are moved to tacho's.
"""
import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402, the folder of end-to-end tests is no package
from harness import EXAMPLES, TACHO  # noqa: E402


def need_time_namespaces():
    refused = subprocess.run(["unshare", "-T", "--monotonic", "5", "--fork", "true"], stderr=subprocess.PIPE)
    if refused.returncode != 0:
        raise unittest.SkipTest(f"no time namespaces here: {refused.stderr.decode().strip()}")


class LaunchOrder(harness.Case):
    """kineto#1380: kernels that begin before their launch."""

    def notes(self, shift):
        events = []
        for i in range(1, 41):
            launch = 1000 + 100 * i
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": launch, "dur": 5,
                           "args": {"correlation": i}})
            events.append({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": launch + shift, "dur": 20,
                           "args": {"correlation": i, "device": 0, "stream": 7}})
        (self.folder / "k.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        return self.run_command(TACHO, "info", "k.json", env={"COLUMNS": "400"}).stdout.decode()

    def test_kernels_before_their_launch_are_told(self):
        said = self.notes(-60)
        self.assertIn("40 of 40 kernels, copies and fills begin before the call that launched them began, by 60.0 us", said)
        self.assertIn("times out of order", said)

    def test_kernels_after_their_launch_are_not(self):
        self.assertNotIn("begin before the call", self.notes(8))


class TimeNamespaces(harness.Case):
    def query(self, statement):
        result = self.run_command(TACHO, "query", "--dialect", "tacho", "t.tacho", statement, "--output-format", "json")
        return json.loads(result.stdout)["rows"]

    def kernels_within_the_calls(self):
        [[first, last]] = self.query("SELECT min(start), max(end) FROM api")
        kernels = self.query("SELECT d.start, d.end, a.start FROM dispatch d JOIN api a ON a.correlation = d.correlation")
        self.assertTrue(kernels)
        for start, end, launch in kernels:
            self.assertGreaterEqual(start, launch)
            self.assertLessEqual(end, last)
        self.assertGreater(first, 0)

    def run_in(self, *offsets):
        need_time_namespaces()
        self.trace("unshare", "-T", *offsets, "--fork", EXAMPLES / "vcopy")
        self.kernels_within_the_calls()

    def test_without_one(self):
        self.trace(EXAMPLES / "vcopy")
        self.kernels_within_the_calls()
        self.assertEqual(self.query("SELECT text FROM note WHERE text LIKE '%clocks of process%'"), [])

    def test_ahead(self):
        self.run_in("--monotonic", "500000", "--boottime", "500000")
        self.assertEqual(len(self.query("SELECT text FROM note WHERE text LIKE '%500000.000 s ahead%'")), 1)
        info = self.run_command(TACHO, "info", "t.tacho").stdout.decode()
        self.assertNotIn(" h ", info)

    def test_behind(self):
        self.run_in("--monotonic", "-100", "--boottime", "-100")

    def test_a_child_of_a_traced_program(self):
        need_time_namespaces()
        self.trace("sh", "-c", f"{EXAMPLES / 'vcopy'} && unshare -T --monotonic 7000 --fork {EXAMPLES / 'vcopy'}")
        [[first, last]] = self.query("SELECT min(start), max(end) FROM dispatch")
        self.assertLess(last - first, 60e9)


if __name__ == "__main__":
    unittest.main(verbosity=2)
