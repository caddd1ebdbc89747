/* Sets markers until SIGTERM, in rounds that markers' payloads or texts number, through ROCTx's library (argument "roctx FILE", which it
 * opens) or through NVTX, whose tables this file imitates as the public header of version 3 lays them out; with -DREAL_NVTX through that
 * header. NVTX has been initialised without a tool before "ready". At the end it says how many rounds there were, and whether NVTX's
 * tables are as they were. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef REAL_NVTX
#include <nvtx3/nvToolsExt.h>
typedef nvtxGlobals_t Tables;
#define tables nvtxGlobals_v3
#else
/* NVTX 3's tables, as far as this program calls them. */
typedef struct {
  uint16_t version, size;
  uint32_t category;
  int32_t colorType;
  uint32_t color;
  int32_t payloadType, reserved0;
  union {
    uint64_t ullValue;
  } payload;
  int32_t messageType, pad;
  union {
    const char* ascii;
    const void* registered;
  } message;
} nvtxEventAttributes_t;
typedef void (*Function)(void);
typedef struct {
  volatile unsigned state;
  size_t callbacks_size;
  Function callbacks;
  size_t versions_size;
  uint32_t version, zero;
  Function versions;
  Function functions[64];
  Function* core[17];
} Tables;
static void nothing(void) {}
#define ADDRESS(n) (Function*)&tables.functions[n]
static Tables tables = {
    2,
    16,
    nothing,
    24,
    3,
    0,
    nothing,
    {0},
    {0, ADDRESS(0), ADDRESS(1), ADDRESS(2), ADDRESS(3), ADDRESS(4), ADDRESS(5), ADDRESS(6), ADDRESS(7), ADDRESS(8),
     ADDRESS(9), ADDRESS(10), ADDRESS(11), ADDRESS(12), ADDRESS(13), ADDRESS(14), 0}};
enum {
  NVTX_VERSION = 3,
  NVTX_EVENT_ATTRIB_STRUCT_SIZE = sizeof(nvtxEventAttributes_t),
  NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 = 1
};
enum { NVTX_MESSAGE_TYPE_ASCII = 1, NVTX_MESSAGE_TYPE_REGISTERED = 3 };
typedef const void *nvtxDomainHandle_t, *nvtxStringHandle_t;
#define CORE(n) __atomic_load_n(&tables.functions[(n)-1], __ATOMIC_ACQUIRE)
#define CORE2(n) __atomic_load_n(&tables.functions[15 + 8 + 14 + 6 + (n)-1], __ATOMIC_ACQUIRE)
#define CALL(type, function, parameters, arguments, otherwise) \
  Function f = function;                                       \
  return f != 0 ? ((type(*) parameters)f)arguments : otherwise
static void nvtxMarkEx(const nvtxEventAttributes_t* e) {
  Function f = CORE(1);
  if (f != 0) ((void (*)(const nvtxEventAttributes_t*))f)(e);
}
static uint64_t nvtxRangeStartA(const char* t) {
  CALL(uint64_t, CORE(5), (const char*), (t), 0);
}
static void nvtxRangeEnd(uint64_t id) {
  Function f = CORE(7);
  if (f != 0) ((void (*)(uint64_t))f)(id);
}
static int nvtxRangePushA(const char* t) {
  CALL(int, CORE(9), (const char*), (t), -2);
}
static int nvtxRangePop(void) {
  CALL(int, CORE(11), (void), (), -2);
}
static void nvtxDomainMarkEx(nvtxDomainHandle_t d, const nvtxEventAttributes_t* e) {
  Function f = CORE2(1);
  if (f != 0) ((void (*)(nvtxDomainHandle_t, const nvtxEventAttributes_t*))f)(d, e);
}
static nvtxStringHandle_t nvtxDomainRegisterStringA(nvtxDomainHandle_t d, const char* t) {
  CALL(nvtxStringHandle_t, CORE2(10), (nvtxDomainHandle_t, const char*), (d, t), 0);
}
static nvtxDomainHandle_t nvtxDomainCreateA(const char* t) {
  CALL(nvtxDomainHandle_t, CORE2(12), (const char*), (t), 0);
}
#endif

static volatile sig_atomic_t stop;
static void on_term(int number) {
  (void)number;
  stop = 1;
}

static nvtxEventAttributes_t attributes(uint64_t number) {
  nvtxEventAttributes_t event;
  memset(&event, 0, sizeof event);
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  event.payload.ullValue = number;
  return event;
}

static int nvtx(void) {
  const nvtxDomainHandle_t old_domain = nvtxDomainCreateA("from before");
  const nvtxStringHandle_t old_text = nvtxDomainRegisterStringA(old_domain, "registered before");
  nvtxRangePushA("never recorded");
  nvtxRangePop();
  Tables before;
  memcpy(&before, &tables, sizeof before);
  puts("ready");
  fflush(stdout);
  uint64_t rounds = 0;
  nvtxDomainHandle_t kept_domain = 0;
  nvtxStringHandle_t kept_text = 0;
  for (; !stop; ++rounds) {
    nvtxEventAttributes_t event = attributes(rounds);
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = "numbered";
    nvtxMarkEx(&event);
    nvtxRangePushA("outer");
    nvtxRangePushA("inner");
    nvtxRangePop();
    nvtxRangePop();
    const uint64_t range = nvtxRangeStartA("range");
    nvtxRangeEnd(range);
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = (void*)old_text;
    nvtxDomainMarkEx(old_domain, &event);
    /* Made while tacho is there, and kept while it is away and when it comes again. */
    if (kept_text == 0) {
      kept_domain = nvtxDomainCreateA("made late");
      kept_text = nvtxDomainRegisterStringA(kept_domain, "registered late");
    }
    event.message.registered = (void*)kept_text;
    nvtxDomainMarkEx(kept_domain, &event);
    usleep(1000);
  }
  printf("%llu rounds, tables %s\n", (unsigned long long)rounds,
         memcmp(&before, &tables, sizeof before) == 0 ? "as before" : "CHANGED");
  return 0;
}

static int roctx(const char* file) {
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == 0) return fprintf(stderr, "%s\n", dlerror()), 1;
  /* As a program keeps them: words in its own data. */
  static void (*mark)(const char*);
  static int (*push)(const char*);
  static int (*pop)(void);
  static uint64_t (*start)(const char*);
  static void (*end)(uint64_t);
  *(void**)&mark = dlsym(library, "roctxMarkA");
  *(void**)&push = dlsym(library, "roctxRangePushA");
  *(void**)&pop = dlsym(library, "roctxRangePop");
  *(void**)&start = dlsym(library, "roctxRangeStartA");
  *(void**)&end = dlsym(library, "roctxRangeStop");
  void* const before[] = {*(void**)&mark, *(void**)&push, *(void**)&pop, *(void**)&start, *(void**)&end};
  push("from before");
  puts("ready");
  fflush(stdout);
  uint64_t rounds = 0, last = 0;
  int right = 1;
  for (; !stop; ++rounds) {
    char text[32];
    snprintf(text, sizeof text, "mark %llu", (unsigned long long)rounds);
    mark(text);
    right = right && push("outer") == 1 && push("inner") == 2 && pop() == 2 && pop() == 1;
    const uint64_t range = start("range");
    right = right && range == last + 1;
    last = range;
    end(range);
    usleep(1000);
  }
  void* const after[] = {*(void**)&mark, *(void**)&push, *(void**)&pop, *(void**)&start, *(void**)&end};
  printf("%llu rounds, levels and numbers %s, words %s\n", (unsigned long long)rounds, right ? "right" : "WRONG",
         memcmp(before, after, sizeof before) == 0 ? "as before" : "CHANGED");
  return pop() == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  signal(SIGTERM, on_term);
  return argc > 2 && strcmp(argv[1], "roctx") == 0 ? roctx(argv[2]) : nvtx();
}
