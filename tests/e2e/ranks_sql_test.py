"""tacho ranks --sql: the Parquet dataset and the printed SQL give, in DuckDB and in ClickHouse, the tables of tacho ranks."""
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import engines
import harness
from harness import BUILD, DATA, SOURCE, TACHO
from ranks_test import make_rank

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "field"))
from comms_id_test import ALL, collective_rank  # noqa: E402, the folder of field tests is no package

TABLES = ("rank_time", "straggler", "kind_of_collective", "collective")


def number(value):
    return value if value is None or isinstance(value, (int, float)) else float(value)


class RanksSql(harness.Case):
    engine = "duckdb"

    def setUp(self):
        super().setUp()
        engines.library(self.engine)
        self.environment = {"TACHO_DUCKDB": str(engines.library("duckdb"))}  # which writes the dataset

    def export(self, *files):
        for file in files:
            self.run_command(TACHO, "export", file, "-f", "parquet", "-d", "data", env=self.environment)

    def tables(self):
        script = self.run_command(TACHO, "ranks", "--sql", self.engine, "data").stdout.decode()
        self.assertIsNone(re.search(r"\{[a-z)]", script))  # every place is filled in
        return dict(zip(TABLES, engines.run(self.engine, script.replace(" LIMIT 20", ""), cwd=self.folder)))

    def compare(self, report, within=0):
        """Compares with tacho ranks' answers about the same files, whose clocks it did not have to correct. `within`: ns; of traces that
        know
        CLOCK_REALTIME the dataset follows its slewing, and tacho ranks takes one offset a trace."""
        def near(a, b, most=within):
            return a == b if isinstance(a, str) or a is None else abs(a - b) <= most
        tables = self.tables()
        self.assertFalse(any(rank["clock_corrected"] for rank in report["ranks"]))
        columns = ("span_ns", "busy_ns", "idle_ns", "compute_ns", "communication_ns", "exposed_communication_ns", "overlap_ns", "copies_ns",
                   "exposed_copies_ns")
        self.assertEqual([number(row["rank"]) for row in tables["rank_time"]], [rank["rank"] for rank in report["ranks"]])
        for row, rank in zip(tables["rank_time"], report["ranks"]):
            for name in columns:
                self.assertTrue(near(number(row[name]), rank[name]), (name, row, rank))
        # If ranks are last by less than that, another one may be named.
        if all(one["late_ns"] > within for one in report["collectives"] if one["ranks"] > 1):
            found = {number(row["rank"]): (number(row["last_in"]), number(row["caused_ns"])) for row in tables["straggler"]}
            self.assertEqual(found.keys(), {one["rank"] for one in report["stragglers"]})
            for one in report["stragglers"]:
                last_in, caused = found[one["rank"]]
                self.assertTrue(last_in == one["last_in"] and near(caused, one["waited_ns"], within * 4 * one["last_in"]), (one, found))
            if within == 0:
                self.assertEqual([number(row["rank"]) for row in tables["straggler"]], [one["rank"] for one in report["stragglers"]])
        self.assertAlmostEqual(sum(number(row["percent_of_waiting"]) for row in tables["straggler"]), 100)
        columns = ("last_rank", "spread_ns", "late_ns", "waited_ns", "transfer_ns", "ranks")
        def key(row):
            # Groups that no file names share their name: the first start tells their collectives apart.
            group = row.get("group", row.get("group_name"))
            return (group, number(row["number"]), row["operation"], *([int(row["first_start_ns"])] if group == "" and within == 0 else []))
        expected = {key(one): one for one in report["collectives"]}
        self.assertEqual(len(expected), len(report["collectives"]))
        self.assertEqual({key(row) for row in tables["collective"]}, set(expected))
        for row in tables["collective"]:
            one = expected[key(row)]
            for name in columns:
                if name != "last_rank" or one["late_ns"] > within:
                    self.assertTrue(near(number(row[name]), one[name], within * (4 if name == "waited_ns" else 1)), (name, row, one))
        for row in tables["collective"]:
            one = expected[key(row)]
            self.assertEqual(number(row["message_bytes"]), one["message_bytes"] or 0)
            self.assertEqual(str(row["complete"]).lower() in ("1", "true"), one["complete"])
            for name in ("algorithm_gb_s", "bus_gb_s"):
                self.assertEqual(row[name] is None, one[name] is None, (row, one))
                if one[name] is not None and one["transfer_ns"] > 100 * within:
                    self.assertAlmostEqual(number(row[name]), one[name], delta=1e-7 if within == 0 else one[name] / 10)
        kinds = sorted((row["operation"], number(row["message_bytes"]), number(row["collectives"]), number(row["median_spread_ns"]),
                        number(row["median_transfer_ns"]), number(row["all_waited_ns"])) for row in tables["kind_of_collective"])
        wanted = sorted((kind["operation"], kind["message_bytes"], kind["count"], kind["median_spread_ns"], kind["median_transfer_ns"],
                         kind["waited_ns"]) for kind in report["kinds"])
        self.assertEqual([kind[:3] for kind in kinds], [kind[:3] for kind in wanted])
        if within == 0:  # else kinds of several groups may come in another order
            self.assertEqual(kinds, wanted)
        return tables

    def ranks(self, *inputs):
        return json.loads(self.run_command(TACHO, "ranks", *inputs, "--output-format", "json").stdout)

    def test_recorded_ranks(self):
        harness.need_data()
        self.export(*(DATA / "ranks4" / f"kineto_rank{rank}.json.gz" for rank in range(4)))
        tables = self.compare(self.ranks(DATA / "ranks4"))
        self.assertEqual([(number(row["rank"]), number(row["last_in"])) for row in tables["straggler"]], [(3, 106), (2, 24)])

    def test_planted_faults(self):
        # Two groups; one rank's trace ends early; no table of copies; one rank disagrees on an operation.
        for rank in range(4):
            trace = make_rank(rank, groups=2, steps=5 if rank == 3 else 6, delay={1: {(2, 0): ("kernel", 500)}, 3: {(3, 2): ("kernel", 900)}})
            if rank == 0:
                told = [event for event in trace["traceEvents"] if event["args"].get("Collective name")]
                told[7]["args"]["Collective name"] = "_allgather_base"
            (self.folder / f"rank{rank}.json").write_text(json.dumps(trace))
        self.export(*(f"rank{rank}.json" for rank in range(4)))
        report = self.ranks(*(f"rank{rank}.json" for rank in range(4)))
        self.assertTrue(any(not one["complete"] for one in report["collectives"]))
        self.assertEqual(len(report["collectives"]), 17)
        self.compare(report)

    def test_names_of_kernels_alone(self):
        for rank in range(3):
            (self.folder / f"rank{rank}.json").write_text(json.dumps(make_rank(rank, ranks=3, metadata=False, delay={0: {(1, 1): ("copy", 300)}})))
        self.export(*(f"rank{rank}.json" for rank in range(3)))
        report = self.ranks(*(f"rank{rank}.json" for rank in range(3)))
        tables = self.compare(report)
        self.assertEqual({row["operation"] for row in tables["collective"]}, {"all_reduce"})

    def compare_documents(self, documents):
        shutil.rmtree(self.folder / "data", ignore_errors=True)
        files = [f"rank{rank}.json" for rank in documents]
        for file, document in zip(files, documents.values()):
            (self.folder / file).write_text(json.dumps(document))
        self.export(*files)
        report = self.ranks(*files)
        return report, self.compare(report)

    def test_recordings_that_were_cut(self):
        # Each rank's recording begins at another collective and rank 0's ends early: only numbers or identities match them.
        def cut(step, _, rank):
            return step >= rank and step < 8 - (rank == 0)
        for told in (ALL, tuple(part for part in ALL if part != "Seq"), tuple(part for part in ALL if part != "Comms Id"),
                     ("Collective name", "Group size", "Comms Id")):
            report, tables = self.compare_documents({rank: collective_rank(rank, [[0, 1, 2, 3], [0, 1]], told=told,
                                                                           keep=functools.partial(cut, rank=rank)) for rank in range(4)})
            self.assertEqual(sum(one["complete"] and one["ranks"] == 4 for one in report["collectives"]), 4, told)
            self.assertEqual(sum(one["complete"] and one["ranks"] == 2 for one in report["collectives"]), 6, told)
            self.assertEqual({number(row["last_rank"]) for row in tables["collective"] if number(row["spread_ns"]) > 0}, {0}, told)

    def test_groups_that_no_file_names(self):
        groups = [[0, 1], [2, 3], [0, 2], [1, 3], [0, 1, 2, 3]]
        for told in (("Collective name", "Group size", "Comms Id"), ("Collective name", "Comms Id")):
            report, tables = self.compare_documents({rank: collective_rank(rank, groups, told=told) for rank in range(4)})
            self.assertEqual(sorted(kind["members"] for kind in report["kinds"]), sorted(row["members"] for row in tables["kind_of_collective"]))
            self.assertEqual({row["members"] for row in tables["kind_of_collective"]}, {str(group) for group in groups})
        # Rank 0's last one is of one of two pairs; nothing tells which.
        report, tables = self.compare_documents(
            {rank: collective_rank(rank, [[0, 1], [0, 2]], told=("Collective name", "Group size", "Comms Id"),
                                   keep=lambda step, place, rank=rank: step < 7 or rank == 0) for rank in range(3)})
        self.assertEqual(sorted(one["ranks"] for one in report["collectives"]), [1] * 2 + [2] * 14)
        self.assertEqual(sum(row["found_by"] == "Comms Id, unknown group" for row in tables["collective"]), 2)

    def test_operations_that_share_an_identity_and_some_without(self):
        documents = {rank: collective_rank(rank, [[0, 1]], told=("Collective name", "Group size", "Comms Id")) for rank in range(2)}
        for document in documents.values():
            for event in [dict(event) for event in document["traceEvents"]]:
                document["traceEvents"].append(dict(event, ts=event["ts"] + 400, args=dict(event["args"], correlation=event["args"]["correlation"] + 100)))
        report, _ = self.compare_documents(documents)
        self.assertEqual(len(report["collectives"]), 16)
        documents = {rank: collective_rank(rank, [[0, 1]], told=("Collective name", "Group size", "Comms Id")) for rank in range(2)}
        for document in documents.values():  # the last two only count
            for event in document["traceEvents"][-4:]:
                event["args"].pop("Comms Id", None)
        report, tables = self.compare_documents(documents)
        self.assertEqual([one["ranks"] for one in report["collectives"]], [2] * 8)
        self.assertEqual(sum(row["found_by"] == "" for row in tables["collective"]), 2)

    def test_what_nccl_tells_in_marks(self):
        # As tacho records it: marks after the launch on its thread, several collectives in a kernel, two communicators, sends and
        # receives, a rank that ends early.
        self.run_command(BUILD / "tests" / "nccl_ranks", self.folder, 4, 1)
        files = [f"rank{rank}.tacho" for rank in range(4)]
        self.export(*files)
        report = self.ranks(*files)
        tables = self.compare(report)
        self.assertEqual({(kind["operation"], kind["group"], kind["message_bytes"], kind["count"]) for kind in report["kinds"]},
                         {("all_reduce", "5a", 2 << 20, 6), ("all_reduce", "5a", 2 * ((1 << 10) + (1 << 12)), 6), ("collective", "5a", 0, 6),
                          ("all_gather", "5a", 2 * 12000, 6), ("broadcast", "", 0, 6), ("reduce_scatter", "77", 10_000, 36)})
        worst = tables["collective"][0]
        self.assertEqual((number(worst["last_rank"]), number(worst["number"]), worst["operation"]), (1, 5, "all_reduce"))
        self.assertTrue(any(not one["complete"] for one in report["collectives"]))

    def mpi(self, launcher, compiler):
        if shutil.which(compiler) is None or shutil.which(launcher[0]) is None:
            self.skipTest(f"{compiler} is not installed (Debian packages libopenmpi-dev and mpich)")
        subprocess.run([compiler, "-w", "-O1", f"-I{SOURCE}/include", SOURCE / "tests/e2e/targets/mpi/calls.c", "-o", self.folder / "calls", "-lpthread"], check=True)
        self.run_command(*launcher, "-n", 4, TACHO, "trace", "-q", "-o", "t.tacho", "--", self.folder / "calls", "collectives",
                         env={"OMPI_MCA_mpi_yield_when_idle": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"})
        files = [f"t.{rank}.tacho" for rank in range(4)]
        self.export(*files)
        report = self.ranks(*files)
        tables = self.compare(report, within=1000)
        self.assertEqual({row["operation"] for row in tables["collective"]},
                         {"all_reduce", "all_gather", "broadcast", "reduce", "barrier", "all_to_all", "collective"})
        self.assertEqual(len(report["collectives"]), 17)
        # Split, copied and freed communicators of the same ranks stay apart.
        self.assertEqual(len({row["members"] for row in tables["collective"]}), 7)

    def test_open_mpi(self):
        self.mpi(("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"), "mpicc.openmpi")

    def test_mpich(self):
        self.mpi(("mpiexec.mpich",), "mpicc.mpich")

    def test_no_dataset(self):
        os.mkdir(self.folder / "data")
        self.one_sentence(self.run_command(TACHO, "ranks", "--sql", self.engine, "data", code=1), "no Parquet dataset")
        self.one_sentence(self.run_command(TACHO, "ranks", "--sql", self.engine, "nowhere", code=1), "nowhere")
        self.one_sentence(self.run_command(TACHO, "ranks", "--sql", self.engine, "data", "data", code=1), "one input")


class RanksSqlInClickHouse(RanksSql):
    engine = "clickhouse"


if __name__ == "__main__":
    harness.main()
