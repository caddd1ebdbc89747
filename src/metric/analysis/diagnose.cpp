// Evaluation of the rules and checks on the kernels of a run.
#include "metric/analysis/diagnose.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>

#include "metric/analysis/reduction.h"
#include "metric/formula/student.h"
#include "report/text.h"

namespace tacho::metric {

namespace {

using State = RuleValue::State;

// A metric's column or a value of the machine, as rules name them.
struct Leaf {
  const FormulaStep* step = nullptr;
  const Metric* metric = nullptr;
  const MetricTable* table = nullptr;
  size_t column = 0;
  const Formula* formula = nullptr;
  Reduction reduction = Reduction::kNone;
  RuleValue constant;    // of a leaf without a formula: a measured roof, a field of sysinfo.csv
  bool exact = false;    // only sizes of the launch and values of the machine
  bool ordered = false;  // has an order statistic: a median, a quartile, the least or the most
  std::vector<std::string> missing;
  std::set<std::string, std::less<>> rests_on;  // the names that a check may suspect
};

std::string key_of(const FormulaStep& step) {
  return fmt::format("{}{}.{}", step.op == FormulaOp::kValue ? "$" : "", step.text, step.column);
}

// Another column of the metric.
FormulaStep column_of(FormulaStep metric, std::string_view column) {
  metric.column = column;
  return metric;
}

constexpr size_t kMostGroups = 24;
// A rule's stated input error counts as this many dispatches in an interval.
constexpr double kPriorDispatches = 4;
// Counts that tacho extrapolated from a part of the workgroups.
constexpr double kEstimateError = 20;

// Of `count` sorted values, the rank of the highest that is above their distribution's quantile `q` in at most 2.5 % of
// all draws; 1 where there are too few to tell.
size_t lower_rank(size_t count, double q) {
  const auto n = static_cast<double>(count);
  if (count > 200) return static_cast<size_t>(std::max(1.0, std::floor(n * q - 1.96 * std::sqrt(n * q * (1 - q)))));
  // Binomial: that `rank` values are below the quantile, and that at most so many are.
  double chance = std::pow(1 - q, n), at_most = chance;
  size_t rank = 0;
  while (at_most <= 0.025) {
    chance *= (n - static_cast<double>(rank)) / static_cast<double>(rank + 1) * q / (1 - q);
    at_most += chance;
    ++rank;
  }
  return std::max<size_t>(rank, 1);
}

class Doctor {
 public:
  explicit Doctor(const DiagnosisInput& input) : in_(input), probe_(input.environment({})) {
    for_each_leaf(in_.rules, [&](const FormulaStep& step) { add_leaf(step); });
    const auto peak_of = [&](const FormulaStep& step) {
      // Evidence shows the peak beside the value.
      const Metric* metric = step.op == FormulaOp::kMetric ? in_.catalog.metric(step.text) : nullptr;
      if (metric == nullptr || !in_.catalog.table_of(*metric).column("peak")) return;
      peaks_.push_back(column_of(step, "peak"));
      add_leaf(peaks_.back());
    };
    for_each_leaf(in_.rules, peak_of);
  }

  Diagnosis run(std::span<const KernelRows> kernels) {
    Diagnosis out;
    const RuleScreen& screen = in_.rules.screen();
    out.rules = in_.rules.rules.size();
    for (const RuleExpression& bar : screen.bars) out.bars.push_back(name_of(bar));
    out.weight_words = screen.weight_words;
    check_passes();
    std::vector<double> weights;
    double total = 0;
    for (const KernelRows& kernel : kernels) {
      evaluate_leaves(kernel.rows);
      Diagnosis::Kernel& judged = out.kernels.emplace_back();
      judged.kernel = kernel.kernel;
      double weight = kernel.time;
      if (!screen.weight.steps.empty()) {
        const RuleValue value = center(screen.weight);
        weight = value.known() ? value.number * static_cast<double>(kernel.rows.size()) : 0;
      }
      weights.push_back(weight);
      total += weight;
      for (const RuleExpression& bar : screen.bars) {
        const RuleValue value = center(bar);
        judged.bars.push_back(value.known() ? std::optional(value.number) : std::nullopt);
      }
      judge_kernel(kernel.kernel, out);
    }
    if (screen.weight.steps.empty() && in_.total_time > 0) total = in_.total_time;
    for (size_t k = 0; k < kernels.size(); ++k) {
      const double share = total > 0 ? weights[k] / total * 100 : 0;
      out.kernels[k].share = share;
      for (Finding& finding : out.findings)
        if (finding.kernel == kernels[k].kernel) finding.share = share;
    }
    std::stable_sort(out.kernels.begin(), out.kernels.end(),
                     [](const auto& a, const auto& b) { return a.share > b.share; });
    std::stable_sort(out.findings.begin(), out.findings.end(),
                     [](const Finding& a, const Finding& b) { return a.share * a.severity > b.share * b.severity; });
    for (auto& [slug, problem] : problems_) out.implausible.push_back(std::move(problem.said));
    for (auto& [slug, entry] : not_judged_) out.not_judged.push_back(std::move(entry));
    return out;
  }

 private:
  struct Problem {
    Implausible said;
    std::vector<std::string> suspects;
  };

  // Leaves

  void add_leaf(const FormulaStep& step) {
    const auto [place, added] = index_.try_emplace(key_of(step), leaves_.size());
    if (!added) return;
    Leaf& leaf = leaves_.emplace_back();
    leaf.step = &step;
    if (step.op == FormulaOp::kValue) {
      add_value(leaf);
      return;
    }
    leaf.rests_on.insert(std::string(step.text));
    leaf.metric = in_.catalog.metric(step.text);
    if (leaf.metric == nullptr) return;
    leaf.table = &in_.catalog.table_of(*leaf.metric);
    const auto at = leaf.table->column(step.column.empty() ? first_value_column(*leaf.table) : step.column);
    const std::vector<Cell>& cells =
        in_.compat && !leaf.metric->compat_cells.empty() ? leaf.metric->compat_cells : leaf.metric->cells;
    if (!at || *at >= cells.size() || cells[*at].formula.empty()) return;
    leaf.column = *at;
    leaf.reduction = cells[*at].reduction;
    leaf.formula = in_.formula_of(cells[*at].formula);
    if (leaf.formula == nullptr) return;
    describe(leaf, {leaf.metric->coll_level, -1});
    find_order(leaf);
  }

  // Whether the column is an order statistic or its formula holds one.
  static void find_order(Leaf& leaf) {
    const auto orders = [](FormulaOp op, size_t arguments) {
      return op == FormulaOp::kMedian || op == FormulaOp::kQuantile ||
             ((op == FormulaOp::kMin || op == FormulaOp::kMax) && arguments == 1);
    };
    leaf.ordered = orders(reduction_op(leaf.reduction).first, 1);
    for (const FormulaStep& step : leaf.formula->steps)
      leaf.ordered = leaf.ordered || orders(step.op, step.argument_count);
  }

  // A measured roof, a value as formulas know it, or a number of sysinfo.csv.
  void add_value(Leaf& leaf) {
    const std::string_view name = leaf.step->text;
    leaf.rests_on.insert("$" + std::string(name));
    leaf.exact = true;
    leaf.missing = {"$" + std::string(name)};
    leaf.constant.state = State::kMissing;
    static constexpr std::pair<std::string_view, std::string_view> kRoofs[] = {
        {"roof_hbm", "HBMBw"}, {"roof_l2", "L2Bw"}, {"roof_l1", "L1Bw"}, {"roof_lds", "LDSBw"}};
    for (const auto& [roof, column] : kRoofs)
      if (name == roof) {
        const double peak = in_.workload.ceilings.empty() ? std::nan("") : in_.workload.ceilings.front().get(column);
        leaf.constant = peak > 0 ? RuleValue{State::kNumber, peak} : RuleValue{};
        return;
      }
    if (is_specification(name) || !builtin_formula(name, "per_kernel").empty()) {
      texts_.push_back("$" + std::string(name));
      auto formula = parse_formula(texts_.back());
      if (!formula) return;
      formulas_.push_back(std::move(*formula));
      leaf.formula = &formulas_.back();
      describe(leaf, {});
      return;
    }
    const double number = in_.workload.sysinfo.number(name);
    if (number > 0) leaf.constant = {State::kNumber, number};
  }

  void describe(Leaf& leaf, const Context& context) {
    leaf.missing.clear();
    leaf.exact = true;
    for (const FormulaInput& input : probe_.inputs(*leaf.formula, context)) {
      std::string name = input.name.substr(0, input.name.find('['));
      const bool timestamp = name.ends_with("_Timestamp");
      leaf.exact = leaf.exact && (input.pass.empty() || (workload::is_id_column(name) && !timestamp));
      if (!input.available) {
        std::string lacks = name;
        if (!input.pass.empty() && in_.workload.pass(input.pass) == nullptr) lacks = fmt::format("{}.csv", input.pass);
        if (std::find(leaf.missing.begin(), leaf.missing.end(), lacks) == leaf.missing.end())
          leaf.missing.push_back(lacks);
      }
      if (!input.pass.empty()) leaf.rests_on.insert("pass " + input.pass);
      leaf.rests_on.insert(std::move(name));
    }
  }

  // The values of all leaves over all rows, over each group of them, and over all rows but each group.
  void evaluate_leaves(const std::vector<uint32_t>& rows) {
    Environment environment = in_.environment(rows);
    const size_t count = std::min(rows.size(), kMostGroups);
    environment.groups = count;
    Program program(std::move(environment));
    std::vector<Program::Node> nodes(leaves_.size()), columns(leaves_.size());
    for (size_t i = 0; i < leaves_.size(); ++i) {
      const Leaf& leaf = leaves_[i];
      if (leaf.formula == nullptr) continue;
      const auto [op, q] = reduction_op(leaf.reduction);
      const Program::Node column =
          program.compile(*leaf.formula, {leaf.metric != nullptr ? leaf.metric->coll_level : std::string_view(), -1});
      nodes[i] = program.keep(column, op, q);
      if (leaf.ordered) columns[i] = program.keep(column);
    }
    program.run();
    const auto judged = [](const Leaf& leaf, double number) {
      if (std::isnan(number)) return RuleValue{leaf.missing.empty() ? State::kUndefined : State::kMissing, 0};
      return RuleValue{std::isfinite(number) ? State::kNumber : State::kUndefined, number};
    };
    all_.assign(leaves_.size(), {});
    groups_.assign(count > 1 ? count : 0, std::vector<RuleValue>(leaves_.size()));
    others_ = groups_;
    for (size_t i = 0; i < leaves_.size(); ++i) {
      const Leaf& leaf = leaves_[i];
      const Value value = program.value(nodes[i]);
      const std::span<const double> of_groups = program.group_values(nodes[i]);
      all_[i] = leaf.formula == nullptr
                    ? leaf.constant
                    : judged(leaf, value.kind == Value::Kind::kNumber ? value.number : std::nan(""));
      for (size_t g = 0; g < groups_.size(); ++g) {
        const bool grouped = leaf.formula != nullptr && of_groups.size() == 2 * count;
        groups_[g][i] = grouped ? judged(leaf, of_groups[g]) : all_[i];
        others_[g][i] = grouped ? judged(leaf, of_groups[count + g]) : all_[i];
      }
    }
    low_ = high_ = all_;
    for (size_t i = 0; i < leaves_.size(); ++i)
      if (leaves_[i].ordered && all_[i].known()) bound(i, program.column(columns[i]));
  }

  // The bounds of a quantile: two of the dispatches' values.
  void bound(size_t leaf, std::span<const double> column) {
    const auto [op, quantile] = reduction_op(leaves_[leaf].reduction);
    const double q = op == FormulaOp::kMedian ? 0.5 : quantile;
    if (op != FormulaOp::kMedian && op != FormulaOp::kQuantile) return;
    std::vector<double> values;
    std::copy_if(column.begin(), column.end(), std::back_inserter(values), [](double x) { return std::isfinite(x); });
    if (values.empty()) return;
    std::sort(values.begin(), values.end());
    low_[leaf].number = values[lower_rank(values.size(), q) - 1];
    high_[leaf].number = values[values.size() - lower_rank(values.size(), 1 - q)];
  }

  RuleValue value_in(const std::vector<RuleValue>& values, const FormulaStep& leaf) const {
    const auto found = index_.find(key_of(leaf));
    return found == index_.end() ? RuleValue{} : values[found->second];
  }
  RuleValue center(const RuleExpression& expression, std::vector<const FormulaStep*>* used = nullptr) const {
    return evaluate(
        expression, [&](const FormulaStep& leaf) { return value_in(all_, leaf); }, used);
  }

  RuleInterval interval(const RuleExpression& expression, double error) const {
    std::vector<const FormulaStep*> used;
    const RuleValue middle = center(expression, &used);
    RuleInterval out{middle.state, middle.number, middle.number, middle.number};
    if (!middle.known()) return out;
    const bool exact = std::all_of(used.begin(), used.end(),
                                   [&](const FormulaStep* step) { return leaves_[index_.at(key_of(*step))].exact; });
    if (exact) return out;
    if (in_.workload.estimated) error = std::max(error, kEstimateError);
    // Leaving one group out moves an order statistic not at all or from one of two values to the other; there the
    // groups' own values tell.
    const bool ordered = std::any_of(
        used.begin(), used.end(), [&](const FormulaStep* step) { return leaves_[index_.at(key_of(*step))].ordered; });
    // Otherwise a jackknife: how the value changes when one group is left out, for a ratio of totals as for a mean. A
    // group that alone has no value adds nothing to the totals either.
    std::vector<double> values;
    double sum = 0, squares = 0;
    const auto over = [&](const std::vector<RuleValue>& of) {
      return evaluate(expression, [&](const FormulaStep& leaf) { return value_in(of, leaf); });
    };
    for (size_t g = 0; g < groups_.size(); ++g) {
      const RuleValue own = over(groups_[g]), rest = over(others_[g]);
      if (!own.known() || !rest.known()) continue;
      values.push_back(ordered ? own.number : rest.number);
      sum += values.back();
    }
    const double count = values.empty() ? 1 : static_cast<double>(values.size());
    for (const double value : values) squares += (value - sum / count) * (value - sum / count);
    const double freedom = count - 1, stated = std::fabs(middle.number) * error / 100;
    // The sum of squared differences of independent groups, which of means is exactly this.
    const double spread = ordered ? squares : freedom * freedom * squares;
    double half = 0;
    if (stated > 0) {
      const double sigma = stated / student(kPriorDispatches);
      const double variance = (kPriorDispatches * sigma * sigma + spread) / (kPriorDispatches + freedom);
      half = student(kPriorDispatches + freedom) * std::sqrt(variance / count);
    } else if (freedom > 0) {
      half = student(freedom) * std::sqrt(spread / freedom / count);
    }
    // Sums of squares of equal numbers differ in their last digits.
    if (half > std::fabs(middle.number) * 1e-9) {
      out.low -= half;
      out.high += half;
    }
    if (ordered)
      for (const std::vector<RuleValue>* bounds : {&low_, &high_})
        if (const RuleValue bound = over(*bounds); bound.known()) {
          out.low = std::min(out.low, bound.number);
          out.high = std::max(out.high, bound.number);
        }
    // A share of a whole stays one.
    const FormulaStep* const metric = expression.metric();
    const bool share =
        expression.unit == "%" || (metric != nullptr && leaves_[index_.at(key_of(*metric))].metric != nullptr &&
                                   is_percent(leaves_[index_.at(key_of(*metric))].metric->unit));
    if (share && out.value >= 0 && out.value <= 100) {
      out.low = std::max(out.low, 0.0);
      out.high = std::min(out.high, 100.0);
    }
    return out;
  }

  static bool is_percent(std::string_view unit) { return unit == "pct" || unit == "Pct of Peak"; }

  // Implausible inputs

  void suspect(std::string slug, std::string text, std::vector<std::string> suspects) {
    const auto [place, added] = problems_.try_emplace(slug);
    if (added) place->second = {{slug, std::move(text), {}}, std::move(suspects)};
  }

  // The same counter in a level pass and in the others: the kernel was run again for it.
  void check_passes() {
    if (in_.workload.passes.empty()) return;
    const workload::CounterTable& first = in_.workload.passes.front().counters;
    for (size_t p = 1; p < in_.workload.passes.size(); ++p) {
      const workload::Pass& pass = in_.workload.passes[p];
      for (const auto& [name, most] :
           {std::pair<std::string_view, double>{"SQ_WAVES", 1.01}, {"SQ_WAVE_CYCLES", 2}, {"GRBM_GUI_ACTIVE", 2}}) {
        const auto here = pass.counters.column(name), there = first.column(name);
        if (here.empty() || there.empty()) continue;
        double a = 0, b = 0;
        for (size_t r = 0; r < std::min(here.size(), there.size()); ++r)
          if (!std::isnan(here[r]) && !std::isnan(there[r])) {
            a += here[r];
            b += there[r];
          }
        if (!(a > 0) || !(b > 0) || std::max(a, b) / std::min(a, b) <= most) continue;
        suspect(
            "pass-" + pass.name,
            fmt::format("The pass {} counted {} times as much {} as the other passes: it measured another run of the "
                        "kernels than they did. Profile again on an idle GPU.",
                        pass.name, report::format_fixed(a / b, 2), name),
            {"pass " + pass.name});
      }
    }
  }

  void check_kernel() {
    for (const RuleCheck& check : in_.rules.checks) {
      const RuleValue value = center(check.when.quantity);
      if (holds(check.when, {value.state, value.number, value.number, value.number}) != Truth::kYes) continue;
      std::string text(check.says);
      if (const size_t at = text.find("{}"); at != std::string::npos)
        text.replace(at, 2,
                     report::format_fixed(value.number, std::fabs(value.number) >= 100      ? 0
                                                        : std::fabs(value.number - 1) < 0.1 ? 4
                                                                                            : 2));
      suspect(std::string(check.slug), std::move(text), {check.suspects.begin(), check.suspects.end()});
    }
    // Shares above the whole, and rates above their peak; a tenth is what passes differ by.
    constexpr double kMostPercent = 110;
    for (size_t i = 0; i < leaves_.size(); ++i) {
      const Leaf& leaf = leaves_[i];
      if (leaf.metric == nullptr || !all_[i].known() || !(all_[i].number > kMostPercent)) continue;
      const MetricColumn& column = leaf.table->columns[leaf.column];
      const bool of_peak = column.key == "pct";
      const bool share = is_percent(leaf.metric->unit) && column.key != "peak" && column.key != "max";
      if (!of_peak && !share) continue;
      suspect(fmt::format("above-{}", leaf.metric->slug),
              of_peak ? fmt::format("{} is {} % of its peak, which cannot be: the peak is wrong, "
                                    "or counter and time are of different runs.",
                                    leaf.metric->name, report::format_fixed(all_[i].number, 0))
                      : fmt::format("{} is {} %, which cannot be: its counters are of different runs.",
                                    leaf.metric->name, report::format_fixed(all_[i].number, 0)),
              {std::string(leaf.metric->slug)});
    }
    for (const Rule& rule : in_.rules.rules)
      for (const std::vector<RuleCondition>* list : {&rule.when, &rule.any})
        for (const RuleCondition& condition : *list) {
          const RuleExpression& quantity = condition.quantity;
          if (quantity.unit != "%") continue;
          std::vector<const FormulaStep*> used;
          const RuleValue value = center(quantity, &used);
          if (!value.known() || !(value.number > kMostPercent)) continue;
          std::vector<std::string> suspects;
          for (const FormulaStep* step : used)
            suspects.push_back((step->op == FormulaOp::kValue ? "$" : "") + std::string(step->text));
          suspect(fmt::format("above-{}", quantity.text),
                  fmt::format("{}: {} %, which cannot be. What it is computed from is "
                              "of different runs, or a peak is wrong.",
                              name_of(quantity), report::format_fixed(value.number, 0)),
                  std::move(suspects));
        }
  }

  bool rests_on(const std::vector<const FormulaStep*>& used, const Problem& problem) const {
    return std::any_of(used.begin(), used.end(), [&](const FormulaStep* step) {
      const Leaf& leaf = leaves_[index_.at(key_of(*step))];
      return std::any_of(problem.suspects.begin(), problem.suspects.end(),
                         [&](const std::string& suspect) { return leaf.rests_on.contains(suspect); });
    });
  }

  // Rules

  void judge_kernel(uint32_t kernel, Diagnosis& out) {
    check_kernel();
    std::vector<Finding> found;
    for (const Rule& rule : in_.rules.rules) {
      const auto lookup = [&](const RuleExpression& quantity) { return interval(quantity, rule.error); };
      const Judgement judgement = judge(rule, lookup);
      if (judgement.verdict == Verdict::kNotJudged) note_missing(rule);
      if (judgement.verdict != Verdict::kPossible && judgement.verdict != Verdict::kFound) continue;
      std::vector<const FormulaStep*> used;
      for_each_deciding(rule, [&](const RuleExpression& quantity) { center(quantity, &used); });
      bool withheld = false;
      for (auto& [slug, problem] : problems_)
        if (rests_on(used, problem)) {
          withheld = true;
          std::vector<std::string>& titles = problem.said.withheld;
          const std::string title(rule.title);
          if (std::find(titles.begin(), titles.end(), title) == titles.end()) titles.push_back(title);
        }
      if (!withheld) found.push_back(finding(rule, judgement, kernel));
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
    if (found.size() > in_.most_findings) found.resize(in_.most_findings);
    out.findings.insert(out.findings.end(), std::make_move_iterator(found.begin()),
                        std::make_move_iterator(found.end()));
  }

  void note_missing(const Rule& rule) {
    const auto [place, added] = not_judged_.try_emplace(std::string(rule.slug));
    NotJudged& entry = place->second;
    entry.slug = rule.slug;
    entry.title = rule.title;
    const auto add = [](std::vector<std::string>& list, std::string text) {
      if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
    };
    for_each_deciding(rule, [&](const RuleExpression& quantity) {
      if (center(quantity).state != State::kMissing) return;
      for (const FormulaStep& step : quantity.steps) {
        const auto at = index_.find(key_of(step));
        if (at == index_.end() || all_[at->second].state != State::kMissing) continue;
        const Leaf& leaf = leaves_[at->second];
        for (const std::string& name : leaf.missing) add(entry.missing, name);
        if (leaf.table != nullptr) add(entry.collect, fmt::format("{}.{}", leaf.table->block, leaf.table->number));
      }
    });
  }

  Finding finding(const Rule& rule, const Judgement& judgement, uint32_t kernel) const {
    Finding out;
    out.kernel = kernel;
    out.slug = rule.slug;
    out.title = rule.title;
    out.meaning = rule.meaning;
    out.advice.assign(rule.advice.begin(), rule.advice.end());
    out.low = judgement.low;
    out.high = judgement.high;
    out.severity = (judgement.low + judgement.high) / 200;
    out.model = rule.model;
    if (!rule.of.steps.empty()) out.of = name_of(rule.of);
    out.possible = judgement.verdict == Verdict::kPossible;
    for (const RuleCondition& condition : rule.when) add_evidence(out, rule, condition.quantity, &condition);
    for (const RuleCondition& condition : rule.any)
      if (holds(condition, interval(condition.quantity, rule.error)) >= Truth::kMaybe)
        add_evidence(out, rule, condition.quantity, &condition);
    for (const RuleExpression& each : rule.evidence) add_evidence(out, rule, each, nullptr);
    if (out.possible) out.doubt = doubt(rule);
    return out;
  }

  std::string doubt(const Rule& rule) const {
    if (!rule.only_possible.empty()) return std::string(rule.only_possible);
    for (const std::vector<RuleCondition>* list : {&rule.when, &rule.any})
      for (const RuleCondition& condition : *list)
        if (holds(condition, interval(condition.quantity, rule.error)) == Truth::kMaybe)
          return fmt::format("{} is too near {} for these dispatches to tell", name_of(condition.quantity),
                             report::format_fixed(condition.threshold, condition.threshold < 10 ? 2 : 0));
    for (const RuleCondition& condition : rule.unless) {
      const Truth truth = holds(condition, interval(condition.quantity, rule.error));
      if (truth == Truth::kUnknown)
        return fmt::format("{} could refute it and was not collected", name_of(condition.quantity));
      if (truth == Truth::kMaybe) return fmt::format("{} may refute it", name_of(condition.quantity));
    }
    return {};
  }

  void add_evidence(Finding& finding, const Rule& rule, const RuleExpression& quantity,
                    const RuleCondition* condition) const {
    const RuleInterval interval = this->interval(quantity, rule.error);
    if (interval.state != State::kNumber) return;
    Evidence evidence;
    evidence.term = quantity.text;
    for (const Evidence& known : finding.evidence)
      if (known.term == evidence.term) return;
    evidence.value = interval.value;
    evidence.low = interval.low;
    evidence.high = interval.high;
    if (condition != nullptr) {
      evidence.comparison = to_string(condition->relation);
      evidence.threshold = condition->threshold;
    }
    evidence.name = name_of(quantity);
    evidence.unit = quantity.unit;
    const FormulaStep* const step = quantity.metric();
    // A quantity that is a metric under a name of its own: the number leads to it.
    if (step != nullptr) evidence.id = in_.printed_id(*leaves_[index_.at(key_of(*step))].metric);
    if (step != nullptr && quantity.name.empty()) {
      const Leaf& leaf = leaves_[index_.at(key_of(*step))];
      const MetricColumn& column = leaf.table->columns[leaf.column];
      const bool percent = column.key == "pct";
      evidence.unit = percent ? "% of peak" : normalised_unit(leaf.metric->unit, "per_kernel");
      if (!percent)
        if (const RuleValue peak = value_in(all_, column_of(*step, "peak")); peak.known()) evidence.peak = peak.number;
      if (!step->column.empty() && column.title != "Avg" && !percent)
        evidence.name += fmt::format(" ({})", column.title);
    }
    finding.evidence.push_back(std::move(evidence));
  }

  // The quantity's own name, or its text with the names of metrics for their slugs.
  std::string name_of(const RuleExpression& quantity) const {
    if (!quantity.name.empty()) return std::string(quantity.name);
    std::string out, word;
    const auto end_word = [&] {
      const size_t dot = word.find('.');
      const Metric* metric = word.empty() ? nullptr : in_.catalog.metric(word.substr(0, dot));
      out += metric != nullptr ? std::string(metric->name) : word;
      word.clear();
    };
    for (const char c : quantity.text) {
      if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_') {
        word += c;
      } else {
        end_word();
        out += c;
      }
    }
    end_word();
    return out;
  }

  const DiagnosisInput& in_;
  Program probe_;
  std::deque<FormulaStep> peaks_;
  std::deque<std::string> texts_;
  std::deque<Formula> formulas_;
  std::deque<Leaf> leaves_;
  std::map<std::string, size_t, std::less<>> index_;
  std::vector<RuleValue> all_, low_, high_;              // over all rows; with the bounds of quantiles in their place
  std::vector<std::vector<RuleValue>> groups_, others_;  // of one group; of all rows but that group
  std::map<std::string, Problem> problems_;
  std::map<std::string, NotJudged> not_judged_;
};

}  // namespace

Diagnosis diagnose(const DiagnosisInput& input, std::span<const KernelRows> kernels) {
  if (input.rules.rules.empty() && input.rules.screens.empty()) return {};
  return Doctor(input).run(kernels);
}

}  // namespace tacho::metric
