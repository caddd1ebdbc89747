// The vocabulary of a trace: every table, column, type and enumeration. tables.def and enums.def list them once; this
// header turns the lists into table and column numbers, enum classes, typed rows (namespace row) and data.
//
// A trace has facts (many narrow rows: track, start, duration, dimension, correlation and a few columns of their own)
// and dimensions (few wide rows, deduplicated, referred to by row number). Row 0 of every dimension means "none". Every
// value is an int64; kUnknown means that the source could not know it (never write 0 for that). Strings are row numbers
// of the string table; doubles are stored as their bit pattern.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace tacho::event {

inline constexpr int64_t kUnknown = std::numeric_limits<int64_t>::min();

/// Type and unit of a column. The numbers are written to files: append only.
enum class Type : uint8_t {
  kInteger,   // a count or number without a unit
  kTime,      // CLOCK_MONOTONIC_RAW, ns
  kDuration,  // ns
  kBytes,     // bytes
  kDouble,    // IEEE double, bit pattern
  kEnum,      // a value of Column::enumeration
  kId,        // an identifier: compare for equality only
  kString,    // row of the string table
  kRow,       // row of the table named by Column::target
};

/// Every table: kDispatch ... kNote are facts, kString ... kProperty dimensions. The numbers are written to files.
enum class Table : uint8_t {
#define TACHO_FACT(name, ...) k##name,
#include "event/tables.def"
  kFactEnd,  // not a table: the number of fact tables
  kBeforeDimensions = 31,
#define TACHO_DIMENSION(name, ...) k##name,
#include "event/tables.def"
  kEnd,  // not a table; in columns of this type "other"
};
inline constexpr size_t kFactTables = static_cast<size_t>(Table::kFactEnd);
inline constexpr size_t kFirstDimension = static_cast<size_t>(Table::kString);
inline constexpr size_t kDimensionTables = static_cast<size_t>(Table::kEnd) - kFirstDimension;
static_assert(kFactTables < kFirstDimension);

// Enumerations

// clang-format off: the braces of a macro's text close in another's
#define TACHO_ENUM(name, unknown) enum class name : uint8_t {
#define TACHO_VALUE(name, ...) name,
#define TACHO_END_ENUM(name) \
  kEnd                       \
  }                          \
  ;
// clang-format on
#include "event/enums.def"

struct Enumerator {
  int64_t code;
  std::string_view text;
};

/// An enum as data: its enumerators in the order of their codes.
struct Enumeration {
  std::string_view name;
  std::span<const Enumerator> values;
  int64_t unknown;  // the code for codes that are none of `values`

  /// The enumerator's text; that of `unknown` for a code without one.
  std::string_view text(int64_t code) const;
  /// The code of an enumerator's text.
  std::optional<int64_t> code(std::string_view text) const;
  /// `code`, or `unknown` if no enumerator has it.
  int64_t known(int64_t code) const { return find(code) != nullptr ? code : unknown; }
  /// The enumerator of a code; nullptr when there is none.
  const Enumerator* find(int64_t code) const;
};

/// The Enumeration of an enum type of a column (those of enums.def, and Table).
template <typename E>
const Enumeration& enumeration();
/// All of them, Table last.
std::span<const Enumeration* const> all_enumerations();

template <typename E>
concept ColumnEnum = std::is_enum_v<E> && requires {
  E::kEnd;
};

/// The enumerator of a text; nullopt for any other text.
template <ColumnEnum E>
std::optional<E> from_string(std::string_view text) {
  const std::optional<int64_t> code = enumeration<E>().code(text);
  return code ? std::optional(static_cast<E>(*code)) : std::nullopt;
}

/// The enumerator of a cell, which may hold anything: codes of no enumerator become the one for unknown ones.
template <ColumnEnum E>
E from_cell(int64_t code) {
  return static_cast<E>(enumeration<E>().known(code));
}

#define TACHO_ENUM(name, unknown)         \
  std::string_view to_string(name value); \
  template <>                             \
  const Enumeration& enumeration<name>();
#include "event/enums.def"
template <>
const Enumeration& enumeration<Table>();

// Tables as data

struct Column {
  std::string_view name;
  Type type;
  Table target;                    // for kRow; otherwise kEnd
  const Enumeration* enumeration;  // for kEnum; otherwise nullptr
  int64_t unset;                   // value in rows that do not set the column
  std::string_view text;           // its meaning
};

// Column numbers: column::Dispatch::start and so on, plus kCount.
namespace column {
// clang-format off
#define TACHO_FACT(name, ...) struct name { enum Index : uint8_t {
#define TACHO_DIMENSION(name, ...) TACHO_FACT(name)
#define TACHO_COLUMN(name, ...) name,
#define TACHO_END(name) kCount }; };
// clang-format on
#include "event/tables.def"
/// The first five columns are the same in every timed fact.
struct Fact {
  enum Index : uint8_t { track, start, duration, dim, correlation };
};
}  // namespace column

/// Columns of the widest table.
inline constexpr size_t kMaxColumns = [] {
  size_t most = 0;
#define TACHO_END(name) \
  if (most < size_t{column::name::kCount}) most = column::name::kCount;
#include "event/tables.def"
  return most;
}();

struct TableInfo {
  Table table;
  bool timed;             // see is_timed()
  std::string_view name;  // in SQL, files and docs
  std::string_view text;  // the meaning of a row
  std::span<const Column> columns;
};

/// The description of `table`. Contract: one of the list, none of the markers kFactEnd, kBeforeDimensions, kEnd.
const TableInfo& table_info(Table table);
/// All tables, facts first, in the order of their numbers.
std::span<const TableInfo> all_tables();
/// A hash over all tables, columns, enumerations and the records of records.h. A pool carries it, so that only
/// processes of one build share a pool.
uint64_t schema_hash();

constexpr bool is_fact(Table table) {
  return static_cast<size_t>(table) < kFactTables;
}
/// Facts with track, start, duration, dim and correlation as their first five columns.
constexpr bool is_timed(Table table) {
  constexpr uint64_t kTimed = 0
#define TACHO_FACT(name, timed, ...) | (uint64_t{timed} << static_cast<unsigned>(Table::k##name))
#include "event/tables.def"
      ;
  return is_fact(table) && (kTimed >> static_cast<unsigned>(table) & 1) != 0;
}

// Typed rows

/// A cell of an enum column: takes the enumerator, or with Code::of() a cell's number as it is.
template <typename E>
struct Code {
  int64_t value = 0;
  constexpr Code() = default;
  constexpr Code(E code) : value(static_cast<int64_t>(code)) {}  // NOLINT(google-explicit-constructor)
  static constexpr Code of(int64_t cell) {
    Code code;
    code.value = cell;
    return code;
  }
  friend constexpr bool operator==(Code, Code) = default;
};

// The type of the member for a column of some type, and its value if a row does not set it.
#define TACHO_CELL_kInteger(of) int64_t
#define TACHO_CELL_kTime(of) int64_t
#define TACHO_CELL_kDuration(of) int64_t
#define TACHO_CELL_kBytes(of) int64_t
#define TACHO_CELL_kDouble(of) int64_t
#define TACHO_CELL_kEnum(of) Code<of>
#define TACHO_CELL_kId(of) int64_t
#define TACHO_CELL_kString(of) int64_t
#define TACHO_CELL_kRow(of) int64_t

template <typename E>
constexpr E unset_code() {
  if constexpr (std::same_as<E, Table>) {
    return Table::kEnd;
  } else {
    return E{};
  }
}
#define TACHO_UNSET_kInteger(of) kUnknown
#define TACHO_UNSET_kTime(of) kUnknown
#define TACHO_UNSET_kDuration(of) kUnknown
#define TACHO_UNSET_kBytes(of) kUnknown
#define TACHO_UNSET_kDouble(of) kUnknown
#define TACHO_UNSET_kEnum(of) unset_code<of>()
#define TACHO_UNSET_kId(of) 0
#define TACHO_UNSET_kString(of) 0
#define TACHO_UNSET_kRow(of) 0

/// A row of each table, one member per column in the table's order, to be written with designated initialisers:
/// row::Kernel{.name = name, .grid_x = 1024}. Other members are unset (tables.def defines the value). The members are
/// the table's int64 cells and nothing else: see cells().
namespace row {
// clang-format off
#define TACHO_FACT(name, ...) struct name { static constexpr Table kTable = Table::k##name;
#define TACHO_DIMENSION(name, ...) TACHO_FACT(name)
#define TACHO_COLUMN(name, type, of, text) TACHO_CELL_##type(of) name = TACHO_UNSET_##type(of);
#define TACHO_ZERO_COLUMN(name, type, of, text) TACHO_CELL_##type(of) name = 0;
#define TACHO_END(name)                                                   \
    static constexpr size_t kColumns = column::name::kCount;              \
    friend constexpr bool operator==(const name&, const name&) = default; \
  };
// clang-format on
#include "event/tables.def"
}  // namespace row

template <typename R>
concept Row = requires {
  { R::kTable } -> std::convertible_to<Table>;
  { R::kColumns } -> std::convertible_to<size_t>;
};
/// Rows of facts, of timed facts, and of dimensions that are made of columns (all but string).
template <typename R>
concept FactRow = Row<R> && is_fact(R::kTable);
template <typename R>
concept TimedRow = FactRow<R> && is_timed(R::kTable);
template <typename R>
concept DimensionRow = Row<R> && !is_fact(R::kTable) && (R::kColumns > 0);

/// The cells of a row in the order of its table's columns: the row's own memory.
template <Row R>
std::span<const int64_t, R::kColumns> cells(const R& row) {
  static_assert(std::is_standard_layout_v<R> && std::is_trivially_copyable_v<R> &&
                sizeof(R) == R::kColumns * sizeof(int64_t));
  return std::span<const int64_t, R::kColumns>(reinterpret_cast<const int64_t*>(&row), R::kColumns);
}
/// The row of these cells.
template <Row R>
R row_of(std::span<const int64_t, R::kColumns> cells) {
  std::array<int64_t, R::kColumns> copy;
  for (size_t i = 0; i < copy.size(); ++i) copy[i] = cells[i];
  return std::bit_cast<R>(copy);
}

}  // namespace tacho::event
