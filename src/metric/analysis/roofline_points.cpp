// Roofline arithmetic.
#include "metric/analysis/roofline_points.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include "metric/expression/expression.h"

namespace tacho::metric {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The counters of a formula that the run lacks. Columns that every run has (Grid_Size) are none.
std::vector<std::string> lacking(std::string_view text, const std::function<bool(std::string_view)>& has) {
  std::vector<std::string> names;
  if (!has) return names;
  const auto formula = parse_formula(text);
  if (!formula) return names;
  for (const FormulaStep& step : formula->steps)
    if (step.op == FormulaOp::kCounter && !workload::is_id_column(step.text) && !has(step.text) &&
        std::find(names.begin(), names.end(), step.text) == names.end())
      names.emplace_back(step.text);
  return names;
}

}  // namespace

IntensityFormulas intensity_formulas(const Architecture& architecture, std::string_view gpu_series, bool compat,
                                     const std::function<bool(std::string_view)>& has) {
  IntensityFormulas formulas;
  const RooflineModel& model = architecture.roofline;
  if (model.flops.empty()) return formulas;
  const auto append = [](std::string& sum, std::string_view term) {
    sum += fmt::format("{}{}", sum.empty() ? "" : " + ", term);
  };
  for (const FlopTerms& each : model.flops) {
    std::string sum;
    for (const FlopTerm& term : each.terms) {
      std::vector<std::string> missing;
      std::string_view chosen;
      for (const std::string_view text : term.formulas) {
        chosen = text;
        missing = lacking(text, has);
        if (missing.empty()) break;
      }
      if (!missing.empty() && (term.optional || compat))
        std::move(missing.begin(), missing.end(), std::back_inserter(formulas.left_out));
      else
        append(sum, chosen);
    }
    if (sum.empty()) continue;
    append(formulas.flops, sum);
    formulas.kinds.push_back({{each.type, each.matrix}, std::move(sum)});
  }
  if (formulas.flops.empty() && compat) formulas.flops = model.compat_flops;
  const auto value = [&](std::string_view now, std::string_view then) { return compat && !then.empty() ? then : now; };
  formulas.definition = value(model.definition, model.compat_definition);
  formulas.l1_bytes = value(model.l1, model.compat_l1);
  formulas.l2_bytes = value(model.l2, model.compat_l2);
  formulas.hbm_bytes = model.hbm;
  formulas.lds_bytes = model.lds;
  if (compat)
    for (const std::string_view series : {std::string_view("other"), gpu_series})
      for (const auto& [name, bytes] : model.compat_hbm)
        if (name == series) formulas.hbm_bytes = bytes;
  return formulas;
}

std::vector<IntensityPoint> intensity_points(const workload::Workload& workload, std::span<const uint32_t> rows,
                                             const IntensityInputs& inputs, bool by_kernel, bool compat) {
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
  const auto rate = [&](const std::string& prefix) {
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
  for (const auto& [name, column] : {std::pair{"hbm", "HBMBw"}, {"l2", "L2Bw"}, {"l1", "L1Bw"}, {"lds", "LDSBw"}}) {
    const double bandwidth = ceilings.get(column);
    if (!(bandwidth > 0)) continue;
    result.push_back({name, kLeft, peak / bandwidth, kLeft * bandwidth, peak, bandwidth});
  }
  double reference = kNaN;  // the fastest memory: compute roofs begin where it reaches them
  for (const Roof& roof : result) reference = std::fmax(reference, roof.peak);
  for (const auto& [name, value] : {std::pair{"valu", valu}, {"mfma", mfma}})
    if (!std::isnan(value))
      result.push_back({name, std::isnan(reference) ? kLeft : value / reference, kRight, value, value, value});
  return result;
}

std::string_view roof_name(const RooflineModel& model, std::string_view slug) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kNames = {
      {{"hbm", "HBM"}, {"l2", "L2"}, {"l1", "vL1D"}, {"lds", "LDS"}, {"valu", "VALU"}, {"mfma", "MFMA"}}};
  for (const auto& [known, name] : model.names)
    if (known == slug) return name;
  for (const auto& [known, name] : kNames)
    if (known == slug) return name;
  return slug;
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
      if (!(achieved > 0) || !std::isfinite(reached) || (bound.roof != nullptr && reached <= bound.reached)) continue;
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

std::string above_roof_text(size_t count) {
  if (count == 0) return {};
  return fmt::format(
      "{} {} above a roof. A roof is what a benchmark sustains, not a limit of physics: short work may run at a higher "
      "clock, and bytes may come from a level nearer than the one that the roof measures",
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
    const bool usable = !type.empty() && (known.empty() || std::find(known.begin(), known.end(), type) != known.end());
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
