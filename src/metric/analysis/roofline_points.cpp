// Roofline arithmetic.
#include "metric/analysis/roofline_points.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

namespace tacho::metric {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// NVIDIA's half-precision FLOPs. The counters count HADD2, HMUL2 and HFMA2 once a thread (measured on an H200), which work on
// two halves each: 2, 2 and 4 FLOPs, also where a program uses one of the two. The assembler uses the same instructions for
// other things: HADD2 to make floats of halves, so adds alone are no FLOPs; and HFMA2 to put constants into registers (HFMA2
// R5, -RZ, RZ, 0, 4.8e-07), a few of them before the work of a thread begins: up to kConstants of a thread, or one in kRare of
// its instructions, they are no FLOPs either. A multiply can only be meant.
template <typename AddTerm, typename Has>
void add_half(const AddTerm& add_term, const Has& has, std::vector<std::string>& left_out) {
  constexpr int kConstants = 4, kRare = 16;
  const auto name = [](std::string_view kind) {
    return fmt::format("smsp__sass_thread_inst_executed_op_{}_pred_on.sum", kind);
  };
  const std::string add = name("hadd"), mul = name("hmul"), fma = name("hfma");
  const std::string all = "smsp__sass_thread_inst_executed_pred_on.sum";
  bool complete = true;
  for (const std::string& counter : {add, mul, fma})
    if (has && !has(counter)) {
      left_out.push_back(counter);
      complete = false;
    }
  if (!complete) return;
  const std::string rare =
      !has || has(all) ? fmt::format(" and {} * {} > {}", kRare, fma, all) : std::string();
  add_term({"FP16"},
           fmt::format("((4 * {0} + 2 * {1} + 2 * {2}) if ({2} > 0 or ({0} > {3} * Grid_Size{4})) else 0)",
                       fma, add, mul, kConstants, rare));
}

}  // namespace

IntensityFormulas intensity_formulas(std::string_view architecture, std::string_view gpu_series, bool compat,
                                     const std::function<bool(std::string_view)>& has) {
  IntensityFormulas formulas;
  if (architecture == "gfx908") return formulas;
  const auto add_term = [&](FlopKind kind, const std::string& term) {
    formulas.flops += (formulas.flops.empty() ? "" : " + ") + term;
    auto at =
        std::find_if(formulas.kinds.begin(), formulas.kinds.end(), [&](const IntensityFormulas::Kind& each) {
          return each.kind.type == kind.type && each.kind.matrix == kind.matrix;
        });
    if (at == formulas.kinds.end()) at = formulas.kinds.insert(at, {kind, ""});
    at->flops += (at->flops.empty() ? "" : " + ") + term;
  };
  const auto add = [&](FlopKind kind, int factor, std::string counter, bool optional) {
    if (has && !has(counter) && (optional || compat))
      formulas.left_out.push_back(std::move(counter));
    else
      add_term(kind, fmt::format("{} * {}", factor, counter));
  };
  if (architecture == "virtual") {
    formulas.definition =
        "operations of work-items; bytes asked for (L1) and 32-byte sectors touched (memory; there is no "
        "cache)";
    for (const auto& [name, type] : {std::pair{"F16", "FP16"}, {"F32", "FP32"}, {"F64", "FP64"}})
      for (const auto& [kind, factor] : {std::pair{"ADD", 1}, {"MUL", 1}, {"FMA", 2}, {"OTHER", 1}})
        add({type}, factor, fmt::format("V_OPS_{}_{}", kind, name), false);
    formulas.l1_bytes = "V_GLOBAL_LOAD_BYTES + V_GLOBAL_STORE_BYTES + V_GLOBAL_ATOMIC_BYTES";
    formulas.hbm_bytes = "32 * (V_GLOBAL_LOAD_SECTORS + V_GLOBAL_STORE_SECTORS + V_GLOBAL_ATOMIC_SECTORS)";
    formulas.lds_bytes = "V_LOCAL_LOAD_BYTES + V_LOCAL_STORE_BYTES + V_LOCAL_ATOMIC_BYTES";
    return formulas;
  }
  if (architecture.starts_with("sm_")) {
    formulas.definition =
        "anchors of Nsight Compute: thread-level SASS adds, multiplies and 2 x FMA whose predicate was on "
        "(halves in pairs), tensor "
        "operations; bytes at the tag stage of L1 (l1tex__t_bytes), asked of the L2 by the L1s (32 "
        "lts__t_sectors_srcunit_tex), "
        "at the DRAM interface and 128 a wavefront of shared memory";
    for (const auto& [letter, type] : {std::pair{'f', "FP32"}, {'d', "FP64"}})
      for (const auto& [kind, factor] : {std::pair{"add", 1}, {"mul", 1}, {"fma", 2}})
        add({type}, factor, fmt::format("smsp__sass_thread_inst_executed_op_{}{}_pred_on.sum", letter, kind),
            false);
    add_half(add_term, has, formulas.left_out);
    const bool split = architecture != "sm_90";  // Hopper alone has one counter for FP16 inputs
    if (split) {
      add({"FP16", true}, 1, "sm__ops_path_tensor_src_fp16_dst_fp16.sum", true);
      add({"FP16", true}, 1, "sm__ops_path_tensor_src_fp16_dst_fp32.sum", true);
    } else {
      add({"FP16", true}, 1, "sm__ops_path_tensor_src_fp16.sum", true);
      add({"FP8", true}, 1, "sm__ops_path_tensor_src_fp8.sum", true);
    }
    if (architecture == "sm_100") {
      add({"FP8", true}, 1, "sm__ops_path_tensor_src_fp4_fp6_fp8_dst_fp16.sum", true);
      add({"FP8", true}, 1, "sm__ops_path_tensor_src_fp4_fp6_fp8_dst_fp32.sum", true);
    }
    add({"BF16", true}, 1, "sm__ops_path_tensor_src_bf16_dst_fp32.sum", true);
    add({"TF32", true}, 1, "sm__ops_path_tensor_src_tf32_dst_fp32.sum", true);
    add({"FP64", true}, 1, "sm__ops_path_tensor_src_fp64.sum", true);
    formulas.l1_bytes = "l1tex__t_bytes.sum";
    // Not lts__t_bytes: what lies in the far half of the L2 passes the tag stages of both halves, half as much again on an H200.
    formulas.l2_bytes = "32 * lts__t_sectors_srcunit_tex.sum";
    formulas.hbm_bytes = "dram__bytes.sum";
    formulas.lds_bytes = "128 * l1tex__data_pipe_lsu_wavefronts_mem_shared.sum";
    return formulas;
  }
  if (!architecture.starts_with("gfx")) return formulas;
  formulas.definition =
      "rocprof-compute 3.3: SQ_INSTS_VALU and MFMA operations; 64 bytes a request of L1 and L2";
  for (const auto& [name, type] : {std::pair{"F16", "FP16"}, {"F32", "FP32"}, {"F64", "FP64"}})
    for (const auto& [kind, factor] : {std::pair{"ADD", 64}, {"MUL", 64}, {"FMA", 128}, {"TRANS", 64}})
      add({type}, factor, fmt::format("SQ_INSTS_VALU_{}_{}", kind, name), false);
  for (const auto& [name, type] :
       {std::pair{"F16", "FP16"}, {"BF16", "BF16"}, {"F32", "FP32"}, {"F64", "FP64"}})
    add({type, true}, 512, fmt::format("SQ_INSTS_VALU_MFMA_MOPS_{}", name), false);
  if (architecture.starts_with("gfx94") || architecture == "gfx950")
    add({"FP8", true}, 512, "SQ_INSTS_VALU_MFMA_MOPS_F8", true);
  if (architecture == "gfx950") add({"FP6", true}, 512, "SQ_INSTS_VALU_MFMA_MOPS_F6F4", true);
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
                                             std::span<const uint32_t> rows, const IntensityInputs& inputs,
                                             bool by_kernel, bool compat) {
  // Sums of two quantities over the dispatches that have both; upstream adds up whatever there is.
  struct Pair {
    double above = 0, below = 0;
    size_t count = 0;
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
    std::array<Pair, kRooflineLevels.size()> bandwidth;
    std::array<bool, kMostFlopKinds> counted{};  // of any dispatch
  };
  std::vector<Group> groups;
  std::map<std::string_view, size_t> group_of;
  const auto value = [&](std::span<const double> column, size_t i) {
    return column.empty() ? (compat ? 0 : kNaN) : column[i];
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint32_t kernel = workload.dispatches[rows[i]].kernel;
    size_t at = groups.size();
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
    const std::array bytes = {inputs.hbm_bytes, inputs.l2_bytes, inputs.l1_bytes, inputs.lds_bytes};
    for (size_t level = 0; level < bytes.size(); ++level)
      group.bandwidth[level].add(bytes[level].empty() ? kNaN : bytes[level][i], duration, false);
    for (size_t kind = 0; kind < inputs.kinds.size(); ++kind)
      if (!inputs.kinds[kind].empty() && !std::isnan(inputs.kinds[kind][i])) {
        group.point.flops[kind] += inputs.kinds[kind][i];
        group.counted[kind] = true;
      }
  }
  std::vector<IntensityPoint> points;
  for (Group& group : groups) {
    for (size_t kind = 0; kind < inputs.kinds.size(); ++kind)
      if (!group.counted[kind]) group.point.flops[kind] = kNaN;
    group.point.l1 = group.l1.ratio(compat);
    group.point.l2 = group.l2.ratio(compat);
    group.point.hbm = group.hbm.ratio(compat);
    group.point.lds = group.lds.ratio(false);
    group.point.performance = group.rate.ratio(compat);
    for (size_t level = 0; level < kRooflineLevels.size(); ++level) {
      group.point.bytes[level] = group.bandwidth[level].count == 0 ? kNaN : group.bandwidth[level].above;
      group.point.bandwidth[level] = group.bandwidth[level].ratio(false);
    }
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
  return level == "hbm"   ? point.hbm
         : level == "l2"  ? point.l2
         : level == "l1"  ? point.l1
         : level == "lds" ? point.lds
                          : kNaN;
}

double bandwidth_at(const IntensityPoint& point, std::string_view level) {
  for (size_t i = 0; i < kRooflineLevels.size(); ++i)
    if (kRooflineLevels[i] == level) return point.bandwidth[i];
  return kNaN;
}

Bound bound_of(const IntensityPoint& point, std::span<const Roof> roofs) {
  Bound bound;
  if (point.performance == 0) {
    for (const Roof& roof : roofs) {
      const double achieved = bandwidth_at(point, roof.name), reached = achieved / roof.peak * 100;
      if (!(achieved > 0) || !std::isfinite(reached) || (bound.roof != nullptr && reached <= bound.reached))
        continue;
      bound = {&roof, roof.peak, reached, roof.peak / achieved, true};
    }
    return bound;
  }
  if (!(point.performance > 0)) return bound;
  const Roof* compute = nullptr;
  for (const Roof& roof : roofs)
    if (is_compute(roof) && (compute == nullptr || roof.peak > compute->peak)) compute = &roof;
  for (const Roof& roof : roofs) {
    if (is_compute(roof) && &roof != compute) continue;
    const double limit = is_compute(roof) ? roof.peak : roof.peak * intensity_at(point, roof.name);
    if (!(limit > 0) || !std::isfinite(limit) || (bound.roof != nullptr && limit >= bound.attainable))
      continue;
    bound.roof = &roof;
    bound.attainable = limit;
  }
  if (bound.roof != nullptr) {
    bound.reached = point.performance / bound.attainable * 100;
    bound.headroom = bound.attainable / point.performance;
  }
  return bound;
}

std::string above_roof_text(size_t count) {
  if (count == 0) return {};
  return fmt::format(
      "{} {} above a roof. A roof is what a benchmark sustains, not a limit of physics: short work may run "
      "at a higher clock, "
      "and bytes may come from a level nearer than the one that the roof measures",
      count, count == 1 ? "point lies" : "points lie");
}

std::string_view main_data_type(const IntensityPoint& point, std::span<const IntensityFormulas::Kind> kinds) {
  std::string_view best;
  double most = 0;
  for (size_t i = 0; i < kinds.size(); ++i) {
    double sum = 0;  // of the vector and the matrix unit
    for (size_t k = 0; k < kinds.size(); ++k)
      if (kinds[k].kind.type == kinds[i].kind.type && point.flops[k] > 0) sum += point.flops[k];
    if (sum > most) {
      most = sum;
      best = kinds[i].kind.type;
    }
  }
  return best;
}

std::vector<std::string> data_types_of(std::span<const IntensityPoint> points,
                                       std::span<const IntensityFormulas::Kind> kinds,
                                       const workload::RooflineCeilings* ceilings) {
  const std::vector<std::string_view> known =
      ceilings == nullptr ? std::vector<std::string_view>() : roofline_data_types(*ceilings);
  std::vector<std::string> types;
  for (const IntensityPoint& point : points) {
    const std::string_view type = main_data_type(point, kinds);
    const bool usable =
        !type.empty() && (known.empty() || std::find(known.begin(), known.end(), type) != known.end());
    if (usable && std::find(types.begin(), types.end(), type) == types.end()) types.emplace_back(type);
  }
  if (types.empty()) types.emplace_back("FP32");
  return types;
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
