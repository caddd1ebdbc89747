"""The packages: the relocatable archive and the Debian package, each used in an empty Debian 12, and completion."""
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile

import harness
from harness import TACHO


class Packages(harness.Case):
    def setUp(self):
        super().setUp()
        if harness.sanitized():
            self.skipTest("a sanitizer build ships nowhere")

    def debian_root(self):
        """An empty Debian 12, made once a machine by debootstrap; skips where none can be made."""
        cache = pathlib.Path(os.environ.get("TACHO_TEST_CACHE", "/var/cache/tacho-tests"))
        root = cache / "debian12"
        if os.geteuid() != 0:
            self.skipTest("an empty Debian 12 root needs root rights (chroot)")
        if root.is_dir():
            return root
        if shutil.which("debootstrap") is None:
            self.skipTest("no empty Debian 12 root: debootstrap is not installed (scripts/packages.sh test)")
        cache.mkdir(parents=True, exist_ok=True)
        made = pathlib.Path(tempfile.mkdtemp(dir=cache))
        self.addCleanup(shutil.rmtree, made, ignore_errors=True)
        command = ["debootstrap", "--variant=minbase", "bookworm", str(made / "root")]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=400)
        if result.returncode != 0:
            self.skipTest(f"no empty Debian 12 root: debootstrap failed: {result.stdout.decode()[-300:]}")
        (made / "root").chmod(0o755)
        try:
            (made / "root").rename(root)
        except OSError:  # somebody else was faster
            self.assertTrue(root.is_dir())
        return root

    def empty_debian(self, name):
        """A copy of an empty Debian 12 with a program to trace in it."""
        root = self.folder / name
        subprocess.run(["cp", "-a", "--reflink=auto", str(self.debian_root()), str(root)], check=True)
        shutil.copy(harness.TARGETS / "lifecycle", root / "opt" / "lifecycle")
        return root

    def use_inside(self, root, first, personalities):
        """Runs `first` in the root, then uses tacho: trace, look, markers, no /proc but ours."""
        script = f"""set -e
{first}
tacho --version
tacho trace --quiet -o /tmp/t.tacho -- /opt/lifecycle normal 10
tacho stats /tmp/t.tacho --by marker --output-format csv
tacho info /tmp/t.tacho
tacho avail
ls {personalities}
{personalities}/rocprofv3 --version
"""
        harness.need_mounts()
        inside = "mount -t proc proc proc && mount -t tmpfs tmpfs dev && mkdir dev/shm && mount -t tmpfs tmpfs dev/shm && touch dev/null" \
                 " && exec chroot . /bin/sh -c \"$0\""
        result = self.run_command("unshare", "--mount", "--pid", "--fork", "sh", "-c", inside, script, cwd=root)
        text = result.stdout.decode()
        self.assertRegex(text, r"work,10,")
        self.assertIn("no libOpenCL.so.1", text)
        self.assertIn("/sys", text)  # not mounted: avail says what that costs
        self.assertIn("rocprof-compute", text)
        self.assertEqual(result.stderr.decode(), "standard error\n")  # the program's own

    def check_archive(self, archive):
        self.assertLess(os.path.getsize(archive), 25_000_000)
        with tarfile.open(archive) as tar:
            tar.extractall(self.folder)
        root = next(p for p in self.folder.iterdir() if p.is_dir() and p.name.startswith("tacho-"))
        moved = self.folder / "elsewhere"
        root.rename(moved)
        self.assertIn(b"tacho", self.run_command(moved / "bin" / "tacho", "--version").stdout)
        self.run_command(moved / "bin" / "tacho", "trace", "--quiet", "-o", "t.tacho", "--",
                         harness.TARGETS / "lifecycle", "normal", "10")
        self.assertEqual(self.calls("marker", "work"), 10)
        self.assertTrue((moved / "share" / "sample").is_dir())
        self.assertTrue((moved / "include" / "tacho" / "tacho.h").is_file())
        debian = self.empty_debian("archive")
        subprocess.run(["tar", "-C", str(debian / "opt"), "-xzf", archive], check=True)
        home = f"/opt/{next(p.name for p in (debian / 'opt').iterdir() if p.is_dir())}"
        self.use_inside(debian, f"export PATH={home}/bin:$PATH", f"{home}/libexec/tacho/personalities")

    def check_debian_package(self, package):
        fields = self.run_command("dpkg-deb", "--info", package).stdout.decode()
        self.assertLess(int(re.search(r"Installed-Size: (\d+)", fields)[1]), 40_000)  # KiB; links do not count as their targets
        files = self.run_command("dpkg-deb", "--contents", package).stdout.decode()
        for name in ("usr/bin/tacho", "usr/lib/libtacho.so", "usr/include/tacho/tacho.h", "usr/share/pkgconfig/tacho.pc",
                     "usr/share/man/man1/tacho.1.gz", "usr/share/man/man1/tacho-trace.1.gz",
                     "usr/share/bash-completion/completions/tacho", "usr/share/zsh/vendor-completions/_tacho",
                     "usr/share/fish/vendor_completions.d/tacho.fish", "usr/lib/python3/dist-packages/tacho/markers.py"):
            self.assertIn(f"./{name}\n", files)
        debian = self.empty_debian("installed")
        shutil.copy(package, debian / "opt" / "tacho.deb")
        self.use_inside(debian, "export PATH=/usr/sbin:/usr/bin:/sbin:/bin; dpkg -i /opt/tacho.deb >/dev/null",
                        "/usr/libexec/tacho/personalities")
        page = self.run_command("gzip", "-dc", debian / "usr/share/man/man1/tacho-trace.1.gz").stdout.decode()
        self.assertRegex(page, r'\.TH "TACHO-TRACE" "1"')
        self.assertEqual(re.findall(r"^prefix=.*", (debian / "usr/share/pkgconfig/tacho.pc").read_text(), re.M), ["prefix=/usr"])
        self.run_command(harness.DEBIAN_PYTHON, "-c", "import tacho; tacho.mark('x')",
                         env={"PYTHONPATH": str(debian / "usr/lib/python3/dist-packages")})

    def test_packages(self):
        archive, package = self.run_command(harness.SOURCE / "scripts" / "package.sh", self.folder, timeout=600).stdout.decode().split()[-2:]
        self.check_archive(archive)
        self.check_debian_package(package)

    def completions(self, *words):
        """bash's offers for the last of `words`, with the installed completion."""
        script = f"""source {harness.SOURCE}/share/completion/tacho.bash
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tacho; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
        return self.run_command("bash", "-c", script, "bash", TACHO, *words).stdout.decode().split()

    def test_bash_completion(self):
        self.assertEqual(self.completions("tra"), ["trace"])
        self.assertIn("--max-size", self.completions("trace", "--m"))
        self.assertIn("-o", self.completions("trace", "-"))
        (self.folder / "run.tacho").touch()
        self.assertEqual(self.completions("stats", "run"), ["run.tacho"])
        self.assertIn("run.tacho", self.completions("trace", "--", "cat", "run"))  # the program's own words


if __name__ == "__main__":
    harness.main()
