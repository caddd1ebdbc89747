/* A program that uses NVTX 3's payload and counter extensions. Without NVIDIA's headers it declares their ABI itself and does
 * what they do: it loads the file that NVTX_INJECTION64_PATH names and lets it fill tables of functions. With -DREAL_NVTX the
 * same calls go through the real headers. Prints "done" at the end. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef REAL_NVTX
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <nvtx3/nvToolsExtSemanticsCounters.h>
#include <nvtx3/nvToolsExtSemanticsTime.h>
#define INITIALIZE()
#else
typedef void* nvtxDomainHandle_t;
typedef void* nvtxStringHandle_t;
typedef uint64_t nvtxRangeId_t;
typedef struct {
  uint16_t version, size;
  uint32_t category;
  int32_t colorType;
  uint32_t color;
  int32_t payloadType, reserved0;
  union {
    uint64_t ullValue;
    double dValue;
  } payload;
  int32_t messageType;
  union {
    const char* ascii;
    const void* registered;
  } message;
} nvtxEventAttributes_t;
typedef struct nvtxSemanticsHeader_v1 {
  uint32_t structSize;
  uint16_t semanticId, version;
  const struct nvtxSemanticsHeader_v1* next;
} nvtxSemanticsHeader_t;
typedef struct {
  nvtxSemanticsHeader_t header;
  uint64_t timeDomainId;
} nvtxSemanticsTime_t;
typedef struct {
  nvtxSemanticsHeader_t header;
  uint64_t flags;
  const char* unit;
  uint64_t unitScaleNumerator, unitScaleDenominator;
  int64_t limitType;
  union {
    int64_t i64;
  } min, max;
} nvtxSemanticsCounter_t;
typedef struct {
  uint64_t flags, type;
  const char *name, *description;
  uint64_t arrayOrUnionDetail, offset;
  const nvtxSemanticsHeader_t* semantics;
  const void* reserved;
} nvtxPayloadSchemaEntry_t;
typedef struct {
  uint64_t fieldMask;
  const char* name;
  uint64_t type, flags;
  const nvtxPayloadSchemaEntry_t* entries;
  size_t numEntries, payloadStaticSize, packAlign;
  uint64_t schemaId;
  void* extension;
} nvtxPayloadSchemaAttr_t;
typedef struct {
  const char* name;
  uint64_t value;
  int8_t isFlag;
} nvtxPayloadEnum_t;
typedef struct {
  uint64_t fieldMask;
  const char* name;
  const nvtxPayloadEnum_t* entries;
  size_t numEntries, sizeOfEnum;
  uint64_t schemaId;
  void* extension;
} nvtxPayloadEnumAttr_t;
typedef struct {
  uint64_t schemaId;
  size_t size;
  const void* payload;
} nvtxPayloadData_t;
typedef struct {
  size_t structSize;
  uint64_t schemaId;
  const char *name, *description;
  uint64_t scopeId;
  const nvtxSemanticsHeader_t* semantics;
  uint64_t counterId;
} nvtxCounterAttr_t;
typedef struct {
  uint64_t counterId;
  const void* counters;
  size_t countersSize;
  uint64_t flags;
  const int64_t* timestamps;
  size_t timestampsSize;
} nvtxCounterBatch_t;
enum {
  NVTX_VERSION = 3,
  NVTX_EVENT_ATTRIB_STRUCT_SIZE = sizeof(nvtxEventAttributes_t),
  NVTX_MESSAGE_TYPE_ASCII = 1,
  NVTX_PAYLOAD_TYPE_EXT = (int32_t)0xDFBD0009,
  NVTX_PAYLOAD_ENTRY_FLAG_POINTER = 1 << 1,
  NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE = 1 << 4,
  NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX = 3 << 4,
  NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE = 1 << 10,
  NVTX_PAYLOAD_ENTRY_FLAG_TIMESTAMP = 2 << 10,
  NVTX_PAYLOAD_ENTRY_TYPE_CHAR = 1,
  NVTX_PAYLOAD_ENTRY_TYPE_INT32 = 15,
  NVTX_PAYLOAD_ENTRY_TYPE_UINT32 = 16,
  NVTX_PAYLOAD_ENTRY_TYPE_INT64 = 17,
  NVTX_PAYLOAD_ENTRY_TYPE_UINT64 = 18,
  NVTX_PAYLOAD_ENTRY_TYPE_FLOAT = 19,
  NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE = 20,
  NVTX_PAYLOAD_ENTRY_TYPE_CSTRING = 75,
  NVTX_PAYLOAD_SCHEMA_TYPE_STATIC = 1,
  NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC = 2,
  NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME = 1 << 1,
  NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE = 1 << 2,
  NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES = 1 << 4,
  NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES = 1 << 5,
  NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE = 1 << 6,
  NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID = 1 << 8,
  NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES = 1 << 2,
  NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES = 1 << 3,
  NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE = 1 << 4,
  NVTX_SEMANTIC_ID_TIME_V1 = 2,
  NVTX_SEMANTIC_ID_COUNTERS_V1 = 5,
  NVTX_COUNTER_SAMPLE_ZERO = 0,
  NVTX_COUNTER_SAMPLE_UNCHANGED,
  NVTX_COUNTER_SAMPLE_UNAVAILABLE,
  NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_MONOTONIC = 14
};

typedef void (*function)(void);
static function core[16], core2[16];
static function *core_table[17], *core2_table[17];
static int module_table(int module, function*** table, unsigned* size) {
  for (int i = 1; i < 16; ++i) core_table[i] = &core[i], core2_table[i] = &core2[i];
  if (module != 1 && module != 5) return 0;
  *table = module == 1 ? core_table : core2_table;
  *size = 16;
  return 1;
}
static const struct {
  size_t struct_size;
  int (*get)(int, function***, unsigned*);
} callbacks = {sizeof callbacks, module_table};
static const void* export_table(uint32_t id) {
  return id == 1 ? &callbacks : NULL;
}
typedef struct {
  size_t id, slots;
  intptr_t* functions;
} Segment;
typedef struct {
  uint16_t version, size, id, compatible;
  size_t segments;
  Segment* segment;
  void* get;
  const void* info;
} Module;
static intptr_t payload_slots[63], counter_slots[63];

static void initialize(void) {
  const char* path = getenv("NVTX_INJECTION64_PATH");
  void* library = path == NULL ? NULL : dlopen(path, RTLD_NOW);
  int (*first)(const void* (*)(uint32_t)) =
      library == NULL ? NULL : (int (*)(const void* (*)(uint32_t)))dlsym(library, "InitializeInjectionNvtx2");
  int (*extension)(Module*) =
      library == NULL ? NULL : (int (*)(Module*))dlsym(library, "InitializeInjectionNvtxExtension");
  if (first == NULL || extension == NULL || first(export_table) != 1) return;
  Segment payloads = {0, 63, payload_slots}, counters = {0, 63, counter_slots};
  Module payload = {3, sizeof payload, 2, 0x0104, 1, &payloads, NULL, NULL};
  Module counter = {3, sizeof counter, 4, 0x0102, 1, &counters, NULL, NULL};
  extension(&payload);
  extension(&counter);
}
#define INITIALIZE() initialize()
#define CALL(type, slot, ...) (((slot) == 0) ? 0 : ((type)(slot))(__VA_ARGS__))
#define nvtxDomainCreateA(name) (core2[12] ? ((nvtxDomainHandle_t(*)(const char*))core2[12])(name) : NULL)
#define nvtxDomainRangePushEx(domain, event) \
  if (core2[4]) ((int (*)(nvtxDomainHandle_t, const void*))core2[4])(domain, event)
#define nvtxDomainRangePop(domain) \
  if (core2[5]) ((int (*)(nvtxDomainHandle_t))core2[5])(domain)
#define nvtxPayloadSchemaRegister(domain, a) \
  CALL(uint64_t (*)(nvtxDomainHandle_t, const void*), payload_slots[0], domain, a)
#define nvtxPayloadEnumRegister(domain, a) \
  CALL(uint64_t (*)(nvtxDomainHandle_t, const void*), payload_slots[1], domain, a)
#define nvtxMarkPayload(domain, p, n) \
  if (payload_slots[2]) ((void (*)(nvtxDomainHandle_t, const void*, size_t))payload_slots[2])(domain, p, n)
#define nvtxRangePushPayload(domain, p, n) \
  CALL(int (*)(nvtxDomainHandle_t, const void*, size_t), payload_slots[3], domain, p, n)
#define nvtxRangePopPayload(domain, p, n) \
  CALL(int (*)(nvtxDomainHandle_t, const void*, size_t), payload_slots[4], domain, p, n)
#define nvtxRangeStartPayload(domain, p, n) \
  CALL(uint64_t (*)(nvtxDomainHandle_t, const void*, size_t), payload_slots[5], domain, p, n)
#define nvtxRangeEndPayload(domain, id, p, n) \
  if (payload_slots[6])                       \
  ((void (*)(nvtxDomainHandle_t, uint64_t, const void*, size_t))payload_slots[6])(domain, id, p, n)
#define nvtxEventSubmit(domain, p, n) \
  if (payload_slots[16]) ((void (*)(nvtxDomainHandle_t, const void*, size_t))payload_slots[16])(domain, p, n)
#define nvtxCounterRegister(domain, a) CALL(uint64_t (*)(nvtxDomainHandle_t, const void*), counter_slots[0], domain, a)
#define nvtxCounterSampleInt64(domain, id, v) \
  if (counter_slots[1]) ((void (*)(nvtxDomainHandle_t, uint64_t, int64_t))counter_slots[1])(domain, id, v)
#define nvtxCounterSampleFloat64(domain, id, v) \
  if (counter_slots[2]) ((void (*)(nvtxDomainHandle_t, uint64_t, double))counter_slots[2])(domain, id, v)
#define nvtxCounterSample(domain, id, v, n) \
  if (counter_slots[3])                     \
  ((void (*)(nvtxDomainHandle_t, uint64_t, const void*, size_t))counter_slots[3])(domain, id, v, n)
#define nvtxCounterSampleNoValue(domain, id, r) \
  if (counter_slots[4]) ((void (*)(nvtxDomainHandle_t, uint64_t, uint8_t))counter_slots[4])(domain, id, r)
#define nvtxCounterBatchSubmit(domain, b) \
  if (counter_slots[5]) ((void (*)(nvtxDomainHandle_t, const void*))counter_slots[5])(domain, b)
#endif

typedef struct {
  uint32_t a;
  float b;
} Inner;
typedef struct {
  int32_t step;
  double loss;
  const char* phase;
  uint8_t state;
  char tag[8];
  int32_t shape[2];
  Inner inner;
} Step;
typedef struct {
  uint64_t used, unused;
} Memory;

static uint64_t schema(nvtxDomainHandle_t domain, const char* name, const nvtxPayloadSchemaEntry_t* entries,
                       size_t count, size_t size, uint64_t id) {
  nvtxPayloadSchemaAttr_t attributes = {0};
  attributes.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                         NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                         NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
                         (id != 0 ? NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID : 0);
  attributes.name = name;
  attributes.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  attributes.entries = entries;
  attributes.numEntries = count;
  attributes.payloadStaticSize = size;
  attributes.schemaId = id;
  return nvtxPayloadSchemaRegister(domain, &attributes);
}

static void payloads(nvtxDomainHandle_t domain) {
  const nvtxPayloadEnum_t states[] = {{"idle", 0, 0}, {"busy", 1, 0}};
  nvtxPayloadEnumAttr_t enumeration = {0};
  enumeration.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
                          NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE;
  enumeration.entries = states;
  enumeration.numEntries = 2;
  enumeration.sizeOfEnum = 1;
  const uint64_t state = nvtxPayloadEnumRegister(domain, &enumeration);
  const nvtxPayloadSchemaEntry_t inner[] = {{0, NVTX_PAYLOAD_ENTRY_TYPE_UINT32, "a"},
                                            {0, NVTX_PAYLOAD_ENTRY_TYPE_FLOAT, "b"}};
  const uint64_t inner_id = schema(domain, "Inner", inner, 2, sizeof(Inner), 0);
  const nvtxPayloadSchemaEntry_t step[] = {
      {0, NVTX_PAYLOAD_ENTRY_TYPE_INT32, "step"},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, "loss"},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "phase"},
      {0, state, "state"},
      {NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, NVTX_PAYLOAD_ENTRY_TYPE_CHAR, "tag", NULL, 8},
      {NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, NVTX_PAYLOAD_ENTRY_TYPE_INT32, "shape", NULL, 2},
      {0, inner_id, "inner"}};
  const uint64_t step_id = schema(domain, "Step", step, 7, sizeof(Step), (1 << 24) + 7);
  const nvtxPayloadSchemaEntry_t rows[] = {{0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "rows"}};
  const uint64_t rows_id = schema(domain, "Rows", rows, 1, 8, 0);
  const nvtxPayloadSchemaEntry_t message[] = {
      {NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "message"},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_INT64, "left"}};
  const uint64_t message_id = schema(domain, "Message", message, 2, 16, 0);

  const uint64_t counted = 12345678901;
  const nvtxPayloadData_t end = {rows_id, 8, &counted};
  for (int i = 0; i < 2; ++i) {
    const Step values = {i - 1,  0.5 * i,  i == 0 ? "warm \"up\"" : (const char*)16, (uint8_t)i, "abc",
                         {3, 4}, {7, 1.5f}};
    const nvtxPayloadData_t data = {step_id, sizeof values, &values};
    nvtxEventAttributes_t event = {0};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = "train step";
    event.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    event.reserved0 = 1;
    event.payload.ullValue = (uint64_t)(uintptr_t)&data;
    nvtxDomainRangePushEx(domain, &event);
    (void)nvtxRangePopPayload(domain, &end, 1);
  }
  const struct {
    const char* text;
    int64_t left;
  } told = {"saved", -3};
  const nvtxPayloadData_t data = {message_id, sizeof told, &told};
  nvtxMarkPayload(domain, &data, 1);
  (void)nvtxRangePushPayload(domain, &data, 1);
  nvtxDomainRangePop(domain);
  const nvtxRangeId_t range = nvtxRangeStartPayload(domain, &data, 1);
  nvtxRangeEndPayload(domain, range, &end, 1);
  const double plain = 2.25;
  const nvtxPayloadData_t one = {NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, sizeof plain, &plain};
  nvtxMarkPayload(domain, &one, 1);

  /* What tacho counts. */
  const nvtxPayloadData_t nobody = {(1 << 24) + 99, 8, &counted}, small = {step_id, 4, &counted};
  nvtxMarkPayload(domain, &nobody, 1);
  nvtxMarkPayload(domain, &small, 1);
  const nvtxPayloadSchemaEntry_t odd[] = {
      {0, NVTX_PAYLOAD_ENTRY_TYPE_INT32, "n"},
      {NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX, NVTX_PAYLOAD_ENTRY_TYPE_INT32, "v"}};
  (void)schema(domain, "Odd", odd, 2, 4, 0);
  nvtxPayloadSchemaAttr_t dynamic = {0};
  dynamic.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                      NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES;
  dynamic.type = NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC;
  dynamic.entries = odd;
  dynamic.numEntries = 2;
  (void)nvtxPayloadSchemaRegister(domain, &dynamic);
  nvtxEventSubmit(domain, &data, 1);
}

static uint64_t counter(nvtxDomainHandle_t domain, const char* name, uint64_t schema_id,
                        const nvtxSemanticsHeader_t* semantics) {
  nvtxCounterAttr_t attributes = {0};
  attributes.structSize = sizeof attributes;
  attributes.schemaId = schema_id;
  attributes.name = name;
  attributes.description = "of the test";
  attributes.semantics = semantics;
  return nvtxCounterRegister(domain, &attributes);
}

static void counters(nvtxDomainHandle_t domain) {
  nvtxSemanticsCounter_t kibibytes = {
      {sizeof kibibytes, NVTX_SEMANTIC_ID_COUNTERS_V1, 2, NULL}, 0, "B", 1024, 1, 0, {0}, {0}};
  const uint64_t depth = counter(domain, "queue depth", NVTX_PAYLOAD_ENTRY_TYPE_INT64, NULL);
  for (int i = 1; i <= 5; ++i) nvtxCounterSampleInt64(domain, depth, i * i);
  nvtxCounterSampleNoValue(domain, depth, NVTX_COUNTER_SAMPLE_UNCHANGED);
  nvtxCounterSampleNoValue(domain, depth, NVTX_COUNTER_SAMPLE_ZERO);
  nvtxCounterSampleNoValue(domain, depth, NVTX_COUNTER_SAMPLE_UNAVAILABLE);
  const uint64_t loss = counter(NULL, "loss", NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, NULL);
  nvtxCounterSampleFloat64(NULL, loss, 0.125);

  const nvtxPayloadSchemaEntry_t entries[] = {
      {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "used", NULL, 0, 0, &kibibytes.header},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "unused"}};
  const uint64_t memory_schema = schema(domain, "Memory", entries, 2, sizeof(Memory), 0);
  nvtxSemanticsTime_t monotonic = {{sizeof monotonic, NVTX_SEMANTIC_ID_TIME_V1, 1, NULL},
                                   NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_MONOTONIC};
  const uint64_t memory = counter(domain, "memory", memory_schema, &monotonic.header);
  const Memory now = {10, 90};
  nvtxCounterSample(domain, memory, &now, sizeof now);
  /* Four samples, 1 ms apart, the last one 10 ms ago. */
  struct timespec clock;
  clock_gettime(CLOCK_MONOTONIC, &clock);
  const int64_t here = clock.tv_sec * 1000000000LL + clock.tv_nsec;
  Memory batch[4];
  int64_t times[4];
  for (int i = 0; i < 4; ++i) {
    batch[i].used = 20 + i, batch[i].unused = 80 - i;
    times[i] = here - 10000000 - (3 - i) * 1000000;
  }
  nvtxCounterBatch_t submitted = {memory, batch, sizeof batch, 0, times, sizeof times};
  nvtxCounterBatchSubmit(domain, &submitted);
  const int64_t pair[2] = {here - 40000000, 2000000}; /* from 40 ms ago on, 2 ms apart */
  submitted.timestamps = pair;
  submitted.timestampsSize = sizeof pair;
  nvtxCounterBatchSubmit(domain, &submitted);
  const nvtxPayloadSchemaEntry_t stamped[] = {
      {NVTX_PAYLOAD_ENTRY_FLAG_TIMESTAMP, NVTX_PAYLOAD_ENTRY_TYPE_INT64, "at", NULL, 0, 0, &monotonic.header},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, "watts"}};
  const uint64_t power = counter(domain, "power", schema(domain, "Power", stamped, 2, 16, 0), NULL);
  const struct {
    int64_t at;
    double watts;
  } watts[2] = {{here - 60000000, 99.5}, {here - 50000000, 101}};
  const nvtxCounterBatch_t inside = {power, watts, sizeof watts, 0, NULL, 0};
  nvtxCounterBatchSubmit(domain, &inside);

  /* What tacho counts. */
  submitted.timestamps = NULL;
  submitted.timestampsSize = 0;
  nvtxCounterBatchSubmit(domain, &submitted);
  nvtxCounterSampleInt64(domain, 12345, 1);
}

int main(void) {
  INITIALIZE();
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("model");
  payloads(domain);
  counters(domain);
  puts("done");
  return 0;
}
