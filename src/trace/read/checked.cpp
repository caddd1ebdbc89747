// Bounds of columns by their types (checked.h).
#include "trace/read/checked.h"

#include <algorithm>

#include "base/multiversion.h"
#include "event/times.h"

namespace tacho::trace {
namespace {

constexpr int64_t kMostBytes = (int64_t{1} << 62) - 1;  // the sum of two fits

// Whether any cell is outside: 64 at a time, a number that compilers turn into vectors.
constexpr size_t kTogether = 64;

TACHO_MULTIVERSION bool any_outside(const int64_t* cells, size_t count, uint64_t low, uint64_t span) {
  uint64_t outside = 0;
  for (; count >= kTogether; count -= kTogether, cells += kTogether)
    for (size_t i = 0; i < kTogether; ++i)
      outside |= static_cast<uint64_t>(static_cast<uint64_t>(cells[i]) - low > span);
  for (size_t i = 0; i < count; ++i) outside |= static_cast<uint64_t>(static_cast<uint64_t>(cells[i]) - low > span);
  return outside != 0;
}

// The same where kUnknown is inside.
TACHO_MULTIVERSION bool any_known_outside(const int64_t* cells, size_t count, uint64_t low, uint64_t span) {
  constexpr auto kUnknown = static_cast<uint64_t>(event::kUnknown);
  uint64_t outside = 0;
  for (; count >= kTogether; count -= kTogether, cells += kTogether)
    for (size_t i = 0; i < kTogether; ++i) {
      const auto cell = static_cast<uint64_t>(cells[i]);
      outside |= static_cast<uint64_t>(cell - low > span) & static_cast<uint64_t>(cell != kUnknown);
    }
  for (size_t i = 0; i < count; ++i) {
    const auto cell = static_cast<uint64_t>(cells[i]);
    outside |= static_cast<uint64_t>(cell - low > span) & static_cast<uint64_t>(cell != kUnknown);
  }
  return outside != 0;
}

}  // namespace

CellBounds bounds_of(event::Table table, size_t column, int64_t rows) {
  using event::kFarthestTime;
  using event::kUnknown;
  const event::Column& about = event::table_info(table).columns[column];
  switch (about.type) {
    case event::Type::kRow:
    case event::Type::kString:
      return {0, std::max<int64_t>(rows, 1) - 1, false, 0, true};
    case event::Type::kTime:  // a timed row has its place on the line of time; elsewhere a time may be missing
      return {-kFarthestTime, kFarthestTime, !event::is_timed(table), kUnknown, true};
    case event::Type::kDuration:
      if (event::is_timed(table) && about.name == "duration")
        return {0, kFarthestTime, true, kUnknown, false};  // event::known_duration()
      return {-kFarthestTime, kFarthestTime, true, kUnknown, false};
    case event::Type::kBytes:
      return {-kMostBytes, kMostBytes, true, kUnknown, false};
    case event::Type::kInteger:
    case event::Type::kDouble:
    case event::Type::kEnum:
    case event::Type::kId:
      break;
  }
  return {};
}

size_t first_outside(std::span<const int64_t> cells, const CellBounds& bounds) {
  if (bounds.anything()) return cells.size();
  const auto low = static_cast<uint64_t>(bounds.low);
  const uint64_t span = static_cast<uint64_t>(bounds.high) - low;
  const bool any = bounds.unknown ? any_known_outside(cells.data(), cells.size(), low, span)
                                  : any_outside(cells.data(), cells.size(), low, span);
  if (!any) return cells.size();
  return static_cast<size_t>(
      std::find_if(cells.begin(), cells.end(), [&](int64_t cell) { return !bounds.holds(cell); }) - cells.begin());
}

void replace_outside(std::span<int64_t> cells, const CellBounds& bounds) {
  for (int64_t& cell : cells)
    if (!bounds.holds(cell)) cell = bounds.instead;
}

}  // namespace tacho::trace
