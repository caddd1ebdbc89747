"""An address means something only at a time: libraries come and go, and files are written anew under their names.

Both samplers, from within the program (timer) and from outside (perf).
"""
import json
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402, the folder of end-to-end tests is no package
from harness import TACHO  # noqa: E402

WORK = r"""
#include <stdint.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec * 1e3 + t.tv_nsec * 1e-6; }
__attribute__((noinline)) uint64_t NAME(double ms) {
  const double end = now() + ms;
  uint64_t x = 1;
  while (now() < end) for (int i = 0; i < 20000; ++i) x = (x * 6364136223846793005ull + 1442695040888963407ull) ^ x >> 17;
  return x;
}
"""

# Words: LIBRARY FUNCTION MS opens, works, closes; "keep" before them: stays open; "cp FROM TO" and "mv FROM TO" change
# files; "fork" goes on in a child.
PROGRAM = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char** words) {
  for (int i = 1; i < count;) {
    if (!strcmp(words[i], "cp") || !strcmp(words[i], "mv")) {
      char line[512];
      snprintf(line, sizeof line, "%s %s %s", words[i], words[i + 1], words[i + 2]);
      if (system(line) != 0) return 2;
      i += 3;
      continue;
    }
    if (!strcmp(words[i], "fork")) {
      const pid_t child = fork();
      if (child != 0) { int status = 1; waitpid(child, &status, 0); return status; }
      ++i;
      continue;
    }
    const int keep = !strcmp(words[i], "keep");
    i += keep;
    void* library = dlopen(words[i], RTLD_NOW);
    if (!library) { puts(dlerror()); return 1; }
    uint64_t (*work)(double) = (uint64_t (*)(double))dlsym(library, words[i + 1]);
    printf("%p\n", (void*)work);
    work(atof(words[i + 2]));
    if (!keep) dlclose(library);
    i += 3;
  }
  return 0;
}
"""


class Identity(harness.Case):
    def setUp(self):
        super().setUp()
        if shutil.which("cc") is None:
            self.skipTest("no C compiler here")
        (self.folder / "work.c").write_text(WORK)
        (self.folder / "program.c").write_text(PROGRAM)
        for name in ("alpha", "beta"):
            self.run_command("cc", "-O2", "-g", "-fPIC", "-shared", f"-DNAME={name}_burn", "work.c", "-o", f"lib{name}.so")
        self.run_command("cc", "-O1", "-g", "program.c", "-o", "program", "-ldl")

    def seconds(self, sampler, *words):
        """({function: s of the samples below it}, the addresses that the program printed), or None without perf."""
        result = self.trace("./program", *words, options=("--overwrite", "--sampler", sampler), code=None)
        if sampler == "perf" and b"perf_event" in result.stderr:
            return None
        self.assertEqual(result.returncode, 0, result.stderr)
        shown = self.run_command(TACHO, "stats", "t.tacho", "--by", "function", "--all-code", "--output-format", "json")
        table = json.loads(shown.stdout)
        total, name = table["columns"].index("TotalNs"), table["columns"].index("Name")
        times = {}
        for row in table["rows"]:
            times[row[name]] = times.get(row[name], 0) + row[total] / 1e9
        return times, result.stdout.decode().split()

    def both(self, *words, alpha, beta, same_address=True):
        for sampler in ("timer", "perf"):
            with self.subTest(sampler=sampler):
                found = self.seconds(sampler, *words)
                if found is None:
                    continue
                times, addresses = found
                if same_address:
                    self.assertEqual(len(set(addresses)), 1, "the loader did not reuse the address")
                self.assertAlmostEqual(times.get("alpha_burn", 0), alpha, delta=0.08 + 0.05 * alpha)
                self.assertAlmostEqual(times.get("beta_burn", 0), beta, delta=0.08 + 0.05 * beta)

    def test_another_library_at_the_address(self):
        self.both("./libalpha.so", "alpha_burn", 400, "./libbeta.so", "beta_burn", 800, "./libalpha.so", "alpha_burn", 400,
                  alpha=0.8, beta=0.8)

    def test_the_first_one_comes_again_elsewhere(self):
        self.both("./libalpha.so", "alpha_burn", 300, "keep", "./libbeta.so", "beta_burn", 600, "./libalpha.so", "alpha_burn", 600,
                  alpha=0.9, beta=0.6, same_address=False)

    def test_they_take_turns(self):
        turns = ["./libalpha.so", "alpha_burn", 20, "./libbeta.so", "beta_burn", 20] * 20
        self.both(*turns, alpha=0.4, beta=0.4)

    def test_a_file_is_replaced_under_its_name(self):
        self.both("cp", "libalpha.so", "k.so", "./k.so", "alpha_burn", 500, "cp", "libbeta.so", "k2.so", "mv", "k2.so", "k.so",
                  "./k.so", "beta_burn", 500, alpha=0.5, beta=0.5)

    def test_a_file_is_written_anew_in_place(self):
        self.both("cp", "libalpha.so", "k.so", "./k.so", "alpha_burn", 500, "cp", "libbeta.so", "k.so", "./k.so", "beta_burn", 500,
                  alpha=0.5, beta=0.5)

    def test_in_a_forked_child(self):
        self.both("./libalpha.so", "alpha_burn", 300, "fork", "./libbeta.so", "beta_burn", 600, alpha=0.3, beta=0.6)


if __name__ == "__main__":
    unittest.main(verbosity=2)
