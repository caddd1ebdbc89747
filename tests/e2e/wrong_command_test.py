"""The right file with the wrong command, and wrong values: the answer names the command or the value that was meant."""
import json
import re
import shutil

import harness
from first_contact_test import on_terminal
from harness import DATA, EXAMPLES, TACHO

VCOPY = EXAMPLES / "vcopy"
TRACE_COMMANDS = (["stats"], ["info"], ["top"], ["busy"], ["flame"], ["report", "gaps"], ["report", "findings"])


class WrongCommand(harness.Case):
    def says(self, *words, code=1, needles=(), lacks=()):
        result = self.run_command(TACHO, *words, code=code)
        self.assertEqual(result.stdout, b"")
        self.one_sentence(result, *needles)
        for word in lacks:
            self.assertNotIn(word, result.stderr.decode())

    def one_trace(self, path, name="scale"):
        events = [{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 10 * i, "dur": 4,
                   "args": {"device": 0, "stream": 7, "correlation": i + 1}} for i in range(3)]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}],
                                    "traceEvents": events}))
        return path

    def profile(self, name="wl"):
        """A profile folder as far as its name goes."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        (folder / "sysinfo.csv").write_text("a\n")
        (folder / "pmc_perf.csv").write_text("Dispatch_ID,Kernel_Name\n")
        return name

    # ---- files

    def test_profile_folders_given_to_commands_for_traces(self):
        wl = self.profile()
        for command in TRACE_COMMANDS:
            with self.subTest(command=command):
                self.says(*command, wl, needles=["is a profile folder", f"did you mean: tacho analyze -p {wl}"])
        for words in (["query", wl, "SELECT 1"], ["convert", wl, "x.tacho"], ["ranks", wl],
                      ["merge", wl, "-o", "x.tacho"], ["trim", wl, "x.tacho", "--start", "1%"]):
            with self.subTest(words=words):
                self.says(*words, needles=["is a profile folder", f"tacho analyze -p {wl}"])
        self.profile("other")
        self.says("diff", wl, "other", needles=["are profile folders", "tacho analyze -p wl -p other"])
        self.says("stats", f"{wl}/pmc_perf.csv", needles=["profile folder", "tacho analyze -p wl"])
        self.says("analyze", f"{wl}/pmc_perf.csv", needles=["is a file of a profile folder", "tacho analyze -p wl"])

    def test_traces_given_to_analyze(self):
        self.one_trace(self.folder / "a.json")
        for words in (["a.json"], ["-p", "a.json"]):
            self.says("analyze", *words, needles=["a.json: is a trace", "did you mean: tacho stats a.json"])
        self.one_trace(self.folder / "ranks" / "r0.json")
        self.says("analyze", "ranks", needles=["holds traces, not counters", "tacho view ranks"])

    def test_folders_of_traces_given_to_commands_that_read_one(self):
        self.one_trace(self.folder / "one" / "a.json")
        for rank in range(3):
            self.one_trace(self.folder / "ranks" / f"rank{rank}.json")
        for command in TRACE_COMMANDS:
            with self.subTest(command=command):
                self.says(*command, "ranks", needles=["ranks: holds 3 traces", "tacho ranks ranks", "tacho merge ranks -o all.tacho"])
                self.says(*command, "one", needles=["one: holds one trace", "one/a.json"])

    def test_programs_given_to_commands_for_traces(self):
        shutil.copy(VCOPY, self.folder / "app")
        (self.folder / "train.py").write_text("pass\n")
        self.says("stats", "app", needles=["is a program, not a trace", "did you mean: tacho trace -- ./app"])
        self.says("stats", "train.py", needles=["is a program, not a trace", "did you mean: tacho trace -- python3 train.py"])
        self.says("diff", "a", "b", "--by", "kernels", needles=["choose kernel, api", "did you mean kernel?"])
        for word, meant in (("kernels", "kernel"), ("lines", "line"), ("operators", "operator"), ("apis", "api"), ("gpu", "")):
            self.says("stats", "a", "--by", word, needles=[f"did you mean --by {meant}?" if meant else "choose kernel, api, copy"])
        self.says("report", "a.json", "findings", needles=["did you mean: tacho report findings a.json"])
        self.says("report", "my run.tacho", "gaps", needles=["did you mean: tacho report gaps 'my run.tacho'"])
        self.one_trace(self.folder / "a.json")
        self.run_command(TACHO, "convert", "a.json", "a.tacho")
        self.says("recover", "a.tacho", needles=["is a trace", "tacho info a.tacho"])
        self.says("analyze", "app", needles=["is a program", "did you mean: tacho profile -- ./app"])

    def test_view_of_several_profile_folders_lists_them(self):
        harness.need_data()
        self.says("view", DATA / "workloads" / "vcopy", "-o", "x.html", needles=["profile folders", "MI200"], lacks=["no trace lies"])

    def test_tables_and_columns_of_sql(self):
        self.one_trace(self.folder / "a.json")
        self.says("query", "a.json", "SELECT * FROM kernels", needles=["no such table: kernels", "did you mean kernel?"])
        self.says("query", "a.json", "SELECT TotalCall FROM top", needles=["did you mean TotalCalls?"])
        self.says("query", "a.json", "SELECT * FROM zzzzzzzzz", needles=["--schema lists the tables"])

    def test_flame_without_stacks(self):
        self.one_trace(self.folder / "deep" / "a.json")
        result = self.run_command(TACHO, "flame", "deep/a.json")
        self.assertEqual(result.stdout, b"a.html\n")  # in the current folder
        self.assertTrue((self.folder / "a.html").exists())
        self.one_sentence(result, "deep/a.json has no call stacks", "tacho sys sample")

    # ---- values

    def test_options_in_plain_words(self):
        for words, needles in (
                (["stats"], ["FILE is missing: tacho stats FILE"]),
                (["diff", "a"], ["B is missing: tacho diff A B"]),
                (["trim", "a"], ["OUTPUT is missing: tacho trim INPUT OUTPUT"]),
                (["merge", "a"], ["--output FILE is missing"]),
                (["top", "x", "--top", "abc"], ["--top abc: write a whole number"]),
                (["top", "x", "--top", "-1"], ["--top", "whole number from 0 on", "-1"]),
                (["stats", "x", "--top", "-1"], ["--top", "whole number from 0 on", "-1"]),
                (["top", "x", "--top", "1.5"], ["--top 1.5: write a whole number"]),
                (["top", "x", "--top"], ["--top N: the value is missing"]),
                (["stats", "x", "--output-format", "xml"], ["choose text, json or csv, not 'xml'"]),
                (["stats", "x", "--output", "json"], ["did you mean --output-format?"]),
                (["stats", "x", "-f", "json"], ["did you mean --output-format?"]),
                (["stats", "x", "--format", "json"], ["did you mean --output-format?"]),
                (["export", "x", "-f", "json", "--pid", "0"], ["choose a number above 0, not 0"]),
                (["export", "x", "-f", "json", "--rpd-schema", "4"], ["choose 2 or 3, not '4'"]),
                (["export", "x", "-f", "json", "-o", "a", "-d", "b"], ["--output and --output-directory do not go together"]),
                (["query", "x", "--timeout", "0"], ["choose a number from 0.001"])):
            with self.subTest(words=words):
                self.says(*words, needles=[*needles, "--help"], lacks=["UINT", "TEXT", "{", "required"])
        for words in (["trace", "--sample-hz", "0", "--", "ls"], ["trace", "--sampler", "x", "--", "ls"]):
            self.says(*words, code=125, needles=["choose"])

    def test_metrics_of_other_architectures(self):
        self.says("metrics", "valu-utilization", "--arch", "sm_90", needles=["on sm_90, but on", "gfx942", "tacho metrics valu-utilization"])
        self.says("metrics", "SQ_INSTS_VALU", needles=["is a counter", "chart-valu"])
        self.says("metrics", "sq_insts_valu", needles=["is a counter", "chart-valu"])
        self.says("metrics", "sm__inst_executed", needles=["is a counter; metrics of sm_", "sol-ipc-active"])
        self.says("metrics", "sm__inst_executed_pipes", needles=["counters near it: sm__inst_executed_pipe_"])
        self.says("metrics", "SQ_WAVE", needles=["counters near it: SQ_WAVES"])
        self.says("metrics", "valuutilization", needles=["near it: sol-valu-utilization, valu-utilization"])
        self.says("metrics", "pipe-alu-inst", needles=["is on sm_", "tacho metrics --arch sm_", "pipe-alu-inst"])
        self.says("metrics", "pipe-alu-inst", "--arch", "gfx942", needles=["on gfx942, but on sm_", "tacho metrics --arch sm_"])
        self.says("metrics", "frobnicate", needles=["on any architecture"])
        result = self.run_command(TACHO, "metrics", "valu")
        self.assertIn(b"is the name of 2 metrics", result.stderr)
        self.assertIn(b"gfx950", result.stderr)

    # ---- help

    def test_help_is_plain(self):
        text = self.run_command(TACHO, "--help").stdout.decode()
        for command in re.findall(r"^  ([a-z]+) {2,}", text, re.M):
            if command == "sys":
                continue
            with self.subTest(command=command):
                help_text, code = on_terminal(80, TACHO, command, "--help", cwd=self.folder)
                self.assertEqual(code, 0)
                self.assertNotRegex(help_text, r" (UINT|INT|FLOAT|TEXT)\b")
                self.assertNotRegex(help_text, r"^Positionals|Print this help message", )
                self.assertNotIn(":{", help_text)
                self.assertEqual(on_terminal(80, TACHO, "help", command, cwd=self.folder), (help_text, code))
                # Examples stand before the options.
                self.assertRegex(help_text, r"(?s)Usage: tacho .*\nExamples:\n  tacho .*\nOptions:")
        self.says("help", "stast", needles=["did you mean: tacho help stats"])
        self.says("help", "frobnicate", needles=["there is no command 'frobnicate'"])
        self.assertEqual(self.run_command(TACHO, "help").stdout.decode(), text)

    def test_the_first_screen_fits(self):
        text, code = on_terminal(80, TACHO, cwd=self.folder)
        self.assertEqual(code, 1)
        lines = text.rstrip("\n").split("\n")
        self.assertLessEqual(len(lines), 24)
        self.assertLessEqual(max(map(len, lines)), 80)
        named = re.search(r"All commands:\n((?:  .*\n)+)", text)[1]
        listed = re.findall(r"^  ([a-z]+) {2,}", self.run_command(TACHO, "--help").stdout.decode(), re.M)
        self.assertEqual(re.findall(r"[a-z]+", named), listed)


if __name__ == "__main__":
    harness.main()
