"""An address means something only at a time: libraries come and go, and files are written anew under their names.

Both samplers, from within the program (timer) and from outside (perf).
"""
import json
import pathlib
import shutil
import sys
import time
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


# Makes a function at run time, and another one at its address: "map" tells by perf's map, "dump" by a jitdump.
MAKER = r"""
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3};  /* counts down */
static double now(clockid_t id) { struct timespec t; clock_gettime(id, &t); return t.tv_sec * 1e3 + t.tv_nsec * 1e-6; }
int main(int count, char** words) {
  const int dump = !strcmp(words[1], "dump");
  char here[4096], name[5120];
  snprintf(name, sizeof name, dump ? "%s/jit-%d.dump" : "/tmp/perf-%2$d.map", getcwd(here, sizeof here), getpid());
  const int file = open(name, O_CREAT | O_TRUNC | O_RDWR, 0600);
  if (dump) {
    struct { uint32_t magic, version, size, machine, pad, pid; uint64_t time, flags; } head = {0x4a695444, 1, 40, 62, 0, getpid(), 0, 0};
    if (write(file, &head, sizeof head) != sizeof head) return 1;
    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
  }
  unsigned char* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 2; i + 1 < count; i += 2) {
    memcpy(page, code, sizeof code);
    if (dump) {
      struct { uint32_t kind, size; uint64_t time; uint32_t pid, tid; uint64_t vma, address, length, number; } load =
          {0, sizeof load + strlen(words[i]) + 1 + sizeof code, now(CLOCK_MONOTONIC) * 1e6, getpid(), getpid(), (uint64_t)page,
           (uint64_t)page, sizeof code, i};
      if (write(file, &load, sizeof load) < 0 || write(file, words[i], strlen(words[i]) + 1) < 0 || write(file, code, sizeof code) < 0)
        return 1;
    } else {
      dprintf(file, "%lx %zx %s\n", (unsigned long)page, sizeof code, words[i]);
    }
    void (*function)(long);
    memcpy(&function, &page, sizeof function);
    const double end = now(CLOCK_THREAD_CPUTIME_ID) + atof(words[i + 1]);
    while (now(CLOCK_THREAD_CPUTIME_ID) < end) function(1000000);
    printf("%p\n", (void*)page);
  }
  if (!dump) unlink(name);
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

    def seconds(self, sampler, *words, program="./program"):
        """({function: s of the samples below it}, the addresses that the program printed), or None without perf."""
        result = self.trace(program, *words, options=("--overwrite", "--sampler", sampler), code=None)
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

    def both(self, *words, alpha, beta, same_address=True, program="./program"):
        for sampler in ("timer", "perf"):
            with self.subTest(sampler=sampler):
                found = self.seconds(sampler, *words, program=program)
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

    def made_at_run_time(self, how):
        (self.folder / "maker.c").write_text(MAKER)
        self.run_command("cc", "-O1", "maker.c", "-o", "maker")
        self.both(how, "alpha_burn", 400, "beta_burn", 800, "alpha_burn", 300, alpha=0.7, beta=0.8, program="./maker")

    def test_code_made_at_run_time_that_a_map_names(self):
        self.made_at_run_time("map")

    def test_code_made_at_run_time_that_a_dump_names(self):
        self.made_at_run_time("dump")

    def test_a_map_of_an_earlier_process_names_nothing(self):
        """Numbers of processes are used again, and nobody removes these files."""
        (self.folder / "maker.c").write_text(MAKER.replace("if (!dump) unlink(name);", "").replace("O_CREAT | O_TRUNC | O_RDWR", "O_RDONLY"))
        self.run_command("cc", "-O1", "maker.c", "-o", "maker")
        # The program finds an old map under its name and says nothing itself.
        (self.folder / "old.sh").write_text("#!/bin/sh\n"
                                            "for start in $(seq 16); do printf '%s ffffffffffff stale_name\\n' $start; done > old.map\n"
                                            "touch -d '1 hour ago' old.map\n"
                                            "cp -p old.map /tmp/.perf-$$.old && mv /tmp/.perf-$$.old /tmp/perf-$$.map\n"
                                            "exec ./maker none alpha_burn 300\n")
        (self.folder / "old.sh").chmod(0o755)
        times, _ = self.seconds("timer", program="./old.sh")
        maps = [path for path in pathlib.Path("/tmp").glob("perf-*.map") if path.stat().st_mtime < time.time() - 3000 and
                "stale_name" in path.read_text(errors="replace")]
        for path in maps:
            path.unlink()
        self.assertTrue(maps)
        self.assertNotIn("stale_name", times)


if __name__ == "__main__":
    unittest.main(verbosity=2)
