"""Runs that count: the same input in every run, filters and regions of counters, and sentences that blame nobody falsely."""
import csv
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402, the folder of end-to-end tests is no package
from harness import BUILD, SOURCE, TACHO  # noqa: E402

# argv: warm-up pairs of big and small, pairs between resume and pause; two small ones come behind. Ends with code argv[3].
TWO = r"""
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <tacho/tacho.h>
int main(int argc, char** argv) {
  int warm = argc > 1 ? atoi(argv[1]) : 4, pairs = argc > 2 ? atoi(argv[2]) : 3, code = argc > 3 ? atoi(argv[3]) : 0;
  cl_platform_id platform;
  cl_device_id device;
  clGetPlatformIDs(1, &platform, NULL);
  clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
  const char* source = "__kernel void big(__global int* a) { int v = a[get_global_id(0)];"
                       "  for (int i = 0; i < 200; i++) v = v * 3 + 1; a[get_global_id(0)] = v; }"
                       "__kernel void small(__global int* a) { a[get_global_id(0)] += 1; }";
  cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
  clBuildProgram(program, 1, &device, "", NULL, NULL);
  cl_kernel big = clCreateKernel(program, "big", NULL), small = clCreateKernel(program, "small", NULL);
  static int data[64];
  size_t size = 64;
  cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof data, data, NULL);
  clSetKernelArg(big, 0, sizeof memory, &memory);
  clSetKernelArg(small, 0, sizeof memory, &memory);
  for (int i = 0; i < warm + pairs; i++) {
    if (i == warm) tacho_resume();
    clEnqueueNDRangeKernel(queue, big, 1, NULL, &size, NULL, 0, NULL, NULL);
    clEnqueueNDRangeKernel(queue, small, 1, NULL, &size, NULL, 0, NULL, NULL);
    clFinish(queue);
  }
  if (pairs > 0) tacho_pause();
  for (int i = 0; i < 2; i++) clEnqueueNDRangeKernel(queue, small, 1, NULL, &size, NULL, 0, NULL, NULL);
  clFinish(queue);
  return code;
}
"""
ROCPROFV3 = BUILD / "personalities" / "rocprofv3"


class Counting(harness.Case):
    @classmethod
    def setUpClass(cls):
        if not (BUILD / "lib" / "libtacho-oclgrind.so").exists():
            raise harness.unittest.SkipTest("this build has no virtual GPU")

    def setUp(self):
        super().setUp()
        (self.folder / "two.c").write_text(TWO)
        self.two = self.folder / "two"
        subprocess.run(["gcc", "-O1", "-I", SOURCE / "include", "-o", self.two, self.folder / "two.c", "-lOpenCL", "-ldl"], check=True)

    def script(self, text):
        path = self.folder / "script.sh"
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)
        return path

    def rocprofv3(self, *words, command=None, code=0, **more):
        made = self.run_command(ROCPROFV3, *words, "--", *(command or (self.two, 4, 3)), code=code, **more)
        return " ".join(made.stderr.decode().split())

    def profile(self, *words, command=None, code=0, **more):
        made = self.run_command(TACHO, "profile", "-q", "--overwrite", "--device", "virtual", "-n", "p", "-b", "2", "--no-roof", *words, "--",
                                *(command or (self.two, 4, 3)), code=code, **more)
        return " ".join(made.stderr.decode().split())

    def rows(self, name):
        path = self.folder / name
        if not path.exists():
            return []
        with open(path, newline="") as file:
            return list(csv.DictReader(file))

    def counted(self, name):
        return [int(row["Dispatch_Id"]) for row in self.rows(f"{name}_counter_collection.csv")]

    def measured(self):
        [file] = (self.folder / "workloads" / "p" / "virtual").glob("pmc_perf_0.csv")
        return len(self.rows(file))


class Filters(Counting):
    # What is asked for -> the dispatches that are counted, of 4 pairs of warm-up, 3 pairs, and 2 small ones.
    CASES = {
        (): list(range(1, 17)),
        ("--kernel-include-regex", "small"): [2, 4, 6, 8, 10, 12, 14, 15, 16],
        ("--kernel-exclude-regex", "small"): [1, 3, 5, 7, 9, 11, 13],
        ("--kernel-iteration-range", "[2-3]"): [3, 4, 5, 6],
        ("--kernel-include-regex", "big", "--kernel-iteration-range", "2"): [3],
        ("--kernel-include-regex", "nothing"): [],
    }

    def test_filters_of_counters_leave_the_kernel_trace_whole(self):
        for number, (options, wanted) in enumerate(self.CASES.items()):
            with self.subTest(options=options):
                said = self.rocprofv3("--kernel-trace", "--stats", "--pmc", "V_INST", *options, "-o", f"f{number}")
                self.assertEqual(self.counted(f"f{number}"), wanted)
                self.assertEqual(len(self.rows(f"f{number}_kernel_trace.csv")), 16)
                calls = {row["Name"]: int(row["Calls"]) for row in self.rows(f"f{number}_kernel_stats.csv")}
                self.assertEqual(calls, {"big": 7, "small": 9})
                self.assertEqual(said, "" if wanted else "tacho: no dispatch passed --kernel-include-regex nothing, so there are no counters; "
                                 "the program launched big, small")

    def test_without_a_trace_a_filter_that_matches_nothing_says_so(self):
        said = self.rocprofv3("--pmc", "V_INST", "--kernel-include-regex", "nothing", "-o", "n")
        self.assertIn("the program launched big, small", said)
        self.assertEqual(list(self.folder.glob("n_*")), [])

    def test_no_roofs_where_nothing_was_measured(self):
        began = time.monotonic()
        made = self.run_command(TACHO, "profile", "--device", "cpu", "-n", "p", "-k", "nothing", "--", self.two)
        self.assertIn("-k nothing: no kernel of that name was launched", " ".join(made.stderr.decode().split()))
        self.assertEqual(list((self.folder / "workloads").rglob("roofline.csv")), [])
        self.assertLess(time.monotonic() - began, 60)


class Regions(Counting):
    CASES = {
        ("--selected-regions",): list(range(9, 15)),
        ("--selected-regions", "--kernel-include-regex", "big", "--kernel-iteration-range", "[1-2]"): [9, 11],
        ("--selected-regions", "--kernel-exclude-regex", "big"): [10, 12, 14],
    }

    def test_regions_choose_what_is_counted(self):
        for number, (options, wanted) in enumerate(self.CASES.items()):
            with self.subTest(options=options):
                self.assertEqual(self.rocprofv3("--pmc", "V_INST", *options, "-o", f"r{number}"), "")
                self.assertEqual(self.counted(f"r{number}"), wanted)

    def test_regions_that_never_come_or_are_empty(self):
        said = self.rocprofv3("--pmc", "V_INST", "--selected-regions", "-o", "n", command=(self.two, 2, 0))
        self.assertIn("recording never began: the program called no roctxProfilerResume()", said)

    def test_periods_are_refused_before_the_start(self):
        said = self.rocprofv3("--pmc", "V_INST", "-P", "1:1:1", "-o", "n", command=("touch", self.folder / "ran"), code=125)
        self.assertIn("--collection-period with --pmc", said)
        self.assertFalse((self.folder / "ran").exists())

    def test_pauses_of_the_program_are_no_different_kernels(self):
        self.assertEqual(self.profile(), "")
        self.assertEqual(self.measured(), 16)
        self.assertEqual(self.rocprofv3("--pmc", "V_INST", "-o", "a"), "")


class Input(Counting):
    def test_a_pipe_is_read_again(self):
        script = self.script(f"read n; exec {self.two} $n 0")
        for text in (b"5\n", b"5\nnobody reads this\n", b"5\n" + b"x" * 300_000):
            with self.subTest(size=len(text)):
                self.assertEqual(self.profile(command=[script], input=text), "")
                self.assertEqual(self.measured(), 12)
        self.assertEqual(self.rocprofv3("--pmc", "V_INST", "-o", "z", command=[script], input=b"1\n"), "")
        self.assertEqual(self.counted("z"), [1, 2, 3, 4])

    def test_all_of_it_and_its_end(self):
        script = self.script(f"n=$(wc -c); exec {self.two} $((n / 1000000)) 0")
        self.assertEqual(self.profile(command=[script], input=b"y" * 3_000_000), "")
        self.assertEqual(self.measured(), 8)

    def test_what_no_run_reads_stays_for_others(self):
        loop = f"printf '1\\n2\\n3\\n' | while read n; do {TACHO} profile -q --device virtual -n p$n -b 2 --no-roof -- {self.two} $n 0; echo $n; done"
        self.assertEqual(self.run_command("bash", "-c", loop).stdout.decode().split(), ["1", "2", "3"])
        rest = f"printf '1\\nrest\\n' | ({TACHO} profile -q --device virtual -n r -b 2 --no-roof -- {self.script(f'read n; exec {self.two} $n 0')}; cat)"
        self.assertEqual(self.run_command("bash", "-c", rest).stdout.decode(), "rest\n")

    def test_a_socket(self):
        ours, theirs = socket.socketpair()
        ours.sendall(b"2\n")
        with ours, theirs:
            self.assertEqual(self.profile(command=[self.script(f"read n; exec {self.two} $n 0")], stdin=theirs), "")
        self.assertEqual(self.measured(), 6)

    def test_more_than_can_be_kept_is_refused(self):
        script = self.script(f"wc -c > bytes; exec {self.two} 1 0")
        with subprocess.Popen(["head", "-c", str(65 << 20), "/dev/zero"], stdout=subprocess.PIPE) as source:
            said = self.profile(command=[script], stdin=source.stdout, code=125)
        self.assertIn("standard input is a pipe that gave more than 64 MiB, which only the first run of the program could read: give it as a file",
                      said)
        self.assertEqual((self.folder / "bytes").read_text().strip(), str(65 << 20))

    def test_closed_and_empty(self):
        self.assertEqual(self.profile(stdin=subprocess.DEVNULL), "")
        self.assertEqual(self.run_command("bash", "-c", f"{TACHO} profile -q --device virtual -n c -b 2 --no-roof -- {self.two} 1 0 0<&-").stderr, b"")

    def test_jobs_of_an_input_file(self):
        (self.folder / "i.yaml").write_text("jobs:\n  - kernel_trace: true\n    output_file: a\n  - kernel_trace: true\n    output_file: b\n")
        self.run_command(ROCPROFV3, "-i", "i.yaml", "--", self.script(f"read n; exec {self.two} $n 0"), input=b"2\n")
        self.assertEqual([len(self.rows(path.relative_to(self.folder))) for path in sorted(self.folder.rglob("*_kernel_trace.csv"))], [6, 6])


class Sentences(Counting):
    def test_an_error_of_its_own_is_told_once(self):
        script = self.script("echo no; exit 3")
        made = self.run_command(TACHO, "profile", "-q", "--device", "virtual", "-n", "e", "-b", "2", "--no-roof", "--", script, code=3)
        self.assertEqual(made.stdout, b"no\n")
        self.one_sentence(made, "code 3 before it asked for an OpenCL device", "nothing to count")

    def test_a_program_that_cannot_run_twice(self):
        script = self.script(f"mkdir {self.folder}/lock || exit 4\nexec {self.two} 1 0")
        said = self.profile(command=[script], code=4)
        self.assertIn("the first run of the program, which times its kernels, launched 4 kernels and ended with code 0; the second run, which "
                      "counts, ended with code 4", said)
        self.assertNotIn("launched different kernels", said)
        self.assertNotIn("ended before a kernel", said)

    # Each reader of messages, the program's code is 7.
    TOOLS = (
        (ROCPROFV3, "--kernel-trace", "-o", "@", "--"),
        (ROCPROFV3, "--pmc", "V_INST", "-o", "@", "--"),
        (TACHO, "profile", "--device", "virtual", "-n", "@", "-b", "2", "--no-roof", "--"),
        (BUILD / "personalities" / "rocprof-compute", "profile", "-n", "@", "-b", "2", "--no-roof", "--"),
    )

    def test_messages_that_nobody_reads(self):
        program = self.script(f"echo started; exec {self.two} 1 0 7")
        for number, words in enumerate(self.TOOLS):
            sizes = []
            for how in ("read", "full", "closed"):
                name = f"o{number}{how}"
                command = [str(word).replace("@", name) for word in words] + [str(program)]
                with self.subTest(how=how, command=words[:2]):
                    if how == "full":
                        with open("/dev/full", "wb") as full:
                            code = subprocess.run(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=full, timeout=120).returncode
                    elif how == "closed":
                        ours, theirs = os.pipe()
                        os.close(ours)
                        code = subprocess.run(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=theirs, timeout=120).returncode
                        os.close(theirs)
                    else:
                        code = self.run_command(*command, code=None).returncode
                    self.assertEqual(code, 7)
                    sizes.append(len([path for path in self.folder.rglob("*") if path.is_file() and name in str(path.relative_to(self.folder))]))
            self.assertGreater(sizes[0], 0)
            self.assertEqual(sizes, sizes[:1] * 3)
        self.assertEqual(list(self.folder.rglob(".tacho*")), [])

    def test_a_pipe_that_is_full_stops_nothing(self):
        ours, theirs = os.pipe()
        os.set_blocking(theirs, False)
        try:
            while True:
                os.write(theirs, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(theirs, True)
        made = subprocess.run([str(word).replace("@", "f") for word in self.TOOLS[2]] + [str(self.two), "1", "0", "7"], cwd=self.folder,
                              stdout=subprocess.DEVNULL, stderr=theirs, timeout=120)
        os.close(ours)
        os.close(theirs)
        self.assertEqual(made.returncode, 7)

    def test_a_killed_one_is_swept_by_the_next(self):
        process = subprocess.Popen([ROCPROFV3, "--pmc", "V_INST", "-o", "k", "--", self.script("echo $$; exec sleep 60")], cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        child = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        os.kill(child, signal.SIGKILL)
        self.assertNotEqual(list(self.folder.glob(".tacho-run-*")), [])
        self.rocprofv3("--pmc", "V_INST", "-o", "l")
        self.assertEqual(list(self.folder.glob(".tacho-*")), [])


if __name__ == "__main__":
    harness.main()
