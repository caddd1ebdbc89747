"""Commands that a newcomer types, right and wrong, on terminals of several widths, and tacho's answers."""
import collections
import csv
import io
import json
import os
import pathlib
import re

import harness
import terminal
from harness import DEBIAN_PYTHON, EXAMPLES, TACHO

WIDTHS = (80, 120, 200)
VCOPY = EXAMPLES / "vcopy"

SCRIPT = '''import json, sys, time

def encode(rows):
    return len(json.dumps(rows))

def work(seconds):
    rows = [{"a": i, "b": [i] * 20} for i in range(400)]
    end = time.process_time() + seconds
    while time.process_time() < end:
        encode(rows)

if __name__ == "__main__":
    work(float(sys.argv[1]) if len(sys.argv) > 1 else 0.1)
'''


def on_terminal(width, *command, cwd=None, env=None):
    """(output, exit code) of a command whose three streams are a terminal with this many columns."""
    variables = {**os.environ, "TERM": "xterm", "NO_COLOR": "1", **(env or {})}
    variables.pop("COLUMNS", None)
    output, code = terminal.run(command, width, cwd=cwd or "/", env=variables)
    return output.decode().replace("\r\n", "\n"), code


def template(number, argument):
    """Kernels as PyTorch's: the same beginning, the same end, one word of difference deep inside."""
    return (f"void at::native::elementwise_kernel<128, {number}, at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<"
            f"c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::{argument}<float> > >(at::TensorIteratorBase&, "
            "at::native::binary_internal::MulFunctor<float> const&)::{lambda(int)#1}>(int, at::native::gpu_kernel_impl_nocast<"
            "at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16> >)")


KERNELS = [template(4, word) for word in ("MulFunctor", "DivFunctor", "AddFunctor", "PowFunctor", "MaxFunctor")] + [
    template(2, "MulFunctor"), "vecCopy(double*, double*, double*, int, int)", "scale",
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, std::array<char*, 1ul> >(int)",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"]


class FirstContact(harness.Case):
    def kineto(self):
        """A trace of PyTorch's profiler with kernels of long names on two streams of two devices."""
        events = []
        for i, name in enumerate(KERNELS):
            device = i % 2
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": 100 * i, "dur": 5,
                           "args": {"correlation": i + 1}})
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": device, "tid": 7 + device, "ts": 100 * i + 20,
                           "dur": 50 - i, "args": {"device": device, "stream": 7 + device, "correlation": i + 1}})
        path = self.folder / "torch.json"
        path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": i, "name": "NVIDIA H200", "computeMajor": 9,
                                                                              "computeMinor": 0} for i in range(2)],
                                    "traceEvents": events}))
        return path

    def script(self, name="hello.py", executable=False):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SCRIPT)
        if executable:
            path.chmod(0o755)
        return path

    def fits(self, text, width):
        for line in text.split("\n"):
            # The status line of a running program is wiped out before anything else comes.
            line = line.split("\r")[-1].replace("\x1b[K", "")
            if " " not in line.strip():  # a path is one word, to be copied
                continue
            self.assertLessEqual(len(line), width, f"at {width} columns:\n{text}")

    def says(self, *words, code=1, needles=(), cwd=None):
        """One sentence on stderr, nothing on stdout, no file left behind."""
        before = set(os.listdir(self.folder))
        result = self.run_command(TACHO, *words, code=code, cwd=cwd or self.folder)
        self.assertEqual(result.stdout, b"")
        self.one_sentence(result, *needles)
        self.assertEqual(set(os.listdir(self.folder)), before)
        return result.stderr.decode()

    # ---- slips

    def test_mistyped_commands_and_options(self):
        self.says("stat", "run.tacho", needles=["there is no command 'stat'", "did you mean: tacho stats run.tacho"])
        self.says("trcae", "--", "./app", needles=["did you mean: tacho trace -- ./app"])
        self.says("frobnicate", needles=["there is no command or program 'frobnicate'", "tacho --help"])
        self.says("trace", "--ouptut", "x", "--", "./app", code=125, needles=["--ouptut", "did you mean --output?"])
        self.says("sys", "sample", "--sampling-frq", "5", "--", "./app", code=125, needles=["did you mean --sampling-freq"])
        self.says("stats", "x.tacho", "--bye", "kernel", needles=["did you mean --by?", "tacho stats --help"])
        self.says("-o", "x.tacho", "./app", needles=["write the command first", "tacho trace -o x.tacho ./app"])
        self.says("sys", "smaple", "--", "./app", code=125, needles=["choose run, sample or avail"])
        self.says("sys", VCOPY, code=125, needles=[f"tacho sys sample -- {VCOPY}"])

    def test_a_script_without_python(self):
        self.script()
        self.says("hello.py", needles=["did you mean: tacho trace -- python3 hello.py"])
        self.says("hello.py", "--lr", "a b", needles=["did you mean: tacho trace -- python3 hello.py --lr 'a b'"])
        self.says("trace", "hello.py", code=127, needles=["not found in PATH; it is a script", "python3 hello.py"])
        self.says("trace", "--", "./hello.py", code=126, needles=["not executable; it is a script", "python3 ./hello.py"])
        self.says("sys", "sample", "./hello.py", code=126, needles=["python3 ./hello.py"])
        # Executable, but without the line that names the interpreter: the shell would run it as a shell script.
        self.script("run.py", executable=True)
        self.says("./run.py", needles=["did you mean: tacho trace -- python3 ./run.py"])
        self.says("trace", "./run.py", code=126, needles=["python3 ./run.py"])
        (self.folder / "job.sh").write_text("#!/bin/sh\nexit 3\n")
        self.says("job.sh", needles=["did you mean: tacho trace -- sh job.sh"])
        self.says("missing.py", needles=["missing.py: no such file"])

    def test_files_that_are_no_programs(self):
        self.trace(VCOPY, "-n", "1024", "-i", "1")
        self.says("t.tacho", needles=["did you mean: tacho info t.tacho"])
        (self.folder / "profile").mkdir()
        (self.folder / "profile" / "sysinfo.csv").write_text("a\n")
        self.says("profile/", needles=["is a folder", "did you mean: tacho analyze -p profile/"])
        (self.folder / "empty").mkdir()
        self.says("empty/", needles=["is a folder", "tacho --help"])
        (self.folder / "vcopy.cu").write_text("int main() {}\n")
        self.says("vcopy.cu", needles=["source code", "tacho trace -- ./vcopy"])
        (self.folder / "prog").write_bytes(VCOPY.read_bytes()[:4096])
        self.says("prog", needles=["chmod +x prog"])
        (self.folder / "notes.txt").write_text("hello\n")
        self.says("notes.txt", needles=["neither a command nor a program"])
        self.says("./nothing-here", code=127, needles=["no such file"])

    def test_wrong_files_for_the_commands_that_read_traces(self):
        self.script()
        (self.folder / "empty.tacho").write_bytes(b"")
        (self.folder / "short.json").write_text("{")
        (self.folder / "folder").mkdir()
        for command in (["stats"], ["info"], ["top"], ["busy"], ["flame"], ["report", "gaps"]):
            for wrong in ("missing.tacho", "hello.py", "empty.tacho", "short.json", "folder", VCOPY):
                with self.subTest(command=command, file=wrong):
                    self.says(*command, wrong, needles=[pathlib.Path(wrong).name])
            with self.subTest(command=command):
                self.says(*command, needles=["--help"])
        self.says("convert", "missing.tacho", "x.rpd", needles=["missing.tacho"])
        self.says("convert", "hello.py", needles=["tacho convert --help"])

    def test_no_program_to_run(self):
        self.says("trace", code=125, needles=["no command to run", "tacho trace -- ./app"])
        self.says("sys", "sample", code=125, needles=["no command to run"])
        self.says("trace", "--", "./missing", code=127, needles=["./missing: no such file"])
        self.says("trace", "--", "surely-no-such-program", code=127, needles=["not found in PATH"])
        self.says("trace", "--", "/tmp", code=126, needles=["is a folder"])

    # ---- the short way

    def test_a_program_is_traced(self):
        result = self.run_command(TACHO, VCOPY, "-n", "4096", "-b", "64", "-i", "3")
        self.assertIn(b"Kernels (3 dispatches", result.stderr)
        self.assertEqual(self.calls("kernel", "vecCopy", "vcopy.tacho"), 3)
        result = self.run_command(TACHO, VCOPY, "-n", "4096", "-b", "64", "-i", "1")
        self.assertIn(b"Kernels (1 dispatch, ", result.stderr)
        result = self.run_command(TACHO, "--", "sh", "-c", "exit 7", code=7)
        self.assertTrue((self.folder / "sh.tacho").exists())
        # A command's own name wins over a program of that name, and options behind the program are the program's.
        os.symlink("/bin/echo", self.folder / "echo-me")
        result = self.run_command(TACHO, "./echo-me", "--help", "-o", "x")
        self.assertEqual(result.stdout, b"--help -o x\n")
        self.assertTrue((self.folder / "echo-me.tacho").exists())

    def test_words_before_the_separator(self):
        self.run_command(TACHO, "trace", "-q", "-o", "a.tacho", VCOPY, "-n", "4096", "-i", "2")
        self.assertEqual(self.calls("kernel", "vecCopy", "a.tacho"), 2)

    def test_traces_are_called_after_the_script(self):
        self.script()
        self.script("pkg/mod.py")
        (self.folder / "pkg" / "__init__.py").write_text("")
        self.run_command(TACHO, "trace", "-q", "--", DEBIAN_PYTHON, "-u", "hello.py", "0")
        self.run_command(TACHO, "trace", "-q", "-f", "tacho,json", "--", DEBIAN_PYTHON, "-m", "pkg.mod", "0")
        self.run_command(TACHO, "sys", "sample", "-q", "--", "env", "A=1", DEBIAN_PYTHON, "hello.py", "0")
        self.run_command(TACHO, "trace", "-q", "--", DEBIAN_PYTHON, "-c", "pass")
        made = {path.name for path in self.folder.glob("*.*") if path.suffix in (".tacho", ".json")}
        self.assertEqual(made, {"hello.tacho", "hello.1.tacho", "pkg.mod.tacho", "pkg.mod.json", "python3.tacho"})

    # ---- help

    def commands(self):
        text = self.run_command(TACHO, "--help").stdout.decode()
        return re.findall(r"^  ([a-z]+) {2,}", text, re.M)

    def test_help_of_every_command(self):
        self.assertIn("doctor", self.commands())
        for words in [[], *([command] for command in self.commands()), ["sys", "run"], ["sys", "sample"], ["sys", "avail"]]:
            with self.subTest(words=words):
                text, code = on_terminal(80, TACHO, *words, "--help")
                self.assertEqual(code, 0, text)
                self.fits(text, 80)
                self.assertIn(" ".join(["Usage: tacho", *words]), text)
                self.assertNotIn("[OPTIONS]", text)
                self.assertNotIn("Option Group", text)
                self.assertNotIn("{false}", text)
                # In a pipe the lines are whole: completions read them.
                piped = self.run_command(TACHO, *words, "--help").stdout.decode()
                self.assertEqual(sorted(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", piped)),
                                 sorted(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text)))
        text, _ = on_terminal(80, TACHO, "trace", "--help")
        self.assertIn("Usage: tacho trace [options] -- program [arguments]", text)

    # ---- terminals

    def rows(self, text, column="Name"):
        """The last column's cells of the table under the line with that title."""
        lines = text.split("\n")
        head = next(i for i, line in enumerate(lines) if re.search(rf"\b{column}$", line))
        at = lines[head].index(column)
        cells = []
        for line in lines[head + 1:]:
            if len(line) <= at or line[at - 2:at].strip():
                break
            cells.append(line[at:])
        return cells

    def test_long_names_stay_apart(self):
        trace = self.kineto()
        for width in (60, *WIDTHS):
            for command in (["stats"], ["top"]):
                with self.subTest(width=width, command=command):
                    text, code = on_terminal(width, TACHO, *command, trace)
                    self.assertEqual(code, 0, text)
                    self.fits(text, width)
                    names = self.rows(text)
                    self.assertEqual(len(names), len(KERNELS), text)
                    self.assertEqual(len(set(names)), len(KERNELS), text)
            text, _ = on_terminal(width, TACHO, "info", trace)
            self.fits(text, width)
            names = self.rows(text.split("\nDevices")[0])
            self.assertEqual(len(set(names)), len(names), text)
        # The distinguishing part of the kernels' names is shown.
        text, _ = on_terminal(80, TACHO, "stats", trace)
        for word in ("Mul", "Div", "Add", "Pow", "Max", "128x128", "128x256"):
            self.assertIn(word, text)
        # Wide terminals are used: there everything that was left out is back.
        narrow, wide = (on_terminal(width, TACHO, "stats", trace)[0] for width in (80, 200))
        self.assertNotIn("StdDev ", narrow.split("\n")[0])
        self.assertIn("StdDev left out", narrow.replace("\n", " "))
        self.assertIn("StdDev ", wide.split("\n")[0])
        self.assertGreater(max(map(len, wide.split("\n"))), 180)
        # In a pipe names are whole.
        piped = self.run_command(TACHO, "stats", trace, "-M").stdout.decode()
        for name in KERNELS:
            self.assertIn(name, piped)

    def test_summary_fits(self):
        for width in WIDTHS:
            text, code = on_terminal(width, TACHO, "trace", "-o", f"{width}.tacho", "--", VCOPY, "-n", "4096", "-b", "64", "-i", "5",
                                     cwd=self.folder)
            self.assertEqual(code, 0, text)
            self.fits(text, width)
            self.assertRegex(text, r"Devices\n +Busy.*\n.* (CPU|GPU) 0  ")
            self.assertIn("tacho stats", text)
        for words in (["avail"], ["doctor"], ["info", "80.tacho", "--tables"]):
            for width in WIDTHS:
                text, _ = on_terminal(width, TACHO, *words, cwd=self.folder)
                # Commands to copy stay in one piece.
                self.fits("\n".join(line for line in text.split("\n") if "→" not in line), width)

    # ---- call stacks

    def sampled(self):
        self.script()
        result = self.run_command(TACHO, "sys", "sample", "-o", "s.tacho", "--", DEBIAN_PYTHON, "hello.py", "1.5")
        return result.stderr.decode()

    def test_nothing_is_drawn_while_the_program_has_the_terminal(self):
        slow = "import sys, time; sys.stdout.write('a'); sys.stdout.flush(); time.sleep(3.5); print('b')"
        text, code = on_terminal(80, TACHO, "trace", "-o", "quiet.tacho", "--", "/usr/bin/python3", "-c", slow, cwd=self.folder)
        self.assertEqual((text[:3], code), ("ab\n", 0), text)

    def test_own_code_first(self):
        summary = self.sampled()
        self.assertRegex(summary, r"Host time \(\d+ samples")
        section = summary.split("Host time", 1)[1]
        self.assertIn("hello.py:4", section)
        self.assertIn("encode", section)
        self.assertNotIn("encoder.py", section)
        self.assertIn("tacho stats s.tacho --by line", summary)

        own = self.run_command(TACHO, "stats", "s.tacho", "--by", "line").stdout.decode()
        self.assertIn("Your own code only", own)
        self.assertIn("--all-code", own)
        self.assertNotIn("encoder.py", own)
        every = self.run_command(TACHO, "stats", "s.tacho", "--by", "line", "--all-code", "--top", "0").stdout.decode()
        self.assertIn("encoder.py", every)
        self.assertNotIn("Your own code only", every)

        def table(*options):
            out = self.run_command(TACHO, "stats", "s.tacho", "--output-format", "csv", *options).stdout.decode()
            return list(csv.DictReader(io.StringIO(out)))
        # Nothing gets lost by leaving libraries out, and own times add up in every view.
        total = sum(int(row["SelfNs"]) for row in table("--by", "stack"))
        self.assertGreater(total, 0.8e9)
        for by in ("line", "stack"):
            self.assertEqual(sum(int(row["SelfNs"]) for row in table("--by", by, "--own-code")), total)
        # csv has all code by default.
        self.assertTrue(any("encoder.py" in row["File"] for row in table("--by", "line")))
        self.assertFalse(any("encoder.py" in row["File"] for row in table("--by", "line", "--own-code")))

        for width in WIDTHS:
            for by in ("line", "function", "stack"):
                for more in ([], ["--all-code"]):
                    text, code = on_terminal(width, TACHO, "stats", "s.tacho", "--by", by, *more, cwd=self.folder)
                    self.assertEqual(code, 0, text)
                    self.fits(text, width)
        text, _ = on_terminal(80, TACHO, "stats", "s.tacho", "--by", "line", cwd=self.folder)
        self.assertIn("hello.py:4", text)

    def test_twenty_rows_by_default(self):
        lines = "\n".join(f"def f{i}():\n    x = 0\n    for i in range(150000): x += i\n    return x" for i in range(40))
        (self.folder / "many.py").write_text(lines + "\n" + "for _ in range(3):\n" +
                                             "".join(f"    f{i}()\n" for i in range(40)))
        self.run_command(TACHO, "sys", "sample", "-q", "-f", "500", "-o", "s.tacho", "--", DEBIAN_PYTHON, "many.py")
        short = self.run_command(TACHO, "stats", "s.tacho", "--by", "line").stdout.decode()
        self.assertRegex(short, r"The first 20 of \d+ lines; --top 0 shows all")
        self.assertEqual(len(short.split("\n\n")[0].split("\n")), 21)
        all_rows = self.run_command(TACHO, "stats", "s.tacho", "--by", "line", "--top", "0").stdout.decode()
        self.assertGreater(len(all_rows.split("\n\n")[0].split("\n")), 30)
        self.assertNotIn("The first", all_rows)
        exact = self.run_command(TACHO, "stats", "s.tacho", "--by", "line", "--output-format", "csv").stdout.decode()
        self.assertGreater(len(exact.split("\n")), 30)

    # ---- by place

    def test_stats_by_place(self):
        trace = self.kineto()
        for by, rows in (("process", 1), ("device", 2), ("stream", 2), ("rank", 1)):
            named = self.stats(by, trace)
            working = {name: row for name, row in named.items() if row["Kernels"]}
            self.assertGreaterEqual(len(working), rows, named)
            self.assertEqual(sum(row["Kernels"] for row in working.values()), len(KERNELS))
            self.assertEqual(sum(row["KernelNs"] for row in working.values()),
                             sum(1000 * (50 - i) for i in range(len(KERNELS))))
        devices = self.stats("device", trace)
        self.assertEqual({name.split(":")[0] for name in devices}, {"GPU 0", "GPU 1"})
        threads = self.stats("thread", trace)
        self.assertEqual(sum(row["ApiCalls"] for row in threads.values()), len(KERNELS))
        self.says("stats", trace, "--by", "gpu", needles=["--by gpu", "device", "stream"])
        for width in WIDTHS:
            for by in ("process", "rank", "thread", "device", "stream"):
                text, code = on_terminal(width, TACHO, "stats", trace, "--by", by)
                self.assertEqual(code, 0)
                self.fits(text, width)

    # ---- convert

    def test_convert(self):
        trace = self.kineto()
        self.run_command(TACHO, "convert", trace, "a.tacho")
        result = self.run_command(TACHO, "export", trace, "-f", "tacho")
        self.assertEqual(result.stdout.decode(), "torch.tacho\n")
        self.run_command(TACHO, "convert", "a.tacho", "b.rpd")
        for file in ("a.tacho", "torch.tacho"):
            self.assertEqual(self.stats("kernel", file), self.stats("kernel", trace))
        self.assertEqual(self.stats("kernel", "b.rpd").keys(), self.stats("kernel", trace).keys())
        self.run_command(TACHO, "convert", "a.tacho", "tables", "-f", "csv")
        self.assertTrue(list((self.folder / "tables").glob("*_kernel_trace.csv")))
        self.says("convert", "a.tacho", "a.tacho", needles=["is the input"])
        self.says("convert", "a.tacho", "b.rpd", needles=["b.rpd", "--overwrite"])
        self.says("convert", "a.tacho", "b.xyz", needles=["b.xyz", "-f"])
        self.says("export", "a.tacho", "-f", "tacho", "-o", "a.tacho", needles=["is the trace itself"])
        self.run_command(TACHO, "convert", "a.tacho", "b.rpd", "--overwrite")

    # ---- info

    def test_info_tells_of_the_file_that_was_given(self):
        trace = self.kineto()
        text = self.run_command(TACHO, "info", trace).stdout.decode()
        size = trace.stat().st_size
        self.assertIn(f"torch.json ({size / 1024:.2f} KiB)", text)
        self.assertNotIn("B an event", text)

    def test_helpers_are_one_line(self):
        (self.folder / "job.sh").write_text(f"#!/bin/bash\nfor i in 1 2 3; do /bin/sh -c 'ls / | grep -q x; true'; done\n{VCOPY} "
                                            "-n 4096 -i 1 > /dev/null\n")
        self.run_command(TACHO, "trace", "-q", "--sampler", "timer", "-o", "t.tacho", "--", "bash", "job.sh")
        rows = self.run_command(TACHO, "query", "t.tacho", "--dialect", "tacho", "--output-format", "csv",
                                "SELECT count(*) FROM process").stdout.decode().split()
        text = self.run_command(TACHO, "info", "t.tacho").stdout.decode()
        listed = re.findall(r"^Process \d+ .*", text, re.M)
        every = self.run_command(TACHO, "info", "t.tacho", "--all-processes").stdout.decode()
        self.assertEqual(len(re.findall(r"^Process \d+ ", every, re.M)), int(rows[-1]))
        self.assertEqual(len(listed), 1, text)
        self.assertIn("vcopy", listed[0])
        folded = re.search(r"(\d+) more process(?:es)? without GPU work: (.*) \(--all-processes lists them\)", text)
        self.assertTrue(folded, text)
        self.assertEqual(int(folded[1]) + 1, int(rows[-1]), text)
        self.assertIn("bash", folded[2])
        # A shell that started nothing is the run itself.
        self.run_command(TACHO, "trace", "-q", "--sampler", "timer", "-o", "sh.tacho", "--", "bash", "-c", "true")
        self.assertRegex(self.run_command(TACHO, "info", "sh.tacho").stdout.decode(), r"of 1 process\n(?s:.*)Process \d+  bash -c true")

    # ---- doctor

    def doctor(self, *words, env=None, code=None):
        result = self.run_command(TACHO, "doctor", "--output-format", "json", *words, env=env, code=code)
        return json.loads(result.stdout), result

    def test_doctor_of_a_machine_that_works(self):
        answer, result = self.doctor(env={"OCL_ICD_VENDORS": ""})
        self.assertEqual(result.returncode, 1 if answer["faults"] else 0)
        states = collections.Counter(check["state"] for check in answer["checks"])
        self.assertEqual(states["fault"], answer["faults"])
        self.assertEqual(states["note"], answer["notes"])
        what = {check["what"]: check for check in answer["checks"]}
        for name in ("program", "libtacho.so", "system", "/dev/shm", "clock", "perf_event", "ptrace", "ulimit -n", "loader"):
            self.assertIn(name, what)
        self.assertEqual(what["libtacho.so"]["state"], "ok")
        for check in answer["checks"]:
            self.assertTrue(check["found"])
            if check["state"] == "fault":
                self.assertTrue(check["mend"], check)

    def test_doctor_finds_faults(self):
        vendors = self.folder / "vendors"
        vendors.mkdir()
        answer, _ = self.doctor(env={"OCL_ICD_VENDORS": str(vendors)}, code=None)
        devices = [check for check in answer["checks"] if check["what"] == "devices"]
        self.assertEqual(devices[0]["state"], "note")
        self.assertIn("pocl", devices[0]["mend"])
        (vendors / "broken.icd").write_text(str(self.folder / "libmissing.so") + "\n")
        answer, _ = self.doctor(env={"OCL_ICD_VENDORS": str(vendors)}, code=1)
        broken = next(check for check in answer["checks"] if check["what"] == "driver broken")
        self.assertEqual(broken["state"], "fault")
        self.assertIn("libmissing.so", broken["found"])
        self.assertIn(f"rm {vendors}/broken.icd", broken["mend"])
        answer, _ = self.doctor(env={"CUDA_INJECTION64_PATH": "/x/other.so", "LD_PRELOAD": ""})
        set_by_others = next(check for check in answer["checks"] if check["what"] == "CUDA_INJECTION64_PATH")
        self.assertEqual(set_by_others["mend"], "unset CUDA_INJECTION64_PATH")
        answer, _ = self.doctor(env={"TACHO_LIBRARY": str(self.folder / "libtacho.so")}, code=1)
        self.assertEqual(next(c for c in answer["checks"] if c["what"] == "libtacho.so")["state"], "fault")
        (self.folder / "libtacho.so").write_text("no library")
        answer, _ = self.doctor(env={"TACHO_LIBRARY": str(self.folder / "libtacho.so")}, code=1)
        self.assertIn("cannot be loaded", next(c for c in answer["checks"] if c["what"] == "libtacho.so")["found"])

    def test_doctor_reads_limits(self):
        result = self.run_command("/bin/sh", "-c", f"ulimit -n 100; exec {TACHO} doctor", code=None)
        self.assertRegex(result.stdout.decode(), r"note +ulimit -n +only 100 open files\n +→ ulimit -n 4096")

    def test_doctor_report(self):
        result = self.run_command(TACHO, "doctor", "--report", code=None, env={"HIP_VISIBLE_DEVICES": "3", "SECRET_TOKEN": "xyzzy"})
        text = (self.folder / "tacho-doctor.txt").read_text()
        self.assertIn("tacho-doctor.txt", result.stderr.decode())
        for part in ("tacho doctor", "libtacho.so", "/etc/os-release", "/proc/self/limits", "HIP_VISIBLE_DEVICES=3"):
            self.assertIn(part, text)
        self.assertNotIn("xyzzy", text)
        self.run_command(TACHO, "doctor", "--report", "mine.txt", code=None)
        self.assertTrue((self.folder / "mine.txt").exists())


if __name__ == "__main__":
    harness.main()
