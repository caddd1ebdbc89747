#!/usr/bin/env python3
"""Prints figures about the form of the tree: how often one question has more than one mechanism, and what is too big to read.

    scripts/house.py               every figure
    scripts/house.py --list NAME   the places that a figure counts (scripts/house.py --list circles)
    scripts/house.py --check       ends with 1 if a figure exceeds its limit in scripts/house.limits (the test `house`)
    scripts/house.py --lower       sets the limits that are too high to today's figures; no limit ever rises

It reads the text alone, in the form that clang-format gives it, so it needs no compiler and no index.
"""

import argparse
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMITS = ROOT / "scripts" / "house.limits"
CODE = (".h", ".cpp")

# Rooms that may name a column by its position: they define positions.
POSITIONS = ("src/trace/", "src/walk/")
# These know no column of a trace's tables: they go through the columns of relations, which statements name at run time.
RELATIONS = ("src/query/engine/", "src/query/sql/virtual_tables.cpp", "src/query/dialect/database_store.cpp")
# Rooms that write text of their own: the printers, foreign file formats, and the protocol of the pages.
PRINTERS = ("src/report/", "src/format/", "src/view/", "src/metric/render/page/", "src/base/", "src/trace/")
# Code that joins device work to the call that launched it: the pair that identifies a call, or a slack
# between two clocks.
JOIN = re.compile(r"\bCallKey\b|\{\s*process\w*,\s*correlation\w*\s*\}|\bk(?:ClocksDisagree|Slack) = 100'000'000")
BY_POSITION = re.compile(r"\b(?:row|rows|cells|values|columns|base|extra)(?:\(\))?\[[^\]]*\]")
WITH_POSITIONS = re.compile(r"\b(?:Time)?Cursor\b|constexpr int k\w+\[\] =")
PRINTS = re.compile(r"\bJsonWriter\b|\bformat\w* == \"csv\"")
TYPE = re.compile(r"^(?:struct|class|union|enum|enum class) (?:\[\[\S+\]\] |alignas\(\S+\) )?(\w+)(?: final)?(?: : [^;{]*)?(?: \{.*|)$")
TEST = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\(\s*\w+,\s*(\w+)\s*\)", re.M)
RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.S)


class Tree:
    """The text of every file of src/, and of the C++ tests, under its path from the root."""

    def __init__(self, root):
        self.root = root
        self.src = self.read("src", (".h", ".cpp", ".c", ".def", ".inc"))
        self.code = {name: text for name, text in self.src.items() if name.endswith(CODE)}
        self.tests = self.read("tests", CODE)

    def read(self, folder, suffixes):
        return {path.relative_to(self.root).as_posix(): path.read_text() for path in sorted((self.root / folder).rglob("*"))
                if path.suffix in suffixes and "node_modules" not in path.parts}


def module_of(name):
    """A module is a .h and the .cpp of the same name."""
    return re.sub(r"\.(?:h|cpp|c)$", "", name.removeprefix("src/"))


def module_edges(sources):
    """{module: {module that it includes: the file that does so}}; `sources`: {path: text}."""
    names = {name.removeprefix("src/") for name in sources}
    edges = collections.defaultdict(dict)
    for name, text in sources.items():
        for included in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.M):
            if included in names and module_of(included) != module_of(name):
                edges[module_of(name)][module_of(included)] = name
    return edges


def circles(edges):
    """Sets of modules each of which includes the others, directly or through others (Tarjan's components)."""
    number, lowest, stack, found = {}, {}, [], []

    def visit(start):
        number[start] = lowest[start] = len(number)
        stack.append(start)
        work = [(start, iter(edges.get(start, ())))]
        while work:
            module, rest = work[-1]
            for other in rest:
                if other not in number:
                    number[other] = lowest[other] = len(number)
                    stack.append(other)
                    work.append((other, iter(edges.get(other, ()))))
                    break
                if other in stack:
                    lowest[module] = min(lowest[module], number[other])
            else:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[module])
                if lowest[module] == number[module]:
                    at = stack.index(module)
                    if len(stack) - at > 1:
                        found.append(sorted(stack[at:]))
                    del stack[at:]

    for module in sorted(edges):
        if module not in number:
            visit(module)
    return sorted(found)


def functions(text):
    """(name, first line, lines) of each function of formatted text, lambdas and one-liners left out.

    A block ends in a line that is its indentation and "}"; it began at the last line of that indentation. What begins with
    struct, class or the like holds functions of its own; namespaces are not indented.
    """
    # Text after a raw string stays behind it, not at the line's begin.
    lines = RAW_STRING.sub(lambda raw: "\n" * raw.group().count("\n") + " " * 120, text).split("\n")
    result = []
    starts = {}  # indentation: the line that began the block
    inside = []  # indentations of the functions around this line: outer ones only
    for at, line in enumerate(lines):
        stripped = line.lstrip(" ")
        if not stripped or stripped.startswith(("#", "//")) or re.match(r"(public|private|protected):", stripped):
            continue
        indent = len(line) - len(stripped)
        while inside and inside[-1][0] >= indent and not (stripped.startswith("}") and inside[-1][0] == indent):
            inside.pop()
        if stripped.startswith("}"):
            start = starts.get(indent)
            if inside and inside[-1][0] == indent and start is not None and inside[-1][1] == start:
                inside.pop()
                result.append((function_name(lines[start:at]), start + 1, at - start + 1))
            continue
        starts[indent] = at
        if not inside and re.match(r"(?:namespace|extern|struct|class|union|enum|template)\b", stripped) is None and \
                opens_function(lines, at, indent):
            inside.append((indent, at))
    return result


def opens_function(lines, at, indent):
    """Whether the statement that begins at line `at` is a function's head: parentheses, then a brace that stays open."""
    head = ""
    for line in lines[at:at + 40]:
        if head and line.strip() and len(line) - len(line.lstrip(" ")) <= indent:
            return False
        head += " " + re.sub(r"//.*", "", line).rstrip()
        if head.endswith("{"):
            return "(" in head and re.search(r"\)\s*(?:const|noexcept|override|final|mutable|\s|->[^;=]*|:.*)*\{$", head) is not None \
                and re.match(r"\s*(?:static |inline |constexpr |const |auto )*\w[\w:<>*&, ]* = ", head) is None
        if head.endswith((";", "}")):
            return False
    return False


def function_name(lines):
    found = re.search(r"([~\w:]+|operator\S+)\(", " ".join(lines[:3]))
    return found.group(1) if found else lines[0].strip()


def long_functions(tree, most):
    return sorted(((lines, f"{name}:{first} {function}") for name, text in tree.code.items()
                   for function, first, lines in functions(text) if lines > most), reverse=True)


def type_homes(tree):
    """{name: headers that declare a type of this name outside any other type}."""
    homes = collections.defaultdict(set)
    for name, text in tree.code.items():
        if name.endswith(".h"):
            for line in text.split("\n"):
                if (found := TYPE.match(line)):
                    homes[found.group(1)].add(name)
    # Each table of tables.def is a type in each of event's namespaces (column::, members::, row::), on purpose: the macros hide all
    # of these from this script but the one that is written out.
    homes["Fact"].discard("src/event/members.h")
    return homes


def rooms(tree):
    """{folder: number of modules' files that lie in it, not below it}."""
    return collections.Counter(str(pathlib.PurePosixPath(name).parent) for name in tree.code)


def figures(tree):
    """[(name, title, places)]: a figure is the number of its places, or a pair (number, places)."""
    code = tree.code.items()
    positions = [f"{name}:{text.count(chr(10), 0, hit.start()) + 1} {hit.group()}" for name, text in code
                 if not name.startswith(POSITIONS + RELATIONS) and WITH_POSITIONS.search(text) for hit in BY_POSITION.finditer(text)]
    joins = sorted({module_of(name) for name, text in code if not name.startswith(POSITIONS) and JOIN.search(text)})
    printers = sorted({module_of(name) for name, text in code if not name.startswith(PRINTERS) and PRINTS.search(text)})
    room, files = rooms(tree).most_common(1)[0]
    repeated = {name: sorted(homes) for name, homes in type_homes(tree).items() if len(homes) > 1}
    tests = [f"{name} {test}" for name, text in tree.tests.items() for test in TEST.findall(text)
             if not re.fullmatch(r"(?:DISABLED_)?[A-Z][A-Za-z0-9]*", test)]
    return [
        ("lines", "lines of src (.h and .cpp)", (sum(text.count("\n") for _, text in code), [])),
        ("positions", "accesses to columns by position outside trace and walk", positions),
        ("joins", "modules that join calls and device work outside walk", joins),
        ("printers", "modules that print outside report", printers),
        ("circles", "circles of modules", [" ".join(circle) for circle in circles(module_edges(tree.src))]),
        ("room", f"most files in one room ({room})", (files, [f"{count:4} {name}" for name, count in rooms(tree).most_common(20)])),
        ("over100", "functions over 100 lines", [f"{lines:4} {place}" for lines, place in long_functions(tree, 100)]),
        ("over150", "functions over 150 lines", [f"{lines:4} {place}" for lines, place in long_functions(tree, 150)]),
        ("types", "names of types that repeat in headers", [f"{name}: {' '.join(homes)}" for name, homes in sorted(repeated.items())]),
        ("tests", "names of tests that are not PascalCase", tests),
    ]


def read_limits():
    return {name: int(value) for name, value in re.findall(r"^(\w+) (\d+)$", LIMITS.read_text(), re.M)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--lower", action="store_true")
    parser.add_argument("--list", metavar="NAME")
    options = parser.parse_args()
    limits = read_limits()
    over = 0
    for name, title, places in figures(Tree(ROOT)):
        value, places = places if isinstance(places, tuple) else (len(places), places)
        if options.list == name:
            print("\n".join(places))
        if options.list:
            continue
        limit = limits.get(name)
        print(f"{value:7} {title} [{name}]" + (f", limit {limit}" if limit is not None else ""))
        if limit is not None and value > limit:
            over += 1
            print(f"{name}: {value} exceeds the limit {limit}. scripts/house.py --list {name} names the places; mend what your "
                  "change added. Limits never rise.")
        if limit is not None and value < limit and options.lower:
            LIMITS.write_text(re.sub(rf"^{name} \d+$", f"{name} {value}", LIMITS.read_text(), flags=re.M))
    return 1 if options.check and over else 0


if __name__ == "__main__":
    sys.exit(main())
