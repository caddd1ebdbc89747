// Metrics: a histogram without buckets for the durations of each name, bytes moved, how busy devices were, telemetry.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "analysis/stats.h"
#include "event/gpu_quantity.h"
#include "format/otlp/names.h"
#include "format/otlp/parts.h"
#include "trace/read/rows.h"

namespace tacho::format::otlp {
namespace {

namespace column = event::column;
using analysis::By;
using analysis::StatRow;
using event::Table;

constexpr int kCumulative = 2;   // AGGREGATION_TEMPORALITY_CUMULATIVE: since the run began
constexpr double kSecond = 1e9;  // ns

// Durations of one table by name. OpenTelemetry has no names of its own for work of GPUs.
struct Durations {
  Table table;
  By by;
  JsonLiteral metric, text;
  std::string_view name_key;   // of the attribute with the name
  std::string_view group_key;  // of the one with StatRow::group; empty = none
  JsonLiteral bytes = "";      // of the metric of bytes; empty = the table has none
};
constexpr Durations kDurations[] = {
    {Table::kDispatch, By::kKernel, "tacho.gpu.kernel.duration", "durations of kernels", "tacho.kernel.name", ""},
    {Table::kCopy, By::kCopy, "tacho.gpu.copy.duration", "durations of memory copies", "tacho.copy.direction", "",
     "tacho.gpu.copy.io"},
    {Table::kFill, By::kFill, "tacho.gpu.fill.duration", "durations of memory fills", "tacho.fill.memory", "",
     "tacho.gpu.fill.io"},
    {Table::kApi, By::kApi, "tacho.api.duration", "durations of calls", "code.function.name", "tacho.api.domain"},
    {Table::kMarker, By::kMarker, "tacho.range.duration", "durations of ranges", "tacho.range.name",
     "tacho.range.domain"},
    {Table::kSync, By::kSync, "tacho.sync.duration", "times of waiting for devices", "tacho.sync.kind", ""},
    {Table::kAllocation, By::kAllocation, "tacho.allocation.duration", "durations of allocations and frees",
     "tacho.allocation.kind", ""},
    {Table::kOverhead, By::kOverhead, "tacho.overhead.duration", "time that runtimes and profilers spent on themselves",
     "tacho.overhead.kind", ""},
};

class MetricsWriter {
 public:
  MetricsWriter(const Parts& parts, const ExportOptions& options, OutputFile& file)
      : parts_(parts), trace_(parts.trace()), options_(options), file_(file), json_(file, kCompactJson) {}

  Status run() {
    for (int64_t process = 0; process < std::max<int64_t>(trace_.rows(Table::kProcess), 1); ++process)
      if (options_.process == 0 || options_.process == process) TACHO_TRY(process_durations(process));
    if (options_.process == 0) TACHO_TRY(devices());
    if (options_.wants(Table::kReading)) TACHO_TRY(readings());
    if (endless_ > 0)
      options_.remark(fmt::format("{} {} no known duration: they are in no histogram", endless_,
                                  endless_ == 1 ? "event has" : "events have"));
    if (unsized_ > 0)
      options_.remark(unsized_ == 1
                          ? "1 copy or fill has no known size: its bytes are in no sum"
                          : fmt::format("{} copies and fills have no known size: their bytes are in no sum", unsized_));
    if (not_finite_ > 0)
      options_.remark(fmt::format("JSON cannot express infinite values and those that are not a number: {} of counters "
                                  "{} left out",
                                  not_finite_, not_finite_ == 1 ? "was" : "were"));
    return {};
  }

 private:
  // A message, which is a line, of one resource and its metrics. It begins with the first metric.
  template <typename Resource>
  void need_line(Resource resource) {
    if (in_line_) return;
    in_line_ = true;
    json_ = JsonFileWriter(file_, kCompactJson);
    json_.begin_object().name("resourceMetrics").begin_array().begin_object();
    resource();
    json_.name("scopeMetrics").begin_array().begin_object();
    Parts::put_scope(json_);
    json_.name("metrics").begin_array();
  }
  void end_line() {
    if (!in_line_) return;
    in_line_ = false;
    json_.end_array().end_object().end_array().end_object().end_array().end_object().end_line();
  }

  void begin_metric(std::string_view name, std::string_view text, std::string_view unit, JsonLiteral kind) {
    json_.begin_object().member("name", name);
    if (!text.empty()) json_.member("description", text);
    json_.member("unit", unit).name(kind).begin_object().name("dataPoints").begin_array();
  }
  void end_metric(bool sum, bool monotonic = false) {
    json_.end_array();
    if (sum) json_.member("aggregationTemporality", kCumulative);
    if (monotonic) json_.member("isMonotonic", true);
    json_.end_object().end_object();
  }
  void put_span() {
    parts_.put_time(json_, "startTimeUnixNano", parts_.run().first);
    parts_.put_time(json_, "timeUnixNano", parts_.run().last);
  }
  void put_row(const Durations& of, const StatRow& row) {
    json_.begin_object().name("attributes").begin_array();
    put_attribute(json_, of.name_key, row.name);
    if (!of.group_key.empty() && !row.group.empty()) put_attribute(json_, of.group_key, row.group);
    json_.end_array();
    put_span();
  }

  Status process_durations(int64_t process) {
    for (const Durations& of : kDurations) {
      if (!options_.wants(of.table) || (trace_.rows(of.table) == 0 && !trace_.aggregated())) continue;
      analysis::StatOptions wanted;
      wanted.process = process;
      wanted.mangled = options_.mangled;
      wanted.truncate = options_.truncate;
      TACHO_ASSIGN(const analysis::StatTable table, analysis::StatTable::make(trace_, of.by, wanted));
      put_durations(of, table, process);
      if (!of.bytes.text().empty()) put_bytes(of, table, process);
    }
    end_line();
    return {};
  }

  bool wanted(const Durations& of, const StatRow& row) const {
    if (of.table != Table::kApi || options_.domains == ~0ull) return true;
    const auto domain = event::from_string<event::Domain>(row.group);
    return !domain || options_.wants(*domain);
  }

  void put_durations(const Durations& of, const analysis::StatTable& table, int64_t process) {
    bool begun = false;
    for (size_t i = 0; i < table.size(); ++i) {
      const StatRow row = table.row(i);
      if (!wanted(of, row)) continue;
      endless_ += row.unknown;
      if (row.count == row.unknown) continue;
      if (!begun) {
        need_line([&] { parts_.put_process(json_, process); });
        begin_metric(of.metric.text(), of.text.text(), "s", "histogram");
        begun = true;
      }
      put_row(of, row);
      put_integer(json_, "count", row.count - row.unknown);
      json_.member("sum", static_cast<double>(row.total) / kSecond);
      json_.member("min", static_cast<double>(row.min) / kSecond).member("max", static_cast<double>(row.max) / kSecond);
      json_.end_object();
    }
    if (begun) end_metric(true);
  }

  void put_bytes(const Durations& of, const analysis::StatTable& table, int64_t process) {
    bool begun = false;
    std::vector<StatRow> rows;  // a handful: directions, kinds of memory
    for (size_t i = 0; i < table.size(); ++i) rows.push_back(table.row(i));
    for (const StatRow& row : rows) {
      if (row.sized == 0) continue;
      if (!begun) {
        need_line([&] { parts_.put_process(json_, process); });
        begin_metric(of.bytes.text(), "bytes moved", "By", "sum");
        begun = true;
      }
      put_row(of, row);
      put_integer(json_, "asInt", row.bytes);
      json_.end_object();
    }
    if (begun) end_metric(true, true);
    for (const StatRow& row : rows) unsized_ += row.count - row.sized;
  }

  // The time in which anything ran on a device, of the run.
  Status devices() {
    if (trace_.aggregated()) return {};
    TACHO_ASSIGN(const std::vector<analysis::DeviceBusy> devices, analysis::device_busy(trace_));
    const auto run = static_cast<double>(parts_.run().length());
    bool begun = false;
    for (const analysis::DeviceBusy& device : devices) {
      const auto kind = trace_.cell(Table::kDevice, device.device, column::Device::kind);
      if (kind != static_cast<int64_t>(event::DeviceKind::kGpu) || run <= 0) continue;
      if (!begun) {
        need_line([&] { parts_.put_process(json_, 0); });
        begin_metric("hw.gpu.utilization", "share of the run in which a kernel, copy or fill ran", "1", "gauge");
        begun = true;
      }
      json_.begin_object().name("attributes").begin_array();
      put_attribute(json_, "hw.id", device.number);
      put_attribute(json_, "hw.gpu.task", "general");
      const auto word = [&](std::string_view key, int at) {
        if (const auto text = trace_.text(Table::kDevice, device.device, at); !text.empty())
          put_attribute(json_, key, text);
      };
      word("hw.model", column::Device::name);
      word("hw.vendor", column::Device::vendor);
      word("hw.driver_version", column::Device::driver);
      json_.end_array();
      put_span();
      json_.member("asDouble", static_cast<double>(device.busy) / run).end_object();
    }
    if (begun) end_metric(false);
    end_line();
    return {};
  }

  // Readings go out chunk by chunk, those of a track together.
  Status readings() {
    using R = column::Reading;
    Status status;
    for (const auto& chunk : trace::chunks<R::track, R::start, R::value>(trace_, status)) {
      std::map<int64_t, std::vector<size_t>> tracks;
      for (size_t i = 0; i < chunk.size(); ++i)
        if (options_.process == 0 || owner(chunk.track[i]) == options_.process) tracks[chunk.track[i]].push_back(i);
      for (const auto& [track, rows] : tracks) {
        std::vector<std::pair<int64_t, double>> values;
        for (const size_t i : rows) {
          const double value = chunk.value[i].value();
          if (std::isfinite(value))
            values.emplace_back(chunk.start[i], value);
          else
            ++not_finite_;
        }
        if (!values.empty()) put_readings(track, values);
      }
    }
    return status;
  }

  int64_t owner(int64_t track) const { return trace_.cell(Table::kTrack, track, column::Track::process); }

  void put_readings(int64_t track, const std::vector<std::pair<int64_t, double>>& values) {
    const int64_t counter = trace_.cell(Table::kTrack, track, column::Track::counter);
    const int64_t native = trace_.cell(Table::kTrack, track, column::Track::native);
    const std::string_view kind = trace_.text(Table::kTrack, track, column::Track::category);
    const std::string_view name = trace_.text(Table::kCounter, counter, column::Counter::name);
    const bool of_gpu = kind == "telemetry.gpu", of_process = kind == "telemetry.process";
    const std::string_view quantity = of_gpu ? event::gpu_quantity(name) : std::string_view();
    const std::string_view plain = quantity.empty() ? name : quantity;
    const ConventionalMetric* const known = of_gpu || of_process ? conventional_metric(of_gpu, plain) : nullptr;
    const bool own = known == nullptr;
    const Instrument instrument = own ? Instrument::kGauge : known->instrument;
    const bool sum = instrument != Instrument::kGauge;
    need_line([&] { of_process ? parts_.put_pid(json_, native) : parts_.put_process(json_, owner(track)); });
    begin_metric(own ? counter_metric(plain) : std::string(known->metric),
                 trace_.text(Table::kCounter, counter, column::Counter::text),
                 own ? ucum(trace_.text(Table::kCounter, counter, column::Counter::unit)) : std::string(known->unit),
                 sum ? JsonLiteral("sum") : JsonLiteral("gauge"));
    for (const auto& [time, value] : values) {
      json_.begin_object().name("attributes").begin_array();
      if (of_gpu) put_attribute(json_, "hw.id", fmt::format("GPU {}", native - 1));
      if (own) put_attribute(json_, "tacho.counter.name", name);
      if (!own && !known->key.empty()) put_attribute(json_, known->key, known->value);
      const int64_t device = trace_.cell(Table::kTrack, track, column::Track::device);
      if (!of_gpu && device != 0)
        put_attribute(json_, "hw.model", trace_.text(Table::kDevice, device, column::Device::name));
      json_.end_array();
      parts_.put_time(json_, "timeUnixNano", time);
      json_.member("asDouble", own ? value : value * known->scale).end_object();
    }
    end_metric(sum, instrument == Instrument::kCounter);
    end_line();
  }

  const Parts& parts_;
  const trace::Trace& trace_;
  const ExportOptions& options_;
  OutputFile& file_;
  JsonFileWriter json_;  // of the line
  bool in_line_ = false;
  int64_t endless_ = 0, unsized_ = 0, not_finite_ = 0;
};

}  // namespace

Status write_metrics(const Parts& parts, const ExportOptions& options, OutputFile& file) {
  return MetricsWriter(parts, options, file).run();
}

}  // namespace tacho::format::otlp
