"""The scripts of examples/scripts: alone, under Open MPI, and with the environment that srun gives its tasks; and the README's two
commands in their order."""
import os
import shutil
import unittest

import harness
from harness import BUILD, SOURCE

STEPS = harness.TARGETS / "opencl_steps"
SCRIPTS = SOURCE / "examples" / "scripts"
PATH = {"PATH": f"{BUILD / 'personalities'}:{os.environ['PATH']}"}

# Stands for srun where no Slurm is: starts SLURM_NTASKS tasks with the variables that srun sets.
SRUN = """#!/bin/sh
failed=0
for rank in $(seq 0 $((SLURM_NTASKS - 1))); do
  SLURM_PROCID=$rank SLURM_LOCALID=$rank "$@" &
  pids="$pids $!"
done
for pid in $pids; do wait "$pid" || failed=$?; done
exit $failed
"""


class Scripts(harness.Case):
    def test_kernels(self):
        result = self.run_command(SCRIPTS / "kernels.sh", STEPS, "--steps", "2", env={**PATH, "PROFILE_DIR": "here"})
        text = result.stdout.decode()
        self.assertIn("done 2", text)
        self.assertRegex(text, r'here/\d+_kernel_stats\.csv\n"Name","Calls"')
        self.assertIn('"copy_values",4,', text)
        self.assertIn('"scale(float*, int)",2,', text)

    def test_kernels_passes_the_exit_code_on(self):
        self.run_command(SCRIPTS / "kernels.sh", STEPS, "--code", "6", env=PATH, code=6)
        self.run_command(SCRIPTS / "kernels.sh", code=2)
        result = self.run_command(SCRIPTS / "kernels.sh", "/bin/true", env={"PATH": "/usr/bin:/bin"}, code=127)
        self.assertIn(b"rocprofv3", result.stderr)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun (Debian: openmpi-bin)")
    def test_mpi(self):
        env = {**PATH, "PROFILE_DIR": "mpi", "MPIRUN": "mpirun --allow-run-as-root --oversubscribe"}
        result = self.run_command(SCRIPTS / "mpi_kernels.sh", "4", STEPS, "--steps", "2", env=env)
        text = result.stdout.decode()
        for rank in range(4):
            self.assertRegex(text, rf"mpi/rank{rank}_\d+_kernel_stats\.csv +6 dispatches +\d+\.\d+ ms")

    def test_slurm(self):
        (self.folder / "srun").write_text(SRUN)
        (self.folder / "srun").chmod(0o755)
        env = {**PATH, "PROFILE_DIR": str(self.folder / "slurm"), "SRUN": str(self.folder / "srun"), "SLURM_JOB_ID": "815", "SLURM_NTASKS": "4"}
        self.run_command(SCRIPTS / "slurm_kernels.sh", STEPS, "--steps", "2", env=env)
        names = sorted(p.name for p in (self.folder / "slurm" / "815").iterdir())
        for rank in range(4):
            self.assertIn(f"task{rank}_kernel_stats.csv", names)
            self.assertIn(f"task{rank}_results.pftrace", names)

    def test_tests_after_quickstart(self):
        """scripts/test.sh in a build folder that scripts/quickstart.sh made, which leaves the tests out: of a small project here."""
        shutil.copytree(SOURCE / "scripts", self.folder / "scripts")
        shutil.copy(SOURCE / "CMakePresets.json", self.folder)
        (self.folder / "scripts" / "packages.sh").write_text("#!/bin/sh\n")
        (self.folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.20)\nproject(small NONE)\noption(TACHO_TESTS \"\" ON)\noption(TACHO_BENCH \"\" ON)\n"
            "enable_testing()\nif(TACHO_TESTS AND TACHO_BENCH)\n  add_test(NAME one COMMAND true)\nendif()\n"
            "add_custom_target(product COMMAND mkdir -p bin COMMAND ln -sf /bin/true bin/tacho)\n")
        self.run_command(self.folder / "scripts" / "quickstart.sh")
        text = self.run_command(self.folder / "scripts" / "test.sh").stdout.decode()
        self.assertIn("100% tests passed, 0 tests failed out of 1", text)


if __name__ == "__main__":
    harness.main()
