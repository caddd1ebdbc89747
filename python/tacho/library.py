"""libtacho.so of this process: the functions of include/tacho/tacho.h and the structures that they take."""
import ctypes
import os


class Payload(ctypes.Union):
    _fields_ = [("integer", ctypes.c_int64), ("real", ctypes.c_double)]


class Attributes(ctypes.Structure):  # tacho_attributes
    _fields_ = [("size", ctypes.c_uint32), ("payload_kind", ctypes.c_uint32), ("domain", ctypes.c_char_p),
                ("category", ctypes.c_char_p), ("has_color", ctypes.c_uint32), ("color", ctypes.c_uint32),
                ("payload", Payload)]


def attributes(domain, category, payload=None):
    """Attributes of a marker; domain and category are bytes or None, payload is int, float or None."""
    made = Attributes(size=ctypes.sizeof(Attributes), domain=domain, category=category)
    if isinstance(payload, float):
        made.payload_kind, made.payload.real = 2, payload
    elif payload is not None:
        made.payload_kind, made.payload.integer = 1, payload
    return made


_used = None  # the path of the library by which this process listens


def use(path):
    """From now on load() finds the library at this path."""
    global _used
    _used = path


def _opened(path):
    """The library at this path, or the preloaded one (None), if it does something in this process."""
    # PyDLL: the calls take nanoseconds, releasing and taking the interpreter lock would take longer.
    try:
        library = ctypes.PyDLL(path)
        get = library.tacho_get_functions
    except (AttributeError, OSError):
        return None
    get.argtypes, get.restype = [ctypes.c_uint32], ctypes.c_void_p
    return library if get(1) else None


def keeper():
    """tacho_keep() of the library that keeps or records something in this process now; None if there is none."""
    try:
        try:
            library = ctypes.CDLL("libtacho-watch.so", os.RTLD_LAZY | os.RTLD_NOLOAD)
        except OSError:
            library = load()
        function = library.tacho_keep
    except AttributeError:
        return None
    function.argtypes, function.restype = [ctypes.c_char_p], None
    return function


def load(preloaded=False):
    """The library with its functions declared; None in a process that is not traced. preloaded: only where tacho has
    loaded it already."""
    path = _used or os.environ.get("TACHO_LIBRARY", "")
    library = _opened(None)
    if library is None and not preloaded and path.startswith("/"):
        library = _opened(path)
    if library is None:
        return None
    text, pointer, number = ctypes.c_char_p, ctypes.POINTER(Attributes), ctypes.c_uint64
    for name, arguments, result in (
            ("tacho_active", [], ctypes.c_int), ("tacho_mark", [text], None), ("tacho_mark_with", [text, pointer], None),
            ("tacho_range_push", [text], None), ("tacho_range_push_with", [text, pointer], None),
            ("tacho_range_pop", [], None), ("tacho_range_pop_from", [text], None), ("tacho_range_start", [text], number),
            ("tacho_range_start_with", [text, pointer], number), ("tacho_range_stop", [number], None),
            ("tacho_pause", [], None), ("tacho_resume", [], None), ("tacho_flush", [], None),
            ("tacho_name_thread", [text], None)):
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, result
    return library
