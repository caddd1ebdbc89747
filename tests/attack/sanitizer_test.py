"""Programs that were built with a sanitizer run under tacho as they run without it: same code, same output, the user's
options untouched, no report that names libtacho.so."""
import unittest

import attack
import harness
from attack import TARGETS, variants

KINDS = {"asan": "asan", "asan_static": "asan_static", "tsan": "tsan", "tsan_static": "tsan_static", "ubsan": "ubsan",
         "lsan": "lsan"}
EXPECTED = 5 * 2 * 60  # markers: main, three threads, a child; a range and a mark each


@unittest.skipIf(harness.sanitized(), "the programs here bring sanitizers of their own")
class Sanitizers(attack.Attack):
    def program(self, kind):
        program = TARGETS / f"workload_{kind}"
        if not program.exists():
            self.skipTest(f"{program.name} was not built")
        return program

    @variants(**KINDS)
    def test_traced(self, kind):
        self.same_as_without(self.program(kind), "60")
        self.assertEqual(self.markers(), EXPECTED)

    @variants(**KINDS)
    def test_from_a_shell(self, kind):
        self.same_as_without("/bin/sh", "-c", f"{self.program(kind)} 60; {self.program(kind)} 60")
        self.assertEqual(self.markers(), 2 * EXPECTED)

    @variants(**KINDS)
    def test_sampled(self, kind):
        result = self.tacho("sys", "sample", "-o", "s.tacho", "--", self.program(kind), "2000")
        self.assertEqual(result.stdout, b"done 1 0\n")
        self.assertNotIn(b"Sanitizer", result.stderr)

    @variants(asan=("ASAN_OPTIONS", "verify_asan_link_order=1:abort_on_error=1"),
              tsan=("TSAN_OPTIONS", "halt_on_error=1:second_deadlock_stack=1"))
    def test_options_stay(self, option):
        name, value = option
        program = self.program(name.split("_")[0].lower())
        self.same_as_without(program, "60", env={name: value})
        traced = self.trace_of("/bin/sh", "-c", f"printf %s \"${name}\"", env={name: value}, output="o.tacho")
        self.assertEqual(traced.stdout.decode(), value)


if __name__ == "__main__":
    attack.main()
