"""A trace that was cut off says so in every command; where nothing is left of it, the command ends in an error."""
import harness
from harness import EXAMPLES, TACHO

VCOPY = EXAMPLES / "vcopy"


class CutFile(harness.Case):
    def setUp(self):
        super().setUp()
        self.trace(VCOPY, "-n", "4096", "-b", "64", "-i", "20")
        whole = (self.folder / "t.tacho").read_bytes()
        (self.folder / "part.tacho").write_bytes(whole[:-40])  # without the directory: every slab is there
        for size in range(len(whole) * 3 // 4, 1000, -256):
            (self.folder / "none.tacho").write_bytes(whole[:size])
            if b"; 0 events" in self.run_command(TACHO, "info", "none.tacho").stdout:
                break
        else:
            self.fail("no length leaves a readable file without events")
        self.whole = whole

    def commands(self, file):
        return (["stats", file], ["stats", file, "--by", "api"], ["top", file], ["busy", file], ["report", "findings", file],
                ["report", "gaps", file], ["query", file, "SELECT count(*) FROM kernel"], ["diff", file, "t.tacho"],
                ["diff", "t.tacho", file], ["convert", file, "c.rpd", "--overwrite"], ["export", file, "-f", "json", "-o", "x.json",
                "--overwrite"], ["trim", file, "cut.tacho", "--start", "0%", "--overwrite"], ["view", file, "-o", "v.html", "--overwrite"])

    def test_what_is_left_is_answered_and_said_to_be_a_part(self):
        for words in self.commands("part.tacho"):
            with self.subTest(words=words):
                result = self.run_command(TACHO, *words)
                self.assertIn(b"part.tacho: was not finished by its writer", result.stderr)
        self.assertEqual(self.calls("kernel", "vecCopy", "part.tacho"), 20)

    def test_nothing_left_is_an_error(self):
        for words in self.commands("none.tacho"):
            with self.subTest(words=words):
                result = self.run_command(TACHO, *words, code=1)
                self.assertEqual(result.stdout, b"")
                self.one_sentence(result, "none.tacho: was not finished by its writer", "no event is left")
        # What the run was is still told.
        result = self.run_command(TACHO, "info", "none.tacho")
        self.assertIn(b"vcopy", result.stdout)
        self.assertIn(b"was not finished", result.stderr)

    def test_whole_files_say_nothing(self):
        for words in self.commands("t.tacho"):
            with self.subTest(words=words):
                self.assertNotIn(b"not finished", self.run_command(TACHO, *words).stderr)

    def test_what_is_made_of_a_part_tells_it(self):
        self.run_command(TACHO, "trim", "part.tacho", "trimmed.tacho", "--start", "0%")
        self.run_command(TACHO, "merge", "part.tacho", "t.tacho", "-o", "merged.tacho")
        self.run_command(TACHO, "convert", "part.tacho", "copied.tacho")
        for file in ("trimmed.tacho", "merged.tacho", "copied.tacho"):
            for words in (["stats", file], ["query", file, "SELECT 1"]):
                with self.subTest(words=words):
                    result = self.run_command(TACHO, *words)
                    self.assertIn(f"{file}: part.tacho: was not finished by its writer".encode(), result.stderr)

    def test_other_formats(self):
        self.run_command(TACHO, "export", "t.tacho", "-f", "pftrace", "-o", "w.pftrace")
        whole = (self.folder / "w.pftrace").read_bytes()
        (self.folder / "cut.pftrace").write_bytes(whole[:len(whole) * 2 // 3])
        for words in (["stats", "cut.pftrace"], ["busy", "cut.pftrace"], ["query", "cut.pftrace", "SELECT 1"]):
            with self.subTest(words=words):
                self.assertIn(b"cut.pftrace: the trace is not whole", self.run_command(TACHO, *words).stderr)
        self.run_command(TACHO, "export", "t.tacho", "-f", "json", "-o", "w.json")
        (self.folder / "cut.json").write_text((self.folder / "w.json").read_text()[:-200])
        for command in ("stats", "busy"):
            self.one_sentence(self.run_command(TACHO, command, "cut.json", code=1), "cut.json", "cut off")

    def test_ranks_names_the_rank_that_was_cut(self):
        result = self.run_command(TACHO, "ranks", "part.tacho", code=1)  # it holds no collective
        self.assertIn(b"part.tacho: was not finished by its writer", result.stderr)


if __name__ == "__main__":
    harness.main()
