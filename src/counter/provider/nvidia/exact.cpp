// Exact counts (exact.h).
#include "counter/provider/nvidia/exact.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace tacho::counter::nvidia {

namespace {

std::string_view unit_of(std::string_view metric) {
  return metric.substr(0, metric.find("__"));
}

}  // namespace

bool is_deterministic(std::string_view metric) {
  if (!metric.ends_with(".sum") || metric.starts_with("smsp__sass_")) return false;
  metric.remove_suffix(4);
  for (const std::string_view word : {"lookup", "hit", "miss", "cycles", "stall", "throttle"})
    if (metric.find(word) != std::string_view::npos) return false;
  for (const std::string_view start :
       {"smsp__inst_executed", "smsp__thread_inst_executed", "smsp__warps_launched", "smsp__threads_launched",
        "sm__inst_executed", "sm__ctas_launched", "sm__warps_launched", "l1tex__t_requests_pipe_lsu",
        "l1tex__t_sectors_pipe_lsu", "l1tex__data_pipe_lsu_wavefronts_mem_shared"})
    if (metric.starts_with(start)) return true;
  return metric == "l1tex__t_sectors" || metric == "l1tex__t_requests";
}

std::vector<std::vector<std::string>> whole_groups(
    std::span<const std::string> counters, const std::function<size_t(const std::vector<std::string>&)>& passes) {
  std::vector<std::vector<std::string>> groups;
  for (const std::string& counter : counters) {
    const auto fits = [&](const std::vector<std::string>& group) {
      if (std::any_of(group.begin(), group.end(),
                      [&](const std::string& other) { return unit_of(other) == unit_of(counter); }))
        return false;
      std::vector<std::string> together = group;
      together.push_back(counter);
      return passes(together) == 1;
    };
    const auto place = std::find_if(groups.begin(), groups.end(), fits);
    if (place != groups.end())
      place->push_back(counter);
    else
      groups.push_back({counter});
  }
  for (std::vector<std::string>& group : groups) std::sort(group.begin(), group.end());
  return groups;
}

std::vector<std::string> extrapolated(std::span<const std::string> counters, std::span<const double> values,
                                      std::span<const std::string> launches) {
  std::vector<std::string> found;
  for (size_t c = 0; c < counters.size(); ++c) {
    if (!is_deterministic(counters[c])) continue;
    std::map<std::string_view, double> first;
    bool varies = false;
    for (size_t row = 0; row < launches.size(); ++row) {
      const double value = values[row * counters.size() + c];
      if (std::isnan(value)) continue;
      varies =
          varies || value != std::nearbyint(value) || first.try_emplace(launches[row], value).first->second != value;
    }
    if (varies) found.push_back(counters[c]);
  }
  return found;
}

}  // namespace tacho::counter::nvidia
