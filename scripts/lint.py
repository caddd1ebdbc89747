#!/usr/bin/env python3
"""Checks the tree's form: scripts/lint.py format | python | web | subjects [BASE..HEAD] | tidy [--build FOLDER] [--all] [PATTERN].

format  every C and C++ file of the tree is as clang-format would write it (.clang-format), which leaves comments alone;
        none of their lines is longer than 120 columns, lines of a drawing or a table (two spaces in a row) than 140.
tidy    clang-tidy finds nothing (.clang-tidy) in any unit of the build folder's compile_commands.json; with PATTERN, in
        those of which a source file's path holds it. A unit that passed is not read again until its text, a header that
        it includes, its command or .clang-tidy changes; --all reads them all.
web     eslint finds nothing in web/src, and prettier would change no file of it and no script of tests, benchmarks and
        scripts; both are those of the build folder's web/node_modules.
python  pyflakes and pycodestyle find nothing in any Python file; a line that says noqa is excused.
subjects
        subjects of commits are `area: imperative summary` in at most 72 characters: the area a folder or a command, the
        first word of the summary a verb of VERBS. Without a range: all since SUBJECTS_SINCE.

The tools of clang want version 14, Debian 12's: other versions format differently and find other things. Ends with 77 (a skipped test)
where the tool is missing.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("src", "include", "tests", "bench", "examples")
SUFFIXES = (".c", ".cpp", ".h")
PYTHON_FOLDERS = ("python", "scripts", "tests", "bench", "examples", "share", "src")
# A lambda may have a name, functions in functions stand without a line between, and no width is kept.
PYTHON_IGNORED = "E306,E501,E731,W503,W504"
LONGEST_COMMENT = 120  # columns
LONGEST_DRAWING = 140
VERBS = frozenset("""
    accept account add adjust align allow answer apply ask assert assign attach avoid bind blame bless bound break bring build bundle cache
    call carry catch cite check choose claim clean clear clone close collect combine compare compile complete compress compute
    configure convert copy correct count cover create cut declare decode define delete derive describe detach detect disable
    divide document draw drop embed enable encode end enter escape evaluate exclude expand expect explain export extend extract fail
    fetch fill finalise find fit fix flatten flush fold follow forbid format free fuzz gather generate give group grow guard hand handle
    harden have head indent
    hide hold honour ignore import include index inline insert install interpose introduce join judge keep label lay lead leave let
    lift limit link lint list load lock log look lower make map mark match measure mend merge mirror model move name normalise note
    number open order pack parse part pass pin plan plant pool prefer prepare print probe profile promise prove pull push put query
    quote raise read rebuild record recover redraw reduce refer reflow refuse reject relate release remember remove rename
    render reorder repair repeat replace report require reset resolve respect restore restrict retry return reuse reverse
    revert rewrite round run sample save say scale scan search see select send separate serve set settle share shorten show
    shrink sign simplify size skip sort speed spell split start state stay step stop store stream strip subtract suggest sum support
    survive swap sweep switch synchronise take teach tell test tidy tie tighten time tolerate trace track translate treat trim
    trust try turn unify unpack update upgrade use validate verify wait wake walk want warn watch weigh widen withhold wrap
    write""".split())
LONGEST_SUBJECT = 72  # characters
# The subjects after this commit are checked; those before it are as they are.
SUBJECTS_SINCE = "88095c16b01bef1c7f6f51eb7944571b64d9028b"


def tool(name):
    """The path of version 14 of a tool, or the end of the program."""
    for candidate in (f"{name}-14", name):
        path = shutil.which(candidate)
        if path and re.search(r"version 14\.", subprocess.run([path, "--version"], capture_output=True, text=True).stdout):
            return path
    print(f"lint.py: no {name} of version 14 (scripts/packages.sh test installs it)", file=sys.stderr)
    sys.exit(77)


def in_parallel(function, items):
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield from pool.map(function, items)


def check_format(_):
    clang_format = tool("clang-format")
    files = sorted(str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob("*")
                   if path.suffix in SUFFIXES and "node_modules" not in path.parts)
    chunks = [files[i:i + 20] for i in range(0, len(files), 20)]
    wrong = []
    for run in in_parallel(lambda chunk: subprocess.run([clang_format, "--dry-run", "-Werror", *chunk], cwd=ROOT,
                                                        capture_output=True, text=True), chunks):
        wrong += sorted(set(re.findall(r"^(\S+?):\d+:\d+: error: code should be clang-formatted", run.stderr, re.M)))
        if run.returncode != 0 and not wrong:
            print(run.stderr, file=sys.stderr)
            return 1
    if wrong:
        print(f"{len(wrong)} of {len(files)} files are not formatted. Run: clang-format -i " + " ".join(wrong))
        return 1
    long = [f"{name}:{number}" for name in files for number, line in enumerate((ROOT / name).read_text().splitlines(), 1)
            if line.lstrip().startswith("//")
            and len(line) > (LONGEST_DRAWING if "  " in line.lstrip("/ ") or "+--" in line else LONGEST_COMMENT)]
    if long:
        print(f"Comments longer than {LONGEST_COMMENT} columns: " + " ".join(long))
        return 1
    print(f"{len(files)} files are formatted")
    return 0


def dependencies(build):
    """The files behind each object of the last build, as ninja remembers: {object: [file, ...]}."""
    text = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True).stdout
    result = {}
    for part in text.split("\n\n"):
        lines = part.strip().splitlines()
        if lines and ": #deps" in lines[0]:
            result[lines[0].split(": #deps")[0]] = [line.strip() for line in lines[1:]]
    return result


def check_tidy(options):
    clang_tidy = tool("clang-tidy")
    build = pathlib.Path(options.build).resolve()
    commands = json.loads((build / "compile_commands.json").read_text())
    headers = dependencies(build)
    rules = (ROOT / ".clang-tidy").read_bytes()
    stamps = build / "lint"
    stamps.mkdir(exist_ok=True)
    hashes = {}

    def hash_of(path):
        path = os.path.join(build, path)
        if path not in hashes:
            try:
                hashes[path] = hashlib.sha256(pathlib.Path(path).read_bytes()).digest()
            except OSError:
                hashes[path] = b""
        return hashes[path]

    # clang does not know every option of GCC.
    unknown = re.compile(r" -fno-(?:gnu-unique|tree-loop-distribute-patterns)\b")
    (stamps / "compile_commands.json").write_text(
        json.dumps([{**entry, "command": unknown.sub("", entry["command"])} for entry in commands]))
    units = []
    for entry in commands:
        target = re.search(r" -o (\S+)", entry["command"]).group(1)
        sources = [entry["file"]]
        if entry["file"].endswith("_cxx.cxx"):  # CMake's, of files that are compiled together
            sources += re.findall(r'#include "([^"]+)"', pathlib.Path(entry["file"]).read_text())
        if any(options.pattern in path for path in sources):
            key = hashlib.sha256(rules + entry["command"].encode())
            made_of = headers.get(target)
            for path in sorted(made_of or []):
                if not path.startswith("/usr/"):
                    key.update(hash_of(path))
            units.append((entry, stamps / (key.hexdigest() + ".ok") if made_of else None))

    units = list({entry["file"]: (entry, stamp) for entry, stamp in units}.values())
    # The largest first, so that no long one is left for the end.
    units.sort(key=lambda unit: -len(headers.get(re.search(r" -o (\S+)", unit[0]["command"]).group(1), [])))
    wanted = [unit for unit in units if options.all or unit[1] is None or not unit[1].exists()]
    start = time.monotonic()
    findings = {}

    def read(unit):
        entry, stamp = unit
        run = subprocess.run([clang_tidy, "--quiet", "-p", stamps, entry["file"]], cwd=ROOT, capture_output=True, text=True)
        found = re.findall(r"^\S+?:\d+:\d+: (?:warning|error): .*\[.*(?:\n(?!\S+?:\d+:\d+: (?:warning|error)).*)*", run.stdout, re.M)
        if run.returncode != 0 and not found:
            found = [run.stdout + run.stderr]
        if not found and stamp:
            stamp.touch()
        return found

    for found in in_parallel(read, wanted):
        for text in found:
            findings.setdefault(text.splitlines()[0], text)
    for text in findings.values():
        print(text.replace(str(ROOT) + "/", ""))
    print(f"clang-tidy read {len(wanted)} of {len(units)} units in {time.monotonic() - start:.0f} s, "
          f"{len(findings)} findings")
    return 1 if findings else 0


def areas():
    """The areas of commits: a folder's name or its path below src, a command, or one of a few others."""
    folders = [path.relative_to(ROOT) for top in ("src", "tests", "docs", "scripts") for path in (ROOT / top).rglob("*") if path.is_dir()]
    commands = re.findall(r"^TACHO_COMMAND\((\w+)", (ROOT / "src/cli/commands.def").read_text(), re.M)
    tops = [path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")]
    return {"ci", "tree", "build", "lint", *tops, *commands, *(path.name for path in folders),
            *(path.relative_to("src").as_posix() for path in folders if path.parts[0] == "src")}


def check_subjects(options):
    """Subjects of commits are `area: imperative summary`, at most 72 characters."""
    span = options.pattern or f"{SUBJECTS_SINCE}..HEAD"
    log = subprocess.run(["git", "log", "--no-merges", "--format=%h %s", span], cwd=ROOT, capture_output=True, text=True)
    if log.returncode != 0:
        print(f"lint.py: no history to read here ({log.stderr.strip()})", file=sys.stderr)
        return 77
    known, wrong = areas(), []
    for line in log.stdout.splitlines():
        commit, subject = line.split(" ", 1)
        area, colon, summary = subject.partition(": ")
        verb = summary.split(" ", 1)[0]
        if not colon:
            wrong.append(f"{commit} {subject}: there is no area before a colon")
        elif not known.issuperset(area.split(", ")):
            wrong.append(f"{commit} {subject}: \"{area}\" is no folder and no command")
        elif verb not in VERBS:
            wrong.append(f"{commit} {subject}: the summary begins with a verb in the imperative; \"{verb}\" is not in VERBS of "
                         "scripts/lint.py (add it there if it is one)")
        elif len(subject) > LONGEST_SUBJECT:
            wrong.append(f"{commit} {subject}: {len(subject)} characters, at most {LONGEST_SUBJECT}")
    print("\n".join(wrong) if wrong else f"{len(log.stdout.splitlines())} subjects are as they should be")
    return 1 if wrong else 0


def check_python(_):
    """Python files: the faults that pyflakes and pycodestyle find; the source line of an excused finding says
    noqa."""
    tools = [shutil.which("pyflakes3"), shutil.which("pycodestyle")]
    if not all(tools):
        print("lint.py: no pyflakes3 or no pycodestyle (scripts/packages.sh test installs them)", file=sys.stderr)
        return 77
    files = sorted(str(path.relative_to(ROOT)) for folder in PYTHON_FOLDERS for path in (ROOT / folder).rglob("*.py")
                   if "node_modules" not in path.parts)
    wrong = []
    for command in ([tools[0]], [tools[1], f"--ignore={PYTHON_IGNORED}"]):
        run = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True)
        wrong += [line for line in (run.stdout + run.stderr).splitlines() if not excused(line)]
    print("\n".join(wrong) if wrong else f"{len(files)} files of Python have no faults")
    return 1 if wrong else 0


def excused(line):
    """Whether the line of source that a finding is about says noqa."""
    found = re.match(r"(.+?):(\d+):", line)
    return found is not None and "noqa" in (ROOT / found[1]).read_text().splitlines()[int(found[2]) - 1]


def check_web(options):
    """The pages' sources: the faults that eslint finds, and files that prettier would change."""
    web = pathlib.Path(options.build).resolve() / "web"
    if not (web / "node_modules/prettier").exists():
        print(f"lint.py: no prettier in {web}/node_modules (the target web_page installs it)", file=sys.stderr)
        return 77
    # Both look for their configurations and plugins where the packages are.
    for name in ("eslint.config.js", ".prettierrc.json", "svelte.config.js"):
        shutil.copy(ROOT / "web" / name, web / name)
    shutil.rmtree(web / "src", ignore_errors=True)
    shutil.copytree(ROOT / "web/src", web / "src")
    scripts = sorted(str(path) for folder in ("tests", "bench", "scripts") for path in (ROOT / folder).rglob("*.mjs")
                     if "node_modules" not in path.parts)
    sources = sorted(str(path) for path in (ROOT / "web/src").rglob("*") if path.suffix in (".ts", ".svelte", ".css"))
    formatted = subprocess.run(["node", "node_modules/prettier/bin/prettier.cjs", "--check", "--config", ".prettierrc.json",
                                *sources, *scripts], cwd=web)
    found = subprocess.run(["node", "node_modules/eslint/bin/eslint.js", "src"], cwd=web)
    return 1 if formatted.returncode or found.returncode else 0


CHECKS = {"format": check_format, "web": check_web, "tidy": check_tidy, "python": check_python, "subjects": check_subjects}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=tuple(CHECKS))
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--build", default=ROOT / "build")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    return CHECKS[options.what](options)


if __name__ == "__main__":
    sys.exit(main())
