"""Every command of tacho that README.md, docs/coming-from.md and docs/recipes.md name is run as it stands there, in a folder with the files
that they talk of."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import engines
import harness
from harness import SOURCE, TACHO

APP = "#!/bin/sh\nexec {vcopy} -n 65536 -b 256 -i 8\n"
LAUNCHER = """#!/bin/sh
while [ "$1" != tacho ]; do shift; done
exec env {} "$@"
"""
TRAIN = """import time


def train():
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        sum(range(1000))


train()
"""


def commands(page):
    """The commands of a page, as (line number, block, command): words in backticks, and lines of code blocks. Those of one block
    have its first line's number, to be run one after the other."""
    block = None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            block = None if block else number
        elif block:
            found = re.match(r"(?:\$ )?((?:(?:srun|torchrun) .*)?\btacho .*)", line)
            if found:
                yield number, block, re.split(r" {3,}| +# ", found[1])[0].strip()
        else:
            for word in re.findall(r"`(tacho [a-z]+ [^`]+)`", line):
                yield number, None, word.replace("\\|", "|")


class Examples(harness.Case):
    world = None

    @classmethod
    def tearDownClass(cls):
        if cls.world is not None:
            shutil.rmtree(cls.world, ignore_errors=True)

    def environment(self):
        return {**os.environ, "PATH": f"{self.world}/bin:{harness.BUILD}/bin:{os.environ['PATH']}", "BROWSER": "true",
                "TACHO_DUCKDB": str(engines.library("duckdb"))}

    def make_world(self):
        """The files that the pages name."""
        if Examples.world is not None:
            return
        if harness.sanitized():
            self.skipTest("the pages are about what is shipped")
        harness.need_data()
        Examples.world = world = pathlib.Path(tempfile.mkdtemp(prefix="tacho-docs-"))
        (world / "app").write_text(APP.format(vcopy=harness.EXAMPLES / "vcopy"))
        (world / "app").chmod(0o755)
        (world / "train.py").write_text(TRAIN)
        os.symlink(harness.DATA / "traces" / "kineto_h100_qwen1.5-0.5b.json.gz", world / "trace.json.gz")
        os.symlink(harness.DATA / "traces" / "kineto_h100_qwen1.5-0.5b.json.gz", world / "before.json.gz")
        os.symlink(harness.DATA / "traces" / "kineto_mi300x_qwen1.5-0.5b.json.gz", world / "after.json.gz")
        os.symlink(harness.DATA / "ranks4", world / "ranks")
        shutil.copytree(harness.DATA / "workloads" / "vcopy", world / "workloads" / "vcopy")

        # Stand-ins for programs that this machine lacks: launchers that start one task, and servers.
        (world / "bin").mkdir()
        for name, script in (("srun", LAUNCHER.format("SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_NTASKS=2")),
                             ("torchrun", LAUNCHER.format("RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 TORCHELASTIC_RUN_ID=1")),
                             ("vllm", "#!/bin/sh\nexec ./app\n")):
            (world / "bin" / name).write_text(script)
            (world / "bin" / name).chmod(0o755)
        (world / "sglang").mkdir()
        (world / "sglang" / "launch_server.py").write_text("import sys\nassert sys.argv[1] == '--model-path'\n")
        (world / "job").mkdir()
        for file in (harness.DATA / "ranks4").iterdir():
            os.symlink(file, world / "job" / file.name)

        def tacho(*words):
            self.run_command(TACHO, *words, cwd=world, timeout=300)
        tacho("trace", "-q", "-o", "app.tacho", "--", "./app")
        tacho("sys", "sample", "-o", "train.tacho", "--", harness.DEBIAN_PYTHON, "train.py")
        for name in ("before.tacho", "after.tacho"):
            shutil.copy(world / "app.tacho", world / name)
        tacho("export", "app.tacho", "-f", "pftrace")
        tacho("export", "app.tacho", "-f", "rocpd", "-o", "results.db")
        tacho("profile", "-q", "-n", "app", "--device", "virtual", "--", "./app")
        for name in ("before", "after"):
            shutil.copytree(world / "workloads" / "app", world / "workloads" / name)

    def serve(self, command, folder):
        """Runs a command that serves until Ctrl-C; returns its exit code and messages."""
        process = subprocess.Popen(["bash", "-c", f"exec {command} --no-open"], cwd=folder, env=self.environment(),
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.set_blocking(process.stdout.fileno(), False)
        said, end = b"", time.monotonic() + 60
        while b"http://" not in said and process.poll() is None and time.monotonic() < end:
            said += process.stdout.read() or b""
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        code = process.wait(30)
        process.stdout.close()
        return (code if b"http://" in said else -1), said.decode()

    def run_example(self, command, folder):
        if re.match(r"tacho view (?!.* -o )", command):
            return self.serve(command, folder)
        result = subprocess.run(["bash", "-c", command], cwd=folder, env=self.environment(), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        return result.returncode, result.stdout.decode(errors="replace")

    def check_page(self, name, least):
        page = SOURCE / "docs" / name
        found = list(commands(page))
        self.assertGreaterEqual(len(found), least)
        self.make_world()
        tried, faults, block, folder = set(), [], None, None
        for number, of_block, command in found:
            if of_block is None:
                if command in tried:
                    continue
                tried.add(command)
            if of_block is None or of_block != block:
                folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
                subprocess.run(["cp", "-alT", self.world, folder], check=True)  # links: no command changes a file that it reads
                block = of_block
            code, said = self.run_example(command, folder)
            if code != 0:
                faults.append(f"{name}:{number}: {command}\n  exit code {code}: {said[-400:]}")
        self.assertFalse(faults, "\n".join(faults))

    def test_coming_from(self):
        self.check_page("coming-from.md", 70)

    def test_recipes(self):
        self.check_page("recipes.md", 20)

    def test_readme(self):
        self.check_page("../README.md", 13)


if __name__ == "__main__":
    harness.main()
