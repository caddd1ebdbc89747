#!/usr/bin/env python3
"""rocmProfileData's rpd2tracing.py on top of tacho: converts an .rpd file to JSON for chrome://tracing or Perfetto.

    python3 rpd2tracing.py INPUT.rpd [OUTPUT.json] [--start S] [--end E] [--format object|array]

Finds the tacho program of the installation that it lies in, else in PATH. Standard library only.
"""
import os
import shutil
import sys


def find_tacho():
    here = os.path.dirname(os.path.realpath(__file__))
    # PREFIX/share/tacho/tools/rpd2tracing.py of an installation, SOURCE/share/tools/ with a build folder beside it.
    for place in ("../../../bin/tacho", "../../build/bin/tacho"):
        path = os.path.normpath(os.path.join(here, place))
        if os.access(path, os.X_OK):
            return path
    return shutil.which("tacho")


def main():
    tacho = find_tacho()
    if tacho is None:
        sys.exit("rpd2tracing.py: the program tacho was not found: put it into PATH")
    # tacho takes over the command line of the tool under whose name it is started.
    os.execv(tacho, ["rpd2tracing"] + sys.argv[1:])


if __name__ == "__main__":
    main()
