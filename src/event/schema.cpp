// The lists of tables.def and enums.def as data, and the schema's hash.
#include "event/schema.h"

#include <array>

#include "event/records.h"

namespace tacho::event {
namespace {

// Enumerations

template <typename E>
struct Values;  // Values<E>::kTexts, in the order of the codes, and the code for unknown ones

// clang-format off: the braces of a macro's text close in another's
#define TACHO_ENUM(name, unknown)                                                \
  template <>                                                                    \
  struct Values<name> {                                                          \
    static constexpr int64_t kUnknownCode = static_cast<int64_t>(name::unknown); \
    static constexpr std::string_view kTexts[] = {
#define TACHO_VALUE(name, text) text,
#define TACHO_END_ENUM(name) \
  }                          \
  ;                          \
  }                          \
  ;
// clang-format on
#include "event/enums.def"

template <typename E>
constexpr auto numbered() {
  constexpr size_t kCount = std::size(Values<E>::kTexts);
  static_assert(kCount == static_cast<size_t>(E::kEnd));
  std::array<Enumerator, kCount> values{};
  for (size_t i = 0; i < kCount; ++i) values[i] = {static_cast<int64_t>(i), Values<E>::kTexts[i]};
  return values;
}

#define TACHO_ENUM(name, unknown)                  \
  constexpr auto kValues##name = numbered<name>(); \
  constexpr Enumeration kEnumeration##name = {#name, kValues##name, Values<name>::kUnknownCode};
#include "event/enums.def"

constexpr Enumerator kValuesTable[] = {
#define TACHO_FACT(name, timed, sql, text) {static_cast<int64_t>(Table::k##name), sql},
#define TACHO_DIMENSION(name, sql, text) {static_cast<int64_t>(Table::k##name), sql},
#include "event/tables.def"
    {static_cast<int64_t>(Table::kEnd), "other"},
};
constexpr Enumeration kEnumerationTable = {"Table", kValuesTable, static_cast<int64_t>(Table::kEnd)};

constexpr const Enumeration* kEnumerations[] = {
#define TACHO_ENUM(name, unknown) &kEnumeration##name,
#include "event/enums.def"
    &kEnumerationTable,
};

// Tables

#define TACHO_TARGET_kInteger(of) Table::kEnd, nullptr
#define TACHO_TARGET_kTime(of) Table::kEnd, nullptr
#define TACHO_TARGET_kDuration(of) Table::kEnd, nullptr
#define TACHO_TARGET_kBytes(of) Table::kEnd, nullptr
#define TACHO_TARGET_kDouble(of) Table::kEnd, nullptr
#define TACHO_TARGET_kEnum(of) Table::kEnd, &kEnumeration##of
#define TACHO_TARGET_kId(of) Table::kEnd, nullptr
#define TACHO_TARGET_kString(of) Table::kEnd, nullptr
#define TACHO_TARGET_kRow(of) Table::k##of, nullptr

// clang-format off
#define TACHO_FACT(name, ...) constexpr std::array<Column, column::name::kCount> kColumns##name = {{
#define TACHO_DIMENSION(name, ...) TACHO_FACT(name)
#define TACHO_COLUMN(name, type, of, text) \
  {#name, Type::type, TACHO_TARGET_##type(of), static_cast<int64_t>(TACHO_UNSET_##type(of)), text},
#define TACHO_ZERO_COLUMN(name, type, of, text) {#name, Type::type, TACHO_TARGET_##type(of), 0, text},
#define TACHO_END(name) }};
// clang-format on
#include "event/tables.def"

constexpr TableInfo kTables[] = {
#define TACHO_FACT(name, timed, sql, text) {Table::k##name, timed, sql, text, kColumns##name},
#define TACHO_DIMENSION(name, sql, text) {Table::k##name, false, sql, text, kColumns##name},
#include "event/tables.def"
};
static_assert(std::size(kTables) == kFactTables + kDimensionTables);

constexpr bool timed_tables_begin_alike() {
  constexpr std::string_view kNames[] = {"track", "start", "duration", "dim", "correlation"};
  for (const TableInfo& info : kTables) {
    if (!info.timed) continue;
    if (!is_fact(info.table) || info.columns.size() < std::size(kNames)) return false;
    for (size_t i = 0; i < std::size(kNames); ++i) {
      if (info.columns[i].name != kNames[i]) return false;
    }
  }
  return true;
}
static_assert(timed_tables_begin_alike());

// The hash

constexpr uint64_t mix(uint64_t hash, uint64_t number) {  // FNV-1a, 64 bit
  return (hash ^ number) * 0x100000001b3ULL;
}
constexpr uint64_t mix(uint64_t hash, std::string_view text) {
  for (const char c : text) hash = mix(hash, static_cast<uint64_t>(static_cast<uint8_t>(c)));
  return mix(hash, uint64_t{0xff});
}

constexpr uint64_t compute_hash(std::span<const RecordInfo> records) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const TableInfo& info : kTables) {
    hash = mix(hash, info.name);
    hash = mix(hash, static_cast<uint64_t>(info.table));
    for (const Column& column : info.columns) {
      hash = mix(hash, column.name);
      hash = mix(hash, static_cast<uint64_t>(column.type) << 8 | static_cast<uint64_t>(column.target));
      if (column.enumeration != nullptr) hash = mix(hash, column.enumeration->name);
    }
  }
  for (const Enumeration* enumeration : kEnumerations) {
    hash = mix(hash, enumeration->name);
    for (const Enumerator& value : enumeration->values) {
      hash = mix(mix(hash, value.text), static_cast<uint64_t>(value.code));
    }
  }
  for (const RecordInfo& record : records) {
    hash = mix(hash, record.name);
    hash = mix(hash, static_cast<uint64_t>(record.kind) << 16 | record.size);
  }
  return hash;
}
constexpr uint64_t kSchemaHash = compute_hash(kRecordInfos);

}  // namespace

std::string_view Enumeration::text(int64_t code) const {
  const Enumerator* value = find(code);
  if (value == nullptr) value = find(unknown);
  return value == nullptr ? std::string_view() : value->text;
}

std::optional<int64_t> Enumeration::code(std::string_view text) const {
  for (const Enumerator& value : values) {
    if (value.text == text) return value.code;
  }
  return std::nullopt;
}

const Enumerator* Enumeration::find(int64_t code) const {
  // All but Table count from 0 without gaps.
  if (code >= 0 && code < static_cast<int64_t>(values.size())) {
    const Enumerator& value = values[static_cast<size_t>(code)];
    if (value.code == code) return &value;
  }
  for (const Enumerator& value : values) {
    if (value.code == code) return &value;
  }
  return nullptr;
}

#define TACHO_ENUM(name, unknown)                                                           \
  std::string_view to_string(name value) {                                                  \
    const auto code = static_cast<size_t>(value);                                           \
    return code < std::size(Values<name>::kTexts) ? Values<name>::kTexts[code] : "unknown"; \
  }                                                                                         \
  template <>                                                                               \
  const Enumeration& enumeration<name>() {                                                  \
    return kEnumeration##name;                                                              \
  }
#include "event/enums.def"
template <>
const Enumeration& enumeration<Table>() {
  return kEnumerationTable;
}
std::span<const Enumeration* const> all_enumerations() {
  return kEnumerations;
}

const TableInfo& table_info(Table table) {
  const auto number = static_cast<size_t>(table);
  return kTables[number < kFactTables ? number : number - kFirstDimension + kFactTables];
}
std::span<const TableInfo> all_tables() {
  return kTables;
}
uint64_t schema_hash() {
  return kSchemaHash;
}
uint64_t schema_hash(std::span<const RecordInfo> records) {
  return compute_hash(records);
}

}  // namespace tacho::event
