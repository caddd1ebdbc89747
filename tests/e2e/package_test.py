"""The packages, each installed, used and removed: the archive, .deb and .rpm in an empty Debian 12, the wheel in a fresh
environment of Python, the container file. They are made by the steps of the release workflow. And completion."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tarfile
import tempfile

import yaml

import harness
from harness import TACHO


WORKFLOW = harness.SOURCE / ".github" / "workflows" / "release.yml"
VERSION = re.search(r"project\(tacho VERSION ([0-9.]+)", (harness.SOURCE / "CMakeLists.txt").read_text())[1]


class Packages(harness.Case):
    made = None  # the folder with the packages, made once for all tests
    debian = None  # an empty Debian 12, likewise

    def setUp(self):
        super().setUp()
        if harness.sanitized():
            self.skipTest("a sanitizer build ships nowhere")

    @classmethod
    def tearDownClass(cls):
        for folder in filter(None, (cls.made, cls.debian)):
            shutil.rmtree(folder, ignore_errors=True)

    def step(self, name, folder, code=0, **environment):
        """Runs a step of the release workflow in the folder."""
        job = yaml.safe_load(WORKFLOW.read_text())["jobs"]["release"]
        steps = {step["name"]: step for step in job["steps"]}
        self.assertEqual(list(steps), ["tools", "source", "check", "packages", "checksums", "publish"])  # each has its test
        self.assertEqual(steps[name].get("working-directory"), None if name in ("tools", "source") else "tacho")  # git's folder
        self.assertLessEqual(set(environment), set(job["env"]) | {"PATH"})
        return self.run_command(job["defaults"]["run"]["shell"], "-e", "-o", "pipefail", "-c", steps[name]["run"], cwd=folder, code=code,
                                env=environment, timeout=600)

    def packages(self):
        """The folder with the packages, as the release workflow makes them of the build that there is."""
        if Packages.made is None:
            folder = pathlib.Path(tempfile.mkdtemp(prefix="tacho-packages-"))
            Packages.made = folder
            names = self.step("packages", harness.SOURCE, DIST=str(folder)).stdout.decode().split()
            self.assertEqual(sorted(names), sorted(str(path) for path in folder.iterdir()))
        return Packages.made

    def package(self, pattern):
        found = list(self.packages().glob(pattern))
        self.assertEqual(len(found), 1, pattern)
        return found[0]

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

    def copy_debian(self):
        """The shell's words that copy an empty Debian 12 into the current folder, without what no program reads."""
        return f"tar -C {self.debian_root()} --exclude=./var/cache/apt --exclude=./var/lib/apt --exclude=./usr/share/locale" \
               " --exclude=./usr/share/doc -cf - . | tar -xf -"

    def empty_debian(self):
        """An empty Debian 12 with a program to trace in it; every test removes what it installs there."""
        if Packages.debian is None:
            words = self.copy_debian()
            Packages.debian = pathlib.Path(tempfile.mkdtemp(prefix="tacho-debian-"))
            Packages.debian.chmod(0o755)
            self.run_command("sh", "-c", words, cwd=Packages.debian)
            shutil.copy(harness.TARGETS / "lifecycle", Packages.debian / "opt" / "lifecycle")
        return Packages.debian

    def run_inside(self, script, before="cd " + '"$1"', root=None):
        """Runs a shell script in the root: no /proc but its own, no /sys. `before` makes the root the current folder."""
        harness.need_mounts()
        inside = f"set -e; {before}; mount -t proc proc proc; mount -t tmpfs tmpfs dev; mkdir dev/shm; mount -t tmpfs tmpfs dev/shm;" \
                 " touch dev/null; exec chroot . /bin/sh -c \"$0\""
        return self.run_command("unshare", "--mount", "--pid", "--fork", "sh", "-c", inside, script, root or self.empty_debian())

    def use(self, path, personalities, **how):
        """Uses tacho in a root: trace, look, markers. path: the shell's words that put it into PATH."""
        result = self.run_inside(f"""set -e
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
{path}
tacho --version
tacho trace --quiet -o /tmp/t.tacho -- /opt/lifecycle normal 10
tacho stats /tmp/t.tacho --by marker --output-format csv
tacho info /tmp/t.tacho
rm /tmp/t.tacho
tacho avail
ls {personalities}
{personalities}/rocprofv3 --version
""", **how)
        text = result.stdout.decode()
        self.assertRegex(text, r"work,10,")
        self.assertIn("no libOpenCL.so.1", text)
        self.assertIn("/sys", text)  # not mounted: avail says what that costs
        self.assertIn("rocprof-compute", text)
        return text, result.stderr.decode()

    def leftovers(self, root):
        """Files of tacho in the root."""
        return [path for path in root.rglob("*tacho*") if path.relative_to(root).parts[0] not in ("tmp", "opt", "var")]

    def test_archive(self):
        archive = self.package("*.tar.gz")
        self.assertLess(archive.stat().st_size, 25_000_000)
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
        self.check_header(moved / "share" / "pkgconfig", moved / "include")
        debian = self.empty_debian()
        self.run_command("tar", "-C", debian / "opt", "-xzf", archive)
        name = next(p.name for p in (debian / "opt").iterdir() if p.is_dir())
        self.addCleanup(shutil.rmtree, debian / "opt" / name)
        _, messages = self.use(f"export PATH=/opt/{name}/bin:$PATH", f"/opt/{name}/libexec/tacho/personalities")
        self.assertEqual(messages, "standard error\n")  # the program's own

    def check_header(self, pkgconfig, include):
        """pkg-config names the folder where the header is."""
        if shutil.which("pkg-config") is None:
            self.skipTest("pkg-config is not installed")
        flags = self.run_command("pkg-config", "--cflags", "tacho", env={"PKG_CONFIG_PATH": str(pkgconfig)}).stdout.decode()
        flags = shlex.split(flags)
        self.assertEqual([pathlib.Path(flag[2:]).resolve() for flag in flags], [include.resolve()])
        self.assertTrue((include / "tacho" / "tacho.h").is_file())

    def test_debian_package(self):
        package = self.package("*.deb")
        fields = self.run_command("dpkg-deb", "--info", package).stdout.decode()
        self.assertLess(int(re.search(r"Installed-Size: (\d+)", fields)[1]), 40_000)  # KiB; links do not count as their targets
        files = self.run_command("dpkg-deb", "--contents", package).stdout.decode()
        for name in ("usr/bin/tacho", "usr/lib/libtacho.so", "usr/include/tacho/tacho.h", "usr/share/pkgconfig/tacho.pc",
                     "usr/share/man/man1/tacho.1.gz", "usr/share/man/man1/tacho-trace.1.gz",
                     "usr/share/bash-completion/completions/tacho", "usr/share/zsh/vendor-completions/_tacho",
                     "usr/share/fish/vendor_completions.d/tacho.fish", "usr/lib/python3/dist-packages/tacho/markers.py"):
            self.assertIn(f"./{name}\n", files)
        debian = self.empty_debian()
        shutil.copy(package, debian / "opt" / "tacho.deb")
        self.addCleanup(os.remove, debian / "opt" / "tacho.deb")
        path = "export PATH=/usr/sbin:/usr/bin:/sbin:/bin"
        self.addCleanup(self.run_inside, f"{path}; dpkg --purge tacho >/dev/null 2>&1")
        _, messages = self.use("dpkg -i /opt/tacho.deb >/dev/null", "/usr/libexec/tacho/personalities")
        self.assertEqual(messages, "standard error\n")
        page = self.run_command("gzip", "-dc", debian / "usr/share/man/man1/tacho-trace.1.gz").stdout.decode()
        self.assertRegex(page, r'\.TH "TACHO-TRACE" "1"')
        self.assertEqual(re.findall(r"^prefix=.*", (debian / "usr/share/pkgconfig/tacho.pc").read_text(), re.M), ["prefix=/usr"])
        self.run_command(harness.DEBIAN_PYTHON, "-c", "import tacho; tacho.mark('x')",
                         env={"PYTHONPATH": str(debian / "usr/lib/python3/dist-packages")})
        self.run_inside(f"{path}; dpkg --purge tacho >/dev/null")
        self.assertEqual(self.leftovers(debian), [])

    def test_rpm(self):
        package = self.package("*.rpm")
        requires = self.run_command("rpm", "-qp", "--requires", package).stdout.decode().splitlines()
        self.assertEqual([name for name in requires if not name.startswith("rpmlib(")], ["libc.so.6(GLIBC_2.34)(64bit)"])
        debian = self.empty_debian()
        rpm = ["rpm", "--root", debian]
        self.run_command(*rpm, "--initdb")
        self.addCleanup(self.run_command, *rpm, "--erase", "tacho", code=None)
        self.run_command(*rpm, "--install", "--nodeps", package)  # this Debian's own glibc came without rpm
        _, messages = self.use(":", "/usr/libexec/tacho/personalities")
        self.assertEqual(messages, "standard error\n")
        page = self.run_command("gzip", "-dc", debian / "usr/share/man/man1/tacho-trace.1.gz").stdout.decode()
        self.assertRegex(page, r'\.TH "TACHO-TRACE" "1"')
        self.assertTrue((debian / "usr/share/zsh/site-functions/_tacho").is_file())
        self.assertEqual(self.run_command(*rpm, "--verify", "--nodeps", "tacho").stdout, b"")
        self.run_command(*rpm, "--erase", "tacho")
        self.assertEqual(self.leftovers(debian), [])

    def test_wheel(self):
        wheel = self.package("*.whl")
        self.assertRegex(wheel.name, r"^tacho-[0-9.]+-py3-none-manylinux_2_34_x86_64\.whl$")  # as wheel.py finds the symbols
        place = self.folder / "with space" / "venv"
        self.run_command(harness.DEBIAN_PYTHON, "-m", "venv", place)
        before = {path for path in place.rglob("*") if "__pycache__" not in path.parts}
        environment = {"PATH": f"{place}/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
        self.run_command("pip", "install", "--quiet", "--no-index", "--no-compile", "--disable-pip-version-check", wheel, env=environment)
        (self.folder / "app.py").write_text("import tacho\n"
                                            "for _ in range(5):\n"
                                            "    with tacho.range('step'):\n"
                                            "        assert tacho.active()\n")
        self.assertEqual(self.run_command("tacho", "--version", env=environment).stdout,
                         self.run_command(TACHO, "--version").stdout)
        traced = self.run_command("tacho", "trace", "--quiet", "--torch-trace", "-o", "t.tacho", "--", "python3", "app.py",
                                  env=environment)
        self.assertIn(b"no process of the program imported PyTorch", traced.stderr)  # so the hooks were found
        self.assertEqual(self.calls("marker", "step"), 5)
        self.run_command("tacho", "view", "t.tacho", "-o", "page.html", env=environment)
        self.assertGreater((self.folder / "page.html").stat().st_size, 100_000)
        personalities = place / "libexec" / "tacho" / "personalities"
        for name in os.listdir(harness.BUILD / "personalities"):
            self.assertTrue(os.access(personalities / name, os.X_OK), name)
        self.assertIn(b"rocprofv3", self.run_command(personalities / "rocprofv3", "--help", env=environment).stdout)
        self.check_header(place / "share" / "pkgconfig", place / "include")
        self.run_command("pip", "uninstall", "--quiet", "--yes", "tacho", env=environment)
        after = {path for path in place.rglob("*") if "__pycache__" not in path.parts}
        self.assertEqual([path for path in after - before if path.is_file()], [])

    def test_container(self):
        """The image of the container file, built by buildah on an empty Debian 12. Where the machine does not let buildah
        work, the file's steps are run in that root."""
        if os.geteuid() != 0:
            self.skipTest("an empty Debian 12 root needs root rights (chroot)")
        folder, lifecycle = self.packages(), harness.TARGETS / "lifecycle"
        for driver in ("overlay", "vfs"):
            storage = f"buildah --root {self.folder}/{driver} --runroot {self.folder}/run-{driver} --storage-driver {driver}"
            # All mounts of buildah end with the namespace.
            build = f"""exec 3>&1 >&2
base=$({storage} from scratch)
cd "$({storage} mount $base)"
{self.copy_debian()}
cd /
{storage} commit --rm $base localhost/debian
{storage} build --isolation chroot --build-arg BASE=localhost/debian -t localhost/tacho {folder}
cd "$({storage} mount $({storage} from localhost/tacho))"
exec >&3
test -z "$(ls tmp)"
cp {lifecycle} opt"""
            tried = subprocess.run(["unshare", "--mount", "sh", "-c", f"set -e; {storage} mount $({storage} from scratch); {storage} rm --all"],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if tried.returncode == 0:
                text, _ = self.use(":", "/usr/libexec/tacho/personalities", before=build, root="/")
                break
        else:
            print(f"buildah does not work here: {tried.stdout.decode()[-300:]}")
            debian = self.empty_debian()
            shutil.copy(self.package("*.deb"), debian / "tmp")
            steps = [line[4:] for line in (folder / "Containerfile").read_text().splitlines() if line.startswith("RUN ")]
            self.assertTrue(steps)
            path = "export PATH=/usr/sbin:/usr/bin:/sbin:/bin"
            self.addCleanup(self.run_inside, f"{path}; dpkg --purge tacho >/dev/null 2>&1")
            text, _ = self.use("(" + "\n".join(steps) + ") >&2", "/usr/libexec/tacho/personalities")
            self.assertEqual(list((debian / "tmp").iterdir()), [])
        self.assertIn(self.run_command(TACHO, "--version").stdout.decode(), text)

    def origin(self):
        """A repository of the files that git tracks here, tagged as the release of their version."""
        folder = self.folder / "origin"
        folder.mkdir()
        names = self.run_command("git", "-C", harness.SOURCE, "ls-files", "-z", "--cached", "--others", "--exclude-standard").stdout
        self.run_command("tar", "-C", harness.SOURCE, "--null", "-T", "-", "--ignore-failed-read", "-cf", self.folder / "files.tar", input=names)
        self.run_command("tar", "-C", folder, "-xf", self.folder / "files.tar")
        self.git(folder, "init", "--quiet")
        self.git(folder, "add", "--force", ".")
        self.git(folder, "commit", "--quiet", "-m", "all")
        self.git(folder, "tag", f"v{VERSION}")
        return folder

    def git(self, folder, *words):
        return self.run_command("git", "-c", "user.name=T", "-c", "user.email=t@example.com", *words, cwd=folder)

    def version_header(self, source):
        self.run_command("cmake", f"-DSOURCE={source}", f"-DOUTPUT={self.folder}/version.h", "-P", harness.SOURCE / "cmake" / "Version.cmake")
        return (self.folder / "version.h").read_text()

    def test_release(self):
        """The workflow's steps from a pushed tag to what is published. Only apt-get and gh are stand-ins."""
        tools = self.folder / "tools"
        tools.mkdir()
        for name in ("apt-get", "gh"):
            (tools / name).write_text(f'#!/bin/sh\nfor word; do echo "$word"; done >>"{self.folder}/{name}.said"\n[ {name} = apt-get ] || cat\n')
            (tools / name).chmod(0o755)
        path = f"{tools}:{os.environ['PATH']}"
        tag, dist = f"v{VERSION}", self.folder / "dist"
        self.step("tools", self.folder, PATH=path)
        said = (self.folder / "apt-get.said").read_text().split()
        self.assertEqual(said[:2], ["update", "install"])
        checkout = self.folder / "tacho"
        self.step("source", self.folder, TAG=tag, REPOSITORY=f"file://{self.origin()}")
        self.step("check", checkout, TAG=tag)
        self.assertIn(f'RELEASE "tag {tag}"', self.version_header(checkout))
        shutil.copytree(self.packages(), dist)
        self.step("checksums", checkout, DIST=str(dist))
        names = sorted(path.name for path in dist.iterdir())
        self.assertEqual(len(names), 6)
        checked = self.run_command("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=dist).stdout.decode().splitlines()
        self.assertEqual(sorted(line.split(":")[0] for line in checked), [name for name in names if name != "SHA256SUMS"])
        notes = self.step("publish", checkout, TAG=tag, DIST=str(dist), REPOSITORY="https://x/y", PATH=path).stdout.decode()
        self.assertEqual((self.folder / "gh.said").read_text().split("\n")[:3], ["release", "create", tag])
        self.assertLessEqual({str(dist / name) for name in names}, set((self.folder / "gh.said").read_text().splitlines()))
        self.assertIn("The first release." if VERSION == "0.1.0" else "- ", notes)
        self.assertNotIn("\n## ", notes)

        # What is no release is refused, with the reason.
        def refused(*needles, tag=tag):
            text = self.step("check", checkout, TAG=tag, code=1).stderr.decode()
            self.assertEqual(text.count("\n"), 1, text)
            for needle in needles:
                self.assertIn(needle, text)
        refused("v9.9.9", f"v{VERSION}", tag="v9.9.9")
        (checkout / "new.txt").touch()
        refused("not committed")
        changes = checkout / "CHANGELOG.md"
        changes.write_text(changes.read_text().replace(f"## {VERSION}", "## Soon"))
        self.git(checkout, "add", ".")
        self.git(checkout, "commit", "--quiet", "-m", "more")
        self.assertIn(f'RELEASE "1 commit after tag {tag}"', self.version_header(checkout))
        refused(f"not at {tag}")
        self.git(checkout, "tag", "--force", tag)
        refused("CHANGELOG.md", f'"## {VERSION}"')
        shutil.rmtree(checkout / ".git")
        self.assertIn('RELEASE ""', self.version_header(checkout))

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

    def test_completion_knows_every_option(self):
        """The three shells' expressions find what is an option in the help, and nothing else."""
        commands = [word for word in self.completions("") if not word.startswith("-")]
        self.assertGreater(len(commands), 15)
        for name, separator in (("_tacho", ":"), ("tacho.fish", "\t")):
            expression = re.findall(r"sed -nE '(.*)'", (harness.SOURCE / "share" / "completion" / name).read_text())[-1]
            for command in sorted(set(commands) - {"sys"}):
                text = self.run_command(TACHO, command, "--help").stdout
                offered = self.run_command("sed", "-nE", expression, input=text).stdout.decode().splitlines()
                long_names = {line.partition(separator)[0] for line in offered}
                self.assertLessEqual(long_names, set(self.completions(command, "--")), command)
                self.assertIn("--help", long_names, command)
                lines = [line for line in text.decode().splitlines() if re.match(r" {2,4}-", line)]
                self.assertEqual(len(offered), len(lines), f"{name}: {command}")


if __name__ == "__main__":
    harness.main()
