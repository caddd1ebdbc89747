// Families of metrics (prometheus.h). A histogram's numbers are estimates: each timed operation stands for N.
#include "watch/prometheus.h"

#include <algorithm>
#include <charconv>
#include <vector>

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
  uint64_t longest_ns = 0;  // timed, of those whose shape is known; 0: none
  std::string longest_shape;

  void add(const RowSums& row) {
    count += row.count;
    bytes += row.bytes;
    for (uint32_t i = 0; i < event::kWatchLevels; ++i)
      seconds += static_cast<double>(row.levels[i].time) * 1e-9 * static_cast<double>(uint64_t{1} << i);
    for (uint32_t i = 0; i < event::kWatchBuckets; ++i) buckets[i] += row.buckets[i];
    if (row.any_shape() || row.longest_ns <= longest_ns) return;
    longest_ns = row.longest_ns;
    longest_shape = row.shape();
  }
};
using ByLabel = std::map<std::string, LabelSums>;

class Families {
 public:
  explicit Families(MetricsForm form) : open_(form == MetricsForm::kOpenMetrics) {}
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    constexpr std::string_view kTotal = "_total";  // OpenMetrics: of a counter's samples, not of its family
    if (open_ && name.ends_with(kTotal)) name.remove_suffix(kTotal.size());
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  template <typename Number>
  void sample(std::string_view name, std::string_view labels, Number value) {
    text_ += name;
    if (!labels.empty()) text_ += fmt::format("{{{}}}", labels);
    text_ += fmt::format(" {}\n", value);
  }
  // A sample of the bucket from `from_ns` to `to_ns`. Its exemplar is the longest operation, if that lies in it.
  void bucket(std::string_view name, std::string_view labels, uint64_t value, const LabelSums& sums, uint64_t from_ns,
              uint64_t to_ns) {
    text_ += fmt::format("{}_bucket{{{}}} {}", name, labels, value);
    if (open_ && sums.longest_ns > 0 && sums.longest_ns >= from_ns && sums.longest_ns < to_ns)
      text_ += fmt::format(" # {{shape=\"{}\"}} {}", sums.longest_shape,
                           report::format_exact(static_cast<double>(sums.longest_ns) * 1e-9));
    text_ += '\n';
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
      uint32_t at = 0;
      uint64_t from = 0;
      for (uint32_t octave = kFirstOctave; octave <= kLastOctave; ++octave) {
        const uint64_t end = uint64_t{1} << octave;
        for (; event::watch_bucket_end(at) <= end; ++at) sum += sums.buckets[at];
        const std::string limit = report::format_exact(static_cast<double>(end) * 1e-9);
        bucket(name, fmt::format("{},le=\"{}\"", labels, limit), sum, sums, from, end);
        from = end;
      }
      for (; at < event::kWatchBuckets; ++at) sum += sums.buckets[at];
      bucket(name, labels + ",le=\"+Inf\"", sum, sums, from, UINT64_MAX);
      sample(fmt::format("{}_sum", name), labels, report::format_exact(sums.seconds));
      sample(fmt::format("{}_count", name), labels, sum);
    }
  }
  std::string take() {
    if (open_) text_ += "# EOF\n";
    return std::move(text_);
  }

 private:
  bool open_;
  std::string text_;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (size_t end = 0; end != std::string_view::npos; text.remove_prefix(std::min(text.size(), end + 1))) {
    end = text.find(at);
    parts.push_back(trimmed(text.substr(0, end)));
  }
  return parts;
}

}  // namespace

// RFC 9110, 12.5.1: ranges of media with weights; 1 where there is none.
MetricsForm wanted_form(std::string_view accept) {
  double open = 0, plain = 0;
  for (const std::string_view range : split(accept, ',')) {
    const std::vector<std::string_view> words = split(range, ';');
    double weight = 1;
    bool old = false;  // 0.0.1, a draft
    for (const std::string_view word : words) {
      if (word.starts_with("q=")) std::from_chars(word.data() + 2, word.data() + word.size(), weight);
      if (word.starts_with("version=") && word != "version=1.0.0") old = true;
    }
    if (words[0] == "application/openmetrics-text" && !old) open = std::max(open, weight);
    if (words[0] == "text/plain") plain = std::max(plain, weight);
  }
  return open > 0 && open >= plain ? MetricsForm::kOpenMetrics : MetricsForm::kPrometheus;
}

const char* content_type(MetricsForm form) {
  return form == MetricsForm::kOpenMetrics ? "application/openmetrics-text; version=1.0.0"
                                           : "text/plain; version=0.0.4";
}

std::string prometheus_label(std::string_view text) {
  std::string out;
  for (const char c : report::clean(text)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

std::string PrometheusPage::label_of(const std::string& kernel) {
  if (kernel == kOtherKernels) return "other";
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

std::string PrometheusPage::text(const WatchSnapshot& snapshot, const std::optional<WatchCost>& cost,
                                 MetricsForm form) {
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
  Families out(form);
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
