// Columns of roofline.csv as rates by precision (measured_roofs.h).
#include "efficiency/measured_roofs.h"

#include <cmath>
#include <filesystem>
#include <utility>
#include <vector>

#include "workload/ceilings.h"

namespace tacho::efficiency {

namespace {

struct Column {
  std::string_view name;
  bool matrix;
  Precision precision;
};
constexpr Column kColumns[] = {{"FP64Flops", false, Precision::kF64},     {"FP32Flops", false, Precision::kF32},
                               {"MFMAF64Flops", true, Precision::kF64},   {"MFMAF32Flops", true, Precision::kF32},
                               {"MFMATF32Flops", true, Precision::kTF32}, {"MFMAXF32Flops", true, Precision::kTF32},
                               {"MFMAF16Flops", true, Precision::kF16},   {"MFMABF16Flops", true, Precision::kBF16},
                               {"MFMAF8Flops", true, Precision::kF8},     {"MFMAF4Flops", true, Precision::kF4},
                               {"MFMAI8Ops", true, Precision::kI8}};

}  // namespace

std::optional<double> MeasuredRoofs::compute(bool as_matrix, Precision precision) const {
  if (as_matrix)
    if (const auto found = matrix.find(precision); found != matrix.end()) return found->second;
  // A product of 32 bits runs on the vector units where there are no matrix cores for it.
  const bool wide = precision == Precision::kF64 || precision == Precision::kF32;
  if (as_matrix && !wide) return std::nullopt;
  const auto found = vector.find(wide ? precision : Precision::kF32);
  return found == vector.end() ? std::nullopt : std::optional(found->second);
}

Result<MeasuredRoofs> read_measured_roofs(const std::string& path, std::string_view device) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return fail("{}: no such file", path);
  std::vector<std::string> warnings;
  const std::vector<workload::RooflineCeilings> rows = workload::read_ceilings(path, warnings);
  const workload::RooflineCeilings* chosen = nullptr;
  std::string others;
  for (const workload::RooflineCeilings& row : rows) {
    const std::string_view name = row.text("DeviceName");
    if (name.empty() || device.empty() || name == device) {
      if (chosen == nullptr) chosen = &row;
    } else {
      others += (others.empty() ? "" : ", ") + std::string(name);
    }
  }
  if (chosen == nullptr)
    return rows.empty() ? fail("{}: no row of measured roofs{}", path, warnings.empty() ? "" : ": " + warnings.front())
                        : fail("{}: it has the roofs of {}, and the trace's GPU is {}", path, others, device);
  MeasuredRoofs out;
  out.device = chosen->text("DeviceName").empty() ? path : std::string(chosen->text("DeviceName"));
  out.when = chosen->text("Measured");
  const auto value = [&](std::string_view column) {
    const double rate = chosen->get(column);
    return std::isfinite(rate) && rate > 0 ? rate * 1e9 : 0;
  };
  for (const Column& column : kColumns)
    if (const double rate = value(column.name); rate > 0)
      (column.matrix ? out.matrix : out.vector)[column.precision] = rate;
  out.bandwidth = value("HBMBw");
  if (!out.any()) return fail("{}: no roof was measured", path);
  return out;
}

}  // namespace tacho::efficiency
