"""The program's surroundings are as without tacho: its environment, and the duration of its waits."""
import os
import subprocess

import attack
from attack import TARGETS, variants

OURS = {b"TACHO_POOL", b"TACHO_LIBRARY", b"LD_PRELOAD", b"OPENCL_LAYERS", b"LD_LIBRARY_PATH", b"CUDA_INJECTION64_PATH",
        b"NVTX_INJECTION64_PATH", b"HSA_TOOLS_LIB", b"NCCL_PROFILER_PLUGIN"}


class Environment(attack.Attack):
    def with_environment(self, entries, tacho=True):
        """Output of environment.c with exactly these entries: by a small program, as Python cannot repeat names."""
        starter = TARGETS / "exec_with"
        command = [str(starter), str(len(entries)), *entries]
        if tacho:
            command += [str(attack.TACHO), "trace", "--quiet", "-o", "t.tacho", "--"]
        result = subprocess.run([*command, str(TARGETS / "environment")], capture_output=True, cwd=self.folder, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.splitlines()

    def check(self, *entries):
        pools = f"TACHO_POOL_DIR={self.pools}"
        given = [os.fsencode(entry) for entry in entries]
        got = self.with_environment([*given, os.fsencode(pools)])
        ours = [entry for entry in got if entry.split(b"=")[0] in OURS]
        self.assertIn(b"TACHO_POOL", {entry.split(b"=")[0] for entry in ours})
        self.assertEqual([entry for entry in got if entry not in ours],
                         [entry for entry in given if entry.split(b"=")[0] not in OURS] + [os.fsencode(pools)])
        return got

    def test_order(self):
        self.check("ZZZ=1", "AAA=2", "mmm=3", "HOME=/root", "A=1")

    def test_repeated_names(self):
        self.check("TWICE=first", "X=1", "TWICE=second", "TWICE=")

    def test_entries_without_equals(self):
        self.check("NOTHING", "X=1", "", "=value", "==")

    def test_strange_bytes(self):
        self.check("BYTES=\udcff\udcfe", "\udc80=x", "ESCAPE=\x1b[31m")

    def test_long_values(self):
        self.check("LONG=" + "x" * 100_000, "SHORT=y")

    def test_many(self):
        self.check(*(f"V{(i * 7919) % 2000}={i}" for i in range(2000)))

    def test_prefix_of_ours(self):
        self.check("TACHO_POOL_X=1", "LD_PRELOAD_=2", "LD_PRELOA=3")

    def test_repeated_preload_keeps_the_first(self):
        got = self.check("LD_PRELOAD=libm.so.6", "X=1", "LD_PRELOAD=libdl.so.2")
        preloads = [entry for entry in got if entry.startswith(b"LD_PRELOAD=")]
        self.assertEqual(len(preloads), 2)
        self.assertEqual(preloads[0], preloads[1])  # the loader takes the last, getenv the first
        self.assertTrue(preloads[0].endswith(b"asan.so:libm.so.6"), preloads)

    def test_only_ours(self):
        self.check()


class Sleeps(attack.Attack):
    WAYS = ("usleep", "nanosleep", "nanosleep_null", "clock_nanosleep", "clock_nanosleep_abs", "thrd_sleep", "poll", "ppoll",
            "select", "pselect", "epoll_wait", "epoll_pwait", "sem_timedwait", "cond_timedwait", "semtimedop", "sigtimedwait",
            "pause", "poll_forever", "sigsuspend", "interrupted", "interrupted_poll")

    @variants(**{way: way for way in WAYS})
    def test_wall_clock(self, way):
        options = ["--sampler", "timer", "--sample-clock", "wall", "--sample-hz", "500"]
        self.same_as_without(TARGETS / "sleeps", way, "6", "40", options=options)

    def test_wall_clock_sleep(self):
        self.same_as_without(TARGETS / "sleeps", "sleep", "1", "1000",
                             options=["--sampler", "timer", "--sample-clock", "wall", "--sample-hz", "500"])

    def test_threads_that_sleep(self):
        program = self.folder / "sleepers.py"
        program.write_text("import threading, time\n"
                           "def work():\n"
                           "    begin = time.monotonic()\n"
                           "    for _ in range(5): time.sleep(0.05)\n"
                           "    assert time.monotonic() - begin > 0.24\n"
                           "threads = [threading.Thread(target=work) for _ in range(8)]\n"
                           "[t.start() for t in threads]\n[t.join() for t in threads]\nprint('done')\n")
        self.same_as_without("/usr/bin/python3", program,
                             options=["--sampler", "timer", "--sample-clock", "wall", "--sample-hz", "1000"])


if __name__ == "__main__":
    attack.main()
