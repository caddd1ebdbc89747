// Families of metrics (prometheus.h). A histogram's numbers are estimates: each timed operation stands for N.
#include "watch/prometheus.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/format.h"
#include "report/text.h"
#include "watch/metrics/telemetry.h"

namespace tacho::watch {
namespace {

using event::WatchKind;

// Telemetry in Prometheus' base units.
struct GpuFamily {
  std::string_view quantity, name, type, help;
  double scale;
};
constexpr GpuFamily kGpuFamilies[] = {
    {"GFX Busy", "tacho_gpu_busy_ratio", "gauge", "Share of time in which a kernel ran.", 0.01},
    {"UMC Busy", "tacho_gpu_memory_busy_ratio", "gauge", "Share of time in which device memory was read or written.",
     0.01},
    {"Core Clock", "tacho_gpu_core_clock_hertz", "gauge", "Clock of the compute units.", 1e6},
    {"Memory Clock", "tacho_gpu_memory_clock_hertz", "gauge", "Clock of device memory.", 1e6},
    {"Current Power", "tacho_gpu_power_watts", "gauge", "Power of the board.", 1},
    {"Temperature", "tacho_gpu_temperature_celsius", "gauge", "Temperature of the chip.", 1},
    {"Memory Usage", "tacho_gpu_memory_used_bytes", "gauge", "Device memory in use.", 1},
    {"Energy", "tacho_gpu_energy_joules_total", "counter", "Energy used since the driver was loaded.", 1},
};

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
    for (const auto& [value, sums] : all)
      sample(name, fmt::format("{}=\"{}\"", label, prometheus_label(value)), sums.*member);
  }
  void histograms(std::string_view name, std::string_view help, std::string_view label, const ByLabel& all) {
    if (all.empty()) return;
    begin(name, "histogram", help);
    for (const auto& [value, sums] : all) {
      const std::string labels = fmt::format("{}=\"{}\"", label, prometheus_label(value));
      uint64_t sum = 0;
      uint32_t at = 0;
      uint64_t from = 0;
      for (uint32_t octave = kFirstBoundOctave; octave <= kLastBoundOctave; ++octave) {
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
  void gpus(const GpuFamily& family, const std::vector<vendor::GpuReading>& readings) {
    bool begun = false;
    for (const vendor::GpuReading& reading : readings) {
      if (quantity_of(reading) != family.quantity) continue;
      if (!begun) begin(family.name, family.type, family.help);
      begun = true;
      sample(family.name, fmt::format("gpu=\"{}\"", reading.gpu), report::format_exact(reading.value * family.scale));
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

std::string PrometheusPage::text(const WatchSnapshot& snapshot, const std::optional<WatchCost>& cost, MetricsForm form,
                                 const std::vector<vendor::GpuReading>& gpus) {
  const AllLabels all = labels_.gather(snapshot);
  Families out(form);
  const auto count = &LabelSums::count, bytes = &LabelSums::bytes;
  out.counters("tacho_kernel_launches_total", "Launches of kernels, all of them.", "kernel", all.kernels, count);
  out.histograms("tacho_kernel_duration_seconds", "Time of kernels on the device, estimated from one of N launches.",
                 "kernel", all.kernels);
  out.counters("tacho_graph_launches_total", "Launches of graphs, all of them.", "graph", all.graphs, count);
  out.histograms("tacho_graph_duration_seconds", "Time of graphs on the device, estimated from one of N launches.",
                 "graph", all.graphs);
  out.counters("tacho_copies_total", "Copies of memory, all of them.", "direction", all.copies, count);
  out.counters("tacho_copied_bytes_total", "Bytes of these copies.", "direction", all.copies, bytes);
  out.histograms("tacho_copy_duration_seconds", "Time of copies, estimated from one of N.", "direction", all.copies);
  out.counters("tacho_fills_total", "Fills of memory, all of them.", "kind", all.fills, count);
  out.counters("tacho_filled_bytes_total", "Bytes of these fills.", "kind", all.fills, bytes);
  out.counters("tacho_waits_total", "Calls in which the program waited for its device.", "call", all.waits, count);
  out.histograms("tacho_wait_duration_seconds", "Host time of these calls.", "call", all.waits);
  out.counters("tacho_allocations_total", "Allocations of device memory.", "kind", all.allocations, count);
  out.counters("tacho_allocated_bytes_total", "Bytes of these allocations, freed or not.", "kind", all.allocations,
               bytes);
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
  for (const GpuFamily& family : kGpuFamilies) out.gpus(family, gpus);
  return out.take();
}

}  // namespace tacho::watch
