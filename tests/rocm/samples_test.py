"""PC samples of AMD GPUs: `tacho profile -b 21` and rocprofv3's --pc-sampling-... The bed's GPU takes none: the imitation of the SDK
makes them, at real instructions of the real code objects (sdk/samples.cpp); AMD's comgr disassembles. Where TACHO_BED_SDK names the
real library, it has to say why it takes none."""
import collections
import csv
import json
import os
import unittest
import unittest.mock

import bed
import harness
from harness import TACHO

imitated = unittest.skipIf(bed.has_real_sdk(), "the bed's GPU takes no PC samples, so the real rocprofiler-sdk gives none")


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


class Samples(bed.Case):
    def profile(self, *options, name="p", code=0, program=None, **more):
        program = program or (self.program("vcopy", "-gline-tables-only"), "-n", "65536", "-b", "256")
        result, ledger = self.on_sdk(TACHO, "profile", "--name", name, "--output-directory", self.folder / name, "--no-roof",
                                     "-b", "21", *options, "--", *program, code=code, timeout=300, **more)
        return result, ledger, self.folder / name

    @imitated
    def test_stochastic(self):
        result, ledger, folder = self.profile()
        rows = rows_of(folder / "ps_file_pc_sampling_stochastic.csv")
        self.assertEqual(len(ledger.kernels), 8)  # the first run counts the waves and cycles of each launch
        self.assertEqual(len(rows), 16)
        self.assertEqual(collections.Counter(row["Dispatch_Id"] for row in rows), {str(i): 4 for i in range(1, 5)})
        kernels = {row["Dispatch_Id"]: row["Kernel_Name"] for row in rows_of(folder / "ps_file_kernel_trace.csv")}
        self.assertEqual(list(kernels.values()), ["vecCopy", "touch(double*)"] * 2)
        for row in rows:
            self.assertRegex(row["Instruction"], r"^[sv]_\w+ ", row)
            self.assertRegex(row["Instruction_Comment"], r"/(vcopy\.hip|amd_hip_runtime\.h):\d+$", row)  # blockIdx is inlined
            self.assertEqual(row["Wave_Count"], "7")
        first = [row for row in rows if row["Dispatch_Id"] == "1"]
        self.assertEqual([row["Wave_Issued_Instruction"] for row in first], ["1", "0", "0", "0"])
        self.assertTrue(first[0]["Instruction"].startswith("s_load"), first[0])
        self.assertEqual([row["Stall_Reason"].rsplit("REASON_")[1] for row in first], ["NONE", "WAITCNT", "WAITCNT", "ALU_DEPENDENCY"])
        self.assertEqual(first[0]["Instruction_Type"], "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_SCALAR")

        # As rocprof-compute reads the JSON: samples between a kernel's first instruction and the next kernel's.
        root = json.loads((folder / "ps_file_results.json").read_text())["rocprofiler-sdk-tool"][0]
        records = root["buffer_records"]["pc_sample_stochastic"]
        self.assertEqual(len(records), len(rows))
        instructions, comments = root["strings"]["pc_sample_instructions"], root["strings"]["pc_sample_comments"]
        for row, each in zip(rows, records):
            self.assertEqual(instructions[each["inst_index"]], row["Instruction"])
            self.assertEqual(comments[each["inst_index"]], row["Instruction_Comment"])
            self.assertEqual(each["record"]["snapshot"]["stall_reason"], row["Stall_Reason"])
        symbols = {each["formatted_kernel_name"]: each for each in root["kernel_symbols"]}
        for name in ("vecCopy", "touch(double*)"):
            symbol = symbols[name]
            ends = [each["kernel_code_entry_byte_offset"] for each in root["kernel_symbols"]
                    if each["code_object_id"] == symbol["code_object_id"]]
            end = min([offset for offset in ends if offset > symbol["kernel_code_entry_byte_offset"]], default=1 << 62)
            inside = [each for each in records if each["record"]["pc"]["code_object_id"] == symbol["code_object_id"] and
                      symbol["kernel_code_entry_byte_offset"] <= each["record"]["pc"]["code_object_offset"] < end]
            self.assertEqual(len(inside), 8, name)

        analysis = json.loads(self.run_command(TACHO, "analyze", "-p", folder, "-b", "21", "--output-format", "json").stdout)
        self.assertIn("vecCopy", json.dumps(analysis))
        text = self.run_command(TACHO, "analyze", "-p", folder, "-b", "21").stdout.decode()
        self.assertIn("stochastic", text)
        self.assertIn("waitcnt", text)

    @imitated
    def test_host_trap_and_filters(self):
        result, _, folder = self.profile("--pc-sampling-method", "host_trap", "--pc-sampling-interval", "50", "-k", "touch", "-d", "0:1")
        rows = rows_of(folder / "ps_file_pc_sampling_host_trap.csv")
        self.assertEqual({row["Dispatch_Id"] for row in rows}, {"2"})
        self.assertEqual(list(rows[0]), ["Sample_Timestamp", "Exec_Mask", "Dispatch_Id", "Instruction", "Instruction_Comment", "Correlation_Id"])
        self.assertIn("every 50 us", result.stdout.decode() + (folder / "log.txt").read_text())
        result, _, _ = self.profile("--pc-sampling-method", "host_trap", code=125)
        self.assertIn("is there already", result.stderr.decode())

    @imitated
    def test_with_counters(self):
        """The run that samples comes behind those that count."""
        gpu = "gfx942"
        counters = self.folder / "counters"
        counters.write_text("SQ_WAVES SQ 4\nGRBM_GUI_ACTIVE GRBM 2\n")
        result, ledger, folder = self.profile("grid-size", gpu=gpu, env={"TACHO_SDK_COUNTERS": str(counters)})
        self.assertTrue((folder / "ps_file_pc_sampling_stochastic.csv").exists())

    @imitated
    def test_an_older_sdk(self):
        _, _, folder = self.profile("--pc-sampling-method", "host_trap", env={"TACHO_SDK": "abi=0.6"})
        self.assertEqual(len(rows_of(folder / "ps_file_pc_sampling_host_trap.csv")), 16)
        result, _, _ = self.profile(env={"TACHO_SDK": "abi=0.6"}, name="old")
        self.assertIn("--pc-sampling-method stochastic needs the rocprofiler-sdk of ROCm 7 or later", result.stderr.decode())
        self.assertIn(b"wrong 0", result.stdout)

    @imitated
    def test_what_cannot_be_sampled(self):
        for scene, options, words in (
                ("samples=unsupported", (), "GPU 0 (gfx942) takes no PC samples: The service is not available"),
                ("samples=busy", (), "GPU 0 (gfx942) takes no PC samples: The service is not available"),
                ("", ("--pc-sampling-interval", "1000"), "--pc-sampling-interval 1000: GPU 0 (gfx942) takes powers of two"),
                ("", ("--pc-sampling-interval", "128"), "--pc-sampling-interval 128: GPU 0 (gfx942) takes 256 to 2147483648")):
            with self.subTest(words):
                result, _, folder = self.profile(*options, env={"TACHO_SDK": scene}, name=f"n{abs(hash((scene, options)))}")
                self.assertIn(words, result.stderr.decode())
                self.assertIn(b"wrong 0", result.stdout)
                self.assertEqual(list(folder.glob("ps_file*")), [])

    @imitated
    def test_losses_are_told(self):
        result, _, folder = self.profile(env={"TACHO_SDK": "samples=invalid drops=9"})
        told = result.stderr.decode()
        self.assertIn("rocprofiler-sdk dropped 9 records of samples", told)
        self.assertIn("4 PC samples of the GPU were invalid", told)
        self.assertIn("4 records of rocprofiler-sdk are of a kind that this tacho does not know", told)
        self.assertEqual(len(rows_of(folder / "ps_file_pc_sampling_stochastic.csv")), 16)
        result, _, folder = self.profile("--pc-sampling-method", "host_trap", env={"TACHO_SDK": "samples=unnamed"}, name="unnamed")
        self.assertIn("4 PC samples are in code that rocprofiler-sdk did not name", result.stderr.decode())
        rows = [row for row in rows_of(folder / "ps_file_pc_sampling_host_trap.csv") if row["Instruction"] == ""]
        self.assertEqual([row["Instruction_Comment"] for row in rows],
                         ["Unrecognized code object id, physical virtual address of PC:4660"] * 4)

    def ranks(self, *options, name):
        """The profile of a program of MPI in a job of two ranks, each with its own GPU's worth of kernels."""
        mpi = bed.open_mpi()
        if mpi is None:
            self.skipTest("no Open MPI (Debian package openmpi-bin)")
        program = self.program("ranks", f"-L{mpi}/needed", "-l:libmpi.so.40", "-Wl,--allow-shlib-undefined")
        shim = bed.register_shim()
        own = {"LD_PRELOAD": f"{harness.BUILD}/tests/libtacho_kfd.so:{shim}", "HSA_TOOLS_LIB": shim, "OPAL_PREFIX": mpi,
               "PMIX_INSTALL_PREFIX": mpi, "LD_LIBRARY_PATH": f"{bed.sdk_folder()}:{mpi}/needed"}
        ledger = self.folder / "ledger"
        ledger.unlink(missing_ok=True)
        result = self.run_command("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "2", bed.SCRIPT, "--build", harness.BUILD,
                                  "--", "env", *(f"{key}={value}" for key, value in own.items()), TACHO, "profile", "--name", name, "--no-roof",
                                  *options, "--", program, timeout=300, env={"TACHO_KFD_LEDGER": str(ledger)})
        self.assertEqual(sorted(line for line in result.stdout.splitlines() if line.startswith(b"rank ")), [b"rank 0", b"rank 1"])
        self.assertEqual(result.stderr.count(b"PC sampling (block 21) may fail to collect data of ranks that communicate by MPI"), 2)
        return result, bed.Ledger(ledger), [self.folder / "workloads" / name / str(rank) for rank in range(2)]

    @imitated
    def test_ranks_of_mpi(self):
        """A rank can call MPI_Init once, so there is one run, and it takes the samples."""
        result, ledger, folders = self.ranks("-b", "21", name="job")
        self.assertEqual(len(ledger.kernels), 5)
        self.assertEqual(len({kernel.pid for kernel in ledger.kernels}), 2)
        self.assertEqual(result.stderr.count(b"its PC samples were taken, its dispatches are not counted"), 2, result.stderr)
        for rank, folder in enumerate(folders):
            dispatches = rows_of(folder / "ps_file_kernel_trace.csv")
            self.assertEqual([row["Kernel_Name"] for row in dispatches], ["fill"] * (2 + rank))
            rows = rows_of(folder / "ps_file_pc_sampling_stochastic.csv")
            self.assertEqual(collections.Counter(row["Dispatch_Id"] for row in rows), {row["Dispatch_Id"]: 4 for row in dispatches})
            for row in rows:
                self.assertRegex(row["Instruction"], r"^[sv]_\w+ ", row)
            root = json.loads((folder / "ps_file_results.json").read_text())["rocprofiler-sdk-tool"][0]
            self.assertEqual(len(root["buffer_records"]["pc_sample_stochastic"]), len(rows))
            self.assertTrue((folder / "sysinfo.csv").exists())
            text = self.run_command(TACHO, "analyze", "-p", folder, "-b", "21").stdout.decode()
            self.assertIn(f"{2 + rank} dispatches of 1 kernel", text)
            self.assertIn("waitcnt", text)

    @imitated
    def test_ranks_of_mpi_that_count(self):
        """Where counters are asked for, too, they have the one run."""
        counters = self.folder / "counters"
        counters.write_text("SQ_WAVES SQ 4\nGRBM_GUI_ACTIVE GRBM 2\n")
        with unittest.mock.patch.dict(os.environ, TACHO_SDK_COUNTERS=str(counters)):
            result, ledger, folders = self.ranks("-b", "7.1", "21", name="both")
        self.assertEqual(len(ledger.kernels), 5)
        self.assertEqual(result.stderr.count(b"the run that takes PC samples is not made; take them without the launcher"), 2, result.stderr)
        for rank, folder in enumerate(folders):
            self.assertEqual(len(rows_of(folder / "pmc_perf_0.csv")), 2 + rank)
            self.assertEqual(list(folder.glob("ps_file*")), [])

    @imitated
    def test_the_command_line_of_the_documents(self):
        program = self.program("vcopy", "-gline-tables-only")
        link = self.folder / "rocprofv3"
        link.symlink_to(TACHO)
        self.on_sdk(link, "--pc-sampling-beta-enabled", "--pc-sampling-unit", "cycles", "--pc-sampling-method", "stochastic",
                    "--pc-sampling-interval", "1048576", "--kernel-trace", "--output-format", "csv", "json", "-d", "out", "-o", "ps",
                    "--", program, "-n", "65536", cwd=self.folder)
        out = self.folder / "out"
        rows = rows_of(out / "ps_pc_sampling_stochastic.csv")
        self.assertEqual(len(rows), 16)
        kernels = {row["Dispatch_Id"]: row["Kernel_Name"] for row in rows_of(out / "ps_kernel_trace.csv")}
        self.assertEqual(sorted(kernels), sorted({row["Dispatch_Id"] for row in rows}))
        root = json.loads((out / "ps_results.json").read_text())["rocprofiler-sdk-tool"][0]
        self.assertEqual(len(root["buffer_records"]["pc_sample_stochastic"]), 16)
        result, _ = self.on_sdk(link, "--pc-sampling-beta-enabled", "--pc-sampling-unit", "time", "--pc-sampling-method", "stochastic",
                                "--pc-sampling-interval", "1", "--", program, cwd=self.folder, code=125)
        self.assertIn("--pc-sampling-unit time: the unit of stochastic is cycles", result.stderr.decode())

    def test_options_that_do_not_fit(self):
        for options, words in ((("-b", "2", "--pc-sampling-interval", "5"), "--pc-sampling-interval needs --pc-sampling or -b 21"),
                               (("-b", "21", "--pc-sampling-method", "guess"), "--pc-sampling-method"),
                               (("-b", "21", "--pc-sampling-interval", "0"), "--pc-sampling-interval")):
            with self.subTest(words):
                result, _ = self.on_sdk(TACHO, "profile", "--name", "x", *options, "--", "true", code=None, cwd=self.folder)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn(words, result.stderr.decode())

    @unittest.skipUnless(bed.has_real_sdk(), "needs TACHO_BED_SDK")
    def test_the_real_library_says_why_not(self):
        for method in ("stochastic", "host_trap"):
            result, _, folder = self.profile("--pc-sampling-method", method, name=method)
            self.assertRegex(result.stderr.decode(), r"GPU 0 \(gfx942\) takes no PC samples")
            self.assertIn(b"wrong 0", result.stdout)


if __name__ == "__main__":
    harness.main()
