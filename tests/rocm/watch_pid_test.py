"""`tacho watch PID` of HIP programs that run on the bed: counts are the program's from tacho's coming to its leaving, and what was
changed in the program is as before."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import bed
import harness
from harness import TACHO

ROUNDS = int(os.environ.get("TACHO_ATTACH_ROUNDS", "10"))


def sums(moment, kind, what="count"):
    found = {}
    for row in moment["rows"]:
        if row["kind"] == kind:
            found[row["name"]] = found.get(row["name"], 0) + (row.get(what) or 0)
    return found


class Running(bed.Case):
    begun = 0

    def told(self, rocm="7.2"):
        """A program that has said "ready"."""
        self.begun += 1
        return self.start(self.program("told", rocm=rocm, output=f"told{self.begun}"), rocm=rocm)

    def start(self, *command, rocm="7.2"):
        ledger = self.folder / "ledger"
        ledger.unlink(missing_ok=True)
        program = subprocess.Popen([str(word) for word in (bed.SCRIPT, "--rocm", rocm, "--build", harness.BUILD, "--", *command)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self.folder, text=True,
                                   env={**os.environ, "TACHO_KFD_LEDGER": str(ledger)})
        for end in (program.wait, program.stdout.close, program.kill):
            self.addCleanup(end)
        self.assertEqual(program.stdout.readline().strip(), "ready")
        return program

    def ask(self, program, text):
        program.stdin.write(text + "\n")
        program.stdin.flush()
        return program.stdout.readline().strip()

    def watch(self, program, *options):
        """tacho in the program, until moment()."""
        file = self.folder / "w.jsonl"
        tacho = subprocess.Popen([str(TACHO), "watch", str(program.pid), "--output-format", "json", "--overwrite", "-o", str(file), *options],
                                 stderr=subprocess.PIPE, text=True, cwd=self.folder)
        self.addCleanup(tacho.stderr.close)
        self.addCleanup(tacho.kill)
        said = ""
        while "watching " not in said:
            line = tacho.stderr.readline()
            self.assertTrue(line, said)
            said += line
        return tacho

    def moment(self, tacho, number=signal.SIGINT):
        tacho.send_signal(number)
        tacho.wait(60)
        self.assertEqual(tacho.returncode, 0, tacho.stderr.read())
        moment = json.loads((self.folder / "w.jsonl").read_text().splitlines()[-1])
        self.assertTrue(moment["final"])
        self.assertEqual((moment["uncounted"], moment["failed"]), (0, 0))
        return moment

    def end(self, program):
        program.stdin.close()
        self.assertEqual(program.wait(60), 0)

    def words(self, pid):
        """The writable data of the program and of HIP, but for HIP's own; and all of their code."""
        content = {}
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
            for line in maps:
                words = line.split(None, 5)
                if len(words) > 5 and ("/told" in words[5] or ("libamdhip64" in words[5] and "x" in words[1])):
                    begin, end = (int(word, 16) for word in words[0].split("-"))
                    memory.seek(begin)
                    content[words[0], words[1]] = memory.read(end - begin)
        return content

    @staticmethod
    def kept(pid):
        """Threads, descriptors, resident KiB and mappings of a process."""
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        number = lambda name: int(re.search(rf"{name}:\s+(\d+)", status)[1])  # noqa: E731
        return (number("Threads"), len(os.listdir(f"/proc/{pid}/fd")), number("VmRSS"), len(pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()))


class Hip(Running):
    def test_counts_from_coming_to_leaving(self):
        for rocm in self.versions():
            with self.subTest(rocm):
                program = self.told(rocm)
                for number in range(3):
                    self.ask(program, "run 40")
                    tacho = self.watch(program)
                    count = 400 + 100 * number
                    self.assertEqual(self.ask(program, f"run {count}"), "done")
                    self.assertEqual(self.ask(program, f"graph {3 + number}"), "done")
                    self.assertEqual(self.ask(program, "ways 6"), "done")
                    moment = self.moment(tacho)
                    self.assertEqual(sums(moment, "kernel"), {"small": count + 30, "large": count // 4})
                    self.assertEqual(sums(moment, "graph"), {"graph 1": 3 + number})
                    self.assertEqual(sums(moment, "copy"), {"host to device": count // 10, "device to host": count // 10})
                    self.assertEqual(sums(moment, "copy", "bytes"), {"host to device": count // 10 << 16, "device to host": count // 10 << 16})
                    self.assertEqual(sums(moment, "wait"), {"hipStreamSynchronize": count // 10 + 3 + number, "hipDeviceSynchronize": 13})
                    self.assertEqual({(row["name"], *row["grid"][:1], *row["group"][:1]) for row in moment["rows"] if row["kind"] == "kernel"},
                                     {("small", 128, 64), ("large", 1 << 14, 64)})
                    [process] = moment["processes"]
                    self.assertEqual((process["pid"], process["launches"]), (program.pid, count + 30 + count // 4 + 3 + number))
                result, launches = self.ask(program, "result").split()
                self.end(program)
                self.assertEqual(len(bed.Ledger(self.folder / "ledger").kernels), int(launches))
                alone = self.told(rocm)
                for number in range(3):
                    for words in ("run 40", f"run {400 + 100 * number}", f"graph {3 + number}", "ways 6"):
                        self.ask(alone, words)
                self.assertEqual(self.ask(alone, "result").split()[0], result)
                self.end(alone)

    def test_times(self):
        program = self.told()
        tacho = self.watch(program)
        self.assertEqual(self.ask(program, "run 1500"), "done")
        moment = self.moment(tacho)
        for row in moment["rows"]:
            if row["kind"] == "kernel":
                self.assertGreaterEqual(row["timed"] + row.get("bounds", 0), 64, row)
                self.assertLess(row["timed"], row["count"], row)
        self.assertEqual(moment["lost_durations"], 0)
        self.end(program)

    def test_words_are_as_before_each_time(self):
        for rocm in self.versions():
            with self.subTest(rocm):
                program = self.told(rocm)
                self.ask(program, "run 40")
                self.ask(program, "graph 2")
                before, begin, warm = self.words(program.pid), self.kept(program.pid), None
                self.assertGreater(len(before), 2)
                for number in range(ROUNDS):
                    tacho = self.watch(program)
                    self.assertNotEqual(self.words(program.pid), before)
                    count = 20 + number % 7
                    self.ask(program, f"run {count}")
                    self.assertEqual(sums(self.moment(tacho), "kernel"), {"small": count, "large": (count + 3) // 4})
                    self.wait_for_leaving(program)
                    now = self.words(program.pid)
                    self.assertEqual([key for key in before if now.get(key) != before[key] and self.changed_by_tacho(before, now, key)], [])
                    warm = self.kept(program.pid) if number == 4 else warm
                end = self.kept(program.pid)
                print(f"{ROUNDS} rounds: (threads, descriptors, resident KiB, mappings) before {begin}, after the fifth {warm}, now {end}", flush=True)
                # ROCr starts a thread for signals when it needs it first, and keeps it.
                self.assertIn((end[0] - warm[0], end[1] - warm[1]), ((0, 0), (1, 0)))
                self.assertLessEqual(end[2], warm[2] + 4096)  # HIP 6.4 grows by 2 MB in a hundred rounds without tacho
                self.assertLessEqual(end[3], warm[3] + 8)
                self.end(program)

    @staticmethod
    def changed_by_tacho(before, now, key):
        """The program's own data (its counts) may change; words that hold addresses may not."""
        if key not in now or "w" not in key[1]:
            return True
        old, new = before[key], now[key]
        changed = [at for at in range(0, len(old), 8) if old[at:at + 8] != new[at:at + 8]]
        return any(int.from_bytes(word[at:at + 8], "little") > 1 << 40 for at in changed for word in (old, new))

    def wait_for_leaving(self, program):
        end = time.monotonic() + 10
        names = ["tacho"]
        while any(name.startswith("tacho") for name in names):
            self.assertLess(time.monotonic(), end, names)
            names = []
            for task in os.listdir(f"/proc/{program.pid}/task"):
                try:
                    names.append(pathlib.Path(f"/proc/{program.pid}/task/{task}/comm").read_text().strip())
                except OSError:
                    pass  # it has ended meanwhile
            time.sleep(0.005)

    def test_functions_that_are_got_while_tacho_is_there(self):
        program = self.told()
        tacho = self.watch(program)
        self.ask(program, "kept 50")
        self.assertEqual(sums(self.moment(tacho), "kernel"), {"small": 100})
        self.assertEqual(self.ask(program, "kept 50"), "done")  # one of them by the parked library
        tacho = self.watch(program)
        self.ask(program, "kept 30")
        self.ask(program, "run 10")
        self.assertEqual(sums(self.moment(tacho), "kernel"), {"small": 70, "large": 3})
        self.assertEqual(self.ask(program, "result").split()[1], str(100 + 100 + 60 + 10 + 3))
        self.end(program)

    def test_patched_functions(self):
        """With --patch-entries the functions of HIP lead to tacho, and are as before when it has left."""
        for rocm in self.versions():
            with self.subTest(rocm):
                program = self.told(rocm)
                self.ask(program, "run 40")
                self.ask(program, "kept 5")
                before = self.words(program.pid)
                for number in range(3):
                    tacho = self.watch(program, "--patch-entries")
                    now = self.words(program.pid)
                    self.assertIn("x", "".join(rights for place, rights in before if before[place, rights] != now[place, rights]))
                    self.ask(program, f"run {40 + number}")
                    self.ask(program, "kept 10")
                    self.ask(program, "graph 2")
                    self.ask(program, "ways 5")
                    moment = self.moment(tacho)
                    self.assertEqual(sums(moment, "kernel"), {"small": 40 + number + 20 + 25, "large": 10 + (number > 0)})
                    self.assertEqual(sums(moment, "graph"), {"graph 1": 2})
                    now = self.words(program.pid)
                    self.assertEqual([key for key in before if "x" in key[1] and now[key] != before[key]], [])
                launches = int(self.ask(program, "result").split()[1])
                self.end(program)
                self.assertEqual(len(bed.Ledger(self.folder / "ledger").kernels), launches)

    def test_a_stream_that_is_being_captured(self):
        for rocm in self.versions():
            for while_it_leaves in (False, True):
                with self.subTest((rocm, while_it_leaves)):
                    program = self.told(rocm)
                    if while_it_leaves:
                        tacho = self.watch(program)
                        self.ask(program, "run 100")
                        self.assertEqual(self.ask(program, "capture"), "capturing")
                        self.assertEqual(sums(self.moment(tacho), "kernel"), {"small": 100, "large": 25})
                        self.assertEqual(self.ask(program, "go on"), "done")
                    else:
                        self.assertEqual(self.ask(program, "capture"), "capturing")
                        tacho = self.watch(program)
                        self.assertEqual(self.ask(program, "go on"), "done")
                        moment = self.moment(tacho)
                        self.assertEqual((sums(moment, "kernel"), sums(moment, "graph")), ({}, {"graph 1": 20}))
                    tacho = self.watch(program)
                    self.ask(program, "run 200")
                    self.assertEqual(sums(self.moment(tacho), "kernel"), {"small": 200, "large": 50})
                    launches = int(self.ask(program, "result").split()[1])
                    self.end(program)
                    self.assertEqual(len(bed.Ledger(self.folder / "ledger").kernels), launches)

    def test_a_forked_child_and_a_killed_tacho(self):
        program = self.told()
        tacho = self.watch(program)
        self.assertEqual(self.ask(program, "fork"), "7")
        self.ask(program, "run 40")
        moment = self.moment(tacho)
        self.assertEqual(sums(moment, "kernel"), {"small": 40, "large": 10})
        self.assertIn(f"Process {program.pid} forked a child meanwhile, which is not watched.", moment["notes"])
        tacho = self.watch(program)
        self.ask(program, "run 40")
        tacho.kill()
        tacho.wait()
        self.wait_for_leaving(program)
        self.assertEqual(self.ask(program, "run 40"), "done")
        tacho = self.watch(program)
        self.ask(program, "run 80")
        self.assertEqual(sums(self.moment(tacho), "kernel"), {"small": 80, "large": 20})
        self.end(program)

    def test_watch_and_attach_take_turns(self):
        program = self.told()
        tacho = self.watch(program)
        self.ask(program, "run 40")
        self.moment(tacho)
        attach = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-o", "a.tacho"], cwd=self.folder, stderr=subprocess.PIPE, text=True)
        self.addCleanup(attach.stderr.close)
        self.assertIn("attached", attach.stderr.readline())
        time.sleep(1)  # it says so before HIP tells it everything
        self.ask(program, "run 40")
        attach.send_signal(signal.SIGINT)
        self.assertEqual(attach.wait(60), 0)
        rows = self.run_command(TACHO, "query", "a.tacho", "--dialect", "tacho", "--output-format", "json", "SELECT count(*) FROM dispatch")
        self.assertEqual(json.loads(rows.stdout)["rows"], [[50]])
        tacho = self.watch(program)
        self.ask(program, "run 60")
        self.assertEqual(sums(self.moment(tacho), "kernel"), {"small": 60, "large": 15})
        self.end(program)


if __name__ == "__main__":
    harness.main()
