"""MPI: the records of a program's calls, under Open MPI and MPICH of Debian, in C, Fortran and Python; that the program does
not notice; and that `tacho ranks` and `tacho merge` find who made whom wait."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

import harness
from harness import BUILD, DEBIAN_PYTHON, EXAMPLES, SOURCE, TACHO, TARGETS

PROGRAMS = SOURCE / "tests" / "e2e" / "targets" / "mpi"
REPEATS = int(os.environ.get("TACHO_MPI_REPEATS", "1"))  # of each planted delay
LAUNCH = {"openmpi": ("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"), "mpich": ("mpiexec.mpich",)}
# Four ranks on few cores: they do little on the CPU, and OpenCL's threads would only be in each other's way. Delays are far
# longer than the waits that a busy machine causes.
QUIET = {"POCL_MAX_PTHREAD_COUNT": "1", "OMPI_MCA_mpi_yield_when_idle": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
folder = None


def setUpModule():
    global folder
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tacho-mpi-"))


def tearDownModule():
    shutil.rmtree(folder, ignore_errors=True)


def built(compiler, library, source, *words):
    """The program of `source` for an MPI, or a skipped test."""
    command = f"{compiler}.{library}"
    if shutil.which(command) is None or shutil.which(LAUNCH[library][0]) is None:
        package = {"openmpi": "libopenmpi-dev openmpi-bin", "mpich": "mpich libmpich-dev"}[library]
        raise unittest.SkipTest(f"{command} is not installed (Debian packages {package})")
    program = folder / f"{source.split('.')[0]}.{library}"
    if not program.exists():
        subprocess.run([command, "-w", "-g", "-O1", f"-I{SOURCE}/include", PROGRAMS / source, "-o", program, *words], check=True)
    return program


class Mpi(harness.Case):
    library = "openmpi"

    def job(self, ranks, *command, code=0, options=(), env=None, tacho=True):
        words = (TACHO, "trace", "-q", "-o", "t.tacho", *options, "--") if tacho else ()
        return self.run_command(*LAUNCH[self.library], "-n", ranks, *words, *command, code=code, env={**QUIET, **(env or {})})

    def rows(self, statement, rank=0, file=None):
        file = file or f"t.{rank}.tacho"
        answer = self.run_command(TACHO, "query", file, statement, "--dialect", "tacho", "--output-format", "json")
        return json.loads(answer.stdout)["rows"]

    def messages(self, rank, kind, columns):
        return self.rows(f"SELECT {columns} FROM message m LEFT JOIN communicator c ON c.id = m.dim WHERE kind = '{kind}' ORDER BY start, m.id", rank)

    def calls_of_mpi(self, file):
        return {name: row["Calls"] for name, row in self.stats("api", file).items() if name.startswith("MPI_")}

    def ranks(self, *words):
        return json.loads(self.run_command(TACHO, "ranks", self.folder, "--output-format", "json", *words).stdout)


class BothKinds:
    """Tests for each MPI."""

    def test_messages(self):
        program = built("mpicc", self.library, "calls.c", "-lpthread")
        alone = self.job(4, program, "messages", tacho=False)
        recorded = self.job(4, program, "messages")
        self.assertEqual(sorted(alone.stdout.split(b"\n")), sorted(recorded.stdout.split(b"\n")))
        for rank in range(4):
            left, right = (rank + 3) % 4, (rank + 1) % 4
            sends = self.messages(rank, "send", "function, sent, peer, tag")
            self.assertEqual(sends, [["MPI_Isend", 40, right, 7], ["MPI_Sendrecv", 80, left, 8], ["MPI_Ssend", 24, right, 9],
                                     ["MPI_Send_init", 5, right, 10], ["MPI_Send_init", 5, right, 10]])
            receives = self.messages(rank, "receive", "function, received, peer, tag, begun_ahead > 0")
            self.assertEqual(receives, [["MPI_Irecv", 40, left, 7, 1], ["MPI_Sendrecv", 80, right, 8, 0], ["MPI_Recv", 24, left, 9, 0],
                                        ["MPI_Recv_init", 5, left, 10, 1], ["MPI_Recv_init", 5, left, 10, 1]])
            # Each belongs to a call, and to MPI_COMM_WORLD.
            self.assertEqual(self.rows("SELECT count(*) FROM message m JOIN api a ON a.correlation = m.correlation WHERE m.kind <> 'collective' "
                                       "AND m.start = a.start AND m.duration = a.duration", rank), [[10]])
            self.assertEqual(self.rows("SELECT DISTINCT name FROM message WHERE kind <> 'collective'", rank), [["MPI_COMM_WORLD"]])
        calls = self.calls_of_mpi("t.2.tacho")
        for name, count in (("MPI_Init", 1), ("MPI_Isend", 1), ("MPI_Waitall", 1), ("MPI_Startall", 2), ("MPI_Wait", 2), ("MPI_Test", 2),
                            ("MPI_Send", 1), ("MPI_Finalize", 1)):  # of MPI_Test those that found something
            self.assertEqual(calls.get(name), count, name)

    def test_collectives_and_communicators(self):
        program = built("mpicc", self.library, "calls.c", "-lpthread")
        alone = self.job(4, program, "collectives", tacho=False)
        recorded = self.job(4, program, "collectives")
        self.assertEqual(sorted(alone.stdout.split(b"\n")), sorted(recorded.stdout.split(b"\n")))
        identities = []
        for rank in range(4):
            members = "[0, 2]" if rank % 2 == 0 else "[1, 3]"
            root = 2 + rank % 2  # of the broadcast: the second of its half
            self.assertEqual(self.messages(rank, "collective", "function, sent, received, peer, sequence, members"), [
                ["MPI_Comm_split", 0, 0, None, 0, "[0-3]"], ["MPI_Comm_dup", 0, 0, None, 0, members],
                *[["MPI_Allreduce", 32, 32, None, 1 + i, members] for i in range(3)],
                ["MPI_Allgather", 64, 256, None, 1, "[0-3]"],
                ["MPI_Bcast", 16 if rank == root else 0, 0 if rank == root else 16, root, 0, members],
                ["MPI_Reduce", 128, 128 if rank == 1 else 0, 1, 2, "[0-3]"],
                ["MPI_Ibarrier", 0, 0, None, 3, "[0-3]"], ["MPI_Comm_split", 0, 0, None, 4, "[0-3]"],
                ["MPI_Alltoall", 16, 16, None, 0, "[0-1]" if rank < 2 else "[2-3]"]])
            identities.append({tuple(row[:2]): row[2] for row in self.rows("SELECT members, origin, identity FROM communicator", rank)})
            self.assertIn(["odd" if rank % 2 else "even"], self.rows("SELECT name FROM communicator", rank))
        # The same identity on all ranks of a communicator, another for every other communicator.
        for key in identities[0].keys() & identities[2].keys() | identities[1].keys() & identities[3].keys():
            self.assertEqual(len({found[key] for found in identities if key in found}), 1, key)
        everyone = {(key, value) for found in identities for key, value in found.items() if value}
        self.assertEqual(len({value for _, value in everyone}), len({key for key, _ in everyone}), everyone)
        answer = self.ranks()
        # Two halves with a dup and three all-reduces each, a broadcast in each copy, two pairs, and five of all ranks.
        self.assertEqual(len(answer["collectives"]), 2 * (1 + 3 + 1) + 2 + 5)
        self.assertTrue(all(one["complete"] for one in answer["collectives"]), answer["collectives"])

    def test_fortran(self):
        for source in ("fortran.f90", "fortran77.f"):
            program = built("mpifort", self.library, source)
            self.job(2, program)
            for rank in range(2):
                self.assertEqual(self.messages(rank, "collective", "function, sent, received"), [["MPI_Allreduce", 24, 24]], source)
                self.assertEqual(self.messages(rank, "send", "function, sent, peer, tag"), [["MPI_Isend", 20, 1 - rank, 3]], source)
                self.assertEqual(self.messages(rank, "receive", "function, received, peer"), [["MPI_Recv", 20, 1 - rank]], source)
                self.assertEqual(self.calls_of_mpi(f"t.{rank}.tacho"),
                                 {name: 1 for name in ("MPI_Init", "MPI_Allreduce", "MPI_Isend", "MPI_Recv", "MPI_Wait", "MPI_Finalize")})
            for rank in range(2):
                (self.folder / f"t.{rank}.tacho").unlink()

    def test_one_sided(self):
        program = built("mpicc", self.library, "calls.c", "-lpthread")
        alone = self.job(4, program, "onesided", tacho=False)
        recorded = self.job(4, program, "onesided", options=("--api-args",))
        self.assertEqual(sorted(alone.stdout.split(b"\n")), sorted(recorded.stdout.split(b"\n")))
        for rank in range(4):
            right = (rank + 1) % 4
            rows = self.rows("SELECT kind, function, sent, received, peer, members FROM message m JOIN communicator c ON c.id = m.dim "
                             "WHERE kind IN ('put', 'get', 'update') ORDER BY start", rank)
            self.assertEqual(rows, [["put", "MPI_Put", 24, 0, right, "[0-3]"], ["get", "MPI_Get", 0, 16, right, "[0-3]"],
                                    ["put", "MPI_Accumulate", 8, 0, right, "[0-3]"], ["update", "MPI_Fetch_and_op", 8, 8, right, "[0-3]"]])
        # To the right 24 + 8 + 8 bytes; back from there 16 + 8.
        pairs = {(one["from"], one["to"]): (one["messages"], one["bytes"]) for one in self.ranks()["messages"]}
        self.assertEqual(pairs, {**{(rank, (rank + 1) % 4): (3, 40) for rank in range(4)}, **{((rank + 1) % 4, rank): (2, 24) for rank in range(4)}})
        self.assertIn("Bytes of messages and one-sided operations", self.run_command(TACHO, "ranks", self.folder).stdout.decode())

    def test_files(self):
        program = built("mpicc", self.library, "calls.c", "-lpthread")
        alone = self.job(2, program, "files", "data", tacho=False)
        recorded = self.job(2, program, "files", "data")
        self.assertEqual(sorted(alone.stdout.split(b"\n")), sorted(recorded.stdout.split(b"\n")))
        # Beyond the file's end MPICH reports the requested bytes of a collective read, Open MPI those that came.
        whole = 4 * int(recorded.stdout.split(b": ")[1].split()[0])
        self.assertEqual(whole, {"openmpi": 24, "mpich": 80}[self.library])
        for rank in range(2):
            rows = self.rows("SELECT kind, function, sent, received, begun_ahead > 0 FROM message WHERE kind IN ('file read', 'file write') ORDER BY start", rank)
            self.assertEqual(rows, [["file write", "MPI_File_write_at_all", 16, 0, 0], ["file write", "MPI_File_iwrite_at", 8, 0, 1],
                                    ["file read", "MPI_File_read_at", 0, 12, 0], ["file read", "MPI_File_read_at_all", 0, whole, 0]])
        answer = self.ranks()
        self.assertEqual([(one["file_read_bytes"], one["file_written_bytes"]) for one in answer["ranks"]], [(12 + whole, 24)] * 2)
        self.assertIn("Bytes of files, by MPI_File_*", self.run_command(TACHO, "ranks", self.folder).stdout.decode())

    def test_threads(self):
        program = built("mpicc", self.library, "calls.c", "-lpthread")
        self.assertIn(b"level 1", self.job(2, program, "threads").stdout)
        for rank in range(2):
            self.assertEqual(self.rows("SELECT count(*), sum(sent), count(DISTINCT track) FROM message WHERE kind = 'send'", rank),
                             [[200, 50 * (1 + 2 + 3 + 4), 4]])
        self.assertEqual(self.ranks()["messages"], [{"from": 0, "to": 1, "messages": 200, "bytes": 500},
                                                    {"from": 1, "to": 0, "messages": 200, "bytes": 500}])

    def test_exit_code_and_errors(self):
        program = built("mpicc", self.library, "calls.c", "-lpthread")
        self.job(2, program, "exit", code=5, options=("--overwrite",))
        said = self.job(2, program, "wrong", options=("--overwrite",))
        self.assertEqual(sorted(said.stdout.decode().split("\n")), ["", "rank 0: class 1", "rank 1: class 1"])
        self.assertEqual(self.rows("SELECT result > 0 FROM api WHERE name = 'MPI_Send'"), [[1]])
        self.assertEqual(self.rows("SELECT count(*) FROM message WHERE kind = 'send'"), [[0]])

    def ended(self, process, seconds=30):
        """Waits until a process has ended, or only waits for its parent to ask how it ended."""
        def alive():
            try:
                return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
            except FileNotFoundError:
                return False
        end = time.monotonic() + seconds
        while alive():
            self.assertLess(time.monotonic(), end, f"process {process} did not end")
            time.sleep(0.02)

    def test_a_job_that_ends_badly(self):
        # MPICH's launcher then kills all of it, tacho included, which leaves its pools to `tacho recover`.
        program = built("mpicc", self.library, "calls.c", "-lpthread")
        pools = self.folder / "pools"
        pools.mkdir()
        for kind in ("abort", "die"):
            alone = self.job(2, program, kind, tacho=False, code=None)
            recorded = self.job(2, program, kind, code=None, options=("--overwrite",), env={"TACHO_POOL_DIR": str(pools)})
            self.assertNotEqual(alone.returncode, 0)
            if kind == "abort":  # for a killed rank MPICH reports the signal, for tacho 128 + the signal
                self.assertEqual(recorded.returncode, alone.returncode)
            self.assertNotEqual(recorded.returncode, 0)
            # The launcher does not wait for those that it kills: a tacho that lives on writes its trace itself.
            for number, pool in enumerate(sorted(pools.glob("*.pool"))):
                self.ended(int(pool.name.split("-")[1]))
                if not pool.exists():
                    continue
                self.run_command(TACHO, "recover", pool, "-o", f"{kind}.{number}.tacho")

    def test_another_tool_stays(self):
        program = built("mpicc", self.library, "calls.c", "-lpthread")
        tool = built("mpicc", self.library, "tool.c", "-shared", "-fPIC")
        # Through the shell: tacho's own preloads stay, too.
        said = self.job(2, "/bin/sh", "-c", f'LD_PRELOAD="$LD_PRELOAD:{tool}" exec {program} barriers')
        self.assertEqual(said.stdout.count(b"tool: 3 barriers"), 2, said.stdout)
        self.assertEqual(self.calls_of_mpi("t.1.tacho"), {"MPI_Init": 1, "MPI_Barrier": 3, "MPI_Finalize": 1})

    def test_profile_runs_the_program_once(self):
        # A rank may call MPI_Init once: on the virtual GPU the run that counts is the one that is made.
        if not (BUILD / "lib" / "libtacho-oclgrind.so").exists():
            self.skipTest("the plugin of the virtual GPU is not built")
        program = built("mpicc", self.library, "stencil.c", "-lOpenCL", "-ldl", "-lpthread")
        said = self.run_command(*LAUNCH[self.library], "-n", 2, TACHO, "profile", "-n", "job", "--device", "virtual", "-b", "2", "--", program, 4, env=QUIET)
        self.assertEqual(said.stdout.count(b"sum "), 1, said.stdout)
        self.assertEqual((said.stdout + said.stderr).count(b"called MPI_Init, which a rank can do once in its job"), 2, said.stderr)
        for rank in range(2):
            answer = self.run_command(TACHO, "analyze", "-p", f"workloads/job/{rank}", "--list-stats").stdout
            self.assertIn(b"heat", answer)
        # --max-time needs the times first, and then no run is left to count in.
        said = self.run_command(*LAUNCH[self.library], "-n", 2, TACHO, "profile", "-n", "late", "--device", "virtual", "-b", "2", "--max-time", "1", "--",
                                program, 4, code=None, env=QUIET)
        self.assertEqual((said.stdout + said.stderr).count(b"nothing was counted; leave --max-time out"), 2, said.stderr)
        # Without MPI both runs are made, and kernels have times.
        said = self.run_command(*LAUNCH[self.library], "-n", 2, TACHO, "profile", "-n", "plain", "--device", "virtual", "-b", "2", "--",
                                EXAMPLES / "vcopy", "-n", "4096", env=QUIET)
        self.assertEqual((said.stdout + said.stderr).count(b"Timing the kernels on PoCL"), 2)
        self.assertNotIn(b"MPI_Init", said.stderr)

    def delayed(self, what, rank, step, milliseconds):
        program = built("mpicc", self.library, "stencil.c", "-lOpenCL", "-ldl", "-lpthread")
        said = self.job(4, program, 16, what, rank, step, milliseconds, options=("--overwrite",))
        self.assertIn(b"sum 3153254.013", said.stdout)
        return self.ranks()

    def test_a_late_rank_is_found(self):
        for repeat in range(REPEATS):
            late = repeat % 4
            answer = self.delayed("rank", late, 6, 800)
            first = answer["stragglers"][0]
            self.assertEqual(first["rank"], late, answer["stragglers"])
            self.assertGreater(first["waited_ns"], 1500e6)
            # A delayed one, or the one with the collective after it.
            worst = max(answer["steps"], key=lambda step: step["waited_ns"])
            self.assertEqual((worst["last_rank"], worst["step"] in (6, 7, 8, 9)), (late, True), worst)

    def test_a_late_message_is_found(self):
        for repeat in range(REPEATS):
            sender = repeat % 3  # to the next one
            answer = self.delayed("message", sender, 7, 1500)
            found = answer["late_messages"][0]
            self.assertEqual((found["from"], found["to"], found["tag"], found["number"], found["bytes"]), (sender, sender + 1, 1, 7, 1024), found)
            self.assertGreater(found["waited_ns"], 1000e6)
            # The sender's activity meanwhile, beside the message, in the sentence about the rank and in the text.
            did = found["meanwhile"]
            self.assertEqual((did["kind"], did["name"], did["text"]), ("own code", "pack", "its own code on the host, in pack"), found)
            self.assertGreater(did["name_ns"], 0.9 * found["waited_ns"])
            self.assertIn("its own code on the host, in pack", " ".join(self.run_command(TACHO, "ranks", self.folder).stdout.decode().split()))
            self.assertEqual([(one["from"], one["to"], one["messages"], one["bytes"]) for one in answer["messages"]],
                             [(a, b, 16, 16384) for a in range(4) for b in (a - 1, a + 1) if 0 <= b < 4])

    def test_a_late_collective_is_found(self):
        for repeat in range(REPEATS):
            late = repeat % 4
            answer = self.delayed("collective", late, 9, 1500)
            worst = max(answer["collectives"], key=lambda one: one["waited_ns"])
            self.assertEqual((worst["operation"], worst["last_rank"], worst["step"], worst["cause"]["kind"]), ("all_reduce", late, 9, "host"), worst)
            self.assertGreater(worst["late_ns"], 1000e6)


class OpenMpi(BothKinds, Mpi):
    library = "openmpi"

    def test_abort(self):
        program = built("mpicc", self.library, "calls.c", "-lpthread")
        self.job(2, program, "abort", code=None)
        self.assertEqual(self.rows("SELECT name, duration IS NULL FROM api WHERE name IN ('MPI_Barrier', 'MPI_Abort') ORDER BY start", 1),
                         [["MPI_Barrier", 0], ["MPI_Abort", 1]])

    def test_a_rank_dies(self):
        program = built("mpicc", self.library, "calls.c", "-lpthread")
        self.job(2, program, "die", code=None)
        for rank in range(2):
            self.assertGreaterEqual(self.rows("SELECT count(*) FROM message WHERE function = 'MPI_Barrier'", rank)[0][0], 5)
        self.assertEqual(sum(one["operation"] == "barrier" and one["complete"] for one in self.ranks()["collectives"]), 5)

    def test_spawn(self):  # that of Debian's MPICH fails, also without tacho
        program = built("mpicc", self.library, "calls.c", "-lpthread")
        self.job(2, program, "spawn")
        rows = self.rows("SELECT identity, origin, members FROM communicator")
        # The parents' world, and the communicator between them and the children, which nothing matches. The launcher starts the
        # children, not the parents: they are not recorded, and the root's trace says so.
        self.assertEqual([row[2] for row in rows if row[1] == "" and row[0] != 0], ["[0-1]"], rows)
        self.assertEqual([row[0] for row in rows if row[1] == "MPI_Comm_spawn"], [0], rows)
        self.assertEqual(self.calls("api", "MPI_Comm_spawn", "t.0.tacho"), 1)
        notes = [[row[0] for row in self.rows("SELECT text FROM note WHERE text LIKE 'MPI_Comm_spawn%'", rank)] for rank in range(2)]
        self.assertEqual([len(found) for found in notes], [1, 0], notes)
        self.assertIn(f"MPI_Comm_spawn of 2 x {program}: the launcher starts these processes, and they are not recorded", notes[0][0])

    def test_spawned_tacho(self):
        program = built("mpicc", self.library, "calls.c", "-lpthread")
        child = self.folder / "child"
        child.mkdir()
        self.job(2, program, "spawn", TACHO, "trace", "-q", "-o", child / "c-%rank%.tacho", "--", program, "spawn")
        self.assertEqual(sorted(path.name for path in child.iterdir()), ["c-0.tacho", "c-1.tacho"])
        self.assertEqual(self.rows("SELECT count(*) FROM note WHERE text LIKE 'MPI_Comm_spawn%'"), [[0]])

    def test_static_mpi(self):
        program = self.folder / "static"
        (self.folder / "static.c").write_text("int PMPI_Init(int* argc, char*** argv) { return 0; }\n"
                                              "int main(int argc, char** argv) { return PMPI_Init(&argc, &argv); }\n")
        subprocess.run(["gcc", self.folder / "static.c", "-o", program], check=True)
        said = self.run_command(TACHO, "trace", "-q", "-o", "s.tacho", "--", program)
        self.one_sentence(said, "MPI is linked into this program statically", program)
        subprocess.run(["strip", program], check=True)
        self.assertNotIn(b"statically", self.run_command(TACHO, "trace", "-q", "-o", "s.tacho", "--overwrite", "--", program).stderr)

    def test_mpi4py(self):
        if subprocess.run([DEBIAN_PYTHON, "-c", "import mpi4py.MPI"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("mpi4py is not installed (Debian package python3-mpi4py)")
        script = self.folder / "job.py"
        script.write_text("""
import sys, time
loaded = lambda: "libtacho-mpi" in open("/proc/self/maps").read()
before = loaded()
from mpi4py import MPI
world = MPI.COMM_WORLD
rank = world.Get_rank()
world.send({"a": rank}, dest=(rank + 1) % 4, tag=5)
got = world.recv(source=(rank + 3) % 4, tag=5)
for i in range(10):
    if rank == 2 and i == 6: time.sleep(0.3)
    world.barrier()
with open(f"said.{rank}", "w") as file:  # mpirun mixes what ranks print
    print("before", before, "after", loaded(), got, file=file)
""")
        self.job(4, DEBIAN_PYTHON, script)
        for rank in range(4):
            self.assertEqual((self.folder / f"said.{rank}").read_text(), f"before False after True {{'a': {(rank + 3) % 4}}}\n")
        for rank in range(4):
            self.assertEqual(self.calls("api", "MPI_Init_thread", f"t.{rank}.tacho"), 1)
            self.assertEqual(self.messages(rank, "send", "peer, tag"), [[(rank + 1) % 4, 5]])
            self.assertEqual(self.messages(rank, "receive", "peer, tag"), [[(rank + 3) % 4, 5]])
        worst = max(self.ranks()["collectives"], key=lambda one: one["waited_ns"])
        self.assertEqual((worst["operation"], worst["last_rank"]), ("barrier", 2), worst)

    def test_mpi4py_delays(self):
        if subprocess.run([DEBIAN_PYTHON, "-c", "import mpi4py.MPI"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("mpi4py is not installed (Debian package python3-mpi4py)")
        script = self.folder / "ring.py"
        script.write_text("""
import array, sys, time
from mpi4py import MPI
sums = array.array("d", [0])
what, late, at, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
world = MPI.COMM_WORLD
rank = world.Get_rank()
def delay(here): time.sleep(seconds if rank == late and here else 0)
for step in range(12):
    delay(what == "rank" and at <= step < at + 3)
    request = world.irecv(source=(rank + 3) % 4, tag=1)
    delay(what == "message" and step == at)
    world.send(step, dest=(rank + 1) % 4, tag=1)
    assert request.wait() == step
    if step % 2:
        delay(what == "collective" and step == at)
        world.Allreduce(array.array("d", [rank]), sums)  # of objects mpi4py makes a reduce and a broadcast
""")
        for repeat in range(REPEATS):
            late = repeat % 4
            for what, at, seconds in (("rank", 4, 0.6), ("message", 6, 1.2), ("collective", 7, 1.2)):
                self.job(4, DEBIAN_PYTHON, script, what, late, at, seconds, options=("--overwrite",))
                answer = self.ranks()
                if what == "rank":
                    first = answer["stragglers"][0]
                    self.assertEqual(first["rank"], late, answer["stragglers"])
                    self.assertGreater(first["waited_ns"], 2 * seconds * 1e9)
                elif what == "message":
                    # In a ring the next one's receiver waits about as long: its sender waited itself, which is said.
                    found = next(one for one in answer["late_messages"] if one["meanwhile"]["kind"] != "messages")
                    for other in answer["late_messages"][:answer["late_messages"].index(found)]:
                        self.assertEqual(other["meanwhile"]["peer"], late, other)
                    self.assertEqual(answer["stragglers"][0]["rank"], late, answer["stragglers"])
                    self.assertEqual((found["from"], found["to"], found["tag"], found["number"], found["meanwhile"]["kind"]),
                                     (late, (late + 1) % 4, 1, at, "own code"), found)
                    self.assertGreater(found["waited_ns"], 0.8 * seconds * 1e9)
                else:
                    worst = max(answer["collectives"], key=lambda one: one["waited_ns"])
                    self.assertEqual((worst["operation"], worst["number"], worst["last_rank"], worst["cause"]["kind"]), ("all_reduce", at // 2, late, "host"), worst)
                    self.assertGreater(worst["late_ns"], 0.8 * seconds * 1e9)

    def test_no_mpi_no_library(self):
        said = self.trace(TARGETS / "mpi_weak").stdout
        self.assertEqual(said, b"weak 0, by name 0, loaded 0\n")
        self.assertEqual(self.run_command(TARGETS / "mpi_weak").stdout, said)

    def test_loaded_later(self):
        library = pathlib.Path("/usr/lib/x86_64-linux-gnu/libmpi.so.40")
        if not library.exists():
            self.skipTest(f"no {library}")
        said = self.trace(TARGETS / "mpi_weak", library).stdout.decode().splitlines()
        self.assertEqual(said, ["weak 0, by name 0, loaded 0", "before 0, after 1, weak 0, loaded 1"])
        self.assertEqual(self.calls_of_mpi("t.tacho"), {"MPI_Init": 1, "MPI_Finalize": 1})

    def test_exports(self):
        program = built("mpicc", self.library, "calls.c", "-lpthread")
        self.job(2, program, "messages", options=("--api-args",))
        text = self.run_command(TACHO, "export", "-f", "json", "t.1.tacho", "-o", "t.json") and (self.folder / "t.json").read_text()
        events = [one for one in json.loads(text)["traceEvents"] if one.get("name", "").startswith("MPI_")]
        shown = {one["name"]: json.dumps(one.get("args", {})) for one in events}
        self.assertIn("to=0, bytes=24, tag=9", shown["MPI_Ssend"])
        self.assertIn("from=0, bytes=40, tag=7", shown["MPI_Waitall"])
        self.run_command(TACHO, "export", "-f", "csv", "t.1.tacho", "-d", "csv")
        files = {path.name.split("_", 1)[1]: path.read_text() for path in (self.folder / "csv").iterdir()}
        self.assertIn("MPI_Waitall", files["mpi_api_trace.csv"])
        self.assertIn("MPI_Irecv", files["message_trace.csv"])
        self.run_command(TACHO, "export", "-f", "rpd", "t.1.tacho", "-o", "t.rpd")
        count = self.run_command(TACHO, "query", "t.rpd", "SELECT count(*) FROM api WHERE apiName = 'MPI_Waitall'", "--output-format", "csv")
        self.assertEqual(count.stdout.split(), [b"count(*)", b"1"])


class Mpich(BothKinds, Mpi):
    library = "mpich"


del BothKinds, Mpi
if __name__ == "__main__":
    harness.main()
