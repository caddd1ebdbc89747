"""AMD's users type the command lines of AMD's documents: each of them as printed there, with a real HIP program on the bed. Files
are complete, and kernels and copies are counted as the bed counted them."""
import collections
import csv
import json
import shutil
import sqlite3

import bed
import harness

PERSONALITIES = harness.BUILD / "personalities"


class Seeds(bed.Traced):
    def setUp(self):
        super().setUp()
        self.program("plugin", "-shared", "-fPIC", output="libplugin.so")
        shutil.copy(bed.PROGRAMS / "app.py", self.folder / "app.py")
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "python").symlink_to("/usr/bin/python3")  # the documents' machines have one

    def shell(self, line, env=None, **more):
        """A command line as printed, in a shell on the bed."""
        return self.on_bed("/bin/sh", "-c", line, env={"PATH": f"{PERSONALITIES}:{self.folder}/bin:/usr/bin:/bin", **(env or {})}, **more)

    def rows(self, path):
        return list(csv.DictReader((self.folder / path).read_text().splitlines()))

    def named(self, ending):
        return sorted(path for path in self.folder.rglob(f"*{ending}"))

    def test_rocprofv3_stats(self):
        result, ledger = self.shell("rocprofv3 --stats --sys-trace --kernel-trace -- python3 app.py")
        self.assertIn(b"trained", result.stdout)
        for ending in ("agent_info.csv", "domain_stats.csv", "kernel_stats.csv", "kernel_trace.csv", "hip_api_trace.csv",
                       "hip_api_stats.csv", "memory_allocation_trace.csv"):
            self.assertEqual(len(self.named("_" + ending)), 1, (ending, self.named(".csv")))
        stats = self.rows(self.named("_kernel_stats.csv")[0])
        self.assertEqual(list(stats[0]), ["Name", "Calls", "TotalDurationNs", "AverageNs", "Percentage", "MinNs", "MaxNs", "StdDev"])
        self.assertEqual({row["Name"].split("(")[0]: int(row["Calls"]) for row in stats},
                         {name.replace("_Z7pluggedPi", "plugged"): count for name, count in ledger.names().items()})
        trace = self.rows(self.named("_kernel_trace.csv")[0])
        self.assertEqual(len(trace), len(ledger.kernels))
        for row, kernel in zip(trace, sorted(ledger.kernels, key=lambda kernel: kernel.start)):
            self.assertEqual(tuple(int(row[f"Grid_Size_{axis}"]) for axis in "XYZ"), kernel.grid)
        pids = {path.name.split("_")[0] for path in self.named(".csv")}
        self.assertEqual(pids, {str(kernel.pid) for kernel in ledger.kernels})

    def test_rocprofv3_ranks(self):
        """srun starts one profiler a rank: Slurm is not here, its variables are."""
        line = "rocprofv3 --stats --sys-trace --kernel-trace --output-format pftrace -- python3 app.py"
        _, ledger = self.shell(f"for rank in 0 1 2 3; do SLURM_PROCID=$rank SLURM_NTASKS=4 {line} & done; wait")
        self.assertEqual(len({kernel.pid for kernel in ledger.kernels}), 4)
        files = self.named(".pftrace")
        self.assertEqual(len(files), 4)
        for file in files:
            self.assertGreater(file.stat().st_size, 1000)

    def test_rocprofv3_copies(self):
        self.program("mixed")
        _, ledger = self.shell("rocprofv3 --stats --sys-trace --kernel-trace -f csv json -d out -o run -- ./mixed 6")
        self.assertEqual(len(self.rows("out/run_kernel_trace.csv")), len(ledger.kernels))
        self.assertEqual(len(self.rows("out/run_memory_copy_trace.csv")), len(ledger.copies))
        document = json.loads((self.folder / "out" / "run_results.json").read_text())["rocprofiler-sdk-tool"][0]
        self.assertEqual(len(document["buffer_records"]["kernel_dispatch"]), len(ledger.kernels))
        self.assertEqual(len(document["buffer_records"]["memory_copy"]), len(ledger.copies))
        # The sum over rows is the statistics' sum.
        total = sum(int(row["End_Timestamp"]) - int(row["Start_Timestamp"]) for row in self.rows("out/run_kernel_trace.csv"))
        self.assertEqual(total, sum(int(row["TotalDurationNs"]) for row in self.rows("out/run_kernel_stats.csv")))

    def test_run_tracer(self):
        _, ledger = self.shell("runTracer.sh -o matmul_result.rpd python app.py 5")
        with sqlite3.connect(self.folder / "matmul_result.rpd") as database:
            kernels = database.execute("SELECT count(*) FROM op WHERE opType = 'KernelExecution'").fetchone()[0] or \
                database.execute("SELECT count(*) FROM rocpd_kernelapi").fetchone()[0]
            self.assertEqual(kernels, len(ledger.kernels))
            top = dict(database.execute("SELECT Name, TotalCalls FROM top").fetchall())
            self.assertEqual(sum(top.values()), len(ledger.kernels) + len(ledger.copies))
            busy = database.execute("SELECT GpuTime, WallTime, Busy FROM busy").fetchall()
            self.assertEqual(len(busy), 1)
        self.run_command(PERSONALITIES / "rpd2tracing.py", "matmul_result.rpd", "matmul_result.json")
        events = json.loads((self.folder / "matmul_result.json").read_text())["traceEvents"]
        names = collections.Counter(event["name"].split("(")[0] for event in events if event.get("ph") == "X" and "name" in event)
        self.assertEqual(names["plugged"], 20)

    def test_rocprof_sys_run(self):
        result, ledger = self.shell("rocprof-sys-run --profile --trace -- \\\npython3 app.py")
        self.assertIn(b"trained", result.stdout)
        traces = self.named(".proto")
        self.assertEqual(len(traces), 1, list(self.folder.rglob("*")))
        profile = list(self.folder.rglob("wall_clock-*.txt"))
        self.assertEqual(len(profile), 1)
        calls = [line for line in profile[0].read_text().splitlines() if "hipLaunchKernel" in line]
        self.assertEqual(len(calls), 1, profile[0].read_text())
        self.assertRegex(calls[0], rf"\|\s*{len(ledger.kernels)}\s*\|")
        recorded = [str(path) for path in self.folder.rglob("*.tacho")]
        self.assertEqual(self.query("SELECT count(*) FROM dispatch", recorded[0]), [(len(ledger.kernels),)])

    def test_rocprof_sys_sample(self):
        self.shell("rocprof-sys-avail -G rsp.cfg")
        self.assertTrue((self.folder / "rsp.cfg").exists())
        # Long enough for samples: they begin after half a second.
        result, ledger = self.shell("rocprof-sys-sample -c $RSP_CFG \\\npython3 app.py 200", env={"RSP_CFG": "rsp.cfg"})
        self.assertIn(b"trained", result.stdout)
        self.assertEqual(len(ledger.kernels), 800)
        recorded = [str(path) for path in self.folder.rglob("*.tacho")]
        self.assertEqual(self.query("SELECT count(*) FROM dispatch", recorded[0]), [(800,)])
        self.assertGreater(self.query("SELECT count(*) FROM sample", recorded[0])[0][0], 0)

    def test_rocprof_sys_sample_ranks(self):
        line = "rocprof-sys-sample -I all -- python3 app.py 10"
        _, ledger = self.shell(f"for rank in 0 1 2 3; do OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=4 {line} & done; wait",
                               timeout=300)
        self.assertEqual(len({kernel.pid for kernel in ledger.kernels}), 4)
        self.assertGreaterEqual(len(self.named(".proto")), 4, list(self.folder.rglob("*")))


if __name__ == "__main__":
    harness.main()
