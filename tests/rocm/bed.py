"""Helpers of the tests on the AMD test bed: compiling HIP programs, running commands there, the bed's ledger."""
import collections
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import harness

SCRIPT = harness.SOURCE / "scripts" / "rocm-bed.sh"
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
SDK_SOURCES = pathlib.Path(__file__).resolve().parent / "sdk"
CACHE = pathlib.Path(os.environ.get("TACHO_TEST_CACHE", "/var/cache/tacho-tests")) / "rocm"

# Options of Case.program(): a code object of gfx942, which programs load themselves.
DEVICE_CODE = ("--cuda-device-only", "--no-gpu-bundle-output", "--no-offload-arch=gfx90a", "--no-offload-arch=gfx950")

Kernel = collections.namedtuple("Kernel", "pid gpu queue name grid group lds scratch start end how")
Count = collections.namedtuple("Count", "gpu queue block event die engine instance value")
Transfer = collections.namedtuple("Transfer", "pid gpu queue bytes start end")


class Ledger:
    """The bed's actions (tests/rocm/kfd/ledger.cpp). Times are CLOCK_MONOTONIC_RAW ns."""

    def __init__(self, path):
        self.kernels, self.copies, self.fills, self.barriers, self.faults, self.unknown = [], [], [], 0, 0, []
        self.packets = collections.defaultdict(list)  # of each queue in its order: (name, start, end), barriers without a name
        self.counts = []  # in the order in which the counters were read, a dispatch's right behind it
        for line in pathlib.Path(path).read_text().splitlines() if pathlib.Path(path).exists() else []:
            pid, what, *rest = line.split(" ")
            if what == "kernel":
                gpu, queue, name, *numbers, how = rest
                n = [int(number) for number in numbers]
                self.kernels.append(Kernel(int(pid), int(gpu), int(queue), name, tuple(n[:3]), tuple(n[3:6]), *n[6:10], how))
                self.packets[pid, gpu, queue].append((name, *n[8:10]))
            elif what in ("copy", "fill"):
                (self.copies if what == "copy" else self.fills).append(Transfer(int(pid), *map(int, rest)))
            elif what == "count":
                gpu, queue, block, *numbers = rest
                self.counts.append(Count(int(gpu), int(queue), block, *map(int, numbers)))
            elif what == "barrier":
                self.barriers += 1
                self.packets[pid, rest[0], rest[1]].append((None, int(rest[2]), int(rest[3])))
            elif what == "fault":
                self.faults += 1
            else:
                self.unknown.append(line)

    def between_events(self, name):
        """The times of launches of the kernel that stand between events as tacho watch puts them there: at least three barriers in a row in
        front, and one behind. From the end of the last in front to the end of that one, without what two barriers in a row take."""
        found, floors = [], []
        for packets in self.packets.values():
            barriers = 0
            for at, (what, _, end) in enumerate(packets[:-1]):
                if what == name and barriers >= 3 and packets[at + 1][0] is None:
                    found.append(packets[at + 1][2] - packets[at - 1][2])
                    floors.append(packets[at - 1][2] - packets[at - 2][2])
                barriers = barriers + 1 if what is None else 0
        floor = sorted(floors)[len(floors) // 2] if floors else 0
        return sorted(max(time - floor, 0) for time in found)

    def names(self):
        return collections.Counter(kernel.name for kernel in self.kernels)


def sdk_folder():
    """The folder of librocprofiler-sdk.so.1: TACHO_BED_SDK (a real one, and behind colons its dependencies), else the imitation."""
    return os.environ.get("TACHO_BED_SDK") or str(harness.BUILD / "tests" / "sdk")


def has_real_sdk():
    return "TACHO_BED_SDK" in os.environ


def register_shim():
    """The library that registers Debian's HIP and HSA, which are built without rocprofiler-register (sdk/register.cpp):
    TACHO_BED_SHIM, else made once for each version of HIP."""
    if os.environ.get("TACHO_BED_SHIM"):
        return os.environ["TACHO_BED_SHIM"]
    root = pathlib.Path(subprocess.run([SCRIPT, "--prepare"], stdout=subprocess.PIPE, check=True, text=True).stdout.strip())
    sources = [SDK_SOURCES / "register.cpp", SDK_SOURCES / "tables.py"]
    content = b"".join(source.read_bytes() for source in sources) + (root.parent / "versions").read_bytes()
    made = CACHE / "programs" / f"libtacho_register-{hashlib.sha256(content).hexdigest()[:16]}.so"
    if not made.exists():
        made.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=made.parent) as folder:
            subprocess.run(["python3", SDK_SOURCES / "tables.py", root, f"{folder}/tables.S"], check=True)
            subprocess.run([os.environ.get("CXX", "c++"), "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-static-libstdc++",
                            "-static-libgcc", sources[0], f"{folder}/tables.S", "-o", f"{folder}/made.so", "-ldl"], check=True)
            os.replace(f"{folder}/made.so", made)
    return str(made)


def open_mpi():
    """This machine's Open MPI for programs on the bed, copied once for each version: its folder is their OPAL_PREFIX, and `needed`
    in it has the libraries that the bed lacks. None where there is no Open MPI."""
    plugins = pathlib.Path("/usr/lib/x86_64-linux-gnu/openmpi")
    library = plugins.parent / "libmpi.so.40"
    if shutil.which("mpirun.openmpi") is None or not plugins.exists() or not library.exists():
        return None
    root = pathlib.Path(subprocess.run([SCRIPT, "--prepare"], stdout=subprocess.PIPE, check=True, text=True).stdout.strip())
    version = library.read_bytes() + (root.parent / "versions").read_bytes()
    made = CACHE / "programs" / f"openmpi-{hashlib.sha256(version).hexdigest()[:16]}"
    if made.exists():
        return made
    made.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=made.parent) as folder:
        place = pathlib.Path(folder) / "made"
        for each in (plugins, plugins.parent / "pmix2"):
            if each.exists():
                shutil.copytree(each, place / "lib" / "x86_64-linux-gnu" / each.name, symlinks=True)
        (place / "needed").mkdir()
        objects = [library, *plugins.glob("lib/openmpi3/*.so")]
        found = subprocess.run(["ldd", *objects], stdout=subprocess.PIPE, text=True).stdout
        for needed in {str(library), *re.findall(r"=> (/\S+)", found)}:
            if not (root / "usr/lib/x86_64-linux-gnu" / pathlib.Path(needed).name).exists():
                shutil.copy(needed, place / "needed")
        with contextlib.suppress(OSError):  # another test was faster
            os.replace(place, made)
    return made


class Case(harness.Case):
    """A test on the bed. It skips, visibly, where the bed cannot be made: Debian's archive moves, and not every machine may
    mount."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
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
        """AMD's compiler's output for programs/NAME.hip, once for each content, version and `options`."""
        source = PROGRAMS / f"{name}.hip"
        content = rocm.encode() + source.read_bytes() + (PROGRAMS / "bed.h").read_bytes() + SCRIPT.read_bytes() + "\0".join(options).encode()
        cache = CACHE / "programs"
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

    def on_sdk(self, *command, env=None, sdk=True, **more):
        """As on_bed, with HIP and HSA registered, and rocprofiler-sdk in the library path (sdk=False: without it)."""
        shim = register_shim()
        own = {"LD_PRELOAD": f"{harness.BUILD}/tests/libtacho_kfd.so:{shim}", "HSA_TOOLS_LIB": shim,
               "LD_LIBRARY_PATH": sdk_folder() if sdk else sdk_folder().partition(":")[2], **(env or {})}
        return self.on_bed("env", *(f"{key}={value}" for key, value in own.items()), *command, **more)


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
