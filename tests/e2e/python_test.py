"""The Python package's traces: tacho.open(FILE).query(SQL) as frames, its own reader of Arrow's streams, and what a notebook shows."""
import json
import os

import harness
from harness import BUILD, DATA, SOURCE, TACHO, Case, main, need_data

# Runs `made = ...` with tacho imported, without the packages in WITHOUT; prints the answer as JSON.
RUN = """import json, sys, warnings
for name in {without!r}:
    sys.modules[name] = None
import tacho
warnings.simplefilter("always")
{code}
print(json.dumps(made))
"""
# In place of polars and pyarrow, which Debian does not have: they get the whole stream.
STANDINS = {"polars.py": "def read_ipc_stream(file):\n    return ['polars', len(file.read())]\n",
            "pyarrow/__init__.py": "",
            "pyarrow/ipc.py": "class open_stream:\n    def __init__(self, file):\n        self.file = file\n\n"
                              "    def read_all(self):\n        return ['pyarrow', len(self.file.read())]\n"}
BUILT = BUILD / "share" / "tacho" / "python"  # beside the program of this build
LATE = """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
SELECT i, CASE WHEN i % 3 = 0 THEN i + 9007199254740993 END wide, CASE WHEN i % 2 = 0 THEN i / 4.0 END half,
       CASE WHEN i % 5 > 0 THEN 'text é ' || (i % 7) END t, NULL gone FROM n"""


class Python(Case):
    def python(self, code, without=(), path=(), code_expected=0):
        python_path = os.pathsep.join(str(each) for each in (BUILT, *path))
        result = self.run_command(harness.DEBIAN_PYTHON, "-c", RUN.format(without=without, code=code),
                                  env={"PYTHONPATH": python_path}, code=code_expected)
        self.said = result.stderr.decode()
        return json.loads(result.stdout) if code_expected == 0 else None

    def recording(self):
        need_data()
        return str(DATA / "traces" / "kineto_h100_qwen1.5-0.5b.json.gz")

    def rows(self, trace, sql):
        return json.loads(self.run_command(TACHO, "query", trace, sql, "--output-format", "json").stdout)

    def same(self, got, expected, words):
        """Like assertEqual, which takes minutes to show how long lists differ."""
        if got != expected:
            pairs = zip(got, expected) if isinstance(got, list) else ((name, got[name], expected.get(name)) for name in got)
            self.fail(f"{words}: {len(got)} and {len(expected)}, {next((p for p in pairs if p[-2] != p[-1]), '')}"[:2000])

    def need(self, *modules):
        for module in modules:
            if self.run_command(harness.DEBIAN_PYTHON, "-c", f"import {module}", code=None).returncode != 0:
                self.skipTest(f"no {module} (scripts/packages.sh test installs it)")

    def test_rows_and_columns(self):
        trace = self.recording()
        for sql in ("SELECT * FROM top LIMIT 20", "SELECT name, start, arguments, duration / 3.0 AS third FROM tacho.dispatch", LATE,
                    "SELECT name, start FROM tacho.dispatch WHERE id < 0", "SELECT 9223372036854775807 a, NULL b, '' c, -0.5 d"):
            expected = self.rows(trace, sql)
            made = self.python(f"made = tacho.open({trace!r}).query({sql!r})", without=["pandas", "polars"])
            self.same(made, [dict(zip(expected["columns"], row)) for row in expected["rows"]], sql)
            made = self.python(f"made = tacho.open({trace!r}).query({sql!r}, frame='columns')", without=["numpy"])
            self.same(made, {name: [row[i] for row in expected["rows"]] for i, name in enumerate(expected["columns"])}, sql)

    def test_pandas(self):
        self.need("pandas")
        trace = self.recording()
        expected = self.rows(trace, LATE)
        made = self.python(f"""frame = tacho.open({trace!r}).query({LATE!r})
made = [type(frame).__module__, [str(kind) for kind in frame.dtypes], list(frame.columns), len(frame), str(int(frame.wide.sum())),
        frame.half.sum(), list(frame.t), int(frame.wide.isna().sum()), int(frame.half.isna().sum())]""")
        self.assertEqual(made[:4], ["pandas.core.frame", ["int64", "Int64", "float64", "object", "object"], expected["columns"], 40000])
        wide = [row[1] for row in expected["rows"] if row[1] is not None]
        half = [row[2] for row in expected["rows"] if row[2] is not None]
        total = sum(wide)
        total = (total + 2 ** 63) % 2 ** 64 - 2 ** 63  # as 64 bits add up
        self.same(made[4:], [str(total), sum(half), [row[3] for row in expected["rows"]], 40000 - len(wide), 40000 - len(half)], LATE)
        sql = "SELECT id, id, name FROM tacho.dispatch LIMIT 3"
        self.assertEqual(self.python(f"made = list(tacho.open({trace!r}).query({sql!r}).columns)"), ["id", "id", "name"])
        self.assertEqual(self.python(f"made = list(tacho.open({trace!r}).query('SELECT name FROM tacho.copy WHERE id < 0').name)"), [])

    def test_polars_and_pyarrow_get_the_stream(self):
        trace, sql = self.recording(), "SELECT name, start FROM tacho.dispatch"
        size = len(self.run_command(TACHO, "query", trace, sql, "--output-format", "arrow").stdout)
        for name, text in STANDINS.items():
            (self.folder / "standins" / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / "standins" / name).write_text(text)
        for frame, without, expected in (("'polars'", [], ["polars", size]), ("None", ["pandas"], ["polars", size]),
                                         ("'arrow'", [], ["pyarrow", size])):
            made = self.python(f"made = tacho.open({trace!r}).query({sql!r}, frame={frame})", without, [self.folder / "standins"])
            self.assertEqual(made, expected)

    def test_tables_and_dialects(self):
        trace = self.recording()
        made = self.python(f"made = [row['Name'] for row in tacho.open({trace!r}, dialect='tacho').tables('rows')]")
        self.assertIn("dispatch", made)
        made = self.python(f"made = tacho.open({trace!r}, dialect='tacho').query('SELECT count(*) AS n FROM dispatch', 'rows')")
        self.assertEqual(made[0]["n"], self.rows(trace, "SELECT count(*) FROM tacho.dispatch")["rows"][0][0])

    def test_errors(self):
        trace = self.recording()
        (self.folder / "not.json").write_text("no trace")
        for code, error in [
                ("tacho.open('gone.tacho')", "FileNotFoundError: gone.tacho: no such file"),
                (f"tacho.open({trace!r}).query('SELECT nosuch FROM top')", "tacho.program.Error: SQL: no such column: nosuch"),
                (f"tacho.open({trace!r}).query('DELETE FROM rocpd_op')", "tacho.program.Error: SQL: "),
                (f"tacho.open({trace!r}).query('SELECT 1', frame='spark')", "ValueError: frame='spark': choose pandas, polars"),
                (f"tacho.open({trace!r}, 'nosuch').query('SELECT 1')", "tacho.program.Error: "),
                ("tacho.open('not.json').query('SELECT 1')", "tacho.program.Error: "),
                ("tacho.nosuch", "AttributeError: module 'tacho' has no attribute 'nosuch'"),
                (f"tacho.open({trace!r}).query('SELECT id, id FROM tacho.api LIMIT 1', 'rows')", "ValueError: 2 columns are called 'id'")]:
            self.python(f"made = {code}", code_expected=1)
            self.assertIn(error, self.said.replace("\n", " "), code)
            self.assertIn(error, self.said.splitlines()[-1], code)
        made = self.python(f"""
try:
    made = tacho.open({trace!r}).query("SELECT nosuch")
except tacho.Error as error:
    made = str(error)""")
        self.assertEqual(made, "SQL: no such column: nosuch; --schema lists the tables and their columns")

    def test_remarks_are_warnings(self):
        trace = self.recording()
        made = self.python(f"made = tacho.open({trace!r}).query(\"SELECT 1 a UNION ALL SELECT 'x'\", 'columns')")
        self.assertEqual(made, {"a": ["1", "x"]})
        self.assertIn('UserWarning: column "a" holds values of several types', self.said)

    def test_damaged_streams(self):
        trace = self.recording()
        stream = self.run_command(TACHO, "query", trace, "SELECT name, start FROM tacho.api LIMIT 40", "--output-format", "arrow").stdout
        (self.folder / "good.arrows").write_bytes(stream)
        made = self.python("""import io
from tacho import arrow_stream
good = open("good.arrows", "rb").read()
made = [0, 0, len(arrow_stream.read(io.BytesIO(good))[0].values())]
for size in range(len(good)):
    try:
        arrow_stream.read(io.BytesIO(good[:size]))
        made[0] += 1
    except EOFError:
        made[1] += 1
try:
    arrow_stream.read(io.BytesIO(b"a text, and no stream"))
except ValueError as error:
    made.append(str(error))""".replace('open("good', '__import__("builtins").open("good'))
        self.assertEqual(made, [0, len(stream), 40, "no stream of Arrow's"])

    def test_notebook(self):
        trace = self.recording()
        self.run_command(TACHO, "trim", trace, "<run>.tacho", "--start", "90%")
        made = self.python("made = [tacho.open('<run>.tacho')._repr_html_(), repr(tacho.open('<run>.tacho'))]")
        summary = self.run_command(TACHO, "info", "<run>.tacho").stdout.decode()
        self.assertEqual(made[1], "tacho.open('<run>.tacho')")
        self.assertTrue(made[0].startswith("<pre>tacho  &lt;run&gt;.tacho\n"), made[0][:200])
        self.assertIn(summary.splitlines()[1].strip(), made[0])
        self.assertNotIn("<run>", made[0].partition("</pre>")[0])
        self.assertLess(len(made[0]), 6 << 20)
        (self.folder / "cell.html").write_text("<!doctype html>" + made[0])
        seen = json.loads(self.run_command("node", SOURCE / "tests" / "e2e" / "notebook_page.js", self.folder / "cell.html",
                                           env=self.browser()).stdout)
        self.assertEqual(seen["faults"], [])
        self.assertIn("<run>.tacho", seen["text"])

    def test_import_is_light(self):
        """Programs under trace import the package for its markers."""
        made = self.python("made = [name for name in sys.modules if name in ('subprocess', 'struct', 'html', 'tempfile', 'pandas', 'numpy')]")
        self.assertNotIn("pandas", made)
        self.assertNotIn("tempfile", made)


if __name__ == "__main__":
    main()
