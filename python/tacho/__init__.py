"""tacho for Python programs: markers that cost next to nothing without a profiler, and traces as frames of pandas or polars."""
from .markers import (active, flush, keep, mark, name_thread, pause, range, range_pop, range_push, range_start, range_stop,
                      resume)

__all__ = ["Error", "active", "flush", "keep", "listen", "mark", "name_thread", "open", "pause", "range", "range_pop", "range_push", "range_start",
           "range_stop", "resume", "snapshot", "start", "stop", "trigger"]


def open(path, dialect=None):
    """A trace of any format that tacho reads: tacho.open("run.tacho").query("SELECT * FROM top"). In a notebook it shows the run.

    dialect: what unqualified names of tables mean, "rpd", "rocpd" or "tacho"; by default the file's own, else rpd."""
    from .trace_file import Trace  # programs under trace need none of it
    return Trace(path, dialect)


def __getattr__(name):
    if name == "Error":
        from .program import Error
        return Error
    if name in ("listen", "snapshot", "start", "stop", "trigger"):
        from . import live
        return getattr(live, name)
    raise AttributeError(f"module 'tacho' has no attribute {name!r}")


def load_ipython_extension(ipython):
    """%load_ext tacho: the cell magic %%tacho (tacho/jupyter.py)."""
    from .jupyter import load
    load(ipython)
