// Roofline arithmetic.
#include "metric/roofline_points.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

namespace tacho::metric {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

IntensityFormulas intensity_formulas(std::string_view architecture, std::string_view gpu_series, bool compat,
                                     const std::function<bool(std::string_view)>& has) {
  IntensityFormulas formulas;
  if (architecture == "gfx908") return formulas;
  const auto add = [&](int factor, std::string counter, bool optional) {
    if (has && !has(counter) && (optional || compat)) {
      formulas.left_out.push_back(std::move(counter));
      return;
    }
    formulas.flops += fmt::format("{}{} * {}", formulas.flops.empty() ? "" : " + ", factor, counter);
  };
  if (architecture == "virtual") {
    formulas.definition =
        "operations of work-items; bytes asked for (L1) and 32-byte sectors touched (memory; there is no cache)";
    for (const std::string_view type : {"F16", "F32", "F64"})
      for (const auto& [kind, factor] : {std::pair{"ADD", 1}, {"MUL", 1}, {"FMA", 2}, {"OTHER", 1}})
        add(factor, fmt::format("V_OPS_{}_{}", kind, type), false);
    formulas.l1_bytes = "V_GLOBAL_LOAD_BYTES + V_GLOBAL_STORE_BYTES + V_GLOBAL_ATOMIC_BYTES";
    formulas.hbm_bytes = "32 * (V_GLOBAL_LOAD_SECTORS + V_GLOBAL_STORE_SECTORS + V_GLOBAL_ATOMIC_SECTORS)";
    formulas.lds_bytes = "V_LOCAL_LOAD_BYTES + V_LOCAL_STORE_BYTES + V_LOCAL_ATOMIC_BYTES";
    return formulas;
  }
  if (architecture.starts_with("sm_")) {
    formulas.definition =
        "SASS operations and tensor operations; bytes at the tag stages of L1 and L2 and at the DRAM interface";
    for (const char type : {'h', 'f', 'd'})
      for (const auto& [kind, factor] : {std::pair{"add", 1}, {"mul", 1}, {"fma", 2}})
        add(factor, fmt::format("smsp__sass_thread_inst_executed_op_{}{}_pred_on.sum", type, kind), type == 'h');
    const bool split = architecture != "sm_90";  // Hopper alone has one counter for FP16 inputs
    if (split) {
      add(1, "sm__ops_path_tensor_src_fp16_dst_fp16.sum", true);
      add(1, "sm__ops_path_tensor_src_fp16_dst_fp32.sum", true);
    } else {
      add(1, "sm__ops_path_tensor_src_fp16.sum", true);
      add(1, "sm__ops_path_tensor_src_fp8.sum", true);
    }
    if (architecture == "sm_100") {
      add(1, "sm__ops_path_tensor_src_fp4_fp6_fp8_dst_fp16.sum", true);
      add(1, "sm__ops_path_tensor_src_fp4_fp6_fp8_dst_fp32.sum", true);
    }
    add(1, "sm__ops_path_tensor_src_bf16_dst_fp32.sum", true);
    add(1, "sm__ops_path_tensor_src_tf32_dst_fp32.sum", true);
    add(1, "sm__ops_path_tensor_src_fp64.sum", true);
    formulas.l1_bytes = "l1tex__t_bytes.sum";
    formulas.l2_bytes = "lts__t_bytes.sum";
    formulas.hbm_bytes = "dram__bytes.sum";
    formulas.lds_bytes = "128 * l1tex__data_pipe_lsu_wavefronts_mem_shared.sum";
    return formulas;
  }
  if (!architecture.starts_with("gfx")) return formulas;
  formulas.definition = "rocprof-compute 3.3: SQ_INSTS_VALU and MFMA operations; 64 bytes a request of L1 and L2";
  for (const std::string_view type : {"F16", "F32", "F64"})
    for (const auto& [kind, factor] : {std::pair{"ADD", 64}, {"MUL", 64}, {"FMA", 128}, {"TRANS", 64}})
      add(factor, fmt::format("SQ_INSTS_VALU_{}_{}", kind, type), false);
  for (const std::string_view type : {"F16", "BF16", "F32", "F64"})
    add(512, fmt::format("SQ_INSTS_VALU_MFMA_MOPS_{}", type), false);
  if (architecture.starts_with("gfx94") || architecture == "gfx950")
    add(512, "SQ_INSTS_VALU_MFMA_MOPS_F8", true);
  if (architecture == "gfx950") add(512, "SQ_INSTS_VALU_MFMA_MOPS_F6F4", true);
  if (formulas.flops.empty() && compat) formulas.flops = "0";
  formulas.l1_bytes = "64 * TCP_TOTAL_CACHE_ACCESSES_sum";
  formulas.l2_bytes =
      "64 * (TCP_TCC_READ_REQ_sum + TCP_TCC_WRITE_REQ_sum + TCP_TCC_ATOMIC_WITH_RET_REQ_sum + "
      "TCP_TCC_ATOMIC_WITHOUT_RET_REQ_sum)";
  formulas.lds_bytes = "4 * $lds_banks_per_cu * (SQ_LDS_IDX_ACTIVE - SQ_LDS_BANK_CONFLICT)";
  const bool first_fabric = compat ? gpu_series == "MI200" : architecture == "gfx90a";
  formulas.hbm_bytes = first_fabric
                           ? "32 * TCC_EA_RDREQ_32B_sum + 64 * (TCC_EA_RDREQ_sum - TCC_EA_RDREQ_32B_sum) + "
                             "64 * TCC_EA_WRREQ_64B_sum + "
                             "32 * (TCC_EA_WRREQ_sum - TCC_EA_WRREQ_64B_sum)"
                           : "128 * TCC_BUBBLE_sum + 32 * TCC_EA0_RDREQ_32B_sum + "
                             "64 * (TCC_EA0_RDREQ_sum - TCC_BUBBLE_sum - TCC_EA0_RDREQ_32B_sum) + "
                             "32 * (TCC_EA0_WRREQ_sum - TCC_EA0_WRREQ_64B_sum) + 64 * TCC_EA0_WRREQ_64B_sum";
  return formulas;
}

std::vector<IntensityPoint> intensity_points(const workload::Workload& workload,
                                             std::span<const std::uint32_t> rows,
                                             const IntensityInputs& inputs, bool by_kernel, bool compat) {
  // Sums of two quantities over the dispatches that have both; upstream adds up whatever there is.
  struct Pair {
    double above = 0, below = 0;
    std::size_t count = 0;
    void add(double a, double b, bool everything) {
      if (!everything && (std::isnan(a) || std::isnan(b))) return;
      above += a;
      below += b;
      ++count;
    }
    double ratio(bool zero_for_none) const {
      if (below == 0 || count == 0) return zero_for_none ? 0 : kNaN;
      return above / below;
    }
  };
  struct Group {
    IntensityPoint point;
    Pair l1, l2, hbm, lds, rate;
  };
  std::vector<Group> groups;
  std::map<std::string_view, std::size_t> group_of;
  const auto value = [&](std::span<const double> column, std::size_t i) {
    return column.empty() ? (compat ? 0 : kNaN) : column[i];
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::uint32_t kernel = workload.dispatches[rows[i]].kernel;
    std::size_t at = groups.size();
    if (by_kernel) at = group_of.try_emplace(workload.kernels[kernel], groups.size()).first->second;
    if (at == groups.size()) {
      groups.emplace_back();
      groups.back().point.kernel = kernel;
      groups.back().point.row = rows[i];
    }
    Group& group = groups[at];
    ++group.point.calls;
    const double duration = value(inputs.duration, i);
    const double flops = value(inputs.flops, i);
    if (!std::isnan(duration)) group.point.total_duration += duration;
    group.l1.add(flops, value(inputs.l1_bytes, i), compat);
    group.l2.add(flops, value(inputs.l2_bytes, i), compat);
    group.hbm.add(flops, value(inputs.hbm_bytes, i), compat);
    group.lds.add(flops, value(inputs.lds_bytes, i), false);
    group.rate.add(flops, duration, compat);
  }
  std::vector<IntensityPoint> points;
  for (Group& group : groups) {
    group.point.l1 = group.l1.ratio(compat);
    group.point.l2 = group.l2.ratio(compat);
    group.point.hbm = group.hbm.ratio(compat);
    group.point.lds = group.lds.ratio(false);
    group.point.performance = group.rate.ratio(compat);
    points.push_back(group.point);
  }
  std::stable_sort(points.begin(), points.end(), [](const IntensityPoint& a, const IntensityPoint& b) {
    return a.total_duration > b.total_duration;
  });
  return points;
}

std::vector<Roof> roofs(const workload::RooflineCeilings& ceilings, std::string_view data_type) {
  const auto rate = [&](std::string prefix) {
    const double flops = ceilings.get(prefix + "Flops");
    return std::isnan(flops) ? ceilings.get(prefix + "Ops") : flops;
  };
  const std::string type(data_type);
  // "FP32" names the vector ALU's column; the matrix unit's is "MFMAF32" (and "MFMABF16", "MFMAI8").
  const double valu = rate(type);
  const double mfma = rate("MFMA" + (type.starts_with("FP") ? "F" + type.substr(2) : type));
  const double peak = std::fmax(valu, mfma);  // fmax ignores a NaN
  std::vector<Roof> result;
  if (std::isnan(peak)) return result;
  constexpr double kLeft = 0.01, kRight = 1000;
  for (const auto& [name, column] :
       {std::pair{"hbm", "HBMBw"}, {"l2", "L2Bw"}, {"l1", "L1Bw"}, {"lds", "LDSBw"}}) {
    const double bandwidth = ceilings.get(column);
    if (!(bandwidth > 0)) continue;
    result.push_back({name, kLeft, peak / bandwidth, kLeft * bandwidth, peak, bandwidth});
  }
  double reference = kNaN;  // the fastest memory: compute roofs begin where it reaches them
  for (const Roof& roof : result) reference = std::fmax(reference, roof.peak);
  for (const auto& [name, value] : {std::pair{"valu", valu}, {"mfma", mfma}})
    if (!std::isnan(value))
      result.push_back(
          {name, std::isnan(reference) ? kLeft : value / reference, kRight, value, value, value});
  return result;
}

double intensity_at(const IntensityPoint& point, std::string_view level) {
  return level == "hbm" ? point.hbm : level == "l2" ? point.l2 : level == "l1" ? point.l1 : level == "lds" ? point.lds : kNaN;
}

Bound bound_of(const IntensityPoint& point, std::span<const Roof> roofs) {
  Bound bound;
  if (!(point.performance > 0)) return bound;
  const Roof* compute = nullptr;
  for (const Roof& roof : roofs)
    if ((roof.name == "valu" || roof.name == "mfma") && (compute == nullptr || roof.peak > compute->peak)) compute = &roof;
  for (const Roof& roof : roofs) {
    const bool is_compute = roof.name == "valu" || roof.name == "mfma";
    if (is_compute && &roof != compute) continue;
    const double limit = is_compute ? roof.peak : roof.peak * intensity_at(point, roof.name);
    if (!(limit > 0) || !std::isfinite(limit) || (bound.roof != nullptr && limit >= bound.attainable)) continue;
    bound.roof = &roof;
    bound.attainable = limit;
  }
  if (bound.roof != nullptr) {
    bound.reached = point.performance / bound.attainable * 100;
    bound.headroom = bound.attainable / point.performance;
  }
  return bound;
}

std::vector<std::string_view> roofline_data_types(const workload::RooflineCeilings& ceilings) {
  static constexpr std::array<std::string_view, 11> kTypes = {"FP4",  "FP6",  "FP8", "FP16", "BF16", "TF32",
                                                              "FP32", "FP64", "I8",  "I32",  "I64"};
  std::vector<std::string_view> found;
  for (const std::string_view type : kTypes)
    if (!roofs(ceilings, type).empty()) found.push_back(type);
  return found;
}

}  // namespace tacho::metric
