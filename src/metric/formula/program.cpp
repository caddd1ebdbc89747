// Program: hash-consed expression graph and its column-wise evaluation.
#include "metric/formula/program.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "metric/expression/arithmetic.h"
#include "metric/formula/student.h"

namespace tacho::metric {

namespace {

constexpr double kNaN = kNoNumber;

struct Builtin {
  std::string_view name;
  std::string_view formula;
};

// Shared values of the catalog's formulas. The *_PER_XCD ones are always taken from pmc_perf, also in formulas of a
// level pass: the level passes count the same cycles but were recorded in another run of the kernel.
constexpr std::array kBuiltins = {
    Builtin{"GRBM_GUI_ACTIVE_PER_XCD", "GRBM_GUI_ACTIVE / $num_xcd"},
    Builtin{"GRBM_COUNT_PER_XCD", "GRBM_COUNT / $num_xcd"},
    Builtin{"GRBM_SPI_BUSY_PER_XCD", "GRBM_SPI_BUSY / $num_xcd"},
    Builtin{"numActiveCUs",
            "TO_INT(MIN((ROUND(AVG(4 * SQ_BUSY_CU_CYCLES / $GRBM_GUI_ACTIVE_PER_XCD), 0) / $max_waves_per_cu) * 8 + "
            "MIN(MOD(ROUND(AVG(4 * SQ_BUSY_CU_CYCLES / "
            "$GRBM_GUI_ACTIVE_PER_XCD), 0), $max_waves_per_cu), 8), $cu_per_gpu))"},
    Builtin{"kernelBusyCycles", "ROUND(AVG((End_Timestamp - Start_Timestamp) / 1000 * $max_sclk), 0)"},
    Builtin{"hbmBandwidth", "$max_mclk / 1000 * 32 * $num_hbm_channels"},
};

constexpr std::array kDenominators = {
    Builtin{"per_second", "(End_Timestamp - Start_Timestamp) / 1000000000"},
    Builtin{"per_kernel", "1"},
};

constexpr std::array<std::string_view, 19> kSpecifications = {
    "se_per_gpu",
    "pipes_per_gpu",
    "cu_per_gpu",
    "simd_per_cu",
    "sqc_per_gpu",
    "lds_banks_per_cu",
    "max_waves_per_cu",
    "num_xcd",
    "wave_size",
    "total_l2_chan",
    "cur_sclk",
    "cur_mclk",
    "max_mclk",
    "max_sclk",
    "num_hbm_channels",
    // NVIDIA
    "max_blocks_per_sm",
    "registers_per_sm",
    "shared_per_sm",
    "shared_reserved",
};

constexpr std::string_view kMainPass = "pmc_perf";
constexpr std::string_view kAccumulator = "SQ_ACCUM_PREV_HIRES";

const Formula& parsed_builtin(std::string_view text) {
  // A formula points into the text it was parsed from: the key, which stays where it is.
  static std::unordered_map<std::string, Formula> cache;
  const auto [place, added] = cache.try_emplace(std::string(text));
  if (added)
    if (auto formula = parse_formula(place->first)) place->second = std::move(*formula);
  return place->second;
}

// The counter's other name, "" if none is known.
std::string other_name(std::string_view name, std::span<const Rename> recorded_as) {
  for (const Rename& rename : recorded_as)
    if (name.starts_with(rename.from)) return std::string(rename.to) + std::string(name.substr(rename.from.size()));
  return {};
}

// numpy's linear interpolation between closest ranks; `values` holds no NaN and is reordered.
double quantile_of(std::vector<double>& values, double q) {
  if (values.empty() || std::isnan(q)) return kNaN;
  const double at = std::clamp(q, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(at);
  const auto nth = values.begin() + static_cast<ptrdiff_t>(below);
  std::nth_element(values.begin(), nth, values.end());
  const double low = *nth;
  const double part = at - static_cast<double>(below);
  if (part == 0) return low;
  const double high = *std::min_element(nth + 1, values.end());
  return low == high ? low : low + (high - low) * part;
}

}  // namespace

std::string_view builtin_formula(std::string_view name, std::string_view normalisation, std::string_view denominator) {
  if (name == "denom") {
    if (!denominator.empty()) return denominator;
    for (const Builtin& denominator : kDenominators)
      if (denominator.name == normalisation) return denominator.formula;
    return {};
  }
  for (const Builtin& builtin : kBuiltins)
    if (builtin.name == name) return builtin.formula;
  return {};
}

bool is_specification(std::string_view name) {
  return std::find(kSpecifications.begin(), kSpecifications.end(), name) != kSpecifications.end();
}

std::span<const std::string_view> specifications() {
  return kSpecifications;
}

NameCollector::NameCollector(std::string_view normalisation, std::string_view denominator,
                             std::span<const Rename> recorded_as)
    : normalisation_(normalisation), denominator_(denominator), recorded_as_(recorded_as) {
  for (const std::string_view always : {"GRBM_GUI_ACTIVE", "Start_Timestamp", "End_Timestamp"}) add(always);
}

void NameCollector::add(std::string_view name) {
  names_.emplace(std::string(name), 0);
  if (const std::string other = other_name(name, recorded_as_); !other.empty()) names_.emplace(other, 0);
}

void NameCollector::add(const Formula& formula, std::string_view level) {
  for (const FormulaStep& step : formula.steps) {
    if (step.op == FormulaOp::kCounter && step.first < 0) {
      add(step.text);
      // Runs recorded through rocpd keep the accumulator under the level's name.
      if (step.text == kAccumulator && !level.empty()) add(std::string(level) + "_ACCUM");
    } else if (step.op == FormulaOp::kCounter || step.op == FormulaOp::kChannel || step.op == FormulaOp::kSumOf) {
      add(std::string(step.text) + "[");
    } else if (step.op == FormulaOp::kValue) {
      const bool denominator = step.text == "denom";
      if (denominator && normalisation_.empty()) {
        for (const Builtin& each : kDenominators) add(parsed_builtin(each.formula), level);
      } else if (const std::string_view text = builtin_formula(step.text, normalisation_, denominator_);
                 !text.empty()) {
        add(parsed_builtin(text), denominator ? level : std::string_view());
      }
    }
  }
}

std::vector<std::string> NameCollector::names() const {
  std::vector<std::string> names;
  names.reserve(names_.size());
  for (const auto& [name, unused] : names_) names.push_back(name);
  return names;
}

// In the order of Impl::Kind.
constexpr std::array<std::string_view, 37> kOperationNames = {
    "missing",  "constant",        "column",   "negate",     "not",    "add",      "subtract",
    "multiply", "divide",          "modulo",   "floor",      "power",  "less",     "less_eq",
    "greater",  "greater_eq",      "equal",    "not_equal",  "and",    "or",       "smaller",
    "larger",   "select",          "sum_list", "only_where", "to_int", "round",    "avg",
    "sum",      "median",          "std",      "min",        "max",    "quantile", "concat",
    "error",    "error_of_totals",
};

struct Program::Impl {
  enum class Kind : uint8_t {
    kMissing,  // a counter or value that the run does not have, or anything computed from one
    kConstant,
    kColumn,  // an input, number = index into inputs
    kNegate,
    kNot,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kModulo,
    kFloorDivide,
    kPower,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kEqual,
    kNotEqual,
    kAnd,
    kOr,
    kSmaller,
    kLarger,  // elementwise minimum and maximum
    kSelect,
    kSumList,    // a = offset into lists, b = count
    kOnlyWhere,  // a where b is a number
    kToInt,
    kRound,
    kAvg,
    kSum,
    kMedian,
    kStd,
    kMin,
    kMax,
    kQuantile,  // b: a constant
    kConcat,
    kError,          // of the mean, from repeats
    kErrorOfTotals,  // of sum(a) / sum(b), from repeats
  };

  static_assert(kOperationNames.size() == static_cast<size_t>(Kind::kErrorOfTotals) + 1);

  struct NodeData {
    Kind kind = Kind::kMissing;
    bool column = false;
    bool kept = false;
    bool done = false;
    bool released = false;  // its last user has been computed
    bool dropped = false;   // its buffer was taken while it still had users: computed again when they come
    Node a = 0, b = 0, c = 0;
    uint32_t uses = 0;
    double number = 0;  // Constant: its value; after run(): the result of a scalar
    const double* values = nullptr;
    double* buffer = nullptr;  // owned: one of buffers
  };

  struct Key {
    Kind kind;
    Node a, b, c;
    uint64_t bits;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      uint64_t h = key.bits * 0x9e3779b97f4a7c15ULL ^ static_cast<uint64_t>(key.kind);
      for (const Node part : {key.a, key.b, key.c}) h = (h ^ part) * 0x9e3779b97f4a7c15ULL, h ^= h >> 29;
      return h;
    }
  };

  Environment env;
  std::vector<NodeData> nodes;
  std::unordered_map<Key, Node, KeyHash> known;
  std::vector<Node> lists;
  std::vector<std::span<const double>> inputs;
  std::unordered_map<std::string, Node> columns;  // "pass\0name"
  std::unordered_map<std::string, std::vector<Node>> channels;
  std::unordered_map<Node, std::string> texts;
  size_t computed = 0;  // nodes before this one are computed or were not needed
  size_t rows = 0;
  std::vector<std::unique_ptr<double[]>> buffers;
  std::vector<double*> free_buffers;
  std::vector<Node> under_way;  // the nodes that compute() is working on, outermost first
  std::vector<Node> holders;    // nodes that got a buffer, in that order
  std::unordered_map<Node, int> protected_by;
  std::vector<double> scratch;  // the numbers of scratch_of, without NaN, in any order
  Node scratch_of = ~Node{0};

  // Of every reduction that was computed: its values over each group alone, then over all rows but each group.
  std::unordered_map<Node, std::vector<double>> group_values;
  std::unordered_map<Node, std::vector<double>> group_results;  // the same of the scalars that were kept
  // How a formula would name a column.
  std::unordered_map<Node, std::string> column_texts;

  explicit Impl(Environment environment) : env(std::move(environment)) {
    rows = env.rows ? env.rows->size() : env.workload->dispatches.size();
    nodes.emplace_back();  // node 0: Missing
  }

  Node intern(Kind kind, Node a = 0, Node b = 0, Node c = 0, double number = 0) {
    const Key key{kind, a, b, c, std::bit_cast<uint64_t>(number)};
    const auto [place, added] = known.try_emplace(key, static_cast<Node>(nodes.size()));
    if (!added) return place->second;
    NodeData node;
    node.kind = kind;
    node.a = a;
    node.b = b;
    node.c = c;
    node.number = number;
    switch (kind) {
      case Kind::kMissing:
      case Kind::kConstant:
      case Kind::kAvg:
      case Kind::kSum:
      case Kind::kMedian:
      case Kind::kStd:
      case Kind::kMin:
      case Kind::kMax:
      case Kind::kQuantile:
      case Kind::kConcat:
      case Kind::kError:
      case Kind::kErrorOfTotals:
        break;
      case Kind::kColumn:
        node.column = true;
        break;
      case Kind::kSumList:
        for (Node i = 0; i < b; ++i) node.column = node.column || nodes[lists[a + i]].column;
        break;
      default:
        node.column = nodes[a].column || nodes[b].column || nodes[c].column;
    }
    nodes.push_back(node);
    return place->second;
  }

  Node constant(double value) { return intern(Kind::kConstant, 0, 0, 0, value); }
  bool missing(Node node) const { return nodes[node].kind == Kind::kMissing; }
  bool is_constant(Node node, double value) const {
    return nodes[node].kind == Kind::kConstant && nodes[node].number == value;
  }

  Node unary(Kind kind, Node a) { return missing(a) ? 0 : intern(kind, a); }
  Node binary(Kind kind, Node a, Node b) {
    if (missing(a) || missing(b)) return 0;
    if ((kind == Kind::kDivide || kind == Kind::kMultiply) && is_constant(b, 1)) return a;
    if (kind == Kind::kMultiply && is_constant(a, 1)) return b;
    return intern(kind, a, b);
  }

  // Names

  // The pass of a level; runs in long form have only one pass, whose counters count for every level.
  std::string_view pass_of(std::string_view level) const {
    return level.empty() || env.workload->long_form ? kMainPass : level;
  }
  std::string column_name(std::string_view name, std::string_view level) const {
    if (name == kAccumulator && !level.empty() && env.workload->long_form) return std::string(level) + "_ACCUM";
    return std::string(name);
  }

  // The name that the counter has in the pass, "" when it is not there.
  std::string recorded_name(const std::string& name, const workload::Pass& pass) const {
    if (pass.counters.has(name)) return name;
    std::string other = other_name(name, env.recorded_as);
    return !other.empty() && pass.counters.has(other) ? other : std::string();
  }

  Node column(const std::string& name, std::string_view pass_name) {
    std::string key(pass_name);
    key += '\0';
    key += name;
    const auto [place, added] = columns.try_emplace(std::move(key), 0);
    if (!added) return place->second;
    const workload::Pass* pass = env.workload->pass(pass_name);
    if (pass == nullptr) return 0;
    const std::string recorded = recorded_name(name, *pass);
    if (recorded.empty()) return 0;
    inputs.push_back(pass->counters.column(recorded));
    place->second = intern(Kind::kColumn, 0, 0, 0, static_cast<double>(inputs.size() - 1));
    column_texts[place->second] = name;
    return place->second;
  }

  Node instance(std::string_view base, int32_t index, std::string_view pass) {
    std::string key(pass);
    key += '\0';
    key += base;
    std::vector<Node>& cached = channels[key];
    const auto at = static_cast<size_t>(index);
    constexpr Node unknown = ~Node{0};
    if (cached.size() <= at) cached.resize(at + 1, unknown);
    if (cached[at] == unknown) cached[at] = column(fmt::format("{}[{}]", base, index), pass);
    return cached[at];
  }

  double specification(std::string_view name) const {
    double value = env.workload->sysinfo.number(name);
    // The profiler writes 0 for an unknown value.
    if (value == 0 && !env.compat) value = kNaN;
    return value;
  }

  Node value(std::string_view name, const Context& context) {
    if (const std::string_view text = builtin_formula(name, env.normalisation, env.denominator); !text.empty())
      return compile(parsed_builtin(text), name == "denom" ? context : Context{}, nullptr);
    if (!is_specification(name)) return 0;
    const double number = specification(name);
    return std::isnan(number) ? 0 : constant(number);
  }

  int32_t channel_count() const {
    const double count = specification("total_l2_chan");
    return count >= 1 && count <= 4096 ? static_cast<int32_t>(count) : 0;
  }

  // Compilation

  Node compile(const Formula& formula, const Context& context, std::vector<Node>* all) {
    std::vector<Node> made;
    made.reserve(formula.steps.size());
    for (const FormulaStep& step : formula.steps) made.push_back(compile_step(step, made, context));
    const Node result = made.empty() ? 0 : made.back();
    if (all != nullptr) *all = std::move(made);
    return result;
  }

  Node compile_step(const FormulaStep& step, const std::vector<Node>& made, const Context& context) {
    const auto argument = [&](size_t i) { return made[step.arguments[i]]; };
    switch (step.op) {
      case FormulaOp::kNumber:
        return constant(step.number);
      case FormulaOp::kNone:
        return constant(kNaN);
      case FormulaOp::kCounter:
        if (step.first >= 0) return instance(step.text, step.first, pass_of(context.level));
        return column(column_name(step.text, context.level), pass_of(context.level));
      case FormulaOp::kChannel:
        return context.channel < 0 ? 0 : instance(step.text, context.channel, pass_of(context.level));
      case FormulaOp::kSumOf: {
        const int32_t end = step.last == Formula::kAll ? channel_count() : step.last + 1;
        if (end <= step.first) return 0;
        std::vector<Node> parts;
        for (int32_t i = step.first; i < end; ++i) parts.push_back(instance(step.text, i, pass_of(context.level)));
        if (std::any_of(parts.begin(), parts.end(), [&](Node part) { return missing(part); })) return 0;
        return sum_list(parts);
      }
      case FormulaOp::kMetric:
        return 0;  // of rules only (catalog/rule_expression.h)
      case FormulaOp::kValue:
        return value(step.text, context);
      case FormulaOp::kNegate:
        return unary(Kind::kNegate, argument(0));
      case FormulaOp::kNot:
        return unary(Kind::kNot, argument(0));
      case FormulaOp::kAdd:
        return binary(Kind::kAdd, argument(0), argument(1));
      case FormulaOp::kSubtract:
        return binary(Kind::kSubtract, argument(0), argument(1));
      case FormulaOp::kMultiply:
        return binary(Kind::kMultiply, argument(0), argument(1));
      case FormulaOp::kDivide:
        return binary(Kind::kDivide, argument(0), argument(1));
      case FormulaOp::kModulo:
      case FormulaOp::kMod:
        return binary(Kind::kModulo, argument(0), argument(1));
      case FormulaOp::kFloorDivide:
        return binary(Kind::kFloorDivide, argument(0), argument(1));
      case FormulaOp::kPower:
        return binary(Kind::kPower, argument(0), argument(1));
      case FormulaOp::kLess:
        return binary(Kind::kLess, argument(0), argument(1));
      case FormulaOp::kLessEqual:
        return binary(Kind::kLessEqual, argument(0), argument(1));
      case FormulaOp::kGreater:
        return binary(Kind::kGreater, argument(0), argument(1));
      case FormulaOp::kGreaterEqual:
        return binary(Kind::kGreaterEqual, argument(0), argument(1));
      case FormulaOp::kEqual:
        return binary(Kind::kEqual, argument(0), argument(1));
      case FormulaOp::kNotEqual:
        return binary(Kind::kNotEqual, argument(0), argument(1));
      case FormulaOp::kAnd:
        return binary(Kind::kAnd, argument(0), argument(1));
      case FormulaOp::kOr:
        return binary(Kind::kOr, argument(0), argument(1));
      case FormulaOp::kSelect:
        if (missing(argument(0)) || missing(argument(1)) || missing(argument(2))) return 0;
        return intern(Kind::kSelect, argument(0), argument(1), argument(2));
      case FormulaOp::kMin:
      case FormulaOp::kMax:
        if (step.argument_count == 2)
          return binary(step.op == FormulaOp::kMin ? Kind::kSmaller : Kind::kLarger, argument(0), argument(1));
        return reduce(step.op, argument(0), 0);
      case FormulaOp::kAvg:
      case FormulaOp::kSum:
      case FormulaOp::kMedian:
      case FormulaOp::kStd:
        return reduce(step.op, argument(0), 0);
      case FormulaOp::kQuantile: {
        const Node q = argument(1);
        return nodes[q].kind == Kind::kConstant ? reduce(step.op, argument(0), nodes[q].number) : 0;
      }
      case FormulaOp::kToInt:
        return unary(Kind::kToInt, argument(0));
      case FormulaOp::kRound:
        return binary(Kind::kRound, argument(0), argument(1));
      case FormulaOp::kConcat:
        if (missing(argument(0)) || missing(argument(1)) || env.compat) return 0;
        return intern(Kind::kConcat, argument(0), argument(1));
      case FormulaOp::kCoalesce:
        if (missing(argument(0))) return argument(1);
        if (missing(argument(1))) return argument(0);
        // What has no value equals nothing, itself neither.
        return intern(Kind::kSelect, argument(0), argument(1), intern(Kind::kEqual, argument(0), argument(0)));
    }
    return 0;
  }

  Node sum_list(const std::vector<Node>& parts) {
    // Equal lists are rare enough to be compared one by one: they are found through the first element's hash.
    const auto offset = static_cast<Node>(lists.size());
    lists.insert(lists.end(), parts.begin(), parts.end());
    const auto count = static_cast<Node>(parts.size());
    for (Node start = 0; start + count <= offset; ++start)
      if (lists[start] == parts.front() && std::equal(parts.begin(), parts.end(), lists.begin() + start)) {
        lists.resize(offset);
        return intern(Kind::kSumList, start, count);
      }
    return intern(Kind::kSumList, offset, count);
  }

  Node reduce(FormulaOp op, Node a, double q) {
    if (missing(a)) return 0;
    if (!nodes[a].column) {
      // Of a single value: itself; its spread is not defined.
      return op == FormulaOp::kStd ? constant(kNaN) : a;
    }
    if (op == FormulaOp::kAvg)
      if (const Fraction ratio = totals_of(a); ratio.has_below) {
        const Node below = intern(Kind::kSum, ratio.below);
        const Node mean = intern(Kind::kDivide, intern(Kind::kSum, ratio.above), below);
        if (!ratio.otherwise) return mean;
        // No dispatch is in the sums (NaN, which equals nothing): every one has what the guard states.
        return intern(Kind::kSelect, mean, intern(Kind::kAvg, a), intern(Kind::kEqual, below, below));
      }
    switch (op) {
      case FormulaOp::kAvg:
        return intern(Kind::kAvg, a);
      case FormulaOp::kSum:
        return intern(Kind::kSum, a);
      case FormulaOp::kMedian:
        return intern(Kind::kMedian, a);
      case FormulaOp::kStd:
        return intern(Kind::kStd, a);
      case FormulaOp::kMin:
        return intern(Kind::kMin, a);
      case FormulaOp::kMax:
        return intern(Kind::kMax, a);
      default:
        return intern(Kind::kQuantile, a, 0, 0, q);
    }
  }

  // A column as above / below, where below gathers everything that the column is divided by.
  struct Fraction {
    Node above = 0, below = 0;
    bool has_below = false;
    bool otherwise = false;  // a guard states a number where it leaves a dispatch out (A / B if B != 0 else 0)
  };

  Fraction split(Node node, int depth) {
    const NodeData data = nodes[node];  // a copy: intern() moves the nodes
    const Fraction plain{node, 0, false};
    if (!data.column || depth > 40) return plain;
    const auto times = [&](const Fraction& x, const Fraction& y) {
      Fraction product;
      product.above = binary(Kind::kMultiply, x.above, y.above);
      product.has_below = x.has_below || y.has_below;
      product.otherwise = x.otherwise || y.otherwise;
      if (x.has_below && y.has_below)
        product.below = binary(Kind::kMultiply, x.below, y.below);
      else if (product.has_below)
        product.below = x.has_below ? x.below : y.below;
      return product;
    };
    switch (data.kind) {
      case Kind::kMultiply:
        return times(split(data.a, depth + 1), split(data.b, depth + 1));
      case Kind::kDivide: {
        const Fraction above = split(data.a, depth + 1);
        if (!nodes[data.b].column)
          return {binary(Kind::kDivide, above.above, data.b), above.below, above.has_below, above.otherwise};
        const Fraction below = split(data.b, depth + 1);
        Fraction inverse{below.has_below ? below.below : constant(1), below.above, true};
        return times(above, inverse);
      }
      case Kind::kNegate: {
        const Fraction inner = split(data.a, depth + 1);
        return {intern(Kind::kNegate, inner.above), inner.below, inner.has_below, inner.otherwise};
      }
      case Kind::kAdd:
      case Kind::kSubtract: {
        const Fraction x = split(data.a, depth + 1);
        const Fraction y = split(data.b, depth + 1);
        if (!x.has_below && !y.has_below) return plain;
        const bool stated = x.otherwise || y.otherwise;
        if (x.has_below && y.has_below) {
          if (x.below == y.below) return {intern(data.kind, x.above, y.above), x.below, true, stated};
          return plain;  // different totals: there is no one ratio
        }
        // 1 - A / B = (B - A) / B
        const Node below = x.has_below ? x.below : y.below;
        const Node left = x.has_below ? x.above : binary(Kind::kMultiply, x.above, below);
        const Node right = y.has_below ? y.above : binary(Kind::kMultiply, y.above, below);
        return {intern(data.kind, left, right), below, true, stated};
      }
      case Kind::kSelect: {
        // A / B if B != 0 else None: the guard only leaves dispatches out of the totals.
        const bool zero = is_constant(data.b, 0);
        const bool guarded = zero || (nodes[data.b].kind == Kind::kConstant && std::isnan(nodes[data.b].number));
        const Fraction inner = split(data.a, depth + 1);
        if (!guarded || !inner.has_below) return plain;
        const Node none = constant(kNaN);
        return {intern(Kind::kSelect, inner.above, none, data.c), intern(Kind::kSelect, inner.below, none, data.c),
                true, zero || inner.otherwise};
      }
      default:
        return plain;
    }
  }

  // The two columns whose totals make the mean of the ratio `node`, both only of dispatches that have both; without
  // a below where the mean stays a mean.
  Fraction totals_of(Node node) {
    if (!env.sum_ratios || !nodes[node].column) return {};
    const Fraction ratio = split(node, 0);
    if (!ratio.has_below || !nodes[ratio.below].column) return {};
    return {intern(Kind::kOnlyWhere, ratio.above, ratio.below), intern(Kind::kOnlyWhere, ratio.below, ratio.above),
            true, ratio.otherwise};
  }

  // Evaluation

  template <typename F>
  void for_each_operand(const NodeData& node, F&& f) const {
    switch (node.kind) {
      case Kind::kMissing:
      case Kind::kConstant:
      case Kind::kColumn:
        return;
      case Kind::kSumList:
        for (Node i = 0; i < node.b; ++i) f(lists[node.a + i]);
        return;
      default:
        f(node.a);
        if (node.kind == Kind::kSelect) f(node.c);
        if (is_binary(node.kind)) f(node.b);
    }
  }
  static bool is_binary(Kind kind) {
    return (kind >= Kind::kAdd && kind <= Kind::kSelect) || kind == Kind::kOnlyWhere || kind == Kind::kRound ||
           kind == Kind::kConcat || kind == Kind::kErrorOfTotals;
  }
  static bool is_reduction(Kind kind) { return kind >= Kind::kAvg && kind <= Kind::kQuantile; }

  // Columns that wait for later users are dropped rather than let a long run's memory grow: this many may be held.
  size_t most_buffers() const {
    return std::max<size_t>(12, env.column_budget / (std::max<size_t>(rows, 1) * sizeof(double)));
  }

  double* take_buffer() {
    if (free_buffers.empty() && buffers.size() >= most_buffers()) drop_one();
    if (!free_buffers.empty()) {
      double* buffer = free_buffers.back();
      free_buffers.pop_back();
      return buffer;
    }
    buffers.push_back(std::make_unique_for_overwrite<double[]>(std::max<size_t>(rows, 1)));
    return buffers.back().get();
  }

  // Takes the buffer of the oldest result that the current computation does not need.
  void drop_one() {
    for (const Node pending : under_way)
      for_each_operand(nodes[pending], [&](Node operand) { ++protected_by[operand]; });
    Node victim = 0;
    for (const Node id : holders)
      if (nodes[id].buffer != nullptr && !nodes[id].kept && !protected_by.contains(id)) {
        victim = id;
        break;
      }
    protected_by.clear();
    std::erase_if(holders, [&](Node id) { return id == victim || nodes[id].buffer == nullptr; });
    if (victim == 0) return;
    NodeData& node = nodes[victim];
    free_buffers.push_back(node.buffer);
    node.buffer = nullptr;
    node.values = nullptr;
    node.done = false;
    node.dropped = true;
    if (scratch_of == victim) scratch_of = ~Node{0};
  }

  // Computes a node after its operands; the stack is explicit because chains of operations can be long.
  void compute(Node wanted) {
    under_way.assign(1, wanted);
    while (!under_way.empty()) {
      const Node id = under_way.back();
      Node missing_operand = 0;
      bool ready = true;
      if (nodes[id].dropped) {
        // Its users' claims on its operands ended when it was first computed.
        for_each_operand(nodes[id], [&](Node operand) { ++nodes[operand].uses; });
        nodes[id].dropped = false;
      }
      for_each_operand(nodes[id], [&](Node operand) {
        if (ready && !nodes[operand].done) {
          missing_operand = operand;
          ready = false;
        }
      });
      if (!ready) {
        // A node that was released after its last use can be needed again by a dropped one; it claims its operands
        // anew.
        if (nodes[missing_operand].released) {
          nodes[missing_operand].released = false;
          for_each_operand(nodes[missing_operand], [&](Node operand) { ++nodes[operand].uses; });
        }
        under_way.push_back(missing_operand);
        continue;
      }
      evaluate(id);
      nodes[id].done = true;
      if (nodes[id].buffer != nullptr) holders.push_back(id);
      under_way.pop_back();
      const NodeData copy = nodes[id];
      for_each_operand(copy, [&](Node operand) { release(operand); });
    }
  }

  void release(Node id) {
    NodeData& node = nodes[id];
    if (node.uses > 0) --node.uses;
    if (node.uses > 0 || node.kept || node.buffer == nullptr) return;
    free_buffers.push_back(node.buffer);
    node.buffer = nullptr;
    node.values = nullptr;
    node.done = false;  // computed again if a dropped node or a later run() needs it
    node.released = true;
    if (scratch_of == id) scratch_of = ~Node{0};
  }

  void run() {
    // The nodes to compute: everything kept that is not done, and its operands.
    std::vector<char> needed(nodes.size(), 0);
    for (Node id = static_cast<Node>(nodes.size()); id-- > 0;) {
      NodeData& node = nodes[id];
      if (node.done || (node.kept == false && needed[id] == 0)) continue;
      needed[id] = 1;
      node.released = node.dropped = false;
      for_each_operand(node, [&](Node operand) {
        ++nodes[operand].uses;
        needed[operand] = 1;
      });
    }
    for (Node id = 0; id < nodes.size(); ++id) {
      // A node that only a dropped one needs again is computed with that one.
      if (needed[id] == 0 || nodes[id].done || nodes[id].released || nodes[id].dropped) continue;
      compute(id);
    }
    if (env.groups > 1) compute_groups();
  }

  // The reduction of one column over the rows of each group and over all others. A row belongs to the group of its
  // number modulo env.groups.
  void reduce_groups(Node id) {
    const NodeData& node = nodes[id];
    const double* const values = nodes[node.a].values;
    const size_t count = env.groups;
    std::vector<double> out(2 * count, kNaN);
    if (node.kind == Kind::kAvg || node.kind == Kind::kSum) {
      std::vector<Totals> of(count), before(count + 1), behind(count + 1);
      for (size_t i = 0; i < rows; ++i) {
        if (std::isnan(values[i])) continue;
        of[i % count].sum += values[i];
        ++of[i % count].count;
      }
      // From both ends: a difference of totals would lose digits.
      for (size_t g = 0; g < count; ++g) before[g + 1] = {before[g].sum + of[g].sum, before[g].count + of[g].count};
      for (size_t g = count; g-- > 0;) behind[g] = {behind[g + 1].sum + of[g].sum, behind[g + 1].count + of[g].count};
      const auto result = [&](const Totals& total) {
        if (total.count == 0) return kNaN;
        return node.kind == Kind::kSum ? total.sum : total.sum / static_cast<double>(total.count);
      };
      for (size_t g = 0; g < count; ++g) {
        out[g] = result(of[g]);
        out[count + g] = result({before[g].sum + behind[g + 1].sum, before[g].count + behind[g + 1].count});
      }
    } else {
      std::vector<double> some;
      for (size_t g = 0; g < out.size(); ++g) {
        some.clear();
        for (size_t i = 0; i < rows; ++i)
          if (!std::isnan(values[i]) && (i % count == g % count) == (g < count)) some.push_back(values[i]);
        out[g] = reduced(node.kind, some, node.number);
      }
    }
    group_values[id] = std::move(out);
  }

  // Everything that follows from reductions, computed again with each group's values of them. Columns that use a
  // reduction keep the one over all rows.
  void compute_groups() {
    group_results.clear();
    std::vector<double> whole(nodes.size());
    for (Node id = 0; id < nodes.size(); ++id) whole[id] = nodes[id].number;
    for (size_t g = 0; g < 2 * env.groups; ++g) {
      for (Node id = 0; id < nodes.size(); ++id) {
        NodeData& node = nodes[id];
        if (node.column || !node.done) continue;
        if (is_reduction(node.kind)) {
          if (const auto found = group_values.find(id); found != group_values.end()) node.number = found->second[g];
        } else if (node.kind != Kind::kError && node.kind != Kind::kErrorOfTotals && node.kind != Kind::kConcat &&
                   node.kind != Kind::kSumList) {
          evaluate(id);
        }
        if (node.kept) group_results[id].push_back(node.number);
      }
    }
    for (Node id = 0; id < nodes.size(); ++id) nodes[id].number = whole[id];
  }

  // What a total of totals_of() adds up. A guard (A if B != 0 else None) only leaves dispatches out.
  std::string total_text(Node total) const {
    Node of = nodes[total].a;
    while (nodes[of].kind == Kind::kSelect && nodes[nodes[of].b].kind == Kind::kConstant &&
           std::isnan(nodes[nodes[of].b].number))
      of = nodes[of].a;
    return nodes[of].kind >= Kind::kAdd && nodes[of].kind <= Kind::kOr ? "(" + text(of) + ")" : text(of);
  }

  // A node as a formula; what would make it longer than a few lines becomes "...".
  std::string text(Node id, int depth = 0) const {
    const NodeData& node = nodes[id];
    if (depth > 8) return "...";
    const auto part = [&](Node of) {
      std::string inner = text(of, depth + 1);
      const Kind kind = nodes[of].kind;
      return kind >= Kind::kAdd && kind <= Kind::kOr ? "(" + inner + ")" : inner;
    };
    static constexpr std::array<std::string_view, 15> kSigns = {"+",  "-", "*",  "/",  "%",  "//",  "**", "<",
                                                                "<=", ">", ">=", "==", "!=", "and", "or"};
    if (node.kind == Kind::kColumn) return column_texts.at(id);
    if (node.kind == Kind::kConstant) return std::isnan(node.number) ? "None" : fmt::format("{}", node.number);
    if (node.kind == Kind::kNegate) return "-" + part(node.a);
    if (node.kind >= Kind::kAdd && node.kind <= Kind::kOr)
      return fmt::format("{} {} {}", part(node.a),
                         kSigns[static_cast<size_t>(node.kind) - static_cast<size_t>(Kind::kAdd)], part(node.b));
    if (node.kind == Kind::kOnlyWhere) return text(node.a, depth + 1);
    if (node.kind == Kind::kSelect) return fmt::format("({} if {} else {})", part(node.a), part(node.c), part(node.b));
    if (node.kind == Kind::kSumList)
      return fmt::format("({} + ... + {})", text(lists[node.a], depth + 1),
                         text(lists[node.a + node.b - 1], depth + 1));
    std::string operands;
    for_each_operand(node, [&](Node of) { operands += (operands.empty() ? "" : ", ") + text(of, depth + 1); });
    return fmt::format("{}({})", kOperationNames[static_cast<size_t>(node.kind)], operands);
  }

  template <typename F>
  void elementwise(NodeData& node, F&& f) {
    const NodeData& a = nodes[node.a];
    const NodeData& b = nodes[node.b];
    if (!node.column) {
      node.number = f(a.number, b.number);
      return;
    }
    double* const out = take_buffer();
    const double* const x = a.values;
    const double* const y = b.values;
    const size_t n = rows;
    if (a.column && b.column) {
      for (size_t i = 0; i < n; ++i) out[i] = f(x[i], y[i]);
    } else if (a.column) {
      const double s = b.number;
      for (size_t i = 0; i < n; ++i) out[i] = f(x[i], s);
    } else {
      const double s = a.number;
      for (size_t i = 0; i < n; ++i) out[i] = f(s, y[i]);
    }
    node.values = node.buffer = out;
  }

  template <typename F>
  void each(NodeData& node, F&& f) {
    const NodeData& a = nodes[node.a];
    if (!node.column) {
      node.number = f(a.number);
      return;
    }
    double* const out = take_buffer();
    for (size_t i = 0; i < rows; ++i) out[i] = f(a.values[i]);
    node.values = node.buffer = out;
  }

  std::vector<double>& numbers_of(Node id) {
    if (scratch_of != id) {
      scratch.clear();
      const double* values = nodes[id].values;
      for (size_t i = 0; i < rows; ++i)
        if (!std::isnan(values[i])) scratch.push_back(values[i]);
      scratch_of = id;
    }
    return scratch;
  }

  struct Totals {
    double sum = 0;
    size_t count = 0;
  };
  Totals totals(const double* values) const {
    Totals total;
    // In blocks, so that the rounding error does not grow with the number of dispatches.
    for (size_t from = 0; from < rows; from += 256) {
      double sum = 0;
      size_t count = 0;
      const size_t to = std::min(rows, from + 256);
      for (size_t i = from; i < to; ++i) {
        const bool number = !std::isnan(values[i]);
        sum += number ? values[i] : 0.0;
        count += number ? 1U : 0U;
      }
      total.sum += sum;
      total.count += count;
    }
    return total;
  }

  // Half of the 95 % confidence interval of sum(value) / total, where every launch has repeats. `value(i)` of a
  // dispatch is NaN where it is in no sum.
  template <typename F>
  double error_of_sum(F&& value, double total) const {
    struct Group {
      double count = 0, mean = 0, squares = 0;
    };
    std::vector<Group> groups(1 + *std::max_element(env.repeats.begin(), env.repeats.end()));
    const auto group_of = [&](size_t i) -> Group& { return groups[env.repeats[env.rows ? (*env.rows)[i] : i]]; };
    for (size_t i = 0; i < rows; ++i) {
      const double x = value(i);
      if (std::isnan(x)) continue;
      Group& group = group_of(i);
      group.count += 1;
      group.mean += x;
    }
    for (Group& group : groups)
      if (group.count > 0) group.mean /= group.count;
    for (size_t i = 0; i < rows; ++i) {
      const double x = value(i);
      if (std::isnan(x)) continue;
      Group& group = group_of(i);
      group.squares += (x - group.mean) * (x - group.mean);
    }
    double variance = 0, freedom = 0;
    for (const Group& group : groups) {
      if (group.count == 0) continue;
      if (group.count == 1) return kNaN;
      freedom += group.count - 1;
      variance += group.count * group.squares / (group.count - 1);
    }
    return freedom == 0 || total == 0 ? kNaN : student(freedom) * std::sqrt(variance) / std::fabs(total);
  }

  double error_of_mean(const double* values) const {
    return error_of_sum([&](size_t i) { return values[i]; }, static_cast<double>(totals(values).count));
  }

  // Of R = sum(a) / sum(b), to first order: var(R) = sum over launches of n s^2(a - R b) / sum(b)^2.
  double error_of_totals(const double* above, const double* below) const {
    const double total = totals(below).sum;
    const double ratio = totals(above).sum / total;
    return error_of_sum([&](size_t i) { return above[i] - ratio * below[i]; }, total);
  }

  void evaluate_column(NodeData& node) {
    const std::span<const double> from = inputs[static_cast<size_t>(node.number)];
    if (!env.rows) {
      node.values = from.data();
      return;
    }
    double* const out = take_buffer();
    for (size_t i = 0; i < rows; ++i) out[i] = from[(*env.rows)[i]];
    node.values = node.buffer = out;
  }

  void evaluate_choice(NodeData& node) {
    const NodeData& a = nodes[node.a];
    const NodeData& b = nodes[node.b];
    const NodeData& c = nodes[node.c];
    if (!node.column) {
      node.number = c.number != 0 ? a.number : b.number;
      return;
    }
    double* const out = take_buffer();
    for (size_t i = 0; i < rows; ++i) {
      const bool take = (c.column ? c.values[i] : c.number) != 0;
      out[i] = take ? (a.column ? a.values[i] : a.number) : (b.column ? b.values[i] : b.number);
    }
    node.values = node.buffer = out;
  }

  void evaluate_sum(NodeData& node) {
    double* const out = take_buffer();
    std::fill_n(out, rows, 0.0);
    for (Node i = 0; i < node.b; ++i) {
      const double* const values = nodes[lists[node.a + i]].values;
      for (size_t r = 0; r < rows; ++r) out[r] += values[r];
    }
    node.values = node.buffer = out;
  }

  // The other reductions of numbers without NaN; `q` is that of a quantile.
  static double reduced(Kind kind, std::vector<double>& values, double q) {
    if (values.empty()) return kNaN;
    if (kind == Kind::kMin) return *std::min_element(values.begin(), values.end());
    if (kind == Kind::kMax) return *std::max_element(values.begin(), values.end());
    if (kind != Kind::kStd) return quantile_of(values, kind == Kind::kMedian ? 0.5 : q);
    if (values.size() < 2) return kNaN;
    double mean = 0, squares = 0;
    for (const double value : values) mean += value;
    mean /= static_cast<double>(values.size());
    for (const double value : values) squares += (value - mean) * (value - mean);
    return std::sqrt(squares / static_cast<double>(values.size() - 1));
  }

  // One number of a column.
  void evaluate_reduction(NodeData& node) {
    switch (node.kind) {
      case Kind::kAvg: {
        const Totals total = totals(nodes[node.a].values);
        node.number = total.count == 0 ? kNaN : total.sum / static_cast<double>(total.count);
        return;
      }
      case Kind::kSum: {
        const Totals total = totals(nodes[node.a].values);
        node.number = total.count == 0 ? kNaN : total.sum;
        return;
      }
      case Kind::kMin:
      case Kind::kMax: {
        const double* const values = nodes[node.a].values;
        double best = kNaN;
        for (size_t i = 0; i < rows; ++i) {
          const double x = values[i];
          if (std::isnan(x)) continue;
          if (std::isnan(best) || (node.kind == Kind::kMin ? x < best : x > best)) best = x;
        }
        node.number = best;
        return;
      }
      case Kind::kStd: {
        const double* const values = nodes[node.a].values;
        const Totals total = totals(values);
        node.number = kNaN;
        if (total.count < 2) return;
        const double mean = total.sum / static_cast<double>(total.count);
        double squares = 0;
        for (size_t i = 0; i < rows; ++i)
          if (!std::isnan(values[i])) squares += (values[i] - mean) * (values[i] - mean);
        node.number = std::sqrt(squares / static_cast<double>(total.count - 1));
        return;
      }
      case Kind::kError:
        node.number = error_of_mean(nodes[node.a].values);
        return;
      case Kind::kErrorOfTotals:
        node.number = error_of_totals(nodes[node.a].values, nodes[node.b].values);
        return;
      case Kind::kMedian: {
        std::vector<double>& values = numbers_of(node.a);
        node.number = quantile_of(values, 0.5);
        return;
      }
      case Kind::kQuantile: {
        std::vector<double>& values = numbers_of(node.a);
        node.number = quantile_of(values, node.number);
        return;
      }
      default:
        return;
    }
  }

  void evaluate_text(Node id, NodeData& node) {
    const auto text = [&](Node part) {
      if (const auto found = texts.find(part); found != texts.end()) return found->second;
      const double x = nodes[part].number;
      return x == std::trunc(x) && std::fabs(x) < 1e15 ? fmt::format("{:.0f}", x) : fmt::format("{}", x);
    };
    const auto usable = [&](Node part) {
      return texts.contains(part) || (!nodes[part].column && !std::isnan(nodes[part].number));
    };
    if (usable(node.a) && usable(node.b)) texts[id] = text(node.a) + text(node.b);
    node.number = kNaN;
  }

  void evaluate(Node id) {
    NodeData& node = nodes[id];
    switch (node.kind) {
      case Kind::kMissing:
        node.number = kNaN;
        return;
      case Kind::kConstant:
        return;
      case Kind::kColumn:
        return evaluate_column(node);
      case Kind::kNegate:
        return each(node, UnaryArithmetic<FormulaOp::kNegate>());
      case Kind::kNot:
        return each(node, UnaryArithmetic<FormulaOp::kNot>());
      case Kind::kToInt:
        return each(node, UnaryArithmetic<FormulaOp::kToInt>());
      case Kind::kAdd:
        return elementwise(node, Arithmetic<FormulaOp::kAdd>());
      case Kind::kSubtract:
        return elementwise(node, Arithmetic<FormulaOp::kSubtract>());
      case Kind::kMultiply:
        return elementwise(node, Arithmetic<FormulaOp::kMultiply>());
      case Kind::kDivide:
        return elementwise(node, Arithmetic<FormulaOp::kDivide>());
      case Kind::kModulo:
        return elementwise(node, Arithmetic<FormulaOp::kModulo>());
      case Kind::kFloorDivide:
        return elementwise(node, Arithmetic<FormulaOp::kFloorDivide>());
      case Kind::kPower:
        return elementwise(node, Arithmetic<FormulaOp::kPower>());
      case Kind::kLess:
        return elementwise(node, Arithmetic<FormulaOp::kLess>());
      case Kind::kLessEqual:
        return elementwise(node, Arithmetic<FormulaOp::kLessEqual>());
      case Kind::kGreater:
        return elementwise(node, Arithmetic<FormulaOp::kGreater>());
      case Kind::kGreaterEqual:
        return elementwise(node, Arithmetic<FormulaOp::kGreaterEqual>());
      case Kind::kEqual:
        return elementwise(node, Arithmetic<FormulaOp::kEqual>());
      case Kind::kNotEqual:
        return elementwise(node, Arithmetic<FormulaOp::kNotEqual>());
      case Kind::kAnd:
        return elementwise(node, Arithmetic<FormulaOp::kAnd>());
      case Kind::kOr:
        return elementwise(node, Arithmetic<FormulaOp::kOr>());
      case Kind::kSmaller:
        return elementwise(node, Arithmetic<FormulaOp::kMin>());
      case Kind::kLarger:
        return elementwise(node, Arithmetic<FormulaOp::kMax>());
      case Kind::kRound:
        return elementwise(node, Arithmetic<FormulaOp::kRound>());
      case Kind::kOnlyWhere:
        return elementwise(node, [](double x, double y) { return std::isnan(y) ? kNaN : x; });
      case Kind::kSelect:
        return evaluate_choice(node);
      case Kind::kSumList:
        return evaluate_sum(node);
      case Kind::kAvg:
      case Kind::kSum:
      case Kind::kMin:
      case Kind::kMax:
      case Kind::kStd:
      case Kind::kError:
      case Kind::kErrorOfTotals:
      case Kind::kMedian:
      case Kind::kQuantile:
        if (env.groups > 1 && is_reduction(node.kind)) reduce_groups(id);
        evaluate_reduction(node);
        return;
      case Kind::kConcat:
        return evaluate_text(id, node);
    }
  }
};

Program::Program(Environment environment) : impl_(std::make_unique<Impl>(std::move(environment))) {}
Program::~Program() = default;
Program::Program(Program&&) noexcept = default;

Program::Node Program::compile(const Formula& formula, const Context& context) {
  return impl_->compile(formula, context, nullptr);
}

Program::Node Program::add(const Formula& formula, const Context& context, FormulaOp reduction, double quantile) {
  return keep(compile(formula, context), reduction, quantile);
}

Program::Node Program::keep(Node node, FormulaOp reduction, double quantile) {
  if (reduction != FormulaOp::kNone) node = impl_->reduce(reduction, node, quantile);
  impl_->nodes[node].kept = true;
  return node;
}

Program::Node Program::keep_error(Node node) {
  if (impl_->env.repeats.empty() || !impl_->nodes[node].column) return 0;
  const Impl::Fraction ratio = impl_->totals_of(node);
  node = ratio.has_below ? impl_->intern(Impl::Kind::kErrorOfTotals, ratio.above, ratio.below)
                         : impl_->intern(Impl::Kind::kError, node);
  impl_->nodes[node].kept = true;
  return node;
}

std::optional<Program::Totals> Program::keep_totals(Node node) {
  const Impl::Fraction ratio = impl_->totals_of(node);
  if (!ratio.has_below) return std::nullopt;
  const Totals totals{impl_->intern(Impl::Kind::kSum, ratio.above), impl_->intern(Impl::Kind::kSum, ratio.below),
                      ratio.above, impl_->total_text(ratio.above), impl_->total_text(ratio.below)};
  for (const Node kept : {totals.above, totals.below, totals.column}) impl_->nodes[kept].kept = true;
  return totals;
}

std::vector<Program::Node> Program::add_steps(const Formula& formula, const Context& context) {
  std::vector<Node> nodes;
  impl_->compile(formula, context, &nodes);
  for (const Node node : nodes) impl_->nodes[node].kept = true;
  return nodes;
}

void Program::run() {
  impl_->run();
}

Value Program::value(Node node) const {
  Value result;
  if (const auto text = impl_->texts.find(node); text != impl_->texts.end()) {
    result.kind = Value::Kind::kText;
    result.text = text->second;
    return result;
  }
  const Impl::NodeData& data = impl_->nodes[node];
  if (data.column || data.kind == Impl::Kind::kMissing || std::isnan(data.number)) return result;
  result.kind = Value::Kind::kNumber;
  result.number = data.number;
  return result;
}

void Program::set_normalisation(std::string_view normalisation, std::string_view denominator) {
  impl_->env.normalisation = normalisation;
  impl_->env.denominator = denominator;
}

std::span<const std::string_view> Program::operation_names() {
  return kOperationNames;
}

Program::Graph Program::graph(std::span<const Node> nodes) const {
  const Impl& impl = *impl_;
  std::vector<char> needed(impl.nodes.size(), 0);
  for (const Node node : nodes) needed[node] = 1;
  // Operands always stand before their users.
  for (Node id = static_cast<Node>(impl.nodes.size()); id-- > 0;)
    if (needed[id] != 0) impl.for_each_operand(impl.nodes[id], [&](Node operand) { needed[operand] = 1; });
  Graph graph;
  std::vector<uint32_t> place(impl.nodes.size(), 0);
  std::unordered_map<uint64_t, uint32_t> constants;
  const auto constant = [&](double value) {
    const auto [at, added] =
        constants.try_emplace(std::bit_cast<uint64_t>(value), static_cast<uint32_t>(graph.constants.size()));
    if (added) graph.constants.push_back(value);
    return at->second;
  };
  graph.operations.emplace_back();
  for (Node id = 1; id < impl.nodes.size(); ++id) {
    if (needed[id] == 0) continue;
    const Impl::NodeData& node = impl.nodes[id];
    Graph::Operation operation;
    operation.op = static_cast<uint8_t>(node.kind);
    switch (node.kind) {
      case Impl::Kind::kMissing:
        break;
      case Impl::Kind::kConstant:
        operation.a = constant(node.number);
        break;
      case Impl::Kind::kColumn:
        operation.a = static_cast<uint32_t>(graph.inputs.size());
        graph.inputs.push_back(impl.inputs[static_cast<size_t>(node.number)]);
        break;
      case Impl::Kind::kSumList:
        operation.a = static_cast<uint32_t>(graph.lists.size());
        operation.b = node.b;
        for (Node i = 0; i < node.b; ++i) graph.lists.push_back(place[impl.lists[node.a + i]]);
        break;
      case Impl::Kind::kQuantile:
        operation.a = place[node.a];
        operation.b = constant(node.number);
        break;
      default:
        operation.a = place[node.a];
        operation.b = place[node.b];
        operation.c = place[node.c];
    }
    place[id] = static_cast<uint32_t>(graph.operations.size());
    graph.operations.push_back(operation);
  }
  graph.wanted.reserve(nodes.size());
  for (const Node node : nodes) graph.wanted.push_back(place[node]);
  return graph;
}

bool Program::is_column(Node node) const {
  return impl_->nodes[node].column;
}

std::span<const double> Program::group_values(Node node) const {
  const auto found = impl_->group_results.find(node);
  return found == impl_->group_results.end() ? std::span<const double>() : found->second;
}

std::span<const double> Program::column(Node node) const {
  const Impl::NodeData& data = impl_->nodes[node];
  if (!data.column || data.values == nullptr) return {};
  return {data.values, impl_->rows};
}

double Program::specification(std::string_view name) const {
  return impl_->specification(name);
}
size_t Program::rows() const {
  return impl_->rows;
}

std::vector<FormulaInput> Program::inputs(const Formula& formula, const Context& context) const {
  std::vector<FormulaInput> found;
  const Impl& impl = *impl_;
  const auto add = [&](FormulaInput input) {
    if (std::find(found.begin(), found.end(), input) == found.end()) found.push_back(std::move(input));
  };
  const auto add_counter = [&](std::string name, std::string_view pass_name, bool replaceable) {
    const workload::Pass* pass = impl.env.workload->pass(pass_name);
    const bool available = pass != nullptr && !impl.recorded_name(name, *pass).empty();
    add({std::move(name), std::string(pass_name), available, replaceable});
  };
  const auto visit = [&](const auto& self, const Formula& f, const Context& at) -> void {
    const std::string_view pass = impl.pass_of(at.level);
    std::vector<char> replaceable(f.steps.size(), 0);
    for (size_t s = f.steps.size(); s-- > 0;)
      for (size_t a = 0; a < f.steps[s].argument_count; ++a)
        if (replaceable[s] != 0 || f.steps[s].op == FormulaOp::kCoalesce) replaceable[f.steps[s].arguments[a]] = 1;
    for (size_t s = 0; s < f.steps.size(); ++s) {
      const FormulaStep& step = f.steps[s];
      const bool other = replaceable[s] != 0;
      if (step.op == FormulaOp::kCounter) {
        add_counter(
            step.first >= 0 ? fmt::format("{}[{}]", step.text, step.first) : impl.column_name(step.text, at.level),
            pass, other);
      } else if (step.op == FormulaOp::kChannel) {
        add_counter(fmt::format("{}[{}]", step.text, std::max(at.channel, 0)), pass, other);
      } else if (step.op == FormulaOp::kSumOf) {
        const int32_t end = step.last == Formula::kAll ? impl.channel_count() : step.last + 1;
        for (int32_t i = step.first; i < end; ++i) add_counter(fmt::format("{}[{}]", step.text, i), pass, other);
      } else if (step.op == FormulaOp::kValue) {
        if (const std::string_view text = builtin_formula(step.text, impl.env.normalisation, impl.env.denominator);
            !text.empty()) {
          self(self, parsed_builtin(text), step.text == "denom" ? at : Context{});
        } else {
          add({"$" + std::string(step.text), "", !std::isnan(impl.specification(step.text))});
        }
      }
    }
  };
  visit(visit, formula, context);
  return found;
}

std::vector<uint32_t> Program::dispatches_without(const FormulaInput& input) const {
  const Impl& impl = *impl_;
  std::vector<uint32_t> without;
  const workload::Pass* const pass = impl.env.workload->pass(input.pass);
  const std::string recorded = pass == nullptr ? std::string() : impl.recorded_name(input.name, *pass);
  if (recorded.empty()) return without;
  const std::span<const double> values = pass->counters.column(recorded);
  for (uint32_t i = 0; i < impl.rows; ++i)
    if (const uint32_t row = impl.env.rows ? (*impl.env.rows)[i] : i; std::isnan(values[row])) without.push_back(row);
  return without;
}

}  // namespace tacho::metric
