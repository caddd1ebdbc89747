"""The lines of the users' documents about several ranks, as they type them, under Open MPI and MPICH: which files they leave, and what
is said. The launchers of Debian need an option more to run as root and on few processors; nothing else is added."""
import json
import os
import shutil
import subprocess

import harness
import mpi_test
from harness import BUILD, DEBIAN_PYTHON, EXAMPLES, TACHO, TARGETS

PERSONALITIES = BUILD / "personalities"
HOST = os.uname().nodename
setUpModule, tearDownModule = mpi_test.setUpModule, mpi_test.tearDownModule


class Lines(harness.Case):
    """A folder in which mpirun, rocprof-compute and the programs of the documents are to be found."""
    library = "openmpi"

    def setUp(self):
        super().setUp()
        launcher = mpi_test.LAUNCH[self.library]
        if shutil.which(launcher[0]) is None:
            self.skipTest(f"{launcher[0]} is not installed (Debian packages openmpi-bin and mpich)")
        places = self.folder / "bin"
        places.mkdir()
        (places / "mpirun").write_text(f"#!/bin/sh\nexec {' '.join(launcher)} \"$@\"\n")
        (places / "mpirun").chmod(0o755)
        for name in ("rocprof-compute", "rocprofv3", "rocprof-sys-sample"):
            there = PERSONALITIES / name
            (places / name).symlink_to(there if there.exists() else TACHO)
        for name in ("laplace_eqn", "my_application"):
            (self.folder / name).symlink_to(EXAMPLES / "vcopy")

    def shell(self, line, code=0, **env):
        found = subprocess.run(["/bin/bash", "-c", line], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300,
                               env={**os.environ, **mpi_test.QUIET, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", **env})
        if code is not None:
            self.assertEqual(found.returncode, code, f"{line}\n{found.stderr.decode()[-2000:]}")
        return found.stderr.decode() + found.stdout.decode()

    def mpi_app(self):
        """A program that computes in OpenCL and communicates by MPI."""
        built = mpi_test.built("mpicc", self.library, "stencil.c", "-lOpenCL", "-ldl", "-lpthread")
        if not (self.folder / "my_mpi_app").exists():
            (self.folder / "my_mpi_app").symlink_to(built)

    def ranks_below(self, *folder, count=4):
        """A workload of each rank lies directly in its folder, and nothing else does; analyze reads each."""
        place = self.folder.joinpath(*folder)
        self.assertEqual(sorted(path.name for path in place.iterdir()), [str(rank) for rank in range(count)])
        for rank in range(count):
            self.assertTrue((place / str(rank) / "pmc_perf_0.csv").exists() and (place / str(rank) / "sysinfo.csv").exists())
            self.run_command(TACHO, "analyze", "-p", place / str(rank), "--list-stats")


class Profile:
    def setUp(self):
        super().setUp()
        if not (BUILD / "lib" / "libtacho-oclgrind.so").exists():
            self.skipTest("the plugin of the virtual GPU is not built")

    def test_output_directory(self):
        self.shell(f"mpirun -n 4 rocprof-compute profile --output-directory {self.folder}/mpi_profile -- ./laplace_eqn -n 4096 -b 256")
        self.ranks_below("mpi_profile")

    def test_name(self):
        self.shell("mpirun -n 4 rocprof-compute profile --name laplace -- ./laplace_eqn -n 4096 -b 256")
        self.ranks_below("workloads", "laplace")

    def test_hostname_and_rank(self):
        self.shell(f"mpirun -n 4 rocprof-compute profile --output-directory {self.folder}/mpi_profile/%hostname%/%rank% -- ./laplace_eqn -n 4096 -b 256")
        self.ranks_below("mpi_profile", HOST)

    def test_a_variable_of_another_mpi(self):
        # The launcher sets MY_MPI_RANK; here it precedes the profiler, whose own rank stays, too.
        (self.folder / "bin" / "its_rank").write_text('#!/bin/sh\nMY_MPI_RANK=r${OMPI_COMM_WORLD_RANK:-$PMI_RANK} exec "$@"\n')
        (self.folder / "bin" / "its_rank").chmod(0o755)
        hide = "env -u OMPI_COMM_WORLD_RANK -u PMIX_RANK -u PMI_RANK -u PMI_SIZE"
        self.shell(f"mpirun -n 4 its_rank {hide} rocprof-compute profile --output-directory {self.folder}/mpi_profile/%env{{MY_MPI_RANK}}% -- "
                   "./my_application -n 4096")
        self.assertEqual(sorted(path.name for path in (self.folder / "mpi_profile").iterdir()), ["r0", "r1", "r2", "r3"])
        self.assertTrue((self.folder / "mpi_profile" / "r3" / "pmc_perf_0.csv").exists())

    def test_rank_without_a_rank(self):
        said = self.shell(f"rocprof-compute profile --output-directory {self.folder}/one/%rank% -- ./laplace_eqn -n 4096")
        self.assertIn("%rank% is ignored: no rank of an MPI launcher was detected", said)
        self.assertTrue((self.folder / "one" / "pmc_perf_0.csv").exists())

    def test_the_launcher_after_the_dashes(self):
        said = self.shell("rocprof-compute profile --name my_app -- mpirun -n 4 ./my_application", code=125)
        self.assertIn("mpirun -n 4 rocprof-compute profile --name my_app -- ./my_application (CORRECT)", said.replace(" -n my_app", " --name my_app"))
        self.assertIn("(WRONG)", said)
        self.assertFalse((self.folder / "workloads").exists())
        self.shell("mpirun -n 4 rocprof-compute profile --name my_app -- ./my_application -n 4096")
        self.ranks_below("workloads", "my_app")

    def test_application_replay_of_a_program_of_mpi(self):
        # All counters: on the virtual GPU one run counts, and the run for the times cannot be made.
        self.mpi_app()
        said = self.shell("mpirun -n 4 rocprof-compute profile --name my_mpi_app -- ./my_mpi_app 4")
        self.assertEqual(said.count("called MPI_Init, which a rank can do once in its job"), 4, said)
        self.ranks_below("workloads", "my_mpi_app")

    def test_iteration_multiplexing(self):
        self.mpi_app()
        self.shell("mpirun -n 4 rocprof-compute profile --name my_mpi_app --iteration-multiplexing -- ./my_mpi_app 4")
        self.ranks_below("workloads", "my_mpi_app")

    def test_set(self):
        self.mpi_app()
        self.shell("mpirun -n 4 rocprof-compute profile --name my_mpi_app --set compute_thruput_util -- ./my_mpi_app 4")
        self.ranks_below("workloads", "my_mpi_app")

    def test_hostfile(self):
        (self.folder / "hosts.txt").write_text({"openmpi": "localhost slots=8\n", "mpich": "localhost:8\n"}[self.library])
        option = {"openmpi": "--hostfile", "mpich": "-f"}[self.library]  # mpich's own name; it takes --hostfile, too
        for word in dict.fromkeys(("--hostfile", option)):
            shutil.rmtree(self.folder / "nodes", ignore_errors=True)
            self.shell(f"mpirun -n 8 {word} hosts.txt rocprof-compute profile --output-directory {self.folder}/nodes/%hostname% -- ./my_application -n 4096")
            self.ranks_below("nodes", HOST, count=8)


class OtherTools:
    def test_the_launcher_below_tacho(self):
        # trace and sys follow the ranks of this machine into one file, in which tacho ranks finds them.
        self.mpi_app()
        for words in ("trace", "sys run"):
            self.shell(f"{TACHO} {words} -q --overwrite -o all.tacho -- mpirun -n 4 ./my_mpi_app 4")
            report = json.loads(self.run_command(TACHO, "ranks", "all.tacho", "--output-format", "json").stdout)
            self.assertEqual([rank["rank"] for rank in report["ranks"]], [0, 1, 2, 3])
            self.assertEqual([one["operation"] for one in report["collectives"]], ["barrier", "all_reduce", "all_reduce", "reduce"])
            self.assertEqual({(one["from"], one["to"]): one["messages"] for one in report["messages"]},
                             {(a, b): 4 for a in range(4) for b in (a - 1, a + 1) if 0 <= b < 4})

    def test_each_rank_below_its_launcher(self):
        self.mpi_app()
        for words, name in (("trace", "t"), ("sys run", "s")):
            self.shell(f"mpirun -n 4 {TACHO} {words} -q -o {name}.tacho -- ./my_mpi_app 4")
            files = [f"{name}.{rank}.tacho" for rank in range(4)]
            self.assertEqual(sorted(path.name for path in self.folder.glob(f"{name}.*")), files)
            report = json.loads(self.run_command(TACHO, "ranks", *files, "--output-format", "json").stdout)
            self.assertEqual(([rank["rank"] for rank in report["ranks"]], len(report["collectives"])), ([0, 1, 2, 3], 4))

    def test_rocprofv3(self):
        if not (TARGETS / "opencl_steps").exists():
            self.skipTest("no OpenCL program")
        steps = TARGETS / "opencl_steps"
        self.shell(f"mpirun -n 4 rocprofv3 --stats --sys-trace --kernel-trace --output-format pftrace -d out -- {steps}")
        traces = sorted((self.folder / "out").rglob("*.pftrace"))
        self.assertEqual(len(traces), 4, traces)  # one a process, with names of their own
        shutil.rmtree(self.folder / "out")
        self.shell(f"mpirun -n 4 rocprofv3 --stats --sys-trace --kernel-trace -d out -- {steps}")
        for kind in ("kernel_stats", "kernel_trace", "agent_info", "domain_stats"):
            self.assertEqual(len(list((self.folder / "out").rglob(f"*_{kind}.csv"))), 4, kind)

    def test_rocprof_sys(self):
        (self.folder / "rsp.cfg").write_text("ROCPROFSYS_TRACE = true\nROCPROFSYS_SAMPLING_FREQ = 50\n")
        (self.folder / "train.py").write_text("import subprocess, sys\nprint(sum(i * i for i in range(100000)))\n"
                                              f"subprocess.run([{str(EXAMPLES / 'vcopy')!r}, '-n', '4096'], check=True)\n")
        # Ranks that begin within milliseconds of their launcher find their folder, too.
        for _ in range(5):
            self.shell(f"mpirun -n 4 rocprof-sys-sample -c $RSP_CFG -I all -- {DEBIAN_PYTHON} $PROFILER_TOP_DIR/train.py",
                       RSP_CFG=str(self.folder / "rsp.cfg"), PROFILER_TOP_DIR=str(self.folder))
            made = [path for path in self.folder.glob("rocprof*-output/*") if path.is_dir()]
            self.assertEqual(len(made), 1, [sorted(path.name for path in one.iterdir()) for one in made])  # one folder for the job
            names = [path.name for path in made[0].iterdir()]
            for rank in range(4):
                self.assertIn(f"perfetto-trace-{rank}.proto", names)
            shutil.rmtree(made[0])


class OpenMpiProfile(Profile, Lines):
    library = "openmpi"


class MpichProfile(Profile, Lines):
    library = "mpich"


class OpenMpiTools(OtherTools, Lines):
    library = "openmpi"


class MpichTools(OtherTools, Lines):
    library = "mpich"


del Profile, OtherTools, Lines
if __name__ == "__main__":
    harness.main()
