// Knows nothing of HIP when it starts. loader LIBRARY [exec|late]: loads the library and calls run_plugin(); `exec` starts itself
// again first, `late` gives the profiler time to think that nothing will come.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  if (argc > 2 && strcmp(argv[2], "exec") == 0) execl("/proc/self/exe", argv[0], argv[1], nullptr);
  if (argc > 2) usleep(300'000);
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const int failed = reinterpret_cast<int (*)()>(dlsym(library, "run_plugin"))();
  printf("failed %d\n", failed);
  return failed;
}
