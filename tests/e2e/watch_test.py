#!/usr/bin/env python3
"""`tacho watch`: counts are exact, times are estimates with their error, programs stay as they are, metrics can be scraped."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
import unittest
import urllib.error
import urllib.request

from harness import BUILD, Case, EXAMPLES, TACHO, TARGETS, main, sanitized

CASES = TARGETS / "opencl_cases"
ORDER = TARGETS / "opencl_order"
CACHE = BUILD / "pocl-cache"
# One sample of Prometheus' text format, version 0.0.4.
SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)')


def setUpModule():
    if sanitized():
        raise unittest.SkipTest("a sanitizer's runtime wants to be the first library of a program")
    CACHE.mkdir(exist_ok=True)
    os.environ.setdefault("POCL_CACHE_DIR", str(CACHE))


def read_metrics(text):
    """{name: {labels: value}} and {name: type}; fails on a line that Prometheus would refuse."""
    samples, types = {}, {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types, f"{name} twice"
            types[name] = kind
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        family = re.sub(r"_(bucket|sum|count)$", "", match[1]) if match[1] not in types else match[1]
        assert family in types, line
        labels = samples.setdefault(match[1], {})
        assert match[2] not in labels, line
        labels[match[2]] = float(match[3])
    return samples, types


class Watch(Case):
    def watch(self, *command, options=(), code=0, **more):
        """The last JSON object of a run."""
        result = self.run_command(TACHO, "watch", "--output-format", "json", "-o", "w.jsonl", "--overwrite", *options, "--", *command, code=code, **more)
        self.result = result
        self.moments = [json.loads(line) for line in (self.folder / "w.jsonl").read_text().splitlines()]
        self.assertTrue(self.moments[-1]["final"])
        return self.moments[-1]

    def rows(self, moment, kind):
        """{name: [rows]} of a kind."""
        rows = {}
        for row in moment["rows"]:
            if row["kind"] == kind:
                rows.setdefault(row["name"], []).append(row)
        return rows

    def sums(self, moment, kind, what="count"):
        return {name: sum(row.get(what, 0) for row in rows) for name, rows in self.rows(moment, kind).items()}


class Counts(Watch):
    def test_launches_and_copies_are_counted_exactly(self):
        moment = self.watch(EXAMPLES / "vcopy", "-n", 1048576, "-b", 256, "-i", 20)
        self.assertEqual(self.sums(moment, "kernel"), {"vecCopy": 20})
        self.assertEqual(self.rows(moment, "kernel")["vecCopy"][0]["grid"], [1048576, 1, 1])
        self.assertEqual(self.rows(moment, "kernel")["vecCopy"][0]["group"], [256, 1, 1])
        self.assertEqual(self.sums(moment, "copy"), {"host to device": 2, "device to host": 1})
        self.assertEqual(self.sums(moment, "copy", "bytes"), {"host to device": 16 * 1048576, "device to host": 8 * 1048576})

    def test_the_same_counts_as_a_trace(self):
        for case, number in (("storm", 5000), ("threads", 300), ("early_release", 2000), ("forked", 0)):
            with self.subTest(case):
                moment = self.watch(CASES, case, number)
                self.trace(CASES, case, number, output=f"{case}.tacho")
                kernels = {name: row["Calls"] for name, row in self.stats("kernel", f"{case}.tacho").items()}
                self.assertEqual(self.sums(moment, "kernel"), kernels)
                self.assertEqual(moment["uncounted"], 0)

    def test_a_hot_kernel_is_timed_seldom_and_within_its_error(self):
        moment = self.watch(CASES, "storm", 20000)
        [row] = self.rows(moment, "kernel")["add_one"]
        self.assertEqual(row["count"], 20000)
        self.assertGreaterEqual(row["timed"], 64)
        self.assertLess(row["timed"], 2000)
        self.assertEqual(moment["lost_durations"], 0)
        self.assertGreater(row["one_of"], 1)
        self.assertGreater(row["standard_error_ns"], 0)
        self.assertGreater(row["interval_95_ns"], row["standard_error_ns"])
        self.assertLessEqual(row["shortest_ns"], row["total_ns"] / 20000)
        self.assertGreaterEqual(row["longest_ns"], row["total_ns"] / 20000)

    def test_a_rare_kernel_is_timed_each_time(self):
        moment = self.watch(EXAMPLES / "vcopy", "-n", 65536, "-b", 256, "-i", 20)
        [row] = self.rows(moment, "kernel")["vecCopy"]
        self.assertEqual((row["timed"], row["standard_error_ns"]), (20, 0))

    def test_shapes(self):
        moment = self.watch(CASES, "shapes")
        shapes = self.rows(moment, "kernel")["shape"]
        self.assertEqual(sorted(row["grid"] for row in shapes), [[8, 1, 1], [8, 4, 1], [8, 4, 2]])
        self.assertEqual([row["group"] for row in shapes if row["grid"] == [8, 4, 2]], [[4, 2, 1]])
        self.assertEqual(self.sums(moment, "kernel"), {"shape": 3, "with_local": 1, "add_one": 1})

    def test_what_the_runtime_refuses_is_in_no_count(self):
        moment = self.watch(CASES, "shapes")
        self.assertEqual(moment["failed"], 3)  # a bad group, no queue, four dimensions
        self.assertEqual(moment["lost_durations"], 0)

    def test_command_buffers_are_one_row(self):
        if b"no command buffers" in self.run_command(CASES, "command_buffer").stdout:
            self.skipTest("this OpenCL has no command buffers")
        self.assertEqual(self.sums(self.watch(CASES, "command_buffer"), "graph"), {"command buffers": 4})

    def test_counts_only(self):
        [row] = self.rows(self.watch(CASES, "storm", 500, options=("--counts-only",)), "kernel")["add_one"]
        self.assertEqual((row["count"], row["timed"], row["total_ns"]), (500, 0, None))
        # Text does not speak of times that there are not.
        for options, times in ((("--counts-only",), "; kernels and copies were counted and not timed"),
                               ((), "; times are estimates from 1 of N operations")):
            said = self.run_command(TACHO, "watch", *options, "-o", "s.tacho", "--overwrite", "--", CASES, "storm", 500).stderr.decode()
            self.assertIn("1 of which used a device" + times + "\n", said)
            sums = self.run_command(TACHO, "stats", "s.tacho").stdout.decode().splitlines()[0]
            self.assertRegex(sums, r" sums of 1 period(;|$)| sums of \d+ periods(;|$)")
            self.assertEqual("1 of N" in sums, not options, sums)
        # A port that tacho chose is told even where no tables are.
        said = self.run_command(TACHO, "watch", "-q", "--prometheus", "127.0.0.1:0", "--", "true").stderr.decode()
        self.assertRegex(said, r"^tacho: metrics for Prometheus at http://127.0.0.1:\d+/metrics\n$")
        said = self.run_command(TACHO, "watch", "--", "true").stderr.decode()
        self.assertIn("0 of which used a device\n", said)

    def test_queues_stay_as_they_are(self):
        """A queue with profiling takes the runtime's time for each command."""
        for options in ((), ("--counts-only",)):
            self.watch(CASES, "runtime_queue", options=options)
            self.assertEqual(self.result.stdout, b"profiling 0\n")
        self.assertEqual(self.run_command(CASES, "runtime_queue").stdout, b"profiling 0\n")

    def test_counts_of_a_killed_program(self):
        moment = self.watch(CASES, "killed", 300, code=128 + signal.SIGKILL)
        self.assertEqual(self.sums(moment, "kernel")["add_one"], int(self.result.stdout))


class Programs(Watch):
    def test_they_print_what_they_print_without_tacho(self):
        for case in ("queue_properties", "profiling", "reference_counts", "copies", "images", "svm", "callbacks", "threads", "native",
                     "user_event", "failed_gate", "sub_buffers", "many_objects", "command_buffer"):
            with self.subTest(case):
                plain = self.run_command(CASES, case, code=None)
                self.watch(CASES, case, code=plain.returncode)
                self.assertEqual((plain.stdout, plain.stderr), (self.result.stdout, self.result.stderr))

    def test_the_order_in_queues_and_what_is_told_of_them(self):
        """Operations that are timed go through a queue of tacho's."""
        for case, kernels in (("chain", 60), ("threads", 1200), ("blocked", 41), ("refused", 10), ("released", 11), ("others", 31)):
            with self.subTest(case):
                plain = self.run_command(ORDER, case, timeout=60)
                moment = self.watch(ORDER, case, timeout=60)
                self.assertEqual((plain.stdout, plain.stderr), (self.result.stdout, self.result.stderr))
                [row] = [row for rows in self.rows(moment, "kernel").values() for row in rows]
                self.assertEqual(row["count"], kernels)
                if case == "threads":  # nothing is timed while the other one waits in a blocking call
                    self.assertGreater(row["timed"], 10)
                    self.assertGreater(moment["lost_durations"], 0)
                    continue
                # What comes into a queue after its release, which an event still knows, is not timed.
                self.assertEqual((row["timed"], moment["lost_durations"]), (kernels, 1 if case == "released" else 0))
                self.assertGreater(row["shortest_ns"], 0)

    def test_queues_of_a_gpu_have_profiling_themselves(self):
        """A layer between tacho's and the driver says that the device is a GPU."""
        plain = self.run_command(ORDER, "threads", timeout=60)
        below = f'OPENCL_LAYERS={TARGETS / "small_device.so"}:$OPENCL_LAYERS exec "$0" threads'
        moment = self.watch("sh", "-c", below, ORDER, timeout=60, env={"SMALL_DEVICE": "amdgpu=gfx90a"})
        self.assertEqual((plain.stdout, plain.stderr), (self.result.stdout, self.result.stderr))
        [row] = [row for rows in self.rows(moment, "kernel").values() for row in rows]
        self.assertGreaterEqual(row["timed"], 64)
        # In a queue of tacho's beside it nothing could be timed while another thread waits.
        self.assertEqual((row["count"], moment["lost_durations"]), (1200, 0))

    def test_exit_codes(self):
        self.assertEqual(self.run_command(TACHO, "watch", "-q", "--", "sh", "-c", "exit 7", code=7).stderr, b"")
        self.run_command(TACHO, "watch", "-q", "--", "sh", "-c", "kill -TERM $$", code=128 + signal.SIGTERM)
        self.one_sentence(self.run_command(TACHO, "watch", "--", "/no/such/program", code=127), "/no/such/program")
        self.one_sentence(self.run_command(TACHO, "watch", "4711", "--", "true", code=125), "4711 is the number of a program that runs")
        self.one_sentence(self.run_command(TACHO, "watch", "4711", "--duration", "1", "--", "true", code=125), "watch one of them")
        self.one_sentence(self.run_command(TACHO, "watch", "--", "/etc/passwd", code=126), "/etc/passwd")

    def test_signals_reach_the_program(self):
        program = subprocess.Popen([TACHO, "watch", "-q", "--", "sh", "-c", "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done"],
                                   stdout=subprocess.PIPE)
        program.stdout.readline()
        program.send_signal(signal.SIGTERM)
        self.assertEqual(program.wait(20), 3)
        program.stdout.close()

    def test_nothing_stays_behind(self):
        before = set(os.listdir("/dev/shm"))
        self.watch(CASES, "storm", 100)
        self.assertEqual([name for name in set(os.listdir("/dev/shm")) - before if name.startswith("tacho-watch-")], [])

    def test_the_library_exports_only_what_it_stands_in_for(self):
        symbols = self.run_command("nm", "-D", "--defined-only", BUILD / "lib" / "libtacho-watch.so").stdout.decode().splitlines()
        names = {line.split()[-1] for line in symbols}
        self.assertIn("cuLaunchKernel", names)
        stands_in = (r"cu[A-Z]|hip[A-Z]|__hipRegisterFunction$|clInitLayer$|clGetLayerInfo$|dlsym$|OnLoad$|OnUnload$|tacho_[a-z_]+$"
                     r"|roctx(Mark|Range)|InitializeInjectionNvtx2$|ncclProfiler_v[2-6]$")
        self.assertEqual({name for name in names if not re.match(stands_in, name)}, set())

    def test_the_next_run_removes_what_a_killed_tacho_left(self):
        program = subprocess.Popen([TACHO, "watch", "-q", "--", "sh", "-c", "echo $TACHO_WATCH; echo $$; exec sleep 60"], stdout=subprocess.PIPE)
        table, child = program.stdout.readline().decode().strip(), int(program.stdout.readline())
        self.addCleanup(os.kill, child, signal.SIGKILL)
        program.stdout.close()
        self.watch("true")  # leaves alone what is in use
        self.assertTrue(os.path.exists(table))
        program.kill()
        program.wait()
        self.watch("true")
        self.assertFalse(os.path.exists(table))

    def test_bad_options(self):
        for options, needle in ((("--budget", "0"), "--budget"), (("--budget", "many"), "--budget"), (("--budget", "150%"), "--budget"),
                                (("--prometheus", "0.0.0.0:9400"), "127.0.0.1"), (("--prometheus", "127.0.0.1:99999"), "PORT"),
                                (("--interval", "-1"), "--interval")):
            with self.subTest(options):
                self.one_sentence(self.run_command(TACHO, "watch", *options, "--", "true", code=125), needle)
        (self.folder / "there").write_text("kept")
        self.one_sentence(self.run_command(TACHO, "watch", "-o", "there", "--", "true", code=125), "there", "--overwrite")
        self.assertEqual((self.folder / "there").read_text(), "kept")


class Seeing(Watch):
    def test_tables_at_the_end(self):
        text = self.run_command(TACHO, "watch", "--", EXAMPLES / "vcopy", "-n", 65536, "-b", 256, "-i", 20).stderr.decode()
        self.assertRegex(text, r"\n +20 [^\n]+ vecCopy 65536/256\n")
        self.assertIn("host to device", text)

    def test_a_program_without_a_device(self):
        text = self.run_command(TACHO, "watch", "--", "true").stderr.decode()
        self.assertIn("No process used a runtime that tacho watch knows.", text)

    def test_lines_while_it_runs(self):
        text = self.run_command(TACHO, "watch", "--interval", "0.2", "--", CASES, "killed", 2000, code=128 + signal.SIGKILL).stderr.decode()
        lines = re.findall(r"^ +[\d.]+ s  (\S+) launches/s  .*$", text, re.M)
        self.assertGreaterEqual(len(lines), 2)
        self.assertIn("add_one", text)

    def test_a_json_object_for_each_interval(self):
        self.watch(CASES, "killed", 2000, options=("--interval", "0.2"), code=128 + signal.SIGKILL)
        self.assertGreaterEqual(len(self.moments), 3)
        counts = [self.sums(moment, "kernel").get("add_one", 0) for moment in self.moments]
        self.assertEqual(counts, sorted(counts))
        self.assertEqual(counts[-1], int(self.result.stdout))

    def test_page(self):
        def until(needle, patience=30):
            nonlocal seen
            end = time.monotonic() + patience
            while needle not in seen and time.monotonic() < end:
                if select.select([terminal], [], [], 0.1)[0]:
                    try:
                        seen += os.read(terminal, 65536)
                    except OSError:  # the program has gone
                        break
            self.assertIn(needle, seen)
            seen = seen[seen.index(needle) + len(needle):]
        seen = b""
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(str(TACHO), [str(TACHO), "watch", "--page", "--interval", "0.3", "--", str(CASES), "killed", "8000"])
        self.addCleanup(os.close, terminal)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        until(b"launches/s")
        until(b"add_one 256/64")
        os.write(terminal, b"p")
        until(b"(frozen)")
        os.write(terminal, b"ps")
        until(b"p freeze")
        os.write(terminal, b"m")
        until(b"(since ")
        os.write(terminal, b"q")
        until(b"the program goes on; its tables follow at its end")
        until(b"add_one 256/64")
        while True:  # to the end
            try:
                if not os.read(terminal, 65536):
                    break
            except OSError:
                break
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 128 + signal.SIGKILL)

    def test_page_without_a_terminal(self):
        result = self.run_command("setsid", "-w", TACHO, "watch", "--page", "--", "true", code=125)
        self.one_sentence(result, "--page", "terminal")
        self.one_sentence(self.run_command(TACHO, "watch", "--page", "-o", "x", "--", "true", code=125), "--page", "-o")

    def test_prometheus(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        program = subprocess.Popen([TACHO, "watch", "-q", "--prometheus", f"127.0.0.1:{port}", "--", CASES, "killed", "4000"],
                                   cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            address = f"http://127.0.0.1:{port}/metrics"
            seen = []
            while program.poll() is None:
                try:
                    with urllib.request.urlopen(address, timeout=10) as answer:
                        self.assertEqual(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
                        seen.append(read_metrics(answer.read().decode()))
                except (urllib.error.URLError, ConnectionError):
                    pass
                time.sleep(0.1)
            with self.assertRaises((urllib.error.URLError, ConnectionError)):
                urllib.request.urlopen(address, timeout=1)
        finally:
            program.kill()
            program.communicate()
        busy = [(samples, types) for samples, types in seen if 'kernel="add_one"' in samples.get("tacho_kernel_launches_total", {})]
        self.assertGreaterEqual(len(busy), 2)
        launches = [samples["tacho_kernel_launches_total"]['kernel="add_one"'] for samples, _ in busy]
        self.assertEqual(launches, sorted(launches))
        samples, types = busy[-1]
        self.assertEqual(types["tacho_kernel_duration_seconds"], "histogram")
        buckets = {labels: value for labels, value in samples["tacho_kernel_duration_seconds_bucket"].items() if 'kernel="add_one"' in labels}
        values = list(buckets.values())
        self.assertEqual(values, sorted(values))
        self.assertEqual(buckets['kernel="add_one",le="+Inf"'], samples["tacho_kernel_duration_seconds_count"]['kernel="add_one"'])
        # Each timed launch stands for N: the histogram's count estimates the launches.
        self.assertAlmostEqual(values[-1] / launches[-1], 1, delta=0.35)

    def test_scrapes_that_meet_the_end(self):
        """Who asks at the very end gets an answer or none, and tacho ends."""
        def scrape():
            try:
                while True:
                    with urllib.request.urlopen(address, timeout=20) as answer:
                        answer.read()
            except OSError:
                pass
        events = [{"ph": "X", "cat": "kernel", "name": f"k{i}", "pid": 0, "tid": 7, "ts": 100 * i, "dur": 1, "args": {"device": 0, "stream": 7, "correlation": i}}
                  for i in range(50)]
        (self.folder / "other.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        for _ in range(20):
            program = subprocess.Popen([TACHO, "watch", "--prometheus", "127.0.0.1:0", "--graph-shares", "other.json", "-o", "w.tacho", "--overwrite", "--",
                                        "sleep", "0.15"], cwd=self.folder, stderr=subprocess.PIPE, text=True,
                                       env={**os.environ, "MALLOC_PERTURB_": "165"})  # no luck with freed memory
            try:
                address = re.search(r"http://\S+/metrics", program.stderr.readline())[0]
                clients = [threading.Thread(target=scrape) for _ in range(8)]
                for client in clients:
                    client.start()
                self.assertEqual(program.wait(20), 0)
            finally:
                program.kill()
                program.communicate()
            for client in clients:
                client.join()

    def test_a_port_that_is_taken(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.one_sentence(self.run_command(TACHO, "watch", "--prometheus", f":{port}", "--", "true", code=125), port, "--prometheus")


class Cuda(Watch):
    """On a stand-in driver that counts exactly and whose time is known."""
    DRIVER = BUILD / "tests" / "fake_cuda"

    def watch_cuda(self, way, mode, count, options=(), **driver):
        """The last moment, and what the driver counted."""
        program = self.DRIVER / ("fake_watched_linked" if way == "linked" else "fake_watched")
        moment = self.watch(program, way, mode, count, options=options, env={"LD_LIBRARY_PATH": str(self.DRIVER / "driver"), **driver})
        driver = json.loads(self.result.stdout)
        self.assertEqual((driver["events_in_captures"], driver["asked_in_captures"]), (0, 0))
        self.assertEqual(moment["uncounted"], 0)
        return moment, driver

    def assert_estimates(self, rows, truth):
        total = sum(row["total_ns"] for row in rows)
        self.assertLessEqual(abs(total - truth), max(1, sum(row["interval_95_ns"] for row in rows) * 1.5 + truth * 1e-5))

    def test_every_way_to_the_driver(self):
        for way in ("dlsym", "address", "thread", "linked"):
            with self.subTest(way):
                moment, driver = self.watch_cuda(way, "plain", 20000)
                self.assertEqual(self.sums(moment, "kernel"), {"often_1000": 20000, "seldom_50000": 200})
                self.assertEqual(driver["kernels"], {"_Z10often_1000": 20000, "seldom_50000": 200})
                self.assertEqual(self.sums(moment, "copy"), {"host to device": 200, "device to host": 200})
                self.assertEqual(sum(self.sums(moment, "copy", "bytes").values()), driver["copied"])
                self.assertEqual(self.sums(moment, "wait"), {"cuStreamSynchronize": driver["waits"]})
                self.assertEqual(self.sums(moment, "allocation", "bytes"), {"device memory": 1 << 20})
                self.assertEqual(moment["failed"], 1)
                [often] = self.rows(moment, "kernel")["often_1000"]
                self.assertEqual((often["grid"], often["group"]), ([4096, 1, 1], [256, 1, 1]))
                self.assertLess(often["timed"], 1500)
                self.assert_estimates([often], 20010 * 1000)
                self.assert_estimates(self.rows(moment, "kernel")["seldom_50000"], 210 * 50000)
                self.assertLess(driver["events"], 3 * 1100)

    def test_timing_stays_below_its_limit(self):
        # The first 64 of each row are timed in any case; from then on the budget of one second may be used, and what grows meanwhile.
        for budget in (0.001, 0.2):
            with self.subTest(budget):
                moment, _ = self.watch_cuda("dlsym", "plain", 20000, options=("--budget", f"{budget * 100}%"), FAKE_CUDA_FLOOR="17000", FAKE_CUDA_SPIN="20000")
                rows = [row for row in moment["rows"] if row["kind"] in ("kernel", "copy")]
                self.assertTrue(all(row["timed"] >= 64 for row in rows))
                spent, timed = moment["host_timing_ns"] + moment["device_ns"], sum(row["timed"] for row in rows)
                more = max(0, timed - 64 * len(rows)) / timed * spent
                self.assertLess(more, budget * (1 + moment["seconds"]) * 1e9 + 5e6)
                if budget == 0.2:
                    self.assertGreater(timed, 64 * len(rows) + 300)
                self.assertLess(moment["host_timing_ns"], moment["host_ns"])

    def test_what_is_not_timed_is_in_sums_of_what_is(self):
        """The time of a process, and the sum of a histogram, which only grow, where timing is shed."""
        program = subprocess.Popen([TACHO, "watch", "--prometheus", "127.0.0.1:0", "--output-format", "json", "-o", "w.jsonl", "--overwrite",
                                    "--", self.DRIVER / "fake_steps", "table"], cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "LD_LIBRARY_PATH": str(self.DRIVER / "driver")})
        try:
            address = re.search(r"http://\S+/metrics", program.stderr.readline())[0]
            for _ in range(25):  # over stretches with and without timing
                program.stdin.write("run 20000\n")
                program.stdin.flush()
                program.stdout.readline()
                time.sleep(0.1)
            with urllib.request.urlopen(address, timeout=10) as answer:
                samples, _ = read_metrics(answer.read().decode())
            program.communicate("", timeout=30)
        finally:
            program.kill()
            program.communicate()
        moment = json.loads((self.folder / "w.jsonl").read_text().splitlines()[-1])
        rows = [row for row in moment["rows"] if row["kind"] in ("kernel", "copy")]
        [often] = [row for row in rows if row["name"] == "often_1000"]
        self.assertEqual(often["count"], 500000)
        seconds = {name: samples[f"tacho_kernel_duration_seconds_{name}"]['kernel="often_1000"'] for name in ("sum", "count")}
        self.assertAlmostEqual(seconds["count"] / often["count"], 1, delta=0.1)
        self.assertAlmostEqual(seconds["sum"] / seconds["count"] / (often["total_ns"] * 1e-9 / often["count"]), 1, delta=0.05)
        [process] = moment["processes"]
        self.assertAlmostEqual(process["time_ns"] / sum(row["total_ns"] for row in rows), 1, delta=0.1)

    def test_graphs_and_captures(self):
        moment, driver = self.watch_cuda("address", "graph", 3000)
        # What was captured is not work: only the other thread's launches are.
        self.assertEqual(self.sums(moment, "kernel"), {"often_1000": driver["launches"]})
        [graph] = self.rows(moment, "graph")["graph 1"]
        self.assertEqual(graph["count"], 3000)
        self.assert_estimates([graph], driver["graph_ns"])

    def test_inside_graphs(self):
        for way in ("dlsym", "address"):
            with self.subTest(way):
                moment, driver = self.watch_cuda(way, "shares", 1000)
                graphs = self.rows(moment, "graph")
                # The second graph has the same kernels, and the third one after its update; arguments change nothing.
                self.assertEqual({name: row["count"] for name, [row] in graphs.items()}, {"graph 1": 4000, "graph 2": 1000, "(changed graphs)": 2000})
                self.assertEqual(driver["graph_launches"], 7000)
                [first], [second], [changed] = graphs["graph 1"], graphs["graph 2"], graphs["(changed graphs)"]
                inside = {row["title"]: row for row in first["kernels"]}
                self.assertEqual({title: (row["nodes"], row["launches"]) for title, row in inside.items()},
                                 {"often_1000 4096/256": (3, 12000), "often_1000 16384/256": (1, 4000), "seldom_50000 4096/256": (2, 8000)})
                self.assertEqual((first["other_nodes"], first["shares_by"]), (1, "launches outside of graphs"))
                # The first 10 launches of a kernel take twice as long here, so the averages outside are 1250 and 75000 ns.
                self.assertAlmostEqual(inside["often_1000 4096/256"]["share"], 3 * 1250 / 155000)
                self.assertAlmostEqual(inside["seldom_50000 4096/256"]["share"], 2 * 75000 / 155000)
                self.assertAlmostEqual(sum(row["share"] for row in inside.values()), 1)
                self.assertAlmostEqual(sum(row["total_ns"] for row in inside.values()), first["total_ns"], delta=1)
                [only] = second["kernels"]
                self.assertEqual((only["name"], only["launches"], only["share"], only["total_ns"], second["shares_by"]), ("only_3000", 1000, None, None, None))
                self.assertNotIn("kernels", changed)

    def test_shares_inside_graphs_by_a_trace(self):
        events = [{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 100 * i, "dur": dur, "args": {"device": 0, "stream": 7, "correlation": i}}
                  for i, (name, dur) in enumerate((("only_3000", 3), ("often_1000", 1), ("seldom_50000", 5)))]
        (self.folder / "other.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        moment, _ = self.watch_cuda("dlsym", "shares", 100, options=("--graph-shares", "other.json"))
        graphs = self.rows(moment, "graph")
        [only] = graphs["graph 2"][0]["kernels"]
        self.assertEqual((only["share"], only["total_ns"], graphs["graph 2"][0]["shares_by"]), (1, graphs["graph 2"][0]["total_ns"], "trace"))
        shares = {row["title"]: row["share"] for row in graphs["graph 1"][0]["kernels"]}
        self.assertAlmostEqual(shares["seldom_50000 4096/256"], 10 / 14)
        self.assertAlmostEqual(shares["often_1000 4096/256"], 3 / 14)
        watched = self.DRIVER / "fake_watched"
        environment = {"LD_LIBRARY_PATH": str(self.DRIVER / "driver")}
        text = self.run_command(TACHO, "watch", "--graph-shares", "other.json", "--", watched, "dlsym", "shares", "100", env=environment).stderr.decode()
        self.assertIn("Times inside 2 graphs are shares of the whole graph's, by what kernels take in other.json.", " ".join(text.split()))
        text = self.run_command(TACHO, "watch", "--", watched, "dlsym", "shares", "100", env=environment).stderr.decode()
        self.assertRegex(text, r"\n  graph 2 +100 [^\n]* only_3000 4096/256\n")
        self.assertIn("Times inside 1 graph are shares of the whole graph's, by what the same kernels took outside of graphs.", " ".join(text.split()))
        self.assertIn("Inside 1 graph only launches are known", " ".join(text.split()))

    def test_a_trace_of_shares_that_is_none(self):
        self.one_sentence(self.run_command(TACHO, "watch", "--graph-shares", "no.tacho", "--", "true", code=125), "no.tacho")
        (self.folder / "empty.json").write_text('{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}')
        self.one_sentence(self.run_command(TACHO, "watch", "--graph-shares", "empty.json", "--", "true", code=125), "empty.json", "no kernel")

    def test_threads(self):
        moment, driver = self.watch_cuda("dlsym", "threads", 20000)
        self.assertEqual(self.sums(moment, "kernel"), {"often_1000": 160000})
        self.assertEqual([process["launches"] for process in moment["processes"]], [160000])
        self.assert_estimates(self.rows(moment, "kernel")["often_1000"], driver["kernel_ns"])

    def test_what_events_take_is_in_no_time(self):
        moment, driver = self.watch_cuda("dlsym", "plain", 20000, FAKE_CUDA_FLOOR="1700")
        [often] = self.rows(moment, "kernel")["often_1000"]
        self.assert_estimates([often], 20010 * 1000)
        self.assertEqual(often["shortest_ns"], 1000)

    def test_a_device_that_waited_for_work_gives_bounds(self):
        moment, _ = self.watch_cuda("dlsym", "plain", 20000, FAKE_CUDA_IDLE="1")
        [often] = self.rows(moment, "kernel")["often_1000"]
        self.assertEqual((often["count"], often["timed"], often["total_ns"], often["standard_error_ns"]), (20000, 0, None, None))
        self.assertGreaterEqual(often["at_most_ns"], 20000 * 1000)
        text = self.run_command(TACHO, "watch", "--", self.DRIVER / "fake_watched", "dlsym", "plain", "2000",
                                env={"LD_LIBRARY_PATH": str(self.DRIVER / "driver"), "FAKE_CUDA_IDLE": "1"}).stderr.decode()
        self.assertIn("At most", text)

    def test_a_device_that_waited_for_work_is_kept_busy_by_events(self):
        moment, _ = self.watch_cuda("dlsym", "plain", 20000, options=("--budget", "20%"), FAKE_CUDA_LAG="6", FAKE_CUDA_FLOOR="1700")
        [often] = self.rows(moment, "kernel")["often_1000"]
        self.assertGreater(often["timed"], 100)
        self.assertNotIn("at_most_ns", often)
        self.assertEqual(often["shortest_ns"], 1000)

    def test_a_device_that_waited_for_work_is_kept_busy_by_barriers(self):
        moment, _ = self.watch_cuda("dlsym", "plain", 20000, options=("--budget", "20%"), FAKE_CUDA_BARRIERS="20", FAKE_CUDA_FLOOR="1700")
        [often] = self.rows(moment, "kernel")["often_1000"]
        self.assertGreater(often["timed"], 100)
        self.assertNotIn("at_most_ns", often)
        self.assertEqual(often["shortest_ns"], 1000)

    def test_the_way_to_a_kernel_and_back_is_in_no_time_where_it_is_known(self):
        for major, off in (("9", 0), ("8", 1250)):
            with self.subTest(major):
                moment, driver = self.watch_cuda("dlsym", "plain", 20000, FAKE_CUDA_BESIDE="1250", FAKE_CUDA_FLOOR="1700", FAKE_CUDA_MAJOR=major)
                [often] = self.rows(moment, "kernel")["often_1000"]
                self.assertEqual(often["shortest_ns"], 1000 + off)
                self.assert_estimates([often], driver["kernel_ns"] - 50000 * 210)
                each = often["interval_95_ns"] / often["count"]
                self.assertTrue(600 <= each < 750 if major == "9" else 2500 <= each < 2700, each)

    def test_many_kernels(self):
        moment, driver = self.watch_cuda("dlsym", "many", 30)
        sums = self.sums(moment, "kernel")
        self.assertEqual(sum(sums.values()), 1100 * 30)
        self.assertEqual(sums["(other kernels)"], 76 * 30)
        self.assert_estimates([row for row in moment["rows"] if row["kind"] == "kernel"], driver["kernel_ns"])

    def test_fork(self):
        moment, _ = self.watch_cuda("dlsym", "fork", 1000)
        self.assertEqual(self.sums(moment, "kernel"), {"often_1000": 2000})

    def test_workers_that_end_by_exit_and_by_a_signal_have_ended(self):
        """They do not say so; else they would be counted as running, and each would raise what timing may take."""
        (self.folder / "workers.py").write_text(
            "import ctypes, os, signal, time\ncuda = ctypes.CDLL('libcuda.so.1')\n"
            "def launch(count):\n    made = ctypes.c_void_p()\n    cuda.cuModuleGetFunction(ctypes.byref(made), None, b'often_1000')\n"
            "    for _ in range(count): cuda.cuLaunchKernel(made, 16, 1, 1, 256, 1, 1, 0, None, None, None)\n"
            "for end in (lambda: os._exit(0), lambda: os.kill(os.getpid(), signal.SIGKILL)):\n    child = os.fork()\n"
            "    if child == 0: launch(5); time.sleep(0.3); end()\n    os.waitpid(child, 0)\nlaunch(7)\ntime.sleep(0.5)\n")
        moment = self.watch("/usr/bin/python3", "workers.py", options=("--interval", "0.1"), env={"LD_LIBRARY_PATH": str(self.DRIVER / "driver")})
        self.assertEqual([(process["launches"], process["ended"]) for process in moment["processes"]], [(7, True), (5, True), (5, True)])
        before = [json.loads(line) for line in (self.folder / "w.jsonl").read_text().splitlines()][-2]
        self.assertEqual([process["ended"] for process in before["processes"]], [False, True, True])

    def test_commands_of_a_script_leave_room_for_its_programs(self):
        script = f"for i in $(seq 300); do /bin/true; done; {self.DRIVER / 'fake_watched'} dlsym plain 1000 >/dev/null"
        moment = self.watch("sh", "-c", script, env={"LD_LIBRARY_PATH": str(self.DRIVER / "driver")})
        self.assertEqual(len(moment["processes"]), 256)
        self.assertEqual([(process["name"], process["launches"]) for process in moment["processes"] if process["uses_devices"]], [("fake_watched", 1010)])
        self.assertFalse([note for note in moment["notes"] if "found no room" in note])

    def test_a_forked_worker_is_a_process_of_its_own(self):
        program = subprocess.Popen([TACHO, "watch", "-q", "--output-format", "json", "-o", "w.jsonl", "--", self.DRIVER / "fake_steps", "table"], cwd=self.folder,
                                   env={**os.environ, "LD_LIBRARY_PATH": str(self.DRIVER / "driver")}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        out, _ = program.communicate("run 20\nworker\nwork 500\nrun 100\n", timeout=60)
        self.assertEqual(program.returncode, 0)
        worker = int(out.split()[2])
        moment = json.loads((self.folder / "w.jsonl").read_text().splitlines()[-1])
        self.assertEqual(self.sums(moment, "kernel"), {"often_1000": 620, "seldom_50000": 12})
        self.assertEqual([process["launches"] for process in moment["processes"] if process["pid"] != worker], [132])
        self.assertEqual([process["ended"] for process in moment["processes"] if process["pid"] != worker], [True])
        self.assertEqual([(process["launches"], process["uses_devices"]) for process in moment["processes"] if process["pid"] == worker], [(500, True)])

    def test_contexts_that_go_with_events_pending(self):
        for mode in ("contexts", "green"):
            with self.subTest(mode):
                moment, driver = self.watch_cuda("dlsym", mode, 2000)
                self.assertEqual(self.sums(moment, "kernel"), {"often_1000": 5000})
                self.assertEqual((driver["dead_events"], driver["foreign_events"]), (0, 0))
                self.assertGreater(moment["lost_durations"], 0)
                self.assertLess(moment["lost_durations"], 10)
                [often] = self.rows(moment, "kernel")["often_1000"]
                self.assertGreater(often["timed"], 100)

    def test_a_device_that_is_reset(self):
        """Events of the device before are not touched, and a handle that means another kernel has its name."""
        moment, driver = self.watch_cuda("address", "reset", 3000)
        self.assertEqual(self.sums(moment, "kernel"), {"seldom_50000": 3000, "again_2000": 3000})
        self.assertEqual((driver["kernels"]["again_2000"], driver["replaced_launches"]), (3000, 3000))
        self.assertEqual(driver["dead_events"], 0)
        self.assert_estimates(self.rows(moment, "kernel")["again_2000"], 3010 * 2000)

    def test_a_capture_that_begins_while_a_pair_is_open(self):
        moment, driver = self.watch_cuda("dlsym", "inside", 3000)  # which asserts that the capture saw nothing of ours
        self.assertEqual(self.sums(moment, "kernel"), {"often_1000": 6200})
        self.assertEqual(driver["kernels"]["_Z10often_1000"], 6200)
        self.assertGreater(moment["lost_durations"], 0)
        [often] = self.rows(moment, "kernel")["often_1000"]
        self.assertLess(often["timed"], 6200)

    def test_another_library_that_stands_in_for_the_driver(self):
        """Behind tacho's (in the user's LD_PRELOAD) and in front of it (set by a script): both count each launch once."""
        for library, way, front, finds in (("interposer_dlsym", "dlsym", False, ""), ("interposer_dlsym", "address", False, ""),
                                           ("interposer", "linked", False, "handle"), ("interposer", "linked", False, "next"),
                                           ("interposer", "linked", True, "handle"), ("interposer", "linked", True, "next")):
            with self.subTest(library=library, way=way, front=front, finds=finds):
                program = str(self.DRIVER / ("fake_watched_linked" if way == "linked" else "fake_watched"))
                path = str(self.DRIVER / f"libfake_{library}.so")
                script = f'LD_PRELOAD="{path} $LD_PRELOAD"' if front else f'LD_PRELOAD="$LD_PRELOAD {path}"'
                moment = self.watch("sh", "-c", f"{script} exec {program} {way} plain 2000", env={"LD_LIBRARY_PATH": str(self.DRIVER / "driver"), "HOOK_FINDS": finds})
                driver = json.loads(self.result.stdout)
                self.assertEqual(driver["kernels"], {"_Z10often_1000": 2000, "seldom_50000": 20})
                self.assertEqual(self.sums(moment, "kernel"), {"often_1000": 2000, "seldom_50000": 20})
                self.assertIn("interposer: 2021 launches", self.result.stderr.decode())  # one was refused

    def test_a_program_that_asks_for_other_functions(self):
        """What tacho does not watch is what it is without tacho: dlsym's other answers, and cuInit's."""
        program = self.folder / "ask.py"
        program.write_text("import ctypes, ctypes.util\n"
                           "cuda = ctypes.CDLL('libcuda.so.1'); print(cuda.cuInit(0), cuda.cuDriverGetVersion(ctypes.byref(ctypes.c_int())))\n"
                           "print(hasattr(cuda, 'cuNoSuchFunction'), ctypes.CDLL(None).strlen(b'four'))\n")
        environment = {"LD_LIBRARY_PATH": str(self.DRIVER / "driver")}
        plain = self.run_command("/usr/bin/python3", program, env=environment)
        self.watch("/usr/bin/python3", program, env=environment)
        self.assertEqual(self.result.stdout, plain.stdout)

    def test_a_function_that_has_another_form_in_cuda_13(self):
        program = self.folder / "synchronize.py"
        program.write_text("import ctypes\n"
                           "cuda = ctypes.CDLL('libcuda.so.1')\n"
                           "for version, count in ((12000, 3), (13000, 4)):\n"
                           "    found = ctypes.c_void_p()\n"
                           "    cuda.cuGetProcAddress_v2(b'cuCtxSynchronize', ctypes.byref(found), version, ctypes.c_ulonglong(0), None)\n"
                           "    call = (ctypes.CFUNCTYPE(ctypes.c_int) if version < 13000 else ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p))(found.value)\n"
                           "    print(sum(call(*([0x1234] if version >= 13000 else [])) for _ in range(count)))\n"
                           "print(cuda.cuCtxSynchronize_v2(ctypes.c_void_p(0x1234)), cuda.cuCtxSynchronize())\n")
        moment = self.watch("/usr/bin/python3", program, env={"LD_LIBRARY_PATH": str(self.DRIVER / "driver")})
        self.assertEqual(self.result.stdout, b"0\n0\n0 0\n")
        self.assertEqual(self.sums(moment, "wait"), {"cuCtxSynchronize": 9})


class Budget(Watch):
    def test_the_cost_is_measured_with_its_interval(self):
        moment = self.watch(CASES, "killed", 12000, options=("--budget", "20%"), code=128 + signal.SIGKILL)
        self.assertGreater(moment["host_ns"], 0)
        cost = moment["cost"]
        if cost is None:  # a machine with other work: no eight stretches were steady
            self.assertIn("There were too few stretches of steady work to measure what timing cost.", moment["notes"])
            return
        self.assertGreaterEqual(cost["pairs"], 8)
        self.assertLessEqual(cost["low"], cost["share"])
        self.assertLessEqual(cost["share"], cost["high"])
        self.assertTrue(any("program's pace" in note for note in moment["notes"]), moment["notes"])


if __name__ == "__main__":
    main()
