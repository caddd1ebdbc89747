"""%%tacho in Jupyter: runs a cell as a program of its own under `tacho trace` and shows the page of the run below it.

    %load_ext tacho

    %%tacho --sampler timer
    import torch
    ...

The words behind %%tacho are options of `tacho trace`. The cell runs in a fresh Python with the notebook's interpreter and folder:
it does not see the notebook's variables. The run stays in cell.tacho, which the next %%tacho replaces; -o FILE keeps it elsewhere.
"""
import os
import shlex
import signal
import subprocess
import sys
import tempfile

from IPython.core.error import UsageError
from IPython.display import HTML, display

from . import program
from .page import frame


def output_of(options):
    """The trace that the options name, and the options with one: cell.tacho, which may be replaced, if they name none."""
    for at, word in enumerate(options):
        if word in ("-o", "--output") and at + 1 < len(options):
            return options[at + 1], options
        if word.startswith("--output="):
            return word.partition("=")[2], options
        if word.startswith("-o") and len(word) > 2 and not word.startswith("--"):
            return word[2:], options
    return "cell.tacho", [*options, "-o", "cell.tacho", "--overwrite"]


def run(command):
    """Runs a program, shows what it says as it comes, hands on an interrupt; returns its exit code."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               env={**os.environ, "PYTHONUNBUFFERED": "1"})
    while True:
        try:
            for line in process.stdout:
                sys.stdout.write(line.decode(errors="replace"))
                sys.stdout.flush()
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)


def tacho(line, cell):
    """Runs the cell under `tacho trace` and shows the page of the run."""
    try:
        command = program.find_program()
    except program.Error as error:
        raise UsageError(str(error)) from None
    trace, options = output_of(shlex.split(line))
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "cell.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write("\n" + cell)  # lines have the numbers that the notebook shows
        code = run([command, "trace", *options, "--", sys.executable, script])
        page = os.path.join(folder, "page.html")
        if code not in (125, 126, 127):  # else tacho could not start it, and has said why
            shown = subprocess.run([command, "view", trace, "-o", page], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
            if shown.returncode != 0:
                raise UsageError(f"no page: {shown.stdout.decode(errors='replace').strip()}")
            with open(page, "rb") as file:
                display(HTML(frame(file.read())))
    if code != 0:
        raise UsageError(f"the cell ended with exit code {code}")


def load(ipython):
    ipython.register_magic_function(tacho, magic_kind="cell", magic_name="tacho")
