// Programs that use CUPTI themselves (torch.profiler does). Through its functions without subscribers CUPTI serves one
// client, so while tacho has the GPU records, the program's calls must neither take the buffers away nor switch kinds
// off, and tacho tells the user who got the records. If tacho is one client among several (own_subscriber.h), others
// that use the functions with _v2 go to CUPTI. Found by symbol interposition if libtacho.so is preloaded; everything is
// passed on when tacho does not use CUPTI.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <atomic>

#include "capture/source/cuda/cupti_api.h"
#include "capture/source/cuda/own_subscriber.h"
#include "tape/writer.h"

namespace tacho::capture::cuda {
namespace {

constinit std::atomic<bool> g_said{false};

// The function of that name in CUPTI itself.
void* next(const char* symbol) {
  void* const found = dlsym(RTLD_NEXT, symbol);
  return found != nullptr ? found : find_in_loaded_cupti(symbol);
}

const char* file_of(const void* address, const void** base) {
  Dl_info info{};
  if (dladdr(address, &info) == 0) return "";
  if (base != nullptr) *base = info.dli_fbase;
  if (info.dli_fname == nullptr) return "";
  const char* const slash = strrchr(info.dli_fname, '/');
  return slash != nullptr ? slash + 1 : info.dli_fname;
}

// True if a call from `caller` is to be kept from CUPTI. CUPTI's calls of its own functions are not.
bool keep_out(const void* caller, bool tell) {
  if (!session_active()) return false;
  const void *from = nullptr, *cupti = nullptr;
  const char* const who = file_of(caller, &from);
  file_of(reinterpret_cast<const void*>(session_cupti()->get_version), &cupti);
  if (from != nullptr && from == cupti) return false;
  if (tell && !g_said.exchange(true)) {
    char line[384];
    snprintf(line, sizeof line,
             "the program (%s) starts a CUPTI profiler of its own: tacho keeps the GPU records, the program's profiler "
             "gets none; --yield-to-app leaves them to it",
             who);
    say_warning(line);
  }
  return true;
}

template <typename... Parameters, typename... Arguments>
abi::Result pass_on(const char* symbol, Arguments... arguments) {
  using Function = abi::Result (*)(Parameters...);
  const auto function = reinterpret_cast<Function>(next(symbol));
  return function == nullptr ? abi::kNotInitialized : function(arguments...);
}

}  // namespace
}  // namespace tacho::capture::cuda

using namespace tacho::capture::cuda;

extern "C" {
#define TACHO_EXPORTED __attribute__((visibility("default"))) abi::Result

TACHO_EXPORTED cuptiSubscribe(abi::Subscriber* subscriber, abi::Callback callback, void* user) {
  if (keep_out(__builtin_return_address(0), true)) return abi::kMultipleSubscribers;
  return pass_on<abi::Subscriber*, abi::Callback, void*>("cuptiSubscribe", subscriber, callback, user);
}

TACHO_EXPORTED cuptiSubscribe_v2(abi::Subscriber* subscriber, abi::Callback callback, void* user,
                                 abi::SubscriberParameters* parameters) {
  if (!has_own_subscriber() && keep_out(__builtin_return_address(0), true)) {
    if (parameters != nullptr && parameters->old_name != nullptr && parameters->old_size != 0)
      snprintf(parameters->old_name, parameters->old_size, "tacho");
    return abi::kMultipleSubscribers;
  }
  return pass_on<abi::Subscriber*, abi::Callback, void*, abi::SubscriberParameters*>("cuptiSubscribe_v2", subscriber,
                                                                                     callback, user, parameters);
}

// A client that asks for no subscription would take over our buffers: it gets a success code and no records.
TACHO_EXPORTED cuptiActivityRegisterCallbacks(abi::BufferRequested requested, abi::BufferCompleted completed) {
  if (keep_out(__builtin_return_address(0), true)) return abi::kSuccess;
  return pass_on<abi::BufferRequested, abi::BufferCompleted>("cuptiActivityRegisterCallbacks", requested, completed);
}

TACHO_EXPORTED cuptiActivityRegisterTimestampCallback(abi::Timestamp timestamp) {
  if (keep_out(__builtin_return_address(0), true)) return abi::kSuccess;
  return pass_on<abi::Timestamp>("cuptiActivityRegisterTimestampCallback", timestamp);
}

TACHO_EXPORTED cuptiActivityEnable(int kind) {
  if (keep_out(__builtin_return_address(0), false)) return abi::kSuccess;
  return pass_on<int>("cuptiActivityEnable", kind);
}

TACHO_EXPORTED cuptiActivityDisable(int kind) {
  if (keep_out(__builtin_return_address(0), false)) return abi::kSuccess;
  return pass_on<int>("cuptiActivityDisable", kind);
}

// Forced, CUPTI would hand over kernels that have not ended.
TACHO_EXPORTED cuptiActivityFlushAll(uint32_t flag) {
  if (keep_out(__builtin_return_address(0), false)) flag = 0;
  return pass_on<uint32_t>("cuptiActivityFlushAll", flag);
}

TACHO_EXPORTED cuptiSetThreadIdType(int type) {
  if (keep_out(__builtin_return_address(0), false)) return abi::kSuccess;
  return pass_on<int>("cuptiSetThreadIdType", type);
}

TACHO_EXPORTED cuptiFinalize() {
  if (keep_out(__builtin_return_address(0), !has_own_subscriber())) return abi::kSuccess;
  return pass_on<>("cuptiFinalize");
}
}
