"""Markers of programs that ran before `tacho attach` came: through NVTX, with its real header where it is installed, and ROCTx."""
import csv
import os

import attach_test
import harness
from harness import TACHO

PROGRAM = harness.TARGETS / "attach_markers"
REAL = harness.TARGETS / "attach_markers_real"


class Markers(attach_test.Attached):
    def markers(self):
        """Text, domain and payload of each marker, in order."""
        sql = "SELECT l.name, l.domain, m.payload FROM marker m JOIN label l ON l.id = m.dim ORDER BY m.start"
        answer = self.run_command(TACHO, "query", "a.tacho", sql, "--dialect", "tacho", "--output-format", "csv")
        return [tuple(row) for row in csv.reader(answer.stdout.decode().splitlines()[1:])]


class Nvtx(Markers):
    def test_all_markers_of_each_round(self):
        for path in [PROGRAM] + [REAL] * REAL.exists():
            program = self.start(path)
            for attach in range(3):
                with self.subTest(path.name, attach=attach):
                    self.attach(program, "--duration", "0.5")
                    self.assertEqual(self.leftovers(program.pid), ([], [], []))
                    self.check_rounds(self.markers(), attach)
                    info = self.run_command(TACHO, "info", "a.tacho").stdout.decode()
                    self.assertIn("nothing was lost", info)
                    self.assertIn("that the program had registered with NVTX before tacho attached", info)
            self.assertRegex(self.end(program), r"^\d+ rounds, tables as before$")

    def check_rounds(self, rows, attach):
        numbers = [int(payload) for text, _, payload in rows if text == "numbered"]
        self.assertGreater(len(numbers), 20)
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))
        domains = {text: {domain for each, domain, _ in rows if each == text} for text in ("numbered", "outer", "inner", "range")}
        self.assertEqual(domains, dict.fromkeys(domains, {"NVTX"}))
        # tacho comes and leaves in the middle of a round.
        for text in ("outer", "inner", "range", "(text from before tacho attached)"):
            count = sum(each == text for each, _, _ in rows)
            self.assertLessEqual(abs(count - len(numbers) * (2 if attach > 0 and text.startswith("(") else 1)), 2, text)
        late = [(text, domain) for text, domain, _ in rows if text == "registered late" or domain == "made late"]
        # What is registered in one attach is not known in the next.
        self.assertEqual(set(late), {("registered late", "made late")} if attach == 0 else set())
        self.assertLessEqual(abs(len(late) - (len(numbers) if attach == 0 else 0)), 2)

    def test_markers_that_are_not_asked_for(self):
        program = self.start(PROGRAM)
        self.attach(program, "--duration", "0.3", "--kernel-trace")
        self.assertEqual(self.markers(), [])
        self.assertRegex(self.end(program), "tables as before")

    def test_another_tools_tables_stay(self):
        """A program whose NVTX leads to another tool: what the tool gets stays."""
        if not REAL.exists():
            self.skipTest("NVIDIA's headers (nvtx3/nvToolsExt.h) are not installed")
        (self.folder / "tool.c").write_text(
            "#include <stddef.h>\ntypedef void (*F)(void);\nstatic int count;\n"
            "static void mark(const void* e) { (void)e; ++count; }\n"
            "typedef struct { size_t size; int (*table)(int, F***, unsigned*); } Callbacks;\n"
            "int InitializeInjectionNvtx2(const void* (*get)(unsigned)) {\n"
            "  const Callbacks* c = get(1); F** table; unsigned size;\n"
            "  if (c == 0 || c->table(1, &table, &size) == 0) return 0;\n"
            "  *table[1] = (F)mark; return 1; }\n")
        self.run_command("gcc", "-O2", "-shared", "-fPIC", "-o", "libtool.so", "tool.c")
        program = self.start(REAL, env={**os.environ, "NVTX_INJECTION64_PATH": str(self.folder / "libtool.so")})
        self.attach(program, "--duration", "0.3")
        self.assertEqual(self.markers(), [])
        self.assertIn("another tool takes markers", self.run_command(TACHO, "info", "a.tacho").stdout.decode())
        self.assertRegex(self.end(program), "tables as before")


class Roctx(Markers):
    def library(self):
        """What ROCTx's library does without a tool: levels of each thread, numbers of ranges."""
        (self.folder / "roctx.c").write_text(
            "#include <stdint.h>\nstatic __thread int level;\nstatic uint64_t last;\nvoid roctxMarkA(const char* t) { (void)t; }\n"
            "int roctxRangePushA(const char* t) { (void)t; return level++; }\nint roctxRangePop(void) { return level == 0 ? -1 : --level; }\n"
            "uint64_t roctxRangeStartA(const char* t) { (void)t; return ++last; }\nvoid roctxRangeStop(uint64_t r) { (void)r; }\n")
        self.run_command("gcc", "-O2", "-shared", "-fPIC", "-o", "libroctx64.so.4", "roctx.c")
        return "./libroctx64.so.4"

    def test_all_markers_of_each_round(self):
        program = self.start(PROGRAM, "roctx", self.library())
        for _ in range(3):
            self.attach(program, "--duration", "0.5")
            rows = self.markers()
            self.assertEqual({domain for _, domain, _ in rows}, {"ROCTx"})
            numbers = [int(text.split()[1]) for text, _, _ in rows if text.startswith("mark ")]
            self.assertGreater(len(numbers), 20)
            self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))
            for text in ("outer", "inner", "range"):
                self.assertLessEqual(abs(sum(each == text for each, _, _ in rows) - len(numbers)), 1, text)
            self.assertNotIn("from before", [text for text, _, _ in rows])
            self.assertIn("nothing was lost", self.run_command(TACHO, "info", "a.tacho").stdout.decode())
        self.assertRegex(self.end(program), r"^\d+ rounds, levels and numbers right, words as before$")


if __name__ == "__main__":
    harness.main()
