// Analysis: from a folder to evaluated tables.
#include "metric/analysis/analysis.h"

#include <regex.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

#include "metric/analysis/diagnose.h"
#include "metric/analysis/explain.h"
#include "metric/analysis/reduction.h"
#include "metric/analysis/roofline_points.h"
#include "metric/catalog/builtin/builtin.h"

namespace tacho::metric {

namespace {

using workload::Workload;

// Formulas parsed once for equal texts; the texts live in the catalog.
class FormulaCache {
 public:
  Result<const Formula*> get(std::string_view text) {
    const auto [place, added] = formulas_.try_emplace(text);
    if (added) {
      auto formula = parse_formula(text);
      if (!formula) {
        formulas_.erase(place);
        return fail("{}", formula.error().message);
      }
      place->second = std::move(*formula);
    }
    return &place->second;
  }
  const Formula* find(std::string_view text) const {
    const auto found = formulas_.find(text);
    return found == formulas_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_map<std::string_view, Formula> formulas_;
};

std::optional<int64_t> integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

double median_of(std::vector<double>& values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

constexpr std::string_view kDurationFormula = "End_Timestamp - Start_Timestamp";

// Dispatch ids chosen by -d: single ids, "a:b" and "a-b" ranges (both ends included), "> n".
struct DispatchFilter {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  std::vector<std::string> texts;

  bool contains(int64_t id) const {
    return std::any_of(ranges.begin(), ranges.end(), [&](const auto& r) { return id >= r.first && id <= r.second; });
  }
};

Result<DispatchFilter> parse_dispatches(const std::vector<std::string>& texts) {
  DispatchFilter filter;
  for (size_t i = 0; i < texts.size(); ++i) {
    std::string text(trimmed(texts[i]));
    if (text == ">" && i + 1 < texts.size()) text += std::string(trimmed(texts[++i]));
    if (text.starts_with(">")) {
      const auto after = integer(trimmed(std::string_view(text).substr(1)));
      if (!after) return fail("-d '{}': expected a dispatch id behind '>'", text);
      filter.ranges.emplace_back(*after + 1, std::numeric_limits<int64_t>::max());
    } else {
      const size_t split = text.find_first_of(":-", 1);
      const auto first = integer(std::string_view(text).substr(0, split));
      const auto last = split == std::string::npos ? first : integer(std::string_view(text).substr(split + 1));
      if (!first || !last || *last < *first)
        return fail("-d '{}': expected a dispatch id, a range like 2:5 or '> n'", text);
      filter.ranges.emplace_back(*first, *last);
    }
    filter.texts.push_back(std::move(text));
  }
  return filter;
}

// POSIX regular expressions do not throw; an invalid one is an error with regerror's reason.
class Regex {
 public:
  static Result<std::unique_ptr<Regex>> compile(const std::string& text) {
    auto regex = std::unique_ptr<Regex>(new Regex);
    if (const int error = regcomp(&regex->regex_, text.c_str(), REG_EXTENDED | REG_NOSUB); error != 0) {
      char message[200];
      regerror(error, &regex->regex_, message, sizeof message);
      return fail("-k '{}': neither a kernel id, nor part of a kernel's name, nor a regular expression ({})", text,
                  message);
    }
    regex->valid_ = true;
    return regex;
  }
  ~Regex() {
    if (valid_) regfree(&regex_);
  }
  bool matches(const std::string& text) const { return regexec(&regex_, text.c_str(), 0, nullptr, 0) == 0; }

 private:
  Regex() = default;
  regex_t regex_{};
  bool valid_ = false;
};

}  // namespace

double time_unit_divisor(std::string_view unit) {
  if (unit == "ns") return 1;
  if (unit == "us") return 1e3;
  if (unit == "ms") return 1e6;
  if (unit == "s") return 1e9;
  return 0;
}

std::string ResultTable::id() const {
  return fmt::format("{}.{}", table->block, table->number);
}

std::string ResultTable::title(std::string_view normalisation) const {
  std::string text(table->title);
  constexpr std::string_view kPlace = "per normUnit";
  if (const size_t at = text.find(kPlace); at != std::string::npos)
    text.replace(at, kPlace.size(), normalised_unit("$norm", normalisation));
  return text;
}

bool ResultTable::has_value(const ResultRow& row) const {
  for (size_t c = 0; c < row.cells.size(); ++c)
    if (table->columns[c].role == ColumnRole::kValue && table->columns[c].key != "peak" &&
        !std::holds_alternative<std::monostate>(row.cells[c]))
      return true;
  return false;
}

bool ResultTable::empty() const {
  return std::none_of(rows.begin(), rows.end(), [&](const ResultRow& row) { return has_value(row); });
}

struct Analysis::Impl {
  AnalysisOptions options;
  Catalog catalog;
  Workload workload;
  FormulaCache formulas;
  std::vector<Selection> selections;  // of -b or of the recorded blocks; empty: everything
  bool given_blocks = false;
  std::vector<uint32_t> rows, listed;
  std::vector<uint32_t> repeats;  // of every dispatch: number of its launch
  std::vector<KernelStatistics> kernels;
  std::vector<std::string> warnings, id_notes;
  Evaluation evaluation;
  std::vector<IntensityPoint> kernel_points, dispatch_points;
  Diagnosis diagnosis;
  std::optional<workload::PcSamples> pc_samples;
  RuleBook rules;
  IntensityFormulas intensity, first_intensity;

  // Selection

  bool shows_table(int block, int table) const {
    if (block == 0) return true;
    if (block == 1 && !given_blocks) return true;
    if (selections.empty()) return true;
    return std::any_of(selections.begin(), selections.end(), [&](const Selection& s) {
      return s.block != nullptr && s.block->number == block && (s.table == nullptr || s.table->number == table);
    });
  }

  bool shows_metric(const MetricTable& table, const Metric& metric) const {
    if (selections.empty()) return true;
    return std::any_of(selections.begin(), selections.end(), [&](const Selection& s) {
      if (s.block == nullptr || s.block->number != table.block) return false;
      if (s.table == nullptr) return true;
      if (s.table->number != table.number) return false;
      return s.metric == nullptr || s.metric->slug == metric.slug;
    });
  }

  Status select_blocks() {
    given_blocks = !options.blocks.empty();
    std::vector<std::string> meanings;
    for (const std::string& text : options.blocks) {
      TACHO_ASSIGN(const Selection selection, resolve(catalog, text, options.ids));
      std::string meaning = documents_meaning(catalog, text, selection);
      if (!meaning.empty() && options.ids == IdScheme::kV33)
        meanings.push_back(std::move(meaning));
      else if (!meaning.empty())
        id_notes.push_back(fmt::format("in the users' documents {}; here it is the latter, -b {} shows the other",
                                       meaning, selection.elsewhere->slug));
      selections.push_back(selection);
    }
    if (std::string note = ids_note(catalog, meanings); !note.empty()) id_notes.push_back(std::move(note));
    if (given_blocks) return {};
    // Blocks that were not recorded cannot be shown. Hardware block names of old versions ("SQ") are not ids and choose
    // nothing.
    for (const std::string& text : workload.recorded_blocks) {
      const auto selection = resolve(catalog, text, IdScheme::kV33);
      if (selection) selections.push_back(*selection);
    }
    return {};
  }

  const std::vector<Cell>& cells_of(const Metric& metric) const {
    return options.compat && !metric.compat_cells.empty() ? metric.compat_cells : metric.cells;
  }

  Status check_formulas(NameCollector& names) {
    for (const Block& block : catalog.blocks)
      for (const MetricTable& table : block.tables)
        for (const Metric& metric : table.metrics) {
          if (!shows_table(block.number, table.number) && !needed_by_rules(metric.slug)) continue;
          for (size_t c = 0; c < table.columns.size() && c < cells_of(metric).size(); ++c) {
            const Cell& cell = cells_of(metric)[c];
            if (table.columns[c].role != ColumnRole::kValue || cell.formula.empty()) continue;
            const auto formula = formulas.get(cell.formula);
            if (!formula)
              return fail("metric {} ({}), column '{}': {}; in the formula \"{}\"", metric.slug, to_string(metric.id),
                          table.columns[c].title, formula.error().message, cell.formula);
            names.add(**formula, metric.coll_level);
          }
        }
    return {};
  }

  std::map<std::string_view, char> rule_slugs;
  bool needed_by_rules(std::string_view slug) const { return rule_slugs.contains(slug); }

  // Dispatches

  double duration(std::span<const double> start, std::span<const double> end, uint32_t row) const {
    return start.empty() || end.empty() ? std::numeric_limits<double>::quiet_NaN() : end[row] - start[row];
  }

  Status choose_dispatches() {
    const size_t count = workload.dispatches.size();
    TACHO_ASSIGN(const DispatchFilter filter, parse_dispatches(options.dispatches));
    if (!filter.ranges.empty()) {
      int64_t least = workload.dispatches[0].id, most = least;
      for (const workload::Dispatch& dispatch : workload.dispatches) {
        least = std::min(least, dispatch.id);
        most = std::max(most, dispatch.id);
      }
      for (size_t i = 0; i < filter.ranges.size(); ++i) {
        const auto& range = filter.ranges[i];
        const bool any = std::any_of(workload.dispatches.begin(), workload.dispatches.end(),
                                     [&](const auto& d) { return d.id >= range.first && d.id <= range.second; });
        if (!any)
          return fail("-d {}: no such dispatch; the run has the dispatches {} to {}", filter.texts[i], least, most);
      }
    }
    std::vector<int64_t> gpus;
    for (const std::string& text : options.gpus) {
      const auto gpu = integer(trimmed(text));
      const bool any = gpu && std::any_of(workload.dispatches.begin(), workload.dispatches.end(),
                                          [&](const auto& d) { return d.gpu == *gpu; });
      if (!any) {
        std::map<int64_t, char> known;
        for (const auto& dispatch : workload.dispatches) known[dispatch.gpu] = 0;
        std::string list;
        for (const auto& [id, unused] : known) list += fmt::format("{}{}", list.empty() ? "" : ", ", id);
        return fail("--gpu-id {}: no dispatch ran on that GPU; the run has {}", text, list);
      }
      gpus.push_back(*gpu);
    }
    for (uint32_t r = 0; r < count; ++r) {
      const workload::Dispatch& dispatch = workload.dispatches[r];
      if (!filter.ranges.empty() && !filter.contains(dispatch.id)) continue;
      if (!gpus.empty() && std::find(gpus.begin(), gpus.end(), dispatch.gpu) == gpus.end()) continue;
      if (options.within && !options.within->contains(dispatch.id)) continue;
      listed.push_back(r);
    }
    if (listed.empty() && options.within) return fail("-d, --gpu-id and the operator together leave no dispatch");
    if (listed.empty()) return fail("-d and --gpu-id together leave no dispatch");
    return {};
  }

  // Dispatches of a kernel with the same sizes are repeats of each other.
  void find_repeats() {
    const workload::CounterTable& counters = workload.passes.front().counters;
    std::array<std::span<const double>, 3> sizes;
    constexpr std::array<std::string_view, 3> kSizes = {"Grid_Size", "Workgroup_Size", "LDS_Per_Workgroup"};
    for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = counters.column(kSizes[i]);
    std::map<std::array<double, 4>, uint32_t> launches;
    bool any = false;
    repeats.resize(workload.dispatches.size());
    for (uint32_t r = 0; r < repeats.size(); ++r) {
      std::array<double, 4> launch = {static_cast<double>(workload.dispatches[r].kernel), 0, 0, 0};
      for (size_t i = 0; i < sizes.size(); ++i)
        if (!sizes[i].empty() && !std::isnan(sizes[i][r])) launch[i + 1] = sizes[i][r];
      const auto [place, added] = launches.try_emplace(launch, static_cast<uint32_t>(launches.size()));
      repeats[r] = place->second;
      any = any || !added;
    }
    if (!any) repeats.clear();
  }

  // Kernels that have equal names after rocprof's suffixes were different rows upstream; they stay that.
  std::vector<KernelStatistics> statistics(const std::vector<uint32_t>& of) const {
    const auto start = workload.passes.front().counters.column("Start_Timestamp");
    const auto end = workload.passes.front().counters.column("End_Timestamp");
    std::map<uint32_t, std::vector<double>> durations;
    std::map<uint32_t, size_t> counts;
    for (const uint32_t row : of) {
      const double ns = duration(start, end, row);
      const uint32_t kernel = workload.dispatches[row].kernel;
      ++counts[kernel];
      if (!std::isnan(ns)) durations[kernel].push_back(ns);
    }
    std::vector<KernelStatistics> result;
    double total = 0;
    for (const auto& [kernel, count] : counts) {
      KernelStatistics statistics;
      statistics.kernel = kernel;
      statistics.count = count;
      std::vector<double>& values = durations[kernel];
      for (const double ns : values) statistics.sum += ns;
      statistics.mean = values.empty() ? std::numeric_limits<double>::quiet_NaN()
                                       : statistics.sum / static_cast<double>(values.size());
      statistics.median = median_of(values);
      total += statistics.sum;
      result.push_back(statistics);
    }
    for (KernelStatistics& statistics : result) statistics.share = statistics.sum / total * 100;
    std::sort(result.begin(), result.end(), [&](const KernelStatistics& a, const KernelStatistics& b) {
      if (a.sum != b.sum) return a.sum > b.sum;
      return workload.kernels[a.kernel] < workload.kernels[b.kernel];
    });
    return result;
  }

  Status choose_kernels() {
    kernels = statistics(listed);
    if (options.kernels.empty()) {
      rows = listed;
      return {};
    }
    std::vector<char> chosen(workload.kernels.size(), 0);
    for (const std::string& text : options.kernels) {
      if (const auto id = integer(trimmed(text)); id) {
        if (*id < 0 || static_cast<size_t>(*id) >= kernels.size())
          return fail("-k {}: no such kernel; the ids of this run are 0 to {} (table 0.1)", text, kernels.size() - 1);
        chosen[kernels[static_cast<size_t>(*id)].kernel] = 1;
        continue;
      }
      bool any = false;
      const auto choose = [&](auto&& matches) {
        for (const KernelStatistics& statistics : kernels)
          if (matches(workload.kernels[statistics.kernel])) {
            chosen[statistics.kernel] = 1;
            any = true;
          }
      };
      const std::string_view wanted = trimmed(text);
      choose([&](const std::string& name) {
        return trimmed(name) == wanted || workload::plain_kernel_name(name) == wanted;
      });
      if (!any) choose([&](const std::string& name) { return name.find(wanted) != std::string::npos; });
      if (!any) {
        TACHO_ASSIGN(const auto regex, Regex::compile(text));
        choose([&](const std::string& name) { return regex->matches(name); });
      }
      if (!any)
        return fail("-k '{}': no kernel of this run has that name or matches it; --list-stats lists them", text);
    }
    for (KernelStatistics& statistics : kernels) statistics.selected = chosen[statistics.kernel] != 0;
    for (const uint32_t row : listed)
      if (chosen[workload.dispatches[row].kernel] != 0) rows.push_back(row);
    return {};
  }

  // Evaluation

  Environment environment(const std::vector<uint32_t>& of, std::string_view normalisation = {}) const {
    Environment env;
    env.workload = &workload;
    if (of.size() != workload.dispatches.size()) env.rows = of;
    env.normalisation = normalisation.empty() ? std::string_view(options.normalisation) : normalisation;
    env.denominator = denominator_of(catalog, env.normalisation);
    env.sum_ratios = options.sum_ratios;
    env.compat = options.compat;
    if (!options.compat) env.recorded_as = catalog.facts.recorded_as;
    env.repeats = repeats;
    return env;
  }

  std::string printed_id(const Metric& metric, int32_t channel) const {
    MetricId id = metric.id;
    bool shadowed = false;
    if (options.ids != IdScheme::kV33)
      for (const SeedId& seed : catalog.seed_ids) {
        if (options.ids == IdScheme::kSeedAnalyze ? !seed.analyze : !seed.profile) continue;
        if (seed.slug == metric.slug) {
          id = seed.id;
          shadowed = false;
          break;
        }
        shadowed = shadowed || seed.id == metric.id;
      }
    if (channel >= 0) return fmt::format("{}.{}.{}", id.block, id.table, channel);
    return to_string(id) + (shadowed ? "*" : "");
  }

  // A value that the program has yet to compute, and its cell.
  struct Pending {
    size_t table, row, column;
    Program::Node node;
  };

  // The tables with everything but their values, which are compiled into the program.
  std::vector<Pending> compile_tables(Program& program, Evaluation& result) const {
    std::vector<Pending> pending;
    for (const Block& block : catalog.blocks)
      for (const MetricTable& table : block.tables) {
        if (table.type != TableType::kMetrics || table.metrics.empty() || !shows_table(block.number, table.number))
          continue;
        ResultTable out;
        out.block = &block;
        out.table = &table;
        for (const Metric& metric : table.metrics) {
          if (!shows_metric(table, metric)) continue;
          int32_t repeat = 1;
          if (!table.repeat.empty()) {
            const double count = program.specification(table.repeat.substr(table.repeat[0] == '$' ? 1 : 0));
            repeat = count >= 1 && count <= 4096 ? static_cast<int32_t>(count) : 0;
          }
          for (int32_t i = 0; i < repeat; ++i) {
            ResultRow row;
            row.metric = &metric;
            row.channel = table.repeat.empty() ? -1 : i;
            row.id = printed_id(metric, row.channel);
            row.cells.resize(table.columns.size());
            const Context context{metric.coll_level, row.channel};
            std::string_view last_formula;
            Program::Node last_node = 0;
            for (size_t c = 0; c < table.columns.size(); ++c) {
              const MetricColumn& column = table.columns[c];
              switch (column.role) {
                case ColumnRole::kName:
                  if (row.channel >= 0) {
                    row.cells[c] = int64_t{row.channel};
                  } else {
                    row.cells[c] =
                        std::string(options.compat && !metric.compat_name.empty() ? metric.compat_name : metric.name);
                  }
                  break;
                case ColumnRole::kUnit: {
                  std::string unit = normalised_unit(metric.unit, options.normalisation);
                  if (metric.unit == "ns") unit = options.time_unit;
                  row.cells[c] = std::move(unit);
                  break;
                }
                case ColumnRole::kText:
                  row.cells[c] = std::string(metric.cells[c].formula);
                  break;
                case ColumnRole::kValue: {
                  const Cell& cell = cells_of(metric)[c];
                  if (cell.formula.empty()) break;
                  const Formula* formula = formulas.find(cell.formula);
                  if (formula == nullptr) break;
                  if (cell.formula.data() != last_formula.data() || cell.formula.size() != last_formula.size()) {
                    last_node = program.compile(*formula, context);
                    last_formula = cell.formula;
                  }
                  const auto [op, q] = reduction_op(cell.reduction);
                  pending.push_back({result.tables.size(), out.rows.size(), c, program.keep(last_node, op, q)});
                  // Whether there is an error depends on the normalisation, the places do not.
                  if (column.key == "avg" && cell.reduction == Reduction::kAvg && !repeats.empty())
                    pending.push_back(
                        {result.tables.size(), out.rows.size(), table.columns.size(), program.keep_error(last_node)});
                  break;
                }
              }
            }
            out.rows.push_back(std::move(row));
          }
        }
        result.tables.push_back(std::move(out));
      }
    return pending;
  }

  Evaluation evaluate(const std::vector<uint32_t>& of, std::string_view normalisation = {}) const {
    Program program(environment(of, normalisation));
    Evaluation result;
    const double time_divisor = time_unit_divisor(options.time_unit);
    const std::vector<Pending> pending = compile_tables(program, result);
    program.run();
    for (const Pending& at : pending) {
      Value value = program.value(at.node);
      ResultRow& row = result.tables[at.table].rows[at.row];
      if (at.column == row.cells.size()) {
        if (value.kind == Value::Kind::kNumber && std::isfinite(value.number))
          row.error = row.metric->unit == "ns" ? value.number / time_divisor : value.number;
        continue;
      }
      if (value.kind == Value::Kind::kText) row.cells[at.column] = std::move(value.text);
      if (value.kind != Value::Kind::kNumber) continue;
      if (!options.compat && !std::isfinite(value.number)) continue;  // something by 0
      const bool is_time = row.metric->unit == "ns";
      row.cells[at.column] = is_time ? value.number / time_divisor : value.number;
    }
    CounterGaps gaps(program);
    list_not_computable(program, gaps, result);
    for (ResultTable& table : result.tables) list_left_out(program, gaps, table, true);
    if (!workload.extrapolated.empty()) mark_extrapolated(program, result);
    return result;
  }

  void mark_extrapolated(const Program& program, Evaluation& result) const {
    for (ResultTable& table : result.tables)
      for (ResultRow& row : table.rows)
        for (const Cell& cell : cells_of(*row.metric)) {
          const Formula* const formula = cell.formula.empty() ? nullptr : formulas.find(cell.formula);
          if (formula == nullptr) continue;
          for (const FormulaInput& input : program.inputs(*formula, {row.metric->coll_level, row.channel}))
            row.extrapolated = row.extrapolated || std::binary_search(workload.extrapolated.begin(),
                                                                      workload.extrapolated.end(), input.name);
        }
  }

  // The inputs of a metric's values, peaks aside.
  std::vector<FormulaInput> inputs_of(const Program& program, const ResultTable& table, const ResultRow& row) const {
    std::vector<FormulaInput> inputs;
    std::string_view last_formula;
    const std::vector<Cell>& cells = cells_of(*row.metric);
    for (size_t c = 0; c < cells.size() && c < table.table->columns.size(); ++c) {
      const MetricColumn& column = table.table->columns[c];
      if (column.role != ColumnRole::kValue || column.key == "peak" || cells[c].formula.empty()) continue;
      const Formula* const formula = cells[c].formula == last_formula ? nullptr : formulas.find(cells[c].formula);
      if (formula == nullptr) continue;
      last_formula = cells[c].formula;
      for (FormulaInput& input : program.inputs(*formula, {row.metric->coll_level, row.channel}))
        if (std::find(inputs.begin(), inputs.end(), input) == inputs.end()) inputs.push_back(std::move(input));
    }
    return inputs;
  }

  // `evaluated`: rows without a value are left to not_computable.
  void list_left_out(const Program& program, CounterGaps& gaps, ResultTable& table, bool evaluated) const {
    for (const ResultRow& row : table.rows) {
      if (evaluated && !table.has_value(row)) continue;
      CounterGaps::Found found = gaps.of(inputs_of(program, table, row));
      if (found.dispatches.empty() || found.dispatches.size() == program.rows()) continue;
      const bool repeated = row.channel >= 0;
      add_left_out(table.left_out, repeated ? table.id() : row.id,
                   repeated ? table.title(options.normalisation) : std::string(row.metric->name), std::move(found));
    }
  }

  void list_not_computable(const Program& program, CounterGaps& gaps, Evaluation& result) const {
    for (const ResultTable& table : result.tables) {
      // A repeated table counts as one metric: it is missing when no channel has a number.
      if (!table.table->repeat.empty()) {
        if (!table.rows.empty() && table.empty())
          result.not_computable.push_back(why(program, gaps, table, table.rows.front()));
        continue;
      }
      for (const ResultRow& row : table.rows)
        if (!table.has_value(row)) result.not_computable.push_back(why(program, gaps, table, row));
    }
  }

  NotComputable why(const Program& program, CounterGaps& gaps, const ResultTable& table, const ResultRow& row) const {
    NotComputable entry;
    entry.metric = row.metric;
    entry.id = table.table->repeat.empty() ? row.id : table.id();
    const std::vector<FormulaInput> inputs = inputs_of(program, table, row);
    const std::vector<Cell>& cells = cells_of(*row.metric);
    entry.on_this_gpu = false;
    for (size_t c = 0; c < cells.size() && c < table.table->columns.size(); ++c) {
      const MetricColumn& column = table.table->columns[c];
      if (column.role == ColumnRole::kValue && column.key != "peak" && !cells[c].formula.empty())
        entry.on_this_gpu = true;
    }
    const auto lacks = [&](std::string name) {
      if (std::find(entry.missing.begin(), entry.missing.end(), name) == entry.missing.end())
        entry.missing.push_back(std::move(name));
    };
    for (const FormulaInput& input : inputs) {
      if (input.available) continue;
      if (!input.pass.empty() && workload.pass(input.pass) == nullptr)
        lacks(fmt::format("{}.csv", input.pass));
      else
        lacks(input.name.substr(0, input.name.find('[')));
    }
    CounterGaps::Found found = gaps.of(inputs);
    for (std::string& counter : found.empty) lacks(std::move(counter));
    if (entry.missing.empty() && program.rows() > 0 && found.dispatches.size() == program.rows())
      entry.apart = std::move(found.counters);
    return entry;
  }

  // Duration, FLOPs and bytes at L1, L2, HBM and LDS of every dispatch, then FLOPs by kind; 0 if there is no
  // formula.
  std::vector<Program::Node> add_intensities(Program& program) const {
    std::vector<std::string_view> texts = {kDurationFormula,   intensity.flops,     intensity.l1_bytes,
                                           intensity.l2_bytes, intensity.hbm_bytes, intensity.lds_bytes};
    for (const IntensityFormulas::Kind& kind : intensity.kinds) texts.push_back(kind.flops);
    std::vector<Program::Node> nodes(texts.size());
    for (size_t i = 0; i < texts.size(); ++i)
      if (const Formula* formula = texts[i].empty() ? nullptr : formulas.find(texts[i]))
        nodes[i] = program.add(*formula, {});
    return nodes;
  }

  PageProgram page_program() const {
    std::vector<uint32_t> everything(workload.dispatches.size());
    for (uint32_t r = 0; r < everything.size(); ++r) everything[r] = r;
    Program program(environment(everything));
    PageProgram page;
    std::vector<Program::Node> nodes;
    for (size_t n = 0; n < kNormalisations.size(); ++n) {
      program.set_normalisation(kNormalisations[n], denominator_of(catalog, kNormalisations[n]));
      Evaluation result;
      for (const Pending& at : compile_tables(program, result)) {
        nodes.push_back(at.node);
        if (n == 0) page.places.push_back({at.table, at.row, at.column});
      }
      if (n > 0) continue;
      if (!workload.extrapolated.empty()) mark_extrapolated(program, result);
      CounterGaps gaps(program);
      for (ResultTable& table : result.tables) list_left_out(program, gaps, table, false);
      page.tables = std::move(result.tables);
    }
    for (const Program::Node node : add_intensities(program)) nodes.push_back(node);
    page.graph = program.graph(nodes);
    const std::vector<uint32_t>& wanted = page.graph.wanted;
    const size_t count = page.places.size();
    for (size_t n = 0; n < kNormalisations.size(); ++n)
      page.values[n].assign(wanted.begin() + static_cast<ptrdiff_t>(n * count),
                            wanted.begin() + static_cast<ptrdiff_t>((n + 1) * count));
    page.dispatch_values.assign(wanted.begin() + static_cast<ptrdiff_t>(kNormalisations.size() * count), wanted.end());
    return page;
  }

  void find_intensities() {
    if (intensity.flops.empty()) return;
    Program program(environment(rows));
    IntensityInputs inputs;
    const std::vector<Program::Node> nodes = add_intensities(program);
    program.run();
    inputs.duration = program.column(nodes[0]);
    inputs.flops = program.column(nodes[1]);
    inputs.l1_bytes = program.column(nodes[2]);
    inputs.l2_bytes = program.column(nodes[3]);
    inputs.hbm_bytes = program.column(nodes[4]);
    inputs.lds_bytes = program.column(nodes[5]);
    for (size_t i = 6; i < nodes.size(); ++i) inputs.kinds.push_back(program.column(nodes[i]));
    kernel_points = intensity_points(workload, rows, inputs, true, options.compat);
    dispatch_points = intensity_points(workload, rows, inputs, false, options.compat);
  }

  void diagnose_kernels() {
    if (!options.advice) return;
    // A finding about a kernel that hardly runs helps nobody.
    constexpr double kLeastShare = 1;
    constexpr size_t kMostKernels = 10;
    // Times that are not the device's do not say which kernel matters.
    const bool by_time = rules.screen().weight.steps.empty();
    constexpr size_t kMostWithoutTime = 50;
    size_t selected = 0;
    std::vector<std::vector<uint32_t>> of_kernel(workload.kernels.size());
    for (const uint32_t row : rows) of_kernel[workload.dispatches[row].kernel].push_back(row);
    std::vector<KernelRows> judged;
    for (const KernelStatistics& statistics : kernels) {
      if (!statistics.selected || of_kernel[statistics.kernel].empty()) continue;
      ++selected;
      if (judged.size() == (by_time ? kMostKernels : kMostWithoutTime) ||
          (by_time && !judged.empty() && !(statistics.share >= kLeastShare)))
        continue;
      judged.push_back({statistics.kernel, statistics.sum, std::move(of_kernel[statistics.kernel])});
    }
    DiagnosisInput input{.catalog = catalog,
                         .rules = rules,
                         .workload = workload,
                         .compat = options.compat,
                         .most_findings = options.most_findings,
                         .total_time = 0,
                         .formula_of = [&](std::string_view text) { return formulas.find(text); },
                         .environment =
                             [&](const std::vector<uint32_t>& of) {
                               Environment env = environment(of, "per_kernel");
                               env.repeats = {};
                               return env;
                             },
                         .printed_id = [&](const Metric& metric) { return printed_id(metric, -1); }};
    for (const KernelStatistics& statistics : kernels) input.total_time += statistics.sum;
    const size_t count = judged.size();
    diagnosis = diagnose(input, judged);
    diagnosis.left_out = selected - count;
  }
};

Result<Analysis> Analysis::run(const std::string& path, const AnalysisOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  TACHO_ASSIGN(const std::string folder, workload::find_workload(path));
  TACHO_ASSIGN(workload::SysInfo sysinfo, workload::read_sysinfo(folder));
  for (const auto& [name, value] : options.specs_correction) sysinfo.set(name, value);
  const std::string given(sysinfo.get("gpu_arch").empty() ? sysinfo.get("gpu_model") : sysinfo.get("gpu_arch"));
  TACHO_ASSIGN(const std::optional<Architecture> architecture,
               architecture_named(given, options.config_dirs, check_syntax));
  if (!architecture) {
    std::string known;
    for (const std::string_view name : architectures()) known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
    return fail(
        "{}/sysinfo.csv: architecture '{}' is unknown; known are {}; --specs-correction gpu_arch:NAME overrides it",
        folder, given, known);
  }
  TACHO_ASSIGN(impl->catalog, load_catalog(*architecture, options.config_dirs, check_syntax));
  for (const auto& [name, value] : impl->catalog.facts.missing_sysinfo)
    if (std::isnan(sysinfo.number(name))) sysinfo.set(name, std::string(value));
  if (options.advice) {
    TACHO_ASSIGN(impl->rules, load_rules(impl->catalog, options.config_dirs));
    for_each_leaf(impl->rules, [&](const FormulaStep& leaf) { impl->rule_slugs[leaf.text] = 0; });
  }
  TACHO_TRY(impl->select_blocks());
  const std::string_view normalisation =
      options.every_normalisation ? std::string_view() : std::string_view(impl->options.normalisation);
  NameCollector names(normalisation, denominator_of(impl->catalog, normalisation),
                      options.compat ? std::span<const Rename>() : impl->catalog.facts.recorded_as);
  for (const std::string_view each : {"per_wave", "per_cycle", "per_second"})
    if (const std::string_view text = denominator_of(impl->catalog, each);
        options.every_normalisation && !text.empty()) {
      TACHO_ASSIGN(const Formula* formula, impl->formulas.get(text));
      names.add(*formula, "");
    }
  TACHO_TRY(impl->check_formulas(names));
  impl->intensity = intensity_formulas(impl->catalog.facts, sysinfo.get("gpu_series"), options.compat);
  if (!impl->shows_table(4, 1)) impl->intensity = {};
  for (const std::string_view text :
       {kDurationFormula, std::string_view(impl->intensity.flops), std::string_view(impl->intensity.l1_bytes),
        std::string_view(impl->intensity.l2_bytes), std::string_view(impl->intensity.hbm_bytes),
        std::string_view(impl->intensity.lds_bytes)})
    if (!text.empty()) {
      TACHO_ASSIGN(const Formula* formula, impl->formulas.get(text));
      names.add(*formula, "");
    }
  workload::ReadOptions read;
  read.wanted = workload::WantedColumns(names.names());
  read.compat = options.compat;
  read.run = options.run;
  TACHO_ASSIGN(impl->workload, workload::read_workload(folder, std::move(sysinfo), read));
  if (impl->shows_table(21, 1)) {
    TACHO_ASSIGN(impl->pc_samples, workload::read_pc_samples(folder, impl->workload.warnings));
    if (impl->pc_samples && options.sort_samples_by_source) workload::sort_by_source(*impl->pc_samples);
  }
  impl->warnings = impl->workload.warnings;
  if (!impl->intensity.flops.empty()) {
    const workload::CounterTable& counters = impl->workload.passes.front().counters;
    // Parsed formulas refer to their texts: the first ones stay.
    impl->first_intensity = std::exchange(
        impl->intensity, intensity_formulas(impl->catalog.facts, impl->workload.sysinfo.get("gpu_series"),
                                            options.compat, [&](std::string_view name) { return counters.has(name); }));
    if (!impl->intensity.flops.empty()) TACHO_TRY(impl->formulas.get(impl->intensity.flops));
    for (const IntensityFormulas::Kind& kind : impl->intensity.kinds) TACHO_TRY(impl->formulas.get(kind.flops));
  }
  if (!impl->given_blocks && !impl->workload.recorded_blocks.empty()) TACHO_TRY(impl->select_blocks());
  TACHO_TRY(impl->choose_dispatches());
  TACHO_TRY(impl->choose_kernels());
  if (options.errors) impl->find_repeats();
  impl->evaluation = impl->evaluate(impl->rows);
  impl->find_intensities();
  impl->diagnose_kernels();
  return Analysis(std::move(impl));
}

Analysis::Analysis(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Analysis::Analysis(Analysis&&) noexcept = default;
Analysis& Analysis::operator=(Analysis&&) noexcept = default;
Analysis::~Analysis() = default;

const AnalysisOptions& Analysis::options() const {
  return impl_->options;
}
const workload::Workload& Analysis::workload() const {
  return impl_->workload;
}
const Catalog& Analysis::catalog() const {
  return impl_->catalog;
}
const std::vector<uint32_t>& Analysis::rows() const {
  return impl_->rows;
}
const std::vector<uint32_t>& Analysis::listed_rows() const {
  return impl_->listed;
}
const std::vector<KernelStatistics>& Analysis::kernels() const {
  return impl_->kernels;
}
const std::vector<uint32_t>& Analysis::repeats() const {
  return impl_->repeats;
}
const Evaluation& Analysis::all() const {
  return impl_->evaluation;
}
size_t Analysis::kernel_id(uint32_t kernel) const {
  const auto at = std::find_if(impl_->kernels.begin(), impl_->kernels.end(),
                               [&](const KernelStatistics& each) { return each.kernel == kernel; });
  return static_cast<size_t>(at - impl_->kernels.begin());
}
const std::vector<std::string>& Analysis::warnings() const {
  return impl_->warnings;
}
const std::vector<std::string>& Analysis::id_notes() const {
  return impl_->id_notes;
}
bool Analysis::shows(int block, int table) const {
  return impl_->shows_table(block, table);
}
const std::vector<IntensityPoint>& Analysis::kernel_points() const {
  return impl_->kernel_points;
}
std::string_view Analysis::intensity_definition() const {
  return impl_->intensity.definition;
}
std::vector<FlopKind> Analysis::flop_kinds() const {
  std::vector<FlopKind> kinds;
  for (const IntensityFormulas::Kind& each : impl_->intensity.kinds) kinds.push_back(each.kind);
  return kinds;
}
std::string_view Analysis::data_type(const IntensityPoint& point) const {
  return main_data_type(point, impl_->intensity.kinds);
}
std::vector<std::string> Analysis::roofline_types() const {
  const auto& ceilings = impl_->workload.ceilings;
  return data_types_of(impl_->kernel_points, impl_->intensity.kinds, ceilings.empty() ? nullptr : &ceilings.front());
}

const std::optional<workload::PcSamples>& Analysis::pc_samples() const {
  return impl_->pc_samples;
}
const std::vector<std::string>& Analysis::uncounted_flops() const {
  return impl_->intensity.left_out;
}
const std::vector<IntensityPoint>& Analysis::dispatch_points() const {
  return impl_->dispatch_points;
}
const Diagnosis& Analysis::diagnosis() const {
  return impl_->diagnosis;
}

Evaluation Analysis::evaluate(std::optional<uint32_t> kernel, std::string_view normalisation) const {
  if (!kernel) return impl_->evaluate(impl_->rows, normalisation);
  std::vector<uint32_t> rows;
  for (const uint32_t row : impl_->rows)
    if (impl_->workload.dispatches[row].kernel == *kernel) rows.push_back(row);
  return impl_->evaluate(rows, normalisation);
}

PageProgram Analysis::page_program() const {
  return impl_->page_program();
}

double Analysis::specification(std::string_view name) const {
  return Program(impl_->environment(impl_->rows)).specification(name);
}

const report::Cell* Analysis::cell(std::string_view slug, std::string_view column) const {
  for (const ResultTable& table : impl_->evaluation.tables)
    for (const ResultRow& row : table.rows)
      if (row.metric->slug == slug) {
        const auto at = table.table->column(column);
        return at ? &row.cells[*at] : nullptr;
      }
  return nullptr;
}

Result<std::string> Analysis::explain(std::string_view text, size_t width) const {
  TACHO_ASSIGN(const Selection selection, resolve(impl_->catalog, text, impl_->options.ids));
  if (selection.metric == nullptr) return fail("--explain {}: names a block or table; give one metric", text);
  const MetricTable& table = impl_->catalog.table_of(*selection.metric);
  return explain_metric(*selection.metric, table, impl_->cells_of(*selection.metric),
                        impl_->printed_id(*selection.metric, -1), impl_->environment(impl_->rows), width);
}

}  // namespace tacho::metric
