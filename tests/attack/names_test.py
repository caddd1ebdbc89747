"""Names without a measure: they count against every limit, a file holds so much of them that every command keeps its 256 MiB, and what
was cut or left out is told."""
import json
import subprocess
import sys

import attack
import harness
from attack import TARGETS, variants

MIB = 1 << 20


class Names(attack.Attack):
    def record(self, count, length, *options):
        self.trace_of(TARGETS / "names", count, length, options=["--pool-size", "512M", *options], timeout=120)
        return (self.folder / "t.tacho").stat().st_size

    def peak(self, *words):
        """Most memory of a tacho with these words, in MiB."""
        script = ("import resource, subprocess, sys; code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode; "
                  "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024); sys.exit(code)")
        result = subprocess.run([sys.executable, "-c", script, str(attack.TACHO), *map(str, words)], capture_output=True, cwd=self.folder,
                                timeout=120)
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

    def test_many_short_names_of_a_ring(self):
        self.assertLess(self.record(60_000, 24, "--ring", "1M"), 4 * MIB)  # 1.4 of them names

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
        self.assertLess(self.peak("stats", "t.tacho", "--by", "marker"), 256)
        self.assertLess(self.peak("export", "t.tacho", "-f", "csv", "-d", "out"), 256)
        self.assertLess(self.peak("export", "t.tacho", "-f", "pftrace", "-o", "out.pftrace"), 256)
        self.assertLess(self.peak("query", "t.tacho", "select max(length(name)) from tacho.marker"), 256)


if __name__ == "__main__":
    attack.main()
