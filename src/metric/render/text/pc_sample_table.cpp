// The table of PC samples.
#include "metric/render/text/pc_sample_table.h"

#include <algorithm>

namespace tacho::metric {

report::PrintedTable pc_sample_table(const Analysis& run) {
  report::PrintedTable table;
  table.id = "21.1";
  table.title = "PC Sampling";
  const std::optional<workload::PcSamples>& samples = run.pc_samples();
  if (!samples) return table;
  table.columns = {{"Instruction"}, {"Source"}, {"Kernel_Name"}, {"Samples"}, {"Pct"}};
  for (size_t text = 0; text < 3; ++text) table.columns[text].shrink = true;
  if (samples->stochastic) {
    table.columns.push_back({"Issued pct"});
    table.columns.push_back({"Stalled by"});
    table.columns.back().shrink = true;
  }
  const auto shown = [&](const std::string& name) {
    if (run.options().kernels.empty()) return true;
    return std::any_of(run.kernels().begin(), run.kernels().end(), [&](const KernelStatistics& kernel) {
      return kernel.selected &&
             workload::plain_kernel_name(run.workload().kernels[kernel.kernel]) == workload::plain_kernel_name(name);
    });
  };
  double total = 0;
  for (const auto& each : samples->instructions)
    if (shown(each.kernel)) total += static_cast<double>(each.samples);
  for (const auto& each : samples->instructions) {
    if (!shown(each.kernel)) continue;
    const auto count = static_cast<double>(each.samples);
    std::vector<report::Cell> row = {each.instruction, each.source, each.kernel, static_cast<int64_t>(each.samples),
                                     count / total * 100};
    if (samples->stochastic) {
      std::string stalls;
      for (size_t i = 0; i < each.stalls.size() && i < 3; ++i)
        stalls += fmt::format("{}{} {:.0f} %", i == 0 ? "" : ", ", each.stalls[i].first,
                              static_cast<double>(each.stalls[i].second) / count * 100);
      row.emplace_back(static_cast<double>(each.issued) / count * 100);
      row.emplace_back(std::move(stalls));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace tacho::metric
