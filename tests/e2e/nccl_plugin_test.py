#!/usr/bin/env python3
"""NCCL's profiler plugin as NCCL uses it: found by its variable, told of collectives, version by version. What it leaves in the trace
is what `tacho ranks` reads."""
import sys
import unittest

from harness import Case, DEBIAN_PYTHON, TACHO, sanitized

# Plays NCCL: loads the plugin that the environment names and reports collectives to it, in the layout of a version.
NCCL = r"""
import ctypes, os, sys
version = int(sys.argv[1])
library = ctypes.CDLL(os.environ["NCCL_PROFILER_PLUGIN"])
class Plugin(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("name", "init", "start", "stop", "state", "finalize")]
class Old(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint8), ("parent", ctypes.c_void_p), ("rank", ctypes.c_int), ("name", ctypes.c_char_p),
                ("communicator", ctypes.c_uint64), ("sequence", ctypes.c_uint64), ("func", ctypes.c_char_p), ("send", ctypes.c_void_p),
                ("receive", ctypes.c_void_p), ("count", ctypes.c_size_t), ("root", ctypes.c_int), ("type", ctypes.c_char_p),
                ("channels", ctypes.c_uint8), ("warps", ctypes.c_uint8), ("algo", ctypes.c_char_p), ("proto", ctypes.c_char_p)]
class New(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint64 if version >= 5 else ctypes.c_uint8), ("parent", ctypes.c_void_p), ("rank", ctypes.c_int),
                ("sequence", ctypes.c_uint64), ("func", ctypes.c_char_p), ("send", ctypes.c_void_p), ("receive", ctypes.c_void_p),
                ("count", ctypes.c_size_t), ("root", ctypes.c_int), ("type", ctypes.c_char_p), ("channels", ctypes.c_uint8),
                ("warps", ctypes.c_uint8), ("algo", ctypes.c_char_p), ("proto", ctypes.c_char_p)]
plugin = Plugin.in_dll(library, f"ncclProfiler_v{version}")
context, mask, event = ctypes.c_void_p(), ctypes.c_int(-1), ctypes.c_void_p(1)
i, p, u = ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64
if version < 4:
    init = ctypes.CFUNCTYPE(i, p, p)(plugin.init)
    assert init(ctypes.addressof(context), ctypes.addressof(mask)) == 0
elif version == 4:
    init = ctypes.CFUNCTYPE(i, p, p, ctypes.c_char_p, u, i, i, i, p)(plugin.init)
    assert init(ctypes.addressof(context), ctypes.addressof(mask), b"dp", 0x5a, 1, 2, 0, None) == 0
else:
    init = ctypes.CFUNCTYPE(i, p, u, p, ctypes.c_char_p, i, i, i, p)(plugin.init)
    assert init(ctypes.addressof(context), 0x5a, ctypes.addressof(mask), b"dp", 1, 2, 0, None) == 0
print("mask", mask.value)
start = ctypes.CFUNCTYPE(i, p, p, p)(plugin.start)
if mask.value:
    for sequence, (func, count, type) in enumerate([(b"AllReduce", 1024, b"ncclFloat32"), (b"ReduceScatter", 10, b"ncclBfloat16"),
                                                    (b"AllGather", 77, b"ncclInt8")]):
        common = dict(kind=2, sequence=sequence, func=func, count=count, type=type, algo=b"RING", proto=b"LL")
        what = Old(communicator=0x5a, **common) if version < 4 else New(**common)
        assert start(context, ctypes.addressof(event), ctypes.addressof(what)) == 0 and not event.value
    what = Old(kind=1) if version < 4 else New(kind=1)  # of another kind: nothing of it is read
    assert start(context, ctypes.addressof(event), ctypes.addressof(what)) == 0
assert ctypes.CFUNCTYPE(i, p)(plugin.finalize)(context) == 0
print("done")
"""


@unittest.skipIf(sanitized(), "the stand-in has no sanitizer's runtime")
class NcclPlugin(Case):
    def marks(self, version, **more):
        (self.folder / "nccl.py").write_text(NCCL)
        result = self.trace(DEBIAN_PYTHON, self.folder / "nccl.py", str(version), options=["--overwrite"], **more)
        self.assertEqual(result.stdout.decode(), "mask 2\ndone\n")
        text = self.run_command(TACHO, "query", "t.tacho", "--dialect", "tacho", "--output-format", "csv",
                                "SELECT label.name, marker.payload FROM marker JOIN label ON marker.dim = label.id WHERE label.domain = 'NCCL' "
                                "ORDER BY marker.start").stdout.decode()
        return text.splitlines()[1:]

    def test_every_version(self):
        for version in (2, 3, 4, 5, 6):
            with self.subTest(version):
                told = self.marks(version)
                if version < 4:  # the number of ranks is missing
                    self.assertEqual(told, ['"Collective name=AllReduce, In msg nelems=1024, Out msg nelems=1024, dtype=Float32, Process Group Name=5a",0',
                                            '"Collective name=ReduceScatter, Out msg nelems=10, dtype=Bfloat16, Process Group Name=5a",1',
                                            '"Collective name=AllGather, In msg nelems=77, dtype=Int8, Process Group Name=5a",2'])
                    continue
                end = "Group size=2, Process Group Name=5a, Algorithm=RING, Protocol=LL"
                self.assertEqual(told, [f'"Collective name=AllReduce, In msg nelems=1024, Out msg nelems=1024, dtype=Float32, {end}",0',
                                        f'"Collective name=ReduceScatter, In msg nelems=20, Out msg nelems=10, dtype=Bfloat16, {end}",1',
                                        f'"Collective name=AllGather, In msg nelems=77, Out msg nelems=154, dtype=Int8, {end}",2'])

    def test_a_plugin_of_the_users_own_stays(self):
        result = self.run_command(TACHO, "trace", "-o", "t.tacho", "--", "/bin/sh", "-c", "echo $NCCL_PROFILER_PLUGIN", env={"NCCL_PROFILER_PLUGIN": "inspector"})
        self.assertEqual(result.stdout, b"inspector\n")
        self.assertIn("NCCL_PROFILER_PLUGIN is already set to inspector", result.stderr.decode())


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
