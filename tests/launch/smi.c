/* Stand-ins for the management libraries, built three times: NVML, AMD_SMI, ROCM_SMI. Two GPUs; the second is lost after
 * SMI_LOST readings (environment), SMI_FAIL=1: the library does not start, SMI_USER=PID:GPU: that process uses that GPU,
 * and the GPUs have unique ids. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int g_reads;
static int fails(void) {
  return getenv("SMI_FAIL") != NULL;
}
static int lost(long gpu) {
  const char* after = getenv("SMI_LOST");
  return gpu == 1 && after != NULL && g_reads > atoi(after);
}

#ifdef NVML
int nvmlInit_v2(void) {
  return fails() ? 9 : 0;
}
int nvmlShutdown(void) {
  return 0;
}
const char* nvmlErrorString(int code) {
  return code == 15 ? "GPU is lost" : code == 9 ? "Driver Not Loaded" : "Not Supported";
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void** device) {
  *device = (void*)(uintptr_t)(i + 1);
  return 0;
}
int nvmlDeviceGetName(void* d, char* text, unsigned size) {
  (void)d;
  strncpy(text, "Stand-in 9000", size);
  return 0;
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  strncpy(text, "999.1", size);
  return 0;
}
#define GPU(d) ((long)(uintptr_t)(d)-1)
#define ALIVE(d) \
  if (lost(GPU(d))) return 15
int nvmlDeviceGetUUID(void* d, char* text, unsigned size) {
  if (getenv("SMI_USER") == NULL) return 3;
  const int b = (int)GPU(d) + 1;
  snprintf(text, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b, b, b, b, b, b, b,
           b, b, b, b, b, b, b, b, b);
  return 0;
}
struct process {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
int nvmlDeviceGetComputeRunningProcesses_v3(void* d, unsigned* count, struct process* processes) {
  const char* const user = getenv("SMI_USER");
  const char* const gpu = user != NULL ? strchr(user, ':') : NULL;
  if (gpu == NULL || atol(gpu + 1) != GPU(d) || *count == 0) {
    *count = 0;
    return 0;
  }
  *count = 1;
  processes[0] = (struct process){.pid = (unsigned)atol(user)};
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* d, unsigned* rates) {
  ++g_reads;
  ALIVE(d);
  rates[0] = 40 + (unsigned)GPU(d);
  rates[1] = 20;
  return 0;
}
int nvmlDeviceGetEncoderUtilization(void* d, unsigned* u, unsigned* period) {
  ALIVE(d);
  *u = 3;
  *period = 1;
  return 0;
}
int nvmlDeviceGetDecoderUtilization(void* d, unsigned* u, unsigned* period) {
  ALIVE(d);
  *u = 7;
  *period = 1;
  return 0;
}
int nvmlDeviceGetClockInfo(void* d, int type, unsigned* mhz) {
  ALIVE(d);
  *mhz = type == 1 ? 1980 : 2619;
  return 0;
}
int nvmlDeviceGetPowerUsage(void* d, unsigned* mw) {
  ALIVE(d);
  *mw = 123456;
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void* d, unsigned long long* mj) {
  ALIVE(d);
  *mj = 5000;
  return 0;
}
int nvmlDeviceGetTemperature(void* d, int sensor, unsigned* c) {
  (void)sensor;
  ALIVE(d);
  *c = 55;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* d, unsigned long long* m) {
  ALIVE(d);
  m[0] = 100;
  m[1] = 60;
  m[2] = 40000000;
  return 0;
}
int nvmlDeviceGetPcieThroughput(void* d, int counter, unsigned* kb) {
  ALIVE(d);
  *kb = counter == 0 ? 11 : 22;
  return 0;
}
struct field {
  unsigned id, scope;
  long long time, latency;
  int type, result;
  unsigned long long value;
};
int nvmlDeviceGetFieldValues(void* d, int count, struct field* f) {
  ALIVE(d);
  for (int i = 0; i < count; ++i) {
    f[i].result = 0;
    f[i].value = f[i].id == 138 ? 1 : 2;
  }
  return 0;
}
#endif

#ifdef AMD_SMI
int amdsmi_init(uint64_t flags) {
  (void)flags;
  return fails() ? 34 : 0;
}
int amdsmi_shut_down(void) {
  return 0;
}
int amdsmi_get_socket_handles(uint32_t* count, void** handles) {
  if (handles != NULL)
    for (uint32_t i = 0; i < *count; ++i) handles[i] = (void*)(uintptr_t)(i + 1);
  *count = 2;
  return 0;
}
int amdsmi_get_processor_handles(void* socket, uint32_t* count, void** handles) {
  if (handles != NULL) handles[0] = socket;
  *count = 1;
  return 0;
}
#define GPU(d) ((long)(uintptr_t)(d)-1)
#define ALIVE(d) \
  if (lost(GPU(d))) return 31
int amdsmi_get_gpu_activity(void* d, uint32_t* engines) {
  ++g_reads;
  ALIVE(d);
  engines[0] = 41;
  engines[1] = 21;
  engines[2] = 0xffffffff;
  return 0;
}
int amdsmi_get_energy_count(void* d, uint64_t* count, float* resolution, uint64_t* time) {
  static uint64_t moment[2];
  ALIVE(d);
  /* 100 W: 1e5 units of 15.3 uJ in 15.3 ms */
  moment[GPU(d)] += 1;
  *count = moment[GPU(d)] * 100000;
  *resolution = 15.3f;
  *time = moment[GPU(d)] * 15300000;
  return 0;
}
int amdsmi_get_temp_metric(void* d, int sensor, int metric, int64_t* c) {
  (void)metric;
  ALIVE(d);
  *c = sensor == 1 ? 66 : 50;
  return 0;
}
int amdsmi_get_gpu_memory_usage(void* d, int type, uint64_t* bytes) {
  (void)type;
  ALIVE(d);
  *bytes = 7000000;
  return 0;
}
int amdsmi_get_clock_info(void* d, int type, uint32_t* info) {
  ALIVE(d);
  info[0] = type == 0 ? 2100 : 1300;
  return 0;
}
#endif

#ifdef ROCM_SMI
int rsmi_init(uint64_t flags) {
  (void)flags;
  return fails() ? 8 : 0;
}
int rsmi_shut_down(void) {
  return 0;
}
int rsmi_num_monitor_devices(uint32_t* count) {
  *count = 2;
  return 0;
}
int rsmi_dev_name_get(uint32_t i, char* text, size_t size) {
  (void)i;
  strncpy(text, "Stand-in 300X", size);
  return 0;
}
#define ALIVE(i) \
  if (lost((long)(i))) return 4
int rsmi_dev_busy_percent_get(uint32_t i, uint32_t* p) {
  ++g_reads;
  ALIVE(i);
  *p = 42;
  return 0;
}
int rsmi_dev_memory_busy_percent_get(uint32_t i, uint32_t* p) {
  ALIVE(i);
  *p = 22;
  return 0;
}
int rsmi_dev_power_ave_get(uint32_t i, uint32_t sensor, uint64_t* uw) {
  (void)sensor;
  ALIVE(i);
  *uw = 99000000;
  return 0;
}
int rsmi_dev_temp_metric_get(uint32_t i, uint32_t sensor, int metric, int64_t* t) {
  (void)sensor;
  (void)metric;
  ALIVE(i);
  *t = 51000;
  return 0;
}
int rsmi_dev_memory_usage_get(uint32_t i, int type, uint64_t* bytes) {
  (void)type;
  ALIVE(i);
  *bytes = 8000000;
  return 0;
}
int rsmi_dev_gpu_clk_freq_get(uint32_t i, int kind, void* out) {
  ALIVE(i);
  uint64_t hertz[3] = {500000000, kind == 0 ? 1700000000 : 1600000000, 2000000000};
  if (getenv("SMI_OLD_LAYOUT") != NULL) {
    uint32_t head[2] = {3, 1};
    memcpy(out, head, 8);
    memcpy((char*)out + 8, hertz, sizeof hertz);
  } else {
    uint32_t head[2] = {3, 1};
    *(unsigned char*)out = 0;
    memcpy((char*)out + 4, head, 8);
    memcpy((char*)out + 16, hertz, sizeof hertz);
  }
  return 0;
}
#endif
