"""Faults of an AMD machine: the program behaves as without tacho, a sentence names the losses of the trace, and the work that had
completed is in it. The bed makes the faults (tests/rocm/kfd/faults.cpp)."""
import re

import bed
import harness


def comparable(text):
    """HIP's own messages name addresses, processes and times, and the contents of its queue: under a profiler that is
    the intercepted one."""
    lines = re.sub(rb"0x[0-9a-f]+|[0-9]+", b"N", text).splitlines()
    return [line for line in lines if line.startswith((b":N:", b"/"))]


class Faults(bed.Traced):
    def as_alone(self, *command, fault=None, **where):
        """Runs a program with and without tacho; returns the result with tacho, and the ledger of that run."""
        env = {"TACHO_KFD_FAULT": fault, "AMD_LOG_LEVEL": "0"} if fault else {}
        env |= where.pop("env", {})
        alone, _ = self.on_bed(*command, env=env, code=None, **where)
        traced, ledger = self.traced(*command, env=env, code=None, **where)
        code = alone.returncode if alone.returncode >= 0 else 128 - alone.returncode
        self.assertEqual(traced.returncode, code, traced.stderr)
        if "queue-error" not in (fault or ""):
            self.assertEqual(alone.stdout, traced.stdout)
        self.assertEqual(comparable(alone.stderr), comparable(traced.stderr))
        return traced, ledger

    def complete(self, ledger, in_flight):
        """The trace has the kernels that the bed completed, and says how many it had begun."""
        self.assertEqual(len(self.dispatches()), len(ledger.kernels))
        self.assertEqual(self.losses(), [("in flight when the process ended", in_flight)] if in_flight else [])

    def test_a_queue_dies(self):
        result, ledger = self.as_alone(self.program("ends"), "waits", fault="queue-error@5")
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual((len(ledger.kernels), ledger.faults), (4, 1))
        self.complete(ledger, 1)
        self.assertEqual(len(self.notes()), 1)
        self.assertRegex(self.notes()[0], r"^a queue of GPU 0 died while it ran fill \(HSA_STATUS_.*\): its ")

    def test_a_page_fault(self):
        for rocm in self.versions():
            with self.subTest(rocm):
                result, ledger = self.as_alone(self.program("ends", rocm=rocm), "waits", fault="memory-fault@5", rocm=rocm)
                self.assertNotEqual(result.returncode, 0)
                self.assertEqual((len(ledger.kernels), ledger.faults), (4, 1))
                self.complete(ledger, 1)
                self.assertEqual(len(self.notes()), 1)
                self.assertRegex(self.notes()[0], r"^GPU 0 could not access memory at address 0xdead000 and stopped")

    def test_the_gpu_is_reset(self):
        result, ledger = self.as_alone(self.program("ends"), "waits", fault="reset@5")
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual((len(ledger.kernels), ledger.faults), (4, 1))
        self.complete(ledger, 1)

        self.assertEqual(len(self.notes()), 1)
        self.assertRegex(self.notes()[0], r"^GPU 0 was reset: kernels and copies in flight then are not in the trace")

    def test_a_kernel_never_ends(self):
        result, ledger = self.as_alone(self.program("ends"), "waits", fault="hang@5")
        self.assertEqual(result.returncode, 128 + 14)  # the program's alarm
        self.assertEqual(len(ledger.kernels), 4)
        self.complete(ledger, 1)

    def test_out_of_memory(self):
        result, ledger = self.as_alone(self.program("memory"), fault="out-of-memory@2")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"out of memory", result.stderr)
        # The program ends over it; what it held then is in the trace.
        self.assertTrue(any("found no memory (result 2)" in note for note in self.notes()), self.notes())

    def test_an_old_driver(self):
        result, ledger = self.as_alone(self.program("mixed"), env={"TACHO_KFD_VERSION": "0.9"})
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(ledger.kernels, [])
        self.assertEqual(self.dispatches(), [])

    def test_no_permission(self):
        result, _ = self.as_alone(self.program("mixed"), fault="permission")
        self.assertNotEqual(result.returncode, 0)
        said, _ = self.on_bed(harness.TACHO, "avail", env={"TACHO_KFD_FAULT": "permission"})
        self.assertRegex(said.stdout.decode(), r"rocm +not permitted")

    def test_a_container_without_devices(self):
        result, _ = self.as_alone(self.program("mixed"), fault="absent")
        self.assertNotEqual(result.returncode, 0)
        said, _ = self.on_bed(harness.TACHO, "avail", env={"TACHO_KFD_FAULT": "absent"})
        self.assertRegex(said.stdout.decode(), r"rocm +no device .*--device /dev/kfd --device /dev/dri")

    def test_no_driver(self):
        result, _ = self.as_alone(self.program("mixed"), gpus=0)
        self.assertNotEqual(result.returncode, 0)
        said, _ = self.on_bed(harness.TACHO, "avail", gpus=0)
        self.assertRegex(said.stdout.decode(), r"rocm +no device")


if __name__ == "__main__":
    harness.main()
