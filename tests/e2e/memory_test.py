#!/usr/bin/env python3
"""Who holds memory: snapshots of PyTorch's allocators in every protocol of pickles, hostile ones, [memory] events of torch.profiler,
recordings with --memory; peaks, owners and leaks against this test's own sums."""
import csv
import gzip
import io
import json
import os
import pickle
import random
import struct

from harness import DEBIAN_PYTHON, Case, DATA, SOURCE, TACHO, TARGETS, main, need_data

MIB = 1 << 20


class Allocator:
    """A history as torch.cuda.memory._snapshot() gives it."""

    def __init__(self, devices=1, start_us=1_700_000_000_000_000):
        self.traces = [[] for _ in range(devices)]
        self.segments, self.time, self.live, self.next = [], start_us, {}, 0x7f0000000000
        self.frame_dicts, self.sum, self.peak = {}, [0] * devices, [0] * devices

    def frames(self, *lines):
        """Frames as torch shares them: one dict for each place, a list of its own for each event. Innermost first."""
        made = []
        for name, file, line in lines:
            made.append(self.frame_dicts.setdefault((name, file, line), {"name": name, "filename": file, "line": line}))
        return made

    def event(self, action, address, size, frames, device=0, **more):
        self.time += 10
        self.traces[device].append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": self.time,
                                    "compile_context": "N/A", "user_metadata": "", "frames": frames, **more})

    def allocate(self, size, frames, device=0):
        address, self.next = self.next, self.next + (size + 511) // 512 * 512
        self.event("alloc", address, size, frames, device)
        self.live[address] = (size, frames, device)
        self.sum[device] += size
        self.peak[device] = max(self.peak[device], self.sum[device])
        return address

    def free(self, address, frames=()):
        size, _, device = self.live.pop(address)
        self.event("free_requested", address, size, list(frames), device)
        self.event("free_completed", address, size, list(frames), device)
        self.sum[device] -= size

    def snapshot(self, reserved=0, segments=True):
        if segments:
            for device in range(len(self.traces)):
                blocks, used = [], 0
                for address, (size, frames, where) in sorted(self.live.items()):
                    if where == device:
                        blocks.append({"address": address, "size": (size + 511) // 512 * 512, "requested_size": size,
                                       "state": "active_allocated", "frames": frames})
                        used += blocks[-1]["size"]
                # Blocks lie one behind the other: the segment is split where they do not.
                for block in blocks:
                    self.segments.append({"device": device, "address": block["address"], "total_size": block["size"],
                                          "allocated_size": block["size"], "active_size": block["size"], "stream": 0,
                                          "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": [],
                                          "blocks": [block]})
        return {"segments": self.segments, "device_traces": self.traces,
                "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "expandable_segments": False},
                "external_annotations": []}


TRAIN = ("train_step", "/home/u/train.py", 31)
LEAK = ("log_loss", "/home/u/train.py", 47)
LINEAR = ("forward", "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py", 114)
ADAM = ("adam", "/usr/lib/python3/dist-packages/torch/optim/adam.py", 60)
BACKWARD = ("backward", "/usr/lib/python3/dist-packages/torch/autograd/__init__.py", 200)


def training(steps=12, leak=True):
    allocator = Allocator()
    weights = [allocator.allocate(4 * MIB, allocator.frames(("__init__", "/home/u/model.py", 5))) for _ in range(4)]
    states = []
    for step in range(steps):
        forward = [allocator.allocate(8 * MIB, allocator.frames(LINEAR, TRAIN)) for _ in range(3)]
        if leak:
            allocator.allocate(300_000, allocator.frames(LEAK, TRAIN))
        gradients = [allocator.allocate(4 * MIB, allocator.frames(BACKWARD, TRAIN)) for _ in weights]
        for each in reversed(forward):
            allocator.free(each, allocator.frames(BACKWARD, TRAIN))
        if step == 0:
            states = [allocator.allocate(4 * MIB, allocator.frames(ADAM, TRAIN)) for _ in weights]
        for each in gradients:
            allocator.free(each, allocator.frames(("zero_grad", "/usr/lib/python3/dist-packages/torch/optim/optimizer.py", 9), TRAIN))
    return allocator, weights + states


class Memory(Case):
    def dump(self, document, name="s.pickle", protocol=4):
        path = self.folder / name
        path.write_bytes(pickle.dumps(document, protocol=protocol))
        return path

    def table(self, file, table, *options):
        text = self.run_command(TACHO, "memory", file, "--output-format", "csv", "--table", table, *options).stdout.decode()
        return list(csv.DictReader(io.StringIO(text)))

    def place(self, file, *options):
        return self.table(file, "places", *options)[0]

    def refused(self, data, *needles, name="bad.pickle"):
        path = self.folder / name
        path.write_bytes(data)
        result = self.run_command(TACHO, "memory", path, code=1)
        self.one_sentence(result, name, *needles)


class Snapshots(Memory):
    def test_peak_and_end_in_every_protocol(self):
        allocator, _ = training()
        document = allocator.snapshot()
        for protocol in (2, 3, 4, 5):
            file = self.dump(document, f"p{protocol}.pickle", protocol)
            place = self.place(file)
            self.assertEqual(int(place["PeakBytes"]), allocator.peak[0], protocol)
            self.assertEqual(int(place["EndBytes"]), allocator.sum[0], protocol)
            self.assertEqual(int(place["BeforeBytes"]), 0)
            self.assertEqual(int(place["Gaps"]), 0)

    def test_holders_add_up_to_the_peak(self):
        allocator, _ = training()
        file = self.dump(allocator.snapshot())
        rows = self.table(file, "holders")
        self.assertEqual(sum(int(row["Bytes"]) for row in rows), allocator.peak[0])
        lines = {row["Line"]: row for row in self.table(file, "holders", "--by", "line")}
        self.assertEqual(int(lines["model.py:5 __init__"]["Bytes"]), 16 * MIB)
        uses = {row["Category"]: int(row["Bytes"]) for row in self.table(file, "holders", "--by", "category")}
        self.assertEqual(uses["activation"], 24 * MIB)
        self.assertEqual(uses["gradient"], 16 * MIB)
        self.assertEqual(uses["optimizer state"], 16 * MIB)

    def test_a_leak_is_named_and_a_healthy_run_is_not(self):
        allocator, _ = training()
        text = self.run_command(TACHO, "memory", self.dump(allocator.snapshot())).stdout.decode()
        self.assertIn("Memory grows: train.py:47 log_loss", text)
        unfreed = {row["Line"]: row for row in self.table(self.folder / "s.pickle", "unfreed", "--by", "line")}
        self.assertEqual(int(unfreed["train.py:47 log_loss"]["Bytes"]), 12 * 300_000)
        healthy, _ = training(leak=False)
        text = self.run_command(TACHO, "memory", self.dump(healthy.snapshot(), "h.pickle")).stdout.decode()
        self.assertNotIn("grows", text)

    def test_packed(self):
        allocator, _ = training()
        path = self.folder / "s.pickle.gz"
        path.write_bytes(gzip.compress(pickle.dumps(allocator.snapshot())))
        self.assertEqual(int(self.place(path)["PeakBytes"]), allocator.peak[0])

    def test_chrome_json_brings_it_back(self):
        allocator, _ = training()
        self.run_command(TACHO, "export", self.dump(allocator.snapshot()), "-f", "json", "-o", "t.json")
        place = self.place("t.json")
        self.assertEqual(place["Memory"], "GPU 0, tensors")
        self.assertEqual((int(place["PeakBytes"]), int(place["EndBytes"])), (allocator.peak[0], allocator.sum[0]))
        # The segments of this history do not hold its peak, so nothing is said of the reserve.
        self.assertEqual((place["ReservedAtPeakBytes"], place["AddressesUsedAgain"]), ("", "0"))

    def test_random_histories(self):
        for seed in range(6):
            random.seed(seed)
            allocator = Allocator(devices=2)
            live = []
            for i in range(2000):
                if live and random.random() < 0.48:
                    allocator.free(live.pop(random.randrange(len(live))))
                else:
                    line = random.randrange(20)
                    live.append(allocator.allocate(random.randrange(1, 1 << 22), allocator.frames((f"f{line}", "/home/u/a.py", line)),
                                                   random.randrange(2)))
            file = self.dump(allocator.snapshot(), f"r{seed}.pickle", 2 + seed % 4)
            places = {row["Memory"]: row for row in self.table(file, "places")}
            for device in range(2):
                row = places[f"GPU {device}, tensors"]
                self.assertEqual(int(row["PeakBytes"]), allocator.peak[device])
                self.assertEqual(int(row["EndBytes"]), allocator.sum[device])
                rows = self.table(file, "holders", "--device", f"GPU {device}")
                self.assertEqual(sum(int(each["Bytes"]) for each in rows), allocator.peak[device])

    def test_a_history_that_begins_late(self):
        allocator, _ = training()
        document = allocator.snapshot()
        whole = allocator.traces[0]
        cut = len(whole) // 3
        document["device_traces"] = [whole[cut:]]
        place = self.place(self.dump(document))
        # What was live at the cut, by this test's own sum.
        live, peak = {}, 0
        for at, event in enumerate(whole):
            if event["action"] == "alloc":
                live[event["addr"]] = event["size"]
            elif event["action"] == "free_completed":
                live.pop(event["addr"])
            if at >= cut:
                peak = max(peak, sum(live.values()))
        self.assertEqual(int(place["PeakBytes"]), peak)
        self.assertEqual(int(place["EndBytes"]), allocator.sum[0])
        self.assertGreater(int(place["FreesOfEarlierMemory"]), 0)
        text = self.run_command(TACHO, "memory", self.folder / "s.pickle").stdout.decode()
        self.assertIn("allocated before the recording", text)

    def test_no_history(self):
        allocator, _ = training()
        document = allocator.snapshot()
        document["device_traces"] = [[]]
        place = self.place(self.dump(document))
        # Without a history the blocks' own sizes are known.
        self.assertEqual(int(place["EndBytes"]), sum(segment["allocated_size"] for segment in document["segments"]))
        # memory_snapshot() gives the segments alone.
        self.assertEqual(self.place(self.dump(document["segments"], "segments.pickle"))["EndBytes"], place["EndBytes"])

    def test_addresses_used_again_without_a_free(self):
        allocator = Allocator()
        frames = allocator.frames(TRAIN)
        allocator.event("alloc", 0x1000, 100, frames)
        allocator.event("alloc", 0x1000, 300, frames)
        allocator.event("free_requested", 0x9000, 50, frames)
        allocator.event("free_completed", 0x9000, 50, frames)
        place = self.place(self.dump(allocator.snapshot(segments=False)))
        self.assertEqual((place["AddressesUsedAgain"], place["FreesOfEarlierMemory"]), ("1", "1"))
        self.assertEqual((place["BeforeBytes"], place["PeakBytes"], place["EndBytes"]), ("50", "350", "300"))

    def test_out_of_memory(self):
        allocator, _ = training(2)
        allocator.traces[0].append({"action": "oom", "device_free": 1234, "size": 9 * MIB, "stream": 0, "time_us": allocator.time + 10,
                                    "frames": allocator.frames(TRAIN)})
        file = self.dump(allocator.snapshot())
        self.assertEqual(self.place(file)["OutOfMemory"], "1")
        self.assertIn("Memory ran out 1 time.", self.run_command(TACHO, "memory", file).stdout.decode())
        self.assertIn("GPU 0 ran out of memory", self.run_command(TACHO, "info", file).stdout.decode())

    def test_reserve_and_fragmentation(self):
        allocator = Allocator()
        allocator.event("segment_alloc", 0x7e0000000000, 100 * MIB, [])
        allocator.allocate(40 * MIB, allocator.frames(TRAIN))
        place = self.place(self.dump(allocator.snapshot(segments=False)))
        self.assertEqual(int(place["ReservedAtPeakBytes"]), 100 * MIB)
        text = self.run_command(TACHO, "memory", self.folder / "s.pickle").stdout.decode()
        self.assertIn("Reserved: 100.00 MiB at the peak, 60.00 MiB of it free (60.0 %)", text)
        self.assertIn("Fragmentation", text)

    def test_two_runs_and_two_moments(self):
        one, _ = training(6, leak=False)
        other, _ = training(6, leak=True)
        a, b = self.dump(one.snapshot(), "a.pickle"), self.dump(other.snapshot(), "b.pickle")
        text = self.run_command(TACHO, "memory", a, b, "--by", "line", "--output-format", "csv").stdout.decode()
        rows = {row["Line"]: row for row in csv.DictReader(io.StringIO(text))}
        self.assertEqual(rows["model.py:5 __init__"]["ChangeBytes"], "0")
        self.assertGreater(int(rows["train.py:47 log_loss"]["ChangeBytes"]), 0)
        self.assertEqual(sum(int(row["ChangeBytes"]) for row in rows.values()), other.peak[0] - one.peak[0])
        rows = {row["Line"]: row for row in self.table(b, "holders", "--by", "line", "--at", "20%", "90%")}
        self.assertGreater(int(rows["train.py:47 log_loss"]["ChangeBytes"]), 0)

    def test_json_is_whole(self):
        allocator, _ = training()
        document = json.loads(self.run_command(TACHO, "memory", self.dump(allocator.snapshot()), "--output-format", "json").stdout)
        self.assertEqual([table["id"] for table in document["tables"]], ["places", "holders", "unfreed", "lifetimes", "curve"])
        curve = next(table for table in document["tables"] if table["id"] == "curve")
        self.assertEqual(max(row[1] for row in curve["rows"]), allocator.peak[0])

    def test_text_fits_80_columns(self):
        allocator, _ = training()
        self.dump(allocator.snapshot())
        text = self.run_command(TACHO, "memory", "s.pickle", env={"COLUMNS": "80"}).stdout.decode()
        for line in text.splitlines():
            if not line.startswith("  Peak") and ":" not in line:
                self.assertLessEqual(len(line), 80, line)

    def test_sql_sees_the_stacks(self):
        allocator, _ = training(2)
        file = self.dump(allocator.snapshot())
        text = self.run_command(TACHO, "query", file, "SELECT count(*) AS n FROM tacho.allocation WHERE stack > 0", "--output-format", "csv").stdout.decode()
        self.assertEqual(int(text.split()[1]), sum(e["action"] in ("alloc", "free_completed") for e in allocator.traces[0]))


class Hostile(Memory):
    def test_code_is_never_run(self):
        class Evil:
            def __reduce__(self):
                return os.system, (f"touch {self.folder}/owned",)

        Evil.folder = self.folder
        for protocol in (2, 3, 4, 5):
            for document in (Evil(), {"segments": [], "device_traces": [[Evil()]]}, [{"blocks": Evil()}]):
                self.refused(pickle.dumps(document, protocol=protocol), "opcode")
                self.assertFalse((self.folder / "owned").exists())

    def test_other_pickles(self):
        self.refused(pickle.dumps({"a": 1}), "no memory snapshot")
        self.refused(pickle.dumps([1, 2]), "no memory snapshot")
        self.refused(pickle.dumps({"a": b"bytes"}, protocol=4), "0x43")
        self.refused(pickle.dumps({"a": {1, 2}}, protocol=4), "0x8f")

    def test_damaged(self):
        allocator, _ = training(2)
        whole = pickle.dumps(allocator.snapshot())
        for part in (2, 3, 10, len(whole) // 2, len(whole) - 1):
            self.refused(whole[:part], name="cut.pickle") if part > 2 else None
        for body in (b"\x80\x04}a.", b"\x80\x04]N\x85e.", b"\x80\x04}(\x8c\x01au.", b"\x80\x04h\x09.", b"\x80\x04}j\xff\xff\xff\xff.",
                     b"\x80\x04]q\xffr\xff\xff\xff\x7f.", b"\x80\x04}u.", b"\x80\x04].", b"\x80\x04]]N."):
            self.refused(body)
        # Sizes that the file does not hold.
        self.refused(b"\x80\x04}X" + struct.pack("<I", 0xfffffff0) + b"a")
        self.refused(b"\x80\x04}\x8d" + struct.pack("<Q", 1 << 62) + b"a")
        self.refused(b"\x80\x04]\x8a\xff" + b"\x01" * 255 + b"a.")

    def test_values_of_other_kinds(self):
        allocator = Allocator()
        allocator.event("alloc", "text", 100, [])
        allocator.event("alloc", 0x1000, -5, [])
        allocator.event("alloc", 0x2000, 10, {"no": "list"})
        allocator.event("teleport", 0x3000, 10, [])
        document = allocator.snapshot(segments=False)
        document["segments"] = [{"blocks": 7, "address": 1}, 5]
        place = self.place(self.dump(document))
        self.assertEqual(place["PeakBytes"], "10")
        self.assertIn("teleport", self.run_command(TACHO, "info", self.folder / "s.pickle").stdout.decode())

    def test_a_list_that_holds_itself(self):
        loop = []
        loop.append(loop)
        self.refused(pickle.dumps(loop), "no memory snapshot")
        frames = []
        frames.append({"name": "f", "filename": "a.py", "line": 1, "frames": frames})
        allocator = Allocator()
        allocator.event("alloc", 0x1000, 100, frames)
        allocator.event("alloc", 0x2000, 100, frames)
        self.assertEqual(self.place(self.dump(allocator.snapshot(segments=False)))["PeakBytes"], "200")


class Profiler(Memory):
    def test_recorded_sums_are_torchs_own(self):
        need_data()
        for name in ("kineto_h100_qwen1.5-0.5b", "kineto_mi300x_qwen1.5-0.5b"):
            file = DATA / "traces" / f"{name}.json.gz"
            events = [e for e in json.load(gzip.open(file))["traceEvents"] if e.get("name") == "[memory]" and e["args"]["Device Type"] != 0]
            events.sort(key=lambda e: e["ts"])
            place = next(row for row in self.table(file, "places") if row["Memory"].startswith("GPU"))
            self.assertEqual(int(place["PeakBytes"]), max(e["args"]["Total Allocated"] for e in events))
            self.assertEqual(int(place["EndBytes"]), events[-1]["args"]["Total Allocated"])
            self.assertEqual(int(place["ReservedMostBytes"]), max(e["args"]["Total Reserved"] for e in events))
            self.assertEqual(int(place["Gaps"]), 0)
            rows = self.table(file, "holders", "--device", "GPU")
            self.assertEqual(sum(int(row["Bytes"]) for row in rows), int(place["PeakBytes"]))
            self.assertTrue(any(row["Operator"].startswith(("aten::", "torch.nn")) for row in rows))

    def memory_event(self, ts, size, address, device, total, name="[memory]", **more):
        return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": name, "pid": 1, "tid": 1, "ts": ts,
                "args": {"Bytes": size, "Addr": address, "Device Id": device, "Device Type": 1, "Total Allocated": total,
                         "Total Reserved": 4096, **more}}

    def test_gpus_without_work_and_out_of_memory(self):
        path = self.folder / "t.json"
        path.write_text(json.dumps({"traceEvents": [
            self.memory_event(1, 100, 1, 0, 100), self.memory_event(2, 300, 2, 1, 300), self.memory_event(3, -300, 2, 1, 0),
            self.memory_event(4, 5000, 0, 1, 0, "[OutOfMemory]")]}))
        places = {row["Memory"]: row for row in self.table(path, "places")}
        self.assertEqual(places["GPU 0, tensors"]["PeakBytes"], "100")
        self.assertEqual(places["GPU 1, tensors"]["PeakBytes"], "300")
        self.assertEqual((places["GPU 0, tensors"]["OutOfMemory"], places["GPU 1, tensors"]["OutOfMemory"]), ("0", "1"))

    def test_operators_and_lines_of_python(self):
        path = self.folder / "t.json"
        path.write_text(json.dumps({"traceEvents": [
            {"ph": "X", "cat": "python_function", "name": "/home/u/train.py(31): step", "pid": 1, "tid": 1, "ts": 0, "dur": 100, "args": {}},
            {"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 1, "tid": 1, "ts": 10, "dur": 50, "args": {"External id": 1}},
            self.memory_event(20, 1000, 1, 0, 1000), self.memory_event(70, 7, 2, 0, 1007)]}))
        rows = {row["Bytes"]: row for row in self.table(path, "holders")}
        self.assertEqual((rows["1000"]["Operator"], rows["1000"]["Line"]), ("aten::linear", "train.py:31 step"))
        self.assertEqual((rows["7"]["Operator"], rows["7"]["Line"]), ("tensor", "train.py:31 step"))

    def test_a_file_without_memory(self):
        path = self.folder / "t.json"
        path.write_text(json.dumps({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2,
                                                     "args": {"device": 0, "stream": 7}}]}))
        self.one_sentence(self.run_command(TACHO, "memory", path, code=1), "no allocations", "--memory")


# Of CuPy what --memory meets: its hooks, one set a thread, and a pool that rounds sizes up and calls them.
CUPY = """
import collections
import threading
import types

__version__ = "13.9.0"
_local = threading.local()


def _hooks():
    if not hasattr(_local, "hooks"):
        _local.hooks = collections.OrderedDict()
    return _local.hooks


class MemoryHook:
    name = "MemoryHook"

    def __enter__(self):
        if self.name in _hooks():
            raise KeyError("memory hook %s already exists" % self.name)
        _hooks()[self.name] = self
        return self

    def malloc_preprocess(self, **kwargs):
        pass

    malloc_postprocess = free_preprocess = free_postprocess = malloc_preprocess


_next = [0x7f0000000000]


def malloc(size):
    rounded = (size + 511) // 512 * 512
    address = 0 if size > 1 << 40 else _next[0]
    _next[0] += rounded
    for name in ("malloc_preprocess", "malloc_postprocess"):
        for hook in _hooks().values():
            getattr(hook, name)(device_id=1, size=size, mem_size=rounded, mem_ptr=address, pmem_id=address)
    if address == 0:
        raise MemoryError(size)
    return rounded, address


def free(block):
    for name in ("free_preprocess", "free_postprocess"):
        for hook in _hooks().values():
            getattr(hook, name)(device_id=1, mem_size=block[0], mem_ptr=block[1], pmem_id=block[1])


cuda = types.SimpleNamespace(MemoryHook=MemoryHook)
"""
USES_CUPY = """import threading
import cupy


def load():
    return cupy.malloc(1000)


held = [load() for _ in range(3)]
cupy.free(held.pop())
large = cupy.malloc(1 << 20)


def other():
    cupy.free(large)
    held.append(cupy.malloc(5000))


for _ in range(2):
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
thread = threading.Thread(target=other)
thread.start()
thread.join()
try:
    cupy.malloc(1 << 50)
except MemoryError:
    print("full")
type("Own", (cupy.MemoryHook,), {"name": "own"})().__enter__()
print(list(cupy._hooks()))
"""


class CuPy(Memory):
    def record(self, *options, cupy=CUPY):
        packages = self.folder / "lib" / "python3" / "site-packages"
        (packages / "cupy").mkdir(parents=True, exist_ok=True)
        (packages / "cupy" / "__init__.py").write_text(cupy)
        (self.folder / "use.py").write_text(USES_CUPY)
        return self.trace(DEBIAN_PYTHON, "use.py", options=options, env={"PYTHONPATH": str(packages)})

    def test_the_pool(self):
        done = self.record("--memory", "--sampler", "timer")
        self.assertEqual((done.stdout, done.stderr), (b"full\n['tacho', 'own']\n", b""))
        place = self.place("t.tacho")
        self.assertIn("CuPy's arrays", place["Memory"])
        self.assertEqual([int(place[name]) for name in ("BeforeBytes", "PeakBytes", "EndBytes", "OutOfMemory")],
                         [0, 2 * 1024 + MIB, 2 * 1024 + 5120, 1])
        rows = {row["Line"]: int(row["Bytes"]) for row in self.table("t.tacho", "holders", "--by", "line")}
        self.assertEqual(rows, {"use.py:6 load": 2 * 1024, "use.py:11 <module>": MIB})
        said = self.run_command(TACHO, "info", "t.tacho").stdout.decode()
        self.assertIn(f"ran out of memory: {1 << 50} bytes were asked for; tacho memory", " ".join(said.split()))

    def test_without_memory_nothing_is_hooked(self):
        self.assertEqual(self.record("--torch-trace").stdout, b"full\n['own']\n")

    def test_another_cupy(self):
        done = self.record("--memory", cupy=CUPY.replace("(MemoryHook=MemoryHook)", "()"))
        self.assertIn(b"tacho: --memory does not know this CuPy (13.9.0)", done.stderr)


class Recorded(Memory):
    def test_torchs_reports_reach_both(self):
        """torch's CPU allocator reports while its profiler runs, through the function by which those of GPUs report always."""
        script = self.folder / "script.py"
        script.write_text("""
import torch
from torch.profiler import profile, ProfilerActivity
keep = []
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
    for i in range(5):
        keep.append(torch.zeros(1 << 20))
        torch.zeros(3 << 20)
print(sum(e.self_cpu_memory_usage for e in p.key_averages()))
""")
        if self.run_command(DEBIAN_PYTHON, "-c", "import torch", code=None).returncode != 0:
            self.skipTest("no PyTorch")
        plain = self.run_command(DEBIAN_PYTHON, script).stdout
        traced = self.trace(DEBIAN_PYTHON, script, options=("--memory",))
        self.assertEqual(plain, traced.stdout)
        host = next(row for row in self.table("t.tacho", "places") if row["Memory"].startswith("Host"))
        self.assertEqual(int(host["EndBytes"]) - int(host["BeforeBytes"]), 5 << 22)
        self.assertGreaterEqual(int(host["PeakBytes"]) - int(host["BeforeBytes"]), (5 << 22) + (3 << 22))
        self.assertEqual(int(host["Gaps"]), 0)

    def test_opencl_runs_out(self):
        # The program dies over it without an end of its own: what is known then is in the trace.
        done = self.trace(TARGETS / "opencl_memory_full", "128", "64", code=3)
        count = int(done.stdout.split()[0])
        self.assertGreater(count, 2)
        place = self.place("t.tacho")
        self.assertEqual(place["OutOfMemory"], "1")
        self.assertEqual(int(place["PeakBytes"]), count * 128 * MIB)
        self.assertIn("clCreateBuffer found no memory (result -6)", self.run_command(TACHO, "info", "t.tacho").stdout.decode())
        found = json.loads(self.run_command(TACHO, "report", "findings", "t.tacho", "--output-format", "json").stdout)["findings"]
        self.assertIn("memory-ran-out", [finding["rule"] for finding in found])
        self.trace(TARGETS / "opencl_memory_full", "128", "2", output="enough.tacho")
        self.assertEqual(self.place("enough.tacho")["OutOfMemory"], "0")

    def test_native_stacks_of_opencl(self):
        """Where no Python runs, the native stack of a call that allocates names the line."""
        source = SOURCE / "tests" / "e2e" / "targets" / "opencl_memory_full.cpp"
        self.run_command("g++", "-g", "-O1", source, "-lOpenCL", "-o", "full")
        self.trace("./full", "16", "3", options=("--memory", "--sampler", "timer"))
        lines = source.read_text().splitlines()
        line = next(i for i, text in enumerate(lines, 1) if "clCreateBuffer" in text)
        rows = {row["Line"]: row for row in self.table("t.tacho", "holders", "--by", "line")}
        self.assertEqual(int(rows[f"opencl_memory_full.cpp:{line} main"]["Bytes"]), 48 * MIB, rows)
        # Without a sampler there are no stacks, and nothing is guessed.
        self.trace("./full", "16", "3", options=("--memory",), output="u.tacho")
        self.assertNotIn("main", " ".join(row["Line"] for row in self.table("u.tacho", "holders", "--by", "line")))

    def test_python_stacks_of_opencl(self):
        if self.run_command(DEBIAN_PYTHON, "-c", "import pyopencl", code=None).returncode != 0:
            self.skipTest("no PyOpenCL")
        script = self.folder / "hold.py"
        script.write_text("import pyopencl as cl\ncontext = cl.Context([cl.get_platforms()[0].get_devices()[0]])\n\n\n"
                          "def load():\n    return cl.Buffer(context, cl.mem_flags.READ_WRITE, 3 << 20)\n\n\nheld = load()\n")
        self.trace(DEBIAN_PYTHON, script, options=("--memory", "--sampler", "timer"))
        rows = {row["Line"]: row for row in self.table("t.tacho", "holders", "--by", "line")}
        self.assertEqual(int(rows["hold.py:6 load"]["Bytes"]), 3 * MIB, rows)

    def test_memory_keep(self):
        script = self.folder / "fill.py"
        script.write_text("""
import time, numpy
import pyopencl as cl
context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
queue = cl.CommandQueue(context)
first = cl.Buffer(context, cl.mem_flags.READ_WRITE, 1 << 20)
end = time.monotonic() + 3
while time.monotonic() < end:
    for i in range(200):
        cl.enqueue_fill_buffer(queue, first, numpy.int32(0), 0, 64)
    queue.finish()
last = cl.Buffer(context, cl.mem_flags.READ_WRITE, 1 << 21)
""")
        if self.run_command(DEBIAN_PYTHON, "-c", "import pyopencl", code=None).returncode != 0:
            self.skipTest("no PyOpenCL")
        self.trace(DEBIAN_PYTHON, script, options=("--memory", "--memory-keep", "200ms"))
        self.assertEqual(self.place("t.tacho")["PeakBytes"], str(3 << 20))
        text = self.run_command(TACHO, "query", "t.tacho", "SELECT min(start) - (SELECT min(start) FROM tacho.allocation) AS n FROM tacho.fill",
                                "--output-format", "csv").stdout.decode()
        self.assertGreater(int(text.split()[1]), 500_000_000)  # the first fills are gone
        for options, needle in ((("--memory-keep", "1s"), "--memory"), (("--memory", "--memory-keep", "often"), "60s"),
                                (("--memory", "--memory-keep", "1s", "--ring", "1M"), "--ring")):
            self.one_sentence(self.trace("true", options=options, output="u.tacho", code=125), needle)


if __name__ == "__main__":
    main()
