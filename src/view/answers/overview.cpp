// The run at a glance (run.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/saturating.h"
#include "view/answers/name_sums.h"
#include "view/run.h"

namespace tacho::view {

using event::Table;

namespace {

constexpr size_t kTop = 10;
constexpr size_t kOverviewBins = 400;
constexpr auto kEverything = std::numeric_limits<int64_t>::max();

}  // namespace

// Busy shares in bins of `width` ns, averaged over devices, before the index knows them: the busy time of each chunk,
// spread evenly over the time between its first and last row.
std::vector<double> Run::estimated_busy(int64_t width, size_t bins) const {
  const auto wide = static_cast<double>(width);
  std::map<size_t, std::vector<double>> of_device;
  for (const Table table : {Table::kDispatch, Table::kCopy, Table::kFill})
    for (size_t chunk = 0; chunk < trace_->chunks(table).size(); ++chunk) {
      const auto entries = trace_->busy(table, chunk);
      if (!entries) continue;
      for (const trace::Busy& entry : *entries) {
        const int64_t line = tree_.line_of(table, entry.track);
        if (line < 0 || tree_.lines()[static_cast<size_t>(line)].kind != LineKind::kQueue) continue;
        std::vector<double>& busy = of_device[tree_.lines()[static_cast<size_t>(line)].device_number];
        busy.resize(bins);
        const auto first = static_cast<double>(entry.first - index_.t0());
        const auto last = std::max(static_cast<double>(entry.last - index_.t0()), first + 1);
        const double share = static_cast<double>(entry.busy) / (last - first);
        for (auto bin = static_cast<size_t>(std::max(first, 0.0) / wide);
             bin < bins && static_cast<double>(bin) * wide < last; ++bin) {
          const double begin = static_cast<double>(bin) * wide;
          busy[bin] += share * (std::min(last, begin + wide) - std::max(first, begin)) / wide;
        }
      }
    }
  std::vector<double> all(bins);
  for (const auto& [device, busy] : of_device)
    for (size_t bin = 0; bin < bins; ++bin)
      all[bin] += std::min(busy[bin], 1.0) / static_cast<double>(of_device.size());
  return all;
}

// The devices' time by kind of work, in bins and over the run.
struct Run::Shares {
  // Of each bin, over all devices.
  std::vector<double> busy, compute, copies, exposed, collectives, calls;
  BusySums whole;
  int64_t idle = 0;  // of their spans
};

Result<Run::Shares> Run::shares(int64_t width, size_t bins) {
  const int64_t length = index_.length();
  const std::vector<size_t> devices = index_.devices();
  Shares shares;
  for (auto* list :
       {&shares.busy, &shares.compute, &shares.copies, &shares.exposed, &shares.collectives, &shares.calls})
    list->resize(bins);
  for (const size_t device : devices) {
    TACHO_ASSIGN(const BusySums whole, index_.activity(device, 0, length));
    shares.whole.busy += whole.busy;
    shares.idle += index_.span_of(device).length() - whole.busy;
    shares.whole.kernels += whole.kernels;
    shares.whole.copies += whole.copies;
    shares.whole.exposed += whole.exposed;
    shares.whole.collectives += whole.collectives;
    for (size_t bin = 0; bin < bins; ++bin) {
      const auto from = static_cast<int64_t>(bin) * width;
      const BusySums part = index_.bins(device, from, from + width);
      const auto span = static_cast<double>(std::min(width, length - from)) * static_cast<double>(devices.size());
      shares.busy[bin] += static_cast<double>(part.busy) / span;
      shares.compute[bin] += static_cast<double>(part.kernels) / span;
      shares.copies[bin] += static_cast<double>(part.copies) / span;
      shares.exposed[bin] += static_cast<double>(part.exposed) / span;
      shares.collectives[bin] += static_cast<double>(part.collectives) / span;
    }
  }
  for (size_t bin = 0; bin < bins; ++bin) {
    const auto from = static_cast<int64_t>(bin) * width;
    shares.calls[bin] = static_cast<double>(index_.calls_open(from, from + width)) /
                        static_cast<double>(std::min(width, length - from));
  }
  return shares;
}

// The names with the longest times in the run; of calls without those of frameworks.
Result<Run::Sums> Run::longest(Table table) {
  if (trace_->aggregated()) {
    TACHO_ASSIGN(const Sums all, sums(table, 0, kEverything));
    return table == Table::kApi ? calls_of(all, false) : all;
  }
  // Of perhaps millions of names only the first are kept.
  Sums top;
  for (const NameSum& sum : index_.top_names(table, kTop, top.total)) add_name(sum, top);
  return top;
}

Result<std::string> Run::overview() {
  const bool ready = index_.ready() >= 1;
  TACHO_TRY(index_.status());
  const int64_t length = index_.length();
  // Whole bins of the index, so that every share is exact.
  const int64_t fine = index_.activity_width();
  const int64_t width = fine * std::max<int64_t>(1, (length / fine + static_cast<int64_t>(kOverviewBins)) /
                                                        static_cast<int64_t>(kOverviewBins));
  const auto bins = static_cast<size_t>((length + width - 1) / width);
  Shares shares;
  if (ready) {
    TACHO_ASSIGN(shares, this->shares(width, bins));
  } else {
    shares.busy = estimated_busy(width, bins);
  }
  std::string out;
  JsonWriter json(out, kCompactJson);
  const auto put = [&](JsonLiteral name, const std::vector<double>& values) {
    json.name(name).begin_array();
    for (const double value : values) json.value(std::min(std::round(value * 1e6) / 1e6, 1.0));
    json.end_array();
  };
  json.begin_object();
  json.name("span").begin_array().value(0).value(length).end_array();
  json.member("bins", bins).member("bin_width", width).member("provisional", !ready).member("ready", index_.ready());
  put("busy", shares.busy);
  if (ready) {
    put("compute", shares.compute);
    put("copies", shares.copies);
    put("exposed_copies", shares.exposed);
    put("comm", shares.collectives);
    put("calls", shares.calls);
  }
  TACHO_ASSIGN(const Sums kernels, longest(Table::kDispatch));
  TACHO_ASSIGN(const Sums api, longest(Table::kApi));
  TACHO_ASSIGN(Sums moved, sums(Table::kCopy, 0, kEverything));
  TACHO_ASSIGN(const Sums filled, sums(Table::kFill, 0, kEverything));
  for (const auto& [name, of] : filled.of) moved.of[name].add(of);
  add_saturating(moved.total, filled.total);
  json.name("totals")
      .begin_object()
      .member("span", index_.run_length())
      .member("devices", index_.devices().size())
      .member("api", api.total)
      .member("kernels", kernels.total);
  if (ready)
    json.member("gpu_busy", shares.whole.busy)
        .member("gpu_idle", shares.idle)
        .member("compute", shares.whole.kernels)
        .member("copy", shares.whole.copies)
        .member("exposed_copy", shares.whole.exposed)
        .member("comm", shares.whole.collectives);
  json.end_object();
  const auto put_top = [&](JsonLiteral name, const Sums& of, bool bytes) {
    json.name(name).begin_array();
    const auto sorted = of.sorted();
    for (size_t i = 0; i < sorted.size() && i < kTop; ++i) {
      json.newline();
      put_sums(json, names_, sorted[i].first, sorted[i].second, of.total, bytes);
    }
    json.end_array();
  };
  put_top("kernels", kernels, false);
  put_top("calls_top", api, false);
  put_top("copies_top", moved, true);
  {
    const std::lock_guard held(findings_lock_);
    json.member("findings_ready", findings_.has_value() || !findings_error_.empty() || !findings_of_);
    if (!findings_error_.empty()) json.member("findings_error", findings_error_);
    if (findings_) {
      report::JsonValue members = report::JsonValue::object({});
      analysis::add_findings(members, *findings_, index_.t0());
      members.write_members(json);
    }
  }
  json.end_object();
  return out;
}

}  // namespace tacho::view
