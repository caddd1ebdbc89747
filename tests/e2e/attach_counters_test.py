"""`tacho attach --pmc`: counters of whole GPUs beside a program that runs, on a stand-in for CUPTI's PM sampling
(fake_gpu/pm.c: sample n has 1000000 + n bytes and 2000 + n instructions, and ends n + 1 intervals after sampling began)."""
import json
import os
import pathlib
import signal
import subprocess
import time

import attach_test
import harness
import nvidia_profile_test
from harness import BUILD, TACHO

FAKE = BUILD / "tests" / "fake_gpu"
NVML = BUILD / "tests" / "libstandin_nvml.so"
BYTES, INSTRUCTIONS = "dram__bytes_read.sum", "sm__inst_executed.sum"
MACHINE = {"CUDA_HOME": str(FAKE), "LD_LIBRARY_PATH": str(FAKE / "lib64"), "TACHO_NVML": ""}
# CUPTI's clock cannot be read: the begin of sampling is all that says when samples were.
UNTIMED = {"FAKE_CUPTI_FAILS": "timestamp:999"}
NEAR = 1_000_000  # ns that a time may be off on a busy machine


class Sampled(attach_test.Attached):
    def sample(self, program, *options, machine=None, duration="0.6", code=0, output="a.tacho"):
        return self.attach(program, "--duration", duration, *options, output=output, code=code, env={**os.environ, **MACHINE, **(machine or {})})

    def sleeper(self):
        program = subprocess.Popen(["sleep", "60"])
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def readings(self, counter=BYTES, gpu=0):
        """(time, value) of a counter's samples on a GPU, in order."""
        rows = self.query("SELECT r.start, r.value FROM tacho.reading r JOIN tacho.track t ON t.id = r.track JOIN tacho.device d ON d.id = t.device "
                          f"WHERE t.name = '{counter}' AND d.\"index\" = {gpu} ORDER BY r.start")
        return [(int(start), float(value)) for start, value in rows]

    def property(self, key):
        return self.query(f"SELECT value FROM tacho.property WHERE key = '{key}'")[0][0]

    def refused(self, *needles, machine=None, counters=BYTES, options=()):
        self.one_sentence(self.sample(self.sleeper(), "--pmc", counters, *options, machine=machine, code=1), "--pmc", *needles)
        self.assertFalse((self.folder / "a.tacho").exists())


class Samples(Sampled):
    def test_values_times_and_units(self):
        self.sample(self.sleeper(), "--pmc", f"{BYTES},{INSTRUCTIONS}")
        for counter, first in ((BYTES, 1000000), (INSTRUCTIONS, 2000)):
            readings = self.readings(counter)
            self.assertGreater(len(readings), 45)
            # The first sample has no begin of its own; from the second on there is one every 10 ms, and none is missing.
            self.assertIn(readings[0][1] - first, (1, 2))
            for before, after in zip(readings, readings[1:]):
                self.assertEqual(after[1] - before[1], 1)
                self.assertLess(abs(after[0] - before[0] - 10_000_000), NEAR)
        self.assertEqual(self.query("SELECT name, unit, block FROM tacho.counter ORDER BY id"),
                         [[BYTES, "B", "device_samples"], [INSTRUCTIONS, "", "device_samples"]])
        self.assertEqual(self.query('SELECT "index", name, architecture FROM tacho.device'), [["0", "NVIDIA Stand-in", "sm_90"]])
        self.assertEqual(self.query("SELECT count(*) FROM tacho.loss"), [["0"]])
        self.assertEqual(self.query("SELECT pid FROM tacho.process"), [[self.property("pid")]])

    def test_shares_and_rates_have_their_units(self):
        self.sample(self.sleeper(), "--pmc", f"{BYTES}.per_second,dram__throughput.avg.pct_of_peak_sustained_elapsed")
        self.assertEqual(self.query("SELECT unit FROM tacho.counter ORDER BY id"), [["B/s"], ["%"]])

    def test_other_commands_tell_of_them(self):
        self.sample(self.sleeper(), "--pmc", BYTES)
        said = self.run_command(TACHO, "stats", "a.tacho")
        self.assertIn("a.tacho: no kernel records; tacho info shows its sampled counters", said.stdout.decode())
        said = self.run_command(TACHO, "info", "a.tacho").stdout.decode()
        self.assertRegex(said, rf" {len(self.readings())} +10000\d\d +1000001 +\d+ +B +0 +{BYTES}\n")

    def test_other_formats_have_them(self):
        self.sample(self.sleeper(), "--pmc", f"{BYTES},{INSTRUCTIONS}", machine={"FAKE_GPU_COUNT": "2"})
        readings = [reading for gpu in (0, 1) for counter in (BYTES, INSTRUCTIONS) for reading in self.readings(counter, gpu)]
        self.run_command(TACHO, "export", "a.tacho", "-f", "json", "-o", "a.json")
        events = [event for event in json.loads((self.folder / "a.json").read_text())["traceEvents"] if event["ph"] == "C"]
        self.assertEqual(sorted(event["args"]["value"] for event in events), sorted(value for _, value in readings))
        self.assertEqual({event["name"] for event in events},
                         {f"{BYTES} Agent 1 (B)", f"{BYTES} Agent 2 (B)", f"{INSTRUCTIONS} Agent 1", f"{INSTRUCTIONS} Agent 2"})
        self.assertEqual(self.query("SELECT DISTINCT deviceType, deviceId, monitorType FROM rocpd_monitor ORDER BY 2, 3"),
                         [["gpu", str(gpu), counter] for gpu in (0, 1) for counter in (BYTES, INSTRUCTIONS)])

    def test_nothing_enters_the_program(self):
        program = self.start(attach_test.THREADS, "3")
        before = pathlib.Path(f"/proc/{program.pid}/maps").read_text()
        said = self.run_command(TACHO, "attach", program.pid, "-o", "a.tacho", "--pmc", BYTES, "--duration", "0.3", env={**os.environ, **MACHINE})
        self.assertIn("GPU 0 (NVIDIA Stand-in) is sampled every 10 ms, whatever runs on it; nothing enters the program", said.stderr.decode())
        self.assertIn("Sampled counters, of whole GPUs", said.stderr.decode())
        self.assertEqual(pathlib.Path(f"/proc/{program.pid}/maps").read_text(), before)
        self.assertEqual(self.property("attach.stayed_out"), "1")
        self.assertEqual(self.end(program), "fine")

    def test_beside_a_recording_of_the_program(self):
        program = self.start(attach_test.LOOP, "100000000", "1000")
        self.sample(program, "--pmc", BYTES, "--kernel-trace")
        self.assertGreater(len(self.readings()), 30)
        self.assertGreater(int(self.query("SELECT count(*) FROM tacho.dispatch")[0][0]), 0)
        self.same_result(self.end(program))

    def test_times_by_cuptis_clock(self):
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        self.sample(self.sleeper(), "--pmc", BYTES, "--pmc-interval", "1ms")
        end = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        readings = self.readings()
        self.assertGreater(len(readings), 500)
        self.assertTrue(begin < readings[0][0] and readings[-1][0] < end)
        # The stand-in's clock is this one: lines between two pairs err by what the pairs err by.
        error = int(self.query("SELECT clock_error FROM tacho.device")[0][0])
        self.assertTrue(20_000 <= error < NEAR, error)  # with what CUPTI itself may err by
        for before, after in zip(readings, readings[1:]):
            self.assertLess(abs(after[0] - before[0] - 1_000_000 * (after[1] - before[1])), 2 * error + 2)
        self.assertEqual(self.property("device_samples.gpu0.clock"), "CUPTI's")

    def test_times_without_it(self):
        # The second: the samples' times are another clock's.
        for machine in (UNTIMED, {"FAKE_PM_BACK": "0"}):
            begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
            self.sample(self.sleeper(), "--pmc", BYTES, "--pmc-interval", "20ms", machine=machine)
            end = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
            error = int(self.query("SELECT clock_error FROM tacho.device")[0][0])
            self.assertTrue(10_000_000 <= error < 15_000_000, error)  # half of an interval, and half of what starting takes
            readings = self.readings()
            self.assertGreater(len(readings), 20)
            self.assertTrue(begin - error < readings[0][0] and readings[-1][0] < end + error)
            self.assertTrue(all(after[0] - before[0] == 20_000_000 for before, after in zip(readings, readings[1:])))
            self.assertIn("begin of sampling", self.property("device_samples.gpu0.clock"))
            self.assertEqual(self.query("SELECT count(*) FROM tacho.loss"), [["0"]])

    def test_a_clock_that_is_set_meanwhile(self):
        # Back as after a sleep of the machine, and forth.
        for seconds in (-3600, 7200):
            self.sample(self.sleeper(), "--pmc", BYTES, machine={"FAKE_PM_JUMP": f"60:{seconds}"}, duration="1.5")
            readings = self.readings()
            self.assertGreater(len(readings), 130)
            for before, after in zip(readings, readings[1:]):
                self.assertEqual(after[1] - before[1], 1)
                self.assertLess(abs(after[0] - before[0] - 10_000_000), NEAR)
            self.assertEqual(self.query("SELECT count(*) FROM tacho.loss"), [["0"]])
            self.assertIn("GPU 0: the clock of its samples was set once while it was sampled", self.query("SELECT text FROM tacho.note")[0][0])

    def test_the_decodes_come_as_often_as_they_must(self):
        log = self.folder / "log"
        for slow, interval, least, most in ((0, "10ms", 3, 7), (0, "1ms", 6, 11), (15, "10ms", 15, 40)):
            log.unlink(missing_ok=True)
            self.sample(self.sleeper(), "--pmc", BYTES, "--pmc-interval", interval, machine={"FAKE_PM_LOG": str(log), "FAKE_PM_SLOW": str(slow)}, duration="1.8")
            decodes = int(log.read_text().splitlines()[-1].split()[1])
            self.assertTrue(least <= decodes <= most, (slow, interval, decodes))
            self.assertEqual(self.query("SELECT count(*) FROM tacho.loss"), [["0"]])

    def test_what_lies_outside_of_the_recording(self):
        self.sample(self.sleeper(), "--pmc", BYTES, "--delay", "0.5", duration="0.3")
        readings = self.readings()
        self.assertTrue(20 <= len(readings) <= 60, len(readings))
        self.assertGreater(readings[0][1], 1000040)

    def sampling(self, program):
        """tacho, sampling the program since half a second or more."""
        log = self.folder / "log"
        attached = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "-o", "a.tacho", "--pmc", BYTES], cwd=self.folder, start_new_session=True,
                                    env={**os.environ, **MACHINE, "FAKE_PM_LOG": str(log)})
        self.wait_until(lambda: log.exists() and "start" in log.read_text())
        time.sleep(0.5)
        return attached

    def test_until_the_program_ends(self):
        program = self.sleeper()
        attached = self.sampling(program)
        program.kill()
        program.wait()
        self.assertEqual(attached.wait(timeout=30), 0)
        self.assertGreater(len(self.readings()), 20)

    def test_until_an_interrupt_of_the_terminal(self):
        attached = self.sampling(self.sleeper())
        os.killpg(attached.pid, signal.SIGINT)  # the sampling process has it, too
        self.assertEqual(attached.wait(timeout=30), 0)
        self.assertGreater(len(self.readings()), 20)
        self.assertEqual(self.query("SELECT count(*) FROM tacho.note"), [["0"]])

    def test_only_the_gpus_that_the_program_uses(self):
        program = self.sleeper()
        self.sample(program, "--pmc", BYTES, machine={"FAKE_GPU_COUNT": "2", "TACHO_NVML": str(NVML), "SMI_USER": f"{program.pid}:1"})
        self.assertEqual(self.query('SELECT "index", uuid FROM tacho.device'), [["1", "GPU-02020202-0202-0202-0202-020202020202"]])
        self.assertGreater(len(self.readings(gpu=1)), 40)
        # CUDA's variables are tacho's own shell's, not the program's.
        self.sample(program, "--pmc", BYTES, machine={"FAKE_GPU_COUNT": "2", "TACHO_NVML": str(NVML), "SMI_USER": f"{program.pid}:1", "CUDA_VISIBLE_DEVICES": "0"})
        self.assertEqual(self.query('SELECT "index" FROM tacho.device'), [["1"]])

    def test_all_gpus_where_that_is_not_known(self):
        for nvml in ({}, {"TACHO_NVML": str(NVML), "SMI_USER": "1:1"}):
            self.sample(self.sleeper(), "--pmc", BYTES, machine={"FAKE_GPU_COUNT": "2", **nvml})
            self.assertEqual(self.query('SELECT "index" FROM tacho.device ORDER BY id'), [["0"], ["1"]])
            self.assertGreater(min(len(self.readings(gpu=0)), len(self.readings(gpu=1))), 40)
            self.assertIn("does not tell which GPUs the program uses", self.query("SELECT text FROM tacho.note")[0][0])

    def test_a_gpu_that_cannot_be_sampled(self):
        program = self.sleeper()
        two = {"FAKE_GPU_COUNT": "2", "FAKE_PM_REFUSES": "0:43"}
        self.sample(program, "--pmc", BYTES, machine=two)
        self.assertEqual(self.query('SELECT "index" FROM tacho.device'), [["1"]])
        self.assertIn("GPU 0 (NVIDIA Stand-in) cannot be sampled: MIG is on", str(self.query("SELECT text FROM tacho.note")))
        # One that the program uses has to be.
        self.one_sentence(self.sample(program, "--pmc", BYTES, machine={**two, "TACHO_NVML": str(NVML), "SMI_USER": f"{program.pid}:0"}, code=1), "MIG is on")
        self.sample(program, "--pmc", BYTES, machine={**two, "TACHO_NVML": str(NVML), "SMI_USER": f"{program.pid}:1"})
        self.assertEqual(self.query("SELECT count(*) FROM tacho.note"), [["0"]])

    def test_the_interval_goes_to_the_gpu(self):
        for text, nanoseconds in (("100us", 100_000), ("1s", 1_000_000_000), ("0.5ms", 500_000)):
            log = self.folder / "log"
            log.unlink(missing_ok=True)
            self.sample(self.sleeper(), "--pmc", BYTES, "--pmc-interval", text, machine={"FAKE_PM_LOG": str(log)}, duration="0.2")
            interval, trigger, buffer = map(int, log.read_text().splitlines()[0].split())
            self.assertEqual((interval, trigger), (nanoseconds, 1))
            self.assertTrue(128 << 20 <= buffer <= 512 << 20, buffer)
            self.assertEqual(self.property("device_samples.interval_ns"), str(nanoseconds))


class Losses(Sampled):
    def lost(self):
        return self.query('SELECT reason, sum("count") FROM tacho.loss GROUP BY reason')

    def test_samples_that_never_came(self):
        self.sample(self.sleeper(), "--pmc", BYTES, machine={"FAKE_PM_SKIP": "20"})
        values = [value - 1000000 for _, value in self.readings()]
        self.assertNotIn(20, values)
        self.assertNotIn(21, values)
        self.assertIn(22, values)
        self.assertEqual(self.lost(), [["dropped by the vendor's library", "2"]])

    def test_a_full_buffer(self):
        log = self.folder / "log"
        self.sample(self.sleeper(), "--pmc", BYTES, machine={"FAKE_PM_FULL": "3", "FAKE_PM_LOG": str(log)}, duration="2.2")
        sizes = [int(line.split()[2]) for line in log.read_text().splitlines() if line.count(" ") == 2]
        self.assertEqual([size / sizes[0] for size in sizes], [1, 2])
        (reason, count), = self.lost()
        self.assertEqual(reason, "dropped by the vendor's library")
        # Those of one decode, and the first after the new start.
        self.assertTrue(70 <= int(count) <= 120, count)
        readings = self.readings()
        span = (readings[-1][0] - readings[0][0]) / 10_000_000 + 1
        self.assertTrue(abs(span - len(readings) - int(count)) <= 1, (span, len(readings), count))
        self.assertIn("buffer of samples was full, and sampling began anew with a larger one", ",".join(self.query("SELECT text FROM tacho.note")[0]))

    def test_a_buffer_that_is_full_at_the_end(self):
        self.sample(self.sleeper(), "--pmc", BYTES, machine={"FAKE_PM_FULL": "3"}, duration="1.4")
        (reason, count), = self.lost()
        self.assertTrue(40 <= int(count) <= 75, count)
        self.assertIn("buffer of samples was full at the end", self.query("SELECT text FROM tacho.note")[0][0])

    def test_times_that_go_back(self):
        # Of the samples alone, as when the GPU was reset: nothing says when they were.
        self.sample(self.sleeper(), "--pmc", BYTES, machine={"FAKE_PM_BACK": "30"}, duration="0.8")
        self.assertEqual([value - 1000000 for _, value in self.readings()][-1], 29)
        (reason, count), = self.lost()
        self.assertTrue(40 <= int(count) <= 70, count)
        self.assertIn("GPU 0: times of samples went back, or lie in the future: those that are missing are counted", ",".join(self.query("SELECT text FROM tacho.note")[0]))

    def test_no_samples(self):
        said = self.sample(self.sleeper(), "--pmc", BYTES, machine={"FAKE_PM_SILENT": "1"})
        self.one_sentence(said, "--pmc: not one sample lies within the recording")
        self.assertEqual(self.readings(), [])
        said = self.sample(self.sleeper(), "--pmc", BYTES, "--pmc-interval", "1s")
        self.one_sentence(said, "--pmc: not one sample lies within the recording")

    def test_values_that_cannot_be_computed(self):
        self.sample(self.sleeper(), "--pmc", f"{BYTES},sm__nan.sum")
        self.assertEqual(self.readings("sm__nan.sum"), [])
        self.assertGreater(len(self.readings()), 40)
        self.assertIn("could not be computed", self.query("SELECT text FROM tacho.note")[0][0])

    def test_a_gpu_that_fails_while_it_is_sampled(self):
        said = self.sample(self.sleeper(), "--pmc", BYTES, machine={"FAKE_CUPTI_FAILS": "pm_decode:999"})
        self.assertIn("not one sample lies within the recording", said.stderr.decode())
        self.assertIn("its samples end there", self.query("SELECT text FROM tacho.note")[0][0])

    def test_a_sampling_process_that_is_killed(self):
        program = self.sleeper()
        attached = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "-o", "a.tacho", "--pmc", BYTES, "--duration", "2"], cwd=self.folder,
                                    env={**os.environ, **MACHINE})
        children = pathlib.Path(f"/proc/{attached.pid}/task/{attached.pid}/children")
        self.wait_until(lambda: children.read_text().split())
        time.sleep(1)
        os.kill(int(children.read_text().split()[0]), signal.SIGKILL)
        self.assertEqual(attached.wait(timeout=30), 0)
        self.assertGreater(len(self.readings()), 20)
        self.assertIn("ended before it was asked to", self.query("SELECT text FROM tacho.note")[0][0])

    def test_tacho_is_killed(self):
        attached = subprocess.Popen([str(TACHO), "attach", str(self.sleeper().pid), "-q", "-o", "a.tacho", "--pmc", BYTES], cwd=self.folder,
                                    env={**os.environ, **MACHINE, "TACHO_POOL_DIR": str(self.folder)})  # nobody removes the pool
        children = pathlib.Path(f"/proc/{attached.pid}/task/{attached.pid}/children")
        self.wait_until(lambda: children.read_text().split())
        sampler = int(children.read_text().split()[0])
        attached.kill()
        attached.wait()
        self.wait_until(lambda: not pathlib.Path(f"/proc/{sampler}/exe").exists())


class Traces(Sampled):
    """The same beside a program that tacho starts: tacho trace --device-counters."""

    def trace(self, *options, machine=None, code=0, program=("sleep", "0.7")):
        return self.run_command(TACHO, "trace", "-q", "--overwrite", "-o", "a.tacho", *options, "--", *program, code=code, env={**os.environ, **MACHINE, **(machine or {})})

    def test_from_the_programs_start_to_its_end(self):
        self.trace("--device-counters", f"{BYTES},{INSTRUCTIONS}", "--device-counters-hz", "100")
        readings = self.readings()
        self.assertTrue(55 <= len(readings) <= 90, len(readings))
        for before, after in zip(readings, readings[1:]):
            self.assertEqual(after[1] - before[1], 1)
            self.assertLess(abs(after[0] - before[0] - 10_000_000), NEAR)
        self.assertEqual(len(self.readings(INSTRUCTIONS)), len(readings))
        self.assertEqual(self.query("SELECT count(*) FROM tacho.loss"), [["0"]])
        # The program itself did nothing that is recorded.
        self.assertIn(f"; {2 * len(readings)} events\n", self.run_command(TACHO, "info", "a.tacho").stdout.decode())

    def test_beside_call_stacks(self):
        self.run_command(TACHO, "sys", "sample", "-q", "--overwrite", "-o", "a.tacho", "--device-counters", f"{BYTES},{BYTES}", "--device-counters-hz", "100", "--", "sleep", "0.5",
                         env={**os.environ, **MACHINE})
        readings = self.readings()
        self.assertGreater(len(readings), 35)
        self.assertEqual(readings[-1][1] - readings[0][1], len(readings) - 1)
        self.assertEqual(self.query("SELECT name FROM tacho.counter WHERE block = 'device_samples'"), [[BYTES]])
        self.one_sentence(self.run_command(TACHO, "sys", "run", "-o", "b.tacho", "--device-counters", "dram__nonsense.sum", "--", "true", code=125, env={**os.environ, **MACHINE}),
                          "--device-counters", "GH100 has no metric dram__nonsense.sum")
        self.one_sentence(self.run_command(TACHO, "sys", "run", "-o", "b.tacho", "--device-counters-hz", "5", "--", "true", code=125), "--device-counters-hz needs --device-counters")

    def test_all_gpus_that_the_program_sees(self):
        self.trace("--device-counters", BYTES, machine={"FAKE_GPU_COUNT": "2"})
        self.assertEqual(self.query('SELECT "index" FROM tacho.device ORDER BY id'), [["0"], ["1"]])
        self.assertEqual([words for words in self.query("SELECT text FROM tacho.note") if "sampled" in ",".join(words)], [])
        self.assertEqual(self.property("device_samples.interval_ns"), "100000000")

    def test_the_program_ends_as_it_does_alone(self):
        self.trace("--device-counters", BYTES, program=("sh", "-c", "exit 7"), code=7)
        self.trace("--device-counters", BYTES, program=("sh", "-c", "kill -9 $$"), code=137)
        said = self.trace("--device-counters", BYTES, program=("true",))
        self.one_sentence(said, "--device-counters: not one sample lies within the recording")

    def test_refusals(self):
        for words, needle in ((("dram__nonsense.sum",), "GH100 has no metric dram__nonsense.sum"), (("dram__bytes_read",), "say how to sum them up"),
                              ((BYTES, "--device-counters-hz", "0.5"), "2000 ms lie between two samples: they can be 0.1 ms to 1 s apart")):
            self.one_sentence(self.trace("--device-counters", *words, code=125), "--device-counters", needle)
        self.one_sentence(self.trace("--device-counters", BYTES, machine={"CUDA_HOME": "", "LD_LIBRARY_PATH": ""}, code=125), "no GPU here can be sampled")
        self.one_sentence(self.trace("--device-counters", "SQ WAVES", code=125), "is not the name of a counter")


class Refusals(Sampled):
    def test_metrics(self):
        self.refused("dram__bytes_read is counted by several units", "dram__bytes_read.sum", counters="dram__bytes_read")
        self.refused("sm__sass_ffma.sum is counted in kernels only", "tacho profile does that", counters="sm__sass_ffma.sum")
        self.refused("GH100 has no metric dram__nonsense.sum", counters=f"{BYTES},dram__nonsense.sum")
        self.refused("\"a;b\" is not the name of a metric", counters="a;b")
        self.refused("name metrics, separated by commas", counters=",")
        five = [f"dram__{letter}.sum" for letter in "abcde"]
        self.refused("these 5 metrics take 2 passes together, and sampling has only one", f"{', '.join(five[:4])} fit together", counters=",".join(five))
        self.refused("dram__twice.sum takes 2 passes by itself, and sampling has only one: tacho profile counts such metrics", counters=f"{BYTES},dram__twice.sum")
        self.refused("these 2 metrics take 2 passes together", f"{BYTES} fits", counters=f"{BYTES},sm__wide.sum")

    def test_intervals(self):
        for text in ("99us", "1.1s", "10", "fast", "-1ms", "0ms", ""):
            self.refused("write a time from 100us to 1s", options=("--pmc-interval", text))
        self.one_sentence(self.attach(self.sleeper(), "--pmc-interval", "1ms", code=1), "--pmc-interval needs --pmc")

    def test_what_the_machine_lacks(self):
        self.refused("no GPU here can be sampled", "no NVIDIA driver", machine={"CUDA_HOME": "", "LD_LIBRARY_PATH": ""})
        self.refused("no GPU here can be sampled", "no usable GPU", machine={"FAKE_GPU_COUNT": "0"})
        old = BUILD / "tests" / "fake_cuda"  # a CUPTI without PM sampling
        self.refused("cannot sample a GPU's counters: CUDA 12.6 or newer is needed", machine={"CUDA_HOME": str(old), "LD_LIBRARY_PATH": str(self.driver())})

    def test_a_driver_that_lets_only_administrators_count(self):
        (self.folder / "params").write_text("RmProfilingAdminOnly: 1\n")
        settings = {"LD_PRELOAD": str(nvidia_profile_test.TARGETS / "nvidia_params.so"), "NVIDIA_PARAMS": str(self.folder / "params")}
        log = self.folder / "log"
        said = self.run_command(TACHO, "attach", self.sleeper().pid, "-q", "-o", "a.tacho", "--pmc", BYTES, code=1, env={**os.environ, **MACHINE, **settings, "FAKE_PM_LOG": str(log)},
                                preexec_fn=nvidia_profile_test.Faults.without(nvidia_profile_test.SYS_ADMIN, nvidia_profile_test.PERFMON))
        self.one_sentence(said, "--pmc", "lets only administrators read hardware counters", "NVreg_RestrictProfilingToAdminUsers=0")
        self.assertFalse(log.exists())  # CUPTI was not asked

    def driver(self):
        """A folder with the stand-in of the driver and no CUPTI."""
        folder = self.folder / "driver"
        folder.mkdir(exist_ok=True)
        if not (folder / "libcuda.so.1").exists():
            (folder / "libcuda.so.1").symlink_to(FAKE / "lib64" / "libcuda.so.1")
        return folder

    def test_what_cupti_refuses(self):
        for code, needle in ((35, "NVreg_RestrictProfilingToAdminUsers=0"), (7, "dcgmi profile --pause"), (26, "something else holds its counters"), (27, "does not support it"),
                             (33, "virtual GPU"), (40, "virtual GPU"), (41, "confidential computing"), (43, "MIG is on"), (45, "Windows Subsystem"), (999, "CUPTI answers CUPTI_ERROR_FAKE")):
            self.refused("GPU 0 (NVIDIA Stand-in) cannot be sampled", needle, machine={"FAKE_CUPTI_FAILS": f"pm_enable:{code}"})
        for function in ("chip", "availability", "pm_set"):
            self.refused("something else holds its counters", machine={"FAKE_CUPTI_FAILS": f"{function}:26"})
        self.refused("CUPTI does not start: CUPTI answers", machine={"FAKE_CUPTI_FAILS": "initialize:999"})

    def test_two_at_once(self):
        lock = {"FAKE_PM_LOCK": str(self.folder / "lock")}
        first = subprocess.Popen([str(TACHO), "attach", str(self.sleeper().pid), "-q", "-o", "first.tacho", "--pmc", BYTES], cwd=self.folder,
                                 env={**os.environ, **MACHINE, **lock})
        self.wait_until((self.folder / "lock").exists)
        time.sleep(0.3)
        self.refused("something else holds its counters", machine=lock)
        first.send_signal(signal.SIGINT)
        self.assertEqual(first.wait(timeout=30), 0)
        self.sample(self.sleeper(), "--pmc", BYTES, machine=lock)
        self.assertGreater(len(self.readings()), 40)

    def test_processes(self):
        self.one_sentence(self.sample(4711000, "--pmc", BYTES, code=1), "there is no process 4711000")
        program = self.sleeper()
        program.kill()
        self.wait_until(lambda: "Z" in pathlib.Path(f"/proc/{program.pid}/stat").read_text().split()[2])
        self.one_sentence(self.sample(program, "--pmc", BYTES, code=1), f"process {program.pid} has ended")


if __name__ == "__main__":
    harness.main()
