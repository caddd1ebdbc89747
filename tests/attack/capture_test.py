"""Programs that forbid system calls, run on strange stacks, have little address space, or are traced by a tacho that lies in a folder
with a strange name."""
import json
import os
import re
import resource
import shutil
import subprocess
import unittest

import attack
import harness
from attack import TARGETS, WORKLOAD, variants

# Calls that something in filtered.c makes libtacho.so need: each of these cases kills the program where libtacho.so makes it.
PLAIN = ("gettid", "mmap", "openat", "prctl", "sched_yield", "getpid", "getppid", "readlink", "uname", "all", "minimal")
SAMPLED = ("gettid", "mmap", "munmap", "openat", "prctl", "timer_create", "timer_settime", "timer_delete", "rt_sigprocmask",
           "rt_sigreturn", "getpid", "getdents64", "all", "minimal")
# The calls that the start of libtacho.so would need. The loader and libc make the others themselves: a program under such a
# filter does not start without tacho either.
STARTED = ("gettid", "getpid", "getppid", "readlink", "uname", "madvise", "prctl")
STARTED_SAMPLED = ("timer_create", "timer_settime", "rt_sigreturn", "rt_sigaction", "getdents64", "process_vm_readv", "futex", "sched_yield")
# Records that need new memory, or that a forked child sets, are dropped and counted; all others are recorded.
MEMORY = {"mmap", "munmap", "all", "minimal"}
CHILD = {"openat", "getpid", "getppid", "gettid", "readlink", "uname", "all"}


@unittest.skipIf(harness.sanitized(), "sanitizers make calls of their own")
class Filters(attack.Attack):
    """Filters that kill the program for a call. filtered.c does under each of them whatever needs that call in libtacho.so: where
    libtacho.so made it, the program would be killed. Nothing is lost in silence: what it set was recorded, or is counted."""

    def filtered(self, way, call, burst=0, options=()):
        command = [TARGETS / "filtered", way, call, str(burst)]
        plain = subprocess.run(command, capture_output=True, timeout=60)
        if plain.returncode == 77:
            self.skipTest("seccomp is not permitted here")
        self.assertEqual(plain.returncode, 0, plain.stderr)
        self.same_as_without(*command, options=options)
        if call == "strict":
            return self.markers(), 0, 0
        count, status = re.fullmatch(rb"before\nafter (\d+) (\d+)\n", plain.stdout).groups()
        self.assertEqual(status, b"0")  # of the child
        total = int(count) + (50 if call != "minimal" else 0)
        rows = json.loads(self.tacho("query", "t.tacho", "--output-format", "json",
                                     "select coalesce(sum(count), 0) from tacho.loss where \"table\" = 'marker'").stdout)["rows"]
        recorded, lost = self.markers(), rows[0][0]
        # A range is two records.
        self.assertLessEqual(total - recorded, lost)
        self.assertLessEqual(lost, 2 * (total - recorded))
        return recorded, lost, total

    def expect(self, call, recorded, lost, total):
        if call in MEMORY:
            self.assertGreater(recorded, 2000)
        else:
            self.assertEqual(lost, 2 * 50 if call in CHILD else 0)

    @variants(**{call: call for call in PLAIN})
    def test_prctl(self, call):
        self.expect(call, *self.filtered("prctl", call))

    @variants(**{call: call for call in ("gettid", "openat", "all", "minimal")})
    def test_syscall(self, call):
        self.expect(call, *self.filtered("syscall", call))

    @variants(**{call: call for call in ("gettid", "openat", "all")})
    def test_tsync(self, call):
        self.expect(call, *self.filtered("tsync", call))

    def test_pool_that_runs_low(self):
        """The thread that takes the last blocks wakes tacho: by futex."""
        recorded, lost, total = self.filtered("prctl", "futex", burst=300_000, options=["--pool-size", "1M"])
        self.assertGreater(lost, 0)  # so low did it run
        self.assertGreater(recorded, 2000)

    @variants(**{call: call for call in ("getpid", "gettid", "readlink", "openat", "uname", "all", "minimal")})
    def test_first_marker_under_the_filter(self, call):
        recorded, lost, total = self.filtered("late", call)
        self.assertGreater(recorded, 1000)
        if call not in MEMORY:
            self.assertEqual(lost, 2 * 50 if call in CHILD else 0)

    @variants(**{call: call for call in SAMPLED})
    def test_sampled(self, call):
        self.filtered("syscall", call, options=["--sampler", "timer", "--sample-hz", "500"])

    @variants(**{call: call for call in STARTED})
    def test_inherited_over_exec(self, call):
        """The filter is in force before libtacho.so is loaded, which does not know its rules."""
        recorded, lost, total = self.filtered("exec", call)
        self.assertEqual(lost, 0)

    @variants(**{call: call for call in STARTED_SAMPLED})
    def test_inherited_over_exec_sampled(self, call):
        self.filtered("exec", call, options=["--sampler", "timer", "--sample-hz", "500"])
        self.assertIn("call stacks are not sampled", self.notes())

    def test_strict_mode(self):
        self.assertGreaterEqual(self.filtered("prctl", "strict")[0], 2000)
        self.assertIn("strict mode", self.notes())

    @variants(sampled=["--sampler", "timer", "--sample-hz", "500"], plain=[])
    def test_strict_mode_before_the_first_marker(self, options):
        self.filtered("late", "strict", options=options)

    def test_strict_mode_sampled(self):
        self.filtered("prctl", "strict", options=["--sampler", "timer", "--sample-hz", "500"])

    def test_sampling_that_ends_is_told(self):
        self.filtered("prctl", "rt_sigprocmask", options=["--sampler", "timer"])
        self.assertIn("seccomp", self.notes())


class Stacks(attack.Attack):
    WAYS = ("hole", "thread_hole", "alternate", "small_alternate", "tiny_alternate", "tiny_alternate_of_thread", "coroutine",
            "wild_frame_pointer")

    @variants(**{way: way for way in WAYS})
    def test_sampled(self, way):
        self.same_as_without(TARGETS / "stacks", way, options=["--sampler", "timer", "--sample-hz", "1000"])

    @variants(**{way: way for way in WAYS})
    def test_large_slices(self, way):
        self.same_as_without(TARGETS / "stacks", way,
                             options=["--sampler", "timer", "--sample-hz", "500", "--sample-stack", "49152"])


@unittest.skipIf(harness.sanitized(), "sanitizers reserve terabytes of address space")
class AddressSpace(attack.Attack):
    def run_limited(self, mib, hard, *words):
        command = list(words)
        limit = (mib << 20, mib << 20 if hard else resource.RLIM_INFINITY)
        prefix, tacho = [], attack.TACHO
        if hard and os.geteuid() == 0:
            tacho, command[0] = self.for_everybody(command[0])
            self.pools.chmod(0o777)
            prefix = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        return subprocess.run([*prefix, str(tacho), "trace", "-o", "t.tacho", "--", *map(str, command)], capture_output=True,
                              cwd=self.folder, env=self.environment(), timeout=60,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))

    @variants(**{f"{mib}": mib for mib in (100, 150, 200, 250, 280, 320, 400, 500, 1000)})
    def test_soft(self, mib):
        """The limit is the program's: it gets all of it but an eighth."""
        result = self.run_limited(mib, False, TARGETS / "limited", mib // 2)
        self.assertEqual((result.returncode, result.stdout), (0, b"enough\n"), result.stderr)
        self.assertEqual(self.markers(), 1000)
        self.nothing_left()

    @variants(**{f"{mib}": mib for mib in (100, 150, 200, 250, 280, 320, 400, 500, 1000)})
    def test_hard(self, mib):
        result = self.run_limited(mib, True, TARGETS / "limited", 10)
        self.assertIn(result.returncode, (0, 125), result.stderr)
        if result.returncode == 125:
            self.sentence(result, "ulimit -v")
        else:
            self.assertEqual(result.stdout, b"enough\n")
            self.assertEqual(self.markers(), 1000)
        self.nothing_left()

    def test_reduction_is_told(self):
        result = self.run_limited(400, False, TARGETS / "limited", 10)
        self.assertIn(b"ulimit -v", result.stderr)


class Places(attack.Attack):
    """tacho itself below a folder with a strange name."""
    @variants(space="a b", colon="a:b", semicolon="a;b", dollar="$ORIGIN", dollar_lib="$LIB x", quote="it's \"here\"", tab="a\tb",
              unicode="ü b", asterisk="a * b", backslash="a \\ b", percent="%s b")
    def test_installed_in(self, name):
        place = self.folder / name
        for part in ("bin", "lib"):
            (place / part).mkdir(parents=True)
        try:
            os.link(attack.TACHO, place / "bin" / "tacho")
        except OSError:  # another file system, or another mount of this one
            shutil.copy(attack.TACHO, place / "bin" / "tacho")
        shutil.copy(attack.LIBRARY, place / "lib" / "libtacho.so")
        result = subprocess.run([place / "bin" / "tacho", "trace", "--quiet", "-o", "t.tacho", "--sampler", "timer", "--", str(WORKLOAD), "50"],
                                capture_output=True, cwd=self.folder, env=self.environment({"TMPDIR": str(self.pools)}), timeout=60)
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        self.assertEqual(self.markers(), 500)

    def test_links_belong_to_somebody_else(self):
        """A folder that others can write into is not used for links."""
        place = self.folder / "a b"
        for part in ("bin", "lib"):
            (place / part).mkdir(parents=True)
        shutil.copy(attack.TACHO, place / "bin" / "tacho")
        shutil.copy(attack.LIBRARY, place / "lib" / "libtacho.so")
        temporary = self.folder / "tmp"
        temporary.mkdir()
        environment = self.environment({"TMPDIR": str(temporary)}, without=["XDG_RUNTIME_DIR"])
        command = [place / "bin" / "tacho", "trace", "--quiet", "--overwrite", "-o", "t.tacho", "--"]
        during = subprocess.run([*command, "/bin/ls", temporary], cwd=self.folder, env=environment, capture_output=True, timeout=60)
        names = during.stdout.decode().split()
        self.assertEqual((during.returncode, len(names)), (0, 1), during.stderr)
        self.assertEqual(list(temporary.iterdir()), [], "the links end with the run")
        (temporary / names[0]).mkdir()
        (temporary / names[0]).chmod(0o777)
        result = subprocess.run([*command, str(WORKLOAD), "5"], cwd=self.folder, env=environment, capture_output=True, timeout=60)
        self.assertEqual((result.returncode, result.stderr), (0, b""))  # by way of /tmp
        self.assertEqual(list((temporary / names[0]).iterdir()), [])
        self.assertEqual(self.markers(), 50)


if __name__ == "__main__":
    attack.main()
