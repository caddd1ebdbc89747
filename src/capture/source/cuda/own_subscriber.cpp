// Functions of CUPTI that pass tacho's subscriber on (own_subscriber.h).
#include "capture/source/cuda/own_subscriber.h"

#include <atomic>

namespace tacho::capture::cuda {
namespace {

constinit Cupti g_cupti{};  // as CUPTI has them
constinit abi::Subscriber g_subscriber = nullptr;
constinit std::atomic<bool> g_own{false};
constinit abi::BufferRequested g_requested = nullptr;
constinit abi::BufferCompleted g_completed = nullptr;

void requested(uint8_t** buffer, size_t* size, size_t* max_records, const void*) {
  g_requested(buffer, size, max_records);
}
void completed(uint8_t* buffer, size_t size, size_t valid, const void*) {
  g_completed(nullptr, 0, buffer, size, valid);
}

// Without a choice of fields records are the same as those of the older functions.
abi::Result enable(int kind) {
  return g_cupti.activity_enable_v2(g_subscriber, kind, nullptr);
}
abi::Result disable(int kind) {
  return g_cupti.activity_disable_v2(g_subscriber, kind, nullptr);
}
abi::Result register_callbacks(abi::BufferRequested on_request, abi::BufferCompleted on_completion) {
  g_requested = on_request;
  g_completed = on_completion;
  return g_cupti.register_callbacks_v2(g_subscriber, requested, completed);
}
abi::Result next_record(uint8_t* buffer, size_t valid, void** record) {
  return g_cupti.next_record_v2(g_subscriber, buffer, valid, record);
}
abi::Result set_attribute(int attribute, size_t* size, void* value) {
  return g_cupti.set_attribute_v2(g_subscriber, attribute, size, value);
}
abi::Result get_timestamp(uint64_t* time) {
  return g_cupti.get_timestamp_v2(g_subscriber, time);
}
abi::Result enable_runtime_api(uint32_t id, uint8_t on) {
  return g_cupti.enable_runtime_api_v2(g_subscriber, id, on);
}
abi::Result enable_driver_api(uint32_t id, uint8_t on) {
  return g_cupti.enable_driver_api_v2(g_subscriber, id, on);
}

bool is_complete(const Cupti& cupti) {
  return cupti.subscribe_v2 != nullptr && cupti.unsubscribe != nullptr && cupti.register_callbacks_v2 != nullptr &&
         cupti.activity_enable_v2 != nullptr && cupti.activity_disable_v2 != nullptr &&
         cupti.next_record_v2 != nullptr && cupti.set_attribute_v2 != nullptr && cupti.get_timestamp_v2 != nullptr &&
         cupti.enable_runtime_api_v2 != nullptr && cupti.enable_driver_api_v2 != nullptr;
}

// What no function with _v2 is known for must answer as before: losses are counted, and a record's thread is known.
bool answers(const Cupti& cupti, abi::Subscriber subscriber) {
  uint64_t time = 0;
  if (cupti.get_timestamp_v2(subscriber, &time) != abi::kSuccess) return false;
  size_t dropped = 0;
  if (cupti.dropped_records(nullptr, 0, &dropped) != abi::kSuccess) return false;
  uint8_t per_thread = 0;
  size_t size = sizeof per_thread;
  if (cupti.get_attribute != nullptr &&
      cupti.get_attribute(abi::attribute::kPerThreadBuffer, &size, &per_thread) == abi::kSuccess && per_thread == 1)
    return true;
  return cupti.set_thread_id_type != nullptr && cupti.set_thread_id_type(abi::kThreadIdSystem) == abi::kSuccess;
}

}  // namespace

bool take_own_subscriber(Cupti& cupti, uint32_t version, unsigned driver, abi::Callback callback,
                         abi::Subscriber& subscriber) {
  constexpr uint32_t kFirst = 130300;
  constexpr unsigned kFirstDriver = 610;
  if (version < kFirst || driver < kFirstDriver || !is_complete(cupti)) return false;
  abi::SubscriberParameters parameters = {sizeof parameters, "tacho", nullptr, 0, 1, {}};
  abi::Subscriber own = nullptr;
  if (cupti.subscribe_v2(&own, callback, nullptr, &parameters) != abi::kSuccess) return false;
  if (!answers(cupti, own)) {
    cupti.unsubscribe(own);
    return false;
  }
  g_cupti = cupti;
  g_subscriber = subscriber = own;
  cupti.activity_enable = enable;
  cupti.activity_disable = disable;
  cupti.register_callbacks = register_callbacks;
  cupti.next_record = next_record;
  cupti.set_attribute = set_attribute;
  cupti.get_timestamp = get_timestamp;
  cupti.enable_runtime_api = enable_runtime_api;
  cupti.enable_driver_api = enable_driver_api;
  cupti.register_timestamp = nullptr;  // the clock is all clients'
  g_own.store(true, std::memory_order_release);
  return true;
}

bool has_own_subscriber() {
  return g_own.load(std::memory_order_acquire);
}

void forget_own_subscriber() {
  g_own.store(false, std::memory_order_release);
}

}  // namespace tacho::capture::cuda
