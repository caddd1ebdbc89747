// Cost of markers inside a program: ns per push+pop pair and per mark through tacho.h, ROCTx and NVTX's table, with
// recording on, paused, and without a profiler. The program starts itself with libtacho.so preloaded and drains the
// pool meanwhile, as tacho does. Rounds of all cases are interleaved; printed are median and quartiles over the rounds.
//
//   marker_bench [pairs per round] [rounds]
#include <dlfcn.h>
#include <sched.h>
#include <sys/wait.h>
#include <tacho/tacho.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "tape/pool.h"

namespace {

struct Case {
  const char* name;
  std::function<void(long)> run;
  std::vector<double> ns = {};
};

// NVTX's table, filled by InitializeInjectionNvtx2 as in a program that uses NVTX.
using Function = void (*)();
Function g_core[16], g_core2[16];
Function* g_core_slots[17];
Function* g_core2_slots[17];
int nvtx_table(int module, Function*** table, unsigned* size) {
  for (int i = 1; i < 16; ++i) g_core_slots[i] = &g_core[i], g_core2_slots[i] = &g_core2[i];
  *table = module == 1 ? g_core_slots : g_core2_slots;
  *size = 16;
  return 1;
}
const struct {
  size_t size = 16;
  int (*get)(int, Function***, unsigned*) = nvtx_table;
} g_callbacks;
const void* nvtx_export(uint32_t id) {
  return id == 1 ? &g_callbacks : nullptr;
}

int measure(long pairs, int rounds) {
  using Push = int (*)(const char*);
  using Pop = int (*)();
  const auto roctx_push = reinterpret_cast<Push>(dlsym(RTLD_DEFAULT, "roctxRangePushA"));
  const auto roctx_pop = reinterpret_cast<Pop>(dlsym(RTLD_DEFAULT, "roctxRangePop"));
  const auto init =
      reinterpret_cast<int (*)(const void* (*)(uint32_t))>(dlsym(RTLD_DEFAULT, "InitializeInjectionNvtx2"));
  if (roctx_push == nullptr || init == nullptr || init(nvtx_export) == 0 || tacho_active() == 0) {
    std::fprintf(stderr, "marker_bench: libtacho.so did not attach\n");
    return 1;
  }
  const auto nvtx_push = reinterpret_cast<Push>(g_core[9]);
  const auto nvtx_pop = reinterpret_cast<Pop>(g_core[11]);
  tacho_attributes attributes = TACHO_ATTRIBUTES;
  attributes.domain = "bench";
  attributes.category = "category";
  attributes.payload_kind = TACHO_PAYLOAD_INTEGER;
  attributes.payload.integer = 1;
  const std::string long_text(1000, 'x');

  const auto pair = [](const char* text) {
    return [text](long count) {
      for (long i = 0; i < count; ++i) {
        tacho_range_push(text);
        tacho_range_pop();
      }
    };
  };
  std::vector<Case> cases = {
      {"two clock reads (floor)",
       [](long count) {
         uint64_t sum = 0;
         for (long i = 0; i < count; ++i) sum += tacho::host_ticks() ^ tacho::host_ticks();
         asm volatile("" : : "r"(sum));
       }},
      {"tacho.h push+pop, 12 bytes of text", pair("forward pass")},
      {"tacho.h push+pop, 1000 bytes of text", pair(long_text.c_str())},
      {"tacho.h push+pop, domain, category, payload",
       [&](long count) {
         for (long i = 0; i < count; ++i) {
           tacho_range_push_with("forward pass", &attributes);
           tacho_range_pop_from("bench");
         }
       }},
      {"tacho.h mark",
       [](long count) {
         for (long i = 0; i < count; ++i) tacho_mark("forward pass");
       }},
      {"tacho.h start+stop",
       [](long count) {
         for (long i = 0; i < count; ++i) tacho_range_stop(tacho_range_start("forward pass"));
       }},
      {"ROCTx push+pop",
       [&](long count) {
         for (long i = 0; i < count; ++i) roctx_push("forward pass"), roctx_pop();
       }},
      {"NVTX push+pop",
       [&](long count) {
         for (long i = 0; i < count; ++i) nvtx_push("forward pass"), nvtx_pop();
       }},
      {"tacho.h push+pop while paused",
       [&](long count) {
         tacho_pause();
         pair("forward pass")(count);
         tacho_resume();
       }},
      {"tacho.h push+pop without a profiler",
       [&](long count) {
         const tacho_functions* const kept = tacho_functions_;
         tacho_functions_ = nullptr;
         pair("forward pass")(count);
         tacho_functions_ = kept;
       }},
  };
  for (int round = 0; round < rounds; ++round)
    for (Case& one : cases) {
      const int64_t begin = tacho::raw_now();
      one.run(pairs);
      one.ns.push_back(static_cast<double>(tacho::raw_now() - begin) / static_cast<double>(pairs));
      usleep(20000);  // the pool is drained
    }
  std::printf("%-46s %8s %8s %8s   ns per operation, %ld operations a round, %d rounds\n", "", "25 %", "median", "75 %",
              pairs, rounds);
  for (Case& one : cases) {
    std::sort(one.ns.begin(), one.ns.end());
    const size_t n = one.ns.size();
    std::printf("%-46s %8.1f %8.1f %8.1f\n", one.name, one.ns[n / 4], one.ns[n / 2], one.ns[n * 3 / 4]);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const long pairs = argc > 1 ? std::atol(argv[1]) : 20000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 25;
  if (getenv("TACHO_MARKER_BENCH") != nullptr) {
    tacho::choose_host_clock();
    return measure(pairs, rounds);
  }
  const char* const build = getenv("TACHO_BUILD");
  char self[4096];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
  if (size <= 0) return 1;
  self[size] = '\0';
  std::string library =
      build != nullptr ? build
                       : std::string(self, static_cast<size_t>(size)).substr(0, std::string(self).rfind('/')) + "/..";
  library += "/lib/libtacho.so";
  auto pool = tacho::tape::Pool::create({.initial_bytes = 64 << 20, .max_bytes = 256 << 20});
  if (!pool) {
    std::fprintf(stderr, "marker_bench: %s\n", pool.error().message.c_str());
    return 1;
  }
  const pid_t child = fork();
  if (child == 0) {
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(0, &cpu);
    sched_setaffinity(0, sizeof cpu, &cpu);
    setenv("TACHO_MARKER_BENCH", "1", 1);
    setenv("TACHO_POOL", pool->path().c_str(), 1);
    setenv("LD_PRELOAD", library.c_str(), 1);
    execv(self, argv);
    _exit(127);
  }
  tacho::tape::Drainer drainer(*pool);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    drainer.pass([](const tacho::tape::Piece&) {}, false);
    usleep(2000);
  }
  uint64_t dropped = 0;
  for (auto& counter : pool->header().dropped) dropped += counter.load();
  if (dropped != 0)
    std::printf("%llu records found the pool full: the figures are too low\n",
                static_cast<unsigned long long>(dropped));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
