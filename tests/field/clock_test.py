"""A device's clock is checked, not believed: kernels lie after their launch and before the wait that returned.

A program in a time namespace reads other clocks than tacho; its devices' times are moved to tacho's. A device whose clock is apart for
any other reason is measured by its launches and waits.
"""
import contextlib
import json
import pathlib
import shutil
import sqlite3
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

    def test_kernels_far_from_their_launch_in_the_file(self):
        """All calls first and more of them than are remembered: work is compared at the end of the file."""
        count = 300_000
        for shift, said in ((8, False), (-60, True)):
            with open(self.folder / "far.json", "w", encoding="utf-8") as file:
                file.write('{"traceEvents": [')
                for i in range(1, count + 1):
                    file.write(f'{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":7,"ts":{1000 + 100 * i},"dur":5,'
                               f'"args":{{"correlation":{i}}}}},\n')
                for i in range(1, count + 1):
                    file.write(f'{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{1000 + 100 * i + (shift if i % 100 == 0 else 8)},"dur":20,'
                               f'"args":{{"correlation":{i},"device":0,"stream":7}}}}{"" if i == count else ","}\n')
                file.write("]}")
            info = self.run_command(TACHO, "info", "far.json", env={"COLUMNS": "400"}).stdout.decode()
            if said:
                self.assertIn("3000 of 300000 kernels, copies and fills begin before the call that launched them began, by 60.0 us", info)
            else:
                self.assertNotIn("begin before the call", info)

    def test_kernels_between_launch_and_wait_are_moved(self):
        """A launch, its kernel of 20 us that begins 4 us later, and a wait that returns 3 us after it."""
        for shift, said in ((-5000, r"(4\.99\d|5\.00\d) ms behind the host's"), (70000, r"(69\.99\d|70\.00\d) ms ahead of the host's")):
            events = []
            for i in range(1, 41):
                launch = 1000 + 100 * i
                events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": launch, "dur": 3,
                               "args": {"correlation": 2 * i}})
                events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 7, "tid": 7, "ts": launch + 5,
                               "dur": 22, "args": {"correlation": 2 * i + 1}})
                events.append({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": launch + 4 + shift, "dur": 20,
                               "args": {"correlation": 2 * i, "device": 0, "stream": 7}})
            (self.folder / "k.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
            info = self.run_command(TACHO, "info", "k.json", env={"COLUMNS": "400"}).stdout.decode()
            self.assertRegex(info, said)
            self.assertNotIn("times out of order", info)
            result = self.run_command(TACHO, "query", "--dialect", "tacho", "k.json", "SELECT min(d.start - a.start), max(d.start - a.start) "
                                      "FROM dispatch d JOIN api a ON a.correlation = d.correlation", "--output-format", "json")
            [[least, most]] = json.loads(result.stdout)["rows"]
            self.assertGreaterEqual(least, 0)
            self.assertLessEqual(most, 10_000)


class Readers(harness.Case):
    """rocprofv3's files, rocpd and .rpd: 4,000 launches with a wait behind each, then the device's times alone are shifted.

    The calls of these files lie apart from the work: each kernel finds its own, however far away.
    """

    LAUNCHES = 4000

    def setUp(self):
        super().setUp()
        events = []
        for i in range(1, self.LAUNCHES + 1):
            launch = 1_000_000 + 100 * i
            events += [{"ph": "X", "cat": "cuda_runtime", "name": "hipLaunchKernel", "pid": 7, "tid": 7, "ts": launch, "dur": 3,
                        "args": {"correlation": 2 * i}},
                       {"ph": "X", "cat": "cuda_runtime", "name": "hipDeviceSynchronize", "pid": 7, "tid": 7, "ts": launch + 5,
                        "dur": 22, "args": {"correlation": 2 * i + 1}},
                       {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 3, "ts": launch + 4, "dur": 20,
                        "args": {"correlation": 2 * i, "device": 0, "stream": 3, "grid": [1, 1, 1], "block": [64, 1, 1]}}]
        (self.folder / "k.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))

    def export(self, form, name):
        self.run_command(TACHO, "export", "k.json", "-f", form, "-o", name, "--overwrite")
        return self.folder / name

    def csv_set(self, shift):
        folder = self.folder / "csv"
        shutil.rmtree(folder, ignore_errors=True)
        self.run_command(TACHO, "export", "k.json", "-f", "csv", "-d", folder, "--overwrite")
        [kernels] = folder.glob("**/*kernel_trace.csv")
        lines = kernels.read_text().splitlines()
        columns = lines[0].replace('"', "").split(",")
        moved = [lines[0]]
        for line in lines[1:]:
            cells = line.split(",")
            for column in ("Start_Timestamp", "End_Timestamp"):
                cells[columns.index(column)] = str(int(cells[columns.index(column)]) + shift)
            moved.append(",".join(cells))
        kernels.write_text("\n".join(moved) + "\n")
        return folder

    def json_file(self, shift):
        file = self.export("rocprofv3", "t_results.json")
        document = json.loads(file.read_text())
        for process in document["rocprofiler-sdk-tool"]:
            for kernel in process["buffer_records"]["kernel_dispatch"]:
                kernel["start_timestamp"] += shift
                kernel["end_timestamp"] += shift
            # rocprofv3 itself writes kernels before calls.
            records = process["buffer_records"]
            process["buffer_records"] = {key: records[key] for key in sorted(records, key=lambda key: key != "kernel_dispatch")}
        file.write_text(json.dumps(document))
        return file

    def database(self, form, table, shift):
        file = self.export(form, f"t.{'db' if form == 'rocpd' else form}")
        with contextlib.closing(sqlite3.connect(file)) as base:
            names = [name for [name] in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            [name] = [name for name in names if name in (table, *(name for name in names if name.startswith(table + "_0")))]
            base.execute(f'UPDATE "{name}" SET start = start + {shift}, end = end + {shift}')
            base.commit()
        return file

    def inputs(self, shift):
        yield self.csv_set(shift)
        yield self.json_file(shift)
        yield self.database("rocpd", "rocpd_kernel_dispatch", shift)
        yield self.database("rpd", "rocpd_op", shift)

    def delays(self, trace):
        result = self.run_command(TACHO, "query", "--dialect", "tacho", trace, "SELECT count(*), min(d.start - a.start), max(d.start - a.start) "
                                  "FROM dispatch d JOIN api a ON a.correlation = d.correlation", "--output-format", "json")
        return json.loads(result.stdout)["rows"][0]

    def test_times_that_fit_stay(self):
        for trace in self.inputs(0):
            with self.subTest(trace=trace.name):
                info = self.run_command(TACHO, "info", trace, env={"COLUMNS": "400"}).stdout.decode()
                self.assertNotIn("clock was", info)
                self.assertEqual(self.delays(trace), [self.LAUNCHES, 4000, 4000])

    def test_a_clock_that_is_apart_is_moved(self):
        for shift, said in ((-5_000_000, r"(4\.99\d|5\.00\d) ms behind the host's"),
                            (7_000_000_000_000, r"(6999\.99\d|7000\.00\d) s ahead of the host's")):
            for trace in self.inputs(shift):
                with self.subTest(trace=trace.name, shift=shift):
                    info = self.run_command(TACHO, "info", trace, env={"COLUMNS": "400"}).stdout.decode()
                    self.assertRegex(info, said)
                    self.assertNotIn("times out of order", info)
                    count, least, most = self.delays(trace)
                    self.assertEqual(count, self.LAUNCHES)
                    self.assertGreaterEqual(least, 0)
                    self.assertLessEqual(most, 10_000)

    def test_times_before_their_launch_without_a_wait_are_unknown(self):
        """Nothing tells how far the clock is away: the kernels are counted, and no delay of a launch is made of them."""
        document = json.loads((self.folder / "k.json").read_text())
        document["traceEvents"] = [event for event in document["traceEvents"] if event["name"] != "hipDeviceSynchronize"]
        (self.folder / "k.json").write_text(json.dumps(document))
        for trace in self.inputs(-60_000):
            with self.subTest(trace=trace.name):
                info = self.run_command(TACHO, "info", trace, env={"COLUMNS": "400"}).stdout.decode()
                self.assertIn(f"{self.LAUNCHES} of {self.LAUNCHES} kernels, copies and fills begin before the call", info)
                self.assertIn("times out of order", info)
                result = self.run_command(TACHO, "report", "launch-delay", trace, "--output-format", "json")
                self.assertEqual(json.loads(result.stdout)["rows"], [])
                self.assertIn(f"{self.LAUNCHES} GPU operations begin before the calls that launched them".encode(), result.stderr)


class Kernels(harness.Case):
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


class ShiftedClocks(Kernels):
    """PoCL reads a clock that is apart, or of another rate, as a faulty driver's or a restored container's is."""

    SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec* out) {
  static int (*next)(clockid_t, struct timespec*);
  static long long first;
  if (next == NULL) next = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int result = next(id, out);
  Dl_info caller;
  if (result != 0 || id != CLOCK_MONOTONIC_RAW || dladdr(__builtin_return_address(0), &caller) == 0 || caller.dli_fname == NULL ||
      strstr(caller.dli_fname, "libpocl") == NULL)
    return result;
  long long now = out->tv_sec * 1000000000LL + out->tv_nsec;
  if (first == 0) first = now;
  now += SHIFT + (now - first) / 1000 * PPM / 1000;
  out->tv_sec = now / 1000000000;
  out->tv_nsec = now % 1000000000;
  return result;
}
"""

    def run_with(self, shift, ppm=0, command=(EXAMPLES / "vcopy",)):
        if shutil.which("gcc") is None:
            raise unittest.SkipTest("needs a C compiler")
        (self.folder / "shim.c").write_text(self.SHIM)
        self.run_command("gcc", "-O1", "-fPIC", "-shared", f"-DSHIFT={shift}LL", f"-DPPM={ppm}LL", "-o", "shim.so", "shim.c", "-ldl")
        self.trace(*command, env={"LD_PRELOAD": str(self.folder / "shim.so")}, options=("--overwrite",))
        return [text for [text] in self.query("SELECT text FROM note WHERE text LIKE '%clock was%'")]

    def test_right_clocks_are_left_alone(self):
        self.assertEqual(self.run_with(0), [])

    def test_behind(self):
        [said] = self.run_with(-3_000_000_000)
        self.assertRegex(said, r"(2\.99\d|3\.00\d) s behind the host's")
        self.kernels_within_the_calls()

    def test_ahead(self):
        [said] = self.run_with(3_600_000_000_000)
        self.assertRegex(said, r"3600\.00\d s ahead of the host's")
        self.kernels_within_the_calls()


class TimeNamespaces(Kernels):
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
