"""Runs of several ranks under Debian's Open MPI, and --ranks under any launcher's variables."""
import os
import re
import shutil
import unittest

import harness
from harness import BUILD, EXAMPLES, TACHO

MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe")
NO_RANK = {name: "" for name in ("OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "FLUX_TASK_RANK", "PALS_RANKID",
                                 "SLURM_PROCID", "MPI_RANK")}
VCOPY = EXAMPLES / "vcopy"


def mpi(*words):
    if shutil.which("mpirun") is None:
        raise unittest.SkipTest("mpirun is not installed (Debian package openmpi-bin)")
    return (*MPIRUN, *words)


class ChosenRanks(harness.Case):
    def run_rank(self, rank, *words, code=0):
        env = {**NO_RANK, **({"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "4"} if rank is not None else {})}
        return self.run_command(TACHO, *words, code=code, env=env)

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())

    def test_only_chosen_ranks_are_recorded(self):
        for option in ("--ranks", "--profile-mpi-ranks"):
            for rank in range(4):
                self.run_rank(rank, "trace", "-q", "-o", f"{option[2:]}.tacho", option, "0,2-3", "--", "/bin/sh", "-c", "exit 5", code=5)
            self.assertEqual([name for name in self.files() if name.startswith(option[2:])],
                             [f"{option[2:]}.{rank}.tacho" for rank in (0, 2, 3)])

    def test_sys_and_profile_know_the_option(self):
        self.run_rank(1, "sys", "run", "--ranks", "0", "-q", "--", "/bin/sh", "-c", "exit 6", code=6)
        said = self.run_rank(1, "profile", "--ranks", "0,2", "-n", "x", "--device", "cpu", "--", VCOPY, "-n", "4096")
        self.assertNotIn(b"[profiling]", said.stderr)
        self.assertEqual(self.files(), [])

    def test_how_the_program_of_another_rank_ended(self):
        for end, told in (("exit 3", "; exited with code 3  t.1.tacho"), ("kill -9 $$", "; ended by signal 9  t.1.tacho")):
            said = self.run_rank(1, "trace", "-o", "t.tacho", "--overwrite", "--", "/bin/sh", "-c", end, code=None).stderr.decode()
            self.assertRegex(said, rf"^tacho  rank 1 of 4: program [0-9.]+ m?s, 0 kernels, 0 calls{re.escape(told)}\n$")

    def test_bad_lists(self):
        for text, needle in (("", "is no rank"), ("a", "'a' is no rank"), ("1,", "'' is no rank"), ("3-1", "ends before it begins"), ("-1", "no rank"),
                             ("0-99999999999999999999", "no rank")):
            if text:
                self.one_sentence(self.run_rank(0, "trace", "-q", f"--ranks={text}", "--", "/bin/true", code=125), "--ranks", needle)

    def test_without_a_rank_it_is_ignored_and_said(self):
        said = self.run_rank(None, "trace", "-q", "-o", "t.tacho", "--ranks", "3", "--", "/bin/true")
        self.one_sentence(said, "--ranks 3 is ignored", "no launcher told this process its rank")
        self.assertEqual(self.files(), ["t.tacho"])


class OpenMpi(harness.Case):
    def test_each_rank_has_its_file(self):
        self.run_command(*mpi("-n", "3"), TACHO, "trace", "-q", "-o", "t.tacho", "--", VCOPY, "-n", "4096")
        self.assertEqual(sorted(path.name for path in self.folder.glob("*.tacho")), [f"t.{rank}.tacho" for rank in range(3)])

    def test_ranks_option(self):
        self.run_command(*mpi("-n", "4"), TACHO, "trace", "-q", "-o", "t.tacho", "--ranks", "1,3", "--", VCOPY, "-n", "4096")
        self.assertEqual(sorted(path.name for path in self.folder.glob("*.tacho")), ["t.1.tacho", "t.3.tacho"])

    def test_rocprof_sys_makes_one_folder(self):
        name = BUILD / "personalities" / "rocprof-sys-sample"
        os.symlink(TACHO, self.folder / "rocprof-sys-sample") if not name.exists() else None
        program = name if name.exists() else self.folder / "rocprof-sys-sample"
        output = self.folder / "rocprof-sys-vcopy-output"
        for count in (1, 2):  # a second job of the same minute gets its own folder
            self.run_command(*mpi("-n", "4"), program, "--", VCOPY, "-n", "4096")
            runs = [path for path in output.iterdir() if path.is_dir()]
            self.assertEqual(len(runs), count, runs)
            for run in runs:
                traces = sorted(path.name for path in run.iterdir() if path.name.endswith(".proto"))
                self.assertEqual(traces, [f"perfetto-trace-{rank}.proto" for rank in range(4)])

    def summaries(self, *words, code=0):
        """The lines of stderr by which a job's ranks sum up their runs: the whole summary's text, and the others' lines by rank."""
        said = self.run_command(*mpi("-n", "4"), TACHO, *words, code=code).stderr.decode()
        lines = {int(found[1]): found[0] for found in re.finditer(r"^tacho  rank (\d+) of 4: .*$", said, re.MULTILINE)}
        return said, lines

    def test_one_summary_for_all_ranks(self):
        for words in (("trace", "-o", "t.tacho"), ("sys", "run", "-o", "out")):
            said, lines = self.summaries(*words, "--", VCOPY, "-n", "4096")
            self.assertEqual(sorted(lines), [1, 2, 3], said)
            self.assertEqual(said.count("Kernels ("), 1, said)
            self.assertIn("  rank 0 of 4; every other recorded rank has one line\n", said)
            for line in lines.values():
                self.assertRegex(line, r": run of [0-9.]+ [mu]?s, program [0-9.]+ m?s, 1 kernel, 25 calls  ")
            self.assertNotIn("tacho ranks", said)  # no collective, no message: it would have nothing to say
        said, lines = self.summaries("trace", "-o", "s.tacho", "--ranks", "1,3", "--", VCOPY, "-n", "4096")
        self.assertEqual(sorted(lines), [3], said)
        self.assertRegex(lines[3], r"tacho  rank 3 of 4: run of [0-9.]+ [mu]?s, program [0-9.]+ m?s, 1 kernel, 25 calls  s\.3\.tacho$")
        self.assertIn("  rank 1 of 4; every other", said)

    def test_each_rank_says_what_it_lost(self):
        said, lines = self.summaries("trace", "-o", "t.tacho", "--max-size", "1K", "--", VCOPY, "-n", "4096")
        for rank in (1, 2, 3):
            self.assertRegex(said, rf"(?m)^{re.escape(lines[rank])}\n  1 dispatch record: --max-size reached\n")

    def test_ranks_without_collectives_say_so(self):
        self.run_command(*mpi("-n", "2"), TACHO, "trace", "-q", "-o", "t.tacho", "--", VCOPY, "-n", "4096")
        self.one_sentence(self.run_command(TACHO, "ranks", self.folder, code=1), "no collective among the", "2 ranks")


if __name__ == "__main__":
    harness.main()
