"""The order of a file's events means nothing: any permutation of traceEvents gives the same rows, ranks and operators."""
import gzip
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from files_test import DATA, harness  # noqa: E402, the folder of field tests is no package
from kineto_test import Kineto, kernel, launch, names, operator, span  # noqa: E402

WORK = ("from tacho.{} w join tacho.track t on t.id = w.track join tacho.process p on p.id = t.process "
        "join tacho.device v on v.id = t.device ")
QUESTIONS = {
    "kernels": 'select k.name, p.pid, p.rank, p.name, v."index", v.name, t.native, t.context, count(*), sum(w.duration), sum(w.start), '
               "sum(k.grid_x), sum(k.shared_dynamic), min(k.name) " + WORK.format("dispatch") +
               "join tacho.kernel k on k.id = w.dim group by 1, 2, 3, 4, 5, 6, 7, 8 order by 1, 2, 3, 4, 5, 6, 7, 8",
    "copies": 'select s.direction, p.pid, v."index", count(*), sum(w.bytes), sum(w.duration) ' + WORK.format("copy") +
              "join tacho.copy_shape s on s.id = w.dim group by 1, 2, 3 order by 1, 2, 3",
    "fills": 'select p.pid, v."index", count(*), sum(w.bytes), sum(w.duration) ' + WORK.format("fill") + "group by 1, 2 order by 1, 2",
    "calls": "select a.name, f.domain, p.pid, h.tid, count(*), sum(a.duration), sum(a.start) from tacho.api a join tacho.function f on f.id = a.dim join tacho.track t on "
             "t.id = a.track join tacho.process p on p.id = t.process join tacho.thread h on h.id = t.thread group by 1, 2, 3, 4 "
             "order by 1, 2, 3, 4",
    "ranges": "select m.name, p.pid, count(*), sum(m.duration), sum(m.start), sum(m.duration is null) from tacho.marker m join "
              "tacho.track t on t.id = m.track join tacho.process p on p.id = t.process group by 1, 2 order by 1, 2",
    "processes": "select pid, rank, name, count(*) from tacho.process group by 1, 2, 3 order by 1, 2, 3",
    "devices": 'select "index", name, vendor, architecture, count(*) from tacho.device group by 1, 2, 3, 4 order by 1, 2',
    "threads": "select tid, name, count(*) from tacho.thread group by 1, 2 order by 1, 2",
    "arrows": 'select a.name, a.start, b.name, b.start from tacho.link l join tacho.api a on a.correlation = l."from" '
              'join tacho.api b on b.correlation = l."to" order by 1, 2, 3, 4',
    "memory": "select s.memory, s.operation, count(*), sum(a.bytes) from tacho.allocation a join tacho.allocation_shape s on "
              "s.id = a.dim group by 1, 2 order by 1, 2",
    "syncs": "select s.kind, count(*), sum(y.duration) from tacho.sync y join tacho.sync_shape s on s.id = y.dim group by 1 order by 1",
    "readings": "select c.name, count(*), sum(r.value) from tacho.reading r join tacho.track t on t.id = r.track join tacho.counter c "
                "on c.id = t.counter group by 1 order by 1",
    "notes": "select text, count(*) from tacho.note group by 1 order by 1",
}


def steps(pid, gpu, at=1000, count=4, correlation=1, name="k"):
    """Operators with inner ones that begin with them, calls, work of every kind, ranges and names of one process."""
    events = [names(pid), {"ph": "M", "name": "process_labels", "pid": pid, "args": {"labels": "CPU"}},
              {"ph": "M", "name": "thread_name", "pid": pid, "tid": pid, "args": {"name": f"thread of {pid}"}},
              {"ph": "M", "name": "process_labels", "pid": gpu, "args": {"labels": f"GPU {gpu}"}}]
    for step in range(count):
        ts, of, external = at + 1000 * step, correlation + 4 * step, 1 + 2 * step
        events += [
            operator(f"aten::outer{pid}", ts, 400, external, pid), operator("aten::inner", ts, 300, external + 1, pid),
            launch(ts + 10, of, pid, grid=[step + 1, 1, 1], block=[32, 1, 1], **{"shared memory": 16}),
            kernel(name, ts + 30, 50 + step, of, gpu, gpu),
            launch(ts + 40, of + 1, pid, "cudaMemcpyAsync"),
            span("Memcpy DtoH (Device -> Pageable)", ts + 100, 20, "gpu_memcpy", gpu, 7, device=gpu, stream=7, correlation=of + 1, bytes=64),
            launch(ts + 60, of + 2, pid, "cudaMemsetAsync"),
            span("Memset (Device)", ts + 130, 5, "gpu_memset", gpu, 8, device=gpu, stream=8, correlation=of + 2, bytes=32),
            span("step", ts + 20, 200, "gpu_user_annotation", gpu, 7, device=gpu, stream=7, **{"External id": external}),
            launch(ts + 310, of + 3, pid, "cudaStreamSynchronize"),
            span("Stream Sync", ts + 310, 9, "cuda_sync", gpu, 7, device=gpu, stream=7, correlation=of + 3),
            {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": pid, "tid": pid, "ts": ts + 5,
             "args": {"Bytes": 100, "Device Type": 1, "Device Id": gpu, "Addr": 1}},
            {"ph": "B", "name": "phase", "pid": pid, "tid": 5, "ts": ts}, {"ph": "E", "name": "phase", "pid": pid, "tid": 5, "ts": ts + 900},
            {"ph": "b", "cat": "c", "id": step, "name": "wait", "pid": pid, "ts": ts}, {"ph": "e", "cat": "c", "id": step, "name": "wait", "pid": pid, "ts": ts + 70},
            {"ph": "C", "name": "Power", "pid": f"GPU {gpu}", "ts": ts, "args": {"W": 300 + step}}]
        for ph, name_of, start in (("s", "forward", ts + 500), ("f", "backward", ts + 600)):
            events += [span(f"{name_of}{step}", start, 50, "cpu_op", pid, pid, **{"External id": 5000 + start, "Sequence number": step}),
                       span("inside", start, 20, "cpu_op", pid, pid, **{"External id": 50_000 + start, "Sequence number": step}),
                       {"ph": ph, "cat": "fwdbwd", "name": "fwdbwd", "id": step, "pid": pid, "tid": pid, "ts": start, "bp": "e"}]
    return events


class Order(Kineto):
    def picture(self, source):
        path = self.folder / "t.tacho"
        self.tacho("export", "-f", "tacho", source, "-o", path, "--overwrite")
        found = {name: self.query(path, statement) for name, statement in QUESTIONS.items()}
        for by in ("operator", "stack"):
            found[by] = sorted(json.dumps(row) for row in json.loads(self.tacho("stats", path, "--by", by, "--output-format", "json"))["rows"])
        return found

    def compare(self, document, seeds):
        events = document["traceEvents"]
        wanted = self.picture(self.written("t.json", document))
        for seed in seeds:
            mixed = list(events)
            random.Random(seed).shuffle(mixed)
            found = self.picture(self.written("t.json", dict(document, traceEvents=mixed)))
            for name, rows in wanted.items():
                self.assertEqual(found[name], rows, (name, seed))
        return wanted


class OneRank(Order):
    def test_one_rank(self):
        told = {"distributedInfo": {"rank": 3}, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}]}
        for count, seeds in ((1, range(12)), (6, range(8))):
            wanted = self.compare(dict(told, traceEvents=steps(83, 0, count=count)), seeds)
            self.assertEqual([row[1:6] for row in wanted["kernels"]], [[83, 3, "python", 0, "NVIDIA H200"]])
            self.assertEqual(len(wanted["arrows"]), count)

    def test_several_gpus_of_one_rank(self):
        other = [event for event in steps(83, 1, at=1500, correlation=500, name="other") if event.get("cat") not in ("cpu_op", "fwdbwd")]
        wanted = self.compare({"traceEvents": steps(83, 0) + other}, range(8))
        self.assertEqual([row[4] for row in wanted["kernels"]], [0, 1])

    def test_work_before_all_else(self):
        events = steps(83, 0)
        works = [event for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
        wanted = self.picture(self.written("t.json", {"traceEvents": events}))
        self.assertEqual(self.picture(self.written("t.json", {"traceEvents": works + [each for each in events if each not in works]})), wanted)

    def test_recorded_files(self):
        harness.need_data()
        for name in ("kineto_mi250_toy_rocm6.2", "kineto_h100_qwen1.5-0.5b"):
            with gzip.open(DATA / "traces" / f"{name}.json.gz") as file:
                self.compare(json.load(file), range(2))


class SeveralRanks(Order):
    """Ranks whose correlations and External ids are equal, put into one file and shuffled."""

    def whose(self, path):
        return self.query(path, "select k.name, p.pid, count(*), sum(w.start), count(distinct v.id) " + WORK.format("dispatch") +
                          "join tacho.kernel k on k.id = w.dim group by 1, 2 order by 1, 2")

    def shuffled(self, events, seeds):
        wanted = self.whose(self.written("t.json", {"traceEvents": events}))
        for seed in seeds:
            mixed = list(events)
            random.Random(seed).shuffle(mixed)
            self.assertEqual(self.whose(self.written("t.json", {"traceEvents": mixed})), wanted, seed)
        return wanted

    def test_ranks_with_gpus_of_their_own(self):
        for count in (1, 6):
            wanted = self.compare({"traceEvents": steps(83, 0, count=count) + steps(84, 1, at=1007, count=count, name="other")}, range(8))
            self.assertEqual([[row[0], row[1], row[4]] for row in wanted["kernels"]], [["k", 83, 0], ["other", 84, 1]])

    def test_ranks_that_have_gpus_of_one_number(self):
        for count in (2, 6):
            events = [event for number in range(3) for event in steps(83 + number, 0, at=1000 + 7 * number, count=count, name=f"k{number}")]
            wanted = self.shuffled(events, range(8))
            self.assertEqual([row[:3] for row in wanted], [[f"k{number}", 83 + number, count] for number in range(3)])
        mixed = list(events)
        random.Random(1).shuffle(mixed)
        self.assertIn("share correlations", self.info(self.written("t.json", {"traceEvents": mixed})))

    def test_calls_apart_from_work(self):
        """Sorted by process, by category, backwards: whose the work is does not follow from what came last."""
        def of(pid, gpu, number):
            return [(launch(1000 * i + number, i, pid), kernel(f"k{number}", 1000 * i + 10 + number, 5, i, gpu, gpu)) for i in range(1, 30)]
        for gpus in ((0, 1), (0, 0)):
            pairs = [of(70 + number, gpu, number) for number, gpu in enumerate(gpus)]
            calls, works = [[pair[part] for rank in pairs for pair in rank] for part in (0, 1)]
            each = [event for rank in pairs for pair in rank for event in pair]
            in_time = sorted(each, key=lambda event: event["ts"])
            for events in (calls + works, works + calls, list(reversed(each)), in_time, list(reversed(in_time)), calls + list(reversed(works)),
                           sorted(each, key=lambda event: event["name"]), sorted(each, key=lambda event: event["pid"])):
                found = self.whose(self.written("t.json", {"traceEvents": events}))
                self.assertEqual([row[:3] for row in found], [["k0", 70, 29], ["k1", 71, 29]], [event["name"] for event in events][:60])

    def test_annotations_that_nothing_ties_to_a_rank(self):
        """GPU ranges have no correlation: where ranks have GPUs of one number, only an External id of one rank alone tells whose they are."""
        def whose(events):
            path = self.written("t.json", {"traceEvents": events})
            return self.query(path, "select m.name, p.pid, p.name, t.device is null or t.device = 0, count(*), sum(m.start) from tacho.marker m join tacho.track t on t.id = m.track join "
                              "tacho.process p on p.id = t.process where m.name like 'step%' group by 1, 2, 3, 4 order by 1, 2, 3, 4"), self.info(path)
        def ranks(gpus, externals, tell=False):
            events = []
            for number, gpu in enumerate(gpus):
                pid = 70 + number
                events.append(names(pid))
                for i in range(1, 30):
                    at, external = 1000 * i + 7 * number, externals(number, i)
                    events += [operator("aten::mm", at, 300, external, pid), launch(at + 10, i, pid), kernel(f"k{number}", at + 30, 50, i, gpu, gpu),
                               span(f"step{number}", at + 20, 200, "gpu_user_annotation", gpu, 7, device=gpu, stream=7, **{"External id": external})]
                    if tell:
                        events.append(span(f"host{number}", at + 5, 200, "user_annotation", pid, pid, **{"External id": 1000 + external}))
                        events[-2]["args"]["External id"] = 1000 + external
            return events
        def orders(events):
            yield sorted(events, key=lambda event: event.get("ts", 0))
            for seed in range(6):
                mixed = list(events)
                random.Random(seed).shuffle(mixed)
                yield mixed
        for events in orders(ranks((0, 0), lambda number, i: i)):
            found, info = whose(events)
            self.assertEqual([row[:5] for row in found], [["step0", None, "unknown", 1, 29], ["step1", None, "unknown", 1, 29]])
            self.assertIn("58 events of the GPUs have no correlation that tells whose they are", info)
        # A GPU each, External ids of one rank only, of its operators or its ranges: known, and nothing is said.
        for events in (ranks((0, 1), lambda number, i: i), ranks((0, 0), lambda number, i: 100 * number + i),
                       ranks((0, 0), lambda number, i: 100 * number + i, tell=True)):
            wanted = None
            for mixed in orders(events):
                found, info = whose(mixed)
                self.assertEqual([row[:5] for row in found], [["step0", 70, "python", 0, 29], ["step1", 71, "python", 0, 29]])
                self.assertNotIn("no correlation", info)
                wanted = wanted or found
                self.assertEqual(found, wanted)
        # One is said as one.
        events = ranks((0, 0), lambda number, i: 100 * number + i)
        annotation = next(event for event in events if event["name"] == "step0")
        annotation["args"]["External id"] = 9999
        found, info = whose(sorted(events, key=lambda event: event.get("ts", 0)))
        self.assertEqual([row[1:5] for row in found], [[None, "unknown", 1, 1], [70, "python", 0, 28], [71, "python", 0, 29]])
        self.assertIn("1 event of the GPU has no correlation that tells whose it is: process \"unknown\" has it", info)

    def test_a_rank_that_launches_first_and_runs_last(self):
        # By time alone rank 83's kernels would be 84's. Only 84 has the last correlations: GPU 1 is its own.
        events = steps(83, 0, count=3) + steps(84, 1, at=1002, count=5, name="other")
        for event in events:
            if event.get("cat", "") in ("kernel", "gpu_memcpy", "gpu_memset") and event["pid"] == 0:
                event["ts"] += 15
        wanted = self.shuffled(events, range(8))
        self.assertEqual([row[:3] for row in wanted], [["k", 83, 3], ["other", 84, 5]])


if __name__ == "__main__":
    harness.main()
