"""Whose work it is survives every format that tacho writes: each process's rank, host and name, and which device its work is on."""
import json

import harness
from harness import BUILD, DATA, TACHO

# What a folder or file of each format is called. Processes that did nothing, or have no pid, have no place in some.
FORMATS = {"csv": "", "json": "*.json", "pftrace": "*.pftrace", "rocprofv3": "*_results.json", "rpd": "*.rpd", "rocpd": "*.db", "nsys-sqlite": "*.sqlite"}


class Whose(harness.Case):
    def query(self, path, statement):
        answer = self.run_command(TACHO, "query", path, statement, "--dialect", "tacho", "--output-format", "csv", timeout=120)
        return answer.stdout.decode().splitlines()[1:]

    def facts(self, path):
        """The processes with a pid, and whose kernels ran where."""
        processes = self.query(path, "SELECT pid, rank, host, name, run FROM process WHERE pid > 0 ORDER BY rank, run, host, pid")
        devices = self.query(path, 'SELECT "index", name, vendor, architecture, uuid, kind FROM device ORDER BY 1, 2')
        kernels = self.query(path, 'SELECT p.pid, p.rank, p.host, p.run, v."index", v.name AS device, count(*) AS n, sum(d.duration) AS ns '
                                   "FROM dispatch d JOIN track t ON t.id = d.track JOIN process p ON p.id = t.process "
                                   "JOIN device v ON v.id = t.device GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 2, 4, 3, 1, 5")
        return {"processes": processes, "devices": devices, "kernels": kernels}

    def check(self, trace):
        """Reads each format back, and writes and reads what was read once more."""
        wanted = self.facts(trace)
        self.assertGreater(len(wanted["kernels"]), 1, "one process shows nothing")
        for form, pattern in FORMATS.items():
            source = trace
            for times in ("once", "twice"):
                folder = self.folder / f"{form}-{times}"
                self.run_command(TACHO, "export", source, "-f", form, "-d", folder, timeout=120)
                [source] = folder.glob(pattern) if pattern else [folder]
                with self.subTest(form=form, times=times):
                    self.assertEqual(self.facts(source), wanted)
        return wanted

    def test_four_ranks_of_one_machine(self):
        harness.need_data()
        self.run_command(TACHO, "merge", *sorted((DATA / "ranks4").glob("kineto_rank*.json.gz")), "-o", "m.tacho")
        wanted = self.check("m.tacho")
        self.assertEqual([row.split(",")[1] for row in wanted["processes"]], ["0", "1", "2", "3"])
        self.assertEqual([row.split(",")[4] for row in wanted["kernels"]], ["0", "1", "2", "3"], "each has a GPU of its own")

    def test_three_hosts_with_one_pid_and_one_gpu_number(self):
        self.run_command(BUILD / "tests" / "bad_trace", "t.tacho", "one_pid")
        wanted = self.check("t.tacho")
        self.assertEqual([row.split(",")[:3] for row in wanted["processes"]], [["100", str(rank), f"host{rank}"] for rank in range(3)])

    def test_processes_without_pids(self):
        """Their work stays theirs in files that know processes by numbers alone."""
        events = []
        for number, pid in enumerate(("trainer", "server", 83)):
            for i in range(3):
                at, correlation = 1000 * i + 10 * number, 10 * number + i + 1
                events += [{"ph": "X", "cat": "cuda_runtime", "name": f"call{number}", "pid": pid, "tid": 5, "ts": at, "dur": 5, "args": {"correlation": correlation}},
                           {"ph": "X", "cat": "kernel", "name": f"k{number}", "pid": number, "tid": 7, "ts": at + 100, "dur": 10,
                            "args": {"correlation": correlation, "device": number, "stream": 7}}]
        (self.folder / "t.json").write_text(json.dumps({"traceEvents": events}))
        question = ("SELECT k.name, p.name, p.pid, count(*), sum(d.start) - (SELECT min(start) FROM api) * count(*) FROM dispatch d JOIN kernel k ON k.id = d.dim JOIN track t "
                    "ON t.id = d.track LEFT JOIN process p ON p.id = t.process GROUP BY 1, 2, 3 ORDER BY 1, 2, 3")
        calls = ("SELECT f.name, p.name, p.pid, count(*) FROM api a JOIN function f ON f.id = a.dim JOIN track t ON t.id = a.track LEFT JOIN process p ON p.id = t.process "
                 "GROUP BY 1, 2, 3 ORDER BY 1, 2, 3")
        wanted = [self.query("t.json", each) for each in (question, calls)]
        self.assertEqual([row.split(",")[:2] for row in wanted[0]], [["k0", "trainer"], ["k1", "server"], ["k2", ""]])
        for form in ("rpd", "nsys-sqlite", "rocpd", "json"):
            source = "t.json"
            for times in ("once", "twice"):
                out = f"{times}.{form}"
                self.run_command(TACHO, "export", source, "-f", form, "-o", out)
                source = out
                with self.subTest(form=form, times=times):
                    self.assertEqual([self.query(out, each) for each in (question, calls)], wanted)


if __name__ == "__main__":
    harness.main()
