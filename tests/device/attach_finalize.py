"""How `tacho attach` leaves CUPTI in PyTorch programs with CUDA graphs on a GPU: the cases of attach.py's section "finalize".

usage: attach_finalize.py --program     the program: launches single kernels all the time, and does what lines of its input say
A line is a command and the name of a graph: "make g", "launch g", "destroy g", "profile", "sleep". The answer is "right", or what is wrong.
"""
import concurrent.futures
import ctypes
import os
import pathlib
import select
import subprocess
import sys
import threading
import time

REPLAYS, NODES = 20, 10
HELD = 1.5  # seconds of recording

# What the program does before, while and after tacho is attached, how CUPTI must be left then ("" = it is not tacho's), and how in a second
# attach, in which the program does nothing but its single launches.
CASES = {
    "no graph at all": ([], [], [], "finalized", "finalized"),
    "a graph from before, launched before and after": (["make g", "launch g"], [], ["launch g"], "finalized", "finalized"),
    "a graph from before, launched only after": (["make g"], [], ["launch g"], "finalized", "finalized"),
    "a graph made meanwhile": ([], ["make g"], ["launch g"], "idle", "idle"),
    "a graph launched meanwhile": (["make g"], ["launch g"], ["launch g"], "idle", "idle"),
    "a graph made, launched and destroyed meanwhile": ([], ["make g", "launch g", "destroy g"], ["make h", "launch h"], "idle", "idle"),
    "a graph made after": ([], [], ["make g", "launch g"], "finalized", "finalized"),
    "a kernel of two seconds in flight at the end": ([], ["sleep"], [], "idle", "idle"),
    "PyTorch's profiler after": ([], [], ["profile", "make g", "launch g"], "finalized", "to another profiler"),
    "PyTorch's profiler before": (["profile"], [], ["profile"], "to another profiler", "to another profiler"),
}

BEGIN, END = "subscribe register kinds", "off finalize"
MADE = "capture instantiate launch"
# Words of cupti_finalize: what finalising does where tacho would not finalise, or does so differently. No verdicts: attach.md and
# src/capture/source/cuda/ending.h go by what comes of them.
FACTS = {
    "a graph launched meanwhile": f"{MADE} {BEGIN} launch {END} launch",
    "the same, finalised at once": f"{MADE} {BEGIN} launch off finalize-now launch",
    "the same, launched again while all is off": f"{MADE} {BEGIN} launch off launch finalize launch",
    "launched while only subscribed": f"{MADE} subscribe launch finalize launch",
    "launched while left idle": f"{MADE} {BEGIN} off unsubscribe launch subscribe finalize launch",
    "launched before and after": f"{MADE} {BEGIN} {END} launch",
    "launched only after": f"capture instantiate {BEGIN} {END} launch",
    "made meanwhile": f"{BEGIN} capture instantiate {END} launch",
    "made and uploaded meanwhile": f"{BEGIN} capture instantiate upload {END} launch",
    "captured before, made after": f"capture {BEGIN} {END} instantiate launch",
    "captured meanwhile, made after": f"{BEGIN} capture {END} instantiate launch",
    "changed meanwhile": f"{MADE} {BEGIN} update {END} launch",
    "launched and destroyed meanwhile, made anew after": f"{MADE} {BEGIN} launch destroy {END} instantiate launch single",
    "made after, recorded by a second session": f"{BEGIN} {END} {MADE} subscribe kinds launch off unsubscribe launch",
    "a clock that was registered once": f"subscribe register kinds clock single {END} subscribe kinds clock single {END} subscribe kinds clock single {END}",
    "a clock that is registered each time": f"{BEGIN} clock single {END} {BEGIN} clock single {END} {BEGIN} clock single {END}",
    "no clock of ours": f"subscribe kinds clock single {END} subscribe kinds clock single {END}",
    "memory": f"memory single memory {BEGIN} single memory {END} single memory {BEGIN} single {END} single memory",
    "memory, left idle": f"memory single memory {BEGIN} single memory off unsubscribe single memory",
    "four threads": f"threads rate {BEGIN} rate off rate finalize rate rounds rate stop",
    "four threads, idle": f"threads rate {BEGIN} off unsubscribe rate stop",
    "four threads, finalised at once": f"threads {BEGIN} off finalize-now rate {BEGIN} off finalize-now rate stop",
    "a graph made meanwhile, recorded by a second session": f"{BEGIN} number capture instantiate off unsubscribe launch subscribe number kinds single launch number off unsubscribe",
    "a long kernel from before": f"threads rate long {BEGIN} longest {END} longest stop",
    "a long kernel from meanwhile": f"threads rate {BEGIN} long off longest finalize longest stop",
    "a long kernel from after the kinds": f"threads rate {BEGIN} off long longest finalize longest stop",
    "no long kernel": f"threads rate {BEGIN} longest off longest finalize longest stop",
    "a long kernel, left idle": f"threads rate {BEGIN} long off longest unsubscribe longest stop",
    "numbers where nobody was": "threads subscribe number number kinds number off number",
    "numbers where somebody was": f"{BEGIN} single off unsubscribe single subscribe number",
    "numbers where somebody subscribed": "subscribe number single number unsubscribe subscribe number",
    "numbers where somebody had records": "kinds single off subscribe number",
    "numbers where somebody was and finalised": f"{BEGIN} single number {END} subscribe number",
    "nobody was here": "known",
    "somebody was here": f"{BEGIN} single off unsubscribe known",
    "somebody was here and finalised": f"{BEGIN} single {END} known",
}


class Program:
    """The program's side."""

    def __init__(self):
        import torch
        self.torch, self.graphs, self.sums, self.launches = torch, {}, {}, 0
        self.values = torch.zeros(1024, dtype=torch.int32, device="cuda")

    def step(self):
        for _ in range(20):
            self.values.add_(1)
        self.launches += 20
        self.torch.cuda.synchronize()

    def make(self, name):
        values = self.torch.zeros(1024, dtype=self.torch.int32, device="cuda")
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            for _ in range(NODES):
                values.add_(1)
        self.graphs[name], self.sums[name] = (graph, values), 0
        return "right"

    def launch(self, name):
        graph, values = self.graphs[name]
        for _ in range(REPLAYS):
            graph.replay()
        self.torch.cuda.synchronize()
        self.sums[name] += REPLAYS * NODES
        is_now = values[0].item()
        return "right" if is_now == self.sums[name] else f"the graph's sum is {is_now} instead of {self.sums[name]}"

    def destroy(self, name):
        self.graphs.pop(name)[0].reset()
        return "right"

    def profile(self, _):
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CUDA]) as recorded:
            self.step()
        seen = sum(event.device_type == self.torch.autograd.DeviceType.CUDA for event in recorded.events())
        return "right" if seen == 20 else f"PyTorch's profiler saw {seen} kernels of 20"

    def sleep(self, _):
        self.torch.cuda._sleep(4_000_000_000)  # cycles: two seconds at 2 GHz
        return "right"

    def check(self, _):
        self.torch.cuda.synchronize()
        is_now = self.values[0].item()
        return "right" if is_now == self.launches else f"the sum of single launches is {is_now} instead of {self.launches}"

    def run(self):
        ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1 & (2**64 - 1)), 0, 0, 0)  # PR_SET_PTRACER, PR_SET_PTRACER_ANY
        self.step()
        print("ready", flush=True)
        while True:
            self.step()
            if not select.select([sys.stdin], [], [], 0)[0]:
                continue
            line = os.read(0, 200).decode().split()
            if not line:
                return
            try:
                answer = getattr(self, line[0])(line[-1])
            except Exception as problem:
                answer = f"{problem!r}".replace("\n", " ")
            print(answer, flush=True)


class Talking:
    """tacho's side of a program."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, pathlib.Path(__file__).resolve(), "--program"], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.pid, self.wrong = self.process.pid, []
        self.guard = threading.Timer(90, self.process.kill)  # nothing here takes so long
        self.guard.start()
        if self.process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"the program did not start: {self.process.communicate()[1][-900:]}")

    def tell(self, commands):
        for command in commands:
            try:
                self.process.stdin.write(command + "\n")
                self.process.stdin.flush()
            except BrokenPipeError:
                pass
            answer = self.process.stdout.readline().strip()
            if answer != "right":
                self.wrong.append(f"{command}: {answer or 'the program has ended'}")

    def end(self):
        self.tell(["check"])
        try:
            _, errors = self.process.communicate(timeout=60)
        except BrokenPipeError:
            errors = self.process.stderr.read()
        self.guard.cancel()
        if self.process.returncode != 0:
            self.wrong.append(f"exit code {self.process.returncode}: {errors.strip()[-300:]}")


def left_after(check, program, file, during):
    """Attaches once; how CUPTI was left, and what went wrong."""
    tacho = subprocess.Popen([check.tacho, "attach", str(program.pid), "-q", "--overwrite", "-o", file, "--duration", str(HELD)], cwd=check.folder, text=True, stderr=subprocess.PIPE)
    time.sleep(HELD / 2)
    program.tell(during)
    said = tacho.communicate(timeout=60)[1]
    if tacho.returncode != 0:
        program.wrong.append(f"tacho attach: exit code {tacho.returncode}: {said.strip()[-300:]}")
        return None, ""
    left = [row["value"] for row in check.rows(file, "SELECT value FROM tacho.property WHERE key = 'cupti.left'")]
    kernels, launches = (int(check.rows(file, f"SELECT count(*) AS number FROM tacho.{what}")[0]["number"])
                         for what in ("dispatch", "api WHERE name LIKE 'cudaLaunchKernel%'"))
    info = check.run(check.tacho, "info", file).stdout
    told = next((line.strip() for line in info.splitlines() if "CUPTI was finalised" in line or "CUPTI stays" in line), "")
    told = f"{kernels} kernels, {launches} launches: {told}"
    if left and kernels == 0:
        program.wrong.append("no kernel was recorded")
        print(info, flush=True)
    if "nothing was lost" not in info and "sleep" not in during:  # a kernel that has not ended when tacho leaves is lost, as the trace says
        program.wrong.append("something was lost")
    return (left or [""])[0], told


def run_case(check, number, name):
    before, during, after, first, second = CASES[name]
    program, told = Talking(), []
    program.tell(before)
    for time_of_attach, (commands, wanted) in enumerate(((during, first), ([], second))):
        left, sentence = left_after(check, program, f"case{number}.{time_of_attach}.tacho", commands)
        told.append(f"{left or 'not tacho' + chr(39) + 's'}: {sentence}")
        if left != wanted:
            program.wrong.append(f"attach {time_of_attach + 1} left CUPTI {left!r} instead of {wanted!r}")
        time.sleep(0.3)
        program.tell(after if time_of_attach == 0 else [command for command in after if not command.startswith("make")])
    program.end()
    return program.wrong, told


def run_cases(check):
    """Four at a time: what they do does not depend on the GPU's load."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        waiting = {name: pool.submit(run_case, check, number, name) for number, name in enumerate(CASES)}
    for name, case in waiting.items():
        try:
            wrong, told = case.result()
        except Exception as problem:
            wrong, told = [repr(problem)], []
        check.say(not wrong, f"{name}: {'; '.join(wrong) or 'the program goes on, results right'}")
        for sentence in told:
            print(f"        {sentence[:150]}", flush=True)


def tell_facts(check, built):
    """One process each, for some do not live through it."""
    for name, words in FACTS.items():
        try:
            result = subprocess.run([built, *words.split()], capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired as problem:
            print(f"fact  {name}: {(problem.stdout or b'').decode().strip()} hangs", flush=True)
            continue
        said = result.stdout.strip()
        if result.returncode in (2, 3):  # it does not know a word, or found no CUPTI
            check.say(False, f"{name}: {said[-200:]} {result.stderr.strip()[-200:]}")
        ended = "" if result.returncode in (0, 1) else f"it ended with {result.returncode} {result.stderr.strip()[-200:]}"
        print(f"fact  {name}: {said} {ended}", flush=True)


if __name__ == "__main__":
    Program().run()
