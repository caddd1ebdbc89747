// Looks for causes in shapes, grids and names (causes.h).
#include "efficiency/findings/causes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/format.h"
#include "efficiency/kernel_names.h"
#include "report/text.h"
#include "trace/read/rows.h"

namespace tacho::efficiency {

namespace {

namespace column = event::column;
using event::Table;

std::string_view name_of(const trace::Trace& trace, int64_t kernel) {
  return trace.text(Table::kKernel, kernel, column::Kernel::name);
}

// Workgroups of a launch; 0 = unknown.
int64_t launched_workgroups(const trace::Trace& trace, int64_t kernel) {
  using K = column::Kernel;
  int64_t groups = 1;
  for (const auto& [grid, group] :
       {std::pair(K::grid_x, K::group_x), std::pair(K::grid_y, K::group_y), std::pair(K::grid_z, K::group_z)}) {
    const int64_t items = trace.cell(Table::kKernel, kernel, grid),
                  of_group = trace.cell(Table::kKernel, kernel, group);
    if (items <= 0 || of_group <= 0) return 0;
    groups *= (items + of_group - 1) / of_group;
  }
  return groups;
}

// The dimensions of input `number` in "[[16, 559, 16, 72], ...", where they are plain numbers.
std::vector<int64_t> dimensions(std::string_view shapes, size_t number) {
  if (!shapes.starts_with("[")) return {};
  size_t at = 1;
  for (size_t input = 0;; ++input) {
    at = shapes.find('[', at);
    const size_t end = at == std::string_view::npos ? at : shapes.find(']', at);
    if (end == std::string_view::npos) return {};
    if (input < number) {
      at = end;
      continue;
    }
    std::vector<int64_t> out;
    for (const char* from = shapes.data() + at + 1; from < shapes.data() + end;) {
      int64_t value = 0;
      const auto [stop, error] = std::from_chars(from, shapes.data() + end, value);
      if (error != std::errc()) return {};
      out.push_back(value);
      for (from = stop; from < shapes.data() + end && (*from == ',' || *from == ' ');) ++from;
    }
    return out;
  }
}

double ceiling(double value, double step) {
  return std::ceil(value / step) * step;
}

int bytes_of(Precision precision) {
  switch (precision) {
    case Precision::kF8:
    case Precision::kI8:
      return 1;
    case Precision::kF16:
    case Precision::kBF16:
      return 2;
    default:
      return 4;
  }
}

class Causes {
 public:
  Causes(const trace::Trace& trace, const OperatorWork& work, int64_t units)
      : trace_(trace), work_(work), units_(units), kernel_(work.of_kernels.front().kernel) {}

  std::vector<RoofCause> all() {
    layouts();
    grid();
    heads();
    channels();
    if (!work_.matrix && work_.call.strided) out_.push_back({"an input is not contiguous in memory", true});
    if (work_.call.output[0] > 0 && work_.call.output[1] > 0) product();
    return std::move(out_);
  }

 private:
  void layouts() {
    int64_t all = 0, moving = 0;
    for (const OperatorsKernel& each : work_.of_kernels) {
      add_saturating(all, each.ns);
      if (moves_layout(name_of(trace_, each.kernel))) add_saturating(moving, each.ns);
    }
    if (all > 0 && moving > all / 10)
      out_.push_back({fmt::format("{} of its time moves data to another layout",
                                  percent_text(100 * static_cast<double>(moving) / static_cast<double>(all))),
                      moving > all / 4});
  }

  void grid() {
    const int64_t groups = workgroups_of(trace_, kernel_, work_);
    if (units_ <= 0 || groups <= 0) return;
    const double waves = static_cast<double>(groups) / static_cast<double>(units_);
    if (groups < units_)
      out_.push_back({fmt::format("its longest kernel has {} workgroups for {} compute units", groups, units_),
                      static_cast<double>(groups) < 0.75 * static_cast<double>(units_)});
    else if (waves < 4 && waves / std::ceil(waves) < 0.8)
      out_.push_back(
          {fmt::format("its longest kernel has {} workgroups, {} times as many as compute units: in the last "
                       "round {} of the units have work",
                       groups, report::format_fixed(waves, 2), percent_text(100 * (waves - std::floor(waves)))),
           waves / std::ceil(waves) < 0.67});
  }

  void heads() {
    if (work_.name.find("attention") == std::string::npos && work_.name.find("flash_attn") == std::string::npos) return;
    const std::vector<int64_t> query = dimensions(work_.shapes, work_.name.ends_with("_backward") ? 1 : 0);
    if (query.size() < 3 || query.back() <= 0) return;
    const int64_t head = query.back();
    const auto computed = head_elements_of(name_of(trace_, kernel_));
    int64_t padded = computed.value_or(head);
    // FlashAttention pads heads to a multiple of 32 elements, and beyond 192 to 256 (head_size_rounded of its API).
    if (!computed && work_.name.find("flash_attention") != std::string::npos)
      padded = head > 192 ? std::max<int64_t>(head, 256) : (head + 31) / 32 * 32;
    if (padded > head && padded <= 4 * head)
      out_.push_back({fmt::format("its heads have {} elements, and its kernels compute with {}", head, padded),
                      padded * 10 > head * 12});
  }

  void channels() {
    if (work_.name.find("conv") == std::string::npos) return;
    const std::vector<int64_t> weight =
        dimensions(work_.shapes, work_.name.find("backward") != std::string::npos ? 2 : 1);
    if (weight.size() < 3 || weight[0] <= 0 || weight[1] <= 0) return;
    constexpr int64_t kFew = 8;
    if (weight[1] < kFew)
      out_.push_back({fmt::format("each of its outputs is made of only {}, too few for matrix cores",
                                  weight[1] == 1 ? std::string("one channel") : fmt::format("{} channels", weight[1])),
                      true});
    else if (const int64_t bytes = bytes_of(work_.precision);
             work_.matrix && (weight[0] * bytes % 16 != 0 || weight[1] * bytes % 16 != 0))
      out_.push_back({fmt::format("its {} and {} channels of {} bytes do not fill multiples of 16 bytes", weight[1],
                                  weight[0], bytes),
                      true});
  }

  void product() {
    const double rows = work_.call.output[0], columns = work_.call.output[1], length = work_.call.output[3];
    if (const auto tile = tile_of(name_of(trace_, kernel_))) {
      // Which side is the result's rows differs between libraries: the better fit counts.
      const auto useful = [&](double a, double b) { return rows * columns / (ceiling(rows, a) * ceiling(columns, b)); };
      const double part = std::max(useful(tile->rows, tile->columns), useful(tile->columns, tile->rows));
      if (part < 0.75)
        out_.push_back(
            {fmt::format("of its kernel's tiles of {:.0f} x {:.0f} only {} is part of a result of {:.0f} x {:.0f}",
                         tile->rows, tile->columns, percent_text(100 * part), rows, columns),
             part < 0.6});
    }
    if (!work_.compute_bound && std::min(rows, columns) < kFewRows)
      out_.push_back(
          {fmt::format("with only {:.0f} {} each byte of the larger input serves few operations: a larger batch "
                       "costs little",
                       std::min(rows, columns), rows <= columns ? "rows" : "columns")});
    const int bytes = bytes_of(work_.precision);
    for (const double side : {columns, length})
      if (side > 0 && std::fmod(side * bytes, 16) != 0) {
        out_.push_back(
            {fmt::format("rows of {:.0f} elements of {} bytes do not begin on 16 bytes", side, bytes), true});
        break;
      }
  }

  const trace::Trace& trace_;
  const OperatorWork& work_;
  const int64_t units_, kernel_;
  std::vector<RoofCause> out_;
};

}  // namespace

int64_t workgroups_of(const trace::Trace& trace, int64_t kernel, const OperatorWork& work) {
  if (const int64_t launched = launched_workgroups(trace, kernel); launched > 0) return launched;
  const double rows = work.call.output[0], columns = work.call.output[1];
  const std::string_view name = name_of(trace, kernel);
  const auto tile = tile_of(name);
  if (!tile || !(rows > 0) || !(columns > 0)) return 0;
  const auto tiles = [&](double a, double b) { return std::ceil(rows / a) * std::ceil(columns / b); };
  const double groups = std::min(tiles(tile->rows, tile->columns), tiles(tile->columns, tile->rows)) *
                        std::max(work.call.output[2], 1.0) * static_cast<double>(splits_of(name));
  return groups < 1e9 ? static_cast<int64_t>(groups) : 0;
}

std::string percent_text(double percent) {
  return report::format_fixed(percent, percent < 10 ? 1 : 0) + " %";
}

std::string operator_text(std::string_view name, std::string_view shapes) {
  std::string text(shapes);
  while (text.ends_with(", []]")) text = text.substr(0, text.size() - 5) + "]";
  return fmt::format("{} {}", name, text);
}

std::vector<RoofCause> causes_of(const trace::Trace& trace, const OperatorWork& work, int64_t units) {
  return work.of_kernels.empty() ? std::vector<RoofCause>() : Causes(trace, work, units).all();
}

}  // namespace tacho::efficiency
