"""%%tacho: the cell magic of the Python package in IPython, and the page that it shows, in a headless browser."""
import json
import os
import sys

import harness
from harness import BUILD, SOURCE

# What a notebook does: loads the extension, runs the cells, keeps what they display. The answer is the last line.
NOTEBOOK = """import json
import sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance(colors="NoColor")
shown, results = [], []
shell.display_pub.publish = lambda data, metadata=None, **more: shown.append(data["text/html"])
shell.run_line_magic("load_ext", "tacho")
for cell in json.loads(sys.stdin.read()):
    results.append(shell.run_cell(cell).success)
print()
print(json.dumps({"shown": shown, "results": results}))
"""
BUSY = """import time
end = time.monotonic() + 0.3
while time.monotonic() < end:
    sum(range(1000))
print("the cell's own words")
"""


class Jupyter(harness.Case):
    def setUp(self):
        super().setUp()
        found = self.run_command(harness.DEBIAN_PYTHON, "-c", "import IPython", code=None)
        if found.returncode != 0:
            self.skipTest("no IPython (scripts/packages.sh test installs python3-ipython)")

    def notebook(self, *cells, path=f"{BUILD}/bin:{os.environ['PATH']}"):
        """Runs cells; returns (what they displayed, whether each succeeded, what was printed)."""
        result = self.run_command(harness.DEBIAN_PYTHON, "-c", NOTEBOOK, input=json.dumps(cells).encode(),
                                  env={"PYTHONPATH": str(SOURCE / "python"), "PATH": path, "IPYTHONDIR": str(self.folder)})
        said, _, answer = result.stdout.decode().rstrip("\n").rpartition("\n")
        answer = json.loads(answer)
        return answer["shown"], answer["results"], said + result.stderr.decode()

    def test_cell_runs_and_stays(self):
        shown, results, said = self.notebook("%%tacho --sampler timer\n" + BUSY, "%%tacho --sampler timer\n" + BUSY)
        self.assertEqual(results, [True, True])
        self.assertEqual(len(shown), 2)
        self.assertEqual(said.count("the cell's own words\n"), 2)
        self.assertIn("Where", said)  # the summary
        self.assertEqual(sorted(p.name for p in self.folder.glob("*.tacho")), ["cell.tacho"])  # the second one's
        lines = self.run_command(harness.TACHO, "stats", "cell.tacho", "--by", "line").stdout.decode()
        self.assertIn("cell.py:5", lines)  # as the notebook counts, %%tacho being line 1

    def test_page_in_the_notebook(self):
        shown, _, _ = self.notebook("%%tacho\n" + BUSY + "import tacho\nwith tacho.range('phase one'):\n    pass\n")
        (self.folder / "cell.html").write_text("<!doctype html>" + shown[0])
        self.assertLess(len(shown[0]), 400_000)  # it is kept in the notebook
        seen = json.loads(self.run_command("node", SOURCE / "tests" / "e2e" / "notebook_page.js", self.folder / "cell.html",
                                           env=self.browser()).stdout)
        self.assertEqual(seen["faults"], [])
        self.assertIn("cell.tacho", seen["text"])

    def test_output_is_kept(self):
        shown, results, _ = self.notebook("%%tacho -q -o kept.tacho\nimport tacho\ntacho.mark('x')", "%%tacho -q -okept.tacho\npass")
        self.assertEqual(results, [True, False])  # the second would replace a file that the user named
        self.assertEqual(len(shown), 1)
        self.assertEqual(self.calls("marker", "x", "kept.tacho"), 1)
        self.assertFalse((self.folder / "cell.tacho").exists())

    def test_failures_stop_the_notebook(self):
        shown, results, said = self.notebook("%%tacho\nimport tacho\ntacho.mark('x')\nraise SystemExit(3)")
        self.assertEqual((len(shown), results), (1, [False]))
        self.assertIn("UsageError: the cell ended with exit code 3", said)
        shown, results, said = self.notebook("%%tacho --nonsense\npass")
        self.assertEqual((shown, results), ([], [False]))
        self.assertIn("--nonsense", said)
        self.assertNotIn("Traceback", said)
        if not os.access(os.path.join(sys.prefix, "bin", "tacho"), os.X_OK):
            _, results, said = self.notebook("%%tacho\npass", path="/usr/sbin")
            self.assertEqual(results, [False])
            self.assertIn("pip install", said)
            self.assertNotIn("Traceback", said)


if __name__ == "__main__":
    harness.main()
