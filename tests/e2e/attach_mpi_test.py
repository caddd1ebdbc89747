"""MPI jobs that ran before `tacho attach` came: Open MPI and MPICH of Debian, in C and by Python's mpi4py. Each round of a job has a number."""
import csv
import os
import pathlib
import re
import signal
import struct
import subprocess

import attach_test
import harness
import mpi_test
from harness import TACHO

RANKS = 2


def setUpModule():
    mpi_test.setUpModule()


def tearDownModule():
    mpi_test.tearDownModule()


class Job(attach_test.Attached):
    library = "openmpi"

    def launch(self, *command):
        job = subprocess.Popen([*mpi_test.LAUNCH[self.library], "-n", str(RANKS), *map(str, command)], stdout=subprocess.PIPE, cwd=self.folder,
                               text=True, env={**os.environ, **mpi_test.QUIET})
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        self.assertEqual(job.stdout.readline().strip(), "ready")
        self.pids = [int((self.folder / f"pid.{rank}").read_text()) for rank in range(RANKS)]
        for pid in self.pids:
            self.addCleanup(self.kill, pid)
        return job

    @staticmethod
    def kill(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def finish(self, job):
        os.kill(self.pids[0], signal.SIGTERM)
        said, _ = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, said)
        rounds, total = map(int, re.match(r"(\d+) rounds: (-?\d+)", said.strip()).groups())
        # Each rank adds what all and what its pair have got: 0 + r, 1 + r.
        self.assertEqual(total, sum(2 * r + 1 + r + 1 for r in range(rounds)))

    def table(self, sql):
        answer = self.run_command(TACHO, "query", "a.tacho", sql, "--dialect", "tacho", "--output-format", "csv")
        return [tuple(row) for row in csv.reader(answer.stdout.decode().splitlines()[1:])]

    def messages(self, pid, kind, function):
        return self.table(f"SELECT m.tag, m.sent, m.received, m.peer, m.sequence, c.size FROM message m JOIN track t ON t.id = m.track JOIN thread h ON "
                          f"h.id = t.thread JOIN process p ON p.id = h.process LEFT JOIN communicator c ON c.id = m.dim WHERE m.kind = '{kind}' AND "
                          f"m.function = '{function}' AND p.pid = {pid} ORDER BY m.start")

    def check_rounds(self):
        """All messages of each round, on all ranks, and their calls."""
        for rank, pid in enumerate(self.pids):
            other = str(1 - rank)
            sent = self.messages(pid, "send", "MPI_Isend")
            self.assertGreater(len(sent), 5)  # MPICH polls, and machines are busy
            first = int(sent[0][0])
            self.assertEqual(sent, [(str((first + i) % 30000), "128", "0", other, "", str(RANKS)) for i in range(len(sent))])
            received = self.messages(pid, "receive", "MPI_Irecv")
            self.assertLessEqual(abs(len(received) - len(sent)), 1)
            tags = [int(row[0]) for row in received]
            self.assertEqual(tags, [(tags[0] + i) % 30000 for i in range(len(tags))])
            self.assertEqual({row[2:4] for row in received}, {("128", other)})
            reduced = self.messages(pid, "collective", "MPI_Allreduce")
            self.assertLessEqual(abs(len(reduced) - 2 * len(sent)), 2)
            self.assertEqual({row[4] for row in reduced}, {""})  # which of another rank belongs to it is not known
            calls = dict(self.table(f"SELECT f.name, count(*) FROM api a JOIN function f ON f.id = a.dim JOIN track t ON t.id = a.track JOIN thread h ON "
                                    f"h.id = t.thread JOIN process p ON p.id = h.process WHERE f.domain = 'mpi' AND p.pid = {pid} GROUP BY 1"))
            self.assertEqual(int(calls["MPI_Isend"]), len(sent))
            self.assertEqual(int(calls["MPI_Allreduce"]), len(reduced))
            self.assertLessEqual(abs(int(calls["MPI_Waitall"]) - len(sent)), 1)

    def closed_words(self, pid):
        """Bytes of the parts of libraries that the loader has closed (RELRO), where bound calls stand."""
        found = {}
        with open(f"/proc/{pid}/mem", "rb") as memory:
            for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
                at, rights, _, _, _, *path = line.split(None, 5)
                begin, end = (int(word, 16) for word in at.split("-"))
                if rights == "r--p" and path and path[0].startswith("/") and "tacho" not in path[0]:
                    memory.seek(begin)
                    found[path[0], begin] = memory.read(end - begin)
        return found

    def words_to_tacho(self, pid):
        """Words of libraries that lead to tacho's."""
        lines = [line.split(None, 5) for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()]
        span = lambda line: tuple(int(word, 16) for word in line[0].split("-"))  # noqa: E731
        ours = [span(line) for line in lines if len(line) > 5 and "libtacho-mpi" in line[5]]
        self.assertTrue(ours)
        low, high = min(ours)[0], max(ours)[1]
        count = 0
        with open(f"/proc/{pid}/mem", "rb") as memory:
            for line in lines:
                if len(line) < 6 or not line[5].startswith("/") or "tacho" in line[5] or not line[1].startswith("r") or "/dev/" in line[5]:
                    continue
                begin, end = span(line)
                memory.seek(begin)
                count += sum(low <= word < high for (word,) in struct.iter_unpack("<Q", memory.read(end - begin)))
        return count


class OpenMpi(Job):
    def test_all_messages_of_each_round(self):
        for words in ((), ("lookup",)):
            with self.subTest(words):
                job = self.launch(mpi_test.built("mpicc", self.library, "late.c", "-ldl"), *words)
                before = [self.closed_words(pid) for pid in self.pids]
                for _ in range(3):
                    self.attach(self.pids[0], str(self.pids[1]), "--duration", "0.5")
                    self.check_rounds()
                    info = self.run_command(TACHO, "info", "a.tacho").stdout.decode()
                    self.assertIn("nothing was lost", info)
                    self.assertEqual(info.count("requests and windows from before tacho attached are not followed"), 1)
                    self.assertIn(f"belong together ({RANKS} times)", info)
                for pid, words_before in zip(self.pids, before):
                    after = self.closed_words(pid)
                    self.assertEqual([place for place, closed in words_before.items() if after.get(place) != closed], [])
                    self.assertEqual(self.words_to_tacho(pid), 0)
                    self.assertEqual(self.leftovers(pid), ([], [], []))
                self.finish(job)

    def test_python(self):
        (self.folder / "job.py").write_text(
            "import array, os, signal, time\nfrom mpi4py import MPI\nworld = MPI.COMM_WORLD\nrank = world.rank\nstop = 0\n"
            "def on_term(*_):\n    global stop\n    stop = 1\nsignal.signal(signal.SIGTERM, on_term if rank == 0 else signal.SIG_IGN)\n"
            "pair = world.Split(rank // 2, rank)\nopen(f'pid.{rank}', 'w').write(str(os.getpid()))\nrounds, total, ended = 0, 0, 0\n"
            "while not ended:\n    out, into = array.array('d', [rank + rounds] + [0] * 15), array.array('d', [0] * 16)\n"
            "    requests = [world.Irecv(into, 1 - rank, rounds % 30000), world.Isend(out, 1 - rank, rounds % 30000)]\n"
            "    MPI.Request.Waitall(requests)\n    of_all, of_pair = array.array('d', [0]), array.array('d', [0])\n"
            "    world.Allreduce(array.array('d', [into[0]]), of_all)\n    pair.Allreduce(array.array('d', [into[0]]), of_pair, MPI.MAX)\n"
            "    total += int(of_all[0] + of_pair[0])\n    rounds += 1\n    mine = array.array('i', [stop])\n    world.Bcast(mine)\n    ended = mine[0]\n"
            "    if rounds == 10 and rank == 0:\n        print('ready', flush=True)\n    time.sleep(0.002)\n"
            "if rank == 0:\n    print(rounds, 'rounds:', total)\n")
        if subprocess.run([harness.DEBIAN_PYTHON, "-c", "import mpi4py"], capture_output=True).returncode != 0:
            self.skipTest("mpi4py is not installed (Debian package python3-mpi4py)")
        job = self.launch(harness.DEBIAN_PYTHON, "job.py")
        for _ in range(2):
            self.attach(self.pids[0], str(self.pids[1]), "--duration", "0.5")
            self.check_rounds()
        self.assertEqual([self.words_to_tacho(pid) for pid in self.pids], [0] * RANKS)
        self.finish(job)

    def test_communicators_from_before(self):
        """Messages on them come, and nobody can say which half belongs to which: tacho ranks says why."""
        (self.folder / "job.py").write_text(
            "import array, os, time\nfrom mpi4py import MPI\nworld = MPI.COMM_WORLD\nmade = world.Dup()\nrank = world.rank\n"
            "open(f'pid.{rank}', 'w').write(str(os.getpid()))\nword = array.array('i', [0])\nworld.Barrier()\nif rank == 0:\n    print('ready', flush=True)\n"
            "while True:\n    (made.Send if rank == 0 else made.Recv)(word, 1 - rank)\n    time.sleep(0.005)\n")
        if subprocess.run([harness.DEBIAN_PYTHON, "-c", "import mpi4py"], capture_output=True).returncode != 0:
            self.skipTest("mpi4py is not installed (Debian package python3-mpi4py)")
        self.launch(harness.DEBIAN_PYTHON, "job.py")
        self.attach(self.pids[0], str(self.pids[1]), "--duration", "0.5")
        self.assertGreater(self.stats("api", "a.tacho")["MPI_Send"]["Calls"], 5)
        said = " ".join(self.run_command(TACHO, "ranks", "a.tacho").stdout.decode().split())
        self.assertRegex(said, r"\d+ messages of MPI lack the other half: .* tacho attached after its communicator was made")


class Mpich(OpenMpi):
    library = "mpich"
    test_python = test_communicators_from_before = None


if __name__ == "__main__":
    harness.main()
