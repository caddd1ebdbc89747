#!/usr/bin/env python3
"""Makes the pictures of README.md from real runs of the examples, into docs/pictures.

usage: scripts/pictures.py [BUILD]      default: build, made by scripts/quickstart.sh; pages need Debian's chromium

The terminal's picture is what a terminal of 80 columns shows, drawn as SVG; the pages are screenshots of headless Chromium.
Times differ from run to run, so the pictures are made when the screens change, not in CI.
"""
import html
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
OUTPUT = SOURCE / "docs/pictures"
COLUMNS = 80
CHARACTER, LINE, MARGIN = 8.4, 18, 14
NO_BREAK = "\u00a0"  # SVG folds plain spaces


def in_terminal(command, folder, environment):
    """The output of `command > /dev/null` on a terminal of 80 columns."""
    parent, child = pty.openpty()
    subprocess.run(["stty", "cols", str(COLUMNS), "rows", "60"], stdin=child, check=True)
    process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=child)
    os.close(child)
    text = b""
    while True:
        try:
            piece = os.read(parent, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        text += piece
    if process.wait() != 0:
        sys.exit(f"{' '.join(command)} exited with {process.returncode}:\n{text.decode(errors='replace')}")
    # A line of progress that was drawn over counts as its last state.
    lines = [line.split("\r")[-1] for line in text.decode().replace("\r\n", "\n").split("\n")]
    return [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line).rstrip() for line in lines]


def as_svg(prompt, lines, name):
    while lines and not lines[-1]:
        lines.pop()
    lines = ["$ " + prompt, *lines]
    width = COLUMNS * CHARACTER + 2 * MARGIN
    height = len(lines) * LINE + 2 * MARGIN
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img" '
             f'aria-label="{html.escape(prompt)}">',
             '<rect width="100%" height="100%" rx="8" fill="#14171c"/>',
             '<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" fill="#d7dbe0">']
    for at, line in enumerate(lines):
        if not line:
            continue
        heading = at > 0 and not line.startswith(" ")
        style = ' fill="#7cc4ff"' if at == 0 else ' fill="#ffffff" font-weight="bold"' if heading else ""
        # textLength keeps the columns in line whatever monospaced font the reader has.
        parts.append(f'<text x="{MARGIN}" y="{MARGIN + LINE * (at + 1) - 5:g}" textLength="{len(line) * CHARACTER:.1f}" '
                     f'lengthAdjust="spacingAndGlyphs"{style}>{html.escape(line).replace(" ", NO_BREAK)}</text>')
    (OUTPUT / name).write_text("\n".join([*parts, "</g>", "</svg>", ""]))


def screenshot(page, name, size):
    browser = shutil.which("chromium")
    if not browser:
        sys.exit("pictures.py: chromium is missing (apt-get install chromium)")
    subprocess.run([browser, "--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu", "--virtual-time-budget=4000",
                    f"--window-size={size}", f"--screenshot={OUTPUT / name}", page.as_uri()], check=True, stderr=subprocess.DEVNULL)


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else SOURCE / "build").resolve()
    OUTPUT.mkdir(exist_ok=True)
    environment = dict(os.environ, PATH=f"{build / 'bin'}:{build / 'examples'}:{os.environ['PATH']}", TERM="xterm-256color")
    environment.pop("COLUMNS", None)
    with tempfile.TemporaryDirectory(prefix="tacho-pictures-") as name:
        folder = pathlib.Path(name)

        def run(*command):
            subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        run("vcopy", "-n", "1048576", "-b", "256", "-i", "20")  # compiles the kernel, which PoCL then has in its cache
        command = ["tacho", "trace", "--", "vcopy", "-n", "1048576", "-b", "256", "-i", "20"]
        as_svg(" ".join(command) + " > /dev/null", in_terminal(command, folder, environment), "summary.svg")

        shutil.copy(SOURCE / "examples/matmul.py", folder)
        run("tacho", "profile", "--name", "matmul", "--device", "virtual", "--", "/usr/bin/python3", "matmul.py")
        run("tacho", "analyze", "-p", "workloads/matmul/virtual", "--output-format", "html", "-o", "matmul.html")
        screenshot(folder / "matmul.html", "analysis.png", "1280,900")

        shutil.copy(SOURCE / "examples/train_cpu.py", folder / "train.py")
        run("tacho", "sys", "sample", "-f", "500", "-o", "train.tacho", "--", "/usr/bin/python3", "train.py", "--opencl")
        run("tacho", "flame", "train.tacho", "-o", "train.html")
        screenshot(folder / "train.html", "flame.png", "1280,640")
    for picture in sorted(OUTPUT.iterdir()):
        print(f"{picture.relative_to(SOURCE)}: {picture.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
