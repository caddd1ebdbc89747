// Writing the page's program.
#include "metric/render/page/page.h"

#include <algorithm>
#include <unordered_map>

#include "base/text/json_writer.h"

namespace tacho::metric {

namespace {

template <typename Values>
void write_list(JsonWriter& json, std::string_view key, const Values& values) {
  json.key(key).begin_array();
  for (const auto& value : values) json.value(value);
  json.end_array();
}

void write_numbers(JsonWriter& json, std::string_view key, std::span<const uint32_t> numbers) {
  json.key(key).begin_array();
  for (const uint32_t number : numbers) json.value(int64_t{number});
  json.end_array();
}

void write_graph(JsonWriter& json, const PageProgram& page) {
  const Program::Graph& graph = page.graph;
  write_list(json.newline(), "operations", Program::operation_names());
  json.newline().key("nodes").begin_array();
  for (const auto& operation : graph.operations)
    for (const uint32_t part : {uint32_t{operation.op}, operation.a, operation.b, operation.c})
      json.value(int64_t{part});
  json.end_array();
  write_numbers(json.newline(), "lists", graph.lists);
  write_list(json.newline(), "constants", graph.constants);
  json.newline().key("inputs").begin_array();
  for (const auto& input : graph.inputs) {
    json.newline().begin_array();
    for (const double value : input) json.value(value);
    json.end_array();
  }
  json.end_array().newline().key("values").begin_array();
  for (const auto& values : page.values) {
    json.newline().begin_array();
    for (const uint32_t value : values) json.value(int64_t{value});
    json.end_array();
  }
  json.end_array();
}

// What nobody can filter further: the values of all cells for all kernels together and for the longest ones.
void write_fixed(JsonWriter& json, const Analysis& run, const PageProgram& page) {
  constexpr size_t kMostKernels = 5;
  json.newline().key("fixed").begin_array();
  const auto write = [&](std::optional<uint32_t> kernel) {
    json.newline().begin_object().key("kernel");
    if (kernel)
      json.value(int64_t{*kernel});
    else
      json.null();
    json.key("values").begin_array();
    for (const std::string_view normalisation : kNormalisations) {
      const Evaluation evaluation = run.evaluate(kernel, normalisation);
      json.newline().begin_array();
      for (const PageProgram::Place& at : page.places) {
        const ResultRow& row = evaluation.tables[at.table].rows[at.row];
        if (at.column < row.cells.size())
          report::put_cell(json, row.cells[at.column]);
        else if (row.error)
          json.value(*row.error);
        else
          json.null();
      }
      json.end_array();
    }
    json.end_array().end_object();
  };
  write(std::nullopt);
  size_t written = 0;
  if (run.kernels().size() > 1)
    for (const KernelStatistics& kernel : run.kernels())
      if (kernel.selected && written++ < kMostKernels) write(kernel.kernel);
  const std::vector<FlopKind> kinds = run.flop_kinds();
  json.end_array().newline().key("points").begin_array();
  for (const IntensityPoint& point : run.kernel_points()) {
    json.begin_object().key("kernel").value(int64_t{point.kernel}).key("calls").value(point.calls);
    json.key("duration").value(point.total_duration).key("flops").value(point.performance);
    json.key("l1").value(point.l1).key("l2").value(point.l2).key("hbm").value(point.hbm);
    json.key("lds").value(point.lds).key("kinds").begin_array();
    for (size_t k = 0; k < kinds.size(); ++k) json.value(point.flops[k]);
    json.end_array().key("bandwidth").begin_array();
    for (const double bandwidth : point.bandwidth) json.value(bandwidth);
    json.end_array().end_object();
  }
  json.end_array().newline().key("statistics").begin_array();
  for (const KernelStatistics& kernel : run.kernels()) {
    json.begin_object().key("kernel").value(int64_t{kernel.kernel}).key("count").value(kernel.count);
    json.key("sum").value(kernel.sum).key("mean").value(kernel.mean).key("median").value(kernel.median);
    json.key("share").value(kernel.share).end_object();
  }
  json.end_array();
}

void write_dispatches(JsonWriter& json, const Analysis& run, const PageProgram& page) {
  const auto& dispatches = run.workload().dispatches;
  json.newline().key("dispatches").begin_object();
  json.key("id").begin_array();
  for (const auto& dispatch : dispatches) json.value(dispatch.id);
  json.end_array().key("kernel").begin_array();
  for (const auto& dispatch : dispatches) json.value(int64_t{dispatch.kernel});
  json.end_array().key("gpu").begin_array();
  for (const auto& dispatch : dispatches) json.value(dispatch.gpu);
  json.end_array();
  static constexpr std::array<std::string_view, 6> kNames = {"duration", "flops", "l1", "l2", "hbm", "lds"};
  write_numbers(json, "repeats", run.repeats());
  for (size_t i = 0; i < kNames.size(); ++i) json.key(kNames[i]).value(int64_t{page.dispatch_values[i]});
  json.key("kinds").begin_array();
  for (size_t i = kNames.size(); i < page.dispatch_values.size(); ++i) json.value(int64_t{page.dispatch_values[i]});
  json.end_array();
  json.end_object();
}

// `evaluates`: the page has the dispatches.
void write_tables(JsonWriter& json, const PageProgram& page, bool evaluates) {
  std::unordered_map<const Metric*, int64_t> known;
  std::vector<const Metric*> metrics;
  std::vector<const MetricTable*> of;
  for (const ResultTable& table : page.tables)
    for (const ResultRow& row : table.rows)
      if (known.try_emplace(row.metric, static_cast<int64_t>(metrics.size())).second) {
        metrics.push_back(row.metric);
        of.push_back(table.table);
      }
  json.newline().key("metrics").begin_array();
  for (size_t m = 0; m < metrics.size(); ++m) {
    const Metric& metric = *metrics[m];
    json.newline().begin_object().key("slug").value(metric.slug).key("name").value(metric.name);
    json.key("unit").value(metric.unit).key("level").value(metric.coll_level);
    json.key("description").value(metric.description).key("advice").value(metric.advice);
    std::string_view formula = metric.value;
    for (size_t c = 0; formula.empty() && c < metric.cells.size() && c < of[m]->columns.size(); ++c)
      if (of[m]->columns[c].role == ColumnRole::kValue) formula = metric.cells[c].formula;
    json.key("formula").value(formula).end_object();
  }
  static constexpr std::array<std::string_view, 4> kRoles = {"name", "unit", "text", "value"};
  static constexpr std::array<std::string_view, 5> kStyles = {"table", "bar", "box", "multibar", "memory_chart"};
  json.end_array().newline().key("tables").begin_array();
  for (const ResultTable& table : page.tables) {
    json.newline().begin_object().key("id").value(table.id()).key("block").value(table.block->number);
    json.key("slug").value(table.table->slug).key("title").value(table.table->title);
    json.key("style").value(kStyles[static_cast<size_t>(table.table->style)]);
    json.key("repeats").value(!table.table->repeat.empty());
    json.key("comparable").value(table.table->comparable).key("columns").begin_array();
    for (const MetricColumn& column : table.table->columns)
      json.begin_object()
          .key("key")
          .value(column.key)
          .key("title")
          .value(column.title)
          .key("role")
          .value(kRoles[static_cast<size_t>(column.role)])
          .end_object();
    json.end_array().key("rows").begin_array();
    for (const ResultRow& row : table.rows) {
      json.newline().begin_object().key("id").value(row.id).key("metric").value(known[row.metric]);
      if (row.channel >= 0) json.key("channel").value(row.channel);
      if (row.extrapolated) json.key("extrapolated").value(true);
      json.key("cells").begin_array();
      for (const report::Cell& cell : row.cells) report::put_cell(json, cell);
      json.end_array().end_object();
    }
    json.end_array();
    if (evaluates && !table.left_out.empty()) {
      json.key("left_out").begin_array();
      for (const LeftOut& each : table.left_out) {
        json.newline().begin_object();
        write_list(json, "ids", each.ids);
        write_list(json, "metrics", each.names);
        write_list(json, "counters", each.counters);
        write_numbers(json, "dispatches", each.dispatches);
        json.end_object();
      }
      json.end_array();
    }
    json.end_object();
  }
  json.end_array().newline().key("blocks").begin_array();
  const Block* last = nullptr;
  for (const ResultTable& table : page.tables) {
    if (table.block == last) continue;
    last = table.block;
    json.newline().begin_object().key("number").value(last->number).key("title").value(last->title);
    json.key("slug").value(last->slug).key("description").value(last->description).end_object();
  }
  json.end_array();
}

}  // namespace

void write_page(JsonWriter& json, const Analysis& run) {
  const PageProgram page = run.page_program();
  const AnalysisOptions& given = run.options();
  json.begin_object();
  write_list(json, "normalisations", kNormalisations);
  write_list(json.newline(), "kernel_names", run.workload().kernels);
  json.newline().key("chosen").begin_object().key("kernels");
  if (given.kernels.empty()) {
    json.null();
  } else {
    json.begin_array();
    for (const KernelStatistics& kernel : run.kernels())
      if (kernel.selected) json.value(int64_t{kernel.kernel});
    json.end_array();
  }
  write_list(json, "dispatches", given.dispatches);
  write_list(json, "gpus", given.gpus);
  json.end_object();
  json.newline().key("flop_kinds").begin_array();
  for (const FlopKind& kind : run.flop_kinds()) json.value(kind.type);
  json.end_array();
  const bool evaluates = page.graph.inputs.size() * run.workload().dispatches.size() <= kMostPageValues;
  write_tables(json, page, evaluates);
  json.newline().key("places").begin_array();
  for (const PageProgram::Place& at : page.places) json.value(at.table).value(at.row).value(at.column);
  json.end_array();
  if (evaluates) {
    write_graph(json, page);
    write_dispatches(json, run, page);
  } else {
    write_fixed(json, run, page);
  }
  json.end_object();
}

}  // namespace tacho::metric
