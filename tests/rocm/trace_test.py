"""tacho trace of HIP programs through HSA's interface for tools: what the bed completed is what the trace holds."""
import collections
import csv
import json

import bed
import harness
from harness import TACHO


class Trace(bed.Case):
    def traced(self, *command, options=(), code=0, **where):
        (self.folder / "t.tacho").unlink(missing_ok=True)
        return self.on_bed(TACHO, "trace", "--quiet", "-o", "t.tacho", *options, "--", *command, code=code, **where)

    def query(self, statement, file="t.tacho"):
        result = self.run_command(TACHO, "query", file, "--dialect", "tacho", "--output-format", "json", statement)
        table = json.loads(result.stdout)
        return [tuple(row) for row in table["rows"]]

    def losses(self):
        return self.query("SELECT reason, sum(count) FROM loss GROUP BY 1")

    def dispatches(self):
        return self.query("SELECT k.name, d.start, d.start + d.duration, k.grid_x, k.grid_y, k.grid_z, k.group_x, k.group_y, "
                          "k.group_z, k.shared_static + k.shared_dynamic, k.private_bytes, d.correlation, d.track FROM "
                          "dispatch d JOIN kernel k ON k.id = d.dim")

    def equal(self, ledger):
        """Asserts that the trace has the ledger's kernels, each with its shape and its times, and nothing else."""
        rows = sorted(self.dispatches(), key=lambda row: row[1])
        done = sorted(ledger.kernels, key=lambda kernel: kernel.start)
        self.assertEqual(len(rows), len(done))
        shapes = collections.Counter((row[0], row[3:6], row[6:9], row[9], row[10]) for row in rows)
        self.assertEqual(shapes, collections.Counter((k.name, k.grid, k.group, k.lds, k.scratch) for k in done))
        # The runtime converts the GPU's clock by its own fit, which is good to a few microseconds.
        for row, kernel in zip(rows, done):
            self.assertLess(abs(row[1] - kernel.start), 100_000)
            self.assertLess(abs((row[2] - row[1]) - (kernel.end - kernel.start)), 1_000)
        self.assertEqual(self.losses(), [])

    def test_counts_shapes_and_times(self):
        for gpu in ("gfx90a", "gfx942", "gfx950"):
            with self.subTest(gpu):
                result, ledger = self.traced(self.program("mixed"), gpu=gpu)
                self.assertEqual(bed.printed(result)["wrong"], "0")
                self.equal(ledger)
                self.assertEqual(self.query("SELECT architecture, vendor, kind FROM device"),
                                 [(gpu, "Advanced Micro Devices, Inc.", "GPU")])

    def test_again_and_again(self):
        program = self.program("mixed")
        for _ in range(10):
            _, ledger = self.traced(program, "10")
            self.equal(ledger)

    def test_copies(self):
        _, ledger = self.traced(self.program("mixed"), "1")
        copies = self.query("SELECT s.direction, c.bytes, c.start, c.start + c.duration FROM copy c "
                            "JOIN copy_shape s ON s.id = c.dim ORDER BY c.start")
        self.assertEqual([copy[:2] for copy in copies], [("host to device", 1 << 20), ("device to host", 1 << 20)])
        for copy, done in zip(copies, ledger.copies):
            self.assertEqual(copy[1], done.bytes)
            self.assertLess(abs(copy[2] - done.start), 5_000_000)
            self.assertGreaterEqual(copy[3] - copy[2], (done.end - done.start) - 1_000)

    def test_every_kernel_belongs_to_its_call(self):
        self.traced(self.program("mixed"), "5")
        calls = self.query("SELECT k.name, f.name, count(*) FROM dispatch d JOIN kernel k ON k.id = d.dim JOIN api a ON "
                           "a.correlation = d.correlation JOIN function f ON f.id = a.dim GROUP BY 1, 2 ORDER BY 1, 2")
        self.assertEqual(calls, [("_Z7reversePfi", "hipGraphLaunch", 12), ("_Z7reversePfi", "hipLaunchKernel", 25),
                                 ("add", "hipLaunchKernel", 5), ("scale", "hipLaunchKernel", 1)])
        self.assertEqual(self.query("SELECT count(*) FROM dispatch d JOIN api a ON a.correlation = d.correlation "
                                    "WHERE d.start < a.start"), [(0,)])
        copies = self.query("SELECT f.name, count(*) FROM copy d JOIN api a ON a.correlation = d.correlation "
                            "JOIN function f ON f.id = a.dim GROUP BY 1")
        self.assertEqual(copies, [("hipMemcpyAsync", 2)])

    def test_calls(self):
        self.traced(self.program("mixed"), "5")
        calls = dict(self.query("SELECT f.name, count(*) FROM api a JOIN function f ON f.id = a.dim "
                                "WHERE f.domain = 'hip' AND a.result = 0 GROUP BY 1"))
        self.assertEqual({name: calls[name] for name in ("hipLaunchKernel", "hipGraphLaunch", "hipMemcpyAsync", "hipMalloc",
                                                         "hipStreamCreate", "hipStreamDestroy", "hipDeviceSynchronize")},
                         {"hipLaunchKernel": 35, "hipGraphLaunch": 3, "hipMemcpyAsync": 2, "hipMalloc": 3,
                          "hipStreamCreate": 3, "hipStreamDestroy": 3, "hipDeviceSynchronize": 5})
        self.assertNotIn("hipGetLastError", calls)

    def test_hsa_calls_when_asked(self):
        program = self.program("mixed")
        self.traced(program, "5")
        self.assertEqual(self.query("SELECT count(*) FROM function WHERE domain = 'hsa'"), [(0,)])
        result, ledger = self.traced(program, "5", options=["--hsa-trace"])
        self.assertEqual(bed.printed(result)["wrong"], "0")
        self.equal(ledger)
        calls = dict(self.query("SELECT f.name, count(*) FROM api a JOIN function f ON f.id = a.dim "
                                "WHERE f.domain = 'hsa' GROUP BY 1"))
        self.assertEqual(calls["hsa_queue_create"], len({kernel.queue for kernel in ledger.kernels}))
        self.assertEqual(calls["hsa_amd_memory_async_copy_on_engine"], 2)
        # Kernels belong to HIP's calls still.
        self.assertEqual(self.query("SELECT count(*) FROM dispatch d JOIN api a ON a.correlation = d.correlation JOIN "
                                    "function f ON f.id = a.dim WHERE f.domain = 'hip'"), [(len(ledger.kernels),)])

    def test_more_launches_than_a_queue_holds(self):
        result, ledger = self.traced(self.program("storm"), "10000")
        self.assertEqual((bed.printed(result)["wrong"], len(ledger.kernels)), ("0", 40_000))
        self.assertEqual(self.query("SELECT count(*), min(correlation) > 0 FROM dispatch"), [(40_000, 1)])
        self.assertEqual(self.losses(), [])

    def test_as_rocprofv3(self):
        rocprofv3 = harness.BUILD / "personalities" / "rocprofv3"
        _, ledger = self.on_bed(rocprofv3, "--kernel-trace", "--hip-trace", "--memory-copy-trace", "-d", "out", "-o", "run",
                                "-f", "csv", "--", self.program("mixed"), "5")
        rows = list(csv.DictReader((self.folder / "out" / "run_kernel_trace.csv").read_text().splitlines()))
        self.assertEqual(collections.Counter(row["Kernel_Name"].split("(")[0] for row in rows),
                         {"scale": 1, "add": 5, "reverse": 37})
        self.assertEqual({row["LDS_Block_Size"] for row in rows if row["Kernel_Name"].startswith("reverse")}, {"1024", "1536"})
        copies = list(csv.DictReader((self.folder / "out" / "run_memory_copy_trace.csv").read_text().splitlines()))
        self.assertEqual(len(copies), len(ledger.copies))

    def test_registers(self):
        """From the kernel's descriptor: as allocated, in steps of 8 vector and 16 scalar registers."""
        program = self.program("mixed")
        self.traced(program, "1")
        rows = self.query("SELECT DISTINCT name, registers, accum_registers, scalar_registers, shared_static FROM kernel "
                          "WHERE shared_dynamic = 0 ORDER BY 1")
        self.assertEqual([row[0] for row in rows], ["_Z7reversePfi", "add", "scale"])
        for _, vector, accumulation, scalar, _ in rows:
            self.assertTrue(0 < vector <= 512 and 0 <= accumulation <= 512 and 0 < scalar <= 128, rows)
            self.assertEqual(((vector + accumulation) % 8, scalar % 16), (0, 0), rows)
        self.assertEqual([row[4] for row in rows], [1024, 0, 0])

    def test_the_program_runs_as_without(self):
        program = self.program("mixed")
        alone, _ = self.on_bed(program, "3")
        traced, _ = self.traced(program, "3")
        self.assertEqual(alone.stdout, traced.stdout)
        self.assertEqual(alone.stderr, traced.stderr)

    def test_several_processes(self):
        for how in ("fork", "exec"):
            with self.subTest(how):
                _, ledger = self.traced(self.program("ends"), how)
                self.assertEqual(len(ledger.kernels), 12)
                self.equal(ledger)
                processes = self.query("SELECT count(DISTINCT t.process) FROM dispatch d JOIN track t ON t.id = d.track")
                self.assertEqual(processes, [(2,)])

    def test_programs_that_do_not_wait(self):
        for how, code in (("late", 0), ("_exit", 3)):
            with self.subTest(how):
                _, ledger = self.traced(self.program("ends"), how, code=code)
                rows, lost = len(self.dispatches()), sum(count for _, count in self.losses())
                self.assertEqual(rows + lost, 12)
                self.assertGreaterEqual(rows, len(ledger.kernels) - 1)

    def test_device_reset(self):
        _, ledger = self.traced(self.program("ends"), "reset")
        self.assertEqual(len(ledger.kernels), 7)
        self.equal(ledger)

    def test_filter(self):
        _, ledger = self.traced(self.program("mixed"), "4", options=("--kernel-include", "^add$"))
        self.assertEqual({row[0] for row in self.dispatches()}, {"add"})
        self.assertEqual(len(self.dispatches()), 4)
        self.assertEqual(dict(self.losses())["filtered"], len(ledger.kernels) - 4)

    def test_another_tool_in_the_list(self):
        _, ledger = self.traced(self.program("mixed"), "2", env={"HSA_TOOLS_LIB": "/nowhere/libother.so"})
        self.equal(ledger)

    def test_asked_for_a_library_that_cannot_be_had(self):
        _, ledger = self.traced(self.program("mixed"), "1", options=("--amd-source", "sdk"))
        self.equal(ledger)
        (note,), = self.query("SELECT text FROM note")
        self.assertRegex(note, "built without rocprofiler-register, which rocprofiler-sdk needs")

    def test_avail_says_how(self):
        result, _ = self.on_bed(TACHO, "avail")
        self.assertRegex(result.stdout.decode(), r"rocm +ready +kernels, copies and HIP calls")

    def test_several_gpus(self):
        _, ledger = self.traced(self.program("mixed"), "2", gpus=4)
        self.equal(ledger)
        self.assertEqual(self.query("SELECT count(*), count(DISTINCT uuid) FROM device"), [(4, 4)])


if __name__ == "__main__":
    harness.main()
