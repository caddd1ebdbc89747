"""SQLite databases of every schema that writers have used, by their right values: .rpd of schema 1, rocpd 3.0.0 to 4.1.0,
counters on samples and streams, graphs, replays, rows without times, compressed files, and what tacho writes itself.
"""
import gzip
import pathlib
import shutil
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402, the folder of end-to-end tests is no package
from harness import DATA, TACHO, need_data  # noqa: E402
from files_test import FILES, FieldCase  # noqa: E402

NODE, AGENT, CPU = 1, 2, 1


class RocpdFile:
    """A rocpd database of one recording: two threads, kernels on one GPU, as rocprofv3 of that schema writes it."""

    def __init__(self, path, version="3.0.0", tag=True, guid="0190aaaa-bbbb-7ccc-8ddd-000000000001"):
        self.version, self.guid, self.path = tuple(map(int, version.split("."))), guid, path
        self.suffix = "_" + guid.replace("-", "_")
        self.db = sqlite3.connect(path)
        self.ids, self.tracks, self.stamps = {}, {}, 0
        self.four = self.version >= (4,)
        self.apart = self.version[:2] == (4, 0)
        for name, columns in self.schema().items():
            self.db.execute(f'CREATE TABLE "rocpd_{name}{self.suffix}" (id INTEGER PRIMARY KEY AUTOINCREMENT, {columns})')
        if tag:
            self.add("metadata", tag="schema_version", value=version)
        self.strings = {}
        self.add("info_node", hash=1, machine_id="m", hostname="host")
        self.process = self.add("info_process", id=None if self.four else 500, nid=1, pid=500, command="/bin/app x", start=900)
        self.thread = self.add("info_thread", id=None if self.four else 501, nid=1, pid=self.process, tid=501)
        self.add("info_agent", id=CPU, nid=1, pid=self.process, type="CPU", absolute_index=0, logical_index=0, type_index=0, name="EPYC")
        name = {"name": "", "generic_name": "gfx942"} if self.four else {"name": "gfx942"}
        self.add("info_agent", id=AGENT, nid=1, pid=self.process, type="GPU", absolute_index=1, logical_index=1, type_index=0,
                 product_name="MI300X", vendor_name="AMD", **name)
        self.add("info_queue", id=1, nid=1, pid=self.process, name="Queue 1")
        self.add("info_stream", id=3, nid=1, pid=self.process, name="Stream 3")
        self.add("info_kernel_symbol", id=1, nid=1, pid=self.process, code_object_id=1, kernel_name="gemm", display_name="gemm")

    def schema(self):
        guid = "guid TEXT"
        place = "track_id INTEGER" if self.four else "nid INTEGER, pid INTEGER, tid INTEGER"
        on_gpu = place if self.four else place + ", agent_id INTEGER, queue_id INTEGER, stream_id INTEGER"
        times = "start_id INTEGER, end_id INTEGER" if self.apart else 'start BIGINT, "end" BIGINT'
        graph = ", graph_exec_id INTEGER NOT NULL DEFAULT 0, graph_node_id INTEGER NOT NULL DEFAULT 0" if (3, 0, 2) <= self.version < (4,) else ""
        size = ", ".join(f"{what}_size_{axis} INTEGER" for what in ("workgroup", "grid") for axis in "xyz")
        tables = {
            "metadata": "tag TEXT, value TEXT", "string": f"{guid}, string TEXT",
            "info_node": f"{guid}, hash BIGINT, machine_id TEXT, hostname TEXT",
            "info_process": f"{guid}, nid INTEGER, ppid INTEGER, pid INTEGER, start BIGINT, \"end\" BIGINT, command TEXT, init, fini",
            "info_thread": f"{guid}, nid INTEGER, ppid INTEGER, pid INTEGER, tid INTEGER, name TEXT, start, \"end\"",
            "info_agent": f"{guid}, nid, pid, type TEXT, absolute_index, logical_index, type_index, uuid, name TEXT, "
                          + ("generic_name TEXT, " if self.four else "user_name TEXT, ") + "model_name TEXT, vendor_name TEXT, product_name TEXT, extdata",
            "info_queue": f"{guid}, nid, pid, name TEXT", "info_stream": f"{guid}, nid, pid, name TEXT",
            "info_kernel_symbol": f"{guid}, nid, pid, code_object_id, kernel_name TEXT, display_name TEXT, group_segment_size, "
                                  "private_segment_size, sgpr_count, arch_vgpr_count, accum_vgpr_count, extdata",
            "info_pmc": f"{guid}, nid, pid, agent_id, name TEXT, symbol TEXT, units TEXT, description TEXT, block TEXT",
            "track": f"{guid}, nid, pid, tid, name_id" + (", ppid, agent_id, queue_id, stream_id" if self.four else ""),
            "event": f"{guid}, category_id, stack_id, parent_stack_id, correlation_id, extdata" + ("" if self.four else ", call_stack, line_info"),
            "arg": f"{guid}, event_id, position, type, name, value, extdata",
            "region": f"{guid}, {place}, {times}, name_id, event_id, extdata",
            "sample": f"{guid}, track_id, {'timestamp_id' if self.apart else 'timestamp'}, event_id" + (", name_id" if self.four else ""),
            "kernel_dispatch": f"{guid}, {on_gpu}, kernel_id, dispatch_id, {times}, private_segment_size, group_segment_size, {size}{graph}, "
                               "region_name_id, event_id, extdata",
            "memory_copy": f"{guid}, {place}{'' if self.four else ', queue_id, stream_id'}, {times}, name_id, dst_agent_id, dst_address, "
                           f"src_agent_id, src_address, size{graph}, region_name_id, event_id, extdata",
            "memory_allocate": f"{guid}, {place}{'' if self.four else ', agent_id, queue_id, stream_id'}, type TEXT, level TEXT, {times}, "
                               "address, size, event_id, extdata" + (", name_id" if self.four else ""),
            "pmc_event": f"{guid}, event_id, pmc_id, value REAL, extdata" + (
                ", sample_id, xcc, shader_engine, instance" if (3, 0, 3) <= self.version < (4,) else "") + (
                ", shader_array, wgp" if (3, 0, 5) <= self.version < (4,) else ""),
        }
        if self.four:
            tables["info_category"] = f"{guid}, name TEXT, extdata"
            tables["call_stack"] = f"{guid}, event_id, pc_id, depth"
        if self.apart:
            tables["timestamp"] = f"{guid}, value BIGINT, phase, track_id"
        if (3, 0, 2) <= self.version < (4,):
            tables["graph_launch"] = f"{guid}, nid, pid, tid, agent_id, queue_id, start, \"end\", graph_exec_id, kernel_dispatch_count, event_id, extdata"
        if (3, 0, 4) <= self.version < (4,):
            tables["hip_event"] = f"{guid}, nid, pid, tid, agent_id, queue_id, source_queue_id, stream_id, hip_event_handle, start, \"end\", name_id, event_id"
        return tables

    def add(self, table, **cells):
        cells = {name: value for name, value in cells.items() if value is not None or name != "id"}
        if table != "metadata":
            cells["guid"] = self.guid
        names = ", ".join(f'"{name}"' for name in cells)
        return self.db.execute(f'INSERT INTO "rocpd_{table}{self.suffix}" ({names}) VALUES ({", ".join("?" * len(cells))})',
                               list(cells.values())).lastrowid

    def text(self, value):
        if value not in self.strings:
            self.strings[value] = self.add("string", string=value)
        return self.strings[value]

    def event(self, category, stack=0, extdata="{}"):
        if self.four:
            key = self.ids.setdefault(("category", category), 0) or self.add("info_category", name=category)
            self.ids[("category", category)] = key
        else:
            key = self.text(category)
        return self.add("event", category_id=key, stack_id=stack, extdata=extdata)

    def times(self, start, end):
        if not self.apart:
            return {"start": start, "end": end}
        return {"start_id": self.stamp(start), "end_id": self.stamp(end)}

    def stamp(self, value):
        return self.add("timestamp", value=value)

    def line(self, tid=True, gpu=False, name="line"):
        key = (tid, gpu, name)
        if key not in self.tracks:
            cells = {"nid": 1, "pid": self.process, "tid": self.thread if tid else None, "name_id": self.text(name)}
            if self.four and gpu:
                cells |= {"agent_id": AGENT, "queue_id": 1, "stream_id": 3}
            self.tracks[key] = self.add("track", **cells)
        return self.tracks[key]

    def place(self, gpu=False, agent=True):
        if self.four:
            return {"track_id": self.line(gpu=gpu)}
        cells = {"nid": 1, "pid": self.process, "tid": self.thread}
        if gpu:
            cells |= {"queue_id": 1, "stream_id": 3} | ({"agent_id": AGENT} if agent else {})
        return cells

    def call(self, name, start, end, stack, category="HIP_RUNTIME_API"):
        event = self.event(category, stack)
        self.add("region", **self.place(), **self.times(start, end), name_id=self.text(name), event_id=event)
        return event

    def kernel(self, start, end, stack, dispatch, event=None, **more):
        event = event or self.event("KERNEL_DISPATCH", stack)
        sizes = {"workgroup_size_x": 64, "workgroup_size_y": 1, "workgroup_size_z": 1, "grid_size_x": 1024, "grid_size_y": 1, "grid_size_z": 1}
        self.add("kernel_dispatch", **({"kernel_id": 1, "dispatch_id": dispatch} | self.place(True) | self.times(start, end) | sizes | more),
                 event_id=event, region_name_id=self.text(""))
        return event

    def copy(self, start, end, stack, size, **more):
        event = self.event("MEMORY_COPY", stack)
        cells = {"name_id": self.text("MEMORY_COPY_HOST_TO_DEVICE"), "dst_agent_id": AGENT, "src_agent_id": CPU, "size": size}
        self.add("memory_copy", **(cells | self.place(True, agent=False) | self.times(start, end) | more), event_id=event)
        return event

    def pmc(self, name, units="", agent=AGENT):
        key = ("pmc", name, agent)
        if key not in self.ids:
            self.ids[key] = self.add("info_pmc", nid=1, pid=self.process, agent_id=agent, name=name, symbol=name, units=units, block="GPU")
        return self.ids[key]

    def count(self, event, name, value, **more):
        self.add("pmc_event", event_id=event, pmc_id=self.pmc(name), value=value, **more)

    def sample(self, time, event, name="line", tid=True):
        when = {"timestamp_id": self.stamp(time)} if self.apart else {"timestamp": time}
        more = {"name_id": self.text(name)} if self.four else {}
        return self.add("sample", track_id=self.line(tid, name=name), **when, event_id=event, **more)

    def filled(self, at=1_000_000):
        """Five launches of one kernel, a copy, an allocation, a mark."""
        for i in range(5):
            self.call("hipLaunchKernel", at + i * 1000, at + 100 + i * 1000, i + 1)
            self.kernel(at + 200 + i * 1000, at + 500 + i * 1000, i + 1, i + 1)
        self.call("hipMemcpy", at + 6_000, at + 6_800, 9)
        self.copy(at + 6_100, at + 6_700, 9, 4096)
        event = self.event("MEMORY_ALLOCATION")
        self.add("memory_allocate", **({"type": "ALLOC", "level": "REAL", "address": 77, "size": 100} | self.place(True) | self.times(at + 7_000, at + 7_010)),
                 event_id=event)
        self.sample(at + 8_000, self.event("MARKER_CORE_API", 0, '{"message": "here"}'))
        return self

    def close(self):
        self.db.commit()
        self.db.close()
        return self.path


class SqliteCase(FieldCase):
    def rocpd(self, version="3.0.0", name=None, **more):
        return RocpdFile(self.folder / (name or f"v{version}.db"), version, **more)

    def rpd(self, name, *statements, source="zero_time.rpd"):
        path = self.folder / name
        shutil.copyfile(FILES / source, path)
        with sqlite3.connect(path) as db:
            for sql in statements:
                db.execute(sql)
        db.close()
        return path


class RpdSchemas(SqliteCase):
    def test_newer_schemas_of_rpd_are_named(self):
        for version, word in (("3", None), ("4", "4"), ("99", "99")):
            path = self.rpd("v.rpd", "DELETE FROM rocpd_metadata WHERE tag = 'schema_version'",
                            f"INSERT INTO rocpd_metadata(tag, value) VALUES ('schema_version', '{version}')")
            said = " ".join(self.info(path).split())
            if word:
                self.assertIn(f"the .rpd has schema version {word}; tacho knows 1 to 3, and reads the columns that it knows", said)
            else:
                self.assertNotIn("schema version", said)

    def test_schema_1_by_its_tables_or_its_tag(self):
        plain = FILES / "rpd_schema1.rpd"
        tagged = self.rpd("tagged.rpd", "INSERT INTO rocpd_metadata(tag, value) VALUES ('schema_version', '1')", source="rpd_schema1.rpd")
        for path in (plain, tagged):
            self.assertEqual(self.query(path, "SELECT value FROM tacho.property WHERE key = 'rpd.schema'"), [["1"]])
            self.assertEqual(self.query(path, "SELECT count(*), sum(bytes) FROM tacho.copy"), [[2, 8192]])
            self.assertEqual(self.query(path, "SELECT DISTINCT s.grid_x, s.group_x, s.shared_dynamic FROM tacho.dispatch k JOIN tacho.kernel s ON s.id = k.dim"), [[256, 64, 0]])
            self.assertEqual(self.query(path, "SELECT sum(TotalCalls) FROM rpd.ktop"), [[8]])

    def test_both_pairs_of_tables(self):
        # The operation's own row is nearer than its call's.
        path = self.rpd("both.rpd", "CREATE TABLE rocpd_kernelapi (api_ptr_id INTEGER PRIMARY KEY, gridX, gridY, gridZ, workgroupX, workgroupY, "
                        "workgroupZ, groupSegmentSize, privateSegmentSize, kernelName_id)",
                        "INSERT INTO rocpd_kernelapi SELECT op_ptr_id, 99, 1, 1, 32, 1, 1, 5, 6, kernelName_id FROM rocpd_kernelop",
                        "DELETE FROM rocpd_kernelop WHERE op_ptr_id > 2", source="rpd_schema1.rpd")
        self.assertEqual(self.query(path, "SELECT s.grid_x, count(*) FROM tacho.dispatch k JOIN tacho.kernel s ON s.id = k.dim GROUP BY 1 ORDER BY 1"), [[256, 2], [99 * 32, 6]])

    def test_a_size_of_0_or_null_is_not_known(self):
        path = self.rpd("sizes.rpd", "UPDATE rocpd_copyop SET size = 0 WHERE op_ptr_id = 9", source="rpd_schema1.rpd")
        self.assertEqual(self.query(path, "SELECT count(*), count(bytes), sum(bytes) FROM tacho.copy"), [[2, 1, 4096]])
        path = self.rpd("nulls.rpd", "DROP TABLE rocpd_copyop", "CREATE TABLE rocpd_copyop (op_ptr_id INTEGER PRIMARY KEY, size INTEGER, sync INTEGER)",
                        "INSERT INTO rocpd_copyop VALUES (9, NULL, NULL)", source="rpd_schema1.rpd")
        self.assertEqual(self.query(path, "SELECT count(bytes), count(asynchronous) FROM tacho.copy c JOIN tacho.copy_shape s ON s.id = c.dim"), [[0, 0]])

    def test_trimming_keeps_shapes_and_sizes(self):
        self.tacho("trim", FILES / "rpd_schema1.rpd", "t.rpd", "--start", "0%", "--end", "100%")
        self.assertEqual(self.query(self.folder / "t.rpd", "SELECT sum(bytes) FROM tacho.copy"), [[8192]])


class WithoutTimes(SqliteCase):
    def test_far_from_all_others(self):
        path = FILES / "zero_time.rpd"
        rows = self.query(path, "SELECT name, count(*), count(duration), sum(duration), min(start) FROM tacho.dispatch GROUP BY 1 ORDER BY 1")
        self.assertEqual(rows, [["kern0", 4, 3, 900, 10002100], ["kern1", 4, 3, 900, 10001200]])
        self.assertIn("2 kernels without times", self.info(path))
        self.assertIn("2 operations were not measured", self.tacho("top", path) + self.said)
        self.assertIn("2 operations were not measured", self.tacho("busy", path) + self.said)

    def test_without_a_call_they_are_lost_and_counted(self):
        path = self.rpd("z.rpd", "DELETE FROM rocpd_api_ops WHERE op_id IN (2, 5)")
        self.assertEqual(self.query(path, "SELECT count(*) FROM tacho.dispatch"), [[6]])
        self.assertEqual(self.query(path, "SELECT sum(count) FROM tacho.loss WHERE reason LIKE '%vendor%'"), [[2]])

    def test_near_the_others_they_are_times(self):
        path = self.rpd("relative.rpd", "UPDATE rocpd_op SET start = start - 10001000, end = end - 10001000 WHERE start > 0",
                        "UPDATE rocpd_api SET start = start - 10001000, end = end - 10001000")
        self.assertEqual(self.query(path, "SELECT count(*), count(duration), min(start) FROM tacho.dispatch"), [[8, 8, 0]])

    def test_a_start_of_0_with_an_end(self):
        # Its end was measured, its start was not.
        path = self.rpd("start.rpd", "UPDATE rocpd_op SET end = 10002500 WHERE id = 2")
        self.assertEqual(self.query(path, "SELECT count(*), count(duration), sum(duration), min(start) FROM tacho.dispatch"), [[8, 6, 1800, 10001200]])
        # It really began at 0, and so did the other: both lie near each other.
        path = self.rpd("early.rpd", "UPDATE rocpd_op SET end = 50 WHERE id = 2")
        self.assertEqual(self.query(path, "SELECT count(*), count(duration), sum(duration) FROM tacho.dispatch WHERE start = 0"), [[2, 2, 50]])

    def test_rocpd(self):
        for version in ("3.0.0", "4.0.0", "4.1.0"):
            file = self.rocpd(version).filled(1_000_000_000)
            file.call("hipLaunchKernel", 1_000_005_000, 1_000_005_100, 6)
            file.kernel(0, 0, 6, 6)
            file.copy(0, 0, 7777, 1)
            path = file.close()
            self.assertEqual(self.query(path, "SELECT count(*), count(duration), sum(duration), max(start) FROM tacho.dispatch"), [[6, 5, 1500, 1_000_005_100]])
            self.assertEqual(self.query(path, "SELECT count(*) FROM tacho.copy"), [[1]])
            text = self.info(path)
            self.assertIn("1 kernel, 1 copy without times", text)


class RocpdSchemas(SqliteCase):
    VERSIONS = ("3.0.0", "3.0.1", "3.0.2", "3.0.3", "3.0.4", "3.0.5", "4.0.0", "4.1.0")

    def test_every_schema_tells_the_same(self):
        for version in self.VERSIONS:
            with self.subTest(version=version):
                path = self.rocpd(version).filled().close()
                self.assertEqual(self.query(path, "SELECT p.pid, p.name, d.name, d.architecture, d.kind, t.native, count(*), sum(k.duration) FROM "
                                            "tacho.dispatch k JOIN tacho.track t ON t.id = k.track JOIN tacho.process p ON p.id = t.process "
                                            "JOIN tacho.device d ON d.id = t.device GROUP BY 1, 2, 3, 4, 5, 6"),
                                 [[500, "app", "MI300X", "gfx942", "GPU", 3, 5, 1500]])
                self.assertEqual(self.query(path, "SELECT name, tid, count(*), sum(duration) FROM tacho.api GROUP BY 1, 2 ORDER BY 1"),
                                 [["hipLaunchKernel", 501, 5, 500], ["hipMemcpy", 501, 1, 800]])
                self.assertEqual(self.query(path, "SELECT count(DISTINCT f.domain) FROM tacho.function f WHERE f.domain LIKE '%hip%' COLLATE NOCASE"), [[1]])
                self.assertEqual(self.query(path, "SELECT sum(duration), sum(bytes) FROM tacho.copy"), [[600, 4096]])
                self.assertEqual(self.query(path, "SELECT bytes, address, duration FROM tacho.allocation"), [[100, 77, 10]])
                self.assertEqual(self.query(path, "SELECT name, start FROM tacho.marker"), [["here", 1_008_000]])
                self.assertNotIn("bad input", self.info(path))
                # In place, with rocpd's own views.
                self.assertEqual(self.query(path, "SELECT name, count(*), sum(duration), min(tid), min(pid) FROM kernels GROUP BY 1"), [["gemm", 5, 1500, 501, 500]])
                self.assertEqual(self.query(path, "SELECT name, total_calls FROM top_kernels"), [["gemm", 5]])
                self.assertEqual(self.query(path, "SELECT category, count(*), sum(duration) FROM regions GROUP BY 1"), [["HIP_RUNTIME_API", 6, 1300]])
                self.assertEqual(self.query(path, "SELECT size, dst_device FROM memory_copies"), [[4096, "gfx942"]])

    def test_without_a_tag_the_tables_tell(self):
        for version in ("3.0.0", "4.1.0"):
            path = self.rocpd(version, f"untagged{version}.db", tag=False).filled().close()
            self.assertEqual(self.query(path, "SELECT DISTINCT pid FROM tacho.process"), [[500]])

    def test_other_schemas_are_refused_by_name(self):
        for version in ("5.0.0", "2.1.0", "31.0.0"):
            file = self.rocpd("3.0.0", f"other{version}.db").filled()
            file.db.execute(f'UPDATE "rocpd_metadata{file.suffix}" SET value = ?', (version,))
            path = file.close()
            for words in (("info", path), ("query", path, "SELECT count(*) FROM kernels"), ("query", path, "SELECT count(*) FROM tacho.dispatch")):
                self.tacho(*words, code=1)
                self.assertIn(f"schema {version}, tacho reads 3.x and 4.x", self.said)

    def test_a_missing_column_is_named(self):
        for version, table, column in (("3.0.0", "region", "tid"), ("3.0.0", "kernel_dispatch", "agent_id"), ("4.1.0", "kernel_dispatch", "track_id"),
                                       ("4.0.0", "region", "end_id"), ("3.0.0", "memory_copy", "name_id"), ("4.1.0", "sample", "timestamp")):
            file = self.rocpd(version, f"{version}_{table}_{column}.db").filled()
            file.db.execute(f'ALTER TABLE "rocpd_{table}{file.suffix}" RENAME COLUMN "{column}" TO unheard_of')
            path = file.close()
            self.tacho("info", path, code=1)
            self.assertRegex(self.said, rf"table rocpd_{table}_\w+ has no column [a-z_ ]*{column}")

    def test_null_is_never_0(self):
        file = self.rocpd("3.0.0").filled()
        file.kernel(1_009_000, 1_009_100, 0, None, grid_size_x=None, workgroup_size_x=0, private_segment_size=None)
        file.copy(1_009_200, None, 0, None)
        path = file.close()
        rows = self.query(path, "SELECT k.ordinal, s.grid_x, s.group_x, s.private_bytes FROM tacho.dispatch k JOIN tacho.kernel s ON s.id = k.dim ORDER BY k.start DESC LIMIT 1")
        self.assertEqual(rows, [[None, None, None, None]])
        self.assertEqual(self.query(path, "SELECT duration, bytes FROM tacho.copy ORDER BY start DESC LIMIT 1"), [[None, None]])

    def test_what_is_left_out_is_named(self):
        file = self.rocpd("4.1.0").filled()
        file.add("call_stack", event_id=1, depth=0)
        file.add("arg", event_id=1, position=0, type="int", name="n", value="3")
        text = self.info(file.close())
        self.assertRegex(text, "not carried over: .*rocpd_arg")
        self.assertRegex(text, "rocpd_call_stack")

    def test_a_recording_that_lies_in_two_files(self):
        folder = self.folder / "dbs"
        folder.mkdir()
        RocpdFile(folder / "a.db", "3.0.0").filled().close()
        shutil.copyfile(folder / "a.db", folder / "b.db")
        RocpdFile(folder / "c.db", "4.1.0", guid="0190aaaa-bbbb-7ccc-8ddd-000000000002").filled().close()
        self.assertEqual(self.query(folder, "SELECT count(*) FROM tacho.dispatch"), [[10]])
        self.assertIn("it is read once", self.info(folder))


class RocpdCounters(SqliteCase):
    def test_on_samples(self):
        for version in ("3.0.1", "4.0.0", "4.1.0"):
            file = self.rocpd(version)
            for i in range(20):
                event = file.event("device_power")
                file.sample(1_000_000 + i * 100, event, "GPU Power [0]", tid=False)
                file.count(event, "device_power", 300 + i)
            file.sample(1_000_050, file.event("MARKER_CORE_API", 0, '{"message": "m"}'))
            path = file.filled().close()
            self.assertEqual(self.query(path, "SELECT count(*), min(value), max(value), min(start), max(start), count(DISTINCT track) FROM tacho.reading"),
                             [[20, 300.0, 319.0, 1_000_000, 1_001_900, 1]])
            self.assertEqual(self.query(path, "SELECT DISTINCT c.name, d.name, p.pid FROM tacho.reading r JOIN tacho.track t ON t.id = r.track JOIN tacho.counter c "
                                        "ON c.id = t.counter JOIN tacho.device d ON d.id = t.device JOIN tacho.process p ON p.id = t.process"), [["device_power", "MI300X", 500]])
            self.assertEqual(self.query(path, "SELECT name FROM tacho.marker ORDER BY start"), [["m"], ["here"]])
            self.assertNotIn("bad input", self.info(path))

    def test_of_dispatches_and_of_other_events(self):
        file = self.rocpd("3.0.0")
        region = file.call("hipLaunchKernel", 1000, 1100, 1)
        kernel = file.kernel(1200, 1300, 1, 1)
        for value in (10, 20):
            file.count(kernel, "SQ_WAVES", value)
        file.count(region, "PAPI_TOT_CYC", 7)
        file.count(999_999, "SQ_WAVES", 1)
        path = file.close()
        self.assertEqual(self.query(path, "SELECT c.name, v.start, v.instance, v.pass, v.value FROM tacho.counter_value v JOIN tacho.counter c ON c.id = v.dim ORDER BY 1, 3"),
                         [["PAPI_TOT_CYC", 1000, 0, 0, 7.0], ["SQ_WAVES", 1200, 0, 0, 10.0], ["SQ_WAVES", 1200, 1, 0, 20.0]])
        self.assertRegex(self.info(path), r"\b1 counter_value record: bad input row")

    def test_streams_of_counters(self):
        for version, told in (("3.0.3", "columns"), ("3.0.5", "columns"), ("3.0.0", "extdata")):
            file = self.rocpd(version, f"spm{told}{version}.db")
            kernel = file.kernel(1200, 1900, 1, 1)
            for i in range(3):
                for xcc, engine, instance in ((0, 0, 0), (0, 1, 0), (1, 0, 2)):
                    event = file.event("SPM")
                    sample = file.sample(1300 + i * 100, event, "SPM")
                    if told == "columns":
                        more = {"shader_array": 0} if version == "3.0.5" else {}
                        file.count(kernel, "SQ_BUSY", 100 * i + xcc, sample_id=sample, xcc=xcc, shader_engine=engine, instance=instance, **more)
                    else:
                        file.count(event, "SQ_BUSY", 100 * i + xcc, extdata=f'{{"xcc": {xcc}, "shader_engine": {engine}, "instance": {instance}}}')
            path = file.close()
            rows = self.query(path, "SELECT t.name, count(*), sum(r.value) FROM tacho.reading r JOIN tacho.track t ON t.id = r.track GROUP BY 1 ORDER BY 1")
            self.assertEqual([row[1:] for row in rows], [[3, 300.0], [3, 300.0], [3, 303.0]])
            self.assertRegex(rows[2][0], r"XCC 1, SE 0, .*instance 2")
            self.assertEqual(self.query(path, "SELECT (SELECT count(*) FROM tacho.counter_value), (SELECT count(*) FROM tacho.marker)"), [[0, 0]])

    def test_replayed_passes_count_once(self):
        sql = ("SELECT c.name, sum(v.value) FROM tacho.counter_value v JOIN tacho.counter c ON c.id = v.dim WHERE v.pass = 0 GROUP BY 1 ORDER BY 1")
        # Values of all passes on one event.
        file = self.rocpd("3.0.3", "passes.db")
        kernel = file.kernel(1200, 1300, 1, 1)
        for name in ("SQ_WAVES", "GRBM_COUNT", "SQ_WAVES", "SQ_INSTS"):
            for value in (10, 20):
                file.count(kernel, name, value)
        path = file.close()
        self.assertEqual(self.query(path, sql), [["GRBM_COUNT", 30.0], ["SQ_INSTS", 30.0], ["SQ_WAVES", 30.0]])
        self.assertIn("first pass counts", self.info(path))
        # A row of the kernel for each pass, one pass of all kernels after the other.
        file = self.rocpd("3.0.5", "rows.db")
        for number, name in enumerate(("SQ_WAVES", "SQ_WAVES", "SQ_INSTS")):
            for i in range(4):
                file.count(file.kernel(1200 + 1000 * i + 100_000 * number, 1300 + 1000 * i + 100_000 * number, i + 1, i + 1), name, 5)
        path = file.close()
        self.assertEqual(self.query(path, "SELECT count(*), sum(duration) FROM tacho.dispatch"), [[4, 400]])
        self.assertEqual(self.query(path, "SELECT c.name, v.pass, count(*), sum(v.value) FROM tacho.counter_value v JOIN tacho.counter c ON c.id = v.dim GROUP BY 1, 2 ORDER BY 1, 2"),
                         [["SQ_INSTS", 2, 4, 20.0], ["SQ_WAVES", 0, 4, 20.0], ["SQ_WAVES", 1, 4, 20.0]])


class RocpdGraphs(SqliteCase):
    def test_nodes_and_launches(self):
        for version in ("3.0.2", "3.0.5"):
            file = self.rocpd(version)
            file.call("hipGraphLaunch", 1000, 1100, 1)
            for node in range(3):
                file.kernel(1200 + node * 100, 1250 + node * 100, 1, node + 1, graph_exec_id=7, graph_node_id=node + 1)
            file.copy(1500, 1600, 1, 64, graph_exec_id=7, graph_node_id=4)
            place = {"nid": 1, "pid": 500, "tid": 501, "agent_id": AGENT, "queue_id": 1}
            file.add("graph_launch", **place, start=1200, end=1600, graph_exec_id=7, kernel_dispatch_count=3, event_id=file.event("HIP_GRAPH", 1))
            file.add("graph_launch", **place, start=2000, end=2500, graph_exec_id=8, kernel_dispatch_count=9, event_id=file.event("HIP_GRAPH", 2))
            path = file.close()
            rows = self.query(path, "SELECT s.graph, k.graph_node, s.kind, k.duration FROM tacho.dispatch k JOIN tacho.kernel s ON s.id = k.dim ORDER BY k.start")
            self.assertEqual(rows, [[7, 1, "kernel", 50], [7, 2, "kernel", 50], [7, 3, "kernel", 50], [8, 0, "graph", 500]])
            self.assertEqual(self.query(path, "SELECT graph_node FROM tacho.copy"), [[4]])

    def test_hip_events(self):
        file = self.rocpd("3.0.4").filled()
        place = {"nid": 1, "pid": 500, "tid": 501, "agent_id": AGENT, "queue_id": 1, "source_queue_id": 2, "stream_id": 3, "hip_event_handle": 5}
        file.add("hip_event", **place, start=1_000_010, end=1_000_020, name_id=file.text("HIP_EVENT_RECORD"), event_id=file.event("HIP_EVENT", 3))
        file.add("hip_event", **place, start=1_000_030, end=1_000_090, name_id=file.text("HIP_EVENT_WAIT"), event_id=file.event("HIP_EVENT", 4))
        rows = self.query(file.close(), "SELECT s.kind, y.duration, y.correlation FROM tacho.sync y JOIN tacho.sync_shape s ON s.id = y.dim ORDER BY y.start")
        self.assertEqual(rows, [["event", 10, 3], ["queue waits for event", 60, 4]])


class Compressed(SqliteCase):
    def packed(self, source, name, members=1):
        data = pathlib.Path(source).read_bytes()
        path = self.folder / name
        cut = len(data) // members + 1
        path.write_bytes(b"".join(gzip.compress(data[at:at + cut]) for at in range(0, len(data), cut)))
        return path

    def test_like_the_file_itself(self):
        rocpd = self.rocpd("4.1.0").filled().close()
        for source, sql in ((FILES / "zero_time.rpd", "SELECT * FROM top"), (FILES / "rpd_schema1.rpd", "SELECT * FROM api"), (rocpd, "SELECT * FROM kernels"),
                            (rocpd, "SELECT name, duration FROM tacho.dispatch ORDER BY start")):
            for members in (1, 3):
                name = f"{source.name}{members}{'.rpd' if source.suffix == '.rpd' else '.db'}.gz"
                self.assertEqual(self.query(self.packed(source, name, members), sql), self.query(source, sql))
        self.assertIn("is compressed", self.info(self.packed(rocpd, "x.db.gz")))
        self.tacho("top", self.packed(FILES / "zero_time.rpd", "y.rpd.gz"))
        self.tacho("trim", self.folder / "y.rpd.gz", "half.rpd", "--start", "0%", "--end", "50%")

    def test_write_ahead_log(self):
        source = self.rpd("wal.rpd", "PRAGMA journal_mode = WAL")
        path = self.packed(source, "wal.rpd.gz")
        self.assertEqual(self.query(path, "SELECT count(*) FROM op"), [[10]])

    def test_zstandard(self):
        zstd = shutil.which("zstd")
        if zstd is None:
            self.skipTest("zstd is not installed")
        self.run_command(zstd, "-q", FILES / "zero_time.rpd", "-o", self.folder / "z.rpd.zst")
        self.assertEqual(self.query(self.folder / "z.rpd.zst", "SELECT count(*) FROM op"), [[10]])

    def test_cut_off_and_damaged(self):
        whole = self.packed(FILES / "zero_time.rpd", "whole.rpd.gz").read_bytes()
        for name, data, words in (("cut.rpd.gz", whole[:len(whole) // 2], "cut off"), ("bad.rpd.gz", whole[:900] + b"\xff" * 50 + whole[950:], "damaged|cut off")):
            (self.folder / name).write_bytes(data)
            self.tacho("info", self.folder / name, code=1)
            self.assertRegex(self.said, words)


class WrittenAndReadBack(SqliteCase):
    """What tacho writes, it reads back: sums per table and column."""

    TABLES = ("dispatch", "copy", "fill", "allocation", "api", "marker", "reading", "counter_value")

    def sums(self, path, tables, skip):
        found = {}
        for table in tables:
            for column in COLUMNS[table]:
                if (table, column) in skip:
                    continue
                found[table, column] = self.query(path, f"SELECT count(*), count({column}), round(sum(CAST({column} AS REAL)), 3) FROM tacho.{table}")[0]
        return found

    def rich(self):
        file = self.rocpd("3.0.5", "rich.db").filled()
        file.call("hipGraphLaunch", 1_010_000, 1_010_100, 20)
        for node in range(3):
            event = file.kernel(1_010_200 + node * 100, 1_010_250 + node * 100, 20, node + 10, graph_exec_id=7, graph_node_id=node + 1)
            for value in (3, 4):
                file.count(event, "SQ_WAVES", value + node)
        file.copy(1_010_600, 1_010_700, 20, 64, graph_exec_id=7, graph_node_id=4)
        for i in range(5):
            event = file.event("device_power")
            file.sample(1_011_000 + i * 100, event, "GPU Power [0]", tid=False)
            file.count(event, "device_power", 300 + i)
        file.kernel(1_012_000, None, 0, 30)  # it never ended
        region = file.call("hipDeviceSynchronize", 1_013_000, 1_013_100, 40)
        file.count(region, "PAPI_TOT_CYC", 7)
        return file.close()

    def test_rocpd(self):
        source = self.rich()
        self.tacho("export", source, "-f", "rocpd", "-o", "back.db")
        back = self.folder / "back.db"
        want, got = self.sums(source, self.TABLES, ()), self.sums(back, self.TABLES, ())
        self.assertEqual(got, want)
        with sqlite3.connect(back) as db:
            self.assertEqual(db.execute("PRAGMA foreign_key_check").fetchall(), [])
            self.assertEqual(db.execute("SELECT graph_exec_id, kernel_dispatch_count, \"end\" - start FROM rocpd_graph_launch").fetchall(), [(7, 3, 500)])
            self.assertEqual(db.execute("SELECT DISTINCT graph_exec_id, graph_node_id FROM rocpd_kernel_dispatch WHERE graph_exec_id <> 0 ORDER BY 2").fetchall(),
                             [(7, 1), (7, 2), (7, 3)])
            self.assertRegex(db.execute("SELECT value FROM rocpd_metadata WHERE tag = 'schema_version'").fetchone()[0], r"^3\.0\.\d$")

    def test_rpd(self):
        source = self.rich()
        # What .rpd has no place for: counters, allocations, numbers of graphs, correlations' numbers, unknown ends, shapes of
        # kernels without a call of their own.
        for schema in ("2", "3"):
            self.tacho("export", source, "-f", "rpd", "--rpd-schema", schema, "-o", f"back{schema}.rpd", "--overwrite")
            back = self.folder / f"back{schema}.rpd"
            for sql in ("SELECT name, count(*), sum(duration), min(start), max(start) FROM tacho.dispatch WHERE duration > 0 GROUP BY 1 ORDER BY 1",
                        "SELECT count(*), sum(duration), min(start) FROM tacho.copy",
                        "SELECT sum(bytes) FROM tacho.copy WHERE graph_node = 0",  # one size a call
                        "SELECT name, tid, count(*), sum(duration), min(start) FROM tacho.api GROUP BY 1, 2 ORDER BY 1, 2",
                        "SELECT name, count(*), sum(duration), min(start) FROM tacho.marker GROUP BY 1 ORDER BY 1",
                        "SELECT count(*), sum(value) FROM tacho.reading",
                        "SELECT s.grid_x, s.group_x, count(*) FROM tacho.dispatch k JOIN tacho.kernel s ON s.id = k.dim WHERE k.graph_node = 0 AND "
                        "k.correlation <> 0 GROUP BY 1, 2 ORDER BY 1, 2"):
                self.assertEqual(self.query(back, sql), self.query(source, sql), (schema, sql))

    def test_recordings(self):
        need_data()
        for name in ("mytrace.rpd", "matmul_result.rpd"):
            source = DATA / "rpd" / name
            self.tacho("export", source, "-f", "rocpd", "-o", "r.db", "--overwrite")
            # rocpd numbers every dispatch; .rpd numbers none.
            skip = {("dispatch", "ordinal")}
            self.assertEqual(self.sums(self.folder / "r.db", self.TABLES, skip), self.sums(source, self.TABLES, skip), name)


COLUMNS = {
    "dispatch": ("start", "duration", "correlation", "ordinal", "graph_node"),
    "copy": ("start", "duration", "correlation", "bytes", "graph_node"),
    "fill": ("start", "duration", "correlation", "bytes", "graph_node"),
    "allocation": ("start", "duration", "correlation", "bytes", "address"),
    "api": ("start", "duration", "correlation"),
    "marker": ("start", "duration"),
    "reading": ("start", "value"),
    "counter_value": ("start", "ordinal", "instance", "value"),
}


if __name__ == "__main__":
    harness.main()
