// Reads the list of a database's table (format/relation/derivation.h) as a relation: the columns of a virtual table.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/format.h"
#include "format/relation/derivation.h"
#include "query/engine/relation.h"

namespace tacho::query {

/// `Facts` answers the lists of one format about a trace; each column gets a copy. Beyond what the lists ask it has
///   static bool is_text(code)                     of an SQL type
///   text_id(code), text(code, scratch)            that id, and the text, for the code of a text
///   own_text(flags, code, scratch)                the text of a value in a column with flags of the format's own
///   first_id                                      the row id of the table's first row
template <typename Facts>
class RelationFace {
 public:
  explicit RelationFace(int version) : version_(version) {}

  /// Adds the rows of a table of the trace to the relation of `list`.
  template <typename List>
  RelationFace& add(const List& list, event::Table table, const Facts& facts) {
    table_ = table;
    facts_ = &facts;
    part_ = Part{.table = static_cast<int>(table), .columns = {}, .keep = {}, .first_id = facts.first_id};
    list(*this);
    relation_.parts.push_back(std::move(part_));
    return *this;
  }
  /// The relation of a list without rows.
  template <typename List>
  RelationFace& empty(const List& list, const Facts& facts) {
    add(list, {}, facts);
    relation_.parts.clear();
    return *this;
  }
  Relation take() { return std::move(relation_); }

  // What lists call

  int version() const { return version_; }
  void relation(std::string_view name, std::string_view = {}) {
    relation_.name = name;
    relation_.clock = [facts = *facts_](int64_t time) { return facts.clock(time); };
  }
  template <typename Function, int16_t... kBase>
  void keep(format::relation::Derivation<Function, kBase...> derivation) {
    if constexpr (std::is_same_v<Function, format::relation::EveryRow>) return;
    part_.keep.push_back(stored(derivation, false));
    if (!part_.keep.back().derive) part_.keep.back().derive = [](const int64_t* base) { return base[0]; };
  }
  template <event::Table kTable, typename Then, typename Else>
  void keep(format::relation::ByTable<kTable, Then, Else>) {
    return table_ == kTable ? keep(Then{}) : keep(Else{});
  }
  void column(std::string_view name, format::relation::ColumnType type, unsigned flags, auto derivation) {
    namespace relation = format::relation;
    if (relation_.parts.empty()) {
      const bool text = (flags & relation::kText) != 0 || Facts::is_text(type.code);
      relation_.columns.push_back({.name = std::string(name),
                                   .type = text                             ? ValueType::kText
                                           : (flags & relation::kReal) != 0 ? ValueType::kReal
                                                                            : ValueType::kInteger,
                                   .text = text ? text_of(flags) : TextOf{},
                                   .few = (flags & relation::kFew) != 0,
                                   .time = (flags & relation::kTime) != 0,
                                   .id = (flags & relation::kId) != 0});
    }
    part_.columns.push_back(stored(derivation, type.text_id));
  }

 private:
  TextOf text_of(unsigned flags) const {
    namespace relation = format::relation;
    const auto made = [](auto make) {
      return TextOf([make](int64_t code, std::string& scratch) {
        scratch = make(code);
        return std::string_view(scratch);
      });
    };
    if ((flags & relation::kHex) != 0)
      return made([](int64_t code) { return fmt::format("0x{:x}", static_cast<uint64_t>(code)); });
    if ((flags & relation::kDecimal) != 0)
      return made([](int64_t code) { return fmt::format("{}", __builtin_bit_cast(double, code)); });
    if (flags >= relation::kOwnFlag)
      return
          [facts = *facts_, flags](int64_t code, std::string& scratch) { return facts.own_text(flags, code, scratch); };
    return [facts = *facts_](int64_t code, std::string& scratch) { return facts.text(code, scratch); };
  }

  template <typename Function, int16_t... kBase>
  PartColumn stored(format::relation::Derivation<Function, kBase...>, bool text_id) const {
    static_assert(sizeof...(kBase) <= kMostBases && format::relation::kRowNumber == kRowNumber);
    PartColumn column;
    size_t count = 0;
    ((column.base[count++] = kBase), ...);
    const auto value = [facts = *facts_](const int64_t* base) {
      return call<Function>(facts, base, std::make_index_sequence<sizeof...(kBase)>());
    };
    if (text_id)
      column.derive = [value, facts = *facts_](const int64_t* base) { return facts.text_id(value(base)); };
    else if constexpr (!std::is_same_v<Function, format::relation::Stored>)
      column.derive = value;
    return column;
  }
  template <event::Table kTable, typename Then, typename Else>
  PartColumn stored(format::relation::ByTable<kTable, Then, Else>, bool text_id) const {
    return table_ == kTable ? stored(Then{}, text_id) : stored(Else{}, text_id);
  }
  template <typename Function, size_t... kAt>
  static int64_t call(const Facts& facts, [[maybe_unused]] const int64_t* base, std::index_sequence<kAt...>) {
    return Function{}(facts, base[kAt]...);
  }

  int version_;
  event::Table table_{};
  const Facts* facts_ = nullptr;
  Relation relation_;
  Part part_;
};

}  // namespace tacho::query
