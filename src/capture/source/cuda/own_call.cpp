// The call of tacho's own (own_call.h).
#include "capture/source/cuda/own_call.h"

#include <pthread.h>
#include <string.h>

#include <atomic>

namespace tacho::capture::cuda {
namespace {

constexpr const char* kFunction = "cuDriverGetVersion";  // it does nothing and needs no context

constinit std::atomic<pthread_t> g_caller{0};
constinit InOwnCall g_what = nullptr;
constinit bool g_subscribed = false;

using GetVersion = int (*)(int*);

}  // namespace

uint32_t number_of_own_function(const Cupti& cupti) {
  for (uint32_t id = 1; id < kCallbacks; ++id) {
    const char* name = nullptr;
    if (cupti.get_callback_name(abi::domain::kDriver, id, &name) == abi::kSuccess && name != nullptr &&
        strcmp(name, kFunction) == 0)
      return id;
  }
  return 0;
}

void call_own_function() {
  int version = 0;
  if (const auto function = reinterpret_cast<GetVersion>(find_in_driver(kFunction)); function != nullptr)
    function(&version);
}

bool make_own_call(const Cupti& cupti, abi::Subscriber subscriber, InOwnCall what) {
  const auto function = reinterpret_cast<GetVersion>(find_in_driver(kFunction));
  const uint32_t callback = function != nullptr ? number_of_own_function(cupti) : 0;
  if (callback == 0 || cupti.enable_callback(1, subscriber, abi::domain::kDriver, callback) != abi::kSuccess)
    return false;
  int version = 0;
  g_what = what;
  g_subscribed = true;
  g_caller.store(pthread_self());
  function(&version);
  g_caller.store(0);
  if (g_subscribed) cupti.enable_callback(0, subscriber, abi::domain::kDriver, callback);
  return true;
}

bool see_own_call(const abi::CallbackData& call) {
  const pthread_t caller = g_caller.load(std::memory_order_relaxed);
  if (__builtin_expect(caller == 0 || caller != pthread_self(), 1)) return false;
  if (!g_what(call)) g_subscribed = false;
  return true;
}

}  // namespace tacho::capture::cuda
