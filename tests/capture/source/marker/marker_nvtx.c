/* A program with NVTX 3 in it, without NVIDIA's headers: does what NVTX's header-only library does with the
 * file that NVTX_INJECTION64_PATH names, then calls every function of the table that it got, and checks what
 * they return. With -DREAL_NVTX the same calls go through the real headers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <wchar.h>

#define CHECK(condition)                                    \
  if (!(condition)) {                                       \
    fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
    return 1;                                               \
  }

#ifdef REAL_NVTX
#include <nvtx3/nvToolsExt.h>
#else
typedef struct {
  uint16_t version, size;
  uint32_t category;
  int32_t colorType;
  uint32_t color;
  int32_t payloadType, reserved0;
  union {
    uint64_t ullValue;
    int64_t llValue;
    double dValue;
    uint32_t uiValue;
    int32_t iValue;
    float fValue;
  } payload;
  int32_t messageType;
  union {
    const char* ascii;
    const wchar_t* unicode;
    void* registered;
  } message;
} nvtxEventAttributes_t;
typedef void* nvtxDomainHandle_t;
typedef void* nvtxStringHandle_t;
typedef uint64_t nvtxRangeId_t;
enum {
  NVTX_VERSION = 3,
  NVTX_COLOR_ARGB = 1,
  NVTX_MESSAGE_TYPE_ASCII = 1,
  NVTX_MESSAGE_TYPE_UNICODE,
  NVTX_MESSAGE_TYPE_REGISTERED
};
enum {
  NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 = 1,
  NVTX_PAYLOAD_TYPE_INT64,
  NVTX_PAYLOAD_TYPE_DOUBLE,
  NVTX_PAYLOAD_TYPE_UNSIGNED_INT32,
  NVTX_PAYLOAD_TYPE_INT32,
  NVTX_PAYLOAD_TYPE_FLOAT
};

typedef void (*function)(void);
static function core[16], core2[16];
static function* core_table[17];
static function* core2_table[17];
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

#define nvtxMarkEx(a) (core[1] ? ((void (*)(const nvtxEventAttributes_t*))core[1])(a) : (void)0)
#define nvtxMarkA(t) (core[2] ? ((void (*)(const char*))core[2])(t) : (void)0)
#define nvtxMarkW(t) (core[3] ? ((void (*)(const wchar_t*))core[3])(t) : (void)0)
#define nvtxRangeStartEx(a) (((nvtxRangeId_t(*)(const nvtxEventAttributes_t*))core[4])(a))
#define nvtxRangeStartA(t) (((nvtxRangeId_t(*)(const char*))core[5])(t))
#define nvtxRangeStartW(t) (((nvtxRangeId_t(*)(const wchar_t*))core[6])(t))
#define nvtxRangeEnd(i) (((void (*)(nvtxRangeId_t))core[7])(i))
#define nvtxRangePushEx(a) (((int (*)(const nvtxEventAttributes_t*))core[8])(a))
#define nvtxRangePushA(t) (((int (*)(const char*))core[9])(t))
#define nvtxRangePushW(t) (((int (*)(const wchar_t*))core[10])(t))
#define nvtxRangePop() (((int (*)(void))core[11])())
#define nvtxNameCategoryA(c, t) (((void (*)(uint32_t, const char*))core[12])(c, t))
#define nvtxNameCategoryW(c, t) (((void (*)(uint32_t, const wchar_t*))core[13])(c, t))
#define nvtxNameOsThreadA(c, t) (((void (*)(uint32_t, const char*))core[14])(c, t))
#define nvtxNameOsThreadW(c, t) (((void (*)(uint32_t, const wchar_t*))core[15])(c, t))
#define nvtxDomainMarkEx(d, a) (((void (*)(nvtxDomainHandle_t, const nvtxEventAttributes_t*))core2[1])(d, a))
#define nvtxDomainRangeStartEx(d, a) \
  (((nvtxRangeId_t(*)(nvtxDomainHandle_t, const nvtxEventAttributes_t*))core2[2])(d, a))
#define nvtxDomainRangeEnd(d, i) (((void (*)(nvtxDomainHandle_t, nvtxRangeId_t))core2[3])(d, i))
#define nvtxDomainRangePushEx(d, a) (((int (*)(nvtxDomainHandle_t, const nvtxEventAttributes_t*))core2[4])(d, a))
#define nvtxDomainRangePop(d) (((int (*)(nvtxDomainHandle_t))core2[5])(d))
#define nvtxDomainResourceCreate(d, a) (core2[6] ? ((void* (*)(nvtxDomainHandle_t, void*))core2[6])(d, a) : NULL)
#define nvtxDomainResourceDestroy(r) (core2[7] ? ((void (*)(void*))core2[7])(r) : (void)0)
#define nvtxDomainNameCategoryA(d, c, t) (((void (*)(nvtxDomainHandle_t, uint32_t, const char*))core2[8])(d, c, t))
#define nvtxDomainNameCategoryW(d, c, t) (((void (*)(nvtxDomainHandle_t, uint32_t, const wchar_t*))core2[9])(d, c, t))
#define nvtxDomainRegisterStringA(d, t) (((nvtxStringHandle_t(*)(nvtxDomainHandle_t, const char*))core2[10])(d, t))
#define nvtxDomainRegisterStringW(d, t) (((nvtxStringHandle_t(*)(nvtxDomainHandle_t, const wchar_t*))core2[11])(d, t))
#define nvtxDomainCreateA(t) (((nvtxDomainHandle_t(*)(const char*))core2[12])(t))
#define nvtxDomainCreateW(t) (((nvtxDomainHandle_t(*)(const wchar_t*))core2[13])(t))
#define nvtxDomainDestroy(d) (core2[14] ? ((void (*)(nvtxDomainHandle_t))core2[14])(d) : (void)0)
#endif

static int load(void) {
#ifndef REAL_NVTX
  const char* path = getenv("NVTX_INJECTION64_PATH");
  void* library = path != NULL ? dlopen(path, RTLD_LAZY) : NULL;
  int (*init)(const void* (*)(uint32_t)) =
      library != NULL ? (int (*)(const void* (*)(uint32_t)))dlsym(library, "InitializeInjectionNvtx2") : NULL;
  return init != NULL && init(export_table);
#else
  return 1;
#endif
}

int main(int argc, char** argv) {
  const int attached = load();
  if (argc > 1 && strcmp(argv[1], "untraced") == 0) {
    CHECK(!attached);
    return 0;
  }
  CHECK(attached);
  nvtxMarkA("ascii");
  nvtxMarkW(L"wide \u00e4 \u20ac \U0001f600");
  nvtxEventAttributes_t event;
  memset(&event, 0, sizeof event);
  event.version = NVTX_VERSION;
  event.size = sizeof event;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = "full";
  event.category = 7;
  event.colorType = NVTX_COLOR_ARGB;
  event.color = 0xff112233;
  event.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  event.payload.dValue = 2.5;
  nvtxNameCategoryA(7, "seventh");
  nvtxNameCategoryW(8, L"eighth");
  nvtxMarkEx(&event);
  event.category = 8;
  event.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  event.payload.iValue = -3;
  nvtxMarkEx(&event);
  event.category = 9; /* has no name */
  event.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
  event.payload.fValue = 0.25f;
  nvtxMarkEx(&event);
  event.colorType = 0;
  event.category = 0;
  event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
  event.payload.uiValue = 4000000000u;
  nvtxMarkEx(&event);

  CHECK(nvtxRangePushA("outer") == 0);
  CHECK(nvtxRangePushW(L"inner") == 1);
  event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  event.payload.ullValue = 1234567890123ull;
  CHECK(nvtxRangePushEx(&event) == 2);
  CHECK(nvtxRangePop() == 2);
  CHECK(nvtxRangePop() == 1);
  CHECK(nvtxRangePop() == 0);
  CHECK(nvtxRangePop() < 0);
  const nvtxRangeId_t a = nvtxRangeStartA("range a"), b = nvtxRangeStartW(L"range b"), c = nvtxRangeStartEx(&event);
  CHECK(a != b && b != c && a != 0);
  nvtxRangeEnd(b);
  nvtxRangeEnd(a);
  nvtxRangeEnd(c);

  nvtxDomainHandle_t domain = nvtxDomainCreateA("library"), other = nvtxDomainCreateW(L"andere");
  CHECK(domain != NULL && other != NULL && domain != other);
  nvtxStringHandle_t text = nvtxDomainRegisterStringA(domain, "registered"),
                     wide = nvtxDomainRegisterStringW(domain, L"registered wide");
  CHECK(text != NULL && wide != NULL && text != wide);
  nvtxDomainNameCategoryA(domain, 7, "library's seventh");
  nvtxDomainNameCategoryW(other, 7, L"other's seventh");
  event.category = 7;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = text;
  CHECK(nvtxDomainRangePushEx(domain, &event) == 0);
  event.message.registered = wide;
  CHECK(nvtxDomainRangePushEx(other, &event) == 0); /* a stack of its own */
  CHECK(nvtxDomainRangePop(domain) == 0);
  CHECK(nvtxDomainRangePop(domain) < 0);
  CHECK(nvtxDomainRangePop(other) == 0);
  nvtxDomainMarkEx(domain, &event);
  const nvtxRangeId_t d = nvtxDomainRangeStartEx(domain, &event);
  nvtxDomainRangeEnd(domain, d);
  event.messageType = NVTX_MESSAGE_TYPE_UNICODE;
  event.message.unicode = L"unicode event";
  nvtxDomainMarkEx(NULL, &event);
  nvtxDomainResourceDestroy(nvtxDomainResourceCreate(domain, NULL));
  nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "main thread");
  nvtxNameOsThreadW((uint32_t)getppid(), L"somebody else");
  nvtxDomainDestroy(domain);
  return 0;
}
