// NVTX 3's payload and counter extensions: markers with extended payloads, counters of the program's own. The program's
// NVTX calls InitializeInjectionNvtxExtension once for each extension that it uses, after InitializeInjectionNvtx2.
#include <string.h>

#include <atomic>
#include <bit>

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/room/lock.h"
#include "capture/room/slab.h"
#include "capture/source/marker/marker.h"
#include "capture/source/marker/nvtx.h"
#include "capture/source/marker/nvtx_schema.h"
#include "capture/source/sampler/memory.h"
#include "tape/writer.h"

namespace tacho::capture::nvtx {
namespace {

using Domain = const void*;

// Appends to the payloads of one marker; forgets what does not fit as a whole.
class Appender {
 public:
  explicit Appender(Payloads& out) : out_(out), begin_(out.size) {}
  void word(uint64_t value) { put(&value, sizeof value); }
  void text(const char* at, size_t length) {
    word(length);
    put(at, length);
    static constexpr char kZero[8] = {};
    put(kZero, (8 - length % 8) % 8);
  }
  bool close(uint32_t fields) {
    if (failed_) {
      out_.size = begin_;
      return false;
    }
    const event::FieldsHeader head{fields, out_.size - begin_ - static_cast<uint32_t>(sizeof head)};
    memcpy(out_.bytes + begin_, &head, sizeof head);
    return true;
  }

 private:
  void put(const void* from, size_t bytes) {
    if (failed_ || bytes > sizeof out_.bytes - out_.size) {
      failed_ = true;
      return;
    }
    if (bytes != 0) memcpy(out_.bytes + out_.size, from, bytes);
    out_.size += static_cast<uint32_t>(bytes);
  }
  Payloads& out_;
  uint32_t begin_;
  bool failed_ = false;
};

// A text of the program: its pointer may be wrong, as a layout may be.
class Text {
 public:
  explicit Text(const char* at, size_t most = kMost) {
    sampler::Prober prober;
    for (most = most < kMost ? most : kMost; size_ < most; ++size_) {
      const auto address = reinterpret_cast<uintptr_t>(at) + size_;
      if ((size_ == 0 || address % 4096 == 0) && !prober.readable(address, 1)) break;
      if ((bytes_[size_] = at[size_]) == 0) break;
    }
  }
  const char* data() const { return bytes_; }
  size_t size() const { return size_; }

 private:
  static constexpr size_t kMost = 1024;
  char bytes_[kMost];
  size_t size_ = 0;
};

void append_text(const SchemaPlace& place, const char* at, size_t most, Appender& out, Payloads& payloads) {
  const Text text(at, most);
  if (!place.message) return out.text(text.data(), text.size());
  memcpy(payloads.message, text.data(), text.size());
  payloads.message_size = static_cast<uint32_t>(text.size());
}

void append_place(const SchemaPlace& place, const char* base, Appender& out, Payloads& payloads) {
  if (place.type == kTypeTextUtf8) {
    const char* at = base + place.offset;
    if (place.length == 0) memcpy(&at, base + place.offset, sizeof at);
    return append_text(place, at, place.length != 0 ? place.length : SIZE_MAX, out, payloads);
  }
  const uint64_t word = word_at(place, base);
  if (place.message && place.type == kTypeRegistered) payloads.interned = static_cast<uint32_t>(word);
  if (!place.message) out.word(word);
}

}  // namespace

void read_payloads(uint32_t domain, const PayloadData* given, size_t count, Payloads& out) {
  for (size_t i = 0; given != nullptr && i < count; ++i) {
    const PayloadData& data = given[i];
    if (data.schema == kTypeReferenced) continue;  // only others point into it
    const Schema* const schema = find_schema(domain, data.schema);
    if (schema == nullptr || data.payload == nullptr || (data.size != SIZE_MAX && data.size < schema->size)) {
      count_unread(Unread::kPayload);
      continue;
    }
    const auto* const base = static_cast<const char*>(data.payload);
    Appender appender(out);
    appender.word(0);  // for the header
    if (!schema->of_program && schema->places[0].type == kTypeTextUtf8)
      append_text(schema->places[0], base, data.size, appender, out);
    else
      for (uint32_t p = 0; p < schema->count; ++p) append_place(schema->places[p], base, appender, out);
    if (!appender.close(schema->number)) count_unread(Unread::kRoom);
  }
}

namespace {

marker::Marker marker_of(uint32_t domain, const Payloads& payloads) {
  marker::Marker out;
  out.domain = domain;
  out.interned = payloads.interned;
  out.text = {payloads.message, payloads.message_size};
  out.fields = {payloads.bytes, payloads.size};
  return out;
}

template <typename Body>
auto with_payloads(Domain handle, const PayloadData* given, size_t count, Body body) {
  Payloads payloads;
  const uint32_t domain = domain_number(handle);
  if (marker::active()) read_payloads(domain, given, count, payloads);
  return body(marker_of(domain, payloads));
}

void mark_payload(Domain domain, const PayloadData* given, size_t count) {
  with_payloads(domain, given, count, marker::mark);
}
int push_payload(Domain domain, const PayloadData* given, size_t count) {
  return with_payloads(domain, given, count, marker::push);
}
int pop_payload(Domain domain, const PayloadData* given, size_t count) {
  return with_payloads(domain, given, count,
                       [](const marker::Marker& made) { return marker::pop_with(made.domain, made.fields); });
}
uint64_t start_payload(Domain domain, const PayloadData* given, size_t count) {
  return with_payloads(domain, given, count, marker::start);
}
void end_payload(Domain domain, uint64_t range, const PayloadData* given, size_t count) {
  with_payloads(domain, given, count, [&](const marker::Marker& made) { marker::stop_with(range, made.fields); });
}
int64_t timestamp_get() {
  return static_cast<int64_t>(host_ticks());
}
void event_submit(Domain, const PayloadData*, size_t) {
  count_unread(Unread::kDeferred);
}
void event_batch_submit(Domain, const void*) {
  count_unread(Unread::kDeferred);
}

// Counters

struct Counter {
  uint64_t id;
  uint32_t domain;
  const Schema* schema;
  uint64_t time_domain;  // of time stamps beside the samples
  Counter* next;
  uint32_t number[kMostFields];  // of the CounterRecord of each place, 0 = no number
  double scale[kMostFields];
  std::atomic<uint64_t> last[kMostFields];  // the value, a double's bits
};
constexpr uint32_t kBuckets = 256;
constinit LockWord g_lock{0};
constinit Slab<Counter> g_slab;
constinit std::atomic<Counter*> g_counters[kBuckets] = {};
constinit std::atomic<uint32_t> g_next_counter{1};
constinit std::atomic<uint64_t> g_next_id{kDynamicStart};

Counter* find_counter(uint32_t domain, uint64_t id) {
  for (Counter* at = g_counters[id % kBuckets].load(std::memory_order_acquire); at != nullptr; at = at->next)
    if (at->id == id && at->domain == domain) return at;
  return nullptr;
}

uint32_t text_number(const char* text) {
  return text == nullptr || *text == 0 ? 0 : tape::intern(marker::clip(text));
}

void define_counters(Domain handle, Counter& made, const CounterAttributes& given) {
  SchemaPlace of_group{};
  of_group.scale = 1;
  read_semantics(given.semantics, of_group);
  made.time_domain = of_group.time_domain;
  const Schema& schema = *made.schema;
  for (uint32_t i = 0; i < schema.count; ++i) {
    const SchemaPlace& place = schema.places[i];
    if (place.time || place.message || place.type == kTypeTextUtf8 || place.type == kTypeRegistered) continue;
    event::ProgramCounterRecord record{};
    made.number[i] = g_next_counter.fetch_add(1, std::memory_order_relaxed);
    made.scale[i] = place.unit != 0 || place.scale != 1 ? place.scale : of_group.scale;
    record.header = {event::RecordKind::kCounter, 0, sizeof record, made.number[i]};
    record.group = schema.of_program ? text_number(given.name) : 0;
    record.name = schema.of_program ? place.name : text_number(given.name);
    record.unit = place.unit != 0 ? place.unit : of_group.unit;
    record.text = place.text != 0 ? place.text : text_number(given.description);
    record.domain = handle == nullptr ? 0 : made.domain;
    tape::define(&record.header);
  }
}

uint64_t counter_register(Domain handle, const CounterAttributes* given) {
  if (given == nullptr || given->struct_size < offsetof(CounterAttributes, scope) || !marker::ready()) return 0;
  CounterAttributes attributes{};
  memcpy(&attributes, given, given->struct_size < sizeof attributes ? given->struct_size : sizeof attributes);
  const uint64_t id = attributes.id >= kStaticStart && attributes.id < kDynamicStart
                          ? attributes.id
                          : g_next_id.fetch_add(1, std::memory_order_relaxed);
  const uint32_t domain = domain_number(handle);
  const Schema* const schema = find_schema(domain, attributes.schema);
  if (find_counter(domain, id) != nullptr) return id;
  if (schema == nullptr || !lock_or_give_up(g_lock)) {
    count_unread(Unread::kLayout);
    return id;
  }
  if (Counter* const made = g_slab.take(); made != nullptr) {
    made->id = id;
    made->domain = domain;
    made->schema = schema;
    define_counters(handle, *made, attributes);
    auto& bucket = g_counters[id % kBuckets];
    made->next = bucket.load(std::memory_order_relaxed);
    bucket.store(made, std::memory_order_release);
  }
  unlock(g_lock);
  return id;
}

void put(Counter& counter, uint32_t place, double value, uint64_t time, int64_t ago) {
  counter.last[place].store(std::bit_cast<uint64_t>(value), std::memory_order_relaxed);
  if (auto* const record = tape::begin<event::ReadingRecord>(event::RecordKind::kReading, event::Table::kReading,
                                                             counter.number[place])) {
    record->time = time;
    record->ago = ago;
    record->value = value;
    tape::commit();
  }
}

// The counter of a sample, or nullptr, counted; and nullptr while nothing is recorded.
Counter* wanted(Domain domain, uint64_t id) {
  if (!marker::active()) return nullptr;
  Counter* const counter = find_counter(domain_number(domain), id);
  if (counter == nullptr) count_unread(Unread::kCounter);
  return counter;
}

// A sample by value is one of the counter's first number.
void sample_value(Domain domain, uint64_t id, double value) {
  Counter* const counter = wanted(domain, id);
  if (counter == nullptr) return;
  for (uint32_t i = 0; i < counter->schema->count; ++i)
    if (counter->number[i] != 0) return put(*counter, i, value * counter->scale[i], host_ticks(), 0);
}
void sample_int64(Domain domain, uint64_t id, int64_t value) {
  sample_value(domain, id, static_cast<double>(value));
}
void sample_float64(Domain domain, uint64_t id, double value) {
  sample_value(domain, id, value);
}

void put_all(Counter& counter, const char* base, uint64_t time, int64_t ago) {
  double value = 0;
  for (uint32_t i = 0; i < counter.schema->count; ++i)
    if (counter.number[i] != 0 && number_at(counter.schema->places[i], base, value))
      put(counter, i, value * counter.scale[i], time, ago);
}

void sample(Domain domain, uint64_t id, const void* value, size_t size) {
  Counter* const counter = wanted(domain, id);
  if (counter == nullptr) return;
  if (value == nullptr || size < counter->schema->size) return count_unread(Unread::kPayload);
  put_all(*counter, static_cast<const char*>(value), host_ticks(), 0);
}

void sample_no_value(Domain domain, uint64_t id, uint8_t reason) {
  Counter* const counter = wanted(domain, id);
  if (counter == nullptr) return;
  if (reason != kNoValueZero && reason != kNoValueUnchanged) return count_unread(Unread::kUnavailable);
  for (uint32_t i = 0; i < counter->schema->count; ++i)
    if (counter->number[i] != 0)
      put(*counter, i,
          reason == kNoValueZero ? 0 : std::bit_cast<double>(counter->last[i].load(std::memory_order_relaxed)),
          host_ticks(), 0);
}

// One moment in the host clock and in a program's clock of time stamps.
struct Moment {
  uint64_t host = 0;
  int64_t source = 0;
  bool host_ticks = false;  // the source is the host clock itself
  bool known = false;
};
Moment moment_in(uint64_t source) {
  const auto clock = [](clockid_t id) { return Moment{host_ticks(), read_clock(id), false, true}; };
  switch (source) {
    case kTimeOfTool:
      return {0, 0, true, true};
    case kTimeTsc:
      return {0, 0, true, host_clock_is_tsc()};
    case kTimeRealtime:
      return clock(CLOCK_REALTIME);
    case kTimeMonotonic:
      return clock(CLOCK_MONOTONIC);
    case kTimeMonotonicRaw:
      return clock(CLOCK_MONOTONIC_RAW);
    case kTimeBoottime:
      return clock(CLOCK_BOOTTIME);
    default:
      return {};
  }
}

void batch_submit(Domain domain, const CounterBatch* batch) {
  if (batch == nullptr) return;
  Counter* const counter = wanted(domain, batch->counter);
  if (counter == nullptr) return;
  const Schema& schema = *counter->schema;
  if (schema.size == 0 || batch->samples == nullptr || batch->size % schema.size != 0)
    return count_unread(Unread::kPayload);
  const size_t samples = batch->size / schema.size;
  if (samples == 0) return;
  const SchemaPlace* stamp = nullptr;
  for (uint32_t i = 0; i < schema.count; ++i)
    if (schema.places[i].time) stamp = &schema.places[i];
  const bool beside = batch->times != nullptr;
  const bool each = beside && batch->times_size == samples * sizeof(int64_t) &&
                    (batch->flags & (kFirstAndInterval | kLastAndInterval)) == 0;
  const bool pair = beside && !each && batch->times_size == 2 * sizeof(int64_t);
  const Moment now =
      moment_in(beside || stamp == nullptr || stamp->time_domain == 0 ? counter->time_domain : stamp->time_domain);
  if (!now.known || (beside ? !each && !pair : stamp == nullptr)) return count_unread(Unread::kTime, samples);
  const auto* base = static_cast<const char*>(batch->samples);
  for (size_t i = 0; i < samples; ++i, base += schema.size) {
    int64_t time = 0;
    if (each) {
      time = batch->times[i];
    } else if (pair) {
      const auto back = (batch->flags & kLastAndInterval) != 0 ? static_cast<int64_t>(samples - 1) : 0;
      time = static_cast<int64_t>(static_cast<uint64_t>(batch->times[0]) +
                                  static_cast<uint64_t>(batch->times[1]) *
                                      static_cast<uint64_t>(static_cast<int64_t>(i) - back));
    } else {
      time = static_cast<int64_t>(word_at(*stamp, base));
    }
    int64_t ago = 0;
    if (!now.host_ticks && __builtin_sub_overflow(now.source, time, &ago)) {
      count_unread(Unread::kTime);
      continue;
    }
    put_all(*counter, base, now.host_ticks ? static_cast<uint64_t>(time) : now.host, ago);
  }
}

struct Slot {
  unsigned number;
  intptr_t function;
};
template <typename Signature>
Slot slot(unsigned number, Signature* function) {
  return {number, reinterpret_cast<intptr_t>(function)};
}
template <size_t kCount>
void install(const ExtensionSegment& segment, const Slot (&slots)[kCount]) {
  for (const Slot& one : slots)
    if (one.number < segment.slots) segment.functions[one.number] = one.function;
}

}  // namespace
}  // namespace tacho::capture::nvtx

/// Called by a program's NVTX on the first use of an extension, once per copy of it in the process. 1: we take part,
/// with the functions that we know; 0: this process is not traced.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(
    tacho::capture::nvtx::ExtensionModule* module) {
  using namespace tacho::capture::nvtx;
  if (module == nullptr || module->segments == nullptr || module->segment_count == 0 || !tacho::capture::start())
    return 0;
  const ExtensionSegment& segment = module->segments[0];
  if (segment.functions == nullptr) return 0;
  if (module->id == kPayloadExtension)
    install(segment, {slot(kSchemaRegister, register_schema), slot(kEnumRegister, register_enum),
                      slot(kMarkPayload, mark_payload), slot(kRangePushPayload, push_payload),
                      slot(kRangePopPayload, pop_payload), slot(kRangeStartPayload, start_payload),
                      slot(kRangeEndPayload, end_payload), slot(kTimestampGet, timestamp_get),
                      slot(kEventSubmit, event_submit), slot(kEventBatchSubmit, event_batch_submit)});
  if (module->id == kCounterExtension)
    install(segment, {slot(kCounterRegister, counter_register), slot(kCounterSampleInt64, sample_int64),
                      slot(kCounterSampleFloat64, sample_float64), slot(kCounterSample, sample),
                      slot(kCounterSampleNoValue, sample_no_value), slot(kCounterBatchSubmit, batch_submit)});
  return 1;
}
