"""Includes point down, modules form no circles, and a vendor stays in its rooms.

The order of the folders is that of src/CMakeLists.txt: a folder may include what its library USES, directly or through
others. A module is a .h and the .cpp of its name; no module includes itself through others. A vendor's folder of src/vendor
may only be included by the rooms that belong to a vendor (VENDOR_ROOMS), and no other room names a vendor.

tests/layers_allowed.txt lists the circles and the places of vendors' names that are not mended yet. It only shrinks: a line
that no longer holds fails this test, too.

    python3 tests/layers_test.py [SOURCE_TREE]
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
import house  # noqa: E402, the folder of scripts is no package

# Rooms that are not a tacho_library: libtacho.so and the libraries beside it are compiled from these folders' headers (and, for
# the writing side of the pool, sources); the executable links everything.
BESIDE_LIBRARIES = {
    "capture/room": ["base"],
    "capture": ["base", "event", "vendor", "tape", "capture/room"],
    "capture/plugin": ["base", "event", "vendor", "capture/room"],
}
EVERYTHING = ["cli"]

# Rooms with a folder for each vendor, runtime or kind of block. Only files in such folders may include src/vendor/<vendor>.
VENDOR_ROOMS = ["vendor", "capture/source", "capture/plugin", "counter/provider", "decode", "roofline"]

# Rooms about vendors beside those: names of their functions, formats and command lines of their tools.
ROOMS_THAT_NAME_VENDORS = ["capture", "event/functions", "format/chrome_json", "format/import", "format/kineto", "format/rocpd", "format/rocprof_v1",
                           "format/rocprofv3_csv", "format/rocprofv3_json", "format/rpd", "cli/personalities"]
VENDORS = ("nvidia", "cuda", "cupti", "nvml", "nvtx", "amd", "rocm", "hip", "hsa", "roctx", "rocprofiler")


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


def allowed_today():
    """The exceptions of tests/layers_allowed.txt: [set of modules in a circle], {file that names a vendor}."""
    text = pathlib.Path(__file__).with_name("layers_allowed.txt").read_text()
    lines = [line.split() for line in text.split("\n") if line and not line.startswith("#")]
    return [set(rest) for kind, *rest in lines if kind == "circle"], {rest[0] for kind, *rest in lines if kind == "vendor"}


def wrong_circles(sources, allowed):
    edges = house.module_edges(sources)
    found = house.circles(edges)
    for circle in found:
        if any(set(circle) <= known for known in allowed):
            continue
        includes = "; ".join(f"{edges[module][other]} includes {other}" for module in circle for other in circle
                             if other in edges[module])
        yield f"A circle of modules: {includes}. Move what both need into a module of its own."
    for known in allowed:
        rest = [circle for circle in found if set(circle) <= known]
        if known not in map(set, rest):
            yield (f"tests/layers_allowed.txt: the circle of {' '.join(sorted(known))} is broken. "
                   + ("Put there instead: " + ", ".join("circle " + " ".join(circle) for circle in rest)
                      if rest else "Remove its line") + ".")


def vendor_names():
    """Matches a vendor's name as a word, or as a word of a name in either case."""
    forms = "|".join(f"{name}|{name.capitalize()}|{name.upper()}" for name in VENDORS)
    inner = "|".join(name.capitalize() for name in VENDORS)
    return re.compile(rf"(?<![A-Za-z])(?:{forms})(?![a-z])|(?<=[a-z])(?:{inner})(?![a-z])")


def wrong_names(sources, allowed):
    pattern = vendor_names()
    found = {}
    for name, text in sources.items():
        path = name.removeprefix("src/")
        # A room's own list (vendors.def, providers.def) is the one place above its folders that has their names.
        in_room = any(path.startswith(room + "/") and ("/" in path[len(room) + 1:] or path.endswith(".def"))
                      for room in VENDOR_ROOMS)
        if in_room or path.startswith(tuple(ROOMS_THAT_NAME_VENDORS)):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            code = re.sub(r"//.*", "", line)
            if not code.lstrip().startswith("#include") and (match := pattern.search(code)):
                found.setdefault(path, (number, match.group()))
    for path in sorted(found.keys() - allowed):
        number, word = found[path]
        yield f"src/{path}:{number}: \"{word}\" belongs to a vendor. Only vendors' rooms name it; ask through src/vendor/vendor.h."
    for path in sorted(allowed - found.keys()):
        yield f"tests/layers_allowed.txt: src/{path} names no vendor any more: remove its line."


def main():
    tree = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    src = tree / "src"
    uses = libraries((src / "CMakeLists.txt").read_text())
    # Formats without a line of their own (the loop in src/CMakeLists.txt).
    generic = uses.pop("format/${format}", ["tacho_format_shared"])
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
            if not found:
                continue
            included = found[1]
            other = folder_of(included, folders)
            if other is None:
                continue
            if own not in EVERYTHING and own is not None and other not in may_include[own]:
                wrong.append(f"src/{path}:{number}: {own} may not include {included}: src/CMakeLists.txt has {other} above it "
                             "or beside it")
            vendor = re.match(r"vendor/(\w+)/", included)
            # In a room, and there in a folder below it. The list of vendors includes what each vendor says of itself.
            in_room = any(path.startswith(room + "/") and "/" in path[len(room) + 1:] for room in VENDOR_ROOMS)
            own_list = path == "vendor/vendors.def" and included == f"vendor/{vendor and vendor[1]}/vendor.def"
            if vendor and vendor[1] in vendors and not in_room and not own_list:
                wrong.append(f"src/{path}:{number}: {included} belongs to a vendor; only files in a folder of "
                             f"{', '.join(VENDOR_ROOMS)} may include it")
    sources = house.Tree(tree).src
    circles_allowed, names_allowed = allowed_today()
    wrong += wrong_circles(sources, circles_allowed)
    wrong += wrong_names(sources, names_allowed)
    for each in wrong:
        print(each)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
