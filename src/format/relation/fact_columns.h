// Derivations that the tables of several databases share (derivation.h). `x` has trace(), id(row_number), clock(time)
// and unknown_end(start), the end of what has none.
#pragma once

#include "base/saturating.h"
#include "format/relation/derivation.h"

namespace tacho::format::relation::fact_columns {

using event::kUnknown;
using event::Table;
using F = event::column::Fact;
using K = event::column::Kernel;

inline constexpr auto kZero = from<>([](auto&) { return int64_t{0}; });  // 0 or ""
inline constexpr auto kRowId = from<kRowNumber>([](auto& x, int64_t row) { return x.id(row); });
inline constexpr auto kStart = from<F::start>([](auto& x, int64_t start) { return x.clock(start); });
inline constexpr auto kEnd = from<F::start, F::duration>([](auto& x, int64_t start, int64_t duration) {
  return duration == kUnknown ? x.unknown_end(start) : x.clock(start + duration);
});
inline constexpr auto kDuration = from<F::start, F::duration>([](auto& x, int64_t start, int64_t duration) {
  return duration == kUnknown ? kUnknown : x.clock(start + duration) - x.clock(start);
});

template <int kColumn>
inline constexpr auto kKernelCell = from<F::dim>([](auto& x, int64_t kernel) {
  return x.trace().cell(Table::kKernel, kernel, kColumn);
});
/// Shared memory of both kinds; that of one kind where the other is not known.
inline constexpr auto kShared = from<F::dim>([](auto& x, int64_t kernel) {
  const int64_t fixed = x.trace().cell(Table::kKernel, kernel, K::shared_static),
                dynamic = x.trace().cell(Table::kKernel, kernel, K::shared_dynamic);
  return fixed == kUnknown ? dynamic : dynamic == kUnknown ? fixed : saturating_add(fixed, dynamic);
});

}  // namespace tacho::format::relation::fact_columns

namespace tacho::format::relation {

/// The columns of a list "name type name type ..." that have no derivation; one of type k is the row's id.
template <typename Face>
void plain_columns(Face& face, std::string_view list) {
  while (!list.empty()) {
    const size_t first = list.find(' '), second = list.find(' ', first + 1);
    const ColumnType type(list.substr(first + 1, second - first - 1));
    face.column(list.substr(0, first), type, type.code == 'k' ? kId : 0, fact_columns::kZero);
    list.remove_prefix(second == std::string_view::npos ? list.size() : second + 1);
  }
}

}  // namespace tacho::format::relation
