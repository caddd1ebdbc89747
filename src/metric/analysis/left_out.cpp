// Which dispatches lack counters of a metric.
#include "metric/analysis/left_out.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tacho::metric {

std::vector<LeftOutKernel> kernels_left_out(const LeftOut& left_out, const workload::Workload& workload,
                                            std::span<const uint32_t> rows) {
  std::vector<LeftOutKernel> all(workload.kernels.size());
  for (uint32_t k = 0; k < all.size(); ++k) all[k].kernel = k;
  for (const uint32_t row : rows) ++all[workload.dispatches[row].kernel].of;
  for (const uint32_t row : left_out.dispatches) ++all[workload.dispatches[row].kernel].dispatches;
  std::erase_if(all, [](const LeftOutKernel& each) { return each.dispatches == 0; });
  std::stable_sort(all.begin(), all.end(),
                   [](const LeftOutKernel& a, const LeftOutKernel& b) { return a.dispatches > b.dispatches; });
  return all;
}

const std::vector<uint32_t>& CounterGaps::of(const FormulaInput& input) {
  const auto [place, added] = known_.try_emplace(input.pass + '\0' + input.name);
  if (added) place->second = program_.dispatches_without(input);
  return place->second;
}

CounterGaps::Found CounterGaps::of(std::span<const FormulaInput> inputs) {
  Found found;
  for (const FormulaInput& input : inputs) {
    if (input.pass.empty() || !input.available || input.replaceable) continue;
    const std::vector<uint32_t>& without = of(input);
    if (without.empty()) continue;
    const std::string counter = input.name.substr(0, input.name.find('['));
    const auto note = [&](std::vector<std::string>& names) {
      if (std::find(names.begin(), names.end(), counter) == names.end()) names.push_back(counter);
    };
    note(found.counters);
    if (without.size() == program_.rows()) note(found.empty);
    if (without == found.dispatches) continue;
    std::vector<uint32_t> both;
    std::set_union(found.dispatches.begin(), found.dispatches.end(), without.begin(), without.end(),
                   std::back_inserter(both));
    found.dispatches = std::move(both);
  }
  return found;
}

void add_left_out(std::vector<LeftOut>& groups, std::string id, std::string name, CounterGaps::Found found) {
  auto group = std::find_if(groups.begin(), groups.end(),
                            [&](const LeftOut& each) { return each.dispatches == found.dispatches; });
  if (group == groups.end()) group = groups.insert(group, {{}, {}, {}, std::move(found.dispatches)});
  if (std::find(group->ids.begin(), group->ids.end(), id) == group->ids.end()) {
    group->ids.push_back(std::move(id));
    group->names.push_back(std::move(name));
  }
  for (std::string& counter : found.counters)
    if (std::find(group->counters.begin(), group->counters.end(), counter) == group->counters.end())
      group->counters.push_back(std::move(counter));
}

}  // namespace tacho::metric
