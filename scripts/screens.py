#!/usr/bin/env python3
"""Makes screenshots of what people see first, to look at before a release: commands on terminals of 80, 120 and 200 columns, and
pages at three sizes of window, dark and light.

usage: scripts/screens.py OUT [WORD...]      only the pictures whose name holds one of the words
       TACHO_BUILD (build) and TACHO_DATA (../shared/data) as for the tests; pages need Debian's chromium

A terminal's picture is SVG, and its text lies beside it. The script names each line that is wider than its terminal, and each page
that reports an error or is wider than its window, and then exits with 1.
"""
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SOURCE / "tests" / "e2e"))
import terminal  # noqa: E402
BUILD = pathlib.Path(os.environ.get("TACHO_BUILD", SOURCE / "build")).resolve()
DATA = pathlib.Path(os.environ.get("TACHO_DATA", SOURCE.parent / "shared" / "data")).resolve()
WIDTHS = (80, 120, 200)
SIZES = ((1000, 700), (1440, 900), (1920, 1080))
CHARACTER, LINE, MARGIN = 8.4, 18, 14
NO_BREAK = "\u00a0"  # SVG folds plain spaces

HOST_ONLY = """import json, time


def encode(rows):
    return len(json.dumps(rows))


end = time.monotonic() + 1
while time.monotonic() < end:
    encode([{"a": i, "b": [i] * 20} for i in range(400)])
"""
H100, MI300X, AMD_JOB = "h100.json.gz", "mi300x.json.gz", "gfx950.json.gz"
COMMANDS = {
    "trace": ["trace", "--overwrite", "-o", "again.tacho", "--", "vcopy", "-n", "1048576", "-b", "256", "-i", "20"],
    "info": ["info", H100],
    "stats": ["stats", H100],
    "operators": ["stats", H100, "--by", "operator", "--top", "20"],
    "lines": ["stats", "host.tacho", "--by", "line"],
    "findings": ["report", "findings", H100],
    "gaps": ["report", "gaps", H100, "--top", "10"],
    "memory": ["memory", H100],
    "roofs": ["stats", H100, "--by", "operator", "--input-shapes", "--top", "20"],
    "ranks": ["ranks", "ranks4"],
    "diff": ["diff", H100, MI300X, "--by", "operator", "--top", "15"],
    "profile": ["profile", "--overwrite", "-n", "app", "--device", "cpu", "--", "vcopy", "-n", "65536"],
    "analyze": ["analyze", "MI200"],
    "compare": ["analyze", "MI200", "kernel"],
    "help": ["--help"],
    "doctor": ["doctor"],
}
# Name: the files, and the fragment of the address.
PAGES = {
    "torch-overview": ([H100], "view=overview"),
    "torch-timeline": ([H100], "view=timeline"),
    "torch-kernels": ([H100], "view=kernels"),
    "torch-code": ([H100], "view=code"),
    "torch-flame": ([H100], "view=flame"),
    "torch-memory": ([H100], "view=memory"),
    "torch-roofline": ([H100], "view=code&code=roofline"),
    "ranks-overview": (["ranks4"], "view=overview"),
    "ranks-ranks": (["ranks4"], "view=ranks"),
    "amd-timeline": ([AMD_JOB], "view=timeline"),
    "opencl-timeline": (["opencl.tacho"], "view=timeline"),
    "host-overview": (["host.tacho"], "view=overview"),
    "counters": (["MI200"], ""),
    "diff": ([H100, MI300X], "view=diff"),
    "sql": ([H100, MI300X], "view=sql"),
}


def on_terminal(width, command, folder, environment):
    """(lines, exit code) of a command whose three streams are a terminal; a line that was drawn over counts as its last state."""
    output, code = terminal.run(command, width, cwd=folder, env=environment)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.decode(errors="replace").replace("\r\n", "\n"))
    return [line.split("\r")[-1].rstrip() for line in text.rstrip("\n").split("\n")], code


def as_svg(prompt, lines, columns):
    lines = ["$ " + prompt, *lines]
    width, height = columns * CHARACTER + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN
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
    return "\n".join([*parts, "</g>", "</svg>", ""])


def terminals(out, folder, environment, wanted):
    """Pictures of commands; returns the faults."""
    faults = []
    for name, words in COMMANDS.items():
        for width in WIDTHS:
            picture = f"{name}-{width}"
            if not wanted(picture):
                continue
            lines, code = on_terminal(width, ["tacho", *words], folder, environment)
            (out / f"{picture}.txt").write_text("\n".join(lines) + "\n")
            (out / f"{picture}.svg").write_text(as_svg(" ".join(["tacho", *words]), lines, width))
            # A path is one word, to be copied.
            faults += [f"{picture}: {len(line)} columns: {line}" for line in lines if len(line) > width and " " in line.strip()]
            if code != 0 and name != "doctor":  # whose code counts the machine's faults
                faults.append(f"{picture}: exit code {code}")
    return faults


def pages(out, folder, environment, wanted):
    """Pictures of pages; returns the faults."""
    shots = [{"name": f"{name}-{width}-{scheme}", "files": files, "hash": fragment, "width": width, "height": height, "scheme": scheme}
             for name, (files, fragment) in PAGES.items() for width, height in SIZES for scheme in ("light", "dark")]
    shots = [shot for shot in shots if wanted(shot["name"])]
    if not shots:
        return []
    (folder / "shots.json").write_text(json.dumps(shots))
    done = subprocess.run(["node", SOURCE / "scripts" / "screens.mjs", folder / "shots.json", out], cwd=folder, stdout=subprocess.PIPE,
                          text=True, env={**environment, "TACHO_BUILD": str(BUILD), "TACHO_SOURCE": str(SOURCE)})
    return done.stdout.splitlines() + ([f"screens.mjs ended with {done.returncode}"] if done.returncode != 0 else [])


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if not DATA.is_dir():
        sys.exit(f"screens.py: no recorded data at {DATA} (set TACHO_DATA)")
    out = pathlib.Path(sys.argv[1]).resolve()
    out.mkdir(parents=True, exist_ok=True)

    def wanted(name):
        return len(sys.argv) == 2 or any(word in name for word in sys.argv[2:])
    environment = dict(os.environ, PATH=f"{BUILD / 'bin'}:{BUILD / 'examples'}:{os.environ['PATH']}", TERM="xterm-256color")
    environment.pop("COLUMNS", None)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tacho-screens-"))
    try:
        for name, target in ((H100, "traces/kineto_h100_qwen1.5-0.5b.json.gz"), (MI300X, "traces/kineto_mi300x_qwen1.5-0.5b.json.gz"),
                             (AMD_JOB, "traces/rocprofv3_gfx950_results.json.gz"), ("ranks4", "ranks4"),
                             ("MI200", "workloads/vcopy/MI200"), ("kernel", "workloads/kernel/MI200")):
            os.symlink(DATA / target, folder / name)
        (folder / "train.py").write_text(HOST_ONLY)
        for command in (["trace", "-q", "-o", "opencl.tacho", "--", "vcopy", "-n", "1048576", "-b", "256", "-i", "20"],
                        ["sys", "sample", "-q", "-o", "host.tacho", "--", "/usr/bin/python3", "train.py"]):
            subprocess.run(["tacho", *command], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        faults = terminals(out, folder, environment, wanted) + pages(out, folder, environment, wanted)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    pictures = sum(1 for path in out.iterdir() if path.suffix in (".svg", ".png"))
    print("\n".join([*faults, f"{pictures} pictures in {out}, {len(faults)} faults"]))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
