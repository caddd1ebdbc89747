"""Outputs of commands: on standard output they are alone, numbers keep their digits on a terminal."""
import json
import os
import pty
import re
import sqlite3
import subprocess
import xml.etree.ElementTree

import harness
from harness import BUILD, DATA, TACHO, need_data

STEPS = harness.TARGETS / "opencl_steps"
RPD = DATA / "rpd" / "mytrace.rpd"
RUN = DATA / "workloads" / "synth_a" / "MI200"


class StandardOutput(harness.Case):
    """Whatever a command has to say beside its output goes to stderr when the output goes to standard output."""

    def bytes_of(self, *words, code=0):
        result = self.run_command(TACHO, *words, code=code)
        return result.stdout, result.stderr.decode()

    def test_exports(self):
        self.trace(STEPS)
        for name in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            text, said = self.bytes_of("export", "t.tacho", "-f", "json", "-o", name)
            self.assertIn("traceEvents", json.loads(text))
            self.assertEqual(said, "")
        text, _ = self.bytes_of("export", "t.tacho", "-f", "rocprofv3", "-o", "-")
        self.assertIn("rocprofiler-sdk-tool", json.loads(text))
        self.bytes_of("export", "t.tacho", "-f", "pftrace", "-o", "file.pftrace")
        text, _ = self.bytes_of("export", "t.tacho", "-f", "pftrace", "-o", "-")
        self.assertEqual(text, (self.folder / "file.pftrace").read_bytes())
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["file.pftrace", "t.tacho"])

    def test_redirected_to_a_file(self):
        # The shell's file is the same one as before, and its earlier contents stay.
        need_data()
        with open(self.folder / "out", "w", encoding="utf-8") as file:
            file.write("before\n")
            file.flush()
            subprocess.run([TACHO, "export", RPD, "-f", "json", "-o", "/dev/stdout"], stdout=file, check=True, timeout=120)
        first, rest = (self.folder / "out").read_text().split("\n", 1)
        self.assertEqual(first, "before")
        self.assertIn("traceEvents", json.loads(rest))

    def test_conversions(self):
        need_data()
        text, said = self.bytes_of("merge", RPD, "-f", "json", "-o", "-")
        self.assertIn("traceEvents", json.loads(text))
        self.assertIn("mytrace.rpd is now -", said)
        text, said = self.bytes_of("trim", RPD, "-", "-f", "json", "--start", "50%")
        self.assertIn("traceEvents", json.loads(text))
        self.assertIn("tacho: kept", said)
        result = self.run_command(BUILD / "personalities" / "rpd2tracing", RPD, "/dev/stdout")
        self.assertIn("traceEvents", json.loads(result.stdout))
        self.assertIn("Timestamps:", result.stderr.decode())
        _, said = self.bytes_of("merge", RPD, "-o", "-", code=1)
        self.assertIn("add --format", said)

    def test_what_needs_a_file_says_so(self):
        need_data()
        for words in (("export", RPD, "-f", "rpd", "-o", "-"), ("export", RPD, "-f", "rocpd", "-o", "/dev/stdout"),
                      ("merge", RPD, "-f", "tacho", "-o", "-"), ("trim", RPD, "-", "-f", "rpd", "--start", "50%"), ("trace", "-o", "-", "--", "/bin/true"),
                      ("trace", "-f", "json", "-o", "/dev/stdout", "--", "/bin/true")):
            result = self.run_command(TACHO, *words, code=None)
            self.assertIn(result.returncode, (1, 125), words)
            self.assertEqual(result.stdout, b"", words)
            self.one_sentence(result, "standard output", "name")
        result = self.run_command(BUILD / "personalities" / "runTracer.sh", "-o", "/dev/stdout", "/bin/true", code=125)
        self.one_sentence(result, "standard output")
        self.assertTrue(os.path.lexists("/dev/stdout"))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_call_stacks(self):
        self.run_command(TACHO, "sys", "sample", "-o", "s.tacho", "--", STEPS, "--steps", "300")
        text, said = self.bytes_of("flame", "s.tacho", "-o", "-")
        self.assertTrue(text.startswith(b"<!doctype html>"), text[:80])
        self.assertTrue(text.rstrip().endswith(b"</html>"), text[-80:])
        self.assertNotIn("-\n", said)
        text, said = self.bytes_of("export", "s.tacho", "-f", "folded", "-o", "-")
        for line in text.decode().splitlines():
            self.assertRegex(line, r" \d+$")
        self.assertIn("FILE.gpu.folded", said)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["s.tacho"])

    def test_analyze(self):
        need_data()
        text, _ = self.bytes_of("analyze", "-p", RUN, "-b", "4", "--output-format", "json", "-o", "-")
        self.assertEqual(json.loads(text)["schema"], "tacho-analysis/1")
        text, _ = self.bytes_of("analyze", "-p", RUN, "-b", "4", "--output-format", "svg", "-o", "/dev/stdout")
        xml.etree.ElementTree.fromstring(text)
        text, _ = self.bytes_of("analyze", "-p", RUN, "-b", "4", "--output-format", "csv", "-o", "-")
        self.assertEqual(text.count(b"\n"), len(text.splitlines()))
        self.assertEqual(list(self.folder.iterdir()), [])


class Mistakes(harness.Case):
    def test_unknown_words_in_the_order_in_which_they_were_written(self):
        for words in (("profile", "0", "1", "--x"), ("analyze", "-p", ".", "--no", "--never", "--nowhere")):
            result = self.run_command(BUILD / "personalities" / "rocprof-compute", *words, code=None)
            self.one_sentence(result, "these arguments were not expected: " + " ".join(words[-3:]))
        result = self.run_command(TACHO, "stats", "a", "b", "c", code=1)
        self.one_sentence(result, "these arguments were not expected: b c;")
        result = self.run_command(TACHO, "stats", "a", "--outptu-format", "text", code=1)
        self.one_sentence(result, "--outptu-format", "did you mean --output-format")


class Terminal(harness.Case):
    def on_terminal(self, *words, columns=80):
        master, slave = pty.openpty()
        process = subprocess.Popen([str(word) for word in (TACHO, *words)], stdout=slave, cwd=self.folder,
                                   env={**os.environ, "TERM": "dumb", "COLUMNS": str(columns)})
        os.close(slave)
        text = b""
        try:
            while chunk := os.read(master, 65536):
                text += chunk
        except OSError:  # Linux's end of a terminal
            pass
        os.close(master)
        self.assertEqual(process.wait(), 0, text)
        return text.decode().replace("\r\n", "\n")

    def test_integers_keep_their_digits(self):
        with sqlite3.connect(self.folder / "big.rpd") as database:
            need_data()
            with sqlite3.connect(RPD) as source:
                source.backup(database)
        sql = ("SELECT 157178000 AS whole, -9223372036854775807 AS least, 1572346.5 AS part, 'a long text that needs its room' AS text, "
               "123456789012345 AS further, 987654321098765 AS last")
        numbers = ("157178000", "-9223372036854775807", "1572346.500000", "123456789012345", "987654321098765")
        for columns, shown in ((60, 3), (120, 5)):
            text = self.on_terminal("query", "big.rpd", sql, columns=columns)
            for number in numbers[:shown]:
                self.assertRegex(text, rf"(^|\s){re.escape(number)}(\s|$)")
            self.assertEqual("further, last left out" in text, shown < 5, text)

    def test_placeholders_in_the_name(self):
        ranks = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "WHERE": "here"}
        for name, written in (("rank%rank%.tacho", "rank3.tacho"), ("%env{WHERE}%.tacho", "here.3.tacho"), ("plain.tacho", "plain.3.tacho")):
            self.run_command(TACHO, "trace", "-q", "-o", name, "--", "/bin/true", env=ranks)
            self.assertTrue((self.folder / written).exists(), (name, os.listdir(self.folder)))
        result = self.run_command(TACHO, "trace", "-q", "-o", "a%rank%.tacho", "--", "/bin/true")
        self.assertTrue((self.folder / "a.tacho").exists())
        self.assertIn("%rank% is ignored", result.stderr.decode())
        result = self.run_command(TACHO, "trace", "-q", "-o", "%gpumodel%.tacho", "--", "/bin/true", code=125)
        self.one_sentence(result, "%gpumodel%")

    def test_kernels_have_one_number(self):
        # Table 0.1, -k, the roofline's table, its plot and the drawing call a kernel the same.
        need_data()
        for chosen in ((), ("2", "3")):
            words = ("analyze", "-p", RUN, "-b", "4", *(("-k", *chosen) if chosen else ()))
            drawing = self.run_command(TACHO, *words, "--output-format", "svg").stdout.decode()
            expected = set(chosen) if chosen else {"0", "1", "2", "3", "4"}
            self.assertEqual(set(re.findall(r'class="number"[^>]*>(\d+)<', drawing)), expected)
            self.assertEqual(set(re.findall(r'class="kernel"[^>]*>(\d+)  ', drawing)), expected)
            table = self.run_command(TACHO, *words, "--no-advice").stdout.decode()
            rows = table.split("4.1 Roofline\n")[1].split("\n")[1:1 + len(expected)]
            self.assertEqual({row.split()[0] for row in rows}, expected)
            plot = table.split("GFLOP/s over FLOP/byte")[1].split("└")[0]
            drawn = {number for line in re.findall(r"[│┤](.*)", plot) for number in re.findall(r"(?<![A-Za-z0-9])\d+(?![A-Za-z0-9])", line)}
            self.assertEqual(drawn, expected)


if __name__ == "__main__":
    harness.main()
