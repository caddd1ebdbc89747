// Which GPUs share work, and how evenly.
#include "analysis/findings/gpu_balance.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace tacho::analysis {

using event::kUnknown;
using event::Table;
namespace column = event::column;

namespace {

// One of the runs that were merged, and what tells whether it belongs to another's job.
struct MergedRun {
  std::vector<const DeviceActivity*> gpus;
  std::set<int64_t> ranks;
  int64_t collectives = 0, first = INT64_MAX, last = INT64_MIN;  // of the GPUs
  int64_t begin = INT64_MAX, end = INT64_MIN;                    // of all that walk::run_span() looks at
};

// The process of each device; a device of the machine belongs to the first process with a track of it.
std::vector<int64_t> owners(const trace::Trace& trace) {
  std::vector<int64_t> owner(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kDevice), 1)), 0);
  for (int64_t row = 1; row < trace.rows(Table::kDevice); ++row)
    owner[static_cast<size_t>(row)] = trace.cell(Table::kDevice, row, column::Device::process);
  for (int64_t row = 1; row < trace.rows(Table::kTrack); ++row) {
    const int64_t device = trace.cell(Table::kTrack, row, column::Track::device);
    const int64_t process = trace.cell(Table::kTrack, row, column::Track::process);
    if (device <= 0 || static_cast<size_t>(device) >= owner.size()) continue;
    if (int64_t& found = owner[static_cast<size_t>(device)]; found <= 0) found = process;
  }
  return owner;
}

// From the first to the last event of each run, by the rules of walk::run_span().
Status read_spans(const trace::Trace& trace, const std::vector<int64_t>& owner, std::map<int64_t, MergedRun>& runs) {
  const auto run_of = [&](int64_t track) {
    const auto device = static_cast<size_t>(trace.cell(Table::kTrack, track, column::Track::device));
    const int64_t process =
        device > 0 && device < owner.size() ? owner[device] : trace.cell(Table::kTrack, track, column::Track::process);
    return process > 0 ? trace.cell(Table::kProcess, process, column::Process::run) : 0;
  };
  for (size_t i = 0; i < event::kFactTables; ++i) {
    const auto table = static_cast<Table>(i);
    if (!event::is_timed(table)) continue;
    const bool always =
        table == Table::kDispatch || table == Table::kCopy || table == Table::kFill || table == Table::kSample;
    TACHO_TRY(trace.visit_summaries(table, [&](std::span<const trace::Summary> summaries) {
      for (const trace::Summary& summary : summaries) {
        const auto run = runs.find(run_of(summary.track));
        if (run == runs.end() || summary.count == 0 || (!always && summary.max <= 0)) continue;
        run->second.begin = std::min(run->second.begin, summary.first);
        run->second.end = std::max(run->second.end, summary.last);
      }
    }));
  }
  return {};
}

bool one_job(const MergedRun& a, const MergedRun& b) {
  constexpr int64_t kHour = 3'600'000'000'000;
  if (std::max(a.first, b.first) - std::min(a.last, b.last) > kHour) return false;
  if (a.ranks.empty() != b.ranks.empty()) return false;
  if (!a.ranks.empty())
    return std::none_of(a.ranks.begin(), a.ranks.end(), [&](int64_t rank) { return b.ranks.contains(rank); });
  return a.collectives > 0 && 10 * std::min(a.collectives, b.collectives) >= 9 * std::max(a.collectives, b.collectives);
}

}  // namespace

int64_t own_work(const DeviceActivity& device) {
  return device.busy - device.exposed_collective;
}

Result<GpuBalance> gpu_balance(const trace::Trace& trace, const Activity& activity) {
  std::map<int64_t, MergedRun> runs;
  for (int64_t row = 1; row < trace.rows(Table::kProcess); ++row)
    if (const int64_t rank = trace.cell(Table::kProcess, row, column::Process::rank); rank != kUnknown)
      runs[trace.cell(Table::kProcess, row, column::Process::run)].ranks.insert(rank);
  const std::vector<int64_t> owner = owners(trace);
  for (const DeviceActivity& device : activity.devices) {
    if (device.cpu || device.row == 0) continue;
    const int64_t process = owner[static_cast<size_t>(device.row)];
    MergedRun& run = runs[process > 0 ? trace.cell(Table::kProcess, process, column::Process::run) : 0];
    run.gpus.push_back(&device);
    run.collectives += device.collectives;
    run.first = std::min(run.first, device.first);
    run.last = std::max(run.last, device.last);
  }
  TACHO_TRY(read_spans(trace, owner, runs));
  // Each run joins the first job whose runs it all belongs with.
  std::vector<std::vector<const MergedRun*>> jobs;
  for (const auto& each : runs) {
    const MergedRun& run = each.second;
    if (run.gpus.empty()) continue;
    const auto job = std::find_if(jobs.begin(), jobs.end(), [&](const auto& of) {
      return std::all_of(of.begin(), of.end(), [&](const MergedRun* other) { return one_job(run, *other); });
    });
    (job == jobs.end() ? jobs.emplace_back() : *job).push_back(&run);
  }
  GpuBalance worst;
  for (const auto& job : jobs) {
    GpuBalance here;
    int64_t sum = 0, begin = INT64_MAX, end = INT64_MIN;
    for (const MergedRun* run : job) {
      begin = std::min({begin, run->begin, run->first});
      end = std::max({end, run->end, run->last});
      for (const DeviceActivity* device : run->gpus) {
        ++here.gpus;
        sum += own_work(*device);
        if (here.busiest == nullptr || own_work(*device) > own_work(*here.busiest)) here.busiest = device;
        if (here.least == nullptr || own_work(*device) < own_work(*here.least)) here.least = device;
      }
    }
    here.length = end - begin;
    here.mean = sum / here.gpus;
    if (worst.busiest == nullptr || own_work(*here.busiest) - here.mean > own_work(*worst.busiest) - worst.mean)
      worst = here;
  }
  return worst;
}

}  // namespace tacho::analysis
