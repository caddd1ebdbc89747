// Collectives of one kind, their bandwidths, and bytes between ranks (answering.h).
#include <algorithm>
#include <cmath>

#include "base/saturating.h"
#include "ranks/answer/answering.h"
#include "ranks/answer/cause.h"
#include "ranks/match/links.h"

namespace tacho::ranks {
namespace {

// The peak to compare a group's bus bandwidth with. `of`: its runs.
void find_peak(const std::vector<RankRun>& runs, const std::vector<bool>& of, int64_t ranks, bool by_host,
               Group& group) {
  if (group.bus_bandwidth <= 0) return;
  if (by_host) {
    group.peak_of = "the traces do not tell what MPI sends over";
    return;
  }
  std::set<std::string> devices, hosts;
  bool all_known = true;
  for (size_t run = 0; run < of.size(); ++run) {
    if (!of[run]) continue;
    devices.insert(runs[run].device);
    hosts.insert(runs[run].host);
    all_known = all_known && !runs[run].host.empty();
  }
  hosts.erase("");
  if (hosts.size() > 1) {
    group.peak_of = "the traces do not tell the network between the ranks' hosts";
    return;
  }
  const std::string device = devices.size() == 1 ? *devices.begin() : std::string();
  const LinkPeak peak = link_peak(device, ranks);
  if (peak.gb_s <= 0) {
    group.peak_of = device.empty() ? "the traces do not tell one kind of GPU"
                                   : fmt::format("the name {} does not tell its links", device);
    return;
  }
  group.peak = peak.gb_s;
  group.peak_of = fmt::format("what {} of {} carries in one direction{}", peak.link, device,
                              all_known ? "" : ", if the ranks are on one host");
}

}  // namespace

void answer_kinds(Answering& work) {
  const std::vector<RankRun>& runs = work.runs;
  Report& report = work.report;
  struct GroupSums {
    std::vector<int64_t> spreads, transfers;
    int64_t waited = 0;
  };
  std::map<std::tuple<uint32_t, Operation, int64_t>, GroupSums> kinds;
  for (const Collective& collective : report.collectives) {
    GroupSums& sums = kinds[{collective.communicator, collective.operation, collective.bytes}];
    sums.spreads.push_back(collective.spread);
    sums.transfers.push_back(collective.transfer);
    add_saturating(sums.waited, collective.waited);
  }
  for (auto& [key, sums] : kinds) {
    const auto [communicator, operation, bytes] = key;
    Group group{};
    group.operation = operation;
    group.communicator = communicator;
    group.bytes = bytes;
    group.count = sums.spreads.size();
    group.most_spread = *std::max_element(sums.spreads.begin(), sums.spreads.end());
    group.waited = sums.waited;
    group.median_spread = median_of(std::move(sums.spreads));
    group.median_transfer = median_of(std::move(sums.transfers));
    const int64_t size = std::max<int64_t>(work.job.names.communicator(communicator).size,
                                           std::ranges::count(work.in_group[communicator], true));
    // One rank's kernels also waited for the others.
    if (bytes > 0 && group.median_transfer > 0 && std::ranges::count(work.in_group[communicator], true) > 1) {
      group.algorithm_bandwidth = static_cast<double>(bytes) / static_cast<double>(group.median_transfer);
      group.bus_bandwidth = group.algorithm_bandwidth * bus_factor(operation, size);
    }
    find_peak(runs, work.in_group[communicator], size, work.by_host.contains(communicator), group);
    report.groups.push_back(group);
  }
  std::stable_sort(report.groups.begin(), report.groups.end(),
                   [](const Group& a, const Group& b) { return a.waited > b.waited; });
}

void answer_bytes(Answering& work) {
  const std::vector<RankRun>& runs = work.runs;
  Report& report = work.report;
  std::set<int64_t> present, missing;
  for (const RankRun& run : runs) present.insert(run.rank);
  for (const RankRun& run : runs)
    for (int64_t rank = 0; rank < std::min<int64_t>(run.world, 1 << 20); ++rank)
      if (!present.contains(rank)) missing.insert(rank);
  constexpr size_t kMostPairs = 4096;
  for (uint32_t communicator = 0; communicator < work.job.names.communicators(); ++communicator) {
    const Names::Communicator told = work.job.names.communicator(communicator);
    std::vector<int64_t> members = members_of(told.members);
    for (const int64_t member : members)
      if (!present.contains(member)) missing.insert(member);
    if (members.empty())
      for (size_t run = 0; run < work.in_group[communicator].size(); ++run)
        if (work.in_group[communicator][run]) members.push_back(runs[run].rank);
    const Traffic& sums = work.traffic[communicator];
    const size_t count = members.size();
    if (count < 2) continue;
    if (sums.ring > 0)
      for (size_t i = 0; i < count; ++i)
        report.bytes[{members[i], members[(i + 1) % count]}] += std::llround(sums.ring);
    if (sums.all_to_all > 0 && count <= kMostPairs)
      for (size_t i = 0; i < count; ++i)
        for (size_t k = 0; k < count; ++k)
          if (i != k) report.bytes[{members[i], members[k]}] += std::llround(sums.all_to_all);
  }
  report.missing.assign(missing.begin(), missing.end());
}

}  // namespace tacho::ranks
