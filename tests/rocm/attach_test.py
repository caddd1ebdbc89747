"""tacho attach to HIP programs that run on the bed: exactly the work that the driver did meanwhile, and results as alone."""
import bisect
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import bed
import harness
from harness import TACHO

ROUNDS = int(os.environ.get("TACHO_ATTACH_ROUNDS", "30"))
HSA_ROUNDS = int(os.environ.get("TACHO_ATTACH_ROUNDS", "100"))


class Attach(bed.Traced):
    def start(self, *command, rocm="7.2", gpu="gfx942", env=None):
        """A program on the bed that has said "ready"."""
        ledger = self.folder / "ledger"
        ledger.unlink(missing_ok=True)
        program = subprocess.Popen([str(word) for word in (bed.SCRIPT, "--rocm", rocm, "--gpu", gpu, "--build", harness.BUILD, "--", *command)],
                                   stdout=subprocess.PIPE, cwd=self.folder, text=True,
                                   env={**os.environ, "TACHO_KFD_LEDGER": str(ledger), **(env or {})})
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.kill)
        self.assertEqual(program.stdout.readline().strip(), "ready")
        return program

    def attach(self, program, *options, code=0):
        (self.folder / "t.tacho").unlink(missing_ok=True)
        return self.run_command(TACHO, "attach", program.pid, "-q", "-o", "t.tacho", *options, code=code)

    def end(self, program, says=r"^\d+ rounds: right$"):
        program.send_signal(signal.SIGTERM)
        said, _ = program.communicate(timeout=60)
        self.assertEqual(program.returncode, 0, said)
        self.assertRegex(said, says)

    def rows_lost(self):
        """ROCr converts a begin and an end by the clocks of different moments: on a busy machine one may come before the other. The row stays."""
        return [loss for loss in self.losses() if loss[0] not in ("filtered", "times out of order")]

    @staticmethod
    def kept(pid):
        """Threads, descriptors, resident KiB (without pages of files, which the kernel takes and gives) and mappings of a process."""
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        number = lambda name: int(re.search(rf"{name}:\s+(\d+)", status)[1])  # noqa: E731
        return (number("Threads"), len(os.listdir(f"/proc/{pid}/fd")), number("RssAnon") + number("RssShmem"), len(pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()))

    def settled(self, pid):
        """The most of kept() in a second, once that no longer grows: programs come and go with queues and threads, and one on a busy machine
        takes its time to have all that it needs."""
        before = (0, 0, 0, 0)
        for _ in range(60):
            readings = []
            for _ in range(20):
                readings.append(self.kept(pid))
                time.sleep(0.05)
            most = tuple(max(column) for column in zip(*readings))
            if most[0] <= before[0] and most[2] <= before[2] + 256:
                return most
            before = most
        return self.fail(f"the program goes on growing: {most}")

    def ledger(self):
        return bed.Ledger(self.folder / "ledger")

    def same_as_ledger(self):
        """Every kernel of the trace is one that the driver ran, and none that it ran in between is missing."""
        rows = sorted(self.dispatches(), key=lambda row: row[1])
        self.assertGreater(len(rows), 10)
        done = sorted(self.ledger().kernels, key=lambda kernel: kernel.start)
        first = min(range(len(done)), key=lambda at: abs(done[at].start - rows[0][1]))
        done = done[first:first + len(rows)]  # what ran just before and after is not tacho's
        self.assertEqual(len(rows), len(done))
        for row, kernel in zip(rows, done):
            self.assertEqual(row[0], kernel.name)
            self.assertLess(abs(row[1] - kernel.start), 100_000)
            self.assertLess(abs((row[2] - row[1]) - (kernel.end - kernel.start)), 1_000)
            if row[3] is not None:
                self.assertEqual((row[3:6], row[6:9]), (kernel.grid, kernel.group))
        return rows


class Hip(Attach):
    def test_kernels_calls_and_copies(self):
        for rocm in self.versions():
            with self.subTest(rocm):
                program = self.start(self.program("attach", rocm=rocm), rocm=rocm)
                self.attach(program, "--for-launches", "90")
                self.end(program)
                self.same_as_ledger()
                self.assertEqual(self.rows_lost(), [])
                self.assertEqual(self.query("SELECT architecture, vendor, kind FROM device"), [("gfx942", "Advanced Micro Devices, Inc.", "GPU")])
                # Each kernel and each copy has its call, and the call what it made.
                made = dict(self.query("SELECT f.name, count(*) FROM dispatch d JOIN api a ON a.correlation = d.correlation JOIN function f ON f.id = a.dim GROUP BY 1"))
                self.assertEqual(list(made), ["hipLaunchKernel"])
                # The call in which tacho came may have made one more.
                self.assertIn(len(self.dispatches()) - made["hipLaunchKernel"], (0, 1))
                copies = self.query("SELECT f.name, s.direction, c.bytes, count(*) FROM copy c JOIN copy_shape s ON s.id = c.dim JOIN api a ON "
                                    "a.correlation = c.correlation JOIN function f ON f.id = a.dim GROUP BY 1, 2, 3")
                self.assertEqual([row[:3] for row in copies], [("hipMemcpyAsync", "device to host", 1 << 18)])
                self.assertEqual(self.query("SELECT count(*) FROM dispatch d JOIN api a ON a.correlation = d.correlation WHERE d.start < a.start"), [(0,)])
                self.assertEqual(self.query("SELECT DISTINCT a.result FROM api a JOIN function f ON f.id = a.dim WHERE f.domain = 'hip'"), [(None,)])
                self.assertEqual({row[0] for row in self.query("SELECT DISTINCT t.native FROM dispatch d JOIN track t ON t.id = d.track")}, {0, 1})

    def test_nodes_of_a_graph_made_before(self):
        program = self.start(self.program("attach"), "1000", "graph")
        self.attach(program, "--for-launches", "90")
        self.end(program)
        self.same_as_ledger()
        nodes = self.query("SELECT d.graph_node, f.name, count(*) FROM dispatch d JOIN api a ON a.correlation = d.correlation JOIN function f ON f.id = a.dim "
                           "WHERE d.graph_node > 0 GROUP BY 1, 2 ORDER BY 1")
        self.assertEqual([row[:2] for row in nodes], [(1, "hipGraphLaunch"), (2, "hipGraphLaunch"), (3, "hipGraphLaunch")])
        self.assertEqual(len({row[2] for row in nodes}), 1)

    def test_again_and_again(self):
        program = self.start(self.program("attach"), "200")
        begin, warm, late = (0, 0, 0, 0), None, 0
        while abs(self.kept(program.pid)[2] - begin[2]) > 128:  # KiB: HIP makes much only when it is first used
            begin = self.kept(program.pid)
            time.sleep(1)
        for number in range(ROUNDS):
            options = ((), ("--kernel-trace",), ("--kernel-exclude", "mix"), ("--memory-copy-trace",))[number % 4]
            self.attach(program, "--for-launches", "60", *options)
            kernels, calls = len(self.dispatches()), self.query("SELECT count(*) FROM api")[0][0]
            if number % 4 < 2:
                untold = self.query("SELECT sum(count) FROM loss WHERE reason = 'launch without a record'")[0][0] or 0
                self.assertIn(kernels + untold, (60, 61), self.losses())
                late += untold
            self.assertEqual(calls > 0, number % 4 in (0, 2))
            self.assertEqual(kernels == 0, number % 4 == 3)
            self.assertEqual([loss for loss in self.rows_lost() if loss[0] != "launch without a record"], [])
            warm = self.kept(program.pid) if number == 9 else warm
        self.assertLessEqual(late, ROUNDS)  # of 30 times as many: had not ended a second after tacho was asked to leave
        end = self.kept(program.pid)
        print(f"{late} kernels had not ended when tacho left; "
              f"{ROUNDS} rounds: (threads, descriptors, resident KiB, mappings) before {begin}, after the tenth {warm}, now {end}", flush=True)
        self.assertEqual(end[:2], warm[:2])
        # ROCr starts its thread for signals with the first copy or kernel that is timed, and keeps it.
        self.assertIn(end[0] - begin[0], (0, 1))
        self.assertLessEqual(end[2], min(begin[2] + 8192, warm[2] + 1024))
        self.assertLessEqual(end[3], warm[3] + 4)
        maps = pathlib.Path(f"/proc/{program.pid}/maps").read_text()
        self.assertEqual(re.findall(r"tacho-\S+\.pool", maps), [])
        self.end(program)


class Hsa(Attach):
    """HSA without HIP: queues that the program makes later are intercepted, those that it had are only looked at."""

    def hsa(self, *words, **more):
        rocm = more.get("rocm", "7.2")
        self.program("attach", *bed.DEVICE_CODE, output=f"attach-{rocm}.co", rocm=rocm)
        return self.start(self.program("hsa_attach", "-lhsa-runtime64", output=f"hsa-{rocm}", rocm=rocm), f"attach-{rocm}.co", *words, **more)

    @staticmethod
    def tables(pid):
        """HSA's two tables as they are in the process, found by the code of two of the runtime's functions."""
        lines = [line.split() for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines() if "libhsa-runtime64" in line]
        base, library = int(lines[0][0].partition("-")[0], 16), pathlib.Path(f"/proc/{pid}/root{lines[0][5]}")
        symbols = dict(reversed(line.split()[::2]) for line in
                       subprocess.run(["nm", "-D", "--defined-only", "--without-symbol-versions", library], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines())
        found = []
        with open(f"/proc/{pid}/mem", "rb") as memory:
            def read(at, size):
                memory.seek(at)
                return memory.read(size)
            for function in ("hsa_queue_create", "hsa_amd_memory_async_copy"):
                at = base + int(symbols[function], 16) + 4  # behind endbr64
                code = read(at, 7)
                assert code[:3] == b"\x48\x8b\x05", code
                table = int.from_bytes(read(at + 7 + int.from_bytes(code[3:], "little", signed=True), 8), "little")
                found.append(read(table, int.from_bytes(read(table + 4, 4), "little")))
        return found

    def of_the_ledger(self, rows, kernels):
        """Every row is a kernel that the driver ran."""
        times = {name: sorted((kernel.start, kernel.end - kernel.start) for kernel in kernels if kernel.name == name) for name in ("mix", "step")}
        for name, start, end, *_ in rows:
            near = times[name][bisect.bisect(times[name], (start - 100_000,)):bisect.bisect(times[name], (start + 100_000,))]
            self.assertTrue(any(abs(end - start - length) < 1_000 for _, length in near), (name, start, end))

    def of_old_queues(self):
        """What the trace says of queues from before: how many there were, dispatches with times and without."""
        told = [re.findall(r"\d+", text) for severity, text in self.query("SELECT severity, text FROM note") if "HSA queues had been made before" in text]
        return [tuple(int(number) for number in numbers) for numbers in told]

    def test_kernels_and_copies(self):
        for rocm in self.versions():
            with self.subTest(rocm):
                program = self.hsa("1000", rocm=rocm)
                before = self.tables(program.pid)
                self.attach(program, "--for-launches", "200")
                self.assertEqual(self.tables(program.pid), before)
                self.end(program)
                rows = self.same_as_ledger()
                self.assertEqual(self.rows_lost(), [])
                self.assertIn(len(rows), (200, 201))
                self.assertEqual(self.query("SELECT architecture, vendor, kind FROM device"), [("gfx942", "Advanced Micro Devices, Inc.", "GPU")])
                # Half of them ran on the program's own queue, which is as it was; the others on one that was replaced ten times.
                (queues, timed, untimed), = self.of_old_queues()
                self.assertIn((queues, untimed), ((1, 0), (2, 0)))  # one where tacho came as the other was replaced
                self.assertTrue(98 <= timed <= 125, timed)
                copies = self.query("SELECT s.direction, c.bytes, count(*) FROM copy c JOIN copy_shape s ON s.id = c.dim GROUP BY 1, 2")
                self.assertEqual([copy[:2] for copy in copies], [("host to device", 1 << 16)])
                self.assertTrue(98 <= copies[0][2] <= 101, copies)
                self.assertEqual(self.query("SELECT count(*) FROM api"), [(0,)])

    def test_dispatches_without_times_are_counted(self):
        program = self.hsa("500", "bare", "shared")
        self.attach(program, "--for-launches", "600")
        self.end(program)
        (_, timed, untimed), = self.of_old_queues()
        rows = self.dispatches()
        self.assertIn(len(rows) + untimed, (600, 601))
        self.assertEqual(self.rows_lost(), [("launch without a record", untimed)])
        # Seven launches a round: twice mix with one signal, and one step without a signal on the old queue.
        self.assertGreaterEqual(untimed, 3 * 600 // 7 - 3)
        # One alone, if tacho came between the two.
        self.assertLessEqual(sum(row[0] == "mix" for row in rows), 1)
        self.assertGreater(len(rows), timed)
        self.of_the_ledger(rows, self.ledger().kernels)

    def test_calls_of_hsa(self):
        program = self.hsa("1000")
        before = self.tables(program.pid)
        self.attach(program, "--for-launches", "100", "--hsa-trace")
        self.assertEqual(self.tables(program.pid), before)
        self.end(program)
        # Each kernel belongs to the call that rang for it.
        made = self.query("SELECT f.name, count(*) FROM dispatch d JOIN api a ON a.correlation = d.correlation JOIN function f ON f.id = a.dim GROUP BY 1")
        self.assertEqual([name for name, _ in made], ["hsa_signal_store_screlease"])
        self.assertIn(len(self.dispatches()) - made[0][1], (0, 1))
        copies = self.query("SELECT DISTINCT f.name FROM copy c JOIN api a ON a.correlation = c.correlation JOIN function f ON f.id = a.dim")
        self.assertEqual(copies, [("hsa_amd_memory_async_copy",)])

    def test_the_program_ends_meanwhile(self):
        program = self.hsa("1000")
        tacho = subprocess.Popen([TACHO, "attach", str(program.pid), "-q", "-o", "t.tacho"], cwd=self.folder, stderr=subprocess.PIPE)
        self.addCleanup(tacho.stderr.close)
        time.sleep(0.7)
        self.end(program)
        self.assertEqual(tacho.wait(60), 0)
        self.same_as_ledger()
        self.assertEqual(self.rows_lost(), [])
        self.assertLess(self.ledger().kernels[-1].end - max(row[2] for row in self.dispatches()), 100_000)

    def test_parts_of_the_program_end_their_use_of_hsa(self):
        program = self.hsa("200", "again")
        before = self.tables(program.pid)
        self.attach(program, "--for-launches", "1000")
        self.assertEqual(self.tables(program.pid), before)
        self.end(program)
        self.assertIn(len(self.dispatches()), (1000, 1001))
        self.assertEqual(self.query("SELECT count(*) FROM device"), [(1,)])
        self.assertTrue(any("hsa_shut_down" in text for _, text in self.query("SELECT severity, text FROM note")))

    def test_hsa_that_starts_only_later(self):
        program = self.hsa("1000", "idle")
        tacho = subprocess.Popen([TACHO, "attach", str(program.pid), "-q", "-o", "t.tacho", "--for-launches", "100"], cwd=self.folder, stderr=subprocess.PIPE)
        self.addCleanup(tacho.stderr.close)
        time.sleep(0.5)
        program.send_signal(signal.SIGUSR1)
        self.assertEqual(tacho.wait(60), 0)
        self.end(program)
        self.same_as_ledger()

    def test_threads_that_share_a_queue(self):
        program, stays = self.hsa("0", "threads"), []
        for _ in range(10):
            self.attach(program, "--for-launches", "1000")
            stays.append(self.dispatches())
            lost = sum(count for _, count in self.rows_lost())
            self.assertIn(len(stays[-1]) + lost, (1000, 1001), self.losses())
            self.assertLessEqual(lost, 10, self.losses())
        self.end(program)
        kernels = self.ledger().kernels
        self.of_the_ledger([row for rows in stays for row in rows], kernels)
        for rows in stays:
            # Well after tacho came and before it left, the driver ran those and no others. (A thread may be interrupted between its packet,
            # which the bed's GPU runs at once, and its ring.)
            first, last = sorted(row[1] for row in rows)[20], sorted(row[2] for row in rows)[-20]
            ran = sum(kernel.start > first and kernel.end < last for kernel in kernels)
            self.assertLessEqual(abs(ran - sum(row[1] > first and row[2] < last for row in rows)), 10)

    def test_tacho_is_killed_and_the_program_forks(self):
        program = self.hsa("500", "fork")
        before = self.tables(program.pid)
        tacho = subprocess.Popen([TACHO, "attach", str(program.pid), "-q", "-o", "t.tacho"], cwd=self.folder, stderr=subprocess.PIPE)
        self.addCleanup(tacho.stderr.close)
        until = time.monotonic() + 20
        while self.tables(program.pid) == before and time.monotonic() < until:
            time.sleep(0.05)
        self.assertNotEqual(self.tables(program.pid), before)
        second = self.run_command(TACHO, "attach", program.pid, "-q", "-o", "second.tacho", "--duration", "1", code=1)
        self.assertIn("another tacho is attached to it", second.stderr.decode())
        program.send_signal(signal.SIGUSR1)
        children = pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children")
        while not children.read_text().strip():
            time.sleep(0.05)
        child = int(children.read_text().split()[0])
        time.sleep(0.3)
        of_child = self.tables(child)
        os.kill(child, signal.SIGKILL)
        self.assertEqual(of_child, before)
        tacho.kill()
        tacho.wait()
        for left in pathlib.Path("/dev/shm").glob(f"tacho-{tacho.pid}-*"):
            left.unlink()
        while self.tables(program.pid) != before and time.monotonic() < until:
            time.sleep(0.05)
        self.assertEqual(self.tables(program.pid), before)
        self.attach(program, "--for-launches", "60")
        self.assertIn(len(self.dispatches()), (60, 61))
        self.end(program)

    def test_openmp_offloading(self):
        """A real program without HIP: OpenMP's runtime of Debian's clang 14, which made its queues before tacho came."""
        llvm = pathlib.Path("/usr/lib/llvm-14/lib")
        needed = [llvm / name for name in ("libomptarget.so", "libomptarget.rtl.amdgpu.so", "libomptarget-new-amdgpu-gfx90a.bc", "libomp.so")]
        if shutil.which("clang-14") is None or not all(each.exists() for each in needed):
            self.skipTest("needs Debian's clang-14 and libomp-14-dev")
        # The compiler wants ROCm's libraries for the device, of which this program needs nothing.
        libraries, own = self.folder / "device", self.folder / "lib"
        libraries.mkdir()
        own.mkdir()
        (self.folder / "empty.c").write_text("")
        self.run_command("clang-14", "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-nogpulib", "-emit-llvm", "-c", "empty.c", "-o", "empty.bc")
        for name in ("ocml", "ockl", "oclc_isa_version_90a", *(f"oclc_{each}_{how}" for how in ("on", "off") for each in
                     ("daz_opt", "unsafe_math", "finite_only", "correctly_rounded_sqrt", "wavefrontsize64"))):
            shutil.copy(self.folder / "empty.bc", libraries / f"{name}.bc")
        self.run_command("clang-14", "-O2", "-fopenmp", "-fopenmp-targets=amdgcn-amd-amdhsa", "-Xopenmp-target=amdgcn-amd-amdhsa", "-march=gfx90a",
                         f"--rocm-device-lib-path={libraries}", f"--rocm-path={self.folder}", bed.PROGRAMS / "offload.c", "-o", "offload", timeout=100)
        shutil.copy(needed[0], own)
        shutil.copy(needed[1], own)
        shutil.copy(needed[3], own / "libomp.so.5")
        for line in subprocess.run(["ldd", needed[1]], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
            if (found := re.search(r"=> (/\S+)", line)) and not re.search(r"/(libc|libm|libstdc\+\+|libgcc_s)\.so", found[1]):
                shutil.copy(found[1], own)
        program = self.start("env", f"LD_LIBRARY_PATH={own}", "OMP_TARGET_OFFLOAD=MANDATORY", "./offload", gpu="gfx90a")
        self.attach(program, "--duration", "1")
        self.end(program, r"^\d+ rounds$")
        rows = self.same_as_ledger()
        self.assertEqual(self.rows_lost(), [])
        self.assertRegex(rows[0][0], "^__omp_offloading_.*_main_")
        (queues, timed, untimed), = self.of_old_queues()
        self.assertGreaterEqual(queues, 1)
        self.assertEqual((timed, untimed), (len(rows), 0))
        copies = self.query("SELECT s.direction, c.bytes, count(*) FROM copy c JOIN copy_shape s ON s.id = c.dim GROUP BY 1, 2 ORDER BY 1")
        self.assertEqual([copy[:2] for copy in copies], [("device to host", 32768), ("host to device", 32768)])
        self.assertTrue(all(abs(copy[2] - len(rows)) <= 1 for copy in copies), (copies, len(rows)))

    def test_filters(self):
        program = self.hsa("500")
        self.attach(program, "--for-launches", "60", "--kernel-exclude", "mix")
        self.assertEqual({row[0] for row in self.dispatches()}, {"step"})
        self.attach(program, "--for-launches", "60", "--memory-copy-trace")
        self.assertEqual(self.dispatches(), [])
        self.assertGreater(self.query("SELECT count(*) FROM copy")[0][0], 10)
        self.end(program)

    def test_another_profiler_in_the_tables(self):
        tool = self.folder / "libtool.so"
        self.run_command(os.environ.get("CXX", "c++"), "-shared", "-fPIC", "-static-libstdc++", "-static-libgcc", bed.PROGRAMS / "tables_tool.cpp", "-o", tool)
        program = self.hsa("1000", env={"HSA_TOOLS_LIB": str(tool)})
        before = self.tables(program.pid)
        self.attach(program, "--duration", "0.3")
        self.assertEqual(self.tables(program.pid), before)
        self.end(program)
        self.assertEqual(self.dispatches(), [])
        self.assertTrue(any("another profiler has its functions in HSA's tables" in text for _, text in self.query("SELECT severity, text FROM note")))

    def test_again_and_again(self):
        program = self.hsa("200")
        tables, warm = self.tables(program.pid), None
        begin = self.settled(program.pid)
        for number in range(HSA_ROUNDS):
            options = ((), ("--kernel-trace",), ("--kernel-exclude", "mix"), ("--hsa-trace",))[number % 4]
            self.attach(program, "--for-launches", "60", *options)
            kernels = len(self.dispatches())
            self.assertIn(kernels, (30, 31) if number % 4 == 2 else (60, 61), self.losses())
            self.assertEqual(self.rows_lost(), [])
            self.assertEqual(self.tables(program.pid), tables)
            if number in (9, HSA_ROUNDS - 1):  # tacho's threads end a moment after it has left
                end = self.settled(program.pid)
                warm = warm or end
        print(f"{HSA_ROUNDS} rounds: (threads, descriptors, resident KiB, mappings) before {begin}, after the tenth {warm}, now {end}", flush=True)
        self.assertLessEqual(end[0], begin[0] + 1)  # ROCr starts its thread for signals with the first copy that is timed
        self.assertEqual(end[1], warm[1])
        self.assertLessEqual(end[2], min(begin[2] + 12288, warm[2] + 2048))
        self.assertLessEqual(end[3], warm[3] + 8)
        self.end(program)


if __name__ == "__main__":
    harness.main()
