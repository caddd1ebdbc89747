#!/usr/bin/env python3
"""NVTX's extended payloads and counters: recorded, in SQL, and in the files that tacho writes."""
import json
import sqlite3

import harness
from harness import TACHO
from proto import Perfetto
from view_test import Server

OWN, REAL = harness.TARGETS / "nvtx_extension", harness.TARGETS / "nvtx_extension_real"
STEPS = [{"step": -1, "loss": 0.0, "phase": "warm \"up\"", "state": "idle", "tag": "abc", "shape[0]": 3, "shape[1]": 4, "inner.a": 7, "inner.b": 1.5,
          "rows": 12345678901},
         # Its text is a pointer to nowhere.
         {"step": 0, "loss": 0.5, "phase": "", "state": "busy", "tag": "abc", "shape[0]": 3, "shape[1]": 4, "inner.a": 7, "inner.b": 1.5, "rows": 12345678901}]
NOTES = ("fields of NVTX payloads that tacho does not read", "layouts of NVTX payloads that tacho does not read", "NVTX payloads whose layout is not known",
         "deferred NVTX events", "samples of NVTX counters without a time", "samples of NVTX counters that the program could not get",
         "samples of NVTX counters that nobody registered")


class NvtxExtension(harness.Case):
    def rows(self, sql):
        return json.loads(self.run_command(TACHO, "query", "t.tacho", "--dialect", "tacho", "--output-format", "json", sql).stdout)["rows"]

    def readings(self, name):
        return self.rows("SELECT r.start, r.value FROM reading r JOIN track t ON t.id = r.track JOIN counter c ON c.id = t.counter "
                         f"WHERE c.name = '{name}' ORDER BY r.start")

    def check(self, program):
        done = self.trace(program, options=("--overwrite",))
        self.assertIn(b"done", done.stdout)
        markers = self.rows("SELECT l.name, l.kind, m.fields, l.domain FROM marker m JOIN label l ON l.id = m.dim ORDER BY m.start")
        told = [(name, kind, json.loads(fields) if fields else None) for name, kind, fields, _ in markers]
        self.assertEqual([fields for name, _, fields in told if name == "train step"], STEPS)
        self.assertEqual([(kind, fields) for name, kind, fields in told if name == "saved"],
                         [("mark", {"left": -3}), ("push/pop", {"left": -3}), ("start/stop", {"left": -3, "rows": 12345678901})])
        self.assertIn(("", "mark", {"value 1": 2.25}), [(name or "", kind, fields) for name, kind, fields in told])
        self.assertEqual({domain for *_, domain in markers}, {"model"})
        # Counters.
        depth = [value for _, value in self.readings("queue depth")]
        self.assertEqual(depth, [1, 4, 9, 16, 25, 25, 0])
        self.assertEqual([value for _, value in self.readings("loss")], [0.125])
        used, unused = self.readings("memory.used"), self.readings("memory.unused")
        self.assertEqual([value / 1024 for _, value in used], [20, 21, 22, 23, 20, 21, 22, 23, 10], "older samples come first; KiB are bytes")
        self.assertEqual([value for _, value in unused], [80, 79, 78, 77, 80, 79, 78, 77, 90])
        for times, apart in ((used[0:4], 2_000_000), (used[4:8], 1_000_000)):
            for (before, _), (after, _) in zip(times, times[1:]):
                self.assertAlmostEqual(after - before, apart, delta=20_000)
        self.assertAlmostEqual(used[8][0] - used[7][0], 10_000_000, delta=9_000_000)
        watts = self.readings("power.watts")
        self.assertEqual([value for _, value in watts], [99.5, 101])
        self.assertAlmostEqual(watts[1][0] - watts[0][0], 10_000_000, delta=20_000)
        self.assertEqual(self.rows("SELECT name, unit, text FROM counter WHERE name LIKE 'memory.used'"), [["memory.used", "B", "of the test"]])
        # What is not there is counted.
        notes = " ".join(text for (text,) in self.rows("SELECT text FROM note"))
        for sentence in NOTES:
            self.assertIn(sentence, notes)

    def exports(self):
        self.run_command(TACHO, "export", "t.tacho", "-f", "json,pftrace,nsys-sqlite", "-d", "out")
        events = json.loads((self.folder / "out/t.json").read_text())["traceEvents"]
        self.assertEqual([event["args"]["fields"] for event in events if event.get("name") == "train step"], STEPS)
        depth = [list(event["args"].values()) for event in events if event["ph"] == "C" and "queue depth" in event["name"]]
        self.assertEqual(depth, [[value] for value in (1, 4, 9, 16, 25, 25, 0)])
        counters = Perfetto(self.folder / "out/t.pftrace")
        (name,) = [name for name in counters.counters if "queue depth" in name]
        self.assertEqual(counters.counters[name], [1, 4, 9, 16, 25, 25, 0])
        self.assertIn("fields", counters.annotations)
        with sqlite3.connect(self.folder / "out/t.sqlite") as base:
            texts = base.execute("SELECT jsonText FROM NVTX_EVENTS WHERE text = 'train step' ORDER BY start").fetchall()
            self.assertEqual([json.loads(text) for (text,) in texts], STEPS)
            self.assertEqual(base.execute("SELECT DISTINCT d.text FROM NVTX_EVENTS n JOIN NVTX_EVENTS d ON d.domainId = n.domainId AND d.eventType = 75 "
                                          "WHERE n.text = 'train step'").fetchall(), [("model",)])
        # The timeline has the counters as lines with their unit.
        server = Server(self.folder / "t.tacho")
        self.addCleanup(server.stop)
        lines = {track["name"]: track for track in server.ready()["runs"][0]["tracks"]}
        self.assertIn("model: queue depth", lines)
        self.assertEqual(lines["model: memory.used"]["unit"], "B")

    def test_our_own_declarations(self):
        self.check(OWN)
        self.exports()

    def test_the_real_headers(self):
        if not REAL.exists():
            self.skipTest("no nvtx3/nvToolsExtCounters.h where this was built")
        self.check(REAL)

    def test_without_a_profiler(self):
        self.assertEqual(self.run_command(OWN).stdout, b"done\n")

    def test_markers_switched_off(self):
        self.trace(OWN, options=("--kernel-trace",))
        self.assertEqual(self.rows("SELECT count(*) FROM reading r JOIN track t ON t.id = r.track WHERE t.category = 'program counter'"), [[0]])
        self.assertEqual(self.rows("SELECT count(*) FROM marker"), [[0]])


if __name__ == "__main__":
    harness.main()
