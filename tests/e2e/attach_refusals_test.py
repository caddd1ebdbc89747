"""`tacho attach` and processes and machines that are not as they should be: one sentence, and the program goes on."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import attach_test
import harness
from attach_test import LOOP, THREADS
from harness import TACHO


class Faults(attach_test.Attached):
    """Processes and machines that are not as they should be: one sentence, and the program goes on."""

    def compile(self, code, *options):
        (self.folder / "p.c").write_text("#define _GNU_SOURCE\n" + code)
        self.run_command("gcc", "-O1", "-pthread", "-o", "p", "p.c", *options)
        return self.folder / "p"

    def refused(self, process, *needles, **more):
        self.one_sentence(self.attach(process, code=1, **more), *needles)

    LIVES = """
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
static volatile sig_atomic_t stop, traps;
static void on_term(int n) { stop = n; }
static void on_trap(int n) { traps += n == SIGTRAP; }
int main(int argc, char** argv) {
  (void)argc; (void)argv; (void)on_trap; (void)traps;
  long rounds = 0;
  signal(SIGTERM, on_term);
  BEGIN
  puts("ready");
  fflush(stdout);
  while (!stop) { ++rounds; EACH }
  puts(rounds > 0 && END ? "fine" : "wrong");
}
"""

    def lives(self, begin="", each="usleep(500);", end="1"):
        return self.compile(self.LIVES.replace("BEGIN", begin).replace("EACH", each).replace("END", end), "-ldl")

    def test_one_that_catches_traps(self):
        program = self.start(self.lives("signal(SIGTRAP, on_trap);", "raise(SIGTRAP); usleep(100);", "traps == rounds"))
        for _ in range(5):
            self.attach(program, "--duration", "0.1")
        self.assertEqual(self.end(program), "fine")

    def test_one_that_loads_and_unloads_libraries(self):
        program = self.start(self.lives("", 'void* l = dlopen("libz.so.1", RTLD_NOW); if (l) dlclose(l); usleep(100);'))
        for _ in range(5):
            self.attach(program, "--duration", "0.2")
        self.assertEqual(self.end(program), "fine")

    def test_one_whose_library_takes_long_to_load(self):
        """The constructor of a library runs, in the program's own code or waiting, and the loader is locked: tacho's library waits for that. What
        comes only after tacho has given up leaves by itself."""
        (self.folder / "l.c").write_text("#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nvoid work(void);\n"
                                         "__attribute__((constructor)) static void begin(void) { puts(\"ready\"); fflush(stdout); "
                                         "if (getenv(\"WAIT\")) sleep(12); else work(); }\n")
        self.run_command("gcc", "-shared", "-fPIC", "-o", "l.so", "l.c")
        program = self.compile("""
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
void work(void) { volatile unsigned x = 0; for (double end = now() + 2; now() < end;) for (int i = 0; i < 100000; ++i) x += i; }
int main(void) {
  if (dlopen("./l.so", RTLD_NOW) == NULL) return 1;
  puts("loaded");
  fflush(stdout);
  for (;;) usleep(1000);
}
""", "-rdynamic", "-ldl")
        computes = self.start(program)
        self.attach(computes, "--duration", "0.1")
        self.assertEqual(computes.stdout.readline(), "loaded\n")
        self.assertEqual(self.leftovers(computes.pid), ([], [], []))
        waits = self.start(program, env={**os.environ, "WAIT": "1"})
        self.refused(waits, "its loader is busy with another library")
        self.assertEqual(waits.stdout.readline(), "loaded\n")
        self.assertEqual(self.leftovers(waits.pid), ([], [], []))
        self.wait_until(lambda: len(os.listdir(f"/proc/{waits.pid}/task")) == 1)
        self.attach(waits, "--duration", "0.1")
        self.assertIsNone(waits.poll())

    def test_one_whose_name_has_several_lines(self):
        named = self.folder / "one\n1) S 1\x1b[31m"
        shutil.copy(self.lives(), named)
        program = self.start(named)
        self.attach(program, "--duration", "0.1", output="a.tacho")
        self.assertEqual(self.leftovers(program.pid), ([], [], []))
        program.send_signal(signal.SIGSTOP)
        self.wait_until(lambda: "State:\tT" in pathlib.Path(f"/proc/{program.pid}/status").read_text())
        self.refused(program, "(one 1) S 1 [31m)", "is stopped by a signal")
        program.send_signal(signal.SIGCONT)
        self.assertEqual(self.end(program), "fine")

    def test_one_that_changes_its_stacks(self):
        """Coroutines: its only thread is on one of many stacks of its own whenever it is stopped."""
        program = self.start(self.compile("""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
static volatile sig_atomic_t stop;
static void on_term(int n) { stop = n; }
enum { kMany = 50 };
static ucontext_t all[kMany], origin;
static unsigned long sums[kMany];
static void run(int me) {
  while (!stop) {
    for (unsigned long i = 0; i < 1000; ++i) sums[me] += i;
    if (sums[me] % 499500 != 0) exit(3);
    swapcontext(&all[me], &all[(me + 1) % kMany]);
  }
}
int main(void) {
  signal(SIGTERM, on_term);
  for (int i = 0; i < kMany; ++i) {
    getcontext(&all[i]);
    all[i].uc_stack.ss_sp = malloc(16384);
    all[i].uc_stack.ss_size = 16384;
    all[i].uc_link = &origin;
    makecontext(&all[i], (void (*)(void))run, 1, i);
  }
  puts("ready");
  fflush(stdout);
  swapcontext(&origin, &all[0]);
  puts("fine");
}
"""))
        for number in range(6):
            self.attach(program, "--duration", "0.1", *(("--sampler", "timer", "--sample-hz", "500") if number % 2 else ()))
            self.assertEqual(self.leftovers(program.pid), ([], [], []))
        self.assertEqual(self.end(program), "fine")

    def test_one_between_vfork_and_exec(self):
        program = self.start(self.compile("""
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>
#include <time.h>
int main(void) {
  puts("ready");
  fflush(stdout);
  for (;;) {
    pid_t child = vfork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      struct timespec t = {9, 0};
      nanosleep(&t, 0);
      execl("/bin/true", "true", (char*)0);
      _exit(1);
    }
    waitpid(child, 0, 0);
  }
}
"""))
        self.wait_until(lambda: pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split())
        child = int(pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()[0])
        self.refused(child, "is between vfork and exec")
        self.one_sentence(self.attach(program, "--duration", "0.1", code=1), "found no moment to get into process")
        for process in (program.pid, child):
            self.assertNotIn(pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0], "tT")

    def test_filters_of_system_calls(self):
        strict = self.start(self.lives('puts("ready"); fflush(stdout); prctl(PR_SET_SECCOMP, 1);', "if (rounds < 0) return 1;"))
        self.wait_until(lambda: "Seccomp:\t1" in pathlib.Path(f"/proc/{strict.pid}/status").read_text())
        self.refused(strict, "seccomp's strict mode")
        filtered = self.lives("struct { unsigned short n; void* f; } p; unsigned char allow[8] = {6, 0, 0, 0, 0, 0, 0xff, 0x7f}; p.n = 1; p.f = allow; "
                              "prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); if (prctl(PR_SET_SECCOMP, 2, &p)) return 3;")
        program = self.start(filtered)
        self.refused(program, "has installed filters of system calls (seccomp)")
        self.assertEqual(self.end(program), "fine")

    def test_another_users_process(self):
        if os.geteuid() != 0:
            self.skipTest("only root can be two users here")
        program = self.start(self.lives())
        os.chmod(self.folder, 0o777)
        said = self.run_command("setpriv", "--reuid", 65534, "--regid", 65534, "--clear-groups", TACHO, "attach", program.pid, "-q", "-o", "n.tacho", code=1)
        self.one_sentence(said, "the process belongs to root, this tacho to user 65534")
        self.assertEqual(self.end(program), "fine")

    def test_what_yama_forbids(self):
        """Where the kernel has yama its setting is told, and who may attach nevertheless."""
        if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/proc/sys/kernel"], capture_output=True).returncode != 0:
            self.skipTest("only root, with namespaces, can show another setting here")
        os.chmod(self.folder, 0o777)
        as_user = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
        program = self.start(*as_user, self.lives())
        for scope, user, mend in ((0, (), ""), (1, (), ""), (2, (), ""), (3, (), "start the program with tacho trace"), (0, as_user, ""),
                                  (1, as_user, "sysctl kernel.yama.ptrace_scope=0"), (2, as_user, f"tacho attach {program.pid}"),
                                  (3, as_user, "start the program with tacho trace")):
            at = lambda *command: ("unshare", "--mount", "sh", "-c", f"mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama && "  # noqa: E731
                                   f"echo {scope} > /proc/sys/kernel/yama/ptrace_scope && chmod 755 /proc/sys/kernel && exec \"$@\"", "sh", *user, *command)  # noqa: B023
            said = self.run_command(*at(TACHO, "doctor", program.pid), code=1 if mend else 0).stdout.decode()
            self.assertRegex(said, rf"{'FAULT' if mend else 'ok   '}  yama +kernel.yama.ptrace_scope is {scope}")
            self.assertIn(mend, said)
            if mend:
                self.one_sentence(self.run_command(*at(TACHO, "attach", program.pid, "-q", "-o", "n.tacho"), code=1), f"ptrace_scope is {scope}", mend)
        self.assertEqual(self.end(program), "fine")

    def test_one_that_protects_itself(self):
        if os.geteuid() != 0:
            self.skipTest("only root can be two users here")
        os.chmod(self.folder, 0o777)
        as_user = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
        program = self.start(*as_user, self.lives("prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);"))
        self.one_sentence(self.run_command(*as_user, TACHO, "attach", program.pid, "-q", "-o", "n.tacho", code=1), "protects itself", "PR_SET_DUMPABLE")
        self.assertEqual(self.end(program), "fine")

    def test_a_program_of_32_bits(self):
        (self.folder / "s.S").write_text(".globl _start\n_start:\n movl $4,%eax\n movl $1,%ebx\n movl $t,%ecx\n movl $6,%edx\n int $0x80\n"
                                         "1: movl $29,%eax\n int $0x80\n jmp 1b\nt: .ascii \"ready\\n\"\n")
        self.run_command("gcc", "-m32", "-nostdlib", "-static", "-o", "small", "s.S")
        try:
            program = self.start(self.folder / "small")
        except OSError:
            self.skipTest("this kernel runs no 32-bit programs")
        self.refused(program, "is a 32-bit program")

    def test_a_tacho(self):
        program = self.start(self.lives())
        tacho = subprocess.Popen([str(TACHO), "attach", str(program.pid), "-q", "-o", "one.tacho"], cwd=self.folder)
        self.addCleanup(tacho.kill)
        self.wait_until(lambda: self.threads(program.pid))
        self.refused(tacho.pid, "is a tacho")
        tacho.send_signal(signal.SIGINT)
        self.assertEqual(tacho.wait(timeout=60), 0)
        self.assertEqual(self.end(program), "fine")

    def test_no_room_for_the_pool(self):
        program = self.start(self.lives())
        size = int(re.search(r"VmSize:\s+(\d+)", pathlib.Path(f"/proc/{program.pid}/status").read_text())[1]) * 1024
        self.run_command("prlimit", "--pid", program.pid, f"--as={size + (16 << 20)}:unlimited")
        self.refused(program)
        self.run_command("prlimit", "--pid", program.pid, "--as=unlimited:unlimited")
        self.attach(program, "--duration", "0.2")
        self.run_command("prlimit", "--pid", program.pid, "--fsize=4096:unlimited")
        self.attach(program, "--duration", "0.2", code=None)
        self.assertEqual(self.leftovers(program.pid), ([], [], []))
        self.assertEqual(self.end(program), "fine")


class Containers(attach_test.Attached):
    def contained(self, *command, **more):
        probe = subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True)
        if probe.returncode != 0:
            self.skipTest("this machine allows no namespaces")
        outer = self.start("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", *command, **more)
        return outer, int(pathlib.Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()[0])

    def kernels(self, pid):
        self.attach(pid, "--duration", "0.5")
        self.assertEqual(self.leftovers(pid), ([], [], []))
        return self.calls("kernel", "mix_up", "a.tacho")

    def test_a_container_that_sees_our_library(self):
        _, pid = self.contained(LOOP, "100000000", "1000")
        self.assertGreater(self.kernels(pid), 10)
        self.assertIn("there it is process 1", self.run_command(TACHO, "doctor", pid).stdout.decode())
        # Users of its own give a process no other number.
        sleep = subprocess.Popen(["unshare", "-U", "sleep", "60"])
        self.addCleanup(sleep.wait)
        self.addCleanup(sleep.kill)
        self.wait_until(lambda: pathlib.Path(f"/proc/{sleep.pid}/comm").read_text() == "sleep\n")
        said = self.run_command(TACHO, "doctor", sleep.pid).stdout.decode()
        self.assertIn("the process has its own users\n", said)
        self.assertNotIn("there it is", said)

    def test_a_container_without_our_library_and_with_its_own_shm(self):
        library = harness.BUILD / "lib"
        _, pid = self.contained("sh", "-c", f"mount -t tmpfs none {library} && mount -t tmpfs none /dev/shm && exec {LOOP} 100000000 1000")
        self.assertGreater(self.kernels(pid), 10)
        self.assertIn("memfd:libtacho.so", pathlib.Path(f"/proc/{pid}/maps").read_text())
        self.assertGreater(self.kernels(pid), 10)

    def test_by_the_containers_id(self):
        """As the engines of containers name their cgroups; the begin of the id is enough."""
        container = "3f2a9c01b7de5566778899aabbccddeeff00112233445566778899aabbccddee"
        controllers = [folder for folder in (pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")) if os.access(folder / "cgroup.procs", os.W_OK)]
        if not controllers:
            self.skipTest("this machine allows no cgroups")
        group = controllers[0] / f"tacho-test-{os.getpid()}-{container}.scope"
        group.mkdir()
        self.addCleanup(group.rmdir)
        inside, outside = (self.start(LOOP, "100000000", "1000") for _ in range(2))
        (group / "cgroup.procs").write_text(f"{inside.pid}\n")
        said = self.run_command(TACHO, "attach", "--container", container[:12], "--telemetry", "process", "--duration", "0.5", "-o", "a.tacho").stderr.decode()
        self.assertIn(f"attached to process {inside.pid} after", said)
        self.assertGreater(self.calls("kernel", "mix_up", "a.tacho"), 10)
        # Telemetry is the program's.
        resident = self.query("SELECT max(r.value) FROM tacho.reading r JOIN tacho.track t ON r.track = t.id WHERE t.name = 'CPU Memory Usage'")
        now = int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{inside.pid}/status").read_text())[1]) * 1024
        self.assertTrue(now / 2 < float(resident[0][0]) < now * 2, (resident, now))
        self.one_sentence(self.run_command(TACHO, "attach", "--container", "3f2a9c01b7df", code=1), "in the container 3f2a9c01b7df")
        self.same_result(self.end(outside))

    def test_links_do_not_lead_the_pool_out_of_the_container(self):
        """The container's /dev/shm is a link, to a path that means another folder outside."""
        outside = self.folder / "outside"
        outside.mkdir()
        before = outside.stat().st_mtime_ns
        _, pid = self.contained("sh", "-c", f"mount -t tmpfs none {outside} && mount -t tmpfs none /dev && ln -s {outside} /dev/shm && "
                                f"mknod -m 666 /dev/null c 1 3 && exec {LOOP} 100000000 1000")
        self.assertGreater(self.kernels(pid), 10)
        self.assertEqual((outside.stat().st_mtime_ns, list(outside.iterdir())), (before, []))

    SWAPS = """
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static int file;
static void* swap(void* none) {
  char path[64], link[64];
  for (;;) {
    for (int number = 3; number < 64; ++number) {
      snprintf(path, sizeof path, "/proc/self/fd/%d", number);
      const ssize_t size = readlink(path, link, sizeof link - 1);
      if (size > 0 && number != file && strncmp(link, "/memfd:", 7) == 0) dup2(file, number);
    }
    usleep(1000);
  }
  return none;
}
int main(int count, char** words) {
  pthread_t thread;
  file = open(words[count - 1], O_RDONLY);
  pthread_create(&thread, 0, swap, 0);
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}
"""

    def test_a_file_in_the_place_of_the_librarys_copy(self):
        """The program has opened a file that it may not write, and hands it to tacho as the one that tacho has made to copy its library into."""
        (self.folder / "swaps.c").write_text(self.SWAPS)
        self.run_command("gcc", "-O1", "-pthread", "-o", "swaps", "swaps.c")
        for name, content in (("full", "what it holds\n"), ("empty", "")):
            victim = self.folder / name
            victim.write_text(content)
            victim.chmod(0o444)
            _, pid = self.contained("sh", "-c", f"mount -t tmpfs none {harness.BUILD / 'lib'} && exec {self.folder / 'swaps'} {victim}")
            tacho = subprocess.Popen([str(TACHO), "attach", str(pid), "-q", "--overwrite", "--duration", "0.2", "-o", "a.tacho"], cwd=self.folder,
                                     env={**os.environ, "TACHO_ATTACH_STEP": "opened"}, stderr=subprocess.PIPE, text=True)
            self.addCleanup(tacho.stderr.close)
            self.addCleanup(tacho.kill)
            state = lambda: pathlib.Path(f"/proc/{tacho.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]  # noqa: E731, B023
            self.wait_until(lambda: state() in "TZ")  # noqa: B023
            self.assertEqual(state(), "T")
            time.sleep(0.1)
            tacho.send_signal(signal.SIGCONT)
            self.assertEqual(tacho.wait(timeout=60), 1)
            self.assertRegex(tacho.stderr.read(), r"^tacho: [^\n]*has put another file in the place[^\n]*\n$")
            self.assertEqual(victim.read_text(), content)
            self.assertEqual(self.leftovers(pid)[0], [])

    def test_a_program_whose_file_was_replaced(self):
        import shutil
        copy = self.folder / "copied"
        shutil.copy(LOOP, copy)
        program = self.start(copy, "100000000", "1000")
        copy.unlink()
        self.assertGreater(self.kernels(program.pid), 10)
        self.same_result(self.end(program))


class Disk(attach_test.Attached):
    def test_a_full_disk(self):
        program = self.start(LOOP, "100000000", "100")
        said = self.attach(program, "--duration", "1", output="/dev/full", code=1)
        self.one_sentence(said, "/dev/full")
        self.assertEqual(self.leftovers(program.pid), ([], [], []))
        self.same_result(self.end(program))


class Threads(attach_test.Attached):
    def test_no_call_of_any_thread_is_interrupted(self):
        for threads in ("40", "500", "2000"):
            program = self.start(THREADS, threads)
            for _ in range(3):
                self.attach(program, "--duration", "0.1", code=None)
            self.assertEqual(self.leftovers(program.pid)[0], [])
            self.assertEqual(self.end(program), "fine")


class Refusals(attach_test.Attached):
    def refused(self, process, *needles):
        self.one_sentence(self.attach(process, code=1), *needles)
        self.assertFalse((self.folder / "a.tacho").exists())

    def test_processes_that_cannot_be_attached_to(self):
        self.refused(1, "init")
        self.refused(4_000_000, "no process")
        zombie = subprocess.Popen(["true"])
        time.sleep(0.3)
        self.refused(zombie.pid, "has ended")
        zombie.wait()
        sleeper = subprocess.Popen(["sleep", "60"])
        self.addCleanup(sleeper.kill)
        time.sleep(0.2)
        sleeper.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        self.refused(sleeper.pid, "stopped by a signal", "kill -CONT")
        sleeper.send_signal(signal.SIGCONT)
        threads = self.start(THREADS, "3")
        other = next(task for task in os.listdir(f"/proc/{threads.pid}/task") if int(task) != threads.pid)
        self.refused(other, "a thread of process")
        self.assertEqual(self.end(threads), "fine")

    def test_one_that_is_traced(self):
        program = self.start(THREADS, "3")
        tracer = subprocess.Popen(["/usr/bin/python3", "-c", "import ctypes, sys, time; libc = ctypes.CDLL(None); "
                                   f"assert libc.ptrace(0x4206, {program.pid}, 0, 0) == 0; print('in', flush=True); time.sleep(30)"],
                                  stdout=subprocess.PIPE)
        self.addCleanup(tracer.stdout.close)
        self.addCleanup(tracer.kill)
        self.assertEqual(tracer.stdout.readline(), b"in\n")
        self.refused(program.pid, "is traced by process", "python")
        tracer.kill()
        tracer.wait()
        self.assertEqual(self.end(program), "fine")

    def test_static_programs(self):
        source = self.folder / "s.c"
        source.write_text("#include <unistd.h>\n#include <stdio.h>\nint main() { puts(\"ready\"); fflush(stdout); pause(); }\n")
        self.run_command("gcc", "-static", "-o", "static", source)
        program = self.start(self.folder / "static")
        self.refused(program.pid, "linked statically")

    def test_go_programs(self):
        """They are linked statically, unless they use C: Go's own of this machine, where there is one."""
        found = next((path for path in map(shutil.which, ("docker", "terraform", "kubectl", "gh")) if path and b"Go buildinf" in
                      pathlib.Path(path).read_bytes()), None)
        if found is None:
            self.skipTest("no Go program is installed")
        environment = {**os.environ, "DOCKER_HOST": f"unix://{self.folder}/none", "HOME": str(self.folder)}
        listener = subprocess.Popen(["python3", "-c", "import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); "
                                     "time.sleep(60)", f"{self.folder}/none"])
        self.addCleanup(listener.wait)
        self.addCleanup(listener.kill)
        self.wait_until((self.folder / "none").exists)
        go = subprocess.Popen([found, "console" if "terraform" in found else "version"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env=environment, cwd=self.folder)
        self.addCleanup(go.stdin.close)
        self.addCleanup(go.wait)
        self.addCleanup(go.kill)
        self.wait_until(lambda: len(os.listdir(f"/proc/{go.pid}/task")) > 2)
        self.refused(go.pid, "is linked statically")
        self.assertIsNone(go.poll())
        self.assertIn("is linked statically", self.run_command(TACHO, "doctor", go.pid, code=1).stdout.decode())
        self.assertIsNone(go.poll())

    def test_a_java_program(self):
        """Its machine has threads of its own and handles signals: it goes on, and its threads are sampled."""
        if shutil.which("javac") is None:
            self.skipTest("javac is not installed (Debian package default-jdk-headless)")
        (self.folder / "Loop.java").write_text(
            "public class Loop { public static void main(String[] a) throws Exception { Thread t = new Thread(() -> { long x = 0; while (true) "
            "{ x += 3; if (x == -1) System.out.println(x); } }); t.setDaemon(true); t.start(); long sum = 0; long[] n = {0}; "
            "Runtime.getRuntime().addShutdownHook(new Thread(() -> { System.out.println(n[0] > 10 ? \"fine\" : \"wrong\"); })); "
            "System.out.println(\"ready\"); for (;;) { byte[] b = new byte[100000]; sum += b.length; Thread.sleep(1); if (sum == n[0]) break; "
            "++n[0]; } } }\n")
        self.run_command("javac", "Loop.java")
        program = self.start("java", "-Xmx64m", "Loop")
        for number in range(4):
            self.attach(program, "--duration", "0.3", *(("--sampler", "timer") if number % 2 else ()))
            self.assertEqual(self.leftovers(program.pid), ([], [], []))
        program.send_signal(signal.SIGTERM)
        self.assertEqual(program.communicate(timeout=60)[0].strip(), "fine")
        self.assertEqual(program.returncode, 128 + signal.SIGTERM)

    def test_a_setuid_program(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make one")
        os.chmod(self.folder, 0o777)
        sleep = self.folder / "sleep"
        shutil.copy("/bin/sleep", sleep)
        os.chown(sleep, 65533, 65533)
        os.chmod(sleep, 0o6755)
        as_user = ("setpriv", "--reuid", "65532", "--regid", "65532", "--clear-groups")
        program = subprocess.Popen([*as_user, sleep, "60"])
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        self.wait_until(lambda: "\nUid:\t65532\t65533" in pathlib.Path(f"/proc/{program.pid}/status").read_text())
        said = self.run_command(*as_user, TACHO, "attach", program.pid, "-q", "-o", "n.tacho", code=1)
        self.one_sentence(said, "user 65532 started the process, which has the rights of user 65533 (setuid)", "sudo tacho attach")
        self.assertIn("setuid", self.run_command(*as_user, TACHO, "doctor", program.pid, code=1).stdout.decode())
        # Root may.
        self.attach(program, "--duration", "0.2")
        self.assertIsNone(program.poll())
        self.assertEqual(self.leftovers(program.pid), ([], [], []))

    def test_what_is_only_for_programs_that_tacho_starts(self):
        program = self.start(THREADS, "3")
        for words, why in ((("--device-counters", "SQ_WAVES"), "--pmc samples GPUs"), (("--device-counters-hz", "5"), "--pmc samples GPUs"),
                           (("--pc-sampling",), "PC samples are for programs that tacho starts"), (("--follow",), "ends with the process"),
                           (("--torch-trace",), "PyTorch's functions"), (("--torch-shapes",), "PyTorch's functions"),
                           (("--memory",), "PyTorch's allocators"), (("--memory-keep", "1s"), "PyTorch's allocators"),
                           (("--rpd-schema", "3"), "tacho export makes other formats"), (("--view",), "afterwards"),
                           (("--sampler", "perf"), "--sampler timer samples those of a program that runs"),
                           (("--sample-clock", "wall", "--sampler", "timer"), "interrupt what the threads of a running one wait for")):
            self.one_sentence(self.attach(program, *words, code=1), words[0], why, "for programs that tacho starts")
        self.assertNotIn("libtacho", pathlib.Path(f"/proc/{program.pid}/maps").read_text())
        # --help offers none of them.
        offered = set(self.run_command(TACHO, "attach", "--help").stdout.decode().split())
        self.assertLessEqual({"--sampler", "--kernel-trace", "--duration"}, offered)
        self.assertFalse({"--device-counters", "--follow", "--torch-trace", "--memory", "--memory-keep", "--format", "--view"} & offered)
        self.assertEqual(self.end(program), "fine")

    def test_doctor_attaches_nothing(self):
        program = self.start(THREADS, "3")
        said = self.run_command(TACHO, "doctor", program.pid).stdout.decode()
        for line in ("target", "user", "yama", "container", "tacho can attach"):
            self.assertIn(line, said)
        self.assertNotIn("libtacho", pathlib.Path(f"/proc/{program.pid}/maps").read_text())
        self.run_command(TACHO, "doctor", 1, code=1)
        self.assertEqual(self.end(program), "fine")


if __name__ == "__main__":
    if harness.sanitized():
        print("skipped: tacho attach does not get into programs with another run time's allocator")
        raise SystemExit(77)
    harness.main()
