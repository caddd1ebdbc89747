/* Calls ROCTx like a program linked to it (argument "linked": symbols of whatever is in the process) or one
 * that opens the library (argument: its file name), and checks what the functions return. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHECK(condition)                                    \
  if (!(condition)) {                                       \
    fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
    return 1;                                               \
  }

int main(int argc, char** argv) {
  void* library = argc > 1 && strcmp(argv[1], "linked") != 0 ? dlopen(argv[1], RTLD_NOW) : RTLD_DEFAULT;
  CHECK(argc > 1 && (library != NULL || strcmp(argv[1], "linked") == 0));
  void (*mark)(const char*) = (void (*)(const char*))dlsym(library, "roctxMarkA");
  int (*push)(const char*) = (int (*)(const char*))dlsym(library, "roctxRangePushA");
  int (*pop)(void) = (int (*)(void))dlsym(library, "roctxRangePop");
  uint64_t (*start)(const char*) = (uint64_t(*)(const char*))dlsym(library, "roctxRangeStartA");
  void (*stop)(uint64_t) = (void (*)(uint64_t))dlsym(library, "roctxRangeStop");
  int (*pause_all)(uint64_t) = (int (*)(uint64_t))dlsym(library, "roctxProfilerPause");
  int (*resume_all)(uint64_t) = (int (*)(uint64_t))dlsym(library, "roctxProfilerResume");
  int (*thread_id)(uint64_t*) = (int (*)(uint64_t*))dlsym(library, "roctxGetThreadId");
  int (*name_thread)(const char*) = (int (*)(const char*))dlsym(library, "roctxNameOsThread");
  int (*name_device)(const char*, int) = (int (*)(const char*, int))dlsym(library, "roctxNameHipDevice");
  CHECK(mark && push && pop && start && stop && pause_all && resume_all && thread_id && name_thread && name_device);
  CHECK(pop() < 0);
  mark("a mark");
  CHECK(push("outer") == 0);
  CHECK(push("inner") == 1);
  CHECK(pop() == 1);
  const uint64_t first = start("one"), second = start("two");
  CHECK(first != 0 && second != 0 && first != second);
  stop(first);
  CHECK(pause_all(0) == 0);
  mark("while paused");
  CHECK(push("while paused") == 1);
  CHECK(pop() == 1);
  const uint64_t silent = start("while paused");
  CHECK(silent != 0 && silent != first && silent != second);
  CHECK(pop() == 0); /* pushed before the pause: its end is recorded */
  stop(second);
  stop(silent);
  CHECK(resume_all(0) == 0);
  mark("resumed");
  uint64_t tid = 0;
  CHECK(thread_id(&tid) == 0 && tid == (uint64_t)syscall(SYS_gettid));
  CHECK(name_thread("worker") == 0);
  CHECK(name_device("the gpu", 0) == 0);
  return 0;
}
