"""What the tests on the AMD test bed share: compiling HIP programs, running commands there, the bed's ledger."""
import collections
import hashlib
import os
import pathlib
import shutil
import tempfile
import unittest

import harness

SCRIPT = harness.SOURCE / "scripts" / "rocm-bed.sh"
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"

Kernel = collections.namedtuple("Kernel", "pid gpu queue name grid group lds scratch start end how")
Transfer = collections.namedtuple("Transfer", "pid gpu queue bytes start end")


class Ledger:
    """What the bed did (tests/rocm/kfd/ledger.cpp). Times are CLOCK_MONOTONIC_RAW ns."""

    def __init__(self, path):
        self.kernels, self.copies, self.fills, self.barriers, self.unknown = [], [], [], 0, []
        for line in pathlib.Path(path).read_text().splitlines() if pathlib.Path(path).exists() else []:
            pid, what, *rest = line.split(" ")
            if what == "kernel":
                gpu, queue, name, *numbers, how = rest
                n = [int(number) for number in numbers]
                self.kernels.append(Kernel(int(pid), int(gpu), int(queue), name, tuple(n[:3]), tuple(n[3:6]), *n[6:10], how))
            elif what in ("copy", "fill"):
                (self.copies if what == "copy" else self.fills).append(Transfer(int(pid), *map(int, rest)))
            elif what == "barrier":
                self.barriers += 1
            else:
                self.unknown.append(line)

    def names(self):
        return collections.Counter(kernel.name for kernel in self.kernels)


class Case(harness.Case):
    """A test on the bed. It skips, visibly, where the bed cannot be made: Debian's archive moves, and not every machine may
    mount."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import subprocess
        if harness.sanitized():
            raise unittest.SkipTest("a sanitizer's runtime has to be loaded before the bed's driver")
        made = subprocess.run([SCRIPT, "--build", harness.BUILD, "--", "/bin/true"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=600)
        if made.returncode == 77:
            raise unittest.SkipTest(made.stdout.decode().strip().splitlines()[-1])
        if made.returncode != 0:
            raise AssertionError(made.stdout.decode())

    def program(self, name):
        """The HIP program programs/NAME.hip, compiled once for each content."""
        source = PROGRAMS / f"{name}.hip"
        content = source.read_bytes() + (PROGRAMS / "bed.h").read_bytes() + SCRIPT.read_bytes()
        cache = pathlib.Path(os.environ.get("TACHO_TEST_CACHE", "/var/cache/tacho-tests")) / "rocm" / "programs"
        made = cache / f"{name}-{hashlib.sha256(content).hexdigest()[:16]}"
        if not made.exists():
            cache.mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory(dir=cache) as folder:
                self.run_command(SCRIPT, "--compile", source, f"{folder}/{name}", timeout=300)
                os.replace(f"{folder}/{name}", made)
        link = self.folder / name
        shutil.copy(made, link)
        return link

    def on_bed(self, *command, gpu="gfx942", gpus=1, env=None, **more):
        """Runs a command on the bed; returns the completed process and the ledger."""
        ledger = self.folder / "ledger"
        ledger.unlink(missing_ok=True)
        result = self.run_command(SCRIPT, "--gpu", gpu, "--gpus", gpus, "--build", harness.BUILD, "--", *command,
                                  env={"TACHO_KFD_LEDGER": str(ledger), **(env or {})}, **more)
        return result, Ledger(ledger)


def printed(result):
    """The "name value" lines that a program of the bed prints."""
    return dict(line.split(" ", 1) for line in result.stdout.decode().splitlines() if " " in line)
