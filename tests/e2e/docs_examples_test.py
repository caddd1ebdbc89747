"""Every command of tacho that README.md, docs/coming-from.md and docs/recipes.md name, and every one in a code block of another
page, is run as it stands there, in a folder with the files that the pages talk of."""
import gzip
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


# Commands whose output the pages show as it always is, since it is of a recorded file.
STABLE = re.compile(r"tacho merge rank\?|tacho query --explain run\.rpd|tacho ranks ranks4$")
# Commands of pages about one machine that cannot be run on another: what they need.
ELSEWHERE = {
    "a GPU": re.compile(r"workloads/train/H200|decode\.py|decode\.tacho|long\.tacho|--device 1\b|-p out-profile|--pmc dram__|--device-counters dram__"),
    "programs of that name (attach_test.py has these)": re.compile(r"tacho attach --name|/debug/tacho"),
    "a file of that hour (watch_sums_test.py has these)": re.compile(r"--before 14:00"),
    "DuckDB's or ClickHouse's program": re.compile(r"\| (duckdb|clickhouse) "),
}
# The number of the process that pages attach to: a program that runs while they are tried has it here.
RUNNING = "4711"
# A line that states how a command is called, and is none.
USAGE = re.compile(r"\[|\.\.\.|\bFILE\b|\bFORMAT\b|\bFOLDER\b|\bWHAT\b|\bREPORT\b|\bWHEN\b|\bNAME\b|\bIN OUT\b|\bA B\b|^tacho program|PROGRAM")


def blocks(page):
    """The code blocks of a page, fenced or indented, as lists of (line number, line)."""
    block, fenced = [], False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            block.append((number, line if fenced else line[4:]))
            continue
        if block and (line.startswith("```") or not fenced):
            yield block
            block = []


def commands_of(block):
    """The commands of tacho in a block, as [line number, command, [line that it prints]]. A command goes on in the next line while
    a quotation mark is open; several in a line stand apart."""
    found, quoted = [], False
    prompts = any(line.startswith("$ ") for _, line in block)  # what has none is output
    for number, line in block:
        if quoted:
            found[-1][1] += "\n" + line
            quoted = found[-1][1].count('"') % 2 == 1
            continue
        start = (r"\$ " if prompts else "") + r"((srun|torchrun) .*)?tacho "
        words = [re.split(r" +# ", each)[0] for each in re.split(r" {3,}", line) if re.match(r"(\$ )?((srun|torchrun) .*)?tacho ", each)]
        words = words if re.match(start, line) else []
        for each in words:
            found.append([number, each.removeprefix("$ ").strip(), []])
            quoted = each.count('"') % 2 == 1
        if not words and found:
            found[-1][2].append(line)
    return found


def commands(page):
    """The commands of a page, as (line number, block, command, lines that it prints): words in backticks, and lines of code blocks.
    Those of one block have its first line's number, to be run one after the other."""
    found, within = [], set()
    for block in blocks(page):
        within.update(number for number, _ in block)
        found += [(number, block[0][0], command, lines) for number, command, lines in commands_of(block) if not USAGE.search(command)]
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for word in re.findall(r"`(tacho [a-z]+ [^`]+)`", line) if number not in within else []:
            found.append((number, None, word.replace("\\|", "|"), []))
    return found


class Examples(harness.Case):
    world = running = None

    @classmethod
    def tearDownClass(cls):
        if cls.running is not None:
            cls.running.kill()
            cls.running.wait()
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
        traces, recorded = harness.DATA / "traces", harness.DATA / "ranks4"
        for name, target in (("program", world / "app"), ("vcopy", harness.EXAMPLES / "vcopy"), ("examples", SOURCE / "examples"),
                             ("build", harness.BUILD), ("ranks4", recorded), ("run.rpd", harness.DATA / "rpd" / "mytrace.rpd"),
                             ("qwen.json.gz", traces / "kineto_h100_qwen1.5-0.5b.json.gz"),
                             ("before", world / "workloads" / "before" / "virtual"), ("after", world / "workloads" / "after" / "virtual"),
                             *((f"rank{n}.json.gz", recorded / f"kineto_rank{n}.json.gz") for n in range(4))):
            os.symlink(target, world / name)
        for packed, name in (("kineto_h100_qwen1.5-0.5b", "trace.json"), ("rocprofv3_gfx950_results", "_results.json")):
            (world / name).write_bytes(gzip.decompress((traces / f"{packed}.json.gz").read_bytes()))
        (world / "job").mkdir()
        for file in (harness.DATA / "ranks4").iterdir():
            os.symlink(file, world / "job" / file.name)

        Examples.running = subprocess.Popen([harness.DEBIAN_PYTHON, "-c", "import time\nwhile True: time.sleep(0.01)"],
                                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def tacho(*words):
            self.run_command(TACHO, *words, cwd=world, timeout=300)
        tacho("trace", "-q", "-o", "app.tacho", "--", "./app")
        tacho("sys", "sample", "-o", "train.tacho", "--", harness.DEBIAN_PYTHON, "train.py")
        for name in ("before.tacho", "after.tacho", "run.tacho", "all.tacho", "t.tacho"):
            shutil.copy(world / "app.tacho", world / name)
        tacho("watch", "-o", "watch.tacho", "--", "./app")
        shutil.copy(world / "app.tacho", world / "watch-signal.tacho")
        tacho("convert", "rank3.json.gz", "rank3.tacho")
        tacho("export", "app.tacho", "-f", "pftrace")
        tacho("export", "app.tacho", "-f", "rocpd", "-o", "results.db")
        tacho("export", "app.tacho", "-f", "nsys-sqlite", "-o", "report1.sqlite")
        tacho("profile", "-q", "-n", "app", "--device", "virtual", "--", "./app")
        self.run_command(harness.BUILD / "personalities" / "rocprofv3", "--kernel-trace", "-d", "out", "--", "./app", cwd=world)
        for name in ("before", "after"):
            shutil.copytree(world / "workloads" / "app", world / "workloads" / name)

    def serve(self, command, folder):
        """Runs a command that serves until Ctrl-C; returns its exit code and messages."""
        process = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=folder, env=self.environment(),
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
        command = re.sub(rf"\b{RUNNING}\b", str(Examples.running.pid), command)
        command = re.sub(r"(--duration) [\d.]+(?=$|\s)", r"\1 1", command)  # a minute is no other than a second
        if re.match(r"tacho view (?!.* -o )", command):
            return self.serve(f"{command} --no-open", folder)
        if command.endswith(" --gui"):
            return self.serve(command, folder)
        result = subprocess.run(["bash", "-c", command], cwd=folder, env=self.environment(), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        said = result.stdout.decode(errors="replace")
        # The clock of a shared machine may make a rate look higher than its peak, which tacho roofline reports as an error.
        if command.startswith("tacho roofline") and result.returncode == 1 and "the value is not to be trusted" in said:
            return 0, said
        return result.returncode, said

    def check_page(self, name, least, inline=True):
        page = SOURCE / "docs" / name
        found = [each for each in commands(page) if inline or each[1] is not None]
        self.assertGreaterEqual(len(found), least)
        self.make_world()
        tried, faults, block, folder = set(), [], None, None
        for number, of_block, command, expected in found:
            if any(reason.search(command) for reason in ELSEWHERE.values()):
                continue
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
            elif STABLE.match(command):
                missing = [line for line in expected if line.strip() != "..." and line.rstrip() not in said.splitlines()]
                if missing or not expected:
                    faults.append(f"{name}:{number}: {command}\n  does not print " + "\n    ".join([*missing, "", said]))
        self.assertFalse(faults, "\n".join(faults))

    def test_coming_from(self):
        self.check_page("coming-from.md", 70)

    def test_recipes(self):
        self.check_page("recipes.md", 20)

    def test_pages(self):
        """The code blocks of every other page."""
        pages = [page.relative_to(SOURCE / "docs").as_posix() for page in (SOURCE / "docs").rglob("*.md")]
        for name in sorted(set(pages) - {"coming-from.md", "recipes.md"}):
            with self.subTest(name):
                self.check_page(name, 0, inline=False)

    def test_readme(self):
        self.check_page("../README.md", 13)


if __name__ == "__main__":
    harness.main()
