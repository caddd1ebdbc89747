"""What the tests on the AMD test bed share: compiling HIP programs, running commands there, the bed's ledger."""
import collections
import hashlib
import json
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
        self.kernels, self.copies, self.fills, self.barriers, self.faults, self.unknown = [], [], [], 0, 0, []
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
            elif what == "fault":
                self.faults += 1
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

    def versions(self):
        """The versions of ROCm that can be had here. The second one is missed with a line, not with a failure."""
        found = ["7.2"]
        made = self.run_command(SCRIPT, "--rocm", "6.4", "--build", harness.BUILD, "--", "/bin/true", code=None, timeout=600)
        if made.returncode == 0:
            found.append("6.4")
        else:
            print(f"without ROCm 6.4: {made.stderr.decode().strip()}", flush=True)
        return found

    def program(self, name, *options, output=None, rocm="7.2"):
        """What AMD's compiler makes of programs/NAME.hip, once for each content, version and `options`."""
        source = PROGRAMS / f"{name}.hip"
        content = rocm.encode() + source.read_bytes() + (PROGRAMS / "bed.h").read_bytes() + SCRIPT.read_bytes() + "\0".join(options).encode()
        cache = pathlib.Path(os.environ.get("TACHO_TEST_CACHE", "/var/cache/tacho-tests")) / "rocm" / "programs"
        made = cache / f"{name}-{hashlib.sha256(content).hexdigest()[:16]}"
        if not made.exists():
            cache.mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory(dir=cache) as folder:
                self.run_command(SCRIPT, "--rocm", rocm, "--compile", source, f"{folder}/{name}", *options, timeout=300)
                os.replace(f"{folder}/{name}", made)
        link = self.folder / (output or name)
        shutil.copy(made, link)
        return link

    def on_bed(self, *command, gpu="gfx942", gpus=1, rocm="7.2", env=None, **more):
        """Runs a command on the bed; returns the completed process and the ledger."""
        ledger = self.folder / "ledger"
        ledger.unlink(missing_ok=True)
        result = self.run_command(SCRIPT, "--rocm", rocm, "--gpu", gpu, "--gpus", gpus, "--build", harness.BUILD, "--", *command,
                                  env={"TACHO_KFD_LEDGER": str(ledger), **(env or {})}, **more)
        return result, Ledger(ledger)


class Traced(Case):
    """Traces programs on the bed into t.tacho and asks about that."""

    def traced(self, *command, options=(), code=0, **where):
        (self.folder / "t.tacho").unlink(missing_ok=True)
        return self.on_bed(harness.TACHO, "trace", "--quiet", "-o", "t.tacho", *options, "--", *command, code=code, **where)

    def query(self, statement, file="t.tacho"):
        result = self.run_command(harness.TACHO, "query", file, "--dialect", "tacho", "--output-format", "json", statement)
        table = json.loads(result.stdout)
        return [tuple(row) for row in table["rows"]]

    def losses(self):
        return self.query("SELECT reason, sum(count) FROM loss GROUP BY 1")

    def notes(self):
        return [row[0] for row in self.query("SELECT text FROM note WHERE severity <> 'info'")]

    def dispatches(self):
        return self.query("SELECT k.name, d.start, d.start + d.duration, k.grid_x, k.grid_y, k.grid_z, k.group_x, k.group_y, "
                          "k.group_z, k.shared_static + k.shared_dynamic, k.private_bytes, d.correlation, d.track FROM "
                          "dispatch d JOIN kernel k ON k.id = d.dim")

    def equal(self, ledger):
        """Asserts that the trace has the ledger's kernels, each with its shape and its times, and nothing else."""
        rows = sorted(self.dispatches(), key=lambda row: row[1])
        done = sorted(ledger.kernels, key=lambda kernel: kernel.start)
        self.assertEqual(len(rows), len(done))
        shapes = collections.Counter((row[0], row[3:6], row[6:9], row[9], row[10]) for row in rows)
        self.assertEqual(shapes, collections.Counter((k.name, k.grid, k.group, k.lds, k.scratch) for k in done))
        # The runtime converts the GPU's clock by its own fit, which is good to a few microseconds.
        for row, kernel in zip(rows, done):
            self.assertLess(abs(row[1] - kernel.start), 100_000)
            self.assertLess(abs((row[2] - row[1]) - (kernel.end - kernel.start)), 1_000)
        self.assertEqual(self.losses(), [])


def printed(result):
    """The "name value" lines that a program of the bed prints."""
    return dict(line.split(" ", 1) for line in result.stdout.decode().splitlines() if " " in line)
