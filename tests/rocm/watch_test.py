"""`tacho watch` of HIP programs: counts are those of the program and of the bed, times are the bed's within their error."""
import json

import bed
import harness
from harness import TACHO


class Watch(bed.Case):
    def watch(self, *command, options=(), code=0, **where):
        """The last moment of a run, and the bed's ledger."""
        self.result, ledger = self.on_bed(TACHO, "watch", "--output-format", "json", "-o", "w.jsonl", "--overwrite", *options,
                                          "--", *command, code=code, **where)
        moment = json.loads((self.folder / "w.jsonl").read_text().splitlines()[-1])
        self.assertTrue(moment["final"])
        self.printed = bed.printed(self.result)
        return moment, ledger

    def rows(self, moment, kind):
        return [row for row in moment["rows"] if row["kind"] == kind]

    def sums(self, moment, kind, what="count"):
        sums = {}
        for row in self.rows(moment, kind):
            sums[row["name"]] = sums.get(row["name"], 0) + (row.get(what) or 0)
        return sums

    def test_counts_and_results_of_each_version(self):
        for rocm in self.versions():
            with self.subTest(rocm):
                moment, ledger = self.watch(self.program("mixed", rocm=rocm), "10", rocm=rocm)
                self.assertEqual(self.printed["wrong"], "0")
                self.assertEqual(len(ledger.kernels), 73)
                self.assertEqual(self.sums(moment, "kernel"), {"scale": 1, "add": 10, "reverse(float*, int)": 50})
                self.assertEqual(self.sums(moment, "graph"), {"graph 1": 3})  # of four kernels
                self.assertEqual(self.sums(moment, "copy"), {"host to device": 1, "device to host": 1})
                self.assertEqual(self.sums(moment, "copy", "bytes"), {"host to device": 1 << 20, "device to host": 1 << 20})
                self.assertEqual(self.sums(moment, "wait"), {"hipStreamSynchronize": 3, "hipDeviceSynchronize": 5})
                self.assertEqual(self.sums(moment, "allocation", "bytes"), {"device memory": 3 << 20, "host memory": 1 << 20})
                [shape] = [row for row in self.rows(moment, "kernel") if row["name"] == "scale"]
                self.assertEqual((shape["grid"], shape["group"]), ([1 << 18, 1, 1], [256, 1, 1]))
                self.assertEqual((moment["failed"], moment["uncounted"]), (0, 0))

    def test_every_way_to_launch_and_to_copy(self):
        for rocm in self.versions():
            with self.subTest(rocm):
                moment, _ = self.watch(self.program("watched", rocm=rocm), "ways", rocm=rocm)
                self.assertEqual(self.printed["launches"], self.printed["ran"])
                self.assertEqual([(row["name"], row["grid"], row["count"]) for row in self.rows(moment, "kernel")],
                                 [("small", [128, 1, 1], int(self.printed["launches"]))])
                self.assertEqual(self.sums(moment, "copy", "bytes"), {
                    "host to device": int(self.printed["to_device"]), "device to host": int(self.printed["to_host"]),
                    "device to device": int(self.printed["on_device"]), "between pointers": 9000, "device to peer": 10000})
                self.assertEqual(self.sums(moment, "copy"), {"host to device": 5, "device to host": 3, "device to device": 2,
                                                             "between pointers": 1, "device to peer": 1})
                self.assertEqual(self.sums(moment, "fill", "bytes"), {"fill": int(self.printed["filled"])})
                self.assertEqual(self.sums(moment, "wait"), {"hipDeviceSynchronize": 1, "hipEventSynchronize": 1,
                                                             "hipStreamSynchronize": 7, "hipStreamSynchronize_spt": 1})
                self.assertEqual((moment["failed"], moment["uncounted"]), (0, 0))

    def test_the_last_error_is_the_programs(self):
        for rocm in self.versions():
            with self.subTest(rocm):
                program = self.program("watched", rocm=rocm)
                alone, _ = self.on_bed(program, "errors", rocm=rocm)
                moment, _ = self.watch(program, "errors", rocm=rocm)
                self.assertEqual(self.printed, bed.printed(alone))
                self.assertEqual(self.printed["good"], "400")
                self.assertEqual((self.sums(moment, "kernel"), moment["failed"]), ({"small": 600}, 200))

    def test_times_are_those_of_the_bed(self):
        # A budget that a busy machine does not exceed: else few times stand for all.
        moment, ledger = self.watch(self.program("watched"), "often", "4000", options=("--budget", "90%"))
        self.assertEqual((self.printed["small"], self.printed["right"]), ("4000", "1"))
        self.assertEqual(self.sums(moment, "kernel"), {"small": 4000, "large": 1000})
        for row in self.rows(moment, "kernel"):
            self.assertGreaterEqual(row["timed"] + row.get("bounds", 0), 64, row)
            self.assertLess(row["timed"], row["count"], row)
            # The bed's GPU is a thread: on a busy machine the distance of two events contains other programs' time, and the bed's ledger
            # has it. A bucket is an eighth wide at each side.
            truth = ledger.between_events(row["name"])
            self.assertGreaterEqual(len(truth), 64)
            low, high = truth[len(truth) // 10], truth[len(truth) * 9 // 10]
            self.assertGreaterEqual(row["p50_ns"], 0.85 * low - 500, (row, truth))
            self.assertLessEqual(row["p50_ns"], 1.15 * high + 500, (row, truth))

    def test_captures_stay_whole(self):
        moment, _ = self.watch(self.program("watched"), "captures")
        self.assertEqual((self.printed["graphs"], self.printed["whole"], self.printed["ran"]), ("60", "20", "300"))
        self.assertEqual(sum(self.sums(moment, "graph").values()), 60)
        self.assertEqual(self.sums(moment, "kernel"), {"large": int(self.printed["beside"])})

    def test_streams_and_devices_that_go(self):
        for how, launches in (("streams", 180), ("reset", 330), ("fork", 100)):
            with self.subTest(how):
                moment, _ = self.watch(self.program("watched"), how)
                self.assertEqual((self.printed["launches"], self.sums(moment, "kernel")), (str(launches), {"small": launches}))

    def test_a_kernel_in_the_place_of_another(self):
        program = self.program("watched")
        self.program("watched", *bed.DEVICE_CODE, output="watched.co")
        moment, _ = self.watch(program, "modules", "watched.co")
        self.assertEqual(self.sums(moment, "kernel"), {"small": 20, "large": 20})

    def test_default_streams_of_threads(self):
        moment, _ = self.watch(self.program("streams"))
        self.assertEqual(self.printed["kernels"], self.printed["counted"])
        self.assertEqual((self.sums(moment, "kernel"), self.sums(moment, "graph")), ({"touch": 24}, {"graph 1": 2}))

    def test_hip_that_comes_with_a_library(self):
        self.program("plugin", "-shared", "-fPIC", output="libplugin.so")
        for how in ((), ("exec",)):
            with self.subTest(how):
                moment, _ = self.watch(self.program("loader"), "./libplugin.so", *how)
                self.assertEqual(self.sums(moment, "kernel"), {"plugged(int*)": 4})
                self.assertEqual(self.sums(moment, "wait"), {"hipDeviceSynchronize": 2})

    def test_counts_only(self):
        moment, _ = self.watch(self.program("watched"), "often", "500", options=("--counts-only",))
        self.assertEqual([(row["count"], row["timed"]) for row in sorted(self.rows(moment, "kernel"), key=lambda row: row["name"])],
                         [(125, 0), (500, 0)])

    def test_calls_past_tacho_are_not_counted(self):
        # By which bench/watch_hip.py measures what tacho takes.
        for options in ((), ("--counts-only",)):
            with self.subTest(options):
                moment, ledger = self.watch(self.program("watched"), "past", "0.5", "64", options=options)
                through, past = int(self.printed["through"]), int(self.printed["past"])
                self.assertGreater(min(through, past), 1024)
                self.assertEqual(self.printed["ran"], str(through + past))
                self.assertEqual(ledger.names(), {"small": through + past})
                self.assertEqual((self.sums(moment, "kernel"), self.sums(moment, "wait")),
                                 ({"small": through}, {"hipStreamSynchronize": through // 64}))
                rounds = [line.split()[1:] for line in self.result.stdout.decode().splitlines() if line.startswith("round")]
                self.assertTrue(rounds and all(float(ratio) > 0 for each in rounds for ratio in each))

    def test_hsa_without_hip(self):
        program = self.program("hsa_only", "-lhsa-runtime64")
        self.program("watched", *bed.DEVICE_CODE, output="watched.co")
        for how in ("none", "own"):
            with self.subTest(how):
                moment, ledger = self.watch(program, "watched.co", "500", how)
                self.assertEqual((self.printed["small"], self.printed["large"]), ("500", "125"))
                self.assertEqual(ledger.names(), {"small": 500, "large": 125})
                self.assertEqual(self.sums(moment, "kernel"), {"small": 500, "large": 125})
                self.assertEqual(self.sums(moment, "copy", "bytes"), {"host to device": 65536, "device to host": 32768})
                self.assertEqual(self.sums(moment, "allocation", "bytes"), {"memory of pools": 3 << 20})
                self.assertGreaterEqual(self.sums(moment, "wait")["hsa_signal_wait"], int(self.printed["waits"]))
                for row in self.rows(moment, "kernel"):
                    truth = sorted(kernel.end - kernel.start for kernel in ledger.kernels if kernel.name == row["name"])
                    self.assertGreaterEqual(row["timed"], 64)
                    # The bed's kernels take the same time again and again, but for those of a busy machine; a bucket is an eighth.
                    self.assertLessEqual(abs(row["p50_ns"] - truth[len(truth) // 2]), 0.25 * truth[len(truth) // 2], row)

    def test_queues_of_hsa_that_are_left_alone(self):
        # A GPU has one queue for cooperative launches, which stays as it is.
        self.program("watched", *bed.DEVICE_CODE, output="watched.co")
        moment, ledger = self.watch(self.program("hsa_only", "-lhsa-runtime64"), "watched.co", "0.2", "past")
        through, past = int(self.printed["through"]), int(self.printed["past"])
        self.assertGreater(min(through, past), 1024)
        self.assertEqual(ledger.names(), {"small": through + past})
        self.assertEqual(self.sums(moment, "kernel"), {"small": through})
        [process] = moment["processes"]
        self.assertIn(f"Process {process['pid']} made a queue that tacho leaves as it is: what is in it is in no count.",
                      moment["notes"])

    def test_the_exiting_thread_calls_hip_no_more(self):
        for rocm in self.versions():
            program = self.program("watched", rocm=rocm)
            guard = self.program("exit_guard", "-shared", "-fPIC", output="libexit_guard.so", rocm=rocm)
            for how in ((), ("held",)):
                with self.subTest((rocm, *how)):
                    result, ledger = self.on_bed("env", f"LD_PRELOAD={harness.BUILD}/tests/libtacho_kfd.so:{guard}", TACHO, "watch",
                                                 "--output-format", "json", "-o", "w.jsonl", "--overwrite", "--", program, "unread", *how,
                                                 rocm=rocm, timeout=60)
                    self.assertNotIn(b"gone", result.stderr)
                    moment = json.loads((self.folder / "w.jsonl").read_text().splitlines()[-1])
                    [row] = self.rows(moment, "kernel")
                    self.assertEqual((row["count"], len(ledger.kernels)), (20, 20))
                    times = row["timed"] + row.get("bounds", 0)
                    if how:  # exit() does not wait for a lock that it holds itself
                        self.assertLess(times, 20)
                        self.assertIn(f"{20 - times} operations were to be timed and had not ended, or were not asked for, when their "
                                      "programs ended.", moment["notes"])
                    else:  # the times of the last launches, for which nobody has waited, are read at the exit
                        self.assertEqual((times, moment["lost_durations"]), (20, 0))

    def test_each_gpu(self):
        moment, ledger = self.watch(self.program("each_gpu"), gpus=2)
        self.assertEqual(sum(self.sums(moment, "kernel").values()), len(ledger.kernels))
        self.assertEqual(moment["uncounted"], 0)


if __name__ == "__main__":
    harness.main()
