// Rendering of analyses as text.
#include "metric/render/text/text.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text/how_many.h"
#include "metric/analysis/compare.h"
#include "metric/analysis/roofline_points.h"
#include "metric/render/run_names.h"
#include "metric/render/text/columns.h"
#include "metric/render/text/findings_text.h"
#include "metric/render/text/memory_chart.h"
#include "metric/render/text/pc_sample_table.h"
#include "metric/render/text/roofline_plot.h"
#include "metric/render/text/screen.h"
#include "report/answer.h"
#include "report/shorten.h"

namespace tacho::metric {

namespace {

using report::Paint;

class Renderer {
 public:
  Renderer(std::span<const Analysis> runs, const TextOptions& options)
      : runs_(runs), run_(runs.front()), options_(options), compat_(run_.options().compat) {
    style_.border = options.boxed ? report::Border::kBox : report::Border::kPlain;
    style_.decimals = options.decimals;
    style_.width = options.boxed ? 0 : options.screen.width;
    style_.colour = options.screen.colour;
    style_.indent = options.boxed ? 0 : 2;
    if (options.boxed) style_.missing = compat_ ? "" : "N/A";
    std::vector<std::string> paths;
    for (const Analysis& run : runs) paths.push_back(run.workload().path);
    names_ = run_names(paths, 20);
  }

  std::string run() {
    for (const Analysis& each : runs_) head(each);
    if (!options_.boxed && run_.options().blocks.empty() && !options_.statistics_only)
      for (size_t r = 0; r < runs_.size(); ++r)
        out_ += implausible_text(runs_[r].diagnosis(), runs_.size() > 1 ? names_[r] : std::string(), options_.screen,
                                 ~size_t{0});
    if (runs_.size() > 1 && !options_.statistics_only) {
      comparison();
      return std::move(out_);
    }
    if (show_statistics()) statistics();
    if (options_.statistics_only) return std::move(out_);
    if (run_.options().blocks.empty() || selected(1)) system_information();
    if (options_.per_kernel) {
      int64_t id = 0;
      for (const KernelStatistics& kernel : run_.kernels()) {
        const int64_t here = id++;
        if (!kernel.selected) continue;
        out_ +=
            "\n" +
            paint(report::shortened_middle(
                      fmt::format("Kernel {}: {}", here, report::clean(run_.workload().kernels[kernel.kernel])),
                      options_.screen.terminal ? options_.screen.width : SIZE_MAX),
                  Paint::kBold) +
            fmt::format("\n{}, {:.2f} % of the time\n", how_many(kernel.count, "dispatch", "dispatches"), kernel.share);
        metric_tables(run_.evaluate(kernel.kernel), rows_of(kernel.kernel));
      }
    } else {
      metric_tables(run_.all(), run_.rows());
    }
    findings();
    return std::move(out_);
  }

 private:
  std::string paint(std::string_view text, Paint paint) const {
    return report::painted(text, paint, options_.screen.colour);
  }

  // A dim sentence that fits the screen.
  void note(std::string_view text, size_t indent = 2, size_t further = 4) {
    out_ += paint(report::paragraph(text, std::max<size_t>(options_.screen.width, 40), indent, further), Paint::kDim) +
            "\n";
  }

  bool selected(int block) const {
    return !run_.options().blocks.empty() &&
           std::any_of(run_.options().blocks.begin(), run_.options().blocks.end(), [&](const std::string& text) {
             const auto selection = resolve(run_.catalog(), text, run_.options().ids);
             return selection && selection->block != nullptr && selection->block->number == block;
           });
  }
  bool show_statistics() const { return options_.statistics_only || run_.options().blocks.empty() || selected(0); }

  // The device and program that were measured, and how to read the values.
  void head(const Analysis& run) {
    if (options_.boxed) return;
    const auto at = static_cast<size_t>(&run - runs_.data());
    out_ += run_heading(run, runs_.size() > 1 ? names_[at] : std::string(), options_.screen);
    if (&run == &runs_.back()) {
      std::string unit = run.options().normalisation;
      std::replace(unit.begin(), unit.end(), '_', ' ');
      out_ += paint(fmt::format("counts {}; ratios: {}\n", unit,
                                run.options().sum_ratios ? "totals over totals (sum, as from 3.7 on)"
                                                         : "means over the dispatches (avg, as in 3.3 to 3.6)"),
                    Paint::kDim);
      if (run.options().compat) out_ += paint("values as rocprof-compute 3.3 gives them (--compat)\n", Paint::kDim);
    }
  }

  void block_heading(int number, std::string_view title) {
    if (heading_ == number) return;
    heading_ = number;
    out_ += "\n" + paint(fmt::format("{}. {}", number, title), Paint::kBold) + "\n";
  }
  void table_heading(std::string_view id, std::string_view title) {
    out_ += paint(fmt::format("{} {}", id, title), Paint::kCyan) + "\n";
  }

  void statistics() {
    block_heading(0, "Top Stats");
    table_heading("0.1", "Top Kernels");
    const std::string& unit = run_.options().time_unit;
    const double divisor = time_unit_divisor(unit);
    report::PrintedTable table;
    if (options_.boxed) {
      table.columns = {{""},
                       {"Kernel_Name"},
                       {"Count"},
                       {fmt::format("Sum({})", unit)},
                       {fmt::format("Mean({})", unit)},
                       {fmt::format("Median({})", unit)},
                       {"Pct"}};
      table.columns[1].wrap = 40;
      table.columns[1].max_lines = 3;
    } else {
      table.columns = {{"id"},
                       {"count"},
                       {fmt::format("sum ({})", unit)},
                       {fmt::format("mean ({})", unit)},
                       {fmt::format("median ({})", unit)},
                       {"% of time"},
                       {"kernel"}};
      table.columns[6].shrink = true;
    }
    const bool marks = !run_.options().kernels.empty();
    if (marks) table.columns.push_back({"S"});
    int64_t id = 0;
    for (const KernelStatistics& kernel : run_.kernels()) {
      if (static_cast<size_t>(id) == options_.max_stat_num) break;
      const std::string name = run_.workload().kernels[kernel.kernel];
      std::vector<report::Cell> numbers = {
          static_cast<int64_t>(kernel.count), report::number_cell(kernel.sum / divisor),
          report::number_cell(kernel.mean / divisor), report::number_cell(kernel.median / divisor),
          report::number_cell(kernel.share)};
      std::vector<report::Cell> row = {id++};
      if (options_.boxed) row.emplace_back(name);
      row.insert(row.end(), numbers.begin(), numbers.end());
      if (!options_.boxed) row.emplace_back(name);
      if (marks) row.emplace_back(std::string(kernel.selected ? "*" : " "));
      table.rows.push_back(std::move(row));
    }
    out_ += report::to_text(table, style_);
    more(run_.kernels().size(), "kernels");

    table_heading("0.2", "Dispatch List");
    report::PrintedTable list;
    if (options_.boxed) {
      list.columns = {{""}, {"Dispatch_ID"}, {"Kernel_Name"}, {"GPU_ID"}};
      list.columns[2].wrap = 80;
      list.columns[2].max_lines = 4;
    } else {
      list.columns = {{"dispatch"}, {"gpu"}, {fmt::format("time ({})", unit)}, {"kernel"}};
      list.columns[3].shrink = true;
    }
    const workload::CounterTable& counters = run_.workload().passes.front().counters;
    const auto start = counters.column("Start_Timestamp");
    const auto end = counters.column("End_Timestamp");
    int64_t index = 0;
    for (const uint32_t row : run_.listed_rows()) {
      if (static_cast<size_t>(index) == options_.max_stat_num) break;
      const workload::Dispatch& dispatch = run_.workload().dispatches[row];
      const std::string& name = run_.workload().kernels[dispatch.kernel];
      if (options_.boxed) {
        list.rows.push_back({index, dispatch.id, name, dispatch.gpu});
      } else {
        const double time = start.empty() || end.empty() ? std::nan("") : (end[row] - start[row]) / divisor;
        list.rows.push_back({dispatch.id, dispatch.gpu, report::number_cell(time), name});
      }
      ++index;
    }
    out_ += report::to_text(list, style_);
    more(run_.listed_rows().size(), "dispatches");
  }

  void more(size_t count, std::string_view what) {
    if (count > options_.max_stat_num)
      out_ += paint(fmt::format("  {} more {} (--max-stat-num)\n", count - options_.max_stat_num, what), Paint::kDim);
  }

  void system_information() {
    if (!run_.shows(1, 1)) return;
    block_heading(1, "System Info");
    report::PrintedTable table;
    table.columns = {{options_.boxed ? "" : "property"}, {options_.boxed ? "Info" : "value"}};
    table.columns[1].align = report::Align::kLeft;
    table.columns[1].shrink = true;
    for (const auto& [name, value] : run_.workload().sysinfo.fields()) {
      if (value.empty() && !options_.boxed) continue;
      table.rows.push_back({name, value});
    }
    out_ += report::to_text(table, style_);
  }

  // Metrics

  std::vector<uint32_t> rows_of(uint32_t kernel) const {
    std::vector<uint32_t> rows = run_.rows();
    std::erase_if(rows, [&](uint32_t row) { return run_.workload().dispatches[row].kernel != kernel; });
    return rows;
  }

  // `rows`: the dispatches that were evaluated.
  void metric_tables(const Evaluation& evaluation, const std::vector<uint32_t>& rows) {
    heading_ = -1;
    bool roofline_done = false;
    std::vector<const ResultTable*> nothing;
    for (const ResultTable& table : evaluation.tables) {
      if (!roofline_done && table.block->number > 4) {
        roofline();
        roofline_done = true;
      }
      if (table.rows.empty()) continue;
      if (table.empty() && (!options_.boxed || run_.options().blocks.empty())) {
        nothing.push_back(&table);
        continue;
      }
      if (compat_ && options_.boxed && has_empty_column(table)) {
        block_heading(table.block->number, table.block->title);
        out_ += fmt::format("{} {}\nNot showing table with empty column(s)\n\n", table.id(), table.table->title);
        continue;
      }
      block_heading(table.block->number, table.block->title);
      const std::string title = table.title(run_.options().normalisation);
      const std::string aside = options_.boxed ? std::string() : shared_normalisation(table);
      table_heading(table.id(), title + (aside.empty() || title.find(aside) != std::string::npos ? "" : ", " + aside));
      if (table.table->style == TableStyle::kMemoryChart && !options_.per_kernel &&
          (options_.screen.width >= kMemoryChartWidth || !options_.screen.terminal) && options_.columns.empty() &&
          whole(table)) {
        chart(table);
      } else if (table.rows.front().channel >= 0 && !options_.boxed && run_.options().blocks.empty()) {
        channels(table);
      } else {
        out_ += options_.boxed ? boxed_table(table) : plain_table(table);
      }
      if (!options_.boxed) missing_line(table, evaluation);
      if (!options_.boxed) left_out_lines(table, rows);
      if (!options_.boxed &&
          std::any_of(table.rows.begin(), table.rows.end(), [](const ResultRow& row) { return row.extrapolated; }))
        note("~ rests on a count that was extrapolated from a part of the GPU's units (tacho profile --exact counts it "
             "whole)");
    }
    if (!roofline_done) roofline();
    pc_samples();
    if (!nothing.empty()) not_computable(nothing, evaluation);
  }

  static bool whole(const ResultTable& table) { return table.rows.size() == table.table->metrics.size(); }

  static bool has_empty_column(const ResultTable& table) {
    for (size_t c = 0; c < table.table->columns.size(); ++c) {
      bool any = false;
      for (const ResultRow& row : table.rows) any = any || !std::holds_alternative<std::monostate>(row.cells[c]);
      if (!any) return true;
    }
    return false;
  }

  // " per kernel" behind every unit of a table stands once in its heading.
  std::string shared_normalisation(const ResultTable& table) const {
    for (const ResultRow& row : table.rows)
      if (row.metric->unit.find(" $norm") != std::string_view::npos)
        return normalised_unit("$norm", run_.options().normalisation);
    return {};
  }

  // A bar of ten characters for a percentage.
  static std::string bar(double percent) {
    static constexpr std::string_view kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const double length = std::clamp(percent, 0.0, 100.0) / 10;
    std::string out;
    for (int i = 1; i <= static_cast<int>(length); ++i) out += "█";
    const auto rest = static_cast<size_t>((length - std::floor(length)) * 8);
    if (static_cast<int>(length) < 10) out += kEighths[rest];
    return out;
  }

  std::string plain_table(const ResultTable& table) {
    const std::vector<metric::MetricColumn>& columns = table.table->columns;
    report::PrintedTable out;
    out.columns.push_back({"id"});
    std::vector<size_t> shown;
    size_t percent_at = columns.size();
    // The unit stands behind the first number, where it is read.
    for (size_t c = 0; c < columns.size(); ++c) {
      if (!column_chosen(options_, columns[c], c)) continue;
      bool any = columns[c].role != ColumnRole::kValue;
      for (const ResultRow& row : table.rows) any = any || !std::holds_alternative<std::monostate>(row.cells[c]);
      if (!any) continue;
      shown.push_back(c);
      if (columns[c].key == "pct") percent_at = c;
    }
    const bool may_have_bars = table.table->style == TableStyle::kBar || percent_at < columns.size();
    if (table.table->style == TableStyle::kBar)
      for (const size_t c : shown)
        if (columns[c].role == ColumnRole::kValue && percent_at == columns.size()) percent_at = c;
    for (const size_t c : shown) {
      report::PrintedColumn column{columns[c].key == "pct" ? std::string("% of peak") : std::string(columns[c].title)};
      if (columns[c].role != ColumnRole::kValue) column.shrink = true;
      if (columns[c].role == ColumnRole::kValue) column.align = report::Align::kRight;
      out.columns.push_back(std::move(column));
      if (with_error(table, columns[c])) out.columns.push_back({"±", report::Align::kRight});
    }
    if (options_.description) out.columns.push_back({"description"});
    const std::string normalisation = " " + normalised_unit("$norm", run_.options().normalisation);
    std::vector<std::string> bars;
    for (const ResultRow& row : table.rows) {
      if (!table.has_value(row)) continue;
      std::vector<report::Cell> cells = {row.id};
      for (const size_t c : shown) {
        const bool empty =
            columns[c].role == ColumnRole::kValue && std::holds_alternative<std::monostate>(row.cells[c]);
        cells.push_back(empty && row.metric->cells[c].formula.empty() ? report::Cell{std::string()} : row.cells[c]);
        if (row.extrapolated && columns[c].role == ColumnRole::kName)
          if (auto* name = std::get_if<std::string>(&cells.back()); name != nullptr) *name += " ~";
        if (columns[c].role == ColumnRole::kUnit)
          if (auto* unit = std::get_if<std::string>(&cells.back()); unit != nullptr && unit->ends_with(normalisation))
            unit->resize(unit->size() - normalisation.size());
        if (with_error(table, columns[c]))
          cells.push_back(row.error ? report::Cell{*row.error} : report::Cell{std::string()});
      }
      const std::optional<double> percent =
          percent_at < columns.size() ? number_of(row.cells[percent_at]) : std::nullopt;
      bars.push_back(percent && std::isfinite(*percent) ? bar(*percent) : std::string());
      if (options_.description) cells.emplace_back(std::string(row.metric->description));
      out.rows.push_back(std::move(cells));
    }
    report::TextStyle style = style_;
    if (options_.description) style.width = 0;
    std::string text = report::to_text(out, style);
    if (!may_have_bars || options_.description) return text;
    // Bars only where they fit beside the whole table.
    size_t widest = 0;
    for (size_t from = 0; from < text.size();) {
      const size_t to = text.find('\n', from);
      widest = std::max(widest, report::display_width(std::string_view(text).substr(from, to - from)));
      from = to + 1;
    }
    if (widest + 12 > style_.width) return text;
    out.columns.push_back({""});
    for (size_t i = 0; i < bars.size(); ++i) out.rows[i].emplace_back(bars[i]);
    return report::to_text(out, style);
  }

  // The error stands behind the mean it belongs to, in tables that have one.
  bool with_error(const ResultTable& table, const metric::MetricColumn& column) const {
    return options_.errors && column.key == "avg" &&
           std::any_of(table.rows.begin(), table.rows.end(), [](const ResultRow& row) { return row.error; });
  }

  std::string boxed_table(const ResultTable& table) {
    const std::vector<metric::MetricColumn>& columns = table.table->columns;
    report::PrintedTable out;
    out.columns.push_back({"Metric_ID"});
    for (size_t c = 0; c < columns.size(); ++c) {
      if (!column_chosen(options_, columns[c], c)) continue;
      report::PrintedColumn column{std::string(columns[c].title)};
      if (columns[c].role == ColumnRole::kValue) column.align = report::Align::kRight;
      if (columns[c].role == ColumnRole::kText || columns[c].role == ColumnRole::kUnit)
        column.align = report::Align::kLeft;
      out.columns.push_back(std::move(column));
    }
    if (options_.description) {
      out.columns.push_back({"Description"});
      out.columns.back().wrap = 60;
    }
    for (const ResultRow& row : table.rows) {
      std::vector<report::Cell> values = row.cells;
      if (compat_) apply_display_faults(table, row, run_.options(), values);
      std::vector<report::Cell> cells = {row.id};
      for (size_t c = 0; c < columns.size(); ++c) {
        if (!column_chosen(options_, columns[c], c)) continue;
        const bool no_formula = columns[c].role == ColumnRole::kValue && row.metric->cells[c].formula.empty();
        cells.push_back(no_formula ? report::Cell{std::string()} : values[c]);
      }
      if (options_.description) cells.emplace_back(std::string(row.metric->description));
      out.rows.push_back(std::move(cells));
    }
    return report::to_text(out, style_);
  }

  void chart(const ResultTable& table) {
    std::map<std::string_view, double> values;
    for (const ResultRow& row : table.rows)
      for (size_t c = 0; c < row.cells.size(); ++c)
        if (table.table->columns[c].role == ColumnRole::kValue)
          if (const auto value = number_of(row.cells[c])) values[row.metric->slug] = *value;
    out_ += memory_chart([&](std::string_view slug) -> std::optional<double> {
      const auto found = values.find(slug);
      return found == values.end() ? std::nullopt : std::optional<double>(found->second);
    });
  }

  // 128 channels are no table for a terminal: their spread in numbers and as a skyline. -b 18.3 shows every row.
  void channels(const ResultTable& table) {
    static constexpr std::string_view kHeights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    report::PrintedTable out;
    out.columns = {{"over the channels"}, {"min"}, {"at"}, {"mean"}, {"max"}, {"at"}, {""}};
    const size_t room = style_.width > 72 ? std::min<size_t>(style_.width - 70, 64) : 0;
    const bool only_median = table.table->style == TableStyle::kBox;
    for (size_t c = 0; c < table.table->columns.size(); ++c) {
      const metric::MetricColumn& column = table.table->columns[c];
      if (column.role != ColumnRole::kValue || !column_chosen(options_, column, c)) continue;
      if (only_median && column.key != "median") continue;
      double least = std::nan(""), most = least, sum = 0;
      int64_t least_at = 0, most_at = 0, count = 0;
      std::vector<double> values;
      for (const ResultRow& row : table.rows) {
        const std::optional<double> value = number_of(row.cells[c]);
        values.push_back(value.value_or(std::nan("")));
        if (!value || !std::isfinite(*value)) continue;
        if (count == 0 || *value < least) {
          least = *value;
          least_at = row.channel;
        }
        if (count == 0 || *value > most) {
          most = *value;
          most_at = row.channel;
        }
        sum += *value;
        ++count;
      }
      if (count == 0) continue;
      std::string skyline;
      const size_t cells = std::min(room, values.size());
      for (size_t i = 0; i < cells; ++i) {
        // Several channels in one character: the busiest of them.
        double height = std::nan("");
        for (size_t v = i * values.size() / cells; v < (i + 1) * values.size() / cells; ++v)
          height = std::fmax(height, values[v]);
        const double part = most > 0 && std::isfinite(height) ? std::clamp(height / most, 0.0, 1.0) : 0;
        skyline += std::isnan(height) ? " " : std::string(kHeights[static_cast<size_t>(part * 7.999)]);
      }
      out.rows.push_back(
          {std::string(column.title), least, least_at, sum / static_cast<double>(count), most, most_at, skyline});
    }
    out_ += report::to_text(out, style_);
    out_ += paint(fmt::format("  {} channels; -b {} shows each\n", table.rows.size(), table.id()), Paint::kDim);
  }

  static std::string listed(const std::vector<std::string>& names, size_t most) {
    std::string text;
    for (size_t i = 0; i < names.size() && i < most; ++i) text += (i > 0 ? ", " : "") + names[i];
    if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
    return text;
  }

  void missing_line(const ResultTable& table, const Evaluation& evaluation) {
    std::vector<std::string> names, counters, apart, parts, undefined, absent;
    for (const NotComputable& entry : evaluation.not_computable) {
      if (&run_.catalog().table_of(*entry.metric) != table.table) continue;
      (!entry.on_this_gpu       ? absent
       : !entry.missing.empty() ? names
       : !entry.apart.empty()   ? apart
                                : undefined)
          .emplace_back(entry.metric->name);
      add_each(entry.missing, counters);
      add_each(entry.apart, parts);
    }
    if (names.empty() && apart.empty() && undefined.empty() && absent.empty()) return;
    std::string text;
    const auto add = [&](std::string part) { text += (text.empty() ? "" : "; ") + std::move(part); };
    if (!names.empty()) add(fmt::format("not computable: {} (missing {})", listed(names, 8), listed(counters, 6)));
    if (!apart.empty())
      add(fmt::format("not computable: {} (no dispatch has all of {})", listed(apart, 8), listed(parts, 6)));
    if (!undefined.empty()) add(fmt::format("nothing to divide (0 / 0): {}", listed(undefined, 8)));
    if (!absent.empty()) add(fmt::format("not on {}: {}", run_.catalog().architecture, listed(absent, 8)));
    note(text);
  }

  static void add_each(const std::vector<std::string>& names, std::vector<std::string>& to) {
    for (const std::string& name : names)
      if (std::find(to.begin(), to.end(), name) == to.end()) to.push_back(name);
  }

  // Dispatches that are in no value of a metric, as they lack one of its counters.
  void left_out_lines(const ResultTable& table, const std::vector<uint32_t>& rows) {
    constexpr size_t kMostLines = 3, kMostMetrics = 6, kMostCounters = 4, kMostKernels = 3, kKernelWidth = 32;
    const auto kernel_of = [&](uint32_t row) { return run_.workload().dispatches[row].kernel; };
    const bool several =
        std::any_of(rows.begin(), rows.end(), [&](uint32_t row) { return kernel_of(row) != kernel_of(rows.front()); });
    for (size_t i = 0; i < table.left_out.size() && i < kMostLines; ++i) {
      const LeftOut& each = table.left_out[i];
      std::vector<std::string> kernels;
      for (const LeftOutKernel& kernel : kernels_left_out(each, run_.workload(), rows))
        kernels.push_back(fmt::format(
            "{} of {}", kernel.dispatches,
            report::shortened_middle(report::clean(workload::plain_kernel_name(run_.workload().kernels[kernel.kernel])),
                                     kKernelWidth)));
      std::string text =
          fmt::format("left out of {}: {} of {}, which {} {}", listed(each.names, kMostMetrics), each.dispatches.size(),
                      how_many(rows.size(), "dispatch", "dispatches"), each.dispatches.size() == 1 ? "lacks" : "lack",
                      listed(each.counters, kMostCounters));
      if (several) text += fmt::format(" ({})", listed(kernels, kMostKernels));
      note(text);
    }
    if (table.left_out.size() > kMostLines)
      note(fmt::format("left out of other metrics: other dispatches, in {} (--output-format json)",
                       how_many(table.left_out.size() - kMostLines, "more group", "more groups")));
  }

  // Tables without one number, in one paragraph.
  void not_computable(const std::vector<const ResultTable*>& tables, const Evaluation& evaluation) {
    std::vector<std::string> names, counters, parts, undefined;
    for (const ResultTable* table : tables) {
      names.push_back(fmt::format("{} {}", table->id(), table->title(run_.options().normalisation)));
      for (const NotComputable& entry : evaluation.not_computable) {
        if (&run_.catalog().table_of(*entry.metric) != table->table) continue;
        if (entry.on_this_gpu && entry.missing.empty() && entry.apart.empty())
          undefined.emplace_back(entry.metric->name);
        add_each(entry.missing, counters);
        add_each(entry.apart, parts);
      }
    }
    std::string text = "Not computable: " + listed(names, names.size());
    if (!counters.empty()) text += "; missing " + listed(counters, 12);
    if (!parts.empty()) text += "; no dispatch has all of " + listed(parts, 12);
    if (!undefined.empty()) text += "; nothing to divide (0 / 0): " + listed(undefined, 8);
    out_ += "\n";
    note(text, 0, 2);
  }

  void pc_samples() {
    report::PrintedTable table = pc_sample_table(run_);
    const size_t count = table.rows.size();
    if (count == 0) return;
    block_heading(21, "PC Sampling");
    const bool stochastic = run_.pc_samples()->stochastic;
    std::string title = fmt::format("{}, {}", table.title, stochastic ? "stochastic" : "host trap");
    if (!options_.boxed) title += stochastic ? ": % of all samples, issued % of the row's" : ": % of all samples";
    table_heading(table.id, title);
    const bool own = options_.sample_rows >= 0;
    const size_t most = !own                        ? options_.max_stat_num
                        : options_.sample_rows == 0 ? count
                                                    : static_cast<size_t>(options_.sample_rows);
    if (count > most) table.rows.resize(most);
    if (!options_.boxed) table = narrow_samples(std::move(table));
    out_ += report::to_text(table, style_);
    if (count > most)
      out_ += paint(fmt::format("  {} ({})\n", how_many(count - most, "more instruction", "more instructions"),
                                own ? "--pc-sampling-rows" : "--max-stat-num"),
                    Paint::kDim);
  }

  // Numbers first, kernels by their ids in table 0.1, sources without their folders.
  report::PrintedTable narrow_samples(report::PrintedTable wide) const {
    report::PrintedTable table;
    table.columns = {{"samples"}, {"%"}, {"kernel"}, {"instruction"}, {"source"}};
    if (wide.columns.size() > 5) {
      table.columns.insert(table.columns.begin() + 2, {"issued %"});
      table.columns.push_back({"stalled by"});
      table.columns.back().shrink = true;
      table.columns.back().cut = report::Cut::kWrap;
    }
    for (auto& row : wide.rows) {
      const std::string& name = std::get<std::string>(row[2]);
      int64_t id = 0;
      report::Cell kernel;
      for (const KernelStatistics& each : run_.kernels()) {
        if (workload::plain_kernel_name(run_.workload().kernels[each.kernel]) == workload::plain_kernel_name(name))
          kernel = id;
        ++id;
      }
      std::string source = std::get<std::string>(row[1]);
      source.erase(0, source.rfind('/') + 1);
      std::vector<report::Cell> cells = {row[3], row[4], kernel, report::shortened(std::get<std::string>(row[0]), 28),
                                         std::move(source)};
      if (row.size() > 5) {
        cells.insert(cells.begin() + 2, row[5]);
        cells.push_back(row[6]);
      }
      table.rows.push_back(std::move(cells));
    }
    return table;
  }

  // Roofline

  // Roofs by data type; `first` is the first type that was measured.
  struct RoofsOfTypes {
    std::map<std::string, std::vector<Roof>, std::less<>> of;
    std::string first;
  };

  void roofline() {
    const std::vector<IntensityPoint>& points =
        options_.roofline_dispatches ? run_.dispatch_points() : run_.kernel_points();
    if (!run_.shows(4, 1) || points.empty()) return;
    const bool any = std::any_of(points.begin(), points.end(), [](const IntensityPoint& p) {
      return std::isfinite(p.performance) && (std::isfinite(p.hbm) || std::isfinite(p.l2) || std::isfinite(p.l1));
    });
    if (!any) return;
    block_heading(4, "Roofline");
    table_heading("4.1", "Roofline");
    report::PrintedTable ceilings;
    RoofsOfTypes roofs = roofs_of_types(ceilings);
    std::vector<size_t> numbers;  // as in tables 0.1 and 0.2
    for (const IntensityPoint& point : points)
      numbers.push_back(options_.roofline_dispatches ? static_cast<size_t>(run_.workload().dispatches[point.row].id)
                                                     : run_.kernel_id(point.kernel));
    size_t above = 0;
    const std::span<const IntensityPoint> shown(points.data(), std::min<size_t>(points.size(), 10));
    std::vector<std::string> left_out;
    report::TextStyle style = style_;
    style.left_out = &left_out;
    out_ += report::to_text(points_table(points, shown.size(), numbers, roofs, above), style);
    if (!left_out.empty()) note(report::left_out_sentence(left_out, "--output-format csv"), 2, 2);
    if (!run_.uncounted_flops().empty())
      note(fmt::format("FLOPs without {}, which the run does not have", fmt::join(run_.uncounted_flops(), ", ")), 2, 2);
    if (above > 0) note(above_roof_text(above), 2, 2);
    if (!run_.intensity_definition().empty()) note(fmt::format("counted as: {}", run_.intensity_definition()), 2, 2);
    if (run_.workload().ceilings.empty()) {
      out_ += paint("  no roofline.csv, so there are no measured roofs\n", Paint::kDim);
      return;
    }
    const workload::RooflineCeilings& source = run_.workload().ceilings.front();
    if (const std::string_view device = source.text("DeviceName"); !device.empty())
      out_ += paint(fmt::format("  roofs: {} ({}), measured {}\n", report::clean(device), source.text("Backend"),
                                source.text("Measured")),
                    Paint::kDim);
    if (!ceilings.rows.empty()) out_ += report::to_text(ceilings, style_);
    out_ += roofline_plot(plotted_roofs(roofs), shown, {numbers.data(), shown.size()}, run_.catalog().facts.roofline,
                          std::min<size_t>(options_.screen.width, 110), 20);
  }

  // The roofs that are looked at, and a table of them.
  RoofsOfTypes roofs_of_types(report::PrintedTable& ceilings) {
    RoofsOfTypes out;
    ceilings.columns = {{"roof"}, {"of"}, {"value"}, {"unit"}};
    const bool measured = !run_.workload().ceilings.empty();
    for (const std::string& type : options_.data_types.empty() ? run_.roofline_types() : options_.data_types) {
      std::vector<Roof> lines;
      if (measured) lines = roofs(run_.workload().ceilings.front(), type);
      std::erase_if(lines, [&](const Roof& roof) {
        return !is_compute(roof) && !options_.memory_levels.empty() &&
               std::find(options_.memory_levels.begin(), options_.memory_levels.end(), roof.name) ==
                   options_.memory_levels.end();
      });
      for (const Roof& roof : lines) {
        if (!is_compute(roof) && !out.first.empty()) continue;  // the memory roofs are the same for every type
        ceilings.rows.push_back({shown_roof(run_.catalog().facts.roofline, roof.name),
                                 is_compute(roof) ? type : std::string(), roof.peak,
                                 std::string(is_compute(roof) ? "GFLOP/s" : "GB/s")});
      }
      if (lines.empty() && measured)
        out_ += paint(fmt::format("  roofline.csv has no peaks for {}\n", type), Paint::kDim);
      else if (out.first.empty())
        out.first = type;
      out.of[type] = std::move(lines);
    }
    return out;
  }

  // The first `count` points against the roof that bounds each; `above`: how many of all lie above theirs.
  report::PrintedTable points_table(const std::vector<IntensityPoint>& points, size_t count,
                                    const std::vector<size_t>& numbers, const RoofsOfTypes& roofs, size_t& above) {
    const RooflineModel& model = run_.catalog().facts.roofline;
    report::PrintedTable table;
    table.columns = {{"#"},          {"GFLOP/s"},  {"of"},    {fmt::format("AI {}", roof_name(model, "hbm"))},
                     {"L2"},         {"L1"},       {"GB/s"},  {"bound"},
                     {"% of bound"}, {"headroom"}, {"kernel"}};
    table.columns[3].leave_out = 1;
    table.columns[4].leave_out = 2;
    table.columns[5].leave_out = 3;
    table.columns[6].decimals = 0;
    table.columns[10].shrink = true;
    table.columns[10].wrap = 40;
    table.columns[10].max_lines = 2;
    table.columns[8].decimals = 1;
    bool no_flops = false, any_flops = false;
    for (size_t i = 0; i < points.size(); ++i) {
      const IntensityPoint& point = points[i];
      const std::string_view own = run_.data_type(point);
      const bool of_own = options_.data_types.empty() && roofs.of.contains(own);
      const auto lines = roofs.of.find(of_own ? own : std::string_view(roofs.first));
      const Bound bound = lines == roofs.of.end() ? Bound() : bound_of(point, lines->second);
      const bool bounded = bound.roof != nullptr;
      above += bounded && bound.reached > kAboveRoof ? 1 : 0;
      if (i >= count) continue;
      no_flops |= point.performance == 0;
      any_flops |= point.performance > 0;
      table.rows.push_back({static_cast<int64_t>(numbers[i]), report::number_cell(point.performance), std::string(own),
                            report::number_cell(point.hbm), report::number_cell(point.l2),
                            report::number_cell(point.l1), report::number_cell(bandwidth_at(point, "hbm")),
                            bounded ? report::Cell(shown_roof(model, bound.roof->name)) : report::Cell(),
                            bounded ? report::number_cell(bound.reached) : report::Cell(),
                            bounded ? report::Cell(fmt::format("{:.3g}x", bound.headroom)) : report::Cell(),
                            run_.workload().kernels[point.kernel]});
    }
    // Room for names: the type where there are FLOPs, bytes a second where there are none.
    const auto drop = [&](size_t column) {
      table.columns.erase(table.columns.begin() + static_cast<ptrdiff_t>(column));
      for (auto& row : table.rows) row.erase(row.begin() + static_cast<ptrdiff_t>(column));
    };
    if (!no_flops) drop(6);
    if (!any_flops) drop(2);
    return table;
  }

  // The first type's roofs; those of memory up to the highest peak of any type, and the peaks of the other types.
  static std::vector<Roof> plotted_roofs(RoofsOfTypes& roofs) {
    std::vector<Roof> plotted = roofs.of[roofs.first];
    for (const auto& [type, lines] : roofs.of)
      for (const Roof& roof : lines) {
        const auto same =
            std::find_if(plotted.begin(), plotted.end(), [&](const Roof& each) { return each.name == roof.name; });
        if (type == roofs.first) continue;
        if (!is_compute(roof) && same != plotted.end() && roof.x1 > same->x1) *same = roof;
        if (is_compute(roof)) {
          plotted.push_back(roof);
          plotted.back().name += " " + type;
        }
      }
    return plotted;
  }

  // Findings

  void findings() {
    if (options_.boxed || !run_.options().advice || !run_.options().blocks.empty()) return;
    out_ += findings_text(run_, options_.screen, false, ~size_t{0});
    out_ += not_judged_text(run_.diagnosis(), options_.screen, false);
  }

  // Several runs

  void comparison() {
    const ComparedRuns compared = compare(runs_, !options_.boxed);
    if (!options_.boxed && run_.options().blocks.empty()) {
      out_ += changes_text(runs_, options_);
    } else if (show_statistics()) {
      compare_kernels();
    }
    if (run_.options().blocks.empty() || selected(1)) compare_systems();
    bool roofline_done = false;
    const auto roofline_here = [&] {
      if (!roofline_done) compare_roofline();
      roofline_done = true;
    };
    for (const ComparedTable& table : compared.tables) {
      if (table.base->block->number > 4) roofline_here();
      report::PrintedTable out;
      out.columns.push_back({options_.boxed ? "Metric_ID" : "id"});
      out.columns.push_back({"Metric"});
      out.columns.back().shrink = true;
      size_t unit_at = table.base->table->columns.size();
      for (size_t c = 0; c < table.base->table->columns.size(); ++c)
        if (table.base->table->columns[c].role == ColumnRole::kUnit) unit_at = c;
      if (options_.boxed)
        boxed_comparison(table, out, unit_at);
      else
        plain_comparison(table, out, unit_at);
      if (out.rows.empty()) continue;
      block_heading(table.base->block->number, table.base->block->title);
      table_heading(table.base->id(), table.base->title(run_.options().normalisation));
      out_ += report::to_text(out, style_);
      if (options_.boxed) out_ += "\n";
    }
    roofline_here();
    if (!compared.unmatched.empty()) {
      out_ += "\n";
      note(how_many(compared.unmatched.size(), "metric of the first run is", "metrics of the first run are") +
               " not in another one (another architecture, or not collected), and left out",
           0, 2);
    }
  }

  // The machines, where they differ.
  void compare_systems() {
    if (!run_.shows(1, 1)) return;
    report::PrintedTable table;
    table.columns.push_back({options_.boxed ? "" : "property"});
    for (const std::string& name : names_) {
      table.columns.push_back({name, report::Align::kLeft});
      table.columns.back().shrink = true;
    }
    size_t equal = 0;
    for (const auto& [name, value] : run_.workload().sysinfo.fields()) {
      std::vector<report::Cell> row = {name};
      bool differs = false;
      for (const Analysis& run : runs_) {
        row.emplace_back(std::string(run.workload().sysinfo.get(name)));
        differs = differs || run.workload().sysinfo.get(name) != value;
      }
      if (differs)
        table.rows.push_back(std::move(row));
      else
        ++equal;
    }
    block_heading(1, "System Info");
    table_heading("1.1", "System Info, where the runs differ");
    if (!table.rows.empty()) out_ += report::to_text(table, style_);
    out_ += paint(fmt::format("  {} properties are the same\n", equal), Paint::kDim);
  }

  // Points of the roofline: rates and intensities of each kernel in all runs.
  void compare_roofline() {
    if (!run_.shows(4, 1) || run_.kernel_points().empty()) return;
    report::PrintedTable table;
    table.columns = {{"Metric"}};
    for (size_t r = 0; r < runs_.size(); ++r) {
      table.columns.push_back({names_[r], report::Align::kRight});
      if (r > 0) table.columns.push_back({"change", report::Align::kRight});
    }
    table.columns.push_back({"Unit"});
    table.columns.push_back({"kernel"});
    table.columns.back().shrink = true;
    const size_t most = std::min<size_t>(run_.kernel_points().size(), 10);
    const std::string memory(roof_name(run_.catalog().facts.roofline, "hbm"));
    for (size_t i = 0; i < most; ++i) {
      const IntensityPoint& base = run_.kernel_points()[i];
      const std::string_view name = workload::plain_kernel_name(run_.workload().kernels[base.kernel]);
      std::vector<const IntensityPoint*> points;
      for (const Analysis& run : runs_) {
        points.push_back(nullptr);
        for (const IntensityPoint& point : run.kernel_points())
          if (workload::plain_kernel_name(run.workload().kernels[point.kernel]) == name) points.back() = &point;
      }
      for (const auto& [title, unit, value] :
           {std::tuple<std::string, std::string_view, double (*)(const IntensityPoint&)>{
                "Performance", "GFLOP/s", [](const IntensityPoint& point) { return point.performance; }},
            {"Intensity at " + memory, "FLOP/byte", [](const IntensityPoint& point) { return point.hbm; }},
            {"Bandwidth at " + memory, "GB/s",
             [](const IntensityPoint& point) { return bandwidth_at(point, "hbm"); }}}) {
        std::vector<report::Cell> row = {title};
        bool any = false;
        for (size_t r = 0; r < runs_.size(); ++r) {
          const double number = points[r] != nullptr ? value(*points[r]) : std::nan("");
          any = any || std::isfinite(number);
          row.push_back(report::number_cell(number));
          if (r == 0) continue;
          const double before = value(base);
          row.push_back(std::isfinite(number) && std::isfinite(before) && before != 0
                            ? report::Cell{percent_text((number - before) / std::fabs(before) * 100)}
                            : report::Cell{});
        }
        row.emplace_back(std::string(unit));
        row.emplace_back(std::string(name));
        if (any) table.rows.push_back(std::move(row));
      }
    }
    if (table.rows.empty()) return;
    block_heading(4, "Roofline");
    table_heading("4.1", "Roofline");
    out_ += report::to_text(table, style_);
  }

  void compare_kernels() {
    block_heading(0, "Top Stats");
    table_heading("0.1", "Top Kernels");
    report::PrintedTable table;
    const std::string& unit = run_.options().time_unit;
    const double divisor = time_unit_divisor(unit);
    for (size_t r = 0; r < runs_.size(); ++r) {
      table.columns.push_back({r == 0 ? fmt::format("mean ({}) {}", unit, names_[0]) : names_[r]});
      if (r > 0) {
        table.columns.push_back({"change"});
        table.columns.back().align = report::Align::kRight;
      }
    }
    table.columns.push_back({"kernel"});
    table.columns.back().shrink = true;
    for (const KernelStatistics& kernel : run_.kernels()) {
      if (table.rows.size() == options_.max_stat_num) break;
      const std::string_view name = workload::plain_kernel_name(run_.workload().kernels[kernel.kernel]);
      std::vector<report::Cell> row = {report::number_cell(kernel.mean / divisor)};
      for (size_t r = 1; r < runs_.size(); ++r) {
        const KernelStatistics* other = nullptr;
        for (const KernelStatistics& candidate : runs_[r].kernels())
          if (workload::plain_kernel_name(runs_[r].workload().kernels[candidate.kernel]) == name) other = &candidate;
        row.push_back(other != nullptr ? report::number_cell(other->mean / divisor) : report::Cell{});
        row.push_back(other != nullptr && kernel.mean > 0
                          ? report::Cell{percent_text((other->mean - kernel.mean) / kernel.mean * 100)}
                          : report::Cell{});
      }
      row.emplace_back(std::string(name));
      table.rows.push_back(std::move(row));
    }
    out_ += report::to_text(table, style_);
  }

  std::string percent_text(double percent) const {
    if (std::isinf(percent)) return percent > 0 ? "new" : "-new";
    std::string text = fmt::format("{:+.{}f}%", percent, std::min(options_.decimals, 2));
    if (options_.report_diff > 0 && std::fabs(percent) > options_.report_diff) text = "! " + text;
    return text;
  }

  void plain_comparison(const ComparedTable& table, report::PrintedTable& out, size_t unit_at) {
    // The first value of every metric; the others are in JSON and csv.
    if (table.value_columns.empty()) return;
    size_t value = 0;
    for (size_t i = 0; i < table.value_columns.size(); ++i)
      if (table.base->table->columns[table.value_columns[i]].key == "median") value = i;
    const std::string title(table.base->table->columns[table.value_columns[value]].title);
    for (size_t r = 0; r < runs_.size(); ++r) {
      out.columns.push_back({r == 0 ? title + " " + names_[0] : names_[r]});
      out.columns.back().align = report::Align::kRight;
      if (r > 0) {
        out.columns.push_back({"change"});
        out.columns.back().align = report::Align::kRight;
      }
    }
    if (unit_at < table.base->table->columns.size()) out.columns.push_back({"Unit"});
    for (const ComparedRow& row : table.rows) {
      const ComparedValue& compared = row.columns[value];
      if (std::none_of(compared.values.begin(), compared.values.end(), [](const auto& v) { return v.has_value(); }))
        continue;
      std::vector<report::Cell> cells = {row.base->id, row.base->channel >= 0
                                                           ? fmt::format("Channel {}", row.base->channel)
                                                           : std::string(row.base->metric->name)};
      for (size_t r = 0; r < runs_.size(); ++r) {
        cells.push_back(compared.values[r] ? report::Cell{*compared.values[r]} : report::Cell{});
        if (r > 0)
          cells.push_back(compared.percent[r] ? report::Cell{percent_text(*compared.percent[r])} : report::Cell{});
      }
      if (unit_at < table.base->table->columns.size()) cells.push_back(row.base->cells[unit_at]);
      out.rows.push_back(std::move(cells));
    }
  }

  // As upstream: the first run's value, then "value (change%)" of every other run, for every column.
  void boxed_comparison(const ComparedTable& table, report::PrintedTable& out, size_t unit_at) {
    const std::vector<metric::MetricColumn>& columns = table.base->table->columns;
    for (const size_t c : table.value_columns)
      for (size_t r = 0; r < runs_.size(); ++r) {
        out.columns.push_back(
            {r == 0 ? std::string(columns[c].title) : fmt::format("{} {}", columns[c].title, names_[r])});
        out.columns.back().align = report::Align::kRight;
      }
    if (unit_at < columns.size()) out.columns.push_back({"Unit"});
    for (const ComparedRow& row : table.rows) {
      std::vector<report::Cell> cells = {row.base->id, row.base->channel >= 0 ? std::to_string(row.base->channel)
                                                                              : std::string(row.base->metric->name)};
      for (const ComparedValue& compared : row.columns)
        for (size_t r = 0; r < runs_.size(); ++r) {
          if (!compared.values[r]) {
            cells.emplace_back(style_.missing);
          } else if (r == 0) {
            cells.emplace_back(*compared.values[r]);
          } else {
            std::string text = report::format_fixed(*compared.values[r], options_.decimals);
            if (compared.percent[r])
              text += std::isinf(*compared.percent[r])
                          ? std::string(" (new)")
                          : fmt::format(" ({:.{}f}%)", *compared.percent[r], options_.decimals);
            if (compared.percent[r] && options_.report_diff > 0 &&
                std::fabs(*compared.percent[r]) > options_.report_diff)
              text = "! " + text;
            cells.emplace_back(std::move(text));
          }
        }
      if (unit_at < columns.size()) cells.push_back(row.base->cells[unit_at]);
      out.rows.push_back(std::move(cells));
    }
  }

  std::span<const Analysis> runs_;
  const Analysis& run_;
  const TextOptions& options_;
  bool compat_;
  report::TextStyle style_;
  std::vector<std::string> names_;  // of the runs
  std::string out_;
  int heading_ = -1;
};

}  // namespace

std::string to_text(std::span<const Analysis> runs, const TextOptions& options) {
  const bool tables = options.boxed || options.full || options.statistics_only || options.per_kernel ||
                      options.description || options.errors || !options.columns.empty() ||
                      !runs.front().options().blocks.empty();
  if (!tables) return to_screen(runs, options);
  return Renderer(runs, options).run();
}

}  // namespace tacho::metric
