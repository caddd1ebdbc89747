"""torch's identity of a collective ("Comms Id") brings ranks together whose groups have no name or whose recordings were cut."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from files_test import FieldCase, harness  # noqa: E402, the folder of field tests is no package

ALL = ("Collective name", "Process Group Name", "Process Group Ranks", "Group size", "Seq", "Comms Id")
TACHO = harness.TACHO


def identity(*facts):
    return hash(facts) % (1 << 64) | 1 << 63  # as large as torch's, which are hashes of 64 bits


def collective_rank(rank, groups, steps=8, keep=lambda step, group: True, told=ALL, late=0, shift=0, name="nccl"):
    """A rank that does one collective in each of `groups` (lists of ranks) a step, if it is a member. `told`: what its events tell.
    Rank `late` comes 300 us late to all of them."""
    events, correlation = [], 0
    for step in range(steps):
        for place, group in enumerate(groups):
            if rank not in group or not keep(step, place):
                continue
            correlation += 1
            at = 1000.0 * (1 + step) + 400 * (place % 2) + 3 * place + shift
            arrived = at + (300 if rank == late else 0)
            facts = {"Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "dtype": "Float", "Group size": len(group),
                     "Process Group Name": str(place), "Process Group Ranks": str(group), "Seq": 2 * step + 1,
                     "Comms Id": identity(place, step, tuple(group))}
            for part in ALL:
                if part not in told:
                    del facts[part]
            events += [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 70 + rank, "tid": 70 + rank, "ts": at - 20, "dur": 5,
                        "args": {"correlation": correlation}},
                       {"ph": "X", "cat": "kernel", "name": f"{name}DevKernel_AllReduce_Sum_f32_RING_LL(x)", "pid": 0, "tid": 9, "ts": arrived,
                        "dur": round(at + 390 - arrived, 3), "args": {"correlation": correlation, "device": 0, "stream": 9, **facts}}]
    return {"baseTimeNanoseconds": 1790857026000000000, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 4}, "traceEvents": events}


class CommsId(FieldCase):
    def answer(self, ranks):
        folder = self.folder / "job"
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for rank, document in ranks.items():
            (folder / f"rank{rank}.json").write_text(json.dumps(document))
        return json.loads(self.run_command(TACHO, "ranks", folder, "--output-format", "json").stdout)

    def kinds(self, answer):
        return sorted((group["ranks"], group["count"], group["median_spread_ns"]) for group in answer["kinds"])

    def test_groups_without_names(self):
        # Tensor-parallel pairs, data-parallel pairs across them, and all four: by counting, nothing would fit.
        groups = [[0, 1], [2, 3], [0, 2], [1, 3], [0, 1, 2, 3]]
        without = ("Collective name", "Group size", "Seq", "Comms Id")
        for told in (without, ("Collective name", "Group size", "Comms Id"), ("Collective name", "Comms Id")):
            answer = self.answer({rank: collective_rank(rank, groups, told=told) for rank in range(4)})
            self.assertEqual(len(answer["collectives"]), 40, told)
            self.assertEqual({c["complete"] for c in answer["collectives"]}, {True}, told)
            self.assertEqual(sorted(c["ranks"] for c in answer["collectives"]), [2] * 32 + [4] * 8, told)
            self.assertEqual({(c["last_rank"], c["spread_ns"]) for c in answer["collectives"] if c["spread_ns"]}, {(0, 300_000)}, told)
            self.assertEqual(sum(c["spread_ns"] > 0 for c in answer["collectives"]), 24, told)
            self.assertFalse(any("disagree" in remark for remark in answer["remarks"]), answer["remarks"])
            self.assertEqual(len({c["group"] for c in answer["collectives"]}), 1)
            self.assertEqual(sorted(kind["members"] for kind in answer["kinds"]),
                             ["[0, 1, 2, 3]", "[0, 1]", "[0, 2]", "[1, 3]", "[2, 3]"], answer["kinds"])

    def test_recordings_that_were_cut(self):
        groups = [[0, 1, 2, 3], [0, 1]]
        first = 1_790_857_026_001_000_000
        whole = self.answer({rank: collective_rank(rank, groups) for rank in range(4)})
        for told in (ALL, tuple(part for part in ALL if part != "Seq"), ("Collective name", "Group size", "Comms Id"),
                     ("Collective name", "Group size", "Seq", "Comms Id")):
            cut = self.answer({rank: collective_rank(rank, groups, told=told, keep=lambda step, place, rank=rank: step >= rank and step < 8 - (rank == 0))
                               for rank in range(4)})
            complete = [c for c in cut["collectives"] if c["complete"]]
            self.assertEqual(sorted((c["ranks"], c["last_rank"], c["spread_ns"], c["first_start_ns"]) for c in complete),
                             sorted((c["ranks"], c["last_rank"], c["spread_ns"], c["first_start_ns"]) for c in whole["collectives"]
                                    if (3 if c["ranks"] == 4 else 1) * 1_000_000 <= c["first_start_ns"] - first < 6_900_000), told)
            self.assertGreater(len(cut["collectives"]), len(complete), told)
            self.assertFalse(any("disagree" in remark for remark in cut["remarks"]), cut["remarks"])

    def test_a_collective_that_could_be_of_two_groups_lacks_ranks(self):
        # Rank 0's last one is of one of two pairs: nothing tells which.
        groups = [[0, 1], [0, 2]]
        answer = self.answer({rank: collective_rank(rank, groups, told=("Collective name", "Group size", "Comms Id"),
                                                    keep=lambda step, place, rank=rank: step < 7 or rank == 0) for rank in range(3)})
        self.assertEqual(sorted((c["ranks"], c["complete"]) for c in answer["collectives"]), [(1, False)] * 2 + [(2, True)] * 14)

    def test_operations_that_share_an_identity(self):
        # Coalesced: two kernels with one identity each step.
        documents = {rank: collective_rank(rank, [[0, 1]], told=("Collective name", "Group size", "Comms Id")) for rank in range(2)}
        for document in documents.values():
            for event in [dict(event) for event in document["traceEvents"]]:
                document["traceEvents"].append(dict(event, ts=event["ts"] + 400, args=dict(event["args"], correlation=event["args"]["correlation"] + 100)))
        answer = self.answer(documents)
        self.assertEqual([(c["ranks"], c["complete"], c["spread_ns"]) for c in answer["collectives"]], [(2, True, 300_000)] * 16)

    def test_files_of_one_job_are_tied_by_identity(self):
        # No ranks inside or in names, different counts: only the identities say that this is one job.
        documents = {}
        for rank in range(2):
            document = collective_rank(rank, [[0, 1]], told=("Comms Id",), keep=lambda step, place, rank=rank: step > 5 or rank == 0)
            del document["distributedInfo"]
            documents[("a", "b")[rank]] = document
        folder = self.folder / "named"
        folder.mkdir()
        for name, document in documents.items():
            (folder / f"{name}.json").write_text(json.dumps(document))
        answer = json.loads(self.run_command(TACHO, "ranks", folder, "--output-format", "json").stdout)
        self.assertEqual(sum(c["complete"] and c["ranks"] == 2 for c in answer["collectives"]), 2, answer["collectives"])

    def test_some_collectives_without_an_identity(self):
        documents = {rank: collective_rank(rank, [[0, 1]], told=("Collective name", "Group size", "Comms Id")) for rank in range(2)}
        for document in documents.values():  # the last two only count
            for event in document["traceEvents"][-4:]:
                event["args"].pop("Comms Id", None)
        answer = self.answer(documents)
        self.assertEqual([(c["ranks"], c["complete"], c["spread_ns"]) for c in answer["collectives"]], [(2, True, 300_000)] * 8)

    def test_merging_moves_clocks_by_identity(self):
        # Rank 1's recording begins two collectives later, and its clock is 5 ms ahead.
        files = []
        for rank in range(2):
            document = collective_rank(rank, [[0, 1]], steps=30, told=("Collective name", "Group size", "Comms Id"), late=None, shift=5000 * rank,
                                       keep=lambda step, place, rank=rank: step >= 2 * rank)
            files.append(self.folder / f"part-rank{rank}.json")
            files[-1].write_text(json.dumps(document))
        answer = json.loads(self.run_command(TACHO, "ranks", *files, "--output-format", "json").stdout)
        self.assertEqual({c["spread_ns"] for c in answer["collectives"] if c["complete"]}, {0}, answer["collectives"][:3])
        merged = self.folder / "merged.tacho"
        self.run_command(TACHO, "merge", *files, "-o", merged)
        starts = {}
        for start, arguments in self.query(merged, "select start, arguments from tacho.dispatch"):
            starts.setdefault(arguments.split("Comms Id=")[1], []).append(start)
        self.assertEqual({len(set(both)) for both in starts.values()}, {1})


if __name__ == "__main__":
    harness.main()
