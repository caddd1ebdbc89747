"""How programs start, end, fork and die under tacho: exit codes, signals, untouched output, contents of the trace."""
import json
import os
import pathlib
import pty
import re
import resource
import signal
import subprocess
import time

import harness
from harness import TACHO

LIFECYCLE = harness.TARGETS / "lifecycle"


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


class Ends(harness.Case):
    def test_output_and_code_are_the_targets_own(self):
        plain = self.run_command(LIFECYCLE, "normal", "1000")
        traced = self.trace(LIFECYCLE, "normal", "1000")
        self.assertEqual(plain.stdout, traced.stdout)
        self.assertEqual(plain.stderr, traced.stderr)
        self.assertEqual(self.calls("marker", "work"), 1000)

    def test_exit_code(self):
        self.trace(LIFECYCLE, "code", "42", code=42)
        self.assertEqual(self.calls("marker", "work"), 3)

    def test_descriptors_and_signal_state_are_as_without_us(self):
        for mode in ("fds", "mask"):
            plain = self.run_command(LIFECYCLE, mode)
            traced = self.trace(LIFECYCLE, mode, output=f"{mode}.tacho")
            self.assertEqual(plain.stdout, traced.stdout, mode)

    def test_segv(self):
        self.trace(LIFECYCLE, "segv", "500", code=128 + signal.SIGSEGV)
        self.assertEqual(self.calls("marker", "work"), 500)

    def test_abort(self):
        self.trace(LIFECYCLE, "abort", "500", code=128 + signal.SIGABRT)
        self.assertEqual(self.calls("marker", "work"), 500)

    def test__exit(self):
        self.trace(LIFECYCLE, "_exit", "500", code=7)
        self.assertEqual(self.calls("marker", "work"), 500)

    def test_exit_in_a_thread(self):
        self.trace(LIFECYCLE, "thread_exit", "500", code=9)
        self.assertEqual(self.calls("marker", "work"), 500)

    def test_open_range_at_exit_is_kept_and_counted(self):
        self.trace(LIFECYCLE, "open", "10")
        rows = self.stats("marker")
        self.assertEqual(rows["never closed"]["Calls"], 1)
        self.assertIsNone(rows["never closed"]["TotalDurationNs"])
        info = self.run_command(TACHO, "info", "t.tacho").stdout.decode()
        self.assertIn("1 marker record: open at exit", info)

    def test_not_found_and_not_executable(self):
        self.one_sentence(self.trace("./nothing-here", code=127), "nothing-here")
        self.one_sentence(self.trace("nothing-here-either", code=127), "not found")
        script = self.folder / "script"
        script.write_text("#!/bin/sh\n")
        self.one_sentence(self.trace(script, code=126), "not executable")
        script.chmod(0o755)
        script.write_text("#!/no/such/interpreter\n")
        self.one_sentence(self.trace(script, code=127), "interpreter")
        self.one_sentence(self.trace(self.folder, code=126), "folder")
        self.assertFalse((self.folder / "t.tacho").exists())

    def test_script_without_interpreter_line(self):
        script = self.folder / "script"
        script.write_text("exit 5\n")
        script.chmod(0o755)
        self.trace(script, code=5)

    def test_existing_output_is_refused_before_the_start(self):
        (self.folder / "t.tacho").write_text("precious")
        marker = self.folder / "ran"
        result = self.trace("/usr/bin/touch", marker, code=125)
        self.one_sentence(result, "t.tacho", "--overwrite")
        self.assertFalse(marker.exists())
        self.assertEqual((self.folder / "t.tacho").read_text(), "precious")
        self.trace(LIFECYCLE, "normal", "5", options=["--overwrite"])
        self.assertEqual(self.calls("marker", "work"), 5)

    def test_default_name_gets_a_number(self):
        for _ in range(2):
            self.run_command(TACHO, "trace", "--quiet", "--", LIFECYCLE, "code", "0")
        self.assertTrue((self.folder / "lifecycle.tacho").exists())
        self.assertTrue((self.folder / "lifecycle.1.tacho").exists())

    def test_ranks_have_names_of_their_own(self):
        def job(rank, *words, command=("trace",)):
            env = {**os.environ, "OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "3"}
            return subprocess.Popen([TACHO, *command, "-q", *words, "--", LIFECYCLE, "normal", "10"], cwd=self.folder, env=env)
        for words in (("-o", "t.tacho"), (), ("-o", "run7.tacho"), ("-f", "rpd", "-o", "x.tacho")):
            self.assertEqual([one.wait(60) for one in [job(rank, *words) for rank in range(3)]], [0, 0, 0], words)
        self.assertEqual([one.wait(60) for one in [job(rank, "-o", "s.tacho", command=("sys", "run")) for rank in range(3)]], [0, 0, 0])
        one = job(1, "-o", "rank1_of_3.tacho")  # the name says it
        self.assertEqual(one.wait(60), 0)
        self.assertEqual({p.name for p in self.folder.iterdir()},
                         {f"{stem}.{rank}.{ending}" for rank in range(3) for stem, ending in
                          (("t", "tacho"), ("lifecycle", "tacho"), ("run7", "tacho"), ("x", "rpd"), ("s", "tacho"))} | {"rank1_of_3.tacho"})
        alone = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}
        self.trace(LIFECYCLE, "normal", "10", output="alone.tacho", env=alone)
        self.assertTrue((self.folder / "alone.tacho").exists())

    def test_bad_options(self):
        self.one_sentence(self.run_command(TACHO, "trace", "--kernel-trac", "--", "true", code=125), "--kernel-trace")
        self.one_sentence(self.run_command(TACHO, "trace", "--ring", "soon", "--", "true", code=125), "soon")
        self.one_sentence(self.run_command(TACHO, "trace", "--start-trigger", "moon", "--", "true", code=125), "moon")
        self.one_sentence(self.run_command(TACHO, "trace", code=125), "no command")
        self.one_sentence(self.run_command(TACHO, "trcae", code=1), "did you mean: tacho trace")


class Processes(harness.Case):
    def test_fork_without_exec(self):
        self.trace(LIFECYCLE, "fork", "300")
        self.assertEqual(self.calls("marker", "parent"), 600)
        self.assertEqual(self.calls("marker", "child"), 1200)
        self.assertIn("5 processes", self.run_command(TACHO, "info", "t.tacho").stdout.decode())

    def test_fork_while_other_threads_write(self):
        self.trace(LIFECYCLE, "fork_threads", "40")
        self.assertEqual(self.calls("marker", "child"), 400)
        self.assertGreater(self.calls("marker", "writer"), 100)

    def test_raw_clone(self):
        self.trace(LIFECYCLE, "raw_clone", "50")
        self.assertEqual(self.calls("marker", "child"), 50)
        self.assertEqual(self.calls("marker", "parent"), 100)

    def test_vfork_and_exec(self):
        self.trace(LIFECYCLE, "vfork_exec", "50")
        self.assertEqual(self.calls("marker", "parent"), 50)
        self.assertEqual(self.calls("marker", "work"), 50)

    def test_exec_from_a_shell(self):
        self.trace("/bin/sh", "-c", f"{LIFECYCLE} normal 10; exec {LIFECYCLE} normal 20")
        self.assertEqual(self.calls("marker", "work"), 30)

    def test_python_multiprocessing(self):
        program = self.folder / "program.py"
        program.write_text(
            "import ctypes, multiprocessing, os, sys\n"
            "def work(n):\n"
            "    t = ctypes.CDLL(os.environ['TACHO_LIBRARY'])\n"
            "    for _ in range(n):\n"
            "        t.tacho_range_push(b'python'); t.tacho_range_pop()\n"
            "if __name__ == '__main__':\n"
            "    with multiprocessing.get_context(sys.argv[1]).Pool(3) as pool:\n"
            "        pool.map(work, [10] * 6)\n")
        for method in ("fork", "spawn"):
            self.trace(harness.DEBIAN_PYTHON, program, method, output=f"{method}.tacho")
            self.assertEqual(self.calls("marker", "python", f"{method}.tacho"), 60)

    def test_64_threads(self):
        self.trace(LIFECYCLE, "threads", "1000")
        self.assertEqual(self.calls("marker", "thread"), 64000)

    def test_descriptors_closed_and_reopened(self):
        self.trace(LIFECYCLE, "close_all", "20")
        self.assertEqual(self.calls("marker", "before"), 20)
        self.assertEqual(self.calls("marker", "after"), 20)

    def test_chroot(self):
        result = self.trace(LIFECYCLE, "chroot", "20", code=None)
        if result.returncode == 77:
            self.skipTest("chroot is not permitted here")
        self.assertEqual(result.returncode, 0)
        for name in ("before", "child", "after"):
            self.assertEqual(self.calls("marker", name), 20, name)

    def test_address_space_limit(self):
        self.trace(LIFECYCLE, "as_limit", "150")
        self.assertIn(self.calls("marker", "work"), (100,))


class Signals(harness.Case):
    def start(self, *command, **options):
        process = subprocess.Popen([str(TACHO), "trace", "--quiet", "-o", "t.tacho", *options.pop("options", ()), "--",
                                    *map(str, command)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder, **options)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def child_of(self, process):
        path = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        self.assertTrue(wait_until(lambda: path.read_text().strip()))
        return int(path.read_text().split()[0])

    def test_sigterm_to_tacho_reaches_the_target(self):
        process = self.start(LIFECYCLE, "handler")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(30), 40 + signal.SIGTERM)
        self.assertEqual(self.calls("marker", "after signal"), 5)

    def test_sigterm_to_a_target_that_dies_of_it(self):
        process = self.start(LIFECYCLE, "sleep", "30")
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(30), 128 + signal.SIGTERM)
        self.assertEqual(self.calls("marker", "before"), 3)

    def storm(self, rest):
        """Kills a storm of markers; returns (pairs the program finished at least, pairs in the trace, records dropped)."""
        process = self.start(LIFECYCLE, "storm", rest)
        target = self.child_of(process)
        seen = 0
        for _ in range(12):
            line = process.stdout.readline()
            seen = int(line)
        os.kill(target, signal.SIGKILL)
        for line in process.stdout:
            seen = int(line)
        self.assertEqual(process.wait(60), 128 + signal.SIGKILL)
        info = self.run_command(TACHO, "info", "t.tacho").stdout.decode()
        dropped = re.search(r"(\d+) marker records?: pool full", info)
        return seen, self.calls("marker", "storm"), int(dropped.group(1)) if dropped else 0

    def test_sigkill_in_a_storm_loses_at_most_the_record_being_written(self):
        finished, traced, dropped = self.storm("500")
        self.assertEqual(dropped, 0)
        self.assertGreaterEqual(traced, finished)

    def test_a_storm_beyond_what_can_be_drained_is_counted(self):
        finished, traced, dropped = self.storm("0")
        self.assertGreaterEqual(traced + dropped, finished)

    def test_ctrl_c_in_a_terminal_reaches_the_target_once(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execv(TACHO, [str(TACHO), "trace", "--quiet", "-o", "t.tacho", "--", str(LIFECYCLE), "handler"])
        output = b""
        while b"ready" not in output:
            output += os.read(terminal, 4096)
        os.write(terminal, b"\x03")
        status = os.waitpid(pid, 0)[1]
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(status), 40 + signal.SIGINT)
        self.assertEqual(self.calls("marker", "after signal"), 5)

    def test_tacho_killed_target_goes_on_and_recover_works(self):
        process = self.start(LIFECYCLE, "sleep", "5")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        target = self.child_of(process)
        environment = pathlib.Path(f"/proc/{target}/environ").read_bytes().split(b"\0")
        pool = [v.split(b"=", 1)[1].decode() for v in environment if v.startswith(b"TACHO_POOL=")][0]
        self.addCleanup(lambda: os.path.exists(pool) and os.remove(pool))
        time.sleep(1.5)  # a flush of the slabs lies in between
        process.kill()
        process.wait()
        self.assertTrue(wait_until(lambda: not os.path.exists(f"/proc/{target}")), "the target did not go on and end")
        self.assertIn(pool, self.run_command(TACHO, "recover", "--list").stdout.decode())
        self.run_command(TACHO, "recover", pool, "-o", "recovered.tacho")
        self.assertEqual(self.calls("marker", "before", "recovered.tacho"), 3)
        self.assertEqual(self.calls("marker", "after", "recovered.tacho"), 3)
        self.assertFalse(os.path.exists(pool))

    def test_a_killed_tacho_loses_two_seconds_of_device_work_at_most(self):
        """The first work of a device is held until its clock was compared with the host's."""
        process = self.start(harness.TARGETS / "opencl_cases", "killed", "20000")
        target = self.child_of(process)
        self.addCleanup(lambda: os.path.exists(f"/proc/{target}") and os.kill(target, signal.SIGKILL))
        environment = pathlib.Path(f"/proc/{target}/environ").read_bytes().split(b"\0")
        [pool] = [v.split(b"=", 1)[1].decode() for v in environment if v.startswith(b"TACHO_POOL=")]
        time.sleep(4)
        process.kill()
        killed = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        os.kill(target, signal.SIGKILL)
        process.wait()
        os.remove(pool)
        [partial] = self.folder.glob("*.partial-*")
        result = self.run_command(TACHO, "query", "--dialect", "tacho", partial, "SELECT count(*), max(end) FROM dispatch", "--output-format", "json")
        [[count, last]] = json.loads(result.stdout)["rows"]
        self.assertGreater(count, 10)
        self.assertLess((killed - last) / 1e9, 2.5)

    def test_what_killed_runs_left_without_a_pool(self):
        """The pool is gone with the machine's memory: what has events is listed, what has none goes with the next run."""
        process = self.start(LIFECYCLE, "sleep", "3")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        target = self.child_of(process)
        environment = pathlib.Path(f"/proc/{target}/environ").read_bytes().split(b"\0")
        [pool] = [v.split(b"=", 1)[1].decode() for v in environment if v.startswith(b"TACHO_POOL=")]
        time.sleep(1.5)
        alive = self.run_command(TACHO, "recover", "--list").stdout.decode()
        self.assertNotIn("partial-", alive)  # its writer lives
        process.kill()
        process.wait()
        self.assertTrue(wait_until(lambda: not os.path.exists(f"/proc/{target}")), "the target did not go on and end")
        os.remove(pool)
        [partial] = [path.name for path in self.folder.glob("*.partial-*")]
        names = ("t.tacho.partial-00000000", ".tacho-999999999.tacho", ".rocprofv3-here-999999999-1764212345.tacho", ".vcopy.999999999.tacho")
        for name in (*names, "young.tacho.partial-00000000", "notes.partial-00000000"):
            (self.folder / name).write_bytes(b"my own words" if name.startswith("notes") else b"")
            if not name.startswith("young"):
                os.utime(self.folder / name, (1, 1))
        listed = self.run_command(TACHO, "recover", "--list", env={"COLUMNS": "200"}).stdout.decode()
        self.assertIn(partial, listed)
        self.assertIn("lifecycle", listed)
        self.assertNotIn("notes", listed)
        self.trace(LIFECYCLE, "normal", "3", options=("--overwrite",))
        left = {path.name for path in self.folder.iterdir()}
        self.assertFalse(left & set(names), left)
        self.assertLessEqual({partial, "young.tacho.partial-00000000", "notes.partial-00000000"}, left)


class Resources(harness.Case):
    def tmpfs(self, size):
        place = self.folder / "small"
        place.mkdir()
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], capture_output=True)
        if made.returncode != 0:
            self.skipTest("mounting a tmpfs is not permitted here")
        self.addCleanup(subprocess.run, ["umount", str(place)])
        return place

    def test_disk_full(self):
        place = self.tmpfs("256k")
        result = self.trace(LIFECYCLE, "names", "60000", output=str(place / "t.tacho"), code=125)
        self.assertIn("No space left", result.stderr.decode())
        self.assertEqual(len(result.stderr.decode().splitlines()), 1)

    def test_quota(self):
        plain = self.run_command(LIFECYCLE, "names", "200000")
        quota = {"LD_PRELOAD": str(harness.TARGETS / "quota.so"), "QUOTA_BYTES": "5000000"}
        result = self.trace(LIFECYCLE, "names", "200000", env=quota, code=125)
        self.one_sentence(result, "quota", "t.tacho")
        self.assertEqual(result.stdout, plain.stdout)
        # The trace has the part that fitted, and says that something is missing.
        self.assertGreater(len(self.stats("marker")), 10_000)
        self.assertIn(b"is missing", self.run_command(TACHO, "info", "t.tacho").stdout)

    def test_file_size_limit_is_the_targets_not_ours(self):
        limit = (64 << 10, 64 << 10)
        options = dict(cwd=self.folder, capture_output=True, timeout=120,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
        allowed = subprocess.run([harness.DEBIAN_PYTHON, "-c", "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (-1, -1))"],
                                 **options).returncode == 0
        nobody = []
        if allowed:  # with the capability tacho raises it
            result = subprocess.run([str(TACHO), "trace", "--quiet", "-o", "t.tacho", "--", "/bin/sh", "-c", "ulimit -f"],
                                    **options)
            self.assertEqual((result.returncode, result.stdout), (0, b"128\n"), result.stderr)
            nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"]
            self.folder.chmod(0o777)
        result = subprocess.run([*nobody, str(TACHO), "trace", "--quiet", "-o", "u.tacho", "--", "/bin/true"], **options)
        self.assertEqual(result.returncode, 125)
        self.one_sentence(result, "ulimit -f")

    def test_tiny_pool_folder(self):
        place = self.tmpfs("600k")
        self.trace(LIFECYCLE, "normal", "1000", env={"TACHO_POOL_DIR": str(place)})
        self.assertEqual(self.calls("marker", "work"), 1000)

    def test_read_only_shared_memory_folder(self):
        # In its own mount namespace, /dev/shm is read-only: the pool goes to the next folder.
        make = 'mount -t tmpfs -o ro none /dev/shm 2>/dev/null || exit 77; ! touch /dev/shm/x 2>/dev/null || exit 78; exec "$@"'
        allowed = subprocess.run(["unshare", "--mount", "/bin/sh", "-c", make, "sh", "/bin/true"], capture_output=True).returncode
        if allowed in (1, 77):
            self.skipTest("mounting in a namespace is not permitted here")
        self.assertEqual(allowed, 0, "/dev/shm could still be written")
        self.run_command("unshare", "--mount", "/bin/sh", "-c", make, "sh", TACHO, "trace", "--quiet", "-o", "t.tacho", "--",
                         LIFECYCLE, "normal", "1000")
        self.assertEqual(self.calls("marker", "work"), 1000)

    def test_no_folder_for_the_pool(self):
        # In its own mount namespace, every folder that could hold the pool is read-only; the trace could be written.
        out = self.tmpfs("4m")
        make = ('for place in /dev/shm /tmp /var/tmp; do mount --rbind "$place" "$place" && mount -o remount,ro,bind "$place" || exit 77; done; '
                '! touch /dev/shm/x /tmp/x 2>/dev/null || exit 78; exec "$@"')
        private = ["unshare", "--mount", "/bin/sh", "-c", make, "sh"]
        allowed = subprocess.run([*private, "/bin/true"], capture_output=True).returncode
        if allowed in (1, 77):
            self.skipTest("mounting in a namespace is not permitted here")
        self.assertEqual(allowed, 0, "some folder could still be written")
        environment = {"TMPDIR": "/tmp", "XDG_RUNTIME_DIR": "", "TACHO_POOL_DIR": ""}
        result = self.run_command(*private, TACHO, "trace", "--quiet", "-o", out / "t.tacho", "--", LIFECYCLE, "normal", "10",
                                  code=125, env=environment)
        self.one_sentence(result, "no folder can hold the pool", "/dev/shm: Read-only file system", "/tmp: Read-only file system",
                          "TACHO_POOL_DIR")
        self.assertEqual(result.stdout, b"")
        self.assertEqual(list(out.iterdir()), [])
        # And the way out that the sentence names.
        self.run_command(*private, TACHO, "trace", "--quiet", "-o", out / "t.tacho", "--", LIFECYCLE, "normal", "10",
                         env={**environment, "TACHO_POOL_DIR": str(out)})
        self.assertEqual(self.calls("marker", "work", out / "t.tacho"), 10)

    def test_read_only_output_folder(self):
        place = self.tmpfs("1m")
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        self.one_sentence(self.trace(LIFECYCLE, "normal", code=125, output=str(place / "t.tacho")), place)

    def test_missing_output_folder(self):
        self.one_sentence(self.trace(LIFECYCLE, "normal", code=125, output="no/such/t.tacho"), "no/such")


class Policies(harness.Case):
    def test_start_paused_records_nothing(self):
        self.trace(LIFECYCLE, "normal", "1000", options=["--start-paused"])
        self.assertEqual(self.calls("marker", "work"), 0)

    def until_switched(self, *options):
        """The program marks, waits until it sees that recording was switched, and marks again."""
        for _ in range(3):
            # 77: it started too late to see it.
            if self.trace(LIFECYCLE, "switched", options=[*options, "--overwrite"], code=None).returncode != 77:
                break
        return self.calls("marker", "before"), self.calls("marker", "after")

    def test_delay(self):
        self.assertEqual(self.until_switched("--delay", "1"), (0, 3))

    def test_duration(self):
        self.assertEqual(self.until_switched("--duration", "1"), (3, 0))

    def test_aggregate_keeps_counts_but_no_events(self):
        self.trace(LIFECYCLE, "threads", "2000", options=["--aggregate"])
        text = self.run_command(TACHO, "info", "t.tacho").stdout.decode()
        self.assertEqual(self.calls("marker", "thread"), 128000, text)
        self.assertLess((self.folder / "t.tacho").stat().st_size, 200_000)

    def test_aggregate_suggests_only_what_works(self):
        said = self.run_command(TACHO, "trace", "--aggregate", "-o", "t.tacho", "--", LIFECYCLE, "threads", "20").stderr.decode()
        commands = re.findall(r"^ {7}tacho (.+?)(?: {3}\(.*)?$", said, re.M)
        self.assertGreaterEqual(len(commands), 1, said)
        for command in commands:
            self.run_command(TACHO, *command.split())

    def test_ring_keeps_the_newest(self):
        self.trace("/bin/sh", "-c", f"{LIFECYCLE} names 250000; sleep 1; {LIFECYCLE} open 10", options=["--ring", "100k"])
        rows = self.stats("marker")
        self.assertEqual(rows["never closed"]["Calls"], 1)
        self.assertLess(len(rows), 200000)
        self.assertIn("overwritten by --ring", self.run_command(TACHO, "info", "t.tacho").stdout.decode())

    def test_max_size(self):
        self.trace(LIFECYCLE, "names", "600000", options=["--max-size", "500k"])
        self.assertLess((self.folder / "t.tacho").stat().st_size, 3_000_000)
        self.assertIn("--max-size reached", self.run_command(TACHO, "info", "t.tacho").stdout.decode())

    def test_signal_trigger(self):
        process = subprocess.Popen([str(TACHO), "trace", "--quiet", "-o", "t.tacho", "--start-trigger", "signal:USR1",
                                    "--", str(LIFECYCLE), "sleep", "5"], cwd=self.folder, stdout=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(process.wait(30), 0)
        process.stdout.close()
        self.assertEqual(self.calls("marker", "before"), 0)
        self.assertEqual(self.calls("marker", "after"), 3)


class BadFiles(harness.Case):
    def test_not_a_trace(self):
        for name, content in {"empty": b"", "text": b"hello\n" * 100, "zeros": bytes(100000)}.items():
            (self.folder / name).write_bytes(content)
            self.one_sentence(self.run_command(TACHO, "stats", name, code=1), name)
        self.one_sentence(self.run_command(TACHO, "stats", "absent.tacho", code=1), "absent.tacho")
        self.one_sentence(self.run_command(TACHO, "recover", "text", code=1), "text")

    def test_truncated_and_flipped(self):
        self.trace(LIFECYCLE, "threads", "500")
        whole = (self.folder / "t.tacho").read_bytes()
        for share in (0.1, 0.5, 0.9, 0.999):
            (self.folder / "cut.tacho").write_bytes(whole[: int(len(whole) * share)])
            result = self.run_command(TACHO, "stats", "cut.tacho", "--by", "marker", code=None)
            self.assertIn(result.returncode, (0, 1))
            self.assertNotIn(b"terminate", result.stderr)
        for at in range(0, len(whole), max(len(whole) // 60, 1)):
            flipped = bytearray(whole)
            flipped[at] ^= 0x40
            (self.folder / "flip.tacho").write_bytes(flipped)
            result = self.run_command(TACHO, "stats", "flip.tacho", "--by", "marker", code=None)
            self.assertIn(result.returncode, (0, 1), at)


if __name__ == "__main__":
    harness.main()
