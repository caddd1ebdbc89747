"""Whose work it is survives every format that tacho writes: each process's rank, host and name, and which device its work is on."""
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


if __name__ == "__main__":
    harness.main()
