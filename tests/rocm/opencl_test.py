"""AMD's OpenCL (rocm-opencl-icd) on the bed, through tacho's OpenCL layer: commands as the bed completed them."""
import collections

import bed
import harness


class OpenCl(bed.Traced):
    def setUp(self):
        super().setUp()
        if not (harness.EXAMPLES / "vcopy").exists():
            self.skipTest("the OpenCL examples are not built (no libOpenCL)")

    def test_vcopy(self):
        host = self.program("vcopy_host", "-shared", "-fPIC", output="vcopy_host.so")
        result, ledger = self.traced(harness.EXAMPLES / "vcopy", "-n", 65536, "-b", 256, "-i", 5, env={"LD_PRELOAD": str(host)})
        self.assertEqual(ledger.names(), {"vecCopy": 5})
        self.equal_kernels(ledger)
        copies = self.query("SELECT c.bytes, c.start, c.start + c.duration FROM copy c ORDER BY 2")
        self.assertEqual([copy[0] for copy in copies], [copy.bytes for copy in ledger.copies])
        self.assertEqual(self.query("SELECT vendor, architecture FROM device WHERE kind = 'GPU'")[0][1].split(":")[0], "gfx942")

    def equal_kernels(self, ledger):
        rows = sorted(self.dispatches(), key=lambda row: row[1])
        done = sorted(ledger.kernels, key=lambda kernel: kernel.start)
        self.assertEqual([(row[0], row[3:6], row[6:9]) for row in rows], [(k.name, k.grid, k.group) for k in done])
        for row, kernel in zip(rows, done):
            self.assertLess(abs(row[1] - kernel.start), 1_000_000)
            self.assertLess(abs((row[2] - row[1]) - (kernel.end - kernel.start)), 2_000)
        self.assertEqual(self.losses(), [])

    def test_two_queues(self):
        _, ledger = self.traced(harness.EXAMPLES / "overlap")
        self.assertEqual(len(self.dispatches()), len(ledger.kernels))
        self.assertEqual(self.losses(), [])

    def test_many_kernels(self):
        _, ledger = self.traced(harness.EXAMPLES / "many_kernels", code=None)
        self.assertEqual(collections.Counter(row[0] for row in self.dispatches()), ledger.names())
        self.assertEqual(self.losses(), [])
        calls = dict(self.query("SELECT f.name, count(*) FROM api a JOIN function f ON f.id = a.dim GROUP BY 1"))
        self.assertEqual(calls["clEnqueueNDRangeKernel"], len(ledger.kernels))


if __name__ == "__main__":
    harness.main()
