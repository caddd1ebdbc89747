"""srun -n 4 tacho ...: a Slurm of one node, started here with Debian's slurmctld and slurmd, runs every rank under tacho."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import harness
import mpi_test
from harness import EXAMPLES, TACHO

VCOPY = EXAMPLES / "vcopy"
cluster = None


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Cluster:
    """Neither daemon authenticates its users (auth/none): they listen on this machine for the time of the test."""

    def __init__(self):
        for program, package in (("slurmctld", "slurmctld"), ("slurmd", "slurmd"), ("srun", "slurm-client")):
            if shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None:
                raise unittest.SkipTest(f"{program} is not installed (Debian packages slurmctld, slurmd, slurm-client); {package} has it")
        if os.geteuid() != 0:
            raise unittest.SkipTest("slurmd starts tasks as root only")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tacho-slurm-"))
        os.chmod(self.folder, 0o755)
        host = socket.gethostname().split(".")[0]
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        self.configuration = self.folder / "slurm.conf"
        self.configuration.write_text(f"""ClusterName=tacho
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/linear
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=one NodeHostname={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=one Default=YES MaxTime=INFINITE State=UP
""")
        self.environment = {"SLURM_CONF": str(self.configuration), "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
        self.daemons = []
        try:
            for words in (("slurmctld", "-D", "-c"), ("slurmd", "-D", "-N", "one")):
                with open(self.folder / f"{words[0]}.log", "wb") as log:
                    self.daemons.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                                         env={**os.environ, **self.environment}))
            self.wait_until_idle()
        except BaseException:
            self.stop()
            raise

    def wait_until_idle(self):
        end, said = time.monotonic() + 60, ""
        while time.monotonic() < end and all(one.poll() is None for one in self.daemons):
            said = subprocess.run(["sinfo", "-h", "-o", "%t"], env={**os.environ, **self.environment}, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT).stdout.decode()
            if said.strip() == "idle":
                return
            time.sleep(0.2)
        logs = " | ".join((path.read_text(errors="replace").strip().splitlines() or ["no words"])[-1] for path in sorted(self.folder.glob("*.log")))
        raise unittest.SkipTest(f"a Slurm of one node does not come up on this machine: sinfo says {said.strip()!r}; {logs}")

    def stop(self):
        for one in self.daemons[::-1]:
            if one.poll() is None:
                one.send_signal(signal.SIGTERM)
        for one in self.daemons:
            try:
                one.wait(20)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def setUpModule():
    global cluster
    cluster = Cluster()
    mpi_test.setUpModule()


def tearDownModule():
    mpi_test.tearDownModule()
    cluster.stop()


class Slurm(harness.Case):
    def srun(self, *words, options=(), code=0, env=None):
        return self.run_command("srun", "-n", 4, *options, *words, code=code, env={**cluster.environment, **mpi_test.QUIET, **(env or {})})

    def files(self, pattern="*.tacho"):
        return sorted(path.name for path in self.folder.glob(pattern))

    def test_trace(self):
        self.srun(TACHO, "trace", "-q", "-o", "t.tacho", "--", VCOPY, "-n", "4096")
        self.assertEqual(self.files(), [f"t.{rank}.tacho" for rank in range(4)])
        for rank in range(4):
            answer = self.run_command(TACHO, "query", f"t.{rank}.tacho", "SELECT DISTINCT rank FROM process", "--dialect", "tacho",
                                      "--output-format", "json")
            self.assertEqual(json.loads(answer.stdout)["rows"], [[rank]])

    def test_placeholders(self):
        host = socket.gethostname()
        self.srun(TACHO, "trace", "-q", "-o", "of-%rank%-%hostname%-%env{SLURM_STEP_NUM_TASKS}%.tacho", "--", "/bin/true")
        self.assertEqual(self.files(), [f"of-{rank}-{host}-4.tacho" for rank in range(4)])

    def test_profile(self):
        self.srun(TACHO, "profile", "-n", "run", "--device", "virtual", "-b", "2", "--", VCOPY, "-n", "4096")
        self.assertEqual(sorted(path.name for path in (self.folder / "workloads" / "run").iterdir()), ["0", "1", "2", "3"])
        for rank in range(4):
            self.run_command(TACHO, "analyze", "-p", f"workloads/run/{rank}", "-b", "2")
        self.srun(TACHO, "profile", "--output-directory", "placed/%hostname%/%rank%", "--device", "virtual", "-b", "2", "--", VCOPY, "-n", "4096")
        self.assertEqual(sorted(path.name for path in (self.folder / "placed" / socket.gethostname()).iterdir()), ["0", "1", "2", "3"])
        # The launcher in the wrong place.
        said = self.run_command(TACHO, "profile", "-n", "wrong", "--", "srun", "-n", "4", VCOPY, code=125, env=cluster.environment)
        self.assertIn(b"srun -n 4 tacho profile", said.stderr)

    def test_ranks_option(self):
        self.srun(TACHO, "trace", "-q", "-o", "t.tacho", "--ranks", "1,3", "--", "/bin/true")
        self.assertEqual(self.files(), ["t.1.tacho", "t.3.tacho"])

    def test_exit_codes(self):
        self.srun(TACHO, "trace", "-q", "-o", "t.tacho", "--", "/bin/sh", "-c", "exit $SLURM_PROCID", code=3)
        self.assertEqual(len(self.files()), 4)

    def test_a_batch_script_has_no_rank(self):
        script = f"{TACHO} trace -q -o batch.tacho -- /bin/true; srun -n 4 {TACHO} trace -q -o step.tacho -- /bin/true"
        self.run_command("sbatch", "-n", 4, "--wait", "-o", "batch.log", "--wrap", script, env=cluster.environment)
        self.assertEqual(self.files(), ["batch.tacho", *(f"step.{rank}.tacho" for rank in range(4))],
                         (self.folder / "batch.log").read_text())

    def test_mpi(self):
        for library, kind in (("openmpi", "pmix"), ("mpich", "pmi2")):
            with self.subTest(library=library):
                plugins = self.run_command("srun", "--mpi=list", env=cluster.environment)
                if kind not in (plugins.stdout + plugins.stderr).decode():
                    self.skipTest(f"this Slurm has no plugin for {kind}")
                program = mpi_test.built("mpicc", library, "calls.c", "-lpthread")
                self.srun(TACHO, "trace", "-q", "-o", f"{library}.tacho", "--", program, "collectives", options=(f"--mpi={kind}",))
                self.assertEqual(self.files(f"{library}.*"), [f"{library}.{rank}.tacho" for rank in range(4)])
                report = json.loads(self.run_command(TACHO, "ranks", *self.files(f"{library}.*"), "--output-format", "json").stdout)
                self.assertEqual([rank["rank"] for rank in report["ranks"]], [0, 1, 2, 3])
                self.assertGreater(len(report["collectives"]), 10)
                self.assertTrue(all(one["complete"] for one in report["collectives"]))


if __name__ == "__main__":
    harness.main()
