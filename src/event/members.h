// One struct for every column, whose only member has the column's name: trace/read/rows.h composes rows of chosen
// columns from them. Derived from tables.def, so a new column needs no line here.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "event/schema.h"

namespace tacho::event {

/// A cell of a kDouble column: the bit pattern of a double, or kUnknown.
struct Double {
  int64_t cell = kUnknown;
  bool known() const { return cell != kUnknown; }
  double value() const { return std::bit_cast<double>(cell); }
};

/// The cells of an enum or double column of a chunk, as their types.
template <typename T>
class TypedCells {
 public:
  TypedCells() = default;
  explicit TypedCells(std::span<const int64_t> cells) : cells_(cells) {}
  size_t size() const { return cells_.size(); }
  T operator[](size_t at) const { return std::bit_cast<T>(cells_[at]); }
  std::span<const int64_t> cells() const { return cells_; }

 private:
  std::span<const int64_t> cells_;
};

/// The enumerator of a cell, which may hold any number: those of no enumerator become the one for unknown ones.
template <ColumnEnum E>
E from_cell(Code<E> code) {
  return from_cell<E>(code.value);
}

// For each table a struct with its columns' numbers (those of namespace column), and for each column `<name>_cell`, a
// struct with one member `<name>`, and `<name>_cells`, the same for all cells of a chunk.
namespace member {

template <auto column>
using Tag = std::integral_constant<decltype(column), column>;

template <typename T>
using CellsOf = std::conditional_t<std::is_same_v<T, int64_t>, std::span<const int64_t>, TypedCells<T>>;

#define TACHO_READ_kInteger(of) int64_t
#define TACHO_READ_kTime(of) int64_t
#define TACHO_READ_kDuration(of) int64_t
#define TACHO_READ_kBytes(of) int64_t
#define TACHO_READ_kDouble(of) Double
#define TACHO_READ_kEnum(of) Code<of>
#define TACHO_READ_kId(of) int64_t
#define TACHO_READ_kString(of) int64_t
#define TACHO_READ_kRow(of) int64_t

// clang-format off: the braces of a macro's text close in another's
#define TACHO_FACT(name, ...)  \
  struct name : column::name { \
    static constexpr Table kTable = Table::k##name;
#define TACHO_DIMENSION(name, ...) TACHO_FACT(name)
#define TACHO_COLUMN(name, type, of, text)        \
  struct name##_cell {                            \
    using Value = TACHO_READ_##type(of);          \
    static constexpr Type kType = Type::type;     \
    Value name;                                   \
  };                                              \
  struct name##_cells {                           \
    using Cells = CellsOf<TACHO_READ_##type(of)>; \
    Cells name;                                   \
  };                                              \
  static name##_cell one(Tag<Index::name>);       \
  static name##_cells many(Tag<Index::name>);
#define TACHO_END(name) \
  }                     \
  ;
// clang-format on
#include "event/tables.def"
/// The columns that every timed fact has, of a table that is chosen at run time.
struct Fact : column::Fact {
  static constexpr Table kTable = Table::kEnd;
#define TACHO_COLUMN(name)                  \
  struct name##_cell {                      \
    int64_t name;                           \
  };                                        \
  struct name##_cells {                     \
    using Cells = std::span<const int64_t>; \
    Cells name;                             \
  };                                        \
  static name##_cell one(Tag<Index::name>); \
  static name##_cells many(Tag<Index::name>);
  TACHO_COLUMN(track)
  TACHO_COLUMN(start)
  TACHO_COLUMN(duration)
  TACHO_COLUMN(dim)
  TACHO_COLUMN(correlation)
#undef TACHO_COLUMN
};

template <typename Index>
struct TableOf;
#define TACHO_FACT(name, ...)           \
  template <>                           \
  struct TableOf<column::name::Index> { \
    using type = name;                  \
  };
#define TACHO_DIMENSION(name, ...) TACHO_FACT(name)
#include "event/tables.def"
template <>
struct TableOf<column::Fact::Index> {
  using type = Fact;
};

}  // namespace member

/// A column's number, such as column::Dispatch::start.
template <typename T>
concept ColumnIndex = requires {
  typename member::TableOf<T>::type;
};

/// The table of a column: kEnd for those of column::Fact.
template <auto column>
inline constexpr Table kTableOf = member::TableOf<decltype(column)>::type::kTable;
/// A struct whose only member is the column's cell, and one with the cells of a chunk.
template <auto column>
using CellOf = decltype(member::TableOf<decltype(column)>::type::one(member::Tag<column>()));
template <auto column>
using CellsOf = decltype(member::TableOf<decltype(column)>::type::many(member::Tag<column>()));

/// A row of some columns of one table, in the order given: RowOf<column::Copy::start, column::Copy::bytes> has the
/// members `start` and `bytes` and no others.
template <auto... columns>
struct RowOf : CellOf<columns>... {
  static constexpr Table kTable = (kTableOf<columns>, ...);
  static_assert(((kTableOf<columns> == kTable) && ...), "the columns are of several tables");

  /// Takes the cells of the columns in their order.
  void assign(const int64_t* cells) {
    ((static_cast<CellOf<columns>&>(*this) = std::bit_cast<CellOf<columns>>(*cells++)), ...);
  }
};

}  // namespace tacho::event
