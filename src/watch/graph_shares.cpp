// Shares and their table (graph_shares.h).
#include "watch/graph_shares.h"

#include <algorithm>

#include "watch/estimate.h"

namespace tacho::watch {
namespace {

using report::Cell, report::Unit;

struct Line {
  const RowSums* graph;
  GraphShare share;
};

}  // namespace

GraphTimeShares graph_shares(const RowSums& graph, const KernelTimes& times, std::optional<double> total_ns) {
  GraphTimeShares shares;
  double sum = 0;
  std::vector<double> parts;
  for (const GraphKernel& kernel : graph.kernels) {
    std::optional<double> each = kernel.own_ns;
    if (const auto found = times.mean.find(kernel.name); found != times.mean.end()) {
      each = found->second;
      shares.by_trace = true;
    }
    if (!each) ++shares.unknown;
    parts.push_back(each.value_or(0) * static_cast<double>(kernel.nodes));
    sum += parts.back();
    shares.kernels.push_back({&kernel, graph.count * kernel.nodes, std::nullopt, std::nullopt});
  }
  if (shares.unknown > 0 || sum <= 0) return shares;
  for (size_t i = 0; i < parts.size(); ++i) {
    shares.kernels[i].share = parts[i] / sum;
    if (total_ns) shares.kernels[i].total_ns = *total_ns * parts[i] / sum;
  }
  return shares;
}

report::Answer graph_answer(const WatchSnapshot& snapshot, const KernelTimes& times) {
  report::Answer answer;
  answer.id = "graph_kernels";
  answer.title = "Inside graphs";
  answer.columns = {{.name = "graph", .title = "Graph"},
                    {.name = "launches", .title = "Launches", .unit = Unit::kCount},
                    {.name = "total_ns", .title = "Time", .unit = Unit::kNs},
                    {.name = "share", .title = "Of graph %", .unit = Unit::kShare, .decimals = 1},
                    {.name = "average_ns", .title = "Average", .unit = Unit::kNs},
                    {.name = "name", .title = "Kernel"}};
  std::vector<Line> lines;
  size_t unknown = 0, with_others = 0, by_trace = 0, by_own = 0;
  for (const RowSums& row : snapshot.rows) {
    if (row.kernels.empty()) continue;
    const auto time = estimate_time(row.levels, row.each_ns);
    const GraphTimeShares shares = graph_shares(row, times, time ? std::optional(time->total_ns) : std::nullopt);
    unknown += shares.unknown > 0 ? 1 : 0;
    with_others += row.other_nodes > 0 ? 1 : 0;
    if (shares.unknown == 0) ++(shares.by_trace ? by_trace : by_own);
    for (const GraphShare& share : shares.kernels) lines.push_back({&row, share});
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    const double left = a.share.total_ns.value_or(-1), right = b.share.total_ns.value_or(-1);
    return left != right ? left > right : a.share.launches > b.share.launches;
  });
  for (const auto& [graph, share] : lines) {
    const auto cell = [](const std::optional<double>& value) { return value ? Cell(*value) : Cell(); };
    std::optional<double> average;
    if (share.total_ns && share.launches > 0) average = *share.total_ns / static_cast<double>(share.launches);
    answer.rows.push_back({graph->name, static_cast<int64_t>(share.launches), cell(share.total_ns), cell(share.share),
                           cell(average), share.kernel->title});
  }
  const auto graphs = [](size_t count) { return fmt::format("{} graph{}", count, count == 1 ? "" : "s"); };
  if (by_trace > 0)
    answer.notes.push_back(fmt::format("Times inside {} are shares of the whole graph's, by what kernels take in {}.",
                                       graphs(by_trace), times.file));
  if (by_own > 0)
    answer.notes.push_back(
        fmt::format("Times inside {} are shares of the whole graph's, by what the same kernels took outside of graphs.",
                    graphs(by_own)));
  if (unknown > 0)
    answer.notes.push_back(fmt::format("Inside {} only launches are known: some of the kernels never ran outside of "
                                       "graphs. --graph-shares FILE takes what they take from a trace.",
                                       graphs(unknown)));
  if (with_others > 0)
    answer.notes.push_back(
        fmt::format("{} of them {} other nodes too (copies, fills, calls of the host), whose time is "
                    "shared among the kernels.",
                    with_others, with_others == 1 ? "has" : "have"));
  return answer;
}

}  // namespace tacho::watch
