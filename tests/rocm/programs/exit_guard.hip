// A library between a program and HIP: exit() destroys the thread-local objects of the thread that calls it, HIP's
// among them, and what HIP then does when that thread calls it is by chance. Here such a call ends the program with 70.
// guard_hold() takes the lock that each of these functions takes, as HIP calls some of a program's functions under one.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>

namespace {

std::mutex& the_lock() {
  static auto* const lock = new std::mutex;  // until the process ends
  return *lock;
}

thread_local bool t_gone = false;
struct Objects {
  bool used = false;
  ~Objects() { t_gone = true; }
};
thread_local Objects t_objects;

template <typename... A>
int call(const char* name, A... arguments) {
  if (t_gone) {
    fprintf(stderr, "%s by a thread whose objects are gone\n", name);
    _exit(70);
  }
  t_objects.used = true;
  const std::lock_guard<std::mutex> guard(the_lock());
  return reinterpret_cast<int (*)(A...)>(dlsym(RTLD_NEXT, name))(arguments...);
}

}  // namespace

extern "C" {
int hipEventQuery(void* event) {
  return call("hipEventQuery", event);
}
int hipEventElapsedTime(float* ms, void* from, void* to) {
  return call("hipEventElapsedTime", ms, from, to);
}
int hipEventDestroy(void* event) {
  return call("hipEventDestroy", event);
}
void guard_hold() {
  the_lock().lock();
}
}
