"""How fast programs are after tacho has attached to them and left, against before: attach.py's sections "launches", "eager_speed" and
"graphs_speed".

Each program goes its way alone on the GPU and on a processor of its own, before, while tacho is attached and after; a control goes the same way
beside nobody. Speeds are by the medians of many steps, a program's own before and after are compared, and controls take away what a
minute of a machine does to every program. Programs take turns in the order attached, control, control, attached. The interval is Student's.
Times vary by 1 to 20 % from program to program on a shared machine. The instructions of a launch, which launch_loop counts, vary by 0.1 %, and tell
what a launch costs after against before: the same instructions are the same way through the driver.
"""
import math
import signal
import statistics
import subprocess
import time

SETTLE, MEASURED, HELD = 0.3, 1.0, 0.4  # seconds: to get warm again, of each speed, of recording


def quantile(freedom):
    """Of Student's distribution, 97.5 %: by Fisher's expansion, right to 0.5 % from 4 degrees of freedom on."""
    z, n = statistics.NormalDist().inv_cdf(0.975), freedom
    return (z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2) + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3))


def interval(attached, controls):
    """exp of the difference of means of two rows of logarithms, with its bounds of 95 % (Welch's)."""
    parts = [statistics.variance(row) / len(row) for row in (attached, controls)]
    change = statistics.mean(attached) - statistics.mean(controls)
    if sum(parts) == 0:  # counted, and the same in each program
        return (math.exp(change),) * 3
    freedom = sum(parts)**2 / sum(part**2 / (len(row) - 1) for part, row in zip(parts, (attached, controls)))
    error = quantile(max(freedom, 4)) * math.sqrt(sum(parts))
    return tuple(math.exp(value) for value in (change, change - error, change + error))


def change_of(times, before, after):
    """The logarithm of how much faster `times`, pairs of a begin and a length in ns, are within `after` than within `before`, and both medians."""
    medians = []
    for begin, end in (before, after):
        inside = [length for at, length in times if begin <= at < end]
        if len(inside) < 20:
            raise RuntimeError(f"only {len(inside)} steps in {(end - begin) * 1e-9:.1f} s")
        medians.append(statistics.median(inside))
    return math.log(medians[0] / medians[1]), medians


class Launches:
    """launch_loop: single kernels, by host time alone."""

    def __init__(self, check, core):
        self.process = subprocess.Popen([check.tacho.parent.parent / "tests" / "device" / "launch_loop", str(core)], stdout=subprocess.PIPE, text=True)
        if (said := self.process.stdout.readline().strip()) != "ready":
            raise RuntimeError(f"launch_loop: {said}")
        self.pid = self.process.pid

    def go(self):
        self.count()

    def halt(self):
        self.count()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        *times, right = self.process.communicate(timeout=60)[0].splitlines()
        if right != "right":
            raise RuntimeError(f"launch_loop: {right}")
        self.instructions = [int(line.split()[1]) for line in times if line.startswith("instructions")]
        rows = [tuple(map(int, line.split())) for line in times if not line.startswith("instructions")]
        middle = statistics.median(counting for _, _, counting in rows)
        return {"launches, at an even clock": [(begin, launches * middle / counting) for begin, launches, counting in rows]}

    def count(self):
        """Has the instructions of launches counted, which takes a while."""
        self.process.send_signal(signal.SIGUSR1)
        time.sleep(1)


class Turning:
    """A program of attach.py that has been started with others and goes when its turn has come."""

    def __init__(self, kind, running, turn, number):
        self.kind, self.running, self.turn, self.number, self.pid = kind, running, turn, number, running.pid

    def go(self):
        self.turn[0] = self.number

    def halt(self):
        self.turn[0] = 0

    def end(self):
        return {self.kind: [(begin, end - begin) for begin, end in self.running.end()["times"]]}


def measure(check, now, program, attaches, options):
    """A program's way. Its intervals before and after, and how CUPTI was left."""
    program.go()
    time.sleep(SETTLE + MEASURED)
    begin, left = now(), ""
    if attaches:
        done = check.run(check.tacho, "attach", program.pid, "-q", "--overwrite", "-o", "speed.tacho", "--duration", HELD, *options)
        if done.returncode == 0:
            left = next((row["value"] for row in check.rows("speed.tacho", "SELECT value FROM tacho.property WHERE key = 'cupti.left'")), "not")
    else:
        time.sleep(HELD + 0.3)
    time.sleep(SETTLE)
    end = now()
    time.sleep(MEASURED)
    last = now()
    program.halt()
    return (begin - int(MEASURED * 1e9), begin), (end, last), left


def count_instructions(check, now, wanted, start, *options):
    """What a launch takes before and after, by instructions: where they are the same ones, so is their time."""
    program = start()
    _, _, left = measure(check, now, program, True, options)
    program.end()
    before, after = program.instructions
    check.say(left == wanted, f"CUPTI was left {left}")
    print(f"      a launch took {before} instructions before, {after} after CUPTI was left {left}", flush=True)
    return before, after


def compare(check, now, programs, goal, wanted):
    """`programs`: callables that give one each. The first is attached to, the second and third are not, the fourth is, and so on."""
    changes, before_after, left, instructions = {}, {}, [], []
    for number, start in enumerate(programs):
        attaches = number % 4 in (0, 3)
        program = start()
        before, after, how = measure(check, now, program, attaches, ())
        left += [how] if attaches else []
        for what, times in program.end().items():
            change, medians = change_of(times, before, after)
            changes.setdefault(what, ([], []))[not attaches].append(change)
            before_after.setdefault(what, ([], []))[not attaches].append(medians)
        instructions += [program.instructions] if attaches and hasattr(program, "instructions") else []
    if instructions:
        logs = [math.log(before / after) for before, after in instructions]
        error = quantile(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
        middle = statistics.mean(logs)
        check.say(middle - error >= math.log(goal), f"launches by instructions, CUPTI {wanted}: before / after {math.exp(middle):.4f}, with 95 % certainty "
                  f"{math.exp(middle - error):.4f} to {math.exp(middle + error):.4f} (goal {goal}; {len(logs)} programs: {instructions})")
    check.say(set(left) == {wanted}, f"CUPTI was left {wanted}, in {left.count(wanted)} of {len(left)} programs")
    for what, (attached, controls) in changes.items():
        ratio, low, high = interval(attached, controls)
        middle = [statistics.median(pair[i] for pair in before_after[what][0]) * 1e-3 for i in (0, 1)]
        sentence = (f"{what}, CUPTI {wanted}: speed after leaving / before {ratio:.4f}, with 95 % certainty {low:.4f} to {high:.4f} (goal {goal}; {len(attached)} programs "
                    f"attached to, {len(controls)} controls; {middle[0]:.2f} and {middle[1]:.2f} us a step; programs vary by {statistics.stdev(attached):.4f}, "
                    f"controls by {statistics.stdev(controls):.4f}, their mean {math.exp(statistics.mean(controls)):.4f})")
        if low < goal <= high:
            print("open  " + sentence, flush=True)
        else:
            check.say(low >= goal, sentence)
        check.row(f"{what}, {wanted}", "", "", "", "", f"{ratio:.4f} ({low:.4f} to {high:.4f})", "", "")
