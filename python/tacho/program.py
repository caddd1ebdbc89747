"""The program tacho: where it is, and what it answers."""
import os
import shutil
import subprocess
import sys
import warnings


class Error(RuntimeError):
    """What tacho says in place of an answer, in its own words."""


def find_program():
    """The program of this installation, else the one in PATH; Error where there is none."""
    folder = os.path.dirname(os.path.abspath(__file__))
    for path in (os.path.join(sys.prefix, "bin", "tacho"),  # of the wheel
                 os.path.join(folder, "..", "..", "..", "..", "bin", "tacho")):  # of the archive: share/tacho/python/tacho
        path = os.path.abspath(path)  # a link on the way is the installation's
        if os.access(path, os.X_OK):
            return path
    found = shutil.which("tacho")
    if found is None:
        raise Error("the program tacho is neither beside this Python package nor in PATH: install it (pip install tacho-*.whl)")
    return found


def words_of(said):
    """What tacho printed on stderr, without its name in front of each line."""
    lines = said.decode(errors="replace").strip().splitlines()
    return "\n".join(line[7:] if line.startswith("tacho: ") else line for line in lines)


def heed(code, said):
    """Error for a command that failed, a warning for what one that did not had to say."""
    if code != 0:
        raise Error(words_of(said) or f"tacho ended with exit code {code}")
    if said.strip():
        warnings.warn(words_of(said), stacklevel=4)


def answer(*words):
    """What a command prints, as bytes."""
    done = subprocess.run([find_program(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    heed(done.returncode, done.stderr)
    return done.stdout
