/* A stand-in for CUPTI's PM sampling. CUPTI's clock is CLOCK_MONOTONIC_RAW plus AHEAD, and its samples have it. Sample n, from 0, ends n + 1 intervals after the start and holds 1000000 + n for metrics of dram, 2000 + n
 * for those of sm, NaN for names with "nan". As the real one does: the first sample's begin is no time of it, stopping
 * adds one without length, an image without room loses what does not fit, and a full buffer stays full until sampling
 * begins anew. One process at a time may sample a GPU where FAKE_PM_LOCK names a file.
 *   FAKE_PM_FULL=N  the buffer of less than 256 MiB is full from the Nth decode on
 *   FAKE_PM_SKIP=N  samples N and N+1 never come
 *   FAKE_PM_JUMP=N:S  CUPTI's clock is set by S seconds when sample N begins
 *   FAKE_PM_BACK=N  from sample N on the samples' times are an hour before that clock's
 *   FAKE_PM_SILENT=1  there are no samples at all
 *   FAKE_PM_SLOW=MS  a decode takes so long
 *   FAKE_PM_REFUSES=GPU:CODE  that GPU cannot be sampled
 *   FAKE_PM_LOG=FILE  a line for each configuration (interval, trigger, buffer), start and stop (decodes before it) */
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "hook.h"

#define AHEAD 1795000000000000000ull
#define HOUR 3600000000000ull

#define EXPORT __attribute__((visibility("default")))
struct Sampler {
  int device, on, running, decodes, lock;
  uint64_t interval, begin, next;
  size_t buffer;
};
struct PmSample {
  uint64_t number, start, end;
};
struct PmImage {
  uint32_t magic, count, most, pad;
  struct PmSample samples[];
};
static struct Sampler g_samplers[8];

struct PChip {
  size_t size;
  void* priv;
  size_t device;
  const char* chip;
};
struct PAvailable {
  size_t size;
  void* priv;
  size_t device, bytes;
  uint8_t* image;
};
struct PEnabled {
  size_t size;
  void* priv;
  size_t device;
  struct Sampler* sampler;
};
struct PSampler {
  size_t size;
  void* priv;
  struct Sampler* sampler;
};
struct PConfig {
  size_t size;
  void* priv;
  struct Sampler* sampler;
  size_t config_bytes;
  const uint8_t* config;
  size_t buffer;
  uint64_t interval;
  int trigger, append;
};
struct PImageSize {
  size_t size;
  void* priv;
  struct Sampler* sampler;
  const char** metrics;
  size_t count;
  uint32_t most;
  size_t bytes;
};
struct PImage {
  size_t size;
  void* priv;
  struct Sampler* sampler;
  size_t bytes;
  uint8_t* image;
};
struct PDecoded {
  size_t size;
  void* priv;
  struct Sampler* sampler;
  uint8_t* image;
  size_t bytes;
  int reason;
  uint8_t overflow;
};
struct PInfo {
  size_t size;
  void* priv;
  const uint8_t* image;
  size_t bytes, total, populated, completed;
};
struct PAt {
  size_t size;
  void* priv;
  struct Sampler* sampler;
  const uint8_t* image;
  size_t bytes, index;
  uint64_t start, end;
};

static uint64_t gpu_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + AHEAD;
}
static uint64_t g_jump_at; /* by gpu_now() */
static uint64_t jumped(uint64_t now) {
  const char* const jump = getenv("FAKE_PM_JUMP");
  return jump && g_jump_at && now >= g_jump_at ? (uint64_t)(atol(strchr(jump, ':') + 1) * 1000000000) : 0;
}
static long number(const char* name, long otherwise) {
  const char* const text = getenv(name);
  return text ? atol(text) : otherwise;
}

__attribute__((format(printf, 1, 2))) static void note(const char* format, ...) {
  FILE* const log = getenv("FAKE_PM_LOG") ? fopen(getenv("FAKE_PM_LOG"), "a") : NULL;
  if (!log) return;
  va_list values;
  va_start(values, format);
  vfprintf(log, format, values);
  va_end(values);
  fclose(log);
}
EXPORT int cuptiGetTimestamp(uint64_t* time) {
  const uint64_t now = gpu_now();
  *time = now + jumped(now);
  return fake_fails("timestamp");
}
EXPORT int cuptiDeviceGetChipName(struct PChip* p) {
  p->chip = "GH100";
  return fake_fails("chip");
}
EXPORT int cuptiPmSamplingGetCounterAvailability(struct PAvailable* p) {
  if (!p->image)
    p->bytes = 8;
  else
    memset(p->image, 1, p->bytes);
  return fake_fails("availability");
}
EXPORT int cuptiPmSamplingEnable(struct PEnabled* p) {
  if (fake_fails("pm_enable")) return fake_fails("pm_enable");
  struct Sampler* const s = &g_samplers[p->device];
  const char* const refuses = getenv("FAKE_PM_REFUSES");
  if (refuses && (size_t)atol(refuses) == p->device) return atoi(strchr(refuses, ':') + 1);
  if (s->on) return 7;
  memset(s, 0, sizeof *s);
  s->lock = getenv("FAKE_PM_LOCK") ? open(getenv("FAKE_PM_LOCK"), O_RDWR | O_CREAT, 0600) : -1;
  if (s->lock >= 0 && flock(s->lock, LOCK_EX | LOCK_NB) != 0) return 26;
  s->device = (int)p->device;
  s->on = 1;
  p->sampler = s;
  return 0;
}
EXPORT int cuptiPmSamplingDisable(struct PSampler* p) {
  if (!p->sampler->on || p->sampler->running == 1) return 7;
  p->sampler->on = 0;
  return 0;
}
EXPORT int cuptiPmSamplingSetConfig(struct PConfig* p) {
  size_t passes = 0;
  memcpy(&passes, p->config, sizeof passes);
  if (fake_fails("pm_set")) return fake_fails("pm_set");
  if (!p->sampler->on || p->sampler->running) return 7;
  if (passes != 1) return 27;
  p->sampler->interval = p->trigger == 1 ? p->interval : p->interval * 10 / 12;
  p->sampler->buffer = p->buffer;
  note("%llu %d %zu\n", (unsigned long long)p->interval, p->trigger, p->buffer);
  return 0;
}
EXPORT int cuptiPmSamplingGetCounterDataSize(struct PImageSize* p) {
  p->bytes = sizeof(struct PmImage) + p->most * sizeof(struct PmSample);
  return 0;
}
EXPORT int cuptiPmSamplingCounterDataImageInitialize(struct PImage* p) {
  struct PmImage* const image = (struct PmImage*)p->image;
  memset(image, 0, p->bytes);
  image->magic = FAKE_PM_MAGIC;
  image->most = (uint32_t)((p->bytes - sizeof *image) / sizeof(struct PmSample));
  return 0;
}
EXPORT int cuptiPmSamplingStart(struct PSampler* p) {
  struct Sampler* const s = p->sampler;
  if (fake_fails("pm_start")) return fake_fails("pm_start");
  if (!s->on || s->running || !s->interval) return 7;
  s->running = 1;
  s->begin = gpu_now();
  s->next = 0;
  s->decodes = 0;
  note("start\n");
  if (getenv("FAKE_PM_JUMP")) g_jump_at = s->begin + (uint64_t)number("FAKE_PM_JUMP", 0) * s->interval;
  return 0;
}
EXPORT int cuptiPmSamplingStop(struct PSampler* p) {
  if (!p->sampler->running) return 7;
  p->sampler->running = 2;
  note("stop %d\n", p->sampler->decodes);
  return 0;
}
static void put(struct PmImage* image, uint64_t n, uint64_t start, uint64_t end, struct PDecoded* p) {
  if (image->count == image->most)
    p->reason = 1;
  else
    image->samples[image->count++] = (struct PmSample){n, start, end};
}
EXPORT int cuptiPmSamplingDecodeData(struct PDecoded* p) {
  struct Sampler* const s = p->sampler;
  struct PmImage* const image = (struct PmImage*)p->image;
  p->reason = 2;
  p->overflow = 0;
  if (image->magic != FAKE_PM_MAGIC || image->count != 0) return 1;
  if (fake_fails("pm_decode")) return fake_fails("pm_decode");
  if (++s->decodes >= number("FAKE_PM_FULL", 1 << 30) && s->buffer < 256u << 20) {
    p->overflow = 1;
    return 8;
  }
  usleep((unsigned)number("FAKE_PM_SLOW", 0) * 1000);
  if (getenv("FAKE_PM_SILENT")) return 0;
  const uint64_t now = gpu_now();
  const uint64_t skip = (uint64_t)number("FAKE_PM_SKIP", -9);
  for (; s->begin + (s->next + 1) * s->interval <= now; ++s->next) {
    const uint64_t n = s->next, real = s->begin + n * s->interval;
    const uint64_t start = real + jumped(real) - (n >= (uint64_t)number("FAKE_PM_BACK", 1l << 60) ? HOUR : 0);
    if (n == skip || n == skip + 1) continue;
    put(image, n, n == 0 ? start + 86400000000000u : start, start + s->interval, p);
  }
  if (s->running == 2) {
    put(image, 0, s->begin, s->begin, p);
    s->running = 0;
  }
  return 0;
}
EXPORT int cuptiPmSamplingGetCounterDataInfo(struct PInfo* p) {
  const struct PmImage* const image = (const struct PmImage*)p->image;
  if (image->magic != FAKE_PM_MAGIC) return 1;
  p->total = image->most;
  p->populated = p->completed = image->count;
  return 0;
}
EXPORT int cuptiPmSamplingCounterDataGetSampleInfo(struct PAt* p) {
  const struct PmImage* const image = (const struct PmImage*)p->image;
  if (p->index >= image->count) return 1;
  p->start = image->samples[p->index].start;
  p->end = image->samples[p->index].end;
  return 0;
}

int fake_pm_values(const void* data, size_t index, const char** names, size_t count, double* values) {
  const struct PmImage* const image = data;
  if (index >= image->count) return 1;
  const double n = (double)image->samples[index].number;
  for (size_t i = 0; i < count; ++i)
    values[i] = strstr(names[i], "nan") ? NAN : (strncmp(names[i], "dram", 4) == 0 ? 1000000 : 2000) + n;
  return 0;
}
