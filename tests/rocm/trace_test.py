"""tacho trace of HIP programs through HSA's interface for tools: the trace holds exactly the work that the bed completed."""
import collections
import csv
import io

import bed
import harness
from harness import TACHO


class Trace(bed.Traced):
    def test_cooperative_launches_end_as_alone(self):
        """The runtime has one cooperative queue for each GPU, and dies at its end where somebody put an intercept queue around it."""
        program = self.program("cooperative")
        alone, _ = self.on_bed(program)
        result, ledger = self.traced(program)
        self.assertEqual((result.stdout, alone.stdout), (b"0 0\n", b"0 0\n"))
        self.assertEqual(sum("together" in name for name in ledger.names()), 1)
        self.assertEqual(sum("plain" in row[0] for row in self.dispatches()), 1)
        self.assertEqual(sum("cooperatively" in note for note in self.notes()), 1, self.notes())

    def test_counts_shapes_and_times(self):
        for gpu in ("gfx90a", "gfx942", "gfx950"):
            with self.subTest(gpu):
                result, ledger = self.traced(self.program("mixed"), gpu=gpu)
                self.assertEqual(bed.printed(result)["wrong"], "0")
                self.equal(ledger)
                self.assertEqual(self.query("SELECT architecture, vendor, kind FROM device"),
                                 [(gpu, "Advanced Micro Devices, Inc.", "GPU")])

    def test_each_version_of_rocm(self):
        for rocm in self.versions():
            with self.subTest(rocm):
                result, ledger = self.traced(self.program("mixed", rocm=rocm), "10", rocm=rocm)
                self.assertEqual(bed.printed(result)["wrong"], "0")
                self.equal(ledger)
                _, ledger = self.traced(self.program("streams", rocm=rocm), rocm=rocm)
                self.equal(ledger)
                self.assertEqual(self.query("SELECT count(DISTINCT t.native) FROM dispatch d JOIN track t ON t.id = d.track "
                                            "WHERE t.category = 'stream'"), [(9,)])
                self.traced(self.program("memory", rocm=rocm), rocm=rocm)
                self.assertEqual(self.query("SELECT count(*) FROM allocation a JOIN api c ON c.correlation = a.correlation JOIN "
                                            "function f ON f.id = c.dim WHERE f.name LIKE '%alloc%'"), [(6,)])

    def test_partitions(self):
        """A card in CPX mode: each of its eight dies is a GPU."""
        result, ledger = self.traced(self.program("mixed"), "2", gpu="gfx942-cpx")
        self.assertEqual(bed.printed(result)["devices"], "8")
        self.equal(ledger)
        self.assertEqual(self.query("SELECT count(*), count(DISTINCT \"index\") FROM device WHERE kind = 'GPU'"), [(8, 8)])

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

    def test_arguments_of_calls(self):
        program = self.program("mixed")
        self.traced(program, "1", options=("--api-args",))
        rows = self.query("SELECT f.name, a.arguments FROM api a JOIN function f ON f.id = a.dim WHERE f.domain = 'hip'")
        given = {}
        for name, arguments in rows:
            given.setdefault(name, []).append(arguments)
        address = r"0x[0-9a-f]+"
        for arguments in given["hipLaunchKernel"]:
            self.assertRegex(arguments, rf"^function_address={address}, numBlocks=(1024|1)x1x1, dimBlocks=256x1x1, args={address}, "
                                        rf"sharedMemBytes=(0|512), stream=({address}|NULL)$")
        self.assertRegex(given["hipMemcpyAsync"][0], rf"^dst={address}, src={address}, sizeBytes=1048576, kind=host to device, "
                                                     rf"stream={address}$")
        self.assertRegex(given["hipMalloc"][0], rf"^ptr={address}, size=1048576$")
        self.assertEqual(set(given["hipSetDevice"]), {"deviceId=0"})
        self.assertRegex(given["hipGraphLaunch"][0], rf"^graphExec={address}, stream={address}$")
        self.traced(program, "1")
        self.assertEqual(self.query("SELECT DISTINCT arguments FROM api WHERE dim IN (SELECT id FROM function WHERE domain = 'hip')"),
                         [("",)])

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

    def test_a_filter_knows_kernels_by_both_forms_of_their_names(self):
        for pattern, wanted in (("touch\\(double", {"touch(double*)": 2}), ("^_Z5touch", {"touch(double*)": 2}), ("^vec", {"vecCopy": 2})):
            with self.subTest(pattern):
                self.traced(self.program("vcopy"), "-n", "4096", options=("--kernel-include", pattern, "--kernel-trace"))
                self.assertEqual(dict(self.query("SELECT name, count(*) FROM dispatch GROUP BY 1")), wanted)

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

    def test_streams(self):
        """Packets do not name their stream: HIP's open call does. Each stream is its own line, numbered as rocprofv3's."""
        result, ledger = self.traced(self.program("streams"))
        self.equal(ledger)
        # HIP copies within graphs by its own kernel, once in each of the two launches.
        self.assertEqual(ledger.names(), {"touch": int(bed.printed(result)["kernels"]), "__amd_rocclr_copyBuffer": 2})
        # Five streams, the default one, two threads' own, one made after the first was destroyed; the graph runs on stream 5.
        of = dict(self.query("SELECT t.native, count(*) FROM dispatch d JOIN track t ON t.id = d.track "
                             "WHERE t.category = 'stream' GROUP BY 1"))
        self.assertEqual(of, {0: 2, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5 + 8, 6: 3, 7: 3, 8: 1})
        self.assertEqual(sum(of.values()), len(ledger.kernels))
        copies = dict(self.query("SELECT t.native, count(*) FROM copy c JOIN track t ON t.id = c.track "
                                 "WHERE t.category = 'stream' GROUP BY 1"))
        self.assertEqual(copies, {2: 2, 3: 1})
        self.assertEqual(len(ledger.copies), 3)
        # The hardware queue that a stream was laid on is known still, as many as the bed saw.
        queues = self.query("SELECT count(DISTINCT value) FROM property WHERE key = 'queue'")
        self.assertEqual(queues, [(len({kernel.queue for kernel in ledger.kernels}),)])

    def test_streams_as_rocprofv3(self):
        rocprofv3 = harness.BUILD / "personalities" / "rocprofv3"
        _, ledger = self.on_bed(rocprofv3, "--kernel-trace", "--memory-copy-trace", "-d", "out", "-o", "run", "-f", "csv",
                                "json", "--", self.program("streams"))
        rows = list(csv.DictReader((self.folder / "out" / "run_kernel_trace.csv").read_text().splitlines()))
        self.assertEqual(len(rows), len(ledger.kernels))
        self.assertEqual(sorted({int(row["Stream_Id"]) for row in rows}), list(range(9)))
        self.assertEqual({int(row["Queue_Id"]) for row in rows},
                         set(range(1, 1 + len({kernel.queue for kernel in ledger.kernels}))))
        copies = list(csv.DictReader((self.folder / "out" / "run_memory_copy_trace.csv").read_text().splitlines()))
        self.assertEqual(sorted(int(row["Stream_Id"]) for row in copies), [2, 2, 3])

    def test_graphs_node_by_node(self):
        self.traced(self.program("streams"))
        nodes = self.query("SELECT d.graph_node, k.name, count(*) FROM dispatch d JOIN kernel k ON k.id = d.dim "
                           "WHERE d.graph_node > 0 GROUP BY 1, 2 ORDER BY 1, 2")
        self.assertEqual(nodes, [(1, "__amd_rocclr_copyBuffer", 2)] + [(node, "touch", 2) for node in (2, 3, 4)])
        self.assertEqual(self.query("SELECT count(*) FROM copy WHERE graph_node > 0"), [(0,)])
        self.assertEqual(self.query("SELECT DISTINCT f.name FROM dispatch d JOIN api a ON a.correlation = d.correlation "
                                    "JOIN function f ON f.id = a.dim WHERE d.graph_node > 0"), [("hipGraphLaunch",)])

    def test_markers(self):
        self.traced(self.program("streams"))
        inside = self.query("SELECT l.name, count(*) FROM marker m JOIN label l ON l.id = m.dim JOIN api a ON a.start >= m.start "
                            "AND a.start < m.start + m.duration JOIN function f ON f.id = a.dim AND f.name = "
                            "'hipLaunchKernel' GROUP BY 1")
        self.assertEqual(inside, [("streams", 17)])

    def test_allocations(self):
        """Sizes as the program asked for them, each freed with the size that it had."""
        result, _ = self.traced(self.program("memory"))
        said = [line.split() for line in result.stdout.decode().splitlines()]
        asked = collections.Counter((kind, int(size)) for kind, size in said if kind != "failed")
        self.assertIn(["failed", "1"], said)
        for operation in ("allocate", "free"):
            rows = self.query("SELECT s.memory, a.bytes FROM allocation a JOIN allocation_shape s ON s.id = a.dim "
                              "JOIN api c ON c.correlation = a.correlation JOIN function f ON f.id = c.dim "
                              f"WHERE s.operation = '{operation}' AND (f.name LIKE '%alloc%' OR f.name LIKE '%Free%')")
            self.assertEqual(collections.Counter(rows), asked, operation)
        devices = dict(self.query("SELECT s.memory, min(s.device) FROM allocation a JOIN allocation_shape s ON s.id = a.dim "
                                  "JOIN api c ON c.correlation = a.correlation JOIN function f ON f.id = c.dim "
                                  "WHERE f.name = 'hipMalloc' OR f.name = 'hipHostMalloc' GROUP BY 1"))
        self.assertEqual(devices["pinned"], 0)
        self.assertGreater(devices["device"], 0)
        # What was refused is told, by the call.
        failed = self.query("SELECT s.name, a.bytes FROM allocation a JOIN allocation_shape s ON s.id = a.dim "
                            "WHERE s.operation = 'out of memory'")
        self.assertEqual(failed, [("hipMalloc", None)])
        self.assertIn("hipMalloc found no memory (result 2); tacho memory shows who held it", self.notes())
        self.assertIn(b"Memory ran out 1 time.", self.run_command(harness.TACHO, "memory", "t.tacho").stdout)

    def test_lines_that_hold_memory(self):
        self.traced(self.program("memory", "-g"), options=("--memory", "--sampler", "timer"))
        said = self.run_command(harness.TACHO, "memory", "t.tacho", "--by", "line", "--output-format", "csv", "--table", "holders").stdout
        lines = {row["Line"] for row in csv.DictReader(io.StringIO(said.decode()))}
        source = (bed.PROGRAMS / "memory.hip").read_text().splitlines()
        for call in ("hipMalloc(&plain", "hipMallocPitch(", "hipMalloc3D("):
            line = next(i for i, text in enumerate(source, 1) if call in text)
            self.assertIn(f"memory.hip:{line} main", lines)

    def test_a_program_without_hip(self):
        """Memory of HSA's pools, and frees, in a program that knows no HIP."""
        self.traced(self.program("pools", "-lhsa-runtime64"))
        rows = self.query("SELECT s.operation, s.memory, a.bytes, a.address FROM allocation a JOIN allocation_shape s ON s.id = a.dim "
                          "WHERE a.bytes IN (1048576, 2097152) ORDER BY a.start")
        self.assertEqual([row[:3] for row in rows], [("allocate", "device", 1 << 20), ("allocate", "host", 2 << 20),
                                                     ("free", "device", 1 << 20), ("free", "host", 2 << 20)])
        self.assertEqual([row[3] for row in rows[:2]], [row[3] for row in rows[2:]])

    def test_what_a_reset_frees(self):
        self.traced(self.program("memory"), "reset")
        size = self.query("SELECT sum(CASE WHEN s.operation = 'free' THEN -a.bytes ELSE a.bytes END) FROM allocation a JOIN "
                          "allocation_shape s ON s.id = a.dim WHERE s.memory = 'device'")
        self.assertEqual(size, [(0,)])

    def test_recording_from_launch_to_launch(self):
        program = self.program("mixed")
        _, ledger = self.traced(program, "10")
        every = [row[0] for row in self.query("SELECT ordinal FROM dispatch ORDER BY 1")]
        self.assertEqual(every, list(range(len(ledger.kernels))))
        result, _ = self.traced(program, "10", options=("--start-trigger", "launch:4", "--stop-trigger", "launch:9"))
        self.assertEqual(bed.printed(result)["wrong"], "0")
        self.assertEqual(self.query("SELECT ordinal FROM dispatch ORDER BY 1"), [(3,), (4,), (5,), (6,), (7,)])
        # The trace has the call that makes launch 4, not the one that makes launch 9.
        calls = self.query("SELECT count(*), count(DISTINCT d.correlation) FROM dispatch d JOIN api a ON "
                           "a.correlation = d.correlation")
        self.assertEqual(calls, [(5, 5)])
        self.assertEqual(self.query("SELECT count(*) FROM api a JOIN function f ON f.id = a.dim "
                                    "WHERE f.name = 'hipLaunchKernel'"), [(5,)])

    def test_hip_that_comes_later(self):
        loader = self.program("loader")
        self.program("plugin", "-shared", "-fPIC", output="libplugin.so")
        for how in ((), ("late",), ("exec",)):
            with self.subTest(how):
                _, ledger = self.traced(loader, "./libplugin.so", *how)
                self.assertEqual(len(ledger.kernels), 4)
                self.equal(ledger)
                calls = dict(self.query("SELECT f.name, count(*) FROM api a JOIN function f ON f.id = a.dim GROUP BY 1"))
                self.assertEqual((calls["hipLaunchKernel"], calls["hipDeviceSynchronize"]), (4, 2))

    def test_several_processes_at_once(self):
        program = self.program("mixed")
        script = " & ".join([f"{program} 8"] * 4) + " & wait"
        _, ledger = self.traced("/bin/bash", "-c", script)
        self.equal(ledger)
        of_process = self.query("SELECT count(*) FROM dispatch d JOIN track t ON t.id = d.track GROUP BY t.process")
        self.assertEqual(of_process, [(len(ledger.kernels) // 4,)] * 4)
        # One GPU, for all processes.
        self.assertEqual(self.query("SELECT count(*) FROM device WHERE kind = 'GPU'"), [(1,)])

    def test_code_unloaded_before_its_records(self):
        program = self.program("ends")
        self.program("ends", *bed.DEVICE_CODE, output="ends.hsaco")
        _, ledger = self.traced(program, "module")
        self.assertEqual({row[0] for row in self.dispatches()}, {"fill"})
        self.equal(ledger)

    def test_several_gpus(self):
        _, ledger = self.traced(self.program("mixed"), "2", gpus=4)
        self.equal(ledger)
        self.assertEqual(self.query("SELECT count(*), count(DISTINCT uuid) FROM device"), [(4, 4)])


if __name__ == "__main__":
    harness.main()
