"""Traces in Python: what `tacho query` answers as frames of pandas or polars, and a trace as a notebook shows it."""
import html
import importlib.util
import io
import os
import subprocess
import tempfile

from . import arrow_stream, page, program

FRAMES = ("pandas", "polars", "arrow", "rows", "columns")
MOST_OF_PAGE = 6 << 20  # of HTML; a notebook keeps what it shows


def installed(name):
    return importlib.util.find_spec(name) is not None


def to_pandas(columns):
    import numpy
    import pandas
    series = {}
    for number, column in enumerate(columns):  # names may repeat
        if column.kind in (arrow_stream.INT64, arrow_stream.DOUBLE):
            values, known = column.numpy(numpy)
            if known is None:
                made = values
            elif column.kind == arrow_stream.DOUBLE:
                made = numpy.where(known, values, numpy.nan)
            else:
                made = pandas.arrays.IntegerArray(values.astype("int64"), ~known)
        else:
            made = numpy.empty(column.rows(), object)
            made[:] = column.values()
        series[number] = pandas.Series(made)
    frame = pandas.DataFrame(series)
    frame.columns = [column.name for column in columns]
    return frame


def names_of(columns):
    names = [column.name for column in columns]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{names.count(name)} columns are called {name!r}: give each a name of its own with AS")
    return names


def to_rows(columns):
    names = names_of(columns)
    return [dict(zip(names, row)) for row in zip(*(column.values() for column in columns))]


def to_columns(columns):
    return dict(zip(names_of(columns), (column.values() for column in columns)))


def reader(frame):
    """A function that makes a frame of a binary file with a stream."""
    if frame == "pandas":
        return lambda file: to_pandas(arrow_stream.read(file))
    if frame == "polars":
        import polars
        return lambda file: polars.read_ipc_stream(io.BytesIO(file.read()))
    if frame == "arrow":
        import pyarrow.ipc
        return lambda file: pyarrow.ipc.open_stream(file).read_all()
    if frame == "rows":
        return lambda file: to_rows(arrow_stream.read(file))
    return lambda file: to_columns(arrow_stream.read(file))


class Trace:
    """A trace of any format that tacho reads."""

    def __init__(self, path, dialect=None):
        path = os.fspath(path)
        if not os.path.exists(path):
            raise FileNotFoundError(f"{path}: no such file")
        self.path, self.dialect = path, dialect

    def __repr__(self):
        return f"tacho.open({self.path!r})"

    def query(self, sql, frame=None):
        """The rows that one SELECT statement gives (docs/databases.md: schemas, tables).

        frame: "pandas" or "polars" for a DataFrame, "arrow" for a pyarrow.Table, "rows" for a list of dicts, "columns" for a dict
        of lists. By default pandas if it is installed, else polars, else rows. Raises tacho.Error with tacho's sentence."""
        return self._ask(["--script", "-"], sql, frame)

    def tables(self, frame=None):
        """The tables and views that unqualified names mean, with their columns."""
        return self._ask(["--schema"], "", frame)

    def summary(self):
        """What `tacho info` says of the trace."""
        return program.answer("info", self._file()).decode(errors="replace")

    def page(self):
        """The page of `tacho view` as one HTML document that needs no server, as bytes."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.html")
            program.answer("view", self._file(), "-o", path)
            with open(path, "rb") as file:
                return file.read()

    def _file(self):
        return os.path.join(".", self.path) if self.path.startswith("-") else self.path

    def _ask(self, words, sql, frame):
        if frame is None:
            frame = next((name for name in ("pandas", "polars") if installed(name)), "rows")
        if frame not in FRAMES:
            raise ValueError(f"frame={frame!r}: choose {', '.join(FRAMES)}")
        read = reader(frame)
        command = [program.find_program(), "query", self._file(), *words, "--output-format", "arrow"]
        if self.dialect is not None:
            command += ["--dialect", self.dialect]
        with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as said:
            asked.write(sql.encode())
            asked.seek(0)
            with subprocess.Popen(command, stdin=asked, stdout=subprocess.PIPE, stderr=said) as process:
                fault, result = None, None
                try:
                    result = read(process.stdout)
                except Exception as error:  # of any reader; tacho may have failed, which says more
                    fault = error
                while process.stdout.read(1 << 20):
                    pass
                code = process.wait()
            said.seek(0)
            if fault is None or code != 0:
                program.heed(code, said.read())
        if fault is not None:
            raise fault
        return result

    def _repr_html_(self):
        """The summary, and the page below it."""
        try:
            summary = self.summary()
        except program.Error as error:  # a folder, for one, has a page and no summary
            summary = str(error)
        try:
            shown = page.frame(self.page())
        except program.Error as error:
            shown = f"<p>{html.escape(str(error))}</p>"
        if len(shown) > MOST_OF_PAGE:
            shown = (f"<p>The page of this trace would add {len(shown) / 1e6:.0f} MB to the notebook. "
                     f"<code>tacho view {html.escape(self.path)}</code> shows it.</p>")
        return f"<pre>{html.escape(summary)}</pre>{shown}"
