// Means over time of sampled counters (sampled_counters.h).
#include "cli/output/sampled_counters.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/format.h"
#include "launch/run/device_samples.h"
#include "report/answer.h"
#include "report/text.h"
#include "trace/read/rows.h"

namespace tacho::cli {

using event::Table;
namespace column = event::column;
using report::Cell;
using report::Unit;

namespace {

struct Sampled {
  int64_t count = 0;
  double sum = 0, least = 0, most = 0;
};

bool is_sampled(const trace::Trace& trace, int64_t counter) {
  return counter != 0 && trace.text(Table::kCounter, counter, column::Counter::block) == launch::kSampledCounters;
}

}  // namespace

bool has_sampled_counters(const trace::Trace& trace) {
  for (int64_t counter = 1; counter < trace.rows(Table::kCounter); ++counter)
    if (is_sampled(trace, counter)) return true;
  return false;
}

void add_sampled_counters(report::Sections& out, const trace::Trace& trace, size_t top) {
  std::map<int64_t, Sampled> tracks;
  for (int64_t track = 1; track < trace.rows(Table::kTrack); ++track)
    if (is_sampled(trace, trace.cell(Table::kTrack, track, column::Track::counter))) tracks.try_emplace(track);
  if (tracks.empty()) return;
  using R = column::Reading;
  Status status;
  for (const auto& read : trace::chunks<R::track, R::value>(trace, status))
    for (size_t i = 0; i < read.size(); ++i) {
      const auto at = tracks.find(read.track[i]);
      if (at == tracks.end()) continue;
      Sampled& sampled = at->second;
      const double value = read.value[i].value();
      sampled.least = sampled.count == 0 ? value : std::min(sampled.least, value);
      sampled.most = sampled.count == 0 ? value : std::max(sampled.most, value);
      sampled.sum += value;
      ++sampled.count;
    }
  if (!status) return out.sentence(status.error().message);
  out.heading("Sampled counters, of whole GPUs");
  report::Answer answer;
  answer.columns = {{.title = "Samples", .unit = Unit::kCount},
                    {.title = "Mean"},
                    {.title = "Min"},
                    {.title = "Max"},
                    {.title = "Unit"},
                    {.title = "GPU", .unit = Unit::kCount},
                    {.title = "Counter"}};
  const auto number = [](const Sampled& sampled, double value) {
    if (sampled.count == 0) return Cell();
    return Cell(std::fabs(value) >= 1e6 ? fmt::format("{:.0f}", value) : fmt::format("{:.6g}", value));
  };
  size_t shown = 0;
  for (const auto& [track, sampled] : tracks) {
    if (++shown > top) break;
    const int64_t counter = trace.cell(Table::kTrack, track, column::Track::counter);
    const int64_t device = trace.cell(Table::kTrack, track, column::Track::device);
    answer.rows.push_back({sampled.count,
                           number(sampled, sampled.count > 0 ? sampled.sum / static_cast<double>(sampled.count) : 0),
                           number(sampled, sampled.least), number(sampled, sampled.most),
                           std::string(trace.text(Table::kCounter, counter, column::Counter::unit)),
                           trace.cell(Table::kDevice, device, column::Device::index),
                           std::string(trace.text(Table::kCounter, counter, column::Counter::name))});
  }
  out.table(answer);
  if (tracks.size() > top) out.line(fmt::format("  … and {} more", tracks.size() - top));
}

}  // namespace tacho::cli
