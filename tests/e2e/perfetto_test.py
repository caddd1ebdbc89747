"""Perfetto traces that tacho and rocprofv3 write come back: every table and column equals the source's, but for those that
the format cannot hold (docs/databases.md)."""
import collections
import csv
import json

import harness
import proto
from harness import DATA, TACHO, need_data
from proto import fields

# The tables of facts and their dimensions.
TABLES = {"dispatch": "kernel", "copy": "copy_shape", "fill": "fill_shape", "allocation": "allocation_shape", "api": "function",
          "marker": "label", "sync": "sync_shape", "overhead": "overhead_shape", "reading": None, "counter_value": "counter"}
# Numbers of rows, which every reader gives anew, and what is made of them.
ROWS = {"id", "track", "dim", "correlation_source"}
# What the style of rocprofv3 cannot hold. The devices' own numbers: of agents it has the number among all agents.
LOST = {
    "dispatch": {"queued_ahead", "submit_ahead", "device", "kernel.name", "kernel.kind", "kernel.shared_static",
                 "kernel.shared_dynamic", "kernel.cache_config", "kernel.carveout", "kernel.offset_x", "kernel.cluster_x",
                 "kernel.occupancy"},
    "copy": {"queued_ahead", "submit_ahead", "graph_node", "device", "queue", "tid", "copy_shape.source_memory",
             "copy_shape.target_memory", "copy_shape.source_device", "copy_shape.target_device", "copy_shape.kind",
             "copy_shape.asynchronous"},
    "fill": {"queued_ahead", "submit_ahead", "graph_node", "device", "name", "queue", "tid", "fill_shape.memory",
             "fill_shape.device", "fill_shape.value"},
    # Only the level of what is allocated on each device.
    "allocation": {"duration", "end", "address", "name", "tid", "queue", "device", "correlation", "allocation_shape.name",
                   "allocation_shape.device", "allocation_shape.memory",
                   # Its counters are sums of bytes: who allocated, and what an allocator says of itself, is not in them.
                   "stack", "requested", "in_use", "reserved", "allocation_shape.level", "allocation_shape.stream",
                   "allocation_shape.pool"},
    "marker": {"queue", "device", "correlation", "label.kind", "label.color"},
    "sync": {"queue", "device", "tid", "correlation", "sync_shape.device"},
    "overhead": {"correlation", "overhead_shape.kind"},
    "reading": set(),
    # The sum of a counter's instances, in one pass.
    "counter_value": {"instance", "pass", "ordinal", "counter.text", "counter.block"},
    "api": {"inputs"},
}
# What Perfetto's model of GPUs holds of it.
MODEL_HAS = {
    "dispatch": {"device", "kernel.shared_static", "kernel.shared_dynamic"},
    "copy": {"device", "graph_node"},
    "fill": {"device", "graph_node"},
    "counter_value": {"counter.text", "counter.block"},
}


class Perfetto(harness.Case):
    def ask(self, file, statement, dialect="tacho"):
        return json.loads(self.run_command(TACHO, "query", file, statement, "--dialect", dialect, "--output-format",
                                           "json").stdout)

    def columns(self, file, table):
        return [column["title"] if isinstance(column, dict) else column
                for column in self.ask(file, f"select * from {table} limit 0")["columns"]]

    def equal(self, source, back, lost=(), tables=TABLES, style="perfetto"):
        """Every row is there as often as in the source, with all of its columns at once."""
        for table in tables:
            dimension = TABLES[table]
            names, parts = self.columns(source, table), "f.*"
            if dimension:
                names += [f"{dimension}.{column}" for column in self.columns(source, dimension)]
                parts += ", d.*"
            join = f" left join {dimension} d on d.id = f.dim" if dimension else ""
            missing = LOST[table] - (MODEL_HAS.get(table, set()) if style == "perfetto" else set())
            kept = [at for at, name in enumerate(names)
                    if name.split(".")[-1] not in ROWS and name not in missing and (table, name) not in lost]
            before, after = (collections.Counter(tuple(row[at] for at in kept) for row in self.ask(
                file, f"select {parts} from {table} f{join}")["rows"]) for file in (source, back))
            with self.subTest(file=str(source), table=table, columns=[names[at] for at in kept]):
                self.assertEqual([sum((before - after).values()), sum((after - before).values())], [0, 0],
                                 [[*rows][:3] for rows in (before - after, after - before)])

    def round_trip(self, source, **more):
        for style in ("perfetto", "rocprofv3"):
            self.run_command(TACHO, "export", source, "-f", "pftrace", "--style", style, "-o", "back.pftrace", "--overwrite")
            self.equal(source, self.folder / "back.pftrace", style=style, **more)

    def test_styles(self):
        """Kernels are stages of GPUs, or slices as AMD's tools write them; never both."""
        self.trace(harness.TARGETS / "opencl_steps", "--steps", "5")
        kernels = self.ask("t.tacho", "select count(*) from dispatch")["rows"][0][0]
        self.assertGreater(kernels, 0)
        for style, stages, slices in ((None, kernels, 0), ("perfetto", kernels, 0), ("rocprofv3", 0, kernels)):
            self.run_command(TACHO, "export", "t.tacho", "-f", "pftrace", "-o", "s.pftrace", "--overwrite", *(("--style", style) if style else ()))
            trace = proto.Perfetto(self.folder / "s.pftrace")
            packets = [dict(proto.fields(packet)) for number, packet in proto.fields((self.folder / "s.pftrace").read_bytes())]
            self.assertEqual(trace.unbalanced, [])
            copies_and_fills = sum(self.ask("t.tacho", f"select count(*) from {table}")["rows"][0][0] for table in ("copy", "fill"))
            self.assertEqual(sum(53 in packet for packet in packets), stages + copies_and_fills if stages else 0, style)
            self.assertEqual("kernel_dispatch" in trace.categories, slices > 0, style)
        self.one_sentence(self.run_command(TACHO, "export", "t.tacho", "-f", "pftrace", "--style", "torch", code=1), "--style")

    def test_recordings_come_back(self):
        need_data()
        for recording in sorted((DATA / "traces").glob("*.json.gz")):
            self.round_trip(recording)
        self.round_trip(DATA / "rpd" / "mytrace.rpd")
        # Its readings begin before its first event, where the written file begins.
        self.round_trip(DATA / "rpd" / "matmul_result.rpd", lost={("reading", "start")})

    def test_a_profile_folder(self):
        """Its kernels with their counters, instances summed up."""
        need_data()
        folder = DATA / "workloads" / "vcopy" / "MI200"
        self.run_command(TACHO, "export", folder, "-f", "pftrace", "-o", "p.pftrace")
        with open(folder / "pmc_perf.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        spans = [[row["Kernel_Name"].removesuffix(" [clone .kd]"), float(row["End_Timestamp"]) - float(row["Start_Timestamp"])] for row in rows]
        self.assertEqual(self.ask("p.pftrace", "select k.name, d.duration from dispatch d join kernel k on k.id = d.dim order by d.start")["rows"], spans)
        for counter in ("SQ_WAVES", "GRBM_GUI_ACTIVE", "TCC_EA_WRREQ"):
            expected = sum(float(value) for row in rows for name, value in row.items() if name.split("[")[0] == counter)
            told = self.ask("p.pftrace", "select total(v.value), count(*) from counter_value v join counter c on c.id = v.dim "
                                         f"where c.name = '{counter}'")["rows"]
            self.assertEqual(told, [[expected, len(rows)]])
        self.one_sentence(self.run_command(TACHO, "export", DATA / "workloads", "-f", "pftrace", "-o", "none.pftrace", code=1), "workloads")

    def test_reports_answer_alike(self):
        need_data()
        source = DATA / "traces" / "kineto_mi300x_qwen1.5-0.5b.json.gz"
        self.run_command(TACHO, "export", source, "-f", "pftrace", "-o", "back.pftrace")
        for words in (["stats"], ["top"], ["report", "gaps"], ["report", "queue-depth"], ["report", "launch-delay"]):
            answers = [json.loads(self.run_command(TACHO, *words, file, "--output-format", "json").stdout)["rows"]
                       for file in (source, "back.pftrace")]
            # But for the names of GPUs.
            numbers = [[[round(cell or 0, 6) for cell in row if not isinstance(cell, str)] for row in answer] for answer in answers]
            self.assertEqual(*numbers, words)
        self.run_command(TACHO, "info", "back.pftrace")
        self.run_command(TACHO, "view", "back.pftrace", "-o", "page.html")
        self.run_command(TACHO, "report", "findings", "back.pftrace")

    def test_ranks_come_back(self):
        need_data()
        (self.folder / "job").mkdir()
        for rank in range(4):
            self.run_command(TACHO, "export", DATA / "ranks4" / f"kineto_rank{rank}.json.gz", "-f", "pftrace", "-o",
                             f"job/rank{rank}.pftrace")
        told, back = (json.loads(self.run_command(TACHO, "ranks", folder, "--output-format", "json").stdout)
                      for folder in (DATA / "ranks4", "job"))
        self.assertEqual(told["sentences"], back["sentences"])
        self.assertEqual([[rank[key] for key in ("rank", "kernels", "collectives", "busy_ns", "waited_ns")] for rank in told["ranks"]],
                         [[rank[key] for key in ("rank", "kernels", "collectives", "busy_ns", "waited_ns")] for rank in back["ranks"]])

    def test_a_recorded_run_on_its_clock(self):
        """The file's times are CLOCK_BOOTTIME's, as those of the SQL schema rocpd."""
        self.trace(harness.TARGETS / "opencl_steps", "--steps", "5")
        self.run_command(TACHO, "export", "t.tacho", "-f", "pftrace", "-o", "back.pftrace")
        for statement in ("select start, end, name from rocpd.kernels order by start, end",
                          "select start, end, size from rocpd.memory_copies order by start, end",
                          "select start, end, name, tid from rocpd.regions where category <> 'MEMORY_ALLOCATION' order by start, end, name"):
            with self.subTest(statement):
                self.assertEqual(self.ask("t.tacho", statement, "rocpd")["rows"], self.ask("back.pftrace", statement, "rocpd")["rows"])
        for column in ("correlation", "ordinal", "graph_node"):
            self.assertEqual(*(self.ask(file, f"select {column}, count(*) from dispatch group by 1")["rows"]
                               for file in ("t.tacho", "back.pftrace")))
        # The file's own clock is another, and of results it has those that are not 0.
        self.equal("t.tacho", "back.pftrace", lost={("api", column) for column in ("start", "duration", "end", "queue", "device", "result")},
                   tables=["api"])
        # Snapshots tie the other clocks.
        self.assertGreater(self.ask("back.pftrace", "select count(*) from clock where realtime > 0")["rows"][0][0], 0)

    def test_rocprofv3s_own_way(self):
        """Agents by number, annotations with other keys, no dispatch ids, all streams of a process on one line."""
        def number(field, value):
            return varint(field << 3) + varint(value)

        def varint(value):
            out = bytearray()
            while value >= 128:
                out.append(value & 127 | 128)
                value >>= 7
            return bytes(out) + bytes([value])

        def message(field, content):
            content = content.encode() if isinstance(content, str) else content
            return varint(field << 3 | 2) + varint(len(content)) + content

        def annotation(name, value):
            return message(4, message(10, name) + (number(3, value) if isinstance(value, int) else message(6, value)))

        def event(time, kind, track, name="", category="", **annotations):
            body = number(9, kind) + number(11, track)
            body += message(23, name) + message(22, category) if name else b""
            body += b"".join(annotation(*item) for item in annotations.items())
            return message(1, number(8, time) + number(10, 1) + message(11, body))

        def track(uuid, name, content=b""):
            return message(1, message(60, number(1, uuid) + number(5, 1) + message(2, name) + content))
        trace = message(1, message(60, number(1, 1) + message(3, number(1, 321) + message(6, "vcopy"))))
        trace += message(1, message(60, number(1, 2) + number(5, 1) + message(4, number(1, 321) + number(2, 322) + message(5, "THREAD 1 (322)"))))
        trace += track(3, "COMPUTE Agent [4] QUEUE [0] GPU") + track(4, 'STREAM [" 2 "] ')
        trace += track(5, "COPY BYTES to Agent [4] (GPU)", message(8, number(3, 3)))
        trace += event(100, 1, 2, "hipLaunchKernel", "hip_api", corr_id=7, tid=322) + event(150, 2, 2)
        trace += event(200, 1, 3, "vecCopy(double*)", "kernel_dispatch", agent="Agent-4", corr_id=7, queue=1, stream_ID=2, kernel_id=9,
                       private_segment_size=0, group_segment_size=512, workgroup_size=64, grid_size=1024) + event(260, 2, 3)
        trace += event(300, 1, 4, "MEMORY_COPY_DEVICE_TO_HOST", "memory_copy", src_agent="Agent-4", dst_agent="Agent-0", copy_bytes=4096,
                       corr_id=8) + event(330, 2, 4)
        trace += event(300, 4, 5) + event(310, 1, 2, "a range", "marker_api") + event(320, 2, 2)
        (self.folder / "r.pftrace").write_bytes(trace)
        self.assertEqual([number for number, _ in fields(trace)], [1] * 14)
        one = self.ask("r.pftrace", "select name, start, duration, correlation, pid from dispatch")["rows"]
        self.assertEqual(one, [["vecCopy(double*)", 200, 60, 7, 321]])
        self.assertEqual(self.ask("r.pftrace", "select k.shared_static, k.grid_x from dispatch d join kernel k on k.id = d.dim")["rows"], [[512, None]])
        self.assertEqual(self.ask("r.pftrace", "select duration, bytes, s.direction from copy c join copy_shape s on s.id = c.dim")["rows"],
                         [[30, 4096, "device to host"]])
        self.assertEqual(self.ask("r.pftrace", "select name, duration, tid from api")["rows"], [["hipLaunchKernel", 50, 322]])
        self.assertEqual(self.ask("r.pftrace", "select name, duration from marker")["rows"], [["a range", 10]])
        self.assertEqual(self.ask("r.pftrace", "select count(*) from device where id > 0")["rows"], [[1]])
        self.assertEqual(self.ask("r.pftrace", "select count(*) from rpd.rocpd_api_ops", "rpd")["rows"], [[1]])


if __name__ == "__main__":
    harness.main()
