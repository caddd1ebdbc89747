#!/usr/bin/env python3
"""Makes the man pages from docs/commands/*.md: man_pages.py OUT_FOLDER VERSION.

Each page docs/commands/NAME.md begins with "# tacho NAME" and a sentence of what it is for; that becomes tacho-NAME(1). A
page of another tool's name (rocprofv3.md) becomes tacho-NAME(1) too. tacho(1) lists the pages. lowdown (Debian) writes roff.
"""
import pathlib
import re
import subprocess
import sys


def man_page(name, summary, body, version):
    text = f"# NAME\n\n{name} - {summary}\n\n# DESCRIPTION\n\n{body}"
    return subprocess.run(
        ["lowdown", "-s", "-Tman", "-M", f"title={name.upper()}", "-M", "section=1", "-M", f"source=tacho {version}",
         "-M", "volume=tacho"],
        input=text.encode(), stdout=subprocess.PIPE, check=True).stdout


def main():
    out, version = pathlib.Path(sys.argv[1]), sys.argv[2]
    out.mkdir(parents=True, exist_ok=True)
    pages = []
    for source in sorted((pathlib.Path(__file__).parent.parent / "docs" / "commands").glob("*.md")):
        text = source.read_text()
        title, _, body = text.partition("\n")
        if not title.startswith("# ") or not body.strip():
            sys.exit(f"{source}: a page begins with '# title' and a sentence of what it is for")
        body = body.strip()
        summary = re.split(r"(?<=[.:])\s", re.sub(r"[`*]", "", body), maxsplit=1)[0].replace("\n", " ").rstrip(".:")
        # Links to other pages of docs/ mean nothing in a terminal; their text stays. Headings below the page's own are sections.
        body = re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", body)
        body = body.replace(r"\|", "/")  # lowdown keeps the escape of a bar within a table's cell
        body = re.sub(r"^##(#*) ", r"#\1 ", body, flags=re.M)
        name = f"tacho-{source.stem}"
        (out / f"{name}.1").write_bytes(man_page(name, summary, body, version))
        pages.append((name, summary))
        # A page about two commands ("# tacho top, tacho busy") has the second one's name too.
        for other in re.findall(r"tacho ([a-z]+)", title):
            if other != source.stem:
                (out / f"tacho-{other}.1").write_text(f".so man1/{name}.1\n")
    listing = "\n".join(f"- **{name}**(1): {summary}" for name, summary in pages)
    body = ("tacho traces, samples and counts what GPU programs do, and answers questions about the recordings. "
            "`tacho --help` lists its commands, `tacho COMMAND --help` the options of one.\n\n# PAGES\n\n" + listing)
    (out / "tacho.1").write_bytes(man_page("tacho", "a profiler for GPU programs", body, version))


if __name__ == "__main__":
    main()
