// Grids and groups as text (launch_shape.h).
#include "analysis/kernels/launch_shape.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "event/schema.h"
#include "trace/read/rows.h"
#include "vendor/vendor.h"

namespace tacho::analysis {

using event::kUnknown;
using event::Table;

namespace {

using Sizes = std::array<int64_t, 3>;

// "132 x 1 x 1 blocks", or nothing if the first size is unknown.
std::string text_of(const Sizes& sizes, std::string_view times, std::string_view unit) {
  if (sizes[0] == kUnknown) return {};
  const auto one = [](int64_t value) { return value == kUnknown ? std::string("?") : std::to_string(value); };
  return fmt::format("{}{}{}{}{} {}", sizes[0], times, one(sizes[1]), times, one(sizes[2]), unit);
}

// Whether the host called the API of a vendor that counts in blocks.
bool calls_in_blocks(const trace::Trace& trace) {
  for (int64_t row = 1; row < trace.rows(Table::kFunction); ++row) {
    const auto domain = trace::cell<event::column::Function::domain>(trace, row);
    for (const vendor::Vendor* const vendor : vendor::vendors())
      if (vendor->grids_in_blocks() && domain == vendor->api()) return true;
  }
  return false;
}

}  // namespace

bool grids_in_blocks(const trace::Trace& trace) {
  using D = event::column::Device;
  bool blocks = false, unknown = false;
  for (int64_t row = 1; row < trace.rows(Table::kDevice); ++row) {
    if (trace::cell<D::kind>(trace, row) != event::DeviceKind::kGpu) continue;
    const std::string_view maker = trace::text<D::vendor>(trace, row);
    const auto vendors = vendor::vendors();
    const bool in_blocks = std::any_of(vendors.begin(), vendors.end(), [&](const vendor::Vendor* vendor) {
      return vendor->grids_in_blocks() && vendor->made(maker);
    });
    blocks = blocks || in_blocks;
    unknown = unknown || maker.empty();
    if (!maker.empty() && !in_blocks) return false;
  }
  return blocks || (unknown && calls_in_blocks(trace));
}

LaunchShapeText launch_shape(const trace::Trace& trace, int64_t kernel, bool blocks, std::string_view times) {
  using K = event::column::Kernel;
  Sizes grid = {trace::cell<K::grid_x>(trace, kernel), trace::cell<K::grid_y>(trace, kernel),
                trace::cell<K::grid_z>(trace, kernel)};
  const Sizes group = {trace::cell<K::group_x>(trace, kernel), trace::cell<K::group_y>(trace, kernel),
                       trace::cell<K::group_z>(trace, kernel)};
  if (!blocks) return {text_of(grid, times, "work-items"), text_of(group, times, "work-items"), "workgroup"};
  if (std::any_of(group.begin(), group.end(), [](int64_t size) { return size == kUnknown || size <= 0; }))
    return {text_of(grid, times, "threads"), text_of(group, times, "threads"), "block"};
  for (size_t i = 0; i < grid.size(); ++i)
    if (grid[i] != kUnknown) grid[i] = grid[i] / group[i] + (grid[i] % group[i] != 0 ? 1 : 0);
  return {text_of(grid, times, "blocks"), text_of(group, times, "threads"), "block"};
}

}  // namespace tacho::analysis
