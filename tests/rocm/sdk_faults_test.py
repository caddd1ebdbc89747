"""Faults over the road of rocprofiler-sdk: the library waits in exit() for work that the GPU never finishes, and the program is to
end as it would alone. Over the imitation (sdk/), which waits as the real one does, or over AMD's real library (bed.py)."""
import unittest

import bed
import counters_test
import faults_test
import harness
import samples_test

HUNG = "the program had ended, but rocprofiler-sdk waited for GPU work that did not end"


class SdkFaults(faults_test.Faults):
    def on_bed(self, *command, env=None, sdk=True, **more):
        env = dict(env or {})
        shim = bed.register_shim()
        own = {"LD_PRELOAD": f"{harness.BUILD}/tests/libtacho_kfd.so:{shim}", "HSA_TOOLS_LIB": shim,
               "LD_LIBRARY_PATH": bed.sdk_folder() if sdk else bed.sdk_folder().partition(":")[2], **env}
        return super().on_bed("env", *(f"{key}={value}" for key, value in own.items()), *command, **more)

    def ends_as_alone(self, fault):
        """The program notices that its GPU died, and leaves by exit(1) while a dispatch is open."""
        result, ledger = self.as_alone(self.program("ends"), "waits", fault=fault)
        self.assertEqual((result.returncode, len(ledger.kernels), ledger.faults), (1, 4, 1))
        self.complete(ledger, 1)
        self.assertEqual(len(self.notes()), 1, self.notes())
        self.assertTrue(self.notes()[0].startswith(HUNG), self.notes())

    def test_a_queue_dies(self):
        self.ends_as_alone("queue-error@5")

    def test_a_page_fault(self):
        self.ends_as_alone("memory-fault@5")

    def test_the_gpu_is_reset(self):
        self.ends_as_alone("reset@5")

    def test_a_kernel_never_ends(self):
        """The program's alarm kills it: the records that the library had not handed over are counted, too."""
        result, ledger = self.as_alone(self.program("ends"), "waits", fault="hang@5")
        self.assertEqual((result.returncode, len(ledger.kernels)), (128 + 14, 4))
        self.assertEqual(len(self.dispatches()) + dict(self.losses())["in flight when the process ended"], 5)

    def test_out_of_memory(self):
        """Records of rocprofiler-sdk do not tell what a call returned: the program's own words are all there is."""
        result, _ = self.as_alone(self.program("memory"), fault="out-of-memory@2")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"out of memory", result.stderr)
        self.assertEqual(self.notes(), [])

    def test_exit_while_a_kernel_takes_its_time(self):
        """HIP's own end waits for kernels that the program did not wait for, and so does a traced program: nothing is cut off."""
        result, ledger = self.as_alone(self.program("ends"), "late", fault="long@5:4000")
        self.assertEqual((result.returncode, result.stdout), (0, b"done 0\n"))
        self.assertEqual(len(ledger.kernels), 12)
        self.equal(ledger)
        self.assertEqual(self.notes(), [])

    def test_exit_handlers_take_their_time(self):
        """Without open work nobody ends the process, however long its handlers run."""
        for how in ("slow-exit", "early-slow-exit"):
            with self.subTest(how):
                result, ledger = self.as_alone(self.program("ends"), how)
                self.assertEqual((result.returncode, result.stdout), (5, b"done 0\nslow end\n"))
                self.equal(ledger)
                self.assertEqual(self.notes(), [])


class CountingFaults(counters_test.Counters):
    """The same in a run that counts."""

    def test_exit_while_a_counted_kernel_never_ends(self):
        result, ledger, folder = self.profile("-b", "7.1", program=(self.program("ends"), "waits"), code=1,
                                              env={"TACHO_KFD_FAULT": "queue-error@5", "AMD_LOG_LEVEL": "0"})
        self.assertEqual(len(ledger.kernels), 4)
        self.assertEqual(result.stderr.decode().count(HUNG), 1, result.stderr)
        self.assertIn("the program ended with code 1; what it had finished is kept", result.stderr.decode())
        self.assertEqual(len(counters_test.rows_of(sorted(folder.glob("pmc_perf_*.csv"))[0])), 4)

    def test_exit_while_a_kernel_that_does_not_count_never_ends(self):
        result, ledger, _ = self.profile("-b", "7.1", "-d", "1", program=(self.program("ends"), "waits"), code=1,
                                         env={"TACHO_KFD_FAULT": "queue-error@5", "AMD_LOG_LEVEL": "0"})
        self.assertEqual(len(ledger.kernels), 4)
        self.assertEqual(result.stderr.decode().count(HUNG), 1, result.stderr)

    def test_exit_while_a_kernel_takes_its_time(self):
        """Counted or not: HIP's own end waits for it."""
        for dispatches in ([], ["-d", "1"]):
            with self.subTest(dispatches):
                result, ledger, _ = self.profile("-b", "7.1", *dispatches, program=(self.program("ends"), "late"),
                                                 env={"TACHO_KFD_FAULT": "long@5:4000"})
                self.assertEqual(len(ledger.kernels), 12)
                self.assertNotIn(HUNG, result.stderr.decode())

    def test_exit_handlers_take_their_time(self):
        result, _, _ = self.profile("-b", "7.1", program=(self.program("ends"), "slow-exit"), code=5)
        self.assertEqual(result.stdout.count(b"done 0\nslow end\n"), 1, result.stdout)
        self.assertNotIn(HUNG, result.stderr.decode())


class SamplingFaults(samples_test.Samples):
    """The same in a run that takes PC samples."""

    def as_rank(self, how, env=None, **more):
        """Of a rank the run that samples is the first; a program that fails has no second one."""
        return self.profile(program=(self.program("ends"), how),
                            env={"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1", **(env or {})}, **more)

    @samples_test.imitated
    def test_exit_while_a_sampled_kernel_never_ends(self):
        result, ledger, folder = self.as_rank("waits", code=1, env={"TACHO_KFD_FAULT": "queue-error@5", "AMD_LOG_LEVEL": "0"})
        told = result.stderr.decode()
        self.assertEqual(told.count(HUNG), 1, told)
        self.assertIn("the samples that it had handed over are kept", told)
        self.assertIn("the program ended with code 1; what it had finished is kept", told)
        self.assertEqual(len(ledger.kernels), 4)
        folder /= "0"
        done = [row["Dispatch_Id"] for row in samples_test.rows_of(folder / "ps_file_kernel_trace.csv")]
        self.assertEqual(len(done), 4)
        rows = samples_test.rows_of(folder / "ps_file_pc_sampling_stochastic.csv")
        self.assertEqual(sorted(row["Dispatch_Id"] for row in rows), sorted(done * 4))

    @samples_test.imitated
    def test_exit_handlers_take_their_time_while_sampled(self):
        result, _, _ = self.as_rank("slow-exit", code=5)
        self.assertEqual(result.stdout.count(b"done 0\nslow end\n"), 1, result.stdout)
        self.assertIn("48 PC samples", result.stderr.decode() + result.stdout.decode())
        self.assertNotIn(HUNG, result.stderr.decode())


def load_tests(loader, *_):
    """Of the other files' tests only those that are defined here."""
    suite = unittest.TestSuite(loader.loadTestsFromTestCase(SdkFaults))
    for case in (CountingFaults, SamplingFaults):
        suite.addTests(case(name) for name in case.__dict__ if name.startswith("test_"))
    return suite


if __name__ == "__main__":
    harness.main()
