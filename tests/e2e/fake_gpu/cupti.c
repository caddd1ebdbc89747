/* A stand-in for CUPTI's range profiler and profiler host: every metric "counts" what the kernel finds in memory (a
 * checksum), so that values of one launch are equal over all passes exactly when each pass saw the same memory. Four
 * metrics fit in a pass (FAKE_CUPTI_WIDTH). gpu__time_duration.sum is 1000.
 *   FAKE_CUPTI_REFUSES=CODE  cuptiSubscribe fails     FAKE_CUPTI_FAILS=FUNCTION:CODE  that function fails
 *   FAKE_CUPTI_FAILS_ON=GPU  that only in this GPU's context
 *   FAKE_CUPTI_EXTRA=1       the first image of replays by the user has a range too many
 *   FAKE_CUPTI_LOG=FILE      a line for each session's start, stop and setting of a configuration
 *   FAKE_CUPTI_EMPTY=GPU     launches in that GPU's context have no values
 * Contexts have an object each; of those on one GPU only one can start sessions, until it is disabled (error 26). An object of
 * the host evaluates images of one GPU, the first that it is given: of others it has no values.
 * As the real one does, it makes no range of a graph unless one is pushed by hand (stopping such a session fails); an object
 * that was configured for one kind of ranges refuses the other and wants to be asked for the size of images before it
 * prepares one; and nothing can be used any more once what was registered at the first session has run at exit. */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hook.h"

#define EXPORT __attribute__((visibility("default")))
#define PASSES 64
typedef void (*callback_fn)(void*, int, uint32_t, const void*);

struct CallbackData {
  int site;
  const char* function;
  const void* parameters;
  void* result;
  const char* symbol;
  void* context;
  uint32_t context_id;
  uint64_t* data;
  uint32_t correlation;
};
struct Range {
  uint64_t seen, memory[PASSES];
};
struct Image {
  uint32_t magic, ranges, passes, most, device, pad;
  struct Range range[];
};

static callback_fn g_callback;
static uint8_t g_on[4][2048];
struct Object {
  void* context;
  int device, running, replay, set, user, kind, pushed, spoilt, sized, started;
  struct Image *image, *work;
  size_t passes, pass, most, next;
};
static struct Object g_objects[8];
static int g_gone;

static int current_device(void) {
  int device = 0, (*of)(int*) = (int (*)(int*))dlsym(RTLD_DEFAULT, "cuCtxGetDevice");
  if (of) of(&device);
  return device;
}
static int fails(const char* function) {
  if (getenv("FAKE_CUPTI_FAILS_ON") && atoi(getenv("FAKE_CUPTI_FAILS_ON")) != current_device()) return 0;
  const char* const text = getenv("FAKE_CUPTI_FAILS");
  const size_t length = strlen(function);
  return text && strncmp(text, function, length) == 0 && text[length] == ':' ? atoi(text + length + 1) : 0;
}
int fake_fails(const char* function) {
  return fails(function);
}
static size_t width(void) {
  const char* const text = getenv("FAKE_CUPTI_WIDTH");
  return text ? (size_t)atoi(text) : 4;
}
static void note(const char* what, size_t number) {
  const char* const path = getenv("FAKE_CUPTI_LOG");
  FILE* const file = path ? fopen(path, "a") : NULL;
  if (file) fprintf(file, "%s %zu\n", what, number), fclose(file);
}

static void on_call(int id, const char* name, const void* parameters, int* result, int exit, const char* symbol,
                    void* context) {
  static uint64_t data;
  if (!g_callback || !g_on[1][id]) return;
  const struct CallbackData about = {exit, name, parameters, result, symbol, context, 1, &data, 1};
  g_callback(NULL, 1, (uint32_t)id, &about);
}
static void on_module(const void* image, size_t bytes) {
  const struct {
    uint32_t id;
    size_t bytes;
    const void* image;
  } module = {1, bytes, image};
  const struct {
    void *context, *handle;
    const void* descriptor;
  } about = {NULL, NULL, &module};
  if (g_callback && g_on[3][6]) g_callback(NULL, 3, 6, &about);
}
static void on_context(void* context, int created) {
  const struct { void *context, *handle, *descriptor; } about = {context, NULL, NULL};
  const uint32_t id = created ? 1 : 2;
  if (g_callback && g_on[3][id]) g_callback(NULL, 3, id, &about);
}
EXPORT void fake_sample(const char* symbol);
/* The object of the current context, NULL where it has no session. */
static struct Object* running(void) {
  void* context = NULL;
  int (*current)(void**) = (int (*)(void**))dlsym(RTLD_DEFAULT, "cuCtxGetCurrent");
  if (current) current(&context);
  for (int i = 0; i < 8; ++i)
    if (g_objects[i].context == context && g_objects[i].running) return &g_objects[i];
  return NULL;
}
static void on_graph(void) {
  struct Object* const o = running();
  if (o && !o->user) o->spoilt = 1;
}
static void on_executing(const char* symbol, uint64_t threads, uint64_t memory) {
  fake_sample(symbol);
  struct Object* const o = running();
  if (!o || !o->work || o->spoilt) return;
  if (o->user) { /* all kernels of the range together */
    if (!o->pushed) return;
    struct Range* const range = &o->work->range[o->next - 1];
    range->seen |= 1ull << o->pass;
    range->memory[o->pass] += memory % 1000003 + threads;
    return;
  }
  if (o->next >= o->most) {
    fprintf(stderr, "fake CUPTI: more ranges than the image has\n");
    abort();
  }
  const int empty = getenv("FAKE_CUPTI_EMPTY") && atoi(getenv("FAKE_CUPTI_EMPTY")) == o->device;
  struct Range* const range = &o->work->range[o->next++];
  for (size_t p = 0; p < o->passes; ++p)
    if (o->replay == 2 || p == o->pass) {
      if (!empty) range->seen |= 1ull << p;
      range->memory[p] = memory % 1000003 + threads;
    }
  if (o->work->ranges < o->next) o->work->ranges = (uint32_t)o->next;
}

EXPORT int cuptiGetVersion(uint32_t* version) {
  *version = 130001;
  return 0;
}
EXPORT int cuptiGetResultString(int result, const char** text) {
  *text = result == 39   ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
          : result == 35 ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
                         : "CUPTI_ERROR_FAKE";
  return 0;
}
EXPORT int cuptiSubscribe(void** subscriber, void* callback, void* user) {
  (void)user;
  if (getenv("FAKE_CUPTI_REFUSES")) return atoi(getenv("FAKE_CUPTI_REFUSES"));
  g_callback = (callback_fn)callback;
  *subscriber = &g_callback;
  const struct Hook hook = {on_call, on_module, on_context, on_executing, on_graph};
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void (*set)(const struct Hook*) = driver ? (void (*)(const struct Hook*))dlsym(driver, "fake_set_hook") : NULL;
  if (set) set(&hook);
  return 0;
}
EXPORT int cuptiEnableCallback(uint32_t on, void* subscriber, int domain, uint32_t id) {
  (void)subscriber;
  if (domain >= 0 && domain < 4 && id < 2048) g_on[domain][id] = (uint8_t)on;
  return 0;
}
EXPORT int cuptiGetCallbackName(int domain, uint32_t id, const char** name) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const char* const* names = driver ? (const char* const*)dlsym(driver, "fake_names") : NULL;
  *name = NULL;
  if (domain != 1 || !names) return 1;
  for (uint32_t i = 1; names[i]; ++i)
    if (i == id) *name = names[i];
  return *name ? 0 : 1;
}
/* Asked for by the tracer; profiles use none of them. */
#define UNUSED(name)      \
  EXPORT int name(void) { \
    return 27;            \
  }                       \
  EXPORT int name(void)
UNUSED(cuptiActivityEnable);
UNUSED(cuptiActivityDisable);
UNUSED(cuptiActivityRegisterCallbacks);
UNUSED(cuptiActivityFlushAll);
UNUSED(cuptiActivityGetNextRecord);
UNUSED(cuptiActivityGetNumDroppedRecords);
UNUSED(cuptiActivitySetAttribute);

/* ---- target side */
struct P1 {
  size_t size;
  void* priv;
};
struct PEnable {
  size_t size;
  void *priv, *context, *profiler;
};
struct PObject {
  size_t size;
  void *priv, *profiler;
};
struct PSet {
  size_t size;
  void *priv, *profiler;
  size_t config_bytes;
  const uint8_t* config;
  size_t image_bytes;
  uint8_t* image;
  int range, replay;
  size_t most;
  uint16_t nesting, least;
  size_t pass;
  uint16_t target;
};
struct PStop {
  size_t size;
  void *priv, *profiler;
  size_t pass, target;
  uint8_t all;
};
struct PDecode {
  size_t size;
  void *priv, *profiler;
  size_t dropped;
};
struct PSize {
  size_t size;
  void *priv, *profiler;
  const char** metrics;
  size_t count, most;
  uint32_t nodes;
  size_t bytes;
};
struct PFresh {
  size_t size;
  void *priv, *profiler;
  size_t bytes;
  uint8_t* image;
};

EXPORT int cuptiProfilerInitialize(struct P1* p) {
  (void)p;
  return fails("initialize");
}
EXPORT int cuptiRangeProfilerEnable(struct PEnable* p) {
  if (fails("enable")) return fails("enable");
  struct Object* o = NULL;
  for (int i = 0; i < 8; ++i) {
    if (g_objects[i].context == p->context) return 1;
    if (!o && !g_objects[i].context) o = &g_objects[i];
  }
  memset(o, 0, sizeof *o);
  o->context = p->context;
  o->device = current_device();
  p->profiler = o;
  return 0;
}
EXPORT int cuptiRangeProfilerDisable(struct PObject* p) {
  struct Object* const o = p->profiler;
  if (!o || !o->context) return 1;
  free(o->work);
  memset(o, 0, sizeof *o);
  return 0;
}
EXPORT int cuptiRangeProfilerGetCounterDataSize(struct PSize* p) {
  ((struct Object*)p->profiler)->sized = 1;
  p->bytes = sizeof(struct Image) + p->most * sizeof(struct Range);
  return 0;
}
EXPORT int cuptiRangeProfilerCounterDataImageInitialize(struct PFresh* p) {
  struct Image* const image = (struct Image*)p->image;
  const struct Object* const o = p->profiler;
  if (!o->sized) fprintf(stderr, "fake CUPTI: an image of an object that was not asked for its size\n"), abort();
  memset(image, 0, p->bytes);
  image->magic = 0x46414b45;
  image->device = (uint32_t)o->device;
  image->most = (uint32_t)((p->bytes - sizeof *image) / sizeof(struct Range));
  return 0;
}
EXPORT int cuptiRangeProfilerSetConfig(struct PSet* p) {
  struct Object* const o = p->profiler;
  if (fails("set")) return fails("set");
  if (o->running) return 1;
  memcpy(&o->passes, p->config, sizeof o->passes);
  o->image = (struct Image*)p->image;
  o->pass = p->pass;
  o->most = p->most;
  o->replay = p->replay;
  if (!o->set) o->kind = p->range;
  if (o->kind != p->range) return 1;
  o->user = p->range == 2;
  free(o->work);
  o->work = calloc(1, p->image_bytes);
  memcpy(o->work, o->image, p->image_bytes);
  o->work->passes = (uint32_t)o->passes;
  o->set = 1;
  note("set", p->most);
  return 0;
}
static void at_exit(void) {
  g_gone = 1;
}
EXPORT int cuptiRangeProfilerStart(struct PObject* p) {
  struct Object* const o = p->profiler;
  static int first;
  if (!first++) atexit(at_exit);
  if (g_gone) fprintf(stderr, "fake CUPTI: started after its end\n"), abort();
  if (fails("start")) return fails("start");
  if (!o->set || o->running) return 1;
  for (int i = 0; i < 8; ++i)
    if (g_objects[i].context && &g_objects[i] != o && g_objects[i].started && g_objects[i].device == o->device)
      return 26;
  o->running = o->started = 1;
  o->next = 0;
  note("start", o->pass);
  return 0;
}
struct PPush {
  size_t size;
  void *priv, *profiler;
  const char* name;
};
EXPORT int cuptiRangeProfilerPushRange(struct PPush* p) {
  struct Object* const o = p->profiler;
  if (!o->running || !o->user || o->pushed || !p->name || o->next >= o->most) return 1;
  o->pushed = 1;
  o->work->range[o->next++].memory[o->pass] = 0;
  if (o->work->ranges < o->next) o->work->ranges = (uint32_t)o->next;
  note("push", o->pass);
  return 0;
}
EXPORT int cuptiRangeProfilerPopRange(struct PObject* p) {
  struct Object* const o = p->profiler;
  if (!o->pushed) return 1;
  o->pushed = 0;
  return 0;
}
EXPORT int cuptiRangeProfilerStop(struct PStop* p) {
  struct Object* const o = p->profiler;
  if (!o->running || o->pushed) return 1;
  o->running = 0;
  if (o->spoilt) {
    o->spoilt = 0;
    return 999;
  }
  note("stop", o->next);
  if (o->replay == 3) ++o->pass;
  p->pass = o->pass;
  p->all = o->pass >= o->passes;
  return fails("stop");
}
EXPORT int cuptiRangeProfilerDecodeData(struct PDecode* p) {
  struct Object* const o = p->profiler;
  p->dropped = 0;
  if (fails("decode")) return fails("decode");
  memcpy(o->image, o->work, sizeof *o->work + o->most * sizeof(struct Range));
  static int extra;
  if (getenv("FAKE_CUPTI_EXTRA") && o->replay == 3 && !extra++) ++o->image->ranges;
  return 0;
}

/* ---- host side */
struct HInit {
  size_t size;
  void* priv;
  int type;
  const char* chip;
  const uint8_t* availability;
  void* object;
};
struct HObject {
  size_t size;
  void *priv, *object;
};
struct HChips {
  size_t size;
  void* priv;
  size_t count;
  const char* const* names;
};
struct HBase {
  size_t size;
  void *priv, *object;
  int type;
  const char** names;
  size_t count;
};
struct HSub {
  size_t size;
  void *priv, *object;
  int type;
  const char* name;
  size_t count;
  const char** names;
};
struct HProperties {
  size_t size;
  void *priv, *object;
  const char *name, *description, *unit, *dimension;
  int type;
};
struct HAdd {
  size_t size;
  void *priv, *object;
  const char** names;
  size_t count;
};
struct HSize {
  size_t size;
  void *priv, *object;
  size_t bytes;
};
struct HImage {
  size_t size;
  void *priv, *object;
  size_t bytes;
  uint8_t* image;
};
struct HPasses {
  size_t size;
  void* priv;
  size_t bytes;
  uint8_t* image;
  size_t passes;
};
struct HEvaluate {
  size_t size;
  void *priv, *object;
  const uint8_t* image;
  size_t bytes, range;
  const char** names;
  size_t count;
  double* values;
};
struct HInfo {
  size_t size;
  void* priv;
  const uint8_t* image;
  size_t bytes, ranges;
};

struct Host {
  size_t metrics;
  int evaluated, type;
  uint32_t device;
};
EXPORT int cuptiProfilerHostInitialize(struct HInit* p) {
  p->object = calloc(1, sizeof(struct Host));
  ((struct Host*)p->object)->type = p->type;
  return 0;
}
EXPORT int cuptiProfilerHostDeinitialize(struct HObject* p) {
  free(p->object);
  return 0;
}
EXPORT int cuptiProfilerHostGetSupportedChips(struct HChips* p) {
  static const char* const names[] = {"GA100", "GH100", "GB100"};
  p->count = 3;
  p->names = names;
  return 0;
}
EXPORT int cuptiProfilerHostGetBaseMetrics(struct HBase* p) {
  p->count = 0;
  return 0;
}
EXPORT int cuptiProfilerHostGetSubMetrics(struct HSub* p) {
  static const char* names[] = {".avg", ".max", ".min", ".sum"};
  p->count = ((struct Host*)p->object)->type == 1 ? 4 : 0;
  p->names = names;
  return 0;
}
/* What is sampled has properties, and no metrics that kernels' instructions are patched for. */
static int is_sampled(const char* name) {
  return strstr(name, "__") && !strstr(name, "sass") && !strstr(name, "nonsense");
}
EXPORT int cuptiProfilerHostGetMetricProperties(struct HProperties* p) {
  if (((struct Host*)p->object)->type != 1 || !is_sampled(p->name)) return 17;
  p->description = strncmp(p->name, "dram", 4) == 0 ? "# of bytes read from DRAM" : "# of warp instructions executed";
  p->unit = "dram";
  p->dimension = strstr(p->name, "pct")          ? "percent"
                 : strstr(p->name, "per_second") ? "byte/second"
                 : strstr(p->name, "bytes")      ? "byte"
                                                 : "instruction";
  return 0;
}
/* A pass has room for width(): "wide" metrics fill it, "twice" do not fit into one. */
EXPORT int cuptiProfilerHostConfigAddMetrics(struct HAdd* p) {
  for (size_t i = 0; i < p->count; ++i)
    if (!strstr(p->names[i], "__") || strstr(p->names[i], "nonsense")) return 1;
  for (size_t i = 0; i < p->count && ((struct Host*)p->object)->type == 1; ++i)
    if (!is_sampled(p->names[i]) || !strchr(p->names[i], '.')) return 1;
  for (size_t i = 0; i < p->count; ++i)
    ((struct Host*)p->object)->metrics += strstr(p->names[i], "__twice")  ? width() + 1
                                          : strstr(p->names[i], "__wide") ? width()
                                                                          : 1;
  return 0;
}
EXPORT int cuptiProfilerHostGetConfigImageSize(struct HSize* p) {
  p->bytes = 64;
  return 0;
}
EXPORT int cuptiProfilerHostGetConfigImage(struct HImage* p) {
  const size_t passes = (((struct Host*)p->object)->metrics + width() - 1) / width();
  memset(p->image, 0, p->bytes);
  memcpy(p->image, &passes, sizeof passes);
  return 0;
}
EXPORT int cuptiProfilerHostGetNumOfPasses(struct HPasses* p) {
  memcpy(&p->passes, p->image, sizeof p->passes);
  return 0;
}
EXPORT int cuptiRangeProfilerGetCounterDataInfo(struct HInfo* p) {
  const struct Image* const image = (const struct Image*)p->image;
  if (p->bytes < sizeof *image || image->magic != 0x46414b45) return 1;
  p->ranges = image->ranges;
  return 0;
}
EXPORT int cuptiProfilerHostEvaluateToGpuValues(struct HEvaluate* p) {
  const struct Image* const image = (const struct Image*)p->image;
  if (image->magic == FAKE_PM_MAGIC) {
    /* Of metrics that the object was not given it knows nothing. */
    if (((struct Host*)p->object)->metrics != p->count) return 1;
    return fake_pm_values(image, p->range, p->names, p->count, p->values);
  }
  if (p->range >= image->ranges) return 1;
  const struct Range* const range = &image->range[p->range];
  struct Host* const host = p->object;
  if (!host->evaluated++) host->device = image->device;
  for (size_t i = 0; i < p->count; ++i) {
    const size_t pass = i / width();
    p->values[i] = host->device == image->device && (range->seen >> pass & 1) ? (double)range->memory[pass] : NAN;
    if (strcmp(p->names[i], "gpu__time_duration.sum") == 0) p->values[i] = 1000;
  }
  return 0;
}

/* ---- PC sampling: every kernel executed leaves three samples at its first instruction (two of them stalled) and one at
 * its second, which is all of a reason that counts a part again */
struct Reason {
  uint32_t index, samples;
};
struct Sampled {
  size_t size;
  uint64_t cubin, offset;
  uint32_t function, pad;
  char* name;
  size_t reasons_count;
  struct Reason* reasons;
  uint32_t correlation;
} __attribute__((packed, aligned(8)));
struct Data {
  size_t size, wanted;
  uint64_t total, dropped;
  size_t got, remaining;
  uint64_t range;
  struct Sampled* sampled;
  uint64_t others;
  uint8_t full;
} __attribute__((packed, aligned(8)));
struct PContext {
  size_t size;
  void *priv, *context;
};
struct PCount {
  size_t size;
  void *priv, *context;
  size_t* count;
};
struct PReasons {
  size_t size;
  void *priv, *context;
  size_t count;
  uint32_t* indices;
  char** names;
};
struct PConfigure {
  size_t size;
  void *priv, *context;
  size_t count;
  void* settings;
};
struct PData {
  size_t size;
  void *priv, *context;
  struct Data* data;
};
struct PCrc {
  size_t size, bytes;
  const void* image;
  uint64_t crc;
};
struct PLine {
  size_t size;
  const void* cubin;
  const char* function;
  size_t bytes;
  uint32_t line;
  uint64_t offset;
  char *file, *folder;
};

static int g_sampling;
static uint64_t g_executed[2]; /* add, others */
EXPORT void fake_sample(const char* symbol) {
  if (g_sampling) ++g_executed[strcmp(symbol, "_Z3addPiPKii") != 0];
}
EXPORT int cuptiPCSamplingEnable(struct PContext* p) {
  (void)p;
  g_sampling = 1;
  return fails("sampling");
}
EXPORT int cuptiPCSamplingDisable(struct PContext* p) {
  (void)p;
  g_sampling = 0;
  return 0;
}
EXPORT int cuptiPCSamplingGetNumStallReasons(struct PCount* p) {
  *p->count = 3;
  return 0;
}
EXPORT int cuptiPCSamplingGetStallReasons(struct PReasons* p) {
  static const char* const names[] = {"smsp__pcsamp_warps_issue_stalled_selected",
                                      "smsp__pcsamp_warps_issue_stalled_long_scoreboard",
                                      "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued"};
  for (uint32_t i = 0; i < 3; ++i) {
    p->indices[i] = i + 5;
    strcpy(p->names[i], names[i]);
  }
  return 0;
}
EXPORT int cuptiPCSamplingSetConfigurationAttribute(struct PConfigure* p) {
  (void)p;
  return 0;
}
EXPORT int cuptiPCSamplingGetData(struct PData* p) {
  struct Data* const data = p->data;
  data->got = data->remaining = 0;
  data->total = data->dropped = 0;
  for (int kind = 0; kind < 2; ++kind)
    for (int at = 0; at < 2 && g_executed[kind]; ++at) {
      struct Sampled* const to = &data->sampled[data->got++];
      const uint32_t n = (uint32_t)g_executed[kind];
      to->cubin = 0xabc;
      to->offset = (uint64_t)at * 0x10;
      to->function = (uint32_t)kind;
      to->name = kind ? "_Z5emptyv" : "_Z3addPiPKii";
      to->reasons_count = at ? 2 : 3;
      to->reasons[0] = (struct Reason){5, n};
      to->reasons[1] = (struct Reason){at ? 7 : 6, at ? n : 2 * n};
      if (!at) to->reasons[2] = (struct Reason){7, n};
      data->total += at ? n : 3 * n;
    }
  g_executed[0] = g_executed[1] = 0;
  return 0;
}
EXPORT int cuptiGetCubinCrc(struct PCrc* p) {
  p->crc = 0xabc;
  return 0;
}
EXPORT int cuptiGetSassToSourceCorrelation(struct PLine* p) {
  if (p->offset != 0) return 1;
  p->file = strdup("app.cu");
  const char* const folder = getenv("FAKE_CUPTI_SOURCES");
  p->folder = strdup(folder != NULL ? folder : "/src");
  p->line = strstr(p->function, "add") ? 42 : 43;
  return 0;
}
