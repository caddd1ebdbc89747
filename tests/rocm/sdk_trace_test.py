"""tacho trace over the road of rocprofiler-sdk: everything that trace_test.py asserts of HSA's road, and what only the library
delivers. TACHO_BED_SDK names a folder with librocprofiler-sdk.so.1 (and what it needs, separated by colons), TACHO_BED_SHIM
the library that registers Debian's HIP and HSA, which are built without rocprofiler-register."""
import os
import re

import bed
import harness
import trace_test
from harness import TACHO

SDK = os.environ.get("TACHO_BED_SDK", "")
SHIM = os.environ.get("TACHO_BED_SHIM", "")


class SdkTrace(trace_test.Trace):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not SDK or not SHIM:
            import unittest
            raise unittest.SkipTest("no rocprofiler-sdk here (TACHO_BED_SDK, TACHO_BED_SHIM)")

    def on_bed(self, *command, env=None, sdk=True, **more):
        driver = harness.BUILD / "tests" / "libtacho_kfd.so"
        own = {"LD_PRELOAD": f"{driver}:{SHIM}", "HSA_TOOLS_LIB": SHIM}
        own["LD_LIBRARY_PATH"] = SDK if sdk else SDK.partition(":")[2]  # the rest holds what registration needs
        own.update(env or {})
        if "HSA_TOOLS_LIB" in (env or {}):
            own["HSA_TOOLS_LIB"] = SHIM + " " + env["HSA_TOOLS_LIB"]
        words = [f"{key}={value}" for key, value in own.items()]
        return super().on_bed("env", *words, *command, **more)

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

    def test_allocations(self):
        """What HSA gives out: HIP's arena chunks and its own memory among it. Each free has its allocation's size."""
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
        """What the library had not handed over is counted as lost."""
        program = self.program("storm")
        _, ledger = self.traced("bash", "-c", f"'{program}' 500000 & sleep 2; kill -9 $!; wait")
        rows, lost = len(self.dispatches()), dict(self.losses())
        self.assertGreater(rows, 0)
        self.assertGreaterEqual(rows + lost["in flight when the process ended"], len(ledger.kernels))

    def test_kernels_alone(self):
        _, ledger = self.traced(self.program("mixed"), "2", options=("--kernel-trace",))
        self.assertEqual(len(self.dispatches()), len(ledger.kernels))
        for table in ("api", "copy", "allocation"):
            self.assertEqual(self.query(f"SELECT count(*) FROM {table}"), [(0,)])

    test_asked_for_a_library_that_cannot_be_had = None  # here it can
    test_what_a_reset_frees = None  # HSA's road makes frees of what a reset drops; the library sees HSA free it

    def test_avail_says_how(self):
        result, _ = self.on_bed(TACHO, "avail")
        self.assertRegex(result.stdout.decode(), r"rocm +ready +kernels, copies and HIP calls")


if __name__ == "__main__":
    harness.main()
