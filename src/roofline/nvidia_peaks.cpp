// The table of peaks (nvidia_peaks.h).
#include "roofline/nvidia_peaks.h"

#include <array>

#include "roofline/measurement.h"

namespace tacho::roofline {
namespace {

struct Row {
  int capability;  // 10 x major + minor
  double fp32, fp64, fp16, i32, mma_16, mma_tf32, mma_f8, mma_i8, mma_f64;
};

constexpr double kNot = std::numeric_limits<double>::quiet_NaN();
constexpr std::array<Row, 7> kRows = {{
    {70, 128, 64, 256, 128, kNot, kNot, kNot, kNot, kNot},
    {75, 128, 4, 256, 128, kNot, kNot, kNot, kNot, kNot},
    {80, 128, 64, 512, 128, 2048, 1024, kNot, 4096, 128},
    {86, 256, 4, 256, 128, kNot, kNot, kNot, kNot, kNot},
    {89, 256, 4, 256, 128, kNot, kNot, kNot, kNot, kNot},
    {90, 256, 128, 512, 128, 4096, 2048, 8192, 8192, 256},
    {100, 256, 128, 512, kNot, 8192, 4096, 16384, 16384, kNot},
}};

}  // namespace

double nvidia_per_cycle(int major, int minor, std::string_view what) {
  if (what == "l1" || what == "shared") return major < 7 ? kUnknown : major == 7 && minor == 5 ? 64 : 128;
  for (const Row& row : kRows) {
    if (row.capability != 10 * major + minor) continue;
    if (what == "fp32") return row.fp32;
    if (what == "fp64") return row.fp64;
    if (what == "fp16") return row.fp16;
    if (what == "i32") return row.i32;
    if (what == "mma_f16" || what == "mma_bf16") return row.mma_16;
    if (what == "mma_tf32") return row.mma_tf32;
    if (what == "mma_f8") return row.mma_f8;
    if (what == "mma_i8") return row.mma_i8;
    if (what == "mma_f64") return row.mma_f64;
  }
  return kUnknown;
}

}  // namespace tacho::roofline
