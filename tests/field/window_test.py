"""When recording is on: what the user asked for and what the program allows, for every source; windows that never open."""
import concurrent.futures
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402, the folder of end-to-end tests is no package
from harness import EXAMPLES, SOURCE, TACHO  # noqa: E402

# Marks m0 to m9, one each 0.2 s; the program pauses recording behind m2 and resumes it behind m7.
MARKS = r"""
#include <stdio.h>
#include <time.h>
#include <tacho/tacho.h>
int main(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  for (int i = 0; i < 10; ++i) {
    char name[8];
    snprintf(name, sizeof name, "m%d", i);
    tacho_mark(name);
    if (i == 2) tacho_pause();
    if (i == 7) tacho_resume();
    at.tv_nsec += 200000000;
    if (at.tv_nsec >= 1000000000) at.tv_nsec -= 1000000000, ++at.tv_sec;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
  }
  return 0;
}
"""

# Three functions of 0.4 s of CPU time each, of which the program pauses the second.
WORK = r"""
#include <stdint.h>
#include <time.h>
#include <tacho/tacho.h>
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}
#define WORK(name) __attribute__((noinline)) uint64_t name(void) { \
    const double end = now() + 400; uint64_t x = 1; \
    while (now() < end) for (int i = 0; i < 20000; ++i) x = x * 6364136223846793005u + 1442695040888963407u; \
    return x; }
WORK(before) WORK(paused_part) WORK(after)
int main(void) {
  uint64_t sum = before();
  tacho_pause();
  sum += paused_part();
  tacho_resume();
  sum += after();
  return (int)(sum & 1) * 0;
}
"""


class Windows(harness.Case):
    def compile(self, name, text):
        (self.folder / f"{name}.c").write_text(text)
        subprocess.run(["gcc", "-O1", "-g", "-I", SOURCE / "include", "-o", self.folder / name, self.folder / f"{name}.c", "-ldl"],
                       check=True)
        return self.folder / name

    # What was asked for -> the marks that lie within. --duration counts from when recording first is on.
    CASES = {
        (): "0 1 2 8 9",
        ("--start-paused",): "8 9",
        ("--duration", "0.5"): "0 1 2",
        ("--delay", "0.7", "--duration", "0.3"): "8",
        ("--start-paused", "--duration", "0.3"): "8",
        ("--stop-trigger", "marker:m1"): "0 1",
        ("--start-trigger", "marker:m4"): "8 9",
        ("--start-trigger", "marker:m8", "--delay", "0.1"): "8 9",
        ("--start-trigger", "marker:m8", "--duration", "0.1"): "8",
        ("--stop-trigger", "marker:m9", "--duration", "0.3"): "0 1",
        ("--start-paused", "--start-trigger", "marker:m1"): "1 2 8 9",
        ("--delay", "1.7"): "9",
    }

    def test_what_is_asked_for_and_what_the_program_allows(self):
        program = self.compile("marks", MARKS)

        def marks(number, options):
            file = f"t{number}.tacho"
            self.run_command(TACHO, "trace", "-q", "-o", file, *options, "--", program)
            return " ".join(sorted(name[1:] for name in self.stats("marker", file)))

        with concurrent.futures.ThreadPoolExecutor(len(self.CASES)) as pool:
            made = pool.map(marks, range(len(self.CASES)), self.CASES)
        for (options, wanted), found in zip(self.CASES.items(), made):
            with self.subTest(options=options):
                self.assertEqual(found, wanted)

    def functions(self, *options, command="trace"):
        self.run_command(TACHO, *command.split(), "-q", "--overwrite", "-o", "s.tacho", *options, "--", self.folder / "work")
        rows = self.stats("function", "s.tacho", "--all-code") if options else {}
        return {name for name in ("before", "paused_part", "after") if name in rows}

    def test_both_samplers_obey(self):
        self.compile("work", WORK)
        for sampler in ("timer", "perf"):
            probe = self.run_command(TACHO, "trace", "-q", "--overwrite", "-o", "p.tacho", "--sampler", sampler, "--", "true", code=None)
            if sampler == "perf" and b"perf" in probe.stderr and b"forbid" in probe.stderr:
                continue  # the machine lets nobody sample from outside
            with self.subTest(sampler=sampler):
                self.assertEqual(self.functions("--sampler", sampler), {"before", "after"})
                self.assertEqual(self.functions("--sampler", sampler, "--start-paused"), {"after"})
                self.assertEqual(self.functions("--sampler", sampler, "--duration", "0.2"), {"before"})

    def test_telemetry_obeys(self):
        program = self.compile("marks", MARKS)
        self.run_command(TACHO, "trace", "-q", "-o", "r.tacho", "--telemetry", "cpu", "--telemetry-hz", "50", "--delay", "0.7",
                         "--duration", "0.3", "--", program)
        made = self.run_command(TACHO, "query", "--dialect", "tacho", "--output-format", "csv", "r.tacho",
                                "SELECT count(*), max(start) - min(start) FROM reading").stdout.decode().split()
        count, span = map(int, made[-1].split(","))
        self.assertGreater(count, 0)
        self.assertLess(span, 400_000_000)

    # What was asked for -> why nothing came.
    NEVER = {
        ("--delay", "100"): "before --delay of 100 s was over",
        ("--start-paused",): "the program called no tacho_resume()",
        ("--start-trigger", "marker:never"): "the program set no marker 'never'",
        ("--start-trigger", "launch:900"): "and --start-trigger launch:900 waits for number 900",
        ("--start-trigger", "signal:USR2"): "tacho got no SIGUSR2",
    }

    def test_windows_that_never_open_say_why(self):
        for options, reason in self.NEVER.items():
            made = self.run_command(TACHO, "trace", "--overwrite", "-o", "n.tacho", *options, "--", EXAMPLES / "vcopy", "-n", "64")
            with self.subTest(options=options):
                said = " ".join(made.stderr.decode().split())
                self.assertIn("recording never began: ", said)
                self.assertIn(reason, said)

    def test_rocprofv3_never_blames_the_program(self):
        rocprofv3 = harness.BUILD / "personalities" / "rocprofv3"
        for options, reason in {("--selected-regions",): "no roctxProfilerResume()",
                                ("-P", "100:1:1"): "before its first collection period at 100 s"}.items():
            made = self.run_command(rocprofv3, "--kernel-trace", *options, "-o", "a", "--", EXAMPLES / "vcopy", "-n", "64", code=None)
            said = " ".join(made.stderr.decode().split())
            self.assertIn("recording never began: ", said)
            self.assertIn(reason, said)
            self.assertNotIn("no kernel ran", said)

    def test_a_filter_that_matches_nothing_names_what_was_launched(self):
        self.run_command(TACHO, "trace", "-q", "-o", "f.tacho", "--kernel-include", "nothing", "--", EXAMPLES / "vcopy", "-n", "64")
        said = " ".join(self.run_command(TACHO, "info", "f.tacho").stdout.decode().split())
        self.assertIn("the filter let no kernel pass; the program launched vecCopy", said)

    def test_the_first_launch_can_stop(self):
        for options, wanted in ((("--stop-trigger", "launch:1"), 0), (("--start-paused", "--start-trigger", "launch:1"), 5),
                                (("--start-paused", "--start-trigger", "launch:3"), 3)):
            with self.subTest(options=options):
                self.run_command(TACHO, "trace", "-q", "--overwrite", "-o", "l.tacho", *options, "--", EXAMPLES / "vcopy", "-n", "64",
                                 "-i", "5")
                self.assertEqual(sum(row["Calls"] for row in self.stats("kernel", "l.tacho").values()), wanted)


if __name__ == "__main__":
    harness.main()
