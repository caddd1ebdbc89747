// Layouts that a program registers for NVTX's extended payloads and groups of counters: what lies where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "capture/source/marker/nvtx_extension_abi.h"
#include "event/records.h"

namespace tacho::capture::nvtx {

inline constexpr uint32_t kMostFields = 64;  // of a layout

/// One value of a layout.
struct SchemaPlace {
  uint32_t offset;
  uint16_t type;         // EntryType
  uint16_t length;       // of a text that lies in the payload; 0 = a pointer to it
  uint32_t name, outer;  // strings; outer: of the struct in which it lies, 0 = none
  uint32_t enumeration;
  bool message, time;
  double scale;          // of a counter's value
  uint32_t unit, text;   // strings, 0 = none
  uint64_t time_domain;  // of a time stamp, 0 = none said
};
struct Schema {
  uint64_t id;
  uint32_t domain, number, name;  // number of the FieldsRecord, 0 = for counters only
  uint32_t size, align;           // size 0: unknown, payloads say it
  uint32_t count;
  bool of_program;  // registered, else a predefined type
  Schema* next;
  SchemaPlace places[kMostFields];
};

uint64_t register_schema(const void* domain, const SchemaAttributes* attributes);
uint64_t register_enum(const void* domain, const EnumAttributes* attributes);
/// The layout of that number, or one of a single value for a predefined type; nullptr = unknown.
const Schema* find_schema(uint32_t domain, uint64_t id);
/// What the semantics say: unit and scale of a counter, clock of a time stamp. Leaves the rest of `place` as it is.
void read_semantics(const SemanticsHeader* first, SchemaPlace& place);
/// Bytes of a value of that type; 0 = none that tacho reads.
uint32_t size_of_type(uint64_t type);
/// Its value as a double, if it is a number.
bool number_at(const SchemaPlace& place, const char* base, double& value);
/// Its value as a record has it: an integer of 64 bits, a double's bits, a handle.
uint64_t word_at(const SchemaPlace& place, const char* base);

/// Kinds of what tacho cannot record of NVTX's extensions. Each has a note, which counts.
enum class Unread : uint32_t { kField, kLayout, kPayload, kRoom, kDeferred, kTime, kUnavailable, kCounter, kEnd };
void count_unread(Unread kind, uint64_t count = 1);

}  // namespace tacho::capture::nvtx
