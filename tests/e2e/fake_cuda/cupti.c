/* A stand-in for CUPTI 13.0 (13.3 where WITH_SUBSCRIBERS says that each client has a subscriber of its own), so that the way of CUDA records from a program to a trace is tested where there is no GPU.
 * It takes the calls that tacho makes and writes records as CUPTI does: into the client's buffers, kernels marked as not
 * complete until fake_complete(). What real CUPTI does beyond that is tested on real GPUs (tests/device). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define INCOMPLETE 0x80000000u

typedef void (*requested_fn)(uint8_t**, size_t*, size_t*);
typedef void (*completed_fn)(void*, uint32_t, uint8_t*, size_t, size_t);

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static requested_fn g_requested;
static completed_fn g_completed;
static uint64_t (*g_timestamp)(void);
static uint64_t g_enabled;
static int g_subscribed;
static size_t g_dropped;
static uint32_t g_correlation;
/* A buffer a thread, as real CUPTI has by default; those of threads that have ended stay until they are flushed. */
struct buffer {
  uint8_t* memory;
  size_t capacity, used;
};
#define MOST_THREADS 4096
static struct buffer g_buffers[MOST_THREADS];
static size_t g_buffer_count;
static __thread struct buffer* t_buffer;
static struct {
  uint8_t* record;
  uint64_t until; /* it does not end before */
} g_waiting[1 << 16];
static size_t g_waiting_count;

static size_t size_of(uint32_t kind) {
  switch (kind & ~INCOMPLETE) {
    case 4:
    case 5:
      return 40;
    case 8:
      return 184;
    case 9:
      return 32;
    case 10:
      return 216;
    case 17:
      return 56;
    default:
      return 0;
  }
}
static uint64_t now(void) {
  struct timespec t;
  if (g_timestamp) return g_timestamp();
  clock_gettime(CLOCK_REALTIME, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

EXPORT int cuptiGetVersion(uint32_t* version) {
#ifdef WITH_SUBSCRIBERS
  *version = 130300;
#else
  *version = 130001;
#endif
  return 0;
}
#ifdef WITH_SUBSCRIBERS
/* The first client of the functions with _v2 has the buffers above; to others each completed kernel goes in a buffer of
 * its own. Both kinds of clients do not go together. */
enum { NOT_COMPATIBLE = 24, MOST_CLIENTS = 8 };
typedef void (*own_requested_fn)(uint8_t**, size_t*, size_t*, const void*);
typedef void (*own_completed_fn)(uint8_t*, size_t, size_t, const void*);
static struct client {
  int used;
  own_requested_fn requested;
  own_completed_fn completed;
  uint64_t enabled;
} g_clients[MOST_CLIENTS];
static int has_clients(void) {
  for (int i = 0; i < MOST_CLIENTS; ++i)
    if (g_clients[i].used) return 1;
  return 0;
}
#define OLD_FUNCTION \
  if (has_clients()) return NOT_COMPATIBLE
#else
#define OLD_FUNCTION (void)0
#endif
EXPORT int cuptiGetResultString(int result, const char** text) {
  *text = result == 39 ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : "CUPTI_ERROR_FAKE";
  return 0;
}
/* Callbacks of calls: cudaLaunchKernel's only. */
typedef void (*callback_fn)(void*, int, uint32_t, const void*);
static callback_fn g_callback;
static int g_tells_launches, g_tells_graphs, g_tells_instantiations;
/* Finalising: a graph that was launched while CUPTI was there is broken then. (Driver 580 breaks only those that were
 * launched while kinds were on and again while they were off.) It waits for the device, and the program with it. */
static uint64_t g_runs_until;
/* As CUPTI 13.0, with FAKE_CUPTI_STOPS_COUNTING: it no longer counts and records the calls of a program whose graphs it
 * has seen and in which it was left idle. */
static int g_stuck;
static __thread uint32_t t_last_number;
static unsigned g_held_up; /* ms in which finalising kept the program's calls waiting */
static int g_here, g_graph_bound, g_graph_broken, g_finalized, g_wrong;
static __thread int t_at_exit; /* of a call, in its callback */
static int g_graph_followed;   /* 1: its kernels are recorded; 2: they were, and never will be again (CUPTI 13.0) */
static void tell(int site, uint32_t correlation) {
  /* cudaLaunchKernel_v7000_params */
  static const struct {
    const void* func;
    uint32_t grid[3], block[3];
    void** args;
    size_t shared;
    void* stream;
  } given = {(const void*)0x1230, {40, 2, 1}, {256, 1, 1}, NULL, 512, (void*)0x77};
  struct {
    int site;
    const char* function;
    const void* parameters;
    void* result;
    const char* symbol;
    void* context;
    uint32_t context_id;
    uint64_t* data;
    uint32_t correlation;
  } call = {site, "cudaLaunchKernel_v7000", &given, NULL, NULL, NULL, 0, NULL, correlation};
  const callback_fn callback = g_callback;
  t_at_exit = site;
  if (callback && g_tells_launches) callback(NULL, 2, 211, &call);
  t_at_exit = 0;
}
EXPORT int cuptiSubscribe(void** subscriber, void* callback, void* user) {
  (void)user;
  if (getenv("FAKE_CUPTI_REFUSES")) return atoi(getenv("FAKE_CUPTI_REFUSES"));
#ifdef WITH_SUBSCRIBERS
  if (has_clients()) return 39;
#endif
  if (g_subscribed) return 39;
  if (getenv("FAKE_CUPTI_CALLS_BEFORE") && !g_here) g_correlation = (uint32_t)atoi(getenv("FAKE_CUPTI_CALLS_BEFORE"));
  g_callback = (callback_fn)callback;
  g_subscribed = g_here = 1;
  *subscriber = &g_subscribed;
  return 0;
}
#ifdef WITH_SUBSCRIBE_V2 /* CUPTI 13: who subscribes says its name, and hears whose place is taken */
struct subscriber_params {
  size_t size;
  const char* name;
  char* old_name;
  size_t old_size;
  uint8_t several;
  uint8_t padding[7];
};
EXPORT int cuptiSubscribe_v2(void** subscriber, void* callback, void* user, struct subscriber_params* params) {
  const char* const other = getenv("FAKE_CUPTI_OTHER");
  if (other && params->old_name && params->old_size) {
    strncpy(params->old_name, other, params->old_size - 1);
    params->old_name[params->old_size - 1] = '\0';
    return 39;
  }
#ifdef WITH_SUBSCRIBERS
  if (params->size == sizeof *params && params->several) {
    if (g_subscribed) return 39;
    for (int i = 0; i < MOST_CLIENTS; ++i) {
      if (g_clients[i].used) continue;
      g_clients[i].used = 1;
      if (i == 0) g_callback = (callback_fn)callback;
      *subscriber = &g_clients[i];
      return 0;
    }
    return 39;
  }
#endif
  if (strcmp(params->name, "tacho") != 0) return 1;
  return cuptiSubscribe(subscriber, callback, user);
}
#endif
#ifdef WITH_SUBSCRIBERS
EXPORT int cuptiActivityRegisterCallbacks_v2(struct client* client, own_requested_fn requested,
                                             own_completed_fn completed) {
  client->requested = requested;
  client->completed = completed;
  return 0;
}
EXPORT int cuptiActivityEnable_v2(struct client* client, int kind, void* config) {
  if (config != NULL) return 1;
  client->enabled |= 1ull << kind;
  if (client == g_clients) g_enabled = client->enabled;
  return 0;
}
EXPORT int cuptiActivityDisable_v2(struct client* client, int kind, void* config) {
  if (config != NULL) return 1;
  client->enabled &= ~(1ull << kind);
  if (client == g_clients) g_enabled = client->enabled;
  return 0;
}
EXPORT int cuptiActivitySetAttribute_v2(struct client* client, int attribute, size_t* size, void* value) {
  (void)attribute;
  (void)size;
  (void)value;
  return client->used ? 0 : 1;
}
EXPORT int cuptiGetTimestamp_v2(struct client* client, uint64_t* time) {
  *time = now();
  return client->used ? 0 : 1;
}
EXPORT int cuptiActivityEnableRuntimeApi_v2(struct client* client, uint32_t id, uint8_t on) {
  if (id == 211) client->enabled = on ? client->enabled | 1u << 5 : client->enabled & ~(1ull << 5);
  if (client == g_clients) g_enabled = client->enabled;
  return 0;
}
EXPORT int cuptiActivityEnableDriverApi_v2(struct client* client, uint32_t id, uint8_t on) {
  (void)id;
  (void)on;
  return client->used ? 0 : 1;
}
static int next_record(uint8_t* buffer, size_t valid, void** record);
EXPORT int cuptiActivityGetNextRecord_v2(struct client* client, uint8_t* buffer, size_t valid, void** record) {
  return client->used ? next_record(buffer, valid, record) : 1;
}
#endif
/* CUPTI counts the calls that it tells of or records. */
static uint32_t next_number(int told) {
  pthread_mutex_lock(&g_lock);
  const uint32_t correlation = told || g_enabled != 0 ? ++g_correlation : 0;
  pthread_mutex_unlock(&g_lock);
  return correlation;
}
/* A call of the driver's, at its begin and at its end. */
static void tell_driver_call(const char* function, uint32_t id, int site, uint32_t correlation) {
  struct {
    int site;
    const char* function;
    const void* parameters;
    void* result;
    const char* symbol;
    void* context;
    uint32_t context_id;
    uint64_t* data;
    uint32_t correlation;
  } call = {site, function, NULL, NULL, NULL, NULL, 0, NULL, correlation};
  const callback_fn callback = g_callback;
  t_at_exit = site;
  if (callback) callback(NULL, 1, id, &call);
  t_at_exit = 0;
}
static int g_tells_version;
static void record_driver_call(uint32_t id, uint32_t correlation);
static void record_without_times(void);
static void tell_version_asked(void) {
  const uint32_t correlation = next_number(1);
  for (int site = 0; site < 2; ++site)
    if (g_tells_version) tell_driver_call("cuDriverGetVersion", 15, site, correlation);
  record_driver_call(15, correlation);
}
/* Calls of cuDriverGetVersion are seen while anyone wants to hear of them. */
static void follow_version(void) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void (**asked)(void) = driver != NULL ? dlsym(driver, "fake_driver_version_asked") : NULL;
  if (asked != NULL) *asked = g_tells_version || (g_enabled >> 4 & 1) ? tell_version_asked : NULL;
}
EXPORT int cuptiEnableCallback(uint32_t on, void* subscriber, int domain, uint32_t id) {
  (void)subscriber;
  if (domain == 1 && id == 15) {
    g_tells_version = on != 0;
    follow_version();
  }
  if (domain == 2 && id == 211) g_tells_launches = on != 0;
  if (domain == 1 && id == 514) g_tells_graphs = on != 0;
  if (domain == 1 && id == 513) g_tells_instantiations = on != 0;
  return 0;
}
EXPORT int cuptiGetCallbackName(int domain, uint32_t id, const char** name) {
  if (domain == 2 && id == 211) {
    *name = "cudaLaunchKernel_v7000";
    return 0;
  }
  if (domain == 1 && id == 15) {
    *name = "cuDriverGetVersion";
    return 0;
  }
  if (domain == 1 && (id == 513 || id == 514)) {
    *name = id == 514 ? "cuGraphLaunch" : "cuGraphInstantiateWithFlags";
    return 0;
  }
  if (domain == 1 && id == 307) {
    *name = "cuLaunchKernel";
    return 0;
  }
  *name = NULL;
  return 1;
}
EXPORT int cuptiActivityEnable(int kind) {
  OLD_FUNCTION;
  if (kind == 10 && getenv("FAKE_CUPTI_REFUSES_KERNELS")) return atoi(getenv("FAKE_CUPTI_REFUSES_KERNELS"));
  g_enabled |= 1ull << kind;
  if (kind == 4) follow_version();
  if (kind == 10 && getenv("FAKE_CUPTI_LATE_RECORD")) record_without_times();
  return 0;
}
EXPORT int cuptiActivityDisable(int kind) {
  OLD_FUNCTION;
  if (kind == 10 && g_graph_followed == 1) g_graph_followed = 2;
  g_enabled &= ~(1ull << kind);
  if (kind == 4) follow_version();
  return 0;
}
EXPORT int fake_kinds(void) {
  return g_enabled != 0;
}
EXPORT int cuptiActivityRegisterCallbacks(requested_fn requested, completed_fn completed) {
  OLD_FUNCTION;
  if (getenv("FAKE_CUPTI_NO_BUFFERS")) return 1;
  g_requested = requested;
  g_completed = completed;
  return 0;
}
EXPORT int cuptiActivityGetNumDroppedRecords(void* context, uint32_t stream, size_t* dropped) {
  (void)context;
  (void)stream;
  *dropped = g_dropped;
  g_dropped = 0;
  return 0;
}
static int g_one_buffer_for_all, g_thread_id_type;
EXPORT int cuptiActivitySetAttribute(int attribute, size_t* size, void* value) {
  if (attribute == 9 && *size == 1) g_one_buffer_for_all = *(const uint8_t*)value == 0;
  return 0;
}
EXPORT int cuptiGetThreadIdType(int* type) {
  *type = g_thread_id_type;
  return 0;
}
EXPORT int fake_thread_id_type(void) {
  return g_thread_id_type;
}
EXPORT int cuptiGetTimestamp(uint64_t* time) {
  OLD_FUNCTION;
  *time = now();
  return 0;
}
EXPORT int cuptiSetThreadIdType(int type) {
  g_thread_id_type = type;
  return getenv("FAKE_CUPTI_NO_THREADS") != NULL;
}
static int g_clocks;
EXPORT int fake_clocks(void) {
  return g_clocks;
}
EXPORT int fake_enabled(void) {
#ifdef WITH_SUBSCRIBERS
  if (has_clients()) return 1;
#endif
  return g_enabled != 0 || g_tells_launches || g_subscribed;
}
EXPORT int cuptiUnsubscribe(void* subscriber) {
#ifdef WITH_SUBSCRIBERS
  for (int i = 0; i < MOST_CLIENTS; ++i) {
    if (subscriber != &g_clients[i]) continue;
    memset(&g_clients[i], 0, sizeof g_clients[i]);
    if (i != 0) return 0;
    g_enabled = 0;
    g_callback = NULL;
    g_tells_launches = g_tells_graphs = g_tells_instantiations = 0;
    return 0;
  }
#endif
  if (subscriber != &g_subscribed) return 1;
  g_stuck = g_graph_bound && getenv("FAKE_CUPTI_STOPS_COUNTING") != NULL;
  g_subscribed = 0;
  g_callback = NULL;
  g_tells_launches = g_tells_graphs = g_tells_instantiations = 0;
  return 0;
}
EXPORT int cuptiActivityRegisterTimestampCallback(uint64_t (*timestamp)(void)) {
  OLD_FUNCTION;
  if (getenv("FAKE_CUPTI_OWN_CLOCK")) return 27;
  ++g_clocks;
  g_timestamp = timestamp;
  return 0;
}
EXPORT int cuptiActivityGetAttribute(int attribute, size_t* size, void* value) {
  if (attribute != 9 || *size != 1 || getenv("FAKE_CUPTI_NO_THREADS")) return 1;
  *(uint8_t*)value = !g_one_buffer_for_all;
  return 0;
}
EXPORT int cuptiActivityEnableRuntimeApi(uint32_t id, uint8_t on) {
  if (id == 211) g_enabled = on ? g_enabled | 1u << 5 : g_enabled & ~(1ull << 5);
  return 0;
}
EXPORT int cuptiActivityEnableDriverApi(uint32_t id, uint8_t on) {
  (void)id;
  (void)on;
  return 0;
}
static int next_record(uint8_t* buffer, size_t valid, void** record) {
  uint8_t* at = *record;
  size_t size;
  if (at == NULL) {
    at = buffer;
  } else {
    uint32_t kind;
    memcpy(&kind, at, 4);
    at += size_of(kind);
  }
  if (at >= buffer + valid) return 12;
  *record = at;
  memcpy(&size, at, 4);
  return size_of((uint32_t)size) == 0 ? 21 : 0;
}
EXPORT int cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, void** record) {
  OLD_FUNCTION;
  return next_record(buffer, valid, record);
}

/* Records of a buffer that waits for the device cannot be given back unless forced. */
static int holds_waiting(const struct buffer* buffer) {
  for (size_t i = 0; i < g_waiting_count; ++i)
    if (g_waiting[i].record >= buffer->memory && g_waiting[i].record < buffer->memory + buffer->capacity) return 1;
  return 0;
}
static void give_back(struct buffer* buffer) {
  const struct buffer given = *buffer;
  size_t kept = 0;
  for (size_t i = 0; i < g_waiting_count; ++i) {
    uint8_t* record = g_waiting[i].record;
    if (record >= given.memory && record < given.memory + given.capacity) {
      uint32_t kind;
      memcpy(&kind, record, 4);
      kind &= ~INCOMPLETE;
      memcpy(record, &kind, 4);
    } else {
      g_waiting[kept++] = g_waiting[i];
    }
  }
  g_waiting_count = kept;
  memset(buffer, 0, sizeof *buffer);
#ifdef WITH_SUBSCRIBERS
  if (given.memory && has_clients()) {
    if (g_clients[0].completed) g_clients[0].completed(given.memory, given.capacity, given.used, NULL);
    return;
  }
#endif
  if (given.memory) g_completed(NULL, 0, given.memory, given.capacity, given.used);
}
EXPORT int cuptiActivityFlushAll(uint32_t flag) {
  pthread_mutex_lock(&g_lock);
  for (size_t i = 0; i < g_buffer_count; ++i)
    if (g_buffers[i].memory && ((flag & 1) || !holds_waiting(&g_buffers[i]))) give_back(&g_buffers[i]);
  pthread_mutex_unlock(&g_lock);
  return 0;
}
EXPORT int fake_finalized(void) {
  return g_finalized;
}
/* How often it was done in a way in which real CUPTI may end the program. */
EXPORT int fake_wrongly_finalized(void) {
  return g_wrong;
}
EXPORT unsigned fake_held_up(void) {
  return g_held_up;
}
EXPORT int cuptiFinalize(void) {
  if (getenv("FAKE_CUPTI_STAYS")) return 999;
  pthread_mutex_lock(&g_lock);
  for (; g_runs_until > now(); ++g_held_up) usleep(1000);
  int held = 0;
  for (size_t i = 0; i < g_buffer_count; ++i) held += g_buffers[i].memory != NULL;
#ifdef WITH_SUBSCRIBERS
  held += has_clients();
#endif
  g_wrong += !t_at_exit || g_subscribed || g_enabled != 0 || held != 0;
  ++g_finalized;
  g_graph_broken = g_graph_bound;
  g_here = 0;
  g_enabled = 0;
  g_tells_launches = g_tells_graphs = g_tells_instantiations = 0;
  g_requested = NULL;
  g_completed = NULL;
  g_correlation = 0;
  if (!getenv("FAKE_CUPTI_KEEPS_CLOCK")) g_timestamp = NULL;
  pthread_mutex_unlock(&g_lock);
  return 0;
}

static void finish_all(void);
static uint8_t* space(uint32_t kind) {
  const size_t size = size_of(kind);
  if (!t_buffer && g_buffer_count < MOST_THREADS) t_buffer = &g_buffers[g_buffer_count++];
  struct buffer* const buffer = t_buffer;
  if (buffer && buffer->memory && buffer->used + size > buffer->capacity) {
    finish_all();
    give_back(buffer);
  }
  if (buffer && !buffer->memory) {
    /* Without the lock, as real CUPTI asks: other threads go on meanwhile. */
    struct buffer fresh = {NULL, 0, 0};
    size_t records = 0;
    pthread_mutex_unlock(&g_lock);
#ifdef WITH_SUBSCRIBERS
    if (g_clients[0].requested) g_clients[0].requested(&fresh.memory, &fresh.capacity, &records, NULL);
#endif
    if (g_requested) g_requested(&fresh.memory, &fresh.capacity, &records);
    if (fresh.memory) memset(fresh.memory, 0, fresh.capacity);
    pthread_mutex_lock(&g_lock);
    *buffer = fresh;
  }
  if (!buffer || !buffer->memory) {
    ++g_dropped;
    return NULL;
  }
  uint8_t* const at = buffer->memory + buffer->used;
  buffer->used += size;
  return at;
}
#define PUT(type, offset, value)           \
  do {                                     \
    type v_ = (value);                     \
    memcpy(at + (offset), &v_, sizeof v_); \
  } while (0)

static void record_driver_call(uint32_t id, uint32_t correlation) {
  uint8_t* at;
  pthread_mutex_lock(&g_lock);
  if ((g_enabled >> 4 & 1) && (at = space(4))) {
    const uint64_t start = now();
    PUT(uint32_t, 4, id);
    PUT(uint64_t, 8, start);
    PUT(uint64_t, 16, now());
    PUT(uint32_t, 24, (uint32_t)getpid());
    PUT(uint32_t, 28, (uint32_t)syscall(SYS_gettid));
    PUT(uint32_t, 32, correlation);
    PUT(uint32_t, 0, 4);
  }
  pthread_mutex_unlock(&g_lock);
}

/* A kernel that was launched before anyone recorded. */
static void record_without_times(void) {
  uint8_t* at;
  pthread_mutex_lock(&g_lock);
  if ((at = space(10))) {
    PUT(uint32_t, 92, g_correlation);
    PUT(const char*, 104, "_Z6vecAddPfi");
    PUT(uint32_t, 0, 10);
  }
  pthread_mutex_unlock(&g_lock);
}

/* The "driver" of the stand-in starts: its device and context. */
EXPORT void fake_start(void) {
  pthread_mutex_lock(&g_lock);
  uint8_t* at;
  if ((g_enabled >> 8 & 1) && (at = space(8))) {
    PUT(uint32_t, 0, 8);
    PUT(uint32_t, 44, 3);
    PUT(uint32_t, 104, 9);
    PUT(const char*, 136, "Stand-in GPU");
  }
  if ((g_enabled >> 9 & 1) && (at = space(9))) {
    PUT(uint32_t, 0, 9);
    PUT(uint32_t, 4, 1);
    PUT(uint16_t, 14, 7);
  }
  pthread_mutex_unlock(&g_lock);
}
static void launch_until(const char* name, uint64_t until) {
  const uint32_t correlation = g_stuck ? t_last_number : next_number(g_tells_launches);
  t_last_number = correlation;
  tell(0, correlation);
  pthread_mutex_lock(&g_lock);
  const uint64_t start = now();
  uint8_t* at;
  if ((g_enabled >> 10 & 1) && g_waiting_count < sizeof g_waiting / sizeof *g_waiting && (at = space(10))) {
    PUT(uint16_t, 6, 24);
    PUT(uint32_t, 44, 1);
    PUT(uint32_t, 48, 7);
    for (int word = 52; word < 76; word += 4) PUT(uint32_t, word, word == 64 ? 128 : 1);
    PUT(uint32_t, 92, correlation);
    PUT(const char*, 104, name);
    PUT(uint32_t, 0, 10 | INCOMPLETE);
    g_waiting[g_waiting_count].until = until;
    g_waiting[g_waiting_count++].record = at;
  }
  if (!g_stuck && (g_enabled >> 5 & 1) && (at = space(5))) {
    PUT(uint32_t, 4, 211);
    PUT(uint64_t, 8, start);
    PUT(uint64_t, 16, now());
    PUT(uint32_t, 24, (uint32_t)getpid());
    PUT(uint32_t, 28, g_thread_id_type == 1 ? (uint32_t)syscall(SYS_gettid) : 0xf7001000u);
    PUT(uint32_t, 32, correlation);
    PUT(uint32_t, 0, 5);
  }
  pthread_mutex_unlock(&g_lock);
  tell(1, correlation);
}
EXPORT void fake_launch(const char* name) {
  launch_until(name, 0);
}
/* The runtime's: its end is told as that of a launch. */
EXPORT int cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  const uint32_t correlation = next_number(g_tells_launches);
  for (int site = 0; site < 2; ++site) tell(site, correlation);
  return 0;
}
/* A kernel that runs for three seconds, whether tacho is there or not. */
EXPORT void fake_launch_long(void) {
  g_runs_until = now() + 3000000000u;
  launch_until("_Z4longPfi", g_runs_until);
}
EXPORT void fake_graph_instantiate(void) {
  const uint32_t correlation = next_number(g_tells_instantiations);
  for (int site = 0; site < 2; ++site)
    if (g_tells_instantiations) tell_driver_call("cuGraphInstantiateWithFlags", 513, site, correlation);
}
/* Launches a graph of one kernel. */
EXPORT void fake_graph_launch(const char* name) {
  const uint32_t correlation = next_number(g_tells_graphs);
  if (g_graph_broken) {
    fprintf(stderr, "unspecified launch failure\n");
    _exit(44);
  }
  if (g_here) g_graph_bound = 1;
  for (int site = 0; site < 2; ++site) {
    if (g_tells_graphs) tell_driver_call("cuGraphLaunch", 514, site, correlation);
    if (site == 1) continue;
    pthread_mutex_lock(&g_lock);
    uint8_t* at;
    if ((g_enabled >> 10 & 1) && g_graph_followed != 2 && g_waiting_count < sizeof g_waiting / sizeof *g_waiting &&
        (at = space(10))) {
      g_graph_followed = 1;
      PUT(uint32_t, 44, 1);
      PUT(uint32_t, 48, 7);
      for (int word = 52; word < 76; word += 4) PUT(uint32_t, word, word == 64 ? 128 : 1);
      PUT(uint32_t, 92, correlation);
      PUT(const char*, 104, name);
      PUT(uint64_t, 144, (1ull << 32) + 1);
      PUT(uint32_t, 0, 10 | INCOMPLETE);
      g_waiting[g_waiting_count].until = 0;
      g_waiting[g_waiting_count++].record = at;
    }
    pthread_mutex_unlock(&g_lock);
  }
}
/* The device ends everything launched so far. */
static void finish_all(void) {
  size_t kept = 0;
  for (size_t i = 0; i < g_waiting_count; ++i) {
    uint8_t* const at = g_waiting[i].record;
    if (g_waiting[i].until > now()) {
      g_waiting[kept++] = g_waiting[i];
      continue;
    }
    const uint64_t start = now();
    PUT(uint64_t, 16, start);
    PUT(uint64_t, 24, start + 1000);
    PUT(uint32_t, 0, 10);
#ifdef WITH_SUBSCRIBERS
    for (int other = 1; other < MOST_CLIENTS; ++other) {
      const struct client* const client = &g_clients[other];
      uint8_t* memory = NULL;
      size_t capacity = 0, records = 0;
      if (!(client->enabled >> 10 & 1) || !client->requested) continue;
      client->requested(&memory, &capacity, &records, NULL);
      if (memory) memcpy(memory, at, 216);
      if (memory) client->completed(memory, capacity, 216, NULL);
    }
#endif
  }
  g_waiting_count = kept;
}
EXPORT void fake_complete(void) {
  pthread_mutex_lock(&g_lock);
  finish_all();
  pthread_mutex_unlock(&g_lock);
}
