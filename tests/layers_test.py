"""Includes point down, modules form no circles, and a vendor stays in its rooms.

The order of the folders is that of src/CMakeLists.txt: a folder may include what its library USES, directly or through
others. A module is a .h and the .cpp of its name; no module includes itself through others. A vendor's folder of src/vendor
may only be included by the rooms that belong to a vendor (VENDOR_ROOMS), and no other room names a vendor.

tests/layers_allowed.txt lists the circles and the files outside these rooms that name a vendor, with the number of their
lines that do. It only shrinks: a number that is too high fails this test, too.

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
    "capture/plugin": ["base", "event", "vendor", "tape", "capture/room", "capture"],
}
EVERYTHING = ["cli"]

# Rooms with a folder for each vendor, runtime or kind of block. Only files in such folders may include src/vendor/<vendor>.
VENDOR_ROOMS = ["vendor", "capture/source", "capture/plugin", "counter/provider", "decode", "roofline"]
# Folders in them that belong to no vendor.
NO_VENDORS = ["decode/records"]

# Rooms about vendors beside those: numbers and names of their functions, and the files and command lines of their tools. They
# grow with those tools, so their names are not counted.
ROOMS_THAT_NAME_VENDORS = ["event/functions", "format/chrome_json", "format/import", "format/kineto", "format/nsys", "format/rocpd",
                           "format/rocprof_v1", "format/rocprofv3_csv", "format/rocprofv3_json", "format/rpd",
                           "cli/personalities", "cli/sys"]
# Lists to which the recipe "a vendor" of CONTRIBUTING.md appends.
LISTS = ["capture/sources.def", "cli/options/recording_options.cpp", "cli/profile/options.cpp", "event/configuration.h",
         "event/enums.def", "event/tables.def", "tape/layout.h"]
# Names as code writes them in small letters, and how else they are written than in capitals or with one.
VENDORS = {"nvidia": (), "cuda": (), "cupti": (), "nvml": (), "nvtx": (), "nccl": (), "amd": (), "amdgpu": (), "rocm": ("ROCm",),
           "hip": (), "hsa": (), "rccl": (), "roctx": ("ROCTx",), "rocprofiler": (), "opencl": ("OpenCL", "OpenCl")}


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
    """The exceptions of tests/layers_allowed.txt: [set of modules in a circle], {file: lines that name a vendor}."""
    text = pathlib.Path(__file__).with_name("layers_allowed.txt").read_text()
    lines = [line.split() for line in text.split("\n") if line and not line.startswith("#")]
    return ([set(rest) for kind, *rest in lines if kind == "circle"],
            {rest[0]: int(rest[1]) for kind, *rest in lines if kind == "vendor"})


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
    """Matches a vendor's name as a word, or as a word of a longer name."""
    capital = [form for name, others in VENDORS.items() for form in (name.capitalize(), *others)]
    anywhere = "|".join([*VENDORS, *map(str.upper, VENDORS), *capital])
    return re.compile(rf"(?<![A-Za-z])(?:{anywhere})(?![a-z])|(?<=[a-z])(?:{'|'.join(capital)})(?![a-z])")


def may_name_vendors(path):
    """Whether a file, by its path below src, is in a vendor's room or in one about vendors."""
    if any(path.startswith(room + "/") for room in NO_VENDORS):
        return False
    # A room's own list (vendors.def, providers.def) is the one place above its folders that has their names.
    in_room = any(path.startswith(room + "/") and ("/" in path[len(room) + 1:] or path.endswith(".def"))
                  for room in VENDOR_ROOMS)
    return in_room or path in LISTS or any(path.startswith(room + "/") for room in ROOMS_THAT_NAME_VENDORS)


def lines_that_name_vendors(sources):
    """{path below src: [(line's number, first name in its code)]}; comments and includes do not count."""
    pattern = vendor_names()
    found = {}
    for name, text in sources.items():
        path = name.removeprefix("src/")
        if may_name_vendors(path):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            code = re.sub(r"//.*", "", line)
            if not code.lstrip().startswith("#include") and (match := pattern.search(code)):
                found.setdefault(path, []).append((number, match.group()))
    return found


def wrong_names(sources, allowed):
    found = lines_that_name_vendors(sources)
    for path in sorted(found.keys() | allowed.keys()):
        lines, limit = found.get(path, []), allowed.get(path, 0)
        if len(lines) > limit:
            places = ", ".join(f"{number} ({word})" for number, word in lines)
            yield (f"src/{path}: a vendor is named in these lines, {limit} of them allowed: {places}. Only vendors' rooms name "
                   "them: put the name into vendor.def of the vendor and ask through src/vendor/definitions.h or vendor.h.")
        elif len(lines) < limit:
            yield (f"tests/layers_allowed.txt: src/{path} names a vendor less often: "
                   + (f"put {len(lines)} there instead of {limit}." if lines else "remove its line."))


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
