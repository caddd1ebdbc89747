"""Folders as people have them: a recording that comes twice, a merge beside its parts, traces of different runs."""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402, the folder of end-to-end tests is no package
from harness import DATA, TACHO, need_data  # noqa: E402


def kineto(seed, rank=None, world=2, collective=True, base=1_700_000_000_000_000_000):
    """A torch.profiler document of 40 kernels, whose lengths `seed` decides."""
    events = []
    for i in range(40):
        name = "ncclDevKernel_AllReduce" if collective and i % 4 == 3 else "gemm"
        events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 1000 + 50 * i, "dur": 10 + seed + i % 3,
                       "args": {"device": 0, "stream": 7, "correlation": i + 1}})
    document = {"baseTimeNanoseconds": base, "traceEvents": events}
    if rank is not None:
        document["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world}
    return document


class Folders(harness.Case):
    def setUp(self):
        super().setUp()
        self.job = self.folder / "job"
        self.job.mkdir()

    def put(self, name, document):
        (self.job / name).write_text(json.dumps(document))

    def tacho(self, *words, code=0):
        return self.run_command(TACHO, *words, code=code)

    def says(self, *words, code=0):
        """What it prints on stderr, as one line."""
        return " ".join(self.tacho(*words, code=code).stderr.decode().split())

    def ranks(self, *files):
        return json.loads(self.tacho("ranks", *(files or [self.job]), "--output-format", "json").stdout)

    def kernels(self, file):
        return sum(row["Calls"] for row in self.stats("kernel", file).values())

    def test_a_copy_is_read_once_and_said(self):
        self.put("rank0.json", kineto(1, 0))
        self.put("rank1.json", kineto(2, 1))
        self.put("saved.json", kineto(2, 1))
        answer = self.ranks()
        self.assertEqual([rank["rank"] for rank in answer["ranks"]], [0, 1])
        self.assertIn("the same recording", " ".join(answer["remarks"]))
        merged = self.folder / "merged.tacho"
        said = self.says("merge", self.job, "-o", merged)
        self.assertIn("2 traces are now", said)
        self.assertEqual(self.kernels(merged), 80)

    def test_ranks_that_only_names_tell(self):
        for names, wanted in (([f"trace_{i}.json" for i in (0, 2, 10)], [0, 2, 10]), (["77-TP-0.json", "77-TP-1.json"], [0, 1]),
                              (["RANK_4.json", "Rank-7.json"], [4, 7]), (["pid_83.json", "pid_84.json"], [0, 1])):
            for old in self.job.iterdir():
                old.unlink()
            for seed, name in enumerate(names):
                self.put(name, kineto(seed))
            answer = self.ranks()
            self.assertEqual({rank["rank"]: pathlib.Path(rank["file"]).name for rank in answer["ranks"]}, dict(zip(wanted, names)), names)
            remarks = " ".join(answer["remarks"])
            self.assertEqual("the numbers in which their names differ" in remarks, "trace" in names[0] or "TP" in names[0], remarks)
            self.assertEqual("in the order of names" in remarks, "pid" in names[0], remarks)

    def test_a_merge_beside_its_parts_changes_nothing(self):
        self.put("rank0.json", kineto(1, 0))
        self.put("rank1.json", kineto(2, 1))
        alone = self.ranks()
        self.tacho("merge", self.job, "-o", self.job / "all.tacho")
        again = self.ranks()
        for key in ("ranks", "collectives"):
            self.assertEqual(again[key], alone[key])
        self.assertIn("hold the same recordings", " ".join(again["remarks"]))
        made = self.folder / "again.tacho"
        self.tacho("merge", self.job, "-o", made)
        self.assertEqual(self.kernels(made), 80)

    def test_an_export_beside_its_trace_is_the_same(self):
        self.put("rank0.json", kineto(1, 0))
        self.put("rank1.json", kineto(2, 1))
        self.tacho("convert", self.job / "rank0.json", self.job / "x.tacho")
        self.tacho("export", self.job / "x.tacho", "-f", "rpd", "-o", self.job / "y.rpd")
        answer = self.ranks()
        self.assertEqual(len(answer["ranks"]), 2)
        self.assertEqual(" ".join(answer["remarks"]).count("the same recording"), 2)

    def test_unrelated_traces_are_no_ranks(self):
        self.put("a.json", kineto(1))
        self.put("b.json", kineto(2, collective=False))
        self.put("c.json", kineto(3, base=1_600_000_000_000_000_000))
        said = self.says("ranks", self.job, code=1)
        self.assertIn("the traces are of 3 runs", said)
        self.assertIn("tacho view", said)
        # Whoever names the files says that they are ranks.
        self.assertEqual(len(self.ranks(self.job / "a.json", self.job / "b.json")["ranks"]), 2)
        shown = self.says("view", self.job, "-o", self.folder / "x.html")
        self.assertIn("3 runs, which no rank number, collective or message ties to one job", shown)

    def test_passes_of_hosts_lie_deeper(self):
        """rocprofv3 -d out with several --pmc: out/pass_1/HOST."""
        row = ("Kind,Agent_Id,Queue_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp\n"
               "KERNEL_DISPATCH,1,1,100,1,1,k,1,1000,1400\n")
        for number in (1, 2):
            host = self.job / f"pass_{number}" / "node1"
            host.mkdir(parents=True)
            (host / f"{number}_kernel_trace.csv").write_text(row)
            said = self.run_command(TACHO, "stats", self.job, code=1).stderr.decode()
            self.assertIn("a folder whose trace lies deeper: name " if number == 1 else "a folder whose traces lie deeper, in ", said)
            self.assertIn(str(self.job / f"pass_{number}"), said)
        self.assertIn(f"make one trace of all with tacho import {self.job}", said)
        self.run_command(TACHO, "stats", self.job / "pass_1")

    def test_a_stranger_beside_a_job_is_left_out(self):
        self.put("rank0.json", kineto(1, 0))
        self.put("rank1.json", kineto(2, 1))
        self.put("other.json", kineto(3))
        answer = self.ranks()
        self.assertEqual([pathlib.Path(rank["file"]).name for rank in answer["ranks"]], ["rank0.json", "rank1.json"])
        self.assertIn("other.json: no rank number, collective or message ties it", " ".join(answer["remarks"]))

    def test_a_file_without_a_number_takes_nobodys(self):
        self.put("rank0.json", kineto(1, 0))
        self.put("rank1.json", kineto(2, 1))
        self.put("other.json", kineto(3))
        answer = self.ranks(*(self.job / name for name in ("other.json", "rank0.json", "rank1.json")))
        self.assertEqual([pathlib.Path(rank["file"]).name for rank in answer["ranks"]],
                         ["rank0.json", "rank1.json", "other.json"])

    def test_ranks_of_two_jobs_are_not_mixed(self):
        for rank in (0, 1):
            self.put(f"small_rank{rank}.json", kineto(1 + rank, rank, 2))
            self.put(f"large_rank{rank}.json", kineto(5 + rank, rank, 4))
        said = self.says("ranks", self.job, code=1)
        self.assertIn("the traces are of 2 runs", said)

    def test_recorded_traces_of_different_months(self):
        need_data()
        said = self.says("ranks", DATA / "traces", code=1)
        self.assertIn("no rank number, collective or message ties", said)

    def test_recorded_ranks_with_a_copy(self):
        need_data()
        for file in sorted((DATA / "ranks4").glob("*.json.gz")):
            shutil.copy(file, self.job / file.name)
        alone = self.ranks()
        self.tacho("merge", self.job, "-o", self.job / "merged.tacho")
        shutil.copy(self.job / "kineto_rank2.json.gz", self.job / "one_more.json.gz")
        again = self.ranks()
        self.assertEqual(again["ranks"], alone["ranks"])
        self.assertEqual(len([text for text in again["remarks"] if "the same recording" in text]), 2)


if __name__ == "__main__":
    harness.main()
