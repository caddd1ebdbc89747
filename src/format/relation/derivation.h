// The tables of databases that tacho writes and answers as SQL, stated once. A table is a list of columns, written as
// a function of a face:
//
//   inline constexpr auto kApiOpsTable = [](auto& face) {
//     face.relation("rocpd_api_ops");
//     face.keep(kCaused);  // rows for which this is 0 are none of the table's
//     face.column("id", "k", kId, kRowId);
//     face.column("api_id", ">api", 0, kCall);
//   };
//
// A face reads the list for one purpose: the text of CREATE TABLE, a row of an exported file, or the columns of a
// virtual table. The SQL types are codes of the format; the derivation says how a row of a trace gives the value.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "event/members.h"

namespace tacho::format::relation {

/// What SQL makes use of (query/engine/relation.h): few distinct values, all from the row's track or dimension; the
/// start of the rows, ascending; the row's id. kText: the value is the code of a text whatever the SQL type says.
inline constexpr unsigned kFew = 1, kText = 2, kTime = 4, kId = 8, kReal = 16;
/// Texts made of the value itself: a number in hexadecimal, a double's bits in decimal.
inline constexpr unsigned kHex = 32, kDecimal = 64;
/// The first flag that a format may give a meaning of its own.
inline constexpr unsigned kOwnFlag = 128;

/// An SQL type: a format's code of it.
struct ColumnType {
  template <size_t kSize>
  consteval ColumnType(const char (&type)[kSize]) : ColumnType(std::string_view(type, kSize - 1)) {}
  explicit constexpr ColumnType(std::string_view type)
      : text(type), code(type.front()), text_id(type.ends_with("string")) {}
  std::string_view text;
  char code;     // its first character
  bool text_id;  // the id of a text in another table
};

/// In place of a stored column: the row's number within its table.
inline constexpr int16_t kRowNumber = -1;

/// How a value follows from stored columns of a row (numbers of event::column; at most four). The face calls
/// Function{}(facts, values...), where `facts` answers what the list's format asks about the trace. The result is an
/// integer, a double's bits or the code of a text; event::kUnknown = not known.
template <typename Function, int16_t... kBase>
struct Derivation {};
template <int16_t... kBase, typename Function>
constexpr Derivation<Function, kBase...> from(Function) {
  return {};
}

/// The stored column as it is.
struct Stored {
  int64_t operator()(const auto&, int64_t value) const { return value; }
};
template <int16_t kColumn>
inline constexpr Derivation<Stored, kColumn> kStored;

/// In Face::keep: the table lacks no row.
struct EveryRow {
  int64_t operator()(const auto&) const { return 1; }
};
inline constexpr Derivation<EveryRow> kEveryRow;

/// One derivation for rows of table kTable, another one for those of the list's other tables.
template <event::Table kTable, typename Then, typename Else>
struct ByTable {};
template <event::Table kTable, typename Then, typename Else>
constexpr ByTable<kTable, Then, Else> choose(Then, Else) {
  return {};
}

/// The stored columns of a typed row, for value_of(); 0 for columns that it lacks and for its number.
template <auto... kColumns>
auto stored_of(const event::RowOf<kColumns...>& row) {
  return [&row](int16_t at) {
    int64_t value = 0;
    const auto take = [&](int16_t column, const auto& cell) {
      if (column == at) value = std::bit_cast<int64_t>(cell);
    };
    (take(static_cast<int16_t>(kColumns), static_cast<const event::CellOf<kColumns>&>(row)), ...);
    return value;
  };
}

/// The value for a row of `table`; stored(column) gives its stored columns.
template <typename Function, int16_t... kBase>
int64_t value_of(Derivation<Function, kBase...>, event::Table, auto& facts, const auto& stored) {
  return Function{}(facts, stored(kBase)...);
}
template <event::Table kTable, typename Then, typename Else>
int64_t value_of(ByTable<kTable, Then, Else>, event::Table table, auto& facts, const auto& stored) {
  return table == kTable ? value_of(Then{}, table, facts, stored) : value_of(Else{}, table, facts, stored);
}

}  // namespace tacho::format::relation
