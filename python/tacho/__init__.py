"""tacho for Python programs: markers that cost next to nothing without a profiler."""
from .markers import (active, flush, mark, name_thread, pause, range, range_pop, range_push, range_start, range_stop,
                      resume)

__all__ = ["active", "flush", "mark", "name_thread", "pause", "range", "range_pop", "range_push", "range_start",
           "range_stop", "resume"]


def load_ipython_extension(ipython):
    """%load_ext tacho: the cell magic %%tacho (tacho/jupyter.py)."""
    from .jupyter import load
    load(ipython)
