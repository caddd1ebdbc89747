"""Helpers of the tests of counters on the AMD bed: a profile of a program, and its expected values (kfd/pm4.cpp)."""
import collections
import csv
import pathlib
import re

import bed
from harness import TACHO

# Events that the imitation gives their real number, for the values that pm4.cpp computes from a dispatch alone.
KNOWN = {"SQ_WAVES": 4, "GRBM_COUNT": 0, "GRBM_GUI_ACTIVE": 2, "TCC_HIT": 17}
MOST_EVENTS = {"SQ": 300, "TCC": 120, "TCP": 80, "TA": 60, "TD": 40, "SPI": 100, "GRBM": 30, "CPC": 30, "CPF": 12}
DIES = {"gfx90a": 1, "gfx942": 8, "gfx950": 8}
ENGINES = {"gfx90a": 8, "gfx942": 4, "gfx950": 4}  # of a die


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def share(things, units, unit):
    return things // units + (unit < things % units)


class Counting(bed.Case):
    def setUp(self):
        super().setUp()
        self.events = {}

    def planned(self, gpu):
        """Counters of the hardware that tacho's plan for this GPU names: {name: block}."""
        text = self.run_command(TACHO, "profile", "--dry-run", "--arch", gpu).stdout.decode()
        names = {re.sub(r"\[.*|_sum$", "", word) for line in text.splitlines()[1:] for word in line.split(": ", 1)[1].split()}
        names.discard("SQ_ACCUM_PREV_HIRES")
        return {name: {"SQC": "SQ"}.get(name.split("_")[0], name.split("_")[0]) for name in names}

    def counter_file(self, gpu):
        """The imitation's counters: NAME BLOCK EVENT."""
        at = collections.Counter()
        lines = []
        for name, block in sorted(self.planned(gpu).items()):
            event = KNOWN.get(name)
            while event is None or (name not in KNOWN and event in KNOWN.values()):
                event = at[block] % MOST_EVENTS[block]
                at[block] += 1
            self.events[name] = (block, event)
            lines.append(f"{name} {block} {event}\n")
        # The library's own definitions, as far as tacho looks at them.
        (self.folder / "counter_defs.yaml").write_text("".join(
            f"  - name: {name}\n    definitions:\n    - architectures:\n      - {gpu}\n" for name in sorted(self.events)))
        path = self.folder / "counters"
        path.write_text("".join(lines))
        return path

    def real_events(self, gpu):
        """{name: (block, event)} of the real library's definitions, those of the hardware only."""
        path = pathlib.Path(bed.sdk_folder().split(":")[0]) / "../share/rocprofiler-sdk/counter_defs.yaml"
        events = {}
        for counter in re.split(r"^  - name: ", path.read_text(), flags=re.M)[1:]:
            for definition in counter.split("- architectures:")[1:]:
                found = re.search(r"block: (\w+)\s+event: (\d+)", definition)
                if found and re.search(rf"- {gpu}$", definition, re.M):
                    events[counter.split("\n", 1)[0]] = (found[1], int(found[2]))
        return events

    def environment(self, gpu):
        if bed.has_real_sdk():
            self.events = self.real_events(gpu)
            return {}
        return {"TACHO_SDK_COUNTERS": str(self.counter_file(gpu)), "ROCPROFILER_METRICS_PATH": str(self.folder)}

    def profile(self, *options, gpu="gfx942", program=None, code=0, env=None, sdk=True, name="profile", **more):
        program = program or (self.program("vcopy"), "-n", "65536", "-b", "256")
        own = {**self.environment(gpu), **(env or {})}
        result, ledger = self.on_sdk(TACHO, "profile", "--name", name, "--output-directory", self.folder / name, *options, "--",
                                     *program, gpu=gpu, env=own, sdk=sdk, code=code, timeout=300, **more)
        return result, ledger, self.folder / name

    def check_natural_values(self, folder, gpu):
        """SQ_WAVES, cycles, and sums of channels, from a dispatch's grid alone."""
        dies, engines = DIES[gpu], ENGINES[gpu]
        checked = 0
        for path in sorted(folder.glob("*.csv")):
            if path.name in ("sysinfo.csv", "timestamps.csv", "roofline.csv"):
                continue
            for row in rows_of(path):
                items, group = int(row["Grid_Size"]), int(row["Workgroup_Size"])
                groups, waves = -(-items // group), -(-group // 64)
                if row.get("SQ_WAVES"):
                    self.assertEqual(float(row["SQ_WAVES"]), groups * waves, path.name)
                    checked += 1
                nanoseconds = 2000 + items // 16
                for name in ("GRBM_COUNT", "GRBM_GUI_ACTIVE"):
                    if row.get(name):
                        self.assertEqual(float(row[name]), sum(2 * nanoseconds + die for die in range(dies)), path.name)
                        checked += 1
                if row.get("TCC_HIT[0]") and not bed.has_real_sdk():
                    channels = 32 if dies == 1 else 16
                    for die in range(dies):
                        for channel in range(channels):
                            work = share(-(-items // 32), dies * channels, die + dies * channel)
                            unit = die * engines * 32 + channel
                            self.assertEqual(float(row[f"TCC_HIT[{die * channels + channel}]"]), work * (1 + 17 % 7) + 17 + unit)
                    checked += 1
        self.assertGreaterEqual(checked, 4)
