// Names of a run's slices as dense numbers: equal texts have equal numbers over all tables, so that tiles carry four
// bytes a slice and the page asks for a text once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"
#include "trace/write/scratch.h"

namespace tacho::view {

/// The name of a row of a timed fact's dimension as `tacho stats` prints it; "" for row 0 of most tables.
std::string display_name(const trace::Trace& trace, event::Table fact, int64_t dim);

/// What a name is to a reader. All names of a kind have one colour in all views, in shades by name.
enum class NameKind : uint8_t { kKernel, kCollective, kCopy, kApi, kOperator, kHost, kMarker, kWait, kCount };
/// "kernel", "collective", ...
std::string_view to_string(NameKind kind);

/// The colour of a name: a hue within those of its kind, 0 <= hue < 360, plus 360 times one of four lightnesses. The
/// same for equal texts of a kind in all runs.
uint32_t colour_of(std::string_view text, NameKind kind);

class SliceNames {
 public:
  /// Numbers the names of all dimension rows that slices refer to. The trace must outlive this. Where `before` is of
  /// the same recording and shorter, all of its names keep their numbers, or kept() is false.
  explicit SliceNames(const trace::Trace& trace, const SliceNames* before = nullptr);
  bool kept() const { return kept_; }

  /// Number 0 is the empty name.
  size_t size() const { return first_.size(); }
  /// The name of a fact's dimension row; 0 for rows that do not exist.
  uint32_t of(event::Table fact, int64_t dim) const {
    const auto& numbers = numbers_[static_cast<size_t>(fact)];
    return dim >= 0 && static_cast<uint64_t>(dim) < numbers.rows
               ? static_cast<const uint32_t*>(numbers.values.data())[dim]
               : 0;
  }
  /// "" for numbers that do not exist.
  std::string text(uint32_t number) const;
  /// The table of the first row with the name.
  event::Table table(uint32_t number) const {
    return number < first_.size() ? first_[number].table : event::Table::kEnd;
  }
  /// An operator of a framework, a function of Python or another one that analysis::call_kind() does not count among
  /// calls of GPU APIs; only names that no call has.
  bool framework(uint32_t number) const { return number < framework_.size() && framework_[number]; }
  /// Collectives and other communication between devices, by their names.
  bool communicates(uint32_t number) const;
  /// By the first row with the name.
  NameKind kind(uint32_t number) const;
  /// Whether any name is of this kind.
  bool any(NameKind kind) const { return (kinds_ >> static_cast<unsigned>(kind) & 1) != 0; }

 private:
  struct First {
    event::Table table;
    uint32_t dim;
  };
  struct Numbers {
    trace::Scratch values;
    uint64_t rows = 0;
  };
  const trace::Trace& trace_;
  std::vector<Numbers> numbers_;  // by fact table
  std::vector<First> first_;      // by number
  std::vector<bool> communicates_, framework_;
  uint32_t kinds_ = 0;  // bit (1 << kind) of each that a name has
  bool kept_ = true;
};

/// The table's timed facts that the timeline draws as slices or points, in the order in which slices that begin
/// together are put into lanes.
std::span<const event::Table> slice_tables();

}  // namespace tacho::view
