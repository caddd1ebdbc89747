// The part of NVTX 3's payload and counter extensions that a tool needs, declared by ourselves as nvtx_abi.h: modules,
// slots of functions, layouts of payloads, counters. Numbers are ABI.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho::capture::nvtx {

struct ExtensionSegment {
  size_t id;
  size_t slots;
  intptr_t* functions;
};
struct ExtensionModule {
  uint16_t version, struct_size, id, compatible;
  size_t segment_count;
  ExtensionSegment* segments;
  intptr_t (*get_export)(uint32_t id);
  const void* info;
};
enum ExtensionId : uint16_t { kPayloadExtension = 2, kCounterExtension = 4 };

enum PayloadFunction : unsigned {
  kSchemaRegister = 0,
  kEnumRegister,
  kMarkPayload,
  kRangePushPayload,
  kRangePopPayload,
  kRangeStartPayload,
  kRangeEndPayload,
  kTimestampGet = 8,
  kEventSubmit = 16,
  kEventBatchSubmit
};
enum CounterFunction : unsigned {
  kCounterRegister = 0,
  kCounterSampleInt64,
  kCounterSampleFloat64,
  kCounterSample,
  kCounterSampleNoValue,
  kCounterBatchSubmit
};

/// EventAttributes::payload_type: payload.u64 is the address of `reserved` PayloadData.
inline constexpr int32_t kExtendedPayload = static_cast<int32_t>(0xDFBD0009);

struct PayloadData {
  uint64_t schema;
  size_t size;  // SIZE_MAX: the tool finds out
  const void* payload;
};

struct SemanticsHeader {
  uint32_t struct_size;
  uint16_t id, version;
  const SemanticsHeader* next;
};
enum SemanticsId : uint16_t { kTimeSemantics = 2, kCounterSemantics = 5 };
struct TimeSemantics {
  SemanticsHeader header;
  uint64_t time_domain;
};
struct CounterSemantics {
  SemanticsHeader header;
  uint64_t flags;
  const char* unit;
  uint64_t scale_numerator, scale_denominator;
  int64_t limit_type;
  uint64_t least, most;
};
static_assert(sizeof(CounterSemantics) == 72);

struct SchemaEntry {
  uint64_t flags;
  uint64_t type;
  const char* name;
  const char* description;
  uint64_t detail;  // length of an array or a text
  uint64_t offset;  // 0: behind the entry before
  const SemanticsHeader* semantics;
  const void* reserved;
};
enum EntryFlag : uint64_t {
  kEntryPointer = 1 << 1,
  kEntryOffsets = 3 << 2,
  kEntryArray = 7 << 4,
  kEntryFixedArray = 1 << 4,
  kEntryMessage = 1 << 10,
  kEntryTimestamp = 2 << 10,
  kEntryContent = 3 << 10
};
enum EntryType : uint64_t {
  kTypeChar = 1,
  kTypeUChar,
  kTypeShort,
  kTypeUShort,
  kTypeInt,
  kTypeUInt,
  kTypeLong,
  kTypeULong,
  kTypeLongLong,
  kTypeULongLong,
  kTypeInt8,
  kTypeUInt8,
  kTypeInt16,
  kTypeUInt16,
  kTypeInt32,
  kTypeUInt32,
  kTypeInt64,
  kTypeUInt64,
  kTypeFloat,
  kTypeDouble,
  kTypeLongDouble,
  kTypeSize,
  kTypeAddress,
  kTypeWide,
  kTypeChar8,
  kTypeChar16,
  kTypeChar32,
  kTypeByte = 32,
  kTypeInt128,
  kTypeUInt128,
  kTypeFloat16 = 42,
  kTypeFloat32,
  kTypeFloat64,
  kTypeFloat128,
  kTypeBFloat16 = 50,
  kTypeTFloat32 = 52,
  kTypeCategory = 68,
  kTypeColor,
  kTypeScope,
  kTypePid32,
  kTypePid64,
  kTypeTid32,
  kTypeTid64,
  kTypeText,
  kTypeTextUtf8,
  kTypeTextUtf16,
  kTypeTextUtf32,
  kTypeRegistered = 80,
  kTypeReferenced = 1022,
  kTypeRaw = 1023
};
/// Numbers of schemas and counters: the program chooses those from here on, the tool those from kDynamicStart on.
inline constexpr uint64_t kStaticStart = 1 << 24, kDynamicStart = uint64_t{1} << 32;

struct SchemaAttributes {
  uint64_t mask;
  const char* name;
  uint64_t type;
  uint64_t flags;
  const SchemaEntry* entries;
  size_t entry_count;
  size_t size;
  size_t pack;
  uint64_t id;
  void* extension;
};
enum SchemaField : uint64_t {
  kSchemaName = 1 << 1,
  kSchemaType = 1 << 2,
  kSchemaEntries = 1 << 4,
  kSchemaEntryCount = 1 << 5,
  kSchemaSize = 1 << 6,
  kSchemaPack = 1 << 7,
  kSchemaId = 1 << 8
};
inline constexpr uint64_t kStaticSchema = 1;

struct EnumEntry {
  const char* name;
  uint64_t value;
  int8_t flag;
};
struct EnumAttributes {
  uint64_t mask;
  const char* name;
  const EnumEntry* entries;
  size_t entry_count;
  size_t size;
  uint64_t id;
  void* extension;
};
enum EnumField : uint64_t {
  kEnumName = 1 << 1,
  kEnumEntries = 1 << 2,
  kEnumCount = 1 << 3,
  kEnumSize = 1 << 4,
  kEnumId = 1 << 5
};

struct CounterAttributes {
  size_t struct_size;
  uint64_t schema;
  const char* name;
  const char* description;
  uint64_t scope;
  const SemanticsHeader* semantics;
  uint64_t id;
};
struct CounterBatch {
  uint64_t counter;
  const void* samples;
  size_t size;
  uint64_t flags;
  const int64_t* times;
  size_t times_size;
};
/// CounterBatch::flags: `times` are the time of the first or last sample and the interval between samples.
inline constexpr uint64_t kFirstAndInterval = uint64_t{1} << 32, kLastAndInterval = uint64_t{2} << 32;
/// Why a sample has no value.
enum NoValue : uint8_t { kNoValueZero, kNoValueUnchanged, kNoValueUnavailable };
/// Clocks of time stamps (TimeSemantics::time_domain).
enum TimeSource : uint64_t {
  kTimeOfTool = 1,
  kTimeTsc = 10,
  kTimeRealtime = 12,
  kTimeMonotonic = 14,
  kTimeMonotonicRaw,
  kTimeBoottime = 17
};

}  // namespace tacho::capture::nvtx
