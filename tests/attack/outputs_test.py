"""Outputs: full disks, limits of file sizes, names that others want too, links. Either an output is whole, or the exit code is 125
(1 without a program) and a sentence says what there is under which name."""
import os
import resource
import signal
import stat
import subprocess

import attack
from attack import TARGETS, WORKLOAD, variants

QUOTA = TARGETS / "full_disk.so"


def file_limit(soft, hard=None):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, soft if hard is None else hard))


class FullDisk(attack.Attack):
    def full(self, *words, after, code, command=(WORKLOAD, "20000"), **more):
        return self.tacho(*words, "--", *command, code=code, env={"LD_PRELOAD": str(QUOTA), "QUOTA_BYTES": str(after)}, **more)

    @variants(at_once=0, early=20_000, later=60_000)
    def test_trace(self, after):
        result = self.full("trace", "--quiet", "-o", "t.tacho", after=after, code=125)
        self.sentence(result, "t.tacho", "No space left")
        self.told_name(result)

    @variants(csv="csv", json="json", pftrace="pftrace", rpd="rpd", rocpd="rocpd")
    def test_exports(self, form):
        result = self.full("trace", "--quiet", "-o", "t.tacho", "-f", form, after=200_000, code=125)
        self.told_name(result)

    def test_default_name(self):
        result = self.full("trace", "--quiet", after=50_000, code=125)
        self.told_name(result)

    def test_hidden_recording_is_not_named(self):
        result = self.full("trace", "--quiet", "-f", "csv", after=50_000, code=125)
        self.assertNotIn(f".{WORKLOAD.name}.", result.stderr.decode())
        self.told_name(result)

    def test_sys(self):
        result = self.full("sys", "run", "-o", "t.tacho", "--quiet", after=50_000, code=125)
        self.told_name(result)

    def test_code_of_the_program_is_told(self):
        result = self.full("trace", "--quiet", "-o", "t.tacho", after=20_000, code=125,
                           command=("/bin/sh", "-c", f"{WORKLOAD} 20000 >/dev/null; exit 3"))
        self.sentence(result, "code 3")

    def told_name(self, result):
        """The remaining file is not hidden, and its name is in the message; an incomplete trace names its losses."""
        left = [name for name in os.listdir(self.folder) if name not in ("pools",) and not name.startswith(".claim")]
        hidden = [name for name in left if name.startswith(".") or ".partial" in name]
        self.assertEqual(hidden, [])
        for name in left:
            if name.endswith(".tacho"):
                self.assertIn(name, result.stderr.decode())
                self.tacho("info", name)
        self.assertEqual(list(self.pools.iterdir()), [])

    @variants(soft=(200_000, resource.RLIM_INFINITY), hard=(200_000, 200_000))
    def test_file_limit(self, limits):
        """The soft limit is the program's; the hard one is tacho's, too."""
        if limits[1] != resource.RLIM_INFINITY and os.geteuid() == 0:
            prefix = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
            tacho, workload = self.for_everybody(WORKLOAD)
            self.pools.chmod(0o777)
        else:
            prefix, tacho, workload = [], attack.TACHO, WORKLOAD
        result = subprocess.run([*prefix, str(tacho), "trace", "--quiet", "-o", "t.tacho", "--", str(workload), "20000"],
                                capture_output=True, cwd=self.folder, env=self.environment(), timeout=60,
                                preexec_fn=file_limit(*limits))
        if limits[1] == resource.RLIM_INFINITY:
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(self.markers(), 20000 * 5 * 2)
        else:
            self.assertEqual(result.returncode, 125, result.stderr)
            self.assertIn(b"200000 bytes", result.stderr)
            self.assertIn(b"the hard limit", result.stderr)


class Standard(attack.Attack):
    """Answers into a full device, or to nobody."""
    COMMANDS = {"query": ("query", "t.tacho", "select * from rocpd_string"), "info": ("info", "t.tacho"), "stats": ("stats", "t.tacho"),
                "top": ("top", "t.tacho"), "help": ("--help",), "command_help": ("trace", "--help"), "version": ("--version",),
                "csv": ("stats", "t.tacho", "--output-format", "csv"), "json": ("query", "--output-format", "json", "t.tacho", "select 1")}

    @variants(**COMMANDS)
    def test_full_device(self, words):
        self.trace_of(WORKLOAD, "10")
        with open("/dev/full", "wb") as full:
            result = self.tacho(*words, code=1, stdout=full)
        self.sentence(result, "standard output")

    @variants(**COMMANDS)
    def test_closed_output(self, words):
        self.trace_of(WORKLOAD, "10")
        result = subprocess.run(
            ["/bin/sh", "-c", "t=$1; shift; \"$t\" \"$@\" >&-; echo $? >code", "sh", str(attack.TACHO), *words],
            cwd=self.folder, capture_output=True, timeout=30)
        self.assertEqual((self.folder / "code").read_text().strip(), "1", result.stderr)

    @variants(exit_0="0", exit_3="3")
    def test_closed_stderr(self, code):
        """Descriptors that are closed stay closed in the program, and nothing of ours is written into a file of that number."""
        script = self.folder / "script.sh"
        script.write_text(f"#!/bin/sh\nls /proc/self/fd | tr '\\n' ' ' >fds\n{WORKLOAD} 10 >out\nexit {code}\n")
        script.chmod(0o755)
        for closing, expected in ((">&- 2>&-", "0 3"), ("2>&-", "0 1 3"), ("<&- >&- 2>&-", "0 1")):
            result = subprocess.run(["/bin/sh", "-c", f"'{attack.TACHO}' trace --overwrite -o t.tacho -- ./script.sh {closing}; echo $? >code"],
                                    cwd=self.folder, env=self.environment(), capture_output=True, timeout=30)
            self.assertEqual((self.folder / "code").read_text().strip(), code, (closing, result.stderr))
            plain = subprocess.run(["/bin/sh", "-c", f"./script.sh {closing}"], cwd=self.folder, capture_output=True, timeout=30)
            self.assertEqual(plain.returncode, int(code))
            self.assertEqual(self.markers(), 100)


class Names(attack.Attack):
    def parallel(self, count, *words):
        running = [self.start("trace", *words, "--", TARGETS / "runs", f"r{i}", "0.5") for i in range(count)]
        ended = []
        for process in running:
            out, err = process.communicate(timeout=60)
            ended.append((process.returncode, err.decode()))
        self.nothing_left()
        return ended

    @variants(two=2, eight=8)
    def test_default_names_at_once(self, count):
        ended = self.parallel(count)
        self.assertEqual([code for code, _ in ended], [0] * count, ended)
        names = sorted(path.name for path in self.folder.glob("*.tacho"))
        self.assertEqual(len(names), count, names)
        for name in names:
            self.assertGreater(self.markers(name), 0)

    @variants(two=2, eight=8)
    def test_one_explicit_name(self, count):
        ended = self.parallel(count, "-o", "same.tacho")
        self.assertEqual(sorted(code for code, _ in ended), [0] + [125] * (count - 1), ended)
        self.assertGreater(self.markers("same.tacho"), 0)
        # A refused run has not started its program.
        self.assertEqual(len(list(self.folder.glob("r[0-9]"))), 1)

    @variants(pftrace="pftrace", json="json", rpd="rpd")
    def test_default_names_of_exports(self, form):
        ended = self.parallel(4, "-f", form)
        self.assertEqual([code for code, _ in ended], [0] * 4, ended)
        files = [path.name for path in self.folder.iterdir() if path.suffix not in (".tacho", "") and path.is_file()]
        self.assertEqual(len(files), 4, files)

    def test_one_overwritten_name(self):
        self.trace_of(WORKLOAD, "1", output="same.tacho")
        ended = self.parallel(3, "-o", "same.tacho", "--overwrite")
        self.assertEqual(sorted(code for code, _ in ended), [0, 125, 125], ended)

    def test_sys_at_once(self):
        running = [self.start("sys", "run", "--", TARGETS / "runs", f"r{i}", "0.3") for i in range(4)]
        for process in running:
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0)
        self.assertEqual(len(list(self.folder.glob("*.tacho"))), 4)
        self.nothing_left()

    def test_killed_claim_is_free_again(self):
        tacho = self.start("trace", "-o", "t.tacho", "--", TARGETS / "runs", "ready")
        self.wait_for((self.folder / "ready").exists)
        os.killpg(tacho.pid, signal.SIGKILL)
        tacho.wait()
        self.trace_of(WORKLOAD, "5")
        self.assertEqual(self.markers(), 50)

    @variants(trace=(), overwrite=("--overwrite",))
    def test_dangling_link(self, options):
        (self.folder / "t.tacho").symlink_to("nowhere/t.tacho")
        result = self.trace_of("/usr/bin/touch", "ran", options=options, code=125)
        self.sentence(result, "link")
        self.assertFalse((self.folder / "ran").exists())
        self.assertTrue((self.folder / "t.tacho").is_symlink())

    def test_dangling_link_of_an_export(self):
        self.trace_of(WORKLOAD, "5")
        (self.folder / "out.json").symlink_to("nowhere.json")
        self.sentence(self.tacho("export", "t.tacho", "-f", "json", "-o", "out.json", code=1), "link")

    @variants(rpd="rpd", rocpd="rocpd")
    def test_databases_and_links(self, form):
        self.trace_of(WORKLOAD, "5")
        export = ["export", "t.tacho", "-f", form, "-o", "out.db"]
        link = self.folder / "out.db"
        link.symlink_to("nowhere.db")
        self.sentence(self.tacho(*export, code=1), "link")
        link.unlink()
        (self.folder / "outside").mkdir()
        (self.folder / "outside/precious").write_text("precious")
        link.symlink_to("outside/precious")
        self.sentence(self.tacho(*export, "--overwrite", code=1), "precious")
        self.assertEqual((self.folder / "outside/precious").read_text(), "precious")
        link.unlink()
        (self.folder / "real.db").write_text("old")
        link.symlink_to("real.db")
        self.tacho(*export, "--overwrite")
        self.assertTrue(link.is_symlink())
        self.assertTrue((self.folder / "real.db").read_bytes().startswith(b"SQLite format 3"))

    @variants(private=0o600, group=0o640, all=0o666)
    def test_overwrite_keeps_the_mode(self, mode):
        for form, file in (("tacho", "t.tacho"), ("json", "t.json"), ("rpd", "t.rpd")):
            self.trace_of(WORKLOAD, "5", options=["--overwrite", "-f", "tacho,json,rpd"])
            (self.folder / file).chmod(mode)
            self.trace_of(WORKLOAD, "5", options=["--overwrite", "-f", "tacho,json,rpd"])
            self.assertEqual(stat.S_IMODE((self.folder / file).stat().st_mode), mode, form)

    def test_overwrite_stays_in_its_folder(self):
        outside = self.folder / "outside"
        outside.mkdir()
        (outside / "precious").write_text("precious")
        (self.folder / "t.tacho").symlink_to("outside/precious")
        result = self.trace_of(WORKLOAD, "5", options=["--overwrite"], code=125)
        self.sentence(result, "precious")
        self.assertEqual((outside / "precious").read_text(), "precious")

    def test_overwrite_follows_a_link_beside(self):
        self.trace_of(WORKLOAD, "5", output="real.tacho")
        (self.folder / "t.tacho").symlink_to("real.tacho")
        self.trace_of(WORKLOAD, "6", options=["--overwrite"])
        self.assertTrue((self.folder / "t.tacho").is_symlink())
        self.assertEqual(self.markers("real.tacho"), 60)

    @variants(escape="a\x1b[31mb.tacho", newline="a\nb.tacho", invalid=os.fsdecode(b"a\xff\xfe.tacho"), long="x" * 240 + ".tacho",
              dash="--.tacho", space="a b.tacho", colon="a:b.tacho", percent="a%s%n.tacho", quote="a'\";b.tacho")
    def test_strange_names(self, name):
        self.trace_of(WORKLOAD, "5", output=f"./{name}")
        self.assertEqual(self.markers(f"./{name}"), 50)
        self.nothing_left()


if __name__ == "__main__":
    attack.main()
