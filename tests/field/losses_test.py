"""Losses: "nothing was lost" is said only where tacho looked, and each gap names processes, what is missing, the remedy.

A loss is a process that ran without libtacho.so or with a part of it, a thread without a timer, a pool that could not
be opened. Shells, short tools and helpers that end with their program are none.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402, the folder of end-to-end tests is no package
from harness import SOURCE, TACHO  # noqa: E402

# burn SECONDS [THREADS]: CPU time in a function of that name.
BURN = r"""
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
static double left;
static double now(clockid_t c){struct timespec t;clock_gettime(c,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) void*burn(void*p){double b=now(CLOCK_THREAD_CPUTIME_ID);volatile double x=1;
 while(now(CLOCK_THREAD_CPUTIME_ID)-b<left)for(int i=0;i<1000;i++)x=x*1.0000001+1e-9;return p;}
int main(int argc,char**argv){left=argc>1?atof(argv[1]):0.3;int n=argc>2?atoi(argv[2]):0;pthread_t t[64];
 for(int i=0;i<n;i++)pthread_create(t+i,0,burn,0);
 if(n==0)burn(0);
 for(int i=0;i<n;i++)pthread_join(t[i],0);return 0;}
"""
# mark COUNT [SECONDS]: ranges by tacho.h, and by ROCTx through a library that it loads.
MARK = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <tacho/tacho.h>
int main(int argc,char**argv){int n=argc>1?atoi(argv[1]):5;if(argc>2)usleep(atof(argv[2])*1e6);
 for(int i=0;i<n;i++){tacho_range_push("step");usleep(2000);tacho_range_pop();}
 void*h=dlopen("libroctx64.so",RTLD_NOW);(void)h;
 int(*push)(const char*)=(int(*)(const char*))dlsym(RTLD_DEFAULT,"roctxRangePushA");
 int(*pop)(void)=(int(*)(void))dlsym(RTLD_DEFAULT,"roctxRangePop");
 if(push)for(int i=0;i<n;i++){push("rx");usleep(1000);pop();}
 return 0;}
"""
# full SECONDS: sets a marker when no file descriptor is left, and works on.
FULL = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <tacho/tacho.h>
int main(int argc,char**argv){while(open("/dev/null",O_RDONLY)>=0){}
 tacho_range_push("step");tacho_range_pop();
 clock_t until=clock()+(clock_t)(atof(argv[1])*CLOCKS_PER_SEC);while(clock()<until){}return 0;}
"""
GAP = re.compile(r"ran without libtacho|cleared environment|statically linked|ran as another user|could not attach|"
                 r"no file descriptor|still run|ended before tacho|no timer")


class Losses(harness.Case):
    @classmethod
    def setUpClass(cls):
        if shutil.which("gcc") is None:
            raise unittest.SkipTest("no gcc for the programs of these cases")

    def build(self, name, text, *flags):
        (self.folder / f"{name}.c").write_text(text)
        self.run_command("gcc", "-O1", "-g", "-w", f"-I{SOURCE / 'include'}", "-o", name, f"{name}.c", "-lpthread", "-ldl", *flags)
        return self.folder / name

    def script(self, text, name="launch.sh"):
        path = self.folder / name
        path.write_text("#!/bin/bash\n" + text)
        path.chmod(0o755)
        return path

    def run_tacho(self, *words, code=0, **more):
        """What tacho says of a run, each sentence on a line of its own."""
        result = self.run_command(TACHO, *words, code=code, **more)
        self.said = result.stderr.decode()
        return self.said

    def sample(self, *command, **more):
        return self.run_tacho("sys", "sample", "-o", "t.tacho", "--overwrite", "--", *command, **more)

    def record(self, *command, options=(), **more):
        return self.run_tacho("trace", "-o", "t.tacho", "--overwrite", *options, "--", *command, **more)

    def check_gap(self, *needles):
        """One sentence has all these parts, in this order; and nobody says that nothing was lost, now or later."""
        self.assertNotIn("nothing was lost", self.said)
        self.assertRegex(self.said, ".*".join(needles))
        info = self.run_command(TACHO, "info", "t.tacho").stdout.decode()
        self.assertNotIn("nothing was lost", info)
        self.assertRegex(info, r"\d+ (process|thread)(es|s)?: ")

    def check_whole(self):
        self.assertIn("nothing was lost", self.said)
        self.assertIsNone(GAP.search(self.said), self.said)


class WithoutPreload(Losses):
    """rocm-systems#3989: a launch script sets LD_PRELOAD itself."""

    REPLACED = 'export LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libc_malloc_debug.so.0\n"$@"\n'

    def test_alone(self):
        self.sample(self.build("burn", BURN), "0.3")
        self.check_whole()
        self.record(self.build("mark", MARK))
        self.check_whole()
        self.assertEqual(self.calls("marker", "rx"), 5)

    def test_call_stacks_behind_a_launch_script(self):
        self.sample(self.script(self.REPLACED), self.build("burn", BURN), "0.3")
        self.check_gap("warning: ", r"burn \(pid \d+; 0\.\d+ s of CPU time\)", "LD_PRELOAD, which was replaced or unset",
                       "no call stacks", "add to LD_PRELOAD", "--sampler perf")

    def test_markers_behind_a_launch_script(self):
        self.record(self.script(self.REPLACED), self.build("mark", MARK))
        self.assertEqual((self.calls("marker", "step"), self.calls("marker", "rx")), (5, 0))
        self.check_gap(r"mark \(pid \d+", "LD_PRELOAD", "no ROCTx ranges or MPI calls of it")

    def test_several_processes_are_one_sentence(self):
        burn = self.build("burn", BURN)
        self.sample(self.script(f"for i in 1 2 3; do env -u LD_PRELOAD {burn} 0.2; done; {burn} 0.2\n"))
        self.check_gap(r"3 processes \(burn \d+, burn \d+, burn \d+; 0\.\d+ s of CPU time\)", "LD_PRELOAD", "of them")
        self.assertEqual(len(re.findall("LD_PRELOAD, which", self.said)), 1, self.said)

    def test_program_that_unsets_its_own_variable_is_whole(self):
        """LD_PRELOAD counts when a process starts; what it does to the variable later takes nothing away."""
        code = "import os, time; os.environ.pop('LD_PRELOAD', None); t = time.process_time()\nwhile time.process_time() - t < 0.3: pass"
        self.sample(harness.DEBIAN_PYTHON, "-c", code)
        self.check_whole()


class ClearedEnvironment(Losses):
    def child(self, program, *words):
        return f"import subprocess\nsubprocess.run({[str(program), *words]}, env={{'PATH': '/usr/bin', 'HOME': '/root'}})\n"

    def test_child_of_a_sampled_parent(self):
        self.sample(harness.DEBIAN_PYTHON, "-c", self.child(self.build("burn", BURN), "0.3"))
        self.check_gap(r"burn \(pid \d+; 0\.\d+ s of CPU time\) ran with a cleared environment", "nothing of it is in this trace",
                       "TACHO_POOL")

    def test_gpu_program_beside_a_traced_parent(self):
        vcopy = harness.EXAMPLES / "vcopy"
        if not vcopy.exists():
            self.skipTest("no OpenCL here")
        self.record(harness.DEBIAN_PYTHON, "-c",
                    f"import subprocess\nsubprocess.run(['{vcopy}', '-i', '20'])\n" + self.child(vcopy, "-i", "600"))
        self.check_gap(r"vcopy \(pid \d+", "cleared environment", "nothing of it")

    def test_program_itself(self):
        self.sample("/usr/bin/env", "-i", self.build("burn", BURN), "0.3")
        self.check_gap(r"burn \(pid", "cleared environment")
        self.assertNotIn("no process attached", self.said)

    def test_perf_needs_no_environment(self):
        said = self.run_tacho("sys", "sample", "--sampler", "perf", "-o", "t.tacho", "--", "/usr/bin/env", "-i",
                              self.build("burn", BURN), "0.3")
        if "call stacks are not sampled" in said:
            self.skipTest("no perf events here")
        self.assertNotIn("cleared environment", said)

    def test_very_many_short_ones(self):
        """Each ends before a look at it; the kernel's account of their CPU time remains."""
        self.sample(harness.DEBIAN_PYTHON, "-c", "import subprocess\nfor i in range(600):\n"
                    f"    subprocess.run(['{self.build('burn', BURN)}', '0.004'], env={{}})\n")
        self.assertRegex(self.said, r"CPU time went into processes that ended before tacho could look|cleared environment")
        self.assertNotIn("nothing was lost", self.said)


class NotLoaded(Losses):
    def test_static_child(self):
        static, burn = self.build("fixed", BURN, "-static"), self.build("burn", BURN)
        self.sample(self.script(f"{burn} 0.2; {static} 0.3\n"))
        self.check_gap(r"fixed \(pid \d+; 0\.\d+ s of CPU time\) is statically linked", "nothing of it", "--sampler perf")

    def test_static_program(self):
        self.sample(self.build("fixed", BURN, "-static"), "0.3")
        self.check_gap(r"fixed \(pid \d+", "is statically linked")

    def test_another_user(self):
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            self.skipTest("only root can become somebody else")
        tacho, burn = self.for_everybody(self.build("burn", BURN))
        self.script(f"{burn} 0.2; setpriv --reuid 65534 --clear-groups {burn} 0.3\n")
        result = self.run_command(tacho, "sys", "sample", "-o", "t.tacho", "--", self.folder / "launch.sh")
        self.said = result.stderr.decode()
        self.check_gap(r"burn \(pid \d+; 0\.\d+ s of CPU time\)", "another user", "run tacho as that user")

    def test_no_descriptor_left(self):
        self.record(self.script('ulimit -n 30; exec "$@"\n'), self.build("full", FULL), "0.5")
        self.check_gap(r"full \(pid \d+", "no file descriptor left", "ulimit -n")


class Timers(Losses):
    def test_limit_of_pending_signals(self):
        if os.geteuid() == 0 and shutil.which("setpriv") is None:
            self.skipTest("root has no such limit here")
        self.sample(self.script('ulimit -i 5; exec "$@"\n'), self.build("burn", BURN), "0.1", "8")
        self.check_gap(r"\d threads of burn \(pid \d+", "no timer", "ulimit -i")

    def test_no_limit(self):
        self.sample(self.build("burn", BURN), "0.1", "8")
        self.check_whole()


class Pool(Losses):
    def test_emptied_while_it_is_used(self):
        """A cleaner of /dev/shm removes the pool's name: later processes reach it through tacho itself."""
        burn, pools = self.build("burn", BURN), self.folder / "pools"
        pools.mkdir()
        self.sample(self.script(f"{burn} 0.2; rm -f {pools}/*; {burn} 0.3\n"), env={"TACHO_POOL_DIR": str(pools)})
        self.check_whole()
        processes = self.run_command(TACHO, "query", "t.tacho", "--dialect", "tacho", "SELECT count(*) FROM process WHERE name = 'burn'")
        self.assertIn(b"2", processes.stdout.splitlines()[-1])

    def test_emptied_before_the_first_record(self):
        mark, pools = self.build("mark", MARK), self.folder / "pools"
        pools.mkdir()
        self.record(self.script(f"rm -f {pools}/*; {mark} 5\n"), env={"TACHO_POOL_DIR": str(pools)})
        self.assertEqual((self.calls("marker", "step"), self.calls("marker", "rx")), (5, 5))


class NoLoss(Losses):
    def test_shells_and_short_tools(self):
        mark = self.build("mark", MARK)
        self.record(self.script(f"for i in $(seq 100); do env -i /bin/true; done; env -u LD_PRELOAD ls / | sort >&2; {mark}\n"))
        self.check_whole()

    def test_helpers_that_end_with_their_program(self):
        code = ("import multiprocessing as m, time\ndef f(x):\n    t = time.process_time()\n    while time.process_time() - t < 0.1: pass\n"
                "    return x\nif __name__ == '__main__':\n    with m.get_context('spawn').Pool(2) as p: print(sum(p.map(f, range(4))))\n")
        (self.folder / "pool.py").write_text(code)
        self.sample(harness.DEBIAN_PYTHON, "pool.py")
        self.check_whole()

    def test_helper_that_sleeps_on(self):
        mark = self.build("mark", MARK)
        self.record(self.script(f"sleep 3 >/dev/null 2>&1 & {mark}\n"))
        self.assertIn("nothing was lost", self.said)
        self.assertNotIn("warning", self.said)


class Daemons(Losses):
    def test_named(self):
        mark, burn = self.build("mark", MARK), self.build("burn", BURN)
        self.sample(self.script(f"setsid {burn} 3 >/dev/null 2>&1 & {mark} 5 0.2\n"))
        self.check_gap(r"burn \(pid \d+\) still runs", r"--follow \(tacho trace, tacho sys\) waits for it")

    def test_followed(self):
        mark = self.build("mark", MARK)
        self.record(self.script(f"setsid {mark} 20 1.5 >/dev/null 2>&1 &\n{mark} 5\n"), options=["--follow"])
        self.check_whole()
        self.assertEqual((self.calls("marker", "step"), self.calls("marker", "rx")), (25, 25))

    def test_interrupted(self):
        mark = self.build("mark", MARK)
        script = self.script(f"setsid sleep 60 >/dev/null 2>&1 &\n{mark} 5\n")
        process = subprocess.Popen([TACHO, "trace", "-o", "t.tacho", "--follow", "--", script], cwd=self.folder, stderr=subprocess.PIPE)
        try:
            process.wait(1.5)
            self.fail("--follow did not wait")
        except subprocess.TimeoutExpired:
            process.terminate()
        said = process.communicate(timeout=20)[1].decode()
        self.assertEqual(process.returncode, 0, said)
        self.assertRegex(said, r"sleep \(pid \d+\) still runs")
        subprocess.run(["kill", re.search(r"sleep \(pid (\d+)\)", said)[1]], check=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
