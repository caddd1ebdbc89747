"""tacho attach to HIP programs that run on the bed: exactly the work that the driver did meanwhile, and results as alone."""
import os
import pathlib
import re
import signal
import subprocess
import time

import bed
import harness
from harness import TACHO

ROUNDS = int(os.environ.get("TACHO_ATTACH_ROUNDS", "30"))


class Attach(bed.Traced):
    def start(self, *command, rocm="7.2", env=None):
        """A program on the bed that has said "ready"."""
        ledger = self.folder / "ledger"
        ledger.unlink(missing_ok=True)
        program = subprocess.Popen([str(word) for word in (bed.SCRIPT, "--rocm", rocm, "--build", harness.BUILD, "--", *command)],
                                   stdout=subprocess.PIPE, cwd=self.folder, text=True,
                                   env={**os.environ, "TACHO_KFD_LEDGER": str(ledger), **(env or {})})
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.kill)
        self.assertEqual(program.stdout.readline().strip(), "ready")
        return program

    def attach(self, program, *options, code=0):
        (self.folder / "t.tacho").unlink(missing_ok=True)
        return self.run_command(TACHO, "attach", program.pid, "-q", "-o", "t.tacho", *options, code=code)

    def end(self, program):
        program.send_signal(signal.SIGTERM)
        said, _ = program.communicate(timeout=60)
        self.assertEqual(program.returncode, 0, said)
        self.assertRegex(said, r"^\d+ rounds: right$")

    def rows_lost(self):
        """ROCr converts a begin and an end by the clocks of different moments: on a busy machine one may come before the other. The row stays."""
        return [loss for loss in self.losses() if loss[0] not in ("filtered", "times out of order")]

    @staticmethod
    def kept(pid):
        """Threads, descriptors, resident KiB (without pages of files, which the kernel takes and gives) and mappings of a process."""
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        number = lambda name: int(re.search(rf"{name}:\s+(\d+)", status)[1])  # noqa: E731
        return (number("Threads"), len(os.listdir(f"/proc/{pid}/fd")), number("RssAnon") + number("RssShmem"), len(pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()))

    def ledger(self):
        return bed.Ledger(self.folder / "ledger")

    def same_as_ledger(self):
        """Every kernel of the trace is one that the driver ran, and none that it ran in between is missing."""
        rows = sorted(self.dispatches(), key=lambda row: row[1])
        self.assertGreater(len(rows), 10)
        first, last = rows[0][1], max(row[2] for row in rows)
        done = sorted((kernel for kernel in self.ledger().kernels if kernel.start > first - 50_000 and kernel.end < last + 50_000), key=lambda kernel: kernel.start)
        self.assertEqual(len(rows), len(done))
        for row, kernel in zip(rows, done):
            self.assertEqual(row[0], kernel.name)
            self.assertLess(abs(row[1] - kernel.start), 100_000)
            self.assertLess(abs((row[2] - row[1]) - (kernel.end - kernel.start)), 1_000)
            if row[3] is not None:
                self.assertEqual((row[3:6], row[6:9]), (kernel.grid, kernel.group))
        return rows


class Hip(Attach):
    def test_kernels_calls_and_copies(self):
        for rocm in self.versions():
            with self.subTest(rocm):
                program = self.start(self.program("attach", rocm=rocm), rocm=rocm)
                self.attach(program, "--for-launches", "90")
                self.end(program)
                self.same_as_ledger()
                self.assertEqual(self.rows_lost(), [])
                self.assertEqual(self.query("SELECT architecture, vendor, kind FROM device"), [("gfx942", "Advanced Micro Devices, Inc.", "GPU")])
                # Each kernel and each copy has its call, and the call what it made.
                made = dict(self.query("SELECT f.name, count(*) FROM dispatch d JOIN api a ON a.correlation = d.correlation JOIN function f ON f.id = a.dim GROUP BY 1"))
                self.assertEqual(list(made), ["hipLaunchKernel"])
                # The call in which tacho came may have made one more.
                self.assertIn(len(self.dispatches()) - made["hipLaunchKernel"], (0, 1))
                copies = self.query("SELECT f.name, s.direction, c.bytes, count(*) FROM copy c JOIN copy_shape s ON s.id = c.dim JOIN api a ON "
                                    "a.correlation = c.correlation JOIN function f ON f.id = a.dim GROUP BY 1, 2, 3")
                self.assertEqual([row[:3] for row in copies], [("hipMemcpyAsync", "device to host", 1 << 18)])
                self.assertEqual(self.query("SELECT count(*) FROM dispatch d JOIN api a ON a.correlation = d.correlation WHERE d.start < a.start"), [(0,)])
                self.assertEqual(self.query("SELECT DISTINCT a.result FROM api a JOIN function f ON f.id = a.dim WHERE f.domain = 'hip'"), [(None,)])
                self.assertEqual({row[0] for row in self.query("SELECT DISTINCT t.native FROM dispatch d JOIN track t ON t.id = d.track")}, {0, 1})

    def test_nodes_of_a_graph_made_before(self):
        program = self.start(self.program("attach"), "1000", "graph")
        self.attach(program, "--for-launches", "90")
        self.end(program)
        self.same_as_ledger()
        nodes = self.query("SELECT d.graph_node, f.name, count(*) FROM dispatch d JOIN api a ON a.correlation = d.correlation JOIN function f ON f.id = a.dim "
                           "WHERE d.graph_node > 0 GROUP BY 1, 2 ORDER BY 1")
        self.assertEqual([row[:2] for row in nodes], [(1, "hipGraphLaunch"), (2, "hipGraphLaunch"), (3, "hipGraphLaunch")])
        self.assertEqual(len({row[2] for row in nodes}), 1)

    def test_again_and_again(self):
        program = self.start(self.program("attach"), "200")
        begin, warm, late = (0, 0, 0, 0), None, 0
        while abs(self.kept(program.pid)[2] - begin[2]) > 128:  # KiB: HIP makes much only when it is first used
            begin = self.kept(program.pid)
            time.sleep(1)
        for number in range(ROUNDS):
            options = ((), ("--kernel-trace",), ("--kernel-exclude", "mix"), ("--memory-copy-trace",))[number % 4]
            self.attach(program, "--for-launches", "60", *options)
            kernels, calls = len(self.dispatches()), self.query("SELECT count(*) FROM api")[0][0]
            if number % 4 < 2:
                untold = self.query("SELECT sum(count) FROM loss WHERE reason = 'launch without a record'")[0][0] or 0
                self.assertIn(kernels + untold, (60, 61), self.losses())
                late += untold
            self.assertEqual(calls > 0, number % 4 in (0, 2))
            self.assertEqual(kernels == 0, number % 4 == 3)
            self.assertEqual([loss for loss in self.rows_lost() if loss[0] != "launch without a record"], [])
            warm = self.kept(program.pid) if number == 9 else warm
        self.assertLessEqual(late, ROUNDS)  # of 30 times as many: had not ended a second after tacho was asked to leave
        end = self.kept(program.pid)
        print(f"{late} kernels had not ended when tacho left; "
              f"{ROUNDS} rounds: (threads, descriptors, resident KiB, mappings) before {begin}, after the tenth {warm}, now {end}", flush=True)
        self.assertEqual(end[:2], warm[:2])
        # ROCr starts its thread for signals with the first copy or kernel that is timed, and keeps it.
        self.assertIn(end[0] - begin[0], (0, 1))
        self.assertLessEqual(end[2], min(begin[2] + 8192, warm[2] + 1024))
        self.assertLessEqual(end[3], warm[3] + 4)
        maps = pathlib.Path(f"/proc/{program.pid}/maps").read_text()
        self.assertEqual(re.findall(r"tacho-\S+\.pool", maps), [])
        self.end(program)


if __name__ == "__main__":
    harness.main()
