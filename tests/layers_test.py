"""Includes point down, and a vendor stays in its rooms.

The order of the folders is that of src/CMakeLists.txt: a folder may include what its library USES, directly or through
others. A vendor's folder of src/vendor may only be included by the rooms that belong to a vendor (VENDOR_ROOMS).

    python3 tests/layers_test.py [SOURCE_TREE]
"""

import pathlib
import re
import sys

# What is no tacho_library: libtacho.so and the libraries beside it are compiled from these folders' headers (and, for
# the writing side of the pool, sources); the executable links everything.
BESIDE_LIBRARIES = {
    "capture": ["base", "event", "vendor", "tape"],
    "capture/plugin": ["base", "event", "vendor"],
}
EVERYTHING = ["cli"]

# Rooms with a folder for each vendor, runtime or kind of block. Only files in such folders may include src/vendor/<vendor>.
VENDOR_ROOMS = ["vendor", "capture/source", "capture/plugin", "counter/provider", "decode", "roofline"]

# Headers that folders below theirs include, and why it cannot be otherwise.
EXCEPTIONS = {
    "format/format.h": "the interface that each format implements; format/ itself lists the formats",
}


def libraries(cmake):
    """{folder: folders whose headers it may include}, from the lines of src/CMakeLists.txt."""
    uses = {}
    for folder, rest in re.findall(r"^\s*tacho_library\((\S+)([^)]*)\)", cmake, re.MULTILINE):
        names = rest.split("USES", 1)[1].split() if "USES" in rest else []
        uses[folder] = names
    return uses


def allowed_folders(folder, uses, folder_of_target):
    """The closure of `uses` from `folder`, itself included."""
    seen, waiting = set(), [folder]
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        waiting += [folder_of_target[target] for target in uses.get(each, []) if target in folder_of_target]
    return seen


def folder_of(path, folders):
    """The longest of `folders` that `path` lies in; None when it is none of ours (a generated or a system's header)."""
    parts = path.split("/")
    for count in range(len(parts) - 1, 0, -1):
        if (folder := "/".join(parts[:count])) in folders:
            return folder
    return None


def main():
    tree = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    src = tree / "src"
    uses = libraries((src / "CMakeLists.txt").read_text())
    # Formats without a line of their own (the loop in src/CMakeLists.txt).
    generic = uses.pop("format/${format}", ["tacho_format_view"])
    for folder in (src / "format").iterdir():
        if folder.is_dir():
            uses.setdefault(f"format/{folder.name}", generic)
            uses["format"] = [*uses.get("format", []), f"tacho_format_{folder.name}"]
    folder_of_target = {"tacho_" + folder.replace("/", "_"): folder for folder in uses}
    may_include = {folder: allowed_folders(folder, uses, folder_of_target) for folder in uses}
    for folder, below in BESIDE_LIBRARIES.items():
        may_include[folder] = {folder, *below}
    folders = {*may_include, *EVERYTHING}

    vendors = [each.name for each in (src / "vendor").iterdir() if each.is_dir()]
    wrong = []
    for file in sorted([*src.rglob("*.h"), *src.rglob("*.cpp"), *src.rglob("*.c"), *src.rglob("*.def"), *src.rglob("*.inc")]):
        path = file.relative_to(src).as_posix()
        own = folder_of(path, folders)
        for number, line in enumerate(file.read_text().split("\n"), 1):
            found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not found or found[1] in EXCEPTIONS:
                continue
            included = found[1]
            other = folder_of(included, folders)
            if other is None:
                continue
            if own not in EVERYTHING and own is not None and other not in may_include[own]:
                wrong.append(f"src/{path}:{number}: {own} may not include {included}: src/CMakeLists.txt has {other} above it "
                             "or beside it")
            vendor = re.match(r"vendor/(\w+)/", included)
            # In a room, and there in a folder below it.
            in_room = any(path.startswith(room + "/") and "/" in path[len(room) + 1:] for room in VENDOR_ROOMS)
            if vendor and vendor[1] in vendors and not in_room:
                wrong.append(f"src/{path}:{number}: {included} belongs to a vendor; only files in a folder of "
                             f"{', '.join(VENDOR_ROOMS)} may include it")
    for each in wrong:
        print(each)
    for path in EXCEPTIONS:
        if not (src / path).exists():
            wrong.append(path)
            print(f"tests/layers_test.py: there is no src/{path} any more: remove its exception")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
