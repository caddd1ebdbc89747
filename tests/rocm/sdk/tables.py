"""Writes the assembly of register.cpp's tables of HIP, from the header and the library of a root with HIP.

    tables.py ROOT OUTPUT.S
"""
import pathlib
import re
import subprocess
import sys


def entries(header, table):
    body = re.search(rf"struct {table} \{{(.*?)\n\}};", header, re.S).group(1)
    body = re.sub(r"//[^\n]*", "", body)
    return [name for _, name in re.findall(r"\bt_(\w+)\s+(\w+)_fn\s*;", body)]


def main(root, output):
    root = pathlib.Path(root)
    header = (root / "usr/include/hip/amd_detail/hip_api_trace.hpp").read_text()
    version = (root / "usr/include/hip/hip_version.h").read_text()
    major, minor = (int(re.search(rf"HIP_VERSION_{part}\s+(\d+)", version).group(1)) for part in ("MAJOR", "MINOR"))
    library = next((root / "usr/lib/x86_64-linux-gnu").glob("libamdhip64.so.?"))
    listed = subprocess.run(["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE, check=True, text=True).stdout
    exported = {line.split()[2].split("@")[0] for line in listed.splitlines() if len(line.split()) == 3}
    code, data = [".text"], [".data"]
    for table, symbol in (("HipCompilerDispatchTable", "tacho_hip_compiler"), ("HipDispatchTable", "tacho_hip_runtime")):
        names = entries(header, table)
        for at, name in enumerate(names, 1):
            if name in exported:
                code += [f".globl {name}", f".type {name},@function", f"{name}:", f"  movq {symbol}_entries+{8 * at}(%rip), %r11",
                         "  testq %r11, %r11", "  jz tacho_no_such_function", "  jmp *%r11", f".size {name},.-{name}"]
            data += [f"{symbol}_name{at}: .asciz \"{name}\""]
        data += [".balign 8", f"{symbol}_entries: .zero {8 * (len(names) + 1)}", f"{symbol}_names: .quad 0"]
        data += [f"  .quad {symbol}_name{at}" for at in range(1, len(names) + 1)]
        data += [f".globl {symbol}",
                 f"{symbol}: .quad {symbol}_entries, {symbol}_names, {len(names) + 1}"]
    data += [".globl tacho_hip_version", ".hidden tacho_hip_version", f"tacho_hip_version: .long {10000 * major + 100 * minor}"]
    pathlib.Path(output).write_text("\n".join(code + data + ['.section .note.GNU-stack,"",@progbits']) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
