"""Programs of strangers: however they start their processes and whatever they do to their limits, namespaces and files, a run of
tacho has all markers and all CPU time of each process, or says of which it has not, and the program itself notices nothing."""
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402, the folder of end-to-end tests is no package
from harness import SOURCE, TACHO  # noqa: E402

# work SECONDS [THREADS]: five ranges by tacho.h, then CPU time.
WORK = r"""
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <tacho/tacho.h>
static double left;
static double now(void){struct timespec t;clock_gettime(CLOCK_THREAD_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
static void*burn(void*p){double b=now();volatile double x=1;while(now()-b<left)for(int i=0;i<1000;i++)x=x*1.0000001+1e-9;return p;}
int main(int argc,char**argv){left=argc>1?atof(argv[1]):0.2;int n=argc>2?atoi(argv[2]):0;
 for(int i=0;i<5;i++){tacho_range_push("step");tacho_range_pop();}
 if(n==0){burn(0);return 0;}
 left/=n;pthread_t t[256];for(int i=0;i<n;i++)pthread_create(t+i,0,burn,0);for(int i=0;i<n;i++)pthread_join(t[i],0);return 0;}
"""
# start HOW PROGRAM WORDS...: processes that libc's usual functions do not make.
START = r"""
#define _GNU_SOURCE
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <tacho/tacho.h>
int main(int argc,char**argv){const char*how=argv[1];int s;
 if(!strcmp(how,"vfork"))for(int i=0;i<3;i++){if(vfork()==0){execv(argv[2],argv+2);_exit(1);}wait(&s);}
 if(!strcmp(how,"clone3"))for(int i=0;i<3;i++){struct clone_args a;memset(&a,0,sizeof a);a.exit_signal=SIGCHLD;
  if(syscall(SYS_clone3,&a,sizeof a)==0){execv(argv[2],argv+2);_exit(1);}wait(&s);}
 if(!strcmp(how,"unwaited")){signal(SIGCHLD,SIG_IGN);for(int i=0;i<3;i++)if(fork()==0){execv(argv[2],argv+2);_exit(1);}
  while(wait(&s)>0);}
 if(!strcmp(how,"workers")){for(int i=0;i<8;i++)if(fork()==0){for(int k=0;k<5;k++){tacho_range_push("step");tacho_range_pop();}
   clock_t u=clock()+CLOCKS_PER_SEC/20;while(clock()<u);_exit(0);}while(wait(&s)>0);}
 if(!strcmp(how,"itself")){int n=argc>3?atoi(argv[3]):3;if(n==0)execl(argv[2],argv[2],"0.1",NULL);
  clock_t u=clock()+CLOCKS_PER_SEC/10;while(clock()<u);char t[9];sprintf(t,"%d",n-1);
  execl("/proc/self/exe",argv[0],how,argv[2],t,NULL);}
 if(!strcmp(how,"closed")){close_range(3,~0U,0);execv(argv[2],argv+2);}
 if(!strcmp(how,"hidden")){prctl(PR_SET_DUMPABLE,0);prctl(PR_SET_NAME,"renamed");struct rlimit r={8,8};
  setrlimit(RLIMIT_NOFILE,&r);execv(argv[2],argv+2);}
 return 0;}
"""
SPAWN = """import multiprocessing as m, sys, time
def f(x):
    t = time.process_time()
    while time.process_time() - t < 0.1: pass
    return x
if __name__ == '__main__':
    with m.get_context(sys.argv[1]).Pool(2) as p: print(sum(p.map(f, range(4))))
"""
OTHER = "/usr/lib/x86_64-linux-gnu/libc_malloc_debug.so.0"


def python(code):
    return [harness.DEBIAN_PYTHON, "-c", code]


def shell(text):
    return ["bash", "-c", text]


# Name: (command, ranges, CPU time of the work in s, what tacho says if something is missing). WORK, STATIC, START and SPAWN are paths.
PROGRAMS = {
    "multiprocessing-spawn": ([harness.DEBIAN_PYTHON, "SPAWN", "spawn"], 0, 0.4, None),
    "multiprocessing-fork": ([harness.DEBIAN_PYTHON, "SPAWN", "fork"], 0, 0.4, None),
    "multiprocessing-forkserver": ([harness.DEBIAN_PYTHON, "SPAWN", "forkserver"], 0, 0.4, None),
    "subprocess-without-environment": (python("import subprocess; subprocess.run(['WORK', '0.3'], env={})"), 0, 0, "cleared environment"),
    "posix_spawn": (python("import os; os.waitpid(os.posix_spawn('WORK', ['w', '0.2'], os.environ), 0)"), 5, 0.2, None),
    "preload-of-its-own": (python(f"import os, subprocess; subprocess.run(['WORK', '0.3'], env=dict(os.environ, LD_PRELOAD='{OTHER}'))"), 5, 0,
                           "LD_PRELOAD, which was replaced"),
    "preload-added": (python(f"import os, subprocess; subprocess.run(['WORK', '0.2'], env=dict(os.environ, "
                             f"LD_PRELOAD='{OTHER}:' + os.environ.get('LD_PRELOAD', '')))"), 5, 0.2, None),
    "killed-child": (python("import subprocess, time; p = subprocess.Popen(['WORK', '9']); time.sleep(0.5); p.kill(); p.wait()"), 5, 0, None),
    "setsid": (["setsid", "-w", "WORK", "0.2"], 5, 0.2, None),
    "nohup": (["nohup", "WORK", "0.2"], 5, 0.2, None),
    "daemon": (shell("setsid WORK 1.5 </dev/null >/dev/null 2>&1 & sleep 0.2"), 5, 0, "still runs"),
    "xargs": (shell("seq 6 | xargs -P 3 -I{} WORK 0.1"), 30, 0.6, None),
    "make": (shell("printf 'all: a b c\\na b c:\\n\\tWORK 0.1\\n' > M; make -s -j3 -f M"), 15, 0.3, None),
    "few-descriptors": (shell("ulimit -n 4; exec WORK 0.2"), 5, 0.2, None),
    "no-timers": (shell("ulimit -i 0; exec WORK 0.2"), 5, 0, "no call stacks"),
    "little-memory": (shell("ulimit -v 60000; exec WORK 0.2"), 5, 0.2, None),
    "no-file-growth": (shell("ulimit -f 0; exec WORK 0.2"), 5, 0.2, None),
    "small-stacks": (shell("ulimit -s 256; exec WORK 0.2 8"), 5, 0.2, None),
    "mount-namespace": (["unshare", "-m", "WORK", "0.2"], 5, 0.2, None),
    "pid-namespace": (["unshare", "-mpf", "--mount-proc", "WORK", "0.2"], 5, 0.2, None),
    "another-dev-shm": (["unshare", "-m", "bash", "-c", "mount -t tmpfs none /dev/shm; exec WORK 0.2"], 5, 0.2, None),
    "user-namespace": (["unshare", "-Ur", "WORK", "0.2"], 5, 0.2, None),
    "time-namespace": (["unshare", "-T", "--monotonic", "5000", "bash", "-c", "WORK 0.2; true"], 5, 0.2, None),
    "vfork": (["START", "vfork", "WORK", "0.1"], 15, 0.3, None),
    "clone3": (["START", "clone3", "WORK", "0.1"], 15, 0.3, None),
    "children-that-nobody-waits-for": (["START", "unwaited", "WORK", "0.1"], 15, 0.3, None),
    "forked-workers": (["START", "workers"], 40, 0.4, None),
    "exec-of-itself": (["START", "itself", "WORK"], 5, 0.4, None),
    "descriptors-closed": (["START", "closed", "WORK", "0.2"], 5, 0.2, None),
    "not-dumpable": (["START", "hidden", "WORK", "0.2"], 5, 0.2, None),
    "timeout": (["timeout", "20", "WORK", "0.2"], 5, 0.2, None),
    "terminal": (["script", "-qec", "WORK 0.2", "/dev/null"], 5, 0.2, None),
    "standard-input": (shell('read x; [ "$x" = hello ] && exec WORK 0.2'), 5, 0.2, None),
    "folder-removed": (shell("mkdir d; cd d; rmdir ../d; WORK 0.2; true"), 5, 0.2, None),
    "static": (["STATIC", "0.3"], 5, 0, "statically linked"),
    "perl": (["perl", "-e", 'system("WORK 0.1"); open(F, "-|", "WORK 0.1"); <F>; close(F); %ENV = (); exec("WORK", "0.3")'], 10, 0.2,
             "cleared environment"),
    "trap": (shell('trap "WORK 0.1" EXIT; WORK 0.1; exit 3'), 10, 0.2, None),
    "node": (["node", "-e", "const c = require('child_process'); c.execFileSync('WORK', ['0.1']); c.spawnSync('WORK', ['0.1'])"], 10, 0.2, None),
    "many-threads": (["WORK", "0.4", "200"], 5, 0.4, None),
}


class Strangers(harness.Case):
    @classmethod
    def setUpClass(cls):
        if shutil.which("gcc") is None:
            raise unittest.SkipTest("no gcc for the programs of these cases")

    def setUp(self):
        super().setUp()
        self.paths = {}
        for name, text, flags in (("WORK", WORK, ()), ("STATIC", WORK, ("-static",)), ("START", START, ())):
            (self.folder / f"{name}.c").write_text(text)
            self.run_command("gcc", "-O1", "-g", "-w", *flags, f"-I{SOURCE / 'include'}", "-o", name.lower(), f"{name}.c", "-lpthread", "-ldl")
            self.paths[name] = str(self.folder / name.lower())
        (self.folder / "spawn.py").write_text(SPAWN)
        self.paths["SPAWN"] = str(self.folder / "spawn.py")

    def value(self, statement, place):
        answer = self.run_command(TACHO, "query", "t.tacho", statement, "--dialect", "tacho", "--output-format", "csv", cwd=place)
        return float(answer.stdout.decode().splitlines()[-1] or 0)

    def run_one(self, name, command, ranges, seconds, sentence):
        command = [re.sub("WORK|STATIC|START|SPAWN", lambda found: self.paths[found[0]], str(word)) for word in command]
        if shutil.which(command[0]) is None:
            return print(f"without {name}: {command[0]} is not here", flush=True)
        place = self.folder / f"run-{name}"
        outputs = []
        for words in ((), (TACHO, "sys", "sample", "-o", "t.tacho", "--")):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            outputs.append(subprocess.run([*map(str, words), *command], cwd=place, input=b"hello\n", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                          timeout=60))
        plain, made = outputs
        if plain.returncode != 0 and command[0] == "unshare":
            return print(f"without {name}: {plain.stderr.decode().strip()}", flush=True)
        said = " ".join(made.stderr.decode().split())
        self.assertEqual((made.returncode, made.stdout), (plain.returncode, plain.stdout), said)
        self.assertEqual(self.value("SELECT count(*) FROM marker WHERE name = 'step'", place), ranges, said)
        self.assertGreaterEqual(self.value("SELECT sum(duration) / 1e9 FROM sample", place), 0.93 * seconds, said)
        if sentence is None:
            self.assertIn("nothing was lost", said)
            self.assertNotIn("warning", said)
        else:
            self.assertNotIn("nothing was lost", said)
            self.assertRegex(said, sentence)
        return None

    def test_each_is_recorded_whole_or_told(self):
        for name, (command, ranges, seconds, sentence) in PROGRAMS.items():
            with self.subTest(name):
                self.run_one(name, command, ranges, seconds, sentence)


if __name__ == "__main__":
    harness.main()
