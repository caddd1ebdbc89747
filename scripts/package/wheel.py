#!/usr/bin/env python3
"""Makes the wheel of scripts/package.sh from a staged installation: wheel.py STAGED VERSION FOLDER. Prints its path.

pip puts the program into bin/, the libraries into lib/ and the rest into share/ and libexec/ of the environment, where the
program finds them as in any installation. The Python package goes where `import tacho` finds it.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

METADATA = """Metadata-Version: 2.1
Name: tacho
Version: {version}
Summary: Profiler for GPU programs: traces, counters, roofline, ranks
License: MIT
License-File: LICENSE
Requires-Python: >=3.8
Classifier: Environment :: GPU
Classifier: License :: OSI Approved :: MIT License
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: Software Development :: Debuggers
Description-Content-Type: text/markdown

{description}"""
WHEEL = """Wheel-Version: 1.0
Generator: tacho (scripts/package/wheel.py)
Root-Is-Purelib: false
Tag: {tag}
"""
# Wheels hold no links: the program under another tool's name is a script.
PERSONALITY = """#!/usr/bin/env python3
import os
import sys

program = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../../bin/tacho")
os.execv(program, ["{name}", *sys.argv[1:]])
"""


def binaries(folder):
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.open("rb").read(4) == b"\x7fELF":
            yield path


def needed_glibc(folder):
    """The newest glibc that any program or library below the folder asks for, as (2, 34)."""
    newest = (2, 0)
    for path in binaries(folder):
        symbols = subprocess.run(["objdump", "-T", path], stdout=subprocess.PIPE, check=True).stdout.decode()
        newest = max([newest, *(tuple(map(int, v.split("."))) for v in re.findall(r"\(?GLIBC_(2\.\d+)", symbols))])
    return newest


def copy(source, target):
    """Copies a file or folder; what a link points to takes its place."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


def lay_out(staged, version, tag, wheel):
    data = wheel / f"tacho-{version}.data"
    copy(staged / "bin" / "tacho", data / "scripts" / "tacho")
    for name in ("lib", "include", "share/tacho", "share/sample", "share/man", "share/bash-completion", "share/zsh", "share/fish",
                 "share/pkgconfig"):
        if (staged / name).exists():
            copy(staged / name, data / "data" / name)
    copy(staged / "share" / "tacho" / "python" / "tacho", wheel / "tacho")
    personalities = data / "data" / "libexec" / "tacho" / "personalities"
    personalities.mkdir(parents=True)
    for each in sorted((staged / "libexec" / "tacho" / "personalities").iterdir()):
        if each.is_symlink():
            (personalities / each.name).write_text(PERSONALITY.format(name=each.name))
            (personalities / each.name).chmod(0o755)
        else:
            copy(each, personalities / each.name)
    info = wheel / f"tacho-{version}.dist-info"
    info.mkdir()
    copy(staged / "share" / "doc" / "tacho" / "LICENSE", info / "LICENSE")
    description = (pathlib.Path(__file__).resolve().parents[2] / "CHANGELOG.md").read_text()
    (info / "METADATA").write_text(METADATA.format(version=version, description=description))
    (info / "WHEEL").write_text(WHEEL.format(tag=tag))


def main():
    staged, version, target = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    tag = "py3-none-manylinux_{}_{}_{}".format(*needed_glibc(staged), os.uname().machine)
    with tempfile.TemporaryDirectory() as folder:
        wheel = pathlib.Path(folder) / "wheel"
        lay_out(staged, version, tag, wheel)
        subprocess.run([sys.executable, "-m", "wheel", "pack", wheel, "--dest-dir", target], stdout=subprocess.DEVNULL, check=True)
    print(target / f"tacho-{version}-{tag}.whl")


if __name__ == "__main__":
    main()
