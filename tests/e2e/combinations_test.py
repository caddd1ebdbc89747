"""Formats x tables: each row of a recording is in the export or counted as left out. Pairs of options of `tacho trace`: each works or
is refused before the program starts; a run tries a quarter of them (TACHO_ALL_PAIRS=1: all)."""
import concurrent.futures
import itertools
import json
import os
import re
import time
import unittest

import engines
import harness
from harness import EXAMPLES, TACHO, TARGETS

# What a format gives back as something else, by the docs: stack samples of JSON are marks, counter values are readings, a folder
# of stacks holds no rows at all. rpd writes one reading for a run of equal values. nsys has no marks: they are ranges of no length.
NOUNS = {"dispatch": "kernel", "copy": "cop(y|ies)", "fill": "fill", "allocation": "allocation", "api": "API call", "marker": "marker",
         "sync": "wait", "overhead": "records? of overhead", "sample": "call-stack sample", "reading": "readings? of telemetry",
         "counter_value": "counter value", "message": "MPI message"}
BECOMES = {("json", "sample"): "marker", ("json", "counter_value"): "reading"}
FEWER = {("rpd", "reading")}
FILES = {"json": "o.json", "pftrace": "o.pftrace", "rocprofv3": "o_results.json", "rpd": "o.rpd", "rocpd": "o.db", "nsys-sqlite": "o.sqlite",
         "otlp": "o.otlp.jsonl", "csv": None, "parquet": None}
# The metrics of OpenTelemetry that count rows; readings of telemetry are points of their own, stack samples lie in a profile.
METRICS = {"tacho.gpu.kernel.duration": "dispatch", "tacho.gpu.copy.duration": "copy", "tacho.gpu.fill.duration": "fill",
           "tacho.allocation.duration": "allocation", "tacho.api.duration": "api", "tacho.range.duration": "marker",
           "tacho.sync.duration": "sync", "tacho.overhead.duration": "overhead"}

# What a run may be asked for, one by one: each selected table is in every format that has a place for it.
DOMAINS = {"dispatch": ["--kernel-trace"], "copy": ["--memory-copy-trace"], "allocation": ["--memory-allocation-trace"],
           "api": ["--runtime-trace"], "marker": ["--marker-trace"], "sample": ["--kernel-trace", "--sampler", "timer"],
           "reading": ["--kernel-trace", "--telemetry", "cpu", "--telemetry-hz", "100"]}

# Options of `tacho trace` with a value each, and what another one needs to have an effect.
OPTIONS = [["-f", "csv"], ["-f", "json"], ["-f", "pftrace"], ["-f", "rocprofv3"], ["-f", "rpd"], ["-f", "rocpd"], ["-f", "folded"],
           ["-f", "speedscope"], ["-f", "nsys-sqlite"], ["-f", "otlp"], ["-f", "parquet"], ["-f", "tacho"], ["-o", "x.json"], ["-o", "run1"], ["--rpd-schema", "3"], ["--overwrite"], ["--quiet"],
           ["--kernel-trace"], ["--memory-copy-trace"], ["--memory-allocation-trace"], ["--runtime-trace"], ["--marker-trace"],
           ["--sys-trace"], ["--api-args"], ["--kernel-include", "x"], ["--kernel-exclude", "x"], ["--driver-trace"], ["--sync-trace"],
           ["--all-api-calls"], ["--hsa-trace"], ["--graph-trace", "node"], ["--sampler", "timer"], ["--sample-hz", "50"],
           ["--sample-clock", "wall"], ["--sample-stack", "4096"], ["--no-launch-stacks"], ["--telemetry", "cpu"], ["--telemetry-hz", "5"],
           ["--start-paused"], ["--delay", "0.01"], ["--duration", "0.1"], ["--start-trigger", "marker:x"], ["--stop-trigger", "marker:x"],
           ["--max-size", "1M"], ["--ring", "1M"], ["--aggregate"], ["--pool-size", "32M"], ["--follow"], ["--torch-trace"],
           ["--torch-shapes"], ["--torch-shapes=all"], ["--memory"], ["--memory-keep", "1s"], ["--amd-source", "hsa"], ["--yield-to-app"], ["--cupti-clock"],
           ["--cupti-device-buffers", "4"], ["--device-counters", "SQ_WAVES"]]


class Combinations(harness.Case):
    def rows(self, file, folder=None):
        """table -> rows"""
        query = " union all ".join(f"select '{table}' as name, count(*) as n from tacho.{table}" for table in NOUNS)
        answer = self.run_command(TACHO, "query", file, query, "--output-format", "csv", cwd=folder or self.folder)
        lines = [line.replace('"', "").split(",") for line in answer.stdout.decode().split()[1:]]
        return {name: int(count) for name, count in lines}

    def rows_of_parquet(self, folder):
        tables = {path.name.removeprefix("table="): path for path in folder.glob("run=*/host=*/rank=*/table=*")}
        counts = dict.fromkeys(NOUNS, 0)
        for table, path in tables.items():
            if table in NOUNS:
                counts[table] = int(engines.run("duckdb", f"SELECT count(*) AS n FROM read_parquet('{path}/*.parquet')")[0][0]["n"])
        return counts

    def rows_of_otlp(self, file, held):
        """Rows in the histograms. What has no end is in none, and said. otlp_test.py looks at readings and stacks."""
        counts = {name: held[name] if name in ("reading", "sample") else 0 for name in NOUNS}
        for line in file.read_text().splitlines():
            for resource in json.loads(line)["resourceMetrics"]:
                for metric in (metric for scope in resource["scopeMetrics"] for metric in scope["metrics"]):
                    if metric["name"] in METRICS:
                        counts[METRICS[metric["name"]]] += sum(int(point["count"]) for point in metric["histogram"]["dataPoints"])
        return counts

    def check_formats(self, recording):
        held = self.rows(recording)
        for name, file in FILES.items():
            with self.subTest(recording=recording, format=name):
                place = self.folder / f"{recording}.{name}"
                place.mkdir()
                target = ["-d", "."] if file is None else ["-o", file]
                env = {"TACHO_DUCKDB": str(engines.library("duckdb"))} if name == "parquet" else {}
                said = self.run_command(TACHO, "export", f"../{recording}", "-f", name, *target, cwd=place, env=env).stderr.decode()
                back = self.rows_of_parquet(place) if name == "parquet" else \
                    self.rows_of_otlp(place / file, held) if name == "otlp" else self.rows(file or ".", place)
                wanted = dict.fromkeys(NOUNS, 0)
                for table, count in held.items():
                    left = re.search(rf"-f {name} has no place for .*?\b(\d+) {NOUNS[table]}", said)
                    if left:
                        self.assertEqual(int(left[1]), count, f"{table}: {said}")
                        self.assertEqual(back[table] if table not in BECOMES.values() else 0, 0, f"{table} is there: {said}")
                    else:
                        wanted[BECOMES.get((name, table), table)] += count
                endless = re.search(r"\b(\d+) \w+ (?:has|have) no known duration", " ".join(said.split()))
                if endless:  # of an event table or several
                    self.assertEqual(sum(wanted.values()) - sum(back.values()), int(endless[1]), said)
                    continue
                for table, count in wanted.items():
                    if (name, table) in FEWER:
                        self.assertTrue(0 < back[table] <= count or count == 0, f"{table}: {back[table]} of {count}")
                    else:
                        self.assertEqual(back[table], count, f"{table}: {said}")

    def test_every_row_is_in_the_export_or_counted(self):
        self.trace(TARGETS / "opencl_cases", "copies", options=("--sys-trace", "--sampler", "timer", "--telemetry", "cpu", "--telemetry-hz", "100"))
        self.check_formats("t.tacho")

    def test_every_domain_alone_is_in_every_format(self):
        for table, options in DOMAINS.items():
            self.trace(TARGETS / "opencl_steps", "--steps", "4", options=options, output=f"{table}.tacho")
            held = self.rows(f"{table}.tacho")
            self.assertGreater(held[table] + (held["fill"] if table == "copy" else 0), 0, held)
            self.check_formats(f"{table}.tacho")

    def test_every_counter_value_is_in_the_export_or_counted(self):
        self.run_command(harness.BUILD / "personalities" / "rocprofv3", "--kernel-trace", "--pmc", "V_INST", "--keep-trace", "p.tacho", "--",
                         EXAMPLES / "vcopy", "-n", "4096", "-b", "256", "-i", "3", timeout=300)
        self.check_formats("p.tacho")

    def test_every_pair_of_options_works_or_is_refused_before_the_start(self):
        pairs = list(itertools.combinations(OPTIONS, 2))
        if os.environ.get("TACHO_ALL_PAIRS") != "1":
            pairs = pairs[int(time.time()) // 86400 % 4::4]  # the day's quarter

        def attempt(at):
            folder = self.folder / str(at)
            folder.mkdir()
            words = pairs[at][0] + pairs[at][1]
            result = self.run_command(TACHO, "trace", *words, "--", "sh", "-c", "touch ran", code=None, cwd=folder)
            ran, said = (folder / "ran").exists(), result.stderr.decode()
            if ran and result.returncode != 0:
                return f"{words}: {result.returncode} after the run: {said}"
            if not ran and (result.returncode != 125 or len(said.strip().splitlines()) != 1):
                return f"{words}: {result.returncode}: not one sentence: {said}"
            if ran and not [path for path in folder.iterdir() if path.name != "ran"] and "there is no" not in said \
                    and "nothing" not in said:
                return f"{words}: no file and no word: {said}"
            return None

        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            wrong = [sentence for sentence in pool.map(attempt, range(len(pairs))) if sentence]
        self.assertEqual(wrong, [], "\n".join(wrong))


if __name__ == "__main__":
    unittest.main()
