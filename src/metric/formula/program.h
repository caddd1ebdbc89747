// Formulas compiled to one column program over all dispatches of a run. Equal sub-expressions of all formulas are one
// node and every counter is read once; a node's column is freed when its last user has been computed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metric/catalog/catalog.h"
#include "metric/expression/expression.h"
#include "workload/workload.h"

namespace tacho::metric {

/// The meaning of the names in formulas.
struct Environment {
  const workload::Workload* workload = nullptr;
  /// The dispatches to look at, ascending; nullopt: all.
  std::optional<std::vector<uint32_t>> rows;
  /// The normalisation of $denom: "per_kernel", "per_wave", "per_cycle", "per_second".
  std::string_view normalisation = "per_kernel";
  /// The catalog's formula for $denom (denominator_of()); "" = that of per_kernel or per_second, which need none. With
  /// per_wave or per_cycle, $denom is unknown then.
  std::string_view denominator;
  /// AVG(A / B) means SUM(A) / SUM(B) over the dispatches that have both, as rocprof-compute does from 3.7 on.
  bool sum_ratios = false;
  /// Columns of intermediate results that wait for later users may take about this many bytes; beyond, the oldest are
  /// dropped and computed again.
  size_t column_budget = size_t{48} << 20;
  /// Of every dispatch of the workload: which repeats of the same launch it belongs to; empty: no errors.
  std::span<const uint32_t> repeats;
  /// run() also computes every kept number over each of this many groups of the rows, and over all rows but each group;
  /// row i belongs to group i % groups. 0 or 1: no groups.
  size_t groups = 0;
  /// Names that a counter may have instead in the run (Architecture::recorded_as).
  std::span<const Rename> recorded_as;
  /// As rocprof-compute 3.3: a clock of 0 MHz is a number, CONCAT gives nothing.
  bool compat = false;
};

/// The result of a formula.
struct Value {
  enum class Kind : uint8_t { kNotComputable, kNumber, kText };
  Kind kind = Kind::kNotComputable;
  double number = 0;  ///< may be infinite, never NaN
  std::string text;
};

/// One name that a formula uses, and whether the run has it.
struct FormulaInput {
  std::string name;  ///< "SQ_WAVES", "TCC_HIT[3]", "$max_sclk"
  std::string pass;  ///< "pmc_perf", "SQ_LEVEL_WAVES"; "" for values
  bool available = false;
  bool replaceable = false;  ///< another takes its place where it has no value (COALESCE)

  bool operator==(const FormulaInput&) const = default;
};

/// Where a formula is evaluated.
struct Context {
  std::string_view level;  ///< coll_level: the pass whose counters and timestamps are meant; "" = pmc_perf
  int32_t channel = -1;    ///< the replacement of [$channel]
};

class Program {
 public:
  using Node = uint32_t;

  explicit Program(Environment environment);
  ~Program();
  Program(Program&&) noexcept;

  /// Compiles a formula; `formula` is not referred to afterwards. The node can be put under several reductions.
  Node compile(const Formula& formula, const Context& context);

  /// Puts a node under a reduction (FormulaOp::kNone: none) and keeps the result for value().
  Node keep(Node node, FormulaOp reduction = FormulaOp::kNone, double quantile = 0);

  /// Keeps how far the mean of the node's column may be off: half of its 95 % confidence interval, from the differences
  /// between repeats of the same launch (Student's t). With sum_ratios and a ratio A / B it is that of R = sum(A) /
  /// sum(B), whose variance is the sum over the launches of n s^2(A - R B), divided by sum(B)^2. Not computable if the
  /// node is no column or a launch has no repeat.
  Node keep_error(Node node);

  /// What sum_ratios divides for the mean of a ratio: A and B as formulas, their totals over the dispatches that have
  /// both, and A's column over those (NaN elsewhere).
  struct Totals {
    Node above, below;
    Node column;
    std::string above_text, below_text;
  };
  /// Keeps the totals behind the mean of a column; nullopt where the mean is no ratio of totals.
  std::optional<Totals> keep_totals(Node node);

  /// compile() and keep() in one.
  Node add(const Formula& formula, const Context& context, FormulaOp reduction = FormulaOp::kNone, double quantile = 0);

  /// Compiles every step of the formula and keeps the results, for --explain.
  std::vector<Node> add_steps(const Formula& formula, const Context& context);

  /// Computes everything that was added since the last call.
  void run();

  /// The result of a node that was added; a column (a formula without a reduction over several dispatches) has none.
  Value value(Node node) const;
  /// True when the node has one value a dispatch.
  bool is_column(Node node) const;
  /// The values of a kept number over each group alone, then over all rows but each group: 2 x Environment::groups
  /// values, NaN where there is none; empty without groups. A column inside the formula that uses a number of all rows
  /// (x / MAX(y)) keeps that number.
  std::span<const double> group_values(Node node) const;
  /// The values a dispatch of a kept column node, empty for others.
  std::span<const double> column(Node node) const;

  /// The names that the formula uses, with built-ins replaced by their own inputs; each once, in order of appearance.
  std::vector<FormulaInput> inputs(const Formula& formula, const Context& context) const;

  /// Those of the environment's dispatches that lack a counter of inputs(), ascending; none where the run lacks it.
  std::vector<uint32_t> dispatches_without(const FormulaInput& input) const;

  /// From now on $denom means the denominator of this normalisation; both arguments as in Environment. Programs of
  /// several normalisations share whatever does not depend on it.
  void set_normalisation(std::string_view normalisation, std::string_view denominator);

  /// The graph behind some nodes, for an evaluation elsewhere (the HTML report does it in the browser).
  struct Graph {
    struct Operation {
      uint8_t op = 0;                ///< index into operation_names()
      uint32_t a = 0, b = 0, c = 0;  ///< operands: earlier operations; see operation_names()
    };
    std::vector<Operation> operations;
    std::vector<uint32_t> lists;                  ///< operands of sums
    std::vector<double> constants;                ///< NaN: no value
    std::vector<std::span<const double>> inputs;  ///< columns of the run, one value a dispatch
    std::vector<uint32_t> wanted;                 ///< the operation of each node asked for; 0: not computable
  };
  /// `nodes` as keep() or compile() gave them. Needs no run(). The spans live as long as the workload.
  Graph graph(std::span<const Node> nodes) const;
  /// Names of the operations. "missing" is operation 0 of every graph; "constant": a = index into constants; "column":
  /// a = index into inputs; "quantile": b = index into constants; "sum_list": lists[a], b of them; all others: operands
  /// a, b, c ("select": a where c, else b; "error_of_totals": of sum(a) / sum(b)).
  static std::span<const std::string_view> operation_names();

  /// The specification value ($cu_per_gpu), NaN if sysinfo.csv lacks it.
  double specification(std::string_view name) const;
  /// How many dispatches are looked at.
  size_t rows() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The formula behind a built-in value ("numActiveCUs"), "" when there is none of that name. $denom depends on the
/// normalisation.
std::string_view builtin_formula(std::string_view name, std::string_view normalisation,
                                 std::string_view denominator = {});
/// True for the values that come from sysinfo.csv ("cu_per_gpu").
bool is_specification(std::string_view name);
std::span<const std::string_view> specifications();

/// Names of all columns that the formulas may read from the run, as WantedColumns takes them.
class NameCollector {
 public:
  /// "" as normalisation: columns that any AMD normalisation needs. `recorded_as` as in Environment.
  explicit NameCollector(std::string_view normalisation, std::string_view denominator = {},
                         std::span<const Rename> recorded_as = {});
  void add(const Formula& formula, std::string_view level);
  std::vector<std::string> names() const;

 private:
  void add(std::string_view name);
  std::string_view normalisation_, denominator_;
  std::span<const Rename> recorded_as_;
  workload::StringMap<char> names_;
};

}  // namespace tacho::metric
