"""Signals to tacho while it traces: whatever can be caught ends in a written trace and a removed pool, and reaches the program
as it would without tacho."""
import os
import signal
import subprocess
import time

import attack
from attack import TARGETS, variants

ENDING = {name: getattr(signal, name) for name in
          ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGPIPE", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGPROF", "SIGIO",
           "SIGXCPU", "SIGPWR", "SIGSTKFLT")}
IGNORED = {name: getattr(signal, name) for name in ("SIGURG", "SIGCHLD", "SIGWINCH", "SIGCONT")}


class Signals(attack.Attack):
    def traced(self, *command, options=()):
        tacho = self.start("trace", "--quiet", "-o", "t.tacho", *options, "--", *command)
        ready = self.folder / "ready"
        self.wait_for(ready.exists)
        return tacho

    def finish(self, tacho, code):
        out, err = tacho.communicate(timeout=30)
        self.assertEqual(tacho.returncode, code, err)
        self.nothing_left()
        self.assertGreater(self.markers(), 0)
        return out

    @variants(**ENDING)
    def test_ends_the_program_not_tacho(self, number):
        tacho = self.traced(TARGETS / "runs", "ready")
        os.kill(tacho.pid, number)
        self.finish(tacho, 128 + number)

    @variants(RTMIN=signal.SIGRTMIN, RTMAX=signal.SIGRTMAX)
    def test_real_time(self, number):
        tacho = self.traced(TARGETS / "runs", "ready")
        os.kill(tacho.pid, number)
        self.finish(tacho, 128 + number)

    @variants(**IGNORED)
    def test_disturbs_nothing(self, number):
        tacho = self.traced(TARGETS / "runs", "ready", "0.5")
        for _ in range(20):
            os.kill(tacho.pid, number)
        self.finish(tacho, 0)

    @variants(SIGTERM=signal.SIGTERM, SIGINT=signal.SIGINT, SIGHUP=signal.SIGHUP)
    def test_twice(self, number):
        """The second one comes while tacho finishes its files."""
        for pause in (0, 0.001, 0.003, 0.01, 0.02, 0.05):
            tacho = self.traced(TARGETS / "runs", "ready")
            os.kill(tacho.pid, number)
            time.sleep(pause)
            try:
                os.kill(tacho.pid, number)
            except ProcessLookupError:
                pass
            tacho.communicate(timeout=30)
            # Once trace and pool are done, a signal may end tacho itself.
            self.assertIn(tacho.returncode, (128 + number, -number))
            self.nothing_left()
            self.assertGreater(self.markers(), 0)
            (self.folder / "t.tacho").unlink()
            (self.folder / "ready").unlink()

    def test_storm(self):
        tacho = self.traced(TARGETS / "runs", "ready", "1", "catch")
        for i in range(300):
            os.kill(tacho.pid, (signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM, signal.SIGHUP, signal.SIGPIPE)[i % 5])
        self.finish(tacho, 0)

    def test_program_that_catches(self):
        """Signals reach it once each, by number."""
        tacho = self.traced(TARGETS / "runs", "ready", "1", "catch")
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM):
            os.kill(tacho.pid, number)
            time.sleep(0.1)
        out = self.finish(tacho, 0)
        self.assertEqual(out.split(), [b"10", b"14", b"15"])

    def test_alarm_from_before(self):
        """An alarm survives exec: without tacho the program gets it."""
        command = ["/usr/bin/python3", "-c", "import os, signal, sys; signal.setitimer(signal.ITIMER_REAL, 0.4); "
                   "os.execv(sys.argv[1], sys.argv[1:])"]
        plain = subprocess.run([*command, str(TARGETS / "runs"), "ready", "20"], cwd=self.folder, timeout=30)
        self.assertEqual(plain.returncode, -signal.SIGALRM)
        result = subprocess.run([*command, str(attack.TACHO), "trace", "--quiet", "-o", "t.tacho", "--", str(TARGETS / "runs"),
                                 "ready", "20"], cwd=self.folder, env=self.environment(), timeout=30)
        self.assertEqual(result.returncode, 128 + signal.SIGALRM)
        self.nothing_left()

    def test_terminal_group(self):
        """Ctrl-C reaches both at once; the program gets it once."""
        tacho = self.traced(TARGETS / "runs", "ready")
        os.killpg(tacho.pid, signal.SIGINT)
        tacho.communicate(timeout=30)
        self.assertEqual(tacho.returncode, 128 + signal.SIGINT)
        self.nothing_left()

    def test_nobody_reads_its_messages(self):
        """SIGPIPE for tacho itself: stderr is a pipe whose reader has gone."""
        reader, writer = os.pipe()
        tacho = subprocess.Popen([str(attack.TACHO), "trace", "-o", "t.tacho", "--", str(TARGETS / "runs"), "ready", "0.2"],
                                 stderr=writer, cwd=self.folder, env=self.environment())
        os.close(writer)
        os.close(reader)
        self.assertEqual(tacho.wait(timeout=30), 0)
        self.nothing_left()
        self.assertGreater(self.markers(), 0)

    def test_before_the_program_runs(self):
        """Signals from the first moment on: either nothing was started, or all is written."""
        for delay in (0, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03):
            tacho = self.start("trace", "--quiet", "-o", "t.tacho", "--", TARGETS / "runs", "ready", "3")
            time.sleep(delay)
            tacho.send_signal(signal.SIGTERM)
            tacho.communicate(timeout=30)
            self.assertIn(tacho.returncode, (-signal.SIGTERM, 128 + signal.SIGTERM))
            self.nothing_left()
            (self.folder / "t.tacho").unlink(missing_ok=True)
            (self.folder / "ready").unlink(missing_ok=True)

    @variants(csv="csv", json="json", pftrace="pftrace")
    def test_during_an_export(self, form):
        tacho = self.start("trace", "--quiet", "-o", "t.tacho", "-f", form, "--", TARGETS / "workload", "30000", "4")
        time.sleep(0.25)
        for _ in range(40):
            if tacho.poll() is not None:
                break
            tacho.send_signal(signal.SIGTERM)
            time.sleep(0.01)
        tacho.communicate(timeout=30)
        self.nothing_left()

    def test_sampled_program(self):
        tacho = self.start("sys", "sample", "-o", "t.tacho", "--", TARGETS / "runs", "ready")
        self.wait_for((self.folder / "ready").exists)
        tacho.send_signal(signal.SIGTERM)
        tacho.communicate(timeout=30)
        self.assertEqual(tacho.returncode, 128 + signal.SIGTERM)
        self.nothing_left()


if __name__ == "__main__":
    attack.main()
