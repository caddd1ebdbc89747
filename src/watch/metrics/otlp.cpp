// Writing the message (otlp.h). Names of instruments are those of `tacho export -f otlp` where it has the same.
#include "watch/metrics/otlp.h"

#include <utility>

#include "base/format.h"
#include "base/version.h"
#include "format/otlp/names.h"
#include "report/value.h"
#include "watch/metrics/telemetry.h"

namespace tacho::watch {
namespace {

using format::otlp::Instrument;
using report::JsonValue;

constexpr int kCumulative = 2;  // AGGREGATION_TEMPORALITY_CUMULATIVE

// 64-bit numbers are texts in OTLP's JSON.
JsonValue long_text(uint64_t value) {
  return JsonValue(fmt::format("{}", value));
}

JsonValue attribute(std::string_view key, std::string_view value) {
  return JsonValue::object(
      {{"key", JsonValue(key)}, {"value", JsonValue::object({{"stringValue", JsonValue(value)}})}});
}
JsonValue attribute(std::string_view key, uint64_t value) {
  return JsonValue::object({{"key", JsonValue(key)}, {"value", JsonValue::object({{"intValue", long_text(value)}})}});
}

class Metrics {
 public:
  Metrics(int64_t start, int64_t now)
      : start_(long_text(static_cast<uint64_t>(start))), now_(long_text(static_cast<uint64_t>(now))) {}

  // A point of a sum or gauge begins with its attributes.
  JsonValue point(JsonValue attributes) const {
    return JsonValue::object(
        {{"attributes", std::move(attributes)}, {"startTimeUnixNano", start_}, {"timeUnixNano", now_}});
  }
  JsonValue point(JsonValue attributes, uint64_t value) const {
    JsonValue made = point(std::move(attributes));
    made.set("asInt", long_text(value));
    return made;
  }
  JsonValue point(JsonValue attributes, double value) const {
    JsonValue made = point(std::move(attributes));
    made.set("asDouble", JsonValue(value));
    return made;
  }
  void add(std::string_view name, std::string_view text, std::string_view unit, Instrument instrument,
           JsonValue points) {
    JsonValue data = JsonValue::object({{"dataPoints", std::move(points)}});
    if (instrument != Instrument::kGauge) data.set("aggregationTemporality", JsonValue(kCumulative));
    if (instrument == Instrument::kCounter) data.set("isMonotonic", JsonValue(true));
    put(name, text, unit, instrument == Instrument::kGauge ? "gauge" : "sum", std::move(data));
  }
  void count(std::string_view name, std::string_view text, std::string_view unit, std::string_view key,
             const ByLabel& all, uint64_t LabelSums::*member) {
    if (all.empty()) return;
    JsonValue points = JsonValue::list();
    for (const auto& [label, sums] : all) points.add(point(JsonValue::list({attribute(key, label)}), sums.*member));
    add(name, text, unit, Instrument::kCounter, std::move(points));
  }
  void durations(std::string_view name, std::string_view text, std::string_view key, const ByLabel& all) {
    if (all.empty()) return;
    JsonValue points = JsonValue::list();
    for (const auto& [label, sums] : all) points.add(histogram(JsonValue::list({attribute(key, label)}), sums));
    put(name, text, "s", "histogram",
        JsonValue::object({{"dataPoints", std::move(points)}, {"aggregationTemporality", JsonValue(kCumulative)}}));
  }
  bool empty() const { return empty_; }
  JsonValue take(JsonValue attributes) {
    const JsonValue scope = JsonValue::object({{"name", JsonValue("tacho")}, {"version", JsonValue(kProgramVersion)}});
    JsonValue scopes = JsonValue::list({JsonValue::object({{"scope", scope}, {"metrics", std::move(metrics_)}})});
    return JsonValue::object({{"resource", JsonValue::object({{"attributes", std::move(attributes)}})},
                              {"scopeMetrics", std::move(scopes)}});
  }

 private:
  JsonValue histogram(JsonValue attributes, const LabelSums& sums) const {
    JsonValue counts = JsonValue::list(), bounds = JsonValue::list();
    uint64_t all = 0;
    uint32_t at = 0;
    const auto bucket = [&](uint64_t end) {
      uint64_t sum = 0;
      for (; at < event::kWatchBuckets && event::watch_bucket_end(at) <= end; ++at) sum += sums.buckets[at];
      all += sum;
      counts.add(long_text(sum));
    };
    for (uint32_t octave = kFirstBoundOctave; octave <= kLastBoundOctave; ++octave) {
      bucket(uint64_t{1} << octave);
      bounds.add(JsonValue(static_cast<double>(uint64_t{1} << octave) * 1e-9));
    }
    bucket(UINT64_MAX);
    JsonValue made = point(std::move(attributes));
    made.set("count", long_text(all));
    made.set("sum", JsonValue(sums.seconds));
    made.set("bucketCounts", std::move(counts));
    made.set("explicitBounds", std::move(bounds));
    return made;
  }
  void put(std::string_view name, std::string_view text, std::string_view unit, std::string_view kind, JsonValue data) {
    empty_ = false;
    metrics_.add(JsonValue::object({{"name", JsonValue(name)},
                                    {"description", JsonValue(text)},
                                    {"unit", JsonValue(unit)},
                                    {kind, std::move(data)}}));
  }

  JsonValue start_, now_;
  JsonValue metrics_ = JsonValue::list();
  bool empty_ = true;
};

void put_work(Metrics& to, const AllLabels& labels) {
  const auto count = &LabelSums::count, bytes = &LabelSums::bytes;
  constexpr std::string_view kKernel = "tacho.kernel.name", kGraph = "tacho.graph.name",
                             kDirection = "tacho.copy.direction", kFill = "tacho.fill.kind",
                             kWait = "code.function.name", kMemory = "tacho.allocation.kind";
  to.count("tacho.gpu.kernel.launches", "launches of kernels, all of them", "{launch}", kKernel, labels.kernels, count);
  to.durations("tacho.gpu.kernel.duration", "durations of kernels, estimated from one of N launches", kKernel,
               labels.kernels);
  to.count("tacho.gpu.graph.launches", "launches of graphs, all of them", "{launch}", kGraph, labels.graphs, count);
  to.durations("tacho.gpu.graph.duration", "durations of graphs, estimated from one of N launches", kGraph,
               labels.graphs);
  to.count("tacho.gpu.copy.count", "memory copies, all of them", "{copy}", kDirection, labels.copies, count);
  to.count("tacho.gpu.copy.io", "bytes of memory copies", "By", kDirection, labels.copies, bytes);
  to.durations("tacho.gpu.copy.duration", "durations of memory copies, estimated from one of N", kDirection,
               labels.copies);
  to.count("tacho.gpu.fill.count", "memory fills, all of them", "{fill}", kFill, labels.fills, count);
  to.count("tacho.gpu.fill.io", "bytes of memory fills", "By", kFill, labels.fills, bytes);
  to.count("tacho.sync.count", "calls in which the program waited for its device", "{call}", kWait, labels.waits,
           count);
  to.durations("tacho.sync.duration", "host time of these calls", kWait, labels.waits);
  to.count("tacho.allocation.count", "allocations of device memory", "{allocation}", kMemory, labels.allocations,
           count);
  to.count("tacho.allocation.io", "bytes of these allocations, freed or not", "By", kMemory, labels.allocations, bytes);
}

void put_watch(Metrics& to, const WatchSnapshot& snapshot, const std::optional<WatchCost>& cost) {
  const auto single = [&](std::string_view name, std::string_view text, std::string_view unit, Instrument instrument,
                          auto value) {
    to.add(name, text, unit, instrument, JsonValue::list({to.point(JsonValue::list(), value)}));
  };
  single("tacho.watch.failed", "operations that the runtime refused, in no other count", "{operation}",
         Instrument::kCounter, snapshot.failed);
  single("tacho.watch.uncounted", "operations that found no row, in no other count", "{operation}",
         Instrument::kCounter, snapshot.lost_rows);
  single("tacho.watch.lost_durations", "operations that were to be timed and were not", "{operation}",
         Instrument::kCounter, snapshot.lost_times);
  if (snapshot.own_ns)
    single("tacho.watch.host.time", "host time that watching took in the programs", "s", Instrument::kCounter,
           *snapshot.own_ns * 1e-9);
  if (!cost) return;
  single("tacho.watch.cost", "share of its pace that timing costs the program", "1", Instrument::kGauge, cost->share);
  single("tacho.watch.cost.high", "upper end of the 95 % interval of tacho.watch.cost", "1", Instrument::kGauge,
         cost->high);
}

void put_gpus(Metrics& to, const std::vector<vendor::GpuReading>& gpus) {
  // Points of one name stand together.
  std::map<std::string, std::pair<const vendor::GpuReading*, JsonValue>> named;
  for (const vendor::GpuReading& reading : gpus) {
    const auto* const known = format::otlp::conventional_metric(true, quantity_of(reading));
    JsonValue attributes = JsonValue::list({attribute("hw.id", fmt::format("GPU {}", reading.gpu))});
    if (known == nullptr) attributes.add(attribute("tacho.counter.name", reading.name));
    if (known != nullptr && !known->key.empty()) attributes.add(attribute(known->key, known->value));
    const std::string name =
        known != nullptr ? std::string(known->metric) : format::otlp::counter_metric(quantity_of(reading));
    auto& [one, points] = named.try_emplace(name, &reading, JsonValue::list()).first->second;
    points.add(to.point(std::move(attributes), known != nullptr ? reading.value * known->scale : reading.value));
  }
  for (auto& [name, found] : named) {
    const vendor::GpuReading& reading = *found.first;
    const auto* const known = format::otlp::conventional_metric(true, quantity_of(reading));
    to.add(name, reading.text, known != nullptr ? std::string(known->unit) : format::otlp::ucum(reading.unit),
           known != nullptr ? known->instrument : Instrument::kGauge, std::move(found.second));
  }
}

void put_process(Metrics& to, const ProcessUse& use) {
  const auto put = [&](std::string_view counter, JsonValue points) {
    const auto* const known = format::otlp::conventional_metric(false, counter);
    to.add(known->metric, "", known->unit, known->instrument, std::move(points));
  };
  put("CPU User Time", JsonValue::list({to.point(JsonValue::list({attribute("cpu.mode", "user")}), use.user_s),
                                        to.point(JsonValue::list({attribute("cpu.mode", "system")}), use.system_s)}));
  put("CPU Memory Usage", JsonValue::list({to.point(JsonValue::list(), use.resident_bytes)}));
  put("Threads", JsonValue::list({to.point(JsonValue::list(), use.threads)}));
}

}  // namespace

std::string otlp_message(const OtlpSource& source, int64_t now_unix, const WatchSnapshot& snapshot,
                         const AllLabels& labels, const std::optional<WatchCost>& cost,
                         const std::vector<vendor::GpuReading>& gpus) {
  const auto resource = [&] {
    JsonValue attributes =
        JsonValue::list({attribute("service.name", source.service.empty() ? "unknown_service" : source.service)});
    if (!source.host.empty()) attributes.add(attribute("host.name", source.host));
    return attributes;
  };
  JsonValue resources = JsonValue::list();
  Metrics work(source.start_unix, now_unix);
  put_work(work, labels);
  put_watch(work, snapshot, cost);
  put_gpus(work, gpus);
  resources.add(work.take(resource()));
  for (const WatchedProcess& process : snapshot.processes) {
    if (!process.uses_devices || process.ended) continue;
    const auto use = process_use(process.pid);
    if (!use) continue;
    Metrics of_process(source.start_unix, now_unix);
    put_process(of_process, *use);
    JsonValue attributes = resource();
    attributes.add(attribute("process.pid", uint64_t{process.pid}));
    attributes.add(attribute("process.executable.name", process.name));
    resources.add(of_process.take(std::move(attributes)));
  }
  return JsonValue::object({{"resourceMetrics", std::move(resources)}}).text();
}

}  // namespace tacho::watch
