"""The checks of watch_faults.sh: programs that do to the driver what is hard on a tool, each under `tacho watch`. Every launch adds one to
a word in the device's memory, so that the device itself says how many there were.

contexts    contexts are made and destroyed with work of theirs pending, ten times
captures    one thread captures streams, makes graphs and launches them, while another launches and waits: no capture may fail by tacho
per_thread  four threads launch into their own default streams
reset       the primary context is reset with work pending, and used again, five times
forks       children are forked after CUDA has started; some run another program
green       work in green contexts, which are destroyed with work pending
library     the driver's functions by a dlopen and dlsym of the program's own, by cuGetProcAddress, and both mixed
peers       two devices: work on both, copies between them (skipped where there is one)
mps         two programs at once under NVIDIA's MPS (skipped where it does not start)
"""
import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

# Runs for some cycles, and adds one to a word.
PTX = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry add_and_spin(.param .u64 at, .param .u64 cycles) {
  .reg .u64 %rd<6>; .reg .u32 %r<2>; .reg .pred %p;
  ld.param.u64 %rd1, [at];
  ld.param.u64 %rd2, [cycles];
  mov.u64 %rd3, %clock64;
again:
  mov.u64 %rd4, %clock64;
  sub.u64 %rd5, %rd4, %rd3;
  setp.lt.u64 %p, %rd5, %rd2;
  @%p bra again;
  atom.global.add.u32 %r1, [%rd1], 1;
  ret;
}
"""


# The programs

class Driver:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)

    def __call__(self, name, *arguments, allowed=()):
        result = getattr(self.cuda, name)(*arguments)
        if result != 0 and result not in allowed:
            raise SystemExit(f"{name} returned {result}")
        return result

    def new(self, name, *arguments, kind=ctypes.c_void_p):
        made = kind()
        self(name, ctypes.byref(made), *arguments)
        return made

    def primary(self, device=0):
        context = self.new("cuDevicePrimaryCtxRetain", device)
        self("cuCtxSetCurrent", context)
        return context


class Adder:
    """The kernel in the current context, and its word."""
    def __init__(self, driver):
        self.driver = driver
        self.module = driver.new("cuModuleLoadData", PTX)
        self.function = driver.new("cuModuleGetFunction", self.module, b"add_and_spin")
        self.at = driver.new("cuMemAlloc_v2", ctypes.c_size_t(4), kind=ctypes.c_uint64)
        driver("cuMemsetD32_v2", self.at, 0, ctypes.c_size_t(1))

    def launch(self, count, stream=None, cycles=2000, function="cuLaunchKernel"):
        cycles = ctypes.c_uint64(cycles)
        parameters = (ctypes.c_void_p * 2)(ctypes.addressof(self.at), ctypes.addressof(cycles))
        for _ in range(count):
            self.driver(function, self.function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, None)
        return count

    def value(self):
        self.driver("cuCtxSynchronize")
        value = ctypes.c_uint32()
        self.driver("cuMemcpyDtoH_v2", ctypes.byref(value), self.at, ctypes.c_size_t(4))
        return value.value


def contexts(driver):
    launched = 0
    for _ in range(10):
        context = driver.new("cuCtxCreate_v2", 0, 0)
        adder = Adder(driver)
        launched += adder.launch(300)
        driver("cuStreamSynchronize", None)
        assert adder.value() == 300
        launched += adder.launch(300, cycles=200000)
        driver("cuCtxDestroy_v2", context)
    driver.primary()
    adder = Adder(driver)
    launched += adder.launch(500)
    assert adder.value() == 500
    return {"kernels": launched}


def captures(driver):
    context = driver.primary()
    adder, beside = Adder(driver), Adder(driver)
    stop, made = threading.Event(), [0]

    def launches():
        driver("cuCtxSetCurrent", context)
        stream = driver.new("cuStreamCreate", 1)
        while not stop.is_set():
            made[0] += beside.launch(20, stream)
            driver("cuStreamSynchronize", stream)
    thread = threading.Thread(target=launches)
    thread.start()
    stream = driver.new("cuStreamCreate", 1)
    graphs = launched = 0
    try:
        for turn in range(200):
            launched += adder.launch(3, stream)  # some of them are timed: pairs are open and pending
            # Only its own thread is forbidden anything, or nobody: the other one goes on.
            driver("cuStreamBeginCapture_v2", stream, 1 + turn % 2)
            adder.launch(5, stream)
            graph = ctypes.c_void_p()
            driver("cuStreamEndCapture", stream, ctypes.byref(graph))
            executable = driver.new("cuGraphInstantiateWithFlags", graph, ctypes.c_uint64(0))
            for _ in range(4):
                driver("cuGraphLaunch", executable, stream)
            graphs += 4
            driver("cuStreamSynchronize", stream)
            driver("cuGraphExecDestroy", executable)
            driver("cuGraphDestroy", graph)
    finally:
        stop.set()
        thread.join()
    assert adder.value() == launched + graphs * 5, (adder.value(), launched, graphs)
    assert beside.value() == made[0]
    return {"kernels": launched + made[0], "graphs": graphs}


def per_thread(driver):
    context = driver.primary()
    adder = Adder(driver)
    errors = []

    def launches():
        try:
            driver("cuCtxSetCurrent", context)
            per_thread_stream = ctypes.c_void_p(2)  # CU_STREAM_PER_THREAD
            for _ in range(100):
                adder.launch(20, None, function="cuLaunchKernel_ptsz")
                adder.launch(20, per_thread_stream)
                driver("cuStreamSynchronize_ptsz", None)
        except SystemExit as error:
            errors.append(error)
    threads = [threading.Thread(target=launches) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    assert adder.value() == 4 * 100 * 40
    return {"kernels": 4 * 100 * 40}


def reset(driver):
    launched = 0
    for _ in range(5):
        driver.primary()
        adder = Adder(driver)
        launched += adder.launch(400)
        assert adder.value() == 400
        launched += adder.launch(200, cycles=100000)
        driver("cuDevicePrimaryCtxReset_v2", 0)
    driver.primary()
    adder = Adder(driver)
    launched += adder.launch(400)
    assert adder.value() == 400
    return {"kernels": launched}


def forks(driver):
    driver.primary()
    adder = Adder(driver)
    launched = 0
    for turn in range(6):
        launched += adder.launch(200)
        child = os.fork()
        if child == 0:
            if turn % 2:
                os.execv(sys.executable, [sys.executable, "-c", "print('a child')"])
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (0 if turn % 2 else 7)
        launched += adder.launch(200)
    assert adder.value() == launched
    return {"kernels": launched}


def green(driver):
    driver.primary()
    resource = ctypes.create_string_buffer(1024)  # CUdevResource
    driver("cuDeviceGetDevResource", 0, resource, 1)  # CU_DEV_RESOURCE_TYPE_SM
    launched = 0
    for _ in range(5):
        description = driver.new("cuDevResourceGenerateDesc", resource, 1)
        context = driver.new("cuGreenCtxCreate", description, 0, 1)  # CU_GREEN_CTX_DEFAULT_STREAM
        driver("cuCtxSetCurrent", driver.new("cuCtxFromGreenCtx", context))
        adder = Adder(driver)
        launched += adder.launch(300)
        assert adder.value() == 300
        launched += adder.launch(100, cycles=100000)
        driver("cuGreenCtxDestroy", context)
        driver.primary()
    adder = Adder(driver)
    launched += adder.launch(300)
    assert adder.value() == 300
    return {"kernels": launched}


def library(driver):
    driver.primary()
    adder = Adder(driver)
    libc = ctypes.CDLL(None)
    libc.dlopen.restype = libc.dlsym.restype = ctypes.c_void_p
    handle = libc.dlopen(b"libcuda.so.1", 1)
    by_hand = libc.dlsym(ctypes.c_void_p(handle), b"cuLaunchKernel")
    given = ctypes.c_void_p()
    driver("cuGetProcAddress_v2", b"cuLaunchKernel", ctypes.byref(given), 12000, ctypes.c_uint64(1), None)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    cycles = ctypes.c_uint64(2000)
    parameters = (ctypes.c_void_p * 2)(ctypes.addressof(adder.at), ctypes.addressof(cycles))
    launched = 0
    for _ in range(500):
        for call in (kind(by_hand), kind(given.value)):
            assert call(adder.function, 1, 1, 1, 1, 1, 1, 0, None, ctypes.cast(parameters, ctypes.c_void_p), None) == 0
            launched += 1
        launched += adder.launch(1)
    assert adder.value() == launched
    return {"kernels": launched}


def peers(driver):
    count = driver.new("cuDeviceGetCount", kind=ctypes.c_int).value
    if count < 2:
        return {"skipped": f"{count} device"}
    sides = []
    for device in range(2):
        context = driver.primary(device)
        sides.append((context, Adder(driver), driver.new("cuMemAlloc_v2", ctypes.c_size_t(1 << 20), kind=ctypes.c_uint64), driver.new("cuStreamCreate", 1)))
    for (context, *_), (other, *_) in (sides, sides[::-1]):
        driver("cuCtxSetCurrent", context)
        driver("cuCtxEnablePeerAccess", other, 0, allowed=(217, 704))  # there may be no way, or it may be open
    launched = copies = 0
    for _ in range(200):
        for (context, adder, memory, stream), (other, _, there, _) in (sides, sides[::-1]):
            driver("cuCtxSetCurrent", context)
            launched += adder.launch(5, stream)
            driver("cuMemcpyPeerAsync", there, other, memory, context, ctypes.c_size_t(1 << 20), stream)
            copies += 1
        for context, _, _, stream in sides:
            driver("cuCtxSetCurrent", context)
            driver("cuStreamSynchronize", stream)
    for context, adder, _, _ in sides:
        driver("cuCtxSetCurrent", context)
        assert adder.value() == 1000
    return {"kernels": launched, "device to peer": copies, "bytes to peer": copies << 20}


def plain(driver):
    driver.primary()
    adder = Adder(driver)
    end, launched = time.monotonic() + 3, 0
    while time.monotonic() < end:
        launched += adder.launch(100)
        driver("cuCtxSynchronize")
    assert adder.value() == launched
    return {"kernels": launched}


# The checks

class Verdict:
    wrong = 0

    def say(self, good, text):
        self.wrong += 0 if good else 1
        print(f"{'ok   ' if good else 'WRONG'} {text}", flush=True)


def start(tacho, out, name, number=0, **variables):
    file = out / f"watch_faults_{name}{number}.jsonl"
    command = [tacho, "watch", "--output-format", "json", "-o", file, "--overwrite", "--", sys.executable, __file__, "--program", name]
    return file, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **variables})


def judge(verdict, name, file, process):
    said, errors = process.communicate(timeout=120)
    lines = [line for line in said.splitlines() if line.startswith("{")]
    if process.returncode != 0 or not lines:
        return verdict.say(False, f"{name}: ended with {process.returncode}: {errors[-600:]}")
    truth = json.loads(lines[-1])
    if "skipped" in truth:
        print(f"skip  {name}: {truth['skipped']}")
        return None
    last = json.loads(file.read_text().splitlines()[-1])
    seen = {"kernels": 0, "graphs": 0, "device to peer": 0, "bytes to peer": 0}
    times = []
    for row in last["rows"]:
        if row["kind"] in ("kernel", "graph"):
            seen[row["kind"] + "s"] += row["count"]
        if row["name"] == "device to peer":
            seen["device to peer"], seen["bytes to peer"] = row["count"], row["bytes"]
        if row["kind"] == "kernel":
            times.append(f"{row['timed']} timed, {row.get('bounds', 0)} bounds" + (f", {row['total_ns'] / row['count']:.0f} ns" if row["total_ns"] else ""))
    good = all(seen[key] == value for key, value in truth.items()) and last["uncounted"] == 0
    return verdict.say(good, f"{name}: {', '.join(f'{seen[key]} {key} ({value})' for key, value in truth.items())}; uncounted {last['uncounted']}, failed {last['failed']}, "
                       f"lost durations {last['lost_durations']}; {'; '.join(times)}")


def under_mps(tacho, out, verdict):
    folder = out / "mps"
    folder.mkdir(exist_ok=True)
    variables = {"CUDA_MPS_PIPE_DIRECTORY": str(folder), "CUDA_MPS_LOG_DIRECTORY": str(folder)}
    try:
        started = subprocess.run(["nvidia-cuda-mps-control", "-d"], env={**os.environ, **variables}, capture_output=True, text=True, timeout=20)
    except OSError as error:
        print(f"skip  mps: {error}")
        return
    if started.returncode != 0:
        print(f"skip  mps: {(started.stderr or started.stdout).strip()[:200]}")
        return
    try:
        running = [start(tacho, out, "plain", number, **variables) for number in range(2)]
        for file, process in running:
            judge(verdict, "mps, one of two programs", file, process)
        log = folder / "server.log"
        print("   the server's log: " + ("is not there" if not log.exists() else " ".join(log.read_text().split())[:300]))
    finally:
        subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", env={**os.environ, **variables}, text=True, capture_output=True, timeout=30)


PROGRAMS = {"contexts": contexts, "captures": captures, "per_thread": per_thread, "reset": reset, "forks": forks, "green": green, "library": library, "peers": peers, "plain": plain}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--program")
    parser.add_argument("checks", nargs="*")
    arguments = parser.parse_args()
    if arguments.program:
        print(json.dumps(PROGRAMS[arguments.program](Driver())), flush=True)
        return 0
    verdict = Verdict()
    tacho = arguments.build / "bin" / "tacho"
    for name in arguments.checks or [*(name for name in PROGRAMS if name != "plain"), "mps"]:
        if name == "mps":
            under_mps(tacho, arguments.out, verdict)
            continue
        alone = subprocess.run([sys.executable, __file__, "--program", name], capture_output=True, text=True)
        if alone.returncode != 0:
            print(f"skip  {name}: not even without tacho: {(alone.stderr or alone.stdout).strip()[-300:]}")
            continue
        judge(verdict, name, *start(tacho, arguments.out, name))
    print("all right" if verdict.wrong == 0 else f"{verdict.wrong} wrong")
    return 0 if verdict.wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
