"""tacho sys and rocprof-sys's executables: settings and what each changes, sources, telemetry, files, refusals."""
import glob
import json
import re
import subprocess

import harness
import proto
from harness import BUILD, SOURCE, TACHO, TARGETS

PERSONALITIES = BUILD / "personalities"
PROGRAM = TARGETS / "opencl_sys"
SMI = BUILD / "tests"


class Run:
    """Output folder of one run of a personality."""

    def __init__(self, folder, result):
        self.result = result
        self.stderr = result.stderr.decode()
        self.root = folder
        self.files = sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix in (".proto", ".txt", ".json", ".tacho", ".db", ".pftrace"))
        self.names = [p.name for p in self.files]

    def one(self, pattern):
        found = [p for p in self.files if re.fullmatch(pattern, p.name)]
        assert found, f"no {pattern} among {self.names}\n{self.stderr}"
        return found[0]

    def has(self, pattern):
        return any(re.fullmatch(pattern, name) for name in self.names)

    def trace(self):
        return proto.Perfetto(self.one(r".*\.proto"))

    def table(self, name="wall_clock"):
        """Rows of a table as lists of cells."""
        lines = self.one(rf".*{name}-?\d*\.txt").read_text().splitlines()
        return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if ">>>" in line]

    def header(self, name="wall_clock"):
        return next(line for line in self.one(rf".*{name}-?\d*\.txt").read_text().splitlines() if " LABEL " in line)

    def samples(self):
        result = subprocess.run([TACHO, "stats", self.one(r".*\.tacho"), "--by", "function", "--output-format", "json"], capture_output=True, check=True)
        rows = json.loads(result.stdout)["rows"]
        return {row[0]: row for row in rows}


class Sys(harness.Case):
    def setUp(self):
        super().setUp()
        self.number = 0

    def sys(self, *words, tool="run", program=(PROGRAM,), env=None, code=0, smi=True):
        """Runs a personality in a fresh folder; environment without our own settings."""
        self.number += 1
        folder = self.folder / f"run{self.number}"
        folder.mkdir()
        variables = {"HOME": str(self.folder), "TACHO_NVML": str(SMI / "libstandin_nvml.so") if smi else "", "TACHO_AMD_SMI": "", "TACHO_ROCM_SMI": "",
                     **(env or {})}
        result = self.run_command(PERSONALITIES / f"rocprof-sys-{tool}", *words, "--", *program, code=code, env=variables, cwd=folder)
        if code == 0 and program[0] == PROGRAM:
            self.assertRegex(result.stdout, rb"^(\d+ of \d+\n)?done\n$", "the program's output stays")
        return Run(folder, result)

    def set(self, *settings, **more):
        """A run with ROCPROFSYS_ settings in the environment, "NAME=value"."""
        env = dict(("ROCPROFSYS_" + setting).split("=", 1) for setting in settings)
        return self.sys(env={**env, **more.pop("env", {})}, **more)

    # ---- each setting changes a file, a track or a column

    def test_settings_of_files(self):
        base = self.set("PROFILE=true", "TRACE=true")
        folder = base.one(r"perfetto-trace-\d+\.proto").parent
        self.assertRegex(str(folder.relative_to(base.root)), r"^rocprof-sys-opencl_sys-output/\d{4}-\d\d-\d\d_\d\d\.\d\d$")
        for pattern in (r"wall_clock-\d+\.txt", r"wall_clock-\d+\.json", r"metadata-\d+\.json", r"tacho-\d+\.tacho"):
            self.assertTrue(base.has(pattern), base.names)
        self.assertIn("sec wall_clock", base.stderr)
        self.assertRegex(base.stderr, r"[\d.]+ MB peak_rss")
        for settings, check in [
            (["OUTPUT_PATH=here/%tag%"], lambda r: "here/opencl_sys/" in str(r.files[0])),
            (["OUTPUT_PREFIX=mine-"], lambda r: r.has(r"mine-perfetto-trace-\d+\.proto")),
            (["TIME_OUTPUT=false"], lambda r: r.files[0].parent.name == "rocprof-sys-opencl_sys-output"),
            (["TIME_FORMAT=%Y"], lambda r: re.fullmatch(r"\d{4}", r.files[0].parent.name)),
            (["USE_PID=false"], lambda r: r.has(r"perfetto-trace\.proto")),
            (["TRACE=false"], lambda r: not r.has(r".*\.proto") and r.has(r"wall_clock-\d+\.txt")),
            (["PROFILE=true"], lambda r: r.has(r"wall_clock-\d+\.txt") and not r.has(r".*\.proto")),
            (["PERFETTO_FILE=x.pftrace"], lambda r: r.has(r"x-\d+\.pftrace")),
            (["PROFILE=true", "TEXT_OUTPUT=false"], lambda r: not r.has(r"wall_clock.*txt") and r.has(r"wall_clock.*json")),
            (["PROFILE=true", "JSON_OUTPUT=false"], lambda r: r.has(r"wall_clock.*txt") and not r.has(r"wall_clock.*json")),
            (["PROFILE=true", "FILE_OUTPUT=false"], lambda r: not r.has(r"wall_clock.*")),
            (["PROFILE=true", "COUT_OUTPUT=true"], lambda r: "REAL-CLOCK TIMER" in r.stderr),
            (["PROFILE=true", "TIMEMORY_COMPONENTS=wall_clock,trip_count"], lambda r: r.has(r"trip_count-\d+\.txt")),
            (["ENABLED=false"], lambda r: not r.files),
            (["VERBOSE=-1"], lambda r: r.stderr == ""),
            (["VERBOSE=2"], lambda r: "ROCPROFSYS_VERBOSE = 2" in r.stderr),
            (["DEBUG=true"], lambda r: "ROCPROFSYS_DEBUG = true" in r.stderr),
            (["MEMORY_UNITS=KB"], lambda r: "KB peak_rss" in r.stderr),
            (["PROFILE=true", "TREE_OUTPUT=false"], lambda r: "graph" not in json.loads(r.one(r"wall_clock.*json").read_text())["timemory"]["wall_clock"]),
            ([f"TMPDIR={self.folder}"], lambda r: r.has(r"tacho-\d+\.tacho")),
            (["USE_ROCPD=true"], lambda r: r.has(r"rocpd-\d+\.db")),
            (["MONOCHROME=true", "VERBOSE=2"], lambda r: "\x1b" not in r.stderr),
        ]:
            with self.subTest(settings):
                run = self.set(*settings)
                self.assertTrue(check(run), (settings, run.names, run.stderr))

    def test_settings_of_tables(self):
        base = self.set("PROFILE=true")
        rows = base.table()
        labels = [row[0] for row in rows]
        self.assertEqual(labels[0], "|00>>> opencl_sys")
        self.assertIn("|00>>> |_step", labels)
        self.assertIn("|00>>>   |_clEnqueueNDRangeKernel", labels)
        self.assertIn("|00>>>     |_twice", labels)
        step = rows[labels.index("|00>>> |_step")]
        self.assertEqual(step[1:5], ["5", "1", "wall_clock", "sec"])
        self.assertGreater(float(step[5]), 0.055)
        self.assertAlmostEqual(float(step[6]) * 5, float(step[5]), places=4)
        for title in ("COUNT", "DEPTH", "METRIC", "UNITS", "SUM", "MEAN", "MIN", "MAX", "VAR", "STDDEV", "% SELF"):
            self.assertIn(title, base.header())
        graph = json.loads(base.one(r"wall_clock.*json").read_text())["timemory"]["wall_clock"]["ranks"][0]["graph"]
        self.assertEqual([g["prefix"] for g in graph], labels)
        self.assertEqual(next(g for g in graph if g["prefix"].endswith("|_step"))["entry"]["laps"], 5)
        for settings, check in [
            (["FLAT_PROFILE=true"], lambda r: {row[2] for row in r.table()} == {"0"}),
            (["TIMELINE_PROFILE=true"], lambda r: [row[0] for row in r.table()].count("|00>>> |_step") == 5),
            (["MAX_DEPTH=1"], lambda r: max(int(row[2]) for row in r.table()) == 1),
            (["MAX_WIDTH=16"], lambda r: all(len(row[0]) <= 16 for row in r.table())),
            (["PRECISION=2"], lambda r: re.fullmatch(r"\d+\.\d\d", r.table()[0][5])),
            (["TIMING_PRECISION=1"], lambda r: re.fullmatch(r"\d+\.\d", r.table()[0][5])),
            (["TIMING_UNITS=msec"], lambda r: float(r.table()[0][5]) > 50 and r.table()[0][4] == "msec"),
            (["TIMING_SCIENTIFIC=true"], lambda r: "e-" in r.table()[0][5]),
            (["USE_SAMPLING=true", "SAMPLING_DELAY=0", "COLLAPSE_THREADS=true"], lambda r: all(row[0].startswith("|00") for row in r.table("sampling_cpu_clock"))),
        ]:
            with self.subTest(settings):
                run = self.set("PROFILE=true", *settings)
                self.assertTrue(check(run), (settings, run.stderr, run.table()))

    def test_settings_of_sampling(self):
        on = ["USE_SAMPLING=true", "SAMPLING_DELAY=0"]
        program = (PROGRAM, "300", "host")
        base = self.set(*on, program=program)
        track = base.trace()
        lines = [t for t in track.tracks if " (S) " in t]
        self.assertTrue(any(re.fullmatch(r"Thread 0 \(S\) \d+", t) for t in lines) and any(re.fullmatch(r"Thread 1 \(S\) \d+", t) for t in lines), lines)
        self.assertIn("spin", track.on("Thread 0 (S)"))
        self.assertIn("in_thread", track.on("Thread 1 (S)"))
        self.assertIn("samples [rocprof-sys]", track.on("(S)"))
        self.assertEqual(track.unbalanced, [])
        self.assertIn("timer_sampling", track.categories)

        def count(run):
            return sum(row[1] for row in run.samples().values())

        def only(run, thread):
            return [t for t in run.trace().tracks if re.fullmatch(rf"Thread {thread} \(S\) \d+", t)]

        self.assertGreater(count(base), 5)
        for settings, check in [
            (["MODE=sampling", "SAMPLING_DELAY=0"], lambda r: count(r) > 0),
            (["USE_SAMPLING=false"], lambda r: count(r) == 0),
            (on + ["SAMPLING_FREQ=20"], lambda r: 0 < count(r) < count(base)),
            (on + ["SAMPLING_CPUTIME_FREQ=20"], lambda r: 0 < count(r) < count(base)),
            (on + ["SAMPLING_CPUTIME=true", "PROFILE=true"], lambda r: r.has(r"sampling_cpu_clock-\d+\.txt")),
            (on + ["SAMPLING_REALTIME=true", "PROFILE=true"], lambda r: r.has(r"sampling_wall_clock-\d+\.txt") and r.has(r"sampling_percent-\d+\.txt")),
            (on + ["SAMPLING_REALTIME=true", "SAMPLING_REALTIME_FREQ=2000"], lambda r: count(r) > 1.5 * count(base)),
            (["USE_SAMPLING=true", "SAMPLING_DELAY=600"], lambda r: count(r) == 0),
            (["USE_SAMPLING=true", "SAMPLING_CPUTIME_DELAY=600"], lambda r: count(r) == 0),
            (["USE_SAMPLING=true", "SAMPLING_REALTIME=true", "SAMPLING_REALTIME_DELAY=600"], lambda r: count(r) == 0),
            (on + ["SAMPLING_DURATION=0.05"], lambda r: count(r) < count(base)),
            (on + ["SAMPLING_TIDS=1"], lambda r: only(r, 1) and not only(r, 0)),
            (on + ["SAMPLING_CPUTIME_TIDS=0"], lambda r: only(r, 0) and not only(r, 1)),
            (on + ["SAMPLING_REALTIME=true", "SAMPLING_REALTIME_TIDS=0"], lambda r: only(r, 0) and not only(r, 1)),
        ]:
            with self.subTest(settings):
                run = self.set(*settings, program=program)
                self.assertTrue(check(run), (settings, count(run), count(base), run.stderr))

    def test_settings_of_telemetry(self):
        host = ["CPU_FREQ_ENABLED=true", "PROCESS_SAMPLING_FREQ=50"]
        program = (PROGRAM, "500", "host")
        base = self.set(*host, program=program).trace()
        for name, unit in [("CPU Utilization [0] (S)", "%"), ("CPU Frequency [0] (S)", "MHz"), ("CPU Memory Usage (S)", "MB"), ("CPU Virtual Memory Usage (S)", "MB"),
                           ("CPU Peak Memory (S)", "MB"), ("CPU Context Switches (S)", ""), ("CPU Page Faults (S)", ""), ("CPU User Time (S)", "sec"),
                           ("CPU Kernel Time (S)", "sec"), ("CPU Usage (S)", "%"), ("Threads (S)", ""), ("IO Read (S)", "MB"), ("Disk Written (S)", "MB"), ("Memory Used (S)", "MB"),
                           ("GPU GFX Busy [0] (S)", "%"), ("GPU UMC Busy [1] (S)", "%"), ("GPU MM Busy [0] (S)", "%"), ("GPU Temperature [0] (S)", "deg C"),
                           ("GPU Current Power [0] (S)", "watts"), ("GPU Memory Usage [0] (S)", "megabytes")]:
            self.assertIn(name, base.counters, base.tracks)
            self.assertEqual(base.units[name], unit, name)
            self.assertGreaterEqual(len(base.counters[name]), 2, name)
        self.assertEqual(set(base.counters["GPU Current Power [0] (S)"]), {123.456})
        self.assertEqual(set(base.counters["GPU Memory Usage [1] (S)"]), {40.0})
        self.assertEqual(set(base.counters["GPU MM Busy [0] (S)"]), {7.0})
        self.assertGreater(base.counters["CPU Memory Usage (S)"][-1], 0, "nothing is read of a process that has ended")
        self.assertTrue(2 in base.counters["Threads (S)"] and max(base.counters["CPU User Time (S)"]) > 0)
        self.assertGreater(max(base.counters["CPU Usage (S)"]), 1)
        for settings, check in [
            (["USE_PROCESS_SAMPLING=false"], lambda t: not t.counters),
            (["CPU_FREQ_ENABLED=false"], lambda t: "GPU Temperature [0] (S)" in t.counters and "CPU Usage (S)" not in t.counters),
            (["PROCESS_SAMPLING_FREQ=5"], lambda t: len(t.counters["CPU User Time (S)"]) < len(base.counters["CPU User Time (S)"])),
            (["PROCESS_SAMPLING_DURATION=0.03"], lambda t: len(t.counters["CPU User Time (S)"]) < len(base.counters["CPU User Time (S)"])),
            (["SAMPLING_CPUS=0"], lambda t: "CPU Frequency [0] (S)" in t.counters and "CPU Utilization [1] (S)" not in t.counters),
            (["SAMPLING_CPUS=none"], lambda t: "CPU Frequency [0] (S)" not in t.counters and "CPU Usage (S)" in t.counters),
            (["SAMPLING_GPUS=1"], lambda t: "GPU GFX Busy [1] (S)" in t.counters and "GPU GFX Busy [0] (S)" not in t.counters),
            (["USE_AMD_SMI=false"], lambda t: not any(c.startswith("GPU") for c in t.counters)),
            (["AMD_SMI_METRICS=temp, clock"], lambda t: "GPU Core Clock [0] (S)" in t.counters and "GPU Current Power [0] (S)" not in t.counters),
            (["DISABLE_CATEGORIES=cpu_frequency,device_temp"], lambda t: "CPU Frequency [0] (S)" not in t.counters and "GPU Temperature [0] (S)" not in t.counters),
            (["ENABLE_CATEGORIES=process_page_fault"], lambda t: set(t.counters) == {"CPU Page Faults (S)"}),
        ]:
            with self.subTest(settings):
                merged = dict(s.split("=", 1) for s in host + settings)
                run = self.set(*(f"{name}={value}" for name, value in merged.items()), program=program)
                self.assertTrue(check(run.trace()), (settings, sorted(run.trace().counters), run.stderr))

    def test_settings_of_the_trace(self):
        base = self.set("TRACE=true").trace()
        self.assertIn("step", base.on("opencl_sys"))
        self.assertIn("clEnqueueNDRangeKernel", base.on("opencl_sys"))
        queues = [t for t in base.tracks if re.fullmatch(r"GPU Kernel Dispatch \[\d+\] Queue \d+", t)]
        self.assertEqual(len(queues), 1, base.tracks)
        self.assertEqual(base.on(queues[0]).count("twice"), 5)
        self.assertTrue({"rocm_kernel_dispatch", "rocm_memory_copy", "rocm_marker_api"} <= base.categories, base.categories)
        self.assertIn("corr_id", base.annotations)

        def names(run):
            return {name for _, name in run.trace().slices}

        for settings, check in [
            (["USE_ROCM=false"], lambda r: not names(r)),
            (["ROCM_DOMAINS=marker_api"], lambda r: names(r) == {"step"}),
            (["ROCM_DOMAINS=kernel_dispatch"], lambda r: names(r) == {"twice"}),
            (["ROCM_DOMAINS=memory_copy"], lambda r: names(r) == {"MEMORY_COPY_HOST_TO_DEVICE"}),
            (["ENABLE_CATEGORIES=rocm_marker_api"], lambda r: names(r) == {"step"}),
            (["DISABLE_CATEGORIES=rocm_hip_api rocm_kernel_dispatch"], lambda r: names(r) == {"step", "MEMORY_COPY_HOST_TO_DEVICE"}),
            (["PERFETTO_ANNOTATIONS=false"], lambda r: not r.trace().annotations and "twice" in names(r)),
            (["TRACE_DELAY=600"], lambda r: not names(r)),
            (["TRACE_PERIODS=600:1"], lambda r: not names(r)),
        ]:
            with self.subTest(settings):
                run = self.set(*settings, program=(PROGRAM, "150"))
                self.assertTrue(check(run), (settings, names(run), run.stderr))
        # The program goes on until it has seen the end of the period, and says how many of its steps were in it.
        for settings in (["TRACE_DURATION=2"], ["TRACE_PERIODS=0:2:1", "TRACE_PERIOD_CLOCK_ID=monotonic"]):
            for _ in range(3):
                run = self.set(*settings, program=(PROGRAM, "window"), code=None)
                if run.result.returncode != 77:
                    break  # else the program did not start within the period
            self.assertEqual(run.result.returncode, 0, run.stderr)
            within, steps = map(int, re.match(rb"(\d+) of (\d+)", run.result.stdout).groups())
            self.assertTrue(0 < within < steps, (within, steps))
            self.assertTrue(within <= run.trace().on("opencl_sys").count("step") <= within + 2, (settings, within, run.trace().slices))
        # Where streams are known, lines are named after them, or after queues.
        for settings, track in ([], r"HIP Activity Stream 7"), (["ROCM_GROUP_BY_QUEUE=true"], r"GPU Kernel Dispatch \[\d+\] Queue \d+"):
            run = self.set("TRACE=true", *settings, program=(BUILD / "tests" / "fake_cuda" / "fake_cuda", "done", "10"), code=5, env={"CUDA_HOME": str(BUILD / "tests" / "fake_cuda")})
            lines = [t for t in run.trace().tracks if re.fullmatch(r"HIP Activity.*|GPU Kernel.*", t)]
            self.assertTrue(lines and all(re.fullmatch(track, t) for t in lines), (settings, run.trace().tracks))
        self.assertIn("CLOCK_ID", self.set("TRACE_PERIOD_CLOCK_ID=cputime", code=125).stderr)
        # One trace for all processes, or one each.
        each = self.set("TRACE=true", program=(PROGRAM, "10", "fork"))
        self.assertEqual(sum(name.endswith(".proto") for name in each.names), 2)
        for setting in ("PERFETTO_COMBINE_TRACES=true", "COLLAPSE_PROCESSES=true"):
            together = self.set("TRACE=true", setting, program=(PROGRAM, "10", "fork"))
            self.assertEqual(sum(name.endswith(".proto") for name in together.names), 1)
            self.assertEqual([n for _, n in together.trace().slices].count("twice"), 10)
        # The rows that are kept when there are too many.
        for setting in (["PERFETTO_BUFFER_SIZE_KB=1"], ["PERFETTO_BUFFER_SIZE_KB=1", "PERFETTO_FILL_POLICY=ring_buffer"]):
            small = self.set(*setting, program=(PROGRAM, "100"))
            self.assertTrue(small.one(r".*\.tacho").exists())
        self.assertIn("FILL_POLICY", self.set("PERFETTO_FILL_POLICY=x", code=125).stderr)

    def test_config_environment_options(self):
        config = self.folder / "my.cfg"
        config.write_text("# a comment\nROCPROFSYS_OUTPUT_PATH = from_file  # the rest\nROCPROFSYS_PROFILE = true\n$env:SYS_TEST_VARIABLE = 7\nROCPROFSYS_OUTPUT_PREFIX=$env:SYS_PREFIX\n")
        run = self.sys("-c", str(config), env={"SYS_PREFIX": "p-"})
        self.assertTrue(run.has(r"p-wall_clock-\d+\.txt") and "from_file" in str(run.files[0]), run.files)
        run = self.sys("-c", str(config), env={"ROCPROFSYS_OUTPUT_PATH": "from_environment"})
        self.assertIn("from_environment", str(run.files[0]))
        run = self.sys("-c", str(config), "--output-path", "from_option", env={"ROCPROFSYS_OUTPUT_PATH": "from_environment"})
        self.assertIn("from_option", str(run.files[0]))
        run = self.sys(env={"ROCPROFSYS_CONFIG_FILE": str(config)})
        self.assertIn("from_file", str(run.files[0]))
        run = self.sys(env={"ROCPROFSYS_CONFIG_FILE": str(config), "ROCPROFSYS_SUPPRESS_PARSING": "true"})
        self.assertNotIn("from_file", str(run.files[0]))
        # The default file in the home folder, and how it is passed over.
        (self.folder / ".rocprof-sys.cfg").write_text("ROCPROFSYS_OUTPUT_PATH = from_home\n")
        self.assertIn("from_home", str(self.sys().files[0]))
        self.assertNotIn("from_home", str(self.sys(env={"ROCPROFSYS_SUPPRESS_CONFIG": "true"}).files[0]))
        # The program sees what $env: sets.
        seen = self.sys("-c", str(config), program=("/bin/sh", "-c", "echo $SYS_TEST_VARIABLE"))
        self.assertEqual(seen.result.stdout, b"7\n")
        for text, needle in [("ROCPROFSYS_TRASE = true", "ROCPROFSYS_TRACE"), ("ROCPROFSYS_TRACE = maybe", "line 1"), ("nonsense", "KEY = value"),
                             ("{}", "JSON"), ("ROCPROFSYS_SAMPLING_FREQ = many", "number")]:
            config.write_text(text + "\n")
            self.assertIn(needle, self.sys("-c", str(config), code=125).stderr)
        config.write_text("ROCPROFSYS_TRASE = true\n")
        self.assertIn("no setting", self.sys("-c", str(config), env={"ROCPROFSYS_STRICT_CONFIG": "false"}).stderr)
        self.assertIn("no/such", self.sys("-c", "no/such.cfg", code=125).stderr)

    def test_program_without_a_gpu_call(self):
        # Its root row and its time are there, one sentence says why there is nothing else; no word about OpenCL that it did not use.
        run = self.sys("--profile", "--trace", program=("/bin/sleep", "4"))
        rows = run.table()
        self.assertEqual([row[0] for row in rows], ["|00>>> sleep"])
        self.assertGreaterEqual(float(rows[0][5]), 4)
        said = [line for line in run.stderr.splitlines() if line.startswith("tacho:")]
        self.assertEqual(len(said), 1, run.stderr)
        self.assertIn("rocprof-sys-sample", said[0])

    def test_sources_on_and_off(self):
        everything = self.sys("--trace", "-I", "all").trace()
        self.assertTrue(everything.on("GPU Kernel Dispatch") and any(c.startswith("GPU") for c in everything.counters))
        without = self.sys("--trace", "-E", "rocprofiler-sdk").trace()
        self.assertFalse(without.slices)
        self.assertTrue(any(c.startswith("GPU") for c in without.counters))
        without = self.sys("--trace", "-E", "amd-smi").trace()
        self.assertTrue(without.on("GPU Kernel Dispatch"))
        self.assertFalse([c for c in without.counters if c.endswith("(S)")])
        without = self.sys("--trace", "-E", "all").trace()
        self.assertFalse(without.slices or without.counters)
        again = self.sys("--trace", "-E", "all", "-I", "rocprofiler-sdk").trace()
        self.assertTrue(again.on("GPU Kernel Dispatch"))
        self.assertIn("has no effect", self.sys("-I", "kokkosp").stderr)
        self.assertIn("choose from", self.sys("-I", "nothing", code=125).stderr)

    def test_sampling_without_the_gpu_sources(self):
        # There is nothing but call stacks to record then, and they begin half a second after the start.
        for words, env in ((("-E", "rocprofiler-sdk"), {}), (("-E", "rocprofiler"), {}), ((), {"ROCPROFSYS_USE_ROCM": "false"})):
            with self.subTest(words=words, env=env):
                run = self.sys(*words, tool="sample", program=(PROGRAM, "900"), env=env)
                self.assertIn("spin", run.samples(), run.stderr)
                self.assertNotIn("clEnqueueNDRangeKernel", run.stderr)

    def test_an_image_after_exec_keeps_the_first_ones_files(self):
        script = self.folder / "first.py"
        script.write_text(f"import os, sys\nsys.path.insert(0, {str(SOURCE / 'python')!r})\nimport tacho\n"
                          "with tacho.range('in the first image'): pass\n"
                          f"os.execv({str(PROGRAM)!r}, [{str(PROGRAM)!r}, '20'])\n")
        run = self.sys("--profile", "--trace", program=(harness.DEBIAN_PYTHON, script))
        tables = {path.name: path.read_text() for path in run.files if path.name.startswith("wall_clock") and path.suffix == ".txt"}
        self.assertEqual(len(tables), 2, run.names)
        self.assertEqual([sum(word in text for text in tables.values()) for word in ("in the first image", "step")], [1, 1])
        self.assertEqual(len([name for name in run.names if name.endswith(".proto")]), 2, run.names)
        self.assertEqual(len([name for name in run.names if name.startswith("metadata")]), 2, run.names)

    COUNTS = "FROM reading r JOIN track t ON t.id = r.track WHERE t.category = 'cpu counter'"

    def test_cpu_counters(self):
        # Software events are there on every machine: faults of pages that the program touches for the first time are many.
        script = self.folder / "touch.py"
        script.write_text("import mmap\nfor _ in range(60):\n m = mmap.mmap(-1, 8 << 20)\n for at in range(0, 8 << 20, 4096): m[at] = 1\n m.close()\n")
        run = self.sys("--trace", "-C", "perf::PAGE-FAULTS", "task-clock", tool="sample", env={"ROCPROFSYS_SAMPLING_DELAY": "0"},
                       program=(harness.DEBIAN_PYTHON, script))
        trace = run.one(r".*\.tacho")
        rows = self.query(trace, "SELECT t.name, sum(r.value), count(*) " + self.COUNTS + " GROUP BY t.name")
        totals = {re.sub(r"\d+", "N", name): (total, count) for name, total, count in rows}
        self.assertEqual(set(totals), {"page-faults of thread N", "task-clock of thread N"})
        pages = 60 * 2048
        [[samples]] = self.query(trace, "SELECT count(*) FROM sample WHERE duration > 0 AND name NOT IN ('[not sampled]', '[before main]')")
        self.assertGreater(samples, 20)
        self.assertLessEqual(totals["page-faults of thread N"][0], pages * 1.2)
        self.assertGreater(totals["page-faults of thread N"][0], pages * 0.7)
        # All but the first sample of the thread have a count, at their moment.
        self.assertEqual(totals["page-faults of thread N"][1], samples - 1)
        both = self.query(trace, "SELECT count(*) " + self.COUNTS + " AND t.name LIKE 'page-faults%' AND r.start IN (SELECT start FROM sample)")
        self.assertEqual(both, [[samples - 1]])
        # The samples add up to the CPU time.
        sampled = self.query(trace, "SELECT sum(duration) FROM sample")[0][0]
        self.assertAlmostEqual(totals["task-clock of thread N"][0] / sampled, 1, delta=0.35)
        self.assertIn("page-faults of thread N (S)", {re.sub(r"\d+", "N", name) for name in run.trace().counters})

    def test_cpu_counters_of_launching_calls(self):
        run = self.sys("-C", "perf::PERF_COUNT_SW_TASK_CLOCK", program=(PROGRAM, "20"))
        trace = run.one(r".*\.tacho")
        calls = self.query(trace, "SELECT end, duration FROM api WHERE name LIKE 'clEnqueue%' AND name NOT LIKE '%Marker%'")
        counts = dict(self.query(trace, "SELECT r.start, r.value " + self.COUNTS))
        self.assertGreater(len(calls), 5)
        self.assertEqual(set(counts), {end for end, _ in calls})
        for end, duration in calls:  # opening and reading the counter lies around the call
            self.assertLess(counts[end], duration + 2e6)
            self.assertGreaterEqual(counts[end], 0)

    def test_cpu_counters_that_are_not_there(self):
        run = self.sys("-C", "PAPI_TOT_CIC", code=125)
        self.assertIn("did you mean PAPI_TOT_CYC", run.stderr)
        listed = self.run_command(PERSONALITIES / "rocprof-sys-avail", "-H").stdout.decode()
        cycles = next(line for line in listed.splitlines() if "PAPI_TOT_CYC" in line)
        run = self.sys("-C", "PAPI_TOT_CYC", "page-faults", program=("/bin/true",))
        strict = self.sys("-C", "PAPI_TOT_CYC", program=("/bin/true",), env={"ROCPROFSYS_PAPI_FAIL_ON_ERROR": "true"}, code=None)
        if " true " in cycles:
            self.assertNotIn("PAPI_TOT_CYC", run.stderr)
            self.assertEqual(strict.result.returncode, 0)
        else:
            self.assertIn("-C PAPI_TOT_CYC: this machine cannot count cycles", run.stderr)
            self.assertEqual(strict.result.returncode, 125)

    def query(self, trace, sql):
        return json.loads(self.run_command(TACHO, "query", trace, "--dialect", "tacho", sql, "--output-format", "json").stdout)["rows"]

    def test_options(self):
        for words, check in [
            (["--host"], lambda r: "CPU User Time (S)" in r.trace().counters),
            (["-H", "--cpus", "0", "--process-freq", "50"], lambda r: "CPU Utilization [1] (S)" not in r.trace().counters),
            (["--profile", "--flat-profile"], lambda r: {row[2] for row in r.table()} == {"0"}),
            (["--profile-format", "json"], lambda r: r.has("wall_clock.*json") and not r.has("wall_clock.*txt")),
            (["-o", "there", "pre-"], lambda r: r.has(r"pre-perfetto.*") and "there" in str(r.files[0])),
            (["--trace-file", "y.proto"], lambda r: r.has(r"y-\d+\.proto")),
            (["--trace-wait", "600"], lambda r: not r.trace().slices),
            (["-S", "realtime", "-f", "500", "--sampling-wait", "0", "-P"], lambda r: r.has(r"sampling_wall_clock.*")),
            (["--sample-cputime", "200", "0.001", "0", "-P"], lambda r: r.has(r"sampling_cpu_clock.*")),
            (["--use-rocm=false"], lambda r: not r.trace().slices),
        ]:
            with self.subTest(words):
                run = self.sys(*words, program=(PROGRAM, "100"))
                self.assertTrue(check(run), (words, run.names, run.stderr))

    def test_refusals(self):
        for words, needle in [(["--nonsense"], "--nonsense"), (["--sampling-freq", "x"], "number"), (["--sampling-freq", "0.2", "-S"], "10000"),
                              (["--rocm-domains", "hip_runtime_api,x"], "domain"), (["--cpus"], "value"), (["--trace-periods", "1"], "DELAY")]:
            run = self.sys(*words, code=125)
            self.assertIn(needle, run.stderr)
            self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
            self.assertFalse(run.files)
        self.assertEqual(self.sys(program=("/no/such",), code=127).files, [])
        self.assertIn("126", str(self.sys(program=("/etc/passwd",), code=126).result.returncode))
        self.sys(program=("/bin/sh", "-c", "exit 7"), code=7)
        for tool, needle in [("instrument", "tacho sys sample"), ("causal", "tacho flame"), ("python", "tacho sys sample")]:
            result = self.run_command(PERSONALITIES / f"rocprof-sys-{tool}", "--", "x", code=125)
            self.one_sentence(result, needle)
        self.one_sentence(self.run_command(TACHO, "sys", "sampel", "--", "x", code=125), "sampel", "sample")

    def test_unsupported_settings_warn(self):
        listed = self.run_command(PERSONALITIES / "rocprof-sys-avail", "-S", "-d", "--advanced", "--csv", env={"HOME": str(self.folder)}).stdout.decode().splitlines()
        unsupported = [line.split(",")[0] for line in listed if "[not supported by tacho]" in line]
        self.assertGreater(len(unsupported), 30)
        # All of them at once, each to something else than its default.
        env = {}
        for line in listed:
            name, value = line.split(",")[:2]
            if name in unsupported:
                env[name] = {"true": "false", "false": "true"}.get(value, "3" if re.fullmatch(r"-?[\d.]+", value) else "other")
        run = self.sys(env=env)
        for name in unsupported:
            self.assertIn(f"{name}={env[name]} has no effect", run.stderr)
        self.assertNotIn("has no effect", self.sys().stderr)
        self.assertIn("no such setting", self.sys(env={"ROCPROFSYS_NO_SUCH": "1"}).stderr)

    # ---- avail

    def test_avail(self):
        def avail(*words, code=0):
            return self.run_command(PERSONALITIES / "rocprof-sys-avail", *words, code=code, env={"HOME": str(self.folder), "TACHO_NVML": str(SMI / "libstandin_nvml.so")})
        table = avail("-S").stdout.decode()
        # Each name has its own defaults.
        for program, freq, delay in ((PERSONALITIES / "rocprof-sys-avail",), "300", "0.5"), ((TACHO, "sys", "avail"), "100", "0"):
            rows = dict(line.split(",")[:2] for line in self.run_command(*program, "-S", "--csv", env={"HOME": str(self.folder)})
                        .stdout.decode().splitlines() if line.startswith("ROCPROFSYS_SAMPLING_"))
            self.assertEqual((rows["ROCPROFSYS_SAMPLING_FREQ"], rows["ROCPROFSYS_SAMPLING_DELAY"]), (freq, delay))
        self.assertRegex(table, r"\|\s+ENVIRONMENT VARIABLE\s+\|\s+VALUE\s+\|")
        self.assertIn("ROCPROFSYS_SAMPLING_FREQ", table)
        self.assertNotIn("ROCPROFSYS_CAUSAL_FILE ", table)
        self.assertIn("ROCPROFSYS_CAUSAL_FILE ", avail("-S", "--advanced").stdout.decode())
        names = avail("-S", "-b", "-r", "SAMPLING", "~OVERFLOW", "--advanced").stdout.decode()
        self.assertTrue("SAMPLING_FREQ" in names and "OVERFLOW" not in names and "TRACE_DELAY" not in names and "VALUE" not in names)
        self.assertTrue("PERFETTO_FILE" in (out := avail("-S", "--advanced", "-c", "perfetto").stdout.decode()) and "SAMPLING_FREQ" not in out)
        self.assertIn("wall_clock", avail("-C").stdout.decode())
        self.assertIn("PERF_COUNT_SW_CPU_CLOCK", (out := avail("-H").stdout.decode()))
        self.assertIn("GPU GFX Busy [0]", out)
        self.assertNotIn("PERF_COUNT_SW", avail("-H", "-c", "GPU").stdout.decode())
        self.assertIn("rocm_kernel_dispatch", avail("--list-categories").stdout.decode())
        self.assertIn("%launch_time%", avail("--list-keys").stdout.decode())
        self.assertIn("ROCPROFSYS_TRACE,", avail("-S", "--csv").stdout.decode())
        self.assertIn("| ROCPROFSYS_TRACE | true |", avail("-S", "-M").stdout.decode())
        self.assertTrue(json.loads(avail("-S", "-F", "json").stdout))
        avail("-S", "-O", "out.txt")
        self.assertIn("ROCPROFSYS_TRACE", (self.folder / "out.txt").read_text())
        avail("-G", "a.cfg")
        text = (self.folder / "a.cfg").read_text()
        self.assertRegex(text, r"ROCPROFSYS_SAMPLING_FREQ\s+= 300")
        self.assertNotIn("SAMPLING_TIDS", text)
        self.one_sentence(avail("-G", "a.cfg", code=1), "a.cfg", "--force")
        avail("-G", "a.cfg", "--force", "--advanced")
        self.assertIn("SAMPLING_TIDS", (self.folder / "a.cfg").read_text())
        self.one_sentence(avail("-r", "(", code=1), "regular expression")
        self.one_sentence(avail("-S", "-c", "Perfeto", code=1), "Perfeto", "no such category", "perfetto")
        self.one_sentence(avail("-S", "-r", "no such setting"), "nothing matches")
        self.one_sentence(avail("--nope", code=1), "--nope")
        # The written file can be read, and the seed's lines run as they are printed.
        result = self.run_command(PERSONALITIES / "rocprof-sys-sample", "-c", "a.cfg", PROGRAM, "2000", "host", env={"HOME": str(self.folder)})
        self.assertEqual(result.stdout, b"done\n")
        run = Run(self.folder / "rocprof-sys-opencl_sys-output", result)
        self.assertIn("spin", run.trace().on("(S)"))
        self.assertRegex(run.stderr, r"Call stacks: tacho stats \S+\.tacho --by line")

    # ---- tacho's own face

    def test_tacho_sys(self):
        env = {"HOME": str(self.folder), "TACHO_NVML": str(SMI / "libstandin_nvml.so")}
        self.run_command(TACHO, "sys", "sample", "-q", "--trace", "--profile", "--process-freq", "50", "-o", "a.tacho", "--", PROGRAM, "300", env=env)
        self.assertTrue({"a.tacho", "a.pftrace"} <= {p.name for p in self.folder.iterdir()})
        self.assertTrue(glob.glob(str(self.folder / "a-wall_clock-*.txt")) and glob.glob(str(self.folder / "a-sampling_cpu_clock-*.json")))
        rows = {r[0]: r for r in json.loads(self.run_command(TACHO, "stats", "a.tacho", "--by", "function", "--output-format", "json").stdout)["rows"]}
        self.assertGreater(rows["spin"][1], 0)
        trace = proto.Perfetto(self.folder / "a.pftrace")
        self.assertTrue(trace.on("(S)") and trace.on("GPU Kernel Dispatch") and "CPU Usage (S)" in trace.counters)
        query = self.run_command(TACHO, "query", "a.tacho", "SELECT count(*) FROM tacho.reading").stdout.decode()
        self.assertGreater(int(re.search(r"\d+", query.splitlines()[-1]).group()), 10)
        self.one_sentence(self.run_command(TACHO, "sys", "run", "-o", "a.tacho", "--", PROGRAM, code=125), "a.tacho", "--overwrite")
        self.run_command(TACHO, "sys", "run", "-o", "a.tacho", "--overwrite", "-q", "--", PROGRAM, "10")
        self.assertIn(b"tacho sys avail", self.run_command(TACHO, "sys", code=125).stderr)
        self.run_command(TACHO, "sys", "avail", "-G", "b.cfg")
        self.run_command(TACHO, "sys", "sample", "-q", "-c", "b.cfg", "-o", "b.tacho", "--", PROGRAM, "100")

    # ---- telemetry libraries

    def counters(self, library, **env):
        variable = {"amd": "TACHO_AMD_SMI", "rocm": "TACHO_ROCM_SMI", "nvml": "TACHO_NVML"}[library]
        run = self.sys("--process-freq", "50", "--amd-smi-metrics", "all", program=(PROGRAM, "600", "host"), smi=False,
                       env={variable: str(SMI / f"libstandin_{library}.so"), **env})
        return run.trace().counters, run

    def test_management_libraries(self):
        nvidia, run = self.counters("nvml")
        self.assertEqual(set(nvidia["GPU Core Clock [0] (S)"]), {1980})
        self.assertEqual(set(nvidia["GPU PCIe Received [0] (S)"]), {22000})
        self.assertEqual(set(nvidia["GPU NVLink Sent [1] (S)"]), {0.001024})
        info = self.run_command(TACHO, "query", run.one(r".*\.tacho"), "SELECT value FROM tacho.property WHERE key = 'telemetry.gpu0.name'").stdout
        self.assertIn(b"Stand-in 9000", info)
        amd, _ = self.counters("amd")
        self.assertEqual(set(amd["GPU GFX Busy [0] (S)"]), {41})
        self.assertNotIn("GPU MM Busy [0] (S)", amd, "0xffffffff means unknown")
        self.assertEqual({round(w) for w in amd["GPU Current Power [1] (S)"]}, {100})
        self.assertEqual(set(amd["GPU Temperature [0] (S)"]), {66})
        for layout in ({}, {"SMI_OLD_LAYOUT": "1"}):
            rocm, _ = self.counters("rocm", **layout)
            self.assertEqual(set(rocm["GPU Core Clock [0] (S)"]), {1700})
            self.assertEqual(set(rocm["GPU Memory Clock [1] (S)"]), {1600})
            self.assertEqual({round(w) for w in rocm["GPU Current Power [0] (S)"]}, {99})

    def test_lost_and_missing_gpus(self):
        for library in ("nvml", "amd", "rocm"):
            counters, run = self.counters(library, SMI_LOST="4")
            self.assertGreater(len(counters["GPU GFX Busy [0] (S)"]), len(counters["GPU GFX Busy [1] (S)"]))
            notes = self.run_command(TACHO, "info", run.one(r".*\.tacho")).stdout.decode()
            self.assertEqual(notes.count("GPU 1 was lost"), 1, notes)
            counters, run = self.counters(library, SMI_FAIL="1")
            self.assertFalse(counters)
            self.assertIn("does not start", self.run_command(TACHO, "info", run.one(r".*\.tacho")).stdout.decode())
        # No library at all: nothing is said, nothing is wrong.
        run = self.sys(smi=False)
        self.assertNotIn("NVML", run.stderr)
        missing = self.sys(smi=False, env={"TACHO_NVML": "/no/such/lib.so"})
        self.assertIn("/no/such/lib.so", self.run_command(TACHO, "info", missing.one(r".*\.tacho")).stdout.decode())


if __name__ == "__main__":
    harness.main()
