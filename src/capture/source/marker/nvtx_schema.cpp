// Registration and look-up of layouts (nvtx_schema.h). Look-ups take no lock: what is registered never changes.
#include "capture/source/marker/nvtx_schema.h"

#include <stdio.h>
#include <string.h>

#include <atomic>
#include <bit>

#include "capture/room/lock.h"
#include "capture/room/slab.h"
#include "capture/source/marker/marker.h"
#include "capture/source/marker/nvtx.h"
#include "tape/writer.h"

namespace tacho::capture::nvtx {
namespace {

struct Enumeration {
  uint64_t id;
  uint32_t domain, number, size;
  Enumeration* next;
};
constexpr uint32_t kSchemaBuckets = 256;
constexpr uint32_t kPredefined = 0xffffffff;  // "domain" of layouts of one value
constinit LockWord g_schema_lock{0};
constinit Slab<Schema> g_schema_slab;
constinit Slab<Enumeration> g_enumeration_slab;
constinit std::atomic<Schema*> g_schemas[kSchemaBuckets] = {};
constinit std::atomic<Enumeration*> g_enumerations[kSchemaBuckets] = {};
constinit std::atomic<uint32_t> g_next_fields{1}, g_next_enumeration{1};
constinit std::atomic<uint64_t> g_next_schema_id{kDynamicStart};

uint32_t bucket_of(uint32_t domain, uint64_t id) {
  return static_cast<uint32_t>(((id ^ static_cast<uint64_t>(domain) << 40) * 0x9e3779b97f4a7c15ULL) >> 56) %
         kSchemaBuckets;
}
template <typename T>
T* find_in(const std::atomic<T*> (&buckets)[kSchemaBuckets], uint32_t domain, uint64_t id) {
  for (T* at = buckets[bucket_of(domain, id)].load(std::memory_order_acquire); at != nullptr; at = at->next)
    if (at->id == id && at->domain == domain) return at;
  return nullptr;
}
template <typename T>
void publish(std::atomic<T*> (&buckets)[kSchemaBuckets], T* made) {  // under the lock
  auto& bucket = buckets[bucket_of(made->domain, made->id)];
  made->next = bucket.load(std::memory_order_relaxed);
  bucket.store(made, std::memory_order_release);
}

uint32_t named(const char* text) {
  return text == nullptr || *text == 0 ? 0 : tape::intern(marker::clip(text));
}

// Lays out the entries of a schema: offsets by the program, or by the rules of C's structs.
class Layout {
 public:
  Layout(Schema& out, uint32_t pack) : out_(out), pack_(pack) {}

  void add(const SchemaEntry& entry) {
    const What what = what_of(entry);
    if (what.size == 0) {
      ++unread_;
      lost_ = true;  // where the next entry lies must then be said
      return;
    }
    if (lost_ && entry.offset == 0) {
      ++unread_;
      return;
    }
    lost_ = false;
    uint32_t at = entry.offset != 0 ? static_cast<uint32_t>(entry.offset) : aligned(end_, what.align);
    const bool array = (entry.flags & kEntryArray) == kEntryFixedArray && what.length == 0;
    const uint64_t times = array ? entry.detail : 1;
    if (times > kMostBytes / what.size || at > kMostBytes) {
      ++unread_;
      lost_ = true;
      return;
    }
    align_ = what.align > align_ ? what.align : align_;
    for (uint32_t i = 0; i < times; ++i, at += what.size) one(entry, what, at, array ? static_cast<int>(i) : -1);
    end_ = at;
  }
  void finish(size_t size_given) {
    out_.align = align_;
    out_.size = size_given != 0 && size_given <= kMostBytes ? static_cast<uint32_t>(size_given) : aligned(end_, align_);
    if (unread_ != 0) count_unread(Unread::kField, unread_);
  }

 private:
  static constexpr uint64_t kMostBytes = 1 << 20;
  struct What {
    uint64_t type = 0;
    uint32_t size = 0, align = 1;
    uint16_t length = 0;
    uint32_t enumeration = 0;
    const Schema* nested = nullptr;
  };

  uint32_t aligned(uint32_t at, uint32_t align) const {
    if (pack_ != 0 && align > pack_) align = pack_;
    return align <= 1 ? at : (at + align - 1) / align * align;
  }
  What what_of(const SchemaEntry& entry) const {
    What what;
    what.type = entry.type;
    const uint64_t array = entry.flags & kEntryArray;
    if ((entry.flags & kEntryOffsets) != 0 || (array != 0 && array != kEntryFixedArray)) return what;
    const bool text = entry.type == kTypeText || entry.type == kTypeTextUtf8;
    if (text || ((entry.type == kTypeChar || entry.type == kTypeChar8) && array == kEntryFixedArray)) {
      what.type = kTypeTextUtf8;
      if ((entry.flags & kEntryPointer) != 0 || (text && entry.detail == 0)) {
        what.size = what.align = sizeof(void*);
      } else if (entry.detail <= UINT16_MAX) {
        what.size = what.length = static_cast<uint16_t>(entry.detail);
      }
      return what;
    }
    if ((entry.flags & kEntryPointer) != 0) return what;
    if (entry.type < kStaticStart) {
      what.size = what.align = size_of_type(entry.type);
      return what;
    }
    if (const Enumeration* known = find_in(g_enumerations, out_.domain, entry.type); known != nullptr) {
      what.size = what.align = known->size;
      what.enumeration = known->number;
      what.type = known->size == 1   ? kTypeUInt8
                  : known->size == 2 ? kTypeUInt16
                  : known->size == 4 ? kTypeUInt32
                                     : kTypeUInt64;
      return what;
    }
    if (const Schema* known = find_in(g_schemas, out_.domain, entry.type); known != nullptr) {
      what.nested = known;
      what.size = known->size;
      what.align = known->align;
    }
    return what;
  }

  void one(const SchemaEntry& entry, const What& what, uint32_t at, int index) {
    char name[256];
    const char* const own = entry.name == nullptr ? "" : entry.name;
    if (index >= 0)
      snprintf(name, sizeof name, "%.200s[%d]", own, index);
    else
      snprintf(name, sizeof name, "%.200s", own);
    if (what.nested != nullptr) {
      for (uint32_t i = 0; i < what.nested->count; ++i) nested(what.nested->places[i], name, at);
      return;
    }
    if (out_.count == kMostFields) {
      ++unread_;
      return;
    }
    SchemaPlace& place = out_.places[out_.count++];
    place = {};
    place.offset = at;
    place.type = static_cast<uint16_t>(what.type);
    place.length = what.length;
    place.enumeration = what.enumeration;
    place.message = (entry.flags & kEntryContent) == kEntryMessage;
    place.time = (entry.flags & kEntryContent) == kEntryTimestamp;
    place.name = named(name);
    place.text = named(entry.description);
    place.scale = 1;
    read_semantics(entry.semantics, place);
  }
  void nested(const SchemaPlace& inner, const char* outer, uint32_t at) {
    if (out_.count == kMostFields) {
      ++unread_;
      return;
    }
    SchemaPlace& place = out_.places[out_.count++];
    place = inner;
    place.offset += at;
    place.outer = inner.outer != 0 ? inner.outer : named(outer);
  }

  Schema& out_;
  uint32_t pack_, end_ = 0, align_ = 1;
  uint64_t unread_ = 0;
  bool lost_ = false;
};

event::FieldKind kind_of(const SchemaPlace& place) {
  switch (place.type) {
    case kTypeTextUtf8:
      return event::FieldKind::kText;
    case kTypeRegistered:
      return event::FieldKind::kString;
    case kTypeAddress:
      return event::FieldKind::kAddress;
    case kTypeFloat:
    case kTypeDouble:
    case kTypeLongDouble:
    case kTypeFloat16:
    case kTypeFloat32:
    case kTypeFloat64:
    case kTypeBFloat16:
    case kTypeTFloat32:
      return event::FieldKind::kDouble;
    case kTypeChar:
    case kTypeShort:
    case kTypeInt:
    case kTypeLong:
    case kTypeLongLong:
    case kTypeInt8:
    case kTypeInt16:
    case kTypeInt32:
    case kTypeInt64:
      return event::FieldKind::kSigned;
    default:
      return event::FieldKind::kUnsigned;
  }
}

// Tells the decoder what a payload of this layout consists of.
bool define_fields(Schema& schema) {
  struct {
    event::FieldsRecord head;
    event::PayloadField fields[kMostFields];
  } record{};
  for (uint32_t i = 0; i < schema.count; ++i) {
    const SchemaPlace& place = schema.places[i];
    if (!place.message)
      record.fields[record.head.count++] = {place.name, kind_of(place), place.enumeration, place.outer};
  }
  record.head.name = schema.name;
  record.head.header = {event::RecordKind::kFields, 0,
                        static_cast<uint16_t>(sizeof record.head + record.head.count * sizeof(event::PayloadField)),
                        schema.number = g_next_fields.fetch_add(1, std::memory_order_relaxed)};
  return tape::define(&record.head.header);
}

const Schema* predefined(uint64_t type) {
  if (const Schema* known = find_in(g_schemas, kPredefined, type); known != nullptr) return known;
  const bool text = type == kTypeText || type == kTypeTextUtf8;
  if ((!text && size_of_type(type) == 0) || !lock_or_give_up(g_schema_lock)) return nullptr;
  Schema* made = find_in(g_schemas, kPredefined, type);
  if (made == nullptr && (made = g_schema_slab.take()) != nullptr) {
    made->id = type;
    made->domain = kPredefined;
    made->count = 1;
    made->size = made->align = text ? 0 : size_of_type(type);
    made->places[0].type = static_cast<uint16_t>(text ? static_cast<uint64_t>(kTypeTextUtf8) : type);
    made->places[0].scale = 1;
    define_fields(*made);
    publish(g_schemas, made);
  }
  unlock(g_schema_lock);
  return made;
}

template <typename T>
double load(const char* at) {
  T value;
  memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

double load_half(const char* at) {
  uint16_t bits;
  memcpy(&bits, at, sizeof bits);
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  double value = exponent == 0 ? fraction / (1 << 24)
                 : exponent == 31
                     ? (fraction == 0 ? __builtin_inf() : __builtin_nan(""))
                     : (1 + fraction / 1024) * (exponent >= 15 ? 1 << (exponent - 15) : 1.0 / (1 << (15 - exponent)));
  return (bits & 0x8000) != 0 ? -value : value;
}

double load_bfloat(const char* at) {
  uint16_t bits;
  memcpy(&bits, at, sizeof bits);
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  return load<float>(reinterpret_cast<const char*>(&wide));
}

}  // namespace

uint32_t size_of_type(uint64_t type) {
  switch (type) {
    case kTypeChar:
    case kTypeUChar:
    case kTypeInt8:
    case kTypeUInt8:
    case kTypeChar8:
    case kTypeByte:
      return 1;
    case kTypeShort:
    case kTypeUShort:
    case kTypeInt16:
    case kTypeUInt16:
    case kTypeChar16:
    case kTypeFloat16:
    case kTypeBFloat16:
      return 2;
    case kTypeInt:
    case kTypeUInt:
    case kTypeInt32:
    case kTypeUInt32:
    case kTypeFloat:
    case kTypeFloat32:
    case kTypeTFloat32:
    case kTypeWide:
    case kTypeChar32:
    case kTypeCategory:
    case kTypeColor:
    case kTypePid32:
    case kTypeTid32:
      return 4;
    case kTypeLong:
    case kTypeULong:
    case kTypeLongLong:
    case kTypeULongLong:
    case kTypeInt64:
    case kTypeUInt64:
    case kTypeDouble:
    case kTypeFloat64:
    case kTypeSize:
    case kTypeAddress:
    case kTypeScope:
    case kTypePid64:
    case kTypeTid64:
    case kTypeRegistered:
      return 8;
    case kTypeLongDouble:
      return sizeof(long double);
    default:
      return 0;
  }
}

bool number_at(const SchemaPlace& place, const char* base, double& value) {
  const char* const at = base + place.offset;
  switch (kind_of(place)) {
    case event::FieldKind::kSigned:
      switch (size_of_type(place.type)) {
        case 1:
          return value = load<int8_t>(at), true;
        case 2:
          return value = load<int16_t>(at), true;
        case 4:
          return value = load<int32_t>(at), true;
        default:
          return value = load<int64_t>(at), true;
      }
    case event::FieldKind::kUnsigned:
    case event::FieldKind::kAddress:
      switch (size_of_type(place.type)) {
        case 1:
          return value = load<uint8_t>(at), true;
        case 2:
          return value = load<uint16_t>(at), true;
        case 4:
          return value = load<uint32_t>(at), true;
        default:
          return value = load<uint64_t>(at), true;
      }
    case event::FieldKind::kDouble:
      switch (place.type) {
        case kTypeFloat16:
          return value = load_half(at), true;
        case kTypeBFloat16:
          return value = load_bfloat(at), true;
        case kTypeLongDouble:
          return value = load<long double>(at), true;
        case kTypeDouble:
        case kTypeFloat64:
          return value = load<double>(at), true;
        default:
          return value = load<float>(at), true;
      }
    default:
      return false;
  }
}

uint64_t word_at(const SchemaPlace& place, const char* base) {
  if (kind_of(place) == event::FieldKind::kDouble) {
    double value = 0;
    number_at(place, base, value);
    return std::bit_cast<uint64_t>(value);
  }
  const uint32_t size = size_of_type(place.type);
  uint64_t word = 0;
  memcpy(&word, base + place.offset, size);
  if (kind_of(place) == event::FieldKind::kSigned && size < 8) {
    const uint32_t unused = 64 - 8 * size;
    word = static_cast<uint64_t>(static_cast<int64_t>(word << unused) >> unused);
  }
  return word;
}

void read_semantics(const SemanticsHeader* first, SchemaPlace& place) {
  for (uint32_t i = 0; first != nullptr && i < 16; ++i, first = first->next) {
    if (first->id == kTimeSemantics && first->struct_size >= sizeof(TimeSemantics))
      place.time_domain = reinterpret_cast<const TimeSemantics*>(first)->time_domain;
    if (first->id != kCounterSemantics || first->struct_size < offsetof(CounterSemantics, limit_type)) continue;
    const auto& counter = *reinterpret_cast<const CounterSemantics*>(first);
    if (counter.unit != nullptr) place.unit = named(counter.unit);
    if (counter.scale_numerator != 0 && counter.scale_denominator != 0)
      place.scale = static_cast<double>(counter.scale_numerator) / static_cast<double>(counter.scale_denominator);
  }
}

uint64_t register_schema(const void* handle, const SchemaAttributes* given) {
  if (given == nullptr || !marker::ready()) return 0;
  const auto has = [&](uint64_t field) { return (given->mask & field) != 0; };
  const uint64_t id = has(kSchemaId) && given->id >= kStaticStart && given->id < kDynamicStart
                          ? given->id
                          : g_next_schema_id.fetch_add(1, std::memory_order_relaxed);
  const uint32_t domain = domain_number(handle);
  if (find_in(g_schemas, domain, id) != nullptr) return id;  // NCCL and others register once a communicator
  if (!has(kSchemaEntries) || given->entries == nullptr || !has(kSchemaEntryCount) ||
      (has(kSchemaType) && given->type != kStaticSchema) || !lock_or_give_up(g_schema_lock)) {
    count_unread(Unread::kLayout);
    return id;
  }
  if (Schema* const made = find_in(g_schemas, domain, id) == nullptr ? g_schema_slab.take() : nullptr;
      made != nullptr) {
    made->id = id;
    made->domain = domain;
    made->of_program = true;
    if (has(kSchemaName)) made->name = named(given->name);
    Layout layout(*made, has(kSchemaPack) ? static_cast<uint32_t>(given->pack) : 0);
    for (size_t i = 0; i < given->entry_count && i < 4096; ++i) layout.add(given->entries[i]);
    layout.finish(has(kSchemaSize) ? given->size : 0);
    define_fields(*made);
    publish(g_schemas, made);
  }
  unlock(g_schema_lock);
  return id;
}

uint64_t register_enum(const void* handle, const EnumAttributes* given) {
  if (given == nullptr || !marker::ready()) return 0;
  const auto has = [&](uint64_t field) { return (given->mask & field) != 0; };
  const uint64_t id = has(kEnumId) && given->id >= kStaticStart && given->id < kDynamicStart
                          ? given->id
                          : g_next_schema_id.fetch_add(1, std::memory_order_relaxed);
  const uint32_t domain = domain_number(handle);
  constexpr size_t kMost = 256;  // names that the decoder gets; further values appear as numbers
  const size_t size = has(kEnumSize) ? given->size : 4;
  if (find_in(g_enumerations, domain, id) != nullptr) return id;
  if (!has(kEnumEntries) || given->entries == nullptr || !has(kEnumCount) ||
      (size != 1 && size != 2 && size != 4 && size != 8) || !lock_or_give_up(g_schema_lock)) {
    count_unread(Unread::kLayout);
    return id;
  }
  if (Enumeration* const made = g_enumeration_slab.take(); made != nullptr) {
    struct {
      event::EnumerationRecord head;
      event::EnumerationValue values[kMost];
    } record{};
    for (size_t i = 0; i < given->entry_count && i < kMost; ++i)
      record.values[record.head.count++] = {given->entries[i].value, named(given->entries[i].name),
                                            given->entries[i].flag != 0 ? 1u : 0u};
    made->id = id;
    made->domain = domain;
    made->size = static_cast<uint32_t>(size);
    made->number = g_next_enumeration.fetch_add(1, std::memory_order_relaxed);
    record.head.header = {
        event::RecordKind::kEnumeration, 0,
        static_cast<uint16_t>(sizeof record.head + record.head.count * sizeof(event::EnumerationValue)), made->number};
    tape::define(&record.head.header);
    publish(g_enumerations, made);
  }
  unlock(g_schema_lock);
  return id;
}

const Schema* find_schema(uint32_t domain, uint64_t id) {
  return id < kStaticStart ? predefined(id) : find_in(g_schemas, domain, id);
}

void count_unread(Unread kind, uint64_t more) {
  static constinit std::atomic<uint64_t> counts[static_cast<size_t>(Unread::kEnd)] = {};
  static constexpr const char* kSentences[] = {
      "fields of NVTX payloads that tacho does not read (pointers, unions, arrays of variable length, wide texts, or more than 64)",
      "layouts of NVTX payloads that tacho does not read (dynamic, unions)",
      "NVTX payloads whose layout is not known were left out",
      "NVTX payloads of more than 4096 bytes were left out",
      "deferred NVTX events were left out",
      "samples of NVTX counters without a time that tacho knows were left out",
      "samples of NVTX counters that the program could not get",
      "samples of NVTX counters that nobody registered were left out",
  };
  static_assert(sizeof(kSentences) / sizeof(kSentences[0]) == static_cast<size_t>(Unread::kEnd));
  const auto which = static_cast<size_t>(kind);
  const uint64_t before = counts[which].fetch_add(more, std::memory_order_relaxed), count = before + more;
  if (before != 0 && 63 - __builtin_clzll(before) == 63 - __builtin_clzll(count)) return;  // said at 1, 2, 4, 8 ...
  char text[256];
  const int size =
      snprintf(text, sizeof text, "%s: %llu so far", kSentences[which], static_cast<unsigned long long>(count));
  tape::note(event::NoteSeverity::kWarning, {text, static_cast<size_t>(size)});
}

}  // namespace tacho::capture::nvtx
