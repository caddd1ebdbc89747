"""Names of any length and number: they count against every limit, a file holds so many of them that every command keeps its 256 MiB,
and a note counts the names that were cut or left out."""
import json
import subprocess
import sys

import attack
import harness
from attack import TARGETS, variants

MIB = 1 << 20


class Names(attack.Attack):
    COMMANDS = (("stats", "t.tacho", "--by", "marker"), ("export", "t.tacho", "-f", "csv", "-d", "out"),
                ("export", "t.tacho", "-f", "pftrace", "-o", "out.pftrace"), ("top", "t.tacho"), ("info", "t.tacho"),
                ("query", "t.tacho", "select max(length(name)) from tacho.marker"))

    def record(self, count, length, *options):
        self.trace_of(TARGETS / "names", count, length, options=["--pool-size", "512M", *options], timeout=120)
        return (self.folder / "t.tacho").stat().st_size

    def peak(self, *words):
        """Most memory of a tacho with these words, in MiB."""
        script = ("import resource, subprocess, sys; code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode; "
                  "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024); sys.exit(code)")
        result = subprocess.run([sys.executable, "-c", script, str(attack.TACHO), *map(str, words)], capture_output=True, cwd=self.folder,
                                timeout=200)
        self.assertEqual(result.returncode, 0, result.stderr)
        return int(result.stdout)

    @variants(ring=("--ring", "1M"), max_size=("--max-size", "1M"))
    def test_limit_of_size(self, options):
        size = self.record(1500, 20_000, *options)
        self.assertLess(size, 2 * MIB)
        self.assertIn("names took", self.notes())

    def test_aggregate(self):
        self.assertLess(self.record(1500, 20_000, "--aggregate"), 9 * MIB)
        self.assertIn("names took", self.notes())

    def test_ring_drops_the_names_of_dropped_events(self):
        """10 MB of names pass through a ring of 1 MiB: it keeps the newest events, with their names, and nothing else."""
        count = 400_000
        self.assertLess(self.record(count, 24, "--ring", "1M"), 3 * MIB // 2)
        self.assertNotIn("names took", self.notes())
        rows = json.loads(self.tacho("query", "t.tacho", "--output-format", "json",
                                     "select name from tacho.marker order by start desc").stdout)["rows"]
        self.assertGreater(len(rows), 5000)
        for back, (name,) in enumerate(rows):
            self.assertTrue(name.startswith(str(count - 1 - back)), (back, name))
        texts = json.loads(self.tacho("query", "t.tacho", "--output-format", "json", "select count(*) from rocpd_string").stdout)["rows"]
        self.assertLess(texts[0][0], len(rows) + 200)
        lost = json.loads(self.tacho("query", "t.tacho", "--output-format", "json",
                                     "select sum(count) from tacho.loss where \"table\" = 'marker'").stdout)["rows"]
        self.assertEqual(len(rows) + lost[0][0], count)

    def test_cut_names_stay_apart(self):
        self.record(200, 8000, "--max-size", "2M")
        table = json.loads(self.tacho("stats", "t.tacho", "--by", "marker", "--output-format", "json").stdout)
        self.assertEqual(len(table["rows"]), 200)

    def test_names_within_limits_stay_whole(self):
        self.record(100, 8000)
        table = json.loads(self.tacho("stats", "t.tacho", "--by", "marker", "--output-format", "json").stdout)
        self.assertEqual(len(table["rows"]), 100)
        self.assertNotIn("names took", self.notes())

    def test_memory_of_commands(self):
        if harness.sanitized():
            self.skipTest("a sanitizer takes memory of its own")
        size = self.record(2500, 30_000)
        self.assertLess(size, 48 * MIB)
        self.assertIn("names took", self.notes())
        for words in self.COMMANDS:
            self.assertLess(self.peak(*words), 256, words)

    def test_memory_of_commands_over_a_million_names(self):
        if harness.sanitized():
            self.skipTest("a sanitizer takes memory of its own")
        self.record(1_000_000, 24)
        for words in (self.COMMANDS[1], ("view", "t.tacho", "-o", "out.html")):
            self.assertLess(self.peak(*words), 256, words)


if __name__ == "__main__":
    attack.main()
