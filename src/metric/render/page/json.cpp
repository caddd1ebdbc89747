// tacho-analysis/1.
#include "metric/render/page/json.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text/json_writer.h"
#include "metric/analysis/roofline_points.h"
#include "metric/render/page/page.h"
#include "metric/render/text/pc_sample_table.h"
#include "report/table.h"

namespace tacho::metric {

namespace {

std::string_view scheme_name(IdScheme scheme) {
  return scheme == IdScheme::kV33 ? "3.3" : "seed";
}

void write_table_head(JsonWriter& json, std::string_view id, std::string_view block, std::string_view title,
                      std::span<const std::string> columns) {
  json.newline().begin_object();
  json.key("id").value(id).key("block").value(block).key("title").value(title);
  json.key("columns").begin_array();
  for (const std::string& column : columns) json.value(column);
  json.end_array().key("rows").begin_array();
}

void write_top_kernels(JsonWriter& json, const Analysis& run) {
  const std::string& unit = run.options().time_unit;
  const double divisor = time_unit_divisor(unit);
  write_table_head(json, "0.1", "Top Stats", "Top Kernels",
                   std::vector<std::string>{"Kernel_Name", "Count", "Sum(" + unit + ")", "Mean(" + unit + ")",
                                            "Median(" + unit + ")", "Pct", "S"});
  int64_t id = 0;
  for (const KernelStatistics& kernel : run.kernels()) {
    json.newline()
        .begin_object()
        .key("id")
        .value(fmt::format("0.1.{}", id))
        .key("kernel_id")
        .value(id)
        .key("cells")
        .begin_array();
    json.value(run.workload().kernels[kernel.kernel])
        .value(kernel.count)
        .value(kernel.sum / divisor)
        .value(kernel.mean / divisor);
    json.value(kernel.median / divisor)
        .value(kernel.share)
        .value(run.options().kernels.empty() || !kernel.selected ? "" : "*");
    json.end_array().end_object();
    ++id;
  }
  json.end_array().end_object();
}

void write_dispatches(JsonWriter& json, const Analysis& run) {
  const std::string& unit = run.options().time_unit;
  const double divisor = time_unit_divisor(unit);
  write_table_head(json, "0.2", "Top Stats", "Dispatch List",
                   std::vector<std::string>{"Dispatch_ID", "Kernel_Name", "GPU_ID", "Duration(" + unit + ")"});
  const workload::CounterTable& counters = run.workload().passes.front().counters;
  const auto start = counters.column("Start_Timestamp");
  const auto end = counters.column("End_Timestamp");
  for (const uint32_t row : run.listed_rows()) {
    const workload::Dispatch& dispatch = run.workload().dispatches[row];
    json.newline().begin_object().key("cells").begin_array();
    json.value(dispatch.id).value(run.workload().kernels[dispatch.kernel]).value(dispatch.gpu);
    if (start.empty() || end.empty())
      json.null();
    else
      json.value((end[row] - start[row]) / divisor);
    json.end_array().end_object();
  }
  json.end_array().end_object();
}

void write_system(JsonWriter& json, const Analysis& run) {
  write_table_head(json, "1.1", "System Info", "System Info", std::vector<std::string>{"Property", "Value"});
  for (const auto& [name, value] : run.workload().sysinfo.fields())
    json.newline().begin_object().key("cells").begin_array().value(name).value(value).end_array().end_object();
  json.end_array().end_object();
}

void write_pc_samples(JsonWriter& json, const Analysis& run) {
  const report::PrintedTable table = pc_sample_table(run);
  if (table.rows.empty()) return;
  std::vector<std::string> columns;
  for (const report::PrintedColumn& column : table.columns) columns.push_back(column.title);
  write_table_head(json, table.id, table.title, table.title, columns);
  for (const std::vector<report::Cell>& row : table.rows) {
    json.newline().begin_object().key("cells").begin_array();
    for (const report::Cell& cell : row) report::put_cell(json, cell);
    json.end_array().end_object();
  }
  json.end_array().end_object();
}

// Source text is for the page alone: the files have it as it is.
void write_pc_sources(JsonWriter& json, const workload::PcSamples& samples) {
  json.newline().key("pc_sources").begin_array();
  for (const workload::SourceText& source : samples.sources) {
    json.newline().begin_object().key("file").value(source.file).key("lines").begin_array();
    for (const auto& [line, text] : source.lines) json.begin_array().value(line).value(text).end_array();
    json.end_array().end_object();
  }
  json.end_array();
}

void write_strings(JsonWriter& json, std::string_view key, const std::vector<std::string>& texts) {
  json.key(key).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

void write_left_out(JsonWriter& json, const ResultTable& table, const Analysis& run, std::span<const uint32_t> rows) {
  json.newline().key("left_out").begin_array();
  for (const LeftOut& each : table.left_out) {
    json.newline().begin_object();
    write_strings(json, "ids", each.ids);
    write_strings(json, "metrics", each.names);
    write_strings(json, "counters", each.counters);
    json.key("dispatches").value(each.dispatches.size()).key("of").value(rows.size()).key("kernels").begin_array();
    for (const LeftOutKernel& kernel : kernels_left_out(each, run.workload(), rows))
      json.begin_object()
          .key("kernel")
          .value(run.workload().kernels[kernel.kernel])
          .key("dispatches")
          .value(kernel.dispatches)
          .key("of")
          .value(kernel.of)
          .end_object();
    json.end_array().end_object();
  }
  json.end_array();
}

// `rows`: the dispatches that were evaluated.
void write_tables(JsonWriter& json, const Evaluation& evaluation, const Analysis& run, std::span<const uint32_t> rows) {
  const std::string_view normalisation = run.options().normalisation;
  for (const ResultTable& table : evaluation.tables) {
    if (table.rows.empty()) continue;
    std::vector<std::string> columns;
    for (const MetricColumn& column : table.table->columns) columns.emplace_back(column.title);
    write_table_head(json, table.id(), table.block->title, table.title(normalisation), columns);
    for (const ResultRow& row : table.rows) {
      json.newline()
          .begin_object()
          .key("id")
          .value(row.id)
          .key("slug")
          .value(row.metric->slug)
          .key("cells")
          .begin_array();
      for (const report::Cell& cell : row.cells) report::put_cell(json, cell);
      json.end_array();
      if (row.error) json.key("error").value(*row.error);
      if (row.extrapolated) json.key("extrapolated").value(true);
      json.end_object();
    }
    json.end_array();
    if (!table.left_out.empty()) write_left_out(json, table, run, rows);
    json.end_object();
  }
}

void write_points(JsonWriter& json, const Analysis& run, std::string_view name,
                  const std::vector<IntensityPoint>& points) {
  constexpr size_t kTop = 10;
  const size_t count = std::min(points.size(), kTop);
  json.key(name).begin_object();
  for (const auto& [level, member] :
       {std::pair{"ai_l1", &IntensityPoint::l1}, {"ai_l2", &IntensityPoint::l2}, {"ai_hbm", &IntensityPoint::hbm}}) {
    json.key(level).begin_array().begin_array();
    for (size_t i = 0; i < count; ++i) json.value(points[i].*member);
    json.end_array().begin_array();
    for (size_t i = 0; i < count; ++i) json.value(points[i].performance);
    json.end_array().end_array();
  }
  json.key("kernelNames").begin_array();
  for (size_t i = 0; i < count; ++i) json.value(run.workload().kernels[points[i].kernel]);
  json.end_array().end_object();
}

// Every point with what limits it under the roofs of every data type.
void write_bounds(JsonWriter& json, const Analysis& run) {
  static const workload::RooflineCeilings kNone;
  const workload::Workload& workload = run.workload();
  const workload::RooflineCeilings& ceilings = workload.ceilings.empty() ? kNone : workload.ceilings.front();
  std::vector<std::pair<std::string_view, std::vector<Roof>>> types;
  for (const std::string_view type : roofline_data_types(ceilings)) types.emplace_back(type, roofs(ceilings, type));
  const std::vector<FlopKind> kinds = run.flop_kinds();
  double total = 0;
  for (const IntensityPoint& point : run.kernel_points()) total += point.total_duration;
  const auto write = [&](std::string_view name, const std::vector<IntensityPoint>& points, bool dispatches) {
    constexpr size_t kMost = 1000;
    json.newline().key(name).begin_array();
    for (size_t i = 0; i < std::min(points.size(), kMost); ++i) {
      const IntensityPoint& point = points[i];
      json.newline().begin_object().key("kernel").value(workload.kernels[point.kernel]);
      if (dispatches) json.key("dispatch").value(workload.dispatches[point.row].id);
      json.key("calls").value(point.calls).key("duration").value(point.total_duration);
      json.key("share").value(point.total_duration / total * 100).key("performance").value(point.performance);
      json.key("type").value(run.data_type(point));
      json.key("intensity").begin_object();
      for (const std::string_view level : kRooflineLevels) json.key(level).value(intensity_at(point, level));
      json.end_object().key("flops").begin_object();
      for (size_t k = 0; k < kinds.size(); ++k)
        if (!(point.flops[k] == 0))
          json.key(fmt::format("{}{}", kinds[k].matrix ? "matrix " : "", kinds[k].type)).value(point.flops[k]);
      json.end_object().key("bytes").begin_object();
      for (size_t k = 0; k < kRooflineLevels.size(); ++k) json.key(kRooflineLevels[k]).value(point.bytes[k]);
      json.end_object().key("bandwidth").begin_object();
      for (size_t k = 0; k < kRooflineLevels.size(); ++k) json.key(kRooflineLevels[k]).value(point.bandwidth[k]);
      json.end_object().key("bounds").begin_object();
      for (const auto& [type, lines] : types) {
        const Bound bound = bound_of(point, lines);
        if (bound.roof == nullptr) continue;
        json.key(type).begin_object().key("roof").value(bound.roof->name).key("attainable").value(bound.attainable);
        if (bound.bandwidth) json.key("unit").value("GB/s");
        json.key("reached").value(bound.reached).key("headroom").value(bound.headroom).end_object();
      }
      json.end_object().end_object();
    }
    json.end_array();
  };
  json.newline().key("roofline").begin_object().key("definition").value(run.intensity_definition());
  json.key("device").value(ceilings.text("DeviceName")).key("driver").value(ceilings.text("Driver"));
  json.key("measured").value(ceilings.text("Measured")).key("backend").value(ceilings.text("Backend"));
  if (const auto& names = run.catalog().facts.roofline.names; !names.empty()) {
    json.key("names").begin_object();
    for (const auto& [roof, name] : names) json.key(roof).value(name);
    json.end_object();
  }
  json.key("data_types").begin_array();
  for (const std::string& type : run.roofline_types()) json.value(type);
  json.end_array();
  write("kernels", run.kernel_points(), false);
  write("dispatches", run.dispatch_points(), true);
  json.end_object();
}

void write_roofline(JsonWriter& json, const Analysis& run) {
  if (!run.kernel_points().empty()) write_bounds(json, run);
  json.newline().key("roofline_ai").begin_object();
  write_points(json, run, "kernels", run.kernel_points());
  write_points(json, run, "dispatches", run.dispatch_points());
  json.end_object();
  if (!run.kernel_points().empty()) write_strings(json, "roofline_uncounted", run.uncounted_flops());
  if (run.workload().ceilings.empty()) return;
  const workload::RooflineCeilings& ceilings = run.workload().ceilings.front();
  json.newline().key("roofline_ceilings_dev0").begin_object();
  for (const std::string_view type : roofline_data_types(ceilings)) {
    json.key(type).begin_object();
    for (const Roof& roof : roofs(ceilings, type)) {
      json.key(roof.name).begin_array().begin_array().value(roof.x0).value(roof.x1).end_array();
      json.begin_array().value(roof.y0).value(roof.y1).end_array().value(roof.peak).end_array();
    }
    json.end_object();
  }
  json.end_object();
}

void write_findings(JsonWriter& json, const Analysis& run) {
  json.newline().key("findings").begin_array();
  for (const Finding& finding : run.findings()) {
    json.newline().begin_object();
    json.key("kernel").value(run.workload().kernels[finding.kernel]).key("share").value(finding.share);
    json.key("slug").value(finding.slug).key("title").value(finding.title).key("severity").value(finding.severity);
    json.key("possible").value(finding.possible);
    if (!finding.doubt.empty()) json.key("doubt").value(finding.doubt);
    json.key("saves").begin_object().key("low").value(finding.low).key("high").value(finding.high);
    json.key("of").value(finding.of.empty() ? "time" : finding.of).key("model").value(finding.model).end_object();
    json.key("meaning").value(finding.meaning).key("advice").begin_array();
    for (const std::string& advice : finding.advice) json.value(advice);
    json.end_array().key("evidence").begin_array();
    for (const Evidence& evidence : finding.evidence) {
      json.begin_object()
          .key("id")
          .value(evidence.id)
          .key("metric")
          .value(evidence.name)
          .key("term")
          .value(evidence.term);
      json.key("value").value(evidence.value).key("unit").value(evidence.unit);
      json.key("low").value(evidence.low).key("high").value(evidence.high);
      if (!evidence.comparison.empty())
        json.key("comparison").value(evidence.comparison).key("threshold").value(evidence.threshold);
      if (evidence.peak) json.key("peak").value(*evidence.peak);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
  const Diagnosis& diagnosis = run.diagnosis();
  json.newline().key("implausible").begin_array();
  for (const Implausible& problem : diagnosis.implausible) {
    json.newline().begin_object().key("check").value(problem.slug).key("text").value(problem.text);
    write_strings(json, "withheld", problem.withheld);
    json.end_object();
  }
  json.end_array().newline().key("not_judged").begin_array();
  for (const NotJudged& entry : diagnosis.not_judged) {
    json.newline().begin_object().key("slug").value(entry.slug).key("title").value(entry.title);
    write_strings(json, "missing", entry.missing);
    write_strings(json, "collect", entry.collect);
    json.end_object();
  }
  json.end_array().newline().key("rules").value(diagnosis.rules);
  json.key("shares_of").value(diagnosis.weight_words.empty() ? "time" : diagnosis.weight_words);
}

void write_not_computable(JsonWriter& json, const Evaluation& evaluation) {
  json.newline().key("not_computable").begin_array();
  for (const NotComputable& entry : evaluation.not_computable) {
    json.newline().begin_object().key("id").value(entry.id).key("slug").value(entry.metric->slug);
    json.key("metric").value(entry.metric->name).key("missing").begin_array();
    for (const std::string& name : entry.missing) json.value(name);
    json.end_array();
    if (!entry.apart.empty()) write_strings(json, "apart", entry.apart);
    json.key("reason").value(!entry.on_this_gpu       ? "not on this GPU"
                             : !entry.missing.empty() ? "missing"
                             : !entry.apart.empty()   ? "never together"
                                                      : "0 / 0");
    json.end_object();
  }
  json.end_array();
}

void write_workload(JsonWriter& json, const Analysis& run) {
  const workload::SysInfo& info = run.workload().sysinfo;
  json.newline().begin_object().key("path").value(run.workload().path);
  json.key("arch").value(run.catalog().architecture).key("gpu_model").value(info.get("gpu_model"));
  json.key("workload_name").value(info.get("workload_name")).key("command").value(info.get("command"));
  json.key("dispatches").value(run.rows().size()).key("kernels").value(run.kernels().size());
  write_strings(json, "warnings", run.warnings());
  json.end_object();
}

void write_run(JsonWriter& json, const Analysis& run, std::span<const Analysis> all, const JsonOptions& options) {
  const AnalysisOptions& given = run.options();
  json.begin_object().key("schema").value("tacho-analysis/1");
  json.newline().key("workloads").begin_array();
  for (const Analysis& each : all) write_workload(json, each);
  json.end_array();
  json.newline().key("normal_unit").value(given.normalisation).key("time_unit").value(given.time_unit);
  json.key("ids").value(scheme_name(given.ids)).key("ratio").value(given.sum_ratios ? "sum" : "avg");
  json.key("compat");
  if (given.compat)
    json.value("3.3");
  else
    json.null();
  json.newline().key("filters").begin_object();
  write_strings(json, "blocks", given.blocks);
  write_strings(json, "kernels", given.kernels);
  write_strings(json, "dispatches", given.dispatches);
  write_strings(json, "gpus", given.gpus);
  json.end_object();
  write_strings(json.newline(), "notes", run.id_notes());
  json.newline().key("tables").begin_array();
  write_top_kernels(json, run);
  if (!options.page) write_dispatches(json, run);  // the page has them by themselves
  if (run.shows(1, 1)) write_system(json, run);
  write_tables(json, run.all(), run, run.rows());
  write_pc_samples(json, run);
  json.end_array();
  write_roofline(json, run);
  write_findings(json, run);
  write_not_computable(json, run.all());
  if (options.per_kernel) {
    json.newline().key("kernels").begin_array();
    int64_t id = 0;
    for (const KernelStatistics& kernel : run.kernels()) {
      const int64_t here = id++;
      if (!kernel.selected) continue;
      const Evaluation evaluation = run.evaluate(kernel.kernel);
      json.newline().begin_object().key("id").value(here).key("name").value(run.workload().kernels[kernel.kernel]);
      json.key("count").value(kernel.count).key("share").value(kernel.share).key("tables").begin_array();
      std::vector<uint32_t> rows = run.rows();
      std::erase_if(rows, [&](uint32_t row) { return run.workload().dispatches[row].kernel != kernel.kernel; });
      write_tables(json, evaluation, run, rows);
      json.end_array().end_object();
    }
    json.end_array();
  }
  if (options.page && run.pc_samples()) write_pc_sources(json, *run.pc_samples());
  if (options.page && (all.size() == 1)) write_page(json.newline().key("page"), run);
}

}  // namespace

std::string to_json(std::span<const Analysis> runs, const JsonOptions& options) {
  std::string out;
  JsonWriter json(out);
  write_run(json, runs.front(), runs, options);
  if (runs.size() > 1) {
    json.newline().key("runs").begin_array();
    for (const Analysis& run : runs) {
      write_run(json.newline(), run, {&run, 1}, options);
      json.end_object();
    }
    json.end_array();
    const ComparedRuns comparison = compare(runs);
    json.newline().key("comparison").begin_array();
    for (const ComparedTable& table : comparison.tables)
      for (const ComparedRow& row : table.rows) {
        if (row.columns.empty()) continue;
        json.newline().begin_object().key("id").value(row.base->id).key("slug").value(row.base->metric->slug);
        json.key("metric")
            .value(row.base->metric->name)
            .key("column")
            .value(table.base->table->columns[table.value_columns.front()].title);
        json.key("values").begin_array();
        for (const auto& value : row.columns.front().values) value ? json.value(*value) : json.null();
        json.end_array().key("percent").begin_array();
        for (const auto& value : row.columns.front().percent) value ? json.value(*value) : json.null();
        json.end_array().end_object();
      }
    json.end_array();
  }
  json.end_object();
  out += '\n';
  return out;
}

}  // namespace tacho::metric
