// Makers of dimension rows that every reader needs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "event/schema.h"
#include "trace/write/writer.h"

namespace tacho::format::imported {

/// A kernel with its launch shape. `grid` counts work-items if `in_items`, else workgroups; kUnknown where not told.
event::row::Kernel launch_of(int64_t name, const int64_t (&grid)[3], const int64_t (&group)[3], bool in_items);
/// A copy that `device` (a row) carried out: its ends on the device's side are that device.
event::row::CopyShape copy_shape(event::CopyDirection direction, int64_t device,
                                 event::MemoryKind from = event::MemoryKind::kUnknown,
                                 event::MemoryKind to = event::MemoryKind::kUnknown);

/// The row of a thread's line; makes the thread, too. `name`: a string row, 0 = none. `thread`, if given, gets the
/// thread's row.
int64_t thread_line(trace::TraceWriter& writer, int64_t process, int64_t tid, int64_t native, int64_t name = 0,
                    int64_t* thread = nullptr);
/// The row of a queue's line, named after its stream where that is known (kUnknown = not).
int64_t queue_line(trace::TraceWriter& writer, int64_t process, int64_t device, int64_t queue, int64_t stream);

/// Numbers of dimension rows that came lately. The writer knows all of them in bounded memory; this saves its search
/// for the few that come again and again, so a reader needs no map of its own.
template <event::DimensionRow R>
class RecentRows {
 public:
  int64_t row(trace::TraceWriter& writer, const R& values) {
    const auto cells = event::cells(values);
    uint64_t hash = 0;
    for (size_t i = 0; i < R::kColumns; ++i) {
      hash = (hash ^ static_cast<uint64_t>(cells[i])) * 0x9e3779b97f4a7c15ULL;
      hash ^= hash >> 29;
    }
    if (!slots_) slots_ = std::make_unique<std::array<Slot, kSlots>>();
    Slot& slot = (*slots_)[hash & (kSlots - 1)];
    bool same = slot.row != 0;
    for (size_t i = 0; same && i < R::kColumns; ++i) same = slot.cells[i] == cells[i];
    if (same) return slot.row;
    for (size_t i = 0; i < R::kColumns; ++i) slot.cells[i] = cells[i];
    return slot.row = writer.dimension(values);
  }

 private:
  static constexpr size_t kSlots = 4096;
  struct Slot {
    int64_t row;  // 0 = none
    int64_t cells[R::kColumns];
  };
  std::unique_ptr<std::array<Slot, kSlots>> slots_;
};

}  // namespace tacho::format::imported
