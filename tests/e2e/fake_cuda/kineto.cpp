// A stand-in for the library of PyTorch that has its profiler, kineto: linked to CUPTI, which it uses as kineto does.
// Its first use subscribes; each window registers a clock and buffers, enables kinds, and says a little later that it
// is open; its end disables them, takes the buffers, and says last that it is closed. With TEARDOWN_CUPTI=1 it
// unsubscribes and finalises CUPTI at the end of the program's next call, and subscribes anew for its next window.
#include <dlfcn.h>
#include <unistd.h>
#include <x86intrin.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#define EXPORT __attribute__((visibility("default")))

extern "C" {
int cuptiSubscribe(void** subscriber, void* callback, void* user);
int cuptiUnsubscribe(void* subscriber);
int cuptiEnableCallback(uint32_t on, void* subscriber, int domain, uint32_t id);
int cuptiFinalize(void);
int cuptiActivityRegisterTimestampCallback(uint64_t (*clock)());
int cuptiActivityRegisterCallbacks(void (*requested)(uint8_t**, size_t*, size_t*),
                                   void (*completed)(void*, uint32_t, uint8_t*, size_t, size_t));
int cuptiActivityEnable(int kind);
int cuptiActivityDisable(int kind);
int cuptiActivityFlushAll(uint32_t flag);
int cuptiActivitySetAttribute(int attribute, size_t* size, void* value);
int cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, void** record);
}

namespace {

constexpr int kKinds[] = {10, 5};
std::mutex g_lock;
std::map<uint8_t*, std::unique_ptr<uint8_t[]>> g_buffers;
long g_unknown, g_counts[64];
bool g_refused;
void* g_subscriber;
std::atomic<bool> g_tears_down{false};

void on_call(void*, int, uint32_t, const void* data) {
  int site;
  std::memcpy(&site, data, sizeof site);
  if (site == 0 || !g_tears_down) return;
  cuptiUnsubscribe(g_subscriber);
  cuptiFinalize();
  g_subscriber = nullptr;
  g_tears_down = false;
}
void subscribe() {
  if (std::getenv("FAKE_KINETO_WITHOUT_SUBSCRIBER") != nullptr) return;
  g_refused = cuptiSubscribe(&g_subscriber, reinterpret_cast<void*>(on_call), nullptr) != 0;
}

void requested(uint8_t** buffer, size_t* size, size_t* records) {
  constexpr size_t kSize = 1 << 16;
  const std::lock_guard lock(g_lock);
  auto memory = std::make_unique<uint8_t[]>(kSize);
  *buffer = memory.get();
  *size = kSize;
  *records = 0;
  g_buffers[*buffer] = std::move(memory);
}
void completed(void*, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  const std::lock_guard lock(g_lock);
  if (g_buffers.find(buffer) == g_buffers.end()) {
    ++g_unknown;
    return;
  }
  for (void* record = nullptr; valid != 0 && cuptiActivityGetNextRecord(buffer, valid, &record) == 0;) {
    uint32_t kind;
    std::memcpy(&kind, record, sizeof kind);
    ++g_counts[kind & 63];
  }
  g_buffers.erase(buffer);
}
uint64_t ticks() {
  return __rdtsc();
}

}  // namespace

namespace libkineto {

class EXPORT ActivityProfilerInterface {
 public:
  virtual ~ActivityProfilerInterface() = default;
  virtual void init() {}
  virtual bool isInitialized() { return false; }
  virtual bool isActive() { return false; }
};
class EXPORT ActivityProfilerProxy : public ActivityProfilerInterface {
 public:
  ~ActivityProfilerProxy() override;
  void init() override;
  bool isInitialized() override { return state_ != nullptr; }
  bool isActive() override;
  std::atomic<int>& state() { return *state_; }

 private:
  std::unique_ptr<std::atomic<int>> state_;
};
ActivityProfilerProxy::~ActivityProfilerProxy() = default;
void ActivityProfilerProxy::init() {
  state_ = std::make_unique<std::atomic<int>>(0);
}
bool ActivityProfilerProxy::isActive() {
  return *state_ != 0;
}
// As another kineto may have it.
class AnotherProxy : public ActivityProfilerInterface {
 public:
  virtual bool isSomethingElse() { return true; }
};

struct EXPORT LibkinetoApi {
  const void* loader;
  std::unique_ptr<ActivityProfilerInterface> profiler;
  const void* client;
};
EXPORT LibkinetoApi& api() {
  static const int loader = 0;
  static LibkinetoApi instance{&loader, nullptr, nullptr};
  return instance;
}

}  // namespace libkineto

namespace {
libkineto::ActivityProfilerProxy* g_profiler;

// A profiler that is there and not initialised, as kineto has it for a moment.
libkineto::ActivityProfilerProxy* g_registered = [] {
  if (std::getenv("FAKE_KINETO_REGISTERED") == nullptr) return static_cast<libkineto::ActivityProfilerProxy*>(nullptr);
  auto* const profiler = new libkineto::ActivityProfilerProxy;
  libkineto::api().profiler.reset(profiler);
  return profiler;
}();

void first_use() {
  subscribe();
  auto profiler = std::make_unique<libkineto::ActivityProfilerProxy>();
  if (std::getenv("FAKE_KINETO_REGISTERED") != nullptr) profiler.reset(g_registered);
  g_profiler = profiler.get();
  g_profiler->init();
  if (std::getenv("FAKE_KINETO_ANOTHER") != nullptr) {
    profiler.release();  // its state is where tacho does not look
    libkineto::api().profiler = std::make_unique<libkineto::AnotherProxy>();
  } else {
    libkineto::api().profiler.release();
    libkineto::api().profiler = std::move(profiler);
  }
}
}  // namespace

extern "C" {
EXPORT void fake_window_opens() {
  if (g_profiler == nullptr) {
    first_use();
  } else if (g_subscriber == nullptr) {
    subscribe();
  }
  if (!g_refused) {  // without callbacks kineto records the processor's side only
    cuptiActivityRegisterTimestampCallback(ticks);
    cuptiActivityRegisterCallbacks(requested, completed);
    for (const int kind : kKinds) cuptiActivityEnable(kind);
  }
  if (const char* const slow = std::getenv("FAKE_KINETO_SLOW")) usleep(static_cast<useconds_t>(std::atoi(slow)));
  g_profiler->state() = 1;
}
EXPORT void fake_window_closes() {
  if (!g_refused) {
    for (const int kind : kKinds) cuptiActivityDisable(kind);
    cuptiActivityFlushAll(1);
    uint8_t per_thread = 0;
    size_t size = sizeof per_thread;
    cuptiActivitySetAttribute(9, &size, &per_thread);
    if (const char* const tear = std::getenv("TEARDOWN_CUPTI"); tear != nullptr && std::strcmp(tear, "1") == 0) {
      cuptiEnableCallback(1, g_subscriber, 2, 211);
      g_tears_down = true;
    }
  }
  g_profiler->state() = 0;
}
/// Whether its calls lead to CUPTI.
EXPORT int fake_own_words(void* cupti) {
  return reinterpret_cast<void*>(cuptiActivityEnable) == dlsym(cupti, "cuptiActivityEnable") &&
         reinterpret_cast<void*>(cuptiSubscribe) == dlsym(cupti, "cuptiSubscribe");
}
/// Records of a kind in all windows; of kind 0: buffers that were none of kineto's.
EXPORT long fake_window_records(int kind) {
  return kind == 0 ? g_unknown : g_counts[kind];
}
}
