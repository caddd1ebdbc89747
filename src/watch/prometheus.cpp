// Families of metrics (prometheus.h). A histogram's numbers are estimates: each timed operation stands for N.
#include "watch/prometheus.h"

#include "base/format.h"
#include "report/text.h"

namespace tacho::watch {
namespace {

using event::WatchKind;

constexpr size_t kLongestLabel = 200;  // bytes
// The octaves that have a bucket: from 1 us to 17 s, each twice as long as the one before.
constexpr uint32_t kFirstOctave = 10, kLastOctave = 34;

struct LabelSums {
  uint64_t count = 0, bytes = 0;
  double seconds = 0;  // estimated, of what the buckets hold
  AllBuckets buckets = {};

  void add(const RowSums& row) {
    count += row.count;
    bytes += row.bytes;
    for (uint32_t i = 0; i < event::kWatchLevels; ++i)
      seconds += static_cast<double>(row.levels[i].time) * 1e-9 * static_cast<double>(uint64_t{1} << i);
    for (uint32_t i = 0; i < event::kWatchBuckets; ++i) buckets[i] += row.buckets[i];
  }
};
using ByLabel = std::map<std::string, LabelSums>;

class Families {
 public:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  template <typename Number>
  void sample(std::string_view name, std::string_view labels, Number value) {
    text_ += name;
    if (!labels.empty()) text_ += fmt::format("{{{}}}", labels);
    text_ += fmt::format(" {}\n", value);
  }
  template <typename Number>
  void single(std::string_view name, std::string_view type, std::string_view help, Number value) {
    begin(name, type, help);
    sample(name, "", value);
  }
  // One number for each label, where there are any.
  void counters(std::string_view name, std::string_view help, std::string_view label, const ByLabel& all,
                uint64_t LabelSums::*member) {
    if (all.empty()) return;
    begin(name, "counter", help);
    for (const auto& [value, sums] : all) sample(name, fmt::format("{}=\"{}\"", label, value), sums.*member);
  }
  void histograms(std::string_view name, std::string_view help, std::string_view label, const ByLabel& all) {
    if (all.empty()) return;
    begin(name, "histogram", help);
    for (const auto& [value, sums] : all) {
      const std::string labels = fmt::format("{}=\"{}\"", label, value);
      uint64_t sum = 0;
      uint32_t bucket = 0;
      for (uint32_t octave = kFirstOctave; octave <= kLastOctave; ++octave) {
        for (; event::watch_bucket_end(bucket) <= uint64_t{1} << octave; ++bucket) sum += sums.buckets[bucket];
        sample(fmt::format("{}_bucket", name),
               fmt::format("{},le=\"{}\"", labels,
                           report::format_exact(static_cast<double>(uint64_t{1} << octave) * 1e-9)),
               sum);
      }
      for (; bucket < event::kWatchBuckets; ++bucket) sum += sums.buckets[bucket];
      sample(fmt::format("{}_bucket", name), labels + ",le=\"+Inf\"", sum);
      sample(fmt::format("{}_sum", name), labels, report::format_exact(sums.seconds));
      sample(fmt::format("{}_count", name), labels, sum);
    }
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

std::string prometheus_label(std::string_view text) {
  std::string out;
  for (const char c : report::clean(text)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

std::string PrometheusPage::label_of(const std::string& kernel) {
  const auto known = labels_.find(kernel);
  if (known != labels_.end()) return known->second;
  // Two long names whose beginnings are equal share a label: their sums add up.
  std::string label =
      labels_.size() >= most_kernels_
          ? "other"
          : prometheus_label(kernel.size() > kLongestLabel ? report::shortened(kernel, kLongestLabel) : kernel);
  if (labels_.size() < 16 * most_kernels_) labels_.emplace(kernel, label);
  return label;
}

std::string PrometheusPage::text(const WatchSnapshot& snapshot, const std::optional<WatchCost>& cost) {
  ByLabel kernels, graphs, copies, fills, waits, allocations;
  for (const RowSums& row : snapshot.rows) {
    switch (row.kind) {
      case WatchKind::kKernel:
        kernels[label_of(row.name)].add(row);
        break;
      case WatchKind::kGraph:
        graphs[prometheus_label(row.name)].add(row);
        break;
      case WatchKind::kCopy:
        copies[prometheus_label(row.name)].add(row);
        break;
      case WatchKind::kFill:
        fills[prometheus_label(row.name)].add(row);
        break;
      case WatchKind::kWait:
        waits[prometheus_label(row.name)].add(row);
        break;
      case WatchKind::kAllocation:
        allocations[prometheus_label(row.name)].add(row);
        break;
      case WatchKind::kNone:
        break;
    }
  }
  Families out;
  const auto count = &LabelSums::count, bytes = &LabelSums::bytes;
  out.counters("tacho_kernel_launches_total", "Launches of kernels, all of them.", "kernel", kernels, count);
  out.histograms("tacho_kernel_duration_seconds", "Time of kernels on the device, estimated from one of N launches.",
                 "kernel", kernels);
  out.counters("tacho_graph_launches_total", "Launches of graphs, all of them.", "graph", graphs, count);
  out.histograms("tacho_graph_duration_seconds", "Time of graphs on the device, estimated from one of N launches.",
                 "graph", graphs);
  out.counters("tacho_copies_total", "Copies of memory, all of them.", "direction", copies, count);
  out.counters("tacho_copied_bytes_total", "Bytes of these copies.", "direction", copies, bytes);
  out.histograms("tacho_copy_duration_seconds", "Time of copies, estimated from one of N.", "direction", copies);
  out.counters("tacho_fills_total", "Fills of memory, all of them.", "kind", fills, count);
  out.counters("tacho_filled_bytes_total", "Bytes of these fills.", "kind", fills, bytes);
  out.counters("tacho_waits_total", "Calls in which the program waited for its device.", "call", waits, count);
  out.histograms("tacho_wait_duration_seconds", "Host time of these calls.", "call", waits);
  out.counters("tacho_allocations_total", "Allocations of device memory.", "kind", allocations, count);
  out.counters("tacho_allocated_bytes_total", "Bytes of these allocations, freed or not.", "kind", allocations, bytes);
  out.single("tacho_failed_operations_total", "counter",
             "Operations that the runtime refused; they are in no other count.", snapshot.failed);
  out.single("tacho_uncounted_operations_total", "counter", "Operations that found no row: they are in no other count.",
             snapshot.lost_rows);
  out.single("tacho_lost_durations_total", "counter", "Operations that were to be timed and were not.",
             snapshot.lost_times);
  size_t running = 0;
  for (const WatchedProcess& process : snapshot.processes) running += process.uses_devices && !process.ended ? 1 : 0;
  out.single("tacho_processes", "gauge", "Watched processes that use a device and have not ended.", running);
  if (snapshot.own_ns)
    out.single("tacho_watch_host_seconds_total", "counter", "Host time that watching took in the programs, estimated.",
               report::format_exact(*snapshot.own_ns * 1e-9));
  if (cost) {
    out.single("tacho_watch_cost_ratio", "gauge", "Share of its pace that timing costs the program, measured.",
               report::format_exact(cost->share));
    out.single("tacho_watch_cost_ratio_high", "gauge", "Upper end of the 95 % interval of tacho_watch_cost_ratio.",
               report::format_exact(cost->high));
  }
  return out.take();
}

}  // namespace tacho::watch
