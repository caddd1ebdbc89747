// Puts the first screen together.
#include "metric/render/text/screen.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text/how_many.h"
#include "metric/analysis/compare.h"
#include "metric/render/run_names.h"
#include "metric/render/text/columns.h"
#include "metric/render/text/findings_text.h"

namespace tacho::metric {

namespace {

using report::Paint;

constexpr size_t kKernels = 5;
constexpr size_t kProblems = 3;
constexpr size_t kFindings = 5;
constexpr size_t kBarKernels = 3;
constexpr size_t kChanges = 10;

std::string kernel_name(const Analysis& run, uint32_t kernel) {
  return std::string(workload::plain_kernel_name(run.workload().kernels[kernel]));
}

class Screen {
 public:
  Screen(std::span<const Analysis> runs, const TextOptions& options)
      : runs_(runs), run_(runs.front()), options_(options), screen_(options.screen) {
    style_.decimals = options.decimals;
    style_.width = screen_.width;
    style_.colour = screen_.colour;
    style_.indent = 2;
    std::vector<std::string> paths;
    for (const Analysis& run : runs) paths.push_back(run.workload().path);
    names_ = run_names(paths, 20);
  }

  std::string one() {
    std::string out = run_heading(run_, "", screen_);
    out += implausible_text(run_.diagnosis(), "", screen_, kProblems);
    out += kernels();
    if (run_.options().advice) {
      out += findings_text(run_, screen_, true, kFindings);
      out += bars();
    }
    out += not_measured();
    out += hint("tables: --full, or -b 2 for one block; a number: --explain METRIC; charts: --output-format html");
    return out;
  }

  std::string several() {
    std::string out;
    for (size_t r = 0; r < runs_.size(); ++r) out += run_heading(runs_[r], names_[r], screen_);
    for (size_t r = 0; r < runs_.size(); ++r) out += implausible_text(runs_[r].diagnosis(), names_[r], screen_, 2);
    out += changes();
    out += hint("tables: --full, or -b 2 for one block; marks above N percent: --report-diff N");
    return out;
  }

  std::string changes() {
    std::string out = compared_kernels();
    const size_t most = std::min<size_t>(run_.kernels().size(), kBarKernels);
    size_t shown = 0;
    for (const KernelStatistics& kernel : run_.kernels()) {
      if (!kernel.selected) continue;
      if (shown == most) break;
      ++shown;
      out += changes_of(kernel.kernel);
    }
    out += findings_changes();
    return out;
  }

 private:
  std::string paint(std::string_view text, Paint paint) const { return report::painted(text, paint, screen_.colour); }
  std::string hint(std::string_view text) const {
    return "\n" + paint(report::wrapped(text, std::max<size_t>(screen_.width, 60), 2), Paint::kDim) + "\n";
  }

  // A time in the unit that the user chose, which a column's title then names, else with the unit that suits it.
  report::Cell time_cell(double ns) const {
    if (options_.chosen_unit) return report::number_cell(ns / time_unit_divisor(run_.options().time_unit));
    const std::string text = report::format_duration(ns);
    return text.empty() ? report::Cell{} : report::Cell{text};
  }
  report::PrintedColumn time_column(std::string_view title, std::string_view aside = "") const {
    std::string text(title), words = options_.chosen_unit ? run_.options().time_unit : std::string();
    if (!aside.empty()) words += fmt::format("{}{}", words.empty() ? "" : ", ", aside);
    if (!words.empty()) text += fmt::format(" ({})", words);
    return {text, report::Align::kRight};
  }

  std::string kernels() const {
    // Times of a simulated device are somebody else's.
    const bool own_time = run_.diagnosis().weight_words.empty();
    report::PrintedTable table;
    table.columns = {{"id"},
                     {"count"},
                     time_column("mean", own_time ? "" : "CPU"),
                     {own_time ? "% of time" : "% of CPU time"},
                     {"kernel"}};
    table.columns[4].shrink = true;
    int64_t id = 0;
    const size_t most = std::min(kKernels, options_.max_stat_num);
    for (const KernelStatistics& kernel : run_.kernels()) {
      const int64_t here = id++;
      if (!kernel.selected) continue;
      if (table.rows.size() == most) break;
      table.rows.push_back(
          {here, static_cast<int64_t>(kernel.count), time_cell(kernel.mean), report::number_cell(kernel.share),
           cut_middle(report::clean(kernel_name(run_, kernel.kernel)), std::max<size_t>(screen_.width, 60) - 40)});
    }
    std::string out = "\n" + paint("Kernels", Paint::kBold) + "\n" + report::to_text(table, style_);
    size_t selected = 0;
    for (const KernelStatistics& kernel : run_.kernels()) selected += kernel.selected ? 1 : 0;
    if (selected > most)
      out += paint(fmt::format("  {} (--list-stats --max-stat-num {})\n",
                               how_many(selected - most, "more kernel", "more kernels"), selected),
                   Paint::kDim);
    return out;
  }

  static std::string bar(double percent, size_t width) {
    static constexpr std::string_view kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const double length = std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(width);
    std::string out;
    for (size_t i = 1; i <= static_cast<size_t>(length); ++i) out += "█";
    if (static_cast<size_t>(length) < width) out += kEighths[static_cast<size_t>((length - std::floor(length)) * 8)];
    return report::padded_right(out, width);
  }

  std::string bars() const {
    const Diagnosis& diagnosis = run_.diagnosis();
    const size_t shown = std::min(kBarKernels, diagnosis.kernels.size());
    if (diagnosis.bars.empty() || shown == 0) return {};
    size_t label = 0;
    for (const std::string& name : diagnosis.bars) label = std::max(label, report::display_width(name));
    label = std::min<size_t>(label, 34);
    const size_t width = std::max<size_t>(screen_.width, 60);
    const size_t column = (width - 2 - label) / shown;
    const size_t length = std::min<size_t>(column > 12 ? column - 10 : 4, 30);
    std::string lines;
    for (size_t b = 0; b < diagnosis.bars.size(); ++b) {
      bool any = false;
      std::string line = "  " + report::padded_right(cut_middle(diagnosis.bars[b], label), label);
      for (size_t k = 0; k < shown; ++k) {
        const std::optional<double> value = diagnosis.kernels[k].bars[b];
        any = any || value;
        const std::string number =
            value ? fmt::format("{:>5} ", report::format_fixed(*value, *value < 9.95 ? 1 : 0)) : std::string("    — ");
        line += "  " + number + bar(value.value_or(0), length);
      }
      if (!any) continue;
      while (line.ends_with(' ')) line.pop_back();
      lines += line + "\n";
    }
    if (lines.empty()) return {};
    std::string out = "\n" + paint("Speed of Light, %", Paint::kBold);
    if (run_.kernels().size() > 1) {
      out += "\n  " + std::string(label, ' ');
      for (size_t k = 0; k < shown; ++k) {
        size_t id = 0;
        while (run_.kernels()[id].kernel != diagnosis.kernels[k].kernel) ++id;
        const std::string name =
            fmt::format("{} {}", id, report::clean(kernel_name(run_, diagnosis.kernels[k].kernel)));
        const std::string cut = report::shortened(name, column - 3);
        out += "  " + paint(k + 1 < shown ? report::padded_right(cut, column - 2) : cut, Paint::kCyan);
      }
    }
    return out + "\n" + lines;
  }

  // Blocks without any number, the rules that lack inputs, roofs that nobody measured; each with the command that
  // helps.
  std::string not_measured() const {
    const Catalog& catalog = run_.catalog();
    std::set<std::pair<int, int>> measured;
    for (const ResultTable& table : run_.all().tables)
      if (!table.empty()) measured.emplace(table.block->number, table.table->number);
    std::string blocks, ids;
    for (const Block& block : catalog.blocks) {
      const bool counts = std::any_of(block.tables.begin(), block.tables.end(), [](const MetricTable& table) {
        return table.type == TableType::kMetrics && !table.metrics.empty();
      });
      const bool any = std::any_of(block.tables.begin(), block.tables.end(), [&](const MetricTable& table) {
        return measured.contains({block.number, table.number});
      });
      if (!counts || any) continue;
      blocks += fmt::format("{}{} {}", blocks.empty() ? "" : ", ", block.number, block.title);
      ids += fmt::format(" {}", block.number);
    }
    const size_t width = std::max<size_t>(screen_.width, 60);
    std::string out;
    if (!blocks.empty())
      out +=
          "  " +
          report::wrapped(fmt::format("Blocks: {}. `tacho profile -b{}` measures them.", blocks, ids), width - 2, 2) +
          "\n";
    out += not_judged_text(run_.diagnosis(), screen_, true);
    if (const std::string text = left_out(); !text.empty()) out += "  " + report::wrapped(text, width - 2, 2) + "\n";
    if (run_.workload().ceilings.empty() && !run_.kernel_points().empty())
      out += "  " +
             report::wrapped("Roofs: no roofline.csv. `tacho roofline -o roofline.csv` on that machine measures them.",
                             width - 2, 2) +
             "\n";
    return out.empty() ? out : "\n" + paint("Not measured", Paint::kBold) + "\n" + out;
  }

  // How many dispatches lack counters; the tables name them.
  std::string left_out() const {
    std::set<uint32_t> dispatches;
    std::set<std::string> metrics;
    for (const ResultTable& table : run_.all().tables)
      for (const LeftOut& each : table.left_out) {
        dispatches.insert(each.dispatches.begin(), each.dispatches.end());
        metrics.insert(each.ids.begin(), each.ids.end());
      }
    if (dispatches.empty()) return {};
    return fmt::format("Counters: {} left out of {} (--full names them).",
                       how_many_of(dispatches.size(), how_many(run_.rows().size(), "dispatch", "dispatches"),
                                   "lacks some and is", "lack some and are"),
                       how_many(metrics.size(), "metric", "metrics"));
  }

  // Several runs

  std::string percent_text(std::optional<double> percent) const {
    if (!percent) return "";
    if (std::isinf(*percent)) return *percent > 0 ? "new" : "-new";
    std::string text = fmt::format("{:+.1f} %", *percent);
    if (options_.report_diff > 0 && std::fabs(*percent) > options_.report_diff) text = "! " + text;
    return text;
  }

  // The kernel of another run that has the same name, nothing where there is none.
  static std::optional<uint32_t> same_kernel(const Analysis& run, std::string_view name) {
    for (const KernelStatistics& each : run.kernels())
      if (kernel_name(run, each.kernel) == name) return each.kernel;
    return std::nullopt;
  }
  static const KernelStatistics* statistics(const Analysis& run, std::string_view name) {
    for (const KernelStatistics& each : run.kernels())
      if (kernel_name(run, each.kernel) == name) return &each;
    return nullptr;
  }

  std::string compared_kernels() const {
    report::PrintedTable table;
    for (size_t r = 0; r < runs_.size(); ++r) {
      table.columns.push_back(time_column(names_[r]));
      if (r > 0) table.columns.push_back({"change", report::Align::kRight});
    }
    table.columns.push_back({"kernel, mean time"});
    table.columns.back().shrink = true;
    std::vector<std::string> kernels;
    for (const Analysis& run : runs_)
      for (const KernelStatistics& kernel : run.kernels())
        if (const std::string name = kernel_name(run, kernel.kernel);
            kernel.selected && std::find(kernels.begin(), kernels.end(), name) == kernels.end())
          kernels.push_back(name);
    const size_t most = options_.max_stat_num;
    for (size_t k = 0; k < std::min(kernels.size(), most); ++k) {
      std::vector<report::Cell> row;
      const KernelStatistics* const base = statistics(run_, kernels[k]);
      for (size_t r = 0; r < runs_.size(); ++r) {
        const KernelStatistics* const here = statistics(runs_[r], kernels[k]);
        row.push_back(here != nullptr ? time_cell(here->mean) : report::Cell{});
        if (r > 0)
          row.emplace_back(base == nullptr   ? std::string(here != nullptr ? "new" : "")
                           : here == nullptr ? std::string("gone")
                                             : percent_text((here->mean - base->mean) / base->mean * 100));
      }
      row.emplace_back(kernels[k]);
      table.rows.push_back(std::move(row));
    }
    std::string out = "\n" + paint("Kernels", Paint::kBold) + "\n" + report::to_text(table, style_);
    if (kernels.size() > most)
      out +=
          paint(fmt::format("  {} (--max-stat-num)\n", how_many(kernels.size() - most, "more kernel", "more kernels")),
                Paint::kDim);
    return out;
  }

  // Metrics by how many times they grew or shrank; equal numbers of several tables are one change.
  std::string changes_of(uint32_t kernel) const {
    const std::string name = kernel_name(run_, kernel);
    std::vector<Evaluation> evaluations;
    evaluations.push_back(run_.evaluate(kernel));
    for (size_t r = 1; r < runs_.size(); ++r) {
      const auto other = same_kernel(runs_[r], name);
      if (!other) return {};
      evaluations.push_back(runs_[r].evaluate(*other));
    }
    std::vector<const Evaluation*> pointers;
    for (const Evaluation& each : evaluations) pointers.push_back(&each);
    const ComparedRuns compared = compare(pointers);
    struct Change {
      const ComparedTable* table;
      const ComparedRow* row;
      double size;
    };
    std::vector<Change> changes;
    std::set<std::vector<std::optional<double>>> seen;
    for (const ComparedTable& table : compared.tables)
      for (const ComparedRow& row : table.rows) {
        if (row.columns.empty() || row.base->channel >= 0) continue;
        const ComparedValue& value = row.columns.front();
        double size = 0;
        for (size_t r = 1; r < value.values.size(); ++r) {
          if (!value.values[0] || !value.values[r] || *value.values[0] == *value.values[r]) continue;
          const double a = std::fabs(*value.values[0]), b = std::fabs(*value.values[r]);
          size =
              std::max(size, a == 0 || b == 0 ? std::numeric_limits<double>::infinity() : std::fabs(std::log(b / a)));
        }
        if (size == 0 || !seen.insert(value.values).second) continue;
        changes.push_back({&table, &row, size});
      }
    std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.size > b.size; });
    std::string out = "\n" + paint("Biggest changes", Paint::kBold) + "  " +
                      paint(cut_middle(report::clean(name), std::max<size_t>(screen_.width, 60) - 20), Paint::kCyan) +
                      "\n";
    if (changes.empty()) return out + "  no metric changed\n";
    report::PrintedTable table;
    table.columns = {{"id"}, {"metric"}};
    table.columns[1].shrink = true;
    for (size_t r = 0; r < runs_.size(); ++r) {
      table.columns.push_back({names_[r], report::Align::kRight});
      if (r > 0) table.columns.push_back({"change", report::Align::kRight});
    }
    table.columns.push_back({"unit"});
    for (size_t i = 0; i < std::min(changes.size(), kChanges); ++i) {
      const ComparedRow& row = *changes[i].row;
      const ComparedValue& value = row.columns.front();
      std::vector<report::Cell> cells = {row.base->id, std::string(row.base->metric->name)};
      for (size_t r = 0; r < runs_.size(); ++r) {
        cells.push_back(value.values[r] ? report::Cell{*value.values[r]} : report::Cell{});
        if (r > 0) cells.emplace_back(percent_text(value.percent[r]));
      }
      const std::string unit = normalised_unit(row.base->metric->unit, run_.options().normalisation);
      cells.emplace_back(std::string(readable_unit(unit)));
      table.rows.push_back(std::move(cells));
    }
    out += report::to_text(table, style_);
    if (changes.size() > kChanges)
      out += paint(
          fmt::format("  {} changed (--full)\n", how_many(changes.size() - kChanges, "more metric", "more metrics")),
          Paint::kDim);
    return out;
  }

  std::string findings_changes() const {
    if (!run_.options().advice) return {};
    using Key = std::pair<std::string, std::string>;  // kernel, slug
    const auto of = [](const Analysis& run) {
      std::map<Key, const Finding*> found;
      for (const Finding& finding : run.findings())
        found.emplace(Key(kernel_name(run, finding.kernel), finding.slug), &finding);
      return found;
    };
    const size_t width = std::max<size_t>(screen_.width, 60);
    const auto before = of(run_);
    std::string out;
    for (size_t r = 1; r < runs_.size(); ++r) {
      const auto now = of(runs_[r]);
      std::string gone, come;
      size_t both = 0;
      const auto line = [&](char sign, const Finding& finding, std::string_view kernel) {
        return fmt::format(
            "  {} {}\n", sign,
            report::wrapped(fmt::format("{}{}: {} ({})", finding.possible ? "possible: " : "", finding.title,
                                        savings_text(finding), cut_middle(report::clean(kernel), 30)),
                            width - 4, 4));
      };
      for (const auto& [key, finding] : before) {
        if (!now.contains(key))
          gone += line('-', *finding, key.first);
        else
          ++both;
      }
      for (const auto& [key, finding] : now)
        if (!before.contains(key)) come += line('+', *finding, key.first);
      out += "\n" + paint(fmt::format("Findings, {} against {}", names_[r], names_[0]), Paint::kBold) + "\n";
      out += gone + come;
      if (both > 0) out += paint(fmt::format("  {} in both\n", both), Paint::kDim);
      if (gone.empty() && come.empty() && both == 0) out += "  none in either\n";
    }
    return out;
  }

  std::span<const Analysis> runs_;
  const Analysis& run_;
  const TextOptions& options_;
  const report::Screen& screen_;
  report::TextStyle style_;
  std::vector<std::string> names_;
};

}  // namespace

std::string run_heading(const Analysis& run, std::string_view name, const report::Screen& screen) {
  const workload::SysInfo& info = run.workload().sysinfo;
  double total = 0;
  size_t kernels = 0, dispatches = 0;
  for (const KernelStatistics& kernel : run.kernels())
    if (kernel.selected) {
      total += kernel.sum;
      dispatches += kernel.count;
      ++kernels;
    }
  // The folder names a run: the workload's name in sysinfo.csv is whatever somebody typed on another machine.
  const std::string path = report::clean(run.workload().path);
  std::string out = name.empty() || name == path ? report::painted(path, Paint::kBold, screen.colour)
                                                 : report::painted(name, Paint::kBold, screen.colour) + "  " + path;
  out += "\n";
  const std::string model = report::clean(info.get("gpu_model"));
  const bool machine = model != run.catalog().architecture;  // "virtual" and "cpu" are named after their catalogs
  std::string line = machine ? fmt::format("{} {}", run.catalog().architecture, model) : model;
  if (const double units = info.number("cu_per_gpu"); units > 0 && machine)
    line += fmt::format(", {:.0f} compute unit{}", units, units == 1 ? "" : "s");
  line += fmt::format("; {} dispatch{} of {} kernel{}, {}", dispatches, dispatches == 1 ? "" : "es", kernels,
                      kernels == 1 ? "" : "s", report::format_duration(total));
  if (!run.diagnosis().weight_words.empty()) line += " of CPU time";
  return out + line + "\n";
}

std::string to_screen(std::span<const Analysis> runs, const TextOptions& options) {
  Screen screen(runs, options);
  return runs.size() > 1 ? screen.several() : screen.one();
}

std::string changes_text(std::span<const Analysis> runs, const TextOptions& options) {
  return Screen(runs, options).changes();
}

}  // namespace tacho::metric
