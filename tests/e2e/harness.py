"""Helpers of every end-to-end test: finding the build, running tacho, reading its answers. Standard library only."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ.get("TACHO_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build"))
SOURCE = pathlib.Path(os.environ.get("TACHO_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
DATA = pathlib.Path(os.environ.get("TACHO_DATA", SOURCE.parent / "shared" / "data"))
TACHO = BUILD / "bin" / "tacho"
TARGETS = BUILD / "tests" / "targets"
EXAMPLES = BUILD / "examples"
DEBIAN_PYTHON = "/usr/bin/python3"


def sanitized():
    """Whether this build is one for a sanitizer."""
    return b"__asan_init" in TACHO.read_bytes() or b"__tsan_init" in TACHO.read_bytes()


def need_data():
    if DATA.is_dir():
        return
    if os.environ.get("TACHO_REQUIRE_DATA") == "1":
        raise AssertionError(f"TACHO_REQUIRE_DATA=1, but there is no recorded data at {DATA}")
    raise unittest.SkipTest(f"no recorded data at {DATA} (set TACHO_DATA)")


def need_mounts():
    """Skips a test that needs its own mounts: containers and changed roots do not permit them."""
    refused = subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], stderr=subprocess.PIPE)
    if refused.returncode != 0:
        raise unittest.SkipTest(f"no mount namespaces here: {refused.stderr.decode().strip()}")


class Case(unittest.TestCase):
    """A test with its own folder, removed afterwards."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tacho-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(self.leaves_no_links)

    def leaves_no_links(self):
        """The links by which tacho preloads its library end with its run (src/launch/library_names.h)."""
        for link in pathlib.Path(tempfile.gettempdir()).glob("tacho-*/libtacho.so"):
            try:
                self.assertFalse(os.readlink(link).startswith(f"{self.folder}/"), f"{link} was left behind")
            except OSError:  # ended meanwhile, or no link
                pass

    def run_command(self, *command, code=0, timeout=120, env=None, **options):
        result = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                timeout=timeout, cwd=options.pop("cwd", self.folder),
                                env={**os.environ, **(env or {})}, **options)
        if code is not None:
            self.assertEqual(result.returncode, code,
                             f"{' '.join(map(str, command))}\nstdout: {result.stdout[-2000:]!r}\n"
                             f"stderr: {result.stderr[-2000:]!r}")
        return result

    def browser(self):
        """The environment of a script for Node.js that looks at a page in a headless browser; skips where that cannot be."""
        module = next((folder for folder in (BUILD / "web" / "node_modules", BUILD / "node_modules") if (folder / "playwright-core").is_dir()), None)
        browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if module is None and shutil.which("npm"):
            version = json.loads((SOURCE / "web" / "package.json").read_text())["devDependencies"]["playwright-core"]  # one that Debian's Node.js runs
            subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(BUILD), f"playwright-core@{version}"], capture_output=True, timeout=120)
            module = BUILD / "node_modules" if (BUILD / "node_modules" / "playwright-core").is_dir() else None
        if module is None or browser is None or shutil.which("node") is None:
            self.skipTest("chromium, node and playwright-core are needed to look at the page")
        return {"NODE_PATH": str(module), "BROWSER_PATH": browser}

    def for_everybody(self, *programs):
        """[tacho, *programs] as copies that every user may run: the build may lie below a folder that is closed to
        others, as root's home is. Opens the case's folder to everybody."""
        self.folder.chmod(0o777)
        place = self.folder / "everybody"
        copies = []
        for source, to in ((TACHO, "bin"), (BUILD / "lib" / "libtacho.so", "lib"), *((program, "programs") for program in programs)):
            (place / to).mkdir(parents=True, exist_ok=True)
            copies.append(place / to / pathlib.Path(source).name)
            if not copies[-1].exists():
                shutil.copy(source, copies[-1])
        return [copies[0], *copies[2:]]

    def trace(self, *command, code=0, options=(), output="t.tacho", **more):
        """tacho trace --quiet -o output options -- command; returns the completed process."""
        return self.run_command(TACHO, "trace", "--quiet", "-o", output, *options, "--", *command, code=code, **more)

    def stats(self, by, file="t.tacho", *more):
        """{name: row as a dictionary} of `tacho stats`."""
        result = self.run_command(TACHO, "stats", file, "--by", by, "--output-format", "json", *more)
        table = json.loads(result.stdout)
        titles = [c["title"] if isinstance(c, dict) else c for c in table["columns"]]
        rows = {}
        for row in table["rows"]:
            named = dict(zip(titles, row))
            rows[named["Name"]] = named
        return rows

    def calls(self, by, name, file="t.tacho"):
        row = self.stats(by, file).get(name)
        return row["Calls"] if row else 0

    def one_sentence(self, result, *needles):
        """Asserts that stderr is one sentence of ours that names the needles."""
        lines = result.stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith("tacho: "), lines)
        for needle in needles:
            self.assertIn(str(needle), lines[0])


def main():
    unittest.main(verbosity=2)
