// The floor for the cost of tracing CUDA: a bare CUPTI client that enables the same activity kinds, hands out buffers,
// walks the returned ones and does nothing but count. Loaded by CUDA_INJECTION64_PATH.
//
// FLOOR_KINDS: letters of what to enable (k kernels, c copies and fills, r runtime API, q not its calls that only ask,
// d driver API, l only launching driver calls, m memory, s synchronisation, o overhead, j compilation, g graph launches
// as one span), default kcrd. FLOOR_THREAD_IDS: if set, records carry kernel thread ids instead of CUPTI's default.
// FLOOR_BUFFER: bytes per buffer, default 8 MiB. FLOOR_REPORT: file for the counts, default none.
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

namespace {

std::atomic<unsigned long long> g_counts[128];
std::atomic<unsigned long long> g_bytes, g_buffers;
size_t g_buffer_size = 8u << 20;

void requested(uint8_t** buffer, size_t* size, size_t* records) {
  *buffer = static_cast<uint8_t*>(aligned_alloc(64, g_buffer_size));
  *size = *buffer == nullptr ? 0 : g_buffer_size;
  *records = 0;
}

void completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  unsigned long long counts[128] = {};
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) ++counts[record->kind & 127];
  for (int i = 0; i < 128; ++i)
    if (counts[i] != 0) g_counts[i].fetch_add(counts[i], std::memory_order_relaxed);
  g_bytes.fetch_add(valid, std::memory_order_relaxed);
  g_buffers.fetch_add(1, std::memory_order_relaxed);
  free(buffer);
}

void report() {
  cuptiActivityFlushAll(1);
  const char* const path = getenv("FLOOR_REPORT");
  if (path == nullptr) return;
  FILE* const file = fopen(path, "w");
  if (file == nullptr) return;
  for (int i = 0; i < 128; ++i)
    if (g_counts[i] != 0) fprintf(file, "kind %d %llu\n", i, g_counts[i].load());
  fprintf(file, "bytes %llu\nbuffers %llu\n", g_bytes.load(), g_buffers.load());
  fclose(file);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char* kinds = getenv("FLOOR_KINDS");
  if (kinds == nullptr) kinds = "kcrd";
  if (const char* size = getenv("FLOOR_BUFFER")) g_buffer_size = strtoull(size, nullptr, 10) & ~size_t{63};
  if (getenv("FLOOR_THREAD_IDS") != nullptr) cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  cuptiActivityRegisterCallbacks(requested, completed);
  for (const char* c = kinds; *c != '\0'; ++c) switch (*c) {
      case 'k':
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        break;
      case 'c':
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY2);
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET);
        break;
      case 'r':
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME);
        break;
      case 'q':  // without the runtime calls that only ask
        for (uint32_t id = 1; id < 2048; ++id) {
          const char* name = nullptr;
          if (cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, id, &name) != CUPTI_SUCCESS || name == nullptr)
            continue;
          for (const char* question : {"cudaGetDevice_v", "cudaGetLastError_v", "cudaPeekAtLastError_v",
                                       "cudaDeviceGetAttribute_v", "cudaStreamIsCapturing"})
            if (strncmp(name, question, strlen(question)) == 0) cuptiActivityEnableRuntimeApi(id, 0);
        }
        break;
      case 'd':
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER);
        break;
      case 'l':
        for (uint32_t id = 1; id < 2048; ++id) {
          const char* name = nullptr;
          if (cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, id, &name) != CUPTI_SUCCESS || name == nullptr) continue;
          if (strncmp(name, "cuLaunch", 8) == 0 || strncmp(name, "cuGraphLaunch", 13) == 0)
            cuptiActivityEnableDriverApi(id, 1);
        }
        break;
      case 'm':
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMORY2);
        break;
      case 's':
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
        break;
      case 'o':
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_OVERHEAD);
        break;
      case 'j':
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_JIT);
        break;
      case 'g':
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
        break;
      default:
        break;
    }
  atexit(report);
  return 1;
}
