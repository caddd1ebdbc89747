"""Sections that rocprofv3's JSON has since ROCm 7.13: graphs, HIP events, what the kernel driver did."""
import json

from files_test import FieldCase
from files_test import harness

GPU, CPU = {"handle": 8}, {"handle": 7}
NAMES = [{"kind": "NONE", "operations": []}, {"kind": "HIP_RUNTIME_API", "operations": ["NONE", "hipGraphLaunch"]},
         {"kind": "HIP_GRAPH", "operations": ["NONE", "HIP_GRAPH_EXEC_LAUNCH"]},
         {"kind": "HIP_EVENT", "operations": ["HIP_EVENT_NONE", "HIP_EVENT_RECORD", "HIP_EVENT_WAIT"]},
         {"kind": "KFD_PAGE_MIGRATE", "operations": ["KFD_PAGE_MIGRATE_PREFETCH", "KFD_PAGE_MIGRATE_PAGEFAULT_GPU"]},
         {"kind": "KFD_PAGE_FAULT", "operations": ["KFD_PAGE_FAULT_READ_FAULT_MIGRATED"]},
         {"kind": "KFD_QUEUE", "operations": ["KFD_QUEUE_EVICT_SVM"]},
         {"kind": "KFD_EVENT_UNMAP_FROM_GPU", "operations": ["KFD_EVENT_UNMAP_FROM_GPU_MMU_NOTIFY"]}]


def dispatch(number, start, correlation, **more):
    about = {"agent_id": GPU, "queue_id": {"handle": 1}, "kernel_id": 5, "dispatch_id": number,
             "workgroup_size": {"x": 64, "y": 1, "z": 1}, "grid_size": {"x": 640, "y": 1, "z": 1}}
    return {"kind": 11, "operation": 2, "thread_id": 42, "correlation_id": {"internal": correlation, "external": 0}, "start_timestamp": start,
            "end_timestamp": start + 100, "dispatch_info": about, "stream_id": {"handle": 2}, **more}


def of_graph(graph, node):
    return {"graph_exec_id": {"handle": graph}, "graph_node_id": {"handle": node}}


def launch(graph, start, end, correlation):
    return {"kind": 2, "operation": 1, "correlation_id": {"internal": correlation}, "thread_id": 42, "start_timestamp": start, "end_timestamp": end,
            "agent_id": GPU, "queue_id": {"handle": 1}, "graph_exec_id": {"handle": graph}, "dispatch_count": 2}


def event(operation, start, end, **more):
    return {"kind": 3, "operation": operation, "correlation_id": {"internal": 50}, "thread_id": 42, "start_timestamp": start, "end_timestamp": end,
            "agent_id": GPU, "queue_id": {"handle": 1}, "hip_event_handle": 99, "source_queue_id": {"handle": 3}, **more}


class Rocprofv3Json(FieldCase):
    def document(self, sections, first=()):
        process = {"metadata": {"pid": 42, "init_time": 1000, "fini_time": 900000, "command": ["/bin/app"]},
                   "agents": [{"id": CPU, "type": 1, "name": "EPYC", "node_id": 0, "logical_node_type_id": 0},
                              {"id": GPU, "type": 2, "name": "gfx942", "product_name": "MI300X", "node_id": 4, "logical_node_type_id": 0}],
                   "strings": {"buffer_records": NAMES}, "kernel_symbols": [{"kernel_id": 5, "kernel_name": "work"}]}
        path = self.written("t_results.json", {"rocprofiler-sdk-tool": [dict(first) | process | {"buffer_records": sections}]})
        self.losses = self.query(path, "select \"table\", reason, sum(count) from tacho.loss group by 1, 2 order by 1, 2")
        self.notes = [text for (text,) in self.query(path, "select text from tacho.note")]
        return path

    KERNELS = ("select k.name, k.kind, k.graph, d.graph_node, d.start, d.duration from tacho.dispatch d join tacho.kernel k on k.id = d.dim "
               "order by d.start, d.graph_node")

    def test_a_graph_is_its_kernels_where_the_file_has_them(self):
        work = [dispatch(1, 2000, 30, **of_graph(3, 1)), dispatch(2, 2200, 30, **of_graph(3, 2)), dispatch(3, 3000, 31)]
        for sections in ({"kernel_dispatch": work, "hip_graph": [launch(3, 2000, 2300, 30), launch(4, 4000, 4500, 32)]},
                         {"hip_graph": [launch(3, 2000, 2300, 30), launch(4, 4000, 4500, 32)], "kernel_dispatch": work}):
            path = self.document(sections)
            self.assertEqual(self.query(path, self.KERNELS),
                             [["work", "kernel", 3, 1, 2000, 100], ["work", "kernel", 3, 2, 2200, 100], ["work", "kernel", 0, 0, 3000, 100],
                              ["graph 4", "graph", 4, 0, 4000, 500]])
            self.assertEqual((self.losses, self.notes), ([], []))

    def test_graphs_come_back_from_what_tacho_writes(self):
        path = self.document({"kernel_dispatch": [dispatch(1, 2000, 30, **of_graph(3, 1)), dispatch(2, 2200, 30)]})
        self.tacho("export", "-f", "rocprofv3", "-o", "again.json", path)
        self.assertEqual(self.query(self.folder / "again.json", self.KERNELS), self.query(path, self.KERNELS))

    def test_copies_of_graphs(self):
        copy = {"kind": 10, "operation": 2, "thread_id": 42, "correlation_id": {"internal": 30}, "start_timestamp": 2000, "end_timestamp": 2100,
                "src_agent_id": CPU, "dst_agent_id": GPU, "bytes": 64, **of_graph(3, 7)}
        path = self.document({"memory_copy": [copy], "hip_graph": [launch(3, 2000, 2300, 30)]})
        self.assertEqual(self.query(path, "select graph_node, bytes from tacho.copy"), [[7, 64]])
        self.assertEqual(self.query(path, "select count(*) from tacho.dispatch"), [[0]])

    def test_events_of_hip(self):
        path = self.document({"hip_event": [event(1, 2000, 2010), event(2, 3000, 3500), event(1, 0, 0)]})
        self.assertEqual(self.query(path, "select s.kind, d.start, d.duration, v.name from tacho.sync d join tacho.sync_shape s on s.id = d.dim "
                                    "join tacho.device v on v.id = s.device order by d.start"),
                         [["event", 2000, 10, "MI300X"], ["queue waits for event", 3000, 500, "MI300X"]])
        self.assertEqual(self.losses, [["sync", "bad input row", 1]])

    def test_what_the_kernel_driver_did(self):
        pages = {"start_address": {"handle": 0x7f0000000000}, "end_address": {"handle": 0x7f0000004000}}
        moved = {"kind": 4, "operation": 1, "start_timestamp": 2000, "end_timestamp": 2500, "pid": 42, **pages, "src_agent": CPU, "dst_agent": GPU,
                 "prefetch_agent": GPU, "preferred_agent": {"handle": 0}, "error_code": 0}
        fault = {"kind": 5, "operation": 0, "start_timestamp": 2600, "end_timestamp": 2610, "pid": 42, "agent_id": GPU, "address": "0x7f0000001000"}
        evicted = {"kind": 6, "operation": 0, "start_timestamp": 3000, "end_timestamp": 3900, "pid": 42, "agent_id": GPU}
        unmapped = {"kind": 7, "operation": 0, "timestamp": 4000, "pid": 42, "agent_id": GPU, **pages}
        dropped = {"kind": 28, "operation": 0, "timestamp": 5000, "pid": 42, "count": 17}
        ask = ("select t.name, l.name, l.category, l.kind, d.start, d.duration, d.payload from tacho.marker d join tacho.label l on l.id = d.dim "
               "join tacho.track t on t.id = d.track order by d.start")
        right = [["page migrations, GPU 0", "KFD_PAGE_MIGRATE_PAGEFAULT_GPU", "KFD_PAGE_MIGRATE", "start/stop", 2000, 500, 0x4000],
                 ["page faults, GPU 0", "KFD_PAGE_FAULT_READ_FAULT_MIGRATED", "KFD_PAGE_FAULT", "start/stop", 2600, 10, 0x7f0000001000],
                 ["queue evictions, GPU 0", "KFD_QUEUE_EVICT_SVM", "KFD_QUEUE", "start/stop", 3000, 900, 0],
                 ["pages unmapped, GPU 0", "KFD_EVENT_UNMAP_FROM_GPU_MMU_NOTIFY", "KFD_EVENT_UNMAP_FROM_GPU", "mark", 4000, 0, 0x4000]]
        every = [moved, fault, evicted, unmapped, dropped]
        # The first releases leave the kind out.
        for records in (every, [{key: value for key, value in each.items() if key != "kind"} for each in every]):
            path = self.document({"kfd": records})
            self.assertEqual(self.query(path, ask), right)
            self.assertEqual(self.losses, [["marker", "dropped by the vendor's library", 17]])
        failed = moved | {"error_code": -12}
        self.assertEqual(self.query(self.document({"kfd": [failed, moved | {"operation": 9}]}), "select name from tacho.label order by name"),
                         [["KFD_PAGE_MIGRATE operation 9"], ["KFD_PAGE_MIGRATE_PAGEFAULT_GPU, error -12"]])

    def test_members_in_any_order(self):
        path = self.document({"kernel_dispatch": [dispatch(1, 2000, 30), dispatch(2, 2200, 31)]})
        document = json.loads(path.read_text())
        (process,) = document["rocprofiler-sdk-tool"]
        other = process | {"metadata": process["metadata"] | {"pid": 43}}
        ask = ("select p.pid, p.name, count(*), sum(d.duration) from tacho.dispatch d join tacho.track t on t.id = d.track "
               "join tacho.process p on p.id = t.process group by p.pid, p.name order by p.pid")
        for order in (sorted, lambda names: sorted(names, reverse=True), list):
            one, two = ({name: each[name] for name in order(each)} for each in (process, other))
            path = self.written("t_results.json", {"rocprofiler-sdk-tool": [one, two]})
            self.assertEqual(self.query(path, ask), [[42, "app", 2, 200], [43, "app", 2, 200]])
            self.assertEqual(self.query(path, "select count(*), count(distinct process) from tacho.device"), [[4, 2]])
            self.assertEqual(self.query(path, "select count(*) from tacho.process"), [[2]])

    def test_a_recording_that_comes_twice(self):
        path = self.document({"kernel_dispatch": [dispatch(1, 2000, 30)]})
        text = path.read_text()
        ((process,),) = json.loads(text).values()
        for again in (text + text, json.dumps({"rocprofiler-sdk-tool": [process, process]}),
                      json.dumps({"rocprofiler-sdk-tool": [process, {name: process[name] for name in sorted(process)}]})):
            path = self.written("t_results.json", again)
            self.assertEqual(self.query(path, "select count(*), sum(duration) from tacho.dispatch"), [[1, 100]])
            self.assertEqual(self.query(path, "select text from tacho.note"),
                             [["the recording of process 42 comes twice in the file and is read once"]])

    def test_sections_that_are_still_unknown_are_named(self):
        self.document({"spice": [{"a": 1}, {"b": 2}]})
        self.assertEqual(self.notes, ["2 records of section spice are of a kind that is not read"])


if __name__ == "__main__":
    harness.main()
