"""Neighbours of the Kineto and Chrome cases of files_test.py: other files of each kind, made here."""
import csv
import gzip
import io
import json
import pathlib
import re
import sys
import time
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from files_test import TACHO, FieldCase, harness  # noqa: E402, the folder of field tests is no package


def span(name, ts, dur, cat="", pid=1, tid=1, **args):
    event = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
    if cat:
        event["cat"] = cat
    if args:
        event["args"] = args
    return event


def operator(name, ts, dur, external, pid=83):
    return span(name, ts, dur, "cpu_op", pid, pid, **{"External id": external})


def launch(ts, correlation, pid=83, name="cudaLaunchKernel", cat="cuda_runtime", **args):
    return span(name, ts, 10, cat, pid, pid, correlation=correlation, **args)


def zipped(text):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("trace.json", text)
    return archive.getvalue()


def kernel(name, ts, dur, correlation, pid=0, device=0, **args):
    return span(name, ts, dur, "kernel", pid, 7, device=device, stream=7, context=1, correlation=correlation, **args)


def names(pid, name="python"):
    return {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}


def rank(number, pid, at=1000, gpu=0, operator_name=None, steps=3):
    """One rank's block as torch.profiler writes it: operators, then calls and kernels, then names."""
    name = operator_name or f"aten::op{number}"
    steps = range(1, steps + 1)
    return ([operator(name, at + 1000 * i, 200, i, pid) for i in steps]
            + [event for i in steps for event in (kernel(f"k{number}", at + 1000 * i + 100, 100 * (number + 1), i, device=gpu),
                                                  launch(at + 1000 * i + 20, i, pid))]
            + [names(pid)])


class Kineto(FieldCase):
    def trace(self, events, name="t.json"):
        return self.written(name, {"traceEvents": events} if isinstance(events, list) else events)

    def devices_of_kernels(self, path):
        return self.query(path, "select k.name, count(distinct d.id), min(d.id), count(*), min(p.pid) from tacho.dispatch k "
                          "join tacho.track t on t.id = k.track join tacho.device d on d.id = t.device "
                          "join tacho.process p on p.id = t.process group by k.name order by k.name")

    def device_ns(self, path):
        return {name: row["TotalDeviceNs"] for name, row in self.table(path, "operator").items()}


class Scopes(Kineto):
    def check_ranks(self, path, count):
        found = self.device_ns(path)
        for number in range(count):
            self.assertEqual(found[f"aten::op{number}"], 300_000 * (number + 1), found)
        kernels = self.devices_of_kernels(path)
        self.assertEqual([each[1] for each in kernels], [1] * count)
        self.assertEqual(len({each[2] for each in kernels}), count, kernels)

    def test_three_ranks_behind_one_another(self):
        self.check_ranks(self.trace(rank(0, 83) + rank(1, 84) + rank(2, 85)), 3)

    def test_ranks_with_one_pid(self):
        self.check_ranks(self.trace(rank(0, 83) + rank(1, 83)), 2)

    def test_ranks_sorted_by_time(self):
        for gpus in ((0, 1), (0, 0)):
            events = [event for number in (0, 1) for event in rank(number, 83 + number, at=1000 + 7 * number, gpu=gpus[number])]
            named = [event for event in events if "ts" not in event]
            path = self.trace(named + sorted((event for event in events if "ts" in event), key=lambda event: event["ts"]))
            self.check_ranks(path, 2)
        self.assertIn("share correlations", self.info(path))

    def test_many_processes_sorted_by_time(self):
        count = 24_000
        calls = [launch(number, 1, pid=1000 + number) for number in range(count)]
        work = [kernel("k", count + number, 1, 1) for number in range(2 * count)]
        begun = time.monotonic()
        path = self.trace(calls + work)
        found = self.query(path, "select p.pid, count(*), min(k.start) from tacho.dispatch k join tacho.track t on t.id = k.track "
                           "join tacho.process p on p.id = t.process group by p.pid order by p.pid")
        self.assertLess(time.monotonic() - begun, 6)  # a walk through all processes for each kernel takes twice that
        self.assertEqual(found[1:], [[1000 + number, 1, (count + number) * 1000] for number in range(1, count)])
        self.assertEqual(found[0], [1000, count + 1, count * 1000])

    def test_a_block_that_comes_twice(self):
        path = self.trace(rank(0, 83) + rank(0, 83))
        self.assertEqual(self.devices_of_kernels(path), [["k0", 2, 1, 6, 83]])

    def test_ranks_that_collectives_tell(self):
        told = {"Rank": 1, "Process Group Name": "0", "Process Group Description": "default_pg", "External id": 50}
        other = {"Rank": 5, "Process Group Name": "3", "Process Group Description": "tp", "External id": 51}
        path = self.trace(rank(0, 83) + [span("record_param_comms", 900, 1, "cpu_op", 84, 84, **args) for args in (other, told)]
                          + rank(1, 84))
        self.assertEqual(self.query(path, "select pid, rank from tacho.process order by pid"), [[83, None], [84, 1]])

    def test_ranks_in_several_documents(self):
        text = "\n".join(json.dumps({"traceEvents": rank(number, 83), "distributedInfo": {"rank": number}}) for number in (0, 1))
        path = self.written("t.json", text)
        self.check_ranks(path, 2)
        self.assertEqual(self.query(path, "select rank from tacho.process order by rank"), [[0], [1]])

    def test_names_before_the_events_of_each_rank(self):
        """In documents and in one list they are those of the rank that follows."""
        ranks = [[names(83, f"trainer{number}")] + rank(number, 83)[:-1] for number in (0, 1)]
        for text in ("\n".join(json.dumps({"traceEvents": events}) for events in ranks), json.dumps(ranks[0] + ranks[1])):
            path = self.written("t.json", text)
            self.check_ranks(path, 2)
            self.assertEqual(self.query(path, "select pid, name from tacho.process"), [[83, "trainer0"], [83, "trainer1"]])
        # Named again by a later window, it is still itself.
        path = self.trace(ranks[0] + [names(83, "trainer")] + rank(0, 83, at=50_000)[:-1])
        self.assertEqual(self.query(path, "select pid, name from tacho.process"), [[83, "trainer"]])
        # And at the end of each.
        path = self.trace(rank(0, 83)[:-1] + [names(83, "a")] + rank(1, 83)[:-1] + [names(83, "b")])
        self.assertEqual(self.query(path, "select pid, name from tacho.process"), [[83, "a"], [83, "b"]])

    def test_ranges_before_the_first_operator_of_a_document(self):
        text = "\n".join(json.dumps({"distributedInfo": {"rank": number}, "traceEvents": [
            span(f"step{number}", 900, 5000, "user_annotation", 83, 83)] + rank(number, 83)}) for number in (0, 1))
        path = self.written("t.json", text)
        self.check_ranks(path, 2)
        self.assertEqual(self.query(path, "select m.name, p.rank from tacho.marker m join tacho.track t on t.id = m.track "
                                    "join tacho.process p on p.id = t.process order by m.name"), [["step0", 0], ["step1", 1]])

    def test_labels_in_pids(self):
        events = [dict(event, pid=f"[TP{number:02}] {event['pid']}") for number in (0, 1) for event in rank(number, 83)]
        path = self.trace(events)
        self.check_ranks(path, 2)
        self.assertEqual(self.query(path, "select pid, rank from tacho.process order by rank"), [[83, 0], [83, 1]])
        mixed = sorted((event for event in events if "ts" in event), key=lambda event: event["ts"])
        self.check_ranks(self.trace(mixed), 2)

    def test_labels_beside_plain_pids(self):
        def of(pid, gpu, at):
            return [dict(event, pid=pid) for event in (operator("aten::a", at, 9, at), launch(at + 1, at))] + [
                kernel(str(at), at + 20, 5, at, pid=gpu)]
        label, plain = of("[TP00] 83", "[TP00] 0", 100), of(83, 0, 200)
        named = [{"ph": "M", "name": "process_name", "pid": "[TP00] 83", "args": {"name": "python"}}]
        for events in (label + plain, plain + label, named + plain + label):
            path = self.trace(events)
            self.assertEqual(self.query(path, "select d.name, p.pid, p.rank, dev.process = p.id from tacho.dispatch d "
                                        "join tacho.track t on t.id = d.track join tacho.process p on p.id = t.process "
                                        "join tacho.device dev on dev.id = t.device order by d.start"),
                             [["100", 83, 0, 1], ["200", 83, None, 1]])
            self.assertEqual(self.query(path, "select count(distinct run), count(*) from tacho.process"), [[2, 2]])

    def test_labels_of_gpus_that_are_processes(self):
        path = self.trace([{"ph": "M", "name": "process_name", "pid": f"[TP0{rank}] 1", "args": {"name": "/device:GPU:0"}}
                           for rank in (0, 1)] + [span("k", rank, 1, "", f"[TP0{rank}] 1", 7) for rank in (0, 1)])
        self.assertEqual(self.query(path, "select p.run, p.pid, count(distinct t.device) from tacho.dispatch d "
                                    "join tacho.track t on t.id = d.track join tacho.process p on p.id = t.process "
                                    "group by p.run, p.pid order by p.run"), [[0, 1, 1], [1, 1, 1]])
        self.assertEqual(self.query(path, "select count(*) from tacho.device"), [[2]])

    def test_later_windows_of_one_process_share_its_devices(self):
        path = self.trace(rank(0, 83) + rank(0, 83, at=50_000))
        self.assertEqual(self.devices_of_kernels(path), [["k0", 1, 1, 6, 83]])
        self.assertEqual(len(self.query(path, "select pid from tacho.process")), 1)

    def test_two_gpus_of_one_process(self):
        path = self.trace([operator("aten::a", 10, 50, 1), launch(20, 1), kernel("k0", 30, 5, 1), launch(40, 2),
                           kernel("k1", 50, 5, 2, pid=1, device=1)])
        self.assertEqual([row[:2] for row in self.devices_of_kernels(path)], [["k0", 1], ["k1", 1]])
        self.assertEqual(self.query(path, "select count(*) from tacho.process"), [[1]])

    def test_equal_ids_of_asynchronous_ranges_in_two_processes(self):
        path = self.trace([{"ph": phase, "cat": "c", "id": 1, "name": "r", "pid": pid, "tid": 1, "ts": ts}
                           for phase, pid, ts in (("b", 1, 10), ("b", 2, 20), ("e", 1, 30), ("e", 2, 50))])
        self.assertEqual(self.query(path, "select start, duration from tacho.marker order by start"),
                         [[10_000, 20_000], [20_000, 30_000]])

    def test_text_ids_and_negative_numbers(self):
        path = self.trace([span("a", 1, 1, "x", "[TP00] 83", 1), span("b", 2, 1, "x", -2, 1), span("c", 3, 1, "x", 5, "Spans"),
                           span("d", 4, 1, "x", 5, -3), span("e", 5, 1, "x", -(2**62) - 1, 1), span("f", 6, 1, "x", "text", 1)])
        self.assertEqual(self.query(path, "select m.name, p.pid, h.tid, h.name from tacho.marker m join tacho.track t on t.id = m.track "
                                    "join tacho.process p on p.id = t.process join tacho.thread h on h.id = t.thread order by m.start"),
                         [["a", 83, 1, ""], ["b", -2, 1, ""], ["c", 5, 0, "Spans"], ["d", 5, -3, ""],
                          ["e", -(2**62) - 1, 1, ""], ["f", 0, 1, ""]])


class Unknown(Kineto):
    def test_times_that_really_begin_at_zero(self):
        path = self.trace([kernel("a", 0, 0, 1), kernel("b", 100, 5, 2), kernel("c", 120, 0, 3)])
        self.assertEqual(self.query(path, "select start from tacho.dispatch order by start"), [[0], [100_000], [120_000]])

    def test_copies_without_times_and_work_without_a_call(self):
        base = 5_000_000
        path = self.trace([launch(base, 1), launch(base + 10, 2, name="cudaMemcpyAsync"), kernel("a", base + 20, 5, 1),
                           span("Memcpy HtoD (Pageable -> Device)", 0, 0, "gpu_memcpy", 0, 7, device=0, stream=7, correlation=2),
                           kernel("lost", 0, 0, 77)])
        self.assertEqual(self.query(path, "select start, duration from tacho.copy"), [[(base + 20) * 1000, None]])
        self.assertEqual(self.query(path, "select count(*) from tacho.dispatch"), [[1]])
        text = " ".join(self.info(path).split())
        self.assertIn("1 kernel, 1 copy without times: the profiler did not measure them, so they count as calls and add no time; "
                      "1 of them left out, as no call tells when they ran", text)
        path = self.trace([launch(base, 1), kernel("a", base + 20, 5, 1), kernel("lost", 0, 0, 77)])
        text = " ".join(self.info(path).split())
        self.assertIn("1 kernel without times: the profiler did not measure them, and no call tells when they ran, so they are left out", text)
        self.assertNotIn("count as calls", text)

    def test_negative_sizes_are_unknown(self):
        path = self.trace([span("Memcpy HtoD (Pageable -> Device)", 10, 5, "gpu_memcpy", 0, 7, device=0, stream=7, bytes=size) for size in (-1, 64)])
        self.assertEqual(self.query(path, "select bytes from tacho.copy order by bytes"), [[None], [64]])

    def test_memory_makes_no_device(self):
        memory = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 83, "tid": 83, "ts": 5}
        path = self.trace([dict(memory, args={"Bytes": 100, "Device Type": 1, "Device Id": device, "Addr": 1}) for device in (3, 0)]
                          + [dict(memory, args={"Bytes": 7, "Device Type": 0, "Device Id": -1}), kernel("k", 10, 5, 1)])
        self.assertEqual(self.query(path, 'select "index" from tacho.device'), [[0]])
        self.assertEqual(self.query(path, "select sum(bytes), count(*) from tacho.allocation"), [[207, 3]])

    def test_lists_of_categories_and_numbers_as_names(self):
        path = self.trace([span(5, 1, 1, "gpu, Kernel", 0, 7), span(True, 2, 1, "kernel", 0, 7), span(None, 3, 1, "x,cuda_runtime")])
        self.assertEqual(self.query(path, "select name from tacho.dispatch order by start"), [["5"], ["true"]])
        self.assertEqual(self.query(path, "select name from tacho.api"), [["(no name)"]])

    def test_unknown_phases_are_counted_by_name(self):
        path = self.trace([span("a", 1, 1), {"ph": "O", "id": 1, "name": "o", "pid": 1, "ts": 2},
                           {"ph": "P", "name": "s", "pid": 1, "ts": 2}, {"ph": "Xx", "name": "s", "pid": 1, "ts": 2}, {}, 7])
        text = self.info(path)
        for part in ("snapshots of objects (phase O): 1", "samples (phase P): 1", 'events of phase "Xx": 1', "that are none: 1"):
            self.assertIn(part, text)


class AnyOrder(Kineto):
    BLOCK = [launch(10, 1), kernel("k", 20, 5, 1)]

    def test_ends_without_names_and_begins_without_ends(self):
        path = self.trace([{"ph": phase, "name": name, "pid": 1, "tid": 1, "ts": ts} if name else
                           {"ph": phase, "pid": 1, "tid": 1, "ts": ts}
                           for phase, name, ts in (("E", "", 1), ("B", "a", 10), ("B", "b", 20), ("E", "", 20), ("E", "", 40),
                                                   ("B", "open", 50))])
        self.assertEqual(self.query(path, "select name, start, duration from tacho.marker order by start"),
                         [["a", 10_000, 30_000], ["b", 20_000, 0], ["open", 50_000, None]])

    def test_work_and_calls_as_begins_and_ends(self):
        """Any X event may be written as B and E, with its arguments at either end."""
        def halves(event, where):
            begin = {key: value for key, value in event.items() if key not in ("dur", "args")}
            begin["ph"] = "B"
            end = {"ph": "E", "pid": event["pid"], "tid": event["tid"], "ts": event["ts"] + event["dur"]}
            args = list(event.get("args", {}).items())
            cut = {"begin": len(args), "end": 0, "both": len(args) // 2}[where]
            return [dict(begin, args=dict(args[:cut])), dict(end, args=dict(args[cut:]))]
        whole = [operator("aten::mm", 10, 90, 1), launch(20, 1, grid=[4, 1, 1], block=[64, 1, 1]), kernel("gemm", 40, 30, 1),
                 launch(50, 2, name="cudaMemcpyAsync"),
                 span("Memcpy DtoH (Device -> Pageable)", 75, 5, "gpu_memcpy", 0, 7, device=0, stream=7, context=1, correlation=2, bytes=64),
                 span("Memset (Device)", 85, 5, "gpu_memset", 0, 7, device=0, stream=7, context=1, correlation=9, bytes=32),
                 span("step", 5, 100, "user_annotation", 83, 83), names(83)]
        asks = ("select d.name, p.pid, t.native, t.context, d.start, d.duration, d.correlation, k.grid_x, k.group_x from tacho.dispatch d "
                "join tacho.kernel k on k.id = d.dim join tacho.track t on t.id = d.track join tacho.process p on p.id = t.process",
                "select c.start, c.duration, c.bytes, s.direction from tacho.copy c join tacho.copy_shape s on s.id = c.dim",
                "select start, duration, bytes from tacho.fill", "select name, start, duration, tid from tacho.api order by start",
                "select name, start, duration from tacho.marker", "select pid, name from tacho.process", "select tid from tacho.thread")
        path = self.trace(whole)
        wanted = [self.query(path, ask) for ask in asks]
        self.assertEqual(self.device_ns(path)["aten::mm"], 40_000 - 5_000)
        for where in ("begin", "end", "both"):
            events = [half for event in whole for half in (halves(event, where) if event["ph"] == "X" else [event])]
            for arrangement in (events, sorted(events, key=lambda event: event.get("ts", 0)), events[::-1]):
                path = self.trace(arrangement)
                self.assertEqual([self.query(path, ask) for ask in asks], wanted, (where, arrangement[0]))
                self.assertEqual(self.device_ns(path)["aten::mm"], 35_000)
        # A GPU that is a process, named before or after.
        told = {"ph": "M", "name": "process_name", "pid": 2, "args": {"name": "/device:GPU:1"}}
        pair = halves(span("fusion", 100, 40, pid=2, tid=5), "begin")
        for events in ([told, *pair], [*pair, told]):
            path = self.trace(events)
            self.assertEqual(self.query(path, "select name, start, duration from tacho.dispatch"), [["fusion", 100_000, 40_000]])
        # Without an end its duration is unknown, and it is counted.
        path = self.trace([halves(kernel("open", 40, 30, 1), "begin")[0], launch(20, 1)])
        self.assertEqual(self.query(path, "select name, start, duration from tacho.dispatch"), [["open", 40_000, None]])
        self.assertEqual(self.query(path, "select sum(count) from tacho.loss"), [[1]])
        # Two ranks behind one another, with calls and work of equal ids.
        events = [half for number in (0, 1) for event in rank(number, 83 + number)
                  for half in (halves(event, "begin") if event["ph"] == "X" else [event])]
        found = self.device_ns(self.trace(events))
        self.assertEqual([found[f"aten::op{number}"] for number in (0, 1)], [300_000, 600_000])

    def test_ranges_that_cross_by_name(self):
        path = self.trace([{"ph": phase, "name": name, "pid": 1, "tid": 1, "ts": ts}
                           for phase, name, ts in (("E", "b", 40), ("B", "a", 10), ("E", "a", 30), ("B", "b", 20))])
        self.assertEqual(self.query(path, "select name, duration from tacho.marker order by name"),
                         [["a", 20_000], ["b", 20_000]])

    def test_gpus_named_behind_their_events(self):
        work = [span("fusion", 100, 40, pid=2, tid=5, kernel_details="regs:32 static_shared:16 dynamic_shared:0 grid:8,1,1 "
                     "block:128,1,1 occ_pct:50.0"), span("MemcpyH2D", 150, 10, pid=2, tid=6, memcpy_details="size:4096 async:1"),
                span("host work", 90, 100, pid=3, tid=1), span("step", 100, 60, pid=2, tid=9)]
        told = [{"ph": "M", "name": "process_name", "pid": 2, "args": {"name": "/device:GPU:1"}},
                {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "/host:CPU"}},
                {"ph": "M", "name": "thread_name", "pid": 2, "tid": 5, "args": {"name": "Stream #13(Compute)"}},
                {"ph": "M", "name": "thread_name", "pid": 2, "tid": 9, "args": {"name": "XLA Modules"}}]
        for events in (work + told, told + work):
            path = self.trace(events)
            self.assertEqual(self.query(path, "select d.name, k.grid_x, k.group_x, k.registers, k.shared_static from tacho.dispatch d "
                                        "join tacho.kernel k on k.id = d.dim"),
                             [["fusion", 1024, 128, 32, 16]])
            self.assertEqual(self.query(path, "select c.bytes, s.direction from tacho.copy c join tacho.copy_shape s "
                                        "on s.id = c.dim"), [[4096, "host to device"]])
            self.assertEqual(sorted(self.query(path, "select name from tacho.marker")), [["host work"], ["step"]])
            self.assertEqual(self.query(path, 'select "index" from tacho.device'), [[1]])
            self.assertIn(["Stream #13(Compute)"], self.query(path, "select name from tacho.track"))

    def test_other_names_of_gpus(self):
        for name, index in (("CUDA functions", 0), ("GPU2", 2), ("GPU 1", 1)):
            path = self.trace([names(4, name), span("k", 1, 1, pid=4)])
            self.assertEqual(self.query(path, 'select "index" from tacho.device'), [[index]], name)

    def test_device_properties_on_either_side(self):
        told = [{"id": 0, "name": "NVIDIA H200", "numSms": 132, "totalGlobalMem": 5}]
        for document in ({"deviceProperties": told, "traceEvents": self.BLOCK}, {"traceEvents": self.BLOCK, "deviceProperties": told}):
            path = self.trace(document)
            self.assertEqual(self.query(path, "select name, vendor from tacho.device"), [["NVIDIA H200", "NVIDIA"]])
            self.assertIn(["multiprocessors", "132"], self.query(path, "select key, value from tacho.property"))

    def test_documents_in_every_arrangement(self):
        one = json.dumps({"traceEvents": self.BLOCK})
        lists = json.dumps(self.BLOCK)
        lines = "\n".join(map(json.dumps, self.BLOCK)) + "\n"
        for text, count in ((one + one, 2), (one + "\n" + one + "\n\0\0", 2), (lists + lists, 2), (lines, 1),
                            (f"[{one}, {one}]", 2), ('{"a": {}, "traceEvents": ' + one + "}", 1), (f"[{lists}, {lists}]", 2)):
            path = self.written("t.json", text)
            self.assertEqual(self.query(path, "select count(*) from tacho.dispatch"), [[count]], text)
            self.assertNotIn("text after the end", self.info(path))
        path = self.written("t.json.gz", gzip.compress(one.encode()) + gzip.compress(one.encode()))
        self.assertEqual(self.query(path, "select count(*) from tacho.dispatch"), [[2]])

    def test_documents_without_events(self):
        one = json.dumps({"traceEvents": self.BLOCK})
        for empty in ('{"traceEvents": []}', '{"schemaVersion": 1, "traceEvents": [], "a": 1}', "[]"):
            path = self.written("t.json", one + "\n" + empty + "\n" + one)
            self.assertEqual(self.query(path, "select count(*) from tacho.dispatch"), [[2]], empty)
            self.assertNotIn("text after the end", self.info(path), empty)

    def test_events_that_begin_late_in_a_packed_file(self):
        told = [{"id": number, "name": "NVIDIA H200", "more": "y" * 600} for number in range(8)]
        for key in ("schemaVersion", "displayTimeUnit", "otherData", "distributedInfo", "baseTimeNanoseconds"):
            text = json.dumps({key: 1, "a": told, "traceEvents": self.BLOCK}).encode()
            for name, packed in (("t", text), ("t.gz", gzip.compress(text)), ("t.zip", zipped(text))):
                path = self.written(name, packed)
                self.assertEqual(self.query(path, "select count(*) from tacho.dispatch"), [[1]], (key, name))

    def test_text_behind_the_end_is_named(self):
        one = json.dumps({"traceEvents": self.BLOCK})
        for tail in ("}", ", {}]}", '{"ph": "X"}, {', "{}", '{"a": 1}', "garbage"):
            path = self.written("t.json", one + " " + tail)
            self.assertEqual(self.query(path, "select count(*) from tacho.dispatch"), [[1]], tail)
            self.assertIn(f"text after the end at byte {len(one) + 1} is not read", self.info(path), tail)

    def test_files_without_their_end(self):
        one = json.dumps({"traceEvents": self.BLOCK})
        for cut in (one[:-1], one[:-2], one[:-2] + ",", json.dumps(self.BLOCK)[:-1]):
            path = self.written("t.json", cut)
            self.assertEqual(self.query(path, "select count(*) from tacho.dispatch"), [[1]], cut)
            self.assertIn("ends without closing its array", self.info(path))
        self.tacho("info", self.written("t.json", one[:-9]), code=1)

    def test_valid_json_is_not_called_invalid(self):
        for document in ({"traceEvents": None}, {"traceEvents": "file"}, {"traceEvents": 5}, {"a": 1}):
            self.tacho("info", self.trace(document), code=1)
            self.assertIn("not a trace", self.said)
            self.assertNotIn("not valid JSON", self.said)


class Torch(Kineto):
    def test_runtimes_and_drivers_of_any_vendor(self):
        for cat in ("mtia_runtime", "privateuse1_driver", "glow_runtime", "xpu_driver", "hpu_op"):
            path = self.trace([operator("aten::a", 10, 50, 1), launch(20, 9, name="enqueue", cat=cat), kernel("k", 40, 5, 9)])
            self.assertEqual(self.device_ns(path)["aten::a"], 5_000, cat)
            self.assertIn(["enqueue"], self.query(path, "select name from tacho.api"))

    def test_device_work_by_the_link_from_its_call(self):
        """Backends outside of PyTorch have categories of their own, or none; MTIA's work has one that is known."""
        for cat in ("npu_kernel", "", "x,y"):
            path = self.trace([operator("aten::a", 10, 90, 1), launch(20, 9, name="enqueue", cat="privateuse1_runtime"),
                               span("k", 40, 5, cat, 300, 7, device=2, stream=3, correlation=9),
                               launch(50, 10, name="copy", cat="privateuse1_runtime"),
                               span("Memcpy HtoD", 60, 6, cat, 300, 7, device=2, stream=3, correlation=10),
                               launch(70, 11, name="set", cat="privateuse1_runtime"),
                               span("Memset (Device)", 80, 7, cat, 300, 7, device=2, stream=3, correlation=11)])
            self.assertEqual(self.query(path, "select name, duration, correlation from tacho.dispatch"), [["k", 5000, 9]], cat)
            self.assertEqual(self.query(path, "select duration from tacho.copy union all select duration from tacho.fill"), [[6000], [7000]])
            self.assertEqual(self.query(path, 'select "index" from tacho.device'), [[2]])
            self.assertEqual(self.query(path, "select pid from tacho.process"), [[83]])
            self.assertEqual(self.device_ns(path)["aten::a"], 18_000, cat)
        path = self.trace([operator("aten::a", 10, 90, 1), span("enqueue", 20, 10, "mtia_runtime", 83, 83, **{"External id": 1}),
                           span("k", 40, 5, "mtia_ccp_events", 1, 7, **{"External id": 1})])
        self.assertEqual(self.device_ns(path)["aten::a"], 5_000)
        # Records of events take no time, and a range without a stream is no work.
        path = self.trace([launch(20, 9), span("cudaEventRecord", 40, 0, "cuda_event", 0, 7, device=0, stream=7, correlation=9),
                           span("range", 50, 5, "other", 83, 83, device=0, correlation=9)])
        self.assertEqual(self.query(path, "select name from tacho.marker order by start"), [["cudaEventRecord"], ["range"]])
        self.assertEqual(self.query(path, "select name from tacho.dispatch"), [])

    def test_inputs_of_operators(self):
        told = {"External id": 1, "Input Dims": [[8, 3], []], "Input type": ["float", "Scalar"], "Input Strides": [[3, 1], []],
                "Concrete Inputs": ["", 'a, " b']}
        events = [span("aten::a", ts, 5, "cpu_op", 83, 83, **told) for ts in (1, 10)] + [operator("aten::b", 20, 5, 2)]
        for indent in (None, 2):
            path = self.written("t.json", json.dumps({"traceEvents": events}, indent=indent))
            self.assertEqual(self.query(path, "select a.name, i.dims, i.types, i.strides, i.concrete from tacho.api a "
                                        "join tacho.operator_input i on i.id = a.inputs"),
                             [["aten::a", "[[8, 3], []]", '["float", "Scalar"]', "[[3, 1], []]", r'["", "a, \" b"]']] * 2)
        self.assertEqual(self.query(path, "select count(*) from tacho.operator_input"), [[1]])

    INPUTS = "select i.dims, i.types, i.strides, i.concrete from tacho.api a join tacho.operator_input i on i.id = a.inputs order by a.start"

    def test_inputs_of_every_form(self):
        """Lists of tensors, lists within lists, empty and negative sizes, symbols, scalars: as they stand in the file; and exported again."""
        forms = [[[[8, 3], [4]], [], [[], [2]]], [], [[-1, 0]], [["s0", "2*s1"], [3]], "[s0, 3]", "a \"b\" \\ ü", 5, 2.5, True, {"a": [1]}]
        kinds = ["TensorList", "GenericList[TensorList]", "c10::BFloat16", "", "Scalar", "ScalarList"]
        concrete = ["", "1", "-0.5", "True", "[1, 1]", "['a', None]", "inf"]
        events = [span("aten::a", 1 + 10 * n, 5, "cpu_op", 83, 83, **{"External id": n + 1, "Input Dims": form, "Input type": kinds,
                       "Input Strides": [[], [[1, -1]]], "Concrete Inputs": concrete}) for n, form in enumerate(forms)]
        shown = [form if isinstance(form, str) else json.dumps(form) for form in forms]
        shown[-1] = '{"a":[1]}'
        path = self.trace(events)
        rows = self.query(path, self.INPUTS)
        self.assertEqual([row[0] for row in rows], shown)
        self.assertEqual(rows[0][1:], [json.dumps(kinds), "[[], [[1, -1]]]", json.dumps(concrete)])
        self.tacho("export", "-f", "json", "-o", "again.json", path)
        again = {e["args"]["External id"]: e["args"] for e in json.loads((self.folder / "again.json").read_text())["traceEvents"]
                 if e["ph"] == "X"}
        self.assertEqual([again[key]["Input Dims"] for key in sorted(again)], forms)
        self.assertEqual([again[key]["Concrete Inputs"] for key in again], [concrete] * len(forms))
        self.assertEqual(self.query(self.folder / "again.json", self.INPUTS), rows)

    def test_inputs_that_are_not_there(self):
        """Without record_shapes, null and empty texts there is no row; text that is no JSON does not spoil an export."""
        path = self.trace([operator("aten::a", 1, 5, 1), span("aten::b", 10, 5, "cpu_op", 83, 83, **{"External id": 2, "Input Dims": ""})])
        self.assertEqual(self.query(path, "select count(*), sum(inputs) from tacho.api"), [[2, 0]])
        self.assertEqual(self.query(path, "select count(*) from tacho.operator_input"), [[0]])
        text = '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "args": {"Input Dims": [nan, 3 4]}}]}'
        path = self.written("odd.json", text)
        self.tacho("export", "-f", "json", "-o", "again.json", path)
        event = next(e for e in json.loads((self.folder / "again.json").read_text())["traceEvents"] if e["ph"] == "X")
        self.assertIsInstance(event["args"]["Input Dims"], str)

    def test_inputs_that_are_long_or_many(self):
        told = {"Input Dims": [[number] for number in range(6000)], "Concrete Inputs": ["ü" * 9000]}
        path = self.written("t.json", json.dumps({"traceEvents": [span("aten::a", 1, 5, "cpu_op", 83, 83, **told)]}, ensure_ascii=False))
        dims, concrete = self.query(path, "select dims, concrete from tacho.operator_input")[0]
        self.assertTrue(dims.startswith("[[0], [1], ") and dims.endswith("...") and len(dims) == 16384, dims[-20:])
        self.assertTrue(concrete.endswith("ü...") and len(concrete.encode()) in (16383, 16384), concrete[-20:])
        self.assertIn("the inputs of 1 operator are longer than 16 KiB and were cut there", self.info(path))
        self.tacho("export", "-f", "json", "-o", "again.json", path)
        again = self.folder / "again.json"
        self.assertEqual(self.query(again, "select dims, concrete from tacho.operator_input"), [[dims, concrete]])
        many = [span("aten::a", 1 + n, 1, "cpu_op", 83, 83, **{"Input Dims": [[n] + [7] * 3000]}) for n in range(1200)]
        path = self.trace(many)
        kept, = self.query(path, "select count(*) from tacho.api where inputs != 0")[0]
        self.assertTrue(8 * 2**20 / 9100 < kept < 8 * 2**20 / 9000 + 2, kept)
        self.assertIn(f"different inputs of operators took 8 MiB, the most that are kept: {1200 - kept} operators are without inputs",
                      self.info(path))

    def test_operators_by_shapes_of_their_inputs(self):
        events = []
        for n, dims in enumerate(([[8, 3], [3, 4]], [[2, 3], [3, 4]], [[8, 3], [3, 4]])):
            at = 1 + 100 * n
            events += [span("aten::mm", at, 50, "cpu_op", 83, 83, **{"External id": n + 1, "Input Dims": dims}),
                       span("cudaLaunchKernel", at + 5, 5, "cuda_runtime", 83, 83, correlation=n + 1),
                       kernel("gemm", at + 20, 10 + n, n + 1)]
        path = self.trace(events)
        rows = list(csv.DictReader(io.StringIO(self.tacho("stats", path, "--by", "operator", "--input-shapes", "--output-format", "csv"))))
        self.assertEqual([(row["Name"], row["InputShapes"], row["Calls"], row["SelfDeviceNs"]) for row in rows],
                         [("aten::mm", "[[8, 3], [3, 4]]", "2", "22000"), ("aten::mm", "[[2, 3], [3, 4]]", "1", "11000")])
        text = self.tacho("stats", path, "--by", "operator", "--input-shapes")
        self.assertRegex(text.splitlines()[0], "Operator +Input shapes$")
        self.assertNotIn("shapes", self.tacho("stats", path, "--by", "operator"))
        self.tacho("stats", path, "--by", "kernel", "--input-shapes", code=1)
        self.assertIn("--input-shapes goes with --by operator or module, not with --by kernel", self.said)
        path = self.trace([operator("aten::a", 1, 5, 1)])
        self.tacho("stats", path, "--by", "operator", "--input-shapes")
        self.assertIn("no shapes of inputs; torch.profiler records them with record_shapes=True", self.said)

    def test_occupancy_that_the_profiler_estimates(self):
        def told(value):
            return kernel("k", 1, 5, 3, grid=[4, 1, 1], block=[32, 1, 1], **{"est. achieved occupancy %": value})
        ask = "select occupancy from tacho.kernel"
        for value, read in ((31, 31.0), (62.5, 62.5), ("37", 37.0), (0, 0.0), (100, 100.0), (-99, None), (101, None), (None, None)):
            path = self.trace([told(value)])
            self.assertEqual(self.query(path, ask), [[read]], value)
            self.tacho("export", "-f", "json", "-o", "again.json", "--overwrite", path)
            self.assertEqual(self.query(self.folder / "again.json", ask), [[read]], value)

    def test_what_a_kernel_event_tells(self):
        path = self.trace([kernel("k", 1, 5, 3, priority=-2, grid=[4, 1, 1], block=[32, 1, 1],
                                  **{"graph id": 6, "graph node id": 9, "Collective name": "allreduce", "Seq": 17,
                                     "Comms Id": 123456789012})])
        self.assertEqual(self.query(path, "select d.graph_node, k.graph, d.arguments from tacho.dispatch d "
                                    "join tacho.kernel k on k.id = d.dim"),
                         [[9, 6, "Collective name=allreduce, Seq=17, Comms Id=123456789012"]])
        self.assertIn(["priority", "-2"], self.query(path, "select key, value from tacho.property"))

    def test_annotations_of_graph_nodes(self):
        """torch.cuda.graph_annotations.mark_kernels(): texts that torch adds to the args of a graph's nodes, each with a name."""
        of_node = {"graph id": 2, "graph node id": (2 << 32) + 5}
        marks = {"name": "attention", "module_fqn": "layers.0.ä \"x\"", "stream": 60, "Input Dims": []}
        ask = "select k.name, d.arguments from tacho.dispatch d join tacho.kernel k on k.id = d.dim order by d.start"
        text = '{"name":"attention","module_fqn":"layers.0.ä \\"x\\""}'
        events = [kernel("in_graph", 1, 2, 3, grid=[1, 1, 1], block=[32, 1, 1], **of_node),
                  kernel("no_graph", 5, 2, 4, grid=[1, 1, 1], block=[32, 1, 1], note="x", kind="y"),
                  kernel("unmarked", 9, 2, 5, grid=[1, 1, 1], block=[32, 1, 1], **{"graph node id": 7, "memory bandwidth (GB/s)": "N/A"})]
        events[0]["args"].update(marks)
        path = self.trace(events)
        self.assertEqual(self.query(path, ask), [["in_graph", text], ["no_graph", ""], ["unmarked", ""]])
        # The events' members in another order.
        path = self.trace([{key: event[key] for key in ("cat", "ph", "args", "ts", "dur", "name", "pid", "tid")} for event in events])
        self.assertEqual(self.query(path, ask)[0], ["in_graph", text])
        # SQL reads the object.
        self.assertEqual(self.query(path, "select json_extract(arguments, '$.module_fqn') from tacho.dispatch where graph_node > 7"),
                         [["layers.0.ä \"x\""]])
        # A collective in a graph keeps both.
        marked = kernel("nccl", 1, 2, 3, **of_node, **{"Collective name": "allreduce", "Process Group Ranks": "[0, 1]"})
        marked["args"]["name"] = "tp"
        self.assertEqual(self.query(self.trace([marked]), "select arguments from tacho.dispatch"),
                         [['Collective name=allreduce, Process Group Ranks=[0, 1], annotations={"name":"tp"}']])

    def test_annotations_that_cannot_be_kept(self):
        def fill(ts, **args):
            return span("Memset (Device)", ts, 1, "gpu_memset", 0, 7, device=0, stream=7, **{"graph node id": 4, **args})
        path = self.trace([fill(1, mark="zero"), fill(3, mark="zero"), fill(5), kernel("k", 7, 1, 3)])
        self.assertEqual([text for (text,) in self.query(path, "select text from tacho.note")],
                         ["the annotations of 2 fills in CUDA graphs are not kept: only kernels and copies have a column for them"])
        long = "x" * 60_000
        path = self.trace([kernel("k", number, 1, number, grid=[1, 1, 1], block=[32, 1, 1], **{"graph node id": 9, "mark": f"{number} {long}"})
                           for number in range(1, 201)])
        ((kept,),) = self.query(path, "select count(*) from tacho.dispatch where arguments <> ''")
        self.assertTrue(135 < kept < 145, kept)
        self.assertEqual([text for (text,) in self.query(path, "select text from tacho.note")],
                         [f"different annotations of nodes in CUDA graphs took 8 MiB, the most that are kept: {200 - kept} kernels and "
                          "copies are without annotations"])

    def test_queues_of_hsa_behind_a_stream(self):
        def on(ts, **args):
            return span("k", ts, 1, "kernel", 0, 3, device=0, stream=3, correlation=ts, grid=[1, 1, 1], block=[64, 1, 1], **args)
        ask = "select t.native, t.context, count(*) from tacho.dispatch d join tacho.track t on t.id = d.track group by 1, 2 order by 2"
        path = self.trace([on(1, hsa_queue=1), on(3, hsa_queue=2), on(5, hsa_queue=1)])
        self.assertEqual(self.query(path, ask), [[3, 1, 2], [3, 2, 1]])
        self.assertEqual(self.query(path, "select value from tacho.property where key = 'queue' order by value"), [["1"], ["2"]])
        self.assertEqual(self.query(self.trace([on(1), on(2)]), ask), [[3, 0, 2]])

    def test_copies_in_any_words(self):
        words = {"Memcpy HtoD (Pageable -> Device)": "host to device", "MemcpyD2H": "device to host", "Memcpy M2D(Copy)": "host to device",
                 "CopyDeviceToDevice": "device to device", "MEMORY_COPY_DEVICE_TO_HOST": "device to host",
                 "Memcpy PtoP (Device -> Device)": "peer to peer"}
        path = self.trace([span(name, number, 1, "gpu_memcpy", 0, 7, device=0) for number, name in enumerate(words)])
        self.assertEqual(self.query(path, "select s.direction from tacho.copy c join tacho.copy_shape s on s.id = c.dim "
                                    "order by c.start"), [[way] for way in words.values()])

    def test_both_devices_of_a_peer_copy(self):
        path = self.trace([span("Memcpy PtoP (Device -> Device)", 1, 1, "gpu_memcpy", 0, 7, device=0, stream=7, bytes=8, fromDevice=0,
                                toDevice=1)])
        self.assertEqual(self.query(path, 'select s."index", t."index" from tacho.copy_shape c join tacho.device s on '
                                    "s.id = c.source_device join tacho.device t on t.id = c.target_device"), [[0, 1]])

    def test_external_id_ties_work_where_no_correlation_does(self):
        ids = {"External id": 4}
        work = span("k", 40, 5, "kernel", 0, 7, device=0, **ids)
        both = span("k", 40, 5, "kernel", 0, 7, device=0, correlation=9, **{"External id": 77})
        call = span("hipLaunchKernel", 20, 5, "cuda_runtime", 83, 83, **ids)
        operators = [operator("aten::a", 10, 50, 4), operator("aten::b", 100, 50, 77)]
        for events in ([call, work], [launch(20, 9), both]):
            self.assertEqual(self.device_ns(self.trace(operators + events))["aten::a"], 5_000, events)
        # Where no call has the id, the operator is the cause.
        self.assertEqual(self.query(self.trace(operators + [work]), "select a.name from tacho.dispatch d join tacho.api a "
                                    "on a.correlation = d.correlation"), [["aten::a"]])

    def test_work_that_operators_caused(self):
        """Files without calls of a runtime: inputs, module and Python line of the operator that has the work's External id."""
        def work(name, ts, cat, external):
            return span(name, ts, 50, cat, 0, 7, device=0, stream=7, **{"External id": external})
        def mm(ts, external):
            return span("aten::mm", ts, 100, "cpu_op", 83, 83, **{"External id": external, "Input Dims": [[8, 4], [4, 2]], "Input type": ["float", "float"]})
        frames = [span(name, ts, dur, "python_function", 83, 83) for name, ts, dur in
                  (("train.py(3): step", 0, 1000), ("nn.Module: Linear_0", 10, 400), ("model.py(12): forward", 20, 300))]
        events = [*frames, mm(40, 8), operator("aten::relu", 600, 100, 9), work("gemm", 100, "kernel", 8), work("relu_k", 650, "kernel", 9),
                  work("Memset (Device)", 720, "gpu_memset", 9), work("of nobody", 800, "kernel", 77)]
        for arrangement in (events, events[::-1]):
            path = self.trace(arrangement)
            self.assertEqual(self.device_ns(path), {"nn.Module.Linear.forward": 50_000, "aten::mm": 50_000, "aten::relu": 100_000, "(no operator)": 50_000})
            self.assertIn("[[8, 4], [4, 2]]", self.tacho("stats", path, "--by", "operator", "--input-shapes"))
            stacks = self.tacho("stats", path, "--by", "stack")
            self.assertIn("step (train.py:3);forward (model.py:12);aten::mm;gemm", stacks)
            self.assertRegex(stacks, r"100\.00 us .*step \(train\.py:3\);aten::relu;|50\.00 us .*step \(train\.py:3\);aten::relu;relu_k")
            self.assertRegex(self.tacho("stats", path, "--by", "line"), r"50\.00 us .* forward +model\.py:12")
            # No operator is a launch.
            launches = {name: row["Launches"] for name, row in self.table(path, "operator").items()}
            self.assertFalse(any(int(each or 0) for each in launches.values()), launches)

    def test_arrows_by_text(self):
        def arrow(phase, ts, number):
            return {"ph": phase, "cat": "fwdbwd", "name": "fwdbwd", "id": number, "pid": 83, "tid": 83, "ts": ts, "bp": "e"}
        work = [span(name, ts, 5, "cpu_op", 83, 83, **{"External id": ts, "Sequence number": ts})
                for name, ts in (("a", 10), ("b", 20), ("b_backward", 30), ("a_backward", 40))]
        for one, two in (("x", "y"), (1, 2), ("x", 1)):
            path = self.trace(work + [arrow("s", 10, one), arrow("s", 20, two), arrow("f", 30, two), arrow("f", 40, one),
                                      arrow("f", 1e30, one)])
            self.assertEqual(self.query(path, "select a.name, b.name from tacho.link l join tacho.api a on a.correlation = l.\"from\" "
                                        "join tacho.api b on b.correlation = l.\"to\" order by a.name"),
                             [["a", "a_backward"], ["b", "b_backward"]], one)
            self.assertRegex(self.info(path), r"1 link[a-z ]*: bad input row")
            self.assertIn('1 row is left out: its ts is missing, or no time within 73 years of 0; it is event 9, "fwdbwd"', self.info(path))

    def test_asynchronous_ranges_nest_and_keep_apart(self):
        def event(phase, ts, name="r", cat="c", **more):
            return dict({"ph": phase, "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts}, **more)
        path = self.trace([event("b", 10, id="0x1"), event("b", 20, "inner", id="0x1"), event("b", 15, cat="d", id="0x1"),
                           event("e", 40, "inner", id="0x1"), event("e", 50, id="0x1"), event("e", 90, cat="d", id="0x1"),
                           event("b", 100, id2={"local": 3}), event("e", 130, id2={"local": 3}), event("e", 200, id=55),
                           event("S", 300, id=1), event("T", 310, id=1), event("F", 320, id=1)])
        rows = self.query(path, "select name, start, duration from tacho.marker where duration > 0 order by start")
        self.assertEqual(rows, [["r", 10_000, 40_000], ["r", 15_000, 75_000], ["inner", 20_000, 20_000], ["r", 100_000, 30_000],
                                ["r", 300_000, 20_000]])
        self.assertRegex(self.info(path), r"1 marker[a-z ]*: bad input row")
        self.assertIn("1 row is left out: the end of a range that did not begin; it is event 9", self.info(path))

    def test_each_reason_to_leave_an_event_out_is_told(self):
        events = [kernel("k", 5, 5, 1), {"ph": "X", "cat": "cpu_op", "name": "late", "pid": 1, "tid": 1, "ts": "soon", "dur": 1},
                  {"ph": "b", "cat": "c", "name": "lost", "pid": 1, "ts": 3}, {"ph": "n", "cat": "c", "name": "lost too", "pid": 1, "ts": 4},
                  {"ph": "E", "pid": 1, "tid": 1, "ts": 6}, {"ph": "E", "pid": 1, "tid": 1, "ts": 7},
                  {"ph": "C", "name": "Power", "pid": 1, "ts": 8, "args": {"W": "much", "V": 12, "A": "no"}},
                  {"ph": "C", "name": "m", "pid": 1, "ts": 9, "args": {f"s{number}": number for number in range(4098)}},
                  {"ph": "i", "name": "x" * 300, "pid": 1, "tid": 1}]
        said = self.info(self.trace(events))
        for sentence in ('2 rows are left out: its ts is missing, or no time within 73 years of 0; the first is event 2, "late"',
                         '2 rows are left out: an asynchronous event without an id; the first is event 3, "lost"',
                         "2 rows are left out: the end of a range that did not begin; the first is event 5",
                         '2 rows are left out: a counter\'s value is no number; the first is event 7, "Power"',
                         '2 rows are left out: the event has more than 4,096 values; the first is event 8, "m"'):
            self.assertIn(sentence, said)
        for good in ([kernel("k", 5, 5, 1)], [{"ph": "i", "name": "x", "pid": 1, "tid": 1, "ts": 1}]):
            self.assertNotIn("left out", self.info(self.trace(good)))
        for name, told in (("x" * 300, '"' + "x" * 100 + '..."'), ("x" * 99 + "é", '"' + "x" * 99 + "\ufffd...")):
            self.assertIn(told, self.info(self.trace([kernel("k", 5, 5, 1), {"ph": "i", "name": name + "y", "pid": 1, "tid": 1}])))

    def test_a_new_text_id_for_every_request(self):
        events = [{"ph": "n", "cat": "c", "name": "r", "pid": 1, "tid": 1, "ts": ts, "id": f"{ts} " + "y" * 4000}
                  for ts in range(20000)]
        path = self.written("t.json.gz", gzip.compress(json.dumps(events).encode(), 1))
        measured = self.run_command("/usr/bin/time", "-v", TACHO, "query", path, "select count(*) from tacho.marker")
        self.assertIn(b"20000", measured.stdout)
        kib = int(re.search(r"Maximum resident set size \(kbytes\): (\d+)", measured.stderr.decode())[1])
        self.assertLessEqual(kib, 72 << 10)  # the ids alone are 78 MiB

    def test_counters_of_devices_and_values_of_any_kind(self):
        path = self.trace([kernel("k", 5, 5, 1)]
                          + [{"ph": "C", "name": "Power", "pid": "GPU 0 Counters", "ts": ts, "args": {"": value}}
                             for ts, value in ((5, 300.5), (6, "301"), (7, None), (8, "no"))])
        self.assertEqual(self.query(path, "select value from tacho.reading order by start"), [[300.5], [301.0]])
        self.assertEqual(self.query(path, "select count(*) from tacho.process"), [[1]])
        self.assertEqual(self.query(path, "select d.name from tacho.reading r join tacho.track t on t.id = r.track "
                                    "join tacho.device d on d.id = t.device"), [["GPU 0"], ["GPU 0"]])

    def test_counters_before_the_first_kernel(self):
        def power(gpu, ts, value):
            return {"ph": "C", "name": "Power", "pid": f"GPU {gpu}", "ts": ts, "args": {"W": value}}
        readings = [power(gpu, ts, 100 * gpu + ts) for ts in (1, 9) for gpu in (0, 1, 2)]
        work = [kernel("a", 5, 1, 1), kernel("b", 6, 1, 2, device=1)]
        for events in (readings + work, work + readings, readings[:3] + work + readings[3:]):
            path = self.trace(events)
            self.assertEqual(self.query(path, "select t.name, d.\"index\", count(*), min(r.value), count(distinct t.id) "
                                        "from tacho.reading r join tacho.track t on t.id = r.track "
                                        "left join tacho.device d on d.id = t.device group by 1, 2 order by 4"),
                             [["", 0, 2, 1.0, 1], ["", 1, 2, 101.0, 1], ["GPU 2", None, 2, 201.0, 1]])

    def test_more_series_than_a_counter_holds(self):
        path = self.trace([{"ph": "C", "name": "m", "pid": 1, "ts": 1, "args": {f"s{number}": number for number in range(5000)}}])
        self.assertEqual(self.query(path, "select count(*) from tacho.reading"), [[4096]])
        self.assertRegex(self.info(path), r"904 reading[a-z ]*: bad input row")

    def test_values_of_profiler_ranges_that_are_no_numbers(self):
        text = json.dumps({"traceEvents": [span("k", 1, 5, "cuda_profiler_range", 0, 0, a=1, b="B", c="C", d="no", e=None)]})
        path = self.folder / "t.json"
        path.write_text(text.replace('"B"', "NaN").replace('"C"', "1e999"))
        self.assertEqual(self.query(path, "select value from tacho.counter_value"), [[1.0]])
        self.assertRegex(self.info(path), r"3 counter_value records: bad input row")

    def test_backslashes_of_windows(self):
        def read(text):
            path = self.written("t.json", '{"traceEvents": [%s]}' % ", ".join(
                '{"ph": "X", "cat": "python_function", "name": "%s", "pid": 1, "tid": 1, "ts": %d, "dur": 1}' % (name, number)
                for number, name in enumerate(text)))
            return [name for (name,) in self.query(path, "select name from tacho.api order by start")]
        self.assertEqual(read([r"C:\runs\new\test.py(3): f"]), [r"C:\runs\new\test.py(3): f"])
        self.assertEqual(read([r"a\b\u00e9\n"]), ["a\b\u00e9\n"])  # only escapes that JSON has
        self.assertEqual(read([r"C:\\Users\\dev\\x.py", r"say \"hi\""]), [r"C:\Users\dev\x.py", 'say "hi"'])
        self.assertEqual(read([r"torch\cuda.py(1): f", r"torch\nn\functional.py(2): g"]),
                         [r"torch\cuda.py(1): f", r"torch\nn\functional.py(2): g"])
        self.assertEqual(read([r"x\usr\"q\"(1): f"]), [r'x\usr"q"(1): f'])


if __name__ == "__main__":
    harness.main()
