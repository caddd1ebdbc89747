"""tacho trace over the road of rocprofiler-sdk: the assertions of trace_test.py about HSA's road, and records that only the library
delivers.
Over the imitation (sdk/), or over AMD's real library where TACHO_BED_SDK names its folder (bed.py)."""
import os
import re
import shutil
import unittest

import bed
import harness
import trace_test
from harness import TACHO

imitated = unittest.skipIf(bed.has_real_sdk(), "a scene of the imitation")
real = unittest.skipUnless(bed.has_real_sdk(), "the imitation of rocprofiler-sdk does not do this: needs TACHO_BED_SDK")


class SdkTrace(trace_test.Trace):
    def on_bed(self, *command, env=None, sdk=True, **more):
        env = dict(env or {})
        shim = bed.register_shim()
        own = {"LD_PRELOAD": f"{harness.BUILD}/tests/libtacho_kfd.so:{shim}",
               "HSA_TOOLS_LIB": " ".join([shim, *filter(None, [env.pop("HSA_TOOLS_LIB", "")])]),
               "LD_LIBRARY_PATH": bed.sdk_folder() if sdk else bed.sdk_folder().partition(":")[2], **env}
        return super().on_bed("env", *(f"{key}={value}" for key, value in own.items()), *command, **more)

    def facts(self):
        return dict(self.query("SELECT key, value FROM property WHERE key LIKE 'rocm.%'"))

    def notes(self):
        return [text for (text,) in self.query("SELECT text FROM note")]

    def test_which_road(self):
        program = self.program("mixed")
        self.traced(program, "1")
        facts = self.facts()
        self.assertEqual(facts["rocm.source"], "sdk")
        self.assertRegex(facts["rocm.sdk_version"], r"^[01]\.\d+\.\d+$")
        self.assertRegex(facts["rocm.sdk_path"], r"/librocprofiler-sdk\.so")
        self.assertEqual(self.notes(), [])
        _, ledger = self.traced(program, "1", options=("--amd-source", "hsa"))
        self.assertEqual(self.facts(), {"rocm.source": "hsa"})
        self.equal(ledger)

    def test_without_the_library(self):
        program = self.program("mixed")
        _, ledger = self.traced(program, "1", sdk=False)
        self.assertEqual((self.facts(), self.notes()), ({"rocm.source": "hsa"}, []))
        self.equal(ledger)
        _, ledger = self.traced(program, "1", sdk=False, options=("--amd-source", "sdk"))
        self.assertEqual(self.facts(), {"rocm.source": "hsa"})
        self.assertRegex(" ".join(self.notes()), r"there is no librocprofiler-sdk\.so beside the program's ROCm")
        self.equal(ledger)

    def test_once_where_the_runtime_loads_tools_all_the_same(self):
        _, ledger = self.traced(self.program("mixed"), "2", env={"HSA_TOOLS_ROCPROFILER_V1_TOOLS": "1"})
        self.assertEqual(self.facts()["rocm.source"], "sdk")
        self.equal(ledger)

    def test_one_road_where_tools_are_loaded_before_registration(self):
        """The runtime calls libtacho.so before the shim registers it: HSA's road was taken, and the library gets no tool."""
        result, _ = self.traced(self.program("pools", "-lhsa-runtime64"))
        self.assertEqual(result.stdout, b"done\n")
        self.assertEqual((self.facts(), self.notes()), ({"rocm.source": "hsa"}, []))
        self.assertEqual(self.query("SELECT s.operation, a.bytes, count(*) FROM allocation a JOIN allocation_shape s ON s.id = a.dim "
                                    "WHERE a.bytes IN (1 << 20, 2 << 20) GROUP BY 1, 2 ORDER BY 1, 2"),
                         [("allocate", 1 << 20, 1), ("allocate", 2 << 20, 1), ("free", 1 << 20, 1), ("free", 2 << 20, 1)])

    @unittest.skip("the library tells of HSA's allocations: HIP takes them a chunk at a time, so not every call of HIP's makes one")
    def test_lines_that_hold_memory(self):
        pass

    @real
    def test_allocations(self):
        """HSA's allocations: HIP's arena chunks and its own memory among them. Each free has its allocation's size."""
        self.traced(self.program("mixed"), "1")
        rows = self.query("SELECT s.operation, s.memory, a.bytes, a.address FROM allocation a JOIN allocation_shape s "
                          "ON s.id = a.dim")
        self.assertEqual([row[:3] for row in rows].count(("allocate", "device", 1 << 20)), 3)
        self.assertIn(("allocate", "pinned", 1 << 20), [row[:3] for row in rows])
        sizes = {address: size for operation, _, size, address in rows if operation == "allocate"}
        for operation, _, size, address in rows:
            if operation == "free" and address in sizes:
                self.assertEqual(size, sizes[address])
        self.assertEqual(self.losses(), [])

    def test_registers(self):
        """As the library computes them from the kernel's descriptor."""
        self.traced(self.program("mixed"), "1")
        rows = self.query("SELECT DISTINCT name, registers, accum_registers, scalar_registers, shared_static FROM kernel "
                          "WHERE shared_dynamic = 0 ORDER BY 1")
        self.assertEqual([(row[0], row[4]) for row in rows], [("_Z7reversePfi", 1024), ("add", 0), ("scale", 0)])
        for _, vector, accumulation, scalar, _ in rows:
            self.assertTrue(0 < vector <= 512 and 0 <= accumulation <= 512 and 0 < scalar <= 128, rows)

    def test_killed(self):
        """Records that the library had not handed over are counted as lost."""
        program = self.program("storm")
        _, ledger = self.traced("bash", "-c", f"'{program}' 500000 & sleep 4; kill -9 $!; wait")
        rows, lost = len(self.dispatches()), dict(self.losses())
        self.assertGreater(rows, 0)
        self.assertGreaterEqual(rows + lost["in flight when the process ended"], len(ledger.kernels))

    def test_kernels_alone(self):
        _, ledger = self.traced(self.program("mixed"), "2", options=("--kernel-trace",))
        self.assertEqual(len(self.dispatches()), len(ledger.kernels))
        for table in ("api", "copy", "allocation"):
            self.assertEqual(self.query(f"SELECT count(*) FROM {table}"), [(0,)])

    # ---- events that cannot be provoked: scripted by the imitation

    def scripted(self, words, *options, code=0, env=None):
        """Traces with the scene; returns the ledger and what tacho says of the trace."""
        _, ledger = self.traced(self.program("mixed"), "2", env={"TACHO_SDK": words, **(env or {})}, options=options, code=code)
        return ledger, self.run_command(TACHO, "info", "t.tacho").stdout.decode()

    @imitated
    def test_an_older_library(self):
        ledger, _ = self.scripted("abi=0.6")
        self.assertEqual(self.facts()["rocm.sdk_version"], "0.6.0")
        self.equal(ledger)
        self.assertEqual(self.query("SELECT count(*) FROM copy"), [(len(ledger.copies),)])

    @imitated
    def test_a_library_that_is_too_old(self):
        ledger, _ = self.scripted("too-old")
        self.assertEqual(self.facts(), {"rocm.source": "hsa"})
        self.assertEqual(self.notes(), ["rocprofiler-sdk is older than 0.4 (ROCm 6.2): tacho traces through HSA's interface for tools "
                                        "instead"])
        self.equal(ledger)

    def other_tool(self):
        """A tool of rocprofiler-sdk that somebody else brings."""
        source, made = self.folder / "other.cpp", self.folder / "libother.so"
        source.write_text('extern "C" void* rocprofiler_configure(unsigned, const char*, unsigned, void*) { return nullptr; }\n')
        self.run_command(os.environ.get("CXX", "c++"), "-shared", "-fPIC", source, "-o", made)
        return made

    def preloads(self, *libraries):
        return {"LD_PRELOAD": ":".join(map(str, (f"{harness.BUILD}/tests/libtacho_kfd.so", bed.register_shim(), *libraries)))}

    @imitated
    def test_another_tool(self):
        program, tool = self.program("mixed"), self.other_tool()
        for name, env, options in (("preloaded", self.preloads(tool), ()), ("preloaded", self.preloads(tool), ("--amd-source", "hsa")),
                                   ("named", {"ROCP_TOOL_LIBRARIES": str(tool)}, ()),
                                   ("named", {"ROCP_TOOL_LIBRARIES": str(tool)}, ("--amd-source", "hsa"))):
            with self.subTest(name, options=options):
                alone, _ = self.on_bed(program, "2", env=env)
                traced, ledger = self.traced(program, "2", env=env, options=options)
                self.assertEqual((alone.returncode, alone.stdout), (traced.returncode, traced.stdout))
                self.assertEqual((self.facts()["rocm.source"], self.notes()), ("hsa" if options else "sdk", []))
                self.equal(ledger)

    @imitated
    def test_a_tool_is_named_but_the_library_is_not_there(self):
        """AMD's register library then ends the program, with and without tacho."""
        program, env = self.program("mixed"), {"ROCP_TOOL_LIBRARIES": str(self.other_tool())}
        alone, _ = self.on_bed(program, "1", env=env, sdk=False, code=None)
        traced, _ = self.traced(program, "1", env=env, sdk=False, code=None)
        self.assertEqual((alone.returncode, traced.returncode), (-6, 128 + 6))
        self.assertEqual(alone.stdout, traced.stdout)

    @imitated
    def test_two_libraries(self):
        copies = []
        for name in ("a", "b"):
            (self.folder / name).mkdir()
            copies.append(shutil.copy(f"{bed.sdk_folder()}/librocprofiler-sdk.so.1", self.folder / name))
        program = self.program("mixed")
        traced, ledger = self.traced(program, "2", env=self.preloads(*copies))
        self.assertIn(b"wrong 0", traced.stdout)
        self.assertEqual(self.facts()["rocm.sdk_path"], str(copies[0]))
        self.assertEqual(self.notes(), ["two rocprofiler-sdk libraries are loaded in this process: tacho uses the one that was "
                                        "loaded first"])
        self.equal(ledger)

    @imitated
    def test_records_in_any_order(self):
        ledger, _ = self.scripted("shuffled")
        self.equal(ledger)
        self.assertEqual(self.query("SELECT count(*) FROM dispatch d LEFT JOIN api a ON a.correlation = d.correlation "
                                    "WHERE a.correlation IS NULL"), [(0,)])

    @imitated
    def test_records_that_the_library_dropped(self):
        _, told = self.scripted("drops=7")
        self.assertEqual(dict(self.losses())["dropped by the vendor's library"], 7)
        self.assertIn("7 other records: dropped by the vendor's library", told)

    @imitated
    def test_records_of_unknown_kinds(self):
        ledger, told = self.scripted("unknown")
        self.assertEqual(len(self.dispatches()), len(ledger.kernels))
        lost = dict(self.losses())["unknown record kind"]
        facts = self.facts()
        self.assertEqual(int(facts["rocm.unknown_records.1.99"]) + int(facts["rocm.unknown_records.7.1"]), lost)
        self.assertIn(f"{lost} other records: unknown record kind", told)

    @imitated
    def test_a_kind_that_the_library_refuses(self):
        ledger, _ = self.scripted("refuse=MEMORY_COPY")
        self.assertEqual(self.query("SELECT count(*) FROM copy"), [(0,)])
        self.assertEqual(self.notes(), ["rocprofiler-sdk records no MEMORY_COPY (API function is defined but not implemented): "
                                        "they are not in the trace"])
        self.equal(ledger)

    @imitated
    def test_records_made_by_hand(self):
        """Allocations, scratch memory and calls of HSA become rows; streams and the driver's events, which nobody asked for, are counted."""
        for abi in ("", "abi=0.6 "):
            with self.subTest(abi):
                ledger, told = self.scripted(abi + "made", "--hsa-trace")
                kernels = len(ledger.kernels)
                rows = self.query("SELECT s.operation, s.memory, a.bytes, a.duration, s.name FROM allocation a JOIN allocation_shape s "
                                  "ON s.id = a.dim")
                self.assertEqual(rows.count(("allocate", "device", 4096, 20, "")), kernels)
                self.assertEqual(rows.count(("free", "device", 4096, 10, "")), kernels)
                self.assertEqual(rows.count(("allocate", "device", None if abi else 65536, 5, "scratch")), kernels)
                self.assertEqual(self.query("SELECT count(*) FROM api a JOIN function f ON f.id = a.dim WHERE "
                                            "f.name = 'hsa_signal_store_screlease' AND a.duration = 10"), [(kernels,)])
                facts = self.facts()
                self.assertEqual(int(facts["rocm.unknown_records.1.20"]), kernels)
                self.assertEqual(int(facts["rocm.unknown_records.1.25"]), kernels)
                self.assertEqual(dict(self.losses()), {"unknown record kind": 2 * kernels})

    @imitated
    def test_page_migrations_made_by_hand(self):
        """Where page faults are retried, pages that the driver moved are copies of kind "migrate", beside the program's own."""
        for abi in ("", "abi=0.6 "):
            with self.subTest(abi):
                ledger, _ = self.scripted(abi + "made", env={"HSA_XNACK": "1"})
                kernels = len(ledger.kernels)
                rows = self.query("SELECT s.direction, t.name, c.bytes, c.duration, c.correlation, d.kind, s.source_device, count(*) "
                                  "FROM copy c JOIN copy_shape s ON s.id = c.dim JOIN track t ON t.id = c.track JOIN device d ON "
                                  "d.id = s.target_device WHERE s.kind = 'migrate' GROUP BY 1, 2, 3, 4, 5, 6, 7")
                self.assertEqual([tuple(value or 0 for value in row) for row in rows],
                                 [("host to device", "page migrations", 8192, 50, 0, "GPU", 0, kernels)])
                self.assertEqual(self.query("SELECT count(*) FROM copy c JOIN copy_shape s ON s.id = c.dim WHERE s.kind <> 'migrate'"),
                                 [(len(ledger.copies),)])
                self.assertEqual(set(dict(self.losses())), {"unknown record kind"})
                self.scripted(abi + "made")
                self.assertEqual(self.query("SELECT count(*) FROM copy"), [(len(ledger.copies),)])

    @imitated
    def test_calls_of_rccl_made_by_hand(self):
        """RCCL's calls in the layouts of both ABIs: each lies around the call of HIP that it makes, on the same thread, and has a
        number of its own; the kernel belongs to HIP's."""
        for abi in ("", "abi=0.6 "):
            with self.subTest(abi):
                ledger, _ = self.scripted(abi + "rccl")
                calls = self.query("SELECT f.domain, f.name, a.start, a.start + a.duration, a.correlation, a.track FROM api a JOIN "
                                   "function f ON f.id = a.dim WHERE f.domain = 'rccl' OR f.name = 'hipLaunchKernel' ORDER BY a.start")
                collectives = [row for row in calls if row[0] == "rccl"]
                launches = {row[4]: row for row in calls if row[0] != "rccl"}
                self.assertEqual(len(collectives), len(launches))
                self.assertGreater(len(collectives), 4)
                self.assertEqual({row[1] for row in collectives}, {"ncclAllGather", "ncclAllReduce", "ncclSend", "ncclGroupEnd"})
                for _, name, start, end, correlation, track in collectives:
                    # The imitation numbers a collective just before the call in it.
                    _, _, start_in, end_in, _, track_in = launches.pop(correlation + 1)
                    self.assertEqual(track, track_in)
                    self.assertTrue(start <= start_in < end_in <= end, (name, start, start_in, end_in, end))
                self.assertEqual(launches, {})
                self.equal(ledger)
                own = {row[4] for row in collectives}
                self.assertEqual([row for row in self.dispatches() if row[11] in own], [])
                self.assertEqual(self.losses(), [])

    def counter_environment(self):
        if bed.has_real_sdk():
            return {}
        path = self.folder / "counters"
        path.write_text("SQ_WAVES SQ 4\nGRBM_GUI_ACTIVE GRBM 2\n")
        return {"TACHO_SDK_COUNTERS": str(path)}

    def test_counters_of_whole_gpus(self):
        _, ledger = self.traced(self.program("launches"), "20000", env=self.counter_environment(), gpus=2,
                                options=("--device-counters", "SQ_WAVES,NO_SUCH_COUNTER,GRBM_GUI_ACTIVE", "--device-counters-hz", "100"))
        self.assertEqual(len(self.dispatches()), len(ledger.kernels))
        rows = self.query("SELECT c.name, c.unit, t.native, count(*), min(r.value) FROM reading r JOIN track t ON t.id = r.track "
                          "JOIN counter c ON c.id = t.counter GROUP BY 1, 2, 3 ORDER BY 1, 3")
        self.assertEqual([row[:3] for row in rows], [(name, "1/s", gpu) for name in ("GRBM_GUI_ACTIVE", "SQ_WAVES") for gpu in (1, 2)])
        if not bed.has_real_sdk():
            # 2 units, 1000 more at each reading, a hundred readings a second at most.
            for *_, count, least in rows:
                self.assertGreater(count, 2)
                self.assertTrue(0 < least <= 2000 * 110, rows)
        self.assertEqual(self.notes(), ["--device-counters: rocprofiler-sdk has no counter NO_SUCH_COUNTER for this GPU"])
        self.assertEqual(self.losses(), [])

    def test_counters_of_whole_gpus_need_the_library(self):
        self.traced(self.program("mixed"), "1", options=("--device-counters", "SQ_WAVES", "--amd-source", "hsa"))
        self.assertIn("--device-counters needs AMD's rocprofiler-sdk", " ".join(self.notes()))
        if not bed.has_real_sdk():
            self.traced(self.program("mixed"), "1", options=("--device-counters", "SQ_WAVES"), env={"TACHO_SDK": "abi=0.6"})
            self.assertIn("--device-counters needs the rocprofiler-sdk of ROCm 7 or later", " ".join(self.notes()))
        result, _ = self.traced(self.program("mixed"), "1", options=("--device-counters", "A", "--device-counters-hz", "0"), code=None)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("--device-counters-hz 0: a number from 0.02 to 1000", result.stderr.decode())
        result, _ = self.traced(self.program("mixed"), "1", options=("--device-counters", "A,B-C"), code=None)
        self.assertIn('--device-counters A,B-C: "B-C" is not the name of a counter', result.stderr.decode())

    def test_counters_of_whole_gpus_of_a_program_without_them(self):
        result, _ = self.traced("true", options=("--device-counters", "SQ_WAVES"))
        self.assertIn("--device-counters: nothing was read; ", result.stderr.decode())

    # Not of this road: the library can be had; HIP that comes later is not registered by the shim, but by ROCm's own build; the
    # versions are those of HSA's road; the library sees each allocation of HSA, not HIP's.
    test_asked_for_a_library_that_cannot_be_had = test_hip_that_comes_later = test_each_version_of_rocm = None
    test_calls = real(trace_test.Trace.test_calls)
    test_arguments_of_calls = real(trace_test.Trace.test_arguments_of_calls)
    test_recording_from_launch_to_launch = real(trace_test.Trace.test_recording_from_launch_to_launch)
    test_hsa_calls_when_asked = real(trace_test.Trace.test_hsa_calls_when_asked)
    test_several_gpus = real(trace_test.Trace.test_several_gpus)
    test_streams_as_rocprofv3 = real(trace_test.Trace.test_streams_as_rocprofv3)
    test_what_a_reset_frees = None  # HSA's road makes frees of the memory that a reset drops; the library sees HSA free it

    def test_the_program_runs_as_without(self):
        program = self.program("mixed")
        alone, _ = self.on_bed(program, "3")
        traced, _ = self.traced(program, "3")
        self.assertEqual(alone.stdout, traced.stdout)
        # HSA says at the end how many of HIP's signals are left, which depends on what ran at once.
        count = re.compile(rb"\d+ Signals leaked")
        self.assertEqual(count.sub(b"", alone.stderr), count.sub(b"", traced.stderr))

    def test_avail_says_how(self):
        result, _ = self.on_bed(TACHO, "avail")
        self.assertRegex(result.stdout.decode(), r"rocm +ready +kernels, copies and HIP calls")


if __name__ == "__main__":
    harness.main()
