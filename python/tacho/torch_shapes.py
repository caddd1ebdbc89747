"""When PyTorch's operators are recorded with the shapes of their inputs: `--torch-shapes` of tacho trace and sys.

torch's emitter writes shapes as text for every operator, which makes short operators half as slow again. So they are
asked for in stretches: about a sixtieth of the program's time, in whole steps where steps can be seen. docs/efficiency.md says what
tables make of it.
"""
import threading
import time

_PART = 60  # of the program's time; shapes that double a step's time then cost it 1.7 %
_SHORTEST = 0.02  # seconds of a stretch: so many microseconds to turn shapes on and off are nothing
_LONGEST = 300.0  # for steps that never end
_HICCUP = 0.5  # seconds for which a busy machine may hold a step up
_LOST = 10.0  # seconds without a call after which another thread leads
_MOST_KEYS = 10000


class Stretches:
    """Turns shapes on and off where the program calls something outside of every module, on the thread that does so first.

    A stretch begins and ends at the first call behind an optimizer's step, or, where no optimizer steps, at a call that has been
    seen before and when that is made again. `turned(on)` is called at both."""

    def __init__(self, turned, clock=time.monotonic):
        self.on = False
        self.turned, self.clock = turned, clock
        self.leader, self.led = None, 0.0
        self.seen = {}  # what is called -> when it was called last
        self.due = 0.0
        self.key, self.since, self.limit = None, None, 0.0  # of the stretch
        self.count = 0
        self.step, self.gap = None, None  # the last one, the time between two
        self.stepped = False  # one has ended since the last call
        self.captures = 0

    def call(self, key):
        """The program is about to call `key`."""
        thread, now = threading.get_ident(), self.clock()
        if thread != self.leader:
            if self.leader is not None and now - self.led < _LOST:
                return
            self.leader = thread
        self.led = now
        before = self.seen.get(key)
        if len(self.seen) >= _MOST_KEYS:
            self.seen.clear()
        self.seen[key] = now
        if self.since is None:
            stepping = self.stepping(now)
            if before is not None and now >= self.due and (self.stepped or not stepping):
                self.key, self.since = key, now
                self.limit = min(max(1.0, 4 * ((stepping and self.gap) or now - before)), _LONGEST)
                self.turn()
        elif self.ends(key, now):
            self.count += 1
            # The time between stretches varies, so that they do not fall on the same part of what repeats.
            self.due = now + _PART * (now - self.since) * (0.5 + self.count * 0.6180339887 % 1)
            self.since = None
            self.turn()
        self.stepped = False

    def stepping(self, now):
        """Whether optimizers step these days."""
        return self.step is not None and (self.gap is None or now - self.step < max(4 * self.gap, _HICCUP))

    def ends(self, key, now):
        age = now - self.since
        if age < _SHORTEST:
            return False
        return self.stepped or (key == self.key and not self.stepping(now)) or age > self.limit

    def step_ended(self):
        """An optimizer has taken a step."""
        now = self.clock()
        if self.step is not None:
            self.gap = now - self.step
        self.step, self.stepped = now, True

    def capture(self, begins):
        """The program begins or ends to capture a graph: its kernels run often, and their shapes are told only now."""
        self.captures = max(0, self.captures + (1 if begins else -1))
        self.turn()

    def turn(self):
        on = self.since is not None or self.captures > 0
        if on != self.on:
            self.on = on
            self.turned(on)
