"""tacho for Python programs: markers that cost next to nothing without a profiler."""
from .markers import (active, flush, mark, name_thread, pause, range, range_pop, range_push, range_start, range_stop,
                      resume)

__all__ = ["active", "flush", "mark", "name_thread", "pause", "range", "range_pop", "range_push", "range_start",
           "range_stop", "resume"]
