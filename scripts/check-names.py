#!/usr/bin/env python3
"""Checks that the tree speaks one dialect of names: size_t and not std::size_t, enumerators and constants kLikeThis.

    scripts/check-names.py [ROOT]      prints every place that does not; the exit code is 1 when there is one
"""

import pathlib
import re
import sys

FOLDERS = ("src", "include", "tests", "bench", "examples")
# Enumerators here are other people's names: functions of OpenCL, columns of tables, fields of Perfetto's protocol.
FOREIGN = {"src/event/functions/functions_opencl.h", "src/event/schema.h", "src/format/perfetto/packets.h"}
INTEGER = re.compile(r"\bstd::(?:size_t|ptrdiff_t|u?int(?:8|16|32|64|ptr|max)_t)\b")
ENUM = re.compile(r"\benum class \w+[^{;()]*\{([^}]*)\}")
CONSTANT = re.compile(
    r"^(?:static |inline )*constexpr (?:bool|char|int|double|float|size_t|u?int\d+_t|std::string_view)(?:\*| const)* (\w+)", re.M)
OURS = re.compile(r"k[A-Z0-9]\w*")


def without_comments(text):
    return re.sub(r"//[^\n]*", lambda comment: " " * len(comment.group()), text)


def faults(name, text):
    code = without_comments(text)

    def at(offset, sentence):
        return f"{name}:{code.count(chr(10), 0, offset) + 1}: {sentence}"

    for found in INTEGER.finditer(code):
        yield at(found.start(), f"{found.group()}: write it without std::")
    if name in FOREIGN:
        return
    for found in ENUM.finditer(code):
        if "#" in found.group(1) or "(" in found.group(1):
            continue  # made by macros
        for entry in found.group(1).split(","):
            word = entry.split("=")[0].strip()
            if word and not OURS.fullmatch(word):
                yield at(found.start(), f"enumerator {word}: call it k{word[0].upper()}{word[1:]}")
    for found in CONSTANT.finditer(code):
        if not OURS.fullmatch(found.group(1)) and code[found.end():].lstrip()[:1] in ("=", "{", "["):
            yield at(found.start(), f"constant {found.group(1)}: constants are kLikeThis")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    found = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".inc") and path.is_file():
                found += faults(path.relative_to(root).as_posix(), path.read_text(errors="replace"))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
