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

    def kernels_of_pass(self, number, rows, counters, host="node1", name=None):
        """out/pass_N/HOST as rocprofv3 writes it: rows of (dispatch, kernel, start, length), counters of (dispatch, name, value)."""
        folder = self.job / f"pass_{number}" / host
        folder.mkdir(parents=True, exist_ok=True)
        kernels = {dispatch: (kernel, start, start + length) for dispatch, kernel, start, length in rows}
        (folder / f"{name or 100 + number}_kernel_trace.csv").write_text(
            "Kind,Agent_Id,Queue_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp\n" +
            "".join(f"KERNEL_DISPATCH,1,1,100,{dispatch},1,{kernel},{dispatch},{start},{end}\n" for dispatch, (kernel, start, end) in kernels.items()))
        if not counters:
            return
        (folder / f"{name or 100 + number}_counter_collection.csv").write_text(
            "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,Kernel_Name,Counter_Name,Counter_Value,"
            "Start_Timestamp,End_Timestamp\n" +
            "".join("{0},{0},1,1,{1},100,64,1,{2[0]},{3},{4},{2[1]},{2[2]}\n".format(dispatch, 100 + number, kernels[dispatch], counter, value)
                    for dispatch, counter, value in counters))

    def counters(self, path):
        text = self.tacho("query", "--dialect", "tacho", path, "--output-format", "json",
                          "select c.name, v.ordinal, v.value, d.start from counter_value v join counter c on c.id = v.dim "
                          "join dispatch d on d.track = v.track and d.start = v.start order by 1, 2").stdout
        return [tuple(row) for row in json.loads(text)["rows"]]

    def test_passes_are_runs_of_one_program(self):
        """rocprofv3 -d out with several --pmc runs the program once for each: out/pass_1/HOST, out/pass_2/HOST."""
        self.kernels_of_pass(1, [(1, "k", 1000, 400), (2, "m", 2000, 100)], [(1, "A", 7), (2, "A", 8), (1, "B", 3)])
        said = self.run_command(TACHO, "stats", self.job / "pass_1").stderr.decode()
        self.assertEqual(said, "")
        self.kernels_of_pass(2, [(1, "k", 9000, 500), (2, "m", 9900, 200)], [(1, "C", 5), (2, "C", 6), (1, "B", 30)])
        self.kernels_of_pass(10, [(1, "k", 19000, 900)], [(1, "D", 1)])
        sentence = f"{self.job}: pass_1, pass_2 and pass_10 are runs of one program: times are those of pass_1, counters those of all"
        wanted = {"k": (1, 400), "m": (1, 100)}
        for path in (self.job, self.folder / "job.tacho"):
            table = self.stats("kernel", path)
            self.assertEqual({name: (row["Calls"], row["TotalDurationNs"]) for name, row in table.items()}, wanted)
            # What two passes counted is that of the first for whoever sums, and stays there for whoever asks.
            self.assertEqual(self.counters(path), [("A", 0, 7, 1000), ("A", 1, 8, 2000), ("B", 0, 3, 1000), ("B", 0, 30, 1000),
                                                   ("C", 0, 5, 1000), ("C", 1, 6, 2000), ("D", 0, 1, 1000)])
            if path == self.job:
                for words in (("stats", path), ("report", "findings", path), ("info", path), ("query", path, "select 1"),
                              ("view", path, "-o", self.folder / "p.html")):
                    self.assertIn(sentence, self.says(*words), words)
                self.assertIn(sentence, self.says("import", path, "-o", self.folder / "job", "--arch", "gfx90a"))
                self.tacho("export", path, "-f", "csv", "-d", self.folder / "csv")
        # Every format gives the first pass's value of B.
        text = next((self.folder / "csv").rglob("*counter_collection.csv")).read_text()
        self.assertIn(",B,3.000000,", text.replace('"', ""))
        self.assertNotIn(",30", text.replace('"', ""))
        self.assertIn(sentence, self.says("ranks", self.job, code=1))

    def test_the_pass_that_counted_nothing_gives_the_times(self):
        self.kernels_of_pass(1, [(1, "k", 1000, 4000)], [(1, "A", 7)])
        self.kernels_of_pass(2, [(1, "k", 1000, 40)], [])
        self.assertIn("times are those of pass_2, counters those of all", self.says("stats", self.job))
        self.assertEqual(self.stats("kernel", self.job)["k"]["TotalDurationNs"], 40)
        self.assertEqual(self.counters(self.job), [("A", 0, 7, 1000)])

    def test_counters_of_other_dispatches_are_left_out(self):
        self.kernels_of_pass(1, [(1, "k", 1000, 400), (2, "m", 2000, 100)], [(1, "A", 7)])
        self.kernels_of_pass(2, [(1, "k", 1000, 400), (2, "n", 2000, 100), (3, "m", 3000, 1)], [(1, "B", 1), (2, "B", 2), (3, "B", 3)])
        said = self.says("stats", self.job)
        self.assertIn("2 of 3 counter values of pass_2 belong to no dispatch of pass_1 and are left out", said)
        self.assertEqual(self.counters(self.job), [("A", 0, 7, 1000), ("B", 0, 1, 1000)])
        self.assertIn("2 counter_value records: bad input row", self.run_command(TACHO, "info", self.job).stdout.decode())

    def test_processes_of_passes_go_together_in_the_order_of_their_numbers(self):
        for number in (1, 2):
            for process in (0, 1):
                self.kernels_of_pass(number, [(1, f"k{process}", 1000, 10 + process)], [], name=10 * number + process)
                folder = self.job / f"pass_{number}" / "node1"
                (folder / f"{10 * number + process}_counter_collection.csv").write_text(
                    "Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Name,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp\n"
                    f"1,1,1,{10 * number + process},100,64,k{process},C{number},{10 * number + process},1000,{1010 + process}\n")
        self.assertEqual({name: row["Calls"] for name, row in self.stats("kernel", self.job).items()}, {"k0": 1, "k1": 1})
        text = self.tacho("query", "--dialect", "tacho", self.job, "--output-format", "json",
                          "select p.pid, c.name, v.value from counter_value v join counter c on c.id = v.dim "
                          "join track t on t.id = v.track join process p on p.id = t.process order by 1, 2").stdout
        self.assertEqual(json.loads(text)["rows"], [[10, "C1", 10], [10, "C2", 20], [11, "C1", 11], [11, "C2", 21]])

    def test_passes_that_are_none(self):
        self.kernels_of_pass(1, [(1, "k", 1000, 400)], [])
        (self.job / "pass_2").mkdir()  # the second run failed
        (self.job / "pass_x").mkdir()
        self.assertIn("a folder whose trace lies deeper: name ", self.says("stats", self.job, code=1))
        # Traces of other tools are no passes, whatever their folders are called.
        (self.job / "pass_3").mkdir()
        for name in ("pass_2/a.json", "pass_3/a.json"):
            (self.job / name).write_text(json.dumps(kineto(1)))
        self.assertIn("holds 2 traces, and this command reads one", self.says("stats", self.job, code=1))
        for name in ("a.json", "b.json"):
            (self.job / "pass_2" / name).write_text(json.dumps({"rocprofiler-sdk-tool": [{"metadata": {"pid": 5}}]}))
        said = self.says("stats", self.job, code=1)
        self.assertIn(f"{self.job}/pass_2: a pass with several traces, {self.job}/pass_2/a.json, ", said)

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
