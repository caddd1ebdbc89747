// Tables of an analysis as files hold them: --save-dfs, and all values of all runs in one table (text.h).
#include "metric/render/text/columns.h"
#include "metric/render/text/pc_sample_table.h"
#include "metric/render/text/text.h"

namespace tacho::metric {
namespace {

std::string file_name(std::string_view id, std::string_view title) {
  std::string name = fmt::format("{}_{}", id, title);
  for (char& c : name)
    if (c == ' ' || c == '/' || static_cast<unsigned char>(c) < 0x20) c = '_';
  return name + ".csv";
}

}  // namespace

std::vector<SavedTable> saved_tables(const Analysis& run, const TextOptions& options) {
  std::vector<SavedTable> saved;
  const std::string& unit = run.options().time_unit;
  const double divisor = time_unit_divisor(unit);
  const bool compat = run.options().compat;
  report::PrintedTable top;
  top.columns = {{"Kernel_Name"},
                 {"Count"},
                 {fmt::format("Sum({})", unit)},
                 {fmt::format("Mean({})", unit)},
                 {fmt::format("Median({})", unit)},
                 {"Pct"}};
  for (const KernelStatistics& kernel : run.kernels())
    top.rows.push_back({run.workload().kernels[kernel.kernel], static_cast<int64_t>(kernel.count), kernel.sum / divisor,
                        report::number_cell(kernel.mean / divisor), report::number_cell(kernel.median / divisor),
                        report::number_cell(kernel.share)});
  saved.push_back({file_name("0.1", "Top Kernels"), std::move(top)});
  report::PrintedTable list;
  list.columns = {{"Dispatch_ID"}, {"Kernel_Name"}, {"GPU_ID"}};
  for (const uint32_t row : run.listed_rows()) {
    const workload::Dispatch& dispatch = run.workload().dispatches[row];
    list.rows.push_back({dispatch.id, run.workload().kernels[dispatch.kernel], dispatch.gpu});
  }
  saved.push_back({file_name("0.2", "Dispatch List"), std::move(list)});
  if (run.shows(1, 1)) {
    report::PrintedTable info;
    info.columns = {{"Property"}, {"Info"}};
    for (const auto& [name, value] : run.workload().sysinfo.fields()) info.rows.push_back({name, value});
    saved.push_back({file_name("1.1", "System Info"), std::move(info)});
  }
  for (const ResultTable& table : run.all().tables) {
    if (table.rows.empty()) continue;
    report::PrintedTable out;
    out.columns.push_back({"Metric_ID"});
    for (size_t c = 0; c < table.table->columns.size(); ++c)
      if (column_chosen(options, table.table->columns[c], c))
        out.columns.push_back({std::string(table.table->columns[c].title)});
    if (options.description) out.columns.push_back({"Description"});
    for (const ResultRow& row : table.rows) {
      std::vector<report::Cell> values = row.cells;
      if (compat) {
        apply_display_faults(table, row, run.options(), values);
        for (report::Cell& cell : values)
          if (auto* value = std::get_if<double>(&cell)) *value = round_decimals(*value, options.decimals);
      }
      std::vector<report::Cell> cells = {row.id};
      for (size_t c = 0; c < values.size(); ++c)
        if (column_chosen(options, table.table->columns[c], c)) cells.push_back(std::move(values[c]));
      if (options.description) cells.emplace_back(std::string(row.metric->description));
      out.rows.push_back(std::move(cells));
    }
    saved.push_back({file_name(table.id(), table.table->title), std::move(out)});
  }
  report::PrintedTable samples = pc_sample_table(run);
  if (!samples.rows.empty()) saved.push_back({file_name(samples.id, samples.title), std::move(samples)});
  return saved;
}

report::PrintedTable tidy_table(std::span<const Analysis> runs) {
  report::PrintedTable out;
  out.columns = {{"run"}, {"id"}, {"slug"}, {"table"}, {"metric"}, {"unit"}, {"column"}, {"value"}};
  for (const Analysis& run : runs)
    for (const ResultTable& table : run.all().tables)
      for (const ResultRow& row : table.rows) {
        std::string unit;
        for (size_t c = 0; c < row.cells.size(); ++c)
          if (table.table->columns[c].role == ColumnRole::kUnit)
            if (const auto* text = std::get_if<std::string>(&row.cells[c])) unit = *text;
        for (size_t c = 0; c < row.cells.size(); ++c) {
          const metric::MetricColumn& column = table.table->columns[c];
          if (column.role != ColumnRole::kValue || row.metric->cells[c].formula.empty()) continue;
          std::string name(row.metric->name);
          if (row.channel >= 0) name = fmt::format("Channel {}", row.channel);
          out.rows.push_back({run.workload().path, row.id, std::string(row.metric->slug),
                              std::string(table.table->title), std::move(name), unit, std::string(column.title),
                              row.cells[c]});
        }
      }
  return out;
}

}  // namespace tacho::metric
