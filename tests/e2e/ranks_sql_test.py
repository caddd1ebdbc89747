"""tacho ranks --sql: the Parquet dataset and the printed SQL give, in DuckDB and in ClickHouse, the tables of tacho ranks."""
import json
import os
import re

import engines
import harness
from harness import DATA, TACHO
from ranks_test import make_rank

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

    def compare(self, report):
        """With what tacho ranks answers of the same files, whose clocks it did not have to correct."""
        tables = self.tables()
        self.assertFalse(any(rank["clock_corrected"] for rank in report["ranks"]))
        columns = ("span_ns", "busy_ns", "idle_ns", "compute_ns", "communication_ns", "exposed_communication_ns", "overlap_ns", "copies_ns",
                   "exposed_copies_ns")
        self.assertEqual([[number(row[name]) for name in ("rank", *columns)] for row in tables["rank_time"]],
                         [[rank["rank"], *(rank[name] for name in columns)] for rank in report["ranks"]])
        self.assertEqual([(number(row["rank"]), number(row["last_in"]), number(row["caused_ns"])) for row in tables["straggler"]],
                         [(one["rank"], one["last_in"], one["waited_ns"]) for one in report["stragglers"]])
        self.assertAlmostEqual(sum(number(row["percent_of_waiting"]) for row in tables["straggler"]), 100)
        columns = ("last_rank", "spread_ns", "late_ns", "waited_ns", "transfer_ns", "ranks")
        def key(row):
            return (row.get("group", row.get("group_name")), number(row["number"]), row["operation"])
        expected = {key(one): one for one in report["collectives"]}
        self.assertEqual({key(row): [number(row[name]) for name in columns] for row in tables["collective"]},
                         {where: [one[name] for name in columns] for where, one in expected.items()})
        for row in tables["collective"]:
            one = expected[key(row)]
            self.assertEqual(number(row["message_bytes"]), one["message_bytes"] or 0)
            self.assertEqual(str(row["complete"]).lower() in ("1", "true"), one["complete"])
            for name in ("algorithm_gb_s", "bus_gb_s"):
                self.assertEqual(row[name] is None, one[name] is None, (row, one))
                if one[name] is not None:
                    self.assertAlmostEqual(number(row[name]), one[name])
        self.assertEqual(sorted((row["operation"], number(row["message_bytes"]), number(row["collectives"]), number(row["median_spread_ns"]),
                                 number(row["median_transfer_ns"]), number(row["all_waited_ns"])) for row in tables["kind_of_collective"]),
                         sorted((kind["operation"], kind["message_bytes"], kind["count"], kind["median_spread_ns"], kind["median_transfer_ns"],
                                 kind["waited_ns"]) for kind in report["kinds"]))
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

    def test_no_dataset(self):
        os.mkdir(self.folder / "data")
        self.one_sentence(self.run_command(TACHO, "ranks", "--sql", self.engine, "data", code=1), "no Parquet dataset")
        self.one_sentence(self.run_command(TACHO, "ranks", "--sql", self.engine, "nowhere", code=1), "nowhere")
        self.one_sentence(self.run_command(TACHO, "ranks", "--sql", self.engine, "data", "data", code=1), "one input")


class RanksSqlInClickHouse(RanksSql):
    engine = "clickhouse"


if __name__ == "__main__":
    harness.main()
