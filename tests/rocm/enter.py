"""The inside of scripts/rocm-bed.sh: makes a mount namespace with AMD's user-space as its root and runs a command in it.

    enter.py ROOT TOPOLOGY|none PRELOAD|none FOLDER COMMAND...

The root gets the host's folders apart from those of the system, a /dev with kfd and render nodes (empty files: the imitation
answers for them) and a /sys with the topology of the GPUs. One process instead of some sixty mounts, mkdirs and links of a shell,
which took most of a short test's time. Exit code 77: this machine allows no mount namespace."""
import ctypes
import os
import pathlib
import shutil
import signal
import sys

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
SYSTEM = {"usr", "bin", "sbin", "etc", "dev", "sys", "boot", "proc", "snap"}  # and lib...

libc = ctypes.CDLL(None, use_errno=True)


def failed(what):
    error = ctypes.get_errno()
    return OSError(error, f"{what}: {os.strerror(error)}")


def mount(source, target, kind=None, flags=0, data=None):
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    if libc.mount(*words, ctypes.c_ulong(flags), None if data is None else data.encode()) != 0:
        raise failed(f"mounting {target}")


def bind(source, target):
    mount(source, target, flags=MS_BIND | MS_REC)


def own_namespace():
    user, group = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWNS | (0 if user == 0 else CLONE_NEWUSER)) != 0:
        raise failed("unshare")
    if user != 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            pathlib.Path("/proc/self", name).write_text(text)
    mount(None, "/", flags=MS_REC | MS_PRIVATE)


def make_root(root, topology):
    for name in os.listdir("/"):
        if name in SYSTEM or name.startswith("lib") or os.path.islink(f"/{name}") or not os.path.isdir(f"/{name}"):
            continue
        os.makedirs(f"{root}/{name}", exist_ok=True)
        bind(f"/{name}", f"{root}/{name}")
    bind("/proc", f"{root}/proc")

    mount("bed-dev", f"{root}/dev", "tmpfs", data="mode=755")
    for name in ("shm", "pts", "dri"):
        os.mkdir(f"{root}/dev/{name}")
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        empty(f"{root}/dev/{name}")
        bind(f"/dev/{name}", f"{root}/dev/{name}")
    bind("/dev/shm", f"{root}/dev/shm")
    os.symlink("/proc/self/fd", f"{root}/dev/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"{root}/dev/{name}")

    mount("bed-sys", f"{root}/sys", "tmpfs", data="mode=755")
    for name in ("kernel", "devices/system", "devices/virtual/kfd/kfd", "class/kfd", "module/amdgpu"):
        os.makedirs(f"{root}/sys/{name}")
    for name in ("kernel", "devices/system"):
        bind(f"/sys/{name}", f"{root}/sys/{name}")
    if topology != "none":
        make_gpus(root, topology)


def make_gpus(root, topology):
    sys_folder = f"{root}/sys"
    shutil.copytree(f"{topology}/topology", f"{sys_folder}/devices/virtual/kfd/kfd/topology", symlinks=True)
    for name in ("class/drm", "class/net", "class/scsi_host", "class/hwmon", "bus/pci/devices"):
        os.makedirs(f"{sys_folder}/{name}")
    shutil.copytree(f"{topology}/pci", f"{sys_folder}/devices/pci0000:00", symlinks=True)
    for name in os.listdir(f"{sys_folder}/devices/pci0000:00"):
        os.symlink(f"../../../devices/pci0000:00/{name}", f"{sys_folder}/bus/pci/devices/{name}")
        for node in os.listdir(f"{sys_folder}/devices/pci0000:00/{name}/drm"):
            os.symlink(f"../../devices/pci0000:00/{name}/drm/{node}", f"{sys_folder}/class/drm/{node}")
    os.symlink("../../devices/virtual/kfd/kfd", f"{sys_folder}/class/kfd/kfd")
    pathlib.Path(sys_folder, "module/amdgpu/initstate").write_text("live\n")
    empty(f"{root}/dev/kfd")
    for properties in pathlib.Path(topology, "topology/nodes").glob("*/properties"):
        for line in properties.read_text().splitlines():
            name, value = line.split()
            if name == "drm_render_minor" and int(value) > 0:
                empty(f"{root}/dev/dri/renderD{value}")


def empty(path):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))


def main(root, topology, preload, folder, *command):
    try:
        own_namespace()
    except OSError as error:
        print(f"rocm-bed.sh: this machine allows no mount namespace ({error}), which the bed's /dev and /sys need", file=sys.stderr)
        sys.exit(77)
    try:
        make_root(root, topology)
        os.chroot(root)
    except OSError as error:
        sys.exit(f"rocm-bed.sh: the bed's root cannot be made: {error}")
    try:
        os.chdir(folder)
    except OSError:
        os.chdir("/")
    variables = dict(os.environ)
    if preload != "none":
        variables["LD_PRELOAD"] = ":".join(filter(None, (preload, variables.get("LD_PRELOAD"))))
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and the command would go on doing so
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(command[0], command, variables)
    except OSError as error:
        print(f"rocm-bed.sh: {command[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    main(*sys.argv[1:])
