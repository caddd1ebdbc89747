"""CPU time of threads and processes that live shorter than a sampling period adds up to what the kernel says.

The programs print what getrusage() gives; the trace's samples must sum to it, at every rate and however many run at once.
"""
import json
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402, the folder of end-to-end tests is no package
from harness import TACHO  # noqa: E402

BURN = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static double milliseconds;
static double cpu(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec * 1e3 + t.tv_nsec * 1e-6; }
__attribute__((noinline)) void burn(clockid_t clock) {
  volatile double x = 1;
  for (const double end = cpu(clock) + milliseconds; cpu(clock) < end;) for (int i = 0; i < 300; ++i) x *= 1.0000001;
}
static void* in_thread(void* unused) { burn(CLOCK_THREAD_CPUTIME_ID); return unused; }
static double used(int who) {
  struct rusage u;
  getrusage(who, &u);
  return u.ru_utime.tv_sec * 1e3 + u.ru_utime.tv_usec * 1e-3 + u.ru_stime.tv_sec * 1e3 + u.ru_stime.tv_usec * 1e-3;
}
int main(int count, char** words) {  /* threads N MS AT_ONCE | fork N MS | exec N MS | once MS | leaves MS */
  const char* how = words[1];
  if (!strcmp(how, "once") || !strcmp(how, "leaves")) {
    milliseconds = atof(words[2]);
    burn(CLOCK_PROCESS_CPUTIME_ID);
    if (!strcmp(how, "leaves")) _exit(0);
    return 0;
  }
  const int all = atoi(words[2]), at_once = count > 4 ? atoi(words[4]) : 1;
  milliseconds = atof(words[3]);
  static pthread_t threads[1000];
  for (int i = 0; i < all; i += at_once) {
    if (!strcmp(how, "threads")) {
      for (int j = 0; j < at_once; ++j) if (pthread_create(&threads[j], 0, in_thread, 0) != 0) return 1;
      for (int j = 0; j < at_once; ++j) pthread_join(threads[j], 0);
      continue;
    }
    const pid_t child = fork();
    if (child == 0) {
      if (!strcmp(how, "exec")) execl(words[0], words[0], "once", words[3], (char*)0);
      burn(CLOCK_PROCESS_CPUTIME_ID);
      _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
  }
  printf("%f\n", used(RUSAGE_SELF) + used(RUSAGE_CHILDREN));
  return 0;
}
"""


class CpuTime(harness.Case):
    def setUp(self):
        super().setUp()
        if shutil.which("cc") is None:
            self.skipTest("no C compiler here")
        (self.folder / "burn.c").write_text(BURN)
        self.run_command("cc", "-O1", "-g", "-fno-optimize-sibling-calls", "-o", "burn", "burn.c", "-lpthread")

    def sampled(self, *words, hz=100, more=()):
        """(ms by the kernel, ms of all samples)."""
        result = self.trace(self.folder / "burn", *words, options=("--overwrite", "--sampler", "timer", "--sample-hz", hz, *more))
        return float(result.stdout or 0), self.query("SELECT sum(duration) FROM sample")[0][0] / 1e6

    def query(self, statement):
        result = self.run_command(TACHO, "query", "--dialect", "tacho", "t.tacho", statement, "--output-format", "json")
        return json.loads(result.stdout)["rows"]

    def functions(self):
        result = self.run_command(TACHO, "stats", "t.tacho", "--by", "function", "--all-code", "--output-format", "json")
        table = json.loads(result.stdout)
        titles = [column["title"] if isinstance(column, dict) else column for column in table["columns"]]
        return [dict(zip(titles, row)) for row in table["rows"]]

    def time_of(self, name, column):
        return sum(row[column] for row in self.functions() if row["Name"] == name) / 1e6

    def test_threads_of_two_to_twenty_ms(self):
        for hz in (100, 1000):
            for length, count in ((2, 200), (5, 100), (20, 40)):
                for at_once in (1, 40):
                    kernel, samples = self.sampled("threads", count, length, at_once, hz=hz)
                    self.assertGreater(kernel, 0.9 * count * length)
                    self.assertAlmostEqual(samples / kernel, 1, delta=0.05, msg=f"{hz} Hz, {length} ms, {at_once} at once")

    def test_hundreds_at_once(self):
        kernel, samples = self.sampled("threads", 600, 2, 600)
        self.assertAlmostEqual(samples / kernel, 1, delta=0.05)

    def test_from_outside(self):
        """--sampler perf: the kernel tells at a thread's end what its samples do not stand for. Its clock for events also counts
        interrupts and what a host takes from a virtual machine, which getrusage() leaves out: more on a busy machine."""
        for words in (("threads", 200, 2, 1), ("threads", 300, 2, 300), ("threads", 40, 20, 40), ("fork", 40, 8), ("exec", 40, 8)):
            result = self.trace(self.folder / "burn", *words, options=("--overwrite", "--sampler", "perf"))
            if b"call stacks are not sampled" in result.stderr or b"without the time in the kernel" in result.stderr:
                self.skipTest("no perf events here")
            kernel, samples = float(result.stdout), self.query("SELECT sum(duration) FROM sample")[0][0] / 1e6
            self.assertGreater(samples / kernel, 0.9, f"{words}")  # less than a period of the first thread is missing
            self.assertLess(samples / kernel, 1.25, f"{words}")

    def test_the_time_goes_to_where_it_was_spent(self):
        kernel, _ = self.sampled("threads", 400, 2, 1)
        self.assertGreater(self.time_of("burn", "TotalNs"), 0.75 * kernel)
        self.assertGreater(self.time_of("in_thread", "TotalNs"), 0.9 * kernel)
        self.assertLess(self.time_of("[not sampled]", "SelfNs"), 0.2 * kernel)

    def test_processes_of_eight_ms(self):
        for hz in (100, 1000):
            for how in ("fork", "exec"):
                kernel, samples = self.sampled(how, 40, 8, hz=hz)
                self.assertAlmostEqual(samples / kernel, 1, delta=0.05, msg=f"{how}, {hz} Hz")

    def test_every_program_of_a_process_counts_once(self):
        """exec keeps the process's clock: what the first program used is not the second one's."""
        kernel, samples = self.sampled("exec", 1, 300)
        self.assertAlmostEqual(samples / kernel, 1, delta=0.05)
        self.run_command(TACHO, "trace", "-q", "--overwrite", "-o", "t.tacho", "--sampler", "timer", "--", "sh", "-c",
                         "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exec ./burn once 200")
        before = self.query("SELECT sum(s.duration) FROM sample s JOIN stack k ON k.id = s.dim JOIN frame f ON f.id = k.frame "
                            "WHERE f.function = '[before main]'")[0][0] / 1e6
        self.assertLess(before, 60)

    def test_leaving_by_exit_without_handlers(self):
        self.sampled("leaves", 6)
        time = self.query("SELECT sum(duration) FROM sample")[0][0] / 1e6
        self.assertGreater(time, 6)
        self.assertLess(time, 12)

    def test_a_pause_is_nobodys_time(self):
        self.trace(self.folder / "burn", "once", 300, options=("--sampler", "timer", "--start-paused"))
        self.assertEqual(self.query("SELECT count(*) FROM sample"), [[0]])


if __name__ == "__main__":
    unittest.main(verbosity=2)
