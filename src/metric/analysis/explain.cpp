// Explanation of a metric: formula, inputs, steps.
#include "metric/analysis/explain.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "metric/analysis/reduction.h"
#include "report/answer.h"

namespace tacho::metric {

namespace {

// The text of one step, rebuilt from the parsed formula; parts that would make it longer than a line become "...".
std::string step_text(const Formula& formula, uint32_t index, int depth = 0) {
  if (depth > 12) return "...";
  const FormulaStep& step = formula.steps[index];
  const auto part = [&](size_t i) { return step_text(formula, step.arguments[i], depth + 1); };
  const auto infix = [&](std::string_view sign) { return fmt::format("({} {} {})", part(0), sign, part(1)); };
  switch (step.op) {
    case FormulaOp::kNumber:
      return report::format_exact(step.number);
    case FormulaOp::kNone:
      return "None";
    case FormulaOp::kCounter:
      return step.first < 0 ? std::string(step.text) : fmt::format("{}[{}]", step.text, step.first);
    case FormulaOp::kChannel:
      return fmt::format("{}[$channel]", step.text);
    case FormulaOp::kSumOf:
      return step.last == Formula::kAll ? fmt::format("{}[*]", step.text)
                                        : fmt::format("{}[{}..{}]", step.text, step.first, step.last);
    case FormulaOp::kValue:
      return fmt::format("${}", step.text);
    case FormulaOp::kNegate:
      return fmt::format("-{}", part(0));
    case FormulaOp::kNot:
      return fmt::format("not {}", part(0));
    case FormulaOp::kAdd:
      return infix("+");
    case FormulaOp::kSubtract:
      return infix("-");
    case FormulaOp::kMultiply:
      return infix("*");
    case FormulaOp::kDivide:
      return infix("/");
    case FormulaOp::kModulo:
      return infix("%");
    case FormulaOp::kFloorDivide:
      return infix("//");
    case FormulaOp::kPower:
      return infix("**");
    case FormulaOp::kLess:
      return infix("<");
    case FormulaOp::kLessEqual:
      return infix("<=");
    case FormulaOp::kGreater:
      return infix(">");
    case FormulaOp::kGreaterEqual:
      return infix(">=");
    case FormulaOp::kEqual:
      return infix("==");
    case FormulaOp::kNotEqual:
      return infix("!=");
    case FormulaOp::kAnd:
      return infix("and");
    case FormulaOp::kOr:
      return infix("or");
    case FormulaOp::kSelect:
      return fmt::format("({} if {} else {})", part(0), part(2), part(1));
    default:
      break;
  }
  return step.argument_count == 2 ? fmt::format("{}({}, {})", function_name(step.op), part(0), part(1))
                                  : fmt::format("{}({})", function_name(step.op), part(0));
}

std::vector<report::Cell> summary(std::span<const double> values) {
  double least = std::numeric_limits<double>::quiet_NaN(), most = least, sum = 0;
  int64_t count = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    least = count == 0 ? value : std::min(least, value);
    most = count == 0 ? value : std::max(most, value);
    sum += value;
    ++count;
  }
  const double mean = count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(count);
  return {count, report::number_cell(least), report::number_cell(mean), report::number_cell(most)};
}

// A column that is computed: its formula, the nodes of its steps and of its value.
struct Shown {
  size_t column;
  Formula formula;
  std::vector<Program::Node> steps;
  Program::Node result;
  // The means of ratios in it: the name of the step, "" for the whole, and what is divided.
  std::vector<std::pair<std::string, Program::Totals>> totals;
};

// Name, unit, meaning and where the numbers come from.
std::string heading(const Metric& metric, const MetricTable& table, std::string_view id,
                    const Environment& environment) {
  std::string out = fmt::format("{}  {}  ({})", id, metric.name, metric.slug);
  if (!metric.unit.empty()) out += fmt::format("  [{}]", normalised_unit(metric.unit, environment.normalisation));
  out += "\n  " + report::wrapped(metric.description, 76, 2) + "\n";
  if (!metric.advice.empty()) out += "  " + report::wrapped(metric.advice, 76, 2) + "\n";
  if (!metric.coll_level.empty())
    out += fmt::format("  counters and timestamps are those of the pass {}\n",
                       environment.workload->long_form ? "that holds " + std::string(metric.coll_level)
                                                       : std::string(metric.coll_level));
  if (!table.repeat.empty()) out += "  one row a channel; the values below are those of channel 0\n";
  return out;
}

report::PrintedTable inputs_table(const Program& program, const std::vector<FormulaInput>& inputs,
                                  const std::vector<Program::Node>& nodes) {
  report::PrintedTable table;
  table.columns = {{"name"}, {"pass"}, {"dispatches"}, {"min"}, {"avg"}, {"max"}};
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<report::Cell> row = {inputs[i].name, inputs[i].pass.empty() ? std::string("sysinfo") : inputs[i].pass};
    if (!inputs[i].available) {
      row.emplace_back(std::string("missing"));
    } else if (program.is_column(nodes[i])) {
      for (report::Cell& cell : summary(program.column(nodes[i]))) row.push_back(std::move(cell));
    } else {
      const Value value = program.value(nodes[i]);
      row.emplace_back();
      row.emplace_back();
      row.push_back(value.kind == Value::Kind::kNumber ? report::Cell{value.number} : report::Cell{});
    }
    table.rows.push_back(std::move(row));
  }
  table.columns[1].leave_out = 2;
  table.columns[2].align = report::Align::kRight;
  table.columns[3].leave_out = 1;
  return table;
}

report::PrintedTable steps_table(const Program& program, const Shown& entry) {
  report::PrintedTable steps;
  steps.columns = {{"step"}, {"dispatches"}, {"min"}, {"avg"}, {"max"}};
  steps.columns[0].shrink = true;
  for (size_t s = 0; s < entry.steps.size(); ++s) {
    const FormulaOp op = entry.formula.steps[s].op;
    if (op == FormulaOp::kNumber || op == FormulaOp::kNone || op == FormulaOp::kCounter || op == FormulaOp::kChannel)
      continue;
    std::string text = step_text(entry.formula, static_cast<uint32_t>(s));
    if (text.size() > 2 && text.front() == '(' && text.back() == ')') text = text.substr(1, text.size() - 2);
    std::vector<report::Cell> row = {std::move(text)};
    if (program.is_column(entry.steps[s])) {
      for (report::Cell& value : summary(program.column(entry.steps[s]))) row.push_back(std::move(value));
    } else {
      const Value value = program.value(entry.steps[s]);
      row.emplace_back();
      row.emplace_back();
      if (value.kind == Value::Kind::kText)
        row.emplace_back(value.text);
      else
        row.push_back(value.kind == Value::Kind::kNumber ? report::Cell{value.number} : report::Cell{});
    }
    steps.rows.push_back(std::move(row));
  }
  for (size_t c = 1; c < steps.columns.size(); ++c) steps.columns[c].align = report::Align::kRight;
  return steps;
}

// What every mean of a ratio divides, in at most `width` columns (0 = any).
std::string totals_text(const Program& program, const Shown& entry, size_t width) {
  constexpr size_t kMost = 100, kIndent = 4;
  std::string out;
  for (const auto& [step, totals] : entry.totals) {
    size_t count = 0;
    for (const double value : program.column(totals.column)) count += std::isnan(value) ? 0U : 1U;
    const Value above = program.value(totals.above), below = program.value(totals.below);
    if (above.kind != Value::Kind::kNumber || below.kind != Value::Kind::kNumber) continue;
    const std::string name = step.empty() ? "" : (step.size() > 40 ? "AVG(...)" : step) + " = ";
    const std::string text = fmt::format("{}sum of {} / sum of {} over {} dispatch{}: {} / {}", name, totals.above_text,
                                         totals.below_text, count, count == 1 ? "" : "es",
                                         report::format_exact(above.number), report::format_exact(below.number));
    out += report::paragraph(text, width == 0 ? kMost : std::min(width, kMost), kIndent, kIndent + 2) + "\n";
  }
  return out;
}

}  // namespace

std::string explain_metric(const Metric& metric, const MetricTable& table, const std::vector<Cell>& cells,
                           std::string_view id, const Environment& environment, size_t width) {
  Program program(environment);
  std::string out = heading(metric, table, id, environment);
  const Context context{metric.coll_level, table.repeat.empty() ? -1 : 0};

  report::TextStyle style;
  style.indent = 4;
  style.decimals = 4;
  style.width = width;
  style.scaled = false;
  std::vector<std::string> left_out;
  style.left_out = &left_out;
  std::vector<FormulaInput> inputs;
  std::vector<Shown> shown;
  for (size_t c = 0; c < cells.size() && c < table.columns.size(); ++c) {
    if (table.columns[c].role != ColumnRole::kValue || cells[c].formula.empty()) continue;
    auto formula = parse_formula(cells[c].formula);
    if (!formula) continue;
    for (FormulaInput& input : program.inputs(*formula, context))
      if (std::find(inputs.begin(), inputs.end(), input) == inputs.end()) inputs.push_back(std::move(input));
    Shown entry{c, std::move(*formula), {}, 0, {}};
    entry.steps = program.add_steps(entry.formula, context);
    for (size_t s = 0; s < entry.steps.size(); ++s)
      if (const FormulaStep& step = entry.formula.steps[s]; step.op == FormulaOp::kAvg)
        if (auto totals = program.keep_totals(entry.steps[step.arguments[0]]))
          entry.totals.emplace_back(step_text(entry.formula, static_cast<uint32_t>(s)), std::move(*totals));
    const auto [op, q] = reduction_op(cells[c].reduction);
    const Program::Node whole = program.compile(entry.formula, context);
    if (op == FormulaOp::kAvg)
      if (auto totals = program.keep_totals(whole)) entry.totals.emplace_back("", std::move(*totals));
    entry.result = program.keep(whole, op, q);
    shown.push_back(std::move(entry));
  }
  std::vector<Program::Node> input_nodes;
  std::vector<std::string> texts;
  texts.reserve(inputs.size());
  for (const FormulaInput& input : inputs) {
    texts.push_back(input.name);
    const auto formula = parse_formula(texts.back());
    Context at = context;
    if (input.pass == "pmc_perf") at.level = {};
    input_nodes.push_back(formula && input.available ? program.add(*formula, at) : 0);
  }
  program.run();

  out += "\n  inputs\n";
  out += report::to_text(inputs_table(program, inputs, input_nodes), style);
  if (const std::string lost = report::left_out_sentence(left_out, ""); !lost.empty()) out += "    " + lost + "\n";

  std::string_view last_formula;
  for (const Shown& entry : shown) {
    const Cell& cell = cells[entry.column];
    out += fmt::format("\n  {} = {}\n", table.columns[entry.column].title, report::wrapped(formula_text(cell), 72, 8));
    if (cell.formula != last_formula) {
      last_formula = cell.formula;
      const report::PrintedTable steps = steps_table(program, entry);
      report::TextStyle fitted = style;
      fitted.width = width == 0 ? 110 : std::min<size_t>(width, 110);
      fitted.scaled = true;
      fitted.left_out = nullptr;
      if (!steps.rows.empty()) out += report::to_text(steps, fitted);
    }
    out += totals_text(program, entry, width);
    const Value value = program.value(entry.result);
    out += fmt::format("    result: {}\n", value.kind == Value::Kind::kNumber ? report::format_exact(value.number)
                                           : value.kind == Value::Kind::kText ? value.text
                                                                              : std::string("not computable"));
  }
  return out;
}

}  // namespace tacho::metric
