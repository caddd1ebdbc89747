"""A program that records itself while it runs, with the command `tacho attach`.

    import tacho

    tacho.listen()                               # at the start: no thread is stopped later, and ptrace is not needed
    path = tacho.snapshot(5, "now.tacho")        # five seconds from now, then the file is there
    tacho.start("run.tacho", "--sampler", "timer"); ...; tacho.stop()
    tacho.trigger(5, "slow.tacho")               # the next five seconds, without waiting for them

Options are those of `tacho attach`. One recording at a time. What tacho says in place of a recording is tacho.Error.
"""
import ctypes
import errno
import importlib
import os
import signal
import subprocess
import sys
import threading

from . import library, markers
from .program import Error, find_program, words_of

_lock = threading.Lock()
_recording = None  # the tacho that records this process


class _Recording:
    def __init__(self, path, options):
        self.path = path
        self.process = subprocess.Popen([find_program(), "attach", str(os.getpid()), "-o", path, *map(str, options)],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.said = b""
        while True:
            line = self.process.stderr.readline()
            self.said += line
            if b"attached to " in line:
                return
            if not line:
                self.finish()
                raise Error(words_of(self.said) or "tacho attach ended without a recording")

    def finish(self):
        """Waits for the file; Error where there is none."""
        self.said += self.process.stderr.read()
        self.process.stderr.close()
        if self.process.wait() != 0:
            raise Error(words_of(self.said) or f"tacho attach ended with exit code {self.process.returncode}")
        return self.path


def listen(path=None):
    """Lets `tacho attach` in by itself from now on. path: libtacho.so, by default this installation's. In forked children call it anew.

    Markers made by tacho.range() and the like are in the recordings from here on."""
    if path is None:
        path = os.environ.get("TACHO_LIBRARY") or os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(find_program()))), "lib", "libtacho.so")
    try:
        loaded = ctypes.CDLL(path)
        code = loaded.tacho_listen_here()
    except (OSError, AttributeError) as problem:
        raise Error(f"tacho's library cannot be loaded: {problem}") from None
    if code != 0:
        raise Error("tacho has started this process and records it already" if code == errno.EBUSY else f"this process cannot listen: {os.strerror(code)}")
    library.use(path)
    # The functions that do nothing give way to those of the library; a range made before goes by their names.
    kept = markers.range
    importlib.reload(markers)
    markers.range = kept
    for name in markers.__all__:
        setattr(sys.modules[__package__], name, getattr(markers, name))


def start(path, *options):
    """Begins a recording into `path`, until stop(). Returns when tacho records."""
    global _recording
    with _lock:
        if _recording is not None and _recording.process.poll() is None:
            raise Error(f"a recording into {_recording.path} is under way")
        if _recording is not None:
            last, _recording = _recording, None
            last.finish()
        _recording = _Recording(os.fspath(path), options)


def stop():
    """Ends the recording of start() or trigger(), and returns the path of its file, which is complete."""
    global _recording
    with _lock:
        if _recording is None:
            raise Error("there is no recording to stop")
        last, _recording = _recording, None
        if last.process.poll() is None:
            last.process.send_signal(signal.SIGINT)
        return last.finish()


def trigger(seconds, path, *options):
    """Records the next `seconds` into `path` and returns at once when recording has begun."""
    start(path, "--duration", seconds, *options)


def snapshot(seconds, path, *options):
    """Records `seconds` from now on and returns the path of the complete file."""
    global _recording
    trigger(seconds, path, *options)
    with _lock:
        last, _recording = _recording, None
    return last.finish()
