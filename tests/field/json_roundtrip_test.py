"""What `tacho export -f json` writes comes back: every row of every table, and what the format cannot hold, by name.

The file is torch.profiler's, so that it holds what torch.profiler tells. What it has no place for is listed below, and a
column that is neither equal nor listed fails.
"""
import collections
import json

from files_test import FILES, FieldCase, harness
from harness import DATA, TARGETS

STEPS = TARGETS / "opencl_steps"
TRACES = DATA / "traces"

# Per table, an expression for each column; {zero} is the start of the earliest event.
TIMES = {"start": "d.start - {zero}", "duration": "d.duration"}
ROWS = {
    "dispatch": ("dispatch d JOIN kernel k ON k.id = d.dim", {
        **TIMES, "correlation": "d.correlation", "graph_node": "d.graph_node", "device": "d.device", "queue": "d.queue",
        "ordinal": "d.ordinal", "arguments": "d.arguments", "name": "d.name", "grid_x": "k.grid_x", "grid_y": "k.grid_y",
        "grid_z": "k.grid_z", "group_x": "k.group_x", "group_y": "k.group_y", "group_z": "k.group_z", "registers": "k.registers",
        "shared": "coalesce(k.shared_static + k.shared_dynamic, k.shared_static, k.shared_dynamic)", "private_bytes": "k.private_bytes",
        "graph": "k.graph", "occupancy": "k.occupancy"}),
    "copy": ("copy d JOIN copy_shape k ON k.id = d.dim", {
        **TIMES, "correlation": "d.correlation", "graph_node": "d.graph_node", "bytes": "d.bytes", "direction": "k.direction",
        "source_memory": "k.source_memory", "target_memory": "k.target_memory", "arguments": "d.arguments"}),
    "fill": ("fill d JOIN fill_shape k ON k.id = d.dim", {
        **TIMES, "correlation": "d.correlation", "graph_node": "d.graph_node", "bytes": "d.bytes", "memory": "k.memory"}),
    "api": ("api d JOIN function k ON k.id = d.dim LEFT JOIN operator_input i ON i.id = d.inputs", {
        **TIMES, "tid": "d.tid", "correlation": "CASE WHEN k.domain = 'operator' THEN 0 ELSE d.correlation END", "name": "k.name",
        "domain": "k.domain", "result": "d.result", "arguments": "d.arguments",
        "dims": "i.dims", "types": "i.types", "strides": "i.strides", "concrete": "i.concrete"}),
    "marker": ("marker d JOIN label k ON k.id = d.dim", {
        **TIMES, "name": "k.name", "kind": "k.kind", "category": "k.category", "domain": "k.domain"}),
    "sync": ("sync d JOIN sync_shape k ON k.id = d.dim", {**TIMES, "correlation": "d.correlation", "kind": "k.kind"}),
    "overhead": ("overhead d JOIN overhead_shape k ON k.id = d.dim", {**TIMES, "kind": "k.kind", "name": "k.name"}),
    "allocation": ("allocation d JOIN allocation_shape k ON k.id = d.dim", {
        **TIMES, "bytes": "d.bytes", "address": "d.address", "operation": "k.operation", "name": "k.name",
        "correlation": "d.correlation"}),
    "reading": ("reading d", {"start": TIMES["start"], "value": "round(d.value, 3)"}),
    "counter_value": ("counter_value d", {"value": "round(d.value, 3)"}),
    "sample": ("sample d", {"start": TIMES["start"]}),
    "link": ("link d", {"kind": "d.kind"}),
    "message": ("message d", {"start": TIMES["start"]}),
}


# What the format has no place for, by what holds it.
OF_RANGES = ["marker.category"]            # a range without a category is a user_annotation; one with a domain, too
OF_LANES = ["api.tid"]                     # a call that overlaps another one of its thread gets a line of its own
OF_COUNTERS = ["counter_value.*", "reading.*"]  # counters of kernels come back as readings
OF_LAUNCHES = ["dispatch.ordinal"]
OF_CALLS = ["api.result"]
OF_ALLOCATIONS = ["allocation.name", "allocation.duration", "allocation.correlation"]  # moments of torch's "tensor"
OF_MARKERS = ["marker.category", "marker.domain", "marker.kind"]


def repr_of(row):
    return [[repr(cell) if not isinstance(cell, int) else f"{cell:030}" for cell in part] for part in row]


class JsonRoundTrip(FieldCase):
    maxDiff = None

    def tables(self, path):
        def rows(statement):
            return json.loads(self.tacho("query", path, statement, "--dialect", "tacho", "--output-format", "json"))["rows"]
        timed = ("dispatch", "copy", "fill", "api", "marker", "sync", "overhead", "allocation", "reading")
        zero = min(start for start in rows("SELECT " + ", ".join(f"(SELECT min(start) FROM {table})" for table in timed))[0] if start is not None)
        found = {}
        for table, (source, columns) in ROWS.items():
            expressions = ", ".join(f"{text.format(zero=zero)} AS c{at}" for at, text in enumerate(columns.values()))
            found[table] = rows(f"SELECT {expressions} FROM {source}")
        return found

    @staticmethod
    def slices_that_do_not_nest(path):
        """Perfetto leaves out a slice that ends after the one of its thread that it began in."""
        lines, wrong = collections.defaultdict(list), []
        for event in json.loads(path.read_text())["traceEvents"]:
            if event["ph"] == "X":
                start, duration = round(event["ts"] * 1000), round(event["dur"] * 1000)
                lines[event["pid"], event["tid"]].append((start, -duration, event["name"]))
        for line in lines.values():
            open_ends = []
            for start, negative, name in sorted(line):
                while open_ends and open_ends[-1] <= start:
                    open_ends.pop()
                if open_ends and start - negative > open_ends[-1]:
                    wrong.append((start, name))
                open_ends.append(start - negative)
        return wrong

    def check(self, path, lost=(), tables=tuple(ROWS), apart=0):
        """Compares each row of a trace, as a whole, with those of its export. `lost` has the columns ("table.column") that may differ,
        and the tables whose rows may ("table.*"); times may be `apart` ns each: an export's clock is not the trace's where somebody
        slews it."""
        self.tacho("export", "-f", "json", "-o", "r.json", "--overwrite", path)
        self.assertEqual(self.slices_that_do_not_nest(self.folder / "r.json"), [], path)
        before, after = self.tables(path), self.tables(self.folder / "r.json")
        for table in tables:
            if f"{table}.*" in lost:
                continue
            columns = list(ROWS[table][1])
            near = [at for at, column in enumerate(columns) if apart and column in TIMES and f"{table}.{column}" not in lost]
            same = [at for at, column in enumerate(columns) if f"{table}.{column}" not in lost and at not in near]
            one, other = (sorted(([[row[at] for at in same], [row[at] for at in near]] for row in every[table]), key=repr_of)
                          for every in (before, after))
            words = f"{path}: {table}: {[columns[at] for at in same]}"
            wrong = [(a, b) for (a, _), (b, _) in zip(one, other) if a != b]
            self.assertEqual((len(one), wrong[:3]), (len(other), []), words)
            for (_, mine), (_, its) in zip(one, other):
                for a, b in zip(mine, its):
                    self.assertTrue(a == b or None not in (a, b) and abs(a - b) <= apart, (words, mine, its))
        return {table: {"rows": len(every)} for table, every in before.items()}

    def threads(self, path):
        """Of each thread with calls or ranges its process's and its own number, and its name."""
        return sorted(self.query(path, "SELECT DISTINCT p.pid, t.tid, t.name FROM (SELECT track FROM tacho.api UNION SELECT track FROM tacho.marker) r "
                                 "JOIN tacho.track k ON k.id = r.track JOIN tacho.thread t ON t.id = k.thread JOIN tacho.process p ON p.id = t.process"))

    def test_threads(self):
        """Those of number 0 or of no process get numbers of their own in the file; lines of GPUs' work are no threads."""
        def host(name, ts, tid, pid=900):
            return {"ph": "X", "name": name, "cat": "cpu_op", "ts": ts, "dur": 10, "pid": pid, "tid": tid}
        path = self.written("threads.json", [
            {"ph": "M", "name": "thread_name", "pid": 900, "tid": 900, "args": {"name": "main"}},
            {"ph": "M", "name": "thread_name", "pid": 900, "tid": 902, "args": {"name": "reader"}},
            {"ph": "M", "name": "thread_name", "pid": 900, "tid": 77, "args": {"name": "stream 77"}},
            {"ph": "M", "name": "thread_name", "pid": 900, "tid": 903, "args": {"name": "Kernel queue"}},
            host("a", 10, 900), host("b", 20, 901), host("c", 30, 902), host("d", 40, 0), host("e", 50, 0, -1), host("f", 60, 903)])
        wanted = [[-1, 0, ""], [900, 0, ""], [900, 900, "main"], [900, 901, ""], [900, 902, "reader"], [900, 903, "Kernel queue"]]
        self.assertEqual(self.threads(path), wanted)
        self.tacho("export", "-f", "json", "-o", "r.json", "--overwrite", path)
        self.assertEqual([row[:2] for row in self.threads(self.folder / "r.json")], [row[:2] for row in wanted])
        self.assertLessEqual({"main", "reader", "Kernel queue"}, {name for _, _, name in self.threads(self.folder / "r.json")})
        for one in (path, self.folder / "r.json"):
            self.assertEqual(self.query(one, "SELECT count(*) FROM tacho.thread"), [[6]])

    def test_lines_of_kernels_become_no_threads(self):
        path = DATA / "traces" / "rocprofv3_gfx950_results.json.gz"
        if not path.exists():
            self.skipTest(f"no {path}")
        self.tacho("export", "-f", "json", "-o", "r.json", "--overwrite", path)
        self.assertEqual(self.query(self.folder / "r.json", "SELECT count(*) FROM tacho.thread"), [[0]])

    def test_the_case_of_the_field(self):
        tables = self.check(FILES / "json_roundtrip_source.json")
        self.assertEqual((tables["dispatch"]["rows"], tables["copy"]["rows"]), (62, 1))

    def test_recorded_traces_of_torch(self):
        if not TRACES.is_dir():
            self.skipTest(f"no {TRACES}")
        paths = [*sorted(TRACES.glob("kineto_*.json.gz")), *sorted((DATA / "ranks4").glob("*.json.gz"))]
        self.assertGreater(len(paths), 4)
        for path in paths:
            with self.subTest(path.name):
                self.check(path, OF_RANGES + OF_LANES + (OF_COUNTERS if "cupti_profiler" in path.name else []))

    def test_work_of_a_recorded_program(self):
        self.trace(STEPS, "--steps", "5")
        tables = self.check(self.folder / "t.tacho", OF_LAUNCHES + OF_ALLOCATIONS, ("dispatch", "copy", "fill", "allocation"), apart=1000)
        self.assertEqual(tables["dispatch"]["rows"], 15)

    def test_calls_of_a_recorded_program(self):
        self.trace(STEPS, "--steps", "5")
        self.check(self.folder / "t.tacho", OF_CALLS + OF_MARKERS, ("api", "marker", "sync", "overhead"), apart=1000)

    def test_words_and_arguments_of_torch(self):
        """Operators with arrows, an allocation, a collective and waits: what was read is written with torch's words again."""
        def event(category, name, ts, dur, /, tid=901, pid=900, **args):
            return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}
        work = {"device": 1, "context": 1, "stream": 7, "priority": -2}
        collective = {"Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": 2, "dtype": "Float",
                      "In split size": "[1, 1]", "Out split size": "[]", "Process Group Name": "0", "Process Group Description": "default_pg",
                      "Process Group Ranks": "[0, 1]", "Seq": 17, "Comms Id": 123456789012}
        annotations = {"name": "attention, \"first\"", "module_fqn": "layers.0.attention"}
        events = [
            event("cpu_op", "aten::mm", 10, 50, **{"External id": 3, "Sequence number": 5, "Concrete Inputs": ["", "1", "[]"],
                  "Input type": ["float", "Scalar", "TensorList"], "Input Strides": [[3, 1], [], [[1], []]], "Input Dims": [[8, 3], [], [[4], []]]}),
            event("cuda_runtime", "cudaLaunchKernel", 20, 5, correlation=11),
            event("cuda_driver", "cuLaunchKernel", 21, 2, correlation=11),
            event("kernel", "gemm", 30, 8, pid=1, tid=7, correlation=11, grid=[3, 2, 1], block=[64, 2, 1],
                  **{"registers per thread": 40, "shared memory": 4096, "private memory": 96, "est. achieved occupancy %": 31, **work}),
            event("kernel", "ncclDevKernel_AllReduce", 40, 8, pid=1, tid=7, correlation=12, grid=[1, 1, 1], block=[32, 1, 1], **work, **collective),
            event("kernel", "of_graph", 49, 1, pid=1, tid=7, correlation=16, grid=[1, 1, 1], block=[32, 1, 1],
                  **{"graph id": 6, "graph node id": 25769803785, **work, **annotations}),
            event("kernel", "ncclDevKernel_InGraph", 49.5, 0.5, pid=1, tid=7, correlation=16, grid=[1, 1, 1], block=[32, 1, 1],
                  **{"graph id": 6, "graph node id": 25769803786, **work, **collective, **annotations}),
            event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 50, 4, pid=1, tid=7, correlation=13, bytes=77, **work),
            event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 54, 1, pid=1, tid=7, correlation=16, bytes=77, **{"graph node id": 9},
                  **work, **annotations),
            event("kernel", "of_rocm", 90, 2, pid=2, tid=3, correlation=17, device=2, stream=3, hsa_queue=5, grid=[1, 1, 1], block=[64, 1, 1]),
            event("gpu_memset", "Memset (Device)", 55, 1, pid=1, tid=7, correlation=14, bytes=64, **work),
            event("cuda_sync", "Stream Wait Event", 58, 2, pid=1, tid=7, correlation=15, **work),
            event("gpu_user_annotation", "step", 30, 30, pid=1, tid=7),
            event("overhead", "Activity Buffer Request", 70, 3),
            event("python_function", "train.py(3): step", 5, 90),
            event("cpu_op", "autograd::engine", 80, 9, tid=902, **{"External id": 4, "Sequence number": 5}),
            {"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": 900, "tid": 901, "ts": 10},
            {"ph": "f", "bp": "e", "cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": 900, "tid": 902, "ts": 80},
            {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 900, "tid": 901, "ts": 15,
             "args": {"Addr": 4096, "Bytes": -512, "Device Type": 1, "Device Id": 1}},
            {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 900, "tid": 901, "ts": 12,
             "args": {"Addr": 4096, "Bytes": 512, "Device Type": 1, "Device Id": 1}}]
        path = self.written("a.json", {"deviceProperties": [{"id": 1, "name": "NVIDIA X", "totalGlobalMem": 1000, "numSms": 10}],
                                       "distributedInfo": {"rank": 3, "world_size": 4}, "traceEvents": events})
        tables = self.check(path)
        self.assertEqual((tables["link"]["rows"], tables["sync"]["rows"], tables["allocation"]["rows"]), (1, 1, 2))
        again = json.loads((self.folder / "r.json").read_text())
        self.assertEqual(again["distributedInfo"], {"rank": 3, "world_size": 4})
        self.assertEqual({key: again["deviceProperties"][0][key] for key in ("id", "name", "totalGlobalMem", "numSms")},
                         {"id": 1, "name": "NVIDIA X", "totalGlobalMem": 1000, "numSms": 10})
        for before in events:
            after = [e for e in again["traceEvents"] if (e["ph"], e.get("name"), e.get("cat")) == (before["ph"], before["name"], before["cat"])]
            if before["ph"] == "X":
                self.assertEqual(len(after), 1, before)
                self.assertEqual({key: after[0]["args"].get(key) for key in before["args"] if key not in ("External id", "Sequence number")},
                                 {key: value for key, value in before["args"].items() if key not in ("External id", "Sequence number")})
        ids = {e["name"]: e["args"].get("External id") for e in again["traceEvents"] if e["ph"] == "X"}
        self.assertIsNotNone(ids["aten::mm"])
        self.assertEqual({ids["cudaLaunchKernel"], ids["gemm"]}, {ids["aten::mm"]})


if __name__ == "__main__":
    harness.main()
