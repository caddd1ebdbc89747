"""Programs that forbid system calls, run on strange stacks, have little address space, or are traced by a tacho that lies in a folder
with a strange name."""
import os
import resource
import shutil
import subprocess
import unittest

import attack
import harness
from attack import TARGETS, WORKLOAD, variants

CALLS = ("futex", "gettid", "mmap", "munmap", "openat", "prctl", "sched_yield", "timer_create", "timer_settime", "timer_delete",
         "rt_sigprocmask", "rt_sigreturn", "process_vm_readv", "getpid", "readlink", "clock_gettime", "getdents64", "uname", "all",
         "minimal")
# What needs one of these is dropped and counted; everything else is recorded.
DROPPING = {"mmap", "munmap", "all", "minimal"}


@unittest.skipIf(harness.sanitized(), "sanitizers make calls of their own")
class Filters(attack.Attack):
    def filtered(self, way, call, options=()):
        plain = subprocess.run([TARGETS / "filtered", way, call], capture_output=True, timeout=60)
        if plain.returncode == 77:
            self.skipTest("seccomp is not permitted here")
        self.assertEqual((plain.returncode, plain.stdout), (0, b"before\nafter\n"))
        self.same_as_without(TARGETS / "filtered", way, call, options=options)
        return self.markers()

    @variants(**{call: call for call in CALLS})
    def test_prctl(self, call):
        count = self.filtered("prctl", call)
        if call in DROPPING:
            self.assertGreater(count, 2000)
        else:
            self.assertEqual(count, 4000)

    @variants(**{call: call for call in ("futex", "gettid", "all", "minimal")})
    def test_syscall(self, call):
        self.filtered("syscall", call)

    @variants(**{call: call for call in CALLS})
    def test_sampled(self, call):
        self.filtered("syscall", call, options=["--sampler", "timer", "--sample-hz", "500"])

    def test_strict_mode(self):
        self.assertGreaterEqual(self.filtered("prctl", "strict"), 2000)
        self.assertIn("strict mode", self.notes())

    def test_strict_mode_sampled(self):
        self.filtered("prctl", "strict", options=["--sampler", "timer", "--sample-hz", "500"])

    def test_sampling_that_ends_is_told(self):
        self.filtered("prctl", "rt_sigprocmask", options=["--sampler", "timer"])
        self.assertIn("seccomp", self.notes())


class Stacks(attack.Attack):
    WAYS = ("hole", "thread_hole", "alternate", "coroutine", "wild_frame_pointer")

    @variants(**{way: way for way in WAYS})
    def test_sampled(self, way):
        self.same_as_without(TARGETS / "stacks", way, options=["--sampler", "timer", "--sample-hz", "1000"])

    @variants(**{way: way for way in WAYS})
    def test_large_slices(self, way):
        self.same_as_without(TARGETS / "stacks", way,
                             options=["--sampler", "timer", "--sample-hz", "500", "--sample-stack", "49152"])


@unittest.skipIf(harness.sanitized(), "sanitizers reserve terabytes of address space")
class AddressSpace(attack.Attack):
    def run_limited(self, mib, hard, *command):
        limit = (mib << 20, mib << 20 if hard else resource.RLIM_INFINITY)
        prefix = []
        if hard and os.geteuid() == 0:
            self.folder.chmod(0o777)
            self.pools.chmod(0o777)
            prefix = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        return subprocess.run([*prefix, str(attack.TACHO), "trace", "-o", "t.tacho", "--", *map(str, command)], capture_output=True,
                              cwd=self.folder, env=self.environment(), timeout=60,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))

    @variants(**{f"{mib}": mib for mib in (100, 150, 200, 250, 280, 320, 400, 500, 1000)})
    def test_soft(self, mib):
        """The limit is the program's: it gets what it would have without tacho but for an eighth."""
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
        os.link(attack.TACHO, place / "bin" / "tacho") if self.same_device(place) else shutil.copy(attack.TACHO, place / "bin" / "tacho")
        shutil.copy(attack.LIBRARY, place / "lib" / "libtacho.so")
        result = subprocess.run([place / "bin" / "tacho", "trace", "--quiet", "-o", "t.tacho", "--sampler", "timer", "--", str(WORKLOAD), "50"],
                                capture_output=True, cwd=self.folder, env=self.environment({"TMPDIR": str(self.pools)}), timeout=60)
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        self.assertEqual(self.markers(), 500)

    @staticmethod
    def same_device(place):
        return os.stat(place).st_dev == os.stat(attack.TACHO).st_dev

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
        command = [place / "bin" / "tacho", "trace", "--quiet", "--overwrite", "-o", "t.tacho", "--", str(WORKLOAD), "5"]
        self.assertEqual(subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, timeout=60).returncode, 0)
        made = list(temporary.glob("tacho-*"))
        self.assertEqual(len(made), 1)
        made[0].chmod(0o777)
        result = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, timeout=60)
        self.assertEqual((result.returncode, result.stderr), (0, b""))  # by way of /tmp
        self.assertEqual(self.markers(), 50)


if __name__ == "__main__":
    attack.main()
