// What cuptiFinalize does to a program, by itself and without tacho: cupti_finalize WORD...   does what the words say, one after the other,
// and prints what came of it. attach.py's section "facts" has the words; each row is a process, because some end it.
//   capture instantiate upload update destroy   a graph of ten kernels, and its executable
//   launch         replays it twenty times: right, or what failed        single   a hundred launches of single kernels, likewise
//   subscribe register kinds   CUPTI's callbacks, a clock for it (CLOCK_MONOTONIC_RAW), activity records of kernels, copies and calls
//   off unsubscribe            the same backwards, the records handed over
//   finalize finalize-now      unsubscribes and finalises: at the end of a call of its own, or right now
//   threads rate stop          four threads launch all the time; microseconds a launch; they end, and their sums are right or wrong
//   long           a kernel of two seconds on a stream of its own       longest   the longest time since the last one, or since the
//                  threads began, in which one of the threads did not come from 64 launches to the next
//   number         CUPTI's number (correlation) of a call of its own
//   rounds         fifty times subscribe, kinds, off, finalize
//   clock          CUPTI's time less CLOCK_MONOTONIC_RAW and CLOCK_REALTIME
//   memory         the process's resident memory that is no file's, and what of it free() had kept
//   known          what CUPTI answers to calls that need no subscriber: whether it tells that somebody was here before
#include <cuda_runtime.h>
#include <cupti.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

__global__ void count(unsigned* sum) {
  *sum += 1;
}
__device__ unsigned long long gpu_now() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
__global__ void last(unsigned long long ns) {
  const unsigned long long begin = gpu_now();
  while (gpu_now() - begin < ns) continue;
}

struct Work {
  cudaStream_t stream = nullptr;
  unsigned* sum = nullptr;
  unsigned launches = 0;

  void create() {
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMalloc(&sum, sizeof *sum);
    cudaMemset(sum, 0, sizeof *sum);
    cudaDeviceSynchronize();
  }
  void launch() {
    count<<<1, 1, 0, stream>>>(sum);
    ++launches;
  }
  // Null, or what is wrong.
  const char* wrong() const {
    unsigned now = 0;
    const cudaError_t waited = cudaStreamSynchronize(stream);
    if (waited != cudaSuccess) return cudaGetErrorString(waited);
    const cudaError_t copied = cudaMemcpyAsync(&now, sum, sizeof now, cudaMemcpyDeviceToHost, stream);
    if (copied != cudaSuccess) return cudaGetErrorString(copied);
    cudaStreamSynchronize(stream);
    return now == launches ? nullptr : "another sum";
  }
};

Work g_work;
cudaGraph_t g_graph = nullptr;
cudaGraphExec_t g_executable = nullptr;
CUpti_SubscriberHandle g_subscriber = nullptr;
bool g_wrong = false;

int64_t clock_ns(clockid_t clock) {
  timespec at{};
  clock_gettime(clock, &at);
  return int64_t{at.tv_sec} * 1'000'000'000 + at.tv_nsec;
}

void say(const char* word, const char* wrong) {
  g_wrong = g_wrong || wrong != nullptr;
  printf("%s: %s; ", word, wrong != nullptr ? wrong : "right");
}
void say(const char* word, int result) {
  if (result != 0) printf("%s: %d; ", word, result);
}

// Graphs

void capture() {
  cudaStreamBeginCapture(g_work.stream, cudaStreamCaptureModeThreadLocal);
  for (int i = 0; i < 10; ++i) count<<<1, 1, 0, g_work.stream>>>(g_work.sum);
  say("capture", cudaStreamEndCapture(g_work.stream, &g_graph));
}
void replay() {
  for (int i = 0; i < 20; ++i) {
    const cudaError_t result = cudaGraphLaunch(g_executable, g_work.stream);
    if (result != cudaSuccess) return say("launch", cudaGetErrorString(result));
    g_work.launches += 10;
  }
  say("launch", g_work.wrong());
}
void update() {
  cudaGraphExecUpdateResultInfo info{};
  say("update", cudaGraphExecUpdate(g_executable, g_graph, &info));
}
void single() {
  for (int i = 0; i < 100; ++i) g_work.launch();
  say("single", g_work.wrong());
}

// CUPTI. Its functions are looked up, so that it is not there before `subscribe`.

void* function(const char* name) {
  static void* library = nullptr;
  for (const char* path :
       {"libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so.13", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13"})
    if (library == nullptr) library = dlopen(path, RTLD_NOW);
  void* const found = library != nullptr ? dlsym(library, name) : nullptr;
  if (found == nullptr) {
    printf("%s was not found\n", name);
    exit(3);
  }
  return found;
}
#define CUPTI(name) reinterpret_cast<decltype(&name)>(function(#name))

std::atomic<uint64_t> g_kernels{0}, g_graph_kernels{0}, g_odd{0};
unsigned g_least = ~0u, g_most = 0;  // of kernels' correlations
uint64_t g_begin = 0;                // of the records, by CUPTI's clock
std::atomic<pthread_t> g_finalizes{0}, g_asks{0};
unsigned g_number = 0;
int g_unsubscribed = -1, g_finalized = -1;

uint64_t CUPTIAPI time_of_ours() {
  return static_cast<uint64_t>(clock_ns(CLOCK_MONOTONIC_RAW));
}
uint64_t time_of_cupti() {
  uint64_t time = 0;
  CUPTI(cuptiGetTimestamp)(&time);
  return time;
}
void CUPTIAPI requested(uint8_t** buffer, size_t* size, size_t* records) {
  *size = 1 << 20;
  *buffer = static_cast<uint8_t*>(aligned_alloc(8, *size));
  *records = 0;
}
void CUPTIAPI completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (valid != 0 && CUPTI(cuptiActivityGetNextRecord)(buffer, valid, &record) == CUPTI_SUCCESS)
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto* const kernel = reinterpret_cast<const CUpti_ActivityKernel9*>(record);
      ++g_kernels;
      g_graph_kernels += kernel->graphNodeId != 0;
      if (kernel->correlationId < g_least) g_least = kernel->correlationId;
      if (kernel->correlationId > g_most) g_most = kernel->correlationId;
      g_odd += kernel->start < g_begin || kernel->end < kernel->start || kernel->end > time_of_cupti();
    }
  free(buffer);
}
void finalize_now() {
  g_unsubscribed = CUPTI(cuptiUnsubscribe)(g_subscriber);
  g_finalized = CUPTI(cuptiFinalize)();
}
void CUPTIAPI on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId, const void* data) {
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return;
  const auto* const call = static_cast<const CUpti_CallbackData*>(data);
  if (g_asks.load() == pthread_self()) g_number = call->correlationId;
  if (g_finalizes.load() == pthread_self() && call->callbackSite == CUPTI_API_EXIT) finalize_now();
}
// A call of the driver's that CUPTI tells of, while `whose` names this thread.
void make_own_call(std::atomic<pthread_t>& whose) {
  CUPTI(cuptiEnableCallback)(1, g_subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuDriverGetVersion);
  const auto version = reinterpret_cast<int (*)(int*)>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuDriverGetVersion"));
  int number = 0;
  whose = pthread_self();
  version(&number);
  whose = 0;
}
void tell_number() {
  g_number = 0;
  make_own_call(g_asks);
  printf("number %u; ", g_number);
}
void subscribe() {
  say("subscribe", CUPTI(cuptiSubscribe)(&g_subscriber, reinterpret_cast<CUpti_CallbackFunc>(on_callback), nullptr));
}
constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_DEVICE,  CUPTI_ACTIVITY_KIND_CONTEXT, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMCPY,  CUPTI_ACTIVITY_KIND_MEMSET,  CUPTI_ACTIVITY_KIND_RUNTIME,
    CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_OVERHEAD};
void kinds() {
  g_kernels = g_graph_kernels = g_odd = 0;
  g_least = ~0u;
  g_most = 0;
  g_begin = time_of_cupti();
  say("callbacks", CUPTI(cuptiActivityRegisterCallbacks)(requested, completed));
  for (const CUpti_ActivityKind kind : kKinds) say("enable", CUPTI(cuptiActivityEnable)(kind));
}
void off() {
  usleep(20'000);
  CUPTI(cuptiActivityFlushAll)(0);
  for (const CUpti_ActivityKind kind : kKinds) CUPTI(cuptiActivityDisable)(kind);
  CUPTI(cuptiActivityFlushAll)(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}
void finalize(bool at_once) {
  const int64_t begin = clock_ns(CLOCK_MONOTONIC_RAW);
  g_unsubscribed = g_finalized = -1;
  if (at_once) {
    finalize_now();
  } else {
    make_own_call(g_finalizes);
  }
  if (g_unsubscribed != 0 || g_finalized != 0) say("finalize", "it was refused or not called");
  printf("finalised in %.1f ms; ", static_cast<double>(clock_ns(CLOCK_MONOTONIC_RAW) - begin) * 1e-6);
}
void tell_clock() {
  uint64_t theirs = 0;
  const int64_t raw = clock_ns(CLOCK_MONOTONIC_RAW), real = clock_ns(CLOCK_REALTIME);
  const int result = CUPTI(cuptiGetTimestamp)(&theirs);
  printf("clock %d: raw %+lld, real %+lld ns; ", result, static_cast<long long>(theirs) - static_cast<long long>(raw),
         static_cast<long long>(theirs) - static_cast<long long>(real));
}
void tell_known() {
  size_t dropped = 0, size = 1;
  uint8_t value = 0;
  printf("known: flush %d, dropped %d, attribute %d, disable %d; ", static_cast<int>(CUPTI(cuptiActivityFlushAll)(0)),
         static_cast<int>(CUPTI(cuptiActivityGetNumDroppedRecords)(nullptr, 0, &dropped)),
         static_cast<int>(CUPTI(cuptiActivityGetAttribute)(static_cast<CUpti_ActivityAttribute>(9), &size, &value)),
         static_cast<int>(CUPTI(cuptiActivityDisable)(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)));
}

long anonymous_kib() {
  long kib = -1;
  char line[256];
  FILE* const status = fopen("/proc/self/status", "r");
  while (status != nullptr && fgets(line, sizeof line, status) != nullptr) sscanf(line, "RssAnon: %ld", &kib);
  if (status != nullptr) fclose(status);
  return kib;
}
void tell_memory() {
  const long before = anonymous_kib();
  malloc_trim(0);
  printf("%ld KiB, %ld of them kept by free(); ", before, before - anonymous_kib());
}

// Threads

std::atomic<bool> g_stop{false};
std::atomic<uint64_t> g_launches{0};
std::atomic<int64_t> g_longest{0};
cudaStream_t g_long_stream = nullptr;
std::vector<std::thread> g_threads;
Work g_works[4];

void start_threads() {
  cudaStreamCreateWithFlags(&g_long_stream, cudaStreamNonBlocking);
  last<<<1, 1, 0, g_long_stream>>>(0);  // the first launch loads it
  cudaStreamSynchronize(g_long_stream);
  for (Work& work : g_works) {
    work.create();
    g_threads.emplace_back([&work] {
      while (!g_stop) {
        const int64_t begin = clock_ns(CLOCK_MONOTONIC_RAW);
        for (int i = 0; i < 64; ++i) work.launch();
        g_launches += 64;
        cudaStreamSynchronize(work.stream);
        const int64_t ns = clock_ns(CLOCK_MONOTONIC_RAW) - begin;
        for (int64_t most = g_longest; ns > most && !g_longest.compare_exchange_weak(most, ns);) continue;
      }
    });
  }
}
void tell_rate() {
  usleep(200'000);
  const uint64_t before = g_launches;
  const int64_t begin = clock_ns(CLOCK_MONOTONIC_RAW);
  usleep(1'000'000);
  printf("%.3f us a launch; ",
         static_cast<double>(clock_ns(CLOCK_MONOTONIC_RAW) - begin) * 1e-3 / static_cast<double>(g_launches - before));
}
void tell_longest() {
  usleep(100'000);
  printf("a thread took %.1f ms at most; ", static_cast<double>(g_longest.exchange(0)) * 1e-6);
}
void launch_long() {
  last<<<1, 1, 0, g_long_stream>>>(2'000'000'000);
}
void stop_threads() {
  g_stop = true;
  for (std::thread& thread : g_threads) thread.join();
  for (const Work& work : g_works) say("thread", work.wrong());
}
void go_round() {
  for (int i = 0; i < 50; ++i) {
    subscribe();
    kinds();
    usleep(static_cast<useconds_t>(20'000 + i * 7919 % 13'000));
    off();
    finalize(false);
    usleep(static_cast<useconds_t>(3'000 + i * 6133 % 9'000));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)()> words = {
      {"capture", capture},
      {"instantiate", [] { say("instantiate", cudaGraphInstantiate(&g_executable, g_graph, 0)); }},
      {"upload", [] { say("upload", cudaGraphUpload(g_executable, g_work.stream)); }},
      {"update", update},
      {"destroy", [] { say("destroy", cudaGraphExecDestroy(g_executable)); }},
      {"launch", replay},
      {"single", single},
      {"subscribe", subscribe},
      {"register", [] { say("register", CUPTI(cuptiActivityRegisterTimestampCallback)(time_of_ours)); }},
      {"kinds", kinds},
      {"off",
       [] {
         off();
         if (g_kernels != 0) printf("calls %u to %u: ", g_least, g_most);
         printf("%llu kernels recorded, %llu of graphs, %llu at a time at which they cannot have been; ",
                static_cast<unsigned long long>(g_kernels.load()),
                static_cast<unsigned long long>(g_graph_kernels.load()), static_cast<unsigned long long>(g_odd.load()));
       }},
      {"unsubscribe", [] { say("unsubscribe", CUPTI(cuptiUnsubscribe)(g_subscriber)); }},
      {"finalize", [] { finalize(false); }},
      {"finalize-now", [] { finalize(true); }},
      {"clock", tell_clock},
      {"known", tell_known},
      {"memory", tell_memory},
      {"threads", start_threads},
      {"rate", tell_rate},
      {"stop", stop_threads},
      {"longest", tell_longest},
      {"long", launch_long},
      {"number", tell_number},
      {"rounds", go_round},
  };
  setvbuf(stdout, nullptr, _IONBF, 0);  // some cases end the process
  g_work.create();
  single();
  for (int i = 1; i < argc; ++i) {
    const auto found = words.find(argv[i]);
    if (found == words.end()) {
      fprintf(stderr, "cupti_finalize: there is no word %s\n", argv[i]);
      return 2;
    }
    found->second();
  }
  printf("\n");
  return g_wrong ? 1 : 0;
}
