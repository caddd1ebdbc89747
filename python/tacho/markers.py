"""Markers: marks and ranges in the trace that `tacho trace` writes of this program.

    import tacho

    with tacho.range("load batch"):
        ...

    @tacho.range("train step", domain="training")
    def step(): ...

Without tacho every function returns at once. Text is str; longer than 60,000 bytes of UTF-8 it is cut. Push and pop
belong to one thread; start and stop may be on different ones. The functions are those of include/tacho/tacho.h.
"""
import ctypes
import functools

from .library import attributes, keeper, load

__all__ = ["active", "mark", "range_push", "range_pop", "range_start", "range_stop", "range", "pause", "resume", "flush",
           "name_thread", "keep"]


_library = load()


def _bytes(text):
    return text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogateescape")


def _attributes(domain, category, color, payload):
    made = attributes(None if domain is None else _bytes(domain), None if category is None else _bytes(category), payload)
    if color is not None:
        made.has_color, made.color = 1, color & 0xffffffff
    return ctypes.byref(made)


if _library is None:
    def active():
        """True while markers of this process are recorded."""
        return False

    def mark(text, domain=None, category=None, color=None, payload=None):
        """A moment. color: 0xAARRGGBB; payload: int or float."""

    def range_push(text, domain=None, category=None, color=None, payload=None):
        """Opens a range on this thread, inside the one that is open there in the same domain."""

    def range_pop(domain=None):
        """Closes this thread's innermost range of the domain."""

    def range_start(text, domain=None, category=None, color=None, payload=None):
        """Opens a range that any thread may stop; returns its id, 0 when nothing is recorded."""
        return 0

    def range_stop(range_id):
        """Ends the range with this id."""

    def pause():
        """Stops recording in all processes of the run."""

    def resume():
        """Starts recording again."""

    def flush():
        """Hands this thread's records to tacho now."""

    def name_thread(name):
        """Names the calling thread in the trace."""
else:
    def active():
        """True while markers of this process are recorded."""
        return _library.tacho_active() != 0

    def mark(text, domain=None, category=None, color=None, payload=None):
        """A moment. color: 0xAARRGGBB; payload: int or float."""
        if domain is None and category is None and color is None and payload is None:
            _library.tacho_mark(_bytes(text))
        else:
            _library.tacho_mark_with(_bytes(text), _attributes(domain, category, color, payload))

    def range_push(text, domain=None, category=None, color=None, payload=None):
        """Opens a range on this thread, inside the one that is open there in the same domain."""
        if domain is None and category is None and color is None and payload is None:
            _library.tacho_range_push(_bytes(text))
        else:
            _library.tacho_range_push_with(_bytes(text), _attributes(domain, category, color, payload))

    def range_pop(domain=None):
        """Closes this thread's innermost range of the domain."""
        if domain is None:
            _library.tacho_range_pop()
        else:
            _library.tacho_range_pop_from(_bytes(domain))

    def range_start(text, domain=None, category=None, color=None, payload=None):
        """Opens a range that any thread may stop; returns its id, 0 when nothing is recorded."""
        if domain is None and category is None and color is None and payload is None:
            return _library.tacho_range_start(_bytes(text))
        return _library.tacho_range_start_with(_bytes(text), _attributes(domain, category, color, payload))

    def range_stop(range_id):
        """Ends the range with this id."""
        _library.tacho_range_stop(range_id)

    def pause():
        """Stops recording in all processes of the run."""
        _library.tacho_pause()

    def resume():
        """Starts recording again."""
        _library.tacho_resume()

    def flush():
        """Hands this thread's records to tacho now."""
        _library.tacho_flush()

    def name_thread(name):
        """Names the calling thread in the trace."""
        _library.tacho_name_thread(_bytes(name))


def keep(why):
    """Under `tacho watch --keep`: tacho writes what has been kept of the last seconds into a file, of which `why` is the reason, while
    the program goes on. In a trace it is a mark. tacho watch may come while the program runs, so it is looked for in each call."""
    function = keeper()
    if function is not None:
        function(_bytes(why))


class range:  # noqa: A001 - the name is the point; within this module the built-in is not needed
    """A range as a with-statement or decorator; nesting and recursion are fine, threads too."""

    def __init__(self, text, domain=None, category=None, color=None, payload=None):
        self._arguments = (text, domain, category, color, payload)
        self._domain = domain

    def __enter__(self):
        range_push(*self._arguments)
        return self

    def __exit__(self, *exception):
        range_pop(self._domain)
        return False

    def __call__(self, function):
        arguments, domain = self._arguments, self._domain

        @functools.wraps(function)
        def wrapped(*positional, **named):
            range_push(*arguments)
            try:
                return function(*positional, **named)
            finally:
                range_pop(domain)
        return wrapped
