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
  int64_t collectives = 0, first = INT64_MAX, last = INT64_MIN;
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

GpuBalance gpu_balance(const trace::Trace& trace, const Activity& activity) {
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
    int64_t sum = 0;
    for (const MergedRun* run : job)
      for (const DeviceActivity* device : run->gpus) {
        ++here.gpus;
        sum += own_work(*device);
        if (here.busiest == nullptr || own_work(*device) > own_work(*here.busiest)) here.busiest = device;
        if (here.least == nullptr || own_work(*device) < own_work(*here.least)) here.least = device;
      }
    here.mean = sum / here.gpus;
    if (worst.busiest == nullptr || own_work(*here.busiest) - here.mean > own_work(*worst.busiest) - worst.mean)
      worst = here;
  }
  return worst;
}

}  // namespace tacho::analysis
