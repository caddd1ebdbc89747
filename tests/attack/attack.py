"""Helpers of every attack: named cases, a check for files that a run must not leave behind, and a report of
the cases that ran (build/tests/attack/reports/*.json, added up by report.py). Standard library only."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import harness  # noqa: E402
from harness import BUILD, TACHO  # noqa: E402,F401

TARGETS = BUILD / "tests" / "attack"
REPORTS = TARGETS / "reports"
LIBRARY = BUILD / "lib" / "libtacho.so"
WORKLOAD = TARGETS / "workload"


def variants(**named):
    """Makes one case of each named set of arguments: test_x(self, value) becomes test_x_NAME for every NAME."""
    def mark(method):
        method.variants = named
        return method
    return mark


class Attack(harness.Case):
    """A case runs in its own folder, with pools in another, so leftovers are found."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        for name, method in list(vars(cls).items()):
            for variant, value in getattr(method, "variants", {}).items():
                setattr(cls, f"{name}_{variant}", lambda self, m=method, v=value: m(self, v))
            if hasattr(method, "variants"):
                delattr(cls, name)

    def setUp(self):
        super().setUp()
        self.pools = self.folder / "pools"
        self.pools.mkdir()
        self.pool_environment = {"TACHO_POOL_DIR": str(self.pools)}

    def environment(self, more=None, without=()):
        variables = {**os.environ, **self.pool_environment, **(more or {})}
        for name in without:
            variables.pop(name, None)
        return variables

    def tacho(self, *words, code=0, timeout=60, env=None, program=TACHO, **options):
        """Runs tacho; the completed process. No case expects a death by a signal."""
        result = subprocess.run([str(program), *map(str, words)], stdin=options.pop("stdin", subprocess.DEVNULL),
                                stdout=options.pop("stdout", subprocess.PIPE),
                                stderr=options.pop("stderr", subprocess.PIPE), timeout=timeout,
                                cwd=options.pop("cwd", self.folder), env=self.environment(env), **options)
        self.assertGreaterEqual(result.returncode, 0, f"{words}: died of signal {-result.returncode}\n{result.stderr}")
        if code is not None:
            self.assertEqual(result.returncode, code, f"{words}\n{result.stdout}\n{result.stderr}")
        return result

    def trace_of(self, *command, options=(), output="t.tacho", **more):
        return self.tacho("trace", "--quiet", "-o", output, *options, "--", *command, **more)

    def start(self, *words, env=None, **options):
        """Starts tacho in its own process group, which is killed with the case."""
        process = subprocess.Popen([str(TACHO), *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, cwd=self.folder, env=self.environment(env),
                                   start_new_session=True, **options)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.communicate()

    def wait_for(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return
            time.sleep(0.01)
        self.fail("waited in vain")

    def sentence(self, result, *needles):
        """Asserts that stderr is sentences of ours only, and that they name the needles."""
        text = result.stderr.decode(errors="replace")
        for line in text.splitlines():
            self.assertTrue(line.startswith(("tacho: ", "tacho ")), text)
        for needle in needles:
            self.assertIn(str(needle), text)

    def markers(self, file="t.tacho"):
        """Rows of table marker."""
        result = self.tacho("stats", file, "--by", "marker", "--output-format", "json")
        table = json.loads(result.stdout)
        titles = [c["title"] if isinstance(c, dict) else c for c in table["columns"]]
        return sum(row[titles.index("Calls")] for row in table["rows"])

    def notes(self, file="t.tacho"):
        return self.tacho("info", file).stdout.decode()

    def nothing_left(self, *allowed):
        """No pool, no half-written file."""
        self.assertEqual(list(self.pools.iterdir()), [])
        hidden = [name for name in os.listdir(self.folder)
                  if (name.startswith(".") or ".partial" in name) and name not in allowed]
        self.assertEqual(hidden, [])

    def same_as_without(self, *command, options=(), output="t.tacho", env=None, **more):
        """Runs the command with and without tacho: same code, same output, nothing left. The traced process."""
        plain = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True,
                               cwd=self.folder, env=self.environment(env), timeout=60, **more)
        code = plain.returncode if plain.returncode >= 0 else 128 - plain.returncode
        traced = self.trace_of(*command, options=options, output=output, env=env, code=code, **more)
        self.assertEqual(plain.stdout, traced.stdout)
        self.assertEqual(re.sub(rb"==\d+==", b"", plain.stderr), re.sub(rb"==\d+==", b"", traced.stderr))
        self.nothing_left()
        return traced


class Reporting(unittest.TextTestResult):
    """Keeps how each case ended and how long it took."""

    def __init__(self, *words, **options):
        super().__init__(*words, **options)
        self.cases = {}

    def startTest(self, test):
        self.begin = time.monotonic()
        super().startTest(test)

    def keep(self, test, outcome):
        self.cases[test.id().removeprefix("__main__.")] = [outcome, round(time.monotonic() - self.begin, 3)]

    def addSuccess(self, test):
        self.keep(test, "survived")
        super().addSuccess(test)

    def addSkip(self, test, reason):
        self.keep(test, f"skipped: {reason}")
        super().addSkip(test, reason)

    def addFailure(self, test, error):
        self.keep(test, "failed")
        super().addFailure(test, error)

    def addError(self, test, error):
        self.keep(test, "failed")
        super().addError(test, error)


def main():
    name = pathlib.Path(sys.argv[0]).stem.removesuffix("_test")
    REPORTS.mkdir(parents=True, exist_ok=True)
    runner = unittest.TextTestRunner(verbosity=2, resultclass=Reporting)
    program = unittest.main(testRunner=runner, exit=False)
    if len(sys.argv) == 1:  # all of them, not some that were named
        (REPORTS / f"{name}.json").write_text(json.dumps(program.result.cases, indent=1))
    sys.exit(not program.result.wasSuccessful())
