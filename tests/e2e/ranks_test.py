"""tacho ranks: who made whom wait, on four recorded ranks and on small ones made here with known faults."""
import base64
import gzip
import json
import re
import subprocess

import harness
import rank_sums
from harness import BUILD, DATA, TACHO

GEMM = "void gemm<float>(float*)"


def make_rank(rank, ranks=4, steps=6, delay=None, shift=0.0, drift=0.0, jump=None, markers="Optimizer.step#SGD.step", groups=1, per_step=3,
              metadata=True, first=0, kernel_name="ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", numbered=False):
    """torch.profiler's JSON of a rank that computes 1 ms before each of three all-reduces of 100 us a step, in the same rhythm
    as all others. `delay`: {(step, collective): (kind, us)} of this rank; the others wait for it: every rank knows `late`.
    `shift`, `drift`: of this rank's clock, us and a part of one; `jump`: (when, by how much), us."""
    events, correlation = [], 1
    mine = (delay or {}).get(rank, {})

    def stamp(t):
        return 5e9 + t + shift + drift * t + (jump[1] if jump and t >= jump[0] else 0)

    def add(cat, name, t, dur, tid, **args):
        events.append({"ph": "X", "cat": cat, "name": name, "pid": 0 if cat in ("kernel", "gpu_memcpy") else 4000 + rank, "tid": tid,
                       "ts": round(stamp(t), 3), "dur": round(dur, 3), "args": args})

    def launch(t, cat, name, start, dur, stream, **args):
        nonlocal correlation
        add("cuda_runtime", "cudaLaunchKernel", t, 5, 77, correlation=correlation)
        add(cat, name, start, dur, stream, correlation=correlation, device=0, context=1, stream=stream, **args)
        correlation += 1

    at = 1000.0
    for step in range(steps):
        for number in range(per_step):
            kind, late = mine.get((step, number), (None, 0))
            ready = at + 1000
            arrived = ready + late
            # The slowest rank decides when the collective ends.
            last = ready + max([0] + [us for of in (delay or {}).values() for where, (_, us) in of.items() if where == (step, number)])
            if kind == "kernels":
                for extra in range(10):
                    launch(at - 50, "kernel", GEMM, at + extra * late / 10, late / 10, 7)
                launch(at - 45, "kernel", GEMM, at + late, 1000, 7)
            elif kind == "kernel":
                launch(at - 50, "kernel", GEMM, at, 1000 + late, 7)
            elif kind == "copy":
                launch(at - 50, "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", at, late, 7, bytes=1 << 20)
                launch(at - 45, "kernel", GEMM, at + late, 1000, 7)
            elif kind == "host":
                add("cuda_runtime", "cudaEventSynchronize", at, late - 10, 77, correlation=0)
                launch(at + late - 6, "kernel", GEMM, at + late, 1000, 7)
            elif kind == "loader":
                add("user_annotation", "enumerate(DataLoader)#next", at, late - 10, 77)
                launch(at + late - 6, "kernel", GEMM, at + late, 1000, 7)
            else:
                launch(at - 50, "kernel", GEMM, at, 1000, 7)
            group = number % groups
            told = {"Collective name": "allreduce", "In msg nelems": 250_000 * (1 + number), "Out msg nelems": 250_000 * (1 + number),
                    "Group size": ranks, "dtype": "Float", "Process Group Name": str(group), "Process Group Description": "default_pg",
                    "Process Group Ranks": str(list(range(ranks)))} if metadata else {}
            if numbered:  # as torch.distributed counts: other things of a group count, too
                told["Seq"] = 100 + 3 * (step * per_step + number)
            if step * per_step + number >= first:
                launch(arrived - 20, "kernel", kernel_name, arrived, last + 100 - arrived, 9, **told)
            at = last + 100
        if markers:
            add("user_annotation", markers, at - 90, 30, 77)
    return {"baseTimeNanoseconds": 1790857026000000000, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks},
            "traceEvents": events}


def embedded(page):
    """The contents of a page written by `tacho view -o`, as text."""
    return gzip.decompress(base64.b64decode(re.search(r'id="tacho-data"[^>]*>([^<]*)<', page.read_text())[1])).decode("latin-1")


class Ranks(harness.Case):
    def make(self, ranks=4, **options):
        each = options.pop("each", {})
        folder = self.folder / "ranks"
        folder.mkdir(exist_ok=True)
        for rank in range(ranks):
            trace = make_rank(rank, ranks, **{**options, **each.get(rank, {})})
            (folder / f"rank{rank}.json").write_text(json.dumps(trace))
        return folder

    def ranks(self, *inputs):
        return json.loads(self.run_command(TACHO, "ranks", *inputs, "--output-format", "json").stdout)

    def text(self, *words):
        return " ".join(self.run_command(TACHO, "ranks", *words).stdout.decode().split())

    # The recording of four H200s.

    def test_recorded_ranks_have_the_known_stragglers(self):
        harness.need_data()
        report = self.ranks(DATA / "ranks4")
        self.assertEqual(report["steps_from"], "Optimizer.step")
        self.assertEqual([step["collectives"] for step in report["steps"]], [13] * 10)
        for step in report["steps"]:
            late = [c for c in report["collectives"] if c["step"] == step["step"]]
            self.assertEqual([c["operation"] for c in late], ["all_reduce"] * 12 + ["all_gather"])
            self.assertEqual(late[12]["last_rank"], 3)
            reduces = late[:12]
            if step["step"] in (5, 6):
                self.assertEqual({c["last_rank"] for c in reduces}, {2})
                self.assertEqual({c["cause"]["kind"] for c in reduces}, {"more kernels"})
                self.assertEqual({c["cause"]["kernels"] for c in reduces}, {30})
                self.assertEqual([c["cause"]["carried"] for c in reduces], [False] + [True] * 11)
                self.assertAlmostEqual(reduces[0]["spread_ns"] / 1e6, {5: 10.2, 6: 9.9}[step["step"]], delta=0.05)
                self.assertEqual((step["last_rank"], step["cause"]["kernels"]), (2, 30))
            else:
                self.assertEqual({c["last_rank"] for c in reduces}, {3})
                self.assertTrue(2.5e6 <= reduces[0]["spread_ns"] <= 5.1e6)
                self.assertEqual({c["cause"]["kind"] for c in reduces} - {"host", "began later"}, set())
                self.assertEqual((step["last_rank"], step["cause"]["kind"]), (3, "host"))
        # Most of what rank 3's host cost has no name: the headline says how much the largest named part is.
        waited = {}
        for collective in report["collectives"]:
            cause = collective["cause"]
            if collective["last_rank"] == 3 and cause["kind"] == "host":
                waited[cause.get("name")] = waited.get(cause.get("name"), 0) + collective["waited_ns"]
        self.assertEqual(max(waited, key=waited.get), None)
        named = {name: time for name, time in waited.items() if name}
        cause = report["stragglers"][0]["cause"]
        self.assertEqual(cause["part_name"], max(named, key=named.get))
        self.assertAlmostEqual(cause["part_percent"], 100 * max(named.values()) / sum(waited.values()), places=6)
        self.assertIn("Cause: the host launched late, 25 % of it in Optimizer.step#AdamW.step. Rank 2", self.text(DATA / "ranks4"))
        self.assertNotIn("?.", self.text(DATA / "ranks4" / "kineto_rank0.json.gz", DATA / "ranks4" / "kineto_rank1.json.gz"))
        self.assertFalse(any(rank["clock_corrected"] for rank in report["ranks"]))
        self.assertLess(report["clocks"]["residual_ns"], 10_000)
        for kind in report["kinds"]:
            self.assertAlmostEqual(kind["bus_gb_s"] / kind["algorithm_gb_s"], {"all_reduce": 1.5, "all_gather": 0.75}[kind["operation"]])

    def test_arrivals_and_steps_of_ranks_add_up(self):
        harness.need_data()
        output = self.run_command(TACHO, "ranks", DATA / "ranks4", "--output-format", "json", "--arrivals").stdout
        report = json.loads(output)
        self.assertNotIn("arrivals", self.ranks(DATA / "ranks4")["collectives"][0])
        # Against the kernels' own times in the files.
        nccl = []
        for rank in range(4):
            events = json.loads(gzip.open(DATA / "ranks4" / f"kineto_rank{rank}.json.gz").read())["traceEvents"]
            kernels = sorted((round(e["ts"] * 1000), round(e["dur"] * 1000)) for e in events if e.get("cat") == "kernel" and e["name"].startswith("nccl"))
            self.assertEqual(len(kernels), len(report["collectives"]))
            nccl.append(kernels)
        late = {}
        for number, collective in enumerate(report["collectives"]):
            self.assertEqual(collective["index"], number)
            starts = [nccl[rank][number][0] for rank in range(4)]
            self.assertEqual([rank for rank, *_ in collective["arrivals"]], [0, 1, 2, 3])
            for rank, after, waited, end in collective["arrivals"]:
                self.assertAlmostEqual(after, starts[rank] - min(starts), delta=2)
                self.assertAlmostEqual(waited, max(starts) - starts[rank], delta=2)
                self.assertAlmostEqual(end - after, nccl[rank][number][1], delta=2)
                key = rank, collective["step"]
                late[key] = max(late.get(key, 0), after)
            self.assertEqual(sum(waited for _, _, waited, _ in collective["arrivals"]), collective["waited_ns"])
        for rank in report["ranks"]:
            self.assertEqual(sum(step["waited_ns"] for step in rank["steps"]), rank["waited_ns"])
            self.assertEqual(sum(step["caused_ns"] for step in rank["steps"]), rank["caused_ns"])
            for step in rank["steps"]:
                self.assertEqual(step["late_ns"], late[rank["rank"], step["step"]])
                self.assertEqual(step["end_ns"] - step["begin_ns"], step["span_ns"])
        self.assertEqual(report["sentences"], [" ".join(line.split()) for line in report["sentences"]])
        text = self.text(DATA / "ranks4")
        for sentence in [*report["sentences"], report["clocks"]["text"]]:
            self.assertIn(sentence, text)

    def test_arrivals_are_for_programs(self):
        result = self.run_command(TACHO, "ranks", self.make(), "--arrivals", code=1)
        self.assertIn("--arrivals goes with --output-format json", result.stderr.decode())

    def test_recorded_sums_are_those_of_a_script(self):
        harness.need_data()
        report = self.ranks(DATA / "ranks4")
        script = [rank_sums.sums(DATA / "ranks4" / f"kineto_rank{rank}.json.gz") for rank in range(4)]
        for rank, sums in zip(report["ranks"], script):
            for name, value in sums.items():
                if name != "arrivals":
                    self.assertEqual(rank[name], value, name)
        self.assertEqual([(c["last_rank"], c["spread_ns"], c["waited_ns"], c["transfer_ns"]) for c in report["collectives"]],
                         rank_sums.waiting(script))
        sent = {(pair["from"], pair["to"]): pair["bytes"] for pair in report["bytes"]}
        expected = sum(c["message_bytes"] * (1.5 if c["operation"] == "all_reduce" else 0.75) for c in report["collectives"])
        self.assertEqual(sent, {(rank, (rank + 1) % 4): expected for rank in range(4)})

    def test_recorded_ranks_without_markers_have_the_same_steps(self):
        harness.need_data()
        for rank in range(4):
            trace = json.load(gzip.open(DATA / "ranks4" / f"kineto_rank{rank}.json.gz"))
            trace["traceEvents"] = [e for e in trace["traceEvents"]
                                    if e.get("cat") in ("kernel", "cuda_runtime", "cuda_driver", "gpu_memcpy", "gpu_memset")]
            (self.folder / f"rank{rank}.json").write_text(json.dumps(trace))
        report = self.ranks(self.folder)
        self.assertEqual(report["steps_from"], "periodicity")
        self.assertEqual([(s["collectives"], s["last_rank"]) for s in report["steps"]],
                         [(13, 2 if step in (5, 6) else 3) for step in range(10)])
        self.assertEqual({s["cause"]["kernels"] for s in report["steps"] if s["step"] in (5, 6)}, {30})

    def test_text_fits_80_columns_and_answers_first(self):
        harness.need_data()
        lines = self.run_command(TACHO, "ranks", DATA / "ranks4").stdout.decode().splitlines()
        self.assertLessEqual(max(map(len, lines)), 80)
        head = " ".join(lines[:8])
        self.assertIn("Rank 3 made them wait 292.85 ms", head)
        self.assertIn("Cause: 30 more kernels", head)
        same = self.run_command(TACHO, "report", "ranks", DATA / "ranks4").stdout.decode().splitlines()
        self.assertEqual(lines, same)

    # Planted faults.

    def test_planted_causes(self):
        planted = {"kernels": "more kernels", "kernel": "longer kernel", "copy": "copies", "host": "host", "loader": "host"}
        for kind, expected in planted.items():
            report = self.ranks(self.make(delay={2: {(3, 1): (kind, 800)}}))
            worst = max(report["collectives"], key=lambda c: c["waited_ns"])
            self.assertEqual((worst["step"], worst["number"], worst["last_rank"], worst["late_ns"]), (3, 10, 2, 800_000), kind)
            self.assertEqual(worst["cause"]["kind"], expected)
            self.assertEqual(worst["waited_ns"], 3 * 800_000)
            self.assertEqual(report["stragglers"][0]["rank"], 2)
            self.assertEqual(report["steps"][3]["last_rank"], 2)
            name = worst["cause"].get("name")
            self.assertEqual(name, {"kernels": GEMM, "kernel": GEMM, "copy": None, "host": "cudaEventSynchronize",
                                    "loader": "enumerate(DataLoader)#next"}[kind])
            if kind == "kernels":
                self.assertEqual(worst["cause"]["kernels"], 10)

    def test_critical_path_leads_through_the_late_rank(self):
        report = self.ranks(self.make(delay={1: {(2, 0): ("kernel", 500)}, 3: {(2, 2): ("copy", 900)}}))
        path = [(piece["rank"], piece["kind"], round(piece["duration_ns"] / 1000)) for piece in report["steps"][2]["path"]]
        stretches = [piece for piece in path if piece[1] == "stretch"]
        self.assertEqual((stretches[0], stretches[2]), ((1, "stretch", 1500), (3, "stretch", 1900)))
        self.assertEqual(sum(us for _, _, us in path), 1500 + 1000 + 1900 + 3 * 100)

    def test_no_rank_stands_out_where_each_is_late_once(self):
        delay = {rank: {(rank // 3, rank % 3): ("kernel", 500)} for rank in range(24)}
        self.assertIn("No rank stands out: they waited most for rank 0, and that is 4.2 % of all waiting.",
                      self.text(self.make(ranks=24, steps=8, delay=delay)))

    def test_steps_of_other_marks(self):
        for marker, origin in (("step", "ranges of the program"), ("iteration", "ranges of the program")):
            folder = self.make(markers=marker)
            self.assertEqual(self.ranks(folder)["steps_from"], origin)
        folder = self.make(markers=None)
        report = self.ranks(folder)
        self.assertEqual((report["steps_from"], len(report["steps"])), ("periodicity", 6))

    def test_steps_of_more_files_than_stay_open(self):
        # The first of many files sets the period for all; a later one that has steps of its own uses only these.
        report = self.ranks(self.make(ranks=70, markers=None, delay={66: {(3, 1): ("kernel", 300)}}))
        self.assertEqual((report["steps_from"], [step["collectives"] for step in report["steps"]]), ("periodicity", [3] * 6))
        self.assertEqual({len(rank["steps"]) for rank in report["ranks"]}, {6})
        self.assertEqual({(rank["kernels"], rank["collectives"]) for rank in report["ranks"]}, {(18, 18)})
        worst = max(report["steps"], key=lambda step: step["waited_ns"])
        self.assertEqual((worst["step"], worst["last_rank"], worst["waited_ns"]), (3, 66, 69 * 300_000))
        marked = self.ranks(self.make(ranks=70, markers=None, each={69: {"markers": "step"}}))
        self.assertEqual([len(rank["steps"]) for rank in marked["ranks"]], [0] * 69 + [5])

    def test_bus_bandwidth_is_compared_with_the_links_peak(self):
        harness.need_data()
        report = self.ranks(DATA / "ranks4")
        self.assertEqual({(kind["peak_gb_s"], kind["peak"]) for kind in report["kinds"]},
                         {(450, "Peak: 450 GB/s, what NVLink 4 of NVIDIA H200 carries in one direction, if the ranks are on one host.")})
        text = self.text(DATA / "ranks4")
        for kind in report["kinds"]:
            self.assertIn(f"{kind['bus_gb_s']:.2f} {kind['bus_gb_s'] / 4.5:.1f} %", text)
        self.assertIn(report["kinds"][0]["peak"], text)
        # Traces that name their hosts: one, two; a group within one of the two.
        maker = BUILD / "tests" / "nccl_ranks"
        for hosts, expected in ((1, {"5a": 450, "77": 450}), (2, {"5a": None, "77": 450})):
            folder = self.folder / f"hosts{hosts}"
            folder.mkdir()
            self.run_command(maker, folder, 4, hosts)
            kinds = [kind for kind in self.ranks(folder)["kinds"] if kind["bus_gb_s"] is not None]
            self.assertEqual({kind["group"]: kind["peak_gb_s"] for kind in kinds}, expected)
            of_all = next(kind["peak"] for kind in kinds if kind["group"] == "5a")
            self.assertEqual(of_all, ["Peak: 450 GB/s, what NVLink 4 of NVIDIA H200 carries in one direction.",
                                      "Peak: unknown; the traces do not tell the network between the ranks' hosts."][hosts - 1])
        # A GPU whose name does not reveal its links.
        folder = self.make()
        self.assertEqual({(kind["peak_gb_s"], kind["peak"]) for kind in self.ranks(folder)["kinds"]},
                         {(None, "Peak: unknown; the name GPU 0 does not tell its links.")})
        self.assertNotIn("Of peak", self.text(folder))

    def test_older_names_and_no_metadata(self):
        report = self.ranks(self.make(metadata=False, kernel_name="ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
                                      delay={0: {(1, 1): ("kernel", 300)}}))
        self.assertEqual({(c["operation"], c["message_bytes"], c["bus_gb_s"]) for c in report["collectives"]}, {("all_reduce", None, None)})
        self.assertEqual(max(report["collectives"], key=lambda c: c["late_ns"])["last_rank"], 0)

    # Clocks.

    def test_other_clocks_are_corrected(self):
        delay = {2: {(30, 1): ("kernel", 800)}}
        straight = self.ranks(self.make(steps=60, delay=delay))
        folder = self.make(steps=60, delay=delay, each={1: {"shift": 2_000_000.0, "drift": 50e-6}, 3: {"shift": -700.0}})
        report = self.ranks(folder)
        self.assertEqual([rank["clock_corrected"] for rank in report["ranks"]], [False, True, False, True])
        for a, b in zip(straight["collectives"], report["collectives"]):
            self.assertAlmostEqual(a["spread_ns"], b["spread_ns"], delta=report["clocks"]["residual_ns"] + 10)
        worst = max(report["collectives"], key=lambda c: c["waited_ns"])
        self.assertEqual((worst["last_rank"], worst["number"]), (2, 91))
        self.assertTrue(any("the clock of rank 1 seems to be" in remark for remark in report["remarks"]))
        self.assertIn("Clocks: 2 of 4 ranks corrected", self.text(folder))

    def merged_ends(self, folder, *more):
        """{rank: ends of its collectives} of the merged trace, and what merge said."""
        result = self.run_command(TACHO, "merge", folder, *more, "-o", "all.tacho", "--overwrite")
        rows = json.loads(self.run_command(
            TACHO, "query", "all.tacho", "SELECT p.rank, d.start + d.duration FROM tacho.dispatch d JOIN tacho.track t ON d.track = t.id JOIN tacho.process p "
            "ON t.process = p.id JOIN tacho.kernel k ON d.dim = k.id WHERE k.name LIKE 'nccl%' ORDER BY 1, 2", "--output-format", "json").stdout)["rows"]
        return [[end for rank, end in rows if rank == of] for of in range(4)], result.stderr.decode()

    def test_merge_recovers_offset_drift_and_step(self):
        # 3.2 s ahead, 50 ppm fast and, in the middle of 0.66 s, set on by 1.7 ms; rank 3 is set back.
        folder = self.make(steps=200, each={2: {"shift": 3_200_000.0, "drift": 50e-6, "jump": (330_000, 1700.0)},
                                            3: {"shift": -12_000.0, "jump": (500_000, -800.0)}})
        ends, said = self.merged_ends(folder)
        self.assertIn("rank2.json: its clock is aligned with that of", said)
        self.assertIn("2 pieces", said)
        self.assertNotIn("rank1.json", said)
        self.assertEqual({len(list_) for list_ in ends}, {600})
        stated = json.loads(self.run_command(TACHO, "query", "all.tacho", "SELECT text FROM tacho.note", "--output-format", "json").stdout)["rows"]
        for rank in (2, 3):
            residual = next(text for text, in stated if f"rank{rank}.json" in text).split("to within ")[1].split(" (")[0]
            number, unit = residual.split()
            limit = float(number) * {"ns": 1, "us": 1e3}[unit] + 10  # durations stay, and are 50 ppm off
            self.assertLess(limit, 20_000)
            far = sum(abs(a - b) > limit for a, b in zip(ends[0], ends[rank]))
            self.assertLessEqual(far, 30, f"rank {rank}: 95 of 100 lie within {limit} ns")
            self.assertLess(max(abs(a - b) for a, b in zip(ends[0], ends[rank])), 20_000)
        info = self.run_command(TACHO, "query", "all.tacho", "SELECT key, value FROM tacho.property WHERE key = 'clocks'", "--output-format", "json")
        self.assertIn("aligned by collectives to within", json.loads(info.stdout)["rows"][0][1])
        report = self.ranks("all.tacho")
        self.assertEqual([rank["rank"] for rank in report["ranks"]], [0, 1, 2, 3])
        self.assertEqual(len(report["collectives"]), 600)
        self.assertFalse(any(rank["clock_corrected"] for rank in report["ranks"]))

    def test_merge_without_matching_calls_says_unaligned(self):
        folder = self.make(kernel_name="no_collective", metadata=False)
        _, said = self.merged_ends(folder)
        self.assertEqual(said.count("unaligned: it shares no collectives or messages with"), 3)
        rows = json.loads(self.run_command(TACHO, "query", "all.tacho", "SELECT value FROM tacho.property WHERE key = 'clocks'",
                                           "--output-format", "json").stdout)["rows"]
        self.assertIn("unaligned: 3 of 3 other traces", rows[0][0])

    def test_unaligned_stands_in_every_output(self):
        folder = self.make(kernel_name="no_collective", metadata=False)
        self.merged_ends(folder)
        sentence = ("unaligned: 3 of 3 other traces are tied to the first one's clock by no collective or message; times of different "
                    "traces compare only as far as their clocks agree")
        aligned = self.folder / "aligned"
        aligned.mkdir()
        for rank in range(2):
            (aligned / f"rank{rank}.json").write_text(json.dumps(make_rank(rank, 2)))
        self.run_command(TACHO, "merge", aligned, "-o", "aligned.tacho")
        self.run_command(TACHO, "merge", "all.tacho", "aligned.tacho", "-o", "again.tacho")  # a merge of a merge
        for number, words in enumerate((("stats", "FILE"), ("stats", "FILE", "--by", "rank"), ("stats", "FILE", "--by", "operator"),
                                        ("query", "FILE", "SELECT count(*) FROM tacho.dispatch"), ("query", "FILE", "--schema"),
                                        ("report", "findings", "FILE"), ("report", "gaps", "FILE"), ("flame", "FILE", "-o", "OUT.html"),
                                        ("export", "FILE", "-f", "pftrace", "-o", "OUT.pftrace"), ("convert", "FILE", "OUT.tacho"),
                                        ("trim", "FILE", "OUT.tacho", "--start", "0%", "--end", "50%"),
                                        ("diff", "FILE", "aligned.tacho"), ("diff", "aligned.tacho", "FILE"), ("info", "FILE"), ("top", "FILE"),
                                        ("view", "FILE", "-o", "OUT.page.html"))):
            for file in ("all.tacho", "again.tacho", "aligned.tacho"):
                command = [word.replace("FILE", file).replace("OUT", f"out{number}{file}") for word in words]
                result = self.run_command(TACHO, *command, code=None, stdin=subprocess.DEVNULL)
                told = result.stderr.decode().count(": unaligned: ")
                self.assertEqual(told, 0 if {"all.tacho", "again.tacho"}.isdisjoint(command) else 1, (command, result.stderr))
                if file == "all.tacho" and told:
                    self.assertIn(f"tacho: all.tacho: {sentence}\n", result.stderr.decode())
        # Files made of it say so, too; and the page shows it.
        made = self.run_command(TACHO, "stats", next(self.folder.glob("out*all.tacho.tacho")))
        self.assertIn(sentence, made.stderr.decode())
        for file, shown in (("all.tacho", True), ("aligned.tacho", False)):
            self.assertEqual(sentence in embedded(next(self.folder.glob(f"out*{file}.page.html"))), shown)
        # A folder of ranks is merged for the page.
        self.run_command(TACHO, "view", folder, "-o", "folder.html")
        self.assertIn(sentence, embedded(self.folder / "folder.html"))

    def test_files_and_ranks_are_told_apart_where_no_collective_is_found(self):
        self.merged_ends(self.make(kernel_name="no_collective", metadata=False))
        said = self.bad("all.tacho").stderr.decode()
        self.assertIn("all.tacho: no collective among the 144 kernels of 4 ranks", said)
        self.assertIn("rank0.json and 3 more files: no collective among the 144 kernels of 4 ranks", self.bad(self.folder / "ranks").stderr.decode())

    def test_merge_of_equal_clocks_moves_nothing(self):
        folder = self.make()
        ends, said = self.merged_ends(folder)
        self.assertEqual(ends[0], ends[3])
        self.assertEqual(ends[0][0], 5_000_002_100_000)
        self.assertNotIn("aligned with", said)

    # Bad input.

    def bad(self, *inputs):
        return self.run_command(TACHO, "ranks", *inputs, code=1)

    def test_no_collective_is_an_error_that_says_what_was_looked_for(self):
        result = self.bad(self.make(kernel_name="my_all_reduce", metadata=False))
        self.one_sentence(result, "no collective among the 144 kernels of 4 ranks", "nccl*", "rccl*", "Collective name")

    def test_a_folder_without_traces(self):
        (self.folder / "notes.txt").write_text("x")
        self.one_sentence(self.bad(self.folder), "no trace lies in this folder (1 other file)")
        self.one_sentence(self.bad(self.folder / "missing"), "missing")

    def test_a_missing_rank(self):
        folder = self.make()
        (folder / "rank2.json").unlink()
        report = self.ranks(folder)
        self.assertEqual(report["missing_ranks"], [2])
        self.assertEqual({c["ranks"] for c in report["collectives"]}, {3})
        self.assertIn("rank 2 has no file", self.text(folder))

    def test_a_rank_twice(self):
        folder = self.make()
        (folder / "rank2_copy.json").write_bytes((folder / "rank2.json").read_bytes())
        report = self.ranks(folder)
        self.assertEqual(len(report["ranks"]), 4)
        self.assertTrue(any("rank2.json holds the same recording" in remark for remark in report["remarks"]), report["remarks"])
        # Another recording of that rank, as a profiler with several windows writes it.
        (folder / "rank2_copy.json").unlink()
        later = json.loads((folder / "rank2.json").read_text())
        for event in later["traceEvents"]:
            if event.get("cat") == "kernel":
                event["dur"] += 0.5
        (folder / "rank2_later.json").write_text(json.dumps(later))
        report = self.ranks(folder)
        self.assertEqual(len(report["ranks"]), 4)
        self.assertTrue(any("rank 2 has a file already" in remark for remark in report["remarks"]), report["remarks"])

    def test_a_half_written_rank(self):
        folder = self.make()
        path = folder / "rank1.json"
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        report = self.ranks(folder)
        self.assertEqual([rank["rank"] for rank in report["ranks"]], [0, 2, 3])
        self.assertTrue(any(remark.startswith("left out: ") and "rank1.json" in remark for remark in report["remarks"]))

    def test_a_rank_that_died(self):
        folder = self.make()
        (folder / "rank3.json").write_text(json.dumps(make_rank(3, 4, steps=4)))
        report = self.ranks(folder)
        self.assertEqual(sum(not c["complete"] for c in report["collectives"]), 6)
        self.assertTrue(any("6 collectives are on some ranks only" in remark for remark in report["remarks"]), report["remarks"])

    def test_ranks_that_disagree(self):
        folder = self.make(each={1: {"first": 1}})
        report = self.ranks(folder)
        self.assertEqual(report["collectives"], [c for c in report["collectives"] if not c["complete"]])
        self.assertTrue(any("the ranks disagree" in remark for remark in report["remarks"]), report["remarks"])

    def test_ranks_that_were_cut_meet_by_the_programs_numbers(self):
        late = {"delay": {2: {(step, 0): ("kernel", 700) for step in range(2, 6)}}}
        whole = self.ranks(self.make(numbered=True, **late))
        report = self.ranks(self.make(numbered=True, **late, each={1: {"first": 1}, 3: {"first": 2}}))
        self.assertFalse(any("the ranks disagree" in remark for remark in report["remarks"]), report["remarks"])
        complete = [c for c in report["collectives"] if c["complete"]]
        self.assertEqual(len(complete), len(whole["collectives"]) - 2)
        self.assertEqual([(c["last_rank"], c["spread_ns"], c["number"]) for c in complete],
                         [(c["last_rank"], c["spread_ns"], c["number"]) for c in whole["collectives"][2:]])
        # A rank without numbers leaves only the order.
        report = self.ranks(self.make(numbered=True, each={1: {"first": 1, "numbered": False}}))
        self.assertTrue(any("the ranks disagree" in remark for remark in report["remarks"]), report["remarks"])

    def test_several_groups_and_one_that_ends(self):
        folder = self.make(groups=3, per_step=3)
        report = self.ranks(folder)
        self.assertEqual(sorted((k["group"], k["count"]) for k in report["kinds"]), [("0", 6), ("1", 6), ("2", 6)])
        self.assertEqual({c["complete"] for c in report["collectives"]}, {True})

    def test_one_of_each_thing(self):
        """Nouns and verbs have the number of what they count."""
        span = {"ph": "X", "name": "k", "cat": "kernel", "ts": 10, "dur": 5, "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7}}
        (self.folder / "one.json").write_text(json.dumps([span]))
        self.assertIn("no collective among the 1 kernel of 1 rank, and", self.bad("one.json").stderr.decode())
        all_reduce = dict(span, name="ncclDevKernel_AllReduce_Sum_f32", ts=20)
        (self.folder / "two.json").write_text(json.dumps([span, all_reduce]))
        self.assertIn("1 rank, 0 steps, 1 collective.", self.text("two.json"))

    def test_one_rank_and_a_step_that_is_not_there(self):
        folder = self.make()
        self.assertIn("holds one rank only", self.text(folder / "rank0.json"))
        self.one_sentence(self.bad(folder, "--step", "6"), "--step 6: there is no such step; steps go from 0 to 5")

    def test_ten_thousand_other_files(self):
        folder = self.make()
        for i in range(10_000):
            (folder / f"worker-{i}.log").touch()
        report = self.ranks(folder)
        self.assertEqual(len(report["ranks"]), 4)
        self.assertTrue(any("10000 files whose name is no trace's were left out" in remark for remark in report["remarks"]))

    def test_ten_thousand_ranks(self):
        # Each with two collectives; one is cut off, one comes twice, one is missing, one is late.
        folder = self.folder / "ranks"
        folder.mkdir()
        plain = json.dumps(make_rank(0, 10_000, steps=1, per_step=2, metadata=False, markers=None, delay={777: {(0, 1): ("kernel", 500)}}))
        late = json.dumps(make_rank(777, 10_000, steps=1, per_step=2, metadata=False, markers=None, delay={777: {(0, 1): ("kernel", 500)}}))
        for rank in range(10_000):
            text = late if rank == 777 else plain.replace('"rank": 0', f'"rank": {rank}', 1)
            (folder / f"rank{rank}.json").write_text(text[:900] if rank == 5 else text)
        (folder / "rank6.json").unlink()
        (folder / "rank7_copy.json").write_text((folder / "rank7.json").read_text())
        report = json.loads(self.run_command(TACHO, "ranks", folder, "--output-format", "json", timeout=300).stdout)
        self.assertEqual([rank["rank"] for rank in report["ranks"]], [rank for rank in range(10_000) if rank not in (5, 6)])
        self.assertEqual([(c["ranks"], c["complete"]) for c in report["collectives"]], [(9_998, True)] * 2)
        self.assertEqual((report["missing_ranks"], report["stragglers"][0]["rank"]), ([5, 6], 777))
        for part in ("rank5.json", "rank7.json holds the same recording", "ranks 5, 6 have no file"):
            self.assertTrue(any(part in remark for remark in report["remarks"]), report["remarks"])

    def test_half_written_tacho_files_and_another_program(self):
        folder, other = self.folder / "ranks", self.folder / "other"
        for place, words in ((folder, ()), (other, ("evaluate",))):
            place.mkdir()
            self.run_command(BUILD / "tests" / "nccl_ranks", place, 4, 1, *words)
        (other / "rank2.tacho").replace(folder / "rank2.tacho")
        report = self.ranks(folder)
        self.assertIn("the traces are of different programs (evaluate, train): do they belong to one job?", report["remarks"])
        self.assertEqual(len(report["ranks"]), 4)
        # The end of a file lists its contents: a file without it, and one without anything.
        whole = (folder / "rank1.tacho").read_bytes()
        (folder / "rank1.tacho").write_bytes(whole[:-200])
        (folder / "rank2.tacho").write_bytes(b"")
        report = self.ranks(folder)
        self.assertTrue(any(remark.startswith("left out: ") and "rank2.tacho" in remark for remark in report["remarks"]), report["remarks"])
        self.assertTrue(any("rank1.tacho" in remark for remark in report["remarks"]), report["remarks"])
        self.assertLessEqual({0, 3}, {rank["rank"] for rank in report["ranks"]})
        self.assertTrue(report["collectives"])

    def test_ranks_of_tacho_files_and_of_names(self):
        folder = self.make(delay={1: {(2, 0): ("kernel", 500)}})
        for rank in range(4):
            (self.folder / str(rank)).mkdir()
            self.run_command(TACHO, "convert", folder / f"rank{rank}.json", self.folder / str(rank) / "trace.tacho")
            (folder / f"rank{rank}.json").unlink()
        report = self.ranks(self.folder)
        self.assertEqual([rank["rank"] for rank in report["ranks"]], [0, 1, 2, 3])
        worst = max(report["collectives"], key=lambda c: c["waited_ns"])
        self.assertEqual((worst["last_rank"], worst["message_bytes"]), (1, 1_000_000))


if __name__ == "__main__":
    harness.main()
