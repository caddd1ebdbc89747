"""What `tacho export -f json` writes comes back: counts and sums of every table and column, and what the format cannot hold, by name.

The file is torch.profiler's, so that it holds what torch.profiler tells. What it has no place for is listed below, and a
column that is neither equal nor listed fails.
"""
import json

from files_test import FILES, FieldCase, harness
from harness import DATA, TARGETS

STEPS = TARGETS / "opencl_steps"
TRACES = DATA / "traces"

# Per table, an expression for each column; {zero} is the start of the earliest event.
SUMS = {
    "dispatch": ("dispatch d JOIN kernel k ON k.id = d.dim", {
        "start": "sum(d.start - {zero})", "duration": "sum(d.duration)", "correlation": "sum(d.correlation)",
        "graph_node": "sum(d.graph_node)", "device": "sum(d.device)", "queue": "sum(d.queue)", "ordinal": "count(d.ordinal)",
        "arguments": "sum(length(d.arguments))", "name": "sum(length(d.name))", "names": "count(DISTINCT d.name)",
        "grid_x": "sum(k.grid_x)", "grid_y": "sum(k.grid_y)", "grid_z": "sum(k.grid_z)", "group_x": "sum(k.group_x)",
        "group_y": "sum(k.group_y)", "group_z": "sum(k.group_z)", "registers": "sum(k.registers)",
        "shared": "sum(coalesce(k.shared_static, 0) + coalesce(k.shared_dynamic, 0))", "private_bytes": "sum(k.private_bytes)",
        "graph": "sum(k.graph)"}),
    "copy": ("copy d JOIN copy_shape k ON k.id = d.dim", {
        "start": "sum(d.start - {zero})", "duration": "sum(d.duration)", "correlation": "sum(d.correlation)",
        "graph_node": "sum(d.graph_node)", "bytes": "sum(d.bytes)", "sized": "count(d.bytes)", "direction": "group_concat(DISTINCT k.direction)",
        "source_memory": "group_concat(DISTINCT k.source_memory)", "target_memory": "group_concat(DISTINCT k.target_memory)"}),
    "fill": ("fill d JOIN fill_shape k ON k.id = d.dim", {
        "start": "sum(d.start - {zero})", "duration": "sum(d.duration)", "correlation": "sum(d.correlation)",
        "graph_node": "sum(d.graph_node)", "bytes": "sum(d.bytes)", "memory": "group_concat(DISTINCT k.memory)"}),
    "api": ("api d JOIN function k ON k.id = d.dim", {
        "start": "sum(d.start - {zero})", "duration": "sum(d.duration)", "tid": "sum(d.tid)",
        "correlation": "sum(CASE WHEN k.domain = 'operator' THEN 0 ELSE d.correlation END)", "name": "sum(length(k.name))",
        "names": "count(DISTINCT k.name)", "domain": "group_concat(DISTINCT k.domain)", "result": "count(d.result)",
        "arguments": "sum(length(d.arguments))"}),
    "marker": ("marker d JOIN label k ON k.id = d.dim", {
        "start": "sum(d.start - {zero})", "duration": "sum(d.duration)", "name": "sum(length(k.name))", "kind": "group_concat(DISTINCT k.kind)",
        "category": "group_concat(DISTINCT k.category)", "domain": "group_concat(DISTINCT k.domain)"}),
    "sync": ("sync d JOIN sync_shape k ON k.id = d.dim", {
        "start": "sum(d.start - {zero})", "duration": "sum(d.duration)", "correlation": "sum(d.correlation)",
        "kind": "group_concat(DISTINCT k.kind)"}),
    "overhead": ("overhead d JOIN overhead_shape k ON k.id = d.dim", {
        "start": "sum(d.start - {zero})", "duration": "sum(d.duration)", "kind": "group_concat(DISTINCT k.kind)", "name": "sum(length(k.name))"}),
    "allocation": ("allocation d JOIN allocation_shape k ON k.id = d.dim", {
        "start": "sum(d.start - {zero})", "duration": "sum(d.duration)", "bytes": "sum(d.bytes)", "address": "sum(d.address % 1000003)",
        "operation": "group_concat(DISTINCT k.operation)", "name": "group_concat(DISTINCT k.name)", "correlation": "sum(d.correlation)"}),
    "reading": ("reading d", {"start": "sum(d.start - {zero})", "value": "round(sum(d.value), 3)"}),
    "counter_value": ("counter_value d", {"value": "round(sum(d.value), 3)"}),
    "sample": ("sample d", {"start": "sum(d.start - {zero})"}),
    "link": ("link d", {"kind": "group_concat(DISTINCT d.kind)"}),
    "message": ("message d", {"start": "sum(d.start - {zero})"}),
}


# What the format has no place for, by what holds it.
OF_RANGES = ["marker.category"]            # a range without a category is a user_annotation; one with a domain, too
OF_LANES = ["api.tid"]                     # a call that overlaps another one of its thread gets a line of its own
OF_COUNTERS = ["counter_value.*", "reading.*"]  # counters of kernels come back as readings
OF_LAUNCHES = ["dispatch.ordinal", "dispatch.private_bytes"]
OF_CALLS = ["api.result", "api.arguments"]
OF_ALLOCATIONS = ["allocation.name", "allocation.duration", "allocation.correlation"]  # moments of torch's "tensor"
OF_MARKERS = ["marker.category", "marker.domain", "marker.kind"]


class JsonRoundTrip(FieldCase):
    maxDiff = None

    def tables(self, path):
        def ask(statement):
            return json.loads(self.tacho("query", path, statement, "--dialect", "tacho", "--output-format", "json"))["rows"][0]
        timed = ("dispatch", "copy", "fill", "api", "marker", "sync", "overhead", "allocation", "reading")
        zero = min(start for start in ask("SELECT " + ", ".join(f"(SELECT min(start) FROM {table})" for table in timed)) if start is not None)
        found = {}
        for table, (source, columns) in SUMS.items():
            expressions = ", ".join(text.format(zero=zero) for text in columns.values())
            count, *sums = ask(f"SELECT count(*), {expressions} FROM {source}")
            values = {name: ",".join(sorted(value.split(","))) if isinstance(value, str) else value or 0 for name, value in zip(columns, sums)}
            found[table] = {"rows": count, **values}
        return found

    def check(self, path, lost=(), tables=tuple(SUMS), apart=0):
        """Compares a trace with its export. `lost` has the columns ("table.column") that may differ; times may be `apart` ns each: an
        export's clock is not the trace's where somebody slews it."""
        self.tacho("export", "-f", "json", "-o", "r.json", "--overwrite", path)
        before, after = self.tables(path), self.tables(self.folder / "r.json")
        wrong = {}
        for table in tables:
            for column, value in before[table].items():
                name, back = f"{table}.{column}", after[table][column]
                same = abs(back - value) <= apart * before[table]["rows"] if column in ("start", "duration") else back == value
                if not same and name not in lost and f"{table}.*" not in lost:
                    wrong[name] = (value, back)
        self.assertEqual(wrong, {}, path)
        return before

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
        def event(category, name, ts, dur, tid=901, pid=900, **args):
            return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}
        work = {"device": 1, "context": 1, "stream": 7}
        collective = {"Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": 2, "dtype": "Float",
                      "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]"}
        events = [
            event("cpu_op", "aten::mm", 10, 50, **{"External id": 3, "Sequence number": 5}),
            event("cuda_runtime", "cudaLaunchKernel", 20, 5, correlation=11),
            event("cuda_driver", "cuLaunchKernel", 21, 2, correlation=11),
            event("kernel", "gemm", 30, 8, pid=1, tid=7, correlation=11, grid=[3, 2, 1], block=[64, 2, 1],
                  **{"registers per thread": 40, "shared memory": 4096, **work}),
            event("kernel", "ncclDevKernel_AllReduce", 40, 8, pid=1, tid=7, correlation=12, grid=[1, 1, 1], block=[32, 1, 1], **work, **collective),
            event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 50, 4, pid=1, tid=7, correlation=13, bytes=77, **work),
            event("gpu_memset", "Memset (Device)", 55, 1, pid=1, tid=7, correlation=14, bytes=64, **work),
            event("cuda_sync", "Stream Wait Event", 58, 2, pid=1, tid=7, correlation=15, **work),
            event("gpu_user_annotation", "step", 30, 30, pid=1, tid=7, **work),
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
